/*
 * Detects that pthread_exit or pthread_cancel ends a thread that runs strands. Both unwind the current stack, which is
 * a strand's, and run its clean-ups, to which this looks like a normal way out of each block. So it has to be detected
 * before the first of them.
 *
 * glibc walks the frames with a function of its own (nptl/unwind.c). For each frame it tests whether the frame lies
 * outside of the innermost registered jump target; if so, it calls the functions that were registered since that target
 * was. Addresses are compared by their distance above the end of the thread's own stack, modulo 2^64. So if a target's
 * stack pointer is that end, every frame is outside of it, including the first one, wherever the strand's stack is. The
 * registered function does not return, so the target is never jumped to. musl calls the registered functions at once.
 *
 * If the C library has none of this, or lays out its threads in another way, the frame at the base of the strand's
 * stack detects it, after the clean-ups (src/strand/entry.c); a program that has linked libunwind does not get there.
 */
#include "state.h"

#include <pthread.h>
#include <unistd.h>

/* As exported by glibc; pthread.h declares some of these only to code that is compiled without -fexceptions. */
extern void __pthread_register_cancel(__pthread_unwind_buf_t *buffer) __attribute__((weak));
extern void __pthread_unregister_cancel(__pthread_unwind_buf_t *buffer) __attribute__((weak));
extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*fn)(void *), void *arg)
    __attribute__((weak));
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int run) __attribute__((weak));

enum { SAVED_STACK_POINTER = 6, MANGLED_BY = 17 };

/* No frame lies between the end of the thread's own stack and this. The first thread's stack is above all other memory,
 * so that 0 comes next. Behind the end of any other thread's stack lies its description, of less than a page. */
static uintptr_t end_of_stack(void)
{
    bool first = arch_thread_id() == (uint32_t)getpid();
    return first ? 0 : (uintptr_t)pthread_self() + arch_page_size();
}

/* As setjmp writes it. */
static uintptr_t mangled(uintptr_t address)
{
    uintptr_t guard;
    __asm__("movq %%fs:0x30, %0" : "=r"(guard));
    address ^= guard;
    return address << MANGLED_BY | address >> (64 - MANGLED_BY);
}

static void exits(void *unused)
{
    (void)unused;
    void (*on_exit)(void) = atomic_load_explicit(&arch_state.on_exit, memory_order_acquire); /* [PB1] */
    if (on_exit)
        on_exit();
}

void arch_exits_watched(void (*fn)(void *), void *arg)
{
    struct _pthread_cleanup_buffer function;
    __pthread_unwind_buf_t buffer = {0};
    bool has_buffers = __pthread_register_cancel && __pthread_unregister_cancel;
    bool has_functions = _pthread_cleanup_push && _pthread_cleanup_pop;
    buffer.__cancel_jmp_buf[0].__cancel_jmp_buf[SAVED_STACK_POINTER] = (long)mangled(end_of_stack());
    if (has_buffers)
        __pthread_register_cancel(&buffer);
    if (has_functions)
        _pthread_cleanup_push(&function, exits, NULL);
    fn(arg);
    if (has_functions)
        _pthread_cleanup_pop(&function, 0);
    if (has_buffers)
        __pthread_unregister_cancel(&buffer);
}

void arch_on_exit(void (*on_exit)(void))
{
    atomic_store_explicit(&arch_state.on_exit, on_exit, memory_order_release); /* [PB1] */
}
