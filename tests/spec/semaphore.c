/*
 * Semaphores: permits are handed to those who wait, in the order of their coming, and none is ever lost.
 */
#define SUITE semaphore
#include "test.h"

#include "strand/chan.h"
#include "strand/sync.h"

#include <errno.h>

#define BLOCKED "waits for semaphore"

static strand_semaphore sem;

struct taker {
    uint32_t n;
    const char *name;
};

static void *take_and_log(void *arg)
{
    const struct taker *taker = arg;
    strand_semaphore_acquire_many(&sem, taker->n);
    test_log("%s", taker->name);
    return NULL;
}

/* Waits for permits, behind all who do already. */
static strand spawn_taker(strand_scope s, const struct taker *taker, int waiters)
{
    strand child = strand_spawn(s, take_and_log, (void *)(uintptr_t)taker);
    test_await_blocked(BLOCKED, waiters);
    return child;
}

/* ---- permits --------------------------------------------------------------------------------------------- */

TEST_INSIDE(permits_are_taken_and_given_back)
{
    strand_semaphore mine = STRAND_SEMAPHORE_INIT(2);
    CHECK_EQ(strand_semaphore_permits(&mine), 2);
    strand_semaphore_acquire(&mine);
    strand_semaphore_acquire(&mine);
    CHECK_EQ(strand_semaphore_try_acquire(&mine), -EAGAIN);
    strand_semaphore_release_many(&mine, 3);
    CHECK_EQ(strand_semaphore_permits(&mine), 3);
    CHECK_EQ(strand_semaphore_try_acquire_many(&mine, 4), -EAGAIN);
    CHECK_EQ(strand_semaphore_try_acquire_many(&mine, 3), 0);
    strand_semaphore_acquire_many(&mine, 0);
    CHECK_EQ(strand_semaphore_permits(&mine), 0);
}

TEST_INSIDE(a_zeroed_semaphore_has_no_permit)
{
    strand_semaphore mine = {{0}};
    CHECK_EQ(strand_semaphore_try_acquire(&mine), -EAGAIN);
    strand_semaphore_release(&mine);
    CHECK_EQ(strand_semaphore_try_acquire(&mine), 0);
}

static _Atomic int inside, most;

static void *work_inside(void *times)
{
    for (intptr_t i = 0; i < (intptr_t)times; i++) {
        strand_semaphore_acquire(&sem);
        int now = ++inside, seen = most;
        while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
            continue;
        if (i % 4 == 0)
            strand_yield();
        inside--;
        strand_semaphore_release(&sem);
    }
    return NULL;
}

TEST_RACE(no_more_strands_than_there_are_permits_are_inside)
{
    STRAND_SCOPE(s);
    sem = (strand_semaphore)STRAND_SEMAPHORE_INIT_BOUNDED(3, 3);
    inside = most = 0;
    for (int i = 0; i < 8; i++)
        strand_spawn(s, work_inside, TEST_PTR(test_scale(3000)));
    strand_scope_join(s);
    CHECK(most <= 3);
    CHECK_EQ(strand_semaphore_permits(&sem), 3);
}

/* ---- order ----------------------------------------------------------------------------------------------- */

/* contract 5.3, 5.6 */
TEST_INSIDE(waiters_are_served_in_fifo_order)
{
    static const struct taker takers[] = {{1, "a"}, {1, "b"}, {1, "c"}};
    STRAND_SCOPE(s);
    strand children[3];
    sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(0);
    for (int i = 0; i < 3; i++)
        children[i] = spawn_taker(s, &takers[i], i + 1);
    for (int i = 0; i < 3; i++) {
        strand_semaphore_release(&sem);
        CHECK_EQ(strand_semaphore_permits(&sem), 0);
        strand_join(children[i]);
    }
    CHECK_LOG("a b c");
}

/* contract 5.6 */
TEST_INSIDE(no_caller_overtakes_a_waiter_for_many_permits)
{
    static const struct taker many = {3, "many"}, one = {1, "one"};
    STRAND_SCOPE(s);
    sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(1);
    strand first = spawn_taker(s, &many, 1), second = spawn_taker(s, &one, 2);
    CHECK_EQ(strand_semaphore_try_acquire(&sem), -EAGAIN);
    strand_semaphore_release(&sem);
    for (int i = 0; i < 10; i++)
        strand_yield();
    CHECK_LOG("");
    strand_semaphore_release(&sem);
    strand_join(first);
    CHECK_LOG("many");
    CHECK(!strand_ended(second));
    strand_semaphore_release(&sem);
    strand_join(second);
    CHECK_LOG("many one");
}

TEST_INSIDE(one_release_of_many_permits_serves_as_many_as_can_go_on)
{
    static const struct taker takers[] = {{1, "a"}, {2, "b"}, {2, "c"}};
    STRAND_SCOPE(s);
    strand children[3];
    sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(0);
    for (int i = 0; i < 3; i++)
        children[i] = spawn_taker(s, &takers[i], i + 1);
    strand_semaphore_release_many(&sem, 4);
    strand_join(children[0]);
    strand_join(children[1]);
    CHECK_EQ(strand_semaphore_permits(&sem), 1);
    CHECK(!strand_ended(children[2]));
    strand_semaphore_release(&sem);
    strand_join(children[2]);
    CHECK_EQ(strand_semaphore_permits(&sem), 0);
}

/* ---- interruption ---------------------------------------------------------------------------------------- */

TEST_INSIDE(when_the_first_waiter_is_cancelled_those_behind_it_continue_if_they_can)
{
    static const struct taker many = {3, "many"}, one = {1, "one"}, other = {1, "other"}, third = {1, "third"};
    STRAND_SCOPE(s);
    sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(2);
    strand first = spawn_taker(s, &many, 1);
    strand rest[] = {spawn_taker(s, &one, 2), spawn_taker(s, &other, 3), spawn_taker(s, &third, 4)};
    strand_cancel(first, "not needed");
    strand_join(rest[0]);
    strand_join(rest[1]);
    CHECK(!strand_ended(rest[2]));
    CHECK(test_join_interrupted(first));
    strand_semaphore_release(&sem);
    strand_join(rest[2]);
    CHECK_EQ(strand_semaphore_permits(&sem), 0);
}

TEST_INSIDE(trying_is_not_hindered_by_one_that_was_cancelled)
{
    static const struct taker many = {3, "many"};
    STRAND_SCOPE(s);
    sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(2);
    strand first = spawn_taker(s, &many, 1);
    CHECK_EQ(strand_semaphore_try_acquire(&sem), -EAGAIN);
    strand_cancel(first, "not needed");
    CHECK_EQ(strand_semaphore_try_acquire(&sem), 0);
    CHECK(test_join_interrupted(first));
    CHECK_EQ(strand_semaphore_permits(&sem), 1);
}

/* contract 5.4 */
TEST_INSIDE(a_cancelled_waiter_in_the_middle_leaves_no_trace)
{
    static const struct taker takers[] = {{1, "a"}, {1, "b"}, {1, "c"}};
    STRAND_SCOPE(s);
    strand children[3];
    sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(0);
    for (int i = 0; i < 3; i++)
        children[i] = spawn_taker(s, &takers[i], i + 1);
    strand_cancel(children[1], "not needed");
    CHECK(test_join_interrupted(children[1]));
    strand_semaphore_release_many(&sem, 2);
    strand_join(children[0]);
    strand_join(children[2]);
    CHECK_EQ(strand_semaphore_permits(&sem), 0);
}

static void *take_none(void *semaphore)
{
    strand_semaphore_acquire(semaphore);
    test_log("taken");
    return NULL;
}

TEST_INSIDE(an_interrupted_strand_takes_no_permit_although_there_are_some)
{
    strand_semaphore mine = STRAND_SEMAPHORE_INIT(1);
    test_run_cancelled(take_none, &mine);
    CHECK_LOG("");
    CHECK_EQ(strand_semaphore_permits(&mine), 1);
}

static void *release_it(void *semaphore)
{
    strand_semaphore_release(semaphore);
    CHECK_EQ(strand_semaphore_try_acquire(semaphore), 0);
    test_log("done");
    return NULL;
}

/* contract 4.21, 4.22 */
TEST_INSIDE(releasing_and_trying_are_not_interrupted)
{
    strand_semaphore mine = STRAND_SEMAPHORE_INIT(0);
    test_run_cancelled(release_it, &mine);
    CHECK_LOG("done");
}

static void *take_for_a_moment(void *semaphore)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_semaphore_acquire(semaphore);
    return NULL;
}

TEST_INSIDE(a_deadline_ends_the_waiting_and_takes_nothing)
{
    strand_semaphore mine = STRAND_SEMAPHORE_INIT(0);
    CHECK_THROWS(take_for_a_moment, &mine, &STRAND_TIMED_OUT);
    strand_semaphore_release(&mine);
    CHECK_EQ(strand_semaphore_permits(&mine), 1);
}

static void *take_some(void *n)
{
    strand_semaphore_acquire_many(&sem, (uint32_t)(uintptr_t)n);
    return n;
}

/* A permit arrives at the same moment: it was taken, or the waiter was interrupted, and then it is there, or went to
 * the next. */
/* contract 5.1 */
TEST_RACE(a_cancel_races_with_a_release)
{
    for (long i = 0; i < test_scale(3000); i++) {
        STRAND_SCOPE(s);
        sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(0);
        uint32_t n = 1 + (uint32_t)(i % 3);
        strand first = strand_spawn(s, take_some, TEST_PTR(n)), second = strand_spawn(s, take_some, TEST_PTR(1));
        for (int k = 0; k < i % 5; k++)
            strand_yield();
        if (i % 2)
            strand_cancel(first, "race");
        strand_semaphore_release_many(&sem, n);
        if (i % 2 == 0)
            strand_cancel(first, "race");
        bool interrupted = test_join_interrupted(first);
        strand_semaphore_release(&sem);
        strand_join(second);
        CHECK_EQ(strand_semaphore_permits(&sem), interrupted ? n : 0);
    }
}

/* ---- select ---------------------------------------------------------------------------------------------- */

TEST_INSIDE(a_select_takes_one_permit_and_only_if_that_case_happens)
{
    strand_semaphore a = STRAND_SEMAPHORE_INIT(1), b = STRAND_SEMAPHORE_INIT(1);
    strand_case cases[] = {strand_on_permit(&a), strand_on_permit(&b)};
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_ORDERED), 0);
    CHECK_EQ(strand_semaphore_permits(&a), 0);
    CHECK_EQ(strand_semaphore_permits(&b), 1);
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW), -EAGAIN);
}

static void *select_permit(void *arg)
{
    strand_case cases[] = {strand_on_permit(&sem), strand_on_permit(arg), strand_on_permit(&sem)};
    int chosen = strand_select(cases, 3, 0);
    test_log("%d", chosen == 1);
    return NULL;
}

TEST_INSIDE(a_select_waits_in_the_queue_for_a_permit_and_leaves_the_others)
{
    strand_semaphore other = STRAND_SEMAPHORE_INIT(0);
    STRAND_SCOPE(s);
    sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(0);
    strand child = strand_spawn(s, select_permit, &other);
    test_await_blocked("waits for one of", 1);
    strand_semaphore_release(&other);
    strand_join(child);
    CHECK_LOG("1");
    CHECK_EQ(strand_semaphore_permits(&other), 0);
    strand_semaphore_release(&sem);
    CHECK_EQ(strand_semaphore_permits(&sem), 1);
}

TEST_INSIDE(a_select_that_gives_up_lets_those_behind_it_go_on)
{
    static const struct taker many = {2, "many"};
    STRAND_SCOPE(s);
    strand_semaphore never = STRAND_SEMAPHORE_INIT(0);
    sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(0);
    strand child = strand_spawn(s, select_permit, &never);
    test_await_blocked("waits for one of", 1);
    strand second = spawn_taker(s, &many, 1);
    strand_cancel(child, "not needed");
    CHECK(test_join_interrupted(child));
    strand_semaphore_release_many(&sem, 2);
    strand_join(second);
    CHECK_LOG("many");
}

static void *select_many(void *arg)
{
    strand_semaphore *pair = arg;
    intptr_t got = 0;
    for (long i = 0; i < test_scale(2000); i++) {
        strand_case cases[] = {strand_on_permit(&pair[0]), strand_on_permit(&pair[1])};
        int chosen = strand_select(cases, 2, (unsigned)(i % 2));
        strand_semaphore_release(&pair[1 - chosen]);
        got++;
    }
    return TEST_PTR(got);
}

TEST_RACE(selects_on_the_same_semaphores_neither_lose_nor_make_permits)
{
    strand_semaphore pair[] = {STRAND_SEMAPHORE_INIT(1), STRAND_SEMAPHORE_INIT(1)};
    STRAND_SCOPE(s);
    for (int i = 0; i < 6; i++)
        strand_spawn(s, select_many, pair);
    strand_scope_join(s);
    CHECK_EQ(strand_semaphore_permits(&pair[0]) + strand_semaphore_permits(&pair[1]), 2);
}

TEST_RACE(a_select_between_a_permit_and_a_channel_gets_one_of_them)
{
    typedef STRAND_CHAN(int) numbers;
    for (long i = 0; i < test_scale(2000); i++) {
        STRAND_SCOPE(s);
        sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(0);
        numbers ch = STRAND_CHAN_OPEN(numbers, s, 1);
        int value = 7, got = 0;
        strand other = strand_spawn(s, take_some, TEST_PTR(1));
        strand_case cases[] = {strand_on_permit(&sem), STRAND_ON_RECEIVE(ch, &got)};
        if (i % 2)
            CHECK_EQ(STRAND_SEND(ch, &value), 0);
        strand_semaphore_release(&sem);
        if (i % 2 == 0)
            CHECK_EQ(STRAND_SEND(ch, &value), 0);
        int chosen = strand_select(cases, 2, 0);
        CHECK_EQ(got, chosen ? 7 : 0);
        strand_semaphore_release(&sem);
        strand_join(other);
        CHECK_EQ(strand_semaphore_permits(&sem), chosen);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------------------- */

static void *throw_with_a_permit(void *semaphore)
{
    STRAND_PERMIT((strand_semaphore *)semaphore);
    CHECK_EQ(strand_semaphore_permits(semaphore), 1);
    strand_throw(&TEST_ERROR, "failed");
}

static uint64_t return_with_a_permit(strand_semaphore *semaphore)
{
    STRAND_PERMIT(semaphore);
    return strand_semaphore_permits(semaphore);
}

TEST_INSIDE(a_block_has_a_permit_until_it_is_left_by_whatever_way)
{
    strand_semaphore mine = STRAND_SEMAPHORE_INIT_BOUNDED(2, 2);
    CHECK_THROWS(throw_with_a_permit, &mine, &TEST_ERROR);
    CHECK_EQ(strand_semaphore_permits(&mine), 2);
    CHECK_EQ(return_with_a_permit(&mine), 1);
    CHECK_EQ(strand_semaphore_permits(&mine), 2);
    for (int i = 0; i < 2; i++) {
        STRAND_PERMIT(&mine);
        STRAND_PERMIT(&mine);
        CHECK_EQ(strand_semaphore_permits(&mine), 0);
        if (i == 0)
            continue;
        break;
    }
    CHECK_EQ(strand_semaphore_permits(&mine), 2);
}

static void *work_in_a_permit(void *arg)
{
    STRAND_PERMIT(&sem);
    test_log("%s", (const char *)arg);
    return NULL;
}

TEST_INSIDE(a_block_waits_for_its_permit_and_has_none_if_it_is_interrupted)
{
    STRAND_SCOPE(s);
    sem = (strand_semaphore)STRAND_SEMAPHORE_INIT(0);
    strand first = strand_spawn(s, work_in_a_permit, "a");
    test_await_blocked(BLOCKED, 1);
    strand_spawn(s, work_in_a_permit, "b");
    test_await_blocked(BLOCKED, 2);
    strand_cancel(first, "not needed");
    CHECK(test_join_interrupted(first));
    strand_semaphore_release(&sem);
    strand_scope_join(s);
    CHECK_LOG("b");
    CHECK_EQ(strand_semaphore_permits(&sem), 1);
}

/* ---- misuse ---------------------------------------------------------------------------------------------- */

TEST(one_may_be_made_with_the_most_permits_that_there_can_be)
{
    strand_semaphore full = STRAND_SEMAPHORE_INIT(UINT64_C(1) << 60);
    CHECK_EQ(full.bits[3], 0);
}
