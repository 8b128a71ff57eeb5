/* expect: Invalid read of size 4 */
/* expect: at 0x[0-9A-F]*: reads_what_is_gone \(memcheck_copied_return\.c */
/* expect: by 0x[0-9A-F]*: outlives \(memcheck_copied_return\.c */
/*
 * A strand uses a variable of a function that has returned. Meanwhile its frames were copied out, and another strand
 * has used that part of the stack, which is deeper.
 */
#include "copied.h"

static strand_fibre fibre;

static NOINLINE void *goes_deep(void *arg)
{
    volatile char room[8192];
    room[0] = 1;
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = 1;
    is_there(NULL);
    return room[0] != 0 ? arg : NULL;
}

static NOINLINE int *leaves_behind(void)
{
    int inside[1000] = {1};
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
    strand other = strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), goes_deep, NULL, 0);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), outlives, NULL, 0));
    over = 1;
    strand_join(other);
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
