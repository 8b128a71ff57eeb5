/* expect: no member named .?balance */
/* flags: -fexceptions */
/* compiler: both */
/* N-02 */
#include "strand.h"
#include "strand/monitor.h"

STRAND_MONITOR(account, { int balance; });

int balance_of(struct account *account);

int balance_of(struct account *account)
{
    return account->balance;
}
