/*
 * A program that has a function of MemorySanitizer, as -fsanitize=memory links it.
 */
#include "strand.h"

#include <stdio.h>

void __msan_init(void);

void __msan_init(void) {}

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
