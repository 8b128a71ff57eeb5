/*
 * Misuse of strand/sync.h.
 */
#define CASE_OPTIONS .threads = 1
#include "cases.h"

#include "strand/sync.h"

static strand_mutex mutex;
static strand_rwlock rwlock;
static strand_condition condition;
static strand_once once;

static NOINLINE void lock_here(void)
{
    strand_mutex_lock(&mutex);
    __asm__ volatile("");
}

static void *unlock(void *arg)
{
    strand_mutex_unlock(&mutex);
    return arg;
}

MISUSE(unlock_of_another, "strand_mutex_unlock", "by strand 'root'", "lock_here")
{
    STRAND_SCOPE(scope);
    lock_here();
    return strand_join(strand_spawn(scope, unlock, arg));
}

MISUSE(lock_twice, "strand_mutex_lock", "the caller holds the mutex already, and would wait for itself", "lock_here")
DOES(lock_here(); strand_mutex_lock(&mutex))

static void *lock_and_end(void *arg)
{
    lock_here();
    return arg;
}

static void *lock_and_throw(void *arg)
{
    (void)arg;
    lock_here();
    strand_throw(&STRAND_ERROR, "with a mutex");
}

MISUSE(end_with_a_mutex, "strand_fn", "ends, and still holds a mutex", "lock_here")
{
    STRAND_SCOPE(scope);
    return strand_join(strand_spawn(scope, lock_and_end, arg));
}

MISUSE(throw_with_a_mutex, "strand_fn", "by the exception 'with a mutex', and still holds a mutex", "lock_here")
{
    STRAND_SCOPE(scope);
    return strand_join(strand_spawn(scope, lock_and_throw, arg));
}

MISUSE(lock_in_no_suspend, "strand_mutex_lock", "no-suspend section")
DOES(STRAND_NO_SUSPEND; strand_mutex_lock(&mutex))

MISUSE(wait_without_the_mutex, "strand_condition_wait", "the mutex is not locked", "the mutex is at 0x")
DOES(strand_condition_wait(&condition, &mutex))

static NOINLINE void write_here(void)
{
    strand_rwlock_write(&rwlock);
    __asm__ volatile("");
}

MISUSE(write_twice, "strand_rwlock_write", "the caller holds the lock as its writer, and would wait for itself",
       "write_here")
DOES(write_here(); strand_rwlock_write(&rwlock))

MISUSE(read_as_the_writer, "strand_rwlock_read", "the caller holds the lock as its writer, and would wait for itself",
       "write_here")
DOES(write_here(); strand_rwlock_read(&rwlock))

MISUSE(read_done_by_nobody, "strand_rwlock_read_done", "the caller does not hold the lock as a reader",
       "the lock is at 0x")
DOES(strand_rwlock_read_done(&rwlock))

static void *write_done(void *arg)
{
    strand_rwlock_write_done(&rwlock);
    return arg;
}

MISUSE(write_done_by_another, "strand_rwlock_write_done", "the caller does not hold the lock as its writer")
{
    STRAND_SCOPE(scope);
    write_here();
    return strand_join(strand_spawn(scope, write_done, arg));
}

MISUSE(end_as_the_writer, "strand_fn", "ends, and still holds a read-write lock", "write_here")
DOES(write_here())

static NOINLINE void read_here(void)
{
    strand_rwlock_read(&rwlock);
    __asm__ volatile("");
}

MISUSE(end_as_a_reader, "strand_fn", "ends, and still holds a read lock", "read_here")
DOES(read_here())

MISUSE(write_as_a_reader, "strand_rwlock_write", "the caller holds the lock as a reader, and would wait for itself",
       "read_here")
DOES(read_here(); strand_rwlock_write(&rwlock))

static void *write_and_give_back(void *arg)
{
    write_here();
    strand_rwlock_write_done(&rwlock);
    return arg;
}

/* contract 5.6 */
MISUSE(read_again_while_a_writer_waits, "strand_rwlock_read", "read_here", "would wait for itself")
{
    STRAND_SCOPE(scope);
    read_here();
    strand_spawn(scope, write_and_give_back, arg);
    for (int i = 0; i < 10; i++)
        strand_yield();
    strand_rwlock_read(&rwlock);
    return arg;
}

MISUSE(read_done_by_another, "strand_rwlock_read_done", "the caller does not hold")
{
    STRAND_SCOPE(scope);
    read_here();
    return strand_join(strand_spawn(scope, read_done_by_nobody, arg));
}

/* Locks that die while they are held. */

static NOINLINE void lose_mutexes(int count)
{
    strand_mutex mutexes[count];
    memset(mutexes, 0, sizeof mutexes);
    for (int i = 0; i < count; i++)
        strand_mutex_lock(&mutexes[i]);
    __asm__ volatile("" : : "r"(mutexes) : "memory");
}

static NOINLINE void lose_rwlocks(void)
{
    strand_rwlock locks[2] = {{{0}}};
    strand_rwlock_write(&locks[0]);
    strand_rwlock_read(&locks[1]);
    __asm__ volatile("" : : "r"(locks) : "memory");
}

static NOINLINE void overwrite_the_stack(void)
{
    volatile char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0x41;
}

MISUSE(end_with_a_lost_mutex, "strand_fn", "ends, and still holds a mutex", "was locked in lose_mutexes+",
       "the mutex at 0x", "!it holds")
DOES(lose_mutexes(1); overwrite_the_stack())

MISUSE(end_with_many_lost_mutexes, "strand_fn", "ends, and still holds a mutex", "was locked in lose_mutexes+",
       ", and it holds 39 more")
DOES(lose_mutexes(40); overwrite_the_stack())

MISUSE(end_with_lost_rwlocks, "strand_fn", "ends, and still holds a read", "lose_rwlocks", ", and it holds 1 more")
{
    lose_rwlocks();
    overwrite_the_stack();
    write_here(); /* looks through what is held */
    strand_rwlock_write_done(&rwlock);
    return arg;
}

MISUSE(begin_above_the_bound, "strand_semaphore_acquire",
       "the semaphore was made with 5 permits, more than its bound of 2", "the semaphore is at 0x")
DOES(strand_semaphore semaphore = STRAND_SEMAPHORE_INIT_BOUNDED(5, 2); strand_semaphore_acquire(&semaphore))

MISUSE(select_above_the_bound, "strand_on_permit", "the semaphore was made with 5 permits, more than its bound of 2")
DOES(strand_semaphore semaphore = STRAND_SEMAPHORE_INIT_BOUNDED(5, 2); (void)strand_on_permit(&semaphore))

MISUSE(release_above_the_bound, "strand_semaphore_release",
       "the semaphore was made with 5 permits, more than its bound of 2")
DOES(strand_semaphore semaphore = STRAND_SEMAPHORE_INIT_BOUNDED(5, 2); strand_semaphore_release(&semaphore))

MISUSE(begin_with_too_many, "strand_semaphore_acquire", "made with more than 1152921504606846976 permits")
DOES(strand_semaphore semaphore = STRAND_SEMAPHORE_INIT((UINT64_C(1) << 60) + 1); strand_semaphore_acquire(&semaphore))

/* R-01, contract 4.69 */
MISUSE(release_too_many, "strand_semaphore_release", "bound of 3 permits", "the semaphore is at 0x")
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_INIT_BOUNDED(2, 3);
    strand_semaphore_release(&semaphore);
    strand_semaphore_release(&semaphore);
    return arg;
}

MISUSE(acquire_too_many, "strand_semaphore_acquire_many", "4 permits are more than the semaphore can ever have",
       "the semaphore is at 0x")
DOES(strand_semaphore semaphore = STRAND_SEMAPHORE_INIT_BOUNDED(2, 3); strand_semaphore_acquire_many(&semaphore, 4))

MISUSE(wait_at_a_zeroed_barrier, "strand_barrier_wait", "the barrier is for 0 strands", "the barrier is at 0x")
DOES(strand_barrier barrier = {{0}}; strand_barrier_wait(&barrier))

MISUSE(once_within_once, "strand_once_run",
       "it is called from within the function that it runs, and would wait for itself", "the once is at 0x")
{
    return strand_once_run(&once, once_within_once, arg);
}

/* contract 4.69 */
MISUSE(done_too_often, "strand_group_done", "counting down by 1 from 0 would go below 0", "the group is at 0x")
{
    strand_group group = {{0}};
    strand_group_add(&group, 1);
    strand_group_done(&group);
    strand_group_done(&group);
    return arg;
}

MISUSE(count_down_too_far, "strand_latch_count_down", "counting down by 3 from 2 would go below 0",
       "the latch is at 0x")
DOES(strand_latch latch = STRAND_LATCH_INIT(2); strand_latch_count_down(&latch, 3))

/* ---- two runs -------------------------------------------------------------------------------------------- */

static strand_event event;
static strand_semaphore semaphore;
static strand_barrier barrier = STRAND_BARRIER_INIT(2);

/* Another run, while this one stands still. */
static NOINLINE void *elsewhere(strand_fn *fn)
{
    strand_options options = {.size = sizeof options, .own_threads = true, .on_misuse = tell};
    return strand_run(&options, fn, NULL);
}

static void *lock_it(void *arg)
{
    lock_here();
    return arg;
}

/* V-01 */
MISUSE(lock_what_another_run_holds, "strand_mutex_lock", "of another run holds it",
       "is used by two runs of the process, but belongs to one")
DOES(lock_here(); elsewhere(lock_it))

static void *nothing(void *arg)
{
    return arg;
}

static void *do_it_once(void *arg)
{
    return strand_once_run(&once, nothing, arg);
}

static void *do_it_once_elsewhere(void *arg)
{
    (void)arg;
    return elsewhere(do_it_once);
}

MISUSE(once_that_another_run_is_at, "strand_once_run", "of another run holds it",
       "is used by two runs of the process, but belongs to one")
{
    return strand_once_run(&once, do_it_once_elsewhere, arg);
}

/* A strand of this run waits before the other run does something. */
static NOINLINE void wait_and_go_elsewhere(strand_fn *wait, strand_fn *fn)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, wait, NULL);
    for (int i = 0; i < 10; i++)
        strand_yield();
    elsewhere(fn);
}

static void *wait_for_the_event(void *arg)
{
    strand_event_wait(&event);
    return arg;
}

static void *set_the_event(void *arg)
{
    strand_event_set(&event);
    return arg;
}

MISUSE(set_what_another_run_waits_for, "strand_event_wait", "of another run waits for it",
       "is used by two runs of the process, but belongs to one")
DOES(wait_and_go_elsewhere(wait_for_the_event, set_the_event))

static void *acquire(void *arg)
{
    strand_semaphore_acquire(&semaphore);
    return arg;
}

/* V-01 */
MISUSE(queue_behind_another_run, "strand_semaphore_acquire", "of another run waits for it",
       "is used by two runs of the process, but belongs to one")
DOES(wait_and_go_elsewhere(acquire, acquire))

static void *select_behind(void *arg)
{
    strand_case c = strand_on_permit(&semaphore);
    strand_select(&c, 1, 0);
    return arg;
}

MISUSE(select_behind_another_run, "strand_select", "of another run waits for it",
       "is used by two runs of the process, but belongs to one")
DOES(wait_and_go_elsewhere(select_behind, select_behind))

static void *come(void *arg)
{
    strand_barrier_wait(&barrier);
    return arg;
}

MISUSE(meet_another_run_at_a_barrier, "strand_barrier_wait", "of another run waits for it",
       "is used by two runs of the process, but belongs to one")
DOES(wait_and_go_elsewhere(come, come))

MISUSE(unlock_of_nobody, "strand_mutex_unlock", "the mutex is not locked", "the mutex is at 0x")
{
    return unlock(arg);
}

MISUSE(end_the_root_with_a_mutex, "strand_fn", "ends, and still holds a mutex", "lock_here")
{
    return lock_and_end(arg);
}

MISUSE_OUTSIDE(lock_on_a_plain_thread, "strand_mutex_lock", "it was called from a plain thread, not from a strand")
DOES(lock_here())
