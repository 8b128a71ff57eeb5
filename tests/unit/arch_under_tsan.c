/*
 * What is announced to ThreadSanitizer, played by this test: a context is a fiber, which a fiber that
 * does nothing else makes; no switch means an order, and what is announced as one is.
 */
#include "arch/state.h"
#include "arch_under.h"

#if SANITIZED
int main(void)
{
    return 0;
}
#else

enum { NO_ORDER = 1 };

/* The fibers are numbers: 1 is the thread's own. */
static uintptr_t made = 1, destroyed, current = 1, maker;
static int switches, acquired, released;

void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *at);
void __tsan_release(void *at);

void *__tsan_get_current_fiber(void)
{
    return (void *)current;
}

/* The first one is the maker, and only it makes others. */
void *__tsan_create_fiber(unsigned flags)
{
    CHECK_EQUAL(flags, 0);
    CHECK(made == 1 || current == maker);
    made++;
    if (!maker)
        maker = made;
    return (void *)made;
}

void __tsan_destroy_fiber(void *fiber)
{
    destroyed = (uintptr_t)fiber;
}

void __tsan_switch_to_fiber(void *fiber, unsigned flags)
{
    CHECK_EQUAL(flags, NO_ORDER);
    current = (uintptr_t)fiber;
    switches++;
}

void __tsan_acquire(void *at)
{
    CHECK(at != NULL);
    acquired++;
}

void __tsan_release(void *at)
{
    CHECK(at != NULL);
    released++;
}

static uintptr_t seen;

static void see_fiber(struct co *co)
{
    seen = current;
    co_yield (co);
    CHECK_EQUAL(current, seen);
}

static void a_context_is_a_fiber_of_its_own(void)
{
    struct co co;
    co_make(&co, see_fiber, NULL);
    co_resume(&co);
    CHECK(seen > 1 && seen != maker);
    CHECK_EQUAL(current, 1);
    co_resume(&co);
    CHECK_EQUAL(current, 1);
    CHECK_EQUAL(destroyed, seen);
    CHECK_EQUAL(switches, 2 + 4);
    CHECK(acquired > 0 && released > 0);
    co_free(&co);
}

/* Data above a stack stays when the stack's memory is mapped again; the contents of the stack are gone. */
static void the_memory_of_a_new_stack_is_new(void)
{
    struct co co;
    co_make(&co, see_fiber, NULL);
    char *top = co.low + CO_STACK - CO_ABOVE;
    memset(top, 'a', CO_ABOVE);
    memset(top - 1000, 'o', 1000);
    arch_san_make(&co.san, co.low, CO_STACK - CO_ABOVE);
    CHECK(top[0] == 'a' && top[CO_ABOVE - 1] == 'a');
    CHECK_EQUAL(top[-1], 0);
    arch_san_end(&co.san);
    arch_san_make(&co.san, co.low, CO_STACK - CO_ABOVE);
    arch_san_end(&co.san);
    co_free(&co);
}

static void nothing_is_kept_beside_a_saved_stack(void)
{
    struct co co;
    co_make(&co, see_fiber, NULL);
    char *frames = under_frames(&co);
    memset(frames, 'f', UNDER_FRAMES);
    char *saved = calloc(1, arch_saved_size(UNDER_FRAMES) + UNDER_BESIDE);
    arch_saved_store(&co.san, saved, frames, UNDER_FRAMES, UNDER_BESIDE);
    memset(frames, 0, UNDER_FRAMES);
    arch_saved_load(&co.san, saved, frames, UNDER_FRAMES, UNDER_BESIDE);
    CHECK(frames[0] == 'f' && frames[UNDER_FRAMES - 1] == 'f');
    arch_saved_drop(saved, UNDER_FRAMES);
    arch_san_unmap(frames, UNDER_FRAMES);
    arch_san_throw();
    free(saved);
    co_free(&co);
}

static int handled;

static void handle(int signal)
{
    handled = signal;
}

static void a_handler_is_set_behind_its_back(void)
{
    struct sigaction action = {.sa_handler = handle}, before;
    CHECK_EQUAL(arch_san_sigaction(SIGUSR1, &action, &before), 0);
    CHECK(before.sa_handler == SIG_DFL);
    raise(SIGUSR1);
    CHECK_EQUAL(handled, SIGUSR1);
    CHECK_EQUAL(arch_san_sigaction(SIGUSR1, &before, NULL), 0);
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK_EQUAL(arch_tool, ARCH_TOOL_TSAN);
    CHECK(arch_san_separate() && !arch_san_membarrier() && arch_san_threads() == 1);
    a_context_is_a_fiber_of_its_own();
    the_memory_of_a_new_stack_is_new();
    nothing_is_kept_beside_a_saved_stack();
    a_handler_is_set_behind_its_back();
    return failures != 0;
}
#endif
