/*
 * Datagrams, and the addresses of sockets. How an operation waits is in descriptor.h.
 */
#include "../../include/strand/socket.h"

#include "descriptor.h"

#include "../sched/thread.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct arch_name) == sizeof(strand_address) &&
                   offsetof(struct arch_name, length) == offsetof(strand_address, length),
               "an address of the interface is one of the system");
#define PAUSE_LEAST (100 * STRAND_US)
#define PAUSE_MOST (20 * STRAND_MS)

/* ---- addresses ------------------------------------------------------------------------------------------- */

static int put_address(strand_address *out, const struct arch_address *address)
{
    *out = (strand_address){.length = address->length};
    memcpy(out->name, address->bytes, sizeof out->name);
    return 0;
}

int strand_address_ip(strand_address *out, const char *host, int port)
{
    struct arch_address addresses[2];
    must_be_there(out, "place for the address", "strand_address_ip");
    must_be_there(host, "host", "strand_address_ip");
    int count = arch_address_tcp(host, port, true, false, addresses, 2);
    return count < 0 ? count : put_address(out, addresses);
}

int strand_address_unix(strand_address *out, const char *path)
{
    struct arch_address address;
    must_be_there(out, "place for the address", "strand_address_unix");
    must_be_there(path, "path", "strand_address_unix");
    int error = arch_address_of_name(path, &address);
    return error ? error : put_address(out, &address);
}

int strand_address_print(const strand_address *address, char *text, size_t room)
{
    must_be_there(address, "address", "strand_address_print");
    if (room)
        must_be_there(text, "buffer for the address", "strand_address_print");
    return address->length ? arch_address_text(address->name, address->length, text, room) : -EAFNOSUPPORT;
}

int strand_local_address(int fd, strand_address *out)
{
    must_be_there(out, "place for the address", "strand_local_address");
    struct arch_name name = {.length = 0};
    int error = fd_name(thread_self(), fd, &name);
    if (!error)
        memcpy(out, &name, sizeof *out);
    return error;
}

/* ---- sockets --------------------------------------------------------------------------------------------- */

static bool there_is(const strand_address *address)
{
    return address && address->length;
}

/* The address of version four that stands for all, if this one of version six does; or NULL. */
static const struct arch_address *all_of_four(const strand_address *address, struct arch_address all[2])
{
    int port = arch_address_port(address->name, address->length);
    if (port < 0 || arch_address_tcp("", port, true, false, all, 2) < 2 || all[0].length != address->length ||
        memcmp(all[0].bytes, address->name, address->length) != 0)
        return NULL;
    return &all[1];
}

/* A signal may come; otherwise such a socket connects at once. */
static int connect_at_once(struct thread *thread, int fd, const strand_address *peer)
{
    int error;
    while ((error = fd_connect(thread, fd, peer->name, peer->length)) == -EINPROGRESS)
        ;
    return error;
}

static int open_at(const strand_address *local, const strand_address *peer)
{
    struct thread *thread = thread_self();
    int fd = fd_socket_of_datagrams(thread, arch_address_family((local ? local : peer)->name)), error = fd < 0 ? fd : 0;
    if (error)
        return error;
    descriptor_made(fd);
    if (local)
        error = fd_bind(thread, fd, local->name, local->length);
    if (!error && peer)
        error = connect_at_once(thread, fd, peer);
    if (error)
        fd_close(thread, fd);
    return error ? error : fd;
}

int strand_datagram_open(const strand_address *local, const strand_address *peer)
{
    struct arch_address all[2];
    strand_address four;
    local = there_is(local) ? local : NULL;
    peer = there_is(peer) ? peer : NULL;
    if (!local && !peer)
        return -EINVAL;
    int fd = open_at(local, peer);
    const struct arch_address *other = fd == -EAFNOSUPPORT && local ? all_of_four(local, all) : NULL;
    if (!other) /* the machine has version six, or it is asked for */
        return fd;
    put_address(&four, other);
    return open_at(&four, peer);
}

/* ---- receiving and sending -------------------------------------------------------------------------------- */

/* A stream of TCP would lose bytes by the call of the system. */
static int64_t receive_one(struct operation *op, void *buffer, size_t size, struct arch_name *name)
{
    for (;;) {
        int64_t got = operation_ready(op);
        if (got < 0)
            return got;
        got = op->d->type == ARCH_FD_TCP ? -EOPNOTSUPP : fd_receive(op->thread, op->d->call, buffer, size, name);
        if (UNLIKELY(got == -ENOTSOCK || got == -EOPNOTSUPP) && !operation_mistaken(op, (int)got))
            continue;
        if (got != -EAGAIN)
            return got;
        operation_drained(op);
    }
}

int64_t strand_receive_from(int fd, void *buffer, size_t size, strand_address *from)
{
    struct operation op;
    if (size)
        must_be_there(buffer, "buffer", "strand_receive_from");
    int64_t got = operation_enter(&op, fd, SIDE_IN, "strand_receive_from");
    if (got < 0)
        return got;
    struct arch_name name = {.length = 0};
    got = receive_one(&op, buffer, size, from ? &name : NULL);
    operation_leave(&op);
    if (got >= 0 && from)
        memcpy(from, &name, sizeof *from);
    return got;
}

/* Returns -EAGAIN if the queue of a Unix receiver is full: no event reports the end of that unless the socket is
 * connected. */
static int64_t send_one(struct operation *op, const void *bytes, size_t size, const struct arch_name *name)
{
    for (;;) {
        int64_t put = operation_ready(op);
        if (put < 0)
            return put;
        put = fd_send(op->thread, op->d->call, bytes, size, name);
        if (UNLIKELY(put == -ENOTSOCK) && !(put = operation_mistaken(op, -ENOTSOCK)))
            continue;
        if (put != -EAGAIN)
            return put;
        if (name && fd_ready(op->thread, op->d->call) & ARCH_OUT)
            return put;
        operation_drained(op);
    }
}

int64_t strand_send_to(int fd, const void *bytes, size_t size, const strand_address *to)
{
    struct operation op;
    struct arch_name name;
    int64_t pause = PAUSE_LEAST, put;
    if (size)
        must_be_there(bytes, "bytes", "strand_send_to");
    to = there_is(to) ? to : NULL;
    if (to)
        memcpy(&name, to, sizeof name);
    for (;;) {
        if ((put = operation_enter(&op, fd, SIDE_OUT, "strand_send_to")) < 0)
            return put;
        put = send_one(&op, bytes, size, to ? &name : NULL);
        operation_leave(&op);
        if (put != -EAGAIN)
            return put;
        strand_sleep(pause);
        pause = pause < PAUSE_MOST ? pause * 2 : PAUSE_MOST;
    }
}
