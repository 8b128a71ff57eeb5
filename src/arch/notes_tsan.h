/*
 * The notes for ThreadSanitizer. Every context is a fiber of TSan's, and a switch between two of them means no order:
 * what one strand did does not happen before what the next one does just because a thread runs both. Order is announced
 * by arch_note_release and arch_note_acquire only. Included by notes.h only.
 */
#ifndef ARCH_NOTES_TSAN_H
#define ARCH_NOTES_TSAN_H

#include <sanitizer/tsan_interface.h>

#define ARCH_NOTES_KIND arch_notes_are_tsan_
#define ARCH_NOTES_SEPARATE 1
#define ARCH_NOTES_MEMBARRIER 0
#define ARCH_NOTES_THREADS 1
/* TSan leaves a program about 1.5 TiB around the shared libraries, wherever chance puts these. */
#define ARCH_NOTES_HANDLES ((size_t)1 << 36)
/* clang reports entries and exits also of functions that are not sanitized. */
#ifdef __clang__
#define ARCH_NOT_INSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#else
#define ARCH_NOT_INSTRUMENTED __attribute__((no_sanitize("thread")))
#endif

extern const char ARCH_NOTES_KIND;

struct arch_note {
    void *fiber;
};

/* notes.c */
void arch_note_make(struct arch_note *n, char *low, size_t size);

ARCH_NOT_INSTRUMENTED static inline void arch_note_thread(struct arch_note *n)
{
    (void)*(const volatile char *)&ARCH_NOTES_KIND;
    n->fiber = __tsan_get_current_fiber();
}

ARCH_NOT_INSTRUMENTED static inline void arch_note_end(struct arch_note *n)
{
    __tsan_destroy_fiber(n->fiber);
}

ARCH_NOT_INSTRUMENTED static inline void arch_note_leave(struct arch_note *from, struct arch_note *to, bool ends)
{
    (void)from, (void)ends;
    __tsan_switch_to_fiber(to->fiber, __tsan_switch_to_fiber_no_sync);
}

ARCH_NOT_INSTRUMENTED static inline void arch_note_arrive(struct arch_note *to)
{
    (void)to;
}

ARCH_NOT_INSTRUMENTED static inline void arch_note_suspended(struct arch_note *n, arch_context context)
{
    (void)n, (void)context;
}

ARCH_NOT_INSTRUMENTED static inline void arch_note_resumed(struct arch_note *n)
{
    (void)n;
}

ARCH_NOT_INSTRUMENTED static inline void arch_note_release(void *p)
{
    __tsan_release(p);
}

ARCH_NOT_INSTRUMENTED static inline void arch_note_acquire(void *p)
{
    __tsan_acquire(p);
}

ARCH_NOT_INSTRUMENTED static inline void arch_note_look(void *p, size_t size)
{
    (void)p, (void)size;
}

ARCH_NOT_INSTRUMENTED static inline void arch_note_unmap(void *p, size_t size)
{
    (void)p, (void)size;
}

ARCH_NOT_INSTRUMENTED static inline size_t arch_image_size(size_t bytes)
{
    return bytes;
}

/* memcpy would count as an access of whoever switches. */
ARCH_NOT_INSTRUMENTED static inline void arch_image_save(struct arch_note *n, void *image, const char *at, size_t bytes,
                                                         size_t beside)
{
    (void)n, (void)beside;
    __asm__ volatile("rep movsb" : "+D"(image), "+S"(at), "+c"(bytes) : : "memory");
}

ARCH_NOT_INSTRUMENTED static inline void arch_image_load(struct arch_note *n, const void *image, char *at, size_t bytes,
                                                         size_t beside)
{
    (void)n, (void)beside;
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(image), "+c"(bytes) : : "memory");
}

ARCH_NOT_INSTRUMENTED static inline void arch_image_start(struct arch_note *n, const void *image, char *at,
                                                          size_t bytes)
{
    arch_image_load(n, image, at, bytes, 0);
}

ARCH_NOT_INSTRUMENTED static inline void arch_image_drop(struct arch_note *n, void *image, size_t bytes)
{
    (void)n, (void)image, (void)bytes;
}

#endif
