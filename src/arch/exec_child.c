/*
 * The child that runs another program, up to the program. It may share the memory of its parent (exec.c), where other
 * threads go on: so it makes raw system calls only. The C library's functions take locks that another thread may hold,
 * write errno of the calling thread, and some of them (setuid) work on all threads of the process.
 *
 * All signals are blocked when the child begins. It sets each handler back before it unblocks signals: a handler of the
 * parent would work on the parent's memory.
 */
#include "exec.h"
#include "san.h"
#include "state.h"
#include "x86_64.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The most groups that are compared, and how the system shows a group that has no number in a user namespace: several
 * may look alike. */
enum { OWN_GROUPS_MOST = 256, UNMAPPED = 65534 };
enum { SIGNALS = 64, TIMER_SLACK_NS = 50000 /* the kernel's default */, FDS_MOST = 1 << 20 };

#define IN_CHILD ARCH_NOT_INSTRUMENTED __attribute__((noinline, no_sanitize_address))
#define CALL(number, a, b, c, d) arch_raw_call((number), (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d))

IN_CHILD static void give_up(struct exec_launch *launch, const char *step, enum arch_exec_object object, size_t index,
                             int64_t error)
{
    launch->failed.step = step;
    launch->failed.object = object;
    launch->failed.index = (int)index;
    launch->failed.error = (int)error;
    if (launch->report >= 0)
        (void)CALL(SYS_write, launch->report, (uintptr_t)&launch->failed, sizeof launch->failed, 0);
    for (;;)
        (void)CALL(SYS_exit_group, 127, 0, 0, 0);
}

IN_CHILD static void check_one(struct exec_launch *launch, const char *step, enum arch_exec_object object, size_t index,
                               int64_t result)
{
    if (result < 0)
        give_up(launch, step, object, index, result);
}

IN_CHILD static void check(struct exec_launch *launch, const char *step, enum arch_exec_object object, int64_t result)
{
    check_one(launch, step, object, 0, result);
}

IN_CHILD static void lead(struct exec_launch *launch)
{
    const struct arch_exec *exec = launch->exec;
    if (exec->group == ARCH_EXEC_LEADS_SESSION)
        check(launch, "leading a session", ARCH_EXEC_FILE, CALL(SYS_setsid, 0, 0, 0, 0));
    else if (exec->group == ARCH_EXEC_LEADS_GROUP)
        check(launch, "leading a process group", ARCH_EXEC_FILE, CALL(SYS_setpgid, 0, 0, 0, 0));
}

IN_CHILD static void set_limits(struct exec_launch *launch)
{
    const struct arch_exec *exec = launch->exec;
    if (exec->nice) {
        int64_t now = 20 - CALL(SYS_getpriority, PRIO_PROCESS, 0, 0, 0), nice = now + exec->nice;
        nice = nice > 19 ? 19 : nice < -20 ? -20 : nice;
        check(launch, "setting the nice value", ARCH_EXEC_NICE, CALL(SYS_setpriority, PRIO_PROCESS, 0, nice, 0));
    }
    for (size_t i = 0; i < exec->limit_count; i++) {
        uint64_t pair[2] = {exec->limits[i].soft, exec->limits[i].hard};
        check_one(launch, "setting a resource limit", ARCH_EXEC_LIMIT, i,
                  CALL(SYS_prlimit64, 0, exec->limits[i].resource, (uintptr_t)pair, 0));
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

/* A group without a number is among none. */
IN_CHILD static bool are_among(const uint32_t *some, size_t count, const uint32_t *groups, size_t most)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < most && groups[at] != some[i])
            at++;
        if (at == most || some[i] == UNMAPPED)
            return false;
    }
    return true;
}

/* Whether the process has these groups and no others. */
IN_CHILD static bool has_groups(const struct arch_exec_user *user)
{
    uint32_t own[OWN_GROUPS_MOST];
    int64_t count = CALL(SYS_getgroups, OWN_GROUPS_MOST, (uintptr_t)own, 0, 0);
    return count >= 0 && are_among(own, (size_t)count, user->groups, user->count) &&
           are_among(user->groups, user->count, own, (size_t)count);
}

/* A user namespace may forbid setgroups, as those of containers without root do: groups can't be taken away there. */
IN_CHILD static int64_t set_groups(const struct arch_exec_user *user)
{
    int64_t error = CALL(SYS_setgroups, user->count, (uintptr_t)user->groups, 0, 0);
    return error == -EPERM && has_groups(user) ? 0 : error;
}

IN_CHILD static void become(struct exec_launch *launch)
{
    const struct arch_exec_user *user = launch->exec->user;
    if (!user)
        return;
    check(launch, "setting the supplementary groups", ARCH_EXEC_GROUP_COUNT, set_groups(user));
    check(launch, "setting the group", ARCH_EXEC_GROUP_ID,
          CALL(SYS_setresgid, user->group, user->group, user->group, 0));
    check(launch, "setting the user", ARCH_EXEC_USER_ID, CALL(SYS_setresuid, user->user, user->user, user->user, 0));
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
IN_CHILD static int next_kept(const struct exec_launch *launch, int from)
{
    const struct arch_exec *exec = launch->exec;
    int next = launch->report >= from ? launch->report : INT_MAX;
    for (size_t i = 0; i < exec->fd_count; i++)
        if (exec->fds[i].moved >= 0 && exec->fds[i].number >= from && exec->fds[i].number < next)
            next = exec->fds[i].number;
    return next;
}

IN_CHILD static void close_others(const struct exec_launch *launch)
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
IN_CHILD static void place_descriptors(struct exec_launch *launch)
{
    static const char passing[] = "passing a descriptor";
    const struct arch_exec *exec = launch->exec;
    size_t highest = 0; /* that which RLIMIT_NOFILE may forbid */
    for (size_t i = 0; i < exec->fd_count; i++)
        if (exec->fds[i].number > exec->fds[highest].number)
            highest = i;
    int top = exec->fds[highest].number + 1;
    if (launch->report >= 0) {
        launch->report = (int)CALL(SYS_fcntl, launch->report, F_DUPFD_CLOEXEC, top, 0);
        check_one(launch, passing, ARCH_EXEC_FD, highest, launch->report);
    }
    for (size_t i = 0; i < exec->fd_count; i++) {
        struct arch_exec_fd *fd = &exec->fds[i];
        fd->moved = move_source(fd->source, top);
        if (fd->moved != -EBADF || !fd->inherited)
            check_one(launch, passing, ARCH_EXEC_FD, fd->moved == -EBADF ? i : highest, fd->moved);
    }
    for (size_t i = 0; i < exec->fd_count; i++)
        if (exec->fds[i].moved >= 0)
            check_one(launch, passing, ARCH_EXEC_FD, i, CALL(SYS_dup3, exec->fds[i].moved, exec->fds[i].number, 0, 0));
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

IN_CHILD static void run_program(struct exec_launch *launch)
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
    give_up(launch, "running the program", ARCH_EXEC_FILE, 0, refused && may_be_elsewhere(error) ? -EACCES : error);
}

IN_CHILD void exec_in_child(void *arg)
{
    struct exec_launch *launch = arg;
    const struct arch_exec *exec = launch->exec;
    lead(launch);
    place_descriptors(launch);
    leave_thread();
    set_limits(launch);
    if (exec->terminal)
        check(launch, "setting the controlling terminal", ARCH_EXEC_FILE,
              CALL(SYS_ioctl, STDIN_FILENO, TIOCSCTTY, 0, 0));
    become(launch);
    if (exec->directory)
        check(launch, "changing the directory", ARCH_EXEC_DIRECTORY,
              CALL(SYS_chdir, (uintptr_t)exec->directory, 0, 0, 0));
    reset_signals();
    run_program(launch);
}
