/*
 * Waiting for descriptors. Page: docs/protocols/descriptors.md.
 *
 * PARTIES   strands that read, write or wait; whoever passes on the poller's events (fire); who closes.
 * STATE     per descriptor, in a table by its number: `users` = operations under way | CLOSING; per side (in, out,
 *           end): `events` counts what the poller has reported, `ready` says that a call may find something, `turn`
 *           that a waiter was woken and has not said yet what it found, `queue` has those who wait.
 * PROTOCOL  an operation enters (counts itself in), makes its call if the side is ready and nobody waits, and waits if
 *           there was nothing. Readiness comes first, the call is the strand's own: no buffer is ever in the hands of
 *           somebody else. An event wakes the first waiter only; when that one leaves, the next is woken if the side is
 *           still ready. Whoever finds less than it asked for clears `ready`, unless an event came meanwhile [D2], or
 *           the end was reported with it. Who closes while others are inside takes away what is behind the number at
 *           once, and leaves a blank: their calls fail.
 *           Other libraries close what is theirs, and the system uses the number again. A program that expects
 *           this calls strand_forget. For a descriptor that the library did not make, it is also noticed before an
 *           operation waits, and before every call if the record says that calls may block their thread [D4]. The
 *           record is then replaced, as if strand_close had closed the number, but the number stays open.
 * OWNERSHIP queues, `ready`, `turn`: under the lock. `events` is raised under it and read without.
 *           In a run of one thread there is no lock, and `users` changes by plain stores: a table belongs to one run,
 *           and nobody comes to it but strands and the poller.
 * INVARIANTS [D1] a number is given back to the system when the last operation has left, so nobody's call goes to a
 *           descriptor that was opened in its place. [D2] an event is never forgotten: who waits has seen `events`
 *           unchanged since before its call, under the lock. [D3] a waiter that was woken and is gone has passed its
 *           turn on. [D4] nobody waits, nor makes a call that may block, because of what is known of an object that is
 *           gone: the record is `ours`, or its device and inode are those behind the number. The poller is asked about
 *           objects that have no inode of their own. [D5] -EBADF is never said of a new object because of the one
 *           before it: while the record is still the old one's, an operation waits, and a select begins anew.
 * NOT DONE  level-triggered or one-shot registration: a system call for each wait; a read into the strand's buffer by
 *           the poller's thread: the buffer would be somebody else's memory.
 */
#ifndef IO_DESCRIPTOR_H
#define IO_DESCRIPTOR_H

#include "../sched/driver.h"
#include "../sched/fds.h"
#include "../sched/polled.h"
#include "../strand/core.h"

enum side_name { SIDE_IN, SIDE_OUT, SIDE_END, SIDES }; /* SIDE_END: for its end or breaking, nothing else */

struct side {
    _Atomic uint32_t events;
    _Atomic bool ready;
    _Atomic bool waited; /* somebody waits, or has the turn: mirrors the two below */
    bool turn;
    struct link queue; /* of wait nodes */
};

struct descriptor {
    struct polled polled;
    atomic_flag lock;
    int fd;
    _Atomic uint32_t users;
    _Atomic bool known; /* kind means something */
    _Atomic bool watched;
    _Atomic bool waitless; /* nothing to wait for: always ready */
    _Atomic bool ours;     /* made by the library, so it is closed by strand_close, or forgotten [D4] */
    _Atomic bool compared; /* before each operation `object` is compared: its calls may block, or are made elsewhere */
    _Atomic uint8_t going; /* enum going, while CLOSING is set */
    bool ended;            /* the end was reported together with the last bytes: it is no event of its own any more */
    enum arch_fd_kind kind;
    _Atomic int late; /* an error that came after bytes which strand_read_all has returned: of the next read */
    struct arch_fd_object object;
    int call; /* what calls are made on, and the poller watches: fd, or a terminal opened once more (arch_fd_kind) */
    struct pool *pool;
    struct side sides[SIDES];
};

#define CLOSING (UINT32_C(1) << 31)
/* What becomes of the number when the last one has left. */
enum going {
    GOING_CLOSED,    /* it is given back to the system */
    GOING_FORGOTTEN, /* it is somebody else's */
    GOING_REPLACED   /* the same, and it is used already: operations that have not waited yet start again */
};

/* A pool of one thread has nobody to lock out, and needs no atomic operations. */
static inline void descriptor_lock(struct thread *thread, struct descriptor *d)
{
    spin_lock_if_shared(&d->lock, thread);
}

static inline void descriptor_unlock(struct thread *thread, struct descriptor *d)
{
    spin_unlock_if_shared(&d->lock, thread);
}

/* The system's in a seeded run: nobody reports of it, who waits looks now and then. */
static inline bool descriptor_is_looked_at(const struct thread *thread, const struct descriptor *d)
{
    return UNLIKELY(thread->driver != NULL) && d->kind != ARCH_FD_PLAYED;
}

/* Count oneself in, and get to know what it is; may give way. Returns 0, or a negated errno code: then one is not
 * inside. Leaving returns what closing did, if this was the last one of a descriptor that is closing. */
int descriptor_enter(struct thread **thread, int fd, struct descriptor **out);
/* The same without ever giving way. One that is being closed is -EBADF; -EAGAIN: the old object has not left the record
 * yet, though the number may be a new one's already [D5]. */
int descriptor_enter_at_once(struct thread *thread, int fd, struct descriptor **out);
int descriptor_leave(struct thread *thread, struct descriptor *d);

static inline enum going descriptor_going(const struct descriptor *d)
{
    return (enum going)atomic_load_explicit(&d->going, memory_order_relaxed);
}

/* By somebody inside: nobody else comes in, and those who wait are claimed and added to woken. False: it was going
 * already. */
bool descriptor_turn_out(struct thread *thread, struct descriptor *d, enum going how, struct batch *woken);
/* By somebody inside: another object lies behind the number, as far as can be told now. */
bool descriptor_is_replaced(struct thread *thread, struct descriptor *d);
/* The record is out of date and is replaced. The caller is inside, and leaves. */
void descriptor_replaced(struct thread *thread, struct descriptor *d);
/* Nothing is known of the number any more; waits for those inside, who get -EBADF. */
void descriptor_forget(struct thread *thread, int fd);

/* One operation on one side of a descriptor, on its strand's stack; nobody else sees it. */
struct operation {
    struct thread *thread;
    struct cb *me;
    struct descriptor *d;
    struct side *side;
    const char *function;
    uint64_t progress; /* for the exception of an interruption */
    uint32_t seen;
    bool turn;
    bool waited; /* for this record: what comes then is of its object */
};

/* Begin. Returns 0 or a negated errno code; then there is nothing to end, though operation_leave does no harm. Throws
 * if the strand is interrupted. */
int operation_enter(struct operation *op, int fd, enum side_name side, const char *function);
/* Before each call: waits if that is known to be useless, or others wait. 0, or a negated errno code: closed meanwhile.
 * Throws when interrupted; the operation has ended then. */
int operation_ready(struct operation *op);
/* After a call that the record's kind has made fail: 0: it was out of date, start the operation again; or a negated
 * errno code. */
int operation_mistaken(struct operation *op, int error);
/* After a call that has found nothing. */
void operation_drained(struct operation *op);
/* After a read that found less than there was room for: nothing is left of some streams but, maybe, the end. */
void operation_short(struct operation *op);
void operation_leave(struct operation *op);

/* ---- of the queue of a side, for operations and for selects; under the lock ---- */

static inline void side_mirror(struct side *side)
{
    atomic_store_explicit(&side->waited, side->turn || !list_empty(&side->queue), memory_order_relaxed);
}

/* Whether who comes now has to wait for others first. */
static inline bool side_is_taken(const struct side *side)
{
    return side->turn || !list_empty(&side->queue);
}

/* Link a node, in front of all or behind them; take it out again, if it is there. */
void side_append(struct side *side, struct wait_node *node, bool in_front);
void side_cut_out(struct wait_node *node);
/* Give the turn to the next one who can still be woken, if there is something for him. Returns him, or NULL. */
struct member *side_pass_on(struct thread *thread, struct side *side);
/* Have the poller report of it, from now on. Without the lock. Returns 0 or a negated errno code. */
int descriptor_watch(struct thread *thread, struct descriptor *d);

/* There may be something now: the first one of each side is claimed, and added to woken. */
void descriptor_report(struct thread *thread, struct descriptor *d, uint32_t events, struct batch *woken);
/* What the poller says of a descriptor: polled->fire. */
void descriptor_fire(struct thread *thread, struct polled *polled, uint32_t events);
/* Under the lock, of one that is closing: claims all who wait, and adds them to woken. */
void operations_claim(struct thread *thread, struct descriptor *d, struct batch *woken);

/* Somebody has made this descriptor just now: nothing is known of its number. It may have been used here before, and
 * closed elsewhere. Any thread. */
void descriptor_made(int fd);
/* What is behind the number is closed at once (or, if there is no descriptor to be had for a blank, with the number).
 * The number is given back when the operations under way have left; they return -EBADF. */
int descriptor_close(struct thread *thread, int fd);

#endif
