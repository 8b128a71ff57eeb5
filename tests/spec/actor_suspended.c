/*
 * Suspended actors: by request, or because they have failed and their supervisors have not decided yet.
 */
#define SUITE actor_suspended
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(act, { void (*fn)(strand_message *); });

static strand_event go, born;
static strand_actor child;
static int bad_starts;
static enum strand_directive directive;

static void begin(enum strand_directive what)
{
    go = born = (strand_event){{0}};
    child = (strand_actor){{0, 0}};
    bad_starts = 0;
    directive = what;
}

/* Counts the numbers that it gets since its start. */
struct counter {
    bool started;
    int count;
};

static void count_numbers(void *state, strand_message *message)
{
    struct counter *me = state;
    const act *a = STRAND_IS(message, act);
    const number *n = STRAND_IS(message, number);
    CHECK(me->started);
    if (a)
        a->fn(message);
    else if (n)
        test_log("%d/%d", n->n, ++me->count);
}

/* A few times it fails. */
static void start_badly(void *state, const void *args)
{
    (void)args;
    if (bad_starts && bad_starts--) {
        test_log("bad");
        strand_throw(&TEST_ERROR, "at the start");
    }
    test_log("start");
    ((struct counter *)state)->started = true;
}

static const strand_actor_class counting = {.size = sizeof counting,
                                            .name = "counting",
                                            .state_size = sizeof(struct counter),
                                            .receive = count_numbers,
                                            .start = start_badly};

static void fail(strand_message *message)
{
    (void)message;
    strand_throw(&TEST_ERROR, "on purpose");
}

static void await_go(strand_message *message)
{
    (void)message;
    strand_event_wait(&go);
}

static void tell(strand_actor to, void (*fn)(strand_message *))
{
    CHECK_EQ(strand_tell(to, STRAND_MSG(act, fn)), 0);
}

static void have_child(strand_message *message)
{
    (void)message;
    child = strand_actor_spawn_child(NULL, &counting, NULL, 0);
    strand_event_set(&born);
}

static void have_blocked_child(strand_message *message)
{
    have_child(message);
    tell(child, await_go);
}

/* ---- suspended while something else is under way -------------------------------------------------------------------
 */

TEST_INSIDE(the_latest_of_suspend_and_resume_wins)
{
    STRAND_ACTORS(system, NULL);
    begin(STRAND_RESTART);
    strand_actor a = strand_actor_spawn(system, NULL, &counting, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK_LOG("start 1/1");
    CHECK_EQ(strand_actor_resume(a), 0);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 2)), 0);
    strand_actors_join(system);
    CHECK_LOG("start 1/1");
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK_LOG("start 1/1 2/2");
}

TEST_INSIDE(the_latest_of_suspend_and_restart_wins)
{
    STRAND_ACTORS(system, NULL);
    begin(STRAND_RESTART);
    strand_actor a = strand_actor_spawn(system, NULL, &counting, NULL, 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_actor_restart(a), 0);
    strand_actors_join(system);
    CHECK_LOG("start start 1/1");
    CHECK_EQ(strand_actor_restart(a), 0);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 2)), 0);
    strand_actors_join(system);
    CHECK_LOG("start start 1/1 start");
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK_LOG("start start 1/1 start 2/1");
}

/* Spawns an actor that restarts when its child, which blocks, has ended. */
static strand_actor spawn_one_that_waits(strand_actors system)
{
    begin(STRAND_RESTART);
    strand_actor a = strand_actor_spawn(system, NULL, &counting, NULL, 0);
    tell(a, have_blocked_child);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_restart(a), 0);
    strand_actors_join(system);
    test_log_clear();
    return a;
}

TEST_INSIDE(an_actor_with_a_pending_restart_may_be_suspended)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = spawn_one_that_waits(system);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_LOG("start");
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK_LOG("start 1/1");
}

TEST_INSIDE(an_actor_with_a_pending_restart_may_be_suspended_and_resumed)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = spawn_one_that_waits(system);
    CHECK_EQ(strand_actor_suspend(a), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_resume(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("");
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_LOG("start 1/1");
}

TEST_INSIDE(a_suspended_actor_continues_after_a_restart)
{
    STRAND_ACTORS(system, NULL);
    begin(STRAND_RESTART);
    strand_actor a = strand_actor_spawn(system, NULL, &counting, NULL, 0);
    tell(a, have_blocked_child);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_restart(a), 0);
    test_log_clear();
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_LOG("start 1/1");
}

/* ---- a bad start ---------------------------------------------------------------------------------------------------
 */

TEST_INSIDE(an_actor_that_has_not_started_handles_no_messages_although_it_is_resumed)
{
    STRAND_ACTORS(system, NULL);
    begin(STRAND_RESTART);
    bad_starts = 2;
    strand_actor a = strand_actor_spawn(system, NULL, &counting, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(strand_actor_suspend(a), 0);
        CHECK_EQ(strand_actor_resume(a), 0);
        strand_yield();
    }
    strand_actors_join(system);
    CHECK_LOG("bad bad start 1/1"); /* a decision applies only while the actor is suspended by that failure */
}

static enum strand_directive decide(void *state, strand_actor which, const strand_exception *why)
{
    (void)state, (void)which;
    CHECK_KIND(why, &TEST_ERROR);
    test_log("!");
    return directive;
}

static void pass_on(void *state, strand_message *message)
{
    (void)state;
    if (child.bits[1])
        strand_message_forward(message, child);
    else
        have_child(message);
}

static const strand_actor_class supervisor = {
    .size = sizeof supervisor, .name = "supervisor", .receive = pass_on, .decide = decide};

/* Has a child that starts badly so often. */
static strand_actor spawn_supervisor(strand_actors system, const strand_actor_class *class, int bad)
{
    strand_actor a = strand_actor_spawn(system, NULL, class, NULL, 0);
    bad_starts = bad;
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 0)), 0);
    strand_actors_join(system);
    return a;
}

TEST_INSIDE(an_actor_whose_start_has_failed_restarts_when_it_is_resumed)
{
    STRAND_ACTORS(system, NULL);
    begin(STRAND_RESUME);
    strand_actor a = spawn_supervisor(system, &supervisor, 2);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("bad ! bad ! start 1/1");
}

static const strand_actor_class slow = {
    .size = sizeof slow, .name = "slow", .receive = pass_on, .backoff_ns = 20 * STRAND_MS};

TEST_INSIDE(an_actor_that_waits_for_its_restart_handles_no_messages_before)
{
    STRAND_ACTORS(system, NULL);
    begin(STRAND_RESTART);
    strand_actor a = strand_actor_spawn(system, NULL, &slow, NULL, 0);
    bad_starts = 1;
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 0)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    while (!test_log_is("bad"))
        strand_yield();
    strand_event_wait(&born);
    CHECK_EQ(strand_actor_resume(child), 0); /* the message's handling finds that it has started */
    strand_sleep(40 * STRAND_MS);
    strand_actors_join(system);
    CHECK(test_log_is("bad start 1/1") || test_log_is("bad start 1/1 start"));
}

/* ---- a failure -----------------------------------------------------------------------------------------------------
 */

static strand_actor middle;

static enum strand_directive give_up(void *state, strand_actor which, const strand_exception *why)
{
    (void)state, (void)which, (void)why;
    return STRAND_ESCALATE;
}

static const strand_actor_class weak = {.size = sizeof weak, .name = "weak", .receive = pass_on, .decide = give_up};

static void pass_down(void *state, strand_message *message)
{
    (void)state;
    if (!middle.bits[1])
        middle = strand_actor_spawn_child(NULL, &weak, NULL, 0);
    strand_message_forward(message, middle);
}

static const strand_actor_class top = {.size = sizeof top, .name = "top", .receive = pass_down, .decide = decide};

static void escalate(enum strand_directive what)
{
    STRAND_ACTORS(system, NULL);
    begin(what);
    middle = child;
    strand_actor a = spawn_supervisor(system, &top, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(act, fail)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 2)), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_ended(child), what != STRAND_RESUME);
    CHECK_EQ(strand_actor_ended(middle), what == STRAND_STOP);
}

TEST_INSIDE(a_failure_that_is_escalated_and_then_forgiven_is_forgiven_the_child_too)
{
    escalate(STRAND_RESUME);
    CHECK_LOG("start 1/1 ! 2/2");
}

TEST_INSIDE(a_failure_that_is_escalated_may_restart_the_supervisor)
{
    escalate(STRAND_RESTART);
    CHECK_LOG("start 1/1 !");
}

TEST_INSIDE(a_failure_that_is_escalated_may_stop_the_supervisor)
{
    escalate(STRAND_STOP);
    CHECK_LOG("start 1/1 !");
}

static int ask(strand_actor whom)
{
    number got;
    return strand_ask(whom, STRAND_MSG(act, fail), STRAND_INTO(number, &got));
}

TEST_INSIDE(an_asker_of_an_actor_that_fails_gets_an_error_whatever_the_supervisor_decides)
{
    STRAND_ACTORS(system, NULL);
    begin(STRAND_RESUME);
    (void)spawn_supervisor(system, &supervisor, 0);
    strand_event_wait(&born);
    CHECK_EQ(ask(child), -EPIPE);
    strand_actors_join(system);
    directive = STRAND_RESTART;
    CHECK_EQ(ask(child), -EPIPE);
    strand_actors_join(system);
    CHECK(!strand_actor_ended(child));
    CHECK_LOG("start ! ! start");
}

static void cancel_itself(strand_message *message)
{
    (void)message;
    strand_cancel(strand_self(), "oops");
    strand_yield();
    CHECK_FAIL("not interrupted");
}

static enum strand_directive log_and_stop(void *state, strand_actor which, const strand_exception *why)
{
    (void)state, (void)which;
    CHECK_KIND(why, &STRAND_INTERRUPTED);
    test_log("!");
    return STRAND_RESTART;
}

static const strand_actor_class strict = {
    .size = sizeof strict, .name = "strict", .receive = pass_on, .decide = log_and_stop};

TEST_INSIDE(an_actor_that_cancels_itself_has_failed)
{
    STRAND_ACTORS(system, NULL);
    begin(STRAND_RESTART);
    strand_actor a = spawn_supervisor(system, &strict, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(act, cancel_itself)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("start ! start 1/1");
}

TEST_INSIDE(an_actor_that_is_interrupted_because_it_is_to_stop_has_not_failed)
{
    STRAND_ACTORS(system, NULL);
    begin(STRAND_RESTART);
    strand_actor a = spawn_supervisor(system, &strict, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(act, await_go)), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_stop(child, STRAND_STOP_NOW), 0);
    CHECK_EQ(strand_actor_wait(child), 0);
    CHECK_LOG("start");
}
