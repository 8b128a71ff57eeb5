/*
 * What is announced when a tool watches the program: detection of the tool, its record of each stack, and the tool's
 * function for each announcement. See san.h; the parts for sanitizers are in san_asan.c and san_tsan.c.
 */
#include "san_stack.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

const char ARCH_SAN_VARIANT;

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

/* Weak: functions of the code that these options link with a program. */
extern void __safestack_init(void) __attribute__((weak));
extern void *__morestack_allocate_stack_space(size_t size) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));

const char *arch_unsupported(void)
{
    if (__safestack_init)
        return "a program compiled with -fsanitize=safe-stack, which has a second stack per thread";
    if (__morestack_allocate_stack_space)
        return "a program compiled with -fsplit-stack, which allocates stacks by itself";
    if (__msan_init)
        return "a program compiled with -fsanitize=memory, which needs a library compiled with it";
    return NULL;
}

ARCH_NOT_INSTRUMENTED static bool is_asan(void)
{
    return arch_tool == ARCH_TOOL_ASAN || arch_tool == ARCH_TOOL_LSAN;
}

/* ---- records ----------------------------------------------------------------------------------------------- */

/* Records are kept for the next stack. Not from malloc: some belong to memory that no tool scans, and would count as
 * leaks. */
ARCH_NOT_INSTRUMENTED static void add_records(void)
{
    enum { BYTES = 1 << 16 };
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT(memory != MAP_FAILED);
    struct arch_san_stack *records = memory;
    for (size_t i = 0; i < BYTES / sizeof *records; i++) {
        records[i].next = arch_state.san_stacks;
        arch_state.san_stacks = &records[i];
    }
}

ARCH_NOT_INSTRUMENTED static struct arch_san_stack *take_record(void)
{
    tsan_lock();
    if (!arch_state.san_stacks)
        add_records();
    struct arch_san_stack *n = arch_state.san_stacks;
    arch_state.san_stacks = n->next;
    tsan_unlock();
    arch_wipe(n, sizeof *n, 0);
    return n;
}

ARCH_NOT_INSTRUMENTED static void give_record(struct arch_san_stack *n)
{
    tsan_lock();
    n->next = arch_state.san_stacks;
    arch_state.san_stacks = n;
    tsan_unlock();
}

/* ---- stacks and switches ------------------------------------------------------------------------------------- */

ARCH_NOT_INSTRUMENTED void arch_san_thread_(struct arch_san *n)
{
    n->of = take_record();
    if (arch_tool == ARCH_TOOL_TSAN)
        n->of->fiber = tsan_thread();
    else if (arch_tool == ARCH_TOOL_ASAN)
        asan_thread(n->of);
}

/* The tool notices a thread's end itself. */
void arch_san_thread_end_(struct arch_san *n)
{
    give_record(n->of);
}

/* An earlier context's frames were unmarked one by one, and are out of bounds. The new context begins with writes to
 * the stack's end from outside; valgrind sees what it pushes itself. */
static void valgrind_make(struct arch_san_stack *n)
{
    enum { WRITTEN = 256 };
    uintptr_t low = (uintptr_t)n->low, top = low + n->size;
    n->id = (unsigned)arch_valgrind(ARCH_VALGRIND_STACK_REGISTER, low, top);
    (void)arch_valgrind(ARCH_MEMCHECK_DEFINED, top - WRITTEN, WRITTEN); /* walks of the stack read all of it */
}

ARCH_NOT_INSTRUMENTED void arch_san_make_(struct arch_san *n, char *low, size_t size)
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

ARCH_NOT_INSTRUMENTED void arch_san_end_(struct arch_san *n)
{
    struct arch_san_stack *of = n->of;
    if (arch_tool == ARCH_TOOL_TSAN)
        __tsan_destroy_fiber(of->fiber);
    else if (is_asan())
        asan_end(of);
    else
        (void)arch_valgrind(ARCH_VALGRIND_STACK_DEREGISTER, of->id, 0);
    give_record(of);
}

ARCH_NOT_INSTRUMENTED void arch_san_leave_(struct arch_san *from, struct arch_san *to, bool ends)
{
    if (arch_tool == ARCH_TOOL_TSAN)
        tsan_switch(to->of->fiber);
    else if (is_asan())
        asan_leave(from->of, to->of, ends);
}

ARCH_NOT_INSTRUMENTED void arch_san_arrive_(struct arch_san *to)
{
    if (is_asan())
        asan_arrive(to->of);
}

ARCH_NOT_INSTRUMENTED void arch_san_suspended_(struct arch_san *n, arch_context context)
{
    if (is_asan())
        asan_suspended(n->of, context);
}

ARCH_NOT_INSTRUMENTED void arch_san_resumed_(struct arch_san *n)
{
    if (is_asan())
        asan_resumed(n->of);
}

/* Unwound frames leave their red zones behind, and calls that don't return do not report that: make ASan forget those
 * of the whole stack. */
void arch_san_throw_(void)
{
    if (arch_tool == ARCH_TOOL_ASAN)
        __asan_handle_no_return();
}

void arch_san_unmap_(void *p, size_t size)
{
    if (is_asan())
        asan_unmap(p, size);
}

/* ---- frames that are copied --------------------------------------------------------------------------------- */

/* The layout behind the frames and the caller's bytes: ASan's shadow of the frames, then the record. */
ARCH_NOT_INSTRUMENTED static size_t known_size(size_t bytes)
{
    return arch_tool == ARCH_TOOL_ASAN ? bytes / 8 : 0;
}

ARCH_NOT_INSTRUMENTED size_t arch_saved_size_(size_t bytes)
{
    return bytes + known_size(bytes) + sizeof(struct arch_san);
}

ARCH_NOT_INSTRUMENTED void arch_saved_store_(struct arch_san *n, void *saved, const char *at, size_t bytes,
                                             size_t beside)
{
    if (is_asan())
        asan_save(n->of, saved, at, bytes, beside);
    else
        arch_copy(saved, at, bytes); /* for TSan not by memcpy, which would count as an access by this thread */
    arch_copy((char *)saved + bytes + beside + known_size(bytes), n, sizeof *n);
}

/* Frames of another strand lie below these. Frames of this strand's returned calls would be out of bounds by now. The
 * lowest page is a guard, or has the canary. */
static void refill(const struct arch_san_stack *n, const char *at, size_t size)
{
    const char *low = n->low + arch_page_size();
    if (at > low)
        (void)arch_valgrind(ARCH_MEMCHECK_NOACCESS, (uintptr_t)low, (size_t)(at - low));
    (void)arch_valgrind(ARCH_MEMCHECK_UNDEFINED, (uintptr_t)at, size);
}

ARCH_NOT_INSTRUMENTED void arch_saved_load_(struct arch_san *n, const void *saved, char *at, size_t bytes,
                                            size_t beside)
{
    arch_copy(n, (const char *)saved + bytes + beside + known_size(bytes), sizeof *n);
    if (is_asan()) {
        asan_load(n->of, saved, at, bytes, beside);
        return;
    }
    arch_saved_start_(n, saved, at, bytes);
    if (arch_tool == ARCH_TOOL_VALGRIND) /* the frames in the stack refer to what it points to from now on */
        (void)arch_valgrind(ARCH_MEMCHECK_UNDEFINED, (uintptr_t)saved, bytes);
}

ARCH_NOT_INSTRUMENTED void arch_saved_start_(struct arch_san *n, const void *saved, char *at, size_t bytes)
{
    if (is_asan()) {
        asan_start(saved, at, bytes);
        return;
    }
    if (arch_tool == ARCH_TOOL_VALGRIND)
        refill(n->of, at, bytes);
    arch_copy(at, saved, bytes);
}

void arch_saved_drop_(void *saved, size_t bytes)
{
    if (is_asan())
        asan_drop(saved, bytes);
}

/* ---- signals --------------------------------------------------------------------------------------------------- */

/* TSan delays a signal until the interrupted strand makes a call that TSan intercepts, which may never happen. So TSan
 * does not see the handler: it is installed by the C library's own function. */
int arch_san_sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
    int (*behind)(int, const struct sigaction *, struct sigaction *) = sigaction;
    void *library = arch_tool == ARCH_TOOL_TSAN ? dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (library) {
        *(void **)&behind = dlsym(library, "sigaction");
        (void)dlclose(library); /* it stays loaded: others use it */
        ASSERT(behind);
    }
    return behind(signal, new, old);
}
