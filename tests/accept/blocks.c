/*
 * Each macro that opens a block, with names that nothing uses, inside of others, and in functions without a strand.
 */
#include "strand/actor.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/monitor.h"
#include "strand/pool.h"

#include <signal.h>

STRAND_MONITOR(account, { long cents; });
STRAND_MESSAGE(deposit, {
    long cents;
    int times;
});

static const strand_key trace = STRAND_KEY("trace");
static const strand_kind MY_ERROR = STRAND_KIND("my error", &STRAND_ERROR);
struct account bank;
void *root(void *arg);
int main(void);

static long balance(struct account *a)
{
    STRAND_MONITOR_ENTER(account, in, a);
    return in->cents;
}

static strand_exception *guarded(strand_fn *fn, void *arg)
{
    STRAND_NO_SUSPEND;
    STRAND_LOCAL(&trace, arg);
    return strand_try(fn, arg, NULL);
}

static void nested(void)
{
    STRAND_SCOPE(outer);
    STRAND_SCOPE_OPEN(inner);
    STRAND_SCOPE_WITH(last, STRAND_COLLECT | STRAND_TOGETHER);
    STRAND_SHIELD;
    STRAND_SHIELD;
    STRAND_DEADLINE(strand_in(1));
    STRAND_DEADLINE(strand_in(2));
    STRAND_WITHIN_LIMITS;
    STRAND_TRY {
        STRAND_TRY {
            STRAND_TRY {
                strand_throw(&MY_ERROR, "%d", 1);
            }
            STRAND_CATCH(&STRAND_SYSTEM, e) {
            }
            STRAND_END
        }
        STRAND_CATCH(&MY_ERROR, e) {
            strand_throw_with(&MY_ERROR, STRAND_THROW_INFO(.cause = strand_exception_keep(e)), "again");
        }
        STRAND_END
    }
    STRAND_CATCH(&STRAND_ANY, e) {
    }
    STRAND_END
}

static void served(void)
{
    STRAND_SIGNALS(ends, SIGINT, SIGTERM);
    STRAND_ACTORS(system, STRAND_ACTORS_ATTR(.name = "system"));
    strand_tell((strand_actor){{0, 0}}, STRAND_MSG(deposit, .cents = 1));
    int64_t written = strand_write_all(1, "x", 1);
    STRAND_IGNORE(strand_dial_tcp("", (int)written));
}

void *root(void *arg)
{
    STRAND_SCOPE(scope);
    nested();
    served();
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "child"), root, NULL, 0));
    strand_exception_release(guarded(root, arg));
    return balance(&bank) ? arg : NULL;
}

int main(void)
{
    return strand_run(STRAND_OPTIONS(.threads = 2), root, NULL) != NULL;
}
