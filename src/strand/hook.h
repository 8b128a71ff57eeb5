/*
 * The library calls some functions of the user under a lock, or outside of strands. They may neither suspend nor throw.
 * While one runs, its strand is in a no-suspend section, and the struct hook stands for the place of that section. The
 * call ends by hook_over. If hook_over is skipped, an exception has left the function, which is misuse.
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
    const char *name; /* the member that holds the function */
    /* Writes for a report where the object was made. First it releases the locks that are held during the call, because
     * the report may read the object. */
    const char *(*made)(const struct hook *hook, char *buffer, size_t size);
    void *object;
    struct thread *thread; /* the function does not suspend, so the thread stays the same */
    struct cb *me;         /* NULL outside of strands, where every operation that may block is misuse anyway */
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
    if (UNLIKELY(thread_self() != hook->thread)) /* the function has forked, and this is the child */
        misuse_forked(NULL, hook->name);
    if (hook->me)
        section_leave(hook->me, &hook->section);
}

/* Misuse if the function is still running: an exception leaves it. */
void misuse_hook_thrown_(struct hook *hook);
static inline void hook_left(struct hook *hook)
{
    if (UNLIKELY(hook->runs))
        misuse_hook_thrown_(hook);
}
#define HOOK __attribute__((cleanup(hook_left)))

#endif
