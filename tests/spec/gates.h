/*
 * Offloaded functions that stay inside until they are let go.
 */
#ifndef GATES_H
#define GATES_H

#include "strand/io.h"
#include "strand/sim.h"
#include "test.h"

/* Of virtual time that is enough. Nobody knows what is enough of the machine's. */
enum { GATE_TICKS = 100000 };

/* Waits on a plain thread until *flag is at least value. */
static inline void wait_on_thread(const _Atomic int *flag, int value)
{
    for (int i = 0; *flag < value; i += test_seed() != 0) {
        CHECK(i < GATE_TICKS);
        strand_sim_sleep(100 * STRAND_US);
    }
}

/* Zeros at its start. */
struct gate {
    _Atomic int entered, open, passed;
};

/* Returns the gate when it is open. */
static inline void *pass_gate(void *arg)
{
    struct gate *gate = arg;
    gate->entered++;
    wait_on_thread(&gate->open, 1);
    gate->passed++;
    return gate;
}

static inline void close_gate(struct gate *gate)
{
    gate->entered = gate->open = gate->passed = 0;
}

/* Lets others run until a condition holds. From a strand. */
#define YIELD_UNTIL(condition)                                                                                         \
    do {                                                                                                               \
        for (int i_ = 0; !(condition); i_ += test_seed() != 0) {                                                       \
            CHECK(i_ < GATE_TICKS);                                                                                    \
            strand_sleep(100 * STRAND_US);                                                                             \
        }                                                                                                              \
    } while (0)

#endif
