/* expect: this macro of libstrand needs -fexceptions */
/* flags: -fno-exceptions */
/* compiler: both */
#include "strand/monitor.h"

STRAND_MONITOR(account, { long cents; });

void *work(void *arg);

void *work(void *arg)
{
    STRAND_MONITOR_ENTER(account, in, arg);
    return arg;
}
