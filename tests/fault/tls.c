/*
 * TLS: contexts from files, handshakes, bytes there and back, a select, sessions, new certificates, the end.
 */
#define _GNU_SOURCE
#include "fault.h"

/* The tests' certificates, without their harness. */
#define TEST_H
#define CHECK(condition) FAULT_CHECK(condition)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../spec/tls_made.h"

#include "strand/exception.h"
#include "strand/io.h"
#include "strand/tls.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <sys/mman.h>
#include <unistd.h>

static char own_path[64], trust_path[64];

/* A file without a name, which further points open. */
static void make_file(char path[64], const char *text)
{
    int fd = memfd_create("certificate", 0);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    snprintf(path, 64, "/proc/self/fd/%d", fd);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* The code of an error that a text tells of: a context's is -EINVAL for each failure with a file. */
static int code_in(const char *text, int code)
{
    static const int codes[] = {EMFILE, ENOENT, EACCES, ENOMEM};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strstr(text, strerrordesc_np(codes[i])))
            return -codes[i];
    return code;
}

/* Returns NULL for a directory. */
static strand_tls_context *open_context(const strand_tls_attr *attr)
{
    STRAND_TRY {
        return strand_tls_context_open(attr);
    }
    STRAND_CATCH(&STRAND_TLS_ERROR, e) {
        const char *text = strand_exception_text(e);
        if (strstr(text, strerrordesc_np(EISDIR)))
            return NULL;
        strand_throw_with(&STRAND_SYSTEM, STRAND_THROW_INFO(.code = code_in(text, strand_exception_code(e))), "%s",
                          text);
    }
    STRAND_END
    return NULL;
}

static void close_context(strand_tls_context **context)
{
    strand_tls_context_close(*context);
}
#define CONTEXT __attribute__((cleanup(close_context))) strand_tls_context

static void close_stream(strand_tls **tls)
{
    (void)strand_tls_close(*tls);
}
#define STREAM __attribute__((cleanup(close_stream))) strand_tls

/* A stream that owns the descriptor. */
static strand_tls *made(strand_tls *tls, int *fd)
{
    *fd = -1;
    return tls;
}

/* ---- both ends --------------------------------------------------------------------------------------------------- */

enum { LARGE = 20000 };

struct ends {
    strand_tls_context *trusting, *serving;
    int listener;
};

/* Sends back the first byte, and then more than one record. */
static void *serve(void *arg)
{
    static const char large[LARGE];
    const struct ends *ends = arg;
    char byte;
    FAULT_FD int fd = (int)strand_must(strand_accept(ends->listener));
    STREAM *tls = made(strand_tls_server(ends->serving, fd), &fd);
    FAULT_CHECK(strand_tls_must(tls, strand_tls_read(tls, &byte, 1)) == 1);
    strand_tls_must(tls, strand_tls_write_all(tls, &byte, 1));
    strand_tls_must(tls, strand_tls_write_all(tls, large, LARGE));
    strand_tls_must(tls, strand_tls_shutdown(tls));
    FAULT_CHECK(strand_tls_must(tls, strand_tls_read(tls, &byte, 1)) == 0);
    return arg;
}

/* Waits in a select, and reads. */
static int64_t await(strand_tls *tls, char *bytes, size_t room)
{
    int64_t got;
    do {
        strand_case next = strand_on_tls(tls);
        FAULT_CHECK(strand_select(&next, 1, 0) == 0);
        strand_must(next.result);
        got = strand_tls_try_read(tls, bytes, room);
    } while (got == -EAGAIN);
    return strand_tls_must(tls, got);
}

static void visit(const struct ends *ends)
{
    char bytes[4096];
    strand_tls_info info = {.size = sizeof info};
    FAULT_FD int fd = (int)strand_must(strand_dial_tcp("127.0.0.1", (int)strand_must(strand_tcp_port(ends->listener))));
    STREAM *tls = made(strand_tls_client(ends->trusting, fd, "example.org"), &fd);
    strand_tls_must(tls, strand_tls_handshake(tls));
    strand_tls_must(tls, strand_tls_write_all(tls, "q", 1));
    strand_must(strand_tls_info_get(tls, &info));
    FAULT_CHECK(info.peer_certificate_size > 0);
    FAULT_CHECK(strand_tls_must(tls, strand_tls_read(tls, bytes, 1)) == 1 && bytes[0] == 'q');
    size_t all = 0;
    for (int64_t got; (got = await(tls, bytes, sizeof bytes)) > 0;)
        all += (size_t)got;
    FAULT_CHECK(all == LARGE);
    strand_tls_must(tls, strand_tls_shutdown(tls));
}

static void meet(struct ends *ends)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, serve, ends);
    visit(ends);
    strand_scope_join(scope);
}

static void *root(void *arg)
{
    (void)arg;
    FAULT_CHECK(!open_context(STRAND_TLS_ATTR(.trust = "/")));
    CONTEXT *trusting = open_context(STRAND_TLS_ATTR(.trust = trust_path, .key_log = "/dev/null"));
    CONTEXT *serving = open_context(STRAND_TLS_ATTR(.certificates = own_path, .protocols = "h2,http/1.1"));
    CONTEXT *renewed = open_context(STRAND_TLS_ATTR(.certificates = own_path));
    CONTEXT *other = open_context(STRAND_TLS_ATTR(.certificates = own_path));
    FAULT_FD int listener = (int)strand_must(strand_listen_tcp("127.0.0.1", 0));
    struct ends ends = {.trusting = trusting, .serving = serving, .listener = listener};
    meet(&ends);
    meet(&ends); /* by the session of the first one */
    strand_must(strand_tls_context_replace(serving, renewed));
    strand_must(strand_tls_context_name(renewed, "example.org", other));
    meet(&ends);
    return FAULT_DONE;
}

/* ---- before it --------------------------------------------------------------------------------------------------- */

static SSL *make_end(SSL_CTX *context, BIO *in, BIO *out)
{
    SSL *ssl = SSL_new(context);
    CHECK(ssl && BIO_up_ref(in) && BIO_up_ref(out));
    SSL_set_bio(ssl, in, out);
    return ssl;
}

/* What OpenSSL makes once for a process, and keeps, it makes here: its own beginning is not the subject. */
static void warm_up(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    BIO *there = BIO_new(BIO_s_mem()), *back = BIO_new(BIO_s_mem());
    CHECK(context && there && back && SSL_CTX_use_certificate(context, server.certificate) == 1 &&
          SSL_CTX_use_PrivateKey(context, server.key) == 1);
    SSL *one = make_end(context, back, there), *other = make_end(context, there, back);
    SSL_set_connect_state(one);
    SSL_set_accept_state(other);
    for (int i = 0; i < 4; i++) {
        SSL_do_handshake(one);
        SSL_do_handshake(other);
    }
    CHECK(SSL_is_init_finished(one) && SSL_is_init_finished(other));
    SSL_free(one);
    SSL_free(other);
    BIO_free(there);
    BIO_free(back);
    SSL_CTX_free(context);
    ERR_clear_error();
}

static void prepare(void)
{
    if (own_path[0])
        return;
    make_usual();
    make_file(own_path, server.pem);
    make_file(trust_path, authority.public_pem);
    warm_up();
}

/* A seed ends at bytes without memory. */
FAULT_WORKLOAD(tls, RUN_ALONE | RUN_PAIR, root, .prepare = prepare, .settle = OPENSSL_thread_stop, .of = "tls")
