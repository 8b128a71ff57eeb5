/* expect: this macro of libstrand needs -fexceptions */
/* flags: -fno-exceptions */
/* compiler: both */
/* contract 4.44 */
#include "strand.h"

void *work(void *arg);

void *work(void *arg)
{
    STRAND_TRY {
        strand_yield();
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
    }
    STRAND_END
    return arg;
}
