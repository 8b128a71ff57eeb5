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

static _Atomic int refusals; /* of sockets for datagrams: how many are left */
static _Atomic int calls;    /* of getaddrinfo for "one.test" */
static _Atomic int error,
    code; /* that look-ups of "bad.test" fail with, and of all names of addresses; 0: they do not */

/* ---- the C library ----------------------------------------------------------------------------------------------- */

#define REAL(function) (__extension__(__typeof__(&(function))) dlsym(RTLD_NEXT, #function))

/* This host has an address of IPv4 in the first source that nsswitch.conf names, and one of IPv6 in a later one, which
 * only a look-up of IPv6 alone comes to. */
int getaddrinfo(const char *restrict host, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict out)
{
    bool number = hints->ai_flags & AI_NUMERICHOST; /* which is no look-up */
    if (host && error && !number && strcmp(host, "bad.test") == 0) {
        errno = code;
        return error;
    }
    if (!host || strcmp(host, "one.test") != 0)
        return REAL(getaddrinfo)(host, service, hints, out);
    calls++;
    return REAL(getaddrinfo)(hints->ai_family == AF_INET6 ? "::1" : "127.0.0.1", service, hints, out);
}

int getnameinfo(const struct sockaddr *restrict address, socklen_t length, char *restrict host, socklen_t host_room,
                char *restrict service, socklen_t service_room, int flags)
{
    if (!error || !(flags & NI_NAMEREQD))
        return REAL(getnameinfo)(address, length, host, host_room, service, service_room, flags);
    errno = code;
    return error;
}

struct failure {
    int error, code, result;
    const char *why;
};

TEST_REAL_INSIDE(a_failure_of_the_c_library_has_the_same_code_for_names_and_addresses)
{
    static const struct failure failures[] = {
        {EAI_NONAME, 0, -ENOENT, "Name or service not known"},
        {EAI_AGAIN, 0, -EHOSTUNREACH, "there is no answer at present"},
        {EAI_FAIL, 0, -EHOSTUNREACH, "the name servers report a failure"},
        {EAI_MEMORY, 0, -ENOMEM, "there is no memory"},
        {EAI_SYSTEM, EMFILE, -EMFILE, "Too many open files"},
        {EAI_SYSTEM, 0, -EIO, "Input/output error"},
    };
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        char why[STRAND_NAMES_WHY], *name, words[2][128];
        const strand_names_attr *attr = STRAND_NAMES_ATTR(.nsswitch = true, .why = why, .why_room = sizeof why);
        strand_names_list *list;
        error = failures[i].error;
        code = failures[i].code;
        snprintf(words[0], sizeof words[0], "bad.test: %s", failures[i].why);
        snprintf(words[1], sizeof words[1], "192.0.2.1: %s", failures[i].why);
        CHECK_EQ(strand_names_lookup("bad.test", NULL, attr, &list), failures[i].result);
        CHECK_STR(why, words[0]);
        CHECK_EQ(strand_names_reverse("192.0.2.1", attr, &name), failures[i].result);
        CHECK_STR(why, words[1]);
        CHECK_EQ(strand_names_dial("bad.test", "80", attr), failures[i].result);
        CHECK_STR(why, words[0]);
    }
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

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

int socket(int family, int type, int protocol)
{
    if (refusals && (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_DGRAM) {
        refusals--;
        errno = EMFILE;
        return -1;
    }
    return REAL(socket)(family, type, protocol);
}

static void check_failure(const struct dns *dns, const char *host, int64_t timeout_ns, int result, const char *words)
{
    char why[STRAND_NAMES_WHY];
    strand_names_list *list;
    refusals = 1;
    CHECK_EQ(strand_names_lookup(host, NULL,
                                 STRAND_NAMES_ATTR(.servers = dns->servers, .family = 4, .tries = 2,
                                                   .timeout_ns = timeout_ns, .why = why, .why_room = sizeof why),
                                 &list),
             result);
    CHECK_EQ(refusals, 0);
    CHECK_STR(why, words);
}

TEST_REAL_INSIDE(a_socket_that_is_refused_once_does_not_hide_what_a_later_one_brings)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    check_failure(dns, "nobody.test", 60 * STRAND_S, -ENOENT, "nobody.test: there is no such name");
    check_failure(dns, "mute.test", 20 * STRAND_MS, -EHOSTUNREACH, "mute.test: no name server answers");
    dns_stop(scope, dns);
}
