/*
 * strand_dump shows the live tree; strand_stats_get counts.
 */
#define _GNU_SOURCE
#define SUITE dump
#include "test.h"

#include "strand/debug.h"
#include "strand/io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define FOREVER (3600 * STRAND_S)

static _Atomic int started;

static size_t count_words(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

static NOINLINE void doze_off(void)
{
    started++;
    strand_sleep(FOREVER);
    __asm__ volatile("");
}

static void *sleeper(void *arg)
{
    doze_off();
    return arg;
}

static NOINLINE void wait_for_a_child(strand child)
{
    strand_join(child);
    __asm__ volatile("");
}

static void *joiner(void *arg)
{
    STRAND_SCOPE(scope);
    wait_for_a_child(strand_spawn_with(scope, STRAND_ATTR(.name = "grandchild"), sleeper, arg, 0));
    return arg;
}

/* A tree: root, of it "first" with "grandchild" below, and "second". Dumped when all three are blocked. */
static const char *dump_a_tree(void)
{
    const char *text = "";
    started = 0;
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "first"), joiner, NULL, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "second"), sleeper, NULL, 0);
    test_yield_until(&started, 2);
    for (int i = 0; i < 100 && count_words(text, "blocked") < 3; i++) {
        strand_sleep(STRAND_MS);
        text = test_dump();
    }
    strand_scope_cancel(scope, NULL);
    return text;
}

TEST_INSIDE(a_dump_names_every_strand_parents_before_children)
{
    const char *text = dump_a_tree();
    const char *root = strstr(text, "root"), *first = strstr(text, "first");
    const char *grandchild = strstr(text, "grandchild"), *second = strstr(text, "second");
    CHECK(root && first && grandchild && second);
    CHECK(root < first && first < grandchild);
    CHECK(root < second && !(first < second && second < grandchild));
}

TEST_REAL_INSIDE(a_dump_says_who_is_blocked_and_on_what)
{
    const char *text = dump_a_tree();
    CHECK(count_words(text, "blocked") >= 3);
    CHECK(count_words(text, "sleep") >= 2);
    CHECK_CONTAINS(text, "join");
}

TEST_INSIDE(a_dump_says_that_its_caller_runs)
{
    CHECK_CONTAINS(test_dump(), "runn");
}

TEST_REAL_INSIDE(a_dump_shows_the_functions_in_which_strands_are_blocked)
{
    const char *text = dump_a_tree();
    CHECK(count_words(text, "doze_off") >= 2);
    CHECK_CONTAINS(text, "wait_for_a_child");
    CHECK_CONTAINS(text, "joiner");
}

static void *sleep_under_a_shield(void *arg)
{
    STRAND_SHIELD;
    started = 1;
    test_yield_until(&started, 2);
    return arg;
}

TEST_INSIDE(a_dump_says_who_is_cancelled_and_by_whom)
{
    started = 0;
    STRAND_SCOPE(scope);
    strand child = strand_spawn_with(scope, STRAND_ATTR(.name = "stubborn"), sleep_under_a_shield, NULL, 0);
    test_yield_until(&started, 1);
    strand_cancel(child, "enough-of-it");
    const char *text = strstr(test_dump(), "stubborn");
    started = 2;
    CHECK(text != NULL);
    CHECK_CONTAINS(text, "cancel");
    CHECK_CONTAINS(text, "root");
    CHECK_CONTAINS(text, "enough-of-it");
}

TEST_INSIDE(a_strand_that_was_joined_is_not_in_the_dump)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "short-lived"), test_return, NULL, 0));
    CHECK(strstr(test_dump(), "short-lived") == NULL);
}

TEST_INSIDE(a_dump_counts_those_that_have_ended_and_were_not_joined_apart)
{
    STRAND_SCOPE(scope);
    strand sleeping = strand_spawn(scope, sleeper, NULL);
    strand ended = strand_spawn(scope, test_return, NULL);
    strand_wait(ended);
    CHECK_CONTAINS(test_dump(), "strands: 2, besides 1 ended, not joined;");
    strand_join(ended);
    CHECK_CONTAINS(test_dump(), "strands: 2, besides 0 ended, not joined;");
    strand_cancel(sleeping, NULL);
}

static void *join_a_scope(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, sleeper, arg);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL_INSIDE(a_dump_tells_joining_a_scope_from_joining_a_strand)
{
    const char *text = "";
    STRAND_SCOPE(scope);
    strand joining = strand_spawn(scope, join_a_scope, NULL);
    for (int i = 0; i < 1000 && count_words(text, "blocked") < 2; i++) {
        strand_sleep(STRAND_MS);
        text = test_dump();
    }
    CHECK_CONTAINS(text, "blocked: joins its scope, waits for strand #");
    strand_cancel(joining, NULL);
}

static void *count_what_comes(void *fd)
{
    char bytes[4096];
    int64_t all = 0;
    for (int64_t got; (got = strand_read(*(int *)fd, bytes, sizeof bytes)) > 0;)
        all += got;
    CHECK_EQ(all > 65536, true); /* more than a pipe holds */
    return NULL;
}

static void *dump_to_a_reader(void *arg)
{
    int fds[2];
    CHECK_EQ(strand_pipe(fds), 0);
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, count_what_comes, &fds[0]);
    {
        STRAND_SCOPE(sleepers);
        for (int i = 0; i < 2000; i++)
            strand_spawn(sleepers, sleeper, arg);
        test_yield_until(&started, 2000);
        CHECK_EQ(strand_dump(fds[1]), 0);
        strand_scope_cancel(sleepers, NULL);
    }
    strand_close(fds[1]);
    strand_join(reader);
    strand_close(fds[0]);
    return arg;
}

/* Nobody stands still while it is written. */
TEST_REAL(a_dump_may_go_through_a_pipe_that_a_strand_reads)
{
    strand_options options = test_options();
    options.threads = 2;
    strand_run(&options, dump_to_a_reader, NULL);
}

TEST_INSIDE(a_dump_to_a_bad_descriptor_returns_an_error_code)
{
    CHECK_EQ(strand_dump(-1), -EBADF);
}

static void *dump_again_and_again(void *arg)
{
    for (long i = 0; i < test_scale(10); i++) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        CHECK_EQ(strand_dump(null), 0);
        close(null);
        strand_yield();
    }
    return arg;
}

TEST_INSIDE(several_strands_may_dump_at_the_same_time)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, dump_again_and_again, NULL);
    strand_scope_join(scope);
}

static void *yield_until_cancelled(void *arg)
{
    started++;
    for (;;)
        strand_yield();
    return arg;
}

static void *dump_under_load(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "busy-one"), yield_until_cancelled, NULL, 0);
    test_yield_until(&started, 8);
    for (long i = 0; i < test_scale(20); i++) {
        CHECK_EQ(count_words(test_dump(), "busy-one"), 8);
        strand_yield();
    }
    strand_scope_cancel(scope, NULL);
    return arg;
}

TEST(a_dump_of_four_threads_under_load_is_complete)
{
    strand_options options = test_options();
    options.threads = 4;
    started = 0;
    strand_run(&options, dump_under_load, NULL);
}

static void *spin_until_told(void *arg)
{
    started = 1;
    while (started != 2)
        continue;
    return arg;
}

static void *dump_beside_a_spinner(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "spinner"), spin_until_told, NULL, 0);
    test_yield_until(&started, 1);
    const char *text = strstr(test_dump(), "spinner");
    started = 2;
    CHECK(text != NULL);
    CHECK_CONTAINS(text, "running");
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(a_strand_that_comes_to_no_switch_is_said_to_be_running_and_does_not_hold_up_the_dump)
{
    strand_options options = test_options();
    options.threads = 2;
    strand_run(&options, dump_beside_a_spinner, NULL);
}

/* ---- statistics ----------------------------------------------------------------------------- */

static struct strand_stats stats(void)
{
    struct strand_stats now = {.size = sizeof now};
    strand_stats_get(&now);
    return now;
}

/* The figures of other threads may lag: looks again until `ended` strands have ended, a few seconds at most. */
static struct strand_stats stats_when_ended(uint64_t ended)
{
    for (int i = 0; i < 2000 && stats().ended < ended; i++)
        strand_sleep(STRAND_MS);
    return stats();
}

TEST_INSIDE(statistics_count_strands_started_ended_and_live)
{
    struct strand_stats before = stats();
    STRAND_SCOPE(scope);
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, test_return, NULL);
    strand_scope_join(scope);
    strand live = strand_spawn(scope, sleeper, NULL);
    struct strand_stats after = stats_when_ended(before.ended + 10);
    strand_cancel(live, NULL);
    CHECK_EQ(before.live, 1);
    CHECK_EQ(after.spawned - before.spawned, 11);
    CHECK_EQ(after.ended - before.ended, 10);
    CHECK_EQ(after.live, 2);
}

TEST_INSIDE(statistics_count_switches)
{
    struct strand_stats before = stats();
    STRAND_SCOPE(scope);
    strand sleeping = strand_spawn(scope, sleeper, NULL);
    for (int i = 0; i < 2000 && stats().switches == before.switches; i++)
        strand_sleep(STRAND_MS);
    strand_cancel(sleeping, NULL);
    CHECK(stats().switches > before.switches);
}

TEST_INSIDE(statistics_count_stacks)
{
    STRAND_SCOPE(scope);
    started = 0;
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, sleeper, NULL);
    test_yield_until(&started, 10);
    CHECK(stats().stacks >= 10);
    strand_scope_cancel(scope, NULL);
}

TEST_INSIDE(statistics_fill_no_more_than_the_struct_has_room_for)
{
    struct strand_stats small;
    memset(&small, 0x5a, sizeof small);
    small.size = offsetof(struct strand_stats, live);
    strand_stats_get(&small);
    CHECK(small.spawned >= 1 && small.spawned < 1000000);
    CHECK_EQ(small.live, 0x5a5a5a5a5a5a5a5a);
    CHECK_EQ(small.sleeps, 0x5a5a5a5a5a5a5a5a);
}
