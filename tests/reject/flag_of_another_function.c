/* expect: implicit conversion from .*enum strand_drive_flag */
/* flags: -fexceptions -Wextra -Werror */
/* compiler: both */
#include "strand/pool.h"
#include "strand/select.h"

int select_one(strand_case *c);

int select_one(strand_case *c)
{
    return strand_select(c, 1, STRAND_DRIVE_WAIT);
}
