/*
 * actor_pingpong: two actors send a number back and forth; a round trip.
 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { ROUND_TRIPS = BENCH_MANY(1000000) };

STRAND_MESSAGE(ball, { uint64_t n; });

static strand_event done;
static uint64_t sum;

struct player {
    strand_actor other;
    bool ends;
};

static void play(void *state, strand_message *message)
{
    struct player *me = state;
    const ball *b = STRAND_IS(message, ball);
    if (me->ends) {
        sum += b->n;
        if (b->n == ROUND_TRIPS) {
            strand_event_set(&done);
            return;
        }
    }
    strand_tell(message->sender.bits[1] ? message->sender : me->other, STRAND_MSG(ball, b->n + me->ends));
}

static const strand_actor_class player = {
    .size = sizeof player, .name = "player", .state_size = sizeof(struct player), .receive = play};

static double measure(strand_actors system)
{
    struct player passive = {{{0, 0}}, false};
    strand_actor a = strand_actor_spawn(system, NULL, &player, &passive, sizeof passive);
    struct player active = {a, true};
    strand_actor b = strand_actor_spawn(system, NULL, &player, &active, sizeof active);
    sum = 0;
    done = (strand_event){{0}};
    int64_t start = bench_now();
    strand_tell(b, STRAND_MSG(ball, 0));
    strand_event_wait(&done);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)ROUND_TRIPS * (ROUND_TRIPS + 1) / 2, "the sum is %" PRIu64, sum);
    strand_actor_stop(a, STRAND_STOP_NEXT);
    strand_actor_stop(b, STRAND_STOP_NEXT);
    return (double)taken / ROUND_TRIPS;
}

static void *root(void *arg)
{
    int threads = *(int *)arg;
    STRAND_ACTORS(system, NULL);
    measure(system);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("actor_pingpong", "strand", threads, "ns", measure(system));
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
