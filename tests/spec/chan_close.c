/*
 * The close of a channel: what was sent before it is received, and nothing after it. And its end, with its scope.
 */
#define SUITE chan_close
#include "drops.h"

#include <errno.h>

/* ---- the close -------------------------------------------------------------------------------- */

/* H-03 */
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

/* H-04 */
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

/* H-04 */
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

/* H-02 */
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

/* H-03, H-04 */
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

/* ---- the end of the scope ----------------------------------------------------------------------- */

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
    CHECK_THROWS(throw_in_scope, NULL, &TEST_ERROR);
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
static void wait_as_unrelated(size_t capacity, bool sending)
{
    STRAND_SCOPE(outer);
    struct peer unrelated[3];
    drops = 0;
    {
        STRAND_SCOPE(inner);
        longs chan = STRAND_CHAN_OPEN_WITH(longs, inner, capacity, &dropping);
        for (size_t i = 0; sending && i < capacity; i++)
            send_to(chan, 50);
        if (sending)
            spawn_senders(outer, unrelated, 3, chan, 0);
        else
            spawn_receivers(outer, unrelated, 3, chan);
    }
    strand_scope_join(outer);
    CHECK_EQ(drops, sending ? capacity : 0); /* what senders have is theirs */
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(unrelated[i].result, -EPIPE);
        CHECK_EQ(unrelated[i].value, sending ? i : -1);
    }
}

TEST_INSIDE(unrelated_strands_that_wait_when_the_scope_ends_get_closed)
{
    for (size_t capacity = 0; capacity < 2; capacity++) {
        wait_as_unrelated(capacity, true);
        wait_as_unrelated(capacity, false);
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
        CHECK_THROWS(make_huge, &capacities[i], &STRAND_SYSTEM);
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
