/*
 * Prints the wait-for graph: on request, and when a run is found to be deadlocked.
 */
#include "../../include/strand/debug.h"

#include "debug_layer.h"
#include "graph.h"

#include "../strand/exception.h"
#include "../strand/print.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SINGLE_MOST = 100, CYCLE_LINES = 32, ALIKE_MOST = 1024, HEADS = 2048, TAIL = 24 };

/* Strands that were spawned at the same place and wait alike: for the same object, or for strands spawned at the same
 * place. */
struct alike {
    void *site, *of; /* of: where its target was spawned, if it waits for one strand */
    uint64_t on;     /* otherwise */
    uint32_t node;   /* the first of them */
    uint32_t next;   /* 1 + the index of the next entry of this hash */
    uint64_t last;   /* id */
    size_t count;
    int64_t since_least, since_most;
    uint8_t blocked;
    bool names_differ, blockers_differ;
};

struct alikes {
    uint32_t heads[HEADS];
    uint32_t used;
    size_t others; /* strands without room in the table */
    struct alike all[ALIKE_MOST];
};

static const char *spawned(const struct graph *graph, const struct cb *c, char *text, size_t size)
{
    if (!c->site)
        return "";
    snprintf(text, size, "; spawned in %s", inspect_name(&graph->view, c->site));
    return text;
}

static bool is_blocked(const struct graph *graph, uint32_t node)
{
    return graph->nodes[node].blocked != BLOCKED_NOT;
}

/* ---- one by one ------------------------------------------------------------------------------------------ */

static void say_strand(const struct graph *graph, uint32_t number)
{
    const struct node *node = &graph->nodes[number];
    struct cb *c = graph_cb(graph, number);
    char name[STRAND_NAME], words[WORDS_MOST], where[LOCATION_WORDS + 16];
    output_say(graph->view.out, 0, "%s %s, since %.1f ms%s\n", blockers_name(graph, number, name),
               inspect_words(&graph->view, c, node->blocked, node->on, words, sizeof words),
               (double)(platform_now(graph->view.thread->sub) - c->since) / 1e6,
               spawned(graph, c, where, sizeof where));
    blockers_say(graph, number, 4);
}

static void say_each(const struct graph *graph)
{
    for (uint32_t i = 0; i < graph->roll.count; i++)
        if (is_blocked(graph, i))
            say_strand(graph, i);
}

/* ---- grouped ------------------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of(const struct alike *key)
{
    return mix(mix(mix(mix(0, (uintptr_t)key->site), (uintptr_t)key->of), key->on), key->blocked);
}

static bool equals(const struct alike *a, const struct alike *b)
{
    return a->site == b->site && a->of == b->of && a->on == b->on && a->blocked == b->blocked;
}

/* Whether the wait is for an object, not for a number or an instant. */
static bool has_object(const struct graph *graph, unsigned blocked)
{
    enum blocked_on on = inspect_reason(&graph->view, blocked)->on;
    return on == ON_DESCRIPTOR || on == ON_ADDRESS;
}

static struct alike key_of(const struct graph *graph, uint32_t number)
{
    const struct node *node = &graph->nodes[number];
    struct cb *c = graph_cb(graph, number);
    struct alike key = {
        .site = c->site, .node = number, .blocked = node->blocked, .since_least = c->since, .since_most = c->since};
    uint32_t target = node->count ? graph_target(graph, number, 0) : NOBODY;
    if (has_object(graph, node->blocked))
        key.on = node->on;
    else if (target != NOBODY)
        key.of = graph_cb(graph, target)->site;
    return key;
}

/* Returns NULL if there is no room. */
static struct alike *find(struct alikes *alikes, const struct alike *key)
{
    uint32_t *head = &alikes->heads[hash_of(key) % HEADS];
    for (uint32_t at = *head; at; at = alikes->all[at - 1].next)
        if (equals(&alikes->all[at - 1], key))
            return &alikes->all[at - 1];
    if (alikes->used == ALIKE_MOST)
        return NULL;
    struct alike *alike = &alikes->all[alikes->used];
    *alike = *key;
    alike->next = *head;
    *head = ++alikes->used;
    return alike;
}

/* If some thread could not be held, a name may vanish with its strand. */
static bool have_one_name(const struct graph *graph, uint32_t one, uint32_t other)
{
    return !graph->view.loose && !strcmp(cb_name(graph_cb(graph, one)), cb_name(graph_cb(graph, other)));
}

static void add(const struct graph *graph, struct alikes *alikes, uint32_t number)
{
    struct alike key = key_of(graph, number), *alike = find(alikes, &key);
    if (!alike) {
        alikes->others++;
        return;
    }
    const struct cb *c = graph_cb(graph, number);
    uint64_t id = graph->roll.entries[number].id;
    alike->names_differ |= !have_one_name(graph, alike->node, number);
    alike->blockers_differ |= graph->nodes[alike->node].on != graph->nodes[number].on;
    alike->last = id > alike->last ? id : alike->last;
    alike->since_least = c->since < alike->since_least ? c->since : alike->since_least;
    alike->since_most = c->since > alike->since_most ? c->since : alike->since_most;
    alike->count++;
}

static void say_alike(const struct graph *graph, const struct alike *alike)
{
    struct cb *c = graph_cb(graph, alike->node);
    const struct node *node = &graph->nodes[alike->node];
    int64_t now = platform_now(graph->view.thread->sub);
    char name[STRAND_NAME], words[WORDS_MOST], where[LOCATION_WORDS + 16];
    blockers_name(graph, alike->node, name);
    inspect_words(&graph->view, c, node->blocked, node->on, words, sizeof words);
    output_say(graph->view.out, 0, "%zu strands, %s%s to #%llu\n", alike->count, name,
               alike->names_differ ? " and others" : "", (unsigned long long)alike->last);
    output_say(graph->view.out, 4, "%s%s, since %.1f to %.1f ms%s\n",
               alike->blockers_differ ? "each as the first: " : "", words, (double)(now - alike->since_most) / 1e6,
               (double)(now - alike->since_least) / 1e6, spawned(graph, c, where, sizeof where));
    blockers_say(graph, alike->node, 8);
}

/* Largest groups first. */
static void say_alikes(const struct graph *graph, struct alikes *alikes)
{
    for (;;) {
        struct alike *largest = &alikes->all[0];
        for (uint32_t i = 1; i < alikes->used; i++)
            if (alikes->all[i].count > largest->count)
                largest = &alikes->all[i];
        if (!largest->count)
            break;
        if (largest->count == 1)
            say_strand(graph, largest->node);
        else
            say_alike(graph, largest);
        largest->count = 0;
    }
    if (alikes->others)
        output_say(graph->view.out, 0, "%zu strands more, for which there is no room\n", alikes->others);
}

static void say_grouped(const struct graph *graph, struct alikes *alikes)
{
    for (uint32_t i = 0; i < graph->roll.count; i++)
        if (is_blocked(graph, i))
            add(graph, alikes, i);
    say_alikes(graph, alikes);
}

/* ---- cycles ----------------------------------------------------------------------------------------------- */

static void say_cycle(const struct graph *graph, const struct cycle *cycle)
{
    char name[STRAND_NAME], step[2 * WORDS_MOST];
    uint32_t at = cycle->first;
    struct output *out = graph->view.out;
    output_say(out, 0, cycle->length == 1 ? "%u strand waits for itself:\n" : "%u strands wait for each other:\n",
               cycle->length);
    for (uint32_t i = 0; i < cycle->length && i < CYCLE_LINES; i++) {
        uint32_t next = graph->nodes[at].cycle;
        output_say(out, 4, "%s %s\n", blockers_name(graph, at, name),
                   blockers_step(graph, at, next, step, sizeof step));
        at = next;
    }
    if (cycle->length > CYCLE_LINES)
        output_say(out, 4, "and so on, %u more, back to %s\n", cycle->length - CYCLE_LINES,
                   blockers_name(graph, cycle->first, name));
}

static void say_cycles(const struct graph *graph)
{
    for (size_t i = 0; i < graph->cycles_kept; i++)
        say_cycle(graph, &graph->cycles[i]);
    if (graph->cycle_count > graph->cycles_kept)
        output_say(graph->view.out, 0, "and %zu cycles more, none of them shorter\n",
                   graph->cycle_count - graph->cycles_kept);
}

/* ---- in one line ----------------------------------------------------------------------------------------- */

static size_t live(const struct graph *graph)
{
    return graph->roll.count - graph->roll.over - graph->idle + graph->roll.left_out;
}

struct line {
    char *text;
    size_t size, used, items;
};

/* Returns false if the item does not fit beside the number of those that are left out. */
static bool append(struct line *line, const char *item)
{
    size_t length = strlen(item);
    if (line->used + length + TAIL >= line->size)
        return false;
    line->used +=
        (size_t)snprintf(line->text + line->used, line->size - line->used, "%s%s", line->items ? ", " : ": ", item);
    line->items++;
    return true;
}

static void begin_line(struct line *line, const struct graph *graph)
{
    char who[64], cycles[48] = "";
    size_t blocked = graph->blocked, all = live(graph), in_cycles = graph->cycle_strands;
    if (blocked < all || !all)
        snprintf(who, sizeof who, "%zu of %zu strands", blocked, all);
    else
        snprintf(who, sizeof who, all == 1 ? "the only strand" : "all %zu strands", all);
    if (in_cycles && in_cycles == blocked)
        snprintf(cycles, sizeof cycles, " for each other");
    else if (in_cycles)
        snprintf(cycles, sizeof cycles, ", %zu of them for each other", in_cycles);
    int length = snprintf(line->text, line->size, "%s %s%s", who, blocked == 1 ? "waits" : "wait", cycles);
    line->used = (size_t)length < line->size ? (size_t)length : line->size - 1;
}

static void end_line(struct line *line, size_t count)
{
    if (line->items < count && line->size - line->used > 1)
        snprintf(line->text + line->used, line->size - line->used, ", and %zu more", count - line->items);
}

static void summarize_cycle(struct line *line, const struct graph *graph)
{
    char item[2 * WORDS_MOST];
    const struct cycle *cycle = &graph->cycles[0];
    uint32_t at = cycle->first;
    bool room = true;
    for (uint32_t i = 0; i < cycle->length && room; i++) {
        uint32_t next = graph->nodes[at].cycle;
        room = append(line, blockers_brief(graph, at, next, item, sizeof item));
        at = next;
    }
    end_line(line, graph->cycle_strands);
}

static void summarize_waits(struct line *line, const struct graph *graph)
{
    char item[2 * WORDS_MOST];
    bool room = true;
    for (uint32_t i = 0; i < graph->roll.count && room; i++)
        if (is_blocked(graph, i))
            room = append(line, blockers_brief_wait(graph, i, item, sizeof item));
    end_line(line, graph->blocked);
}

static void summarize(const struct graph *graph, char *text, size_t size)
{
    struct line line = {.text = text, .size = size};
    begin_line(&line, graph);
    if (graph->cycles_kept)
        summarize_cycle(&line, graph);
    else
        summarize_waits(&line, graph);
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

static void say_all(const struct graph *graph, struct alikes *alikes)
{
    struct output *out = graph->view.out;
    output_say(out, 0, "%zu of %zu strands are blocked", graph->blocked, live(graph));
    if (graph->cycle_count)
        output_say(out, 0, ", %zu of them in %zu cycle%s", graph->cycle_strands, graph->cycle_count,
                   graph->cycle_count == 1 ? "" : "s");
    output_say(out, 0, "\n");
    if (graph->roll.left_out)
        output_say(out, 0, "%zu are left out: there was no room for them\n", graph->roll.left_out);
    if (graph->blocked > SINGLE_MOST)
        say_grouped(graph, alikes);
    else
        say_each(graph);
    say_cycles(graph);
}

/* The graph, with the lines in its `out`, or the summary in text. Returns 0 or a negated errno code, and then there is
 * none. */
static int make(struct thread *thread, int fd, bool logs, char *text, size_t size, struct graph **out)
{
    struct graph *graph;
    void *memory = NULL;
    int error = stopped_run_begin(thread);
    if (error)
        return error;
    error = graph_open(&graph, thread, fd);
    if (!error && (error = arch_map(sizeof(struct alikes), &memory)))
        graph_close(graph);
    if (!error) {
        if (logs)
            output_log(&graph->out, runtime_of(thread));
        inspect_lines_open(&graph->view, logs);
        bool still = graph_make(graph);
        if (still && text)
            summarize(graph, text, size);
        else if (still)
            say_all(graph, memory);
        stopped_run_let_go(thread);
        inspect_lines_close(&graph->view);
        arch_unmap(memory, sizeof(struct alikes));
        *out = graph;
    }
    stopped_run_end(thread);
    return error;
}

static int print(struct thread *thread, int fd, bool logs)
{
    struct graph *graph;
    int error = make(thread, fd, logs, NULL, 0, &graph);
    if (!error) {
        error = graph->out.error;
        output_flush(&graph->out);
        if (!error)
            error = graph->out.error;
        graph_close(graph);
    }
    return error == -ENOMEM ? list_plainly(thread, fd, logs, "the graph of waits") : error;
}

void graph_report(struct thread *thread)
{
    (void)print(thread, 2, true);
}

bool graph_summary(struct thread *thread, char *text, size_t size)
{
    struct graph *graph;
    text[0] = '\0';
    int error = make(thread, 2, false, text, size, &graph);
    if (error) {
        snprintf(text, size, "%s", error == -ENOMEM ? "no memory for the graph of waits" : "a dump is under way");
        return false;
    }
    bool cycles = graph->cycles_kept > 0;
    graph_close(graph);
    return cycles;
}

static int print_one(struct thread *thread, void *arg)
{
    return print(thread, *(int *)arg, false);
}

int strand_waits_print(int fd)
{
    struct thread *thread = thread_self();
    return thread ? print(thread, fd, false) : stopped_run_each_run(print_one, &fd);
}

const struct reports debug_reports = {dump_from, dump_report, graph_report, graph_summary};
