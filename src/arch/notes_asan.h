/*
 * The notes for AddressSanitizer and LeakSanitizer. The first has to know the bounds of the stack in use and keeps a
 * fake stack per stack; the second scans, besides the stacks in use, the live parts of the suspended ones, which are
 * registered as roots. The scheduler does that for the stacks of contexts (arch_note_suspended); a thread's own stack
 * is suspended whenever the thread is on another one, and is dealt with here. Included by notes.h only.
 */
#ifndef ARCH_NOTES_ASAN_H
#define ARCH_NOTES_ASAN_H

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>

#define ARCH_NOTES_KIND arch_notes_are_asan_
#define ARCH_NOTES_SEPARATE 0
#define ARCH_NOTES_MEMBARRIER 1
#define ARCH_NOTES_THREADS 0
#define ARCH_NOTES_HANDLES ((size_t)1 << 40)
#define ARCH_NOT_INSTRUMENTED

extern const char ARCH_NOTES_KIND;

struct arch_note {
    void *fake;      /* while suspended */
    const char *low; /* a thread's own are known after its first switch, as ASan tells them */
    size_t size;
    const char *root;       /* registered: [root, low + size); NULL: nothing */
    struct arch_note *from; /* of the switch that led here */
    char *sp;               /* a thread's own stack: below all of its live part; NULL: the stack of a context */
};

static inline void arch_note_suspended(struct arch_note *n, arch_context context)
{
    n->root = (const char *)context;
    __lsan_register_root_region(n->root, (size_t)(n->low + n->size - n->root));
}

static inline void arch_note_resumed(struct arch_note *n)
{
    if (n->root)
        __lsan_unregister_root_region(n->root, (size_t)(n->low + n->size - n->root));
    n->root = NULL;
}

static inline void arch_note_thread(struct arch_note *n)
{
    *n = (struct arch_note){.sp = (char *)__builtin_frame_address(0) + *(const volatile char *)&ARCH_NOTES_KIND};
}

/* What an earlier context has left poisoned there does not count. */
static inline void arch_note_make(struct arch_note *n, char *low, size_t size)
{
    *n = (struct arch_note){.low = low, .size = size};
    __asan_unpoison_memory_region(low, size);
}

static inline void arch_note_end(struct arch_note *n)
{
    (void)n;
}

static inline void arch_note_leave(struct arch_note *from, struct arch_note *to, bool ends)
{
    enum { BELOW = 1024 }; /* what the jump and its callers push yet */
    if (from->sp)
        from->sp = (char *)__builtin_frame_address(0) - BELOW;
    to->from = from;
    __sanitizer_start_switch_fiber(ends ? NULL : &from->fake, to->low, to->size);
}

static inline void arch_note_arrive(struct arch_note *to)
{
    const void *low;
    size_t size;
    __sanitizer_finish_switch_fiber(to->fake, &low, &size);
    if (to->sp)
        arch_note_resumed(to);
    if (to->from->sp) {
        to->from->low = low;
        to->from->size = size;
        arch_note_suspended(to->from, to->from->sp);
    }
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

/* Not every ASan does this for munmap; the next mapping there may be anybody's. */
static inline void arch_note_unmap(void *p, size_t size)
{
    __asan_unpoison_memory_region(p, size);
}

/* A byte of ASan's says which of 8 bytes may be used. Those of the frames are copied with them, after what the caller
 * stores behind these: else the frames would come back without their red zones. */
static inline size_t arch_image_size(size_t bytes)
{
    return bytes + bytes / 8 + 1;
}

static inline char *arch_note_shadow_(const void *at)
{
    size_t scale, offset;
    __asan_get_shadow_mapping(&scale, &offset);
    return (char *)(((uintptr_t)at >> scale) + offset);
}

static inline void arch_note_copy_(void *to, const void *from, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static inline void arch_image_save(struct arch_note *n, void *image, const char *at, size_t bytes, size_t beside)
{
    arch_note_resumed(n);
    arch_note_copy_(image, at, bytes);
    arch_note_copy_((char *)image + bytes + beside, arch_note_shadow_(at), bytes / 8);
    __asan_unpoison_memory_region(at, bytes);
    __lsan_register_root_region(image, bytes);
}

static inline void arch_image_load(struct arch_note *n, const void *image, char *at, size_t bytes, size_t beside)
{
    __lsan_unregister_root_region(image, bytes);
    arch_note_copy_(at, image, bytes);
    arch_note_copy_(arch_note_shadow_(at), (const char *)image + bytes + beside, bytes / 8);
    arch_note_suspended(n, at);
}

static inline void arch_image_start(struct arch_note *n, const void *image, char *at, size_t bytes)
{
    (void)n;
    arch_note_copy_(at, image, bytes);
    arch_note_copy_(arch_note_shadow_(at), (const char *)image + bytes, bytes / 8);
}

static inline void arch_image_drop(struct arch_note *n, void *image, size_t bytes)
{
    (void)n;
    __lsan_unregister_root_region(image, bytes);
}

#endif
