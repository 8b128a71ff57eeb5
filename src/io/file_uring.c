/*
 * Calls on files that the kernel makes, by the ring of the strand's pool (sched/pool_uring.h). The protocol block is in
 * file.h.
 */
#include "file.h"

#include "outside.h"

#include "../sched/pool_uring.h"
#include "../sched/thread.h"
#include "../strand/interrupt.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the kernel's side: under the ring's lock ----------------------------------------------------------------- */

static struct file_op *op_of(struct uring_entry *entry)
{
    return CONTAINER(entry, struct file_op, entry);
}

/* uring_entry.end */
static struct member *ended(struct uring_entry *entry, int32_t result)
{
    struct file_op *op = op_of(entry);
    struct cb *waiter = op->node.waiter;
    op->result = result;
    op->over = true;
    return !entry->drop && wait_claim(&op->node, true) ? &waiter->member : NULL; /* the op may be gone */
}

/* uring_entry.drop of an op that was left. */
static void drop(struct uring_entry *entry)
{
    free(op_of(entry));
}

/* ---- the strand's side ---------------------------------------------------------------------------------------- */

static struct arch_uring_call call_of(const struct file_op *op)
{
    struct arch_uring_call call = {.kind = (enum arch_uring_kind)op->kind,
                                   .fd = op->fd,
                                   .flags = op->flags,
                                   .offset = op->offset,
                                   .size = op->size};
    if (op->kind == ARCH_URING_READ)
        call.pointer = op->out;
    else if (op->kind == ARCH_URING_WRITE) {
        call.pointer = op->parts;
        call.size = op->count;
    }
    return call;
}

/* Waits for the end of the op. Returns false if the wait was interrupted. */
static bool await(struct thread **thread, struct cb *me, struct pool *pool, struct file_op *op, uint32_t floor)
{
    wait_because(*thread, me, BLOCKED_FILE, 0);
    uint32_t epoch = wait_arm(*thread, me, floor);
    pool_uring_lock(*thread, pool);
    op->node.epoch = epoch;
    bool over = op->over;
    pool_uring_unlock(*thread, pool);
    return outside_await(thread, me, over, floor);
}

/* The call has not happened: the kernel can't make it without waiting, not for this file, or not any more. */
static bool is_for_a_thread(int64_t result)
{
    return result == -EAGAIN || result == -EOPNOTSUPP || result == -ECANCELED || result == -EINVAL;
}

/* Takes the op back, or leaves it if that may be. Returns whether the strand need not wait for it. */
static bool let_go(struct thread *thread, struct pool *pool, struct file_op *op, bool leaves, enum file_fate *fate)
{
    pool_uring_lock(thread, pool);
    if (op->over)
        *fate = FILE_RAN;
    else if (pool_uring_take_back(pool, &op->entry)) /* [FI1] */
        *fate = FILE_INTERRUPTED;
    else if (leaves && pool_uring_has_begun(pool, &op->entry)) { /* [FI2] */
        op->entry.drop = drop;
        *fate = FILE_LEFT;
    } else
        *fate = FILE_NOT_RUN;
    pool_uring_unlock(thread, pool);
    return *fate != FILE_NOT_RUN;
}

/* Let the op go, or wait for its end. A thread may be about to begin it, and may find that the kernel has no memory for
 * that: so this is no wait for the kernel before the kernel has the op. */
static enum file_fate settle(struct thread **thread, struct cb *me, struct pool *pool, struct file_op *op, bool leaves)
{
    enum file_fate fate;
    while (!let_go(*thread, pool, op, leaves, &fate)) {
        pool_uring_lock(*thread, pool);
        bool begun = pool_uring_has_begun(pool, &op->entry);
        pool_uring_unlock(*thread, pool);
        if (begun && !leaves) {
            while (!await(thread, me, pool, op, WAIT_FLOOR_MOST))
                ;
            break;
        }
        *thread = thread_yield(*thread);
    }
    return fate;
}

/* The strand is interrupted. Returns how the op ends for it. */
static enum file_fate give_up(struct thread **thread, struct cb *me, struct pool *pool, struct file_op *op, bool leaves)
{
    enum file_fate fate;
    if (!let_go(*thread, pool, op, false, &fate)) {
        if (op->kind != ARCH_URING_ALLOCATE) /* half of which may have happened */
            pool_uring_cancel(*thread, pool, &op->entry);
        fate = settle(thread, me, pool, op, leaves);
    }
    if (fate == FILE_INTERRUPTED || fate == FILE_LEFT)
        return fate;
    return is_for_a_thread(op->result) || op->result == -EINTR ? FILE_INTERRUPTED : FILE_RAN;
}

static enum file_fate run_once(struct thread **thread, struct cb *me, struct pool *pool, struct file_op *op,
                               bool leaves)
{
    const struct arch_uring_call call = call_of(op);
    op->over = false;
    op->node = (struct wait_node){.waiter = me};
    op->entry = (struct uring_entry){.end = ended};
    if (pool_uring_queue(*thread, pool, &call, &op->entry))
        return FILE_NOT_RUN;
    while (!await(thread, me, pool, op, own_of(me)->floor))
        if (interrupted_here(me))
            return give_up(thread, me, pool, op, leaves);
    return is_for_a_thread(op->result) ? FILE_NOT_RUN : FILE_RAN;
}

enum file_fate file_uring_run(struct thread **thread, struct cb *me, struct file_op *op, bool leaves)
{
    struct pool *pool = (*thread)->pool;
    enum file_fate fate;
    if (op->kind == FILE_BY_THREAD || !pool_uring_can(pool, (enum arch_uring_kind)op->kind))
        return FILE_NOT_RUN;
    do
        fate = run_once(thread, me, pool, op, leaves);
    while (fate == FILE_RAN && op->result == -EINTR);
    return fate;
}
