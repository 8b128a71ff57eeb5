/*
 * Drop functions: a result that nobody takes goes to the function that was given for it at the spawn.
 */
#define SUITE drop
#include "test.h"

static void drop_result(void *result)
{
    test_log("dropped-%d", (int)(intptr_t)result);
}

static strand spawn_droppable(strand_scope scope, strand_fn *fn, void *arg)
{
    return strand_spawn_with(scope, STRAND_ATTR(.drop = drop_result), fn, arg, 0);
}

/* contract 4.11 */
TEST_INSIDE(a_joined_result_is_not_dropped)
{
    {
        STRAND_SCOPE(s);
        CHECK_PTR(strand_join(spawn_droppable(s, test_return, TEST_PTR(1))), TEST_PTR(1));
    }
    CHECK_LOG("");
}

/* contract 4.11 */
TEST_INSIDE(results_go_to_their_drop_functions_when_the_scope_is_joined)
{
    STRAND_SCOPE(s);
    strand first = spawn_droppable(s, test_return, TEST_PTR(1));
    strand_wait(first);
    spawn_droppable(s, test_return, TEST_PTR(2));
    strand_spawn(s, test_return, TEST_PTR(3));
    strand_scope_join(s);
    CHECK(test_log_is("dropped-1 dropped-2") || test_log_is("dropped-2 dropped-1"));
}

TEST_INSIDE(the_result_of_a_cancelled_child_that_nobody_joins_is_dropped)
{
    {
        STRAND_SCOPE(s);
        strand_cancel(spawn_droppable(s, test_return, TEST_PTR(1)), NULL);
    }
    CHECK_LOG("dropped-1");
}

/* contract 4.11 */
TEST_INSIDE(the_result_of_a_child_that_was_left_behind_is_dropped)
{
    STRAND_TRY {
        STRAND_SCOPE(s);
        spawn_droppable(s, test_return, TEST_PTR(1));
    }
    STRAND_CATCH(&STRAND_LIVE_STRANDS, e) {
        test_log("live");
    }
    STRAND_END
    CHECK_LOG("dropped-1 live");
}

TEST_INSIDE(a_child_that_ended_by_an_exception_has_nothing_to_drop)
{
    STRAND_TRY {
        STRAND_SCOPE(s);
        strand_join(spawn_droppable(s, test_throw, NULL));
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("thrown");
    }
    STRAND_END
    CHECK_LOG("thrown");
}

TEST_INSIDE(an_interrupted_child_has_nothing_to_drop)
{
    struct test_child child = {0};
    {
        STRAND_SCOPE(s);
        strand handle = spawn_droppable(s, test_child_blocks, &child);
        test_yield_until(&child.started, 1);
        strand_cancel(handle, NULL);
    }
    CHECK_LOG("");
}

static void count_drop(void *counter)
{
    atomic_fetch_add((_Atomic int *)counter, 1);
}

static void *return_maybe(void *counter)
{
    strand_checkpoint();
    return counter;
}

/* Joined or dropped, never both and never neither; an interrupted one has no result. */
/* contract 4.11 */
TEST_RACE(a_result_that_races_with_a_cancel_is_taken_once)
{
    for (long i = 0; i < test_scale(2000); i++) {
        _Atomic int drops = 0;
        volatile int joined = 0, interrupted = 0;
        {
            STRAND_SCOPE(s);
            strand taken = strand_spawn_with(s, STRAND_ATTR(.drop = count_drop), return_maybe, &drops, 0);
            strand_spawn_with(s, STRAND_ATTR(.drop = count_drop), test_return, &drops, 0);
            strand_scope_cancel(s, NULL);
            STRAND_TRY {
                CHECK_PTR(strand_join(taken), &drops);
                joined = 1;
            }
            STRAND_CATCH(&STRAND_CHILD_CANCELLED, e) {
                interrupted = 1;
            }
            STRAND_END
        }
        CHECK_EQ(joined + interrupted, 1);
        CHECK_EQ(drops, 1);
    }
}
