/*
 * A thread and the switch between fibres. Protocol: docs/protocols/switch.md.
 *
 * PARTIES   the strand that leaves, the strand that arrives on the same thread, and the thread that makes the leaving
 *           strand runnable.
 * STATE     fibre->context: NULL while the fibre runs and during the switch away from it; after that, the context in
 *           which it continues.
 * PROTOCOL  a strand that blocks is claimable before it has left its stack. Its context, not a second state of the
 *           wait, says when no thread uses the stack any more.
 * INVARIANTS [S1] the thread that runs a strand next takes its context only when that has been stored, and sets it to
 *           NULL. [S2] the arriving side stores context, not the strand that leaves. [S3] a strand that parks may find
 *           itself in its own thread's queue, claimed and delivered before it left: then it goes on. [S4] a thread that
 *           finds no context goes to its loop, which waits for it. Before the loop waits, it stores the context of the
 *           strand that the thread has left. So two threads that each switch to the strand that the other one leaves do
 *           not wait for each other for ever. [S5] each strand has its own state of the C++ runtime (exceptions in
 *           handlers and in flight), also if the runtime comes in the middle of a run, with a plug-in. No strand has
 *           any before its thread has used the runtime's thread-local variables. So a thread notices the runtime by
 *           their generation, when it leaves the first such strand, and has all threads of the run save and restore
 *           that state before the strand can go on anywhere. A thread that begins later does the same if the process
 *           has a runtime by then.
 * ORDERING  [S2] release pairs with [S1] acquire: all that the fibre did is seen where it goes on. The same pair orders
 *           SWITCH_CHECK, which is set relaxed [S5].
 * PROGRESS  the wait at [S4] is as long as a switch; nothing between a claimable state and the jump may block.
 * NOT DONE  a second claimable state that is entered after the switch by compare-and-swap: one atomic more on every
 *           block. Looking for a C++ runtime whenever a library was loaded: only the loader's lock tells, and that
 *           takes longer than a switch.
 * TESTED BY tests/models/switch.pml, tests/spec/cxx_late.c.
 */
#ifndef SCHED_THREAD_H
#define SCHED_THREAD_H

#include "deliver.h"
#include "kick.h"
#include "platform.h"
#include "scheduler.h"
#include "shared_fibre.h"
#include "stealing.h"

/* Returns the calling thread's record; NULL outside of pools. The caller must ask again after anything that may
 * suspend. */
OWN_INLINE struct thread *thread_self(void)
{
    return arch_self();
}

/* Makes this the record of the calling thread; NULL: none. */
OWN_INLINE void thread_adopt(struct thread *thread)
{
    arch_set_self(thread);
}

/* Runs fibres until the pool is stopped or the thread must leave. */
void thread_loop(struct thread *thread);

/* As thread_loop for a driven thread: until thread->limit, or, if it does not wait, until no fibre is ready. */
void thread_drive(struct thread *thread);

/* Leave the current fibre, which goes on when it is made runnable. thread_park: the strand can be claimed already.
 * thread_yield: the fibre is queued again as soon as it is left. Return the thread on which the strand goes on. */
struct thread *thread_park(struct thread *thread);
struct thread *thread_yield(struct thread *thread);
void thread_detach_slow_(struct thread *thread);

/* Whether the thread has used thread-local variables of another library since it looked for a C++ runtime [S5]. */
OWN_INLINE bool thread_may_have_cxx(const struct thread *thread)
{
    return UNLIKELY(arch_locals_generation() != thread->locals);
}

void thread_find_cxx_(struct thread *thread);

/* Looks for a C++ runtime if the thread may have used one [S5]. */
OWN_INLINE void thread_notice_cxx(struct thread *thread)
{
    if (thread_may_have_cxx(thread))
        thread_find_cxx_(thread);
}

/* Prepares the end of the current fibre's strand, which lets go of its control block next. Its stack is in use until
 * the switch. Until then thread->current names the fibre, although that may be gone. */
OWN_INLINE void thread_detach(struct thread *thread)
{
    atomic_signal_fence(memory_order_seq_cst); /* it was counted before; pool_close_begin has a barrier for both [L4] */
    if (UNLIKELY(slow_flags_has(&thread->slow_switch, SWITCH_CHECK)))
        thread_detach_slow_(thread);
    thread->dead = thread->current->stack;
}

void thread_ready_slow_(struct thread *thread, struct member *member, bool here);

/* Makes this strand's fibre, of the same pool, run next in the place of the strand that ends here. */
OWN_INLINE void thread_go_on_with(struct thread *thread, struct member *member)
{
    struct fibre *fibre = member->fibre;
    bool slow = fibre->slow_wake;
    arch_san_release(member);
    if (LIKELY(!slow))
        thread->next = fibre;
    else if (fibre_is_pinned(fibre))
        thread_ready_slow_(thread, member, true);
    else if (shared_mail_up(thread, member))
        thread->next = fibre;
}

void thread_tick_(struct thread *thread);

/* Counts an operation that may block, or a switch, and makes a tick now and then. */
OWN_INLINE void thread_tick(struct thread *thread)
{
    if (UNLIKELY(--thread->ticks <= 0))
        thread_tick_(thread);
}

/* Returns whether the thread leaves its pool, or returns to its driver, at its next switch: resize.c. */
OWN_INLINE bool thread_is_to_go(const struct thread *thread)
{
    return UNLIKELY(atomic_load_explicit(&thread->slow_switch.any, memory_order_acquire) & SWITCH_LEAVE); /* [Z3] */
}

/* Returns whether the calling strand lives on a shared fibre. */
OWN_INLINE bool thread_on_shared(const struct thread *thread)
{
    return UNLIKELY(thread->slow_switch.own & SWITCH_SHARED);
}

/* Returns whether the thread has made a pass, and has picked nothing since: a strand that may succeed again and again
 * without blocking yields then. The pick after a pass ends that: its fibre has the usual time. */
OWN_INLINE bool thread_is_asked_for(const struct thread *thread)
{
    return UNLIKELY(thread->slow_pick.own & PICK_FAIR);
}

/* Queues a fibre on the thread, and wakes another thread if that can take it. */
OWN_INLINE_ALWAYS void thread_push(struct thread *thread, struct fibre *fibre, enum push how)
{
    bool notify = LIKELY(thread->stealing) ? stealing_push(thread, fibre, how)
                                           : thread->pool->scheduler->push(thread, fibre, how);
    if (notify)
        pool_notify(thread);
}

struct fibre *thread_pick_slow_(struct thread *thread);
struct fibre *thread_point_and_pick_slow_(struct thread *thread);

OWN_INLINE_ALWAYS struct fibre *thread_pick_fast_(struct thread *thread)
{
    return LIKELY(thread->stealing) ? stealing_pick(thread) : thread->pool->scheduler->pick(thread);
}

/* Removes and returns the next fibre to run; NULL: there is none. */
OWN_INLINE_ALWAYS struct fibre *thread_pick(struct thread *thread)
{
    return UNLIKELY(slow_flags_any(&thread->slow_pick)) ? thread_pick_slow_(thread) : thread_pick_fast_(thread);
}

/* Calls platform_point, then thread_pick. With the second platform all picks are slow, so the fast path has no
 * point. */
OWN_INLINE_ALWAYS struct fibre *thread_point_and_pick(struct thread *thread)
{
    return UNLIKELY(slow_flags_any(&thread->slow_pick)) ? thread_point_and_pick_slow_(thread)
                                                        : thread_pick_fast_(thread);
}

/* Removes this fibre from the thread's queue. Returns false if it is not there. */
OWN_INLINE bool thread_take(struct thread *thread, struct fibre *fibre)
{
    return LIKELY(thread->stealing) ? stealing_take(thread, fibre) : thread->pool->scheduler->take(thread, fibre);
}

/* Makes runnable a strand that the strand here has claimed. */
OWN_INLINE void thread_ready(struct thread *thread, struct member *member)
{
    struct fibre *fibre = member->fibre;
    bool slow = fibre->slow_wake, here = fibre->pool == thread->pool;
    arch_san_release(member); /* no access to it from here on: the thread that takes it may end and reuse it */
    if (UNLIKELY(slow))
        thread_ready_slow_(thread, member, here);
    else if (LIKELY(here))
        thread_push(thread, fibre, PUSH_WOKEN);
    else
        pool_send(thread, fibre);
}

/* Makes the strands of a batch runnable, in order. The strand here has claimed them. */
OWN_INLINE void batch_deliver(struct thread *thread, struct batch *batch)
{
    struct member *member;
    while ((member = batch_take(batch)))
        thread_ready(thread, member);
}

/* Connects a private fibre and its strand. */
void fibre_init(struct fibre *fibre, struct member *member);

#endif
