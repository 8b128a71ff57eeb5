/*
 * proxy: a reverse proxy for HTTP/1.1. This file has the command line and prints the figures at the end.
 */
#include "proxy.h"

#include "../common/options.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char about[] =
    "Sends requests of HTTP/1.1 on to backends, and their answers back. A request that failed is tried again if it is\n"
    "idempotent and nothing of its body or of an answer has gone through. SIGTERM and SIGINT end the proxy: it "
    "finishes\n"
    "the requests that are under way, for as long as --drain allows; a second signal ends them at once. SIGHUP opens\n"
    "the log's file and the certificate again. A client that closes its side of the connection, even for sending "
    "only,\n"
    "while it waits for an answer counts as gone. WebSockets pass; other upgrades do not.\n";

/* HOST:PORT or [ADDRESS]:PORT. */
static bool is_address(const char *text, bool any_port)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || colon - text > 255)
        return false;
    bool bracketed = *text == '[' && colon[-1] == ']' && colon - text > 2;
    if (!bracketed && text + strcspn(text, ":[]") != colon)
        return false;
    size_t digits = strspn(colon + 1, "0123456789");
    int port = atoi(colon + 1);
    return digits && digits <= 5 && !colon[1 + digits] && port <= 65535 && (port || any_port) &&
           (bracketed || is_host(text, (size_t)(colon - text)));
}

static void check_addresses(const struct program *program, const char *option, const struct option_list *list,
                            bool any_port)
{
    for (size_t i = 0; i < list->count; i++)
        if (!is_address(list->values[i], any_port))
            options_refuse(program, "--%s can't be '%s'; it takes HOST:PORT or [ADDRESS]:PORT", option,
                           list->values[i]);
}

static void *must_allocate(void *memory)
{
    if (!memory) {
        fprintf(stderr, "proxy: %s\n", strerror(ENOMEM));
        exit(EXIT_FAILURE);
    }
    return memory;
}

static void take_backends(struct server *server, const struct program *program, const struct option_list *list)
{
    if (!list->count)
        options_refuse(program, "--backend is missing. Try %s --help.", program->name);
    if (list->count > BACKENDS_MOST)
        options_refuse(program, "--backend can't be given more than %d times", BACKENDS_MOST);
    server->backends = must_allocate(calloc(list->count, sizeof *server->backends));
    server->backend_count = (int)list->count;
    for (size_t i = 0; i < list->count; i++) {
        struct backend *backend = &server->backends[i];
        const char *name = list->values[i], *colon = strrchr(name, ':');
        bool bracket = *name == '[';
        backend->name = name;
        backend->host = must_allocate(strndup(name + bracket, (size_t)(colon - name) - 2 * bracket));
        backend->port = must_allocate(strdup(colon + 1));
    }
    free(list->values);
}

static void take_listeners(struct server *server, const struct option_list *list)
{
    server->listen_names = list->count ? list->values : must_allocate(calloc(1, sizeof *server->listen_names));
    server->listener_count = list->count ? (int)list->count : 1;
    if (!list->count)
        *server->listen_names = "127.0.0.1:8080";
    server->listeners = must_allocate(calloc((size_t)server->listener_count, sizeof *server->listeners));
}

static void check_path(const struct program *program, const char *path)
{
    bool right = !path || *path == '/';
    for (const char *at = path; at && *at; at++)
        right = right && *at > ' ' && *at != 0x7f;
    if (!right)
        options_refuse(program, "--check can't be '%s'; it takes a path: /health", path);
}

static void read_options(struct server *server, int argc, char **argv)
{
    struct option_list listeners = {0}, backends = {0};
    struct limits *limits = &server->limits;
    const char *balance = "turns";
    const struct option_row options[] = {
        {"listen", 'l', "ADDR",
         "where to listen, HOST:PORT (default 127.0.0.1:8080); host *: all addresses of this machine;\nport 0: any "
         "free one, "
         "which is printed; may be given again",
         OPTION_LIST(listeners)},
        {"backend", 'b', "ADDR", "a backend, HOST:PORT; may be given again", OPTION_LIST(backends)},
        {"balance", 'B', "HOW", "turns (the default): backends take turns; least: the one with the fewest requests",
         OPTION_CHOICE(balance, "turns least")},
        {"certificate", 'c', "PEM", "clients speak TLS: the certificate, then those between it and the root",
         OPTION_TEXT(server->certificate)},
        {"key", 'k', "PEM", "its private key (default: in the file of the certificate)", OPTION_TEXT(server->key)},
        {"behind", 0, NULL,
         "clients are proxies to be trusted: what Forwarded, X-Forwarded-* and X-Real-IP say goes on",
         OPTION_FLAG(server->behind)},
        {"active", 'a', "N", "requests that a backend works on at a time (default 256)",
         OPTION_NUMBER(server->most_active, 1, 1000000)},
        {"queue", 'q', "N", "requests that wait for a backend; further ones get 503 (default 256)",
         OPTION_NUMBER(server->most_waiting, 1, 1000000)},
        {"pool", 'p', "N", "idle connections to a backend that are kept (default 64)",
         OPTION_NUMBER(server->most_idle, 0, 1000000)},
        {"retries", 'r', "N", "further tries of a request that may be tried again (default 2)",
         OPTION_NUMBER(server->retries, 0, 64)},
        {"failures", 'f', "N", "failures in a row that take a backend away for --down (default 3)",
         OPTION_NUMBER(server->most_failures, 1, 1000000)},
        {"down", 'D', "S", "seconds that it is away (default 10)", OPTION_TIME(server->down, STRAND_S, 0, 1e6L)},
        {"check", 'C', "PATH", "ask each backend for PATH; 2xx and 3xx are well", OPTION_TEXT(server->check_path)},
        {"check-every", 0, "S", "seconds from an answer of a check to the next question (default 5)",
         OPTION_TIME(server->check_every, STRAND_S, 0.001L, 1e6L)},
        {"check-time", 0, "S", "seconds for a check, with the connection (default 5)",
         OPTION_TIME(limits->check, STRAND_S, 0.001L, 1e6L)},
        {"rise", 0, "N", "answers in a row by which a backend is well again (default 2)",
         OPTION_NUMBER(server->rise, 1, 1000)},
        {"fall", 0, "N", "answers in a row by which it is not (default 3)", OPTION_NUMBER(server->fall, 1, 1000)},
        {"handshake", 0, "S", "seconds for a handshake of TLS (default 10)",
         OPTION_TIME(limits->handshake, STRAND_S, 0.001L, 1e6L)},
        {"head", 0, "S", "seconds for the head of a request to come (default 10)",
         OPTION_TIME(limits->head, STRAND_S, 0.001L, 1e6L)},
        {"wait", 0, "S", "seconds that a request waits for a backend (default 10)",
         OPTION_TIME(limits->queue, STRAND_S, 0.001L, 1e6L)},
        {"connect", 0, "S", "seconds to connect to a backend, with its name and all its addresses (default 5)",
         OPTION_TIME(limits->connect, STRAND_S, 0.001L, 1e6L)},
        {"answer", 0, "S", "seconds from a request's end to the end of the answer's head (default 60)",
         OPTION_TIME(limits->response, STRAND_S, 0.001L, 1e6L)},
        {"idle", 0, "S", "seconds in which a body, or a WebSocket, has to go on (default 60)",
         OPTION_TIME(limits->idle, STRAND_S, 0.001L, 1e6L)},
        {"rate", 'R', "N",
         "bytes per second that a client has to send of a body, before the answer begins, or to take of an\nanswer, "
         "averaged over each --idle in which it is waited for (default 500; 0: any)",
         OPTION_NUMBER(server->least_rate, 0, 1000000000)},
        {"whole", 0, "S", "seconds for a request from its head to its answer's end (default 0: no limit)",
         OPTION_TIME(limits->whole, STRAND_S, 0, 1e6L)},
        {"keep-alive", 'K', "S", "seconds that a client's connection may be idle (default 60)",
         OPTION_TIME(limits->keep_alive, STRAND_S, 0.001L, 1e6L)},
        {"pool-time", 0, "S", "seconds that a backend's connection may be idle (default 30)",
         OPTION_TIME(limits->pool, STRAND_S, 0.001L, 1e6L)},
        {"drain", 'd', "S", "seconds for requests to finish when the proxy ends (default 5)",
         OPTION_TIME(limits->drain, STRAND_S, 0.001L, 1e6L)},
        {"threads", 't', "N", "threads (default: one per allowed CPU)", OPTION_NUMBER(server->threads, 1, 1024)},
        {"log", 'L', "FILE", "the access log; -: standard output (default: none)", OPTION_TEXT(server->log_path)},
        {0},
    };
    const struct program program = {"proxy", about, NULL, options};
    options_read(&program, argc, argv);
    server->least = strcmp(balance, "least") == 0;
    check_addresses(&program, "listen", &listeners, true);
    check_addresses(&program, "backend", &backends, false);
    check_path(&program, server->check_path);
    if (server->key && !server->certificate)
        options_refuse(&program, "--key needs --certificate");
    take_backends(server, &program, &backends);
    take_listeners(server, &listeners);
}

strand_tls_context *open_tls(const struct server *server)
{
    return strand_tls_context_open(
        STRAND_TLS_ATTR(.certificates = server->certificate, .key = server->key, .protocols = "http/1.1"));
}

/* The root strand. */
static void *begin(void *arg)
{
    struct server *server = arg;
    STRAND_TRY {
        if (server->certificate)
            server->tls = open_tls(server);
        for (int i = 0; i < server->backend_count; i++)
            backend_open(server, &server->backends[i]);
        serve(server);
    }
    STRAND_CATCH(&STRAND_TLS_ERROR, e) {
        fprintf(stderr, "proxy: %s\n", strand_exception_text(e));
    }
    STRAND_END
    strand_tls_context_close(server->tls);
    return NULL;
}

/* Returns how many descriptors there may be. */
static uint64_t raise_limit(void)
{
    struct rlimit limit = {1024, 1024};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_max;
}

/* Each client needs two descriptors while it is served; some are for all else. */
static uint64_t most_clients(const struct server *server)
{
    uint64_t most = raise_limit(), others = 32 + (uint64_t)(server->listener_count + server->backend_count);
    return most > others + 2 ? (most - others) / 2 : 1;
}

static void free_backends(struct server *server)
{
    for (int i = 0; i < server->backend_count; i++) {
        free(server->backends[i].host);
        free(server->backends[i].port);
    }
    free(server->backends);
    free(server->listeners);
    free(server->listen_names);
}

static int report(struct server *server)
{
    uint64_t lost = server->begun - server->served - server->cut + server->live;
    if (!server->listening) {
        if (server->error_name)
            fprintf(stderr, "proxy: listen on %s: %s\n", server->error_name,
                    server->error == -ENOENT ? "there is no such host" : strerror(-server->error));
        return 1;
    }
    if (server->log.lost)
        fprintf(stderr, "proxy: %s: %s: %llu lines lost\n", server->log_path,
                server->log.error ? strerror(server->log.error) : "nobody takes them",
                (unsigned long long)server->log.lost);
    if (log_takes(STDOUT_FILENO))
        printf("proxy: served=%llu cut=%llu refused=%llu lost=%llu connections=%llu strands=%llu live=%llu\n",
               (unsigned long long)server->served, (unsigned long long)server->cut, (unsigned long long)server->refused,
               (unsigned long long)lost, (unsigned long long)server->connections,
               (unsigned long long)server->stats.spawned, (unsigned long long)server->stats.live - 1);
    return lost || server->log.lost || server->stats.live != 1 || server->error;
}

int main(int argc, char **argv)
{
    static struct server server = {
        .limits = {10 * STRAND_S, 10 * STRAND_S, 60 * STRAND_S, 10 * STRAND_S, 5 * STRAND_S, 60 * STRAND_S,
                   60 * STRAND_S, 0, 5 * STRAND_S, 30 * STRAND_S, 5 * STRAND_S},
        .threads = STRAND_THREADS_ALLOWED,
        .most_active = 256,
        .most_waiting = 256,
        .most_idle = 64,
        .retries = 2,
        .least_rate = 500,
        .most_failures = 3,
        .down = 10 * STRAND_S,
        .check_every = 5 * STRAND_S,
        .rise = 2,
        .fall = 3,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    server.idle_end = &server.idle;
    read_options(&server, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    server.most_clients = most_clients(&server);
    int error = log_open(&server.log, server.log_path);
    if (error) {
        fprintf(stderr, "proxy: %s: %s\n", server.log_path, strerror(-error));
        return 1;
    }
    strand_run(STRAND_OPTIONS(.threads = server.threads), begin, &server);
    log_free(&server.log);
    int status = report(&server);
    free_backends(&server);
    return status;
}
