/*
 * Strand-local values: a value is bound to a key for a block, and for the strands that are spawned in it.
 */
#define SUITE local
#include "test.h"

static const strand_key USER = STRAND_KEY("user");
static const strand_key TRACE = STRAND_KEY("trace");

#define USER_IS(n) CHECK_PTR(strand_local(&USER), TEST_PTR(n))

/* ---- in one strand --------------------------------------------------------------------------- */

TEST_INSIDE(a_key_that_is_bound_nowhere_has_no_value)
{
    USER_IS(0);
}

TEST_INSIDE(a_value_is_bound_for_the_rest_of_the_block)
{
    {
        STRAND_LOCAL(&USER, TEST_PTR(1));
        USER_IS(1);
    }
    USER_IS(0);
}

TEST_INSIDE(the_innermost_value_counts_and_the_outer_one_is_back_after_its_block)
{
    STRAND_LOCAL(&USER, TEST_PTR(1));
    {
        STRAND_LOCAL(&USER, TEST_PTR(2));
        {
            STRAND_LOCAL(&USER, TEST_PTR(3));
            USER_IS(3);
        }
        USER_IS(2);
    }
    USER_IS(1);
}

TEST_INSIDE(two_values_in_one_block_make_the_second_count)
{
    {
        STRAND_LOCAL(&USER, TEST_PTR(1));
        STRAND_LOCAL(&USER, TEST_PTR(2));
        USER_IS(2);
    }
    USER_IS(0);
}

TEST_INSIDE(a_null_value_hides_the_outer_one)
{
    STRAND_LOCAL(&USER, TEST_PTR(1));
    {
        STRAND_LOCAL(&USER, NULL);
        USER_IS(0);
    }
    USER_IS(1);
}

TEST_INSIDE(keys_do_not_disturb_each_other)
{
    STRAND_LOCAL(&USER, TEST_PTR(1));
    {
        STRAND_LOCAL(&TRACE, TEST_PTR(2));
        USER_IS(1);
        CHECK_PTR(strand_local(&TRACE), TEST_PTR(2));
    }
    CHECK_PTR(strand_local(&TRACE), NULL);
    USER_IS(1);
}

TEST_INSIDE(two_keys_of_the_same_name_are_two_keys)
{
    static const strand_key same = STRAND_KEY("user");
    STRAND_LOCAL(&USER, TEST_PTR(1));
    CHECK_PTR(strand_local(&same), NULL);
}

static int read_below(int frames)
{
    return frames == 0 ? (int)(intptr_t)strand_local(&USER) : read_below(frames - 1);
}

TEST_INSIDE(functions_that_are_called_in_the_block_see_the_value)
{
    STRAND_LOCAL(&USER, TEST_PTR(5));
    CHECK_EQ(read_below(20), 5);
}

static void *bind_and_throw(void *n)
{
    STRAND_LOCAL(&USER, n);
    if ((intptr_t)n < 5)
        bind_and_throw(TEST_PTR((intptr_t)n + 1));
    USER_IS(5);
    test_throw(NULL);
    return NULL;
}

TEST_INSIDE(an_exception_that_leaves_the_blocks_restores_the_value)
{
    STRAND_LOCAL(&USER, TEST_PTR(9));
    strand_exception *e = strand_try(bind_and_throw, TEST_PTR(1), NULL);
    CHECK_KIND(e, &TEST_ERROR);
    USER_IS(9);
    strand_exception_release(e);
}

static int return_out_of_block(void)
{
    STRAND_LOCAL(&USER, TEST_PTR(3));
    return (int)(intptr_t)strand_local(&USER);
}

TEST_INSIDE(a_return_restores_the_value)
{
    CHECK_EQ(return_out_of_block(), 3);
    USER_IS(0);
}

TEST_INSIDE(a_loop_binds_and_restores_at_every_turn)
{
    for (intptr_t i = 1; i <= 1000; i++) {
        USER_IS(0);
        STRAND_LOCAL(&USER, TEST_PTR(i));
        USER_IS(i);
        if (i % 2)
            continue;
    }
    USER_IS(0);
}

TEST_INSIDE(many_keys_can_be_bound)
{
    static const strand_key keys[50] = {STRAND_KEY("many")};
    STRAND_LOCAL(&keys[0], TEST_PTR(1));
    STRAND_LOCAL(&keys[49], TEST_PTR(50));
    for (int i = 1; i < 49; i++) {
        STRAND_LOCAL(&keys[i], TEST_PTR(i + 1));
        CHECK_PTR(strand_local(&keys[i]), TEST_PTR(i + 1));
        CHECK_PTR(strand_local(&keys[0]), TEST_PTR(1));
    }
    CHECK_PTR(strand_local(&keys[25]), NULL);
    CHECK_PTR(strand_local(&keys[49]), TEST_PTR(50));
}

/* ---- inherited by children ------------------------------------------------------------------- */

static void *read_user(void *unused)
{
    (void)unused;
    return strand_local(&USER);
}

/* contract 5.7 */
TEST_INSIDE(a_child_inherits_the_value)
{
    STRAND_SCOPE(s);
    STRAND_LOCAL(&USER, TEST_PTR(1));
    CHECK_PTR(strand_join(strand_spawn(s, read_user, NULL)), TEST_PTR(1));
}

/* contract 5.7 */
TEST_INSIDE(a_child_inherits_what_counts_at_the_time_of_its_spawn)
{
    strand early, inner, late;
    STRAND_SCOPE(s);
    early = strand_spawn(s, read_user, NULL);
    {
        STRAND_LOCAL(&USER, TEST_PTR(1));
        inner = strand_spawn(s, read_user, NULL);
    }
    STRAND_LOCAL(&USER, TEST_PTR(2));
    late = strand_spawn(s, read_user, NULL);
    CHECK_PTR(strand_join(early), NULL);
    CHECK_PTR(strand_join(inner), TEST_PTR(1));
    CHECK_PTR(strand_join(late), TEST_PTR(2));
}

static void *read_when_released(void *arg)
{
    struct test_child *child = arg;
    atomic_store(&child->started, 1);
    test_yield_until(&child->release, 1);
    return strand_local(&USER);
}

TEST_INSIDE(a_child_keeps_the_value_when_its_spawner_has_left_the_block)
{
    struct test_child child = {0};
    strand handle;
    STRAND_SCOPE(s);
    {
        STRAND_LOCAL(&USER, TEST_PTR(4));
        handle = test_spawn_started(s, read_when_released, &child);
    }
    STRAND_LOCAL(&USER, TEST_PTR(5));
    child.release = 1;
    CHECK_PTR(strand_join(handle), TEST_PTR(4));
}

static void *bind_own(void *unused)
{
    USER_IS(1);
    STRAND_LOCAL(&USER, TEST_PTR(2));
    strand_yield();
    USER_IS(2);
    return unused;
}

TEST_INSIDE(a_parent_does_not_see_a_binding_of_its_child)
{
    STRAND_SCOPE(s);
    STRAND_LOCAL(&USER, TEST_PTR(1));
    strand child = strand_spawn(s, bind_own, NULL);
    for (int i = 0; i < 5; i++) {
        strand_yield();
        USER_IS(1);
    }
    strand_join(child);
    USER_IS(1);
}

static void *read_in_grandchild(void *depth)
{
    STRAND_SCOPE(s);
    if (depth == NULL)
        return strand_local(&USER);
    return strand_join(strand_spawn(s, read_in_grandchild, TEST_PTR((intptr_t)depth - 1)));
}

/* contract 5.7 */
TEST_INSIDE(a_value_is_inherited_through_generations)
{
    STRAND_LOCAL(&USER, TEST_PTR(7));
    CHECK_PTR(read_in_grandchild(TEST_PTR(10)), TEST_PTR(7));
}

struct open {
    strand_scope scope;
    strand spawned;
};

static void *bind_and_spawn_into(void *arg)
{
    struct open *open = arg;
    STRAND_LOCAL(&USER, TEST_PTR(2));
    open->spawned = strand_spawn(open->scope, read_user, NULL);
    return NULL;
}

/* Cancellation comes from the scope, the inherited context from the spawner. */
/* contract 4.4 */
TEST_INSIDE(a_strand_in_an_open_scope_inherits_from_its_spawner_and_not_from_the_owner)
{
    STRAND_SCOPE_OPEN(s);
    struct open open = {.scope = s};
    STRAND_LOCAL(&USER, TEST_PTR(1));
    strand_join(strand_spawn(s, bind_and_spawn_into, &open));
    CHECK_PTR(strand_join(open.spawned), TEST_PTR(2));
}

static void *bind_and_hand_off(void *arg)
{
    struct open *open = arg;
    STRAND_SCOPE(s);
    STRAND_LOCAL(&USER, TEST_PTR(3));
    open->spawned = strand_spawn(s, read_user, NULL);
    CHECK_EQ(strand_hand_off(open->spawned, open->scope), 0);
    return NULL;
}

/* contract 4.4 */
TEST_INSIDE(a_hand_off_does_not_change_what_a_strand_has_inherited)
{
    STRAND_SCOPE_OPEN(s);
    struct open open = {.scope = s};
    strand_join(strand_spawn(s, bind_and_hand_off, &open));
    CHECK_PTR(strand_join(open.spawned), TEST_PTR(3));
}

static void *check_own_value(void *n)
{
    STRAND_LOCAL(&USER, n);
    for (int i = 0; i < 20; i++) {
        strand_yield();
        CHECK_PTR(strand_local(&USER), n);
    }
    return NULL;
}

/* Values that were kept per thread would be mixed up by the switches. */
/* contract 3.6 */
TEST_RACE(each_strand_has_its_own_value_on_whatever_thread_it_runs)
{
    for (long round = 0; round < test_scale(50); round++) {
        STRAND_SCOPE(s);
        for (int n = 1; n <= 50; n++)
            strand_spawn(s, check_own_value, TEST_PTR(n));
        strand_scope_join(s);
    }
}

static void *compare_inherited(void *n)
{
    CHECK_PTR(strand_local(&USER), n);
    strand_yield();
    CHECK_PTR(strand_local(&USER), n);
    return NULL;
}

static void *bind_for_children(void *n)
{
    STRAND_SCOPE(s);
    for (intptr_t i = 0; i < 10; i++) {
        void *value = TEST_PTR(10 * (intptr_t)n + i);
        STRAND_LOCAL(&USER, value);
        strand_spawn(s, compare_inherited, value);
    }
    strand_scope_join(s);
    return NULL;
}

/* The spawner leaves its blocks while children, on other threads, still read what was bound there. */
/* contract 5.7 */
TEST_RACE(reading_an_inherited_value_races_with_the_spawners_leaving_of_the_block)
{
    for (long round = 0; round < test_scale(100); round++) {
        STRAND_SCOPE(s);
        for (int n = 1; n <= 10; n++)
            strand_spawn(s, bind_for_children, TEST_PTR(n));
        strand_scope_join(s);
    }
}
