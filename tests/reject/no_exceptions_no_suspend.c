/* expect: this macro of libstrand needs -fexceptions */
/* flags: -fno-exceptions */
/* compiler: both */
#include "strand.h"

void *work(void *arg);

void *work(void *arg)
{
    STRAND_NO_SUSPEND;
    return arg;
}
