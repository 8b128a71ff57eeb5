/*
 * strand_waits_print shows who waits for whom.
 */
#define _GNU_SOURCE
#define SUITE waits_print
#include "test.h"

#include "scenario.h"

#include <errno.h>

static const char *waits(void)
{
    return printed(strand_waits_print);
}

static const char *waits_with(const char *words)
{
    return printed_with(strand_waits_print, words);
}

/* ---- who would have to act --------------------------------------------------------------------------------- */

TEST_INSIDE(where_nobody_is_blocked_nobody_is_printed)
{
    begin();
    CHECK_STR(waits(), "0 of 1 strands are blocked\n");
}

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

TEST_INSIDE(a_report_names_the_holder_of_a_mutex_and_where_it_was_locked)
{
    begin();
    STRAND_SCOPE(scope);
    lock_it(&at.mutex);
    spawn_named(scope, "waiter", lock_and_unlock, &at.mutex);
    const char *text = waits_with("1 of 2 strands are");
    CHECK_CONTAINS(text, "1 of 2 strands are blocked\n");
    CHECK_CONTAINS(text, "strand 'waiter' #");
    CHECK_CONTAINS(text, " waits for mutex at 0x");
    CHECK_CONTAINS(text, " ms; spawned in spawn_named+0x");
    CHECK_CONTAINS(text, "\n    strand 'root' #");
    CHECK_CONTAINS(text, " would have to unlock it, locked in lock_it");
    CHECK_CONTAINS(text, "; it is not blocked\n");
    strand_mutex_unlock(&at.mutex);
    strand_scope_join(scope);
}

static void *see_a_mutex_handed_over(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    strand_mutex_lock(&at.mutex);
    spawn_named(scope, "heir", lock_and_unlock, &at.mutex);
    waits_with("1 of 2 strands are");
    spawn_named(scope, "waiter", lock_and_unlock, &at.mutex);
    waits_with("2 of 3 strands are");
    strand_mutex_unlock(&at.mutex);
    const char *text = waits();
    CHECK_CONTAINS(text, "1 of 3 strands are blocked");
    CHECK_CONTAINS(text, "\n    strand 'heir' #");
    CHECK_CONTAINS(text, " has just been handed it, and would have to unlock it; it is not blocked\n");
    strand_scope_join(scope);
    return arg;
}

/* On one thread, where who has it has not gone on yet. */
TEST_REAL(a_report_names_the_next_holder_of_a_handed_over_mutex)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, see_a_mutex_handed_over, NULL);
}

static void *join_one(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(spawn_named(scope, "child", await_event, arg));
    return arg;
}

/* Twelve children of one scope, and one of another, that it does not wait for yet. */
static void *leave_with_many(void *arg)
{
    STRAND_SCOPE(outer);
    spawn_named(outer, "of another scope", await_event_in_a_shield, arg);
    STRAND_SCOPE(inner);
    for (int i = 0; i < 12; i++)
        spawn_named(inner, "left", await_event_in_a_shield, arg);
    strand_scope_cancel(inner, NULL);
    strand_scope_cancel(outer, NULL);
    return arg;
}

static void *join_the_scope(void *arg)
{
    STRAND_SCOPE(scope);
    spawn_named(scope, "one", await_event, arg);
    spawn_named(scope, "other", await_event, arg);
    strand_scope_join(scope);
    return arg;
}

static void *await_any(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    spawn_named(scope, "one", await_event, arg);
    spawn_named(scope, "other", await_event, arg);
    strand_join(strand_scope_wait_next(scope));
    strand_join(strand_scope_wait_next(scope));
    return arg;
}

static void *read_until_event(void *arg)
{
    STRAND_READ_LOCKED(&at.rwlock);
    strand_event_wait(&at.event);
    return arg;
}

static void *read_once(void *arg)
{
    STRAND_READ_LOCKED(&at.rwlock);
    return arg;
}

static void *write_once(void *arg)
{
    STRAND_WRITE_LOCKED(&at.rwlock);
    return arg;
}

/* What an inactive strand holds lies in its saved stack. */
TEST_INSIDE(the_holders_of_a_read_write_lock_are_found_on_a_fibre_that_they_share)
{
    begin();
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (int i = 0; i < 3; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "reader", .fibre = fibre), read_until_event, NULL, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "bystander", .fibre = fibre), await_event, NULL, 0);
    waits_with("4 of 5 strands are");
    spawn_named(scope, "writer", write_once, NULL);
    const char *text = strstr(waits_with("5 of 6 strands are"), "strand 'writer' #");
    CHECK(text != NULL);
    CHECK_EQ(test_count(text, " would have to release it, locked to read in read_until_event+0x"), 3);
    strand_event_set(&at.event);
    strand_scope_join(scope);
}

static strand_event chosen[3];

/* Where its cases lie. */
static void *select_its_event(void *its_event)
{
    strand_case cases[] = {strand_on_event(its_event), strand_on_time(strand_in(FOREVER))};
    (void)strand_select(cases, 2, 0);
    return NULL;
}

/* Each waits for another event, since their cases lie at the same place; there the bystander has something else. */
TEST_INSIDE(the_cases_of_selects_are_found_on_a_fibre_that_they_share)
{
    static const char *const names[] = {"first", "second", "third"};
    begin();
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (int i = 0; i < 3; i++) {
        chosen[i] = (strand_event){{0}};
        strand_spawn_with(scope, STRAND_ATTR(.name = names[i], .fibre = fibre), select_its_event, &chosen[i], 0);
    }
    waits_with("3 of 4 strands are");
    strand_spawn_with(scope, STRAND_ATTR(.name = "bystander", .fibre = fibre), await_event, NULL, 0);
    const char *text = waits_with("4 of 5 strands are");
    for (int i = 0; i < 3; i++) {
        char head[64], its_case[64];
        snprintf(head, sizeof head, "\nstrand '%s' #", names[i]);
        snprintf(its_case, sizeof its_case, "\n    case 0: waits for event at %p\n", (void *)&chosen[i]);
        CHECK_CONTAINS(text, head);
        CHECK_EQ(strncmp(strchr(strstr(text, head) + 1, '\n'), its_case, strlen(its_case)), 0);
    }
    CHECK_EQ(test_count(text, "\n    case 1: sleeps for 3"), 3);
    strand_scope_cancel(scope, NULL);
}

static void *run_once(void *arg)
{
    return strand_once_run(&at.once, await_event, arg);
}

static void *close_a_pool(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "extra"));
    for (int i = 0; i < 2; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "inhabitant", .pool = pool), await_event_in_a_shield, NULL, 0);
    test_yield_until(&at.started, 2);
    strand_pool_close(pool, NULL);
    strand_scope_cancel(scope, NULL);
    return arg;
}

/* In the part of the report that begins with this strand's. */
#define OF(strand) .from = "strand '" strand "' #"

static const struct scenario joins_and_locks[] = {
    {.name = "join of a child",
     .acts = {ONE("joiner", join_one)},
     .until = "2 of 3 strands are",
     OF("joiner"),
     .texts = {HAS(" joins strand #"), HAS("    strand 'child' #"), HAS(" would have to end; it is blocked too\n"),
               HAS("    a strand that sets it\n")}},
    {.name = "end of a scope: the first children of it that live",
     .acts = {ONE("leaver", leave_with_many)},
     .until = "14 of 15 strands are",
     OF("leaver"),
     .texts = {TIMES(8, "\n    strand 'left' #"), HAS("\n    and 4 more\n"), NO("\n    strand 'of another scope'")}},
    {.name = "join of a scope: all children",
     .acts = {ONE("joiner", join_the_scope)},
     .until = "3 of 4 strands are",
     OF("joiner"),
     .texts = {HAS("\n    strand 'one' #"), HAS("\n    strand 'other' #")}},
    {.name = "wait for any child",
     .acts = {ONE("chooser", await_any)},
     .until = "3 of 4 strands are",
     OF("chooser"),
     .texts = {HAS("waits for the end of any child, since "), HAS("    any of these\n")}},
    {.name = "read-write lock: all holders",
     .acts = {ONE("reader", read_until_event), ONE("second reader", read_until_event),
              LATER("2 of 3 strands are", "writer", write_once)},
     .until = "3 of 4 strands are",
     OF("writer"),
     .texts = {TIMES(2, " would have to release it, locked to read in read_until_event+0x"),
               HAS("\n    strand 'reader' #"), HAS("\n    strand 'second reader' #")}},
    {.name = "once: the strand that runs the function",
     .acts = {ONE("first", run_once), LATER("1 of 2 strands are", "second", run_once)},
     .until = "2 of 3 strands are",
     OF("second"),
     .texts = {HAS("\n    strand 'first' #"), HAS(" would have to return from it; it is blocked too\n")}},
    {.name = "close of a pool",
     .acts = {ONE("closer", close_a_pool)},
     .until = "waits for the end of pool 'extra'",
     OF("closer"),
     .texts = {TIMES(2, "\n    strand 'inhabitant' #")}},
};

TEST_INSIDE(the_strands_that_would_have_to_act_are_named)
{
    PLAY_ALL(joins_and_locks, false, strand_waits_print);
}

/* ---- cycles ------------------------------------------------------------------------------------------------ */

struct two {
    strand_mutex *first, *second;
};

static void *lock_both(void *arg)
{
    struct two *two = arg;
    STRAND_LOCKED(two->first);
    at.started++;
    test_yield_until(&at.started, 2);
    STRAND_LOCKED(two->second);
    return NULL;
}

static void *join_while_locked(void *arg)
{
    STRAND_LOCKED(&at.mutex);
    STRAND_SCOPE(scope);
    strand_join(spawn_named(scope, "inner", lock_and_unlock, &at.mutex));
    return arg;
}

/* Until at.give_up: then the wait is ended by a deadline inside of the shield, of which there is one after the other.
 */
static void *lock_under_a_shield(void *one)
{
    STRAND_SHIELD;
    at.started++;
    while (!at.give_up) {
        STRAND_TRY {
            STRAND_DEADLINE(strand_in(20 * STRAND_MS));
            STRAND_LOCKED(one);
        }
        STRAND_CATCH(&STRAND_TIMED_OUT, e) {
            (void)e;
        }
        STRAND_END
    }
    return NULL;
}

static void *leave_while_locked(void *arg)
{
    STRAND_LOCKED(&at.mutex);
    STRAND_SCOPE(scope);
    spawn_named(scope, "sleeper", await_event_in_a_shield, arg);
    spawn_named(scope, "inner", lock_under_a_shield, &at.mutex);
    test_yield_until(&at.started, 2);
    strand_scope_cancel(scope, NULL);
    return arg;
}

static void *join_a_scope_while_locked(void *arg)
{
    STRAND_LOCKED(&at.mutex);
    STRAND_SCOPE(scope);
    for (int i = 0; i < 5; i++)
        spawn_named(scope, "inner", lock_and_unlock, &at.mutex);
    strand_scope_join(scope);
    return arg;
}

static struct two one_order = {&at.mutex, &at.other_mutex}, other_order = {&at.other_mutex, &at.mutex};

#define RING .from = "\n2 strands wait for each other:\n"

static const struct scenario cycles[] = {
    {.name = "two mutexes that are locked in two orders",
     .acts = {GIVEN(&one_order, "a", lock_both), GIVEN(&other_order, "b", lock_both)},
     .until = "2 of 3 strands are blocked, 2 of them in 1 cycle\n",
     RING,
     .texts = {TIMES(1, "\n    strand 'a' #"), TIMES(1, "\n    strand 'b' #"), TIMES(1, ", which strand 'a' #"),
               TIMES(1, ", which strand 'b' #"), TIMES(2, " has locked\n")}},
    {.name = "join of a strand that waits for the mutex of the joining one",
     .acts = {ONE("outer", join_while_locked)},
     .until = "2 of 3 strands are",
     RING,
     .texts = {HAS(" joins strand 'inner' #"), HAS(", which strand 'outer' #")}},
    {.name = "through the second child of a scope, whose first child is waited for",
     .acts = {ONE("leaver", leave_while_locked)},
     .until = "3 of 4 strands are blocked, 2 of them in 1 cycle\n",
     RING,
     .texts = {HAS(" leaves a scope, waits for strand 'inner' #"), NO("sleeper")}},
    {.name = "of cycles that share a strand, one is printed",
     .acts = {ONE("outer", join_a_scope_while_locked)},
     .until = "6 of 7 strands are blocked, 2 of them in 1 cycle\n",
     .texts = {TIMES(1, "2 strands wait for each other:\n")}},
};

TEST_INSIDE(strands_that_wait_for_each_other_are_a_cycle)
{
    PLAY_ALL(cycles, false, strand_waits_print);
}

/* A ring of so many: each has locked its own mutex, and waits for that of the next. */
struct link_of_ring {
    strand_mutex own, *next;
    _Atomic int *all;
    int count;
};

static void *lock_own_and_next(void *arg)
{
    struct link_of_ring *link = arg;
    STRAND_LOCKED(&link->own);
    ++*link->all;
    test_yield_until(link->all, link->count);
    STRAND_LOCKED(link->next);
    return NULL;
}

static void spawn_ring(strand_scope scope, struct link_of_ring *links, int count, _Atomic int *all)
{
    *all = 0;
    for (int i = 0; i < count; i++)
        links[i] = (struct link_of_ring){.next = &links[(i + 1) % count].own, .all = all, .count = count};
    for (int i = 0; i < count; i++)
        spawn_named(scope, "link", lock_own_and_next, &links[i]);
}

TEST_REAL_INSIDE(cycles_are_printed_the_shortest_first_and_long_ones_are_cut)
{
    static struct link_of_ring fifty[50], two[2], five[5];
    static _Atomic int all[3];
    begin();
    STRAND_SCOPE(scope);
    spawn_ring(scope, fifty, 50, &all[0]);
    spawn_ring(scope, two, 2, &all[1]);
    spawn_ring(scope, five, 5, &all[2]);
    const char *text = waits_with(
        "57 of 58 strands are blocked, 57 of them in 3 cycles\n"); /* and not while some sleep until all are there */
    const char *short_one = strstr(text, "\n2 strands wait for each other:\n");
    const char *middle = strstr(text, "\n5 strands wait for each other:\n");
    const char *long_one = strstr(text, "\n50 strands wait for each other:\n");
    CHECK(short_one && middle && long_one && short_one < middle && middle < long_one);
    CHECK_EQ(test_count(long_one, " has locked\n"), 32);
    CHECK_CONTAINS(long_one, "\n    and so on, 18 more, back to strand 'link' #");
    strand_scope_cancel(scope, NULL);
}

TEST_REAL_INSIDE(the_shortest_of_very_many_cycles_are_printed)
{
    enum { RINGS = 70 };
    static struct link_of_ring threes[RINGS][3], two[2];
    static _Atomic int all[RINGS + 1];
    begin();
    STRAND_SCOPE(scope);
    for (int i = 0; i < RINGS; i++)
        spawn_ring(scope, threes[i], 3, &all[i]);
    spawn_ring(scope, two, 2, &all[RINGS]);
    const char *text = waits_with("212 of 213 strands are blocked, 212 of them in 71 cycles\n");
    CHECK_EQ(test_count(text, "\n2 strands wait for each other:\n"), 1);
    CHECK_EQ(test_count(text, "\n3 strands wait for each other:\n"), 63);
    CHECK_CONTAINS(text, "\nand 7 cycles more, none of them shorter\n");
    strand_scope_cancel(scope, NULL);
}

struct chain {
    int left;
    strand_mutex *locks; /* what the last one waits for */
};

static void *join_the_next(void *arg)
{
    struct chain *chain = arg, next = {chain->left - 1, chain->locks};
    if (!chain->left)
        return lock_and_unlock(chain->locks);
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "link"), join_the_next, &next, sizeof next));
    return NULL;
}

static void *lock_and_chain(void *arg)
{
    STRAND_LOCKED(&at.mutex);
    return join_the_next(arg);
}

/* Deeper than a recursion could go on the stack of a strand. */
TEST_REAL_INSIDE(a_long_chain_is_followed_to_its_end)
{
    begin();
    int links = (int)test_scale(5000);
    links = links < 100 ? 100 : links;
    struct chain chain = {links, &at.mutex};
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "first"), lock_and_chain, &chain, sizeof chain);
    char head[100];
    snprintf(head, sizeof head, "%d of %d strands are blocked, %d of them in 1 cycle\n", links + 1, links + 2,
             links + 1);
    const char *text = waits_with(head);
    snprintf(head, sizeof head, "\n%d strands wait for each other:\n", links + 1);
    CHECK_CONTAINS(text, head);
    strand_scope_cancel(scope, NULL);
}

static void *read_and_join_a_reader(void *arg)
{
    STRAND_READ_LOCKED(&at.rwlock);
    at.started = 1;
    test_yield_until(&at.started, 2);
    STRAND_SCOPE(scope);
    strand_join(spawn_named(scope, "second reader", read_once, arg));
    return arg;
}

/* Which waits behind a writer, and that for the first reader. */
TEST_INSIDE(joining_a_reader_that_waits_for_the_joiner_is_a_cycle)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "reader", read_and_join_a_reader, NULL);
    test_yield_until(&at.started, 1);
    spawn_named(scope, "writer", write_once, NULL);
    waits_with(" waits to write under lock");
    at.started = 2;
    const char *text = waits_with("3 of 4 strands are");
    const char *ring = strstr(text, "\n2 strands wait for each other:\n");
    CHECK(ring != NULL);
    CHECK_CONTAINS(text, "3 of 4 strands are blocked, 2 of them in 1 cycle\n");
    CHECK_CONTAINS(ring, ", which strand 'reader' #");
    CHECK_CONTAINS(ring, " has locked to read\n");
    CHECK_CONTAINS(ring, " joins strand 'second reader' #");
    CHECK(strstr(ring, "'writer'") == NULL);
    strand_scope_cancel(scope, NULL);
}

static void *collect_while_locked(void *arg)
{
    STRAND_LOCKED(&at.mutex);
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    spawn_named(scope, "inner", lock_and_unlock, &at.mutex);
    if (arg)
        spawn_named(scope, "other", await_event, NULL);
    while (strand_scope_count(scope))
        strand_join(strand_scope_wait_next(scope));
    return arg;
}

TEST_INSIDE(a_wait_for_any_of_several_is_a_cycle_when_one_is_left)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "collector", collect_while_locked, &at.mutex);
    CHECK_CONTAINS(waits_with("3 of 4 strands are"), "3 of 4 strands are blocked\n");
    strand_event_set(&at.event);
    while (!strstr(waits(), "2 of 3 strands are blocked"))
        strand_sleep(STRAND_MS);
    const char *ring = strstr(waits(), "\n2 strands wait for each other:\n");
    CHECK(ring != NULL);
    CHECK_CONTAINS(ring, " waits for the end of any child: strand 'inner' #");
    CHECK_CONTAINS(ring, " is the only one\n");
    strand_scope_cancel(scope, NULL);
}

/* ---- things, and the outside --------------------------------------------------------------------------------- */

static void *receive(void *arg)
{
    char value;
    STRAND_IGNORE(strand_chan_receive(at.chan, &value));
    return arg;
}

static void *send_much(void *arg)
{
    char value = 0;
    while (strand_chan_send(at.chan, &value) == 0)
        continue;
    return arg;
}

static strand_semaphore semaphore = STRAND_SEMAPHORE_INIT(2);
static strand_group group;
static strand_barrier barrier = STRAND_BARRIER_INIT(5);
static strand_condition condition;
static strand_limit users;

static void *take_three(void *arg)
{
    strand_semaphore_acquire_many(&semaphore, 3);
    return arg;
}

static void *await_group(void *arg)
{
    group = (strand_group){{0}};
    strand_group_add(&group, 7);
    strand_group_wait(&group);
    return arg;
}

static void *await_barrier(void *arg)
{
    strand_barrier_wait(&barrier);
    return arg;
}

static void *await_condition(void *arg)
{
    STRAND_LOCKED(&at.mutex);
    strand_condition_wait(&condition, &at.mutex);
    return arg;
}

static void *be_the_user(void *arg)
{
    strand_limit_init(&users, 1, "users");
    STRAND_LIMIT_PERMIT(&users);
    return await_event(arg);
}

static void *be_a_user(void *arg)
{
    STRAND_LIMIT_PERMIT(&users);
    return arg;
}

static void *select_a_signal(void *arg)
{
    int number;
    STRAND_SIGNALS(signals, SIGUSR2);
    (void)strand_select((strand_case[]){strand_on_signal(signals, &number)}, 1, 0);
    return arg;
}

static strand awaited;

static void *be_awaited(void *arg)
{
    awaited = strand_self();
    return sleep_long(arg);
}

static void *select_one(void *arg)
{
    char value;
    strand_case cases[] = {strand_on_receive(at.chan, &value), strand_on_event(&at.event), strand_on_end(awaited),
                           strand_on_time(strand_in(FOREVER))};
    (void)strand_select(cases, 4, 0);
    return arg;
}

static void *await_event_until_a_deadline(void *arg)
{
    STRAND_DEADLINE(strand_in(2 * FOREVER));
    STRAND_DEADLINE(strand_in(FOREVER));
    strand_event_wait(&at.event);
    return arg;
}

static void *await_event_shielded(void *arg)
{
    STRAND_DEADLINE(strand_in(FOREVER));
    STRAND_SHIELD;
    strand_event_wait(&at.event);
    return arg;
}

static const struct scenario things[] = {
    {.name = "channel that is empty",
     .acts = {ONE("receiver", receive)},
     .until = " receives from channel",
     .texts = {HAS(" receives from channel 'bytes' at 0x"), HAS("\n    a strand that sends into it, or closes it\n"),
               HAS("\n    0 of its 3 places are taken; it was opened in ")}},
    {.name = "channel that is full",
     .acts = {ONE("sender", send_much)},
     .until = " sends to channel",
     .texts = {HAS(" sends to channel 'bytes' at 0x"), HAS("\n    a strand that receives from it, or closes it\n"),
               HAS("\n    3 of its 3 places are taken; it was opened in ")}},
    {.name = "semaphore, group, barrier, condition",
     .acts = {ONE("taker", take_three), ONE("waits for all", await_group), SEVERAL(3, "early", await_barrier),
              ONE("listener", await_condition)},
     .until = "6 of 7 strands are",
     .texts = {HAS("\n    a strand that releases permits: 2 are free, 3 are wanted\n"),
               HAS("\n    strands that have yet to come: 7\n"),
               TIMES(3, "\n    strands that have yet to come: 2 of 5\n"), HAS("\n    a strand that signals it\n"),
               NO(" cycle")}},
    {.name = "limit",
     .acts = {ONE("holder", be_the_user), LATER("1 of 2 strands are", "user", be_a_user)},
     .until = "2 of 3 strands are",
     OF("user"),
     .texts = {HAS("\n    a strand that has one of its permits, of which 1 of 1 are taken: holders are not recorded\n"),
               NO(" cycle")}},
    {.name = "select: each case",
     .acts = {ONE("awaited", be_awaited), LATER("1 of 2 strands are", "chooser", select_one),
              ONE("second chooser", select_one)},
     .until = "3 of 4 strands are",
     OF("chooser"),
     .texts = {HAS("\n    case 0: receives from channel 'bytes' at 0x"),
               HAS("\n        a strand that sends into it, or closes it\n"),
               TIMES(2, "\n    case 1: waits for event at 0x"), HAS("\n        a strand that sets it\n"),
               HAS("\n    case 2: waits for the end of strand #"), HAS("\n        strand 'awaited' #"),
               HAS("\n    case 3: sleeps for 3")}},
    {.name = "deadlines: the nearer one",
     .acts = {ONE("patient", await_event_until_a_deadline)},
     .until = "1 of 2 strands are",
     .texts = {TIMES(1, "\n    or its deadline, in 3")}},
    {.name = "deadline outside of a shield",
     .acts = {ONE("shielded", await_event_shielded)},
     .until = "1 of 2 strands are",
     .texts = {NO("deadline")}},
};

/* V-22 */
TEST_INSIDE(an_object_without_a_holder_is_reported_with_its_state)
{
    PLAY_ALL(things, false, strand_waits_print);
}

static const struct scenario outside = {
    .name = "descriptor, port, time",
    .needs_pipe = true,
    .acts = {ONE("reader", read_a_byte), ONE("server", receive_a_message), ONE("sleeper", sleep_long)},
    .until = "3 of 4 strands are",
    .texts = {HAS("\n    the outside: the other side of the descriptor\n"),
              HAS("\n    the outside: a sender to the port, or its closer\n"), HAS("\n    time\n")}};

TEST_SYSTEM_INSIDE(a_strand_that_waits_for_the_outside_is_reported_with_what_would_wake_it)
{
    play(&outside, false, strand_waits_print);
}

#define NUMBERS_2_(a, b) #a " " #b
#define NUMBERS_2(a, b) NUMBERS_2_(a, b)

static const struct scenario real_ones[] = {
    {.name = "offloaded call",
     .acts = {ONE("caller", offload_it)},
     .until = "1 of 2 strands are",
     .texts = {HAS("\n    the outside: the function that was called, on a thread of a crew\n")}},
    {.name = "signals",
     .acts = {ONE("listener", await_a_signal), ONE("chooser", select_a_signal)},
     .until = "2 of 3 strands are",
     .texts = {HAS("\n    the outside: a sender of one of the signals " NUMBERS_2(SIGUSR1, SIGUSR2) "\n"),
               HAS("\n    case 0: waits for signals\n"),
               HAS("\n        the outside: a sender of one of the signals " TEST_STRING_(SIGUSR2) "\n")}},
    {.name = "many that wait alike",
     .acts = {SEVERAL(80, "one", await_event), SEVERAL(40, "other", sleep_long)},
     .until = "120 of 121 strands are",
     .from = "\n80 strands, strand 'one' #",
     .texts = {HAS("\n40 strands, strand 'other' #"), TIMES(1, " waits for event at 0x"),
               TIMES(1, "a strand that sets it")}},
};

TEST_REAL_INSIDE(calls_and_signals_are_reported_and_many_strands_that_wait_alike_are_one_entry)
{
    PLAY_ALL(real_ones, false, strand_waits_print);
}

/* ---- pools, runs, threads --------------------------------------------------------------------------------------- */

TEST_INSIDE(a_bad_descriptor_is_an_error_code)
{
    CHECK_EQ(strand_waits_print(-1), -EBADF);
}

TEST_REAL(a_plain_thread_gets_an_error_where_nothing_runs)
{
    CHECK_EQ(strand_waits_print(2), -ESRCH);
}

static void *be_looked_at(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "waiter", await_event, NULL);
    waits_with("1 of 2 strands are");
    const char *text = printed_outside(strand_waits_print);
    CHECK_CONTAINS(text, "strand 'waiter' #");
    CHECK_CONTAINS(text, "\n    a strand that sets it\n");
    strand_event_set(&at.event);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(a_plain_thread_sees_all_runs)
{
    test_run(be_looked_at, NULL);
}

static void *yield_until_cancelled(void *arg)
{
    at.started++;
    for (;;) {
        STRAND_LOCKED(&at.mutex);
        strand_yield();
    }
    return arg;
}

static void *print_under_load(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++)
        spawn_named(scope, "busy", yield_until_cancelled, NULL);
    test_yield_until(&at.started, 8);
    for (long i = 0; i < test_scale(100); i++) {
        CHECK_CONTAINS(waits(), " of 9 strands are blocked\n");
        strand_yield();
    }
    strand_scope_cancel(scope, NULL);
    return arg;
}

TEST(what_is_printed_under_load_is_true_of_one_moment)
{
    strand_options options = test_options();
    test_set_threads(&options, 4);
    strand_run(&options, print_under_load, NULL);
}

static void *print_beside_a_spinner(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    lock_it(&at.mutex);
    spawn_named(scope, "waiter", lock_and_unlock, &at.mutex);
    spawn_named(scope, "joiner", join_one, NULL);
    waits_with("3 of 4 strands are");
    spawn_named(scope, "spinner", spinner, NULL);
    while (at.started != 1)
        strand_yield();
    const char *text;
    do /* on a busy machine a thread that can be held may come to its next step too late */
        text = waits();
    while (!strstr(text, "1 of the threads could not be held"));
    at.give_up = 1;
    CHECK_CONTAINS(text, "\n    the strand that would have to act is not known: not all threads could be held\n");
    CHECK_CONTAINS(text, "strand 'joiner' #");
    CHECK_CONTAINS(text, "\n    strand 'child' #"); /* that much its control block says */
    strand_mutex_unlock(&at.mutex);
    strand_event_set(&at.event);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(where_a_thread_cant_be_held_no_memory_of_the_program_is_looked_at)
{
    strand_options options = test_options();
    test_set_threads(&options, 2);
    strand_run(&options, print_beside_a_spinner, NULL);
}
