/*
 * Misuse of pools.
 */
#include "cases.h"

#include "strand/debug.h"
#include "strand/io.h"
#include "strand/scheduler.h"

#include <pthread.h>
#include <stdint.h>

static void *return_arg(void *arg)
{
    return arg;
}

static NOINLINE strand_pool open_it_here(strand_scope scope)
{
    return strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "mine"));
}

/* ---- closing ------------------------------------------------------------------------------------ */

static void *close_it(void *pool)
{
    strand_pool_close(*(strand_pool *)pool, NULL);
    return pool;
}

/* V-11, contract 2.14 */
MISUSE(close_own, "strand_pool_close", "wait for itself", "the pool 'mine' was opened in open_it_here")
{
    static strand_pool pool;
    (void)arg;
    STRAND_SCOPE(scope);
    pool = open_it_here(scope);
    return strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool), close_it, &pool, 0));
}

struct below {
    strand_pool first, mine;
};

static void *close_from_below(void *arg)
{
    struct below *below = arg;
    STRAND_SCOPE(scope);
    return strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = below->first), close_it, &below->mine, 0));
}

/* V-11, contract 2.14 */
MISUSE(close_below, "strand_pool_close", "wait for itself", "the pool 'mine' was opened in open_it_here")
{
    static struct below below;
    (void)arg;
    STRAND_SCOPE(scope);
    below = (struct below){strand_pool_self(), open_it_here(scope)};
    return strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = below.mine), close_from_below, &below, 0));
}

MISUSE(close_first, "strand_pool_close", "ends with the run")
{
    static strand_pool pool;
    pool = strand_pool_self();
    close_it(&pool);
    return arg;
}

MISUSE(close_in_a_section, "strand_pool_close", "no-suspend section")
{
    STRAND_SCOPE(scope);
    strand_pool pool = open_it_here(scope);
    STRAND_NO_SUSPEND;
    strand_pool_close(pool, NULL);
    return arg;
}

MISUSE(leave_in_a_section, "STRAND_SCOPE", "waits for its end", "the pool 'mine' was opened in open_it_here")
{
    STRAND_NO_SUSPEND;
    STRAND_SCOPE(scope);
    (void)open_it_here(scope);
    return arg;
}

/* ---- handles ------------------------------------------------------------------------------------ */

static NOINLINE strand_pool open_and_leave(void)
{
    STRAND_SCOPE(scope);
    return open_it_here(scope);
}

MISUSE(resize_stale, "strand_pool_resize", "its scope has been left", "the pool 'mine' was opened in open_it_here")
DOES(strand_pool_resize(open_and_leave(), 2))

MISUSE(close_stale, "strand_pool_close", "its scope has been left", "the pool 'mine' was opened in open_it_here")
DOES(strand_pool_close(open_and_leave(), NULL))

MISUSE(close_nothing, "strand_pool_close", "not a pool's")
DOES(strand_pool_close((strand_pool){{0, 0}}, NULL))

MISUSE(resize_a_fibre, "strand_pool_resize", "not a pool's")
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand_pool_resize((strand_pool){{fibre.bits[0], fibre.bits[1]}}, 2);
    return arg;
}

static void *resize_it(void *pool)
{
    strand_pool_resize(*(strand_pool *)pool, 2);
    return pool;
}

/* V-02 */
MISUSE(resize_of_another_run, "strand_pool_resize", "another run")
{
    static strand_pool pool;
    STRAND_SCOPE(scope);
    pool = open_it_here(scope);
    strand_run(STRAND_OPTIONS(.own_threads = true, .on_misuse = tell), resize_it, &pool);
    return arg;
}

/* ---- what is asked for -------------------------------------------------------------------------- */

static void *open_with(const strand_pool_attr *attr)
{
    STRAND_SCOPE(scope);
    strand_pool_open(scope, attr);
    return NULL;
}

MISUSE(open_with_no_size, "strand_pool_open", "size is 0")
{
    (void)arg;
    return open_with(&(strand_pool_attr){.threads = 1});
}

/* S-29 */
MISUSE(open_with_a_million_threads, "strand_pool_open", "not 1 to 1024")
{
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.threads = 1000000));
}

MISUSE(open_with_fewer_than_no_cpus, "strand_pool_open", "cpus_count is -1")
{
    int cpu = 0;
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.cpus = &cpu, .cpus_count = -1));
}

MISUSE(open_with_cpus_but_no_count, "strand_pool_open", "cpus_count is 0")
{
    int cpu = 0;
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.cpus = &cpu));
}

MISUSE(open_that_spins_for_less_than_no_time, "strand_pool_open", "spin_us is -5")
{
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.threads = 1, .spin_us = -5));
}

/* */
MISUSE(open_with_an_unknown_scheduler, "strand_pool_open", "'clairvoyant'")
{
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.threads = 1, .scheduler = "clairvoyant"));
}

MISUSE(open_with_an_unknown_balance, "strand_pool_open", "balance is 77")
{
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.threads = 1, .balance = (enum strand_balance)77));
}

static void *open_in_a_foreign_scope(void *arg)
{
    strand_pool_open(*(strand_scope *)arg, NULL);
    return arg;
}

MISUSE(open_for_another, "strand_pool_open", "only the strand that opened a scope")
{
    static strand_scope own;
    (void)arg;
    STRAND_SCOPE(scope);
    own = scope;
    return strand_join(strand_spawn(scope, open_in_a_foreign_scope, &own));
}

MISUSE(open_two_dedicated, "strand_pool_open", "the scheduler 'dedicated' has one")
{
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.threads = 2, .scheduler = "dedicated"));
}

static void take_in(void *state, strand_task *task, enum strand_task_origin how, int thread)
{
    (void)state, (void)task, (void)how, (void)thread;
}

static strand_task *give_out_nothing(void *state, int thread)
{
    (void)state, (void)thread;
    return NULL;
}

MISUSE(hold_back_a_strand, "strand_scheduler.pick", "'miser': pick returned NULL, but tasks are queued")
{
    static const strand_scheduler miser = {
        .size = sizeof miser, .name = "miser", .push = take_in, .pick = give_out_nothing};
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .custom = &miser));
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool), return_arg, arg, 0));
    return arg;
}

/* S-29 */
MISUSE(resize_to_none, "strand_pool_resize", "0 threads")
DOES(strand_pool_resize(strand_pool_self(), 0))

MISUSE(ask_without_a_size, "strand_pool_info_get", "size is 0")
DOES(strand_pool_info info = {.size = 0}; strand_pool_info_get(strand_pool_self(), &info))

static void *spawn_with(const struct strand_attr *attr)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, attr, return_arg, NULL, 0);
    return NULL;
}

/* S-38 */
MISUSE(pin_to_nonsense, "strand_spawn_with", "attr.pin is -7")
{
    (void)arg;
    return spawn_with(STRAND_ATTR(.pin = -7));
}

MISUSE(pin_here_elsewhere, "strand_spawn_with", "another than the caller's")
{
    (void)arg;
    STRAND_SCOPE(scope);
    return spawn_with(STRAND_ATTR(.pool = open_it_here(scope), .pin = STRAND_PIN_HERE));
}

MISUSE(pin_a_guest, "strand_spawn_with", "attr.pin can't be chosen")
{
    (void)arg;
    STRAND_SCOPE(scope);
    return spawn_with(STRAND_ATTR(.fibre = strand_fibre_open(scope, NULL), .pin = STRAND_PIN(0)));
}

MISUSE(rank_a_guest, "strand_spawn_with", "attr.rank can't be chosen")
{
    (void)arg;
    STRAND_SCOPE(scope);
    return spawn_with(STRAND_ATTR(.fibre = strand_fibre_open(scope, NULL), .rank = 1));
}

MISUSE(pool_for_a_guest, "strand_spawn_with", "attr.pool can't be chosen")
{
    (void)arg;
    STRAND_SCOPE(scope);
    return spawn_with(STRAND_ATTR(.fibre = strand_fibre_open(scope, NULL), .pool = strand_pool_self()));
}

/* ---- driving ------------------------------------------------------------------------------------ */

static strand_pool to_be_driven;

static strand_pool open_driven(strand_scope scope)
{
    return strand_pool_open(scope, STRAND_POOL_ATTR(.name = "driven", .scheduler = "current"));
}

static void *drive_it(void *flags)
{
    strand_pool_drive(to_be_driven, strand_in(0), (unsigned)(uintptr_t)flags);
    return NULL;
}

static void *ask_for_its_descriptor(void *arg)
{
    strand_pool_fd(to_be_driven);
    return arg;
}

/* On a plain thread, where no hook is called. */
static void *on_a_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    pthread_create(&thread, NULL, fn, arg);
    pthread_join(thread, NULL);
    return NULL;
}

MISUSE(drive_by_a_strand, "strand_pool_drive", "a strand can't drive a pool")
{
    STRAND_SCOPE(scope);
    to_be_driven = open_driven(scope);
    return drive_it(arg);
}

MISUSE(descriptor_for_a_strand, "strand_pool_fd", "a strand can't drive a pool")
{
    STRAND_SCOPE(scope);
    to_be_driven = open_driven(scope);
    return ask_for_its_descriptor(arg);
}

MISUSE(drive_by_a_strand_of_another_run, "strand_pool_drive", "a strand can't drive a pool")
{
    STRAND_SCOPE(scope);
    to_be_driven = open_driven(scope);
    strand_run(STRAND_OPTIONS(.own_threads = true, .on_misuse = tell), drive_it, arg);
    return arg;
}

MISUSE_BY_THREAD(drive_what_has_threads, "strand_pool_drive", "its scheduler is 'stealing'",
                 "the pool 'mine' was opened in open_it_here")
{
    STRAND_SCOPE(scope);
    to_be_driven = open_it_here(scope);
    return on_a_thread(drive_it, arg);
}

MISUSE_BY_THREAD(descriptor_of_what_has_threads, "strand_pool_fd", "its scheduler is 'stealing'")
{
    STRAND_SCOPE(scope);
    to_be_driven = open_it_here(scope);
    return on_a_thread(ask_for_its_descriptor, arg);
}

MISUSE_BY_THREAD(drive_the_first, "strand_pool_drive", "which strand_run itself drives")
{
    to_be_driven = strand_pool_self();
    return on_a_thread(drive_it, arg);
}

MISUSE_BY_THREAD(drive_nothing, "strand_pool_drive", "not a pool's")
{
    return on_a_thread(drive_it, arg);
}

MISUSE_BY_THREAD(drive_a_fibre, "strand_pool_drive", "not a pool's")
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    memcpy(&to_be_driven, &fibre, sizeof to_be_driven);
    return on_a_thread(drive_it, arg);
}

MISUSE_BY_THREAD(drive_with_flags, "strand_pool_drive", "the flags 0x6 are invalid")
{
    (void)arg;
    STRAND_SCOPE(scope);
    to_be_driven = open_driven(scope);
    return on_a_thread(drive_it, (void *)6);
}

MISUSE(resize_what_is_driven, "strand_pool_resize", "the scheduler 'current' has one thread")
DOES(STRAND_SCOPE(scope); strand_pool_resize(open_driven(scope), 2))

/* ---- reports ------------------------------------------------------------------------------------ */

MISUSE(ask_of_a_stale_one, "strand_busy_print", "its scope has been left", "the pool 'mine' was opened in open_it_here")
{
    strand_pool pool;
    (void)arg;
    {
        STRAND_SCOPE(scope);
        pool = open_it_here(scope);
    }
    strand_busy_print(pool, 2);
    return NULL;
}

static void *ask_from_outside(void *pool)
{
    strand_busy_print(*(strand_pool *)pool, 2);
    return NULL;
}

MISUSE_BY_THREAD(ask_of_one_from_outside, "strand_busy_print",
                 "strand_busy_print: a plain thread can ask for all pools only")
{
    strand_pool pool = strand_pool_self();
    (void)arg;
    return strand_offload(ask_from_outside, &pool);
}
