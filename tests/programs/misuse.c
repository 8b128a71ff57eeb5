/*
 * One misuse per argument. The hook writes what it is told to standard output; the report of the library goes to
 * standard error; then the program has to end by abort().
 */
#include "strand.h"
#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/pool.h"
#include "strand/select.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
/* What the compiler can see to be misuse is meant to be. */
#if defined(__clang__)
#define ON_PURPOSE __attribute__((no_thread_safety_analysis))
#else
#define ON_PURPOSE
#endif
#define FOREVER (3600 * STRAND_S)

static void *return_arg(void *arg)
{
    return arg;
}

static void *sleep_forever(void *arg)
{
    strand_sleep(FOREVER);
    return arg;
}

static NOINLINE strand spawn_it_here(strand_scope scope, strand_fn *fn, void *arg)
{
    strand child = strand_spawn(scope, fn, arg);
    __asm__ volatile("");
    return child;
}

/* ---- handles -------------------------------------------------------------------------------- */

static void *join_twice(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = spawn_it_here(scope, return_arg, arg);
    strand_join(child);
    return strand_join(child);
}

static void *join_nobody(void *arg)
{
    strand_join((strand){0});
    return arg;
}

/* Of numbers that no strand has had. */
static void *join_an_invented_strand(void *arg)
{
    strand_join((strand){{0x1000, 7}});
    return arg;
}

static void *wait_for_nobody(void *arg)
{
    strand_wait((strand){0});
    return arg;
}

static strand_scope stale;

static NOINLINE void open_and_leave_a_scope(void)
{
    STRAND_SCOPE(scope);
    stale = scope;
}

/* What is no pool of this run: one of another run, or nothing at all. */
static void *spawn_into_a_foreign_pool(void *arg)
{
    static char elsewhere[64];
    STRAND_SCOPE(scope);
    strand_pool pool = {{(uint64_t)(uintptr_t)elsewhere, 5}};
    strand_spawn_with(scope, STRAND_ATTR(.pool = pool), return_arg, arg, 0);
    return arg;
}

static void *cancel_a_stale_scope(void *arg)
{
    open_and_leave_a_scope();
    strand_scope_cancel(stale, NULL);
    return arg;
}

static void *cancel_an_invented_scope(void *arg)
{
    strand_scope_cancel((strand_scope){{0x1000, 6}}, NULL);
    return arg;
}

static void *spawn_into_a_stale_scope(void *arg)
{
    open_and_leave_a_scope();
    strand_spawn(stale, return_arg, arg);
    return arg;
}

static void *join_a_stale_scope(void *arg)
{
    open_and_leave_a_scope();
    strand_scope_join(stale);
    return arg;
}

static strand earlier;

static void *remember_a_strand(void *arg)
{
    STRAND_SCOPE(scope);
    earlier = spawn_it_here(scope, return_arg, arg);
    strand_join(earlier);
    return arg;
}

static void *join_a_strand_of_an_ended_run(void *arg)
{
    return strand_join(*(strand *)arg);
}

/* A run within a run: its strands are others, and on other threads. */
static void *in_another_run(strand_fn *fn, void *arg)
{
    strand_options options = {.size = sizeof options, .threads = 1, .own_threads = true};
    return strand_run(&options, fn, arg);
}

static void *cancel_it(void *target)
{
    strand_cancel(*(strand *)target, "from another run");
    return NULL;
}

static void *wait_for_it(void *target)
{
    strand_wait(*(strand *)target);
    return NULL;
}

static void *spawn_there(void *scope)
{
    strand_spawn(*(strand_scope *)scope, return_arg, NULL);
    return NULL;
}

static void *cancel_a_strand_of_another_run(void *arg)
{
    STRAND_SCOPE(scope);
    strand target = strand_spawn(scope, sleep_forever, arg);
    return in_another_run(cancel_it, &target);
}

static void *wait_for_a_strand_of_another_run(void *arg)
{
    STRAND_SCOPE(scope);
    strand target = strand_spawn(scope, sleep_forever, arg);
    return in_another_run(wait_for_it, &target);
}

static void *spawn_into_a_scope_of_another_run(void *arg)
{
    STRAND_SCOPE_OPEN(scope);
    (void)arg;
    return in_another_run(spawn_there, &scope);
}

/* ---- channels and selects -------------------------------------------------------------------- */

static long value = 1;

static strand_chan gone_channel(void)
{
    STRAND_SCOPE(scope);
    return strand_chan_open(scope, sizeof value, 1, NULL);
}

static void *send_to_no_channel(void *arg)
{
    STRAND_IGNORE(strand_chan_send((strand_chan){{0, 0}}, &value));
    return arg;
}

static void *send_to_a_channel_that_is_gone(void *arg)
{
    STRAND_IGNORE(strand_chan_send(gone_channel(), &value));
    return arg;
}

static void *receive_from_a_channel_that_is_gone(void *arg)
{
    STRAND_IGNORE(strand_chan_receive(gone_channel(), &value));
    return arg;
}

static void *try_a_channel_that_is_gone(void *arg)
{
    strand_chan gone = gone_channel();
    STRAND_SCOPE(scope);
    strand_chan_open(scope, sizeof value, 1, NULL); /* in its place */
    STRAND_IGNORE(strand_chan_try_send(gone, &value));
    return arg;
}

static void *close_a_channel_that_is_gone(void *arg)
{
    strand_chan_close(gone_channel());
    return arg;
}

static void *measure_a_channel_that_is_gone(void *arg)
{
    strand_chan_length(gone_channel());
    return arg;
}

static void *select_on_a_channel_that_is_gone(void *arg)
{
    strand_case c = strand_on_receive(gone_channel(), &value);
    strand_select(&c, 1, 0);
    return arg;
}

static void *send_nothing(void *arg)
{
    STRAND_SCOPE(scope);
    STRAND_IGNORE(strand_chan_send(strand_chan_open(scope, sizeof value, 1, NULL), NULL));
    return arg;
}

static void *receive_into_nothing(void *arg)
{
    STRAND_SCOPE(scope);
    STRAND_IGNORE(strand_chan_receive(strand_chan_open(scope, sizeof value, 1, NULL), NULL));
    return arg;
}

static void *send_there(void *chan)
{
    STRAND_IGNORE(strand_chan_send(*(strand_chan *)chan, &value));
    return NULL;
}

static void *send_to_a_channel_of_another_run(void *arg)
{
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof value, 1, NULL);
    (void)arg;
    return in_another_run(send_there, &chan);
}

static void *open_it_there(void *scope)
{
    strand_chan_open(*(strand_scope *)scope, sizeof value, 1, NULL);
    return NULL;
}

static void *make_a_channel_in_a_scope_of_another_strand(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, open_it_there, &scope));
    return arg;
}

static void *make_a_channel_with_attributes_of_no_size(void *arg)
{
    STRAND_SCOPE(scope);
    strand_chan_open(scope, 1, 1, &(strand_chan_attr){.name = "sizeless"});
    return arg;
}

static void *select_on_its_own_end(void *arg)
{
    strand_case c = strand_on_end(strand_self());
    strand_select(&c, 1, 0);
    return arg;
}

static void *select_on_the_end_of_nobody(void *arg)
{
    strand_on_end((strand){{0, 0}});
    return arg;
}

static void *select_with_unknown_flags(void *arg)
{
    strand_select(NULL, 0, 4);
    return arg;
}

static void *select_of_nothing(void *arg)
{
    strand_select(NULL, 3, 0);
    return arg;
}

static ON_PURPOSE void *receive_in_no_suspend(void *arg)
{
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof value, 1, NULL);
    STRAND_IGNORE(strand_chan_try_send(chan, &value));
    STRAND_NO_SUSPEND;
    STRAND_IGNORE(strand_chan_receive(chan, &value));
    return arg;
}

static ON_PURPOSE void *select_in_no_suspend(void *arg)
{
    strand_case c = strand_on_time(strand_now());
    STRAND_NO_SUSPEND;
    strand_select(&c, 1, 0);
    return arg;
}

static void *tick_without_a_period(void *arg)
{
    strand_ticker_every(0);
    return arg;
}

static void *tick_with_no_ticker(void *arg)
{
    strand_wait_tick(&(strand_ticker){0});
    return arg;
}

static void *select_on_no_ticker(void *arg)
{
    strand_on_tick(&(strand_ticker){0});
    return arg;
}

/* ---- ownership ------------------------------------------------------------------------------ */

static void *spawn_into(void *scope)
{
    strand_spawn(*(strand_scope *)scope, return_arg, NULL);
    return NULL;
}

static void *spawn_into_a_foreign_scope(void *arg)
{
    STRAND_SCOPE(mine);
    strand_join(strand_spawn(mine, spawn_into, &mine));
    return arg;
}

static void *cancel_scope(void *scope)
{
    strand_scope_cancel(*(strand_scope *)scope, NULL);
    return NULL;
}

static void *cancel_a_foreign_scope(void *arg)
{
    STRAND_SCOPE(mine);
    strand_join(strand_spawn(mine, cancel_scope, &mine));
    return arg;
}

static void *join_other(void *other)
{
    return strand_join(*(strand *)other);
}

static void *join_a_strand_of_another_owner(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = spawn_it_here(scope, return_arg, arg);
    strand_join(strand_spawn(scope, join_other, &child));
    return arg;
}

static strand_scope low;
static _Atomic int low_is_open;

static void *open_a_scope_below(void *arg)
{
    STRAND_SCOPE_OPEN(scope);
    low = scope;
    low_is_open = 1;
    strand_sleep(FOREVER);
    return arg;
}

static void *hand_off_below_itself(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = spawn_it_here(scope, open_a_scope_below, arg);
    while (!low_is_open)
        strand_yield();
    STRAND_IGNORE(strand_hand_off(child, low));
    return arg;
}

static void *join_after_hand_off(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = spawn_it_here(scope, sleep_forever, arg);
    strand_spawn(scope, open_a_scope_below, arg);
    while (!low_is_open)
        strand_yield();
    STRAND_IGNORE(strand_hand_off(child, low));
    return strand_join(child);
}

static void *hand_off_other(void *other)
{
    STRAND_SCOPE_OPEN(open);
    STRAND_IGNORE(strand_hand_off(*(strand *)other, open));
    return NULL;
}

static void *hand_off_a_strand_of_another_owner(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = spawn_it_here(scope, sleep_forever, arg);
    strand_join(strand_spawn(scope, hand_off_other, &child));
    return arg;
}

/* Two strands with open scopes, each handed off to a scope of the other: nobody would wait for either. */
static struct pair {
    strand child[2];
    strand_scope scope[2];
    _Atomic int open, at_the_start, handed_off;
} pair;

static void *open_a_scope_of_the_pair(void *which)
{
    STRAND_SCOPE_OPEN(scope);
    pair.scope[*(int *)which] = scope;
    pair.open++;
    strand_sleep(FOREVER);
    return which;
}

static int zero_and_one[] = {0, 1};

static void *hand_off_in_a_circle(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 2; i++)
        pair.child[i] = spawn_it_here(scope, open_a_scope_of_the_pair, &zero_and_one[i]);
    while (pair.open < 2)
        strand_yield();
    if (strand_hand_off(pair.child[0], pair.scope[1]) == 0)
        puts("the first was handed off");
    fflush(stdout);
    STRAND_IGNORE(strand_hand_off(pair.child[1], pair.scope[0]));
    return arg;
}

/* The owner of one of the two. Both begin at the same time, each on a thread of its own if there are threads. */
static void *hand_off_to_the_other(void *which)
{
    int mine = *(int *)which;
    STRAND_SCOPE(scope);
    pair.child[mine] = spawn_it_here(scope, open_a_scope_of_the_pair, which);
    while (pair.open < 2)
        strand_yield();
    pair.at_the_start++;
    for (int spins = 1; pair.at_the_start < 2; spins++)
        if (spins % 1000 == 0)
            strand_yield();
    if (strand_hand_off(pair.child[mine], pair.scope[1 - mine]) == 0 && ++pair.handed_off == 2) {
        puts("still alive, and both were handed off");
        exit(0);
    }
    strand_sleep(FOREVER);
    return which;
}

static void *hand_off_in_a_circle_at_once(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 2; i++)
        strand_spawn(scope, hand_off_to_the_other, &zero_and_one[i]);
    strand_scope_join(scope);
    return arg;
}

/* ---- blocking where it is not allowed ------------------------------------------------------- */

static NOINLINE void block_in_the_section(void)
{
    strand_sleep(STRAND_MS);
    __asm__ volatile("");
}

/* By a child on a stack of its own, by one of a shared fibre, and by the root. */
static void *exit_thread(void *arg)
{
    pthread_exit(arg);
}

static void *exit_thread_in_a_child(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, exit_thread, arg));
    return arg;
}

static void *exit_thread_on_a_shared_stack(void *arg)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), exit_thread, arg, 0));
    return arg;
}

static NOINLINE void *block_in_no_suspend(void *arg)
{
    STRAND_NO_SUSPEND;
    block_in_the_section();
    return arg;
}

static ON_PURPOSE void *yield_in_no_suspend(void *arg)
{
    STRAND_NO_SUSPEND;
    strand_yield();
    return arg;
}

static ON_PURPOSE void *join_in_no_suspend(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, return_arg, arg);
    STRAND_NO_SUSPEND;
    return strand_join(child);
}

static ON_PURPOSE void *block_after_an_inner_section(void *arg)
{
    STRAND_NO_SUSPEND;
    {
        STRAND_NO_SUSPEND;
    }
    strand_yield();
    return arg;
}

static void *wait_for_itself(void *arg)
{
    strand_wait(strand_self());
    return arg;
}

static void *run_inside_a_strand(void *arg)
{
    return strand_run(NULL, return_arg, arg);
}

/* ---- outside of strands --------------------------------------------------------------------- */

static NOINLINE void yields_outside(void)
{
    strand_yield();
    __asm__ volatile("");
}

static NOINLINE void *yields_when_offloaded(void *arg)
{
    yields_outside();
    __asm__ volatile("");
    return arg;
}

static void *yield_in_an_offloaded_function(void *arg)
{
    return strand_offload(yields_when_offloaded, arg);
}

/* ---- throwing ------------------------------------------------------------------------------- */

static void *throw_interrupted_by_hand(void *arg)
{
    (void)arg;
    strand_throw(&STRAND_INTERRUPTED, "by hand");
}

static void *throw_below_interrupted_by_hand(void *arg)
{
    static const strand_kind MINE = STRAND_KIND("mine", &STRAND_INTERRUPTED);
    (void)arg;
    strand_throw(&MINE, "by hand");
}

/* ---- policies, sizes ------------------------------------------------------------------------ */

static void *take_the_first_of_no_children(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_FIRST_WINS);
    strand_scope_join_first(scope, NULL);
    return arg;
}

/* Questions that only the scopes of a policy answer. */
static void *fetch_a_failure_without_a_policy(void *arg)
{
    STRAND_SCOPE(scope);
    strand_scope_failure(scope, NULL);
    return arg;
}

static void *take_the_next_without_a_policy(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_TOGETHER);
    strand_scope_wait_next(scope);
    return arg;
}

static void *join_one_of_a_service(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    strand_join(strand_spawn(scope, return_arg, NULL));
    return arg;
}

static void *hand_off_one_of_a_service(void *arg)
{
    STRAND_SCOPE_OPEN(other);
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    STRAND_IGNORE(strand_hand_off(strand_spawn(scope, return_arg, NULL), other));
    return arg;
}

static void *want_the_first_of_a_service(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE | STRAND_FIRST_WINS);
    return arg;
}

static void *take_the_first_without_a_policy(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    strand_scope_join_first(scope, NULL);
    return arg;
}

/* ---- NULL ------------------------------------------------------------------------------------ */

static void *spawn_nothing(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, NULL, arg);
    return arg;
}

static void *spawn_nothing_with(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "nothing"), NULL, arg, 0);
    return arg;
}

static void *try_nothing(void *arg)
{
    STRAND_IGNORE(strand_try(NULL, arg, NULL));
    return arg;
}

static void *offload_nothing(void *arg)
{
    return strand_offload(NULL, arg);
}

static void *throw_no_kind(void *arg)
{
    const strand_kind *volatile none = NULL;
    (void)arg;
    strand_throw(none, "of no kind");
}

static void *rethrow_nothing(void *arg)
{
    strand_exception *volatile none = NULL;
    (void)arg;
    strand_rethrow(none);
}

static void *print_nothing(void *arg)
{
    strand_exception_print(NULL, 2);
    return arg;
}

/* ---- signals --------------------------------------------------------------------------------- */

static void *wait_for_signals_of_a_block_that_was_left(void *arg)
{
    strand_signals left;
    {
        STRAND_SIGNALS(signals, SIGUSR1);
        left = signals;
    }
    STRAND_SIGNALS(signals, SIGUSR1);
    raise(SIGUSR1);
    strand_wait_signal(left);
    (void)signals;
    return arg;
}

static void *wait_for_a_fault(void *arg)
{
    STRAND_SIGNALS(signals, SIGSEGV);
    (void)signals;
    return arg;
}

/* ---- scopes with flags ------------------------------------------------------------------------ */

static void *open_a_scope_with_unknown_flags(void *arg)
{
    STRAND_SCOPE_WITH(scope, 0x7f0);
    strand_spawn(scope, return_arg, arg);
    return arg;
}

static void *open_a_service_where_the_first_wins(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE | STRAND_FIRST_WINS);
    strand_scope_join(scope);
    return arg;
}

static void *join_the_scope(void *scope)
{
    strand_scope_join(*(strand_scope *)scope);
    return NULL;
}

static void *join_an_open_scope_of_another(void *arg)
{
    strand_scope open;
    STRAND_SCOPE_OPEN(scope);
    open = scope;
    {
        STRAND_SCOPE(inner);
        strand_join(strand_spawn(inner, join_the_scope, &open));
    }
    return arg;
}

static void *throw_an_error(void *arg)
{
    strand_throw(&STRAND_ERROR, "to be released");
    return arg;
}

static void *release_an_exception_twice(void *arg)
{
    strand_exception *e = strand_try(throw_an_error, arg, NULL);
    strand_exception_release(e);
    strand_exception_release(e);
    return arg;
}

/* A handle that was never set holds what was there before. */
static void *wait_for_signals_of_garbage(void *arg)
{
    strand_signals never;
    memset(&never, 0x5a, sizeof never);
    strand_wait_signal(never);
    return arg;
}

static void *select_signals_of_garbage(void *arg)
{
    strand_signals never;
    memset(&never, 0x5a, sizeof never);
    strand_case one = strand_on_signal(never, NULL);
    strand_select(&one, 1, STRAND_SELECT_NOW);
    return arg;
}

static void *open_a_scope_with_two_policies(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_TOGETHER | STRAND_COLLECT);
    strand_spawn(scope, return_arg, arg);
    return arg;
}

static void *spawn_with_attributes_of_no_size(void *arg)
{
    strand_attr attr = {.name = "sizeless"};
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, &attr, return_arg, arg, 0));
    return arg;
}

static void *spawn_with_attributes_of_an_absurd_size(void *arg)
{
    strand_attr attr = {.size = 5000};
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, &attr, return_arg, arg, 0));
    return arg;
}

static void *dump_grouped_as_nobody_knows(void *arg)
{
    strand_dump_options options = {.size = sizeof options};
    memset(&options.grouping, 99, sizeof options.grouping);
    strand_dump(2, &options);
    return arg;
}

static void *ask_for_statistics_nowhere(void *arg)
{
    strand_stats_get(NULL);
    return arg;
}

static void *copy_arguments_from_nowhere(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, NULL, return_arg, NULL, 8));
    return arg;
}

static void *dump_with_options_of_no_size(void *arg)
{
    strand_dump_options options = {0};
    strand_dump(2, &options);
    return arg;
}

static const struct {
    const char *name;
    strand_fn *root;
} inside[] = {
    {"join_an_invented_strand", join_an_invented_strand},
    {"wait_for_nobody", wait_for_nobody},
    {"cancel_a_stale_scope", cancel_a_stale_scope},
    {"cancel_an_invented_scope", cancel_an_invented_scope},
    {"fetch_a_failure_without_a_policy", fetch_a_failure_without_a_policy},
    {"take_the_next_without_a_policy", take_the_next_without_a_policy},
    {"join_one_of_a_service", join_one_of_a_service},
    {"hand_off_one_of_a_service", hand_off_one_of_a_service},
    {"want_the_first_of_a_service", want_the_first_of_a_service},
    {"take_the_first_without_a_policy", take_the_first_without_a_policy},
    {"spawn_with_attributes_of_an_absurd_size", spawn_with_attributes_of_an_absurd_size},
    {"dump_with_options_of_no_size", dump_with_options_of_no_size},
    {"dump_grouped_as_nobody_knows", dump_grouped_as_nobody_knows},
    {"ask_for_statistics_nowhere", ask_for_statistics_nowhere},
    {"copy_arguments_from_nowhere", copy_arguments_from_nowhere},
    {"join_twice", join_twice},
    {"join_nobody", join_nobody},
    {"spawn_into_a_stale_scope", spawn_into_a_stale_scope},
    {"join_a_stale_scope", join_a_stale_scope},
    {"spawn_into_a_foreign_pool", spawn_into_a_foreign_pool},
    {"cancel_a_strand_of_another_run", cancel_a_strand_of_another_run},
    {"wait_for_a_strand_of_another_run", wait_for_a_strand_of_another_run},
    {"spawn_into_a_scope_of_another_run", spawn_into_a_scope_of_another_run},
    {"spawn_into_a_foreign_scope", spawn_into_a_foreign_scope},
    {"cancel_a_foreign_scope", cancel_a_foreign_scope},
    {"join_a_strand_of_another_owner", join_a_strand_of_another_owner},
    {"join_after_hand_off", join_after_hand_off},
    {"hand_off_below_itself", hand_off_below_itself},
    {"hand_off_in_a_circle", hand_off_in_a_circle},
    {"hand_off_in_a_circle_at_once", hand_off_in_a_circle_at_once},
    {"hand_off_a_strand_of_another_owner", hand_off_a_strand_of_another_owner},
    {"exit_thread", exit_thread},
    {"exit_thread_in_a_child", exit_thread_in_a_child},
    {"exit_thread_on_a_shared_stack", exit_thread_on_a_shared_stack},
    {"block_in_no_suspend", block_in_no_suspend},
    {"yield_in_no_suspend", yield_in_no_suspend},
    {"join_in_no_suspend", join_in_no_suspend},
    {"block_after_an_inner_section", block_after_an_inner_section},
    {"wait_for_itself", wait_for_itself},
    {"run_inside_a_strand", run_inside_a_strand},
    {"yield_in_an_offloaded_function", yield_in_an_offloaded_function},
    {"throw_interrupted_by_hand", throw_interrupted_by_hand},
    {"throw_below_interrupted_by_hand", throw_below_interrupted_by_hand},
    {"take_the_first_of_no_children", take_the_first_of_no_children},
    {"wait_for_signals_of_a_block_that_was_left", wait_for_signals_of_a_block_that_was_left},
    {"wait_for_a_fault", wait_for_a_fault},
    {"spawn_nothing", spawn_nothing},
    {"spawn_nothing_with", spawn_nothing_with},
    {"try_nothing", try_nothing},
    {"offload_nothing", offload_nothing},
    {"throw_no_kind", throw_no_kind},
    {"rethrow_nothing", rethrow_nothing},
    {"print_nothing", print_nothing},
    {"open_a_scope_with_unknown_flags", open_a_scope_with_unknown_flags},
    {"open_a_scope_with_two_policies", open_a_scope_with_two_policies},
    {"open_a_service_where_the_first_wins", open_a_service_where_the_first_wins},
    {"join_an_open_scope_of_another", join_an_open_scope_of_another},
    {"release_an_exception_twice", release_an_exception_twice},
    {"wait_for_signals_of_garbage", wait_for_signals_of_garbage},
    {"select_signals_of_garbage", select_signals_of_garbage},
    {"spawn_with_attributes_of_no_size", spawn_with_attributes_of_no_size},
    {"send_to_no_channel", send_to_no_channel},
    {"send_to_a_channel_that_is_gone", send_to_a_channel_that_is_gone},
    {"receive_from_a_channel_that_is_gone", receive_from_a_channel_that_is_gone},
    {"try_a_channel_that_is_gone", try_a_channel_that_is_gone},
    {"close_a_channel_that_is_gone", close_a_channel_that_is_gone},
    {"measure_a_channel_that_is_gone", measure_a_channel_that_is_gone},
    {"select_on_a_channel_that_is_gone", select_on_a_channel_that_is_gone},
    {"send_nothing", send_nothing},
    {"receive_into_nothing", receive_into_nothing},
    {"send_to_a_channel_of_another_run", send_to_a_channel_of_another_run},
    {"make_a_channel_in_a_scope_of_another_strand", make_a_channel_in_a_scope_of_another_strand},
    {"make_a_channel_with_attributes_of_no_size", make_a_channel_with_attributes_of_no_size},
    {"select_on_its_own_end", select_on_its_own_end},
    {"select_on_the_end_of_nobody", select_on_the_end_of_nobody},
    {"select_with_unknown_flags", select_with_unknown_flags},
    {"select_of_nothing", select_of_nothing},
    {"receive_in_no_suspend", receive_in_no_suspend},
    {"select_in_no_suspend", select_in_no_suspend},
    {"tick_without_a_period", tick_without_a_period},
    {"tick_with_no_ticker", tick_with_no_ticker},
    {"select_on_no_ticker", select_on_no_ticker},
};

static void tell(const strand_misuse *misuse, void *arg)
{
    printf("hook %s: function=%s; what=%s; made=%s\n", (const char *)arg, misuse->function, misuse->what, misuse->made);
    fflush(stdout);
}

static void run_outside(const char *name, const strand_options *options)
{
    strand_options sizeless = {.threads = 1}, absurd = {.size = 5000};
    if (strcmp(name, "run_nothing") == 0)
        strand_run(options, NULL, NULL);
    else if (strcmp(name, "yield_on_a_plain_thread") == 0)
        yields_outside();
    else if (strcmp(name, "must_on_a_plain_thread") == 0)
        strand_must(-1);
    else if (strcmp(name, "close_on_a_plain_thread") == 0)
        strand_close(0);
    else if (strcmp(name, "throw_on_a_plain_thread") == 0)
        strand_throw(&STRAND_ERROR, "from outside");
    else if (strcmp(name, "send_on_a_plain_thread") == 0)
        STRAND_IGNORE(strand_chan_send((strand_chan){{0, 0}}, &value));
    else if (strcmp(name, "offload_on_a_plain_thread") == 0)
        strand_offload(return_arg, NULL);
    else if (strcmp(name, "run_with_options_of_no_size") == 0)
        strand_run(&sizeless, return_arg, NULL);
    else if (strcmp(name, "run_with_options_of_an_absurd_size") == 0)
        strand_run(&absurd, return_arg, NULL);
    else if (strcmp(name, "join_a_strand_of_an_ended_run") == 0) {
        strand_run(options, remember_a_strand, NULL);
        strand_run(options, join_a_strand_of_an_ended_run, &earlier);
    }
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int threads = strcmp(name, "hand_off_in_a_circle_at_once") == 0 ? 2 : 1;
    strand_options options = {.size = sizeof options, .threads = threads, .on_misuse = tell, .hook_arg = "told"};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (strcmp(name, inside[i].name) == 0)
            strand_run(&options, inside[i].root, NULL);
    run_outside(name, &options);
    puts("still alive");
    return 0;
}
