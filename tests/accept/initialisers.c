/*
 * Objects, kinds and keys by their initialisers, in static storage and in blocks.
 */
#include "strand/limit.h"
#include "strand/sync.h"

extern const strand_kind QUIET_ERROR;
const strand_kind QUIET_ERROR = STRAND_KIND("QUIET_ERROR", &STRAND_ERROR);
static const strand_key QUIET_KEY = STRAND_KEY("quiet");

static strand_mutex mutex = STRAND_MUTEX_INIT;
static strand_semaphore three = STRAND_SEMAPHORE_INIT(3), at_most_four = STRAND_SEMAPHORE_INIT_BOUNDED(2, 4);

static void *root(void *arg)
{
    strand_condition condition = STRAND_CONDITION_INIT;
    strand_rwlock lock = STRAND_RWLOCK_INIT;
    strand_barrier barrier = STRAND_BARRIER_INIT(1);
    strand_once once = STRAND_ONCE_INIT;
    strand_event event = STRAND_EVENT_INIT;
    strand_group group = STRAND_GROUP_INIT;
    strand_latch latch = STRAND_LATCH_INIT(1);
    STRAND_LOCAL(&QUIET_KEY, &mutex);
    STRAND_LOCKED(&mutex);
    STRAND_READ_LOCKED(&lock);
    STRAND_PERMIT(&three);
    STRAND_PERMIT(&at_most_four);
    strand_condition_signal(&condition);
    strand_event_set(&event);
    strand_group_wait(&group);
    strand_latch_count_down(&latch, 1);
    if (strand_barrier_wait(&barrier) && !strand_once_done(&once) && strand_mutex_held(&mutex))
        return arg;
    strand_throw_with(&QUIET_ERROR, STRAND_THROW_INFO(.code = -1), "not so quiet");
}

int main(void)
{
    return strand_run(NULL, root, &mutex) != &mutex;
}
