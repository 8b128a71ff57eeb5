/*
 * Handles of shared fibres and of groups of them. Shared fibres themselves: src/sched/shared_fibre.h.
 */
#ifndef STRAND_FIBRE_H
#define STRAND_FIBRE_H

#include "core.h"

/* One shared fibre or a group; the handle ends with a scope. The fibres live until their last strands have ended. */
struct fibres {
    _Atomic uint64_t word; /* as of a control block */
    void *link_[2];        /* the slab's */
    atomic_flag lock;      /* unused here, but OBJECT_LOCK requires it */
    struct shared_fibre **list;
    struct shared_fibre *one; /* `list` points here if there is only one fibre */
    uint32_t count;
    uint32_t stride;             /* from one examined fibre to the next: choose_among_many */
    _Atomic uint32_t next_index; /* round-robin index */
    _Atomic uint32_t emptiest;   /* of a large group: index of the fibre with the fewest strands seen so far */
    char name[32];
    void *site; /* where it was opened */
    struct owned owned;
};
_Static_assert(sizeof(struct fibres) <= OBJECT_SIZE && offsetof(struct fibres, lock) == OBJECT_LOCK,
               "it is one of the run's objects");

/* Returns the record with a reference, which fibres_unref releases. Misuse if the handle is stale. */
struct fibres *fibres_ref(struct thread *thread, strand_fibre handle, const char *function);
void fibres_unref(struct thread *thread, struct fibres *fibres);
/* Chooses a fibre for a new strand: one with few strands. */
struct shared_fibre *fibres_choose(struct fibres *fibres);

/* sched_ops.starved */
__attribute__((noreturn)) void fibre_guest_starved(struct member *member, size_t bytes);

#endif
