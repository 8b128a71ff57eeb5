/*
 * Handles that were damaged: whatever bits they have, a call with one reports misuse, or that the object is gone. The
 * calls are tests/programs/handles.c.
 */
#define SUITE handles
#include "test.h"

TEST_PROGRAM(a_call_with_a_damaged_handle_never_faults) /* contract 4, misuse */
{
    static struct test_output calls, o;
    int number = 0;
    test_program(&calls, "handles", NULL);
    for (char *next, *call = calls.out; *call; call = next, number++) {
        next = call + strcspn(call, "\n");
        if (*next)
            *next++ = 0;
        test_program(&o, "handles", call);
        if (o.signalled || o.status != 0)
            CHECK_FAIL("%s: status %d: %s%s", call, o.status, o.out, o.err);
    }
    CHECK(number > 30);
}
