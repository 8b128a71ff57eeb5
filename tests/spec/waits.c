/*
 * strand_waits_print shows who waits for whom.
 */
#define _GNU_SOURCE
#define SUITE waits
#include "test.h"

#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define FOREVER (3600 * STRAND_S)

/* What strand_waits_print writes now, which the next call overwrites. */
static const char *waits(void)
{
    static char text[1 << 20];
    int fd = memfd_create("waits", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(strand_waits_print(fd), 0);
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    CHECK(length > 0);
    text[length] = 0;
    close(fd);
    return text;
}

/* The same when so many strands are blocked in these words. */
static const char *waits_when(const char *words, int count)
{
    test_await_blocked(words, count);
    return waits();
}

static NOINLINE strand spawn_named(strand_scope scope, const char *name, strand_fn *fn, void *arg)
{
    strand child = strand_spawn_with(scope, STRAND_ATTR(.name = name), fn, arg, 0);
    __asm__ volatile("");
    return child;
}

/* ---- who would have to act --------------------------------------------------------------------------------- */

TEST_INSIDE(where_nobody_is_blocked_nobody_is_printed)
{
    CHECK_STR(waits(), "0 of 1 strands are blocked, 0 of them in 0 rings\n");
}

static strand_mutex mutex, other_mutex;

static NOINLINE void lock_it(strand_mutex *one)
{
    strand_mutex_lock(one);
    __asm__ volatile("");
}

static void *lock_and_unlock(void *one)
{
    strand_mutex_lock(one);
    strand_mutex_unlock(one);
    return NULL;
}

TEST_INSIDE(of_a_mutex_the_holder_is_named_and_where_it_was_locked)
{
    STRAND_SCOPE(scope);
    lock_it(&mutex);
    spawn_named(scope, "waiter", lock_and_unlock, &mutex);
    const char *text = waits_when("waits for mutex", 1);
    CHECK_CONTAINS(text, "1 of 2 strands are blocked, 0 of them in 0 rings\n");
    CHECK_CONTAINS(text, "strand 'waiter' #");
    CHECK_CONTAINS(text, " waits for mutex at 0x");
    CHECK_CONTAINS(text, " ms; spawned in spawn_named+0x");
    CHECK_CONTAINS(text, "\n    strand 'root' #");
    CHECK_CONTAINS(text, " would have to unlock it, locked in lock_it");
    CHECK_CONTAINS(text, "; it is not blocked\n");
    strand_mutex_unlock(&mutex);
    strand_scope_join(scope);
}

static strand_event event;

static void *await_event(void *arg)
{
    strand_event_wait(&event);
    return arg;
}

static void *join_one(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(spawn_named(scope, "child", await_event, arg));
    return arg;
}

TEST_INSIDE(of_a_join_the_child_is_named)
{
    STRAND_SCOPE(scope);
    spawn_named(scope, "joiner", join_one, NULL);
    const char *text = waits_when("waits for event", 1);
    CHECK_CONTAINS(text, "strand 'joiner' #");
    CHECK_CONTAINS(text, " joins strand #");
    CHECK_CONTAINS(text, "    strand 'child' #");
    CHECK_CONTAINS(text, " would have to end; it is blocked too\n");
    CHECK_CONTAINS(text, "    whoever sets it\n");
    strand_event_set(&event);
    strand_scope_join(scope);
}

static void *stay_under_a_shield(void *arg)
{
    STRAND_SHIELD;
    strand_event_wait(&event);
    return arg;
}

/* Twelve children of one scope, and one of another, that it does not wait for yet. */
static void *leave_with_many(void *arg)
{
    STRAND_SCOPE(outer);
    spawn_named(outer, "of another scope", stay_under_a_shield, arg);
    STRAND_SCOPE(inner);
    for (int i = 0; i < 12; i++)
        spawn_named(inner, "left", stay_under_a_shield, arg);
    strand_scope_cancel(inner, NULL);
    strand_scope_cancel(outer, NULL);
    return arg;
}

TEST_INSIDE(of_a_scope_that_is_left_the_children_that_live_are_named)
{
    STRAND_SCOPE(scope);
    strand leaver = spawn_named(scope, "leaver", leave_with_many, NULL);
    test_await_blocked("leaves a scope", 1);
    const char *text = strstr(waits_when("waits for event", 13), "strand 'leaver' #");
    CHECK(text != NULL);
    const char *first = strstr(text, "\n    strand 'left' #"), *more = strstr(text, "\n    and 4 more\n");
    CHECK(first && more && first < more);
    const char *other = strstr(text, "\n    strand 'of another scope'");
    CHECK(other == NULL);
    strand_event_set(&event);
    strand_join(leaver);
}

static void *join_the_scope(void *arg)
{
    STRAND_SCOPE(scope);
    spawn_named(scope, "one", await_event, arg);
    spawn_named(scope, "other", await_event, arg);
    strand_scope_join(scope);
    return arg;
}

TEST_INSIDE(of_a_scope_that_is_joined_all_children_are_named)
{
    STRAND_SCOPE(scope);
    spawn_named(scope, "joiner", join_the_scope, NULL);
    test_await_blocked("joins its scope", 1);
    const char *text = strstr(waits_when("waits for event", 2), "strand 'joiner' #");
    CHECK(text != NULL);
    CHECK_CONTAINS(text, "\n    strand 'one' #");
    CHECK_CONTAINS(text, "\n    strand 'other' #");
    strand_event_set(&event);
    strand_scope_join(scope);
}

static void *await_any(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    spawn_named(scope, "one", await_event, arg);
    spawn_named(scope, "other", await_event, arg);
    strand_join(strand_scope_next(scope));
    strand_join(strand_scope_next(scope));
    return arg;
}

TEST_INSIDE(of_the_first_child_to_end_any_will_do)
{
    STRAND_SCOPE(scope);
    spawn_named(scope, "chooser", await_any, NULL);
    test_await_blocked("waits for the end of any child", 1);
    const char *text = strstr(waits_when("waits for event", 2), "strand 'chooser' #");
    CHECK(text != NULL);
    CHECK_CONTAINS(text, "waits for the end of any child, since ");
    CHECK_CONTAINS(text, "    any of these\n");
    strand_event_set(&event);
    strand_scope_join(scope);
}

static strand_rwlock rwlock;

static void *read_until_event(void *arg)
{
    STRAND_READ_LOCKED(&rwlock);
    strand_event_wait(&event);
    return arg;
}

static void *write_once(void *arg)
{
    STRAND_WRITE_LOCKED(&rwlock);
    return arg;
}

TEST_INSIDE(of_a_read_write_lock_all_holders_are_named)
{
    STRAND_SCOPE(scope);
    spawn_named(scope, "reader", read_until_event, NULL);
    spawn_named(scope, "second reader", read_until_event, NULL);
    test_await_blocked("waits for event", 2);
    spawn_named(scope, "writer", write_once, NULL);
    const char *text = strstr(waits_when("waits to write under lock", 1), "strand 'writer' #");
    CHECK(text != NULL);
    CHECK_EQ(test_count(text, " would have to give it back, locked to read in read_until_event+0x"), 2);
    CHECK_CONTAINS(text, "\n    strand 'reader' #");
    CHECK_CONTAINS(text, "\n    strand 'second reader' #");
    strand_event_set(&event);
    strand_scope_join(scope);
}

static strand_once once;

static void *run_until_event(void *arg)
{
    strand_event_wait(&event);
    return arg;
}

static void *run_once(void *arg)
{
    return strand_once_run(&once, run_until_event, arg);
}

TEST_INSIDE(of_a_once_who_has_the_turn_is_named)
{
    STRAND_SCOPE(scope);
    spawn_named(scope, "first", run_once, NULL);
    test_await_blocked("waits for event", 1);
    spawn_named(scope, "second", run_once, NULL);
    const char *text = strstr(waits_when("waits for the one run of", 1), "strand 'second' #");
    CHECK(text != NULL);
    CHECK_CONTAINS(text, "\n    strand 'first' #");
    CHECK_CONTAINS(text, " would have to return from it; it is blocked too\n");
    strand_event_set(&event);
    strand_scope_join(scope);
}

/* ---- rings ------------------------------------------------------------------------------------------------- */

static _Atomic int locked;

struct two {
    strand_mutex *first, *second;
};

static void *lock_both(void *arg)
{
    struct two *two = arg;
    STRAND_LOCKED(two->first);
    locked++;
    test_yield_until(&locked, 2);
    STRAND_LOCKED(two->second);
    return NULL;
}

TEST_INSIDE(two_strands_that_lock_two_mutexes_in_two_orders_are_a_ring)
{
    struct two ab = {&mutex, &other_mutex}, ba = {&other_mutex, &mutex};
    locked = 0;
    STRAND_SCOPE(scope);
    spawn_named(scope, "a", lock_both, &ab);
    spawn_named(scope, "b", lock_both, &ba);
    const char *text = waits_when("waits for mutex", 2);
    CHECK_CONTAINS(text, "2 of 3 strands are blocked, 2 of them in 1 ring\n");
    const char *ring = strstr(text, "\n2 strands wait for each other:\n");
    CHECK(ring != NULL);
    CHECK_EQ(test_count(ring, "    strand 'a' #"), 1);
    CHECK_EQ(test_count(ring, "    strand 'b' #"), 1);
    CHECK_EQ(test_count(ring, " has locked\n"), 2);
    CHECK_EQ(test_count(ring, ", which strand 'b' #"), 1);
    strand_scope_cancel(scope, NULL);
}
