/*
 * The floor of spawn_join: make a context on a stack that is there, jump to it, jump back.
 */
#include "bench.h"
#include "floor.h"

enum { ROUNDS = BENCH_MANY(1000000), STACK = 16384 };

static char stack[STACK] __attribute__((aligned(64)));

static void leaf(struct floor_transfer t)
{
    jump_fcontext(t.from, t.data);
}

static double measure(void)
{
    intptr_t sum = 0;
    int64_t start = bench_now();
    for (intptr_t i = 0; i < ROUNDS; i++)
        sum += (intptr_t)jump_fcontext(make_fcontext(stack + STACK, STACK, leaf), (void *)i).data;
    int64_t taken = bench_now() - start;
    bench_check(sum == (intptr_t)ROUNDS * (ROUNDS - 1) / 2, "sum %" PRIdPTR, sum);
    return (double)taken / ROUNDS;
}

int main(void)
{
    measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("spawn_join", "floor", 1, "ns", measure());
    return 0;
}
