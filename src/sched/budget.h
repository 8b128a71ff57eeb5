/*
 * The limit of a run's memory for stacks (options.max_stack_bytes): what is counted against it, and what is given back
 * when it is reached. Counted are stacks by their size, as that is all that they can ever take, whatever they have
 * used; and memory for images, chunks and mappings, while it has pages. A run without a limit counts nothing.
 *
 * PARTIES   threads that need a stack, or memory for an image; threads that give some back.
 * STATE     subprocess.stack_bytes <= stack_most, but for images of strands that have begun: those can't be refused.
 *           thread->ending: a strand has ended on this thread, its end can be seen, and its stack is not back yet.
 * PROTOCOL  take by compare-and-swap, before the memory is had; give when it is about to go. Who finds the limit
 *           reached makes room: it waits for those who are ending, gives memory of free images back to the system,
 *           and a free stack's pages; and tries again if there was any. In a run with a limit threads keep no stacks
 *           for themselves, so all that are free can be found.
 * INVARIANTS [B1] a request is refused only if what is in use, and what is asked for, is more than the limit: whoever
 *           has seen a strand's end can have its stack. So what is free is taken out of its list, and given, under
 *           one lock, and who finds nothing free looks whether there is room by now.
 * NOT DONE  bytes that stacks have touched: nobody knows them without asking the system at each switch, and a strand
 *           that touches one more can't be refused it. A limit for each class of sizes.
 * TESTED BY tests/spec/stack_limit.c.
 */
#ifndef SCHED_BUDGET_H
#define SCHED_BUDGET_H

#include "sched.h"

/* False: it would be more than the limit; then the thread notes how much was wanted. `must`: it is taken all the same.
 */
bool budget_take_(struct thread *thread, size_t bytes, bool must);
OWN_INLINE bool budget_take(struct thread *thread, size_t bytes, bool must)
{
    return LIKELY(!thread->sub->stack_most) || budget_take_(thread, bytes, must);
}

/* Whether one more strand may begin on an opened fibre: its frames will have to be saved one day, and then that can't
 * be refused; so not while more is taken than the limit. */
bool budget_may_begin_(struct thread *thread);
OWN_INLINE bool budget_may_begin(struct thread *thread)
{
    return LIKELY(!thread->sub->stack_most) || budget_may_begin_(thread);
}

OWN_INLINE void budget_give(struct subprocess *sub, size_t bytes)
{
    if (UNLIKELY(sub->stack_most))
        atomic_fetch_sub_explicit(&sub->stack_bytes, bytes, memory_order_release);
}

/* After a refusal: whether something has come free since. Under no lock, and not in the middle of a switch. */
bool budget_make_room(struct thread *thread);

/* The strand that runs is about to be seen to have ended; its stack, or image, is back. */
OWN_INLINE void budget_ends(struct thread *thread)
{
    if (UNLIKELY(thread->sub->stack_most))
        atomic_store_explicit(&thread->ending, 1, memory_order_relaxed); /* the end's release publishes it */
}

OWN_INLINE void budget_ended(struct thread *thread)
{
    if (UNLIKELY(thread->sub->stack_most))
        atomic_store_explicit(&thread->ending, 0, memory_order_release);
}

#endif
