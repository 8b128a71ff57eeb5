/*
 * What the system does for look-ups, and refuses: functions of the C library that answer as a test wants.
 */
#define SUITE names_system
#include "dns.h"

#include "strand/names.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>

static _Atomic int calls; /* of getaddrinfo for "one.test" */

/* ---- the C library ----------------------------------------------------------------------------------------------- */

#define REAL(function) (__extension__(__typeof__(&(function))) dlsym(RTLD_NEXT, #function))

/* This host has an address of IPv4 in the first source that nsswitch.conf names, and one of IPv6 in a later one, which
 * only a look-up of IPv6 alone comes to. */
int getaddrinfo(const char *restrict host, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict out)
{
    if (!host || strcmp(host, "one.test") != 0)
        return REAL(getaddrinfo)(host, service, hints, out);
    calls++;
    return REAL(getaddrinfo)(hints->ai_family == AF_INET6 ? "::1" : "127.0.0.1", service, hints, out);
}

TEST_REAL_INSIDE(the_c_library_is_asked_once_for_both_families)
{
    char port[16], peer[STRAND_PEER_ROOM];
    int listener = strand_must(strand_listen_tcp("", 0));
    snprintf(port, sizeof port, "%d", strand_tcp_port(listener));
    int fd = strand_names_dial("one.test", port, STRAND_NAMES_ATTR(.nsswitch = true));
    CHECK(strand_peer_address(fd, peer, sizeof peer) > 0);
    CHECK_EQ(strncmp(peer, "127.0.0.1:", 10), 0);
    CHECK_EQ(calls, 1);
    CHECK_EQ(strand_close(fd), 0);
    CHECK_EQ(strand_close(listener), 0);
}
