/*
 * watches: N actors watch one that then ends, and each gets its notice; a watch with its notice. A growth plot has this
 * row.
 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { WATCHES = BENCH_MANY(100000) };

STRAND_MESSAGE(look, { strand_actor at; });

static strand_event ready, done;
static long watchers, watching, noticed;

static void watch(void *state, strand_message *message)
{
    const look *l = STRAND_IS(message, look);
    (void)state;
    if (l) {
        bench_check(strand_actor_watch(l->at) == 0, "no watch");
        if (++watching == watchers)
            strand_event_set(&ready);
    } else if (STRAND_IS(message, strand_terminated)) {
        if (++noticed == watchers)
            strand_event_set(&done);
    }
}

static void idle(void *state, strand_message *message)
{
    (void)state;
    strand_message_unhandled(message);
}

static const strand_actor_class watcher = {.size = sizeof watcher, .name = "watcher", .receive = watch};
static const strand_actor_class watched = {.size = sizeof watched, .name = "watched", .receive = idle};

static void once(strand_actors system, const strand_actor *all)
{
    strand_actor one = strand_actor_spawn(system, NULL, &watched, NULL, 0);
    watching = noticed = 0;
    ready = done = (strand_event){{0}};
    for (long i = 0; i < watchers; i++)
        strand_tell(all[i], STRAND_MSG(look, one));
    strand_event_wait(&ready);
    strand_actor_stop(one, STRAND_STOP_NEXT);
    strand_event_wait(&done);
    bench_check(noticed == watchers, "%ld notices", noticed);
}

static double measure(strand_actors system, const strand_actor *all)
{
    long times = WATCHES > watchers ? WATCHES / watchers : 1;
    int64_t start = bench_now();
    for (long i = 0; i < times; i++)
        once(system, all);
    return (double)(bench_now() - start) / ((double)times * (double)watchers);
}

static void *root(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor *all = calloc((size_t)watchers, sizeof *all);
    bench_check(all != NULL, "no memory");
    for (long i = 0; i < watchers; i++)
        all[i] = strand_actor_spawn(system, NULL, &watcher, NULL, 0);
    measure(system, all);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("watches", "strand", 1, "ns", measure(system, all));
    for (long i = 0; i < watchers; i++)
        strand_actor_stop(all[i], STRAND_STOP_NEXT);
    free(all);
    return arg;
}

int main(int argc, char **argv)
{
    watchers = bench_argument(argc, argv, 100);
    strand_run(STRAND_OPTIONS(.threads = 1), root, NULL);
    return 0;
}
