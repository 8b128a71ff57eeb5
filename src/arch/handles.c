/*
 * The handle range: address space for objects with handles, of all runs. It stays readable once opened, so stale
 * handles can be checked. Its state belongs to the process, under the process's lock.
 */
#include "state.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HANDLES_LEAST ((size_t)64 << 20)
/* Up to so many bytes, wiping is faster than releasing the pages and getting them back. */
enum { WIPED_MOST = 16 * 1024 };

#define CHUNKS_STEP ((size_t)8) /* in two megabytes */

/* By the raw system call: sanitizers prepare their shadow memory for every mapping that they see. */
static char *reserve(size_t bytes)
{
    long at = syscall(SYS_mmap, NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    return at == -1 ? NULL : (char *)at;
}

int arch_handles_start(void)
{
    struct arch_chunks *chunks = &arch_state.chunks;
    for (size_t bytes = arch_san_handles(); bytes >= HANDLES_LEAST; bytes /= 2) {
        char *raw = reserve(bytes + CHUNKS_STEP * ARCH_CHUNK);
        if (!raw)
            continue;
        void *list;
        int error = arch_map(bytes / ARCH_CHUNK * sizeof *chunks->next, &list);
        if (error) {
            (void)munmap(raw, bytes + CHUNKS_STEP * ARCH_CHUNK);
            return error;
        }
        (void)madvise(raw, bytes + CHUNKS_STEP * ARCH_CHUNK,
                      MADV_DONTDUMP); /* a core file would otherwise contain all of it */
        chunks->next = list;
        chunks->most = (uint32_t)(bytes / ARCH_CHUNK);
        arch_handles = (char *)(((uintptr_t)raw + CHUNKS_STEP * ARCH_CHUNK - 1) & ~(CHUNKS_STEP * ARCH_CHUNK - 1));
        arch_handles_size = bytes;
        return 0;
    }
    return -ENOMEM;
}

/* What is read behind an address in the last chunk may lie beyond its end: in this page. */
enum { PAGE = 4096 };

/* Small programs need few chunks. Large ones open as many as fill a huge page with one call, and ask for one: otherwise
 * each of a million strands is on a page of its own, which exceeds the TLB. */
static int chunks_open(void)
{
    struct arch_chunks *chunks = &arch_state.chunks;
    uint32_t count = chunks->open < CHUNKS_STEP ? 1 : (uint32_t)CHUNKS_STEP;
    if (chunks->open + count > chunks->most)
        return -ENOMEM;
    if (mprotect(arch_handles + chunks->open * ARCH_CHUNK, count * ARCH_CHUNK + PAGE, PROT_READ | PROT_WRITE) < 0)
        return -ENOMEM;
    (void)madvise(arch_handles + chunks->open * ARCH_CHUNK, count * ARCH_CHUNK, MADV_DODUMP);
    if (count == CHUNKS_STEP)
        (void)madvise(arch_handles + chunks->open * ARCH_CHUNK, count * ARCH_CHUNK, MADV_HUGEPAGE);
    chunks->open += count;
    plain_store(&arch_handle_words, chunks->open * ARCH_CHUNK / sizeof(uint64_t), memory_order_relaxed);
    return 0;
}

int arch_chunk_take(unsigned type, void **chunk)
{
    struct arch_chunks *chunks = &arch_state.chunks;
    int error = 0;
    uint32_t index = 0;
    ASSERT(type < ARCH_CHUNK_TYPES);
    arch_process_lock();
    if (chunks->given[type]) {
        index = chunks->given[type] - 1;
        chunks->given[type] = chunks->next[index];
    } else if (chunks->fresh < chunks->open || (error = chunks_open()) == 0) {
        index = chunks->fresh++;
    }
    arch_process_unlock();
    if (!error)
        *chunk = arch_handles + index * ARCH_CHUNK;
    return error;
}

/* A word at a time: a concurrent read through a stale handle finds the old word, or zero. */
static void wipe(_Atomic uint64_t *word, size_t bytes)
{
    for (const _Atomic uint64_t *end = word + (bytes + sizeof *word - 1) / sizeof *word; word < end; word++)
        atomic_store_explicit(word, 0, memory_order_relaxed);
}

void arch_chunk_give(unsigned type, void *chunk, size_t used)
{
    struct arch_chunks *chunks = &arch_state.chunks;
    size_t offset = (size_t)((char *)chunk - arch_handles);
    ASSERT(type < ARCH_CHUNK_TYPES && offset < arch_handles_size && offset % ARCH_CHUNK == 0);
    if (used <= WIPED_MOST || madvise(chunk, ARCH_CHUNK, MADV_DONTNEED) < 0) /* refused for locked memory */
        wipe(chunk, used);
    arch_process_lock();
    chunks->next[offset / ARCH_CHUNK] = chunks->given[type];
    chunks->given[type] = (uint32_t)(offset / ARCH_CHUNK) + 1;
    arch_process_unlock();
}
