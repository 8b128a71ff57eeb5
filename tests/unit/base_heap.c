/*
 * The heap: the least comes out first, and those up to some key are counted.
 */
#include "arch_check.h"

#include "base/heap.h"

enum { NODES = 500 };

static struct heap_node nodes[NODES];

static void fill(struct heap *heap)
{
    heap_init(heap);
    for (int i = 0; i < NODES; i++)
        CHECK_EQUAL(heap_add(heap, i * 617 % NODES, &nodes[i]), 0);
}

static void what_comes_out_is_in_order(void)
{
    struct heap heap;
    fill(&heap);
    for (int i = 0; i < NODES; i++) {
        CHECK_EQUAL(heap_least(&heap), i);
        CHECK((heap_pop(&heap) - nodes) * 617 % NODES == i);
    }
    CHECK_EQUAL(heap_least(&heap), INT64_MAX);
    heap_close(&heap);
}

static void those_up_to_a_key_are_counted(void)
{
    struct heap heap;
    heap_init(&heap);
    CHECK_EQUAL(heap_count_until(&heap, 10, 100), 0);
    fill(&heap);
    for (int key = -1; key < NODES; key++)
        CHECK_EQUAL(heap_count_until(&heap, key, NODES), key + 1);
    CHECK_EQUAL(heap_count_until(&heap, NODES * 2, NODES), NODES);
    CHECK_EQUAL(heap_count_until(&heap, NODES, 7), 7);
    CHECK_EQUAL(heap_count_until(&heap, NODES, 0), 0);
    heap_close(&heap);
}

int main(void)
{
    what_comes_out_is_in_order();
    those_up_to_a_key_are_counted();
    return failures != 0;
}
