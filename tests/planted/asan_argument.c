/* expect: AddressSanitizer: stack-use-after-scope */
/* expect: ^ *#0 .* in reads_its_argument */
/*
 * A child uses a variable of an inner block of its parent's function, after the block has ended: strand/check.h does
 * not find that, because the variable lies in the frame of the scope.
 */
#include "strand.h"

#include "strand/check.h"

static void *reads_its_argument(void *arg)
{
    return *(int *)arg != 0 ? arg : NULL;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    {
        int inside = 1;
        strand_spawn(scope, reads_its_argument, &inside);
    }
    strand_scope_join(scope);
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
