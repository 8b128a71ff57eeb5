/*
 * A file that asks for the system's extensions by itself and knows nothing of strand/check.h, which the command line
 * includes before it. tools/check-install.sh builds it, and compares what it prints.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <strand.h>
#include <strand/pool.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void told(const strand_misuse *misuse, void *arg)
{
    (void)arg;
    printf("%s: %s\n", misuse->function, strstr(misuse->made, "checked.c:") ? "locked in checked.c" : misuse->made);
    fflush(stdout);
    _Exit(0);
}

static void *sleep_with_a_mutex(void *arg)
{
    pthread_mutex_lock(&mutex);
    strand_sleep(STRAND_MS);
    pthread_mutex_unlock(&mutex);
    return arg;
}

int main(void)
{
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0 || pthread_setname_np(pthread_self(), "checked") != 0)
        return 1;
    strand_options options = {.size = sizeof options, .on_misuse = told};
    strand_run(&options, sleep_with_a_mutex, NULL);
    return 2;
}
