/*
 * The limit of a run's memory for stacks. The protocol block is in budget.h.
 */
#include "budget.h"

#include "driver.h"
#include "image.h"
#include "stack.h"

bool budget_take_(struct thread *thread, size_t bytes, bool must)
{
    struct subprocess *sub = thread->sub;
    size_t taken = atomic_load_explicit(&sub->stack_bytes, memory_order_relaxed);
    do {
        if (!must && (bytes > sub->stack_most || taken > sub->stack_most - bytes)) {
            thread->wanted = bytes;
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&sub->stack_bytes, &taken, taken + bytes, memory_order_acquire,
                                                    memory_order_relaxed));
    return true;
}

/* Those whose strands are known to have ended: a switch each [B1]. */
static bool await_ending(struct thread *thread)
{
    const struct pool *pool = thread->pool;
    bool any = false;
    for (int i = 0; i < pool->count; i++) {
        struct thread *other = pool->threads[i];
        while (other != thread && atomic_load_explicit(&other->ending, memory_order_acquire)) {
            any = true;
            driver_await(thread);
        }
    }
    return any;
}

/* Somebody else may have made it. */
static bool has_room(struct thread *thread)
{
    struct subprocess *sub = thread->sub;
    size_t taken = atomic_load_explicit(&sub->stack_bytes, memory_order_relaxed);
    return thread->wanted <= sub->stack_most && taken <= sub->stack_most - thread->wanted;
}

bool budget_may_begin_(struct thread *thread)
{
    thread->wanted = 0;
    while (!has_room(thread))
        if (!budget_make_room(thread))
            return false;
    return true;
}

bool budget_make_room(struct thread *thread)
{
    bool any = await_ending(thread);
    any |= image_store_trim(thread, &thread->sub->images, SIZE_MAX) != 0;
    any |= stacks_hollow(thread);
    return any || has_room(thread);
}
