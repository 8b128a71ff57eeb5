/*
 * Streams of TLS: the handshake, reading, writing and the end, between two strands.
 */
#define SUITE tls_stream
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_pair.h"

#include <sys/socket.h>

static void say(strand_tls *tls, const char *words)
{
    CHECK_EQ(strand_tls_write_all(tls, words, strlen(words)), strlen(words));
}

static void hear(strand_tls *tls, const char *words)
{
    char buffer[100] = "";
    size_t count = 0, size = strlen(words);
    while (count < size) {
        int64_t got = strand_tls_read(tls, buffer + count, size - count);
        if (got <= 0)
            CHECK_FAIL("%lld: %s", (long long)got, strand_tls_failure(tls));
        count += (size_t)got;
    }
    CHECK_STR(buffer, words);
}

static int64_t next(strand_tls *tls)
{
    char byte;
    return strand_tls_read(tls, &byte, 1);
}

/* ---- what usually happens ---------------------------------------------------------------------------- */

static void *greet(void *arg)
{
    hear(served, "hello");
    say(served, "good day");
    CHECK_EQ(strand_tls_shutdown(served), 0);
    CHECK_EQ(next(served), 0);
    return arg;
}

TEST_INSIDE(a_client_and_a_server_talk_and_end)
{
    open_all();
    STRAND_SCOPE(scope);
    strand s = strand_spawn(scope, greet, NULL);
    say(client, "hello");
    hear(client, "good day");
    CHECK_EQ(next(client), 0);
    CHECK_EQ(next(client), 0);
    CHECK_EQ(strand_tls_shutdown(client), 0);
    strand_join(s);
    close_all();
}

TEST_INSIDE(the_info_says_what_the_handshake_has_agreed_on)
{
    open_contexts(STRAND_TLS_ATTR(.trust = authority.public_pem, .protocols = "h2,http/1.1"), NULL);
    close_contexts();
    open_contexts(STRAND_TLS_ATTR(.trust = authority.public_pem, .protocols = "h2,http/1.1"),
                  STRAND_TLS_ATTR(.certificates = server.pem, .protocols = "spdy,http/1.1,h2"));
    open_streams("example.org");
    strand_tls_info info = {.size = sizeof info};
    CHECK_EQ(strand_tls_info_get(client, &info), 0);
    CHECK_STR(info.version, "");
    shake();
    CHECK_EQ(strand_tls_info_get(client, &info), 0);
    CHECK_STR(info.version, "TLSv1.3");
    CHECK_CONTAINS(info.cipher, "TLS_");
    CHECK_STR(info.protocol, "http/1.1"); /* the server's preference */
    CHECK_STR(info.peer, "CN = server");
    CHECK(!info.resumed);
    CHECK_EQ(strand_tls_info_get(served, &info), 0);
    CHECK_STR(info.server_name, "example.org");
    CHECK_STR(info.peer, "");
    CHECK_EQ(strand_tls_info_get(served, &(strand_tls_info){0}), -EINVAL);
    close_all();
}

TEST_INSIDE(without_a_protocol_in_common_the_handshake_fails)
{
    make_usual();
    open_contexts(STRAND_TLS_ATTR(.trust = authority.public_pem, .protocols = "h2"),
                  STRAND_TLS_ATTR(.certificates = server.pem, .protocols = "http/1.1"));
    open_streams("example.org");
    int of_server;
    CHECK_EQ(shake_both(&of_server), -EPROTO);
    CHECK_CONTAINS(strand_tls_failure(client), "no application protocol");
    CHECK_EQ(of_server, -EPROTO);
    CHECK_EQ(next(served), -EPROTO); /* it lasts */
    close_all();
}

TEST_INSIDE(a_descriptor_stays_the_callers_where_no_stream_is_made)
{
    open_all();
    close_streams();
    open_pair();
    STRAND_TRY {
        strand_tls_server(trusting, pair[1]);
        CHECK_FAIL("a server without a certificate");
    }
    STRAND_CATCH(&STRAND_TLS_ERROR, e) {
        CHECK_EQ(strand_exception_code(e), -EINVAL);
        CHECK_CONTAINS(strand_exception_text(e), "a server needs a certificate");
    }
    STRAND_END
    CHECK_EQ(strand_close(pair[0]), 0);
    CHECK_EQ(strand_close(pair[1]), 0);
    close_contexts();
}

/* ---- both directions at once -------------------------------------------------------------------------- */

enum { MUCH = 300 * 1000 };

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 7 + i / 251);
}

static void *write_much(void *tls)
{
    unsigned char *bytes = malloc(MUCH);
    for (size_t i = 0; i < MUCH; i++)
        bytes[i] = pattern(i);
    CHECK_EQ(strand_tls_write_all(tls, bytes, MUCH), MUCH);
    CHECK_EQ(strand_tls_shutdown(tls), 0);
    free(bytes);
    return NULL;
}

static void *read_much(void *tls)
{
    unsigned char buffer[3000];
    size_t count = 0;
    for (int64_t got; (got = strand_tls_read(tls, buffer, sizeof buffer)) != 0;) {
        CHECK(got > 0);
        for (int64_t i = 0; i < got; i++, count++)
            if (buffer[i] != pattern(count))
                CHECK_FAIL("byte %zu", count);
    }
    CHECK_EQ(count, MUCH);
    return NULL;
}

TEST_RACE(strands_read_and_write_one_stream_at_the_same_time)
{
    open_all();
    {
        STRAND_SCOPE(scope);
        strand_spawn(scope, write_much, client);
        strand_spawn(scope, write_much, served);
        strand_spawn(scope, read_much, client);
        strand_spawn(scope, read_much, served);
        strand_scope_join(scope);
    }
    close_all();
}

static _Atomic int heard;

static void *wait_for_words(void *tls)
{
    hear(tls, "at last");
    heard = 1;
    return NULL;
}

TEST_INSIDE(a_reader_that_waits_does_not_keep_the_writer_out)
{
    open_all();
    heard = 0;
    shake();
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, wait_for_words, client);
    test_await_blocked("waits for descriptor", 1);
    say(client, "first");
    hear(served, "first");
    CHECK(!heard);
    say(served, "at last");
    strand_join(reader);
    close_all();
}

/* ---- the end -------------------------------------------------------------------------------------------- */

TEST_INSIDE(a_connection_that_is_cut_is_not_an_end)
{
    open_all();
    shake();
    say(served, "some");
    CHECK_EQ(strand_tls_close(served), 0);
    hear(client, "some");
    CHECK_EQ(next(client), -ECONNABORTED);
    CHECK_CONTAINS(strand_tls_failure(client), "bytes may be missing");
    CHECK_EQ(next(client), -ECONNABORTED);
    CHECK_EQ(strand_tls_close(client), 0);
    close_contexts();
}

TEST_INSIDE(a_stream_that_has_ended_one_direction_reads_on)
{
    open_all();
    shake();
    CHECK_EQ(strand_tls_shutdown(client), 0);
    CHECK_EQ(strand_tls_shutdown(client), 0);
    CHECK_EQ(strand_tls_write(client, "more", 4), -EPIPE);
    CHECK_EQ(next(served), 0);
    say(served, "still here");
    hear(client, "still here");
    close_all();
}

TEST_INSIDE(there_is_no_end_before_the_handshake)
{
    open_all();
    CHECK_EQ(strand_tls_shutdown(client), -ENOTCONN);
    close_all();
}

static void *read_closed(void *tls)
{
    CHECK_EQ(next(tls), -EBADF);
    return NULL;
}

TEST_INSIDE(closing_a_stream_ends_the_calls_of_other_strands)
{
    open_all();
    shake();
    STRAND_SCOPE(scope);
    strand readers[] = {strand_spawn(scope, read_closed, client), strand_spawn(scope, read_closed, client)};
    test_await_blocked("waits for descriptor", 1);
    CHECK_EQ(strand_tls_close(client), 0);
    strand_join(readers[0]);
    strand_join(readers[1]);
    CHECK_EQ(next(served), -ECONNABORTED);
    CHECK_EQ(strand_tls_close(served), 0);
    close_contexts();
}

static void *send_garbage(void *arg)
{
    CHECK_EQ(strand_write_all(pair[0], "GET / HTTP/1.1\r\n\r\n", 18), 18);
    return arg;
}

TEST_INSIDE(bytes_that_are_no_tls_are_refused_in_words)
{
    open_contexts(NULL, NULL);
    open_pair();
    served = strand_tls_server(serving, pair[1]);
    send_garbage(NULL);
    CHECK_EQ(strand_tls_handshake(served), -EPROTO);
    CHECK_CONTAINS(strand_tls_failure(served), "http request");
    CHECK_EQ(strand_tls_close(served), 0);
    CHECK_EQ(strand_close(pair[0]), 0);
    close_contexts();
}

TEST_INSIDE(a_connection_that_ends_in_the_handshake_says_so)
{
    open_all();
    CHECK_EQ(strand_shutdown(pair[1], SHUT_WR), 0);
    CHECK_EQ(strand_tls_handshake(client), -ECONNABORTED);
    CHECK_CONTAINS(strand_tls_failure(client), "in the handshake");
    close_all();
}

static void *must(void *tls)
{
    strand_tls_must(tls, next(tls));
    return NULL;
}

TEST_INSIDE(a_result_becomes_an_exception_with_its_reason)
{
    open_all();
    CHECK_EQ(strand_tls_must(client, 5), 5);
    CHECK_EQ(strand_shutdown(pair[1], SHUT_WR), 0);
    strand_exception *e = strand_try(must, client, NULL);
    CHECK_KIND(e, &STRAND_TLS_ERROR);
    CHECK_EQ(strand_exception_code(e), -ECONNABORTED);
    CHECK_CONTAINS(strand_exception_text(e), "in the handshake");
    strand_exception_release(e);
    close_all();
}

TEST_INSIDE(the_reason_of_a_failure_stays_as_it_is)
{
    open_all();
    shake();
    CHECK_EQ(strand_shutdown(pair[0], SHUT_WR), 0);
    CHECK_EQ(strand_tls_write(client, "w", 1), -EPIPE);
    const char *first = strand_tls_failure(client);
    CHECK_STR(first, "Broken pipe");
    CHECK_EQ(strand_tls_close(served), 0);
    CHECK_EQ(next(client), -ECONNABORTED);
    CHECK_CONTAINS(strand_tls_failure(client), "bytes may be missing");
    CHECK_STR(first, "Broken pipe");
    CHECK_EQ(strand_tls_close(client), 0);
    close_contexts();
}

static void *write_in_vain(void *arg)
{
    CHECK_EQ(strand_tls_write(client, "w", 1), -EPIPE);
    return arg;
}

TEST_RACE(a_strand_looks_at_the_reason_while_another_one_fails)
{
    open_all();
    shake();
    CHECK_EQ(strand_shutdown(pair[0], SHUT_WR), 0);
    {
        STRAND_SCOPE(scope);
        strand writer = strand_spawn(scope, write_in_vain, NULL);
        while (!*strand_tls_failure(client))
            strand_yield();
        CHECK_STR(strand_tls_failure(client), "Broken pipe");
        strand_join(writer);
    }
    close_all();
}
