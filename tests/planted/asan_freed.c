/* expect: AddressSanitizer: heap-use-after-free */
/* expect: ^ *#0 .* in reads */
/*
 * A strand reads what its sibling has freed.
 */
#include "strand.h"

#include <stdlib.h>

static void *frees(void *arg)
{
    free(arg);
    return NULL;
}

static void *reads(void *arg)
{
    strand_sleep(STRAND_MS);
    return *(volatile char *)arg ? arg : NULL;
}

static void *root(void *arg)
{
    void *memory = calloc(1, 32);
    STRAND_SCOPE(scope);
    strand late = strand_spawn(scope, reads, memory);
    strand_join(strand_spawn(scope, frees, memory));
    strand_join(late);
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
