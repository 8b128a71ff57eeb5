/*
 * The ring of io_uring of a pool: calls that the kernel makes for strands, and their ends.
 *
 * PARTIES   strands that queue calls; threads of the pool, each of which may enter the ring and take ends; the
 *           kernel.
 * STATE     per pool: none, opening, open or refused (`uring_state`), and the ring; `inside`: how many threads enter
 *           it now. Per call: an entry in memory of its own, whose owner is the layer above.
 *             QUEUED --a thread that enters the ring--> BEGUN --its end is taken--> over
 *             QUEUED --its strand takes it back, while no thread is inside--> the strand owns it again
 *             QUEUED --entering is refused for good--> over, with -ECANCELED
 *           `unentered`: how many calls are queued, or 0 while a thread begins them; it is read without the lock.
 * PROTOCOL  a strand queues a call and parks. Its thread enters the ring for all queued calls at once: before it
 *           searches for work, in its passes, and at once if no other call is under way, since a strand that
 *           computes next would delay a single call. The kernel makes many calls while the ring is entered; their
 *           ends are taken right after that, and wake strands without a search for work. The poller watches the ring
 *           for the other ends, so that the seeker's one wait serves both. A strand that is interrupted takes its
 *           call back, or has it cancelled; it leaves a call only when that has begun, since the kernel has the file
 *           then.
 * OWNERSHIP the ring's queues, `inside` and `under_way`: under the lock, in runs of one thread without. Entering
 *           needs no lock: the kernel serialises it.
 * INVARIANTS
 *           [UR1] Calls are seen by the kernel as they were filled in, and ends by us as the kernel wrote them: each
 *           side releases its position and acquires the other's.
 *           [UR2] No thread parks or sleeps while calls are queued: `unentered` counts as work. A drive that ends
 *           before says so: the poller's descriptor stays readable.
 *           [UR3] An entry's end is called once.
 *           [UR4] The ring is closed when no call is under way, so the kernel writes to no memory of a call
 *           afterwards.
 * PROGRESS  if the kernel has no memory for a call, threads try again in each pass and do not park meanwhile. If a
 *           sandbox forbids entering a ring that is open, the calls that have not begun are made elsewhere, and so
 *           are all later ones.
 * NOT DONE  a ring for each thread: strands move between threads, and another thread would have to reap the ring of
 *           one that computes. The lock is held for a few stores; the system call is made without it. Registered
 *           buffers and files: they are bound to one ring. A thread of the kernel that polls the ring: it occupies a
 *           processor.
 * TESTED BY tests/spec/file.c, tests/spec/file_uring.c.
 */
#ifndef SCHED_POOL_URING_H
#define SCHED_POOL_URING_H

#include "member.h"
#include "pool_type.h"
#include "thread_type.h"

/* A call. Its memory stays until its end was called. */
struct uring_entry {
    /* Called once, under the ring's lock, on a thread of the pool: the call has ended, or will never begin
     * (-ECANCELED). Returns the strand that it has claimed, or NULL. */
    struct member *(*end)(struct uring_entry *entry, int32_t result);
    /* Set under the lock when nobody waits for the call any more: it is called after `end`, without the lock, and frees
     * the memory. */
    void (*drop)(struct uring_entry *entry);
    int64_t position;
    struct uring_entry *next_dropped;
};

/* Opens the ring. Returns 0, or a negated errno code: the pool does without. No strand of the pool runs yet. */
int pool_uring_open(struct pool *pool);
/* Whether the pool has a ring for such calls; opens it if this is the first one. Any strand of the pool. */
bool pool_uring_can(struct pool *pool, enum arch_uring_kind kind);
/* Queue a call. Returns 0, or a negated errno code: it will never begin. The caller runs on the pool. */
int pool_uring_queue(struct thread *thread, struct pool *pool, const struct arch_uring_call *call,
                     struct uring_entry *entry);
/* Under the lock: take a call back. Returns false if it has begun, or a thread is about to begin it. */
bool pool_uring_take_back(struct pool *pool, struct uring_entry *entry);
/* Under the lock: whether the kernel has the call, with the file that its descriptor meant then. */
bool pool_uring_has_begun(struct pool *pool, struct uring_entry *entry);
/* Have the kernel cancel a call, soon. If that fails, the call ends by itself. */
void pool_uring_cancel(struct thread *thread, struct pool *pool, struct uring_entry *entry);
void pool_uring_lock(struct thread *thread, struct pool *pool);
void pool_uring_unlock(struct thread *thread, struct pool *pool);
/* Begin all queued calls, and take the ends that are there. Any thread of the pool; not under a lock. */
void pool_uring_enter_(struct thread *thread, struct pool *pool);
/* Wait on the calling thread for the calls that nobody waits for, and close the ring. The pool's threads have ended. */
void pool_uring_close(struct pool *pool);
/* In the child of a fork. */
void pool_uring_orphan(struct pool *pool);

/* Likewise, as the seeker, or as a busy thread in its pass. Called often. */
void pool_uring_pass(struct thread *thread, struct pool *pool);

/* Whether calls wait to be begun: the caller may not park. */
OWN_INLINE bool pool_uring_has_calls(struct pool *pool)
{
    return UNLIKELY(atomic_load_explicit(&pool->unentered, memory_order_relaxed) != 0); /* [UR2] */
}

/* Likewise, or ends wait to be taken. */
bool pool_uring_has_any(struct pool *pool);

/* Calls pool_uring_enter_ if calls are queued. */
OWN_INLINE void pool_uring_enter(struct thread *thread, struct pool *pool)
{
    if (pool_uring_has_calls(pool))
        pool_uring_enter_(thread, pool);
}

#endif
