/*
 * The first stage: the file in big blocks, cut between two lines.
 */
#define _GNU_SOURCE
#include "pipeline.h"

#include <stdlib.h>
#include <string.h>

void drop_block(void *pointer)
{
    struct block **block = pointer;
    if (*block && atomic_fetch_sub_explicit(&(*block)->users, 1, memory_order_acq_rel) == 1)
        free(*block);
    *block = NULL;
}

/* A block that begins with these bytes, of a line that the one before had begun. */
static struct block *block_new(uint64_t first_line, const char *bytes, size_t size)
{
    struct block *block = must_have(malloc(sizeof *block));
    atomic_init(&block->users, 1);
    block->first_line = first_line;
    block->size = size;
    memcpy(block->bytes, bytes, size);
    return block;
}

static uint64_t count_lines(const char *at, const char *end)
{
    uint64_t lines = 0;
    for (; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        lines++;
    return lines;
}

/* Sends the block, which then belongs to the receiver. While the parsers are busy, the strand waits here and does not
 * read, so the writer of the pipe waits too. */
static void send_block(struct pipeline *p, struct block **block)
{
    strand_must(STRAND_SEND(p->blocks, block));
    *block = NULL;
}

/* The whole lines, up to end, go on; what is behind them goes to a block of its own. */
static void send_lines(struct pipeline *p, struct block **block, const char *end)
{
    struct block *old = *block;
    uint64_t lines = count_lines(old->bytes, end);
    size_t whole = (size_t)(end - old->bytes);
    struct block *next __attribute__((cleanup(drop_block))) =
        block_new(old->first_line + lines, end, old->size - whole);
    old->size = whole;
    send_block(p, block);
    *block = next;
    next = NULL;
}

/* Takes `fresh` new bytes in. The middle of a line that fills a whole block is left out: the rest is still longer than
 * any good line, and so one bad record. */
static void take_in(struct pipeline *p, struct block **block, size_t fresh)
{
    struct block *b = *block;
    const char *newline = memrchr(b->bytes + b->size, '\n', fresh);
    b->size += fresh;
    atomic_fetch_add_explicit(&p->bytes_read, fresh, memory_order_relaxed);
    if (newline)
        send_lines(p, block, newline + 1);
    else if (b->size == BLOCK_SIZE)
        b->size = BLOCK_SIZE / 2;
}

void *read_blocks(void *arg)
{
    struct pipeline *p = arg;
    struct block *block __attribute__((cleanup(drop_block))) = block_new(1, "", 0);
    int64_t got;
    while ((got = strand_read(p->fd, block->bytes + block->size, BLOCK_SIZE - block->size)) > 0)
        take_in(p, &block, (size_t)got);
    if (got < 0)
        strand_throw(&STRAND_SYSTEM, "%s: %s", p->name, strerror((int)-got));
    if (block->size)
        send_block(p, &block);
    STRAND_CHAN_CLOSE(p->blocks);
    return NULL;
}
