/*
 * Announcements to AddressSanitizer and LeakSanitizer. The first has to know the bounds of the stack in use and keeps a
 * fake stack per stack. The second scans, besides the stacks in use, the live parts of the suspended ones, which are
 * registered as roots. The scheduler does that for the stacks of contexts (arch_san_suspended); a thread's own stack
 * is suspended whenever the thread is on another one, and is handled here.
 *
 * LeakSanitizer alone knows no switch of stacks. It scans all of a thread's own stack while the thread is elsewhere; a
 * context's stack is a root from its beginning to its end.
 */
#include "san_stack.h"

static bool leaks_only(void)
{
    return arch_tool == ARCH_TOOL_LSAN;
}

static void set_root(struct arch_san_stack *n, const char *root)
{
    n->root = root;
    if (__lsan_register_root_region)
        __lsan_register_root_region(root, (size_t)(n->low + n->size - root));
}

static void clear_root(struct arch_san_stack *n)
{
    if (n->root && __lsan_unregister_root_region)
        __lsan_unregister_root_region(n->root, (size_t)(n->low + n->size - n->root));
    n->root = NULL;
}

void asan_suspended(struct arch_san_stack *n, const char *context)
{
    if (!leaks_only())
        set_root(n, context);
}

void asan_resumed(struct arch_san_stack *n)
{
    if (!leaks_only())
        clear_root(n);
}

void asan_thread(struct arch_san_stack *n)
{
    n->sp = __builtin_frame_address(0);
}

/* Unpoison what an earlier context has left there. */
void asan_make(struct arch_san_stack *n)
{
    if (leaks_only())
        set_root(n, n->low);
    else
        __asan_unpoison_memory_region(n->low, n->size);
}

void asan_end(struct arch_san_stack *n)
{
    if (leaks_only())
        clear_root(n);
}

void asan_leave(struct arch_san_stack *from, struct arch_san_stack *to, bool ends)
{
    enum { BELOW = 2048 }; /* the jump and its callers still push so much */
    if (leaks_only())
        return;
    if (from->sp)
        from->sp = (char *)__builtin_frame_address(0) - BELOW;
    to->from = from;
    __sanitizer_start_switch_fiber(ends ? NULL : &from->fake, to->low, to->size);
}

void asan_arrive(struct arch_san_stack *to)
{
    const void *low;
    size_t size;
    if (leaks_only())
        return;
    __sanitizer_finish_switch_fiber(to->fake, &low, &size);
    if (to->sp)
        clear_root(to);
    struct arch_san_stack *from = to->from;
    if (from->sp) {
        from->low = (char *)low;
        from->size = size;
        set_root(from, from->sp);
    }
}

/* Not every ASan does this at munmap; the next mapping there may belong to any code. */
void asan_unmap(const void *p, size_t size)
{
    if (!leaks_only())
        __asan_unpoison_memory_region(p, size);
}

static char *shadow(const void *at)
{
    size_t scale, offset;
    __asan_get_shadow_mapping(&scale, &offset);
    return (char *)(((uintptr_t)at >> scale) + offset);
}

/* A byte of ASan's shadow says which of 8 bytes may be used. The shadow of the frames is copied with them, behind the
 * caller's bytes: otherwise the frames would come back without their red zones. */
void asan_save(struct arch_san_stack *n, char *saved, const char *at, size_t bytes, size_t beside)
{
    asan_resumed(n);
    arch_copy(saved, at, bytes);
    if (!leaks_only()) {
        arch_copy(saved + bytes + beside, shadow(at), bytes / 8);
        __asan_unpoison_memory_region(at, bytes);
    }
    if (__lsan_register_root_region)
        __lsan_register_root_region(saved, bytes);
}

void asan_load(struct arch_san_stack *n, const char *saved, char *at, size_t bytes, size_t beside)
{
    asan_drop(saved, bytes);
    arch_copy(at, saved, bytes);
    if (!leaks_only())
        arch_copy(shadow(at), saved + bytes + beside, bytes / 8);
    asan_suspended(n, at);
}

void asan_start(const char *saved, char *at, size_t bytes)
{
    arch_copy(at, saved, bytes);
    if (!leaks_only())
        arch_copy(shadow(at), saved + bytes, bytes / 8);
}

void asan_drop(const void *saved, size_t bytes)
{
    if (__lsan_unregister_root_region)
        __lsan_unregister_root_region(saved, bytes);
}
