/*
 * What one strand did before it waited, ended, cancelled, stopped or closed something is seen by the strand whose wait
 * that ended: a test for each line of the table in docs/model.md that tests/spec/memory_model.c has none for. The
 * variable is plain on purpose: TSan says when an order is missing.
 */
#define SUITE memory_edges
#include "test.h"

#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/pool.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <errno.h>

enum { ROUNDS = 20 };

static struct {
    long plain; /* written by one strand, then read and written by another */
    strand child;
    strand_scope scope;
    strand_pool pool;
    strand_chan chan;
    strand_event event;
    strand_prio_semaphore prio;
    strand_limit limit;
    int pipe[2];
    _Atomic int ready;
} world;

/* On four threads, whatever the environment says: on one there is nothing to prove. */
static void run_on_four(strand_fn *fn)
{
    strand_options options = test_options();
    test_set_threads(&options, 4);
    memset((void *)&world, 0, sizeof world);
    strand_run(&options, fn, NULL);
}

static void check_written(void)
{
    CHECK_EQ(world.plain, 1);
    world.plain = 0;
}

static void *write_and_end(void *arg)
{
    strand_yield();
    world.plain = 1;
    return arg;
}

static void *write_and_fail(void *arg)
{
    (void)arg;
    strand_yield();
    world.plain = 1;
    strand_throw(&TEST_ERROR, "on purpose");
}

/* ---- the end of a strand ------------------------------------------------------------------------ */

static void *wait_for_child(void *arg)
{
    strand_wait(world.child);
    check_written();
    return arg;
}

static void *look_for_child(void *arg)
{
    while (!strand_ended(world.child))
        strand_yield();
    check_written();
    return arg;
}

static void *select_child(void *arg)
{
    strand_case c = strand_on_end(world.child);
    CHECK_EQ(strand_select(&c, 1, 0), 0);
    check_written();
    return arg;
}

/* Each of them looks at a child of its parent's, which it does not consume. */
static void *watch_children(void *arg)
{
    static strand_fn *const watchers[] = {wait_for_child, look_for_child, select_child};
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < sizeof watchers / sizeof *watchers; i++) {
            STRAND_SCOPE(scope);
            world.child = strand_spawn(scope, write_and_end, NULL);
            strand_spawn(scope, watchers[i], NULL);
            strand_scope_join(scope);
        }
    return arg;
}

/* contract 8.3 */
TEST(a_strand_that_sees_the_end_of_another_sees_what_it_did)
{
    run_on_four(watch_children);
}

static void *take_from_scope(void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
        strand child = strand_spawn(scope, write_and_end, NULL), next = strand_scope_wait_next(scope);
        CHECK_EQ(strand_id(next), strand_id(child));
        check_written();
        strand_join(child);
        strand_spawn(scope, write_and_fail, NULL);
        strand_exception *e;
        while (!(e = strand_scope_failure(scope, NULL)))
            strand_yield();
        check_written();
        strand_exception_release(e);
    }
    return arg;
}

/* contract 8.3 */
TEST(the_next_of_a_scope_and_its_failure_show_what_the_child_did)
{
    run_on_four(take_from_scope);
}

static void *be_interrupted_by_a_failure(void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        STRAND_TRY {
            STRAND_SCOPE(scope);
            strand_spawn(scope, write_and_fail, NULL);
            strand_event_wait(&world.event);
        }
        STRAND_CATCH(&TEST_ERROR, e) {
            check_written();
        }
        STRAND_END
    }
    return arg;
}

/* contract 8.3 */
TEST(an_owner_interrupted_by_a_childs_failure_sees_what_the_child_did)
{
    run_on_four(be_interrupted_by_a_failure);
}

/* ---- what is asked of others --------------------------------------------------------------------- */

static void *await_cancel(void *arg)
{
    STRAND_TRY {
        strand_event_wait(&world.event);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        check_written();
        world.plain = 2;
    }
    STRAND_END
    return arg;
}

static void *cancel_child(void *arg)
{
    for (int round = 0; round < 2 * ROUNDS; round++) {
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, await_cancel, NULL);
        if (round % 4)
            strand_yield();
        world.plain = 1;
        if (round % 2)
            strand_cancel(child, NULL);
        else
            strand_scope_cancel(scope, NULL);
        strand_join(child);
        CHECK_EQ(world.plain, 2);
    }
    return arg;
}

/* contract 8.3 */
TEST(a_cancelled_strand_sees_what_the_canceller_did)
{
    run_on_four(cancel_child);
}

static void *await_stop(void *arg)
{
    strand_wait_stopping();
    check_written();
    return arg;
}

static void *stop_run(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, await_stop, NULL);
    strand_yield();
    world.plain = 1;
    CHECK_EQ(strand_run_stop(strand_run_self(), INT64_MAX, NULL), 0);
    strand_scope_join(scope);
    return arg;
}

/* contract 8.3 */
TEST(a_waiter_for_the_shut_down_sees_what_was_done_before_it)
{
    run_on_four(stop_run);
}

/* ---- closing ------------------------------------------------------------------------------------- */

static void *receive_close(void *arg)
{
    long value;
    CHECK_EQ(strand_chan_receive(world.chan, &value), -EPIPE);
    check_written();
    return arg;
}

static void *close_chan(void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        STRAND_SCOPE(scope);
        world.chan = strand_chan_open(scope, sizeof(long), 0, NULL);
        strand_spawn(scope, receive_close, NULL);
        if (round % 2)
            strand_yield();
        world.plain = 1;
        strand_chan_close(world.chan);
        strand_scope_join(scope);
    }
    return arg;
}

/* contract 8.3 */
TEST(a_receive_that_returns_closed_sees_what_was_done_before)
{
    run_on_four(close_chan);
}

static void *read_until_closed(void *arg)
{
    char byte;
    world.ready = 1;
    CHECK(strand_read(world.pipe[0], &byte, 1) < 0);
    check_written();
    return arg;
}

static void *close_pipe(void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        STRAND_SCOPE(scope);
        CHECK_EQ(strand_pipe(world.pipe), 0);
        world.ready = 0;
        strand_spawn(scope, read_until_closed, NULL);
        test_yield_until(&world.ready, 1);
        test_await_blocked("waits for descriptor", 1);
        world.plain = 1;
        strand_close(world.pipe[0]);
        strand_scope_join(scope);
        strand_close(world.pipe[1]);
    }
    return arg;
}

/* contract 8.3 */
TEST(a_waiter_woken_by_the_close_of_a_descriptor_sees_what_was_done_before)
{
    run_on_four(close_pipe);
}

static void *close_pool(void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        STRAND_SCOPE(scope);
        world.pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
        strand_spawn_with(scope, STRAND_ATTR(.pool = world.pool), write_and_end, NULL, 0);
        strand_pool_close(world.pool, NULL);
        world.plain = 0; /* its strand has ended */
        strand_scope_cancel(scope, NULL);
    }
    return arg;
}

/* contract 8.3 */
TEST(the_closer_of_a_pool_sees_what_its_strands_did)
{
    run_on_four(close_pool);
}

/* ---- messages to actors ----------------------------------------------------------------------------- */

STRAND_MESSAGE(slip, { long *at; });
STRAND_MESSAGE(question, { long *at; });
STRAND_MESSAGE(answer, { char none; });

enum { TELLERS = 4, TELLS = 40 };

static long slips[TELLERS][TELLS]; /* 1: the sender has written it; 2: the actor has */
static strand_actor reader;

/* All turns count in one plain variable. */
static void read_and_count(void *state, strand_message *message)
{
    const slip *told = STRAND_IS(message, slip);
    const question *asked = STRAND_IS(message, question);
    long *at = told ? told->at : asked->at;
    (void)state;
    CHECK_EQ(*at, 1);
    *at = 2;
    if (++world.plain % 4 == 0)
        strand_yield();
    if (asked)
        CHECK_EQ(strand_reply(message, STRAND_MSG(answer, 0)), 0);
}

static const strand_actor_class reading = {.size = sizeof reading, .name = "reading", .receive = read_and_count};

static void *write_and_notify(void *mine)
{
    long *slip_at = mine;
    for (int i = 0; i < TELLS; i++) {
        slip_at[i] = 1;
        if (i % 4 == 0) {
            answer got;
            CHECK_EQ(strand_ask(reader, STRAND_MSG(question, &slip_at[i]), STRAND_INTO(answer, &got)), 0);
            CHECK_EQ(slip_at[i], 2);
        } else {
            CHECK_EQ(strand_tell(reader, STRAND_MSG(slip, &slip_at[i])), 0);
        }
    }
    return mine;
}

static void *exchange_messages(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        STRAND_ACTORS(system, NULL);
        STRAND_SCOPE(scope);
        world.plain = 0;
        reader = strand_actor_spawn(system, NULL, &reading, NULL, 0);
        for (int n = 0; n < TELLERS; n++)
            strand_spawn(scope, write_and_notify, slips[n]);
        strand_scope_join(scope);
        CHECK_EQ(strand_actor_stop(reader, STRAND_STOP_LAST), 0);
        CHECK_EQ(strand_actor_wait(reader), 0);
        CHECK_EQ(world.plain, TELLERS * TELLS);
    }
    return arg;
}

/* contract 8.2, 8.3 */
TEST(an_actor_sees_what_its_senders_and_its_earlier_turns_did_and_askers_see_what_it_did)
{
    run_on_four(exchange_messages);
}

/* ---- permits -------------------------------------------------------------------------------------- */

static void *count_within(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        STRAND_LIMIT_PERMIT(&world.limit);
        STRAND_PRIO_PERMIT(&world.prio, NULL);
        world.plain++;
        if (i % 4 == 0)
            strand_yield();
    }
    return arg;
}

static void *share_limit(void *arg)
{
    STRAND_SCOPE(scope);
    strand_prio_options options = {.size = sizeof options, .permits = 1};
    strand_prio_init(&world.prio, &options);
    strand_limit_init(&world.limit, 1, "limit");
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, count_within, NULL);
    strand_scope_join(scope);
    CHECK_EQ(world.plain, 4 * ROUNDS);
    return arg;
}

/* contract 8.2 */
TEST(the_next_holder_of_a_permit_of_a_limit_sees_what_the_last_one_did)
{
    run_on_four(share_limit);
}

/* ---- quiet ------------------------------------------------------------------------------------------ */

/* It writes, waits, and goes on writing: not after the end, nor by anything that is handed over. */
static void *write_and_wait(void *arg)
{
    strand_yield();
    world.plain = 1;
    strand_event_wait(&world.event);
    CHECK_EQ(world.plain, 2);
    world.plain = 3;
    return arg;
}

static void *await_quiet(void *arg)
{
    for (unsigned round = 0; round < 4 * ROUNDS; round++) {
        STRAND_SCOPE(scope);
        bool other = round % 4 == 3;
        unsigned flags = round % 4 == 1 ? STRAND_QUIET_RUN : round % 4 == 2 ? STRAND_QUIET_STALLED : 0;
        world.event = (strand_event){0};
        world.pool = other ? strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2)) : (strand_pool){{0}};
        strand child = strand_spawn_with(scope, STRAND_ATTR(.pool = world.pool), write_and_wait, NULL, 0);
        strand_wait_quiet(world.pool, flags);
        check_written();
        world.plain = 2;
        strand_event_set(&world.event);
        strand_join(child);
        CHECK_EQ(world.plain, 3);
    }
    return arg;
}

/* contract 8.3 */
TEST(a_waiter_for_quiescence_sees_what_the_blocked_strands_did)
{
    run_on_four(await_quiet);
}
