/*
 * Attributes of a call, and failures in words.
 */
#include "names.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT (2 * STRAND_S)
#define TIMEOUT_MOST (3600 * STRAND_S)
#define RESOLUTION_DELAY (50 * STRAND_MS)
#define ATTEMPT_DELAY (250 * STRAND_MS)
enum { TRIES = 3, TRIES_MOST = 100 };

const strand_key STRAND_NAMES = STRAND_KEY("names");

/* A struct of an older program is shorter. */
static bool copy(strand_names_attr *out, const strand_names_attr *attr)
{
    *out = (strand_names_attr){.size = sizeof *out};
    if (!attr)
        return true;
    if (attr->size < sizeof attr->size)
        return false;
    memcpy(out, attr, attr->size < sizeof *out ? attr->size : sizeof *out);
    return true;
}

#define TAKE(field)                                                                                                    \
    if (!to->field)                                                                                                    \
    to->field = from->field

static void take(strand_names_attr *to, const strand_names_attr *from)
{
    TAKE(servers);
    TAKE(family);
    TAKE(tries);
    TAKE(timeout_ns);
    TAKE(nsswitch);
    if (!to->crew.bits[0])
        to->crew = from->crew;
    if (!to->table) {
        to->table = from->table;
        to->table_count = from->table_count;
    }
    TAKE(resolution_delay_ns);
    TAKE(attempt_delay_ns);
    TAKE(no_fallback);
}

static int check(const struct names_config *config)
{
    const strand_names_attr *attr = &config->attr;
    if (attr->family != 0 && attr->family != 4 && attr->family != 6)
        return names_fail(config, -EINVAL, "family is %d, and neither 4 nor 6", attr->family);
    if (attr->tries < 1 || attr->tries > TRIES_MOST)
        return names_fail(config, -EINVAL, "tries is %d, not 1 to %d", attr->tries, TRIES_MOST);
    if (attr->timeout_ns < STRAND_MS || attr->timeout_ns > TIMEOUT_MOST)
        return names_fail(config, -EINVAL, "timeout_ns is %lld, not a millisecond to an hour",
                          (long long)attr->timeout_ns);
    if (attr->resolution_delay_ns < 0 || attr->attempt_delay_ns < 0)
        return names_fail(config, -EINVAL, "a delay is below 0");
    if (attr->servers && strlen(attr->servers) >= MAX_SERVERS)
        return names_fail(config, -EINVAL, "servers has more than %d bytes", MAX_SERVERS - 1);
    return 0;
}

static int configure(struct names_config *config, const strand_names_attr *attr)
{
    static const strand_names_attr defaults = {.size = sizeof defaults,
                                               .tries = TRIES,
                                               .timeout_ns = TIMEOUT,
                                               .resolution_delay_ns = RESOLUTION_DELAY,
                                               .attempt_delay_ns = ATTEMPT_DELAY};
    strand_names_attr bound;
    config->servers[0] = 0;
    if (!copy(&config->attr, attr))
        return -EINVAL;
    if (config->attr.why && config->attr.why_room)
        config->attr.why[0] = 0;
    if (!copy(&bound, strand_local(&STRAND_NAMES)))
        return names_fail(config, -EINVAL, "the bound attributes have no size");
    take(&config->attr, &bound);
    config->limited = config->attr.tries || config->attr.timeout_ns;
    take(&config->attr, &defaults);
    int error = check(config);
    if (!error && config->attr.servers) {
        memcpy(config->servers, config->attr.servers, strlen(config->attr.servers) + 1);
        config->attr.servers = config->servers;
    }
    return error;
}

int names_begin(struct names_config *config, const strand_names_attr *attr, const char *name, const char *what)
{
    strand_checkpoint();
    int error = configure(config, attr);
    if (error)
        return error;
    if (!name || !*name)
        return names_fail(config, -EINVAL, "the %s is empty", what);
    return strlen(name) > MAX_NAME ? names_fail(config, -EINVAL, "the %s has more than %d bytes", what, MAX_NAME) : 0;
}

/* ---- failures ---------------------------------------------------------------------------------------------- */

int names_fail(const struct names_config *config, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (config->attr.why && config->attr.why_room)
        vsnprintf(config->attr.why, config->attr.why_room, format, args);
    va_end(args);
    return code;
}

const char *names_words(int code)
{
    const char *words = strerrordesc_np(code < 0 ? -code : code);
    return words ? words : "unknown error";
}

static const struct meaning {
    int status, code;
    const char *words;
} meanings[] = {
    {ARES_ENODATA, -ENOENT, "the name has no such record"},
    {ARES_ENOTFOUND, -ENOENT, "there is no such name"},
    {ARES_ENONAME, -ENOENT, "there is no such name"},
    {ARES_EREFUSED, -EHOSTUNREACH, "the name server refuses to answer"},
    {ARES_ESERVFAIL, -EHOSTUNREACH, "the name server reports a failure"},
    {ARES_ENOTIMP, -EHOSTUNREACH, "the name server does not know this kind of question"},
    {ARES_ECONNREFUSED, -EHOSTUNREACH, "no name server can be reached"},
    {ARES_ETIMEOUT, -EHOSTUNREACH, "no name server answers"},
    {ARES_EOF, -EHOSTUNREACH, "the name server closes the connection"},
    {ARES_EFORMERR, -EPROTO, "the name server finds the question malformed"},
    {ARES_EBADRESP, -EPROTO, "the answer is malformed"},
    {ARES_EBADNAME, -EINVAL, "the name is malformed"},
    {ARES_EBADQUERY, -EINVAL, "the name is malformed"},
    {ARES_EBADSTR, -EINVAL, "the servers are malformed"},
    {ARES_ESERVICE, -EINVAL, "there is no such service"},
    {ARES_EFILE, -EIO, "a file of the system cannot be read"},
    {ARES_ENOMEM, -ENOMEM, "there is no memory"},
};

int names_fail_by(const struct names_config *config, int status, int refused, const char *name)
{
    bool silent = status == ARES_ECONNREFUSED || status == ARES_ETIMEOUT; /* no server has answered */
    if (refused && silent)
        return names_fail(config, -refused, "%s: making a socket: %s", name, names_words(refused));
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].status == status)
            return names_fail(config, meanings[i].code, "%s: %s", name, meanings[i].words);
    return names_fail(config, -EIO, "%s: %s", name, ares_strerror(status));
}
