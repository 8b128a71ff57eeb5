/*
 * What does not suspend is atomic for the other strands of its thread; that it is meant so is said, and checked: by
 * no-suspend sections (see misuse.c for those), and by locks of the system's that are asked to be checked.
 */
#define SUITE no_suspend
#include "test.h"

#include "strand/limit.h"

#include "strand/check.h"

/* ---- atomic without a lock ----------------------------------------------------------------------- */

/* What is read and what is written are two steps; only TSan wants them atomic, which a strand's switch is not for it.
 */
struct shared {
    _Atomic int value, copies[4];
};

static void *change_all(void *arg)
{
    struct shared *shared = arg;
    for (int round = 0; round < 100; round++) {
        {
            STRAND_NO_SUSPEND;
            int value = shared->value;
            shared->value = value + 1;
            for (int i = 0; i < 4; i++) {
                CHECK_EQ(shared->copies[i], value);
                shared->copies[i] = value + 1;
            }
        }
        strand_yield();
    }
    return NULL;
}

static void *change_on_one_thread(void *arg)
{
    struct shared shared = {0};
    STRAND_SCOPE(s);
    for (int i = 0; i < 10; i++)
        strand_spawn(s, change_all, &shared);
    strand_scope_join(s);
    CHECK_EQ(shared.value, 1000);
    return arg;
}

/* N-01 */
TEST(on_one_thread_code_that_does_not_suspend_is_atomic_for_other_strands)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, change_on_one_thread, NULL);
}

/* A lock that is always free, if nobody suspends under it: to try is enough. */
static void *use_a_lock_that_is_always_free(void *arg)
{
    strand_limit *lock = arg;
    for (int i = 0; i < 100; i++) {
        {
            STRAND_NO_SUSPEND;
            CHECK_EQ(strand_limit_try_acquire(lock), 0);
            strand_limit_release(lock);
        }
        strand_yield();
    }
    return NULL;
}

static void *use_a_lock_on_one_thread(void *arg)
{
    strand_limit lock;
    strand_limit_init(&lock, 1, NULL);
    STRAND_SCOPE(s);
    for (int i = 0; i < 10; i++)
        strand_spawn(s, use_a_lock_that_is_always_free, &lock);
    strand_scope_join(s);
    return arg;
}

/* N-02 */
TEST(on_one_thread_a_lock_under_which_nobody_suspends_is_always_free)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, use_a_lock_on_one_thread, NULL);
}

/* The other use of a lock: to suspend under it, and to exclude others all the same. */
static void *suspend_under_a_lock(void *arg)
{
    static _Atomic int inside;
    for (int i = 0; i < 20; i++) {
        strand_limit_acquire(arg);
        CHECK_EQ(atomic_fetch_add(&inside, 1), 0);
        strand_yield();
        atomic_fetch_sub(&inside, 1);
        strand_limit_release(arg);
    }
    return NULL;
}

/* N-03 */
TEST_RACE(a_lock_excludes_others_across_suspensions)
{
    strand_limit lock;
    strand_limit_init(&lock, 1, NULL);
    STRAND_SCOPE(s);
    for (int i = 0; i < 10; i++)
        strand_spawn(s, suspend_under_a_lock, &lock);
    strand_scope_join(s);
}

/* ---- sections ------------------------------------------------------------------------------------- */

/* N-02 */
TEST_INSIDE(a_scope_that_nobody_is_anchored_to_can_be_left_in_a_section)
{
    STRAND_SCOPE_OPEN(outside);
    strand child;
    {
        STRAND_NO_SUSPEND;
        STRAND_SCOPE_OPEN(inside);
        child = strand_spawn(inside, test_yield, NULL);
        CHECK_EQ(strand_hand_off(child, outside), 0);
    }
    strand_join(child);
}

/* N-02 */
TEST_INSIDE(a_section_that_ends_before_the_scope_of_the_same_block_is_no_hindrance)
{
    STRAND_SCOPE(scope);
    strand_cancel(strand_spawn(scope, test_yield, NULL), NULL);
    STRAND_NO_SUSPEND;
}

TEST_INSIDE(trying_and_giving_back_are_allowed_in_a_section)
{
    strand_limit limit;
    strand_limit_init(&limit, 1, NULL);
    STRAND_NO_SUSPEND;
    CHECK_EQ(strand_limit_try_acquire(&limit), 0);
    strand_limit_release(&limit);
}

/* ---- functions of the user's ------------------------------------------------------------------------- */

static strand_prio_semaphore semaphores[2];

/* The function of one semaphore; it uses the other. */
static int64_t ask_another(const void *key, void *arg)
{
    (void)key, (void)arg;
    return strand_prio_in_flight(&semaphores[1]) ? STRAND_NOT_NOW : 0;
}

/* */
TEST_INSIDE(a_function_that_orders_waiters_may_use_another_semaphore)
{
    strand_prio_options options = {.size = sizeof options, .permits = 1, .priority = ask_another}, plain = options;
    plain.priority = NULL;
    strand_prio_init(&semaphores[0], &options);
    strand_prio_init(&semaphores[1], &plain);
    CHECK_EQ(strand_prio_try_acquire(&semaphores[0], NULL), 0);
    strand_prio_release(&semaphores[0]);
    CHECK_EQ(strand_prio_try_acquire(&semaphores[1], NULL), 0);
    CHECK_EQ(strand_prio_try_acquire(&semaphores[0], NULL), -EAGAIN);
    strand_yield();
}

static void *acquire_once_more(void *limit)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_limit_acquire(limit);
    return NULL;
}

/* ---- misuse of semaphores --------------------------------------------------------------------------- */

/* */
TEST_INSIDE(a_semaphore_without_waiters_can_be_initialised_again)
{
    strand_limit limit;
    for (int i = 0; i < 3; i++) {
        strand_limit_init(&limit, 1, NULL);
        strand_limit_acquire(&limit);
        CHECK_THROWS(acquire_once_more, &limit, &STRAND_TIMED_OUT);
    }
}

/* As on a stack, where other frames have lain since. */
/* */
TEST_INSIDE(what_an_earlier_semaphore_has_left_in_part_does_not_hinder_a_new_one)
{
    strand_limit limit;
    for (size_t i = 0; i < sizeof limit.inside.bits / sizeof *limit.inside.bits; i++) {
        strand_limit_init(&limit, 1, NULL);
        for (size_t k = i; k < sizeof limit.inside.bits / sizeof *limit.inside.bits; k++)
            limit.inside.bits[k] = (uint64_t)(uintptr_t)(k & 1 ? &limit : NULL) + k;
    }
    strand_limit_init(&limit, 1, NULL);
    CHECK_EQ(strand_limit_try_acquire(&limit), 0);
    strand_yield();
}

/* ---- mutexes of the system's -------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;

/* Each of the macros names each of its arguments once. */
TEST_INSIDE(the_arguments_of_a_checked_call_are_evaluated_once)
{
    pthread_mutex_t *mutexes[] = {&mutex, &other}, **next = mutexes;
    const struct timespec times[] = {{0, 0}, {0, 0}}, *until = times;
    CHECK_EQ(pthread_mutex_lock(*next++), 0);
    CHECK_PTR(next, mutexes + 1);
    CHECK_EQ(pthread_mutex_trylock(*next++), 0);
    CHECK_PTR(next, mutexes + 2);
    CHECK_EQ(pthread_mutex_unlock(*--next), 0);
    CHECK_PTR(next, mutexes + 1);
    CHECK_EQ(pthread_mutex_timedlock(*next++, until++), 0);
    CHECK_PTR(next, mutexes + 2);
    CHECK_PTR(until, times + 1);
    CHECK_EQ(pthread_mutex_unlock(*--next), 0);
/* TSan of gcc and of clang 14 does not see this lock, and takes the unlock for an error. */
#if !TEST_TSAN || (defined(__clang__) && __clang_major__ > 14)
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME}, *clock = clocks;
    CHECK_EQ(pthread_mutex_clocklock(*next++, *clock++, until++), 0);
    CHECK_PTR(next, mutexes + 2);
    CHECK_PTR(until, times + 2);
    CHECK_PTR(clock, clocks + 1);
    CHECK_EQ(pthread_mutex_unlock(*--next), 0);
#endif
    CHECK_EQ(pthread_mutex_unlock(*--next), 0);
    strand_yield();
}

static void lock_mutexes(void)
{
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_mutex_lock(&other), 0);
    CHECK_EQ(pthread_mutex_trylock(&mutex) != 0, true);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&other), 0);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static const struct timespec past;

static void lock_to_read(void)
{
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_rwlock_rdlock(&rwlock), 0);
    CHECK_EQ(pthread_rwlock_tryrdlock(&rwlock), 0);
    CHECK_EQ(pthread_rwlock_timedrdlock(&rwlock, &past), 0);
    CHECK_EQ(pthread_rwlock_trywrlock(&rwlock) != 0, true);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
}

static void lock_to_write(void)
{
    CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
    CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
    CHECK_EQ(pthread_rwlock_timedwrlock(&rwlock, &past), 0);
    CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
}

static void lock_and_spin(void)
{
    pthread_spinlock_t spin;
    CHECK_EQ(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
    CHECK_EQ(pthread_spin_lock(&spin), 0);
    CHECK_EQ(pthread_spin_trylock(&spin) != 0, true);
    CHECK_EQ(pthread_spin_unlock(&spin), 0);
    CHECK_EQ(pthread_spin_trylock(&spin), 0);
    CHECK_EQ(pthread_spin_unlock(&spin), 0);
    CHECK_EQ(pthread_spin_destroy(&spin), 0);
}

TEST_INSIDE(a_strand_that_has_released_its_checked_locks_may_suspend)
{
    void (*const ways[])(void) = {lock_mutexes, lock_to_read, lock_to_write, lock_and_spin};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ways[i]();
        strand_yield();
    }
}

static void log_once(void)
{
    test_log("once");
}

TEST_INSIDE(the_function_of_a_checked_once_runs_once_and_what_follows_may_suspend)
{
    pthread_once_t once = PTHREAD_ONCE_INIT;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_once(&once, log_once), 0);
        strand_yield();
    }
    CHECK_LOG("once");
}

#if !TEST_TSAN /* whose pthread_once is left by no exception */
static void throw_once(void)
{
    test_throw(NULL);
}

static void *throw_in_once(void *arg)
{
    pthread_once_t once = PTHREAD_ONCE_INIT;
    CHECK_EQ(pthread_once(&once, throw_once), 0);
    return arg;
}

TEST_INSIDE(an_exception_that_leaves_a_checked_once_leaves_nothing_behind)
{
    CHECK_THROWS(throw_in_once, NULL, &TEST_ERROR);
    strand_yield();
}
#endif

TEST_INSIDE(a_mutex_released_in_a_section_disturbs_nothing_behind_it)
{
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    {
        STRAND_NO_SUSPEND;
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    }
    strand_yield();
}

static void unlock(pthread_mutex_t **held)
{
    pthread_mutex_unlock(*held);
}

static void *throw_with_a_mutex(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_t *held __attribute__((cleanup(unlock), unused)) = &mutex;
    return test_throw(arg);
}

TEST_INSIDE(an_exception_that_unlocks_on_its_way_leaves_nothing_behind)
{
    CHECK_THROWS(throw_with_a_mutex, NULL, &TEST_ERROR);
    strand_yield();
}

static void *count_under_the_mutex(void *count)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex);
        ++*(int *)count;
        pthread_mutex_unlock(&mutex);
        strand_yield();
    }
    return NULL;
}

TEST_RACE(strands_on_several_threads_share_a_checked_mutex)
{
    int count = 0;
    STRAND_SCOPE(s);
    for (int i = 0; i < 20; i++)
        strand_spawn(s, count_under_the_mutex, &count);
    strand_scope_join(s);
    CHECK_EQ(count, 1000);
}

TEST(a_plain_thread_may_use_a_checked_mutex)
{
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}
