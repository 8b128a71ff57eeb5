/* expect: in a header, declare the message type by STRAND_MESSAGE_DECLARE */
/* compiler: both */
#include "message_type_in_a_header.h"
