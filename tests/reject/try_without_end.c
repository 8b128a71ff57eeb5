/* expect: expected */
/* flags: -fexceptions */
/* compiler: both */
#include "strand.h"

void *leave_the_try_open(void *arg);

void *leave_the_try_open(void *arg)
{
    STRAND_TRY {
        strand_yield();
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        return NULL;
    }
    return arg;
}
