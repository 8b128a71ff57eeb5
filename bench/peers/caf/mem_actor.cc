/*
 * mem_actor: what an actor takes that has nothing to do, with eight bytes of state; the bytes that are resident for a
 * million of them, each.
 */
#include "actors.h"

#include <atomic>
#include <vector>

enum { ACTORS = BENCH_MANY(1000000) };

struct own {
    uint64_t value = 0;
};

static std::atomic<uint64_t> sum, told;

static caf::behavior keeper(caf::stateful_actor<own> *self, const caf::actor &result)
{
    return {[=](uint64_t n) {
        self->state.value += n;
        sum += self->state.value;
        if (++told % ACTORS == 0)
            self->send(result, told.load());
    }};
}

static void tell_all(caf::scoped_actor &self, const std::vector<caf::actor> &actors)
{
    for (uint64_t i = 0; i < ACTORS; i++)
        self->send(actors[i], i);
    actors_receive(self);
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    caf::actor_system_config config;
    config.set("scheduler.max-threads", threads);
    caf::actor_system system{config};
    caf::scoped_actor self{system};
    std::vector<caf::actor> actors;
    actors.reserve(ACTORS);
    int64_t before = bench_resident();
    for (int i = 0; i < ACTORS; i++)
        actors.push_back(self->spawn(keeper, caf::actor{self}));
    tell_all(self, actors);
    int64_t after = bench_resident();
    bench_sample("mem_actor", "caf", threads, "bytes", (double)(after - before) / ACTORS);
    tell_all(self, actors);
    bench_check(sum == 3 * ((uint64_t)ACTORS * (ACTORS - 1) / 2), "the sum is %" PRIu64, sum.load());
    for (const caf::actor &actor : actors)
        actors_stop(self, actor);
    return 0;
}
