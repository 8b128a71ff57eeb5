/*
 * The index of index.h.
 */
#include "index.h"

static uint64_t key_of(const struct tree_node *node)
{
    return CONTAINER(node, const struct index_node, node)->key;
}

void index_add(struct tree *tree, struct index_node *node, uint64_t key)
{
    struct tree_node *parent = NULL;
    int side = 0;
    for (struct tree_node *at = tree->root; at; at = at->child[side]) {
        parent = at;
        side = key >= key_of(at);
    }
    node->key = key;
    tree_add(tree, parent, side, &node->node);
}

/* The first record whose number is not less. */
static struct index_node *not_less(const struct tree *tree, uint64_t key)
{
    struct tree_node *found = NULL;
    for (struct tree_node *at = tree->root; at;) {
        bool less = key_of(at) < key;
        if (!less)
            found = at;
        at = at->child[less];
    }
    return found ? CONTAINER(found, struct index_node, node) : NULL;
}

struct index_node *index_find(const struct tree *tree, uint64_t key)
{
    struct index_node *found = not_less(tree, key);
    return found && found->key == key ? found : NULL;
}

struct index_node *index_after(const struct tree *tree, uint64_t key)
{
    return key == UINT64_MAX ? NULL : not_less(tree, key + 1);
}
