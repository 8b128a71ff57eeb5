/*
 * One misuse of strand/sync.h per argument. The hook writes what it is told to standard output; then the program has to
 * end by abort().
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

static void *release_too_many(void *arg)
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_BOUNDED(2, 3);
    strand_semaphore_release(&semaphore);
    strand_semaphore_release(&semaphore);
    return arg;
}

static void *acquire_too_many(void *arg)
{
    strand_semaphore semaphore = STRAND_SEMAPHORE_BOUNDED(2, 3);
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
    strand_latch latch = STRAND_LATCH(2);
    strand_latch_count_down(&latch, 3);
    return arg;
}

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
    {"release_too_many", release_too_many},
    {"acquire_too_many", acquire_too_many},
    {"wait_at_a_zeroed_barrier", wait_at_a_zeroed_barrier},
    {"once_within_once", once_within_once},
    {"done_too_often", done_too_often},
    {"count_down_too_far", count_down_too_far},
};

static void tell(const struct strand_misuse *misuse, void *arg)
{
    (void)arg;
    printf("function=%s; what=%s; made=%s\n", misuse->function, misuse->what, misuse->made);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    strand_options options = {.size = sizeof options, .threads = 1, .on_misuse = tell};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (strcmp(name, inside[i].name) == 0)
            strand_run(&options, inside[i].root, NULL);
    if (strcmp(name, "lock_on_a_plain_thread") == 0)
        lock_here();
    puts("still alive");
    return 0;
}
