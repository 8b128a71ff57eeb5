/*
 * Descriptors: pipes, files, terminals, sockets; waiting for them, closing them meanwhile.
 */
#include "fault.h"

#include "strand/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The library's free: calls.c. */
void fault_free(void *memory);

enum { MUCH = 200 * 1024 };
static char sent[MUCH], received[MUCH];

struct ends {
    int in, out;
};

static void *write_much(void *arg)
{
    const struct ends *ends = arg;
    strand_must(strand_write_all(ends->out, sent, sizeof sent));
    return arg;
}

/* All of it, through whatever it is, that fd ends. */
static void pump(struct ends ends)
{
    memset(sent, 'x', sizeof sent);
    memset(received, 0, sizeof received);
    STRAND_SCOPE(scope);
    strand writer = strand_spawn(scope, write_much, &ends);
    int64_t got = strand_must(strand_read_all(ends.in, received, sizeof received));
    if (got < (int64_t)sizeof received) /* the error comes with the next one */
        got += strand_must(strand_read(ends.in, received + got, sizeof received - (size_t)got));
    strand_join(writer);
    FAULT_CHECK(got == sizeof received && memcmp(sent, received, sizeof sent) == 0);
}

static void *read_until_closed(void *arg)
{
    char byte;
    int64_t got = strand_read(*(int *)arg, &byte, 1);
    if (got != -EBADF)
        strand_must(got);
    FAULT_CHECK(got == -EBADF);
    return arg;
}

static void pipes(void)
{
    int fds[2];
    strand_must(strand_pipe(fds));
    FAULT_FD int in = fds[0];
    FAULT_FD int out = fds[1];
    pump((struct ends){in, out});
    strand_must(strand_wait_ready(out, STRAND_WRITABLE));
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, read_until_closed, &in);
    strand_sleep(2 * STRAND_MS);
    (void)strand_close(in);
    strand_join(reader);
    in = -1;
    int64_t put = strand_write(out, "x", 1);
    if (put != -EPIPE)
        strand_must(put);
    FAULT_CHECK(put == -EPIPE);
}

static void file(void)
{
    char text[8] = {0};
    FAULT_FD int fd = memfd_create("file", MFD_CLOEXEC);
    FAULT_CHECK(fd >= 0);
    FAULT_CHECK(strand_must(strand_write_all(fd, "abcd", 4)) == 4);
    FAULT_CHECK(lseek(fd, 0, SEEK_SET) == 0);
    int64_t got = strand_must(strand_read_all(fd, text, sizeof text));
    if (got < 4)
        strand_must(strand_read(fd, text, 1));
    FAULT_CHECK(got == 4 && strcmp(text, "abcd") == 0);
}

static void *write_line(void *arg)
{
    const char line[] = "line\n";
    strand_sleep(STRAND_MS);
    FAULT_CHECK(strand_must(strand_write_all(*(int *)arg, line, sizeof line - 1)) == sizeof line - 1);
    return arg;
}

enum { PIPES = 10 };
struct pipes {
    int count, fds[PIPES][2];
};

static void close_pipes(struct pipes *pipes)
{
    for (int i = 0; i < pipes->count; i++) {
        (void)strand_close(pipes->fds[i][0]);
        (void)strand_close(pipes->fds[i][1]);
    }
}

/* One case of so many that the select takes memory for them. */
static void cases(void)
{
    struct pipes pipes __attribute__((cleanup(close_pipes))) = {.count = 0};
    strand_case all[PIPES];
    for (; pipes.count < PIPES; pipes.count++) {
        strand_must(strand_pipe(pipes.fds[pipes.count]));
        all[pipes.count] = strand_on_ready(pipes.fds[pipes.count][0], STRAND_READABLE);
    }
    STRAND_SCOPE(scope);
    strand writer = strand_spawn(scope, write_line, &pipes.fds[PIPES / 2][1]);
    int which = strand_select(all, PIPES, 0);
    strand_must(all[which].result);
    strand_join(writer);
    FAULT_CHECK(which == PIPES / 2);
}

static void terminal(void)
{
    int fds[2];
    char text[8] = {0};
    FAULT_CHECK(openpty(&fds[0], &fds[1], NULL, NULL, NULL) == 0);
    FAULT_FD int master = fds[0];
    FAULT_FD int slave = fds[1];
    STRAND_SCOPE(scope);
    strand writer = strand_spawn(scope, write_line, &master);
    FAULT_CHECK(strand_must(strand_read(slave, text, sizeof text)) == 5);
    strand_join(writer);
    FAULT_CHECK(strand_must(strand_write(slave, "x", 1)) == 1);
}

/* ---- sockets --------------------------------------------------------------------------------------------- */

static void *serve(void *listener)
{
    FAULT_FD int fd = (int)strand_must(strand_accept(*(int *)listener));
    char text[4];
    for (;;) {
        int64_t got = strand_must(strand_read(fd, text, sizeof text));
        if (!got)
            break;
        strand_must(strand_write_all(fd, text, (size_t)got));
    }
    return listener;
}

/* Talks to the server. If the server has failed, this end sees that first, and the join of the server says why. */
static bool talk(int fd)
{
    char text[4] = {0};
    strand_must(strand_write_all(fd, "ping", 4));
    int64_t got = strand_must(strand_read_all(fd, text, sizeof text));
    if (got < 4)
        strand_must(strand_read(fd, text, 1));
    strand_must(strand_shutdown(fd, SHUT_WR));
    return got == 4 && memcmp(text, "ping", 4) == 0;
}

static void unix_sockets(void)
{
    char name[64];
    snprintf(name, sizeof name, "@libstrand-fault-%d", (int)getpid());
    FAULT_FD int listener = (int)strand_must(strand_listen_unix(name));
    STRAND_SCOPE(scope);
    strand server = strand_spawn(scope, serve, &listener);
    FAULT_FD int fd = (int)strand_must(strand_dial_unix(name));
    bool right = talk(fd);
    strand_join(server);
    FAULT_CHECK(right);
}

static void tcp_sockets(const char *listen_at, const char *dial)
{
    FAULT_FD int listener = (int)strand_must(strand_listen_tcp(listen_at, 0));
    int port = (int)strand_must(strand_tcp_port(listener));
    STRAND_SCOPE(scope);
    strand server = strand_spawn(scope, serve, &listener);
    FAULT_FD int fd = (int)strand_must(strand_dial_tcp(dial, port));
    char peer[STRAND_PEER_ROOM];
    bool right = strand_must(strand_peer_address(fd, peer, sizeof peer)) > 0 && talk(fd);
    strand_join(server);
    FAULT_CHECK(right);
}

struct relay {
    int from, to;
    strand_spliced spliced;
};

static void relay_end(struct relay *relay)
{
    fault_free(relay->spliced.rest);
}

static void *relay_all(void *arg)
{
    struct relay *relay = arg;
    strand_must(strand_splice(relay->from, relay->to, UINT64_MAX, &relay->spliced));
    return arg;
}

/* Between two connections, and in the middle it is interrupted: what is on its way is the caller's. */
static void relays(void)
{
    int fds[4];
    char text[8] = {0};
    for (int i = 0; i < 4; i += 2)
        FAULT_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, &fds[i]) == 0);
    FAULT_FD int source = fds[0], from = fds[1], to = fds[2], target = fds[3];
    struct relay relay __attribute__((cleanup(relay_end))) = {from, to, {0}};
    FAULT_CHECK(strand_must(strand_write_all(source, "abcd", 4)) == 4);
    FAULT_CHECK(strand_must(strand_splice(from, to, 3, &relay.spliced)) == 3);
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, relay_all, &relay);
    int64_t got = strand_must(strand_read_all(target, text, 4));
    if (got < 4) /* the error comes with the next one */
        got += strand_must(strand_read(target, text + got, (size_t)(4 - got)));
    strand_cancel(child, NULL);
    strand_wait(child);
    FAULT_CHECK(got == 4 && strcmp(text, "abcd") == 0 && relay.spliced.moved == 4);
}

static void *pipes_and_files(void *arg)
{
    (void)arg;
    pipes();
    file();
    terminal();
    cases();
    return FAULT_DONE;
}

static void *sockets(void *arg)
{
    (void)arg;
    unix_sockets();
    tcp_sockets("127.0.0.1", "127.0.0.1");
    tcp_sockets("", "127.0.0.1");
    int fds[2];
    FAULT_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    FAULT_FD int in = fds[0];
    FAULT_FD int out = fds[1];
    pump((struct ends){in, out});
    relays();
    return FAULT_DONE;
}

static void *names(void *arg)
{
    (void)arg;
    tcp_sockets("localhost", "localhost");
    return FAULT_DONE;
}

/* ---- the other side is no strand: in a seeded run time passes, too ------------------------------------------ */

static void *write_from_outside(void *arg)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    FAULT_CHECK(write(*(int *)arg, "x", 1) == 1);
    return NULL;
}

static void join_thread(pthread_t *id)
{
    pthread_join(*id, NULL);
}

static void *outside(void *arg)
{
    (void)arg;
    int fds[2];
    char byte;
    FAULT_CHECK(pipe2(fds, O_CLOEXEC) == 0);
    FAULT_FD int in = fds[0];
    FAULT_FD int out = fds[1];
    pthread_t thread __attribute__((cleanup(join_thread)));
    FAULT_CHECK(pthread_create(&thread, NULL, write_from_outside, &out) == 0);
    FAULT_CHECK(strand_must(strand_read(in, &byte, 1)) == 1);
    return FAULT_DONE;
}

FAULT_WORKLOAD(pipes, RUN_ALONE | RUN_PAIR, pipes_and_files, )
FAULT_WORKLOAD(sockets, RUN_ALONE | RUN_PAIR, sockets, )
FAULT_WORKLOAD(names, RUN_ALONE | RUN_PAIR, names, )
FAULT_WORKLOAD(outside, RUN_SEEDED, outside, )
