/*
 * Scopes: entering, cancelling, queries and waits of the owner. Children's ends are in scope_ends.c, leaving is in
 * leave.c. The protocol block is in scope.h.
 */
#include "scope.h"

#include "cancel.h"
#include "cancel_reason.h"
#include "carry.h"
#include "end.h"
#include "handle.h"
#include "log.h"
#include "misuse.h"
#include "pool.h"
#include "throw.h"

#include <errno.h>
#include <stdio.h>

enum { POLICIES = STRAND_TOGETHER | STRAND_COLLECT | STRAND_FIRST_WINS };
static bool flags_are_good(unsigned flags)
{
    bool one = !(flags & POLICIES & ((flags & POLICIES) - 1));
    return one && !(flags & ~(unsigned)(POLICIES | STRAND_OPEN | STRAND_SERVICE)) &&
           (flags & (STRAND_SERVICE | STRAND_FIRST_WINS)) != (STRAND_SERVICE | STRAND_FIRST_WINS);
}

static COLD __attribute__((noreturn)) void bad_flags(unsigned flags)
{
    if (flags & ~(unsigned)(POLICIES | STRAND_OPEN | STRAND_SERVICE))
        MISUSE("STRAND_SCOPE_WITH", "", "%#x has bits that are no flags: use STRAND_OPEN and its like", flags);
    if ((flags & (STRAND_SERVICE | STRAND_FIRST_WINS)) == (STRAND_SERVICE | STRAND_FIRST_WINS))
        MISUSE(
            "STRAND_SCOPE_WITH", "",
            "STRAND_SERVICE consumes the strands that return, so STRAND_FIRST_WINS would have no winner: use it with "
            "STRAND_TOGETHER, STRAND_COLLECT or no policy");
    MISUSE("STRAND_SCOPE_WITH", "",
           "a scope has one policy at most: choose one of STRAND_TOGETHER, STRAND_COLLECT and STRAND_FIRST_WINS");
}

/* Prepares a scope that has been entered. */
static inline __attribute__((always_inline)) strand_scope prepare(struct scope *scope, uint64_t serial,
                                                                  strand_scope_flags flags)
{
    list_init(&scope->children);
    scope->count = 0;
    scope->recount_at = HOARD;
    list_init(&scope->ended);
    scope->unseen = &scope->ended;
    memset((char *)scope + offsetof(struct scope, flags), 0, sizeof *scope - offsetof(struct scope, flags));
    if (flags) {
        scope->flags = (uint8_t)flags;
        if (scope_has_winner(scope))
            scope->winner = NULL;
    }
    return (strand_scope){{(uint64_t)(uintptr_t)scope, serial << 1 | (flags & STRAND_OPEN)}};
}

static NOINLINE strand_scope enter_slowly(strand_scope_flags flags, const char *file, int line)
{
    struct thread *thread = must_be_strand("STRAND_SCOPE");
    struct cb *me = current_of(thread);
    if (UNLIKELY(!flags_are_good(flags)))
        bad_flags(flags);
    union any_block *any = block_new(thread);
    if (UNLIKELY(!any))
        throw_no_memory(me, "a scope");
    struct scope *scope = &any->scope;
    block_enter(thread, me, &scope->block, BLOCK_SCOPE, file, line);
    return prepare(scope, word_serial(atomic_load_explicit(&scope->block.word, memory_order_relaxed)), flags);
}

/* Without SWITCH_CHECK there is no simulation, no tool, and no C++ runtime that this thread has noticed. */
strand_scope strand_scope_enter_(strand_scope_flags flags, const char *file, int line)
{
    struct thread *thread = thread_self();
    if (UNLIKELY(flags || !thread || !thread->current || slow_flags_has(&thread->slow_switch, SWITCH_CHECK) ||
                 thread_may_have_cxx(thread))) /* [U3] */
        return enter_slowly(flags, file, line);
    struct worker *worker = worker_of(thread);
    if (UNLIKELY(!worker->blocks.free || !has_serials(worker)))
        return enter_slowly(flags, file, line);
    struct scope *scope = slab_get(&worker->blocks);
    uint64_t serial = next_serial(worker);
    block_init(&scope->block, serial);
    block_enter_c(current_of(thread), &scope->block, BLOCK_SCOPE, file, line);
    return prepare(scope, serial, 0);
}

static COLD __attribute__((noreturn)) void misuse_by_non_owner(struct thread *thread, struct scope *scope,
                                                               const char *function, const char *rule)
{
    if (!scope_is_ours(thread, scope))
        misuse_foreign(function, "scope");
    MISUSE_SCOPE(function, scope, "%s", rule);
}

struct scope *scope_of_owner(struct cb *me, strand_scope handle, const char *function)
{
    struct scope *scope = handle_scope(handle);
    if (UNLIKELY(!scope))
        MISUSE(function, "", "the scope has been left, or was never entered: use it within the block that opened it");
    if (UNLIKELY(block_owner(&scope->block) != me))
        misuse_by_non_owner(
            thread_self(), scope, function,
            handle_is_open(handle)
                ? "only the strand that opened a scope may do that, even if the scope is open: let that strand do it. "
                  "Other strands may spawn into the scope, cancel it, and wait for single strands by strand_wait"
                : "only the strand that opened a scope may do that; scopes that others spawn into are opened by "
                  "STRAND_SCOPE_OPEN");
    return scope;
}

static bool take_over(struct thread *thread, struct scope *scope, struct owned *owned)
{
    scope_lock_children(thread, scope);
    bool open = !scope->closed;
    if (open) {
        owned->pool = scope->block.owner->member.fibre->pool;
        owned->next = scope->belongings;
        scope->belongings = owned;
    }
    scope_unlock_children(thread, scope);
    return open;
}

int scope_own(struct thread *thread, struct cb *me, strand_scope handle, struct owned *owned, const char *function)
{
    if (!handle_is_open(handle)) {
        (void)take_over(thread, scope_of_owner(me, handle, function), owned);
        return 0;
    }
    struct scope *scope = handle_ref_scope(thread, handle, function);
    if (!scope)
        return -ECANCELED;
    bool open = take_over(thread, scope, owned);
    handle_unref_scope(thread, scope);
    return open ? 0 : -ECANCELED;
}

/* ---- cancelling ------------------------------------------------------------------------------------------ */

void strand_scope_cancel(strand_scope handle, const char *why)
{
    struct thread *thread = must_be_strand("strand_scope_cancel");
    struct cb *me = current_of(thread);
    struct scope *scope =
        handle_is_open(handle) ? handle_ref_scope(thread, handle, "strand_scope_cancel") : handle_scope(handle);
    if (!scope && handle_is_open(handle))
        return; /* the scope has been left, so all its children have ended */
    if (!scope)
        MISUSE("strand_scope_cancel", "",
               "the scope has been left, or was never entered: use it within the block that opened it");
    bool owned = block_owner(&scope->block) == me;
    if (!owned && !handle_is_open(handle))
        misuse_by_non_owner(thread, scope, "strand_scope_cancel",
                            "only the owner may cancel a scope that is not open: open it by STRAND_SCOPE_OPEN");
    struct cancel_reason *reason = cancel_reason_new(thread, me, why);
    struct batch batch;
    batch_init(&batch);
    scope_lock_children(thread, scope);
    scope->cancelled = true;
    scope->owned |= owned;
    if (!scope->cancel_reason && !scope->closed)
        scope->cancel_reason = cancel_reason_keep(reason);
    for (struct link *link = scope->children.next; link != &scope->children; link = link->next)
        batch_add(&batch, cancel_strand(thread, CONTAINER(link, struct cb, sibling), reason, owned));
    scope_unlock_children(thread, scope);
    batch_deliver(thread, &batch);
    cancel_reason_release(reason);
    if (handle_is_open(handle))
        handle_unref_scope(thread, scope);
}

/* ---- queries and waits ------------------------------------------------------------------------------ */

/* A service does not count children that have ended without a failure. */
static size_t count_of(struct thread *thread, struct scope *scope)
{
    scope_lock_children(thread, scope);
    size_t count = scope->count - (scope_is_service(scope) ? scope->ends - scope->failures : 0);
    scope_unlock_children(thread, scope);
    return count;
}

size_t strand_scope_count(strand_scope handle)
{
    struct thread *thread = must_be_strand("strand_scope_count");
    struct cb *me = current_of(thread);
    if (!handle_is_open(handle))
        return count_of(thread, scope_of_owner(me, handle, "strand_scope_count"));
    struct scope *scope = handle_ref_scope(thread, handle, "strand_scope_count");
    if (!scope)
        return 0;
    size_t count = count_of(thread, scope);
    handle_unref_scope(thread, scope);
    return count;
}

strand_exception *strand_scope_failure(strand_scope handle, strand *which)
{
    struct thread *thread = must_be_strand("strand_scope_failure");
    struct cb *me = current_of(thread);
    struct scope *scope = scope_of_owner(me, handle, "strand_scope_failure");
    if (!(scope->flags & STRAND_COLLECT))
        MISUSE_SCOPE("strand_scope_failure", scope, "the scope was not opened with STRAND_COLLECT");
    scope_lock(thread, scope);
    struct cb *child = scope_first_failed(scope);
    scope_unlock(thread, scope);
    if (!child)
        return NULL;
    if (which)
        *which = handle_of(child);
    end_await(thread, child);
    strand_exception *e = cb_take_exception(child);
    end_consume(thread, scope, child);
    return e;
}

struct thread *scope_await_end(struct thread *thread, struct cb *me, struct scope *scope, struct ends seen,
                               uint64_t what, unsigned why)
{
    wait_because(thread, me, why, what);
    struct wait_node *node = &me->wait.node;
    node->epoch = wait_arm(thread, me, own_of(me)->floor);
    scope_lock(thread, scope);
    bool more = scope->ends > seen.count;
    scope->enough = (uint32_t)seen.enough;
    if (!more)
        scope->waiter = node;
    scope_unlock(thread, scope);
    if ((more || interrupted(me)) && wait_retract(thread, me)) {
        me->blocked = BLOCKED_NOT;
    } else {
        thread = thread_park(thread);
        wait_over(me);
    }
    scope_lock(thread, scope);
    scope->waiter = NULL; /* [W2] */
    scope_unlock(thread, scope);
    return thread;
}

/* As scope_await_end, but throws if the owner is interrupted. */
static struct thread *await_more(struct thread *thread, struct cb *me, struct scope *scope, size_t seen, size_t count)
{
    thread = scope_await_end(thread, me, scope, (struct ends){seen, seen}, count, BLOCKED_SCOPE);
    if (interrupted_here(me))
        interrupt_throw(thread, me, 0);
    return thread;
}

/* Returns how many of *count children have ended. Other strands may spawn into an open scope meanwhile. */
static size_t ends_of(struct thread *thread, struct scope *scope, size_t *count)
{
    scope_lock(thread, scope);
    size_t ends = scope->ends;
    *count = scope->count;
    scope_unlock(thread, scope);
    return ends;
}

/* end_await runs without the lock: only the owner takes children out of `ended`. */
struct cb *scope_first_ended(struct thread *thread, struct scope *scope)
{
    scope_lock(thread, scope);
    struct cb *child = list_empty(&scope->ended) ? NULL : CONTAINER(scope->ended.next, struct cb, wait.node.link);
    scope_unlock(thread, scope);
    if (child)
        end_await(thread, child);
    return child;
}

/* Returns the next failed child, or NULL if no child is left. If a child ends just after scope_reap, await_more returns
 * at once, and the next scope_reap consumes it. */
static struct cb *next_failed(struct thread *thread, struct cb *me, struct scope *scope)
{
    for (;;) {
        size_t count;
        struct cb *failed = scope_reap(thread, scope);
        if (failed)
            return failed;
        ends_of(thread, scope, &count);
        if (!count)
            return NULL;
        thread = await_more(thread, me, scope, 0, count);
    }
}

/* The result when no child is left. */
static strand no_next(void)
{
    yield_if_asked(thread_self());
    return (strand){{0, 0}};
}

strand strand_scope_wait_next(strand_scope handle)
{
    struct thread *thread = must_be_strand("strand_scope_wait_next");
    struct cb *me = current_of(thread);
    struct scope *scope = scope_of_owner(me, handle, "strand_scope_wait_next");
    if (!scope_keeps_failures(scope))
        MISUSE_SCOPE("strand_scope_wait_next", scope,
                     "the scope was opened without STRAND_COLLECT or STRAND_FIRST_WINS");
    may_block(thread, me, "strand_scope_wait_next");
    if (scope_is_service(scope)) {
        struct cb *failed = next_failed(thread, me, scope);
        return failed ? handle_of(failed) : no_next();
    }
    for (size_t count; !ends_of(thread, scope, &count);) {
        if (!count)
            return no_next();
        thread = await_more(thread, me, scope, 0, count);
    }
    return handle_of(scope_first_ended(thread, scope));
}

/* All children have ended: consumes them. Children that other strands spawn into an open scope meanwhile remain until
 * the owner leaves it. Returns the first failure (or error of a cancelled child), with the others suppressed. */
static strand_exception *consume_all(struct thread *thread, struct scope *scope)
{
    strand_exception *failure = NULL;
    for (struct cb *child; (child = scope_first_ended(thread, scope));) {
        strand_exception *e = cb_exception(child);
        if (e && child->outcome == OUTCOME_INTERRUPTED && !e->ring)
            e = NULL;
        if (e) {
            child->exception = NULL;
            if (failure)
                exception_suppress(failure, e);
            else
                failure = e;
        }
        end_consume(thread, scope, child);
    }
    return failure;
}

/* Returns the winner. If the owner has joined that one by itself, returns the first other child that returned a
 * value. */
static struct cb *first_that_returned(struct thread *thread, struct scope *scope)
{
    scope_lock(thread, scope);
    struct cb *first = scope->winner;
    for (struct link *link = scope->ended.next; link != &scope->ended && !first; link = link->next) {
        struct cb *ended = CONTAINER(link, struct cb, wait.node.link);
        if (ended->outcome == OUTCOME_VALUE)
            first = ended;
    }
    scope_unlock(thread, scope);
    return first;
}

static void *first_result(struct thread *thread, struct cb *me, struct scope *scope, strand *which)
{
    for (size_t count, ends; (ends = ends_of(thread, scope, &count)) < count;)
        thread = await_more(thread, me, scope, ends, count);
    struct cb *winner = first_that_returned(thread, scope);
    void *value = NULL;
    if (winner) {
        end_await(thread, winner);
        value = winner->result;
        winner->outcome = OUTCOME_NONE; /* the value is taken, so it is not dropped */
        if (which)
            *which = handle_of(winner);
    }
    strand_exception *failure = consume_all(thread, scope);
    if (winner) {
        log_exception(runtime_of(thread), "a child failed, but another came first", failure);
        strand_exception_release(failure);
        return value;
    }
    if (!failure)
        failure = exception_new(&STRAND_CHILD_CANCELLED, "all children of the scope were cancelled");
    exception_throw_traced(me, failure, SEGMENT_JOINED);
}

void *strand_scope_join_first(strand_scope handle, strand *which)
{
    struct thread *thread = must_be_strand("strand_scope_join_first");
    struct cb *me = current_of(thread);
    struct scope *scope = scope_of_owner(me, handle, "strand_scope_join_first");
    if (!(scope->flags & STRAND_FIRST_WINS))
        MISUSE_SCOPE("strand_scope_join_first", scope, "the scope was not opened with STRAND_FIRST_WINS");
    size_t count;
    (void)ends_of(thread, scope, &count);
    if (!count)
        MISUSE_SCOPE("strand_scope_join_first", scope, "the scope has no children: spawn into it first");
    may_block(thread, me, "strand_scope_join_first");
    return first_result(thread, me, scope, which);
}
