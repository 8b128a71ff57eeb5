/* expect: jump into scope|cannot jump from this goto */
#include "strand.h"

void *work(void *arg);

void *work(void *arg)
{
    if (!arg)
        goto out;
    STRAND_NO_SUSPEND;
out:
    return arg;
}
