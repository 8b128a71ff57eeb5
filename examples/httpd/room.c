/*
 * The list of all connections. Idle ones are asked to end when the server drains, and some when others need their
 * descriptors. That shuts the socket down for reading; the connection then ends by itself.
 */
#include "httpd.h"

enum { CHOSEN_MOST = 64 };
/* So many connections at a time are a burst. It is over when a quarter of them is left. */
enum { BURST_LEAST = 1000, BURST_LEFT = 4 };

/* A connection has at least this time before it is asked to make room for others. */
static const int64_t rest_least = 100 * STRAND_MS, reading_least = STRAND_S;

void enlist(struct connection *c)
{
    struct server *server = c->server;
    pthread_mutex_lock(&server->lock);
    c->next = server->first;
    c->at = &server->first;
    if (c->next)
        c->next->at = &c->next;
    server->first = c;
    if (++server->live > server->burst)
        server->burst = server->live;
    pthread_mutex_unlock(&server->lock);
}

bool delist(struct connection *c)
{
    struct server *server = c->server;
    pthread_mutex_lock(&server->lock);
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    bool over = --server->live <= server->burst / BURST_LEFT && server->burst >= BURST_LEAST;
    if (over)
        server->burst = server->live;
    pthread_mutex_unlock(&server->lock);
    return over;
}

void end_idle_connections(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    for (struct connection *c = server->first; c; c = c->next)
        if (c->phase == IDLE)
            strand_shutdown(c->fd, 0);
    pthread_mutex_unlock(&server->lock);
}

struct choice {
    struct connection *connection;
    enum phase phase;
    int64_t since;
};

static bool goes_before(const struct choice *a, const struct choice *b)
{
    return a->phase != b->phase ? a->phase < b->phase : a->since < b->since;
}

/* Whether it waits for its client, and does so for long enough. */
static bool has_waited(const struct choice *choice, int64_t now)
{
    return choice->phase == LINGERING || (choice->phase == IDLE && choice->since < now - rest_least) ||
           (choice->phase == READING && choice->since < now - reading_least);
}

/* Chooses the connections that end first, at most `most`, in order. Returns how many. *leaving: how many were asked
 * before and have not ended yet. Connections continue meanwhile: one that has just received a request answers it, and
 * then ends. */
static int choose(const struct server *server, struct choice *chosen, int most, int *leaving)
{
    int64_t now = strand_now().ns;
    int count = 0;
    *leaving = 0;
    for (struct connection *c = server->first; c; c = c->next) {
        struct choice choice = {c, c->phase, c->since};
        if (c->leaving)
            *leaving += choice.phase <= READING;
        if (c->leaving || !has_waited(&choice, now))
            continue;
        if (count == most && !goes_before(&choice, &chosen[count - 1]))
            continue;
        int at = count < most ? count++ : count - 1;
        for (; at && goes_before(&choice, &chosen[at - 1]); at--)
            chosen[at] = chosen[at - 1];
        chosen[at] = choice;
    }
    return count;
}

bool end_some_connections(struct server *server, int wanted)
{
    struct choice chosen[CHOSEN_MOST];
    int leaving;
    pthread_mutex_lock(&server->lock);
    int count = choose(server, chosen, wanted < CHOSEN_MOST ? wanted : CHOSEN_MOST, &leaving);
    for (int i = 0; i < count && leaving < wanted; i++, leaving++) {
        chosen[i].connection->leaving = true;
        strand_shutdown(chosen[i].connection->fd, 0);
    }
    pthread_mutex_unlock(&server->lock);
    return leaving > 0;
}
