/* expect: runtime error: signed integer overflow */
/* expect: ^ *#0 .* in overflows */
/*
 * A strand computes what C does not define.
 */
#include "strand.h"

#include <limits.h>

static void *overflows(void *arg)
{
    *(volatile int *)arg += INT_MAX;
    return NULL;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, overflows, arg));
    return NULL;
}

int main(void)
{
    int number = 1;
    strand_run(NULL, root, &number);
    return 0;
}
