/* expect: Invalid write of size 1 */
/* expect: at 0x[0-9A-F]*: writes_behind \(memcheck_copied_overflow\.c */
/* expect: by 0x[0-9A-F]*: overflows \(memcheck_copied_overflow\.c */
/* expect: 0 bytes after a block of size 16 alloc'd */
/*
 * A strand writes behind a block of the heap, of which its frames know that have been copied out and in since.
 */
#include "copied.h"

static strand_fibre fibre;

static NOINLINE void writes_behind(char *bytes, int at)
{
    bytes[at] = 1;
}

static void *overflows(void *arg)
{
    char *volatile bytes = calloc(1, 16);
    be_copied(fibre);
    writes_behind(bytes, 16);
    free(bytes);
    return arg;
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
