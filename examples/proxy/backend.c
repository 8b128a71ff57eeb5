/*
 * Backends: how well they are, and which one gets a request. A failure of a request counts; too many in a row, and the
 * backend gets no requests for a while. The active check has a mark of its own.
 */
#include "proxy.h"

void backend_open(struct server *server, struct backend *backend)
{
    pthread_mutex_init(&backend->lock, NULL);
    strand_prio_init(&backend->permits, &(strand_prio_options){
                                            .size = sizeof(strand_prio_options),
                                            .permits = (size_t)server->most_active,
                                            .max_waiters = (size_t)server->most_waiting,
                                            .on_full = STRAND_PRIO_FULL_REFUSE,
                                            .name = backend->name,
                                        });
}

void note_success(struct backend *backend)
{
    if (backend->failures)
        backend->failures = 0;
}

/* The time begins again with each further failure: a request that tries a backend that is down tells all others. */
void note_failure(struct server *server, struct backend *backend, const char *why)
{
    int failures = ++backend->failures;
    if (failures < server->most_failures)
        return;
    backend->down_until = strand_in(server->down).ns;
    if (failures == server->most_failures)
        fprintf(stderr, "proxy: backend %s: %d failures in a row: %s\n", backend->name, failures, why);
}

/* ---- choosing -------------------------------------------------------------------------------- */

static bool is_tried(const struct connection *c, int i)
{
    return c->x.tried >> i & 1;
}

/* Failures of requests alone never take the last backend away: all are down then, or none. */
static bool is_usable(const struct connection *c, int i, bool all_down)
{
    const struct backend *backend = &c->server->backends[i];
    return !is_tried(c, i) && !backend->sick && (all_down || backend->down_until <= c->x.times.begun);
}

static bool is_better(const struct connection *c, const struct backend *a, const struct backend *b)
{
    return !b || (c->server->least && a->active < b->active);
}

/* The best one that has a free permit, which is taken. */
static struct backend *take_free(struct connection *c, unsigned turn, bool all_down)
{
    const struct server *server = c->server;
    for (uint64_t full = 0;;) {
        int best = -1;
        for (int k = 0; k < server->backend_count; k++) {
            int i = (int)((turn + (unsigned)k) % (unsigned)server->backend_count);
            if (!(full >> i & 1) && is_usable(c, i, all_down) &&
                is_better(c, &server->backends[i], best < 0 ? NULL : &server->backends[best]))
                best = i;
        }
        if (best < 0)
            return NULL;
        if (strand_prio_try_acquire(&server->backends[best].permits, NULL) == 0)
            return &server->backends[best];
        full |= UINT64_C(1) << best;
    }
}

/* Waits for a permit of any of them. */
struct queue {
    int count;
    struct backend *backends[BACKENDS_MOST];
    strand_case cases[2 + BACKENDS_MOST];
};

/* The first two cases: the client has gone, and the time is over. Backends with full queues are left out, unless all
 * are full: then one of them refuses. */
static void queue_up(const struct connection *c, struct queue *queue, bool all_down)
{
    const struct server *server = c->server;
    struct backend *full = NULL;
    queue->count = 0;
    for (int k = 0; k < server->backend_count; k++) {
        int i = (int)((c->x.turn + (unsigned)k) % (unsigned)server->backend_count);
        struct backend *backend = &server->backends[i];
        if (!is_usable(c, i, all_down))
            continue;
        if (strand_prio_waiting(&backend->permits) < (size_t)server->most_waiting)
            queue->backends[queue->count++] = backend;
        else
            full = backend;
    }
    if (!queue->count && full)
        queue->backends[queue->count++] = full;
    queue->cases[0] = strand_on_ready(c->stream.fd, STRAND_GONE);
    queue->cases[1] = strand_on_time(strand_in(server->limits.queue));
    for (int i = 0; i < queue->count; i++)
        queue->cases[2 + i] = strand_on_prio_permit(&queue->backends[i]->permits, NULL);
}

static struct backend *wait_in(struct connection *c, struct queue *queue)
{
    int happened = strand_select(queue->cases, 2 + (size_t)queue->count, STRAND_SELECT_ORDERED);
    if (happened == 0)
        strand_throw(&CLIENT_GONE, "%s went away while it waited", c->peer);
    if (happened == 1 || queue->cases[happened].result < 0)
        refuse_request(c, 503, happened == 1 ? "no backend became free" : "too many requests wait");
    return queue->backends[happened - 2];
}

/* NULL: there is none that could be waited for. */
static struct backend *wait_for_permit(struct connection *c, bool all_down)
{
    struct queue queue;
    queue_up(c, &queue, all_down);
    return queue.count ? wait_in(c, &queue) : NULL;
}

static bool is_any_up(const struct connection *c)
{
    for (int i = 0; i < c->server->backend_count; i++)
        if (is_usable(c, i, false))
            return true;
    return false;
}

bool choose(struct connection *c)
{
    struct exchange *x = &c->x;
    if (!x->tries)
        x->turn = c->server->turn++;
    bool all_down = !is_any_up(c);
    struct backend *backend = take_free(c, x->turn, all_down);
    if (!backend) {
        backend = wait_for_permit(c, all_down);
        if (!backend && x->tries)
            return false;
        if (!backend)
            refuse_request(c, 503, "no backend is well");
    }
    x->backend = backend;
    x->name = backend->name;
    backend->active++;
    if (!x->times.queued)
        x->times.queued = strand_now().ns;
    return true;
}
