/*
 * Jumps that go round blocks, out of them and within them, and a program that wants no arrays of computed size.
 */
#pragma GCC diagnostic error "-Wvla"
#include "strand.h"
#include "strand/sync.h"

int work(int rounds, strand_mutex *mutex);

int work(int rounds, strand_mutex *mutex)
{
    int done = 0;
    if (rounds < 0)
        goto out;
again : {
    STRAND_SCOPE(scope);
    STRAND_DEADLINE(strand_in(STRAND_S));
    if (done == rounds)
        goto out;
    if (done & 1)
        goto odd;
    strand_scope_cancel(scope, "even");
odd:
    done++;
    goto again;
}
out:
    switch (done) {
    case 0:
        break;
    case 1: {
        STRAND_LOCKED(mutex);
        break;
    }
    default:;
        STRAND_LOCKED(mutex);
        done = 1;
    }
    return done;
}
