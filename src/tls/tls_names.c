/*
 * Several hosts behind one server: the context for the name that a client asks for.
 */
#include "tls.h"

bool tls_names_fit(const char *name, const char *asked)
{
    if (strncmp(name, "*.", 2) != 0)
        return OPENSSL_strcasecmp(name, asked) == 0;
    const char *dot = strchr(asked, '.');
    return dot && dot != asked && OPENSSL_strcasecmp(name + 1, dot) == 0;
}

/* Take the certificate and the protocols of another context. OpenSSL would take its trust too: which clients the server
 * accepts stays the business of the stream's own context. */
static bool take_certificate(SSL *ssl, const strand_tls_context *own, const strand_tls_context *named)
{
    const STACK_OF(X509_NAME) *authorities = SSL_CTX_get_client_CA_list(own->ssl);
    STACK_OF(X509_NAME) *asked = authorities ? SSL_dup_CA_list(authorities) : sk_X509_NAME_new_null();
    if (!asked)
        return false;
    SSL_set_client_CA_list(ssl, asked);
    return SSL_set_SSL_CTX(ssl, named->ssl) && SSL_set1_verify_cert_store(ssl, SSL_CTX_get_cert_store(own->ssl)) &&
           SSL_set_session_id_context(ssl, own->session_context, sizeof own->session_context);
}

int tls_names_choose(SSL *ssl, int *alert, void *context)
{
    (void)alert;
    const char *asked = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    strand_tls *tls = SSL_get_app_data(ssl);
    strand_tls_context *found = asked && SSL_is_server(ssl) && !tls->named ? tls_context_named(context, asked) : NULL;
    if (!found)
        return SSL_TLSEXT_ERR_OK;
    if (!found->certified || !take_certificate(ssl, tls->context, found)) {
        strand_tls_context_close(found);
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    tls->named = found;
    return SSL_TLSEXT_ERR_OK;
}
