/*
 * A sandbox that is entered during a run. What it refuses is done in another way, or the program ends with a message
 * that names the call and what to do.
 */
#define SUITE sandbox
#include "test.h"

#include <signal.h>

static struct test_output o;

static void goes_on_without(const char *call)
{
    test_program(&o, "sandbox", call);
    CHECK(!o.signalled);
    if (o.status == 77)
        return;
    CHECK_EQ(o.status, 0);
    CHECK_STR(o.out, "fine\n");
}

TEST_PROGRAM(without_a_sandbox_the_program_is_fine)
{
    goes_on_without("nothing");
}

TEST_PROGRAM(descriptors_are_read_and_written_where_the_sandbox_refuses_the_calls_that_do_not_wait)
{
    goes_on_without("preadv2");
    goes_on_without("pwritev2");
}

TEST_PROGRAM(files_are_read_and_written_where_the_sandbox_forbids_io_uring)
{
    goes_on_without("io_uring_setup");
    goes_on_without("io_uring_enter");
}

#if !TEST_ASAN && !TEST_TSAN /* their runtimes need the call themselves */
TEST_PROGRAM(memory_that_the_sandbox_does_not_let_go_of_stays_and_the_run_goes_on)
{
    goes_on_without("munmap");
}
#endif

#if !TEST_TSAN /* there the runtime does without membarrier */
static void ends_without(const char *call)
{
    test_program(&o, "sandbox", call);
    if (!o.signalled && o.status == 77)
        return;
    CHECK(o.signalled);
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, "libstrand: the system refuses ");
    CHECK_CONTAINS(o.err, call);
    CHECK_CONTAINS(o.err, "enter it before strand_run");
}

TEST_PROGRAM(a_call_that_the_run_can_not_do_without_ends_the_program_with_a_message)
{
    ends_without("timerfd_settime");
    ends_without("membarrier");
}
#endif

TEST_REAL(without_proc_the_log_says_once_that_deadlocks_are_not_certain)
{
    test_program(&o, "sandbox", "newfstatat");
    if (o.status == 77)
        return;
    CHECK(!o.signalled);
    CHECK_EQ(o.status, 0);
    CHECK_CONTAINS(o.err,
                   "because /proc/self/task can't be read. If there is none, this is a deadlock: the only strand");
}
