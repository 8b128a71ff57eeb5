/*
 * Offloaded functions that block their thread until the test releases them.
 */
#ifndef BLOCKER_H
#define BLOCKER_H

#include "strand/io.h"
#include "strand/sim.h"
#include "test.h"

/* Of virtual time that is enough. Nobody knows what is enough of the machine's. */
enum { BLOCKER_TICKS = 100000 };

/* Waits on a plain thread until *flag is at least value. */
static inline void wait_on_thread(const _Atomic int *flag, int value)
{
    for (int i = 0; *flag < value; i += test_seed() != 0) {
        CHECK(i < BLOCKER_TICKS);
        strand_sim_sleep(100 * STRAND_US);
    }
}

/* All zeros at first. */
struct blocker {
    _Atomic int entered, released, passed;
};

/* Blocks the calling thread until the blocker is released. Returns the blocker. */
static inline void *block_until_released(void *arg)
{
    struct blocker *blocker = arg;
    blocker->entered++;
    wait_on_thread(&blocker->released, 1);
    blocker->passed++;
    return blocker;
}

static inline void blocker_reset(struct blocker *blocker)
{
    blocker->entered = blocker->released = blocker->passed = 0;
}

/* Lets others run until a condition holds. From a strand. */
#define YIELD_UNTIL(condition)                                                                                         \
    do {                                                                                                               \
        for (int i_ = 0; !(condition); i_ += test_seed() != 0) {                                                       \
            CHECK(i_ < BLOCKER_TICKS);                                                                                 \
            strand_sleep(100 * STRAND_US);                                                                             \
        }                                                                                                              \
    } while (0)

#endif
