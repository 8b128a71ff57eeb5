/*
 * A C++ runtime that comes in the middle of a run. Each case is a run of tests/programs/late_cxx.c.
 */
#define SUITE cxx_late

#include "test.h"

static void load_late(const char *how)
{
    static struct test_output o;
    test_program(&o, "late_cxx", how);
    CHECK_CONTAINS(o.out, "0 wrong");
    CHECK_EQ(o.status, 0);
}

TEST_PROGRAM(handlers_of_a_cxx_runtime_that_is_loaded_in_a_run_are_each_strands_own)
{
    load_late("1");
}

TEST_PROGRAM(handlers_of_a_cxx_runtime_that_is_loaded_in_a_run_of_several_threads_are_each_strands_own)
{
    load_late("3");
}

TEST_PROGRAM(handlers_of_a_cxx_runtime_that_is_loaded_in_a_run_are_each_strands_own_on_a_shared_fibre)
{
    load_late("fibre");
}

TEST_PROGRAM(a_deadline_counts_in_a_destructor_that_is_the_first_use_of_a_cxx_runtime)
{
    load_late("deadline");
}

TEST_PROGRAM(a_destructor_that_is_the_first_use_of_a_cxx_runtime_is_not_interrupted)
{
    load_late("cancelled");
}
