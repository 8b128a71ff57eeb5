/*
 * Connecting by name: several addresses of two families, of which some do not
 * answer.
 */
#define SUITE names_dial
#include "dns.h"
#include "namespaces.h"

#include "strand/names.h"
#include "strand/sim.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 30 };

/* ---- a simulated network, in virtual time
 * --------------------------------------------------------------------- */

static const strand_names_entry table[] = {
    {.name = "both.test", .addresses = "2001:db8::1 2001:db8::2", .family = 6, .delay_ns = STRAND_MS},
    {.name = "both.test", .addresses = "192.0.2.1 192.0.2.2", .family = 4},
    {.name = "late.test", .addresses = "2001:db8::1", .family = 6, .delay_ns = 30 * STRAND_MS},
    {.name = "late.test", .addresses = "192.0.2.1", .family = 4},
    {.name = "later.test", .addresses = "2001:db8::1", .family = 6, .delay_ns = 10 * STRAND_S},
    {.name = "later.test", .addresses = "192.0.2.1", .family = 4},
    {.name = "half.test", .error = -EHOSTUNREACH, .family = 6, .delay_ns = 20 * STRAND_MS},
    {.name = "half.test", .addresses = "192.0.2.1", .family = 4},
    {.name = "bad.test", .error = -EHOSTUNREACH},
    {.name = "mute.test", .addresses = "2001:db8::1", .delay_ns = 3600 * STRAND_S},
};
static const strand_names_attr bound = {
    .size = sizeof bound, .table = table, .table_count = sizeof table / sizeof *table};

static int listener;
static char port[16], why[STRAND_NAMES_WHY];

static void in_seeded_runs(strand_fn *fn)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        strand_run(STRAND_OPTIONS(.threads = 2, .has_seed = true, .seed = seed, .sim = STRAND_SIM(.silent = true)), fn,
                   NULL);
}

static void open_listener(void)
{
    listener = strand_must(strand_listen_tcp("", 0));
    snprintf(port, sizeof port, "%d", strand_tcp_port(listener));
}

static void route(const char *address, enum strand_sim_route what)
{
    CHECK_EQ(strand_sim_route(address, what, 0), 0);
}

/* Connect to a host. The winner is this address, and it takes that long, within
 * 30 ms. */
static void check_winner(const char *host, const char *address, int64_t ns)
{
    char peer[STRAND_PEER_ROOM], words[STRAND_PEER_ROOM];
    strand_time begin = strand_now();
    int fd = strand_names_dial(host, port, STRAND_NAMES_ATTR(.why = why, .why_room = sizeof why));
    CHECK_STR(why, "");
    CHECK(fd >= 0);
    CHECK(strand_peer_address(fd, peer, sizeof peer) > 0);
    snprintf(words, sizeof words, strchr(address, ':') ? "[%s]:%s" : "%s:%s", address, port);
    CHECK_STR(peer, words);
    int64_t took = strand_now().ns - begin.ns;
    CHECK(took >= ns && took < ns + 30 * STRAND_MS);
    CHECK_EQ(strand_close(fd), 0);
}

static void *dial_good(void *arg)
{
    STRAND_LOCAL(&STRAND_NAMES, (void *)(uintptr_t)&bound);
    open_listener();
    check_winner("both.test", "2001:db8::1", 0);
    check_winner("192.0.2.9", "192.0.2.9", 0);
    check_winner("[2001:db8::9]", "2001:db8::9", 0);
    check_winner("2001:db8::9", "2001:db8::9", 0);
    check_winner("late.test", "2001:db8::1", 30 * STRAND_MS);
    check_winner("later.test", "192.0.2.1", 50 * STRAND_MS);
    check_winner("half.test", "192.0.2.1", 20 * STRAND_MS);
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

TEST_REAL(addresses_of_ipv6_come_first_if_they_come_soon)
{
    in_seeded_runs(dial_good);
}

static void *dial_past_silence(void *arg)
{
    STRAND_LOCAL(&STRAND_NAMES, (void *)(uintptr_t)&bound);
    open_listener();
    int before = test_count_entries("/proc/self/fd");
    route("2001:db8::1", STRAND_SIM_SILENT);
    check_winner("both.test", "192.0.2.1", 250 * STRAND_MS); /* the other family is next */
    route("192.0.2.1", STRAND_SIM_SILENT);
    check_winner("both.test", "2001:db8::2", 500 * STRAND_MS);
    route("2001:db8::2", STRAND_SIM_SILENT);
    check_winner("both.test", "192.0.2.2", 750 * STRAND_MS);
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

static void *dial_past_failures(void *arg)
{
    STRAND_LOCAL(&STRAND_NAMES, (void *)(uintptr_t)&bound);
    open_listener();
    route("2001:db8::1", STRAND_SIM_UNREACHABLE);
    check_winner("both.test", "192.0.2.1", 0); /* after a failure the next attempt begins at once */
    route("192.0.2.1", STRAND_SIM_REFUSED);
    route("2001:db8::2", STRAND_SIM_UNREACHABLE);
    check_winner("both.test", "192.0.2.2", 0);
    CHECK_EQ(strand_sim_route("192.0.2.2", STRAND_SIM_OPEN, 400 * STRAND_MS), 0);
    CHECK_EQ(strand_sim_route("2001:db8::2", STRAND_SIM_OPEN, 700 * STRAND_MS), 0);
    check_winner("both.test", "192.0.2.2", 650 * STRAND_MS); /* begun 250 ms later, it is still faster */
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

TEST_REAL(an_address_that_does_not_answer_delays_the_next_by_a_quarter_of_a_second)
{
    in_seeded_runs(dial_past_silence);
}

TEST_REAL(an_address_that_fails_delays_nothing)
{
    in_seeded_runs(dial_past_failures);
}

/* Both connect at about the same time: the seeds decide which is first, and whether the other one is still under way.
 */
static void *dial_a_tie(void *arg)
{
    STRAND_LOCAL(&STRAND_NAMES, (void *)(uintptr_t)&bound);
    open_listener();
    int before = test_count_entries("/proc/self/fd");
    CHECK_EQ(strand_sim_route("2001:db8::1", STRAND_SIM_OPEN, 300 * STRAND_MS), 0);
    CHECK_EQ(strand_sim_route("192.0.2.1", STRAND_SIM_OPEN, 50 * STRAND_MS), 0);
    for (int i = 0; i < 10; i++) {
        int fd = strand_names_dial("both.test", port, NULL);
        CHECK(fd >= 0);
        CHECK_EQ(strand_close(fd), 0);
        CHECK_EQ(test_count_entries("/proc/self/fd"), before);
    }
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

TEST_REAL(of_two_addresses_that_connect_at_once_one_is_closed)
{
    in_seeded_runs(dial_a_tie);
}

static void check_failure(const char *host, int code, const char *words)
{
    CHECK_EQ(strand_names_dial(host, port, STRAND_NAMES_ATTR(.why = why, .why_room = sizeof why)), code);
    CHECK_STR(why, words);
}

static void *dial_in_vain(void *arg)
{
    STRAND_LOCAL(&STRAND_NAMES, (void *)(uintptr_t)&bound);
    open_listener();
    route("2001:db8::1", STRAND_SIM_UNREACHABLE);
    route("2001:db8::2", STRAND_SIM_SILENT);
    route("192.0.2.1", STRAND_SIM_REFUSED);
    route("192.0.2.2", STRAND_SIM_REFUSED);
    check_failure("both.test", -ETIMEDOUT,
                  "both.test: 2001:db8::1: Network is unreachable; 192.0.2.1: "
                  "Connection refused; 192.0.2.2: Connection "
                  "refused; 2001:db8::2: Connection timed out");
    check_failure("half.test", -ECONNREFUSED,
                  "half.test: 192.0.2.1: Connection refused; not all addresses "
                  "are known: half.test: No route to host");
    check_failure("nobody.test", -ENOENT, "nobody.test: there is no such name");
    check_failure("bad.test", -EHOSTUNREACH, "bad.test: No route to host");
    check_failure("192.0.2.1", -ECONNREFUSED, "192.0.2.1: 192.0.2.1: Connection refused");
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

TEST_REAL(a_failure_names_each_address_and_its_reason)
{
    in_seeded_runs(dial_in_vain);
}

static void *dial_mute(void *host)
{
    int fd = strand_names_dial(host, port, NULL);
    if (fd >= 0)
        CHECK_EQ(strand_close(fd), 0);
    return NULL;
}

/* Interrupted wherever it is: in a look-up, between attempts, or with some of
 * them under way. */
static void *cancel_anywhere(void *arg)
{
    static const char *const hosts[] = {"both.test", "late.test", "later.test", "mute.test", "192.0.2.1"};
    STRAND_LOCAL(&STRAND_NAMES, (void *)(uintptr_t)&bound);
    open_listener();
    int before = test_count_entries("/proc/self/fd");
    route("2001:db8::1", STRAND_SIM_SILENT);
    route("192.0.2.1", STRAND_SIM_SILENT);
    route("2001:db8::2", STRAND_SIM_SILENT);
    for (int i = 0; i < 50; i++) {
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, dial_mute, (void *)(uintptr_t)hosts[i % 5]);
        strand_sleep(i * 17 * STRAND_MS);
        strand_cancel(child, NULL);
        strand_wait(child);
    }
    /* A listener keeps the connections that were made and given up. */
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

TEST_REAL(a_dial_that_is_cancelled_leaves_no_descriptor)
{
    in_seeded_runs(cancel_anywhere);
}

/* ---- the system's network
 * -------------------------------------------------------------------------------------
 */

static void *accept_one(void *arg)
{
    int fd = strand_must(strand_accept(listener));
    char byte;
    CHECK_EQ(strand_read(fd, &byte, 1), 0);
    CHECK_EQ(strand_close(fd), 0);
    return arg;
}

/* delay_ns: 0, or so long that only the first address is tried. */
static void dial_local(const char *host, const char *servers, const char *address, int64_t delay_ns)
{
    char peer[STRAND_PEER_ROOM];
    STRAND_SCOPE(scope);
    strand_spawn(scope, accept_one, NULL);
    int fd = strand_names_dial(host, port,
                               STRAND_NAMES_ATTR(.servers = servers, .resolution_delay_ns = delay_ns,
                                                 .attempt_delay_ns = delay_ns, .why = why, .why_room = sizeof why));
    CHECK_STR(why, "");
    CHECK(strand_peer_address(fd, peer, sizeof peer) > 0);
    CHECK_EQ(strncmp(peer, address, strlen(address)), 0);
    CHECK_EQ(strand_close(fd), 0);
    strand_scope_join(scope);
}

static bool has_ipv6(void)
{
    int fd = strand_listen_tcp("::1", 0);
    if (fd >= 0)
        CHECK_EQ(strand_close(fd), 0);
    else
        fprintf(stderr, "skipped: this machine has no IPv6\n");
    return fd >= 0;
}

TEST_REAL_INSIDE(a_name_of_this_machine_is_reached_by_both_families)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    open_listener();
    int before = test_count_entries("/proc/self/fd");
    if (has_ipv6())
        dial_local("local.test", dns->servers, "[::1]", 3600 * STRAND_S);
    dial_local("slow6.test", dns->servers, "127.0.0.1", 0); /* its IPv6 addresses never come */
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
    CHECK_EQ(strand_close(listener), 0);
    /* nobody listens any more */
    CHECK_EQ(strand_names_dial("local.test", port,
                               STRAND_NAMES_ATTR(.servers = dns->servers, .why = why, .why_room = sizeof why)),
             -ECONNREFUSED);
    CHECK_CONTAINS(why, "127.0.0.1: Connection refused");
    dns_stop(scope, dns);
}

static const strand_names_entry black_hole[] = {{.name = "hole.test", .addresses = "10.9.9.9", .family = 4},
                                                {.name = "hole.test", .addresses = "fd00:9::9", .family = 6},
                                                {.name = "hole.test", .addresses = "127.0.0.1", .family = 4}};

static void *dial_past_a_hole(void *arg)
{
    const strand_names_attr attr = {.size = sizeof attr, .table = black_hole, .table_count = 3};
    STRAND_LOCAL(&STRAND_NAMES, (void *)(uintptr_t)&attr);
    open_listener();
    strand_time begin = strand_now();
    int before = test_count_entries("/proc/self/fd");
    dial_local("hole.test", NULL, "127.0.0.1", 0);
    CHECK(strand_now().ns - begin.ns >= 500 * STRAND_MS); /* two addresses vanish */
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

/* In a network of its own, whose packets to that address vanish. Returns the
 * status of a child process: no thread of this one moves there. */
static int in_a_network_of_its_own(void)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (!enter_namespaces(CLONE_NEWNET))
            _exit(77);
        if (system("ip link set lo up && ip link add hole type veth peer name end && ip link set end up && "
                   "ip link set hole up && ip addr add 10.9.9.1/24 dev hole && "
                   "ip neigh add 10.9.9.9 lladdr 02:00:00:00:00:09 nud permanent dev hole && "
                   "ip -6 addr add fd00:9::1/64 dev hole nodad && "
                   "ip -6 neigh add fd00:9::9 lladdr 02:00:00:00:00:09 nud permanent dev hole") != 0)
            _exit(77);
        strand_run(NULL, dial_past_a_hole, NULL);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

TEST_REAL(packets_that_vanish_delay_a_dial_and_do_not_stop_it)
{
    int status = in_a_network_of_its_own();
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        fprintf(stderr, "skipped: the system allows no network of its own\n");
    else
        CHECK_EQ(WEXITSTATUS(status), 0);
}
