/*
 * Staples: responses of OCSP that a server sends with its certificate, so that its clients learn whether the authority
 * has revoked it.
 *
 * A server's context reads a response once, and sends it until it runs out. A client's stream asks for one, and checks
 * what it gets while OpenSSL still holds the handshake back. tls_ocsp.c looks at a response for both.
 *
 * PARTIES  Openers of contexts: they read responses. Strands in calls of OpenSSL for a handshake: they send or check.
 *
 * STATE    A context's staple never changes. `stapled` and `staple_until` of a stream are under the stream's lock.
 *
 * INVARIANTS
 *   [TO1] A stream whose server has to staple begins no session without a good staple, and keeps none that lasts
 *     longer than that staple. A resumed handshake has no staple, and ends with the session that it resumes.
 *   [TO2] A lack of memory never passes for a staple that is merely bad: that would let a revoked certificate pass.
 *
 * NOT DONE Refusing every staple that is bad: a server may have missed a new one, and an attacker would send none.
 *
 * TESTED BY tests/spec/tls_staple.c, tls_staple_served.c
 */
#include "tls.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdio.h>

/* ---- servers: reading a response ------------------------------------------------------------------------------- */

/* OpenSSL's clients take messages of 16 KiB, which begin with 8 bytes. */
enum { MAX_STAPLE = (16 << 10) - 8 };

/* Turn a text in PEM into DER. Returns false if it is not one of a response. */
static bool decode(struct tls_staple *staple)
{
    unsigned char *der;
    BIO *text = BIO_new_mem_buf(staple->bytes, (int)staple->size);
    bool good = text && PEM_bytes_read_bio(&der, &staple->size, NULL, PEM_STRING_OCSP_RESPONSE, text, tls_no_passphrase,
                                           NULL) == 1;
    BIO_free(text);
    if (!good)
        return false;
    OPENSSL_free(staple->bytes);
    staple->bytes = der;
    return true;
}

/* Returns whether the file could be read. The rest of a file that is too large is left out: no parser takes the part.
 */
static bool read_file(struct tls_staple *staple, const char *path)
{
    BIO *file = tls_pem_open(path);
    int got = file ? BIO_read(file, staple->bytes, MAX_STAPLE) : -1;
    BIO_free(file);
    staple->size = got > 0 ? got : 0;
    return got >= 0;
}

/* The certificate behind the own one that has issued it, or NULL. */
static X509 *find_issuer(SSL_CTX *ssl, X509 *own)
{
    STACK_OF(X509) *chain = NULL;
    SSL_CTX_get0_chain_certs(ssl, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++)
        if (X509_check_issued(sk_X509_value(chain, i), own) == X509_V_OK &&
            X509_verify(own, X509_get0_pubkey(sk_X509_value(chain, i))) == 1)
            return sk_X509_value(chain, i);
    return X509_check_issued(own, own) == X509_V_OK ? own : NULL;
}

/* Whether a response is good for the context's certificate; its signature is checked if the context has the issuer. */
static struct tls_finding examine_own(strand_tls_context *context)
{
    X509 *own = SSL_CTX_get0_certificate(context->ssl);
    struct tls_asked asked = {own, find_issuer(context->ssl, own), SSL_CTX_get_security_level(context->ssl)};
    ERR_clear_error(); /* of certificates that are not the issuer */
    struct tls_finding finding = tls_ocsp_examine(context->staple.bytes, context->staple.size, asked);
    if (finding.fault == TLS_GOOD && X509_cmp_current_time(finding.until) < 0)
        finding.fault = TLS_OVER;
    return finding;
}

void tls_staple_load(strand_tls_context *context, const char *path)
{
    struct tls_staple *staple = &context->staple;
    staple->bytes = OPENSSL_malloc(MAX_STAPLE);
    if (!staple->bytes)
        tls_refuse(-ENOMEM, "no memory", NULL);
    ERR_clear_error();
    bool good = read_file(staple, path);
    if (good && staple->size > 10 && memcmp(staple->bytes, "-----BEGIN", 10) == 0)
        good = decode(staple);
    if (!good)
        tls_refuse(-EINVAL, "OCSP response of ", tls_pem_name(path));
    struct tls_finding finding = examine_own(context);
    staple->until = finding.until;
    if (finding.fault == TLS_GOOD) {
        unsigned char *fitting = OPENSSL_realloc(staple->bytes, (size_t)staple->size);
        staple->bytes = fitting ? fitting : staple->bytes;
        return;
    }
    ERR_clear_error();
    char words[TLS_WHY];
    tls_ocsp_say(&finding, words, sizeof words);
    strand_throw_with(&STRAND_TLS_ERROR, STRAND_THROW_INFO(.code = finding.fault == TLS_NO_MEMORY ? -ENOMEM : -EINVAL),
                      "OCSP response of %s: it %s; %s", tls_pem_name(path), words, tls_ocsp_remedy(finding.fault));
}

void tls_staple_free(struct tls_staple *staple)
{
    OPENSSL_free(staple->bytes);
    ASN1_TIME_free(staple->until);
}

/* ---- servers: sending it ---------------------------------------------------------------------------------------- */

/* None rather than one that has run out. */
static int send_staple(SSL *ssl, const struct tls_staple *staple)
{
    if (!staple->bytes || X509_cmp_current_time(staple->until) < 0)
        return SSL_TLSEXT_ERR_NOACK;
    unsigned char *copy = OPENSSL_memdup(staple->bytes, (size_t)staple->size);
    if (!copy)
        return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, staple->size);
    return SSL_TLSEXT_ERR_OK;
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

/* Whether a certificate says that its servers staple (TLS Feature, RFC 7633). One that cannot be read says so, too. */
static bool says_must_staple(X509 *certificate)
{
    int critical;
    TLS_FEATURE *features = X509_get_ext_d2i(certificate, NID_tlsfeature, &critical, NULL);
    bool says = !features && critical != -1;
    for (int i = 0; i < sk_ASN1_INTEGER_num(features); i++)
        says |= ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, i)) == TLSEXT_TYPE_status_request;
    TLS_FEATURE_free(features);
    return says;
}

enum { ACCEPTED = 1, REFUSED = 0, FAILED = -1 };

static int refuse(strand_tls *tls, X509 *certificate, const struct tls_finding *finding)
{
    char found[160], words[200];
    tls_ocsp_say(finding, found, sizeof found);
    snprintf(words, sizeof words, "the stapled OCSP response %s", found);
    tls_refuse_certificate(tls, 0, certificate, words);
    return REFUSED;
}

static int refuse_none(strand_tls *tls, X509 *certificate, bool by_certificate)
{
    tls_refuse_certificate(tls, 0, certificate,
                           by_certificate ? "no OCSP response is stapled, which the certificate requires"
                                          : "no OCSP response is stapled, which this client requires");
    return REFUSED;
}

/* A staple for a chain that was accepted: so its second certificate has issued the first one. */
static struct tls_finding examine_peer(strand_tls *tls, STACK_OF(X509) * chain, const unsigned char *bytes, long size)
{
    X509 *certificate = sk_X509_value(chain, 0);
    struct tls_asked asked = {certificate, sk_X509_num(chain) > 1 ? sk_X509_value(chain, 1) : certificate,
                              SSL_get_security_level(tls->ssl)};
    return tls_ocsp_examine(bytes, size, asked);
}

static int check_staple(strand_tls *tls)
{
    STACK_OF(X509) *chain = SSL_get0_verified_chain(tls->ssl);
    if (SSL_session_reused(tls->ssl)) /* [TO1] */
        return ACCEPTED;
    if (!chain)
        return FAILED;
    X509 *certificate = sk_X509_value(chain, 0);
    bool by_certificate = says_must_staple(certificate);
    bool required = by_certificate || tls->context->staple_required;
    unsigned char *bytes = NULL;
    long size = SSL_get_tlsext_status_ocsp_resp(tls->ssl, &bytes);
    if (!bytes || size <= 0)
        return required ? refuse_none(tls, certificate, by_certificate) : ACCEPTED;
    struct tls_finding finding = examine_peer(tls, chain, bytes, size);
    tls->stapled = finding.fault == TLS_GOOD;
    ASN1_TIME_free(tls->staple_until);
    tls->staple_until = required ? finding.until : NULL;
    if (!required)
        ASN1_TIME_free(finding.until);
    tls->no_memory |= finding.fault == TLS_NO_MEMORY;
    if (tls->no_memory) /* [TO2] */
        return FAILED;
    if (finding.fault == TLS_REVOKED)
        tls_sessions_forget(tls);
    bool refused = finding.fault == TLS_REVOKED || (required && finding.fault != TLS_GOOD);
    return refused ? refuse(tls, certificate, &finding) : ACCEPTED;
}

/* OpenSSL is in the middle of a handshake that has not failed so far. It needs neither the errors that its queue has
 * before, nor those of what is tried here. */
static int check_alone(strand_tls *tls)
{
    ERR_clear_error();
    int result = check_staple(tls);
    ERR_clear_error();
    return result;
}

/* ---- both ------------------------------------------------------------------------------------------------------- */

/* OpenSSL's callback. A server calls it when a client has asked for a staple; a client that has asked calls it when the
 * server has sent all that it sends before the client answers. The context is that of the certificate. */
static int on_status(SSL *ssl, void *arg)
{
    const strand_tls_context *context = arg;
    return SSL_is_server(ssl) ? send_staple(ssl, &context->staple) : check_alone(SSL_get_app_data(ssl));
}

void tls_staple_open(strand_tls_context *context)
{
    SSL_CTX_set_tlsext_status_cb(context->ssl, on_status);
    SSL_CTX_set_tlsext_status_arg(context->ssl, context);
}

bool tls_staple_ask(strand_tls *tls)
{
    return SSL_set_tlsext_status_type(tls->ssl, TLSEXT_STATUSTYPE_ocsp) == 1;
}
