/*
 * host: what the name service knows of a host, and whether one of its addresses answers.
 *
 *     host [--server ADDRESS:PORT] [--system] NAME [SERVICE]
 *
 * The addresses, the names of these addresses, the texts and, for a name that begins with an underscore, the services
 * are printed. With SERVICE the program connects to it (Happy Eyeballs) and says which address has answered first. All
 * questions are asked at the same time, by a strand each.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strand.h>
#include <strand/io.h>
#include <strand/names.h>

static const char *name, *service;
static strand_names_attr attr = {.size = sizeof attr};
static _Atomic int failures;

struct question {
    char *words; /* what is printed */
    size_t size;
};

/* Add a line. */
__attribute__((format(printf, 2, 3))) static void say(struct question *question, const char *format, ...)
{
    char line[1200];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    size_t length = size < 0 ? 0 : (size_t)size < sizeof line ? (size_t)size : sizeof line - 1;
    char *words = realloc(question->words, question->size + length + 1);
    if (!words)
        strand_throw(&STRAND_ERROR, "no memory");
    memcpy(words + question->size, line, length + 1);
    question->words = words;
    question->size += length;
}

static void fail(struct question *question, const char *why)
{
    failures++;
    say(question, "%s\n", why);
}

static void print_address(struct question *question, const char *number)
{
    char *known = NULL;
    int error = strand_names_reverse(number, &attr, &known);
    say(question, "address %s%s%s%s\n", number, error ? "" : " (", error ? "" : known, error ? "" : ")");
    free(known);
}

static void *ask_addresses(void *arg)
{
    struct question *question = arg;
    char why[STRAND_NAMES_WHY];
    strand_names_list *list;
    if (strand_names_lookup(name, service, STRAND_NAMES_ATTR(.why = why, .why_room = sizeof why), &list) < 0) {
        fail(question, why);
        return NULL;
    }
    if (strcmp(list->canonical, name) != 0)
        say(question, "name    %s\n", list->canonical);
    for (size_t i = 0; i < list->count; i++)
        print_address(question, list->addresses[i].number);
    free(list);
    return NULL;
}

static void *ask_texts(void *arg)
{
    strand_names_texts *list;
    if (strand_names_txt(name, NULL, &list) < 0)
        return NULL; /* most hosts have none */
    for (size_t i = 0; i < list->count; i++)
        say(arg, "text    %s\n", list->texts[i].text);
    free(list);
    return NULL;
}

static void *ask_services(void *arg)
{
    struct question *question = arg;
    char why[STRAND_NAMES_WHY];
    strand_names_services *list;
    if (strand_names_srv(name, STRAND_NAMES_ATTR(.why = why, .why_room = sizeof why), &list) < 0) {
        fail(question, why);
        return NULL;
    }
    for (size_t i = 0; i < list->count; i++)
        say(question, "service %s:%d\n", list->services[i].host, list->services[i].port);
    free(list);
    return NULL;
}

static void *connect_to(void *arg)
{
    struct question *question = arg;
    char why[STRAND_NAMES_WHY], peer[STRAND_PEER_ROOM] = "";
    int fd = strand_names_dial(name, service, STRAND_NAMES_ATTR(.why = why, .why_room = sizeof why));
    if (fd < 0) {
        fail(question, why);
        return NULL;
    }
    strand_peer_address(fd, peer, sizeof peer);
    strand_close(fd);
    say(question, "answers %s\n", peer);
    return NULL;
}

static void *root(void *arg)
{
    strand_fn *const of_host[] = {ask_addresses, ask_texts, connect_to}, *const of_service[] = {ask_services,
                                                                                                ask_texts};
    strand_fn *const *asks = *name == '_' ? of_service : of_host;
    size_t count = *name == '_' || !service ? 2 : 3;
    struct question questions[3] = {{NULL, 0}};
    STRAND_DEADLINE(strand_in(60 * STRAND_S));
    STRAND_LOCAL(&STRAND_NAMES, &attr);
    STRAND_SCOPE(scope);
    for (size_t i = 0; i < count; i++)
        strand_spawn(scope, asks[i], &questions[i]);
    strand_scope_join(scope);
    for (size_t i = 0; i < count; i++) {
        fputs(questions[i].words ? questions[i].words : "", stdout);
        free(questions[i].words);
    }
    return arg;
}

int main(int argc, char **argv)
{
    int at = 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--server") == 0 && at + 1 < argc)
            attr.servers = argv[++at];
        else if (strcmp(argv[at], "--system") == 0)
            attr.nsswitch = true;
        else
            break;
    }
    if (at >= argc || argc - at > 2 || argv[at][0] == '-') {
        fputs("usage: host [--server ADDRESS:PORT] [--system] NAME [SERVICE]\n", stderr);
        return 2;
    }
    name = argv[at];
    service = at + 1 < argc ? argv[at + 1] : NULL;
    strand_run(NULL, root, NULL);
    return failures ? 1 : 0;
}
