/*
 * Locks, semaphores and limits, with many who wait, and with one strand that holds many.
 */
#include "fault.h"

#include "strand/limit.h"
#include "strand/sync.h"

#include <errno.h>

#include "strand/check.h"

enum { MANY = 60, HELD = 40, LIMITS = 12 };

/* ---- many who wait ---------------------------------------------------------------------------------------- */

static struct shared {
    strand_mutex mutex;
    strand_rwlock rwlock;
    strand_semaphore semaphore;
    strand_prio_semaphore prio;
    strand_limit limit;
    long count;
} shared;

static void *contend(void *arg)
{
    {
        STRAND_LOCKED(&shared.mutex);
        strand_yield();
        shared.count++;
    }
    {
        STRAND_READ_LOCKED(&shared.rwlock);
        strand_yield();
    }
    {
        STRAND_PERMIT(&shared.semaphore);
        strand_yield();
    }
    {
        STRAND_PRIO_PERMIT(&shared.prio, arg);
        strand_yield();
    }
    {
        STRAND_LIMIT(&shared.limit);
        STRAND_WITHIN_LIMITS;
        strand_yield();
    }
    return arg;
}

static int by_number(const void *a, const void *b, void *arg)
{
    (void)arg;
    return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static void crowd(void)
{
    shared = (struct shared){.semaphore = STRAND_SEMAPHORE_INIT(2)};
    strand_prio_init(&shared.prio,
                     &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 2, .compare = by_number});
    strand_limit_init(&shared.limit, 3, "crowd");
    STRAND_SCOPE(scope);
    for (uintptr_t i = 0; i < MANY; i++)
        strand_spawn(scope, contend, (void *)i);
    strand_scope_join(scope);
    FAULT_CHECK(shared.count == MANY && strand_prio_in_flight(&shared.prio) == 0);
}

/* ---- pruned ----------------------------------------------------------------------------------------------- */

static void *wait_for_permit(void *arg)
{
    int result = strand_prio_acquire(&shared.prio, arg);
    FAULT_CHECK(result == 0);
    strand_prio_release(&shared.prio);
    return arg;
}

static void prune(void)
{
    STRAND_SCOPE(scope);
    STRAND_PRIO_PERMIT(&shared.prio, NULL);
    STRAND_PRIO_PERMIT(&shared.prio, NULL);
    strand child = strand_spawn(scope, wait_for_permit, NULL);
    while (!strand_ended(child) && strand_prio_waiting(&shared.prio) == 0)
        strand_sleep(STRAND_US);
    if (strand_prio_prune(&shared.prio, 0, "too many") == 0 && !strand_ended(child))
        strand_must(-ENOMEM); /* it has pruned nobody, and says so */
    STRAND_TRY {
        strand_join(child);
        FAULT_CHECK(false);
    }
    STRAND_CATCH(&STRAND_PRUNED, e) {
    }
    STRAND_END
}

/* ---- many that one holds ------------------------------------------------------------------------------------ */

static void hold_many(strand_mutex *mutexes, int count)
{
    if (count > 0) {
        STRAND_LOCKED(mutexes);
        hold_many(mutexes + 1, count - 1);
    }
}

static void limit_many(strand_limit *limits, int count)
{
    if (count > 0) {
        STRAND_LIMIT(limits);
        limit_many(limits + 1, count - 1);
    } else {
        strand_held held = {{0}};
        FAULT_CHECK(strand_limits_try_acquire(&held) == 0);
        strand_limits_release(&held);
        STRAND_WITHIN_LIMITS;
    }
}

static void checked(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void *root(void *arg)
{
    (void)arg;
    strand_mutex mutexes[HELD] = {{{0}}};
    strand_limit limits[LIMITS];
    crowd();
    prune();
    hold_many(mutexes, HELD);
    for (int i = 0; i < LIMITS; i++)
        strand_limit_init(&limits[i], 1, "one of many");
    limit_many(limits, LIMITS);
    for (int i = 0; i < LIMITS; i++)
        FAULT_CHECK(strand_limit_in_flight(&limits[i]) == 0);
    checked();
    return FAULT_DONE;
}

FAULT_WORKLOAD(locks, RUN_ANY, root, )
