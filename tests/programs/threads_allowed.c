/*
 * Prints strand_threads_allowed(), after restricting itself to its first CPU if the argument is one-cpu.
 */
#define _GNU_SOURCE
#include "strand.h"
#include "strand/pool.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

static int use_first_cpu_only(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return -1;
    int cpu = 0;
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "one-cpu") == 0 && use_first_cpu_only() != 0)
        return 1;
    printf("%d\n", strand_threads_allowed());
    return 0;
}
