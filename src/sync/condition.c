/*
 * Conditions. Page: docs/protocols/locks.md; the protocol block is in gate.h.
 *
 * PROTOCOL  a waiter enqueues at the condition's gate before it unlocks the mutex: so a strand that changes something
 *           under the mutex and then signals finds it. The waiter locks the mutex again whatever woke it, and only then
 *           throws.
 * STATE     the gate's value is unused.
 * NOT DONE  moving a signalled waiter straight into the mutex's queue: all waiters would have to use the same mutex.
 */
#include "mutex.h"

#include "../strand/escape.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

_Static_assert(sizeof(struct gate) <= sizeof(strand_condition), "a condition is the user's object");

static struct gate *gate_of(strand_condition *condition)
{
    return (struct gate *)(void *)condition;
}

void strand_condition_wait(strand_condition *condition, strand_mutex *handle)
{
    struct gate *gate = gate_of(condition);
    struct mutex *mutex = mutex_of(handle);
    struct thread *thread = must_be_strand("strand_condition_wait");
    struct cb *me = current_of(thread);
    must_be_there(gate, "condition", "strand_condition_wait");
    must_be_there(mutex, "mutex", "strand_condition_wait");
    if (UNLIKELY(!mutex_is_held_by(mutex, me)))
        mutex_not_held(thread, mutex, "strand_condition_wait");
    must_not_escape_object(thread, gate, "condition", "strand_condition_wait");
    may_block(thread, me, "strand_condition_wait");
    uint64_t value = gate_lock(thread, gate);
    gate_stand(thread, me, gate, value, BLOCKED_CONDITION, 0, own_of(me)->floor);
    mutex_release(thread, me, mutex);
    bool signalled = gate_park(&thread, me, gate, own_of(me)->floor, NULL);
    mutex_lock_again(&thread, me, mutex, __builtin_return_address(0));
    if (!signalled && interrupted_here(me))
        interrupt_throw(thread, me, 0);
}

/* Whether the lock is worth taking. */
static bool is_waited_for(struct gate *gate)
{
    return atomic_load_explicit(&gate->word, memory_order_acquire) & (GATE_WAITERS | GATE_LOCK); /* [G4] */
}

void strand_condition_signal(strand_condition *condition)
{
    struct gate *gate = gate_of(condition);
    struct thread *thread = must_be_strand("strand_condition_signal");
    must_be_there(gate, "condition", "strand_condition_signal");
    if (!is_waited_for(gate))
        return;
    must_not_escape_object(thread, gate, "condition", "strand_condition_signal");
    uint64_t value = gate_lock(thread, gate);
    struct wait_node *first = gate_claim_next(thread, gate);
    gate_unlock(gate, value);
    if (first)
        thread_ready(thread, &first->waiter->member);
}

void strand_condition_broadcast(strand_condition *condition)
{
    struct gate *gate = gate_of(condition);
    struct thread *thread = must_be_strand("strand_condition_broadcast");
    struct batch batch;
    must_be_there(gate, "condition", "strand_condition_broadcast");
    if (!is_waited_for(gate))
        return;
    must_not_escape_object(thread, gate, "condition", "strand_condition_broadcast");
    batch_init(&batch);
    uint64_t value = gate_lock(thread, gate);
    gate_claim_all(thread, gate, &batch);
    gate_unlock(gate, value);
    batch_deliver(thread, &batch);
}
