/*
 * Waiting at a gate, and leaving it. The protocol block is in gate.h.
 */
#include "gate.h"

#include "../strand/escape.h"
#include "../strand/exception.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <stdio.h>

/* ---- two runs -------------------------------------------------------------------------------------------- */

/* The function that a waiter of this gate has called. */
static COLD const char *function_of(const struct cb *c)
{
    switch (c->blocked) {
    case BLOCKED_MUTEX:
        return "strand_mutex_lock";
    case BLOCKED_CONDITION:
        return "strand_condition_wait";
    case BLOCKED_READ_LOCK:
        return "strand_rwlock_read";
    case BLOCKED_WRITE_LOCK:
        return "strand_rwlock_write";
    case BLOCKED_SEMAPHORE:
        return "strand_semaphore_acquire";
    case BLOCKED_EVENT:
        return "strand_event_wait";
    case BLOCKED_BARRIER:
        return "strand_barrier_wait";
    case BLOCKED_ONCE:
        return "strand_once_run";
    case BLOCKED_GROUP:
        return "strand_group_wait";
    default:
        return "strand_select";
    }
}

COLD void gate_of_two_runs_(struct gate *gate, struct cb *other, const char *function)
{
    char made[160];
    snprintf(made, sizeof made, "strand '%s' #%llu of another run %s", cb_name(other), (unsigned long long)cb_id(other),
             function ? "holds it" : "waits for it");
    gate_unlock(gate, gate_value(atomic_load_explicit(&gate->word, memory_order_relaxed)));
    misuse(function ? function : function_of(other), made,
           "the object at %p is used by two runs of the process, but belongs to one", (void *)gate);
}

/* ---- letting pass ---------------------------------------------------------------------------------------- */

uint64_t gate_settle(struct thread *thread, struct gate *gate, uint64_t value, const struct gate_rules *rules,
                     struct batch *batch)
{
    while (gate_is_waited_for(gate)) {
        struct wait_node *node = gate_first(gate);
        uint64_t after = value;
        if (!rules->admit(&after, (uintptr_t)node->value)) {
            if (!gate_is_gone(node))
                break;
            gate_unlink(node);
        } else if (gate_claim_first(thread, gate)) {
            value = after;
            batch_add(batch, &node->waiter->member);
        }
    }
    return value;
}

void gate_change(struct thread *thread, struct gate *gate, uint64_t by, const struct gate_rules *rules)
{
    struct batch batch;
    batch_init(&batch);
    uint64_t value = gate_lock(thread, gate) + by;
    gate_unlock(gate, gate_settle(thread, gate, value, rules, &batch));
    batch_deliver(thread, &batch);
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

void gate_stand(struct thread *thread, struct cb *me, struct gate *gate, uint64_t value, unsigned why, uintptr_t want,
                uint32_t floor)
{
    struct wait_node *node = &me->wait.node;
    node->value = (void *)want;
    node->result = 0;
    wait_because(thread, me, why, (uint64_t)(uintptr_t)gate);
    node->epoch = wait_arm(thread, me, floor);
    gate_link(thread, gate, node);
    gate_unlock(gate, value);
}

void gate_leave(struct thread *thread, struct gate *gate, struct wait_node *node, const struct gate_rules *rules)
{
    struct batch batch;
    batch_init(&batch);
    uint64_t value = gate_lock(thread, gate);
    if (atomic_load_explicit(&node->linked, memory_order_relaxed)) {
        gate_unlink(node);
        if (rules)
            value -= rules->each;
        if (rules && rules->admit)
            value = gate_settle(thread, gate, value, rules, &batch);
    }
    gate_unlock(gate, value);
    batch_deliver(thread, &batch);
}

bool gate_park(struct thread **thread, struct cb *me, struct gate *gate, uint32_t floor, const struct gate_rules *rules)
{
    bool stay = atomic_load_explicit(&me->due, memory_order_seq_cst) > floor; /* [W4] */
    if (UNLIKELY(stay) && wait_retract(*thread, me)) {
        me->blocked = BLOCKED_NOT;
    } else {
        *thread = thread_park(*thread);
        if (LIKELY(wait_over(me) == WAIT_WON))
            return true;
    }
    gate_leave(*thread, gate, &me->wait.node, rules); /* [W2] */
    return false;
}

bool gate_wait(struct thread **thread, struct cb *me, struct gate *gate, uint64_t value, unsigned why, uintptr_t want,
               const struct gate_rules *rules)
{
    gate_stand(*thread, me, gate, value, why, want, own_of(me)->floor);
    if (LIKELY(gate_park(thread, me, gate, own_of(me)->floor, rules)))
        return true;
    if (interrupted_here(me))
        interrupt_throw(*thread, me, 0);
    return false;
}

/* ---- by rules alone -------------------------------------------------------------------------------------- */

void gate_enter(struct thread *thread, struct cb *me, struct gate *gate, unsigned why, uintptr_t want,
                const struct gate_rules *rules)
{
    bool passed = false;
    while (!passed) {
        struct batch batch;
        batch_init(&batch);
        uint64_t value = gate_lock(thread, gate);
        value = gate_settle(thread, gate, value, rules, &batch); /* waiters may have gone */
        passed = !gate_is_waited_for(gate) && rules->admit(&value, want);
        if (passed)
            gate_unlock(gate, value);
        else
            gate_stand(thread, me, gate, value, why, want, own_of(me)->floor);
        batch_deliver(thread, &batch);
        if (passed)
            return;
        passed = gate_park(&thread, me, gate, own_of(me)->floor, rules);
        if (!passed && interrupted_here(me))
            interrupt_throw(thread, me, 0);
    }
}

bool gate_try(struct thread *thread, struct gate *gate, uintptr_t want, const struct gate_rules *rules)
{
    struct batch batch;
    batch_init(&batch);
    uint64_t value = gate_lock(thread, gate);
    value = gate_settle(thread, gate, value, rules, &batch);
    bool passed = !gate_is_waited_for(gate) && rules->admit(&value, want);
    gate_unlock(gate, value);
    batch_deliver(thread, &batch);
    return passed;
}

/* ---- as a case of a select ------------------------------------------------------------------------------- */

/* The strand is armed. */
static enum answer pass_or_link(struct thread *thread, struct cb *me, struct gate *gate, struct wait_node *node,
                                const struct gate_rules *rules)
{
    struct batch batch;
    enum answer answer = SOURCE_NOT;
    batch_init(&batch);
    uint64_t value = gate_lock(thread, gate);
    value = gate_settle(thread, gate, value, rules, &batch);
    uint64_t after = value;
    if (!gate_is_waited_for(gate) && rules->admit(&after, (uintptr_t)node->value))
        answer = wait_retract(thread, me) ? SOURCE_DONE : SOURCE_LOST;
    if (answer == SOURCE_NOT)
        gate_link(thread, gate, node);
    gate_unlock(gate, answer == SOURCE_DONE ? after : value);
    batch_deliver(thread, &batch);
    return answer;
}

enum answer gate_stand_case(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node,
                            uintptr_t want, const struct gate_rules *rules)
{
    c->result = 0;
    must_not_escape_object(thread, gate_in(c), "object of a case", "strand_select");
    if (!node)
        return gate_try(thread, gate_in(c), want, rules) ? SOURCE_DONE : SOURCE_NOT;
    node->value = (void *)want;
    return pass_or_link(thread, me, gate_in(c), node, rules);
}

enum answer gate_over_case(struct thread *thread, strand_case *c, struct wait_node *node, bool won,
                           const struct gate_rules *rules)
{
    if (!won)
        gate_leave(thread, gate_in(c), node, rules);
    c->result = 0;
    return SOURCE_DONE;
}
