/* expect: cannot call function 'strand_sleep' while no-suspend section .* is held */
/* flags: -fexceptions -Wthread-safety -Werror */
/* compiler: clang */
/* N-02, contract 5.8 */
#include "strand.h"

void *hold_and_sleep(void *arg);

void *hold_and_sleep(void *arg)
{
    STRAND_NO_SUSPEND;
    strand_sleep(STRAND_MS);
    return arg;
}
