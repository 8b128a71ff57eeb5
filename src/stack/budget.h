/*
 * The limit of a run's memory for stacks (options.max_stack_bytes): what is counted against it, and what is given back
 * when it is reached. Counted are stacks by their size, as that is all that they can ever take, whatever they have
 * used; and memory for saved stacks, chunks and mappings, while it has pages. A run without a limit counts nothing.
 *
 * PARTIES   threads that need a stack, or memory for a saved stack; threads that give some back.
 * STATE     memory.taken <= most, but for saved stacks of strands that have begun: those can't be refused.
 *           user->ending: a strand has ended on this thread, its end can be seen, and its stack is not back yet.
 * PROTOCOL  take by compare-and-swap, before the memory is had; give when it is about to go. Who finds the limit
 *           reached makes room: it waits for those who are ending, gives memory of free saved stacks back to the
 * system, and a free stack's pages; and tries again if there was any. In a run with a limit threads keep no stacks for
 * themselves, so all that are free can be found. INVARIANTS [B1] a request is refused only if what is in use, and what
 * is asked for, is more than the limit: whoever has seen a strand's end can have its stack. So what is free is taken
 * out of its list, and given, under one lock, and who finds nothing free looks whether there is room by now. NOT DONE
 * bytes that stacks have touched: nobody knows them without asking the system at each switch, and a strand that touches
 * one more can't be refused it. A limit for each class of sizes. TESTED BY tests/spec/stack_limit.c.
 */
#ifndef STACK_BUDGET_H
#define STACK_BUDGET_H

#include "memory.h"

/* False: it would be more than the limit; then the thread notes how much was wanted. `must`: it is taken all the same.
 */
bool budget_take_(struct stack_user *user, size_t bytes, bool must);
OWN_INLINE bool budget_take(struct stack_user *user, size_t bytes, bool must)
{
    return LIKELY(!user->memory->most) || budget_take_(user, bytes, must);
}

/* Whether one more strand may begin on a shared stack: its frames will have to be saved one day, and then that can't
 * be refused; so not while more is taken than the limit. */
bool budget_may_begin_(struct stack_user *user);
OWN_INLINE bool budget_may_begin(struct stack_user *user)
{
    return LIKELY(!user->memory->most) || budget_may_begin_(user);
}

OWN_INLINE void budget_give(struct stack_memory *memory, size_t bytes)
{
    if (UNLIKELY(memory->most))
        atomic_fetch_sub_explicit(&memory->taken, bytes, memory_order_release);
}

/* After a refusal: whether something has come free since. Under no lock, and not in the middle of a switch. */
bool budget_make_room(struct stack_user *user);

/* The strand that runs is about to be seen to have ended; its stack, or saved stack, is back. */
OWN_INLINE void budget_ends(struct stack_user *user)
{
    if (UNLIKELY(user->memory->most))
        atomic_store_explicit(&user->ending, 1, memory_order_relaxed); /* the end's release publishes it */
}

OWN_INLINE void budget_ended(struct stack_user *user)
{
    if (UNLIKELY(user->memory->most))
        atomic_store_explicit(&user->ending, 0, memory_order_release);
}

#endif
