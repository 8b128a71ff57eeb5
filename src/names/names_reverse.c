/*
 * Names of addresses.
 */
#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct naming {
    struct names_channel channel;
    char *name;
};

static void end(struct naming *naming)
{
    names_channel_close(&naming->channel);
    free(naming->name);
}

static void named(void *arg, int status, int timeouts, char *node, char *service)
{
    struct naming *naming = arg;
    (void)timeouts, (void)service;
    naming->name = status == ARES_SUCCESS && node ? strdup(node) : NULL;
    naming->channel.status = status == ARES_SUCCESS && !naming->name ? ARES_ENOMEM : status;
    naming->channel.done = true;
}

static void begin_reverse(struct naming *naming, const strand_names_address *address)
{
    STRAND_NO_SUSPEND;
    ares_getnameinfo(naming->channel.ares, (const struct sockaddr *)address->socket_address, address->length,
                     ARES_NI_LOOKUPHOST | ARES_NI_NAMEREQD, named, naming);
}

/* What c-ares means by ARES_ENOTFOUND, which it says of each failure. If it should have asked the name servers and has
 * not, there was no memory for the question. */
static int missing(const struct names_channel *channel)
{
    STRAND_NO_SUSPEND;
    struct ares_options options = {.lookups = NULL};
    int mask;
    if (channel->asked)
        return names_channel_missing(channel);
    if (ares_save_options(channel->ares, &options, &mask) != ARES_SUCCESS)
        return ARES_ENOMEM;
    bool asks = options.lookups && strchr(options.lookups, 'b') && options.nservers;
    ares_destroy_options(&options);
    return asks ? ARES_ENOMEM : ARES_ENOTFOUND;
}

static int reverse_by_ares(const struct names_config *config, const strand_names_address *address, char **name)
{
    __attribute__((cleanup(end))) struct naming naming = {.name = NULL};
    int status = names_channel_open(&naming.channel, config, NULL);
    if (status == ARES_SUCCESS) {
        begin_reverse(&naming, address);
        names_channel_wait(&naming.channel);
        status = naming.channel.status;
    }
    if (status == ARES_ENOTFOUND)
        status = missing(&naming.channel);
    if (status != ARES_SUCCESS)
        return names_fail_by(config, status, naming.channel.refused, address->number);
    *name = naming.name;
    naming.name = NULL;
    return 0;
}

/* The number in an address that may have a port. Returns false if it is too long. */
static bool take_number(const char *address, char *number, size_t room)
{
    const char *colon = strchr(address, ':');
    bool bracketed = *address == '[', port = colon && !strchr(colon + 1, ':');
    size_t length = bracketed ? strcspn(address, "]") : port ? (size_t)(colon - address) : strlen(address);
    address += bracketed;
    length -= bracketed;
    if (length >= room)
        return false;
    memcpy(number, address, length);
    number[length] = 0;
    return true;
}

int strand_names_reverse(const char *address, const strand_names_attr *attr, char **name)
{
    struct names_config config;
    char number[STRAND_NAMES_NUMBER];
    int error = names_begin(&config, attr, address, "address");
    if (error)
        return error;
    strand_names_list *list = names_list_make(1, "", 0);
    if (!list)
        return names_fail(&config, -ENOMEM, "there is no memory");
    int count = take_number(address, number, sizeof number) ? names_list_add_number(list, number, 0) : 0;
    strand_names_address found = count > 0 ? list->addresses[0] : (strand_names_address){.family = 0};
    free(list);
    if (count < 0)
        return names_fail(&config, count, "%s: %s", address, names_words(count));
    if (!count)
        return names_fail(&config, -EINVAL, "%s is no address", address);
    if (config.attr.table)
        return names_table_reverse(&config, found.number, name);
    if (config.attr.nsswitch)
        return names_system_reverse(&config, &found, name);
    error = reverse_by_ares(&config, &found, name);
    return error ? names_reverse_further(&config, &found, error, name) : 0;
}
