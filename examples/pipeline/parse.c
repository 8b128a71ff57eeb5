/*
 * The second stage: lines become parts of sums, and go to the groupers in batches. A line is
 *
 *     127.0.0.1 - - [03/Oct/2025:12:41:59 +0000] "GET /path?query HTTP/1.1" 200 1234 "referrer" "user agent"
 *
 * and one that differs is a bad record; so a line that was cut off is one.
 */
#include "pipeline.h"

#include <stdlib.h>
#include <string.h>

/* A line that fills half a block has more (read.c). */
enum { LINE_MOST = 8192, MINUTE = sizeof "03/Oct/2025:12:41" - 1, ISO_MINUTE = sizeof "2025-10-03T12:41" - 1 };

const strand_kind BAD_RECORD = STRAND_KIND("bad record", &STRAND_ERROR);

void drop_batch(void *pointer)
{
    struct batch **batch = pointer;
    if (*batch)
        drop_block(&(*batch)->block);
    free(*batch);
    *batch = NULL;
}

/* ---- a line ---------------------------------------------------------------------------------- */

/* The rest of a line. The functions that take something from it return whether it was there. */
struct rest {
    char *at, *end;
};

struct record {
    char *minute; /* as it stands in the line */
    struct key path;
    uint64_t bytes;
};

static bool take_until(struct rest *rest, char mark, char **begin, size_t *length)
{
    char *found = memchr(rest->at, mark, (size_t)(rest->end - rest->at));
    if (!found)
        return false;
    *begin = rest->at;
    *length = (size_t)(found - rest->at);
    rest->at = found + 1;
    return true;
}

static bool fits(char c, char shape)
{
    switch (shape) {
    case '0':
        return c >= '0' && c <= '9';
    case 'a':
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    case '+':
        return c == '+' || c == '-';
    default:
        return c == shape;
    }
}

/* Text of this shape: 0 is any digit, a is any letter. */
static bool take(struct rest *rest, const char *shape)
{
    char *at = rest->at;
    for (; *shape; shape++, at++)
        if (at == rest->end || !fits(*at, *shape))
            return false;
    rest->at = at;
    return true;
}

static bool take_words(struct rest *rest, int count)
{
    char *word;
    size_t length;
    while (count-- > 0)
        if (!take_until(rest, ' ', &word, &length) || length == 0)
            return false;
    return true;
}

/* Up to 18 digits and a space. */
static bool take_number(struct rest *rest, uint64_t *number)
{
    char *digits;
    size_t length;
    *number = 0;
    if (!take_until(rest, ' ', &digits, &length) || length < 1 || length > 18)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!fits(digits[i], '0'))
            return false;
        *number = *number * 10 + (uint64_t)(digits[i] - '0');
    }
    return true;
}

/* A path without its query; httpd writes what is not printable as \xNN. FNV-1a: quick for so few bytes. */
static bool take_path(struct rest *rest, struct key *path)
{
    char *text;
    size_t length, i;
    uint64_t hash = 0xcbf29ce484222325;
    if (!take_until(rest, ' ', &text, &length))
        return false;
    for (i = 0; i < length && text[i] != '?'; i++) {
        if ((unsigned char)text[i] < ' ')
            return false;
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
    }
    *path = (struct key){.text = text, .hash = hash, .length = (uint32_t)i};
    if (i == 0) /* of what was no request at all */
        *path = (struct key){.text = "-", .hash = hash, .length = 1};
    return true;
}

static bool take_status(struct rest *rest, struct key *path)
{
    const char *digits = rest->at;
    if (!take(rest, "000 ") || *digits == '0')
        return false;
    path->status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + digits[2] - '0';
    path->hash = (path->hash ^ (uint64_t)path->status) * 0x9e3779b97f4a7c15;
    return true;
}

static bool take_quoted(struct rest *rest)
{
    char *text;
    size_t length;
    return take(rest, "\"") && take_until(rest, '"', &text, &length);
}

/* NULL, or what is wrong with it. */
static const char *parse_line(struct rest rest, struct record *record)
{
    if (rest.end - rest.at > LINE_MOST)
        return "it is longer than 8192 bytes";
    if (!take_words(&rest, 3))
        return "it does not begin with an address and two names";
    record->minute = rest.at + 1;
    if (!take(&rest, "[00/aaa/0000:00:00:00 +0000] "))
        return "the date is not like [03/Oct/2025:12:41:59 +0000]";
    if (!take(&rest, "\"") || !take_words(&rest, 1) || !take_path(&rest, &record->path) || !take(&rest, "HTTP/0.0\" "))
        return "the request is not like \"GET /path HTTP/1.1\"";
    if (!take_status(&rest, &record->path))
        return "the status is not a number of three digits";
    if (!take_number(&rest, &record->bytes))
        return "the length is not a number";
    if (!take_quoted(&rest) || !take(&rest, " ") || !take_quoted(&rest) || rest.at != rest.end)
        return "it does not end with a referrer and a user agent";
    return NULL;
}

/* ---- a parser -------------------------------------------------------------------------------- */

struct parser {
    struct pipeline *pipeline;
    struct block *block;
    struct batch *batches[WORKERS_MOST]; /* for each grouper, those that are not full yet */
    struct part minute;                  /* of lines that follow one another; requests 0: there is none */
    char minute_read[MINUTE];            /* as it stood in the line */
};

static void drop_parser(struct parser *parser)
{
    for (int i = 0; i < parser->pipeline->groupers; i++)
        drop_batch(&parser->batches[i]);
    drop_block(&parser->block);
}

static void send_batch(struct parser *parser, int grouper)
{
    strand_must(STRAND_SEND(parser->pipeline->batches[grouper], &parser->batches[grouper]));
    parser->batches[grouper] = NULL;
}

static struct batch *batch_new(struct block *block)
{
    struct batch *batch = must_have(malloc(sizeof *batch));
    atomic_fetch_add_explicit(&block->users, 1, memory_order_relaxed);
    batch->block = block;
    batch->count = 0;
    return batch;
}

/* All parts of a key go to the same grouper. */
static void add_part(struct parser *parser, const struct part *part)
{
    int grouper = (int)(part->key.hash % (unsigned)parser->pipeline->groupers);
    struct batch **batch = &parser->batches[grouper];
    if (!*batch)
        *batch = batch_new(parser->block);
    (*batch)->parts[(*batch)->count++] = *part;
    if ((*batch)->count == BATCH_PARTS)
        send_batch(parser, grouper);
}

static void end_minute(struct parser *parser)
{
    if (parser->minute.sum.requests)
        add_part(parser, &parser->minute);
    parser->minute.sum = (struct sum){0};
}

/* 03/Oct/2025:12:41 becomes 2025-10-03T12:41, which sorts: right where it stands, for the block is ours. */
static bool turn_round(char *minute)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char read[MINUTE];
    memcpy(read, minute, MINUTE);
    for (int month = 0; month < 12; month++) {
        if (memcmp(months + 3 * month, read + 3, 3) != 0)
            continue;
        memcpy(minute, read + 7, 4);
        memcpy(minute + 4, (char[]){'-', (char)('0' + (month + 1) / 10), (char)('0' + (month + 1) % 10), '-'}, 4);
        memcpy(minute + 8, read, 2);
        minute[10] = 'T';
        memcpy(minute + 11, read + 12, 5);
        return true;
    }
    return false;
}

/* The lines of a minute mostly stand together, so their sum is made here. */
static bool begin_minute(struct parser *parser, char *minute)
{
    end_minute(parser);
    memcpy(parser->minute_read, minute, MINUTE);
    if (!turn_round(minute))
        return false;
    uint64_t hash = 0xcbf29ce484222325;
    for (int i = 0; i < ISO_MINUTE; i++)
        hash = (hash ^ (unsigned char)minute[i]) * 0x100000001b3;
    parser->minute.key = (struct key){.text = minute, .hash = hash, .length = ISO_MINUTE};
    return true;
}

/* NULL, or what is wrong with the line. */
static const char *add_line(struct parser *parser, struct rest line)
{
    struct record record;
    const char *wrong = parse_line(line, &record);
    if (wrong)
        return wrong;
    bool same_minute = parser->minute.sum.requests && memcmp(record.minute, parser->minute_read, MINUTE) == 0;
    if (!same_minute && !begin_minute(parser, record.minute))
        return "there is no such month";
    parser->minute.sum.requests++;
    parser->minute.sum.bytes += record.bytes;
    add_part(parser, &(struct part){record.path, {1, record.bytes}});
    return NULL;
}

/* Throws. The exception ends this strand, then its stage, which cancels the other parsers, then the pipeline. A message
 * has room for 200 bytes, so it has only the end of a long name. */
static void bad_line(struct pipeline *p, uint64_t number, const char *wrong, bool cut_off)
{
    size_t length = strlen(p->name);
    atomic_fetch_add_explicit(&p->bad, 1, memory_order_relaxed);
    if (!p->skip_bad)
        strand_throw(&BAD_RECORD, "%s:%llu: %s%s", p->name + (length > 80 ? length - 80 : 0),
                     (unsigned long long)number, wrong, cut_off ? " (the file ends in it)" : "");
}

static void parse_block(struct parser *parser)
{
    struct block *block = parser->block;
    char *at = block->bytes, *end = at + block->size, *newline;
    uint64_t lines = 0;
    for (; at < end; at = newline + 1, lines++) {
        newline = memchr(at, '\n', (size_t)(end - at));
        bool cut_off = !newline;
        if (cut_off)
            newline = end;
        const char *wrong = add_line(parser, (struct rest){at, newline});
        if (wrong)
            bad_line(parser->pipeline, block->first_line + lines, wrong, cut_off);
    }
    end_minute(parser);
    atomic_fetch_add_explicit(&parser->pipeline->lines, lines, memory_order_relaxed);
}

static void *parse_blocks(void *arg)
{
    struct parser parser __attribute__((cleanup(drop_parser))) = {.pipeline = arg};
    while (STRAND_RECEIVE(parser.pipeline->blocks, &parser.block) == 0) {
        parse_block(&parser);
        for (int i = 0; i < parser.pipeline->groupers; i++)
            if (parser.batches[i])
                send_batch(&parser, i);
        drop_block(&parser.block);
    }
    return NULL;
}

/* Several strands that work side by side are one stage: the strand that owns their scope. The first that fails cancels
 * the others (TOGETHER), and only when all have come to a good end are the channels closed that they have filled. */
void *parse_stage(void *arg)
{
    struct pipeline *p = arg;
    STRAND_SCOPE_WITH(parsers, STRAND_TOGETHER);
    for (int i = 0; i < p->parsers; i++)
        strand_spawn_with(parsers, STRAND_ATTR(.name = "parser"), parse_blocks, p, 0);
    strand_scope_join(parsers);
    for (int i = 0; i < p->groupers; i++)
        STRAND_CHAN_CLOSE(p->batches[i]);
    return NULL;
}
