/*
 * A user's C program, linked with nothing but the library: it spawns, throws through a clean-up, catches, and joins.
 * tools/check-link.sh looks at who serves its unwinding.
 */
/* contract 9.8 */
#include "strand.h"

#include <stdio.h>

static int cleaned;

static void clean(int *value)
{
    cleaned += *value;
}

static void *child(void *arg)
{
    int value __attribute__((cleanup(clean))) = 1;
    strand_yield();
    if (arg != NULL)
        strand_throw(&STRAND_ERROR, "on purpose");
    return NULL;
}

static void *root(void *arg)
{
    int caught = 0;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, child, NULL));

    void *result;
    strand_exception *e = strand_try(child, arg, &result);
    caught += e != NULL && strand_exception_is(e, &STRAND_ERROR);
    strand_exception_release(e);

    strand failing = strand_spawn(scope, child, arg);
    STRAND_TRY {
        strand_join(failing);
    }
    STRAND_CATCH(&STRAND_ERROR, failure) {
        *(int *)arg = 1;
    }
    STRAND_END
    printf("%d cleaned, %d caught\n", cleaned, caught + *(int *)arg);
    return NULL;
}

int main(void)
{
    int caught = 0;
    strand_run(NULL, root, &caught);
    return cleaned == 3 && caught == 1 ? 0 : 1;
}
