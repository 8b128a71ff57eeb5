/*
 * httpd: an HTTP/1.1 server with a strand for every connection. See serve.c for the tree of strands.
 *
 *   main.c        the command line
 *   serve.c       listening, accepting, draining
 *   connection.c a connection's strand: reading and parsing requests, writing the answers
 *   request.c parsing the fields of a request
 *   send.c sending at the client's pace, down to a limit
 *   secure.c TLS; unsecured.c stands for it in a build without libstrand-tls
 *   room.c the list of connections, and ending some of them
 *   pages.c generated pages: /hello, /slow, /strands
 *   files.c       the files of a directory
 *   access.c      a line of the access log
 *   ../common/framing.c   where a request ends, byte by byte; refuses requests that are not framed strictly
 *   ../common/log.c       writing the log
 *   ../common/ending.c    how a server ends by signals
 */
#ifndef HTTPD_H
#define HTTPD_H

#define _GNU_SOURCE

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <http_parser.h>
#include <strand.h>
#include <strand/debug.h>
#include <strand/exception.h>
#include <strand/file.h>
#include <strand/io.h>
#include <strand/pool.h>
#include <strand/tls.h>

#include "../common/ending.h"
#include "../common/framing.h"
#include "../common/log.h"

/* ---- TLS ------------------------------------------------------------------------------------- */

struct connection;

struct security {
    const char *certificates, *key; /* files; no certificates: the server speaks plain HTTP */
    const char *staple;             /* a file, or NULL */
    strand_tls_context *context;    /* of all connections */
    strand_tls_context *latest;     /* what it stands for now: the certificates that were read last */
    bool failed;                    /* to be read at the start */
};

/* Read the certificates, if there are any to be. False: it has said why not. */
bool security_open(struct security *security);
/* Read them again, for the connections that come from now on. If that fails, it says so, and the old ones go on. */
void security_reload(struct security *security);
void security_close(struct security *security);

/* Agree on keys with the client. False: there is no agreement. Throws STRAND_TIMED_OUT. */
bool secure_begin(struct connection *c);
/* As strand_tls_read and strand_tls_write. */
int64_t secure_read(struct connection *c, char *buffer, size_t size);
int64_t secure_write(struct connection *c, const char *bytes, size_t size);
/* Say that no more comes. */
void secure_end(struct connection *c);
/* Close the descriptor too. */
void secure_close(struct connection *c);

/* ---- the server ------------------------------------------------------------------------------ */

struct server {
    const char *host, *directory, *log_path;
    int port, threads;
    int64_t timeout;  /* for a request: to come, to be worked on; and the period of the next */
    uint64_t rate;    /* bytes per second that a client takes at least, in each period */
    int64_t patience; /* with a connection between requests */
    int64_t drain;
    int listener, root;
    struct security security;
    _Atomic int accept_error; /* why no connections can be taken any more */
    struct log log;
    _Atomic bool draining, cancelled; /* the time to drain is over as well */
    pthread_mutex_t lock;             /* of the next four; never held across a suspension */
    strand acceptor;
    struct connection *first;
    size_t live, burst; /* in the list; the most of them since memory was given back */
    _Atomic uint64_t begun, served, cut, connections, refused;
    strand_stats stats; /* at the end */
};

/* The root strand; returns once the server has drained, or if it can't listen (listener). */
void *serve(void *server);

enum { NAME_MOST = 300 };
/* HOST:PORT as in a URL; * for all addresses. */
void name_listener(const struct server *server, int port, char *name, size_t size);

/* ---- connections ----------------------------------------------------------------------------- */

enum { IN_MOST = 16 * 1024, OUT_MOST = 16 * 1024, BODY_MOST = 1024 * 1024 };

/* A part of the connection's input; a pointer would not survive it being moved. */
struct span {
    uint32_t at, length;
};

/* A request has at most one of each, but for the last four. */
enum header {
    HOST,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    RANGE,
    IF_RANGE,
    IF_MODIFIED_SINCE,
    IF_UNMODIFIED_SINCE,
    EXPECT,
    IF_MATCH,
    IF_NONE_MATCH,
    REFERER,
    USER_AGENT,
    HEADERS,
    NO_HEADER
};

struct request {
    struct framing framing;
    struct span url, headers[HEADERS];
    bool present[HEADERS];
    enum header header; /* whose value comes now */
    size_t head;        /* how long it is, once it is complete */
    int status;         /* why it is refused */
};

enum phase { LINGERING, IDLE, READING, WORKING, WRITING };

struct connection {
    struct server *server;
    struct connection *next, **at;
    int fd;
    strand_tls *tls; /* NULL: the bytes are plain ones */
    char peer[48];
    _Atomic enum phase phase;
    _Atomic int64_t since; /* when a phase that waits for the client has begun: the first three */
    bool close;
    _Atomic bool leaving; /* was asked to make room; changed under the server's lock */
    bool logged;          /* the current request */
    bool started;         /* a part of the answer to the current request may have been sent */
    strand_time deadline; /* by when the request has to be here whole */
    uint64_t sent;        /* bytes that the system has taken */
    uint32_t owed;        /* requests that are not answered as yet */
    uint32_t answered;    /* those of them whose answers wait in `out` */
    http_parser parser;
    struct request request;
    size_t begin, parsed, end; /* of the current request, in `in` */
    size_t used;               /* of `out` */
    time_t second;             /* of which `date` is */
    char date[32];
    char in[IN_MOST], out[OUT_MOST];
};

extern const strand_kind CLIENT_GONE;

/* A child of the listener's scope; takes the connection over. */
void *serve_connection(void *connection);
void enlist(struct connection *c);
/* True: a burst is over, and its memory is worth giving back. */
bool delist(struct connection *c);
/* Shuts down the reading side of connections between two requests. */
void end_idle_connections(struct server *server);
/* Asks `wanted` connections to end, less those that are ending already, to free their descriptors. Lingering
 * connections come first, then those that have been idle longest, then those that have been sending a request for
 * longest. Connections that may have just sent a request are left alone. Returns false if no connection is going to
 * end. */
bool end_some_connections(struct server *server, int wanted);

/* The next request begins where the last one has ended. */
void next_request(struct connection *c);
enum parsed { MORE_NEEDED, COMPLETE, BROKEN };
/* Goes on with what has come. BROKEN: the request's status says why. */
enum parsed parse_request(struct connection *c);
/* Makes room behind what has come of the current request; false: its head is too long. */
bool make_room(struct connection *c);
/* Whether it is a HEAD, as far as it has come. */
bool is_head(const struct connection *c);

/* The text of a header of the current request, "" if there was none; its end is marked. */
const char *header_of(struct connection *c, enum header header);
/* IF_MATCH and IF_NONE_MATCH are lists, and a list may be spread over several lines (RFC 9110, 5.3): the value of the
 * line after the one that `value` is of, or NULL. */
const char *next_line_of(struct connection *c, enum header header, const char *value);

/* The path in the current request's URL, as it came: without host, query and fragment. */
struct span path_span(const struct connection *c);
/* The path, decoded, and the query, NULL for none, into `path`, which has room for the URL and for two marks of ends.
 * False: it makes no sense. */
bool split_url(struct connection *c, char *path, const char **query);

struct answer {
    int status;
    const char *type;  /* NULL: text/plain */
    const char *extra; /* whole header lines, or NULL */
    const char *body;  /* NULL: it is sent by the caller, after send_head */
    size_t length;     /* of the body */
};
/* Puts a whole answer to where it is sent from together with others; throws CLIENT_GONE. */
void answer(struct connection *c, const struct answer *answer);
/* A plain page that says what the status means. */
void answer_status(struct connection *c, int status, const char *extra);
/* Sends the head, and all that waits; the body is the caller's; then answer_sent. */
void send_head(struct connection *c, const struct answer *answer);
void answer_sent(struct connection *c, int status, uint64_t length);
void flush(struct connection *c, bool more);

/* Both throw CLIENT_GONE, also of a client that takes its answer too slowly. more: something follows at once. */
void send_bytes(struct connection *c, const char *bytes, size_t length, bool more);
void send_file(struct connection *c, int file, uint64_t first, uint64_t length);

/* ---- what there is to get -------------------------------------------------------------------- */

/* True if the path was one of the generated pages. */
bool answer_page(struct connection *c, const char *path, const char *query);
/* path: begins with a slash; it loses its "." and "..". query: as it came, NULL for none; a redirection keeps it. */
void answer_file(struct connection *c, char *path, const char *query);

void log_request(struct connection *c, int status, uint64_t length);

#endif
