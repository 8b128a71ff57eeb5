/*
 * Barriers. Page: docs/protocols/locks.md; the protocol block is in gate.h.
 *
 * STATE     the gate's value: how many strands have come and are queued. `parties`: how many open the barrier.
 * PROTOCOL  the last strand to come needs the waits of all others, or of none, since an interrupted strand has not
 *           come. It therefore reserves each wait first (wait_reserve). If one is over already, it releases the
 *           reservations, and waits too; otherwise it claims them all.
 * TESTED BY tests/models/barrier.pml, tests/spec/barrier.c.
 */
#include "gate.h"

#include "../../include/strand/sync.h"
#include "../strand/escape.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

_Static_assert(offsetof(struct barrier, parties) == 3 * sizeof(uint64_t), "as the initialiser has it");
_Static_assert(sizeof(struct barrier) <= sizeof(strand_barrier), "a barrier is the user's object");

static const struct gate_rules rules = {NULL, 1};

/* Under the lock: reserve all waits. Returns false if one was over already; its node is then out of the queue. */
static bool hold_all(struct thread *thread, struct gate *gate, uint64_t *value)
{
    bool all = true;
    for (struct link *link = gate->waiters.next, *next; link != &gate->waiters; link = next) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        next = link->next;
        gate_check_run(thread, gate, node->waiter, NULL);
        if (wait_reserve(node, thread->concurrent))
            continue;
        gate_unlink(node);
        --*value;
        all = false;
    }
    return all;
}

static void claim_all(struct gate *gate, struct batch *batch)
{
    while (gate_is_waited_for(gate)) {
        struct wait_node *node = gate_first(gate);
        gate_unlink(node);
        wait_reserved_claim(node);
        batch_add(batch, &node->waiter->member);
    }
}

/* Release the reservations. A strand that was interrupted meanwhile leaves the queue itself. */
static void release_all(struct thread *thread, struct gate *gate, struct batch *batch)
{
    for (struct link *link = gate->waiters.next; link != &gate->waiters; link = link->next)
        batch_add(batch, wait_reserved_release(CONTAINER(link, struct wait_node, link), thread->concurrent));
}

/* Returns true if the caller is the last, and the others go on. Otherwise the caller is queued. */
static bool come(struct thread *thread, struct cb *me, struct barrier *barrier)
{
    struct gate *gate = &barrier->gate;
    struct batch batch;
    batch_init(&batch);
    uint64_t value = gate_lock(thread, gate);
    bool last = value + 1 >= barrier->parties;
    if (last && !hold_all(thread, gate, &value)) {
        release_all(thread, gate, &batch);
        last = false;
    }
    if (last) {
        claim_all(gate, &batch);
        gate_unlock(gate, 0);
    } else {
        gate_stand(thread, me, gate, value + 1, BLOCKED_BARRIER, 0, own_of(me)->floor);
    }
    batch_deliver(thread, &batch);
    return last;
}

bool strand_barrier_wait(strand_barrier *handle)
{
    struct barrier *barrier = (struct barrier *)handle;
    struct thread *thread = must_be_strand("strand_barrier_wait");
    struct cb *me = current_of(thread);
    must_be_there(barrier, "barrier", "strand_barrier_wait");
    if (UNLIKELY(!barrier->parties))
        MISUSE_AT("strand_barrier_wait", "barrier", barrier,
                  "the barrier is for 0 strands: set it to STRAND_BARRIER_INIT(n)");
    must_not_escape_object(thread, barrier, "barrier", "strand_barrier_wait");
    may_block(thread, me, "strand_barrier_wait");
    while (!come(thread, me, barrier)) {
        if (LIKELY(gate_park(&thread, me, &barrier->gate, own_of(me)->floor, &rules)))
            return false;
        if (interrupted_here(me))
            interrupt_throw(thread, me, 0);
    }
    yield_if_asked(thread);
    return true;
}
