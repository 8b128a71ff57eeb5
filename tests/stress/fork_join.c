/*
 * Fork-join on real threads: the results are right, however the work is stolen.
 */
#define SUITE stress_fork_join
#include "test.h"

static bool time_is_left(strand_time until)
{
    return strand_now().ns < until.ns;
}

/* ---- a strand per call ---------------------------------------------------------------------- */

static void *fibonacci(void *arg)
{
    uintptr_t n = (uintptr_t)arg;
    if (n < 2)
        return arg;
    STRAND_SCOPE(scope);
    strand left = strand_spawn(scope, fibonacci, (void *)(n - 1));
    uintptr_t right = (uintptr_t)fibonacci((void *)(n - 2));
    return (void *)((uintptr_t)strand_join(left) + right);
}

static void *fibonacci_for_a_while(void *arg)
{
    strand_time until = strand_in(test_scale(150) * STRAND_MS);
    while (time_is_left(until))
        CHECK_EQ((uintptr_t)fibonacci((void *)18), 2584);
    return arg;
}

/* S-49, S-61, contract 9.10 */
TEST_REAL(a_strand_per_call_computes_fibonacci_numbers)
{
    test_run(fibonacci_for_a_while, NULL);
}

/* ---- ten children per strand ---------------------------------------------------------------- */

struct branch {
    uint64_t first, size, sum;
};

static void *skynet(void *arg)
{
    struct branch *branch = arg, below[10];
    branch->sum = branch->first;
    if (branch->size == 1)
        return arg;
    branch->sum = 0;
    STRAND_SCOPE(scope);
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t size = branch->size / 10;
        below[i] = (struct branch){branch->first + i * size, size, 0};
        strand_spawn(scope, skynet, &below[i]);
    }
    strand_scope_join(scope);
    for (int i = 0; i < 10; i++)
        branch->sum += below[i].sum;
    return arg;
}

static void *skynet_for_a_while(void *arg)
{
    strand_time until = strand_in(test_scale(150) * STRAND_MS);
    while (time_is_left(until)) {
        struct branch root = {0, 1000, 0};
        skynet(&root);
        CHECK_EQ(root.sum, 499500);
    }
    return arg;
}

/* S-49 */
TEST_REAL(trees_of_ten_children_per_strand_add_up)
{
    test_run(skynet_for_a_while, NULL);
}

/* ---- joined in any order -------------------------------------------------------------------- */

#define CHILDREN 100

static void *double_slowly(void *arg)
{
    if ((uintptr_t)arg % 3 == 0)
        strand_yield();
    if ((uintptr_t)arg % 7 == 0)
        strand_sleep(STRAND_US);
    return (void *)((uintptr_t)arg * 2);
}

static void *join_backwards_for_a_while(void *arg)
{
    strand children[CHILDREN];
    strand_time until = strand_in(test_scale(150) * STRAND_MS);
    while (time_is_left(until)) {
        STRAND_SCOPE(scope);
        for (uintptr_t i = 0; i < CHILDREN; i++)
            children[i] = strand_spawn(scope, double_slowly, (void *)i);
        for (uintptr_t i = CHILDREN; i-- > 0;)
            CHECK_EQ((uintptr_t)strand_join(children[i]), i * 2);
    }
    return arg;
}

TEST_REAL(children_can_be_joined_in_the_order_opposite_to_their_spawn)
{
    test_run(join_backwards_for_a_while, NULL);
}

static void *join_scattered_for_a_while(void *arg)
{
    strand children[CHILDREN];
    strand_time until = strand_in(test_scale(150) * STRAND_MS);
    while (time_is_left(until)) {
        STRAND_SCOPE(scope);
        for (uintptr_t i = 0; i < CHILDREN; i++)
            children[i] = strand_spawn(scope, double_slowly, (void *)i);
        for (uintptr_t i = 0; i < CHILDREN; i++) {
            uintptr_t picked = i * 37 % CHILDREN;
            CHECK_EQ((uintptr_t)strand_join(children[picked]), picked * 2);
        }
    }
    return arg;
}

/* S-61 */
TEST_REAL(children_can_be_joined_in_a_scattered_order)
{
    test_run(join_scattered_for_a_while, NULL);
}

/* ---- a crowd that comes and goes ------------------------------------------------------------ */

static void *spawn_and_leave(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, double_slowly, arg);
    strand_scope_join(scope);
    return arg;
}

static void *crowd_for_a_while(void *arg)
{
    strand_time until = strand_in(test_scale(150) * STRAND_MS);
    while (time_is_left(until)) {
        STRAND_SCOPE(scope);
        for (uintptr_t i = 0; i < 50; i++)
            strand_spawn(scope, spawn_and_leave, (void *)i);
        strand_scope_join(scope);
        strand_sleep(50 * STRAND_US);
    }
    return arg;
}

/* S-53, S-54, S-60, A-14, contract 2.3 */
TEST_REAL(threads_that_fall_asleep_and_wake_lose_no_strand)
{
    test_run(crowd_for_a_while, NULL);
}
