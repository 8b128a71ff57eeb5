/*
 * Channels: values from strand to strand, first come first served on both sides; each is received once, or not sent.
 * The close and the end of a channel are in chan_close.c, posts in chan_post.c.
 */
#define SUITE chan
#include "channels.h"

#include <errno.h>

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

/* H-01, H-02 */
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

/* H-01 */
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

TEST_INSIDE(a_sent_message_is_a_copy)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 2);
    long value = 5;
    CHECK_EQ(STRAND_SEND(chan, &value), 0);
    value = 6;
    CHECK_EQ(received_from(chan), 5);
}

/* ---- waiting, and the order ------------------------------------------------------------------- */

/* H-01 */
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

/* H-01 */
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

/* H-05, contract 5.3 */
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

/* H-05, contract 5.3 */
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

/* H-06 */
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

/* H-06, contract 5.3 */
TEST_INSIDE(a_receive_that_makes_room_lets_the_first_queued_sender_go)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 2);
    send_to(chan, 0);
    send_to(chan, 1);
    struct peer senders[2];
    spawn_senders(s, senders, 2, chan, 2);
    CHECK_EQ(received_from(chan), 0);
    CHECK_EQ(strand_chan_length(chan.untyped), 2); /* its value is in the buffer, in any order of running */
    strand_join(senders[0].strand);
    CHECK_EQ(senders[0].result, 0);
    CHECK_EQ(senders[1].done, 0);
    long late = 9;
    CHECK_EQ(STRAND_TRY_SEND(chan, &late), -EAGAIN);
    for (long i = 1; i < 4; i++)
        CHECK_EQ(received_from(chan), i);
    strand_join(senders[1].strand);
}

/* H-05 */
TEST_INSIDE(a_later_sender_does_not_overtake_a_queued_one)
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

/* H-02 */
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

/* H-02 */
TEST_INSIDE(trying_serves_a_waiter)
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

/* H-02, contract 4.21 */
TEST_INSIDE(trying_posting_and_closing_are_never_interrupted)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 1);
    test_run_cancelled(try_all, &chan);
    CHECK_LOG("not interrupted");
    CHECK_EQ(received_from(chan), 3);
}

/* ---- interruption: it happened, or it threw --------------------------------------------------- */

/* H-08 */
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

/* H-08 */
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
    CHECK_THROWS(receive_in_time, &chan, &STRAND_TIMED_OUT);
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
    CHECK_THROWS(send_in_time, &chan, &STRAND_TIMED_OUT);
    long value;
    CHECK_EQ(received_from(chan), 0);
    CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), -EAGAIN);
}

static void *receive_shielded(void *arg)
{
    STRAND_SHIELD;
    return receive_one(arg);
}

/* H-05 */
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

/* contract 5.1 */
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

/* The values of each sender arrive in the order of sending. */
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

/* H-06 */
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
/* contract 8.2 */
TEST_RACE(a_receiver_sees_what_was_done_before_the_send)
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

/* ---- typed ---------------------------------------------------------------------------------------- */

/* Whose name stands in the middle of it, or behind. */
typedef STRAND_CHAN(char[8]) words;
typedef STRAND_CHAN(int (*)(int)) functions;

static int increment(int n)
{
    return n + 1;
}

/* H-01 */
TEST_INSIDE(arrays_and_addresses_of_functions_are_elements_like_others)
{
    STRAND_SCOPE(s);
    words chan = STRAND_CHAN_OPEN(words, s, 2);
    const char constant[8] = "seven";
    char word[8] = "eight";
    CHECK_EQ(STRAND_SEND(chan, &constant), 0);
    CHECK_EQ(STRAND_SEND(chan, &word), 0);
    CHECK_EQ(STRAND_RECEIVE(chan, &word), 0);
    CHECK_STR(word, "seven");
    functions calls = STRAND_CHAN_OPEN(functions, s, 1);
    int (*call)(int) = increment;
    CHECK_EQ(STRAND_SEND(calls, &call), 0);
    CHECK_EQ(STRAND_RECEIVE(calls, &call), 0);
    CHECK_EQ(call(1), 2);
}

/* H-02 */
TEST_INSIDE(the_channel_and_the_value_of_a_typed_call_are_evaluated_once)
{
    STRAND_SCOPE(s);
    notes chans[2] = {STRAND_CHAN_OPEN(notes, s, 1), STRAND_CHAN_OPEN(notes, s, 1)}, *chan = chans;
    struct note *values[2] = {NULL, NULL}, **value = values;
    CHECK_EQ(STRAND_SEND(*chan++, value++), 0);
    CHECK_EQ(STRAND_TRY_SEND(*chan++, value++), 0);
    CHECK_PTR(chan, chans + 2);
    CHECK_PTR(value, values + 2);
    CHECK_EQ(STRAND_RECEIVE(*--chan, --value), 0);
    CHECK_EQ(STRAND_TRY_RECEIVE(*--chan, --value), 0);
    CHECK_PTR(chan, chans);
    CHECK_PTR(value, values);
}
