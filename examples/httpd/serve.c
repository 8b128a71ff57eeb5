/*
 * Listening, accepting and draining. The tree of the server's strands mirrors the tree of its work:
 *
 *   root             waits for SIGTERM, SIGINT or SIGHUP, then drains
 *     log            writes the access log
 *     connections    its scope consumes the strands of connections that have ended; it reports those that failed
 *       accept       takes connections
 *       connection   one for each, deadlines for its requests
 *         watch client, nap ...   below a request that waits
 *
 * So to end a request, a connection or everything is to cancel one strand, and nothing is left behind.
 */
#include "httpd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* Until a connection that was ended has given its descriptor back; or until one ends by itself. */
static const int64_t room_pause = STRAND_MS, no_room_pause = 10 * STRAND_MS;
/* After an error of accept that passes, for all we know. */
static const int64_t error_pause = 100 * STRAND_MS;
/* So many errors without a connection in between do not pass. */
enum { ERRORS_MOST = 50 };

/* ---- accepting ------------------------------------------------------------------------------- */

static void name_peer(struct connection *c)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getpeername(c->fd, (struct sockaddr *)&address, &length) != 0 ||
        getnameinfo((struct sockaddr *)&address, length, c->peer, sizeof c->peer, NULL, 0, NI_NUMERICHOST) != 0)
        strcpy(c->peer, "-");
}

/* The strand takes it over. With no memory for that the connection is closed. */
static void spawn_connection(strand_scope connections, struct server *server, int fd)
{
    struct connection *c = malloc(sizeof *c);
    if (c) {
        memset(c, 0, offsetof(struct connection, in));
        c->server = server;
        c->fd = fd;
        c->at = &c->next; /* nobody's, until it is in the list */
        name_peer(c);
        STRAND_TRY {
            strand_spawn_with(connections, STRAND_ATTR(.name = "connection"), serve_connection, c, 0);
            return;
        }
        STRAND_CATCH(&STRAND_SYSTEM, e) {
            fprintf(stderr, "httpd: %s\n", strand_exception_text(e));
        }
        STRAND_END
    }
    free(c);
    strand_close(fd);
}

struct acceptor {
    struct server *server;
    strand_scope connections;
    int errors; /* since the last connection */
};

/* How many wait in the listener's queue; 1 where the system does not say. */
static int queue_length(int listener)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || !info.tcpi_unacked)
        return 1;
    return (int)info.tcpi_unacked;
}

/* If the socket is not a listener, or fails again and again, the server ends as by a signal, so its supervisor
 * notices. */
static void bear_error(struct acceptor *acceptor, int error)
{
    bool passes = error != EBADF && error != ENOTSOCK && error != EINVAL && acceptor->errors < ERRORS_MOST;
    if (!passes || !acceptor->errors++)
        fprintf(stderr, "httpd: accept: %s\n", strerror(error));
    if (passes) {
        strand_sleep(error_pause);
    } else {
        acceptor->server->accept_error = error;
        if (!acceptor->server->draining) /* a second signal would end all at once */
            kill(getpid(), SIGTERM);
    }
}

/* What ends by itself, and that connections which end make room for. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* Without descriptors or memory others make room, and connections wait in the system's queue meanwhile. */
static void accept_one(struct acceptor *acceptor)
{
    struct server *server = acceptor->server;
    int fd = strand_accept(server->listener);
    if (fd >= 0) {
        acceptor->errors = 0;
        server->connections++;
        spawn_connection(acceptor->connections, server, fd);
    } else if (is_shortage(-fd)) {
        bool room = end_some_connections(server, queue_length(server->listener));
        strand_sleep(room ? room_pause : no_room_pause);
    } else {
        bear_error(acceptor, -fd);
    }
}

static bool is_somebody_waiting(const struct server *server)
{
    struct pollfd listener = {.fd = server->listener, .events = POLLIN};
    return poll(&listener, 1, 0) > 0;
}

/* Those in the queue have come before the end, and perhaps with their whole request: a listener that is closed would
 * reset them. */
static void accept_rest(struct acceptor *acceptor)
{
    struct server *server = acceptor->server;
    STRAND_SHIELD;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(server->drain));
        while (!server->cancelled && !server->accept_error && is_somebody_waiting(server))
            accept_one(acceptor);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    strand_close(server->listener);
}

/* Until the server drains: then drain() cancels it. */
static void *accept_connections(void *arg)
{
    struct acceptor *acceptor = arg;
    STRAND_TRY {
        while (!acceptor->server->draining && !acceptor->server->accept_error)
            accept_one(acceptor);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
    }
    STRAND_END
    accept_rest(acceptor);
    return NULL;
}

static void spawn_acceptor(struct acceptor *acceptor)
{
    strand accept =
        strand_spawn_with(acceptor->connections, STRAND_ATTR(.name = "accept"), accept_connections, acceptor, 0);
    pthread_mutex_lock(&acceptor->server->lock);
    acceptor->server->acceptor = accept;
    pthread_mutex_unlock(&acceptor->server->lock);
    if (acceptor->server->draining) /* end_accepting may have come before */
        strand_cancel(accept, "the server drains");
}

/* The scope consumes connections that have ended. One fails by a bug, or because a file changes while it is sent: the
 * failure is logged, and the others go on. */
static void *keep_connections(void *arg)
{
    struct server *server = arg;
    struct acceptor acceptor = {.server = server};
    STRAND_SCOPE_WITH(connections, STRAND_OPEN | STRAND_COLLECT | STRAND_SERVICE);
    acceptor.connections = connections;
    spawn_acceptor(&acceptor);
    while (strand_scope_wait_next(connections).bits[0]) {
        strand_exception *e = strand_scope_failure(connections, NULL);
        strand_exception_print(e, STDERR_FILENO);
        strand_exception_release(e);
    }
    return NULL;
}

/* ---- serving and draining -------------------------------------------------------------------- */

/* SIGHUP is for the log, if that is a file, and for certificates. */
static bool reload(void *arg)
{
    struct server *server = arg;
    if (server->security.context)
        security_reload(&server->security);
    return log_reopen(&server->log) || server->security.context;
}

/* The acceptor takes what is in the queue, and closes the listener. One that has not been spawned as yet sees that the
 * server drains. */
static void end_accepting(void *arg)
{
    struct server *server = arg;
    server->draining = true;
    pthread_mutex_lock(&server->lock);
    strand acceptor = server->acceptor;
    pthread_mutex_unlock(&server->lock);
    strand_cancel(acceptor, "the server drains");
    end_idle_connections(server);
}

void name_listener(const struct server *server, int port, char *name, size_t size)
{
    const char *host = *server->host ? server->host : "*";
    snprintf(name, size, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
}

/* Until a signal, and until all connections have ended after it. */
static void run(struct server *server, strand_signals ends)
{
    STRAND_SCOPE(scope);
    strand log = strand_spawn_with(scope, STRAND_ATTR(.name = "log"), log_write, &server->log, 0);
    strand connections = strand_spawn_with(scope, STRAND_ATTR(.name = "connections"), keep_connections, server, 0);
    end_by_signals(&(struct ending){.server = server,
                                    .reload = reload,
                                    .stop = end_accepting,
                                    .cancelled = &server->cancelled,
                                    .time = server->drain,
                                    .log = &server->log,
                                    .signals = ends,
                                    .connections = connections,
                                    .writer = log});
}

void *serve(void *arg)
{
    struct server *server = arg;
    char name[NAME_MOST];
    STRAND_SIGNALS(ends, SIGTERM, SIGINT, SIGHUP);
    if (!security_open(&server->security))
        return NULL;
    server->listener = strand_listen_tcp(server->host, server->port);
    if (server->listener < 0)
        return NULL;
    name_listener(server, strand_tcp_port(server->listener), name, sizeof name);
    printf("httpd: listening on %s\n", name);
    fflush(stdout);
    run(server, ends);
    security_close(&server->security);
    server->stats.size = sizeof server->stats;
    strand_stats_get(&server->stats);
    return NULL;
}
