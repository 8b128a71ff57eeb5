/* expect: 100 bytes in 1 blocks are definitely lost */
/* expect: by 0x[0-9A-F]*: forgets \(memcheck_copied_leak\.c */
/* never: by 0x[0-9A-F]*: holds */
/*
 * Strands that share a stack have a block each, of which only their frames know. One forgets its own, after its frames
 * were copied out and in, and ends the program: the saved stack that is kept for the next time may not count as
 * somebody who still knows of it. The other is inactive then, and its saved stack does count. Leaks are looked for when
 * a program ends.
 */
#include "copied.h"

static strand_fibre fibre;

static void *forgets(void *arg)
{
    void *volatile memory = malloc(100);
    be_copied(fibre);
    memory = NULL;
    _Exit(memory != arg);
}

static void *holds(void *arg)
{
    void *volatile memory = malloc(200);
    strand_sleep(STRAND_S);
    free(memory);
    return arg;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    fibre = strand_fibre_open(scope, NULL);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), holds, NULL, 0);
    run_beside_another(scope, fibre, forgets, NULL);
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
