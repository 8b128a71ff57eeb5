/*
 * The stack for a thread's signal handlers. Its memory has a guard page, the stack, and at the high end a description
 * of the thread's previous signal stack. One such memory stays with the process for the next run.
 */
#include "state.h"

#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51 /* Linux 5.14 */
#endif

enum { FOR_HANDLERS = 64 * 1024 };

void arch_signal_frame_find(void)
{
    arch_state.signal_frame = getauxval(AT_MINSIGSTKSZ);
}

size_t arch_signal_frame(void)
{
    return arch_state.signal_frame;
}

/* The stack alone. */
static size_t stack_bytes(void)
{
    size_t page = arch_page_size();
    return (FOR_HANDLERS + arch_signal_frame() + page - 1) / page * page;
}

static int take(void **out)
{
    size_t page = arch_page_size();
    *out = atomic_exchange_explicit(&arch_state.spare_signal_stack, NULL, memory_order_acquire); /* [PB1] */
    if (*out) {
        arch_san_acquire(&arch_state.spare_signal_stack);
        return 0;
    }
    int error = arch_map(page + stack_bytes() + page, out);
    if (!error)
        (void)mprotect(*out, page, PROT_NONE);
    return error;
}

static void give(void *memory)
{
    void *none = NULL;
    arch_san_release(&arch_state.spare_signal_stack);
    if (!atomic_compare_exchange_strong_explicit(&arch_state.spare_signal_stack, &none, memory, memory_order_release,
                                                 memory_order_relaxed)) /* [PB1] */
        arch_unmap(memory, arch_page_size() * 2 + stack_bytes());
}

int arch_signals_thread_enter(void **memory)
{
    size_t page = arch_page_size();
    void *base;
    int error = take(&base);
    if (error)
        return error;
    stack_t *before = (stack_t *)(void *)((char *)base + page + stack_bytes());
    stack_t stack = {.ss_sp = (char *)base + page, .ss_size = stack_bytes()};
    if (sigaltstack(&stack, before) < 0) {
        error = -errno;
        give(base);
        return error;
    }
    *memory = base;
    return 0;
}

char *arch_signal_sp(const void *ucontext)
{
    const ucontext_t *interrupted = ucontext;
    char *sp = (char *)interrupted->uc_mcontext.gregs[REG_RSP], *low = interrupted->uc_stack.ss_sp;
    bool on_signal_stack = sp >= low && sp < low + interrupted->uc_stack.ss_size;
    return on_signal_stack ? NULL : sp;
}

void arch_signals_thread_leave(void *memory)
{
    size_t page = arch_page_size();
    stack_t *before = (stack_t *)(void *)((char *)memory + page + stack_bytes());
    /* Refused on the signal stack itself, which then has to stay. */
    if (sigaltstack(before, NULL) == 0)
        give(memory);
}
