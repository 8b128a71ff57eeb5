/*
 * The command line, and the server's life.
 */
#include "chat.h"

#include <strand/io.h>
#include <strand/pool.h>

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *host;
    int port;
};

/* ---- clients ------------------------------------------------------------------------------------------------- */

struct door {
    struct server *server;
    int listener;
};

/* The client's strand closes the descriptor. Without one, the caller still has to. */
static bool let_in(struct server *server, int fd)
{
    struct client client = {server, fd};
    STRAND_TRY {
        strand_spawn_with(server->clients, STRAND_ATTR(.name = "client"), serve_client, &client, sizeof client);
        return true;
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
        fprintf(stderr, "chat: a client can't be let in: %s\n", strand_exception_text(e));
    }
    STRAND_END
    return false;
}

static void *accept_clients(void *arg)
{
    const struct door *door = arg;
    for (;;) {
        int fd = strand_accept(door->listener);
        if (fd < 0)
            fprintf(stderr, "chat: a client can't be let in: %s\n", strerror(-fd));
        else if (let_in(door->server, fd))
            continue;
        else
            strand_close(fd);
        strand_sleep(100 * STRAND_MS);
    }
    return NULL;
}

/* The scope consumes clients that have left. The loop reports the failure of one that did not leave in peace. A door
 * that fails is the server's failure: nobody would be let in any more. */
static void *serve_clients(void *arg)
{
    struct door *door = arg;
    STRAND_SCOPE_WITH(clients, STRAND_COLLECT | STRAND_OPEN | STRAND_SERVICE);
    door->server->clients = clients;
    strand keeper = strand_spawn_with(clients, STRAND_ATTR(.name = "door"), accept_clients, door, 0);
    for (strand failed; (failed = strand_scope_wait_next(clients)).bits[0];) {
        strand_exception *e = strand_scope_failure(clients, NULL);
        if (failed.bits[0] == keeper.bits[0] && failed.bits[1] == keeper.bits[1])
            strand_rethrow(e);
        fprintf(stderr, "chat: a client has failed: %s\n", strand_exception_text(e));
        strand_exception_release(e);
    }
    return NULL;
}

/* ---- the server ---------------------------------------------------------------------------------------------- */

static void *serve(void *arg)
{
    const struct options *options = arg;
    STRAND_SIGNALS(signals, SIGINT, SIGTERM);
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.name = "chat"));
    struct server server = {.system = system};
    struct door door = {&server, (int)strand_must(strand_listen_tcp(options->host, options->port))};
    server.lobby = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "lobby"), &lobby_class, NULL, 0);
    printf("chat: on port %d\n", strand_tcp_port(door.listener));
    fflush(stdout);
    {
        STRAND_SCOPE(scope);
        strand_spawn_with(scope, STRAND_ATTR(.name = "clients"), serve_clients, &door, 0);
        printf("chat: ends, by %s\n", strand_wait_signal(signals) == SIGINT ? "SIGINT" : "SIGTERM");
        strand_scope_cancel(scope, "the server ends");
    }
    strand_close(door.listener);
    return NULL;
}

static int usage(FILE *out, int status)
{
    fputs("usage: chat [--host=NAME] [--port=N]\n"
          "Rooms to talk in, by lines over TCP; 127.0.0.1 and a free port unless told otherwise. SIGINT or SIGTERM "
          "ends it.\n",
          out);
    return status;
}

static bool read_port(const char *text, int *port)
{
    char *end;
    long number = strtol(text, &end, 10);
    *port = (int)number;
    return *text && !*end && number >= 0 && number <= 65535;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"host", required_argument, NULL, 'h'},
                                          {"port", required_argument, NULL, 'p'},
                                          {"help", no_argument, NULL, '?'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {"127.0.0.1", 0};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (c) {
        case 'h':
            options.host = optarg;
            break;
        case 'p':
            if (!read_port(optarg, &options.port))
                return usage(stderr, 2);
            break;
        default:
            return optopt ? usage(stderr, 2) : usage(stdout, 0);
        }
    }
    strand_run(STRAND_OPTIONS(.threads = STRAND_THREADS_ALLOWED), serve, &options);
    return 0;
}
