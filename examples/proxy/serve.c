/*
 * Listening, accepting and draining. The tree of the proxy's strands mirrors the tree of its work:
 *
 *   root              waits for SIGTERM, SIGINT or SIGHUP, then drains
 *     log             writes the access log
 *     keeper          ends idle links to backends
 *     check           one for each backend, if there are checks
 *     connections     its scope consumes the strands of connections that have ended; it reports those that failed
 *       accept        one for each listener
 *       connection    one for each client
 *         upload      while a request's body comes
 *         tunnel      one direction of a WebSocket
 *         dial        addresses of a backend that are tried (strand_names_dial)
 *
 * So to end a request, a connection or everything is to cancel one strand, and nothing is left behind: the link to the
 * backend ends with the client's request.
 */
#include "proxy.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t room_pause = STRAND_MS, no_room_pause = 10 * STRAND_MS, error_pause = 100 * STRAND_MS;
/* So many errors of accept without a connection in between do not pass. */
enum { ERRORS_MOST = 50 };

/* ---- accepting ------------------------------------------------------------------------------- */

/* The address without the port, and without the brackets of IPv6. */
static void name_peer(struct connection *c, const strand_address *peer)
{
    if (strand_address_print(peer, c->peer, sizeof c->peer) <= 0)
        strcpy(c->peer, "unknown");
    const char *begin = c->peer + (*c->peer == '['), *end = strrchr(c->peer, ':');
    size_t length = end ? (size_t)(end - begin) - (*c->peer == '[') : strlen(begin);
    memcpy(c->address, begin, length);
    c->address[length] = '\0';
}

static struct connection *connection_of(struct server *server, int fd, const strand_address *peer)
{
    struct connection *c = malloc(sizeof *c);
    if (!c)
        return NULL;
    memset(c, 0, offsetof(struct connection, out));
    memset(&c->out, 0, offsetof(struct sink, bytes));
    c->server = server;
    c->stream = (struct stream){.fd = fd};
    c->out.stream = &c->stream;
    c->out.limit = server->limits.idle;
    c->out.pace.least = c->upload.least = (uint64_t)server->least_rate;
    name_peer(c, peer);
    return c;
}

/* The strand takes it over. With no memory for that the connection is closed. */
static void spawn_connection(strand_scope connections, struct server *server, int fd, const strand_address *peer)
{
    struct connection *c = connection_of(server, fd, peer);
    server->live++;
    STRAND_TRY {
        if (c) {
            strand_spawn_with(connections, STRAND_ATTR(.name = "connection"), serve_connection, c, 0);
            return;
        }
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
        fprintf(stderr, "proxy: %s\n", strand_exception_text(e));
    }
    STRAND_END
    server->live--;
    free(c);
    strand_close(fd);
}

struct acceptor {
    struct server *server;
    strand_scope connections;
    int listener;
    int errors; /* since the last connection */
};

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* Idle links are given up first, then the client that has been idle longest; new ones wait in the system's queue. */
static void make_room(struct server *server)
{
    int ended = 0;
    for (int i = 0; i < server->backend_count; i++)
        ended += links_end(server, &server->backends[i], true);
    strand_sleep(ended || end_idle(server, false) ? room_pause : no_room_pause);
}

/* If the socket is no listener, or fails again and again, the proxy ends as by a signal, so its supervisor notices. */
static void bear_error(struct acceptor *acceptor, int error)
{
    bool passes = error != EBADF && error != ENOTSOCK && error != EINVAL && acceptor->errors < ERRORS_MOST;
    if (!passes || !acceptor->errors++)
        fprintf(stderr, "proxy: accept: %s\n", strerror(error));
    if (passes) {
        strand_sleep(error_pause);
    } else {
        acceptor->server->error = -error;
        if (!acceptor->server->draining) /* a second signal would end all at once */
            kill(getpid(), SIGTERM);
    }
}

/* There is a descriptor for each client and one for its link: a client that was taken can be served. With as many
 * clients as that, idle links take nothing from them. */
static void accept_one(struct acceptor *acceptor)
{
    strand_address peer;
    if (acceptor->server->live >= acceptor->server->most_clients) {
        strand_sleep(end_idle(acceptor->server, false) ? room_pause : no_room_pause);
        return;
    }
    int fd = strand_accept_from(acceptor->listener, &peer);
    if (fd >= 0) {
        acceptor->errors = 0;
        acceptor->server->connections++;
        spawn_connection(acceptor->connections, acceptor->server, fd, &peer);
    } else if (is_shortage(-fd)) {
        make_room(acceptor->server);
    } else {
        bear_error(acceptor, -fd);
    }
}

/* No memory for a wait passes, as other shortages do. */
static void accept_in_trouble(struct acceptor *acceptor)
{
    STRAND_TRY {
        accept_one(acceptor);
        return;
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
    }
    STRAND_END
    make_room(acceptor->server);
}

static bool is_somebody_waiting(int listener)
{
    struct pollfd queue = {.fd = listener, .events = POLLIN};
    return poll(&queue, 1, 0) > 0;
}

/* Those in the queue have come before the end; a listener that is closed would reset them. */
static void accept_rest(struct acceptor *acceptor)
{
    struct server *server = acceptor->server;
    STRAND_SHIELD;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(server->limits.drain));
        while (!server->cancelled && !server->error && is_somebody_waiting(acceptor->listener))
            accept_in_trouble(acceptor);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    strand_close(acceptor->listener);
}

/* Until the proxy drains: stop_accepting wakes it. */
static void *accept_connections(void *arg)
{
    struct acceptor *acceptor = arg;
    STRAND_TRY {
        while (!acceptor->server->draining && !acceptor->server->error)
            accept_in_trouble(acceptor);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
    }
    STRAND_END
    accept_rest(acceptor);
    return NULL;
}

static void free_them(struct acceptor **acceptors)
{
    free(*acceptors);
}

/* One for each listener, until this strand is cancelled. */
static void *accept_all(void *arg)
{
    const struct acceptor *all = arg;
    struct server *server = all->server;
    struct acceptor *acceptors __attribute__((cleanup(free_them))) =
        calloc((size_t)server->listener_count, sizeof *acceptors);
    if (!acceptors)
        strand_throw(&STRAND_ERROR, "no memory for the acceptors");
    STRAND_SCOPE(scope);
    for (int i = 0; i < server->listener_count; i++) {
        acceptors[i] = (struct acceptor){server, all->connections, server->listeners[i], 0};
        strand_spawn_with(scope, STRAND_ATTR(.name = "accept"), accept_connections, &acceptors[i], 0);
    }
    STRAND_TRY {
        strand_scope_join(scope);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
    }
    STRAND_END
    strand_scope_cancel(scope, "the proxy drains");
    return NULL;
}

static void spawn_acceptors(struct acceptor *all)
{
    struct server *server = all->server;
    strand acceptors = strand_spawn_with(all->connections, STRAND_ATTR(.name = "acceptors"), accept_all, all, 0);
    pthread_mutex_lock(&server->lock);
    server->acceptors = acceptors;
    pthread_mutex_unlock(&server->lock);
    if (server->draining) /* end_accepting may have come before */
        strand_cancel(acceptors, "the proxy drains");
}

/* The scope consumes connections that have ended. One fails by a bug only: that is logged, and the others go on. */
static void *keep_connections(void *arg)
{
    struct acceptor all = {.server = arg};
    STRAND_SCOPE_WITH(connections, STRAND_OPEN | STRAND_COLLECT | STRAND_SERVICE);
    all.connections = connections;
    spawn_acceptors(&all);
    while (strand_scope_wait_next(connections).bits[0]) {
        strand_exception *e = strand_scope_failure(connections, NULL);
        strand_exception_print(e, STDERR_FILENO);
        strand_exception_release(e);
    }
    return NULL;
}

/* ---- draining -------------------------------------------------------------------------------- */

static void reload_tls(struct server *server)
{
    STRAND_TRY {
        strand_tls_context *fresh = open_tls(server);
        strand_tls_context_replace(server->tls, fresh);
        strand_tls_context_close(fresh);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        fprintf(stderr, "proxy: the certificate stays as it was: %s\n", strand_exception_text(e));
    }
    STRAND_END
}

/* SIGHUP opens the log and the certificate again. */
static bool reload(void *arg)
{
    struct server *server = arg;
    bool reopened = log_reopen(&server->log);
    if (server->tls)
        reload_tls(server);
    return reopened || server->tls;
}

static void end_accepting(void *arg)
{
    struct server *server = arg;
    server->draining = true;
    pthread_mutex_lock(&server->lock);
    strand acceptors = server->acceptors;
    pthread_mutex_unlock(&server->lock);
    strand_cancel(acceptors, "the proxy drains");
    end_idle(server, true);
}

/* ---- the root -------------------------------------------------------------------------------- */

/* HOST:PORT, [HOST]:PORT or *:PORT; main() has checked the form. */
static int listen_at(const char *name)
{
    const char *colon = strrchr(name, ':');
    bool bracket = *name == '[';
    char host[256];
    snprintf(host, sizeof host, "%.*s", (int)(colon - name - 2 * bracket), name + bracket);
    return strand_listen_tcp(strcmp(host, "*") == 0 ? "" : host, atoi(colon + 1));
}

static bool listen_all(struct server *server)
{
    for (int i = 0; i < server->listener_count; i++) {
        const char *name = server->listen_names[i];
        int fd = server->listeners[i] = listen_at(name);
        if (fd < 0) {
            server->error = fd;
            server->error_name = name;
            while (i--)
                strand_close(server->listeners[i]);
            return false;
        }
        printf("proxy: listening on %.*s:%d\n", (int)(strrchr(name, ':') - name), name, strand_tcp_port(fd));
    }
    fflush(stdout);
    return true;
}

static void spawn_checks(strand_scope scope, struct server *server, struct check *checks)
{
    strand_spawn_with(scope, STRAND_ATTR(.name = "keeper"), end_idle_links, server, 0);
    for (int i = 0; server->check_path && i < server->backend_count; i++) {
        checks[i] = (struct check){server, &server->backends[i]};
        strand_spawn_with(scope, STRAND_ATTR(.name = "check"), check_backend, &checks[i], 0);
    }
}

static void serve_until_the_end(struct server *server, strand_signals signals)
{
    struct check checks[BACKENDS_MOST];
    STRAND_SCOPE(scope);
    strand log = strand_spawn_with(scope, STRAND_ATTR(.name = "log"), log_write, &server->log, 0);
    strand connections = strand_spawn_with(scope, STRAND_ATTR(.name = "connections"), keep_connections, server, 0);
    STRAND_SCOPE(background);
    spawn_checks(background, server, checks);
    end_by_signals(&(struct ending){.server = server,
                                    .reload = reload,
                                    .stop = end_accepting,
                                    .cancelled = &server->cancelled,
                                    .time = server->limits.drain,
                                    .log = &server->log,
                                    .signals = signals,
                                    .connections = connections,
                                    .writer = log});
    strand_scope_cancel(background, "the proxy ends");
}

void *serve(void *arg)
{
    struct server *server = arg;
    STRAND_SIGNALS(ends, SIGTERM, SIGINT, SIGHUP);
    if (!listen_all(server))
        return NULL;
    server->listening = true;
    serve_until_the_end(server, ends);
    for (int i = 0; i < server->backend_count; i++)
        links_end(server, &server->backends[i], true);
    server->stats.size = sizeof server->stats;
    strand_stats_get(&server->stats);
    return NULL;
}
