/*
 * Addresses that other strands or threads use must not lie in the stack of a shared fibre.
 */
#ifndef STRAND_ESCAPE_H
#define STRAND_ESCAPE_H

#include "core.h"

/* Whether an address lies in the stack of the shared fibre that the caller runs on. */
OWN_INLINE bool lies_on_shared_stack(struct thread *thread, const void *at)
{
    return UNLIKELY(thread_on_shared(thread)) && shared_fibre_has(thread->current, at);
}

/* An address is about to be handed to others. Misuse of `function` if it lies in the stack of the shared fibre that the
 * caller runs on, which other strands use while the caller is inactive. what: "the argument", for example. */
void must_not_escape_(struct cb *me, const void *at, const char *what, const char *function);
OWN_INLINE void must_not_escape(struct thread *thread, const void *at, const char *what, const char *function)
{
    if (UNLIKELY(lies_on_shared_stack(thread, at)))
        must_not_escape_(current_of(thread), at, what, function);
}

/* Debug builds: a block that is copied for others must not contain such an address either. Every word is checked,
 * padding included. lock: in a run of several threads, released before a misuse is reported; or NULL. */
#ifdef STRAND_DEBUG_BUILD
void must_not_escape_copied(struct thread *thread, const void *block, size_t size, atomic_flag *lock, const char *what,
                            const char *function);
#else
OWN_INLINE void must_not_escape_copied(struct thread *thread, const void *block, size_t size, atomic_flag *lock,
                                       const char *what, const char *function)
{
    (void)thread, (void)block, (void)size, (void)lock, (void)what, (void)function;
}
#endif

/* Likewise for an object in the user's memory that others wait at. The library first sees a zeroed object when a caller
 * contends for it, so this check stands on the slow paths. O(1). */
void must_not_escape_object_(struct cb *me, const void *object, const char *noun, const char *function);
OWN_INLINE void must_not_escape_object(struct thread *thread, const void *object, const char *noun,
                                       const char *function)
{
    if (UNLIKELY(lies_on_shared_stack(thread, object)))
        must_not_escape_object_(current_of(thread), object, noun, function);
}

#endif
