/*
 * Floods from outside of a run: while its one thread is held up, a plain thread sends more than can be taken at once.
 * What has come is taken in parts, in order, and strands and timers have their turns in between.
 */
#define SUITE flood
#include "channels.h"

#include "strand/actor.h"

#include <errno.h>
#include <pthread.h>

enum { MANY = 5000, PART = MANY / 2 };

static _Atomic int arrived;

static void count(void *body)
{
    (void)body;
    arrived++;
}

STRAND_MESSAGE_WITH(drop_counted, count, { char none; });

static void ignore(void *state, strand_message *message)
{
    (void)state, (void)message;
}

static const strand_actor_class ignorer = {.size = sizeof ignorer, .name = "ignorer", .receive = ignore};

/* On the run's only thread: nothing is taken before it has returned. */
static void hold_up_while(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, fn, arg), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *tell_many(void *arg)
{
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(strand_tell(*(strand_actor *)arg, STRAND_MSG(drop_counted)), 0);
    return NULL;
}

/* A message to an actor that has ended is dropped as soon as it arrives. */
static void *take_turns(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &ignorer, NULL, 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    arrived = 0;
    hold_up_while(tell_many, &a);
    if (arg)
        strand_sleep(1);
    CHECK(arrived < PART);
    for (int before = arrived, now; before < MANY; before = now) {
        strand_yield();
        now = arrived;
        CHECK(now - before < PART);
    }
    CHECK_EQ(arrived, MANY);
    return NULL;
}

static void run_on_one_thread(strand_fn *fn, void *arg)
{
    struct strand_options options = test_options();
    test_set_threads(&options, 1);
    strand_run(&options, fn, arg);
}

TEST_REAL(strands_have_turns_while_many_messages_from_outside_arrive)
{
    run_on_one_thread(take_turns, NULL);
}

TEST_REAL(a_timer_fires_while_many_messages_from_outside_arrive)
{
    run_on_one_thread(take_turns, TEST_PTR(1));
}

static void *post_many(void *arg)
{
    longs chan = *(longs *)arg;
    for (long i = 0; i < MANY; i++)
        CHECK_EQ(STRAND_POST(chan, &i), 0);
    return NULL;
}

static void *receive_in_order(void *arg)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    hold_up_while(post_many, &chan);
    for (long i = 0; i < MANY; i++)
        CHECK_EQ(received_from(chan), i);
    return arg;
}

TEST_REAL(many_values_from_outside_come_in_order)
{
    run_on_one_thread(receive_in_order, NULL);
}
