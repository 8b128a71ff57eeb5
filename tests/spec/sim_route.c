/*
 * Addresses of a simulated network that do not answer as usual.
 */
#define SUITE sim_route
#include "test.h"

#include "strand/io.h"
#include "strand/sim.h"

#include <errno.h>

static void in_seeded_runs(strand_fn *fn)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        strand_run(STRAND_OPTIONS(.threads = 2, .has_seed = true, .seed = seed, .sim = STRAND_SIM(.silent = true)), fn,
                   NULL);
}

static void check_dial(const char *address, int port, int expected)
{
    char peer[STRAND_PEER_ROOM] = "", words[STRAND_PEER_ROOM];
    int fd = strand_dial_tcp(address, port);
    CHECK_EQ(fd < 0 ? fd : 0, expected);
    if (fd < 0)
        return;
    snprintf(words, sizeof words, strchr(address, ':') ? "[%s]:%d" : "%s:%d", address, port);
    CHECK(strand_peer_address(fd, peer, sizeof peer) > 0);
    CHECK_STR(peer, words);
    CHECK_EQ(strand_close(fd), 0);
}

static void *dial_all(void *arg)
{
    int listener = strand_must(strand_listen_tcp("", 0)), port = strand_tcp_port(listener);
    CHECK_EQ(strand_sim_route("192.0.2.1", STRAND_SIM_SILENT, 0), 0);
    CHECK_EQ(strand_sim_route("192.0.2.2", STRAND_SIM_REFUSED, 0), 0);
    CHECK_EQ(strand_sim_route("2001:db8::3", STRAND_SIM_UNREACHABLE, 0), 0);
    CHECK_EQ(strand_sim_route("2001:db8::4", STRAND_SIM_OPEN, 60 * STRAND_S), 0);
    check_dial("192.0.2.2", port, -ECONNREFUSED);
    check_dial("2001:db8::3", port, -ENETUNREACH);
    check_dial("2001:db8::5", port, 0);
    check_dial("127.0.0.1", port, 0);
    strand_time begin = strand_now();
    check_dial("2001:db8::4", port, 0);
    CHECK(strand_now().ns - begin.ns >= 60 * STRAND_S && strand_now().ns - begin.ns < 61 * STRAND_S);
    begin = strand_now();
    check_dial("192.0.2.1", port, -ETIMEDOUT);
    CHECK(strand_now().ns - begin.ns >= 127 * STRAND_S && strand_now().ns - begin.ns < 128 * STRAND_S);
    CHECK_EQ(strand_sim_route("192.0.2.1", STRAND_SIM_OPEN, 0), 0); /* the latest call counts */
    check_dial("192.0.2.1", port, 0);
    CHECK_EQ(strand_sim_route("a name", STRAND_SIM_OPEN, 0), -EINVAL);
    CHECK_EQ(strand_sim_route("", STRAND_SIM_OPEN, 0), -EINVAL);
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

TEST(connections_to_an_address_go_as_the_test_has_said)
{
    in_seeded_runs(dial_all);
}

static void *dial_silent(void *arg)
{
    STRAND_DEADLINE(strand_in(STRAND_S));
    check_dial("192.0.2.1", 80, 0);
    return arg;
}

static void *dial_in_vain(void *arg)
{
    CHECK_EQ(strand_sim_route("192.0.2.1", STRAND_SIM_SILENT, 0), 0);
    strand_exception *e = strand_try(dial_silent, NULL, NULL);
    CHECK(e && strand_exception_is(e, &STRAND_TIMED_OUT));
    strand_exception_release(e);
    return arg;
}

TEST(a_deadline_ends_a_connection_to_a_silent_address)
{
    in_seeded_runs(dial_in_vain);
}

TEST_REAL_INSIDE(only_a_seeded_run_has_such_addresses)
{
    CHECK_EQ(strand_sim_route("192.0.2.1", STRAND_SIM_SILENT, 0), -ENOTSUP);
}
