/*
 * Actors that are spawned, told and looked for while others stop them, or while their run ends.
 */
#define _GNU_SOURCE
#define SUITE actor_race
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

STRAND_MESSAGE(number, { int n; });

static _Atomic int drops, told, alive;

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

static void begin_life(void *state, const void *args)
{
    (void)state, (void)args;
    alive++;
}

static void end_life(void *state)
{
    (void)state;
    alive--;
}

static const strand_actor_class idle = {.size = sizeof idle, .name = "idle", .receive = do_nothing},
                                counted = {.size = sizeof counted,
                                           .name = "counted",
                                           .receive = do_nothing,
                                           .start = begin_life,
                                           .stop = end_life};

/* ---- while a system is stopped ----------------------------------------------------------------------------------- */

struct race {
    strand_actors system;
    int times; /* that the one that stops it yields before */
    enum strand_actor_stopping how;
    _Atomic int over;
};

static void *stop_system(void *arg)
{
    struct race *race = arg;
    for (int i = 0; i < race->times; i++)
        strand_yield();
    strand_actors_stop(race->system, race->how);
    race->over = 1;
    return NULL;
}

struct spawning {
    strand_actors system;
    strand_actor made;
};

static void *spawn_one(void *arg)
{
    struct spawning *spawning = arg;
    spawning->made = strand_actor_spawn(spawning->system, NULL, &counted, NULL, 0);
    return NULL;
}

static void *spawn_until_refused(void *arg)
{
    struct race *race = arg;
    for (int i = 0;; i++) {
        struct spawning spawning = {.system = race->system};
        strand_exception *e = strand_try(spawn_one, &spawning, NULL);
        if (e) {
            CHECK_KIND(e, &STRAND_SYSTEM);
            CHECK_EQ(strand_exception_code(e), -ESHUTDOWN);
            strand_exception_release(e);
            return NULL;
        }
        (void)strand_tell(spawning.made, STRAND_MSG(number, i));
        if (i % 4 == 3)
            strand_yield();
    }
}

static void spawn_while_it_is_stopped(int i)
{
    struct race race = {.times = i % 20, .how = i % 3 ? STRAND_STOP_NEXT : STRAND_STOP_NOW};
    STRAND_ACTORS(system, NULL);
    race.system = system;
    STRAND_SCOPE(scope);
    strand_spawn(scope, stop_system, &race);
    for (int k = 0; k < 3; k++)
        strand_spawn(scope, spawn_until_refused, &race);
    strand_scope_join(scope);
}

TEST_RACE(an_actor_that_is_spawned_while_the_system_stops_ends_with_it)
{
    for (int i = 0; i < test_scale(60); i++) {
        alive = 0;
        spawn_while_it_is_stopped(i);
        CHECK_EQ(alive, 0);
    }
}

static void *count_run(void *arg)
{
    ++*(_Atomic int *)arg;
    return NULL;
}

static _Atomic int ran, taken;

static void *run_until_refused(void *arg)
{
    struct race *race = arg;
    for (int error = 0, i = 0; !error; i++) {
        error = strand_actors_run(race->system, NULL, count_run, (void *)&ran);
        if (error)
            CHECK_EQ(error, -ESHUTDOWN);
        else
            taken++;
        if (i % 4 == 3)
            strand_yield();
    }
    return NULL;
}

static void run_while_it_is_stopped(int i)
{
    struct race race = {.times = i % 20, .how = STRAND_STOP_NEXT};
    STRAND_ACTORS(system, NULL);
    race.system = system;
    STRAND_SCOPE(scope);
    strand_spawn(scope, stop_system, &race);
    for (int k = 0; k < 3; k++)
        strand_spawn(scope, run_until_refused, &race);
    strand_scope_join(scope);
}

TEST_RACE(what_is_run_while_the_system_is_stopped_is_run_once_or_not_at_all)
{
    for (int i = 0; i < test_scale(60); i++) {
        ran = taken = 0;
        run_while_it_is_stopped(i);
        CHECK(ran <= taken);
    }
}

/* ---- found by name -------------------------------------------------------------------------------------------------
 */

static void *spawn_named(void *arg)
{
    struct spawning *spawning = arg;
    spawning->made = strand_actor_spawn(spawning->system, STRAND_ACTOR_ATTR(.name = "one"), &counted, NULL, 0);
    return NULL;
}

static void *spawn_names_until_refused(void *arg)
{
    struct race *race = arg;
    for (int i = 0;; i++) {
        struct spawning spawning = {.system = race->system};
        strand_exception *e = strand_try(spawn_named, &spawning, NULL);
        int error = e ? strand_exception_code(e) : 0;
        strand_exception_release(e);
        if (error == -ESHUTDOWN)
            return NULL;
        CHECK(!error || error == -EEXIST);
        if (!error)
            CHECK_EQ(strand_actor_stop(spawning.made, i % 2 ? STRAND_STOP_NEXT : STRAND_STOP_LAST), 0);
        strand_yield();
    }
}

static void *tell_whom_it_finds(void *arg)
{
    struct race *race = arg;
    while (!race->over) {
        strand_actor a = strand_actor_find(race->system, "/user/one");
        int error = strand_tell(a, STRAND_MSG(owned, 1));
        CHECK(!error || error == -EPIPE);
        told++;
        strand_yield();
    }
    return NULL;
}

static void find_while_it_is_stopped(int i)
{
    struct race race = {.times = 5 + i % 20, .how = STRAND_STOP_NEXT};
    STRAND_ACTORS(system, NULL);
    race.system = system;
    STRAND_SCOPE(scope);
    strand_spawn(scope, stop_system, &race);
    strand_spawn(scope, spawn_names_until_refused, &race);
    strand_spawn(scope, spawn_names_until_refused, &race);
    strand_spawn(scope, tell_whom_it_finds, &race);
    strand_spawn(scope, tell_whom_it_finds, &race);
    strand_scope_join(scope);
}

TEST_RACE(an_actor_found_by_name_while_it_is_spawned_and_stopped_gets_the_message_or_has_ended)
{
    for (int i = 0; i < test_scale(60); i++) {
        alive = drops = told = 0;
        find_while_it_is_stopped(i);
        CHECK_EQ(alive, 0);
        CHECK_EQ(drops, told);
    }
}

static void *spawn_child(void *arg)
{
    strand_actor_spawn_child(STRAND_ACTOR_ATTR(.name = "child"), &idle, NULL, 0);
    return arg;
}

/* There are no children of an actor that stops. */
static void spawn_at_the_end(void *state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        strand_exception *e = strand_try(spawn_child, NULL, NULL);
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), -ESHUTDOWN);
        strand_exception_release(e);
        strand_yield();
    }
}

static const strand_actor_class fertile = {
    .size = sizeof fertile, .name = "fertile", .receive = do_nothing, .stop = spawn_at_the_end};

static void *tell_the_child(void *arg)
{
    struct race *race = arg;
    while (!race->over) {
        (void)strand_tell(strand_actor_find(race->system, "/user/parent/child"), STRAND_MSG(owned, 1));
        told++;
        strand_yield();
    }
    return NULL;
}

static void look_for_children(int i)
{
    struct race race = {.how = STRAND_STOP_NEXT};
    STRAND_ACTORS(system, NULL);
    race.system = system;
    strand_actor a = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "parent"), &fertile, NULL, 0);
    STRAND_SCOPE(scope);
    strand_spawn(scope, tell_the_child, &race);
    strand_spawn(scope, tell_the_child, &race);
    for (int k = 0; k < i % 10; k++)
        strand_yield();
    CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NEXT), 0);
    CHECK_EQ(strand_actor_wait(a), 0);
    race.over = 1;
    strand_scope_join(scope);
}

TEST_RACE(nobody_finds_a_child_of_an_actor_that_stops)
{
    for (int i = 0; i < test_scale(30); i++) {
        drops = told = 0;
        look_for_children(i);
        CHECK_EQ(drops, told);
    }
}

/* ---- while a run ends -------------------------------------------------------------------------------------- */

enum { RUNS = 1000, MOST_UNDROPPED = 200 }; /* so that they can handle all their messages */

static struct {
    _Atomic uint64_t bits[2]; /* of an actor, in some order: any mixture is nobody */
} published;
static _Atomic bool enough;
static _Atomic long told_from_outside, dropped_there;

static void note_drop_there(void *body)
{
    (void)body;
    dropped_there++;
}

STRAND_MESSAGE_WITH(outer, note_drop_there, { int n; });

static void *publish_and_end(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor a = strand_actor_spawn(system, NULL, &idle, NULL, 0);
    published.bits[0] = a.bits[0];
    published.bits[1] = a.bits[1];
    for (int i = 0; i < 20; i++)
        strand_yield();
    return arg;
}

static void *tell_those_that_end(void *arg)
{
    static int given;
    for (int i = 0; !enough; i++) {
        strand_actor a = {{published.bits[0], published.bits[1]}};
        int error = i % 2 ? strand_tell(a, STRAND_MSG(outer, i)) : strand_actor_give(a, &outer_message, &given);
        CHECK(!error || error == -EPIPE);
        told_from_outside++;
        while (told_from_outside - dropped_there > MOST_UNDROPPED && !enough)
            usleep(100);
    }
    return arg;
}

static void *tell_from_another_run(void *arg)
{
    strand_run(STRAND_OPTIONS(.threads = 1), tell_those_that_end, NULL);
    return arg;
}

static void end_runs_while(strand_fn *tells)
{
    pthread_t threads[2];
    told_from_outside = dropped_there = 0;
    enough = false;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, tells, NULL), 0);
    for (int i = 0; i < test_scale(RUNS) || !told_from_outside; i++)
        test_run(publish_and_end, NULL);
    enough = true;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(dropped_there, told_from_outside);
}

TEST_REAL(plain_threads_may_tell_actors_whose_run_ends)
{
    end_runs_while(tell_those_that_end);
}

TEST_REAL(other_runs_may_tell_actors_whose_run_ends)
{
    end_runs_while(tell_from_another_run);
}
