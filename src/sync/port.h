/*
 * Ports. Page: docs/protocols/port.md.
 *
 * PARTIES   senders: any thread of the process, and signal handlers, which may have interrupted a sender, or a thread
 *           of the port's own run, anywhere; receivers: strands of that run; closers, which may be any sender; the
 *           scope that the port ends with.
 * STATE     word: serial << WORD_SERIAL | references << 2 | OVER | CLOSED. A reference is a sender that is inside.
 *           CLOSED: no new sender enters. OVER: the port is closed, and the last sender has published its message. The
 *           box, a separate block of memory, has: the slots; `free`, a stack of free slots, whose head carries a count
 *           of takings as its tag; `arrived`, a stack of messages, the newest first; `wake`: NONE; WANTED: a receiver
 *           waits and needs a notification; POSTED: the box's post is on its way to notify it. Under the lock: the
 *           ready messages in FIFO order, and the queue of waiters.
 *
 *             slot: free --claim--> a sender's --publish--> arrived --take_arrived--> ready --> a receiver's --> free
 *             wake: NONE --wants (lock)--> WANTED --a sender--> POSTED --arrive (lock)--> NONE
 *
 * PROTOCOL  send: take a reference; claim a slot; fill it; publish; if WANTED, make it POSTED, and post; release the
 *           reference. The last sender to leave a closed port makes it OVER first, and notifies as if it had published.
 *           receive, under the lock: arrived messages go to the waiters in order (port_settle). The caller then takes
 *           what is left, or finds the port over, or sets WANTED, looks again, and waits.
 * OWNERSHIP a slot belongs to its claimer, then to the port, then to the receiver that it was handed to, which copies
 *           the message when it runs. The box outlives the port while a receiver has one of its slots, or the pool has
 *           its post (refs).
 * INVARIANTS [PT1] a sender waits for no lock and allocates nothing, and no handler that sends in between undoes a step
 *           of it: each is one compare-and-swap. [PT2] a message whose send has returned 0 is received, or dropped at
 *           the port's end, once, and whole. [PT3] no receiver waits while a message is ready; if one has arrived, a
 *           notification is on its way to the waiters. [PT4] a port reports that it is over when it is empty and no
 *           sender can add anything. [PT5] the port's memory is not freed while a sender is inside.
 * ORDERING  a sender publishes, or sets OVER, and then reads `wake`; a receiver sets WANTED, and then reads `arrived`
 *           and `word`: sequentially consistent, so one sees the other [PT3]. [PT6] returning a slot (release) pairs
 *           with claim (acquire). [PT7] publish (release) pairs with the exchange of port_take_arrived (acquire): the
 *           receiver finds the message whole.
 * PROGRESS  of senders: lock-free; a compare-and-swap fails only if another sender, or a receiver, has made progress.
 *           The end waits for senders that are inside: a few instructions, and a copy.
 * NOT DONE  a ring of slots: a sender interrupted between claiming its place and filling it would hold up all later
 *           ones. A lock with signals blocked: two system calls a message. A post for each message: only the first
 *           message after a receiver began to wait notifies. The references of other objects: there are too few of
 *           them.
 * TESTED BY tests/models/port.pml, tests/spec/port.c, tests/spec/port_signal.c, tests/sim/ports.c.
 */
#ifndef SYNC_PORT_H
#define SYNC_PORT_H

#include "../../include/strand/port.h"
#include "../strand/core.h"

#define MARK_PORT (UINT64_C(1) << 61) /* in the serial of a handle: core.h */

enum { PORT_CLOSED = 1, PORT_OVER = 2, PORT_REF = 4, PORT_REFS = 255 * PORT_REF };
_Static_assert(PORT_REFS + PORT_OVER + PORT_CLOSED < 1 << WORD_SERIAL, "they lie below the serial");

enum wake { WAKE_NONE, WAKE_WANTED, WAKE_POSTED };

struct box;

struct slot {
    _Atomic uint32_t next; /* in `free`, `arrived` or `ready`: number + 1; 0: the last */
    uint32_t size;
    struct box *box;
    _Alignas(16) char bytes[];
};

struct box {
    struct post post;
    strand_port handle; /* for the post: which port it notifies */
    struct runtime *runtime;
    _Atomic uint32_t refs;
    size_t stride; /* from slot to slot */
    _Atomic uint64_t refused;
    /* Written by senders and receivers. */
    _Alignas(CACHE_LINE) _Atomic uint64_t free; /* takings << FREE_TAG | number + 1 of the first */
    _Atomic uint64_t given;                     /* how many slots were returned */
    _Atomic uint32_t arrived;                   /* number + 1 of the newest */
    _Atomic uint32_t wake;
    _Alignas(CACHE_LINE) char slots[];
};
enum { FREE_TAG = 21 };
#define FREE_NUMBER ((UINT64_C(1) << FREE_TAG) - 1)
_Static_assert(STRAND_PORT_MAX_SLOTS < FREE_NUMBER, "a number fits");

struct port {
    _Atomic uint64_t word;
    void *link_[2]; /* the slab's */
    atomic_flag lock;
    uint32_t generation;   /* arch_generation when it was made */
    uint32_t first, last;  /* the ready messages: number + 1; 0: none */
    struct link receivers; /* wait nodes, FIFO */
    struct box *box;
    size_t message_size, slots;
    void (*drop)(void *message, size_t size);
    char name[32];
    void *site; /* where it was opened */
    struct owned owned;
};
_Static_assert(sizeof(struct port) <= OBJECT_SIZE && offsetof(struct port, lock) == OBJECT_LOCK,
               "a port is one of the run's objects");

static inline struct slot *box_slot(struct box *box, uint32_t number)
{
    return (struct slot *)(void *)(box->slots + (size_t)number * box->stride);
}

static inline void box_keep(struct box *box)
{
    atomic_fetch_add_explicit(&box->refs, 1, memory_order_relaxed);
}
/* On a thread of this run, not in a signal handler. */
void box_drop(struct box *box);

static inline void port_lock(struct thread *thread, struct port *port)
{
    spin_lock_if_concurrent(&port->lock, thread);
}

static inline void port_unlock(struct thread *thread, struct port *port)
{
    spin_unlock_if_concurrent(&port->lock, thread);
}

/* Find and lock the port of this run behind a handle. NULL: it is gone, or of another run. */
struct port *port_find(struct thread *thread, strand_port handle);
/* Report misuse: there is no such port; or `room` is too small for the messages of this port, which is locked. */
__attribute__((noreturn)) void port_misused(struct thread *thread, struct port *port, strand_port handle,
                                            const void *message, size_t room, const char *function);

/* ---- under the lock: port_receive.c --------------------------------------------------------------------------- */

/* Under the lock: hand arrived messages to waiters. If the port is over, end all waits. Waiters are left only if no
 * message is ready, and then WANTED is set. Strands to be made runnable go to the batch. */
void port_settle(struct thread *thread, struct port *port, struct batch *batch);
void port_end_waits(struct thread *thread, struct port *port, struct batch *batch);
/* Make all arrived messages ready. */
void port_take_arrived(struct port *port);
/* Take the first ready message. */
struct slot *port_take(struct port *port);

#endif
