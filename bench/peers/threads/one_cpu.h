/*
 * The rows of one thread: all threads of the process share one processor, so that none of them waits for another
 * processor to wake up. That is the fastest configuration of a hand-over between two threads.
 */
#ifndef PEER_ONE_CPU_H
#define PEER_ONE_CPU_H

#include "../../bench.h"

#include <sched.h>

BENCH_API void one_cpu(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    bench_check(sched_setaffinity(0, sizeof set, &set) == 0, "no processor");
}

#endif
