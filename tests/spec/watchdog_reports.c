/*
 * When the watchdog says nothing, how much it says, and to whom, and what it costs.
 */
#define _GNU_SOURCE
#define SUITE watchdog_reports
#include "watchdog.h"

#include "strand/scheduler.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

static uint64_t late_so_far(void)
{
    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    return stats.late;
}

static bool is_before(strand_time when)
{
    return strand_now().ns < when.ns;
}

/* ---- nobody is late -------------------------------------------------------------------------------------- */

static uint64_t late_at_the_end;
static int64_t patience; /* the limit of the run */

/* How many were late, and how many reports there were. */
static uint64_t count_late(int threads, strand_fn *root)
{
    strand_options options = watched(threads);
    options.watchdog_ns = patience;
    late_at_the_end = 0;
    reports_open(NULL, 0);
    strand_run(&options, root, NULL);
    return late_at_the_end + (uint64_t)reports.count;
}

static void *yields_until_released(void *arg)
{
    while (!reports.released)
        strand_yield();
    return arg;
}

/* Nearly all the time it is there when the watchdog looks. */
static void *computes_in_short_pieces(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, yields_until_released, NULL);
    for (strand_time end = strand_in(2 * patience); is_before(end);) {
        strand_time piece = strand_in(5 * STRAND_MS);
        while (is_before(piece))
            continue;
        strand_yield();
    }
    reports.released = 1;
    strand_scope_join(scope);
    late_at_the_end = late_so_far();
    return arg;
}

static void *all_sleep(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, test_sleep, NULL);
    strand_sleep(2 * patience);
    late_at_the_end = late_so_far();
    strand_scope_cancel(scope, NULL);
    return arg;
}

static void *yields_alone(void *arg)
{
    for (strand_time end = strand_in(2 * patience); is_before(end);)
        strand_yield();
    late_at_the_end = late_so_far();
    return arg;
}

static void *comes_by_alone(void *arg)
{
    for (strand_time end = strand_in(2 * patience); is_before(end);)
        strand_checkpoint();
    late_at_the_end = late_so_far();
    return arg;
}

static void end_soon(int *mark)
{
    (void)mark;
    strand_sleep(STRAND_MS);
}

static void *throws_and_cleans_up(void *arg)
{
    int mark __attribute__((cleanup(end_soon)));
    (void)mark;
    strand_throw(&TEST_ERROR, "on purpose");
    return arg;
}

static void *cleans_up_often(void *arg)
{
    for (strand_time end = strand_in(2 * patience); is_before(end);)
        strand_exception_release(strand_try(throws_and_cleans_up, NULL, NULL));
    return arg;
}

static void *many_clean_up_often(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 5; i++)
        strand_spawn(scope, cleans_up_often, NULL);
    strand_scope_join(scope);
    late_at_the_end = late_so_far();
    return arg;
}

/* On a busy machine a thread may not run for longer than the limit. Then this tries again with a longer limit, for
 * which root runs longer, too. A strand that is reported with every limit keeps the test from ending. */
static void nobody_is_late(int threads, strand_fn *root)
{
    patience = PATIENT;
    while (count_late(threads, root))
        patience *= 2;
}

/* contract 4.50, 4.71 */
TEST_REAL(a_strand_that_yields_passes_checkpoints_sleeps_or_cleans_up_within_the_limit_is_not_reported)
{
    nobody_is_late(1, computes_in_short_pieces);
    nobody_is_late(1, yields_alone);
    nobody_is_late(1, comes_by_alone);
    nobody_is_late(1, all_sleep);
    nobody_is_late(4, all_sleep);
    nobody_is_late(2, many_clean_up_often);
}

/* contract 4.71 */
TEST_PROGRAM(a_process_that_was_stopped_reports_nobody)
{
    static struct test_output o;
    for (int i = 0; i < 2; i++) {
        int attempts = 0;
        do { /* on a busy machine it may have had to wait for a processor as long */
            CHECK(attempts++ < 6);
            test_program(&o, "stopped", i ? "clean-up" : "holds");
            CHECK_EQ(o.status, 0);
        } while (o.err[0]);
    }
}

/* ---- to whom --------------------------------------------------------------------------------------------- */

/* None, now and then: the machine did not let the strand say in time where it is. */
static bool has_a_trace(const char *text)
{
    return strstr(text, "\n      at ") != NULL;
}

static char logged[4096];

static void keep_log(const char *message, void *arg)
{
    CHECK_PTR(arg, logged);
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", message);
    if (has_a_trace(logged))
        reports.released = 1;
}

static void *root_computes(void *arg)
{
    return computes(arg);
}

TEST_REAL(without_a_hook_of_its_own_it_is_the_logs)
{
    strand_options options = watched(1);
    options.on_watchdog = NULL;
    options.on_log = keep_log;
    options.hook_arg = logged;
    reports_open(NULL, 0);
    strand_run(&options, root_computes, NULL);
    CHECK(strncmp(logged, "strand 'root' #", 15) == 0);
    CHECK_CONTAINS(logged, " has occupied thread 0 (");
    CHECK_CONTAINS(logged, "\n      at compute+0x");
    CHECK_CONTAINS(logged, " occupied thread 0 (");
}

static int said; /* what stands in the place of standard error */

static char text_said[8192];

static const char *so_far(void)
{
    ssize_t length = pread(said, text_said, sizeof text_said - 1, 0);
    text_said[length > 0 ? length : 0] = 0;
    return text_said;
}

static void *computes_until_its_trace_is_said(void *arg)
{
    while (!has_a_trace(so_far()))
        continue;
    return arg;
}

static const char *said_by(const strand_options *options, strand_fn *root)
{
    int standard_error = dup(2);
    said = memfd_create("said", MFD_CLOEXEC);
    CHECK(said >= 0 && standard_error >= 0 && dup2(said, 2) == 2);
    strand_run(options, root, NULL);
    CHECK_EQ(dup2(standard_error, 2), 2);
    return so_far();
}

TEST_REAL(without_any_hook_it_is_standard_errors)
{
    strand_options options = watched(1);
    options.on_watchdog = NULL;
    const char *text = said_by(&options, computes_until_its_trace_is_said);
    CHECK(strncmp(text, "libstrand: strand 'root' #", 26) == 0);
    CHECK_CONTAINS(text, "\n      at computes_until_its_trace_is_said+0x");
    CHECK_CONTAINS(text, "\nlibstrand: strand 'root' #");
    CHECK(text[strlen(text) - 1] == '\n');
}

TEST_REAL(the_environment_asks_for_all_runs_and_turns_it_off)
{
    strand_options options = test_options();
    setenv("STRAND_WATCHDOG_MS", "20", 1);
    CHECK_CONTAINS(said_by(&options, computes_until_its_trace_is_said), "has occupied thread");
    options.watchdog_ns = LIMIT;
    setenv("STRAND_WATCHDOG_MS", "0", 1);
    reports_open(NULL, 0);
    reports.released = 1;
    CHECK_STR(said_by(&options, root_computes), "");
}

static void *compute_until_late(void *arg)
{
    while (!late_so_far())
        continue;
    return arg;
}

TEST_REAL(an_environment_that_makes_no_sense_changes_nothing)
{
    strand_options options = watched(1);
    const char *const values[] = {"", "soon", "10 ms", "-1"};
    for (int i = 0; i < 4; i++) {
        setenv("STRAND_WATCHDOG_MS", values[i], 1);
        reports_open(NULL, 0);
        strand_run(&options, compute_until_late, NULL);
    }
}

TEST_REAL(limits_below_a_millisecond_are_refused)
{
    for (int i = 0; i < 4; i++) {
        strand_options options = test_options();
        *(i % 2 ? &options.watchdog_cleanups_ns : &options.watchdog_ns) = i < 2 ? STRAND_MS - 1 : -STRAND_S;
        test_refused(options, i % 2 ? "options.watchdog_cleanups_ns is" : "options.watchdog_ns is");
    }
}

TEST_REAL(a_run_with_a_seed_has_none)
{
    strand_options options = watched(1);
    options.watchdog_ns = STRAND_MS;
    options.has_seed = true;
    options.seed = 1;
    reports_open(NULL, 0);
    reports.released = 1;
    patience = PATIENT;
    strand_run(&options, all_sleep, NULL);
    CHECK_EQ(late_at_the_end, 0);
    CHECK_EQ(reports.count, 0);
}

/* ---- how much -------------------------------------------------------------------------------------------- */

static NOINLINE void be_late_once(void)
{
    uint64_t before = late_so_far();
    while (late_so_far() == before)
        continue;
    strand_yield();
    strand_sleep(STRAND_MS);
}

/* Each of so many keeps a thread of its own in the system, until there is a report after some that were left out. */
enum { MANY = 16, AT_ONCE = 10 };

static void *is_late_until_released(void *arg)
{
    struct pollfd wait = {.fd = reports.signal[0], .events = POLLIN};
    CHECK_EQ(poll(&wait, 1, -1), 1);
    return arg;
}

static void *many_are_late(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 1; i < MANY; i++)
        strand_spawn(scope, is_late_until_released, NULL);
    is_late_until_released(NULL);
    strand_scope_join(scope);
    return arg;
}

static void keep_until_some_are_left_out(const strand_watchdog_report *late, void *arg)
{
    if (reports.released)
        return;
    if (late->left_out)
        reports.enough = reports.count + 1;
    reports_keep(late, arg);
}

/* contract 4.71 */
TEST_REAL(reports_are_limited_and_those_left_out_are_counted)
{
    strand_options options = watched(MANY);
    options.on_watchdog = keep_until_some_are_left_out;
    reports_open(NULL, 0);
    int64_t begun = strand_now().ns;
    strand_run(&options, many_are_late, NULL);
    CHECK(strand_now().ns - begun > 900 * STRAND_MS); /* the last one had to wait */
    CHECK(reports.count > AT_ONCE && reports.count <= REPORTS_MOST);
    CHECK_CONTAINS(reports.kept[reports.count - 1].text, " reports before this one were left out");
    for (int i = 0; i < reports.count; i++)
        CHECK(!reports.kept[i].late.over);
}
TEST_OWN_STACKS(reports_are_limited_and_those_left_out_are_counted, "those of one fibre do not run at the same time");

static void *is_late_twice(void *arg)
{
    strand_stats stats = {.size = sizeof stats};
    be_late_once();
    be_late_once();
    strand_stats_get(&stats);
    CHECK(stats.late >= 2);
    CHECK(stats.late_ns >= (uint64_t)PATIENT);
    return arg;
}

TEST_REAL(statistics_count_late_strands)
{
    strand_options options = watched(1);
    options.watchdog_ns = PATIENT; /* only the intended strand is late */
    reports_open(NULL, 0);
    strand_run(&options, is_late_twice, NULL);
}

/* ---- what it costs --------------------------------------------------------------------------------------- */

static int64_t cpu_ns(const struct rusage *usage)
{
    return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * STRAND_S +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * STRAND_US;
}

/* Ends with the first 100 ms that are quiet: threads take a while to settle, a long one on a busy machine. */
static void *be_idle(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, test_sleep, NULL);
    for (bool idle = false; !idle;) {
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        strand_sleep(100 * STRAND_MS);
        getrusage(RUSAGE_SELF, &after);
        idle = cpu_ns(&after) - cpu_ns(&before) < 3 * STRAND_MS && after.ru_nvcsw - before.ru_nvcsw <= 12;
    }
    strand_scope_cancel(scope, NULL);
    return arg;
}

/* contract 4.71 */
TEST_REAL(the_watchdog_of_an_idle_run_sleeps)
{
    for (int threads = 1; threads <= 4; threads += 3) {
        strand_options options = watched(threads);
        options.watchdog_ns = STRAND_MS;
        strand_run(&options, be_idle, NULL);
    }
}

/* After it was idle for a while it is awake in time. */
static void *falls_idle_and_is_late(void *arg)
{
    for (int i = 0; i < 3; i++) {
        strand_sleep(4 * LIMIT);
        be_late_once();
    }
    return arg;
}

/* contract 4.71 */
TEST_REAL(after_a_time_in_which_all_slept_it_watches_again)
{
    for (int threads = 1; threads <= 2; threads++) {
        strand_options options = watched(threads);
        reports_open(NULL, 0);
        strand_run(&options, falls_idle_and_is_late, NULL);
    }
}

/* ---- beside others --------------------------------------------------------------------------------------- */

static void *another_run(void *arg)
{
    strand_options options = watched(1);
    options.on_watchdog = NULL;
    options.on_log = keep_log;
    options.hook_arg = logged;
    strand_run(&options, compute_until_late, NULL);
    return arg;
}

/* contract 1.2 */
TEST_REAL(each_run_has_one_of_its_own)
{
    pthread_t thread;
    strand_options options = watched(2);
    reports_open(NULL, 0);
    CHECK_EQ(pthread_create(&thread, NULL, another_run, NULL), 0);
    strand_run(&options, compute_until_late, NULL);
    pthread_join(thread, NULL);
}

static void *ends_soon(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    for (int i = 0; i < 5; i++)
        strand_spawn(scope, i % 2 ? test_return : test_throw, NULL);
    for (int i = 0; i < 2; i++) {
        strand failed;
        strand_exception_release(strand_scope_failure(scope, &failed));
    }
    return arg;
}

TEST_REAL(runs_begin_and_end_while_it_looks)
{
    for (long i = test_scale(200); i > 0; i--) {
        strand_options options = watched((int)(i % 3) + 1);
        strand_exception *uncaught = NULL;
        options.watchdog_ns = STRAND_MS;
        options.uncaught = &uncaught;
        reports_open(NULL, 0);
        close(reports.signal[0]);
        close(reports.signal[1]);
        strand_run(&options, ends_soon, NULL);
        strand_exception_release(uncaught);
    }
}

/* Longer than it looks away. */
static int take_long_to_open(void *state)
{
    (void)state;
    usleep(20 * 1000);
    return -ENOMEM;
}

static void push(void *state, strand_task *task, enum strand_task_origin how, int thread)
{
    (void)how, (void)thread;
    task->next = *(strand_task **)state;
    *(strand_task **)state = task;
}

static strand_task *pick(void *state, int thread)
{
    strand_task *task = *(strand_task **)state;
    (void)thread;
    *(strand_task **)state = task->next;
    return task;
}

static void *open_slowly(void *arg)
{
    static const strand_scheduler slow = {.size = sizeof slow,
                                          .name = "slow",
                                          .state_size = sizeof(strand_task *),
                                          .open = take_long_to_open,
                                          .push = push,
                                          .pick = pick};
    STRAND_SCOPE(scope);
    strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .custom = &slow));
    return arg;
}

static void *open_and_close_pools(void *arg)
{
    strand_exception *e = strand_try(open_slowly, NULL, NULL);
    CHECK_EQ(strand_exception_code(e), -ENOMEM);
    strand_exception_release(e);
    for (long i = test_scale(100); i > 0; i--) {
        STRAND_SCOPE(scope);
        strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
        strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool), test_return, NULL, 0));
    }
    return arg;
}

TEST_REAL(pools_are_opened_and_closed_while_it_looks)
{
    strand_options options = watched(2);
    options.watchdog_ns = STRAND_MS;
    reports_open(NULL, 0);
    strand_run(&options, open_and_close_pools, NULL);
}

static void *dumps_often(void *arg)
{
    while (!reports.released)
        (void)strand_dump(*(int *)arg, NULL);
    return arg;
}

static void *one_is_late_while_the_other_dumps(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, dumps_often, arg);
    strand_sleep(STRAND_MS);
    compute();
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(dumps_and_reports_do_not_hold_each_other_up)
{
    static int nowhere;
    strand_options options = watched(2);
    nowhere = memfd_create("nowhere", MFD_CLOEXEC);
    (void)first_report("root", &options, one_is_late_while_the_other_dumps, &nowhere);
}

/* Of so many strands that the threads stand still for longer than the watchdog looks away. */
enum { CROWD = 20000, DUMPS = 10 };
static _Atomic int crowded, dumped;

static void *dump_the_crowd(void *arg)
{
    while (!crowded)
        usleep(1000);
    for (int i = 0; i < DUMPS; i++)
        CHECK_EQ(strand_dump(*(int *)arg, NULL), 0);
    dumped = 1;
    while (!reports.released)
        usleep(1000);
    return arg;
}

static void *is_late_after_the_dumps(void *arg)
{
    STRAND_SCOPE(scope);
    for (long i = test_scale(CROWD); i > 0; i--)
        strand_spawn(scope, test_sleep, NULL);
    crowded = 1;
    while (!dumped)
        strand_sleep(STRAND_US);
    compute();
    strand_scope_cancel(scope, NULL);
    return arg;
}

/* They go on without a word to the watchdog: it must not sleep until it is woken. */
/* contract 4.71 */
TEST_REAL(after_dumps_from_outside_it_still_watches)
{
    pthread_t thread;
    int nowhere = memfd_create("nowhere", MFD_CLOEXEC);
    strand_options options = watched(1);
    crowded = dumped = 0;
    CHECK_EQ(pthread_create(&thread, NULL, dump_the_crowd, &nowhere), 0);
    (void)first_report("root", &options, is_late_after_the_dumps, NULL);
    pthread_join(thread, NULL);
    close(nowhere);
}

static void dump_then_keep(const strand_watchdog_report *late, void *arg)
{
    (void)strand_dump(*(int *)arg, NULL);
    reports_keep(late, NULL);
}

TEST_REAL(the_hook_may_dump)
{
    static int nowhere;
    nowhere = memfd_create("nowhere", MFD_CLOEXEC);
    for (int threads = 1; threads <= 2; threads++) {
        strand_options options = watched(threads);
        options.on_watchdog = dump_then_keep;
        options.hook_arg = &nowhere;
        (void)first_report("root", &options, root_computes, NULL);
    }
    CHECK(lseek(nowhere, 0, SEEK_END) > 0);
}
