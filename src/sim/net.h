/*
 * Played descriptors. A flow is one direction of a pipe or a connection: bytes that were written and not read yet, and
 * when they arrive. A port is what a descriptor's number stands for: an end of two flows, or a listener.
 *
 * Whatever arrives, or makes room, is an event of the poller at its time. All ends' events stand in one list.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "sim.h"

enum arriving { ARRIVING_BYTES, ARRIVING_END, ARRIVING_BREAK };

struct arrival {
    int64_t at;
    enum arriving what;
    size_t bytes;
};

struct flow {
    struct port *reader, *writer; /* NULL: closed */
    char *ring;
    size_t room, most; /* of the ring; what it may grow to */
    size_t first, used;
    size_t arrived; /* of these */
    struct arrival *arrivals;
    uint32_t arrivals_first, arrivals_count, arrivals_room;
    int64_t last; /* when the last one arrives: they keep their order */
    bool slow;    /* between sockets: they take their time */
    bool local;   /* of one machine: who writes knows at once that nobody reads any more */
    bool ended;   /* the writer says no more */
    bool at_end;  /* and the reader knows */
    bool broken;  /* for both */
    bool deaf;    /* the reader wants no more: what is written is lost */
    bool starved; /* the writer waits for room */
    bool told;    /* the reader has had its ECONNRESET */
    uint64_t sent;
    uint64_t breaks_at, silent_at; /* of the bytes sent; UINT64_MAX: never */
};

enum port_state { PORT_NEW, PORT_BOUND, PORT_LISTENS, PORT_CONNECTS, PORT_OPEN, PORT_BLANK };

struct port {
    int fd; /* -1: not accepted yet */
    enum port_state state;
    struct flow *in, *out; /* NULL: it has none */
    bool watched;
    uint64_t data;        /* for the poller */
    int number;           /* of TCP; else a negated errno code */
    char path[108];       /* of a Unix socket */
    int refusal;          /* what becomes of PORT_CONNECTS, at `since` */
    int64_t since;        /* when a connection is there: for the listener, or for who connects */
    struct port *pending; /* of a listener: its first connection; linked by next_pending */
    struct port *next_pending;
};

struct event {
    int64_t at;
    struct port *port;
    uint32_t events;
};

struct net {
    struct port **ports; /* by descriptor */
    int room;
    struct event *events;
    uint32_t count, events_room;
    int64_t next; /* the first of them */
    int last_number;
};

/* ---- wire.c: flows and events ---- */

struct flow *flow_make(struct sim *sim, struct port *reader, struct port *writer, bool slow, bool local);
/* Whether the connection of these two breaks, or falls silent, and where: the seed's choice. */
void flow_spoil(struct sim *sim, struct flow *one, struct flow *other);
int64_t flow_read(struct sim *sim, struct flow *flow, void *buffer, size_t size);
int64_t flow_write(struct sim *sim, struct flow *flow, const void *bytes, size_t size);
/* ARCH_IN and ARCH_END for its reader, ARCH_OUT for its writer. */
uint32_t flow_ready_in(struct sim *sim, struct flow *flow);
uint32_t flow_ready_out(struct flow *flow);
/* The writer has no more. */
void flow_end(struct sim *sim, struct flow *flow);
/* For both sides. */
void flow_break(struct sim *sim, struct flow *flow);
/* The reader has gone; the writer has gone. Frees the flow when both have. */
void flow_leave_reader(struct sim *sim, struct flow *flow);
void flow_leave_writer(struct sim *sim, struct flow *flow);
/* The poller will say so at that time, if the port is watched then. */
void net_report(struct sim *sim, struct port *port, uint32_t events, int64_t at);
/* Nothing of it is to be reported any more. */
void net_forget(struct sim *sim, const struct port *port);
/* How long something takes to get there. */
int64_t net_latency(struct sim *sim, bool slow);

#endif
