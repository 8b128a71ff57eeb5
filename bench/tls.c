/*
 * tls_handshake and tls_stream: a strand per connection. One thread.
 */
#include "tls.h"

#include <strand/io.h>
#include <strand/pool.h>
#include <strand/tls.h>

static strand_tls_context *context;
static unsigned char chunk[TLS_CHUNK];

static void *serve(void *arg)
{
    char byte = 0;
    strand_tls *tls = strand_tls_server(context, (int)(intptr_t)arg);
    int64_t got = strand_tls_read(tls, &byte, 1); /* 0 and less: the load has ended */
    if (byte == TLS_MUCH)
        while (strand_tls_write_all(tls, chunk, sizeof chunk) > 0) {
        }
    if (got == 1 && byte != TLS_ONE)
        _exit(0);
    if (got == 1 && strand_tls_write_all(tls, &byte, 1) == 1)
        while (strand_tls_read(tls, &byte, 1) > 0) {
        }
    strand_tls_close(tls);
    return NULL;
}

static strand_tls_context *open_context(void)
{
    EVP_PKEY *key = EVP_RSA_gen(2048);
    X509 *certificate = tls_make_certificate(key);
    BIO *memory = BIO_new(BIO_s_mem());
    char *text;
    PEM_write_bio_X509(memory, certificate);
    PEM_write_bio_PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL);
    BIO_write(memory, "", 1);
    BIO_get_mem_data(memory, &text);
    strand_tls_context *opened = strand_tls_context_open(STRAND_TLS_ATTR(.certificates = text));
    BIO_free(memory);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return opened;
}

static void *root(void *arg)
{
    tls_fill(chunk);
    context = open_context();
    int listener = strand_listen_tcp("127.0.0.1", 0);
    bench_check(listener >= 0, "listen: %s", strerror(-listener));
    tls_start_load("strand", *(long *)arg, strand_tcp_port(listener));
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    for (;;) {
        int fd = strand_accept(listener);
        bench_check(fd >= 0, "accept: %s", strerror(-fd));
        strand_spawn(scope, serve, (void *)(intptr_t)fd);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long stream = tls_is_stream(argc, argv);
    strand_run(STRAND_OPTIONS(.threads = 1), root, &stream);
    return 0;
}
