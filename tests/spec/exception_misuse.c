/*
 * Misuse of exceptions, and of functions that the library calls in the middle of something: reported by name, with the
 * rule. Each case is a run of tests/programs/exception_misuse.c.
 */
#define SUITE exception_misuse
#include "test.h"

#include <signal.h>

static struct test_output o;

static void misuse(const char *name, const char *function, const char *rule)
{
    char report[64];
    snprintf(report, sizeof report, "misuse of %s:", function);
    test_program(&o, "exception_misuse", name);
    CHECK(o.signalled);
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, report);
    CHECK_CONTAINS(o.err, rule);
}

TEST_PROGRAM(giving_the_reference_of_a_catch_block_away_is_misuse)
{
    misuse("rethrow", "strand_rethrow", "strand_exception_keep gives one");
    misuse("suppress", "strand_suppress", "strand_exception_keep gives one");
    misuse("cause", "strand_throw_with", "strand_exception_keep gives one");
    misuse("release", "strand_exception_release", "belongs to its catch block");
}

TEST_PROGRAM(the_parts_of_an_exception_have_a_size)
{
    misuse("size", "strand_throw_with", "strand_throw_info.size is 0, not sizeof(strand_throw_info)");
}

TEST_PROGRAM(freeing_a_payload_neither_throws_nor_blocks)
{
    misuse("payload_throws", "strand_throw_info.payload_free", "has thrown 'of a function'");
    CHECK_CONTAINS(o.err, "with a payload");
    misuse("payload_blocks", "strand_sleep", "inside strand_throw_info.payload_free");
}

TEST_PROGRAM(dropping_a_result_neither_throws_nor_blocks)
{
    misuse("result_throws", "strand_attr.drop", "has thrown 'of a function'");
    CHECK_CONTAINS(o.err, "was spawned in");
    misuse("result_blocks", "strand_sleep", "inside strand_attr.drop");
}
