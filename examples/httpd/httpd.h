/*
 * httpd: an HTTP/1.1 server with a strand for every connection. See main.c for the tree of strands.
 *
 *   main.c        the command line, listening, draining
 *   connection.c  a connection's strand: reading and parsing requests, writing what was answered
 *   room.c        the list of connections, and which of them are told to end
 *   pages.c       what is generated: /hello, /slow, /strands
 *   files.c       the files of a directory
 *   log.c         the access log
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
#include <strand/io.h>
#include <strand/pool.h>

/* ---- the log --------------------------------------------------------------------------------- */

/* Lines are gathered in memory and written by one strand, through strand_offload. */
struct log {
    int fd; /* -1: none is kept */
    int wake[2];
    pthread_mutex_t lock; /* never held across a suspension */
    char *lines, *writing;
    size_t used;
    uint64_t lost; /* lines that the file did not take */
    int error;     /* why */
};

/* Returns 0 or a negated errno code. path "-": standard output; NULL: no log. */
int log_open(struct log *log, const char *path);
void *log_write(void *log); /* the strand that writes; ends after log_close */
void log_close(struct log *log);
void log_free(struct log *log);

/* ---- the server ------------------------------------------------------------------------------ */

struct server {
    const char *host, *directory, *log_path;
    int port, threads;
    int64_t timeout;  /* for a request: to come, to be worked on, to be taken off */
    int64_t patience; /* with a connection between requests */
    int64_t drain;
    int listener, root;
    struct log log;
    _Atomic bool draining, cancelled; /* the time to drain is over as well */
    pthread_mutex_t lock;             /* of the next two; never held across a suspension */
    strand acceptor;
    struct connection *first;
    _Atomic uint64_t begun, served, cut, connections, refused;
    struct strand_stats stats; /* at the end */
};

/* ---- connections ----------------------------------------------------------------------------- */

enum { IN_MOST = 16 * 1024, OUT_MOST = 16 * 1024, BODY_MOST = 1024 * 1024, TRAILERS_MOST = 4096 };

/* A part of the connection's input; a pointer would not survive it being moved. */
struct span {
    uint32_t at, length;
};

enum header {
    HOST,
    RANGE,
    IF_RANGE,
    IF_MATCH,
    IF_NONE_MATCH,
    IF_MODIFIED_SINCE,
    IF_UNMODIFIED_SINCE,
    EXPECT,
    REFERER,
    USER_AGENT,
    HEADERS,
    NO_HEADER
};

struct request {
    struct span url, headers[HEADERS], name;
    enum header header; /* whose value comes now */
    uint64_t body;
    size_t head;     /* how long it is, once it is complete */
    size_t trailers; /* the length of their names and values */
    bool head_ended; /* what comes now are trailers */
    int hosts;
    int status; /* what the parser's callbacks have against it */
    bool complete;
};

enum phase { LINGERING, IDLE, READING, WORKING, WRITING };

struct connection {
    struct server *server;
    struct connection *next, **at;
    int fd;
    char peer[48];
    _Atomic enum phase phase;
    _Atomic int64_t since; /* when a phase that waits for the client has begun: the first three */
    bool close;
    _Atomic bool leaving; /* was told to make room; changed under the server's lock */
    bool logged;          /* the current request */
    bool started;         /* a part of the answer to the current request may have been sent */
    strand_time deadline; /* by when the request has to be here whole */
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
void delist(struct connection *c);
/* Those between two requests are told that no more is read. */
void end_idle_connections(struct server *server);
/* Descriptors are wanted, so many: as many connections are told to end, unless they are about to already. Those that
 * linger come first, then those that have rested longest, then those that have been sending a request for longest;
 * those that may be about to ask, or to have asked, are left alone. False: there is nobody to wait for. */
bool end_some_connections(struct server *server, int wanted);

enum parsed { MORE_NEEDED, COMPLETE, BROKEN };
/* Goes on with what has come. BROKEN: the request's status says why, or the parser's error. */
enum parsed parse_request(struct connection *c);

/* The text of a header of the current request, "" if there was none; its end is marked. */
const char *header_of(struct connection *c, enum header header);

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
void flush(struct connection *c);

/* ---- what there is to get -------------------------------------------------------------------- */

/* True if the path was one of the generated pages. */
bool answer_page(struct connection *c, const char *path, const char *query);
/* query: as it came, NULL for none; a redirection keeps it. */
void answer_file(struct connection *c, const char *path, const char *query);

void log_request(struct connection *c, int status, uint64_t length);

#endif
