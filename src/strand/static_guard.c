/*
 * Static objects of functions in C++ code: the strand that constructs one may suspend. The compiler's code calls
 * __cxa_guard_acquire before it constructs the object. libstdc++'s function blocks the calling thread while another
 * strand constructs it, and that strand may need the thread. In files that include strand.h the call comes here
 * (strand/cxx.h), and a strand that has to wait suspends.
 *
 * PARTIES   the constructor: the strand or thread that constructs the object. Waiters: strands and threads that reach
 *           the object meanwhile. Those in files that do not include strand.h wait in libstdc++'s function.
 * STATE     the first word of the guard, which is the compiler's: 0, PENDING while the object is constructed, DONE.
 *           libstdc++'s waiters add a bit to PENDING (its WAITING, 1 << 16): then release and abort wake the threads
 *           that sleep in its function. Waiters here neither set that bit nor depend on it.
 *
 *             0 --compare and exchange: __cxa_guard_acquire returns 1--> PENDING
 *             PENDING --__cxa_guard_release: the constructor has returned--> DONE
 *             PENDING --__cxa_guard_abort: the constructor has thrown--> 0
 *
 *           The compiler's code calls release or abort. Both are libstdc++'s own.
 * OWNERSHIP while the word is PENDING, the object belongs to the constructor, with or without libstdc++'s bit.
 * PROTOCOL  a strand that finds PENDING sleeps and looks again; the sleeps grow to PAUSE_MOST. It is not interrupted:
 *           the compiler's code takes no exception from this call. A plain thread, and a strand in a no-suspend
 *           section, block their thread for NAP_MOST at most before they look again.
 * ORDERING  [SG1] a party that finds DONE or 0 acquires what the constructor did before it returned or threw. The
 *           partners are the release exchanges in libstdc++'s __cxa_guard_release and __cxa_guard_abort.
 * PROGRESS  a waiter continues PAUSE_MOST, or NAP_MOST, after the end of the constructor at the latest, unless another
 *           constructor has begun. If the constructor waits for a waiter, none of them continues; the log says so after
 *           a second.
 * NOT DONE  waiting until the end of the constructor wakes the waiter: __cxa_guard_release wakes only threads, by a
 *           kind of futex that differs between C++ runtimes, and with link-time optimisation only a part of its calls
 *           could be made to come here.
 * TESTED BY tests/spec/cxx_static.cc; tests/spec/stacks.c: a wait beyond the end of the stack.
 */
#include "../../include/strand/cxx.h"

#include "interrupt.h"
#include "log.h"
#include "misuse.h"
#include "print.h"
#include "wait.h"

#include "../sched/switch.h"

#include <stdio.h>

enum { DONE = 1, PENDING = 0x100 };
#define PAUSE_LEAST (50 * STRAND_US)
#define PAUSE_MOST (20 * STRAND_MS)
#define NAP_MOST STRAND_MS
#define LONG STRAND_S

/* me: NULL for a thread without a strand, which may have no run with a log either. */
static COLD void report_wait(struct thread *thread, struct cb *me)
{
    char text[MADE_WORDS + 400], who[128] = "a thread", made[MADE_WORDS] = "";
    if (me)
        snprintf(who, sizeof who, "strand '%s' #%llu", cb_name(me), (unsigned long long)cb_id(me));
    snprintf(
        text, sizeof text,
        "%s has waited for a second for a function's static object, which another strand or thread constructs. If "
        "the constructor waits for it%s, or uses the object itself, neither continues: construct the object before "
        "the strands that use it%s%s",
        who, me && own_of(me)->section_file ? ", or needs its thread, which it holds in a no-suspend section" : "",
        me ? "; " : "", me ? misuse_made_strand(me, made, sizeof made) : "");
    if (me)
        log_text(runtime_of(thread), text);
    else
        print_text(2, "libstrand: %s\n", text);
}

static void sleep_for(struct thread *thread, struct cb *me, int64_t ns, const _Atomic uint32_t *guard)
{
    must_be_on_its_stack(thread);
    cxx_settle(thread, me);
    thread_tick(thread);
    wait_because(thread, me, BLOCKED_STATIC, (uint64_t)(uintptr_t)guard);
    if (wait_until(thread, me, platform_now(thread->sub) + ns, WAIT_FLOOR_MOST) < 0)
        thread_yield(thread_self()); /* no memory for a timer */
}

/* For a caller that has to block its thread. */
static void nap(struct thread *thread, int64_t ns)
{
    _Atomic uint32_t never = 0;
    if (thread)
        platform_word_wait(thread->sub, &never, 0, platform_now(thread->sub) + ns);
    else
        arch_nap(ns);
    if (thread)
        thread_must_not_be_left(thread);
}

/* Waits a moment, the longer the more the caller has waited (*waited, in ns). */
static COLD NOINLINE void await(const _Atomic uint32_t *guard, int64_t *waited)
{
    struct thread *thread = thread_self();
    struct cb *me = thread && thread->current ? current_of(thread) : NULL;
    bool suspends = me && !own_of(me)->section_file;
    int64_t most = suspends ? PAUSE_MOST : NAP_MOST,
            pause = *waited + PAUSE_LEAST < most ? *waited + PAUSE_LEAST : most;
    if (suspends)
        sleep_for(thread, me, pause, guard);
    else
        nap(thread, pause);
    if (*waited < LONG && *waited + pause >= LONG)
        report_wait(thread_self(), me);
    *waited += pause;
}

int strand_static_enter_(void *guard)
{
    _Atomic uint32_t *word = guard;
    int64_t waited = 0;
    uint32_t seen = 0;
    while (!atomic_compare_exchange_strong_explicit(word, &seen, PENDING, memory_order_acquire,
                                                    memory_order_acquire)) { /* [SG1] */
        if (seen & DONE)
            break;
        await(word, &waited);
        seen = 0;
    }
    arch_san_acquire(guard);
    return !seen;
}
