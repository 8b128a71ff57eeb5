/*
 * Addresses that must not lie in the stack of a shared fibre, because others use them.
 */
#ifndef STRAND_ESCAPE_H
#define STRAND_ESCAPE_H

#include "core.h"

/* Whether an address lies in the stack of the shared fibre that the caller runs on. */
OWN_INLINE bool lies_on_shared_stack(struct thread *thread, const void *at)
{
    return UNLIKELY(thread_on_shared(thread)) && shared_fibre_has(thread->current, at);
}

/* An address is about to be handed to others: it must not lie in the stack of the shared fibre that the caller runs on,
 * which is somebody else's while the caller is inactive. Misuse of `function`; what: "the argument", ... */
void must_not_escape_(struct cb *me, const void *at, const char *what, const char *function);
OWN_INLINE void must_not_escape(struct thread *thread, const void *at, const char *what, const char *function)
{
    if (UNLIKELY(lies_on_shared_stack(thread, at)))
        must_not_escape_(current_of(thread), at, what, function);
}

/* Debug builds: what is copied for others holds no such address either. Each word of it is looked at, what lies between
 * two members too. lock: given back before a misuse is told, in a run of several threads; or NULL. */
#ifdef STRAND_DEBUG_BUILD
void must_not_hold_address(struct thread *thread, const void *block, size_t size, atomic_flag *lock, const char *what,
                           const char *function);
#else
OWN_INLINE void must_not_hold_address(struct thread *thread, const void *block, size_t size, atomic_flag *lock,
                                      const char *what, const char *function)
{
    (void)thread, (void)block, (void)size, (void)lock, (void)what, (void)function;
}
#endif

/* The same of an object of the user's that others wait at, or are about to. A zeroed one is first seen where somebody
 * finds it taken: so this stands on the slow ways of the functions on it. O(1). */
void must_lie_elsewhere_(struct cb *me, const void *object, const char *noun, const char *function);
OWN_INLINE void must_lie_elsewhere(struct thread *thread, const void *object, const char *noun, const char *function)
{
    if (UNLIKELY(lies_on_shared_stack(thread, object)))
        must_lie_elsewhere_(current_of(thread), object, noun, function);
}

#endif
