/*
 * The pipeline as a whole, and its last stage: the strand that owns it all collects the results and writes the report.
 */
#include "pipeline.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const strand_kind STOPPED = STRAND_KIND("stopped", &STRAND_ERROR);

/* ---- what is collected ----------------------------------------------------------------------- */

struct lines {
    char **at;
    size_t count, room, size; /* size: their total bytes, with newlines */
};

static void lines_free(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->at[i]);
    free(lines->at);
}

static void free_text(char **text)
{
    free(*text);
}

static void add_group(struct lines *lines, const struct group *group)
{
    size_t size = group->key.length + 64;
    if (lines->count == lines->room) {
        size_t room = lines->room * 2 + 64;
        lines->at = must_have(realloc(lines->at, room * sizeof *lines->at));
        lines->room = room;
    }
    char *line = lines->at[lines->count] = must_have(malloc(size));
    int length = group->key.status
                     ? snprintf(line, size, "path %.*s %d", (int)group->key.length, group->key.text, group->key.status)
                     : snprintf(line, size, "minute %.*s", (int)group->key.length, group->key.text);
    length += snprintf(line + length, size - (size_t)length, " %llu %llu", (unsigned long long)group->sum.requests,
                       (unsigned long long)group->sum.bytes);
    lines->count++;
    lines->size += (size_t)length + 1;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- the report ------------------------------------------------------------------------------ */

static char *text_of(const struct lines *lines)
{
    char *text = must_have(malloc(lines->size + 1)), *at = text;
    for (size_t i = 0; i < lines->count; i++) {
        at = stpcpy(at, lines->at[i]);
        *at++ = '\n';
    }
    return text;
}

/* Not strand_write_all: after an error it could not tell how much has gone. */
static void write_report(struct pipeline *p, struct lines *lines)
{
    if (lines->count)
        qsort(lines->at, lines->count, sizeof *lines->at, compare);
    char *text __attribute__((cleanup(free_text))) = text_of(lines);
    p->report_size = lines->size;
    while (p->report_written < p->report_size) {
        int64_t put = strand_write(STDOUT_FILENO, text + p->report_written, p->report_size - p->report_written);
        if (put < 0)
            strand_throw(&STRAND_SYSTEM, "standard output: %s", strerror((int)-put));
        p->report_written += (size_t)put;
    }
}

/* How full the buffers are tells which stage the others wait for. */
static void report_progress(struct pipeline *p)
{
    char text[160];
    size_t batches = 0;
    for (int i = 0; i < p->groupers; i++)
        batches += STRAND_CHAN_LENGTH(p->batches[i]);
    int length =
        snprintf(text, sizeof text, "pipeline: %llu lines, %.1f MB, %llu bad; %zu blocks and %zu batches wait\n",
                 (unsigned long long)p->lines, (double)p->bytes_read / 1e6, (unsigned long long)p->bad,
                 STRAND_CHAN_LENGTH(p->blocks), batches);
    STRAND_IGNORE(strand_write_all(STDERR_FILENO, text, (size_t)length));
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

/* The one wait of the reporter. That somebody fails, that the deadline passes, and that Ctrl-C is hit interrupts it,
 * and needs no case. */
static void collect(struct pipeline *p, struct lines *lines)
{
    enum { RESULT, TICK, CASES };
    struct group *group __attribute__((cleanup(drop_group))) = NULL;
    strand_ticker ticker = strand_ticker_every(p->progress ? p->progress : STRAND_S);
    strand_case cases[CASES] = {[RESULT] = STRAND_ON_RECEIVE(p->results, &group)};
    if (p->progress)
        cases[TICK] = strand_on_tick(&ticker); /* else it stays a case that never happens */
    for (;;) {
        if (strand_select(cases, CASES, 0) == TICK) {
            report_progress(p);
        } else if (cases[RESULT].result == 0) {
            add_group(lines, group);
            drop_group(&group);
        } else {
            return; /* closed: all is there */
        }
    }
}

/* A signal becomes a failure, and that ends the pipeline as any other does. */
static void *watch_interrupt(void *signals)
{
    strand_wait_signal(*(strand_signals *)signals);
    strand_throw(&STOPPED, "interrupted");
}

/* The channels belong to the scope of the pipeline, so they outlast all its strands. What is under way in them when it
 * ends early is dropped. */
static void open_channels(struct pipeline *p, strand_scope scope)
{
    size_t room = (size_t)p->buffer, size = sizeof(strand_chan_attr);
    const strand_chan_attr blocks = {.size = size, .name = "blocks", .drop = drop_block};
    const strand_chan_attr batches = {.size = size, .name = "batches", .drop = drop_batch};
    const strand_chan_attr results = {.size = size, .name = "results", .drop = drop_group};
    p->blocks = STRAND_CHAN_OPEN_WITH(block_chan, scope, room, &blocks);
    for (int i = 0; i < p->groupers; i++)
        p->batches[i] = STRAND_CHAN_OPEN_WITH(batch_chan, scope, room, &batches);
    p->results = STRAND_CHAN_OPEN_WITH(group_chan, scope, room, &results);
}

void *report(void *arg)
{
    struct pipeline *p = arg;
    struct lines lines __attribute__((cleanup(lines_free))) = {0};
    STRAND_SIGNALS(interrupts, SIGINT);
    STRAND_DEADLINE(p->deadline ? strand_in(p->deadline) : (strand_time){0});
    STRAND_SCOPE(scope); /* left early, it cancels all that is spawned here and waits for it */
    open_channels(p, scope);
    strand watcher = strand_spawn_with(scope, STRAND_ATTR(.name = "interrupt"), watch_interrupt, &interrupts, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "reader"), read_blocks, p, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "parse"), parse_stage, p, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "group"), group_stage, p, 0);
    collect(p, &lines);
    write_report(p, &lines);
    strand_cancel(watcher, "the report is written");
    strand_scope_join(scope);
    return NULL;
}
