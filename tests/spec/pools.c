/*
 * Pools that are opened in scopes: where strands run, what crosses pools, closing, resizing, pinning.
 */
#define _GNU_SOURCE
#define SUITE pools
#include "test.h"

#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/pool.h"
#include "strand/sync.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

static bool same(strand_pool a, strand_pool b)
{
    return a.bits[0] == b.bits[0] && a.bits[1] == b.bits[1];
}

/* ---- where strands run ---------------------------------------------------------------------- */

static void *note_pool(void *out)
{
    *(strand_pool *)out = strand_pool_self();
    return out;
}

static void *note_pools_of_two(void *out)
{
    strand_pool *pools = out;
    pools[0] = strand_pool_self();
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, note_pool, &pools[1]));
    return out;
}

/* A-20, V-02, V-10 */
TEST_INSIDE(a_strand_lives_on_the_pool_that_it_is_given_and_what_it_spawns_too)
{
    static strand_pool seen[2];
    STRAND_SCOPE(scope);
    strand_pool here = strand_pool_self(), there = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    CHECK(!same(here, there));
    strand_join(test_spawn_onto(scope, there, note_pools_of_two, seen));
    CHECK(same(seen[0], there));
    CHECK(same(seen[1], there));
    strand_join(strand_spawn(scope, note_pools_of_two, seen));
    CHECK(same(seen[0], here));
    CHECK(same(seen[1], here));
    strand_join(test_spawn_onto(scope, here, note_pool, seen));
    CHECK(same(seen[0], here));
    CHECK(same(strand_pool_self(), here));
}

static void *note_thread(void *out)
{
    *(pid_t *)out = gettid();
    return out;
}

/* V-02 */
TEST_REAL_INSIDE(a_pool_has_threads_of_its_own)
{
    static pid_t seen;
    STRAND_SCOPE(scope);
    strand_pool there = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    pid_t here = gettid();
    strand_join(test_spawn_onto(scope, there, note_thread, &seen));
    CHECK(seen != here && seen != getpid());
}

/* S-29 */
TEST_INSIDE(a_pool_says_what_it_is)
{
    STRAND_SCOPE(scope);
    strand_pool pool =
        strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 3, .scheduler = "global", .name = "workers"));
    strand_pool_info info = test_pool_info(pool);
    CHECK_STR(info.name, "workers");
    CHECK_STR(info.scheduler, "global");
    CHECK_EQ(info.threads, 3);
    CHECK_EQ(info.wanted, 3);
    CHECK_EQ(info.strands, 0);
    CHECK_EQ(test_pool_info(strand_pool_self()).strands >= 1, 1);
}

/* ---- what crosses pools --------------------------------------------------------------------- */

static void *fail(void *arg)
{
    strand_throw(&STRAND_ERROR, "it fails over there");
    return arg;
}

static void *join_what_fails(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(test_spawn_onto(scope, *(strand_pool *)arg, fail, NULL));
    return arg;
}

/* V-02 */
TEST_INSIDE(a_join_takes_values_and_exceptions_across_pools)
{
    static strand_pool pool;
    int value = 7;
    void *result = NULL;
    STRAND_SCOPE(scope);
    pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    CHECK_PTR(strand_join(test_spawn_onto(scope, pool, test_return, &value)), &value);
    strand_exception *e = strand_try(join_what_fails, &pool, &result);
    CHECK_KIND(e, &STRAND_ERROR);
    strand_exception_release(e);
}

/* V-02 */
TEST_INSIDE(a_cancel_reaches_a_strand_of_another_pool)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    strand child = test_spawn_onto(scope, pool, test_sleep, NULL);
    strand_yield();
    strand_cancel(child, "enough");
    strand_wait(child);
}

static void *answer(void *arg)
{
    strand_chan *chans = arg;
    long value;
    while (strand_chan_receive(chans[0], &value) == 0) {
        value++;
        CHECK_EQ(strand_chan_send(chans[1], &value), 0);
    }
    return arg;
}

/* V-02 */
TEST_INSIDE(channels_carry_values_between_pools)
{
    static strand_chan chans[2];
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    chans[0] = strand_chan_open(scope, sizeof(long), 0, NULL);
    chans[1] = strand_chan_open(scope, sizeof(long), 0, NULL);
    strand child = test_spawn_onto(scope, pool, answer, chans);
    for (long i = 0, value; i < test_scale(500); i++) {
        CHECK_EQ(strand_chan_send(chans[0], &i), 0);
        CHECK_EQ(strand_chan_receive(chans[1], &value), 0);
        CHECK_EQ(value, i + 1);
    }
    strand_chan_close(chans[0]);
    strand_join(child);
}

struct counter {
    strand_mutex mutex;
    long count;
};

static void *count_up(void *arg)
{
    struct counter *counter = arg;
    for (int i = 0; i < 200; i++) {
        strand_mutex_lock(&counter->mutex);
        long count = counter->count;
        if (i % 16 == 0)
            strand_yield();
        counter->count = count + 1;
        strand_mutex_unlock(&counter->mutex);
    }
    return arg;
}

/* V-02 */
TEST_INSIDE(a_mutex_excludes_strands_of_several_pools)
{
    static struct counter counter;
    memset(&counter, 0, sizeof counter);
    STRAND_SCOPE(scope);
    strand_pool pools[] = {strand_pool_self(), strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1)),
                           strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2))};
    for (int i = 0; i < 9; i++)
        test_spawn_onto(scope, pools[i % 3], count_up, &counter);
    strand_scope_join(scope);
    CHECK_EQ(counter.count, 9 * 200);
}

/* A tree whose strands alternate between pools, each joined by one on another. */
struct node {
    strand_pool pools[2];
    int depth;
};

static void *count_leaves(void *arg)
{
    struct node *node = arg, below = *node;
    if (!node->depth--)
        return (void *)1;
    below.depth--;
    STRAND_SCOPE(scope);
    strand left =
        strand_spawn_with(scope, STRAND_ATTR(.pool = node->pools[below.depth & 1]), count_leaves, &below, sizeof below);
    strand right = strand_spawn_with(scope, STRAND_ATTR(.pool = node->pools[0]), count_leaves, &below, sizeof below);
    return (void *)((uintptr_t)strand_join(left) + (uintptr_t)strand_join(right));
}

/* V-02 */
TEST_INSIDE(a_tree_may_lie_across_pools)
{
    STRAND_SCOPE(scope);
    struct node node = {{strand_pool_self(), strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2))}, 7};
    strand root = strand_spawn_with(scope, NULL, count_leaves, &node, sizeof node);
    CHECK_PTR(strand_join(root), TEST_PTR(128));
}

/* ---- closing -------------------------------------------------------------------------------- */

struct brood {
    int started, ended;
};

static void count_end(struct brood **brood)
{
    __atomic_fetch_add(&(*brood)->ended, 1, __ATOMIC_SEQ_CST);
}

static void *live_long(void *arg)
{
    struct brood *brood __attribute__((cleanup(count_end))) = arg;
    __atomic_fetch_add(&brood->started, 1, __ATOMIC_SEQ_CST);
    strand_sleep(FOREVER);
    return arg;
}

static void *have_children(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, live_long, arg);
    return live_long(arg);
}

static struct brood *new_brood(void)
{
    static struct brood brood;
    brood = (struct brood){0, 0};
    return &brood;
}

static void await_started(struct brood *brood, int count)
{
    while (__atomic_load_n(&brood->started, __ATOMIC_SEQ_CST) < count)
        strand_sleep(STRAND_MS);
}

static void *close_it(void *arg)
{
    strand_pool_close(*(strand_pool *)arg, "the day is over");
    return arg;
}

static void *join_a_strand_of_a_closed_pool(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    strand child = test_spawn_onto(scope, pool, test_sleep, NULL);
    strand_pool_close(pool, "the day is over");
    strand_join(child);
    return arg;
}

/* V-11, contract 2.14 */
TEST_INSIDE(closing_a_pool_cancels_its_strands_and_says_why)
{
    void *result;
    strand_exception *e = strand_try(join_a_strand_of_a_closed_pool, NULL, &result);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_CONTAINS(strand_exception_text(e), "the day is over");
    strand_exception_release(e);
}

/* V-11, contract 2.14 */
TEST_INSIDE(a_pool_is_closed_when_all_its_strands_have_ended_with_their_clean_ups)
{
    struct brood *brood = new_brood();
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    STRAND_SCOPE_WITH(inner, STRAND_COLLECT);
    for (int i = 0; i < 4; i++)
        test_spawn_onto(inner, pool, have_children, brood);
    await_started(brood, 16);
    CHECK_EQ(test_pool_info(pool).strands, 16);
    strand_pool_close(pool, NULL);
    CHECK_EQ(brood->ended, 16);
    CHECK_EQ(test_pool_info(pool).strands, 0);
    CHECK_EQ(test_pool_info(pool).threads, 0);
    strand_scope_cancel(inner, NULL);
}

static void *spawn_onto_closed(void *arg)
{
    STRAND_SCOPE(scope);
    test_spawn_onto(scope, *(strand_pool *)arg, test_return, NULL);
    return arg;
}

/* V-11, contract 2.14 */
TEST_INSIDE(a_spawn_onto_a_closed_pool_is_refused_and_starts_nothing)
{
    static strand_pool pool;
    void *result;
    STRAND_SCOPE(scope);
    pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    strand_pool_close(pool, NULL);
    strand_pool_close(pool, NULL);
    strand_exception *e = strand_try(spawn_onto_closed, &pool, &result);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -ESHUTDOWN);
    CHECK_CONTAINS(strand_exception_text(e), "closed");
    strand_exception_release(e);
    CHECK_EQ(strand_pool_resize(pool, 2), -ESHUTDOWN);
}

/* V-11, contract 2.14 */
TEST_INSIDE(several_strands_may_close_one_pool)
{
    static strand_pool pool;
    struct brood *brood = new_brood();
    STRAND_SCOPE(scope);
    pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    STRAND_SCOPE_WITH(inner, STRAND_COLLECT);
    test_spawn_onto(inner, pool, have_children, brood);
    await_started(brood, 4);
    STRAND_SCOPE(closers);
    for (int i = 0; i < 3; i++)
        strand_spawn(closers, close_it, &pool);
    strand_scope_join(closers);
    CHECK_EQ(brood->ended, 4);
    strand_scope_cancel(inner, NULL);
}

static void *spawn_while_it_lasts(void *arg)
{
    STRAND_SCOPE(scope);
    for (;;)
        strand_join(test_spawn_onto(scope, *(strand_pool *)arg, test_return, NULL));
    return arg;
}

/* V-11, contract 2.14 */
TEST_INSIDE(pools_may_be_closed_while_others_spawn_onto_them)
{
    static strand_pool pool;
    for (int round = 0; round < test_scale(30) + 1; round++) {
        STRAND_SCOPE(scope);
        pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1 + round % 3));
        STRAND_SCOPE_WITH(inner, STRAND_COLLECT);
        for (int i = 0; i < 3; i++)
            strand_spawn(inner, spawn_while_it_lasts, &pool);
        for (int i = 0; i < round; i++)
            strand_yield();
        strand_pool_close(pool, NULL);
        for (int i = 0; i < 3; i++) {
            strand_scope_wait_next(inner);
            strand_exception *e = strand_scope_failure(inner, NULL);
            CHECK(e != NULL);
            CHECK(strand_exception_is(e, &STRAND_SYSTEM) || strand_exception_is(e, &STRAND_CHILD_CANCELLED));
            strand_exception_release(e);
        }
    }
}

/* What has left the tree of a pool's strands, for an open scope elsewhere. */
struct exile {
    strand_scope away;
    struct brood *brood;
};

static void *send_away(void *arg)
{
    struct exile *exile = arg;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, live_long, exile->brood);
    CHECK_EQ(strand_hand_off(child, exile->away), 0);
    strand_spawn(exile->away, live_long, exile->brood);
    return arg;
}

/* V-11, contract 2.14 */
TEST_INSIDE(closing_a_pool_cancels_what_was_handed_off_or_spawned_elsewhere_too)
{
    static struct exile exile;
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    STRAND_SCOPE_WITH(away, STRAND_OPEN);
    exile = (struct exile){away, new_brood()};
    strand_join(test_spawn_onto(scope, pool, send_away, &exile));
    await_started(exile.brood, 2);
    strand_pool_close(pool, NULL);
    CHECK_EQ(exile.brood->ended, 2);
    strand_scope_cancel(away, NULL);
}

/* V-10, contract 2.14 */
TEST_INSIDE(a_pool_ends_with_its_scope)
{
    strand_stats before = {.size = sizeof before}, after = before;
    strand_stats_get(&before);
    for (int i = 0; i < test_scale(20) + 2; i++) {
        STRAND_SCOPE(scope);
        strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
        strand_join(test_spawn_onto(scope, pool, test_return, NULL));
    }
    strand_stats_get(&after);
    CHECK_EQ(after.threads, before.threads);
    CHECK_EQ(after.live, before.live);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

static void *read_one(void *arg)
{
    char byte;
    CHECK_EQ(strand_read(*(int *)arg, &byte, 1), 1);
    return arg;
}

TEST_INSIDE(a_descriptor_that_a_closed_pool_has_watched_is_watched_on)
{
    static int fds[2];
    CHECK_EQ(strand_pipe(fds), 0);
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    strand there = test_spawn_onto(scope, pool, read_one, &fds[0]);
    strand_sleep(5 * STRAND_MS);
    CHECK_EQ(strand_write(fds[1], "x", 1), 1);
    strand_join(there);
    strand here = strand_spawn(scope, read_one, &fds[0]);
    strand_sleep(5 * STRAND_MS); /* it waits, as of a descriptor that the pool watches */
    strand_pool_close(pool, NULL);
    CHECK_EQ(strand_write(fds[1], "y", 1), 1);
    strand_join(here);
    strand_close(fds[0]);
    strand_close(fds[1]);
}

/* ---- resizing ------------------------------------------------------------------------------- */

/* S-29, V-10, V-20, contract 2.14 */
TEST_INSIDE(a_pool_may_be_made_larger_and_smaller)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    for (int threads = 4; threads; threads--) {
        CHECK_EQ(strand_pool_resize(pool, 5), 0);
        CHECK_EQ(test_pool_info(pool).wanted, 5);
        CHECK_EQ(strand_pool_resize(pool, threads), 0);
        CHECK_EQ(test_pool_info(pool).wanted, threads);
        test_await_threads(pool, threads);
        strand_join(test_spawn_onto(scope, pool, test_return, NULL));
    }
}

struct load {
    bool stop;
    long done;
};

static void *work_on(void *arg)
{
    struct load *load = arg;
    for (int round = 0; !__atomic_load_n(&load->stop, __ATOMIC_RELAXED); round++) {
        STRAND_SCOPE(scope);
        for (int i = 0; i < 8; i++)
            strand_spawn(scope, test_yield, arg);
        strand_scope_join(scope);
        __atomic_fetch_add(&load->done, 8, __ATOMIC_RELAXED);
        strand_sleep(round % 3 ? 0 : 10 * STRAND_US);
    }
    return arg;
}

/* V-10, contract 2.14 */
TEST_INSIDE(nothing_is_lost_when_a_pool_is_resized_under_load)
{
    static struct load load;
    load = (struct load){false, 0};
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    for (int i = 0; i < 6; i++)
        test_spawn_onto(scope, pool, work_on, &load);
    /* On a busy machine the pool's threads may run for the first time only after the usual number of rounds. */
    for (int i = 0; i < test_scale(100) + 4 || !__atomic_load_n(&load.done, __ATOMIC_RELAXED); i++) {
        CHECK_EQ(strand_pool_resize(pool, i % 2 ? 1 : 8), 0);
        strand_sleep(i % 5 * 100 * STRAND_US);
    }
    __atomic_store_n(&load.stop, true, __ATOMIC_RELAXED);
    strand_scope_join(scope);
    CHECK_EQ(strand_pool_resize(pool, 1), 0);
    test_await_threads(pool, 1);
}

static void *resize_the_first(void *arg)
{
    static struct load load;
    load = (struct load){false, 0};
    strand_pool pool = strand_pool_self();
    int before = test_pool_info(pool).wanted;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 6; i++)
        strand_spawn(scope, work_on, &load);
    for (int i = 0; i < test_scale(50) + 2; i++) {
        CHECK_EQ(strand_pool_resize(pool, i % 2 ? 1 : 4), 0);
        strand_sleep(100 * STRAND_US);
    }
    __atomic_store_n(&load.stop, true, __ATOMIC_RELAXED);
    strand_scope_join(scope);
    CHECK_EQ(strand_pool_resize(pool, before), 0);
    return arg;
}

/* V-10, contract 2.14 */
TEST(the_first_pool_may_be_resized_too)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        strand_options options = test_options();
        test_set_threads(&options, 4); /* on a scheduler of several */
        options.threads = threads;
        strand_run(&options, resize_the_first, NULL);
    }
}

static void *spin(void *arg)
{
    while (!__atomic_load_n((bool *)arg, __ATOMIC_RELAXED))
        sched_yield();
    return arg;
}

static void *spin_then_yield(void *arg)
{
    spin(arg);
    strand_yield();
    return arg;
}

/* V-10, V-20, contract 2.14 */
TEST_REAL_INSIDE(a_thread_goes_at_its_strands_next_switch_and_not_before)
{
    static bool stop;
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    strand a = test_spawn_onto(scope, pool, spin_then_yield, &stop),
           b = test_spawn_onto(scope, pool, spin_then_yield, &stop);
    strand_sleep(20 * STRAND_MS);
    CHECK_EQ(strand_pool_resize(pool, 1), 0);
    CHECK_EQ(test_pool_info(pool).wanted, 1);
    strand_sleep(20 * STRAND_MS);
    CHECK_EQ(test_pool_info(pool).threads, 2);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    strand_join(a);
    strand_join(b);
    test_await_threads(pool, 1);
}

/* ---- pinning -------------------------------------------------------------------------------- */

struct pinned {
    int index;
    strand_chan chan;
    long *count;
};

static void *stay(void *arg)
{
    struct pinned *pinned = arg;
    long value;
    CHECK_EQ(strand_thread_index(), pinned->index);
    pid_t thread = gettid();
    while (strand_chan_receive(pinned->chan, &value) == 0) {
        CHECK_EQ(gettid(), thread);
        CHECK_EQ(strand_thread_index(), pinned->index);
        strand_yield();
        strand_sleep(value % 7 ? 0 : 20 * STRAND_US);
        CHECK_EQ(strand_thread_index(), pinned->index);
        __atomic_fetch_add(pinned->count, 1, __ATOMIC_RELAXED);
    }
    return arg;
}

static void *feed(void *arg)
{
    for (long i = 0; i < 100; i++)
        CHECK_EQ(strand_chan_send(*(strand_chan *)arg, &i), 0);
    return arg;
}

static void check_pinned(strand_pool pool, int threads)
{
    static struct pinned pinned[8];
    static strand_chan chan;
    long count = 0;
    STRAND_SCOPE(scope);
    chan = strand_chan_open(scope, sizeof(long), 2, NULL);
    for (int i = 0; i < 8; i++) {
        pinned[i] = (struct pinned){i % threads, chan, &count};
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = STRAND_PIN(i % threads)), stay, &pinned[i], 0);
    }
    STRAND_SCOPE(feeders);
    for (int i = 0; i < 6; i++)
        test_spawn_onto(feeders, i % 2 ? pool : strand_pool_self(), feed, &chan);
    strand_scope_join(feeders);
    strand_chan_close(chan);
    strand_scope_join(scope);
    CHECK_EQ(count, 600);
}

/* S-38, S-39, S-41, S-59 */
TEST_INSIDE(a_pinned_strand_runs_on_its_thread_after_any_wake_up)
{
    STRAND_SCOPE(scope);
    check_pinned(strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 3)), 3);
    check_pinned(strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2, .scheduler = "global")), 2);
    check_pinned(strand_pool_self(), test_pool_info(strand_pool_self()).wanted);
}

static void *note_index(void *arg)
{
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(strand_thread_index(), *(int *)arg);
        strand_yield();
    }
    return arg;
}

/* S-38 */
TEST_INSIDE(here_is_the_thread_of_the_spawner)
{
    static int index;
    STRAND_SCOPE(scope);
    index = strand_thread_index();
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.pin = STRAND_PIN_HERE), note_index, &index, 0));
}

static void *pin_too_far(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.pool = *(strand_pool *)arg, .pin = STRAND_PIN(2)), test_return, NULL, 0);
    return arg;
}

static strand_scope of_the_fibre;

static void *open_a_fibre(void *fibre)
{
    *(strand_fibre *)fibre = strand_fibre_open(of_the_fibre, NULL);
    return fibre;
}

static void *close_the_pool(void *pool)
{
    strand_pool_close(*(strand_pool *)pool, "on purpose");
    return pool;
}

/* V-11 */
TEST_INSIDE(closing_a_pool_cancels_the_strands_on_its_shared_fibres)
{
    static strand_fibre fibre;
    static strand_pool pool;
    STRAND_SCOPE_WITH(scope, STRAND_OPEN | STRAND_COLLECT);
    of_the_fibre = scope;
    pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    strand_join(test_spawn_onto(scope, pool, open_a_fibre, &fibre));
    strand guest = strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), test_sleep, NULL, 0);
    strand closer = strand_spawn(scope, close_the_pool, &pool);
    strand_wait(guest);
    strand_join(closer);
    CHECK_EQ(test_pool_info(pool).strands, 0);
    strand_scope_cancel(scope, NULL);
}

/* S-38, contract 2.14 */
TEST_INSIDE(a_thread_that_strands_are_pinned_to_stays)
{
    static strand_pool pool;
    void *result;
    STRAND_SCOPE(scope);
    pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 4));
    strand child = strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = STRAND_PIN(1)), test_sleep, NULL, 0);
    CHECK_EQ(strand_pool_resize(pool, 1), -EBUSY);
    CHECK_EQ(test_pool_info(pool).wanted, 4);
    CHECK_EQ(strand_pool_resize(pool, 2), 0);
    CHECK_EQ(test_pool_info(pool).wanted, 2);
    strand_exception *e = strand_try(pin_too_far, &pool, &result);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -ENXIO);
    strand_exception_release(e);
    strand_cancel(child, NULL);
    strand_wait(child);
    CHECK_EQ(strand_pool_resize(pool, 1), 0);
    test_await_threads(pool, 1);
}

static void *take_turns(void *arg)
{
    long *turns = arg;
    while (*turns < 100) {
        ++*turns;
        strand_yield();
    }
    return arg;
}

static void *yield_until(void *arg)
{
    while (!__atomic_load_n((bool *)arg, __ATOMIC_RELAXED))
        strand_yield();
    return arg;
}

/* S-41 */
TEST_INSIDE(pinned_strands_and_others_of_a_thread_take_turns)
{
    static bool stop;
    static long turns[2];
    turns[0] = turns[1] = 0;
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    for (int i = 0; i < 2; i++) {
        test_spawn_onto(scope, pool, yield_until, &stop);
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = STRAND_PIN(0)), yield_until, &stop, 0);
    }
    strand other = test_spawn_onto(scope, pool, take_turns, &turns[0]);
    strand pinned = strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = STRAND_PIN(0)), take_turns, &turns[1], 0);
    strand_join(other);
    strand_join(pinned);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    strand_scope_join(scope);
}

/* ---- processors ----------------------------------------------------------------------------- */

static void *note_cpu(void *arg)
{
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    CHECK_EQ(CPU_COUNT(&set), 1);
    CHECK(CPU_ISSET(*(int *)arg, &set));
    return arg;
}

static void *note_freedom(void *arg)
{
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    CHECK_EQ(CPU_COUNT(&set), *(int *)arg);
    return arg;
}

static int first_cpu(cpu_set_t *set)
{
    int cpu = 0;
    while (!CPU_ISSET(cpu, set))
        cpu++;
    return cpu;
}

static void *open_from_a_bound_one(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool free = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    strand_join(test_spawn_onto(scope, free, note_freedom, arg));
    return arg;
}

/* contract 2.12 */
TEST_REAL_INSIDE(the_threads_of_a_pool_may_be_bound_to_cpus_and_those_of_others_are_not)
{
    static int cpu, count;
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    count = CPU_COUNT(&set);
    cpu = first_cpu(&set);
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2, .cpus = &cpu, .cpus_count = 1));
    strand_join(test_spawn_onto(scope, pool, note_cpu, &cpu));
    strand_join(test_spawn_onto(scope, pool, open_from_a_bound_one, &count));
}

static void *bind_to_nowhere(void *arg)
{
    int cpu = 1 << 20;
    STRAND_SCOPE(scope);
    strand_pool_open(scope, STRAND_POOL_ATTR(.cpus = &cpu, .cpus_count = 1));
    return arg;
}

/* contract 2.12 */
TEST_REAL_INSIDE(a_cpu_that_the_process_may_not_use_is_refused)
{
    void *result;
    strand_exception *e = strand_try(bind_to_nowhere, NULL, &result);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_CONTAINS(strand_exception_text(e), "CPU");
    strand_exception_release(e);
}
