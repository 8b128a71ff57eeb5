/*
 * Simulated descriptors: which of them are ready, and the bytes and datagrams that go through them.
 */
#include "net.h"

#include <errno.h>

int net_ready(struct subprocess *sub, int fd)
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

int64_t net_receive(struct subprocess *sub, int fd, void *buffer, size_t size, struct arch_name *name)
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

int64_t net_send(struct subprocess *sub, int fd, const void *bytes, size_t size, const struct arch_name *name)
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

int64_t net_read(struct subprocess *sub, int fd, void *buffer, size_t size)
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

int64_t net_write(struct subprocess *sub, int fd, const void *bytes, size_t size)
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
        int64_t moved = reads ? net_read(sub, fd, bytes, size) : net_write(sub, fd, bytes, size);
        if (moved <= 0)
            return all ? all : moved;
        all += moved;
        if ((size_t)moved < size)
            break;
    }
    return all;
}

int64_t net_readv(struct subprocess *sub, int fd, const struct iovec *parts, int count)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    return port->datagrams ? datagram_receive_parts(sim, port, parts, count) : move_parts(sub, fd, parts, count, true);
}

int64_t net_writev(struct subprocess *sub, int fd, const struct iovec *parts, int count)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    return port->datagrams ? datagram_send_parts(sim, port, parts, count) : move_parts(sub, fd, parts, count, false);
}

int net_shut_down(struct subprocess *sub, int fd, int how)
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
