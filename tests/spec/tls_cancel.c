/*
 * Interruption of streams of TLS: at every point of a handshake, and where a write has no room.
 */
#define SUITE tls_cancel
#define ONE_SEED_IN 10 /* the arithmetic of handshakes takes the time */
#include "tls_pair.h"

#include "strand/sync.h"

#include <sys/socket.h>
#include <unistd.h>

/* ---- a wire that stops after a number of bytes ----------------------------------------------------------- */

static int far[2];           /* the wire's ends of the connections to the client and to the server */
enum { FIRST_FLIGHT = 300 }; /* fewer bytes than a client's first message and its answer: no end can be done */
static int64_t allowance;    /* how many bytes it carries, of both directions together */
static strand_event spent;

static void *carry(void *from)
{
    int in = far[from != NULL], out = far[from == NULL];
    for (char byte; strand_read(in, &byte, 1) == 1;) {
        if (--allowance < 0) {
            strand_event_set(&spent);
            strand_sleep(FOREVER);
        }
        if (strand_write_all(out, &byte, 1) != 1)
            break;
    }
    return NULL;
}

static void open_wire(void)
{
    open_pair();
    int first[2] = {pair[0], pair[1]};
    open_pair();
    client = strand_tls_client(trusting, first[0], "example.org");
    served = strand_tls_server(serving, pair[1]);
    far[0] = first[1];
    far[1] = pair[0];
    spent = (strand_event)STRAND_EVENT_INIT;
}

/* The handshakes over a wire that carries so many bytes, and then cancels both. Returns whether it was too short. */
static bool shake_over(int64_t bytes)
{
    open_wire();
    allowance = bytes;
    bool cut = false;
    {
        STRAND_SCOPE(wires);
        strand_spawn(wires, carry, NULL);
        strand_spawn(wires, carry, TEST_PTR(1));
        STRAND_SCOPE(scope);
        strand ends[] = {strand_spawn(scope, shake_hands, client), strand_spawn(scope, shake_hands, served)};
        strand_case cases[] = {strand_on_event(&spent), strand_on_end(ends[1])};
        cut = strand_select(cases, 2, STRAND_SELECT_ORDERED) == 0;
        for (int i = 0; i < 2; i++) {
            if (cut)
                strand_cancel(ends[i], "because");
            if (cut ? !test_join_interrupted(ends[i]) && bytes < FIRST_FLIGHT : strand_join(ends[i]) != NULL)
                CHECK_FAIL("end %d after %lld bytes", i, (long long)bytes);
        }
        strand_scope_cancel(wires, "over");
    }
    close_streams();
    CHECK_EQ(strand_close(far[0]), 0);
    CHECK_EQ(strand_close(far[1]), 0);
    return cut;
}

TEST_INSIDE(a_handshake_is_interrupted_at_every_point_and_leaves_nothing)
{
    open_contexts(NULL, NULL);
    CHECK(!shake_over(1000000)); /* what the first run opens for good */
    int descriptors = test_count_entries("/proc/self/fd");
    int64_t bytes = 0, step = test_seed() ? 211 : 37;
    while (shake_over(bytes))
        bytes += step;
    CHECK(bytes > 500);
    CHECK_EQ(test_count_entries("/proc/self/fd"), descriptors);
    close_contexts();
}

static void *shake_in_time(void *arg)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_tls_handshake(client);
    return arg;
}

TEST_INSIDE(a_handshake_that_was_interrupted_goes_on)
{
    open_all();
    CHECK_THROWS(shake_in_time, NULL, &STRAND_TIMED_OUT); /* the server does not answer */
    CHECK_THROWS(shake_in_time, NULL, &STRAND_TIMED_OUT);
    shake();
    close_all();
}

/* ---- writes ------------------------------------------------------------------------------------------------ */

static int64_t taken;

/* Writes bytes that count up until it is interrupted. */
static void *write_on(void *arg)
{
    static unsigned char bytes[10007];
    for (;;) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)((taken + (int64_t)i) % 251);
        taken += strand_tls_must(client, strand_tls_write(client, bytes, sizeof bytes));
    }
    return arg;
}

static void *end_client(void *arg)
{
    CHECK_EQ(strand_tls_shutdown(client), 0);
    return arg;
}

static int64_t read_to_the_end(void)
{
    static unsigned char buffer[5000];
    int64_t count = 0;
    for (int64_t got; (got = strand_tls_must(served, strand_tls_read(served, buffer, sizeof buffer))) > 0;)
        for (int64_t i = 0; i < got; i++, count++)
            if (buffer[i] != count % 251)
                CHECK_FAIL("byte %lld", (long long)count);
    return count;
}

TEST_INSIDE(an_interrupted_write_has_written_what_it_says)
{
    open_all();
    shake();
    taken = 0;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++) {
        strand writer = strand_spawn(scope, write_on, NULL);
        test_await_blocked("waits for descriptor", 1);
        strand_cancel(writer, "because");
        CHECK(test_join_interrupted(writer));
    }
    CHECK(taken > 0);
    strand ending = strand_spawn(scope, end_client, NULL);
    CHECK_EQ(read_to_the_end(), taken);
    strand_join(ending);
    close_all();
}

/* ---- reads ------------------------------------------------------------------------------------------------- */

static void *interrupt_a_write(void *arg)
{
    STRAND_SCOPE(scope);
    strand writer = strand_spawn(scope, write_on, NULL);
    test_await_blocked("waits for descriptor", 1);
    strand_cancel(writer, "because");
    CHECK(test_join_interrupted(writer));
    return arg;
}

/* Reads all that the client has written, and answers. */
static void *answer(void *arg)
{
    static unsigned char buffer[5000];
    for (int64_t count = 0; count < taken;)
        count += strand_tls_must(served, strand_tls_read(served, buffer, sizeof buffer));
    CHECK_EQ(strand_tls_write_all(served, "a", 1), 1);
    return arg;
}

TEST_INSIDE(a_read_sends_what_an_interrupted_write_has_left)
{
    char byte;
    open_all();
    shake();
    taken = 0;
    interrupt_a_write(NULL);
    STRAND_SCOPE(scope);
    strand answering = strand_spawn(scope, answer, NULL);
    CHECK_EQ(strand_tls_read(client, &byte, 1), 1);
    strand_join(answering);
    close_all();
}

/* Writes to a stream until it is interrupted. Counts what it has written in `stuffed`. */
static int64_t stuffed[2];

static void *stuff(void *i)
{
    static unsigned char bytes[10007];
    strand_tls *tls = i ? served : client;
    for (;;)
        stuffed[i != NULL] += strand_tls_must(tls, strand_tls_write(tls, bytes, sizeof bytes));
    return NULL;
}

/* Reads all that the other end has written, and then ends the own direction. */
static void *take_all(void *i)
{
    static unsigned char buffers[2][5000];
    strand_tls *tls = i ? served : client;
    for (int64_t count = 0; count < stuffed[i == NULL];)
        count += strand_tls_must(tls, strand_tls_read(tls, buffers[i != NULL], sizeof buffers[0]));
    CHECK_EQ(strand_tls_shutdown(tls), 0);
    return NULL;
}

/* Fill both directions of the connection, so that both ends have bytes that were not sent. */
static void stuff_both(void)
{
    stuffed[0] = stuffed[1] = 0;
    STRAND_SCOPE(scope);
    strand writers[] = {strand_spawn(scope, stuff, NULL), strand_spawn(scope, stuff, TEST_PTR(1))};
    test_await_blocked("waits for descriptor", 2);
    for (int i = 0; i < 2; i++) {
        strand_cancel(writers[i], "because");
        CHECK(test_join_interrupted(writers[i]));
    }
}

TEST_INSIDE(two_ends_that_have_more_to_send_than_there_is_room_both_read)
{
    open_all();
    shake();
    stuff_both();
    STRAND_SCOPE(scope);
    strand readers[] = {strand_spawn(scope, take_all, NULL), strand_spawn(scope, take_all, TEST_PTR(1))};
    strand_join(readers[0]);
    strand_join(readers[1]);
    close_all();
}

static void *end_both(void *arg)
{
    CHECK_EQ(strand_tls_shutdown(arg ? served : client), 0);
    return arg;
}

/* A writer gets its turn from the reader that sends for it. */
TEST_INSIDE(a_writer_goes_on_where_a_reader_has_sent_for_it)
{
    open_all();
    shake();
    stuff_both();
    STRAND_SCOPE(scope);
    strand readers[] = {strand_spawn(scope, take_all, NULL), strand_spawn(scope, take_all, TEST_PTR(1))};
    strand_yield();
    strand enders[] = {strand_spawn(scope, end_both, NULL), strand_spawn(scope, end_both, TEST_PTR(1))};
    for (int i = 0; i < 2; i++) {
        strand_join(readers[i]);
        strand_join(enders[i]);
    }
    char byte;
    CHECK_EQ(strand_tls_read(client, &byte, 1), 0);
    CHECK_EQ(strand_tls_read(served, &byte, 1), 0);
    close_all();
}

static void *close_client(void *arg)
{
    CHECK_EQ(strand_tls_close(client), 0);
    return arg;
}

static void *read_until_closed(void *arg)
{
    char byte;
    CHECK_EQ(strand_tls_read(client, &byte, 1), -EBADF);
    return arg;
}

TEST_INSIDE(a_reader_that_waits_for_room_is_ended_by_close)
{
    open_all();
    shake();
    taken = 0;
    interrupt_a_write(NULL);
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, read_until_closed, NULL);
    test_await_blocked("waits for one of", 1);
    strand_join(strand_spawn(scope, close_client, NULL));
    strand_join(reader);
    CHECK_EQ(strand_tls_close(served), 0);
    close_contexts();
}

/* ---- a number that is used again ----------------------------------------------------------------------------- */

/* Make the number that a stream has closed the number of another connection. Returns that connection's other end. */
static int reuse(int number)
{
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    if (ends[1] == number) {
        ends[1] = ends[0];
        ends[0] = number;
    }
    if (ends[0] != number) {
        CHECK_EQ(dup2(ends[0], number), number);
        CHECK_EQ(close(ends[0]), 0);
    }
    return ends[1];
}

static void *write_closed(void *arg)
{
    (void)arg;
    return TEST_PTR(strand_tls_write(client, "w", 1));
}

/* The second writer gets the role of the first one, which leaves bytes, when the stream is closed. */
TEST_REAL_INSIDE(a_writer_that_waits_for_its_turn_does_not_write_to_a_number_that_was_closed)
{
    char byte;
    open_all();
    shake();
    taken = 0;
    STRAND_SCOPE(scope);
    strand first = strand_spawn(scope, write_on, NULL);
    test_await_blocked("waits for descriptor", 1);
    strand second = strand_spawn(scope, write_closed, NULL);
    test_await_blocked("waits for semaphore", 1);
    strand_cancel(first, "because");
    strand_yield();
    CHECK_EQ(strand_tls_close(client), 0);
    int other = reuse(pair[0]);
    CHECK_EQ((intptr_t)strand_join(second), -EBADF);
    CHECK(test_join_interrupted(first));
    CHECK_EQ(recv(other, &byte, 1, MSG_DONTWAIT), -1);
    CHECK_EQ(close(other), 0);
    CHECK_EQ(strand_close(pair[0]), 0);
    CHECK_EQ(strand_tls_close(served), 0);
    close_contexts();
}
