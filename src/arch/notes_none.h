/*
 * The notes of ordinary builds: nothing. Included by notes.h only.
 */
#ifndef ARCH_NOTES_NONE_H
#define ARCH_NOTES_NONE_H

#define ARCH_NOTES_KIND arch_notes_are_none_
#define ARCH_NOTES_SEPARATE 0
#define ARCH_NOTES_MEMBARRIER 1
#define ARCH_NOTES_THREADS 0
#define ARCH_NOTES_HANDLES ((size_t)1 << 40)
#define ARCH_NOT_INSTRUMENTED

extern const char ARCH_NOTES_KIND;

struct arch_note {
    char unused;
};

static inline void arch_note_thread(struct arch_note *n)
{
    n->unused = *(const volatile char *)&ARCH_NOTES_KIND;
}

static inline void arch_note_make(struct arch_note *n, char *low, size_t size)
{
    (void)n, (void)low, (void)size;
}

static inline void arch_note_end(struct arch_note *n)
{
    (void)n;
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

static inline void arch_note_look(void *p, size_t size)
{
    (void)p, (void)size;
}

static inline void arch_note_unmap(void *p, size_t size)
{
    (void)p, (void)size;
}

static inline void arch_note_refill_(struct arch_note *n, char *at, size_t size)
{
    (void)n, (void)at, (void)size;
}

static inline void arch_note_copied_(const void *image, size_t size)
{
    (void)image, (void)size;
}

#include "notes_image.h"

#endif
