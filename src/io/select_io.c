/*
 * Descriptors and signals as cases of a select. A case queues at its side as an operation does, and counts as one while
 * the select stands with it. If it wins it has the baton: it checks whether the side is ready indeed, and passes the
 * baton on. The protocol blocks are in descriptor.h and src/sync/source.h.
 */
#include "select_io.h"

#include "../sched/thread.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"

#include <errno.h>

struct target select_io_target(int fd, enum strand_ready_event what)
{
    switch (what) {
    case STRAND_READABLE:
        return (struct target){fd, SIDE_IN, ARCH_IN};
    case STRAND_WRITABLE:
        return (struct target){fd, SIDE_OUT, ARCH_OUT};
    default:
        return (struct target){fd, SIDE_END, ARCH_END};
    }
}

/* Ask the system whether the side is ready; or a negated errno code. Clears stale readiness, unless an event was
 * reported meanwhile [D2]. Without the lock. */
static int probe(struct thread *thread, struct descriptor *d, struct target target)
{
    struct side *side = &d->sides[target.side];
    uint32_t seen = atomic_load_explicit(&side->events, memory_order_acquire); /* [D2] */
    int now = fd_ready(thread, d->call);
    if (now < 0 || ((uint32_t)now & target.wanted))
        return now < 0 ? now : 1;
    if (atomic_load_explicit(&d->waitless, memory_order_relaxed))
        return 1;
    descriptor_lock(thread, d);
    if (atomic_load_explicit(&side->events, memory_order_relaxed) == seen)
        atomic_store_explicit(&side->ready, false, memory_order_relaxed);
    descriptor_unlock(thread, d);
    return 0;
}

static bool closing(struct descriptor *d)
{
    return atomic_load_explicit(&d->users, memory_order_acquire) & CLOSING; /* [D6] */
}

/* As descriptor_enter_at_once, but for the object that is behind the number now [D4]. */
static int enter(struct thread *thread, int fd, struct descriptor **out)
{
    int error = descriptor_enter_at_once(thread, fd, out), replaced = error ? 0 : descriptor_is_replaced(thread, *out);
    if (replaced > 0) {
        descriptor_replaced(thread, *out);
        return descriptor_enter_at_once(thread, fd, out);
    }
    if (replaced < 0)
        (void)descriptor_leave(thread, *out);
    return replaced < 0 ? replaced : error;
}

/* Without a node. Returns 1, 0, or a negated errno code. */
static int ready_now(struct thread *thread, struct target target)
{
    struct descriptor *d;
    int result = enter(thread, target.fd, &d);
    if (result)
        return result;
    if (!select_io_waits_for_others(thread, d, target.side))
        result = probe(thread, d, target);
    (void)descriptor_leave(thread, d);
    return result;
}

/* Whether an event reports what a case would find that does not ask the system, unless the side is marked as ready
 * [D7]. An ordered select on several threads has not tried the case before, and might go on to a later one. */
static bool is_reported(const struct thread *thread, const struct descriptor *d, const struct wait_node *node)
{
    return !descriptor_is_probed(thread, d) && !(thread->concurrent && node->marks & NODE_ORDERED);
}

/* The strand is armed. Returns 0 if the node is linked, and counted as an operation inside the descriptor. Otherwise it
 * need not wait: returns 1, or a negated errno code; for -EAGAIN see descriptor_enter_at_once. */
int select_io_stand(struct thread *thread, strand_case *c, struct wait_node *node, struct target target)
{
    struct descriptor *d;
    int result = enter(thread, target.fd, &d);
    if (result)
        return result;
    struct side *side = &d->sides[target.side];
    if (!descriptor_is_probed(thread, d) && !atomic_load_explicit(&d->watched, memory_order_relaxed))
        result = descriptor_watch(thread, d);
    if (!result && !is_reported(thread, d, node) && !select_io_waits_for_others(thread, d, target.side))
        result = probe(thread, d, target);
    while (!result) {
        descriptor_lock(thread, d);
        bool ready = atomic_load_explicit(&side->ready, memory_order_relaxed) ||
                     atomic_load_explicit(&d->waitless, memory_order_relaxed);
        bool may_be = ready && !side_is_taken(side);
        result = closing(d) ? -EBADF : 0;
        if (!result && !may_be) {
            side_append(side, node, false);
            side_mirror(side);
            descriptor_unlock(thread, d);
            c->detail = (int64_t)(uintptr_t)d;
            descriptor_count_outside(thread, d, 1);
            return 0;
        }
        descriptor_unlock(thread, d);
        if (!result)
            result = probe(thread, d, target);
    }
    (void)descriptor_leave(thread, d);
    return result;
}

int64_t select_io_next_probe(struct thread *thread, const strand_case *c)
{
    bool probed = descriptor_is_probed(thread, select_io_standing(c));
    return probed ? platform_now(thread->sub) + SEEDED_PROBE_NS : INT64_MAX;
}

/* Whether a case that has won knows that its side is ready [D8]. */
static bool is_certain(const struct thread *thread, const struct descriptor *d, enum side_name side)
{
    return !thread->concurrent && !thread->platform && side == SIDE_IN && d->sides[side].reported &&
           atomic_load_explicit(&d->sole, memory_order_relaxed);
}

/* Leave the queue and the descriptor. won: the node has won. Returns 1: ready; 0; or a negated errno code. */
int select_io_leave(struct thread *thread, strand_case *c, struct wait_node *node, struct target target, bool won)
{
    struct descriptor *d = select_io_standing(c);
    struct side *side = &d->sides[target.side];
    int result = !won || closing(d) ? 0 : is_certain(thread, d, target.side) ? 1 : probe(thread, d, target);
    descriptor_count_outside(thread, d, -1);
    descriptor_lock(thread, d);
    if (won && closing(d))
        result = -EBADF;
    struct member *next = NULL;
    if (won && !descriptor_is_probed(thread, d)) {
        side->baton = false; /* on a closing descriptor it means nothing */
        next = side_pass_on(thread, side);
    } else {
        side_cut_out(node);
    }
    side_mirror(side);
    descriptor_unlock(thread, d);
    if (next)
        thread_ready(thread, next);
    (void)descriptor_leave(thread, d);
    c->detail = 0;
    return result;
}

/* The answer of a case that is not linked, from the result above. */
enum answer select_io_answer(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, int result)
{
    if (!result || (result == -EAGAIN && !node)) /* [D5]: it may still happen */
        return SOURCE_NOT;
    if (node && !wait_retract(thread, me))
        return SOURCE_LOST;
    if (result == -EAGAIN)
        return SOURCE_LATER;
    c->result = result < 0 ? result : 0;
    return SOURCE_DONE;
}

/* ---- descriptors ------------------------------------------------------------------------------------------- */

static struct target ready_target(const strand_case *c)
{
    return select_io_target((int)c->object[0], (enum strand_ready_event)c->object[1]);
}

/* In a run of one thread. False: an event reports what a try would find [D7]. */
static bool ready_is_unreported(struct thread *thread, const strand_case *c)
{
    struct target target = ready_target(c);
    const struct descriptor *d = descriptor_find_used(thread, target.fd);
    return !d || thread->platform || !atomic_load_explicit(&d->watched, memory_order_relaxed) ||
           atomic_load_explicit(&d->sides[target.side].ready, memory_order_relaxed);
}

static enum answer ready_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    struct target target = ready_target(c);
    return select_io_answer(thread, me, c, node,
                            node ? select_io_stand(thread, c, node, target) : ready_now(thread, target));
}

static enum answer ready_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)me;
    if (!select_io_standing(c))
        return SOURCE_DONE;
    int result = select_io_leave(thread, c, node, ready_target(c), won);
    c->result = result < 0 ? result : 0;
    return won && !result ? SOURCE_AGAIN : SOURCE_DONE;
}

static const struct strand_source_ source_ready = {.stand = ready_stand,
                                                   .ready = ready_is_unreported,
                                                   .over = ready_over,
                                                   .next_probe = select_io_next_probe,
                                                   .outside = true,
                                                   .blocked = BLOCKED_DESCRIPTOR};

strand_case strand_on_ready(int fd, enum strand_ready_event event)
{
    if (event != STRAND_READABLE && event != STRAND_WRITABLE && event != STRAND_GONE)
        MISUSE("strand_on_ready", "", "%d is not one of STRAND_READABLE, STRAND_WRITABLE and STRAND_GONE", (int)event);
    return (strand_case){.source = &source_ready, .object = {(uint64_t)(unsigned)fd, (uint64_t)(unsigned)event}};
}

/* ---- signals ----------------------------------------------------------------------------------------------- */

static struct arch_watch *watch_in(const strand_case *c)
{
    struct arch_watch *watch = (struct arch_watch *)(uintptr_t)c->object[0];
    if (!arch_watch_is(watch, c->object[1]))
        MISUSE("strand_select", "", "the block of STRAND_SIGNALS has been left, or was never entered");
    return watch;
}

static struct target signal_target(const strand_case *c)
{
    return select_io_target(arch_watch_fd(watch_in(c)), STRAND_READABLE);
}

/* Returns the signal; 0: another strand has taken it; or -EBADF: the block was left while the select stood with the
 * case. */
static int take_signal(strand_case *c)
{
    struct arch_watch *watch = (struct arch_watch *)(uintptr_t)c->object[0];
    if (arch_watch_serial(watch) != c->object[1])
        return -EBADF;
    int signal = arch_watch_take(watch);
    if (!signal) {
        uint64_t count;
        (void)arch_fd_read(arch_watch_fd(watch), ARCH_FD_OTHER, &count, sizeof count);
        signal = arch_watch_take(watch); /* a signal that came after the first look and before the read */
    }
    if (signal && c->value)
        *(int *)c->value = signal;
    return signal;
}

/* The case has happened, and there may be a signal. */
static enum answer settle_signal(strand_case *c)
{
    int signal = take_signal(c);
    c->result = signal < 0 ? signal : 0;
    return signal ? SOURCE_DONE : SOURCE_AGAIN;
}

static enum answer signal_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    if (!node) {
        int signal = arch_watch_take(watch_in(c));
        if (signal && c->value)
            *(int *)c->value = signal;
        return select_io_answer(thread, me, c, NULL, signal);
    }
    enum answer answer = select_io_answer(thread, me, c, node, select_io_stand(thread, c, node, signal_target(c)));
    return answer == SOURCE_DONE && !c->result ? settle_signal(c) : answer;
}

static enum answer signal_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)me;
    if (!select_io_standing(c))
        return SOURCE_DONE;
    int result = select_io_leave(thread, c, node, select_io_target(-1, STRAND_READABLE),
                                 won); /* the block may have been left by now */
    c->result = result < 0 ? result : 0;
    if (!won || result < 0)
        return SOURCE_DONE;
    return result ? settle_signal(c) : SOURCE_AGAIN;
}

static const struct strand_source_ source_signal = {.stand = signal_stand,
                                                    .over = signal_over,
                                                    .next_probe = select_io_next_probe,
                                                    .outside = true,
                                                    .blocked = BLOCKED_SIGNAL};

strand_case strand_on_signal(strand_signals signals, int *number)
{
    return (strand_case){.source = &source_signal, .object = {signals.bits[0], signals.bits[1]}, .value = number};
}
