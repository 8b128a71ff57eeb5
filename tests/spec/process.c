/*
 * Processes: their start, their streams, how they end and are stopped, and what is left of them: nothing.
 *
 * No test waits for a time: a process says by its output that it has come so far.
 */
#define _GNU_SOURCE
#define SUITE process
#include "test.h"

#include "strand/chan.h"
#include "strand/exception.h"
#include "strand/io.h"
#include "strand/process.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOREVER (3600 * STRAND_S)
/* A shell that runs until it is stopped, and has said so before. */
#define RUNS_ON "echo ready; exec sleep 900"
#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SHELL(script) ARGV("sh", "-c", (script))

static strand_process_end join(strand process)
{
    strand_process_end end = {.size = sizeof end};
    strand_process_join(process, &end);
    CHECK_EQ(end.error, 0);
    return end;
}

static strand_process_end run_shell(const char *script)
{
    STRAND_SCOPE(scope);
    return join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL(script))));
}

static void await_word(int fd, const char *word)
{
    char text[16];
    CHECK_EQ(strand_read_all(fd, text, strlen(word) + 1), strlen(word) + 1);
    text[strlen(word)] = '\0';
    CHECK_STR(text, word);
}

/* A process of that script, which writes "ready" first. */
static strand start_ready(strand_scope scope, const char *script, int *out)
{
    strand process = strand_process_start(
        scope, STRAND_PROCESS_ATTR(.argv = SHELL(script), .out = {.kind = STRAND_STDIO_PIPE, .ours = out}));
    await_word(*out, "ready");
    return process;
}

/* What a process of these attributes writes; the caller frees it. */
static char *output_of(const strand_process_attr *attr)
{
    strand_captured got = {.size = sizeof got};
    strand_process_capture(attr, NULL, &got);
    CHECK_EQ(got.end.code, 0);
    free(got.errors);
    return got.output;
}

#define CHECK_OUTPUT(text, ...)                                                                                        \
    do {                                                                                                               \
        char *output_ = output_of(STRAND_PROCESS_ATTR(__VA_ARGS__));                                                   \
        CHECK_STR(output_, text);                                                                                      \
        free(output_);                                                                                                 \
    } while (0)

/* Whether valgrind keeps the test from what it is about, which it does itself with descriptors and their limit. */
static bool valgrind_prevents(void)
{
    if (test_under_valgrind())
        fprintf(stderr, "skipped: valgrind changes descriptors and their limit\n");
    return test_under_valgrind();
}

static void check_no_child_is_left(void)
{
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_EQ(errno, ECHILD);
}

/* ---- ends ------------------------------------------------------------------------------------- */

TEST_REAL_INSIDE(the_exit_code_of_a_process_is_its_result)
{
    strand_process_end end = run_shell("exit 7");
    CHECK_EQ(end.code, 7);
    CHECK_EQ(end.signal, 0);
    CHECK(!end.stopped);
    CHECK(end.peak_bytes > 0);
    check_no_child_is_left();
}

TEST_REAL_INSIDE(a_process_that_a_signal_ends_has_that_signal_as_its_result)
{
    strand_process_end end = run_shell("kill -9 $$");
    CHECK_EQ(end.code, -1);
    CHECK_EQ(end.signal, SIGKILL);
    CHECK(!end.stopped);
}

TEST_REAL_INSIDE(the_processor_time_of_a_process_is_in_its_result)
{
    strand_process_end end = run_shell("i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done");
    CHECK(end.user_ns + end.system_ns > 0);
}

static void *wait_for(void *arg)
{
    strand_wait(*(strand *)arg);
    CHECK(strand_ended(*(strand *)arg));
    return NULL;
}

TEST_REAL_INSIDE(several_strands_wait_for_the_end_of_a_process)
{
    int in;
    STRAND_SCOPE(scope);
    strand *process = malloc(sizeof *process), waiters[3];
    *process = strand_process_start(
        scope, STRAND_PROCESS_ATTR(.argv = ARGV("cat"), .in = {.kind = STRAND_STDIO_PIPE, .ours = &in}));
    for (int i = 0; i < 3; i++)
        waiters[i] = strand_spawn(scope, wait_for, process);
    test_await_blocked("waits for the end of", 3);
    CHECK(!strand_ended(*process));
    strand_close(in);
    for (int i = 0; i < 3; i++)
        strand_join(waiters[i]);
    CHECK_EQ(join(*process).code, 0);
    free(process);
}

TEST_REAL_INSIDE(the_end_of_a_process_is_a_case_of_a_select)
{
    int in, out;
    STRAND_SCOPE(scope);
    strand stays = start_ready(scope, RUNS_ON, &out);
    strand ends = strand_process_start(
        scope, STRAND_PROCESS_ATTR(.argv = ARGV("cat"), .in = {.kind = STRAND_STDIO_PIPE, .ours = &in}));
    strand_case cases[] = {strand_on_end(stays), strand_on_end(ends)};
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW), -EAGAIN);
    strand_close(in);
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    strand_scope_cancel(scope, NULL);
    strand_close(out);
}

TEST_REAL_INSIDE(the_result_of_a_plain_join_is_the_end)
{
    STRAND_SCOPE(scope);
    strand_process_end *end = strand_join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL("exit 3"))));
    CHECK_EQ(end->code, 3);
    free(end);
}

static void *join_process(void *arg)
{
    strand_process_join(*(strand *)arg, NULL);
    return NULL;
}

static void check_unknown_end(strand process)
{
    strand_process_end end = {.size = sizeof end};
    strand_process_join(process, &end);
    CHECK_EQ(end.error, -ECHILD);
    CHECK_EQ(end.code, -1);
}

/* Waits for any child, as a careless library does. The only thread waits here, so the keeper has not seen the end. */
static void *take_the_status(void *arg)
{
    STRAND_SCOPE(scope);
    int out;
    strand process = start_ready(scope, RUNS_ON, &out);
    int pid = strand_process_pid(process);
    CHECK(pid > 0);
    CHECK_EQ(strand_process_signal(process, SIGKILL), 0);
    CHECK_EQ(waitpid(-1, NULL, 0), pid);
    check_unknown_end(process);
    strand_close(out);
    return arg;
}

TEST_REAL(the_end_says_that_the_program_has_taken_the_status)
{
    strand_options options = test_options();
    test_set_threads(&options, 1);
    strand_run(&options, take_the_status, NULL);
}

TEST_REAL_INSIDE(the_end_says_that_the_program_ignores_ends_of_children)
{
    signal(SIGCHLD, SIG_IGN);
    STRAND_SCOPE(scope);
    check_unknown_end(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("true"))));
}

/* ---- streams and attributes --------------------------------------------------------------------- */

TEST_REAL_INSIDE(a_process_reads_and_writes_through_pipes)
{
    enum { SIZE = 1 << 20 };
    char *bytes = malloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    strand_captured got = {.size = sizeof got};
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = ARGV("cat")),
                           STRAND_CAPTURE_ATTR(.input = bytes, .input_size = SIZE), &got);
    CHECK_EQ(got.output_size, SIZE);
    CHECK_EQ(memcmp(got.output, bytes, SIZE), 0);
    CHECK_EQ(got.errors_size, 0);
    CHECK_STR(got.errors, "");
    free(got.output);
    free(got.errors);
    free(bytes);
}

TEST_REAL_INSIDE(a_process_gets_its_arguments_environment_and_directory)
{
    CHECK_OUTPUT("a b|c\n", .argv = ARGV("sh", "-c", "echo \"$1|$2\"", "name", "a b", "c"));
    CHECK_OUTPUT("X=1\n", .argv = ARGV("env"), .env = ARGV("X=1"));
    CHECK_OUTPUT("/usr\n", .argv = ARGV("pwd"), .directory = "/usr", .env = (const char *const[]){NULL});
    CHECK_OUTPUT("other\n", .argv = ARGV("other", "-c", "echo $0"), .file = "/bin/sh");
    unsetenv("PATH");
    CHECK_OUTPUT("found\n", .argv = ARGV("echo", "found"));
}

TEST_REAL_INSIDE(a_process_inherits_the_environment_unless_it_gets_one)
{
    setenv("STRAND_TEST_INHERITED", "yes", 1);
    CHECK_OUTPUT("yes\n", .argv = SHELL("echo $STRAND_TEST_INHERITED"));
}

TEST_REAL_INSIDE(the_environment_of_a_process_may_have_changes)
{
    const char *const base[] = {"A=1", "B=2", "AB=3", "plain", NULL};
    CHECK_OUTPUT("AB=3\nB=x=y\nC=\n", .argv = ARGV("env"), .env = base,
                 .env_changes = ARGV("C=0", "A", "B=x=y", "plain", "C=", "unknown"));
    CHECK_OUTPUT("A=1\nB=2\nAB=3\nplain\n", .argv = ARGV("env"), .env = base, .env_changes = ARGV(NULL));
    setenv("STRAND_TEST_INHERITED", "yes", 1);
    setenv("STRAND_TEST_REMOVED", "yes", 1);
    CHECK_OUTPUT("yes, no, new\n",
                 .argv = SHELL("echo $STRAND_TEST_INHERITED, ${STRAND_TEST_REMOVED-no}, $STRAND_TEST_NEW"),
                 .env_changes = ARGV("STRAND_TEST_NEW=new", "STRAND_TEST_REMOVED"));
    clearenv();
    CHECK_OUTPUT("X=1\n", .argv = ARGV("env"), .env_changes = ARGV("X=1"));
}

TEST_REAL_INSIDE(a_process_has_the_descriptors_that_it_was_given_and_no_others)
{
    int pipe_ends[2], leaks = open("/dev/null", O_RDONLY), same = fcntl(leaks, F_DUPFD, 7); /* neither closes on exec */
    CHECK_EQ(strand_pipe(pipe_ends), 0);
    CHECK_EQ(strand_write(pipe_ends[1], "word\n", 5), 5);
    const strand_process_fd fds[] = {{7, pipe_ends[0]}, {5, leaks}};
    char script[200];
    snprintf(script, sizeof script, "read x <&7; echo $x; ls /proc/$$/fd; :");
    CHECK_OUTPUT("word\n0\n1\n2\n5\n7\n", .argv = SHELL(script), .fds = fds, .fd_count = 2);
    CHECK(fcntl(leaks, F_GETFD) >= 0);
    CHECK(fcntl(same, F_GETFD) >= 0);
    for (int i = 0; i < 2; i++)
        strand_close(pipe_ends[i]);
    close(leaks);
    close(same);
}

TEST_REAL_INSIDE(descriptors_may_change_places)
{
    int a[2], b[2];
    CHECK_EQ(strand_pipe(a), 0);
    CHECK_EQ(strand_pipe(b), 0);
    CHECK_EQ(strand_write(a[1], "a\n", 2), 2);
    CHECK_EQ(strand_write(b[1], "b\n", 2), 2);
    const strand_process_fd fds[] = {{a[0], b[0]}, {b[0], a[0]}};
    char script[100];
    snprintf(script, sizeof script, "head -c 2 /dev/fd/%d; head -c 2 /dev/fd/%d", a[0], b[0]);
    CHECK_OUTPUT("b\na\n", .argv = SHELL(script), .fds = fds, .fd_count = 2);
    for (int i = 0; i < 2; i++) {
        strand_close(a[i]);
        strand_close(b[i]);
    }
}

TEST_REAL_INSIDE(the_error_stream_may_go_where_the_output_goes)
{
    CHECK_OUTPUT("a\nb\nc\n", .argv = SHELL("echo a; echo b >&2; echo c"), .err = {.kind = STRAND_STDIO_OUTPUT});
    CHECK_OUTPUT("", .argv = SHELL("cat; echo lost >&2"), .in = {.kind = STRAND_STDIO_NULL},
                 .err = {.kind = STRAND_STDIO_NULL});
}

TEST_REAL_INSIDE(a_stream_may_be_a_descriptor_of_the_caller)
{
    int ends[2];
    char word[5] = "";
    CHECK_EQ(strand_pipe(ends), 0);
    STRAND_SCOPE(scope);
    strand process = strand_process_start(
        scope, STRAND_PROCESS_ATTR(.argv = SHELL("printf word"), .out = {.kind = STRAND_STDIO_FD, .fd = ends[1]}));
    strand_close(ends[1]);
    CHECK_EQ(join(process).code, 0);
    CHECK_EQ(strand_read_all(ends[0], word, sizeof word), 4);
    CHECK_STR(word, "word");
    strand_close(ends[0]);
}

static bool has_terminals(void)
{
    int fd = posix_openpt(O_RDWR | O_NOCTTY);
    bool has = fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0 && access(ptsname(fd), R_OK) == 0;
    close(fd);
    if (!has)
        fprintf(stderr, "skipped: there are no terminals\n");
    return has;
}

TEST_REAL_INSIDE(a_process_may_have_a_terminal)
{
    int terminal = -1, before = test_count_entries("/proc/self/fd");
    if (!has_terminals())
        return;
    {
        STRAND_SCOPE(scope);
        strand process = strand_process_start(
            scope, STRAND_PROCESS_ATTR(.argv = SHELL("test -t 0 && test -t 1 && test ! -t 2 && echo yes >/dev/tty"),
                                       .in = {.kind = STRAND_STDIO_TERMINAL, .ours = &terminal},
                                       .out = {.kind = STRAND_STDIO_TERMINAL}, .err = {.kind = STRAND_STDIO_NULL}));
        CHECK_EQ(join(process).code, 0);
    }
    char text[16] = "";
    CHECK_EQ(strand_read_all(terminal, text, sizeof text - 1), 5);
    CHECK_STR(text, "yes\r\n");
    CHECK_EQ(strand_read(terminal, text, sizeof text), -EIO);
    strand_close(terminal);
    CHECK(test_count_entries("/proc/self/fd") <= before + 4); /* what the first wait makes */
}

/* strand_pipe makes pipes that do not block; programs expect others. */
TEST_REAL_INSIDE(a_pipe_between_two_processes_blocks_there)
{
    int ends[2];
    CHECK_EQ(strand_pipe(ends), 0);
    STRAND_SCOPE(scope);
    const char *script =
        "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; i=$((i + 1)); done";
    strand writer = strand_process_start(
        scope, STRAND_PROCESS_ATTR(.argv = SHELL(script), .out = {.kind = STRAND_STDIO_FD, .fd = ends[1]}));
    strand_captured got = {.size = sizeof got};
    strand_close(ends[1]);
    strand_process_capture(
        STRAND_PROCESS_ATTR(.argv = ARGV("wc", "-c"), .in = {.kind = STRAND_STDIO_FD, .fd = ends[0]}), NULL, &got);
    CHECK_STR(got.output, "123000\n");
    CHECK_EQ(join(writer).code, 0);
    CHECK(fcntl(ends[0], F_GETFL) & O_NONBLOCK); /* the caller's is as it was */
    free(got.output);
    free(got.errors);
    strand_close(ends[0]);
}

/* The other side of a named pipe may never come. */
TEST_REAL_INSIDE(a_start_does_not_wait_for_the_other_side_of_a_named_pipe)
{
    char folder[] = "/tmp/strand-process-XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/pipe", folder);
    CHECK_EQ(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK(fd >= 0);
    unlink(path);
    rmdir(folder);
    STRAND_SCOPE(scope);
    CHECK_EQ(join(strand_process_start(
                      scope, STRAND_PROCESS_ATTR(.argv = ARGV("true"), .in = {.kind = STRAND_STDIO_FD, .fd = fd})))
                 .code,
             0);
    strand_close(fd);
}

TEST_REAL_INSIDE(a_process_starts_where_the_standard_streams_are_closed)
{
    if (valgrind_prevents())
        return;
    int saved[3], out;
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    {
        STRAND_SCOPE(scope);
        strand process = strand_process_start(
            scope,
            STRAND_PROCESS_ATTR(.argv = SHELL("echo word; test ! -e /proc/$$/fd/0; exit $?"),
                                .out = {.kind = STRAND_STDIO_PIPE, .ours = &out}, .err = {.kind = STRAND_STDIO_NULL}));
        await_word(out, "word");
        CHECK_EQ(join(process).code, 0);
    }
    strand_close(out);
    for (int i = 0; i < 3; i++)
        if (saved[i] >= 0) {
            dup2(saved[i], i);
            close(saved[i]);
        }
}

/* The program's signal state is not the process's. */
TEST_REAL_INSIDE(a_process_has_the_default_signal_mask_and_dispositions)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    CHECK_OUTPUT("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n",
                 .argv = ARGV("grep", "-E", "SigBlk|SigIgn", "/proc/self/status"));
}

TEST_REAL_INSIDE(a_process_gets_its_limits_mask_and_nice_value)
{
    if (valgrind_prevents())
        return;
    const strand_process_limit limits[] = {{RLIMIT_NOFILE, 30, 50}, {RLIMIT_CORE, 0, 0}};
    CHECK_OUTPUT("30\n50\n0027\n", .argv = SHELL("ulimit -Sn; ulimit -Hn; umask"), .limits = limits, .limit_count = 2,
                 .has_mask = true, .mask = 027);
    char now[16], more[16];
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, 0);
    snprintf(now, sizeof now, "%d\n", nice);
    snprintf(more, sizeof more, "%d\n", nice + 2 < 19 ? nice + 2 : 19);
    CHECK_OUTPUT(now, .argv = ARGV("nice"));
    CHECK_OUTPUT(more, .argv = ARGV("nice"), .nice = 2);
    CHECK_OUTPUT("19\n", .argv = ARGV("nice"), .nice = 100);
}

static void *start_as_nobody(void *arg)
{
    const uint32_t groups[] = {65532};
    const strand_process_user user = {65534, 65534, groups, 1};
    STRAND_SCOPE(scope);
    strand_process_join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("true"), .user = &user)), NULL);
    return arg;
}

TEST_REAL_INSIDE(a_process_may_be_another_users)
{
    strand_exception *e = strand_try(start_as_nobody, NULL, NULL);
    if (e) { /* no privilege, or a name space without these numbers */
        fprintf(stderr, "skipped: %s\n", strand_exception_text(e));
        strand_exception_release(e);
        return;
    }
    const uint32_t groups[] = {65533, 65532};
    const strand_process_user nobody = {65534, 65534, NULL, 0}, with_groups = {65534, 65534, groups, 2};
    CHECK_OUTPUT("65534 65534 65534\n", .argv = SHELL("echo $(id -u) $(id -g) $(id -G)"), .user = &nobody);
    CHECK_OUTPUT("65534 65532 65533 65534\n",
                 .argv = SHELL("echo $(id -g) $(id -G | tr ' ' '\\n' | sort -n | tr '\\n' ' ')"), .user = &with_groups);
    /* The kernel protects the memory of a process whose user has changed: not that of this one, which shared it not. */
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return written;
}

/* A user namespace like that of a container without root. Returns the number of groups, all of which have a number
 * there, or -1: there is no such namespace. */
static int enter_namespace(gid_t groups[], int most)
{
    char users[40], own_groups[40];
    snprintf(users, sizeof users, "0 %u 1", (unsigned)geteuid());
    snprintf(own_groups, sizeof own_groups, "0 %u 1", (unsigned)getegid());
    (void)setgroups(0, NULL);
    if (unshare(CLONE_NEWUSER) < 0 || !write_text("/proc/self/setgroups", "deny") ||
        !write_text("/proc/self/uid_map", users) || !write_text("/proc/self/gid_map", own_groups))
        return -1;
    int count = getgroups(most, groups);
    for (int i = 0; i < count; i++)
        if (groups[i] == 65534)
            return -1;
    return count;
}

static void *start_with_groups(void *user)
{
    STRAND_SCOPE(scope);
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("true"), .user = user));
    CHECK_EQ(join(process).code, 0);
    return NULL;
}

static void *start_where_groups_are_fixed(void *user)
{
    static const uint32_t others[] = {0, 1};
    strand_process_user *own = user, other = {.groups = others, .group_count = own->group_count ? 0 : 2};
    start_with_groups(own);
    strand_exception *e = strand_try(start_with_groups, &other, NULL);
    CHECK(e && strand_exception_code(e) == -EPERM);
    CHECK_CONTAINS(strand_exception_text(e), "setting the supplementary groups");
    strand_exception_release(e);
    return NULL;
}

TEST_REAL(where_groups_are_fixed_a_process_may_have_the_users_of_its_namespace_with_them)
{
    gid_t groups[64];
    int count = enter_namespace(groups, 64);
    if (count < 0) {
        fprintf(stderr, "skipped: no namespace whose groups are fixed\n");
        return;
    }
    strand_options options = test_options();
    strand_process_user user = {.groups = groups, .group_count = (size_t)count};
    strand_run(&options, start_where_groups_are_fixed, &user);
}

TEST_REAL_INSIDE(a_process_leads_its_own_group_or_session_or_shares_the_callers)
{
    const char *script = "set -- $(cat /proc/$$/stat); test $5 = $$ && echo group; test $6 = $$ && echo session; :";
    CHECK_OUTPUT("group\n", .argv = SHELL(script));
    CHECK_OUTPUT("group\nsession\n", .argv = SHELL(script), .group = STRAND_PROCESS_SESSION);
    CHECK_OUTPUT("", .argv = SHELL(script), .group = STRAND_PROCESS_SHARED);
}

/* The call copies the attributes: the caller may change them at once. */
TEST_REAL_INSIDE(the_attributes_belong_to_the_caller)
{
    char word[] = "first";
    const char *argv[] = {"echo", word, NULL};
    int out;
    STRAND_SCOPE(scope);
    strand process = strand_process_start(
        scope, STRAND_PROCESS_ATTR(.argv = argv, .out = {.kind = STRAND_STDIO_PIPE, .ours = &out}));
    memcpy(word, "other", 5);
    argv[1] = NULL;
    await_word(out, "first");
    CHECK_EQ(join(process).code, 0);
    strand_close(out);
}

/* ---- failures of the start ------------------------------------------------------------------------ */

struct failing {
    strand_process_attr attr;
    int code;
    const char *words;
};

static void *start_failing(void *arg)
{
    const struct failing *failing = arg;
    STRAND_SCOPE(scope);
    strand_process_start(scope, &failing->attr);
    return NULL;
}

static void check_failing(struct failing *failing)
{
    int before = test_count_entries("/proc/self/fd");
    failing->attr.size = sizeof failing->attr;
    strand_exception *e = strand_try(start_failing, failing, NULL);
    CHECK(e != NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), failing->code);
    CHECK_CONTAINS(strand_exception_text(e), failing->words);
    strand_exception_release(e);
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
    check_no_child_is_left();
}

TEST_REAL_INSIDE(a_start_that_fails_names_the_step_and_leaves_nothing)
{
    static int fd;
    setenv("PATH", "/usr/bin:/bin", 1); /* folders that may be searched */
    run_shell("exit 0");                /* the first process makes what stays */
    const strand_process_fd closed[] = {{3, 999}};
    const strand_process_limit limit[] = {{RLIMIT_NOFILE, 2, 1}};
    struct failing table[] = {
        {{.argv = ARGV("no-such-program")}, -ENOENT, "running the program: no-such-program"},
        {{.argv = ARGV("/no/such/program")}, -ENOENT, "running the program"},
        {{.argv = ARGV("/etc/passwd")}, -EACCES, "running the program"},
        {{.argv = ARGV("")}, -ENOENT, "running the program"},
        {{.argv = ARGV("./true"), .directory = "/no/such"}, -ENOENT, "changing the directory: /no/such: "},
        {{.argv = ARGV("true"), .directory = "/etc/passwd"}, -ENOTDIR, "changing the directory: /etc/passwd: "},
        {{.argv = ARGV("true"), .fds = closed, .fd_count = 1}, -EBADF, "passing a descriptor: 999 as number 3: "},
        {{.argv = ARGV("true"), .out = {.kind = STRAND_STDIO_FD, .fd = 999}},
         -EBADF,
         "passing a descriptor: 999 as number 1: "},
        {{.argv = ARGV("true"), .limits = limit, .limit_count = 1},
         -EINVAL,
         "setting a resource limit: RLIMIT_NOFILE: "},
        {{.argv = ARGV("no-such-program"),
          .in = {.kind = STRAND_STDIO_PIPE, .ours = &fd},
          .out = {.kind = STRAND_STDIO_PIPE, .ours = &fd}},
         -ENOENT,
         "running the program"},
        {{.argv = ARGV("no-such-program"), .in = {.kind = STRAND_STDIO_TERMINAL, .ours = &fd}},
         -ENOENT,
         "running the program"},
    };
    fd = -7;
    size_t count = sizeof table / sizeof *table - !has_terminals(); /* the last one has a terminal */
    for (size_t i = 0; i < count; i++)
        check_failing(&table[i]);
    CHECK_EQ(fd, -7);
}

static void *start_true(void *scope)
{
    strand_process_start(*(strand_scope *)scope, STRAND_PROCESS_ATTR(.argv = ARGV("true")));
    return NULL;
}

TEST_REAL_INSIDE(a_start_without_descriptors_fails_and_leaves_nothing)
{
    if (valgrind_prevents())
        return;
    run_shell("exit 0");
    static int fd;
    struct failing failing = {{.argv = ARGV("true"),
                               .in = {.kind = STRAND_STDIO_PIPE, .ours = &fd},
                               .out = {.kind = STRAND_STDIO_PIPE, .ours = &fd}},
                              -EMFILE,
                              "strand_process_start"};
    if (has_terminals())
        failing.attr.err = (strand_stdio){.kind = STRAND_STDIO_TERMINAL, .ours = &fd};
    struct rlimit limit, none;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int before = test_count_entries("/proc/self/fd");
    /* The limit counts numbers: first none is free, then some, until the start works. */
    int top = open("/dev/null", O_RDONLY | O_CLOEXEC), failed = 0;
    close(top);
    for (bool over = false; !over; top++) {
        failing.attr.size = sizeof failing.attr;
        none = (struct rlimit){.rlim_cur = (rlim_t)top, .rlim_max = limit.rlim_max};
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        strand_exception *e = strand_try(start_failing, &failing, NULL);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
        if (e && strand_exception_is(e, &STRAND_LIVE_STRANDS)) {
            over = true;
        } else {
            CHECK(e != NULL);
            CHECK_EQ(strand_exception_code(e), -EMFILE);
            CHECK_EQ(test_count_entries("/proc/self/fd"), before);
            check_no_child_is_left();
            failed++;
        }
        strand_exception_release(e);
    }
    CHECK(failed >= 4); /* two pipes, and more */
}

static void *start_in_limits(void *arg)
{
    STRAND_SCOPE(scope);
    CHECK_THROWS(start_true, &scope, &STRAND_SYSTEM);
    check_no_child_is_left();
    return arg;
}

TEST_REAL(a_start_beyond_the_limit_of_strands_starts_no_process)
{
    strand_options options = test_options();
    options.max_strands = 1;
    CHECK_PTR(strand_run(&options, start_in_limits, TEST_PTR(1)), TEST_PTR(1));
}

static void *start_without_a_stack(void *arg)
{
    STRAND_SCOPE(scope);
    strand_exception *e = strand_try(start_true, &scope, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -EAGAIN);
    strand_exception_release(e);
    check_no_child_is_left();
    return arg;
}

/* A sanitizer sees whether memory is left. */
TEST_REAL(a_start_without_a_stack_for_the_keeper_starts_no_process)
{
    strand_options options = test_options();
    options.stack_size = 64 * 1024;
    options.max_stack_bytes = 64 * 1024;
    CHECK_PTR(strand_run(&options, start_without_a_stack, TEST_PTR(1)), TEST_PTR(1));
}
TEST_OWN_STACKS(a_start_without_a_stack_for_the_keeper_starts_no_process, "the keeper's stack is the test's subject");

static void *start_interrupted(void *scope)
{
    strand_process_start(*(strand_scope *)scope, STRAND_PROCESS_ATTR(.argv = ARGV("touch", "/no/such/file")));
    CHECK_FAIL("the start was not interrupted");
    return NULL;
}

static void *start_cancelled(void *arg)
{
    STRAND_SCOPE(scope);
    CHECK_THROWS(start_interrupted, &scope, &STRAND_INTERRUPTED);
    check_no_child_is_left();
    return arg;
}

TEST_REAL_INSIDE(a_cancelled_strand_starts_no_process)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, start_cancelled, NULL);
    strand_cancel(child, NULL);
    strand_wait(child);
}

/* ---- stopping ------------------------------------------------------------------------------------- */

static void *leave_running(void *out)
{
    STRAND_SCOPE(scope);
    start_ready(scope, RUNS_ON, out);
    return NULL;
}

TEST_REAL_INSIDE(leaving_the_scope_stops_a_process_and_reports_it_as_live)
{
    int out;
    char byte;
    strand_exception *e = strand_try(leave_running, &out, NULL);
    CHECK_KIND(e, &STRAND_LIVE_STRANDS);
    CHECK_CONTAINS(strand_exception_text(e), "process sh");
    strand_exception_release(e);
    CHECK_EQ(strand_read(out, &byte, 1), 0);
    strand_close(out);
    check_no_child_is_left();
}

TEST_REAL_INSIDE(a_cancelled_process_gets_its_stop_signal)
{
    int out;
    STRAND_SCOPE(scope);
    strand process = start_ready(scope, RUNS_ON, &out);
    strand_cancel(process, NULL);
    strand_process_end end = join(process);
    CHECK_EQ(end.signal, SIGTERM);
    CHECK(end.stopped);
    strand_close(out);
}

TEST_REAL_INSIDE(a_process_may_end_in_its_own_way_when_it_is_stopped)
{
    int out;
    STRAND_SCOPE(scope);
    strand process = start_ready(scope, "trap 'exit 5' INT; echo ready; while :; do sleep 1000 & wait; done", &out);
    strand_cancel(process, NULL);
    CHECK_EQ(join(process).signal, SIGTERM);
    strand_close(out);
    process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL("trap 'exit 5' INT; echo ready; "
                                                                            "while :; do sleep 1000 & wait; done"),
                                                              .stop_signal = SIGINT, .grace_ns = FOREVER,
                                                              .out = {.kind = STRAND_STDIO_PIPE, .ours = &out}));
    await_word(out, "ready");
    strand_cancel(process, NULL);
    strand_process_end end = join(process);
    CHECK_EQ(end.code, 5);
    CHECK(end.stopped);
    strand_close(out);
}

TEST_REAL_INSIDE(a_process_that_ignores_its_stop_signal_is_killed_when_its_grace_is_over)
{
    int out;
    const char *script = "trap '' TERM; echo ready; while :; do sleep 1000; done";
    STRAND_SCOPE(scope);
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL(script), .grace_ns = 50 * STRAND_MS,
                                                                     .out = {.kind = STRAND_STDIO_PIPE, .ours = &out}));
    await_word(out, "ready");
    strand_time before = strand_now();
    strand_cancel(process, NULL);
    strand_process_end end = join(process);
    CHECK_EQ(end.signal, SIGKILL);
    CHECK(strand_now().ns - before.ns >= 50 * STRAND_MS);
    strand_close(out);
}

TEST_REAL_INSIDE(a_process_without_grace_is_killed_at_once)
{
    int out;
    STRAND_SCOPE(scope);
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL(RUNS_ON), .grace_ns = -1,
                                                                     .out = {.kind = STRAND_STDIO_PIPE, .ours = &out}));
    await_word(out, "ready");
    strand_cancel(process, NULL);
    CHECK_EQ(join(process).signal, SIGKILL);
    strand_close(out);
}

TEST_REAL_INSIDE(a_suspended_process_can_be_stopped)
{
    int out;
    STRAND_SCOPE(scope);
    strand process = start_ready(scope, RUNS_ON, &out);
    CHECK_EQ(strand_process_signal(process, SIGSTOP), 0);
    strand_cancel(process, NULL);
    CHECK_EQ(join(process).signal, SIGTERM);
    strand_close(out);
}

/* The pipe ends when the last process of the group has gone. */
TEST_REAL_INSIDE(the_processes_of_its_group_are_stopped_with_it)
{
    int out;
    char byte;
    STRAND_SCOPE(scope);
    strand process = start_ready(scope, "(trap '' TERM; echo ready; while :; do sleep 1000; done) & wait", &out);
    strand_cancel(process, NULL);
    CHECK_EQ(join(process).signal, SIGTERM);
    CHECK_EQ(strand_read(out, &byte, 1), 0);
    strand_close(out);
}

TEST_REAL_INSIDE(a_process_that_has_ended_leaves_its_group_alone)
{
    int in, out;
    STRAND_SCOPE(scope);
    strand process =
        strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL("exec 3<&0; (read x <&3; echo $x) & exit 0"),
                                                        .in = {.kind = STRAND_STDIO_PIPE, .ours = &in},
                                                        .out = {.kind = STRAND_STDIO_PIPE, .ours = &out}));
    CHECK_EQ(join(process).code, 0);
    CHECK_EQ(strand_write(in, "lives\n", 6), 6);
    await_word(out, "lives");
    strand_close(in);
    strand_close(out);
}

struct stopping {
    int in, out;
};

/* Reads a byte of each process that has got its stop signal, then lets all end. */
static void *await_stops(void *arg)
{
    const struct stopping *stopping = arg;
    char bytes[8];
    CHECK_EQ(strand_read_all(stopping->out, bytes, sizeof bytes), sizeof bytes);
    strand_close(stopping->in);
    return NULL;
}

/* Each ends only when all have got their signal. */
TEST_REAL_INSIDE(the_processes_of_a_scope_are_stopped_at_the_same_time)
{
    int in[2], out[2];
    CHECK_EQ(strand_pipe(in), 0);
    CHECK_EQ(strand_pipe(out), 0);
    struct stopping *stopping = malloc(sizeof *stopping);
    *stopping = (struct stopping){.in = in[1], .out = out[0]};
    const char *script =
        "trap 'printf t >&4; read x <&3; exit 0' TERM; echo ready; while :; do sleep 1000 & wait; done";
    const strand_process_fd fds[] = {{3, in[0]}, {4, out[1]}};
    STRAND_SCOPE(outer);
    {
        STRAND_SCOPE(scope);
        for (int i = 0; i < 8; i++) {
            int ready;
            strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL(script), .grace_ns = FOREVER, .fds = fds,
                                                            .fd_count = 2,
                                                            .out = {.kind = STRAND_STDIO_PIPE, .ours = &ready}));
            await_word(ready, "ready");
            strand_close(ready);
        }
        strand_spawn(outer, await_stops, stopping);
        strand_scope_cancel(scope, NULL);
    }
    strand_scope_join(outer);
    free(stopping);
    strand_close(in[0]);
    strand_close(out[0]);
    strand_close(out[1]);
    check_no_child_is_left();
}

TEST_REAL_INSIDE(a_deadline_stops_a_process)
{
    int out;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        STRAND_SCOPE(scope);
        strand process = start_ready(scope, RUNS_ON, &out);
        strand_process_join(process, NULL);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        check_no_child_is_left();
        return;
    }
    STRAND_END
    CHECK_FAIL("no time-out");
}

TEST_REAL_INSIDE(a_process_can_be_handed_off)
{
    STRAND_SCOPE_OPEN(outer);
    int in;
    strand process;
    {
        STRAND_SCOPE(inner);
        process = strand_process_start(
            inner, STRAND_PROCESS_ATTR(.argv = ARGV("cat"), .in = {.kind = STRAND_STDIO_PIPE, .ours = &in}));
        CHECK_EQ(strand_hand_off(process, outer), 0);
    }
    CHECK(strand_process_pid(process) > 0);
    strand_close(in);
    CHECK_EQ(join(process).code, 0);
}

static void *start_in(void *scope)
{
    return strand_process_start(*(strand_scope *)scope, STRAND_PROCESS_ATTR(.argv = SHELL("exit 4"))).bits[1] ? scope
                                                                                                              : NULL;
}

TEST_REAL_INSIDE(another_strand_may_start_a_process_in_an_open_scope)
{
    STRAND_SCOPE_OPEN(scope);
    strand_scope *shared = malloc(sizeof *shared);
    *shared = scope;
    strand_join(strand_spawn(scope, start_in, shared));
    CHECK_EQ(strand_scope_count(scope), 1);
    strand_scope_join(scope);
    free(shared);
}

TEST_REAL_INSIDE(the_processes_of_a_service_are_consumed_as_they_end)
{
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    for (int i = 0; i < 10; i++)
        strand_wait(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("true"))));
    CHECK(strand_scope_count(scope) <= 1);
}

/* ---- signals and numbers -------------------------------------------------------------------------- */

TEST_REAL_INSIDE(a_signal_reaches_the_process)
{
    int out;
    STRAND_SCOPE(scope);
    strand process = start_ready(scope, "trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done", &out);
    CHECK_EQ(strand_process_signal(process, SIGUSR1), 0);
    CHECK_EQ(join(process).code, 9);
    strand_close(out);
}

TEST_REAL_INSIDE(an_ended_process_keeps_its_number_until_it_is_joined_and_gets_no_signal)
{
    int out;
    STRAND_SCOPE(scope);
    strand process = start_ready(scope, RUNS_ON, &out);
    int pid = strand_process_pid(process);
    CHECK(pid > 0);
    CHECK_EQ(strand_process_signal(process, SIGKILL), 0);
    strand_wait(process);
    CHECK_EQ(strand_process_pid(process), pid);
    CHECK_EQ(strand_process_signal(process, SIGKILL), -ESRCH);
    CHECK_EQ(join(process).pid, pid);
    CHECK_EQ(strand_process_pid(process), -ESRCH);
    strand_close(out);
}

static void *return_number(void *process)
{
    return (void *)(intptr_t)strand_process_pid(*(strand *)process);
}

TEST_REAL_INSIDE(another_strand_gets_the_number_of_an_ended_process_whose_result_is_dropped)
{
    STRAND_SCOPE(scope);
    strand process = {{0}};
    {
        STRAND_SCOPE_WITH(inner, STRAND_COLLECT);
        process = strand_process_start(inner, STRAND_PROCESS_ATTR(.argv = ARGV("true")));
        strand_wait(process);
        strand asker = strand_spawn_with(scope, STRAND_ATTR(.name = "asker"), return_number, &process, sizeof process);
        CHECK_EQ((intptr_t)strand_join(asker), strand_process_pid(process));
        CHECK(strand_process_pid(process) > 0);
        strand_scope_cancel(inner, "its processes are not joined");
    }
    CHECK_EQ(strand_process_pid(process), -ESRCH);
}

TEST_REAL_INSIDE(a_strand_that_is_no_process_has_no_number)
{
    CHECK_EQ(strand_process_pid(strand_self()), -ESRCH);
    CHECK_EQ(strand_process_pid((strand){{0}}), -ESRCH);
}

/* ---- capturing ---------------------------------------------------------------------------------- */

TEST_REAL_INSIDE(capturing_returns_both_streams_and_the_end)
{
    strand_captured got = {.size = sizeof got};
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = SHELL("echo out; echo err >&2; exit 2")), NULL, &got);
    CHECK_STR(got.output, "out\n");
    CHECK_STR(got.errors, "err\n");
    CHECK_EQ(got.end.code, 2);
    free(got.output);
    free(got.errors);
}

TEST_REAL_INSIDE(input_that_the_process_does_not_read_is_dropped)
{
    enum { SIZE = 1 << 20 };
    char *bytes = calloc(1, SIZE);
    strand_captured got = {.size = sizeof got};
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = SHELL("echo no")),
                           STRAND_CAPTURE_ATTR(.input = bytes, .input_size = SIZE), &got);
    CHECK_STR(got.output, "no\n");
    free(got.output);
    free(got.errors);
    free(bytes);
}

static void *capture_too_much(void *out)
{
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = ARGV("yes")), STRAND_CAPTURE_ATTR(.max_size = 10000), out);
    return NULL;
}

TEST_REAL_INSIDE(more_output_than_allowed_stops_the_process_and_is_an_error)
{
    strand_captured got = {.size = sizeof got};
    int before = test_count_entries("/proc/self/fd");
    strand_exception *e = strand_try(capture_too_much, &got, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -EFBIG);
    CHECK_CONTAINS(strand_exception_text(e), "10000 bytes");
    CHECK_PTR(strand_exception_suppressed(e, 0), NULL);
    strand_exception_release(e);
    check_no_child_is_left();
    CHECK(test_count_entries("/proc/self/fd") <= before + 8); /* what the first process of the run has made */
}

/* The process ends, but one that it has started still holds its output. */
TEST_REAL_INSIDE(capturing_ends_although_another_process_holds_the_output_open)
{
    int ends[2];
    CHECK_EQ(strand_pipe(ends), 0);
    const strand_process_fd fds[] = {{3, ends[0]}};
    strand_captured got = {.size = sizeof got};
    strand_process_capture(
        STRAND_PROCESS_ATTR(.argv = SHELL("(cat <&3) & echo before; exit 6"), .fds = fds, .fd_count = 1),
        STRAND_CAPTURE_ATTR(.linger_ns = -1), &got);
    CHECK_STR(got.output, "before\n");
    CHECK_EQ(got.end.code, 6);
    free(got.output);
    free(got.errors);
    for (int i = 0; i < 2; i++)
        strand_close(ends[i]);
}

/* ---- in a sandbox ---------------------------------------------------------------------------------- */

#define JUMP_UNLESS(value, over) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (over))
#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

/* Refuses close_range, as kernels before 5.9 do, and all that takes a process descriptor. */
static bool enter_sandbox(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        JUMP_UNLESS(SYS_close_range, 1),
        REFUSE(ENOSYS),
        JUMP_UNLESS(SYS_pidfd_send_signal, 1),
        REFUSE(EPERM),
        JUMP_UNLESS(SYS_waitid, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        JUMP_UNLESS(3 /* P_PIDFD */, 1),
        REFUSE(EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void *use_processes(void *arg)
{
    int out, leaks = open("/dev/null", O_RDONLY), far = fcntl(leaks, F_DUPFD, 200);
    const strand_process_fd fds[] = {{5, leaks}};
    struct failing failing = {{.argv = ARGV("/no/such/program")}, -ENOENT, "running the program"};
    CHECK_OUTPUT("0\n1\n2\n5\n", .argv = SHELL("ls /proc/$$/fd; :"), .fds = fds, .fd_count = 1);
    check_failing(&failing);
    {
        STRAND_SCOPE(scope);
        strand process = start_ready(scope, RUNS_ON, &out);
        CHECK_EQ(strand_process_signal(process, SIGSTOP), 0);
        strand_cancel(process, NULL);
        strand_process_end end = join(process);
        CHECK_EQ(end.signal, SIGTERM);
        CHECK(end.stopped);
    }
    strand_close(out);
    close(leaks);
    close(far);
    check_no_child_is_left();
    return arg;
}

TEST_REAL(processes_work_where_the_system_refuses_process_descriptors)
{
    strand_options options = test_options();
    if (valgrind_prevents())
        return;
    if (!enter_sandbox()) {
        fprintf(stderr, "skipped: the system allows no filter of system calls\n");
        return;
    }
    CHECK_PTR(strand_run(&options, use_processes, TEST_PTR(1)), TEST_PTR(1));
}

/* Refuses each further process that is made as the library makes them; not threads, and no process by fork(2). */
static bool refuse_starts(int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        JUMP_UNLESS(SYS_clone, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_PIDFD, 0, 1),
        REFUSE((uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/* With memory that is shared, and with a copy of it. */
TEST_REAL_INSIDE(a_start_that_the_system_refuses_a_process_leaves_nothing)
{
    static const int errors[] = {EAGAIN, ENOMEM};
    static int fd = -7;
    const strand_process_user me = {.user = geteuid(), .group = getegid()};
    run_shell("exit 0"); /* the first process makes what stays */
    for (int i = 0; i < 2; i++) {
        if (!refuse_starts(errors[i])) {
            fprintf(stderr, "skipped: the system allows no filter of system calls\n");
            return;
        }
        struct failing failing = {{.argv = ARGV("true"),
                                   .in = {.kind = STRAND_STDIO_PIPE, .ours = &fd},
                                   .out = {.kind = STRAND_STDIO_PIPE, .ours = &fd}},
                                  -errors[i],
                                  "starting a process: true"};
        check_failing(&failing);
        failing.attr.user = &me;
        check_failing(&failing);
    }
    CHECK_EQ(fd, -7);
}

/* ---- many ---------------------------------------------------------------------------------------- */

/* So many at a time: the system allows a number of processes. */
static strand_semaphore at_a_time = STRAND_SEMAPHORE_INIT(16);

static void *run_one(void *arg)
{
    int number = (int)(intptr_t)arg;
    char script[32];
    snprintf(script, sizeof script, "exit %d", number % 100);
    STRAND_PERMIT(&at_a_time);
    CHECK_EQ(run_shell(script).code, number % 100);
    return NULL;
}

TEST_REAL_RACE(many_processes_start_and_end_at_the_same_time)
{
    int before = test_count_entries("/proc/self/fd");
    run_one(NULL);
    {
        STRAND_SCOPE(scope);
        for (int i = 0; i < test_scale(100); i++)
            strand_spawn(scope, run_one, TEST_PTR(i + 1));
        strand_scope_join(scope);
    }
    check_no_child_is_left();
    CHECK(test_count_entries("/proc/self/fd") <= before + 8);
}

static void *signal_until_gone(void *arg)
{
    strand *process = arg;
    int got;
    while ((got = strand_process_signal(*process, 0)) == 0)
        strand_yield();
    CHECK_EQ(got, -ESRCH);
    return NULL;
}

TEST_REAL_RACE(a_signal_and_the_end_of_a_process_do_not_meet)
{
    for (int i = 0; i < test_scale(50); i++) {
        STRAND_SCOPE(scope);
        strand *process = malloc(sizeof *process), signaller;
        *process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("true")));
        signaller = strand_spawn(scope, signal_until_gone, process);
        CHECK_EQ(join(*process).code, 0);
        strand_join(signaller);
        free(process);
    }
}

static void *join_cancelled(void *arg)
{
    CHECK_THROWS(join_process, arg, &STRAND_INTERRUPTED);
    return NULL;
}

TEST_REAL_INSIDE(an_interrupted_join_does_not_consume_the_process)
{
    int in;
    STRAND_SCOPE(scope);
    strand *process = malloc(sizeof *process);
    *process = strand_process_start(
        scope, STRAND_PROCESS_ATTR(.argv = ARGV("cat"), .in = {.kind = STRAND_STDIO_PIPE, .ours = &in}));
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        join_cancelled(process);
        strand_checkpoint();
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    CHECK(strand_process_pid(*process) > 0);
    strand_close(in);
    CHECK_EQ(join(*process).code, 0);
    free(process);
}
