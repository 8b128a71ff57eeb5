/*
 * Cancelling a strand: a lasting state that is asked for, not an end that is forced. What an interruption does inside
 * of the strand is in interruption.c; races are in cancel_race.c.
 */
#define SUITE cancel
#include "test.h"

/* ---- what a cancel does ---------------------------------------------------------------------- */

/* V-26 */
TEST_INSIDE(a_parent_cancels_a_child_and_the_child_ends)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_blocks, &blocked);
    strand_cancel(child, NULL);
    strand_wait(child);
    CHECK_EQ(blocked.ended, 1);
}

TEST_INSIDE(a_cancel_does_not_wait)
{
    struct test_child resisting = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_resists, &resisting);
    strand_cancel(child, NULL);
    CHECK(!strand_ended(child));
    resisting.release = 1;
    CHECK_PTR(strand_join(child), &resisting);
}

/* The one that is joined only afterwards has been cancelled all the same. */
/* V-33 */
TEST_INSIDE(a_cancelled_strand_does_not_end_at_once_but_when_it_next_blocks)
{
    struct test_child resisting = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_resists, &resisting);
    strand_cancel(child, NULL);
    for (int i = 0; i < 50; i++) {
        strand_yield();
        CHECK(!strand_ended(child));
    }
    resisting.release = 1;
    CHECK_PTR(strand_join(child), &resisting);
}

static void *start_then_check(void *started)
{
    atomic_store((_Atomic int *)started, 1);
    strand_checkpoint();
    CHECK_FAIL("a checkpoint has let a cancelled strand pass");
}

/* It owns its arguments, so somebody has to run it. */
/* contract 4.12 */
TEST_INSIDE(a_strand_that_is_born_cancelled_runs_to_its_first_interruptible_operation)
{
    for (int i = 0; i < 100; i++) {
        _Atomic int started = 0;
        {
            STRAND_SCOPE(s);
            strand_scope_cancel(s, NULL);
            strand child = strand_spawn(s, start_then_check, &started);
            strand_wait(child);
        }
        CHECK_EQ(started, 1);
    }
}

static void *set_and_wait(void *arg)
{
    struct test_child *child = arg;
    atomic_store(&child->started, 1);
    test_yield_until(&child->release, 1);
    return NULL;
}

/* contract 4.12 */
TEST_INSIDE(a_strand_that_is_cancelled_before_its_start_still_starts)
{
    for (int i = 0; i < 100; i++) {
        struct test_child child = {0};
        {
            STRAND_SCOPE(s);
            strand_cancel(strand_spawn(s, set_and_wait, &child), NULL);
        }
        CHECK_EQ(child.started, 1);
    }
}

static void *leave_three_frames(void *unused)
{
    TEST_LEAVING("outer");
    {
        TEST_LEAVING("middle");
        {
            TEST_LEAVING("inner");
            strand_sleep(FOREVER);
        }
    }
    return unused;
}

TEST_INSIDE(clean_ups_run_when_a_cancelled_strand_is_left)
{
    {
        STRAND_SCOPE(s);
        strand child = strand_spawn(s, leave_three_frames, NULL);
        strand_yield();
        strand_cancel(child, NULL);
    }
    CHECK_LOG("inner middle outer");
}

static void *resist_then_check(void *child)
{
    test_child_resists(child);
    strand_checkpoint();
    return NULL;
}

static void suppress_an_error(const int *unused)
{
    (void)unused;
    strand_suppress(strand_try(test_throw, "in the clean-up", NULL));
}

static void *block_and_suppress(void *child)
{
    int guard __attribute__((cleanup(suppress_an_error), unused)) = 0;
    return test_child_blocks(child);
}

static void *throw_beside_it(void *blocked)
{
    STRAND_SCOPE(s);
    test_spawn_started(s, block_and_suppress, blocked);
    return test_throw2("of the owner");
}

TEST_INSIDE(a_cancelled_child_whose_clean_up_has_suppressed_an_error_is_suppressed_as_an_error_itself)
{
    struct test_child blocked = {0};
    strand_exception *e = strand_try(throw_beside_it, &blocked, NULL);
    CHECK_KIND(e, &TEST_ERROR2);
    CHECK_KIND(strand_exception_suppressed(e, 0), &STRAND_CHILD_CANCELLED);
    CHECK_CONTAINS(strand_exception_text(strand_exception_suppressed(e, 0)), "; suppressed: ");
    strand_exception_release(e);
}

/* ---- who may cancel whom --------------------------------------------------------------------- */

static void *cancel_handle(void *handle)
{
    strand_cancel(*(strand *)handle, "sibling rivalry");
    return NULL;
}

TEST_INSIDE(a_sibling_may_cancel_and_is_named)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_blocks, &blocked);
    strand rival = strand_spawn_with(s, STRAND_ATTR(.name = "rival"), cancel_handle, &child, 0);
    strand_join(rival);
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_who(e), "rival");
    CHECK_STR(strand_exception_why(e), "sibling rivalry");
    strand_exception_release(e);
}

TEST_INSIDE(joining_the_scope_throws_an_error_for_a_child_that_its_sibling_has_cancelled)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_blocks, &blocked);
    strand_join(strand_spawn(s, cancel_handle, &child));
    strand_exception *e = strand_try(test_join_scope, &s, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_CONTAINS(strand_exception_text(e), "was cancelled by strand: sibling rivalry");
    strand_exception_release(e);
}

TEST_INSIDE(the_joiner_sees_the_first_of_two_cancels)
{
    struct test_child resisting = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, resist_then_check, &resisting);
    strand_cancel(child, "first");
    strand_cancel(child, "second");
    resisting.release = 1;
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_why(e), "first");
    strand_exception_release(e);
}

static void check_printed(const strand_exception *e, const char *needle)
{
    static char text[16384];
    FILE *file = tmpfile();
    CHECK(file != NULL);
    strand_exception_print(e, fileno(file));
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    CHECK_CONTAINS(text, needle);
}

TEST_INSIDE(a_cancel_is_in_the_trace_with_its_strand_and_reason)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_blocks, &blocked);
    strand rival = strand_spawn_with(s, STRAND_ATTR(.name = "the-rival"), cancel_handle, &child, 0);
    strand_join(rival);
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    check_printed(e, "the-rival");
    check_printed(e, "sibling rivalry");
    strand_exception_release(e);
}

static void *cancel_itself(void *unused)
{
    strand_cancel(strand_self(), "enough");
    strand_checkpoint();
    return unused;
}

TEST_INSIDE(a_strand_may_cancel_itself)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn_with(s, STRAND_ATTR(.name = "self"), cancel_itself, NULL, 0);
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_who(e), "self");
    CHECK_STR(strand_exception_why(e), "enough");
    strand_exception_release(e);
}

static void *cancel_while_cancelled(void *other)
{
    strand_cancel(strand_self(), NULL);
    strand_cancel(*(strand *)other, "last words");
    return TEST_PTR(1);
}

TEST(a_root_that_cancels_itself_leaves_the_run_by_an_error)
{
    strand_exception *e = NULL;
    strand_options options = test_options();
    options.uncaught = &e;
    CHECK_PTR(strand_run(&options, cancel_itself, NULL), NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_why(e), "enough");
    strand_exception_release(e);
}

TEST_INSIDE(a_cancelled_strand_may_cancel_others)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_blocks, &blocked);
    CHECK_PTR(strand_join(strand_spawn(s, cancel_while_cancelled, &child)), TEST_PTR(1));
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_why(e), "last words");
    strand_exception_release(e);
}

/* ---- handles of strands that have ended ------------------------------------------------------ */

TEST_INSIDE(cancelling_a_strand_that_has_ended_changes_nothing)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, test_return, TEST_PTR(5));
    strand_wait(child);
    strand_cancel(child, "too late");
    CHECK_PTR(strand_join(child), TEST_PTR(5));
}

TEST_INSIDE(cancelling_a_failed_strand_does_not_make_its_failure_a_cancellation)
{
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    strand child = strand_spawn(s, test_throw, "before");
    strand_wait(child);
    strand_cancel(child, "too late");
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_STR(strand_exception_text(e), "before");
    strand_exception_release(e);
}

/* Its control block serves another strand by then, which has to stay unharmed. */
/* contract 9.5 */
TEST_INSIDE(cancelling_by_a_stale_handle_harms_nobody)
{
    STRAND_SCOPE(s);
    strand old = strand_spawn(s, test_return, NULL);
    strand_join(old);
    for (int i = 0; i < 50; i++) {
        struct test_child child = {0};
        strand other = test_spawn_started(s, test_child_waits, &child);
        strand_cancel(old, "wrong one");
        child.release = 1;
        CHECK_PTR(strand_join(other), &child);
    }
}

static strand old_root;

static void *note_root(void *unused)
{
    old_root = strand_self();
    return unused;
}

static void *use_old_root(void *unused)
{
    CHECK(strand_ended(old_root));
    strand_wait(old_root);
    strand_cancel(old_root, NULL);
    strand_checkpoint();
    return unused;
}

/* contract 9.5 */
TEST(handles_of_a_run_that_has_ended_are_stale)
{
    test_run(note_root, NULL);
    test_run(use_old_root, NULL);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static void *resist_over_a_child(void *children)
{
    struct test_child *own = children, *childs = own + 1;
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_waits, childs);
    test_child_resists(own);
    return strand_join(child);
}

/* contract 4.16 */
TEST_INSIDE(a_cancel_does_not_run_ahead_into_children)
{
    struct test_child children[2] = {{0}};
    STRAND_SCOPE(s);
    strand parent = test_spawn_started(s, resist_over_a_child, children);
    strand_cancel(parent, NULL);
    for (int i = 0; i < 50; i++) {
        strand_yield();
        CHECK_EQ(children[1].ended, 0);
    }
    children[0].release = 1;
    strand_wait(parent);
    CHECK_EQ(children[1].ended, 1);
}

struct node {
    struct test_child child;
    struct node *tree; /* the children of tree[i] are tree[2 * i] and tree[2 * i + 1]; there is no tree[0] */
    long size;
};

static void *grow(void *arg)
{
    struct node *node = arg;
    long first = 2 * (node - node->tree);
    STRAND_SCOPE(s);
    for (long i = first; i <= first + 1 && i < node->size; i++)
        strand_spawn(s, grow, &node->tree[i]);
    test_child_blocks(&node->child);
    return NULL;
}

static struct node *seed_tree(long size)
{
    struct node *tree = calloc((size_t)size, sizeof(*tree));
    for (long i = 1; i < size; i++)
        tree[i] = (struct node){.tree = tree, .size = size};
    return tree;
}

/* Cancel and wait is all it takes to know that nothing is left of what a strand has started. */
/* V-35 */
TEST_RACE(after_cancelling_and_waiting_all_work_of_a_strand_has_ended)
{
    long size = test_scale(2000) + 1;
    struct node *tree = seed_tree(size);
    STRAND_SCOPE(s);
    strand top = strand_spawn(s, grow, &tree[1]);
    for (long i = 1; i < size; i++)
        test_yield_until(&tree[i].child.started, 1);
    strand_cancel(top, "felled");
    strand_wait(top);
    for (long i = 1; i < size; i++)
        CHECK_EQ(tree[i].child.ended, 1);
    free(tree);
}

/* It is cancelled while it still grows, so some strands are never spawned; but each that started has ended. */
/* V-35 */
TEST_RACE(cancelling_races_with_spawning)
{
    for (long n = 0; n < test_scale(200); n++) {
        struct node *tree = seed_tree(64);
        STRAND_SCOPE(s);
        strand top = strand_spawn(s, grow, &tree[1]);
        for (long i = 0; i < n % 10; i++)
            strand_yield();
        strand_cancel(top, NULL);
        strand_wait(top);
        for (long i = 1; i < 64; i++)
            CHECK_EQ(tree[i].child.ended, tree[i].child.started);
        free(tree);
    }
}
