/*
 * Channels: values from strand to strand, first come first served on both sides; each is received once, or not sent.
 */
#define SUITE chan
#include "test.h"

#include "strand/chan.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

typedef STRAND_CHAN(long) longs;

/* Let others run until so many strands wait in this way. */
static void await_blocked(const char *how, int count)
{
    for (;;) {
        int found = 0;
        for (const char *at = test_dump(); (at = strstr(at, how)); at++)
            found++;
        if (found >= count)
            return;
        strand_sleep(20 * STRAND_US);
    }
}

static void await_senders(int count)
{
    await_blocked("blocked: sends to", count);
}

static void await_receivers(int count)
{
    await_blocked("blocked: receives from", count);
}

/* A strand that sends one value, or receives one. */
struct peer {
    longs chan;
    long value;
    int result;
    _Atomic int done;
    strand strand;
};

static void *send_one(void *arg)
{
    struct peer *peer = arg;
    peer->result = STRAND_SEND(peer->chan, &peer->value);
    peer->done = 1;
    return NULL;
}

static void *receive_one(void *arg)
{
    struct peer *peer = arg;
    peer->result = STRAND_RECEIVE(peer->chan, &peer->value);
    peer->done = 1;
    return NULL;
}

/* They come one after the other, and wait. */
static void spawn_senders(strand_scope scope, struct peer *peers, int count, longs chan, long first)
{
    for (int i = 0; i < count; i++) {
        peers[i] = (struct peer){.chan = chan, .value = first + i, .result = 1};
        peers[i].strand = strand_spawn(scope, send_one, &peers[i]);
        await_senders(i + 1);
    }
}

static void spawn_receivers(strand_scope scope, struct peer *peers, int count, longs chan)
{
    for (int i = 0; i < count; i++) {
        peers[i] = (struct peer){.chan = chan, .value = -1, .result = 1};
        peers[i].strand = strand_spawn(scope, receive_one, &peers[i]);
        await_receivers(i + 1);
    }
}

static void send_to(longs chan, long value)
{
    CHECK_EQ(STRAND_SEND(chan, &value), 0);
}

static long received_from(longs chan)
{
    long value = -1;
    CHECK_EQ(STRAND_RECEIVE(chan, &value), 0);
    return value;
}

/* ---- values ---------------------------------------------------------------------------------- */

static const size_t sizes[] = {0, 1, 3, 8, 64, 100000};

struct parcel {
    strand_chan chan;
    size_t size;
    int rounds;
};

static void fill(unsigned char *bytes, size_t size, int round)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + (size_t)round * 13 + i / 251);
}

static void *send_parcels(void *arg)
{
    struct parcel *parcel = arg;
    unsigned char *bytes = malloc(parcel->size + 1);
    for (int round = 0; round < parcel->rounds; round++) {
        fill(bytes, parcel->size, round);
        CHECK_EQ(strand_chan_send(parcel->chan, parcel->size ? bytes : NULL), 0);
    }
    free(bytes);
    return NULL;
}

TEST_INSIDE(a_value_of_any_size_arrives_as_it_was)
{
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
        for (size_t capacity = 0; capacity < 4; capacity++) {
            STRAND_SCOPE(s);
            size_t size = sizes[n];
            struct parcel parcel = {strand_chan_open(s, size, capacity, NULL), size, 7};
            strand sender = strand_spawn(s, send_parcels, &parcel);
            unsigned char *got = malloc(size + 1), *expected = malloc(size + 1);
            for (int round = 0; round < parcel.rounds; round++) {
                if (round == 4)
                    strand_sleep(100 * STRAND_US); /* now the receiver comes second */
                memset(got, 0, size + 1);
                got[size] = 0x5a;
                CHECK_EQ(strand_chan_receive(parcel.chan, size ? got : NULL), 0);
                fill(expected, size, round);
                CHECK(memcmp(got, expected, size) == 0);
                CHECK_EQ(got[size], 0x5a);
            }
            strand_join(sender);
            free(got);
            free(expected);
        }
}

TEST_INSIDE(tried_and_posted_values_of_any_size_arrive_as_they_were)
{
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        STRAND_SCOPE(s);
        size_t size = sizes[n];
        strand_chan chan = strand_chan_open(s, size, 2, NULL);
        unsigned char *bytes = malloc(size + 1), *got = malloc(size + 1);
        for (int round = 0; round < 3; round++) {
            fill(bytes, size, round);
            CHECK_EQ(round ? strand_chan_try_send(chan, bytes) : strand_chan_post(chan, bytes), 0);
            CHECK_EQ(round ? strand_chan_try_receive(chan, got) : strand_chan_receive(chan, got), 0);
            CHECK(memcmp(got, bytes, size) == 0);
        }
        free(bytes);
        free(got);
    }
}

TEST_INSIDE(values_without_size_are_counted)
{
    STRAND_SCOPE(s);
    strand_chan chan = strand_chan_open(s, 0, 3, NULL);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_chan_try_send(chan, NULL), 0);
    CHECK_EQ(strand_chan_try_send(chan, NULL), -EAGAIN);
    CHECK_EQ(strand_chan_length(chan), 3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_chan_receive(chan, NULL), 0);
    CHECK_EQ(strand_chan_try_receive(chan, NULL), -EAGAIN);
}

TEST_INSIDE(what_is_sent_is_a_copy)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 2);
    long value = 5;
    CHECK_EQ(STRAND_SEND(chan, &value), 0);
    value = 6;
    CHECK_EQ(received_from(chan), 5);
}

/* ---- waiting, and the order ------------------------------------------------------------------- */

TEST_INSIDE(a_rendezvous_ends_when_a_receiver_has_the_value)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    struct peer sender;
    spawn_senders(s, &sender, 1, chan, 7);
    strand_sleep(STRAND_MS);
    CHECK_EQ(sender.done, 0);
    CHECK_EQ(strand_chan_length(chan.untyped), 0);
    CHECK_EQ(received_from(chan), 7);
    strand_join(sender.strand);
    CHECK_EQ(sender.result, 0);
}

TEST_INSIDE(a_send_waits_only_where_there_is_no_room)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 3);
    for (long i = 0; i < 3; i++)
        send_to(chan, i);
    struct peer sender;
    spawn_senders(s, &sender, 1, chan, 3);
    CHECK_EQ(sender.done, 0);
    for (long i = 0; i < 4; i++)
        CHECK_EQ(received_from(chan), i);
    strand_join(sender.strand);
}

TEST_INSIDE(senders_are_served_in_the_order_of_their_coming)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    struct peer senders[6];
    spawn_senders(s, senders, 6, chan, 10);
    for (long i = 0; i < 6; i++) {
        CHECK_EQ(received_from(chan), 10 + i);
        strand_join(senders[i].strand);
        CHECK_EQ(senders[i].result, 0);
        if (i < 5)
            CHECK_EQ(senders[i + 1].done, 0);
    }
}

TEST_INSIDE(receivers_are_served_in_the_order_of_their_coming)
{
    for (size_t capacity = 0; capacity < 3; capacity++) {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, capacity);
        struct peer receivers[6];
        spawn_receivers(s, receivers, 6, chan);
        for (long i = 0; i < 6; i++) {
            send_to(chan, 20 + i);
            strand_join(receivers[i].strand);
            CHECK_EQ(receivers[i].result, 0);
            CHECK_EQ(receivers[i].value, 20 + i);
            if (i < 5)
                CHECK_EQ(receivers[i + 1].done, 0);
        }
        CHECK_EQ(strand_chan_length(chan.untyped), 0);
    }
}

TEST_INSIDE(the_order_is_kept_across_what_is_in_the_channel_and_queued_senders)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 3);
    for (long i = 0; i < 3; i++)
        send_to(chan, i);
    struct peer senders[4];
    spawn_senders(s, senders, 4, chan, 3);
    for (long i = 0; i < 7; i++)
        CHECK_EQ(received_from(chan), i);
    strand_scope_join(s);
}

TEST_INSIDE(a_receive_that_makes_room_lets_the_first_queued_sender_go)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 2);
    send_to(chan, 0);
    send_to(chan, 1);
    struct peer senders[2];
    spawn_senders(s, senders, 2, chan, 2);
    CHECK_EQ(received_from(chan), 0);
    CHECK_EQ(strand_chan_length(chan.untyped), 2); /* its value has taken the room, whoever runs first */
    strand_join(senders[0].strand);
    CHECK_EQ(senders[0].result, 0);
    CHECK_EQ(senders[1].done, 0);
    long late = 9;
    CHECK_EQ(STRAND_TRY_SEND(chan, &late), -EAGAIN);
    for (long i = 1; i < 4; i++)
        CHECK_EQ(received_from(chan), i);
    strand_join(senders[1].strand);
}

TEST_INSIDE(who_comes_later_does_not_overtake_a_queued_sender)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 1);
    send_to(chan, 0);
    struct peer sender;
    spawn_senders(s, &sender, 1, chan, 1);
    CHECK_EQ(received_from(chan), 0);
    long late = 2;
    CHECK_EQ(STRAND_TRY_SEND(chan, &late), -EAGAIN);
    CHECK_EQ(received_from(chan), 1);
    CHECK_EQ(STRAND_TRY_SEND(chan, &late), 0);
    CHECK_EQ(received_from(chan), 2);
    strand_join(sender.strand);
}

TEST_INSIDE(length_counts_what_can_be_received_at_once_and_capacity_is_as_it_was_asked_for)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 3), rendezvous = STRAND_CHAN_OPEN(longs, s, 0);
    CHECK_EQ(strand_chan_capacity(chan.untyped), 3);
    CHECK_EQ(strand_chan_capacity(rendezvous.untyped), 0);
    for (long i = 0; i < 3; i++) {
        CHECK_EQ(strand_chan_length(chan.untyped), i);
        send_to(chan, i);
    }
    struct peer sender;
    spawn_senders(s, &sender, 1, chan, 3);
    CHECK_EQ(strand_chan_length(chan.untyped), 3); /* queued senders are not counted */
    for (long i = 0; i < 4; i++)
        CHECK_EQ(received_from(chan), i);
    CHECK_EQ(strand_chan_length(chan.untyped), 0);
    strand_join(sender.strand);
}

TEST_INSIDE(a_channel_that_is_used_again_and_again_keeps_its_order)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 5);
    long in = 0, out = 0;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 1 + round % 5; i++)
            send_to(chan, in++);
        while (out < in)
            CHECK_EQ(received_from(chan), out++);
    }
}

/* ---- without waiting -------------------------------------------------------------------------- */

TEST_INSIDE(trying_does_not_wait)
{
    STRAND_SCOPE(s);
    longs rendezvous = STRAND_CHAN_OPEN(longs, s, 0), buffered = STRAND_CHAN_OPEN(longs, s, 1);
    long value = 4;
    CHECK_EQ(STRAND_TRY_SEND(rendezvous, &value), -EAGAIN);
    CHECK_EQ(STRAND_TRY_RECEIVE(rendezvous, &value), -EAGAIN);
    CHECK_EQ(STRAND_TRY_RECEIVE(buffered, &value), -EAGAIN);
    CHECK_EQ(STRAND_TRY_SEND(buffered, &value), 0);
    CHECK_EQ(STRAND_TRY_SEND(buffered, &value), -EAGAIN);
    value = 0;
    CHECK_EQ(STRAND_TRY_RECEIVE(buffered, &value), 0);
    CHECK_EQ(value, 4);
}

TEST_INSIDE(trying_serves_who_waits)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    struct peer receiver, sender;
    long value = 4;
    spawn_receivers(s, &receiver, 1, chan);
    CHECK_EQ(STRAND_TRY_SEND(chan, &value), 0);
    strand_join(receiver.strand);
    CHECK_EQ(receiver.value, 4);
    spawn_senders(s, &sender, 1, chan, 5);
    CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), 0);
    CHECK_EQ(value, 5);
    strand_join(sender.strand);
    CHECK_EQ(sender.result, 0);
}

static void *try_all(void *arg)
{
    longs chan = *(longs *)arg;
    long value = 3;
    CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), -EAGAIN);
    CHECK_EQ(STRAND_TRY_SEND(chan, &value), 0);
    CHECK_EQ(strand_chan_length(chan.untyped), 1);
    CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), 0);
    CHECK_EQ(STRAND_POST(chan, &value), 0);
    strand_chan_close(chan.untyped);
    test_log("not interrupted");
    strand_checkpoint();
    test_log("too far");
    return NULL;
}

TEST_INSIDE(trying_posting_and_closing_are_never_interrupted)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 1);
    test_run_cancelled(try_all, &chan);
    CHECK_LOG("not interrupted");
    CHECK_EQ(received_from(chan), 3);
}

/* ---- the close -------------------------------------------------------------------------------- */

TEST_INSIDE(after_the_close_nothing_can_be_sent)
{
    STRAND_SCOPE(s);
    for (size_t capacity = 0; capacity < 2; capacity++) {
        longs chan = STRAND_CHAN_OPEN(longs, s, capacity);
        strand_chan_close(chan.untyped);
        strand_chan_close(chan.untyped);
        long value = 1;
        CHECK_EQ(STRAND_SEND(chan, &value), -EPIPE);
        CHECK_EQ(STRAND_TRY_SEND(chan, &value), -EPIPE);
        CHECK_EQ(STRAND_POST(chan, &value), -EPIPE);
        value = 7;
        CHECK_EQ(STRAND_RECEIVE(chan, &value), -EPIPE);
        CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), -EPIPE);
        CHECK_EQ(value, 7);
        CHECK_EQ(strand_chan_length(chan.untyped), 0);
    }
}

TEST_INSIDE(after_the_close_the_channel_and_then_its_queued_senders_are_received_and_then_it_is_closed)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 2);
    send_to(chan, 0);
    send_to(chan, 1);
    struct peer senders[3];
    spawn_senders(s, senders, 3, chan, 2);
    strand_chan_close(chan.untyped);
    strand_sleep(100 * STRAND_US);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(senders[i].done, 0); /* they are senders still */
    for (long i = 0; i < 5; i++)
        CHECK_EQ(received_from(chan), i);
    long value;
    CHECK_EQ(STRAND_RECEIVE(chan, &value), -EPIPE);
    strand_scope_join(s);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(senders[i].result, 0);
}

TEST_INSIDE(a_closed_rendezvous_still_gives_what_its_queued_senders_have)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    struct peer senders[2];
    spawn_senders(s, senders, 2, chan, 0);
    strand_chan_close(chan.untyped);
    long value;
    CHECK_EQ(received_from(chan), 0);
    CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), 0);
    CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), -EPIPE);
    strand_scope_join(s);
}

TEST_INSIDE(the_close_ends_the_waits_of_all_receivers)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 1);
    struct peer receivers[3];
    spawn_receivers(s, receivers, 3, chan);
    strand_chan_close(chan.untyped);
    strand_scope_join(s);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(receivers[i].result, -EPIPE);
        CHECK_EQ(receivers[i].value, -1);
    }
}

static void *close_soon(void *arg)
{
    longs *chan = arg;
    for (int i = 0; i < 3; i++)
        strand_yield();
    strand_chan_close(chan->untyped);
    return NULL;
}

static void *send_until_closed(void *arg)
{
    longs *chan = arg;
    long sent = 0;
    while (STRAND_SEND(*chan, &sent) == 0)
        sent++;
    return TEST_PTR(sent);
}

static void *receive_until_closed(void *arg)
{
    longs *chan = arg;
    long value, received = 0;
    while (STRAND_RECEIVE(*chan, &value) == 0)
        received++;
    return TEST_PTR(received);
}

TEST_RACE(whatever_was_sent_before_the_close_is_received)
{
    for (long round = 0; round < test_scale(300); round++) {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, (size_t)(round % 3));
        strand senders[3], receivers[3];
        for (int i = 0; i < 3; i++) {
            senders[i] = strand_spawn(s, send_until_closed, &chan);
            receivers[i] = strand_spawn(s, receive_until_closed, &chan);
        }
        strand_spawn(s, close_soon, &chan);
        intptr_t sent = 0, received = 0;
        for (int i = 0; i < 3; i++) {
            sent += (intptr_t)strand_join(senders[i]);
            received += (intptr_t)strand_join(receivers[i]);
        }
        strand_scope_join(s);
        CHECK_EQ(received, sent);
    }
}

/* ---- interruption: it happened, or it threw --------------------------------------------------- */

TEST_INSIDE(a_sender_that_was_interrupted_has_sent_nothing_and_keeps_nobody_from_being_served)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    struct peer senders[3];
    spawn_senders(s, senders, 3, chan, 0);
    strand_cancel(senders[1].strand, NULL);
    strand_wait(senders[1].strand);
    CHECK_EQ(senders[1].done, 0);
    CHECK_EQ(received_from(chan), 0);
    CHECK_EQ(received_from(chan), 2);
    long value;
    CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), -EAGAIN);
    strand_scope_join(s);
}

TEST_INSIDE(a_receiver_that_was_interrupted_has_taken_nothing_and_keeps_nobody_from_being_served)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    struct peer receivers[3];
    spawn_receivers(s, receivers, 3, chan);
    strand_cancel(receivers[0].strand, NULL);
    strand_wait(receivers[0].strand);
    send_to(chan, 1);
    send_to(chan, 2);
    strand_scope_join(s);
    CHECK_EQ(receivers[0].done, 0);
    CHECK_EQ(receivers[0].value, -1);
    CHECK_EQ(receivers[1].value, 1);
    CHECK_EQ(receivers[2].value, 2);
}

static void *send_cancelled(void *arg)
{
    send_to(*(longs *)arg, 1);
    test_log("sent");
    return NULL;
}

static void *receive_cancelled(void *arg)
{
    received_from(*(longs *)arg);
    test_log("received");
    return NULL;
}

TEST_INSIDE(a_cancelled_strand_neither_sends_nor_receives_even_where_it_would_not_wait)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 2);
    send_to(chan, 0);
    test_run_cancelled(send_cancelled, &chan);
    test_run_cancelled(receive_cancelled, &chan);
    CHECK_LOG("");
    CHECK_EQ(strand_chan_length(chan.untyped), 1);
}

static void *receive_in_time(void *arg)
{
    longs chan = *(longs *)arg;
    STRAND_DEADLINE(strand_in(STRAND_MS));
    return TEST_PTR(received_from(chan));
}

TEST_INSIDE(a_receive_can_have_a_deadline)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    strand_exception *e = strand_try(receive_in_time, &chan, NULL);
    CHECK_KIND(e, &STRAND_TIMED_OUT);
    strand_exception_release(e);
    struct peer sender;
    spawn_senders(s, &sender, 1, chan, 5);
    CHECK_EQ(received_from(chan), 5);
    strand_join(sender.strand);
}

static void *send_in_time(void *arg)
{
    longs chan = *(longs *)arg;
    STRAND_DEADLINE(strand_in(STRAND_MS));
    send_to(chan, 1);
    return NULL;
}

TEST_INSIDE(a_send_can_have_a_deadline)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 1);
    send_to(chan, 0);
    strand_exception *e = strand_try(send_in_time, &chan, NULL);
    CHECK_KIND(e, &STRAND_TIMED_OUT);
    strand_exception_release(e);
    long value;
    CHECK_EQ(received_from(chan), 0);
    CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), -EAGAIN);
}

static void *receive_shielded(void *arg)
{
    STRAND_SHIELD;
    return receive_one(arg);
}

TEST_INSIDE(a_shielded_receiver_keeps_its_place)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    struct peer first = {.chan = chan, .value = -1}, second;
    first.strand = strand_spawn(s, receive_shielded, &first);
    await_receivers(1);
    second = (struct peer){.chan = chan, .value = -1};
    second.strand = strand_spawn(s, receive_one, &second);
    await_receivers(2);
    strand_cancel(first.strand, NULL);
    strand_sleep(100 * STRAND_US);
    send_to(chan, 1);
    send_to(chan, 2);
    strand_scope_join(s);
    CHECK_EQ(first.value, 1);
    CHECK_EQ(second.value, 2);
}

/* Every value is one of its own. */
#define VALUES 4096
enum { SENT = 1, RECEIVED = 2 };
static _Atomic int fates[VALUES];
static _Atomic int next_value;

static void forget_values(void)
{
    next_value = 0;
    for (int i = 0; i < VALUES; i++)
        fates[i] = 0;
}

static void was_sent(long value)
{
    CHECK_EQ(atomic_fetch_or(&fates[value], SENT) & SENT, 0);
}

static void was_received(long value)
{
    CHECK(value >= 0 && value < VALUES);
    CHECK_EQ(atomic_fetch_or(&fates[value], RECEIVED) & RECEIVED, 0);
}

static void drain(longs chan)
{
    long value;
    while (STRAND_TRY_RECEIVE(chan, &value) == 0)
        was_received(value);
}

/* Each was sent and received, or neither. */
static void check_fates(void)
{
    for (int i = 0; i < VALUES; i++)
        if (fates[i] != 0 && fates[i] != (SENT | RECEIVED))
            CHECK_FAIL("value %d was %s", i, fates[i] == SENT ? "lost" : "made up");
}

static void *send_some(void *arg)
{
    longs chan = *(longs *)arg;
    for (int i = 0; i < 6; i++) {
        long value = next_value++;
        if (STRAND_SEND(chan, &value) == 0)
            was_sent(value);
    }
    return NULL;
}

static void *receive_some(void *arg)
{
    longs chan = *(longs *)arg;
    long value;
    for (int i = 0; i < 6; i++)
        if (STRAND_RECEIVE(chan, &value) == 0)
            was_received(value);
    return NULL;
}

static void *within(void *arg, strand_fn *fn)
{
    STRAND_DEADLINE(strand_in(30 * STRAND_US));
    return fn(arg);
}

static void *send_some_in_time(void *arg)
{
    STRAND_TRY {
        within(arg, send_some);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    return NULL;
}

static void *receive_some_in_time(void *arg)
{
    STRAND_TRY {
        within(arg, receive_some);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    return NULL;
}

TEST_RACE(no_value_is_lost_or_doubled_by_cancels_and_deadlines)
{
    for (long round = 0; round < test_scale(400); round++) {
        forget_values();
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, (size_t)(round % 3));
        strand crowd[12];
        for (int i = 0; i < 12; i++) {
            strand_fn *fn =
                i % 3 == 0 ? (i % 2 ? send_some_in_time : receive_some_in_time) : (i % 2 ? send_some : receive_some);
            crowd[i] = strand_spawn(s, fn, &chan);
        }
        for (int i = 0; i < 12; i++) {
            if (i % 4 == 1)
                strand_yield();
            if (i % 3)
                strand_cancel(crowd[(i * 5 + (int)round) % 12], NULL);
        }
        strand_sleep(40 * STRAND_US);
        for (int i = 0; i < 12; i++)
            strand_cancel(crowd[i], NULL);
        strand_scope_join(s);
        drain(chan);
        check_fates();
    }
}

/* ---- several at a time ------------------------------------------------------------------------ */

#define CROWD 4
struct lane {
    longs chan;
    long number, count;
};

static void *send_numbered(void *arg)
{
    struct lane *lane = arg;
    for (long i = 0; i < lane->count; i++)
        send_to(lane->chan, lane->number * 1000000 + i);
    return NULL;
}

/* Of each sender the values come in the order of sending. */
static void *receive_numbered(void *arg)
{
    longs *chan = arg;
    long value, last[CROWD] = {-1, -1, -1, -1}, count = 0;
    while (STRAND_RECEIVE(*chan, &value) == 0) {
        CHECK(value % 1000000 > last[value / 1000000]);
        last[value / 1000000] = value % 1000000;
        count++;
    }
    return TEST_PTR(count);
}

TEST_RACE(values_of_one_sender_come_in_the_order_of_sending)
{
    for (size_t capacity = 0; capacity < 12; capacity += 3) {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, capacity);
        struct lane lanes[CROWD];
        strand senders[CROWD], receivers[CROWD];
        intptr_t sent = 0, received = 0;
        for (int i = 0; i < CROWD; i++) {
            lanes[i] = (struct lane){chan, i, test_scale(3000)};
            sent += lanes[i].count;
            receivers[i] = strand_spawn(s, receive_numbered, &chan);
            senders[i] = strand_spawn(s, send_numbered, &lanes[i]);
        }
        for (int i = 0; i < CROWD; i++)
            strand_join(senders[i]);
        strand_chan_close(chan.untyped);
        for (int i = 0; i < CROWD; i++)
            received += (intptr_t)strand_join(receivers[i]);
        CHECK_EQ(received, sent);
    }
}

struct note {
    long text[4];
};
typedef STRAND_CHAN(struct note *) notes;

static void *write_notes(void *arg)
{
    notes chan = *(notes *)arg;
    for (long i = 0; i < test_scale(2000); i++) {
        struct note *note = malloc(sizeof *note);
        note->text[i % 4] = i; /* plainly */
        CHECK_EQ(STRAND_SEND(chan, &note), 0);
    }
    strand_chan_close(chan.untyped);
    return NULL;
}

/* For the thread sanitizer: the memory is not atomic. */
TEST_RACE(what_was_done_before_a_send_is_seen_after_its_receive)
{
    for (size_t capacity = 0; capacity < 3; capacity++) {
        STRAND_SCOPE(s);
        notes chan = STRAND_CHAN_OPEN(notes, s, capacity);
        strand writer = strand_spawn(s, write_notes, &chan);
        struct note *note;
        for (long i = 0; STRAND_RECEIVE(chan, &note) == 0; i++) {
            CHECK_EQ(note->text[i % 4], i);
            note->text[0] = -1;
            free(note);
        }
        strand_join(writer);
    }
}

/* ---- the end of the scope ----------------------------------------------------------------------- */

static _Atomic long dropped[64];
static _Atomic int drops;

static void note_drop(void *element)
{
    int n = drops;
    dropped[n] = *(long *)element; /* before it is counted */
    drops = n + 1;
}

static const strand_chan_attr dropping = {.size = sizeof dropping, .drop = note_drop};

static void leave_with_values(int count)
{
    drops = 0;
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN_WITH(longs, s, 8, &dropping);
    for (long i = 0; i < count + 2; i++)
        send_to(chan, i);
    CHECK_EQ(received_from(chan), 0);
    CHECK_EQ(received_from(chan), 1);
}

TEST_INSIDE(values_that_are_left_in_a_channel_go_to_its_drop_function_in_order)
{
    for (int count = 0; count < 7; count++) {
        leave_with_values(count);
        CHECK_EQ(drops, count);
        for (int i = 0; i < count; i++)
            CHECK_EQ(dropped[i], i + 2);
    }
}

static void *throw_in_scope(void *arg)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN_WITH(longs, s, 1, &dropping);
    send_to(chan, 11);
    return test_throw(arg);
}

TEST_INSIDE(a_channel_ends_also_when_its_scope_is_left_by_an_exception)
{
    drops = 0;
    strand_exception *e = strand_try(throw_in_scope, NULL, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    strand_exception_release(e);
    CHECK_EQ(drops, 1);
    CHECK_EQ(dropped[0], 11);
}

static void *send_then_end(void *arg)
{
    struct peer *peer = arg;
    strand_sleep(100 * STRAND_US);
    send_to(peer->chan, peer->value);
    return NULL;
}

TEST_INSIDE(a_channel_ends_after_the_strands_of_its_scope)
{
    drops = 0;
    {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN_WITH(longs, s, 1, &dropping);
        struct peer peer = {.chan = chan, .value = 3};
        strand_spawn(s, send_then_end, &peer);
        strand_scope_join(s);
    }
    CHECK_EQ(drops, 1);
    CHECK_EQ(dropped[0], 3);
}

/* Strands of the outer scope wait in a channel of the inner one, which is left. */
static void wait_as_strangers(size_t capacity, bool sending)
{
    STRAND_SCOPE(outer);
    struct peer strangers[3];
    drops = 0;
    {
        STRAND_SCOPE(inner);
        longs chan = STRAND_CHAN_OPEN_WITH(longs, inner, capacity, &dropping);
        for (size_t i = 0; sending && i < capacity; i++)
            send_to(chan, 50);
        if (sending)
            spawn_senders(outer, strangers, 3, chan, 0);
        else
            spawn_receivers(outer, strangers, 3, chan);
    }
    strand_scope_join(outer);
    CHECK_EQ(drops, sending ? capacity : 0); /* what senders have is theirs */
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(strangers[i].result, -EPIPE);
        CHECK_EQ(strangers[i].value, sending ? i : -1);
    }
}

TEST_INSIDE(strangers_who_wait_when_the_scope_ends_get_that_it_is_closed)
{
    for (size_t capacity = 0; capacity < 2; capacity++) {
        wait_as_strangers(capacity, true);
        wait_as_strangers(capacity, false);
    }
}

struct maker {
    strand_scope scope;
    longs chan;
    int error;
};

static void *make_there(void *arg)
{
    struct maker *maker = arg;
    maker->chan = STRAND_CHAN_OPEN_WITH(longs, maker->scope, 2, &dropping);
    send_to(maker->chan, 8);
    return NULL;
}

TEST_INSIDE(a_channel_of_an_open_scope_can_be_made_by_others_and_outlives_its_maker)
{
    drops = 0;
    {
        STRAND_SCOPE_OPEN(open);
        STRAND_SCOPE(s);
        struct maker maker = {.scope = open};
        strand_join(strand_spawn(s, make_there, &maker));
        send_to(maker.chan, 9);
        CHECK_EQ(received_from(maker.chan), 8);
        CHECK_EQ(drops, 0);
    }
    CHECK_EQ(drops, 1);
    CHECK_EQ(dropped[0], 9);
}

static strand_scope left_open_scope(void)
{
    STRAND_SCOPE_OPEN(s);
    return s;
}

TEST_INSIDE(a_channel_cannot_be_made_in_an_open_scope_that_has_been_left)
{
    struct maker maker = {.scope = left_open_scope()};
    strand_exception *e = strand_try(make_there, &maker, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -ECANCELED);
    strand_exception_release(e);
}

static void *make_huge(void *arg)
{
    STRAND_SCOPE(s);
    strand_chan_open(s, (size_t)1 << 40, *(size_t *)arg, NULL);
    return NULL;
}

TEST_INSIDE(a_channel_that_memory_does_not_suffice_for_is_not_made)
{
    size_t capacities[] = {(size_t)1 << 23, (size_t)1 << 30, SIZE_MAX};
    for (int i = 0; i < 3; i++) {
        strand_exception *e = strand_try(make_huge, &capacities[i], NULL);
        CHECK_KIND(e, &STRAND_SYSTEM);
        strand_exception_release(e);
    }
}

static void *pass_one(void *arg)
{
    struct peer *peer = arg;
    send_to(peer->chan, peer->value);
    return NULL;
}

/* The owner waits behind the receiver. So when it has a value, the receiver has been served too, and the channel ends,
 * while the sender may still be about to go on; others of another size take the place. */
static void end_early(strand_scope outer, struct peer *peers)
{
    STRAND_SCOPE(inner);
    longs chan = STRAND_CHAN_OPEN(longs, inner, 0);
    for (int i = 0; i < 3; i++)
        peers[i] = (struct peer){.chan = chan, .value = 1};
    strand_spawn(outer, receive_one, &peers[0]);
    await_receivers(1);
    strand_spawn(outer, pass_one, &peers[1]);
    strand_spawn(outer, pass_one, &peers[2]);
    CHECK_EQ(received_from(chan), 1);
}

TEST_RACE(a_channel_may_end_while_what_it_handed_over_still_arrives)
{
    for (long round = 0; round < test_scale(500); round++) {
        STRAND_SCOPE(outer);
        struct peer peers[3];
        end_early(outer, peers);
        STRAND_SCOPE(inner);
        for (int i = 0; i < 3; i++)
            strand_chan_open(inner, 100000, 0, NULL);
        strand_scope_join(outer);
        CHECK_EQ(peers[0].value, 1);
    }
}

static void *use_alone(void *arg)
{
    for (long i = 0; i < test_scale(500); i++) {
        STRAND_SCOPE(s);
        longs one = STRAND_CHAN_OPEN(longs, s, 1), many = STRAND_CHAN_OPEN(longs, s, 40);
        send_to(one, i);
        for (long n = 0; n < 40; n++)
            send_to(many, n);
        CHECK_EQ(received_from(one), i);
        CHECK_EQ(received_from(many), 0);
    }
    return arg;
}

TEST_RACE(channels_come_and_go_on_all_threads)
{
    STRAND_SCOPE(s);
    for (int i = 0; i < 8; i++)
        strand_spawn(s, use_alone, NULL);
    strand_scope_join(s);
}

/* ---- posts ------------------------------------------------------------------------------------- */

TEST_INSIDE(a_strand_may_post_and_what_does_not_fit_stands_in_the_queue)
{
    STRAND_SCOPE(s);
    for (size_t capacity = 0; capacity < 3; capacity++) {
        longs chan = STRAND_CHAN_OPEN(longs, s, capacity);
        for (long i = 0; i < 5; i++)
            CHECK_EQ(STRAND_POST(chan, &i), 0);
        for (long i = 0; i < 5; i++)
            CHECK_EQ(received_from(chan), i);
    }
}

TEST_INSIDE(what_was_posted_before_the_close_is_received_before_it_is_closed)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 2);
    struct peer receivers[2];
    spawn_receivers(s, receivers, 2, chan);
    for (long i = 0; i < 6; i++)
        CHECK_EQ(STRAND_POST(chan, &i), 0);
    strand_chan_close(chan.untyped);
    long value;
    CHECK_EQ(STRAND_POST(chan, &value), -EPIPE);
    intptr_t sum = 0;
    int count = 0;
    while (STRAND_RECEIVE(chan, &value) == 0)
        sum += value, count++;
    strand_scope_join(s);
    CHECK_EQ(count, 4);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(receivers[i].result, 0);
        sum += receivers[i].value;
    }
    CHECK_EQ(sum, 15);
}

TEST_INSIDE(the_close_behind_posts_ends_the_waits_of_receivers_that_get_none)
{
    for (long round = 0; round < test_scale(100); round++) {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, (size_t)(round % 2));
        strand receivers[5];
        for (int i = 0; i < 5; i++)
            receivers[i] = strand_spawn(s, receive_until_closed, &chan);
        if (round % 3)
            strand_yield();
        for (long i = 0; i < 3; i++)
            CHECK_EQ(STRAND_POST(chan, &i), 0);
        strand_chan_close(chan.untyped);
        intptr_t received = 0;
        for (int i = 0; i < 5; i++)
            received += (intptr_t)strand_join(receivers[i]);
        CHECK_EQ(received, 3);
    }
}

TEST_INSIDE(posted_values_that_are_left_go_to_the_drop_function)
{
    for (size_t capacity = 0; capacity < 3; capacity++) {
        drops = 0;
        {
            STRAND_SCOPE(s);
            longs chan = STRAND_CHAN_OPEN_WITH(longs, s, capacity, &dropping);
            for (long i = 0; i < 4; i++)
                CHECK_EQ(STRAND_POST(chan, &i), 0);
            CHECK_EQ(received_from(chan), 0);
        }
        for (int i = 0; i < 100 && drops < 3; i++)
            strand_sleep(STRAND_MS); /* some may be on their way */
        CHECK_EQ(drops, 3);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(dropped[i], i + 1);
    }
}

static strand_chan gone_channel(void)
{
    STRAND_SCOPE(s);
    return strand_chan_open(s, sizeof(long), 1, NULL);
}

TEST_INSIDE(posting_to_a_channel_that_is_gone_says_that_it_is_closed)
{
    long value = 1;
    strand_chan gone = gone_channel();
    CHECK_EQ(strand_chan_post(gone, &value), -EPIPE);
    STRAND_SCOPE(s);
    strand_chan other = strand_chan_open(s, sizeof(long), 1, NULL); /* in its place, perhaps */
    CHECK_EQ(strand_chan_post(gone, &value), -EPIPE);
    CHECK_EQ(strand_chan_post((strand_chan){0}, &value), -EPIPE);
    CHECK_EQ(strand_chan_length(other), 0);
}

struct poster {
    longs chan;
    long number, count;
    _Atomic int accepted, stop;
    pthread_t thread;
};

static void *post_numbered(void *arg)
{
    struct poster *poster = arg;
    for (long i = 0; i < poster->count; i++) {
        long value = poster->number * 1000000 + i;
        int error = STRAND_POST(poster->chan, &value);
        if (error == -EPIPE)
            break;
        CHECK_EQ(error, 0);
        poster->accepted++;
        if (i % 32 == 31) /* not to fill the memory where the receivers come late */
            nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    }
    return NULL;
}

static void start_poster(struct poster *poster, longs chan, long number, long count)
{
    *poster = (struct poster){.chan = chan, .number = number, .count = count};
    CHECK_EQ(pthread_create(&poster->thread, NULL, post_numbered, poster), 0);
}

TEST_REAL_INSIDE(values_of_one_plain_thread_come_in_the_order_of_posting)
{
    for (size_t capacity = 0; capacity < 9; capacity += 4) {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, capacity);
        struct poster posters[CROWD];
        for (int i = 0; i < CROWD; i++)
            start_poster(&posters[i], chan, i, test_scale(2000));
        long last[CROWD] = {-1, -1, -1, -1};
        for (long n = 0; n < CROWD * test_scale(2000); n++) {
            long value = received_from(chan);
            CHECK_EQ(value % 1000000, last[value / 1000000] + 1);
            last[value / 1000000]++;
        }
        for (int i = 0; i < CROWD; i++)
            pthread_join(posters[i].thread, NULL);
    }
}

TEST_REAL_INSIDE(plain_threads_post_against_the_close_and_what_was_accepted_is_received)
{
    for (long round = 0; round < test_scale(40); round++) {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, (size_t)(round % 3));
        struct poster posters[3];
        strand receivers[3];
        for (int i = 0; i < 3; i++)
            receivers[i] = strand_spawn(s, receive_until_closed, &chan);
        for (int i = 0; i < 3; i++)
            start_poster(&posters[i], chan, i, 100000);
        while (posters[0].accepted < 20)
            strand_sleep(20 * STRAND_US);
        strand_chan_close(chan.untyped);
        intptr_t received = 0, accepted = 0;
        for (int i = 0; i < 3; i++)
            received += (intptr_t)strand_join(receivers[i]);
        for (int i = 0; i < 3; i++) {
            pthread_join(posters[i].thread, NULL);
            accepted += posters[i].accepted;
        }
        CHECK_EQ(received, accepted);
    }
}

static _Atomic int counted_drops;

static void count_drop(void *element)
{
    CHECK(*(long *)element >= 0);
    counted_drops++;
}

static struct poster late[2];
static intptr_t taken;

/* The channel ends, and then the run, while plain threads post. */
static void *leave_while_posted_to(void *arg)
{
    static const strand_chan_attr counting = {.size = sizeof counting, .drop = count_drop};
    {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN_WITH(longs, s, 3, &counting);
        for (int i = 0; i < 2; i++)
            start_poster(&late[i], chan, i, 1000000);
        for (taken = 0; taken < 10; taken++)
            received_from(chan);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(late[i].thread, NULL);
    return arg;
}

TEST_REAL(each_posted_value_is_received_or_dropped_once_also_at_the_end_of_the_run)
{
    for (long round = 0; round < test_scale(40); round++) {
        counted_drops = 0;
        test_run(leave_while_posted_to, NULL);
        CHECK_EQ(counted_drops + taken, late[0].accepted + late[1].accepted);
    }
}

static void *post_later(void *arg)
{
    struct poster *poster = arg;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    long value = 6;
    CHECK_EQ(STRAND_POST(poster->chan, &value), 0);
    return NULL;
}

TEST_REAL_INSIDE(a_post_wakes_a_run_that_waits)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    struct poster poster = {.chan = chan};
    CHECK_EQ(pthread_create(&poster.thread, NULL, post_later, &poster), 0);
    CHECK_EQ(received_from(chan), 6);
    pthread_join(poster.thread, NULL);
}
