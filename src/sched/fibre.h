/*
 * A fibre: one execution stack, of one strand or of several (shared_fibre.h).
 */
#ifndef SCHED_FIBRE_H
#define SCHED_FIBRE_H

#include "../arch/arch.h"
#include "../base/atomic.h"
#include "../base/list.h"
#include "../stack/shared.h"
#include "member.h"

struct pool;
struct runq;
struct thread;

enum {
    FIBRE_SHARED = 1, /* the fibre is part of a struct shared_fibre */
    FIBRE_PINNED = 2  /* only the thread `home` runs the fibre, from its beginning to its end: pinned.h */
};

struct fibre {
    struct member *current; /* the strand that runs, or ran last */
    /* Where the fibre continues. NULL while it runs and until the switch away from it is complete: the thread that runs
     * it next waits for that (docs/protocols/switch.md). Without meaning before the first run, when stack is NULL. */
    _Atomic(arch_context) context;
    struct stack *stack;
    struct thread *home;       /* the thread that ran it last; NULL: its strand has not begun */
    _Atomic(struct runq *) in; /* the queue that has it; written under that queue's lock */
    struct link queued;        /* in the run queue `in` */
    struct pool *pool;
    size_t stack_size;
    int32_t rank;        /* for a user's scheduler */
    uint8_t slow_wake;   /* FIBRE_*: why a wake-up takes the slow path; set before the fibre is first runnable */
    bool started;        /* cxx is valid */
    struct arch_cxx cxx; /* the state of C++ exceptions while the fibre does not run */
    _Alignas(8) char own[OWN_SIZE];
    struct arch_san san;
};

OWN_INLINE bool fibre_is_shared(const struct fibre *fibre)
{
    return fibre->slow_wake & FIBRE_SHARED;
}

OWN_INLINE bool fibre_is_pinned(const struct fibre *fibre)
{
    return fibre->slow_wake & FIBRE_PINNED;
}

#endif
