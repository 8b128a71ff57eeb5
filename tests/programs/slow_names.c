/*
 * A C library in which some names are never found; numbers are understood at once. The run has one thread for calls
 * that block, and that one is taken.
 */
#include "strand.h"
#include "strand/io.h"
#include "strand/pool.h"

#include <netdb.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

enum { LOOK_UPS = 8 }; /* at a time */

static atomic_int asked, called;
static sem_t name_server, call;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    (void)service, (void)result;
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    if (node[0] == 's') {
        asked++;
        sem_wait(&name_server);
    }
    return EAI_NONAME;
}

static void *block(void *arg)
{
    called = 1;
    sem_wait(&call);
    return arg;
}

static void *block_thread(void *arg)
{
    return strand_offload(block, arg);
}

/* Whether it was answered in time. */
static bool dial(const char *host, int64_t ns)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(ns));
        STRAND_IGNORE(strand_dial_tcp(host, 9));
        return true;
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    return false;
}

static void *dial_names(void *arg)
{
    STRAND_SCOPE(scope);
    strand blocked = strand_spawn(scope, block_thread, NULL);
    while (!called)
        strand_sleep(STRAND_MS);
    puts(dial("one", 3600 * STRAND_S) ? "answered beside a call that blocks" : "not answered");
    sem_post(&call);
    strand_join(blocked);
    puts(dial("slow", 50 * STRAND_MS) ? "answered" : "timed out");
    while (asked < LOOK_UPS)
        (void)dial("slow", 50 * STRAND_MS);
    (void)dial("slow", 50 * STRAND_MS);
    puts(asked == LOOK_UPS ? "not asked" : "asked");
    for (int i = 0; i < LOOK_UPS; i++)
        sem_post(&name_server);
    return arg;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    sem_init(&name_server, 0, 0);
    sem_init(&call, 0, 0);
    strand_options options = {.size = sizeof options, .max_offload_threads = 1};
    strand_run(&options, dial_names, NULL);
    puts("ended");
    return 0;
}
