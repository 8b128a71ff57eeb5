/*
 * actor_count: one actor sends five million messages to another, which counts them; a message. The counter's mailbox is
 * bounded, and its sender waits where it is full.
 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { MESSAGES = BENCH_MANY(5000000), MOST = 1000 };

STRAND_MESSAGE(increment, { uint64_t by; });
STRAND_MESSAGE(begin, { strand_actor counter; });

static strand_event done;

static void count(void *state, strand_message *message)
{
    uint64_t *sum = state;
    *sum += STRAND_IS(message, increment)->by;
    if (*sum == MESSAGES)
        strand_event_set(&done);
}

static void produce(void *state, strand_message *message)
{
    strand_actor counter = STRAND_IS(message, begin)->counter;
    (void)state;
    for (int i = 0; i < MESSAGES; i++)
        strand_tell(counter, STRAND_MSG(increment, 1));
}

static const strand_actor_class counter = {
    .size = sizeof counter, .name = "counter", .state_size = sizeof(uint64_t), .receive = count, .max_mailbox = MOST};
static const strand_actor_class producer = {.size = sizeof producer, .name = "producer", .receive = produce};

static double measure(strand_actors system)
{
    strand_actor to = strand_actor_spawn(system, NULL, &counter, NULL, 0),
                 from = strand_actor_spawn(system, NULL, &producer, NULL, 0);
    done = (strand_event){{0}};
    int64_t start = bench_now();
    strand_tell(from, STRAND_MSG(begin, to));
    strand_event_wait(&done);
    int64_t taken = bench_now() - start;
    strand_actor_stop(from, STRAND_STOP_NEXT);
    strand_actor_stop(to, STRAND_STOP_NEXT);
    return (double)taken / MESSAGES;
}

static void *root(void *arg)
{
    int threads = *(int *)arg;
    STRAND_ACTORS(system, NULL);
    measure(system);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("actor_count", "strand", threads, "ns", measure(system));
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
