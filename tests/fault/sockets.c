/*
 * Sockets: datagrams, bytes in several buffers, connections with the addresses of their peers.
 */
#include "fault.h"

#include "strand/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* There and back, by one strand: what was sent is there. */
static void there_and_back(strand_address at, strand_address own)
{
    char text[8] = {0};
    strand_address from;
    FAULT_FD int server = (int)strand_must(strand_datagram_open(&at, NULL));
    strand_must(strand_local_address(server, &at));
    FAULT_FD int client = (int)strand_must(strand_datagram_open(&own, &at));
    FAULT_CHECK(strand_must(strand_send_to(client, "ping", 4, NULL)) == 4);
    FAULT_CHECK(strand_must(strand_receive_from(server, text, sizeof text, &from)) == 4);
    FAULT_CHECK(strand_must(strand_send_to(server, text, 4, &from)) == 4);
    FAULT_CHECK(strand_must(strand_receive_from(client, text, sizeof text, NULL)) == 4);
    FAULT_CHECK(strcmp(text, "ping") == 0);
    strand_datagram out[] = {{(void *)"a", 1, 0, NULL}, {(void *)"b", 1, 0, NULL}}, in = {text, sizeof text, 0, &from};
    int sent = (int)strand_must(strand_send_many(client, out, 2));
    if (sent < 2)
        strand_must(strand_send_many(client, out + 1, 1));
    for (int i = 0; i < 2; i++)
        FAULT_CHECK(strand_must(strand_receive_many(server, &in, 1)) == 1 && in.got == 1 && text[0] == "ab"[i]);
}

static void *datagrams(void *arg)
{
    (void)arg;
    char name[64];
    strand_address at, any;
    strand_must(strand_address_ip(&at, "127.0.0.1", 0));
    there_and_back(at, at);
    snprintf(name, sizeof name, "@libstrand-datagrams-%d", (int)getpid());
    strand_must(strand_address_unix(&at, name));
    strand_must(strand_address_unix(&any, ""));
    there_and_back(at, any);
    return FAULT_DONE;
}

static void through(int in, int out)
{
    char text[8] = {0};
    const struct iovec parts[] = {{(void *)"ab", 2}, {(void *)"cd", 2}};
    FAULT_CHECK(strand_must(strand_writev_all(out, parts, 2)) == 4);
    for (size_t got = 0; got < 4;) { /* in as many parts as they come */
        struct iovec room[] = {{text + got, 1}, {text + got + 1, 3 - got}};
        got += (size_t)strand_must(strand_readv(in, room, 2));
    }
    FAULT_CHECK(strcmp(text, "abcd") == 0);
}

static void *buffers(void *arg)
{
    (void)arg;
    int fds[2];
    strand_address peer;
    strand_must(strand_pipe(fds));
    FAULT_FD int in = fds[0];
    FAULT_FD int out = fds[1];
    through(in, out);
    FAULT_FD int listener = (int)strand_must(strand_listen_tcp("127.0.0.1", 0));
    FAULT_FD int fd = (int)strand_must(strand_dial_tcp("127.0.0.1", (int)strand_must(strand_tcp_port(listener))));
    FAULT_FD int accepted = (int)strand_must(strand_accept_from(listener, &peer));
    FAULT_CHECK(peer.length > 0);
    through(accepted, fd);
    return FAULT_DONE;
}

/* One descriptor that is taken, and one for which there is no room. */
static void *passing(void *arg)
{
    (void)arg;
    int fds[2], passed[1];
    char byte;
    FAULT_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    FAULT_FD int in = fds[0];
    FAULT_FD int out = fds[1];
    const strand_passed sent = {.size = sizeof sent, .fds = fds, .fd_count = 2, .has_credentials = true};
    strand_passed got = {.size = sizeof got, .fds = passed, .max_fds = 1};
    FAULT_CHECK(strand_must(strand_send_passed(out, "x", 1, &sent)) == 1);
    FAULT_CHECK(strand_must(strand_receive_passed(in, &byte, 1, &got)) == 1);
    FAULT_FD int taken = passed[0];
    FAULT_CHECK(got.fd_count == 1 && got.cut && taken >= 0);
    return FAULT_DONE;
}

static void *sharing(void *arg)
{
    (void)arg;
    strand_address at;
    int fds[2];
    strand_must(strand_address_ip(&at, "127.0.0.1", 0));
    for (int type = STRAND_SHARE_TCP; type <= STRAND_SHARE_UDP; type++) {
        strand_must(strand_share_port(&at, (enum strand_sharing)type, fds, 2));
        FAULT_FD int one = fds[0];
        FAULT_FD int two = fds[1];
        FAULT_CHECK(one != two);
    }
    return FAULT_DONE;
}

static void *notify(void *arg)
{
    char name[64], text[16] = {0};
    strand_address at;
    snprintf(name, sizeof name, "@libstrand-notify-%d", (int)getpid());
    strand_must(strand_address_unix(&at, name));
    FAULT_FD int manager = (int)strand_must(strand_datagram_open(&at, NULL));
    setenv("NOTIFY_SOCKET", name, 1);
    strand_must(strand_notify("READY=1"));
    FAULT_CHECK(strand_must(strand_receive_from(manager, text, sizeof text, NULL)) == 7);
    (void)arg;
    return FAULT_DONE;
}

FAULT_WORKLOAD(passing, RUN_ALONE | RUN_PAIR, passing, )
FAULT_WORKLOAD(sharing, RUN_ALONE | RUN_PAIR, sharing, )
FAULT_WORKLOAD(notify, RUN_ALONE | RUN_PAIR, notify, )
FAULT_WORKLOAD(datagrams, RUN_ALONE | RUN_PAIR, datagrams, )
FAULT_WORKLOAD(buffers, RUN_ALONE | RUN_PAIR, buffers, )
