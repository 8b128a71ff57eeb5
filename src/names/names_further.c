/*
 * Hosts of further sources: nsswitch.conf may list some that c-ares does not know, such as ldap or myhostname. The C
 * library asks them. It does so only for what c-ares has not found, because it occupies a thread.
 */
#include "names.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* Nobody but Tor is asked for these names (RFC 7686), and the C library would ask the name servers. */
bool names_is_of_tor(const char *host)
{
    static const char tor[] = ".onion.";
    size_t size = strlen(host), length = sizeof tor - 1, dotless = length - 1;
    return (size >= length && strcasecmp(host + size - length, tor) == 0) ||
           (size >= dotless && strcasecmp(host + size - dotless, ".onion") == 0);
}

/* Whether a further source may have what c-ares has not found. Returns 1, 0 or a negated errno code. A caller that
 * chooses the servers wants no others to be asked. */
static int has_further(const struct names_config *config, const char *name, int code)
{
    const strand_names_attr *attr = &config->attr;
    bool silent = code == -EHOSTUNREACH && !config->limited; /* the C library has limits of its own */
    bool unknown = code == -ENOENT || silent;
    if (!unknown || attr->no_fallback || attr->servers || attr->table || names_is_of_tor(name))
        return 0;
    int result = names_system_has_further();
    return result < 0 ? names_fail(config, result, "%s: reading nsswitch.conf: %s", name, names_words(result)) : result;
}

/* The C library's failure counts if it says more than that of c-ares, whose words are there already. */
static int settle(const struct names_config *config, int code, int result, const char *why)
{
    if (!result)
        return names_fail(config, 0, "%s", "");
    return result == -ENOENT || result == code ? code : names_fail(config, result, "%s", why);
}

int names_find_further(const struct names_config *config, const char *host, int port, int family, int code,
                       strand_names_list **out)
{
    char why[MAX_WORDS];
    int further = has_further(config, host, code);
    if (further <= 0)
        return further < 0 ? further : code;
    struct names_config asked = *config;
    asked.attr.why = why;
    asked.attr.why_room = sizeof why;
    return settle(config, code, names_system_find(&asked, host, port, family, out), why);
}

int names_reverse_further(const struct names_config *config, const strand_names_address *address, int code, char **name)
{
    char why[MAX_WORDS];
    int further = has_further(config, address->number, code);
    if (further <= 0)
        return further < 0 ? further : code;
    struct names_config asked = *config;
    asked.attr.why = why;
    asked.attr.why_room = sizeof why;
    return settle(config, code, names_system_reverse(&asked, address, name), why);
}
