/*
 * A connection: requests come in, one after the other or many at once, and are answered in their order. Nothing is
 * allocated for a request.
 */
#include "httpd.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { NO_STATUS = 499 };

/* ---- input ----------------------------------------------------------------------------------- */

/* room.c, which ends connections, reads the two in the opposite order, so it never takes a phase that has just begun
 * for one that has lasted. */
static void wait_in(struct connection *c, enum phase phase, int64_t since)
{
    c->since = since;
    c->phase = phase;
}

static int64_t read_some(struct connection *c, char *buffer, size_t size)
{
    return c->tls ? secure_read(c, buffer, size) : strand_read(c->fd, buffer, size);
}

static int64_t read_before(struct connection *c, strand_time deadline)
{
    STRAND_DEADLINE(deadline);
    return read_some(c, c->in + c->end, IN_MOST - c->end);
}

/* False: the connection is over, or nothing has come and the server drains: what has come already can still be read
 * from a side that is shut down. */
static bool read_more(struct connection *c)
{
    bool fresh = c->begin == c->end;
    strand_time deadline = fresh ? strand_in(c->server->patience) : c->deadline;
    wait_in(c, fresh ? IDLE : READING, deadline.ns - (fresh ? c->server->patience : c->server->timeout));
    if (fresh && c->server->draining)
        strand_shutdown(c->fd, 0);
    int64_t got = read_before(c, deadline);
    if (got <= 0)
        return false;
    if (fresh) {
        c->deadline = strand_in(c->server->timeout);
        wait_in(c, READING, c->deadline.ns - c->server->timeout);
    }
    c->end += (size_t)got;
    return true;
}

/* ---- a request ------------------------------------------------------------------------------- */

enum { URL_MOST = 4096 };

static void work(struct connection *c)
{
    char path[URL_MOST + 2];
    const char *query;
    c->phase = WORKING;
    if (!http_should_keep_alive(&c->parser))
        c->close = true;
    if (c->request.url.length > URL_MOST)
        answer_status(c, 414, NULL);
    else if (!split_url(c, path, &query))
        answer_status(c, 400, NULL);
    else if (!answer_page(c, path, query))
        answer_file(c, path, query);
}

static void begin_answer(struct connection *c)
{
    c->server->begun++;
    c->owed++;
    c->logged = false;
}

/* Ends the own side in order. A client of TLS that takes nothing any more does not hold this up for longer than the
 * time for a request. (TLS ends without its end if the server itself has shut down the reading side, as it does to end
 * an idle connection: to the stream that looks as if the client had broken off.) */
static void end_sending(struct connection *c)
{
    if (c->tls) {
        STRAND_DEADLINE(strand_in(c->server->timeout));
        secure_end(c);
    }
    strand_shutdown(c->fd, 1);
}

/* Until the client ends its side, or the time for a request is over. A client that goes on sending gets no more. */
static void discard(struct connection *c)
{
    strand_time end = strand_in(c->server->timeout);
    STRAND_DEADLINE(end);
    wait_in(c, LINGERING, end.ns - c->server->timeout);
    while (read_some(c, c->in, sizeof c->in) > 0)
        continue;
}

/* The client may still be sending the rest of a refused request, or more requests than are answered. So the server ends
 * its side, and reads on for a while: closing at once would reset the connection, and the client would lose the
 * answer. */
static void linger(struct connection *c)
{
    STRAND_TRY {
        end_sending(c);
        discard(c);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
}

/* The last answer. */
static void finish(struct connection *c)
{
    flush(c, false);
    linger(c);
}

static void refuse(struct connection *c, int status)
{
    begin_answer(c);
    c->close = true;
    c->server->refused++;
    answer_status(c, status, status == 405 ? "Allow: GET, HEAD\r\n" : NULL);
    finish(c);
}

static void talk(struct connection *c)
{
    while (!c->close) {
        switch (parse_request(c)) {
        case COMPLETE:
            begin_answer(c);
            work(c);
            next_request(c);
            break;
        case BROKEN:
            refuse(c, c->request.status);
            return;
        case MORE_NEEDED:
            flush(c, false);
            if (!make_room(c)) {
                refuse(c, c->request.framing.place <= TARGET ? 414 : 431);
                return;
            }
            if (!read_more(c)) {
                end_sending(c);
                return;
            }
        }
    }
    finish(c);
}

/* Too slow: to send its request, to take its answer, or we are too slow to find one. */
static void time_out(struct connection *c)
{
    if (c->phase == READING) {
        refuse(c, 408);
    } else if (c->phase == WORKING && !c->started) {
        c->close = true;
        answer_status(c, 503, NULL);
        c->answered--; /* it is cut all the same */
        finish(c);
    } else if (c->phase == IDLE) {
        end_sending(c);
    }
}

static void talk_in_time(struct connection *c)
{
    STRAND_TRY {
        talk(c);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        time_out(c);
    }
    STRAND_END
}

/* ---- the strand ------------------------------------------------------------------------------ */

static void *trim_memory(void *arg)
{
    malloc_trim(0);
    return arg;
}

/* The allocator keeps the memory of a burst's connections, in pieces, until malloc_trim returns it to the system. */
static void return_memory(void)
{
    STRAND_SHIELD;
    STRAND_TRY {
        strand_offload(trim_memory, NULL);
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
    }
    STRAND_END
}

/* On whatever way the strand ends. */
static void end_connection(struct connection **at)
{
    struct connection *c = *at;
    struct server *server = c->server;
    server->cut += c->owed;
    if (c->owed && !c->logged)
        log_request(c, NO_STATUS, 0);
    bool burst_is_over = delist(c);
    if (c->tls)
        secure_close(c);
    else
        strand_close(c->fd);
    free(c);
    if (burst_is_over)
        return_memory();
}

/* False: there is no agreement with the client, which takes its time for that as for a request. */
static bool agree(struct connection *c)
{
    strand_time end = strand_in(c->server->timeout);
    if (!c->server->security.context)
        return true;
    STRAND_DEADLINE(end);
    wait_in(c, READING, end.ns - c->server->timeout);
    return secure_begin(c);
}

void *serve_connection(void *arg)
{
    struct connection *c __attribute__((cleanup(end_connection))) = arg;
    c->phase = WORKING;
    next_request(c);
    enlist(c);
    STRAND_TRY {
        if (agree(c))
            talk_in_time(c);
    }
    STRAND_CATCH(&CLIENT_GONE, e) {
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    return NULL;
}
