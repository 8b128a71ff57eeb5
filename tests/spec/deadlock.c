/*
 * A run that is out of work: a deadlock is an exception in the root strand, or the end of the program, or of the run;
 * and what is none is not taken for one.
 */
#define SUITE deadlock
#include "test.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

#include "strand/sim.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define NAP (20 * STRAND_MS)

static char logged[8192];
static _Atomic int lines_logged;

static void keep_log(const char *message, void *arg)
{
    (void)arg;
    size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", message);
    lines_logged++;
}

static strand_options that(enum strand_out_of_work what, strand_exception **uncaught)
{
    strand_options options = test_options();
    options.out_of_work = what;
    options.on_log = keep_log;
    options.uncaught = uncaught;
    logged[0] = '\0';
    lines_logged = 0;
    return options;
}

/* The run ends by a deadlock, and its report was logged. */
static void check_deadlock(strand_fn *root, void *arg)
{
    strand_exception *e = NULL;
    strand_options options = that(STRAND_OUT_OF_WORK_THROW, &e);
    CHECK_PTR(strand_run(&options, root, arg), NULL);
    CHECK_KIND(e, &STRAND_DEADLOCK);
    strand_exception_release(e);
    CHECK_CONTAINS(logged, "the run is deadlocked");
}

static void *wait_for_ever(void *arg)
{
    static strand_event never;
    strand_event_wait(&never);
    return arg;
}

/* S-30 */
TEST(a_root_that_no_strand_can_wake_gets_a_deadlock)
{
    check_deadlock(wait_for_ever, NULL);
}

/* ---- cycles ---------------------------------------------------------------------------------- */

static struct {
    strand_mutex mutex[3];
    strand_barrier all;
    _Atomic int unwound;
} ring;

static void count_up(int *mark)
{
    (void)mark;
    ring.unwound++;
}

static void *take_two(void *arg)
{
    int me = (int)(intptr_t)arg;
    int mark __attribute__((cleanup(count_up)));
    (void)mark;
    STRAND_LOCKED(&ring.mutex[me]);
    strand_barrier_wait(&ring.all);
    STRAND_LOCKED(&ring.mutex[(me + 1) % 3]);
    return NULL;
}

static void *make_cycle(void *arg)
{
    STRAND_SCOPE(scope);
    memset(&ring, 0, sizeof ring);
    ring.all = (strand_barrier)STRAND_BARRIER_INIT(3);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, take_two, TEST_PTR(i));
    strand_scope_join(scope);
    return arg;
}

TEST(strands_that_wait_for_each_others_locks_come_down_in_order)
{
    check_deadlock(make_cycle, NULL);
    CHECK_EQ(ring.unwound, 3);
}

static void *catch_and_go_on(void *arg)
{
    for (volatile int i = 0; i < 3; i++) {
        volatile bool caught = false;
        STRAND_TRY {
            make_cycle(NULL);
        }
        STRAND_CATCH(&STRAND_DEADLOCK, e) {
            caught = true;
        }
        STRAND_END
        CHECK(caught);
        CHECK_EQ(ring.unwound, 3);
    }
    strand_sleep(1);
    return arg;
}

/* S-34 */
TEST(the_root_may_catch_a_deadlock_and_get_the_next_one)
{
    strand_exception *e;
    strand_options options = that(STRAND_OUT_OF_WORK_THROW, &e);
    CHECK_PTR(strand_run(&options, catch_and_go_on, &options), &options);
    CHECK_PTR(e, NULL);
}

static void *across(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    memset(&ring, 0, sizeof ring);
    ring.all = (strand_barrier)STRAND_BARRIER_INIT(3);
    for (int i = 0; i < 3; i++)
        strand_spawn_with(scope, STRAND_ATTR(.pool = i ? pool : (strand_pool){{0}}, .pin = i == 2 ? STRAND_PIN(1) : 0),
                          take_two, TEST_PTR(i), 0);
    strand_scope_join(scope);
    return arg;
}

/* S-42 */
TEST(also_if_they_are_in_several_pools)
{
    check_deadlock(across, NULL);
    CHECK_EQ(ring.unwound, 3);
}

TEST(threads_that_look_for_work_just_then_are_held_for_the_report)
{
    long rounds = test_scale(100), not_held = 0;
    for (long i = 0; i < rounds; i++) {
        check_deadlock(across, NULL);
        not_held += test_count(logged, "could not be held");
    }
    CHECK(not_held <= rounds / 10); /* on a busy machine a thread may come to its next step too late */
}

/* ---- what is done instead --------------------------------------------------------------------- */

static void *serve_while_there_is_work(void *arg)
{
    STRAND_SCOPE(scope);
    typedef STRAND_CHAN(int) ints;
    static ints chan;
    (void)arg;
    chan = STRAND_CHAN_OPEN(ints, scope, 0);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, wait_for_ever, NULL);
    strand_sleep(NAP);
    ring.unwound++;
    int value;
    STRAND_IGNORE(STRAND_RECEIVE(chan, &value));
    CHECK(false);
    return NULL;
}

/* S-30, S-31, S-34 */
TEST(a_run_may_end_when_it_is_out_of_work)
{
    strand_exception *e;
    ring.unwound = 0;
    strand_options options = that(STRAND_OUT_OF_WORK_END, &e);
    CHECK_PTR(strand_run(&options, serve_while_there_is_work, NULL), NULL);
    CHECK_PTR(e, NULL);
    CHECK_EQ(ring.unwound, 1);
    CHECK_STR(logged, "");
}

static void *fails_when_cancelled(void *arg)
{
    STRAND_TRY {
        wait_for_ever(NULL);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        CHECK_STR(strand_exception_who(e), "the run itself");
        CHECK_CONTAINS(strand_exception_why(e), "out of work");
        strand_throw(&TEST_ERROR, "on purpose");
    }
    STRAND_END
    return arg;
}

/* S-30 */
TEST(a_failure_on_the_way_out_is_not_lost)
{
    strand_exception *e;
    strand_options options = that(STRAND_OUT_OF_WORK_END, &e);
    CHECK_PTR(strand_run(&options, fails_when_cancelled, NULL), NULL);
    CHECK_KIND(e, &TEST_ERROR);
    strand_exception_release(e);
}

static void check_cycle_reported(enum strand_out_of_work what, strand_fn *root, const char *words)
{
    strand_exception *e;
    strand_options options = that(what, &e);
    CHECK_PTR(strand_run(&options, root, NULL), NULL);
    CHECK_PTR(e, NULL);
    CHECK_EQ(ring.unwound, 3);
    CHECK_EQ(lines_logged, 1);
    CHECK_CONTAINS(logged, "all 4 strands wait, 3 of them for each other: ");
    CHECK_CONTAINS(logged, words);
}

TEST(a_cycle_is_reported_though_the_run_ends)
{
    check_cycle_reported(STRAND_OUT_OF_WORK_END, make_cycle, ", at the end of the run\n");
}

static void *make_cycle_while_stopped(void *arg)
{
    CHECK_EQ(strand_run_stop(strand_run_self(), INT64_MAX, NULL), 0);
    return make_cycle(arg);
}

TEST(a_cycle_is_reported_though_the_run_is_shut_down)
{
    check_cycle_reported(STRAND_OUT_OF_WORK_THROW, make_cycle_while_stopped, ", while the run is shut down\n");
}

static strand_run_handle to_be_stopped;

static void *stop_it_when_it_is_reported(void *arg)
{
    while (!lines_logged)
        usleep(1000);
    CHECK_EQ(strand_run_stop(to_be_stopped, 0, NULL), 0);
    return arg;
}

static void *make_cycle_beside_a_plain_thread(void *arg)
{
    to_be_stopped = strand_run_self();
    return make_cycle(arg);
}

/* It might wake the root, for all that is known; but not those. */
TEST_REAL(a_cycle_is_reported_though_a_plain_thread_might_act_on_the_run)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, stop_it_when_it_is_reported, NULL), 0);
    check_cycle_reported(STRAND_OUT_OF_WORK_AUTO, make_cycle_beside_a_plain_thread,
                         "; a thread outside the run can end this only by stopping the run\n");
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *wait_beside_a_plain_thread(void *arg)
{
    to_be_stopped = strand_run_self();
    return wait_for_ever(arg);
}

/* It takes some seconds, so it is done once for each scheduler. */
TEST_REAL(a_stalled_run_is_logged_although_a_plain_thread_might_act_on_it)
{
    strand_exception *e;
    strand_options options = that(STRAND_OUT_OF_WORK_AUTO, &e);
    pthread_t thread;
    if (options.threads > 1)
        return;
    CHECK_EQ(pthread_create(&thread, NULL, stop_it_when_it_is_reported, NULL), 0);
    CHECK_PTR(strand_run(&options, wait_beside_a_plain_thread, NULL), NULL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_PTR(e, NULL);
    CHECK_EQ(lines_logged, 1);
    CHECK_CONTAINS(logged, "unless a thread from outside acts on the run; none has done so yet");
    CHECK_CONTAINS(logged, "the only strand waits: ");
}

static struct test_output o;

/* S-34 */
TEST_PROGRAM(the_program_ends_if_an_option_says_so_or_the_root_can_not_be_interrupted)
{
    static const char *const cases[] = {"exit", "shielded", "leaving", "cleaning_up", "end_shielded"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_program(&o, "ending", cases[i]);
        CHECK(!o.signalled);
        CHECK_EQ(o.status, EXIT_FAILURE);
        CHECK_CONTAINS(o.err, i == 4 ? "the run is out of work, but can't end" : "the run is deadlocked");
        CHECK_CONTAINS(o.err, "the program ends");
        CHECK_CONTAINS(o.err, "waits for event");
        CHECK_CONTAINS(o.err, " bytes used; ran on thread "); /* the dump */
        CHECK_CONTAINS(o.out, "at exit");
    }
}

TEST_PROGRAM(flags_that_are_none_are_misuse)
{
    test_program(&o, "ending", "flags");
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, "strand_wait_quiet");
    CHECK_CONTAINS(o.err, "the flags 0x4 are invalid");
    test_program(&o, "ending", "run_and_pool");
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, "STRAND_QUIET_RUN");
}

TEST_PROGRAM(a_program_without_other_threads_gets_deadlocks_by_default)
{
    test_program(&o, "ending", "by_itself");
    CHECK_EQ(o.status, EXIT_FAILURE);
    CHECK_CONTAINS(o.err, "the run is deadlocked");
    CHECK_CONTAINS(o.err, "deadlock: ");
    CHECK_CONTAINS(o.out, "unwound");
}

/* ---- what is no deadlock ----------------------------------------------------------------------- */

typedef STRAND_CHAN(int) ints;
static ints chan;
static strand_port port;
static _Atomic int opened;

static void *post_late(void *arg)
{
    while (!opened)
        strand_sim_sleep(NAP / 10);
    for (int i = 0; i < 3; i++) {
        strand_sim_sleep(NAP);
        CHECK_EQ(STRAND_POST(chan, &i), 0);
    }
    return arg;
}

static void *receive_three(void *arg)
{
    STRAND_SCOPE(scope);
    chan = STRAND_CHAN_OPEN(ints, scope, 0);
    opened = 1;
    for (int i = 0, value; i < 3; i++) {
        CHECK_EQ(STRAND_RECEIVE(chan, &value), 0);
        CHECK_EQ(value, i);
    }
    return arg;
}

TEST_REAL(a_plain_thread_may_still_post)
{
    pthread_t thread;
    strand_exception *e;
    strand_options options = that(STRAND_OUT_OF_WORK_AUTO, &e);
    opened = 0;
    CHECK_EQ(pthread_create(&thread, NULL, post_late, NULL), 0);
    CHECK_PTR(strand_run(&options, receive_three, &options), &options);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *receive_from_a_plain_thread(void *arg)
{
    opened = 0;
    CHECK_EQ(strand_sim_thread(post_late, NULL), 0);
    return receive_three(arg);
}

TEST(a_plain_thread_may_still_post_in_a_played_run_too)
{
    strand_exception *e;
    strand_options options = that(STRAND_OUT_OF_WORK_AUTO, &e);
    CHECK_PTR(strand_run(&options, receive_from_a_plain_thread, &options), &options);
}

TEST_PROGRAM(a_pool_that_no_thread_drives_to_its_end_is_reported)
{
    test_program(&o, "ending", "undriven");
    CHECK_EQ(o.status, 0);
    CHECK_CONTAINS(o.err, "pool 'window' is being closed, and no thread is there to drive it to its end");
}

TEST_PROGRAM(ended_threads_and_threads_that_may_still_post_are_distinguished)
{
    test_program(&o, "ending", "ends_later");
    CHECK_EQ(o.status, EXIT_FAILURE);
    CHECK_CONTAINS(o.err, "the run is deadlocked");
    test_program(&o, "ending", "post_and_end");
    CHECK_EQ(o.status, 0);
    CHECK_STR(o.err, "");
    test_program(&o, "ending", "left_call");
    CHECK_EQ(o.status, 0);
    CHECK_STR(o.err, "");
    test_program(&o, "ending", "stopped");
    CHECK_EQ(o.status, 0);
    CHECK_STR(o.err, "");
}

/* Told to end, it does when it has got what it waits for. */
static void *receive_while_it_is_stopped(void *arg)
{
    CHECK_EQ(strand_run_stop(strand_run_self(), 0, NULL), 0);
    STRAND_SHIELD;
    return receive_from_a_plain_thread(arg);
}

TEST(a_plain_thread_may_still_post_to_a_run_that_was_asked_to_end)
{
    static const enum strand_out_of_work ways[] = {STRAND_OUT_OF_WORK_AUTO, STRAND_OUT_OF_WORK_WAIT};
    for (int i = 0; i < 2; i++) {
        strand_exception *e;
        strand_options options = that(ways[i], &e);
        CHECK_PTR(strand_run(&options, receive_while_it_is_stopped, &options), &options);
        CHECK_STR(logged, "");
    }
}

static void *send_late(void *arg)
{
    strand_sim_sleep(NAP);
    CHECK_EQ(strand_port_send(port, "x", 1), 0);
    return arg;
}

static void *nap(void *arg)
{
    strand_sim_sleep(NAP);
    return arg;
}

/* One after the other: each time there is nothing else in the run. */
static void *wait_for_this_and_that(void *arg)
{
    STRAND_SCOPE(scope);
    char byte;
    port = strand_port_open(scope, 1, 1, NULL);
    CHECK_EQ(strand_sim_thread(send_late, NULL), 0);
    CHECK_EQ(strand_port_receive(port, &byte, 1), 1);
    CHECK_EQ(strand_sim_thread(send_late, NULL), 0);
    strand_case message = strand_on_message(port, &byte, 1);
    CHECK_EQ(strand_select(&message, 1, 0), 0);
    strand_sleep(NAP);
    CHECK_PTR(strand_offload(nap, arg), arg);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(NAP));
        wait_for_ever(NULL);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    {
        STRAND_SCOPE(inner);
        strand_pool pool = strand_pool_open(inner, STRAND_POOL_ATTR(.threads = 1));
        strand_join(strand_spawn_with(inner, STRAND_ATTR(.pool = pool), test_return, arg, 0));
        strand_pool_close(pool, NULL);
        strand_crew crew = strand_crew_open(inner, STRAND_CREW_ATTR(.max_threads = 1));
        CHECK_PTR(strand_offload_on(crew, nap, arg), arg);
    }
    return arg;
}

/* S-30 */
TEST(a_wait_for_a_port_a_time_a_call_or_the_end_of_a_pool_is_no_deadlock)
{
    strand_exception *e;
    strand_options options = that(STRAND_OUT_OF_WORK_THROW, &e);
    CHECK_PTR(strand_run(&options, wait_for_this_and_that, &options), &options);
    CHECK_STR(logged, "");
}

static void *wait_for_a_child_that_reads(void *arg)
{
    static int ends[2];
    CHECK_EQ(strand_pipe(ends), 0);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(NAP));
        char byte;
        strand_read(ends[0], &byte, 1);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    strand_close(ends[0]);
    strand_close(ends[1]);
    return arg;
}

/* S-30 */
TEST(a_wait_for_a_descriptor_is_no_deadlock)
{
    strand_exception *e;
    strand_options options = that(STRAND_OUT_OF_WORK_THROW, &e);
    CHECK_PTR(strand_run(&options, wait_for_a_child_that_reads, &options), &options);
}

/* Its threads look for work before there is any. */
/* S-30 */
TEST_REAL(a_run_whose_root_has_not_begun_is_none)
{
    for (long i = 0; i < test_scale(200); i++) {
        strand_exception *e;
        strand_options options = that(STRAND_OUT_OF_WORK_THROW, &e);
        test_set_own_threads(&options);
        CHECK_PTR(strand_run(&options, test_return, &options), &options);
    }
}

/* Many times: a hand-over between threads is no moment of quiet. */
static void *hand_over(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    for (long i = 0; i < test_scale(2000); i++)
        CHECK_PTR(strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool), test_return, arg, 0)), arg);
    return arg;
}

/* S-62 */
TEST(a_strand_that_another_pool_is_about_to_wake_is_no_deadlock)
{
    strand_exception *e;
    strand_options options = that(STRAND_OUT_OF_WORK_THROW, &e);
    CHECK_PTR(strand_run(&options, hand_over, &options), &options);
}
