/*
 * Sources of hosts that nsswitch.conf lists and c-ares does not know: the C library is asked for what c-ares has not
 * found. The tests are processes with files of their own, and functions of the C library that know a few more hosts.
 */
#define SUITE names_further
#include "dns.h"
#include "namespaces.h"

#include "strand/names.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/wait.h>

static _Atomic int calls, server_port;
static _Atomic bool refuses; /* the system opens no further file */
static char why[STRAND_NAMES_WHY];

/* ---- the C library, and the port of the name server ---------------------------------------------------------------
 */

#define REAL(function) (__extension__(__typeof__(&(function))) dlsym(RTLD_NEXT, #function))

int getaddrinfo(const char *restrict host, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict out)
{
    if (!host || (hints->ai_flags & AI_NUMERICHOST))
        return REAL(getaddrinfo)(host, service, hints, out);
    calls++;
    if (strcmp(host, "again.test") == 0)
        return EAI_AGAIN;
    return strstr(host, "ldap.test") ? REAL(getaddrinfo)("127.0.0.1", service, hints, out) : EAI_NONAME;
}

int getnameinfo(const struct sockaddr *restrict address, socklen_t length, char *restrict host, socklen_t host_room,
                char *restrict service, socklen_t service_room, int flags)
{
    if (!(flags & NI_NAMEREQD))
        return REAL(getnameinfo)(address, length, host, host_room, service, service_room, flags);
    calls++;
    snprintf(host, host_room, "ldap.test");
    return address->sa_family == AF_INET6 ? 0 : EAI_NONAME;
}

/* No process but root's may have port 53. */
int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    struct sockaddr_in server;
    memcpy(&server, address.__sockaddr__, length < sizeof server ? length : sizeof server);
    if (server.sin_family == AF_INET && server.sin_port == htons(53)) {
        server.sin_port = htons((uint16_t)server_port);
        address.__sockaddr_in__ = &server;
    }
    return REAL(connect)(fd, address, length);
}

FILE *fopen(const char *restrict path, const char *restrict mode)
{
    if (refuses && strcmp(path, "/etc/nsswitch.conf") == 0 && strcmp(mode, "re") == 0) {
        errno = EMFILE;
        return NULL;
    }
    return REAL(fopen)(path, mode);
}

/* ---- a process with files of its own ------------------------------------------------------------------------------
 */

static void list_sources(const char *text)
{
    CHECK_EQ(umount2("/etc/nsswitch.conf", MNT_DETACH), 0);
    CHECK(replace_file("/etc/nsswitch.conf", text));
}

static const struct own_file files[] = {
    {"/etc/resolv.conf", "nameserver 127.0.0.1\n"},
    {"/etc/nsswitch.conf", "hosts: files dns ldap\n"},
    {NULL, NULL},
};

static struct dns *start(strand_scope scope)
{
    struct dns *dns = dns_start(scope);
    server_port = dns->port;
    return dns;
}

/* Look a host up, and check the result and how often the C library was asked. */
static void check_lookup(const char *host, strand_names_attr *attr, int result, const char *words, int asked)
{
    strand_names_list *list = NULL;
    int before = calls;
    attr->family = 4;
    attr->why = why;
    attr->why_room = sizeof why;
    CHECK_EQ(strand_names_lookup(host, NULL, attr, &list), result);
    CHECK_STR(why, words);
    CHECK_EQ(calls - before, asked);
    if (!result)
        CHECK_STR(list->addresses[0].number, "127.0.0.1");
    free(list);
}

#define CHECK_LOOKUP(host, result, words, asked, ...)                                                                  \
    check_lookup(host, &(strand_names_attr){.size = sizeof(strand_names_attr), __VA_ARGS__}, result, words, asked)

/* ---- which lists have a further source ----------------------------------------------------------------------------
 */

static void *read_lists(void *arg)
{
    static const struct list {
        const char *text;
        bool further;
    } lists[] = {
        {"hosts: files dns\n", false},
        {"", false},
        {"hosts:\n", false},
        {"# hosts: ldap\nnetworks: ldap\nhostsx: ldap\n", false},
        {"hosts: files [NOTFOUND=continue UNAVAIL=return] dns # ldap\n", false},
        {"hosts: files\n", false}, /* no name server is asked */
        {"hosts: files [NOTFOUND", false},
        {"hosts: files dns ldap\n", true},
        {"passwd: files\nhosts:files dns[!UNAVAIL=return]myhostname", true},
        {" \thosts\t:  mdns4_minimal [NOTFOUND=return] files dns\n", true},
        {"hosts: file\n", true},
        {"hosts: files ldap\n", true},
    };
    STRAND_SCOPE(scope);
    struct dns *dns = start(scope);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        list_sources(lists[i].text);
        if (lists[i].further)
            CHECK_LOOKUP("ldap.test", 0, "", 1, );
        else
            CHECK_LOOKUP("ldap.test", -ENOENT, "ldap.test: there is no such name", 0, );
    }
    dns_stop(scope, dns);
    return arg;
}

TEST_REAL(a_further_source_is_any_but_the_files_and_the_name_servers)
{
    run_with_files(files, read_lists);
}

/* ---- which failures lead there ------------------------------------------------------------------------------------
 */

static void *look_up(void *arg)
{
    STRAND_SCOPE(scope);
    struct dns *dns = start(scope);
    CHECK_LOOKUP("local.test", 0, "", 0, );
    CHECK_LOOKUP("fail-ldap.test", 0, "", 1, ); /* the name servers need not work */
    CHECK_LOOKUP("nobody.test", -ENOENT, "nobody.test: there is no such name", 1, );
    CHECK_LOOKUP("empty.test", -ENOENT, "empty.test: the name has no such record", 1, );
    CHECK_LOOKUP("fail.test", -EHOSTUNREACH, "fail.test: the name server reports a failure", 1, );
    CHECK_LOOKUP("fail.test", -EHOSTUNREACH, "fail.test: the name server reports a failure", 0, .tries = 1);
    CHECK_LOOKUP("again.test", -EHOSTUNREACH, "again.test: there is no answer at present", 1, );
    CHECK_LOOKUP("a..ldap.test", -EINVAL, "a..ldap.test: the name is malformed", 0, );
    CHECK_LOOKUP("ldap.test.onion", -ENOENT, "ldap.test.onion: there is no such name", 0, );
    CHECK_LOOKUP("ldap.test.onion.", -ENOENT, "ldap.test.onion.: there is no such name", 0, );
    dns_stop(scope, dns);
    return arg;
}

TEST_REAL(the_c_library_is_asked_for_what_the_name_servers_do_not_know)
{
    run_with_files(files, look_up);
}

static void *forbid(void *arg)
{
    static const strand_names_attr bound = {.size = sizeof bound, .no_fallback = true};
    STRAND_SCOPE(scope);
    struct dns *dns = start(scope);
    CHECK_LOOKUP("ldap.test", -ENOENT, "ldap.test: there is no such name", 0, .no_fallback = true);
    CHECK_LOOKUP("ldap.test", -ENOENT, "ldap.test: there is no such name", 0, .servers = dns->servers);
    CHECK_LOOKUP("ldap.test", 0, "", 1, .nsswitch = true, .no_fallback = true);
    strand_names_attr older = {.size = offsetof(strand_names_attr, no_fallback), .no_fallback = true};
    check_lookup("ldap.test", &older, 0, "", 1);
    STRAND_LOCAL(&STRAND_NAMES, (void *)(uintptr_t)&bound);
    CHECK_LOOKUP("ldap.test", -ENOENT, "ldap.test: there is no such name", 0, );
    dns_stop(scope, dns);
    return arg;
}

TEST_REAL(an_attribute_forbids_to_ask_the_c_library)
{
    run_with_files(files, forbid);
}

static void *refuse(void *arg)
{
    STRAND_SCOPE(scope);
    struct dns *dns = start(scope);
    refuses = true;
    CHECK_LOOKUP("ldap.test", -EMFILE, "ldap.test: reading nsswitch.conf: Too many open files", 0, );
    CHECK_EQ(strand_names_dial("ldap.test", "1", STRAND_NAMES_ATTR(.why = why, .why_room = sizeof why)), -EMFILE);
    CHECK_STR(why, "ldap.test: reading nsswitch.conf: Too many open files");
    refuses = false;
    dns_stop(scope, dns);
    return arg;
}

TEST_REAL(a_list_of_sources_that_cannot_be_read_is_an_error)
{
    run_with_files(files, refuse);
}

/* ---- connecting, and names of addresses ---------------------------------------------------------------------------
 */

static void check_dial(const char *host, const char *port, int result, const char *words, int asked)
{
    int before = calls;
    int fd = strand_names_dial(host, port, STRAND_NAMES_ATTR(.why = why, .why_room = sizeof why));
    CHECK_EQ(fd < 0 ? fd : 0, result);
    CHECK_STR(why, words);
    CHECK_EQ(calls - before, asked);
    CHECK(fd < 0 || strand_close(fd) == 0);
}

static void *dial(void *arg)
{
    char port[16], *name;
    STRAND_SCOPE(scope);
    struct dns *dns = start(scope);
    int listener = strand_must(strand_listen_tcp("127.0.0.1", 0));
    snprintf(port, sizeof port, "%d", strand_tcp_port(listener));
    check_dial("local.test", port, 0, "", 0);
    check_dial("ldap.test", port, 0, "", 1);
    check_dial("fail-ldap.test", port, 0, "", 1);
    CHECK_EQ(strand_close(listener), 0);
    check_dial("ldap.test", port, -ECONNREFUSED, "ldap.test: 127.0.0.1: Connection refused", 1);
    check_dial("nobody.test", port, -ENOENT, "nobody.test: there is no such name", 1);
    check_dial("fail.test", port, -EHOSTUNREACH, "fail.test: the name server reports a failure", 1);
    check_dial("again.test", port, -EHOSTUNREACH, "again.test: there is no answer at present", 1);
    CHECK_EQ(strand_names_reverse("2001:db8::99", NULL, &name), 0);
    CHECK_STR(name, "ldap.test");
    free(name);
    CHECK_EQ(strand_names_reverse("192.0.2.99", STRAND_NAMES_ATTR(.why = why, .why_room = sizeof why), &name), -ENOENT);
    CHECK_STR(why, "192.0.2.99: there is no such name");
    dns_stop(scope, dns);
    return arg;
}

TEST_REAL(a_host_of_a_further_source_is_connected_to_and_named)
{
    run_with_files(files, dial);
}
