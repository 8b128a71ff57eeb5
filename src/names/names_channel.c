/*
 * A channel of c-ares, driven by the strand that asks. The protocol block is in names.h.
 */
#include "names.h"

/* How long a channel without a time-out waits before it is looked at again. */
#define LOOK_NS STRAND_S

/* ---- opening, and waiting -------------------------------------------------------------------------------------- */

int names_channel_open(struct names_channel *channel, const struct names_config *config, const char *lookups)
{
    STRAND_NO_SUSPEND;
    struct ares_options options = {.timeout = (int)(config->attr.timeout_ns / STRAND_MS),
                                   .tries = config->attr.tries,
                                   .lookups = (char *)(uintptr_t)lookups}; /* c-ares copies it */
    *channel = (struct names_channel){0};
    int status = ares_init_options(&channel->ares, &options,
                                   ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | (lookups ? ARES_OPT_LOOKUPS : 0));
    if (status != ARES_SUCCESS) {
        channel->ares = NULL;
        return status;
    }
    ares_set_socket_functions(channel->ares, &names_sockets, channel);
    return config->attr.servers ? ares_set_servers_ports_csv(channel->ares, config->attr.servers) : ARES_SUCCESS;
}

void names_channel_close(struct names_channel *channel)
{
    STRAND_NO_SUSPEND;
    if (channel->ares)
        ares_destroy(channel->ares);
    channel->ares = NULL;
}

struct waits {
    strand_case cases[2 * ARES_GETSOCK_MAXNUM + 1];
    ares_socket_t reads[2 * ARES_GETSOCK_MAXNUM + 1], writes[2 * ARES_GETSOCK_MAXNUM + 1];
    size_t count;
};

static void add(struct waits *waits, ares_socket_t fd, bool writes)
{
    size_t i = waits->count++;
    waits->cases[i] = strand_on_ready(fd, writes ? STRAND_WRITABLE : STRAND_READABLE);
    waits->reads[i] = writes ? ARES_SOCKET_BAD : fd;
    waits->writes[i] = writes ? fd : ARES_SOCKET_BAD;
}

/* What c-ares waits for now. The time-out comes last. */
static void collect(const struct names_channel *channel, struct waits *waits)
{
    STRAND_NO_SUSPEND;
    ares_socket_t fds[ARES_GETSOCK_MAXNUM];
    struct timeval time;
    unsigned bits = (unsigned)ares_getsock(channel->ares, fds, ARES_GETSOCK_MAXNUM);
    waits->count = 0;
    for (unsigned i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
        if (bits >> i & 1) /* not by the macros of c-ares, which shift into the sign */
            add(waits, fds[i], false);
        if (bits >> (i + ARES_GETSOCK_MAXNUM) & 1)
            add(waits, fds[i], true);
    }
    const struct timeval *left = ares_timeout(channel->ares, NULL, &time);
    int64_t ns = left ? (int64_t)left->tv_sec * STRAND_S + left->tv_usec * STRAND_US : LOOK_NS;
    waits->cases[waits->count] = strand_on_time(strand_in(ns));
    waits->reads[waits->count] = waits->writes[waits->count] = ARES_SOCKET_BAD;
    waits->count++;
}

static void process(const struct names_channel *channel, ares_socket_t read, ares_socket_t write)
{
    STRAND_NO_SUSPEND;
    ares_process_fd(channel->ares, read, write);
}

/* The code of an answer after which c-ares asks the next server. If there is none, c-ares says ARES_ECONNREFUSED. */
static int status_of(int answer)
{
    switch (answer) {
    case 2:
        return ARES_ESERVFAIL;
    case 4:
        return ARES_ENOTIMP;
    case 5:
        return ARES_EREFUSED;
    default:
        return ARES_ECONNREFUSED;
    }
}

void names_channel_wait(struct names_channel *channel)
{
    while (!channel->done) {
        struct waits waits;
        collect(channel, &waits);
        int i = strand_select(waits.cases, waits.count, 0);
        process(channel, waits.reads[i], waits.writes[i]);
    }
    if (channel->status == ARES_ECONNREFUSED) /* also where nsswitch.conf lists no name servers */
        channel->status = channel->asked ? status_of(channel->answer) : ARES_ENOTFOUND;
}

int names_channel_missing(const struct names_channel *channel)
{
    enum { GOOD = 0, NO_SUCH_NAME = 3 };
    if (!channel->answered)
        return ARES_ETIMEOUT;
    bool missing = channel->answer == GOOD || channel->answer == NO_SUCH_NAME;
    return missing ? ARES_ENOTFOUND : status_of(channel->answer);
}
