/* expect: jump into scope|cannot jump from this goto */
/* case: STRAND_ACTORS(system, NULL) */
/* case: STRAND_DEADLINE_AS(limit, strand_in(STRAND_S)) */
/* case: STRAND_MONITOR_ENTER(account, in, arg) */
/* case: STRAND_NO_SUSPEND */
/* case: STRAND_SCOPE(children) */
/* case: STRAND_SHIELD */
/* case: STRAND_SIGNALS(ends, 15) */
/* case: STRAND_WITHIN_LIMITS */
#include "strand/actor.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/monitor.h"

STRAND_MONITOR(account, { long cents; });

void *work(void *arg);

void *work(void *arg)
{
    if (!arg)
        goto out;
    CASE;
out:
    return arg;
}
