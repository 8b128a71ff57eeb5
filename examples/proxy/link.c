/*
 * Connections to backends. Those without a request wait in their backend's pool; the one that was used last is taken
 * first, so that the others can end.
 */
#include "proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strand/names.h>
#include <sys/socket.h>

static struct link *pop(struct backend *backend)
{
    pthread_mutex_lock(&backend->lock);
    struct link *link = backend->idle;
    if (link) {
        backend->idle = link->next;
        backend->idle_count--;
    }
    pthread_mutex_unlock(&backend->lock);
    return link;
}

/* What came without a request must not be the answer to the next one, which may be another client's. */
struct link *link_take(struct backend *backend)
{
    struct link *link;
    while ((link = pop(backend)) && !stream_is_quiet(&link->stream))
        link_close(link);
    if (link)
        link->reused = true;
    return link;
}

static struct link *link_of(struct server *server, struct backend *backend, int fd)
{
    const int on = 1;
    struct link *link = malloc(sizeof *link);
    if (!link) {
        strand_close(fd);
        return NULL;
    }
    memset(link, 0, offsetof(struct link, out));
    memset(&link->out, 0, offsetof(struct sink, bytes));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    link->backend = backend;
    link->stream = (struct stream){.fd = fd};
    link->out.stream = &link->stream;
    link->out.limit = server->limits.idle;
    return link;
}

static int dial_in_time(const struct server *server, const struct backend *backend, struct undialled *undialled)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(server->limits.connect));
        return strand_names_dial(backend->host, backend->port,
                                 STRAND_NAMES_ATTR(.why = undialled->why, .why_room = sizeof undialled->why));
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    snprintf(undialled->why, sizeof undialled->why, "connecting took too long");
    return -ETIMEDOUT;
}

struct link *link_dial(struct server *server, struct backend *backend, struct undialled *undialled)
{
    int fd = dial_in_time(server, backend, undialled);
    struct link *link = fd < 0 ? NULL : link_of(server, backend, fd);
    undialled->error = fd < 0 ? fd : link ? 0 : -ENOMEM;
    return link;
}

void link_keep(struct server *server, struct link *link)
{
    struct backend *backend = link->backend;
    link->idle_since = strand_now().ns;
    link->begin = link->end = 0;
    pthread_mutex_lock(&backend->lock);
    bool kept = backend->idle_count < server->most_idle && !server->draining;
    if (kept) {
        link->next = backend->idle;
        backend->idle = link;
        backend->idle_count++;
    }
    pthread_mutex_unlock(&backend->lock);
    if (!kept)
        link_close(link);
}

void link_close(struct link *link)
{
    stream_close(&link->stream);
    free(link);
}

int links_end(struct server *server, struct backend *backend, bool all)
{
    int64_t oldest = strand_now().ns - server->limits.pool;
    struct link *ended = NULL;
    int count = 0;
    pthread_mutex_lock(&backend->lock);
    for (struct link **at = &backend->idle, *link; (link = *at);) {
        if (!all && link->idle_since > oldest && stream_is_quiet(&link->stream)) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        backend->idle_count--;
        link->next = ended;
        ended = link;
        count++;
    }
    pthread_mutex_unlock(&backend->lock);
    for (struct link *next; ended; ended = next) {
        next = ended->next;
        link_close(ended);
    }
    return count;
}
