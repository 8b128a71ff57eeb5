/*
 * Connecting by name goes to one host: the addresses of the two families come from the same place, which is the hosts
 * file, or one domain of those that are searched.
 */
#define SUITE names_search
#include "dns.h"
#include "namespaces.h"

#include "strand/names.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

static int listener;
static char port[16], why[STRAND_NAMES_WHY];

static void open_listener(void)
{
    listener = strand_must(strand_listen_tcp("", 0));
    snprintf(port, sizeof port, "%d", strand_tcp_port(listener));
}

static int dial(const char *host, const struct dns *dns)
{
    return strand_names_dial(host, port,
                             STRAND_NAMES_ATTR(.servers = dns->servers, .resolution_delay_ns = 3600 * STRAND_S,
                                               .attempt_delay_ns = 3600 * STRAND_S, .why = why,
                                               .why_room = sizeof why));
}

static void check_dial(const char *host, const struct dns *dns, const char *address)
{
    char peer[STRAND_PEER_ROOM];
    int fd = dial(host, dns);
    CHECK_STR(why, "");
    CHECK(strand_peer_address(fd, peer, sizeof peer) > 0);
    CHECK_EQ(strncmp(peer, address, strlen(address)), 0);
    CHECK_EQ(strand_close(fd), 0);
}

/* ---- domains ----------------------------------------------------------------------------------------------------- */

TEST_REAL_INSIDE(a_further_domain_is_asked_only_if_the_one_before_has_no_address_of_either_family)
{
    CHECK_EQ(setenv("LOCALDOMAIN", "corp.test away.test", 1), 0);
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    open_listener();
    check_dial("www.here.test", dns, "127.0.0.1"); /* one of IPv6 is there with the domain */
    CHECK_EQ(dns->asked, 2);
    check_dial("near", dns, "127.0.0.1"); /* a short name is asked for in the domains first */
    CHECK_EQ(dns->asked, 4);
    check_dial("far.off", dns, "127.0.0.1");
    CHECK_EQ(dns->asked, 10);
    CHECK_EQ(strand_close(listener), 0);
    dns_stop(scope, dns);
}

struct failure {
    const char *host;
    int code;
    const char *why;
    int questions;
};

TEST_REAL_INSIDE(a_name_that_no_domain_has_is_searched_in_each)
{
    static const struct failure failures[] = {
        {"nobody.test", -ENOENT, "nobody.test: there is no such name", 6},
        {"nobody", -ENOENT, "nobody: there is no such name", 6},
        {"nobody.test.", -ENOENT, "nobody.test.: there is no such name", 2},
        {"nobody.onion", -ENOENT, "nobody.onion: there is no such name", 0},
        {"fail.test", -EHOSTUNREACH, "fail.test: the name server reports a failure", 2},
        {"a..b", -EINVAL, "a..b: the name is malformed", 0},
    };
    CHECK_EQ(setenv("LOCALDOMAIN", "corp.test away.test", 1), 0);
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    snprintf(port, sizeof port, "1");
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        int before = dns->asked;
        int code = strand_names_dial(failures[i].host, port,
                                     STRAND_NAMES_ATTR(.servers = dns->servers, .tries = 1, .timeout_ns = 60 * STRAND_S,
                                                       .why = why, .why_room = sizeof why));
        CHECK_STR(why, failures[i].why);
        CHECK_EQ(code, failures[i].code);
        CHECK_EQ(dns->asked - before, failures[i].questions);
    }
    dns_stop(scope, dns);
}

TEST_REAL_INSIDE(a_short_name_may_be_an_alias_of_the_environment)
{
    char name[] = "/tmp/strand-names-XXXXXX";
    int fd = mkstemp(name);
    CHECK(fd >= 0);
    CHECK(dprintf(fd, "nick local.test.\n") > 0);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(setenv("HOSTALIASES", name, 1), 0);
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    open_listener();
    fd = dial("nick", dns);
    CHECK_STR(why, "");
    CHECK_EQ(dns->asked, 2);
    CHECK_EQ(strand_close(fd), 0);
    CHECK_EQ(strand_close(listener), 0);
    CHECK_EQ(unlink(name), 0);
    dns_stop(scope, dns);
}

/* ---- the hosts file ---------------------------------------------------------------------------------------------- */

/* The name servers have addresses of the other family. */
static void *dial_a_host_of_the_file(void *arg)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    open_listener();
    check_dial("one.test", dns, "127.0.0.1");
    CHECK_EQ(dns->asked, 0);
    check_dial("local.test", dns, "127.0.0.1"); /* not the address of its own */
    CHECK_EQ(dns->asked, 0);
    int fd = dial("slow6.test", dns); /* a machine without IPv6 does not reach it */
    CHECK(fd < 0 || strand_close(fd) == 0);
    CHECK_EQ(dns->asked, 0);
    CHECK_EQ(strand_close(listener), 0);
    dns_stop(scope, dns);
    return arg;
}

TEST_REAL(a_host_of_the_hosts_file_has_only_the_addresses_that_are_there)
{
    static const struct own_file files[] = {
        {"/etc/hosts", "127.0.0.1 one.test local.test\n::1 slow6.test\n"},
        {"/etc/nsswitch.conf", "hosts: files dns\n"},
        {NULL, NULL},
    };
    run_with_files(files, dial_a_host_of_the_file);
}
