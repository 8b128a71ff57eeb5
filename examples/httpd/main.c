/*
 * httpd: serves the files of a directory, and some generated pages, by HTTP/1.1.
 *
 * The tree of its strands mirrors the tree of its work:
 *
 *   root             waits for SIGTERM or SIGINT, then drains
 *     log            writes the access log
 *     connections    consumes the strands of connections that have ended, and reports those that failed
 *       accept       takes connections
 *       connection   one for each, deadlines for its requests
 *         watch client, nap ...   below a request that waits
 *
 * So to end a request, a connection or everything is to cancel one strand, and nothing is left behind.
 */
#include "httpd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { NAME_MOST = 300 };

/* Until a connection that was ended has given its descriptor back; or until one ends by itself. */
static const int64_t room_pause = STRAND_MS, no_room_pause = 10 * STRAND_MS;
/* After an error of accept that passes, for all we know. */
static const int64_t error_pause = 100 * STRAND_MS;

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

/* Without descriptors others make room, and connections wait in the system's queue meanwhile. */
static void accept_one(const struct acceptor *acceptor)
{
    struct server *server = acceptor->server;
    int fd = strand_accept(server->listener);
    if (fd >= 0) {
        server->connections++;
        spawn_connection(acceptor->connections, server, fd);
    } else if (fd == -EMFILE || fd == -ENFILE) {
        bool room = end_some_connections(server, queue_length(server->listener));
        strand_sleep(room ? room_pause : no_room_pause);
    } else if (fd == -EBADF || fd == -ENOTSOCK || fd == -EINVAL || fd == -EOPNOTSUPP) {
        strand_must(fd); /* the listener is none: there is nothing to hope for */
    } else {
        fprintf(stderr, "httpd: accept: %s\n", strerror(-fd));
        strand_sleep(error_pause);
    }
}

static bool is_somebody_waiting(const struct server *server)
{
    struct pollfd listener = {.fd = server->listener, .events = POLLIN};
    return poll(&listener, 1, 0) > 0;
}

/* Those in the queue have come before the end, and perhaps with their whole request: a listener that is closed would
 * reset them. */
static void accept_rest(const struct acceptor *acceptor)
{
    struct server *server = acceptor->server;
    STRAND_SHIELD;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(server->drain));
        while (!server->cancelled && is_somebody_waiting(server))
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
    const struct acceptor *acceptor = arg;
    STRAND_TRY {
        while (!acceptor->server->draining)
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
}

static void *join_it(void *ended)
{
    return strand_join(*(strand *)ended);
}

/* A connection that fails is a bug, or a file that changed under our hands: it is told, and the others go on. */
static void *keep_connections(void *arg)
{
    struct acceptor acceptor = {.server = arg};
    STRAND_SCOPE_WITH(connections, STRAND_OPEN | STRAND_COLLECT);
    acceptor.connections = connections;
    spawn_acceptor(&acceptor);
    for (strand ended; (ended = strand_scope_next(connections)).bits[0];) {
        strand_exception *e = strand_try(join_it, &ended, NULL);
        if (e && strand_exception_is(e, &STRAND_INTERRUPTED))
            strand_rethrow(e);
        if (e)
            strand_exception_print(e, STDERR_FILENO);
        strand_exception_release(e);
    }
    return NULL;
}

/* ---- serving and draining -------------------------------------------------------------------- */

/* The acceptor takes what is in the queue, and closes the listener. One that has not been spawned as yet sees that the
 * server drains. */
static void end_accepting(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    strand acceptor = server->acceptor;
    pthread_mutex_unlock(&server->lock);
    strand_cancel(acceptor, "the server drains");
}

struct hurry {
    struct server *server;
    strand_signals signals;
    strand connections;
};

static void cancel_connections(const struct hurry *hurry, const char *why)
{
    hurry->server->cancelled = true;
    strand_cancel(hurry->connections, why);
}

/* Who sends a second signal does not want to wait. */
static void *await_second_signal(void *arg)
{
    const struct hurry *hurry = arg;
    strand_signal(hurry->signals);
    cancel_connections(hurry, "a second signal came");
    return NULL;
}

static void drain(struct server *server, strand_signals signals, strand connections)
{
    struct hurry hurry = {server, signals, connections};
    STRAND_SCOPE(scope);
    strand second = strand_spawn_with(scope, STRAND_ATTR(.name = "hurry"), await_second_signal, &hurry, 0);
    server->draining = true;
    end_accepting(server);
    end_idle_connections(server);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(server->drain));
        strand_wait(connections);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        cancel_connections(&hurry, "the time to drain is over");
    }
    STRAND_END
    strand_wait(connections); /* a second signal counts until then */
    strand_cancel(second, "all have ended");
}

/* HOST:PORT as in a URL; * for all addresses. */
static void name_listener(const struct server *server, int port, char *name, size_t size)
{
    const char *host = *server->host ? server->host : "*";
    snprintf(name, size, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
}

static void *serve(void *arg)
{
    struct server *server = arg;
    char name[NAME_MOST];
    STRAND_SIGNALS(ends, SIGTERM, SIGINT);
    server->listener = strand_listen_tcp(server->host, server->port);
    if (server->listener < 0)
        return NULL;
    name_listener(server, strand_tcp_port(server->listener), name, sizeof name);
    printf("httpd: listening on %s\n", name);
    fflush(stdout);
    STRAND_SCOPE(scope);
    strand log = strand_spawn_with(scope, STRAND_ATTR(.name = "log"), log_write, &server->log, 0);
    strand connections = strand_spawn_with(scope, STRAND_ATTR(.name = "connections"), keep_connections, server, 0);
    strand_signal(ends);
    drain(server, ends, connections);
    strand_exception_release(strand_try(join_it, &connections, NULL));
    log_close(&server->log);
    strand_join(log);
    server->stats.size = sizeof server->stats;
    strand_stats_get(&server->stats);
    return NULL;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const char usage[] =
    "usage: httpd [option...]\n"
    "\n"
    "Serves the files of a directory by HTTP/1.1, and: /hello, /slow?ms=N&strands=K, /strands (the tree of its own\n"
    "strands). SIGTERM and SIGINT end it: requests under way are finished, as far as the time to drain allows; a "
    "second\n"
    "signal ends them at once. A client that closes its side of the connection, be it only for sending, while it "
    "waits\n"
    "for /slow counts as gone: the work for it is given up.\n"
    "\n"
    "  -p, --port=N        the port; 0 (the default): any free one, which is printed\n"
    "  -H, --host=NAME     the address to listen on (default 127.0.0.1); '': all of this machine\n"
    "  -r, --root=DIR      the directory (default .)\n"
    "  -t, --threads=N     threads (default: one per processor that may be used)\n"
    "  -T, --timeout=S     seconds that a request may take to come, to be worked on, to be taken off (default 10)\n"
    "  -k, --keep-alive=S  seconds that a connection may rest between requests (default 60)\n"
    "  -d, --drain=S       seconds to drain for (default 5)\n"
    "  -l, --log=FILE      the access log, in the combined format; - is standard output (default: none)\n"
    "  -h, --help          this text\n";

__attribute__((noreturn)) static void refuse_option(const char *name, const char *value)
{
    fprintf(stderr, "httpd: %s can't be %s\n", name, value);
    exit(2);
}

static double number(const char *name, const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        refuse_option(name, text);
    return value;
}

static int whole(const char *name, const char *text, int least, int most)
{
    if (!*text || text[strspn(text, "0123456789")])
        refuse_option(name, text);
    return (int)number(name, text, least, most);
}

static int64_t seconds(const char *name, const char *text)
{
    return (int64_t)(number(name, text, 0.001, 1e6) * (double)STRAND_S);
}

static void read_options(struct server *server, int argc, char **argv)
{
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'},    {"host", required_argument, NULL, 'H'},
        {"root", required_argument, NULL, 'r'},    {"threads", required_argument, NULL, 't'},
        {"timeout", required_argument, NULL, 'T'}, {"keep-alive", required_argument, NULL, 'k'},
        {"drain", required_argument, NULL, 'd'},   {"log", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "p:H:r:t:T:k:d:l:h", options, NULL)) != -1;) {
        switch (option) {
        case 'p':
            server->port = whole("--port", optarg, 0, 65535);
            break;
        case 'H':
            server->host = optarg;
            break;
        case 'r':
            server->directory = optarg;
            break;
        case 't':
            server->threads = whole("--threads", optarg, 1, 1024);
            break;
        case 'T':
            server->timeout = seconds("--timeout", optarg);
            break;
        case 'k':
            server->patience = seconds("--keep-alive", optarg);
            break;
        case 'd':
            server->drain = seconds("--drain", optarg);
            break;
        case 'l':
            server->log_path = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs("Try httpd --help.\n", stderr);
            exit(2);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "httpd: what is %s? Try httpd --help.\n", argv[optind]);
        exit(2);
    }
}

__attribute__((noreturn)) static void fail(const char *what, int error)
{
    fprintf(stderr, "httpd: %s: %s\n", what, strerror(error));
    exit(1);
}

__attribute__((noreturn)) static void fail_to_listen(const struct server *server)
{
    char name[NAME_MOST];
    name_listener(server, server->port, name, sizeof name);
    const char *why = server->listener == -ENOENT ? "there is no such host" : strerror(-server->listener);
    fprintf(stderr, "httpd: listen on %s: %s\n", name, why);
    exit(1);
}

/* As many connections as the system lets us have. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    static struct server server = {
        .host = "127.0.0.1",
        .directory = ".",
        .threads = STRAND_THREADS_ALLOWED,
        .timeout = 10 * STRAND_S,
        .patience = 60 * STRAND_S,
        .drain = 5 * STRAND_S,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    read_options(&server, argc, argv);
    signal(SIGPIPE, SIG_IGN); /* sendfile has no flag for that */
    raise_limit();
    server.root = open(server.directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (server.root < 0)
        fail(server.directory, errno);
    int error = log_open(&server.log, server.log_path);
    if (error)
        fail(server.log_path, -error);
    strand_run(STRAND_OPTIONS(.threads = server.threads), serve, &server);
    log_free(&server.log);
    if (server.listener < 0)
        fail_to_listen(&server);
    uint64_t lost = server.begun - server.served - server.cut;
    if (server.log.lost)
        fprintf(stderr, "httpd: %s: %s: %llu lines lost\n", server.log_path, strerror(server.log.error),
                (unsigned long long)server.log.lost);
    printf("httpd: served=%llu cut=%llu lost=%llu connections=%llu strands=%llu live=%llu\n",
           (unsigned long long)server.served, (unsigned long long)server.cut, (unsigned long long)lost,
           (unsigned long long)server.connections, (unsigned long long)server.stats.spawned,
           (unsigned long long)server.stats.live - 1);
    return lost || server.log.lost || server.stats.live != 1;
}
