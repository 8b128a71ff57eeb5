/*
 * The balanced tree: any order of adding and removing keeps it in order, balanced, and its ends at hand.
 */
#include "arch_check.h"

#include "base/rng.h"
#include "base/tree.h"

struct item {
    struct tree_node node;
    unsigned key;
    bool in;
};

static struct item *item_of(struct tree_node *node)
{
    return CONTAINER(node, struct item, node);
}

static void add(struct tree *tree, struct item *item)
{
    struct tree_node *parent = NULL, *at = tree->root;
    int side = 0;
    while (at) {
        parent = at;
        side = item->key >= item_of(at)->key;
        at = at->child[side];
    }
    tree_add(tree, parent, side, &item->node);
    item->in = true;
}

static int check_subtree(struct tree_node *node, unsigned *count)
{
    if (!node)
        return 0;
    int height[2];
    for (int side = 0; side < 2; side++) {
        height[side] = check_subtree(node->child[side], count);
        if (node->child[side])
            CHECK_EQUAL((uintptr_t)node->child[side]->parent, (uintptr_t)node);
    }
    CHECK_EQUAL(node->lean, height[1] - height[0]);
    CHECK_EQUAL(node->lean >= -1 && node->lean <= 1, true);
    ++*count;
    return 1 + (height[0] > height[1] ? height[0] : height[1]);
}

static void check_tree(struct tree *tree, unsigned expected)
{
    unsigned count = 0, steps = 0;
    check_subtree(tree->root, &count);
    CHECK_EQUAL(count, expected);
    CHECK_EQUAL(tree->root == NULL || tree->root->parent == NULL, true);
    for (int side = 0; side < 2; side++) {
        struct tree_node *last = NULL;
        steps = 0;
        for (struct tree_node *at = tree->end[!side]; at; last = at, at = tree_step(at, side), steps++)
            if (last)
                CHECK_EQUAL(side ? item_of(last)->key <= item_of(at)->key : item_of(last)->key >= item_of(at)->key,
                            true);
        CHECK_EQUAL(steps, expected);
        CHECK_EQUAL((uintptr_t)tree->end[side], (uintptr_t)last);
    }
}

/* Few keys: many are equal. Now and then it grows, now and then it shrinks to nothing. */
static void any_order_of_adding_and_removing_keeps_it_balanced(void)
{
    enum { ITEMS = 200, STEPS = 100000 };
    static struct item items[ITEMS];
    struct tree tree = {0};
    struct rng rng = {7};
    unsigned count = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        struct item *item = &items[rng_below(&rng, ITEMS)];
        bool shrinks = step / 1000 % 2;
        if (item->in && (shrinks || rng_below(&rng, 3) == 0)) {
            tree_remove(&tree, &item->node);
            item->in = false;
            count--;
        } else if (!item->in && (!shrinks || rng_below(&rng, 8) == 0)) {
            item->key = rng_below(&rng, 50);
            add(&tree, item);
            count++;
        }
        if (step % 16 == 0)
            check_tree(&tree, count);
    }
}

static void taking_from_the_ends_takes_in_order(void)
{
    enum { ITEMS = 1000 };
    static struct item items[ITEMS];
    for (int side = 0; side < 2; side++) {
        struct tree tree = {0};
        for (unsigned i = 0; i < ITEMS; i++) {
            items[i].key = i * 617 % ITEMS;
            add(&tree, &items[i]);
        }
        for (unsigned i = 0; i < ITEMS; i++) {
            CHECK_EQUAL(item_of(tree.end[side])->key, side ? ITEMS - 1 - i : i);
            tree_remove(&tree, tree.end[side]);
        }
        check_tree(&tree, 0);
    }
}

int main(void)
{
    any_order_of_adding_and_removing_keeps_it_balanced();
    taking_from_the_ends_takes_in_order();
    return failures != 0;
}
