/*
 * pipeline: what was asked for most, and when, in an access log (that of examples/httpd, the combined format).
 *
 *     file -> reader --blocks--> parsers --batches--> groupers --results--> reporter -> report
 *                      (one channel)       (one for each)       (one channel)
 *
 * What it shows: stages that hand their work on through channels with little room. A stage that is slow stops those
 * before it, so a log of any size is worked on in the same memory. A stage that has come to its end closes what it has
 * filled, and so the next one comes to its end. And all that can end it early is one and the same to the stages: a bad
 * record and Ctrl-C are exceptions of some strand, the deadline is one of a block, and the scope of the pipeline
 * cancels the strands that still run. No stage has a line of code for that, but clean-ups: what is under way between
 * two stages belongs to the sender, then to the channel, then to the receiver, and goes with it.
 *
 * Where to begin: report.c has the pipeline as a whole; then read.c, parse.c, group.c, in the order of the stages.
 */
#ifndef PIPELINE_H
#define PIPELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strand.h>
#include <strand/chan.h>
#include <strand/io.h>
#include <strand/pool.h>

enum { BLOCK_SIZE = 1 << 16, BATCH_PARTS = 256, WORKERS_MOST = 64 };

/* ---- what goes from stage to stage ----------------------------------------------------------- */

/* Whole lines of the file; at its end the last may lack its newline. It lives until the parser and the batches that
 * point into it are done with it. */
struct block {
    atomic_int users;
    uint64_t first_line; /* its number, from 1 */
    size_t size;
    char bytes[BLOCK_SIZE];
};

/* What is added up. The text is a path, or, with status 0, a minute. */
struct key {
    const char *text;
    uint64_t hash;
    uint32_t length;
    int status;
};

struct sum {
    uint64_t requests, bytes;
};

struct part {
    struct key key; /* its text lies in the block */
    struct sum sum;
};

struct batch {
    struct block *block; /* one use of it */
    size_t count;
    struct part parts[BATCH_PARTS];
};

/* All parts of one key; its text lies behind it. */
struct group {
    struct key key;
    struct sum sum;
};

typedef STRAND_CHAN(struct block *) block_chan;
typedef STRAND_CHAN(struct batch *) batch_chan;
typedef STRAND_CHAN(struct group *) group_chan;

/* For the clean-up of a variable that points to one, and for what is left in a channel: give it up, and set it to NULL.
 * NULL is none. */
void drop_block(void *block);
void drop_batch(void *batch);
void drop_group(void *group);

/* ---- the pipeline ---------------------------------------------------------------------------- */

struct pipeline {
    const char *name; /* of the file, for messages */
    int fd, threads, parsers, groupers, buffer;
    int64_t deadline, progress; /* ns; 0: none */
    bool skip_bad;

    block_chan blocks;
    batch_chan batches[WORKERS_MOST]; /* one for each grouper */
    group_chan results;

    atomic_uint_fast64_t bytes_read, lines, bad; /* how far it has come */
    size_t report_size, report_written;
};

extern const strand_kind BAD_RECORD; /* names file, line and what is wrong */
extern const strand_kind STOPPED;    /* by Ctrl-C */

/* The stages, each the function of a strand. They end when what they read from has, or by an exception. */
strand_fn read_blocks, parse_stage, group_stage;
/* The root: runs them all and writes the report. */
strand_fn report;

/* Memory of malloc; NULL is thrown as STRAND_SYSTEM. */
void *must_have(void *memory);

#endif
