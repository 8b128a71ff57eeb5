/*
 * Forks. In the child the run of the parent is dead, and says so; the parent goes on. The cases are those of
 * tests/programs/forks.c and fork_waits.c.
 */
#define SUITE fork
#include "test.h"

#include <signal.h>

static struct test_output o;

static void add_option(const char *variable, const char *option)
{
    char options[1024];
    const char *before = getenv(variable);
    if (before && strstr(before, option))
        return;
    snprintf(options, sizeof options, "%s:%s", before ? before : "", option);
    setenv(variable, options, 1);
}

/* TSan ends a child that makes threads, unless it is asked not to. LeakSanitizer does not see what only strands of the
 * run know, in whose middle the child ends. */
static void program_that_forks(const char *program, const char *name)
{
    add_option("TSAN_OPTIONS", "die_after_fork=0");
    add_option("ASAN_OPTIONS", "detect_leaks=0");
    test_program(&o, program, name);
    CHECK(!o.signalled);
    CHECK_EQ(o.status, 0);
    CHECK_CONTAINS(o.out, "parent: goes on 10");
}

static void fork_case(const char *name)
{
    program_that_forks("forks", name);
}

/* The child ends by a report that names the function, and says why. */
static void dies(const char *name, const char *function)
{
    char report[128];
    fork_case(name);
    snprintf(report, sizeof report, "child: signal %d\n", SIGABRT);
    CHECK_CONTAINS(o.out, report);
    snprintf(report, sizeof report, "misuse of %s: this process is the child of a fork", function);
    CHECK_CONTAINS(o.err, report);
}

static void lives(const char *name, int status)
{
    char report[128];
    fork_case(name);
    snprintf(report, sizeof report, "child: exit %d\n", status);
    CHECK_CONTAINS(o.out, report);
    CHECK(strstr(o.err, "misuse") == NULL);
}

/* ---- the parent's run ----------------------------------------------------------------------- */

/* contract 9.7 */
TEST_PROGRAM(in_the_child_of_a_strand_every_function_of_its_run_says_that_it_has_stayed_in_the_parent)
{
    dies("root:yield", "strand_yield");
    dies("child:yield", "strand_yield");
    dies("guest:yield", "strand_yield");
    dies("root:throw", "strand_throw");
    dies("root:open", "STRAND_SCOPE");
    dies("child:cancel", "strand_cancel");
    dies("seed_child:yield", "strand_yield");
}

TEST_PROGRAM(the_hook_of_the_run_gets_the_forking_strand_in_the_child)
{
    dies("root:yield", "strand_yield");
    CHECK_CONTAINS(o.out, "hook: strand_yield; strand 'root' #");
    CHECK_CONTAINS(o.out, "has forked");
}

TEST_PROGRAM(the_child_of_a_strand_can_not_return_from_its_function)
{
    dies("child:return", "strand_fn");
    dies("guest:return", "strand_fn");
    dies("seed_child:return", "strand_fn");
}

TEST_PROGRAM(the_child_of_a_strand_can_not_leave_its_blocks)
{
    static const char *const blocks[][2] = {
        {"block:scope", "STRAND_SCOPE"},
        {"block:children", "STRAND_SCOPE"},
        {"block:try", "STRAND_TRY"},
        {"block:shield", "STRAND_SHIELD"},
        {"block:deadline", "STRAND_DEADLINE"},
        {"block:section", "STRAND_NO_SUSPEND"},
        {"block:local", "STRAND_LOCAL"},
        {"block:locked", "STRAND_LOCKED"},
        {"block:limit", "STRAND_LIMIT_PERMIT"},
        {"block:monitor", "STRAND_MONITOR_ENTER"},
        {"block:watching", "STRAND_SIGNALS"},
        {"once:return", "strand_once_run"},
        {"unwind:return", "STRAND_TRY"},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        dies(blocks[i][0], blocks[i][1]);
}

TEST_PROGRAM(the_child_of_a_function_that_the_library_has_called_does_not_come_back_into_it)
{
    dies("offload:return", "strand_offload");
    dies("played:return", "strand_sim_thread");
    dies("seed_played:return", "strand_sim_thread");
    dies("dropped:return", "strand_chan_attr.drop");
    dies("seed_dropped:return", "strand_chan_attr.drop");
    dies("result:return", "strand_attr.drop");
    dies("payload:return", "strand_throw_info.payload_free");
    dies("handler:return", "fork");
#if !TEST_TSAN /* which keeps the signal back while a thread waits by a futex */
    dies("crew:return", "fork");
#endif
}

TEST_PROGRAM(the_child_of_a_handler_does_not_stand_still_for_a_dump_of_the_parents)
{
    fork_case("dumps:return");
    CHECK_EQ(test_count(o.out, "child: signal 6\n"), 40);
}

TEST_PROGRAM(the_child_of_a_handler_does_not_begin_a_wait_for_threads_of_the_parent)
{
    static const char *const waits[] = {"hold", "sleep", "poll", "loader"};
    size_t count = sizeof waits / sizeof *waits - (TEST_TSAN || TEST_ASAN); /* which call the loader themselves */
    for (size_t i = 0; i < count; i++) {
        program_that_forks("fork_waits", waits[i]);
        CHECK_CONTAINS(o.out, "child: signal 6\n");
        CHECK_CONTAINS(o.err, "misuse of fork: this process is the child of a fork");
    }
}

/* The dump must not wait for a fork that waits for the caller. */
TEST_PROGRAM(a_fork_that_waits_for_a_lock_of_the_program_does_not_keep_its_holder_from_a_dump)
{
    fork_case("dump:_exit");
    CHECK_EQ(test_count(o.out, "child: exit 4\n"), 40);
}

TEST_PROGRAM(what_any_thread_may_call_reports_to_the_child_that_nothing_is_there)
{
    lives("root:any", 0);
    lives("plain:any", 0);
    lives("offload:any", 0);
    lives("driver:any", 0);
}

/* ---- what the child can do ------------------------------------------------------------------ */

/* contract 9.7 */
TEST_PROGRAM(the_child_ends_and_executes_as_if_there_had_been_no_run)
{
    lives("root:_exit", 4);
    lives("root:exit", 3);
    lives("seed_root:exit", 3);
    lives("root:exec", 0);
    lives("offload:exec", 0);
    lives("handler:_exit", 4);
#if !TEST_TSAN /* which does not bear that the child's one thread ends by returning */
    lives("plain:return", 0);
#endif
}

TEST_PROGRAM(in_the_child_signals_do_what_they_did_before_the_run)
{
    lives("root:signals", 0);
    lives("plain:signals", 0);
    lives("seed_root:signals", 0);
}

/* contract 9.7 */
TEST_PROGRAM(strand_run_works_in_the_child_wherever_that_comes_from)
{
    static const char *const from[] = {"root",  "child", "guest",     "offload", "plain",
                                       "after", "once",  "seed_root", "unwind",  "driver"};
    char name[64];
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        snprintf(name, sizeof name, "%s:run", from[i]);
        lives(name, 0);
    }
}

TEST_PROGRAM(a_run_of_the_child_has_whatever_options_it_is_given)
{
    static const char *const what[] = {"run_own", "run_four", "run_seed"}, *const from[] = {"child", "plain", "after"};
    char name[64];
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            snprintf(name, sizeof name, "%s:%s", from[i], what[k]);
            lives(name, 0);
        }
}

/* contract 9.7 */
TEST_PROGRAM(a_handle_of_the_parents_run_is_one_of_another_run_to_the_childs)
{
    fork_case("root:run_handle");
    CHECK_CONTAINS(o.err, "misuse of strand_cancel: the strand belongs to another run");
}

/* Other threads allocate, throw, switch and wake each other at that moment. */
TEST_PROGRAM(a_run_on_several_threads_forks_again_and_again)
{
    fork_case("busy:yield");
    CHECK_EQ(test_count(o.out, "child: signal"), 40);
#if !TEST_ASAN /* in a child ASan's malloc may wait for a thread of the parent's */
    fork_case("busy:run");
    CHECK_EQ(test_count(o.out, "child: exit 0\n"), 40);
    fork_case("busy:fork");
    CHECK_EQ(test_count(o.out, "child: exit 0\n"), 40);
#endif
}
