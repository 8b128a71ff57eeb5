/*
 * actor_pingpong: two actors send a number back and forth; a round trip.
 */
#include "actors.h"

enum { ROUND_TRIPS = BENCH_MANY(1000000) };

struct player {
    uint64_t sum = 0;
};

static caf::behavior passive(caf::event_based_actor *)
{
    return {[](uint64_t n) { return n; }};
}

static caf::behavior active(caf::stateful_actor<player> *self, const caf::actor &other, const caf::actor &result)
{
    self->send(other, UINT64_C(1));
    return {[=](uint64_t n) {
        self->state.sum += n;
        if (n < ROUND_TRIPS)
            self->send(other, n + 1);
        else
            self->send(result, self->state.sum);
    }};
}

static double measure(caf::actor_system &system)
{
    caf::scoped_actor self{system};
    int64_t start = bench_now();
    caf::actor a = self->spawn(passive);
    caf::actor b = self->spawn(active, a, caf::actor{self});
    uint64_t sum = actors_receive(self);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)ROUND_TRIPS * (ROUND_TRIPS + 1) / 2, "the sum is %" PRIu64, sum);
    actors_stop(self, a);
    actors_stop(self, b);
    return (double)taken / ROUND_TRIPS;
}

int main(int argc, char **argv)
{
    actors_run("actor_pingpong", "ns", (int)bench_argument(argc, argv, 1), measure);
    return 0;
}
