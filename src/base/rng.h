/*
 * A small seeded generator (splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
 * All chance in the runtime comes from such generators, so that a seed determines a run.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include "base.h"

struct rng {
    uint64_t state;
};

OWN_INLINE uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Uniform in [0, n), precisely enough for scheduling; n > 0. */
OWN_INLINE uint32_t rng_below(struct rng *rng, uint32_t n)
{
    return (uint32_t)(((rng_next(rng) >> 32) * n) >> 32);
}

#endif
