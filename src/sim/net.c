/*
 * Simulated descriptors: the platform's functions. All hosts are one: the port alone identifies a TCP address, and only
 * a listener of the same run can be behind it.
 */
#include "net.h"

#include "../sched/fds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_FIRST = 40000 };

/* ---- numbers and ports ----------------------------------------------------------------------------------- */

struct port *net_find(const struct sim *sim, int fd)
{
    const struct net *net = sim->net;
    return net && fd >= 0 && fd < net->room ? net->ports[fd] : NULL;
}

static bool has(struct subprocess *sub, int fd)
{
    return net_find(sim_of(sub), fd) != NULL;
}

void net_meet(struct subprocess *sub, int fd)
{
    char text[128];
    struct sim *sim = sim_of(sub);
    if (sim->met)
        return;
    sim->met = true;
    snprintf(text, sizeof text, "descriptor %d is the system's: the seed alone does not reproduce this run", fd);
    sub->ops->warn(sub, text);
}

static struct net *net_of(struct sim *sim)
{
    if (!sim->net && (sim->net = sim_resize(sim, NULL, sizeof *sim->net))) {
        *sim->net = (struct net){0};
        sim->net->next = ARCH_FOREVER;
        sim->net->last_number = NUMBER_FIRST;
    }
    return sim->net;
}

int net_enrol(struct sim *sim, struct port *port)
{
    struct net *net = sim->net;
    int fd = arch_fd_number();
    if (fd < 0)
        return fd;
    if (fd >= net->room) {
        int room = (fd + 64) & ~63;
        struct port **more = sim_resize(sim, net->ports, (size_t)room * sizeof *more);
        if (!more) {
            (void)arch_fd_close(fd);
            return -ENOMEM;
        }
        memset(more + net->room, 0, (size_t)(room - net->room) * sizeof *more);
        net->ports = more;
        net->room = room;
    }
    net->ports[fd] = port;
    return port->fd = fd;
}

struct port *net_make_port(struct sim *sim, enum port_state state)
{
    struct port *port = net_of(sim) ? sim_resize(sim, NULL, sizeof *port) : NULL;
    if (port)
        *port = (struct port){.fd = -1, .state = state, .name.number = -EAFNOSUPPORT};
    return port;
}

/* Undo everything but the number. */
static void disconnect(struct sim *sim, struct port *port)
{
    struct port *pending = port->pending;
    if (port->in && port->in->used && port->in->slow && port->out)
        flow_break(sim, port->out); /* bytes were never read: the peer gets a reset */
    if (port->in)
        flow_leave_reader(sim, port->in);
    if (port->out)
        flow_leave_writer(sim, port->out);
    datagram_forget(sim, port);
    port->in = port->out = NULL;
    port->pending = NULL;
    port->state = PORT_BLANK;
    while (pending) {
        struct port *next = pending->next_pending;
        if (pending->out)
            flow_break(sim, pending->out);
        disconnect(sim, pending);
        arch_san_acquire(pending);
        sim_free(sim, pending);
        pending = next;
    }
    net_forget(sim, port);
}

static int close_port(struct subprocess *sub, int fd)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    disconnect(sim, port);
    sim->net->ports[fd] = NULL;
    sim_free(sim, port);
    return arch_fd_close(fd);
}

static int blank(struct subprocess *sub, int fd)
{
    struct sim *sim = sim_of(sub);
    disconnect(sim, net_find(sim, fd));
    return 0;
}

void net_close(struct sim *sim)
{
    struct net *net = sim->net;
    for (int fd = 0; net && fd < net->room; fd++)
        if (net->ports[fd])
            (void)close_port(sim->sub, fd);
    if (net) {
        sim_free(sim, net->ports);
        sim_free(sim, net->events);
    }
    sim_free(sim, net);
    sim->net = NULL;
}

/* ---- pipes ----------------------------------------------------------------------------------------------- */

static int make_pipe(struct subprocess *sub, int fds[2])
{
    struct sim *sim = sim_of(sub);
    struct port *reader = net_make_port(sim, PORT_OPEN), *writer = net_make_port(sim, PORT_OPEN);
    struct flow *flow = reader && writer ? flow_make(sim, reader, writer, false, true) : NULL;
    int error = flow ? 0 : -ENOMEM;
    if (!error && (error = net_enrol(sim, reader)) >= 0 && (error = net_enrol(sim, writer)) < 0) {
        sim->net->ports[reader->fd] = NULL;
        (void)arch_fd_close(reader->fd);
    }
    if (error < 0) {
        if (flow) {
            flow_leave_reader(sim, flow);
            flow_leave_writer(sim, flow);
        }
        sim_free(sim, reader);
        sim_free(sim, writer);
        return error;
    }
    reader->in = writer->out = flow;
    fds[0] = reader->fd;
    fds[1] = writer->fd;
    return 0;
}

/* ---- sockets --------------------------------------------------------------------------------------------- */

static int make_any_socket(struct subprocess *sub, bool datagrams)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_make_port(sim, PORT_NEW);
    int fd = port ? net_enrol(sim, port) : -ENOMEM;
    if (fd < 0)
        sim_free(sim, port);
    else
        port->datagrams = datagrams;
    return fd;
}

static int make_socket(struct subprocess *sub, int family)
{
    (void)family;
    return make_any_socket(sub, false);
}

static int make_socket_of_datagrams(struct subprocess *sub, int family)
{
    (void)family;
    return make_any_socket(sub, true);
}

static int bind_port(struct subprocess *sub, int fd, const void *address, uint32_t length)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    struct net_name name = net_name_of(address, length);
    if (port->state != PORT_NEW)
        return -EINVAL;
    if (name.number == 0)
        name.number = net_next_number(sim, port->datagrams);
    else if (name.number < 0 && !net_has_path(&name))
        net_choose_path(sim, &name);
    const struct port *other = net_find_bound(sim, &name, port->datagrams);
    if (other && !(other->shares && port->shares))
        return -EADDRINUSE;
    port->name = name;
    port->state = PORT_BOUND;
    return 0;
}

static int share_port(struct subprocess *sub, int fd)
{
    net_find(sim_of(sub), fd)->shares = true;
    return 0;
}

static int listen_port(struct subprocess *sub, int fd)
{
    struct port *port = net_find(sim_of(sub), fd);
    if (port->datagrams)
        return -EOPNOTSUPP;
    if (port->state != PORT_BOUND)
        return -EINVAL;
    port->state = PORT_LISTENS;
    return 0;
}

/* Enqueue the other end at the listener, from `at` on. Returns false if there is no memory. */
static bool queue_up(struct sim *sim, struct port *listener, struct port *port, int64_t at)
{
    struct port *peer = net_make_port(sim, PORT_OPEN);
    bool local = listener->name.number < 0;
    port->out = peer ? flow_make(sim, peer, port, true, local) : NULL;
    port->in = port->out ? flow_make(sim, port, peer, true, local) : NULL;
    if (!port->in) {
        if (port->out)
            sim_free(sim, port->out);
        port->out = NULL;
        sim_free(sim, peer);
        return false;
    }
    flow_spoil(sim, port->in, port->out);
    peer->in = port->out;
    peer->out = port->in;
    peer->name = listener->name;
    peer->since = at;
    struct port **link = &listener->pending;
    while (*link && (*link)->since <= at)
        link = &(*link)->next_pending;
    peer->next_pending = *link;
    *link = peer;
    net_report(sim, listener, ARCH_IN, at);
    return true;
}

static int connect_port(struct subprocess *sub, int fd, const void *address, uint32_t length)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    struct net_name name = net_name_of(address, length);
    if (port->datagrams)
        return datagram_connect(sim, port, address, length);
    if (port->state != PORT_NEW)
        return port->state == PORT_CONNECTS ? -EALREADY : port->state == PORT_OPEN ? -EISCONN : -EBADF;
    struct port *listener = net_choose_bound(sim, &name, false);
    if (listener && listener->datagrams)
        return -EPROTOTYPE;
    int64_t delay = 0;
    int refusal = name.number < 0 ? 0 : route_of(sim, address, &delay);
    if (refusal == -ENETUNREACH)
        return refusal;
    int64_t there = sim->now + delay + net_latency(sim, true);
    if (!refusal && !(listener && listener->state == PORT_LISTENS))
        refusal = name.number < 0 ? -ENOENT : -ECONNREFUSED;
    port->refusal = refusal;
    if (!port->refusal && !queue_up(sim, listener, port, there))
        return -ENOBUFS;
    if (name.number < 0 && port->refusal)
        return port->refusal;
    port->state = PORT_CONNECTS;
    port->name.number = name.number < 0 ? name.number : net_next_number(sim, false);
    net_copy_address(&port->peer_address, address, length);
    if (port->out) {
        net_put_name(&port->name, &port->out->reader->peer_address);
        arch_san_release(port->out->reader); /* the strand that accepts or refuses it frees it */
    }
    port->since = there + net_latency(sim, true);
    net_report(sim, port, port->refusal ? ARCH_IN | ARCH_OUT | ARCH_END : ARCH_OUT, port->since);
    return -EINPROGRESS;
}

static int error_of(struct subprocess *sub, int fd)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    int refusal = port->refusal;
    if (port->state != PORT_CONNECTS || port->since > sim->now)
        return 0;
    port->state = refusal ? PORT_NEW : PORT_OPEN;
    port->refusal = 0;
    return refusal;
}

static int accept_port(struct subprocess *sub, int fd)
{
    struct sim *sim = sim_of(sub);
    struct port *listener = net_find(sim, fd), *first = listener->pending;
    if (listener->state != PORT_LISTENS)
        return listener->state == PORT_BLANK ? -EBADF : -EINVAL;
    if (!first || first->since > sim->now)
        return -EAGAIN;
    arch_san_acquire(first);
    int number = net_enrol(sim, first);
    if (number >= 0)
        listener->pending = first->next_pending;
    return number;
}

static int number_of(struct subprocess *sub, int fd)
{
    const struct port *port = net_find(sim_of(sub), fd);
    return port->state == PORT_BLANK ? -EBADF : port->name.number;
}

static int name_of(struct subprocess *sub, int fd, struct arch_name *out)
{
    const struct port *port = net_find(sim_of(sub), fd);
    if (port->state == PORT_BLANK)
        return -EBADF;
    if (port->state == PORT_OPEN && (!port->in || !port->out))
        return -ENOTSOCK; /* an end of a pipe */
    net_put_name(&port->name, out);
    return 0;
}

static int peer_name_of(struct subprocess *sub, int fd, struct arch_name *out)
{
    const struct port *port = net_find(sim_of(sub), fd);
    int error = name_of(sub, fd, out);
    if (error)
        return error;
    if (port->state != PORT_OPEN && !port->connected)
        return -ENOTCONN;
    *out = port->peer_address;
    return 0;
}

static int peer_of(struct subprocess *sub, int fd, char *text, size_t room)
{
    struct arch_name name;
    int error = peer_name_of(sub, fd, &name);
    return error ? error : arch_address_text(name.bytes, name.length, text, room);
}

/* ---- bytes ----------------------------------------------------------------------------------------------- */

static int ready(struct subprocess *sub, int fd)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    uint32_t result = 0;
    if (port->datagrams)
        return datagram_ready(sim, port);
    switch (port->state) {
    case PORT_BLANK:
        return -EBADF;
    case PORT_CLOCK:
        return calendar_ready(sim, port);
    case PORT_LISTENS:
        return port->pending && port->pending->since <= sim->now ? ARCH_IN : 0;
    case PORT_CONNECTS:
        if (port->since > sim->now || port->refusal)
            return port->since > sim->now ? 0 : ARCH_IN | ARCH_OUT | ARCH_END;
        break; /* connected, though unnoticed yet: the peer may have sent something, and may have closed */
    case PORT_OPEN:
        break;
    default:
        return ARCH_OUT | ARCH_END; /* like a socket that is not connected */
    }
    if (port->in)
        result |= flow_ready_in(sim, port->in);
    if (port->out)
        result |= flow_ready_out(port->out);
    return (int)result;
}

/* Returns 0, or the reason why nothing can be read or written. */
static int check_open(const struct port *port, const struct flow *flow)
{
    if (port->state == PORT_BLANK)
        return -EBADF;
    if (port->state == PORT_CONNECTS)
        return -EAGAIN;
    if (port->state != PORT_OPEN)
        return -ENOTCONN;
    return flow ? 0 : -EBADF;
}

static int64_t receive(struct subprocess *sub, int fd, void *buffer, size_t size, struct arch_name *name)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    struct net_name from = {.number = -1}; /* no name: there is no sender at the end */
    if (!port->datagrams)
        return port->state == PORT_BLANK ? -EBADF : -EOPNOTSUPP;
    int64_t got = datagram_receive(sim, port, buffer, size, &from);
    if (got >= 0 && name)
        net_put_name(&from, name);
    if (got >= 0 && name && from.number < 0 && !net_has_path(&from))
        name->length = 0;
    return got;
}

static int64_t transmit(struct subprocess *sub, int fd, const void *bytes, size_t size, const struct arch_name *name)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    if (!port->datagrams)
        return port->state == PORT_BLANK ? -EBADF : -EOPNOTSUPP;
    struct net_name to;
    if (name)
        to = net_name_of(name->bytes, name->length);
    return datagram_send(sim, port, bytes, size, name ? &to : NULL);
}

static int64_t read_port(struct subprocess *sub, int fd, void *buffer, size_t size)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    if (port->state == PORT_CLOCK)
        return calendar_read(sim, port, buffer, size);
    if (port->datagrams) {
        int64_t got = datagram_receive(sim, port, buffer, size, NULL);
        return got > (int64_t)size ? (int64_t)size : got;
    }
    int error = check_open(port, port->in);
    return error ? error : flow_read(sim, port->in, buffer, size);
}

static int64_t write_port(struct subprocess *sub, int fd, const void *bytes, size_t size)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    if (port->datagrams)
        return datagram_send(sim, port, bytes, size, NULL);
    int error = check_open(port, port->out);
    if (!error && port->in && flow_ready_in(sim, port->in) && port->in->broken)
        error = -EPIPE; /* the peer has sent a reset */
    if (error)
        return error;
    int64_t put = flow_write(sim, port->out, bytes, size);
    bool breaks = put > 0 && port->out->sent >= port->out->breaks_at;
    if (put > 0 && port->in && (breaks || !port->out->reader)) { /* a peer that has gone answers by a reset */
        flow_break(sim, port->in);
        flow_break(sim, port->out);
    }
    return put;
}

/* Each part as a call of its own, up to one that finds less than it asked for. */
static int64_t move_parts(struct subprocess *sub, int fd, const struct iovec *parts, int count, bool reads)
{
    int64_t all = 0;
    for (int i = 0; i < count; i++) {
        size_t size;
        void *bytes = arch_fd_part(parts, i, &size);
        if (!size)
            continue;
        int64_t moved = reads ? read_port(sub, fd, bytes, size) : write_port(sub, fd, bytes, size);
        if (moved <= 0)
            return all ? all : moved;
        all += moved;
        if ((size_t)moved < size)
            break;
    }
    return all;
}

static int64_t readv_port(struct subprocess *sub, int fd, const struct iovec *parts, int count)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    return port->datagrams ? datagram_receive_parts(sim, port, parts, count) : move_parts(sub, fd, parts, count, true);
}

static int64_t writev_port(struct subprocess *sub, int fd, const struct iovec *parts, int count)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    return port->datagrams ? datagram_send_parts(sim, port, parts, count) : move_parts(sub, fd, parts, count, false);
}

static int shut_down(struct subprocess *sub, int fd, int how)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    int error = check_open(port, port->in);
    if (how < SHUT_READING || how > SHUT_BOTH)
        return -EINVAL;
    if (port->datagrams)
        return datagram_shut_down(sim, port, how);
    if (port->state == PORT_LISTENS && how != SHUT_WRITING) { /* accepting strands are notified */
        port->state = PORT_BOUND;
        net_report(sim, port, ARCH_IN | ARCH_OUT | ARCH_END, sim->now);
        return 0;
    }
    if (error || !port->out)
        return error == -EBADF ? error : -ENOTCONN;
    if (how != SHUT_WRITING) {
        port->in->deaf = true;
        net_report(sim, port, ARCH_IN | ARCH_END, sim->now);
    }
    if (how != SHUT_READING)
        flow_end(sim, port->out);
    return 0;
}

/* ---- the poller ------------------------------------------------------------------------------------------ */

static int watch(struct subprocess *sub, int fd, uint64_t data)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    if (port->watched)
        return -EEXIST;
    port->watched = true;
    port->data = data;
    int now = ready(sub, fd);
    if (now > 0)
        net_report(sim, port, (uint32_t)now, sim->now);
    return 0;
}

static int unwatch(struct subprocess *sub, int fd)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    if (!port || !port->watched)
        return -ENOENT;
    port->watched = false;
    return 0;
}

const struct platform_fds net_fds = {
    .has = has,
    .socket = make_socket,
    .socket_of_datagrams = make_socket_of_datagrams,
    .pipe = make_pipe,
    .date = calendar_wait,
    .date_now = calendar_now,
    .bind = bind_port,
    .listen = listen_port,
    .connect = connect_port,
    .accept = accept_port,
    .error = error_of,
    .port = number_of,
    .peer = peer_of,
    .name = name_of,
    .peer_name = peer_name_of,
    .ready = ready,
    .read = read_port,
    .write = write_port,
    .readv = readv_port,
    .writev = writev_port,
    .share = share_port,
    .receive = receive,
    .send = transmit,
    .shutdown = shut_down,
    .close = close_port,
    .blank = blank,
    .watch = watch,
    .unwatch = unwatch,
};
