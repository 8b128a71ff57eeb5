/*
 * Sockets for all addresses, on machines that have IPv6, have none, or keep it apart from IPv4 (bindv6only). A call of
 * the system that is defined here, instead of that of the C library, stands for the machine.
 */
#define _GNU_SOURCE
#define SUITE families
#include "test.h"

#include "strand/socket.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static enum machine { ANY, WITHOUT_SIX, APART } machine;

int socket(int domain, int type, int protocol)
{
    static __typeof__(&socket) real;
    if (domain == AF_INET6 && machine == WITHOUT_SIX) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "socket");
    int fd = real(domain, type, protocol);
    if (domain == AF_INET6 && machine == APART && fd >= 0)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){1}, sizeof(int));
    return fd;
}

/* Whether a socket may be bound to ::1. */
static bool has_six(void)
{
    strand_address one;
    CHECK_EQ(strand_address_ip(&one, "::1", 0), 0);
    int fd = machine == WITHOUT_SIX ? -1 : strand_datagram_open(&one, NULL);
    if (fd >= 0)
        CHECK_EQ(strand_close(fd), 0);
    return fd >= 0;
}

enum { SHARERS = 2 };

static int port_of(int fd)
{
    strand_address address;
    CHECK_EQ(strand_local_address(fd, &address), 0);
    struct sockaddr_in four; /* the port of the other family lies in the same place */
    memcpy(&four, address.name, sizeof four);
    return ntohs(four.sin_port);
}

static int await_one(const int *fds, int count)
{
    strand_case cases[SHARERS];
    for (int i = 0; i < count; i++)
        cases[i] = strand_on_ready(fds[i], STRAND_READABLE);
    return fds[strand_select(cases, (size_t)count, 0)];
}

static void check_dialled(const int *listeners, const char *host)
{
    int fd = strand_dial_tcp(host, strand_tcp_port(listeners[0]));
    CHECK(fd >= 0);
    int peer = strand_accept(await_one(listeners, SHARERS));
    CHECK(peer >= 0);
    CHECK_EQ(strand_close(peer), 0);
    CHECK_EQ(strand_close(fd), 0);
}

static void check_sent(const int *fds, int count, const char *host)
{
    strand_address to;
    char byte = 0;
    CHECK_EQ(strand_address_ip(&to, host, port_of(fds[0])), 0);
    int fd = strand_datagram_open(NULL, &to);
    CHECK(fd >= 0);
    CHECK_EQ(strand_send_to(fd, "x", 1, NULL), 1);
    CHECK_EQ(strand_receive_from(await_one(fds, count), &byte, 1, NULL), 1);
    CHECK_EQ(byte, 'x');
    CHECK_EQ(strand_close(fd), 0);
}

static void close_all(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        CHECK_EQ(strand_close(fds[i]), 0);
}

static void check_machine(enum machine which)
{
    strand_address all;
    int fds[SHARERS];
    machine = which;
    bool six = has_six();
    CHECK_EQ(strand_address_ip(&all, "", 0), 0);
    CHECK_EQ(strand_share_port(&all, STRAND_SHARE_TCP, fds, SHARERS), 0);
    check_dialled(fds, "127.0.0.1");
    if (six)
        check_dialled(fds, "::1");
    close_all(fds, SHARERS);
    CHECK_EQ(strand_share_port(&all, STRAND_SHARE_UDP, fds, SHARERS), 0);
    check_sent(fds, SHARERS, "127.0.0.1");
    if (six)
        check_sent(fds, SHARERS, "::1");
    close_all(fds, SHARERS);
    fds[0] = strand_datagram_open(&all, NULL);
    CHECK(fds[0] >= 0);
    check_sent(fds, 1, "127.0.0.1");
    if (six)
        check_sent(fds, 1, "::1");
    close_all(fds, 1);
    machine = ANY;
}

TEST_SYSTEM_INSIDE(sockets_for_all_addresses_serve_each_family_of_the_machine)
{
    check_machine(ANY);
}

TEST_SYSTEM_INSIDE(sockets_for_all_addresses_serve_ipv4_where_there_is_no_ipv6)
{
    check_machine(WITHOUT_SIX);
}

TEST_SYSTEM_INSIDE(sockets_for_all_addresses_serve_both_families_where_these_are_kept_apart)
{
    check_machine(APART);
}

TEST_SYSTEM_INSIDE(an_address_of_a_family_that_the_machine_lacks_is_an_error_code)
{
    strand_address one;
    int fds[SHARERS];
    machine = WITHOUT_SIX;
    CHECK_EQ(strand_address_ip(&one, "::1", 0), 0);
    CHECK_EQ(strand_share_port(&one, STRAND_SHARE_TCP, fds, SHARERS), -EAFNOSUPPORT);
    CHECK_EQ(strand_datagram_open(&one, NULL), -EAFNOSUPPORT);
    machine = ANY;
}
