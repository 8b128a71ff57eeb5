/*
 * The heap of heap.h. A node has four children: the array of a million timers is ten levels deep, and the four children
 * share a cache line, to which the array is aligned.
 */
#include "heap.h"

#include <errno.h> /* for the codes; errno itself is read in src/arch alone: tools/check-system.sh */
#include <stdlib.h>
#include <string.h>

enum { HEAP_FIRST = 64 };

void heap_init(struct heap *heap)
{
    heap->entries = NULL;
    heap->count = heap->capacity = 0;
}

/* The second entry starts a cache line, so the first one ends one. */
enum { BEFORE = CACHE_LINE / sizeof(struct heap_entry) - 1 };

static struct heap_entry *alloc_entries(uint32_t capacity)
{
    size_t bytes = ((size_t)capacity + BEFORE) * sizeof(struct heap_entry);
    struct heap_entry *block = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
    return block ? block + BEFORE : NULL;
}

static void free_entries(struct heap_entry *entries)
{
    if (entries)
        free(entries - BEFORE);
}

void heap_close(struct heap *heap)
{
    free_entries(heap->entries);
    heap_init(heap);
}

static void place(struct heap *heap, uint32_t at, struct heap_entry entry)
{
    heap->entries[at] = entry;
    entry.node->index = at;
}

static void rise(struct heap *heap, uint32_t at, struct heap_entry entry)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / 4;
        if (heap->entries[parent].key <= entry.key)
            break;
        place(heap, at, heap->entries[parent]);
        at = parent;
    }
    place(heap, at, entry);
}

/* Prefetch the children of these four, a line for each: in a large heap they are not cached, and one of them is
 * next. */
static inline void fetch_below(const struct heap *heap, uint64_t first)
{
    uint64_t below = first * 4 + 1;
    for (uint64_t at = below; at < heap->count && at < below + 16; at += 4)
        __builtin_prefetch(&heap->entries[at]);
}

static void sink(struct heap *heap, uint32_t at, struct heap_entry entry)
{
    for (;;) {
        uint64_t first = (uint64_t)at * 4 + 1;
        if (first >= heap->count)
            break;
        fetch_below(heap, first);
        uint32_t least = (uint32_t)first;
        uint64_t end = first + 4 < heap->count ? first + 4 : heap->count;
        for (uint32_t i = least + 1; i < end; i++)
            if (heap->entries[i].key < heap->entries[least].key)
                least = i;
        if (heap->entries[least].key >= entry.key)
            break;
        place(heap, at, heap->entries[least]);
        at = least;
    }
    place(heap, at, entry);
}

static int grow(struct heap *heap)
{
    uint32_t capacity = heap->capacity ? heap->capacity * 2 : HEAP_FIRST;
    if (capacity < heap->capacity || capacity == HEAP_NOWHERE)
        return -ENOMEM;
    struct heap_entry *entries = alloc_entries(capacity);
    if (!entries)
        return -ENOMEM;
    if (heap->count)
        memcpy(entries, heap->entries, heap->count * sizeof *entries);
    free_entries(heap->entries);
    heap->entries = entries;
    heap->capacity = capacity;
    return 0;
}

int heap_add(struct heap *heap, int64_t key, struct heap_node *node)
{
    if (heap->count == heap->capacity) {
        int error = grow(heap);
        if (error)
            return error;
    }
    rise(heap, heap->count++, (struct heap_entry){key, node});
    return 0;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    uint32_t at = node->index;
    ASSERT_SLOW(at < heap->count && heap->entries[at].node == node);
    struct heap_entry last = heap->entries[--heap->count];
    node->index = HEAP_NOWHERE;
    if (last.node == node)
        return;
    if (at > 0 && heap->entries[(at - 1) / 4].key > last.key)
        rise(heap, at, last);
    else
        sink(heap, at, last);
}

struct heap_node *heap_pop(struct heap *heap)
{
    struct heap_node *node = heap->entries[0].node;
    heap_remove(heap, node);
    return node;
}

/* Count in the subtree of `at`. */
static uint32_t count_below(const struct heap *heap, uint64_t at, int64_t key, uint32_t most)
{
    if (at >= heap->count || heap->entries[at].key > key || !most)
        return 0;
    uint32_t count = 1;
    for (uint64_t child = at * 4 + 1; child <= at * 4 + 4; child++)
        count += count_below(heap, child, key, most - count);
    return count;
}

uint32_t heap_count_until(const struct heap *heap, int64_t key, uint32_t most)
{
    return count_below(heap, 0, key, most);
}

/* Each further entry is a child of one taken before. */
uint32_t heap_first(const struct heap *heap, uint32_t most, struct heap_entry *first)
{
    uint32_t open[1 + 4 * HEAP_FIRST_MOST] = {0}, left = heap->count != 0, count = 0;
    ASSERT(most <= HEAP_FIRST_MOST);
    while (count < most && left) {
        uint32_t least = 0;
        for (uint32_t i = 1; i < left; i++)
            if (heap->entries[open[i]].key < heap->entries[open[least]].key)
                least = i;
        uint32_t at = open[least];
        open[least] = open[--left];
        first[count++] = heap->entries[at];
        for (uint32_t child = 4 * at + 1; child <= 4 * at + 4 && child < heap->count; child++)
            open[left++] = child;
    }
    return count;
}
