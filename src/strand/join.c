/*
 * Joining, waiting, handing off. The protocol block is in end.h. Models of hand-offs: tests/models/handoff.pml,
 * tests/models/scope.pml.
 */
#include "cancel.h"
#include "end.h"
#include "exception.h"
#include "hand_off.h"
#include "handle.h"
#include "log.h"
#include "misuse.h"
#include "scope.h"

#include "../sched/switch.h"

#include <errno.h>

static COLD __attribute__((noreturn)) void misuse_by_non_owner(struct cb *c, const char *function)
{
    if (!cb_is_ours(thread_self(), c))
        misuse_foreign(function, "strand");
    MISUSE_STRAND(function, c,
                  "only the owner of the scope that a strand is anchored to may do that; others use strand_wait");
}

static COLD __attribute__((noreturn)) void gone(strand handle, const char *function)
{
    if (!handle.bits[0] && !handle.bits[1])
        MISUSE(function, "", "there is no strand behind {0}: the handle was never set to what strand_spawn returns");
    MISUSE_STALE(function, handle,
                 "the strand is gone: it was joined before, or its scope has been left. Join each strand once, in the "
                 "block of its scope");
}

/* Misuse at any time, so that it does not depend on timing: the owner's next spawn may consume the strand. */
static COLD __attribute__((noreturn)) void of_a_service(struct cb *c, const char *function)
{
    MISUSE_STRAND(function, c,
                  "the strands of a STRAND_SERVICE scope are consumed automatically: use strand_wait, or "
                  "strand_scope_join");
}

/* Returns the child behind a handle. Misuse unless the caller is its owner. */
static inline __attribute__((always_inline)) struct cb *child_of(struct cb *me, strand handle, const char *function)
{
    struct cb *c = handle_cb(handle);
    if (UNLIKELY(!c))
        gone(handle, function);
    if (UNLIKELY(!c->anchor || c->anchor->block.owner != me))
        misuse_by_non_owner(c, function);
    return c;
}

/* The join of a child that has failed throws the child's own exception, also if its failure is what interrupts the
 * owner now (contract §4); but sources outside of its scope come first. */
static NOINLINE bool interrupted_by_it(struct thread *thread, struct cb *me, struct cb *c)
{
    struct scope *scope = c->anchor;
    if (interrupt_source(me) != &scope->block)
        return false;
    scope_lock(thread, scope);
    bool failed = c->listed && c->outcome == OUTCOME_FAILED;
    scope_unlock(thread, scope);
    if (failed)
        end_await(thread, c); /* its end is under way */
    return failed;
}

static void release(strand_exception **e)
{
    strand_exception_release(*e);
}

/* Throws the original C++ exception. That carries no suppressed exceptions, so those go to the log. */
__attribute__((noreturn)) static COLD void throw_as_cxx(struct thread *thread, strand_exception *foreign)
{
    strand_exception *e __attribute__((cleanup(release))) = foreign;
    if (e->ring)
        log_exception(runtime_of(thread), "a join throws a C++ exception without its suppressed exceptions", e);
    arch_foreign_rethrow(e->payload);
}

__attribute__((noreturn)) static NOINLINE void throw_child(struct thread *thread, struct cb *me, struct cb *c, bool cxx)
{
    strand_exception *e = end_taken(c, cb_take_exception(c));
    end_consume(thread, c->anchor, c);
    if (UNLIKELY(e->kind == &STRAND_FOREIGN) && cxx && e->payload_free == arch_foreign_drop)
        throw_as_cxx(thread, e);
    exception_throw_traced(me, e, SEGMENT_JOINED);
}

/* Takes a child that has not started out of this thread's queue, so that it runs next. Returns false if it is not
 * there. */
static inline __attribute__((always_inline)) bool take_unstarted(struct thread *thread, struct fibre *fibre)
{
    return (LIKELY(!thread->platform) || platform_choose(thread, 2)) && thread_take(thread, fibre);
}

static NOINLINE void check_interrupted(struct thread *thread, struct cb *me, struct cb *c)
{
    while (interrupted(me) && !interrupted_by_it(thread, me, c))
        if (!interrupt_put_off_(me))
            interrupt_throw(thread, me, 0);
}

/* The wait was claimed by an interruption, or could not begin. Returns the thread when the child has ended, NULL to
 * wait again. */
static struct thread *recheck(struct thread *thread, struct cb *me, struct cb *c)
{
    me->blocked = BLOCKED_NOT;
    check_interrupted(thread, me, c);
    return ended(c) ? thread : NULL;
}

/* first: the child's fibre, which the caller has taken out of a queue, or NULL. */
static NOINLINE struct thread *await_slowly(struct thread *thread, struct cb *me, struct cb *c, struct fibre *first)
{
    for (;; first = take_unstarted(thread, c->member.fibre) ? c->member.fibre : NULL) {
        strand handle = handle_of(c);
        wait_because(thread, me, BLOCKED_JOIN, handle.bits[1]);
        if (end_wait(&thread, me, c, handle, own_of(me)->floor, first, false))
            return thread;
        struct thread *over = recheck(thread, me, c);
        if (over)
            return over;
        platform_await(thread); /* the child's failure interrupts, and its end is under way */
    }
}

/* await_child was interrupted, so the child has no joiner. */
static NOINLINE struct thread *await_more(struct thread *thread, struct cb *me, struct cb *c)
{
    return recheck(thread, me, c) ? thread : await_slowly(thread, me, c, NULL);
}

/* await_child was armed, but an interruption holds. */
static NOINLINE struct thread *await_not(struct thread *thread, struct cb *me, struct cb *c)
{
    struct fibre *first = c->member.fibre;
    if (wait_retract(thread, me)) {
        c->has_joiner = false; /* [E6] */
        arch_san_release(c);
        thread_push(thread, first, PUSH_WOKEN);
    } else { /* an interrupter has ended the wait */
        thread = switch_to(thread, first);
        (void)wait_over(me);
    }
    return await_more(thread, me, c);
}

/* Fast path of await_slowly: the child runs next, and the owner is not interrupted. The JOINER of end.h. */
static inline __attribute__((always_inline)) struct thread *await_child(struct thread *thread, struct cb *me,
                                                                        struct cb *c, uint64_t serial)
{
    struct fibre *first = c->member.fibre;
    if (UNLIKELY(!take_unstarted(thread, first)))
        return await_slowly(thread, me, c, NULL);
    if (UNLIKELY(!wait_child_only(me, c)))
        return await_slowly(thread, me, c, first);
    wait_because(thread, me, BLOCKED_JOIN, serial);
    wait_arm_for_child(thread, me, c, own_of(me)->floor);
    if (UNLIKELY(interrupted(me))) /* [W4] */
        return await_not(thread, me, c);
    thread = switch_to(thread, first);
    return LIKELY(wait_over(me) == WAIT_WON) ? thread : await_more(thread, me, c);
}

OWN_INLINE_ALWAYS void *join(strand handle, bool cxx)
{
    struct thread *thread = must_be_strand("strand_join");
    struct cb *me = current_of(thread);
    struct cb *c = child_of(me, handle, "strand_join");
    if (UNLIKELY(scope_is_service(c->anchor)))
        of_a_service(c, "strand_join");
    may_suspend(thread, me, "strand_join");
    thread_tick(thread);
    cxx_settle(thread, me);
    if (interrupted(me))
        check_interrupted(thread, me, c);
    if (!ended(c))
        thread = await_child(thread, me, c, handle.bits[1]);
    arch_san_acquire(c);
    if (UNLIKELY(c->outcome > OUTCOME_VALUE))
        throw_child(thread, me, c, cxx);
    void *result = c->result;
    c->outcome = OUTCOME_NONE; /* the value is taken, so it is not dropped */
    end_consume(thread, c->anchor, c);
    return result;
}

void *strand_join(strand handle)
{
    return join(handle, false);
}

void *strand_join_cxx_(strand handle)
{
    return join(handle, true);
}

void strand_wait(strand handle)
{
    struct thread *thread = must_be_strand("strand_wait");
    struct cb *me = current_of(thread);
    if (!handle.bits[1])
        MISUSE("strand_wait", "",
               "there is no strand behind {0}: the handle was never set to what strand_spawn returns");
    if (handle.bits[1] == cb_id(me))
        MISUSE_STRAND("strand_wait", me, "a strand can't wait for its own end: let another strand wait");
    may_block(thread, me, "strand_wait");
    for (struct cb *c; (c = handle_ref_cb(thread, handle, "strand_wait"));) {
        wait_because(thread, me, BLOCKED_WAIT, handle.bits[1]);
        if (end_wait(&thread, me, c, handle, own_of(me)->floor, NULL, true))
            break;
        if (interrupted_here(me))
            interrupt_throw(thread, me, 0);
    }
    end_seen(handle);
    yield_if_asked(thread);
}

bool strand_ended(strand handle)
{
    struct thread *thread = must_be_strand("strand_ended");
    struct cb *c = handle_ref_cb(thread, handle, "strand_ended");
    bool over = !c || ended(c);
    if (c)
        handle_unref_cb(thread, c);
    if (over)
        end_seen(handle);
    return over;
}

/* ---- hand-off -------------------------------------------------------------------------------------------- */

/* Whether `owner` is the child or below it: then no strand outside would wait for either. The lock of hand-offs is
 * held, so no strand changes its anchor meanwhile. The tree above the owner does not change, because its scope is
 * open. */
static bool is_below(struct cb *owner, struct cb *child)
{
    for (struct cb *c = owner; c; c = c->anchor ? c->anchor->block.owner : NULL)
        if (c == child)
            return true;
    return false;
}

/* Takes the strand out of its scope. A strand that lives is under its ENDS_LOCK. If it has ended, its failure no longer
 * counts in that scope. */
static void take_out(struct thread *thread, struct cb *c, bool over)
{
    struct scope *from = c->anchor;
    if (over) {
        scope_forget(thread, from, c);
        return;
    }
    scope_lock_children(thread, from);
    list_remove(&c->sibling);
    from->count--;
    scope_unlock_children(thread, from);
}

/* From scope_receive on, an ended child may be consumed by its new owner; a living one can't end before its ENDS_LOCK
 * is released. */
static void move(struct thread *thread, struct cb *c, struct scope *to, struct batch *batch)
{
    uintptr_t ends;
    ends_lock(thread, c, &ends);
    bool over = ends & ENDS_OVER;
    if (over)
        atomic_store_explicit(&c->ends, ends, memory_order_release); /* [E5] */
    take_out(thread, c, over);
    scope_receive(thread, to, c, over, batch);
    if (!over)
        atomic_store_explicit(&c->ends, ends | ENDS_NOTIFY, memory_order_release); /* [E5] */
}

/* Moves the strand to a scope that expects it. A run makes one hand-off at a time, so that if two strands are handed
 * off to scopes of each other, the second hand-off is refused. */
static void hand_off(struct thread *thread, struct cb *c, struct scope *to)
{
    atomic_flag *lock = &runtime_of(thread)->hand_off;
    struct batch batch;
    batch_init(&batch);
    spin_lock(lock, thread);
    bool cycle = is_below(to->block.owner, c);
    if (!cycle)
        move(thread, c, to, &batch);
    spin_unlock(lock);
    if (cycle)
        MISUSE_STRAND("strand_hand_off", c,
                      "a strand can't be anchored to a scope of its own, or of a strand below it");
    batch_deliver(thread, &batch);
}

int strand_hand_off(strand child, strand_scope handle)
{
    struct thread *thread = must_be_strand("strand_hand_off");
    struct cb *me = current_of(thread);
    struct cb *c = child_of(me, child, "strand_hand_off");
    if (scope_is_service(c->anchor))
        of_a_service(c, "strand_hand_off");
    if (!handle_is_open(handle))
        return -EINVAL;
    struct scope *to = handle_ref_scope(thread, handle, "strand_hand_off");
    if (!to)
        return -EINVAL;
    bool open = to == c->anchor || scope_expect(thread, to);
    if (open && to != c->anchor)
        hand_off(thread, c, to);
    handle_unref_scope(thread, to);
    return open ? 0 : -EINVAL;
}

/* The scope of a spawn of the caller. Sets *mine; a scope of another strand is counted by a reference. Returns NULL: it
 * has been left. */
static struct scope *spawns_into(struct thread *thread, strand_scope handle, const char *function, bool *mine)
{
    struct cb *me = current_of(thread);
    struct scope *scope = handle_scope(handle);
    *mine = scope && block_owner(&scope->block) == me;
    if (*mine)
        return scope;
    if (!handle_is_open(handle))
        scope_of_owner(me, handle, function); /* misuse */
    return handle_ref_scope(thread, handle, function);
}

int hand_off_check(struct thread *thread, strand_scope handle, const char *function)
{
    bool mine;
    struct scope *to = spawns_into(thread, handle, function, &mine);
    if (!to)
        return -ECANCELED;
    scope_lock(thread, to);
    bool open = !to->closed;
    scope_unlock(thread, to);
    if (!mine)
        handle_unref_scope(thread, to);
    return open ? 0 : -ECANCELED;
}

int hand_off_spawned(struct thread *thread, strand child, strand_scope handle, const char *function)
{
    bool mine;
    struct scope *to = spawns_into(thread, handle, function, &mine);
    bool open = to && scope_expect(thread, to);
    if (open)
        hand_off(thread, child_of(current_of(thread), child, function), to);
    if (to && !mine)
        handle_unref_scope(thread, to);
    return open ? 0 : -ECANCELED;
}
