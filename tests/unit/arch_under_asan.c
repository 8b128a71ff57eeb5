/*
 * What is announced to AddressSanitizer, played by this test: each switch is announced at both of its
 * ends, the live part of a suspended stack is a root of the search for leaks, and what ASan knows of frames is copied
 * with them.
 */
#include "arch_under.h"

#if SANITIZED
int main(void)
{
    return 0;
}
#else

enum { MAX_ROOTS = 8 };

static struct {
    const void *at[MAX_ROOTS];
    size_t size[MAX_ROOTS];
    int count;
} roots;

static int started, ended_for_good, finished, forgotten;
static const void *announced;
static size_t announced_size, unpoisoned;
static char shadow_of_frames[UNDER_KNOWN];
static char own_stack[64]; /* stands for the thread's */

void __sanitizer_start_switch_fiber(void **fake, const void *low, size_t size);
void __sanitizer_finish_switch_fiber(void *fake, const void **low, size_t *size);
void __asan_unpoison_memory_region(const volatile void *at, size_t size);
void __asan_handle_no_return(void);
void __asan_get_shadow_mapping(size_t *scale, size_t *offset);
void __lsan_register_root_region(const void *at, size_t size);
void __lsan_unregister_root_region(const void *at, size_t size);

void __sanitizer_start_switch_fiber(void **fake, const void *low, size_t size)
{
    if (fake)
        *fake = &started;
    else
        ended_for_good++;
    started++;
    announced = low;
    announced_size = size;
}

/* Between the beginning and the end of a first switch, the bounds of the thread's own stack are not known. */
void __sanitizer_finish_switch_fiber(void *fake, const void **low, size_t *size)
{
    CHECK(!fake || fake == &started);
    finished++;
    *low = own_stack;
    *size = (uintptr_t)__builtin_frame_address(0) + (1 << 20) - (uintptr_t)own_stack;
}

void __asan_unpoison_memory_region(const volatile void *at, size_t size)
{
    CHECK(at != NULL);
    unpoisoned += size;
}

void __asan_handle_no_return(void)
{
    forgotten++;
}

static const char *shadowed; /* what shadow_of_frames is the shadow of */

void __asan_get_shadow_mapping(size_t *scale, size_t *offset)
{
    *scale = 3;
    *offset = (uintptr_t)shadow_of_frames - ((uintptr_t)shadowed >> 3);
}

void __lsan_register_root_region(const void *at, size_t size)
{
    CHECK(roots.count < MAX_ROOTS);
    roots.at[roots.count] = at;
    roots.size[roots.count++] = size;
}

void __lsan_unregister_root_region(const void *at, size_t size)
{
    int i = 0;
    while (i < roots.count && (roots.at[i] != at || roots.size[i] != size))
        i++;
    CHECK(i < roots.count);
    roots.count--;
    roots.at[i] = roots.at[roots.count];
    roots.size[i] = roots.size[roots.count];
}

static bool is_root(const void *at, size_t size)
{
    for (int i = 0; i < roots.count; i++)
        if (roots.at[i] == at && roots.size[i] == size)
            return true;
    return false;
}

static void each_switch_is_announced_at_both_ends(void)
{
    under_switch();
    CHECK_EQUAL(started, 4);
    CHECK_EQUAL(finished, 4);
    CHECK_EQUAL(ended_for_good, 1);
    CHECK_EQUAL(roots.count, 0);
}

static void a_suspended_stack_is_a_root_from_its_context_on(void)
{
    struct co co;
    co_make(&co, under_yield_once, NULL);
    co_resume(&co);
    char *top = co.low + CO_STACK - CO_ABOVE;
    CHECK(is_root(co.context, (size_t)(top - (char *)co.context)));
    co_resume(&co);
    CHECK_EQUAL(roots.count, 0);
    co_free(&co);
}

static void what_asan_knows_of_frames_is_copied_with_them(void)
{
    struct co co;
    co_make(&co, under_yield_once, NULL);
    arch_san_make(&co.san, co.low, CO_STACK - CO_ABOVE);
    char *frames = under_frames(&co);
    shadowed = frames;
    arch_san_suspended(&co.san, frames);
    memset(frames, 'f', UNDER_FRAMES);
    memset(shadow_of_frames, 's', sizeof shadow_of_frames);
    size_t size = arch_saved_size(UNDER_FRAMES);
    CHECK(size >= UNDER_FRAMES + UNDER_KNOWN + sizeof co.san);
    char *saved = calloc(1, size + UNDER_BESIDE);
    size_t before = unpoisoned;
    arch_saved_store(&co.san, saved, frames, UNDER_FRAMES, UNDER_BESIDE);
    CHECK_EQUAL(unpoisoned - before, UNDER_FRAMES);
    CHECK(is_root(saved, UNDER_FRAMES) && roots.count == 1);
    CHECK(saved[0] == 'f' && saved[UNDER_FRAMES] == 0);
    CHECK(saved[UNDER_FRAMES + UNDER_BESIDE] == 's' && saved[UNDER_FRAMES + UNDER_BESIDE + UNDER_KNOWN - 1] == 's');

    struct arch_san back = {0};
    memset(frames, 0, UNDER_FRAMES);
    memset(shadow_of_frames, 0, sizeof shadow_of_frames);
    arch_saved_load(&back, saved, frames, UNDER_FRAMES, UNDER_BESIDE);
    CHECK(back.of == co.san.of);
    CHECK(frames[0] == 'f' && frames[UNDER_FRAMES - 1] == 'f');
    CHECK(shadow_of_frames[0] == 's' && shadow_of_frames[UNDER_KNOWN - 1] == 's');
    CHECK(is_root(frames, UNDER_FRAMES) && roots.count == 1);
    arch_san_resumed(&co.san);

    memset(saved + UNDER_FRAMES, 't', UNDER_KNOWN);
    arch_saved_start(&co.san, saved, frames, UNDER_FRAMES);
    CHECK(frames[0] == 'f' && shadow_of_frames[0] == 't');
    __lsan_register_root_region(saved, UNDER_FRAMES);
    arch_saved_drop(saved, UNDER_FRAMES);
    CHECK_EQUAL(roots.count, 0);
    arch_san_end(&co.san);
    free(saved);
    co_free(&co);
}

static void a_throw_and_memory_given_back_are_announced(void)
{
    arch_san_throw();
    CHECK_EQUAL(forgotten, 1);
    size_t before = unpoisoned;
    arch_san_unmap(own_stack, sizeof own_stack);
    CHECK_EQUAL(unpoisoned - before, sizeof own_stack);
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK_EQUAL(arch_tool, ARCH_TOOL_ASAN);
    CHECK(!arch_san_separate() && arch_san_membarrier() && arch_san_threads() == 0);
    each_switch_is_announced_at_both_ends();
    a_suspended_stack_is_a_root_from_its_context_on();
    what_asan_knows_of_frames_is_copied_with_them();
    a_throw_and_memory_given_back_are_announced();
    return failures != 0;
}
#endif
