/*
 * A cancel races with the end of the strand, with its failure, with its join, with another cancel and with the owner's
 * leaving: the outcome is one of those that are promised, and no handle that has gone stale does harm.
 */
#define SUITE cancel_race
#include "test.h"

static void *yield_and_throw(void *times)
{
    test_yield_times(times);
    strand_throw(&TEST_ERROR, "own error");
}

/* The outcomes that are allowed, and no fourth. */
static void check_outcome(strand child, void *value)
{
    void *result = TEST_PTR(-1);
    strand_exception *e = strand_try(test_join, &child, &result);
    if (e == NULL)
        CHECK_PTR(result, value);
    else if (strand_exception_is(e, &STRAND_CHILD_CANCELLED))
        CHECK_STR(strand_exception_why(e), "race");
    else
        CHECK_STR(strand_exception_text(e), "own error");
    strand_exception_release(e);
}

TEST_RACE(a_cancel_races_with_the_end_of_the_strand)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(5000); i++) {
        strand child = strand_spawn(s, test_yield_times, TEST_PTR(i % 4));
        for (int n = 0; n < i % 5; n++)
            strand_yield();
        strand_cancel(child, "race");
        check_outcome(child, TEST_PTR(i % 4));
    }
}

/* In a collecting scope, where failures interrupt nobody. */
TEST_RACE(a_cancel_races_with_a_failure)
{
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    for (long i = 0; i < test_scale(3000); i++) {
        strand child = strand_spawn(s, yield_and_throw, TEST_PTR(i % 4));
        for (int n = 0; n < i % 5; n++)
            strand_yield();
        strand_cancel(child, "race");
        check_outcome(child, NULL);
    }
}

struct rival {
    strand victim;
    const char *why;
};

static void *cancel_victim(void *arg)
{
    struct rival *rival = arg;
    strand_cancel(rival->victim, rival->why);
    return NULL;
}

/* The report has the name and the reason of the same cancel. */
/* contract 4.14 */
TEST_RACE(two_cancels_race_and_one_of_them_is_reported)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(2000); i++) {
        struct test_child blocked = {0};
        strand victim = strand_spawn(s, test_child_blocks, &blocked);
        struct rival one = {victim, "one"}, two = {victim, "two"};
        strand first = strand_spawn_with(s, STRAND_ATTR(.name = "one"), cancel_victim, &one, 0);
        strand second = strand_spawn_with(s, STRAND_ATTR(.name = "two"), cancel_victim, &two, 0);
        strand_exception *e = strand_try(test_join, &victim, NULL);
        CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
        CHECK_STR(strand_exception_who(e), strand_exception_why(e));
        CHECK(strand_exception_who(e)[0] != '\0');
        strand_exception_release(e);
        strand_join(first);
        strand_join(second);
    }
}

static void *cancel_again_and_again(void *arg)
{
    struct rival *rival = arg;
    while (!strand_ended(rival->victim)) {
        strand_cancel(rival->victim, rival->why);
        strand_yield();
    }
    strand_cancel(rival->victim, rival->why);
    return NULL;
}

/* The handle goes stale under their hands, and is soon that of another strand's control block. */
/* contract 4.17, 9.6 */
TEST_RACE(cancels_race_with_a_join_that_consumes_the_strand)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(1000); i++) {
        strand victim = strand_spawn(s, test_yield_times, TEST_PTR(3));
        struct rival rival = {victim, "race"};
        strand rivals[3];
        for (int n = 0; n < 3; n++)
            rivals[n] = strand_spawn(s, cancel_again_and_again, &rival);
        check_outcome(victim, TEST_PTR(3));
        CHECK_PTR(strand_join(strand_spawn(s, test_yield_times, TEST_PTR(2))), TEST_PTR(2));
        for (int n = 0; n < 3; n++)
            strand_join(rivals[n]);
    }
}

struct family {
    struct test_child blocked[3];
    struct rival rivals[3];
};

static void *leave_with_children(void *arg)
{
    struct family *family = arg;
    STRAND_SCOPE(s);
    for (int n = 0; n < 3; n++)
        family->rivals[n] = (struct rival){strand_spawn(s, test_child_blocks, &family->blocked[n]), "race"};
    STRAND_SCOPE(others);
    for (int n = 0; n < 3; n++)
        strand_spawn(others, cancel_again_and_again, &family->rivals[n]);
    strand_scope_cancel(s, NULL);
    return NULL;
}

/* `others` is left first and cancelled with it, but each of its strands cancels at least once. */
TEST_RACE(cancels_by_others_race_with_the_owners_leaving)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(500); i++) {
        struct family family = {0};
        strand owner = strand_spawn(s, leave_with_children, &family);
        CHECK_THROWS(test_join, &owner, &STRAND_LIVE_STRANDS);
    }
}

struct left_behind {
    strand victim;
    _Atomic int set;
};

static void *leave_victim_behind(void *arg)
{
    struct left_behind *left = arg;
    STRAND_SCOPE(s);
    left->victim = strand_spawn(s, test_yield_times, TEST_PTR(2));
    atomic_store(&left->set, 1);
    strand_cancel(left->victim, "owner");
    return NULL;
}

static void *go_on_cancelling(void *arg)
{
    struct left_behind *left = arg;
    test_yield_until(&left->set, 1);
    for (int i = 0; i < 20; i++) {
        strand_cancel(left->victim, "unrelated");
        strand_yield();
    }
    return NULL;
}

/* The unrelated strand goes on with a handle when the scope, and its owner, are gone. */
/* contract 4.17 */
TEST_RACE(a_cancel_by_an_unrelated_strand_races_with_the_end_of_the_scope)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(2000); i++) {
        struct left_behind left = {0};
        strand unrelated = strand_spawn(s, go_on_cancelling, &left);
        strand owner = strand_spawn(s, leave_victim_behind, &left);
        CHECK_PTR(strand_join(owner), NULL);
        CHECK(strand_ended(left.victim));
        strand_join(unrelated);
    }
}
