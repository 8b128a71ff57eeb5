/*
 * latency50, latency99 (at half load; _10 and _90 at 10 and 90 %): from a timer's time to its strand running, on one
 * thread. A thousand strands share the events in turn, as a thousand connections would.
 */
#include "latency.h"

#include <strand.h>

enum { STRANDS = 1000 };

static struct latency load;

static void *serve_share(void *arg)
{
    for (long i = (long)(intptr_t)arg; i < LATENCY_EVENTS; i += STRANDS) {
        strand_sleep_until((strand_time){load.due[i]});
        latency_serve(&load, i);
    }
    return NULL;
}

static void *root(void *arg)
{
    const long *percent = arg;
    latency_schedule(&load, *percent);
    STRAND_SCOPE(scope);
    for (intptr_t i = 0; i < STRANDS; i++)
        strand_spawn(scope, serve_share, (void *)i);
    strand_scope_join(scope);
    latency_report(&load, "strand");
    return NULL;
}

int main(int argc, char **argv)
{
    long percent = bench_argument(argc, argv, 50);
    strand_run(NULL, root, &percent);
    return 0;
}
