/*
 * Simulated descriptors. A flow is one direction of a pipe or a connection: bytes that were written and not read yet,
 * and when they arrive. A port is the object behind a descriptor's number: an end of two flows, or a listener.
 *
 * Each arrival, and each moment that makes room, is an event of the poller at its time. The events of all ports are in
 * one list.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "sim.h"

/* A name of a socket. */
struct net_name {
    int number;     /* TCP or UDP port; otherwise a negated errno code */
    char path[108]; /* of a Unix socket */
};

enum arriving { ARRIVING_BYTES, ARRIVING_END, ARRIVING_BREAK };

struct arrival {
    int64_t at;
    enum arriving what;
    size_t bytes;
};

struct flow {
    struct port *reader, *writer; /* NULL: closed */
    char *ring;
    size_t room, most; /* size of the ring; limit of its growth */
    size_t first, used;
    size_t arrived; /* how many of these have arrived */
    struct arrival *arrivals;
    uint32_t arrivals_first, arrivals_count, arrivals_room;
    int64_t last;        /* when the last one arrives: arrivals keep their order */
    bool slow;           /* between sockets: bytes take time */
    bool local;          /* within one machine: a writer knows at once that the reader has gone */
    bool ended;          /* the writer sends no more */
    bool at_end;         /* and the reader knows that */
    bool broken;         /* for both */
    bool deaf;           /* the reader reads no more: writes are lost */
    bool starved;        /* the writer waits for room */
    bool reset_reported; /* the reader got its ECONNRESET */
    uint64_t sent;
    uint64_t breaks_at, silent_at; /* counts of sent bytes; UINT64_MAX: never */
};

/* A datagram, until it is received. */
struct packet {
    struct packet *next;
    int64_t at; /* when it arrives */
    struct net_name from;
    size_t size;
    char bytes[];
};

/* As for shutdown(2). */
enum { SHUT_READING = 0, SHUT_WRITING = 1, SHUT_BOTH = 2 };

enum port_state { PORT_NEW, PORT_BOUND, PORT_LISTENS, PORT_CONNECTS, PORT_OPEN, PORT_CLOCK, PORT_BLANK };

struct port {
    int fd; /* -1: not accepted yet */
    enum port_state state;
    struct flow *in, *out; /* NULL: none */
    bool watched;
    bool shares;   /* its name, with others that do */
    uint64_t data; /* for the poller */
    struct net_name name;
    struct arch_name peer_address; /* of the other end */
    int refusal;                   /* the result of PORT_CONNECTS, or an error of datagrams, at `since` */
    int64_t since;                 /* when the connection is there: for the listener, or for the connecting side */
    int64_t date;                  /* of a PORT_CLOCK: the date that is waited for */
    bool was_set;                  /* of a PORT_CLOCK: the clock was set meanwhile */
    struct port *pending;          /* for a listener: its first connection; linked by next_pending */
    struct port *next_pending;
    /* For datagrams. */
    bool datagrams;
    bool connected; /* to `peer` */
    struct net_name peer;
    bool deaf, mute;        /* shut down */
    struct packet *packets; /* in the order of their arrival */
    size_t queued;          /* how many */
    int64_t last;           /* when the last one arrives */
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
    int64_t next; /* the time of the first one */
    int last_number, last_path;
};

/* The port behind a number; NULL: there is none. */
static inline struct port *net_find(const struct sim *sim, int fd)
{
    const struct net *net = sim->net;
    return net && fd >= 0 && fd < net->room ? net->ports[fd] : NULL;
}

/* ---- net_ports.c ---- */

/* Make a port without a number; NULL: there is no memory. Give a port a number; returns it, or a negated errno code. */
struct port *net_make_port(struct sim *sim, enum port_state state);
int net_enrol(struct sim *sim, struct port *port);
/* Close a descriptor. Or leave the number in use: calls on it fail from now on. */
int net_close_port(struct subprocess *sub, int fd);
int net_blank(struct subprocess *sub, int fd);

/* ---- net_bytes.c: functions of the platform, as platform_type.h has them ---- */

int net_ready(struct subprocess *sub, int fd);
int64_t net_read(struct subprocess *sub, int fd, void *buffer, size_t size);
int64_t net_write(struct subprocess *sub, int fd, const void *bytes, size_t size);
int64_t net_readv(struct subprocess *sub, int fd, const struct iovec *parts, int count);
int64_t net_writev(struct subprocess *sub, int fd, const struct iovec *parts, int count);
int64_t net_receive(struct subprocess *sub, int fd, void *buffer, size_t size, struct arch_name *name);
int64_t net_send(struct subprocess *sub, int fd, const void *bytes, size_t size, const struct arch_name *name);
int net_shut_down(struct subprocess *sub, int fd, int how);

/* ---- routes.c: addresses ---- */

/* Returns the result of connecting to an address, but for its listener, and how long it takes; 0: it is open. */
int route_of(const struct sim *sim, const void *address, int64_t *delay);

/* ---- calendar.c: dates ---- */

int64_t calendar_now(struct subprocess *sub);
int calendar_wait(struct subprocess *sub, int64_t date);
int calendar_ready(const struct sim *sim, const struct port *port);
int64_t calendar_read(struct sim *sim, struct port *port, void *buffer, size_t size);

/* ---- net_names.c ---- */

/* Find the port of that name, and of that kind; one of those that share it. */
struct port *net_find_bound(const struct sim *sim, const struct net_name *name, bool datagrams);
/* Let the seed choose one of those. */
struct port *net_choose_bound(struct sim *sim, const struct net_name *name, bool datagrams);
/* Find an unused number. */
int net_next_number(struct sim *sim, bool datagrams);
/* The name in an address. */
struct net_name net_name_of(const void *address, uint32_t length);
void net_put_name(const struct net_name *name, struct arch_name *out);
void net_copy_address(struct arch_name *out, const void *address, uint32_t length);
bool net_has_path(const struct net_name *name);
/* Choose an abstract name, as the system does for a socket that is bound to none. */
void net_choose_path(struct sim *sim, struct net_name *name);

/* ---- datagram.c: sockets without connections ---- */

int datagram_connect(struct sim *sim, struct port *port, const void *address, uint32_t length);
/* Returns the size of the datagram, or a negated errno code. from: NULL, or gets the sender. */
int64_t datagram_receive(struct sim *sim, struct port *port, void *buffer, size_t size, struct net_name *from);
/* to: NULL: the peer. */
int64_t datagram_send(struct sim *sim, struct port *port, const void *bytes, size_t size, const struct net_name *to);
/* As plain reads and writes do, with several buffers. */
int64_t datagram_receive_parts(struct sim *sim, struct port *port, const struct iovec *parts, int count);
int64_t datagram_send_parts(struct sim *sim, struct port *port, const struct iovec *parts, int count);
int datagram_ready(struct sim *sim, const struct port *port);
int datagram_shut_down(struct sim *sim, struct port *port, int how);
/* Drop what was not received. */
void datagram_forget(struct sim *sim, struct port *port);

/* ---- wire.c: flows and events ---- */

struct flow *flow_make(struct sim *sim, struct port *reader, struct port *writer, bool slow, bool local);
/* Let the seed decide whether the connection of these two breaks, or falls silent, and where. */
void flow_spoil(struct sim *sim, struct flow *one, struct flow *other);
int64_t flow_read(struct sim *sim, struct flow *flow, void *buffer, size_t size);
int64_t flow_write(struct sim *sim, struct flow *flow, const void *bytes, size_t size);
/* Readiness: ARCH_IN and ARCH_END for the reader, ARCH_OUT for the writer. */
uint32_t flow_ready_in(struct sim *sim, struct flow *flow);
uint32_t flow_ready_out(struct flow *flow);
/* The writer sends no more. */
void flow_end(struct sim *sim, struct flow *flow);
/* Break the flow for both sides. */
void flow_break(struct sim *sim, struct flow *flow);
/* The reader, or the writer, has gone. Frees the flow when both have. */
void flow_leave_reader(struct sim *sim, struct flow *flow);
void flow_leave_writer(struct sim *sim, struct flow *flow);
/* Have the poller report events at that time, if the port is watched then. */
void net_report(struct sim *sim, struct port *port, uint32_t events, int64_t at);
/* Drop all pending events of a port. */
void net_forget(struct sim *sim, const struct port *port);
/* A random latency. */
int64_t net_latency(struct sim *sim, bool slow);

#endif
