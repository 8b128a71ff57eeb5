/*
 * One misuse of semaphores, limits, monitors or no-suspend sections per argument; the report goes to standard error,
 * and the program has to end by abort().
 */
#include "strand.h"
#include "strand/limit.h"
#include "strand/monitor.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "strand/check.h"

#define NOINLINE __attribute__((noinline))
/* What the compiler can see to be misuse is meant to be. */
#if defined(__clang__)
#define ON_PURPOSE __attribute__((no_thread_safety_analysis))
#else
#define ON_PURPOSE
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;

/* ---- semaphores and limits ---------------------------------------------------------------------- */

static NOINLINE void make_it_here(strand_prio_semaphore *sem, size_t limit)
{
    strand_prio_options options = {.size = sizeof options, .limit = limit, .name = "pages"};
    strand_prio_init(sem, &options);
    __asm__ volatile("");
}

static void *release_too_much(void *arg)
{
    strand_prio_semaphore sem;
    make_it_here(&sem, 1);
    strand_prio_acquire(&sem, NULL);
    strand_prio_release(&sem);
    strand_prio_release(&sem);
    return arg;
}

static void *release_a_limit_too_much(void *arg)
{
    strand_limit limit;
    strand_limit_init(&limit, 3, "users");
    strand_limit_release(&limit);
    return arg;
}

static void *use_a_copy(void *arg)
{
    strand_prio_semaphore sem, copy;
    make_it_here(&sem, 1);
    copy = sem;
    strand_prio_acquire(&copy, NULL);
    return arg;
}

static void *use_zeros(void *arg)
{
    strand_prio_semaphore sem = {{0}};
    strand_prio_acquire(&sem, NULL);
    return arg;
}

static void *make_without_permits(void *arg)
{
    strand_prio_semaphore sem;
    make_it_here(&sem, 0);
    return arg;
}

static ON_PURPOSE void *acquire_in_a_section(void *arg)
{
    strand_prio_semaphore sem;
    make_it_here(&sem, 1);
    STRAND_NO_SUSPEND;
    strand_prio_acquire(&sem, NULL);
    return arg;
}

static ON_PURPOSE void *request_in_a_section(void *arg)
{
    STRAND_NO_SUSPEND;
    STRAND_WITHIN_LIMITS;
    return arg;
}

/* ---- monitors -------------------------------------------------------------------------------------- */

STRAND_MONITOR(account, { int balance; });

static ON_PURPOSE void sleep_inside(struct account *account)
{
    STRAND_MONITOR_ENTER(account, in, account);
    in->balance++;
    strand_sleep(1);
}

static void *block_in_a_monitor(void *arg)
{
    struct account account = {0};
    sleep_inside(&account);
    return arg;
}

static NOINLINE ON_PURPOSE int balance_of(struct account *account)
{
    STRAND_MONITOR_ENTER(account, in, account);
    return in->balance;
}

static ON_PURPOSE void *enter_a_monitor_twice(void *arg)
{
    struct account account = {0};
    STRAND_MONITOR_ENTER(account, in, &account);
    in->balance = balance_of(&account);
    return arg;
}

/* ---- mutexes of the system's ------------------------------------------------------------------------- */

static void *sleep_with_a_mutex(void *arg)
{
    pthread_mutex_lock(&mutex);
    strand_sleep(1);
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void *sleep_with_a_tried_mutex(void *arg)
{
    if (pthread_mutex_trylock(&mutex) == 0)
        strand_yield();
    return arg;
}

static void *sleep_with_a_mutex_of_a_clock(void *arg)
{
    const struct timespec past = {0, 0};
    if (pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past) == 0)
        strand_yield();
    return arg;
}

static void *sleep_with_the_older_of_two(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    strand_yield();
    return arg;
}

static void *sleep_with_the_newer_of_two(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&mutex);
    strand_yield();
    return arg;
}

static void *lock_in_a_section_and_sleep_behind_it(void *arg)
{
    {
        STRAND_NO_SUSPEND;
        pthread_mutex_lock(&mutex);
    }
    strand_yield();
    return arg;
}

static void *end_with_a_mutex(void *arg)
{
    pthread_mutex_lock(&mutex);
    return arg;
}

static void *let_a_child_end_with_a_mutex(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, end_with_a_mutex, arg);
    strand_scope_join(scope);
    return arg;
}

/* ---- NULL in the place of an object: the function, and a call of it ------------------------------------- */

static strand_prio_semaphore *volatile no_sem;
static strand_limit *volatile no_limit;
static strand_held *volatile no_held;
static struct account *volatile no_account;

#define NULLS(null)                                                                                                    \
    null(strand_prio_init,                                                                                             \
         strand_prio_init(no_sem, &(strand_prio_options){.size = sizeof(strand_prio_options), .limit = 1}))            \
        null(strand_prio_acquire, strand_prio_acquire(no_sem, NULL)) null(STRAND_PRIO_PERMIT,                          \
                                                                          STRAND_PRIO_PERMIT(no_sem, NULL))            \
            null(strand_prio_try_acquire, strand_prio_try_acquire(no_sem, NULL)) null(strand_prio_release,             \
                                                                                      strand_prio_release(no_sem))     \
                null(strand_prio_reconsider, strand_prio_reconsider(no_sem)) null(strand_on_prio_permit,               \
                                                                                  strand_on_prio_permit(no_sem, NULL)) \
                    null(strand_prio_prune, strand_prio_prune(no_sem, 0, NULL))                                        \
                        null(strand_prio_waiting, strand_prio_waiting(no_sem)) null(strand_prio_in_flight,             \
                                                                                    strand_prio_in_flight(no_sem))     \
                            null(strand_limit_init, strand_limit_init(no_limit, 1, NULL))                              \
                                null(strand_limit_acquire, strand_limit_acquire(no_limit))                             \
                                    null(STRAND_LIMIT_PERMIT, STRAND_LIMIT_PERMIT(no_limit))                           \
                                        null(strand_limit_try_acquire, strand_limit_try_acquire(no_limit))             \
                                            null(strand_limit_release, strand_limit_release(no_limit)) null(           \
                                                strand_on_limit, strand_on_limit(no_limit))                            \
                                                null(strand_limit_in_flight, strand_limit_in_flight(no_limit)) null(   \
                                                    STRAND_LIMIT, STRAND_LIMIT(no_limit))                              \
                                                    null(strand_limits_acquire, strand_limits_acquire(no_held)) null(  \
                                                        strand_limits_try_acquire, strand_limits_try_acquire(no_held)) \
                                                        null(strand_limits_release, strand_limits_release(no_held))    \
                                                            null(STRAND_MONITOR_ENTER,                                 \
                                                                 STRAND_MONITOR_ENTER(account, in, no_account);        \
                                                                 in->balance++)
#define NULL_FUNCTION(name, ...)                                                                                       \
    static ON_PURPOSE void *null_for_##name(void *arg)                                                                 \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        return arg;                                                                                                    \
    }
NULLS(NULL_FUNCTION)

static const struct {
    const char *name;
    strand_fn *fn;
} cases[] = {
#define NULL_CASE(name, ...) {"null for " #name, null_for_##name},
    NULLS(NULL_CASE)
#define CASE(name)                                                                                                     \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
        CASE(release_too_much),
    CASE(release_a_limit_too_much),
    CASE(use_a_copy),
    CASE(use_zeros),
    CASE(make_without_permits),
    CASE(acquire_in_a_section),
    CASE(request_in_a_section),
    CASE(block_in_a_monitor),
    CASE(enter_a_monitor_twice),
    CASE(sleep_with_a_mutex),
    CASE(sleep_with_a_tried_mutex),
    CASE(sleep_with_a_mutex_of_a_clock),
    CASE(sleep_with_the_older_of_two),
    CASE(sleep_with_the_newer_of_two),
    CASE(lock_in_a_section_and_sleep_behind_it),
    CASE(end_with_a_mutex),
    CASE(let_a_child_end_with_a_mutex),
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            strand_run(NULL, cases[i].fn, NULL);
    puts("still alive");
    return 0;
}
