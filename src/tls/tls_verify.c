/*
 * The check of the peer's certificates: which one was refused, and why.
 */
#include "tls.h"

#include <openssl/x509v3.h>

#include <stdio.h>

void tls_subject(X509 *certificate, char *text, size_t room)
{
    text[0] = 0;
    BIO *memory = certificate ? BIO_new(BIO_s_mem()) : NULL;
    if (!memory)
        return;
    X509_NAME_print_ex(memory, X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
    int got = BIO_read(memory, text, (int)room - 1);
    text[got > 0 ? got : 0] = 0;
    BIO_free(memory);
}

void tls_refuse_certificate(strand_tls *tls, int place, X509 *certificate, const char *why)
{
    char subject[160];
    tls_subject(certificate, subject, sizeof subject);
    if (!tls->refused[0])
        snprintf(tls->refused, sizeof tls->refused, "certificate %d (%s): %s", place, subject[0] ? subject : "none",
                 why);
}

int tls_verify(int accepted, X509_STORE_CTX *check)
{
    if (accepted)
        return accepted;
    SSL *ssl = X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx());
    tls_refuse_certificate(SSL_get_app_data(ssl), X509_STORE_CTX_get_error_depth(check),
                           X509_STORE_CTX_get_current_cert(check),
                           X509_verify_cert_error_string(X509_STORE_CTX_get_error(check)));
    return 0;
}
