/* expect: this macro of libstrand needs -fexceptions */
/* flags: -fno-exceptions */
/* compiler: both */
#include "strand/actor.h"

void *work(void *arg);

void *work(void *arg)
{
    STRAND_ACTORS(system, NULL);
    return arg;
}
