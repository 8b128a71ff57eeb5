/*
 * Equal strands wait equally long, whichever thread's queue they are in; no runnable strand waits for ever.
 */
#define SUITE balance
#include "test.h"

#include "strand/chan.h"
#include "strand/pool.h"

#include <pthread.h>
#include <time.h>

enum { CROWD = 100 };

static _Atomic bool over;

/* A run of two threads, all of it that the environment asks for but the scheduler. */
static void run_on_two(enum strand_balance balance, const char *scheduler, strand_fn *fn, void *arg)
{
    strand_options options = test_options();
    options.threads = 2;
    options.scheduler = scheduler;
    options.balance = balance;
    over = false;
    strand_run(&options, fn, arg);
}

/* ---- a crowd on one thread, and one strand on the other ------------------------------------------------------- */

struct one {
    _Alignas(64) _Atomic long turns;
    _Atomic int at; /* the thread that it ran on last, -1: none yet */
};
static struct one loner, crowd[CROWD];

static void compute(int64_t ns)
{
    strand_time begun = strand_now();
    while (strand_now().ns - begun.ns < ns)
        continue;
}

/* A turn takes a microsecond, however fast the machine is: waits that differ by less than five in all are left as they
 * are, and a hundred turns of nothing may take three. */
static void *take_turns(void *arg)
{
    struct one *one = arg;
    while (!over) {
        one->at = strand_thread_index();
        one->turns++;
        compute(STRAND_US);
        strand_yield();
    }
    return arg;
}

static void begin(strand_scope scope, struct one *one)
{
    one->turns = 0;
    one->at = -1;
    strand_spawn(scope, take_turns, one);
}

/* The loner runs on another thread than the caller, and never stops: that thread will not look for work. */
static void send_loner_away(strand_scope scope)
{
    begin(scope, &loner);
    while (loner.at < 0 || loner.at == strand_thread_index())
        strand_yield();
}

/* Does not yield, so all of them are in the queue of the caller's thread. */
static void gather_crowd(strand_scope scope)
{
    for (int i = 0; i < CROWD; i++)
        begin(scope, &crowd[i]);
}

static strand_pool_info info_now(void)
{
    strand_pool_info info = {.size = sizeof info};
    strand_pool_info_get(strand_pool_self(), &info);
    return info;
}

/* Yields until the figure is below, or not below, this limit. */
static void await_figure(double limit, bool below)
{
    while ((info_now().unequal < limit) != below)
        strand_yield();
}

/* The loner's turns while each of the crowd has had ten or more, by those of the crowd on average. */
static double advantage(void)
{
    long before[CROWD], first = loner.turns, sum = 0;
    for (int i = 0; i < CROWD; i++)
        before[i] = crowd[i].turns;
    for (int i = 0; i < CROWD; i++)
        while (crowd[i].turns < before[i] + 10)
            strand_yield();
    for (int i = 0; i < CROWD; i++)
        sum += crowd[i].turns - before[i];
    return (double)(loner.turns - first) * CROWD / (double)sum;
}

static void *see_them_made_equal(void *arg)
{
    STRAND_SCOPE(scope);
    send_loner_away(scope);
    gather_crowd(scope);
    await_figure(2, true);
    while (advantage() > 3) /* the system takes threads from their processors now and then */
        continue;
    over = true;
    strand_scope_join(scope);
    return arg;
}

/* S-67 */
TEST_REAL(a_crowd_in_one_queue_is_served_as_well_as_a_loner_in_another)
{
    run_on_two(STRAND_BALANCE_EVEN, "stealing", see_them_made_equal, NULL);
}

static void *see_them_stay_unequal(void *arg)
{
    STRAND_SCOPE(scope);
    send_loner_away(scope);
    gather_crowd(scope);
    await_figure(20, false);
    strand_pool_info info = info_now();
    CHECK(info.wait_ns > 0);
    while (advantage() < 10)
        continue;
    over = true;
    strand_scope_join(scope);
    return arg;
}

/* S-66, S-67 */
TEST_REAL(unequal_service_shows_in_the_figures_of_the_pool)
{
    run_on_two(STRAND_BALANCE_NONE, "stealing", see_them_stay_unequal, NULL);
}

static void *see_no_difference(void *arg)
{
    STRAND_SCOPE(scope);
    gather_crowd(scope);
    for (int i = 0; i < 100; i++) {
        strand_yield();
        CHECK(info_now().unequal == 1);
    }
    over = true;
    strand_scope_join(scope);
    return arg;
}

/* S-66 */
TEST_REAL(with_one_queue_for_all_threads_service_is_equal)
{
    run_on_two(STRAND_BALANCE_EVEN, "global", see_no_difference, NULL);
}

static void *wait_for_long(void *arg)
{
    while (!over) {
        compute(100 * STRAND_US);
        strand_yield();
    }
    return arg;
}

/* Ten strands of a hundred microseconds each: each waits for nine of them, and the root's turn. A busy machine makes it
 * longer, now and then. */
static void *look_at_the_wait(void *arg)
{
    int64_t least = INT64_MAX;
    STRAND_SCOPE(scope);
    CHECK(info_now().wait_ns == 0);
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, wait_for_long, NULL);
    for (int i = 0; i < 40 || least >= 20 * STRAND_MS; i++) {
        strand_yield();
        int64_t wait = info_now().wait_ns;
        CHECK(i < 20 || wait >= 500 * STRAND_US);
        least = i >= 20 && wait < least ? wait : least;
    }
    CHECK(info_now().unequal == 1);
    over = true;
    strand_scope_join(scope);
    CHECK(info_now().wait_ns == 0);
    return arg;
}

/* S-66 */
TEST_REAL(how_long_strands_wait_shows_in_the_figures_of_the_pool)
{
    static const char *const schedulers[] = {"stealing", "global", "dedicated", "current"};
    for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers; i++) {
        strand_options options = test_options();
        options.threads = 1;
        options.own_threads = false;
        options.scheduler = schedulers[i];
        over = false;
        strand_run(&options, look_at_the_wait, NULL);
    }
}

/* ---- stirring ------------------------------------------------------------------------------------------------- */

enum { ODD = 3, MOVES = 6 };

struct mover {
    _Atomic int moves;
};
static struct mover movers[ODD];

static void *note_moves(void *arg)
{
    struct mover *mover = arg;
    for (int at = strand_thread_index(); !over; at = strand_thread_index()) {
        strand_yield();
        mover->moves += strand_thread_index() != at;
    }
    return arg;
}

static bool all_have_moved(void)
{
    for (int i = 0; i < ODD; i++)
        if (movers[i].moves < MOVES)
            return false;
    return true;
}

static void *stir_three(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < ODD; i++) {
        movers[i].moves = 0;
        strand_spawn(scope, note_moves, &movers[i]);
    }
    while (!all_have_moved())
        strand_sleep(10 * STRAND_MS);
    over = true;
    strand_scope_join(scope);
    return arg;
}

/* S-67 */
TEST_REAL(stirring_moves_strands_that_no_number_of_threads_makes_equal)
{
    run_on_two(STRAND_BALANCE_STIR, "stealing", stir_three, NULL);
}

/* ---- no runnable strand waits for ever ------------------------------------------------------------------------ */

enum { HELD = 5 };
static _Atomic int ran;

static void *run_once(void *arg)
{
    ran++;
    return arg;
}

static void *run_after_a_sleep(void *arg)
{
    ran++;
    strand_sleep(50 * STRAND_MS);
    ran++;
    return arg;
}

static void *hold_a_thread(void *arg)
{
    STRAND_SCOPE(scope);
    send_loner_away(scope);
    ran = 0;
    strand_spawn(scope, run_after_a_sleep, NULL);
    while (ran < 1)
        strand_yield();
    for (int i = 0; i < HELD; i++)
        strand_spawn(scope, run_once, NULL);
    while (ran < HELD + 2) /* without an operation */
        continue;
    CHECK_EQ(ran, HELD + 2);
    over = true;
    strand_scope_join(scope);
    return arg;
}

/* S-66 */
TEST_REAL(what_waits_behind_a_strand_that_computes_is_run_by_a_thread_that_has_enough_to_do)
{
    static const char *const schedulers[] = {"stealing", "global"};
    for (int i = 0; i < 2; i++)
        run_on_two(STRAND_BALANCE_EVEN, schedulers[i], hold_a_thread, NULL);
}

typedef STRAND_CHAN(int) numbers;
static numbers there, back;

static void *give_back(void *arg)
{
    for (int value; STRAND_RECEIVE(there, &value) == 0;)
        STRAND_IGNORE(STRAND_SEND(back, &value));
    return arg;
}

/* The two make each other runnable all the time, in the place of their thread for the newest. */
static void *talk(void *arg)
{
    for (int value = 0; !over; value++) {
        STRAND_IGNORE(STRAND_SEND(there, &value));
        STRAND_IGNORE(STRAND_RECEIVE(back, &value));
    }
    STRAND_CHAN_CLOSE(there);
    return arg;
}

static void *yield_beside_two_who_talk(void *arg)
{
    STRAND_SCOPE(scope);
    over = false;
    there = STRAND_CHAN_OPEN(numbers, scope, 0);
    back = STRAND_CHAN_OPEN(numbers, scope, 0);
    strand_spawn(scope, give_back, NULL);
    strand_spawn(scope, talk, NULL);
    for (long i = 0; i < test_scale(200); i++)
        strand_yield();
    over = true;
    strand_scope_join(scope);
    return arg;
}

TEST(two_strands_that_wake_each_other_let_others_have_their_turns)
{
    test_run(yield_beside_two_who_talk, NULL);
}

static void *post_after_a_while(void *arg)
{
    int value = 7;
    nanosleep(&(struct timespec){.tv_nsec = 50 * STRAND_MS}, NULL);
    CHECK_EQ(STRAND_POST(there, &value), 0);
    return arg;
}

static void *wait_for_the_post(void *arg)
{
    int value;
    pthread_t poster;
    CHECK_EQ(pthread_create(&poster, NULL, post_after_a_while, NULL), 0);
    CHECK_EQ(STRAND_RECEIVE(there, &value), 0);
    CHECK_EQ(value, 7);
    over = true;
    pthread_join(poster, NULL);
    return arg;
}

static void *yield_until_over(void *arg)
{
    while (!over)
        strand_yield();
    return arg;
}

/* All threads are busy, with strands that only yield, when something comes from outside. */
static void *hear_under_load(void *arg)
{
    STRAND_SCOPE(scope);
    over = false;
    there = STRAND_CHAN_OPEN(numbers, scope, 4);
    for (int i = 0; i < 8; i++)
        strand_spawn(scope, yield_until_over, NULL);
    strand_join(strand_spawn(scope, wait_for_the_post, NULL));
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(outside_events_are_served_while_all_threads_are_busy)
{
    static const char *const schedulers[] = {"stealing", "global"};
    for (int i = 0; i < 2; i++)
        run_on_two(STRAND_BALANCE_EVEN, schedulers[i], hear_under_load, NULL);
}

#define OF_QUEUES "what is evened out are queues of fibres: a hundred strands on three are no crowd"
TEST_OWN_STACKS(a_crowd_in_one_queue_is_served_as_well_as_a_loner_in_another, OF_QUEUES);
TEST_OWN_STACKS(unequal_service_shows_in_the_figures_of_the_pool, OF_QUEUES);
TEST_OWN_STACKS(how_long_strands_wait_shows_in_the_figures_of_the_pool, OF_QUEUES);
TEST_OWN_STACKS(stirring_moves_strands_that_no_number_of_threads_makes_equal, OF_QUEUES);
TEST_OWN_STACKS(what_waits_behind_a_strand_that_computes_is_run_by_a_thread_that_has_enough_to_do, OF_QUEUES);
