/*
 * The example that asks for all that is known of a host: examples/host.
 */
#define SUITE names_example
#include "dns.h"

#include "strand/process.h"

static void check_host(const char *const *arguments, int code, const char *output)
{
    const char *argv[8] = {TEST_EXAMPLES "/host"};
    for (int i = 0; arguments[i]; i++)
        argv[i + 1] = arguments[i];
    strand_captured got = {.size = sizeof got};
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = argv, .err = {.kind = STRAND_STDIO_OUTPUT}), NULL, &got);
    CHECK_STR(got.output, output);
    CHECK_EQ(got.end.code, code);
    free(got.output);
    free(got.errors);
}

TEST_REAL_INSIDE(the_example_prints_what_is_known_of_a_host)
{
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    const char *const alias[] = {"--server", dns->servers, "alias.test", NULL};
    check_host(alias, 0, "name    four.test\naddress 192.0.2.4 (four.test)\n");
    const char *const texts[] = {"--server", dns->servers, "texts.test", NULL};
    check_host(texts, 1, "texts.test: the name has no such record\ntext    v=spf1 -all\ntext    a second record\n");
    const char *const services[] = {"--server", dns->servers, "_ldap._tcp.test", NULL};
    check_host(services, 0, "service first.test:389\nservice late.test:390\n");
    dns_stop(scope, dns);
}

TEST_REAL_INSIDE(the_example_says_which_address_has_answered)
{
    char port[16], words[200];
    STRAND_SCOPE(scope);
    struct dns *dns = dns_start(scope);
    int listener = strand_must(strand_listen_tcp("127.0.0.1", 0));
    snprintf(port, sizeof port, "%d", strand_tcp_port(listener));
    snprintf(words, sizeof words, "address 127.0.0.1 (localhost)\nanswers 127.0.0.1:%s\n", port);
    const char *const local[] = {"--server", dns->servers, "127.0.0.1", port, NULL};
    check_host(local, 0, words);
    CHECK_EQ(strand_close(listener), 0);
    snprintf(words, sizeof words, "address 127.0.0.1 (localhost)\n127.0.0.1: 127.0.0.1: Connection refused\n");
    check_host(local, 1, words);
    const char *const none[] = {NULL};
    check_host(none, 2, "usage: host [--server ADDRESS:PORT] [--system] NAME [SERVICE]\n");
    dns_stop(scope, dns);
}
