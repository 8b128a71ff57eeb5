/*
 * actor_big: each of 120 actors sends a ping to each other one, and answers with a pong what it gets, again and again;
 * a ping with its pong.
 */
#include "actors.h"

#include <vector>

enum { ACTORS = 120, PINGS = BENCH_MANY(5000) };

using ping = caf::atom_constant<caf::atom("ping")>;
using pong = caf::atom_constant<caf::atom("pong")>;

struct player {
    uint64_t random = 0, left = PINGS, sum = 0;
};

static std::vector<caf::actor> actors;

/* To another than itself, at random. */
static void send_one(caf::stateful_actor<player> *self)
{
    const caf::actor *to;
    do
        to = &actors[bench_random(&self->state.random) % ACTORS];
    while (*to == self);
    self->send(*to, ping::value, self->state.left--);
}

static caf::behavior play(caf::stateful_actor<player> *self, uint64_t seed, const caf::actor &result)
{
    self->state.random = seed;
    auto next = [=] {
        if (self->state.left > 0)
            send_one(self);
        else
            self->send(result, self->state.sum);
    };
    return {[=](bool) { next(); },
            [=](ping, uint64_t n) { self->send(caf::actor_cast<caf::actor>(self->current_sender()), pong::value, n); },
            [=](pong, uint64_t n) {
                self->state.sum += n;
                next();
            }};
}

static double measure(caf::actor_system &system)
{
    caf::scoped_actor self{system};
    actors.clear();
    for (uint64_t i = 0; i < ACTORS; i++)
        actors.push_back(self->spawn(play, i, caf::actor{self}));
    uint64_t sum = 0;
    int64_t start = bench_now();
    for (const caf::actor &actor : actors)
        self->send(actor, true);
    for (int i = 0; i < ACTORS; i++)
        sum += actors_receive(self);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)ACTORS * PINGS * (PINGS + 1) / 2, "the sum is %" PRIu64, sum);
    for (const caf::actor &actor : actors)
        actors_stop(self, actor);
    actors.clear();
    return (double)taken / ((double)ACTORS * PINGS);
}

int main(int argc, char **argv)
{
    actors_run("actor_big", "ns", (int)bench_argument(argc, argv, 1), measure);
    return 0;
}
