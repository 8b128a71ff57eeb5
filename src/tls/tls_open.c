/*
 * Streams: opening them, and what their handshakes have agreed on. tls.h has the protocol.
 */
#include "tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

/* The longest name of a host, without the dot at its end. */
enum { MAX_HOST = 253 };

/* ---- opening ---------------------------------------------------------------------------------------------------- */

void tls_destroy(strand_tls *tls)
{
    SSL_free(tls->ssl);
    tls_reasons_free(tls);
    OPENSSL_free(tls->host);
    OPENSSL_free(tls->peer_der);
    ASN1_TIME_free(tls->until);
    ASN1_TIME_free(tls->staple_until);
    strand_tls_context_close(tls->context);
    strand_tls_context_close(tls->named);
    tls_bytes_free(&tls->in);
    tls_bytes_free(&tls->arriving);
    tls_bytes_free(&tls->out);
    tls_bytes_free(&tls->sending);
    OPENSSL_clear_free(tls, sizeof *tls);
}

static strand_tls *make(strand_tls_context *context, int fd)
{
    ERR_clear_error();
    strand_tls *tls = OPENSSL_zalloc(sizeof *tls);
    if (!tls)
        return NULL;
    tls->context = tls_context_current(context);
    tls->fd = fd;
    tls->reader = (strand_semaphore)STRAND_SEMAPHORE_INIT(1);
    tls->writer = (strand_semaphore)STRAND_SEMAPHORE_INIT(1);
    tls->ssl = SSL_new(tls->context->ssl);
    if (!tls->ssl || !tls_carrier_set(tls) || !SSL_set_app_data(tls->ssl, tls)) {
        tls_destroy(tls);
        ERR_clear_error();
        return NULL;
    }
    return tls;
}

/* A strand takes memory for its first lock, and keeps it. So the one that opens a stream can always close it. Throws
 * without memory. */
static void reserve_lock(void)
{
    STRAND_SHIELD;
    strand_mutex unused = STRAND_MUTEX_INIT;
    strand_mutex_lock(&unused);
    strand_mutex_unlock(&unused);
}

static strand_tls *open_stream(strand_tls_context *context, int fd)
{
    if (!context)
        tls_refuse(-EINVAL, "no context", NULL);
    reserve_lock();
    strand_tls *tls = make(context, fd);
    if (!tls)
        strand_throw_with(&STRAND_SYSTEM, STRAND_THROW_INFO(.code = -ENOMEM), "a stream of TLS: no memory");
    return tls;
}

/* A stream that is not made after all. */
STRAND_NORETURN static void refuse_stream(strand_tls *tls, const char *words, const char *subject)
{
    tls_destroy(tls);
    tls_refuse(-EINVAL, words, subject);
}

/* Whether a text is a name of a host: labels of at most 63 letters, digits, '-' and '_', with a dot between two.
 * OpenSSL would take a dot at the beginning for all hosts below. */
static bool is_name(const char *text, size_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    for (size_t at = 0;; at++) {
        size_t label = strspn(text + at, allowed);
        at += label;
        if (label == 0 || label > 63 || at >= size)
            return label > 0 && label <= 63 && at == size;
        if (text[at] != '.')
            return false;
    }
}

/* The name or the address that the certificate must have: without the brackets of an address, and without the dot of a
 * complete name. An address is not sent to the server. */
static bool set_host(strand_tls *tls, const char *host)
{
    char name[MAX_HOST + 1];
    X509_VERIFY_PARAM *check = SSL_get0_param(tls->ssl);
    size_t size = strnlen(host, MAX_HOST + 2);
    bool bracketed = size > 2 && host[0] == '[' && host[size - 1] == ']';
    size -= bracketed ? 2 : size > 1 && host[size - 1] == '.';
    if (size > MAX_HOST)
        return false;
    memcpy(name, host + bracketed, size);
    name[size] = 0;
    tls->host = OPENSSL_strdup(name); /* without memory for it no session is resumed */
    if ((!bracketed || strchr(name, ':')) && X509_VERIFY_PARAM_set1_ip_asc(check, name) == 1)
        return true;
    if (bracketed || !is_name(name, size))
        return false;
    X509_VERIFY_PARAM_set_hostflags(check, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return X509_VERIFY_PARAM_set1_host(check, name, 0) == 1 && SSL_set_tlsext_host_name(tls->ssl, name) == 1;
}

strand_tls *strand_tls_client(strand_tls_context *context, int fd, const char *host)
{
    if (!host || !*host)
        tls_refuse(-EINVAL, "a client needs the name of its server", NULL);
    strand_tls *tls = open_stream(context, fd);
    bool verifies = !tls->context->unverified;
    if (verifies && !tls_context_trust(tls->context))
        refuse_stream(tls, "the trust of the system", NULL);
    ERR_clear_error();
    if (!set_host(tls, host)) {
        ERR_clear_error(); /* it was no address either */
        refuse_stream(tls, "not the name of a server: ", host);
    }
    if (verifies && !tls_staple_ask(tls))
        refuse_stream(tls, "asking for an OCSP response", NULL);
    ERR_clear_error();
    if (tls->host)
        tls_sessions_resume(tls);
    SSL_set_connect_state(tls->ssl);
    SSL_set_verify(tls->ssl, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, verifies ? tls_verify : NULL);
    return tls;
}

strand_tls *strand_tls_server(strand_tls_context *context, int fd)
{
    strand_tls *tls = open_stream(context, fd);
    enum strand_tls_clients clients = tls->context->clients;
    if (!tls->context->certified)
        refuse_stream(tls, "a server needs a certificate", NULL);
    if (clients != STRAND_TLS_CLIENTS_UNASKED && !tls_context_trust(tls->context))
        refuse_stream(tls, "the trust of the system", NULL);
    SSL_set_accept_state(tls->ssl);
    int mode = clients == STRAND_TLS_CLIENTS_UNASKED ? SSL_VERIFY_NONE : SSL_VERIFY_PEER;
    if (clients == STRAND_TLS_CLIENTS_REQUIRED)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_set_verify(tls->ssl, mode, tls_verify);
    return tls;
}

/* ---- what was agreed on --------------------------------------------------------------------------------------------
 */

/* Under the lock, after the handshake: encode the peer's certificate, if it has one. Returns whether there was memory.
 */
static bool encode_peer(strand_tls *tls)
{
    X509 *peer = tls->peer_der ? NULL : SSL_get1_peer_certificate(tls->ssl);
    if (!peer)
        return true;
    ERR_clear_error(); /* [TL1] */
    int size = i2d_X509(peer, &tls->peer_der);
    if (size > 0)
        tls->peer_der_size = size;
    ERR_clear_error();
    X509_free(peer);
    return size > 0;
}

/* Under the lock, after the handshake. */
static strand_tls_info read_info(strand_tls *tls)
{
    const unsigned char *protocol;
    unsigned size;
    SSL_get0_alpn_selected(tls->ssl, &protocol, &size);
    if (size)
        memcpy(tls->protocol, protocol, size);
    tls->protocol[size] = 0;
    const char *name = SSL_get_servername(tls->ssl, TLSEXT_NAMETYPE_host_name);
    return (strand_tls_info){.version = SSL_get_version(tls->ssl),
                             .cipher = SSL_get_cipher_name(tls->ssl),
                             .protocol = tls->protocol,
                             .server_name = name ? name : "",
                             .peer = tls->peer,
                             .resumed = SSL_session_reused(tls->ssl),
                             .stapled = tls->stapled,
                             .peer_certificate = tls->peer_der,
                             .peer_certificate_size = (size_t)tls->peer_der_size};
}

int strand_tls_info_get(strand_tls *tls, strand_tls_info *info)
{
    if (!tls || !info || info->size < sizeof info->size)
        return -EINVAL;
    strand_tls_info found = {.version = "", .cipher = "", .protocol = "", .server_name = "", .peer = ""};
    tls_lock(tls);
    bool wanted = info->size > offsetof(strand_tls_info, peer_certificate);
    bool encoded = !tls->ready || !wanted || encode_peer(tls);
    if (tls->ready)
        found = read_info(tls);
    strand_mutex_unlock(&tls->lock);
    if (!encoded)
        return -ENOMEM;
    found.size = info->size;
    memcpy(info, &found, info->size < sizeof found ? info->size : sizeof found);
    return 0;
}
