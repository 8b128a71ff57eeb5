/*
 * A child process that runs another program: what its two halves share, exec.c in the parent and exec_child.c.
 */
#ifndef ARCH_EXEC_H
#define ARCH_EXEC_H

#include "arch.h"

/* What the two processes share. */
struct exec_launch {
    const struct arch_exec *exec;
    char *const *env;
    int report; /* where the child writes `failed` if its memory is a copy; -1: it is not */
    struct exec_failed {
        const char *step;
        int error;
    } failed;
};

/* Runs the program of a struct exec_launch in the child, or reports why not and ends the child. */
void exec_in_child(void *launch);

#endif
