/*
 * Scopes: who is anchored, who has failed, what happens when the owner leaves. Page: docs/protocols/scope.md.
 *
 * PARTIES   the owner; for scopes with flags also its children at their end, spawners and strands that hand off.
 * STATE     children (all that are anchored), ended (in order of their ends; in a plain scope only failed ones, and
 *           those that its owner had followed when it joined the scope), failures.
 * OWNERSHIP a plain scope's `children` is the owner's alone. `ended`, `failures`, and everything of a scope with
 *           flags: whoever holds the lock. A child is in `children` until the owner consumes it, or hands it off.
 * INVARIANTS [C1] a scope's record outlives its children: the owner does not leave before the last has ended. [C2] a
 *           child that fails raises its scope before its end can be seen. [C3] a plain scope's block is due while
 *           failures > 0. [C4] the owner consumes a child. In an open service also a strand that spawns into it
 *           does, unless the scope is cancelled, as it is as soon as its owner leaves it: children that have ended,
 *           have not failed and have no drop function. It takes such a child out of `ended` under the lock, as the
 *           owner of a service does, so no child is consumed twice; the owner keeps no pointer to one that it has not
 *           taken out.
 *           [C5] every child that has ended is in `ended`, once, if its scope has flags, or while its scope is joined.
 * ORDER OF LOCKS the run's lock of hand-offs (join.c), then ENDS_LOCK of a child, then its scope's lock; never two
 *           scopes' locks at once.
 * PROGRESS  the lock is held for a walk over the children at most. The owner waits for its children as long as they
 *           take. It waits for one at a time: a count of children would have to be changed by every end.
 * NOT DONE  one locked list for all scopes: spawn and join in a plain scope would pay for it. Waking the owner that
 *           joins its scope at each end: it took a third of a pool's pace; counting the ends of all strands in their
 *           scopes: each spawn and join would pay. Hand-offs without one lock for the search and the move, or with
 *           locks along the way to the root: two hand-offs could disagree on their order, or make a cycle together.
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

/* `children` of a plain scope is nobody else's business. */
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
    plain_store(&child->anchor, scope, memory_order_release); /* from here on its pool is known: is_topmost [PB1] */
    list_push_back(&scope->children, &child->sibling);
    scope->count++;
}

/* So many children that have ended, and that nobody has consumed, are worth a warning. */
enum { HOARD = 10000 };

/* Whether a plain scope may keep that many: it is looked at again when it has grown by half. */
static inline bool scope_is_large(const struct scope *scope)
{
    return !scope->flags && scope->look_at && scope->count >= scope->look_at;
}

/* Whether the owner joins a plain scope now: the ends of all its children are listed [C5]. */
static inline bool scope_is_followed(const struct scope *scope)
{
    return !scope->flags && !scope->look_at;
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

/* At the end of a child that failed, or has ENDS_NOTIFY; under its ENDS_LOCK. */
void scope_child_ended(struct thread *thread, struct scope *scope, struct cb *child, bool failed, struct batch *batch);
/* A child is going to be handed off to this open scope, which stays open until scope_receive; false: it is closed. */
bool scope_expect(struct thread *thread, struct scope *scope);
/* Take in a child that was handed off; over: it has ended. */
void scope_receive(struct thread *thread, struct scope *scope, struct cb *child, bool over, struct batch *batch);
/* Under the lock: the first child in `ended` that has failed, or NULL. Children that it passes over are not looked at
 * again. */
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
/* Owner of a service: consume the children that have ended, in the order of their ends, up to a failure that nobody has
 * seen [C4]. Returns the child that has failed, or NULL. */
struct cb *scope_reap(struct thread *thread, struct scope *scope);
/* Another strand, which has a reference to the scope and spawns into it: consume a few children that have ended [C4].
 * */
void scope_reap_for_owner(struct thread *thread, struct scope *scope);
/* Owner of a plain scope: from here on its children are listed when they end, those spawned later too, until the owner
 * sets look_at again; those that have ended already are listed now [C5]. */
void scope_follow(struct thread *thread, struct scope *scope);
/* Owner: the first child in `ended`, or NULL. */
struct cb *scope_first_ended(struct thread *thread, struct scope *scope);
/* The ends in `ended`: so many has the owner seen, and if there were no others since, more than so many wake it. */
struct ends {
    size_t count, enough;
};
/* Owner: wait until there are more ends than it has seen. Ends that come while it sleeps wake it when they are more
 * than enough, or when one of them has a drop function; so does an interruption. `what`, for diagnostics only, is as in
 * wait_because. Returns the thread that the strand continues on. */
struct thread *scope_await_end(struct thread *thread, struct cb *me, struct scope *scope, struct ends seen,
                               uint64_t what, enum blocked why);
/* The spawner: log once that the scope keeps too many ended children. */
void scope_tell_hoard(struct thread *thread, struct scope *scope);
/* Owner of a plain scope that is large: look how many have ended. */
void scope_look(struct scope *scope);
/* The owner takes an ended child out: it is dealt with. */
void scope_forget(struct thread *thread, struct scope *scope, struct cb *child);
/* Something is to end with the scope. Returns 0, or -ECANCELED: it was open, and has been left. */
int scope_own(struct thread *thread, struct cb *me, strand_scope handle, struct owned *owned, const char *function);
/* The scope, checked for a call that only its owner may make. */
struct scope *scope_of_owner(struct cb *me, strand_scope handle, const char *function);

#endif
