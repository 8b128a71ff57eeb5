/*
 * The index: what was added is found by its number, and all of it in order; equal numbers in the order of adding.
 */
#include "arch_check.h"

#include "base/index.h"
#include "base/rng.h"

enum { ITEMS = 300, KEYS = 100, STEPS = 30000 };

struct item {
    struct index_node node;
    unsigned added; /* 0: it is not in it */
};

static struct item items[ITEMS];

static struct item *item_of(struct index_node *node)
{
    return CONTAINER(node, struct item, node);
}

/* The one that should be found, by looking at all. */
static struct item *expected(uint64_t key, bool after)
{
    struct item *best = NULL;
    for (struct item *item = items; item < items + ITEMS; item++) {
        bool may = item->added && (after ? item->node.key > key : item->node.key == key);
        if (may && (!best || item->node.key < best->node.key ||
                    (item->node.key == best->node.key && item->added < best->added)))
            best = item;
    }
    return best;
}

static void check_order(const struct tree *tree, unsigned count)
{
    struct item *last = NULL;
    for (struct index_node *at = index_first(tree); at; last = item_of(at), at = index_next(at), count--)
        if (last)
            CHECK_EQUAL(last->node.key < at->key || (last->node.key == at->key && last->added < item_of(at)->added),
                        true);
    CHECK_EQUAL(count, 0u);
}

static void what_was_added_is_found(void)
{
    struct tree tree = {0};
    struct rng rng = {11};
    unsigned count = 0;
    for (unsigned step = 1; step <= STEPS; step++) {
        struct item *item = &items[rng_below(&rng, ITEMS)];
        if (item->added) {
            index_remove(&tree, &item->node);
            item->added = 0;
            count--;
        } else {
            index_add(&tree, &item->node, rng_below(&rng, KEYS));
            item->added = step;
            count++;
        }
        uint64_t key = rng_below(&rng, KEYS + 1);
        struct item *found = expected(key, false), *after = expected(key, true);
        CHECK_EQUAL((uintptr_t)index_find(&tree, key), (uintptr_t)(found ? &found->node : NULL));
        CHECK_EQUAL((uintptr_t)index_after(&tree, key), (uintptr_t)(after ? &after->node : NULL));
        if (step % 64 == 0)
            check_order(&tree, count);
    }
    CHECK_EQUAL((uintptr_t)index_after(&tree, UINT64_MAX), (uintptr_t)NULL);
}

int main(void)
{
    what_was_added_is_found();
    return failures != 0;
}
