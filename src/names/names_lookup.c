/*
 * Looking up the addresses of a host: by c-ares, or by the C library on a thread of a crew.
 */
#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_PORT = 65535, MAX_ALIASES = 16 };

/* ---- lists ------------------------------------------------------------------------------------------------------ */

strand_names_list *names_list_make(size_t count, const char *canonical, int port)
{
    size_t size = sizeof(strand_names_list) + count * sizeof(strand_names_address), length = strlen(canonical) + 1;
    strand_names_list *list = calloc(1, size + length);
    if (!list)
        return NULL;
    memcpy((char *)list + size, canonical, length);
    list->canonical = (char *)list + size;
    list->port = port;
    list->addresses = (strand_names_address *)(list + 1);
    return list;
}

/* ---- services ------------------------------------------------------------------------------------------------- */

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == 0;
}

int names_port(const struct names_config *config, const char *service)
{
    if (!service)
        return 0;
    if (!*service || strlen(service) > MAX_SERVICE)
        return names_fail(config, -EINVAL, "the service is empty or has more than %d bytes", MAX_SERVICE);
    if (is_number(service)) {
        long port = strlen(service) < 9 ? strtol(service, NULL, 10) : MAX_PORT + 1L;
        return port <= MAX_PORT ? (int)port : names_fail(config, -EINVAL, "there is no port %s", service);
    }
    return names_system_port(config, service);
}

/* ---- c-ares --------------------------------------------------------------------------------------------------- */

struct finding {
    struct names_channel channel;
    const char *host;
    int port;
    strand_names_list *list;
};

static void end(struct finding *finding)
{
    names_channel_close(&finding->channel);
    free(finding->list);
}

/* The name that aliases lead to, which may be a circle. */
static const char *canonical_of(const struct ares_addrinfo *answer, const char *host)
{
    const char *name = host;
    for (int i = 0; i < MAX_ALIASES; i++) {
        const struct ares_addrinfo_cname *at = answer->cnames;
        while (at && !(at->alias && at->name && strcasecmp(at->alias, name) == 0))
            at = at->next;
        if (!at)
            break;
        name = at->name;
    }
    return name;
}

static void found(void *arg, int status, int timeouts, struct ares_addrinfo *answer)
{
    struct finding *finding = arg;
    (void)timeouts;
    finding->channel.status = status;
    finding->channel.done = true;
    if (status != ARES_SUCCESS)
        return;
    size_t count = 0;
    for (const struct ares_addrinfo_node *at = answer->nodes; at; at = at->ai_next)
        count++;
    finding->list =
        names_list_make(count, canonical_of(answer, answer->name ? answer->name : finding->host), finding->port);
    int added = 0;
    for (const struct ares_addrinfo_node *at = answer->nodes; finding->list && at && added >= 0; at = at->ai_next)
        added = names_list_add(finding->list, at->ai_addr, at->ai_ttl);
    ares_freeaddrinfo(answer);
    if (!finding->list || added < 0)
        finding->channel.status = ARES_ENOMEM;
    else if (!finding->list->count)
        finding->channel.status = ARES_ENODATA;
}

static void begin(struct finding *finding, const char *name, int family)
{
    STRAND_NO_SUSPEND;
    struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_CANONNAME,
                                        .ai_family = family == 4   ? AF_INET
                                                     : family == 6 ? AF_INET6
                                                                   : AF_UNSPEC,
                                        .ai_socktype = SOCK_STREAM};
    ares_getaddrinfo(finding->channel.ares, name, NULL, &hints, found, finding);
}

static int find_by_ares(const struct names_config *config, const char *host, const char *name, const char *lookups,
                        int port, int family, strand_names_list **out)
{
    __attribute__((cleanup(end))) struct finding finding = {.host = host, .port = port};
    int status = names_channel_open(&finding.channel, config, lookups);
    if (status == ARES_SUCCESS) {
        begin(&finding, name, family);
        names_channel_wait(&finding.channel);
        status = finding.channel.status;
    }
    if (status != ARES_SUCCESS)
        return names_fail_by(config, status, finding.channel.refused, host);
    *out = finding.list;
    finding.list = NULL;
    return 0;
}

int names_find_exactly(const struct names_config *config, const char *host, const char *name, int port, int family,
                       strand_names_list **out)
{
    return find_by_ares(config, host, name, "b", port, family, out);
}

/* c-ares calls back at once, and does not say why it has found nothing. */
int names_find_file(const struct names_config *config, const char *host, int port, int family, strand_names_list **out)
{
    __attribute__((cleanup(end))) struct finding finding = {.host = host, .port = port};
    int status = names_channel_open(&finding.channel, config, "f");
    if (status != ARES_SUCCESS)
        return names_fail_by(config, status, 0, host);
    begin(&finding, host, family);
    if (finding.channel.status == ARES_ENOMEM)
        return names_fail_by(config, ARES_ENOMEM, 0, host);
    *out = finding.list;
    finding.list = NULL;
    return *out != NULL;
}

/* ---- all of them ---------------------------------------------------------------------------------------------- */

/* Take the number out of "[2001:db8::7]". Returns false if it can be none of IPv6. */
static bool take_bracketed(const char *host, char *number, size_t room)
{
    size_t length = strcspn(host + 1, "]");
    if (length >= room || strcmp(host + 1 + length, "]") != 0)
        return false;
    memcpy(number, host + 1, length);
    number[length] = 0;
    return strchr(number, ':') != NULL;
}

int names_find_number(const struct names_config *config, const char *host, int port, int family,
                      strand_names_list **out)
{
    char number[STRAND_NAMES_NUMBER];
    bool bracketed = *host == '[', taken = bracketed && take_bracketed(host, number, sizeof number);
    const char *text = taken ? number : host;
    strand_names_list *list = names_list_make(1, text, port);
    if (!list)
        return names_fail(config, -ENOMEM, "there is no memory");
    int added = names_list_add_number(list, text, family);
    if (added > 0) {
        *out = list;
        return 1;
    }
    int other = added ? added : names_list_add_number(list, text, 0);
    free(list);
    if (other < 0)
        return names_fail(config, other, "%s: %s", host, names_words(other));
    if (other)
        return names_fail(config, -ENOENT, "%s: the address is not of IPv%d", host, family);
    return bracketed ? names_fail(config, -EINVAL, "%s: there is no IPv6 address in the brackets", host) : 0;
}

int names_find(const struct names_config *config, const char *host, int port, int family, strand_names_list **out)
{
    int result = names_find_number(config, host, port, family, out);
    if (result)
        return result < 0 ? result : 0;
    if (config->attr.table)
        return names_table_find(config, host, port, family, out);
    if (config->attr.nsswitch)
        return names_system_find(config, host, port, family, out);
    result = find_by_ares(config, host, host, NULL, port, family, out);
    return result ? names_find_further(config, host, port, family, result, out) : 0;
}

int strand_names_lookup(const char *host, const char *service, const strand_names_attr *attr, strand_names_list **out)
{
    struct names_config config;
    int error = names_begin(&config, attr, host, "host");
    int port = error ? error : names_port(&config, service);
    return port < 0 ? port : names_find(&config, host, port, config.attr.family, out);
}
