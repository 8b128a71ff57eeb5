/*
 * Hand-off: a child is anchored to an open scope instead, on purpose. It is the only way in which a strand outlives the
 * scope that it was spawned in; there is no detach.
 */
#define SUITE hand_off
#include "test.h"

#include <errno.h>

/* A strand that hands its own child off. */
struct handing {
    strand_scope to;
    strand_fn *fn;
    void *arg;
    strand child;
};

static void *spawn_and_hand_off(void *arg)
{
    struct handing *handing = arg;
    STRAND_SCOPE(s);
    handing->child = strand_spawn(s, handing->fn, handing->arg);
    CHECK_EQ(strand_hand_off(handing->child, handing->to), 0);
    CHECK_EQ(strand_scope_count(s), 0);
    return NULL;
}

/* The child of a strand that has ended by the time this returns, anchored to the scope now. */
static strand hand_off_to(strand_scope to, strand_fn *fn, void *arg)
{
    struct handing handing = {.to = to, .fn = fn, .arg = arg};
    STRAND_SCOPE(s);
    strand_join(strand_spawn(s, spawn_and_hand_off, &handing));
    return handing.child;
}

/* ---- what it does ---------------------------------------------------------------------------- */

/* V-35, contract 4.54 */
TEST_INSIDE(a_child_that_was_handed_off_outlives_the_scope_that_it_was_spawned_in)
{
    struct test_child child = {0};
    STRAND_SCOPE_OPEN(s);
    strand handed = hand_off_to(s, test_child_waits, &child);
    CHECK_EQ(strand_scope_count(s), 1);
    for (int i = 0; i < 20; i++)
        strand_yield();
    CHECK_EQ(child.ended, 0);
    child.release = 1;
    CHECK_PTR(strand_join(handed), &child);
}

/* contract 4.54 */
TEST_INSIDE(the_owner_of_the_new_scope_joins)
{
    STRAND_SCOPE_OPEN(s);
    CHECK_PTR(strand_join(hand_off_to(s, test_return, TEST_PTR(6))), TEST_PTR(6));
    CHECK_EQ(strand_scope_count(s), 0);
}

TEST_INSIDE(a_strand_can_hand_its_child_from_one_scope_of_its_own_to_another)
{
    strand child;
    STRAND_SCOPE_OPEN(outer);
    {
        STRAND_SCOPE(inner);
        child = strand_spawn(inner, test_return, TEST_PTR(2));
        CHECK_EQ(strand_hand_off(child, outer), 0);
        CHECK_EQ(strand_scope_count(inner), 0);
        CHECK_EQ(strand_scope_count(outer), 1);
    }
    CHECK_PTR(strand_join(child), TEST_PTR(2));
}

TEST_INSIDE(a_child_can_be_handed_off_again)
{
    STRAND_SCOPE_OPEN(first);
    STRAND_SCOPE_OPEN(second);
    strand child = hand_off_to(second, test_return, TEST_PTR(3));
    CHECK_EQ(strand_hand_off(child, first), 0);
    CHECK_EQ(strand_scope_count(second), 0);
    CHECK_PTR(strand_join(child), TEST_PTR(3));
}

static void *hand_off_ended(void *arg)
{
    struct handing *handing = arg;
    STRAND_SCOPE(s);
    handing->child = strand_spawn(s, test_return, TEST_PTR(8));
    strand_wait(handing->child);
    CHECK_EQ(strand_hand_off(handing->child, handing->to), 0);
    return NULL;
}

TEST_INSIDE(a_child_that_has_ended_can_be_handed_off_with_its_result)
{
    STRAND_SCOPE_OPEN(s);
    struct handing handing = {.to = s};
    strand_join(strand_spawn(s, hand_off_ended, &handing));
    CHECK_PTR(strand_join(handing.child), TEST_PTR(8));
}

/* contract 1.6 */
TEST_INSIDE(a_child_that_was_handed_off_is_live_in_its_new_scope)
{
    struct test_child child = {0};
    STRAND_TRY {
        STRAND_SCOPE_OPEN(s);
        hand_off_to(s, test_child_blocks, &child);
    }
    STRAND_CATCH(&STRAND_LIVE_STRANDS, e) {
        CHECK_EQ(child.ended, 1);
        test_log("live");
    }
    STRAND_END
    CHECK_LOG("live");
}

/* contract 4.54 */
TEST_INSIDE(the_failure_of_a_child_that_was_handed_off_goes_to_the_owner_of_the_new_scope)
{
    STRAND_TRY {
        STRAND_SCOPE_OPEN(s);
        STRAND_TRY {
            hand_off_to(s, test_throw, "handed");
            strand_sleep(FOREVER);
        }
        STRAND_CATCH(&STRAND_INTERRUPTED, e) {
            test_log("interrupted");
        }
        STRAND_END
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    CHECK_LOG("interrupted handed");
}

static void *hand_off_failed(void *arg)
{
    struct handing *handing = arg;
    STRAND_SCOPE(s);
    test_spawn_failed(s, &handing->child, 1);
    CHECK_EQ(strand_hand_off(handing->child, handing->to), 0);
    strand_checkpoint();
    return NULL;
}

/* It interrupted its old owner until then; now it is another's. */
TEST_INSIDE(a_failure_can_be_handed_off)
{
    STRAND_SCOPE_WITH(s, STRAND_OPEN | STRAND_COLLECT);
    struct handing handing = {.to = s};
    CHECK_PTR(strand_join(strand_spawn(s, hand_off_failed, &handing)), NULL);
    strand which;
    strand_exception *e = strand_scope_failure(s, &which);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_EQ(strand_id(which), strand_id(handing.child));
    strand_exception_release(e);
}

static void *wait_shielded(void *arg)
{
    test_child_resists(arg);
    strand_checkpoint();
    return arg;
}

TEST_INSIDE(cancelling_the_old_scope_does_not_reach_the_child_any_more)
{
    struct test_child child = {0};
    STRAND_SCOPE_OPEN(outer);
    strand handed;
    {
        STRAND_SCOPE(inner);
        handed = test_spawn_started(inner, wait_shielded, &child);
        CHECK_EQ(strand_hand_off(handed, outer), 0);
        strand_scope_cancel(inner, NULL);
    }
    child.release = 1;
    CHECK_PTR(strand_join(handed), &child);
}

TEST_INSIDE(cancelling_the_new_scope_cancels_the_child)
{
    struct test_child child = {0};
    STRAND_SCOPE_OPEN(s);
    strand handed = hand_off_to(s, test_child_blocks, &child);
    strand_scope_cancel(s, "new owner");
    strand_exception *e = strand_try(test_join, &handed, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_why(e), "new owner");
    strand_exception_release(e);
}

TEST_INSIDE(a_cancelled_child_stays_cancelled_in_its_new_scope)
{
    struct test_child child = {0};
    strand handed;
    STRAND_SCOPE_OPEN(outer);
    {
        STRAND_SCOPE(inner);
        handed = test_spawn_started(inner, wait_shielded, &child);
        strand_cancel(handed, "before");
        CHECK_EQ(strand_hand_off(handed, outer), 0);
    }
    child.release = 1;
    strand_exception *e = strand_try(test_join, &handed, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_why(e), "before");
    strand_exception_release(e);
}

static void *hand_off_while_cancelled(void *arg)
{
    struct handing *handing = arg;
    STRAND_SCOPE(s);
    handing->child = strand_spawn(s, test_child_blocks, handing->arg);
    strand_cancel(strand_self(), NULL);
    CHECK_EQ(strand_hand_off(handing->child, handing->to), 0);
    return NULL;
}

/* Otherwise a cancelled owner could not save what others still need. */
/* contract 4.22 */
TEST_INSIDE(handing_off_is_never_interrupted)
{
    struct test_child child = {0};
    STRAND_SCOPE_OPEN(s);
    struct handing handing = {.to = s, .arg = &child};
    CHECK_PTR(strand_join(strand_spawn(s, hand_off_while_cancelled, &handing)), NULL);
    CHECK(!strand_ended(handing.child));
    strand_cancel(handing.child, NULL);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* contract 4.55 */
TEST_INSIDE(a_hand_off_to_a_plain_scope_is_refused_and_leaves_the_old_anchor)
{
    STRAND_SCOPE(outer);
    STRAND_SCOPE(inner);
    strand child = strand_spawn(inner, test_return, TEST_PTR(4));
    CHECK_EQ(strand_hand_off(child, outer), -EINVAL);
    CHECK_EQ(strand_scope_count(outer), 0);
    CHECK_EQ(strand_scope_count(inner), 1);
    CHECK_PTR(strand_join(child), TEST_PTR(4));
}

static strand_scope stale_scope(void)
{
    STRAND_SCOPE_OPEN(s);
    return s;
}

/* contract 4.3, 4.55 */
TEST_INSIDE(a_hand_off_to_a_stale_scope_is_refused_and_leaves_the_old_anchor)
{
    strand_scope stale = stale_scope();
    STRAND_SCOPE_OPEN(s);
    strand child = strand_spawn(s, test_return, TEST_PTR(4));
    CHECK_EQ(strand_hand_off(child, stale), -EINVAL);
    CHECK_EQ(strand_scope_count(s), 1);
    CHECK_PTR(strand_join(child), TEST_PTR(4));
}

/* contract 4.65 */
TEST_INSIDE(a_hand_off_to_no_scope_is_refused)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, test_return, TEST_PTR(4));
    CHECK_EQ(strand_hand_off(child, (strand_scope){{0, 0}}), -EINVAL);
    CHECK_PTR(strand_join(child), TEST_PTR(4));
}

static void *leave_after_refusal(void *child)
{
    STRAND_SCOPE(s);
    strand handle = test_spawn_started(s, test_child_blocks, child);
    CHECK_EQ(strand_hand_off(handle, stale_scope()), -EINVAL);
    return NULL;
}

/* contract 4.55 */
TEST_INSIDE(a_child_whose_hand_off_was_refused_is_live_in_its_old_scope)
{
    struct test_child child = {0};
    strand_exception *e = strand_try(leave_after_refusal, &child, NULL);
    CHECK_KIND(e, &STRAND_LIVE_STRANDS);
    CHECK_EQ(child.ended, 1);
    strand_exception_release(e);
}

/* ---- races ----------------------------------------------------------------------------------- */

TEST_RACE(a_hand_off_races_with_the_end_of_the_child)
{
    STRAND_SCOPE_OPEN(s);
    for (long i = 0; i < test_scale(2000); i++) {
        struct handing handing = {.to = s, .fn = test_yield_times, .arg = TEST_PTR(i % 4)};
        strand_join(strand_spawn(s, spawn_and_hand_off, &handing));
        CHECK_PTR(strand_join(handing.child), TEST_PTR(i % 4));
    }
}

static void *hand_off_four(void *arg)
{
    struct handing *handing = arg;
    for (int n = 0; n < 4; n++)
        spawn_and_hand_off(handing);
    return NULL;
}

/* Before or after it: all children of the scope are cancelled, so joining it comes back. */
TEST_RACE(a_hand_off_races_with_the_cancel_of_the_new_scope)
{
    for (long i = 0; i < test_scale(500); i++) {
        struct test_child blocked = {0};
        STRAND_SCOPE_OPEN(s);
        struct handing handing = {.to = s, .fn = test_child_blocks, .arg = &blocked};
        STRAND_SCOPE(givers);
        strand giver = strand_spawn(givers, hand_off_four, &handing);
        for (int n = 0; n < i % 4; n++)
            strand_yield();
        strand_scope_cancel(s, NULL);
        strand_join(giver);
        strand_scope_join(s);
        CHECK_EQ(strand_scope_count(s), 0);
    }
}

struct giving {
    strand_scope to;
    int given, kept;
};

static void *give_or_keep(void *arg)
{
    struct giving *giving = arg;
    for (int n = 0; n < 4; n++) {
        STRAND_SCOPE(s);
        strand child = strand_spawn(s, test_yield_times, TEST_PTR(n));
        int refused = strand_hand_off(child, giving->to);
        if (refused == 0) {
            giving->given++;
        } else {
            CHECK_EQ(refused, -EINVAL);
            CHECK_PTR(strand_join(child), TEST_PTR(n));
            giving->kept++;
        }
        strand_yield();
    }
    return NULL;
}

/* Each child is taken by the one scope or stays in the other: none is lost between them, and none is in both. */
/* contract 4.54 */
TEST_RACE(a_hand_off_races_with_the_leaving_of_the_new_scope)
{
    for (long i = 0; i < test_scale(1000); i++) {
        struct giving giving = {.given = 0};
        strand giver;
        STRAND_SCOPE(givers);
        {
            STRAND_SCOPE_OPEN(s);
            giving.to = s;
            giver = strand_spawn(givers, give_or_keep, &giving);
            for (int n = 0; n < i % 8; n++)
                strand_yield();
            strand_scope_cancel(s, NULL);
        }
        strand_join(giver);
        CHECK_EQ(giving.given + giving.kept, 4);
    }
}
