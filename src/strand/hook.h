/*
 * Functions of the user's that the library calls in the middle of something, under a lock or in nobody's strand: they
 * may neither suspend nor throw. While one runs, its strand is in a no-suspend section, whose place is the object that
 * the function was given to. It ends by hook_over; else it was left by an exception, and that is misuse.
 *
 *     struct hook hook HOOK = {.name = "strand_chan_attr.drop", .made = made, .object = chan};
 *     hook_enter(&hook);
 *     chan->drop(value);
 *     hook_over(&hook);
 */
#ifndef STRAND_HOOK_H
#define STRAND_HOOK_H

#include "misuse.h"
#include "section.h"

struct hook {
    const char *name; /* of the member that the user has put the function into */
    /* Where the object was made, for a report. What is locked for the function's sake is given back first: what is told
     * of the misuse may look at the object. */
    const char *(*made)(const struct hook *hook, char *buffer, size_t size);
    void *object;
    struct thread *thread; /* it does not suspend: after it, it is the same */
    struct cb *me;         /* NULL: outside of strands, where whatever may block is misuse anyway */
    bool runs;
    struct strand_guard_ section;
};

static inline void hook_enter(struct hook *hook)
{
    struct thread *thread = hook->thread = thread_self();
    hook->me = thread && thread->current ? current_of(thread) : NULL;
    hook->runs = true;
    if (hook->me)
        hook->section = section_enter(hook->me, (const char *)hook, SECTION_OF_HOOK, NULL);
}

static inline void hook_over(struct hook *hook)
{
    hook->runs = false;
    if (UNLIKELY(thread_self() != hook->thread)) /* it has forked, and this is the child */
        misuse_forked(NULL, hook->name);
    if (hook->me)
        section_leave(hook->me, &hook->section);
}

/* Only by an exception with the function still running. */
void hook_thrown_(struct hook *hook);
static inline void hook_left(struct hook *hook)
{
    if (UNLIKELY(hook->runs))
        hook_thrown_(hook);
}
#define HOOK __attribute__((cleanup(hook_left)))

#endif
