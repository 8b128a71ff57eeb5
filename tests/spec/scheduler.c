/*
 * The schedulers behind one interface: the same results, nobody starves, timers fire under full load.
 */
#define SUITE scheduler
#include "test.h"

#include "strand/debug.h"
#include "strand/pool.h"

static const char *const schedulers[] = {"stealing", "global"};
enum { SCHEDULERS = sizeof schedulers / sizeof *schedulers };

static void *run_with(const char *scheduler, int threads, strand_fn *fn, void *arg)
{
    strand_options options = test_options();
    options.scheduler = scheduler;
    test_set_threads(&options, threads);
    return strand_run(&options, fn, arg);
}

/* ---- choosing one --------------------------------------------------------------------------- */

/* S-20, S-68, S-69, A-11, contract 2.15 */
TEST(each_scheduler_can_be_chosen_by_its_name)
{
    int x = 0;
    for (int i = 0; i < SCHEDULERS; i++)
        CHECK_PTR(run_with(schedulers[i], 2, test_return, &x), &x);
}

/* A-11, contract 2.15 */
TEST(no_name_means_stealing)
{
    int x = 0;
    CHECK_PTR(run_with(NULL, 2, test_return, &x), &x);
}

/* A-11, contract 2.15 */
TEST(an_unknown_scheduler_is_refused_by_its_name)
{
    strand_exception *e = NULL;
    strand_options options = test_options();
    options.scheduler = "round-table";
    options.uncaught = &e;
    CHECK_PTR(strand_run(&options, test_return, NULL), NULL);
    CHECK(e != NULL);
    CHECK_CONTAINS(strand_exception_text(e), "round-table");
    strand_exception_release(e);
}

/* ---- the same results ----------------------------------------------------------------------- */

struct part {
    const int *numbers;
    size_t count;
};

/* A strand per half, down to single numbers. */
static void *sum_halves(void *arg)
{
    const struct part *part = arg;
    if (part->count == 1)
        return TEST_PTR(part->numbers[0]);
    size_t half = part->count / 2;
    struct part low = {part->numbers, half}, high = {part->numbers + half, part->count - half};
    STRAND_SCOPE(scope);
    strand one = strand_spawn_with(scope, NULL, sum_halves, &low, sizeof low);
    strand other = strand_spawn_with(scope, NULL, sum_halves, &high, sizeof high);
    return TEST_PTR((intptr_t)strand_join(one) + (intptr_t)strand_join(other));
}

/* S-01, S-20, S-21, A-12, contract 2.15 */
TEST(every_scheduler_on_every_number_of_threads_computes_the_same)
{
    int numbers[100];
    for (int i = 0; i < 100; i++)
        numbers[i] = i * i;
    for (int i = 0; i < SCHEDULERS; i++) {
        for (int threads = 1; threads <= 4; threads *= 2) {
            struct part all = {numbers, 100};
            CHECK_PTR(run_with(schedulers[i], threads, sum_halves, &all), TEST_PTR(328350));
        }
    }
}

/* Two strands write their letters in turn. */
static _Atomic int turn;

static void *write_in_turn(void *arg)
{
    int mine = *(int *)arg;
    for (int i = 0; i < 5; i++) {
        test_yield_until(&turn, mine);
        test_log("%c", 'a' + mine);
        turn = 1 - mine;
    }
    return arg;
}

static void *take_turns(void *arg)
{
    int numbers[2] = {0, 1};
    STRAND_SCOPE(scope);
    strand_spawn(scope, write_in_turn, &numbers[1]);
    strand_spawn(scope, write_in_turn, &numbers[0]);
    strand_scope_join(scope);
    return arg;
}

/* S-01 */
TEST(strands_that_yield_to_each_other_all_come_to_their_ends)
{
    for (int i = 0; i < SCHEDULERS; i++) {
        for (int threads = 1; threads <= 4; threads *= 2) {
            turn = 0;
            test_log_clear();
            run_with(schedulers[i], threads, take_turns, NULL);
            CHECK_LOG("a b a b a b a b a b");
        }
    }
}

/* ---- first come, first served --------------------------------------------------------------- */

#define SERVES_FIBRES "the queue is one of fibres, each of which serves its own strands in that order"

/* A strand that joins one in the queue gives it its own turn. So no strand joins before the end here. */
static _Atomic int over;

static void *log_letter(void *letter)
{
    test_log("%s", (const char *)letter);
    over++;
    return letter;
}

static void *log_three_times(void *letter)
{
    for (int i = 1; i <= 3; i++) {
        test_log("%s%d", (const char *)letter, i);
        strand_yield();
    }
    over++;
    return letter;
}

static void *spawn_four(void *arg)
{
    static char letters[][2] = {"a", "b", "c", "d"};
    STRAND_SCOPE(scope);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, log_three_times, letters[i]);
    test_yield_until(&over, 4);
    strand_scope_join(scope);
    return arg;
}

/* S-01 */
TEST_REAL(on_one_thread_the_scheduler_global_serves_in_the_order_of_coming)
{
    run_with("global", 1, spawn_four, NULL);
    CHECK_LOG("a1 b1 c1 d1 a2 b2 c2 d2 a3 b3 c3 d3");
}
TEST_OWN_STACKS(on_one_thread_the_scheduler_global_serves_in_the_order_of_coming, SERVES_FIBRES);

static void *sleep_until_cancelled(void *arg)
{
    test_log("sleeper");
    strand_exception_release(strand_try(test_sleep, NULL, NULL));
    return log_letter(arg);
}

static void *cancel_and_log(void *other)
{
    strand_cancel(*(strand *)other, NULL);
    log_letter("waker");
    return other;
}

static void *spawn_and_log(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, log_letter, "child");
    test_log("spawner");
    strand_yield();
    log_letter("spawner-again");
    test_yield_until(&over, 5);
    strand_scope_join(scope);
    return arg;
}

/* The second wakes the first, the third spawns. */
static void *wake_and_spawn(void *arg)
{
    STRAND_SCOPE(scope);
    strand sleeper = strand_spawn(scope, sleep_until_cancelled, "woken");
    strand_spawn(scope, cancel_and_log, &sleeper);
    strand_spawn(scope, spawn_and_log, NULL);
    strand_spawn(scope, log_letter, "last");
    test_yield_until(&over, 5);
    strand_scope_join(scope);
    return arg;
}

/* S-01 */
TEST_REAL(on_one_thread_the_scheduler_global_puts_who_is_spawned_woken_or_yields_behind_all_others)
{
    run_with("global", 1, wake_and_spawn, NULL);
    CHECK_LOG("sleeper waker spawner last woken child spawner-again");
}
TEST_OWN_STACKS(on_one_thread_the_scheduler_global_puts_who_is_spawned_woken_or_yields_behind_all_others,
                SERVES_FIBRES);

/* ---- nobody starves ------------------------------------------------------------------------- */

#define RUNNERS 10

static struct {
    long goal;
    _Atomic long done[RUNNERS];
    _Atomic bool over;
} race;

static void *run_the_race(void *arg)
{
    _Atomic long *mine = &race.done[*(int *)arg];
    while (!race.over) {
        strand_yield();
        if (++*mine == race.goal)
            race.over = true;
    }
    return arg;
}

static void *hold_the_race(void *arg)
{
    int numbers[RUNNERS];
    STRAND_SCOPE(scope);
    for (int i = 0; i < RUNNERS; i++) {
        numbers[i] = i;
        race.done[i] = 0;
        strand_spawn(scope, run_the_race, &numbers[i]);
    }
    strand_scope_join(scope);
    return arg;
}

static long slowest_runner(void)
{
    long slowest = race.goal;
    for (int i = 0; i < RUNNERS; i++)
        if (race.done[i] < slowest)
            slowest = race.done[i];
    return slowest;
}

static void race_on(int threads, long goal)
{
    race.goal = goal;
    for (int i = 0; i < SCHEDULERS; i++) {
        race.over = false;
        run_with(schedulers[i], threads, hold_the_race, NULL);
        CHECK(slowest_runner() >= goal / 2);
    }
}

/* S-19, contract 2.6 */
TEST_REAL(strands_that_yield_on_one_thread_make_equal_progress)
{
    race_on(1, test_scale(10000));
}

/* S-66, contract 2.6 */
TEST_REAL(no_strand_that_yields_on_two_threads_is_left_behind)
{
    race.goal = test_scale(200000);
    for (int i = 0; i < SCHEDULERS; i++) {
        /* A runner also falls behind while the system takes its thread from the processor: a fair race proves it. */
        do {
            race.over = false;
            run_with(schedulers[i], 2, hold_the_race, NULL);
        } while (slowest_runner() < race.goal / 20);
    }
}

static _Atomic long turns;
static _Atomic bool has_turns_enough;

static void *count_turns(void *arg)
{
    while (!has_turns_enough) {
        turns++;
        strand_yield();
    }
    return arg;
}

static void *fork_and_join_beside_one_that_yields(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, count_turns, arg);
    while (!turns)
        strand_yield();
    long before = turns;
    for (int i = 0; i < 10000; i++)
        strand_join(strand_spawn(scope, test_return, arg));
    CHECK(turns - before > 10);
    has_turns_enough = true;
    strand_scope_join(scope);
    return arg;
}

/* contract 2.6 */
TEST_REAL(a_strand_that_yields_gets_its_turns_beside_a_loop_of_spawns_and_joins)
{
    for (int i = 0; i < SCHEDULERS; i++) {
        turns = 0;
        has_turns_enough = false;
        run_with(schedulers[i], 1, fork_and_join_beside_one_that_yields, NULL);
    }
}

static _Atomic bool had_a_turn;

static void *take_a_turn(void *arg)
{
    had_a_turn = true;
    return arg;
}

/* Spawns and joins without ever yielding by itself, until the other strand has run. */
static void *fork_and_join_beside_another(void *arg)
{
    STRAND_SCOPE(scope);
    strand other = strand_spawn(scope, take_a_turn, arg);
    while (!had_a_turn)
        strand_join(strand_spawn(scope, test_return, arg));
    strand_join(other);
    return arg;
}

/* contract 2.6 */
TEST_REAL(a_loop_of_spawns_and_joins_starves_nobody)
{
    for (int i = 0; i < SCHEDULERS; i++) {
        had_a_turn = false;
        run_with(schedulers[i], 1, fork_and_join_beside_another, NULL);
    }
}

static void *fork_deeply_for_good(void *arg)
{
    for (;;) {
        STRAND_SCOPE(scope);
        strand_spawn(scope, test_return, arg);
        strand_spawn(scope, test_return, arg);
        strand_scope_join(scope);
    }
    return arg;
}

/* Four strands fork and join for good; one that only yields has to get its turns all the same. */
static void *yield_beside_fork_join(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, fork_deeply_for_good, arg);
    for (long i = 0; i < test_scale(200); i++)
        strand_yield();
    strand_scope_cancel(scope, NULL);
    return arg;
}

/* A-16, contract 2.6 */
TEST_REAL(a_strand_that_yields_gets_its_turns_under_a_load_of_fork_and_join)
{
    for (int i = 0; i < SCHEDULERS; i++) {
        run_with(schedulers[i], 1, yield_beside_fork_join, NULL);
        run_with(schedulers[i], 2, yield_beside_fork_join, NULL);
    }
}

/* ---- timers under full load ----------------------------------------------------------------- */

static _Atomic bool stop;

static void *yield_until_stopped(void *arg)
{
    while (!stop)
        strand_yield();
    return arg;
}

/* Sleeps 10 ms twenty times beside spinners, which go on until it has. */
static void *sleep_beside_spinners(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++)
        strand_spawn(scope, yield_until_stopped, NULL);
    for (int i = 0; i < 20; i++) {
        strand_time begin = strand_now();
        strand_sleep(10 * STRAND_MS);
        CHECK(strand_now().ns - begin.ns >= 10 * STRAND_MS);
    }
    stop = true;
    strand_scope_join(scope);
    return arg;
}

/* A-16, V-23, contract 2.5 */
TEST_REAL(timers_fire_while_all_threads_are_busy)
{
    for (int i = 0; i < SCHEDULERS; i++) {
        for (int threads = 1; threads <= 4; threads *= 2) {
            stop = false;
            run_with(schedulers[i], threads, sleep_beside_spinners, NULL);
        }
    }
}

/* A spinner that never switches holds one of two threads; timers fire on the other. */
static void *spin_until_stopped(void *arg)
{
    while (!stop)
        continue;
    return arg;
}

static void *sleep_beside_a_spinner(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, spin_until_stopped, NULL);
    for (int i = 0; i < 10; i++)
        strand_sleep(5 * STRAND_MS);
    stop = true;
    strand_scope_join(scope);
    return arg;
}

/* V-19, V-23, contract 2.2 */
TEST_REAL(timers_fire_while_one_of_two_threads_never_switches)
{
    for (int i = 0; i < SCHEDULERS; i++) {
        stop = false;
        run_with(schedulers[i], 2, sleep_beside_a_spinner, NULL);
    }
}

/* ---- order ---------------------------------------------------------------------------------- */

static void *log_number(void *arg)
{
    test_log("%d", *(int *)arg);
    return arg;
}

static void *sleep_in_order(void *arg)
{
    strand_sleep(*(int *)arg * 20 * STRAND_MS);
    return log_number(arg);
}

TEST_INSIDE(sleepers_wake_in_the_order_of_their_times)
{
    int numbers[4] = {3, 1, 4, 2};
    STRAND_SCOPE(scope);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, sleep_in_order, &numbers[i]);
    strand_scope_join(scope);
    if (test_seed()) /* a machine of its own may begin the sleeps later than others end */
        CHECK_LOG("1 2 3 4");
}

static void *wake_once(void *woken)
{
    strand_sleep((int64_t)(strand_id(strand_self()) * 7919 % 1000) * 20 * STRAND_US);
    ++*(_Atomic long *)woken;
    return woken;
}

TEST_INSIDE(each_of_many_sleepers_wakes_once)
{
    long sleepers = test_scale(10000);
    _Atomic long woken = 0;
    STRAND_SCOPE(scope);
    for (long i = 0; i < sleepers; i++)
        strand_spawn(scope, wake_once, &woken);
    strand_scope_join(scope);
    CHECK_EQ(woken, sleepers);
}
