/*
 * mailboxes: one sends a million messages, one after the other to each of N actors, and lets them have their turns
 * after every 64; a message. A growth plot has this row.
 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { MESSAGES = BENCH_MANY(1000000), EACH_PAUSE = 64 };

STRAND_MESSAGE(add, { uint64_t n; });

static strand_event done;
static long actors;
static uint64_t count, sum;

static void keep(void *state, strand_message *message)
{
    uint64_t *own = state;
    uint64_t n = STRAND_IS(message, add)->n;
    *own += n;
    sum += n;
    if (++count == MESSAGES)
        strand_event_set(&done);
}

static const strand_actor_class keeper = {
    .size = sizeof keeper, .name = "keeper", .state_size = sizeof(uint64_t), .receive = keep};

static double measure(const strand_actor *all)
{
    count = sum = 0;
    done = (strand_event){{0}};
    int64_t start = bench_now();
    for (long i = 0, to = 0; i < MESSAGES; i++, to = to + 1 < actors ? to + 1 : 0) {
        strand_tell(all[to], STRAND_MSG(add, (uint64_t)i));
        if (i % EACH_PAUSE == 0)
            strand_yield();
    }
    strand_event_wait(&done);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)MESSAGES * (MESSAGES - 1) / 2, "the sum is %" PRIu64, sum);
    return (double)taken / MESSAGES;
}

static void *root(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor *all = calloc((size_t)actors, sizeof *all);
    bench_check(all != NULL, "no memory");
    for (long i = 0; i < actors; i++)
        all[i] = strand_actor_spawn(system, NULL, &keeper, NULL, 0);
    measure(all);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("mailboxes", "strand", 1, "ns", measure(all));
    free(all);
    return arg;
}

int main(int argc, char **argv)
{
    actors = bench_argument(argc, argv, 1000);
    strand_run(STRAND_OPTIONS(.threads = 1), root, NULL);
    return 0;
}
