/*
 * Misuse of semaphores, limits, monitors and no-suspend sections.
 */
#include "strand/pool.h"

static void look_at_it(const strand_misuse *misuse, void *arg);
#define CASE_OPTIONS .threads = 1, .on_misuse = look_at_it
#include "cases.h"

#include "strand/chan.h"
#include "strand/limit.h"
#include "strand/monitor.h"

#include <pthread.h>

#include "strand/check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;

/* ---- semaphores and limits ---------------------------------------------------------------------- */

static NOINLINE void make_it_here(strand_prio_semaphore *sem, size_t limit)
{
    strand_prio_options options = {.size = sizeof options, .permits = limit, .name = "pages"};
    strand_prio_init(sem, &options);
    __asm__ volatile("");
}

/* R-01, contract 4.69 */
MISUSE(release_too_much, "strand_prio_release", "pages", "make_it_here")
{
    strand_prio_semaphore sem;
    make_it_here(&sem, 1);
    strand_prio_acquire(&sem, NULL);
    strand_prio_release(&sem);
    strand_prio_release(&sem);
    return arg;
}

MISUSE(release_a_limit_too_much, "strand_limit_release", "users")
{
    strand_limit limit;
    strand_limit_init(&limit, 3, "users");
    strand_limit_release(&limit);
    return arg;
}

MISUSE(use_a_copy, "strand_prio_acquire", "copied")
{
    strand_prio_semaphore sem, copy;
    make_it_here(&sem, 1);
    copy = sem;
    strand_prio_acquire(&copy, NULL);
    return arg;
}

MISUSE(use_zeros, "strand_prio_acquire", "never initialised")
DOES(strand_prio_semaphore sem = {{0}}; strand_prio_acquire(&sem, NULL))

MISUSE(make_without_permits, "strand_prio_init", "permits is 0")
DOES(strand_prio_semaphore sem; make_it_here(&sem, 0))

MISUSE(acquire_in_a_section, "strand_prio_acquire", "it may block, inside a no-suspend section", "limit_misuse.c:")
{
    strand_prio_semaphore sem;
    make_it_here(&sem, 1);
    STRAND_NO_SUSPEND;
    strand_prio_acquire(&sem, NULL);
    return arg;
}

MISUSE(request_in_a_section, "strand_limits_acquire", "it may block, inside a no-suspend section", "limit_misuse.c:")
DOES(STRAND_NO_SUSPEND; STRAND_WITHIN_LIMITS)

/* ---- functions of the user's that the library calls ------------------------------------------------------ */

static strand_prio_semaphore asking;
static void (*what_it_does)(void);

static void yield_once(void)
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

/* The hook may use the semaphore. */
static void look_at_it(const strand_misuse *misuse, void *arg)
{
    if (strstr(misuse->made, "shelves"))
        (void)strand_prio_waiting(&asking);
    tell(misuse, arg);
}

#define MISUSE_OF_A_HOOK(name, ...) MISUSE_ON_TWO(name, __VA_ARGS__, "shelves", "was made in make_it_ask")

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

/* */
MISUSE(make_it_again_while_somebody_waits, "strand_prio_init", "it is initialised again while 1 wait",
       "was made in make_it_ask")
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

MISUSE(make_a_limit_again_while_somebody_waits, "strand_limit_init", "it is initialised again while 1 wait", "users")
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

/* */
MISUSE_OF_A_HOOK(yield_in_compare, "strand_yield", "it may block", "strand_prio_options.compare")
DOES(wait_in_order(yield_once))

/* */
MISUSE_OF_A_HOOK(use_in_compare, "strand_prio_waiting", "inside strand_prio_options.compare")
DOES(wait_in_order(use_the_semaphore))

/* */
MISUSE_OF_A_HOOK(throw_in_compare, "strand_prio_options.compare", "has thrown 'no order'")
DOES(wait_in_order(throw_it_away))

MISUSE_OF_A_HOOK(yield_in_priority, "strand_yield", "it may block", "strand_prio_options.priority")
DOES(wait_by_priority(yield_once))

MISUSE_OF_A_HOOK(use_in_priority, "strand_prio_waiting", "inside strand_prio_options.priority")
DOES(wait_by_priority(use_the_semaphore))

MISUSE_OF_A_HOOK(throw_in_priority, "strand_prio_options.priority", "has thrown 'no order'")
DOES(wait_by_priority(throw_it_away))

MISUSE_OF_A_HOOK(use_in_a_select, "strand_prio_waiting", "inside strand_prio_options.priority")
DOES(select_by_priority(use_the_semaphore))

MISUSE_OF_A_HOOK(throw_in_a_release, "strand_prio_options.priority", "has thrown 'no order'")
DOES(release_or_prune(throw_it_away, false))

MISUSE_OF_A_HOOK(yield_in_a_prune, "strand_yield", "it may block", "strand_prio_options.priority")
DOES(release_or_prune(yield_once, true))

MISUSE_OF_A_HOOK(use_in_a_prune, "strand_prio_waiting", "inside strand_prio_options.priority")
DOES(release_or_prune(use_the_semaphore, true))

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

/* N-04 */
MISUSE(yield_in_a_drop, "strand_yield", "it may block, inside strand_chan_attr.drop",
       "the channel 'rest' was opened in leave_a_value")
DOES(leave_a_value(yield_with))

MISUSE(throw_in_a_drop, "strand_chan_attr.drop", "the function has thrown 'no drop'",
       "the channel 'rest' was opened in leave_a_value")
DOES(leave_a_value(throw_with))

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

MISUSE(throw_in_a_drop_of_a_post, "strand_chan_attr.drop", "the function has thrown 'no drop'", "posted")
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
    (void)arg;
    exit(1);
}

static NOINLINE ON_PURPOSE void leave_with_a_child(void)
{
    STRAND_SCOPE(inner);
    strand_cancel(strand_spawn(inner, sleep_shielded, NULL), NULL);
}

/* N-04 */
MISUSE(leave_a_scope_in_a_section, "STRAND_SCOPE",
       "leaving the scope of tests/programs/limit_misuse.c:", "inside a no-suspend section",
       "the section was opened at tests/programs/limit_misuse.c:")
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

MISUSE(throw_out_of_a_scope_in_a_section, "STRAND_SCOPE",
       "leaving the scope of tests/programs/limit_misuse.c:", "inside a no-suspend section",
       "the section was opened at tests/programs/limit_misuse.c:")
{
    STRAND_NO_SUSPEND;
    STRAND_SCOPE(inner);
    strand_cancel(strand_spawn(inner, sleep_shielded, NULL), NULL);
    strand_throw(&STRAND_ERROR, "out of the section");
    return arg;
}

/* N-04 */
MISUSE(leave_a_scope_with_a_mutex, "STRAND_SCOPE", "the lock was taken at ")
{
    pthread_mutex_lock(&mutex);
    leave_with_a_child();
    pthread_mutex_unlock(&mutex);
    return arg;
}

/* Whether it has ended by then does not count. */
MISUSE(leave_a_scope_whose_child_has_ended_with_a_mutex, "STRAND_SCOPE", "the lock was taken at ")
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, sleep_shielded, NULL);
    strand_wait(child);
    strand_cancel(child, NULL);
    pthread_mutex_lock(&mutex);
    return arg;
}

/* ---- monitors -------------------------------------------------------------------------------------- */

STRAND_MONITOR(account, { int balance; });

MISUSE(leave_a_scope_in_a_monitor, "STRAND_SCOPE",
       "leaving the scope of tests/programs/limit_misuse.c:", "inside a no-suspend section",
       "the section was opened at tests/programs/limit_misuse.c:")
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

/* N-02 */
MISUSE(block_in_a_monitor, "strand_sleep", "it may block, inside a no-suspend section", "limit_misuse.c:")
DOES(struct account account = {0}; sleep_inside(&account))

static NOINLINE ON_PURPOSE int balance_of(struct account *account)
{
    STRAND_MONITOR_ENTER(account, in, account);
    return in->balance;
}

MISUSE(enter_a_monitor_twice, "STRAND_MONITOR_ENTER", "already")
{
    struct account account = {0};
    STRAND_MONITOR_ENTER(account, in, &account);
    in->balance = balance_of(&account);
    return arg;
}

/* ---- mutexes of the system's ------------------------------------------------------------------------- */

#define MISUSE_WITH_A_LOCK(name, function)                                                                             \
    MISUSE(name, function, "it may block, while the strand holds a pthread mutex or another lock of its thread",       \
           "limit_misuse.c:")

/* N-04 */
MISUSE_WITH_A_LOCK(sleep_with_a_mutex, "strand_sleep")
DOES(pthread_mutex_lock(&mutex); strand_sleep(1))

MISUSE_WITH_A_LOCK(sleep_with_a_tried_mutex, "strand_yield")
DOES(if (pthread_mutex_trylock(&mutex) == 0) strand_yield())

MISUSE_WITH_A_LOCK(sleep_with_a_mutex_of_a_clock, "strand_yield")
DOES(if (pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &(struct timespec){0, 0}) == 0) strand_yield())

MISUSE_WITH_A_LOCK(sleep_with_the_older_of_two, "strand_yield")
DOES(pthread_mutex_lock(&mutex); pthread_mutex_lock(&other); pthread_mutex_unlock(&other); strand_yield())

MISUSE_WITH_A_LOCK(sleep_with_the_newer_of_two, "strand_yield")
DOES(pthread_mutex_lock(&mutex); pthread_mutex_lock(&other); pthread_mutex_unlock(&mutex); strand_yield())

MISUSE_WITH_A_LOCK(lock_in_a_section_and_sleep_behind_it, "strand_yield")
{
    {
        STRAND_NO_SUSPEND;
        pthread_mutex_lock(&mutex);
    }
    strand_yield();
    return arg;
}

/* N-04 */
MISUSE(end_with_a_mutex, "strand_fn", "has ended")
DOES(pthread_mutex_lock(&mutex))

MISUSE(let_a_child_end_with_a_mutex, "strand_fn", "has ended")
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, end_with_a_mutex, arg);
    strand_scope_join(scope);
    return arg;
}

/* NAME, or "2 NAME": on two threads. */
