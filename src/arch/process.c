/*
 * The state that is the process's, and what starts it: the handle range, the numbers of strands, the fault handlers,
 * the measurements of the processor. All mutable file-scope state of the library is in this file.
 *
 * One lock guards the start, the chunks of the handle range and the installing of handlers; fork handlers hold it
 * across a fork, so a child finds all of it whole. The fault handler itself takes no lock.
 */
#include "state.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct arch_state arch_state = {.serials = 1};

bool arch_mxcsr_is_slow;
bool arch_membarrier_works;
char *arch_handles;
size_t arch_handles_size;
__thread void *arch_self_ __attribute__((used)); /* the thread's; assembler reads it */

void arch_set_self(void *self)
{
    arch_self_ = self;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;

void base_bug(const char *file, int line, const char *what)
{
    char text[512];
    int length = snprintf(text, sizeof text, "strand: internal error: %s:%d: %s\n", file, line, what);
    if (length > 0)
        (void)arch_write(STDERR_FILENO, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    abort();
}

uint64_t arch_serials(uint64_t count)
{
    return atomic_fetch_add_explicit(&arch_state.serials, count, memory_order_relaxed);
}

/* ---- the handle range ------------------------------------------------------------------------------------ */

#define HANDLES_LEAST ((size_t)64 << 20)

/* Chunks [0, open) are readable, those from fresh on were never taken. What was given back stands in a list of its own,
 * as the bookkeeping may not lie in the pages that are given back. */
static struct {
    uint32_t *given;
    uint32_t given_count, fresh, open, most;
} chunks;

/* By the system call itself: sanitizers prepare their shadow memory for every mapping that they see. */
static char *reserve(size_t bytes)
{
    long at = syscall(SYS_mmap, NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    return at == -1 ? NULL : (char *)at;
}

static int range_reserve(void)
{
    for (size_t bytes = ARCH_NOTES_HANDLES; bytes >= HANDLES_LEAST; bytes /= 2) {
        char *raw = reserve(bytes + ARCH_CHUNK);
        if (!raw)
            continue;
        void *list;
        int error = arch_map(bytes / ARCH_CHUNK * sizeof *chunks.given, &list);
        if (error) {
            (void)munmap(raw, bytes + ARCH_CHUNK);
            return error;
        }
        chunks.given = list;
        chunks.most = (uint32_t)(bytes / ARCH_CHUNK);
        arch_handles = (char *)(((uintptr_t)raw + ARCH_CHUNK - 1) & ~(uintptr_t)(ARCH_CHUNK - 1));
        arch_handles_size = bytes;
        return 0;
    }
    return -ENOMEM;
}

/* Small programs need few chunks; large ones open eight with one call, and so may get huge pages where the system wants
 * that. */
static int chunks_open(void)
{
    enum { STEP = 8 };
    uint32_t count = chunks.open < STEP ? 1 : STEP;
    if (chunks.open + count > chunks.most)
        return -ENOMEM;
    if (mprotect(arch_handles + chunks.open * ARCH_CHUNK, count * ARCH_CHUNK, PROT_READ | PROT_WRITE) < 0)
        return -ENOMEM;
    chunks.open += count;
    return 0;
}

int arch_chunk_take(void **chunk)
{
    int error = 0;
    uint32_t index = 0;
    pthread_mutex_lock(&lock);
    if (chunks.given_count > 0)
        index = chunks.given[--chunks.given_count];
    else if (chunks.fresh < chunks.open || (error = chunks_open()) == 0)
        index = chunks.fresh++;
    pthread_mutex_unlock(&lock);
    if (!error)
        *chunk = arch_handles + index * ARCH_CHUNK;
    return error;
}

void arch_chunk_give(void *chunk)
{
    size_t offset = (size_t)((char *)chunk - arch_handles);
    ASSERT(offset < arch_handles_size && offset % ARCH_CHUNK == 0);
    if (madvise(chunk, ARCH_CHUNK, MADV_DONTNEED) < 0)
        memset(chunk, 0, ARCH_CHUNK); /* locked memory */
    pthread_mutex_lock(&lock);
    chunks.given[chunks.given_count++] = (uint32_t)(offset / ARCH_CHUNK);
    pthread_mutex_unlock(&lock);
}

/* ---- faults ---------------------------------------------------------------------------------------------- */

enum { FAULT_KINDS = 2, SIGNAL_STACK = 64 * 1024 };
static const int fault_signals[FAULT_KINDS] = {SIGSEGV, SIGBUS};

static struct {
    int users;
    /* What to pass signals on to. Written before our handler is installed, and not again while it may run. */
    struct sigaction previous[FAULT_KINDS];
    /* Somebody has installed a handler over ours and may pass signals on to it. */
    bool buried[FAULT_KINDS];
} faults;

static __thread bool in_fault __attribute__((tls_model("initial-exec")));

/* Whether the instruction runs into the same fault again when the handler returns. */
ARCH_NOT_INSTRUMENTED static bool fault_repeats(int signal, const siginfo_t *info)
{
    return (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0 &&
           !(signal == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

ARCH_NOT_INSTRUMENTED static void set_default(int signal)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(signal, &action, NULL);
}

ARCH_NOT_INSTRUMENTED void arch_signal_pass_on(int signal, siginfo_t *info, void *ucontext,
                                               const struct sigaction *previous)
{
    bool repeats = fault_repeats(signal, info);
    if (!(previous->sa_flags & SA_SIGINFO) && previous->sa_handler == SIG_IGN && !repeats)
        return;
    if (!(previous->sa_flags & SA_SIGINFO) && (previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN)) {
        /* The system does not let a real fault be ignored either. */
        set_default(signal);
        if (!repeats)
            (void)raise(signal);
        return;
    }
    if ((unsigned)previous->sa_flags & SA_RESETHAND)
        set_default(signal);
    if (previous->sa_flags & SA_SIGINFO)
        previous->sa_sigaction(signal, info, ucontext);
    else
        previous->sa_handler(signal);
}

static void on_signal(int signal, siginfo_t *info, void *ucontext)
{
    int saved_errno = errno;
    bool (*on_fault)(void *, void *) = atomic_load_explicit(&arch_state.on_fault, memory_order_acquire);
    if (on_fault && !in_fault && fault_repeats(signal, info)) {
        in_fault = true;
        (void)on_fault(info->si_addr, ucontext);
        in_fault = false;
    }
    errno = saved_errno;
    arch_signal_pass_on(signal, info, ucontext, &faults.previous[signal == SIGBUS]);
}

static int fault_install(int kind)
{
    struct sigaction now;
    if (sigaction(fault_signals[kind], NULL, &now) < 0)
        return -errno;
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_signal)
        faults.buried[kind] = false; /* whoever was over ours has put it back */
    else if (!faults.buried[kind])
        faults.previous[kind] = now;
    else
        return 0; /* a second time would make a ring of handlers */
    struct sigaction ours = {.sa_sigaction = on_signal, .sa_mask = faults.previous[kind].sa_mask};
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (faults.previous[kind].sa_flags & (SA_NODEFER | SA_RESTART));
    return sigaction(fault_signals[kind], &ours, NULL) < 0 ? -errno : 0;
}

static void fault_restore(int kind)
{
    struct sigaction now;
    faults.buried[kind] = true;
    if (sigaction(fault_signals[kind], NULL, &now) < 0 || !(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_signal)
        return;
    faults.buried[kind] = sigaction(fault_signals[kind], &faults.previous[kind], NULL) < 0;
}

int arch_signals_enter(bool (*on_fault)(void *address, void *ucontext))
{
    int error = 0;
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&arch_state.on_fault, on_fault, memory_order_release);
    if (faults.users++ == 0)
        for (int kind = 0; kind < FAULT_KINDS && !error; kind++)
            error = fault_install(kind);
    if (faults.users == 1)
        arch_terminate_take(true);
    pthread_mutex_unlock(&lock);
    if (error)
        arch_signals_leave();
    return error;
}

void arch_signals_leave(void)
{
    pthread_mutex_lock(&lock);
    ASSERT(faults.users > 0);
    if (--faults.users == 0) {
        arch_terminate_take(false);
        for (int kind = 0; kind < FAULT_KINDS; kind++)
            fault_restore(kind);
        atomic_store_explicit(&arch_state.on_fault, NULL, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
}

/* The memory of a thread's signal stack: a guard page, the stack, and at the high end what was there before. */
int arch_signals_thread_enter(void **memory)
{
    size_t page = arch_page_size();
    void *base;
    int error = arch_map(page + SIGNAL_STACK + page, &base);
    if (error)
        return error;
    (void)mprotect(base, page, PROT_NONE);
    stack_t *before = (stack_t *)(void *)((char *)base + page + SIGNAL_STACK);
    stack_t stack = {.ss_sp = (char *)base + page, .ss_size = SIGNAL_STACK};
    if (sigaltstack(&stack, before) < 0) {
        error = -errno;
        arch_unmap(base, page + SIGNAL_STACK + page);
        return error;
    }
    *memory = base;
    return 0;
}

void arch_signals_thread_leave(void *memory)
{
    size_t page = arch_page_size();
    stack_t *before = (stack_t *)(void *)((char *)memory + page + SIGNAL_STACK);
    /* Refused on the signal stack itself, which then has to stay. */
    if (sigaltstack(before, NULL) == 0)
        arch_unmap(memory, page + SIGNAL_STACK + page);
}

/* ---- the start ------------------------------------------------------------------------------------------- */

/* The least cost, in ticks, of a few loads of MXCSR: with the flags changed each time, or with the current flags read
 * and put into the word that is loaded, as arch_context_jump does. */
static uint64_t mxcsr_cost(uint32_t mxcsr, bool merge)
{
    enum { RUNS = 6, LOADS = 64 };
    uint64_t least = UINT64_MAX;
    for (int run = 0; run < RUNS; run++) {
        uint64_t before = arch_tsc_in_order();
        for (uint32_t i = 0; i < LOADS; i++) {
            uint32_t flags = merge ? arch_mxcsr_read() & ARCH_MXCSR_FLAGS : i % 2 * ARCH_MXCSR_FLAGS;
            arch_mxcsr_write((mxcsr & ~ARCH_MXCSR_FLAGS) | flags);
        }
        uint64_t cost = arch_tsc_in_order() - before;
        least = cost < least ? cost : least;
    }
    return least;
}

/* Not every switch changes the flags, so merging them has to save much to be worth while. */
static bool mxcsr_measure(void)
{
    uint32_t mxcsr = arch_mxcsr_read();
    bool slow = mxcsr_cost(mxcsr, false) > 2 * mxcsr_cost(mxcsr, true);
    arch_mxcsr_write(mxcsr);
    return slow;
}

static bool membarrier_register(void)
{
    return ARCH_NOTES_MEMBARRIER && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void arch_process_lock(void)
{
    pthread_mutex_lock(&lock);
}

void arch_process_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void unlock_in_child(void)
{
    arch_watches_after_fork();
    arch_process_unlock();
}

static int start(void)
{
    int error = arch_handles ? 0 : range_reserve();
    if (!error)
        error = -pthread_atfork(arch_process_lock, arch_process_unlock, unlock_in_child);
    if (error)
        return error;
    arch_ticks_start();
    arch_unwind_start();
    arch_trace_start();
    arch_membarrier_works = membarrier_register();
    arch_mxcsr_is_slow = mxcsr_measure();
    started = true;
    return 0;
}

int arch_process_start(void)
{
    pthread_mutex_lock(&lock);
    int error = started ? 0 : start();
    pthread_mutex_unlock(&lock);
    return error;
}
