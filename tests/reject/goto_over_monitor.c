/* expect: jump into scope|cannot jump from this goto */
#include "strand/monitor.h"

STRAND_MONITOR(account, { long cents; });

void *work(void *arg);

void *work(void *arg)
{
    if (!arg)
        goto out;
    STRAND_MONITOR_ENTER(account, in, arg);
out:
    return arg;
}
