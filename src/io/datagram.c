/*
 * Datagrams, and the addresses of sockets. How an operation waits is in descriptor.h.
 */
#include "../../include/strand/socket.h"

#include "descriptor.h"
#include "io_blocked.h"
#include "socket.h"

#include "../sched/thread.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

_Static_assert(sizeof(struct arch_name) == sizeof(strand_address) &&
                   offsetof(struct arch_name, length) == offsetof(strand_address, length),
               "an address of the interface is one of the system");
_Static_assert(sizeof(struct arch_datagram) == sizeof(strand_datagram) &&
                   offsetof(struct arch_datagram, size) == offsetof(strand_datagram, size) &&
                   offsetof(struct arch_datagram, got) == offsetof(strand_datagram, got) &&
                   offsetof(struct arch_datagram, name) == offsetof(strand_datagram, address),
               "a datagram of the interface is one of the system");
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

bool socket_is_for_all(const strand_address *address, strand_address *four)
{
    struct arch_address all[2];
    int port = arch_address_port(address->name, address->length);
    if (port < 0 || arch_address_tcp("", port, true, false, all, 2) < 2 || all[0].length != address->length ||
        memcmp(all[0].bytes, address->name, address->length) != 0)
        return false;
    put_address(four, &all[1]);
    return true;
}

/* A signal may come; otherwise such a socket connects at once. */
static int connect_at_once(struct thread *thread, int fd, const strand_address *peer)
{
    int error;
    while ((error = fd_connect(thread, fd, peer->name, peer->length)) == -EINPROGRESS)
        ;
    return error;
}

static int open_at(const strand_address *local, const strand_address *peer, bool both)
{
    struct thread *thread = thread_self();
    int fd = fd_socket_of_datagrams(thread, arch_address_family((local ? local : peer)->name)), error = fd < 0 ? fd : 0;
    if (error)
        return error;
    descriptor_made(fd);
    if (both)
        error = fd_adjust(thread, fd, arch_fd_both);
    if (!error && local)
        error = fd_bind(thread, fd, local->name, local->length);
    if (!error && peer)
        error = connect_at_once(thread, fd, peer);
    if (error)
        fd_close(thread, fd);
    return error ? error : fd;
}

int strand_datagram_open(const strand_address *local, const strand_address *peer)
{
    strand_address four;
    local = there_is(local) ? local : NULL;
    peer = there_is(peer) ? peer : NULL;
    if (!local && !peer)
        return -EINVAL;
    bool both = local && socket_is_for_all(local, &four);
    int fd = open_at(local, peer, both);
    return fd == -EAFNOSUPPORT && both ? open_at(&four, peer, false) : fd;
}

/* ---- receiving and sending -------------------------------------------------------------------------------- */

/* A call on one datagram returns its size, and one on several returns how many it has moved. A stream of TCP would lose
 * bytes. */
static int64_t receive_some(struct operation *op, struct arch_datagram *list, int count, bool single)
{
    for (;;) {
        int64_t got = operation_ready(op);
        if (got < 0)
            return got;
        if (op->d->type == ARCH_FD_TCP)
            got = -EOPNOTSUPP;
        else if (single)
            got = fd_receive(op->thread, op->d->call, list->bytes, list->size, list->name);
        else
            got = fd_receive_many(op->thread, op->d->call, list, count);
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
    got = receive_some(&op, &(struct arch_datagram){buffer, size, 0, from ? &name : NULL}, 1, true);
    operation_leave(&op);
    if (got >= 0 && from)
        memcpy(from, &name, sizeof *from);
    return got;
}

static void must_be_datagrams(const strand_datagram *list, size_t count, const char *function)
{
    if (count)
        must_be_there(list, "list of datagrams", function);
    for (size_t i = 0; i < count; i++)
        if (list[i].size)
            must_be_there(list[i].bytes, "buffer of a datagram", function);
}

static size_t at_most(size_t count)
{
    return count < ARCH_DATAGRAMS_MOST ? count : ARCH_DATAGRAMS_MOST;
}

int strand_receive_many(int fd, strand_datagram *list, size_t count)
{
    struct operation op;
    count = at_most(count);
    must_be_datagrams(list, count, "strand_receive_many");
    int got = operation_enter(&op, fd, SIDE_IN, "strand_receive_many");
    if (got < 0)
        return got;
    if (count)
        got = (int)receive_some(&op, (struct arch_datagram *)(void *)list, (int)count, false);
    operation_leave(&op);
    return got;
}

/* The system's poll says of a Unix socket whether its own memory and the queue of its connected peer have room, and no
 * event tells of the queue of another receiver. So what is sent to an address waits for no event. */
static bool is_eventless(const struct arch_name *name)
{
    return name && arch_address_port(name->bytes, name->length) < 0;
}

/* Returns -EAGAIN if the caller has to try again, without an event that says when. */
static int64_t send_some(struct operation *op, const struct arch_datagram *list, int count, bool single)
{
    const struct arch_name *name = list->name && list->name->length ? list->name : NULL;
    bool eventless = is_eventless(name);
    for (;;) {
        int64_t put = eventless ? operation_continue(op) : operation_ready(op);
        if (put < 0)
            return put;
        if (op->d->type == ARCH_FD_TCP)
            put = -EOPNOTSUPP;
        else if (single)
            put = fd_send(op->thread, op->d->call, list->bytes, list->size, name);
        else
            put = fd_send_many(op->thread, op->d->call, list, count);
        if (UNLIKELY(put == -ENOTSOCK || put == -EOPNOTSUPP) && !operation_mistaken(op, (int)put))
            continue;
        if (put != -EAGAIN || eventless)
            return put;
        operation_drained(op);
    }
}

/* Sleep between two tries, while others may try. The operation stays inside, so that its number is not given to another
 * socket meanwhile [D1]. Returns 0, or a negated errno code. An interruption says how far the call has come. */
static int try_later(struct operation *op, int fd, int64_t ns)
{
    int64_t when = platform_now(op->thread->sub) + ns;
    int how;
    operation_step_aside(op);
    do {
        wait_because(op->thread, op->me, BLOCKED_DESCRIPTOR, (uint64_t)fd);
        descriptor_count_outside(op->thread, op->d, 1); /* the receiver may be another process */
        how = wait_until(op->thread, op->me, when, own_of(op->me)->floor);
        op->thread = thread_self();
        descriptor_count_outside(op->thread, op->d, -1);
        if (how == WAIT_INTERRUPTED && interrupted_here(op->me)) {
            uint64_t progress = op->progress;
            operation_leave(op);
            interrupt_throw(op->thread, op->me, progress);
        }
    } while (how == WAIT_INTERRUPTED);
    return how < 0 ? how : 0;
}

/* Send all. Returns the size of a single datagram, or how many of several were sent. */
static int64_t send_all(int fd, const struct arch_datagram *list, size_t count, bool single, const char *function)
{
    struct operation op;
    int64_t pause = PAUSE_LEAST, put = operation_enter(&op, fd, SIDE_OUT, function);
    if (put < 0)
        return put;
    while (op.progress < count) {
        put = send_some(&op, list + op.progress, (int)at_most(count - op.progress), single);
        if (put == -EAGAIN) {
            put = try_later(&op, fd, pause);
            pause = pause < PAUSE_MOST ? pause * 2 : PAUSE_MOST;
        } else if (put >= 0) {
            op.progress += single ? 1 : (uint64_t)put;
            pause = PAUSE_LEAST;
        }
        if (put < 0)
            break;
    }
    operation_leave(&op);
    return single || !op.progress ? put : (int64_t)op.progress;
}

int64_t strand_send_to(int fd, const void *bytes, size_t size, const strand_address *to)
{
    struct arch_name name = {.length = 0};
    if (size)
        must_be_there(bytes, "bytes", "strand_send_to");
    if (to)
        memcpy(&name, to, sizeof name);
    const struct arch_datagram one = {(void *)(uintptr_t)bytes, size, 0, &name};
    return send_all(fd, &one, 1, true, "strand_send_to");
}

int strand_send_many(int fd, const strand_datagram *list, size_t count)
{
    count = count < INT_MAX ? count : INT_MAX;
    must_be_datagrams(list, count, "strand_send_many");
    return (int)send_all(fd, (const struct arch_datagram *)(const void *)list, count, false, "strand_send_many");
}
