/*
 * A child process that runs another program: what its two halves share, exec.c in the parent and exec_child.c.
 */
#ifndef ARCH_EXEC_H
#define ARCH_EXEC_H

#include "arch.h"

#include <signal.h>
#include <sys/resource.h>

/* What the two processes share. */
struct exec_launch {
    const struct arch_exec *exec;
    char *const *env;
    int report; /* where the child writes `failed` if its memory is a copy; -1: it is not */
    struct arch_exec_failed failed;
};

/* Runs the program of a struct exec_launch in the child, or reports why not and ends the child. */
void exec_in_child(void *launch);

/* ---- reap.c ---- */

/* What waitid has reported. */
void child_end(struct arch_exec_end *end, const siginfo_t *info, const struct rusage *usage);
/* Before the clone. */
void child_starts(struct arch_child *child);
/* After it: child->pid is 0 if it failed. buried: the number of a child that could not run the program and has been
 * waited for; 0: none. */
void child_started(struct arch_child *child, int buried);
/* Calls `take`, which takes the status. Returns what it has returned; -EAGAIN: the status was not taken. */
int child_take(struct arch_child *child, int (*take)(const struct arch_child *child, struct arch_exec_end *end),
               struct arch_exec_end *end);

#endif
