/* expect: this macro of libstrand needs -fexceptions */
/* flags: -fno-exceptions */
/* compiler: both */
#include "strand/io.h"

void *work(void *arg);

void *work(void *arg)
{
    STRAND_SIGNALS(ends, 15);
    return arg;
}
