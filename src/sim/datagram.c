/*
 * Simulated datagrams. They arrive after a time that the seed decides, and in the order in which they were sent, unless
 * the options ask for faults: then datagrams of UDP are lost, arrive twice, or late. A queue is limited: one of UDP
 * drops what does not fit, and the sender of a Unix datagram has to wait.
 */
#include "net.h"

#include <errno.h>
#include <string.h>

enum { UDP_LARGEST = 65507, UNIX_LARGEST = 208 * 1024 - 32, UDP_QUEUE = 256, UNIX_QUEUE = 11, LATE_MOST = 8 };

static bool same(const struct net_name *one, const struct net_name *other)
{
    return one->number == other->number && memcmp(one->path, other->path, sizeof one->path) == 0;
}

static int nobody(const struct net_name *name)
{
    return name->number >= 0 || !name->path[0] ? -ECONNREFUSED : -ENOENT;
}

/* A socket of UDP gets a number when it first needs one. */
static void name_udp(struct sim *sim, struct port *port, const struct net_name *peer)
{
    if (peer->number < 0 || port->state != PORT_NEW)
        return;
    port->name.number = net_next_number(sim, true);
    port->state = PORT_BOUND;
}

int datagram_connect(struct sim *sim, struct port *port, const void *address, uint32_t length)
{
    const struct net_name name = net_name_of(address, length);
    const struct port *peer = net_find_bound(sim, &name, true);
    if (port->state == PORT_BLANK)
        return -EBADF;
    if (name.number < 0 && !peer)
        return nobody(&name);
    if (peer && !peer->datagrams)
        return -EPROTOTYPE;
    name_udp(sim, port, &name);
    port->peer = name;
    net_copy_address(&port->peer_address, address, length);
    port->connected = true;
    return 0;
}

/* Whether a connected Unix socket has to wait, because its peer's queue is full. */
static bool peer_is_full(const struct sim *sim, const struct port *port)
{
    const struct port *peer = port->connected && port->peer.number < 0 ? net_find_bound(sim, &port->peer, true) : NULL;
    return peer && peer->queued >= UNIX_QUEUE;
}

/* Notify those that may wait for room in the queue of a port. */
static void wake_senders(struct sim *sim, const struct port *port)
{
    for (int fd = 0; port->name.number < 0 && fd < sim->net->room; fd++) {
        struct port *sender = sim->net->ports[fd];
        if (sender && sender->datagrams && sender->connected && same(&sender->peer, &port->name))
            net_report(sim, sender, ARCH_OUT, sim->now + net_latency(sim, false));
    }
}

/* ---- sending --------------------------------------------------------------------------------------------- */

/* Enqueue a datagram behind those that arrive before it. Returns false if there is no memory. */
static bool deliver(struct sim *sim, const struct port *from, struct port *to, const void *bytes, size_t size, bool udp)
{
    int64_t at = sim->now + net_latency(sim, udp);
    struct packet *packet = sim_resize(sim, NULL, sizeof *packet + size);
    if (!packet)
        return false;
    at = at > to->last ? at : to->last;
    if (udp && order_once_in(sim, sim->options.delays))
        at += net_latency(sim, true) * (1 + (int64_t)order_chance(sim, LATE_MOST));
    else
        to->last = at;
    *packet = (struct packet){.at = at, .from = from->name, .size = size};
    if (size)
        memcpy(packet->bytes, bytes, size);
    arch_san_release(packet);
    struct packet **link = &to->packets;
    while (*link && (*link)->at <= at)
        link = &(*link)->next;
    packet->next = *link;
    *link = packet;
    to->queued++;
    net_report(sim, to, ARCH_IN, at);
    return true;
}

/* The receiver, or NULL: nobody. A connected one hears its peer only. */
static struct port *receiver_of(struct sim *sim, const struct port *from, const struct net_name *name, int *error)
{
    struct port *to = net_choose_bound(sim, name, true);
    *error = !to ? nobody(name) : to->datagrams ? 0 : -EPROTOTYPE;
    if (!*error && to->connected && !same(&to->peer, &from->name))
        *error = name->number < 0 ? -EPERM : -ECONNREFUSED;
    return *error ? NULL : to;
}

/* A datagram of UDP has gone out. The sender may learn later that nobody is there. */
static int64_t send_udp(struct sim *sim, struct port *port, const void *bytes, size_t size, const struct net_name *name)
{
    int error;
    if (size > UDP_LARGEST)
        return -EMSGSIZE;
    name_udp(sim, port, name);
    struct port *to = receiver_of(sim, port, name, &error);
    if (order_once_in(sim, sim->options.losses))
        return (int64_t)size;
    if (!to && port->connected) {
        port->refusal = error;
        port->since = sim->now + net_latency(sim, true);
        net_report(sim, port, ARCH_IN | ARCH_OUT | ARCH_END, port->since);
    }
    for (int copies = 1 + order_once_in(sim, sim->options.repeats); to && !to->deaf && copies; copies--)
        if (to->queued < UDP_QUEUE && !deliver(sim, port, to, bytes, size, true))
            return -ENOBUFS;
    return (int64_t)size;
}

static int64_t send_unix(struct sim *sim, struct port *port, const void *bytes, size_t size,
                         const struct net_name *name)
{
    int error;
    if (size > UNIX_LARGEST)
        return -EMSGSIZE;
    struct port *to = receiver_of(sim, port, name, &error);
    if (!to || to->deaf)
        return to ? -EPIPE : error;
    if (to->queued >= UNIX_QUEUE)
        return -EAGAIN;
    return deliver(sim, port, to, bytes, size, false) ? (int64_t)size : -ENOBUFS;
}

/* Whether an error is known by now. Returns it, once. */
static int error_of(struct sim *sim, struct port *port)
{
    int error = port->refusal;
    if (!error || port->since > sim->now)
        return 0;
    port->refusal = 0;
    return error;
}

int64_t datagram_send(struct sim *sim, struct port *port, const void *bytes, size_t size, const struct net_name *to)
{
    if (port->state == PORT_BLANK)
        return -EBADF;
    if (port->mute)
        return -EPIPE;
    int error = error_of(sim, port);
    if (error)
        return error;
    if (!to && !port->connected)
        return port->name.number >= 0 ? -EDESTADDRREQ : -ENOTCONN;
    const struct net_name name = to ? *to : port->peer;
    return name.number >= 0 ? send_udp(sim, port, bytes, size, &name) : send_unix(sim, port, bytes, size, &name);
}

/* ---- receiving ------------------------------------------------------------------------------------------- */

static bool has_arrived(const struct sim *sim, const struct port *port)
{
    return port->packets && port->packets->at <= sim->now;
}

int64_t datagram_receive(struct sim *sim, struct port *port, void *buffer, size_t size, struct net_name *from)
{
    if (port->state == PORT_BLANK)
        return -EBADF;
    int error = error_of(sim, port);
    if (error)
        return error;
    if (!has_arrived(sim, port))
        return port->deaf ? 0 : -EAGAIN;
    struct packet *packet = port->packets;
    arch_san_acquire(packet);
    port->packets = packet->next;
    if (port->queued-- == UNIX_QUEUE)
        wake_senders(sim, port);
    if (from)
        *from = packet->from;
    int64_t got = (int64_t)packet->size;
    if (size)
        memcpy(buffer, packet->bytes, size < packet->size ? size : packet->size);
    sim_free(sim, packet);
    if (has_arrived(sim, port)) /* a reader of bytes takes a short read for the last one */
        net_report(sim, port, ARCH_IN, sim->now);
    return got;
}

/* ---- several buffers ------------------------------------------------------------------------------------- */

static size_t size_of(const struct iovec *parts, int count)
{
    size_t all = 0, size;
    for (int i = 0; i < count; i++, all += size)
        (void)arch_fd_part(parts, i, &size);
    return all;
}

int64_t datagram_receive_parts(struct sim *sim, struct port *port, const struct iovec *parts, int count)
{
    size_t all = size_of(parts, count), done = 0, size;
    char *room = sim_resize(sim, NULL, all);
    if (!room)
        return -ENOMEM;
    int64_t got = datagram_receive(sim, port, room, all, NULL);
    got = got > (int64_t)all ? (int64_t)all : got;
    for (int i = 0; got > (int64_t)done; i++, done += size) {
        void *bytes = arch_fd_part(parts, i, &size);
        if (size)
            memcpy(bytes, room + done, size < (size_t)got - done ? size : (size_t)got - done);
    }
    sim_free(sim, room);
    return got;
}

int64_t datagram_send_parts(struct sim *sim, struct port *port, const struct iovec *parts, int count)
{
    size_t all = size_of(parts, count), done = 0, size;
    char *room = sim_resize(sim, NULL, all);
    if (!room)
        return -ENOMEM;
    for (int i = 0; i < count; i++, done += size) {
        const void *bytes = arch_fd_part(parts, i, &size);
        if (size)
            memcpy(room + done, bytes, size);
    }
    int64_t put = datagram_send(sim, port, room, all, NULL);
    sim_free(sim, room);
    return put;
}

/* ---- the socket ------------------------------------------------------------------------------------------ */

int datagram_ready(struct sim *sim, const struct port *port)
{
    if (port->state == PORT_BLANK)
        return -EBADF;
    if (port->refusal && port->since <= sim->now)
        return ARCH_IN | ARCH_OUT | ARCH_END;
    int in = has_arrived(sim, port) ? ARCH_IN : 0, out = peer_is_full(sim, port) ? 0 : ARCH_OUT;
    return in | out | (port->deaf ? ARCH_IN | ARCH_END : 0);
}

int datagram_shut_down(struct sim *sim, struct port *port, int how)
{
    if (!port->connected)
        return port->state == PORT_BLANK ? -EBADF : -ENOTCONN;
    port->deaf |= how != SHUT_WRITING;
    port->mute |= how != SHUT_READING;
    net_report(sim, port, ARCH_OUT | (port->deaf ? ARCH_IN | ARCH_END : 0), sim->now);
    return 0;
}

void datagram_forget(struct sim *sim, struct port *port)
{
    for (struct packet *packet; (packet = port->packets);) {
        port->packets = packet->next;
        sim_free(sim, packet);
    }
    port->queued = 0;
    if (port->datagrams)
        wake_senders(sim, port);
}
