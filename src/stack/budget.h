/*
 * The limit of a run's memory for stacks (options.max_stack_bytes): what is counted, and what is freed when the limit
 * is reached. Two kinds of memory count: stacks, with their full size, because they may grow to it; and chunks and
 * mappings for saved stacks, while they have pages. A run without a limit counts nothing.
 *
 * PARTIES   threads that need a stack, or memory for a saved stack; threads that return some.
 * STATE     memory.taken <= most, except for saved stacks of strands that have begun: those can't be refused.
 *           user->ending: a strand has ended on this thread, its end is visible, and its stack is not free yet.
 * PROTOCOL  A thread takes by compare-and-swap before it allocates, and gives just before it frees. A thread that hits
 *           the limit makes room: it waits for the threads that are `ending`, frees the memory of free saved stacks and
 *           the pages of one free stack, and retries if there was any. In a run with a limit threads have no caches of
 *           stacks, so every free stack can be found.
 * INVARIANTS [B1] A request is refused only if the memory in use and the request together exceed the limit: a thread
 *           that has seen a strand's end can have its stack. So free memory leaves its list and is given under one
 *           lock, and a thread that finds nothing free checks whether there is room by now.
 * ORDERING  `taken` only counts, and is relaxed: the locks of the lists order the memory. The store that clears
 *           `ending` (release) pairs with the load of the thread that waits for it (acquire): that one finds the free
 *           stack [B1].
 * NOT DONE  Bytes that stacks have touched: they are unknown without a system call at each switch, and a strand that
 *           touches one more can't be refused it. A limit for each size class.
 * TESTED BY tests/spec/stack_limit.c.
 */
#ifndef STACK_BUDGET_H
#define STACK_BUDGET_H

#include "memory.h"

/* Counts the bytes. False: they would exceed the limit; user->wanted then says how many were wanted. `must`: the limit
 * does not apply. */
bool budget_take_(struct stack_user *user, size_t bytes, bool must);
OWN_INLINE bool budget_take(struct stack_user *user, size_t bytes, bool must)
{
    return LIKELY(!user->memory->most) || budget_take_(user, bytes, must);
}

/* Whether one more strand may begin on a shared stack: not while more than the limit is taken, because saving its
 * frames later can't be refused. */
bool budget_may_begin_(struct stack_user *user);
OWN_INLINE bool budget_may_begin(struct stack_user *user)
{
    return LIKELY(!user->memory->most) || budget_may_begin_(user);
}

OWN_INLINE void budget_give(struct stack_memory *memory, size_t bytes)
{
    if (UNLIKELY(memory->most))
        atomic_fetch_sub_explicit(&memory->taken, bytes, memory_order_relaxed);
}

/* Frees memory after a refusal. Returns whether some has become free since. Called without locks, and never within a
 * switch. */
bool budget_make_room(struct stack_user *user);

/* The end of the running strand is about to become visible (budget_ends); its stack or saved stack is free
 * (budget_ended). */
OWN_INLINE void budget_ends(struct stack_user *user)
{
    if (UNLIKELY(user->memory->most))
        atomic_store_explicit(&user->ending, 1, memory_order_relaxed); /* the end's release publishes it */
}

OWN_INLINE void budget_ended(struct stack_user *user)
{
    if (UNLIKELY(user->memory->most))
        atomic_store_explicit(&user->ending, 0, memory_order_release); /* [B1] */
}

#endif
