/*
 * An index of records by a number, in a balanced tree (tree.h). Adding, finding and removing cost O(log n), and
 * allocate nothing. Records of equal numbers are in the order in which they were added. Not thread-safe.
 */
#ifndef BASE_INDEX_H
#define BASE_INDEX_H

#include "tree.h"

struct index_node {
    struct tree_node node;
    uint64_t key;
};

void index_add(struct tree *tree, struct index_node *node, uint64_t key);
/* The first record of that number, or NULL. */
struct index_node *index_find(const struct tree *tree, uint64_t key);
/* The first record of a greater number, or NULL. */
struct index_node *index_after(const struct tree *tree, uint64_t key);

static inline struct index_node *index_first(const struct tree *tree)
{
    return tree->end[0] ? CONTAINER(tree->end[0], struct index_node, node) : NULL;
}

/* The next record, or NULL. */
static inline struct index_node *index_next(const struct index_node *node)
{
    struct tree_node *next = tree_step(&node->node, 1);
    return next ? CONTAINER(next, struct index_node, node) : NULL;
}

static inline void index_remove(struct tree *tree, struct index_node *node)
{
    tree_remove(tree, &node->node);
}

#endif
