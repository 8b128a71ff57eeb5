/*
 * What is announced to valgrind. Its requests are instructions that change nothing elsewhere, so the
 * test says itself that valgrind is there, and checks that what is copied stays as it is.
 */
#include "arch_under.h"

static void a_stack_is_registered_and_left(void)
{
    under_switch();
    char below[64] = "as it was";
    arch_san_unwritten(below, sizeof below);
    CHECK(strcmp(below, "as it was") == 0);
}

static void frames_are_copied_as_they_are(void)
{
    struct co co;
    co_make(&co, under_yield_once, NULL);
    arch_san_make(&co.san, co.low, CO_STACK - CO_ABOVE);
    char *frames = under_frames(&co);
    memset(frames, 'f', UNDER_FRAMES);
    size_t size = arch_saved_size(UNDER_FRAMES);
    CHECK_EQUAL(size, UNDER_FRAMES + sizeof co.san);
    char *saved = calloc(1, size + UNDER_BESIDE);
    arch_saved_store(&co.san, saved, frames, UNDER_FRAMES, UNDER_BESIDE);
    memset(frames, 0, UNDER_FRAMES);
    arch_saved_load(&co.san, saved, frames, UNDER_FRAMES, UNDER_BESIDE);
    CHECK(frames[0] == 'f' && frames[UNDER_FRAMES - 1] == 'f');
    memset(frames, 0, UNDER_FRAMES);
    arch_saved_start(&co.san, saved, frames, UNDER_FRAMES);
    CHECK(frames[0] == 'f' && frames[UNDER_FRAMES - 1] == 'f');
    arch_saved_drop(saved, UNDER_FRAMES);
    arch_san_throw();
    arch_san_unmap(frames, UNDER_FRAMES);
    arch_san_end(&co.san);
    free(saved);
    co_free(&co);
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    if (arch_tool != ARCH_TOOL_NONE)
        return failures != 0;
    arch_tool = ARCH_TOOL_VALGRIND;
    CHECK(!arch_san_separate() && !arch_san_membarrier() && arch_san_threads() == 0);
    a_stack_is_registered_and_left();
    frames_are_copied_as_they_are();
    return failures != 0;
}
