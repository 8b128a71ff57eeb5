/* expect: cannot call function 'strand_yield' while no-suspend section .* is held */
/* flags: -fexceptions -Wthread-safety -Werror */
/* compiler: clang */
/* N-02 */
#include "strand.h"
#include "strand/monitor.h"

STRAND_MONITOR(account, { int balance; });

int account_add(struct account *account, int sum);

int account_add(struct account *account, int sum)
{
    STRAND_MONITOR_ENTER(account, in, account);
    strand_yield();
    return in->balance += sum;
}
