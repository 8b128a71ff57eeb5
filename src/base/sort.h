/*
 * Sorting in place, without allocation: qsort may call malloc.
 */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>

/* Sort items of 64 bytes at most. Equal items come out in no particular order. O(n log n). */
void sort_in_place(void *items, size_t count, size_t size, bool (*is_before)(const void *a, const void *b));

#endif
