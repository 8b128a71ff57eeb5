/*
 * The cause and the suppressed exceptions of an exception. The protocol block is in carry.h.
 */
#include "carry.h"

#include "hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_one_holder(const strand_exception *e)
{
    return atomic_load_explicit(&e->refs, memory_order_acquire) == 1; /* [RF1] */
}

/* ---- walks, under the lock ------------------------------------------------------------------------------------ */

/* `walk` of the last exception points to itself. */
static strand_exception *visit(strand_exception *last, strand_exception *e)
{
    if (!e || e->walk)
        return last;
    last->walk = e;
    return e->walk = e;
}

/* Links `from` and all that it carries by `walk`, each once. */
static void walk_begin(strand_exception *from)
{
    strand_exception *last = from->walk = from;
    for (strand_exception *at = from;; at = at->walk) {
        last = visit(last, at->cause);
        strand_exception *s = at->ring;
        while (s && (s = s->next, last = visit(last, s), s != at->ring))
            ;
        if (at->walk == at)
            return;
    }
}

static strand_exception *walk_next(strand_exception *at)
{
    return at->walk == at ? NULL : at->walk;
}

static void walk_end(strand_exception *from)
{
    for (strand_exception *next, *at = from; at; at = next) {
        next = walk_next(at);
        at->walk = NULL;
    }
}

/* ---- attaching ---------------------------------------------------------------------------------------------- */

/* Whether `from` carries e. */
static bool reaches(strand_exception *from, strand_exception *e)
{
    walk_begin(from);
    bool found = e->walk != NULL;
    walk_end(from);
    return found;
}

/* Interruptions that `from` carries, and that have one holder, drop their cause e. */
static void forget_cause(strand_exception *from, strand_exception *e)
{
    walk_begin(from);
    for (strand_exception *at = from; at; at = walk_next(at)) {
        if (at->cause == e && has_one_holder(at)) {
            at->cause = NULL;
            strand_exception_release(e); /* never the last reference: the caller holds one */
        }
    }
    walk_end(from);
}

/* The caller may change the edges of e. Returns false if its ring is full. */
static bool append(strand_exception *e, strand_exception *pushed_aside)
{
    if (e->suppressed_count == RING_MOST) { /* [EX3] */
        e->omitted++;
        return false;
    }
    strand_exception *newest = e->ring;
    pushed_aside->next = newest ? newest->next : pushed_aside;
    if (newest)
        newest->next = pushed_aside;
    e->ring = pushed_aside;
    e->suppressed_count++;
    return true;
}

/* [EX2] An exception that would close a cycle is counted as refused. */
static bool append_to_shared(strand_exception *e, strand_exception *pushed_aside)
{
    arch_carried_lock();
    forget_cause(pushed_aside, e);
    bool cycle = reaches(pushed_aside, e);
    e->omitted += cycle;
    bool taken = !cycle && append(e, pushed_aside);
    arch_carried_unlock();
    return taken;
}

/* Adds an exception that is marked as listed. */
static void take(strand_exception *e, strand_exception *pushed_aside)
{
    if (LIKELY(has_one_holder(e) ? append(e, pushed_aside) : append_to_shared(e, pushed_aside)))
        return;
    atomic_store_explicit(&pushed_aside->listed, false, memory_order_release); /* [EX5] */
    strand_exception_release(pushed_aside);
}

/* Whether e reports pushed_aside as its cause already. An interruption does not: when it leaves the scope, its cause or
 * another failure replaces it, and inherits only its ring. */
static bool is_reported_as_cause(const strand_exception *e, const strand_exception *pushed_aside)
{
    return pushed_aside == e->cause && !e->source;
}

void exception_suppress(strand_exception *e, strand_exception *pushed_aside)
{
    if (!pushed_aside)
        return;
    if (pushed_aside == e || is_reported_as_cause(e, pushed_aside) || /* [EX1] */
        atomic_exchange_explicit(&pushed_aside->listed, true, memory_order_acq_rel)) {
        strand_exception_release(pushed_aside);
        return;
    }
    take(e, pushed_aside);
}

void exception_inherit(strand_exception *e, strand_exception *from)
{
    arch_carried_lock();
    strand_exception *newest = from->ring;
    uint32_t omitted = from->omitted;
    from->ring = NULL;
    from->suppressed_count = 0;
    from->omitted = 0;
    arch_carried_unlock();
    strand_exception *s = newest ? newest->next : NULL;
    for (strand_exception *next; s; s = next) {
        next = s == newest ? NULL : s->next;
        take(e, s);
    }
    if (UNLIKELY(omitted)) {
        arch_carried_lock();
        e->omitted += omitted;
        arch_carried_unlock();
    }
}

void exception_name_first(strand_exception *e, const strand_exception *from)
{
    const strand_exception *first = strand_exception_suppressed(from, 0);
    size_t length = strlen(e->text);
    if (first)
        snprintf(e->text + length, sizeof e->text - length, "; suppressed: %s: %s", first->kind->name, first->text);
}

/* ---- listing ------------------------------------------------------------------------------------------------ */

/* Returns the next exception that the line's exception carries, the cause first, or NULL. */
static strand_exception *next_carried(struct carried *line, enum carried_as *as)
{
    const strand_exception *e = line->e;
    if (!line->at) {
        line->at = e;
        *as = CARRIED_CAUSE;
        if (e->cause)
            return e->cause;
    }
    *as = CARRIED_SUPPRESSED;
    if (!e->ring || line->at == e->ring || line->shown == CARRIED_WIDE)
        return NULL;
    line->at = line->at == e ? e->ring->next : line->at->next;
    line->shown++;
    return (strand_exception *)(uintptr_t)line->at;
}

static bool has_line(const struct carried *all, size_t count, const strand_exception *e)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].e == e)
            return true;
    return false;
}

/* Fills in the lines from the top, depth first, under the lock. Returns how many. */
static size_t list_lines(strand_exception *e, struct carried *all)
{
    size_t count = 1, at = 0;
    all[0] = (struct carried){.e = strand_exception_keep(e)};
    for (;;) {
        enum carried_as as;
        strand_exception *below = count < CARRIED_ROOM ? next_carried(&all[at], &as) : NULL;
        if (!below && at == 0)
            return count;
        if (!below) {
            at = all[at].up;
            continue;
        }
        bool again = has_line(all, count, below);
        all[count] = (struct carried){.e = strand_exception_keep(below),
                                      .up = (uint16_t)at,
                                      .depth = (uint16_t)(all[at].depth + 1),
                                      .as = (uint8_t)as,
                                      .again = again};
        if (!again)
            at = count;
        count++;
    }
}

static size_t count_all(strand_exception *e)
{
    size_t count = 0;
    walk_begin(e);
    for (strand_exception *at = e; at; at = walk_next(at))
        count++;
    walk_end(e);
    return count;
}

size_t carried_list(const strand_exception *listed, struct carried *all, size_t *more)
{
    strand_exception *e = (strand_exception *)(uintptr_t)listed;
    arch_carried_lock();
    size_t count = list_lines(e, all), total = count_all(e), shown = 0;
    for (size_t i = 0; i < count; i++) {
        if (all[i].again)
            continue;
        size_t unshown = all[i].e->suppressed_count - (size_t)all[i].shown;
        all[i].unshown = unshown + all[i].e->omitted;
        shown += 1 + unshown;
    }
    arch_carried_unlock();
    *more = total > shown ? total - shown : 0;
    return count;
}

void carried_over(struct carried *all, size_t count)
{
    while (count)
        strand_exception_release((strand_exception *)(uintptr_t)all[--count].e);
}

const strand_exception *strand_exception_suppressed(const strand_exception *e, size_t i)
{
    must_be_there(e, "exception", "strand_exception_suppressed");
    arch_carried_lock();
    const strand_exception *s = i < e->suppressed_count ? e->ring->next : NULL;
    while (s && i--)
        s = s->next;
    arch_carried_unlock();
    return s;
}
