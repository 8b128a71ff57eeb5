/* expect: cannot call function 'strand_scope_leave_' while no-suspend section .* is held */
/* flags: -fexceptions -Wthread-safety -Werror */
/* compiler: clang */
/* N-02 */
#include "strand.h"

void *spawn_and_leave(void *arg);

void *spawn_and_leave(void *arg)
{
    STRAND_NO_SUSPEND;
    STRAND_SCOPE(scope);
    strand_cancel(strand_spawn(scope, spawn_and_leave, arg), NULL);
    return arg;
}
