/*
 * On which thread a strand goes on, and how seldom a thread is woken for it. Where strands run is a preference: what is
 * checked is a majority that chance would not give. All of it needs real threads.
 */
#define SUITE placement
#include "test.h"

#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/pool.h"

#include <sched.h>
#include <unistd.h>

/* Four fifths. On four threads chance would do for a quarter. A busy machine takes threads from their processors, and
 * what they have to do goes elsewhere: so each test is repeated until it was as the rule says. */
static bool as_a_rule(long count, long of)
{
    return count * 5 >= of * 4;
}

/* The scheduler with one queue for all threads prefers none of them; and threads that take from others because strands
 * wait for longer there are the business of balance.c. */
static void *run_on(int threads, strand_fn *fn, void *arg)
{
    strand_options options = test_options();
    options.scheduler = "stealing";
    options.balance = STRAND_BALANCE_NONE;
    test_set_threads(&options, threads);
    return strand_run(&options, fn, arg);
}

static int several_threads(void)
{
    return test_threads() < 4 ? 4 : test_threads();
}

/* ---- a run whose threads all have something to do ------------------------------------------------ */

/* One host per thread keeps it busy until the guests are done: so no thread has a reason to take from another. */
enum { HOST_STACK = 128 * 1024 }; /* not the usual one, so that there is a fibre for each in every run */
static struct {
    int hosts;
    _Atomic int met;
    _Atomic bool over;
} house;

/* The first part spins without a switch until all are here, so that each is on a thread of its own. */
static void be_a_host(void)
{
    for (house.met++; house.met < house.hosts;)
        sched_yield();
}

static void *keep_a_thread_busy(void *arg)
{
    be_a_host();
    while (!house.over)
        strand_yield();
    return arg;
}

static void open_the_house(strand_scope scope, strand_fn *host, void *arg)
{
    house.met = 0;
    house.over = false;
    for (int i = 0; i < house.hosts; i++)
        strand_spawn_with(scope, STRAND_ATTR(.stack_size = HOST_STACK), host, arg, 0);
    test_yield_until(&house.met, house.hosts);
}

static void close_the_house(strand_scope scope)
{
    house.over = true;
    strand_scope_join(scope);
}

/* ---- by a timer, or from outside: to the thread that ran it last ------------------------------------ */

struct guests {
    void (*block)(void);
    int waits; /* of each */
    _Atomic int stayed;
};
#define GUESTS 8

static void *block_again_and_again(void *arg)
{
    struct guests *guests = arg;
    for (int i = 0; i < guests->waits; i++) {
        pid_t before = gettid();
        guests->block();
        guests->stayed += gettid() == before;
    }
    return arg;
}

static void *invite_guests(void *arg)
{
    struct guests *guests = arg;
    STRAND_SCOPE(scope);
    open_the_house(scope, keep_a_thread_busy, NULL);
    STRAND_SCOPE(inner);
    for (int i = 0; i < GUESTS; i++)
        strand_spawn(inner, block_again_and_again, guests);
    strand_scope_join(inner);
    close_the_house(scope);
    return arg;
}

static void guests_stay_on_their_threads(void (*block)(void))
{
    struct guests guests = {.block = block, .waits = (int)test_scale(50)};
    house.hosts = several_threads();
    do {
        guests.stayed = 0;
        run_on(house.hosts, invite_guests, &guests);
    } while (!as_a_rule(guests.stayed, GUESTS * guests.waits));
}

static void sleep_shortly(void)
{
    strand_sleep(2 * STRAND_MS);
}

static void *block_a_crew_thread(void *arg)
{
    usleep(2000);
    return arg;
}

static void offload(void)
{
    strand_offload(block_a_crew_thread, NULL);
}

static strand_chan bells;

static void wait_for_the_bell(void)
{
    char bell;
    CHECK_EQ(strand_chan_receive(bells, &bell), 0);
}

/* Slowly enough for all to be waiting again. */
static void *ring(void *arg)
{
    char bell = 'x';
    for (;; strand_sleep(200 * STRAND_US))
        STRAND_IGNORE(strand_chan_send(bells, &bell));
    return arg;
}

static void *invite_guests_of_another_pool(void *arg)
{
    STRAND_SCOPE(scope);
    bells = strand_chan_open(scope, 1, 0, NULL);
    strand_pool elsewhere = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    strand ringing = strand_spawn_with(scope, STRAND_ATTR(.pool = elsewhere), ring, NULL, 0);
    invite_guests(arg);
    strand_cancel(ringing, NULL);
    return arg;
}

/* S-46, S-48, A-13, V-04, V-07, contract 2.7 */
TEST_REAL(a_strand_that_one_of_another_pool_wakes_goes_on_on_the_thread_that_ran_it_last)
{
    struct guests guests = {.block = wait_for_the_bell, .waits = (int)test_scale(50)};
    house.hosts = several_threads();
    do {
        guests.stayed = 0;
        run_on(house.hosts, invite_guests_of_another_pool, &guests);
    } while (!as_a_rule(guests.stayed, GUESTS * guests.waits));
}

/* S-46, V-04, V-07, contract 2.7 */
TEST_REAL(a_strand_that_a_timer_wakes_goes_on_on_the_thread_that_ran_it_last)
{
    guests_stay_on_their_threads(sleep_shortly);
}

/* S-46, V-04, V-07, contract 2.7 */
TEST_REAL(a_strand_that_is_woken_from_outside_goes_on_on_the_thread_that_ran_it_last)
{
    guests_stay_on_their_threads(offload);
}

/* ---- by a strand: to that strand's thread -------------------------------------------------------- */

/* Each host has children, which wake strands in turn and end. So a woken strand goes from thread to thread. */
#define VISITS 120
#define RUNS_WITH_FIBRE "a strand of a shared fibre runs where the fibre does"

static struct {
    int visits;
    bool by_cancel; /* the sleeper is woken by a cancel; else a visitor is, by the child's end */
    _Atomic int next_host, turn, ready;
    strand sleeper;
    struct {
        strand child;
        pid_t spawned_on, ended_on, woken_on;
    } made[VISITS];
} tour;

static void *wake_in_turn(void *number)
{
    int mine = (int)(intptr_t)number;
    while (tour.turn < mine)
        strand_yield();
    for (int i = 0; i < 20; i++) /* until the other one is surely blocked */
        strand_yield();
    tour.made[mine].ended_on = gettid();
    if (tour.by_cancel)
        strand_cancel(tour.sleeper, NULL);
    return number;
}

static void *keep_busy_with_children(void *arg)
{
    be_a_host();
    STRAND_SCOPE(scope);
    for (int i = tour.next_host++; i < tour.visits; i += house.hosts) {
        tour.made[i].spawned_on = gettid();
        tour.made[i].child = strand_spawn(scope, wake_in_turn, TEST_PTR(i));
        tour.ready++;
    }
    while (!house.over)
        strand_yield();
    strand_scope_join(scope);
    return arg;
}

static void *sleep_until_cancelled(void *number)
{
    int visit = (int)(intptr_t)number;
    tour.sleeper = strand_self();
    tour.turn = visit;
    strand_exception *e = strand_try(test_sleep, NULL, NULL);
    tour.made[visit].woken_on = gettid();
    CHECK_KIND(e, &STRAND_INTERRUPTED);
    strand_exception_release(e);
    return number;
}

static void visit(int number)
{
    if (tour.by_cancel) {
        STRAND_SCOPE(scope);
        strand_join(strand_spawn(scope, sleep_until_cancelled, TEST_PTR(number)));
        strand_wait(tour.made[number].child);
    } else {
        tour.turn = number;
        strand_wait(tour.made[number].child);
        tour.made[number].woken_on = gettid();
    }
}

static void *visit_all(void *arg)
{
    STRAND_SCOPE(scope);
    open_the_house(scope, keep_busy_with_children, NULL);
    test_yield_until(&tour.ready, tour.visits);
    for (int i = 0; i < tour.visits; i++)
        visit(i);
    close_the_house(scope);
    return arg;
}

static void make_a_tour(bool by_cancel)
{
    house.hosts = several_threads();
    tour.visits = (int)test_scale(VISITS);
    tour.by_cancel = by_cancel;
    tour.turn = -1;
    tour.next_host = tour.ready = 0;
    run_on(house.hosts, visit_all, NULL);
}

static void woken_strands_go_to_their_wakers(bool by_cancel)
{
    int with_waker;
    do {
        make_a_tour(by_cancel);
        with_waker = 0;
        for (int i = 0; i < tour.visits; i++)
            with_waker += tour.made[i].woken_on == tour.made[i].ended_on;
    } while (!as_a_rule(with_waker, tour.visits));
}

/* S-48, contract 2.7 */
TEST_REAL(a_strand_that_waits_for_an_end_goes_on_on_the_thread_of_the_one_that_ended)
{
    woken_strands_go_to_their_wakers(false);
}

/* S-48, A-13, contract 2.7 */
TEST_REAL(a_strand_that_another_strand_wakes_goes_on_on_the_thread_of_its_waker)
{
    woken_strands_go_to_their_wakers(true);
}
TEST_OWN_STACKS(a_strand_that_another_strand_wakes_goes_on_on_the_thread_of_its_waker, RUNS_WITH_FIBRE);

/* A-13, contract 2.7 */
TEST_REAL(a_child_runs_on_the_thread_of_its_spawner_unless_another_thread_has_nothing_to_do)
{
    int local;
    do {
        make_a_tour(false);
        local = 0;
        for (int i = 0; i < tour.visits; i++)
            local += tour.made[i].spawned_on == tour.made[i].ended_on;
    } while (!as_a_rule(local, tour.visits));
}
TEST_OWN_STACKS(a_child_runs_on_the_thread_of_its_spawner_unless_another_thread_has_nothing_to_do, RUNS_WITH_FIBRE);

/* ---- beside idle threads --------------------------------------------------------------------------- */

struct quietness {
    uint64_t wakes, spawned;
};

/* One child at a time for 20 ms, again and again. What counts is the quietest time: a spawner that the system has taken
 * from its processor loses children to other threads, which wake each other then. */
static void *spawn_and_join(void *arg)
{
    struct quietness *quietest = arg;
    *quietest = (struct quietness){.wakes = UINT64_MAX};
    while (quietest->wakes > 1) {
        strand_stats before = test_stats();
        strand_time until = strand_in(20 * STRAND_MS);
        STRAND_SCOPE(scope);
        while (strand_now().ns < until.ns)
            for (int n = 0; n < 100; n++)
                strand_join(strand_spawn(scope, test_return, arg));
        strand_stats after = test_stats();
        if (after.wakes - before.wakes < quietest->wakes)
            *quietest = (struct quietness){after.wakes - before.wakes, after.spawned - before.spawned};
    }
    return arg;
}

/* S-50, contract 2.9 */
TEST_REAL(a_strand_that_spawns_and_joins_one_child_at_a_time_wakes_no_thread)
{
    struct quietness quietest;
    run_on(several_threads(), spawn_and_join, &quietest);
    CHECK(quietest.spawned >= 100);
}

enum { EVENTS = 20, WAKES_MOST = 5 };

/* A thread that goes to sleep wakes by itself a little later; until then no other thread has to be woken. */
static void *sleep_again_and_again(void *arg)
{
    struct quietness *quietest = arg;
    *quietest = (struct quietness){.wakes = UINT64_MAX};
    while (quietest->wakes > WAKES_MOST) {
        strand_stats before = test_stats();
        for (int n = 0; n < EVENTS; n++)
            strand_sleep(100 * STRAND_US);
        strand_stats after = test_stats();
        if (after.wakes - before.wakes < quietest->wakes)
            quietest->wakes = after.wakes - before.wakes;
    }
    return arg;
}

TEST_REAL(what_a_thread_runs_itself_does_not_wake_another_at_each_event)
{
    struct quietness quietest;
    run_on(several_threads(), sleep_again_and_again, &quietest);
    CHECK(quietest.wakes <= WAKES_MOST);
}

/* Longer than the waiting thread spins before it sleeps. */
static void *compute_shortly(void *arg)
{
    for (strand_time until = strand_in(100 * STRAND_US); strand_now().ns < until.ns;)
        continue;
    return arg;
}

struct foreigners {
    bool joins;
    uint64_t wakes;
};

static void await_those_of_another_pool(strand_pool pool, bool joins)
{
    enum { CHILDREN = 200 };
    STRAND_SCOPE(scope);
    for (int i = 0; i < CHILDREN; i++)
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool), compute_shortly, NULL, 0);
    if (joins)
        strand_scope_join(scope);
    else
        strand_scope_cancel(scope, "it is left"); /* which they do not notice */
}

static void *count_wakes_for_those_of_another_pool(void *arg)
{
    struct foreigners *foreigners = arg;
    STRAND_SCOPE(outer);
    strand_pool pool = strand_pool_open(outer, STRAND_POOL_ATTR(.scheduler = "dedicated"));
    strand_stats before = test_stats();
    await_those_of_another_pool(pool, foreigners->joins);
    foreigners->wakes = test_stats().wakes - before.wakes;
    return arg;
}

static void those_of_another_pool_wake_seldom(bool joins)
{
    struct foreigners foreigners = {.joins = joins};
    do /* on a busy machine the children may run as they are spawned, each after the thread was woken for it */
        run_on(1, count_wakes_for_those_of_another_pool, &foreigners);
    while (foreigners.wakes > 20);
}

TEST_REAL(joining_a_scope_of_strands_of_another_pool_does_not_wake_at_each_end)
{
    those_of_another_pool_wake_seldom(true);
}

TEST_REAL(leaving_a_scope_of_strands_of_another_pool_does_not_wake_at_each_end)
{
    those_of_another_pool_wake_seldom(false);
}

static void *store_thread(void *id)
{
    *(pid_t *)id = gettid();
    return id;
}

static void *spawn_beside_idle_threads(void *arg)
{
    int *local = arg;
    STRAND_SCOPE(scope);
    for (long i = 0; i < test_scale(2000); i++) {
        pid_t mine = gettid(), of_child;
        strand_join(strand_spawn(scope, store_thread, &of_child));
        *local += of_child == mine;
    }
    return arg;
}

/* S-50, contract 2.9 */
TEST_REAL(a_child_stays_with_its_spawner_although_other_threads_are_idle)
{
    int local;
    do {
        local = 0;
        run_on(several_threads(), spawn_beside_idle_threads, &local);
    } while (!as_a_rule(local, test_scale(2000)));
}
