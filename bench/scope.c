/*
 * scope: enter a scope and leave it without having spawned anything.
 */
#include "bench.h"

#include <strand.h>

enum { ROUNDS = BENCH_MANY(2000000) };

static double measure(void)
{
    int64_t start = bench_now();
    for (long i = 0; i < ROUNDS; i++) {
        STRAND_SCOPE(scope);
        __asm__ volatile("" : : "r"(&scope) : "memory");
    }
    return (double)(bench_now() - start) / ROUNDS;
}

/* Two scopes, one after the other, are two: the second has another name than the first, and each counts its own. */
static void check(void)
{
    strand_scope seen[2];
    for (int i = 0; i < 2; i++) {
        STRAND_SCOPE(scope);
        seen[i] = scope;
        bench_check(strand_scope_count(scope) == 0, "a new scope has children");
    }
    bench_check(memcmp(&seen[0], &seen[1], sizeof seen[0]) != 0, "two scopes have one name");
}

static void *root(void *arg)
{
    check();
    measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("scope", "strand", 1, "ns", measure());
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
