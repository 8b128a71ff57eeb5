/* expect: LeakSanitizer: detected memory leaks */
/* expect: ^ *#1 .* in forgets */
/*
 * A strand forgets memory: its own stack, recycled since, must not count as somebody who still knows of it.
 */
/* contract 7.5 */
#include "strand.h"

#include <stdlib.h>

static void *forgets(void *arg)
{
    void *volatile memory = malloc(100);
    strand_yield();
    memory = NULL;
    return memory != NULL ? memory : arg;
}

static void *uses_the_stack(void *arg)
{
    volatile char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0;
    strand_yield();
    return arg;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, forgets, NULL));
    strand_join(strand_spawn(scope, uses_the_stack, NULL));
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
