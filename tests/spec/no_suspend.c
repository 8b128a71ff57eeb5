/*
 * What does not suspend is atomic for the other strands of its thread; that it is meant so is said, and checked: by
 * no-suspend sections (see misuse.c for those), and by locks of the system's that are asked to be checked. Cases that
 * end the program are runs of tests/programs/limit_misuse.c.
 */
#define SUITE no_suspend
#include "test.h"

#include "strand/limit.h"

#include <signal.h>

#include "strand/check.h"

static struct test_output o;

static void misuse(const char *name, const char *function, const char *what)
{
    test_program(&o, "limit_misuse", name);
    CHECK(strstr(o.out, "still alive") == NULL);
    CHECK(o.signalled);
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, function);
    CHECK_CONTAINS(o.err, what);
}

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

TEST_PROGRAM(taking_a_permit_in_a_section_is_misuse_even_if_one_is_free)
{
    misuse("acquire_in_a_section", "strand_prio_acquire", "limit_misuse.c:");
    misuse("request_in_a_section", "strand_limits_acquire", "limit_misuse.c:");
}

/* N-04 */
TEST_PROGRAM(leaving_a_scope_with_children_in_a_section_is_misuse_that_names_both_places)
{
    static const char *const names[] = {"leave_a_scope_in_a_section", "throw_out_of_a_scope_in_a_section",
                                        "leave_a_scope_in_a_monitor"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        misuse(names[i], "misuse of STRAND_SCOPE: leaving the scope of tests/programs/limit_misuse.c:",
               "inside a no-suspend section");
        CHECK_CONTAINS(o.err, "the section was opened at tests/programs/limit_misuse.c:");
        CHECK(strstr(o.out, "somebody runs inside") == NULL);
    }
}

/* N-04 */
TEST_PROGRAM(leaving_a_scope_with_children_under_a_checked_mutex_is_misuse_even_if_they_have_ended)
{
    misuse("leave_a_scope_with_a_mutex", "misuse of STRAND_SCOPE", "the lock was taken at ");
    misuse("leave_a_scope_whose_child_has_ended_with_a_mutex", "misuse of STRAND_SCOPE", "the lock was taken at ");
}

static void *yield_once(void *arg)
{
    strand_yield();
    return arg;
}

/* N-02 */
TEST_INSIDE(a_scope_that_nobody_is_anchored_to_can_be_left_in_a_section)
{
    STRAND_SCOPE_OPEN(outside);
    strand child;
    {
        STRAND_NO_SUSPEND;
        STRAND_SCOPE_OPEN(inside);
        child = strand_spawn(inside, yield_once, NULL);
        CHECK_EQ(strand_hand_off(child, outside), 0);
    }
    strand_join(child);
}

/* N-02 */
TEST_INSIDE(a_section_that_ends_before_the_scope_of_the_same_block_is_no_hindrance)
{
    STRAND_SCOPE(scope);
    strand_cancel(strand_spawn(scope, yield_once, NULL), NULL);
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

/* On one thread, and on two: there a lock is held meanwhile. */
static void misuse_in_hook(const char *name, const char *function, const char *what)
{
    char on_two[64];
    snprintf(on_two, sizeof on_two, "2 %s", name);
    for (int i = 0; i < 2; i++) {
        misuse(i ? on_two : name, function, what);
        CHECK_CONTAINS(o.err, "shelves");
        CHECK_CONTAINS(o.err, "was made in make_it_ask");
        CHECK_CONTAINS(o.out, "wait\n"); /* who is told of it can look at the semaphore */
    }
}

/* */
TEST_PROGRAM(a_function_that_orders_waiters_may_not_block)
{
    misuse_in_hook("yield_in_compare", "misuse of strand_yield: it may block", "strand_prio_options.compare");
    misuse_in_hook("yield_in_priority", "misuse of strand_yield: it may block", "strand_prio_options.priority");
    misuse_in_hook("yield_in_a_prune", "misuse of strand_yield: it may block", "strand_prio_options.priority");
}

/* */
TEST_PROGRAM(a_function_that_orders_waiters_may_not_use_their_semaphore)
{
    misuse_in_hook("use_in_compare", "misuse of strand_prio_waiting", "inside strand_prio_options.compare");
    misuse_in_hook("use_in_priority", "misuse of strand_prio_waiting", "inside strand_prio_options.priority");
    misuse_in_hook("use_in_a_select", "misuse of strand_prio_waiting", "inside strand_prio_options.priority");
    misuse_in_hook("use_in_a_prune", "misuse of strand_prio_waiting", "inside strand_prio_options.priority");
}

/* */
TEST_PROGRAM(a_function_that_orders_waiters_may_not_throw)
{
    misuse_in_hook("throw_in_compare", "misuse of strand_prio_options.compare", "has thrown 'no order'");
    misuse_in_hook("throw_in_priority", "misuse of strand_prio_options.priority", "has thrown 'no order'");
    misuse_in_hook("throw_in_a_release", "misuse of strand_prio_options.priority", "has thrown 'no order'");
}

/* N-04 */
TEST_PROGRAM(what_a_channel_drops_its_values_by_may_neither_block_nor_throw)
{
    misuse("yield_in_a_drop", "misuse of strand_yield: it may block, inside strand_chan_attr.drop",
           "the channel 'rest' was opened in leave_a_value");
    misuse("throw_in_a_drop", "misuse of strand_chan_attr.drop: the function has thrown 'no drop'",
           "the channel 'rest' was opened in leave_a_value");
    misuse("throw_in_a_drop_of_a_post", "misuse of strand_chan_attr.drop: the function has thrown 'no drop'", "posted");
}

static strand_prio_semaphore semaphores[2];

/* Of the one semaphore: it uses the other. */
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

/* R-01, contract 4.69 */
TEST_PROGRAM(giving_back_more_permits_than_were_taken_is_misuse_that_names_the_semaphore)
{
    misuse("release_too_much", "strand_prio_release", "pages");
    CHECK_CONTAINS(o.err, "make_it_here");
    misuse("release_a_limit_too_much", "strand_limit_release", "users");
}

TEST_PROGRAM(a_semaphore_that_was_copied_or_never_initialised_is_misuse)
{
    misuse("use_a_copy", "strand_prio_acquire", "copied");
    misuse("use_zeros", "strand_prio_acquire", "never initialised");
    misuse("make_without_permits", "strand_prio_init", "permits is 0");
}

/* */
TEST_PROGRAM(making_a_semaphore_anew_while_strands_wait_for_it_is_misuse)
{
    misuse("make_it_again_while_somebody_waits", "misuse of strand_prio_init: it is initialised again while 1 wait",
           "was made in make_it_ask");
    misuse("make_a_limit_again_while_somebody_waits",
           "misuse of strand_limit_init: it is initialised again while 1 wait", "users");
}

/* */
TEST_INSIDE(a_semaphore_that_nobody_waits_for_can_be_made_anew)
{
    strand_limit limit;
    for (int i = 0; i < 3; i++) {
        strand_limit_init(&limit, 1, NULL);
        strand_limit_acquire(&limit);
        strand_exception *e = strand_try(acquire_once_more, &limit, NULL);
        CHECK_KIND(e, &STRAND_TIMED_OUT);
        strand_exception_release(e);
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

TEST_PROGRAM(null_in_the_place_of_an_object_is_misuse_of_the_function_that_was_given_it)
{
    static const char *const functions[] = {
        "strand_prio_init",        "strand_prio_acquire",       "STRAND_PRIO_PERMIT",
        "strand_prio_try_acquire", "strand_prio_release",       "strand_prio_reconsider",
        "strand_on_prio_permit",   "strand_prio_prune",         "strand_prio_waiting",
        "strand_prio_in_flight",   "strand_limit_init",         "strand_limit_acquire",
        "STRAND_LIMIT_PERMIT",     "strand_limit_try_acquire",  "strand_limit_release",
        "strand_on_limit",         "strand_limit_in_flight",    "STRAND_LIMIT",
        "strand_limits_acquire",   "strand_limits_try_acquire", "strand_limits_release",
        "STRAND_MONITOR_ENTER",
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        char name[64], told[64];
        snprintf(name, sizeof name, "null for %s", functions[i]);
        snprintf(told, sizeof told, "misuse of %s: ", functions[i]);
        misuse(name, told, "NULL");
    }
}

/* ---- mutexes of the system's -------------------------------------------------------------------------- */

/* N-04 */
TEST_PROGRAM(suspending_with_a_checked_mutex_is_misuse_that_names_the_place_of_the_lock)
{
    misuse("sleep_with_a_mutex", "strand_sleep", "limit_misuse.c:");
    misuse("sleep_with_a_tried_mutex", "strand_yield", "limit_misuse.c:");
    misuse("sleep_with_a_mutex_of_a_clock", "strand_yield", "limit_misuse.c:");
}

TEST_PROGRAM(mutexes_may_be_released_in_any_order_and_the_ones_that_are_left_count)
{
    misuse("sleep_with_the_older_of_two", "strand_yield", "limit_misuse.c:");
    misuse("sleep_with_the_newer_of_two", "strand_yield", "limit_misuse.c:");
}

TEST_PROGRAM(a_mutex_outlasts_the_section_that_it_was_locked_in)
{
    misuse("lock_in_a_section_and_sleep_behind_it", "strand_yield", "limit_misuse.c:");
}

/* N-04 */
TEST_PROGRAM(a_strand_that_ends_with_a_checked_mutex_is_misuse)
{
    misuse("end_with_a_mutex", "strand_fn", "has ended");
    misuse("let_a_child_end_with_a_mutex", "strand_fn", "has ended");
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;

TEST_INSIDE(a_checked_mutex_that_is_released_before_disturbs_nothing)
{
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_mutex_lock(&other), 0);
    CHECK_EQ(pthread_mutex_trylock(&mutex) != 0, true);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&other), 0);
    strand_yield();
}

/* Each of the macros names each of its arguments once. */
TEST_INSIDE(the_arguments_of_a_checked_call_are_evaluated_once)
{
    pthread_mutex_t *mutexes[] = {&mutex, &other}, **next = mutexes;
    const struct timespec past[] = {{0, 0}, {0, 0}}, *until = past;
    CHECK_EQ(pthread_mutex_lock(*next++), 0);
    CHECK_PTR(next, mutexes + 1);
    CHECK_EQ(pthread_mutex_trylock(*next++), 0);
    CHECK_PTR(next, mutexes + 2);
    CHECK_EQ(pthread_mutex_unlock(*--next), 0);
    CHECK_PTR(next, mutexes + 1);
    CHECK_EQ(pthread_mutex_timedlock(*next++, until++), 0);
    CHECK_PTR(next, mutexes + 2);
    CHECK_PTR(until, past + 1);
    CHECK_EQ(pthread_mutex_unlock(*--next), 0);
#if !TEST_TSAN || defined(__clang__) /* gcc's TSan does not see this lock, and takes the unlock for an error */
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME}, *clock = clocks;
    CHECK_EQ(pthread_mutex_clocklock(*next++, *clock++, until++), 0);
    CHECK_PTR(next, mutexes + 2);
    CHECK_PTR(until, past + 2);
    CHECK_PTR(clock, clocks + 1);
    CHECK_EQ(pthread_mutex_unlock(*--next), 0);
#endif
    CHECK_EQ(pthread_mutex_unlock(*--next), 0);
    strand_yield();
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

TEST_INSIDE(a_checked_read_write_lock_that_is_released_before_disturbs_nothing)
{
    const struct timespec past = {0, 0};
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_rwlock_rdlock(&rwlock), 0);
    CHECK_EQ(pthread_rwlock_tryrdlock(&rwlock), 0);
    CHECK_EQ(pthread_rwlock_timedrdlock(&rwlock, &past), 0);
    CHECK_EQ(pthread_rwlock_trywrlock(&rwlock) != 0, true);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
    strand_yield();
    CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
    CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
    CHECK_EQ(pthread_rwlock_timedwrlock(&rwlock, &past), 0);
    CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
    strand_yield();
}

TEST_INSIDE(a_checked_spin_lock_that_is_released_before_disturbs_nothing)
{
    pthread_spinlock_t spin;
    CHECK_EQ(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
    CHECK_EQ(pthread_spin_lock(&spin), 0);
    CHECK_EQ(pthread_spin_trylock(&spin) != 0, true);
    CHECK_EQ(pthread_spin_unlock(&spin), 0);
    CHECK_EQ(pthread_spin_trylock(&spin), 0);
    CHECK_EQ(pthread_spin_unlock(&spin), 0);
    CHECK_EQ(pthread_spin_destroy(&spin), 0);
    strand_yield();
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
    strand_exception *e = strand_try(throw_in_once, NULL, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    strand_exception_release(e);
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
    strand_exception *e = strand_try(throw_with_a_mutex, NULL, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    strand_exception_release(e);
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
