/*
 * Arguments that outlive the scope, in a file that has strand/check.h check them: none of these is refused. Those that
 * are refused are rows of docs/misuse.md, and cases of tests/programs/mistakes.c.
 */
#define SUITE arguments
#include "test.h"

#include <stdlib.h>

#include "strand/check.h"

struct point {
    int x, y;
};

static void *sum(void *arg)
{
    const struct point *point = arg;
    strand_yield();
    return (void *)(intptr_t)(point->x + point->y);
}

static void join_sum(strand child, int expected)
{
    CHECK_EQ((int)(intptr_t)strand_join(child), expected);
}

TEST_INSIDE(variables_of_the_block_of_the_scope_can_be_passed)
{
    struct point before = {1, 2};
    STRAND_SCOPE(scope);
    struct point after = {3, 4};
    strand one = strand_spawn(scope, sum, &before);
    strand other = strand_spawn(scope, sum, &after);
    strand third = strand_spawn(scope, sum, &(struct point){5, 6});
    strand fourth = strand_spawn_with(scope, NULL, sum, &before, 0);
    join_sum(one, 3);
    join_sum(other, 7);
    join_sum(third, 11);
    join_sum(fourth, 3);
}

static NOINLINE strand spawn_here(strand_scope scope, struct point *point)
{
    return strand_spawn(scope, sum, point);
}

static NOINLINE strand spawn_here_with_a_copy(strand_scope scope)
{
    struct point here = {7, 8};
    return strand_spawn_with(scope, STRAND_ATTR(.name = "copy"), sum, &here, sizeof here);
}

TEST_INSIDE(a_called_function_can_pass_variables_of_its_caller_and_copies_of_its_own)
{
    struct point point = {1, 2};
    STRAND_SCOPE(scope);
    join_sum(spawn_here(scope, &point), 3);
    join_sum(spawn_here_with_a_copy(scope), 15);
}

static NOINLINE void spawn_in_a_scope_of_its_own(void)
{
    struct point here = {1, 2};
    STRAND_SCOPE(scope);
    join_sum(strand_spawn(scope, sum, &here), 3);
}

TEST_INSIDE(a_called_function_can_pass_its_own_variables_to_strands_of_its_own_scope)
{
    STRAND_SCOPE(scope);
    spawn_in_a_scope_of_its_own();
}

TEST_INSIDE(memory_that_is_on_no_stack_can_be_passed)
{
    static struct point unmoved = {1, 2};
    STRAND_SCOPE(scope);
    struct point *heap = malloc(sizeof *heap);
    CHECK(heap != NULL);
    *heap = (struct point){3, 4};
    join_sum(strand_spawn(scope, sum, &unmoved), 3);
    join_sum(spawn_here(scope, heap), 7);
    free(heap);
}

struct shared {
    strand_scope scope;
    struct point point;
};

static void *spawn_what_the_parent_owns(void *arg)
{
    struct shared *shared = arg;
    strand_wait(strand_spawn(shared->scope, sum, &shared->point));
    return NULL;
}

TEST_INSIDE(a_strand_can_pass_variables_of_its_parent_to_strands_of_its_parents_scope)
{
    struct shared shared = {.point = {1, 2}};
    STRAND_SCOPE_OPEN(scope);
    shared.scope = scope;
    strand_spawn(scope, spawn_what_the_parent_owns, &shared);
    strand_scope_join(scope);
}

static NOINLINE void spawn_unchecked_and_join(strand_scope scope)
{
    struct point here = {1, 2};
    join_sum((strand_spawn)(scope, sum, &here), 3);
}

TEST_INSIDE(a_spawn_in_parentheses_is_not_checked)
{
    STRAND_SCOPE(scope);
    spawn_unchecked_and_join(scope);
}
