/*
 * How a strand ends. The protocol block is in end.h.
 */
#include "end.h"

#include "cancel_reason.h"
#include "carry.h"
#include "handle.h"
#include "hook.h"
#include "local.h"
#include "lockset.h"
#include "misuse.h"
#include "print.h"
#include "scope.h"
#include "section.h"

#include "../sched/closing.h"
#include "../sched/resize.h"
#include "../sched/switch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ending ---------------------------------------------------------------------------------------------- */

/* Wakes all waiters in FIFO order. */
static void wake_waiters(struct thread *thread, uintptr_t ends, struct batch *batch)
{
    struct wait_node *node = (struct wait_node *)(ends & ~(uintptr_t)ENDS_BITS), *ordered = NULL;
    while (node) {
        struct wait_node *next = node->next;
        node->next = ordered;
        ordered = node;
        node = next;
    }
    while (ordered) {
        struct wait_node *next = ordered->next;
        struct cb *waiter = ordered->waiter;
        if (wait_claim(ordered, thread->concurrent))
            batch_add(batch, &waiter->member);
        atomic_store_explicit(&ordered->linked, 0, memory_order_release); /* [E2] */
        ordered = next;
    }
}

/* Turns the interruption that ended a strand into the error that other strands see. The object stays the same unless
 * another holder has a reference. */
static strand_exception *to_others(struct cb *c, strand_exception *e)
{
    struct cancel_reason *reason = e->cancel_reason;
    bool pruned = reason && reason->pruned;
    const strand_kind *kind = pruned ? &STRAND_PRUNED : &STRAND_CHILD_CANCELLED;
    const strand_exception *interruption = e;
    if (atomic_load_explicit(&e->refs, memory_order_acquire) > 1) { /* [RF1] */
        strand_exception *other = exception_new(kind, "%s", "");
        other->cancel_reason = cancel_reason_keep(reason);
        other->cause = e;
        e = other;
    }
    e->kind = kind;
    exception_text(e, "strand '%s' was %s%s%s%s%s", cb_name(c), pruned ? "pruned" : "cancelled", reason ? " by " : "",
                   reason ? reason->who : "", reason && reason->why[0] ? ": " : "", reason ? reason->why : "");
    exception_name_first(e, interruption);
    return e;
}

static bool was_pruned(struct cb *c, bool cancelled)
{
    struct cancel_reason *reason = cancel_reason_of(c);
    return cancelled && reason && reason->pruned;
}

/* The exception says that another strand was pruned, and this strand let it through. The strand's own owner sees an
 * ordinary child-cancelled, with the pruning as its cause. */
static strand_exception *pruned_below(struct cb *c, strand_exception *e)
{
    strand_exception *other =
        exception_new(&STRAND_CHILD_CANCELLED, "strand '%s' ended, because %s", cb_name(c), strand_exception_text(e));
    other->cancel_reason = cancel_reason_keep(e->cancel_reason);
    other->cause = e;
    return other;
}

/* Whether only the owner will see this interruption, if anybody does: it is turned into an error then (end_taken). Most
 * owners release what a cancelled child ended by. */
static bool can_wait_for_owner(const struct cb *c, const strand_exception *e)
{
    return c->outcome == OUTCOME_INTERRUPTED && !e->ring &&
           atomic_load_explicit(&e->refs, memory_order_acquire) == 1; /* [RF1] */
}

strand_exception *end_taken(struct cb *c, strand_exception *e)
{
    return e && e->kind == &STRAND_INTERRUPTED ? to_others(c, e) : e;
}

/* Decides the outcome. An interruption never crosses strands: others see an error, child-cancelled. Only the strand's
 * own owner sees that it was pruned. */
static void judge(struct cb *c)
{
    strand_exception *e = cb_exception(c);
    bool cancelled = atomic_load_explicit(&c->word, memory_order_relaxed) & WORD_CANCELLED;
    if (!e) {
        c->outcome = OUTCOME_VALUE;
        return;
    }
    c->outcome = cancelled ? OUTCOME_ERROR : OUTCOME_FAILED;
    if (e->kind == &STRAND_INTERRUPTED) {
        if (cancelled)
            c->outcome = OUTCOME_INTERRUPTED;
        if (!can_wait_for_owner(c, e))
            e = c->exception = to_others(c, e);
    } else if (e->kind == &STRAND_PRUNED && !was_pruned(c, cancelled)) {
        e = c->exception = pruned_below(c, e);
    }
    exception_left(e, c);
}

/* The joiner began to wait before any waiter did: wait_child_only. */
static inline void wake_all(struct thread *thread, struct cb *joiner, uintptr_t ends, struct batch *batch)
{
    if (joiner) {
        end_joiner_wins(joiner);
        batch_add(batch, &joiner->member);
    }
    if (ends & ~(uintptr_t)ENDS_BITS)
        wake_waiters(thread, ends, batch);
}

COLD void end_waited_for_(struct thread *thread, struct cb *joiner, uintptr_t ends)
{
    struct batch batch;
    batch_init(&batch);
    wake_all(thread, joiner, ends, &batch);
    batch_deliver(thread, &batch);
}

NOINLINE void end_wake(struct thread *thread, uintptr_t ends)
{
    struct wait_node *node = (struct wait_node *)ends;
    const uint32_t slow = thread->slow_pick.own & (PICK_FAIR | PICK_SIM);
    if (UNLIKELY(node->next != NULL || node->waiter->member.fibre->pool != thread->pool || slow)) {
        end_waited_for_(thread, NULL, ends);
        return;
    }
    struct cb *waiter = node->waiter;
    bool claimed = wait_claim(node, thread->concurrent);
    atomic_store_explicit(&node->linked, 0, memory_order_release); /* [E2] */
    if (LIKELY(claimed))
        thread_go_on_with(thread, &waiter->member);
}

/* Does not read the anchor, which another strand may be changing. */
static bool is_root(struct thread *thread, struct cb *c)
{
    return c == runtime_of(thread)->root;
}

/* Publishes the end. After the return the memory of c may serve another strand [E1]. */
static void publish(struct thread *thread, struct cb *c, struct batch *batch)
{
    bool failed = c->outcome == OUTCOME_FAILED && !is_root(thread, c);
    arch_san_release(c);
    uintptr_t ends = atomic_load_explicit(&c->ends, memory_order_acquire); /* [E5] */
    while (LIKELY(!failed && !(ends & (ENDS_LOCK | ENDS_NOTIFY)))) {
        struct cb *joiner = end_joiner(c, ends);
        if (swap_ends(&c->ends, &ends, ENDS_OVER, thread->concurrent)) { /* [E5] [E6] */
            wake_all(thread, joiner, ends, batch);
            return;
        }
    }
    ends_lock(thread, c, &ends);
    wake_all(thread, end_joiner(c, ends), ends, batch); /* by the end, not by the failure [E7] */
    if (failed || (ends & ENDS_NOTIFY))
        scope_child_ended(thread, c->anchor, c, failed, batch);       /* [E3] */
    atomic_store_explicit(&c->ends, ENDS_OVER, memory_order_release); /* [E5] */
}

COLD void end_publish_slowly(struct thread *thread, struct cb *c)
{
    struct batch batch;
    batch_init(&batch);
    publish(thread, c, &batch);
    batch_deliver(thread, &batch);
}

static void count_out(struct thread *thread, struct cb *c)
{
    count_ended(thread);
    cb_uncount(thread, c);
}

static void end_root(struct thread *thread, struct cb *c)
{
    struct runtime *runtime = runtime_of(thread);
    runtime->result = c->outcome == OUTCOME_VALUE ? c->result : NULL;
    runtime->exception = end_taken(c, cb_take_exception(c));
    bool requested = atomic_load_explicit(&runtime->end_requested, memory_order_acquire); /* [SD4] */
    if (c->outcome == OUTCOME_INTERRUPTED && requested) {
        strand_exception_release(runtime->exception);
        runtime->exception = NULL;
    }
    arch_san_release(runtime);
}

COLD void end_slowly(struct thread *thread, struct cb *c)
{
    struct batch batch;
    if (UNLIKELY(own_of(c)->lockset != NULL))
        lockset_at_end(thread, c, "strand_fn", "ends");
    batch_init(&batch);
    if (UNLIKELY(own_of(c)->checked != NULL))
        mutex_check_at_end_(c);
    judge(c);
    locals_release(own_of(c)->locals);
    own_of(c)->locals = NULL;
    if (UNLIKELY(fibre_is_pinned(c->member.fibre)))
        pool_unpin(c->member.fibre->home);
    bool root = is_root(thread, c);
    if (UNLIKELY(root))
        end_root(thread, c);
    count_out(thread, c);
    thread_detach(thread);
    publish(thread, c, &batch);
    batch_deliver(thread, &batch);
    if (UNLIKELY(root))
        pool_stop(thread, thread->pool);
}

static void fail_to_start(struct thread *thread, struct cb *c, int error)
{
    char text[160];
    const char *why = print_refusal_words(thread, error, text, sizeof text);
    strand_exception *e =
        c->guest
            ? exception_new(&STRAND_SYSTEM,
                            "the frames of the strand that strand '%s' would replace on its fibre can't be saved: %s",
                            cb_name(c), why)
            : exception_new(&STRAND_SYSTEM, "no stack of %zu bytes%s is available for strand '%s': %s",
                            c->member.fibre->stack_size,
                            thread->sub->memory.stacks.required ? " with a guard page" : "", cb_name(c), why);
    e->code = error;
    cb_throws(c, e);
}

void end_refused(struct member *member, int error)
{
    struct thread *thread = thread_self();
    struct cb *c = cb_of(member);
    struct batch batch;
    arch_san_acquire(c); /* a strand that starts does this first */
    struct local *inherits = cb_inherits(c);
    batch_init(&batch);
    bool (*refused)(struct thread *, struct cb *) =
        atomic_load_explicit(&runtime_of(thread)->refused, memory_order_acquire); /* [PB1] */
    if (!refused || !refused(thread, c))
        fail_to_start(thread, c, error);
    judge(c);
    locals_release(inherits);
    if (fibre_is_pinned(c->member.fibre))
        pool_unpin(c->member.fibre->home);
    bool root = is_root(thread, c);
    if (root)
        end_root(thread, c);
    count_out(thread, c);
    pool_record_end(thread);
    publish(thread, c, &batch);
    batch_deliver(thread, &batch);
    if (root)
        pool_stop(thread, thread->pool);
}
