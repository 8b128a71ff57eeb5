/*
 * Orders to an actor, in any order: stop in both ways, suspend, resume, restart; also while it waits for its children,
 * and after it has failed.
 */
#define SUITE actor_order
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(act, { void (*fn)(strand_message *); });

static strand_event go;
static strand_actor parent, child;

static void begin(void)
{
    go = (strand_event){{0}};
    parent = child = (strand_actor){{0, 0}};
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
}

static void log_stop(void *state)
{
    (void)state;
    test_log("stop");
}

static const strand_actor_class puppet = {.size = sizeof puppet, .name = "puppet", .receive = perform},
                                stopper = {
                                    .size = sizeof stopper, .name = "stopper", .receive = perform, .stop = log_stop};

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
    child = strand_actor_spawn_child(NULL, &stopper, NULL, 0);
    tell(child, await_go);
}

/* A parent, whose child blocks. */
static void spawn_family(strand_actors system, const strand_actor_class *class)
{
    begin();
    parent = strand_actor_spawn(system, NULL, class, NULL, 0);
    tell(parent, have_child);
    strand_actors_join(system); /* until all others wait for the event */
}

/* ---- stopping, and then at once ---------------------------------------------------------------------------------- */

TEST_INSIDE(a_stop_at_once_after_another_interrupts_the_children)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &puppet);
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_NEXT), 0);
    strand_actors_join(system);
    CHECK(!strand_actor_ended(child));
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_NOW), 0);
    CHECK_EQ(strand_actor_wait(parent), 0);
    CHECK(strand_actor_ended(child));
    CHECK_LOG("stop");
}

TEST_INSIDE(a_stop_at_once_after_the_last_interrupts_the_message_in_hand)
{
    STRAND_ACTORS(system, NULL);
    begin();
    strand_actor a = strand_actor_spawn(system, NULL, &stopper, NULL, 0);
    tell(a, await_go);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_LAST), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NOW), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_LOG("stop");
}

static void *stop_and_throw(void *arg)
{
    (void)arg;
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &puppet);
    strand_actors_stop(system, STRAND_STOP_NEXT);
    strand_actors_join(system);
    strand_throw(&TEST_ERROR, "on purpose");
}

TEST_INSIDE(leaving_a_system_by_an_exception_interrupts_although_it_was_stopped)
{
    CHECK_THROWS(stop_and_throw, NULL, &TEST_ERROR);
    CHECK_LOG("stop");
}

static void fail(strand_message *message)
{
    (void)message;
    strand_throw(&TEST_ERROR, "on purpose");
}

static void *fail_in_a_shield(void *arg)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &puppet);
    strand_actor a = strand_actor_spawn(system, NULL, &puppet, NULL, 0);
    STRAND_SHIELD; /* it is not by being interrupted that the block is left */
    for (int i = 0; i < 20; i++)
        (void)strand_tell(a, STRAND_MSG(act, fail));
    strand_actors_join(system);
    return arg;
}

TEST_INSIDE(the_failure_of_a_system_interrupts_the_messages_in_hand)
{
    CHECK_THROWS(fail_in_a_shield, NULL, &TEST_ERROR);
    CHECK_LOG("stop");
}

static void *fail_alone(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &puppet, NULL, 0);
    STRAND_SHIELD;
    for (int i = 0; i < 20; i++)
        (void)strand_tell(a, STRAND_MSG(act, fail));
    strand_actors_join(system);
    return arg;
}

TEST_INSIDE(the_failure_of_a_system_is_not_lost_though_its_block_is_left_at_the_same_moment)
{
    for (int i = 0; i < 200; i++) {
        CHECK_THROWS(fail_alone, NULL, &TEST_ERROR);
    }
}

static void yield_and_log(strand_message *message)
{
    (void)message;
    strand_event_set(&go);
    for (int i = 0; i < 10; i++)
        strand_yield();
    test_log("whole");
}

static void open_a_system(int *none)
{
    (void)none;
    STRAND_ACTORS(system, NULL);
    begin();
    tell(strand_actor_spawn(system, NULL, &puppet, NULL, 0), yield_and_log);
    strand_event_wait(&go);
}

static void *throw_past_a_system(void *arg)
{
    int none __attribute__((cleanup(open_a_system), unused)) = 0;
    strand_throw(&TEST_ERROR, "on purpose");
    return arg;
}

TEST_INSIDE(a_system_that_is_left_normally_while_an_exception_is_on_its_way_interrupts_nobody)
{
    CHECK_THROWS(throw_past_a_system, NULL, &TEST_ERROR);
    CHECK_LOG("whole");
}

/* ---- the last stop ---------------------------------------------------------------------------------------------- */

TEST_INSIDE(a_stop_overtakes_the_last_one)
{
    STRAND_ACTORS(system, NULL);
    begin();
    strand_actor a = strand_actor_spawn(system, NULL, &stopper, NULL, 0);
    tell(a, await_go);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_LAST), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    strand_event_set(&go);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_LOG("stop");
}

static void log_letter(void *state, strand_message *message)
{
    (void)state;
    const strand_published *p = STRAND_IS(message, strand_published);
    test_log("dead-%s", p->type->name);
}

static const strand_actor_class listener = {.size = sizeof listener, .name = "listener", .receive = log_letter};

static void listen_to(strand_actors system)
{
    strand_actor l = strand_actor_spawn(system, NULL, &listener, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, l, STRAND_ACTOR_DEAD_LETTER), 0);
}

TEST_INSIDE(a_last_stop_that_is_not_needed_any_more_is_no_dead_letter)
{
    STRAND_ACTORS(system, NULL);
    begin();
    listen_to(system);
    strand_actor a = strand_actor_spawn(system, NULL, &stopper, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &stopper, NULL, 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_LAST), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_LAST), 0);
    CHECK_EQ(strand_actor_suspend(b), 0);
    CHECK_EQ(strand_actor_stop(b, STRAND_STOP_LAST), 0);
    CHECK_EQ(strand_actor_stop(b, STRAND_STOP_NEXT), 0);
    strand_actors_join(system);
    CHECK(strand_actor_ended(a));
    CHECK(strand_actor_ended(b));
    CHECK_LOG("stop stop");
}

/* ---- an actor that waits for its children to end ----------------------------------------------------------------- */

static int ask(strand_actor whom)
{
    number got;
    return strand_ask(whom, STRAND_MSG(number, 0), STRAND_INTO(number, &got));
}

static void ask_parent(strand_message *message)
{
    await_go(message);
    CHECK_EQ(ask(parent), -EPIPE);
    test_log("asked");
}

static void tell_parent(strand_message *message)
{
    await_go(message);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(strand_tell(parent, STRAND_MSG(number, i)), -EPIPE);
    test_log("told");
}

static void have_asking_child(strand_message *message)
{
    (void)message;
    tell(child = strand_actor_spawn_child(NULL, &puppet, NULL, 0), ask_parent);
}

static void have_telling_child(strand_message *message)
{
    (void)message;
    tell(child = strand_actor_spawn_child(NULL, &puppet, NULL, 0), tell_parent);
}

static const strand_actor_class narrow = {
    .size = sizeof narrow, .name = "narrow", .receive = perform, .max_mailbox = 1};

/* Stops it while its child blocks, which goes on then. */
static void stop_while_the_child(const strand_actor_class *class, void (*has)(strand_message *))
{
    STRAND_ACTORS(system, NULL);
    begin();
    parent = strand_actor_spawn(system, NULL, class, NULL, 0);
    tell(parent, has);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_NEXT), 0);
    strand_actors_join(system);
    CHECK(!strand_actor_ended(parent));
    strand_event_set(&go);
    CHECK_EQ(strand_actor_wait(parent), 0);
}

TEST_INSIDE(a_child_that_asks_its_parent_which_stops_gets_no_answer)
{
    stop_while_the_child(&puppet, have_asking_child);
    CHECK_LOG("asked");
}

TEST_INSIDE(a_child_does_not_wait_for_room_at_its_parent_which_stops)
{
    stop_while_the_child(&narrow, have_telling_child);
    CHECK_LOG("told");
}

TEST_INSIDE(an_actor_that_stops_takes_no_messages_even_if_it_had_room)
{
    stop_while_the_child(&puppet, have_telling_child);
    CHECK_LOG("told");
}

static void *tell_number(void *actor)
{
    return TEST_PTR(strand_tell(*(strand_actor *)actor, STRAND_MSG(number, 7)));
}

static void *ask_it(void *actor)
{
    return TEST_PTR(ask(*(strand_actor *)actor));
}

TEST_INSIDE(messages_that_wait_when_a_stop_begins_are_dead_letters_although_children_remain)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &narrow);
    listen_to(system);
    STRAND_SCOPE(scope);
    CHECK_EQ(strand_actor_suspend(parent), 0);
    strand asks = strand_spawn(scope, ask_it, &parent);
    test_await_blocked("waits for the answer of actor", 1);
    strand tells = strand_spawn(scope, tell_number, &parent);
    test_await_blocked("waits for room in the mailbox of actor", 1);
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_NEXT), 0);
    CHECK_PTR(strand_join(asks), TEST_PTR(-EPIPE));
    CHECK_PTR(strand_join(tells), TEST_PTR(-EPIPE));
    strand_actors_join(system);
    CHECK_LOG("dead-number dead-number");
    CHECK(!strand_actor_ended(child));
    strand_event_set(&go);
}

TEST_INSIDE(asking_an_actor_that_waits_for_its_children_to_restart_gets_no_answer)
{
    STRAND_ACTORS(system, NULL);
    begin();
    parent = strand_actor_spawn(system, NULL, &puppet, NULL, 0);
    tell(parent, have_asking_child);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_restart(parent), 0);
    strand_actors_join(system);
    CHECK_EQ(ask(parent), -EPIPE);
    CHECK_EQ(strand_tell(parent, STRAND_MSG(number, 1)), 0);
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK(strand_actor_ended(child));
    CHECK_LOG("asked 1"); /* its other messages wait */
}

/* It would wait for its child, and its child for it. */
TEST_INSIDE(an_asker_from_before_a_pending_restart_gets_no_answer)
{
    STRAND_ACTORS(system, NULL);
    begin();
    parent = strand_actor_spawn(system, NULL, &puppet, NULL, 0);
    tell(parent, have_asking_child);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_suspend(parent), 0);
    strand_event_set(&go);
    test_await_blocked("waits for the answer of actor", 1);
    CHECK_EQ(strand_actor_restart(parent), 0);
    strand_actors_join(system);
    CHECK(strand_actor_ended(child));
    CHECK_LOG("asked 0"); /* the question waits still, for nobody */
}

TEST_INSIDE(an_actor_with_a_pending_restart_may_be_stopped)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &stopper);
    CHECK_EQ(strand_actor_restart(parent), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_NEXT), 0);
    strand_actors_join(system);
    CHECK_LOG("");
    strand_event_set(&go);
    CHECK_EQ(strand_actor_wait(parent), 0);
    CHECK_LOG("stop stop");
}

TEST_INSIDE(an_actor_with_a_pending_restart_may_be_stopped_at_once)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &stopper);
    CHECK_EQ(strand_actor_restart(parent), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_NOW), 0);
    CHECK_EQ(strand_actor_wait(parent), 0);
    CHECK_LOG("stop stop");
}

TEST_INSIDE(an_actor_that_stops_does_not_restart)
{
    STRAND_ACTORS(system, NULL);
    spawn_family(system, &stopper);
    CHECK_EQ(strand_actor_stop(parent, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_restart(parent), 0);
    CHECK_EQ(strand_actor_resume(parent), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_restart(parent), 0);
    strand_event_set(&go);
    CHECK_EQ(strand_actor_wait(parent), 0);
    CHECK_LOG("stop stop");
}
