/*
 * Dates: waits by the clock of the system, which may be set.
 */
#define SUITE date
#include "test.h"

#include "strand/chan.h"
#include "strand/date.h"
#include "strand/sim.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define DAY (24 * 3600 * STRAND_S)
#define MILLENNIUM (INT64_C(946684800) * STRAND_S) /* 1 January 2000, UTC */

typedef STRAND_CHAN(int) numbers;

static strand_date date_in(int64_t ns)
{
    return (strand_date){strand_date_now().ns + ns};
}

TEST_INSIDE(a_date_that_has_passed_ends_a_wait_at_once)
{
    CHECK_EQ(strand_wait_date(date_in(-DAY)), 0);
    CHECK_EQ(strand_wait_date((strand_date){0}), 0);
    CHECK_EQ(strand_wait_date((strand_date){INT64_MIN}), 0);
    strand_case past = strand_on_date(date_in(-1));
    CHECK_EQ(strand_select(&past, 1, STRAND_SELECT_NOW), 0);
    CHECK_EQ(past.result, 0);
}

TEST_INSIDE(a_wait_ends_when_its_date_has_come)
{
    int before = test_count_entries("/proc/self/fd");
    for (int i = 0; i < 5; i++) {
        strand_date when = date_in(i * STRAND_MS);
        while (strand_wait_date(when) == -ECANCELED)
            ; /* somebody has set the clock of this machine */
        CHECK(strand_date_now().ns >= when.ns);
    }
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
}

/* Waits for a moment; another program, or another run of these tests, may set the clock of the machine meanwhile. */
static void wait_a_moment(void)
{
    strand_date when = date_in(STRAND_MS);
    int result;
    while ((result = strand_wait_date(when)) == -ECANCELED)
        ;
    CHECK_EQ(result, 0);
}

static void *wait_a_day(void *arg)
{
    int result;
    while ((result = strand_wait_date(date_in(DAY))) == -ECANCELED)
        ;
    CHECK_EQ(result, 0);
    return arg;
}

static void *wait_until(void *arg)
{
    const strand_date *when = arg;
    while (strand_wait_date(*when) == -ECANCELED)
        ;
    CHECK(strand_date_now().ns >= when->ns);
    return NULL;
}

TEST_RACE(many_strands_wait_for_dates_at_once)
{
    int count = 100;
    strand_date *dates = calloc((size_t)count, sizeof *dates);
    STRAND_SCOPE(scope);
    for (int i = 0; i < count; i++) {
        dates[i] = date_in(i % 7 * STRAND_MS / 3);
        strand_spawn(scope, wait_until, &dates[i]);
    }
    strand_scope_join(scope);
    free(dates);
}

TEST_INSIDE(a_wait_for_a_date_can_be_interrupted_and_keeps_no_descriptor)
{
    int before = test_count_entries("/proc/self/fd");
    for (int i = 0; i < test_scale(20); i++) {
        STRAND_SCOPE(scope);
        strand waiter = strand_spawn(scope, wait_a_day, NULL);
        strand_sleep(i % 3 * STRAND_MS / 2);
        strand_cancel(waiter, NULL);
        strand_wait(waiter);
    }
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
}

TEST_INSIDE(a_date_is_a_case_of_a_select)
{
    STRAND_SCOPE(scope);
    numbers ch = STRAND_CHAN_OPEN(numbers, scope, 1);
    int n, before = test_count_entries("/proc/self/fd");
    strand_case cases[] = {STRAND_ON_RECEIVE(ch, &n), strand_on_date(date_in(DAY)), strand_on_date(date_in(STRAND_MS))};
    CHECK_EQ(strand_select(cases, 3, STRAND_SELECT_NOW), -EAGAIN);
    int chosen;
    do {
        chosen = strand_select(cases, 3, 0);
        CHECK(chosen == 1 || chosen == 2);
    } while (cases[chosen].result == -ECANCELED); /* somebody has set the clock of this machine */
    CHECK_EQ(chosen, 2);
    CHECK_EQ(cases[2].result, 0);
    n = 7;
    CHECK_EQ(STRAND_SEND(ch, &n), 0);
    n = 0;
    CHECK_EQ(strand_select(cases, 2, 0), 0);
    CHECK_EQ(n, 7);
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
}

/* The system refuses the descriptor: that is the result, and nothing waits. */
TEST_REAL_INSIDE(a_wait_without_a_free_descriptor_says_so)
{
    struct rlimit limit, none = {0, 0};
    wait_a_moment(); /* what the run opens once is open */
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none.rlim_max = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    int result = strand_wait_date(date_in(DAY));
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(result, -EMFILE);
}

static void *wait_once(void *result)
{
    *(int *)result = strand_wait_date(date_in(DAY));
    return NULL;
}

/* Sets the clock to what it shows. */
static bool can_set_clock(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_REALTIME, &now) == 0 && clock_settime(CLOCK_REALTIME, &now) == 0;
}

TEST_REAL_INSIDE(a_wait_ends_when_the_clock_of_the_system_is_set)
{
    int result = 1;
    if (!can_set_clock()) {
        fprintf(stderr, "skipped: the system does not let this program set its clock\n");
        return;
    }
    STRAND_SCOPE(scope);
    strand waiter = strand_spawn(scope, wait_once, &result);
    while (!strand_ended(waiter)) {
        CHECK(can_set_clock());
        strand_sleep(STRAND_MS);
    }
    CHECK_EQ(result, -ECANCELED);
    strand_join(waiter);
}

/* ---- virtual dates --------------------------------------------------------------------------- */

static void in_seeded_runs(strand_fn *fn)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        strand_run(STRAND_OPTIONS(.threads = 2, .has_seed = true, .seed = seed, .sim = STRAND_SIM(.silent = true)), fn,
                   NULL);
}

static void *see_millennium(void *arg)
{
    CHECK(strand_date_now().ns >= MILLENNIUM && strand_date_now().ns < MILLENNIUM + STRAND_S);
    strand_date tomorrow = date_in(DAY);
    CHECK_EQ(strand_wait_date(tomorrow), 0);
    CHECK(strand_date_now().ns >= tomorrow.ns && strand_date_now().ns < tomorrow.ns + STRAND_S);
    return arg;
}

TEST(dates_of_a_seeded_run_are_virtual)
{
    in_seeded_runs(see_millennium);
}

struct waiting {
    strand_date when;
    int result;
};

static void *wait_as_told(void *arg)
{
    struct waiting *waiting = arg;
    waiting->result = strand_wait_date(waiting->when);
    return NULL;
}

static void *set_virtual_clock(void *arg)
{
    struct waiting soon = {date_in(DAY), 1}, late = {date_in(3 * DAY), 1};
    STRAND_SCOPE(scope);
    strand first = strand_spawn(scope, wait_as_told, &soon), second = strand_spawn(scope, wait_as_told, &late);
    strand_sleep(STRAND_S);
    CHECK(!strand_ended(first) && !strand_ended(second));
    CHECK_EQ(strand_sim_date(date_in(2 * DAY)), 0);
    strand_join(first);
    strand_join(second);
    CHECK_EQ(soon.result, 0); /* the clock was set beyond this date */
    CHECK_EQ(late.result, -ECANCELED);
    CHECK(strand_date_now().ns < late.when.ns);
    return arg;
}

TEST(a_wait_ends_when_the_virtual_clock_is_set)
{
    in_seeded_runs(set_virtual_clock);
}

static void *set_clock_back(void *arg)
{
    struct waiting waiting = {date_in(DAY), 1};
    strand_time began = strand_now();
    STRAND_SCOPE(scope);
    strand waiter = strand_spawn(scope, wait_as_told, &waiting);
    strand_sleep(DAY / 2);
    CHECK_EQ(strand_sim_date(date_in(-DAY)), 0);
    strand_join(waiter);
    CHECK_EQ(waiting.result, -ECANCELED);
    CHECK_EQ(strand_wait_date(waiting.when), 0);
    CHECK(strand_now().ns - began.ns >= 2 * DAY); /* half a day, and one and a half from yesterday */
    CHECK_EQ(strand_sim_date((strand_date){INT64_MAX}), 0);
    CHECK_EQ(strand_date_now().ns, INT64_MAX);
    return arg;
}

TEST(a_clock_that_is_set_back_makes_a_date_later)
{
    in_seeded_runs(set_clock_back);
}

TEST_REAL_INSIDE(only_a_seeded_run_has_a_clock_that_a_test_may_set)
{
    CHECK_EQ(strand_sim_date((strand_date){0}), -ENOTSUP);
}
