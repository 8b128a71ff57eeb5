/* expect: AddressSanitizer: stack-buffer-overflow */
/* expect: ^ *#0 .* in writes_behind */
/* expect: in overflows .*asan_copied_overflow */
/*
 * A strand writes behind an array of its stack, which has been copied out and in since the array was made.
 */
#include "copied.h"

static strand_fibre fibre;

static NOINLINE void writes_behind(char *bytes, int at)
{
    bytes[at] = 1;
}

static void *overflows(void *arg)
{
    char bytes[16] = {0};
    char *volatile begin = bytes;
    be_copied(fibre);
    writes_behind(begin, sizeof bytes);
    return bytes[0] != 0 ? arg : NULL;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    fibre = strand_fibre_open(scope, NULL);
    run_beside_another(scope, fibre, overflows, NULL);
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
