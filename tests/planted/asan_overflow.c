/* expect: AddressSanitizer: stack-buffer-overflow */
/* expect: ^ *#0 .* in overflows */
/*
 * A strand writes behind an array of its own stack, after it was switched away from.
 */
#include "strand.h"

static void *overflows(void *arg)
{
    char bytes[16] = {0};
    char *volatile behind = bytes + sizeof bytes;
    strand_yield();
    *behind = 1;
    return bytes[0] != 0 ? arg : NULL;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, overflows, NULL));
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
