/*
 * Waiting for quiescence: what counts as work, and that no moment counts as quiescent in which a strand is about to
 * continue.
 */
#define SUITE quiescence
#include "test.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/port.h"
#include "strand/scheduler.h"
#include "strand/select.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#define SOON (3 * STRAND_MS)

static void await_quiescent_pool(void)
{
    strand_wait_quiet((strand_pool){{0}}, 0);
}

static void await_quiescent_run(void)
{
    strand_wait_quiet((strand_pool){{0}}, STRAND_QUIET_RUN);
}

/* ---- what counts as work -------------------------------------------------------------------- */

static void *work(void *arg)
{
    _Atomic int *done = arg;
    for (int i = 0; i < 20; i++)
        strand_yield();
    strand_sleep(SOON);
    (*done)++;
    return NULL;
}

static void *work_of_two(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, work, arg);
    strand_spawn(scope, work, arg);
    strand_scope_join(scope);
    return NULL;
}

/* S-34, S-36, S-37 */
TEST_INSIDE(work_is_handed_out_in_portions_each_when_the_run_is_quiescent)
{
    static _Atomic int done;
    done = 0;
    STRAND_SCOPE(scope);
    for (int portion = 1; portion <= 4; portion++) {
        for (int i = 0; i < 5; i++)
            strand_spawn(scope, work_of_two, (void *)&done);
        await_quiescent_pool();
        CHECK_EQ(done, portion * 10);
        CHECK_EQ(strand_scope_count(scope), (size_t)portion * 5);
    }
    strand_scope_join(scope);
}

typedef STRAND_CHAN(int) ints;

static int send(ints chan, int value)
{
    return STRAND_SEND(chan, &value);
}

static void *receive_for_ever(void *arg)
{
    int value;
    while (STRAND_RECEIVE(*(ints *)arg, &value) == 0)
        continue;
    return NULL;
}

/* S-37 */
TEST_INSIDE(a_strand_that_waits_for_others_of_the_run_does_not_count)
{
    static ints chan;
    STRAND_SCOPE(scope);
    chan = STRAND_CHAN_OPEN(ints, scope, 0);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, receive_for_ever, &chan);
    await_quiescent_pool();
    await_quiescent_run();
    CHECK_EQ(strand_scope_count(scope), 3);
    STRAND_CHAN_CLOSE(chan);
    strand_scope_join(scope);
    await_quiescent_pool();
}

static bool is_reached(strand_pool pool, unsigned flags, int64_t patience)
{
    bool reached = false;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(patience));
        strand_wait_quiet(pool, flags);
        reached = true;
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        reached = false;
    }
    STRAND_END
    return reached;
}

/* S-37 */
TEST_INSIDE(a_sleeper_counts_unless_a_stall_is_enough)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, test_sleep, NULL);
    CHECK(!is_reached((strand_pool){{0}}, 0, SOON));
    CHECK(!is_reached((strand_pool){{0}}, STRAND_QUIET_RUN, SOON));
    CHECK(is_reached((strand_pool){{0}}, STRAND_QUIET_STALLED, FOREVER));
    CHECK(is_reached((strand_pool){{0}}, STRAND_QUIET_STALLED | STRAND_QUIET_RUN, FOREVER));
    strand_scope_cancel(scope, NULL);
    strand_scope_join(scope);
    CHECK(is_reached((strand_pool){{0}}, 0, FOREVER));
}

/* S-37 */
TEST_INSIDE(a_deadline_of_ones_own_does_not_count_and_ends_the_wait)
{
    STRAND_SCOPE(scope);
    STRAND_DEADLINE(strand_in(FOREVER));
    CHECK(is_reached((strand_pool){{0}}, 0, FOREVER));
    CHECK(is_reached((strand_pool){{0}}, STRAND_QUIET_RUN, FOREVER));
    strand_spawn(scope, test_sleep, NULL);
    CHECK(!is_reached((strand_pool){{0}}, 0, SOON));
    strand_scope_cancel(scope, NULL);
    strand_scope_join(scope);
}

static void *wait_under_a_deadline(void *arg)
{
    static strand_event never;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(SOON));
        strand_event_wait(&never);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        (*(_Atomic int *)arg)++;
    }
    STRAND_END
    return NULL;
}

static void *sleep_twice(void *arg)
{
    strand_sleep(2 * SOON);
    strand_sleep(SOON);
    (*(_Atomic int *)arg)++;
    return NULL;
}

/* S-37 */
TEST_INSIDE(a_deadline_of_anothers_counts)
{
    static _Atomic int done;
    done = 0;
    STRAND_SCOPE(scope);
    strand_spawn(scope, wait_under_a_deadline, (void *)&done);
    await_quiescent_pool();
    CHECK_EQ(done, 1);
    strand_scope_join(scope);
}

/* S-37 */
TEST_INSIDE(a_deadline_of_ones_own_does_not_count_in_a_shield_either)
{
    strand_time end = strand_in(FOREVER);
    STRAND_DEADLINE(end);
    STRAND_SHIELD;
    await_quiescent_pool();
    await_quiescent_run();
    CHECK(strand_now().ns < end.ns);
}

/* It passes while the strand waits, and then nothing of it is left to be overlooked. */
TEST_INSIDE(a_shielded_deadline_of_ones_own_that_passes_meanwhile_hides_nobody_elses)
{
    static _Atomic int done;
    done = 0;
    STRAND_SCOPE(scope);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(SOON));
        STRAND_SHIELD;
        strand_spawn(scope, work, (void *)&done);
        strand_spawn(scope, wait_under_a_deadline, (void *)&done);
        for (int i = 0; i < 3; i++)
            strand_spawn(scope, sleep_twice, (void *)&done);
        await_quiescent_pool();
        CHECK_EQ(done, 5);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    strand_scope_join(scope);
}

static void *wait_for_quiescence(void *arg)
{
    strand_wait_quiet((strand_pool){{0}}, *(unsigned *)arg);
    return arg;
}

/* S-37 */
TEST_INSIDE(a_waiter_for_quiescence_can_be_cancelled)
{
    static unsigned flags[] = {0, STRAND_QUIET_RUN};
    STRAND_SCOPE(scope);
    strand_spawn(scope, test_sleep, NULL);
    for (int i = 0; i < 4; i++) {
        strand child = strand_spawn(scope, wait_for_quiescence, &flags[i % 2]);
        for (int j = 0; j < i; j++)
            strand_yield();
        strand_cancel(child, NULL);
        CHECK(test_join_interrupted(child));
    }
    strand_scope_cancel(scope, NULL);
    strand_scope_join(scope);
    await_quiescent_pool();
}

static void *wait_then_note(void *arg)
{
    await_quiescent_pool();
    (*(_Atomic int *)arg)++;
    return NULL;
}

TEST_INSIDE(a_cancel_that_comes_when_the_pool_is_quiescent_already_does_not_undo_that)
{
    static _Atomic int done;
    STRAND_SCOPE(scope);
    for (long i = 0; i < test_scale(100); i++) {
        done = 0;
        strand child = strand_spawn(scope, wait_then_note, (void *)&done);
        await_quiescent_pool(); /* both wait, so both are woken */
        strand_cancel(child, NULL);
        strand_join(child);
        CHECK_EQ(done, 1);
    }
}

/* ---- what comes from outside ----------------------------------------------------------------- */

static int ends[2];
static strand_port port;

static void *read_one(void *arg)
{
    char byte;
    CHECK_EQ(strand_read(ends[0], &byte, 1), 1);
    (*(_Atomic int *)arg)++;
    return NULL;
}

static void *receive_one(void *arg)
{
    char byte;
    CHECK_EQ(strand_port_receive(port, &byte, 1), 1);
    (*(_Atomic int *)arg)++;
    return NULL;
}

static void *take_a_while(void *arg)
{
    strand_sim_sleep(SOON);
    (*(_Atomic int *)arg)++;
    return NULL;
}

static void *offload_one(void *arg)
{
    strand_offload(take_a_while, arg);
    return NULL;
}

/* S-37 */
TEST_INSIDE(a_strand_that_waits_for_something_outside_counts)
{
    static _Atomic int done;
    done = 0;
    STRAND_SCOPE(scope);
    CHECK_EQ(strand_pipe(ends), 0);
    port = strand_port_open(scope, 1, 4, NULL);
    strand_spawn(scope, read_one, (void *)&done);
    CHECK(!is_reached((strand_pool){{0}}, 0, SOON));
    CHECK(is_reached((strand_pool){{0}}, STRAND_QUIET_STALLED, FOREVER));
    CHECK_EQ(strand_write(ends[1], "x", 1), 1);
    await_quiescent_pool();
    CHECK_EQ(done, 1);

    strand_spawn(scope, receive_one, (void *)&done);
    CHECK(!is_reached((strand_pool){{0}}, 0, SOON));
    CHECK_EQ(strand_port_send(port, "x", 1), 0);
    await_quiescent_pool();
    CHECK_EQ(done, 2);

    strand_spawn(scope, offload_one, (void *)&done);
    await_quiescent_pool();
    CHECK_EQ(done, 3);
    strand_scope_join(scope);
    strand_close(ends[0]);
    strand_close(ends[1]);
}

static void *select_descriptor_or_chan(void *arg)
{
    int value;
    strand_case cases[] = {strand_on_ready(ends[0], STRAND_READABLE), STRAND_ON_RECEIVE(*(ints *)arg, &value)};
    return TEST_PTR(strand_select(cases, 2, 0) + 1);
}

/* S-37 */
TEST_INSIDE(a_select_of_something_outside_counts_as_long_as_it_waits)
{
    static ints chan;
    STRAND_SCOPE(scope);
    CHECK_EQ(strand_pipe(ends), 0);
    chan = STRAND_CHAN_OPEN(ints, scope, 0);
    strand child = strand_spawn(scope, select_descriptor_or_chan, &chan);
    CHECK(!is_reached((strand_pool){{0}}, 0, SOON));
    CHECK_EQ(send(chan, 1), 0);
    CHECK_PTR(strand_join(child), TEST_PTR(2));
    await_quiescent_pool();
    strand_close(ends[0]);
    strand_close(ends[1]);
}

static void *select_message_or_chan(void *arg)
{
    int value;
    char byte;
    strand_case cases[] = {strand_on_message(port, &byte, 1), STRAND_ON_RECEIVE(*(ints *)arg, &value)};
    return TEST_PTR(strand_select(cases, 2, 0) + 1);
}

/* S-37 */
TEST_INSIDE(a_select_of_a_port_counts_as_long_as_it_waits)
{
    static ints chan;
    STRAND_SCOPE(scope);
    chan = STRAND_CHAN_OPEN(ints, scope, 0);
    port = strand_port_open(scope, 1, 4, NULL);
    for (int i = 0; i < 2; i++) {
        strand child = strand_spawn(scope, select_message_or_chan, &chan);
        CHECK(!is_reached((strand_pool){{0}}, 0, SOON));
        CHECK(is_reached((strand_pool){{0}}, STRAND_QUIET_STALLED, FOREVER));
        CHECK_EQ(i ? send(chan, 1) : strand_port_send(port, "x", 1), 0);
        CHECK_PTR(strand_join(child), TEST_PTR(i + 1));
        await_quiescent_pool();
    }
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* S-36 */
TEST_RACE(quiescence_of_another_pool_and_of_all_pools)
{
    static _Atomic int done;
    done = 0;
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2, .name = "other"));
    strand_wait_quiet(pool, 0); /* nothing has ever run there */
    for (int i = 0; i < 10; i++)
        test_spawn_onto(scope, pool, work_of_two, (void *)&done);
    strand_wait_quiet(pool, 0);
    CHECK_EQ(done, 20);
    strand_spawn(scope, test_sleep, NULL);
    strand_wait_quiet(pool, 0);
    CHECK(!is_reached((strand_pool){{0}}, STRAND_QUIET_RUN, SOON));
    strand_scope_cancel(scope, NULL);
    strand_scope_join(scope);
    await_quiescent_run();
}

static strand_pool another;

static void *wait_for_the_other(void *arg)
{
    strand_wait_quiet(another, 0);
    return arg;
}

/* S-37 */
TEST_RACE(quiescence_of_a_pool_that_is_closed_meanwhile)
{
    static _Atomic int done;
    done = 0;
    STRAND_SCOPE(outer);
    for (int i = 0; i < 10; i++) {
        strand waiter;
        {
            STRAND_SCOPE(scope);
            another = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1 + i % 2));
            test_spawn_onto(scope, another, test_sleep, NULL);
            waiter = strand_spawn(outer, wait_for_the_other, (void *)&done);
            for (int j = 0; j < i; j++)
                strand_yield();
            strand_wait_quiet((strand_pool){{0}}, STRAND_QUIET_STALLED); /* it has found the pool */
            strand_scope_cancel(scope, NULL);
            strand_pool_close(another, NULL);
        }
        CHECK_PTR(strand_join(waiter), &done);
    }
}

static void *receive_and_yield(void *arg)
{
    int value;
    while (STRAND_RECEIVE(*(ints *)arg, &value) == 0)
        strand_yield();
    return NULL;
}

/* S-33 */
TEST_RACE(a_sleeping_seeker_is_woken_when_the_last_busy_thread_becomes_idle)
{
    static ints chan;
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    chan = STRAND_CHAN_OPEN(ints, scope, 4);
    for (int i = 0; i < 2; i++)
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = STRAND_PIN(i)), receive_and_yield, &chan, 0);
    strand_spawn(scope, test_sleep, NULL);
    for (long i = 0; i < test_scale(200); i++) {
        CHECK_EQ(send(chan, 1), 0);
        if (i % 2)
            strand_yield();
        CHECK(is_reached(pool, i % 4 ? 0 : STRAND_QUIET_STALLED, 10 * STRAND_S));
    }
    STRAND_CHAN_CLOSE(chan);
    strand_scope_cancel(scope, NULL);
    strand_scope_join(scope);
}

static void *wait_here(void *arg)
{
    await_quiescent_pool();
    (*(_Atomic int *)arg)++;
    return NULL;
}

/* S-36 */
TEST_RACE(several_wait_at_once_and_none_for_another)
{
    static _Atomic int done, waited;
    static unsigned of_all = STRAND_QUIET_RUN;
    done = waited = 0;
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    for (int i = 0; i < 3; i++) {
        strand_spawn(scope, wait_here, (void *)&waited);
        test_spawn_onto(scope, pool, wait_here, (void *)&waited);
        test_spawn_onto(scope, pool, wait_for_quiescence, &of_all);
    }
    strand_spawn(scope, work_of_two, (void *)&done);
    await_quiescent_run();
    CHECK_EQ(done, 2);
    strand_scope_join(scope);
    CHECK_EQ(waited, 6);
}

static int refuse(void *state)
{
    (void)state;
    return -ENOMEM;
}

static void keep(void *state, strand_task *task, enum strand_task_origin how, int thread)
{
    (void)state, (void)task, (void)how, (void)thread;
}

static strand_task *give_none(void *state, int thread)
{
    (void)state, (void)thread;
    return NULL;
}

TEST_RACE(a_pool_that_could_not_be_opened_is_none)
{
    static const strand_scheduler custom = {
        .size = sizeof custom, .name = "none", .open = refuse, .push = keep, .pick = give_none};
    volatile bool refused = false;
    STRAND_SCOPE(scope);
    STRAND_TRY {
        strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .custom = &custom));
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
        refused = true;
    }
    STRAND_END
    CHECK(refused);
    CHECK(is_reached((strand_pool){{0}}, STRAND_QUIET_RUN, FOREVER));
}

/* ---- pools that a plain thread drives --------------------------------------------------------- */

static void *drive_to_the_end(void *arg)
{
    while (strand_pool_drive(another, strand_in(10 * STRAND_MS), STRAND_DRIVE_WAIT) == 1)
        continue;
    return arg;
}

/* S-36 */
TEST_REAL_RACE(a_pool_that_nobody_drives_is_quiescent)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = "current"));
    CHECK(is_reached(pool, 0, FOREVER));
    CHECK(is_reached(pool, STRAND_QUIET_STALLED, FOREVER));
    CHECK(is_reached((strand_pool){{0}}, STRAND_QUIET_RUN, FOREVER));
    another = pool;
    pthread_t driver;
    CHECK_EQ(pthread_create(&driver, NULL, drive_to_the_end, NULL), 0);
    strand_pool_close(pool, NULL);
    pthread_join(driver, NULL);
}

static _Atomic int driven, enough;

/* For a while, and there is something left to be done the next time. */
static void *drive_now_and_then(void *arg)
{
    struct pollfd ready = {.fd = strand_pool_fd(another), .events = POLLIN};
    for (; driven < 3; driven++) {
        CHECK_EQ(poll(&ready, 1, -1), 1);
        CHECK_EQ(strand_pool_drive(another, strand_in(STRAND_MS), 0), 1);
    }
    while (!enough)
        usleep(1000);
    return drive_to_the_end(arg);
}

static void *yield_until_it_is_enough(void *arg)
{
    while (!enough)
        strand_yield();
    return arg;
}

/* S-42 */
TEST_REAL_RACE(a_strand_pinned_to_a_thread_that_comes_back_later_is_not_overlooked)
{
    pthread_t driver;
    driven = enough = 0;
    STRAND_SCOPE(scope);
    another = strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = "current"));
    strand child =
        strand_spawn_with(scope, STRAND_ATTR(.pool = another, .pin = STRAND_PIN(0)), yield_until_it_is_enough, NULL, 0);
    CHECK_EQ(pthread_create(&driver, NULL, drive_now_and_then, NULL), 0);
    while (driven < 3)
        strand_sleep(STRAND_MS);
    CHECK(!is_reached(another, STRAND_QUIET_STALLED, SOON));
    CHECK(!is_reached((strand_pool){{0}}, STRAND_QUIET_STALLED | STRAND_QUIET_RUN, SOON));
    enough = 1;
    strand_join(child);
    strand_pool_close(another, NULL);
    pthread_join(driver, NULL);
}

/* ---- no moment counts as quiescent in which a strand is about to continue (S-62 to S-65) ------------ */

enum { HANDS = 8 };
static struct relay {
    ints to[HANDS];
    _Atomic long hops;
    long left;
} relay;

/* Passes the token on, sometimes after a sleep, or by a strand of its own. */
static void *pass_on(void *arg)
{
    int value = (int)(intptr_t)arg;
    return TEST_PTR(send(relay.to[value % HANDS], value));
}

static void *take_part(void *arg)
{
    int me = (int)(intptr_t)arg, value;
    STRAND_SCOPE(scope);
    while (STRAND_RECEIVE(relay.to[me], &value) == 0) {
        relay.hops++;
        if (value == 0)
            continue;
        if (value % 7 == 0)
            strand_sleep(1000);
        if (value % 5 == 0)
            strand_join(strand_spawn(scope, pass_on, TEST_PTR(value - 1)));
        else
            CHECK_EQ(send(relay.to[(value - 1) % HANDS], value - 1), 0);
    }
    return NULL;
}

static void run_relay(strand_scope scope, const strand_pool *pools, int count, bool pinned)
{
    for (int i = 0; i < HANDS; i++) {
        relay.to[i] = STRAND_CHAN_OPEN(ints, scope, 1);
        strand_pool pool = pools[i % count];
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = pinned && i % 3 == 0 ? STRAND_PIN(0) : 0), take_part,
                          TEST_PTR(i), 0);
    }
    relay.hops = 0;
    for (long round = 1; round <= test_scale(200); round++) {
        CHECK_EQ(send(relay.to[35 % HANDS], 35), 0);
        await_quiescent_run();
        CHECK_EQ(relay.hops, round * 36);
    }
    for (int i = 0; i < HANDS; i++)
        STRAND_CHAN_CLOSE(relay.to[i]);
    strand_scope_join(scope);
}

/* S-35, S-63 */
TEST_RACE(a_token_that_goes_round_is_never_overlooked)
{
    STRAND_SCOPE(scope);
    strand_pool here = strand_pool_self();
    run_relay(scope, &here, 1, false);
}

/* S-42, S-62 */
TEST_RACE(a_token_that_goes_round_several_pools_is_never_overlooked)
{
    STRAND_SCOPE(scope);
    strand_pool pools[] = {strand_pool_self(), strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2)),
                           strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1))};
    run_relay(scope, pools, 3, true);
}

static void *save(void *arg)
{
    _Atomic int *done = arg;
    strand_yield();
    (*done)++;
    return NULL;
}

/* The ordinary one of S-65: woken by a last message, it starts a boatload of work. */
static void *save_progress(void *arg)
{
    int value;
    STRAND_SCOPE(scope);
    CHECK_EQ(STRAND_RECEIVE(relay.to[0], &value), 0);
    for (int i = 0; i < 50; i++)
        strand_spawn(scope, save, arg);
    strand_scope_join(scope);
    return NULL;
}

/* The pinned one: it gets its "quit", sends a message, and is gone. */
static void *quit(void *arg)
{
    strand_sleep(STRAND_MS / 10);
    CHECK_EQ(send(relay.to[0], 1), 0);
    return arg;
}

/* S-42, S-65 */
TEST_RACE(what_a_pinned_strands_last_message_starts_is_done_before_it_is_quiescent)
{
    static _Atomic int done;
    done = 0;
    STRAND_SCOPE(scope);
    strand_pool events = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "events"));
    for (long round = 1; round <= test_scale(100); round++) {
        STRAND_SCOPE(inner);
        relay.to[0] = STRAND_CHAN_OPEN(ints, inner, round % 2);
        strand_spawn(inner, save_progress, (void *)&done);
        strand_spawn_with(inner, STRAND_ATTR(.pool = events, .pin = STRAND_PIN(0)), quit, NULL, 0);
        await_quiescent_run();
        CHECK_EQ(done, round * 50);
        strand_scope_join(inner);
    }
}
