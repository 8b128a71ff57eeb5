/* expect: jump into scope|cannot jump from this goto */
#include "strand.h"
#include "strand/check.h"

void *work(void *arg);

void *work(void *arg)
{
    if (!arg)
        goto out;
    STRAND_SCOPE(children);
out:
    return arg;
}
