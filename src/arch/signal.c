/*
 * Signals that are waited for: a handler records them for all watchers, and counts an event descriptor up.
 *
 * Records are never freed but reused, so the handler walks their list without a lock. It counts itself in before it
 * reads what a record wants and uses its descriptor. Closing first clears what the record wants and then waits until no
 * handler is inside, so no count goes to a reused descriptor. The previous handler is called as well. signalfd would
 * need the signal blocked in every thread, also in those of the host program.
 *
 * INVARIANTS [AW1] no handler uses a record that was given back. [AW2] a recorded signal is taken once.
 * ORDERING  [AW1] a handler counts itself in, then loads `wanted`; closing clears `wanted`, then loads the count;
 *           seq_cst: one of them sees the other. Opening stores `wanted` last: a handler that finds its signal there
 *           finds the descriptor. Counting out releases. [AW2] recording releases, and taking acquires.
 */
#include "state.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIGNALS ARCH_SIGNALS

struct arch_watch {
    _Atomic uint64_t wanted, pending; /* signal n: bit n - 1 */
    _Atomic uint64_t last;            /* the bit that was taken last; 0: none */
    _Atomic uint32_t inside;
    _Atomic uint64_t serial;
    int fd;
    const void *owner; /* the caller's word; changes with the serial */
    bool taken;        /* under the process's lock */
    struct arch_watch *next;
};

ARCH_NOT_INSTRUMENTED static uint64_t bit_of(int signal)
{
    return UINT64_C(1) << (signal - 1);
}

/* Record a signal. Returns true if a watcher wants it. */
ARCH_NOT_INSTRUMENTED static bool record_signal(int signal)
{
    bool wanted = false;
    struct arch_watch *watch = atomic_load_explicit(&arch_state.watches, memory_order_acquire); /* [PB1] */
    for (; watch; watch = watch->next) {
        atomic_fetch_add_explicit(&watch->inside, 1, memory_order_seq_cst);                /* [AW1] */
        if (atomic_load_explicit(&watch->wanted, memory_order_seq_cst) & bit_of(signal)) { /* [AW1] */
            const uint64_t one = 1;
            wanted = true;
            atomic_fetch_or_explicit(&watch->pending, bit_of(signal), memory_order_release); /* [AW2] */
            /* Refused only when the counter is full. By the raw system call: TSan does not see that closing waits. */
            (void)syscall(SYS_write, watch->fd, &one, sizeof one);
        }
        atomic_fetch_sub_explicit(&watch->inside, 1, memory_order_release); /* [AW1] */
    }
    return wanted;
}

ARCH_NOT_INSTRUMENTED static bool is_function(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

ARCH_NOT_INSTRUMENTED static void on_watched(int signal, siginfo_t *info, void *ucontext)
{
    int saved_errno = errno;
    const struct sigaction *previous = &arch_state.watched[signal - 1].previous;
    if (is_function(previous))
        arch_signal_pass_on(signal, info, ucontext, previous);
    if (!record_signal(signal) && !is_function(previous))
        arch_signal_pass_on(signal, info, ucontext, previous);
    errno = saved_errno;
}

static int install(int signal)
{
    struct arch_watched *watched = &arch_state.watched[signal - 1];
    struct sigaction now;
    if (arch_san_sigaction(signal, NULL, &now) < 0)
        return -errno;
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_watched)
        return 0; /* the program's handler over the library's has put it back */
    if (watched->buried)
        return -EBUSY; /* installing it twice could make a cycle of handlers */
    watched->previous = now;
    struct sigaction ours = {.sa_sigaction = on_watched, .sa_mask = now.sa_mask};
    int restart = is_function(&now) ? now.sa_flags & SA_RESTART : SA_RESTART; /* the program may rely on EINTR */
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | restart | (now.sa_flags & (SA_NOCLDSTOP | SA_NOCLDWAIT));
    return arch_san_sigaction(signal, &ours, NULL) < 0 ? -errno : 0;
}

static void restore(int signal)
{
    struct arch_watched *watched = &arch_state.watched[signal - 1];
    struct sigaction now;
    watched->buried = true;
    if (arch_san_sigaction(signal, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_watched)
        watched->buried = arch_san_sigaction(signal, &watched->previous, NULL) < 0;
}

static void release_signals(uint64_t signals)
{
    for (int signal = 1; signal <= SIGNALS; signal++)
        if (signals & bit_of(signal) && --arch_state.watched[signal - 1].users == 0)
            restore(signal);
}

static int take_signals(uint64_t signals)
{
    uint64_t done = 0;
    for (int signal = 1; signal <= SIGNALS; signal++) {
        if (!(signals & bit_of(signal)))
            continue;
        int error = arch_state.watched[signal - 1].users ? 0 : install(signal);
        if (error) {
            release_signals(done);
            return error;
        }
        arch_state.watched[signal - 1].users++;
        done |= bit_of(signal);
    }
    return 0;
}

/* Under the lock. Returns NULL if there is no memory. */
static struct arch_watch *take_record(void)
{
    struct arch_watch *first = atomic_load_explicit(&arch_state.watches, memory_order_relaxed), *watch = first;
    while (watch && watch->taken)
        watch = watch->next;
    if (!watch) {
        watch = calloc(1, sizeof *watch);
        if (!watch)
            return NULL;
        watch->next = first;
        atomic_store_explicit(&arch_state.watches, watch, memory_order_release); /* [PB1] */
    }
    watch->taken = true;
    return watch;
}

static void give_record(struct arch_watch *watch)
{
    atomic_store_explicit(&watch->wanted, 0, memory_order_seq_cst); /* [AW1] */
    atomic_fetch_add_explicit(&watch->serial, 1, memory_order_relaxed);
    while (atomic_load_explicit(&watch->inside, memory_order_seq_cst)) /* [AW1] */
        arch_pause();
    watch->taken = false;
}

bool arch_watch_can(int signal)
{
    static const int others[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (signal == others[i])
            return false;
    return signal > 0 && signal <= SIGNALS && !(signal >= 32 && signal < SIGRTMIN); /* the C library uses those */
}

int arch_watch_open(uint64_t signals, const void *owner, struct arch_watch **out)
{
    int fd = arch_fd_own(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE));
    if (fd < 0)
        return fd;
    arch_process_lock();
    struct arch_watch *watch = take_record();
    int error = watch ? 0 : -ENOMEM;
    if (!error) {
        watch->fd = fd;
        watch->owner = owner;
        atomic_store_explicit(&watch->pending, 0, memory_order_relaxed);
        atomic_store_explicit(&watch->last, 0, memory_order_relaxed);
        atomic_store_explicit(&watch->wanted, signals, memory_order_seq_cst); /* [AW1] [PB1] */
        if ((error = take_signals(signals)))
            give_record(watch);
    }
    arch_process_unlock();
    if (error)
        (void)close(fd);
    else
        *out = watch;
    return error;
}

int arch_watch_fd(const struct arch_watch *watch)
{
    return watch->fd;
}

uint64_t arch_watch_signals(int fd)
{
    uint64_t signals = 0;
    arch_process_lock();
    struct arch_watch *watch = atomic_load_explicit(&arch_state.watches, memory_order_acquire); /* [PB1] */
    for (; watch; watch = watch->next)
        if (watch->taken && watch->fd == fd)
            signals = atomic_load_explicit(&watch->wanted, memory_order_relaxed);
    arch_process_unlock();
    return signals;
}

const void *arch_watch_owner(const struct arch_watch *watch)
{
    return watch->owner;
}

bool arch_watch_is(const struct arch_watch *watch, uint64_t serial)
{
    const struct arch_watch *known = atomic_load_explicit(&arch_state.watches, memory_order_acquire); /* [PB1] */
    while (known && known != watch)
        known = known->next;
    return known && arch_watch_serial(known) == serial;
}

uint64_t arch_watch_serial(const struct arch_watch *watch)
{
    return atomic_load_explicit(&watch->serial, memory_order_relaxed);
}

/* Round robin: take the lowest signal above the last one, so that a frequent signal does not starve the others. */
static uint64_t next_of(const struct arch_watch *watch, uint64_t pending)
{
    uint64_t last = atomic_load_explicit(&watch->last, memory_order_relaxed);
    uint64_t above = pending & ~(last | (last - 1)), from = above ? above : pending;
    return from & -from;
}

int arch_watch_take(struct arch_watch *watch)
{
    uint64_t pending = atomic_load_explicit(&watch->pending, memory_order_acquire); /* [AW2] */
    while (pending) {
        uint64_t next = next_of(watch, pending);
        if (atomic_compare_exchange_weak_explicit(&watch->pending, &pending, pending & ~next, memory_order_acq_rel,
                                                  memory_order_acquire)) { /* [AW2] */
            atomic_store_explicit(&watch->last, next, memory_order_relaxed);
            return __builtin_ctzll(next) + 1;
        }
    }
    return 0;
}

void arch_watch_wait(struct arch_watch *watch)
{
    uint64_t one;
    struct pollfd waited = {.fd = watch->fd, .events = POLLIN};
    while (read(watch->fd, &one, sizeof one) < 0)
        (void)poll(&waited, 1, -1);
}

void arch_watch_wake(struct arch_watch *watch)
{
    const uint64_t one = 1;
    (void)syscall(SYS_write, watch->fd, &one, sizeof one); /* refused only if the counter is full */
}

void arch_watch_raise(struct arch_watch *watch, int signal)
{
    atomic_fetch_or_explicit(&watch->pending, bit_of(signal), memory_order_release); /* [AW2] */
    arch_watch_wake(watch);
}

void arch_watch_close(struct arch_watch *watch)
{
    arch_process_lock();
    release_signals(atomic_load_explicit(&watch->wanted, memory_order_relaxed));
    give_record(watch);
    arch_process_unlock();
}

void arch_watches_after_fork(void)
{
    struct arch_watch *watch = atomic_load_explicit(&arch_state.watches, memory_order_relaxed);
    for (; watch; watch = watch->next) { /* the child has no watchers and no other thread */
        atomic_store_explicit(&watch->wanted, 0, memory_order_relaxed);
        atomic_store_explicit(&watch->inside, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&watch->serial, 1, memory_order_relaxed);
        watch->taken = false;
    }
    for (int signal = 1; signal <= SIGNALS; signal++)
        if (arch_state.watched[signal - 1].users) {
            arch_state.watched[signal - 1].users = 0;
            restore(signal);
        }
}
