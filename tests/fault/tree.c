/*
 * Trees of strands, so many at a time that memory for them is taken more than once.
 */
#include "fault.h"

enum { CHILDREN = 40 };

static void *leaf(void *arg)
{
    strand_yield();
    return arg;
}

/* The results of the children, added. */
static void *branch(void *arg)
{
    long sum = 0;
    STRAND_SCOPE(scope);
    strand children[CHILDREN];
    for (long i = 0; i < CHILDREN; i++)
        children[i] = strand_spawn(scope, leaf, (void *)(uintptr_t)i);
    for (long i = 0; i < CHILDREN; i++)
        sum += (long)(uintptr_t)strand_join(children[i]);
    FAULT_CHECK(sum == CHILDREN * (CHILDREN - 1) / 2);
    return arg;
}

static void *named(void *arg)
{
    strand_yield();
    return *(void **)arg;
}

static void *root(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    for (int i = 0; i < CHILDREN; i++)
        strand_spawn(scope, branch, NULL);
    strand_scope_join(scope);
    const void *words[] = {FAULT_DONE};
    strand child =
        strand_spawn_with(scope, STRAND_ATTR(.name = "named", .stack_size = 32 * 1024), named, words, sizeof words);
    FAULT_CHECK(strand_join(child) == FAULT_DONE);
    return FAULT_DONE;
}

FAULT_WORKLOAD(tree, RUN_ANY, root, .options.stack_size = 16 * 1024)
