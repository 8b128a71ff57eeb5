/*
 * The limit of a run's memory for stacks. The protocol block is in budget.h.
 */
#include "budget.h"

#include "saved.h"
#include "stack.h"

bool budget_take_(struct stack_user *user, size_t bytes, bool must)
{
    struct stack_memory *memory = user->memory;
    size_t taken = atomic_load_explicit(&memory->taken, memory_order_relaxed);
    do {
        if (!must && (bytes > memory->most || taken > memory->most - bytes)) {
            user->wanted = bytes;
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&memory->taken, &taken, taken + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

/* Waits for the threads that are `ending`, for one switch each [B1]. Returns whether there were any. */
static bool await_ending(struct stack_user *user)
{
    struct stack_memory *memory = user->memory;
    struct stack_user *other = atomic_load_explicit(&memory->threads, memory_order_acquire); /* [PB1] */
    bool any = false;
    for (; other; other = other->older) {
        while (other != user && atomic_load_explicit(&other->ending, memory_order_acquire)) { /* [B1] */
            any = true;
            memory->ops->await(user);
        }
    }
    return any;
}

/* Another thread may have made room. */
static bool has_room(struct stack_user *user)
{
    struct stack_memory *memory = user->memory;
    size_t taken = atomic_load_explicit(&memory->taken, memory_order_relaxed);
    return user->wanted <= memory->most && taken <= memory->most - user->wanted;
}

bool budget_may_begin_(struct stack_user *user)
{
    user->wanted = 0;
    while (!has_room(user))
        if (!budget_make_room(user))
            return false;
    return true;
}

bool budget_make_room(struct stack_user *user)
{
    bool any = await_ending(user);
    any |= saved_store_trim(user, SIZE_MAX) != 0;
    any |= stacks_hollow(user);
    return any || has_room(user);
}
