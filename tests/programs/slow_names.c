/*
 * A C library that takes a second for a name; numbers are understood at once. One crew thread.
 */
#include "strand.h"
#include "strand/io.h"
#include "strand/pool.h"

#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int asked;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    (void)node, (void)service, (void)result;
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    asked++;
    sleep(1);
    return EAI_NONAME;
}

/* Says what became of it, and whether a deadline struck in time. */
static void dial(const char *host, int64_t ns)
{
    strand_time limit = strand_in(ns);
    STRAND_TRY {
        STRAND_DEADLINE(limit);
        int fd = strand_dial_tcp(host, 9);
        puts(fd < 0 ? "answered" : "connected");
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        puts(strand_now().ns - limit.ns < 400 * STRAND_MS ? "timed out in time" : "timed out late");
    }
    STRAND_END
}

/* The second name is being looked up when it is given up; the third waits for the crew's only thread. */
static void *dial_names(void *arg)
{
    dial("one", 10 * STRAND_S);
    dial("two", 50 * STRAND_MS);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(50 * STRAND_MS));
        STRAND_IGNORE(strand_dial_tcp("three", 9));
        puts("three was answered");
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        puts(asked == 2 ? "not asked" : "asked");
    }
    STRAND_END
    return arg;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    strand_options options = {.size = sizeof options, .offload_threads = 1};
    strand_run(&options, dial_names, NULL);
    puts("ended");
    return 0;
}
