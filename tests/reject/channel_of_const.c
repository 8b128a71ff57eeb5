/* expect: so they are not const */
/* compiler: both */
/* H-01 */
#include "strand/chan.h"

typedef STRAND_CHAN(const int) numbers;

numbers open_one(strand_scope scope);

numbers open_one(strand_scope scope)
{
    return STRAND_CHAN_OPEN(numbers, scope, 1);
}
