/*
 * Trees of strands that end in every possible way at random. Every strand that began has to end, with
 * its clean-ups run.
 */
#define SUITE stress_tree
#include "test.h"

static const strand_kind PLANTED = STRAND_KIND("planted", &STRAND_ERROR);

#define FANOUT 4
#define DEPTH 4

static _Atomic long began, ended;

struct node {
    uint64_t chance;
    unsigned flags; /* of its scope */
    int depth;
};

/* A generator of each node's own, so that what it does does not depend on who runs when. */
static unsigned draw(struct node *node, unsigned below)
{
    node->chance = node->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(node->chance >> 33) % below;
}

static void count_end(int *unused)
{
    (void)unused;
    STRAND_SHIELD;
    strand_yield();
    ended++;
}

static void *join_one(void *child)
{
    return strand_join(*(strand *)child);
}

/* Joins and drops what the child threw. Its own interruption it passes on. */
static void join_whatever_comes(strand child)
{
    strand_exception *e = strand_try(join_one, &child, NULL);
    if (e && strand_exception_is(e, &STRAND_INTERRUPTED))
        strand_rethrow(e);
    strand_exception_release(e);
}

static void end_in_some_way(struct node *node, strand_scope scope, const strand *children)
{
    unsigned way = draw(node, 8);
    if (way < 3)
        for (int i = 0; i < FANOUT; i++)
            join_whatever_comes(children[i]);
    else if (way == 3)
        strand_scope_cancel(scope, "the whole scope");
    else if (way == 4)
        for (int i = 0; i < FANOUT; i++)
            strand_cancel(children[i], "one by one");
    else if (way == 5)
        strand_throw(&PLANTED, "with children");
    else if (way == 6)
        strand_sleep(draw(node, 100) * STRAND_US);
    else
        strand_scope_join(scope);
}

static void *grow(void *arg);

static void grow_children(struct node *node)
{
    struct node below[FANOUT];
    strand children[FANOUT];
    STRAND_SCOPE_WITH(scope, node->flags);
    for (int i = 0; i < FANOUT; i++) {
        uint64_t chance = node->chance ^ (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        below[i] = (struct node){chance, node->flags, node->depth - 1};
        children[i] = strand_spawn(scope, grow, &below[i]);
        if (draw(node, 8) == 0)
            strand_cancel(children[i], "at birth");
    }
    end_in_some_way(node, scope, children);
}

static void *grow(void *arg)
{
    struct node *node = arg;
    int counted __attribute__((cleanup(count_end), unused)) = 0;
    began++;
    if (node->depth > 0)
        grow_children(node);
    else if (draw(node, 4) == 0)
        strand_throw(&PLANTED, "leaf");
    else
        strand_yield();
    return arg;
}

static void *grow_trees_for_a_while(void *flags)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    for (uint64_t seed = 1; strand_now().ns < until.ns; seed++) {
        struct node root = {seed * 7919, *(unsigned *)flags, DEPTH};
        strand_exception_release(strand_try(grow, &root, NULL));
        CHECK_EQ(began, ended);
    }
    return flags;
}

static void keep_quiet(const char *message, void *arg)
{
    (void)message;
    (void)arg;
}

static void grow_with_scopes_of(unsigned flags)
{
    strand_options options = test_options();
    options.on_log = keep_quiet;
    strand_run(&options, grow_trees_for_a_while, &flags);
    CHECK(began > 0);
}

/* V-36, V-38, contract 7.4 */
TEST_REAL(every_strand_of_a_random_tree_ends)
{
    grow_with_scopes_of(0);
}

/* contract 7.4 */
TEST_REAL(every_strand_of_a_random_tree_that_stands_together_ends)
{
    grow_with_scopes_of(STRAND_TOGETHER);
}

/* contract 7.4 */
TEST_REAL(every_strand_of_a_random_tree_that_collects_its_failures_ends)
{
    grow_with_scopes_of(STRAND_COLLECT);
}
