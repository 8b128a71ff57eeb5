/*
 * Waiting for the end of a strand, and freeing a strand that has ended. The protocol block is in end.h.
 */
#include "end.h"

#include "exception.h"
#include "hook.h"

#include "../sched/switch.h"

/* ---- waiting for an end ---------------------------------------------------------------------------------- */

void ends_lock(struct thread *thread, struct cb *c, uintptr_t *before)
{
    *before = atomic_load_explicit(&c->ends, memory_order_relaxed);
    for (;;) {
        if (*before & ENDS_LOCK) {
            platform_await(thread);
            *before = atomic_load_explicit(&c->ends, memory_order_relaxed);
        } else if (swap_ends(&c->ends, before, *before | ENDS_LOCK, thread->concurrent)) { /* [LK1] [E5] */
            return;
        }
    }
}

bool ends_link_slow_(struct thread *thread, struct cb *c, struct wait_node *node)
{
    uintptr_t ends = atomic_load_explicit(&c->ends, memory_order_acquire); /* [E5] */
    for (;;) {
        if (UNLIKELY(ends & (ENDS_OVER | ENDS_LOCK))) {
            if (ends & ENDS_OVER)
                return false;
            platform_await(thread);
            ends = atomic_load_explicit(&c->ends, memory_order_acquire); /* [E5] */
            continue;
        }
        node->next = (struct wait_node *)(ends & ~(uintptr_t)ENDS_BITS);
        if (LIKELY(swap_ends(&c->ends, &ends, (uintptr_t)node | (ends & ENDS_BITS), thread->concurrent))) /* [E5] */
            return true;
    }
}

/* A value of wait_node.linked: link.prev is set. */
enum { LINKED_BACK = 2 };

/* Under ENDS_LOCK: sets link.prev of every node that was linked since the last time [E4]. */
static void link_back(struct wait_node *first)
{
    struct wait_node *before = NULL;
    for (struct wait_node *at = first; at; before = at, at = at->next) {
        at->link.prev = before ? &before->link : NULL;
        if (atomic_load_explicit(&at->linked, memory_order_relaxed) == LINKED_BACK)
            break;
        atomic_store_explicit(&at->linked, LINKED_BACK, memory_order_relaxed);
    }
}

/* Under ENDS_LOCK, and not over: returns the list without the node, which is in it. */
static uintptr_t cut_out(uintptr_t ends, struct wait_node *node)
{
    link_back((struct wait_node *)(ends & ~(uintptr_t)ENDS_BITS));
    struct link *before = node->link.prev;
    if (node->next)
        node->next->link.prev = before;
    if (!before)
        return (uintptr_t)node->next | (ends & ENDS_BITS);
    CONTAINER(before, struct wait_node, link)->next = node->next;
    return ends;
}

void ends_unlink(struct thread *thread, strand handle, struct wait_node *node)
{
    struct cb *c = handle_ref_cb(thread, handle, "strand_wait");
    if (c) {
        uintptr_t ends;
        ends_lock(thread, c, &ends);
        if (!(ends & ENDS_OVER)) {
            ends = cut_out(ends, node);
            atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
        }
        atomic_store_explicit(&c->ends, ends, memory_order_release); /* [E5] */
        handle_unref_cb(thread, c);
    }
    while (atomic_load_explicit(&node->linked,
                                memory_order_acquire)) /* [E2] the end is under way, and releases the node */
        platform_await(thread);
}

/* Retracts the wait. Returns false if it was claimed. */
static bool stays(struct thread *thread, struct cb *me, struct fibre *first)
{
    if (!wait_retract(thread, me))
        return false;
    me->blocked = BLOCKED_NOT;
    if (first)
        thread_push(thread, first, PUSH_WOKEN);
    return true;
}

/* After the resumption: returns true if the end won; otherwise makes sure that the node is released. */
static bool won(struct thread *thread, struct cb *me, strand handle, bool linked)
{
    if (LIKELY(wait_over(me) == WAIT_WON))
        return true;
    if (linked)
        ends_unlink(thread, handle, &me->wait.node); /* [W2] */
    return false;
}

static struct thread *park(struct thread *thread, struct fibre *first)
{
    return first ? switch_to(thread, first) : thread_park(thread);
}

COLD bool end_wait_undo(struct thread **thread, struct cb *me, strand handle, struct fibre *first, bool linked)
{
    struct wait_node *node = &me->wait.node;
    if (!linked)
        atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
    if (stays(*thread, me, first)) {
        if (linked)
            ends_unlink(*thread, handle, node);
        return !linked;
    }
    *thread = park(*thread, first); /* the wait was claimed */
    return won(*thread, me, handle, linked);
}

bool end_wait(struct thread **thread, struct cb *me, struct cb *c, strand handle, uint32_t floor, struct fibre *first,
              bool has_ref)
{
    struct wait_node *node = &me->wait.node;
    node->epoch = wait_arm(*thread, me, floor);
    bool linked = ends_link(*thread, c, node);
    if (has_ref)
        handle_unref_cb(*thread, c);
    if (!linked || atomic_load_explicit(&me->due, memory_order_seq_cst) > floor) /* [W4] */
        return end_wait_undo(thread, me, handle, first, linked);
    *thread = park(*thread, first);
    return won(*thread, me, handle, true);
}

void end_await(struct thread *thread, struct cb *child)
{
    while (child && !ended(child))
        platform_await(thread);
}

/* ---- giving back -------------------------------------------------------------------------------------------- */

static const char *made_of_child(const struct hook *hook, char *buffer, size_t size)
{
    return misuse_made_strand(hook->object, buffer, size);
}

static void drop(struct cb *child)
{
    struct hook hook HOOK = {.name = "strand_attr.drop", .made = made_of_child, .object = child};
    hook_enter(&hook);
    child->extra->drop(child->result);
    hook_over(&hook);
}

COLD void end_retire(struct thread *thread, struct cb *child)
{
    struct extra *extra = child->extra;
    if (extra && extra->drop && child->outcome == OUTCOME_VALUE)
        drop(child);
    strand_exception_release(cb_take_exception(child));
    cb_retire(thread, child);
}
