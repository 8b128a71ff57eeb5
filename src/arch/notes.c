/*
 * The notes where a tool watches the program: which tool it is, what it has to know of each stack, and which of its
 * functions a note is. See notes.h; what a sanitizer needs in particular is in notes_asan.c and notes_tsan.c.
 */
#include "noted.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

const char ARCH_NOTES_KIND;

void arch_tool_find(void)
{
    if (__tsan_create_fiber)
        arch_tool = ARCH_TOOL_TSAN;
    else if (__asan_unpoison_memory_region && __sanitizer_start_switch_fiber)
        arch_tool = ARCH_TOOL_ASAN;
    else if (__lsan_register_root_region)
        arch_tool = ARCH_TOOL_LSAN;
    else if (arch_valgrind(ARCH_VALGRIND_RUNS, 0, 0))
        arch_tool = ARCH_TOOL_VALGRIND;
    arch_tool_is_order = arch_tool == ARCH_TOOL_TSAN;
}

ARCH_NOT_INSTRUMENTED static bool is_asan(void)
{
    return arch_tool == ARCH_TOOL_ASAN || arch_tool == ARCH_TOOL_LSAN;
}

/* ---- records ----------------------------------------------------------------------------------------------- */

/* They are kept for the next stack. Not from malloc: some belong to memory that no tool looks through, and would count
 * as leaks. */
ARCH_NOT_INSTRUMENTED static void add_records(void)
{
    enum { BYTES = 1 << 16 };
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT(memory != MAP_FAILED);
    struct arch_noted *records = memory;
    for (size_t i = 0; i < BYTES / sizeof *records; i++) {
        records[i].next = arch_state.noted;
        arch_state.noted = &records[i];
    }
}

ARCH_NOT_INSTRUMENTED static struct arch_noted *take_record(void)
{
    tsan_lock();
    if (!arch_state.noted)
        add_records();
    struct arch_noted *n = arch_state.noted;
    arch_state.noted = n->next;
    tsan_unlock();
    arch_wipe(n, sizeof *n, 0);
    return n;
}

ARCH_NOT_INSTRUMENTED static void give_record(struct arch_noted *n)
{
    tsan_lock();
    n->next = arch_state.noted;
    arch_state.noted = n;
    tsan_unlock();
}

/* ---- stacks and switches ------------------------------------------------------------------------------------- */

ARCH_NOT_INSTRUMENTED void arch_note_thread_(struct arch_note *n)
{
    n->of = take_record();
    if (arch_tool == ARCH_TOOL_TSAN)
        n->of->fiber = __tsan_get_current_fiber();
    else if (arch_tool == ARCH_TOOL_ASAN)
        asan_thread(n->of);
}

/* The tool learns of a thread's end by itself. */
void arch_note_thread_end_(struct arch_note *n)
{
    give_record(n->of);
}

/* An earlier context's frames were given up one by one, and are out of bounds. The new one begins by being written to
 * the stack's end, from elsewhere; what it pushes by itself valgrind sees. */
static void valgrind_make(struct arch_noted *n)
{
    enum { WRITTEN = 256 };
    uintptr_t low = (uintptr_t)n->low, top = low + n->size;
    n->id = (unsigned)arch_valgrind(ARCH_VALGRIND_STACK_REGISTER, low, top);
    (void)arch_valgrind(ARCH_MEMCHECK_DEFINED, top - WRITTEN, WRITTEN); /* walks of the stack read all of it */
}

ARCH_NOT_INSTRUMENTED void arch_note_make_(struct arch_note *n, char *low, size_t size)
{
    n->of = take_record();
    n->of->low = low;
    n->of->size = size;
    if (arch_tool == ARCH_TOOL_TSAN)
        n->of->fiber = tsan_make(low, size);
    else if (is_asan())
        asan_make(n->of);
    else
        valgrind_make(n->of);
}

ARCH_NOT_INSTRUMENTED void arch_note_end_(struct arch_note *n)
{
    struct arch_noted *of = n->of;
    if (arch_tool == ARCH_TOOL_TSAN)
        __tsan_destroy_fiber(of->fiber);
    else if (is_asan())
        asan_end(of);
    else
        (void)arch_valgrind(ARCH_VALGRIND_STACK_DEREGISTER, of->id, 0);
    give_record(of);
}

ARCH_NOT_INSTRUMENTED void arch_note_leave_(struct arch_note *from, struct arch_note *to, bool ends)
{
    if (arch_tool == ARCH_TOOL_TSAN)
        tsan_switch(to->of->fiber);
    else if (is_asan())
        asan_leave(from->of, to->of, ends);
}

ARCH_NOT_INSTRUMENTED void arch_note_arrive_(struct arch_note *to)
{
    if (is_asan())
        asan_arrive(to->of);
}

ARCH_NOT_INSTRUMENTED void arch_note_suspended_(struct arch_note *n, arch_context context)
{
    if (is_asan())
        asan_suspended(n->of, context);
}

ARCH_NOT_INSTRUMENTED void arch_note_resumed_(struct arch_note *n)
{
    if (is_asan())
        asan_resumed(n->of);
}

/* Frames that are unwound do not take their red zones away, and calls that don't return do not report it: ASan forgets
 * the whole stack's. */
void arch_note_throw_(void)
{
    if (arch_tool == ARCH_TOOL_ASAN)
        __asan_handle_no_return();
}

void arch_note_unmap_(void *p, size_t size)
{
    if (is_asan())
        asan_unmap(p, size);
}

/* ---- frames that are copied ---------------------------------------------------------------------------------- */

/* Behind the frames and what lies beside them: what ASan knows of them, then the record. */
ARCH_NOT_INSTRUMENTED static size_t known_size(size_t bytes)
{
    return arch_tool == ARCH_TOOL_ASAN ? bytes / 8 : 0;
}

ARCH_NOT_INSTRUMENTED size_t arch_image_size_(size_t bytes)
{
    return bytes + known_size(bytes) + sizeof(struct arch_note);
}

ARCH_NOT_INSTRUMENTED void arch_image_save_(struct arch_note *n, void *image, const char *at, size_t bytes,
                                            size_t beside)
{
    if (is_asan())
        asan_save(n->of, image, at, bytes, beside);
    else
        arch_copy(image, at, bytes); /* for TSan not by memcpy, which would count as an access by this thread */
    arch_copy((char *)image + bytes + beside + known_size(bytes), n, sizeof *n);
}

/* Below the frames lie those of another strand. Its own, of calls that have returned, would be out of bounds by now.
 * The lowest page is a guard, or has words that tell of an overflow. */
static void refill(const struct arch_noted *n, const char *at, size_t size)
{
    const char *low = n->low + arch_page_size();
    if (at > low)
        (void)arch_valgrind(ARCH_MEMCHECK_NOACCESS, (uintptr_t)low, (size_t)(at - low));
    (void)arch_valgrind(ARCH_MEMCHECK_UNDEFINED, (uintptr_t)at, size);
}

ARCH_NOT_INSTRUMENTED void arch_image_load_(struct arch_note *n, const void *image, char *at, size_t bytes,
                                            size_t beside)
{
    arch_copy(n, (const char *)image + bytes + beside + known_size(bytes), sizeof *n);
    if (is_asan()) {
        asan_load(n->of, image, at, bytes, beside);
        return;
    }
    arch_image_start_(n, image, at, bytes);
    if (arch_tool == ARCH_TOOL_VALGRIND) /* what it points to is known by the frames in the stack from now on */
        (void)arch_valgrind(ARCH_MEMCHECK_UNDEFINED, (uintptr_t)image, bytes);
}

ARCH_NOT_INSTRUMENTED void arch_image_start_(struct arch_note *n, const void *image, char *at, size_t bytes)
{
    if (is_asan()) {
        asan_start(image, at, bytes);
        return;
    }
    if (arch_tool == ARCH_TOOL_VALGRIND)
        refill(n->of, at, bytes);
    arch_copy(at, image, bytes);
}

void arch_image_drop_(void *image, size_t bytes)
{
    if (is_asan())
        asan_drop(image, bytes);
}

/* ---- signals --------------------------------------------------------------------------------------------------- */

/* TSan keeps a signal back until the strand that it interrupted makes a call which TSan knows, and that may be never.
 * So it is not told of the handler: the C library is asked behind its back. */
int arch_note_sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
    int (*behind)(int, const struct sigaction *, struct sigaction *) = sigaction;
    void *library = arch_tool == ARCH_TOOL_TSAN ? dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (library) {
        *(void **)&behind = dlsym(library, "sigaction");
        (void)dlclose(library); /* it stays: others use it */
        ASSERT(behind);
    }
    return behind(signal, new, old);
}
