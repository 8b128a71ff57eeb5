/*
 * Exceptions that C++ code handles, or that are C++'s own. The rules are in cxx.h.
 */
#include "cxx.h"

#include "exception.h"

/* Sources below it are put off [U1]. */
static uint32_t floor_now(const struct own *own, uintptr_t uncaught)
{
    if (uncaught <= own->tries->uncaught)
        return own->shield;
    uint32_t first = own->depth + 1;
    for (const struct block *block = own->blocks; block && block->uncaught >= uncaught; block = block->outer)
        first = block->index;
    return first > own->shield ? first : own->shield;
}

COLD void cxx_settle_(struct thread *thread, struct cb *me)
{
    exception_set_aside(me); /* [U2] */
    own_of(me)->floor = floor_now(own_of(me), thread->cxx->uncaught);
}
