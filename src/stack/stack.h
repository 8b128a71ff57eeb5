/*
 * Stacks: made in regions, kept by every thread in a cache, guarded. See docs/stacks.md.
 */
#ifndef STACK_STACK_H
#define STACK_STACK_H

#include "memory.h"

#define STACK_CANARY UINT64_C(0x737472616e642121)

void stacks_open(struct stacks *stacks, size_t usual, bool required);
void stacks_close(struct stacks *stacks);
/* For seeded runs, between opening and closing: begin with the region that an earlier run has left; leave a region to
 * the next run. */
void stacks_take_stage(struct stacks *stacks);
void stacks_give_stage(struct stacks *stacks);
/* Rounds a request up to a power of two: at least four pages, with room for a guard page, the frame of a signal and
 * STACK_BESIDE_SIGNAL bytes. 0: it is too large. */
enum { STACK_BESIDE_SIGNAL = 8 * 1024 };
size_t stack_round(size_t size);
/* Takes a stack of that (rounded) size into *out, or returns a negated errno code: -ENOMEM; -EAGAIN:
 * options.max_stack_bytes is reached. stack_get_patiently makes room before it returns -EAGAIN; that may wait, so it is
 * not called within a switch. */
int stack_get_slow_(struct stack_user *user, size_t size, struct stack **out);
int stack_get_patiently(struct stack_user *user, size_t size, struct stack **out);
void stack_put_slow_(struct stack_user *user, struct stack *stack);

OWN_INLINE int stack_get(struct stack_user *user, size_t size, struct stack **out)
{
    struct stack *stack = user->cache.free;
    if (LIKELY(stack && stack->size == size)) {
        user->cache.free = stack->next;
        user->cache.count--;
        *out = stack;
        return 0;
    }
    return stack_get_slow_(user, size, out);
}

/* The stacks that a thread keeps serve no other thread, and their pages do not go back to the system. So the threads of
 * a pool keep STACKS_KEPT_IN_ALL, each of them at least and at most so many. */
enum { STACKS_KEPT_IN_ALL = 2048, STACKS_KEPT_MOST = 1024, STACKS_KEPT_LEAST = 128 };

/* The share of one thread, in a pool of so many threads. */
static inline uint32_t stacks_kept_of(uint32_t threads)
{
    uint32_t share = STACKS_KEPT_IN_ALL / threads;
    return share > STACKS_KEPT_MOST ? STACKS_KEPT_MOST : share < STACKS_KEPT_LEAST ? STACKS_KEPT_LEAST : share;
}

OWN_INLINE void stack_put(struct stack_user *user, struct stack *stack)
{
    if (LIKELY(stack->size == user->kept && user->cache.count < user->cache.max)) {
        stack->next = user->cache.free;
        user->cache.free = stack;
        user->cache.count++;
        return;
    }
    stack_put_slow_(user, stack);
}

/* The thread exits: its cached stacks go to the run. */
void stack_cache_flush(struct stack_user *user);
/* Returns the pages of a free stack to the system, and stops counting them (budget.h). False: there is no free
 * stack. */
bool stacks_hollow(struct stack_user *user);
/* Begins a round of trimming. Returns how many free stacks were not needed since the previous one. */
size_t stacks_begin_round(struct stack_user *user);
OWN_INLINE bool stacks_are_many(struct stacks *stacks)
{
    return atomic_load_explicit(&stacks->many, memory_order_relaxed);
}

/* The lowest address that frames may use: above the guard page, or the canary. */
char *stack_floor(const struct stack *stack);
/* Returns the pages below `used` to the system. Returns the lowest address that may still hold data. */
char *stack_discard(const struct stack *stack, char *used);
/* Whether a word of the canary, at the low end of a stack without a guard page, was overwritten. */
bool stack_overrun(const struct stack *stack);
/* Whether an address is in the guard page of this stack. */
bool stack_guards(const struct stack *stack, const void *address);
/* Whether a fault at the address was caused by a frame that has stepped over the guard page: the stack pointer is below
 * the stack, and the frame has touched bytes between the two. */
bool stack_stepped_over(const struct stack *stack, const void *address, const char *sp);
/* Whether the stack pointer is below the stack, whose size that is. Reads nothing of the stack's own: its header would
 * be a cache line more. */
OWN_INLINE bool stack_is_left(const struct stack *stack, size_t size, const char *sp)
{
    return sp < (const char *)stack - size;
}
/* Whether it lies in another stack of the run: a frame has stepped over the guard page. False for stacks of the
 * program's own. */
bool stack_is_anothers(struct stack_user *user, const char *sp);

#endif
