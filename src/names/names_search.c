/*
 * Where a host is looked for, and in which order: the hosts file, and the domains that resolv.conf lists. c-ares knows
 * it, but searches for each family by itself. It would find one family in the hosts file or under the name itself, and
 * the other one, of another host, with the name servers or in a further domain. So a caller that asks for each family
 * apart goes from one place to the next one for both of them.
 */
#include "names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_FILE = 'f', NAME_SERVERS = 'b' }; /* letters of c-ares */

/* What c-ares has read of the system's files. */
struct reading {
    struct names_channel channel;
    struct ares_options options;
};

static void end(struct reading *reading)
{
    STRAND_NO_SUSPEND;
    ares_destroy_options(&reading->options);
    names_channel_close(&reading->channel);
}

static int read_options(struct reading *reading, const struct names_config *config)
{
    STRAND_NO_SUSPEND;
    int mask, status = names_channel_open(&reading->channel, config, NULL);
    return status == ARES_SUCCESS ? ares_save_options(reading->channel.ares, &reading->options, &mask) : status;
}

/* No domain is added to such a name. */
static bool is_whole(const char *host)
{
    return host[strlen(host) - 1] == '.' || names_is_of_tor(host);
}

static int count_dots(const char *host)
{
    int count = 0;
    for (; *host; host++)
        count += *host == '.';
    return count;
}

/* Make an empty search with room for the host in each domain. */
static struct names_search *make(const char *host, const struct ares_options *options)
{
    size_t lookups = strlen(options->lookups), domains = (size_t)options->ndomains, length = strlen(host) + 3;
    size_t count = lookups * (domains + 1), size = sizeof(struct names_search) + count * sizeof(char *);
    for (size_t i = 0; i < domains; i++)
        size += lookups * (length + strlen(options->domains[i]));
    struct names_search *search = malloc(size + lookups * length);
    if (search)
        *search = (struct names_search){.names = (const char **)(search + 1)};
    return search;
}

/* Add the host in a domain, which may be "" or ".": as it is. A name that is too long does not exist. */
static char *add(struct names_search *search, char *text, const char *host, const char *domain)
{
    const char *dot = *domain && *domain != '.' ? "." : "", *last = *domain ? domain : host;
    size_t size = strlen(host) + strlen(dot) + strlen(domain);
    if (size > MAX_NAME)
        return text;
    search->names[search->count++] = text;
    bool ends = last[strlen(last) - 1] == '.';
    return text + snprintf(text, size + 2, "%s%s%s%s", host, dot, domain, ends ? "" : ".") + 1;
}

/* The order is that of c-ares. It asks no server for "localhost" (RFC 6761). */
static char *add_names(struct names_search *search, char *text, const char *host, const struct ares_options *options)
{
    bool first = is_whole(host) || count_dots(host) >= options->ndots;
    if (strcmp(host, "localhost") == 0)
        return text;
    if (first)
        text = add(search, text, host, "");
    for (int i = 0; !is_whole(host) && i < options->ndomains; i++)
        text = add(search, text, host, options->domains[i]);
    return first ? text : add(search, text, host, "");
}

static char *first_text(struct names_search *search, const struct ares_options *options)
{
    return (char *)(search->names + strlen(options->lookups) * ((size_t)options->ndomains + 1));
}

int names_search_make(const struct names_config *config, const char *host, struct names_search **out)
{
    __attribute__((cleanup(end))) struct reading reading = {.options.lookups = NULL};
    int status = read_options(&reading, config);
    if (status != ARES_SUCCESS)
        return names_fail_by(config, status, 0, host);
    struct names_search *search = make(host, &reading.options);
    if (!search)
        return names_fail(config, -ENOMEM, "there is no memory");
    char *text = first_text(search, &reading.options);
    for (const char *at = reading.options.lookups; *at; at++)
        if (*at == NAME_SERVERS)
            text = add_names(search, text, host, &reading.options);
        else if (*at == HOSTS_FILE)
            search->names[search->count++] = "";
    *out = search;
    return 0;
}
