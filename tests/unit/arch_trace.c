/*
 * Traces of the caller, of a suspended context in place and as a saved stack, and of the code that a signal
 * interrupted; names.
 */
#include "arch_co.h"

#include <signal.h>
#include <unwind.h>

enum { MOST = 200 };

static void *ips[MOST];
static size_t count;

/* How many addresses from the first on are inside of a function. */
static size_t run_of(void *const *from, size_t most, const char *function)
{
    size_t run = 0;
    for (; run < most; run++) {
        char name[64];
        uintptr_t offset;
        if (!arch_symbol(from[run], name, sizeof name, &offset) || strcmp(name, function) != 0)
            break;
    }
    return run;
}

#define NOT_A_TAIL_CALL() __asm__ volatile("")

NOINLINE void take_trace(size_t max)
{
    count = arch_trace(ips, max);
    NOT_A_TAIL_CALL();
}

NOINLINE void step_down(int depth, void (*bottom)(void *), void *arg)
{
    if (depth == 0)
        bottom(arg);
    else
        step_down(depth - 1, bottom, arg);
    NOT_A_TAIL_CALL();
}

NOINLINE void bottom_traces(void *arg)
{
    size_t *max = arg;
    take_trace(*max);
    NOT_A_TAIL_CALL();
}

static void a_trace_starts_with_the_caller(void)
{
    size_t max = MOST;
    step_down(9, bottom_traces, &max);
    CHECK(count > 13 && count < MOST);
    CHECK_EQUAL(run_of(ips, count, "take_trace"), 1);
    CHECK_EQUAL(run_of(ips + 1, count - 1, "bottom_traces"), 1);
    CHECK_EQUAL(run_of(ips + 2, count - 2, "step_down"), 10);
}

static void a_trace_is_cut_off(void)
{
    size_t max = 4;
    step_down(9, bottom_traces, &max);
    CHECK_EQUAL(count, 4);
    CHECK_EQUAL(run_of(ips, 1, "take_trace"), 1);
    CHECK_EQUAL(run_of(ips + 2, count - 2, "step_down"), 2);
    max = 0;
    step_down(9, bottom_traces, &max);
    CHECK_EQUAL(count, 0);
}

/* ---- the same as libgcc's ------------------------------------------------------------------------------------- */

struct walked {
    void *ips[MOST];
    size_t count;
};

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *arg)
{
    struct walked *walked = arg;
    void *ip = (void *)_Unwind_GetIP(context);
    if (ip && walked->count < MOST)
        walked->ips[walked->count++] = ip;
    return _URC_NO_REASON;
}

/* The two differ in where this function calls them. */
NOINLINE void compare_traces(void)
{
    struct walked libgcc = {.count = 0};
    (void)_Unwind_Backtrace(take_frame, &libgcc);
    count = arch_trace(ips, MOST);
    CHECK_EQUAL(count, libgcc.count);
    CHECK(count > 2 && memcmp(ips + 1, libgcc.ips + 1, (count - 1) * sizeof *ips) == 0);
}

static uint64_t random_state;

static unsigned next_random(unsigned below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(random_state >> 33) % below;
}

static void wander(int left);

NOINLINE void wander_with_a_small_frame(int left)
{
    wander(left);
    NOT_A_TAIL_CALL();
}

NOINLINE void wander_with_a_large_frame(int left)
{
    volatile char room[5000];
    room[left] = 1;
    wander(left);
    room[left]++;
}

/* A frame of a size that the compiler does not know has a frame pointer. */
NOINLINE void wander_with_a_frame_pointer(int left)
{
    volatile char room[next_random(300) + 1];
    room[0] = 1;
    wander(left);
    room[0]++;
}

/* The frame pointer may hold any value in a function that has none. */
NOINLINE void wander_with_all_registers(int left)
{
    unsigned a = next_random(9), b = next_random(9), c = next_random(9), d = next_random(9), e = next_random(9),
             f = next_random(9);
    wander(left);
    __asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
}

NOINLINE void wander_by_the_stack(int a, int b, int c, int d, int e, int f, int left, int h)
{
    wander(left);
    __asm__ volatile("" ::"r"(a + b + c + d + e + f + h));
}

NOINLINE void wander_with_arguments_on_the_stack(int left)
{
    wander_by_the_stack(1, 2, 3, 4, 5, 6, left, 8);
    NOT_A_TAIL_CALL();
}

static void wander(int left)
{
    static void (*const ways[])(int) = {wander_with_a_small_frame, wander_with_a_large_frame,
                                        wander_with_a_frame_pointer, wander_with_all_registers,
                                        wander_with_arguments_on_the_stack};
    if (left == 0)
        compare_traces();
    else
        ways[next_random(sizeof ways / sizeof *ways)](left - 1);
    NOT_A_TAIL_CALL();
}

static void a_trace_is_the_same_as_libgcc_s(void)
{
    for (uint64_t i = 0; i < 5000; i++) {
        random_state = i;
        wander((int)next_random(40));
    }
}

static void *trace_on_a_thread(void *arg)
{
    step_down(9, bottom_traces, arg);
    NOT_A_TAIL_CALL();
    return NULL;
}

/* Below lie a frame of the library and those of the C library. */
static void a_trace_ends_where_a_thread_of_the_library_begins(void)
{
    size_t max = MOST;
    arch_thread thread;
    CHECK_EQUAL(arch_thread_start(&thread, trace_on_a_thread, &max, "traced"), 0);
    arch_thread_join(thread);
    CHECK_EQUAL(count, 13);
    CHECK_EQUAL(run_of(ips + 12, 1, "trace_on_a_thread"), 1);
}

/* The stack of a coroutine ends at its entry. */
static void check_coroutine(void *const *from, size_t frames, size_t depth)
{
    size_t bottom = 0;
    while (bottom < frames && run_of(from + bottom, 1, "step_down") == 0)
        bottom++;
    CHECK(bottom <= 4);
    size_t run = run_of(from + bottom, frames - bottom, "step_down");
    CHECK_EQUAL(run, depth + 1);
    CHECK_EQUAL(run_of(from + bottom + run, frames - bottom - run, "goes_deep"), 1);
    CHECK_EQUAL(run_of(from + bottom + run + 1, frames - bottom - run - 1, "co_entry_"), 1);
    CHECK_EQUAL(frames, bottom + run + 2);
}

NOINLINE void bottom_traces_twice(void *arg)
{
    struct co *co = arg;
    for (int i = 0; i < 2; i++) {
        take_trace(MOST);
        check_coroutine(ips, count, 100);
        co_yield (co); /* and goes on on another thread */
    }
    NOT_A_TAIL_CALL();
}

NOINLINE void goes_deep(struct co *co)
{
    step_down(100, bottom_traces_twice, co);
    NOT_A_TAIL_CALL();
}

static void *resume(void *arg)
{
    co_resume(arg);
    return NULL;
}

static void a_coroutine_s_trace_ends_at_its_entry_on_every_thread(void)
{
    struct co co;
    co_make(&co, goes_deep, NULL);
    for (int i = 0; i < 3; i++) {
        arch_thread thread;
        if (i == 1)
            co_resume(&co);
        else if (arch_thread_start(&thread, resume, &co, "other") == 0)
            arch_thread_join(thread);
    }
    CHECK(co.ended);
    co_free(&co);
}

static void a_suspended_context_has_a_trace(void)
{
    struct co co;
    co_make(&co, goes_deep, NULL);
    co_resume(&co);
    void *there[MOST];
    size_t frames = arch_trace_context(co.context, NULL, 0, 0, there, MOST);
    check_coroutine(there, frames, 100);
    CHECK_EQUAL(arch_trace_context(co.context, NULL, 0, 0, there, 3), 3);
    co_resume(&co);
    co_resume(&co);
    CHECK(co.ended);
    co_free(&co);
}

__attribute__((no_sanitize_address)) static void swap_out(uint64_t *saved, uint64_t *stack, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        saved[i] = stack[i];
        ((volatile uint64_t *)stack)[i] = UINT64_C(0xAAAAAAAAAAAAAAAA);
    }
}

__attribute__((no_sanitize_address)) static void swap_in(const uint64_t *saved, uint64_t *stack, size_t words)
{
    for (size_t i = 0; i < words; i++)
        ((volatile uint64_t *)stack)[i] = saved[i];
}

static void so_has_one_whose_stack_is_elsewhere(void)
{
    struct co co;
    co_make(&co, goes_deep, NULL);
    co_resume(&co);
    uint64_t *stack = co.context;
    size_t size = (size_t)(co.low + CO_STACK - (char *)co.context);
    uint64_t *saved = malloc(size);
    swap_out(saved, stack, size / sizeof *stack);
    void *there[MOST];
    size_t frames = arch_trace_context(co.context, saved, (uintptr_t)stack, size, there, MOST);
    check_coroutine(there, frames, 100);
    swap_in(saved, stack, size / sizeof *stack);
    free(saved);
    co_resume(&co);
    co_resume(&co);
    CHECK(co.ended);
    co_free(&co);
}

static void on_signal(int number, siginfo_t *info, void *ucontext)
{
    (void)number, (void)info;
    count = arch_trace_signal(ucontext, ips, MOST);
}

NOINLINE void bottom_faults(void *arg)
{
    (void)arg;
    __asm__ volatile("ud2\n\tnop"); /* the handler steps over it */
    NOT_A_TAIL_CALL();
}

static void step_over(int number, siginfo_t *info, void *ucontext)
{
    on_signal(number, info, ucontext);
    ((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void a_signal_handler_sees_what_it_interrupted(void)
{
    struct sigaction action = {.sa_sigaction = step_over, .sa_flags = SA_SIGINFO}, before;
    sigaction(SIGILL, &action, &before);
    count = 0;
    step_down(9, bottom_faults, NULL);
    sigaction(SIGILL, &before, NULL);
    CHECK(count > 12);
    CHECK_EQUAL(run_of(ips, count, "bottom_faults"), 1);
    CHECK_EQUAL(run_of(ips + 1, count - 1, "step_down"), 10);
}

static NOINLINE void named_function(void)
{
    take_trace(2);
    NOT_A_TAIL_CALL();
}

static void names_are_found_and_shortened(void)
{
    char name[64], small[6];
    uintptr_t offset = 0;
    named_function();
    CHECK_EQUAL(count, 2);
    CHECK(arch_symbol(ips[1], name, sizeof name, &offset));
    CHECK(strcmp(name, "named_function") == 0);
    CHECK((char *)ips[1] - offset == (char *)(uintptr_t)named_function);
    CHECK(arch_symbol(ips[1], small, sizeof small, &offset));
    CHECK(strcmp(small, "named") == 0);
    CHECK(!arch_symbol((void *)(uintptr_t)16, name, sizeof name, &offset));
    CHECK(strcmp(name, "?") == 0 && offset == 16);
}

int main(void)
{
    count = arch_trace(ips, MOST); /* before the start */
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK_EQUAL(run_of(ips, count, "main"), 1);
    a_trace_starts_with_the_caller();
    a_trace_is_cut_off();
    a_trace_is_the_same_as_libgcc_s();
    a_trace_ends_where_a_thread_of_the_library_begins();
    a_coroutine_s_trace_ends_at_its_entry_on_every_thread();
    a_suspended_context_has_a_trace();
    so_has_one_whose_stack_is_elsewhere();
    a_signal_handler_sees_what_it_interrupted();
    names_are_found_and_shortened();
    return failures != 0;
}
