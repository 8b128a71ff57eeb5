/*
 * An opened fibre: one stack that several strands share. One of them is the resident: its frames lie in the stack; the
 * frames of the others lie in images. Page: docs/protocols/residency.md.
 *
 * PARTIES   whoever makes one of its strands runnable, on any thread; the holder: the thread that has taken the fibre
 *           out of a run queue, until it has left the stack and said so; whoever opens, closes or trims it.
 * STATE     mail: IDLE (none of its strands is runnable, it stands in no queue, nobody holds it), or a stack of strands
 *           that were made runnable, the newest first.
 *             IDLE --opened_up(s)--> s              and the caller queues the fibre, once
 *             mail --opened_up(s)--> s, mail        it is queued or held: nobody has to be told
 *             mail --the holder--> NULL             all of it into `ready`
 *             NULL --the holder, `ready` is empty--> IDLE
 *           Beside that stands, unless it is IDLE, the wish TRIM, which the holder takes with the mail. Who wishes it
 *           of an idle fibre holds it meanwhile.
 *           resident: whose frames lie in the stack, or NULL. Of a guest: not started (no depth); resident; inactive
 *           (its frames, from there up to base, lie in its image).
 * OWNERSHIP all but `mail` is the holder's, guests' depths and images included: [O1] at most one thread holds it.
 *           The lowest frames are the same for all of its strands: they are made when it is opened, and stay. There
 *           the loop runs in which one strand after the other begins (serve_opened); how it stands when it waits for
 *           the next is kept as the first image of every strand.
 * PROTOCOL  a thread enters an opened fibre from its loop only, since nothing can be copied over the stack that one
 *           stands on: who is to go to one goes to the loop first (thread->late). opened_enter chooses the next of
 *           `ready` and, if that is not the resident, copies the resident's frames out and the other's in. Who leaves
 *           it copies nothing [O2]; the side that arrives (opened_left) gives the fibre up: it goes idle, or back to
 *           the end of a run queue, so that each visit serves one strand [O3].
 *           A strand may be claimed before it has left its stack: then it lies in the mail of a fibre that is held,
 *           and is found when that is given up. So fibre->context, which other threads wait for, is not needed here.
 * ORDERING  opened_up and going idle: acquire-release on `mail`; between two holders: the run queue's.
 * INVARIANTS [O4] no memory of the runtime that others touch lies on a stack (docs/stacks.md). [O5] starting a strand
 *           can be refused for want of memory, going on with one cannot: then the reserve, as large as the stack, takes
 *           the resident's image.
 *           [O6] going idle is the last that a holder does to it: whoever holds it next may end its last strand, and
 *           then it is gone.
 *           [O7] a fibre that was in use since it was trimmed last is in the list of its pool's `rests`, and then that
 *           has a timer (rest.c): who comes to run on it in a new era notes it. A round begins an era, and trims those
 *           that nobody has used in the era before, as a holder: who is in use is left for the next round. A round
 *           takes one out of the list under its lock, and knows it from then on, unless nobody else does: then it is
 *           about to be given back, and whoever does so waits for the lock first.
 * NOT DONE  copying when a strand leaves: most that wake up next are others, but the last one often is not. A lock: the
 *           mail is one word. The copy on the stack of whoever arrives: own strands' stacks are as large as they are. A
 *           wish to be trimmed in a word of its own: that would have to be read after going idle, against [O6]. The
 *           time of each visit, or a timer for each fibre: both cost more than a look at the era. A wish for one that
 *           rests: it would be trimmed after its next use, when it rests no more.
 * TESTED BY tests/models/residency.pml, tests/models/rest.pml, tests/spec/fibre.c, tests/spec/fibre_wait.c,
 *           tests/spec/fibre_rest.c, tests/sim/residency.c.
 */
#ifndef SCHED_OPENED_H
#define SCHED_OPENED_H

#include "../stack/readers.h"
#include "sched.h"

/* In `mail`, beside or in the place of a strand's address. */
enum { OPENED_IDLE = 1, OPENED_TRIM = 2 };

/* Who knows a fibre: whoever opened it, and a control block, which may be asked for it after its strand's end. */
#define OPENED_STRAND UINT64_C(1)
#define OPENED_KNOWN (UINT64_C(1) << 32)

struct opened {
    struct fibre fibre; /* what queues hold; `active` is who runs, or ran last */
    /* The holder's. */
    char *base;         /* below it lies what differs between its strands: up to here frames are copied */
    arch_context first; /* where each of its strands begins */
    void *first_image;  /* and the frames that are there then */
    size_t first_size;
    struct arch_note opener;
    uint64_t first_own; /* the first word of fibre.own when a strand begins: the others are zero */
    struct batch ready; /* first come, first served */
    struct member *resident;
    void *image;       /* the resident's, from when it was inactive; NULL: none */
    size_t image_size; /* bytes in it */
    void *reserve;     /* address space for one image [O5] */
    bool reserve_used;
    bool wipes;     /* the resident does: what it leaves behind is overwritten */
    bool trim;      /* it was wished: when it is given up next */
    size_t deepest; /* bytes of the stack at a suspension, at most, since it was trimmed */
    size_t most;    /* bytes of the stack in use, as its pages told before they went back */
    struct saved_set images;
    /* Under the lock of the pool's `rests` [O7]. */
    _Atomic uint32_t used; /* the era in which it was in use last; the holder reads it at any time */
    struct link rest;      /* in rests.used */
    /* Anybody's. */
    _Alignas(CACHE_LINE) _Atomic uintptr_t mail;
    _Atomic uint64_t refs;   /* OPENED_STRAND for each strand that lives on it, OPENED_KNOWN for each that knows it */
    _Atomic uint64_t copies; /* for people: images made */
    struct deferred deferred;
    _Alignas(16) char above[]; /* the layer above's */
};

/* A strand of an opened fibre: all that the scheduler knows of it lies before its control block. */
struct guest {
    void *image;    /* of an inactive one */
    uint32_t depth; /* how many words its frames have: it goes on at base - depth; 0: it has not started */
    bool wipes;     /* nothing of its frames stays in memory that others get */
    bool keeps;     /* what it has open lies in its image */
    bool cxx;       /* its state of C++ exceptions does */
};
enum { GUEST_ROOM = (sizeof(struct guest) + 15) & ~15u };

OWN_INLINE struct guest *guest_of(struct member *member)
{
    return (struct guest *)(void *)((char *)member - GUEST_ROOM);
}

/* Bytes of its frames. */
OWN_INLINE size_t guest_frames(const struct guest *guest)
{
    return (size_t)guest->depth * sizeof(uintptr_t);
}

/* Where a guest that has started goes on. */
OWN_INLINE arch_context guest_context(const struct opened *opened, const struct guest *guest)
{
    return opened->base - guest_frames(guest);
}

OWN_INLINE struct opened *opened_of(struct fibre *fibre)
{
    return CONTAINER(fibre, struct opened, fibre);
}

/* Bytes that the frames of the fibre itself take, above those of its strands. */
OWN_INLINE size_t opened_above(const struct opened *opened)
{
    return (size_t)(opened->fibre.stack->top - opened->base);
}

/* A fibre with a stack of that (rounded) size, one reference, and no strands. Returns 0 or a negated errno code. */
int opened_open(struct thread *thread, struct pool *pool, size_t stack_size, struct opened **out);
/* From serve_opened, once, with an address in its frame: when it returns there is an active strand to be run. */
void opened_wait(struct opened *opened, void *base);
/* OPENED_STRAND, OPENED_KNOWN or both. Whoever drops the last of all gives it back. */
void opened_keep(struct opened *opened, uint64_t refs);
void opened_release(struct thread *thread, struct opened *opened, uint64_t refs);

/* One of its strands is runnable. True: the caller has to queue the fibre. Any thread of the run. */
bool opened_up(struct thread *thread, struct member *member);
/* Of the reserve: enough for any image. */
size_t opened_reserve_size(const struct opened *opened);
/* What a guest that has started has open, as far as an inactive one keeps it. While nobody runs it. For people. */
void opened_own(struct member *member, uint64_t words[OWN_KEPT]);
/* Bytes that the image of an inactive strand takes. For people. */
size_t opened_saved(const struct guest *guest);
/* Bytes of its stack that take memory; that were in use at most, ever. Anybody who keeps it. */
size_t opened_resident(const struct opened *opened);
size_t opened_most(const struct opened *opened);
/* On the thread's loop, which has the fibre out of its queue: make fibre->active and fibre->context the next to run. Or
 * a negated errno code: fibre->active can't start, has to be told, and then the fibre is to be given up. */
int opened_enter(struct thread *thread, struct opened *opened);
/* Memory that it does not need goes back to the system: now, or when it is given up next. Any thread of the run. */
void opened_trim(struct thread *thread, struct opened *opened);
/* For rest.c: whether somebody holds it, or is about to. */
OWN_INLINE bool opened_is_in_use(const struct opened *opened)
{
    return atomic_load_explicit(&opened->mail, memory_order_relaxed) != OPENED_IDLE;
}
/* OPENED_KNOWN, unless nobody knows it any more: then it is about to be given back. */
bool opened_keep_if_known(struct opened *opened);
/* As opened_trim, of one that nobody uses; nothing if somebody does. What it tells of itself stays. */
void opened_rest(struct thread *thread, struct opened *opened);
/* After a switch away from it (AFTER_OPENED_*). */
void opened_left(struct thread *thread, struct opened *opened, arch_context from, enum after after);
/* On its own stack: whether another of its strands is runnable. */
bool opened_is_wanted(struct opened *opened);
/* On its stack, after the end of the strand that ran here: the next of its strands, if that has not started and nobody
 * else waits for the thread. */
bool opened_goes_on(struct thread *thread, struct opened *opened);
/* No strand could be started: to idle, or to the queue. */
void opened_give_up(struct thread *thread, struct opened *opened);

/* Leave the readers of the run (readers_enter), and free what they have deferred if the caller was the last. */
void opened_readers_leave(struct thread *thread);

/* Whether an address lies in the stack of the opened fibre that the calling strand runs on. */
OWN_INLINE bool opened_has(const struct fibre *fibre, const void *at)
{
    const struct stack *stack = fibre->stack;
    return fibre->opened && (uintptr_t)at - (uintptr_t)stack->low < (uintptr_t)stack->top - (uintptr_t)stack->low;
}

#endif
