/*
 * Simulated descriptors: the platform's functions. All hosts are one: the port alone identifies a TCP address, and only
 * a listener of the same run can be behind it.
 */
#include "net.h"

#include "../sched/fds.h"

#include <errno.h>

static bool has(struct subprocess *sub, int fd)
{
    return net_find(sim_of(sub), fd) != NULL;
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

/* ---- the poller ------------------------------------------------------------------------------------------ */

static int watch(struct subprocess *sub, int fd, uint64_t data)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    if (port->watched)
        return -EEXIST;
    port->watched = true;
    port->data = data;
    int now = net_ready(sub, fd);
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
    .ready = net_ready,
    .read = net_read,
    .write = net_write,
    .readv = net_readv,
    .writev = net_writev,
    .share = share_port,
    .receive = net_receive,
    .send = net_send,
    .shutdown = net_shut_down,
    .close = net_close_port,
    .blank = net_blank,
    .watch = watch,
    .unwatch = unwatch,
};
