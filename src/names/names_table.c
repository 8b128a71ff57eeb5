/*
 * A table that a test supplies, in place of name servers.
 */
#include "names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool answers(const strand_names_entry *entry, const char *name, int family)
{
    return entry->name && strcasecmp(entry->name, name) == 0 && (!family || !entry->family || entry->family == family);
}

/* Wait for the slowest of the entries that answer. Returns how many bytes their addresses have; 0: no entry answers; or
 * the first error. */
static int64_t await(const struct names_config *config, const char *name, int family)
{
    int64_t delay = 0, size = 0;
    int error = 0;
    for (size_t i = 0; i < config->attr.table_count; i++) {
        const strand_names_entry *entry = &config->attr.table[i];
        if (!answers(entry, name, family))
            continue;
        delay = entry->delay_ns > delay ? entry->delay_ns : delay;
        error = error ? error : entry->error;
        size += 1 + (int64_t)(entry->addresses ? strlen(entry->addresses) : 0);
    }
    if (delay)
        strand_sleep(delay);
    return error ? error : size;
}

/* Returns 0 or a negated errno code. */
static int add_all(strand_names_list *list, const strand_names_entry *entry, int family)
{
    int added = 0;
    static const char space[] = " ";
    char number[STRAND_NAMES_NUMBER];
    for (const char *at = entry->addresses; at && *at && added >= 0; at += strspn(at, space)) {
        size_t length = strcspn(at, space);
        snprintf(number, sizeof number, "%.*s", (int)length, at);
        added = names_list_add_number(list, number, family ? family : entry->family);
        at += length;
    }
    return added < 0 ? added : 0;
}

static int fail(const struct names_config *config, const char *name, int64_t result)
{
    return result < 0 ? names_fail(config, (int)result, "%s: %s", name, names_words((int)result))
                      : names_fail(config, -ENOENT, "%s: there is no such name", name);
}

int names_table_find(const struct names_config *config, const char *host, int port, int family, strand_names_list **out)
{
    int64_t size = await(config, host, family);
    if (size <= 0)
        return fail(config, host, size);
    strand_names_list *list = names_list_make((size_t)size / 2 + 1, host, port); /* an address has two bytes at least */
    if (!list)
        return names_fail(config, -ENOMEM, "there is no memory");
    int error = 0;
    for (size_t i = 0; i < config->attr.table_count && !error; i++)
        if (answers(&config->attr.table[i], host, family))
            error = add_all(list, &config->attr.table[i], family);
    if (error) {
        free(list);
        return fail(config, host, error);
    }
    if (!list->count) {
        free(list);
        return names_fail(config, -ENOENT, "%s: the name has no such record", host);
    }
    *out = list;
    return 0;
}

/* Whether an entry has the address. */
static bool has(const strand_names_entry *entry, const char *number)
{
    size_t length = strlen(number);
    for (const char *at = entry->addresses; at && (at = strstr(at, number)) != NULL; at += length)
        if ((at == entry->addresses || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

int names_table_reverse(const struct names_config *config, const char *number, char **name)
{
    for (size_t i = 0; i < config->attr.table_count; i++) {
        const strand_names_entry *entry = &config->attr.table[i];
        if (!has(entry, number))
            continue;
        if (entry->delay_ns)
            strand_sleep(entry->delay_ns);
        if (entry->error)
            return fail(config, number, entry->error);
        *name = strdup(entry->name);
        return *name ? 0 : names_fail(config, -ENOMEM, "there is no memory");
    }
    return fail(config, number, 0);
}

int names_table_records(const struct names_config *config, const char *name, bool services,
                        const strand_names_entry **out)
{
    for (size_t i = 0; i < config->attr.table_count; i++) {
        const strand_names_entry *entry = &config->attr.table[i];
        if (!answers(entry, name, 0) || (!entry->error && !(services ? entry->service_count : entry->text_count)))
            continue;
        if (entry->delay_ns)
            strand_sleep(entry->delay_ns);
        *out = entry;
        return entry->error ? fail(config, name, entry->error) : 0;
    }
    return fail(config, name, 0);
}
