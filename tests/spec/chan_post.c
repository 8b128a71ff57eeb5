/*
 * Posts: values from plain threads, and from strands that do not wait.
 */
#define SUITE chan_post
#include "drops.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { CROWD = 4 };

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

TEST_INSIDE(a_value_posted_by_a_strand_arrives_at_once_and_before_later_sends)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 2);
    for (long round = 0; round < 100; round++) {
        long posted = round, sent = -round, value;
        CHECK_EQ(STRAND_POST(chan, &posted), 0);
        CHECK_EQ(STRAND_CHAN_LENGTH(chan), 1);
        CHECK_EQ(STRAND_SEND(chan, &sent), 0);
        CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), 0);
        CHECK_EQ(value, posted);
        CHECK_EQ(STRAND_TRY_RECEIVE(chan, &value), 0);
        CHECK_EQ(value, sent);
    }
}

TEST_INSIDE(a_value_posted_by_a_strand_goes_to_a_waiting_receiver)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    struct peer receivers[2];
    spawn_receivers(s, receivers, 2, chan);
    await_receivers(2);
    for (long i = 1; i <= 2; i++)
        CHECK_EQ(STRAND_POST(chan, &i), 0);
    strand_scope_join(s);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(receivers[i].value, i + 1);
}

/* H-04 */
TEST_INSIDE(values_posted_before_the_close_are_received_before_the_channel_is_closed)
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

/* H-02 */
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

/* H-02 */
TEST_REAL_INSIDE(a_post_wakes_a_run_that_waits)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    struct poster poster = {.chan = chan};
    CHECK_EQ(pthread_create(&poster.thread, NULL, post_later, &poster), 0);
    CHECK_EQ(received_from(chan), 6);
    pthread_join(poster.thread, NULL);
}
