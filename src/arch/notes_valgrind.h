/*
 * The notes for valgrind: which memory is a stack, so that a change of the stack pointer from one to the other is not
 * taken for a huge frame. Included by notes.h only.
 */
#ifndef ARCH_NOTES_VALGRIND_H
#define ARCH_NOTES_VALGRIND_H

#include <valgrind/valgrind.h>

#define ARCH_NOTES_KIND arch_notes_are_valgrind_
#define ARCH_NOTES_SEPARATE 0
#define ARCH_NOTES_MEMBARRIER (!RUNNING_ON_VALGRIND)
#define ARCH_NOTES_HANDLES ((size_t)1 << 40)
#define ARCH_NOT_INSTRUMENTED

extern const char ARCH_NOTES_KIND;

struct arch_note {
    unsigned id;
};

static inline void arch_note_thread(struct arch_note *n)
{
    n->id = (unsigned)*(const volatile char *)&ARCH_NOTES_KIND; /* valgrind knows the stacks of threads */
}

static inline void arch_note_make(struct arch_note *n, char *low, size_t size)
{
    n->id = VALGRIND_STACK_REGISTER(low, low + size);
}

static inline void arch_note_end(struct arch_note *n)
{
    VALGRIND_STACK_DEREGISTER(n->id);
}

static inline void arch_note_leave(struct arch_note *from, struct arch_note *to, bool ends)
{
    (void)from, (void)to, (void)ends;
}

static inline void arch_note_arrive(struct arch_note *to)
{
    (void)to;
}

static inline void arch_note_suspended(struct arch_note *n, arch_context context)
{
    (void)n, (void)context;
}

static inline void arch_note_resumed(struct arch_note *n)
{
    (void)n;
}

static inline void arch_note_release(void *p)
{
    (void)p;
}

static inline void arch_note_acquire(void *p)
{
    (void)p;
}

#endif
