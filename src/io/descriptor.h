/*
 * Waiting for descriptors. Page: docs/protocols/descriptors.md.
 *
 * PARTIES   strands that read, write or wait; threads that pass on the poller's events (fire); closers.
 * STATE     per descriptor, in a table by its number: `users` = operations under way | CLOSING; per side (in, out,
 *           end): `events` counts the poller's reports, `ready` says that a call may find something, `baton` that a
 *           woken waiter has not reported yet what it found, `queue` holds the waiters.
 * PROTOCOL  an operation enters (counts itself in), makes its call if the side is ready and there is no waiter, and
 *           waits if the call found nothing. Readiness comes first, and the strand makes the call itself: its buffer is
 *           never in other hands. An event wakes the first waiter only; when that one leaves, the next is woken if the
 *           side is still ready. An operation that finds less than it asked for clears `ready`, unless an event came
 *           meanwhile [D2], or the end was reported with it. Closing while operations are inside replaces the object
 *           behind the number by a blank at once: their calls fail.
 * REUSE     other libraries close their own descriptors, and the system reuses the number. A program that expects this
 *           calls strand_forget. For a descriptor that the library did not make, the reuse is also noticed before an
 *           operation waits, and before every call if the record says that calls may block their thread [D4]. The
 *           record is then replaced, as if strand_close had closed the number, but the number stays open.
 * OWNERSHIP queues, `ready`, `baton`: under the lock. `events` is raised under it and read without. In a run of one
 *           thread there is no lock, and `users` changes by plain stores: a table belongs to one run, and only strands
 *           and the poller access it.
 * INVARIANTS [D1] a number is returned to the system when the last operation has left, so no call reaches a descriptor
 *           that was opened in its place. [D2] an event is never lost: a waiter has seen `events` unchanged since
 *           before its call, under the lock. [D3] a woken waiter that leaves has passed its baton on. [D4] an
 *           operation never waits, or makes a call that may block, on the basis of a stale record: before either, the
 *           record is `ours`, or its device and inode are those behind the number. The poller is asked about objects
 *           that have no inode of their own. [D5] -EBADF is never reported for a new object because of the previous
 *           one: while the record still belongs to the old object, an operation waits, and a select starts again. [D7]
 *           a select asks the system (poll) about each descriptor that it tries if it is ordered, or if it completes
 *           without waiting: so it finds readiness that the poller has not reported yet. Any other select asks only
 *           about descriptors with `ready` set. If `ready` is clear, an earlier call or question found nothing, and
 *           later readiness reaches the linked node by the next edge, or by a new registration, which reports present
 *           readiness [D2]. The poller then decides which of several such descriptors it takes. [D8] a case that has
 *           won asks the system whether the side is ready indeed, because another operation may have taken what was
 *           reported. It need not ask for bytes if its baton is `reported`, all operations are on this thread, and all
 *           go through this side (`sole`: no other number, and no other socket's queue): none of them has made a call
 *           since, and the poller has asked the object. A report of an end, which may be an urgent byte, is not
 *           enough.
 * ORDERING  [D6] changes of `users` are acquire-release, and loads acquire: what operations did happens before the
 *           number is given back, and a party that finds CLOSING finds how it closes (`going`). `events` is read before
 *           the call, by acquire, and compared under the lock after it: the kernel reports an edge after the bytes are
 *           there, so whatever the call could have missed comes with an event that is counted later [D2].
 * PROGRESS  an operation that never has to wait yields whenever the thread has made a pass since its last one. A short
 *           read of a TCP socket clears `ready` without a further call: less than was asked for means that nothing is
 *           left, unless the end was reported with the last bytes (`ended`). Elsewhere a short read means nothing.
 * NOT DONE  level-triggered or one-shot registration: a system call for each wait. The out side in the registration
 *           only while a strand writes: changing it costs more than the events that it saves. A read into the strand's
 *           buffer by the poller's thread: the buffer may be another strand's memory by then. Asking for readiness and
 *           then making a call that blocks: if two strands see the same byte, one of them blocks its thread for good.
 *           Noticing at once that another library has closed a number: a system call for each operation.
 * TESTED BY tests/models/descriptor.pml, tests/sim/descriptors.c, tests/spec/descriptor.c, descriptor_reuse.c,
 *           select_io.c and select_ready.c there.
 */
#ifndef IO_DESCRIPTOR_H
#define IO_DESCRIPTOR_H

#include "../sched/fds.h"
#include "../sched/platform.h"
#include "../sched/polled.h"
#include "io_layer.h"

enum side_name { SIDE_IN, SIDE_OUT, SIDE_END, SIDES }; /* SIDE_END: for its end or an error, nothing else */

struct side {
    _Atomic uint32_t events;
    _Atomic bool ready;
    _Atomic bool waited; /* there is a waiter, or a baton: mirrors the two below */
    bool baton;
    bool reported;     /* the baton's holder has it from a report of the poller [D8] */
    struct link queue; /* of wait nodes */
};

struct descriptor {
    struct polled polled;
    atomic_flag lock;
    int fd;
    _Atomic uint32_t users;
    _Atomic bool known; /* type is valid */
    _Atomic bool watched;
    _Atomic bool waitless; /* never has to wait: always ready */
    _Atomic bool ours;     /* made by the library: it is closed by strand_close, or forgotten [D4] */
    _Atomic bool sole;     /* an accepted connection, which has no other number as far as is known [D8] */
    _Atomic bool compared; /* before each operation `object` is compared: its calls may block, or are made elsewhere */
    _Atomic uint8_t going; /* enum going, while CLOSING is set */
    bool ended;            /* the end was reported together with the last bytes: it causes no further event */
    enum arch_fd_type type;
    _Atomic int late; /* an error after bytes that strand_read_all has returned: for the next read */
    struct arch_fd_object object;
    int call; /* the descriptor to call and to watch: fd, or a terminal opened once more (arch_fd_type) */
    struct pool *pool;
    struct side sides[SIDES];
};

#define CLOSING (UINT32_C(1) << 31)
/* What happens to the number when the last operation has left. */
enum going {
    GOING_CLOSED,    /* it is returned to the system */
    GOING_FORGOTTEN, /* it is not the library's any more */
    GOING_REPLACED   /* likewise, and it is in use again: operations that have not waited yet start again */
};

/* A run of one thread needs no lock. */
static inline void descriptor_lock(struct thread *thread, struct descriptor *d)
{
    spin_lock_if_concurrent(&d->lock, thread);
}

static inline void descriptor_unlock(struct thread *thread, struct descriptor *d)
{
    spin_unlock_if_concurrent(&d->lock, thread);
}

/* A descriptor of the real system in a seeded run: no event reports it, so waiters probe it periodically. */
static inline bool descriptor_is_probed(const struct thread *thread, const struct descriptor *d)
{
    return UNLIKELY(thread->platform != NULL) && d->type != ARCH_FD_PLAYED;
}

/* by: 1 when a strand begins to wait for a descriptor, -1 at its end. Counts those that are outside of the run. */
static inline void descriptor_count_outside(struct thread *thread, const struct descriptor *d, int by)
{
    if (descriptor_is_probed(thread, d))
        atomic_fetch_add_explicit(&thread->sub->outside, (uint32_t)by, memory_order_relaxed);
}

/* The period of probing a descriptor, in virtual time. */
#define SEEDED_PROBE_NS INT64_C(50000)

/* Whether calls on a descriptor of this type may wait for a disk. */
static inline bool descriptor_is_file(int type)
{
    return type == ARCH_FD_FILE || type == ARCH_FD_DIRECT;
}

/* Returns NULL for a number that was never used here. */
struct descriptor *descriptor_find_used(struct thread *thread, int fd);
/* Count the operation in, and find out the descriptor's type; may yield. Returns 0, or a negated errno code: then the
 * caller is not inside. descriptor_leave returns the result of closing, if this was the last operation on a closing
 * descriptor. */
int descriptor_enter(struct thread **thread, int fd, struct descriptor **out);
/* Likewise, without ever yielding. Returns -EBADF for a closing descriptor, and -EAGAIN if the old object has not left
 * the record yet, although the number may be a new object's already [D5]. */
int descriptor_enter_at_once(struct thread *thread, int fd, struct descriptor **out);
int descriptor_leave(struct thread *thread, struct descriptor *d);

static inline enum going descriptor_going(const struct descriptor *d)
{
    return (enum going)atomic_load_explicit(&d->going, memory_order_relaxed);
}

/* Mark a descriptor as closing, from inside: no further operation enters, and the waiters are claimed and added to
 * woken. Returns false if it was closing already. */
bool descriptor_turn_out(struct thread *thread, struct descriptor *d, enum going how, struct batch *woken);
/* From inside: whether another object is behind the number, as far as can be seen now; or -EBADF: there is none. */
int descriptor_is_replaced(struct thread *thread, struct descriptor *d);
/* Replace the record, which is out of date. The caller is inside, and leaves. */
void descriptor_replaced(struct thread *thread, struct descriptor *d);
/* Forget all about a number. Suspends until the operations inside have left; they return -EBADF. */
void descriptor_forget(struct thread *thread, int fd);

/* One operation on one side of a descriptor. It is on its strand's stack and private to it. */
struct operation {
    struct thread *thread;
    struct cb *me;
    struct descriptor *d;
    struct side *side;
    const char *function;
    uint64_t progress; /* for the exception of an interruption */
    uint32_t seen;
    bool baton;
    bool waited; /* it has waited for this record: later events are of the record's object */
};

/* Begin an operation. Returns 0 or a negated errno code; then there is nothing to end, though operation_leave does no
 * harm. Throws if the strand is interrupted. */
int operation_enter(struct operation *op, int fd, enum side_name side, const char *function);
/* Begin a second operation of the caller, whose `thread`, `me` and `function` are set. As operation_enter, but neither
 * throws nor counts as a call. */
int operation_enter_also(struct operation *op, int fd, enum side_name side);
/* Before each call: wait if a call is known to be useless, or others wait. Returns 0, or a negated errno code: closed
 * meanwhile. Throws when interrupted; the operation has ended then. */
int operation_ready(struct operation *op);
/* Likewise, before a call that does not depend on the events of its side: never waits for them. */
int operation_continue(struct operation *op);
/* As operation_ready, for a caller that has more to give back than the operation: an interrupted one returns
 * OPERATION_INTERRUPTED, and is still inside. */
int operation_await(struct operation *op);
enum { OPERATION_INTERRUPTED = 1 };
/* After a call that failed because of the record's type. Returns 0 if the record was out of date: start the operation
 * again; or a negated errno code. */
int operation_mistaken(struct operation *op, int error);
/* Take the error that strand_read_all has left for the next read: 0 if there is none, or if it was another object's. */
int operation_take_late(struct operation *op);
/* After a call that has found nothing. */
void operation_drained(struct operation *op);
/* After a read that found less than it had room for: in some streams nothing is left but, possibly, the end. */
void operation_short(struct operation *op);
/* Before a pause between two calls: let other waiters try. The operation stays inside. */
void operation_step_aside(struct operation *op);
/* Bytes are taken without the baton: what the poller has reported to its holder may be gone. */
void operation_overtakes(struct operation *op);
void operation_leave(struct operation *op);

/* ---- the queue of a side, for operations and for selects; under the lock ------------------------------------ */

static inline void side_mirror(struct side *side)
{
    atomic_store_explicit(&side->waited, side->baton || !list_empty(&side->queue), memory_order_relaxed);
}

/* Whether a new operation has to wait for others first. */
static inline bool side_is_taken(const struct side *side)
{
    return side->baton || !list_empty(&side->queue);
}

/* Link a node, at the front or at the back; unlink it, if it is linked. */
void side_append(struct side *side, struct wait_node *node, bool in_front);
void side_cut_out(struct wait_node *node);
/* Give the baton to the next waiter that can still be woken, if the side is ready. Returns that waiter, or NULL. */
struct member *side_pass_on(struct thread *thread, struct side *side);
/* Have the poller watch the descriptor from now on. Without the lock. Returns 0 or a negated errno code. */
int descriptor_watch(struct thread *thread, struct descriptor *d);

/* Record events: the first waiter of each side concerned is claimed, and added to woken. */
void descriptor_report(struct thread *thread, struct descriptor *d, uint32_t events, struct batch *woken);
/* Receive the poller's events: polled->fire. */
void descriptor_fire(struct thread *thread, struct polled *polled, uint32_t events);
/* Under the lock, for a closing descriptor: claim all waiters, and add them to woken. */
void operations_claim(struct thread *thread, struct descriptor *d, struct batch *woken);

/* Announce a descriptor that the caller has just made: its number may have been used here before, and been closed
 * elsewhere. Any thread. */
void descriptor_made(int fd);
/* Likewise, of a connection that was accepted. */
void descriptor_accepted(struct thread *thread, int fd);
/* Close the object behind the number at once (or, if no descriptor is available for a blank, together with the number).
 * The number is returned to the system when the operations under way have left; they return -EBADF. If the number is a
 * new object's already, the call yields until the operations on the old one have left; if it may not suspend, it closes
 * the new object without them, since none of them is on it. */
int descriptor_close(struct thread *thread, int fd, bool may_suspend);

#endif
