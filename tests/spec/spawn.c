/*
 * Spawning: what a child is given, what it is, and what is refused.
 */
#define SUITE spawn
#include "test.h"

#include <errno.h>

#include "strand/pool.h"

/* ---- arguments and results ------------------------------------------------------------------- */

/* S-22, V-25 */
TEST_INSIDE(a_child_gets_its_argument_and_its_joiner_gets_its_value)
{
    STRAND_SCOPE(s);
    CHECK_PTR(strand_join(strand_spawn(s, test_return, TEST_PTR(11))), TEST_PTR(11));
}

TEST_INSIDE(an_argument_and_a_value_may_be_null)
{
    STRAND_SCOPE(s);
    CHECK_PTR(strand_join(strand_spawn(s, test_return, NULL)), NULL);
}

struct numbers {
    long before, after;
};

static void *double_it(void *arg)
{
    struct numbers *numbers = arg;
    numbers->after = 2 * numbers->before;
    return NULL;
}

/* With several threads the thread sanitizer proves both directions. */
TEST_RACE(a_child_sees_what_happened_before_its_spawn_and_its_joiner_what_it_did)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(10000); i++) {
        struct numbers numbers = {.before = i};
        strand_join(strand_spawn(s, double_it, &numbers));
        CHECK_EQ(numbers.after, 2 * i);
    }
}

static void *sum_bytes(void *arg)
{
    const unsigned char *bytes = arg;
    intptr_t sum = 0;
    for (unsigned n = bytes[0] * 10u, i = 1; i < n; i++)
        sum += bytes[i];
    return TEST_PTR(sum);
}

/* The block is overwritten before the child can have run on one thread, so a borrowed pointer shows. */
TEST_INSIDE(copied_arguments_are_those_at_the_time_of_the_spawn)
{
    STRAND_SCOPE(s);
    unsigned char bytes[2000];
    memset(bytes, 1, sizeof(bytes));
    bytes[0] = 200;
    strand child = strand_spawn_with(s, NULL, sum_bytes, bytes, sizeof(bytes));
    memset(bytes, 2, sizeof(bytes));
    bytes[0] = 200;
    CHECK_PTR(strand_join(child), TEST_PTR(1999));
}

static void *write_and_read(void *arg)
{
    long *number = arg;
    CHECK_EQ((uintptr_t)arg % _Alignof(max_align_t), 0);
    for (int i = 0; i < 10; i++) {
        *number += 1;
        strand_yield();
    }
    return TEST_PTR(*number);
}

TEST_INSIDE(each_strand_has_an_aligned_copy_of_its_own_for_as_long_as_it_lives)
{
    strand children[5];
    long number = 0;
    STRAND_SCOPE(s);
    for (int i = 0; i < 5; i++) {
        number = 100 * i;
        children[i] = strand_spawn_with(s, NULL, write_and_read, &number, sizeof(number));
    }
    for (int i = 0; i < 5; i++)
        CHECK_PTR(strand_join(children[i]), TEST_PTR(100 * i + 10));
    CHECK_EQ(number, 400);
}

TEST_INSIDE(with_size_zero_the_argument_itself_is_handed_over)
{
    int number = 0;
    STRAND_SCOPE(s);
    CHECK_PTR(strand_join(strand_spawn_with(s, NULL, test_return, &number, 0)), &number);
}

/* ---- a child of its own ---------------------------------------------------------------------- */

/* S-22, V-25 */
TEST_INSIDE(a_child_runs_while_its_parent_goes_on)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    strand handle = strand_spawn(s, test_child_waits, &child);
    test_yield_until(&child.started, 1);
    CHECK(!strand_ended(handle));
    child.release = 1;
    CHECK_PTR(strand_join(handle), &child);
}

static void *spin_until_set(void *flag)
{
    while (atomic_load((_Atomic int *)flag) == 0)
        continue;
    return NULL;
}

/* Neither of the two ever yields. */
static void *set_flag_in_parallel(void *unused)
{
    _Atomic int flag = 0;
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, spin_until_set, &flag);
    strand second = strand_spawn(s, spin_until_set, &flag);
    strand_sleep(STRAND_MS);
    atomic_store(&flag, 1);
    strand_join(child);
    strand_join(second);
    return unused;
}

/* contract 2.8 */
TEST_REAL(children_run_in_parallel_if_there_are_threads)
{
    test_run_on(3, set_flag_in_parallel, NULL);
}

static void *hand_over(void *flag)
{
    atomic_store((_Atomic int *)flag, 1);
    return NULL;
}

static void *spin_for_child(void *unused)
{
    _Atomic int flag = 0;
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, hand_over, &flag);
    spin_until_set(&flag);
    strand_join(child);
    return unused;
}

/* A child that stays in its spawner's private slot for ever is never run here. */
/* S-46, S-47, S-49, S-57, A-15, V-07, contract 2.8 */
TEST_REAL(another_thread_runs_the_child_of_a_strand_that_never_yields)
{
    test_run_on(2, spin_for_child, NULL);
}

static void *spawn_while_cancelled(void *arg)
{
    struct test_child *child = arg;
    STRAND_SCOPE(s);
    strand_cancel(strand_self(), NULL);
    strand handle = strand_spawn(s, test_child_waits, child);
    STRAND_SHIELD;
    test_yield_until(&child->started, 1);
    child->release = 1;
    return strand_join(handle);
}

/* Spawning is no cancellation point, and a cancel does not run ahead into children. */
/* contract 4.4 */
TEST_INSIDE(a_cancelled_strand_can_spawn_and_its_child_is_not_cancelled)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    CHECK_PTR(strand_join(strand_spawn(s, spawn_while_cancelled, &child)), &child);
}

/* ---- who it is ------------------------------------------------------------------------------- */

static void *own_handle(void *handle)
{
    *(strand *)handle = strand_self();
    return TEST_PTR(strand_id(strand_self()));
}

TEST_INSIDE(spawn_returns_the_handle_that_the_child_calls_self)
{
    strand self;
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, own_handle, &self);
    uint64_t id = strand_id(child);
    CHECK_PTR(strand_join(child), TEST_PTR(id));
    CHECK_EQ(memcmp(&self, &child, sizeof(self)), 0);
    CHECK(id != strand_id(strand_self()));
}

TEST_INSIDE(no_two_strands_ever_have_the_same_id)
{
    uint64_t last = strand_id(strand_self());
    STRAND_SCOPE(s);
    CHECK(last != 0);
    for (int i = 0; i < 1000; i++) {
        strand child = strand_spawn(s, test_return, NULL);
        uint64_t id = strand_id(child);
        CHECK(id != 0 && id != last && id != strand_id(strand_self()));
        strand_join(child);
        CHECK_EQ(strand_id(child), id);
        last = id;
    }
}

static void *root_id(void *unused)
{
    (void)unused;
    return TEST_PTR(strand_id(strand_self()));
}

TEST(two_runs_have_root_strands_of_different_ids)
{
    CHECK(test_run(root_id, NULL) != test_run(root_id, NULL));
}

TEST(outside_of_strands_there_is_no_self)
{
    CHECK_EQ(strand_id(strand_self()), 0);
    CHECK_EQ(strand_id((strand){{0, 0}}), 0);
}

static void *log_name(void *unused)
{
    test_log("%s", strand_name());
    return unused;
}

TEST_INSIDE(a_strand_has_the_name_of_its_attributes)
{
    char name[] = "worker";
    STRAND_SCOPE(s);
    strand child = strand_spawn_with(s, STRAND_ATTR(.name = name), log_name, NULL, 0);
    name[0] = 'x';
    strand_join(child);
    CHECK_LOG("worker");
}

TEST_INSIDE(a_strand_without_a_name_is_called_strand_and_the_root_is_called_root)
{
    STRAND_SCOPE(s);
    CHECK_STR(strand_name(), "root");
    strand_join(strand_spawn(s, log_name, NULL));
    strand_join(strand_spawn_with(s, STRAND_ATTR(.name = NULL), log_name, NULL, 0));
    CHECK_LOG("strand strand");
}

TEST_INSIDE(a_name_is_cut_to_31_bytes)
{
    STRAND_SCOPE(s);
    const strand_attr *attr = STRAND_ATTR(.name = "1234567890123456789012345678901234567890");
    strand_join(strand_spawn_with(s, attr, log_name, NULL, 0));
    CHECK_LOG("1234567890123456789012345678901");
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static NOINLINE int use_stack(int kilobytes)
{
    volatile char block[1024];
    block[0] = (char)kilobytes;
    block[1023] = 1;
    return kilobytes == 0 ? 0 : use_stack(kilobytes - 1) + block[1023];
}

static void *go_deep(void *kilobytes)
{
    return TEST_PTR(use_stack((int)(intptr_t)kilobytes));
}

TEST_INSIDE(a_strand_gets_the_stack_that_its_attributes_ask_for)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn_with(s, STRAND_ATTR(.stack_size = 4 << 20), go_deep, TEST_PTR(2048), 0);
    CHECK_PTR(strand_join(child), TEST_PTR(2048));
}

static void *spawn_deep(void *kilobytes)
{
    STRAND_SCOPE(s);
    return strand_join(strand_spawn(s, go_deep, kilobytes));
}

TEST(strands_get_the_stacks_that_the_options_ask_for)
{
    struct strand_options options = test_options();
    options.stack_size = 4 << 20;
    CHECK_PTR(strand_run(&options, spawn_deep, TEST_PTR(2048)), TEST_PTR(2048));
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void *spawn_up_to_the_limit(void *unused)
{
    struct test_child children[100] = {{0}};
    volatile int spawned = 0;
    STRAND_SCOPE(s);
    STRAND_TRY {
        for (; spawned < 100; spawned = spawned + 1)
            strand_spawn(s, test_child_blocks, &children[spawned]);
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
        CHECK(strand_exception_code(e) < 0);
        test_log("refused");
    }
    STRAND_END
    CHECK(spawned == 9 || spawned == 10); /* the root may count */
    CHECK_EQ(strand_scope_count(s), spawned);
    strand_scope_cancel(s, NULL);
    strand_scope_join(s);
    CHECK_EQ(children[spawned].started, 0);
    return unused;
}

TEST(a_spawn_that_is_refused_throws_and_starts_nothing)
{
    struct strand_options options = test_options();
    options.max_strands = 10;
    strand_run(&options, spawn_up_to_the_limit, NULL);
    CHECK_LOG("refused");
}

static void *spawn_in_turn(void *unused)
{
    STRAND_SCOPE(s);
    for (int i = 0; i < 100; i++)
        strand_join(strand_spawn(s, test_return, NULL));
    return unused;
}

TEST(only_strands_that_exist_at_a_time_count_towards_the_limit)
{
    struct strand_options options = test_options();
    options.max_strands = 10;
    strand_run(&options, spawn_in_turn, NULL);
}

/* ---- many ------------------------------------------------------------------------------------ */

static void *fibonacci(void *arg)
{
    intptr_t n = (intptr_t)arg;
    STRAND_SCOPE(s);
    if (n < 2)
        return TEST_PTR(n);
    strand child = strand_spawn(s, fibonacci, TEST_PTR(n - 1));
    intptr_t second = (intptr_t)fibonacci(TEST_PTR(n - 2));
    return TEST_PTR((intptr_t)strand_join(child) + second);
}

TEST_RACE(a_strand_for_every_call_gives_the_right_sum)
{
    for (long i = 0; i < test_scale(10); i++)
        CHECK_PTR(fibonacci(TEST_PTR(15)), TEST_PTR(610));
}

static void *spawn_a_chain(void *length)
{
    STRAND_SCOPE(s);
    if (length == NULL)
        return TEST_PTR(0);
    strand child = strand_spawn(s, spawn_a_chain, TEST_PTR((intptr_t)length - 1));
    return TEST_PTR((intptr_t)strand_join(child) + 1);
}

/* Each waits for the next one: no depth of the tree costs the stack of another strand. */
TEST_INSIDE(a_chain_of_children_may_be_long)
{
    long length = test_scale(2000);
    CHECK_PTR(spawn_a_chain(TEST_PTR(length)), TEST_PTR(length));
}

/* ---- too much ------------------------------------------------------------------------------- */

static void *spawn_with_too_many_arguments(void *arg)
{
    STRAND_SCOPE(s);
    return strand_join(strand_spawn_with(s, NULL, test_return, &arg, SIZE_MAX - 1));
}

static void *spawn_on_too_large_a_stack(void *arg)
{
    STRAND_SCOPE(s);
    return strand_join(strand_spawn_with(s, STRAND_ATTR(.stack_size = SIZE_MAX / 2), test_return, arg, 0));
}

TEST_INSIDE(what_no_memory_can_hold_is_refused_and_nothing_is_spawned)
{
    strand_fn *const ways[] = {spawn_with_too_many_arguments, spawn_on_too_large_a_stack};
    for (int i = 0; i < 2; i++) {
        strand_exception *e = strand_try(ways[i], NULL, NULL);
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), -ENOMEM);
        strand_exception_release(e);
    }
}
