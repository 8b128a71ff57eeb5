/*
 * Interruption: sources, and the check that every operation which may block makes first. Page:
 * docs/protocols/interrupt.md.
 *
 * A strand's sources are numbered: 0 is its own cancel, then its open scopes and deadlines from the outermost inwards.
 * `due` is 1 + the highest number of those that hold, `floor` the number below which they are put off; so "is anything
 * to interrupt me" is one comparison. Raising: set the source's own flag, raise `due`, then claim the wait if the
 * source's number reaches its floor. Lowering, by the strand alone when it leaves a block that held: recompute from the
 * flags, by compare-and-swap.
 */
#ifndef STRAND_INTERRUPT_H
#define STRAND_INTERRUPT_H

#include "wait.h"

static inline bool interrupted(struct cb *me)
{
    return UNLIKELY(atomic_load_explicit(&me->due, memory_order_seq_cst) > me->floor);
}

/* Throws for the outermost source that holds and is not put off. */
__attribute__((noreturn)) void interrupt_throw(struct thread *thread, struct cb *me, uint64_t progress);

/* The start of every operation that may block. */
static inline void may_block(struct thread *thread, struct cb *me, const char *function)
{
    extern void section_misuse_(struct cb *, const char *);
    if (UNLIKELY(me->section_file != NULL))
        section_misuse_(me, function);
    thread_tick(thread);
    if (interrupted(me))
        interrupt_throw(thread, me, 0);
}

/* Source number `index` of this strand holds now. Any thread that keeps the strand from ending. Returns its fibre if
 * the caller has to make it runnable. */
struct fibre *interrupt_raise(struct cb *c, uint32_t index, bool shared);
/* The same for a block, whose flag is set first. */
struct fibre *block_raise(struct block *block, bool shared);

/* Open and leave a block; from its slab, NULL: no memory (thrown by the caller). */
void block_enter(struct thread *thread, struct cb *me, struct block *block, enum block_kind kind, const char *file,
                 int line);
void block_leave(struct thread *thread, struct cb *me, struct block *block);
/* The exception that came into flight since the block was entered, or NULL. */
strand_exception *block_flight(struct cb *me, struct block *block);
/* Whether the block is being left by the interruption that it is the source of. */
bool block_is_source(struct block *block, const strand_exception *e);
void interrupt_lower(struct thread *thread, struct cb *me);
/* A C++ exception that came into flight since. */
bool block_foreign(struct thread *thread, struct block *block);
union any_block *block_new(struct thread *thread);
void block_free(struct thread *thread, struct block *block);

/* The outermost source that holds, above the floor: a block, or NULL for the strand's own cancel. Only if
 * interrupted(). */
struct block *interrupt_source(struct cb *me);

#endif
