/*
 * Shared fibres: many strands on a few stacks, shallow ones and deep ones, figures and trimming.
 */
#include "fault.h"

#include <string.h>

enum { GUESTS = 40, ROUNDS = 3, DEEP = 30 };

static _Atomic int ended;

/* A kilobyte of stack each. */
__attribute__((noinline)) static int dive(int depth)
{
    volatile char room[1024];
    memset((char *)room, depth, sizeof room);
    if (depth)
        (void)dive(depth - 1);
    else
        strand_yield();
    for (size_t i = 0; i < sizeof room; i += 64)
        FAULT_CHECK(room[i] == (char)depth);
    return depth;
}

static void *guest(void *arg)
{
    volatile uintptr_t number = (uintptr_t)arg;
    for (int round = 0; round < ROUNDS; round++) {
        strand_yield();
        strand_sleep((int64_t)(number % 5) * STRAND_US);
        if (number % 8 == 0)
            (void)dive((int)(number % DEEP));
        FAULT_CHECK(number == (uintptr_t)arg);
    }
    atomic_fetch_add(&ended, 1);
    return NULL;
}

static void *fibres(void *arg)
{
    (void)arg;
    atomic_store(&ended, 0);
    {
        STRAND_SCOPE(scope);
        strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 3));
        for (uintptr_t i = 0; i < GUESTS; i++)
            strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), guest, (void *)i, 0);
        strand_scope_join(scope);
        for (int i = 0; i < strand_fibre_count(fibre); i++) {
            strand_fibre_info info = {.size = sizeof info};
            strand_fibre_info_get(fibre, i, &info);
            FAULT_CHECK(info.stack_size >= info.stack_resident);
        }
        (void)strand_fibre_trim(fibre);
    }
    FAULT_CHECK(atomic_load(&ended) == GUESTS);
    return FAULT_DONE;
}

FAULT_WORKLOAD(fibres, RUN_ANY, fibres, )
