/* expect: ThreadSanitizer: data race */
/* expect: ^ *#0 writes .*tsan_copied_stack */
/*
 * The root, on a stack of its own, writes to a local of a strand that is inactive, by an address that the escape
 * detector has not seen: it is somebody else's local by now.
 */
#include "copied.h"

static strand_fibre fibre;
enum { TURNS = 100 };
static int *_Atomic shown;
static _Atomic int turn;

static void *shows(void *arg)
{
    int local[4] = {0};
    atomic_store_explicit(&shown, local, memory_order_relaxed);
    for (int i = 0; i < TURNS; i++) {
        while (atomic_load_explicit(&turn, memory_order_relaxed) != 2 * i)
            strand_yield();
        *(volatile int *)local += 1;
        be_copied(fibre);
        atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
    }
    return arg;
}

static NOINLINE void writes(int *at)
{
    *at = 0;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    fibre = strand_fibre_open(scope, NULL);
    strand other = strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), is_there, NULL, 0);
    strand showing = strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), shows, NULL, 0);
    for (int i = 0; i < TURNS; i++) {
        while (atomic_load_explicit(&turn, memory_order_relaxed) != 2 * i + 1)
            strand_yield();
        writes(atomic_load_explicit(&shown, memory_order_relaxed));
        atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
    }
    strand_join(showing);
    over = 1;
    strand_join(other);
    return arg;
}

int main(void)
{
    strand_run(STRAND_OPTIONS(.threads = 2), root, NULL);
    return 0;
}
