/*
 * Nothing is lost between actors: a sent message is handled or becomes a dead letter; its resources are dropped once;
 * an asker gets an answer or an error, whatever the actor does with the message.
 */
#define SUITE actor_delivery
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>
#include <pthread.h>

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(look_at, { strand_actor whom; });

static strand_event done;
static _Atomic int drops;

static void begin(void)
{
    done = (strand_event){{0}};
    drops = 0;
}

static void note_drop(void *body)
{
    (void)body;
    drops++;
}

STRAND_MESSAGE_WITH(owned, note_drop, { int n; });

static void do_nothing(void *state, strand_message *message)
{
    (void)state, (void)message;
}

static const strand_actor_class idle = {.size = sizeof idle, .name = "idle", .receive = do_nothing};

/* ---- failing without a message in hand ---------------------------------------------------------------------- */

static void stash_and_fail(void *state, strand_message *message)
{
    (void)state;
    test_log("r");
    if (!test_log_is("r"))
        return;
    strand_message_stash(message);
    strand_throw(&TEST_ERROR, "after that");
}

static enum strand_directive log_failure(void *state, strand_actor child, const strand_exception *why)
{
    (void)state, (void)child;
    CHECK_KIND(why, &TEST_ERROR);
    test_log("!");
    return STRAND_RESTART;
}

static const strand_actor_class stasher = {.size = sizeof stasher, .name = "stasher", .receive = stash_and_fail};

static void be_parent(void *state, strand_message *message)
{
    strand_actor *child = state;
    if (!child->bits[1])
        *child = strand_actor_spawn_child(NULL, &stasher, NULL, 0);
    strand_message_forward(message, *child);
}

static const strand_actor_class parent_class = {.size = sizeof parent_class,
                                                .name = "parent",
                                                .state_size = sizeof(strand_actor),
                                                .receive = be_parent,
                                                .decide = log_failure};

TEST_INSIDE(an_exception_after_stashing_the_message_is_a_failure_too)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &parent_class, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("r ! r");
}

/* ---- who asks -------------------------------------------------------------------------------------------------- */

static void fail_at_once(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_throw(&TEST_ERROR, "on purpose");
}

static void leave_a_child(void *state, strand_message *message)
{
    (void)state, (void)message;
    strand_spawn(strand_actor_scope(), test_return, NULL);
    strand_scope_cancel(strand_actor_scope(), NULL);
}

static const strand_actor_class failing = {.size = sizeof failing, .name = "failing", .receive = fail_at_once},
                                leaving = {.size = sizeof leaving, .name = "leaving", .receive = leave_a_child};

static void *stop_it_later(void *actor)
{
    strand_sleep(20 * STRAND_MS);
    CHECK_EQ(strand_actor_stop(*(strand_actor *)actor, STRAND_STOP_NEXT), 0);
    return NULL;
}

static void ask_one_that_ends(const strand_actor_class *class)
{
    static strand_actor a;
    number got;
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, class, NULL, 0);
    STRAND_SCOPE(scope);
    strand_spawn(scope, stop_it_later, &a);
    CHECK_EQ(strand_ask(a, STRAND_MSG(number, 1), STRAND_INTO(number, &got)), -EPIPE);
    strand_scope_join(scope);
}

TEST_INSIDE(an_asker_of_a_failed_actor_gets_an_error_when_the_actor_ends)
{
    ask_one_that_ends(&failing);
}

TEST_INSIDE(an_asker_of_an_actor_whose_message_left_a_strand_gets_an_error_when_the_actor_ends)
{
    ask_one_that_ends(&leaving);
}

/* ---- passing on ---------------------------------------------------------------------------------------------- */

static const strand_actor_class narrow = {
    .size = sizeof narrow, .name = "narrow", .receive = do_nothing, .max_mailbox = 1};

static void pass_on(void *state, strand_message *message)
{
    if (STRAND_IS(message, owned)) {
        strand_event_set(&done);
        strand_message_forward(message, *(strand_actor *)state);
    }
}

static const strand_actor_class passer = {
    .size = sizeof passer, .name = "passer", .state_size = sizeof(strand_actor), .receive = pass_on};

TEST_INSIDE(a_message_that_could_not_be_passed_on_is_dropped_once)
{
    begin();
    {
        STRAND_ACTORS(system, NULL);
        strand_actor full = strand_actor_spawn(system, NULL, &narrow, NULL, 0);
        strand_actor a = strand_actor_spawn(system, NULL, &passer, &full, sizeof full);
        CHECK_EQ(strand_actor_suspend(full), 0);
        CHECK_EQ(strand_tell(full, STRAND_MSG(number, 1)), 0);
        CHECK_EQ(strand_tell(a, STRAND_MSG(owned, 1)), 0);
        strand_event_wait(&done);
        strand_yield();
        CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NOW), 0);
        CHECK_EQ(strand_actor_wait(a), 0);
        CHECK_EQ(drops, 1);
    }
    CHECK_EQ(drops, 1);
}

/* ---- notices --------------------------------------------------------------------------------------------------- */

static void log_number(void *state, strand_message *message)
{
    (void)state;
    const number *n = STRAND_IS(message, number);
    if (n)
        test_log("%d", n->n);
    if (STRAND_IS(message, strand_terminated))
        test_log("ended");
}

static void put_aside(void *state, strand_message *message)
{
    (void)state;
    const number *n = STRAND_IS(message, number);
    const look_at *l = STRAND_IS(message, look_at);
    if (l) {
        CHECK_EQ(strand_actor_watch(l->whom), 0);
    } else if (n) {
        strand_actor_become(log_number);
        strand_actor_unstash_all();
    } else {
        strand_message_stash(message);
    }
}

static const strand_actor_class patient = {.size = sizeof patient, .name = "patient", .receive = put_aside};

TEST_INSIDE(a_notice_that_was_put_aside_comes_back)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &patient, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &idle, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_at, b)), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_stop(b, STRAND_STOP_NEXT), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("ended");
}

static void watch_nobody(void *state, strand_message *message)
{
    (void)state;
    const number *n = STRAND_IS(message, number);
    if (n) {
        CHECK_EQ(strand_actor_watch((strand_actor){{0, 0}}), 0);
        if (n->n)
            strand_actor_unwatch((strand_actor){{0, 0}});
        else
            CHECK_EQ(strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT), 0);
    } else if (STRAND_IS(message, strand_terminated)) {
        test_log("ended");
    }
}

static const strand_actor_class lonely = {.size = sizeof lonely, .name = "lonely", .receive = watch_nobody};

TEST_INSIDE(nobody_can_be_watched_and_has_ended)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &lonely, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("");
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 0)), 0);
    strand_actors_join(system);
    CHECK(strand_actor_ended(a));
}

/* ---- full mailboxes, and the library's own messages ---------------------------------------------------------- */

static void watch_and_log(void *state, strand_message *message)
{
    const look_at *l = STRAND_IS(message, look_at);
    if (l)
        CHECK_EQ(strand_actor_watch(l->whom), 0);
    log_number(state, message);
}

static const strand_actor_class forgetful = {.size = sizeof forgetful,
                                             .name = "forgetful",
                                             .receive = watch_and_log,
                                             .max_mailbox = 2,
                                             .mailbox_full = STRAND_MAILBOX_FULL_OLDEST};

TEST_INSIDE(a_full_mailbox_forgets_no_notice)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &forgetful, NULL, 0),
                 b = strand_actor_spawn(system, NULL, &idle, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_at, b)), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_actor_stop(b, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(b), 0);
    strand_actors_join(system);
    for (int i = 1; i <= 4; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK_LOG("ended 3 4");
}

TEST_INSIDE(a_full_mailbox_forgets_no_stop)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &forgetful, NULL, 0);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_LAST), 0);
    for (int i = 1; i <= 4; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK(strand_actor_ended(a));
}

static unsigned by_number(const strand_message *message)
{
    return message->type == &number_message ? (unsigned)((const number *)message->body)->n : 0;
}

static const strand_actor_class choosy = {
    .size = sizeof choosy, .name = "choosy", .receive = log_number, .priority = by_number};

TEST_INSIDE(the_last_stop_comes_after_messages_of_any_priority)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &choosy, NULL, 0);
    CHECK_EQ(strand_actor_suspend(a), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 70)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 9)), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_LAST), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 5)), 0); /* too late, however urgent it is */
    CHECK_EQ(strand_actor_resume(a), 0);
    strand_actors_join(system);
    CHECK_LOG("9 70");
    CHECK(strand_actor_ended(a));
}

/* ---- systems that have ended --------------------------------------------------------------------------------- */

static void *spawn_there(void *system)
{
    strand_actor_spawn(*(strand_actors *)system, STRAND_ACTOR_ATTR(.name = "late"), &idle, NULL, 0);
    return NULL;
}

TEST_INSIDE(a_system_that_has_ended_has_no_actors_and_gets_none)
{
    STRAND_ACTORS(system, NULL);
    STRAND_ACTORS(other, NULL);
    strand_actors_stop(system, STRAND_STOP_NEXT);
    strand_actors_join(system);
    (void)strand_actor_spawn(other, NULL, &idle, NULL, 0);
    for (int i = 0; i < 3; i++) {
        strand_exception *e = strand_try(spawn_there, &system, NULL);
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), -ESHUTDOWN);
        strand_exception_release(e);
        CHECK_EQ(strand_actor_find(system, "/").bits[1], 0);
        CHECK_EQ(strand_actor_find(system, "/user").bits[1], 0);
    }
    CHECK_EQ(strand_actors_run(system, NULL, test_return, NULL), -ESHUTDOWN);
}

/* ---- routers --------------------------------------------------------------------------------------------------- */

static enum strand_directive give_up(void *none, strand_actor child, const strand_exception *why)
{
    (void)none, (void)child, (void)why;
    return STRAND_ESCALATE;
}

static void log_or_fail(void *state, strand_message *message)
{
    if (STRAND_IS(message, look_at))
        strand_throw(&TEST_ERROR, "on purpose");
    log_number(state, message);
}

static const strand_actor_class worker = {.size = sizeof worker, .name = "worker", .receive = log_or_fail};

TEST_INSIDE(a_router_may_be_restarted)
{
    STRAND_ACTORS(system, NULL);
    strand_actor r = strand_router_spawn(system, NULL, STRAND_ROUTER(.count = 2, .class_ = &worker, .decide = give_up));
    CHECK_EQ(strand_tell(r, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_actor_restart(r), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_tell(r, STRAND_MSG(number, 2)), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_tell(r, STRAND_MSG(look_at, r)), 0);
    strand_actors_join(system);
    CHECK_EQ(strand_tell(r, STRAND_MSG(number, 3)), 0);
    strand_actors_join(system);
    CHECK_LOG("1 2 3");
}

/* ---- timers ------------------------------------------------------------------------------------------------------ */

static void set_timers(void *state, strand_message *message)
{
    static const char keys[3];
    (void)state;
    if (!STRAND_IS(message, number))
        return;
    CHECK_EQ(strand_actor_timer(&keys[0], 0, 0, STRAND_MSG(owned, 1)), 0);
    CHECK_EQ(strand_actor_timer(&keys[1], STRAND_S, 0, STRAND_MSG(owned, 2)), 0);
    CHECK_EQ(strand_actor_timer(&keys[1], STRAND_S, 0, STRAND_MSG(owned, 3)), 0);
    CHECK_EQ(drops, 1);
    strand_actor_timer_stop(&keys[1]);
    CHECK_EQ(drops, 2);
    CHECK_EQ(strand_actor_timer(&keys[2], STRAND_S, 0, STRAND_MSG(owned, 4)), 0);
}

static const strand_actor_class late = {.size = sizeof late, .name = "late", .receive = set_timers};

TEST_INSIDE(the_unsent_message_of_a_timer_is_dropped_once)
{
    begin();
    {
        STRAND_ACTORS(system, NULL);
        strand_actor a = strand_actor_spawn(system, NULL, &late, NULL, 0);
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
        while (drops < 3)
            strand_sleep(STRAND_MS);
    }
    CHECK_EQ(drops, 4);
}

/* ---- from outside ---------------------------------------------------------------------------------------------- */

static void *give_it(void *actor)
{
    static int body;
    CHECK_EQ(strand_tell(*(strand_actor *)actor, STRAND_MSG(owned, 1)), 0);
    CHECK_EQ(strand_actor_give(*(strand_actor *)actor, &owned_message, &body), 0);
    return NULL;
}

static void count_letters(void *state, strand_message *message)
{
    (void)state;
    const strand_published *p = STRAND_IS(message, strand_published);
    CHECK_EQ(p->kind, STRAND_ACTOR_DEAD_LETTER);
    CHECK(p->type == &owned_message);
    test_log("letter");
}

static const strand_actor_class listener = {.size = sizeof listener, .name = "listener", .receive = count_letters};

TEST_REAL_INSIDE(a_message_from_outside_to_an_ended_actor_is_a_dead_letter)
{
    static strand_actor a;
    pthread_t thread;
    begin();
    STRAND_ACTORS(system, NULL);
    a = strand_actor_spawn(system, NULL, &idle, NULL, 0);
    strand_actor l = strand_actor_spawn(system, NULL, &listener, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, l, STRAND_ACTOR_DEAD_LETTER), 0);
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    CHECK_EQ(pthread_create(&thread, NULL, give_it, &a), 0);
    while (drops < 2)
        strand_sleep(STRAND_MS);
    pthread_join(thread, NULL);
    strand_actors_join(system);
    CHECK_LOG("letter letter");
}

/* ---- what is published ----------------------------------------------------------------------------------------- */

static void unhandle_and_leave_a_child(void *state, strand_message *message)
{
    leave_a_child(state, message);
    if (STRAND_IS(message, look_at))
        strand_message_unhandled(message);
}

static const strand_actor_class open_book = {
    .size = sizeof open_book, .name = "open book", .receive = unhandle_and_leave_a_child, .log_receives = true};

static void log_receives(void *state, strand_message *message)
{
    (void)state;
    const strand_published *p = STRAND_IS(message, strand_published);
    test_log("%s%s", p->unhandled ? "!" : "", p->type->name);
}

static const strand_actor_class reader = {.size = sizeof reader, .name = "reader", .receive = log_receives};

TEST_INSIDE(a_message_that_has_left_a_strand_is_published_too)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &open_book, NULL, 0),
                 l = strand_actor_spawn(system, NULL, &reader, NULL, 0);
    CHECK_EQ(strand_actors_subscribe(system, l, STRAND_ACTOR_RECEIVE), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(look_at, a)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(number, 1)), 0);
    strand_actors_join(system);
    CHECK_LOG("!look_at number");
}

/* ---- other runs ------------------------------------------------------------------------------------------------ */

static void *tell_one_that_passes_on(void *arg)
{
    static int given;
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &passer, arg, sizeof(strand_actor));
    CHECK_EQ(strand_tell(a, STRAND_MSG(owned, 1)), 0);
    CHECK_EQ(strand_actor_give(a, &owned_message, &given), 0);
    strand_actors_join(system);
    return NULL;
}

static void log_owned(void *state, strand_message *message)
{
    (void)state;
    if (STRAND_IS(message, owned))
        test_log("owned");
    CHECK_EQ(drops, test_log_is("owned") ? 0 : 1);
}

static const strand_actor_class owner = {.size = sizeof owner, .name = "owner", .receive = log_owned};

TEST_REAL_INSIDE(a_message_may_be_passed_on_to_another_run)
{
    begin();
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &owner, NULL, 0);
    strand_run(STRAND_OPTIONS(.threads = 1, .own_threads = true), tell_one_that_passes_on, &a);
    while (drops < 2)
        strand_sleep(STRAND_MS);
    CHECK_LOG("owned owned");
}
