/* expect: strand\.h needs -fexceptions */
/* flags: -fno-exceptions */
/* compiler: both */
#include "strand.h"

int main(void)
{
    return 0;
}
