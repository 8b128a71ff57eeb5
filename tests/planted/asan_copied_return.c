/* expect: AddressSanitizer: stack-use-after-return */
/* expect: ^ *#0 .* in reads_what_is_gone */
/* expect: in outlives .*asan_copied_return */
/*
 * A strand uses a variable of a function that has returned, and is copied out and in both before the return and after.
 */
#include "copied.h"

static strand_fibre fibre;

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_stack_use_after_return=1";
}

static NOINLINE int *leaves_behind(void)
{
    int inside[4] = {1};
    int *volatile kept = inside;
    be_copied(fibre);
    return kept;
}

static NOINLINE int reads_what_is_gone(const int *at)
{
    return *at;
}

static void *outlives(void *arg)
{
    int *kept = leaves_behind();
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
