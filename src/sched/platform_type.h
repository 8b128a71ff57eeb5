/*
 * The interface of the second platform, which simulates the machine in seeded runs. Functions: platform.h.
 */
#ifndef SCHED_PLATFORM_TYPE_H
#define SCHED_PLATFORM_TYPE_H

#include "../arch/arch.h"
#include "../base/atomic.h"

struct platform_fds;
struct subprocess;
struct thread;

/* A plain thread, the system's or a played one. */
struct platform_thread {
    arch_thread os;
    void *played;
};

/* The second platform's replacement for the machine. Each function is called on the thread that it concerns. */
struct platform {
    int64_t (*now)(struct subprocess *sub);
    /* The strand yields: any played thread may go on first. */
    void (*point)(struct thread *thread);
    /* As point, where an operation begins that may not suspend at all. where: the operation's address in the code.
     * Returns whether the platform wants a call for each such operation. */
    bool (*operation)(struct thread *thread, void *where);
    void (*relax)(struct thread *thread); /* called in a spin loop */
    void (*sleep)(struct thread *thread, int64_t deadline);
    void (*wake)(struct thread *thread);
    /* As arch_poller_wait, for played descriptors. */
    int (*poll)(struct thread *thread, struct arch_event *events, int most, int64_t deadline);
    /* Return a number in [0, n). choose: a choice of the scheduler's, with any result; chance: each is equally
     * likely. */
    uint32_t (*choose)(struct thread *thread, uint32_t n);
    uint32_t (*chance)(struct thread *thread, uint32_t n);
    bool (*refuses)(struct thread *thread);                   /* whether this request for memory must fail */
    int (*start)(struct thread *thread, void *(*fn)(void *)); /* as arch_thread_start; `play` runs the threads */
    void (*join)(struct thread *thread); /* as arch_thread_join, for a thread that is about to end */
    void (*play)(struct subprocess *sub);
    arch_context (*where)(struct thread *thread); /* where the thread stands; NULL: it runs */
    bool (*preempts)(struct subprocess *sub);     /* whether other threads run between two suspensions of this one */

    /* Plain threads, which have no struct thread, and the words that they sleep on: as arch_futex_wait and wake. */
    int (*thread_start)(struct subprocess *sub, void *(*fn)(void *), void *arg, void **played);
    void (*thread_join)(struct subprocess *sub, void *played);
    void (*word_wait)(struct subprocess *sub, const _Atomic uint32_t *word, uint32_t expected, int64_t deadline);
    void (*word_wake)(struct subprocess *sub, const _Atomic uint32_t *word, int threads);
    void (*plain_point)(struct subprocess *sub);  /* as point, on a plain thread */
    int (*plain_threads)(struct subprocess *sub); /* how many plain threads have not ended */

    void (*meet)(struct subprocess *sub, int fd); /* the run uses a descriptor of the system for the first time */
    const struct platform_fds *fds;               /* NULL: all descriptors are the system's */
};

#endif
