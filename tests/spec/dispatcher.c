/*
 * Where actors run.
 */
#define _GNU_SOURCE
#define SUITE dispatcher
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

STRAND_MESSAGE(number, { int n; });

static strand_event done;
static _Atomic int count, thread_ids[100];

static void begin(void)
{
    done = (strand_event){{0}};
    count = 0;
}

static void note_thread(void *state, strand_message *message)
{
    int most = *(int *)state, at = count++;
    (void)message;
    thread_ids[at] = gettid();
    if (at % 3 == 0)
        strand_yield();
    if (at + 1 == most)
        strand_event_set(&done);
}

static const strand_actor_class noting = {
    .size = sizeof noting, .name = "noting", .state_size = sizeof(int), .receive = note_thread};

static strand_actor spawn_on(strand_actors system, const char *dispatcher, int most)
{
    return strand_actor_spawn(system, STRAND_ACTOR_ATTR(.dispatcher = dispatcher), &noting, &most, sizeof most);
}

static void tell_times(strand_actor a, int times)
{
    for (int i = 0; i < times; i++)
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, i)), 0);
}

static void check_one_thread(int times)
{
    for (int i = 1; i < times; i++)
        CHECK_EQ(thread_ids[i], thread_ids[0]);
}

/* S-20, A-08, A-11, A-20 */
TEST_INSIDE(the_names_of_executors_are_understood)
{
    static const char *const names[] = {"",
                                        "default-executor",
                                        "thread-pool-executor",
                                        "fork-join-executor",
                                        "current-context-executor",
                                        "task-executor",
                                        NULL};
    begin();
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < 7; i++)
        tell_times(spawn_on(system, names[i], 70), 10);
    strand_event_wait(&done);
}

static void *spawn_on_an_unknown_one(void *arg)
{
    spawn_on(*(strand_actors *)arg, "warp-executor", 1);
    return arg;
}

/* */
TEST_INSIDE(others_are_refused)
{
    STRAND_ACTORS(system, NULL);
    strand_exception *e = strand_try(spawn_on_an_unknown_one, &system, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -ENOENT);
    strand_exception_release(e);
}

/* S-20, S-38, A-11, contract 6.4 */
TEST_REAL_INSIDE(an_actor_may_be_pinned_to_a_thread)
{
    static const strand_dispatcher own = {
        .size = sizeof own, .name = "own", .executor = "fork-join-executor", .threads = 2, .pin = STRAND_PIN(1)};
    begin();
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = &own, .dispatchers_count = 1));
    tell_times(spawn_on(system, "own", 30), 30);
    strand_event_wait(&done);
    check_one_thread(30);
    CHECK(thread_ids[0] != gettid());
}

/* S-20, S-40 */
TEST_REAL_INSIDE(actors_of_a_pool_of_one_thread_all_run_on_it)
{
    static const strand_dispatcher sql = {
        .size = sizeof sql, .name = "sql", .executor = "fork-join-executor", .threads = 1, .scheduler = "dedicated"};
    begin();
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = &sql, .dispatchers_count = 1));
    strand_actor a = spawn_on(system, "sql", 40), b = spawn_on(system, "sql", 40);
    for (int i = 0; i < 20; i++) {
        tell_times(a, 1);
        tell_times(b, 1);
        strand_yield();
    }
    strand_event_wait(&done);
    check_one_thread(40);
}

static void *main_thread_id;

static void *pin_to_the_caller(void *arg)
{
    static const strand_dispatcher ui = {.size = sizeof ui, .name = "ui", .pin = STRAND_PIN(0)};
    begin();
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = &ui, .dispatchers_count = 1));
    tell_times(spawn_on(system, "ui", 30), 30);
    strand_event_wait(&done);
    check_one_thread(30);
    CHECK_EQ(thread_ids[0], (intptr_t)main_thread_id);
    return arg;
}

/* S-43, A-11, contract 6.4 */
TEST_REAL(an_actor_may_be_pinned_to_the_main_thread)
{
    strand_options options = test_options();
    test_set_callers_thread(&options);
    main_thread_id = TEST_PTR(gettid());
    strand_run(&options, pin_to_the_caller, NULL);
}

static _Atomic int sleeping, slept;

static void block_thread(void *state, strand_message *message)
{
    (void)state, (void)message;
    sleeping++;
    while (sleeping < 4)
        usleep(1000);
    if (++slept == 4)
        strand_event_set(&done);
}

static const strand_actor_class blocking = {
    .size = sizeof blocking, .name = "blocking", .receive = block_thread, .dispatcher = "task-executor"};

/* */
TEST_REAL_INSIDE(each_task_of_an_executor_of_tasks_may_block_its_thread)
{
    begin();
    sleeping = slept = 0;
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(strand_tell(strand_actor_spawn(system, NULL, &blocking, NULL, 0), STRAND_MSG(number, i)), 0);
    strand_event_wait(&done);
}

static void *tell_from_outside(void *actor)
{
    for (int i = 0; i < 4; i++)
        CHECK_EQ(strand_tell(*(strand_actor *)actor, STRAND_MSG(number, i)), 0);
    return NULL;
}

TEST_REAL_INSIDE(plain_threads_may_tell_those_of_any_executor)
{
    static const char *const names[] = {NULL, "fork-join-executor", "current-context-executor", "task-executor"};
    begin();
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < 16; i++) {
        strand_actor a = spawn_on(system, names[i % 4], 64);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, tell_from_outside, &a), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    strand_event_wait(&done);
}

static void *open_one_that_is_pinned_to_no_thread(void *arg)
{
    static const strand_dispatcher wrong = {
        .size = sizeof wrong, .name = "wrong", .executor = "fork-join-executor", .threads = 2, .pin = STRAND_PIN(77)};
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = &wrong, .dispatchers_count = 1));
    (void)system;
    return arg;
}

TEST_INSIDE(a_dispatcher_is_not_pinned_to_a_thread_that_its_pool_lacks)
{
    strand_exception *e = strand_try(open_one_that_is_pinned_to_no_thread, NULL, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -ENXIO);
    strand_exception_release(e);
}

static void *be_a_procedure(void *arg)
{
    test_log("%s", (char *)arg);
    strand_yield();
    if (++count == 3)
        strand_event_set(&done);
    return arg;
}

/* S-22 */
TEST_INSIDE(procedures_are_tasks_too)
{
    begin();
    STRAND_ACTORS(system, NULL);
    CHECK_EQ(strand_actors_run(system, NULL, be_a_procedure, "a"), 0);
    CHECK_EQ(strand_actors_run(system, "fork-join-executor", be_a_procedure, "a"), 0);
    CHECK_EQ(strand_actors_run(system, NULL, be_a_procedure, "a"), 0);
    CHECK_EQ(strand_actors_run(system, "nowhere", be_a_procedure, "a"), -ENOENT);
    strand_event_wait(&done);
    CHECK_LOG("a a a");
}

static char order[13];

static void flood(void *state, strand_message *message)
{
    (void)message;
    order[count++] = *(char *)state;
}

/* As long as it takes for a turn to be over by its time. */
static void take_time(void *state, strand_message *message)
{
    (void)message;
    int64_t begun = strand_now().ns;
    while (strand_now().ns - begun < 200 * STRAND_US)
        sched_yield();
    order[count++] = *(char *)state;
}

static const strand_actor_class slow = {
    .size = sizeof slow, .name = "slow", .state_size = 1, .receive = take_time, .dispatcher = "quick"};

/* Both have six messages to begin with, on one thread. */
static void *tell_two(void *arg)
{
    static const strand_dispatcher all[] = {
        {.size = sizeof all[0], .name = "quick", .max_batch = 1000, .quantum_ns = 100 * STRAND_US},
        {.size = sizeof all[0], .name = "fair", .max_batch = 2}};
    begin();
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.dispatchers = all, .dispatchers_count = 2));
    strand_actor a = strand_actor_spawn(system, NULL, arg, "a", 1), b = strand_actor_spawn(system, NULL, arg, "b", 1);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(strand_tell(a, STRAND_MSG(number, 0)), 0);
        CHECK_EQ(strand_tell(b, STRAND_MSG(number, 0)), 0);
    }
    strand_actors_join(system);
    return NULL;
}

static void tell_two_of(const strand_actor_class *class)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, tell_two, (void *)(uintptr_t) class);
    CHECK_EQ(strlen(order), 12);
}

/* Each message takes longer than that. */
/* */
TEST_REAL(a_turn_ends_after_so_much_time)
{
    tell_two_of(&slow);
    for (int i = 0; i < 8; i++)
        CHECK(order[i] != order[i + 1]);
}

static const strand_actor_class flooding = {
    .size = sizeof flooding, .name = "flooding", .state_size = 1, .receive = flood, .dispatcher = "fair"};

/* S-06, S-16, S-19, A-03, A-22, contract 6.2 */
TEST_REAL(a_turn_ends_after_so_many_messages)
{
    tell_two_of(&flooding);
    for (int i = 0; i < 8; i++)
        CHECK(order[i] != order[i + 1] || order[i] != order[i + 2]);
}

enum { BACKLOG = 1280 };

static strand_semaphore mine, yours;
static _Atomic int rounds;
static int heard_in, turns;
static _Atomic bool all_heard, talking_is_over;

/* Messages between which no other strand has run belong to one turn. */
static void count_turns(void *state, strand_message *message)
{
    (void)state;
    (void)message;
    turns += rounds != heard_in;
    heard_in = rounds;
    all_heard = ++count == BACKLOG;
}

static const strand_actor_class counting = {.size = sizeof counting, .name = "counting", .receive = count_turns};

/* The two wake each other, and each acquire has to wait: neither ever yields. */
static void *answer(void *arg)
{
    for (bool over = false; !over; strand_semaphore_release(&mine)) {
        strand_semaphore_acquire(&yours);
        over = talking_is_over;
    }
    return arg;
}

static void *talk_until_all_is_handled(void *arg)
{
    STRAND_ACTORS(system, NULL);
    STRAND_SCOPE(scope);
    begin();
    mine = yours = (strand_semaphore)STRAND_SEMAPHORE_INIT(0);
    rounds = heard_in = turns = 0;
    all_heard = talking_is_over = false;
    strand answering = strand_spawn(scope, answer, NULL);
    strand_actor starved = strand_actor_spawn(system, NULL, &counting, NULL, 0);
    for (int i = 0; i < BACKLOG; i++)
        CHECK_EQ(strand_tell(starved, STRAND_MSG(number, i)), 0);
    for (; !all_heard; rounds++) {
        strand_semaphore_release(&yours);
        strand_semaphore_acquire(&mine);
    }
    talking_is_over = true;
    strand_semaphore_release(&yours);
    strand_join(answering);
    return arg;
}

/* Such an actor is picked once for each look of its thread, and the pick answers the look: no strand yields for it
 * again. */
TEST_REAL(an_actor_that_only_fairness_lets_run_handles_many_messages_in_a_turn)
{
    strand_options options = test_options();
    options.scheduler = "stealing";
    options.threads = 1;
    strand_run(&options, talk_until_all_is_handled, NULL);
    CHECK_EQ(count, BACKLOG);
    CHECK(turns <= BACKLOG / 2);
}
