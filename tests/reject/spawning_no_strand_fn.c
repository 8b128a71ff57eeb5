/* expect: incompatible.* pointer type */
/* flags: -fexceptions -Werror */
/* compiler: both */
#include "strand.h"

static int not_a_strand_fn(int x)
{
    return x;
}

void *spawn_the_wrong_thing(void *arg);

void *spawn_the_wrong_thing(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, not_a_strand_fn, arg);
    strand_scope_join(scope);
    return arg;
}
