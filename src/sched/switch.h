/*
 * The switch itself, inline: for switch.c, and for the two places above it where every strand passes (join, and the
 * frame that strands run in). The protocol block is in thread.h.
 */
#ifndef SCHED_SWITCH_H
#define SCHED_SWITCH_H

#include "../stack/stack.h"
#include "deliver.h"
#include "thread.h"

void thread_entry_(struct arch_transfer transfer);
/* Makes all threads of the run save and restore the state of C++ exceptions from now on. */
void switch_all_save_cxx(struct subprocess *sub);
void thread_leave_slow_(struct thread *thread, struct fibre *from);
void thread_arrive_slow_(struct thread *thread, struct fibre *to, struct arch_san *here);
void thread_jump_slow_(struct thread *thread, struct arch_san *from, struct fibre *to, bool ends);
void thread_reuse_slow_(struct thread *thread, struct fibre *next);
void thread_make_san_(struct fibre *to, size_t room);
void thread_arrive_san_(struct thread *thread, struct arch_san *here, arch_context from);
struct fibre *thread_give_up_(struct thread *thread, struct fibre *next);
int thread_give_stack_(struct thread *thread, struct fibre *to);

/* Performs on the new stack the clean-up for the fibre just left (enum after). */
OWN_INLINE_ALWAYS void switch_arrive(struct thread *thread, arch_context from)
{
    enum after after = thread->after;
    if (LIKELY(after <= AFTER_YIELD)) {
        struct fibre *left = thread->from;
        atomic_store_explicit(&left->context, from, memory_order_release); /* [S2] */
        if (after == AFTER_YIELD) {
            if (UNLIKELY(fibre_is_pinned(left)))
                pool_send_pinned(thread, left);
            else
                thread_push(thread, left, PUSH_YIELDED);
        }
    } else if (after == AFTER_END) {
        thread->dead->idle = from;
        stack_put(&thread->stacks, thread->dead);
    } else if (after == AFTER_LOOP) {
        thread->loop = from;
    } else {
        shared_fibre_left(thread, shared_of(thread->from), from, after);
    }
}

/* Returns the context in which `to` begins or continues; NULL: it can't start, or the context is not there yet. */
OWN_INLINE_ALWAYS arch_context switch_context(struct thread *thread, struct fibre *to)
{
    plain_store(&to->home, thread, memory_order_relaxed); /* the owner of a started child may read it */
    struct stack *stack = to->stack;
    if (stack) {
        arch_context context = atomic_load_explicit(&to->context, memory_order_acquire); /* [S1] */
        if (UNLIKELY(!context)) {
            thread->late = to; /* [S4] the switch away from it is under way: the loop waits for that */
            return NULL;
        }
        atomic_store_explicit(&to->context, NULL, memory_order_relaxed);
        return context;
    }
    if (UNLIKELY(stack_get(&thread->stacks, to->stack_size, &to->stack)) && thread_give_stack_(thread, to))
        return NULL;
    stack = to->stack;
    if (UNLIKELY(arch_tool))
        thread_make_san_(to, (size_t)(stack->top - stack->low));
    atomic_store_explicit(&to->context, NULL, memory_order_relaxed);
    if (LIKELY(stack->idle != NULL))
        return stack->idle;
    return arch_context_make(stack->top, (size_t)(stack->top - stack->low), thread_entry_);
}

/* Switches from the stack of `from` to the fibre `to`, or to the loop if `to` is NULL or can't go on at once. ends: the
 * strand on that stack has ended. Returns the thread on which this stack continues. */
OWN_INLINE_ALWAYS struct thread *switch_jump(struct thread *thread, struct arch_san *from, struct fibre *to, bool ends)
{
    arch_context context = to ? switch_context(thread, to) : thread->loop;
    if (UNLIKELY(!context)) {
        if (thread->after == AFTER_LOOP)
            return thread; /* `to` was refused, and this is the loop */
        to = NULL;
        context = thread->loop;
    }
    thread->current = to;
    thread->switches++;
    if (UNLIKELY(slow_flags_has(&thread->slow_switch, SWITCH_CHECK)))
        thread_jump_slow_(thread, from, to, ends);
    struct arch_transfer transfer = arch_context_jump(context, thread);
    thread = transfer.data;
    if (UNLIKELY(arch_tool)) {
        /* On the stack of an ended strand another one begins, on any thread. It has a state of its own for
         * sanitizers. */
        thread_arrive_san_(thread, ends ? &thread->current->san : from, transfer.from);
        arch_san_acquire(from); /* with the strands that ran on this stack meanwhile */
    }
    switch_arrive(thread, transfer.from);
    return thread;
}

/* Does what the thread's slow_switch asks for. Returns the fibre to run next; NULL: the loop. */
OWN_INLINE struct fibre *switch_leave_slow(struct thread *thread, struct fibre *from, struct fibre *to,
                                           enum after after)
{
    uint32_t flags = atomic_load_explicit(&thread->slow_switch.any, memory_order_acquire); /* [Z3] */
    if (UNLIKELY(flags & SWITCH_CHECK))
        thread_leave_slow_(thread, from);
    if (thread->slow_switch.own) { /* SWITCH_SHARED */
        thread->slow_switch.own = 0;
        arch_san_release(&from->san);
        thread->after = after == AFTER_PARK ? AFTER_SHARED_PARK : AFTER_SHARED_YIELD;
    }
    return UNLIKELY(flags & SWITCH_LEAVE) ? thread_give_up_(thread, to) : to;
}

/* Switches from the current fibre to `to`, or to the loop if that is NULL. Returns the thread on which the fibre goes
 * on. */
OWN_INLINE_ALWAYS struct thread *switch_leave(struct thread *thread, struct fibre *to, enum after after)
{
    struct fibre *from = thread->current;
    thread_notice_cxx(thread); /* [S5] */
    thread->from = from;
    thread->after = after;
    if (UNLIKELY(slow_flags_any(&thread->slow_switch)))
        to = switch_leave_slow(thread, from, to, after);
    return switch_jump(thread, &from->san, to, false);
}

/* As thread_park, with the fibre to run next, which the caller has taken out of its queue. */
OWN_INLINE_ALWAYS struct thread *switch_to(struct thread *thread, struct fibre *to)
{
    return switch_leave(thread, to, AFTER_PARK);
}

/* As thread_park; inline, because after a switch the return predictor holds the other strand's addresses. */
OWN_INLINE_ALWAYS struct thread *switch_park(struct thread *thread)
{
    struct fibre *to = thread_point_and_pick(thread);
    if (UNLIKELY(to == thread->current))
        return thread; /* [S3] the strand was claimed and queued here already */
    return switch_leave(thread, to, AFTER_PARK);
}

/* Begins the strand of `next`, which has not started, on this very stack. */
OWN_INLINE void switch_reuse(struct thread *thread, struct fibre *next, struct stack *stack)
{
    next->stack = stack;
    plain_store(&next->home, thread, memory_order_relaxed);
    atomic_store_explicit(&next->context, NULL, memory_order_relaxed);
    thread->current = next;
    thread->switches++;
    if (UNLIKELY(slow_flags_has(&thread->slow_switch, SWITCH_CHECK)))
        thread_reuse_slow_(thread, next);
}

struct fibre *thread_pick_after_end_(struct thread *thread);

/* Continues with another fibre after a strand's end, on its stack. Returns when this stack has a new strand to run: at
 * once, if the next one has not started and fits, or later, on any thread that takes the stack from a cache. */
OWN_INLINE struct thread *switch_serve_next(struct thread *thread)
{
    struct stack *stack = thread->dead;
    struct fibre *next = thread->next;
    if (LIKELY(next != NULL))
        thread->next = NULL; /* the joining strand has ticked */
    else
        next = thread_pick_after_end_(thread);
    if (next && !next->stack && next->stack_size == stack->size && !arch_san_separate()) {
        switch_reuse(thread, next, stack);
        return thread;
    }
    thread->after = AFTER_END;
    return switch_jump(thread, &thread->dead_san, next, true);
}

/* As switch_serve_next, for a shared fibre: its stack serves only its own strands, and only if no other fibre runs here
 * next. */
OWN_INLINE struct thread *switch_serve_shared(struct thread *thread)
{
    struct fibre *fibre = thread->current, *next = thread->next;
    thread->next = NULL;
    if (!next)
        next = thread_pick_after_end_(thread);
    if (!next && !thread_is_to_go(thread) && shared_fibre_goes_on(thread, shared_of(fibre))) {
        thread->current = fibre;
        thread->switches++;
        if (UNLIKELY(slow_flags_has(&thread->slow_switch, SWITCH_CHECK)))
            thread_arrive_slow_(thread, NULL, &fibre->san);
        return thread;
    }
    arch_san_release(&fibre->san);
    thread->from = fibre;
    thread->after = AFTER_SHARED_END;
    thread->slow_switch.own = 0;
    return switch_jump(thread, &thread->dead_san, next, true);
}

#endif
