/* expect: libstrand does not support -fsanitize=safe-stack */
/* flags: -fexceptions -fsanitize=safe-stack */
/* compiler: clang */
#include "strand.h"

void *work(void *arg);

void *work(void *arg)
{
    STRAND_SCOPE(scope);
    return arg;
}
