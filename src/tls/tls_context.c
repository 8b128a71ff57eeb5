/*
 * Contexts: an SSL_CTX of OpenSSL with the rules of this library, and what its streams need beside it.
 */
#include "tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <stdio.h>

/* ---- PEM: a path or the text itself --------------------------------------------------------------------------- */

BIO *tls_pem_open(const char *pem)
{
    return strncmp(pem, "-----BEGIN", 10) == 0 ? BIO_new_mem_buf(pem, -1) : tls_file_read(pem);
}

const char *tls_pem_name(const char *pem)
{
    return strncmp(pem, "-----BEGIN", 10) == 0 ? "a text" : pem;
}

/* No passphrase is asked for: that would block at the terminal. */
int tls_no_passphrase(char *text, int room, int writing, void *arg)
{
    (void)text, (void)room, (void)writing, (void)arg;
    return -1;
}

/* Whether the queue says no more than that the file has no further entry. */
static bool at_end(void)
{
    unsigned long error = ERR_peek_error();
    bool end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
    if (end)
        ERR_clear_error();
    return end;
}

/* The own certificate, and those between it and the root. Returns whether all were read. */
static bool read_chain(strand_tls_context *context, BIO *file)
{
    SSL_CTX *ssl = context->ssl;
    X509 *own = PEM_read_bio_X509_AUX(file, NULL, tls_no_passphrase, NULL);
    bool good = own && SSL_CTX_use_certificate(ssl, own) == 1;
    X509_free(own);
    while (good) {
        X509 *next = PEM_read_bio_X509(file, NULL, tls_no_passphrase, NULL);
        if (!next)
            return at_end();
        good = SSL_CTX_add0_chain_cert(ssl, next) == 1;
        if (!good)
            X509_free(next);
    }
    return false;
}

/* As tls_no_passphrase, for a key. Notes that the key needs a passphrase. */
static int note_encrypted(char *text, int room, int writing, void *encrypted)
{
    *(bool *)encrypted = true;
    return tls_no_passphrase(text, room, writing, NULL);
}

static bool read_key(SSL_CTX *ssl, BIO *file, bool *encrypted)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(file, NULL, note_encrypted, encrypted);
    /* A key of another type than the certificate's would be taken as the key of a further certificate. */
    bool good = key && SSL_CTX_use_PrivateKey(ssl, key) == 1 && SSL_CTX_check_private_key(ssl) == 1;
    EVP_PKEY_free(key);
    return good;
}

static bool read_trust(strand_tls_context *context, BIO *file)
{
    SSL_CTX *ssl = context->ssl;
    X509_STORE *store = SSL_CTX_get_cert_store(ssl);
    int count = 0;
    for (X509 *root; (root = PEM_read_bio_X509_AUX(file, NULL, tls_no_passphrase, NULL)); count++) {
        bool good = X509_STORE_add_cert(store, root) == 1 && SSL_CTX_add_client_CA(ssl, root) == 1;
        X509_free(root);
        if (!good)
            return false;
    }
    return count > 0 && at_end();
}

/* Notes when the first of the lists runs out. Returns whether there was memory. */
static bool note_end(strand_tls_context *context, const X509_CRL *list)
{
    const ASN1_TIME *end = X509_CRL_get0_nextUpdate(list);
    if (!end || (context->lists_until && ASN1_TIME_compare(context->lists_until, end) <= 0))
        return true;
    ASN1_TIME_free(context->lists_until);
    context->lists_until = ASN1_STRING_dup(end);
    return context->lists_until != NULL;
}

static bool read_revoked(strand_tls_context *context, BIO *file)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);
    int count = 0;
    for (X509_CRL *list; (list = PEM_read_bio_X509_CRL(file, NULL, tls_no_passphrase, NULL)); count++) {
        bool good = X509_STORE_add_crl(store, list) == 1 && note_end(context, list);
        X509_CRL_free(list);
        if (!good)
            return false;
    }
    return count > 0 && at_end() && X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
}

/* Let a function read a file or a text. Throws if it cannot. */
static void load(strand_tls_context *context, const char *what, const char *pem,
                 bool (*read)(strand_tls_context *, BIO *))
{
    BIO *file = tls_pem_open(pem);
    bool good = file && read(context, file);
    BIO_free(file);
    if (!good)
        tls_refuse(-EINVAL, what, tls_pem_name(pem));
}

/* Load the private key of a context's certificate. Throws if it cannot. */
static void load_key(strand_tls_context *context, const char *pem)
{
    bool encrypted = false;
    BIO *file = tls_pem_open(pem);
    bool good = file && read_key(context->ssl, file, &encrypted);
    BIO_free(file);
    if (encrypted)
        ERR_clear_error(); /* that there is no passphrase says less */
    if (!good)
        tls_refuse(-EINVAL,
                   encrypted ? "the key is encrypted, and must not be (openssl pkey decrypts it): key of " : "key of ",
                   tls_pem_name(pem));
}

/* OpenSSL's callback for a secret. Every context has it: a stream with the certificate of another context, which its
 * client has asked for by name, writes to its own context's log. */
static void log_key(const SSL *ssl, const char *line)
{
    strand_tls *tls = SSL_get_app_data(ssl);
    strand_tls_context *context = tls->context;
    if (!context->key_log)
        return;
    CRYPTO_THREAD_write_lock(context->key_log_lock);
    BIO_printf(context->key_log, "%s\n", line);
    CRYPTO_THREAD_unlock(context->key_log_lock);
}

static void open_key_log(strand_tls_context *context, const char *path)
{
    context->key_log_lock = CRYPTO_THREAD_lock_new();
    if (!context->key_log_lock)
        tls_refuse(-ENOMEM, "no memory", NULL);
    context->key_log = tls_file_append(path);
    if (!context->key_log)
        tls_refuse(-EINVAL, "log of keys ", path);
}

/* ---- rules ----------------------------------------------------------------------------------------------------- */

/* "h2,http/1.1" as the handshake has it: each name behind its length. */
static void set_protocols(strand_tls_context *context, const char *names)
{
    size_t size = 0;
    for (const char *name = names; *name;) {
        size_t length = strcspn(name, ",");
        if (length == 0 || length > 255 || size + 1 + length > sizeof context->protocols)
            tls_refuse(-EINVAL, "an empty or too long name of a protocol: ", names);
        context->protocols[size] = (unsigned char)length;
        memcpy(context->protocols + size + 1, name, length);
        size += 1 + length;
        name += length + (name[length] == ',');
    }
    context->protocols_size = size;
    if (SSL_CTX_set_alpn_protos(context->ssl, context->protocols, (unsigned)size) != 0)
        tls_refuse(-ENOMEM, "no memory", NULL);
}

/* A server takes the first of its own protocols that the client has too, and refuses a client that has none of them. */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *size, const unsigned char *offered,
                           unsigned offered_size, void *arg)
{
    (void)ssl;
    strand_tls_context *context = arg;
    if (!context->protocols_size)
        return SSL_TLSEXT_ERR_NOACK;
    unsigned char *found;
    if (SSL_select_next_proto(&found, size, context->protocols, (unsigned)context->protocols_size, offered,
                              offered_size) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

static void set_rules(strand_tls_context *context, const strand_tls_attr *attr)
{
    SSL_CTX *ssl = context->ssl;
    SSL_CTX_set_min_proto_version(ssl, attr->only_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ssl,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_max_early_data(ssl, 0);
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, context);
    SSL_CTX_set_tlsext_servername_callback(ssl, tls_names_choose);
    SSL_CTX_set_tlsext_servername_arg(ssl, context);
    if (RAND_bytes(context->session_context, sizeof context->session_context) != 1)
        tls_refuse(-ENOMEM, "no random bytes", NULL);
    SSL_CTX_set_session_id_context(ssl, context->session_context, sizeof context->session_context);
    tls_sessions_open(context, !attr->no_resumption);
    tls_staple_open(context);
    SSL_CTX_set_keylog_callback(ssl, log_key);
    context->unverified = attr->unverified;
    context->clients = attr->clients;
    context->staple_required = attr->staple_required;
    if (attr->staple_required && attr->unverified)
        tls_refuse(-EINVAL, "staple_required for clients that accept every certificate (unverified)", NULL);
}

static void load_all(strand_tls_context *context, const strand_tls_attr *attr)
{
    if (attr->certificates)
        load(context, "certificates of ", attr->certificates, read_chain);
    if (attr->key && !attr->certificates)
        tls_refuse(-EINVAL, "a key without a certificate: ", tls_pem_name(attr->key));
    if (attr->certificates)
        load_key(context, attr->key ? attr->key : attr->certificates);
    if (attr->trust)
        load(context, "trusted certificates of ", attr->trust, read_trust);
    if (attr->staple && !attr->certificates)
        tls_refuse(-EINVAL, "an OCSP response without a certificate: ", tls_pem_name(attr->staple));
    if (attr->staple)
        tls_staple_load(context, attr->staple);
    context->trusting = attr->trust != NULL;
    if (attr->revoked)
        load(context, "revoked certificates of ", attr->revoked, read_revoked);
    if (attr->protocols)
        set_protocols(context, attr->protocols);
    if (attr->key_log)
        open_key_log(context, attr->key_log);
    context->certified = attr->certificates != NULL;
    ERR_clear_error(); /* what was tried on the way */
}

bool tls_context_trust(strand_tls_context *context)
{
    CRYPTO_THREAD_write_lock(context->lock);
    if (!context->trusting)
        context->trusting = SSL_CTX_set_default_verify_paths(context->ssl) == 1;
    bool trusting = context->trusting;
    CRYPTO_THREAD_unlock(context->lock);
    return trusting;
}

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

unsigned char *tls_spare_take(strand_tls_context *context)
{
    CRYPTO_THREAD_write_lock(context->lock);
    unsigned char *spare = context->spares ? context->spare[--context->spares] : NULL;
    CRYPTO_THREAD_unlock(context->lock);
    return spare ? spare : OPENSSL_malloc(TLS_ROOM);
}

void tls_spare_give(strand_tls_context *context, unsigned char *buffer)
{
    CRYPTO_THREAD_write_lock(context->lock);
    bool kept = context->spares < TLS_SPARES;
    if (kept)
        context->spare[context->spares++] = buffer;
    CRYPTO_THREAD_unlock(context->lock);
    if (!kept)
        OPENSSL_free(buffer);
}

/* ---- opening and closing --------------------------------------------------------------------------------------- */

static void drop(strand_tls_context **context)
{
    strand_tls_context_close(*context);
}

strand_tls_context *strand_tls_context_open(const strand_tls_attr *given)
{
    strand_tls_attr attr = {.size = sizeof attr};
    if (given && (given->size < sizeof given->size || given->size > 4096))
        tls_refuse(-EINVAL, "strand_tls_attr without its size (STRAND_TLS_ATTR)", NULL);
    if (given)
        memcpy(&attr, given, given->size < sizeof attr ? given->size : sizeof attr);
    ERR_clear_error();
    strand_tls_context *context __attribute__((cleanup(drop))) = OPENSSL_zalloc(sizeof *context);
    if (!context)
        tls_refuse(-ENOMEM, "no memory", NULL);
    context->references = 1;
    context->lock = CRYPTO_THREAD_lock_new();
    context->carrier = tls_carrier_open();
    context->ssl = SSL_CTX_new(TLS_method());
    if (!context->lock || !context->carrier || !context->ssl)
        tls_refuse(-ENOMEM, "no memory", NULL);
    set_rules(context, &attr);
    load_all(context, &attr);
    strand_tls_context *opened = context;
    context = NULL;
    return opened;
}

void tls_context_free(strand_tls_context *context)
{
    for (int i = 0; i < context->spares; i++)
        OPENSSL_free(context->spare[i]);
    tls_sessions_free(context->sessions);
    ASN1_TIME_free(context->lists_until);
    tls_staple_free(&context->staple);
    BIO_free(context->key_log);
    CRYPTO_THREAD_lock_free(context->key_log_lock);
    SSL_CTX_free(context->ssl);
    BIO_meth_free(context->carrier);
    CRYPTO_THREAD_lock_free(context->lock);
    OPENSSL_free(context);
}
