/*
 * Ports. Page: docs/protocols/port.md.
 *
 * PARTIES   senders: any thread of the process, and handlers of signals, which may have interrupted a sender, or a
 *           thread of the port's own run, anywhere; receivers, strands of that run; whoever closes it, as a sender;
 *           the scope that it ends with.
 * STATE     word: serial << WORD_SERIAL | pins << 2 | OVER | CLOSED. A pin is a sender that is inside. CLOSED: nobody
 *           comes in any more. OVER: it is closed, and the last sender has put in what it had. In the box, a block of
 *           memory of its own: slots; `free`, a stack of those that nobody has, whose head carries how often one was
 *           taken; `arrived`, a stack of messages, the newest first; `wake`: NONE; WANTED: a receiver waits, and is
 *           to be told; POSTED: it is being told, by the box's post. Under the lock: messages that are ready, in the
 *           order of coming; the queue of those who wait.
 *
 *             slot: free --claim--> a sender's --publish--> arrived --take_arrived--> ready --> a receiver's --> free
 *             wake: NONE --wants (lock)--> WANTED --a sender--> POSTED --arrive (lock)--> NONE
 *
 * PROTOCOL  send: pin; claim a slot; fill it; publish; if WANTED, make it POSTED, and post; unpin. Who unpins a
 *           closed port last makes it OVER first, and tells as if it had published. receive, under the lock: what has
 *           arrived goes to those who wait, in order (port_settle); then what is left is the caller's, or it is over,
 *           or the caller sets WANTED, looks once more, and waits.
 * OWNERSHIP a slot is its claimer's, then the port's, then the receiver's that it was handed to, who copies the
 *           message when it runs. The box outlives the port for as long as a receiver has a slot of it, or the pool
 *           has its post (refs).
 * INVARIANTS [P1] a sender waits for no lock, takes no memory, and no handler that sends in between undoes a step of
 *           it: each is one compare-and-swap. [P2] a message whose send has returned 0 is received, or dropped at the
 *           port's end, once, and whole. [P3] nobody waits while a message is ready; who waits while one has arrived
 *           is being told. [P4] a port says that it is over when nothing is in it, and nobody can put anything in.
 *           [P5] the port's memory is not given back while a sender is inside.
 * ORDERING  a sender publishes, or sets OVER, and then reads `wake`; a receiver sets WANTED, and then reads `arrived`
 *           and `word`: sequentially consistent, so one sees the other [P3]. publish is a release that pairs with the
 *           exchange of take_arrived; giving a slot back is one that pairs with claim.
 * PROGRESS  of senders: a compare-and-swap fails only if another sender, or a receiver, has got on. The end waits for
 *           senders that are inside: a few instructions, and a copy.
 * NOT DONE  a ring of slots: who is interrupted between claiming its place and filling it holds up all that come
 *           after. A lock with signals blocked: two system calls a message. A post for each message: only the first
 *           one after somebody has begun to wait tells. The pins of other objects: there are too few of them.
 * TESTED BY tests/models/port.pml, tests/spec/port.c, tests/spec/port_signal.c, tests/sim/ports.c.
 */
#ifndef SYNC_PORT_H
#define SYNC_PORT_H

#include "../../include/strand/port.h"
#include "../sched/pool.h"
#include "../strand/core.h"

enum { PORT_CLOSED = 1, PORT_OVER = 2, PORT_PIN = 4, PORT_PINS = 255 * PORT_PIN };
_Static_assert(PORT_PINS + PORT_OVER + PORT_CLOSED < 1 << WORD_SERIAL, "they lie below the serial");

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
    strand_port handle; /* for the post: whom it tells */
    struct runtime *runtime;
    _Atomic uint32_t refs;
    size_t stride; /* from slot to slot */
    _Atomic uint64_t refused;
    /* What senders and receivers change. */
    _Alignas(CACHE_LINE) _Atomic uint64_t free; /* how often one was taken << FREE_TAG | number + 1 of the first */
    _Atomic uint64_t given;                     /* how often one was given back */
    _Atomic uint32_t arrived;                   /* number + 1 of the newest */
    _Atomic uint32_t wake;
    _Alignas(CACHE_LINE) char slots[];
};
enum { FREE_TAG = 21 };
#define FREE_NUMBER ((UINT64_C(1) << FREE_TAG) - 1)
_Static_assert(STRAND_PORT_SLOTS_MOST < FREE_NUMBER, "a number fits");

struct port {
    _Atomic uint64_t word;
    void *link_[2]; /* the slab's */
    atomic_flag lock;
    uint32_t generation;   /* arch_generation at its making */
    uint32_t first, last;  /* of the messages that are ready: number + 1; 0: none */
    struct link receivers; /* wait nodes, the first come first */
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
/* Of this run: not in a handler. */
void box_drop(struct box *box);

static inline void port_lock(struct thread *thread, struct port *port)
{
    spin_lock_if_shared(&port->lock, thread);
}

static inline void port_unlock(struct thread *thread, struct port *port)
{
    spin_unlock_if_shared(&port->lock, thread);
}

/* The port of this run behind a handle, locked; NULL: it is gone, or of another run. */
struct port *port_find(struct thread *thread, strand_port handle);
/* Neither; or too little room for its messages, of the port that is locked then. */
__attribute__((noreturn)) void port_misused(struct thread *thread, struct port *port, strand_port handle,
                                            const void *message, size_t room, const char *function);

/* ---- under the lock: message.c ------------------------------------------------------------------------------------
 */

/* What has arrived goes to those who wait; if it is over, so are their waits. Afterwards somebody waits only if nothing
 * is ready, and then he is going to be told. Who has to be made runnable goes to the batch. */
void port_settle(struct thread *thread, struct port *port, struct batch *batch);
void port_end_waits(struct thread *thread, struct port *port, struct batch *batch);
/* All that has arrived is ready. */
void port_take_arrived(struct port *port);
/* The first that is ready; it is the caller's. */
struct slot *port_take(struct port *port);

#endif
