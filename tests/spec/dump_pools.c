/*
 * strand_dump and strand_stats_get of runs with several pools.
 */
#define SUITE dump_pools
#include "test.h"

#include "dozing.h"
#include "printed.h"

#include "strand/debug.h"

static strand_pool open_pool(strand_scope scope, const char *name, int threads)
{
    return strand_pool_open(scope, STRAND_POOL_ATTR(.name = name, .threads = threads));
}

static void spawn_sleepers(strand_scope scope, strand_pool pool, int count)
{
    int before = dozing;
    for (int i = 0; i < count; i++)
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .name = "dozing"), sleeper, NULL, 0);
    test_yield_until(&dozing, before + count);
    test_await_blocked("sleeps", before + count);
}

static void check_line(const char *text, strand_pool pool, const char *name, int strands)
{
    char line[128];
    strand_pool_info info = test_pool_info(pool);
    CHECK_EQ(info.strands, strands);
    snprintf(line, sizeof line, "\n    pool '%s': %d strand%s, %d thread%s (%s)\n", name, strands,
             strands == 1 ? "" : "s", info.threads, info.threads == 1 ? "" : "s", info.scheduler);
    CHECK_CONTAINS(text, line);
}

static strand_pool open_with_sleepers(strand_scope scope, const char *name, int threads, int count)
{
    strand_pool pool = open_pool(scope, name, threads);
    spawn_sleepers(scope, pool, count);
    return pool;
}

/* V-09 */
TEST_INSIDE(a_dump_names_all_pools_and_says_on_which_of_them_a_strand_lives)
{
    STRAND_SCOPE(scope);
    dozing = 0;
    CHECK(strstr(test_dump(), "pool '") == NULL);
    strand_pool disks = open_with_sleepers(scope, "disks", 3, 5), orders = open_with_sleepers(scope, "orders", 1, 1);
    const char *text = test_dump();
    check_line(text, strand_pool_self(), "first", 1);
    check_line(text, disks, "disks", 5);
    check_line(text, orders, "orders", 1);
    char head[128];
    int threads =
        test_pool_info(strand_pool_self()).threads + test_pool_info(disks).threads + test_pool_info(orders).threads;
    snprintf(head, sizeof head, "strands: 7, besides 0 ended, not joined; threads: %d\n", threads);
    CHECK_CONTAINS(text, head);
    CHECK_EQ(test_count(text, "  pool 'disks'; "), 5);
    CHECK_EQ(test_count(text, "  pool 'orders'; "), 1);
    CHECK_EQ(test_count(text, "pool 'first'"), 1);
    strand_scope_cancel(scope, NULL);
}

static void *print_a_dump(void *text)
{
    *(const char **)text = test_dump();
    return text;
}

TEST_INSIDE(a_dump_by_a_strand_of_any_pool_is_the_same)
{
    static const char *text;
    STRAND_SCOPE(scope);
    dozing = 0;
    strand_pool disks = open_with_sleepers(scope, "disks", 2, 3);
    strand_pool other = open_pool(scope, "other", 1);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = other), print_a_dump, &text, 0));
    check_line(text, disks, "disks", 3);
    CHECK_CONTAINS(text, "\n    pool 'other': 1 strand, ");
    strand_scope_cancel(scope, NULL);
}

/* Each strand of a group is on the same pool. */
TEST_INSIDE(a_dump_distinguishes_strands_of_several_pools_at_the_same_place)
{
    STRAND_SCOPE(scope);
    dozing = 0;
    strand_pool disks = open_pool(scope, "disks", 2), orders = open_pool(scope, "orders", 1);
    spawn_sleepers(scope, strand_pool_self(), 2);
    spawn_sleepers(scope, disks, 4);
    spawn_sleepers(scope, orders, 3);
    const char *text = test_dump_as(STRAND_DUMP(.grouping = STRAND_DUMP_GROUPED));
    CHECK_CONTAINS(text, "2 strands 'dozing' #");
    CHECK_CONTAINS(text, "4 strands 'dozing' #");
    CHECK_CONTAINS(text, "3 strands 'dozing' #");
    CHECK_EQ(test_count(text, "\n    on pool 'disks'\n"), 1);
    CHECK_EQ(test_count(text, "\n    on pool 'orders'\n"), 1);
    check_line(text, disks, "disks", 4);
    strand_scope_cancel(scope, NULL);
}

static void *close_it(void *pool)
{
    strand_pool_close(*(strand_pool *)pool, NULL);
    return pool;
}

/* V-22 */
TEST_INSIDE(a_dump_says_who_waits_for_the_end_of_which_pool_and_what_lives_there_still)
{
    static struct test_child child;
    static strand_pool pool;
    child = (struct test_child){0};
    STRAND_SCOPE(scope);
    pool = open_pool(scope, "slow", 2);
    strand resisting =
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .name = "dogged"), test_child_resists, &child, 0);
    test_yield_until(&child.started, 1);
    strand first = strand_spawn(scope, close_it, &pool), second = strand_spawn(scope, close_it, &pool);
    test_await_blocked("waits for the end of pool 'slow', since", 2);
    const char *text = test_dump();
    CHECK_CONTAINS(text, "\n    pool 'slow', closing: 1 strand, ");
    CHECK_EQ(test_count(text, "  pool 'slow'; "), 1);
    text = test_dump_as(STRAND_DUMP(.grouping = STRAND_DUMP_GROUPED));
    CHECK_CONTAINS(text, "blocked: waits for the end of pool 'slow', since");
    child.release = 1;
    strand_join(first);
    strand_join(second);
    CHECK(strstr(test_dump(), "'slow'") == NULL);
    strand_cancel(resisting, NULL);
}

static int dump(int fd)
{
    return strand_dump(fd, NULL);
}

TEST_REAL_INSIDE(a_dump_from_a_plain_thread_names_the_pools_too)
{
    STRAND_SCOPE(scope);
    dozing = 0;
    strand_pool disks = open_with_sleepers(scope, "disks", 2, 3);
    const char *text = printed_outside(dump);
    check_line(text, disks, "disks", 3);
    CHECK_EQ(test_count(text, "  pool 'disks'; "), 3);
    strand_scope_cancel(scope, NULL);
}

static _Atomic int runs, stop;

static void *yield_until_stopped(void *arg)
{
    runs = 1;
    while (!stop)
        strand_yield();
    return arg;
}

/* A look that comes between two strands of a thread finds none that runs. */
TEST_REAL_INSIDE(a_strand_that_runs_on_the_thread_of_another_pool_is_said_to_run_there)
{
    const char *at = NULL, *next = NULL;
    runs = stop = 0;
    STRAND_SCOPE(scope);
    strand_pool pool = open_pool(scope, "busy", 1);
    strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .name = "runner"), yield_until_stopped, NULL, 0);
    test_yield_until(&runs, 1);
    while (!at) {
        at = strstr(test_dump(), "  pool 'busy'; ");
        CHECK(at != NULL);
        next = strchr(at, '\n');
        at = strncmp(next, "\n      running on thread 0 (", 27) == 0 ? at : NULL;
    }
    stop = 1;
    strand_scope_join(scope);
}

TEST_INSIDE(statistics_count_the_threads_and_strands_of_all_pools)
{
    strand_stats before = test_stats();
    dozing = 0;
    for (int i = 1; i <= 2; i++) {
        STRAND_SCOPE(scope);
        strand_pool pool = open_with_sleepers(scope, "disks", 3, 4);
        strand_stats with = test_stats();
        CHECK_EQ(with.threads, before.threads + (uint64_t)test_pool_info(pool).threads);
        CHECK_EQ(with.live, before.live + 4);
        CHECK_EQ(with.spawned, before.spawned + 4 * (uint64_t)i);
        strand_scope_cancel(scope, NULL);
        strand_pool_close(pool, NULL);
        strand_stats after = test_stats();
        CHECK_EQ(after.threads, before.threads);
        CHECK_EQ(after.live, before.live);
        CHECK_EQ(after.ended, before.ended + 4 * (uint64_t)i);
        dozing = 0;
    }
}
