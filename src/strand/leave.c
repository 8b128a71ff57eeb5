/*
 * Leaving a scope: its remaining children, and the exception that is thrown. Contract §4; the protocol
 * block is in scope.h.
 */
#include "cancel.h"
#include "cancel_reason.h"
#include "carry.h"
#include "end.h"
#include "handle.h"
#include "log.h"
#include "misuse.h"
#include "scope.h"

#include <stdio.h>

/* What the owner reports of the children. */
struct remains {
    strand_exception *failure;           /* the first failure that the owner has not seen, with the others suppressed */
    strand_exception *errors;            /* the first error of a cancelled child, with the others suppressed */
    size_t live;                         /* children that the owner had neither joined nor cancelled */
    struct cancel_reason *cancel_reason; /* of the first one */
    char name[32];
};

static void add(strand_exception **to, strand_exception *e)
{
    if (*to)
        exception_suppress(*to, e);
    else
        *to = e;
}

/* Consumes an ended child and records what it left. */
static void take_in(struct thread *thread, struct scope *scope, struct cb *child, struct remains *remains)
{
    strand_exception *e = cb_take_exception(child);
    uint8_t outcome = child->outcome;
    end_consume(thread, scope, child);
    if (outcome == OUTCOME_FAILED)
        add(&remains->failure, e);
    else if (outcome == OUTCOME_ERROR || (e && e->ring)) /* a suppressed failure may be reported nowhere else */
        add(&remains->errors, e);
    else
        strand_exception_release(e);
}

/* Failed children come first, in the order of their ends, because the first failure is thrown. */
static struct cb *next_child(struct thread *thread, struct scope *scope)
{
    struct cb *child = NULL;
    scope_lock(thread, scope);
    if (!list_empty(&scope->ended))
        child = CONTAINER(scope->ended.next, struct cb, wait.node.link);
    else if (!list_empty(&scope->children))
        child = CONTAINER(scope->children.next, struct cb, sibling);
    scope_unlock(thread, scope);
    return child;
}

/* Chooses the child whose end the owner waits for; `oldest` is the oldest living child. If strands start in FIFO order,
 * the newest usually ends last, so that one wake-up suffices. */
static struct cb *last_to_end(struct thread *thread, struct scope *scope, struct cb *oldest)
{
    struct fibre *fibre = oldest->member.fibre;
    if (thread->stealing && plain_load(&fibre->pool, memory_order_relaxed) == thread->pool)
        return oldest;
    scope_lock(thread, scope);
    struct cb *newest = oldest->listed ? oldest : CONTAINER(scope->children.prev, struct cb, sibling);
    scope_unlock(thread, scope);
    return ended(newest) ? oldest : newest; /* a listed child is about to end, and is consumed before others */
}

/* Prefetches what a blocked child touches first when it goes on: the frames that it has, those that a throw adds, the
 * header of its stack, and its innermost block. If many strands are blocked, none of it is in the processor's caches.
 * `link`: the child's, in a plain scope. */
static void fetch(const struct thread *thread, const struct scope *scope, const struct link *link)
{
    enum { FRAMES = 10 * CACHE_LINE, THROW = 10 * CACHE_LINE };
    if (link == &scope->children)
        return;
    struct fibre *fibre = CONTAINER(link, struct cb, sibling)->member.fibre;
    uintptr_t context = (uintptr_t)atomic_load_explicit(&fibre->context, memory_order_relaxed); /* may be 0 */
    for (uintptr_t at = context + FRAMES; at > context - THROW; at -= CACHE_LINE)
        __builtin_prefetch((const void *)at, 1);
    if (thread->concurrent)
        return; /* the child may be running */
    __builtin_prefetch(fibre->stack, 1);
    uintptr_t block = (uintptr_t)own_on(fibre)->blocks; /* may be 0 */
    for (uintptr_t at = block; at < block + sizeof(struct scope); at += CACHE_LINE)
        __builtin_prefetch((const void *)at, 1);
}

/* child: the oldest one, as for last_to_end. It runs next if this thread has it in its queue; then usually the child
 * after it is the next one. */
static void await_child(struct thread **thread, struct cb *me, struct scope *scope, struct cb *child)
{
    struct fibre *fibre = child->member.fibre, *next = NULL;
    if (!(*thread)->platform && thread_take(*thread, fibre)) {
        next = fibre;
        if (!scope->flags)
            fetch(*thread, scope, child->sibling.next);
    } else {
        child = last_to_end(*thread, scope, child);
    }
    wait_because(*thread, me, BLOCKED_LEAVE, cb_id(child));
    (void)end_wait(thread, me, child, handle_of(child), WAIT_FLOOR_MOST, next, false);
}

static COLD void leave_in_section(struct cb *me, struct scope *scope)
{
    struct misuse_section_words words = misuse_section_words(me);
    misuse("STRAND_SCOPE", words.made,
           "leaving the scope of " BLOCK_LOCATION " waits for the strands that are anchored to it, %s",
           BLOCK_LOCATION_OF(&scope->block), words.where);
}

/* Waits for all children, uninterruptibly, and consumes them [C1], those spawned into the open scope meanwhile too. In
 * a no-suspend section a child that has ended is misuse as well, so that the misuse does not depend on timing. */
static struct thread *drain(struct thread *thread, struct cb *me, struct scope *scope, struct remains *remains)
{
    for (struct cb *child; (child = next_child(thread, scope));) {
        if (UNLIKELY(own_of(me)->section_file != NULL))
            leave_in_section(me, scope);
        while (!ended(child))
            await_child(&thread, me, scope, child);
        arch_san_acquire(child);
        take_in(thread, scope, child, remains);
    }
    return thread;
}

/* Whether the child counts as live: the owner has neither joined nor cancelled it. A failed child does not count,
 * because its failure is thrown. Under the scope's lock. */
static bool left_alone(struct cb *child)
{
    bool dealt = child->listed && (scope_is_service(child->anchor) || child->outcome == OUTCOME_FAILED);
    return !dealt && !(atomic_load_explicit(&child->word, memory_order_relaxed) & WORD_OWNED);
}

/* Cancels the children that are not cancelled, and marks the scope so that later ones are born cancelled. */
static void cancel_rest(struct thread *thread, struct cb *me, struct scope *scope, struct remains *remains)
{
    struct batch batch;
    batch_init(&batch);
    scope_lock(thread, scope);
    if (!scope->cancel_reason && !list_empty(&scope->children))
        scope->cancel_reason = cancel_reason_new(thread, me, "its scope was left");
    scope->cancelled = true;
    if (!scope->flags && !thread->platform)
        fetch(thread, scope, scope->children.next);
    for (struct link *link = scope->children.next; link != &scope->children; link = link->next) {
        struct cb *child = CONTAINER(link, struct cb, sibling);
        if (left_alone(child) && !remains->live++)
            snprintf(remains->name, sizeof remains->name, "%s", cb_name(child));
        batch_add(&batch, cancel_strand(thread, child, scope->cancel_reason, false));
    }
    scope_unlock(thread, scope);
    batch_deliver(thread, &batch);
}

static strand_exception *live_strands(struct cb *me, struct scope *scope, struct remains *remains)
{
    strand_exception *e = exception_new(
        &STRAND_LIVE_STRANDS,
        "the scope of " BLOCK_LOCATION " was left with %zu strand%s neither joined nor cancelled (first: '%s')",
        BLOCK_LOCATION_OF(&scope->block), remains->live, remains->live == 1 ? "" : "s", remains->name);
    exception_trace(e, SEGMENT_THROWN, me);
    return e;
}

/* An exception in flight leaves the scope. */
static void leave_by(struct cb *me, struct scope *scope, strand_exception *in_flight, struct remains *remains)
{
    if (block_is_source(&scope->block, in_flight)) {
        strand_exception *with = remains->failure;
        remains->failure = NULL;
        if (!with && in_flight->cause) /* a clean-up has fetched the failure; the scope throws it all the same */
            with = strand_exception_keep(in_flight->cause);
        if (with) {
            exception_trace(with, SEGMENT_JOINED, me);
            exception_inherit(with, in_flight);
            strand_exception_release(exception_swap(me, with));
            in_flight = with;
        }
    }
    exception_suppress(in_flight, remains->failure);
    exception_suppress(in_flight, remains->errors);
}

static void leave_normally(struct thread *thread, struct cb *me, strand_exception *live, struct remains *remains)
{
    strand_exception *e = remains->failure ? remains->failure : live;
    if (!e) {
        log_exception(runtime_of(thread), "a cancelled strand ended by an exception", remains->errors);
        strand_exception_release(remains->errors);
        return;
    }
    if (e != live) {
        exception_trace(e, SEGMENT_JOINED, me);
        exception_suppress(e, live);
    }
    exception_suppress(e, remains->errors);
    exception_throw(me, e);
}

static void leave_by_foreign(struct thread *thread, struct remains *remains)
{
    log_exception(runtime_of(thread), "a scope was left by a C++ exception; a child had failed", remains->failure);
    log_exception(runtime_of(thread), "a scope was left by a C++ exception; a cancelled child ended by",
                  remains->errors);
    strand_exception_release(remains->failure);
    strand_exception_release(remains->errors);
}

/* Closes an open scope whose children have all ended. Returns false if a strand was spawned or handed off meanwhile. */
static bool close_scope(struct thread *thread, struct scope *scope)
{
    if (!(scope->flags & STRAND_OPEN))
        return true;
    scope_lock(thread, scope);
    bool empty = list_empty(&scope->children) && !scope->expected;
    if (empty)
        scope->closed = true;
    scope_unlock(thread, scope);
    return empty;
}

/* Ends the objects that belong to the scope, after its strands and the newest first. The end of a pool or a crew
 * suspends the owner. Returns the thread that it continues on. */
static struct thread *release_owned(struct thread *thread, struct scope *scope)
{
    struct owned *owned;
    while ((owned = scope->belongings)) {
        scope->belongings = owned->next;
        owned->release(thread, owned);
        thread = thread_self();
    }
    return thread;
}

static NOINLINE void leave_slowly(struct thread *thread, struct cb *me, struct scope *scope)
{
    struct remains remains = {0};
    strand_exception *in_flight = block_flight(thread, me, &scope->block);
    bool foreign = !in_flight && block_foreign(thread, &scope->block);
    cancel_rest(thread, me, scope, &remains);
    while ((thread = drain(thread, me, scope, &remains), !close_scope(thread, scope)))
        platform_await(thread);
    if (scope_is_service(scope))
        arch_san_acquire(&scope->ended); /* children that other strands have consumed */
    me->blocked = BLOCKED_NOT;
    thread = release_owned(thread, scope);
    strand_exception *live = remains.live && !in_flight && !foreign ? live_strands(me, scope, &remains) : NULL;
    if (in_flight)
        leave_by(me, scope, in_flight, &remains);
    block_leave(thread, me, &scope->block);
    cancel_reason_release(scope->cancel_reason);
    block_free(thread, &scope->block);
    if (foreign)
        leave_by_foreign(thread, &remains);
    else if (!in_flight)
        leave_normally(thread, me, live, &remains);
}

/* As the fast path, for a scope that was cancelled, or a thread that has to call others. */
static NOINLINE void leave_apart(struct thread *thread, struct cb *me, struct scope *scope)
{
    block_leave(thread, me, &scope->block);
    cancel_reason_release(scope->cancel_reason);
    block_free(thread, &scope->block);
}

/* The fast path ends with one of these calls, if it needs one: so it keeps nothing across a call, and saves no
 * registers. */
void strand_scope_leave_(strand_scope *handle)
{
    struct thread *thread = must_be_strand("STRAND_SCOPE");
    struct cb *me = current_of(thread);
    struct scope *scope = (struct scope *)(uintptr_t)handle->bits[0];
    struct slab_cache *cache = &worker_of(thread)->blocks;
    if (UNLIKELY(scope->flags || scope->count || scope->belongings || own_of(me)->flight != scope->block.in_flight)) {
        leave_slowly(thread, me, scope);
        return;
    }
    if (UNLIKELY(scope->cancel_reason || slab_is_full(cache))) {
        leave_apart(thread, me, scope);
        return;
    }
    bool lower = block_unlink(me, &scope->block);
    arch_san_release(scope);
    handle_retire_unshared(&scope->block.word);
    slab_put_with_room(cache, scope);
    if (lower)
        interrupt_lower(thread, me);
}

/* ---- joining all ----------------------------------------------------------------------------------------- */

/* Whether the owner or a policy cancelled the child. Only then its end by that cancel is not an error. */
static bool expected(struct scope *scope, struct cb *child)
{
    return (atomic_load_explicit(&child->word, memory_order_relaxed) & WORD_OWNED) ||
           atomic_load_explicit(&scope->by_policy, memory_order_relaxed);
}

/* *first: the exception that is thrown. *pruned: that of pruned children, which is thrown only if there is no other. */
static void join_one(struct thread *thread, struct scope *scope, struct cb *child, strand_exception **first,
                     strand_exception **pruned)
{
    strand_exception *e = cb_take_exception(child);
    if (e && !e->ring && child->outcome == OUTCOME_INTERRUPTED && expected(scope, child)) {
        strand_exception_release(e);
        e = NULL;
    }
    e = end_taken(child, e);
    end_consume(thread, scope, child);
    if (e)
        add(e->kind == &STRAND_PRUNED && !e->ring ? pruned : first, e);
}

/* Whether a source other than this scope interrupts the owner. A failure in the scope itself does not: the join throws
 * it. */
static bool interrupted_from_outside(struct cb *me, struct scope *scope)
{
    while (interrupted(me) && interrupt_source(me) != &scope->block)
        if (!interrupt_put_off_(me))
            return true;
    return false;
}

/* One of so many living children has to end before the owner wakes again. So it wakes rarely, and keeps few ended
 * children. */
enum { LIVING_PER_END = 16 };

static struct ends none_and_enough(struct thread *thread, struct scope *scope)
{
    scope_lock(thread, scope);
    size_t living = scope->count - scope->ends;
    scope_unlock(thread, scope);
    return (struct ends){0, living / LIVING_PER_END};
}

/* Returns the id of the oldest child, whether it has ended or not, or 0 if none is left. */
static uint64_t oldest_child(struct thread *thread, struct scope *scope)
{
    scope_lock_children(thread, scope);
    struct link *link = scope->children.next;
    uint64_t id = link == &scope->children ? 0 : cb_id(CONTAINER(link, struct cb, sibling));
    scope_unlock_children(thread, scope);
    return id;
}

/* Waits for the next child in the order of their ends. Returns NULL if none is left, or (*cut_short) if a source
 * outside of the scope interrupts the owner. */
static struct cb *await_next(struct thread **thread, struct cb *me, struct scope *scope, bool *cut_short)
{
    while (!(*cut_short = interrupted_from_outside(me, scope))) {
        struct cb *next;
        uint64_t oldest;
        next = scope_is_service(scope) ? scope_reap(*thread, scope) : scope_first_ended(*thread, scope);
        if (next || !(oldest = oldest_child(*thread, scope)))
            return next;
        *thread = scope_await_end(*thread, me, scope, none_and_enough(*thread, scope), oldest, BLOCKED_JOIN_SCOPE);
    }
    return NULL;
}

/* A scope that is being joined keeps no child that nobody joins, so it warns of none. Returns what end_joining takes.
 */
static uint32_t begin_joining(struct thread *thread, struct scope *scope)
{
    scope_lock_children(thread, scope);
    uint32_t recount_at = scope->recount_at;
    scope->recount_at = UINT32_MAX;
    scope_unlock_children(thread, scope);
    if (!scope->flags)
        scope_follow(thread, scope);
    return recount_at;
}

static void end_joining(struct thread *thread, struct scope *scope, uint32_t recount_at)
{
    scope_lock_children(thread, scope);
    scope->recount_at = recount_at;
    scope_unlock_children(thread, scope);
}

void strand_scope_join(strand_scope handle)
{
    struct thread *thread = must_be_strand("strand_scope_join");
    struct cb *me = current_of(thread);
    struct scope *scope = scope_of_owner(me, handle, "strand_scope_join");
    may_suspend(thread, me, "strand_scope_join");
    thread_tick(thread);
    cxx_settle(thread, me);
    strand_exception *first = NULL, *pruned = NULL;
    uint32_t recount_at = begin_joining(thread, scope);
    bool cut_short;
    for (struct cb *child; (child = await_next(&thread, me, scope, &cut_short));) {
        arch_san_acquire(child);
        join_one(thread, scope, child, &first, &pruned);
    }
    end_joining(thread, scope, recount_at);
    me->blocked = BLOCKED_NOT;
    if (pruned)
        add(&first, pruned);
    if (first)
        exception_trace(first, SEGMENT_JOINED, me);
    if (cut_short) /* children remain, and sources outside come first */
        interrupt_throw_over(thread, me, first);
    if (first)
        exception_throw(me, first);
    yield_if_asked(thread);
}
