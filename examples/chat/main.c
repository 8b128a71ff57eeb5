/*
 * chat: the command line, the clients, and the server's life.
 */
#include "chat.h"

#include "../common/options.h"

#include <strand/io.h>
#include <strand/pool.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct address {
    const char *host;
    int port;
};

/* ---- clients ------------------------------------------------------------------------------------------------- */

struct door {
    struct server *server;
    int listener;
};

/* The client's strand closes the descriptor. False means that there is no such strand: the caller closes it. */
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

/* The scope consumes clients that end normally, and the loop reports those that fail. A failure of the door is a
 * failure of the server, which could admit no more clients. */
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
    const struct address *address = arg;
    STRAND_SIGNALS(signals, SIGINT, SIGTERM);
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.name = "chat"));
    struct server server = {.system = system};
    struct door door = {&server, (int)strand_must(strand_listen_tcp(address->host, address->port))};
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

int main(int argc, char **argv)
{
    struct address address = {"127.0.0.1", 0};
    const struct option_row options[] = {
        {"host", 0, "NAME", "the address to listen on (default 127.0.0.1)", OPTION_TEXT(address.host)},
        {"port", 0, "N", "the port; 0 (the default): any free one", OPTION_NUMBER(address.port, 0, 65535)},
        {0},
    };
    const struct program chat = {"chat", "Rooms to talk in, by lines over TCP. SIGINT or SIGTERM ends the server.\n",
                                 NULL, options};
    options_read(&chat, argc, argv);
    strand_run(STRAND_OPTIONS(.threads = STRAND_THREADS_ALLOWED), serve, &address);
    return 0;
}
