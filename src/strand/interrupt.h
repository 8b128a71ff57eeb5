/*
 * Interruption: sources, and the check that every operation which may block makes first. Page:
 * docs/protocols/interrupt.md.
 *
 * A strand's sources are numbered: 0 is its own cancel, then its open scopes and deadlines from the outermost inwards.
 * `due` is 1 + the highest number of those that hold. Sources below `floor` are deferred. So the check for an
 * interruption is one comparison. Raising: set the source's own flag, raise `due`, then claim the wait if the
 * source's number reaches its floor. Lowering, by the strand alone when it leaves a block that held: recompute from the
 * flags, by compare-and-swap.
 *
 * INVARIANTS [I1] when raisers and the strand are done, `due` agrees with the flags. A raiser sets its flag first and
 *           then raises `due`, unless it finds it high enough already; so, after the strand has lowered `due`, it reads
 *           the flags again, and itself raises what came in between.
 *           [I2] with a C++ runtime, an interruption is thrown only if a handler can receive it. If a noexcept function
 *           is in between, the floor goes up until the next operation begins, and this one continues.
 *           [I3] in a clean-up that runs because of an exception, the library throws an interruption only if a try
 *           block of that clean-up catches it.
 * ORDERING  [I1] `due`, the blocks' flags and the bits of the word are accessed by seq_cst on both sides: a raiser that
 *           finds `due` high, and stops, precedes the strand's lowering of it, and so the strand's second reading of
 *           the flags sees the raiser's. [W4] of wait.h: a raiser has a fence after raising, for the case that `due`
 *           was high enough already.
 * FLOOR     a shield raises it to depth + 1: all open sources are deferred, those opened inside are not. So does a
 *           throw, if it is lower: clean-ups may block. A block that is left while unwinding lowers it to depth + 1 at
 *           most. A try block in a clean-up that catches interruptions sets it to the shield's [I3]. A noexcept
 *           function raises it above the source until the next operation begins [I2]. A shield or try block that is
 *           left, or an exception that is caught, restores what it was at the entry.
 * THROWN    STRAND_INTERRUPTED with the outermost source that holds and is not deferred. The block of that source turns
 *           it into STRAND_TIMED_OUT, or into the exception of the failed child; the strand's end, or the owner that
 *           passes it on, turns the strand's own cancel into STRAND_CHILD_CANCELLED. Catching it changes nothing: the
 *           next operation throws again.
 * NOT DONE  a queue of pending interruptions: a source is a state, not an event. A flag of each block that every
 *           operation walks. A search for noexcept functions before each wait: a walk over the frames costs more than a
 *           switch. Reporting a child's failure at the owner's next join, which may never come. Throwing the child's
 *           exception in the owner's code at once: a handler for all errors inside the scope would catch it.
 * TESTED BY tests/models/interrupt.pml, tests/spec/interruption.c, tests/spec/cxx_noexcept.cc, tests/spec/shield.c.
 */
#ifndef STRAND_INTERRUPT_H
#define STRAND_INTERRUPT_H

#include "cxx.h"
#include "handle.h"
#include "wait.h"

static inline bool interrupted(struct cb *me)
{
    return UNLIKELY(atomic_load_explicit(&me->due, memory_order_seq_cst) > own_of(me)->floor); /* [I1] [W4] */
}

/* Puts the outermost source that holds off until the next operation, if a noexcept function (such as a destructor)
 * keeps its interruption from every handler [I2]. Returns false if a handler receives the interruption. */
bool interrupt_put_off_(struct cb *me);
/* As interrupted, but only for interruptions that a handler receives. */
static inline bool interrupted_here(struct cb *me)
{
    while (interrupted(me))
        if (!interrupt_put_off_(me))
            return true;
    return false;
}

/* For an operation that can't wait again after an interruption: defers every source whose interruption no handler
 * would receive, whether the source holds or not. */
void interrupt_put_off_coming(struct cb *me);

/* As interrupted_here, at the start of an operation, while the caller holds no lock. A strand that puts an interruption
 * off again and again is logged. */
bool interrupt_put_off_at_start_(struct thread *thread, struct cb *me);
static inline bool interrupted_at_start(struct thread *thread, struct cb *me)
{
    return interrupted(me) && !interrupt_put_off_at_start_(thread, me);
}

/* Returns the time of the earliest deadline that is not deferred, or ARCH_FOREVER. O(open blocks). */
int64_t interrupt_deadline(struct cb *me);

/* Throws for the outermost source that holds and is not deferred. */
__attribute__((noreturn)) void interrupt_throw(struct thread *thread, struct cb *me, uint64_t progress);

/* As interrupt_throw. Suppresses pushed_aside, a reference to an exception that the operation had received, or NULL. */
__attribute__((noreturn)) void interrupt_throw_over(struct thread *thread, struct cb *me,
                                                    strand_exception *pushed_aside);

/* As interrupt_throw, at the start of an operation, which has not waited yet. Yields from time to time first. */
__attribute__((noreturn)) void interrupt_refuse(struct thread *thread, struct cb *me);

/* Whatever suspends its caller begins with this, also what is no cancellation point. */
static inline __attribute__((always_inline)) void may_suspend(struct thread *thread, struct cb *me,
                                                              const char *function)
{
    extern void misuse_in_section_(struct cb *, const char *);
    if (UNLIKELY(own_of(me)->section_file != NULL))
        misuse_in_section_(me, function);
    must_be_on_its_stack(thread);
}

/* The start of every operation that may block. Always inline: a step of a simulation is named by the operation. */
static inline __attribute__((always_inline)) void may_block(struct thread *thread, struct cb *me, const char *function)
{
    may_suspend(thread, me, function);
    thread_tick(thread);
    cxx_settle(thread, me);
    if (interrupted_at_start(thread, me))
        interrupt_refuse(thread, me);
}

/* Does what may_block does for the current strand, if that is no more than to count the operation, and nothing asks the
 * strand to yield. An operation that gets true and need not wait is complete. One that gets false, or has to wait,
 * calls may_block, which may count it again. The second platform, which names each operation, gets false. */
OWN_INLINE bool blocks_plainly(struct thread *thread, const struct own *own)
{
    const struct fibre *fibre = thread->current;
    uint32_t floor = own->floor;
    bool plain = !thread->slow_pick.own && thread->ticks > 1 && !own->section_file &&
                 !stack_is_left(fibre->stack, fibre->stack_size, arch_stack_pointer()) &&
                 atomic_load_explicit(&current_of(thread)->due, memory_order_seq_cst) <= floor && /* [I1] [W4] */
                 LIKELY(!thread->cxx || (!thread->cxx->uncaught && !floor));
    if (LIKELY(plain))
        thread->ticks--;
    return plain;
}

/*
 * A strand whose operations never have to wait yields from time to time. It does not yield before an operation that has
 * to wait: it would have no place in the queue yet, and a later operation would overtake it.
 */

/* The end of an operation that happened without waiting. Never throws, because the operation has happened. */
static inline void yield_if_asked(struct thread *thread)
{
    if (UNLIKELY(thread_is_asked_for(thread)))
        (void)thread_yield(thread);
}

/* As yield_if_asked, for an operation that may have continued on another thread. Returns the operation's result. */
static inline int yield_with_result(int result)
{
    yield_if_asked(thread_self());
    return result;
}

/* The start of an operation that takes something (a lock, a permit) which is free: the caller yields before it holds
 * it. Call only if it is free. Returns the thread on which the strand continues. */
struct thread *interrupt_yield_before_taking(struct thread *thread, struct cb *me);

/* Raises source number `index` of a strand, which the caller keeps from ending. Any thread may call this. Returns the
 * strand's member if the caller has to make it runnable. */
struct member *interrupt_raise(struct cb *c, uint32_t index, bool shared);
/* Sets the flag of a block and raises it. */
struct member *block_raise(struct block *block, bool shared);

/* Returns the outermost source that holds and is not deferred: a block, or NULL for the strand's own cancel. Call only
 * if interrupted(). */
struct block *interrupt_source(struct cb *me);
/* Recomputes `due` after a source was lowered or left. */
void interrupt_lower(struct thread *thread, struct cb *me);

/* ---- blocks ---------------------------------------------------------------------------------------------- */

/* Returns the exception that came into flight since the block was entered, or NULL. */
strand_exception *block_flight(struct thread *thread, struct cb *me, struct block *block);
/* Whether the block is being left by the interruption that it is the source of. */
bool block_is_source(struct block *block, const strand_exception *e);
/* Whether a C++ exception came into flight since the block was entered. */
bool block_foreign(struct thread *thread, struct block *block);

/* Begins a life of the record. */
static inline void block_init(struct block *block, uint64_t serial)
{
    atomic_store_explicit(&block->word, serial << WORD_SERIAL, memory_order_relaxed);
}

/* Returns a record with a new serial. NULL if there is no memory. */
static inline union any_block *block_new(struct thread *thread)
{
    union any_block *any = platform_slab_get(thread, &worker_of(thread)->blocks);
    if (UNLIKELY(!any))
        return NULL;
    arch_san_acquire(any);
    block_init(&any->scope.block, next_serial(worker_of(thread)));
    return any;
}

static inline void block_free(struct thread *thread, struct block *block)
{
    arch_san_release(block);
    if (LIKELY(handle_retire(thread, &block->word)))
        slab_put(&worker_of(thread)->blocks, block);
}

/* As block_enter, for a thread that has noticed no C++ runtime. */
static inline void block_enter_c(struct cb *me, struct block *block, enum block_type type, const char *file, int line)
{
    struct own *own = own_of(me);
    plain_store(&block->owner, me, memory_order_relaxed); /* other strands read it: block_owner */
    block->outer = own->blocks;
    block->index = ++own->depth;
    block->type = (uint8_t)type;
    atomic_store_explicit(&block->due, 0, memory_order_relaxed);
    block->in_flight = own->flight;
    block->uncaught = 0;
    block->file = file;
    block->line = line;
    ASSERT(own->depth < WAIT_FLOOR_MOST - 1);
    own->blocks = block;
}

static inline void block_enter(struct thread *thread, struct cb *me, struct block *block, enum block_type type,
                               const char *file, int line)
{
    cxx_notice(thread, me);
    block_enter_c(me, block, type, file, line);
    if (UNLIKELY(thread->cxx != NULL))
        block->uncaught = thread->cxx->uncaught;
}

/* Misuse: a jump such as longjmp has skipped the clean-up of a block, or (if block is NULL) of a try block or a
 * shield. */
__attribute__((noreturn)) void misuse_block_skipped_(struct cb *me, const struct block *block);

/* Returns whether the caller has to call interrupt_lower, because the block may have been due. */
static inline bool block_unlink(struct cb *me, struct block *block)
{
    struct own *own = own_of(me);
    if (UNLIKELY(own->blocks != block))
        misuse_block_skipped_(me, own->blocks);
    own->blocks = block->outer;
    own->depth--;
    if (UNLIKELY(own->floor > own->depth + 1))
        own->floor = own->depth + 1; /* blocks that a clean-up opens later are not deferred */
    return UNLIKELY(atomic_load_explicit(&me->due, memory_order_relaxed) > own->depth);
}

static inline void block_leave(struct thread *thread, struct cb *me, struct block *block)
{
    if (block_unlink(me, block))
        interrupt_lower(thread, me);
}

/* sched_ops.fire. */
struct member *deadline_comes(struct timer *timer);

#endif
