/* expect: ThreadSanitizer: data race */
/* expect: ^ *#0 counts .*tsan_race */
/*
 * Two siblings count on two threads, without an order between them: each begins when both are running, and neither
 * calls the library until it has counted.
 */
/* contract 8.1 */
#include "strand.h"
#include "strand/pool.h"

#include <sched.h>
#include <stdatomic.h>

static _Atomic int running;

static void *counts(void *arg)
{
    volatile int *count = arg;
    atomic_fetch_add_explicit(&running, 1, memory_order_relaxed); /* it announces no order */
    while (atomic_load_explicit(&running, memory_order_relaxed) < 2)
        sched_yield();
    for (int i = 0; i < 1000; i++)
        *count += 1;
    return NULL;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand first = strand_spawn(scope, counts, arg);
    strand second = strand_spawn(scope, counts, arg);
    strand_join(first);
    strand_join(second);
    return NULL;
}

int main(void)
{
    int count = 0;
    strand_run(STRAND_OPTIONS(.threads = 2), root, &count);
    return 0;
}
