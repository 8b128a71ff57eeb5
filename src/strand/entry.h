/*
 * The strands that run on a fibre, one after the other.
 */
#ifndef STRAND_ENTRY_H
#define STRAND_ENTRY_H

#include "core.h"

/* sched_ops.serve: run the strands of a private fibre. */
void entry_serve(struct thread *thread);
/* sched_ops.serve_shared: run the strands of a shared fibre. */
struct shared_fibre;
void entry_serve_shared(struct shared_fibre *shared, void *above);

/* For arch_on_exit: a strand has called pthread_exit. */
__attribute__((noreturn)) void entry_thread_exits(void);

/* The strands that run on one stack, one after the other, share one try block (try.c), which is set up once. It stops
 * every exception, so unwinding never reaches the end of the stack. */
struct serving {
    struct strand_try_ try;
};

/* This layer's part of a shared fibre. */
struct hosting {
    struct serving serving;
    char name[32];   /* diagnostics only; written before the fibre has strands */
    uint32_t number; /* in its group */
};

static inline struct hosting *hosting_of(struct shared_fibre *shared)
{
    return (struct hosting *)(void *)shared->above;
}

#endif
