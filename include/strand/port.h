/*
 * Ports carry messages from anywhere in the process to the strands of one run.
 *
 *     strand_port port = strand_port_open(scope, sizeof(struct order), 64, NULL);
 *     ...                                         the owner gives the handle to the senders
 *     strand_port_send(port, &order, sizeof order);         any thread, another run, the handler of a signal
 *     ...
 *     while (strand_port_receive(port, &order, sizeof order) >= 0)
 *         ...
 *
 * Runs share nothing and communicate through ports. A send copies the message into a slot of the port; a receive copies
 * it out. The port allocates its slots when it is opened, so a send allocates nothing and waits for nobody: it returns
 * -EAGAIN when the port is full. A handle may be copied anywhere, also into a message, so that a peer can answer. The
 * handle goes stale when the port's scope has been left; a later send returns -EPIPE.
 *
 * A message has any length up to the port's limit. The messages of one sender arrive in the order in which it sent
 * them. The messages of several senders arrive in the order in which their sends completed; a signal handler that sends
 * in the middle of a send of the interrupted thread completes first. Receivers are served in FIFO order.
 *
 * Which callers:
 *
 *   any thread, signal handlers           strand_port_send, strand_port_close, strand_port_info_get
 *   the owner of the scope, or any        strand_port_open
 *   strand of the run if it is open
 *   strands of the run that opened it     all other functions
 *
 * Suspension: only strand_port_receive may suspend the caller. It is a cancellation point. All other functions never
 * suspend.
 *
 * Cost: about 40 ns and the copy of the message, unless a function says otherwise.
 */
#ifndef STRAND_PORT_H
#define STRAND_PORT_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A handle of a port: a plain value that may be copied, also to other runs. {0} names no port. A handle goes stale
 * when the port's scope has been left. */
typedef struct {
    uint64_t bits[2];
} strand_port;

/** Optional attributes of a port. Zero is the default of each field but `size`. */
typedef struct strand_port_attr {
    size_t size;      /* sizeof(strand_port_attr); required */
    const char *name; /* diagnostics only; copied, up to 31 bytes; NULL means "port" */
    /* Called with each message that is left in the port when it ends. Blocking and throwing in it are misuse. NULL does
     * nothing. */
    void (*drop)(void *message, size_t size);
} strand_port_attr;

/** Write attributes as an argument, with `size` filled in: STRAND_PORT_ATTR(.name = "orders"). */
#define STRAND_PORT_ATTR(...) STRAND_SIZED_(strand_port_attr, __VA_ARGS__)

/**
 * The maximum size of a message in bytes, and the maximum number of slots of a port.
 *
 *     if (size > STRAND_PORT_MAX_MESSAGE_SIZE || count > STRAND_PORT_MAX_SLOTS)
 *         return -EINVAL;
 *     port = strand_port_open(scope, size, count, NULL);
 */
#define STRAND_PORT_MAX_MESSAGE_SIZE ((size_t)1 << 30)
#define STRAND_PORT_MAX_SLOTS ((size_t)1 << 20)

/**
 * Open a port in a scope. `message_size` is the maximum size of a message in bytes. `slots` is the number of messages
 * that the port holds, at least 1. `attr` may be NULL. Only the owner of the scope may call this function, or any
 * strand of the run if the scope is open (STRAND_SCOPE_OPEN). The call does not suspend. Cost: O(slots).
 *
 * The port ends when its scope has been left and all strands of the scope have ended. Strands that wait at the port
 * then get -EPIPE, and the messages that are left in it go to the function attr->drop.
 *
 * Returns the handle of the port. Throws STRAND_SYSTEM if there is no memory, or (with -ECANCELED) if the scope is open
 * and has been left.
 */
strand_port strand_port_open(strand_scope scope, size_t message_size, size_t slots, const strand_port_attr *attr);

/**
 * Send a copy of `size` bytes at `message`. `message` may be NULL only if `size` is 0. Any thread of the process may
 * send: strands of any run, plain threads, and signal handlers, which may interrupt anything, even another send. Such a
 * handler must return and not leave by siglongjmp. The call never waits, allocates nothing and preserves errno. Cost:
 * about 40 ns and the copy, and a system call if a strand waits for the message.
 *
 * Returns 0 if the port has the message; the message is then received or goes to the drop function. The other results
 * mean that nothing was sent. Returns -EAGAIN if no slot is free or 255 sends are in progress, -EMSGSIZE if `size`
 * exceeds the port's limit, -EPIPE if the port is closed or gone or never existed, and -EINVAL if `message` is NULL and
 * `size` is not 0.
 */
STRAND_CHECKED int strand_port_send(strand_port port, const void *message, size_t size);
/** Close a port. Later sends return -EPIPE; receivers still get the messages that are in the port. Closing a port that
 * is closed or gone has no effect. Any thread and signal handlers may call it. Cost: a few atomic operations, and a
 * system call if a strand waits at the port. */
void strand_port_close(strand_port port);

/**
 * Receive the next message into `message`. The call waits for a message. `room` is the size of that memory in bytes; a
 * size below the maximum size of the port's messages is misuse. The caller is a strand of the run that opened the port.
 *
 * Returns the length of the message, or -EPIPE if the port is closed and empty. An interrupted call has received
 * nothing. Cost: about 40 ns and the copy; a call that waits adds a switch to another strand and back.
 */
STRAND_BLOCKS int64_t strand_port_receive(strand_port port, void *message, size_t room);
/** Receive the next message of a port without waiting. The parameters are those of strand_port_receive. The call is not
 * a cancellation point. Returns the length of the message, -EAGAIN if the port is empty, or -EPIPE if it is closed and
 * empty. */
STRAND_CHECKED int64_t strand_port_try_receive(strand_port port, void *message, size_t room);
/** Make the case that a port has a message. The select receives it into `message`, whose size `room` is at least the
 * maximum size of the port's messages and which must stay valid until the select returns. The case's result is the
 * length of the message, or -EPIPE if the port is closed and empty. */
strand_case strand_on_message(strand_port port, void *message, size_t room);

/** Figures of a port. */
typedef struct strand_port_info {
    size_t size;         /* sizeof(strand_port_info); required */
    size_t message_size; /* the maximum size of a message in bytes */
    size_t slots;        /* the number of slots */
    size_t taken;        /* slots that hold a message or are being written or read */
    uint64_t refused;    /* sends that returned -EAGAIN */
    bool closed;
} strand_port_info;
/** Read the figures of a port into *info. The caller sets info->size; the function fills in the fields that this size
 * covers. Any thread and signal handlers may call it. Returns 0, or -EPIPE if the port is gone. */
int strand_port_info_get(strand_port port, strand_port_info *info);

#ifdef __cplusplus
}
#endif
#endif
