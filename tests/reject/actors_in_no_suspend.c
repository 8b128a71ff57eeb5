/* expect: cannot call function 'strand_actors_enter_' while no-suspend section .* is held */
/* flags: -fexceptions -Wthread-safety -Werror */
/* compiler: clang */
/* N-02 */
#include "strand.h"
#include "strand/actor.h"

void *hold_and_open(void *arg);

void *hold_and_open(void *arg)
{
    STRAND_NO_SUSPEND;
    STRAND_ACTORS(system, NULL);
    return arg;
}
