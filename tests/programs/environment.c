/*
 * Says what the environment has it do: how many threads are allowed, and whether its run has a seed, so that its clock
 * is not the real one. With the argument "secure" it first executes itself as a process that is not to trust its
 * environment: with an effective group that is not its real one, as by a set-group-id file (exit status 77 if it may
 * not do that).
 */
#define _GNU_SOURCE
#include "strand.h"
#include "strand/pool.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED 77

static int64_t real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * STRAND_S + now.tv_nsec;
}

static void *look_at_the_clock(void *is_real)
{
    int64_t before = real_ns(), now = strand_now().ns;
    *(bool *)is_real = before <= now && now <= real_ns();
    return is_real;
}

static int execute_as_secure(char *name)
{
    char secured[] = "secured", *args[] = {name, secured, NULL};
    gid_t other = getgid() == 65534 ? 65533 : 65534;
    if (setresgid((gid_t)-1, other, (gid_t)-1) != 0)
        return SKIPPED;
    execv("/proc/self/exe", args);
    return 1;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    bool is_real = false;
    if (strcmp(how, "secure") == 0)
        return execute_as_secure(argv[0]);
    if (strcmp(how, "secured") == 0 && !getauxval(AT_SECURE))
        return SKIPPED;
    strand_run(NULL, look_at_the_clock, &is_real);
    printf("%d threads, %s\n", strand_threads_allowed(), is_real ? "no seed" : "a seed");
    return 0;
}
