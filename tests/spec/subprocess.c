/*
 * Several runs in one process: what one has made is no other's. The cases are those of tests/programs/foreign.c.
 */
#define SUITE subprocess
#include "test.h"

#include <signal.h>

static struct test_output o;

/* Calls use(case) for each. */
static void each_case(void (*use)(const char *name))
{
    static struct test_output list;
    test_program(&list, "foreign", NULL);
    int count = 0;
    for (char *name = strtok(list.out, "\n"); name; name = strtok(NULL, "\n"), count++)
        use(name);
    CHECK(count > 45);
}

/* The report names the function, which is the first word of the case. */
static void check_misuse(const char *name)
{
    char report[64];
    snprintf(report, sizeof report, "misuse of %.*s:", (int)strcspn(name, " "), name);
    CHECK(o.signalled);
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, report);
}

static void use_in_another_run(const char *name)
{
    test_program(&o, "foreign", name);
    check_misuse(name);
    CHECK_CONTAINS(o.err, "another run");
}

/* V-01, contract 1.2 */
TEST_PROGRAM(a_handle_of_another_run_is_misuse_that_says_so_by_whatever_function)
{
    each_case(use_in_another_run);
}

/* What is defined of a handle that has gone stale. */
static const struct {
    const char *name, *said;
} defined[] = {
    {"strand_wait", "returned 0"},
    {"strand_ended", "returned 1"},
    {"strand_cancel", "returned 0"},
    {"strand_hand_off to", "returned -22"}, /* -EINVAL */
    {"strand_select end", "returned 0"},
    {"strand_scope_cancel open", "returned 0"},
    {"strand_scope_count open", "returned 0"},
    {"strand_spawn open", "an open scope that has been left"},
    {"strand_chan_open", "an open scope that has been left"},
};

static void use_after_its_run(const char *name)
{
    char ended[64];
    if (strcmp(name, "strand_mutex_lock") == 0 || strcmp(name, "STRAND_MONITOR_ENTER") == 0)
        return; /* memory of the user's that nobody is in */
    snprintf(ended, sizeof ended, "ended:%s", name);
    test_program(&o, "foreign", ended);
    for (size_t i = 0; i < sizeof defined / sizeof *defined; i++) {
        if (strcmp(name, defined[i].name) != 0)
            continue;
        CHECK(!o.signalled);
        CHECK(strstr(o.out, defined[i].said) || strstr(o.err, defined[i].said));
        return;
    }
    check_misuse(name);
}

/* V-01, contract 1.2 */
TEST_PROGRAM(a_handle_of_a_run_that_has_ended_is_as_stale_as_any)
{
    each_case(use_after_its_run);
}
