/* expect: stack-buffer-overflow */
/*
 * A strand writes behind an array of its own stack, after it was switched away from.
 */
#include "strand.h"

static void *overflows(void *arg)
{
    volatile char bytes[16] = {0};
    strand_yield();
    bytes[16 + *(volatile int *)arg] = 1;
    return bytes[0] != 0 ? arg : NULL;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, overflows, arg));
    return NULL;
}

int main(void)
{
    int nothing = 0;
    strand_run(NULL, root, &nothing);
    return 0;
}
