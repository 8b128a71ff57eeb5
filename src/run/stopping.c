/*
 * How strands notice that the run is being shut down. The protocol block is in shutdown.h.
 */
#include "run_blocked.h"
#include "shutdown.h"

#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"
#include "../sync/source.h"

/* Adds the node of an armed strand to the waiters. Returns false if the shut-down has begun. */
static bool link_waiter(struct thread *thread, struct wait_node *node)
{
    struct shutdown *shutdown = &run_of(thread)->shutdown;
    spin_lock(&shutdown->lock, thread);
    bool begun = atomic_load_explicit(&shutdown->begun, memory_order_relaxed); /* [SD2] */
    if (!begun)
        list_push_back(&shutdown->waiters, &node->link);
    spin_unlock(&shutdown->lock);
    return !begun;
}

/* Removes the node from the waiters. No other thread uses the node after the return. */
static void unlink_waiter(struct thread *thread, struct wait_node *node)
{
    struct shutdown *shutdown = &run_of(thread)->shutdown;
    spin_lock(&shutdown->lock, thread);
    if (node->link.next)
        list_remove(&node->link);
    spin_unlock(&shutdown->lock);
}

/* ---- alone --------------------------------------------------------------------------------------------- */

bool strand_stopping(void)
{
    return shutdown_is_asked_for(run_of(must_be_strand("strand_stopping")));
}

void strand_wait_stopping(void)
{
    struct thread *thread = must_be_strand("strand_wait_stopping");
    struct cb *me = current_of(thread);
    may_block(thread, me, "strand_wait_stopping");
    interrupt_put_off_coming(me); /* this wait can't begin again after an interruption */
    struct wait_node *node = &me->wait.node;
    wait_because(thread, me, BLOCKED_STOPPING, 0);
    node->index = 0;
    node->epoch = wait_arm(thread, me, own_of(me)->floor);
    bool linked = link_waiter(thread, node), happened = !linked;
    if ((happened || interrupted(me)) && wait_retract(thread, me)) { /* [W4] */
        me->blocked = BLOCKED_NOT;
    } else {
        quiescent_outside_begin(thread);
        thread = thread_park(thread);
        quiescent_outside_end(thread);
        happened = wait_over(me) == WAIT_WON;
    }
    if (linked)
        unlink_waiter(thread, node);
    if (!happened && interrupted(me))
        interrupt_throw(thread, me, 0);
}

/* ---- as a case of a select ------------------------------------------------------------------------------- */

static enum answer stopping_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    bool waits = node ? link_waiter(thread, node) : !shutdown_is_asked_for(run_of(thread));
    if (node && waits)
        atomic_store_explicit(&node->linked, 1, memory_order_relaxed);
    return waits ? SOURCE_NOT : source_settle(thread, me, c, node);
}

static enum answer stopping_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)me, (void)won;
    if (atomic_load_explicit(&node->linked, memory_order_relaxed))
        unlink_waiter(thread, node);
    atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
    c->result = 0;
    return SOURCE_DONE;
}

static const struct strand_source_ source_stopping = {
    .stand = stopping_stand, .over = stopping_over, .outside = true, .blocked = BLOCKED_STOPPING};

strand_case strand_on_stopping(void)
{
    return (strand_case){.source = &source_stopping};
}
