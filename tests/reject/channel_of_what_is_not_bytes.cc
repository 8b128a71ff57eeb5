/* expect: the values of a channel are copied as bytes */
/* compiler: both */
#include "strand/chan.h"

struct Text {
    char *bytes;
    Text();
    Text(const Text &);
    ~Text();
};
typedef STRAND_CHAN(Text) texts;

texts open_one(strand_scope scope);

texts open_one(strand_scope scope)
{
    return STRAND_CHAN_OPEN(texts, scope, 1);
}
