/* expect: Conditional jump or move depends on uninitialised value */
/* expect: at 0x[0-9A-F]*: decides \(memcheck_copied_unset\.c */
/* expect: by 0x[0-9A-F]*: forgets \(memcheck_copied_unset\.c */
/* never: by 0x[0-9A-F]*: knows */
/*
 * Two strands go by a variable of their frames, which are copied out and in. One has set it before, the other never.
 */
#include "copied.h"

static strand_fibre fibre;
static int decided;

static NOINLINE void decides(const int *at)
{
    if (*at > 0)
        decided++;
}

static void *forgets(void *arg)
{
    int unset[4];
    __asm__ volatile("" : : "r"(unset) : "memory");
    be_copied(fibre);
    decides(&unset[1]);
    return arg;
}

static void *knows(void *arg)
{
    int set[4] = {0};
    __asm__ volatile("" : : "r"(set) : "memory");
    be_copied(fibre);
    decides(&set[1]);
    return arg;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    fibre = strand_fibre_open(scope, NULL);
    run_beside_another(scope, fibre, knows, NULL);
    over = 0;
    run_beside_another(scope, fibre, forgets, NULL);
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
