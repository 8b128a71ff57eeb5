/*
 * Simulated descriptors: the objects behind their numbers, which they share with the system's.
 */
#include "net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_FIRST = 40000 };

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

int net_close_port(struct subprocess *sub, int fd)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_find(sim, fd);
    disconnect(sim, port);
    sim->net->ports[fd] = NULL;
    sim_free(sim, port);
    return arch_fd_close(fd);
}

int net_blank(struct subprocess *sub, int fd)
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
            (void)net_close_port(sim->sub, fd);
    if (net) {
        sim_free(sim, net->ports);
        sim_free(sim, net->events);
    }
    sim_free(sim, net);
    sim->net = NULL;
}
