/*
 * Asking backends whether they are well, and ending idle links.
 */
#include "proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What has come of an answer: -1: more is needed; 0: it is not well, for the reason in `why`; 1: its head says that all
 * is well. */
static int judge(const struct link *link, char why[TEXT_OF_FAILURE])
{
    struct head head = {.status = 100};
    for (size_t at = 0, used; head.status < 200; at += used) { /* interim answers say nothing */
        struct framing framing = {.place = STATUS_PROTOCOL, .most = FRAMING_MOST};
        enum framed framed = frame(&framing, link->in + at, link->end - at, &used);
        if (framed == FRAMED_MORE && link->end < HEAD_MOST)
            return -1;
        if (framed != FRAMED_HEAD || head_of_response(&head, (struct span){link->in + at, used}) != 0) {
            snprintf(why, TEXT_OF_FAILURE, "what it sends is no head of an answer");
            return 0;
        }
    }
    snprintf(why, TEXT_OF_FAILURE, "its answer has the status %d", head.status);
    return head.status < 400;
}

static void end_link(struct link **link)
{
    if (*link)
        link_close(*link);
}

static bool ask(const struct check *check, char why[TEXT_OF_FAILURE])
{
    struct server *server = check->server;
    struct undialled undialled;
    struct link *link __attribute__((cleanup(end_link))) = link_dial(server, check->backend, &undialled);
    if (!link) {
        snprintf(why, TEXT_OF_FAILURE, "%s", undialled.why);
        return false;
    }
    sink_text(&link->out, "GET ");
    sink_text(&link->out, server->check_path);
    sink_text(&link->out, " HTTP/1.1\r\nHost: ");
    sink_text(&link->out, check->backend->name);
    sink_text(&link->out, "\r\nUser-Agent: strand-proxy\r\nConnection: close\r\n\r\n");
    snprintf(why, TEXT_OF_FAILURE, "it takes no request");
    if (sink_flush(&link->out) < 0)
        return false;
    int verdict;
    while ((verdict = judge(link, why)) < 0) {
        int64_t got = stream_read(&link->stream, link->in + link->end, HEAD_MOST - link->end, server->limits.response);
        if (got <= 0) {
            snprintf(why, TEXT_OF_FAILURE, got == -ETIMEDOUT ? "it does not answer" : "it ends without an answer");
            return false;
        }
        link->end += (size_t)got;
    }
    return verdict;
}

static bool ask_in_time(const struct check *check, char why[TEXT_OF_FAILURE])
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(check->server->limits.check));
        return ask(check, why);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        snprintf(why, TEXT_OF_FAILURE, "a check takes too long");
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        snprintf(why, TEXT_OF_FAILURE, "%s", strand_exception_text(e));
    }
    STRAND_END
    return false;
}

void *check_backend(void *arg)
{
    const struct check *check = arg;
    struct backend *backend = check->backend;
    int row = 0; /* of answers that contradict the mark */
    for (;; strand_sleep(check->server->check_every)) {
        char why[TEXT_OF_FAILURE];
        bool well = ask_in_time(check, why);
        row = well == backend->sick ? row + 1 : 0;
        if (row < (well ? check->server->rise : check->server->fall))
            continue;
        row = 0;
        backend->sick = !well;
        if (well) {
            backend->failures = 0;
            backend->down_until = 0;
        }
        fprintf(stderr, "proxy: backend %s is %s%s\n", backend->name, well ? "well" : "not well: ", well ? "" : why);
    }
}

void *end_idle_links(void *arg)
{
    struct server *server = arg;
    for (;;) {
        strand_sleep(STRAND_S);
        for (int i = 0; i < server->backend_count; i++)
            links_end(server, &server->backends[i], false);
    }
}
