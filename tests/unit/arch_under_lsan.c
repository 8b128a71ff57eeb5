/*
 * What is announced to LeakSanitizer alone, played by this test: it knows no switch of stacks, so a
 * context's whole stack is a root of its search from the beginning to the end of the context, and so are saved stacks.
 */
#include "arch_under.h"

#if SANITIZED
int main(void)
{
    return 0;
}
#else

static int roots;
static const void *last;
static size_t last_size;

void __lsan_register_root_region(const void *at, size_t size);
void __lsan_unregister_root_region(const void *at, size_t size);

void __lsan_register_root_region(const void *at, size_t size)
{
    roots++;
    last = at;
    last_size = size;
}

void __lsan_unregister_root_region(const void *at, size_t size)
{
    CHECK(at == last && size == last_size);
    roots--;
}

static void a_stack_is_a_root_as_long_as_its_context_lives(void)
{
    struct co co;
    co_make(&co, under_yield_once, NULL);
    co_resume(&co);
    CHECK_EQUAL(roots, 1);
    CHECK(last == co.low && last_size == CO_STACK - CO_ABOVE);
    co_resume(&co);
    CHECK(co.ended);
    CHECK_EQUAL(roots, 0);
    co_free(&co);
}

static void a_saved_stack_is_a_root_until_it_is_loaded_or_dropped(void)
{
    struct co co;
    co_make(&co, under_yield_once, NULL);
    char *frames = under_frames(&co);
    memset(frames, 'f', UNDER_FRAMES);
    size_t size = arch_saved_size(UNDER_FRAMES);
    CHECK_EQUAL(size, UNDER_FRAMES + sizeof co.san);
    char *saved = calloc(1, size + UNDER_BESIDE);
    arch_saved_store(&co.san, saved, frames, UNDER_FRAMES, UNDER_BESIDE);
    CHECK(roots == 1 && last == saved && last_size == UNDER_FRAMES);
    memset(frames, 0, UNDER_FRAMES);
    arch_saved_load(&co.san, saved, frames, UNDER_FRAMES, UNDER_BESIDE);
    CHECK(roots == 0 && frames[0] == 'f' && frames[UNDER_FRAMES - 1] == 'f');
    memset(frames, 0, UNDER_FRAMES);
    arch_saved_start(&co.san, saved, frames, UNDER_FRAMES);
    CHECK_EQUAL(frames[0], 'f');
    arch_san_unmap(frames, UNDER_FRAMES); /* nothing is poisoned */
    arch_san_throw();
    free(saved);
    co_free(&co);
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK_EQUAL(arch_tool, ARCH_TOOL_LSAN);
    a_stack_is_a_root_as_long_as_its_context_lives();
    a_saved_stack_is_a_root_until_it_is_loaded_or_dropped();
    return failures != 0;
}
#endif
