/*
 * What an actor, or a system, can have many of costs no more than it has to: ten times as many take less than 40
 * times as long.
 */
#define SUITE actor_growth
#include "growth.h"
#include "test.h"

#include "strand/actor.h"
#include "strand/pool.h"
#include "strand/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

STRAND_MESSAGE(grow, { int count; });
STRAND_MESSAGE(crash, { char none; });
STRAND_MESSAGE(answer, { char none; });

/* ---- what actors do ---------------------------------------------------------------------------------------- */

static strand_actor *all;

static void be_idle(void *state, strand_message *message)
{
    (void)state;
    if (STRAND_IS(message, crash))
        strand_throw(&TEST_ERROR, "on request");
}

static const strand_actor_class idle = {.size = sizeof idle, .name = "idle", .receive = be_idle};

static void watch_many(void *state, strand_message *message)
{
    (void)state;
    int count = STRAND_IS(message, grow)->count;
    for (int i = 0; i < count; i++)
        CHECK_EQ(strand_actor_watch(all[i]), 0);
    for (int i = 0; i < count; i++)
        strand_actor_unwatch(all[i]);
}

static void set_many_timers(void *state, strand_message *message)
{
    (void)state;
    int count = STRAND_IS(message, grow)->count;
    for (int again = 0; again < 2; again++)
        for (int i = 1; i <= count; i++)
            CHECK_EQ(strand_actor_timer(TEST_PTR(i), STRAND_S * 1000, 0, STRAND_MSG(answer)), 0);
    for (int i = 1; i <= count; i++)
        strand_actor_timer_stop(TEST_PTR(i));
}

static void have_many(void *state, strand_message *message)
{
    (void)state;
    const grow *g = STRAND_IS(message, grow);
    for (int i = 0; g && i < g->count; i++)
        all[i] = strand_actor_spawn_child(NULL, &idle, NULL, 0);
}

/* Each has one below it; the lowest one fails, and so do all above. */
static void go_down(void *state, strand_message *message)
{
    const strand_actor_class *self = *(const strand_actor_class **)state;
    const grow *g = STRAND_IS(message, grow);
    if (!g->count)
        strand_throw(&TEST_ERROR, "at the bottom");
    strand_actor below = strand_actor_spawn_child(NULL, self, &self, sizeof self);
    CHECK_EQ(strand_tell(below, STRAND_MSG(grow, g->count - 1)), 0);
}

static enum strand_directive escalate(void *state, strand_actor child, const strand_exception *why)
{
    (void)state, (void)child, (void)why;
    return STRAND_ESCALATE;
}

static const strand_actor_class
    watcher = {.size = sizeof watcher, .name = "watcher", .receive = watch_many},
    clerk = {.size = sizeof clerk, .name = "clerk", .receive = set_many_timers},
    counting = {.size = sizeof counting, .name = "counting", .receive = have_many, .max_restarts = 5},
    united = {.size = sizeof united, .name = "united", .receive = have_many, .all_for_one = true},
    deep = {.size = sizeof deep, .name = "deep", .state_size = sizeof(void *), .receive = go_down, .decide = escalate};

/* ---- what is measured -------------------------------------------------------------------------------------- */

static void tell_one(strand_actors system, const strand_actor_class *class, int count)
{
    const strand_actor_class *args = class;
    strand_actor a = strand_actor_spawn(system, NULL, class, &args, class->state_size);
    CHECK_EQ(strand_tell(a, STRAND_MSG(grow, count)), 0);
    strand_actors_join(system);
}

static void spawn_all(strand_actors system, int count)
{
    for (int i = 0; i < count; i++)
        all[i] = strand_actor_spawn(system, NULL, &idle, NULL, 0);
}

static void watch(strand_actors system, int count)
{
    spawn_all(system, count);
    tell_one(system, &watcher, count);
}

static void set_timers(strand_actors system, int count)
{
    tell_one(system, &clerk, count);
}

static void fail_together(strand_actors system, const strand_actor_class *parent, int count)
{
    tell_one(system, parent, count);
    for (int i = 0; i < count; i++)
        CHECK_EQ(strand_tell(all[i], STRAND_MSG(crash)), 0);
    strand_actors_join(system);
}

static void fail_once_each(strand_actors system, int count)
{
    fail_together(system, &counting, count);
}

static void fail_as_one(strand_actors system, int count)
{
    fail_together(system, &united, count);
}

static void fail_from_below(strand_actors system, int count)
{
    tell_one(system, &deep, count);
}

/* It lasts until the system has been left. */
static strand_actor_class *classes;

static void spawn_of_many_classes(strand_actors system, int count)
{
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < count; i++) {
            if (!again)
                classes[i] = idle;
            strand_actor a = strand_actor_spawn(system, NULL, &classes[i], NULL, 0);
            CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
        }
}

static void subscribe(strand_actors system, int count)
{
    spawn_all(system, count);
    for (int i = 0; i < count; i++)
        CHECK_EQ(strand_actors_subscribe(system, all[i], STRAND_ACTOR_RECEIVE), 0);
    for (int i = 0; i < count; i++)
        CHECK_EQ(strand_actors_subscribe(system, all[i], 0), 0);
}

static _Atomic int told;

static void end_first(void *state, strand_message *message)
{
    (void)state, (void)message;
    told++;
    CHECK_EQ(strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT), 0);
}

/* Each ends by its first message, and is one of them no more. */
static void use_up_a_router(strand_actors system, int count)
{
    static const strand_actor_class brief = {.size = sizeof brief, .name = "brief", .receive = end_first};
    told = 0;
    strand_actor router = strand_router_spawn(system, NULL, STRAND_ROUTER(.count = (size_t)count, .class_ = &brief));
    for (int i = 0; i < count; i++)
        CHECK_EQ(strand_tell(router, STRAND_MSG(crash)), 0);
    strand_actors_join(system);
    CHECK_EQ(told, count);
}

static void *wait_for_end(void *actor)
{
    CHECK_EQ(strand_actor_wait(*(strand_actor *)actor), 0);
    return NULL;
}

static void interrupt_those_who_wait(strand_actors system, int count)
{
    strand_actor a = strand_actor_spawn(system, NULL, &idle, NULL, 0);
    STRAND_SCOPE(scope);
    for (int i = 0; i < count; i++)
        strand_spawn(scope, wait_for_end, &a);
    strand_yield();
    strand_scope_cancel(scope, NULL);
}

static strand_event full, go;

/* What an actor tells itself takes no room, and is not pushed out. */
static void hoard(void *state, strand_message *message)
{
    (void)state;
    const grow *g = STRAND_IS(message, grow);
    if (!g)
        return;
    for (int i = 0; i < g->count; i++)
        CHECK_EQ(strand_tell(strand_actor_self(), STRAND_MSG(answer)), 0);
    strand_event_set(&full);
    strand_event_wait(&go);
}

static void push_out_behind_those_that_stay(strand_actors system, int count)
{
    static const strand_actor_class hoarding = {.size = sizeof hoarding,
                                                .name = "hoarding",
                                                .receive = hoard,
                                                .max_mailbox = 1,
                                                .mailbox_full = STRAND_MAILBOX_FULL_OLDEST};
    full = go = (strand_event){{0}};
    strand_actor a = strand_actor_spawn(system, NULL, &hoarding, NULL, 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(grow, count)), 0);
    strand_event_wait(&full);
    for (int i = 0; i < count; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(crash)), 0);
    strand_event_set(&go);
    strand_actors_join(system);
}

/* It stashes all but the first message, and takes them back then; each of its behaviours is one of many. */
static void stash_and_become(void *state, strand_message *message)
{
    const grow *g = STRAND_IS(message, grow);
    int *left = state;
    if (!g && (*left)-- > 0) {
        strand_message_stash(message);
        return;
    }
    for (int i = 0; g && i < g->count; i++)
        strand_actor_become(stash_and_become);
    for (int i = 0; g && i < g->count; i++)
        strand_actor_unbecome();
    if (g)
        CHECK_EQ(strand_actor_unstash_all(), (size_t)g->count);
    else
        told++;
}

static void stash_many(strand_actors system, int count)
{
    static const strand_actor_class stashing = {
        .size = sizeof stashing, .name = "stashing", .state_size = sizeof(int), .receive = stash_and_become};
    told = 0;
    strand_actor a = strand_actor_spawn(system, NULL, &stashing, &count, sizeof count);
    for (int i = 0; i < count; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(answer)), 0);
    CHECK_EQ(strand_tell(a, STRAND_MSG(grow, count)), 0);
    strand_actors_join(system);
    CHECK_EQ(told, count);
}

static void find_by_name(strand_actors system, int count)
{
    char text[32];
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "number-%d", i);
        all[i] = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = text), &idle, NULL, 0);
    }
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "/user/number-%d", i);
        strand_actor found = strand_actor_find(system, text);
        CHECK(memcmp(&found, &all[i], sizeof found) == 0);
    }
}

static void *ask_in_vain(void *actor)
{
    answer got;
    told++;
    (void)!strand_ask(*(strand_actor *)actor, STRAND_MSG(answer), STRAND_INTO(answer, &got));
    return NULL;
}

static void keep_question(void *state, strand_message *message)
{
    (void)state;
    if (STRAND_IS(message, answer))
        strand_message_stash(message);
}

static void interrupt_those_who_ask(strand_actors system, int count)
{
    static const strand_actor_class keeping = {.size = sizeof keeping, .name = "keeping", .receive = keep_question};
    static strand_actor keeper;
    keeper = strand_actor_spawn(system, NULL, &keeping, NULL, 0);
    told = 0;
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (int i = 0; i < count; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), ask_in_vain, &keeper, 0);
    test_yield_until(&told, count);
    strand_scope_cancel(scope, NULL);
}

/* ---- comparing --------------------------------------------------------------------------------------------- */

struct measure {
    void (*work)(strand_actors system, int count);
    int count;
    int64_t took;
};

static void *measure(void *arg)
{
    struct measure *m = arg;
    int64_t begun = growth_ns();
    {
        STRAND_ACTORS(system, NULL);
        m->work(system, m->count);
    }
    m->took = growth_ns() - begun;
    return NULL;
}

static void say_nothing(const char *text, void *arg)
{
    (void)text, (void)arg;
}

static int64_t time_of(const void *what, int count)
{
    struct measure m = {*(void (*const *)(strand_actors, int))what, count, 0};
    all = malloc((size_t)count * sizeof *all);
    classes = malloc((size_t)count * sizeof *classes);
    strand_run(STRAND_OPTIONS(.threads = 1, .on_log = say_nothing), measure, &m);
    free(classes);
    free(all);
    return m.took;
}

static void compare(void (*work)(strand_actors, int))
{
    growth_compare(time_of, &work, growth_count(100000));
}

TEST_REAL(many_watches_are_set_and_given_up_one_by_one)
{
    compare(watch);
}

TEST_REAL(many_timers_are_set_replaced_and_taken_back_one_by_one)
{
    compare(set_timers);
}

TEST_REAL(many_children_fail_and_their_restarts_are_counted)
{
    compare(fail_once_each);
}

TEST_REAL(many_children_fail_together_and_each_failure_restarts_them_all)
{
    compare(fail_as_one);
}

TEST_REAL(a_failure_goes_up_many_levels)
{
    compare(fail_from_below);
}

TEST_REAL(actors_are_of_many_classes)
{
    compare(spawn_of_many_classes);
}

TEST_REAL(many_actors_subscribe)
{
    compare(subscribe);
}

TEST_REAL(many_actors_of_a_router_end)
{
    compare(use_up_a_router);
}

TEST_REAL(many_strands_that_wait_for_an_end_are_interrupted)
{
    compare(interrupt_those_who_wait);
}

TEST_REAL(messages_are_pushed_out_from_behind_many_that_stay)
{
    compare(push_out_behind_those_that_stay);
}

TEST_REAL(many_messages_are_stashed_and_many_behaviours_pushed)
{
    compare(stash_many);
}

TEST_REAL(many_actors_are_found_by_their_names)
{
    compare(find_by_name);
}

TEST_REAL(many_questions_to_one_actor_are_interrupted)
{
    compare(interrupt_those_who_ask);
}
