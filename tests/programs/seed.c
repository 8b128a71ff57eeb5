/*
 * A program that knows nothing of seeds: STRAND_SEED in its environment makes its run a deterministic one. Its strands
 * write a letter at every turn. The argument is the scheduler; or "deadlock", for two strands that wait for each other.
 */
#include "strand.h"
#include "strand/pool.h"

#include <stdio.h>
#include <string.h>

static void *write_letters(void *letter)
{
    for (int i = 0; i < 5; i++) {
        putchar(*(char *)letter);
        if (i % 2 == 0)
            strand_yield();
        else
            strand_sleep(i * STRAND_US);
    }
    return letter;
}

static void *write_in_strands(void *arg)
{
    static char letters[] = "abcdef";
    strand_time begin = strand_now();
    STRAND_SCOPE(scope);
    for (size_t i = 0; i < sizeof letters - 1; i++)
        strand_spawn(scope, write_letters, &letters[i]);
    strand_scope_join(scope);
    printf(" after %lld ns\n", (long long)(strand_now().ns - begin.ns));
    return arg;
}

static _Atomic bool both_known;

static void *wait_for(void *other)
{
    while (!both_known)
        strand_yield();
    strand_wait(*(strand *)other);
    return other;
}

static void *wait_for_each_other(void *arg)
{
    strand first, second;
    STRAND_SCOPE(scope);
    first = strand_spawn(scope, wait_for, &second);
    second = strand_spawn(scope, wait_for, &first);
    both_known = true;
    strand_scope_join(scope);
    return arg;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "stealing";
    if (strcmp(what, "deadlock") == 0)
        strand_run(NULL, wait_for_each_other, NULL);
    else
        strand_run(STRAND_OPTIONS(.threads = 3, .scheduler = what), write_in_strands, NULL);
    return 0;
}
