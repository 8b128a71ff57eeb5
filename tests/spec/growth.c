/*
 * What a strand, or a semaphore, can have many of costs no more than it has to: ten times as many take less than 40
 * times as long.
 */
#define SUITE growth
#include "growth.h"
#include "test.h"

#include "strand/limit.h"
#include "strand/pool.h"
#include "strand/sync.h"

/* ---- what is measured -------------------------------------------------------------------------------------- */

/* All locks are taken, and given back in the same order: so what is given back was never the newest. */
static void hold_mutexes(int count)
{
    strand_mutex *mutexes = calloc((size_t)count, sizeof *mutexes);
    for (int i = 0; i < count; i++)
        strand_mutex_lock(&mutexes[i]);
    for (int i = 0; i < count; i++)
        strand_mutex_unlock(&mutexes[i]);
    free(mutexes);
}

static void hold_read_locks(int count)
{
    strand_rwlock *locks = calloc((size_t)count, sizeof *locks);
    for (int i = 0; i < count; i++)
        strand_rwlock_read(&locks[i]);
    for (int i = 0; i < count; i++)
        strand_rwlock_read_done(&locks[i]);
    free(locks);
}

/* Those that wait share a stack, so that many of them need little memory. */
static strand_fibre guests;

static strand spawn_here(strand_scope scope, strand_fn *fn, void *arg)
{
    return strand_spawn_with(scope, STRAND_ATTR(.fibre = guests), fn, arg, 0);
}

static _Atomic int waits;

static void *wait_for_end(void *other)
{
    waits++;
    strand_wait(*(strand *)other);
    return NULL;
}

static void *wait_for_event(void *event)
{
    strand_event_wait(event);
    return NULL;
}

/* In both orders: half of them from the last on, then the others from the first on. */
static void interrupt_those_who_wait(int count)
{
    strand_event event = {{0}};
    waits = 0;
    STRAND_SCOPE(outer);
    strand other = spawn_here(outer, wait_for_event, &event);
    {
        strand *all = malloc((size_t)count * sizeof *all);
        STRAND_SCOPE(scope);
        for (int i = 0; i < count; i++)
            all[i] = spawn_here(scope, wait_for_end, &other);
        test_yield_until(&waits, count);
        for (int i = 0; i < count; i++) {
            strand_cancel(all[i < count / 2 ? count - 1 - i : i - count / 2], NULL);
            strand_yield();
        }
        free(all);
    }
    strand_event_set(&event);
    strand_join(other);
}

static strand_prio_semaphore permits;

static int by_number(const void *a, const void *b, void *arg)
{
    (void)arg;
    return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static void *take_and_give_back(void *key)
{
    strand_prio_acquire(&permits, key);
    strand_prio_release(&permits);
    return NULL;
}

/* Of different priorities, in no order. */
static void wait_for_permits(int count)
{
    STRAND_SCOPE(scope);
    strand_prio_init(&permits,
                     &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 1, .compare = by_number});
    strand_prio_acquire(&permits, NULL);
    for (unsigned i = 0; i < (unsigned)count; i++)
        spawn_here(scope, take_and_give_back, (void *)(uintptr_t)(i * 2654435761u));
    while (strand_prio_waiting(&permits) < (size_t)count)
        strand_yield();
    strand_prio_release(&permits);
    strand_scope_join(scope);
}

static int64_t number_of(const void *key, void *arg)
{
    (void)arg;
    return (int64_t)(uintptr_t)key;
}

static void prune_by_priority(int count)
{
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    strand_prio_init(&permits,
                     &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 1, .priority = number_of});
    strand_prio_acquire(&permits, NULL);
    for (unsigned i = 0; i < (unsigned)count; i++)
        spawn_here(scope, take_and_give_back, (void *)(uintptr_t)(i * 2654435761u));
    while (strand_prio_waiting(&permits) < (size_t)count)
        strand_yield();
    CHECK_EQ(strand_prio_prune(&permits, 0, NULL), (size_t)count);
    strand_scope_cancel(scope, NULL);
}

/* What is nested takes much stack, and sanitizers go through all of that again and again. */
#if !TEST_TSAN && !TEST_ASAN
enum { STACK = 64 << 20 };

static strand_limit *limits;

/* One half of the limits are opened in the order in which they are taken, the others the other way round. */
static void be_within(int made, int count)
{
    if (made < count) {
        STRAND_LIMIT(&limits[made < count / 2 ? made : count / 2 + count - 1 - made]);
        be_within(made + 1, count);
        return;
    }
    strand_held held = {{0}};
    strand_limits_acquire(&held);
    CHECK_EQ(strand_limit_in_flight(&limits[count / 2]), 1);
    strand_limits_release(&held);
}

static void take_of_many_limits(int count)
{
    limits = calloc((size_t)count, sizeof *limits);
    for (int i = 0; i < count; i++)
        strand_limit_init(&limits[i], 1, NULL);
    be_within(0, count);
    free(limits);
}
#else
enum { STACK = 0 };
#endif

/* ---- comparing --------------------------------------------------------------------------------------------- */

struct measure {
    void (*work)(int count);
    int count;
    int64_t took;
};

static void *measure(void *arg)
{
    struct measure *m = arg;
    STRAND_SCOPE(scope);
    guests = strand_fibre_open(scope, NULL);
    int64_t begun = growth_ns();
    m->work(m->count);
    m->took = growth_ns() - begun;
    return NULL;
}

static int64_t time_of(const void *what, int count)
{
    struct measure m = {*(void (*const *)(int))what, count, 0};
    strand_run(STRAND_OPTIONS(.threads = 1, .stack_size = STACK), measure, &m);
    return m.took;
}

static void compare(void (*work)(int))
{
    growth_compare(time_of, &work, growth_count(100000));
}

TEST_REAL(a_strand_gives_back_many_mutexes_in_the_order_of_taking)
{
    compare(hold_mutexes);
}

TEST_REAL(a_strand_gives_back_many_read_locks_in_the_order_of_taking)
{
    compare(hold_read_locks);
}

TEST_REAL(many_strands_that_wait_for_the_end_of_one_are_interrupted)
{
    compare(interrupt_those_who_wait);
}

TEST_REAL(many_strands_of_different_priorities_wait_for_permits)
{
    compare(wait_for_permits);
}

TEST_REAL(many_waiters_with_priorities_are_pruned_in_one_call)
{
    compare(prune_by_priority);
}

#if !TEST_TSAN && !TEST_ASAN
TEST_REAL(a_strand_takes_a_permit_of_each_of_many_limits)
{
    compare(take_of_many_limits);
}
#endif
