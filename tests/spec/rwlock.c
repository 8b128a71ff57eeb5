/*
 * Read-write locks: many readers or one writer, and neither side starves.
 */
#define SUITE rwlock
#include "test.h"

#include "strand/sync.h"

#include <errno.h>

static strand_rwlock l;
static _Atomic int go_on;

static void start(void)
{
    l = (strand_rwlock){{0}};
    go_on = 0;
}

static void *read_and_log(void *name)
{
    STRAND_READ_LOCKED(&l);
    test_log("%s", (const char *)name);
    test_yield_until(&go_on, 1);
    return NULL;
}

static void *write_and_log(void *name)
{
    STRAND_WRITE_LOCKED(&l);
    test_log("%s", (const char *)name);
    return NULL;
}

static strand spawn_reader(strand_scope s, char *name, int waiters)
{
    strand child = strand_spawn(s, read_and_log, name);
    test_await_blocked("waits to read", waiters);
    return child;
}

static strand spawn_writer(strand_scope s, char *name, int waiters)
{
    strand child = strand_spawn(s, write_and_log, name);
    test_await_blocked("waits to write", waiters);
    return child;
}

/* ---- who gets it ----------------------------------------------------------------------------------------- */

/* contract 5.6 */
TEST_INSIDE(readers_hold_it_together_and_a_writer_alone)
{
    start();
    strand_rwlock_read(&l);
    CHECK_EQ(strand_rwlock_try_read(&l), 0);
    CHECK_EQ(strand_rwlock_try_write(&l), -EAGAIN);
    strand_rwlock_read_done(&l);
    CHECK_EQ(strand_rwlock_try_write(&l), -EAGAIN);
    strand_rwlock_read_done(&l);
    CHECK_EQ(strand_rwlock_try_write(&l), 0);
    CHECK_EQ(strand_rwlock_try_read(&l), -EAGAIN);
    CHECK_EQ(strand_rwlock_try_write(&l), -EAGAIN);
    strand_rwlock_write_done(&l);
    strand_rwlock_write(&l);
    strand_rwlock_write_done(&l);
}

static long pair[2];

static void *use_it(void *arg)
{
    intptr_t seed = (intptr_t)arg;
    for (long i = 0; i < test_scale(8000); i++) {
        if ((i + seed) % 4 == 0) {
            STRAND_WRITE_LOCKED(&l);
            pair[0]++;
            if (i % 32 == 0)
                strand_yield();
            pair[1]++;
        } else {
            STRAND_READ_LOCKED(&l);
            long was = pair[0];
            if (i % 32 == 1)
                strand_yield();
            CHECK_EQ(pair[1], was);
        }
    }
    return NULL;
}

TEST_RACE(readers_never_see_a_writer_s_work_half_done)
{
    STRAND_SCOPE(s);
    start();
    pair[0] = pair[1] = 0;
    for (int i = 0; i < 6; i++)
        strand_spawn(s, use_it, TEST_PTR(i));
    strand_scope_join(s);
    CHECK_EQ(pair[0], pair[1]);
}

/* contract 5.6 */
TEST_INSIDE(a_reader_waits_behind_a_writer_that_waits)
{
    STRAND_SCOPE(s);
    start();
    strand_rwlock_read(&l);
    strand writer = spawn_writer(s, "w", 1);
    CHECK_EQ(strand_rwlock_try_read(&l), -EAGAIN);
    spawn_reader(s, "r", 1);
    go_on = 1;
    strand_rwlock_read_done(&l);
    strand_join(writer);
    strand_scope_join(s);
    CHECK_LOG("w r");
}

TEST_INSIDE(readers_that_waited_go_on_together_up_to_the_next_writer)
{
    STRAND_SCOPE(s);
    start();
    strand_rwlock_write(&l);
    spawn_reader(s, "r", 1);
    spawn_reader(s, "r", 2);
    spawn_writer(s, "w", 1);
    spawn_reader(s, "late", 3);
    strand_rwlock_write_done(&l);
    while (!test_log_is("r r"))
        strand_yield();
    for (int i = 0; i < 10; i++)
        strand_yield();
    CHECK_LOG("r r");
    go_on = 1;
    strand_scope_join(s);
    CHECK_LOG("r r w late");
}

/* ---- interruption ---------------------------------------------------------------------------------------- */

TEST_INSIDE(when_a_waiting_writer_is_cancelled_the_readers_behind_it_go_on)
{
    STRAND_SCOPE(s);
    start();
    strand_rwlock_read(&l);
    strand writer = spawn_writer(s, "w", 1);
    strand reader = spawn_reader(s, "r", 1);
    strand_cancel(writer, "not needed");
    go_on = 1;
    strand_join(reader);
    CHECK(test_join_interrupted(writer));
    CHECK_LOG("r");
    strand_rwlock_read_done(&l);
    CHECK_EQ(strand_rwlock_try_write(&l), 0);
    strand_rwlock_write_done(&l);
}

TEST_INSIDE(an_interrupted_strand_does_not_get_even_a_free_one)
{
    start();
    test_run_cancelled(read_and_log, "r");
    test_run_cancelled(write_and_log, "w");
    CHECK_LOG("");
    CHECK_EQ(strand_rwlock_try_write(&l), 0);
    strand_rwlock_write_done(&l);
}

static void *write_and_note(void *got)
{
    STRAND_WRITE_LOCKED(&l);
    *(bool *)got = true;
    return NULL;
}

/* contract 5.1 */
TEST_RACE(a_cancel_races_with_the_handing_over)
{
    for (long i = 0; i < test_scale(3000); i++) {
        STRAND_SCOPE(s);
        bool got = false;
        start();
        go_on = 1;
        if (i % 3)
            strand_rwlock_read(&l);
        else
            strand_rwlock_write(&l);
        strand writer = strand_spawn(s, write_and_note, &got), reader = strand_spawn(s, read_and_log, "");
        for (int n = 0; n < i % 5; n++)
            strand_yield();
        if (i % 2)
            strand_cancel(writer, "race");
        if (i % 3)
            strand_rwlock_read_done(&l);
        else
            strand_rwlock_write_done(&l);
        strand_cancel(writer, "race");
        bool interrupted = test_join_interrupted(writer);
        CHECK_EQ(interrupted, !got);
        strand_join(reader);
        CHECK_EQ(strand_rwlock_try_write(&l), 0);
        strand_rwlock_write_done(&l);
        test_log_clear();
    }
}

static void *write_for_a_moment(void *arg)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_rwlock_write(&l);
    return arg;
}

TEST_INSIDE(a_deadline_ends_the_waiting)
{
    STRAND_SCOPE(s);
    start();
    strand_spawn(s, read_and_log, "r");
    while (!test_log_is("r"))
        strand_yield();
    CHECK_THROWS(write_for_a_moment, NULL, &STRAND_TIMED_OUT);
    CHECK_EQ(strand_rwlock_try_read(&l), 0);
    strand_rwlock_read_done(&l);
    go_on = 1;
    strand_scope_join(s);
}

static void *throw_as(void *writer)
{
    if (writer) {
        STRAND_WRITE_LOCKED(&l);
        strand_throw(&TEST_ERROR, "failed");
    }
    STRAND_READ_LOCKED(&l);
    strand_throw(&TEST_ERROR, "failed");
}

TEST_INSIDE(a_block_gives_it_back_when_it_is_left_by_an_exception)
{
    start();
    for (int writer = 0; writer < 2; writer++) {
        CHECK_THROWS(throw_as, TEST_PTR(writer), &TEST_ERROR);
        CHECK_EQ(strand_rwlock_try_write(&l), 0);
        strand_rwlock_write_done(&l);
    }
}

/* ---- misuse ---------------------------------------------------------------------------------------------- */

static void *read_twice(void *lock)
{
    for (long i = 0; i < test_scale(20000); i++) {
        STRAND_READ_LOCKED(lock);
        STRAND_READ_LOCKED(lock);
    }
    return NULL;
}

/* Others come and go meanwhile: that is no wait for itself. */
/* contract 5.6 */
TEST_RACE(reading_again_where_no_writer_waits_is_let_pass)
{
    strand_rwlock lock = {0};
    STRAND_SCOPE(s);
    for (int i = 0; i < 4; i++)
        strand_spawn(s, read_twice, &lock);
    strand_scope_join(s);
}
