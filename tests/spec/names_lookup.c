/*
 * Looking names up: addresses, names of addresses, services, texts.
 */
#define SUITE names_lookup
#include "dns.h"

#include "strand/names.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

/* The addresses of a name, as "192.0.2.1 2001:db8::1"; or an error. */
static int lookup(const char *host, const strand_names_attr *attr, char *words, size_t room)
{
    strand_names_list *list;
    int error = strand_names_lookup(host, "80", attr, &list);
    size_t used = 0;
    words[0] = 0;
    if (error)
        return error;
    for (size_t i = 0; i < list->count; i++)
        used += (size_t)snprintf(words + used, room - used, "%s%s", i ? " " : "", list->addresses[i].number);
    free(list);
    return 0;
}

#define CHECK_LOOKUP(host, attr, expected)                                                                             \
    do {                                                                                                               \
        char words_[256];                                                                                              \
        CHECK_EQ(lookup((host), (attr), words_, sizeof words_), 0);                                                    \
        CHECK_STR(words_, expected);                                                                                   \
    } while (0)

/* ---- what name servers know -------------------------------------------------------------------------------------- */

TEST_REAL_INSIDE(a_name_has_the_addresses_that_its_server_knows)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    const strand_names_attr *attr = STRAND_NAMES_ATTR(.servers = dns->servers);
    CHECK_LOOKUP("four.test", attr, "192.0.2.4");
    CHECK_LOOKUP("FOUR.test.", attr, "192.0.2.4");
    CHECK_LOOKUP("both.test", STRAND_NAMES_ATTR(.servers = dns->servers, .family = 6), "2001:db8::1");
    strand_names_list *list;
    CHECK_EQ(strand_names_lookup("both.test", "https", attr, &list), 0);
    CHECK_EQ(list->count, 3);
    CHECK_EQ(list->port, 443);
    for (size_t i = 0; i < list->count; i++) {
        CHECK(list->addresses[i].ttl_s > 0 && list->addresses[i].ttl_s <= 300);
        struct sockaddr_in address; /* its port lies where that of IPv6 does */
        memcpy(&address, list->addresses[i].socket_address, sizeof address);
        CHECK_EQ(address.sin_family, list->addresses[i].family == 4 ? AF_INET : AF_INET6);
        CHECK_EQ(ntohs(address.sin_port), 443);
    }
    free(list);
    dns_stop(scope, dns);
}

TEST_REAL_INSIDE(an_alias_has_the_addresses_and_the_name_of_its_host)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    strand_names_list *list;
    CHECK_EQ(strand_names_lookup("alias.test", NULL, STRAND_NAMES_ATTR(.servers = dns->servers), &list), 0);
    CHECK_STR(list->canonical, "four.test");
    CHECK_STR(list->addresses[0].number, "192.0.2.4");
    CHECK_EQ(list->port, 0);
    free(list);
    dns_stop(scope, dns);
}

TEST_REAL_INSIDE(a_number_and_a_name_of_the_hosts_file_cause_no_question)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    const strand_names_attr *attr = STRAND_NAMES_ATTR(.servers = dns->servers),
                            *four = STRAND_NAMES_ATTR(.servers = dns->servers, .family = 4);
    CHECK_LOOKUP("192.0.2.77", attr, "192.0.2.77");
    CHECK_LOOKUP("2001:db8::77", attr, "2001:db8::77");
    CHECK_LOOKUP("[2001:db8::77]", attr, "2001:db8::77");
    CHECK_LOOKUP("localhost", four, "127.0.0.1");
    strand_names_list *list;
    CHECK_EQ(strand_names_lookup("::1", NULL, four, &list), -ENOENT);
    CHECK_EQ(strand_names_lookup("[::1]", NULL, four, &list), -ENOENT);
    CHECK_EQ(dns->asked, 0);
    dns_stop(scope, dns);
}

struct failure {
    const char *host;
    int64_t timeout_ns; /* a server that answers may take long on a busy machine */
    int code;
    const char *why;
};

TEST_REAL_INSIDE(a_failure_says_what_the_server_has_done)
{
    static const struct failure failures[] = {
        {"nobody.test", STRAND_S * 60, -ENOENT, "nobody.test: there is no such name"},
        {"empty.test", STRAND_S * 60, -ENOENT, "empty.test: the name has no such record"},
        {"refuse.test", STRAND_S * 60, -EHOSTUNREACH, "refuse.test: the name server refuses to answer"},
        {"fail.test", STRAND_S * 60, -EHOSTUNREACH, "fail.test: the name server reports a failure"},
        {"mute.test", STRAND_MS * 20, -EHOSTUNREACH, "mute.test: no name server answers"},
        {"garbage.test", STRAND_S * 60, -EPROTO, "garbage.test: the answer is malformed"},
        {"strange.test", STRAND_S * 60, -EHOSTUNREACH, "strange.test: no name server can be reached"},
    };
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        char why[STRAND_NAMES_WHY] = "";
        strand_names_list *list;
        int error = strand_names_lookup(failures[i].host, NULL,
                                        STRAND_NAMES_ATTR(.servers = dns->servers, .family = 4, .tries = 1,
                                                          .timeout_ns = failures[i].timeout_ns, .why = why,
                                                          .why_room = sizeof why),
                                        &list);
        CHECK_STR(why, failures[i].why);
        CHECK_EQ(error, failures[i].code);
    }
    dns_stop(scope, dns);
}

/* Nothing is bound to the port. */
TEST_REAL_INSIDE(a_server_that_is_not_there_is_an_error)
{
    char why[STRAND_NAMES_WHY], servers[64];
    int unused = strand_must(strand_listen_tcp("127.0.0.1", 0));
    snprintf(servers, sizeof servers, "127.0.0.1:%d", strand_tcp_port(unused));
    strand_names_list *list;
    CHECK_EQ(strand_names_lookup("four.test", NULL,
                                 STRAND_NAMES_ATTR(.servers = servers, .tries = 1, .timeout_ns = 60 * STRAND_S,
                                                   .why = why, .why_room = sizeof why),
                                 &list),
             -EHOSTUNREACH);
    CHECK_STR(why, "four.test: no name server can be reached");
    CHECK_EQ(strand_close(unused), 0);
}

TEST_REAL_INSIDE(a_second_server_answers_for_one_that_does_not)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    char servers[160];
    int mute = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    CHECK_EQ(bind(mute, (struct sockaddr *)&address, length), 0);
    CHECK_EQ(getsockname(mute, (struct sockaddr *)&address, &length), 0);
    snprintf(servers, sizeof servers, "127.0.0.1:%d,%s", ntohs(address.sin_port), dns->servers);
    CHECK_LOOKUP("four.test",
                 STRAND_NAMES_ATTR(.servers = servers, .tries = 12, .timeout_ns = 20 * STRAND_MS, .family = 4),
                 "192.0.2.4");
    CHECK_EQ(close(mute), 0);
    dns_stop(scope, dns);
}

TEST_REAL_INSIDE(the_name_of_an_address_is_that_of_its_record)
{
    static const char *const addresses[][2] = {{"192.0.2.4", "four.test"},
                                               {"192.0.2.4:40312", "four.test"},
                                               {"2001:db8::1", "both.test"},
                                               {"[2001:db8::1]:443", "both.test"}};
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    const strand_names_attr *attr = STRAND_NAMES_ATTR(.servers = dns->servers);
    char *name;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        CHECK_EQ(strand_names_reverse(addresses[i][0], attr, &name), 0);
        CHECK_STR(name, addresses[i][1]);
        free(name);
    }
    CHECK_EQ(strand_names_reverse("192.0.2.99", attr, &name), -ENOENT);
    CHECK_EQ(strand_names_reverse("four.test", attr, &name), -EINVAL);
    dns_stop(scope, dns);
}

/* c-ares says of each failure that there is no such name. */
TEST_REAL_INSIDE(an_address_whose_servers_fail_has_another_error_than_one_without_a_name)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    char *name, why[STRAND_NAMES_WHY];
    const strand_names_attr *attr = STRAND_NAMES_ATTR(.servers = dns->servers, .timeout_ns = STRAND_MS * 20, .tries = 1,
                                                      .why = why, .why_room = sizeof why);
    CHECK_EQ(strand_names_reverse("192.0.2.80", attr, &name), -EHOSTUNREACH);
    CHECK_STR(why, "192.0.2.80: no name server answers");
    attr = STRAND_NAMES_ATTR(.servers = dns->servers, .why = why, .why_room = sizeof why);
    CHECK_EQ(strand_names_reverse("192.0.2.81", attr, &name), -EHOSTUNREACH);
    CHECK_STR(why, "192.0.2.81: the name server reports a failure");
    CHECK_EQ(strand_names_reverse("192.0.2.99", attr, &name), -ENOENT);
    dns_stop(scope, dns);
}

TEST_REAL_INSIDE(services_come_in_the_order_in_which_they_are_tried)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    char why[STRAND_NAMES_WHY];
    const strand_names_attr *attr = STRAND_NAMES_ATTR(.servers = dns->servers, .why = why, .why_room = sizeof why);
    strand_names_services *list;
    CHECK_EQ(strand_names_srv("_ldap._tcp.test", attr, &list), 0);
    CHECK_EQ(list->count, 2);
    CHECK_STR(list->services[0].host, "first.test");
    CHECK_EQ(list->services[0].port, 389);
    CHECK_EQ(list->services[0].priority, 10);
    CHECK_EQ(list->services[0].weight, 5);
    CHECK_STR(list->services[1].host, "late.test");
    free(list);
    CHECK_EQ(strand_names_srv("_none._tcp.test", attr, &list), -ENOENT);
    CHECK_EQ(strand_names_srv("_nobody._tcp.test", attr, &list), -ENOENT);
    CHECK_STR(why, "_nobody._tcp.test: there is no such name");
    int often = 0;
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(strand_names_srv("_spread._tcp.test", attr, &list), 0);
        often += strcmp(list->services[0].host, "often.test") == 0;
        free(list);
    }
    CHECK(often >= 120 && often < 200);
    dns_stop(scope, dns);
}

/* The second name's answer is larger than a datagram: it comes by TCP. */
TEST_REAL_INSIDE(texts_are_whole_however_long_they_are)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    const strand_names_attr *attr = STRAND_NAMES_ATTR(.servers = dns->servers);
    strand_names_texts *list;
    CHECK_EQ(strand_names_txt("texts.test", attr, &list), 0);
    CHECK_EQ(list->count, 2);
    CHECK_STR(list->texts[0].text, "v=spf1 -all");
    CHECK_EQ(list->texts[0].size, strlen("v=spf1 -all"));
    CHECK_STR(list->texts[1].text, "a second record");
    free(list);
    CHECK_EQ(dns->by_tcp, 0);
    CHECK_EQ(strand_names_txt("large.test", attr, &list), 0);
    CHECK_EQ(list->count, 1);
    CHECK_EQ(list->texts[0].size, DNS_LARGE * 84);
    CHECK_EQ(strlen(list->texts[0].text), list->texts[0].size);
    free(list);
    CHECK_EQ(dns->by_tcp, 1);
    CHECK_EQ(strand_names_txt("four.test", attr, &list), -ENOENT);
    dns_stop(scope, dns);
}

/* ---- interruption, and what runs out ---------------------------------------------------------------------------- */

static void *look_mute_up(void *servers)
{
    strand_names_list *list;
    STRAND_IGNORE(strand_names_lookup("mute.test", NULL,
                                      STRAND_NAMES_ATTR(.servers = servers, .timeout_ns = 60 * STRAND_S), &list));
    CHECK(!"it has returned");
    return NULL;
}

TEST_REAL_INSIDE(an_interrupted_look_up_leaves_no_descriptor)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    char *servers = strdup(dns->servers);
    int before = test_count_entries("/proc/self/fd"), asked;
    for (int i = 0; i < 10; i++) {
        STRAND_SCOPE(inner);
        asked = dns->asked;
        strand child = strand_spawn(inner, look_mute_up, servers);
        for (int rounds = 0; rounds < i; rounds++)
            strand_yield();
        while (i >= 5 && dns->asked == asked) /* it waits for an answer */
            strand_sleep(STRAND_MS / 10);
        strand_cancel(child, NULL);
        strand_wait(child);
    }
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
    free(servers);
    dns_stop(scope, dns);
}

static void *look_four_up(void *servers)
{
    CHECK_LOOKUP("four.test", STRAND_NAMES_ATTR(.servers = servers), "192.0.2.4");
    return NULL;
}

TEST_REAL_RACE(many_strands_look_up_at_once)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    char *servers = strdup(dns->servers);
    int before = test_count_entries("/proc/self/fd");
    {
        STRAND_SCOPE(inner);
        for (int i = 0; i < 50; i++)
            strand_spawn(inner, look_four_up, servers);
        strand_scope_join(inner);
    }
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
    free(servers);
    dns_stop(scope, dns);
}

TEST_REAL_INSIDE(a_look_up_without_a_free_descriptor_says_so)
{
    char why[STRAND_NAMES_WHY];
    struct rlimit limit, few;
    strand_names_list *list;
    int spare = open("/dev/null", O_RDONLY | O_CLOEXEC); /* for files that are read */
    CHECK_EQ(close(spare), 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)spare, .rlim_max = limit.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    int error = strand_names_lookup(
        "four.test", NULL, STRAND_NAMES_ATTR(.servers = "127.0.0.1:1", .why = why, .why_room = sizeof why), &list);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(error, -EMFILE);
    CHECK_STR(why, "four.test: making a socket: Too many open files");
}

TEST_REAL_INSIDE(a_malformed_question_is_refused)
{
    char long_name[300], why[STRAND_NAMES_WHY];
    strand_names_list *list;
    memset(long_name, 'a', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    CHECK_EQ(strand_names_lookup(NULL, NULL, NULL, &list), -EINVAL);
    CHECK_EQ(strand_names_lookup("", NULL, NULL, &list), -EINVAL);
    CHECK_EQ(strand_names_lookup(long_name, NULL, NULL, &list), -EINVAL);
    static const char *const bracketed[] = {"[", "[]", "[::1", "[::1]:80", "[192.0.2.1]", "[local.test]", "[a:b]"};
    for (size_t i = 0; i < sizeof bracketed / sizeof *bracketed; i++) {
        CHECK_EQ(strand_names_lookup(bracketed[i], NULL, STRAND_NAMES_ATTR(.why = why, .why_room = sizeof why), &list),
                 -EINVAL);
        CHECK_CONTAINS(why, "there is no IPv6 address in the brackets");
    }
    CHECK_EQ(strand_names_lookup("::1", "65536", NULL, &list), -EINVAL);
    CHECK_EQ(strand_names_lookup("::1", "", NULL, &list), -EINVAL);
    CHECK_EQ(strand_names_lookup("::1", "no-such-service", NULL, &list), -EINVAL);
    CHECK_EQ(strand_names_lookup("::1", NULL, STRAND_NAMES_ATTR(.family = 5), &list), -EINVAL);
    CHECK_EQ(strand_names_lookup("::1", NULL, STRAND_NAMES_ATTR(.tries = -1), &list), -EINVAL);
    CHECK_EQ(strand_names_lookup("a.test", NULL, STRAND_NAMES_ATTR(.servers = "no address"), &list), -EINVAL);
    CHECK_EQ(
        strand_names_lookup("::1", NULL, STRAND_NAMES_ATTR(.timeout_ns = 1, .why = why, .why_room = sizeof why), &list),
        -EINVAL);
    CHECK_CONTAINS(why, "timeout_ns is 1");
}

/* ---- the C library -------------------------------------------------------------------------------------------------
 */

TEST_REAL_INSIDE(the_c_library_may_be_asked_instead)
{
    const strand_names_attr *attr = STRAND_NAMES_ATTR(.nsswitch = true, .family = 4);
    char *name, why[STRAND_NAMES_WHY] = "unchanged";
    CHECK_LOOKUP("localhost", attr, "127.0.0.1");
    CHECK_EQ(strand_names_reverse("127.0.0.1", attr, &name), 0);
    CHECK_STR(name, "localhost");
    free(name);
    strand_names_list *list;
    int error = strand_names_lookup("a..b", NULL,
                                    STRAND_NAMES_ATTR(.nsswitch = true, .why = why, .why_room = sizeof why), &list);
    CHECK(error == -ENOENT || error == -EHOSTUNREACH);
    CHECK_CONTAINS(why, "a..b: ");
}

/* ---- a table of the test -------------------------------------------------------------------------------------------
 */

static const strand_names_service services[] = {{"b.test", 2, 2, 0}, {"a.test", 1, 1, 0}};
static const strand_names_text texts[] = {{"a\0b", 3}, {"", 0}};
static const strand_names_entry table[] = {
    {.name = "host.test", .addresses = "2001:db8::5 192.0.2.5 192.0.2.6"},
    {.name = "slow.test", .addresses = "192.0.2.7", .delay_ns = 3600 * STRAND_S},
    {.name = "bad.test", .error = -EHOSTUNREACH},
    {.name = "_x._tcp.test", .services = services, .service_count = 2},
    {.name = "text.test", .texts = texts, .text_count = 2},
};

static void *use_table(void *arg)
{
    CHECK_LOOKUP("host.test", NULL, "2001:db8::5 192.0.2.5 192.0.2.6");
    CHECK_LOOKUP("HOST.test", STRAND_NAMES_ATTR(.family = 4), "192.0.2.5 192.0.2.6");
    char *name, words[64];
    CHECK_EQ(strand_names_reverse("192.0.2.5", NULL, &name), 0);
    CHECK_STR(name, "host.test");
    free(name);
    CHECK_EQ(strand_names_reverse("192.0.2.55", NULL, &name), -ENOENT);
    CHECK_EQ(lookup("nobody.test", NULL, words, sizeof words), -ENOENT);
    CHECK_EQ(lookup("bad.test", NULL, words, sizeof words), -EHOSTUNREACH);
    strand_names_services *offers;
    CHECK_EQ(strand_names_srv("_x._tcp.test", NULL, &offers), 0);
    CHECK_STR(offers->services[0].host, "a.test");
    free(offers);
    strand_names_texts *lines;
    CHECK_EQ(strand_names_txt("text.test", NULL, &lines), 0);
    CHECK_EQ(lines->count, 2);
    CHECK_EQ(lines->texts[0].size, 3);
    CHECK_EQ(memcmp(lines->texts[0].text, "a\0b", 4), 0);
    CHECK_EQ(lines->texts[1].size, 0);
    free(lines);
    return arg;
}

TEST_INSIDE(a_table_of_the_test_answers_for_all_strands_of_its_block)
{
    static strand_names_attr attr = {.size = sizeof attr, .table = table, .table_count = sizeof table / sizeof *table};
    STRAND_LOCAL(&STRAND_NAMES, &attr);
    STRAND_SCOPE(scope);
    strand_spawn(scope, use_table, NULL);
    strand_scope_join(scope);
}

static void *look_slow_up(void *arg)
{
    strand_names_list *list;
    STRAND_DEADLINE(strand_in(STRAND_MS));
    CHECK_EQ(strand_names_lookup("slow.test", NULL,
                                 STRAND_NAMES_ATTR(.table = table, .table_count = sizeof table / sizeof *table), &list),
             0);
    return arg;
}

TEST_INSIDE(a_deadline_ends_a_look_up)
{
    strand_exception *e = strand_try(look_slow_up, NULL, NULL);
    CHECK(e && strand_exception_is(e, &STRAND_TIMED_OUT));
    strand_exception_release(e);
}
