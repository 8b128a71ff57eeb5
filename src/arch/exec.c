/*
 * Child processes that run another program: the parent's half. The child's is exec_child.c.
 *
 * The child shares this process's memory until it runs the program (CLONE_VM), and the calling thread waits until then
 * (CLONE_VFORK): a start takes the same time however much memory the process has. A child that changes its user gets a
 * copy of the memory instead: the kernel makes memory whose user changes unreadable for debuggers, also in the process
 * that shares it. The child has a stack of its own.
 *
 * No signal is set for the death of this process (PR_SET_PDEATHSIG): the kernel sends it when the thread ends that has
 * started the child, and threads of a pool come and go.
 */
#include "exec.h"
#include "san.h"
#include "x86_64.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { STACK_SIZE = 64 * 1024 };
enum { BY_PIDFD = 3 }; /* P_PIDFD, which older headers lack */

int64_t arch_clone_(uint64_t flags, void *stack_top, int *pidfd, void (*fn)(void *), void *arg);

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
static int64_t clone_child(struct exec_launch *launch, char *stack, int *pidfd)
{
    const uint64_t all = UINT64_MAX;
    uint64_t before = 0;
    uint64_t sharing = memory_is_copied(launch->exec) ? 0 : CLONE_VM;
    (void)arch_raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)&all, (uintptr_t)&before, sizeof all);
    int64_t pid =
        arch_clone_(sharing | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, stack + STACK_SIZE, pidfd, exec_in_child, launch);
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
static void read_report(int fd, struct arch_exec_failed *failed)
{
    ssize_t got;
    while ((got = read(fd, failed, sizeof *failed)) < 0 && errno == EINTR)
        ;
    if (got != sizeof *failed)
        failed->error = 0;
}

static int64_t clone_and_hear(struct exec_launch *launch, char *stack, int *pidfd)
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

/* Returns 0 or a negated errno code. *buried: the number of a child that has ended, and has been waited for; 0: none.
 */
static int launch_child(const struct arch_exec *exec, struct arch_child *child, struct arch_exec_failed *failed,
                        int *buried)
{
    char *stack = NULL;
    struct exec_launch launch = {
        .exec = exec, .env = exec->env ? (char *const *)(uintptr_t)exec->env : environ, .report = -1};
    *failed = (struct arch_exec_failed){.step = "starting a process", .object = ARCH_EXEC_FILE};
    int error = kernel_is_old() ? -ENOSYS : make_stack(&stack);
    if (error)
        return error;
    int64_t pid = clone_and_hear(&launch, stack, &child->pidfd);
    (void)munmap(stack, STACK_SIZE);
    if (pid < 0)
        return (int)pid;
    if (launch.failed.error) {
        *failed = launch.failed;
        bury(pid, child->pidfd);
        *buried = (int)pid;
        return launch.failed.error;
    }
    child->pid = (int)pid;
    return 0;
}

int arch_exec(const struct arch_exec *exec, struct arch_child *child, struct arch_exec_failed *failed)
{
    int buried = 0;
    child->pid = 0;
    child_starts(child);
    int error = launch_child(exec, child, failed, &buried);
    child_started(child, buried);
    if (error)
        return error;
    int twin = child->pidfd > STDERR_FILENO ? -1 : arch_fd_twin(child->pidfd);
    if (twin >= 0) { /* otherwise it keeps its number, or there is no other */
        (void)close(child->pidfd);
        child->pidfd = twin;
    }
    return 0;
}

/* The descriptor may have been closed by code that closes all, or the call forbidden: the number is the child's until
 * it is reaped. */
static long wait_without_waiting(const struct arch_child *child, siginfo_t *info, int options, struct rusage *usage)
{
    long got;
    int by = BY_PIDFD, id = child->pidfd;
    info->si_pid = 0;
    while ((got = syscall(SYS_waitid, by, id, info, WEXITED | WNOHANG | options, usage)) < 0) {
        if (errno != EINTR && (errno == ECHILD || by == P_PID))
            return -errno;
        if (errno != EINTR) {
            by = P_PID;
            id = child->pid;
        }
    }
    if (info->si_code == CLD_TRAPPED) /* a thread of this process follows the child, which gets such reports too */
        info->si_pid = 0;
    return got;
}

static int take(const struct arch_child *child, struct arch_exec_end *end)
{
    siginfo_t info;
    struct rusage usage;
    long got = wait_without_waiting(child, &info, WNOWAIT, &usage); /* a report for a debugger stays the debugger's */
    if (got >= 0 && info.si_pid)
        got = wait_without_waiting(child, &info, 0, &usage);
    if (got < 0)
        return got == -ECHILD ? -ECHILD : -EAGAIN;
    if (!info.si_pid)
        return -EAGAIN;
    child_end(end, &info, &usage);
    return 0;
}

int arch_exec_reap(struct arch_child *child, struct arch_exec_end *end)
{
    return child_take(child, take, end);
}

/* Whether the status is still there: so long the numbers of the process and of its group are not used again. */
static bool is_ours(const struct arch_child *child)
{
    siginfo_t info;
    struct rusage usage;
    return wait_without_waiting(child, &info, WNOWAIT, &usage) != -ECHILD;
}

bool arch_exec_has_ended(const struct arch_child *child)
{
    siginfo_t info;
    struct rusage usage;
    return wait_without_waiting(child, &info, WNOWAIT, &usage) == -ECHILD || info.si_pid;
}

int arch_exec_signal(const struct arch_child *child, int signal)
{
    if (syscall(SYS_pidfd_send_signal, child->pidfd, signal, NULL, 0) == 0)
        return 0;
    if (errno == ESRCH || errno == EINVAL || !is_ours(child))
        return -errno;
    return kill(child->pid, signal) < 0 ? -errno : 0;
}

/* The process may have left its group, or may be the only one of the group that the signal does not reach. A signal
 * that suspends, continues or kills does the same if it comes twice. */
int arch_exec_signal_group(const struct arch_child *child, int signal)
{
    int error = 0;
    bool led = is_ours(child) && kill(-child->pid, signal) == 0;
    if (!led || signal == SIGKILL || signal == SIGCONT || getpgid(child->pid) != child->pid)
        error = arch_exec_signal(child, signal);
    return led ? 0 : error;
}

/* It follows the name, which is in brackets and may contain some. */
char arch_exec_state(int pid)
{
    char text[120];
    snprintf(text, sizeof text, "/proc/%d/stat", pid);
    int fd = arch_fd_own(open(text, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *bracket = strrchr(text, ')');
    return (char)(bracket && bracket[1] ? bracket[2] : 0);
}

const char *arch_exec_path(void)
{
    const char *path = arch_env("PATH");
    return path ? path : "/usr/local/bin:/usr/bin:/bin";
}

const char *const *arch_exec_environment(void)
{
    static const char *const none[] = {NULL};
    return environ ? (const char *const *)environ : none; /* clearenv makes it NULL */
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
