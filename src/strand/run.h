/*
 * A run: the making and ending of a sub-process.
 */
#ifndef STRAND_RUN_H
#define STRAND_RUN_H

#include "core.h"

/* So that it can take and give back the run's memory. */
void worker_open(struct worker *worker, struct runtime *runtime);
/* The record of a thread for one that is none of the run's, but looks at it: zeroed before. */
void worker_open_outside(struct worker *worker, struct runtime *runtime);

/* A strand of the library's own, in an open scope that stays open, which inherits nothing. It is not runnable yet: the
 * caller launches it. pin: to the thread of that index; -1: to none. alone: it may block its thread, so it shares no
 * fibre. Any thread of the run, in no strand too. */
int spawn_own(struct thread *thread, struct scope *scope, struct pool *pool, int pin, bool alone, strand_fn *fn,
              void *arg, struct cb **out);
void spawn_launch(struct thread *thread, struct cb *c);

/* sched_ops.serve */
void serve_strands(struct thread *thread);
/* The same for those of an opened fibre. */
struct opened;
void serve_opened(struct opened *opened, void *above);

/* For arch_on_exit: pthread_exit by a strand. */
__attribute__((noreturn)) void serve_thread_exits(void);

/* The strands that run on one stack, one after the other, share one try block (try.c), which is set up once: so the end
 * of the stack is never reached. */
struct serving {
    struct strand_try_ try;
};

/* What this layer keeps in an opened fibre. */
struct hosting {
    struct serving serving;
    /* For people; written before it has strands. */
    char name[32];
    uint32_t number; /* in its group */
};

static inline struct hosting *hosting_of(struct opened *opened)
{
    return (struct hosting *)(void *)opened->above;
}

#endif
