/*
 * Actors that are short of something: of strands to run them, of threads, of room, of memory.
 */
#define _GNU_SOURCE
#define SUITE actor_scarce
#include "test.h"

#include "strand/actor.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <dirent.h>

STRAND_MESSAGE(number, { int n; });
STRAND_MESSAGE(parcel, { char bytes[5000]; }); /* so large that its memory is given back at once */
STRAND_MESSAGE(act, { void (*fn)(strand_message *); });

static strand_event go;
static _Atomic int made, stopped, begun, count, senders;

static void begin(void)
{
    go = (strand_event){{0}};
    made = stopped = begun = count = senders = 0;
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

static const strand_actor_class puppet = {.size = sizeof puppet, .name = "puppet", .receive = perform};

static void await_go(strand_message *message)
{
    (void)message;
    strand_event_wait(&go);
}

static void tell(strand_actor to, void (*fn)(strand_message *))
{
    CHECK_EQ(strand_tell(to, STRAND_MSG(act, fn)), 0);
}

static unsigned all_alike(const strand_message *message)
{
    (void)message;
    return 5;
}

/* ---- strands for actors ------------------------------------------------------------------------------------------ */

enum { FEW = 4 };

static strand_actor running[20];

static void have_begun(strand_message *message)
{
    running[begun++] = strand_actor_self();
    count++; /* a reader of the count sees the actor's identity */
    await_go(message);
}

/* Stops the running actors one after the other. */
static void *stop_one_after_the_other(void *arg)
{
    STRAND_ACTORS(system, NULL);
    begin();
    for (int i = 0; i < 3 * FEW; i++)
        tell(strand_actor_spawn(system, NULL, &puppet, NULL, 0), have_begun);
    strand_actors_join(system);
    CHECK(count && count < FEW); /* one strand is this one */
    for (int i = 0; i < 3 * FEW; i++) {
        CHECK(count > i);
        CHECK_EQ(strand_actor_stop(running[i], STRAND_STOP_NOW), 0);
        strand_actors_join(system);
        CHECK(strand_actor_ended(running[i]));
        CHECK_EQ(strand_actor_stop(running[i], STRAND_STOP_NOW), 0);
    }
    return arg;
}

TEST(actors_that_are_stopped_at_once_end_although_there_is_no_other_strand_to_end_them)
{
    strand_options options = test_options();
    options.max_strands = FEW;
    strand_run(&options, stop_one_after_the_other, NULL);
}

enum { CROWD = 4096 }; /* more than there are strands made for in advance */

static void await_no_end(strand_message *message)
{
    static strand_event never;
    (void)message;
    strand_event_wait(&never);
}

static void await_go_and_count(strand_message *message)
{
    await_go(message);
    count++;
}

/* Its strand is gone, or another's, while it waits in a line behind others. */
TEST_REAL_INSIDE(one_that_waits_for_a_strand_and_is_stopped_at_once_again_interrupts_nobody_else)
{
    STRAND_ACTORS(system, NULL);
    begin();
    strand_actor a = strand_actor_spawn(system, NULL, &puppet, NULL, 0);
    tell(a, await_no_end);
    strand_actors_join(system);
    for (int i = 0; i < CROWD; i++)
        tell(strand_actor_spawn(system, NULL, &puppet, NULL, 0), await_go_and_count);
    while (!strand_actor_ended(a)) {
        (void)strand_actor_stop(a, STRAND_STOP_NOW);
        strand_yield();
    }
    strand_event_set(&go);
    strand_actors_join(system);
    CHECK_EQ(count, CROWD);
}

/* So many strands for actors as there are actors that keep their strands until another actor has its turn, and one
 * more: that has to serve the other actor, also if it asks for a strand while several fall idle. */
enum { ROUNDS = 100, MOST = 6 };

static void go_on(strand_message *message)
{
    (void)message;
    strand_event_set(&go);
}

static void count_turn(strand_message *message)
{
    (void)message;
    count++;
}

/* arg: how many actors keep their strands. */
static void *need_all_strands(void *arg)
{
    int record_refs = *(int *)arg, actors_count = record_refs + 3;
    strand_actor actors[MOST];
    STRAND_ACTORS(system, NULL);
    begin();
    for (int i = 0; i < actors_count; i++)
        actors[i] = strand_actor_spawn(system, NULL, &puppet, NULL, 0);
    for (int round = 1; round <= ROUNDS; round++) {
        go = (strand_event){{0}};
        for (int i = 0; i < actors_count; i++)
            tell(actors[i], i < 2 ? count_turn : i < 2 + record_refs ? await_go_and_count : go_on);
        strand_actors_join(system);
        CHECK_EQ(count, (2 + record_refs) * round);
    }
    return arg;
}

static void run_with_scarce_strands(int record_refs)
{
    strand_options options = test_options();
    options.max_strands = record_refs + 2;
    strand_run(&options, need_all_strands, &record_refs);
}

TEST(an_actor_that_waits_for_a_strand_gets_the_one_that_falls_idle_meanwhile)
{
    run_with_scarce_strands(1);
}

TEST(each_of_several_actors_that_wait_for_strands_gets_one_that_falls_idle_meanwhile)
{
    run_with_scarce_strands(2);
    run_with_scarce_strands(3);
}

static int count_threads(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

TEST_REAL_INSIDE(an_executor_of_tasks_needs_no_more_threads_for_each_actor_that_was_stopped_at_once)
{
    STRAND_ACTORS(system, NULL);
    int first = 0;
    begin();
    for (int i = 1; i <= 20; i++) {
        strand_actor a = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.dispatcher = "task-executor"), &puppet, NULL, 0);
        tell(a, have_begun);
        test_yield_until(&count, i);
        first = first ? first : count_threads();
        CHECK_EQ(strand_actor_stop(a, STRAND_STOP_NOW), 0);
        CHECK_EQ(strand_actor_wait(a), 0);
    }
    CHECK(count_threads() <= first + 3);
}

/* ---- while it passes a message on -------------------------------------------------------------------------------- */

/* Dumps after it has handled the forwarded message, while the forwarding actor has not continued. */
static void dump_afterwards(void *state, strand_message *message)
{
    if (STRAND_IS(message, parcel))
        CHECK_EQ(strand_tell(strand_actor_self(), STRAND_MSG(number, 1)), 0);
    else if (STRAND_IS(message, number))
        (void)test_dump();
    else
        perform(state, message);
}

static void pass_on(void *state, strand_message *message)
{
    strand_message_forward(message, *(strand_actor *)state);
}

static const strand_actor_class
    narrow = {.size = sizeof narrow, .name = "narrow", .receive = dump_afterwards, .max_mailbox = 1},
    passer = {.size = sizeof passer, .name = "passer", .state_size = sizeof(strand_actor), .receive = pass_on};

TEST_INSIDE(a_message_that_waits_for_room_elsewhere_is_not_said_to_be_in_hand)
{
    STRAND_ACTORS(system, NULL);
    begin();
    strand_actor full = strand_actor_spawn(system, NULL, &narrow, NULL, 0);
    strand_actor a = strand_actor_spawn(system, NULL, &passer, &full, sizeof full);
    tell(full, await_go);
    strand_actors_join(system);
    CHECK_EQ(strand_tell(a, STRAND_MSG(parcel, {0})), 0);
    test_await_blocked("waits for room in the mailbox of actor", 1);
    CHECK_EQ(test_count(test_dump(), "handles a 'act'"), 1);
    CHECK_EQ(test_count(test_dump(), "handles a 'parcel'"), 0);
    strand_event_set(&go);
    strand_actors_join(system);
}

/* ---- while more comes, and others are called --------------------------------------------------------------------- */

static void count_message(void *state, strand_message *message)
{
    (void)state, (void)message;
    count++;
}

static const strand_actor_class tight = {
    .size = sizeof tight, .name = "tight", .receive = count_message, .priority = all_alike, .max_mailbox = 1};

static void *send_many(void *actor)
{
    for (int i = 0, times = (int)test_scale(2000); i < times; i++)
        CHECK_EQ(strand_tell(*(strand_actor *)actor, STRAND_MSG(number, i)), 0);
    senders--;
    return NULL;
}

static void *resume_often(void *actor)
{
    while (senders) {
        (void)strand_actor_resume(*(strand_actor *)actor);
        strand_yield();
    }
    return NULL;
}

TEST_RACE(a_prioritized_actor_that_is_called_between_two_messages_loses_no_room)
{
    STRAND_ACTORS(system, NULL);
    begin();
    senders = 2;
    strand_actor a = strand_actor_spawn(system, NULL, &tight, NULL, 0);
    STRAND_SCOPE(scope);
    strand_spawn(scope, send_many, &a);
    strand_spawn(scope, send_many, &a);
    strand_spawn(scope, resume_often, &a);
    strand_scope_join(scope);
    strand_actors_join(system);
    CHECK_EQ(count, 2 * test_scale(2000));
}

/* ---- no memory, and much time ------------------------------------------------------------------------------------ */

static void note_stop(void *state)
{
    (void)state;
    stopped++;
}

static const strand_actor_class short_lived = {
    .size = sizeof short_lived, .name = "short lived", .receive = perform, .stop = note_stop};

static void *make_one(void *system)
{
    strand_actor a = strand_actor_spawn(*(strand_actors *)system, NULL, &short_lived, NULL, 0);
    made++;
    (void)strand_actor_stop(a, STRAND_STOP_NEXT);
    return NULL;
}

static void *make_many(void *arg)
{
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < 100; i++) {
        strand_exception *e = strand_try(make_one, &system, NULL);
        strand_exception_release(e);
        if (i % 10 == 0)
            strand_sleep(STRAND_MS);
    }
    return arg;
}

TEST_REAL(the_function_for_the_end_is_called_even_if_there_is_no_memory)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        strand_exception *e = NULL;
        strand_sim sim = {.size = sizeof sim, .memory = 50, .silent = true};
        strand_options options = test_options();
        begin();
        options.has_seed = true;
        options.seed = seed;
        options.sim = &sim;
        options.uncaught = &e; /* of a system that could not be made */
        strand_run(&options, make_many, NULL);
        strand_exception_release(e);
        CHECK_EQ(stopped, made);
    }
}

static void set_timer(strand_message *message)
{
    (void)message;
    CHECK_EQ(strand_actor_timer(&go, 0, INT64_MAX, STRAND_MSG(number, 1)), 0);
    CHECK_EQ(strand_actor_receive_timeout(INT64_MAX), 0);
}

TEST_INSIDE(a_timer_may_come_again_after_the_longest_time_there_is)
{
    STRAND_ACTORS(system, NULL);
    begin();
    tell(strand_actor_spawn(system, NULL, &puppet, NULL, 0), set_timer);
    while (!test_log_is("1"))
        strand_sleep(STRAND_MS);
    strand_sleep(10 * STRAND_MS);
    CHECK_LOG("1");
}
