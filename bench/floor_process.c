/*
 * What process is compared with: a loop of posix_spawn and waitpid.
 */
#define _GNU_SOURCE
#include "process.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void one(void *unused)
{
    (void)unused;
    pid_t pid;
    int status;
    int error = posix_spawn(&pid, process_argv[0], NULL, NULL, (char *const *)(uintptr_t)process_argv, environ);
    bench_check(error == 0, "it was not started: %d", error);
    bench_check(waitpid(pid, &status, 0) == pid && status == 0, "it ended with %d", status);
}

int main(int argc, char **argv)
{
    long mib = bench_argument(argc, argv, 10);
    process_fill(mib);
    process_measure(one, NULL);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(process_row(mib), "floor", 1, "starts/s", process_measure(one, NULL));
    return 0;
}
