/*
 * What OpenSSL's results mean: negated errno codes, and a sentence about the reason.
 */
#include "tls.h"

#include <openssl/err.h>

#include <stdio.h>

const char *tls_words(int code)
{
    const char *words = strerrordesc_np(-code);
    return words ? words : "an unknown error";
}

/* The text of a failure, which lasts as long as the stream. There are few: most failures last. */
static const char *keep(strand_tls *tls, const char *words)
{
    for (struct tls_reason *known = tls->reasons; known; known = known->next)
        if (strcmp(known->text, words) == 0)
            return known->text;
    size_t size = strlen(words) + 1;
    struct tls_reason *reason = OPENSSL_malloc(sizeof *reason + size);
    if (!reason)
        return "there is no memory for the reason";
    reason->next = tls->reasons;
    memcpy(reason->text, words, size);
    tls->reasons = reason;
    return reason->text;
}

int tls_note(strand_tls *tls, int code, const char *words)
{
    CRYPTO_THREAD_write_lock(tls->context->lock);
    tls->why = keep(tls, words);
    CRYPTO_THREAD_unlock(tls->context->lock);
    return code;
}

void tls_reasons_free(strand_tls *tls)
{
    for (struct tls_reason *reason = tls->reasons, *next; reason; reason = next) {
        next = reason->next;
        OPENSSL_free(reason);
    }
}

static const char *reason_of(unsigned long error)
{
    const char *text = ERR_reason_error_string(error);
    return text ? text : "no reason is known";
}

/* Alerts by which the peer refuses a certificate, or the lack of one. */
static bool refuses_certificate(int reason)
{
    int alert = reason - SSL_AD_REASON_OFFSET;
    return (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN) || alert == SSL_AD_UNKNOWN_CA ||
           alert == SSL_AD_ACCESS_DENIED || alert == SSL_AD_CERTIFICATE_REQUIRED ||
           alert == SSL_AD_BAD_CERTIFICATE_STATUS_RESPONSE;
}

/* A failure for good, by the error queue. */
static int fail(strand_tls *tls)
{
    unsigned long error = ERR_peek_error();
    int reason = ERR_GET_REASON(error);
    if (tls->no_memory || reason == ERR_R_MALLOC_FAILURE)
        return tls_note(tls, -ENOMEM, "there is no memory");
    if (tls->refused[0])
        return tls_note(tls, -EKEYREJECTED, tls->refused);
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return tls_note(tls, -ECONNABORTED,
                        tls->ready ? "the connection ended without the end of TLS: bytes may be missing"
                                   : "the connection ended in the handshake");
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
        return tls_note(tls, -EKEYREJECTED, reason_of(error));
    bool alert = reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256;
    char words[TLS_WHY];
    snprintf(words, sizeof words, alert ? "the peer refuses the connection: %s" : "TLS: %s", reason_of(error));
    return tls_note(tls, alert && refuses_certificate(reason) ? -EACCES : -EPROTO, words);
}

int tls_outcome(strand_tls *tls, int result)
{
    int kind = SSL_get_error(tls->ssl, result);
    if (kind == SSL_ERROR_NONE)
        return result;
    if (kind == SSL_ERROR_ZERO_RETURN)
        return 0;
    if (kind == SSL_ERROR_WANT_READ)
        return TLS_WANTS_BYTES;
    tls->failed = fail(tls);
    ERR_clear_error();
    return tls->failed;
}

/* Empty the error queue. Returns what it says of the reason, or NULL: an error of the system if there is one, or else
 * the last error. */
static const char *take_reason(int *code)
{
    const char *reason = NULL;
    bool of_system = false;
    for (unsigned long error; (error = ERR_get_error());) {
        if (!ERR_SYSTEM_ERROR(error) && ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE)
            *code = -ENOMEM;
        if (ERR_SYSTEM_ERROR(error) && ERR_GET_REASON(error))
            reason = tls_words(-ERR_GET_REASON(error));
        else if (!of_system)
            reason = reason_of(error);
        of_system |= ERR_SYSTEM_ERROR(error);
    }
    return reason;
}

void tls_refuse(int code, const char *words, const char *subject)
{
    const char *reason = take_reason(&code);
    strand_throw_with(&STRAND_TLS_ERROR, STRAND_THROW_INFO(.code = code), "%s%s%s%s", words, subject ? subject : "",
                      reason ? ": " : "", reason ? reason : "");
}

const strand_kind STRAND_TLS_ERROR = STRAND_KIND("STRAND_TLS_ERROR", &STRAND_ERROR);

const char *strand_tls_failure(strand_tls *tls)
{
    if (!tls)
        return "";
    CRYPTO_THREAD_read_lock(tls->context->lock);
    const char *why = tls->why;
    CRYPTO_THREAD_unlock(tls->context->lock);
    return why ? why : "";
}

int64_t strand_tls_must(strand_tls *tls, int64_t result)
{
    if (result >= 0)
        return result;
    const char *why = strand_tls_failure(tls);
    strand_throw_with(&STRAND_TLS_ERROR, STRAND_THROW_INFO(.code = (int)result), "%s",
                      why[0] ? why : tls_words((int)result));
}
