/*
 * actor_skynet: a tree of actors with ten children each and a million leaves, whose numbers are added up on the way
 * back; all of it.
 */
#include "actors.h"

enum { LEAVES = BENCH_MANY(1000000), CHILDREN = 10 };

struct part {
    uint64_t sum = 0;
    int left = CHILDREN;
};

static caf::behavior node(caf::stateful_actor<part> *self, uint64_t number, uint64_t leaves, const caf::actor &parent)
{
    if (leaves == 1) {
        self->send(parent, number);
        return {};
    }
    for (uint64_t i = 0; i < CHILDREN; i++)
        self->spawn(node, number + i * (leaves / CHILDREN), leaves / CHILDREN, caf::actor{self});
    return {[=](uint64_t sum) {
        self->state.sum += sum;
        if (--self->state.left > 0)
            return;
        self->send(parent, self->state.sum);
        self->quit();
    }};
}

static double measure(caf::actor_system &system)
{
    caf::scoped_actor self{system};
    int64_t start = bench_now();
    self->spawn(node, UINT64_C(0), (uint64_t)LEAVES, caf::actor{self});
    uint64_t sum = actors_receive(self);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)LEAVES * (LEAVES - 1) / 2, "the sum is %" PRIu64, sum);
    return (double)taken / 1e6;
}

int main(int argc, char **argv)
{
    actors_run("actor_skynet", "ms", (int)bench_argument(argc, argv, 1), measure, 1);
    return 0;
}
