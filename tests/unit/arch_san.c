/*
 * Announcements to sanitizers: in sanitized builds these programs of coroutines, which are right, must run without a
 * report, and memory that only a suspended stack points to is no leak.
 */
#include "arch_co.h"

#include <sys/mman.h>

enum { COROUTINES = 20, ROUNDS = 30 };

static _Atomic int busy[COROUTINES];
static _Atomic int left;
static struct co coroutines[COROUTINES];
static int sums[COROUTINES];

static NOINLINE int work(struct co *co, int depth)
{
    char bytes[100];
    memset(bytes, depth, sizeof bytes);
    if (depth == 0)
        co_yield (co);
    else
        work(co, depth - 1);
    int sum = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        sum += bytes[i];
    return sum;
}

/* The only pointer to its memory is on its stack. */
static void rounds(struct co *co)
{
    int *sum = malloc(sizeof *sum);
    *sum = 0;
    for (int i = 0; i < ROUNDS; i++)
        *sum += work(co, i % 10);
    *(int *)co->arg = *sum;
    free(sum);
}

/* Each goes on wherever a thread has time for it. */
static void *drive(void *arg)
{
    for (int i = 0; atomic_load(&left) > 0; i = (i + 1) % COROUTINES) {
        if (atomic_exchange(&busy[i], 1))
            continue;
        arch_san_acquire(&coroutines[i]);
        if (!coroutines[i].ended) {
            co_resume(&coroutines[i]);
            if (coroutines[i].ended)
                atomic_fetch_sub(&left, 1);
        }
        arch_san_release(&coroutines[i]);
        atomic_store(&busy[i], 0);
    }
    return arg;
}

static int reference(void)
{
    struct co co;
    int sum = 0;
    co_make(&co, rounds, &sum);
    while (!co.ended)
        co_resume(&co);
    co_free(&co);
    return sum;
}

static void coroutines_on_two_threads_are_right(void)
{
    int expected = reference();
    CHECK(expected > 0);
    for (int i = 0; i < COROUTINES; i++)
        co_make(&coroutines[i], rounds, &sums[i]);
    atomic_store(&left, COROUTINES);
    arch_thread threads[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(arch_thread_start(&threads[i], drive, NULL, "drive"), 0);
    for (int i = 0; i < 2; i++)
        arch_thread_join(threads[i]);
    for (int i = 0; i < COROUTINES; i++) {
        arch_san_acquire(&coroutines[i]);
        CHECK_EQUAL(sums[i], expected);
        co_free(&coroutines[i]);
    }
}

/* Ends in the middle, as a strand does whose frames are not left one by one. */
static NOINLINE void end_deep(struct co *co, int depth)
{
    char bytes[48];
    memset(bytes, depth, sizeof bytes);
    if (depth > 0) {
        end_deep(co, depth - 1);
    } else {
        co->ended = true;
        co_leave_(co, true);
    }
    memset(bytes, depth, sizeof bytes);
}

static void end_in_the_middle(struct co *co)
{
    end_deep(co, 40);
}

/* A stack that was left at its end may be used again, whatever the last context has left on it. */
static void a_stack_can_be_used_again(void)
{
    struct co co;
    int first = 0;
    co_make(&co, rounds, &first);
    for (int i = 0; i < 50; i++) {
        int sum = 0;
        co.arg = &sum;
        co.fn = i % 2 ? end_in_the_middle : rounds;
        co.context = NULL;
        co.ended = false;
        while (!co.ended)
            co_resume(&co);
        if (i % 2)
            continue;
        CHECK(sum != 0 && (first == 0 || sum == first));
        first = sum;
    }
    co_free(&co);
}

/* Nor does it affect the next user of the addresses after the stack was freed. */
static void what_lay_on_a_stack_is_forgotten_with_it(void)
{
    struct co co;
    co_make(&co, end_in_the_middle, NULL);
    co_resume(&co);
    CHECK(co.ended);
    co_free(&co);
    char *low =
        mmap(co.low, CO_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(low == co.low);
    memset(low, 1, CO_STACK);
    munmap(low, CO_STACK);
}

static NOINLINE void keep(struct co *co)
{
    char *volatile only = malloc(1000);
    only[0] = 1;
    co_yield (co);
    free(only);
}

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#define LEAKS() __lsan_do_recoverable_leak_check()
#else
#define LEAKS() 0
#endif

static void what_a_suspended_stack_points_to_is_no_leak(void)
{
    struct co co;
    co_make(&co, keep, NULL);
    co_resume(&co);
    CHECK_EQUAL(LEAKS(), 0);
    co_resume(&co);
    CHECK(co.ended);
    co_free(&co);
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    coroutines_on_two_threads_are_right();
    a_stack_can_be_used_again();
    what_lay_on_a_stack_is_forgotten_with_it();
    what_a_suspended_stack_points_to_is_no_leak();
    return failures != 0;
}
