/*
 * Coroutines for the unit tests of src/arch: a stack, a guard, the announcements to sanitizers and the jump, as the
 * scheduler uses them. The functions that switch are not instrumented, and announce what TSan is to know: the switches
 * of a coroutine are in order.
 */
#ifndef ARCH_CO_H
#define ARCH_CO_H

#include "arch_check.h"

enum { CO_STACK = 256 * 1024, CO_ABOVE = 256 };

struct co {
    char *low;
    arch_context context;
    struct arch_san san;
    void (*fn)(struct co *co);
    void *arg;
    bool ended;
};

/* The stack of a thread, as long as a coroutine runs on it. */
struct co_host {
    struct arch_san san;
    arch_context context;
    struct co *running;
};

static __thread struct co_host co_host;

/* Called again after each switch: a coroutine may continue on another thread. */
ARCH_NOT_INSTRUMENTED static NOINLINE __attribute__((unused)) struct co_host *co_here(void)
{
    __asm__ volatile("" ::: "memory");
    return &co_host;
}

static inline void co_make(struct co *co, void (*fn)(struct co *co), void *arg)
{
    void *low;
    if (arch_map(CO_STACK, &low) < 0 || arch_guard_install(low, false) < 0)
        abort();
    *co = (struct co){.low = low, .fn = fn, .arg = arg};
}

static inline void co_free(struct co *co)
{
    arch_unmap(co->low, CO_STACK);
}

ARCH_NOT_INSTRUMENTED static inline void co_leave_(struct co *co, bool ends)
{
    struct co_host *host = co_here();
    arch_san_release(co);
    arch_san_leave(&co->san, &host->san, ends);
    struct arch_transfer transfer = arch_context_jump(host->context, NULL);
    arch_san_arrive(&co->san);
    arch_san_acquire(co);
    co_here()->context = transfer.from;
}

static inline void co_yield (struct co *co)
{
    co_leave_(co, false);
}

ARCH_NOT_INSTRUMENTED static NOINLINE void co_entry_(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    struct co *co = co_here()->running;
    arch_san_arrive(&co->san);
    arch_san_acquire(co);
    co_here()->context = transfer.from;
    co->fn(co);
    co->ended = true;
    co_leave_(co, true);
    abort();
}

/* Go on with co until it yields or ends. */
ARCH_NOT_INSTRUMENTED static inline void co_resume(struct co *co)
{
    struct co_host *host = co_here();
    size_t room = CO_STACK - CO_ABOVE;
    arch_san_thread(&host->san);
    if (co->context) {
        arch_san_resumed(&co->san);
    } else {
        arch_san_make(&co->san, co->low, room);
        co->context = arch_context_make(co->low + room, room, co_entry_);
    }
    host->running = co;
    arch_san_release(co);
    arch_san_leave(&host->san, &co->san, false);
    struct arch_transfer transfer = arch_context_jump(co->context, NULL);
    arch_san_arrive(&host->san);
    arch_san_acquire(co);
    arch_san_thread_end(&host->san);
    if (co->ended) {
        arch_san_end(&co->san);
    } else {
        co->context = transfer.from;
        arch_san_suspended(&co->san, transfer.from);
    }
}

#endif
