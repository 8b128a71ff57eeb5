/*
 * A 4-ary min-heap of (key, node) pairs in one array. A node stores its index, so removal costs O(log n) without a
 * search. Equal keys come out in no particular order. Not thread-safe.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "base.h"

#define HEAP_NOWHERE UINT32_MAX

struct heap_node {
    uint32_t index; /* HEAP_NOWHERE: in no heap */
};

struct heap_entry {
    int64_t key;
    struct heap_node *node;
};

struct heap {
    struct heap_entry *entries; /* aligned so that the children of a node share a cache line */
    uint32_t count, capacity;
};

void heap_init(struct heap *heap);
void heap_close(struct heap *heap);
/* Returns 0, or -ENOMEM; the heap is unchanged then. */
int heap_add(struct heap *heap, int64_t key, struct heap_node *node);
void heap_remove(struct heap *heap, struct heap_node *node);
struct heap_node *heap_pop(struct heap *heap); /* removes the least; the heap is not empty */

/* Count the keys that are `key` or less, up to `most`. O(result). */
uint32_t heap_count_until(const struct heap *heap, int64_t key, uint32_t most);

/* Copy the least entries, in order, to first: at most `most`, which is at most HEAP_FIRST_MOST. Returns how many.
 * O(most^2). */
enum { HEAP_FIRST_MOST = 16 };
uint32_t heap_first(const struct heap *heap, uint32_t most, struct heap_entry *first);

static inline int64_t heap_least(const struct heap *heap)
{
    return heap->count ? heap->entries[0].key : INT64_MAX;
}

#endif
