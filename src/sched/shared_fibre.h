/*
 * A shared fibre: a fibre whose stack several strands share (src/stack/shared.h, which has the state of the stack).
 * Page: docs/protocols/residency.md.
 *
 * PARTIES   the threads that make one of its strands runnable; the holder: the thread that has taken the fibre out of a
 *           run queue, until it has left the stack and said so; threads that open, close or trim it.
 * STATE     mail: IDLE (none of its strands is runnable, it stands in no queue, no thread holds it), or a stack of
 *           strands that were made runnable, the newest first.
 *             IDLE --shared_mail_up(s)--> s              and the caller queues the fibre, once
 *             mail --shared_mail_up(s)--> s, mail        it is queued or held: the caller does nothing more
 *             mail --the holder--> NULL             all of it into `ready`
 *             NULL --the holder, `ready` is empty--> IDLE
 *           Unless it is IDLE, the mail may also contain the wish TRIM, which the holder takes with the rest. A thread
 *           that wants to trim an idle fibre holds the fibre meanwhile.
 * OWNERSHIP everything but `mail` is the holder's, its stack included: [SF1] at most one thread holds it.
 * PROTOCOL  a thread enters a shared fibre from its loop only, since nothing can be copied over the stack that the
 *           thread stands on: a strand that switches to one goes to the loop first (thread->late). shared_fibre_enter
 *           chooses the next of `ready`. [SF2] A strand that leaves the fibre copies nothing. [SF3] Each visit serves
 *           one strand: the side that arrives (shared_fibre_left) gives the fibre up, which goes idle, or back to the
 *           end of a run queue.
 *           A strand may be claimed before it has left its stack: then it lies in the mail of a fibre that is held,
 *           and is found when that is given up. So fibre->context, which other threads wait for, is not needed here.
 * ORDERING  [SF8] every change of `mail` is acquire-release: what was done by a thread that made one of the strands
 *           runnable, or gave the fibre up, happens before the next holder's visit. Between two holders with mail in
 *           between: the run queue's.
 * INVARIANTS [SF6] going idle is a holder's last access to the fibre: the next holder may end the fibre's last strand,
 *           and then the fibre is gone. [SF7] a fibre that was in use since it was last trimmed is in the list of its
 *           pool's `trimmer`, and the trimmer then has a timer (trim.c): a thread that runs on a fibre for the first
 *           time since a round began records it. A round trims, as a holder, the fibres that were not used since the
 *           round before began; it leaves one that is in use for the next round. Under the lock of the list, a round
 *           takes a fibre out of the list and takes a reference to it. It leaves out a fibre without references:
 *           another thread is about to free that fibre, and takes the lock before it does.
 * NOT DONE  strands in the run queues, with a lock for the stack: a thread that picks a strand whose stack is in use
 *           would have to put it back or wait. Copying from the stack of the strand that leaves when that is another
 *           one's, without the loop: a second way for the same thing. A lock: the mail is one word. A wish to be
 *           trimmed in a word of its own: that would have to be read after going idle, against [SF6]. The time of each
 *           visit, or a timer for each fibre: both cost more than a look at the number of the round. A wish to trim an
 *           idle fibre: it would be trimmed after its next use, when it is not idle any more.
 * TESTED BY tests/models/residency.pml, tests/models/trim.pml, tests/spec/fibre.c, tests/spec/fibre_wait.c,
 *           tests/spec/fibre_trim.c, tests/sim/residency.c.
 */
#ifndef SCHED_SHARED_FIBRE_H
#define SCHED_SHARED_FIBRE_H

#include "../stack/readers.h"
#include "../stack/shared.h"
#include "fibre.h"
#include "thread_type.h"

/* In `mail`, beside or in the place of a strand's address. */
enum { SHARED_IDLE = 1, SHARED_TRIM = 2 };

/* Units of `refs`: a strand that lives on the fibre; a reference, which the opener has, and each control block, which
 * may be asked for its fibre after its strand's end. */
#define SHARED_STRAND UINT64_C(1)
#define SHARED_KNOWN (UINT64_C(1) << 32)

struct shared_fibre {
    struct fibre fibre; /* in the queues; `current` is the strand that runs, or ran last */
    /* Only the holder uses these. */
    struct shared_stack stack;
    struct batch ready; /* runnable strands; FIFO */
    struct arch_san opener;
    bool trim; /* a wish to trim: done when the fibre is given up next */
    /* Under the lock of the pool's `trimmer` [SF7]. */
    _Atomic uint32_t used;  /* the round in which the fibre was in use last; the holder reads it at any time */
    struct link in_trimmer; /* linked in trimmer.used */
    /* Any thread uses these. */
    _Alignas(CACHE_LINE) _Atomic uintptr_t mail;
    _Atomic uint64_t refs; /* SHARED_STRAND for each strand that lives on it, SHARED_KNOWN for each reference */
    struct deferred deferred;
    _Alignas(16) char above[]; /* for the layer above */
};

/* The stack's record of a strand lies before the strand's control block. */
enum { GUEST_ROOM = (sizeof(struct guest) + 15) & ~15u };

OWN_INLINE struct guest *guest_of(struct member *member)
{
    return (struct guest *)(void *)((char *)member - GUEST_ROOM);
}

OWN_INLINE struct member *member_of(struct guest *guest)
{
    return (struct member *)(void *)((char *)guest + GUEST_ROOM);
}

OWN_INLINE struct shared_fibre *shared_of(struct fibre *fibre)
{
    return CONTAINER(fibre, struct shared_fibre, fibre);
}

/* Opens a fibre with a stack of that (rounded) size, one reference, and no strands. Returns 0 or a negated errno
 * code. */
int shared_fibre_open(struct thread *thread, struct pool *pool, size_t stack_size, struct shared_fibre **out);
/* Waits on the fibre's stack for the first strand; each strand of the fibre begins with the return. Called by
 * serve_shared, once, with an address in its frame. */
void shared_fibre_wait(struct shared_fibre *shared, void *base);
/* Take and drop SHARED_STRAND, SHARED_KNOWN or both. The thread that drops the last of all frees the fibre. */
void shared_fibre_keep(struct shared_fibre *shared, uint64_t refs);
void shared_fibre_release(struct thread *thread, struct shared_fibre *shared, uint64_t refs);
/* Takes SHARED_KNOWN. Returns false if no reference is left: the fibre is about to be freed. */
bool shared_fibre_keep_if_known(struct shared_fibre *shared);
/* Leaves the readers of the run (readers_enter). The last reader frees what they have deferred. */
void shared_fibre_readers_leave(struct thread *thread);

/* Puts a runnable strand into the mail of its fibre. Returns whether the caller must queue the fibre. Any thread of the
 * run. */
bool shared_mail_up(struct thread *thread, struct member *member);
/* Makes fibre->current and fibre->context the next to run. Called on the loop of the thread that has taken the fibre
 * out of its queue. Returns 0 or a negated errno code: fibre->current can't start, and the caller ends it and gives the
 * fibre up. */
int shared_fibre_enter(struct thread *thread, struct shared_fibre *shared);
/* Gives memory that the fibre does not need back to the system, now or when the fibre is given up next. Any thread of
 * the run. */
void shared_fibre_trim(struct thread *thread, struct shared_fibre *shared);
/* Returns whether a thread holds the fibre, or is about to. For trim.c. */
OWN_INLINE bool shared_fibre_is_in_use(const struct shared_fibre *shared)
{
    return atomic_load_explicit(&shared->mail, memory_order_relaxed) != SHARED_IDLE;
}
/* As shared_fibre_trim, but does nothing if the fibre is in use, and keeps the recorded depth. */
void shared_fibre_trim_idle(struct thread *thread, struct shared_fibre *shared);
/* Completes a switch away from the fibre, after the switch (AFTER_SHARED_*). */
void shared_fibre_left(struct thread *thread, struct shared_fibre *shared, arch_context from, enum after after);
/* Returns whether another strand of the fibre is runnable. Called on its stack. */
bool shared_fibre_is_wanted(struct shared_fibre *shared);
/* Makes the next strand of the fibre current, after the end of the strand that ran here. Returns false if there is
 * none, or it has started. Called on the fibre's stack, when no other fibre waits for the thread. */
bool shared_fibre_goes_on(struct thread *thread, struct shared_fibre *shared);
/* Ends a visit: the fibre becomes idle, or goes to a queue if a strand of it is runnable. */
void shared_fibre_give_up(struct thread *thread, struct shared_fibre *shared);

/* Returns whether an address lies in the stack of the shared fibre that the calling strand runs on. */
OWN_INLINE bool shared_fibre_has(const struct fibre *fibre, const void *at)
{
    const struct stack *stack = fibre->stack;
    return fibre_is_shared(fibre) && (uintptr_t)at - (uintptr_t)stack->low < (size_t)(stack->top - stack->low);
}

#endif
