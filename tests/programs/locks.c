/*
 * One misuse of strand/sync.h per argument; null:f calls f with NULL. The hook writes what it is told to standard
 * output; then the program has to end by abort().
 */
#include "strand.h"
#include "strand/pool.h"
#include "strand/sync.h"

#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#if defined(__clang__)
#define ON_PURPOSE __attribute__((no_thread_safety_analysis))
#else
#define ON_PURPOSE
#endif

static strand_mutex mutex;
static strand_rwlock rwlock;
static strand_condition condition;
static strand_once once;

static void tell(const strand_misuse *misuse, void *arg)
{
    (void)arg;
    printf("function=%s; what=%s; made=%s\n", misuse->function, misuse->what, misuse->made);
    fflush(stdout);
}

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

static void *unlock_of_another(void *arg)
{
    STRAND_SCOPE(scope);
    lock_here();
    return strand_join(strand_spawn(scope, unlock, arg));
}

static void *lock_twice(void *arg)
{
    lock_here();
    strand_mutex_lock(&mutex);
    return arg;
}

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

static void *end_with_a_mutex(void *arg)
{
    STRAND_SCOPE(scope);
    return strand_join(strand_spawn(scope, lock_and_end, arg));
}

static void *throw_with_a_mutex(void *arg)
{
    STRAND_SCOPE(scope);
    return strand_join(strand_spawn(scope, lock_and_throw, arg));
}

ON_PURPOSE static void *lock_in_no_suspend(void *arg)
{
    STRAND_NO_SUSPEND;
    strand_mutex_lock(&mutex);
    return arg;
}

static void *wait_without_the_mutex(void *arg)
{
    strand_condition_wait(&condition, &mutex);
    return arg;
}

static NOINLINE void write_here(void)
{
    strand_rwlock_write(&rwlock);
    __asm__ volatile("");
}

static void *write_twice(void *arg)
{
    write_here();
    strand_rwlock_write(&rwlock);
    return arg;
}

static void *read_as_the_writer(void *arg)
{
    write_here();
    strand_rwlock_read(&rwlock);
    return arg;
}

static void *read_done_by_nobody(void *arg)
{
    strand_rwlock_read_done(&rwlock);
    return arg;
}

static void *write_done(void *arg)
{
    strand_rwlock_write_done(&rwlock);
    return arg;
}

static void *write_done_by_another(void *arg)
{
    STRAND_SCOPE(scope);
    write_here();
    return strand_join(strand_spawn(scope, write_done, arg));
}

static void *end_as_the_writer(void *arg)
{
    write_here();
    return arg;
}

static NOINLINE void read_here(void)
{
    strand_rwlock_read(&rwlock);
    __asm__ volatile("");
}

static void *end_as_a_reader(void *arg)
{
    read_here();
    return arg;
}

static void *write_as_a_reader(void *arg)
{
    read_here();
    strand_rwlock_write(&rwlock);
    return arg;
}

static void *write_and_give_back(void *arg)
{
    write_here();
    strand_rwlock_write_done(&rwlock);
    return arg;
}

static void *read_again_while_a_writer_waits(void *arg)
{
    STRAND_SCOPE(scope);
    read_here();
    strand_spawn(scope, write_and_give_back, arg);
    for (int i = 0; i < 10; i++)
        strand_yield();
    strand_rwlock_read(&rwlock);
    return arg;
}

static void *read_done_by_another(void *arg)
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

static void *end_with_a_lost_mutex(void *arg)
{
    lose_mutexes(1);
    overwrite_the_stack();
    return arg;
}

static void *end_with_many_lost_mutexes(void *arg)
{
    lose_mutexes(40);
    overwrite_the_stack();
    return arg;
}

static void *end_with_lost_rwlocks(void *arg)
{
    lose_rwlocks();
    overwrite_the_stack();
    write_here(); /* looks through what is held */
    strand_rwlock_write_done(&rwlock);
    return arg;
}

static void *begin_above_the_bound(void *arg)
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_INIT_BOUNDED(5, 2);
    strand_semaphore_acquire(&semaphore);
    return arg;
}

static void *select_above_the_bound(void *arg)
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_INIT_BOUNDED(5, 2);
    (void)strand_on_permit(&semaphore);
    return arg;
}

static void *release_above_the_bound(void *arg)
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_INIT_BOUNDED(5, 2);
    strand_semaphore_release(&semaphore);
    return arg;
}

static void *begin_with_too_many(void *arg)
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_INIT((UINT64_C(1) << 60) + 1);
    strand_semaphore_acquire(&semaphore);
    return arg;
}

static void *release_too_many(void *arg)
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_INIT_BOUNDED(2, 3);
    strand_semaphore_release(&semaphore);
    strand_semaphore_release(&semaphore);
    return arg;
}

static void *acquire_too_many(void *arg)
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_INIT_BOUNDED(2, 3);
    strand_semaphore_acquire_many(&semaphore, 4);
    return arg;
}

static void *wait_at_a_zeroed_barrier(void *arg)
{
    strand_barrier barrier = {{0}};
    strand_barrier_wait(&barrier);
    return arg;
}

static void *once_within_once(void *arg)
{
    return strand_once_run(&once, once_within_once, arg);
}

static void *done_too_often(void *arg)
{
    strand_group group = {{0}};
    strand_group_add(&group, 1);
    strand_group_done(&group);
    strand_group_done(&group);
    return arg;
}

static void *count_down_too_far(void *arg)
{
    strand_latch latch = STRAND_LATCH_INIT(2);
    strand_latch_count_down(&latch, 3);
    return arg;
}

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

static void *lock_what_another_run_holds(void *arg)
{
    lock_here();
    elsewhere(lock_it);
    return arg;
}

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

static void *once_that_another_run_is_at(void *arg)
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

static void *set_what_another_run_waits_for(void *arg)
{
    wait_and_go_elsewhere(wait_for_the_event, set_the_event);
    return arg;
}

static void *acquire(void *arg)
{
    strand_semaphore_acquire(&semaphore);
    return arg;
}

static void *queue_behind_another_run(void *arg)
{
    wait_and_go_elsewhere(acquire, acquire);
    return arg;
}

static void *select_behind(void *arg)
{
    strand_case c = strand_on_permit(&semaphore);
    strand_select(&c, 1, 0);
    return arg;
}

static void *select_behind_another_run(void *arg)
{
    wait_and_go_elsewhere(select_behind, select_behind);
    return arg;
}

static void *come(void *arg)
{
    strand_barrier_wait(&barrier);
    return arg;
}

static void *meet_another_run_at_a_barrier(void *arg)
{
    wait_and_go_elsewhere(come, come);
    return arg;
}

/* ---- NULL ------------------------------------------------------------------------------------------------ */

static void *volatile none; /* what compilers do not know to be NULL */

#define NULL_CASE(name, ...)                                                                                           \
    static void *null_##name(void *arg)                                                                                \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        return arg;                                                                                                    \
    }
#define NULL_CASES(X)                                                                                                  \
    X(strand_mutex_lock, strand_mutex_lock(none))                                                                      \
    X(strand_mutex_try_lock, STRAND_IGNORE(strand_mutex_try_lock(none)))                                               \
    X(strand_mutex_unlock, strand_mutex_unlock(none))                                                                  \
    X(strand_mutex_held, (void)strand_mutex_held(none))                                                                \
    X(STRAND_LOCKED, STRAND_LOCKED((strand_mutex *)none))                                                              \
    X(strand_condition_wait, strand_condition_wait(none, &mutex))                                                      \
    X(strand_condition_signal, strand_condition_signal(none))                                                          \
    X(strand_condition_broadcast, strand_condition_broadcast(none))                                                    \
    X(strand_rwlock_read, strand_rwlock_read(none))                                                                    \
    X(strand_rwlock_write, strand_rwlock_write(none))                                                                  \
    X(strand_rwlock_try_read, STRAND_IGNORE(strand_rwlock_try_read(none)))                                             \
    X(strand_rwlock_try_write, STRAND_IGNORE(strand_rwlock_try_write(none)))                                           \
    X(strand_rwlock_read_done, strand_rwlock_read_done(none))                                                          \
    X(strand_rwlock_write_done, strand_rwlock_write_done(none))                                                        \
    X(STRAND_READ_LOCKED, STRAND_READ_LOCKED((strand_rwlock *)none))                                                   \
    X(STRAND_WRITE_LOCKED, STRAND_WRITE_LOCKED((strand_rwlock *)none))                                                 \
    X(strand_semaphore_acquire, strand_semaphore_acquire(none))                                                        \
    X(strand_semaphore_acquire_many, strand_semaphore_acquire_many(none, 0))                                           \
    X(strand_semaphore_try_acquire, STRAND_IGNORE(strand_semaphore_try_acquire(none)))                                 \
    X(strand_semaphore_try_acquire_many, STRAND_IGNORE(strand_semaphore_try_acquire_many(none, 0)))                    \
    X(strand_semaphore_release, strand_semaphore_release(none))                                                        \
    X(strand_semaphore_release_many, strand_semaphore_release_many(none, 0))                                           \
    X(strand_semaphore_permits, (void)strand_semaphore_permits(none))                                                  \
    X(strand_on_permit, (void)strand_on_permit(none))                                                                  \
    X(STRAND_PERMIT, STRAND_PERMIT((strand_semaphore *)none))                                                          \
    X(strand_barrier_wait, strand_barrier_wait(none))                                                                  \
    X(strand_once_run, strand_once_run(none, unlock, NULL))                                                            \
    X(strand_once_done, (void)strand_once_done(none))                                                                  \
    X(strand_event_wait, strand_event_wait(none))                                                                      \
    X(strand_event_set, strand_event_set(none))                                                                        \
    X(strand_event_clear, strand_event_clear(none))                                                                    \
    X(strand_event_is_set, (void)strand_event_is_set(none))                                                            \
    X(strand_on_event, (void)strand_on_event(none))                                                                    \
    X(strand_group_add, strand_group_add(none, 0))                                                                     \
    X(strand_group_done, strand_group_done(none))                                                                      \
    X(strand_group_wait, strand_group_wait(none))                                                                      \
    X(strand_group_count, (void)strand_group_count(none))                                                              \
    X(strand_on_group, (void)strand_on_group(none))                                                                    \
    X(strand_latch_count_down, strand_latch_count_down(none, 0))                                                       \
    X(strand_latch_wait, strand_latch_wait(none))                                                                      \
    X(strand_on_latch, (void)strand_on_latch(none))

NULL_CASES(NULL_CASE)

static void *condition_wait_with_no_mutex(void *arg)
{
    strand_condition_wait(&condition, none);
    return arg;
}

#define NULL_ROW(name, ...) {#name, null_##name},
static const struct {
    const char *name;
    strand_fn *root;
} with_null[] = {NULL_CASES(NULL_ROW)};

static const struct {
    const char *name;
    strand_fn *root;
} inside[] = {
    {"unlock_of_another", unlock_of_another},
    {"unlock_of_nobody", unlock},
    {"lock_twice", lock_twice},
    {"end_with_a_mutex", end_with_a_mutex},
    {"throw_with_a_mutex", throw_with_a_mutex},
    {"end_the_root_with_a_mutex", lock_and_end},
    {"lock_in_no_suspend", lock_in_no_suspend},
    {"wait_without_the_mutex", wait_without_the_mutex},
    {"write_twice", write_twice},
    {"read_as_the_writer", read_as_the_writer},
    {"read_done_by_nobody", read_done_by_nobody},
    {"write_done_by_another", write_done_by_another},
    {"end_as_the_writer", end_as_the_writer},
    {"end_as_a_reader", end_as_a_reader},
    {"write_as_a_reader", write_as_a_reader},
    {"read_again_while_a_writer_waits", read_again_while_a_writer_waits},
    {"read_done_by_another", read_done_by_another},
    {"end_with_a_lost_mutex", end_with_a_lost_mutex},
    {"end_with_many_lost_mutexes", end_with_many_lost_mutexes},
    {"end_with_lost_rwlocks", end_with_lost_rwlocks},
    {"begin_above_the_bound", begin_above_the_bound},
    {"select_above_the_bound", select_above_the_bound},
    {"release_above_the_bound", release_above_the_bound},
    {"begin_with_too_many", begin_with_too_many},
    {"release_too_many", release_too_many},
    {"acquire_too_many", acquire_too_many},
    {"wait_at_a_zeroed_barrier", wait_at_a_zeroed_barrier},
    {"once_within_once", once_within_once},
    {"done_too_often", done_too_often},
    {"count_down_too_far", count_down_too_far},
    {"condition_wait_with_no_mutex", condition_wait_with_no_mutex},
    {"lock_what_another_run_holds", lock_what_another_run_holds},
    {"once_that_another_run_is_at", once_that_another_run_is_at},
    {"set_what_another_run_waits_for", set_what_another_run_waits_for},
    {"queue_behind_another_run", queue_behind_another_run},
    {"select_behind_another_run", select_behind_another_run},
    {"meet_another_run_at_a_barrier", meet_another_run_at_a_barrier},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    strand_options options = {.size = sizeof options, .threads = 1, .on_misuse = tell};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (strcmp(name, inside[i].name) == 0)
            strand_run(&options, inside[i].root, NULL);
    for (size_t i = 0; i < sizeof with_null / sizeof *with_null; i++) {
        if (strcmp(name, "names_with_null") == 0)
            puts(with_null[i].name);
        if (strncmp(name, "null:", 5) == 0 && strcmp(name + 5, with_null[i].name) == 0)
            strand_run(&options, with_null[i].root, NULL);
    }
    if (strcmp(name, "lock_on_a_plain_thread") == 0)
        lock_here();
    puts("still alive");
    return 0;
}
