/*
 * What a strand can ask about its interruptions and deadlines, and deadlines that move.
 */
#define SUITE deadline_move
#include "test.h"

#define NO_DEADLINE ((strand_time){.ns = INT64_MAX})

/* ---- strand_interrupted ----------------------------------------------------------------------- */

static void *count_until_interrupted(void *count)
{
    strand_yield();
    while (!strand_interrupted())
        ++*(long *)count;
    return count;
}

TEST_INSIDE(a_strand_that_nothing_interrupts_is_not_interrupted)
{
    CHECK(!strand_interrupted());
}

TEST_INSIDE(a_cancelled_strand_learns_that_it_is_interrupted_without_an_exception)
{
    long count = 0;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, count_until_interrupted, &count);
    strand_cancel(child, "enough");
    STRAND_TRY {
        CHECK_PTR(strand_join(child), &count);
    }
    STRAND_CATCH(&STRAND_CHILD_CANCELLED, e) {
        test_log("before it began");
    }
    STRAND_END
}

TEST_REAL_INSIDE(a_loop_that_asks_sees_its_deadline_pass)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        while (!strand_interrupted())
            continue;
        strand_checkpoint();
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("late");
    }
    STRAND_END
    CHECK_LOG("late");
}

TEST_INSIDE(a_shield_hides_the_interruption_and_its_deadline)
{
    bool outside = false, inside = true;
    strand_time seen = {0};
    STRAND_TRY {
        STRAND_DEADLINE(LONG_PAST);
        outside = strand_interrupted();
        {
            STRAND_SHIELD;
            inside = strand_interrupted();
            seen = strand_deadline();
        }
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    CHECK(outside);
    CHECK(!inside);
    CHECK_EQ(seen.ns, INT64_MAX);
}

TEST_INSIDE(asking_is_allowed_where_nothing_may_suspend)
{
    STRAND_NO_SUSPEND;
    CHECK(!strand_interrupted());
    CHECK_EQ(strand_deadline().ns, INT64_MAX);
}

/* ---- strand_deadline -------------------------------------------------------------------------- */

TEST_INSIDE(the_earliest_of_the_deadlines_is_returned)
{
    strand_time soon = strand_in(STRAND_S), later = strand_in(10 * STRAND_S);
    STRAND_DEADLINE(later);
    CHECK_EQ(strand_deadline().ns, later.ns);
    {
        STRAND_DEADLINE(soon);
        {
            STRAND_DEADLINE(NO_DEADLINE);
            CHECK_EQ(strand_deadline().ns, soon.ns);
        }
    }
    CHECK_EQ(strand_deadline().ns, later.ns);
}

/* ---- strand_deadline_move --------------------------------------------------------------------- */

static void *sleep_until_moved_deadline(void *to)
{
    STRAND_DEADLINE_AS(mine, strand_in(FOREVER));
    CHECK(strand_deadline_move(&mine, *(strand_time *)to));
    CHECK_EQ(strand_deadline().ns, ((strand_time *)to)->ns);
    strand_sleep(FOREVER);
    return to;
}

static void check_times_out(strand_fn *fn, strand_time at)
{
    strand_exception *e = strand_try(fn, &at, NULL);
    CHECK_KIND(e, &STRAND_TIMED_OUT);
    CHECK(strand_now().ns >= at.ns);
    strand_exception_release(e);
}

TEST_INSIDE(a_deadline_that_was_moved_nearer_comes_nearer)
{
    check_times_out(sleep_until_moved_deadline, strand_in(STRAND_MS));
}

TEST_INSIDE(a_deadline_that_was_moved_into_the_past_interrupts_the_next_operation)
{
    check_times_out(sleep_until_moved_deadline, LONG_PAST);
}

TEST_INSIDE(a_deadline_that_is_moved_on_at_each_step_never_comes)
{
    STRAND_DEADLINE_AS(idle, strand_in(FOREVER));
    for (int step = 0; step < 10; step++) {
        CHECK(strand_deadline_move(&idle, strand_in(FOREVER)));
        strand_sleep(STRAND_US);
    }
    CHECK(!strand_interrupted());
}

/* NULL: the old instant has come before the move. */
static void *sleep_beyond_what_was_moved(void *old)
{
    STRAND_DEADLINE_AS(mine, *(strand_time *)old);
    {
        STRAND_DEADLINE(strand_in(FOREVER)); /* other timers in the heap */
        if (!strand_deadline_move(&mine, strand_in(FOREVER)))
            return NULL;
        strand_sleep_until((strand_time){((strand_time *)old)->ns + 1});
    }
    return old;
}

TEST_INSIDE(a_deadline_that_was_moved_away_does_not_come_at_its_old_instant)
{
    void *result = NULL;
    for (int64_t far = STRAND_MS; !result; far *= 2) {
        strand_time old = strand_in(far);
        CHECK_PTR(strand_try(sleep_beyond_what_was_moved, &old, &result), NULL);
    }
}

static void *from_no_deadline(void *to)
{
    STRAND_DEADLINE_AS(mine, (strand_time){0});
    CHECK(strand_deadline_move(&mine, strand_in(FOREVER)));
    CHECK(strand_deadline_move(&mine, (strand_time){0}));
    CHECK_EQ(strand_deadline().ns, INT64_MAX);
    CHECK(strand_deadline_move(&mine, *(strand_time *)to));
    strand_sleep(FOREVER);
    return to;
}

TEST_INSIDE(a_deadline_can_be_taken_back_and_set_again)
{
    check_times_out(from_no_deadline, strand_in(STRAND_MS));
}

static void *move_too_late(void *arg)
{
    STRAND_DEADLINE_AS(mine, strand_in(STRAND_MS));
    strand_exception_release(strand_try(count_until_interrupted, arg, NULL));
    if (strand_deadline_move(&mine, strand_in(FOREVER)))
        return arg;
    strand_checkpoint();
    return arg;
}

TEST_REAL_INSIDE(a_deadline_that_has_passed_stays_and_the_call_says_so)
{
    long count = 0;
    CHECK_THROWS(move_too_late, &count, &STRAND_TIMED_OUT);
}

static void *move_under_fire(void *arg)
{
    bool moved = true;
    STRAND_DEADLINE_AS(mine, strand_in(STRAND_US));
    for (int step = 0; step < 100 && moved; step++)
        moved = strand_deadline_move(&mine, strand_in(STRAND_US));
    if (!moved)
        CHECK(strand_interrupted());
    moved = strand_deadline_move(&mine, strand_in(FOREVER));
    CHECK(moved != strand_interrupted());
    return arg;
}

TEST_INSIDE(many_strands_move_deadlines_that_are_about_to_come)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 20; i++)
        strand_spawn(scope, move_under_fire, NULL);
    strand_scope_join(scope);
}

TEST_INSIDE(the_old_timer_of_a_moved_deadline_is_gone_when_the_block_is_left)
{
    for (int i = 0; i < 100; i++) {
        STRAND_DEADLINE_AS(mine, strand_in(FOREVER));
        CHECK(strand_deadline_move(&mine, strand_in(FOREVER)));
    }
    strand_sleep(STRAND_US);
}
