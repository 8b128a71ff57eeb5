/*
 * What every program of this folder shares: clock, samples, checks, memory. C and C++, no library.
 *
 * A program measures one question and prints samples, a line each: row, runtime, threads, unit, value. It knows nothing
 * of medians and of other runtimes: bench/run starts the programs of a row in turn, each time as a fresh process, and
 * makes the medians.
 */
#ifndef BENCH_H
#define BENCH_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_API __attribute__((unused)) static

/* How many there are of something, and how long it lasts: little, where a row is run only to see that it ends well and
 * what it computes (make bench SMOKE=1). */
#ifdef BENCH_SMOKE
#define BENCH_MANY(n) ((n) / 100)
#define BENCH_LONG(n) 1
#else
#define BENCH_MANY(n) (n)
#define BENCH_LONG(n) (n)
#endif

/* Samples that a short measurement takes in one process, after its warm-up. */
enum { BENCH_SAMPLES = BENCH_LONG(5) };

/* What a blocked strand with a stack of its own takes at most: a page of stack, its control block, its share of page
 * tables; and a second page of stack once it unwinds. */
enum { BENCH_BYTES_PARKED = 5 * 1024, BENCH_BYTES_UNWOUND = 10 * 1024 };

BENCH_API int64_t bench_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The monotonic clock, in nanoseconds. */
BENCH_API int64_t bench_now(void)
{
    return bench_clock(CLOCK_MONOTONIC);
}

/* User and system time of the process so far, in nanoseconds. */
BENCH_API int64_t bench_cpu(void)
{
    return bench_clock(CLOCK_PROCESS_CPUTIME_ID);
}

BENCH_API void bench_sample(const char *row, const char *runtime, int threads, const char *unit, double value)
{
    printf("%s\t%s\t%d\t%s\t%.3f\n", row, runtime, threads, unit, value);
}

/* A wrong result makes every number worthless: say so and end. */
BENCH_API void bench_check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
BENCH_API void bench_check(bool ok, const char *format, ...)
{
    if (ok)
        return;
    va_list arguments;
    va_start(arguments, format);
    fputs("wrong: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* What the measurement needs is not there: say so and end, by an exit status that bench/run knows. */
BENCH_API void bench_leave_out(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
BENCH_API void bench_leave_out(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("left out: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(77);
}

/* The first argument of the program as a positive number, or `otherwise` without one. */
BENCH_API long bench_argument(int argc, char **argv, long otherwise)
{
    long value = argc > 1 ? strtol(argv[1], NULL, 10) : otherwise;
    bench_check(value > 0, "argument %s is not a positive number", argc > 1 ? argv[1] : "");
    return value;
}

/* A step of splitmix64: the same numbers for every runtime. */
BENCH_API uint64_t bench_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The number in the first line that begins with `field`, behind it, of a file of /proc or /sys; -1 without one. */
BENCH_API int64_t bench_field(const char *path, const char *field)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    char line[256];
    int64_t value = -1;
    while (value < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) != 0 || sscanf(line + strlen(field), "%" SCNd64, &value) != 1)
            value = -1;
    fclose(file);
    return value;
}

/* The most bytes that the process ever had resident. */
BENCH_API int64_t bench_peak(void)
{
    return bench_field("/proc/self/status", "VmHWM:") * 1024;
}

/* The bytes that the process has resident now. */
BENCH_API int64_t bench_resident(void)
{
    return bench_field("/proc/self/status", "VmRSS:") * 1024;
}

/* What can still be taken, in bytes, by the machine and by the control group. */
BENCH_API int64_t bench_memory_left(void)
{
    int64_t left = bench_field("/proc/meminfo", "MemAvailable:") * 1024;
    int64_t limit = bench_field("/sys/fs/cgroup/memory.max", "");
    int64_t used = bench_field("/sys/fs/cgroup/memory.current", "");
    if (limit >= 0 && used >= 0 && limit - used < left)
        left = limit - used;
    return left;
}

/* How many of `wanted` strands that take so many bytes each fit into four fifths of the memory that is left. Fewer than
 * wanted is said on standard error. */
BENCH_API long bench_strands_that_fit(const char *row, long wanted, int64_t bytes_each)
{
    int64_t fitting = bench_memory_left() / 5 * 4 / bytes_each;
    if (fitting >= wanted)
        return wanted;
    fprintf(stderr, "%s: memory for %" PRId64 " strands only, not %ld\n", row, fitting, wanted);
    return (long)fitting;
}

#endif
