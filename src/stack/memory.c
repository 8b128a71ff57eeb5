/*
 * The memory of a run's stacks, as a whole: its parts are in stack.c, saved.c and readers.c.
 */
#include "memory.h"

#include "saved.h"
#include "stack.h"

void stack_memory_open(struct stack_memory *memory, const struct stack_ops *ops)
{
    memory->ops = ops;
    saved_store_open(&memory->saved);
}

void stack_memory_close(struct stack_memory *memory)
{
    stacks_close(&memory->stacks);
    saved_store_close(&memory->saved);
}

void stack_memory_join(struct stack_memory *memory, struct stack_user *user)
{
    user->memory = memory;
    user->older = atomic_load_explicit(&memory->threads, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&memory->threads, &user->older, user, memory_order_release,
                                                  memory_order_relaxed)) /* [PB1] */
        continue;
}
