/*
 * The watchdog reports a process that does not end long after it was stopped, since its scope waits for it. Nothing
 * here depends on time: the process ends because it has been reported.
 */
#define _GNU_SOURCE
#define SUITE watchdog_processes
#include "watchdog.h"

#include "strand/io.h"
#include "strand/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define HOUR (3600 * STRAND_S)
#define SHELL(script) ((const char *const[]){"sh", "-c", (script), NULL})
/* The system keeps what a process ignores when it runs another program. */
#define STUBBORN "trap '' TERM; echo ready; exec sleep 900"
#define WILLING "echo ready; exec sleep 900"

enum { STOPS_MOST = 400, NOTES = 16, REPORTS_AT_ONCE = 10 /* of the watchdog */ };

static int line, pid; /* of the scope, and the process */

/* The reports of processes; what their pointers point to is in `kept`. */
static struct {
    struct kept kept[STOPS_MOST];
    char scope[STOPS_MOST][100];
    _Atomic int count;
    void (*release)(const strand_watchdog_report *report); /* ends the process */
} stops;

static void kill_it(const strand_watchdog_report *report)
{
    if (report->reports == 1)
        CHECK_EQ(kill(report->pid, SIGKILL), 0);
}

static void keep_stop(const strand_watchdog_report *report, void *arg)
{
    (void)arg;
    if (report->kind != STRAND_WATCHDOG_PROCESS || stops.count == STOPS_MOST)
        return;
    struct kept *kept = &stops.kept[stops.count];
    kept->late = *report;
    snprintf(kept->name, sizeof kept->name, "%s", report->name);
    snprintf(kept->where, sizeof kept->where, "%s", report->where);
    snprintf(kept->text, sizeof kept->text, "%s", report->text);
    snprintf(stops.scope[stops.count], sizeof stops.scope[0], "%s", report->scope);
    stops.count++;
    if (!report->over)
        stops.release(report);
}

static void run_watched(int threads, int64_t limit, strand_fn *root, void *arg)
{
    strand_options options = watched(threads);
    options.watchdog_ns = limit;
    options.on_watchdog = keep_stop;
    stops.count = 0;
    strand_run(&options, root, arg);
}

/* A process of that script, which has written "ready". Records its number. */
static strand start(strand_scope scope, const char *script, int64_t grace_ns, int *out)
{
    char ready[6];
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL(script),
                                                                     .out = {.kind = STRAND_STDIO_PIPE, .ours = out},
                                                                     .grace_ns = grace_ns));
    CHECK_EQ(strand_read_all(*out, ready, sizeof ready), sizeof ready);
    pid = strand_process_pid(process);
    return process;
}

/* ---- reported ---------------------------------------------------------------------------------------------- */

static void *leaves_a_stubborn_process(void *arg)
{
    int out;
    {
        line = __LINE__ + 1;
        STRAND_SCOPE(scope);
        start(scope, STUBBORN, HOUR, &out);
        strand_scope_cancel(scope, NULL);
    }
    strand_close(out);
    return arg;
}

static void check_place(int at, int of_line)
{
    char place[120];
    snprintf(place, sizeof place, "%s:%d", __FILE__, of_line);
    CHECK_STR(stops.scope[at], place);
    CHECK_CONTAINS(stops.kept[at].text, place);
}

static void check_first(int signal)
{
    const struct kept *kept = &stops.kept[0];
    CHECK_EQ(kept->late.pid, pid);
    CHECK_EQ(kept->late.signal, signal);
    CHECK_EQ(kept->late.limit_ns, LIMIT);
    CHECK(!kept->late.over && kept->late.reports == 1);
    CHECK(kept->late.duration_ns >= LIMIT && kept->late.id > 1);
    CHECK_STR(kept->name, "process sh");
    check_place(0, line);
}

static void check_over(void)
{
    char text[80];
    const struct kept *last = &stops.kept[stops.count - 1];
    CHECK(last->late.over && last->late.pid == pid && last->late.id == stops.kept[0].late.id);
    snprintf(text, sizeof text, "strand 'process sh' #%llu stopped process %d for ", (unsigned long long)last->late.id,
             pid);
    CHECK_CONTAINS(last->text, text);
}

/* contract 4.71 */
TEST_REAL(a_process_that_does_not_end_in_its_time_of_grace_is_reported_with_its_scope)
{
    stops.release = kill_it;
    for (int threads = 1; threads <= 4; threads += 3) {
        run_watched(threads, LIMIT, leaves_a_stubborn_process, NULL);
        CHECK(stops.count >= 2);
        check_first(SIGTERM);
        CHECK(stops.kept[0].late.kill_ns > HOUR / 2 && stops.kept[0].late.kill_ns < HOUR);
        CHECK(stops.kept[0].late.state != 0 && strchr("RSD", stops.kept[0].late.state));
        CHECK_EQ(stops.kept[0].late.signal_error, 0);
        CHECK_CONTAINS(stops.kept[0].text, " has been stopping process ");
        CHECK_CONTAINS(stops.kept[0].text, ": signal 15 was sent, SIGKILL follows in 3");
        check_over();
    }
}

enum { MANY = NOTES + 1 };
static int many[MANY];

/* Ends all that there are notes for, when the watchdog has had to wait until it may report once more: so the last one
 * is late, too. That one is ended when it is reported. */
static void kill_the_first(const strand_watchdog_report *report, void *told)
{
    if (report->kind != STRAND_WATCHDOG_PROCESS || report->over)
        return;
    if (report->pid == many[NOTES])
        kill_it(report);
    if (++*(int *)told == REPORTS_AT_ONCE + 1)
        for (int i = 0; i < NOTES; i++)
            CHECK_EQ(kill(many[i], SIGKILL), 0);
}

static void *leaves_many(void *arg)
{
    int out[MANY];
    {
        STRAND_SCOPE(last);
        many[NOTES] = strand_process_pid(start(last, STUBBORN, HOUR, &out[NOTES]));
        STRAND_SCOPE(first);
        for (int i = 0; i < NOTES; i++)
            many[i] = strand_process_pid(start(first, STUBBORN, HOUR, &out[i]));
        strand_scope_cancel(first, NULL);
        strand_sleep(STRAND_MS);
        strand_scope_cancel(last, NULL);
    }
    for (int i = 0; i < MANY; i++)
        strand_close(out[i]);
    return arg;
}

/* The last one gets a note when others have ended: else this would last for an hour. */
TEST_REAL(a_process_for_which_the_watchdog_has_no_note_yet_is_reported_later)
{
    int told = 0;
    strand_options options = watched(2);
    options.watchdog_ns = LIMIT;
    options.on_watchdog = kill_the_first;
    options.hook_arg = &told;
    strand_run(&options, leaves_many, NULL);
    CHECK(told > REPORTS_AT_ONCE + 1);
}

static void *leaves_a_scope_that_got_it(void *arg)
{
    int out;
    {
        line = __LINE__ + 1;
        STRAND_SCOPE_OPEN(late);
        {
            STRAND_SCOPE(early);
            CHECK_EQ(strand_hand_off(start(early, STUBBORN, HOUR, &out), late), 0);
        }
        strand_scope_cancel(late, NULL);
    }
    strand_close(out);
    return arg;
}

/* contract 4.71 */
TEST_REAL(the_report_of_a_process_names_the_scope_that_it_was_handed_to)
{
    stops.release = kill_it;
    run_watched(2, LIMIT, leaves_a_scope_that_got_it, NULL);
    check_first(SIGTERM);
}

/* ---- a process that SIGKILL does not end -------------------------------------------------------------------- */

/* A debugger that holds the process when it is about to end, until it lets go. */
static struct {
    pthread_t thread;
    int hold[2];      /* its end lets go */
    _Atomic int held; /* 1, or a negated errno code */
    bool told;        /* it has got the system's report */
} debugger;

static void *hold_the_process(void *arg)
{
    char byte;
    int status = 0;
    long got = ptrace(PTRACE_SEIZE, pid, NULL, (void *)(intptr_t)PTRACE_O_TRACEEXIT);
    debugger.held = got < 0 ? -errno : 1;
    CHECK_EQ(read(debugger.hold[0], &byte, 1), 0);
    debugger.told = debugger.held > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);
    return arg; /* the system takes the debugger away with its thread */
}

static void let_go(const strand_watchdog_report *report)
{
    if (debugger.hold[1] < 0 || (report && report->state != 't')) /* it has not come to its end yet */
        return;
    close(debugger.hold[1]);
    debugger.hold[1] = -1;
}

static void *leaves_a_process_that_is_held(void *arg)
{
    int out;
    {
        line = __LINE__ + 1;
        STRAND_SCOPE(scope);
        start(scope, WILLING, -1, &out);
        CHECK_EQ(pthread_create(&debugger.thread, NULL, hold_the_process, NULL), 0);
        while (!debugger.held)
            strand_yield();
        if (debugger.held < 0)
            let_go(NULL);
        strand_scope_cancel(scope, NULL);
    }
    CHECK_EQ(pthread_join(debugger.thread, NULL), 0);
    strand_close(out);
    return arg;
}

/* contract 4.71 */
TEST_REAL(a_process_that_sigkill_does_not_end_is_reported_with_its_state)
{
    CHECK_EQ(pipe(debugger.hold), 0);
    debugger.held = 0;
    stops.release = let_go;
    run_watched(2, LIMIT, leaves_a_process_that_is_held, NULL);
    if (debugger.held < 0) {
        fprintf(stderr, "skipped: the system permits no debugger: %s\n", strerrorname_np(-debugger.held));
        return;
    }
    check_first(SIGKILL);
    CHECK_EQ(stops.kept[0].late.kill_ns, 0);
    CHECK(debugger.told); /* the keeper has not taken it */
    const struct kept *last = &stops.kept[stops.count - 2];
    CHECK_EQ(last->late.state, 't');
    CHECK_CONTAINS(last->text, ": signal 9 was sent: it is suspended, or held by a debugger");
    check_over();
}

/* ---- a process that may not be signalled ---------------------------------------------------------------------- */

static int input[2];

static void end_its_input(const strand_watchdog_report *report)
{
    if (report->reports == 1)
        close(input[1]);
}

static void set_kill_privilege(bool has)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    CHECK_EQ(syscall(SYS_capget, &head, data), 0);
    data[0].effective = has ? data[0].permitted : data[0].effective & ~(1U << CAP_KILL);
    CHECK_EQ(syscall(SYS_capset, &head, data), 0);
}

static void *starts_as_another_user(void *arg)
{
    const strand_process_user nobody = {.user = 65534, .group = 65534};
    STRAND_SCOPE(scope);
    strand_process_join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = SHELL("exit 0"), .user = &nobody)),
                        NULL);
    return arg;
}

static void *tries_another_user(void *may)
{
    strand_exception *e = strand_try(starts_as_another_user, NULL, NULL);
    if (e) { /* no privilege, or a name space without this number */
        fprintf(stderr, "skipped: %s\n", strand_exception_text(e));
        strand_exception_release(e);
    }
    *(bool *)may = !e;
    return NULL;
}

static bool may_start_another_user(strand_options *options)
{
    bool may = false;
    strand_run(options, tries_another_user, &may);
    return may;
}

static void *leaves_a_process_of_another_user(void *arg)
{
    const char *const argv[] = {"cat", NULL};
    const strand_process_user nobody = {.user = 65534, .group = 65534};
    {
        line = __LINE__ + 1;
        STRAND_SCOPE(scope);
        strand process =
            strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = argv, .file = "/bin/cat",
                                                            .in = {.kind = STRAND_STDIO_FD, .fd = input[0]},
                                                            .grace_ns = -1, .user = &nobody));
        pid = strand_process_pid(process);
        set_kill_privilege(false);
        strand_scope_cancel(scope, NULL);
    }
    set_kill_privilege(true);
    return arg;
}

/* contract 4.71 */
TEST_REAL(a_process_that_may_not_be_signalled_is_reported_with_the_refusal)
{
    strand_options options = watched(1); /* privileges are a thread's */
    if (!may_start_another_user(&options))
        return;
    CHECK_EQ(pipe2(input, O_CLOEXEC), 0);
    stops.release = end_its_input;
    options.on_watchdog = keep_stop;
    stops.count = 0;
    strand_run(&options, leaves_a_process_of_another_user, NULL);
    CHECK_EQ(stops.kept[0].late.signal_error, -EPERM);
    CHECK_EQ(stops.kept[0].late.signal, SIGKILL);
    CHECK_CONTAINS(stops.kept[0].text, ": signal 9 was sent, which the system refused (EPERM)");
    check_place(0, line);
    close(input[0]);
}

/* ---- not reported -------------------------------------------------------------------------------------------- */

static void *runs_long_and_ends_at_once(void *limit)
{
    int out;
    {
        STRAND_SCOPE(scope);
        start(scope, WILLING, HOUR, &out);
        strand_sleep(2 * *(int64_t *)limit);
        strand_scope_cancel(scope, NULL);
    }
    strand_close(out);
    return NULL;
}

/* On a busy machine the process may take longer than the limit to end: then a longer one is tried. */
TEST_REAL(a_process_that_runs_for_long_and_ends_when_it_is_stopped_is_not_reported)
{
    int64_t limit = PATIENT;
    stops.release = kill_it;
    for (run_watched(2, limit, runs_long_and_ends_at_once, &limit); stops.count;
         run_watched(2, limit, runs_long_and_ends_at_once, &limit))
        limit *= 2;
}
