/*
 * actor_fjcreate: a million actors are made, get one message each, and end; each.
 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { ACTORS = BENCH_MANY(1000000), EACH_PAUSE = 64 };

STRAND_MESSAGE(work, { uint64_t n; });

static strand_event done;
static _Atomic uint64_t sum, ended;

static void work_once(void *state, strand_message *message)
{
    (void)state;
    sum += STRAND_IS(message, work)->n;
    strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT);
    if (++ended == ACTORS)
        strand_event_set(&done);
}

static const strand_actor_class worker = {.size = sizeof worker, .name = "worker", .receive = work_once};

static double measure(strand_actors system)
{
    sum = ended = 0;
    done = (strand_event){{0}};
    int64_t start = bench_now();
    for (uint64_t i = 0; i < ACTORS; i++) {
        strand_tell(strand_actor_spawn(system, NULL, &worker, NULL, 0), STRAND_MSG(work, i));
        if (i % EACH_PAUSE == 0)
            strand_yield();
    }
    strand_event_wait(&done);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)ACTORS * (ACTORS - 1) / 2, "the sum is %" PRIu64, (uint64_t)sum);
    return (double)taken / ACTORS;
}

static void *root(void *arg)
{
    int threads = *(int *)arg;
    STRAND_ACTORS(system, NULL);
    measure(system);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("actor_fjcreate", "strand", threads, "ns", measure(system));
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
