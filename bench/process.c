/*
 * process: a strand starts /bin/true and waits for its end, again and again, in a program with so many MiB resident.
 */
#define _GNU_SOURCE
#include "process.h"

#include <strand.h>
#include <strand/process.h>

static void one(void *unused)
{
    (void)unused;
    STRAND_SCOPE(scope);
    strand_process_end end = {.size = sizeof end};
    strand_process_join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = process_argv)), &end);
    bench_check(end.code == 0, "it ended with %d", end.code);
}

static void *root(void *arg)
{
    long mib = *(long *)arg;
    process_measure(one, NULL);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(process_row(mib), "strand", 1, "starts/s", process_measure(one, NULL));
    return NULL;
}

int main(int argc, char **argv)
{
    long mib = bench_argument(argc, argv, 10);
    process_fill(mib);
    strand_run(NULL, root, &mib);
    return 0;
}
