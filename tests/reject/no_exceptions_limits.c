/* expect: this macro of libstrand needs -fexceptions */
/* flags: -fno-exceptions */
/* compiler: both */
#include "strand/limit.h"

void *work(void *arg);

void *work(void *arg)
{
    STRAND_WITHIN_LIMITS;
    return arg;
}
