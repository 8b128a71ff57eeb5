/*
 * The state of the process, and its start: serial numbers, fault handlers, measurements of the processor, the lock that
 * also protects the handle range (handles.c). All mutable file-scope state of the library is in this file.
 *
 * One lock protects the start, the chunks of the handle range and the installation of handlers; fork handlers hold it
 * across a fork, so a child finds all of it consistent. A second one, which they hold too, protects what exceptions
 * carry. The fault handler itself takes no lock.
 */
#include "state.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct arch_state arch_state = {.serials = 1};

uint32_t arch_generation;
bool arch_mxcsr_is_slow;
#if defined(__SANITIZE_THREAD__) || ARCH_HAS_FEATURE_(thread_sanitizer) || defined(STRAND_TSAN)
uint8_t arch_tool = ARCH_TOOL_TSAN;
bool arch_tool_is_order = true;
#elif defined(__SANITIZE_ADDRESS__) || ARCH_HAS_FEATURE_(address_sanitizer)
uint8_t arch_tool = ARCH_TOOL_ASAN;
bool arch_tool_is_order;
#else
uint8_t arch_tool;
bool arch_tool_is_order;
#endif
bool arch_membarrier_works;
char *arch_handles;
_Thread_local uint32_t arch_loader_inside;
_Thread_local bool arch_loader_forks;
size_t arch_handles_size, arch_handle_words;
__thread void *arch_self_ __attribute__((used)); /* the thread's; read by assembler */

void arch_set_self(void *self)
{
    arch_self_ = self;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;

uint64_t arch_serials(uint64_t count)
{
    return atomic_fetch_add_explicit(&arch_state.serials, count, memory_order_relaxed);
}

void arch_serials_again(uint64_t first)
{
    atomic_store_explicit(&arch_state.serials, first, memory_order_relaxed);
}

/* ---- threads that examine runs ------------------------------------------------------------------------------ */

#define RUN_NAP_NS INT64_C(100000)
enum { RUN_TRIES = 1000 };

void arch_run_enter(struct arch_run *run)
{
    pthread_mutex_lock(&lock);
    run->next = arch_state.runs;
    run->number = ++arch_state.runs_so_far;
    arch_state.runs = run;
    pthread_mutex_unlock(&lock);
}

void arch_run_leave(struct arch_run *run)
{
    pthread_mutex_lock(&lock);
    struct arch_run **at = &arch_state.runs;
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    pthread_mutex_unlock(&lock);
    while (atomic_load_explicit(&run->users, memory_order_acquire)) /* [RF1] */
        arch_nap(RUN_NAP_NS);
}

int arch_run_use(uint64_t below, struct arch_run **run)
{
    int tries = RUN_TRIES;
    while (pthread_mutex_trylock(&lock) != 0) {
        if (tries-- == 0)
            return -EBUSY;
        arch_nap(RUN_NAP_NS);
    }
    struct arch_run *found = arch_state.runs;
    while (found && found->number >= below)
        found = found->next;
    if (found)
        atomic_fetch_add_explicit(&found->users, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    *run = found;
    return found ? 0 : -ESRCH;
}

struct arch_run *arch_run_use_that(bool (*is_it)(struct arch_run *run, const void *what), const void *what)
{
    pthread_mutex_lock(&lock);
    struct arch_run *run = arch_state.runs;
    while (run && !is_it(run, what))
        run = run->next;
    if (run)
        atomic_fetch_add_explicit(&run->users, 1, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return run;
}

void arch_run_unuse(struct arch_run *run)
{
    atomic_fetch_sub_explicit(&run->users, 1, memory_order_release); /* [RF1] */
}

/* ---- faults ---------------------------------------------------------------------------------------------- */

enum { FAULT_SIGNALS = 2 };
static const int fault_signals[FAULT_SIGNALS] = {SIGSEGV, SIGBUS};

static struct {
    int users;
    /* The previous handlers. Written before the library's is installed, and not changed while that may run. */
    struct sigaction previous[FAULT_SIGNALS];
    /* The library's handler was installed, and not removed since. If it is not the current one, another one was
     * installed over it, and may pass signals on to it. */
    bool ours[FAULT_SIGNALS];
} faults;

static __thread bool in_fault __attribute__((tls_model("initial-exec")));
static __thread void *orphan __attribute__((tls_model("initial-exec")));
static __thread struct arch_player *player __attribute__((tls_model("initial-exec")));

/* The program ends in the middle of a run that the calling thread simulates. */
static void player_ends(void)
{
    struct arch_player *failed = player;
    player = NULL;
    if (failed)
        failed->ending(failed);
}

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

/* The system does nothing, or has resumed the process already. */
ARCH_NOT_INSTRUMENTED static bool is_harmless(int signal)
{
    return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT;
}

ARCH_NOT_INSTRUMENTED void arch_signal_pass_on(int signal, siginfo_t *info, void *ucontext,
                                               const struct sigaction *previous)
{
    bool repeats = fault_repeats(signal, info);
    if (!(previous->sa_flags & SA_SIGINFO) && previous->sa_handler == SIG_IGN && !repeats)
        return;
    if (!(previous->sa_flags & SA_SIGINFO) && (previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN)) {
        if (is_harmless(signal))
            return; /* setting the default could remove a handler of the program that has called this one */
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
    bool (*on_fault)(void *, void *) = atomic_load_explicit(&arch_state.on_fault, memory_order_acquire); /* [PB1] */
    if (on_fault && !in_fault && fault_repeats(signal, info)) {
        in_fault = true;
        (void)on_fault(info->si_addr, ucontext);
        player_ends();
        in_fault = false;
    }
    errno = saved_errno;
    arch_signal_pass_on(signal, info, ucontext, &faults.previous[signal == SIGBUS]);
}

static int fault_install(int which)
{
    struct sigaction now;
    if (sigaction(fault_signals[which], NULL, &now) < 0)
        return -errno;
    bool present = now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_signal;
    if (faults.ours[which] && !present)
        return 0; /* installing it twice would make a cycle of handlers */
    if (!present)
        faults.previous[which] = now;
    struct sigaction ours = {.sa_sigaction = on_signal, .sa_mask = faults.previous[which].sa_mask};
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (faults.previous[which].sa_flags & (SA_NODEFER | SA_RESTART));
    if (sigaction(fault_signals[which], &ours, NULL) < 0)
        return -errno;
    faults.ours[which] = true;
    return 0;
}

static void fault_restore(int which)
{
    struct sigaction now;
    if (faults.ours[which] && sigaction(fault_signals[which], NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
        now.sa_sigaction == on_signal)
        faults.ours[which] = sigaction(fault_signals[which], &faults.previous[which], NULL) < 0;
}

int arch_signals_enter(bool (*on_fault)(void *address, void *ucontext))
{
    int error = 0;
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&arch_state.on_fault, on_fault, memory_order_release); /* [PB1] */
    if (faults.users++ == 0)
        for (int which = 0; which < FAULT_SIGNALS && !error; which++)
            error = fault_install(which);
    arch_cxx_find();
    arch_terminate_take(true);
    pthread_mutex_unlock(&lock);
    if (error)
        arch_signals_leave();
    return error;
}

/* Under the lock, when no thread runs strands any more. */
static void faults_restore(void)
{
    faults.users = 0;
    arch_terminate_take(false);
    for (int which = 0; which < FAULT_SIGNALS; which++)
        fault_restore(which);
    atomic_store_explicit(&arch_state.on_fault, NULL, memory_order_relaxed);
}

void arch_cxx_refresh(void)
{
    pthread_mutex_lock(&lock);
    bool there = arch_state.cxx.there;
    arch_cxx_find();
    if (!there && arch_state.cxx.there && faults.users)
        arch_terminate_take(true);
    pthread_mutex_unlock(&lock);
}

void arch_signals_leave(void)
{
    pthread_mutex_lock(&lock);
    ASSERT(faults.users > 0);
    if (faults.users == 1)
        faults_restore();
    else
        faults.users--;
    pthread_mutex_unlock(&lock);
}

/* ---- simulated runs ----------------------------------------------------------------------------------------- */

static _Atomic(void *) stages[ARCH_STAGES];

struct arch_player *arch_player(void)
{
    return player;
}

/* While a thread simulates, SIGABRT comes here first; then the previous handler gets it. */
static struct {
    int users;
    struct sigaction previous;
} aborts;

static void on_abort(int signal, siginfo_t *info, void *ucontext)
{
    player_ends();
    arch_signal_pass_on(signal, info, ucontext, &aborts.previous);
}

/* Under the lock. */
static void aborts_restore(void)
{
    struct sigaction now;
    aborts.users = 0;
    (void)sigaction(SIGABRT, NULL, &now);
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_abort)
        (void)sigaction(SIGABRT, &aborts.previous, NULL);
}

static void aborts_watch(bool watch)
{
    struct sigaction ours = {.sa_sigaction = on_abort, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    arch_process_lock();
    if (!watch && aborts.users == 1)
        aborts_restore();
    else if (!watch)
        aborts.users--;
    else if (aborts.users++ == 0)
        (void)sigaction(SIGABRT, &ours, &aborts.previous);
    arch_process_unlock();
}

static void watch_exits(void)
{
    (void)atexit(player_ends);
}

void arch_player_set(struct arch_player *new)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (new)
        (void)pthread_once(&once, watch_exits);
    if (!new != !player)
        aborts_watch(new != NULL);
    player = new;
}

void arch_step(void)
{
    if (player)
        player->step(player);
}

void *arch_stage_take(enum arch_stage which)
{
    return atomic_exchange_explicit(&stages[which], NULL, memory_order_acquire); /* [PB1] */
}

void *arch_stage_give(enum arch_stage which, void *stage)
{
    void *none = NULL;
    bool given = atomic_compare_exchange_strong_explicit(&stages[which], &none, stage, memory_order_release,
                                                         memory_order_relaxed); /* [PB1] */
    return given ? NULL : stage;
}

/* ---- the start ------------------------------------------------------------------------------------------- */

/* The least cost, in ticks, of what a few switches do with MXCSR: with the flags changed each time, or with the current
 * flags merged into the loaded word, as arch_context_jump does. The next switch stores what this one has loaded: on
 * some processors only that is slow. */
static uint64_t mxcsr_cost(uint32_t mxcsr, bool merge)
{
    enum { RUNS = 6, LOADS = 64 };
    uint64_t least = UINT64_MAX;
    for (int run = 0; run < RUNS; run++) {
        uint64_t before = arch_tsc_in_order();
        for (uint32_t i = 0; i < LOADS; i++) {
            uint32_t current = arch_mxcsr_read(), flags = merge ? current : i % 2 * ARCH_MXCSR_FLAGS;
            arch_mxcsr_write((mxcsr & ~ARCH_MXCSR_FLAGS) | (flags & ARCH_MXCSR_FLAGS));
        }
        uint64_t cost = arch_tsc_in_order() - before;
        least = cost < least ? cost : least;
    }
    return least;
}

/* Not every switch changes the flags, so merging must save much to pay off. */
static bool mxcsr_measure(void)
{
    uint32_t mxcsr = arch_mxcsr_read();
    bool slow = mxcsr_cost(mxcsr, false) > 2 * mxcsr_cost(mxcsr, true);
    arch_mxcsr_write(mxcsr);
    return slow;
}

static bool membarrier_register(void)
{
    return arch_san_membarrier() && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void arch_process_lock(void)
{
    pthread_mutex_lock(&lock);
}

void arch_process_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void arch_carried_lock(void)
{
    while (atomic_flag_test_and_set_explicit(&arch_state.carried, memory_order_acquire)) { /* [LK1] */
        if (player)
            player->relax(player); /* the holder is simulated by this very thread */
        else
            arch_thread_yield();
    }
    arch_san_acquire(&arch_state.carried);
}

void arch_carried_unlock(void)
{
    arch_san_release(&arch_state.carried);
    atomic_flag_clear_explicit(&arch_state.carried, memory_order_release); /* [LK1] */
}

/* ---- forks ------------------------------------------------------------------------------------------------ */

void *arch_orphan(void)
{
    return orphan;
}

void arch_on_orphan(void (*on_orphan)(void *))
{
    atomic_store_explicit(&arch_state.on_orphan, on_orphan, memory_order_release); /* [PB1] */
}

static void locks_take(void)
{
    arch_process_lock();
    arch_carried_lock();
    arch_loader_before_fork();
}

static void locks_release(void)
{
    arch_loader_after_fork();
    arch_carried_unlock();
    arch_process_unlock();
}

/* In the child, with the locks. Signal handlers and the program's end are restored to what they were before there were
 * runs; the memory of the parent's runs stays as it is. */
static void begin_child(void)
{
    void (*on_orphan)(void *) = atomic_load_explicit(&arch_state.on_orphan, memory_order_acquire); /* [PB1] */
    arch_generation++;
    player = NULL; /* no steps: only the calling thread is there */
    if (arch_self_) {
        orphan = arch_self_;
        arch_self_ = NULL;
        if (on_orphan)
            on_orphan(orphan);
    }
    if (faults.users)
        faults_restore();
    if (aborts.users)
        aborts_restore();
    arch_watches_after_fork();
    arch_state.reaping = (struct arch_reaping){.starts = 0}; /* the children are the parent's */
    arch_ask_after_fork();
    arch_unwind_after_fork();
    arch_state.fiber_lock = 0;
    arch_state.fiber_maker = NULL;
    arch_state.runs = NULL;
    arch_membarrier_works = membarrier_register();
    locks_release();
    if (arch_loader_inside)
        arch_loader_lose();
}

static int start(void)
{
    arch_tool_find();
    int error = arch_handles ? 0 : arch_handles_start();
    if (!error)
        error = -pthread_atfork(locks_take, locks_release, begin_child);
    if (error)
        return error;
    arch_ticks_start();
    arch_signal_frame_find();
    arch_cxx_find();
    arch_unwind_start();
    arch_unwind_warm();
    arch_state.resume = (uintptr_t)strand_resume_;
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
