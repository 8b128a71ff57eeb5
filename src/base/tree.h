/*
 * An intrusive balanced tree (AVL) that keeps what its user has put in order: both ends are at hand, adding and
 * removing cost O(log n) at most, and O(1) on average where things come and go at the ends. Who adds finds the place by
 * an order of his own. Not thread safe.
 */
#ifndef BASE_TREE_H
#define BASE_TREE_H

#include "base.h"

struct tree_node {
    struct tree_node *child[2], *parent;
    int lean; /* by how much the second subtree is higher than the first: -1, 0, 1 */
};

struct tree {
    struct tree_node *root, *end[2]; /* end: the first and the last, or NULL */
};

/* Hang the node on a parent, as its first or second child, which it does not have; NULL: the tree is empty. */
void tree_add(struct tree *tree, struct tree_node *parent, int side, struct tree_node *node);
void tree_remove(struct tree *tree, struct tree_node *node);
/* The next one towards an end (0: the first), or NULL. */
struct tree_node *tree_step(const struct tree_node *node, int side);

#endif
