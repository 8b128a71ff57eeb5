/*
 * Shut-downs of runs: from anywhere, at once or after a while, once or often.
 */
#define SUITE shutdown
#include "test.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/select.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define NAP (5 * STRAND_MS)

static strand_exception *e;
static struct {
    _Atomic int begun, cleaned, drained;
    strand_run_handle run;
    int64_t drain;
} seen;

static strand_options usual(void)
{
    strand_options options = test_options();
    options.uncaught = &e;
    memset(&seen, 0, sizeof seen);
    return options;
}

static void clean(int *mark)
{
    (void)mark;
    strand_sleep(STRAND_US);
    seen.cleaned++;
}

static void *work_for_ever(void *arg)
{
    int mark __attribute__((cleanup(clean)));
    (void)mark;
    seen.begun++;
    for (;;) {
        strand_yield();
        strand_sleep(STRAND_MS);
    }
    return arg;
}

static void *have_three_work(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, work_for_ever, arg);
    strand_scope_join(scope);
    return arg;
}

static void *stop_and_work(void *arg)
{
    CHECK(!strand_stopping());
    CHECK_EQ(strand_run_stop(strand_run_self(), *(int64_t *)arg, "enough"), 0);
    return have_three_work(arg);
}

/* S-30, S-31 */
TEST(a_run_that_is_stopped_comes_down_in_order_and_that_is_no_failure)
{
    static int64_t drains[] = {0, -1, NAP};
    for (int i = 0; i < 3; i++) {
        strand_options options = usual();
        CHECK_PTR(strand_run(&options, stop_and_work, &drains[i]), NULL);
        CHECK_PTR(e, NULL);
        CHECK_EQ(seen.begun, 3);
        CHECK_EQ(seen.cleaned, 3);
    }
}

static void *say_who_and_why(void *arg)
{
    STRAND_TRY {
        stop_and_work(arg);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, interrupted) {
        CHECK_STR(strand_exception_who(interrupted), "the run itself");
        CHECK_STR(strand_exception_why(interrupted), "enough");
        strand_throw(&TEST_ERROR, "on the way out");
    }
    STRAND_END
    return arg;
}

TEST(a_failure_on_the_way_out_is_not_lost)
{
    static int64_t drain = NAP;
    strand_options options = usual();
    CHECK_PTR(strand_run(&options, say_who_and_why, &drain), NULL);
    CHECK_KIND(e, &TEST_ERROR);
    strand_exception_release(e);
}

/* ---- draining ---------------------------------------------------------------------------------- */

static void *accept_until_stopped(void *arg)
{
    strand_wait_stopping();
    CHECK(strand_stopping());
    seen.drained++;
    return arg;
}

static void *accept_by_a_select(void *arg)
{
    static strand_event never;
    strand_case cases[] = {strand_on_event(&never), strand_on_stopping(), strand_on_time(strand_in(FOREVER))};
    CHECK_EQ(strand_select(cases, 3, STRAND_SELECT_NOW), -EAGAIN);
    seen.begun++;
    CHECK_EQ(strand_select(cases, 3, 0), 1);
    CHECK_EQ(strand_select(cases, 3, STRAND_SELECT_NOW), 1);
    seen.drained++;
    return arg;
}

static void *stop_slowly(void *arg)
{
    strand_sleep(NAP);
    CHECK_EQ(strand_run_stop(strand_run_self(), FOREVER, NULL), 0);
    return arg;
}

static void *stop_when_all_have_begun(void *arg)
{
    while (seen.begun < 3)
        strand_sleep(STRAND_MS);
    return stop_slowly(arg);
}

static void *drain(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++) {
        strand_spawn(scope, accept_until_stopped, arg);
        strand_spawn(scope, accept_by_a_select, arg);
    }
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    strand_spawn_with(scope, STRAND_ATTR(.pool = pool), accept_until_stopped, arg, 0);
    strand_spawn_with(scope, STRAND_ATTR(.pool = pool), stop_when_all_have_begun, arg, 0);
    strand_scope_join(scope);
    strand_wait_stopping();
    strand_sleep(NAP);
    return arg;
}

TEST(strands_see_the_shut_down_and_have_time_to_end_by_themselves)
{
    strand_options options = usual();
    CHECK_PTR(strand_run(&options, drain, &options), &options);
    CHECK_PTR(e, NULL);
    CHECK_EQ(seen.drained, 7);
}

static void *wait_for_ever(void *arg)
{
    static strand_event never;
    int mark __attribute__((cleanup(clean)));
    (void)mark;
    strand_event_wait(&never);
    return arg;
}

static void *wait_for_each_other(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, stop_slowly, arg);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, wait_for_ever, arg);
    strand_scope_join(scope);
    return arg;
}

TEST(a_run_out_of_work_need_not_wait_until_the_time_is_over)
{
    strand_options options = usual();
    options.out_of_work = STRAND_OUT_OF_WORK_THROW;
    CHECK_PTR(strand_run(&options, wait_for_each_other, NULL), NULL);
    CHECK_PTR(e, NULL);
    CHECK_EQ(seen.cleaned, 3);
}

static strand_chan gifts;

static void *post_later(void *arg)
{
    int gift = 7;
    strand_sim_sleep(20 * STRAND_MS);
    CHECK_EQ(strand_chan_post(gifts, &gift), 0);
    return arg;
}

static void *wait_for_a_plain_thread(void *arg)
{
    int gift = 0;
    STRAND_SCOPE(scope);
    gifts = strand_chan_open(scope, sizeof gift, 0, NULL);
    CHECK_EQ(strand_run_stop(strand_run_self(), FOREVER, NULL), 0);
    CHECK_EQ(strand_sim_thread(post_later, NULL), 0);
    CHECK_EQ(strand_chan_receive(gifts, &gift), 0);
    CHECK_EQ(gift, 7);
    return arg;
}

TEST(a_run_that_waits_for_outsiders_has_all_of_the_time)
{
    strand_options options = usual();
    options.out_of_work = STRAND_OUT_OF_WORK_WAIT;
    CHECK_PTR(strand_run(&options, wait_for_a_plain_thread, &options), &options);
    CHECK_PTR(e, NULL);
}

static void *stop_earlier_and_earlier(void *arg)
{
    STRAND_SCOPE(scope);
    strand_run_handle run = strand_run_self();
    strand_spawn(scope, work_for_ever, arg);
    CHECK_EQ(strand_run_stop(run, INT64_MAX, "first"), 0);
    strand_yield();
    for (int64_t drain_ns = FOREVER; drain_ns > STRAND_MS; drain_ns /= 2)
        CHECK_EQ(strand_run_stop(run, drain_ns, "later"), 0);
    CHECK_EQ(strand_run_stop(run, FOREVER, "last"), 0);
    STRAND_TRY {
        strand_scope_join(scope);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, interrupted) {
        CHECK_STR(strand_exception_why(interrupted), "first");
        seen.drained++;
    }
    STRAND_END
    return arg;
}

TEST(the_earliest_of_several_calls_counts_with_the_first_reason)
{
    strand_options options = usual();
    strand_run(&options, stop_earlier_and_earlier, NULL);
    CHECK_EQ(seen.drained, 1);
    strand_exception_release(e);
}

static void *interrupted_while_it_waits(void *arg)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(NAP));
        strand_wait_stopping();
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, late) {
        seen.drained++;
    }
    STRAND_END
    return arg;
}

TEST(a_waiter_for_the_shut_down_can_be_interrupted_and_is_no_deadlock)
{
    strand_options options = usual();
    options.out_of_work = STRAND_OUT_OF_WORK_THROW;
    CHECK_PTR(strand_run(&options, interrupted_while_it_waits, &options), &options);
    CHECK_EQ(seen.drained, 1);
}

/* ---- from plain threads ----------------------------------------------------------------------- */

enum { CALLS = 1000000 };
static _Atomic int calling;

static void *stop_often(void *arg)
{
    for (int i = 0; i < CALLS; i++)
        CHECK_EQ(strand_run_stop(seen.run, FOREVER, NULL), 0);
    calling = 0;
    return arg;
}

static void *look_at_the_pool_meanwhile(void *arg)
{
    strand_pool_info info = {.size = sizeof info};
    pthread_t thread;
    seen.run = strand_run_self();
    calling = 1;
    CHECK_EQ(pthread_create(&thread, NULL, stop_often, NULL), 0);
    while (calling)
        strand_pool_info_get(strand_pool_self(), &info);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return arg;
}

/* A plain thread and a run of one thread count themselves in and out of the same word. */
TEST_REAL(stopping_from_a_plain_thread_while_the_run_looks_at_its_pool_loses_no_reference)
{
    strand_options options = usual();
    CHECK_PTR(strand_run(&options, look_at_the_pool_meanwhile, &options), &options);
    CHECK_PTR(e, NULL);
}

/* ---- by whom ------------------------------------------------------------------------------------- */

static void *stop_it(void *arg)
{
    CHECK_EQ(strand_run_stop(seen.run, seen.drain, "by a plain thread"), 0);
    return arg;
}

static void *stop_by_a_plain_thread(void *arg)
{
    seen.run = strand_run_self();
    CHECK_EQ(strand_sim_thread(stop_it, NULL), 0);
    return have_three_work(arg);
}

static void stop_in_a_handler(void *arg)
{
    (void)arg;
    errno = 77;
    CHECK_EQ(strand_run_stop(seen.run, 0, "by a handler"), 0);
    CHECK_EQ(errno, 77);
}

static void *get_run(void *arg)
{
    *(strand_run_handle *)arg = strand_run_self();
    return arg;
}

static void *stop_by_a_handler(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool), get_run, &seen.run, 0));
    strand_pool_close(pool, NULL); /* the run is the same, whatever happens to the pool that it was named on */
    CHECK_EQ(strand_sim_signal(stop_in_a_handler, NULL), 0);
    return have_three_work(arg);
}

/* S-31 */
TEST(plain_threads_and_handlers_may_stop_a_run)
{
    strand_options options = usual();
    CHECK_PTR(strand_run(&options, stop_by_a_plain_thread, NULL), NULL);
    CHECK_PTR(e, NULL);
    options = usual();
    CHECK_PTR(strand_run(&options, stop_by_a_handler, NULL), NULL);
    CHECK_PTR(e, NULL);
}

static void on_signal(int number)
{
    (void)number;
    CHECK_EQ(strand_run_stop(seen.run, seen.drain, "a signal"), 0);
}

static void *stop_by_a_signal(void *arg)
{
    struct sigaction action = {.sa_handler = on_signal};
    seen.run = strand_run_self();
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    return have_three_work(arg);
}

/* S-30 */
TEST_REAL(a_handler_of_a_signal_may_stop_the_run_that_it_interrupts)
{
    strand_options options = usual();
    CHECK_PTR(strand_run(&options, stop_by_a_signal, NULL), NULL);
    CHECK_PTR(e, NULL);
}

TEST(a_run_that_has_ended_says_so)
{
    strand_options options = usual();
    CHECK_PTR(strand_run(&options, get_run, &seen.run), &seen.run);
    CHECK_EQ(strand_run_stop(seen.run, 0, NULL), -ESHUTDOWN);
}

static void *stop_the_other(void *arg)
{
    CHECK_EQ(strand_run_stop(*(strand_run_handle *)arg, 0, "from another run"), 0);
    return arg;
}

static void *be_stopped_by_another_run(void *arg)
{
    strand_options options = test_options();
    seen.run = strand_run_self();
    test_set_own_threads(&options);
    CHECK_PTR(strand_run(&options, stop_the_other, &seen.run), &seen.run);
    return have_three_work(arg);
}

TEST_REAL(a_strand_of_another_run_may_stop_it)
{
    strand_options options = usual();
    CHECK_PTR(strand_run(&options, be_stopped_by_another_run, NULL), NULL);
    CHECK_PTR(e, NULL);
}

static void *compute_until_stopped(void *arg)
{
    struct sigaction action = {.sa_handler = on_signal};
    seen.run = strand_run_self();
    seen.drain = INT64_MAX;
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    /* To this thread: TSan keeps a handler back until its thread makes a call that TSan knows, and an idle thread of
     * the pool makes none. */
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event._sigev_un._tid = gettid();
    timer_t timer;
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    CHECK_EQ(timer_settime(timer, 0, &(struct itimerspec){.it_value.tv_sec = 1}, NULL), 0);
    while (!strand_stopping())
        if (TEST_TSAN)
            usleep(1);
    CHECK_EQ(timer_delete(timer), 0);
    return arg;
}

TEST_REAL(a_strand_that_computes_sees_that_the_run_is_stopped)
{
    strand_options options = usual();
    CHECK_PTR(strand_run(&options, compute_until_stopped, &options), &options);
    CHECK_PTR(e, NULL);
}

TEST(a_handle_of_no_run_stops_nothing)
{
    strand_fibre fibre = {{0x1000, UINT64_MAX}};
    strand_run_handle run;
    CHECK_EQ(strand_run_stop((strand_run_handle){{0}}, 0, NULL), -ESHUTDOWN);
    memcpy(&run, &fibre, sizeof run);
    CHECK_EQ(strand_run_stop(run, 0, NULL), -ESHUTDOWN);
}

/* ---- at any moment --------------------------------------------------------------------------------- */

static void *stop_a_few_times(void *arg)
{
    for (int i = 0; i < 3; i++) {
        int error = strand_run_stop(seen.run, (2 - i) * STRAND_US, NULL);
        CHECK(error == 0 || error == -ESHUTDOWN);
    }
    return arg;
}

static void *end_meanwhile(void *arg)
{
    STRAND_SCOPE(scope);
    seen.run = strand_run_self();
    CHECK_EQ(strand_sim_thread(stop_a_few_times, NULL), 0);
    strand child = strand_spawn(scope, accept_until_stopped, arg);
    strand_join(child);
    return arg;
}

TEST(a_run_may_end_by_itself_while_it_is_stopped)
{
    for (long i = 0; i < test_scale(100); i++) {
        strand_options options = usual();
        strand_run(&options, end_meanwhile, &options);
        CHECK_PTR(e, NULL);
    }
}
