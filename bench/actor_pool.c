/*
 * actor_pool: the gain of reusing activations, envelopes and the strands of actors (rule S-23). The same program is
 * linked with the library as it is, and with each patch of bench/variants. Time per message: two actors send each other
 * a number, so each message wakes one. actor_pool_wave: time per message: 100 000 actors get a message each, a hundred
 * at a time. actor_pool_bytes: additional resident memory per actor after all of them have been awake.
 */
/* S-23 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/sync.h>

#ifndef BENCH_VARIANT
#define BENCH_VARIANT strand
#endif
#define STRING_(name) #name
#define STRING(name) STRING_(name)

enum { MESSAGES = BENCH_MANY(1000000), ACTORS = BENCH_MANY(100000), AT_ONCE = 100 };

STRAND_MESSAGE(ball, { uint64_t left; });
STRAND_MESSAGE(work, { uint64_t n; });

static strand_event done;
static _Atomic uint64_t sum, ended;

static void play(void *state, strand_message *message)
{
    const ball *b = STRAND_IS(message, ball);
    const strand_actor *other = state;
    sum++;
    if (!b->left)
        strand_event_set(&done);
    else
        strand_tell(message->sender.bits[1] ? message->sender : *other, STRAND_MSG(ball, b->left - 1));
}

static void add(void *state, strand_message *message)
{
    (void)state;
    sum += STRAND_IS(message, work)->n;
    if (++ended == ACTORS)
        strand_event_set(&done);
}

static const strand_actor_class player = {
    .size = sizeof player, .name = "player", .state_size = sizeof(strand_actor), .receive = play};
static const strand_actor_class adder = {.size = sizeof adder, .name = "adder", .receive = add};

static double bounce(strand_actor first)
{
    sum = 0;
    done = (strand_event){{0}};
    int64_t start = bench_now();
    strand_tell(first, STRAND_MSG(ball, MESSAGES - 1));
    strand_event_wait(&done);
    int64_t taken = bench_now() - start;
    bench_check(sum == MESSAGES, "%" PRIu64 " messages", (uint64_t)sum);
    return (double)taken / MESSAGES;
}

static double wave(const strand_actor *actors, uint64_t at_once)
{
    sum = ended = 0;
    done = (strand_event){{0}};
    int64_t start = bench_now();
    for (uint64_t i = 0; i < ACTORS; i++) {
        if (i % at_once == 0)
            strand_yield();
        strand_tell(actors[i], STRAND_MSG(work, i));
    }
    strand_event_wait(&done);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)ACTORS * (ACTORS - 1) / 2, "the sum is %" PRIu64, (uint64_t)sum);
    return (double)taken / ACTORS;
}

static void *root(void *arg)
{
    static strand_actor actors[ACTORS];
    int threads = *(int *)arg;
    STRAND_ACTORS(system, NULL);
    strand_actor none = {{0, 0}}, second = strand_actor_spawn(system, NULL, &player, &none, sizeof none),
                 first = strand_actor_spawn(system, NULL, &player, &second, sizeof second);
    bounce(first);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("actor_pool", STRING(BENCH_VARIANT), threads, "ns", bounce(first));
    for (int i = 0; i < ACTORS; i++)
        actors[i] = strand_actor_spawn(system, NULL, &adder, NULL, 0);
    wave(actors, AT_ONCE);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("actor_pool_wave", STRING(BENCH_VARIANT), threads, "ns", wave(actors, AT_ONCE));
    if (threads > 1)
        return NULL; /* another thread would begin before all are awake */
    int64_t before = bench_resident();
    wave(actors, ACTORS);
    bench_sample("actor_pool_bytes", STRING(BENCH_VARIANT), threads, "bytes",
                 (double)(bench_resident() - before) / ACTORS);
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
