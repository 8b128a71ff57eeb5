/*
 * Which processors a thread may use, and binding it to one.
 */
#include "arch_check.h"

enum { NO_CPU = 100000 };

static int allowed_cpu(void)
{
    int cpu = 0;
    while (!arch_cpu_is_allowed(cpu))
        cpu++;
    return cpu;
}

static void what_does_not_exist_is_not_allowed(void)
{
    CHECK(!arch_cpu_is_allowed(-1));
    CHECK(!arch_cpu_is_allowed(NO_CPU));
    CHECK(arch_thread_bind(NO_CPU) < 0);
}

static void a_bound_thread_does_not_change_what_the_program_may_use(void)
{
    int count = arch_cpus_allowed(), cpu = allowed_cpu();
    CHECK(count > 0);
    CHECK_EQUAL(arch_thread_bind(cpu), 0);
    CHECK_EQUAL(arch_cpus_allowed(), count);
    CHECK(arch_cpu_is_allowed(cpu));
    CHECK(!arch_cpu_is_allowed(NO_CPU));
    CHECK_EQUAL(arch_thread_bind(cpu), 0);
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    what_does_not_exist_is_not_allowed();
    a_bound_thread_does_not_change_what_the_program_may_use();
    return failures != 0;
}
