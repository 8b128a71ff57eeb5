/*
 * strand_dump shows the live tree; strand_stats_get counts.
 */
#define _GNU_SOURCE
#define SUITE dump
#include "test.h"

#include "dozing.h"
#include "scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

static _Atomic int started; /* how many strands have come to the point that a test waits for */

/* ---- how it prints ------------------------------------------------------------------------------------------- */

#define NOT_HELD "1 of the threads could not be held"

static int dump_usually(int fd)
{
    return strand_dump(fd, NULL);
}

static int dump_singly(int fd)
{
    return strand_dump(fd, STRAND_DUMP(.grouping = STRAND_DUMP_SINGLE));
}

static int dump_in_groups(int fd)
{
    return strand_dump(fd, STRAND_DUMP(.grouping = STRAND_DUMP_GROUPED));
}

/* Dumps until the text contains both words, and writes the last dump. On a busy machine a thread that can be held, or
 * asked by a signal, may answer too late. */
static int dump_until(int fd, const strand_dump_options *options, const char *word, const char *other)
{
    const char *text;
    do
        text = test_dump_as(options);
    while (!strstr(text, word) || !strstr(text, other));
    return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

static int dump_until_one_answers(int fd)
{
    return dump_until(fd, NULL, NOT_HELD, "asked by a signal");
}

static int dump_without_signals(int fd)
{
    return dump_until(fd, STRAND_DUMP(.no_signals = true), NOT_HELD, "");
}

static int dump_three_times(int fd)
{
    int result = 0;
    for (int i = 0; i < 3; i++)
        result |= dump_until(fd, NULL, NOT_HELD, "");
    return result;
}

/* ---- strands one by one -------------------------------------------------------------------------------------- */

static NOINLINE void wait_for_a_child(strand child)
{
    strand_join(child);
    __asm__ volatile("");
}

static void *joiner(void *arg)
{
    STRAND_SCOPE(scope);
    wait_for_a_child(spawn_named(scope, "grandchild", sleeper, arg));
    return arg;
}

static strand_prio_semaphore pages;
static strand_limit users;

static NOINLINE void lock_it_here(void)
{
    strand_mutex_lock(&at.mutex);
    __asm__ volatile("");
}

static void *hold_all(void *arg)
{
    STRAND_SHIELD;
    strand_prio_options options = {.size = sizeof options, .permits = 1, .name = "pages"};
    strand_prio_init(&pages, &options);
    strand_limit_init(&users, 1, "users");
    strand_prio_acquire(&pages, NULL);
    strand_limit_acquire(&users);
    lock_it_here();
    strand_event_wait(&at.event);
    strand_mutex_unlock(&at.mutex);
    strand_prio_release(&pages);
    strand_limit_release(&users);
    return arg;
}

static void *lock_it(void *arg)
{
    STRAND_LOCKED(&at.mutex);
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

static void *cancel_a_stubborn_one(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = spawn_named(scope, "stubborn", await_event_in_a_shield, arg);
    test_yield_until(&at.started, 1);
    strand_cancel(child, "enough-of-it");
    return arg;
}

static void *join_a_short_one(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(spawn_named(scope, "short-lived", test_return, arg));
    return await_event(arg);
}

static void *leave_one_unjoined(void *arg)
{
    STRAND_SCOPE(scope);
    strand_wait(strand_spawn(scope, test_return, arg));
    await_event(arg);
    strand_scope_join(scope);
    return arg;
}

static void *join_a_scope(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, sleeper, arg);
    strand_scope_join(scope);
    return arg;
}

#define THIRTY "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LONG_NAME                                                                                                      \
    THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY

static const struct scenario single[] = {
    {.name = "a tree: parents before children, what each does or waits for, and where",
     .acts = {ONE("first", joiner), ONE("second", sleeper)},
     .until = "blocked: ",
     .blocked = 3,
     .texts = {TIMES(3, "blocked: "), TIMES(2, "blocked: sleeps for "), TIMES(2, "at doze_off+0x"),
               FROM("strand 'root' #"), HAS("running on thread "), HAS("strand 'first' #"), HAS("strand 'second' #"),
               FROM("strand 'first' #"), TO("strand 'grandchild' #"), NO("strand 'second' #"),
               HAS("blocked: joins strand #"), HAS("at wait_for_a_child+0x"), HAS("at joiner+0x")}},
    {.name = "semaphores, limits, and the holder of a mutex",
     .acts = {ONE("holder", hold_all), LATER("waits for event", "locker", lock_it), ONE("reader", take_a_page),
              ONE("user", be_a_user)},
     .until = "blocked: ",
     .blocked = 4,
     .texts = {HAS("waits for semaphore 'pages' #"), HAS("waits for semaphore 'users' #"),
               HAS("the mutex was locked by strand 'holder' #"), HAS(" in lock_it_here+0x")}},
    {.name = "a strand that is cancelled, by whom, and why",
     .acts = {ONE("canceller", cancel_a_stubborn_one)},
     .until = "cancelled by 'canceller' #",
     .texts = {FROM("strand 'stubborn' #"), HAS(", cancelled\n"), HAS("cancelled by 'canceller' #"),
               HAS(": enough-of-it\n")}},
    {.name = "not those that were joined",
     .acts = {ONE("joiner", join_a_short_one)},
     .until = "waits for event",
     .texts = {NO("short-lived"), HAS("strands: 2, besides 0 ended, not joined;")}},
    {.name = "the number of those that have ended and were not joined",
     .acts = {ONE("keeper", leave_one_unjoined)},
     .until = "waits for event",
     .texts = {HAS("strands: 2, besides 1 ended, not joined;")}},
    {.name = "join of a scope",
     .acts = {ONE("joiner", join_a_scope)},
     .until = "blocked: ",
     .blocked = 2,
     .texts = {HAS("blocked: joins its scope, waits for strand #")}},
    {.name = "a name with a new line, and a long one",
     .acts = {ONE("two\nlines", sleeper), ONE(LONG_NAME, sleeper)},
     .until = "blocked: ",
     .blocked = 2,
     .texts = {HAS("strand 'two\\x0alines' #"), FROM("strand 'xxx"), TO("in the scope of"), TIMES(1, "\n"),
               NO(THIRTY THIRTY)}},
};

/* V-22, V-24, contract 1.5, 4.15 */
TEST_INSIDE(a_dump_shows_each_strand)
{
    PLAY_ALL(single, false, dump_singly);
}

/* ---- groups -------------------------------------------------------------------------------------------------- */

static NOINLINE void doze_off_elsewhere(void)
{
    strand_sleep(2 * FOREVER);
    __asm__ volatile("");
}

static void *other_sleeper(void *arg)
{
    doze_off_elsewhere();
    return arg;
}

/* Each at a depth of its own, and all with the same return addresses again and again. */
static NOINLINE void descend(intptr_t depth)
{
    if (depth > 0)
        descend(depth - 1);
    else
        strand_sleep(FOREVER);
    __asm__ volatile("");
}

static void *descend_and_sleep(void *depth)
{
    descend((intptr_t)depth);
    return NULL;
}

/* Ten at each of so many depths. */
static void *dive(void *depths)
{
    STRAND_SCOPE(scope);
    for (intptr_t depth = 1; depth <= (intptr_t)depths; depth++)
        for (int i = 0; i < 10; i++)
            spawn_named(scope, "diver", descend_and_sleep, TEST_PTR(depth));
    strand_scope_join(scope);
    return depths;
}

static void *cancel_two_of_three(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++) {
        strand child = spawn_named(scope, "child", await_event_in_a_shield, arg);
        test_yield_until(&at.started, i + 1);
        if (i < 2)
            strand_cancel(child, NULL);
    }
    strand_scope_join(scope);
    return arg;
}

/* So many that sleep at one place, and half as many at another. */
#define SLEEPERS(count)                                                                                                \
    .acts = {SEVERAL(count, "dozing", sleeper), SEVERAL((count) / 2, "strand", other_sleeper)}, .until = "sleeps",     \
    .blocked = (count) + (count) / 2

static const struct scenario groups[] = {
    {.name = "many at the same place, once with their number",
     SLEEPERS(80),
     .texts = {HAS("strands: 121, besides 0 ended, not joined;"), TIMES(2, "blocked: sleeps, since "),
               TIMES(1, "at doze_off+0x"), TIMES(1, "at doze_off_elsewhere+0x"), HAS("1 strand 'root' #"),
               FROM("80 strands 'dozing' #"), HAS("40 strands 'strand' #")}},
    {.name = "many, one by one",
     .print = dump_singly,
     SLEEPERS(80),
     .texts = {TIMES(80, "strand 'dozing' #"), TIMES(80, "at doze_off+0x"), TIMES(40, "at doze_off_elsewhere+0x")}},
    {.name = "a few are not grouped", SLEEPERS(4), .texts = {TIMES(4, "strand 'dozing' #")}},
    {.name = "a few, in groups",
     .print = dump_in_groups,
     SLEEPERS(4),
     .texts = {HAS("4 strands 'dozing' #"), HAS("2 strands 'strand' #")}},
    {.name = "at different depths",
     .acts = {GIVEN((void *)20, "parent", dive)},
     .until = "sleeps",
     .blocked = 200,
     .texts = {TIMES(20, "\n10 strands 'diver' #"), TIMES(20 * 21 / 2 + 20, "at descend+0x")}},
    {.name = "how many of a group are cancelled",
     .print = dump_in_groups,
     .acts = {ONE("parent", cancel_two_of_three)},
     .until = "waits for event",
     .blocked = 3,
     .texts = {TIMES(1, "of them cancelled"), HAS("3 strands 'child' #"), HAS(", 2 of them cancelled\n")}},
};

TEST_INSIDE(strands_at_the_same_place_are_printed_once_if_there_are_many_or_if_that_is_asked_for)
{
    PLAY_ALL(groups, false, dump_usually);
}

/* ---- while others run ---------------------------------------------------------------------------------------- */

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
        test_yield_until(&dozing, 2000);
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

static void *spin_with_signals_blocked(void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    spin_until_given_up();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return arg;
}

static const struct scenario spinners[] = {
    {.name = "traced by a signal",
     .print = dump_until_one_answers,
     .acts = {ONE("spinner", spinner), ONE("dozing", await_event)},
     .started = 1,
     .texts = {HAS(NOT_HELD), FROM("strand 'spinner'"), TO("strand 'dozing'"), HAS("running on thread"),
               HAS("asked by a signal"), HAS("at spin_until_given_up+0x"), HAS("at spinner+0x"), HAS(" bytes used")}},
    {.name = "without signals",
     .print = dump_without_signals,
     .acts = {ONE("spinner", spinner), ONE("dozing", await_event)},
     .started = 1,
     .texts = {HAS(NOT_HELD), FROM("strand 'spinner'"), TO("strand 'dozing'"), HAS("running on thread"),
               HAS("could not be held"), NO("at spinner+0x")}},
    {.name = "that blocks all signals",
     .print = dump_three_times,
     .acts = {ONE("deaf", spin_with_signals_blocked)},
     .started = 1,
     .texts = {TIMES(3, NOT_HELD)}},
};

static void *play_spinners(void *arg)
{
    PLAY_ALL(spinners, false, dump_usually);
    return arg;
}

/* contract 4.70 */
TEST_REAL(a_strand_that_comes_to_no_switch_does_not_hold_up_the_dump)
{
    strand_options options = test_options();
    test_set_threads(&options, 2);
    strand_run(&options, play_spinners, NULL);
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

/* ---- statistics ----------------------------------------------------------------------------- */

/* The figures of other threads may lag: looks again until `ended` strands have ended. */
static strand_stats stats_when_ended(uint64_t ended)
{
    while (test_stats().ended < ended)
        strand_sleep(STRAND_MS);
    return test_stats();
}

/* V-24 */
TEST_INSIDE(statistics_count_strands_started_ended_and_live)
{
    strand_stats before = test_stats();
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
    strand_stats before = test_stats();
    STRAND_SCOPE(scope);
    strand sleeping = strand_spawn(scope, sleeper, NULL);
    while (test_stats().switches == before.switches)
        strand_sleep(STRAND_MS);
    strand_cancel(sleeping, NULL);
}

TEST_INSIDE(statistics_count_stacks)
{
    STRAND_SCOPE(scope);
    dozing = 0;
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, sleeper, NULL);
    test_yield_until(&dozing, 10);
    CHECK(test_stats().stacks >= 10);
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

/* A handler that finds the next signal when it ends would keep its thread from everything else, however often. */
static void *interrupt_often(void *arg)
{
    for (int sent = 1; !over; sent++) {
        pthread_kill(target, SIGUSR1);
        while (results[0] + results[1] + results[2] < sent)
            usleep(100);
        usleep(2000);
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

TEST_REAL_INSIDE(a_dump_from_a_handler_that_interrupts_a_dump_is_refused)
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
    dozing = 0;
    strand_spawn_with(scope, STRAND_ATTR(.name = "seen from outside"), sleeper, NULL, 0);
    test_yield_until(&dozing, 1);
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
