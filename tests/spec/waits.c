/*
 * strand_waits_print shows who waits for whom.
 */
#define _GNU_SOURCE
#define SUITE waits
#include "test.h"

#include "printed.h"

#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define FOREVER (3600 * STRAND_S)

static const char *waits(void)
{
    return printed(strand_waits_print);
}

static const char *waits_with(const char *words)
{
    return printed_with(strand_waits_print, words);
}

static strand_mutex mutex, other_mutex, third_mutex;
static strand_event event;
static strand_rwlock rwlock;
static strand_once once;
static _Atomic int locked, give_up;

/* A body is run again and again, under seeds. */
static void begin(void)
{
    mutex = other_mutex = third_mutex = (strand_mutex){{0}};
    event = (strand_event){{0}};
    rwlock = (strand_rwlock){{0}};
    once = (strand_once){{0}};
    locked = give_up = 0;
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

TEST_INSIDE(of_a_mutex_the_holder_is_named_and_where_it_was_locked)
{
    begin();
    STRAND_SCOPE(scope);
    lock_it(&mutex);
    spawn_named(scope, "waiter", lock_and_unlock, &mutex);
    const char *text = waits_with("1 of 2 strands are");
    CHECK_CONTAINS(text, "1 of 2 strands are blocked\n");
    CHECK_CONTAINS(text, "strand 'waiter' #");
    CHECK_CONTAINS(text, " waits for mutex at 0x");
    CHECK_CONTAINS(text, " ms; spawned in spawn_named+0x");
    CHECK_CONTAINS(text, "\n    strand 'root' #");
    CHECK_CONTAINS(text, " would have to unlock it, locked in lock_it");
    CHECK_CONTAINS(text, "; it is not blocked\n");
    strand_mutex_unlock(&mutex);
    strand_scope_join(scope);
}

static void *see_a_mutex_handed_over(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    strand_mutex_lock(&mutex);
    spawn_named(scope, "heir", lock_and_unlock, &mutex);
    waits_with("1 of 2 strands are");
    spawn_named(scope, "waiter", lock_and_unlock, &mutex);
    waits_with("2 of 3 strands are");
    strand_mutex_unlock(&mutex);
    const char *text = waits();
    CHECK_CONTAINS(text, "1 of 3 strands are blocked");
    CHECK_CONTAINS(text, "\n    strand 'heir' #");
    CHECK_CONTAINS(text, " has just been handed it, and would have to unlock it; it is not blocked\n");
    strand_scope_join(scope);
    return arg;
}

/* On one thread, where who has it has not gone on yet. */
TEST_REAL(of_a_mutex_that_was_handed_over_the_next_holder_is_named)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, see_a_mutex_handed_over, NULL);
}

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
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "joiner", join_one, NULL);
    const char *text = waits_with("2 of 3 strands are");
    CHECK_CONTAINS(text, "strand 'joiner' #");
    CHECK_CONTAINS(text, " joins strand #");
    CHECK_CONTAINS(text, "    strand 'child' #");
    CHECK_CONTAINS(text, " would have to end; it is blocked too\n");
    CHECK_CONTAINS(text, "    a strand that sets it\n");
    strand_event_set(&event);
    strand_scope_join(scope);
}

static void *stay_under_a_shield(void *arg)
{
    STRAND_SHIELD;
    locked++;
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
    begin();
    STRAND_SCOPE(scope);
    strand leaver = spawn_named(scope, "leaver", leave_with_many, NULL);
    const char *text = strstr(waits_with("14 of 15 strands are"), "strand 'leaver' #");
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
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "joiner", join_the_scope, NULL);
    const char *text = strstr(waits_with("3 of 4 strands are"), "strand 'joiner' #");
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
    strand_join(strand_scope_wait_next(scope));
    strand_join(strand_scope_wait_next(scope));
    return arg;
}

TEST_INSIDE(of_the_first_child_to_end_any_will_do)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "chooser", await_any, NULL);
    const char *text = strstr(waits_with("3 of 4 strands are"), "strand 'chooser' #");
    CHECK(text != NULL);
    CHECK_CONTAINS(text, "waits for the end of any child, since ");
    CHECK_CONTAINS(text, "    any of these\n");
    strand_event_set(&event);
    strand_scope_join(scope);
}

static void *read_until_event(void *arg)
{
    STRAND_READ_LOCKED(&rwlock);
    strand_event_wait(&event);
    return arg;
}

static void *read_once(void *arg)
{
    STRAND_READ_LOCKED(&rwlock);
    return arg;
}

static void *write_once(void *arg)
{
    STRAND_WRITE_LOCKED(&rwlock);
    return arg;
}

TEST_INSIDE(of_a_read_write_lock_all_holders_are_named)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "reader", read_until_event, NULL);
    spawn_named(scope, "second reader", read_until_event, NULL);
    waits_with("2 of 3 strands are");
    spawn_named(scope, "writer", write_once, NULL);
    const char *text = strstr(waits_with("3 of 4 strands are"), "strand 'writer' #");
    CHECK(text != NULL);
    CHECK_EQ(test_count(text, " would have to release it, locked to read in read_until_event+0x"), 2);
    CHECK_CONTAINS(text, "\n    strand 'reader' #");
    CHECK_CONTAINS(text, "\n    strand 'second reader' #");
    strand_event_set(&event);
    strand_scope_join(scope);
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
    strand_event_set(&event);
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
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "first", run_once, NULL);
    waits_with("1 of 2 strands are");
    spawn_named(scope, "second", run_once, NULL);
    const char *text = strstr(waits_with("2 of 3 strands are"), "strand 'second' #");
    CHECK(text != NULL);
    CHECK_CONTAINS(text, "\n    strand 'first' #");
    CHECK_CONTAINS(text, " would have to return from it; it is blocked too\n");
    strand_event_set(&event);
    strand_scope_join(scope);
}

/* ---- rings ------------------------------------------------------------------------------------------------- */

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

TEST_INSIDE(two_strands_that_lock_two_mutexes_in_two_orders_are_a_cycle)
{
    begin();
    struct two ab = {&mutex, &other_mutex}, ba = {&other_mutex, &mutex};
    STRAND_SCOPE(scope);
    spawn_named(scope, "a", lock_both, &ab);
    spawn_named(scope, "b", lock_both, &ba);
    const char *text = waits_with("2 of 3 strands are blocked, 2 of them in 1 cycle\n");
    const char *ring = strstr(text, "\n2 strands wait for each other:\n");
    CHECK(ring != NULL);
    CHECK_EQ(test_count(ring, "\n    strand 'a' #"), 1);
    CHECK_EQ(test_count(ring, "\n    strand 'b' #"), 1);
    CHECK_EQ(test_count(ring, ", which strand 'a' #"), 1);
    CHECK_EQ(test_count(ring, ", which strand 'b' #"), 1);
    CHECK_EQ(test_count(ring, " has locked\n"), 2);
    strand_scope_cancel(scope, NULL);
}

static void *join_while_locked(void *arg)
{
    STRAND_LOCKED(&mutex);
    STRAND_SCOPE(scope);
    strand_join(spawn_named(scope, "inner", lock_and_unlock, &mutex));
    return arg;
}

TEST_INSIDE(who_joins_a_strand_that_waits_for_its_mutex_is_in_a_cycle)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "outer", join_while_locked, NULL);
    const char *ring = strstr(waits_with("2 of 3 strands are"), "\n2 strands wait for each other:\n");
    CHECK(ring != NULL);
    CHECK_CONTAINS(ring, " joins strand 'inner' #");
    CHECK_CONTAINS(ring, ", which strand 'outer' #");
    strand_scope_cancel(scope, NULL);
}

/* Until give_up: then the wait is ended by a deadline inside of the shield, of which there is one after the other. */
static void *lock_under_a_shield(void *one)
{
    STRAND_SHIELD;
    locked++;
    while (!give_up) {
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
    STRAND_LOCKED(&mutex);
    STRAND_SCOPE(scope);
    spawn_named(scope, "sleeper", stay_under_a_shield, arg);
    spawn_named(scope, "inner", lock_under_a_shield, &mutex);
    test_yield_until(&locked, 2);
    strand_scope_cancel(scope, NULL);
    return arg;
}

/* It waits for the sleeper first, and has to wait for the other too. */
TEST_INSIDE(a_cycle_may_go_through_any_child_of_a_scope_that_is_left)
{
    begin();
    STRAND_SCOPE(scope);
    strand leaver = spawn_named(scope, "leaver", leave_while_locked, NULL);
    const char *text = waits_with("3 of 4 strands are blocked, 2 of them in 1 cycle\n");
    const char *ring = strstr(text, "\n2 strands wait for each other:\n");
    CHECK(ring != NULL);
    CHECK_CONTAINS(ring, " leaves a scope, waits for strand 'inner' #");
    CHECK(strstr(ring, "sleeper") == NULL);
    give_up = 1;
    strand_event_set(&event);
    strand_join(leaver);
}

static void *join_a_scope_while_locked(void *arg)
{
    STRAND_LOCKED(&mutex);
    STRAND_SCOPE(scope);
    for (int i = 0; i < 5; i++)
        spawn_named(scope, "inner", lock_and_unlock, &mutex);
    strand_scope_join(scope);
    return arg;
}

TEST_INSIDE(of_cycles_that_share_a_strand_one_is_printed)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "outer", join_a_scope_while_locked, NULL);
    const char *text = waits_with("6 of 7 strands are blocked, 2 of them in 1 cycle\n");
    CHECK_EQ(test_count(text, "2 strands wait for each other:\n"), 1);
    strand_scope_cancel(scope, NULL);
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

TEST_REAL_INSIDE(of_very_many_cycles_the_shortest_are_printed)
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
    STRAND_LOCKED(&mutex);
    return join_the_next(arg);
}

/* Deeper than a recursion could go on the stack of a strand. */
TEST_REAL_INSIDE(a_long_chain_is_followed_to_its_end)
{
    begin();
    int links = (int)test_scale(5000);
    links = links < 100 ? 100 : links;
    struct chain chain = {links, &mutex};
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
    STRAND_READ_LOCKED(&rwlock);
    locked = 1;
    test_yield_until(&locked, 2);
    STRAND_SCOPE(scope);
    strand_join(spawn_named(scope, "second reader", read_once, arg));
    return arg;
}

/* Which waits behind a writer, and that for the first reader. */
TEST_INSIDE(who_joins_a_reader_that_has_to_wait_for_it_is_in_a_cycle)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "reader", read_and_join_a_reader, NULL);
    test_yield_until(&locked, 1);
    spawn_named(scope, "writer", write_once, NULL);
    waits_with(" waits to write under lock");
    locked = 2;
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
    STRAND_LOCKED(&mutex);
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    spawn_named(scope, "inner", lock_and_unlock, &mutex);
    if (arg)
        spawn_named(scope, "other", await_event, NULL);
    while (strand_scope_count(scope))
        strand_join(strand_scope_wait_next(scope));
    return arg;
}

TEST_INSIDE(who_waits_for_any_of_several_is_in_a_cycle_when_one_is_left)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "collector", collect_while_locked, &mutex);
    CHECK_CONTAINS(waits_with("3 of 4 strands are"), "3 of 4 strands are blocked\n");
    strand_event_set(&event);
    while (!strstr(waits(), "2 of 3 strands are blocked"))
        strand_sleep(STRAND_MS);
    const char *ring = strstr(waits(), "\n2 strands wait for each other:\n");
    CHECK(ring != NULL);
    CHECK_CONTAINS(ring, " waits for the end of any child: strand 'inner' #");
    CHECK_CONTAINS(ring, " is the only one\n");
    strand_scope_cancel(scope, NULL);
}

/* ---- things, and the outside --------------------------------------------------------------------------------- */

static strand_chan chan;

static void *receive(void *arg)
{
    char value;
    STRAND_IGNORE(strand_chan_receive(chan, &value));
    return arg;
}

static void *send_much(void *arg)
{
    char value = 0;
    while (strand_chan_send(chan, &value) == 0)
        continue;
    return arg;
}

TEST_INSIDE(of_a_channel_it_is_told_who_could_act_and_where_it_was_made)
{
    begin();
    STRAND_SCOPE(scope);
    chan = strand_chan_open(scope, 1, 3, STRAND_CHAN_ATTR(.name = "bytes"));
    strand receiver = spawn_named(scope, "receiver", receive, NULL);
    const char *text = waits_with(" receives from channel");
    CHECK_CONTAINS(text, " receives from channel 'bytes' at 0x");
    CHECK_CONTAINS(text, "\n    a strand that sends into it, or closes it\n");
    CHECK_CONTAINS(text, "\n    0 of its 3 places are taken; it was opened in ");
    strand_cancel(receiver, NULL);
    spawn_named(scope, "sender", send_much, NULL);
    text = waits_with(" sends to channel");
    CHECK_CONTAINS(text, " sends to channel 'bytes' at 0x");
    CHECK_CONTAINS(text, "\n    a strand that receives from it, or closes it\n");
    CHECK_CONTAINS(text, "\n    3 of its 3 places are taken; it was opened in ");
    strand_scope_cancel(scope, NULL);
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
    STRAND_LOCKED(&mutex);
    strand_condition_wait(&condition, &mutex);
    return arg;
}

static void *be_a_user(void *arg)
{
    STRAND_LIMIT_PERMIT(&users);
    return arg;
}

/* V-22 */
TEST_INSIDE(of_what_has_no_holder_it_is_told_how_things_stand)
{
    begin();
    strand_limit_init(&users, 1, "users");
    strand_limit_acquire(&users);
    group = (strand_group){{0}};
    strand_group_add(&group, 7);
    {
        STRAND_SCOPE(scope);
        spawn_named(scope, "taker", take_three, NULL);
        spawn_named(scope, "waits for all", await_group, NULL);
        for (int i = 0; i < 3; i++)
            spawn_named(scope, "early", await_barrier, NULL);
        spawn_named(scope, "listener", await_condition, NULL);
        spawn_named(scope, "user", be_a_user, NULL);
        const char *text = waits_with("7 of 8 strands are");
        CHECK_CONTAINS(text, "\n    a strand that releases permits: 2 are free, 3 are wanted\n");
        CHECK_CONTAINS(text, "\n    strands that have yet to come: 7\n");
        CHECK_EQ(test_count(text, "\n    strands that have yet to come: 2 of 5\n"), 3);
        CHECK_CONTAINS(text, "\n    a strand that signals it\n");
        CHECK_CONTAINS(
            text, "\n    a strand that has one of its permits, of which 1 of 1 are taken: holders are not recorded\n");
        CHECK_EQ(test_count(text, " cycle"), 0);
        strand_scope_cancel(scope, NULL);
    }
    strand_limit_release(&users);
}

static int pipe_ends[2];
static strand_port port;

static void *read_a_byte(void *arg)
{
    char byte;
    (void)strand_read(pipe_ends[0], &byte, 1);
    return arg;
}

static void *receive_a_message(void *arg)
{
    char message[8];
    (void)strand_port_receive(port, message, sizeof message);
    return arg;
}

static void *sleep_long(void *arg)
{
    strand_sleep(FOREVER);
    return arg;
}

TEST_SYSTEM_INSIDE(who_waits_for_the_outside_is_said_to)
{
    begin();
    CHECK_EQ(strand_pipe(pipe_ends), 0);
    {
        STRAND_SCOPE(scope);
        port = strand_port_open(scope, 8, 4, NULL);
        spawn_named(scope, "reader", read_a_byte, NULL);
        spawn_named(scope, "server", receive_a_message, NULL);
        spawn_named(scope, "sleeper", sleep_long, NULL);
        const char *text = waits_with("3 of 4 strands are");
        CHECK_CONTAINS(text, "\n    the outside: the other side of the descriptor\n");
        CHECK_CONTAINS(text, "\n    the outside: a sender to the port, or its closer\n");
        CHECK_CONTAINS(text, "\n    time\n");
        strand_scope_cancel(scope, NULL);
    }
    strand_close(pipe_ends[0]);
    strand_close(pipe_ends[1]);
}

static _Atomic int calling;

static void *call_until_told(void *arg)
{
    calling = 1;
    while (calling == 1)
        usleep(100);
    return arg;
}

static void *offload_it(void *arg)
{
    return strand_offload(call_until_told, arg);
}

TEST_REAL_INSIDE(who_waits_for_an_offloaded_call_is_said_to)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "caller", offload_it, NULL);
    test_yield_until(&calling, 1);
    CHECK_CONTAINS(waits_with("1 of 2 strands are"),
                   "\n    the outside: the function that was called, on a thread of a crew\n");
    calling = 2;
    strand_scope_join(scope);
}

static void *await_a_signal(void *arg)
{
    STRAND_SIGNALS(signals, SIGUSR1, SIGUSR2);
    (void)strand_wait_signal(signals);
    return arg;
}

static void *select_a_signal(void *arg)
{
    int number;
    STRAND_SIGNALS(signals, SIGUSR2);
    (void)strand_select((strand_case[]){strand_on_signal(signals, &number)}, 1, 0);
    return arg;
}

TEST_REAL_INSIDE(who_waits_for_signals_is_said_to_and_for_which)
{
    char both[100], one[100];
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "listener", await_a_signal, NULL);
    spawn_named(scope, "chooser", select_a_signal, NULL);
    const char *text = waits_with("2 of 3 strands are");
    snprintf(both, sizeof both, "\n    the outside: a sender of one of the signals %d %d\n", SIGUSR1, SIGUSR2);
    snprintf(one, sizeof one, "\n        the outside: a sender of one of the signals %d\n", SIGUSR2);
    CHECK_CONTAINS(text, both);
    CHECK_CONTAINS(text, "\n    case 0: waits for signals\n");
    CHECK_CONTAINS(text, one);
    strand_scope_cancel(scope, NULL);
}

static strand awaited;

static void *select_one(void *arg)
{
    char value;
    strand_case cases[] = {strand_on_receive(chan, &value), strand_on_event(&event), strand_on_end(awaited),
                           strand_on_time(strand_in(FOREVER))};
    (void)strand_select(cases, 4, 0);
    return arg;
}

TEST_INSIDE(of_a_select_each_case_is_told)
{
    begin();
    STRAND_SCOPE(scope);
    chan = strand_chan_open(scope, 1, 3, STRAND_CHAN_ATTR(.name = "bytes"));
    awaited = spawn_named(scope, "awaited", sleep_long, NULL);
    spawn_named(scope, "chooser", select_one, NULL);
    spawn_named(scope, "second chooser", select_one, NULL);
    const char *text = strstr(waits_with("3 of 4 strands are"), "strand 'chooser' #");
    CHECK(text != NULL);
    CHECK_CONTAINS(text, "\n    case 0: receives from channel 'bytes' at 0x");
    CHECK_CONTAINS(text, "\n        a strand that sends into it, or closes it\n");
    CHECK_CONTAINS(text, "\n    case 1: waits for event at 0x");
    CHECK_CONTAINS(text, "\n        a strand that sets it\n");
    CHECK_CONTAINS(text, "\n    case 2: waits for the end of strand #");
    CHECK_CONTAINS(text, "\n        strand 'awaited' #");
    CHECK_CONTAINS(text, "\n    case 3: sleeps for 3");
    CHECK_EQ(test_count(text, "case 1: waits for event at 0x"), 2);
    strand_scope_cancel(scope, NULL);
}

static void *await_event_until_a_deadline(void *arg)
{
    STRAND_DEADLINE(strand_in(2 * FOREVER));
    STRAND_DEADLINE(strand_in(FOREVER));
    strand_event_wait(&event);
    return arg;
}

static void *await_event_shielded(void *arg)
{
    STRAND_DEADLINE(strand_in(FOREVER));
    STRAND_SHIELD;
    strand_event_wait(&event);
    return arg;
}

TEST_INSIDE(a_deadline_that_would_end_the_wait_is_told)
{
    begin();
    STRAND_SCOPE(scope);
    strand patient = spawn_named(scope, "patient", await_event_until_a_deadline, NULL);
    const char *text = waits_with("1 of 2 strands are");
    CHECK_EQ(test_count(text, "\n    or its deadline, in 3"), 1); /* of the nearer one */
    strand_cancel(patient, NULL);
    strand_wait(patient);
    spawn_named(scope, "shielded", await_event_shielded, NULL);
    CHECK_EQ(test_count(waits_with("1 of 2 strands are"), "deadline"), 0);
    strand_event_set(&event);
    strand_scope_cancel(scope, NULL);
}

/* ---- many ---------------------------------------------------------------------------------------------------- */

TEST_REAL_INSIDE(many_that_wait_alike_are_printed_once)
{
    begin();
    strand_event other = {{0}};
    STRAND_SCOPE(scope);
    for (int i = 0; i < 80; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "one"), await_event, NULL, 0);
    for (int i = 0; i < 40; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "other"), sleep_long, &other, 0);
    const char *text = waits_with("120 of 121 strands are");
    const char *first = strstr(text, "\n80 strands, strand 'one' #"),
               *second = strstr(text, "\n40 strands, strand 'other' #");
    CHECK(first && second && first < second);
    CHECK_EQ(test_count(text, " waits for event at 0x"), 1);
    CHECK_EQ(test_count(text, "a strand that sets it"), 1);
    strand_scope_cancel(scope, NULL);
}

/* ---- pools, runs, threads --------------------------------------------------------------------------------------- */

static void *close_a_pool(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "extra"));
    for (int i = 0; i < 2; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "inhabitant", .pool = pool), stay_under_a_shield, NULL, 0);
    test_yield_until(&locked, 2);
    strand_pool_close(pool, NULL);
    strand_scope_cancel(scope, NULL);
    return arg;
}

TEST_INSIDE(who_closes_a_pool_waits_for_its_strands)
{
    begin();
    STRAND_SCOPE(scope);
    strand closer = spawn_named(scope, "closer", close_a_pool, NULL);
    const char *text = waits_with("waits for the end of pool 'extra'");
    const char *closes = strstr(text, "strand 'closer' #");
    CHECK(closes != NULL);
    CHECK_EQ(test_count(closes, "\n    strand 'inhabitant' #"), 2);
    strand_event_set(&event);
    strand_join(closer);
}

TEST_INSIDE(a_bad_descriptor_is_an_error_code)
{
    CHECK_EQ(strand_waits_print(-1), -EBADF);
}

TEST_REAL(a_plain_thread_where_nothing_runs_is_told)
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
    strand_event_set(&event);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(a_plain_thread_sees_all_runs)
{
    test_run(be_looked_at, NULL);
}

static void *yield_until_cancelled(void *arg)
{
    locked++;
    for (;;) {
        STRAND_LOCKED(&mutex);
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
    test_yield_until(&locked, 8);
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

/* A signal is to find it here, and not in a function of a sanitizer's. */
__attribute__((no_sanitize("thread"))) static void *spin(void *arg)
{
    locked = 1;
    while (*(volatile int *)&locked != 2)
        continue;
    return arg;
}

static void *print_beside_a_spinner(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    lock_it(&mutex);
    spawn_named(scope, "waiter", lock_and_unlock, &mutex);
    spawn_named(scope, "joiner", join_one, NULL);
    waits_with("3 of 4 strands are");
    spawn_named(scope, "spinner", spin, NULL);
    while (locked != 1)
        strand_yield();
    const char *text = waits();
    locked = 2;
    CHECK_CONTAINS(text, "1 of the threads could not be held");
    CHECK_CONTAINS(text, "\n    the strand that would have to act is not known: not all threads could be held\n");
    CHECK_CONTAINS(text, "strand 'joiner' #");
    CHECK_CONTAINS(text, "\n    strand 'child' #"); /* that much its control block says */
    strand_mutex_unlock(&mutex);
    strand_event_set(&event);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(where_a_thread_cant_be_held_no_memory_of_the_program_is_looked_at)
{
    strand_options options = test_options();
    test_set_threads(&options, 2);
    strand_run(&options, print_beside_a_spinner, NULL);
}
