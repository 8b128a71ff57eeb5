/* expect: ThreadSanitizer: data race */
/* expect: ^ *#0 counts .*tsan_race */
/*
 * Two siblings count without an order between them, on two threads or on one after the other.
 */
/* contract 8.1 */
#include "strand.h"
#include "strand/pool.h"

static void *counts(void *arg)
{
    volatile int *count = arg;
    for (int i = 0; i < 1000; i++) {
        *count += 1;
        strand_yield();
    }
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
