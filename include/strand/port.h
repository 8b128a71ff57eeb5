/*
 * Ports: messages from anywhere in the process to the strands of one run.
 *
 *     strand_port port = strand_port_open(scope, sizeof(struct order), 64, NULL);
 *     ...                                         the handle goes to whoever is to send
 *     strand_port_send(port, &order, sizeof order);         any thread, another run, the handler of a signal
 *     ...
 *     while (strand_port_receive(port, &order, sizeof order) >= 0)
 *         ...
 *
 * Runs share nothing; a port is how they talk: a message is copied into one of its slots, and out of it. The memory of
 * all slots is taken when the port is opened, so sending takes none, and it waits for nobody: a port that is full says
 * so. The handle is a value which may be copied anywhere, into messages too, so that a peer can answer. It goes stale
 * when the port's scope has been left, whoever sends at that moment; who sends then is told.
 *
 * Messages have any length up to a limit. Those of one sender come in the order in which it has sent them; between
 * several senders the order is that in which their sends have ended. (A handler that sends in the middle of a send of
 * the thread that it interrupts comes first.) Receivers are served first come, first served.
 */
#ifndef STRAND_PORT_H
#define STRAND_PORT_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The handle of a port, a value. */
typedef struct {
    uint64_t bits[2];
} strand_port; /* {0}: none; goes stale when its scope has been left */

/** What a port may be told at its opening. Zero is the default of each. */
typedef struct strand_port_attr {
    size_t size;      /* sizeof(strand_port_attr); required */
    const char *name; /* for people; copied, up to 31 bytes; NULL: "port" */
    /* Gets each message that is left in the port at its end; may not block, nor throw: that is misuse. */
    void (*drop)(void *message, size_t size);
} strand_port_attr;

/** Attributes in the place of an argument, as STRAND_ATTR makes them of strands. */
#define STRAND_PORT_ATTR(...) STRAND_SIZED_(strand_port_attr, __VA_ARGS__)

/** The most bytes of a message, and the most slots of a port. */
#define STRAND_PORT_MESSAGE_MOST ((size_t)1 << 30)
#define STRAND_PORT_SLOTS_MOST ((size_t)1 << 20)

/**
 * Open a port in a scope, for messages of up to `message_size` bytes, with `slots` of them (at least one). attr may be
 * NULL. Throws STRAND_SYSTEM if memory is refused. Owner of the scope only, unless it is open. The port ends when its
 * scope has been left and all strands of it have ended: who waits there then gets -EPIPE. O(slots).
 */
strand_port strand_port_open(strand_scope scope, size_t message_size, size_t slots, const strand_port_attr *attr);

/**
 * Send a copy of the message, which may be NULL only if it has no bytes. Any thread: strands of this and of other runs,
 * plain threads, handlers of signals, whatever they have interrupted, another send included. Never waits, takes no
 * memory, and leaves errno alone. Returns 0: it is received, or goes to the drop function; or, and then nothing was
 * sent: -EAGAIN: no slot is free, or 255 are sending at this moment; -EMSGSIZE: it is longer than the port's messages;
 * -EPIPE: the port is closed or gone, or was never; -EINVAL: message is NULL. A handler that interrupts a send must
 * return, and not leave by siglongjmp. Some 40 ns; more if a strand waits for it, as then its run is told.
 */
STRAND_CHECKED int strand_port_send(strand_port port, const void *message, size_t size);
/** Close a port: no more can be sent; what is in it is still received. Closing it again, or one that is gone, changes
 *  nothing. Any thread, handlers too. Never interrupted. */
void strand_port_close(strand_port port);

/**
 * Receive the next message into `message`, which has room for `room` bytes: for the longest that the port may have,
 * else it is misuse. Waits for one. Returns its length, or -EPIPE: the port is closed, and nothing is left in it.
 * Strands of the run that has opened it. Interrupted, it has received nothing.
 */
STRAND_BLOCKS int64_t strand_port_receive(strand_port port, void *message, size_t room);
/** The same without waiting: -EAGAIN if that would have been needed. No cancellation point. */
STRAND_CHECKED int64_t strand_port_try_receive(strand_port port, void *message, size_t room);
/** To receive, as a case of a select: `result` of the case is the length, or -EPIPE. The memory has to stay until the
 *  select returns. */
strand_case strand_on_message(strand_port port, void *message, size_t room);

/** Figures of a port. */
struct strand_port_info {
    size_t size;         /* sizeof(struct strand_port_info); required */
    size_t message_size; /* the most bytes of a message */
    size_t slots;
    size_t taken;     /* slots that hold a message, or are about to, or from which one is being copied */
    uint64_t refused; /* sends that were told -EAGAIN */
    bool closed;
};
/** Fill in those figures that the struct has room for. Returns 0, or -EPIPE: the port is gone. Any thread, handlers
 * too.
 */
int strand_port_info_get(strand_port port, struct strand_port_info *info);

#ifdef __cplusplus
}
#endif
#endif
