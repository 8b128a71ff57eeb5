/*
 * actor_fjcreate: a hundred thousand actors are made, get one message each, and end; each. A million on two threads
 * take minutes, because a theft walks through the whole queue of the other thread.
 */
#include "actors.h"

#include <atomic>

enum { ACTORS = BENCH_MANY(100000), EACH_PAUSE = 64 };

static std::atomic<uint64_t> sum, ended;

static caf::behavior worker(caf::event_based_actor *self, const caf::actor &result)
{
    return {[=](uint64_t n) {
        sum += n;
        self->quit();
        if (++ended == ACTORS)
            self->send(result, sum.load());
    }};
}

/* It lets the others have a turn now and then. */
static caf::behavior spawner(caf::event_based_actor *self, const caf::actor &result)
{
    self->send(self, UINT64_C(0));
    return {[=](uint64_t first) {
        uint64_t i = first;
        for (; i < ACTORS && i < first + EACH_PAUSE; i++)
            self->send(self->spawn(worker, result), i);
        if (i < ACTORS)
            self->send(self, i);
        else
            self->quit();
    }};
}

static double measure(caf::actor_system &system)
{
    caf::scoped_actor self{system};
    sum = ended = 0;
    int64_t start = bench_now();
    self->spawn(spawner, caf::actor{self});
    uint64_t total = actors_receive(self);
    int64_t taken = bench_now() - start;
    bench_check(total == (uint64_t)ACTORS * (ACTORS - 1) / 2, "the sum is %" PRIu64, total);
    return (double)taken / ACTORS;
}

int main(int argc, char **argv)
{
    actors_run("actor_fjcreate", "ns", (int)bench_argument(argc, argv, 1), measure);
    return 0;
}
