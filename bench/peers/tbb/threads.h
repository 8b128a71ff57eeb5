/*
 * Runs a function in an arena of so many threads, the calling one included.
 */
#ifndef PEER_THREADS_H
#define PEER_THREADS_H

#include "../../bench.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

template <class F> static void on_threads(int threads, const F &function)
{
    tbb::global_control control(tbb::global_control::max_allowed_parallelism, (size_t)threads);
    tbb::task_arena arena(threads);
    arena.execute(function);
}

#endif
