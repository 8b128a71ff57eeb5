/*
 * Streams of TLS in a select, and reads that do not wait.
 */
#define SUITE tls_select
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_pair.h"

#include "strand/sync.h"

#include <sys/socket.h>

static char byte;

static void say(strand_tls *tls, const char *words)
{
    CHECK_EQ(strand_tls_write_all(tls, words, strlen(words)), strlen(words));
}

/* Whether the case of a stream happens at once. */
static bool is_chosen(strand_tls *tls)
{
    strand_case readable = strand_on_tls(tls);
    int index = strand_select(&readable, 1, STRAND_SELECT_NOW);
    if (index == 0)
        CHECK_EQ(readable.result, 0);
    return index == 0;
}

/* Wait by a select until a read of a stream gives something. Returns what. */
static int64_t await(strand_tls *tls, void *buffer, size_t size)
{
    for (;;) {
        strand_case readable = strand_on_tls(tls);
        CHECK_EQ(strand_select(&readable, 1, 0), 0);
        CHECK_EQ(readable.result, 0);
        int64_t got = strand_tls_try_read(tls, buffer, size);
        if (got != -EAGAIN)
            return got;
    }
}

/* Read these words by selects, at most so many bytes at a time. */
static void hear_in_parts(strand_tls *tls, const char *words, size_t part)
{
    char buffer[100] = "";
    size_t size = strlen(words);
    for (size_t count = 0; count < size;) {
        int64_t got = await(tls, buffer + count, part < size - count ? part : size - count);
        if (got <= 0)
            CHECK_FAIL("%lld: %s", (long long)got, strand_tls_failure(tls));
        count += (size_t)got;
    }
    CHECK_STR(buffer, words);
}

/* ---- bytes in the stream ---------------------------------------------------------------------------------- */

TEST_INSIDE(bytes_that_only_the_stream_has_are_seen_by_a_select)
{
    open_all();
    shake();
    say(served, "hello");
    CHECK_EQ(strand_tls_read(client, &byte, 1), 1);
    strand_case readable = strand_on_ready(pair[0], STRAND_READABLE);
    CHECK_EQ(strand_select(&readable, 1, STRAND_SELECT_NOW), -EAGAIN); /* the descriptor has no more */
    CHECK_EQ(strand_tls_pending(client), 4);
    CHECK(is_chosen(client));
    strand_case cases[] = {strand_on_time(strand_in(3600 * STRAND_S)), strand_on_tls(client)};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    char rest[10];
    CHECK_EQ(strand_tls_try_read(client, rest, sizeof rest), 4);
    CHECK(memcmp(rest, "ello", 4) == 0);
    CHECK_EQ(strand_tls_pending(client), 0);
    CHECK(!is_chosen(client));
    CHECK_EQ(strand_tls_try_read(client, rest, sizeof rest), -EAGAIN);
    close_all();
}

/* The first read may take all records from the descriptor, and OpenSSL decrypts one after the other. */
TEST_INSIDE(records_that_the_stream_has_not_decrypted_yet_are_seen_by_a_select)
{
    open_all();
    shake();
    for (int i = 0; i < 5; i++)
        say(served, "abc");
    hear_in_parts(client, "abcabcabcabcabc", 1);
    CHECK_EQ(strand_tls_pending(client), 0);
    for (int i = 0; i < 5; i++)
        say(served, "abc");
    hear_in_parts(client, "abcabcabcabcabc", 100);
    close_all();
}

TEST_INSIDE(before_the_handshake_a_read_may_go_on_but_not_without_waiting)
{
    open_all();
    CHECK(is_chosen(client));
    CHECK_EQ(strand_tls_pending(client), 0);
    CHECK_EQ(strand_tls_try_read(client, &byte, 1), -ENOTCONN);
    CHECK_EQ(strand_tls_try_read(client, NULL, 1), -EINVAL);
    CHECK_EQ(strand_tls_try_read(NULL, &byte, 1), -EINVAL);
    CHECK_EQ(strand_tls_pending(NULL), 0);
    CHECK(is_chosen(NULL));
    shake();
    CHECK_EQ(strand_tls_try_read(client, NULL, 0), 0);
    close_all();
}

/* ---- the end and failures ---------------------------------------------------------------------------------- */

TEST_INSIDE(the_end_of_a_stream_is_seen_by_each_select)
{
    open_all();
    shake();
    say(served, "a");
    CHECK_EQ(strand_tls_shutdown(served), 0);
    hear_in_parts(client, "a", 1);
    CHECK_EQ(await(client, &byte, 1), 0);
    CHECK(is_chosen(client));
    CHECK_EQ(strand_tls_try_read(client, &byte, 1), 0);
    CHECK_EQ(strand_tls_pending(client), 0);
    close_all();
}

TEST_INSIDE(a_connection_that_was_cut_is_seen_by_each_select)
{
    open_all();
    shake();
    say(served, "ab");
    CHECK_EQ(strand_shutdown(pair[1], SHUT_WR), 0);
    hear_in_parts(client, "ab", 1);
    CHECK_EQ(await(client, &byte, 1), -ECONNABORTED);
    CHECK(is_chosen(client));
    CHECK_EQ(strand_tls_try_read(client, &byte, 1), -ECONNABORTED);
    CHECK_EQ(strand_tls_pending(client), 0);
    close_all();
}

TEST_INSIDE(bytes_that_are_no_tls_are_seen_by_each_select)
{
    open_all();
    shake();
    CHECK_EQ(strand_write_all(pair[1], "no record of TLS", 16), 16);
    CHECK_EQ(await(client, &byte, 1), -EPROTO);
    CHECK(is_chosen(client));
    CHECK_EQ(strand_tls_try_read(client, &byte, 1), -EPROTO);
    /* the reader's alert was sent, without another call */
    CHECK_EQ(await(served, &byte, 1), -EPROTO);
    CHECK_CONTAINS(strand_tls_failure(served), "the peer refuses the connection");
    close_all();
}

static void *await_closing(void *arg)
{
    (void)arg;
    strand_case cases[] = {strand_on_tls(client)};
    CHECK_EQ(strand_select(cases, 1, 0), 0);
    return TEST_PTR(cases[0].result);
}

TEST_INSIDE(closing_a_stream_ends_a_select_that_waits_for_it)
{
    open_all();
    shake();
    say(served, "a");
    CHECK_EQ(strand_tls_read(client, &byte, 1), 1);
    STRAND_SCOPE(scope);
    strand s = strand_spawn(scope, await_closing, NULL);
    test_await_blocked("waits for one of", 1);
    CHECK_EQ(strand_tls_close(client), 0);
    CHECK_EQ((intptr_t)strand_join(s), -EBADF);
    CHECK_EQ(strand_tls_close(served), 0);
    close_contexts();
}

/* ---- a record in parts ------------------------------------------------------------------------------------- */

static int far[2]; /* a wire's ends of the connections to the client and to the server */

static void *carry(void *from)
{
    char bytes[4096];
    int in = far[from != NULL], out = far[from == NULL];
    for (int64_t got; (got = strand_read(in, bytes, sizeof bytes)) > 0;)
        CHECK_EQ(strand_write_all(out, bytes, (size_t)got), got);
    return NULL;
}

/* Streams with a wire between them that carries nothing any more after the handshake. The byte that the client has then
 * received follows all other messages of the server. */
static void open_wired(void)
{
    open_contexts(NULL, NULL);
    open_pair();
    int first[2] = {pair[0], pair[1]};
    open_pair();
    client = strand_tls_client(trusting, first[0], "example.org");
    served = strand_tls_server(serving, pair[1]);
    far[0] = first[1];
    far[1] = pair[0];
    STRAND_SCOPE(wires);
    strand_spawn(wires, carry, NULL);
    strand_spawn(wires, carry, TEST_PTR(1));
    shake();
    say(served, "x");
    CHECK_EQ(strand_tls_read(client, &byte, 1), 1);
    strand_scope_cancel(wires, "over");
}

/* Take a record off the wire. Returns its size. */
static size_t take_record(unsigned char *record, size_t room)
{
    CHECK_EQ(strand_read_all(far[1], record, 5), 5);
    size_t size = (size_t)record[3] << 8 | record[4];
    CHECK(size + 5 <= room);
    CHECK_EQ(strand_read_all(far[1], record + 5, size), size);
    return size + 5;
}

TEST_INSIDE(a_record_that_arrives_in_parts_is_read_when_it_is_complete)
{
    static unsigned char record[1000];
    char buffer[10];
    open_wired();
    for (int time = 0; time < 2; time++) {
        say(served, "hello");
        size_t size = take_record(record, sizeof record);
        for (size_t i = 0; i < size - 1; i++) {
            CHECK(!is_chosen(client)); /* the stream has the part before, and the descriptor has nothing */
            CHECK_EQ(strand_write_all(far[0], record + i, 1), 1);
            strand_case readable = strand_on_tls(client);
            CHECK_EQ(strand_select(&readable, 1, 0), 0);
            CHECK_EQ(strand_tls_try_read(client, buffer, sizeof buffer), -EAGAIN);
            CHECK_EQ(strand_tls_pending(client), 0);
        }
        CHECK_EQ(strand_write_all(far[0], record + size - 1, 1), 1);
        CHECK_EQ(await(client, buffer, sizeof buffer), 5);
        CHECK(memcmp(buffer, "hello", 5) == 0);
    }
    close_all();
    CHECK_EQ(strand_close(far[0]), 0);
    CHECK_EQ(strand_close(far[1]), 0);
}

/* ---- several strands and streams ---------------------------------------------------------------------------- */

TEST_INSIDE(a_select_waits_for_several_streams)
{
    enum { COUNT = 3 };
    strand_tls *clients[COUNT], *others[COUNT];
    open_contexts(NULL, NULL);
    for (int i = 0; i < COUNT; i++) {
        open_streams("example.org");
        shake();
        say(served, "x"); /* behind the tickets */
        CHECK_EQ(strand_tls_read(client, &byte, 1), 1);
        clients[i] = client;
        others[i] = served;
    }
    for (int time = 0; time < 4 * COUNT; time++) {
        int wanted = time * 2 % COUNT;
        strand_case cases[COUNT];
        say(others[wanted], time % 2 ? "a" : "ab");
        if (time % 2 == 0)
            CHECK_EQ(await(clients[wanted], &byte, 1), 1); /* the stream alone has the second byte */
        for (int i = 0; i < COUNT; i++)
            cases[i] = strand_on_tls(clients[i]);
        CHECK_EQ(strand_select(cases, COUNT, 0), wanted);
        CHECK_EQ(await(clients[wanted], &byte, 1), 1);
        CHECK_EQ(byte, time % 2 ? 'a' : 'b');
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(strand_tls_close(clients[i]), 0);
        CHECK_EQ(strand_tls_close(others[i]), 0);
    }
    close_contexts();
}

static void *read_one(void *arg)
{
    (void)arg;
    char one = 0;
    CHECK_EQ(strand_tls_read(client, &one, 1), 1);
    return TEST_PTR(one);
}

TEST_INSIDE(a_read_without_waiting_takes_nothing_from_a_strand_that_reads)
{
    open_all();
    shake();
    say(served, "x");
    CHECK_EQ(strand_tls_read(client, &byte, 1), 1);
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, read_one, NULL);
    test_await_blocked("waits for descriptor", 1);
    CHECK_EQ(strand_tls_try_read(client, &byte, 1), -EAGAIN);
    say(served, "a");
    CHECK_EQ((intptr_t)strand_join(reader), 'a');
    CHECK_EQ(strand_tls_try_read(client, &byte, 1), -EAGAIN);
    close_all();
}

static void *try_cancelled(void *arg)
{
    CHECK_EQ(strand_tls_pending(client), 2);
    CHECK(is_chosen(client));
    CHECK_EQ(strand_tls_try_read(client, &byte, 1), 1);
    CHECK_EQ(byte, 'b');
    CHECK_EQ(strand_tls_try_read(client, &byte, 1), 1);
    CHECK_EQ(strand_tls_try_read(client, &byte, 1), -EAGAIN);
    return arg;
}

TEST_INSIDE(calls_that_do_not_wait_are_no_cancellation_points)
{
    open_all();
    shake();
    say(served, "abc");
    CHECK_EQ(strand_tls_read(client, &byte, 1), 1);
    test_run_cancelled(try_cancelled, NULL);
    CHECK_EQ(byte, 'c');
    close_all();
}

/* ---- what an interrupted write has left ---------------------------------------------------------------------- */

static int64_t taken;

static void *write_on(void *arg)
{
    static unsigned char bytes[10007];
    for (;;)
        taken += strand_tls_must(client, strand_tls_write(client, bytes, sizeof bytes));
    return arg;
}

TEST_INSIDE(a_case_sends_what_an_interrupted_write_has_left)
{
    static unsigned char buffer[5000];
    open_all();
    shake();
    taken = 0;
    {
        STRAND_SCOPE(scope);
        strand writer = strand_spawn(scope, write_on, NULL);
        test_await_blocked("waits for descriptor", 1);
        strand_cancel(writer, "because");
        CHECK(test_join_interrupted(writer));
    }
    for (int64_t count = 0; count < taken;) {
        int64_t got = strand_tls_try_read(served, buffer, sizeof buffer);
        CHECK(got > 0 || got == -EAGAIN);
        count += got > 0 ? got : 0;
        if (got == -EAGAIN) {
            (void)strand_on_tls(client);
            strand_sleep(STRAND_MS); /* the system carries bytes, too */
        }
    }
    close_all();
}
