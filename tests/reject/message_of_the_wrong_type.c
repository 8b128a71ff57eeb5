/* expect: format .*%s.* expects|format specifies type 'char \*' */
/* flags: -fexceptions -Wall -Werror */
/* compiler: both */
#include "strand.h"

void throw_a_number(int number);

void throw_a_number(int number)
{
    strand_throw(&STRAND_ERROR, "%s", number);
}
