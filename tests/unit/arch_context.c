/*
 * Contexts: the jump hands data over, keeps what the ABI says, and goes on on any thread.
 */
#include "arch_co.h"

static void count_to_three(struct co *co)
{
    int *count = co->arg;
    for (int i = 0; i < 3; i++) {
        ++*count;
        co_yield (co);
    }
}

static void a_coroutine_goes_on_where_it_was(void)
{
    int count = 0;
    struct co co;
    co_make(&co, count_to_three, &count);
    for (int i = 1; i <= 3; i++) {
        co_resume(&co);
        CHECK_EQUAL(count, i);
        CHECK(!co.ended);
    }
    co_resume(&co);
    CHECK(co.ended);
    co_free(&co);
}

static void echo(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    for (;;)
        transfer = jump_fcontext(transfer.from, (char *)transfer.data + 1);
}

static void data_goes_both_ways(void)
{
    void *low;
    CHECK_EQUAL(arch_map(CO_STACK, &low), 0);
    struct arch_transfer transfer = {arch_context_make((char *)low + CO_STACK, CO_STACK, echo), NULL};
    char base[10];
    for (int i = 0; i < 9; i++) {
        transfer = jump_fcontext(transfer.from, base + i);
        CHECK(transfer.data == base + i + 1);
    }
    arch_unmap(low, CO_STACK);
}

#define ROUNDING 0x6000u
#define UPWARD 0x4000u
#define FLAGS 0x3fu

static void round_upwards(struct co *co)
{
    uint32_t mine = (__builtin_ia32_stmxcsr() & ~ROUNDING) | UPWARD;
    __builtin_ia32_ldmxcsr(mine);
    co_yield (co);
    CHECK_EQUAL(__builtin_ia32_stmxcsr() & ~FLAGS, mine & ~FLAGS);
}

static void rounding_is_a_context_s_own(void)
{
    uint32_t mine = __builtin_ia32_stmxcsr() & ~FLAGS;
    for (int slow = 0; slow < 2; slow++) {
        arch_mxcsr_is_slow = slow;
        struct co co;
        co_make(&co, round_upwards, NULL);
        co_resume(&co);
        CHECK_EQUAL(__builtin_ia32_stmxcsr() & ~FLAGS, mine);
        __builtin_ia32_ldmxcsr(mine | FLAGS);
        co_resume(&co);
        CHECK_EQUAL(__builtin_ia32_stmxcsr() & ~FLAGS, mine);
        CHECK(co.ended);
        co_free(&co);
    }
}

static void remember_thread(struct co *co)
{
    uint32_t *ids = co->arg;
    ids[0] = arch_thread_id();
    co_yield (co);
    ids[1] = arch_thread_id();
}

static void *resume(void *arg)
{
    co_resume(arg);
    return NULL;
}

/* contract 3.6 */
static void a_context_goes_on_on_another_thread(void)
{
    uint32_t ids[2] = {0};
    struct co co;
    co_make(&co, remember_thread, ids);
    co_resume(&co);
    arch_thread thread;
    CHECK_EQUAL(arch_thread_start(&thread, resume, &co, "other"), 0);
    arch_thread_join(thread);
    CHECK(co.ended);
    CHECK(ids[0] == arch_thread_id());
    CHECK(ids[1] != 0 && ids[1] != ids[0]);
    co_free(&co);
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    a_coroutine_goes_on_where_it_was();
    data_goes_both_ways();
    rounding_is_a_context_s_own();
    a_context_goes_on_on_another_thread();
    return failures != 0;
}
