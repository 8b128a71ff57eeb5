/*
 * Misuse of strands, scopes, channels, selects and signals.
 */
#define CASE_OPTIONS .threads = 1
#include "cases.h"

#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/select.h"

#include <pthread.h>
#include <signal.h>

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

/* contract 4.5, 4.67 */
MISUSE(join_twice, "strand_join", "the strand is gone", "had been spawned in spawn_it_here+")
{
    STRAND_SCOPE(scope);
    strand child = spawn_it_here(scope, return_arg, arg);
    strand_join(child);
    return strand_join(child);
}

/* contract 4.5 */
MISUSE(join_nobody, "strand_join",
       "there is no strand behind {0}: the handle was never set to what strand_spawn returns")
DOES(strand_join((strand){0}))

MISUSE(join_an_invented_strand, "strand_join", "the strand is gone")
DOES(strand_join((strand){{0x1000, 7}}))

MISUSE(wait_for_nobody, "strand_wait",
       "there is no strand behind {0}: the handle was never set to what strand_spawn returns")
DOES(strand_wait((strand){0}))

static strand_scope stale;

static NOINLINE void open_and_leave_a_scope(void)
{
    STRAND_SCOPE(scope);
    stale = scope;
}

/* What is no pool of this run: one of another run, or nothing at all. */
MISUSE(spawn_into_a_foreign_pool, "strand_spawn_with", "not a pool's")
{
    static char elsewhere[64];
    STRAND_SCOPE(scope);
    strand_pool pool = {{(uint64_t)(uintptr_t)elsewhere, 5}};
    strand_spawn_with(scope, STRAND_ATTR(.pool = pool), return_arg, arg, 0);
    return arg;
}

MISUSE(cancel_a_stale_scope, "strand_scope_cancel", "the scope has been left, or was never entered")
DOES(open_and_leave_a_scope(); strand_scope_cancel(stale, NULL))

MISUSE(cancel_an_invented_scope, "strand_scope_cancel", "the scope has been left, or was never entered")
DOES(strand_scope_cancel((strand_scope){{0x1000, 6}}, NULL))

/* contract 4.3, 4.67 */
MISUSE(spawn_into_a_stale_scope, "strand_spawn", "the scope has been left, or was never entered")
DOES(open_and_leave_a_scope(); strand_spawn(stale, return_arg, arg))

/* contract 4.3 */
MISUSE(join_a_stale_scope, "strand_scope_join", "the scope has been left, or was never entered")
DOES(open_and_leave_a_scope(); strand_scope_join(stale))

static strand earlier;

static void *remember_a_strand(void *arg)
{
    STRAND_SCOPE(scope);
    earlier = spawn_it_here(scope, return_arg, arg);
    strand_join(earlier);
    return arg;
}

static void *join_it(void *arg)
{
    return strand_join(*(strand *)arg);
}

/* A run within a run: its strands are others, and on other threads. */
static void *in_another_run(strand_fn *fn, void *arg)
{
    strand_options options = {.size = sizeof options, .threads = 1, .own_threads = true, .on_misuse = tell};
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

MISUSE(cancel_a_strand_of_another_run, "strand_cancel", "another run")
{
    STRAND_SCOPE(scope);
    strand target = strand_spawn(scope, sleep_forever, arg);
    return in_another_run(cancel_it, &target);
}

MISUSE(wait_for_a_strand_of_another_run, "strand_wait", "another run")
{
    STRAND_SCOPE(scope);
    strand target = strand_spawn(scope, sleep_forever, arg);
    return in_another_run(wait_for_it, &target);
}

MISUSE(spawn_into_a_scope_of_another_run, "strand_spawn", "another run")
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

MISUSE(send_to_no_channel, "strand_chan_send", "there is no channel behind {0}: strand_chan_open makes one")
DOES(STRAND_IGNORE(strand_chan_send((strand_chan){{0, 0}}, &value)))

MISUSE(send_to_a_channel_that_is_gone, "strand_chan_send", "the channel is gone")
DOES(STRAND_IGNORE(strand_chan_send(gone_channel(), &value)))

MISUSE(receive_from_a_channel_that_is_gone, "strand_chan_receive", "the channel is gone")
DOES(STRAND_IGNORE(strand_chan_receive(gone_channel(), &value)))

MISUSE(try_a_channel_that_is_gone, "strand_chan_try_send", "the channel is gone")
{
    strand_chan gone = gone_channel();
    STRAND_SCOPE(scope);
    strand_chan_open(scope, sizeof value, 1, NULL); /* in its place */
    STRAND_IGNORE(strand_chan_try_send(gone, &value));
    return arg;
}

MISUSE(close_a_channel_that_is_gone, "strand_chan_close", "the channel is gone")
DOES(strand_chan_close(gone_channel()))

MISUSE(measure_a_channel_that_is_gone, "strand_chan_length", "the channel is gone")
DOES(strand_chan_length(gone_channel()))

MISUSE(select_on_a_channel_that_is_gone, "strand_select", "the channel is gone")
DOES(strand_case c = strand_on_receive(gone_channel(), &value); strand_select(&c, 1, 0))

static void *send_there(void *chan)
{
    STRAND_IGNORE(strand_chan_send(*(strand_chan *)chan, &value));
    return NULL;
}

MISUSE(send_to_a_channel_of_another_run, "strand_chan_send", "the channel belongs to another run")
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

MISUSE(make_a_channel_in_a_scope_of_another_strand, "strand_chan_open",
       "only the strand that opened a scope may do that")
DOES(STRAND_SCOPE(scope); strand_join(strand_spawn(scope, open_it_there, &scope)))

MISUSE(make_a_channel_with_attributes_of_no_size, "strand_chan_open",
       "strand_chan_attr.size is 0, not sizeof(strand_chan_attr)")
DOES(STRAND_SCOPE(scope); strand_chan_open(scope, 1, 1, &(strand_chan_attr){.name = "sizeless"}))

MISUSE(select_on_its_own_end, "strand_select", "a strand can't wait for its own end")
DOES(strand_case c = strand_on_end(strand_self()); strand_select(&c, 1, 0))

MISUSE(select_on_the_end_of_nobody, "strand_on_end",
       "there is no strand behind {0}: the handle was never set to what strand_spawn returns")
DOES(strand_on_end((strand){{0, 0}}))

MISUSE(select_with_unknown_flags, "strand_select", "0x4")
DOES(strand_select(NULL, 0, 4))

MISUSE(receive_in_no_suspend, "strand_chan_receive", "it may block, inside a no-suspend section")
{
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof value, 1, NULL);
    STRAND_IGNORE(strand_chan_try_send(chan, &value));
    STRAND_NO_SUSPEND;
    STRAND_IGNORE(strand_chan_receive(chan, &value));
    return arg;
}

MISUSE(select_in_no_suspend, "strand_select", "it may block, inside a no-suspend section")
{
    strand_case c = strand_on_time(strand_now());
    STRAND_NO_SUSPEND;
    strand_select(&c, 1, 0);
    return arg;
}

MISUSE(tick_without_a_period, "strand_ticker_every", "the period is 0 ns, not 1 or more")
DOES(strand_ticker_every(0))

MISUSE(tick_with_no_ticker, "strand_wait_tick", "there is no ticker")
DOES(strand_wait_tick(&(strand_ticker){0}))

MISUSE(select_on_no_ticker, "strand_on_tick", "there is no ticker")
DOES(strand_on_tick(&(strand_ticker){0}))

/* ---- ownership ------------------------------------------------------------------------------ */

static void *spawn_into(void *scope)
{
    strand_spawn(*(strand_scope *)scope, return_arg, NULL);
    return NULL;
}

/* contract 4.2, 4.67 */
MISUSE(spawn_into_a_foreign_scope, "strand_spawn", "only the strand that opened a scope may do that",
       "the scope was opened at tests/programs/misuse.c:")
DOES(STRAND_SCOPE(mine); strand_join(strand_spawn(mine, spawn_into, &mine)))

static void *cancel_scope(void *scope)
{
    strand_scope_cancel(*(strand_scope *)scope, NULL);
    return NULL;
}

/* contract 4.67 */
MISUSE(cancel_a_foreign_scope, "strand_scope_cancel", "only the owner may cancel a scope that is not open",
       "the scope was opened at tests/programs/misuse.c:")
DOES(STRAND_SCOPE(mine); strand_join(strand_spawn(mine, cancel_scope, &mine)))

static void *join_other(void *other)
{
    return strand_join(*(strand *)other);
}

/* contract 4.5 */
MISUSE(join_a_strand_of_another_owner, "strand_join", "spawn_it_here")
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

/* contract 4.55 */
MISUSE(hand_off_below_itself, "strand_hand_off", "spawn_it_here")
{
    STRAND_SCOPE(scope);
    strand child = spawn_it_here(scope, open_a_scope_below, arg);
    while (!low_is_open)
        strand_yield();
    STRAND_IGNORE(strand_hand_off(child, low));
    return arg;
}

MISUSE(join_after_hand_off, "strand_join", "spawn_it_here")
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

/* contract 4.55 */
MISUSE(hand_off_a_strand_of_another_owner, "strand_hand_off", "spawn_it_here")
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

/* contract 4.55 */
MISUSE(hand_off_in_a_circle, "strand_hand_off", "a strand can't be anchored to a scope of its own",
       "was spawned in spawn_it_here+")
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 2; i++)
        pair.child[i] = spawn_it_here(scope, open_a_scope_of_the_pair, &zero_and_one[i]);
    while (pair.open < 2)
        strand_yield();
    if (strand_hand_off(pair.child[0], pair.scope[1]) != 0)
        exit(1);
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

MISUSE_ON_TWO(hand_off_in_a_circle_at_once, "strand_hand_off", "spawn_it_here")
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
MISUSE_NO_TSAN(exit_thread, "pthread_exit", "return from its function or throw", "at exit_thread")
{
    pthread_exit(arg);
}

MISUSE_NO_TSAN(exit_thread_in_a_child, "pthread_exit", "return from its function or throw", "at exit_thread")
DOES(STRAND_SCOPE(scope); strand_join(strand_spawn(scope, exit_thread, arg)))

MISUSE_NO_TSAN(exit_thread_on_a_shared_stack, "pthread_exit", "return from its function or throw", "at exit_thread")
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), exit_thread, arg, 0));
    return arg;
}

/* N-02, N-04, contract 4.68, 5.8 */
MISUSE(block_in_no_suspend, "strand_sleep", "block_in_the_section", "misuse.c:")
DOES(STRAND_NO_SUSPEND; block_in_the_section())

/* N-04 */
MISUSE(yield_in_no_suspend, "strand_yield", "it may block, inside a no-suspend section")
DOES(STRAND_NO_SUSPEND; strand_yield())

/* N-04, contract 5.8 */
MISUSE(join_in_no_suspend, "strand_join", "it may block, inside a no-suspend section")
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, return_arg, arg);
    STRAND_NO_SUSPEND;
    return strand_join(child);
}

/* N-04 */
MISUSE(forget_in_no_suspend, "strand_forget", "it may block, inside a no-suspend section")
DOES(STRAND_NO_SUSPEND; strand_forget(0))

/* N-04 */
MISUSE(block_after_an_inner_section, "strand_yield", "it may block, inside a no-suspend section")
{
    STRAND_NO_SUSPEND;
    {
        STRAND_NO_SUSPEND;
    }
    strand_yield();
    return arg;
}

MISUSE(wait_for_itself, "strand_wait", "is the root strand")
DOES(strand_wait(strand_self()))

/* contract 4.68 */
MISUSE(run_inside_a_strand, "strand_run", "own_threads")
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

MISUSE_BY_THREAD(yield_in_an_offloaded_function, "strand_yield", "it was called from a plain thread, not from a strand")
{
    return strand_offload(yields_when_offloaded, arg);
}

/* ---- throwing ------------------------------------------------------------------------------- */

MISUSE(throw_interrupted_by_hand, "strand_throw", "the kind 'interrupted' is thrown by sources of interruption only")
{
    (void)arg;
    strand_throw(&STRAND_INTERRUPTED, "by hand");
}

MISUSE(throw_below_interrupted_by_hand, "strand_throw", "the kind 'mine' is thrown by sources of interruption only")
{
    static const strand_kind MINE = STRAND_KIND("mine", &STRAND_INTERRUPTED);
    (void)arg;
    strand_throw(&MINE, "by hand");
}

/* ---- policies, sizes ------------------------------------------------------------------------ */

MISUSE(take_the_first_of_no_children, "strand_scope_join_first", "the scope has no children")
DOES(STRAND_SCOPE_WITH(scope, STRAND_FIRST_WINS); strand_scope_join_first(scope, NULL))

/* Questions that only the scopes of a policy answer. */
MISUSE(fetch_a_failure_without_a_policy, "strand_scope_failure", "misuse.c", "STRAND_COLLECT")
DOES(STRAND_SCOPE(scope); strand_scope_failure(scope, NULL))

MISUSE(take_the_next_without_a_policy, "strand_scope_wait_next", "misuse.c")
DOES(STRAND_SCOPE_WITH(scope, STRAND_TOGETHER); strand_scope_wait_next(scope))

MISUSE(join_one_of_a_service, "strand_join", "STRAND_SERVICE")
DOES(STRAND_SCOPE_WITH(scope, STRAND_SERVICE); strand_join(strand_spawn(scope, return_arg, NULL)))

MISUSE(hand_off_one_of_a_service, "strand_hand_off", "STRAND_SERVICE")
{
    STRAND_SCOPE_OPEN(other);
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    STRAND_IGNORE(strand_hand_off(strand_spawn(scope, return_arg, NULL), other));
    return arg;
}

MISUSE(want_the_first_of_a_service, "STRAND_SCOPE_WITH",
       "STRAND_SERVICE consumes the strands that return, so STRAND_FIRST_WINS would have no winner")
DOES(STRAND_SCOPE_WITH(scope, STRAND_SERVICE | STRAND_FIRST_WINS))

MISUSE(take_the_first_without_a_policy, "strand_scope_join_first", "misuse.c", "STRAND_FIRST_WINS")
DOES(STRAND_SCOPE_WITH(scope, STRAND_COLLECT); strand_scope_join_first(scope, NULL))

/* ---- signals --------------------------------------------------------------------------------- */

/* contract 4.67 */
MISUSE(wait_for_signals_of_a_block_that_was_left, "strand_wait_signal",
       "the block of STRAND_SIGNALS has been left, or was never entered")
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

MISUSE(wait_for_a_fault, "STRAND_SIGNALS", "signal 11 can't be waited for")
DOES(STRAND_SIGNALS(signals, SIGSEGV); (void)signals)

/* ---- scopes with flags ------------------------------------------------------------------------ */

MISUSE(open_a_scope_with_unknown_flags, "STRAND_SCOPE_WITH", "0x7f0")
DOES(STRAND_SCOPE_WITH(scope, 0x7f0); strand_spawn(scope, return_arg, arg))

MISUSE(open_a_service_where_the_first_wins, "STRAND_SCOPE_WITH",
       "STRAND_SERVICE consumes the strands that return, so STRAND_FIRST_WINS would have no winner")
DOES(STRAND_SCOPE_WITH(scope, STRAND_SERVICE | STRAND_FIRST_WINS); strand_scope_join(scope))

static void *join_the_scope(void *scope)
{
    strand_scope_join(*(strand_scope *)scope);
    return NULL;
}

MISUSE(join_an_open_scope_of_another, "strand_scope_join",
       "only the strand that opened a scope may do that, even if the scope is open")
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

MISUSE(release_an_exception_twice, "strand_exception_release", "the exception is gone")
{
    strand_exception *e = strand_try(throw_an_error, arg, NULL);
    strand_exception_release(e);
    strand_exception_release(e);
    return arg;
}

/* A handle that was never set holds what was there before. */
MISUSE(wait_for_signals_of_garbage, "strand_wait_signal",
       "the block of STRAND_SIGNALS has been left, or was never entered")
{
    strand_signals never;
    memset(&never, 0x5a, sizeof never);
    strand_wait_signal(never);
    return arg;
}

MISUSE(select_signals_of_garbage, "strand_select", "the block of STRAND_SIGNALS has been left, or was never entered")
{
    strand_signals never;
    memset(&never, 0x5a, sizeof never);
    strand_case one = strand_on_signal(never, NULL);
    strand_select(&one, 1, STRAND_SELECT_NOW);
    return arg;
}

MISUSE(open_a_scope_with_two_policies, "STRAND_SCOPE_WITH", "a scope has one policy at most")
DOES(STRAND_SCOPE_WITH(scope, STRAND_TOGETHER | STRAND_COLLECT); strand_spawn(scope, return_arg, arg))

/* contract 9.14 */
MISUSE(spawn_with_attributes_of_no_size, "strand_spawn_with", "size")
{
    strand_attr attr = {.name = "sizeless"};
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, &attr, return_arg, arg, 0));
    return arg;
}

MISUSE(spawn_with_attributes_of_an_absurd_size, "strand_spawn_with", "5000")
{
    strand_attr attr = {.size = 5000};
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, &attr, return_arg, arg, 0));
    return arg;
}

MISUSE(dump_grouped_as_nobody_knows, "strand_dump", "set an enumerator, such as STRAND_DUMP_AUTO")
{
    strand_dump_options options = {.size = sizeof options};
    memset(&options.grouping, 99, sizeof options.grouping);
    strand_dump(2, &options);
    return arg;
}

/* contract 9.14 */
MISUSE(dump_with_options_of_no_size, "strand_dump", "size")
DOES(strand_dump_options options = {0}; strand_dump(2, &options))

/* ---- outside of runs ------------------------------------------------------------------------- */

MISUSE_OUTSIDE(run_nothing, "strand_run", "the function is NULL")
DOES(strand_run(NULL, NULL, NULL))

/* contract 4.68 */
MISUSE_OUTSIDE(yield_on_a_plain_thread, "strand_yield", "it was called from a plain thread, not from a strand")
DOES(yields_outside())

MISUSE_OUTSIDE(must_on_a_plain_thread, "strand_must", "it was called from a plain thread, not from a strand")
DOES(strand_must(-1))

MISUSE_OUTSIDE(close_on_a_plain_thread, "strand_close", "it was called from a plain thread, not from a strand")
DOES(strand_close(0))

/* contract 4.68 */
MISUSE_OUTSIDE(throw_on_a_plain_thread, "strand_throw", "it was called from a plain thread, not from a strand")
{
    (void)arg;
    strand_throw(&STRAND_ERROR, "from outside");
}

MISUSE_OUTSIDE(send_on_a_plain_thread, "strand_chan_send", "it was called from a plain thread, not from a strand")
DOES(STRAND_IGNORE(strand_chan_send((strand_chan){{0, 0}}, &value)))

/* contract 4.68 */
MISUSE_OUTSIDE(offload_on_a_plain_thread, "strand_offload", "it was called from a plain thread, not from a strand")
DOES(strand_offload(return_arg, NULL))

/* contract 9.14 */
MISUSE_OUTSIDE(run_with_options_of_no_size, "strand_run", "size")
DOES(strand_options sizeless = {.threads = 1}; strand_run(&sizeless, return_arg, NULL))

MISUSE_OUTSIDE(run_with_options_of_an_absurd_size, "strand_run", "5000")
DOES(strand_options absurd = {.size = 5000}; strand_run(&absurd, return_arg, NULL))

/* contract 4.67 */
MISUSE_OUTSIDE(join_a_strand_of_an_ended_run, "strand_join", "the strand is gone")
DOES(strand_run(NULL, remember_a_strand, NULL); strand_run(NULL, join_it, &earlier))
