/*
 * Asking another thread for its registers and stack: it is sent a signal, and its handler copies both. A signal ends
 * some system calls early (nanosleep, poll, epoll_wait, ...), whatever its flags. So for a thread that waits in the
 * system the stack pointer and the instruction are read from /proc instead, and the thread waits on.
 *
 * PARTIES   one asker at a time (arch_state.asking), the handler on the asked thread.
 * STATE     arch_state.ask: 0; a thread's id with OPEN: asked; TAKEN: the handler writes; DONE.
 * OWNERSHIP *arch_state.asked belongs to the asker, but to the handler while it is TAKEN. An asker whose time is over
 *           takes OPEN back; a late handler finds nothing. The word is the process's, not in the asker's memory, which
 *           may be gone.
 * ORDERING  [AK1] OPEN is stored by release and replaced by TAKEN with acquire: the handler finds where the answer
 *           goes. DONE is stored by release, and loaded by acquire: the asker finds the answer.
 * NOT DONE  unwinding in the handler: it may have interrupted the unwinder, the loader or malloc. Making the thread
 *           wait in the handler: it may hold a lock that the asker needs. ptrace by a helper process: it ends the same
 *           system calls, and keeps debuggers out.
 * TESTED BY tests/spec/watchdog.c, tests/spec/busy.c.
 */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ASK_NONE = 0, ASK_OPEN = 1, ASK_TAKEN = 2, ASK_DONE = 3 };
#define NAP_NS INT64_C(20000)

/* Numbered as in libunwind. */
static const unsigned char register_order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                               REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                               REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
enum { NUMBER_RSP = 7, NUMBER_RIP = 16 };

ARCH_NOT_INSTRUMENTED static void copy_stack(struct arch_asked *asked, void *self, uintptr_t sp)
{
    asked->sp = sp;
    asked->end = asked->top(self, sp, asked);
    asked->size = 0;
    if (!asked->end)
        return;
    asked->size = asked->end - sp < asked->room ? asked->end - sp : asked->room;
    arch_copy(asked->copy, (const void *)sp, asked->size);
}

ARCH_NOT_INSTRUMENTED static void answer(struct arch_asked *asked, const ucontext_t *where)
{
    for (size_t i = 0; i < sizeof register_order; i++)
        asked->registers[i] = (uint64_t)where->uc_mcontext.gregs[register_order[i]];
    asked->waits = false;
    copy_stack(asked, arch_self(), (uintptr_t)where->uc_mcontext.gregs[REG_RSP]);
}

ARCH_NOT_INSTRUMENTED static void on_ask(int signal, siginfo_t *info, void *ucontext)
{
    (void)signal, (void)info;
    int saved_errno = errno;
    uint64_t me = (uint64_t)arch_thread_id() << 32, open = me | ASK_OPEN;
    if (atomic_compare_exchange_strong_explicit(&arch_state.ask, &open, me | ASK_TAKEN, memory_order_acquire,
                                                memory_order_relaxed)) { /* [AK1] */
        answer(arch_state.asked, ucontext);
        atomic_store_explicit(&arch_state.ask, me | ASK_DONE, memory_order_release); /* [AK1] */
    }
    errno = saved_errno;
}

/* The asker and the asked thread belong to the parent. */
void arch_ask_after_fork(void)
{
    atomic_store_explicit(&arch_state.ask, ASK_NONE, memory_order_relaxed);
    atomic_store_explicit(&arch_state.asking, false, memory_order_relaxed);
}

static bool is_ours(int signal)
{
    struct sigaction now;
    return signal && arch_san_sigaction(signal, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
           now.sa_sigaction == on_ask;
}

/* Read a file about a thread, up to room - 1 bytes of it. Returns false if it can't be read. */
static bool read_about(uint32_t thread_id, const char *name, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/%s", thread_id, name);
    int fd = arch_fd_own(open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, room - 1);
    (void)close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* The signals that a thread blocks: bit 0 is signal 1. (Those of the asker say nothing: threads of the library block
 * all.) All, if the system does not say: the thread has ended, or there is no descriptor to look by. */
static uint64_t blocked_by(uint32_t thread_id)
{
    static const char label[] = "\nSigBlk:";
    char text[2048];
    const char *line = read_about(thread_id, "status", text, sizeof text) ? strstr(text, label) : NULL;
    return line ? strtoull(line + sizeof label - 1, NULL, 16) : UINT64_MAX;
}

/* Choose a signal that is not handled, ignored, or blocked: a thread may wait for it. 0: there is none. */
static int choose_signal(uint32_t thread_id)
{
    struct sigaction now, ours = {.sa_sigaction = on_ask, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    if (is_ours(arch_state.ask_signal))
        return arch_state.ask_signal;
    uint64_t blocked = blocked_by(thread_id);
    for (int signal = SIGRTMAX; signal >= SIGRTMIN; signal--)
        if (!(blocked >> (signal - 1) & 1) && arch_san_sigaction(signal, NULL, &now) == 0 &&
            !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL && arch_san_sigaction(signal, &ours, NULL) == 0)
            return arch_state.ask_signal = signal;
    return 0;
}

/* Returns 0, or a negated errno code. */
static int ask(uint32_t thread_id, struct arch_asked *asked, int64_t wait_ns)
{
    uint64_t open = (uint64_t)thread_id << 32 | ASK_OPEN;
    int signal = choose_signal(thread_id);
    if (!signal)
        return -EAGAIN;
    arch_state.asked = asked;
    atomic_store_explicit(&arch_state.ask, open, memory_order_release); /* [AK1] */
    int64_t deadline = arch_clock_ns() + wait_ns;
    int error = tgkill(getpid(), (int)thread_id, signal) < 0 ? -errno : 0;
    while (!error && atomic_load_explicit(&arch_state.ask, memory_order_relaxed) == open && arch_clock_ns() < deadline)
        arch_nap(NAP_NS);
    uint64_t expected = open;
    if (atomic_compare_exchange_strong_explicit(&arch_state.ask, &expected, ASK_NONE, memory_order_relaxed,
                                                memory_order_relaxed))
        return error ? error : -ETIMEDOUT;
    while ((atomic_load_explicit(&arch_state.ask, memory_order_acquire) & 3) != ASK_DONE) /* [AK1] */
        arch_nap(NAP_NS);
    return 0;
}

int arch_ask(uint32_t thread_id, struct arch_asked *asked, int64_t wait_ns)
{
    if (atomic_exchange_explicit(&arch_state.asking, true, memory_order_acquire)) /* [LK1] */
        return -EAGAIN;
    int error = ask(thread_id, asked, wait_ns);
    atomic_store_explicit(&arch_state.asking, false, memory_order_release); /* [LK1] */
    return error;
}

/* ---- a thread that waits in the system ---------------------------------------------------------------------- */

enum { WORDS = 256 };

/* Read what the system reports of a waiting thread: the number of the call, its arguments, the stack pointer, the
 * instruction. The last two are there exactly while it waits. Returns false if it does not wait. */
static bool read_words(uint32_t thread_id, char *words)
{
    return read_about(thread_id, "syscall", words, WORDS) && strchr(words, 'x');
}

/* Parse the last number of the text, and cut it off. 0: there is none. */
static uintptr_t take_last(char *words)
{
    char *last = strrchr(words, ' ');
    uintptr_t number = last ? (uintptr_t)strtol(last + 1, NULL, 16) : 0;
    if (last)
        *last = '\0';
    return number;
}

int arch_ask_waiting(uint32_t thread_id, void *self, struct arch_asked *asked)
{
    char before[WORDS], after[WORDS], words[WORDS];
    if (!read_words(thread_id, before))
        return -EAGAIN;
    memcpy(words, before, sizeof words);
    memset(asked->registers, 0, sizeof asked->registers);
    asked->registers[NUMBER_RIP] = take_last(words);
    asked->registers[NUMBER_RSP] = take_last(words);
    asked->waits = true;
    copy_stack(asked, self, asked->registers[NUMBER_RSP]);
    return asked->end && read_words(thread_id, after) && !strcmp(before, after) ? 0 : -EAGAIN;
}
