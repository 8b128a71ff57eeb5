/*
 * Reaping: the ends of processes that the library has not started, each exactly once, beside the library's own.
 *
 * No test waits for a time: orphans run until the test closes a pipe.
 */
#define _GNU_SOURCE
#define SUITE reap
#include "test.h"

#include "strand/chan.h"
#include "strand/exception.h"
#include "strand/io.h"
#include "strand/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

typedef STRAND_CHAN(strand_orphan) orphans;

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SHELL(script) ARGV("sh", "-c", (script))

static strand_process_end join(strand process)
{
    strand_process_end end = {.size = sizeof end};
    strand_process_join(process, &end);
    CHECK_EQ(end.error, 0);
    return end;
}

static int run_shell(const char *script)
{
    STRAND_SCOPE(scope);
    return join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL(script)))).code;
}

/* Makes orphans with the exit codes from `first` on, below 100. They run until the caller closes the result. */
static int make_orphans(int first, int count)
{
    int ends[2];
    char script[160];
    snprintf(script, sizeof script,
             "i=%d; while [ $i -lt %d ]; do (read x <&3; exit $((i %% 100))) & i=$((i + 1)); done", first,
             first + count);
    CHECK_EQ(strand_pipe(ends), 0);
    const strand_process_fd fds[] = {{3, ends[0]}};
    {
        STRAND_SCOPE(scope);
        CHECK_EQ(
            join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL(script), .fds = fds, .fd_count = 1)))
                .code,
            0);
    }
    strand_close(ends[0]);
    return ends[1];
}

/* Receives as many ends, one of each exit code from `first` on. */
static void check_ends(orphans ends, int first, int count)
{
    bool *seen = calloc((size_t)count, sizeof *seen);
    strand_orphan *orphan = malloc(sizeof *orphan);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(STRAND_RECEIVE(ends, orphan), 0);
        CHECK(orphan->pid > 0);
        CHECK_EQ(orphan->end.error, 0);
        CHECK_EQ(orphan->end.size, sizeof orphan->end);
        CHECK(orphan->end.code >= first && orphan->end.code < first + count);
        CHECK(!seen[orphan->end.code - first]);
        seen[orphan->end.code - first] = true;
    }
    free(orphan);
    free(seen);
}

static void check_no_child_is_left(void)
{
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_EQ(errno, ECHILD);
}

static void await_no_child(void)
{
    siginfo_t info;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        strand_sleep(STRAND_MS);
    CHECK_EQ(errno, ECHILD);
}

/* ---- ends ------------------------------------------------------------------------------------- */

TEST_REAL_INSIDE(a_subreaper_gets_the_ends_of_orphans)
{
    {
        STRAND_SCOPE(scope);
        orphans ends = STRAND_CHAN_OPEN(orphans, scope, 0);
        strand reaper = strand_process_reap(scope, ends.untyped, STRAND_REAP_SUBREAPER);
        strand_close(make_orphans(10, 3));
        check_ends(ends, 10, 3);
        strand_cancel(reaper, NULL);
        CHECK_PTR(strand_join(reaper), NULL);
    }
    check_no_child_is_left();
}

TEST_REAL_INSIDE(the_end_of_an_orphan_says_how_it_ended)
{
    STRAND_SCOPE(scope);
    strand_orphan *orphan = malloc(sizeof *orphan);
    orphans ends = STRAND_CHAN_OPEN(orphans, scope, 0);
    strand_process_reap(scope, ends.untyped, STRAND_REAP_SUBREAPER);
    CHECK_EQ(run_shell("(kill -9 $(exec sh -c 'echo $PPID')) & exit 0"), 0);
    CHECK_EQ(STRAND_RECEIVE(ends, orphan), 0);
    CHECK_EQ(orphan->end.signal, SIGKILL);
    CHECK_EQ(orphan->end.code, -1);
    CHECK(orphan->end.peak_bytes > 0);
    CHECK(!orphan->end.stopped);
    free(orphan);
    strand_scope_cancel(scope, NULL);
}

TEST_REAL_INSIDE(children_that_the_program_has_started_itself_are_taken_too)
{
    STRAND_SCOPE(scope);
    strand_orphan *orphan = malloc(sizeof *orphan);
    orphans ends = STRAND_CHAN_OPEN(orphans, scope, 0);
    strand_process_reap(scope, ends.untyped, 0);
    int pid = fork();
    if (pid == 0)
        _exit(6);
    CHECK_EQ(STRAND_RECEIVE(ends, orphan), 0);
    CHECK_EQ(orphan->pid, pid);
    CHECK_EQ(orphan->end.code, 6);
    free(orphan);
    strand_scope_cancel(scope, NULL);
}

/* A debugger of a child of this process, and the child, which ends with code 7 when its input ends. */
static struct {
    sem_t let_go;
    int input[2];
    _Atomic int pid; /* or a negated errno code */
} traced;

static void *debug_a_child(void *arg)
{
    char byte;
    int status, pid = fork();
    if (pid == 0) {
        close(traced.input[1]);
        _exit(read(traced.input[0], &byte, 1) == 0 ? 7 : 8);
    }
    bool held = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 && ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 &&
                waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WSTOPPED | WNOWAIT) == 0;
    traced.pid = held ? pid : -errno;
    CHECK_EQ(sem_wait(&traced.let_go), 0);
    CHECK(!held || waitpid(pid, &status, WNOHANG) == pid); /* the report is still there */
    return arg;
}

TEST_REAL_INSIDE(what_a_debugger_gets_of_a_child_is_no_end)
{
    STRAND_SCOPE(scope);
    strand_orphan *orphan = malloc(sizeof *orphan);
    orphans ends = STRAND_CHAN_OPEN(orphans, scope, 1);
    pthread_t debugger;
    traced.pid = 0;
    CHECK_EQ(sem_init(&traced.let_go, 0, 0), 0);
    CHECK_EQ(pipe2(traced.input, O_CLOEXEC), 0);
    CHECK_EQ(pthread_create(&debugger, NULL, debug_a_child, NULL), 0);
    while (!traced.pid)
        strand_sleep(STRAND_MS);
    strand_process_reap(scope, ends.untyped, 0);
    CHECK_EQ(run_shell("exit 3"), 3); /* the system tells the reaper of this one */
    strand_sleep(STRAND_MS);
    CHECK_EQ(sem_post(&traced.let_go), 0);
    CHECK_EQ(pthread_join(debugger, NULL), 0);
    close(traced.input[1]);
    CHECK_EQ(STRAND_RECEIVE(ends, orphan), 0);
    CHECK(traced.pid < 0 || orphan->pid == traced.pid);
    CHECK_EQ(orphan->end.code, 7);
    if (traced.pid < 0)
        fprintf(stderr, "skipped: the system permits no debugger: %s\n", strerrorname_np(-traced.pid));
    close(traced.input[0]);
    free(orphan);
    strand_scope_cancel(scope, NULL);
}

TEST_REAL_INSIDE(without_a_channel_ends_are_discarded)
{
    STRAND_SCOPE(scope);
    strand_process_reap(scope, (strand_chan){{0, 0}}, STRAND_REAP_SUBREAPER);
    strand_close(make_orphans(0, 5));
    await_no_child();
    strand_scope_cancel(scope, NULL);
}

TEST_REAL_INSIDE(after_the_channel_is_closed_ends_are_discarded)
{
    STRAND_SCOPE(scope);
    orphans ends = STRAND_CHAN_OPEN(orphans, scope, 0);
    strand_process_reap(scope, ends.untyped, STRAND_REAP_SUBREAPER);
    strand_close(make_orphans(0, 1));
    check_ends(ends, 0, 1);
    int held = make_orphans(1, 5);
    STRAND_CHAN_CLOSE(ends);
    strand_close(held);
    await_no_child();
    strand_scope_cancel(scope, NULL);
}

/* It ends while it waits for room. */
TEST_REAL_INSIDE(ends_that_were_not_sent_are_there_for_the_next_reaper)
{
    STRAND_SCOPE(scope);
    strand_orphan *first = malloc(sizeof *first);
    orphans ends = STRAND_CHAN_OPEN(orphans, scope, 1), all = STRAND_CHAN_OPEN(orphans, scope, 20);
    strand reaper = strand_process_reap(scope, ends.untyped, STRAND_REAP_SUBREAPER);
    strand_close(make_orphans(0, 20));
    test_await_blocked("sends to", 1);
    strand_cancel(reaper, NULL);
    strand_join(reaper);
    CHECK_EQ(STRAND_RECEIVE(ends, first), 0);
    CHECK_EQ(strand_chan_length(ends.untyped), 0);
    CHECK_EQ(STRAND_SEND(all, first), 0);
    strand_process_reap(scope, all.untyped, STRAND_REAP_SUBREAPER);
    await_no_child();
    CHECK_EQ(strand_chan_length(all.untyped), 20);
    check_ends(all, 0, 20);
    strand_scope_cancel(scope, NULL);
    free(first);
}

/* ---- beside the library's processes ----------------------------------------------------------------- */

static void *run_ten(void *arg)
{
    for (int i = 0; i < 10; i++)
        CHECK_EQ(run_shell("exit 3"), 3);
    return arg;
}

TEST_REAL_INSIDE(the_ends_of_orphans_and_of_processes_do_not_mix)
{
    int count = (int)test_scale(100);
    STRAND_SCOPE(scope);
    orphans ends = STRAND_CHAN_OPEN(orphans, scope, 4);
    strand reaper = strand_process_reap(scope, ends.untyped, STRAND_REAP_SUBREAPER);
    int held[2] = {make_orphans(0, count), make_orphans(0, count)};
    strand runners[10];
    for (int i = 0; i < 10; i++)
        runners[i] = strand_spawn(scope, run_ten, NULL);
    for (int i = 0; i < 2; i++) {
        strand_close(held[i]);
        check_ends(ends, 0, count);
    }
    for (int i = 0; i < 10; i++)
        strand_join(runners[i]);
    CHECK_EQ(strand_chan_length(ends.untyped), 0);
    strand_cancel(reaper, NULL);
    strand_join(reaper);
    check_no_child_is_left();
}

static void *start_missing(void *scope)
{
    strand_process_start(*(strand_scope *)scope, STRAND_PROCESS_ATTR(.argv = ARGV("/no/such/program")));
    return NULL;
}

static void *fail_often(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < test_scale(100); i++) {
        strand_exception *e = strand_try(start_missing, &scope, NULL);
        CHECK_EQ(strand_exception_code(e), -ENOENT);
        strand_exception_release(e);
    }
    return arg;
}

/* The child of such a start has ended before the library knows its number. */
TEST_REAL_RACE(a_start_that_fails_is_no_orphan)
{
    STRAND_SCOPE(scope);
    strand starters[3];
    orphans ends = STRAND_CHAN_OPEN(orphans, scope, 8);
    strand reaper = strand_process_reap(scope, ends.untyped, 0);
    for (int i = 0; i < 3; i++)
        starters[i] = strand_spawn(scope, fail_often, NULL);
    for (int i = 0; i < 3; i++)
        strand_join(starters[i]);
    strand_cancel(reaper, NULL);
    strand_join(reaper);
    CHECK_EQ(strand_chan_length(ends.untyped), 0);
    check_no_child_is_left();
}

/* Two runs. A process of the one, whose only thread is blocked, hides the end of another child from the other's reaper:
 * both are children of the same thread, in this order. */
struct two {
    sem_t blocked;
    int process, child;
};

static void kill_child(int pid)
{
    siginfo_t info;
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void *reap_behind(void *arg)
{
    struct two *two = arg;
    strand_orphan *orphan = malloc(sizeof *orphan);
    STRAND_SCOPE(scope);
    STRAND_SIGNALS(children, SIGCHLD);
    orphans ends = STRAND_CHAN_OPEN(orphans, scope, 1);
    strand_process_reap(scope, ends.untyped, 0);
    kill_child(two->process);
    kill_child(two->child);
    CHECK_EQ(strand_wait_signal(children), SIGCHLD);
    strand_sleep(10 * STRAND_MS); /* the reaper's descriptor was ready at the same time */
    sem_post(&two->blocked);
    STRAND_DEADLINE(strand_in(20 * STRAND_S));
    CHECK_EQ(STRAND_RECEIVE(ends, orphan), 0);
    CHECK_EQ(orphan->pid, two->child);
    CHECK_EQ(orphan->end.signal, SIGKILL);
    CHECK_EQ(strand_chan_length(ends.untyped), 0);
    free(orphan);
    strand_scope_cancel(scope, NULL);
    return arg;
}

static strand_options one_thread(void)
{
    strand_options options = test_options();
    test_set_threads(&options, 1);
    return options;
}

static void *other_run(void *two)
{
    strand_options options = one_thread();
    return strand_run(&options, reap_behind, two);
}

static void *keep_one(void *arg)
{
    struct two *two = arg;
    pthread_t other;
    STRAND_SCOPE(scope);
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("sleep", "100000")));
    two->process = strand_process_pid(process);
    two->child = fork();
    while (two->child == 0)
        pause();
    CHECK_EQ(pthread_create(&other, NULL, other_run, two), 0);
    sem_wait(&two->blocked); /* blocks the thread of the keeper */
    CHECK_EQ(join(process).signal, SIGKILL);
    void *result;
    pthread_join(other, &result);
    CHECK_PTR(result, two);
    return arg;
}

TEST_REAL(an_ended_process_of_another_run_delays_the_ends_of_orphans_only)
{
    strand_options options = one_thread();
    struct two two;
    sem_init(&two.blocked, 0, 0);
    CHECK_PTR(strand_run(&options, keep_one, &two), &two);
    check_no_child_is_left();
}

/* ---- one reaper ------------------------------------------------------------------------------------- */

static void *reap_again(void *scope)
{
    strand_process_reap(*(strand_scope *)scope, (strand_chan){{0, 0}}, 0);
    return NULL;
}

TEST_REAL_INSIDE(a_process_has_one_reaper_at_a_time)
{
    int before = test_count_entries("/proc/self/fd");
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++) {
        strand reaper = strand_process_reap(scope, (strand_chan){{0, 0}}, 0);
        strand_exception *e = strand_try(reap_again, &scope, NULL);
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), -EBUSY);
        CHECK_CONTAINS(strand_exception_text(e), "another strand of the process reaps");
        strand_exception_release(e);
        strand_cancel(reaper, NULL);
        strand_join(reaper);
    }
    CHECK(test_count_entries("/proc/self/fd") <= before + 4); /* what the first wait makes */
    struct sigaction now;
    CHECK_EQ(sigaction(SIGCHLD, NULL, &now), 0);
    CHECK(now.sa_handler == SIG_DFL);
}

static int is_subreaper(void)
{
    int is = -1;
    CHECK_EQ(prctl(PR_GET_CHILD_SUBREAPER, &is), 0);
    return is;
}

TEST_REAL_INSIDE(the_process_is_a_subreaper_as_long_as_the_flag_says)
{
    for (int was = 0; was < 2; was++) {
        prctl(PR_SET_CHILD_SUBREAPER, was);
        STRAND_SCOPE(scope);
        strand_process_reap(scope, (strand_chan){{0, 0}}, 0);
        CHECK_EQ(is_subreaper(), was);
        strand_scope_cancel(scope, NULL);
        strand_scope_join(scope);
        STRAND_SCOPE(adopting);
        strand_process_reap(adopting, (strand_chan){{0, 0}}, STRAND_REAP_SUBREAPER);
        CHECK_EQ(is_subreaper(), 1);
        strand_scope_cancel(adopting, NULL);
        strand_scope_join(adopting);
        CHECK_EQ(is_subreaper(), was);
    }
}

static void *leave_reaping(void *arg)
{
    STRAND_SCOPE(scope);
    strand_process_reap(scope, (strand_chan){{0, 0}}, 0);
    return arg;
}

TEST_REAL_INSIDE(a_reaper_that_was_not_cancelled_is_a_live_strand)
{
    strand_exception *e = strand_try(leave_reaping, NULL, NULL);
    CHECK_KIND(e, &STRAND_LIVE_STRANDS);
    CHECK_CONTAINS(strand_exception_text(e), "reaper");
    strand_exception_release(e);
    STRAND_SCOPE(scope);
    strand_process_reap(scope, (strand_chan){{0, 0}}, 0); /* the other one has ended */
    strand_scope_cancel(scope, NULL);
}

static void *reap_without_a_stack(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 2; i++) { /* -EBUSY if the first one has left something */
        strand_exception *e = strand_try(reap_again, &scope, NULL);
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), -EAGAIN);
        strand_exception_release(e);
    }
    return arg;
}

/* A sanitizer sees whether memory is left. */
TEST_REAL(a_reaper_without_a_stack_leaves_nothing)
{
    strand_options options = test_options();
    options.stack_size = 64 * 1024;
    options.max_stack_bytes = 64 * 1024;
    CHECK_PTR(strand_run(&options, reap_without_a_stack, TEST_PTR(1)), TEST_PTR(1));
}
TEST_OWN_STACKS(a_reaper_without_a_stack_leaves_nothing, "the reaper's stack is the test's subject");

static void *reap_in(void *scope)
{
    strand_process_reap(*(strand_scope *)scope, (strand_chan){{0, 0}}, STRAND_REAP_SUBREAPER);
    return NULL;
}

TEST_REAL_INSIDE(another_strand_may_start_a_reaper_in_an_open_scope)
{
    STRAND_SCOPE_OPEN(scope);
    strand_scope *shared = malloc(sizeof *shared);
    *shared = scope;
    strand_join(strand_spawn(scope, reap_in, shared));
    strand_close(make_orphans(0, 3));
    await_no_child();
    strand_scope_cancel(scope, NULL);
    free(shared);
}

/* ---- forks and name spaces --------------------------------------------------------------------------- */

static void *reap_three(void *arg)
{
    STRAND_SCOPE(scope);
    orphans ends = STRAND_CHAN_OPEN(orphans, scope, 0);
    strand_process_reap(scope, ends.untyped, getpid() == 1 ? 0 : STRAND_REAP_SUBREAPER);
    strand_close(make_orphans(20, 3));
    check_ends(ends, 20, 3);
    CHECK_EQ(run_shell("exit 4"), 4);
    strand_scope_cancel(scope, NULL);
    return arg;
}

static void check_child(int pid)
{
    int status;
    CHECK(pid > 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

/* Runs in the child: a test must not go on there. */
static void run_and_exit(void)
{
    strand_options options = test_options();
    _exit(strand_run(&options, reap_three, TEST_PTR(1)) == TEST_PTR(1) ? 0 : 1);
}

/* The reaper takes the status of the child. */
TEST_REAL_INSIDE(a_forked_child_has_no_reaper)
{
    STRAND_SCOPE(scope);
    strand reaper = strand_process_reap(scope, (strand_chan){{0, 0}}, STRAND_REAP_SUBREAPER);
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("sleep", "100000")));
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    if (fork() == 0) {
        int is = -1;
        (void)prctl(PR_GET_CHILD_SUBREAPER, &is);
        struct sigaction now;
        char yes = is == 0 && sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == SIG_DFL ? 'y' : 'n';
        _exit(write(ends[1], &yes, 1) != 1);
    }
    char got = 0;
    CHECK_EQ(read(ends[0], &got, 1), 1);
    CHECK_EQ(got, 'y');
    close(ends[0]);
    close(ends[1]);
    strand_cancel(process, NULL);
    CHECK_EQ(join(process).signal, SIGTERM);
    strand_cancel(reaper, NULL);
    strand_join(reaper);
}

TEST_REAL(a_forked_child_may_reap_in_a_run_of_its_own)
{
    strand_options options = test_options();
    if (TEST_TSAN) {
        fprintf(stderr, "skipped: TSan allows no threads in the child of a process that had some\n");
        return;
    }
    CHECK_PTR(strand_run(&options, reap_three, TEST_PTR(1)), TEST_PTR(1));
    int pid = fork();
    if (pid == 0)
        run_and_exit();
    check_child(pid);
}

static bool enter_name_space(void)
{
    return unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
}

/* Of another process than the test's, whose later children would all be of the name space. */
TEST_REAL(process_number_one_reaps_the_orphans_of_its_name_space)
{
    enum { NONE_ALLOWED = 5 };
    int status, pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (!enter_name_space())
            _exit(NONE_ALLOWED);
        pid = fork();
        if (pid == 0 && getpid() == 1)
            run_and_exit();
        _exit(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == NONE_ALLOWED)
        fprintf(stderr, "skipped: the system allows no name space of processes\n");
    else
        CHECK_EQ(WEXITSTATUS(status), 0);
}
