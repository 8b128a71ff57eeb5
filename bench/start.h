/*
 * The row start: starts this program and waits for its end, many times. The parent shares its memory with the child
 * until exec, so the parent's size does not matter.
 */
#ifndef BENCH_START_H
#define BENCH_START_H

#include "bench.h"

#include <spawn.h>
#include <sys/wait.h>

enum { START_PROCESSES = BENCH_MANY(100) };

extern char **environ;

BENCH_API bool start_is_child(int argc, char **argv)
{
    return argc == 2 && strcmp(argv[1], "child") == 0;
}

BENCH_API double start_processes(void)
{
    char *arguments[] = {(char *)"start", (char *)"child", NULL};
    int64_t start = bench_now();
    for (int i = 0; i < START_PROCESSES; i++) {
        pid_t child;
        int status;
        bench_check(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0 &&
                        waitpid(child, &status, 0) == child && status == 0,
                    "a process did not start, or failed");
    }
    return (double)(bench_now() - start) / START_PROCESSES;
}

BENCH_API void start_measure(const char *runtime)
{
    start_processes();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("start", runtime, 1, "ns", start_processes());
}

#endif
