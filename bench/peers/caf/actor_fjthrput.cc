/*
 * actor_fjthrput: ten thousand messages to each of sixty actors, which count them; a message.
 *
 * Unfair: a mailbox has no bound, so that the sender never waits.
 */
#include "actors.h"

#include <vector>

enum { ACTORS = 60, EACH = BENCH_MANY(10000) };

struct counts {
    uint64_t sum = 0, count = 0;
};

static caf::behavior counter(caf::stateful_actor<counts> *self, const caf::actor &result)
{
    return {[=](uint64_t n) {
        self->state.sum += n;
        if (++self->state.count == EACH)
            self->send(result, self->state.sum);
    }};
}

static void produce(caf::event_based_actor *self, const std::vector<caf::actor> &to)
{
    for (uint64_t n = 0; n < EACH; n++)
        for (const caf::actor &actor : to)
            self->send(actor, n);
}

static double measure(caf::actor_system &system)
{
    caf::scoped_actor self{system};
    std::vector<caf::actor> actors;
    for (int i = 0; i < ACTORS; i++)
        actors.push_back(self->spawn(counter, caf::actor{self}));
    uint64_t sum = 0;
    int64_t start = bench_now();
    self->spawn(produce, actors);
    for (int i = 0; i < ACTORS; i++)
        sum += actors_receive(self);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)ACTORS * EACH * (EACH - 1) / 2, "the sum is %" PRIu64, sum);
    for (const caf::actor &actor : actors)
        actors_stop(self, actor);
    return (double)taken / ((double)ACTORS * EACH);
}

int main(int argc, char **argv)
{
    actors_run("actor_fjthrput", "ns", (int)bench_argument(argc, argv, 1), measure);
    return 0;
}
