/*
 * Names: questions to name servers, the C library's look-ups, dialling, and a table.
 */
#include "names_server.h"

#include "strand/io.h"
#include "strand/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The satellite's free: names_calls.c. */
void fault_names_free(void *memory);

/* Throws what a call has failed by, which it says in words. */
static void must(int result, const char *why)
{
    if (result >= 0)
        return;
    FAULT_CHECK(why[0]);
    strand_throw_with(&STRAND_SYSTEM, STRAND_THROW_INFO(.code = result), "names: %s", why);
}

struct words {
    char why[STRAND_NAMES_WHY];
};
/* The time is that of lost answers only, which come where a socket fails. */
#define ATTR(...)                                                                                                      \
    STRAND_NAMES_ATTR(.why = words.why, .why_room = sizeof words.why, .timeout_ns = 300 * STRAND_MS, __VA_ARGS__)

/* A look-up without memory for its question does not know that there is no name. (c-ares says so of an address that it
 * has no memory for.) */
static int not_missing(int result)
{
    FAULT_CHECK(result != -ENOENT);
    return result;
}

static void ask_addresses(void)
{
    struct words words;
    strand_names_list *list;
    must(not_missing(strand_names_lookup("host.test", "http", ATTR(.family = 0), &list)), words.why);
    FAULT_CHECK(list->count == 1 || list->count == 2);
    fault_names_free(list);
}

static void ask_system(void)
{
    struct words words;
    strand_names_list *list;
    char *name;
    must(strand_names_lookup("localhost", NULL, ATTR(.nsswitch = true, .family = 4), &list), words.why);
    FAULT_CHECK(list->count >= 1);
    fault_names_free(list);
    must(strand_names_reverse("127.0.0.1", ATTR(.nsswitch = true), &name), words.why);
    fault_names_free(name);
    int result = strand_names_lookup("none.test", NULL, ATTR(.family = 4), &list);
    FAULT_CHECK(result < 0);
    must(result == -ENOENT ? 0 : result, words.why);
}

static void ask_records(void)
{
    struct words words;
    char *name;
    strand_names_services *services;
    strand_names_texts *texts;
    must(strand_names_reverse("192.0.2.1", ATTR(.family = 0), &name), words.why);
    int differs = strcmp(name, "host.test");
    fault_names_free(name);
    FAULT_CHECK(!differs);
    must(not_missing(strand_names_srv("_x._tcp.test", ATTR(.family = 0), &services)), words.why);
    FAULT_CHECK(services->count == 2);
    fault_names_free(services);
    must(not_missing(strand_names_txt("large.test", ATTR(.family = 0), &texts)), words.why);
    FAULT_CHECK(texts->count == 1 && texts->texts[0].size == 1016);
    fault_names_free(texts);
}

/* What has kept a dial from an address, which its words say. */
static int code_of(int result, const char *why)
{
    static const int codes[] = {EMFILE, ENOBUFS};
    const char *unknown = strstr(why, "not all addresses are known");
    if (result >= 0 || !unknown)
        return result;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strstr(unknown, strerror(codes[i])))
            return -codes[i];
    return strstr(unknown, "no memory") ? -ENOMEM : -EHOSTUNREACH;
}

/* To a listener of IPv4 alone: where that address is not known, there is no connection. */
static void dial(void)
{
    struct words words;
    char port[16];
    FAULT_FD int listener = (int)strand_must(strand_listen_tcp("127.0.0.1", 0));
    snprintf(port, sizeof port, "%d", (int)strand_must(strand_tcp_port(listener)));
    FAULT_FD int fd = strand_names_dial("host.test", port, ATTR(.family = 0));
    must(code_of(fd, words.why), words.why);
}

static void *root(void *arg)
{
    (void)arg;
    ask_addresses();
    ask_system();
    ask_records();
    dial();
    return FAULT_DONE;
}

FAULT_WORKLOAD(names_asked, RUN_ALONE | RUN_PAIR, root, .prepare = names_server_start, .of = "names")

/* ---- a table ----------------------------------------------------------------------------------------------------- */

static const strand_names_service offers[] = {{"a.test", 1, 1, 0}};
static const strand_names_text text = {"word", 4};
static const strand_names_entry entries[] = {
    {.name = "host.test", .addresses = "192.0.2.5 2001:db8::5", .delay_ns = STRAND_MS},
    {.name = "_x._tcp.test", .services = offers, .service_count = 1},
    {.name = "text.test", .texts = &text, .text_count = 1},
};

static void *table(void *arg)
{
    (void)arg;
    struct words words;
    strand_names_list *list;
    strand_names_services *services;
    strand_names_texts *texts;
    char *name;
    const strand_names_attr *attr = ATTR(.table = entries, .table_count = sizeof entries / sizeof *entries);
    must(strand_names_lookup("host.test", NULL, attr, &list), words.why);
    size_t count = list->count;
    fault_names_free(list);
    FAULT_CHECK(count == 2);
    must(strand_names_reverse("192.0.2.5", attr, &name), words.why);
    fault_names_free(name);
    must(strand_names_srv("_x._tcp.test", attr, &services), words.why);
    fault_names_free(services);
    must(strand_names_txt("text.test", attr, &texts), words.why);
    fault_names_free(texts);
    return FAULT_DONE;
}

FAULT_WORKLOAD(names_table, RUN_ANY, table, .of = "names")
