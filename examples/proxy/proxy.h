/*
 * proxy: a reverse proxy for HTTP/1.1. A strand for each client's connection sends the client's requests on to backends
 * and their answers back. See serve.c for the tree of strands.
 *
 *   main.c        the command line
 *   serve.c       listening, accepting, draining
 *   connection.c  a client's connection: reading requests, refusing them, keeping the connection or ending it
 *   exchange.c    one request: choosing a backend, trying again, the answer
 *   transfer.c    bodies in both directions, and tunnels
 *   head.c        what the head of a request or a response says
 *   rewrite.c     the heads that are sent on
 *   backend.c     backends: which is chosen, permits, failures
 *   link.c        connections to backends, and the pools of idle ones
 *   health.c      asking backends whether they are well; ending idle links
 *   stream.c      bytes of a descriptor or of TLS, with limits of time
 *   access.c      a line of the access log
 *   ../common/framing.c   where a head and a body end, byte by byte; refuses what is not framed strictly
 *   ../common/log.c       writing the log
 *   ../common/ending.c    how a server ends by signals
 */
#ifndef PROXY_H
#define PROXY_H

#define _GNU_SOURCE

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <strand.h>
#include <strand/debug.h>
#include <strand/io.h>
#include <strand/limit.h>
#include <strand/pool.h>
#include <strand/socket.h>
#include <strand/sync.h>
#include <strand/tls.h>

#include "../common/ending.h"
#include "../common/framing.h"
#include "../common/log.h"

struct server;

/* ---- streams --------------------------------------------------------------------------------- */

struct stream {
    int fd;
    strand_tls *tls; /* NULL: plain bytes; else it owns the descriptor */
};

/* Both return -ETIMEDOUT if nothing has moved for `limit` ns, and otherwise what strand_read and strand_write do. */
int64_t stream_read(struct stream *stream, void *bytes, size_t size, int64_t limit);
int64_t stream_write(struct stream *stream, const void *bytes, size_t size, int64_t limit);
/* The case that bytes or the end have come. */
strand_case stream_case(struct stream *stream);
/* No more bytes will be written. */
void stream_end(struct stream *stream, int64_t limit);
/* The peer must not take what it has got for all: a connection without TLS is reset. */
void stream_cut(struct stream *stream);
/* Whether the descriptor has nothing, not even the end or a reset. */
bool stream_is_quiet(const struct stream *stream);
void stream_close(struct stream *stream);

/* A client that is slow on purpose would hold a backend's permit for as long as it likes. One direction of a stream. */
struct pace {
    uint64_t least; /* bytes per second; 0: any */
    uint64_t moved; /* since the average was looked at last */
    int64_t waited;
};
/* After a call that began at `begun` and moved so many bytes. Whether the peer moves enough, on average over `period`
 * ns in which it was waited for. */
bool keeps_pace(struct pace *pace, int64_t begun, int64_t bytes, int64_t period);

enum { BUFFER_MOST = 32 * 1024, HEAD_MOST = 16 * 1024 };

/* Bytes that are gathered to be written together. */
struct sink {
    struct stream *stream;
    int64_t limit;
    struct pace pace;
    int error;     /* the first one; nothing is written after it */
    bool chunked;  /* data goes in chunks */
    uint64_t data; /* bytes of data, without framing */
    size_t used;
    char bytes[BUFFER_MOST];
};

void sink_put(struct sink *sink, const char *bytes, size_t length);
void sink_text(struct sink *sink, const char *text);
void sink_number(struct sink *sink, uint64_t number);
/* A part of a body. */
void sink_data(struct sink *sink, const char *bytes, size_t length);
/* The end of a body. */
void sink_data_end(struct sink *sink);
/* Returns 0 or sink->error. */
int sink_flush(struct sink *sink);

/* ---- heads ----------------------------------------------------------------------------------- */

struct span {
    const char *at;
    size_t length;
};

enum field {
    OTHER,
    HOST,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    CONNECTION,
    UPGRADE,
    EXPECT,
    FORWARDED,
    FORWARDED_FOR,
    FORWARDED_OTHER, /* all other X-Forwarded-*, and X-Real-IP */
    HOP              /* concerns one connection only, and is never sent on */
};

enum { CONNECTIONS_MOST = 8, LISTED_MOST = 32 };

/* The head of a request or of a response. Its text lies in a buffer that stays as it is until the message has been
 * dealt with. */
struct head {
    struct span text, fields;   /* all of it; its lines behind the first one, without the empty one */
    struct span method, target; /* of a request */
    struct span status_line;    /* of a response: from the status on */
    int status, minor;
    struct span host, authority, upgrade; /* authority: the host in a target that is a URL */
    struct span connections[CONNECTIONS_MOST];
    int connection_count, listed; /* listed: elements of them all */
    bool has_host, has_length, chunked, has_coding, has_expect;
    bool close, keep, upgrades; /* what Connection lists */
    bool lists_others;          /* it lists names of fields */
    uint64_t length;
};

/* framing.c has found the text to be whole and strict. Both return 0, or the status of a refusal. */
int head_of_request(struct head *head, struct span text);
/* Returns 502 for all that a backend must not send. */
int head_of_response(struct head *head, struct span text);
/* Takes the next field off `fields`. False: there is none. */
bool next_field(struct span *fields, struct span *name, struct span *value);
enum field field_named(struct span name);
bool span_is(struct span span, const char *text); /* ASCII letters of any case are equal */
/* Takes the next element off a list. */
bool next_element(struct span *list, struct span *element);

/* ---- backends -------------------------------------------------------------------------------- */

/* A connection to a backend. */
struct link {
    struct link *next; /* in the pool */
    struct backend *backend;
    struct stream stream;
    int64_t idle_since;
    bool reused;
    size_t begin, end; /* of what has come, in `in` */
    struct sink out;
    char in[BUFFER_MOST];
};

struct backend {
    const char *name; /* HOST:PORT */
    char *host, *port;
    strand_prio_semaphore permits;
    _Atomic int active;
    _Atomic int failures;       /* in a row */
    _Atomic int64_t down_until; /* after too many of them */
    _Atomic bool sick;          /* the active check says so */
    pthread_mutex_t lock;       /* of the next two; never held across a suspension */
    struct link *idle;          /* the latest first */
    int idle_count;
};

void backend_open(struct server *server, struct backend *backend);
void note_success(struct backend *backend);
void note_failure(struct server *server, struct backend *backend, const char *why);

enum { BACKENDS_MOST = 64, TEXT_OF_FAILURE = 256 };

/* NULL: none is idle. The backend has neither closed it nor sent anything on it, as far as this machine knows. */
struct link *link_take(struct backend *backend);
/* Why there is no new connection: a negated errno code, and the host or each of its addresses with a reason in words.
 */
struct undialled {
    int error;
    char why[TEXT_OF_FAILURE];
};

/* Returns NULL, with *undialled set, or a new connection, within the time to connect. */
struct link *link_dial(struct server *server, struct backend *backend, struct undialled *undialled);
void link_keep(struct server *server, struct link *link);
void link_close(struct link *link);
/* Closes idle links: those for which there is no time or no peer any more, or all. Returns how many. */
int links_end(struct server *server, struct backend *backend, bool all);

/* Strands, until they are cancelled. */
void *check_backend(void *check);
void *end_idle_links(void *server);
struct check {
    struct server *server;
    struct backend *backend;
};

/* ---- the server ------------------------------------------------------------------------------ */

/* ns */
struct limits {
    int64_t handshake, head, keep_alive, queue, connect, response, idle, whole, drain, pool, check;
};

struct server {
    struct limits limits;
    struct backend *backends;
    int backend_count;
    bool least; /* connections; else round robin */
    bool behind;
    int threads, most_active, most_waiting, most_idle, retries, least_rate;
    int most_failures;
    uint64_t most_clients;
    int64_t down;
    const char *check_path;
    int64_t check_every;
    int rise, fall;
    const char *certificate, *key, *log_path;
    strand_tls_context *tls; /* NULL: plain */
    const char **listen_names;
    int *listeners, listener_count;
    _Atomic int error; /* of listening or of accepting */
    const char *error_name;
    struct log log;
    _Atomic bool draining, cancelled;
    _Atomic unsigned turn;   /* of round robin */
    pthread_mutex_t lock;    /* of the next three; never held across a suspension */
    struct connection *idle; /* those between two requests; the oldest first */
    struct connection **idle_end;
    strand acceptors;
    _Atomic uint64_t begun, served, cut, connections, refused, live;
    bool listening;
    strand_stats stats; /* at the end */
};

void *serve(void *server);
/* Opens the certificate and key; NULL if there are none. Throws STRAND_TLS_ERROR. */
strand_tls_context *open_tls(const struct server *server);

/* ---- connections ----------------------------------------------------------------------------- */

/* What the log tells of a request; instants in ns, 0: it did not come to that. */
struct times {
    int64_t begun, queued, connected, sent, headed, ended;
};

struct exchange {
    struct backend *backend; /* whose permit is held */
    const char *name;        /* of the last backend */
    struct link *link;
    uint64_t tried; /* backends, by bits */
    unsigned turn;  /* of the first try */
    int tries;
    bool fresh;   /* no idle link: one was found closed */
    bool started; /* a part of the answer may have been sent */
    bool tunnel;
    int status;                /* of the answer, for the log */
    char why[TEXT_OF_FAILURE]; /* it was refused or cut; "": it was not */
    int failure;               /* the status for the last try's failure */
    const char *failed_by;
    _Atomic bool heard;     /* a byte of a response has come */
    _Atomic bool body_sent; /* a byte of the body has been sent on */
    _Atomic bool taken;     /* all of the body has come from the client */
    _Atomic int64_t upload_ended;
    struct head request, response;
    struct times times;
    struct undialled undialled; /* of the last try that had to connect */
};

struct connection {
    struct server *server;
    struct connection *next, **at; /* of the idle ones; at: NULL if it is not among them */
    strand_event leave;            /* set while it is among them, if it has to end */
    struct stream stream;
    char peer[STRAND_PEER_ROOM]; /* with its port */
    char address[STRAND_PEER_ROOM];
    bool close;             /* after this request */
    bool active;            /* a request has begun, and its line in the log is owed */
    struct framing framing; /* of the request */
    struct pace upload;
    struct exchange x;
    size_t begin, end; /* of what has come and is not used, in `in`; a request's head comes first there */
    struct sink out;
    char in[BUFFER_MOST];
};

/* The client has gone; its request is refused; the backend was at fault. The code of the last two is the negated
 * status. */
extern const strand_kind CLIENT_GONE, REFUSED_REQUEST, BACKEND_FAILED;
__attribute__((noreturn)) void refuse_request(struct connection *c, int status, const char *why);
__attribute__((noreturn)) void fail_backend(struct connection *c, int status, const char *why);

void *serve_connection(void *connection);
/* Ends connections between two requests: all of them, or the one that has been idle longest. What has come already is
 * still answered. Returns whether there was one. */
bool end_idle(struct server *server, bool all);
/* A page that says what the status means. */
void answer_status(struct connection *c, int status);
void flush(struct connection *c); /* throws CLIENT_GONE */

/* ---- a request ------------------------------------------------------------------------------- */

/* Gets the answer to the current request, and sends it. Throws the kinds above, and what interrupts it. */
void exchange(struct connection *c);
/* Takes a permit of a backend that was not tried yet, and waits for one if need be. False: all were tried. Throws
 * REFUSED_REQUEST and CLIENT_GONE. */
bool choose(struct connection *c);
/* Gives the backend back what is held of it. */
void end_exchange(struct connection *c, bool clean);
/* Reads more behind what has come from the backend, and watches the client meanwhile. Returns what stream_read does;
 * throws CLIENT_GONE. */
int64_t read_link(struct connection *c, int64_t limit);

/* The client waits for the backend to ask for the body. */
bool awaits_asking(const struct connection *c);

void *upload(void *connection); /* a strand */
/* What has come of the body goes to the link's sink. Returns whether that is all. */
bool take_body(struct connection *c);
void download(struct connection *c);
void tunnel(struct connection *c);

void put_request(struct connection *c);
/* body: the answer has one. */
void put_response(struct connection *c, bool body);

void log_exchange(struct connection *c);

#endif
