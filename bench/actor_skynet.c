/*
 * actor_skynet: a tree of actors with ten children each and a million leaves, whose numbers are added up on the way
 * back; all of it.
 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { LEAVES = BENCH_MANY(1000000), CHILDREN = 10 };

STRAND_MESSAGE(begin, { uint32_t number, leaves; });
STRAND_MESSAGE(result, { uint64_t sum; });

static strand_event done;
static uint64_t total;

struct node {
    uint64_t sum;
    uint32_t left;
};

static void be_node(void *state, strand_message *message);

static const strand_actor_class node = {
    .size = sizeof node, .name = "node", .state_size = sizeof(struct node), .receive = be_node};

static void report(uint64_t sum, strand_actor parent, bool top)
{
    if (top) {
        total = sum;
        strand_event_set(&done);
    } else {
        strand_tell(parent, STRAND_MSG(result, sum));
    }
    strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT);
}

static bool top;

static void be_node(void *state, strand_message *message)
{
    struct node *me = state;
    const begin *b = STRAND_IS(message, begin);
    if (!b) {
        me->sum += STRAND_IS(message, result)->sum;
        if (!--me->left)
            report(me->sum, strand_actor_parent(), me->sum == (uint64_t)LEAVES * (LEAVES - 1) / 2);
    } else if (b->leaves == 1) {
        report(b->number, strand_actor_parent(), top);
    } else {
        me->left = CHILDREN;
        for (uint32_t i = 0, leaves = b->leaves / CHILDREN; i < CHILDREN; i++)
            strand_tell(strand_actor_spawn_child(NULL, &node, NULL, 0),
                        STRAND_MSG(begin, b->number + i * leaves, leaves));
    }
}

static double measure(strand_actors system)
{
    total = 0;
    done = (strand_event){{0}};
    int64_t start = bench_now();
    strand_tell(strand_actor_spawn(system, NULL, &node, NULL, 0), STRAND_MSG(begin, 0, LEAVES));
    strand_event_wait(&done);
    int64_t taken = bench_now() - start;
    bench_check(total == (uint64_t)LEAVES * (LEAVES - 1) / 2, "the sum is %" PRIu64, total);
    return (double)taken / 1e6;
}

static void *root(void *arg)
{
    int threads = *(int *)arg;
    STRAND_ACTORS(system, NULL);
    measure(system);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("actor_skynet", "strand", threads, "ms", measure(system));
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
