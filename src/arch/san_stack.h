/*
 * The tools' record of a stack, and their functions, for san*.c only. The functions are weak: NULL if the tool does
 * not watch this program. They are declared here because each compiler has headers for its own tools only.
 */
#ifndef ARCH_SAN_STACK_H
#define ARCH_SAN_STACK_H

#include "state.h"

struct arch_san_stack {
    struct arch_san_stack *next; /* while it is unused */
    char *low;                   /* of a context's stack. ASan: those of a thread's own stack are known after its first
                                  * switch */
    size_t size;
    void *fiber; /* TSan's */
    unsigned id; /* valgrind's */

    /* ASan's. */
    void *fake;                  /* while suspended */
    const char *root;            /* registered: [root, low + size); NULL: nothing */
    struct arch_san_stack *from; /* where the last switch to this stack came from */
    char *sp;                    /* a thread's own stack: below all of its live part; NULL: the stack of a context */
};

#define WEAK __attribute__((weak))
WEAK void __sanitizer_start_switch_fiber(void **fake, const void *low, size_t size);
WEAK void __sanitizer_finish_switch_fiber(void *fake, const void **low, size_t *size);
WEAK void __asan_unpoison_memory_region(const volatile void *at, size_t size);
WEAK void __asan_handle_no_return(void);
WEAK void __asan_get_shadow_mapping(size_t *scale, size_t *offset);
WEAK void __lsan_register_root_region(const void *at, size_t size);
WEAK void __lsan_unregister_root_region(const void *at, size_t size);
WEAK void *__tsan_get_current_fiber(void);
WEAK void *__tsan_create_fiber(unsigned flags);
WEAK void __tsan_destroy_fiber(void *fiber);
WEAK void __tsan_switch_to_fiber(void *fiber, unsigned flags);
WEAK void __tsan_acquire(void *at);
WEAK void AnnotateBenignRaceSized(const char *file, int line, const volatile void *at, size_t size, const char *why);
WEAK void __tsan_release(void *at);

/* san_asan.c, also for LeakSanitizer alone */
void asan_thread(struct arch_san_stack *n);
void asan_make(struct arch_san_stack *n);
void asan_end(struct arch_san_stack *n);
void asan_leave(struct arch_san_stack *from, struct arch_san_stack *to, bool ends);
void asan_arrive(struct arch_san_stack *to);
void asan_suspended(struct arch_san_stack *n, const char *context);
void asan_resumed(struct arch_san_stack *n);
void asan_unmap(const void *p, size_t size);
void asan_save(struct arch_san_stack *n, char *saved, const char *at, size_t bytes, size_t beside);
void asan_load(struct arch_san_stack *n, const char *saved, char *at, size_t bytes, size_t beside);
void asan_start(const char *saved, char *at, size_t bytes);
void asan_drop(const void *saved, size_t bytes);

/* san_tsan.c */
/* Returns the calling thread's fiber. */
void *tsan_thread(void);
void *tsan_make(char *low, size_t size);
void tsan_switch(void *fiber);
/* A spin lock that TSan does not see, so that it does not order the strands that take it. */
void tsan_lock(void);
void tsan_unlock(void);

#endif
