/*
 * Handles of opened fibres, and of groups of them. What an opened fibre is: src/sched/opened.h.
 */
#ifndef STRAND_FIBRE_H
#define STRAND_FIBRE_H

#include "core.h"

/* One or several; ends with a scope. Its fibres live on until their last strands have ended. */
struct fibres {
    _Atomic uint64_t word; /* as of a control block */
    void *link_[2];        /* the slab's */
    atomic_flag lock;      /* nobody's but OBJECT_LOCK's */
    struct opened **list;
    struct opened *one; /* list points here if it is the only one */
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

/* For spawning: keeps it, until fibres_unpin. Misuse if the handle is stale. */
struct fibres *fibres_pin(struct thread *thread, strand_fibre handle, const char *function);
void fibres_unpin(struct thread *thread, struct fibres *fibres);
/* The one with the fewest strands of those that are known. */
struct opened *fibres_choose(struct fibres *fibres);

/* Whether an address lies in the stack of the opened fibre that the caller runs on. */
OWN_INLINE bool lies_on_shared_stack(struct thread *thread, const void *at)
{
    return UNLIKELY(thread->odd.opened) && opened_has(thread->current, at);
}

/* An address is about to be handed to others: it must not lie in the stack of the opened fibre that the caller runs on,
 * which is somebody else's while the caller is inactive. Misuse of `function`; what: "the argument", ... */
void must_not_escape_(struct cb *me, const void *at, const char *what, const char *function);
OWN_INLINE void must_not_escape(struct thread *thread, const void *at, const char *what, const char *function)
{
    if (UNLIKELY(lies_on_shared_stack(thread, at)))
        must_not_escape_(current_of(thread), at, what, function);
}

/* Debug builds: what is copied for others holds no such address either. Each word of it is looked at, what lies between
 * two members too. lock: given back before a misuse is told, in a run of several threads; or NULL. */
#ifdef STRAND_DEBUG_BUILD
void must_not_hold_address(struct thread *thread, const void *block, size_t size, atomic_flag *lock, const char *what,
                           const char *function);
#else
OWN_INLINE void must_not_hold_address(struct thread *thread, const void *block, size_t size, atomic_flag *lock,
                                      const char *what, const char *function)
{
    (void)thread, (void)block, (void)size, (void)lock, (void)what, (void)function;
}
#endif

/* The same of an object of the user's that others wait at, or are about to. A zeroed one is first seen where somebody
 * finds it taken: so this stands on the slow ways of the functions on it. O(1). */
void must_lie_elsewhere_(struct cb *me, const void *object, const char *noun, const char *function);
OWN_INLINE void must_lie_elsewhere(struct thread *thread, const void *object, const char *noun, const char *function)
{
    if (UNLIKELY(lies_on_shared_stack(thread, object)))
        must_lie_elsewhere_(current_of(thread), object, noun, function);
}

/* sched_ops.starved */
__attribute__((noreturn)) void guest_starved(struct member *member, size_t bytes);

#endif
