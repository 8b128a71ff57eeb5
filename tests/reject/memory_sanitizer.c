/* expect: libstrand does not support -fsanitize=memory */
/* flags: -fexceptions -fsanitize=memory */
/* compiler: clang */
#include "strand.h"

void *work(void *arg);

void *work(void *arg)
{
    STRAND_SCOPE(scope);
    return arg;
}
