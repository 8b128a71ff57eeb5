/* expect: ThreadSanitizer: data race */
/* expect: ^ *#0 counts .*tsan_copied_race */
/*
 * Strands of two shared fibres, on one or two threads, increment a counter without synchronisation. Their frames are
 * copied out and in all the time.
 */
#include "copied.h"

enum { TURNS = 1000 };
static int counter;
static _Atomic int turn; /* by turns: what happens to lie between two counts must not order all of them */
static strand_fibre fibres[2];

static void *counts(void *fibre)
{
    int mine = fibre == &fibres[1];
    be_copied(fibres[mine]);
    for (int i = 0; i < TURNS; i++) {
        while (atomic_load_explicit(&turn, memory_order_relaxed) != 2 * i + mine)
            strand_yield();
        *(volatile int *)&counter += 1;
        atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
    }
    return NULL;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand counting[2];
    for (int i = 0; i < 2; i++) {
        fibres[i] = strand_fibre_open(scope, NULL);
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibres[i]), is_there, NULL, 0);
        counting[i] = strand_spawn_with(scope, STRAND_ATTR(.fibre = fibres[i]), counts, &fibres[i], 0);
    }
    for (int i = 0; i < 2; i++)
        strand_join(counting[i]);
    over = 1;
    strand_scope_join(scope);
    return arg;
}

int main(void)
{
    strand_run(STRAND_OPTIONS(.threads = 2), root, NULL);
    return 0;
}
