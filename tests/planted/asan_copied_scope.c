/* expect: AddressSanitizer: stack-use-after-scope */
/* expect: ^ *#0 .* in reads_what_is_gone */
/* expect: in outlives .*asan_copied_scope */
/*
 * A strand uses a variable after its block, and is copied out and in between the two.
 */
#include "copied.h"

static strand_fibre fibre;

static NOINLINE int reads_what_is_gone(const int *at)
{
    return *at;
}

static void *outlives(void *arg)
{
    const int *volatile kept;
    {
        int inside[4] = {1};
        kept = inside;
        be_copied(fibre);
    }
    be_copied(fibre);
    return reads_what_is_gone(kept) != 0 ? arg : NULL;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    fibre = strand_fibre_open(scope, NULL);
    run_beside_another(scope, fibre, outlives, NULL);
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
