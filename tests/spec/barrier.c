/*
 * Barriers: all go on together, and one that was interrupted has not come.
 */
#define SUITE barrier
#include "test.h"

#include "strand/sync.h"

#define BLOCKED "waits at barrier"

static strand_barrier b;
static _Atomic int came, last;

static void *come(void *arg)
{
    came++;
    if (strand_barrier_wait(&b))
        last++;
    return arg;
}

/* contract 5.6 */
TEST_INSIDE(strands_wait_until_the_last_arrives_and_one_of_them_gets_true)
{
    STRAND_SCOPE(s);
    b = (strand_barrier)STRAND_BARRIER_INIT(3);
    last = 0;
    strand first = strand_spawn(s, come, NULL), second = strand_spawn(s, come, NULL);
    test_await_blocked(BLOCKED, 2);
    CHECK(!strand_ended(first) && !strand_ended(second));
    CHECK(strand_barrier_wait(&b));
    strand_scope_join(s);
    CHECK_EQ(last, 0);
}

TEST_INSIDE(a_barrier_for_one_holds_nobody_up)
{
    b = (strand_barrier)STRAND_BARRIER_INIT(1);
    CHECK(strand_barrier_wait(&b));
    CHECK(strand_barrier_wait(&b));
}

enum { PARTIES = 4 };
static _Atomic long rounds[PARTIES];

static void *go_round(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (long i = 1; i <= test_scale(2000); i++) {
        rounds[me] = i;
        if (strand_barrier_wait(&b))
            last++;
        for (int other = 0; other < PARTIES; other++)
            CHECK(rounds[other] == i || rounds[other] == i + 1);
    }
    return NULL;
}

TEST_RACE(it_can_be_used_round_after_round)
{
    STRAND_SCOPE(s);
    b = (strand_barrier)STRAND_BARRIER_INIT(PARTIES);
    last = 0;
    for (int i = 0; i < PARTIES; i++)
        rounds[i] = 0;
    for (int i = 0; i < PARTIES; i++)
        strand_spawn(s, go_round, TEST_PTR(i));
    strand_scope_join(s);
    CHECK_EQ(last, test_scale(2000));
}

TEST_INSIDE(a_cancelled_strand_does_not_count_as_arrived)
{
    STRAND_SCOPE(s);
    b = (strand_barrier)STRAND_BARRIER_INIT(3);
    strand first = strand_spawn(s, come, NULL), second = strand_spawn(s, come, NULL);
    test_await_blocked(BLOCKED, 2);
    strand_cancel(first, "not needed");
    strand third = strand_spawn(s, come, NULL); /* would be the last */
    CHECK(test_join_interrupted(first));
    test_await_blocked(BLOCKED, 2);
    CHECK(!strand_ended(second) && !strand_ended(third));
    CHECK(strand_barrier_wait(&b));
    strand_scope_join(s);
}

TEST_INSIDE(an_interrupted_strand_does_not_come)
{
    b = (strand_barrier)STRAND_BARRIER_INIT(1);
    last = 0;
    test_run_cancelled(come, NULL);
    CHECK_EQ(last, 0);
}

/* Either all three went on together, or the cancelled one was interrupted and the others wait for another. */
/* contract 5.1 */
TEST_RACE(a_cancel_races_with_the_last_arrival)
{
    for (long i = 0; i < test_scale(2000); i++) {
        STRAND_SCOPE(s);
        b = (strand_barrier)STRAND_BARRIER_INIT(4);
        last = 0;
        strand children[4];
        for (int n = 0; n < 3; n++)
            children[n] = strand_spawn(s, come, NULL);
        for (int n = 0; n < i % 7; n++)
            strand_yield();
        strand_cancel(children[i % 3], "race");
        children[3] = strand_spawn(s, come, NULL);
        bool interrupted = test_join_interrupted(children[i % 3]);
        if (interrupted) {
            for (int n = 0; n < 4; n++)
                if (n != i % 3)
                    CHECK(!strand_ended(children[n]));
            strand_barrier_wait(&b);
        }
        for (int n = 0; n < 4; n++)
            if (n != i % 3)
                strand_join(children[n]);
        CHECK(last <= 1);
    }
}

/* As before, but another one of those who wait is cancelled while the last looks at them all. */
TEST_RACE(cancels_of_all_waiters_race_with_the_last_arrival)
{
    for (long i = 0; i < test_scale(2000); i++) {
        STRAND_SCOPE(s);
        b = (strand_barrier)STRAND_BARRIER_INIT(4);
        strand children[3];
        int gone = 0;
        for (int n = 0; n < 3; n++)
            children[n] = strand_spawn(s, come, NULL);
        for (int n = 0; n < i % 7; n++)
            strand_yield();
        strand fourth = strand_spawn(s, come, NULL);
        for (int n = 0; n < 3; n++)
            strand_cancel(children[n], "race");
        for (int n = 0; n < 3; n++)
            gone += test_join_interrupted(children[n]);
        CHECK(gone == 0 || gone == 3);
        if (gone) {
            CHECK(!strand_ended(fourth));
            strand_cancel(fourth, "over");
        }
        CHECK_EQ(test_join_interrupted(fourth), gone == 3);
    }
}

static void *come_for_a_moment(void *arg)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_barrier_wait(&b);
    return arg;
}

TEST_INSIDE(a_deadline_ends_the_waiting)
{
    b = (strand_barrier)STRAND_BARRIER_INIT(2);
    CHECK_THROWS(come_for_a_moment, NULL, &STRAND_TIMED_OUT);
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, come, NULL);
    strand_barrier_wait(&b);
    strand_join(child);
}
