/*
 * Misuse of pools is reported with the function, what was done and where the pool was opened, after the hook; then the
 * program aborts. Each case is a run of tests/programs/pool_misuse.c.
 */
#define SUITE pool_misuse
#include "test.h"

#include <signal.h>

static struct test_output o;

/* Runs the case, in which a plain thread does something wrong; it has to abort with a report that names function, and
 * what was wrong. */
static void misuse_by_a_thread(const char *name, const char *function, const char *what)
{
    test_program(&o, "pool_misuse", name);
    CHECK(strstr(o.out, "still alive") == NULL);
    CHECK(o.signalled);
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, function);
    CHECK_CONTAINS(o.err, what);
}

/* The same of a strand, whose run's hook is told. */
static void misuse(const char *name, const char *function, const char *what)
{
    misuse_by_a_thread(name, function, what);
    CHECK_CONTAINS(o.out, "hook told: function=");
}

/* The same of a pool, whose opening is named. */
static void misuse_of_pool(const char *name, const char *function, const char *what)
{
    misuse(name, function, what);
    CHECK_CONTAINS(o.out, "made=the pool 'mine' was opened in open_it_here");
}

/* V-11, contract 2.14 */
TEST_PROGRAM(a_pool_that_is_closed_by_its_own_strand_or_below_one_is_misuse)
{
    misuse_of_pool("close_own", "strand_pool_close", "wait for itself");
    misuse_of_pool("close_below", "strand_pool_close", "wait for itself");
}

TEST_PROGRAM(closing_the_first_pool_is_misuse)
{
    misuse("close_first", "strand_pool_close", "ends with the run");
}

TEST_PROGRAM(the_end_of_a_pool_in_a_no_suspend_section_is_misuse)
{
    misuse("close_in_a_section", "strand_pool_close", "no-suspend section");
    misuse_of_pool("leave_in_a_section", "STRAND_SCOPE", "waits for its end");
}

TEST_PROGRAM(a_handle_that_is_stale_or_of_something_else_is_misuse)
{
    misuse_of_pool("resize_stale", "strand_pool_resize", "its scope has been left");
    misuse_of_pool("close_stale", "strand_pool_close", "its scope has been left");
    misuse("close_nothing", "strand_pool_close", "not a pool's");
    misuse("resize_a_fibre", "strand_pool_resize", "not a pool's");
}

/* V-02 */
TEST_PROGRAM(a_pool_of_another_run_is_misuse)
{
    misuse("resize_of_another_run", "strand_pool_resize", "another run");
}

/* S-29, A-11 */
TEST_PROGRAM(what_no_pool_can_be_is_misuse)
{
    misuse("open_with_no_size", "strand_pool_open", "size is 0");
    misuse("open_with_a_million_threads", "strand_pool_open", "not 1 to 1024");
    misuse("open_with_fewer_than_no_cpus", "strand_pool_open", "cpus_count is -1");
    misuse("open_with_cpus_but_no_count", "strand_pool_open", "cpus_count is 0");
    misuse("open_that_spins_for_less_than_no_time", "strand_pool_open", "spin_us is -5");
    misuse("open_with_an_unknown_scheduler", "strand_pool_open", "'clairvoyant'");
    misuse("open_with_an_unknown_balance", "strand_pool_open", "balance is 77");
    misuse("resize_to_none", "strand_pool_resize", "0 threads");
    misuse("open_two_dedicated", "strand_pool_open", "the scheduler 'dedicated' has one");
    misuse("ask_without_a_size", "strand_pool_info_get", "size is 0");
}

TEST_PROGRAM(a_scheduler_that_holds_back_its_last_task_is_misuse)
{
    misuse("hold_back_a_strand", "strand_scheduler.pick", "'miser' has given out no task");
}

TEST_PROGRAM(opening_a_pool_in_the_plain_scope_of_another_strand_is_misuse)
{
    misuse("open_for_another", "strand_pool_open", "only the strand that opened a scope");
}

/* S-38 */
TEST_PROGRAM(pinning_to_what_is_no_thread_is_misuse)
{
    misuse("pin_to_nonsense", "strand_spawn_with", "attr.pin is -7");
    misuse("pin_here_elsewhere", "strand_spawn_with", "another than the caller's");
    misuse("pin_a_guest", "strand_spawn_with", "attr.pin can't be chosen");
    misuse("pool_for_a_guest", "strand_spawn_with", "attr.pool can't be chosen");
    misuse("rank_a_guest", "strand_spawn_with", "attr.rank can't be chosen");
}

TEST_PROGRAM(a_pool_that_is_driven_by_a_strand_is_misuse)
{
    misuse("drive_by_a_strand", "strand_pool_drive", "a strand can't drive a pool");
    misuse("descriptor_for_a_strand", "strand_pool_fd", "a strand can't drive a pool");
    misuse("drive_by_a_strand_of_another_run", "strand_pool_drive", "a strand can't drive a pool");
}

TEST_PROGRAM(driving_what_has_threads_of_its_own_is_misuse)
{
    misuse_by_a_thread("drive_what_has_threads", "strand_pool_drive", "its scheduler is 'stealing'");
    CHECK_CONTAINS(o.err, "the pool 'mine' was opened in open_it_here");
    misuse_by_a_thread("descriptor_of_what_has_threads", "strand_pool_fd", "its scheduler is 'stealing'");
    misuse_by_a_thread("drive_the_first", "strand_pool_drive", "which strand_run itself drives");
    misuse("resize_what_is_driven", "strand_pool_resize", "the scheduler 'current' has one thread");
}

TEST_PROGRAM(driving_what_is_no_pool_or_in_no_known_way_is_misuse)
{
    misuse_by_a_thread("drive_nothing", "strand_pool_drive", "not a pool's");
    misuse_by_a_thread("drive_a_fibre", "strand_pool_drive", "not a pool's");
    misuse_by_a_thread("drive_with_flags", "strand_pool_drive", "the flags 0x6 are invalid");
}

TEST_PROGRAM(asking_what_keeps_a_pool_busy_that_is_gone_is_misuse)
{
    misuse_of_pool("ask_of_a_stale_one", "strand_busy_print", "its scope has been left");
}

TEST_PROGRAM(asking_of_one_pool_from_a_plain_thread_is_misuse)
{
    test_program(&o, "pool_misuse", "ask_of_one_from_outside"); /* a plain thread is of no run that has a hook */
    CHECK(o.signalled);
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, "strand_busy_print: a plain thread can ask for all pools only");
}
