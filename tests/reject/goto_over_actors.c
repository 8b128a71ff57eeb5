/* expect: jump into scope|cannot jump from this goto */
#include "strand/actor.h"

void *work(void *arg);

void *work(void *arg)
{
    if (!arg)
        goto out;
    STRAND_ACTORS(system, NULL);
out:
    return arg;
}
