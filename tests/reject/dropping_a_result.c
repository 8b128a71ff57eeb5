/* expect: ignoring return value */
/* flags: -fexceptions -Werror */
/* compiler: clang */
#include "strand/chan.h"

void drop_it(strand_chan chan, const int *value);

void drop_it(strand_chan chan, const int *value)
{
    STRAND_IGNORE(strand_chan_send(chan, value));
    strand_chan_send(chan, value);
}
