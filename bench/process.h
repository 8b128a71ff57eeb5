/*
 * process: what its programs share: the memory of the program that starts processes, and how starts are measured.
 */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include "bench.h"

#include <sys/mman.h>

enum { PROCESS_STARTS = BENCH_MANY(500) };

BENCH_API const char *const process_argv[] = {"/bin/true", NULL};

/* Makes so many MiB resident, in small pages: huge ones would hide what a fork pays for. */
BENCH_API void process_fill(long mib)
{
    int64_t size = (int64_t)mib << 20;
    if (bench_memory_left() < size + (size >> 3))
        bench_leave_out("there is no memory for %ld MiB", mib);
    char *at = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bench_check(at != MAP_FAILED, "no address space");
    madvise(at, (size_t)size, MADV_NOHUGEPAGE);
    for (int64_t i = 0; i < size; i += 4096)
        at[i] = 1;
}

/* The name of the row for so much memory. */
BENCH_API const char *process_row(long mib)
{
    return mib >= 10240 ? "process_10g" : mib >= 1024 ? "process_1g" : "process";
}

/* Starts a second; one() starts a process and waits for its end. */
BENCH_API double process_measure(void (*one)(void *arg), void *arg)
{
    int64_t begun = bench_now();
    for (int i = 0; i < PROCESS_STARTS; i++)
        one(arg);
    return PROCESS_STARTS * 1e9 / (double)(bench_now() - begun);
}

#endif
