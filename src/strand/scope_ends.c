/*
 * Ends of children: which of them a scope lists, how an end affects the owner and the siblings, and ended children that
 * are not consumed. The protocol block is in scope.h.
 */
#include "scope.h"

#include "cancel.h"
#include "cancel_reason.h"
#include "end.h"
#include "interrupt.h"
#include "log.h"
#include "pool.h"

#include <stdio.h>

/* A strand that spawns into another strand's service consumes up to so many ended children: more than it adds. */
enum { REAPED_PER_SPAWN = 2 };

static bool has_drop(const struct cb *child)
{
    return child->extra && child->extra->drop;
}

/* ---- children end ---------------------------------------------------------------------------------------- */

static void cancel_others(struct thread *thread, struct scope *scope, struct cb *but, struct batch *batch)
{
    for (struct link *link = scope->children.next; link != &scope->children; link = link->next) {
        struct cb *child = CONTAINER(link, struct cb, sibling);
        if (child != but)
            batch_add(batch, cancel_strand(thread, child, scope->cancel_reason, false));
    }
}

static void cancel_by_policy(struct thread *thread, struct scope *scope, struct cb *child, const char *why,
                             struct batch *batch)
{
    if (!scope->cancel_reason)
        scope->cancel_reason = cancel_reason_new(thread, child, why);
    scope->cancelled = true; /* later children are born cancelled */
    atomic_store_explicit(&scope->by_policy, true, memory_order_relaxed);
    cancel_others(thread, scope, child, batch);
}

/* Under the lock, in a scope with flags: the log warns once of too many ended children. */
static void warn_of_hoard(struct scope *scope)
{
    if (scope->ends < HOARD || scope->recount_at != HOARD)
        return;
    scope->recount_at = UINT32_MAX;
    atomic_store_explicit(&scope->hoards, true, memory_order_relaxed);
}

static void list_end(struct scope *scope, struct cb *child)
{
    list_push_back(&scope->ended, &child->wait.node.link);
    if (!scope_has_winner(scope) && scope->unseen == &scope->ended)
        scope->unseen = &child->wait.node.link;
    child->listed = true;
    child->slow_end = true; /* in a plain scope too, scope_ends_consume_slow_ has to consume it */
    scope->ends++;
    const unsigned consumes = STRAND_SERVICE | STRAND_FIRST_WINS;
    if (UNLIKELY(scope->ends >= HOARD) && scope->flags && !(scope->flags & consumes))
        warn_of_hoard(scope);
}

/* Under the lock. */
static void record_end(struct thread *thread, struct scope *scope, struct cb *child, bool failed, struct batch *batch)
{
    list_end(scope, child);
    if (failed) {
        scope->failures++;
        if (scope->flags & STRAND_TOGETHER)
            cancel_by_policy(thread, scope, child, "a sibling failed", batch);
        if (!scope_keeps_failures(scope))
            batch_add(batch, block_raise(&scope->block, thread->concurrent)); /* [C2] */
    } else if ((scope->flags & STRAND_FIRST_WINS) && child->outcome == OUTCOME_VALUE && !scope->winner) {
        scope->winner = child;
        cancel_by_policy(thread, scope, child, "a sibling came first", batch);
    }
    struct wait_node *waiter = scope->waiter;
    bool dropped = has_drop(child); /* other strands may wait for an effect of the drop function */
    /* In a service other strands may consume children meanwhile, so `ends` may stay low: the last end wakes the owner
     * too. */
    if (!waiter || (scope->ends <= scope->enough && scope->ends < scope->count && !dropped))
        return;
    scope->waiter = NULL;
    if (wait_claim(waiter, thread->concurrent))
        batch_add(batch, &waiter->waiter->member);
}

void scope_child_ended(struct thread *thread, struct scope *scope, struct cb *child, bool failed, struct batch *batch)
{
    scope_lock(thread, scope);
    record_end(thread, scope, child, failed, batch);
    scope_unlock(thread, scope);
}

bool scope_expect(struct thread *thread, struct scope *scope)
{
    scope_lock(thread, scope);
    bool open = !scope->closed;
    scope->expected += open;
    scope_unlock(thread, scope);
    return open;
}

void scope_receive(struct thread *thread, struct scope *scope, struct cb *child, bool over, struct batch *batch)
{
    bool failed = over && child->outcome == OUTCOME_FAILED;
    uint64_t word = atomic_load_explicit(&child->word, memory_order_relaxed);
    while (!swap_word(&child->word, &word, word & ~(uint64_t)WORD_OWNED, thread->concurrent)) /* [HN3] */
        ; /* the new owner has not cancelled it */
    scope_lock(thread, scope);
    scope_anchor(scope, child);
    scope->expected--;
    if (over)
        record_end(thread, scope, child, failed, batch);
    if (scope->cancelled) /* as a strand that is spawned into it */
        batch_add(batch, cancel_strand(thread, child, scope->cancel_reason, scope->owned));
    if (!over) /* after its end its pool may be gone */
        batch_add(batch, pool_cancels(thread, scope, child));
    scope_unlock(thread, scope);
}

/* Under the lock: the child is about to be taken out of `ended`. */
static void forget_place(struct scope *scope, struct cb *child)
{
    if (scope_has_winner(scope)) {
        if (scope->winner == child)
            scope->winner = NULL;
    } else if (scope->unseen == &child->wait.node.link) {
        scope->unseen = child->wait.node.link.next;
    }
}

static inline void take_out(struct scope *scope, struct cb *child, bool listed)
{
    list_remove(&child->sibling);
    scope->count--;
    if (UNLIKELY(listed)) {
        forget_place(scope, child);
        list_remove(&child->wait.node.link);
        child->listed = false;
        scope->ends--;
    }
}

void scope_forget(struct thread *thread, struct scope *scope, struct cb *child)
{
    bool failed = child->outcome == OUTCOME_FAILED, listed = child->listed;
    bool lock = scope->flags || listed;
    if (lock)
        scope_lock(thread, scope);
    take_out(scope, child, listed);
    if (failed && --scope->failures == 0)
        atomic_store_explicit(&scope->block.due, 0, memory_order_seq_cst); /* [C3] */
    if (lock)
        scope_unlock(thread, scope);
    if (failed)
        interrupt_lower(thread, scope->block.owner);
}

COLD void scope_ends_consume_slow_(struct thread *thread, struct scope *scope, struct cb *child)
{
    scope_forget(thread, scope, child);
    end_retire(thread, child);
}

/* ---- services: children that are not joined ------------------------------------------------------------------- */

/* Takes the first child out of `ended` if the caller may consume it [C4]; otherwise returns NULL. failed: NULL if the
 * caller is not the owner; otherwise set to the first child if that has failed. */
static struct cb *claim(struct thread *thread, struct scope *scope, struct cb **failed)
{
    struct cb *child = NULL;
    scope_lock(thread, scope);
    if (!list_empty(&scope->ended) && (failed || !scope->cancelled)) {
        child = CONTAINER(scope->ended.next, struct cb, wait.node.link);
        if (failed && child->outcome == OUTCOME_FAILED) {
            *failed = child;
            child = NULL;
        } else if (!failed && (child->outcome == OUTCOME_FAILED || has_drop(child))) {
            warn_of_hoard(scope);
            child = NULL;
        } else {
            take_out(scope, child, true);
        }
    }
    scope_unlock(thread, scope);
    return child;
}

static void consume_claimed(struct thread *thread, struct cb *child)
{
    end_await(thread, child);
    arch_san_acquire(child);
    strand_exception *e = cb_take_exception(child);
    if (child->outcome == OUTCOME_ERROR || (e && e->ring))
        log_exception(runtime_of(thread), "a cancelled strand of a service ended by an exception", e);
    strand_exception_release(e);
    end_retire(thread, child);
}

struct cb *scope_reap(struct thread *thread, struct scope *scope)
{
    struct cb *failed = NULL;
    for (struct cb *child; (child = claim(thread, scope, &failed));)
        consume_claimed(thread, child);
    end_await(thread, failed);
    if (scope->flags & STRAND_OPEN)
        arch_san_acquire(&scope->ended); /* children that other strands have consumed */
    return failed;
}

void scope_reap_for_owner(struct thread *thread, struct scope *scope)
{
    struct cb *child;
    for (int i = 0; i < REAPED_PER_SPAWN && (child = claim(thread, scope, NULL)); i++) {
        consume_claimed(thread, child);
        arch_san_release(&scope->ended);
    }
}

/* ---- children that are joined together ---------------------------------------------------------------------- */

/* Returns false if the child has ended. */
static bool follow(struct thread *thread, struct cb *child)
{
    uintptr_t ends = atomic_load_explicit(&child->ends, memory_order_acquire); /* [E5] */
    while (!(ends & (ENDS_OVER | ENDS_NOTIFY))) {
        if (ends & ENDS_LOCK) {
            platform_await(thread);
            ends = atomic_load_explicit(&child->ends, memory_order_acquire);                 /* [E5] */
        } else if (swap_ends(&child->ends, &ends, ends | ENDS_NOTIFY, thread->concurrent)) { /* [E5] */
            return true;
        }
    }
    return !(ends & ENDS_OVER);
}

void scope_follow(struct thread *thread, struct scope *scope)
{
    scope->recount_at = 0;
    for (struct link *link = scope->children.next; link != &scope->children; link = link->next) {
        struct cb *child = CONTAINER(link, struct cb, sibling);
        if (follow(thread, child) || child->listed)
            continue;
        scope_lock(thread, scope);
        list_end(scope, child); /* [C5] */
        scope_unlock(thread, scope);
    }
}

/* Examines only the oldest 2 * HOARD children, because most ended children are among them. */
void scope_recount(struct scope *scope)
{
    size_t have_ended = 0, left = 2 * HOARD;
    for (struct link *link = scope->children.next; link != &scope->children && left; link = link->next, left--)
        have_ended += ended(CONTAINER(link, struct cb, sibling));
    bool hoards = have_ended >= HOARD;
    scope->recount_at = hoards ? UINT32_MAX : scope->count + scope->count / 2;
    atomic_store_explicit(&scope->hoards, hoards, memory_order_relaxed);
}

COLD void scope_report_hoard(struct thread *thread, struct scope *scope)
{
    char text[512];
    if (!atomic_exchange_explicit(&scope->hoards, false, memory_order_relaxed))
        return;
    const char *rest =
        scope_is_service(scope)
            ? "and its owner has consumed none of them meanwhile: each keeps some memory until then. Only the owner "
              "runs their drop functions and sees failures: let the owner spawn into the scope or call "
              "strand_scope_join, or spawn these strands without a drop function"
            : "and nobody has joined them: each keeps some memory until then. Join them, or open the scope with "
              "STRAND_SERVICE, which consumes strands that have returned";
    snprintf(text, sizeof text, "%d strands of the scope of %s:%d have ended %s", HOARD, scope->block.file,
             scope->block.line, rest);
    log_text(runtime_of(thread), text);
}
