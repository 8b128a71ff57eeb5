/*
 * Suppresses an exception with none in flight and without a log hook.
 */
#include "strand.h"

static void *fail(void *arg)
{
    (void)arg;
    strand_throw(&STRAND_ERROR, "lost letter");
}

static void *root(void *arg)
{
    strand_suppress(strand_try(fail, arg, NULL));
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
