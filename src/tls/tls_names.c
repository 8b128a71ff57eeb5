/*
 * Several hosts behind one server: the context for the name that a client asks for.
 */
#include "tls.h"

struct tls_name {
    struct tls_name *next;
    strand_tls_context *context;
    char name[];
};

static bool fits(const char *name, const char *asked)
{
    if (strncmp(name, "*.", 2) != 0)
        return OPENSSL_strcasecmp(name, asked) == 0;
    const char *dot = strchr(asked, '.');
    return dot && dot != asked && OPENSSL_strcasecmp(name + 1, dot) == 0;
}

/* A reference to the context of this name, or NULL. */
static strand_tls_context *find(strand_tls_context *context, const char *asked)
{
    CRYPTO_THREAD_read_lock(context->lock);
    struct tls_name *entry = context->names;
    while (entry && !fits(entry->name, asked))
        entry = entry->next;
    strand_tls_context *found = entry ? tls_context_current(entry->context) : NULL;
    CRYPTO_THREAD_unlock(context->lock);
    return found;
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
    strand_tls_context *found = asked && SSL_is_server(ssl) && !tls->named ? find(context, asked) : NULL;
    if (!found)
        return SSL_TLSEXT_ERR_OK;
    if (!found->certified || !take_certificate(ssl, tls->context, found)) {
        strand_tls_context_close(found);
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    tls->named = found;
    return SSL_TLSEXT_ERR_OK;
}

void tls_names_free(struct tls_name *names)
{
    while (names) {
        struct tls_name *next = names->next;
        strand_tls_context_close(names->context);
        OPENSSL_free(names);
        names = next;
    }
}

int strand_tls_context_name(strand_tls_context *context, const char *name, strand_tls_context *other)
{
    if (!context || !name || !*name || !other || other == context)
        return -EINVAL;
    size_t size = strlen(name) + 1;
    struct tls_name *entry = OPENSSL_malloc(sizeof *entry + size);
    if (!entry)
        return -ENOMEM;
    int count;
    CRYPTO_atomic_add(&other->references, 1, &count, other->lock);
    *entry = (struct tls_name){.context = other};
    memcpy(entry->name, name, size);
    CRYPTO_THREAD_write_lock(context->lock);
    struct tls_name **end = &context->names;
    while (*end)
        end = &(*end)->next;
    *end = entry;
    CRYPTO_THREAD_unlock(context->lock);
    return 0;
}
