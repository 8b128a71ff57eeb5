/*
 * Scopes of services: children that end without a failure are consumed by themselves.
 */
#define SUITE service
#include "test.h"

#include "strand/pool.h"
#include "strand/sync.h"

static _Atomic int dropped, order_is_kept;

/* A result is the number of its child. */
static void drop_number(void *number)
{
    order_is_kept = order_is_kept && (intptr_t)number == dropped + 1;
    dropped++;
}

static strand spawn_numbered(strand_scope scope, strand_fn *fn, int number)
{
    return strand_spawn_with(scope, STRAND_ATTR(.drop = drop_number), fn, TEST_PTR(number), 0);
}

static void begin(void)
{
    dropped = 0;
    order_is_kept = 1;
}

/* ---- consumed -------------------------------------------------------------------------------------- */

/* contract 4.72 */
TEST_INSIDE(children_that_have_returned_are_consumed_by_the_next_spawn_and_not_counted)
{
    begin();
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    for (int i = 1; i <= 100; i++) {
        strand child = spawn_numbered(scope, test_return, i);
        CHECK_EQ(dropped, i - 1);
        strand_wait(child);
        CHECK_EQ(strand_scope_count(scope), 0);
    }
    strand_scope_join(scope);
    CHECK_EQ(dropped, 100);
    CHECK(order_is_kept);
}

static strand_event turns[4];

static void *end_in_turn(void *number)
{
    strand_event_wait(&turns[4 - (intptr_t)number]);
    return number;
}

/* contract 4.72 */
TEST_INSIDE(joining_the_scope_consumes_in_the_order_of_ends)
{
    begin();
    memset(turns, 0, sizeof turns);
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    strand child[4];
    for (int i = 3; i >= 0; i--) /* the oldest ends last */
        child[3 - i] = spawn_numbered(scope, end_in_turn, i + 1);
    for (int i = 3; i >= 0; i--) {
        strand_event_set(&turns[i]);
        strand_wait(child[i]);
    }
    strand_scope_join(scope);
    CHECK_EQ(dropped, 4);
    CHECK(order_is_kept);
}

static void *spawn_hundred(void *scope)
{
    for (int i = 0; i < 100; i++) {
        strand_spawn_with(*(strand_scope *)scope, STRAND_ATTR(.drop = drop_number), test_return, NULL, 0);
        strand_yield();
    }
    return NULL;
}

/* contract 4.72 */
TEST_INSIDE(strands_that_others_spawn_into_an_open_service_are_consumed_while_its_owner_joins_it)
{
    begin();
    static strand_scope scope;
    STRAND_SCOPE_WITH(service, STRAND_SERVICE | STRAND_OPEN);
    scope = service;
    for (int i = 0; i < 4; i++)
        strand_spawn(service, spawn_hundred, &scope);
    strand_scope_join(service);
    CHECK_EQ(dropped, 400);
    CHECK_EQ(strand_scope_count(service), 0);
}

static void *spawn_twenty(void *scope)
{
    for (int i = 0; i < 20; i++) {
        strand_spawn(*(strand_scope *)scope, test_yield, NULL);
        strand_yield();
    }
    return NULL;
}

static void *spawn_twenty_one_by_one(void *scope)
{
    for (int i = 0; i < 20; i++)
        strand_wait(strand_spawn(*(strand_scope *)scope, test_return, NULL));
    int left = -1;
    CHECK(sscanf(test_dump(), "strands: %*d, besides %d ended, not joined;", &left) == 1);
    CHECK(left <= 1);
    return NULL;
}

/* A dump counts the children that have ended and that nobody has consumed. */
/* contract 4.72 */
TEST_INSIDE(a_service_whose_owner_sleeps_keeps_no_ended_children_while_others_spawn_into_it)
{
    static strand_scope scope;
    STRAND_SCOPE(outer);
    STRAND_SCOPE_WITH(service, STRAND_SERVICE | STRAND_OPEN);
    scope = service;
    strand_join(strand_spawn(outer, spawn_twenty_one_by_one, &scope));
    strand_scope_join(service);
    CHECK_EQ(strand_scope_count(service), 0);
}

enum { BLOCKED = 32 };

struct crowd {
    strand_scope service;
    strand_event turns[BLOCKED];
    strand children[BLOCKED];
};

static void *await_turn(void *turn)
{
    strand_event_wait(turn);
    return NULL;
}

/* Never more than two ended children are left, which are not enough to wake the owner, but at last all have ended. */
static void *end_and_consume(void *arg)
{
    struct crowd *crowd = arg;
    test_await_blocked("joins its scope", 1);
    for (int i = 0; i < BLOCKED; i++) {
        strand_event_set(&crowd->turns[i]);
        strand_wait(crowd->children[i]);
        if (i < BLOCKED - 1)
            strand_wait(strand_spawn(crowd->service, test_return, NULL));
    }
    return NULL;
}

TEST_INSIDE(a_join_of_a_service_ends_though_others_consume_children_meanwhile)
{
    static struct crowd crowd;
    memset(&crowd, 0, sizeof crowd);
    STRAND_SCOPE(outer);
    STRAND_SCOPE_WITH(service, STRAND_SERVICE | STRAND_OPEN);
    crowd.service = service;
    for (int i = 0; i < BLOCKED; i++)
        crowd.children[i] = strand_spawn(service, await_turn, &crowd.turns[i]);
    strand other = strand_spawn(outer, end_and_consume, &crowd);
    strand_scope_join(service);
    CHECK_EQ(strand_scope_count(service), 0);
    strand_join(other);
}

TEST_INSIDE(several_strands_spawn_into_a_service_that_is_joined)
{
    static strand_scope scope;
    STRAND_SCOPE(outer);
    STRAND_SCOPE_WITH(service, STRAND_SERVICE | STRAND_OPEN);
    scope = service;
    for (int i = 0; i < 40; i++)
        strand_spawn(service, test_yield, NULL);
    for (int i = 0; i < 3; i++)
        strand_spawn(outer, spawn_twenty, &scope);
    strand_scope_join(service);
    strand_scope_join(outer);
    strand_scope_join(service);
    CHECK_EQ(strand_scope_count(service), 0);
}

static void *await_turn_shielded(void *turn)
{
    STRAND_SHIELD;
    strand_event_wait(turn);
    return NULL;
}

static _Atomic int late_children;

static void *count_late(void *arg)
{
    late_children++;
    return arg;
}

static void *spawn_three_late(void *service)
{
    for (int i = 0; i < 3; i++)
        strand_spawn(*(strand_scope *)service, count_late, NULL);
    return NULL;
}

/* The scope may have been left by then: the spawn throws. */
static void *spawn_when_it_has_ended(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < 3; i++)
        strand_wait(crowd->children[i]);
    strand_exception_release(strand_try(spawn_three_late, &crowd->service, NULL));
    return NULL;
}

static void *set_turns_when_it_leaves(void *arg)
{
    struct crowd *crowd = arg;
    test_await_blocked("leaves a scope", 1);
    for (int i = 0; i < 3; i++)
        strand_event_set(&crowd->turns[i]);
    return NULL;
}

static void leave_service(struct crowd *crowd, strand_scope outer)
{
    STRAND_SCOPE_WITH(service, STRAND_SERVICE | STRAND_OPEN);
    crowd->service = service;
    for (int i = 0; i < 3; i++) {
        crowd->children[i] = strand_spawn(service, await_turn_shielded, &crowd->turns[i]);
        strand_cancel(crowd->children[i], NULL);
    }
    strand_spawn(outer, spawn_when_it_has_ended, crowd);
    strand_spawn(outer, set_turns_when_it_leaves, crowd);
    test_await_blocked("waits for the end of", 1);
}

TEST_INSIDE(a_service_that_is_left_waits_for_its_children_also_while_others_spawn_into_it)
{
    static struct crowd crowd;
    memset(&crowd, 0, sizeof crowd);
    late_children = 0;
    STRAND_SCOPE(outer);
    leave_service(&crowd, outer);
    int late = late_children; /* what was spawned before it was closed has ended */
    strand_scope_join(outer);
    CHECK_EQ(late_children, late);
}

/* contract 4.72 */
TEST_INSIDE(children_cancelled_by_any_strand_are_consumed_too)
{
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    for (int i = 0; i < 10; i++) {
        struct test_child blocked = {0};
        strand child = test_spawn_started(scope, test_child_blocks, &blocked);
        strand_cancel(child, NULL);
        strand_wait(child);
        CHECK_EQ(strand_scope_count(scope), 0);
    }
    strand_scope_join(scope);
}

/* ---- live strands ---------------------------------------------------------------------------------- */

static void *leave_with_a_returned_one(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    strand_wait(strand_spawn(scope, test_return, NULL));
    return arg;
}

static void *leave_with_a_blocked_one(void *arg)
{
    static struct test_child blocked;
    blocked = (struct test_child){0};
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    test_spawn_started(scope, test_child_blocks, &blocked);
    return arg;
}

/* contract 4.72 */
TEST_INSIDE(a_child_that_has_returned_is_not_live_one_that_runs_is)
{
    CHECK_PTR(strand_try(leave_with_a_returned_one, NULL, NULL), NULL);
    CHECK_THROWS(leave_with_a_blocked_one, NULL, &STRAND_LIVE_STRANDS);
}

/* ---- failures --------------------------------------------------------------------------------------- */

static void *serve_until_one_fails(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE);
    for (int i = 0;; i++)
        strand_wait(strand_spawn(scope, i == 10 ? test_throw : test_return, NULL));
    return arg;
}

TEST_INSIDE(a_failure_interrupts_the_owner_of_a_service)
{
    CHECK_THROWS(serve_until_one_fails, NULL, &TEST_ERROR);
}

TEST_INSIDE(a_service_that_collects_gives_its_failures_and_nothing_else)
{
    begin();
    int failed = 0;
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE | STRAND_COLLECT);
    for (int i = 1; i <= 30; i++)
        i % 10 ? (void)spawn_numbered(scope, test_return, i) : (void)strand_spawn(scope, test_throw, NULL);
    while (strand_scope_wait_next(scope).bits[0]) {
        strand_exception *e = strand_scope_failure(scope, NULL);
        CHECK_KIND(e, &TEST_ERROR);
        strand_exception_release(e);
        failed++;
    }
    CHECK_EQ(failed, 3);
    CHECK_EQ(dropped, 27);
}

static void *spawn_hundred_of_which_ten_fail(void *scope)
{
    for (int i = 0; i < 100; i++) {
        strand_spawn(*(strand_scope *)scope, i % 10 ? test_return : test_throw, NULL);
        strand_yield();
    }
    return NULL;
}

TEST_INSIDE(strands_that_return_while_the_owner_of_a_service_looks_for_failures_are_not_given)
{
    int failed = 0;
    static strand_scope scope;
    STRAND_SCOPE_WITH(service, STRAND_SERVICE | STRAND_COLLECT | STRAND_OPEN);
    scope = service;
    for (int i = 0; i < 4; i++)
        strand_spawn(service, spawn_hundred_of_which_ten_fail, &scope);
    while (strand_scope_wait_next(service).bits[0]) {
        strand_exception *e = strand_scope_failure(service, NULL);
        CHECK_KIND(e, &TEST_ERROR);
        strand_exception_release(e);
        failed++;
    }
    CHECK_EQ(failed, 40);
}

static void *first_fails(void *number)
{
    if ((intptr_t)number == 1)
        strand_throw(&TEST_ERROR, "on purpose");
    return number;
}

static void *join_service(void *arg)
{
    begin();
    STRAND_SCOPE_WITH(scope, STRAND_SERVICE | STRAND_TOGETHER);
    for (int i = 1; i <= 3; i++)
        spawn_numbered(scope, first_fails, i);
    strand_scope_join(scope);
    return arg;
}

TEST_INSIDE(joining_a_service_throws_the_failure)
{
    CHECK_THROWS(join_service, NULL, &TEST_ERROR);
}

/* ---- the log warns of an owner that does not consume --------------------------------------------------------- */

enum { TOO_MANY = 10000 };

static _Atomic int warnings;

static void count_warnings(const char *text, void *arg)
{
    (void)arg;
    warnings += strstr(text, "its owner has consumed none of them") != NULL;
}

static void drop_nothing(void *result)
{
    (void)result;
}

/* Each child has ended before the next is spawned. */
static void spawn_dropped(strand_scope scope, int count)
{
    for (int i = 0; i < count; i++)
        strand_wait(strand_spawn_with(scope, STRAND_ATTR(.drop = drop_nothing), test_return, NULL, 0));
}

static void *spawn_few(void *scope)
{
    spawn_dropped(*(strand_scope *)scope, 3);
    return NULL;
}

static void *spawn_too_many(void *scope)
{
    spawn_dropped(*(strand_scope *)scope, TOO_MANY + 2);
    return NULL;
}

static void *own_but_do_not_consume(void *arg)
{
    STRAND_SCOPE_WITH(service, STRAND_SERVICE | STRAND_OPEN);
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, spawn_few, &service));
    CHECK_EQ(warnings, 0);
    strand_join(strand_spawn(scope, spawn_too_many, &service));
    CHECK_EQ(warnings, 1);
    strand_scope_join(service);
    return arg;
}

static void *own_and_consume(void *arg)
{
    STRAND_SCOPE_WITH(service, STRAND_SERVICE | STRAND_OPEN);
    spawn_too_many(&service);
    return arg;
}

static int warnings_of(strand_fn *root)
{
    strand_options options = test_options();
    options.on_log = count_warnings;
    warnings = 0;
    strand_run(&options, root, NULL);
    return warnings;
}

TEST_REAL(the_log_warns_once_of_a_service_whose_owner_does_not_run_the_drop_functions)
{
    CHECK_EQ(warnings_of(own_but_do_not_consume), 1);
    CHECK_EQ(warnings_of(own_and_consume), 0);
}
