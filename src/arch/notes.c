/*
 * The part of the notes that is not worth an inline, and the word by which the linker refuses a mixture of kinds.
 */
#include "state.h"

const char ARCH_NOTES_KIND;

#if ARCH_NOTES_SEPARATE
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A new fiber of TSan's is ordered after whoever makes it, and that is, at a switch, the strand which happens to have
 * run before. So fibers are made in the name of one that does nothing else, one at a time. That one also maps the
 * stack's memory anew, by which TSan forgets who has used it before; only the two ends stay, where the guard page is
 * and where others keep data above the stack. The lock is taken by assembler, as everything else would order the
 * strands after all: the C library's locks are intercepted, and atomics are instrumented even where nothing else is.
 */
ARCH_NOT_INSTRUMENTED static void lock_fibers(void)
{
    uint32_t taken = 1;
    for (;;) {
        __asm__ volatile("xchgl %0, %1" : "+r"(taken), "+m"(arch_state.fiber_lock) : : "memory");
        if (!taken)
            return;
        arch_pause();
    }
}

ARCH_NOT_INSTRUMENTED static void unlock_fibers(void)
{
    __asm__ volatile("movl $0, %0" : "=m"(arch_state.fiber_lock) : : "memory");
}

/* A loop would become a call of memcpy, which is intercepted too. */
ARCH_NOT_INSTRUMENTED static void copy_bytes(char *to, const char *from, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/* The lowest page that was ever touched: telling TSan of memory that nobody used costs much and means nothing.
 * By the system call itself: what an intercepted function writes counts as written by the maker. */
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

ARCH_NOT_INSTRUMENTED static void map_anew(char *low, char *top)
{
    char kept[4096];
    size_t page = arch_page_size();
    char *end = (char *)(((uintptr_t)top + page - 1) & ~(page - 1));
    char *begin = lowest_used((char *)(((uintptr_t)low + 2 * page - 1) & ~(page - 1)), end, page);
    size_t above = (size_t)(end - top);
    if (begin >= end || above > sizeof kept)
        return;
    copy_bytes(kept, top, above);
    void *at = mmap(begin, (size_t)(end - begin), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    ASSERT(at == begin);
    (void)madvise(begin, (size_t)(end - begin), MADV_NOHUGEPAGE);
    copy_bytes(top, kept, above);
}

ARCH_NOT_INSTRUMENTED void arch_note_make(struct arch_note *n, char *low, size_t size)
{
    void *self = __tsan_get_current_fiber();
    lock_fibers();
    if (!arch_state.fiber_maker)
        arch_state.fiber_maker = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(arch_state.fiber_maker, __tsan_switch_to_fiber_no_sync);
    map_anew(low, low + size);
    n->fiber = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
    unlock_fibers();
}

/* TSan keeps a signal back until the strand that it interrupted makes a call which TSan knows, and that may be never.
 * So it is not told of the handler: the C library is asked behind its back. */
int arch_note_sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
    int (*behind)(int, const struct sigaction *, struct sigaction *) = NULL;
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (library) {
        *(void **)&behind = dlsym(library, "sigaction");
        (void)dlclose(library); /* it stays: others use it */
    }
    ASSERT(behind);
    return behind(signal, new, old);
}
#else
int arch_note_sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
    return sigaction(signal, new, old);
}
#endif
