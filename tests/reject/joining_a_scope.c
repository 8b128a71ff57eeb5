/* expect: incompatible type */
/* flags: -fexceptions */
/* compiler: both */
#include "strand.h"

void *join_the_wrong_thing(void *arg);

void *join_the_wrong_thing(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(scope);
    return arg;
}
