/*
 * The memory of actors: more awake actors than strands, answers that are given, memory that is used again, and the size
 * of a dormant actor.
 */
#define SUITE actor_memory
#define ONE_SEED_IN 10 /* each seed is thousands of actors */
#include "test.h"

#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/sync.h"

STRAND_MESSAGE(number, { int n; });

static _Atomic int count;

/* ---- many at once ------------------------------------------------------------------------------------------------ */

enum { MANY = 3000 };

static void count_message(void *state, strand_message *message)
{
    (void)state, (void)message;
    count++;
}

static const strand_actor_class counter = {.size = sizeof counter, .name = "counter", .receive = count_message};

TEST_INSIDE(more_actors_may_get_messages_at_once_than_may_have_strands)
{
    count = 0;
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &counter, NULL, 0), STRAND_MSG(number, i)), 0);
    strand_actors_join(system);
    CHECK_EQ(count, MANY);
}

static void block(void *state, strand_message *message)
{
    count_message(state, message);
    strand_event_wait(*(strand_event **)state);
    count++;
}

static const strand_actor_class blocker = {
    .size = sizeof blocker, .name = "blocker", .state_size = sizeof(strand_event *), .receive = block};

TEST_INSIDE(so_many_actors_may_all_block)
{
    static strand_event go;
    strand_event *at = &go;
    go = (strand_event){{0}};
    count = 0;
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &blocker, &at, sizeof at), STRAND_MSG(number, i)), 0);
    while (count < MANY)
        strand_yield();
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_EQ(count, 2 * MANY);
}

/* ---- given answers, and memory that is used again --------------------------------------------------------------- */

static void give_answer(void *state, strand_message *message)
{
    static number answer = {7};
    (void)state;
    strand_actor_give(message->sender, &number_message, &answer);
}

static const strand_actor_class giver = {.size = sizeof giver, .name = "giver", .receive = give_answer};

TEST_INSIDE(an_answer_may_be_given)
{
    number *answer = NULL;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &giver, NULL, 0);
    CHECK_EQ(strand_ask(a, STRAND_MSG(number, 1), STRAND_INTO_GIVEN(number, &answer)), 0);
    CHECK_EQ(answer->n, 7);
}

static void ask_and_wait(void)
{
    number *answer;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &giver, NULL, 0);
    CHECK_EQ(strand_ask(a, STRAND_MSG(number, 1), STRAND_INTO_GIVEN(number, &answer)), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
}

TEST_INSIDE(channels_may_lie_where_actors_lay)
{
    enum { CHANNELS = 300 };
    for (int i = 0; i < 5; i++)
        ask_and_wait();
    STRAND_SCOPE(scope);
    for (long i = 0, got = 0; i < CHANNELS; i++) {
        strand_chan c = strand_chan_open(scope, sizeof i, 1, NULL);
        CHECK_EQ(strand_chan_send(c, &i), 0);
        CHECK_EQ(strand_chan_receive(c, &got), 0);
        CHECK_EQ(got, i);
    }
}

/* ---- what a dormant one takes --------------------------------------------------------------------------------- */

#if !TEST_ASAN && !TEST_TSAN /* they have bytes of their own beside each */
static void add_to(void *state, strand_message *message)
{
    *(uint64_t *)state += (uint64_t)STRAND_IS(message, number)->n;
    count++;
}

static const strand_actor_class small = {
    .size = sizeof small, .name = "small", .state_size = sizeof(uint64_t), .receive = add_to};

static void *count_bytes(void *arg)
{
    enum { FIRST = 1000, ACTORS = 200000, TOLD = 50 };
    count = 0;
    STRAND_ACTORS(system, NULL);
    long before = 0;
    for (int i = 0; i < FIRST + ACTORS; i++) {
        if (i == FIRST)
            before = (long)test_resident_bytes();
        CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &small, NULL, 0), STRAND_MSG(number, i)), 0);
        while (i % TOLD == 0 && count < i)
            strand_yield();
    }
    strand_actors_join(system);
    CHECK_EQ(count, FIRST + ACTORS);
    CHECK(((long)test_resident_bytes() - before) / ACTORS < 72); /* memory comes in pieces of some MiB */
    return arg;
}

/* 56 bytes with the state. Each has been awake; no more than a few at a time. */
/* S-09, S-12 */
TEST_REAL(an_actor_that_has_been_awake_takes_no_more_than_its_cell)
{
    strand_options options = test_options();
    options.threads = 1; /* each thread has memory of its own at hand */
    strand_run(&options, count_bytes, NULL);
}
#endif
