/*
 * Streams: opening, the handshake, reading, writing, ending and closing. tls.h has the protocol.
 */
#include "tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

/* The longest name of a host, without the dot at its end. */
enum { MAX_HOST = 253 };

/* ---- users ------------------------------------------------------------------------------------------------------ */

void tls_lock(strand_tls *tls)
{
    STRAND_SHIELD;
    strand_mutex_lock(&tls->lock);
}

static void destroy(strand_tls *tls)
{
    SSL_free(tls->ssl);
    tls_reasons_free(tls);
    strand_tls_context_close(tls->context);
    strand_tls_context_close(tls->named);
    tls_bytes_free(&tls->in);
    tls_bytes_free(&tls->arriving);
    tls_bytes_free(&tls->out);
    tls_bytes_free(&tls->sending);
    OPENSSL_clear_free(tls, sizeof *tls);
}

/* [TL4] The end of a call. */
static void leave(strand_tls **user)
{
    strand_tls *tls = *user;
    if (!tls)
        return;
    tls_lock(tls);
    bool last = --tls->users == 0 && tls->closed;
    strand_mutex_unlock(&tls->lock);
    if (last)
        destroy(tls);
}

/* The beginning of a call, which leaves if the result is 0. Else the result is a negated errno code. */
static int enter(strand_tls *tls)
{
    if (!tls)
        return -EINVAL;
    strand_mutex_lock(&tls->lock);
    bool closed = tls->closed;
    tls->users += !closed;
    strand_mutex_unlock(&tls->lock);
    return closed ? -EBADF : 0;
}

/* Enter until the block ends; the block returns if that fails. */
#define ENTER(tls)                                                                                                     \
    int entered_ = enter(tls);                                                                                         \
    if (entered_)                                                                                                      \
        return entered_;                                                                                               \
    strand_tls *user_ TLS_AT_END(leave) = (tls)

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

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
        destroy(tls);
        ERR_clear_error();
        return NULL;
    }
    return tls;
}

static strand_tls *open_stream(strand_tls_context *context, int fd)
{
    if (!context)
        tls_refuse(-EINVAL, "no context", NULL);
    strand_tls *tls = make(context, fd);
    if (!tls)
        strand_throw_with(&STRAND_SYSTEM, STRAND_THROW_INFO(.code = -ENOMEM), "a stream of TLS: no memory");
    return tls;
}

/* A stream that is not made after all. */
STRAND_NORETURN static void refuse_stream(strand_tls *tls, const char *words, const char *subject)
{
    destroy(tls);
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
    ERR_clear_error();
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

int strand_tls_close(strand_tls *tls)
{
    if (!tls)
        return 0;
    tls_lock(tls);
    bool closed = tls->closed;
    tls->closed = true;
    tls->users++;
    strand_mutex_unlock(&tls->lock);
    int code = closed ? -EBADF : tls_close_descriptor(tls);
    leave(&tls);
    return code;
}

/* ---- the handshake ------------------------------------------------------------------------------------------------
 */

/* Under the lock. */
static void note_peer(strand_tls *tls)
{
    X509 *peer = SSL_get1_peer_certificate(tls->ssl);
    tls_subject(peer, tls->peer, sizeof tls->peer);
    X509_free(peer);
}

static int step_handshake(strand_tls *tls)
{
    tls_lock(tls);
    int result = tls->failed;
    if (!result && !tls->ready) {
        ERR_clear_error(); /* [TL1] */
        result = tls_outcome(tls, SSL_do_handshake(tls->ssl));
        tls->ready = result == 1;
        if (tls->ready)
            note_peer(tls);
    }
    strand_mutex_unlock(&tls->lock);
    return result < 0 ? result : 0;
}

/* By the reader: more bytes for OpenSSL, or the knowledge that there are none. Returns 0 or a negated errno code. */
static int feed(strand_tls *tls)
{
    int64_t got = tls->read_failed ? tls->read_failed : tls_fetch(tls);
    if (got > 0)
        return 0;
    tls_lock(tls);
    tls->ended |= got == 0;
    if (got < 0 && got != -ENOMEM)
        tls->read_failed = tls_note(tls, (int)got, tls_words((int)got));
    strand_mutex_unlock(&tls->lock);
    return (int)got;
}

/* Whether the handshake is over: true for good once it is. */
static bool is_ready(strand_tls *tls)
{
    tls_lock(tls);
    bool ready = tls->ready;
    strand_mutex_unlock(&tls->lock);
    return ready;
}

/* Give up the role of the reader, to a writer too. */
static void reader_done(strand_tls **reader)
{
    strand_tls *tls = *reader;
    strand_semaphore_release(&tls->reader);
    tls_lock(tls);
    strand_condition_broadcast(&tls->moved);
    strand_mutex_unlock(&tls->lock);
}

static int shake(strand_tls *tls)
{
    strand_semaphore_acquire(&tls->reader);
    strand_tls *reader TLS_AT_END(reader_done) = tls;
    if (is_ready(tls)) /* by the strand that was here before; a writer may be busy by now */
        return 0;
    STRAND_PERMIT(&tls->writer);
    for (;;) {
        int result = step_handshake(tls), sent = tls_send(tls);
        if (result != TLS_WANTS_BYTES)
            return result ? result : sent;
        if (sent)
            return sent;
        result = feed(tls);
        if (result)
            return result;
    }
}

int strand_tls_handshake(strand_tls *tls)
{
    ENTER(tls);
    int code = shake(tls);
    tls_send_left(tls);
    return code;
}

/* ---- reading -------------------------------------------------------------------------------------------------------
 */

/* All that is there, up to `size` bytes. Under the lock. */
static int64_t decrypt(strand_tls *tls, unsigned char *buffer, size_t size)
{
    size_t count = 0;
    int result = tls->failed;
    while (!result) {
        size_t part = size - count < INT32_MAX ? size - count : INT32_MAX;
        ERR_clear_error(); /* [TL1] */
        result = tls_outcome(tls, SSL_read(tls->ssl, buffer + count, (int)part));
        if (result <= 0)
            break;
        count += (size_t)result;
        if (count < size && (SSL_has_pending(tls->ssl) || tls_bytes_count(&tls->in)))
            result = 0;
    }
    return count ? (int64_t)count : result;
}

static int64_t read_some(strand_tls *tls, void *buffer, size_t size)
{
    strand_semaphore_acquire(&tls->reader);
    strand_tls *reader TLS_AT_END(reader_done) = tls;
    for (;;) {
        tls_lock(tls);
        int64_t got = decrypt(tls, buffer, size);
        strand_condition_broadcast(&tls->moved);
        bool unsent = tls->unsent;
        strand_mutex_unlock(&tls->lock);
        if (unsent && got <= 0)
            tls_send_left(tls);
        if (got != TLS_WANTS_BYTES)
            return got;
        int code = feed(tls);
        if (code)
            return code;
    }
}

int64_t strand_tls_read(strand_tls *tls, void *buffer, size_t size)
{
    if (size && !buffer)
        return -EINVAL;
    ENTER(tls);
    int code = is_ready(tls) ? 0 : shake(tls);
    return code || !size ? code : read_some(tls, buffer, size);
}

/* ---- writing -------------------------------------------------------------------------------------------------------
 */

/* What a writer does under the lock. */
typedef int64_t tls_step(strand_tls *tls, const void *bytes, size_t size);

static int64_t encrypt(strand_tls *tls, const void *from, size_t size)
{
    const unsigned char *bytes = from;
    size_t count = 0;
    int result = tls->failed ? tls->failed : SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN ? -EPIPE : 1;
    size = size < TLS_PART ? size : TLS_PART;
    while (result > 0 && count < size) {
        ERR_clear_error(); /* [TL1] */
        result = tls_outcome(tls, SSL_write(tls->ssl, bytes + count, (int)(size - count)));
        count += result > 0 ? (size_t)result : 0;
    }
    return count ? (int64_t)count : result;
}

static int feed_as_reader(strand_tls *tls)
{
    strand_tls *reader TLS_AT_END(reader_done) = tls;
    return feed(reader);
}

static void unlock(strand_tls **locked)
{
    strand_mutex_unlock(&(*locked)->lock);
}

/* Do what a writer has to do under the lock. If OpenSSL first needs the rest of a message of the peer, wait until a
 * reader has gone on, unless the role is free: *reads is set, and it is the caller's then [TL7]. */
static int64_t try_step(strand_tls *tls, tls_step *step, const void *bytes, size_t size, bool *reads)
{
    tls_lock(tls);
    strand_tls *locked TLS_AT_END(unlock) = tls;
    int64_t result = step(locked, bytes, size);
    *reads = result == TLS_WANTS_BYTES && strand_semaphore_try_acquire(&tls->reader) == 0;
    if (result == TLS_WANTS_BYTES && !*reads)
        strand_condition_wait(&tls->moved, &tls->lock);
    return result;
}

/* By the writer: what try_step does, until OpenSSL needs no more bytes for it. */
static int64_t write_step(strand_tls *tls, tls_step *step, const void *bytes, size_t size)
{
    for (;;) {
        bool reads;
        int64_t result = try_step(tls, step, bytes, size, &reads);
        if (result != TLS_WANTS_BYTES)
            return result;
        int code = reads ? feed_as_reader(tls) : 0;
        if (!code)
            code = tls_send(tls);
        if (code)
            return code;
    }
}

static int64_t write_some(strand_tls *tls, const void *bytes, size_t size)
{
    strand_semaphore_acquire(&tls->writer);
    strand_tls *writer TLS_AT_END(tls_writer_done) = tls;
    int code = tls_send(writer);
    if (code)
        return code;
    int64_t count = write_step(writer, encrypt, bytes, size);
    code = tls_send_some(writer); /* [TL5] the bytes are taken */
    return count > 0 && code < 0 ? code : count;
}

int64_t strand_tls_write(strand_tls *tls, const void *bytes, size_t size)
{
    if (size && !bytes)
        return -EINVAL;
    ENTER(tls);
    int64_t count = is_ready(tls) ? 0 : shake(tls);
    if (!count && size) {
        count = write_some(tls, bytes, size);
        tls_send_left(tls);
    }
    return count;
}

int64_t strand_tls_write_all(strand_tls *tls, const void *bytes, size_t size)
{
    size_t done = 0;
    do {
        int64_t count = strand_tls_write(tls, (const unsigned char *)bytes + done, size - done);
        if (count < 0)
            return count;
        done += (size_t)count;
    } while (done < size);
    return (int64_t)size;
}

/* ---- the end -------------------------------------------------------------------------------------------------------
 */

/* Under the lock. OpenSSL says no end in the middle of a message of the peer. */
static int64_t say_end(strand_tls *tls, const void *bytes, size_t size)
{
    (void)bytes, (void)size;
    if (tls->failed)
        return tls->failed;
    if (!tls->ready)
        return -ENOTCONN;
    if (SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN)
        return 0;
    ERR_clear_error(); /* [TL1] */
    int result = SSL_in_init(tls->ssl) ? SSL_do_handshake(tls->ssl) : 1;
    if (result == 1)
        result = SSL_shutdown(tls->ssl);
    return result >= 0 ? 0 : tls_outcome(tls, result);
}

static int end_writing(strand_tls *tls)
{
    strand_semaphore_acquire(&tls->writer);
    strand_tls *writer TLS_AT_END(tls_writer_done) = tls;
    int sent = tls_send(writer), code = (int)write_step(writer, say_end, NULL, 0);
    return code ? code : sent ? sent : tls_send(writer);
}

int strand_tls_shutdown(strand_tls *tls)
{
    ENTER(tls);
    int code = end_writing(tls);
    tls_send_left(tls);
    return code;
}

/* ---- what was agreed on --------------------------------------------------------------------------------------------
 */

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
                             .resumed = SSL_session_reused(tls->ssl)};
}

int strand_tls_info_get(strand_tls *tls, strand_tls_info *info)
{
    if (!tls || !info || info->size < sizeof info->size)
        return -EINVAL;
    strand_tls_info found = {.version = "", .cipher = "", .protocol = "", .server_name = "", .peer = ""};
    tls_lock(tls);
    if (tls->ready)
        found = read_info(tls);
    strand_mutex_unlock(&tls->lock);
    found.size = info->size;
    memcpy(info, &found, info->size < sizeof found ? info->size : sizeof found);
    return 0;
}
