/*
 * Offloaded functions that stay inside until they are let go.
 */
#ifndef GATES_H
#define GATES_H

#include "strand/io.h"
#include "strand/sim.h"
#include "test.h"

/* Waits on a plain thread, ten seconds at most, until *flag is at least value. */
static inline bool wait_on_thread(const _Atomic int *flag, int value)
{
    for (int i = 0; i < 100000 && *flag < value; i++)
        strand_sim_sleep(100 * STRAND_US);
    return *flag >= value;
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
    CHECK(wait_on_thread(&gate->open, 1));
    gate->passed++;
    return gate;
}

static inline void close_gate(struct gate *gate)
{
    gate->entered = gate->open = gate->passed = 0;
}

/* Lets others run until a condition holds, ten seconds at most. From a strand. */
#define YIELD_UNTIL(condition)                                                                                         \
    do {                                                                                                               \
        for (int i_ = 0; i_ < 100000 && !(condition); i_++)                                                            \
            strand_sleep(100 * STRAND_US);                                                                             \
        CHECK(condition);                                                                                              \
    } while (0)

#endif
