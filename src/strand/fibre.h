/*
 * Handles of shared fibres, and of groups of them. What a shared fibre is: src/sched/shared_fibre.h.
 */
#ifndef STRAND_FIBRE_H
#define STRAND_FIBRE_H

#include "core.h"

/* One or several; ends with a scope. Its fibres live on until their last strands have ended. */
struct fibres {
    _Atomic uint64_t word; /* as of a control block */
    void *link_[2];        /* the slab's */
    atomic_flag lock;      /* nobody's but OBJECT_LOCK's */
    struct shared_fibre **list;
    struct shared_fibre *one; /* list points here if it is the only one */
    uint32_t count;
    uint32_t stride;           /* from one that is looked at to the next: src/strand/fibre.c */
    _Atomic uint32_t turn;     /* which one is looked at first */
    _Atomic uint32_t emptiest; /* that was seen of a large group */
    char name[32];
    void *site; /* where it was opened */
    struct owned owned;
};
_Static_assert(sizeof(struct fibres) <= OBJECT_SIZE && offsetof(struct fibres, lock) == OBJECT_LOCK,
               "it is one of the run's objects");

/* For spawning: keeps it, until fibres_unref. Misuse if the handle is stale. */
struct fibres *fibres_ref(struct thread *thread, strand_fibre handle, const char *function);
void fibres_unref(struct thread *thread, struct fibres *fibres);
/* The one with the fewest strands of those that are known. */
struct shared_fibre *fibres_choose(struct fibres *fibres);

/* sched_ops.starved */
__attribute__((noreturn)) void guest_starved(struct member *member, size_t bytes);

#endif
