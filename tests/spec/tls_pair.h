/*
 * Two ends of a connection, and streams of TLS on them.
 */
#ifndef SPEC_TLS_PAIR_H
#define SPEC_TLS_PAIR_H

#include "tls_made.h"

#include "strand/exception.h"
#include "strand/io.h"

#include <errno.h>

static int pair[2]; /* the client's end, the server's */
static strand_tls_context *trusting, *serving;
static strand_tls *client, *served;

static inline void *dial_pair(void *port)
{
    pair[0] = strand_dial_tcp("127.0.0.1", (int)(intptr_t)port);
    return NULL;
}

/* Connect `pair`. */
static inline void open_pair(void)
{
    int listener = strand_listen_tcp("127.0.0.1", 0);
    CHECK(listener >= 0);
    STRAND_SCOPE(scope);
    strand dialling = strand_spawn(scope, dial_pair, TEST_PTR(strand_tcp_port(listener)));
    pair[1] = strand_accept(listener);
    strand_join(dialling);
    CHECK(pair[0] >= 0 && pair[1] >= 0);
    CHECK_EQ(strand_close(listener), 0);
}

/* Contexts with the usual certificates. */
static inline void open_contexts(const strand_tls_attr *of_client, const strand_tls_attr *of_server)
{
    make_usual();
    trusting = strand_tls_context_open(of_client ? of_client : STRAND_TLS_ATTR(.trust = authority.public_pem));
    serving = strand_tls_context_open(of_server ? of_server : STRAND_TLS_ATTR(.certificates = server.pem));
}

/* Attributes for which no context is made; the reason has these words. */
static inline void check_no_context(const strand_tls_attr *attr, const char *words)
{
    STRAND_TRY {
        strand_tls_context_open(attr);
        CHECK_FAIL("a context in spite of: %s", words);
    }
    STRAND_CATCH(&STRAND_TLS_ERROR, e) {
        CHECK_EQ(strand_exception_code(e), -EINVAL);
        CHECK_CONTAINS(strand_exception_text(e), words);
    }
    STRAND_END
}

/* Streams over a new pair, by the contexts; they are closed with it. */
static inline void open_streams(const char *host)
{
    open_pair();
    client = strand_tls_client(trusting, pair[0], host);
    served = strand_tls_server(serving, pair[1]);
}

static inline void close_streams(void)
{
    CHECK_EQ(strand_tls_close(client), 0);
    CHECK_EQ(strand_tls_close(served), 0);
}

static inline void close_contexts(void)
{
    strand_tls_context_close(trusting);
    strand_tls_context_close(serving);
}

/* Contexts and streams as usual. */
static inline void open_all(void)
{
    open_contexts(NULL, NULL);
    open_streams("example.org");
}

static inline void close_all(void)
{
    close_streams();
    close_contexts();
}

/* The handshake of a stream, as a strand. Returns its result. */
static inline void *shake_hands(void *tls)
{
    return TEST_PTR(strand_tls_handshake(tls));
}

/* Both handshakes; returns the client's result, and the server's by *of_server. */
static inline int shake_both(int *of_server)
{
    STRAND_SCOPE(scope);
    strand s = strand_spawn(scope, shake_hands, served);
    int result = strand_tls_handshake(client);
    if (result < 0)
        strand_shutdown(pair[0], 1); /* SHUT_WR */
    *of_server = (int)(intptr_t)strand_join(s);
    return result;
}

/* Both handshakes, which have to succeed. */
static inline void shake(void)
{
    int of_server;
    int of_client = shake_both(&of_server);
    if (of_client || of_server)
        CHECK_FAIL("handshakes: %d (%s), %d (%s)", of_client, strand_tls_failure(client), of_server,
                   strand_tls_failure(served));
}

#endif
