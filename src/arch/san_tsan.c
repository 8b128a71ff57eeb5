/*
 * Announcements to ThreadSanitizer. Every context is a TSan fiber, and a switch between two of them implies no order:
 * running on the same thread does not make one strand happen before the next. Only arch_san_release and
 * arch_san_acquire establish happens-before.
 */
#include "san_stack.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NO_ORDER = 1 }; /* __tsan_switch_to_fiber_no_sync */

/* By assembler: the C library's locks are intercepted, and atomics are instrumented even where nothing else is. */
ARCH_NOT_INSTRUMENTED void tsan_lock(void)
{
    uint32_t taken = 1;
    for (;;) {
        __asm__ volatile("xchgl %0, %1" : "+r"(taken), "+m"(arch_state.fiber_lock) : : "memory");
        if (!taken)
            return;
        arch_pause();
    }
}

ARCH_NOT_INSTRUMENTED void tsan_unlock(void)
{
    __asm__ volatile("movl $0, %0" : "=m"(arch_state.fiber_lock) : : "memory");
}

/* Strands that run one after the other on a thread share its errno, with no order between them. That is no race of
 * theirs: each sets it before it reads it. */
ARCH_NOT_INSTRUMENTED void *tsan_thread(void)
{
    if (AnnotateBenignRaceSized)
        AnnotateBenignRaceSized(__FILE__, __LINE__, &errno, sizeof errno, "errno belongs to the thread");
    return __tsan_get_current_fiber();
}

/* The lowest page that was ever touched: announcing untouched memory to TSan is expensive and pointless. By the raw
 * system call: writes by an intercepted function count as writes by the maker. */
ARCH_NOT_INSTRUMENTED static char *lowest_used(char *begin, const char *end, size_t page)
{
    unsigned char resident[64];
    while (begin < end) {
        size_t pages = (size_t)(end - begin) / page;
        pages = pages < sizeof resident ? pages : sizeof resident;
        if (syscall(SYS_mincore, begin, pages * page, resident) < 0)
            return begin;
        for (size_t i = 0; i < pages; i++, begin += page)
            if (resident[i] & 1)
                return begin;
    }
    return begin;
}

ARCH_NOT_INSTRUMENTED static void map_again(char *low, char *top)
{
    char kept[4096];
    size_t page = arch_page_size();
    char *end = (char *)(((uintptr_t)top + page - 1) & ~(page - 1));
    char *begin = lowest_used((char *)(((uintptr_t)low + 2 * page - 1) & ~(page - 1)), end, page);
    size_t above = (size_t)(end - top);
    if (begin >= end || above > sizeof kept)
        return;
    arch_copy(kept, top, above);
    void *at = mmap(begin, (size_t)(end - begin), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    ASSERT(at == begin);
    (void)madvise(begin, (size_t)(end - begin), MADV_NOHUGEPAGE);
    arch_copy(top, kept, above);
}

/*
 * A new TSan fiber is ordered after the fiber that makes it, which at a switch is whatever strand ran before. So a
 * fiber that does nothing else makes all fibers, one at a time. It also maps the stack's memory again, so that TSan
 * forgets its earlier users; only the two ends stay: the guard page, and the data that other code keeps above the
 * stack. TSan does not see the lock, which would otherwise order the strands.
 */
ARCH_NOT_INSTRUMENTED void *tsan_make(char *low, size_t size)
{
    void *self = __tsan_get_current_fiber();
    tsan_lock();
    if (!arch_state.fiber_maker)
        arch_state.fiber_maker = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(arch_state.fiber_maker, NO_ORDER);
    map_again(low, low + size);
    void *fiber = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(self, NO_ORDER);
    tsan_unlock();
    return fiber;
}

ARCH_NOT_INSTRUMENTED void tsan_switch(void *fiber)
{
    __tsan_switch_to_fiber(fiber, NO_ORDER);
}

/* Called by x86_64.S with all registers preserved. */
ARCH_NOT_INSTRUMENTED void arch_order_release_(void *p);
ARCH_NOT_INSTRUMENTED void arch_order_release_(void *p)
{
    __tsan_release(p);
}

ARCH_NOT_INSTRUMENTED void arch_order_acquire_(void *p);
ARCH_NOT_INSTRUMENTED void arch_order_acquire_(void *p)
{
    __tsan_acquire(p);
}
