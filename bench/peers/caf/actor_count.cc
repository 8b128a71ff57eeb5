/*
 * actor_count: one actor sends a million messages to another, which counts them; a message.
 *
 * Unfair: a mailbox has no bound, so that the sender never waits.
 */
#include "actors.h"

enum { MESSAGES = BENCH_MANY(1000000) };

struct sum {
    uint64_t value = 0;
};

static caf::behavior counter(caf::stateful_actor<sum> *self, const caf::actor &result)
{
    return {[=](uint64_t by) {
        self->state.value += by;
        if (self->state.value == MESSAGES)
            self->send(result, self->state.value);
    }};
}

static void produce(caf::event_based_actor *self, const caf::actor &to)
{
    for (int i = 0; i < MESSAGES; i++)
        self->send(to, UINT64_C(1));
}

static double measure(caf::actor_system &system)
{
    caf::scoped_actor self{system};
    int64_t start = bench_now();
    caf::actor to = self->spawn(counter, caf::actor{self});
    self->spawn(produce, to);
    uint64_t counted = actors_receive(self);
    int64_t taken = bench_now() - start;
    bench_check(counted == MESSAGES, "%" PRIu64 " messages", counted);
    actors_stop(self, to);
    return (double)taken / MESSAGES;
}

int main(int argc, char **argv)
{
    actors_run("actor_count", "ns", (int)bench_argument(argc, argv, 1), measure);
    return 0;
}
