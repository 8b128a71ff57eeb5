/*
 * actor_ring: 503 actors in a ring pass one number on, a million times; a hop.
 */
#include "actors.h"

#include <vector>

enum { ACTORS = 503, HOPS = BENCH_MANY(1000000) };

struct place {
    caf::actor next;
    uint64_t hops = 0;
};

static caf::behavior station(caf::stateful_actor<place> *self, const caf::actor &result)
{
    return {[=](const caf::actor &next) { self->state.next = next; },
            [=](uint64_t left) {
                self->state.hops++;
                if (left > 0)
                    self->send(self->state.next, left - 1);
                else
                    self->send(result, UINT64_C(0));
            },
            [=](bool) { self->send(result, self->state.hops); }};
}

static double measure(caf::actor_system &system)
{
    caf::scoped_actor self{system};
    std::vector<caf::actor> ring;
    for (int i = 0; i < ACTORS; i++)
        ring.push_back(self->spawn(station, caf::actor{self}));
    for (int i = 0; i < ACTORS; i++)
        self->send(ring[(size_t)i], ring[(size_t)(i + 1) % ACTORS]);
    int64_t start = bench_now();
    self->send(ring[0], (uint64_t)HOPS);
    actors_receive(self);
    int64_t taken = bench_now() - start;
    uint64_t hops = 0;
    for (const caf::actor &member : ring) {
        self->send(member, true);
        hops += actors_receive(self);
        actors_stop(self, member);
    }
    bench_check(hops == HOPS + 1, "%" PRIu64 " hops", hops);
    return (double)taken / HOPS;
}

int main(int argc, char **argv)
{
    actors_run("actor_ring", "ns", (int)bench_argument(argc, argv, 1), measure);
    return 0;
}
