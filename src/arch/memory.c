/*
 * Mappings and guard pages. A guard by guard-install (Linux 6.13) costs page-table entries only. A guard by mprotect
 * splits its mapping, which takes two of the vm.max_map_count mappings that a process may have. The whole process
 * shares that limit, so all its guards are counted together.
 *
 * For tests, STRAND_GUARDS=mprotect in the environment makes guard-install unavailable, STRAND_GUARDS=none both.
 */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Newer than many headers. */
enum { ADVICE_DONTNEED_LOCKED = 24, ADVICE_GUARD_INSTALL = 102, ADVICE_GUARD_REMOVE = 103 };
enum { THIS_PROCESS = -10000 }; /* PIDFD_SELF */
enum { MAPPINGS_PER_GUARD = 2, MAPPINGS_USUAL = 65530 };

size_t arch_page_size(void)
{
    return (size_t)getpagesize();
}

int arch_map(size_t bytes, void **out)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return -errno;
    /* A kernel without huge pages refuses this and does not need it. Neighbours with the same advice are merged. */
    (void)madvise(at, bytes, MADV_NOHUGEPAGE);
    *out = at;
    return 0;
}

void arch_unmap(void *at, size_t bytes)
{
    arch_san_unmap(at, bytes);
    if (munmap(at, bytes) == 0)
        return;
    /* The system had merged it with both of its neighbours, and may not have one mapping more; or a sandbox that the
     * program has entered refuses the call. The addresses stay mapped then. */
    ASSERT(errno != EINVAL);
    arch_discard(at, bytes);
}

void arch_discard(void *at, size_t bytes)
{
    if (madvise(at, bytes, MADV_DONTNEED) < 0)
        (void)madvise(at, bytes, ADVICE_DONTNEED_LOCKED);
}

bool arch_peek(void *to, const void *from, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

bool arch_peek_text(char *to, size_t size, const char *from)
{
    for (size_t length = 0, piece; length + 1 < size; length += piece) {
        size_t left = arch_page_size() - ((uintptr_t)(from + length) & (arch_page_size() - 1));
        piece = left < size - 1 - length ? left : size - 1 - length;
        if (!arch_peek(to + length, from + length, piece))
            return false;
        to[length + piece] = '\0';
        if (memchr(to + length, 0, piece))
            break;
    }
    return true;
}

size_t arch_resident(char *begin, const char *end)
{
    unsigned char there[64];
    size_t page = arch_page_size(), bytes = 0;
    begin = (char *)((uintptr_t)begin & ~(page - 1));
    for (size_t pages; begin < end; begin += pages * page) {
        pages = ((size_t)(end - begin) + page - 1) / page;
        pages = pages < sizeof there ? pages : sizeof there;
        if (mincore(begin, pages * page, there) < 0)
            return bytes;
        for (size_t i = 0; i < pages; i++)
            bytes += there[i] & 1 ? page : 0;
    }
    return bytes;
}

/* The lowest page of the range that was ever touched; `end` if none was. */
static char *lowest_touched(char *begin, char *end)
{
    unsigned char there[64];
    size_t page = arch_page_size();
    for (size_t pages; begin < end; begin += pages * page) {
        pages = ((size_t)(end - begin) + page - 1) / page;
        pages = pages < sizeof there ? pages : sizeof there;
        if (mincore(begin, pages * page, there) < 0)
            return begin;
        for (size_t i = 0; i < pages; i++)
            if (there[i] & 1)
                return begin + i * page;
    }
    return end;
}

/* The lowest word that may have been written. The page of a canary is always touched. */
__attribute__((no_sanitize_address)) static uint64_t *lowest_written(char *low, char *end)
{
    size_t page = arch_page_size();
    char *whole = (char *)(((uintptr_t)low + page - 1) & ~(page - 1));
    for (uint64_t *at = (uint64_t *)(void *)low; (char *)at < whole && (char *)at < end; at++)
        if (*at)
            return at;
    return (uint64_t *)(void *)(whole < end ? lowest_touched(whole, end) : end);
}

/* The library has no red zone: memory below the stack pointer is unused. */
__attribute__((no_sanitize_address)) NOINLINE size_t arch_stack_used(char *low, const char *top)
{
    char *here;
    uint64_t *at = lowest_written(low, __builtin_frame_address(0));
    __asm__ volatile("movq %%rsp, %0" : "=r"(here));
    if ((char *)at < here)
        arch_san_unwritten(at, (size_t)(here - (char *)at));
    while ((char *)at < here && !*at)
        at++;
    char *lowest = (char *)at < here ? (char *)at : here;
    void *from = lowest;
    size_t count = (size_t)(here - lowest);
    __asm__ volatile("rep stosb" : "+D"(from), "+c"(count) : "a"(0) : "memory");
    return (size_t)(top - lowest);
}

static int64_t mappings_read(void)
{
    int64_t most = 0;
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        char text[32];
        ssize_t length = read(fd, text, sizeof text - 1);
        text[length > 0 ? length : 0] = '\0';
        most = strtol(text, NULL, 10);
        close(fd);
    }
    return most > 0 ? most : MAPPINGS_USUAL;
}

static int64_t mappings_most(void)
{
    int64_t most = atomic_load_explicit(&arch_state.mappings_most, memory_order_relaxed);
    if (!most) {
        most = mappings_read();
        atomic_store_explicit(&arch_state.mappings_most, most, memory_order_relaxed);
    }
    return most;
}

static int guard_by_mapping(void *page, bool limit)
{
    int64_t guards = atomic_fetch_add_explicit(&arch_state.guard_count, 1, memory_order_relaxed) + 1;
    if ((limit && guards * MAPPINGS_PER_GUARD > mappings_most() / 2) ||
        mprotect(page, arch_page_size(), PROT_NONE) < 0) {
        atomic_fetch_sub_explicit(&arch_state.guard_count, 1, memory_order_relaxed);
        return -ENOMEM;
    }
    return ARCH_GUARD_MAPPING;
}

static int advise(void *page, int advice)
{
    while (madvise(page, arch_page_size(), advice) < 0)
        if (errno != EINTR && errno != EAGAIN)
            return -errno;
    return 0;
}

/* The best kind that the environment and the kernel may allow. The first guard of the process finds it out for all. */
static int guards_possible(void *page)
{
    const char *wanted = arch_env("STRAND_GUARDS");
    int guards = ARCH_GUARDS_PAGES;
    if (wanted && strcmp(wanted, "none") == 0)
        guards = ARCH_GUARDS_NONE;
    else if ((wanted && strcmp(wanted, "mprotect") == 0) || advise(page, ADVICE_GUARD_INSTALL) == -EINVAL)
        guards = ARCH_GUARDS_MAPPINGS;
    atomic_store_explicit(&arch_state.guards, guards, memory_order_relaxed);
    return guards;
}

int arch_guard_install(void *page, bool limit_mappings)
{
    int guards = atomic_load_explicit(&arch_state.guards, memory_order_relaxed);
    if (UNLIKELY(guards == ARCH_GUARDS_UNKNOWN))
        guards = guards_possible(page);
    if (guards == ARCH_GUARDS_NONE)
        return -ENOMEM;
    /* Installing twice is harmless. A page that refuses (locked memory) may still be protected. */
    if (guards == ARCH_GUARDS_PAGES && advise(page, ADVICE_GUARD_INSTALL) == 0)
        return ARCH_GUARD_PAGE;
    return guard_by_mapping(page, limit_mappings);
}

size_t arch_guards_install(char *first, size_t apart, size_t count)
{
    enum { MOST = 64 };
    struct iovec pages[MOST];
    if (count < 2 || arch_tool == ARCH_TOOL_VALGRIND /* which complains of the call */ ||
        atomic_load_explicit(&arch_state.guards, memory_order_relaxed) != ARCH_GUARDS_PAGES)
        return 0;
    count = count < MOST ? count : MOST;
    for (size_t i = 0; i < count; i++)
        pages[i] = (struct iovec){first + i * apart, arch_page_size()};
    long done = syscall(SYS_process_madvise, THIS_PROCESS, pages, count, ADVICE_GUARD_INSTALL, 0);
    return done > 0 ? (size_t)done / arch_page_size() : 0;
}

void arch_guard_remove(void *page, int guard)
{
    if (guard == ARCH_GUARD_PAGE)
        (void)advise(page, ADVICE_GUARD_REMOVE);
    if (guard != ARCH_GUARD_MAPPING)
        return;
    /* The kernel may refuse even this when short of memory. Then the page stays a guard until it is unmapped. */
    (void)mprotect(page, arch_page_size(), PROT_READ | PROT_WRITE);
    arch_guards_unmapped(1);
}

void arch_guards_unmapped(size_t count)
{
    atomic_fetch_sub_explicit(&arch_state.guard_count, (int64_t)count, memory_order_relaxed);
}
