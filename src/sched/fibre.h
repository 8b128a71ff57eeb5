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

struct fibre {
    struct member *active; /* whose stack lies in this stack */
    /* Where it goes on. NULL while it runs and until the switch away from it is complete: the thread that runs it next
     * waits for that (docs/protocols/switch.md). Before the first run: meaningless, stack is NULL. */
    _Atomic(arch_context) context;
    struct stack *stack;
    struct thread *home;       /* ran it last; NULL: its strand has not begun */
    _Atomic(struct runq *) in; /* written under that queue's lock */
    struct link queued;        /* in the run queue `in` */
    struct pool *pool;
    size_t stack_size;
    int32_t rank; /* for a scheduler of the user's */
    union {
        struct {
            bool shared; /* it is a struct shared_fibre's */
            bool pinned; /* to `home`, from the beginning to the end: pinned.h */
        };
        uint16_t odd; /* making it runnable has more to do */
    };
    bool started;        /* cxx means something */
    struct arch_cxx cxx; /* the state of C++ exceptions while it does not run */
    _Alignas(8) char own[OWN_SIZE];
    struct arch_san san;
};

#endif
