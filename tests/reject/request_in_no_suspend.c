/* expect: cannot call function 'strand_limits_enter_' while no-suspend section .* is held */
/* flags: -fexceptions -Wthread-safety -Werror */
/* compiler: clang */
/* N-02 */
#include "strand.h"
#include "strand/limit.h"

void *hold_and_request(void *arg);

void *hold_and_request(void *arg)
{
    STRAND_NO_SUSPEND;
    STRAND_WITHIN_LIMITS;
    return arg;
}
