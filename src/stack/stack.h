/*
 * Stacks: made in regions, kept by every thread in a cache, guarded. See docs/stacks.md.
 */
#ifndef STACK_STACK_H
#define STACK_STACK_H

#include "memory.h"

#define STACK_CANARY UINT64_C(0x737472616e642121)

void stacks_open(struct stacks *stacks, size_t usual, bool required);
void stacks_close(struct stacks *stacks);
/* Between opening and closing, of seeded runs: begin with a region that an earlier one has left, leave one to the next.
 */
void stacks_take_stage(struct stacks *stacks);
void stacks_give_stage(struct stacks *stacks);
/* The size that a request is rounded up to: a power of two, at least four pages, with room for a guard page, the frame
 * of a signal and STACK_BESIDE_SIGNAL bytes; 0 if it is too large. */
enum { STACK_BESIDE_SIGNAL = 8 * 1024 };
size_t stack_round(size_t size);
/* A stack of that (rounded) size into *out, or a negated errno code: -ENOMEM; -EAGAIN: options.max_stack_bytes is
 * reached, which stack_get_patiently says only if it is so after room was made. That may wait, so it is not for the
 * middle of a switch. */
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

enum { STACKS_KEPT = 1024 };

OWN_INLINE void stack_put(struct stack_user *user, struct stack *stack)
{
    if (LIKELY(stack->size == user->kept && user->cache.count < STACKS_KEPT)) {
        stack->next = user->cache.free;
        user->cache.free = stack;
        user->cache.count++;
        return;
    }
    stack_put_slow_(user, stack);
}

/* The thread goes: what it keeps is everybody's. */
void stack_cache_flush(struct stack_user *user);
/* The pages of a free stack go back to the system, and are counted no more (budget.h). False: there is none. */
bool stacks_hollow(struct stack_user *user);
/* A round of trimming begins. Returns how many free stacks nobody has needed since the one before. */
size_t stacks_begin_round(struct stack_user *user);
OWN_INLINE bool stacks_are_many(struct stacks *stacks)
{
    return atomic_load_explicit(&stacks->many, memory_order_relaxed);
}

/* The lowest address that frames may use: above the guard page, or the canary. */
char *stack_floor(const struct stack *stack);
/* What lies below `used` is nobody's any more: its pages go back to the system. Returns the lowest address that may
 * hold something still. */
char *stack_discard(const struct stack *stack, char *used);
/* Whether one of the words at the low end of a stack without a guard page was overwritten. */
bool stack_overrun(const struct stack *stack);
/* Whether an address lies in the guard page of this stack. */
bool stack_guards(const struct stack *stack, const void *address);
/* Whether a fault at the address comes of a frame that has stepped over the guard page: the stack pointer is below the
 * stack, and the frame's bytes between the two were touched. */
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
