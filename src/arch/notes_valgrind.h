/*
 * The notes for valgrind: which memory is a stack, so that a change of the stack pointer from one to the other is not
 * taken for a huge frame; and, of a stack that frames are copied into, that what others have left below them may not be
 * used. Included by notes.h only.
 */
#ifndef ARCH_NOTES_VALGRIND_H
#define ARCH_NOTES_VALGRIND_H

#include <valgrind/memcheck.h>
#include <valgrind/valgrind.h>

#define ARCH_NOTES_KIND arch_notes_are_valgrind_
#define ARCH_NOTES_SEPARATE 0
#define ARCH_NOTES_MEMBARRIER (!RUNNING_ON_VALGRIND)
#define ARCH_NOTES_THREADS 0
#define ARCH_NOTES_HANDLES ((size_t)1 << 40)
#define ARCH_NOT_INSTRUMENTED

extern const char ARCH_NOTES_KIND;

struct arch_note {
    unsigned id;
    char *low; /* of the stack of a context */
};

static inline void arch_note_thread(struct arch_note *n)
{
    n->id = (unsigned)*(const volatile char *)&ARCH_NOTES_KIND; /* valgrind knows the stacks of threads */
}

static inline void arch_note_make(struct arch_note *n, char *low, size_t size)
{
    n->id = VALGRIND_STACK_REGISTER(low, low + size);
    n->low = low;
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

/* Not a call: its return would take from the caller again what lies below his frame. */
__attribute__((always_inline)) static inline void arch_note_look(void *p, size_t size)
{
    (void)VALGRIND_MAKE_MEM_DEFINED(p, size);
}

static inline void arch_note_unmap(void *p, size_t size)
{
    (void)p, (void)size;
}

/* Below the frames lie those of another strand. Its own, of calls that have returned, would be out of bounds by now.
 * The lowest page is a guard, or has words that tell of an overflow. */
static inline void arch_note_refill_(struct arch_note *n, char *at, size_t size)
{
    char *low = n->low + arch_page_size();
    if (at > low)
        (void)VALGRIND_MAKE_MEM_NOACCESS(low, at - low);
    (void)VALGRIND_MAKE_MEM_UNDEFINED(at, size);
}

/* What it points to is known by the frames in the stack from now on. */
static inline void arch_note_copied_(const void *image, size_t size)
{
    (void)VALGRIND_MAKE_MEM_UNDEFINED(image, size);
}

#include "notes_image.h"

#endif
