/*
 * A program that has a function of split stacks, as -fsplit-stack links it.
 */
#include "strand.h"

#include <stddef.h>
#include <stdio.h>

void *__morestack_allocate_stack_space(size_t size);

void *__morestack_allocate_stack_space(size_t size)
{
    (void)size;
    return NULL;
}

static void *root(void *arg)
{
    puts("strands run");
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
