/*
 * Messages and orders that reach an actor while it restarts or decides about a child; and waits for such an actor.
 */
#define SUITE actor_restarting
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(act, { void (*fn)(strand_message *); });

static strand_event go, release, begun;
static strand_actor parent, child, kept;
static _Atomic int drops;

static void note_drop(void *body)
{
    (void)body;
    drops++;
}

STRAND_MESSAGE_WITH(owned, note_drop, { int n; });

static void begin(void)
{
    go = release = begun = (strand_event){{0}};
    parent = child = kept = (strand_actor){{0, 0}};
    drops = 0;
}

/* Calls the function in its message, and logs numbers. */
static void perform(void *state, strand_message *message)
{
    (void)state;
    const act *a = STRAND_IS(message, act);
    const number *n = STRAND_IS(message, number);
    if (a)
        a->fn(message);
    else if (n)
        test_log("%d", n->n);
    else if (STRAND_IS(message, owned))
        test_log("owned");
}

static const strand_actor_class puppet = {.size = sizeof puppet, .name = "puppet", .receive = perform};

static void await_go(strand_message *message)
{
    (void)message;
    strand_event_wait(&go);
}

static void await_release(strand_message *message)
{
    (void)message;
    strand_event_wait(&release);
}

static void fail(strand_message *message)
{
    (void)message;
    strand_throw(&TEST_ERROR, "on purpose");
}

static void tell(strand_actor to, void (*fn)(strand_message *))
{
    CHECK_EQ(strand_tell(to, STRAND_MSG(act, fn)), 0);
}

static void have_child(strand_message *message)
{
    (void)message;
    child = strand_actor_spawn_child(NULL, &puppet, NULL, 0);
}

static void have_blocked_child(strand_message *message)
{
    have_child(message);
    tell(child, await_go);
}

/* Spawns a parent with this child, and returns when all others wait for an event or an answer. */
static void spawn_family(strand_actors system, const strand_actor_class *class, void (*has)(strand_message *))
{
    begin();
    parent = strand_actor_spawn(system, NULL, class, NULL, 0);
    tell(parent, has);
    strand_actors_join(system);
}

/* ---- while it restarts ---------------------------------------------------------------------------------------- */

static void start_and_log(void *state, const void *args)
{
    (void)state, (void)args;
    test_log("start");
}

static void stop_slowly(void *state)
{
    (void)state;
    test_log("(");
    strand_event_wait(&go);
    test_log(")");
}

static const strand_actor_class thorough = {
    .size = sizeof thorough, .name = "thorough", .receive = perform, .start = start_and_log, .stop = stop_slowly};

TEST_INSIDE(a_stop_at_once_does_not_interrupt_the_stop_function_of_a_restarting_actor)
{
    STRAND_ACTORS(system, NULL);
    begin();
    strand_actor a = strand_actor_spawn(system, NULL, &thorough, NULL, 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_restart(a), 0);
    strand_actors_join(system);
    CHECK_LOG("start (");
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NOW), 0);
    strand_actors_join(system);
    CHECK_LOG("start (");
    strand_event_set(&go);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_LOG("start ( )"); /* and it does not start in order to stop */
}

static enum strand_directive give_up(void *state, strand_actor which, const strand_exception *why)
{
    (void)state, (void)which, (void)why;
    test_log("!");
    return STRAND_ESCALATE;
}

static enum strand_directive fail_to_decide(void *state, strand_actor which, const strand_exception *why)
{
    (void)state, (void)which, (void)why;
    test_log("!");
    strand_throw(&TEST_ERROR, "cannot decide");
}

static void fail_when_released(strand_message *message)
{
    await_release(message);
    fail(message);
}

static void have_two_children(strand_message *message)
{
    have_blocked_child(message);
    have_child(message);
    tell(child, fail_when_released);
}

/* One of its children fails, another is waited for. */
static void restart_while_a_child_fails(const strand_actor_class *class)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, class, have_two_children);
    CHECK_EQ(strand_actor_restart(parent), 0);
    strand_actors_join(system);
    strand_event_set(&release);
    strand_actors_join(system);
    CHECK(strand_actor_ended(child));
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("1");
}

static const strand_actor_class weak = {.size = sizeof weak, .name = "weak", .receive = perform, .decide = give_up},
                                unsure = {.size = sizeof unsure,
                                          .name = "unsure",
                                          .receive = perform,
                                          .decide = fail_to_decide};

TEST_INSIDE(a_restarting_actor_has_nothing_to_escalate)
{
    restart_while_a_child_fails(&weak);
}

TEST_INSIDE(a_restarting_actor_does_not_fail_by_deciding)
{
    restart_while_a_child_fails(&unsure);
}

/* ---- while it decides -------------------------------------------------------------------------------------------- */

static enum strand_directive decide_slowly(void *state, strand_actor which, const strand_exception *why)
{
    (void)state, (void)which, (void)why;
    strand_event_set(&begun);
    strand_event_wait(&release);
    return STRAND_STOP;
}

static void stop_in_pieces(void *state)
{
    (void)state;
    test_log("(");
    strand_yield();
    strand_sleep(STRAND_MS);
    test_log(")");
}

static const strand_actor_class hesitant = {
    .size = sizeof hesitant, .name = "hesitant", .receive = perform, .decide = decide_slowly, .stop = stop_in_pieces};

/* One turn handles both the child's failure and the order to restart. */
TEST_INSIDE(an_actor_with_a_pending_restart_that_is_interrupted_while_it_decides_stops_undisturbed)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &hesitant, have_child);
    tell(parent, await_go);
    tell(child, fail);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_stop(child, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(child), 0); /* so that it need not wait for it */
    CHECK_EQ(strand_actor_restart(parent), 0);
    strand_event_set(&go);
    strand_event_wait(&begun);
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_NOW), 0);
    CHECK_EQ(strand_actor_wait(parent), 0);
    CHECK_LOG("( )");
}

static const strand_actor_class counting = {
    .size = sizeof counting, .name = "counting", .receive = perform, .max_restarts = 5, .restarts_within_ns = FOREVER};

/* The record of its restarts is freed meanwhile; a sanitizer would report a later use. */
TEST_INSIDE(a_child_that_has_failed_twice_may_have_ended_before_its_parent_decides)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &counting, have_child);
    tell(child, fail);
    strand_actors_join(system);
    tell(parent, await_go);
    tell(child, fail);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_stop(child, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(child), 0);
    strand_event_set(&go);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("1");
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static int ask(strand_actor whom)
{
    number got;
    return strand_ask(whom, STRAND_MSG(owned, 0), STRAND_INTO(number, &got));
}

static void ask_parent(strand_message *message)
{
    (void)message;
    CHECK_EQ(ask(parent), -EPIPE);
    test_log("asked");
}

static void ask_parent_later(strand_message *message)
{
    await_go(message);
    ask_parent(message);
}

static void have_asking_child(strand_message *message)
{
    have_child(message);
    tell(child, ask_parent);
}

static void have_later_asking_child(strand_message *message)
{
    have_child(message);
    tell(child, ask_parent_later);
}

/* It will answer some day, or somebody whom it tells of that. */
static void keep_questions(void *state, strand_message *message)
{
    if (STRAND_IS(message, owned))
        kept = message->sender;
    else
        perform(state, message);
}

static const strand_actor_class keeping = {.size = sizeof keeping, .name = "keeping", .receive = keep_questions};

TEST_INSIDE(a_child_whose_ask_its_parent_keeps_gets_an_error_when_the_parent_stops)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &keeping, have_asking_child);
    CHECK(kept.bits[1]);
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_NEXT), 0);
    strand_actors_join(system);
    CHECK_LOG("asked");
    CHECK(strand_actor_ended(parent));
}

TEST_INSIDE(a_child_whose_ask_its_parent_keeps_gets_an_error_when_the_parent_restarts)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &keeping, have_asking_child);
    CHECK(kept.bits[1]);
    CHECK_EQ(strand_actor_restart(parent), 0);
    strand_actors_join(system);
    CHECK_LOG("asked");
    CHECK(strand_actor_ended(child));
    CHECK(!strand_actor_ended(parent));
}

/* ---- prioritized, and behind the last stop ----------------------------------------------------------------------- */

static unsigned all_alike(const strand_message *message)
{
    (void)message;
    return 5;
}

static const strand_actor_class sorting = {
    .size = sizeof sorting, .name = "sorting", .receive = perform, .priority = all_alike};

static void restart_when_released(strand_message *message)
{
    (void)message;
    strand_event_set(&begun);
    strand_event_wait(&release);
    CHECK_EQ(strand_actor_restart(strand_actor_self()), 0);
}

/* It handles a message, behind which the last stop is sorted in already; then it waits for its child. */
static void spawn_with_a_last_stop(strand_actors system, void (*has)(strand_message *))
{
    spawn_family(system, &sorting, has);
    CHECK_EQ(strand_actor_suspend(parent), 0);
    tell(parent, restart_when_released);
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_LAST), 0);
}

static void sort_in(strand_actors system)
{
    CHECK_EQ(strand_actor_resume(parent), 0);
    strand_event_wait(&begun);
    strand_actors_join(system);
}

TEST_INSIDE(a_question_behind_the_last_stop_is_not_waited_for_either)
{
    STRAND_ACTORS(system, NULL);
    spawn_with_a_last_stop(system, have_later_asking_child);
    strand_event_set(&go);
    test_await_blocked("waits for the answer of actor", 1);
    sort_in(system);
    CHECK_LOG("");
    strand_event_set(&release);
    strand_actors_join(system);
    CHECK_LOG("asked");
    CHECK(strand_actor_ended(parent));
    CHECK_EQ(drops, 1);
}

static void *ask_it(void *actor)
{
    return TEST_PTR(ask(*(strand_actor *)actor));
}

TEST_INSIDE(messages_behind_the_last_stop_are_not_lost_when_another_stop_comes_during_a_restart)
{
    STRAND_ACTORS(system, NULL);
    spawn_with_a_last_stop(system, have_blocked_child);
    STRAND_SCOPE(scope);
    strand asks = strand_spawn(scope, ask_it, &parent);
    test_await_blocked("waits for the answer of actor", 1);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(owned, 2)), 0);
    sort_in(system);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(number, 3)), 0);
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_LAST), 0);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(owned, 4)), 0);
    strand_event_set(&release);
    strand_actors_join(system);
    CHECK_EQ(drops, 0); /* it waits for its child, and they with it */
    CHECK(strand_ended(asks));
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_PTR(strand_join(asks), TEST_PTR(-EPIPE));
    CHECK(strand_actor_ended(parent));
    CHECK_EQ(drops, 3);
    CHECK_LOG("");
}

TEST_INSIDE(messages_after_the_last_stop_are_not_handled_by_an_actor_that_restarts_before_it)
{
    STRAND_ACTORS(system, NULL);
    spawn_with_a_last_stop(system, have_blocked_child);
    sort_in(system);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(number, 1)), 0);
    strand_event_set(&release);
    strand_actors_join(system);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(number, 2)), 0);
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK(strand_actor_ended(parent));
    CHECK_LOG("");
}
