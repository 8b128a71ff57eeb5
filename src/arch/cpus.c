/*
 * Processors: the set that this process may use, and threads bound to one.
 *
 * A thread inherits its maker's binding. So the first thread to be bound saves the set that it was allowed before, and
 * all threads that the library makes later are given that set.
 */
#include "state.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

enum { UNKNOWN = 3, CPUS_LEAST = 1024, CPUS_MOST = 1 << 20 };

/* The processors that this thread may use; NULL: unknown. */
static struct arch_cpus *allowed(void)
{
    int error = EINVAL;
    for (size_t cpus = CPUS_LEAST; cpus <= CPUS_MOST && error == EINVAL; cpus *= 2) {
        size_t size = CPU_ALLOC_SIZE(cpus);
        struct arch_cpus *set = calloc(1, sizeof *set + size);
        if (!set)
            return NULL;
        set->size = size;
        error = sched_getaffinity(0, size, set->set) < 0 ? errno : 0;
        if (!error)
            return set;
        free(set);
    }
    return NULL;
}

static struct arch_cpus *before(void)
{
    return atomic_load_explicit(&arch_state.cpus, memory_order_acquire); /* [PB1] */
}

int arch_cpus_allowed(void)
{
    struct arch_cpus *set = before() ? before() : allowed();
    int count = set ? CPU_COUNT_S(set->size, set->set) : UNKNOWN;
    if (set != before())
        free(set);
    return count > 0 ? count : UNKNOWN;
}

bool arch_cpu_is_allowed(int cpu)
{
    struct arch_cpus *set = before() ? before() : allowed();
    bool is = cpu >= 0 && (!set || CPU_ISSET_S((size_t)cpu, set->size, set->set)); /* otherwise the binding is
                                                                                    * refused */
    if (set != before())
        free(set);
    return is;
}

int arch_thread_bind(int cpu)
{
    struct arch_cpus *set = before(), *none = NULL;
    if (!set) {
        set = allowed();
        if (set && !atomic_compare_exchange_strong_explicit(&arch_state.cpus, &none, set, memory_order_acq_rel,
                                                            memory_order_acquire)) /* [PB1] */
            free(set);
    }
    size_t size = CPU_ALLOC_SIZE((size_t)cpu + 1);
    cpu_set_t *one = calloc(1, size);
    if (!one)
        return -ENOMEM;
    CPU_SET_S((size_t)cpu, size, one);
    int error = sched_setaffinity(0, size, one) < 0 ? -errno : 0;
    free(one);
    return error;
}

void arch_thread_unbind(void)
{
    struct arch_cpus *set = before();
    if (set)
        (void)sched_setaffinity(0, set->size, set->set);
}
