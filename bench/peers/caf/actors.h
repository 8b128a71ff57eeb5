/*
 * The configuration of the CAF programs: event-based actors, one thread of the scheduler for each thread of the row.
 * The main thread sleeps until the result arrives. It spawns and sends nothing meanwhile that an actor could do,
 * because it would be one thread more.
 */
#ifndef PEER_ACTORS_H
#define PEER_ACTORS_H

#include "../../bench.h"

/* CAF's headers do not compile free of these warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <caf/all.hpp>
#pragma GCC diagnostic pop

/* Runs `measure`, which returns a sample, as often as that after a warm-up. A measurement that takes one sample takes
 * seconds, and needs no warm-up. */
template <class F>
static inline void actors_run(const char *row, const char *unit, int threads, F &&measure, int samples = BENCH_SAMPLES)
{
    caf::actor_system_config config;
    config.set("scheduler.max-threads", threads);
    caf::actor_system system{config};
    if (samples > 1)
        measure(system);
    for (int i = 0; i < samples; i++)
        bench_sample(row, "caf", threads, unit, measure(system));
}

/* Waits for the number that an actor sends. */
static inline uint64_t actors_receive(caf::scoped_actor &self)
{
    uint64_t number = 0;
    self->receive([&](uint64_t n) { number = n; });
    return number;
}

static inline void actors_stop(caf::scoped_actor &self, const caf::actor &actor)
{
    self->send_exit(actor, caf::exit_reason::user_shutdown);
}

#endif
