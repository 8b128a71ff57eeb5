/*
 * NULL where a public function needs something is misuse, and never a fault. The table of calls is
 * tests/programs/nulls.c.
 */
#define SUITE nulls
#include "test.h"

#include <signal.h>

/* The call has to abort with a report that names its function. */
static void is_misuse(int number, const char *call)
{
    static struct test_output o;
    char arg[16], report[128];
    snprintf(arg, sizeof arg, "%d", number);
    snprintf(report, sizeof report, "misuse of %.*s: ", (int)strcspn(call, "("), call);
    test_program(&o, "nulls", arg);
    if (!o.signalled || o.status != SIGABRT || !strstr(o.err, report))
        CHECK_FAIL("%s: status %d, not by '%s': %s", call, o.status, report, o.err);
}

TEST_PROGRAM(null_where_there_has_to_be_something_is_misuse)
{
    static struct test_output calls;
    int number = 0;
    test_program(&calls, "nulls", NULL);
    for (char *next, *call = calls.out; *call; call = next, number++) {
        next = call + strcspn(call, "\n");
        if (*next)
            *next++ = 0;
        is_misuse(number, call);
    }
    CHECK(number > 80);
}
