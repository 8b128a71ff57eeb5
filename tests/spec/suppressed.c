/*
 * Several exceptions at a time: one is thrown, the others are suppressed in it, none is lost and none is reported
 * twice.
 */
#define SUITE suppressed
#include "test.h"

/* contract 4.30 */
TEST_INSIDE(joining_the_scope_throws_the_first_failure_with_the_others_suppressed)
{
    strand children[3];
    STRAND_SCOPE(s);
    strand_spawn(s, test_return, NULL);
    test_spawn_failed(s, children, 3);
    strand_exception *e = strand_try(test_join_scope, &s, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_STR(strand_exception_text(e), "0");
    CHECK_STR(strand_exception_text(strand_exception_suppressed(e, 0)), "1");
    CHECK_STR(strand_exception_text(strand_exception_suppressed(e, 1)), "2");
    CHECK_PTR(strand_exception_suppressed(e, 2), NULL);
    strand_exception_release(e);
    strand_checkpoint();
    CHECK_EQ(strand_scope_count(s), 0);
}

/* contract 4.30 */
TEST_INSIDE(leaving_the_scope_throws_the_first_failure_with_the_others_suppressed)
{
    strand children[3];
    STRAND_TRY {
        STRAND_SCOPE(s);
        test_spawn_failed(s, children, 3);
        strand_yield();
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        CHECK_STR(strand_exception_text(e), "0");
        CHECK_STR(strand_exception_text(strand_exception_suppressed(e, 0)), "1");
        CHECK_STR(strand_exception_text(strand_exception_suppressed(e, 1)), "2");
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

TEST_INSIDE(a_failure_that_nobody_has_seen_is_suppressed_in_the_exception_that_leaves_the_scope)
{
    strand child;
    STRAND_TRY {
        STRAND_SCOPE(s);
        test_spawn_failed(s, &child, 1);
        test_throw2("of the owner");
    }
    STRAND_CATCH(&TEST_ERROR2, e) {
        CHECK_STR(strand_exception_text(e), "of the owner");
        CHECK_KIND(strand_exception_suppressed(e, 0), &TEST_ERROR);
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

TEST_INSIDE(the_second_failure_is_suppressed_in_the_first_one_that_was_joined)
{
    strand children[2];
    STRAND_TRY {
        STRAND_SCOPE(s);
        test_spawn_failed(s, children, 2);
        strand_join(children[1]);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        CHECK_STR(strand_exception_text(e), "1");
        CHECK_STR(strand_exception_text(strand_exception_suppressed(e, 0)), "0");
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

/* contract 4.40 */
TEST_INSIDE(a_failure_and_live_strands_together_throw_the_failure_with_live_strands_suppressed)
{
    struct test_child blocked = {0};
    strand child;
    STRAND_TRY {
        STRAND_SCOPE(s);
        test_spawn_started(s, test_child_blocks, &blocked);
        test_spawn_failed(s, &child, 1);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        CHECK_KIND(strand_exception_suppressed(e, 0), &STRAND_LIVE_STRANDS);
        CHECK_EQ(blocked.ended, 1);
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

/* ---- an interruption that comes after a failure ------------------------------------------------ */

static void *fail_and_sleep(void *arg)
{
    STRAND_DEADLINE(strand_in(*(int64_t *)arg));
    STRAND_SCOPE(s);
    strand_spawn(s, test_throw, "by a child");
    strand_spawn(s, test_sleep, NULL);
    strand_scope_join(s);
    return arg;
}

/* The join goes on after the failure, until the deadline outside ends it. */
TEST_INSIDE(joining_a_scope_is_interrupted_from_outside_also_after_a_failure)
{
    int64_t ns = 5 * STRAND_MS;
    strand_exception *e = strand_try(fail_and_sleep, &ns, NULL);
    while (!strand_exception_suppressed(e, 0)) { /* on a busy machine the deadline may come before the failure */
        strand_exception_release(e);
        ns *= 2;
        e = strand_try(fail_and_sleep, &ns, NULL);
    }
    CHECK_KIND(e, &STRAND_TIMED_OUT);
    CHECK_KIND(strand_exception_suppressed(e, 0), &TEST_ERROR);
    CHECK_CONTAINS(strand_exception_text(e), "passed; suppressed: ");
    CHECK_CONTAINS(strand_exception_text(e), ": by a child");
    strand_exception_release(e);
}

struct joining {
    struct test_child children[3];
    strand handles[3];
    _Atomic int ready;
};

static void *join_three(void *arg)
{
    struct joining *joining = arg;
    STRAND_SCOPE(s);
    for (int i = 0; i < 3; i++)
        joining->handles[i] = test_spawn_started(s, test_child_blocks, &joining->children[i]);
    joining->ready = 1;
    strand_scope_join(s);
    return NULL;
}

/* Returns when the owner has joined the first child and waits for the one in the middle. Whether the owner begins with
 * the oldest or with the newest depends on the scheduler; the one in the middle is the last in either order. */
static void cancel_the_oldest_and_the_newest(struct joining *joining)
{
    char words[64];
    for (int i = 0; i < 3; i += 2)
        strand_cancel(joining->handles[i], "by a third party");
    for (int i = 0; i < 3; i += 2)
        test_yield_until(&joining->children[i].ended, 1);
    snprintf(words, sizeof words, "joins its scope, waits for strand #%llu",
             (unsigned long long)strand_id(joining->handles[1]));
    test_await_blocked(words, 1);
}

/* A third party cancels children, and the owner of their scope is cancelled later. */
TEST_INSIDE(a_cancelled_owner_that_joins_its_scope_ends_by_its_own_cancel)
{
    struct joining joining = {0};
    STRAND_SCOPE(s);
    strand owner = strand_spawn(s, join_three, &joining);
    test_yield_until(&joining.ready, 1);
    cancel_the_oldest_and_the_newest(&joining);
    strand_cancel(owner, "the owner itself");
    strand_exception *e = strand_try(test_join, &owner, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_why(e), "the owner itself");
    CHECK(strand_exception_suppressed(e, 0) != NULL);
    CHECK_STR(strand_exception_why(strand_exception_suppressed(e, 0)), "by a third party");
    CHECK_CONTAINS(strand_exception_text(e), "; suppressed: child-cancelled: ");
    strand_exception_release(e);
}

static void *leave_over_a_failure_by_a_time_out(void *arg)
{
    struct test_child *child = arg;
    STRAND_DEADLINE(strand_in(STRAND_MS));
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    strand_spawn(s, test_throw, "by a child");
    test_spawn_started(s, test_child_blocks, child);
    strand_sleep(FOREVER);
    return NULL;
}

TEST_INSIDE(the_text_of_a_time_out_names_the_first_error_that_it_has_pushed_aside)
{
    struct test_child child = {0};
    strand_exception *e = strand_try(leave_over_a_failure_by_a_time_out, &child, NULL);
    CHECK_KIND(e, &STRAND_TIMED_OUT);
    CHECK_KIND(strand_exception_suppressed(e, 0), &TEST_ERROR);
    CHECK_CONTAINS(strand_exception_text(e), ": by a child");
    strand_exception_release(e);
}

/* ---- an interruption that is suppressed in the failure it came from --------------------------- */

static int freed;

static void count_freed(void *unused)
{
    (void)unused;
    freed++;
}

static void *fail_with_payload(void *arg)
{
    strand_throw_info info = {.size = sizeof info, .payload = &freed, .payload_free = count_freed};
    (void)arg;
    strand_throw_with(&TEST_ERROR, &info, "by a child");
}

/* The try block meets the same source again. */
static void suppress_another_interruption(const int *unused)
{
    (void)unused;
    strand_exception *e = strand_try(test_sleep, NULL, NULL);
    CHECK_KIND(e, &STRAND_INTERRUPTED);
    strand_suppress(e);
}

static void *wait_for_a_failure(void *arg)
{
    STRAND_SCOPE(s);
    strand_spawn(s, fail_with_payload, arg);
    int guard __attribute__((cleanup(suppress_another_interruption), unused)) = 0;
    strand_sleep(FOREVER);
    return arg;
}

TEST_INSIDE(an_interruption_that_is_suppressed_in_the_failure_it_came_from_does_not_keep_it)
{
    freed = 0;
    strand_exception *e = strand_try(wait_for_a_failure, NULL, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_KIND(strand_exception_suppressed(e, 0), &STRAND_INTERRUPTED);
    CHECK_EQ(freed, 0);
    strand_exception_release(e);
    CHECK_EQ(freed, 1);
}

static void join_then_fail_again(strand_scope *scope)
{
    strand child;
    strand_suppress(strand_try(test_join_scope, scope, NULL));
    test_spawn_failed(*scope, &child, 1);
}

static void *be_interrupted_by_the_first_of_two(void *arg)
{
    STRAND_SCOPE(s);
    strand_spawn(s, test_throw2, "the first");
    strand_scope scope __attribute__((cleanup(join_then_fail_again), unused)) = s;
    strand_sleep(FOREVER);
    return arg;
}

/* The second failure takes the place of the interruption, and the first one was its cause alone. */
TEST_INSIDE(a_failure_that_a_clean_up_suppresses_in_its_own_interruption_is_not_lost)
{
    strand_exception *e = strand_try(be_interrupted_by_the_first_of_two, NULL, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_EQ(test_count_kind(e, &TEST_ERROR2), 1);
    strand_exception_release(e);
}

/* ---- races ----------------------------------------------------------------------------------- */

static void *yield_and_throw(void *times)
{
    STRAND_SHIELD;
    for (intptr_t i = 0; i < (intptr_t)times; i++)
        strand_yield();
    strand_throw(&TEST_ERROR, "%d", (int)(intptr_t)times);
}

static void *sleep_over_failures(void *i)
{
    STRAND_SCOPE(s);
    for (int n = 0; n < 4; n++)
        strand_spawn(s, yield_and_throw, TEST_PTR(((intptr_t)i + n) % 5));
    strand_sleep(FOREVER);
    return NULL;
}

/* Whether they fail before they are cancelled, or after it: no exception is lost, and none is reported twice. */
/* contract 4.30 */
TEST_RACE(children_that_fail_at_once_are_each_reported_once)
{
    for (long i = 0; i < test_scale(1000); i++) {
        strand_exception *e = strand_try(sleep_over_failures, TEST_PTR(i), NULL);
        CHECK_KIND(e, &TEST_ERROR);
        CHECK_EQ(test_count_kind(e, &TEST_ERROR), 4);
        strand_exception_release(e);
    }
}

static void *join_failing_in_turn(void *i)
{
    STRAND_SCOPE(s);
    strand children[4];
    for (int n = 0; n < 4; n++)
        children[n] = strand_spawn(s, yield_and_throw, TEST_PTR(((intptr_t)i + n) % 5));
    for (int n = 0; n < 4; n++)
        strand_join(children[n]);
    return NULL;
}

/* The owner joins one while the failure of another interrupts it. */
TEST_RACE(joining_races_with_the_failures_of_siblings)
{
    for (long i = 0; i < test_scale(1000); i++) {
        strand_exception *e = strand_try(join_failing_in_turn, TEST_PTR(i), NULL);
        CHECK_KIND(e, &TEST_ERROR);
        CHECK_EQ(test_count_kind(e, &TEST_ERROR), 4);
        strand_exception_release(e);
    }
}

static void *leave_over_a_failure(void *i)
{
    STRAND_SCOPE(s);
    strand_spawn(s, yield_and_throw, TEST_PTR((intptr_t)i % 4));
    for (int n = 0; n < (intptr_t)i % 5; n++)
        strand_yield();
    return NULL;
}

/* If the child was first it is the failure, else it was left live, and its exception is suppressed in that. */
TEST_RACE(leaving_races_with_a_failure)
{
    for (long i = 0; i < test_scale(2000); i++) {
        strand_exception *e = strand_try(leave_over_a_failure, TEST_PTR(i), NULL);
        CHECK(e != NULL);
        if (!strand_exception_is(e, &TEST_ERROR))
            CHECK_KIND(e, &STRAND_LIVE_STRANDS);
        CHECK_EQ(test_count_kind(e, &TEST_ERROR), 1);
        strand_exception_release(e);
    }
}

static void *cancel_over_a_failure(void *i)
{
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    strand child = strand_spawn(s, yield_and_throw, TEST_PTR((intptr_t)i % 4));
    for (int n = 0; n < (intptr_t)i % 5; n++)
        strand_yield();
    strand_cancel(child, NULL);
    return strand_join(child);
}

TEST_RACE(a_failure_that_races_with_a_cancel_is_joined_all_the_same)
{
    for (long i = 0; i < test_scale(2000); i++) {
        CHECK_THROWS(cancel_over_a_failure, TEST_PTR(i), &TEST_ERROR);
    }
}

/* ---- round and round ------------------------------------------------------------------------ */

static void count_given_back(void *given_back)
{
    ++*(int *)given_back;
}

static void *fail_with_a_count(void *given_back)
{
    const strand_throw_info info = {.size = sizeof info, .payload = given_back, .payload_free = count_given_back};
    strand_throw_with(&TEST_ERROR, &info, "counted");
}

static void *be_interrupted_twice(void *given_back)
{
    STRAND_SCOPE(s);
    strand_spawn(s, fail_with_a_count, given_back);
    STRAND_TRY {
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        strand_yield(); /* throws again, and takes the first interruption along */
    }
    STRAND_END
    return NULL;
}

static void *join_the_one_that_interrupted(void *given_back)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, fail_with_a_count, given_back);
    STRAND_TRY {
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        strand_join(child);
    }
    STRAND_END
    return NULL;
}

static void frees_its_failure(strand_fn *fn)
{
    int given_back = 0;
    strand_exception *e = strand_try(fn, &given_back, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_KIND(strand_exception_suppressed(e, 0), &STRAND_INTERRUPTED);
    CHECK_PTR(strand_exception_suppressed(e, 1), NULL);
    CHECK_EQ(given_back, 0);
    strand_exception_release(e);
    CHECK_EQ(given_back, 1);
}

TEST_INSIDE(a_failure_that_has_interrupted_twice_is_given_back)
{
    frees_its_failure(be_interrupted_twice);
}

TEST_INSIDE(a_failure_that_is_joined_where_its_interruption_is_handled_is_given_back)
{
    frees_its_failure(join_the_one_that_interrupted);
}

static void *throw_it_in_its_own_wake(void *given_back)
{
    strand_exception *volatile kept = NULL;
    STRAND_TRY {
        STRAND_TRY {
            fail_with_a_count(given_back);
        }
        STRAND_CATCH(&TEST_ERROR, e) {
            kept = strand_exception_keep(e);
            test_throw2("takes it along");
        }
        STRAND_END
    }
    STRAND_CATCH(&TEST_ERROR2, e) {
        strand_rethrow(kept);
    }
    STRAND_END
    return NULL;
}

TEST_INSIDE(an_exception_is_never_suppressed_in_itself)
{
    int given_back = 0;
    strand_exception *e = strand_try(throw_it_in_its_own_wake, &given_back, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_PTR(strand_exception_suppressed(e, 0), NULL);
    strand_exception_release(e);
    CHECK_EQ(given_back, 1);
}
