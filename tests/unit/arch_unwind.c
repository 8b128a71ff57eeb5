/*
 * Throwing: clean-ups run innermost first and once, a try's own one leaves, clean-ups contain tries and switch, foreign
 * exceptions are noticed. The frames here are what the macros of the public header make of a try block.
 */
#include "arch_co.h"

#include <dlfcn.h>
#include <unwind.h>

int strand_setjmp_(void **jump) __attribute__((returns_twice));

/* The words of a try block's frame. */
struct attempt {
    void *jump[8];
    struct arch_flight *flight; /* NULL: nothing is in flight through this block */
    uint32_t form;
    bool caught;
};

static struct arch_flight *flying; /* the innermost exception in flight */
static int order[64], ran;

static ARCH_NOT_INSTRUMENTED NOINLINE void attempt_leave(struct attempt *attempt)
{
    if (flying == attempt->flight || attempt->caught)
        return;
    flying = attempt->flight;
    attempt->caught = true;
    arch_longjmp(attempt->jump, attempt->form);
}

static void note(const int *number)
{
    if (ran < 64)
        order[ran] = *number;
    ran++;
}

#define CLEANUP(name, number) __attribute__((cleanup(note), unused)) int name = (number)

static NOINLINE __attribute__((noreturn)) void throw(struct arch_flight * flight)
{
    flying = flight;
    arch_unwind(flight);
}

static NOINLINE int deep(int depth, struct arch_flight *flight)
{
    CLEANUP(mine, depth);
    if (depth == 0)
        throw(flight);
    return depth < 0 ? 0 : deep(depth - 1, flight) + mine;
}

#define ATTEMPT(name, which)                                                                                           \
    __attribute__((cleanup(attempt_leave))) struct attempt name = {.flight = flying, .form = which}

static NOINLINE bool catches_builtin(int depth)
{
    struct arch_flight flight = {.caught = NULL};
    CLEANUP(outer, 100);
    {
        ATTEMPT(attempt, 0);
        if (__builtin_setjmp(attempt.jump) == 0) {
            CLEANUP(inner, 50);
            deep(depth, &flight);
        }
        return attempt.caught;
    }
}

/* Under -fcf-protection gcc puts the shadow stack pointer, which is 0, before the stack pointer. */
static NOINLINE bool catches_builtin_protected(int depth)
{
    struct arch_flight flight = {.caught = NULL};
    CLEANUP(outer, 100);
    {
        ATTEMPT(attempt, 0);
        if (__builtin_setjmp(attempt.jump) == 0) {
            CLEANUP(inner, 50);
            attempt.jump[3] = attempt.jump[2];
            attempt.jump[2] = NULL;
            deep(depth, &flight);
        }
        return attempt.caught;
    }
}

static NOINLINE bool catches_own(int depth)
{
    struct arch_flight flight = {.caught = NULL};
    CLEANUP(outer, 100);
    {
        ATTEMPT(attempt, 1);
        if (strand_setjmp_(attempt.jump) == 0) {
            CLEANUP(inner, 50);
            deep(depth, &flight);
        }
        return attempt.caught;
    }
}

/* contract 9.1, 9.4 */
static void clean_ups_run_innermost_first_and_once(void)
{
    bool (*const forms[])(int) = {catches_own, catches_builtin, catches_builtin_protected};
    for (int form = 0; form < 3; form++) {
#ifdef __clang__
        if (form > 0)
            continue; /* the public header does not use it there either */
#endif
        ran = 0;
        CHECK(forms[form](3));
        CHECK(flying == NULL);
        int expected[] = {0, 1, 2, 3, 50, 100};
        CHECK_EQUAL(ran, 6);
        CHECK(memcmp(order, expected, sizeof expected) == 0);
    }
}

static NOINLINE void nothing_thrown(void)
{
    struct arch_flight *before = flying;
    ATTEMPT(attempt, 1);
    CLEANUP(mine, 7);
    if (strand_setjmp_(attempt.jump) == 0)
        CHECK(!attempt.caught);
    CHECK(flying == before);
}

/* contract 9.1 */
static void a_normal_way_out_jumps_nowhere(void)
{
    ran = 0;
    nothing_thrown();
    CHECK_EQUAL(ran, 1);
}

/* A clean-up that runs during unwinding, contains a try of its own, and is suspended in the middle. */
static struct co *suspend;

static void busy_clean_up(int *number)
{
    note(number);
    struct arch_flight *outer = flying;
    CHECK(catches_own(1));
    CHECK(flying == outer);
    if (suspend)
        co_yield (suspend);
}

static NOINLINE bool through_busy(void)
{
    struct arch_flight flight = {.caught = NULL};
    ATTEMPT(attempt, 1);
    if (strand_setjmp_(attempt.jump) == 0) {
        __attribute__((cleanup(busy_clean_up), unused)) int number = 30;
        deep(2, &flight);
    }
    return attempt.caught;
}

/* contract 9.2 */
static void a_clean_up_may_contain_a_try(void)
{
    ran = 0;
    CHECK(through_busy());
    int expected[] = {0, 1, 2, 30, 0, 1, 50, 100};
    CHECK_EQUAL(ran, 8);
    CHECK(memcmp(order, expected, sizeof expected) == 0);
}

static void throw_and_switch(struct co *co)
{
    suspend = co;
    CHECK(through_busy());
}

static void *resume(void *arg)
{
    co_resume(arg);
    return NULL;
}

/* contract 9.1 */
static void an_unwinding_may_switch_and_change_threads(void)
{
    struct co co;
    ran = 0;
    co_make(&co, throw_and_switch, NULL);
    co_resume(&co);
    CHECK(!co.ended);
    suspend = NULL;
    arch_thread thread;
    CHECK_EQUAL(arch_thread_start(&thread, resume, &co, "other"), 0);
    arch_thread_join(thread);
    CHECK(co.ended);
    CHECK_EQUAL(ran, 8);
    co_free(&co);
}

static void throw_many(struct co *co)
{
    for (int i = 0; i < 20000; i++) {
        ran = 0;
        *(int *)co->arg += catches_own(i % 5);
    }
}

static void a_throw_leaves_nothing_behind(void)
{
    int caught = 0;
    struct co co;
    co_make(&co, throw_many, &caught);
    co_resume(&co);
    CHECK_EQUAL(caught, 20000);
    co_free(&co);
}

/* What a C++ catch (...) does at its end: it deletes the exception. */
static int swallowed;

static void on_caught(struct arch_flight *flight, bool aside)
{
    CHECK(!aside);
    CHECK(flight == flying);
    swallowed++;
}

static void delete_in_flight(int *number)
{
    (void)number;
    _Unwind_DeleteException((struct _Unwind_Exception *)(void *)flying->unwind_exception);
}

static NOINLINE void swallow(struct arch_flight *flight)
{
    ATTEMPT(attempt, 1);
    if (strand_setjmp_(attempt.jump) == 0) {
        __attribute__((cleanup(delete_in_flight), unused)) int number = 0;
        throw(flight);
    }
}

static void who_deletes_the_exception_catches_it(void)
{
    struct arch_flight flight = {.caught = on_caught};
    swallow(&flight);
    CHECK_EQUAL(swallowed, 1);
}

static int foreign;

static void on_foreign(const struct arch_foreign *unused)
{
    (void)unused;
    foreign++;
}

/* An exception of another language, which is not caught. */
static void *raise_foreign(void *arg)
{
    static struct _Unwind_Exception exception = {.exception_class = 1};
    CHECK(arg == &foreign);
    CHECK_EQUAL(_Unwind_RaiseException(&exception), _URC_END_OF_STACK);
    return &foreign;
}

static void *catch_ours(void *arg)
{
    (void)arg;
    return catches_own(2) ? &foreign : NULL;
}

static NOINLINE void *throw_through(void *arg)
{
    throw(arg);
}

static void an_exception_that_is_not_of_cxx_is_let_pass(struct co *co)
{
    (void)co;
    arch_on_foreign(on_foreign);
    CHECK(arch_call(catch_ours, NULL) == &foreign);
    struct arch_flight flight = {.caught = NULL};
    {
        ATTEMPT(attempt, 1);
        if (strand_setjmp_(attempt.jump) == 0)
            arch_call(throw_through, &flight);
        CHECK(attempt.caught);
    }
    CHECK_EQUAL(foreign, 0);
    CHECK(arch_call(raise_foreign, &foreign) == &foreign);
    CHECK_EQUAL(foreign, 0);
}

static void on_lost(void *ip)
{
    (void)ip;
    fputs("nobody catches it", stderr);
}

static void leave_nobody_catches(void)
{
    arch_on_lost(on_lost);
    static struct arch_flight flight; /* no frame of the stack outlives this one */
    throw(&flight);
}

/* contract 9.3 */
static void an_exception_that_nobody_catches_is_reported_and_ends_the_program(void)
{
    char text[4096];
    int status = in_child(leave_nobody_catches, text, sizeof text);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(strstr(text, "nobody catches it") != NULL);
}

/* contract 4.60 */
static void without_cxx(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    if (!SANITIZED)
        CHECK(arch_cxx_globals() == NULL); /* sanitizers bring the C++ runtime along */
}

/* contract 4.60 */
static void with_cxx(void)
{
    if (!dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL))
        return;
    CHECK_EQUAL(arch_process_start(), 0);
    struct arch_cxx *globals = arch_cxx_globals();
    CHECK(globals != NULL && globals == arch_cxx_globals());
    CHECK(globals && globals->caught == NULL && globals->uncaught == 0);
}

static void the_stack_pointer_of_a_jump_is_known(void)
{
    int stack;
    void *own[8] = {[6] = &stack}, *builtin[8] = {[2] = &stack}, *with_a_shadow_stack[8] = {[3] = &stack};
    CHECK(arch_jump_stack(own, 1) == &stack);
    CHECK(arch_jump_stack(builtin, 0) == &stack);
    CHECK(arch_jump_stack(with_a_shadow_stack, 0) == &stack);
}

int main(void)
{
    CHECK_CHILD(without_cxx);
    CHECK_CHILD(with_cxx);
    CHECK_EQUAL(arch_process_start(), 0);
    the_stack_pointer_of_a_jump_is_known();
    clean_ups_run_innermost_first_and_once();
    a_normal_way_out_jumps_nowhere();
    a_clean_up_may_contain_a_try();
    an_unwinding_may_switch_and_change_threads();
    a_throw_leaves_nothing_behind();
    who_deletes_the_exception_catches_it();
    struct co co;
    co_make(&co, an_exception_that_is_not_of_cxx_is_let_pass, NULL);
    co_resume(&co);
    CHECK(co.ended);
    co_free(&co);
    an_exception_that_nobody_catches_is_reported_and_ends_the_program();
    return failures != 0;
}
