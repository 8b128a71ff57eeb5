/*
 * Open scopes: others may spawn into them, count and cancel. Handing a strand off to one is in hand_off.c.
 */
#define SUITE open_scope
#include "test.h"

#include <errno.h>

struct nursery {
    strand_scope scope;
    strand spawned;
    _Atomic int sum;
};

static void *add_slowly(void *sum)
{
    for (int i = 0; i < 3; i++)
        strand_yield();
    atomic_fetch_add((_Atomic int *)sum, 1);
    return NULL;
}

static void *spawn_sibling(void *arg)
{
    struct nursery *nursery = arg;
    nursery->spawned = strand_spawn(nursery->scope, test_return, TEST_PTR(9));
    return NULL;
}

/* contract 4.2 */
TEST_INSIDE(a_child_spawns_into_an_open_scope_and_the_owner_joins)
{
    STRAND_SCOPE_OPEN(s);
    struct nursery nursery = {.scope = s};
    strand_join(strand_spawn(s, spawn_sibling, &nursery));
    CHECK_EQ(strand_scope_count(s), 1);
    CHECK_PTR(strand_join(nursery.spawned), TEST_PTR(9));
}

static void *spawn_from_below(void *arg)
{
    STRAND_SCOPE(s);
    strand_join(strand_spawn(s, spawn_sibling, arg));
    return NULL;
}

/* The strand that spawned it has ended by then, and so has its parent. */
/* contract 4.2 */
TEST_INSIDE(a_strand_spawned_into_an_open_scope_does_not_depend_on_its_spawner)
{
    STRAND_SCOPE_OPEN(s);
    struct nursery nursery = {.scope = s};
    strand_join(strand_spawn(s, spawn_from_below, &nursery));
    CHECK_PTR(strand_join(nursery.spawned), TEST_PTR(9));
}

static void *multiply(void *arg)
{
    struct nursery *nursery = arg;
    int n = atomic_fetch_add(&nursery->sum, 1);
    if (n < 100) {
        strand_spawn(nursery->scope, multiply, nursery);
        strand_spawn(nursery->scope, multiply, nursery);
    }
    return NULL;
}

/* A join that counted the children once would come back too early. */
/* contract 4.2 */
TEST_RACE(joining_an_open_scope_waits_for_children_that_are_spawned_meanwhile)
{
    for (long i = 0; i < test_scale(100); i++) {
        STRAND_SCOPE_OPEN(s);
        struct nursery nursery = {.scope = s};
        strand_spawn(s, multiply, &nursery);
        strand_scope_join(s);
        CHECK_EQ(strand_scope_count(s), 0);
        CHECK_EQ(nursery.sum, 201);
    }
}

static void *cancel_nursery(void *arg)
{
    struct nursery *nursery = arg;
    CHECK_EQ(strand_scope_count(nursery->scope), 2);
    strand_scope_cancel(nursery->scope, "by a child");
    return NULL;
}

TEST_INSIDE(anybody_may_count_and_cancel_the_children_of_an_open_scope)
{
    struct test_child child = {0};
    volatile bool thrown = false;
    STRAND_SCOPE_OPEN(s);
    struct nursery nursery = {.scope = s};
    strand blocked = test_spawn_started(s, test_child_blocks, &child);
    strand_join(strand_spawn(s, cancel_nursery, &nursery));
    STRAND_TRY {
        strand_join(blocked);
    }
    STRAND_CATCH(&STRAND_CHILD_CANCELLED, e) {
        CHECK_STR(strand_exception_why(e), "by a child");
        thrown = true;
    }
    STRAND_END
    CHECK(thrown);
}

static void *spawn_until_cancelled(void *arg)
{
    struct nursery *nursery = arg;
    while (atomic_load(&nursery->sum) >= 0) {
        strand_spawn(nursery->scope, add_slowly, &nursery->sum);
        strand_yield();
    }
    return NULL;
}

/* A strand that is spawned while the scope is cancelled is either cancelled with the others or born cancelled. */
/* contract 4.13 */
TEST_RACE(spawning_into_an_open_scope_races_with_cancelling_it)
{
    for (long i = 0; i < test_scale(200); i++) {
        STRAND_SCOPE_OPEN(s);
        struct nursery nursery = {.scope = s};
        for (int n = 0; n < 4; n++)
            strand_spawn(s, spawn_until_cancelled, &nursery);
        for (int n = 0; n < 4; n++)
            strand_yield();
        strand_scope_cancel(s, NULL);
        strand_scope_join(s);
        CHECK_EQ(strand_scope_count(s), 0);
    }
}

static void *spawn_into(void *scope)
{
    strand_spawn(*(strand_scope *)scope, test_return, NULL);
    return NULL;
}

TEST_INSIDE(an_open_scope_that_was_left_is_empty_and_takes_nobody)
{
    strand_scope left, never = {{0x1000, 7}};
    {
        STRAND_SCOPE_WITH(s, STRAND_OPEN);
        left = s;
    }
    strand_scope *const scopes[] = {&left, &never};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(strand_scope_count(*scopes[i]), 0);
        strand_scope_cancel(*scopes[i], "too late");
        strand_exception *e = strand_try(spawn_into, scopes[i], NULL);
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), -ECANCELED);
        strand_exception_release(e);
    }
}
