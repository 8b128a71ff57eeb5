/*
 * The fuzzer's target for examples/httpd: what a client sends, up to a megabyte, goes through the server's framing and
 * parsing twice: in pieces as large as the server's input takes, and in small ones. Both have to see the same requests
 * and the same end. What is taken is looked at by other means than those of the server. See docs/testing.md.
 *
 *     build/fuzz/requests FILE      runs that input once
 */
#include "../../../examples/httpd/httpd.h"

#include <stdlib.h>
#include <string.h>

enum { OUTCOMES_MOST = 1 << 16 };

struct outcome {
    size_t at;  /* where the request has ended, or was found to be wrong */
    int status; /* 0: it is complete */
    uint64_t url;
};

struct run {
    const uint8_t *bytes;
    size_t length, fed;
    unsigned pieces; /* 0: as large as possible; or they are at most so long */
    uint32_t random;
    struct outcome outcomes[OUTCOMES_MOST];
    size_t count;
};

static struct run large, small;
static struct server server = {.timeout = STRAND_S};

#define WRONG(what) (fprintf(stderr, "fuzz: %s\n", what), abort())

/* ---- other means ------------------------------------------------------------------------------- */

static uint64_t hash(const char *bytes, size_t length)
{
    uint64_t hash = 14695981039346656037U;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211U;
    return hash;
}

static void check_head(const struct connection *c)
{
    const char *head = c->in + c->begin;
    size_t length = c->request.head;
    if (length < 4 || memcmp(head + length - 4, "\r\n\r\n", 4) != 0)
        WRONG("a head has another end");
    for (size_t i = 0; i < length; i++) {
        if (head[i] == '\n' && (i == 0 || head[i - 1] != '\r'))
            WRONG("a line feed stands alone");
        if (head[i] == '\r' && head[i + 1] != '\n')
            WRONG("a carriage return stands alone");
        if (head[i] == '\0' || (head[i] == '\n' && i + 1 < length && (head[i + 1] == ' ' || head[i + 1] == '\t')))
            WRONG("a head has a zero byte or is folded");
    }
}

static void check_span(const struct connection *c, struct span span)
{
    if (span.length && (span.at < c->begin || span.at + span.length >= c->begin + c->request.head))
        WRONG("a part of the request lies outside of its head");
}

static void check_request(struct connection *c)
{
    static char path[IN_MOST + 2];
    const char *query;
    check_head(c);
    check_span(c, c->request.url);
    for (int i = 0; i < HEADERS; i++)
        check_span(c, c->request.headers[i]);
    for (int i = 0; i < HEADERS; i++)
        if (strlen(header_of(c, (enum header)i)) > c->request.headers[i].length)
            WRONG("a header has no end");
    if (split_url(c, path, &query) && (path[0] != '/' || (query && strlen(query) > c->request.url.length)))
        WRONG("a path begins with no slash, or a query is too long");
}

/* ---- feeding ----------------------------------------------------------------------------------- */

static void note(struct run *run, struct connection *c, int status)
{
    if (run->count == OUTCOMES_MOST)
        return;
    run->outcomes[run->count++] = (struct outcome){run->fed - (c->end - c->parsed), status,
                                                   hash(c->in + c->request.url.at, c->request.url.length)};
}

static size_t piece_of(struct run *run, size_t room)
{
    size_t left = run->length - run->fed, most = left < room ? left : room;
    run->random = run->random * 1664525 + 1013904223;
    size_t wanted = run->pieces ? 1 + (run->random >> 8) % run->pieces : most;
    return wanted < most ? wanted : most;
}

/* False: nothing more comes. */
static bool feed(struct run *run, struct connection *c)
{
    size_t piece = piece_of(run, IN_MOST - c->end);
    memcpy(c->in + c->end, run->bytes + run->fed, piece);
    c->end += piece;
    run->fed += piece;
    return piece;
}

static void *play(void *arg)
{
    struct run *run = arg;
    struct connection *c = malloc(sizeof *c);
    if (!c)
        abort();
    memset(c, 0, offsetof(struct connection, in));
    c->server = &server;
    next_request(c);
    for (bool goes_on = true; goes_on;) {
        switch (parse_request(c)) {
        case COMPLETE:
            check_request(c);
            note(run, c, 0);
            next_request(c);
            break;
        case BROKEN:
            if (c->request.status < 400 || c->request.status > 505)
                WRONG("a refusal has no status");
            note(run, c, c->request.status);
            goes_on = false;
            break;
        case MORE_NEEDED:
            goes_on = make_room(c) && feed(run, c);
        }
    }
    free(c);
    return NULL;
}

static void play_run(struct run *run, const uint8_t *bytes, size_t length, unsigned pieces, uint32_t random)
{
    run->bytes = bytes;
    run->length = length;
    run->fed = run->count = 0;
    run->pieces = pieces;
    run->random = random;
    strand_run(STRAND_OPTIONS(.threads = 1), play, run);
}

/* The first two bytes say how it comes. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const unsigned pieces[] = {1, 2, 7, 100, 5000};
    if (length < 2)
        return 0;
    play_run(&large, bytes + 2, length - 2, 0, 0);
    play_run(&small, bytes + 2, length - 2, pieces[bytes[0] % 5], bytes[1]);
    if (large.count != small.count)
        WRONG("other pieces make other requests");
    for (size_t i = 0; i < large.count; i++)
        if (memcmp(&large.outcomes[i], &small.outcomes[i], sizeof large.outcomes[i]) != 0)
            WRONG("in other pieces a request is another");
    return 0;
}
