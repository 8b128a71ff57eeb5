/*
 * Connecting by name: Happy Eyeballs version 2 (RFC 8305).
 *
 * PARTIES   the caller; a strand for each family's look-up, and one for each attempt, in a scope of the caller's.
 * STATE     struct race: the answers, which addresses have been tried, and when the next attempt may begin.
 * PROTOCOL  the host is looked for in one place after the other (names_search.c), for both families in the same one:
 *           the addresses are never those of two hosts. A place without an address of either family leads to the next
 *           one. The caller selects over the ends of all these strands and the next instant. It joins each that has
 *           ended. An attempt's result is its descriptor; one that nobody joins is closed by its drop function.
 * OWNERSHIP strands get copies of all that they use, and return memory of the heap: the caller may live on a shared
 *           stack.
 * PROGRESS  the call ends with the first connection, or when no look-up, no attempt and no other place is left.
 */
#include "names.h"

#include "../../include/strand/pool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIX, FOUR, FAMILIES, MAX_ATTEMPTS = MAX_ADDRESSES };

static const int family_of[FAMILIES] = {[SIX] = 6, [FOUR] = 4};

/* The result of a look-up. */
struct answer {
    int code;
    char why[256];
    strand_names_list *list;
};

struct attempt {
    strand child;
    char number[STRAND_NAMES_NUMBER];
};

struct race {
    const struct names_config *config;
    const char *host;
    int port;
    strand_scope scope;
    struct names_search *search; /* NULL: the first look-ups are the last ones */
    size_t step;                 /* the next name of the search */
    bool settled;                /* the place of the last look-ups has the host, or does not say so */
    bool no_memory;              /* a look-up has had none for its answer */
    strand lookups[FAMILIES];    /* {0}: it has ended, or never began */
    struct answer *answers[FAMILIES];
    size_t next[FAMILIES]; /* the first address that was not tried */
    int last;              /* the family of the last attempt */
    struct attempt running[MAX_ATTEMPTS];
    size_t count;                 /* of these */
    bool begun;                   /* there was an attempt */
    strand_time begins, resolved; /* when the next attempt may begin; until when it waits for IPv6 addresses */
    int winner;                   /* the descriptor, or -1 */
    int code;                     /* of the last failure */
    char why[STRAND_NAMES_WHY];
    size_t why_size;
};

/* ---- look-ups ------------------------------------------------------------------------------------------------- */

struct lookup {
    struct names_config config;
    char host[MAX_NAME + 1], name[MAX_NAME + 2]; /* the name that is asked for, with a dot; "": by names_find */
    int port, family;
};

static void free_answer(struct answer *answer)
{
    if (answer)
        free(answer->list);
    free(answer);
}

static void drop_answer(void *answer)
{
    free_answer(answer);
}

static void give_up(struct answer **answer)
{
    free_answer(*answer);
}

static void find(const struct lookup *lookup, struct answer *answer)
{
    STRAND_TRY {
        answer->code = lookup->name[0]
                           ? names_find_exactly(&lookup->config, lookup->host, lookup->name, lookup->port,
                                                lookup->family, &answer->list)
                           : names_find(&lookup->config, lookup->host, lookup->port, lookup->family, &answer->list);
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
        answer->code = strand_exception_code(e) < 0 ? strand_exception_code(e) : -EIO;
        snprintf(answer->why, sizeof answer->why, "%.*s", (int)sizeof answer->why - 1, strand_exception_text(e));
    }
    STRAND_END
}

static void *look_up(void *arg)
{
    struct lookup *lookup = arg;
    __attribute__((cleanup(give_up))) struct answer *answer = calloc(1, sizeof *answer);
    if (!answer)
        return NULL;
    lookup->config.attr.servers = lookup->config.servers[0] ? lookup->config.servers : NULL;
    lookup->config.attr.why = answer->why;
    lookup->config.attr.why_room = sizeof answer->why;
    find(lookup, answer);
    struct answer *result = answer;
    answer = NULL;
    return result;
}

static void free_lookup(struct lookup **lookup)
{
    free(*lookup);
}

static void begin_lookup(struct race *race, const char *name, int i)
{
    __attribute__((cleanup(free_lookup))) struct lookup *lookup = malloc(sizeof *lookup);
    if (!lookup)
        strand_throw_with(&STRAND_SYSTEM, STRAND_THROW_INFO(.code = -ENOMEM), "strand_names_dial: no memory");
    *lookup = (struct lookup){.config = *race->config, .port = race->port, .family = family_of[i]};
    lookup->config.attr.servers = lookup->config.attr.why = NULL; /* they may lie on this strand's stack */
    snprintf(lookup->host, sizeof lookup->host, "%s", race->host);
    snprintf(lookup->name, sizeof lookup->name, "%s", name);
    race->lookups[i] = strand_spawn_with(race->scope, STRAND_ATTR(.name = "look-up", .drop = drop_answer), look_up,
                                         lookup, sizeof *lookup);
}

static void begin_lookups(struct race *race, const char *name)
{
    for (int i = 0; i < FAMILIES; i++)
        if (!race->config->attr.family || race->config->attr.family == family_of[i])
            begin_lookup(race, name, i);
}

static bool looks_up(const struct race *race, int i)
{
    return race->lookups[i].bits[1] != 0;
}

static void end_lookup(struct race *race, int i)
{
    struct answer *answer = strand_join(race->lookups[i]);
    race->lookups[i] = (strand){{0, 0}};
    free_answer(race->answers[i]); /* that of the place before */
    race->answers[i] = answer;
    race->no_memory |= !answer;
    if (!answer || answer->code != -ENOENT)
        race->settled = true;
    if (!race->resolved.ns && i == FOUR && answer && answer->list)
        race->resolved = strand_in(race->config->attr.resolution_delay_ns);
}

static size_t left(const struct race *race, int i)
{
    const struct answer *answer = race->answers[i];
    return answer && answer->list ? answer->list->count - race->next[i] : 0;
}

/* Addresses of both families were found at once: share them out. Frees the list. */
static int share_out(struct race *race, strand_names_list *list)
{
    race->settled = true;
    for (int i = 0; i < FAMILIES; i++) {
        struct answer *answer = calloc(1, sizeof *answer);
        free_answer(race->answers[i]);
        race->answers[i] = answer;
        strand_names_list *part = answer ? names_list_make(list->count, list->canonical, list->port) : NULL;
        if (!part) {
            free(list);
            return names_fail(race->config, -ENOMEM, "there is no memory");
        }
        answer->list = part;
        for (size_t k = 0; k < list->count; k++)
            if (list->addresses[k].family == family_of[i])
                ((strand_names_address *)(part + 1))[part->count++] = list->addresses[k];
    }
    free(list);
    return 0;
}

/* Look the host up in the next place. Returns 0 or a negated errno code. */
static int look_further(struct race *race)
{
    const char *name = race->search->names[race->step++];
    strand_names_list *list;
    if (*name) {
        begin_lookups(race, name);
        return 0;
    }
    int result = names_find_file(race->config, race->host, race->port, race->config->attr.family, &list);
    return result > 0 ? share_out(race, list) : result;
}

/* Whether the look-ups have found nothing, and there is another place. */
static bool misses(const struct race *race)
{
    return !race->settled && !looks_up(race, SIX) && !looks_up(race, FOUR) && race->search &&
           race->step < race->search->count;
}

/* ---- attempts ------------------------------------------------------------------------------------------------- */

struct target {
    char number[STRAND_NAMES_NUMBER];
    int port;
};

/* A pointer that stands for a descriptor or an error, and is not NULL. */
static void *boxed(int result)
{
    return (void *)(intptr_t)(result < 0 ? result : result + 1);
}

static int unboxed(void *result)
{
    int value = (int)(intptr_t)result;
    return value > 0 ? value - 1 : value;
}

static void close_dropped(void *result)
{
    if (unboxed(result) >= 0)
        (void)strand_close(unboxed(result));
}

/* The number is parsed at once: there is no look-up in it. */
static void *connect_to(void *arg)
{
    const struct target *target = arg;
    return boxed(strand_dial_tcp(target->number, target->port));
}

static void begin_attempt(struct race *race)
{
    int other = race->last == SIX ? FOUR : SIX, i = left(race, other) ? other : race->last;
    struct attempt *attempt = &race->running[race->count];
    struct target target = {.port = race->port};
    memcpy(target.number, race->answers[i]->list->addresses[race->next[i]].number, sizeof target.number);
    memcpy(attempt->number, target.number, sizeof attempt->number);
    attempt->child = strand_spawn_with(race->scope, STRAND_ATTR(.name = target.number, .drop = close_dropped),
                                       connect_to, &target, sizeof target);
    race->next[i]++;
    race->count++;
    race->last = i;
    race->begun = true;
    race->begins = strand_in(race->config->attr.attempt_delay_ns);
}

__attribute__((format(printf, 2, 3))) static void say(struct race *race, const char *format, ...)
{
    va_list args;
    size_t room = sizeof race->why - race->why_size;
    va_start(args, format);
    int size = vsnprintf(race->why + race->why_size, room, format, args);
    va_end(args);
    race->why_size += size < 0 ? 0 : (size_t)size < room ? (size_t)size : room - 1;
}

static void end_attempt(struct race *race, size_t i)
{
    int result = unboxed(strand_join(race->running[i].child));
    if (result >= 0) {
        race->winner = result;
    } else {
        say(race, "%s %s: %s", race->why_size ? ";" : ":", race->running[i].number, names_words(result));
        race->code = result;
        race->begins = (strand_time){1}; /* the next one need not wait */
    }
    race->running[i] = race->running[--race->count];
}

/* ---- the race ------------------------------------------------------------------------------------------------- */

/* When the next attempt begins; an instant that has passed: now; {0}: not before something happens. */
static strand_time next_begin(const struct race *race)
{
    if ((!left(race, SIX) && !left(race, FOUR)) || race->count == MAX_ATTEMPTS)
        return (strand_time){0};
    if (!race->begun && looks_up(race, SIX) && !left(race, SIX))
        return race->resolved;
    return race->begun ? race->begins : (strand_time){1};
}

/* Wait for the end of a strand, or until the next attempt may begin. */
static void step(struct race *race)
{
    strand_case cases[FAMILIES + MAX_ATTEMPTS + 1];
    strand_time when = next_begin(race);
    if (when.ns && when.ns <= strand_now().ns) {
        begin_attempt(race);
        return;
    }
    for (int i = 0; i < FAMILIES; i++)
        cases[i] = looks_up(race, i) ? strand_on_end(race->lookups[i]) : (strand_case){.flags = 0};
    for (size_t i = 0; i < race->count; i++)
        cases[FAMILIES + i] = strand_on_end(race->running[i].child);
    cases[FAMILIES + race->count] = strand_on_time(when);
    int which = strand_select(cases, FAMILIES + race->count + 1, 0);
    if (which < FAMILIES)
        end_lookup(race, which);
    else if ((size_t)which < FAMILIES + race->count)
        end_attempt(race, (size_t)which - FAMILIES);
}

static bool goes_on(const struct race *race)
{
    return race->winner < 0 &&
           (race->count || looks_up(race, SIX) || looks_up(race, FOUR) || left(race, SIX) || left(race, FOUR));
}

/* Whether one call looks for both families: the C library's, or that of c-ares for a name that may be an alias of the
 * program's environment. */
static bool asks_once(const struct race *race)
{
    return race->config->attr.nsswitch || (!strchr(race->host, '.') && names_system_has_aliases());
}

/* A look-up that has failed counts where it has left no address to try. A failure of the name servers counts more than
 * a missing record. */
static const struct answer *worst_of(const struct race *race)
{
    const struct answer *worst = NULL;
    for (int i = 0; i < FAMILIES; i++)
        if (race->answers[i] && race->answers[i]->code && (!worst || worst->code == -ENOENT))
            worst = race->answers[i];
    return worst;
}

/* Why there is no address to try. An answer that is missing had no memory. */
static int code_of(const struct race *race)
{
    const struct answer *worst = worst_of(race);
    return worst ? worst->code : race->settled ? -ENOMEM : -ENOENT;
}

/* Find the addresses, or the places where they may be. Returns 0 or a negated errno code. */
static int prepare(struct race *race)
{
    const struct names_config *config = race->config;
    strand_names_list *list;
    int result = names_find_number(config, race->host, race->port, config->attr.family, &list);
    if (result < 0)
        return result;
    if (!result && config->attr.table) {
        begin_lookups(race, "");
        return 0;
    }
    if (!result && !asks_once(race))
        return names_search_make(config, race->host, &race->search);
    if (!result)
        result = names_find(config, race->host, race->port, config->attr.family, &list);
    return result < 0 ? result : share_out(race, list);
}

/* Returns 0, also if no address has answered, or a negated errno code. */
static int drive(struct race *race)
{
    int error = 0;
    while (!error && (goes_on(race) || misses(race)))
        if (misses(race))
            error = look_further(race);
        else
            step(race);
    return error;
}

/* There is no address to try: a source that c-ares does not know may have one. Returns 0 or a negated errno code. */
static int look_elsewhere(struct race *race)
{
    const struct names_config *config = race->config;
    strand_names_list *list = NULL;
    int code = code_of(race);
    int result = names_find_further(config, race->host, race->port, config->attr.family, code, &list);
    if (result)
        return result == code ? 0 : result;
    result = share_out(race, list);
    return result ? result : drive(race);
}

/* Returns 0, also if no address has answered, or a negated errno code. */
static int run(struct race *race)
{
    STRAND_SCOPE(scope);
    race->scope = scope;
    int error = prepare(race);
    if (!error)
        error = drive(race);
    if (!error && !race->begun)
        error = look_elsewhere(race);
    strand_scope_cancel(scope, "another address has answered");
    return error;
}

static void end(struct race **race)
{
    if (!*race)
        return;
    for (int i = 0; i < FAMILIES; i++)
        free_answer((*race)->answers[i]);
    if ((*race)->winner >= 0)
        (void)strand_close((*race)->winner);
    free((*race)->search);
    free(*race);
}

/* There is no connection: say why. */
static int fail(struct race *race)
{
    const struct answer *worst = worst_of(race);
    if (!race->begun && !worst)
        return code_of(race) == -ENOMEM ? names_fail(race->config, -ENOMEM, "there is no memory")
                                        : names_fail(race->config, -ENOENT, "%s: there is no such name", race->host);
    if (!race->begun)
        return names_fail(race->config, worst->code, "%s", worst->why);
    bool no_memory = race->no_memory && !(worst && worst->code != -ENOENT);
    if (no_memory || (worst && worst->code != -ENOENT))
        say(race, "; not all addresses are known: %s", no_memory ? "there is no memory" : worst->why);
    return names_fail(race->config, race->code, "%s%s", race->host, race->why);
}

int strand_names_dial(const char *host, const char *service, const strand_names_attr *attr)
{
    struct names_config config;
    int error = names_begin(&config, attr, host, "host");
    int port = error ? error : names_port(&config, service);
    if (port < 0)
        return port;
    __attribute__((cleanup(end))) struct race *race = calloc(1, sizeof *race);
    if (!race)
        return names_fail(&config, -ENOMEM, "there is no memory");
    race->config = &config;
    race->host = host;
    race->port = port;
    race->last = FOUR; /* IPv6 is tried first */
    race->winner = -1;
    error = run(race);
    int result = race->winner >= 0 ? race->winner : error ? error : fail(race);
    race->winner = -1;
    return result;
}
