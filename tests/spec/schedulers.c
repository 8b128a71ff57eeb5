/*
 * Schedulers: those that have names, and those of the user's.
 */
#define _GNU_SOURCE
#define SUITE schedulers
#include "test.h"

#include "strand/chan.h"
#include "strand/pool.h"
#include "strand/scheduler.h"
#include "strand/sync.h"

#include <errno.h>
#include <unistd.h>

/* ---- one after the other: the newest first -------------------------------------------------- */

struct lifo {
    strand_task *top;
    long pushed, picked;
};

static void lifo_push(void *state, strand_task *task, enum strand_task_origin how, int thread)
{
    struct lifo *lifo = state;
    (void)how, (void)thread;
    lifo->pushed++;
    task->next = lifo->top;
    lifo->top = task;
}

static strand_task *lifo_pick(void *state, int thread)
{
    struct lifo *lifo = state;
    strand_task *task = lifo->top;
    (void)thread;
    if (task) {
        lifo->top = task->next;
        lifo->picked++;
    }
    return task;
}

static const strand_scheduler lifo = {
    .size = sizeof lifo, .name = "lifo", .state_size = sizeof(struct lifo), .push = lifo_push, .pick = lifo_pick};

/* ---- by rank: the least first, first come, first served among equals ------------------------ */

enum { RANKS = 4 };

struct ranks {
    strand_task head[RANKS];
};

static int ranks_opened, ranks_closed;

static int ranks_open(void *state)
{
    struct ranks *ranks = state;
    for (int i = 0; i < RANKS; i++)
        ranks->head[i].next = ranks->head[i].prev = &ranks->head[i];
    ranks_opened++;
    return 0;
}

static void ranks_close(void *state)
{
    struct ranks *ranks = state;
    for (int i = 0; i < RANKS; i++)
        CHECK(ranks->head[i].next == &ranks->head[i]);
    ranks_closed++;
}

static void ranks_push(void *state, strand_task *task, enum strand_task_origin how, int thread)
{
    strand_task *head = &((struct ranks *)state)->head[strand_task_rank(task)];
    (void)how, (void)thread;
    task->next = head;
    task->prev = head->prev;
    head->prev->next = task;
    head->prev = task;
}

static bool ranks_take(void *state, strand_task *task)
{
    (void)state;
    task->prev->next = task->next;
    task->next->prev = task->prev;
    return true;
}

static strand_task *ranks_pick(void *state, int thread)
{
    struct ranks *ranks = state;
    (void)thread;
    for (int i = 0; i < RANKS; i++) {
        strand_task *task = ranks->head[i].next;
        if (task != &ranks->head[i]) {
            ranks_take(state, task);
            return task;
        }
    }
    return NULL;
}

static const strand_scheduler ranked = {.size = sizeof ranked,
                                        .name = "ranks",
                                        .state_size = sizeof(struct ranks),
                                        .open = ranks_open,
                                        .close = ranks_close,
                                        .push = ranks_push,
                                        .pick = ranks_pick,
                                        .take = ranks_take};

/* ---- any use: fork-join, channels, locks, sleeps -------------------------------------------- */

static void *count_leaves(void *arg)
{
    uintptr_t depth = (uintptr_t)arg;
    if (!depth)
        return (void *)1;
    STRAND_SCOPE(scope);
    strand left = strand_spawn(scope, count_leaves, (void *)(depth - 1));
    strand right = strand_spawn(scope, count_leaves, (void *)(depth - 1));
    return (void *)((uintptr_t)strand_join(left) + (uintptr_t)strand_join(right));
}

static void *pass_on(void *arg)
{
    strand_chan *chans = arg;
    long value;
    while (strand_chan_receive(chans[0], &value) == 0) {
        value++;
        if (value % 5 == 0)
            strand_sleep(STRAND_US);
        strand_yield();
        STRAND_IGNORE(strand_chan_send(chans[1], &value));
    }
    strand_chan_close(chans[1]);
    return arg;
}

static void *use_it(void *arg)
{
    enum { STAGES = 4, ITEMS = 40 };
    static strand_chan chans[STAGES + 1];
    long sum = 0, value;
    CHECK_PTR(count_leaves((void *)6), TEST_PTR(64));
    STRAND_SCOPE(scope);
    for (int i = 0; i <= STAGES; i++)
        chans[i] = strand_chan_open(scope, sizeof(long), (size_t)i, NULL);
    for (int i = 0; i < STAGES; i++)
        strand_spawn(scope, pass_on, &chans[i]);
    for (long i = 0; i < ITEMS; i++) {
        CHECK_EQ(strand_chan_send(chans[0], &i), 0);
        CHECK_EQ(strand_chan_receive(chans[STAGES], &value), 0);
        sum += value - i;
    }
    CHECK_EQ(sum, STAGES * ITEMS);
    strand_chan_close(chans[0]);
    strand_scope_join(scope);
    return arg;
}

static strand_pool_attr attr_of(const char *scheduler, const strand_scheduler *custom, int threads)
{
    return (strand_pool_attr){
        .size = sizeof(strand_pool_attr), .scheduler = scheduler, .custom = custom, .threads = threads};
}

/* S-68, S-69, A-11, A-20 */
TEST_INSIDE(strands_live_on_pools_of_any_scheduler)
{
    strand_pool_attr attrs[] = {attr_of("stealing", NULL, 2), attr_of("global", NULL, 2), attr_of("dedicated", NULL, 1),
                                attr_of(NULL, &lifo, 2), attr_of(NULL, &ranked, 3)};
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
        STRAND_SCOPE(scope);
        strand_pool pool = strand_pool_open(scope, &attrs[i]);
        strand_pool_info info = {.size = sizeof info};
        strand_pool_info_get(pool, &info);
        CHECK_STR(info.scheduler, attrs[i].custom ? attrs[i].custom->name : attrs[i].scheduler);
        strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool), use_it, &info, 0));
        strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = STRAND_PIN(0)), use_it, &info, 0));
    }
}

/* S-68 */
TEST(a_run_may_have_a_scheduler_of_the_users)
{
    for (int threads = 1; threads <= 4; threads += 3) {
        strand_options options = test_options();
        options.threads = threads;
        options.scheduler = NULL;
        options.custom = &lifo;
        CHECK_PTR(strand_run(&options, use_it, &options), &options);
    }
}

/* S-68 */
TEST(a_scheduler_is_opened_before_its_first_task_and_closed_after_the_last)
{
    int opened = ranks_opened, closed = ranks_closed;
    strand_options options = test_options();
    options.scheduler = NULL;
    options.custom = &ranked;
    CHECK_PTR(strand_run(&options, use_it, &options), &options);
    CHECK_EQ(ranks_opened, opened + 1);
    CHECK_EQ(ranks_closed, closed + 1);
}

/* ---- the order ------------------------------------------------------------------------------ */

static _Atomic int order[8], ordered; /* one thread, but nothing that orders what runs on it */

/* A strand that joins a child that has not started yet runs it at once. So the parent, which these tests ask nothing
 * of, joins its children only when all of them have run. */
static void await_ordered(int count)
{
    while (ordered < count)
        strand_sleep(STRAND_MS);
}

static void *note_rank(void *rank)
{
    order[ordered++] = (int)(intptr_t)rank;
    return rank;
}

static void *spawn_in_disorder(void *arg)
{
    static const int ranks[] = {2, 0, 3, 1, 0, 2};
    ordered = 0;
    STRAND_SCOPE(scope);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        strand_spawn_with(scope, STRAND_ATTR(.rank = ranks[i]), note_rank, (void *)(intptr_t)ranks[i], 0);
    await_ordered(6);
    strand_scope_join(scope);
    return arg;
}

/* S-68, A-20 */
TEST(the_order_is_the_schedulers)
{
    static const int expected[] = {0, 0, 1, 2, 2, 3};
    strand_options options = test_options();
    options.threads = 1;
    options.scheduler = NULL;
    options.custom = &ranked;
    strand_run(&options, spawn_in_disorder, NULL);
    CHECK_EQ(ordered, 6);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(order[i], expected[i]);
}

TEST_OWN_STACKS(the_order_is_the_schedulers, "the strands of one fibre come one after the other");

static void *note_order(void *number)
{
    order[ordered++] = (int)(intptr_t)number;
    strand_yield();
    order[ordered++] = (int)(intptr_t)number + 4;
    return number;
}

static void *spawn_in_order(void *arg)
{
    ordered = 0;
    STRAND_SCOPE(scope);
    for (intptr_t i = 0; i < 4; i++)
        strand_spawn(scope, note_order, (void *)i);
    await_ordered(8);
    strand_scope_join(scope);
    return arg;
}

/* S-40, contract 2.16 */
TEST_REAL(one_thread_with_a_queue_of_its_own_is_first_come_first_served)
{
    static const char *const schedulers[] = {"dedicated", "current", "global"};
    for (int s = 0; s < 3; s++) {
        strand_options options = test_options();
        options.threads = 1;
        options.scheduler = schedulers[s];
        strand_run(&options, spawn_in_order, NULL);
        CHECK_EQ(ordered, 8);
        for (int i = 0; i < 8; i++)
            CHECK_EQ(order[i], i);
    }
}
TEST_OWN_STACKS(one_thread_with_a_queue_of_its_own_is_first_come_first_served,
                "the strands of one fibre come one after the other");

/* ---- whose thread --------------------------------------------------------------------------- */

static void *note_thread(void *out)
{
    *(pid_t *)out = gettid();
    return out;
}

/* S-40, S-43, A-11, contract 2.15, 2.16 */
TEST_REAL(current_is_the_callers_thread_and_dedicated_is_not)
{
    pid_t seen = 0;
    strand_options options = test_options();
    options.threads = 1;
    options.scheduler = "current";
    strand_run(&options, note_thread, &seen);
    CHECK_EQ(seen, gettid());
    options.scheduler = "dedicated";
    strand_run(&options, note_thread, &seen);
    CHECK(seen != gettid());
}

/* ---- what is refused ------------------------------------------------------------------------ */

/* S-68 */
TEST(schedulers_that_no_run_can_have_are_refused)
{
    static const strand_scheduler nameless = {.size = sizeof nameless, .push = lifo_push, .pick = lifo_pick};
    static const strand_scheduler small = {.size = 8, .name = "small", .push = lifo_push, .pick = lifo_pick};
    test_refused((strand_options){.scheduler = "dedicated", .threads = 2}, "'dedicated' has one");
    test_refused((strand_options){.scheduler = "current", .own_threads = true}, "own_threads");
    test_refused((strand_options){.scheduler = "global", .custom = &lifo}, "both");
    test_refused((strand_options){.custom = &nameless}, "name");
    test_refused((strand_options){.custom = &small}, "size");
}

static int refuse(void *state)
{
    (void)state;
    return -ENOSPC;
}

/* S-68 */
TEST(a_scheduler_may_refuse_to_be_opened)
{
    static const strand_scheduler picky = {
        .size = sizeof picky, .name = "picky", .open = refuse, .push = lifo_push, .pick = lifo_pick};
    strand_exception *e = NULL;
    strand_options options = test_options();
    options.scheduler = NULL;
    options.custom = &picky;
    options.uncaught = &e;
    strand_run(&options, test_return, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -ENOSPC);
    strand_exception_release(e);
}
