/*
 * Each kind of misuse of pools, by name: the program aborts with a report, after the hook.
 */
#include "strand.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/pool.h"
#include "strand/scheduler.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FOREVER (3600 * STRAND_S)
#define NOINLINE __attribute__((noinline))
/* What clang would warn of. */
#if defined(__clang__)
#define ON_PURPOSE __attribute__((no_thread_safety_analysis))
#else
#define ON_PURPOSE
#endif

static void *return_arg(void *arg)
{
    return arg;
}

static NOINLINE strand_pool open_it_here(strand_scope scope)
{
    return strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "mine"));
}

static void tell(const strand_misuse *misuse, void *arg)
{
    printf("hook %s: function=%s; what=%s; made=%s\n", (const char *)arg, misuse->function, misuse->what, misuse->made);
    fflush(stdout);
}

/* ---- closing ------------------------------------------------------------------------------------ */

static void *close_it(void *pool)
{
    strand_pool_close(*(strand_pool *)pool, NULL);
    return pool;
}

static void *close_own(void *arg)
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

static void *close_below(void *arg)
{
    static struct below below;
    (void)arg;
    STRAND_SCOPE(scope);
    below = (struct below){strand_pool_self(), open_it_here(scope)};
    return strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = below.mine), close_from_below, &below, 0));
}

static void *close_first(void *arg)
{
    static strand_pool pool;
    pool = strand_pool_self();
    close_it(&pool);
    return arg;
}

static ON_PURPOSE void *close_in_a_section(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool pool = open_it_here(scope);
    STRAND_NO_SUSPEND;
    strand_pool_close(pool, NULL);
    return arg;
}

static void *leave_in_a_section(void *arg)
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

static void *resize_stale(void *arg)
{
    strand_pool_resize(open_and_leave(), 2);
    return arg;
}

static void *close_stale(void *arg)
{
    strand_pool_close(open_and_leave(), NULL);
    return arg;
}

static void *close_nothing(void *arg)
{
    strand_pool_close((strand_pool){{0, 0}}, NULL);
    return arg;
}

static void *resize_a_fibre(void *arg)
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

static void *resize_of_another_run(void *arg)
{
    static strand_pool pool;
    STRAND_SCOPE(scope);
    pool = open_it_here(scope);
    strand_run(STRAND_OPTIONS(.own_threads = true, .on_misuse = tell, .hook_arg = "told"), resize_it, &pool);
    return arg;
}

/* ---- what is asked for -------------------------------------------------------------------------- */

static void *open_with(const strand_pool_attr *attr)
{
    STRAND_SCOPE(scope);
    strand_pool_open(scope, attr);
    return NULL;
}

static void *open_with_no_size(void *arg)
{
    (void)arg;
    return open_with(&(strand_pool_attr){.threads = 1});
}

static void *open_with_a_million_threads(void *arg)
{
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.threads = 1000000));
}

static void *open_with_fewer_than_no_cpus(void *arg)
{
    int cpu = 0;
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.cpus = &cpu, .cpus_count = -1));
}

static void *open_with_cpus_but_no_count(void *arg)
{
    int cpu = 0;
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.cpus = &cpu));
}

static void *open_that_spins_for_less_than_no_time(void *arg)
{
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.threads = 1, .spin_us = -5));
}

static void *open_with_an_unknown_scheduler(void *arg)
{
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.threads = 1, .scheduler = "clairvoyant"));
}

static void *open_with_an_unknown_balance(void *arg)
{
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.threads = 1, .balance = (enum strand_balance)77));
}

static void *open_in_a_foreign_scope(void *arg)
{
    strand_pool_open(*(strand_scope *)arg, NULL);
    return arg;
}

static void *open_for_another(void *arg)
{
    static strand_scope own;
    (void)arg;
    STRAND_SCOPE(scope);
    own = scope;
    return strand_join(strand_spawn(scope, open_in_a_foreign_scope, &own));
}

static void *open_two_dedicated(void *arg)
{
    (void)arg;
    return open_with(STRAND_POOL_ATTR(.threads = 2, .scheduler = "dedicated"));
}

static void take_in(void *state, strand_task *task, enum strand_task_comes how, int thread)
{
    (void)state, (void)task, (void)how, (void)thread;
}

static strand_task *give_out_nothing(void *state, int thread)
{
    (void)state, (void)thread;
    return NULL;
}

static void *hold_back_a_strand(void *arg)
{
    static const strand_scheduler miser = {
        .size = sizeof miser, .name = "miser", .push = take_in, .pick = give_out_nothing};
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .custom = &miser));
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool), return_arg, arg, 0));
    return arg;
}

static void *resize_to_none(void *arg)
{
    strand_pool_resize(strand_pool_self(), 0);
    return arg;
}

static void *ask_without_a_size(void *arg)
{
    strand_pool_info info = {.size = 0};
    strand_pool_info_get(strand_pool_self(), &info);
    return arg;
}

static void *spawn_with(const struct strand_attr *attr)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, attr, return_arg, NULL, 0);
    return NULL;
}

static void *pin_to_nonsense(void *arg)
{
    (void)arg;
    return spawn_with(STRAND_ATTR(.pin = -7));
}

static void *pin_here_elsewhere(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    return spawn_with(STRAND_ATTR(.pool = open_it_here(scope), .pin = STRAND_PIN_HERE));
}

static void *pin_a_guest(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    return spawn_with(STRAND_ATTR(.fibre = strand_fibre_open(scope, NULL), .pin = STRAND_PIN(0)));
}

static void *rank_a_guest(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    return spawn_with(STRAND_ATTR(.fibre = strand_fibre_open(scope, NULL), .rank = 1));
}

static void *pool_for_a_guest(void *arg)
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

/* On a plain thread, where no hook is told. */
static void *on_a_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    pthread_create(&thread, NULL, fn, arg);
    pthread_join(thread, NULL);
    return NULL;
}

static void *drive_by_a_strand(void *arg)
{
    STRAND_SCOPE(scope);
    to_be_driven = open_driven(scope);
    return drive_it(arg);
}

static void *descriptor_for_a_strand(void *arg)
{
    STRAND_SCOPE(scope);
    to_be_driven = open_driven(scope);
    return ask_for_its_descriptor(arg);
}

static void *drive_by_a_strand_of_another_run(void *arg)
{
    STRAND_SCOPE(scope);
    to_be_driven = open_driven(scope);
    strand_run(STRAND_OPTIONS(.own_threads = true, .on_misuse = tell, .hook_arg = "told"), drive_it, arg);
    return arg;
}

static void *drive_what_has_threads(void *arg)
{
    STRAND_SCOPE(scope);
    to_be_driven = open_it_here(scope);
    return on_a_thread(drive_it, arg);
}

static void *descriptor_of_what_has_threads(void *arg)
{
    STRAND_SCOPE(scope);
    to_be_driven = open_it_here(scope);
    return on_a_thread(ask_for_its_descriptor, arg);
}

static void *drive_the_first(void *arg)
{
    to_be_driven = strand_pool_self();
    return on_a_thread(drive_it, arg);
}

static void *drive_nothing(void *arg)
{
    return on_a_thread(drive_it, arg);
}

static void *drive_a_fibre(void *arg)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    memcpy(&to_be_driven, &fibre, sizeof to_be_driven);
    return on_a_thread(drive_it, arg);
}

static void *drive_with_flags(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    to_be_driven = open_driven(scope);
    return on_a_thread(drive_it, (void *)6);
}

static void *resize_what_is_driven(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool_resize(open_driven(scope), 2);
    return arg;
}

/* ---- reports ------------------------------------------------------------------------------------ */

static void *ask_of_a_stale_one(void *arg)
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

static void *ask_of_one_from_outside(void *arg)
{
    strand_pool pool = strand_pool_self();
    (void)arg;
    return strand_offload(ask_from_outside, &pool);
}

static const struct {
    const char *name;
    strand_fn *root;
} cases[] = {
    {"close_own", close_own},
    {"close_below", close_below},
    {"close_first", close_first},
    {"close_in_a_section", close_in_a_section},
    {"leave_in_a_section", leave_in_a_section},
    {"resize_stale", resize_stale},
    {"close_stale", close_stale},
    {"close_nothing", close_nothing},
    {"resize_a_fibre", resize_a_fibre},
    {"resize_of_another_run", resize_of_another_run},
    {"open_with_no_size", open_with_no_size},
    {"open_with_a_million_threads", open_with_a_million_threads},
    {"open_with_fewer_than_no_cpus", open_with_fewer_than_no_cpus},
    {"open_with_cpus_but_no_count", open_with_cpus_but_no_count},
    {"open_that_spins_for_less_than_no_time", open_that_spins_for_less_than_no_time},
    {"open_with_an_unknown_scheduler", open_with_an_unknown_scheduler},
    {"open_with_an_unknown_balance", open_with_an_unknown_balance},
    {"open_for_another", open_for_another},
    {"resize_to_none", resize_to_none},
    {"open_two_dedicated", open_two_dedicated},
    {"hold_back_a_strand", hold_back_a_strand},
    {"ask_without_a_size", ask_without_a_size},
    {"pin_to_nonsense", pin_to_nonsense},
    {"pin_here_elsewhere", pin_here_elsewhere},
    {"pin_a_guest", pin_a_guest},
    {"pool_for_a_guest", pool_for_a_guest},
    {"rank_a_guest", rank_a_guest},
    {"drive_by_a_strand", drive_by_a_strand},
    {"descriptor_for_a_strand", descriptor_for_a_strand},
    {"drive_by_a_strand_of_another_run", drive_by_a_strand_of_another_run},
    {"drive_what_has_threads", drive_what_has_threads},
    {"descriptor_of_what_has_threads", descriptor_of_what_has_threads},
    {"drive_the_first", drive_the_first},
    {"drive_nothing", drive_nothing},
    {"drive_a_fibre", drive_a_fibre},
    {"drive_with_flags", drive_with_flags},
    {"resize_what_is_driven", resize_what_is_driven},
    {"ask_of_a_stale_one", ask_of_a_stale_one},
    {"ask_of_one_from_outside", ask_of_one_from_outside},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    strand_options options = {.size = sizeof options, .on_misuse = tell, .hook_arg = "told"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(name, cases[i].name) == 0)
            strand_run(&options, cases[i].root, NULL);
    puts("still alive");
    return 0;
}
