/*
 * The children of this OS process: those that arch_exec has started, and the ends of all others.
 *
 * The system reports ended children in an order of its own: a wait for any child returns the first one whose status has
 * not been taken, and hides the others behind it. So the reaper looks at the first one without taking its status. If
 * arch_exec has started it, its keeper takes the status soon, and the reaper is woken then.
 *
 * PARTIES   starters (arch_exec), keepers (arch_exec_reap), one reaper at most.
 * STATE     of a child of arch_exec: STARTING (in `starting`, by a serial number), KNOWN (in `known`, by its pid),
 *           GONE. The reaper has `waits` set while it waits for a starter or a keeper.
 * OWNERSHIP all under the process's lock. The reaper is closed before its watch is.
 * INVARIANTS [RP1] a child is in one of the trees from before it exists until its status has been taken: the keeper
 *           takes the status and removes the child under the lock. So the reaper never takes a keeper's status. [RP2]
 *           this process does not know the number of a child before arch_exec has returned from its clone. A child
 *           that has ended may be that of any start that had begun when the reaper first saw it, and of no later one:
 *           the reaper waits until those starts have returned. [RP3] a party that removes a child from a tree wakes
 *           the reaper if it waits. So the reaper neither spins nor misses an end. [RP4] the reaper takes a status
 *           after it has handed the end on, and nothing suspends it between the two. So an end is handed on once,
 *           however the reaper is interrupted.
 * PROGRESS  the reaper waits for starts that run, and for keepers of processes that have ended.
 * NOT DONE  taking a status on behalf of a keeper, which signals the group of its process before it takes the status
 *           ([PC1] of src/io/process.h). The list of children in /proc: some kernels lack it. Exit signals other than
 *           SIGCHLD, which hide a child from waits for any: execve sets them back.
 * TESTED BY tests/spec/reap.c.
 */
#include "exec.h"
#include "state.h"

#include <errno.h>
#include <linux/wait.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A raw call: it returns the resources, too. A child that a thread of this process follows, as a debugger, also has
 * reports that are no ends. */
static int wait_for(int by, int pid, int options, siginfo_t *info, struct rusage *usage)
{
    info->si_pid = 0;
    while (syscall(SYS_waitid, by, pid, info, WEXITED | WNOHANG | options, usage) < 0)
        if (errno != EINTR)
            return -errno;
    return info->si_pid && info->si_code != CLD_TRAPPED ? 0 : -EAGAIN;
}

static int64_t time_of(struct timeval time)
{
    return ((int64_t)time.tv_sec * 1000000 + time.tv_usec) * 1000;
}

void child_end(struct arch_exec_end *end, const siginfo_t *info, const struct rusage *usage)
{
    bool exited = info->si_code == CLD_EXITED;
    *end = (struct arch_exec_end){.code = exited ? info->si_status : -1,
                                  .signal = exited ? 0 : info->si_status,
                                  .dumped_core = info->si_code == CLD_DUMPED,
                                  .user_ns = time_of(usage->ru_utime),
                                  .system_ns = time_of(usage->ru_stime),
                                  .peak_bytes = (uint64_t)usage->ru_maxrss * 1024};
}

/* ---- children of arch_exec -------------------------------------------------------------------------------- */

/* Under the lock. */
static void wake_reaper(void)
{
    struct arch_reaping *reaping = &arch_state.reaping;
    if (reaping->waits)
        arch_watch_raise(reaping->watch, SIGCHLD); /* [RP3] */
    reaping->waits = false;
}

void child_starts(struct arch_child *child)
{
    arch_process_lock();
    index_add(&arch_state.reaping.starting, &child->node, ++arch_state.reaping.starts); /* [RP1] */
    arch_process_unlock();
}

void child_started(struct arch_child *child, int buried)
{
    struct arch_reaping *reaping = &arch_state.reaping;
    arch_process_lock();
    index_remove(&reaping->starting, &child->node);
    if (child->pid > 0)
        index_add(&reaping->known, &child->node, (uint64_t)child->pid); /* [RP1] */
    if (buried && reaping->seen == buried)
        reaping->seen = 0; /* the number may be that of another process from now on */
    wake_reaper();
    arch_process_unlock();
}

int child_take(struct arch_child *child, int (*take)(const struct arch_child *child, struct arch_exec_end *end),
               struct arch_exec_end *end)
{
    arch_process_lock();
    int error = take(child, end);
    if (error != -EAGAIN) {
        index_remove(&arch_state.reaping.known, &child->node); /* [RP1] */
        wake_reaper();
    }
    arch_process_unlock();
    return error;
}

/* ---- the reaper -------------------------------------------------------------------------------------------- */

int arch_reaper_open(struct arch_watch *watch, bool subreaper)
{
    struct arch_reaping *reaping = &arch_state.reaping;
    arch_process_lock();
    int error = reaping->watch ? -EBUSY : 0, before = 0;
    if (!error && subreaper)
        error = prctl(PR_GET_CHILD_SUBREAPER, &before, 0, 0, 0) < 0 ? -errno : 0;
    if (!error && subreaper && !before)
        error = prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0, 0, 0) < 0 ? -errno : 0;
    if (!error) {
        reaping->watch = watch;
        reaping->adopts = subreaper && !before;
        reaping->waits = false;
        reaping->seen = 0;
    }
    arch_process_unlock();
    return error;
}

void arch_reaper_close(void)
{
    struct arch_reaping *reaping = &arch_state.reaping;
    arch_process_lock();
    if (reaping->adopts)
        (void)prctl(PR_SET_CHILD_SUBREAPER, 0UL, 0, 0, 0);
    reaping->watch = NULL;
    reaping->waits = false;
    arch_process_unlock();
}

/* Under the lock: whether the child may be one of arch_exec's. */
static bool may_be_known(int pid)
{
    struct arch_reaping *reaping = &arch_state.reaping;
    if (index_find(&reaping->known, (uint64_t)pid)) /* [RP1] */
        return true;
    if (reaping->seen != pid) {
        reaping->seen = pid;
        reaping->seen_after = reaping->starts;
    }
    const struct index_node *oldest = index_first(&reaping->starting);
    return oldest && oldest->key <= reaping->seen_after; /* [RP2] */
}

int arch_reaper_find(int *pid, struct arch_exec_end *end)
{
    siginfo_t info;
    struct rusage usage;
    arch_process_lock();
    int error = wait_for(P_ALL, 0, WNOWAIT, &info, &usage);
    if (!error && may_be_known(info.si_pid)) {
        arch_state.reaping.waits = true; /* [RP3] */
        error = -EAGAIN;
    }
    arch_process_unlock();
    if (error)
        return -EAGAIN;
    *pid = info.si_pid;
    child_end(end, &info, &usage);
    return 0;
}

void arch_reaper_take(int pid)
{
    siginfo_t info;
    struct rusage usage;
    arch_process_lock();
    if (!index_find(&arch_state.reaping.known, (uint64_t)pid) && /* the program may have taken the status */
        wait_for(P_PID, pid, WNOWAIT, &info, &usage) == 0)
        (void)wait_for(P_PID, pid, 0, &info, &usage);
    arch_state.reaping.seen = 0;
    arch_process_unlock();
}
