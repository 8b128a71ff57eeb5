/*
 * Operations on descriptors: waiting, its order, and wake-ups. The protocol block is in descriptor.h.
 */
#include "descriptor.h"

#include "../sched/thread.h"
#include "../strand/interrupt.h"
#include "../strand/wait.h"

#include <errno.h>

static const uint32_t event_of[SIDES] = {[SIDE_IN] = ARCH_IN, [SIDE_OUT] = ARCH_OUT, [SIDE_END] = ARCH_END};

/* ---- the queue of a side, under the lock ------------------------------------------------------------------ */

void side_append(struct side *side, struct wait_node *node, bool in_front)
{
    if (in_front)
        list_push_front(&side->queue, &node->link);
    else
        list_push_back(&side->queue, &node->link);
    atomic_store_explicit(&node->linked, 1, memory_order_relaxed);
}

void side_cut_out(struct wait_node *node)
{
    if (!atomic_load_explicit(&node->linked, memory_order_relaxed))
        return;
    list_remove(&node->link);
    atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
}

/* Claim the first waiter that can still be woken. NULL: there is none. */
static struct member *claim_first(struct thread *thread, struct side *side)
{
    struct member *member = NULL;
    struct link *link;
    while (!member && (link = list_pop_front(&side->queue))) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
        if (wait_claim(node, thread->concurrent))
            member = &node->waiter->member;
    }
    return member;
}

struct member *side_pass_on(struct thread *thread, struct side *side)
{
    struct member *member = NULL;
    if (!side->baton && atomic_load_explicit(&side->ready, memory_order_relaxed))
        member = claim_first(thread, side);
    if (member)
        side->baton = true;
    side->reported = false;
    side_mirror(side);
    return member;
}

/* ---- events ---------------------------------------------------------------------------------------------- */

void descriptor_report(struct thread *thread, struct descriptor *d, uint32_t events, struct batch *woken)
{
    descriptor_lock(thread, d);
    if (events & ARCH_END)
        d->ended = true;
    for (int i = 0; i < SIDES; i++) {
        struct side *side = &d->sides[i];
        if (!(events & event_of[i]))
            continue;
        uint32_t count = atomic_load_explicit(&side->events, memory_order_relaxed);
        atomic_store_explicit(&side->events, count + 1, memory_order_release); /* [D2] */
        atomic_store_explicit(&side->ready, true, memory_order_relaxed);
        struct member *waiter = side_pass_on(thread, side);
        side->reported = waiter && !(events & ARCH_END); /* [D8] */
        batch_add(woken, waiter);
    }
    descriptor_unlock(thread, d);
}

void descriptor_fire(struct thread *thread, struct polled *polled, uint32_t events)
{
    struct batch woken;
    struct member *member;
    batch_init(&woken);
    descriptor_report(thread, CONTAINER(polled, struct descriptor, polled), events, &woken);
    while ((member = batch_take(&woken)))
        pool_deliver(thread, member);
}

/* ---- operations ------------------------------------------------------------------------------------------ */

/* Before the operation has entered, or after it has left: op->d is NULL. */
static int enter(struct operation *op, int fd, enum side_name side)
{
    struct descriptor *d;
    int error = descriptor_enter(&op->thread, fd, &d);
    while (!error && UNLIKELY(atomic_load_explicit(&d->compared, memory_order_relaxed)) &&
           descriptor_is_replaced(op->thread, d) > 0) { /* [D4] */
        descriptor_replaced(op->thread, d);
        error = descriptor_enter(&op->thread, fd, &d);
    }
    if (error)
        return error;
    op->d = d;
    op->side = &d->sides[side];
    return 0;
}

static void pass_baton_on(struct operation *op)
{
    descriptor_lock(op->thread, op->d);
    op->side->baton = op->baton = false;
    struct member *next =
        descriptor_is_probed(op->thread, op->d) ? NULL : side_pass_on(op->thread, op->side); /* [D3] */
    side_mirror(op->side);
    descriptor_unlock(op->thread, op->d);
    if (next)
        thread_ready(op->thread, next);
}

void operation_step_aside(struct operation *op)
{
    if (op->baton)
        pass_baton_on(op);
}

void operation_overtakes(struct operation *op)
{
    if (op->baton || !atomic_load_explicit(&op->side->waited, memory_order_relaxed))
        return;
    descriptor_lock(op->thread, op->d);
    op->side->reported = false; /* [D8] */
    descriptor_unlock(op->thread, op->d);
}

/* Another object is behind the number: the operation, which has not waited for the previous object, starts again on the
 * new one. Returns 0 or a negated errno code. */
static int begin_again(struct operation *op)
{
    struct descriptor *d = op->d;
    enum side_name side = (enum side_name)(op->side - d->sides);
    if (op->baton)
        pass_baton_on(op);
    op->waited = false;
    op->d = NULL;
    descriptor_replaced(op->thread, d);
    return enter(op, d->fd, side);
}

int operation_enter(struct operation *op, int fd, enum side_name side, const char *function)
{
    struct thread *thread = must_be_strand(function);
    *op = (struct operation){.thread = thread, .me = current_of(thread), .function = function};
    may_block(thread, op->me, function);
    int error = enter(op, fd, side);
    if (UNLIKELY(error))
        yield_if_asked(op->thread);
    return error;
}

int operation_enter_also(struct operation *op, int fd, enum side_name side)
{
    return enter(op, fd, side);
}

void operation_leave(struct operation *op)
{
    if (UNLIKELY(!op->d))
        return;
    if (UNLIKELY(op->baton))
        pass_baton_on(op);
    (void)descriptor_leave(op->thread, op->d);
}

static void clear_ready(struct operation *op, bool unless_ended)
{
    struct descriptor *d = op->d;
    struct side *side = op->side;
    if (atomic_load_explicit(&d->waitless, memory_order_relaxed))
        return;
    descriptor_lock(op->thread, d);
    if (atomic_load_explicit(&side->events, memory_order_relaxed) == op->seen && !(unless_ended && d->ended))
        atomic_store_explicit(&side->ready, false, memory_order_relaxed);
    descriptor_unlock(op->thread, d);
}

int operation_mistaken(struct operation *op, int error)
{
    return descriptor_is_replaced(op->thread, op->d) > 0 ? begin_again(op) : error;
}

int operation_take_late(struct operation *op)
{
    int late = atomic_exchange_explicit(&op->d->late, 0, memory_order_relaxed);
    return late ? operation_mistaken(op, late) : 0;
}

void operation_drained(struct operation *op)
{
    clear_ready(op, false);
}

/* Messages, lines and credentials cause short reads on other types. Before the descriptor is watched no event would
 * report the end. */
void operation_short(struct operation *op)
{
    bool reports_end = op->d->type == ARCH_FD_TCP || op->d->type == ARCH_FD_PLAYED;
    if (reports_end && atomic_load_explicit(&op->d->watched, memory_order_relaxed))
        clear_ready(op, true);
}

/* Refuses a closing descriptor: the object behind its number has changed. */
int descriptor_watch(struct thread *thread, struct descriptor *d)
{
    descriptor_lock(thread, d);
    bool closing = atomic_load_explicit(&d->users, memory_order_acquire) & CLOSING; /* [D6] */
    if (!atomic_load_explicit(&d->watched, memory_order_relaxed))
        d->pool = thread->pool;
    int error = closing ? -EBADF : pool_watch(d->pool, d->call, &d->polled);
    bool known = error == -EEXIST;
    if (!error || known)
        atomic_store_explicit(&d->watched, true, memory_order_relaxed);
    descriptor_unlock(thread, d);
    if (error == -EPERM) {
        atomic_store_explicit(&d->waitless, true, memory_order_relaxed);
        atomic_store_explicit(&d->compared, true, memory_order_relaxed);
        return 0;
    }
    return known ? 0 : error;
}

static void throw_interrupted(struct operation *op)
{
    uint64_t progress = op->progress;
    operation_leave(op);
    interrupt_throw(op->thread, op->me, progress);
}

/* Armed: park. Returns true if the operation has the baton or the descriptor is closing. */
static bool wait_armed(struct operation *op)
{
    struct cb *me = op->me;
    struct wait_node *node = &me->wait.node;
    if (UNLIKELY(interrupted(me)) && wait_retract(op->thread, me)) { /* [W4] */
        me->blocked = BLOCKED_NOT;
    } else {
        quiescent_outside_begin(op->thread);
        op->thread = thread_park(op->thread);
        quiescent_outside_end(op->thread);
        if (LIKELY(wait_over(me) == WAIT_WON))
            return true;
    }
    descriptor_lock(op->thread, op->d);
    side_cut_out(node);
    side_mirror(op->side);
    descriptor_unlock(op->thread, op->d);
    return false;
}

/* Probe once: whether this operation has the baton, and the side is ready. Or a negated errno code. */
static int probe_seeded(struct operation *op, uint32_t wanted)
{
    struct side *side = op->side;
    if (atomic_load_explicit(&op->d->users, memory_order_acquire) & CLOSING) /* [D6] */
        return -EBADF;
    descriptor_lock(op->thread, op->d);
    bool mine = op->baton || (!side->baton && side->queue.next == &op->me->wait.node.link);
    descriptor_unlock(op->thread, op->d);
    if (!mine)
        return 0;
    int ready = arch_fd_ready(op->d->call);
    return ready < 0 ? ready : ((uint32_t)ready & wanted) != 0;
}

/* In a seeded run no thread passes on events of the system: waiters queue as usual, and the first one probes
 * periodically. Time is virtual, but goes no faster than real time while all others sleep (src/sim). */
static int wait_seeded(struct operation *op)
{
    uint32_t wanted = event_of[op->side - op->d->sides];
    struct side *side = op->side;
    struct wait_node *node = &op->me->wait.node;
    int result, how = 0;
    descriptor_lock(op->thread, op->d);
    if (!op->baton)
        side_append(side, node, false);
    side_mirror(side);
    descriptor_unlock(op->thread, op->d);
    while ((result = probe_seeded(op, wanted)) == 0) {
        descriptor_count_outside(op->thread, op->d, 1);
        wait_because(op->thread, op->me, BLOCKED_DESCRIPTOR, (uint64_t)op->d->fd);
        how = wait_until(op->thread, op->me, platform_now(op->thread->sub) + SEEDED_PROBE_NS, own_of(op->me)->floor);
        op->thread = thread_self();
        descriptor_count_outside(op->thread, op->d, -1);
        if (how < 0 || (how == WAIT_INTERRUPTED && interrupted_here(op->me)))
            break;
    }
    descriptor_lock(op->thread, op->d);
    if (!op->baton)
        side_cut_out(node);
    if (result > 0) {
        side->baton = op->baton = true;
        atomic_store_explicit(&side->ready, true, memory_order_relaxed);
    }
    side_mirror(side);
    descriptor_unlock(op->thread, op->d);
    return result > 0 ? 0 : result ? result : how < 0 ? how : 0; /* interrupted: as wait_for_side */
}

/* Wait until a call may succeed. */
static int wait_for_side(struct operation *op)
{
    int replaced = op->waited ? 0 : descriptor_is_replaced(op->thread, op->d); /* [D4] */
    if (UNLIKELY(replaced))
        return replaced < 0 ? replaced : begin_again(op);
    struct descriptor *d = op->d;
    struct side *side = op->side;
    struct cb *me = op->me;
    if (!atomic_load_explicit(&d->watched, memory_order_relaxed)) {
        int error = descriptor_watch(op->thread, d);
        if (error || atomic_load_explicit(&d->waitless, memory_order_relaxed))
            return error;
    }
    descriptor_lock(op->thread, d);
    bool closing = atomic_load_explicit(&d->users, memory_order_acquire) & CLOSING; /* [D6] */
    bool mine = op->baton || !side_is_taken(side);
    if (closing || (mine && atomic_load_explicit(&side->ready, memory_order_relaxed))) {
        descriptor_unlock(op->thread, d);
        return closing ? -EBADF : 0;
    }
    wait_because(op->thread, me, BLOCKED_DESCRIPTOR, (uint64_t)d->fd);
    me->wait.node.epoch = wait_arm(op->thread, me, own_of(me)->floor);
    side_append(side, &me->wait.node, op->baton);
    if (op->baton)
        side->baton = op->baton = false;
    side_mirror(side);
    descriptor_unlock(op->thread, d);
    if (!wait_armed(op))
        return 0;                  /* interrupted: operation_await returns, or goes on */
    op->baton = op->waited = true; /* on a closing descriptor the baton means nothing */
    return atomic_load_explicit(&d->users, memory_order_acquire) & CLOSING ? -EBADF : 0; /* [D6] */
}

/* Take the baton before yielding, so that no other strand overtakes this operation. If there is a waiter already, this
 * operation waits behind it instead. */
static void yield_with_baton(struct operation *op)
{
    descriptor_lock(op->thread, op->d);
    bool mine = op->baton || !side_is_taken(op->side);
    if (mine)
        op->side->baton = op->baton = true;
    side_mirror(op->side);
    descriptor_unlock(op->thread, op->d);
    if (mine)
        op->thread = thread_yield(op->thread);
}

int operation_await(struct operation *op)
{
    for (bool yielded = false;;) {
        struct side *side = op->side;
        if (interrupted_here(op->me))
            return OPERATION_INTERRUPTED;
        op->seen = atomic_load_explicit(&side->events, memory_order_acquire); /* [D2] */
        bool free = op->baton || !atomic_load_explicit(&side->waited, memory_order_relaxed);
        if (UNLIKELY(atomic_load_explicit(&op->d->users, memory_order_relaxed) & CLOSING)) {
            int error = descriptor_going(op->d) == GOING_REPLACED ? begin_again(op) : -EBADF;
            if (error)
                return error;
            continue;
        }
        bool ready = (free && atomic_load_explicit(&side->ready, memory_order_relaxed)) ||
                     atomic_load_explicit(&op->d->waitless, memory_order_relaxed);
        if (ready) {
            thread_tick(op->thread);
            if (LIKELY(!thread_is_asked_for(op->thread)) || yielded)
                return 0;
            yielded = true;
            yield_with_baton(op);
            continue;
        }
        int error = descriptor_is_probed(op->thread, op->d) ? wait_seeded(op) : wait_for_side(op);
        if (error)
            return error;
    }
}

int operation_continue(struct operation *op)
{
    for (bool yielded = false;;) {
        if (interrupted_here(op->me))
            throw_interrupted(op);
        if (UNLIKELY(atomic_load_explicit(&op->d->users, memory_order_relaxed) & CLOSING)) {
            int error = descriptor_going(op->d) == GOING_REPLACED ? begin_again(op) : -EBADF;
            if (error)
                return error;
            continue;
        }
        thread_tick(op->thread);
        if (!thread_is_asked_for(op->thread) || yielded)
            return 0;
        yielded = true;
        op->thread = thread_yield(op->thread);
    }
}

int operation_ready(struct operation *op)
{
    int error = operation_await(op);
    if (UNLIKELY(error == OPERATION_INTERRUPTED))
        throw_interrupted(op);
    return error;
}

/* ---- closing --------------------------------------------------------------------------------------------- */

void operations_claim(struct thread *thread, struct descriptor *d, struct batch *woken)
{
    for (int i = 0; i < SIDES; i++) {
        struct member *member;
        while (!descriptor_is_probed(thread, d) && (member = claim_first(thread, &d->sides[i])))
            batch_add(woken, member);
        d->sides[i].baton = false;
        side_mirror(&d->sides[i]);
    }
}
