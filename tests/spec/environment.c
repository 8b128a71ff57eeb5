/*
 * What the environment may decide, and for whom: a program that runs with more rights than its caller has is not told
 * what to do by the caller's environment.
 */
#define SUITE environment
#include "test.h"

#define SKIPPED 77 /* exit status of a helper program that can't do what it is for */

static struct test_output o;

/* Runs tests/programs/environment.c. False, and said so, if it can't be run like that. */
static bool runs(const char *how)
{
    test_program(&o, "environment", how);
    if (o.status == SKIPPED)
        fputs("not tested: this user can't run a program with another group\n", stderr);
    else
        CHECK_EQ(o.status, 0);
    return o.status == 0;
}

/* contract 9.13 */
TEST_PROGRAM(the_environment_of_a_program_gives_it_a_seed_and_limits_its_threads)
{
    setenv("STRAND_THREADS", "1", 1);
    setenv("STRAND_SEED", "5", 1);
    CHECK(runs(NULL));
    CHECK_STR(o.out, "1 threads, a seed\n");
    CHECK_CONTAINS(o.err, "libstrand: seed 5,");
}

/* contract 9.13 */
TEST_PROGRAM(the_environment_gives_no_seed_to_a_program_that_runs_with_rights_of_its_own)
{
    setenv("STRAND_SEED", "5", 1);
    if (!runs("secure"))
        return;
    CHECK_CONTAINS(o.out, "no seed");
    CHECK(strstr(o.err, "libstrand") == NULL);
}

/* contract 9.13 */
TEST_REAL(the_environment_does_not_limit_the_threads_of_a_program_that_runs_with_rights_of_its_own)
{
    char text[32];
    unsetenv("STRAND_THREADS");
    snprintf(text, sizeof text, "%d threads", strand_threads_allowed());
    setenv("STRAND_THREADS", "1", 1);
    if (runs("secure"))
        CHECK_CONTAINS(o.out, text);
}

/* An empty one is none; a run with what is no number is not made. */
TEST_PROGRAM(a_seed_of_the_environment_that_is_no_number_is_refused)
{
    setenv("STRAND_SEED", "", 1);
    CHECK(runs(NULL));
    CHECK_CONTAINS(o.out, "no seed");
    static const char *const wrong[] = {"abc", "1x", "-1", " 1", "99999999999999999999", "0x10000000000000000"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("STRAND_SEED", wrong[i], 1);
        test_program(&o, "environment", NULL);
        CHECK_EQ(o.status, 1);
        CHECK_CONTAINS(o.err, "STRAND_SEED");
    }
    setenv("STRAND_SEED", "0x10", 1);
    CHECK(runs(NULL));
    CHECK_CONTAINS(o.err, "libstrand: seed 16,");
    setenv("STRAND_SEED", "010", 1);
    CHECK(runs(NULL));
    CHECK_CONTAINS(o.err, "libstrand: seed 10,");
    setenv("STRAND_SEED", "08", 1);
    CHECK(runs(NULL));
    CHECK_CONTAINS(o.err, "libstrand: seed 8,");
    setenv("STRAND_SEED", "18446744073709551615", 1);
    CHECK(runs(NULL));
    CHECK_CONTAINS(o.err, "libstrand: seed 18446744073709551615,");
}
