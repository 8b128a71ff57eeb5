/*
 * A shared stack: one stack for several strands. One of them is the resident: its frames lie in the stack; the frames
 * of the others lie in saved stacks. Page: docs/protocols/residency.md. Which of the strands is runnable, and which
 * thread may use the stack, is the business of the layer above (src/sched/shared_fibre.h).
 *
 * PARTIES   the holder: one thread at a time, which alone calls all of this, but for the functions for diagnostics.
 * STATE     resident: the strand whose frames lie in the stack, or NULL. Each strand (struct guest): not started (no
 *           depth); resident; inactive (its frames, from the depth up to base, lie in its saved stack).
 * OWNERSHIP everything is the holder's, the guests' depths and saved stacks included. The lowest frames are the same
 *           for all strands: they are made when the stack is opened, and stay. The loop that runs one strand after the
 *           other is there; its frames, as they are while it waits for the next strand, are kept as the first frames of
 *           every strand.
 * PROTOCOL  shared_enter (shared_enter.h) copies the resident's frames out and the next strand's in, if they are two. A
 *           strand that leaves copies nothing, as shared_fibre.h says in [SF2].
 * INVARIANTS [SF4] no memory of the runtime that others touch lies on a stack (docs/stacks.md). [SF5] starting a strand
 *           can be refused for want of memory, resuming one cannot: then the reserve, as large as the stack, takes the
 *           resident's frames.
 * ORDERING  [SF9] the store of `resident` (release) pairs with the load of diagnostics (acquire): a reader that finds a
 *           guest replaced finds its saved stack, and one that has read frames that were wiped finds them elsewhere.
 *           The run queues, through which one holder follows another, order all else.
 * NOT DONE  copying when a strand leaves: most strands that wake up next are others, but the last one often is not. The
 *           copy on the stack of the strand that arrives: private stacks are as large as they are.
 * TESTED BY tests/models/residency.pml, tests/spec/fibre.c, tests/spec/fibre_wait.c, tests/sim/residency.c.
 */
#ifndef STACK_SHARED_H
#define STACK_SHARED_H

#include "memory.h"

/* What the strand on a stack has open, for the layer above: only that layer reads it, so it lies with the stack. The
 * first OWN_KEPT words of an inactive strand lie in its saved stack, unless they are as they were when it began: the
 * first one as the layer above had it when the stack was opened, the others zero. The rest is zero when a strand
 * suspends. */
enum { OWN_SIZE = 72, OWN_KEPT = 7 };

/* What the running strand has beside its frames: part of the layer above's fibre. */
struct shared_beside {
    char *own;            /* OWN_SIZE bytes */
    struct arch_cxx *cxx; /* the state of C++ exceptions */
    bool *started;        /* *cxx means something */
    struct arch_san *san;
};

/* A strand of a shared stack. */
struct guest {
    void *saved;    /* of an inactive one */
    uint32_t depth; /* how many words its frames have: it goes on at base - depth; 0: it has not started */
    bool wipes;     /* nothing of its frames stays in memory that others get */
    bool keeps;     /* its saved stack holds what it has open */
    bool cxx;       /* and its state of C++ exceptions */
};

struct shared_stack {
    size_t size; /* of the stack */
    struct stack *stack;
    struct shared_beside beside;
    char *base;         /* below it lies what differs between its strands: up to here frames are copied */
    arch_context first; /* where each of its strands begins */
    void *first_saved;  /* and the frames that are there then */
    size_t first_size;
    uint64_t first_own; /* the first word of what a strand has open when it begins: the others are zero */
    struct guest *resident;
    void *saved;       /* the resident's, from when it was inactive; NULL: none */
    size_t saved_size; /* bytes in it */
    void *reserve;     /* address space for one saved stack [SF5] */
    bool reserve_used;
    bool wipes;     /* the resident does: what it leaves behind is overwritten */
    size_t deepest; /* bytes of the stack at a suspension, at most, since it was trimmed */
    size_t most;    /* bytes of the stack in use, as its pages told before they went back */
    struct saved_set set;
    _Atomic uint64_t copies; /* diagnostics only: saved stacks made */
};

/* Bytes of its frames. */
OWN_INLINE size_t guest_frames(const struct guest *guest)
{
    return (size_t)guest->depth * sizeof(uintptr_t);
}

/* Where a strand that has started goes on. */
OWN_INLINE arch_context shared_context(const struct shared_stack *shared, const struct guest *guest)
{
    return shared->base - guest_frames(guest);
}

/* Bytes that the frames below all strands take, above those of its strands. */
OWN_INLINE size_t shared_above(const struct shared_stack *shared)
{
    return (size_t)(shared->stack->top - shared->base);
}

/* The reserve, and a stack of that (rounded) size, whose pages are given back: what they tell of use is this stack's
 * alone. Returns 0 or a negated errno code; shared_close also after an error. */
int shared_open(struct stack_user *user, struct shared_stack *shared, size_t size);
/* The lowest frames are made, and wait at `first` for the first strand. Returns 0 or -ENOMEM. */
int shared_keep_first(struct stack_user *user, struct shared_stack *shared, arch_context first);
/* All strands have ended: their saved stacks go back. Readers may still use the rest. */
void shared_end(struct stack_user *user, struct shared_stack *shared);
void shared_close(struct stack_user *user, struct shared_stack *shared);

/* For tests: the resident's frames are copied out at once, and its stack is overwritten, so that a use of an address in
 * it shows. */
void shared_vacate(struct stack_user *user, struct shared_stack *shared, bool cxx);
/* The resident has ended, at that context. */
void shared_ended(struct stack_user *user, struct shared_stack *shared, arch_context from);
/* The resident has ended, and this one, which has not started, goes on in its place. */
void shared_follow(struct stack_user *user, struct shared_stack *shared, struct guest *guest);
/* Memory that is not needed goes back to the system. `deepest` begins again, or stays. */
void shared_trim(struct stack_user *user, struct shared_stack *shared);
void shared_give_back(struct stack_user *user, struct shared_stack *shared);

/* ---- diagnostics: any thread that keeps the stack from being freed ------------------------------------------ */

/* What a strand that has started has open, as far as an inactive one keeps it. While it does not run. */
void shared_own(const struct shared_stack *shared, const struct guest *guest, uint64_t words[OWN_KEPT]);
/* Bytes that the saved stack of an inactive strand takes. */
size_t shared_saved(const struct guest *guest);
/* Bytes of the stack that take memory; that were in use at most, ever. */
size_t shared_resident(const struct shared_stack *shared);
size_t shared_most(const struct shared_stack *shared);

#endif
