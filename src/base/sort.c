/*
 * A heap sort.
 */
#include "sort.h"

#include "base.h"

#include <string.h>

enum { ITEM_MOST = 64 };

/* Sift the item at `at` down in the max-heap of `count` items. */
static void sift(char *items, size_t at, size_t count, size_t size, bool (*is_before)(const void *a, const void *b))
{
    char moved[ITEM_MOST] __attribute__((aligned(16)));
    memcpy(moved, items + at * size, size);
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(items + child * size, items + (child + 1) * size))
            child++;
        if (!is_before(moved, items + child * size))
            break;
        memcpy(items + at * size, items + child * size, size);
    }
    memcpy(items + at * size, moved, size);
}

void sort_in_place(void *items, size_t count, size_t size, bool (*is_before)(const void *a, const void *b))
{
    char last[ITEM_MOST] __attribute__((aligned(16))), *all = items;
    ASSERT(size <= ITEM_MOST);
    for (size_t at = count / 2; at-- > 0;)
        sift(all, at, count, size, is_before);
    while (count-- > 1) {
        memcpy(last, all, size);
        memcpy(all, all + count * size, size);
        memcpy(all + count * size, last, size);
        sift(all, 0, count, size, is_before);
    }
}
