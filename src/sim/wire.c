/*
 * Flows of bytes, and their events. The seed decides how long bytes are in transit, in which portions they arrive, how
 * many of them a write takes and a read gets, and whether a connection breaks or falls silent.
 */
#include "net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RING_FIRST = 256, MOST_LEAST = 4096, MOST_SHIFTS = 5, FAULT_SHIFTS = 13 };
/* One call in so many moves only a part of what it could. */
enum { CUT_ONE_IN = 4 };
enum { LATENCY_NS = 16, LATENCY_SHIFTS = 14, PIPE_SHIFTS = 6 };

int64_t net_latency(struct sim *sim, bool slow)
{
    return (int64_t)LATENCY_NS << order_chance(sim, slow ? LATENCY_SHIFTS : PIPE_SHIFTS);
}

/* ---- events ---------------------------------------------------------------------------------------------- */

int64_t net_next(const struct sim *sim)
{
    return sim->net ? sim->net->next : ARCH_FOREVER;
}

static void find_next(struct net *net)
{
    net->next = ARCH_FOREVER;
    for (uint32_t i = 0; i < net->count; i++)
        if (net->events[i].at < net->next)
            net->next = net->events[i].at;
}

/* An event would be lost: the run can't go on as if nothing were wrong. */
static void *or_fail(struct sim *sim, void *memory)
{
    if (!memory)
        report_fail(sim, "no memory for bytes in transit between descriptors");
    return memory;
}

void net_report(struct sim *sim, struct port *port, uint32_t events, int64_t at)
{
    struct net *net = sim->net;
    if (!port)
        return;
    if (net->count == net->events_room) {
        net->events_room = net->events_room ? net->events_room * 2 : 16;
        net->events = or_fail(sim, sim_resize(sim, net->events, net->events_room * sizeof *net->events));
    }
    net->events[net->count++] = (struct event){at, port, events};
    if (at < net->next)
        net->next = at;
}

void net_forget(struct sim *sim, const struct port *port)
{
    struct net *net = sim->net;
    for (uint32_t i = 0; i < net->count;) {
        if (net->events[i].port == port)
            net->events[i] = net->events[--net->count];
        else
            i++;
    }
    find_next(net);
}

int net_take(struct sim *sim, struct arch_event *events, int most)
{
    struct net *net = sim->net;
    int count = 0;
    while (net && count < most && net->next <= sim->now) {
        uint32_t due = 0, at = 0;
        for (uint32_t i = 0; i < net->count; i++)
            due += net->events[i].at <= sim->now;
        uint32_t skip = order_choose(sim, due);
        while (net->events[at].at > sim->now || skip--)
            at++;
        struct event event = net->events[at];
        net->events[at] = net->events[--net->count];
        find_next(net);
        if (event.port->watched)
            events[count++] = (struct arch_event){event.port->data, event.events};
    }
    return count;
}

/* ---- flows ----------------------------------------------------------------------------------------------- */

struct flow *flow_make(struct sim *sim, struct port *reader, struct port *writer, bool slow, bool local)
{
    struct flow *flow = sim_resize(sim, NULL, sizeof *flow);
    if (!flow)
        return NULL;
    *flow = (struct flow){.reader = reader, .writer = writer, .slow = slow, .local = local};
    flow->most = (size_t)MOST_LEAST << order_chance(sim, MOST_SHIFTS);
    flow->breaks_at = flow->silent_at = UINT64_MAX;
    return flow;
}

/* Small numbers are likelier: most connections carry little. */
static uint64_t some_bytes(struct sim *sim)
{
    return order_chance(sim, UINT32_C(1) << order_chance(sim, FAULT_SHIFTS));
}

void flow_spoil(struct sim *sim, struct flow *one, struct flow *other)
{
    /* One draw after the other: a compiler may take the sides of an assignment in either order. */
    if (order_once_in(sim, sim->options.resets)) {
        struct flow *flow = order_once_in(sim, 2) ? one : other;
        flow->breaks_at = some_bytes(sim);
    }
    if (order_once_in(sim, sim->options.silence)) {
        struct flow *flow = order_once_in(sim, 2) ? one : other;
        flow->silent_at = some_bytes(sim);
    }
}

static void free_flow(struct sim *sim, struct flow *flow)
{
    sim_free(sim, flow->ring);
    sim_free(sim, flow->arrivals);
    sim_free(sim, flow);
}

static void send(struct sim *sim, struct flow *flow, enum arriving what, size_t bytes)
{
    int64_t at = flow->slow ? sim->now + net_latency(sim, true) : sim->now; /* a pipe has no transit time */
    if (flow->arrivals_first == flow->arrivals_count)
        flow->arrivals_first = flow->arrivals_count = 0;
    if (flow->arrivals_count == flow->arrivals_room) {
        flow->arrivals_room = flow->arrivals_room ? flow->arrivals_room * 2 : 4;
        flow->arrivals = or_fail(sim, sim_resize(sim, flow->arrivals, flow->arrivals_room * sizeof *flow->arrivals));
    }
    flow->last = at > flow->last ? at : flow->last;
    flow->arrivals[flow->arrivals_count++] = (struct arrival){flow->last, what, bytes};
    uint32_t events = what == ARRIVING_BYTES ? ARCH_IN
                      : what == ARRIVING_END ? ARCH_IN | ARCH_END
                                             : ARCH_IN | ARCH_OUT | ARCH_END;
    net_report(sim, flow->reader, events, flow->slow ? flow->last : sim->now + net_latency(sim, false));
}

/* Account for what has arrived by now. */
static void advance(struct sim *sim, struct flow *flow)
{
    while (flow->arrivals_first < flow->arrivals_count && flow->arrivals[flow->arrivals_first].at <= sim->now) {
        const struct arrival *arrival = &flow->arrivals[flow->arrivals_first++];
        flow->arrived += arrival->bytes;
        flow->at_end |= arrival->what == ARRIVING_END;
        if (arrival->what == ARRIVING_BREAK) {
            flow->broken = true;
            flow->used = flow->arrived = 0;
        }
    }
}

static void copy_in(struct flow *flow, const char *bytes, size_t size)
{
    size_t at = (flow->first + flow->used) % flow->room, straight = flow->room - at;
    straight = size < straight ? size : straight;
    memcpy(flow->ring + at, bytes, straight);
    memcpy(flow->ring, bytes + straight, size - straight);
    flow->used += size;
}

static void copy_out(struct flow *flow, char *buffer, size_t size)
{
    size_t straight = flow->room - flow->first;
    straight = size < straight ? size : straight;
    memcpy(buffer, flow->ring + flow->first, straight);
    memcpy(buffer + straight, flow->ring, size - straight);
    flow->first = (flow->first + size) % flow->room;
    flow->used -= size;
    flow->arrived -= size;
}

/* Make room for so many more bytes. Returns false if there is no memory. */
static bool grow(struct sim *sim, struct flow *flow, size_t size)
{
    size_t room = flow->room ? flow->room : RING_FIRST;
    while (room < flow->used + size)
        room *= 2;
    if (room == flow->room)
        return true;
    char *ring = sim_resize(sim, NULL, room);
    if (!ring)
        return false;
    size_t straight = flow->room - flow->first;
    straight = flow->used < straight ? flow->used : straight;
    if (flow->used) {
        memcpy(ring, flow->ring + flow->first, straight);
        memcpy(ring + straight, flow->ring, flow->used - straight);
    }
    sim_free(sim, flow->ring);
    flow->ring = ring;
    flow->room = room;
    flow->first = 0;
    return true;
}

uint32_t flow_ready_in(struct sim *sim, struct flow *flow)
{
    advance(sim, flow);
    if (flow->broken || flow->at_end || flow->deaf)
        return ARCH_IN | ARCH_END;
    return flow->arrived ? ARCH_IN : 0;
}

uint32_t flow_ready_out(struct flow *flow)
{
    if (flow->broken || !flow->reader)
        return ARCH_OUT | ARCH_END;
    if (flow->used < flow->most || flow->deaf || flow->ended)
        return ARCH_OUT;
    flow->starved = true; /* the writer waits for an event now */
    return 0;
}

int64_t flow_read(struct sim *sim, struct flow *flow, void *buffer, size_t size)
{
    advance(sim, flow);
    if (flow->deaf)
        return 0;
    if (flow->broken) {
        bool reset_reported = flow->reset_reported;
        flow->reset_reported = true;
        return reset_reported ? 0 : -ECONNRESET;
    }
    size = size < flow->arrived ? size : flow->arrived;
    if (!size)
        return flow->at_end ? 0 : -EAGAIN;
    size_t there = size;
    if (order_once_in(sim, CUT_ONE_IN))
        size = 1 + order_chance(sim, (uint32_t)size);
    arch_san_acquire(flow); /* a write happens before the read of its bytes */
    copy_out(flow, buffer, size);
    arch_san_release(flow);
    if (size < there) /* as if the rest came a little later: a short read means that the flow is drained */
        net_report(sim, flow->reader, ARCH_IN, sim->now + net_latency(sim, flow->slow));
    if (flow->starved) {
        flow->starved = false;
        net_report(sim, flow->writer, ARCH_OUT, sim->now + net_latency(sim, flow->slow));
    }
    return (int64_t)size;
}

/* Send in portions that arrive one after the other. Bytes after silent_at never arrive. */
static void send_bytes(struct sim *sim, struct flow *flow, size_t size)
{
    while (size) {
        size_t part = order_once_in(sim, 3) ? 1 + order_chance(sim, (uint32_t)size) : size;
        flow->sent += part;
        size -= part;
        if (flow->sent <= flow->silent_at)
            send(sim, flow, ARRIVING_BYTES, part);
    }
}

int64_t flow_write(struct sim *sim, struct flow *flow, const void *bytes, size_t size)
{
    if (flow->ended || flow->broken)
        return -EPIPE;
    if (!flow->reader || flow->deaf) /* over a network the writer does not know that yet */
        return flow->local ? -EPIPE : (int64_t)(size < flow->most ? size : flow->most);
    if (flow->used == flow->most) {
        flow->starved = true;
        return -EAGAIN;
    }
    size = size < flow->most - flow->used ? size : flow->most - flow->used;
    if (order_once_in(sim, CUT_ONE_IN))
        size = 1 + order_chance(sim, (uint32_t)size);
    arch_san_acquire(flow);
    if (!grow(sim, flow, size))
        return -ENOBUFS;
    copy_in(flow, bytes, size);
    arch_san_release(flow);
    send_bytes(sim, flow, size);
    return (int64_t)size;
}

void flow_end(struct sim *sim, struct flow *flow)
{
    if (flow->ended || flow->broken)
        return;
    flow->ended = true;
    net_report(sim, flow->writer, ARCH_OUT, sim->now); /* a waiting writer need not wait */
    if (flow->reader && flow->silent_at == UINT64_MAX)
        send(sim, flow, flow->breaks_at == UINT64_MAX ? ARRIVING_END : ARRIVING_BREAK, 0);
}

void flow_break(struct sim *sim, struct flow *flow)
{
    if (flow->broken)
        return;
    if (flow->reader)
        send(sim, flow, ARRIVING_BREAK, 0);
    else
        flow->broken = true;
}

void flow_leave_reader(struct sim *sim, struct flow *flow)
{
    flow->reader = NULL;
    net_report(sim, flow->writer, ARCH_OUT | ARCH_END, sim->now + net_latency(sim, flow->slow));
    if (!flow->writer)
        free_flow(sim, flow);
}

void flow_leave_writer(struct sim *sim, struct flow *flow)
{
    flow_end(sim, flow);
    flow->writer = NULL;
    if (!flow->reader)
        free_flow(sim, flow);
}
