/*
 * Scopes: the anchored children, their failures, and leaving. Page: docs/protocols/scope.md.
 *
 * PARTIES   the owner; for scopes with flags also its children at their end, spawners and strands that hand off.
 * STATE     children (all that are anchored), ended (ended children in the order of their ends: all of a scope with
 *           flags; in a plain scope failed ones, and those that ended before or during a strand_scope_join), failures
 *           (the number of failed children in `ended`).
 * OWNERSHIP `children` of a plain scope belongs to the owner alone. `ended`, `failures`, and all of a scope with flags,
 *           belong to the holder of the lock. A child is in `children` until it is consumed or handed off.
 * INVARIANTS [C1] a scope's record outlives its children: the owner leaves only after the last child has ended. [C2] a
 *           child that fails raises its scope before its end can be seen. [C3] a plain scope's block is due while
 *           failures > 0. [C4] the owner consumes the children. A strand that spawns into an open service consumes
 *           children, too: those that have ended, have not failed and have no drop function. It consumes none once the
 *           scope is cancelled. An owner that leaves the scope cancels it first. Both parties take a child out of
 *           `ended` under the lock, so no child is consumed twice. The owner keeps no pointer to a child that it has
 *           not taken out. [C5] every child that has ended is in `ended`, once, if its scope has flags, or while its
 *           scope is joined.
 * ORDER OF LOCKS the run's lock of hand-offs (join.c), then ENDS_LOCK of a child, then its scope's lock; never two
 *           scopes' locks at once. An interrupter may wait for ENDS_LOCK of the child that a joiner waits for, whatever
 *           it holds: it locks nothing under that lock, and see [E7].
 * PROGRESS  the lock is held for a walk over the children at most. The owner waits for its children as long as they
 *           take. When it leaves the scope it waits for one child at a time: every end would have to change a count of
 *           living children.
 * NOT DONE  one locked list for all scopes: spawn and join in a plain scope would pay for it. Waking an owner in
 *           strand_scope_join at each end: a pool's throughput was a third lower. Counting the ends of all strands in
 *           their scopes: each spawn and join would pay. Hand-offs without one lock for the search and the move, or
 *           with locks along the way to the root: two hand-offs could disagree on their order, or make a cycle.
 *           Detached strands: the code that starts a strand has to say where it ends.
 * TESTED BY tests/models/scope.pml, tests/models/end.pml (a child's end), tests/models/handoff.pml,
 *           tests/models/interrupt.pml (the flag of a failed child's scope), tests/spec/scope_join.c,
 *           tests/spec/service.c.
 */
#ifndef STRAND_SCOPE_H
#define STRAND_SCOPE_H

#include "interrupt.h"

static inline void scope_lock(struct thread *thread, struct scope *scope)
{
    spin_lock_if_concurrent(&scope->lock, thread);
}

static inline void scope_unlock(struct thread *thread, struct scope *scope)
{
    spin_unlock_if_concurrent(&scope->lock, thread);
}

/* Only the owner touches `children` of a plain scope. */
static inline void scope_lock_children(struct thread *thread, struct scope *scope)
{
    if (scope->flags)
        scope_lock(thread, scope);
}

static inline void scope_unlock_children(struct thread *thread, struct scope *scope)
{
    if (scope->flags)
        scope_unlock(thread, scope);
}

/* Under the lock of the children. */
static inline void scope_anchor(struct scope *scope, struct cb *child)
{
    plain_store(&child->anchor, scope, memory_order_release); /* publishes its pool for is_topmost [PB1] */
    list_push_back(&scope->children, &child->sibling);
    scope->count++;
}

/* The log warns when a scope keeps this many ended children. */
enum { HOARD = 10000 };

/* Whether a plain scope has grown so much that scope_recount has to count its ended children again. */
static inline bool scope_is_large(const struct scope *scope)
{
    return !scope->flags && scope->recount_at && scope->count >= scope->recount_at;
}

/* Whether the owner joins a plain scope now: the ends of all its children are listed [C5]. */
static inline bool scope_is_followed(const struct scope *scope)
{
    return !scope->flags && !scope->recount_at;
}

/* Whether a child's failure waits to be fetched, and does not interrupt the owner. */
static inline bool scope_keeps_failures(const struct scope *scope)
{
    return scope->flags & (STRAND_COLLECT | STRAND_FIRST_WINS);
}

static inline bool scope_is_service(const struct scope *scope)
{
    return scope->flags & STRAND_SERVICE;
}

/* Called at the end of a child that failed or has ENDS_NOTIFY, under its ENDS_LOCK. */
void scope_child_ended(struct thread *thread, struct scope *scope, struct cb *child, bool failed, struct batch *batch);
/* Announces a hand-off to this open scope, which then stays open until scope_receive. Returns false if it is closed. */
bool scope_expect(struct thread *thread, struct scope *scope);
/* Anchors a child that was handed off. over: the child has ended. */
void scope_receive(struct thread *thread, struct scope *scope, struct cb *child, bool over, struct batch *batch);
/* Under the lock: returns the first failed child in `ended`, or NULL. The next call does not examine the children
 * before it again. */
static inline struct cb *scope_first_failed(struct scope *scope)
{
    for (; scope->unseen != &scope->ended; scope->unseen = scope->unseen->next) {
        struct cb *child = CONTAINER(scope->unseen, struct cb, wait.node.link);
        if (child->outcome == OUTCOME_FAILED)
            return child;
    }
    return NULL;
}
static inline bool scope_has_winner(const struct scope *scope)
{
    return scope->flags & STRAND_FIRST_WINS;
}
/* Owner of a service: consumes the ended children in the order of their ends, up to one that has failed [C4]. Returns
 * the failed child, or NULL. */
struct cb *scope_reap(struct thread *thread, struct scope *scope);
/* Another strand, which has a reference to the scope and spawns into it: consumes a few ended children [C4]. */
void scope_reap_for_owner(struct thread *thread, struct scope *scope);
/* Owner of a plain scope: lists the children that have ended. From now on a child, also one that is spawned later, is
 * listed when it ends, until the owner sets recount_at again [C5]. */
void scope_follow(struct thread *thread, struct scope *scope);
/* Owner: returns the first child in `ended`, or NULL. */
struct cb *scope_first_ended(struct thread *thread, struct scope *scope);
/* count: the number of ends that the owner has seen. enough: more ends than this wake the owner. */
struct ends {
    size_t count, enough;
};
/* Owner: waits until there are more ends than it has seen. While it sleeps, an end wakes it if there are more than
 * `enough` ends then, if it is the last one, or if the child has a drop function. An interruption wakes it too. `what`,
 * for diagnostics only, is as in wait_because. Returns the thread that the strand continues on. */
struct thread *scope_await_end(struct thread *thread, struct cb *me, struct scope *scope, struct ends seen,
                               uint64_t what, unsigned why);
/* Spawner: logs once that the scope keeps too many ended children. */
void scope_report_hoard(struct thread *thread, struct scope *scope);
/* Owner of a large plain scope: counts how many children have ended. */
void scope_recount(struct scope *scope);
/* Takes an ended child out of the scope. Its failure no longer interrupts the owner. */
void scope_forget(struct thread *thread, struct scope *scope, struct cb *child);
/* Adds an object that ends with the scope. Returns 0, or -ECANCELED if the scope was open and has been left. */
int scope_own(struct thread *thread, struct cb *me, strand_scope handle, struct owned *owned, const char *function);
/* Returns the scope. Misuse unless the caller is its owner. */
struct scope *scope_of_owner(struct cb *me, strand_scope handle, const char *function);

#endif
