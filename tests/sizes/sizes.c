/*
 * Prints the bytes that every strand, scope, actor and exception costs, a line each. tools/check-sizes.sh compares them
 * with tests/sizes/expected. The live stack is that of the simplest strand that yields or sleeps, measured on a shared
 * fibre; the others are the library's own structures.
 */
#include "../../src/actor/actor.h"
#include "../../src/strand/core.h"
#include "../../src/strand/exception.h"

#include <strand/pool.h>

#include <stdio.h>

static void *yields(void *arg)
{
    strand_yield();
    return arg;
}

static void *sleeps(void *arg)
{
    strand_sleep(STRAND_MS);
    return arg;
}

/* Two strands of one fibre, so that the first one's stack is saved while the second one runs. */
static size_t live_bytes(strand_fn *fn)
{
    strand_fibre_info info = {.size = sizeof info};
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 65536));
    strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), fn, NULL, 0);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), fn, NULL, 0);
    strand_scope_join(scope);
    strand_fibre_info_get(fibre, 0, &info);
    return info.stack_deepest;
}

static void *root(void *arg)
{
    printf("yielding_stack %zu\n", live_bytes(yields));
    printf("sleeping_stack %zu\n", live_bytes(sleeps));
    printf("control_block %zu\n", sizeof(struct cb));
    printf("scope %zu\n", sizeof(struct scope));
    printf("actor_cell %zu\n", sizeof(struct cell));
    printf("exception %zu\n", sizeof(struct strand_exception));
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
