/*
 * Once. Page: docs/protocols/locks.md; the protocol block is in gate.h.
 *
 * STATE     the gate's value: 0; the control block of the strand that runs the function; or DONE: then `result` is
 *           valid.
 * PROTOCOL  the right to run ends with the run. If the function returns, all waiters go on. If it throws, the first
 *           waiter gets the right, which node->result signals to it.
 */
#include "gate.h"

#include "../../include/strand/sync.h"
#include "../strand/escape.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

enum { DONE = 1, RUNS_NEXT = 1 };

struct once {
    struct gate gate;
    void *result;
};
_Static_assert(sizeof(struct once) <= sizeof(strand_once), "a once is the user's object");

struct attempt {
    struct once *once;
    void *result;
    bool done;
};

static void done(struct thread *thread, struct attempt *attempt)
{
    struct gate *gate = &attempt->once->gate;
    struct batch batch;
    batch_init(&batch);
    (void)gate_lock(thread, gate);
    attempt->once->result = attempt->result;
    gate_claim_all(thread, gate, &batch);
    gate_unlock(gate, DONE);
    batch_deliver(thread, &batch);
}

static void failed(struct thread *thread, struct attempt *attempt)
{
    struct gate *gate = &attempt->once->gate;
    (void)gate_lock(thread, gate);
    struct wait_node *next = gate_claim_next(thread, gate);
    if (next)
        next->result = RUNS_NEXT;
    gate_unlock(gate, next ? (uintptr_t)next->waiter : 0);
    if (next)
        thread_ready(thread, &next->waiter->member);
}

static void attempt_over(struct attempt *attempt)
{
    struct thread *thread = must_be_strand("strand_once_run");
    if (attempt->done)
        done(thread, attempt);
    else
        failed(thread, attempt);
}

static void *run(struct once *once, strand_fn *fn, void *arg)
{
    struct attempt attempt __attribute__((cleanup(attempt_over))) = {.once = once};
    attempt.result = fn(arg);
    must_not_escape(must_be_strand("strand_once_run"), attempt.result, "the result", "strand_once_run");
    attempt.done = true;
    return attempt.result;
}

/* Returns true if the caller has to run the function, false if it is done. */
static bool must_run(struct thread *thread, struct cb *me, struct once *once)
{
    must_not_escape_object(thread, once, "once", "strand_once_run");
    for (;;) {
        uint64_t value = gate_lock(thread, &once->gate);
        if (UNLIKELY(value == (uintptr_t)me)) {
            gate_unlock(&once->gate, value); /* a misuse hook may read the object */
            MISUSE_AT("strand_once_run", "once", (const void *)once,
                      "it is called from within the function that it runs, and would wait for itself: call the "
                      "function directly");
        }
        if (value == 0 || value == DONE) {
            gate_unlock(&once->gate, value ? value : (uintptr_t)me);
            return !value;
        }
        gate_check_run(thread, &once->gate, (struct cb *)(uintptr_t)value, "strand_once_run");
        if (gate_wait(&thread, me, &once->gate, value, BLOCKED_ONCE, 0, NULL))
            return me->wait.node.result == RUNS_NEXT;
    }
}

void *strand_once_run(strand_once *handle, strand_fn *fn, void *arg)
{
    struct once *once = (struct once *)handle;
    struct thread *thread = must_be_strand("strand_once_run");
    struct cb *me = current_of(thread);
    must_be_there(once, "once", "strand_once_run");
    must_be_there((const void *)(uintptr_t)fn, "function", "strand_once_run");
    may_block(thread, me, "strand_once_run");
    if (UNLIKELY(gate_value(gate_read(&once->gate)) != DONE)) {
        if (must_run(thread, me, once))
            return run(once, fn, arg);
        return once->result;
    }
    void *result = once->result;
    yield_if_asked(thread);
    return result;
}

bool strand_once_done(const strand_once *handle)
{
    (void)must_be_strand("strand_once_done");
    must_be_there(handle, "once", "strand_once_done");
    return gate_value(gate_read(&((struct once *)(uintptr_t)handle)->gate)) == DONE;
}
