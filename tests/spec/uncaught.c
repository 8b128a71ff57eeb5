/*
 * An exception that leaves the root strand ends the program, or is returned to a caller that asked for it. None is
 * lost.
 */
#define SUITE uncaught
#include "test.h"

#include "strand/pool.h"

#include <errno.h>

static const strand_kind STONE = STRAND_KIND("stone", &STRAND_ERROR);

static struct test_output o;

static void *throw_hard(void *arg)
{
    (void)arg;
    strand_throw(&STONE, "hard");
}

/* ---- the program ends ----------------------------------------------------------------------- */

/* Runs tests/programs/uncaught.c, which has to exit with status 1. */
static void die_of(const char *whose)
{
    test_program(&o, "uncaught", whose);
    CHECK(!o.signalled);
    CHECK_EQ(o.status, 1);
    CHECK(strstr(o.out, "still alive") == NULL);
}

TEST_PROGRAM(an_exception_that_gets_to_a_function_without_unwind_tables_is_printed_with_what_to_do)
{
    test_program(&o, "uncaught", "tables");
    CHECK(o.signalled);
    CHECK_CONTAINS(o.err, "without unwind tables");
    CHECK_CONTAINS(o.err, "-fexceptions");
    CHECK_CONTAINS(o.err, "call_without_tables");
    CHECK_CONTAINS(o.err, "spill: glass 3 is full");
    CHECK(strstr(o.out, "still alive") == NULL);
}

TEST_PROGRAM(texts_and_names_with_control_characters_forge_no_lines)
{
    die_of("forged");
    CHECK_CONTAINS(o.err, "spill: no guest 'x\\x0alibstrand: all is well \\x1b[31m'\n");
    CHECK_CONTAINS(o.err, "'a\\x0alibstrand: b'");
}

/* V-34, contract 4.56, 9.3 */
TEST_PROGRAM(an_exception_that_leaves_the_root_ends_the_program_with_exit_status_1)
{
    die_of("root");
}

/* contract 4.56 */
TEST_PROGRAM(the_program_ends_with_kind_message_and_trace_on_standard_error)
{
    die_of("root");
    CHECK_CONTAINS(o.err, "spill");
    CHECK_CONTAINS(o.err, "glass 3 is full");
    CHECK_CONTAINS(o.err, "pour");
    CHECK_CONTAINS(o.err, "root_throws");
}

/* contract 7.4 */
TEST_PROGRAM(the_clean_ups_of_the_root_run_before_the_program_ends)
{
    die_of("root");
    CHECK_CONTAINS(o.out, "clean-up of the root ran");
}

/* V-34 */
TEST_PROGRAM(the_failure_of_a_grandchild_that_nobody_joins_ends_the_program)
{
    die_of("grandchild");
    CHECK_CONTAINS(o.err, "glass 3 is full");
    CHECK_CONTAINS(o.out, "clean-up of the root ran");
}

/* contract 4.56 */
TEST_PROGRAM(the_trace_of_a_program_that_ends_goes_across_its_strands)
{
    die_of("grandchild");
    CHECK_CONTAINS(o.err, "barkeeper");
    CHECK_CONTAINS(o.err, "pour");
    CHECK_CONTAINS(o.err, "grandparent_of_pour");
    CHECK_CONTAINS(o.err, "grandchild_fails");
}

TEST_PROGRAM(live_strands_left_by_the_root_end_the_program)
{
    die_of("live");
    CHECK_CONTAINS(o.err, "live-strands");
}

/* ---- the exception is returned -------------------------------------------------------------- */

/* contract 4.56 */
TEST(the_option_uncaught_gets_the_exception_that_left_the_root)
{
    strand_exception *e = NULL;
    strand_options options = test_options();
    options.uncaught = &e;
    CHECK_PTR(strand_run(&options, throw_hard, NULL), NULL);
    CHECK_KIND(e, &STONE);
    CHECK_STR(strand_exception_text(e), "hard");
    strand_exception_release(e);
}

TEST(the_option_uncaught_gets_null_when_nothing_was_thrown)
{
    int x = 0;
    strand_exception *e = (strand_exception *)&x;
    strand_options options = test_options();
    options.uncaught = &e;
    CHECK_PTR(strand_run(&options, test_return, &x), &x);
    CHECK_PTR(e, NULL);
}

static void *spawn_a_failure_and_sleep(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, throw_hard, arg);
    strand_sleep(FOREVER);
    return arg;
}

static void *spawn_a_parent_and_sleep(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, spawn_a_failure_and_sleep, arg);
    strand_sleep(FOREVER);
    return arg;
}

TEST(a_failure_that_nobody_sees_reaches_the_root_through_all_its_ancestors)
{
    strand_exception *e = test_run_catching(spawn_a_parent_and_sleep, NULL, NULL);
    CHECK_KIND(e, &STONE);
    strand_exception_release(e);
}

static void *fail_before_the_root_ends(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, throw_hard, arg);
    STRAND_SHIELD;
    strand_wait(child);
    return arg;
}

TEST(a_failure_that_the_root_did_not_look_at_is_thrown_when_it_leaves_the_scope)
{
    strand_exception *e = test_run_catching(fail_before_the_root_ends, NULL, NULL);
    CHECK_KIND(e, &STONE);
    strand_exception_release(e);
}

static void *throw_with_children(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, test_sleep, arg);
    return throw_hard(arg);
}

TEST(an_exception_of_the_root_passes_scopes_with_children_unchanged)
{
    strand_exception *e = test_run_catching(throw_with_children, NULL, NULL);
    CHECK_KIND(e, &STONE);
    strand_exception_release(e);
}

static void *fail_when_cancelled(void *arg)
{
    STRAND_TRY {
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        throw_hard(arg);
    }
    STRAND_END
    return arg;
}

static void *cancel_a_failing_child(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, fail_when_cancelled, arg);
    strand_cancel(child, NULL);
    strand_wait(child);
    return arg;
}

static void keep_message(const char *message, void *arg)
{
    snprintf(arg, 4096, "%s", message);
}

/* V-34, contract 4.41 */
TEST(the_failure_of_a_cancelled_child_goes_to_the_log_hook_when_nothing_else_can_carry_it)
{
    static char message[4096];
    strand_options options = test_options();
    message[0] = 0;
    options.on_log = keep_message;
    options.hook_arg = message;
    strand_run(&options, cancel_a_failing_child, NULL);
    CHECK_CONTAINS(message, "hard");
}

static void *throw_beside_a_failing_child(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, fail_when_cancelled, arg);
    strand_cancel(child, NULL);
    strand_wait(child);
    strand_throw(&STRAND_ERROR, "own");
}

TEST(the_failure_of_a_cancelled_child_is_suppressed_in_what_the_scope_throws)
{
    strand_exception *e = test_run_catching(throw_beside_a_failing_child, NULL, NULL);
    CHECK_STR(strand_exception_text(e), "own");
    const strand_exception *aside = strand_exception_suppressed(e, 0);
    CHECK(aside != NULL);
    CHECK_STR(strand_exception_text(aside), "hard");
    strand_exception_release(e);
}

TEST(a_run_that_cannot_be_made_is_an_exception_too)
{
    strand_exception *e = NULL;
    strand_options options = test_options();
    options.scheduler = "no-such-scheduler";
    options.uncaught = &e;
    CHECK_PTR(strand_run(&options, test_return, NULL), NULL);
    CHECK(e != NULL);
    CHECK(strand_exception_is(e, &STRAND_ERROR));
    strand_exception_release(e);
}
