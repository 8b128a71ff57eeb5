/*
 * Stop functions that throw or take long, and the restarts of children that have ended.
 */
#define SUITE actor_stop
#include "test.h"

#include "strand/actor.h"

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(fail, { char none; });

static void log_or_fail(void *state, strand_message *message)
{
    (void)state;
    const number *n = STRAND_IS(message, number);
    if (!n)
        strand_throw(&TEST_ERROR, "on purpose");
    test_log("%d", n->n);
}

static void stop_badly(void *state)
{
    (void)state;
    test_log("stop");
    strand_throw(&TEST_ERROR, "in stop");
}

static const strand_actor_class bad = {.size = sizeof bad, .name = "bad", .receive = log_or_fail, .stop = stop_badly};

TEST_INSIDE(an_actor_that_throws_while_it_stops_has_stopped)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &bad, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("stop 1");
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_LOG("stop 1 stop");
}

static void make_one_that_fails(void *state, strand_message *message)
{
    strand_actor *child = state;
    if (STRAND_IS(message, number) || strand_actor_ended(*child))
        *child = strand_actor_spawn_child(NULL, &bad, NULL, 0);
    strand_message_forward(message, *child);
}

static const strand_actor_class strict = {.size = sizeof strict,
                                          .name = "strict",
                                          .state_size = sizeof(strand_actor),
                                          .receive = make_one_that_fails,
                                          .max_restarts = 1};

TEST_INSIDE(restarts_of_children_that_have_ended_do_not_count)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &strict, NULL, 0);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
        for (int j = 0; j < 2; j++) {
            CHECK_EQ(strand_tell(a, STRAND_MSG(fail)), 0);
            strand_actors_join(system);
        }
    }
    CHECK_LOG("1 stop stop 2 stop stop 3 stop stop");
}

static void stop_slowly(void *state)
{
    (void)state;
    test_log("stops");
    strand_sleep(5 * STRAND_MS);
    test_log("stopped");
}

static const strand_actor_class slow = {
    .size = sizeof slow, .name = "slow", .receive = log_or_fail, .stop = stop_slowly};

TEST_INSIDE(a_stop_at_once_does_not_interrupt_the_function_for_the_end)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &slow, NULL, 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    while (!test_log_is("stops"))
        strand_yield();
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NOW), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_LOG("stops stopped");
}
