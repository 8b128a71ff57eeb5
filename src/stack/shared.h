/*
 * A shared stack: one stack for several strands. The frames of one of them, the active strand, lie in the stack; the
 * frames of the others lie in saved stacks. Page: docs/protocols/residency.md. The layer above decides which of the
 * strands is runnable, and which thread may use the stack (src/sched/shared_fibre.h).
 *
 * PARTIES   the holder: one thread at a time, which alone calls these functions, except those for diagnostics.
 * STATE     active: the strand whose frames lie in the stack, or NULL. Each strand (struct guest): not started (no
 *           depth); active; inactive (its frames, from the depth up to base, lie in its saved stack).
 * OWNERSHIP everything is the holder's, the guests' depths and saved stacks included. The lowest frames are the same
 *           for all strands: they are made when the stack is opened, and stay. The loop that runs one strand after the
 *           other is there; its frames, as they are while it waits for the next strand, are kept as the first frames of
 *           every strand.
 * PROTOCOL  shared_enter (shared_enter.h) copies the active strand's frames out and the next strand's in, if they are
 *           two. A strand that leaves copies nothing, as shared_fibre.h says in [SF2].
 * INVARIANTS [SF4] no memory of the runtime that others touch lies on a stack (docs/stacks.md). [SF5] starting a strand
 *           can be refused for want of memory, resuming one cannot: then the reserve, as large as the stack, takes the
 *           active strand's frames.
 * ORDERING  [SF9] the store of `active` (release) pairs with the load of diagnostics (acquire): a reader that finds a
 *           guest replaced finds its saved stack, and one that has read frames that were wiped finds them elsewhere.
 *           The run queues, through which one holder follows another, order all else.
 * NOT DONE  copying when a strand leaves: most strands that wake up next are others, but the last one often is not. The
 *           copy on the stack of the strand that arrives: private stacks are as large as they are.
 * TESTED BY tests/models/residency.pml, tests/spec/fibre.c, tests/spec/fibre_wait.c, tests/sim/residency.c.
 */
#ifndef STACK_SHARED_H
#define STACK_SHARED_H

#include "memory.h"

/* The words that say what the strand on a stack has open. Only the layer above reads them, so they lie with the stack.
 * The first OWN_KEPT words of an inactive strand lie in its saved stack, unless they have their initial values: the
 * first one as the layer above had it when the stack was opened, the others zero. The rest is zero when a strand
 * suspends. */
enum { OWN_SIZE = 72, OWN_KEPT = 7 };

/* What the running strand has beside its frames. Part of the layer above's fibre. */
struct shared_beside {
    char *own;            /* OWN_SIZE bytes */
    struct arch_cxx *cxx; /* the state of C++ exceptions */
    bool *started;        /* *cxx is valid */
    struct arch_san *san;
};

/* A strand of a shared stack. */
struct guest {
    void *saved;    /* of an inactive strand: its saved stack */
    uint32_t depth; /* the size of its frames in words: it goes on at base - depth; 0: it has not started */
    bool wipes;     /* its frames must not stay in memory that others get */
    bool keeps;     /* its saved stack holds what it has open */
    bool cxx;       /* its saved stack holds its state of C++ exceptions */
};

struct shared_stack {
    size_t size; /* the size of the stack */
    struct stack *stack;
    struct shared_beside beside;
    char *base;         /* frames below it are copied: they differ between the strands */
    arch_context first; /* where each strand begins */
    void *first_saved;  /* the frames that are there then */
    size_t first_size;
    uint64_t first_own; /* the first word of OWN_SIZE when a strand begins; the others are zero */
    struct guest *active;
    void *saved;       /* the saved stack that the active strand had while it was inactive; NULL: none */
    size_t saved_size; /* its size in bytes */
    void *reserve;     /* address space for one saved stack [SF5] */
    bool reserve_used;
    bool wipes;     /* the active strand's frames are overwritten when it leaves */
    size_t deepest; /* the most bytes of the stack at a suspension, since the last trim */
    size_t most;    /* the most bytes of the stack in use, recorded before pages went back */
    struct saved_set set;
    _Atomic uint64_t copies; /* diagnostics only: how many saved stacks were made */
};

/* Returns the size of the strand's frames in bytes. */
OWN_INLINE size_t guest_frames(const struct guest *guest)
{
    return (size_t)guest->depth * sizeof(uintptr_t);
}

/* Returns where a strand that has started goes on. */
OWN_INLINE arch_context shared_context(const struct shared_stack *shared, const struct guest *guest)
{
    return shared->base - guest_frames(guest);
}

/* Returns the size of the fibre's own frames: the bytes from base to top, which all its strands share. */
OWN_INLINE size_t shared_above(const struct shared_stack *shared)
{
    return (size_t)(shared->stack->top - shared->base);
}

/* Opens a shared stack: gets the reserve, and a stack of that (rounded) size, whose pages go back, so that they show
 * the use of this shared stack alone. Returns 0 or a negated errno code. shared_close must follow, also after an
 * error. */
int shared_open(struct stack_user *user, struct shared_stack *shared, size_t size);
/* Keeps the lowest frames, which have been made and wait at `first`, for all strands. Returns 0 or -ENOMEM. */
int shared_keep_first(struct stack_user *user, struct shared_stack *shared, arch_context first);
/* shared_end gives back the saved stacks, when all strands have ended. Readers may still use the rest until
 * shared_close frees it. */
void shared_end(struct stack_user *user, struct shared_stack *shared);
void shared_close(struct stack_user *user, struct shared_stack *shared);

/* For tests: copies the active strand's frames out at once and overwrites the stack, so that a use of an address in it
 * shows. */
void shared_vacate(struct stack_user *user, struct shared_stack *shared, bool cxx);
/* Completes the end of the active strand, which has left the stack at the context `from`. */
void shared_ended(struct stack_user *user, struct shared_stack *shared, arch_context from);
/* Completes the end of the active strand, and puts this strand, which has not started, in its place. */
void shared_follow(struct stack_user *user, struct shared_stack *shared, struct guest *guest);
/* shared_trim gives memory that is not needed back to the system, and resets `deepest`. shared_give_back does the same,
 * but keeps `deepest`. */
void shared_trim(struct stack_user *user, struct shared_stack *shared);
void shared_give_back(struct stack_user *user, struct shared_stack *shared);

/* ---- diagnostics: any thread that keeps the stack from being freed ------------------------------------------ */

/* Copies what a strand that has started has open to `words`, as far as an inactive one keeps it. The strand must not
 * run meanwhile. */
void shared_own(const struct shared_stack *shared, const struct guest *guest, uint64_t words[OWN_KEPT]);
/* Returns how many bytes the saved stack of an inactive strand takes. */
size_t shared_saved(const struct guest *guest);
/* shared_resident returns how many bytes of the stack take memory; shared_most, how many were in use at most, ever. */
size_t shared_resident(const struct shared_stack *shared);
size_t shared_most(const struct shared_stack *shared);

#endif
