/*
 * Shared fibres: one stack for many strands, one of which is active. How they wait is in fibre_wait.c, what is
 * refused in misuse.c.
 */
#define SUITE fibre
#include "test.h"

#include "strand/chan.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define KIB ((size_t)1024)

enum { WORDS = 40 };

static strand_fibre shared;

static strand_fibre_info ask(strand_fibre fibre, int index)
{
    strand_fibre_info info = {.size = sizeof info};
    strand_fibre_info_get(fibre, index, &info);
    return info;
}

static NOINLINE void fill(volatile uint64_t *words, uint64_t salt)
{
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = salt * 1000003 + i;
}

static NOINLINE void look(const volatile uint64_t *words, uint64_t salt)
{
    for (uint64_t i = 0; i < WORDS; i++)
        CHECK_EQ(words[i], salt * 1000003 + i);
}

/* Recurses so many frames deep, yields at the bottom and on the way back, and finds all frames unchanged. */
static NOINLINE void dive(int depth, uint64_t salt)
{
    volatile uint64_t mine[WORDS];
    fill(mine, salt + (uint64_t)depth);
    if (depth)
        dive(depth - 1, salt);
    else
        strand_sleep(100 * STRAND_US);
    if (depth % 4 == 0)
        strand_yield();
    look(mine, salt + (uint64_t)depth);
}

/* ---- one stack ------------------------------------------------------------------------------------------- */

/* contract 3.3 */
TEST_INSIDE(a_strand_is_spawned_on_a_fibre_and_joined)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    CHECK_PTR(strand_join(test_spawn_on_fibre(scope, fibre, test_return, TEST_PTR(5))), TEST_PTR(5));
    CHECK_PTR(strand_join(test_spawn_on_fibre(scope, fibre, test_return, TEST_PTR(6))), TEST_PTR(6));
}

static _Atomic uintptr_t places[2];

static NOINLINE void *note_place(void *place)
{
    volatile char local = 0;
    atomic_store((_Atomic uintptr_t *)place, (uintptr_t)&local);
    strand_yield();
    CHECK_EQ(atomic_load((_Atomic uintptr_t *)place), (uintptr_t)&local);
    return NULL;
}

/* V-14, contract 3.3 */
TEST_INSIDE(the_frames_of_all_strands_of_a_fibre_are_at_the_same_addresses)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (int i = 0; i < 2; i++)
        test_spawn_on_fibre(scope, fibre, note_place, &places[i]);
    strand_scope_join(scope);
    CHECK_EQ(places[0], places[1]);
}

static _Atomic int inside;

static void *be_alone(void *arg)
{
    for (long round = test_scale(200); round > 0; round--) {
        CHECK_EQ(inside++, 0);
        for (volatile int i = 0; i < 200; i++)
            ;
        inside--;
        strand_yield();
    }
    return arg;
}

/* V-12, V-14 */
TEST_RACE(at_most_one_strand_of_a_fibre_runs_at_a_time)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    inside = 0;
    for (int i = 0; i < 6; i++)
        test_spawn_on_fibre(scope, fibre, be_alone, NULL);
    strand_scope_join(scope);
}

static void *dive_often(void *arg)
{
    volatile uint64_t mine[WORDS];
    uint64_t number = (uint64_t)(uintptr_t)arg;
    fill(mine, number);
    for (long round = test_scale(20); round > 0; round--) {
        dive((int)((number * 7 + (uint64_t)round) % 24), number * 100);
        look(mine, number);
    }
    return arg;
}

/* V-14, V-15 */
TEST_RACE(frames_of_all_depths_are_as_they_were_when_their_strand_goes_on)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 2));
    for (uintptr_t i = 1; i <= 20; i++)
        test_spawn_on_fibre(scope, fibre, dive_often, (void *)i);
    strand_scope_join(scope);
}

static void *compute(void *arg)
{
    double mine = (double)(uintptr_t)arg;
    for (int i = 0; i < 30; i++) {
        mine = mine / 3 + 1;
        strand_yield();
    }
    CHECK(mine > 1.49999 && mine < 1.50001);
    return arg;
}

/* V-15 */
TEST_INSIDE(strands_of_a_fibre_compute_in_floating_point_across_switches)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (uintptr_t i = 1; i < 5; i++)
        test_spawn_on_fibre(scope, fibre, compute, (void *)(i * 1000));
    strand_scope_join(scope);
}

static _Atomic int stop;
static _Atomic long turns[8];

static void *take_turns(void *turn)
{
    while (!stop) {
        ++*(_Atomic long *)turn;
        strand_yield();
    }
    return NULL;
}

/* V-21, contract 3.3 */
TEST_INSIDE(all_strands_of_a_fibre_get_on_and_so_do_others)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    stop = 0;
    for (int i = 0; i < 8; i++) {
        turns[i] = 0;
        if (i < 6)
            test_spawn_on_fibre(scope, fibre, take_turns, &turns[i]);
        else
            strand_spawn(scope, take_turns, &turns[i]);
    }
    for (int i = 0; i < 8; i++)
        while (turns[i] < 20)
            strand_yield();
    stop = 1;
    strand_scope_join(scope);
}

static strand_event turn_of[6];

static void *await_turn(void *number)
{
    ++inside;
    strand_event_wait(&turn_of[(intptr_t)number]);
    test_log("%d", (int)(intptr_t)number);
    return number;
}

/* Under a seed the seed chooses. */
/* contract 3.3 */
TEST_REAL_INSIDE(strands_of_a_fibre_are_served_in_the_order_in_which_they_were_woken)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    inside = 0;
    for (int i = 0; i < 6; i++)
        test_spawn_on_fibre(scope, fibre, await_turn, TEST_PTR(i));
    test_await_blocked("blocked: waits for event", 6);
    for (int i = 0; i < 6; i++)
        strand_event_set(&turn_of[i * 5 % 6]);
    strand_scope_join(scope);
    CHECK_LOG("0 5 4 3 2 1");
}

/* ---- lives ----------------------------------------------------------------------------------------------- */

static void *park(void *parked)
{
    volatile uint64_t mine[WORDS];
    fill(mine, 9);
    ++*(_Atomic int *)parked;
    while (!stop)
        strand_sleep(50 * STRAND_US);
    look(mine, 9);
    return NULL;
}

static _Atomic int parked;

static void *count_down(void *arg)
{
    volatile uint64_t mine[WORDS];
    uintptr_t n = (uintptr_t)arg;
    fill(mine, n);
    if (n) {
        STRAND_SCOPE(scope);
        strand first = test_spawn_on_fibre(scope, shared, count_down, (void *)(n - 1));
        strand second = strand_spawn(scope, test_return, arg);
        CHECK_PTR(strand_join(first), (void *)(n - 1));
        CHECK_PTR(strand_join(second), arg);
    }
    look(mine, n);
    return arg;
}

TEST_INSIDE(a_strand_spawns_on_its_own_fibre_and_joins)
{
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, NULL);
    CHECK_PTR(strand_join(test_spawn_on_fibre(scope, shared, count_down, (void *)12)), (void *)12);
}

static void *open_another(void *arg)
{
    volatile uint64_t mine[WORDS];
    uintptr_t n = (uintptr_t)arg;
    fill(mine, n);
    if (n) {
        STRAND_SCOPE(scope);
        strand_fibre fibre = strand_fibre_open(scope, NULL);
        CHECK_PTR(strand_join(test_spawn_on_fibre(scope, fibre, open_another, (void *)(n - 1))), (void *)(n - 1));
        test_spawn_on_fibre(scope, fibre, dive_often, arg);
        strand_scope_join(scope);
    }
    look(mine, n);
    return arg;
}

/* contract 3.3 */
TEST_INSIDE(a_strand_on_a_fibre_opens_another)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (uintptr_t i = 0; i < 4; i++)
        test_spawn_on_fibre(scope, fibre, open_another, (void *)i);
    strand_scope_join(scope);
}

static void *sleep_and_report(void *child)
{
    volatile uint64_t mine[WORDS];
    fill(mine, 3);
    strand_exception *e = strand_try(test_child_blocks, child, NULL);
    look(mine, 3);
    CHECK(e);
    strand_rethrow(e);
}

TEST_INSIDE(leaving_the_scope_cancels_strands_on_a_fibre_and_waits_for_their_clean_ups)
{
    static struct test_child children[5];
    memset(children, 0, sizeof children);
    {
        STRAND_SCOPE(scope);
        strand_fibre fibre = strand_fibre_open(scope, NULL);
        for (int i = 0; i < 5; i++)
            test_spawn_on_fibre(scope, fibre, sleep_and_report, &children[i]);
        for (int i = 0; i < 5; i++)
            test_yield_until(&children[i].started, 1);
        strand_scope_cancel(scope, NULL);
    }
    for (int i = 0; i < 5; i++)
        CHECK_EQ(children[i].ended, 1);
}

TEST_INSIDE(leaving_with_live_strands_on_a_fibre_is_an_error_as_ever)
{
    static struct test_child child;
    child = (struct test_child){0};
    STRAND_TRY {
        STRAND_SCOPE(scope);
        test_spawn_on_fibre(scope, strand_fibre_open(scope, NULL), sleep_and_report, &child);
        test_yield_until(&child.started, 1);
    }
    STRAND_CATCH(&STRAND_LIVE_STRANDS, e) {
        test_log("live");
    }
    STRAND_END
    CHECK_LOG("live");
    CHECK_EQ(child.ended, 1);
}

/* The stack stays for them. */
/* contract 3.3 */
TEST_INSIDE(strands_may_outlive_the_scope_that_their_fibre_was_opened_in)
{
    strand late[3], early;
    STRAND_SCOPE(outer);
    stop = parked = 0;
    {
        STRAND_SCOPE(inner);
        strand_fibre fibre = strand_fibre_open(inner, NULL);
        for (int i = 0; i < 3; i++)
            late[i] = test_spawn_on_fibre(outer, fibre, park, &parked);
        early = test_spawn_on_fibre(outer, fibre, test_return, TEST_PTR(7));
        test_yield_until(&parked, 3);
        strand_wait(early);
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        strand_join(late[i]);
    CHECK(strand_ended(early));
    strand_wait(early);
    strand_cancel(early, "too late");
    CHECK_PTR(strand_join(early), TEST_PTR(7));
}

/* The last one ends on one thread while its fibre is closed on another. */
TEST_RACE(a_fibre_may_be_closed_while_its_last_strand_ends)
{
    for (long i = test_scale(500); i > 0; i--) {
        STRAND_SCOPE(outer);
        strand last;
        {
            STRAND_SCOPE(inner);
            last = test_spawn_on_fibre(outer, strand_fibre_open(inner, NULL), test_return, TEST_PTR(1));
        }
        while (!strand_ended(last))
            strand_yield();
        CHECK_PTR(strand_join(last), TEST_PTR(1));
    }
}

/* ---- groups ---------------------------------------------------------------------------------------------- */

/* contract 3.3 */
TEST_INSIDE(a_group_spreads_its_strands_evenly)
{
    enum { FIBRES = 4, EACH = 5 };
    STRAND_SCOPE(scope);
    strand_fibre group = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = FIBRES, .name = "crowd"));
    CHECK_EQ(strand_fibre_count(group), FIBRES);
    stop = parked = 0;
    for (int i = 0; i < FIBRES * EACH; i++)
        test_spawn_on_fibre(scope, group, park, &parked);
    for (int i = 0; i < FIBRES; i++)
        CHECK_EQ(ask(group, i).strands, EACH);
    test_yield_until(&parked, FIBRES * EACH);
    stop = 1;
    strand_scope_join(scope);
}

/* contract 3.3 */
TEST_INSIDE(a_group_gives_new_strands_to_those_fibres_that_have_fewer)
{
    static struct test_child children[8];
    strand strands[8];
    memset(children, 0, sizeof children);
    STRAND_SCOPE(scope);
    strand_fibre group = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 2));
    for (int i = 0; i < 8; i++)
        strands[i] = test_spawn_on_fibre(scope, group, test_child_waits, &children[i]);
    for (int i = 0; i < 8; i += 2) /* those of one of the fibres */
        children[i].release = 1;
    for (int i = 0; i < 8; i += 2)
        strand_join(strands[i]);
    while (ask(group, 0).strands + ask(group, 1).strands != 4)
        strand_yield();
    for (int i = 0; i < 4; i++)
        test_spawn_on_fibre(scope, group, test_child_waits, &children[2 * i + 1]);
    CHECK_EQ(ask(group, 0).strands, 4);
    CHECK_EQ(ask(group, 1).strands, 4);
    for (int i = 0; i < 8; i++)
        children[i].release = 1;
    strand_scope_join(scope);
}

enum { MANY_FIBRES = 100, FULL = 10 };

static struct test_child lodgers[MANY_FIBRES][FULL];
static strand lodger_of[MANY_FIBRES][FULL];

/* All strands of some fibres end. */
static void end_those_of(strand_fibre group, int first, int last)
{
    for (int i = first; i <= last; i++)
        for (int at = 0; at < FULL; at++)
            lodgers[i][at].release = 1;
    for (int i = first; i <= last; i++)
        for (int at = 0; at < FULL; at++)
            strand_join(lodger_of[i][at]);
    for (int i = first; i <= last; i++)
        while (ask(group, i).strands) /* the last may be leaving its stack still */
            strand_yield();
}

/* So many strands, in a group that is full but for some fibres: where do they go? */
static void fill_those_that_are_empty(int first, int last)
{
    static struct test_child more[MANY_FIBRES * FULL];
    int room = (last - first + 1) * FULL, wrong = 0;
    memset(lodgers, 0, sizeof lodgers);
    memset(more, 0, sizeof more);
    STRAND_SCOPE(scope);
    strand_fibre group = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = MANY_FIBRES));
    for (int at = 0; at < FULL; at++)
        for (int i = 0; i < MANY_FIBRES; i++)
            lodger_of[i][at] = test_spawn_on_fibre(scope, group, test_child_waits, &lodgers[i][at]);
    for (int i = 0; i < MANY_FIBRES; i++)
        CHECK_EQ(ask(group, i).strands, FULL);
    end_those_of(group, first, last);
    for (int i = 0; i < room / 2; i++)
        test_spawn_on_fibre(scope, group, test_child_waits, &more[i]);
    for (int i = 0; i < MANY_FIBRES; i++)
        if (i < first || i > last)
            wrong += (int)ask(group, i).strands - FULL;
    CHECK(wrong <= room / 100 + 8); /* until an empty one has been seen */
    for (int i = first; i <= last; i++)
        CHECK(ask(group, i).strands <= FULL);
    for (int i = 0; i < MANY_FIBRES * FULL; i++)
        more[i].release = lodgers[i / FULL][i % FULL].release = 1;
    strand_scope_join(scope);
}

TEST_INSIDE(a_large_group_that_has_become_uneven_is_evened_out)
{
    fill_those_that_are_empty(50, 99);
    fill_those_that_are_empty(20, 29);
}

/* ---- figures --------------------------------------------------------------------------------------------- */

/* V-13 */
TEST_INSIDE(a_fibre_with_more_than_one_strand_is_overloaded)
{
    static struct test_child first, second;
    first = second = (struct test_child){0};
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    CHECK_EQ(ask(fibre, 0).strands, 0);
    CHECK_EQ(ask(fibre, 0).active, 0);
    test_spawn_on_fibre(scope, fibre, test_child_waits, &first);
    CHECK_EQ(ask(fibre, 0).strands, 1);
    CHECK(!ask(fibre, 0).overloaded);
    test_spawn_on_fibre(scope, fibre, test_child_waits, &second);
    CHECK_EQ(ask(fibre, 0).strands, 2);
    CHECK(ask(fibre, 0).overloaded);
    first.release = second.release = 1;
    strand_scope_join(scope);
}

static void *ask_for_me(void *arg)
{
    CHECK_EQ(ask(shared, 0).active, strand_id(strand_self()));
    strand_yield();
    CHECK_EQ(ask(shared, 0).active, strand_id(strand_self()));
    return arg;
}

/* V-12 */
TEST_INSIDE(the_active_strand_is_the_one_that_runs)
{
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, NULL);
    for (int i = 0; i < 4; i++)
        test_spawn_on_fibre(scope, shared, ask_for_me, NULL);
    strand_scope_join(scope);
}

/* Unless all are copied out wherever they suspend: then the stack is nobody's. */
/* Its thread may not have left the stack yet. */
static void await_nobody(strand_fibre fibre)
{
    while (ask(fibre, 0).active)
        strand_sleep(STRAND_MS);
}

TEST_INSIDE(a_suspended_strand_stays_active_while_its_frames_lie_in_the_stack)
{
    const char *stacks = getenv("STRAND_STACKS");
    static struct test_child sleeper;
    sleeper = (struct test_child){0};
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand child = test_spawn_on_fibre(scope, fibre, test_child_blocks, &sleeper);
    test_yield_until(&sleeper.started, 1);
    strand_sleep(10 * STRAND_MS);
    if (stacks)
        await_nobody(fibre);
    else
        CHECK_EQ(ask(fibre, 0).active, strand_id(child));
    strand_scope_cancel(scope, NULL);
    strand_wait(child);
    await_nobody(fibre);
}

static NOINLINE void use_bytes_and_ask(void)
{
    char room[100 * 1024];
    __asm__ volatile("" : : "r"(room) : "memory");
    size_t before = ask(shared, 0).stack_used;
    __asm__ volatile("" : : "r"(room) : "memory");
    CHECK(before >= sizeof room && before <= sizeof room + 16 * KIB);
    CHECK(ask(shared, 0).stack_peak >= before);
}

static NOINLINE void touch_bytes(size_t bytes)
{
    volatile char *room = __builtin_alloca(bytes);
    for (size_t i = 0; i < bytes; i += 1024)
        room[i] = 1;
}

static void *uses_and_asks(void *arg)
{
    size_t shallow = ask(shared, 0).stack_used;
    CHECK(shallow > 0 && shallow < 16 * KIB);
    use_bytes_and_ask();
    touch_bytes(300 * KIB); /* and does not suspend there */
    CHECK(ask(shared, 0).stack_used < shallow + 16 * KIB);
    return arg;
}

TEST_REAL_INSIDE(a_fibre_reports_how_much_of_its_stack_is_in_use_and_was_at_most)
{
    STRAND_SCOPE(scope);
    strand_fibre one = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 1024 * KIB));
    shared = one;
    CHECK(ask(one, 0).stack_peak < 32 * KIB);
    strand_join(test_spawn_on_fibre(scope, one, uses_and_asks, NULL));
    strand_sleep(STRAND_MS); /* its thread has left the stack */
    CHECK(ask(one, 0).stack_used < 4 * KIB);
    size_t most = ask(one, 0).stack_peak;
    CHECK(most >= 300 * KIB && most < 350 * KIB);
    CHECK(ask(one, 0).stack_deepest < 100 * KIB); /* that counts suspensions only */
    strand_fibre_trim(one);
    CHECK(ask(one, 0).stack_resident < 32 * KIB);
    CHECK(ask(one, 0).stack_peak >= most);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = one, .wipe = true), uses_and_asks, NULL, 0));
    CHECK(ask(one, 0).stack_peak >= most);
}

/* A stack that deep strands have left tells nothing of the fibre that gets it next. */
TEST_REAL_INSIDE(the_most_that_a_fibre_has_used_is_its_own)
{
    for (int i = 0; i < 20; i++) {
        STRAND_SCOPE(scope);
        strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 1024 * KIB));
        CHECK(ask(fibre, 0).stack_peak < 32 * KIB);
        shared = fibre;
        strand_join(test_spawn_on_fibre(scope, fibre, uses_and_asks, NULL));
    }
}

static void *yield_often(void *arg)
{
    for (int i = 0; i < 50; i++)
        strand_yield();
    for (int i = 0; i < 5; i++)
        strand_sleep(STRAND_US);
    return arg;
}

/* Unless all are copied wherever they suspend. */
/* V-15, contract 3.3 */
TEST_INSIDE(a_strand_that_is_resumed_next_after_itself_copies_nothing)
{
    if (getenv("STRAND_STACKS"))
        return;
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    static struct test_child sleeper;
    sleeper = (struct test_child){0};
    test_spawn_on_fibre(scope, fibre, test_child_blocks, &sleeper);
    test_yield_until(&sleeper.started, 1);
    strand_join(test_spawn_on_fibre(scope, fibre, test_return, NULL));
    uint64_t copies = ask(fibre, 0).copies;
    strand_join(test_spawn_on_fibre(scope, fibre, yield_often, NULL));
    CHECK(ask(fibre, 0).copies <= copies + 1); /* the sleeper's, once more at most */
    strand_scope_cancel(scope, NULL);
}
TEST_OWN_STACKS(a_strand_that_is_resumed_next_after_itself_copies_nothing, "every suspension copies");

/* V-12, V-16 */
TEST_INSIDE(strands_in_turn_are_copied_and_nothing_is_left_of_that)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    stop = parked = 0;
    for (int i = 0; i < 10; i++)
        test_spawn_on_fibre(scope, fibre, park, &parked);
    test_yield_until(&parked, 10);
    CHECK(ask(fibre, 0).copies >= 9);
    CHECK(ask(fibre, 0).saved_bytes >= 9 * WORDS * sizeof(uint64_t));
    stop = 1;
    strand_scope_join(scope);
    while (ask(fibre, 0).strands)
        strand_yield();
    CHECK_EQ(ask(fibre, 0).saved_bytes, 0);
}

TEST_INSIDE(the_struct_of_the_figures_may_be_an_older_one)
{
    strand_fibre_info info;
    memset(&info, 0x5a, sizeof info);
    info.size = offsetof(strand_fibre_info, active);
    STRAND_SCOPE(scope);
    strand_fibre_info_get(strand_fibre_open(scope, NULL), 0, &info);
    CHECK_EQ(info.strands, 0);
    CHECK(!info.overloaded);
    CHECK_EQ(info.active, 0x5a5a5a5a5a5a5a5a);
}

TEST_INSIDE(a_fibre_has_a_stack_of_the_requested_size)
{
    STRAND_SCOPE(scope);
    CHECK_EQ(ask(strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 200 * KIB)), 0).stack_size, 256 * KIB);
    CHECK_EQ(ask(strand_fibre_open(scope, NULL), 0).stack_size, 64 * KIB);
}

/* ---- going deep ------------------------------------------------------------------------------------------ */

static void *go_deep(void *frames)
{
    dive((int)(intptr_t)frames, 77);
    return frames;
}

static NOINLINE void *touch_much(void *arg)
{
    volatile char much[600 * 1024];
    for (size_t i = 0; i < sizeof much; i += 512)
        much[i] = 1;
    return arg;
}

/* V-16, V-17 */
TEST_INSIDE(any_one_of_many_shallow_strands_may_go_deep)
{
    int many = (int)test_scale(300) + 5;
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 256 * KIB));
    stop = parked = 0;
    for (int i = 0; i < many; i++)
        test_spawn_on_fibre(scope, fibre, park, &parked);
    test_yield_until(&parked, many);
    strand_join(test_spawn_on_fibre(scope, fibre, go_deep, TEST_PTR(200)));
    CHECK(ask(fibre, 0).stack_deepest >= 200 * WORDS * sizeof(uint64_t));
    CHECK(ask(fibre, 0).stack_resident >= 200 * WORDS * sizeof(uint64_t));
    stop = 1;
    strand_scope_join(scope);
}

static void *wait_shallow(void *arg)
{
    ++parked;
    strand_event_wait(&turn_of[0]);
    return arg;
}

/* V-16, V-17 */
TEST_REAL_INSIDE(a_hundred_thousand_strands_wait_on_eight_fibres_while_some_go_deep)
{
    enum { FIBRES = 8 };
    int many = (int)test_scale(100000);
    STRAND_SCOPE(scope);
    strand_fibre group = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 256 * KIB, .count = FIBRES));
    parked = 0;
    for (int i = 0; i < many; i++)
        test_spawn_on_fibre(scope, group, wait_shallow, NULL);
    test_yield_until(&parked, many);
    size_t before = 0;
    for (int same = 0; same < 20; same++) { /* some have not come to their wait yet */
        strand_sleep(STRAND_MS);
        if (ask(group, 0).saved_bytes != before)
            same = 0;
        before = ask(group, 0).saved_bytes;
    }
    CHECK(before < (size_t)many / FIBRES * 4 * KIB); /* with a sanitizer's red zones */
    for (int i = 0; i < 2 * FIBRES; i++)
        strand_join(test_spawn_on_fibre(scope, group, go_deep, TEST_PTR(200)));
    CHECK(ask(group, 0).saved_bytes < before + 4 * KIB);
    strand_event_set(&turn_of[0]);
    strand_scope_join(scope);
}

static NOINLINE void yield_at(size_t depth)
{
    volatile char *frame = __builtin_alloca(depth);
    for (size_t i = 0; i < depth; i += 512)
        frame[i] = (char)(depth + i);
    strand_yield();
    for (size_t i = 0; i < depth; i += 512)
        CHECK_EQ(frame[i], (char)(depth + i));
}

static void *suspend_now_deep_now_shallow(void *times)
{
    for (intptr_t i = 0; i < (intptr_t)times; i++)
        yield_at((i % 2 ? 8 : 20) * KIB);
    return NULL;
}

/* Saved stacks that are mapped again have a page fault for each page. */
TEST_REAL_INSIDE(strands_whose_depth_varies_need_no_new_memory_at_each_switch)
{
    enum { TURNS = 1000, MANY = 8 };
    struct rusage before, after;
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 256 * KIB));
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < MANY; i++)
        test_spawn_on_fibre(scope, fibre, suspend_now_deep_now_shallow, (void *)(intptr_t)TURNS);
    strand_scope_join(scope);
    getrusage(RUSAGE_SELF, &after);
    CHECK(ask(fibre, 0).copies > TURNS * MANY / 2);
    if (!TEST_TSAN && !test_under_valgrind()) /* these have page faults of their own */
        CHECK(after.ru_minflt - before.ru_minflt < TURNS * MANY / 2);
}

/* V-16 */
TEST_REAL_INSIDE(trimming_gives_back_what_a_deep_strand_has_used)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 1024 * KIB));
    stop = parked = 0;
    for (int i = 0; i < 20; i++)
        test_spawn_on_fibre(scope, fibre, park, &parked);
    test_yield_until(&parked, 20);
    size_t shallow = ask(fibre, 0).stack_resident;
    strand_join(test_spawn_on_fibre(scope, fibre, touch_much, NULL));
    CHECK(ask(fibre, 0).stack_resident >= 600 * KIB);
    strand_fibre_trim(fibre);
    while (ask(fibre, 0).stack_resident > shallow + 16 * KIB)
        strand_sleep(100 * STRAND_US); /* in use, it is trimmed when its strand suspends */
    stop = 1;
    strand_scope_join(scope); /* all have found their frames as they were */
}

static NOINLINE void *wait_with_much(void *arg)
{
    volatile char much[3 * KIB];
    much[0] = much[sizeof much - 1] = 1;
    parked++;
    strand_event_wait(&turn_of[0]);
    return much[0] ? arg : NULL;
}

/* What is not in use any more, but not given back, is what trimming any fibre finds. */
TEST_REAL_INSIDE(little_of_the_saved_stacks_stays_when_their_fibres_are_closed)
{
    enum { MANY = 4000 };
    STRAND_SCOPE(all);
    strand_fibre other = strand_fibre_open(all, NULL);
    parked = 0;
    {
        STRAND_SCOPE(scope);
        strand_fibre fibres = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 2));
        for (int i = 0; i < MANY; i++)
            test_spawn_on_fibre(scope, fibres, wait_with_much, NULL);
        test_yield_until(&parked, MANY);
        strand_event_set(&turn_of[0]);
        strand_scope_join(scope);
    }
    CHECK(strand_fibre_trim(other) <= 2 * KIB * KIB);
}

static NOINLINE void *wait_at_a_depth(void *bytes)
{
    volatile char *frame = __builtin_alloca((size_t)bytes);
    frame[0] = 1;
    parked++;
    strand_event_wait(&turn_of[0]);
    return frame[0] ? bytes : NULL;
}

static void *trim_and_sleep(void *arg)
{
    strand_fibre_trim(shared);
    strand_sleep(STRAND_MS);
    return arg;
}

/* A fibre keeps an empty chunk for saved stacks of each size. The wish of a strand that runs on it is granted when that
 * suspends, and leaves next to nothing to be done. */
TEST_REAL_INSIDE(a_trim_that_was_put_off_gives_saved_stacks_back_too)
{
    enum { MANY = 40 };
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, NULL);
    parked = 0;
    for (int i = 0; i < MANY; i++)
        test_spawn_on_fibre(scope, shared, wait_at_a_depth, TEST_PTR(16 + 80 * i));
    test_yield_until(&parked, MANY);
    strand_event_set(&turn_of[0]);
    strand_scope_join(scope);
    strand_join(test_spawn_on_fibre(scope, shared, trim_and_sleep, NULL));
    CHECK(strand_fibre_trim(shared) <= 256 * KIB);
}

static void *use_much_and_trim(void *arg)
{
    size_t before = ask(shared, 0).stack_resident;
    touch_much(NULL);
    CHECK(ask(shared, 0).stack_resident >= 600 * KIB);
    strand_fibre_trim(shared); /* it is in use: when this strand suspends */
    strand_sleep(STRAND_MS);
    CHECK(ask(shared, 0).stack_resident <= before + 16 * KIB);
    return arg;
}

/* contract 3.4 */
TEST_REAL_INSIDE(a_strand_has_the_fibre_trimmed_that_it_runs_on)
{
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 1024 * KIB));
    strand_join(test_spawn_on_fibre(scope, shared, use_much_and_trim, NULL));
}

static void *trim_it_often(void *arg)
{
    for (long i = test_scale(200); i > 0; i--) {
        strand_fibre_trim(shared);
        strand_yield();
    }
    return arg;
}

/* contract 3.4 */
TEST_RACE(a_fibre_may_be_trimmed_at_any_time)
{
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 2));
    for (uintptr_t i = 1; i < 9; i++)
        test_spawn_on_fibre(scope, shared, dive_often, (void *)i);
    strand_spawn(scope, trim_it_often, NULL);
    strand_spawn(scope, trim_it_often, NULL);
    test_spawn_on_fibre(scope, shared, trim_it_often, NULL);
    strand_scope_join(scope);
}

/* ---- exceptions ------------------------------------------------------------------------------------------ */

static void yield_and_check(volatile uint64_t (*words)[WORDS])
{
    strand_yield();
    look(*words, (*words)[0] / 1000003);
    strand_sleep(STRAND_US);
    ++inside;
}

static NOINLINE void throw_below(int depth, uint64_t salt)
{
    volatile uint64_t mine[WORDS] __attribute__((cleanup(yield_and_check)));
    fill(mine, salt + (uint64_t)depth);
    strand_yield();
    if (!depth)
        strand_throw(&TEST_ERROR, "%d", (int)salt);
    if (mine[0])
        throw_below(depth - 1, salt);
}

static void *throw_from_below(void *salt)
{
    throw_below(8, (uint64_t)(uintptr_t)salt);
    return NULL;
}

static void *throw_and_catch(void *arg)
{
    volatile uint64_t mine[WORDS];
    char text[16];
    fill(mine, 4);
    snprintf(text, sizeof text, "%d", (int)(uintptr_t)arg);
    for (int i = 0; i < 3; i++) {
        STRAND_TRY {
            STRAND_TRY {
                throw_from_below(arg);
            }
            STRAND_CATCH(&TEST_ERROR, e) {
                strand_yield();
                strand_rethrow(strand_exception_keep(e));
            }
            STRAND_END
            CHECK_FAIL("it was not thrown again");
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            strand_yield();
            CHECK_STR(strand_exception_text(e), text);
            look(mine, 4);
        }
        STRAND_END
        strand_exception *e = strand_try(throw_from_below, arg, NULL);
        strand_yield();
        CHECK_STR(strand_exception_text(e), text);
        strand_exception_release(e);
    }
    look(mine, 4);
    return throw_from_below(arg);
}

TEST_INSIDE(exceptions_of_strands_on_one_stack_unwind_each_its_own_frames)
{
    enum { STRANDS = 6 };
    strand strands[STRANDS];
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    inside = 0;
    for (uintptr_t i = 0; i < STRANDS; i++)
        strands[i] = test_spawn_on_fibre(scope, fibre, throw_and_catch, (void *)(i + 10));
    for (int i = 0; i < STRANDS; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i + 10);
        STRAND_TRY {
            strand_join(strands[i]);
            CHECK_FAIL("it has not failed");
        }
        STRAND_CATCH(&TEST_ERROR, e) {
            CHECK_STR(strand_exception_text(e), text);
        }
        STRAND_END
    }
    CHECK_EQ(inside, STRANDS * 7 * 9);
}

static void *fail_late(void *arg)
{
    strand_sleep(STRAND_US);
    return test_throw(arg);
}

TEST_INSIDE(the_first_failure_on_a_fibre_cancels_the_others_together)
{
    static struct test_child children[4];
    memset(children, 0, sizeof children);
    STRAND_TRY {
        STRAND_SCOPE_WITH(scope, STRAND_TOGETHER);
        strand_fibre fibre = strand_fibre_open(scope, NULL);
        for (int i = 0; i < 4; i++)
            test_spawn_on_fibre(scope, fibre, test_child_blocks, &children[i]);
        test_spawn_on_fibre(scope, fibre, fail_late, "first");
        strand_scope_join(scope);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    CHECK_LOG("first");
    for (int i = 0; i < 4; i++)
        CHECK_EQ(children[i].ended, children[i].started);
}

static void *wait_to_be_cancelled(void *child)
{
    volatile uint64_t mine[WORDS];
    fill(mine, 5);
    strand_exception *e = strand_try(test_child_blocks, child, NULL);
    look(mine, 5);
    CHECK_KIND(e, &STRAND_INTERRUPTED);
    strand_rethrow(e);
}

static void *cancel_from_the_same_stack(void *arg)
{
    volatile uint64_t mine[WORDS];
    struct test_child *child = arg;
    fill(mine, 6);
    STRAND_SCOPE(scope);
    strand other = test_spawn_on_fibre(scope, shared, wait_to_be_cancelled, child);
    test_yield_until(&child->started, 1);
    strand_cancel(other, "enough");
    CHECK(test_join_interrupted(other));
    CHECK_EQ(child->ended, 1);
    look(mine, 6);
    return arg;
}

TEST_INSIDE(a_strand_cancels_another_that_lives_on_the_same_stack)
{
    static struct test_child child;
    child = (struct test_child){0};
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, NULL);
    strand_join(test_spawn_on_fibre(scope, shared, cancel_from_the_same_stack, &child));
}

TEST_INSIDE(a_strand_that_is_cancelled_before_it_starts_runs_to_its_first_operation)
{
    static struct test_child child;
    child = (struct test_child){0};
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand_cancel(test_spawn_on_fibre(scope, fibre, test_child_blocks, &child), NULL);
    strand early = test_spawn_on_fibre(scope, fibre, test_return, TEST_PTR(1));
    strand_cancel(early, NULL);
    CHECK_PTR(strand_join(early), TEST_PTR(1));
    strand_scope_join(scope);
    CHECK_EQ(child.started, 1);
    CHECK_EQ(child.ended, 1);
}

/* ---- memory that is refused ------------------------------------------------------------------------------ */

static void *live_on_two_fibres(void *arg)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 2));
    for (uintptr_t i = 0; i < 12; i++)
        test_spawn_on_fibre(scope, fibre, go_deep, (void *)(i * 5));
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(memory_that_is_refused_is_an_exception_of_the_opener_the_spawner_or_the_strand)
{
    int refusals = 0, seeds = (int)test_scale(300) + 10;
    strand_sim sim = {.size = sizeof sim, .memory = 24};
    for (int seed = 1; seed <= seeds; seed++) {
        strand_exception *e = NULL;
        strand_options options = test_options();
        options.has_seed = true;
        options.seed = (uint64_t)seed;
        options.uncaught = &e;
        options.sim = &sim;
        strand_run(&options, live_on_two_fibres, NULL);
        refusals += e != NULL;
        if (e)
            CHECK(test_count_kind(e, &STRAND_SYSTEM) > 0);
        strand_exception_release(e);
    }
    CHECK(refusals > 0 && refusals < seeds);
}

/* ---- what is handed over --------------------------------------------------------------------------------- */

static int outside;

static void *look_where(void *arg)
{
    char local = 0;
    char *heap = malloc(1);
    CHECK(strand_on_shared_stack(&local));
    CHECK(strand_on_shared_stack(__builtin_frame_address(0)));
    CHECK(!strand_on_shared_stack(heap));
    CHECK(!strand_on_shared_stack(&outside));
    CHECK(!strand_on_shared_stack(NULL));
    CHECK(!strand_on_shared_stack(arg));
    free(heap);
    return arg;
}

TEST_INSIDE(a_strand_can_check_what_lies_on_a_shared_stack)
{
    char local = 0;
    STRAND_SCOPE(scope);
    CHECK(!strand_on_shared_stack(&local));
    strand_join(test_spawn_on_fibre(scope, strand_fibre_open(scope, NULL), look_where, &local));
}

TEST_REAL(a_plain_thread_has_no_shared_stack)
{
    char local = 0;
    CHECK(!strand_on_shared_stack(&local));
}

static void *sum(void *numbers)
{
    return TEST_PTR(((long *)numbers)[0] + ((long *)numbers)[1]);
}

static void *hand_over_copies(void *arg)
{
    long numbers[2] = {20, 22};
    STRAND_SCOPE(scope);
    strand own = strand_spawn_with(scope, NULL, sum, numbers, sizeof numbers);
    strand guest = strand_spawn_with(scope, STRAND_ATTR(.fibre = shared), sum, numbers, sizeof numbers);
    numbers[0] = numbers[1] = 0;
    CHECK_PTR(strand_join(own), TEST_PTR(42));
    CHECK_PTR(strand_join(guest), TEST_PTR(42));
    return arg;
}

/* V-18 */
TEST_INSIDE(arguments_that_are_copied_may_come_from_a_shared_stack)
{
    STRAND_SCOPE(scope);
    shared = strand_fibre_open(scope, NULL);
    strand_join(test_spawn_on_fibre(scope, shared, hand_over_copies, NULL));
}

static void *counts_up(void *arg)
{
    ++*(int *)arg;
    return arg;
}

TEST_INSIDE(strands_that_never_wait_follow_each_other_on_the_stack)
{
    static int count;
    enum { MANY = 50 };
    strand all[MANY];
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    count = 0;
    for (int i = 0; i < MANY; i++)
        all[i] = test_spawn_on_fibre(scope, fibre, counts_up, &count);
    strand_sleep(10 * STRAND_MS); /* nobody waits for them, and nobody else is there */
    for (int i = 0; i < MANY; i++)
        CHECK_PTR(strand_join(all[i]), &count);
    CHECK_EQ(count, MANY);
}
