/*
 * Signals that strands wait for.
 */
#define _GNU_SOURCE
#define SUITE signal
#include "test.h"

#include "strand/file.h"
#include "strand/io.h"
#include "strand/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* To this thread: so it has come when this returns. */
static void come(int signal)
{
    CHECK_EQ(raise(signal), 0);
}

static void *wait_for_one(void *signals)
{
    test_log("%d", strand_wait_signal(*(strand_signals *)signals));
    return signals;
}

/* P-03, contract 5.1 */
TEST_INSIDE(a_signal_ends_the_wait_for_it)
{
    STRAND_SIGNALS(signals, SIGUSR1, SIGTERM);
    STRAND_SCOPE(scope);
    strand waiter = strand_spawn(scope, wait_for_one, &signals);
    strand_sleep(STRAND_MS);
    CHECK(!strand_ended(waiter));
    come(SIGTERM);
    CHECK_EQ((strand_join(waiter), 0), 0);
    CHECK_LOG("15");
}

/* contract 5.2 */
TEST_INSIDE(signals_that_come_while_nobody_waits_are_kept)
{
    STRAND_SIGNALS(signals, SIGUSR1, SIGTERM);
    come(SIGTERM);
    come(SIGUSR1);
    come(SIGUSR1);
    int first = strand_wait_signal(signals), second = strand_wait_signal(signals);
    CHECK_EQ(first + second, SIGTERM + SIGUSR1);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(5 * STRAND_MS));
        strand_wait_signal(signals);
        CHECK_FAIL("a third signal");
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
}

TEST_INSIDE(a_signal_that_comes_again_and_again_keeps_no_other_from_its_turn)
{
    STRAND_SIGNALS(signals, SIGHUP, SIGUSR1, SIGTERM);
    come(SIGTERM);
    come(SIGUSR1);
    int seen_usr1 = 0, seen_term = 0;
    for (int i = 0; i < 3; i++) {
        come(SIGHUP);
        int signal = strand_wait_signal(signals);
        seen_usr1 += signal == SIGUSR1;
        seen_term += signal == SIGTERM;
    }
    CHECK_EQ(seen_usr1, 1);
    CHECK_EQ(seen_term, 1);
}

/* contract 5.3 */
TEST_INSIDE(each_waiter_gets_its_signal_if_different_signals_come)
{
    STRAND_SIGNALS(signals, SIGUSR1, SIGUSR2);
    STRAND_SCOPE(scope);
    strand_spawn(scope, wait_for_one, &signals);
    strand_spawn(scope, wait_for_one, &signals);
    strand_sleep(STRAND_MS);
    come(SIGUSR1);
    come(SIGUSR2);
    strand_scope_join(scope);
}

/* contract 9.7 */
TEST_INSIDE(each_of_several_blocks_gets_the_signal)
{
    STRAND_SIGNALS(outer, SIGUSR1);
    {
        STRAND_SIGNALS(inner, SIGUSR1);
        come(SIGUSR1);
        CHECK_EQ(strand_wait_signal(inner), SIGUSR1);
    }
    CHECK_EQ(strand_wait_signal(outer), SIGUSR1);
    come(SIGUSR1);
    CHECK_EQ(strand_wait_signal(outer), SIGUSR1);
}

/* V-30, contract 1.7, 4.20, 5.1, 5.2, 5.4 */
TEST_INSIDE(a_wait_for_a_signal_is_interrupted_and_takes_none)
{
    STRAND_SIGNALS(signals, SIGUSR1);
    {
        STRAND_SCOPE(scope);
        strand waiter = strand_spawn(scope, wait_for_one, &signals);
        strand_sleep(STRAND_MS);
        strand_cancel(waiter, NULL);
    }
    CHECK_LOG("");
    come(SIGUSR1);
    CHECK_EQ(strand_wait_signal(signals), SIGUSR1);
}

static _Atomic int handled;

static void handle(int signal)
{
    handled = signal;
}

/* contract 9.7 */
TEST_INSIDE(a_handler_of_the_program_is_called_as_well_and_is_there_again_afterwards)
{
    struct sigaction mine = {.sa_handler = handle}, now;
    CHECK_EQ(sigaction(SIGUSR1, &mine, NULL), 0);
    {
        STRAND_SIGNALS(signals, SIGUSR1);
        handled = 0;
        come(SIGUSR1);
        CHECK_EQ(strand_wait_signal(signals), SIGUSR1);
        CHECK_EQ(handled, SIGUSR1);
    }
    CHECK_EQ(sigaction(SIGUSR1, NULL, &now), 0);
    CHECK(now.sa_handler == handle);
    handled = 0;
    come(SIGUSR1);
    CHECK_EQ(handled, SIGUSR1);
}

/* contract 9.7 */
TEST_INSIDE(after_the_block_a_signal_does_what_it_did_before)
{
    struct sigaction now;
    {
        STRAND_SIGNALS(signals, SIGTERM);
        come(SIGTERM);
        CHECK_EQ(strand_wait_signal(signals), SIGTERM);
    }
    CHECK_EQ(sigaction(SIGTERM, NULL, &now), 0);
    CHECK(now.sa_handler == SIG_DFL);
}

static void over_ours(int signal)
{
    handled = signal;
}

/* What was installed over ours stays for good: once in a process. */
/* contract 9.7 */
TEST_REAL_INSIDE(a_handler_that_was_installed_meanwhile_stays_and_a_later_block_says_so)
{
    struct sigaction mine = {.sa_handler = over_ours}, now;
    {
        STRAND_SIGNALS(signals, SIGUSR2);
        CHECK_EQ(sigaction(SIGUSR2, &mine, NULL), 0);
        (void)signals;
    }
    CHECK_EQ(sigaction(SIGUSR2, NULL, &now), 0);
    CHECK(now.sa_handler == over_ours);
    STRAND_TRY {
        STRAND_SIGNALS(signals, SIGUSR2);
        CHECK_FAIL("the block was entered");
        (void)signals;
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
        CHECK_EQ(strand_exception_code(e), -EBUSY);
    }
    STRAND_END
}

/* TSan gives out a handler of its own in the place of ours. */
#define HANDLERS_ARE_WRAPPED TEST_TSAN

static void (*below)(int, siginfo_t *, void *);

static void over_ours_and_calls_it(int signal, siginfo_t *info, void *context)
{
    handled = signal;
    below(signal, info, context);
}

TEST_REAL_INSIDE(a_handler_over_ours_stays_when_a_signal_comes_that_is_ignored_by_default)
{
    struct sigaction mine = {.sa_sigaction = over_ours_and_calls_it, .sa_flags = SA_SIGINFO}, ours, now;
    if (HANDLERS_ARE_WRAPPED)
        return;
    {
        STRAND_SIGNALS(signals, SIGWINCH);
        CHECK_EQ(sigaction(SIGWINCH, &mine, &ours), 0);
        below = ours.sa_sigaction;
        (void)signals;
    }
    for (int i = 0; i < 2; i++) {
        handled = 0;
        come(SIGWINCH);
        CHECK_EQ(handled, SIGWINCH);
    }
    CHECK_EQ(sigaction(SIGWINCH, NULL, &now), 0);
    CHECK(now.sa_sigaction == over_ours_and_calls_it);
}

TEST_REAL_INSIDE(a_handler_that_was_over_ours_for_a_while_leaves_a_later_block_as_it_was)
{
    struct sigaction mine = {.sa_handler = over_ours}, ours, now;
    if (HANDLERS_ARE_WRAPPED)
        return;
    {
        STRAND_SIGNALS(signals, SIGUSR2);
        CHECK_EQ(sigaction(SIGUSR2, &mine, &ours), 0);
        (void)signals;
    }
    CHECK_EQ(sigaction(SIGUSR2, &ours, NULL), 0);
    {
        STRAND_SIGNALS(signals, SIGUSR2);
        come(SIGUSR2);
        CHECK_EQ(strand_wait_signal(signals), SIGUSR2);
    }
    CHECK_EQ(sigaction(SIGUSR2, NULL, &now), 0);
    CHECK(now.sa_handler == SIG_DFL);
}

static void *send_many(void *count)
{
    for (int i = 0; i < *(int *)count; i++) {
        come(SIGUSR1);
        strand_yield();
    }
    return count;
}

/* Blocks come and go while the signal comes: the handler must not touch the descriptor of a block that is over. */
TEST_REAL_INSIDE(blocks_may_come_and_go_while_signals_come)
{
    struct sigaction mine = {.sa_handler = handle};
    CHECK_EQ(sigaction(SIGUSR1, &mine, NULL), 0);
    int count = (int)test_scale(2000);
    STRAND_SCOPE(scope);
    strand sender = strand_spawn(scope, send_many, &count);
    while (!strand_ended(sender)) {
        STRAND_SIGNALS(signals, SIGUSR1);
        strand_yield();
        (void)signals;
    }
    strand_join(sender);
}

/* ---- a plain thread of the program ------------------------------------------------------------ */

static _Atomic int handled, reads;

static void count_it(int signal)
{
    (void)signal;
    handled++;
}

static void *read_until_interrupted(void *fd)
{
    char byte;
    reads = 1;
    ssize_t got = read(*(int *)fd, &byte, 1);
    reads = got < 0 && errno == EINTR ? 2 : 3;
    return NULL;
}

/* Its handler was installed without SA_RESTART, so it counts on EINTR. */
/* contract 9.7 */
TEST_REAL_INSIDE(calls_of_the_program_are_interrupted_by_its_handlers_as_before)
{
    int fds[2];
    pthread_t reader;
    const struct sigaction action = {.sa_handler = count_it};
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(sigaction(SIGUSR2, &action, NULL), 0);
    {
        STRAND_SIGNALS(signals, SIGUSR2);
        CHECK_EQ(pthread_create(&reader, NULL, read_until_interrupted, &fds[0]), 0);
        while (reads < 2) { /* the first may come before it reads */
            CHECK_EQ(pthread_kill(reader, SIGUSR2), 0);
            strand_sleep(STRAND_MS);
        }
        CHECK_EQ(pthread_join(reader, NULL), 0);
        CHECK_EQ(strand_wait_signal(signals), SIGUSR2);
    }
    CHECK_EQ(reads, 2);
    CHECK(handled > 0);
    close(fds[0]);
    close(fds[1]);
}

/* ---- threads of the library ----------------------------------------------------------------- */

/* Write the text of a file of a thread. Returns false if the thread has ended. */
static bool read_of_thread(const char *id, const char *what, char *text, size_t room)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", id, what);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, room - 1);
    text[length > 0 ? length : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return length > 0;
}

/* The signals that a thread of that name blocks, signal n as bit n - 1. Waits for the thread: it names itself. */
static uint64_t blocked_by(const char *name)
{
    for (;;) {
        uint64_t blocked = 0;
        bool found = false;
        char text[8192];
        DIR *threads = opendir("/proc/self/task");
        CHECK(threads != NULL);
        for (struct dirent *thread; !found && (thread = readdir(threads));) {
            if (*thread->d_name == '.' || !read_of_thread(thread->d_name, "comm", text, sizeof text))
                continue;
            text[strcspn(text, "\n")] = '\0';
            const char *line = NULL;
            if (strcmp(text, name) == 0 && read_of_thread(thread->d_name, "status", text, sizeof text))
                line = strstr(text, "\nSigBlk:");
            found = line && sscanf(line, "\nSigBlk: %" SCNx64, &blocked) == 1;
        }
        closedir(threads);
        if (found)
            return blocked;
        usleep(1000);
    }
}

/* Have each thread of the library made. */
static void use_all_threads(void)
{
    int ends[2], file = strand_file_open(AT_FDCWD, "/proc/self/status", O_RDONLY, 0);
    const struct linger linger = {.l_onoff = 1, .l_linger = 1};
    CHECK_EQ(strand_close(file), 0);
    int dialled = strand_dial_tcp("localhost", 1);
    if (dialled >= 0) /* there is a server */
        CHECK_EQ(strand_close(dialled), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQ(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    CHECK_EQ(strand_close(ends[0]), 0);
    CHECK_EQ(strand_close(ends[1]), 0);
    strand_offload(test_return, NULL);
}

static void *check_blocked(void *arg)
{
    static const char *const own[] = {"strand-watchdog", "strand-quit", "strand-names", "strand-closes",
                                      "strand-files"};
    const uint64_t any = UINT64_C(1) << (SIGUSR1 - 1) | UINT64_C(1) << (SIGTERM - 1) | UINT64_C(1) << (SIGQUIT - 1) |
                         UINT64_C(1) << (SIGRTMAX - 1);
    const uint64_t caused = UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGXFSZ - 1);
    use_all_threads();
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        uint64_t blocked = blocked_by(own[i]);
        if ((blocked & any) != any || blocked & caused)
            CHECK_FAIL("%s blocks %" PRIx64, own[i], blocked);
    }
    CHECK_EQ(blocked_by("strand-crew") & any, 0);
    return arg;
}

TEST_REAL(no_handler_of_the_program_runs_on_a_thread_that_runs_only_code_of_the_library)
{
    strand_options options = test_options();
    options.watchdog_ns = 100 * STRAND_S;
    options.dump_on_quit = true;
    options.files = STRAND_FILES_THREADS;
    strand_run(&options, check_blocked, NULL);
}

/* ---- after a fork --------------------------------------------------------------------------- */

/* contract 9.7 */
TEST_PROGRAM(what_comes_to_a_forked_child_does_what_it_did_before_and_stays_there)
{
    static struct test_output o;
    char text[64];
    test_program(&o, "fork", NULL);
    snprintf(text, sizeof text, "child: signal %d\nparent: none\nparent: signal %d\n", SIGUSR1, SIGUSR1);
    CHECK_STR(o.out, text);
    CHECK_EQ(o.status, 0);
}
