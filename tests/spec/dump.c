/*
 * strand_dump shows the live tree; strand_stats_get counts.
 */
#define _GNU_SOURCE
#define SUITE dump
#include "test.h"

#include "strand/debug.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic int started;

static NOINLINE void doze_off(void)
{
    started++;
    strand_sleep(FOREVER);
    __asm__ volatile("");
}

static void *sleeper(void *arg)
{
    doze_off();
    return arg;
}

static NOINLINE void wait_for_a_child(strand child)
{
    strand_join(child);
    __asm__ volatile("");
}

static void *joiner(void *arg)
{
    STRAND_SCOPE(scope);
    wait_for_a_child(strand_spawn_with(scope, STRAND_ATTR(.name = "grandchild"), sleeper, arg, 0));
    return arg;
}

/* A tree: root, of it "first" with "grandchild" below, and "second". Dumped when all three are blocked. */
static const char *dump_a_tree(void)
{
    const char *text = "";
    started = 0;
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "first"), joiner, NULL, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "second"), sleeper, NULL, 0);
    test_yield_until(&started, 2);
    while (test_count(text, "blocked") < 3) {
        strand_sleep(STRAND_MS);
        text = test_dump();
    }
    strand_scope_cancel(scope, NULL);
    return text;
}

/* V-24 */
TEST_INSIDE(a_dump_names_every_strand_parents_before_children)
{
    const char *text = dump_a_tree();
    const char *root = strstr(text, "root"), *first = strstr(text, "first");
    const char *grandchild = strstr(text, "grandchild"), *second = strstr(text, "second");
    CHECK(root && first && grandchild && second);
    CHECK(root < first && first < grandchild);
    CHECK(root < second && !(first < second && second < grandchild));
}

/* V-22, contract 1.5 */
TEST_REAL_INSIDE(a_dump_says_who_is_blocked_and_on_what)
{
    const char *text = dump_a_tree();
    CHECK(test_count(text, "blocked") >= 3);
    CHECK(test_count(text, "sleep") >= 2);
    CHECK_CONTAINS(text, "join");
}

static strand_mutex mutex;
static strand_prio_semaphore pages;
static strand_limit users;

static void *lock_it(void *arg)
{
    strand_mutex_lock(&mutex);
    strand_mutex_unlock(&mutex);
    return arg;
}

static void *take_a_page(void *arg)
{
    strand_prio_acquire(&pages, NULL);
    strand_prio_release(&pages);
    return arg;
}

static void *be_a_user(void *arg)
{
    STRAND_LIMIT_PERMIT(&users);
    return arg;
}

static NOINLINE void lock_in_the_root(void)
{
    strand_mutex_lock(&mutex);
    __asm__ volatile("");
}

/* V-22 */
TEST_INSIDE(a_dump_names_semaphores_and_limits_and_who_holds_a_mutex)
{
    STRAND_SCOPE(scope);
    strand_prio_options options = {.size = sizeof options, .permits = 1, .name = "pages"};
    strand_prio_init(&pages, &options);
    strand_limit_init(&users, 1, "users");
    strand_prio_acquire(&pages, NULL);
    strand_limit_acquire(&users);
    lock_in_the_root();
    strand_spawn(scope, lock_it, NULL);
    strand_spawn(scope, take_a_page, NULL);
    strand_spawn(scope, be_a_user, NULL);
    test_await_blocked("waits for mutex", 1);
    test_await_blocked("waits for semaphore", 2);
    const char *text = test_dump();
    CHECK_CONTAINS(text, "waits for semaphore 'pages' #");
    CHECK_CONTAINS(text, "waits for semaphore 'users' #");
    CHECK_CONTAINS(text, "the mutex was locked by strand 'root' #");
    CHECK_CONTAINS(text, " in lock_in_the_root+0x");
    strand_mutex_unlock(&mutex);
    strand_prio_release(&pages);
    strand_limit_release(&users);
    strand_scope_join(scope);
}

/* V-22 */
TEST_INSIDE(a_dump_says_that_its_caller_runs)
{
    CHECK_CONTAINS(test_dump(), "runn");
}

TEST_REAL_INSIDE(a_dump_shows_the_functions_in_which_strands_are_blocked)
{
    const char *text = dump_a_tree();
    CHECK(test_count(text, "doze_off") >= 2);
    CHECK_CONTAINS(text, "wait_for_a_child");
    CHECK_CONTAINS(text, "joiner");
}

static void *sleep_under_a_shield(void *arg)
{
    STRAND_SHIELD;
    started = 1;
    test_yield_until(&started, 2);
    return arg;
}

/* contract 4.15 */
TEST_INSIDE(a_dump_says_who_is_cancelled_and_by_whom)
{
    started = 0;
    STRAND_SCOPE(scope);
    strand child = strand_spawn_with(scope, STRAND_ATTR(.name = "stubborn"), sleep_under_a_shield, NULL, 0);
    test_yield_until(&started, 1);
    strand_cancel(child, "enough-of-it");
    const char *text = strstr(test_dump(), "stubborn");
    started = 2;
    CHECK(text != NULL);
    CHECK_CONTAINS(text, "cancel");
    CHECK_CONTAINS(text, "root");
    CHECK_CONTAINS(text, "enough-of-it");
}

TEST_INSIDE(a_strand_that_was_joined_is_not_in_the_dump)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "short-lived"), test_return, NULL, 0));
    CHECK(strstr(test_dump(), "short-lived") == NULL);
}

TEST_INSIDE(a_dump_counts_those_that_have_ended_and_were_not_joined_apart)
{
    STRAND_SCOPE(scope);
    strand sleeping = strand_spawn(scope, sleeper, NULL);
    strand ended = strand_spawn(scope, test_return, NULL);
    strand_wait(ended);
    CHECK_CONTAINS(test_dump(), "strands: 2, besides 1 ended, not joined;");
    strand_join(ended);
    CHECK_CONTAINS(test_dump(), "strands: 2, besides 0 ended, not joined;");
    strand_cancel(sleeping, NULL);
}

static void *join_a_scope(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, sleeper, arg);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL_INSIDE(a_dump_tells_joining_a_scope_from_joining_a_strand)
{
    const char *text = "";
    STRAND_SCOPE(scope);
    strand joining = strand_spawn(scope, join_a_scope, NULL);
    while (test_count(text, "blocked") < 2) {
        strand_sleep(STRAND_MS);
        text = test_dump();
    }
    CHECK_CONTAINS(text, "blocked: joins its scope, waits for strand #");
    strand_cancel(joining, NULL);
}

static NOINLINE void doze_off_elsewhere(void)
{
    started++;
    strand_sleep(2 * FOREVER);
    __asm__ volatile("");
}

static void *other_sleeper(void *arg)
{
    doze_off_elsewhere();
    return arg;
}

/* So many that sleep at one place, and half as many at another. */
static void spawn_sleepers(strand_scope scope, int count)
{
    started = 0;
    for (int i = 0; i < count; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "dozing"), sleeper, NULL, 0);
    for (int i = 0; i < count / 2; i++)
        strand_spawn(scope, other_sleeper, NULL);
    test_yield_until(&started, count + count / 2);
    test_await_blocked("sleeps", count + count / 2);
}

TEST_INSIDE(a_dump_of_many_strands_prints_those_at_the_same_place_once_with_their_number)
{
    STRAND_SCOPE(scope);
    spawn_sleepers(scope, 80);
    const char *text = test_dump_as(NULL), *first = strstr(text, "80 strands 'dozing' #");
    const char *second = strstr(text, "40 strands 'strand' #");
    CHECK(first && second && first < second);
    CHECK_CONTAINS(text, "strands: 121, besides 0 ended, not joined;");
    CHECK_EQ(test_count(text, "blocked: sleeps, since "), 2);
    CHECK_EQ(test_count(text, "at doze_off+0x"), 1);
    CHECK_EQ(test_count(text, "at doze_off_elsewhere+0x"), 1);
    CHECK_CONTAINS(text, "1 strand 'root' #");
    strand_scope_cancel(scope, NULL);
}

TEST_INSIDE(many_strands_are_printed_one_by_one_if_that_is_asked_for)
{
    STRAND_SCOPE(scope);
    spawn_sleepers(scope, 80);
    const char *text = test_dump_as(STRAND_DUMP(.grouping = STRAND_DUMP_SINGLE));
    CHECK_EQ(test_count(text, "strand 'dozing' #"), 80);
    CHECK_EQ(test_count(text, "at doze_off+0x"), 80);
    CHECK_EQ(test_count(text, "at doze_off_elsewhere+0x"), 40);
    strand_scope_cancel(scope, NULL);
}

TEST_INSIDE(a_few_strands_are_grouped_only_if_that_is_asked_for)
{
    STRAND_SCOPE(scope);
    spawn_sleepers(scope, 4);
    CHECK_EQ(test_count(test_dump_as(NULL), "strand 'dozing' #"), 4);
    CHECK_CONTAINS(test_dump_as(STRAND_DUMP(.grouping = STRAND_DUMP_GROUPED)), "4 strands 'dozing' #");
    strand_scope_cancel(scope, NULL);
}

/* Each at a depth of its own, and all with the same return addresses again and again. */
static NOINLINE void descend(intptr_t depth)
{
    if (depth > 0) {
        descend(depth - 1);
    } else {
        started++;
        strand_sleep(FOREVER);
    }
    __asm__ volatile("");
}

static void *descend_and_sleep(void *depth)
{
    descend((intptr_t)depth);
    return NULL;
}

TEST_INSIDE(strands_at_other_depths_are_not_taken_for_the_same)
{
    STRAND_SCOPE(scope);
    started = 0;
    for (intptr_t depth = 1; depth <= 20; depth++)
        for (int i = 0; i < 10; i++)
            strand_spawn(scope, descend_and_sleep, TEST_PTR(depth));
    test_yield_until(&started, 200);
    test_await_blocked("sleeps", 200);
    const char *text = test_dump_as(NULL);
    CHECK_EQ(test_count(text, "\n10 strands 'strand' and others #") + test_count(text, "\n10 strands 'strand' #"), 20);
    CHECK_EQ(test_count(text, "at descend+0x"), 20 * 21 / 2 + 20);
    strand_scope_cancel(scope, NULL);
}

static void *wait_under_a_shield(void *event)
{
    STRAND_SHIELD;
    strand_event_wait(event);
    return NULL;
}

TEST_INSIDE(a_group_says_how_many_of_it_are_cancelled)
{
    strand_event event = {{0}};
    strand children[3];
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        children[i] = strand_spawn(scope, wait_under_a_shield, &event);
    test_await_blocked("waits for event", 3);
    strand_cancel(children[0], NULL);
    strand_cancel(children[1], NULL);
    const char *text = test_dump_as(STRAND_DUMP(.grouping = STRAND_DUMP_GROUPED));
    CHECK_EQ(test_count(text, "of them cancelled"), 1);
    CHECK_CONTAINS(text, "3 strands 'strand' #");
    CHECK_CONTAINS(text, ", 2 of them cancelled\n");
    strand_event_set(&event);
    strand_scope_cancel(scope, NULL);
}

static void *count_what_comes(void *fd)
{
    char bytes[4096];
    int64_t all = 0;
    for (int64_t got; (got = strand_read(*(int *)fd, bytes, sizeof bytes)) > 0;)
        all += got;
    CHECK_EQ(all > 65536, true); /* more than a pipe holds */
    return NULL;
}

static void *dump_to_a_reader(void *arg)
{
    int fds[2];
    CHECK_EQ(strand_pipe(fds), 0);
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, count_what_comes, &fds[0]);
    {
        STRAND_SCOPE(sleepers);
        for (int i = 0; i < 2000; i++)
            strand_spawn(sleepers, sleeper, arg);
        test_yield_until(&started, 2000);
        CHECK_EQ(strand_dump(fds[1], STRAND_DUMP(.grouping = STRAND_DUMP_SINGLE)), 0);
        strand_scope_cancel(sleepers, NULL);
    }
    strand_close(fds[1]);
    strand_join(reader);
    strand_close(fds[0]);
    return arg;
}

/* Nobody stands still while it is written. */
TEST_REAL(a_dump_may_go_through_a_pipe_that_a_strand_reads)
{
    strand_options options = test_options();
    test_set_threads(&options, 2);
    strand_run(&options, dump_to_a_reader, NULL);
}

/* contract 3.7, 4.65 */
TEST_INSIDE(a_dump_to_a_bad_descriptor_returns_an_error_code)
{
    CHECK_EQ(strand_dump(-1, NULL), -EBADF);
}

static void *dump_again_and_again(void *arg)
{
    for (long i = 0; i < test_scale(10); i++) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        CHECK_EQ(strand_dump(null, NULL), 0);
        close(null);
        strand_yield();
    }
    return arg;
}

TEST_INSIDE(several_strands_may_dump_at_the_same_time)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, dump_again_and_again, NULL);
    strand_scope_join(scope);
}

static void *yield_until_cancelled(void *arg)
{
    started++;
    for (;;)
        strand_yield();
    return arg;
}

static void *dump_under_load(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "busy-one"), yield_until_cancelled, NULL, 0);
    test_yield_until(&started, 8);
    for (long i = 0; i < test_scale(20); i++) {
        CHECK_EQ(test_count(test_dump(), "busy-one"), 8);
        strand_yield();
    }
    strand_scope_cancel(scope, NULL);
    return arg;
}

TEST(a_dump_of_four_threads_under_load_is_complete)
{
    strand_options options = test_options();
    test_set_threads(&options, 4);
    started = 0;
    strand_run(&options, dump_under_load, NULL);
}

/* A signal is to find it here, and not in a function of a sanitizer's. */
__attribute__((no_sanitize("thread"))) static NOINLINE void spin_until_told(void)
{
    started = 1;
    while (*(volatile int *)&started != 2)
        continue;
}

static void *spinner(void *arg)
{
    spin_until_told();
    return arg;
}

/* What a dump tells of a strand that comes to no switch, of two threads. */
static void *dump_beside_a_spinner(void *options)
{
    static char lines[4096];
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "spinner"), spinner, NULL, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "dozing"), test_child_blocks, &(struct test_child){0}, 0);
    while (started != 1)
        strand_yield();
    const char *text = test_dump_as(options), *from = strstr(text, "strand 'spinner'");
    started = 2;
    CHECK(from != NULL);
    snprintf(lines, sizeof lines, "%s", from);
    char *next = strstr(lines, "strand 'dozing'");
    if (next)
        *next = 0;
    CHECK_CONTAINS(text, "1 of the threads could not be held");
    strand_scope_cancel(scope, NULL);
    return lines;
}

static const char *lines_of_a_spinner(const strand_dump_options *dump)
{
    strand_options options = test_options();
    test_set_threads(&options, 2);
    started = 0;
    return strand_run(&options, dump_beside_a_spinner, (void *)(uintptr_t)dump);
}

/* contract 4.70 */
TEST_REAL(a_strand_that_comes_to_no_switch_is_traced_by_a_signal_and_does_not_hold_up_the_dump)
{
    const char *lines = lines_of_a_spinner(NULL);
    CHECK_CONTAINS(lines, "running on thread");
    CHECK_CONTAINS(lines, "asked by a signal");
    CHECK_CONTAINS(lines, "at spin_until_told+0x");
    CHECK_CONTAINS(lines, "at spinner+0x");
    CHECK_CONTAINS(lines, " bytes used");
}

TEST_REAL(a_strand_that_comes_to_no_switch_is_said_to_be_running_if_there_are_to_be_no_signals)
{
    const char *lines = lines_of_a_spinner(STRAND_DUMP(.no_signals = true));
    CHECK_CONTAINS(lines, "running on thread");
    CHECK_CONTAINS(lines, "could not be held");
    CHECK(strstr(lines, "at spinner+0x") == NULL);
}

static int waited_on[2], polled;
static pid_t polling; /* the thread */

static NOINLINE void wait_in_poll(void)
{
    struct pollfd wait = {.fd = waited_on[0], .events = POLLIN};
    polling = gettid();
    started = 1;
    polled = poll(&wait, 1, -1);
    __asm__ volatile("");
}

static void *poller(void *arg)
{
    wait_in_poll();
    return arg;
}

/* On its way into the call it could be interrupted by a signal. */
static bool is_asleep(pid_t thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "re");
    CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
    fclose(file);
    return state == 'S';
}

/* With signals and without: they are not needed. */
static void *dump_beside_one_that_polls(void *options)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "poller"), poller, NULL, 0);
    while (started != 1)
        strand_yield();
    while (!is_asleep(polling))
        usleep(1000);
    const char *text = test_dump_as(options);
    CHECK_CONTAINS(text, "strand 'poller'");
    CHECK_CONTAINS(text, ", waits in the system");
    CHECK_CONTAINS(text, "at wait_in_poll+0x");
    CHECK_CONTAINS(text, "at poller+0x");
    CHECK_EQ(write(waited_on[1], "w", 1), 1);
    strand_scope_join(scope);
    return NULL;
}

TEST_REAL(a_strand_in_a_system_call_is_traced_without_a_signal_and_waits_on)
{
    for (int signals = 0; signals <= 1; signals++) {
        strand_options options = test_options();
        test_set_threads(&options, 2);
        started = 0;
        CHECK_EQ(pipe(waited_on), 0);
        strand_run(&options, dump_beside_one_that_polls, (void *)(uintptr_t)STRAND_DUMP(.no_signals = !signals));
        CHECK_EQ(polled, 1);
        close(waited_on[0]);
        close(waited_on[1]);
    }
}

static void *spin_with_signals_blocked(void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    spin_until_told();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return arg;
}

static void *dump_beside_one_that_hears_nothing(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, spin_with_signals_blocked, NULL);
    while (started != 1)
        strand_yield();
    for (int i = 0; i < 3; i++)
        CHECK_CONTAINS(test_dump_as(NULL), "could not be held");
    started = 2;
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(a_thread_that_blocks_all_signals_does_not_hold_up_the_dump)
{
    strand_options options = test_options();
    test_set_threads(&options, 2);
    started = 0;
    strand_run(&options, dump_beside_one_that_hears_nothing, NULL);
}

/* ---- statistics ----------------------------------------------------------------------------- */

static strand_stats stats(void)
{
    strand_stats now = {.size = sizeof now};
    strand_stats_get(&now);
    return now;
}

/* The figures of other threads may lag: looks again until `ended` strands have ended. */
static strand_stats stats_when_ended(uint64_t ended)
{
    while (stats().ended < ended)
        strand_sleep(STRAND_MS);
    return stats();
}

/* V-24 */
TEST_INSIDE(statistics_count_strands_started_ended_and_live)
{
    strand_stats before = stats();
    STRAND_SCOPE(scope);
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, test_return, NULL);
    strand_scope_join(scope);
    strand live = strand_spawn(scope, sleeper, NULL);
    strand_stats after = stats_when_ended(before.ended + 10);
    strand_cancel(live, NULL);
    CHECK_EQ(before.live, 1);
    CHECK_EQ(after.spawned - before.spawned, 11);
    CHECK_EQ(after.ended - before.ended, 10);
    CHECK_EQ(after.live, 2);
}

TEST_INSIDE(statistics_count_switches)
{
    strand_stats before = stats();
    STRAND_SCOPE(scope);
    strand sleeping = strand_spawn(scope, sleeper, NULL);
    while (stats().switches == before.switches)
        strand_sleep(STRAND_MS);
    strand_cancel(sleeping, NULL);
}

TEST_INSIDE(statistics_count_stacks)
{
    STRAND_SCOPE(scope);
    started = 0;
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, sleeper, NULL);
    test_yield_until(&started, 10);
    CHECK(stats().stacks >= 10);
    strand_scope_cancel(scope, NULL);
}
TEST_OWN_STACKS(statistics_count_stacks, "there are fewer stacks than strands");

/* contract 9.14 */
TEST_INSIDE(statistics_fill_no_more_than_the_struct_has_room_for)
{
    strand_stats small;
    memset(&small, 0x5a, sizeof small);
    small.size = offsetof(strand_stats, live);
    strand_stats_get(&small);
    CHECK(small.spawned >= 1 && small.spawned < 1000000);
    CHECK_EQ(small.live, 0x5a5a5a5a5a5a5a5a);
    CHECK_EQ(small.sleeps, 0x5a5a5a5a5a5a5a5a);
}

/* ---- from elsewhere ------------------------------------------------------------------------------------------ */

/* TSan takes exception to what libunwind does in a handler, and keeps signals back. */
#define HANDLERS_ARE_FREE !TEST_TSAN

#if HANDLERS_ARE_FREE
static _Atomic int over, results[3]; /* of dumps from a handler: 0, -EBUSY, others */
static int nowhere;
static pthread_t target;

static void dump_in_a_handler(int signal)
{
    (void)signal;
    int result = strand_dump(nowhere, NULL);
    results[result == 0 ? 0 : result == -EBUSY ? 1 : 2]++;
}

static void *interrupt_often(void *arg)
{
    while (!over) {
        pthread_kill(target, SIGUSR1);
        usleep(500);
    }
    return arg;
}

static void *dump_often(void *arg)
{
    pthread_t interrupter;
    target = pthread_self();
    CHECK_EQ(pthread_create(&interrupter, NULL, interrupt_often, NULL), 0);
    for (int i = 0; i < 200 || !results[1]; i++)
        CHECK_EQ(strand_dump(nowhere, NULL), 0);
    over = 1;
    pthread_join(interrupter, NULL);
    return arg;
}

static void open_nowhere(void)
{
    nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(nowhere >= 0);
    over = results[0] = results[1] = results[2] = 0;
    signal(SIGUSR1, dump_in_a_handler);
}

TEST_REAL_INSIDE(a_handler_that_interrupts_a_dump_is_told_so)
{
    STRAND_SCOPE(scope);
    open_nowhere();
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.stack_size = 512 * 1024), dump_often, NULL, 0));
    CHECK(results[1] > 0);
    CHECK_EQ(results[2], 0);
}

TEST_REAL_INSIDE(a_handler_on_a_thread_that_has_nothing_to_do_may_dump)
{
    pthread_t interrupter;
    open_nowhere();
    target = pthread_self();
    CHECK_EQ(pthread_create(&interrupter, NULL, interrupt_often, NULL), 0);
    while (!results[0])
        strand_sleep(STRAND_MS);
    over = 1;
    pthread_join(interrupter, NULL);
    CHECK_EQ(results[2], 0);
}

#endif

static void *dump_from_outside(void *fd)
{
    return TEST_PTR(strand_dump(*(int *)fd, NULL));
}

TEST_REAL_RACE(a_plain_thread_may_dump)
{
    static char text[64 * 1024];
    void *result = "";
    pthread_t outside;
    int fd = memfd_create("dump", MFD_CLOEXEC);
    CHECK(fd >= 0);
    STRAND_SCOPE(scope);
    started = 0;
    strand_spawn_with(scope, STRAND_ATTR(.name = "seen from outside"), sleeper, NULL, 0);
    test_yield_until(&started, 1);
    CHECK_EQ(pthread_create(&outside, NULL, dump_from_outside, &fd), 0);
    while (lseek(fd, 0, SEEK_END) == 0)
        strand_sleep(STRAND_MS);
    pthread_join(outside, &result);
    CHECK_PTR(result, NULL);
    CHECK(pread(fd, text, sizeof text - 1, 0) > 0);
    CHECK_CONTAINS(text, "strand 'root'");
    CHECK_CONTAINS(text, "strand 'seen from outside'");
    CHECK_CONTAINS(text, "doze_off");
    strand_scope_cancel(scope, NULL);
    close(fd);
}

TEST(a_plain_thread_has_nothing_to_dump_when_nothing_runs)
{
    CHECK_EQ(strand_dump(2, NULL), -ESRCH);
}

/* The strand that is to read it waits for this thread. */
TEST_REAL_INSIDE(a_dump_into_a_full_pipe_that_does_not_block_is_given_up)
{
    static char page[4096];
    int fds[2];
    CHECK_EQ(strand_pipe(fds), 0);
    while (write(fds[1], page, sizeof page) > 0)
        continue;
    CHECK_EQ(strand_dump(fds[1], NULL), -EAGAIN);
    strand_close(fds[0]);
    strand_close(fds[1]);
}

TEST_INSIDE(a_name_does_not_break_the_lines_of_a_dump)
{
    char name[600];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "two\nlines"), test_return, NULL, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = name), test_return, NULL, 0);
    const char *text = test_dump();
    CHECK_CONTAINS(text, "strand 'two\\x0alines' #");
    const char *cut = strstr(text, "strand 'xxx");
    CHECK(cut && strchr(cut, '\n') - cut < 450);
    CHECK(test_count(cut, "in the scope of") > 0);
    CHECK(strchr(cut, '\n') < strstr(cut, "in the scope of"));
    strand_scope_join(scope);
}
