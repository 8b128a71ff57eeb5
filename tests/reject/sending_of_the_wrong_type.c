/* expect: the value (to be sent )?is not the address of an element of the channel */
/* flags: -fexceptions */
/* compiler: both */
#include "strand/chan.h"

typedef STRAND_CHAN(int) numbers;

void use_the_wrong_type(numbers chan);

void use_the_wrong_type(numbers chan)
{
    long line = 1;
    STRAND_SEND(chan, &line);
}
