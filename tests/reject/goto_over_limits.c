/* expect: jump into scope|cannot jump from this goto */
#include "strand/limit.h"

void *work(void *arg);

void *work(void *arg)
{
    if (!arg)
        goto out;
    STRAND_WITHIN_LIMITS;
out:
    return arg;
}
