/*
 * Ports, as strands and plain threads use them. Handlers of signals are in port_signal.c, other runs in port_runs.c.
 */
#define SUITE port
#include "ports.h"

#include "strand/chan.h"
#include "strand/pool.h"
#include "strand/sim.h"

static strand_port open_longs(strand_scope scope, size_t slots)
{
    return strand_port_open(scope, sizeof(long), slots, NULL);
}

/* ---- messages ------------------------------------------------------------------------------- */

/* contract 1.3 */
TEST_INSIDE(a_message_comes_as_it_was_sent_whatever_length_it_has)
{
    enum { MOST = 300 };
    static char sent[MOST], got[MOST + 1];
    STRAND_SCOPE(scope);
    strand_port port = strand_port_open(scope, MOST, 3, NULL);
    for (size_t i = 0; i < MOST; i++)
        sent[i] = (char)(i * 7);
    for (size_t size = 0; size <= MOST; size++) {
        memset(got, 'x', sizeof got);
        CHECK_EQ(strand_port_send(port, sent, size), 0);
        CHECK_EQ(strand_port_receive(port, got, MOST), size);
        CHECK_EQ(memcmp(sent, got, size), 0);
        CHECK_EQ(got[size], 'x');
    }
}

/* contract 9.12 */
TEST_INSIDE(messages_without_bytes_need_no_memory)
{
    STRAND_SCOPE(scope);
    strand_port port = strand_port_open(scope, 0, 2, NULL);
    CHECK_EQ(strand_port_send(port, NULL, 0), 0);
    CHECK_EQ(strand_port_send(port, NULL, 0), 0);
    CHECK_EQ(strand_port_send(port, NULL, 0), -EAGAIN);
    CHECK_EQ(strand_port_receive(port, NULL, 0), 0);
    CHECK_EQ(strand_port_try_receive(port, NULL, 0), 0);
    CHECK_EQ(strand_port_try_receive(port, NULL, 0), -EAGAIN);
}

TEST_INSIDE(messages_of_one_sender_come_in_the_order_of_sending)
{
    STRAND_SCOPE(scope);
    strand_port port = open_longs(scope, 16);
    for (long sent = 0, got = 0; got < 200;) {
        while (sent < 200 && send_long(port, sent) == 0)
            sent++;
        for (int i = 0; i < 5 && got < sent; i++)
            CHECK_EQ(received_from(port), got++);
    }
}

/* contract 9.12 */
TEST_INSIDE(a_port_that_is_full_says_so_and_counts_it)
{
    STRAND_SCOPE(scope);
    strand_port port = open_longs(scope, 3);
    strand_port_info info = {.size = sizeof info};
    for (long i = 0; i < 5; i++)
        CHECK_EQ(send_long(port, i), i < 3 ? 0 : -EAGAIN);
    CHECK_EQ(strand_port_info_get(port, &info), 0);
    CHECK_EQ(info.message_size, sizeof(long));
    CHECK_EQ(info.slots, 3);
    CHECK_EQ(info.taken, 3);
    CHECK_EQ(info.refused, 2);
    CHECK(!info.closed);
    CHECK_EQ(received_from(port), 0);
    CHECK_EQ(taken_of(port), 2);
    CHECK_EQ(send_long(port, 7), 0);
    for (long i = 1; i < 4; i++)
        CHECK_EQ(received_from(port), i < 3 ? i : 7);
    CHECK_EQ(taken_of(port), 0);
}

TEST_INSIDE(a_message_that_is_too_long_or_nowhere_is_refused_and_nothing_is_sent)
{
    STRAND_SCOPE(scope);
    strand_port port = open_longs(scope, 3);
    char bytes[sizeof(long) + 1] = {0};
    CHECK_EQ(strand_port_send(port, bytes, sizeof bytes), -EMSGSIZE);
    CHECK_EQ(strand_port_send(port, NULL, SIZE_MAX), -EMSGSIZE);
    CHECK_EQ(strand_port_send(port, NULL, 1), -EINVAL);
    CHECK_EQ(taken_of(port), 0);
    CHECK_EQ(strand_port_try_receive(port, bytes, sizeof bytes), -EAGAIN);
}

/* ---- waiting -------------------------------------------------------------------------------- */

struct peer {
    strand_port port;
    long value;
    _Atomic int done;
};

static void *receive_one(void *arg)
{
    struct peer *peer = arg;
    peer->value = received_from(peer->port);
    peer->done = 1;
    return arg;
}

TEST_INSIDE(a_receiver_waits_until_a_message_comes)
{
    static struct peer peer;
    STRAND_SCOPE(scope);
    peer = (struct peer){.port = open_longs(scope, 1)};
    strand receiver = strand_spawn(scope, receive_one, &peer);
    test_await_blocked("receives from port 'port'", 1);
    CHECK_EQ(peer.done, 0);
    CHECK_EQ(send_long(peer.port, 5), 0);
    strand_join(receiver);
    CHECK_EQ(peer.value, 5);
}

/* contract 5.3 */
TEST_INSIDE(receivers_are_served_first_come_first_served)
{
    static struct peer peers[5];
    STRAND_SCOPE(scope);
    strand_port port = open_longs(scope, 8);
    strand receivers[5];
    for (int i = 0; i < 5; i++) {
        peers[i] = (struct peer){.port = port};
        receivers[i] = strand_spawn(scope, receive_one, &peers[i]);
        test_await_blocked("receives from port", i + 1);
    }
    for (long i = 0; i < 5; i++)
        CHECK_EQ(send_long(port, i), 0);
    for (int i = 0; i < 5; i++) {
        strand_join(receivers[i]);
        CHECK_EQ(peers[i].value, i);
    }
}

/* contract 5.3 */
TEST_INSIDE(a_later_receiver_does_not_overtake_waiting_ones)
{
    static struct peer peers[2];
    STRAND_SCOPE(scope);
    strand_port port = open_longs(scope, 4);
    strand receivers[2];
    for (int i = 0; i < 2; i++) {
        peers[i] = (struct peer){.port = port};
        receivers[i] = strand_spawn(scope, receive_one, &peers[i]);
        test_await_blocked("receives from port", i + 1);
    }
    long value = -1;
    for (long i = 0; i < 3; i++)
        CHECK_EQ(send_long(port, i), 0);
    CHECK_EQ(strand_port_try_receive(port, &value, sizeof value), sizeof value); /* of the three the last */
    CHECK_EQ(value, 2);
    for (int i = 0; i < 2; i++) {
        strand_join(receivers[i]);
        CHECK_EQ(peers[i].value, i);
    }
}

static void *receive_in_time(void *port)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    received_from(*(strand_port *)port);
    return NULL;
}

/* contract 5.1, 5.4 */
TEST_INSIDE(a_receive_that_is_interrupted_has_received_nothing)
{
    static struct peer peer;
    static strand_port port;
    STRAND_SCOPE(scope);
    port = open_longs(scope, 2);
    peer = (struct peer){.port = port};
    CHECK_THROWS(receive_in_time, &port, &STRAND_TIMED_OUT);
    strand receiver = strand_spawn(scope, receive_one, &peer);
    test_await_blocked("receives from port", 1);
    strand_cancel(receiver, NULL);
    CHECK(test_join_interrupted(receiver));
    CHECK_EQ(send_long(port, 3), 0);
    CHECK_EQ(taken_of(port), 1);
    CHECK_EQ(received_from(port), 3);
}

static struct {
    strand_port port;
    _Atomic long received, interrupted, closed;
} crowd;

static void *receive_or_be_cancelled(void *arg)
{
    STRAND_TRY {
        for (;;) {
            if (received_from(crowd.port) < 0)
                break;
            crowd.received++;
        }
        crowd.closed++;
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        crowd.interrupted++;
    }
    STRAND_END
    return arg;
}

/* contract 5.1 */
TEST_INSIDE(each_message_is_received_once_however_many_receivers_are_cancelled)
{
    for (long round = 0; round < test_scale(50); round++) {
        memset((void *)&crowd, 0, sizeof crowd);
        STRAND_SCOPE(scope);
        crowd.port = open_longs(scope, 64);
        strand receivers[6];
        for (int i = 0; i < 6; i++)
            receivers[i] = strand_spawn(scope, receive_or_be_cancelled, NULL);
        for (long i = 0; i < 40; i++) {
            while (send_long(crowd.port, i) == -EAGAIN)
                strand_yield();
            if (i % 10 == 5) {
                strand_cancel(receivers[i / 10], "enough");
                strand_yield();
            }
        }
        strand_port_close(crowd.port);
        for (int i = 0; i < 6; i++)
            strand_wait(receivers[i]);
        strand_scope_cancel(scope, NULL);
        CHECK_EQ(crowd.received, 40);
        CHECK_EQ(crowd.interrupted + crowd.closed, 6);
    }
}

TEST_INSIDE(trying_to_receive_does_not_wait)
{
    long value = 0;
    STRAND_SCOPE(scope);
    strand_port port = open_longs(scope, 1);
    CHECK_EQ(strand_port_try_receive(port, &value, sizeof value), -EAGAIN);
    CHECK_EQ(send_long(port, 9), 0);
    CHECK_EQ(strand_port_try_receive(port, &value, sizeof value), sizeof value);
    CHECK_EQ(value, 9);
    CHECK_EQ(strand_port_try_receive(port, &value, sizeof value), -EAGAIN);
    strand_port_close(port);
    CHECK_EQ(strand_port_try_receive(port, &value, sizeof value), -EPIPE);
}

/* On a shared fibre, into memory that is somebody else's while it waits. */
static void *receive_on_a_shared_stack(void *port)
{
    long values[3] = {-1, -1, -1};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_port_receive(*(strand_port *)port, &values[i], sizeof values[i]), sizeof(long));
    return TEST_PTR(values[0] * 100 + values[1] * 10 + values[2]);
}

TEST_INSIDE(a_message_may_be_received_into_the_stack_of_a_shared_fibre)
{
    static strand_port port;
    STRAND_SCOPE(scope);
    port = open_longs(scope, 1);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand receiver =
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .wipe = true), receive_on_a_shared_stack, &port, 0);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), test_return, NULL, 0);
    for (long i = 1; i < 4; i++) {
        while (send_long(port, i) == -EAGAIN)
            strand_yield();
        strand_sleep(10 * STRAND_US);
    }
    CHECK_PTR(strand_join(receiver), TEST_PTR(123));
    strand_scope_join(scope);
}

/* ---- closing, and the end ------------------------------------------------------------------- */

TEST_INSIDE(messages_in_a_closed_port_are_still_received)
{
    STRAND_SCOPE(scope);
    strand_port port = open_longs(scope, 4);
    strand_port_info info = {.size = sizeof info};
    for (long i = 0; i < 3; i++)
        CHECK_EQ(send_long(port, i), 0);
    strand_port_close(port);
    strand_port_close(port);
    CHECK_EQ(send_long(port, 3), -EPIPE);
    CHECK_EQ(strand_port_info_get(port, &info), 0);
    CHECK(info.closed);
    for (long i = 0; i < 3; i++)
        CHECK_EQ(received_from(port), i);
    CHECK_EQ(received_from(port), -1);
    CHECK_EQ(received_from(port), -1);
}

TEST_INSIDE(closing_ends_the_waits_of_all_receivers)
{
    static struct peer peers[4];
    STRAND_SCOPE(scope);
    strand_port port = open_longs(scope, 4);
    for (int i = 0; i < 4; i++) {
        peers[i] = (struct peer){.port = port};
        strand_spawn(scope, receive_one, &peers[i]);
        test_await_blocked("receives from port", i + 1);
    }
    CHECK_EQ(send_long(port, 8), 0);
    strand_port_close(port);
    strand_scope_join(scope);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(peers[i].value, i ? -1 : 8);
}

static strand_port gone_port(void)
{
    STRAND_SCOPE(scope);
    return strand_port_open(scope, sizeof(long), 2, NULL);
}

TEST_INSIDE(sending_to_a_port_that_is_gone_says_so)
{
    strand_port_info info = {.size = sizeof info};
    strand_port gone = gone_port();
    CHECK_EQ(send_long(gone, 1), -EPIPE);
    STRAND_SCOPE(scope);
    strand_port other = open_longs(scope, 2); /* in its place, perhaps */
    CHECK_EQ(send_long(gone, 1), -EPIPE);
    CHECK_EQ(strand_port_info_get(gone, &info), -EPIPE);
    strand_port_close(gone);
    CHECK_EQ(taken_of(other), 0);
    CHECK_EQ(send_long(other, 1), 0);
    CHECK_EQ(send_long((strand_port){{0, 0}}, 1), -EPIPE);
    CHECK_EQ(send_long((strand_port){{other.bits[0], 0}}, 1), -EPIPE);
    CHECK_EQ(send_long((strand_port){{other.bits[0] + 1, other.bits[1]}}, 1), -EPIPE);
    CHECK_EQ(send_long((strand_port){{other.bits[0] + 64, other.bits[1]}}, 1), -EPIPE);
    CHECK_EQ(send_long((strand_port){{1, other.bits[1]}}, 1), -EPIPE);
    CHECK_EQ(taken_of(other), 1);
}

TEST_INSIDE(the_handle_of_a_channel_is_none_of_a_port)
{
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof(long), 1, NULL);
    CHECK_EQ(send_long((strand_port){{chan.bits[0], chan.bits[1]}}, 1), -EPIPE);
    CHECK_EQ(strand_chan_length(chan), 0);
}

static long dropped[8];
static int drops;

static void note_drop(void *message, size_t size)
{
    long value = 0;
    memcpy(&value, message, size);
    dropped[drops++] = value * 100 + (long)size;
}

/* contract 1.3 */
TEST_INSIDE(messages_that_are_left_at_the_end_go_to_the_drop_function_in_their_order)
{
    long value = 0;
    drops = 0;
    {
        STRAND_SCOPE(scope);
        strand_port port = strand_port_open(scope, sizeof(long), 5, STRAND_PORT_ATTR(.drop = note_drop));
        for (long i = 1; i < 5; i++)
            CHECK_EQ(strand_port_send(port, &i, (size_t)i), 0);
        CHECK_EQ(strand_port_receive(port, &value, sizeof value), 1);
        CHECK_EQ(drops, 0);
    }
    CHECK_EQ(drops, 3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(dropped[i], (i + 2) * 100 + i + 2);
}

static void *receive_of_another_scope(void *arg)
{
    struct peer *peer = arg;
    while (!strand_id(strand_self()))
        strand_yield();
    return receive_one(peer);
}

TEST_INSIDE(a_receiver_at_a_port_whose_scope_is_left_gets_that_it_is_over)
{
    static struct peer peers[2];
    STRAND_SCOPE(outer);
    {
        STRAND_SCOPE(scope);
        strand_port port = open_longs(scope, 2);
        for (int i = 0; i < 2; i++) {
            peers[i] = (struct peer){.port = port};
            strand_spawn(outer, receive_of_another_scope, &peers[i]);
        }
        test_await_blocked("receives from port", 2);
        CHECK_EQ(send_long(port, 4), 0);
    }
    strand_scope_join(outer);
    CHECK_EQ(peers[0].value + peers[1].value, 3);
}

/* ---- as a case of a select ------------------------------------------------------------------ */

TEST_INSIDE(a_message_is_a_case_of_a_select_whose_result_is_its_length)
{
    long values[2] = {0, 0};
    STRAND_SCOPE(scope);
    strand_port ports[2] = {open_longs(scope, 2), open_longs(scope, 2)};
    strand_case cases[2];
    for (int i = 0; i < 2; i++)
        cases[i] = strand_on_message(ports[i], &values[i], sizeof values[i]);
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW), -EAGAIN);
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW | STRAND_SELECT_ORDERED), -EAGAIN);
    CHECK_EQ(strand_port_send(ports[1], "abc", 3), 0);
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    CHECK_EQ(cases[1].result, 3);
    CHECK_EQ(memcmp(&values[1], "abc", 3), 0);
    CHECK_EQ(send_long(ports[0], 6), 0);
    CHECK_EQ(send_long(ports[1], 7), 0);
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_ORDERED), 0);
    CHECK_EQ(values[0], 6);
    strand_port_close(ports[0]);
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_ORDERED), 0);
    CHECK_EQ(cases[0].result, -EPIPE);
    cases[0] = strand_case_drop(cases[0]);
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_ORDERED), 1);
    CHECK_EQ(values[1], 7);
    strand_port_close(ports[1]);
    cases[1] = strand_case_drop(cases[1]);
    CHECK_EQ(strand_select(cases, 2, 0), -EPIPE);
}

struct selecting {
    strand_port ports[2];
    long value;
    int result;
    unsigned flags;
    bool drops;
};

static void *select_message(void *arg)
{
    struct selecting *s = arg;
    strand_case cases[3] = {strand_on_message(s->ports[0], &s->value, sizeof s->value),
                            strand_on_time(strand_in(FOREVER)),
                            strand_on_message(s->ports[1], &s->value, sizeof s->value)};
    size_t count = 3;
    if (s->drops) {
        cases[0] = strand_case_drop(cases[0]);
        cases[1] = strand_case_drop(cases[2]);
        count = 2;
    }
    s->result = strand_select(cases, count, s->flags);
    return arg;
}

TEST_INSIDE(a_select_waits_for_messages_of_several_ports)
{
    static struct selecting s;
    for (int i = 0; i < 8; i++) {
        STRAND_SCOPE(scope);
        s = (struct selecting){.flags = i & 1 ? STRAND_SELECT_ORDERED : 0};
        s.ports[0] = open_longs(scope, 1);
        s.ports[1] = i & 2 ? s.ports[0] : open_longs(scope, 1); /* the same port twice */
        strand selecting = strand_spawn(scope, select_message, &s);
        test_await_blocked("waits for one of", 1);
        CHECK_EQ(send_long(s.ports[i >> 2], i), 0);
        strand_join(selecting);
        CHECK_EQ(s.value, i);
        if (!(i & 2))
            CHECK_EQ(s.result, i >> 2 ? 2 : 0);
        CHECK_EQ(taken_of(s.ports[0]), 0);
    }
}

TEST_INSIDE(a_case_that_drops_out_does_so_when_its_port_is_closed_and_empty)
{
    static struct selecting s;
    for (int i = 0; i < 2; i++) {
        STRAND_SCOPE(scope);
        s = (struct selecting){{open_longs(scope, 1), open_longs(scope, 1)}, .drops = true};
        strand selecting = strand_spawn(scope, select_message, &s);
        test_await_blocked("waits for one of", 1);
        strand_port_close(s.ports[0]);
        strand_yield();
        if (i)
            CHECK_EQ(send_long(s.ports[1], 5), 0);
        strand_port_close(s.ports[1]);
        strand_join(selecting);
        CHECK_EQ(s.result, i ? 1 : -EPIPE);
        CHECK_EQ(s.value, i ? 5 : 0);
    }
}

TEST_INSIDE(a_waiting_select_gets_the_end_of_its_port)
{
    static struct selecting s;
    STRAND_SCOPE(outer);
    strand selecting;
    {
        STRAND_SCOPE(scope);
        s = (struct selecting){.ports = {open_longs(scope, 1), open_longs(scope, 1)}};
        selecting = strand_spawn(outer, select_message, &s);
        test_await_blocked("waits for one of", 1);
    }
    strand_join(selecting);
    CHECK(s.result == 0 || s.result == 2);
    CHECK_EQ(s.value, 0);
}

/* ---- plain threads -------------------------------------------------------------------------- */

struct sender {
    strand_port port;
    long number, count;
    _Atomic long sent, told;
    pthread_t thread;
};

static void *send_numbered(void *arg)
{
    struct sender *sender = arg;
    for (long i = 0; i < sender->count; i++) {
        int error = send_surely(sender->port, sender->number * 1000000 + i);
        if (error == -EPIPE) {
            sender->told = 1;
            break;
        }
        CHECK_EQ(error, 0);
        sender->sent++;
    }
    return NULL;
}

static void start_sender(struct sender *sender, strand_port port, long number, long count)
{
    *sender = (struct sender){.port = port, .number = number, .count = count};
    CHECK_EQ(pthread_create(&sender->thread, NULL, send_numbered, sender), 0);
}

/* contract 1.3 */
TEST_REAL_INSIDE(messages_of_plain_threads_come_each_in_its_order)
{
    enum { SENDERS = 4 };
    struct sender senders[SENDERS];
    long next[SENDERS] = {0}, each = test_scale(5000);
    STRAND_SCOPE(scope);
    strand_port port = open_longs(scope, 8);
    for (int i = 0; i < SENDERS; i++)
        start_sender(&senders[i], port, i, each);
    for (long n = 0; n < SENDERS * each; n++) {
        long value = received_from(port);
        CHECK_EQ(value % 1000000, next[value / 1000000]++);
    }
    for (int i = 0; i < SENDERS; i++)
        pthread_join(senders[i].thread, NULL);
    CHECK_EQ(taken_of(port), 0);
}

/* contract 1.3 */
TEST_REAL_INSIDE(a_message_wakes_a_run_that_sleeps)
{
    struct sender sender;
    STRAND_SCOPE(scope);
    strand_port port = open_longs(scope, 1);
    for (long i = 0; i < 20; i++) {
        start_sender(&sender, port, 0, 1);
        CHECK_EQ(received_from(port), 0);
        pthread_join(sender.thread, NULL);
        strand_sleep(2 * STRAND_MS);
    }
}

TEST_REAL_INSIDE(messages_sent_before_the_close_are_received_and_other_receivers_get_the_end)
{
    for (long round = 0; round < test_scale(40); round++) {
        struct sender senders[3];
        long sent = 0;
        STRAND_SCOPE(scope);
        strand_port port = open_longs(scope, 16);
        for (int i = 0; i < 3; i++)
            start_sender(&senders[i], port, i, 1000000);
        long received = 0;
        while (received < 100)
            received += received_from(port) >= 0;
        strand_port_close(port);
        while (received_from(port) >= 0)
            received++;
        for (int i = 0; i < 3; i++) {
            pthread_join(senders[i].thread, NULL);
            CHECK(senders[i].told);
            sent += senders[i].sent;
        }
        CHECK_EQ(received, sent);
    }
}

static _Atomic long counted_drops;

static void count_drop(void *message, size_t size)
{
    CHECK_EQ(size, sizeof(long));
    CHECK(*(long *)message >= 0);
    counted_drops++;
}

static struct sender late[3];
static long taken;

static void *leave_while_sent_to(void *arg)
{
    STRAND_SCOPE(scope);
    strand_port port = strand_port_open(scope, sizeof(long), 5, STRAND_PORT_ATTR(.drop = count_drop));
    for (int i = 0; i < 3; i++)
        start_sender(&late[i], port, i, 1000000);
    for (taken = 0; taken < 10; taken++)
        received_from(port);
    return arg;
}

/* contract 1.3 */
TEST_REAL(the_scope_and_the_run_end_while_others_send_and_each_message_is_received_or_dropped)
{
    for (long round = 0; round < test_scale(60); round++) {
        long sent = 0;
        counted_drops = 0;
        test_run(leave_while_sent_to, NULL);
        for (int i = 0; i < 3; i++) {
            pthread_join(late[i].thread, NULL);
            CHECK(late[i].told);
            sent += late[i].sent;
        }
        CHECK_EQ(taken + counted_drops, sent);
    }
}

/* ---- under seeds ---------------------------------------------------------------------------- */

static struct {
    strand_port port;
    long received;
    _Atomic long sent;
} played;

static void *send_played(void *arg)
{
    for (long i = 0; i < 20; i++)
        if (send_long(played.port, i) == 0)
            played.sent++;
    return arg;
}

static void close_played(void)
{
    strand_port_close(played.port);
}

static void *close_it(void *arg)
{
    close_played();
    return arg;
}

TEST_INSIDE(plain_threads_that_are_played_send_and_close_under_any_seed)
{
    STRAND_SCOPE(scope);
    played.port = open_longs(scope, 6);
    played.received = 0;
    played.sent = 0;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(strand_sim_thread(send_played, NULL), 0);
    CHECK_EQ(strand_sim_thread(close_it, NULL), 0);
    while (received_from(played.port) >= 0)
        played.received++;
    CHECK(played.sent <= played.received); /* some have not counted yet */
    CHECK_EQ(taken_of(played.port), 0);
}

/* ---- between runs --------------------------------------------------------------------------- */

struct question {
    long number;
    strand_port answers; /* the run that asks, and gets the answer there */
};

/* The root of a run: sends its port to a port of the other run, and answers until it gets the end. */
static void *answer_questions(void *arg)
{
    strand_port here_i_am = *(strand_port *)arg;
    struct question question;
    STRAND_SCOPE(scope);
    strand_port mine = strand_port_open(scope, sizeof question, 4, NULL);
    CHECK_EQ(strand_port_send(here_i_am, &mine, sizeof mine), 0);
    while (strand_port_receive(mine, &question, sizeof question) == sizeof question && question.number >= 0)
        CHECK_EQ(send_surely(question.answers, question.number * question.number), 0);
    return arg;
}

static void *run_another(void *arg)
{
    strand_options options = test_options();
    test_set_own_threads(&options);
    CHECK_PTR(strand_run(&options, answer_questions, arg), arg);
    return NULL;
}

/* As the root of one run; the other is on a plain thread, or inside of a strand of this one. */
static void talk_to(strand_scope scope, strand_port hello, void (*start)(strand_scope scope, strand_port *hello))
{
    strand_port there, port = open_longs(scope, 4);
    struct question question = {.answers = port};
    static strand_port hello_handle;
    hello_handle = hello;
    start(scope, &hello_handle);
    CHECK_EQ(strand_port_receive(hello, &there, sizeof there), sizeof there);
    for (question.number = 0; question.number < test_scale(200); question.number++) {
        CHECK_EQ(strand_port_send(there, &question, sizeof question), 0);
        CHECK_EQ(received_from(port), question.number * question.number);
    }
    question.number = -1;
    CHECK_EQ(strand_port_send(there, &question, sizeof question), 0);
    while (strand_port_send(there, &question, sizeof question) != -EPIPE)
        strand_sleep(STRAND_MS); /* until that run has ended */
}

static pthread_t another;

static void start_on_a_thread(strand_scope scope, strand_port *hello)
{
    (void)scope;
    CHECK_EQ(pthread_create(&another, NULL, run_another, hello), 0);
}

static void *block_in_another_run(void *arg)
{
    return run_another(arg);
}

static void start_in_a_strand(strand_scope scope, strand_port *hello)
{
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1)); /* whose thread sleeps meanwhile */
    strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .stack_size = 1 << 18), block_in_another_run, hello, 0);
}

/* V-01, contract 1.3 */
TEST_REAL_INSIDE(runs_talk_to_each_other_through_ports_until_one_of_them_ends)
{
    {
        STRAND_SCOPE(scope);
        talk_to(scope, strand_port_open(scope, sizeof(strand_port), 1, NULL), start_on_a_thread);
    }
    CHECK_EQ(pthread_join(another, NULL), 0);
    {
        STRAND_SCOPE(scope);
        talk_to(scope, strand_port_open(scope, sizeof(strand_port), 1, NULL), start_in_a_strand);
        strand_scope_join(scope);
    }
}
