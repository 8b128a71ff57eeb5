/* expect: jump into scope|cannot jump from this goto */
#include "strand/io.h"

void *work(void *arg);

void *work(void *arg)
{
    if (!arg)
        goto out;
    STRAND_SIGNALS(ends, 15);
out:
    return arg;
}
