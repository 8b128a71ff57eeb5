/*
 * One misuse of semaphores, limits, monitors or no-suspend sections per argument; the report goes to standard error,
 * and the program has to end by abort().
 */
#include "strand.h"
#include "strand/chan.h"
#include "strand/limit.h"
#include "strand/monitor.h"
#include "strand/pool.h"

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
    strand_prio_options options = {.size = sizeof options, .permits = limit, .name = "pages"};
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

/* ---- functions of the user's that the library calls ------------------------------------------------------ */

static strand_prio_semaphore asking;
static void (*what_it_does)(void);

static void give_way(void)
{
    strand_yield();
}

static void use_the_semaphore(void)
{
    (void)strand_prio_waiting(&asking);
}

static void throw_it_away(void)
{
    strand_throw(&STRAND_ERROR, "no order");
}

static int compare_keys(const void *a, const void *b, void *arg)
{
    (void)arg;
    what_it_does();
    return (a > b) - (a < b);
}

static int64_t ask_for_it(const void *key, void *arg)
{
    (void)arg;
    if (key)
        what_it_does();
    return 0;
}

static void *wait_for_a_permit(void *key)
{
    strand_prio_acquire(&asking, key);
    strand_prio_release(&asking);
    return NULL;
}

static NOINLINE void make_it_ask(int (*compare)(const void *, const void *, void *),
                                 int64_t (*priority)(const void *, void *))
{
    strand_prio_options options = {
        .size = sizeof options, .permits = 1, .compare = compare, .priority = priority, .name = "shelves"};
    strand_prio_init(&asking, &options);
    __asm__ volatile("");
}

/* The second of those that wait is compared with the first. */
static void wait_in_order(void (*what)(void))
{
    what_it_does = what;
    make_it_ask(compare_keys, NULL);
    STRAND_SCOPE(scope);
    strand_prio_acquire(&asking, NULL);
    for (intptr_t key = 1; key <= 2; key++)
        strand_spawn(scope, wait_for_a_permit, (void *)key);
    while (strand_prio_waiting(&asking) < 2)
        strand_yield();
    strand_prio_release(&asking);
    strand_scope_join(scope);
}

static void wait_by_priority(void (*what)(void))
{
    what_it_does = what;
    make_it_ask(NULL, ask_for_it);
    (void)wait_for_a_permit(&asking);
}

static void select_by_priority(void (*what)(void))
{
    what_it_does = what;
    make_it_ask(NULL, ask_for_it);
    strand_case c = strand_on_prio_permit(&asking, &asking);
    strand_select(&c, 1, 0);
}

static void do_nothing(void) {}

/* The greatest, or the least, of those that wait. */
static void release_or_prune(void (*what)(void), bool prunes)
{
    what_it_does = do_nothing;
    make_it_ask(NULL, ask_for_it);
    STRAND_SCOPE(scope);
    strand_prio_acquire(&asking, NULL);
    strand_spawn(scope, wait_for_a_permit, &asking);
    while (!strand_prio_waiting(&asking))
        strand_yield();
    what_it_does = what;
    if (prunes)
        strand_prio_prune(&asking, 0, NULL);
    else
        strand_prio_release(&asking);
}

static void *make_it_again_while_somebody_waits(void *arg)
{
    make_it_ask(NULL, NULL);
    STRAND_SCOPE(scope);
    strand_prio_acquire(&asking, NULL);
    strand_spawn(scope, wait_for_a_permit, NULL);
    while (!strand_prio_waiting(&asking))
        strand_yield();
    make_it_ask(NULL, NULL);
    return arg;
}

static void *wait_for_a_limit(void *limit)
{
    strand_limit_acquire(limit);
    return NULL;
}

static void *make_a_limit_again_while_somebody_waits(void *arg)
{
    strand_limit limit;
    strand_limit_init(&limit, 1, "users");
    strand_limit_acquire(&limit);
    STRAND_SCOPE(scope);
    strand_spawn(scope, wait_for_a_limit, &limit);
    strand_yield();
    strand_limit_init(&limit, 1, "users");
    return arg;
}

#define HOOK_CASES(hook)                                                                                               \
    hook(yield_in_compare, wait_in_order(give_way)) hook(use_in_compare, wait_in_order(use_the_semaphore))             \
        hook(throw_in_compare, wait_in_order(throw_it_away)) hook(yield_in_priority, wait_by_priority(give_way))       \
            hook(use_in_priority, wait_by_priority(use_the_semaphore))                                                 \
                hook(throw_in_priority, wait_by_priority(throw_it_away))                                               \
                    hook(use_in_a_select, select_by_priority(use_the_semaphore))                                       \
                        hook(throw_in_a_release, release_or_prune(throw_it_away, false))                               \
                            hook(yield_in_a_prune, release_or_prune(give_way, true))                                   \
                                hook(use_in_a_prune, release_or_prune(use_the_semaphore, true))
#define HOOK_FUNCTION(name, ...)                                                                                       \
    static void *name(void *arg)                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__;                                                                                                   \
        return arg;                                                                                                    \
    }
HOOK_CASES(HOOK_FUNCTION)

/* ---- what channels drop --------------------------------------------------------------------------------- */

static void yield_with(void *element)
{
    (void)element;
    strand_yield();
}

static void throw_with(void *element)
{
    (void)element;
    strand_throw(&STRAND_ERROR, "no drop");
}

static NOINLINE void leave_a_value(void (*drop)(void *))
{
    int value = 1;
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof value, 1, STRAND_CHAN_ATTR(.name = "rest", .drop = drop));
    STRAND_IGNORE(strand_chan_send(chan, &value));
}

static void *yield_in_a_drop(void *arg)
{
    leave_a_value(yield_with);
    return arg;
}

static void *throw_in_a_drop(void *arg)
{
    leave_a_value(throw_with);
    return arg;
}

static void *post_one(void *chan)
{
    int value = 1;
    STRAND_IGNORE(strand_chan_post(*(strand_chan *)chan, &value));
    return NULL;
}

/* A plain thread posts. Its value is on its way when the channel ends. */
static NOINLINE void post_and_leave(void (*drop)(void *))
{
    pthread_t thread;
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof(int), 1, STRAND_CHAN_ATTR(.name = "rest", .drop = drop));
    if (pthread_create(&thread, NULL, post_one, &chan) == 0)
        pthread_join(thread, NULL);
}

static void *throw_in_a_drop_of_a_post(void *arg)
{
    post_and_leave(throw_with);
    for (;;)
        strand_yield(); /* now and then a busy thread takes what was posted */
    return arg;
}

/* ---- leaving scopes in sections ------------------------------------------------------------------------ */

static NOINLINE void *sleep_shielded(void *arg)
{
    STRAND_SHIELD;
    strand_sleep(STRAND_MS);
    return arg;
}

static void *run_inside(void *arg)
{
    puts("somebody runs inside");
    return arg;
}

static NOINLINE ON_PURPOSE void leave_with_a_child(void)
{
    STRAND_SCOPE(inner);
    strand_cancel(strand_spawn(inner, sleep_shielded, NULL), NULL);
}

static ON_PURPOSE void *leave_a_scope_in_a_section(void *arg)
{
    STRAND_SCOPE(outer);
    strand_spawn(outer, run_inside, NULL);
    {
        STRAND_NO_SUSPEND;
        leave_with_a_child();
    }
    strand_scope_join(outer);
    return arg;
}

static ON_PURPOSE void *throw_out_of_a_scope_in_a_section(void *arg)
{
    STRAND_NO_SUSPEND;
    STRAND_SCOPE(inner);
    strand_cancel(strand_spawn(inner, sleep_shielded, NULL), NULL);
    strand_throw(&STRAND_ERROR, "out of the section");
    return arg;
}

static void *leave_a_scope_with_a_mutex(void *arg)
{
    pthread_mutex_lock(&mutex);
    leave_with_a_child();
    pthread_mutex_unlock(&mutex);
    return arg;
}

/* Whether it has ended by then does not count. */
static void *leave_a_scope_whose_child_has_ended_with_a_mutex(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, run_inside, NULL);
    strand_wait(child);
    strand_cancel(child, NULL);
    pthread_mutex_lock(&mutex);
    return arg;
}

/* ---- monitors -------------------------------------------------------------------------------------- */

STRAND_MONITOR(account, { int balance; });

static ON_PURPOSE void *leave_a_scope_in_a_monitor(void *arg)
{
    struct account account = {0};
    STRAND_MONITOR_ENTER(account, in, &account);
    in->balance++;
    leave_with_a_child();
    return arg;
}

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
         strand_prio_init(no_sem, &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 1}))          \
        null(strand_prio_acquire, strand_prio_acquire(no_sem, NULL)) null(STRAND_PRIO_PERMIT,                          \
                                                                          STRAND_PRIO_PERMIT(no_sem, NULL))            \
            null(strand_prio_try_acquire, STRAND_IGNORE(strand_prio_try_acquire(no_sem, NULL))) null(                  \
                strand_prio_release, strand_prio_release(no_sem)) null(strand_prio_reconsider,                         \
                                                                       strand_prio_reconsider(no_sem))                 \
                null(strand_on_prio_permit,                                                                            \
                     strand_on_prio_permit(no_sem, NULL)) null(strand_prio_prune, strand_prio_prune(no_sem, 0, NULL))  \
                    null(strand_prio_waiting, strand_prio_waiting(no_sem)) null(strand_prio_in_flight,                 \
                                                                                strand_prio_in_flight(no_sem))         \
                        null(strand_limit_init, strand_limit_init(no_limit, 1, NULL)) null(                            \
                            strand_limit_acquire, strand_limit_acquire(no_limit)) null(STRAND_LIMIT_PERMIT,            \
                                                                                       STRAND_LIMIT_PERMIT(no_limit))  \
                            null(strand_limit_try_acquire, STRAND_IGNORE(strand_limit_try_acquire(no_limit)))          \
                                null(strand_limit_release, strand_limit_release(no_limit))                             \
                                    null(strand_on_limit, strand_on_limit(no_limit))                                   \
                                        null(strand_limit_in_flight, strand_limit_in_flight(no_limit))                 \
                                            null(STRAND_LIMIT, STRAND_LIMIT(no_limit))                                 \
                                                null(strand_limits_acquire, strand_limits_acquire(no_held))            \
                                                    null(strand_limits_try_acquire,                                    \
                                                         STRAND_IGNORE(strand_limits_try_acquire(no_held)))            \
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
    CASE(make_it_again_while_somebody_waits),
    CASE(make_a_limit_again_while_somebody_waits),
#define HOOK_CASE(name, ...) CASE(name),
    HOOK_CASES(HOOK_CASE) CASE(yield_in_a_drop),
    CASE(throw_in_a_drop),
    CASE(throw_in_a_drop_of_a_post),
    CASE(leave_a_scope_in_a_section),
    CASE(throw_out_of_a_scope_in_a_section),
    CASE(leave_a_scope_in_a_monitor),
    CASE(leave_a_scope_with_a_mutex),
    CASE(leave_a_scope_whose_child_has_ended_with_a_mutex),
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

/* Who is told may look at the semaphore. */
static void look_at_it(const strand_misuse *misuse, void *arg)
{
    (void)arg;
    if (strstr(misuse->made, "shelves"))
        printf("%zu wait\n", strand_prio_waiting(&asking));
    fflush(stdout);
}

/* NAME, or "2 NAME": on two threads. */
int main(int argc, char **argv)
{
    strand_options options = {.size = sizeof options, .threads = 1, .on_misuse = look_at_it};
    const char *name = argc > 1 ? argv[1] : "";
    if (strncmp(name, "2 ", 2) == 0)
        options.threads = 2, name += 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(name, cases[i].name) == 0)
            strand_run(&options, cases[i].fn, NULL);
    puts("still alive");
    return 0;
}
