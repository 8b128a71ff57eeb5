/*
 * An intrusive balanced tree (AVL) that keeps the order its user gives it: both ends are known, and adding and removing
 * cost O(log n) at most, and O(1) on average at the ends. To add a node, the caller finds its place by its own order.
 * Not thread-safe.
 */
#ifndef BASE_TREE_H
#define BASE_TREE_H

#include "base.h"

struct tree_node {
    struct tree_node *child[2], *parent;
    int lean; /* height of the second subtree minus height of the first: -1, 0, 1 */
};

struct tree {
    struct tree_node *root, *end[2]; /* end: the first and the last, or NULL */
};

/* Add a node as the first or second child of a parent, which has none on that side; NULL: the tree is empty. */
void tree_add(struct tree *tree, struct tree_node *parent, int side, struct tree_node *node);
void tree_remove(struct tree *tree, struct tree_node *node);
/* The next node towards an end (0: the first), or NULL. */
struct tree_node *tree_step(const struct tree_node *node, int side);

#endif
