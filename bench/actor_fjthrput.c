/*
 * actor_fjthrput: ten thousand messages to each of sixty actors, which count them; a message.
 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { ACTORS = 60, EACH = BENCH_MANY(10000), MOST = 256 };

STRAND_MESSAGE(work, { uint64_t n; });

static strand_event done;
static _Atomic uint64_t sum, ended;

struct counter {
    uint64_t sum, count;
};

static void count(void *state, strand_message *message)
{
    struct counter *me = state;
    me->sum += STRAND_IS(message, work)->n;
    if (++me->count < EACH)
        return;
    sum += me->sum;
    if (++ended == ACTORS)
        strand_event_set(&done);
}

static const strand_actor_class counter = {.size = sizeof counter,
                                           .name = "counter",
                                           .state_size = sizeof(struct counter),
                                           .receive = count,
                                           .max_mailbox = MOST};

static double measure(strand_actors system)
{
    strand_actor actors[ACTORS];
    sum = ended = 0;
    done = (strand_event){{0}};
    for (int i = 0; i < ACTORS; i++)
        actors[i] = strand_actor_spawn(system, NULL, &counter, NULL, 0);
    int64_t start = bench_now();
    for (uint64_t n = 0; n < EACH; n++)
        for (int i = 0; i < ACTORS; i++)
            strand_tell(actors[i], STRAND_MSG(work, n));
    strand_event_wait(&done);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)ACTORS * EACH * (EACH - 1) / 2, "the sum is %" PRIu64, (uint64_t)sum);
    for (int i = 0; i < ACTORS; i++)
        strand_actor_stop(actors[i], STRAND_STOP_NEXT);
    return (double)taken / ((double)ACTORS * EACH);
}

static void *root(void *arg)
{
    int threads = *(int *)arg;
    STRAND_ACTORS(system, NULL);
    measure(system);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("actor_fjthrput", "strand", threads, "ns", measure(system));
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
