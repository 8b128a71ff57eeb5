/*
 * Priority semaphores: waiters are served in an order of the user's, and the worst can be pruned.
 */
#define SUITE prio
#include "test.h"

#include "strand/limit.h"
#include "strand/sync.h"

#include <errno.h>

static int by_number(const void *a, const void *b, void *arg)
{
    (void)arg;
    intptr_t x = (intptr_t)a, y = (intptr_t)b;
    return (x > y) - (x < y);
}

#define MAKE(sem, ...)                                                                                                 \
    strand_prio_semaphore sem;                                                                                         \
    strand_prio_init(&sem, &(strand_prio_options){.size = sizeof(strand_prio_options), __VA_ARGS__})

/* One that waits for a permit with a number as its key, logs it, and gives the permit back. */
struct waiter {
    strand_prio_semaphore *sem;
    intptr_t key;
    int result;
};

static void *take_and_log(void *arg)
{
    struct waiter *waiter = arg;
    waiter->result = strand_prio_acquire(waiter->sem, TEST_PTR(waiter->key));
    if (waiter->result == 0) {
        test_log("%d", (int)waiter->key);
        strand_prio_release(waiter->sem);
    }
    return arg;
}

static void yield_until_waiting(strand_prio_semaphore *sem, size_t n)
{
    while (strand_prio_waiting(sem) != n)
        strand_sleep(1);
}

/* Spawns one that waits, and sees it wait. */
static strand spawn_waiter(strand_scope scope, struct waiter *waiter)
{
    size_t before = strand_prio_waiting(waiter->sem);
    strand child = strand_spawn(scope, take_and_log, waiter);
    yield_until_waiting(waiter->sem, before + 1);
    return child;
}

static strand_exception *join_catching(strand child)
{
    strand_exception *volatile caught = NULL;
    STRAND_TRY {
        strand_join(child);
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        caught = strand_exception_keep(e);
    }
    STRAND_END
    return caught;
}

/* ---- permits --------------------------------------------------------------------------------------- */

/* */
TEST_INSIDE(free_permits_are_taken_at_once_up_to_the_limit)
{
    MAKE(sem, .permits = 3, .compare = by_number);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(strand_prio_acquire(&sem, TEST_PTR(i)), 0);
        CHECK_EQ(strand_prio_in_flight(&sem), i);
    }
    CHECK_EQ(strand_prio_try_acquire(&sem, TEST_PTR(0)), -EAGAIN);
    strand_prio_release(&sem);
    CHECK_EQ(strand_prio_in_flight(&sem), 2);
    CHECK_EQ(strand_prio_try_acquire(&sem, TEST_PTR(0)), 0);
    for (int i = 0; i < 3; i++)
        strand_prio_release(&sem);
    CHECK_EQ(strand_prio_in_flight(&sem), 0);
}

/* contract 5.6 */
TEST_INSIDE(the_best_waiter_gets_the_permit_whenever_it_came)
{
    static const int keys[] = {5, 3, 9, 1, 7, 3};
    struct waiter waiters[6];
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(100));
    STRAND_SCOPE(s);
    for (int i = 0; i < 6; i++) {
        waiters[i] = (struct waiter){&sem, keys[i], 0};
        spawn_waiter(s, &waiters[i]);
    }
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("1 3 3 5 7 9");
}

struct pair {
    int order, name;
};

static int by_order(const void *a, const void *b, void *arg)
{
    *(int *)arg += 1;
    return ((const struct pair *)a)->order - ((const struct pair *)b)->order;
}

struct pair_waiter {
    strand_prio_semaphore *sem;
    struct pair pair;
};

static void *take_pair(void *arg)
{
    struct pair_waiter *waiter = arg;
    strand_prio_acquire(waiter->sem, &waiter->pair);
    test_log("%d", waiter->pair.name);
    strand_prio_release(waiter->sem);
    return NULL;
}

/* */
TEST_INSIDE(among_equals_first_come_is_first_served)
{
    struct pair_waiter waiters[20];
    int compared = 0;
    struct pair first = {0, 0};
    MAKE(sem, .permits = 1, .compare = by_order, .arg = &compared);
    strand_prio_acquire(&sem, &first);
    STRAND_SCOPE(s);
    for (int i = 0; i < 20; i++) {
        waiters[i] = (struct pair_waiter){&sem, {i % 2, i}};
        strand_spawn(s, take_pair, &waiters[i]);
        yield_until_waiting(&sem, (size_t)i + 1);
    }
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("0 2 4 6 8 10 12 14 16 18 1 3 5 7 9 11 13 15 17 19");
    CHECK(compared > 0);
}

TEST_INSIDE(without_an_order_first_come_is_first_served)
{
    struct waiter waiters[10];
    MAKE(sem, .permits = 1);
    strand_prio_acquire(&sem, NULL);
    STRAND_SCOPE(s);
    for (int i = 0; i < 10; i++) {
        waiters[i] = (struct waiter){&sem, 10 - i, 0};
        spawn_waiter(s, &waiters[i]);
    }
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("10 9 8 7 6 5 4 3 2 1");
}

/* */
TEST_INSIDE(a_permit_is_handed_over_so_that_nobody_takes_it_between)
{
    struct waiter waiter = {NULL, 1, 0};
    MAKE(sem, .permits = 1, .compare = by_number);
    waiter.sem = &sem;
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    strand child = spawn_waiter(s, &waiter);
    strand_prio_release(&sem);
    if (test_threads() == 1) {
        CHECK_EQ(strand_prio_in_flight(&sem), 1);
        CHECK_EQ(strand_prio_try_acquire(&sem, TEST_PTR(0)), -EAGAIN);
    }
    strand_join(child);
    CHECK_EQ(strand_prio_in_flight(&sem), 0);
}

/* */
TEST_INSIDE(a_holder_keeps_its_permit_when_a_better_waiter_comes)
{
    struct waiter waiter = {NULL, 0, 0};
    MAKE(sem, .permits = 1, .compare = by_number);
    waiter.sem = &sem;
    strand_prio_acquire(&sem, TEST_PTR(50));
    STRAND_SCOPE(s);
    strand child = spawn_waiter(s, &waiter);
    for (int i = 0; i < 20; i++)
        strand_yield();
    CHECK(!strand_ended(child));
    strand_prio_release(&sem);
    strand_join(child);
}

static void *throw_with_a_permit(void *sem)
{
    STRAND_PRIO_PERMIT(sem, TEST_PTR(1));
    CHECK_EQ(strand_prio_in_flight(sem), 1);
    return test_throw(NULL);
}

TEST_INSIDE(a_permit_can_be_bound_to_a_block_and_goes_back_however_that_is_left)
{
    MAKE(sem, .permits = 1, .compare = by_number);
    {
        STRAND_PRIO_PERMIT(&sem, TEST_PTR(1));
        CHECK_EQ(strand_prio_in_flight(&sem), 1);
    }
    CHECK_EQ(strand_prio_in_flight(&sem), 0);
    CHECK_THROWS(throw_with_a_permit, &sem, &TEST_ERROR);
    CHECK_EQ(strand_prio_in_flight(&sem), 0);
}

static void *bind_a_permit(void *sem)
{
    STRAND_PRIO_PERMIT(sem, TEST_PTR(2));
    test_log("inside");
    return NULL;
}

TEST_INSIDE(a_block_whose_permit_is_refused_is_not_entered)
{
    struct waiter waiter = {NULL, 1, 0};
    MAKE(sem, .permits = 1, .compare = by_number, .max_waiters = 1, .on_full = STRAND_PRIO_FULL_REFUSE);
    waiter.sem = &sem;
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    spawn_waiter(s, &waiter);
    strand_exception *e = strand_try(bind_a_permit, &sem, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -ENOBUFS);
    strand_exception_release(e);
    CHECK_EQ(strand_prio_in_flight(&sem), 1);
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("1");
}

static void *release_for(void *sem)
{
    strand_prio_release(sem);
    return NULL;
}

TEST_INSIDE(a_permit_may_be_given_back_by_another_strand)
{
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(1));
    STRAND_SCOPE(s);
    strand_spawn(s, release_for, &sem);
    strand_prio_acquire(&sem, TEST_PTR(2));
    strand_scope_join(s);
    strand_prio_release(&sem);
}

/* ---- interruption ---------------------------------------------------------------------------------- */

TEST_INSIDE(an_interrupted_waiter_takes_nothing_and_leaves_no_trace)
{
    struct waiter waiters[3];
    strand children[3];
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    for (int i = 0; i < 3; i++) {
        waiters[i] = (struct waiter){&sem, i + 1, 0};
        children[i] = spawn_waiter(s, &waiters[i]);
    }
    strand_cancel(children[0], "not wanted");
    strand_exception *e = join_catching(children[0]);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_why(e), "not wanted");
    strand_exception_release(e);
    CHECK_EQ(strand_prio_waiting(&sem), 2);
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("2 3");
    CHECK_EQ(strand_prio_in_flight(&sem), 0);
}

TEST_INSIDE(a_deadline_ends_the_wait)
{
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(0));
    volatile bool timed_out = false;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        strand_prio_acquire(&sem, TEST_PTR(1));
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        timed_out = true;
    }
    STRAND_END
    CHECK(timed_out);
    CHECK_EQ(strand_prio_waiting(&sem), 0);
    CHECK_EQ(strand_prio_in_flight(&sem), 1);
    strand_prio_release(&sem);
}

static void *acquire_interrupted(void *arg)
{
    strand_prio_acquire(arg, TEST_PTR(1));
    CHECK_FAIL("it was interrupted before");
    return NULL;
}

TEST_INSIDE(an_interrupted_strand_does_not_take_a_free_permit)
{
    MAKE(sem, .permits = 1, .compare = by_number);
    test_run_cancelled(acquire_interrupted, &sem);
    CHECK_EQ(strand_prio_in_flight(&sem), 0);
}

static void *try_and_release(void *arg)
{
    CHECK_EQ(strand_prio_try_acquire(arg, TEST_PTR(1)), 0);
    strand_prio_release(arg);
    test_log("done");
    strand_checkpoint();
    return NULL;
}

TEST_INSIDE(trying_and_giving_back_are_never_interrupted)
{
    MAKE(sem, .permits = 1, .compare = by_number);
    test_run_cancelled(try_and_release, &sem);
    CHECK_LOG("done");
}

/* ---- the hook: priorities that change --------------------------------------------------------------- */

static int64_t first_number[16];

static int64_t asked(const void *key, void *arg)
{
    ++*(int *)arg;
    return first_number[(intptr_t)key];
}

/* */
TEST_INSIDE(the_hook_is_asked_when_a_permit_comes_free)
{
    struct waiter waiters[3];
    int count = 0;
    MAKE(sem, .permits = 1, .priority = asked, .arg = &count);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    for (int i = 0; i < 3; i++) {
        waiters[i] = (struct waiter){&sem, i + 1, 0};
        first_number[i + 1] = i;
        spawn_waiter(s, &waiters[i]);
    }
    first_number[1] = 7;
    first_number[2] = 9;
    first_number[3] = 8;
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("2 3 1");
    CHECK(count >= 3);
}

/* */
TEST_INSIDE(a_permit_stays_free_while_nobody_may_go)
{
    struct waiter waiters[2];
    int count = 0;
    MAKE(sem, .permits = 1, .priority = asked, .arg = &count);
    first_number[0] = 0;
    first_number[1] = first_number[2] = STRAND_NOT_NOW;
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    for (int i = 0; i < 2; i++) {
        waiters[i] = (struct waiter){&sem, i + 1, 0};
        spawn_waiter(s, &waiters[i]);
    }
    strand_prio_release(&sem);
    CHECK_EQ(strand_prio_in_flight(&sem), 0);
    CHECK_EQ(strand_prio_try_acquire(&sem, TEST_PTR(1)), -EAGAIN);
    strand_prio_reconsider(&sem);
    CHECK_EQ(strand_prio_waiting(&sem), 2);
    first_number[2] = 1;
    strand_prio_reconsider(&sem);
    yield_until_waiting(&sem, 1);
    first_number[1] = 1;
    strand_prio_reconsider(&sem);
    strand_scope_join(s);
    CHECK_LOG("2 1");
}

TEST_INSIDE(a_waiter_that_may_pass_takes_a_permit_that_others_may_not_take_yet)
{
    struct waiter waiter = {NULL, 1, 0};
    int count = 0;
    MAKE(sem, .permits = 1, .priority = asked, .arg = &count);
    waiter.sem = &sem;
    first_number[1] = STRAND_NOT_NOW;
    first_number[2] = 0;
    STRAND_SCOPE(s);
    spawn_waiter(s, &waiter);
    CHECK_EQ(strand_prio_acquire(&sem, TEST_PTR(2)), 0);
    first_number[1] = 0;
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("1");
}

TEST_INSIDE(a_reconsideration_hands_out_all_free_permits)
{
    struct waiter waiters[5];
    int count = 0;
    MAKE(sem, .permits = 3, .priority = asked, .arg = &count);
    STRAND_SCOPE(s);
    for (int i = 0; i < 5; i++) {
        waiters[i] = (struct waiter){&sem, i + 1, 0};
        first_number[i + 1] = STRAND_NOT_NOW;
        spawn_waiter(s, &waiters[i]);
    }
    for (int i = 0; i < 5; i++)
        first_number[i + 1] = i;
    strand_prio_reconsider(&sem);
    if (test_threads() == 1)
        CHECK_EQ(strand_prio_in_flight(&sem), 3);
    strand_scope_join(s);
    CHECK_EQ(strand_prio_in_flight(&sem), 0);
}

/* ---- pruning ---------------------------------------------------------------------------------------- */

/* */
TEST_INSIDE(the_worst_waiters_are_pruned_until_so_many_are_left)
{
    static const int keys[] = {5, 3, 9, 1, 7};
    struct waiter waiters[5];
    strand children[5];
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    for (int i = 0; i < 5; i++) {
        waiters[i] = (struct waiter){&sem, keys[i], 0};
        children[i] = spawn_waiter(s, &waiters[i]);
    }
    CHECK_EQ(strand_prio_prune(&sem, 5, NULL), 0);
    CHECK_EQ(strand_prio_prune(&sem, 3, "too many"), 2);
    CHECK_EQ(strand_prio_waiting(&sem), 3);
    for (int i = 0; i < 5; i++) {
        if (keys[i] < 7)
            continue;
        strand_exception *e = join_catching(children[i]);
        CHECK_KIND(e, &STRAND_PRUNED);
        CHECK(strand_exception_is(e, &STRAND_CHILD_CANCELLED));
        CHECK_STR(strand_exception_why(e), "too many");
        CHECK_STR(strand_exception_who(e), "root");
        CHECK_CONTAINS(strand_exception_text(e), "pruned");
        strand_exception_release(e);
    }
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("1 3 5");
}

TEST_INSIDE(the_latest_of_equal_waiters_is_pruned_first)
{
    struct pair_waiter waiters[4];
    strand children[4];
    int compared = 0;
    struct pair first = {0, 0};
    MAKE(sem, .permits = 1, .compare = by_order, .arg = &compared);
    strand_prio_acquire(&sem, &first);
    STRAND_SCOPE(s);
    for (int i = 0; i < 4; i++) {
        waiters[i] = (struct pair_waiter){&sem, {1, i}};
        children[i] = strand_spawn(s, take_pair, &waiters[i]);
        yield_until_waiting(&sem, (size_t)i + 1);
    }
    CHECK_EQ(strand_prio_prune(&sem, 2, NULL), 2);
    for (int i = 2; i < 4; i++) {
        strand_exception *e = join_catching(children[i]);
        CHECK_KIND(e, &STRAND_PRUNED);
        strand_exception_release(e);
    }
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("0 1");
}

TEST_INSIDE(with_a_hook_those_are_pruned_first_that_may_not_go_and_then_the_lowest)
{
    struct waiter waiters[4];
    strand children[4];
    int count = 0;
    MAKE(sem, .permits = 1, .priority = asked, .arg = &count);
    first_number[0] = 0;
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    for (int i = 0; i < 4; i++) {
        waiters[i] = (struct waiter){&sem, i + 1, 0};
        first_number[i + 1] = i == 2 ? STRAND_NOT_NOW : 10 - i;
        children[i] = spawn_waiter(s, &waiters[i]);
    }
    count = 0;
    CHECK_EQ(strand_prio_prune(&sem, 2, NULL), 2);
    CHECK_EQ(count, 4); /* once for each waiter */
    for (int i = 2; i < 4; i++) {
        strand_exception *e = join_catching(children[i]);
        CHECK_KIND(e, &STRAND_PRUNED);
        strand_exception_release(e);
    }
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("1 2");
}

/* */
TEST_INSIDE(the_parent_distinguishes_a_pruned_child_from_one_that_it_cancelled)
{
    struct waiter waiters[2];
    strand children[2];
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    for (int i = 0; i < 2; i++) {
        waiters[i] = (struct waiter){&sem, i + 1, 0};
        children[i] = spawn_waiter(s, &waiters[i]);
    }
    strand_cancel(children[0], "by me");
    CHECK_EQ(strand_prio_prune(&sem, 0, "by the queue"), 1);
    strand_exception *own = join_catching(children[0]), *pruned = join_catching(children[1]);
    CHECK_KIND(own, &STRAND_CHILD_CANCELLED);
    CHECK_KIND(pruned, &STRAND_PRUNED);
    strand_exception_release(own);
    strand_exception_release(pruned);
    strand_prio_release(&sem);
}

/* */
TEST_INSIDE(the_first_cancel_of_a_strand_counts_also_if_its_owner_cancels_it_later)
{
    struct waiter waiter = {NULL, 1, 0};
    MAKE(sem, .permits = 1, .compare = by_number);
    waiter.sem = &sem;
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    strand child = spawn_waiter(s, &waiter);
    CHECK_EQ(strand_prio_prune(&sem, 0, "first"), 1);
    strand_cancel(child, "second");
    strand_exception *e = join_catching(child);
    CHECK_KIND(e, &STRAND_PRUNED);
    CHECK_STR(strand_exception_why(e), "first");
    strand_exception_release(e);
    strand_prio_release(&sem);
}

/* Lets through what its child ends by. */
static void *let_through(void *arg)
{
    STRAND_SCOPE(s);
    return strand_join(strand_spawn(s, take_and_log, arg));
}

static void *let_through_twice(void *arg)
{
    STRAND_SCOPE(s);
    return strand_join(strand_spawn(s, let_through, arg));
}

/* The owner of `fn`, of which a descendant waits and is pruned. */
static strand_exception *join_above_a_pruned_one(strand_fn *fn)
{
    struct waiter waiter = {NULL, 1, 0};
    MAKE(sem, .permits = 1, .compare = by_number);
    waiter.sem = &sem;
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, fn, &waiter);
    yield_until_waiting(&sem, 1);
    CHECK_EQ(strand_prio_prune(&sem, 0, "full"), 1);
    strand_prio_release(&sem);
    return join_catching(child);
}

/* */
TEST_INSIDE(a_child_that_lets_a_pruning_of_its_own_child_through_was_not_pruned_itself)
{
    strand_fn *const fns[] = {let_through, let_through_twice};
    for (int i = 0; i < 2; i++) {
        strand_exception *e = join_above_a_pruned_one(fns[i]);
        CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
        CHECK_KIND(strand_exception_cause(e), &STRAND_PRUNED);
        CHECK_STR(strand_exception_why(e), "full");
        CHECK_CONTAINS(strand_exception_text(e), "ended, because");
        CHECK_CONTAINS(strand_exception_text(e), "pruned by root: full");
        strand_exception_release(e);
    }
}

/* */
TEST_INSIDE(joining_a_scope_distinguishes_the_two_too)
{
    struct waiter waiters[2];
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    for (int i = 0; i < 2; i++) {
        waiters[i] = (struct waiter){&sem, i, 0};
        strand_spawn(s, i ? let_through : take_and_log, &waiters[i]);
    }
    yield_until_waiting(&sem, 2);
    CHECK_EQ(strand_prio_prune(&sem, 0, NULL), 2);
    strand_exception *volatile e = NULL;
    STRAND_TRY {
        strand_scope_join(s);
    }
    STRAND_CATCH(&STRAND_ANY, caught) {
        e = strand_exception_keep(caught);
    }
    STRAND_END
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_KIND(strand_exception_cause(e), &STRAND_PRUNED);
    CHECK_EQ(test_count_kind(e, &STRAND_PRUNED), 1); /* the suppressed one: the child that was pruned itself */
    strand_exception_release(e);
    strand_prio_release(&sem);
}

/* Its child is pruned, then it is pruned itself; it ends by what its child ended by. */
static void *let_through_and_be_pruned(void *arg)
{
    struct waiter *waiter = arg;
    STRAND_SCOPE(s);
    strand_exception *e = join_catching(strand_spawn(s, take_and_log, waiter));
    CHECK_KIND(e, &STRAND_PRUNED);
    strand_case permit = strand_on_prio_permit(waiter->sem, TEST_PTR(2));
    strand_exception *volatile interrupted = NULL;
    STRAND_TRY {
        strand_select(&permit, 1, 0);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, caught) {
        interrupted = strand_exception_keep(caught);
    }
    STRAND_END
    CHECK(interrupted != NULL);
    strand_exception_release(interrupted);
    strand_rethrow(e);
}

TEST_INSIDE(a_pruned_child_that_lets_another_pruning_through_is_a_pruned_one_still)
{
    struct waiter waiter = {NULL, 1, 0};
    MAKE(sem, .permits = 1, .compare = by_number);
    waiter.sem = &sem;
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, let_through_and_be_pruned, &waiter);
    for (int i = 0; i < 2; i++) {
        yield_until_waiting(&sem, 1);
        CHECK_EQ(strand_prio_prune(&sem, 0, NULL), 1); /* from here on nobody waits, until the child does */
    }
    strand_exception *e = join_catching(child);
    CHECK_KIND(e, &STRAND_PRUNED);
    strand_exception_release(e);
    strand_prio_release(&sem);
}

/* */
TEST_INSIDE(pruning_a_child_interrupts_neither_its_owner_nor_its_siblings)
{
    static const unsigned flags[] = {0, STRAND_TOGETHER, STRAND_COLLECT};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct waiter waiters[2];
        MAKE(sem, .permits = 1, .compare = by_number);
        strand_prio_acquire(&sem, TEST_PTR(0));
        STRAND_SCOPE_WITH(s, flags[i]);
        for (int k = 0; k < 2; k++)
            waiters[k] = (struct waiter){&sem, k + 1, 0};
        strand good = spawn_waiter(s, &waiters[0]), bad = spawn_waiter(s, &waiters[1]);
        CHECK_EQ(strand_prio_prune(&sem, 1, NULL), 1);
        while (!strand_ended(bad))
            strand_yield();
        strand_checkpoint();
        if (flags[i] == STRAND_COLLECT)
            CHECK(strand_scope_failure(s, NULL) == NULL);
        strand_prio_release(&sem);
        CHECK_PTR(strand_join(good), &waiters[0]);
        strand_exception *e = join_catching(bad);
        CHECK_KIND(e, &STRAND_PRUNED);
        strand_exception_release(e);
    }
}

static void *join_all_pruned(void *arg)
{
    strand_exception *(*more)(strand_scope scope) = (strand_exception * (*)(strand_scope))(uintptr_t)arg;
    struct waiter waiters[3];
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    for (int i = 0; i < 3; i++) {
        waiters[i] = (struct waiter){&sem, i + 1, 0};
        spawn_waiter(s, &waiters[i]);
    }
    CHECK_EQ(strand_prio_prune(&sem, 1, NULL), 2);
    strand_prio_release(&sem);
    if (more)
        more(s);
    strand_scope_join(s);
    return NULL;
}

TEST_INSIDE(joining_the_scope_throws_that_children_were_pruned_after_all_have_ended)
{
    strand_exception *e = strand_try(join_all_pruned, NULL, NULL);
    CHECK_KIND(e, &STRAND_PRUNED);
    CHECK_EQ(test_count_kind(e, &STRAND_PRUNED), 2);
    strand_exception_release(e);
    CHECK_LOG("1");
}

static strand_exception *spawn_a_failure(strand_scope scope)
{
    STRAND_SHIELD;
    strand failed = strand_spawn(scope, test_throw, NULL);
    while (!strand_ended(failed))
        strand_yield();
    return NULL;
}

TEST_INSIDE(a_failure_comes_before_the_pruned_ones_which_stand_suppressed_in_it)
{
    strand_exception *e = strand_try(join_all_pruned, (void *)(uintptr_t)spawn_a_failure, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_EQ(test_count_kind(e, &STRAND_PRUNED), 2);
    strand_exception_release(e);
}

static void *throw_later(void *arg)
{
    STRAND_SHIELD;
    strand_sleep(STRAND_MS);
    return test_throw(arg);
}

static strand_exception *spawn_a_later_failure(strand_scope scope)
{
    strand_spawn(scope, throw_later, NULL);
    return NULL;
}

TEST_INSIDE(so_does_a_failure_that_comes_while_the_scope_is_joined)
{
    strand_exception *e = strand_try(join_all_pruned, (void *)(uintptr_t)spawn_a_later_failure, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_EQ(test_count_kind(e, &STRAND_PRUNED), 2);
    strand_exception_release(e);
}

static void *leave_a_pruned_one(void *arg)
{
    struct waiter waiter = {NULL, 1, 0};
    MAKE(sem, .permits = 1, .compare = by_number);
    waiter.sem = &sem;
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    spawn_waiter(s, &waiter);
    CHECK_EQ(strand_prio_prune(&sem, 0, NULL), 1);
    return arg;
}

TEST_INSIDE(a_scope_left_with_a_pruned_child_not_joined_has_live_strands)
{
    CHECK_THROWS(leave_a_pruned_one, NULL, &STRAND_LIVE_STRANDS);
}

static void *wait_in_a_shield(void *arg)
{
    STRAND_SHIELD;
    return take_and_log(arg);
}

TEST_INSIDE(a_shielded_waiter_is_not_pruned_the_next_worst_is)
{
    struct waiter waiters[2];
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    waiters[0] = (struct waiter){&sem, 1, 0};
    waiters[1] = (struct waiter){&sem, 2, 0};
    strand plain = spawn_waiter(s, &waiters[0]);
    strand shielded = strand_spawn(s, wait_in_a_shield, &waiters[1]);
    yield_until_waiting(&sem, 2);
    CHECK_EQ(strand_prio_prune(&sem, 0, NULL), 1);
    CHECK_EQ(strand_prio_waiting(&sem), 1);
    strand_exception *e = join_catching(plain);
    CHECK_KIND(e, &STRAND_PRUNED);
    strand_exception_release(e);
    strand_prio_release(&sem);
    strand_join(shielded);
    CHECK_LOG("2");
}

/* ---- a queue with a bound --------------------------------------------------------------------------- */

/* */
TEST_INSIDE(a_full_queue_prunes_the_worst_when_a_better_one_comes)
{
    struct waiter waiters[3];
    strand children[3];
    MAKE(sem, .permits = 1, .compare = by_number, .max_waiters = 2, .name = "pages");
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    for (int i = 0; i < 2; i++) {
        waiters[i] = (struct waiter){&sem, 5 + i, 0};
        children[i] = spawn_waiter(s, &waiters[i]);
    }
    waiters[2] = (struct waiter){&sem, 1, 0};
    children[2] = strand_spawn(s, take_and_log, &waiters[2]);
    strand_exception *e = join_catching(children[1]);
    CHECK_KIND(e, &STRAND_PRUNED);
    CHECK_CONTAINS(strand_exception_why(e), "pages");
    strand_exception_release(e);
    CHECK_EQ(strand_prio_waiting(&sem), 2);
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("1 5");
}

static void look_at_a_full_queue(int on_full)
{
    struct waiter waiter;
    MAKE(sem, .permits = 1, .compare = by_number, .max_waiters = 1, .on_full = on_full);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    waiter = (struct waiter){&sem, 5, 0};
    spawn_waiter(s, &waiter);
    strand_event never = {{0}};
    strand_case cases[] = {strand_on_event(&never), strand_on_prio_permit(&sem, TEST_PTR(1))};
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW), -EAGAIN);
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW | STRAND_SELECT_ORDERED), -EAGAIN);
    CHECK_EQ(strand_prio_waiting(&sem), 1);
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("5");
    test_log_clear();
}

TEST_INSIDE(a_select_that_does_not_wait_sends_nobody_out_of_a_full_queue)
{
    look_at_a_full_queue(STRAND_PRIO_FULL_PRUNE);
    look_at_a_full_queue(STRAND_PRIO_FULL_REFUSE);
}

/* */
TEST_INSIDE(the_worst_one_that_comes_to_a_full_queue_is_pruned_itself)
{
    struct waiter waiters[2];
    MAKE(sem, .permits = 1, .compare = by_number, .max_waiters = 1);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    waiters[0] = (struct waiter){&sem, 1, 0};
    waiters[1] = (struct waiter){&sem, 1, 0}; /* of equals the latest */
    spawn_waiter(s, &waiters[0]);
    strand_exception *e = join_catching(strand_spawn(s, take_and_log, &waiters[1]));
    CHECK_KIND(e, &STRAND_PRUNED);
    strand_exception_release(e);
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("1");
}

TEST_INSIDE(a_queue_that_refuses_returns_no_room)
{
    struct waiter waiters[2];
    MAKE(sem, .permits = 1, .compare = by_number, .max_waiters = 1, .on_full = STRAND_PRIO_FULL_REFUSE);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    waiters[0] = (struct waiter){&sem, 5, 0};
    waiters[1] = (struct waiter){&sem, 1, 0};
    spawn_waiter(s, &waiters[0]);
    strand_join(strand_spawn(s, take_and_log, &waiters[1]));
    CHECK_EQ(waiters[1].result, -ENOBUFS);
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("5");
}

TEST_INSIDE(a_root_strand_is_refused_instead_of_pruned)
{
    struct waiter waiter = {NULL, 1, 0};
    MAKE(sem, .permits = 1, .compare = by_number, .max_waiters = 1);
    waiter.sem = &sem;
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    spawn_waiter(s, &waiter);
    CHECK_EQ(strand_prio_acquire(&sem, TEST_PTR(2)), -ENOBUFS);
    strand_prio_release(&sem);
    strand_scope_join(s);
}

/* ---- select ------------------------------------------------------------------------------------------ */

TEST_INSIDE(a_select_takes_a_free_permit)
{
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_case cases[] = {strand_on_time((strand_time){0}), strand_on_prio_permit(&sem, TEST_PTR(1))};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    CHECK_EQ(cases[1].result, 0);
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW), -EAGAIN);
    strand_prio_release(&sem);
}

static void *select_permit(void *arg)
{
    struct waiter *waiter = arg;
    strand_case cases[] = {strand_on_prio_permit(waiter->sem, TEST_PTR(waiter->key)),
                           strand_on_time(strand_in(STRAND_S))};
    CHECK_EQ(strand_select(cases, 2, 0), 0);
    waiter->result = cases[0].result;
    if (waiter->result == 0) {
        test_log("%d", (int)waiter->key);
        strand_prio_release(waiter->sem);
    }
    return NULL;
}

TEST_INSIDE(a_select_waits_for_a_permit_in_its_place_of_the_order)
{
    struct waiter waiters[3];
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    for (int i = 0; i < 3; i++) {
        waiters[i] = (struct waiter){&sem, 3 - i, 0};
        strand_spawn(s, i == 1 ? select_permit : take_and_log, &waiters[i]);
        yield_until_waiting(&sem, (size_t)i + 1);
    }
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("1 2 3");
}

TEST_INSIDE(a_select_that_something_else_ends_leaves_the_queue)
{
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(0));
    strand_case cases[] = {strand_on_prio_permit(&sem, TEST_PTR(1)), strand_on_time(strand_in(STRAND_MS))};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    CHECK_EQ(strand_prio_waiting(&sem), 0);
    strand_prio_release(&sem);
    CHECK_EQ(strand_prio_in_flight(&sem), 0);
}

TEST_INSIDE(a_select_of_several_semaphores_takes_one_permit)
{
    MAKE(a, .permits = 1, .compare = by_number);
    MAKE(b, .permits = 1, .compare = by_number);
    for (int i = 0; i < 20; i++) {
        strand_case cases[] = {strand_on_prio_permit(&a, TEST_PTR(1)), strand_on_prio_permit(&b, TEST_PTR(1))};
        int which = strand_select(cases, 2, 0);
        CHECK_EQ(strand_prio_in_flight(&a) + strand_prio_in_flight(&b), 1);
        strand_prio_release(which == 0 ? &a : &b);
    }
}

TEST_INSIDE(a_select_is_pruned_as_any_waiter_but_refused_where_there_is_no_room)
{
    struct waiter waiters[2];
    MAKE(sem, .permits = 1, .compare = by_number, .max_waiters = 1);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    waiters[0] = (struct waiter){&sem, 5, 0};
    waiters[1] = (struct waiter){&sem, 6, 0};
    strand first = strand_spawn(s, select_permit, &waiters[0]);
    yield_until_waiting(&sem, 1);
    strand_join(strand_spawn(s, select_permit, &waiters[1]));
    CHECK_EQ(waiters[1].result, -ENOBUFS);
    CHECK_EQ(strand_prio_prune(&sem, 0, NULL), 1);
    strand_exception *e = join_catching(first);
    CHECK_KIND(e, &STRAND_PRUNED);
    strand_exception_release(e);
    strand_prio_release(&sem);
}

/* ---- a tree of files, Q-09 ----------------------------------------------------------- */

enum { FILES = 3, FOLDERS = 2, DEPTH = 4, PATH = 64 };
enum action { NEXT_CHILD, PROCESS_FILE, PROCESS_FOLDER };

struct place {
    char path[PATH]; /* "", "/file", "/folder/file" */
    enum action action;
};

/* Whether the path's component at `from` is the last one, and a file. */
static bool is_file_at(const struct place *place, size_t from)
{
    return place->action == PROCESS_FILE && !strchr(place->path + from, '/');
}

/* The order of the traversal, which is not that of (path, action): a folder is processed, then its children are got,
 * its files before its folders; then the folders, each with all that is below it. */
static int by_traversal(const void *a, const void *b, void *arg)
{
    static const int rank[] = {[PROCESS_FOLDER] = 0, [NEXT_CHILD] = 1, [PROCESS_FILE] = 2};
    const struct place *x = a, *y = b;
    size_t at = 0, component = 0;
    (void)arg;
    for (; x->path[at] && x->path[at] == y->path[at]; at++)
        if (x->path[at] == '/')
            component = at + 1;
    char p = x->path[at], q = y->path[at];
    if (p == q)
        return rank[x->action] - rank[y->action];
    if ((!p && q == '/') || (!q && p == '/')) /* one is a folder above the other */
        return p ? 1 : -1;
    bool x_is_file = is_file_at(x, component), y_is_file = is_file_at(y, component);
    if (x_is_file != y_is_file)
        return x_is_file ? -1 : 1;
    return (p == '/' ? 0 : p) - (q == '/' ? 0 : q);
}

struct place_waiter {
    strand_prio_semaphore *sem;
    struct place place;
};

static void *wait_at_a_place(void *arg)
{
    struct place_waiter *waiter = arg;
    STRAND_PRIO_PERMIT(waiter->sem, &waiter->place);
    test_log("%c%s", "nfd"[waiter->place.action], waiter -> place.path);
    return NULL;
}

/* */
TEST_INSIDE(the_order_of_a_traversal_is_the_users_and_need_not_be_that_of_its_tuples)
{
    static const struct place places[] = {
        {"/b/a", PROCESS_FILE},     {"/a", NEXT_CHILD},   {"/b.d", PROCESS_FOLDER}, {"", PROCESS_FOLDER},
        {"/b/c", PROCESS_FOLDER},   {"/z", PROCESS_FILE}, {"/b", NEXT_CHILD},       {"/a/y", PROCESS_FILE},
        {"/a", PROCESS_FOLDER},     {"", NEXT_CHILD},     {"/b", PROCESS_FOLDER},   {"/b/x", PROCESS_FILE},
        {"/b.d/e", PROCESS_FOLDER}, {"/m", PROCESS_FILE}, {"/b/c", NEXT_CHILD},     {"/b/c/d", PROCESS_FILE},
    };
    enum { PLACES = sizeof places / sizeof *places };
    struct place_waiter waiters[PLACES];
    MAKE(sem, .permits = 1, .compare = by_traversal);
    struct place first = {"", PROCESS_FOLDER};
    strand_prio_acquire(&sem, &first);
    STRAND_SCOPE(s);
    for (int i = 0; i < PLACES; i++) {
        waiters[i] = (struct place_waiter){&sem, places[i]};
        strand_spawn(s, wait_at_a_place, &waiters[i]);
        yield_until_waiting(&sem, (size_t)i + 1);
    }
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("d n f/m f/z d/a n/a f/a/y d/b n/b f/b/a f/b/x d/b/c n/b/c f/b/c/d d/b.d d/b.d/e");
}

/* A task that runs, and creates a subtask: the permit is the subtask's, which gives it back. */
static void *end_of_subtask(void *sem)
{
    test_log("subtask");
    strand_prio_release(sem);
    return NULL;
}

static void *create_a_subtask(void *sem)
{
    STRAND_SCOPE(s);
    test_log("runs");
    strand_prio_acquire(sem, TEST_PTR(5));
    test_log("creates");
    return strand_join(strand_spawn(s, end_of_subtask, sem));
}

/* */
TEST_INSIDE(a_running_task_blocks_where_its_subtask_lacks_priority)
{
    static const int keys[] = {9, 4, 1};
    struct waiter waiters[3];
    MAKE(sem, .permits = 1, .compare = by_number);
    strand_prio_acquire(&sem, TEST_PTR(0));
    STRAND_SCOPE(s);
    strand task = strand_spawn(s, create_a_subtask, &sem);
    yield_until_waiting(&sem, 1);
    CHECK_LOG("runs"); /* for that it needs no permit */
    for (int i = 0; i < 3; i++) {
        waiters[i] = (struct waiter){&sem, keys[i], 0};
        spawn_waiter(s, &waiters[i]);
    }
    CHECK(!strand_ended(task));
    strand_prio_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("runs 1 4 creates subtask 9");
}

/* A folder in a folder in a folder: each is entered without a permit, and stays entered until all below it is done. */
struct deep {
    strand_prio_semaphore sem;
    _Atomic int entered, processed, under_way, most;
    int depth;
};

static void *process_folder_at(void *arg)
{
    struct deep *deep = arg;
    STRAND_PRIO_PERMIT(&deep->sem, TEST_PTR(deep->entered));
    int now = ++deep->under_way;
    deep->most = now > deep->most ? now : deep->most;
    strand_yield(); /* a leaf: it takes no further permit */
    deep->under_way--;
    deep->processed++;
    return NULL;
}

static void *enter_folder(void *arg)
{
    struct deep *deep = arg;
    STRAND_SCOPE(s);
    strand_spawn(s, process_folder_at, deep);
    if (++deep->entered < deep->depth) {
        {
            STRAND_PRIO_PERMIT(&deep->sem, TEST_PTR(deep->entered)); /* to get the next child */
        }
        strand_spawn(s, enter_folder, deep);
    }
    strand_scope_join(s);
    return NULL;
}

/* One thread: what is counted is nobody's who shares. (It is atomic for TSan, to which a switch orders nothing.) */
static void *walk_deep(void *arg)
{
    struct deep deep = {.depth = 60};
    strand_prio_init(&deep.sem,
                     &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 2, .compare = by_number});
    enter_folder(&deep);
    CHECK_EQ(deep.entered, 60);
    CHECK_EQ(deep.processed, 60);
    CHECK(deep.most <= 2);
    CHECK_EQ(strand_prio_in_flight(&deep.sem), 0);
    return arg;
}

/* */
TEST(entering_folders_needs_no_permit_so_a_deep_tree_is_walked_with_few)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, walk_deep, NULL);
}

/* Several tasks of one folder that were pruned become one, "get the next child"; when its priority suffices, it gets
 * them again. */
struct fold {
    strand_prio_semaphore sem;
    struct place_waiter files[FILES], next;
    _Atomic int pruned, processed;
};

static void *process_at_a_place(void *arg)
{
    struct place_waiter *waiter = arg;
    STRAND_PRIO_PERMIT(waiter->sem, &waiter->place);
    return NULL;
}

static void *work_on_a_folder(void *arg)
{
    struct fold *fold = arg;
    bool done[FILES] = {0};
    STRAND_SCOPE(s);
    for (int left = FILES; left;) {
        strand tasks[FILES];
        for (int i = 0; i < FILES; i++)
            if (!done[i])
                tasks[i] = strand_spawn(s, process_at_a_place, &fold->files[i]);
        for (int i = 0; i < FILES; i++) {
            if (done[i])
                continue;
            strand_exception *e = join_catching(tasks[i]);
            CHECK(!e || strand_exception_kind(e) == &STRAND_PRUNED);
            done[i] = !e;
            left -= !e;
            fold->processed += !e;
            fold->pruned += e != NULL;
            strand_exception_release(e);
        }
        if (left)
            strand_join(strand_spawn(s, wait_at_a_place, &fold->next));
    }
    return NULL;
}

/* */
TEST_INSIDE(several_pruned_tasks_of_a_folder_are_folded_into_one)
{
    struct fold fold = {.next = {NULL, {"/g", NEXT_CHILD}}};
    struct place_waiter better = {&fold.sem, {"/f", PROCESS_FILE}};
    struct place first = {"", PROCESS_FOLDER};
    strand_prio_init(
        &fold.sem, &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 1, .compare = by_traversal});
    fold.next.sem = &fold.sem;
    for (int i = 0; i < FILES; i++) {
        fold.files[i] = (struct place_waiter){&fold.sem, {"", PROCESS_FILE}};
        snprintf(fold.files[i].place.path, PATH, "/g/f%d", i);
    }
    strand_prio_acquire(&fold.sem, &first);
    STRAND_SCOPE(s);
    strand_spawn(s, work_on_a_folder, &fold);
    yield_until_waiting(&fold.sem, FILES);
    CHECK_EQ(strand_prio_prune(&fold.sem, 0, "too many"), FILES);
    yield_until_waiting(&fold.sem, 1); /* three tasks have become one */
    for (int i = 0; i < 20; i++)
        strand_sleep(1);
    CHECK_EQ(strand_prio_waiting(&fold.sem), 1);
    CHECK_EQ(fold.pruned, FILES);
    strand_spawn(s, wait_at_a_place, &better);
    yield_until_waiting(&fold.sem, 2);
    strand_prio_release(&fold.sem);
    strand_scope_join(s);
    CHECK_LOG("f/f n/g");
    CHECK_EQ(fold.processed, FILES);
    CHECK_EQ(fold.pruned, FILES);
    CHECK_EQ(strand_prio_in_flight(&fold.sem), 0);
}

/*
 * A whole walk. A folder has FILES files and FOLDERS folders, down to DEPTH. Processing a folder or a file needs a
 * permit, as does getting the next child of a folder; entering a folder needs none. A strand works through one folder:
 * for each child it spawns a strand; the queue is short, so that children are pruned, which the folder's strand
 * notices, and makes again.
 */
struct walk {
    strand_prio_semaphore sem;
    _Atomic int visited, pruned, at_once, most;
    int seen[1000]; /* files and folders that were processed */
};

struct node {
    struct walk *walk;
    struct place place;
    struct place own; /* of a folder, while it is processed itself */
    int depth, number;
};

static void end_processing(struct walk **walk)
{
    atomic_fetch_sub(&(*walk)->at_once, 1);
}

/* A leaf: one permit, until it has been done. */
static void process(const struct node *node, const struct place *place)
{
    STRAND_PRIO_PERMIT(&node->walk->sem, place);
    struct walk *walk __attribute__((cleanup(end_processing))) = node->walk;
    int now = atomic_fetch_add(&walk->at_once, 1) + 1;
    for (int most = walk->most; now > most && !atomic_compare_exchange_weak(&walk->most, &most, now);)
        ;
    strand_yield();
    walk->seen[node->number]++;
    walk->visited++;
}

static void *process_file(void *arg)
{
    const struct node *file = arg;
    process(file, &file->place);
    return NULL;
}

static void process_folder(struct node *folder)
{
    folder->own = folder->place;
    folder->own.action = PROCESS_FOLDER;
    if (!folder->walk->seen[folder->number]) /* it was made again */
        process(folder, &folder->own);
}

static void *walk_folder(void *arg);

static void free_nodes(struct node **nodes)
{
    free(*nodes);
}

static void child_of(const struct node *folder, int i, struct node *child)
{
    bool is_file = i < FILES;
    *child = (struct node){folder->walk, {"", is_file ? PROCESS_FILE : NEXT_CHILD}, {"", 0}, folder->depth + 1, 0};
    child->number = folder->number * (FILES + FOLDERS) + i + 1;
    snprintf(child->place.path, PATH, "%.40s/%c%d", folder->place.path, is_file ? 'f' : 'g', i);
}

/* The next child is got under a permit. What was pruned is made again, when its own priority suffices: with that of the
 * folder, two folders could hand a permit to and fro for ever, before what is below them. A folder whose own strand is
 * pruned, while it wants its next child, is that: all that was below it folded into one task, which its parent makes
 * again; files that were done stay done. */
static void *walk_folder(void *arg)
{
    struct node *folder = arg;
    struct walk *walk = folder->walk;
    struct node *children __attribute__((cleanup(free_nodes))) = calloc(FILES + FOLDERS, sizeof *children);
    bool done[FILES + FOLDERS] = {0};
    int left = folder->depth < DEPTH ? FILES + FOLDERS : FILES;
    int count = left;
    bool again = false;
    process_folder(folder);
    STRAND_SCOPE(s);
    while (left) {
        strand strands[FILES + FOLDERS] = {{{0}}};
        for (int i = 0; i < count; i++) {
            if (done[i])
                continue;
            child_of(folder, i, &children[i]);
            STRAND_PRIO_PERMIT(&walk->sem, again ? &children[i].place : &folder->place);
            if (i < FILES && walk->seen[children[i].number])
                done[i] = true, left--;
            else
                strands[i] = strand_spawn(s, i < FILES ? process_file : walk_folder, &children[i]);
        }
        for (int i = 0; i < count; i++) {
            if (!strands[i].bits[1])
                continue;
            strand_exception *e = join_catching(strands[i]);
            if (!e) {
                done[i] = true, left--;
            } else if (strand_exception_kind(e) == &STRAND_PRUNED) {
                walk->pruned++;
                again = true;
                strand_exception_release(e);
            } else {
                strand_rethrow(e);
            }
        }
    }
    return NULL;
}

/* A folder, and the files and folders below it. */
static int nodes_from(int depth)
{
    return 1 + FILES + (depth == DEPTH ? 0 : FOLDERS * nodes_from(depth + 1));
}

/* Returns how many were pruned. */
static int walk_all(size_t limit, size_t max_waiters)
{
    struct walk *walk = calloc(1, sizeof *walk);
    struct node top = {walk, {"", NEXT_CHILD}, {"", 0}, 1, 0};
    strand_prio_init(&walk->sem, &(strand_prio_options){.size = sizeof(strand_prio_options),
                                                        .permits = limit,
                                                        .compare = by_traversal,
                                                        .max_waiters = max_waiters});
    {
        STRAND_SCOPE(s);
        for (strand_exception *e; (e = join_catching(strand_spawn(s, walk_folder, &top)));) {
            CHECK_KIND(e, &STRAND_PRUNED);
            strand_exception_release(e);
            walk->pruned++;
        }
    }
    CHECK_EQ(walk->visited, nodes_from(1));
    for (int i = 0; i < 1000; i++)
        CHECK(walk->seen[i] <= 1);
    CHECK(walk->most <= (int)limit);
    CHECK_EQ(strand_prio_in_flight(&walk->sem), 0);
    CHECK_EQ(strand_prio_waiting(&walk->sem), 0);
    int pruned = walk->pruned;
    free(walk);
    return pruned;
}

/* */
TEST_INSIDE(a_tree_deeper_than_there_are_permits_is_walked_to_its_end)
{
    CHECK_EQ(walk_all(1, 0), 0);
}

/* */
TEST_INSIDE(a_tree_is_walked_with_few_tasks_in_flight)
{
    CHECK_EQ(walk_all(2, 0), 0);
    CHECK_EQ(walk_all(5, 0), 0);
}

/* */
TEST_INSIDE(a_tree_is_walked_although_its_queue_is_short_and_tasks_are_pruned_and_made_again)
{
    int again = walk_all(1, 4);
    CHECK(test_seed() || again > 0); /* a seed may leave so much room that none is pruned */
    walk_all(3, 6);
}

/* ---- races ------------------------------------------------------------------------------------------- */

struct crowd {
    strand_prio_semaphore sem;
    _Atomic int inside, rounds;
    int limit;
};

static void go_out(struct crowd **crowd)
{
    atomic_fetch_sub(&(*crowd)->inside, 1);
}

static void be_inside(struct crowd *crowd)
{
    struct crowd *in __attribute__((cleanup(go_out))) = crowd;
    int now = atomic_fetch_add(&in->inside, 1) + 1;
    CHECK(now <= crowd->limit);
    strand_yield();
    crowd->rounds++;
}

static void *come_and_go(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < 10; i++) {
        strand_prio_acquire(&crowd->sem, TEST_PTR((strand_id(strand_self()) * 31 + (uint64_t)i) % 7));
        be_inside(crowd);
        strand_prio_release(&crowd->sem);
    }
    return NULL;
}

/* */
TEST_RACE(never_more_are_in_flight_than_the_limit)
{
    for (long round = 0; round < test_scale(50); round++) {
        struct crowd crowd = {.limit = 1 + (int)(round % 3)};
        strand_prio_init(&crowd.sem, &(strand_prio_options){.size = sizeof(strand_prio_options),
                                                            .permits = (size_t)crowd.limit,
                                                            .compare = by_number});
        STRAND_SCOPE(s);
        for (int i = 0; i < 20; i++)
            strand_spawn(s, come_and_go, &crowd);
        strand_scope_join(s);
        CHECK_EQ(crowd.rounds, 200);
        CHECK_EQ(strand_prio_in_flight(&crowd.sem), 0);
    }
}

/* Takes a permit, and gives it back however it ends. */
static void give_back(strand_prio_semaphore **sem)
{
    strand_prio_release(*sem);
}

static void *come_once(void *arg)
{
    struct crowd *crowd = arg;
    strand_prio_acquire(&crowd->sem, TEST_PTR(strand_id(strand_self()) % 5));
    strand_prio_semaphore *sem __attribute__((cleanup(give_back), unused)) = &crowd->sem;
    be_inside(crowd);
    return NULL;
}

static void *select_once(void *arg)
{
    struct crowd *crowd = arg;
    strand_case cases[] = {strand_on_prio_permit(&crowd->sem, TEST_PTR(3)), strand_on_time(strand_in(20 * STRAND_US))};
    if (strand_select(cases, 2, 0) == 0 && cases[0].result == 0) {
        strand_prio_semaphore *sem __attribute__((cleanup(give_back), unused)) = &crowd->sem;
        be_inside(crowd);
    }
    return NULL;
}

/* */
TEST_RACE(permits_are_neither_lost_nor_doubled_by_cancels_prunings_and_selects)
{
    for (long round = 0; round < test_scale(200); round++) {
        struct crowd crowd = {.limit = 2};
        strand children[16];
        strand_prio_init(&crowd.sem, &(strand_prio_options){.size = sizeof(strand_prio_options),
                                                            .permits = 2,
                                                            .compare = by_number,
                                                            .max_waiters = round % 2 ? 8 : 0});
        {
            STRAND_SCOPE(s);
            for (int i = 0; i < 16; i++)
                children[i] = strand_spawn(s, i % 3 == 2 ? select_once : come_once, &crowd);
            strand_yield();
            for (int i = 0; i < 16; i += 5)
                strand_cancel(children[i], NULL);
            strand_prio_prune(&crowd.sem, 4, NULL);
            strand_yield();
            strand_prio_prune(&crowd.sem, 1, NULL);
            for (int i = 0; i < 16; i++) {
                strand_exception *e = join_catching(children[i]);
                CHECK(!e || strand_exception_is(e, &STRAND_CHILD_CANCELLED));
                strand_exception_release(e);
            }
        }
        CHECK_EQ(strand_prio_in_flight(&crowd.sem), 0);
        CHECK_EQ(strand_prio_waiting(&crowd.sem), 0);
    }
}

/* ---- what a permit may stand for ------------------------------------------------------------------------- */

struct bounded {
    strand_prio_semaphore sem;
    _Atomic int alive, most, done;
    int limit;
};

/* The permit was taken by the spawner; the task gives it back at its end. */
static void *bounded_task(void *arg)
{
    struct bounded *bounded = arg;
    strand_yield();
    bounded->done++;
    bounded->alive--;
    strand_prio_release(&bounded->sem);
    return NULL;
}

/* */
TEST_RACE(a_permit_taken_before_each_spawn_limits_how_many_tasks_there_are)
{
    struct bounded bounded = {.limit = 4};
    strand_prio_init(&bounded.sem,
                     &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 4, .compare = by_number});
    STRAND_SCOPE(s);
    for (int i = 0; i < 100; i++) {
        strand_prio_acquire(&bounded.sem, TEST_PTR(i));
        CHECK(++bounded.alive <= 4);
        strand_spawn(s, bounded_task, &bounded);
    }
    strand_scope_join(s);
    CHECK_EQ(bounded.done, 100);
}

/* A task may go only if it is near the first one that is not finished: what is done out of order stays bounded. */
enum { TASKS = 40, WINDOW = 3 };

struct progress {
    strand_prio_semaphore sem;
    _Atomic int first; /* of those that are not finished */
    _Atomic bool finished[TASKS];
};

struct step {
    struct progress *progress;
    int number;
};

static int64_t near_the_first(const void *key, void *arg)
{
    struct progress *progress = arg;
    int number = ((const struct step *)key)->number;
    return number < atomic_load(&progress->first) + WINDOW ? -number : STRAND_NOT_NOW;
}

static void *do_step(void *arg)
{
    struct step *step = arg;
    struct progress *progress = step->progress;
    strand_prio_acquire(&progress->sem, step);
    CHECK(step->number < atomic_load(&progress->first) + WINDOW);
    for (int i = 0; i < step->number % 4; i++)
        strand_yield();
    atomic_store(&progress->finished[step->number], true);
    for (int first; (first = atomic_load(&progress->first)) < TASKS && atomic_load(&progress->finished[first]);)
        atomic_compare_exchange_strong(&progress->first, &first, first + 1);
    strand_prio_release(&progress->sem);
    return NULL;
}

/* */
TEST_RACE(a_hook_lets_tasks_go_only_as_far_as_the_unfinished_ones_allow)
{
    struct progress progress = {.first = 0};
    struct step steps[TASKS];
    strand_prio_init(&progress.sem, &(strand_prio_options){.size = sizeof(strand_prio_options),
                                                           .permits = 5,
                                                           .priority = near_the_first,
                                                           .arg = &progress});
    STRAND_SCOPE(s);
    for (int i = 0; i < TASKS; i++) {
        steps[i] = (struct step){&progress, TASKS - 1 - i};
        strand_spawn(s, do_step, &steps[i]);
    }
    strand_scope_join(s);
    CHECK_EQ(progress.first, TASKS);
    CHECK_EQ(strand_prio_in_flight(&progress.sem), 0);
}
