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

static void the_first_are_seen_in_order_and_stay(void)
{
    struct heap heap;
    struct heap_entry first[HEAP_FIRST_MOST];
    heap_init(&heap);
    CHECK_EQUAL(heap_first(&heap, 5, first), 0);
    fill(&heap);
    for (int gone = 0; gone < NODES; gone += 7) {
        uint32_t left = (uint32_t)(NODES - gone), most = left < HEAP_FIRST_MOST ? left : HEAP_FIRST_MOST;
        CHECK_EQUAL(heap_first(&heap, HEAP_FIRST_MOST, first), most);
        for (uint32_t i = 0; i < most; i++) {
            CHECK_EQUAL(first[i].key, gone + (int)i);
            CHECK((first[i].node - nodes) * 617 % NODES == gone + (int)i);
        }
        CHECK_EQUAL(heap.count, left);
        for (int i = 0; i < 7 && heap.count; i++)
            heap_pop(&heap);
    }
    heap_close(&heap);
}

int main(void)
{
    the_first_are_seen_in_order_and_stay();
    what_comes_out_is_in_order();
    those_up_to_a_key_are_counted();
    return failures != 0;
}
