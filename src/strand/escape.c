/*
 * Reports of addresses in the stack of a shared fibre, which other strands use while the caller is inactive.
 */
#include "escape.h"

#include "misuse.h"

#include <string.h>

static size_t below_top(const struct cb *me, const void *at)
{
    return (size_t)(me->member.fibre->stack->top - (const char *)at);
}

COLD void must_not_escape_(struct cb *me, const void *at, const char *what, const char *function)
{
    MISUSE_STRAND(function, me,
                  "%s points into the stack of the caller's shared fibre, %zu bytes below its top, which other strands "
                  "use while the caller is inactive: pass memory that lies elsewhere",
                  what, below_top(me, at));
}

#ifdef STRAND_DEBUG_BUILD
static COLD __attribute__((noreturn)) void address_escapes(struct cb *me, const void *address, size_t at,
                                                           const char *what, const char *function)
{
    MISUSE_STRAND(function, me,
                  "%s, which is copied, has at byte %zu an address in the stack of the caller's shared fibre, %zu "
                  "bytes below its top, which other strands use while the caller is inactive",
                  what, at, below_top(me, address));
}

void must_not_escape_copied(struct thread *thread, const void *block, size_t size, atomic_flag *lock, const char *what,
                            const char *function)
{
    void *word;
    size_t end = thread_on_shared(thread) ? size : 0;
    for (size_t at = -(uintptr_t)block % sizeof word; at + sizeof word <= end; at += sizeof word) {
        memcpy(&word, (const char *)block + at, sizeof word);
        arch_san_unwritten(&word, sizeof word);
        if (!lies_on_shared_stack(thread, word))
            continue;
        if (lock && thread->concurrent)
            spin_unlock(lock);
        address_escapes(current_of(thread), word, at, what, function);
    }
}
#endif

COLD void must_not_escape_object_(struct cb *me, const void *object, const char *noun, const char *function)
{
    MISUSE_STRAND(function, me,
                  "the %s lies in the stack of the caller's shared fibre, %zu bytes below its top, which other strands "
                  "use while the caller is inactive: put it elsewhere",
                  noun, below_top(me, object));
}
