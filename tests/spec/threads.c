/*
 * Strands run on as many threads as the options say, in parallel, and an idle run costs nothing.
 */
#define _GNU_SOURCE
#define SUITE threads
#include "test.h"

#include "strand/debug.h"
#include "strand/pool.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#define SKIPPED 77 /* exit status of a helper program that can't do what it is for */

static const int thread_counts[] = {1, 2, 4, 8};
enum { THREAD_COUNTS = sizeof thread_counts / sizeof *thread_counts };

static void *run_on(int threads, strand_fn *fn, void *arg)
{
    strand_options options = test_options();
    test_set_threads(&options, threads);
    return strand_run(&options, fn, arg);
}

/* ---- how many ------------------------------------------------------------------------------- */

static void *count_threads(void *count)
{
    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    *(uint64_t *)count = stats.threads;
    return count;
}

/* S-04, S-29, V-02, V-03, contract 2.10 */
TEST_REAL(a_run_has_the_requested_threads)
{
    for (int i = 0; i < THREAD_COUNTS; i++) {
        uint64_t count = 0;
        run_on(thread_counts[i], count_threads, &count);
        CHECK_EQ(count, thread_counts[i]);
    }
}

/* S-24, V-09, contract 2.10 */
TEST_REAL(a_run_has_one_thread_by_default)
{
    uint64_t count = 0;
    strand_run(NULL, count_threads, &count);
    CHECK_EQ(count, 1);
}

/* S-24, contract 2.12 */
TEST_REAL(threads_allowed_means_one_per_cpu_that_may_be_used)
{
    uint64_t count = 0;
    CHECK(strand_threads_allowed() >= 1);
    run_on(STRAND_THREADS_ALLOWED, count_threads, &count);
    CHECK_EQ(count, strand_threads_allowed());
}

static int first_cpu(void)
{
    cpu_set_t set;
    int cpu = 0;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    return cpu;
}

static void *is_bound_to(void *cpu)
{
    cpu_set_t set;
    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    CHECK_EQ(stats.threads, 2);
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    CHECK_EQ(CPU_COUNT(&set), 1);
    CHECK(CPU_ISSET(*(int *)cpu, &set));
    return cpu;
}

/* The caller's own thread is left as it is. */
/* contract 2.12 */
TEST_REAL(the_threads_of_a_run_may_be_bound_to_cpus)
{
    int cpu = first_cpu(), cpus[] = {cpu, cpu};
    cpu_set_t before, after;
    strand_options options = test_options();
    options.cpus = cpus;
    options.cpus_count = 2;
    options.threads = 0;
    options.scheduler = "stealing";
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CHECK_PTR(strand_run(&options, is_bound_to, &cpu), &cpu);
    CHECK_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    CHECK(CPU_EQUAL(&before, &after));
}

static void check_refused(const int *cpus, int count, const char *scheduler, const char *words)
{
    test_refused((strand_options){.cpus = cpus, .cpus_count = count, .scheduler = scheduler}, words);
}

/* contract 2.12 */
TEST_REAL(cpus_that_are_not_available_are_refused)
{
    int cpus[] = {first_cpu(), 1 << 20};
    check_refused(cpus, 2, "stealing", "options.cpus[1] is 1048576, a CPU that this process may not use");
    check_refused(cpus, 0, "stealing", "options.cpus_count is 0, not 1 to 4096");
    check_refused(cpus, 1, "current", "the scheduler 'current' runs on the caller's thread");
}

static int threads_allowed_in_a_program(const char *affinity)
{
    static struct test_output o;
    test_program(&o, "threads_allowed", affinity);
    CHECK_EQ(o.status, 0);
    return atoi(o.out);
}

static int cpus_of_this_process(void)
{
    size_t size = CPU_ALLOC_SIZE(65536);
    cpu_set_t *set = CPU_ALLOC(65536);
    CHECK(set != NULL);
    CHECK_EQ(sched_getaffinity(0, size, set), 0);
    int cpus = CPU_COUNT_S(size, set);
    CPU_FREE(set);
    return cpus;
}

/* S-24 */
TEST_REAL(as_many_threads_are_allowed_as_there_are_cpus_that_may_be_used)
{
    unsetenv("STRAND_THREADS");
    CHECK_EQ(strand_threads_allowed(), cpus_of_this_process());
    CHECK_EQ(threads_allowed_in_a_program("all-cpus"), cpus_of_this_process());
}

/* S-24 */
TEST_PROGRAM(four_cpus_of_eight_allow_four_threads)
{
    unsetenv("STRAND_THREADS");
    CHECK_EQ(threads_allowed_in_a_program("four"), 4);
}

/* S-24 */
TEST_PROGRAM(more_cpus_than_fit_into_the_usual_mask_are_counted)
{
    unsetenv("STRAND_THREADS");
    CHECK_EQ(threads_allowed_in_a_program("many"), 1500);
}

/* S-26, contract 2.12 */
TEST_PROGRAM(a_process_restricted_to_one_cpu_is_allowed_one_thread)
{
    CHECK_EQ(threads_allowed_in_a_program("one-cpu"), 1);
}

/* S-25, contract 2.13 */
TEST_PROGRAM(three_threads_are_allowed_if_the_cpus_cannot_be_known)
{
    static struct test_output o;
    unsetenv("STRAND_THREADS");
    test_program(&o, "threads_allowed", "unknown");
    if (o.status == SKIPPED) {
        fputs("not tested: the system has no filters of system calls\n", stderr);
        return;
    }
    CHECK_EQ(o.status, 0);
    CHECK_EQ(atoi(o.out), 3);
}

/* S-28, contract 2.12 */
TEST_PROGRAM(the_environment_limits_the_threads_that_are_allowed)
{
    setenv("STRAND_THREADS", "1", 1);
    CHECK_EQ(threads_allowed_in_a_program("all-cpus"), 1);
}

/* S-28, contract 2.12 */
TEST_PROGRAM(the_environment_does_not_allow_more_threads_than_cpus)
{
    setenv("STRAND_THREADS", "100000", 1);
    CHECK_EQ(threads_allowed_in_a_program("one-cpu"), 1);
}

/* S-28 */
TEST_PROGRAM(an_environment_that_makes_no_sense_limits_nothing)
{
    int allowed = threads_allowed_in_a_program("all-cpus");
    setenv("STRAND_THREADS", "many", 1);
    CHECK_EQ(threads_allowed_in_a_program("all-cpus"), allowed);
    setenv("STRAND_THREADS", "0", 1);
    CHECK_EQ(threads_allowed_in_a_program("all-cpus"), allowed);
}

static void *note_thread(void *id)
{
    *(pid_t *)id = gettid();
    return id;
}

/* S-43, contract 2.15 */
TEST_REAL(a_run_of_one_thread_is_on_the_thread_of_its_caller)
{
    pid_t id = 0;
    strand_options options = test_options();
    options.threads = 1;
    test_set_callers_thread(&options);
    strand_run(&options, note_thread, &id);
    CHECK_EQ(id, gettid());
}

/* V-03 */
TEST_REAL(a_run_with_threads_of_its_own_is_not_on_the_thread_of_its_caller)
{
    pid_t id = 0;
    strand_options options = test_options();
    test_set_own_threads(&options);
    strand_run(&options, note_thread, &id);
    CHECK(id != 0 && id != gettid());
}

/* ---- in parallel ---------------------------------------------------------------------------- */

struct meeting {
    _Atomic int here;
    int wanted;
    bool met;
};

/* Spins without a switch until all are here. */
static void *meet_without_switching(void *arg)
{
    struct meeting *meeting = arg;
    meeting->here++;
    while (meeting->here < meeting->wanted)
        sched_yield();
    return arg;
}

static void *spawn_meeting(void *arg)
{
    struct meeting *meeting = arg;
    STRAND_SCOPE(scope);
    for (int i = 0; i < meeting->wanted; i++)
        strand_spawn(scope, meet_without_switching, meeting);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(two_strands_run_at_the_same_time_on_two_threads)
{
    struct meeting meeting = {.wanted = 2};
    run_on(2, spawn_meeting, &meeting);
    CHECK_EQ(meeting.here, 2);
}

/* S-27, S-56, A-14, A-15, V-06, V-23, contract 2.3 */
TEST_REAL(as_many_strands_run_at_the_same_time_as_there_are_threads)
{
    struct meeting meeting = {.wanted = 8};
    run_on(8, spawn_meeting, &meeting);
    CHECK_EQ(meeting.here, 8);
}
TEST_OWN_STACKS(as_many_strands_run_at_the_same_time_as_there_are_threads, "there are fewer fibres than threads");

static _Atomic int running, most_running;

static void *count_running(void *arg)
{
    for (long i = 0; i < test_scale(200); i++) {
        int now = ++running, most = most_running;
        while (now > most && !atomic_compare_exchange_weak(&most_running, &most, now))
            continue;
        for (volatile int spin = 0; spin < 100; spin++)
            continue;
        running--;
        strand_yield();
    }
    return arg;
}

static void *spawn_twenty_counters(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 20; i++)
        strand_spawn(scope, count_running, arg);
    strand_scope_join(scope);
    return arg;
}

/* S-21, V-06 */
TEST_REAL(never_more_strands_run_at_a_time_than_there_are_threads)
{
    for (int i = 0; i < THREAD_COUNTS; i++) {
        most_running = 0;
        run_on(thread_counts[i], spawn_twenty_counters, NULL);
        CHECK(most_running >= 1 && most_running <= thread_counts[i]);
    }
}

static void *be_on_one_thread(void *arg)
{
    static _Atomic int inside[32];
    _Atomic int *mine = &inside[*(int *)arg];
    for (long i = 0; i < test_scale(1000); i++) {
        CHECK_EQ((*mine)++, 0);
        CHECK_EQ((*mine)--, 1);
        strand_yield();
    }
    return arg;
}

static void *spawn_on_one_thread(void *arg)
{
    int numbers[32];
    STRAND_SCOPE(scope);
    for (int i = 0; i < 32; i++) {
        numbers[i] = i;
        strand_spawn(scope, be_on_one_thread, &numbers[i]);
    }
    strand_scope_join(scope);
    return arg;
}

/* S-05 */
TEST_REAL(a_strand_is_never_on_two_threads_at_once)
{
    for (int i = 0; i < THREAD_COUNTS; i++)
        run_on(thread_counts[i], spawn_on_one_thread, NULL);
}

/* ---- the same results ----------------------------------------------------------------------- */

static void *fibonacci(void *number)
{
    intptr_t n = (intptr_t)number;
    if (n < 2)
        return number;
    STRAND_SCOPE(scope);
    strand left = strand_spawn(scope, fibonacci, TEST_PTR(n - 1));
    intptr_t right = (intptr_t)fibonacci(TEST_PTR(n - 2));
    return TEST_PTR((intptr_t)strand_join(left) + right);
}

/* contract 2.11 */
TEST(a_run_of_one_thread_and_a_run_of_many_give_the_same_results)
{
    for (int i = 0; i < THREAD_COUNTS; i++)
        CHECK_PTR(run_on(thread_counts[i], fibonacci, TEST_PTR(12)), TEST_PTR(144));
}

static void *fail_by_number(void *arg)
{
    strand_throw(&STRAND_ERROR, "%d", *(int *)arg);
}

/* Joins in order; what is thrown does not depend on the order in which the children run. */
static void *join_in_order(void *arg)
{
    int numbers[8];
    strand children[8];
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    for (int i = 0; i < 8; i++) {
        numbers[i] = i;
        children[i] = strand_spawn(scope, fail_by_number, &numbers[i]);
    }
    for (volatile int i = 0; i < 8; i++) {
        STRAND_TRY {
            strand_join(children[i]);
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            test_log("%s", strand_exception_text(e));
        }
        STRAND_END
    }
    return arg;
}

/* contract 2.11 */
TEST(joins_throw_the_same_on_any_number_of_threads)
{
    for (int i = 0; i < THREAD_COUNTS; i++) {
        test_log_clear();
        run_on(thread_counts[i], join_in_order, NULL);
        CHECK_LOG("0 1 2 3 4 5 6 7");
    }
}

/* ---- idle ----------------------------------------------------------------------------------- */

static int64_t cpu_ns(const struct rusage *usage)
{
    return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * STRAND_S +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * STRAND_US;
}

/* Sleeps 100 ms at a time and measures the process meanwhile, until it was idle for so long: threads take a while to
 * settle, a long one on a busy machine. A run that never is idle does not end. */
static void *be_idle(void *arg)
{
    for (bool idle = false; !idle;) {
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        strand_sleep(100 * STRAND_MS);
        getrusage(RUSAGE_SELF, &after);
        idle = cpu_ns(&after) - cpu_ns(&before) < 3 * STRAND_MS && after.ru_nvcsw - before.ru_nvcsw <= 8;
    }
    return arg;
}

/* S-02, S-51, S-55, V-19, contract 2.1 */
TEST_REAL(an_idle_run_uses_no_cpu_and_its_threads_do_not_wake_up)
{
    for (int threads = 1; threads <= 4; threads += 3)
        run_on(threads, be_idle, NULL);
}

static void *be_idle_with_many(void *arg)
{
    STRAND_SCOPE(scope);
    for (long i = 0; i < test_scale(1000); i++)
        strand_spawn(scope, test_sleep, NULL);
    be_idle(arg);
    strand_scope_cancel(scope, NULL);
    return arg;
}

/* S-51, contract 2.1 */
TEST_REAL(a_run_whose_strands_all_sleep_uses_no_cpu)
{
    run_on(4, be_idle_with_many, NULL);
}

static _Atomic bool stop;

static void *yield_until_stopped(void *arg)
{
    while (!stop)
        strand_yield();
    return arg;
}

/* One strand keeps a thread busy. One thread uses no more of the processors than the time that goes by; this ends when
 * all threads together use hardly more. */
static void *be_busy_on_one(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, yield_until_stopped, NULL);
    while (!stop) {
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        int64_t begun = strand_now().ns;
        strand_sleep(300 * STRAND_MS);
        int64_t took = strand_now().ns - begun;
        getrusage(RUSAGE_SELF, &after);
        stop = cpu_ns(&after) - cpu_ns(&before) < took * 4 / 3;
    }
    strand_scope_join(scope);
    return arg;
}

/* S-51, S-53, S-58, V-23, contract 2.2 */
TEST_REAL(one_busy_strand_keeps_no_more_than_one_thread_busy)
{
    run_on(4, be_busy_on_one, NULL);
}

/* ---- waking --------------------------------------------------------------------------------- */

static void *answer(void *flag)
{
    *(_Atomic int *)flag = 1;
    return flag;
}

static void *sleep_and_spawn_again(void *arg)
{
    for (int i = 0; i < 50; i++) {
        _Atomic int flag = 0;
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, answer, &flag);
        strand_join(child);
        CHECK_EQ(flag, 1);
        strand_sleep(100 * STRAND_US);
    }
    return arg;
}

/* S-02, S-51, S-54, V-08, V-19 */
TEST(threads_that_fell_asleep_take_up_work_again)
{
    for (int i = 0; i < THREAD_COUNTS; i++)
        run_on(thread_counts[i], sleep_and_spawn_again, NULL);
}
