/*
 * The tree of tree.h. Source: Adelson-Velsky and Landis, "An algorithm for the organization of information", 1962.
 */
#include "tree.h"

static inline int sign_of(int side)
{
    return side ? 1 : -1;
}

/* Replace `old` by `new`, which may be NULL, under its parent. */
static void replace(struct tree *tree, struct tree_node *old, struct tree_node *new)
{
    struct tree_node *parent = old->parent;
    if (!parent)
        tree->root = new;
    else
        parent->child[parent->child[1] == old] = new;
    if (new)
        new->parent = parent;
}

/* Rotate: the node goes down on this side, its child of the other side comes up. */
static void rotate(struct tree *tree, struct tree_node *node, int side)
{
    struct tree_node *up = node->child[!side], *middle = up->child[side];
    replace(tree, node, up);
    node->child[!side] = middle;
    if (middle)
        middle->parent = node;
    up->child[side] = node;
    node->parent = up;
}

/* Rebalance a node that leans by two. Returns the new root of the subtree, which leans by 0 if the subtree is lower
 * now. */
static struct tree_node *rebalance(struct tree *tree, struct tree_node *node)
{
    int side = node->lean > 0, sign = sign_of(side);
    struct tree_node *heavy = node->child[side];
    if (heavy->lean != -sign) {
        rotate(tree, node, !side);
        bool even = heavy->lean == 0;
        node->lean = even ? sign : 0;
        heavy->lean = even ? -sign : 0;
        return heavy;
    }
    struct tree_node *top = heavy->child[!side];
    rotate(tree, heavy, side);
    rotate(tree, node, !side);
    node->lean = top->lean == sign ? -sign : 0;
    heavy->lean = top->lean == -sign ? sign : 0;
    top->lean = 0;
    return top;
}

void tree_add(struct tree *tree, struct tree_node *parent, int side, struct tree_node *node)
{
    *node = (struct tree_node){.parent = parent};
    if (!parent) {
        tree->root = tree->end[0] = tree->end[1] = node;
        return;
    }
    ASSERT_SLOW(!parent->child[side]);
    parent->child[side] = node;
    if (tree->end[side] == parent)
        tree->end[side] = node;
    for (; parent; node = parent, parent = node->parent) {
        parent->lean += sign_of(parent->child[1] == node);
        if (parent->lean == 0)
            return;
        if (parent->lean == 2 || parent->lean == -2) {
            rebalance(tree, parent);
            return;
        }
    }
}

static struct tree_node *farthest(struct tree_node *node, int side)
{
    while (node->child[side])
        node = node->child[side];
    return node;
}

struct tree_node *tree_step(const struct tree_node *node, int side)
{
    if (node->child[side])
        return farthest(node->child[side], !side);
    const struct tree_node *parent = node->parent;
    while (parent && parent->child[side] == node) {
        node = parent;
        parent = node->parent;
    }
    return (struct tree_node *)(uintptr_t)parent;
}

/* The subtree on this side of the node has become lower by one. */
static void lowered(struct tree *tree, struct tree_node *node, int side)
{
    while (node) {
        node->lean -= sign_of(side);
        if (node->lean == 1 || node->lean == -1)
            return;
        if (node->lean != 0 && (node = rebalance(tree, node))->lean != 0)
            return;
        struct tree_node *parent = node->parent;
        side = parent && parent->child[1] == node;
        node = parent;
    }
}

/* Remove a node with two children: the next node takes its place. */
static void remove_inner(struct tree *tree, struct tree_node *node)
{
    struct tree_node *next = farthest(node->child[1], 0), *from = next->parent;
    int side = from == node;
    if (from == node) {
        from = next;
    } else {
        replace(tree, next, next->child[1]);
        next->child[1] = node->child[1];
        next->child[1]->parent = next;
    }
    next->child[0] = node->child[0];
    next->child[0]->parent = next;
    next->lean = node->lean;
    replace(tree, node, next);
    lowered(tree, from, side);
}

void tree_remove(struct tree *tree, struct tree_node *node)
{
    for (int side = 0; side < 2; side++)
        if (tree->end[side] == node)
            tree->end[side] = tree_step(node, !side);
    if (node->child[0] && node->child[1]) {
        remove_inner(tree, node);
        return;
    }
    struct tree_node *parent = node->parent;
    int side = parent && parent->child[1] == node;
    replace(tree, node, node->child[0] ? node->child[0] : node->child[1]);
    lowered(tree, parent, side);
}
