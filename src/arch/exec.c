/*
 * Child processes that run another program.
 *
 * The child shares this process's memory until it runs the program (CLONE_VM), and the calling thread waits until then
 * (CLONE_VFORK): a start takes the same time however much memory the process has. A child that changes its user gets a
 * copy of the memory instead: the kernel makes memory whose user changes unreadable for debuggers, also in the process
 * that shares it. The child has a stack of its own. It makes raw system calls only: the C library's functions take
 * locks that another thread may hold, write errno of the calling thread, and some of them (setuid) work on all threads
 * of the process.
 *
 * All signals are blocked in the calling thread meanwhile, and so in the child. The child sets each handler back before
 * it unblocks signals: a handler of this process would work on this process's memory.
 *
 * No signal is set for the death of this process (PR_SET_PDEATHSIG): the kernel sends it when the thread ends that has
 * started the child, and threads of a pool come and go.
 */
#include "arch.h"
#include "san.h"
#include "state.h"
#include "x86_64.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { STACK_SIZE = 64 * 1024, SIGNALS = 64, TIMER_SLACK_NS = 50000 /* the kernel's default */, FDS_MOST = 1 << 20 };
enum { BY_PIDFD = 3 }; /* P_PIDFD, which older headers lack */

int64_t arch_clone_(uint64_t flags, void *stack_top, int *pidfd, void (*fn)(void *), void *arg);

/* What the two processes share. */
struct launch {
    const struct arch_exec *exec;
    char *const *env;
    int report; /* where the child writes `failed` if its memory is a copy; -1: it is not */
    struct failed {
        const char *step;
        int error;
        bool running;
    } failed;
};

/* ---- in the child: raw system calls only ---------------------------------------------------------------------- */

#define IN_CHILD ARCH_NOT_INSTRUMENTED __attribute__((noinline, no_sanitize_address))
#define CALL(number, a, b, c, d) arch_raw_call((number), (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d))

IN_CHILD static void give_up(struct launch *launch, const char *step, int64_t error)
{
    launch->failed.step = step;
    launch->failed.error = (int)error;
    if (launch->report >= 0)
        (void)CALL(SYS_write, launch->report, (uintptr_t)&launch->failed, sizeof launch->failed, 0);
    for (;;)
        (void)CALL(SYS_exit_group, 127, 0, 0, 0);
}

IN_CHILD static void check(struct launch *launch, const char *step, int64_t result)
{
    if (result < 0)
        give_up(launch, step, result);
}

IN_CHILD static void lead(struct launch *launch)
{
    const struct arch_exec *exec = launch->exec;
    if (exec->group == ARCH_EXEC_LEADS_SESSION)
        check(launch, "leading a session", CALL(SYS_setsid, 0, 0, 0, 0));
    else if (exec->group == ARCH_EXEC_LEADS_GROUP)
        check(launch, "leading a process group", CALL(SYS_setpgid, 0, 0, 0, 0));
}

IN_CHILD static void set_limits(struct launch *launch)
{
    const struct arch_exec *exec = launch->exec;
    if (exec->nice) {
        int64_t now = 20 - CALL(SYS_getpriority, PRIO_PROCESS, 0, 0, 0), nice = now + exec->nice;
        nice = nice > 19 ? 19 : nice < -20 ? -20 : nice;
        check(launch, "setting the nice value", CALL(SYS_setpriority, PRIO_PROCESS, 0, nice, 0));
    }
    for (size_t i = 0; i < exec->limit_count; i++) {
        uint64_t pair[2] = {exec->limits[i].soft, exec->limits[i].hard};
        check(launch, "setting a resource limit", CALL(SYS_prlimit64, 0, exec->limits[i].resource, (uintptr_t)pair, 0));
    }
    if (exec->mask >= 0)
        (void)CALL(SYS_umask, exec->mask, 0, 0, 0);
}

/* What the threads of the library have set for themselves. */
IN_CHILD static void leave_thread(void)
{
    struct arch_cpus *cpus = atomic_load_explicit(&arch_state.cpus, memory_order_acquire); /* [PB1] */
    if (cpus)
        (void)CALL(SYS_sched_setaffinity, 0, cpus->size, (uintptr_t)cpus->set, 0);
    (void)CALL(SYS_prctl, PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0);
}

IN_CHILD static void become(struct launch *launch)
{
    const struct arch_exec_user *user = launch->exec->user;
    if (!user)
        return;
    check(launch, "setting the supplementary groups", CALL(SYS_setgroups, user->count, (uintptr_t)user->groups, 0, 0));
    check(launch, "setting the group", CALL(SYS_setresgid, user->group, user->group, user->group, 0));
    check(launch, "setting the user", CALL(SYS_setresuid, user->user, user->user, user->user, 0));
}

/* Closes the descriptors of a listing of /proc/self/fd that are in the range, but the one of the folder. Returns
 * whether there were any. */
IN_CHILD static bool close_listed(const char *entries, int64_t size, int first, int last, int folder)
{
    bool found = false;
    for (int64_t at = 0; at < size;) {
        const struct dirent64 *entry = (const struct dirent64 *)(const void *)(entries + at);
        int number = 0;
        const char *digit = entry->d_name;
        for (; *digit >= '0' && *digit <= '9'; digit++)
            number = number * 10 + (*digit - '0');
        if (!*digit && number >= first && number <= last && number != folder) {
            found = true;
            (void)CALL(SYS_close, number, 0, 0, 0);
        }
        at += entry->d_reclen;
    }
    return found;
}

/* For a kernel before 5.9. */
IN_CHILD static void close_each(int first, int last)
{
    char entries[1024] __attribute__((aligned(8)));
    int64_t folder = CALL(SYS_openat, AT_FDCWD, (uintptr_t) "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    for (bool found = folder >= 0; found;) { /* closing may hide entries from a listing under way: list again */
        int64_t size;
        found = false;
        (void)CALL(SYS_lseek, folder, 0, SEEK_SET, 0);
        while ((size = CALL(SYS_getdents64, folder, (uintptr_t)entries, sizeof entries, 0)) > 0)
            found |= close_listed(entries, size, first, last, (int)folder);
    }
    if (folder >= 0)
        (void)CALL(SYS_close, folder, 0, 0, 0);
    for (int number = first; folder < 0 && number <= last && number < FDS_MOST; number++)
        (void)CALL(SYS_close, number, 0, 0, 0);
}

IN_CHILD static void close_between(int first, int last)
{
    if (first <= last && CALL(SYS_close_range, first, last, 0, 0) < 0)
        close_each(first, last);
}

/* The first number from `from` on that stays open, or INT_MAX. */
IN_CHILD static int next_kept(const struct launch *launch, int from)
{
    const struct arch_exec *exec = launch->exec;
    int next = launch->report >= from ? launch->report : INT_MAX;
    for (size_t i = 0; i < exec->fd_count; i++)
        if (exec->fds[i].moved >= 0 && exec->fds[i].number >= from && exec->fds[i].number < next)
            next = exec->fds[i].number;
    return next;
}

IN_CHILD static void close_others(const struct launch *launch)
{
    for (int from = 0, next; from != INT_MAX; from = next == INT_MAX ? next : next + 1) {
        next = next_kept(launch, from);
        close_between(from, next - (next != INT_MAX));
    }
}

/* Programs expect pipes that block. The mode belongs to the open file, which the caller uses too: the pipe is opened
 * once more. The open itself must not block, as that of a named pipe without another side would. Without /proc the pipe
 * stays as it is. */
IN_CHILD static int unblocked(int fd)
{
    struct stat status;
    char path[32] = "/proc/self/fd/";
    int64_t flags = CALL(SYS_fcntl, fd, F_GETFL, 0, 0);
    if (flags < 0 || !(flags & O_NONBLOCK) || CALL(SYS_fstat, fd, (uintptr_t)&status, 0, 0) < 0 ||
        !S_ISFIFO(status.st_mode))
        return fd;
    int length = 14, digits = 1;
    for (int rest = fd; rest >= 10; rest /= 10)
        digits++;
    for (int rest = fd, i = digits; i > 0; rest /= 10)
        path[length + --i] = (char)('0' + rest % 10);
    int64_t own = CALL(SYS_openat, AT_FDCWD, (uintptr_t)path, (flags & O_ACCMODE) | O_NONBLOCK | O_CLOEXEC, 0);
    return own < 0 || CALL(SYS_fcntl, own, F_SETFL, flags & ~(int64_t)O_NONBLOCK, 0) < 0 ? fd : (int)own;
}

/* A number for the source that is not below `top`, or a negated errno code. */
IN_CHILD static int move_source(int source, int top)
{
    return (int)CALL(SYS_fcntl, unblocked(source), F_DUPFD_CLOEXEC, top, 0);
}

/* Each source is moved above all numbers first, so that no number is taken by a source that is still needed. */
IN_CHILD static void place_descriptors(struct launch *launch)
{
    const struct arch_exec *exec = launch->exec;
    int top = 3;
    for (size_t i = 0; i < exec->fd_count; i++)
        if (exec->fds[i].number >= top)
            top = exec->fds[i].number + 1;
    if (launch->report >= 0) {
        launch->report = (int)CALL(SYS_fcntl, launch->report, F_DUPFD_CLOEXEC, top, 0);
        check(launch, "passing a descriptor", launch->report);
    }
    for (size_t i = 0; i < exec->fd_count; i++) {
        struct arch_exec_fd *fd = &exec->fds[i];
        fd->moved = move_source(fd->source, top);
        if (fd->moved != -EBADF || !fd->inherited)
            check(launch, "passing a descriptor", fd->moved);
    }
    for (size_t i = 0; i < exec->fd_count; i++)
        if (exec->fds[i].moved >= 0)
            check(launch, "passing a descriptor", CALL(SYS_dup3, exec->fds[i].moved, exec->fds[i].number, 0, 0));
    close_others(launch);
}

/* Ignoring a signal drops it if it is pending: one that suspends must not suspend the child, for which a thread of this
 * process waits. */
IN_CHILD static void reset_signals(void)
{
    struct {
        uint64_t handler, flags, restorer, mask;
    } usual = {(uintptr_t)SIG_DFL, 0, 0, 0}, ignored = {(uintptr_t)SIG_IGN, 0, 0, 0};
    for (int signal = 1; signal <= SIGNALS; signal++) {
        if (signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU)
            (void)CALL(SYS_rt_sigaction, signal, (uintptr_t)&ignored, 0, sizeof usual.mask);
        (void)CALL(SYS_rt_sigaction, signal, (uintptr_t)&usual, 0, sizeof usual.mask);
    }
    (void)CALL(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)&usual.mask, 0, sizeof usual.mask);
}

/* Whether the next file is tried after this error, as a shell does. */
IN_CHILD static bool may_be_elsewhere(int64_t error)
{
    static const int errors[] = {ENOENT, ENOTDIR, EACCES, ESTALE, ENODEV, ETIMEDOUT};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (error == -errors[i])
            return true;
    return false;
}

IN_CHILD static void run_program(struct launch *launch)
{
    const struct arch_exec *exec = launch->exec;
    int64_t error = -ENOENT;
    bool refused = false;
    for (const char *const *file = exec->files; *file; file++) {
        error = CALL(SYS_execve, (uintptr_t)*file, (uintptr_t)exec->argv, (uintptr_t)launch->env, 0);
        if (!may_be_elsewhere(error))
            break;
        refused |= error == -EACCES;
    }
    launch->failed.running = true;
    give_up(launch, "running the program", refused && may_be_elsewhere(error) ? -EACCES : error);
}

IN_CHILD static void in_child(void *arg)
{
    struct launch *launch = arg;
    const struct arch_exec *exec = launch->exec;
    lead(launch);
    place_descriptors(launch);
    leave_thread();
    set_limits(launch);
    if (exec->terminal)
        check(launch, "setting the controlling terminal", CALL(SYS_ioctl, STDIN_FILENO, TIOCSCTTY, 0, 0));
    become(launch);
    if (exec->directory)
        check(launch, "changing the directory", CALL(SYS_chdir, (uintptr_t)exec->directory, 0, 0, 0));
    reset_signals();
    run_program(launch);
}

/* ---- in the parent -------------------------------------------------------------------------------------------- */

/* Valgrind makes a fork of each start: the child has a copy of the memory, and the parent does not wait for it. */
static bool runs_valgrind(void)
{
    return arch_valgrind(ARCH_VALGRIND_RUNS, 0, 0) != 0;
}

/* Whether the child gets a copy of the memory. */
static bool memory_is_copied(const struct arch_exec *exec)
{
    return exec->user || runs_valgrind();
}

/* Kernels before 5.4 can't wait for a process descriptor, and the oldest make none. */
static bool kernel_is_old(void)
{
    siginfo_t info;
    return syscall(SYS_waitid, BY_PIDFD, INT_MAX, &info, WEXITED | WNOHANG, NULL) < 0 && errno == EINVAL;
}

/* Returns a stack for the child. */
static int make_stack(char **out)
{
    char *at = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (at == MAP_FAILED)
        return -errno;
    *out = at;
    return 0;
}

/* pthread_sigmask would leave out the signals of the C library. */
static int64_t clone_child(struct launch *launch, char *stack, int *pidfd)
{
    const uint64_t all = UINT64_MAX;
    uint64_t before = 0;
    uint64_t sharing = memory_is_copied(launch->exec) ? 0 : CLONE_VM;
    (void)arch_raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)&all, (uintptr_t)&before, sizeof all);
    int64_t pid =
        arch_clone_(sharing | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, stack + STACK_SIZE, pidfd, in_child, launch);
    (void)arch_raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)&before, 0, sizeof before);
    return pid;
}

/* The child ends, and its number is its own until then. */
static void bury(int64_t child, int pidfd)
{
    siginfo_t info;
    while (syscall(SYS_waitid, P_PID, child, &info, WEXITED, NULL) < 0 && errno == EINTR)
        ;
    (void)close(pidfd);
}

/* What a child with a copy of the memory has reported. It has written that, if anything, when the parent goes on. The
 * end of the pipe need not come then: a fork of another thread may hold it. */
static void read_report(int fd, struct failed *failed)
{
    ssize_t got;
    while ((got = read(fd, failed, sizeof *failed)) < 0 && errno == EINTR)
        ;
    if (got != sizeof *failed)
        failed->error = 0;
}

static int64_t clone_and_hear(struct launch *launch, char *stack, int *pidfd)
{
    int report[2];
    if (!memory_is_copied(launch->exec))
        return clone_child(launch, stack, pidfd);
    if (pipe2(report, O_CLOEXEC) < 0)
        return -errno;
    launch->report = report[1];
    if (!runs_valgrind() && fcntl(report[0], F_SETFL, O_NONBLOCK) < 0) {
        int error = -errno;
        (void)close(report[0]);
        (void)close(report[1]);
        return error;
    }
    int64_t child = clone_child(launch, stack, pidfd);
    (void)close(report[1]);
    if (child > 0)
        read_report(report[0], &launch->failed);
    (void)close(report[0]);
    return child;
}

int arch_exec(const struct arch_exec *exec, int *pid, int *pidfd, struct arch_exec_failure *failure)
{
    char *stack = NULL;
    struct launch launch = {
        .exec = exec, .env = exec->env ? (char *const *)(uintptr_t)exec->env : environ, .report = -1};
    *failure = (struct arch_exec_failure){.step = "starting a process"};
    int error = kernel_is_old() ? -ENOSYS : make_stack(&stack);
    if (error)
        return error;
    int64_t child = clone_and_hear(&launch, stack, pidfd);
    (void)munmap(stack, STACK_SIZE);
    if (child < 0)
        return (int)child;
    if (launch.failed.error) {
        *failure = (struct arch_exec_failure){launch.failed.step, launch.failed.running};
        bury(child, *pidfd);
        return launch.failed.error;
    }
    *pid = (int)child;
    int twin = *pidfd > STDERR_FILENO ? -1 : arch_fd_twin(*pidfd);
    if (twin >= 0) { /* otherwise it keeps its number, or there is no other */
        (void)close(*pidfd);
        *pidfd = twin;
    }
    return 0;
}

static int64_t time_of(struct timeval time)
{
    return ((int64_t)time.tv_sec * 1000000 + time.tv_usec) * 1000;
}

/* The descriptor may have been closed by code that closes all, or the call forbidden: the number is the child's until
 * it is reaped. */
static long wait_without_waiting(int pid, int pidfd, siginfo_t *info, int options, struct rusage *usage)
{
    long got;
    int by = BY_PIDFD, id = pidfd;
    info->si_pid = 0;
    while ((got = syscall(SYS_waitid, by, id, info, WEXITED | WNOHANG | options, usage)) < 0) {
        if (errno != EINTR && (errno == ECHILD || by == P_PID))
            return -errno;
        if (errno != EINTR) {
            by = P_PID;
            id = pid;
        }
    }
    return got;
}

int arch_exec_reap(int pid, int pidfd, struct arch_exec_end *end)
{
    siginfo_t info;
    struct rusage usage;
    long got = wait_without_waiting(pid, pidfd, &info, 0, &usage);
    if (got < 0)
        return got == -ECHILD ? -ECHILD : -EAGAIN;
    if (!info.si_pid)
        return -EAGAIN;
    bool exited = info.si_code == CLD_EXITED;
    *end = (struct arch_exec_end){.code = exited ? info.si_status : -1,
                                  .signal = exited ? 0 : info.si_status,
                                  .dumped_core = info.si_code == CLD_DUMPED,
                                  .user_ns = time_of(usage.ru_utime),
                                  .system_ns = time_of(usage.ru_stime),
                                  .peak_bytes = (uint64_t)usage.ru_maxrss * 1024};
    return 0;
}

/* Whether the status is still there: so long the numbers of the process and of its group are not used again. */
static bool is_ours(int pid, int pidfd)
{
    siginfo_t info;
    struct rusage usage;
    return wait_without_waiting(pid, pidfd, &info, WNOWAIT, &usage) != -ECHILD;
}

bool arch_exec_has_ended(int pid, int pidfd)
{
    siginfo_t info;
    struct rusage usage;
    return wait_without_waiting(pid, pidfd, &info, WNOWAIT, &usage) == -ECHILD || info.si_pid;
}

int arch_exec_signal(int pid, int pidfd, int signal)
{
    if (syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0)
        return 0;
    if (errno == ESRCH || errno == EINVAL || !is_ours(pid, pidfd))
        return -errno;
    return kill(pid, signal) < 0 ? -errno : 0;
}

/* The process may have left its group, or may be the only one of the group that the signal does not reach. A signal
 * that suspends, continues or kills does the same if it comes twice. */
void arch_exec_signal_group(int pid, int pidfd, int signal)
{
    bool led = is_ours(pid, pidfd) && kill(-pid, signal) == 0;
    if (!led || signal == SIGKILL || signal == SIGCONT || getpgid(pid) != pid)
        (void)arch_exec_signal(pid, pidfd, signal);
}

const char *arch_exec_path(void)
{
    const char *path = arch_env("PATH");
    return path ? path : "/usr/local/bin:/usr/bin:/bin";
}

int arch_exec_terminal(int fds[2])
{
    const int unlocked = 0;
    int master = arch_fd_own(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (master < 0)
        return master;
    int other = ioctl(master, TIOCSPTLCK, &unlocked) < 0
                    ? -errno
                    : arch_fd_own(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (other < 0) {
        (void)close(master);
        return other;
    }
    fds[0] = master;
    fds[1] = other;
    return 0;
}

int arch_exec_pipe(int fds[2], int ours)
{
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    int theirs = arch_fd_own(fds[1 - ours]), own = arch_fd_own(fds[ours]);
    int error = own < 0 ? own : theirs < 0 ? theirs : fcntl(own, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    fds[ours] = own;
    fds[1 - ours] = theirs;
    for (int i = 0; error && i < 2; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    return error;
}

int arch_exec_null(void)
{
    return arch_fd_own(open("/dev/null", O_RDWR | O_CLOEXEC));
}
