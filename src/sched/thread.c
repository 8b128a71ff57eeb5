/*
 * A thread's life and the switch. The protocol block stands in thread.h.
 */
#include "thread.h"

#include "stack.h"
#include "timers.h"

enum { PERIOD_MOST = 8, LOOK_EVERY = 61 }; /* contract §2: every 61 switches or every millisecond */

static __thread struct thread *self __attribute__((tls_model("initial-exec")));

NOINLINE struct thread *thread_self(void)
{
    __asm__ volatile("" ::: "memory");
    return self;
}

NOINLINE void thread_adopt(struct thread *thread)
{
    self = thread;
}

void fibre_init(struct fibre *fibre, struct member *member)
{
    list_init(&fibre->members);
    list_push_back(&fibre->members, &member->link);
    fibre->count = 1;
    fibre->active = member;
    member->fibre = fibre;
}

/* ---- the switch ---------------------------------------------------------------------------------------------------- */

static void entry(struct arch_transfer transfer);

/* What the one that was left has to have done for it, on the stack that was switched to. */
static inline __attribute__((always_inline)) void arrive(struct thread *thread, arch_context from)
{
    enum after after = thread->after;
    if (LIKELY(after <= AFTER_YIELD)) {
        struct fibre *left = thread->from;
        arch_note_suspended(&left->note, from);
        atomic_store_explicit(&left->context, from, memory_order_release); /* [S2] */
        if (after == AFTER_YIELD)
            thread_push(thread, left, PUSH_YIELDED);
    } else if (after == AFTER_END) {
        arch_note_end(&thread->dead_note);
        thread->dead->idle = from;
        stack_put(thread, thread->dead, thread->sub->stacks.usual);
    } else {
        thread->loop = from;
    }
}

static COLD void check_canary(struct thread *thread)
{
    if (thread->canaries && stack_overrun(thread->current->stack))
        thread->sub->ops->overflow(thread, NULL, NULL);
}

/* The rest of leaving a fibre, in runs that need it: its canary, and the state of C++ exceptions. */
static COLD void leave_oddly(struct thread *thread, struct fibre *from)
{
    check_canary(thread);
    from->started = true;
    if (thread->cxx)
        from->cxx = *thread->cxx;
}

static COLD void arrive_oddly(struct thread *thread, struct fibre *to, struct arch_note *here)
{
    static const struct arch_cxx none;
    if (thread->cxx)
        *thread->cxx = to && to->started ? to->cxx : none;
    thread->here = here;
}

static int give_stack(struct thread *thread, struct fibre *to)
{
    int error = stack_get(thread, to->stack_size, &to->stack);
    if (LIKELY(!error))
        return 0;
    thread->refused = to;
    thread->refusal = error;
    return error;
}

/* The context that `to` starts or goes on with; NULL if it can't start. */
static inline arch_context context_of(struct thread *thread, struct fibre *to)
{
    to->home = thread;
    if (LIKELY(to->stack != NULL)) {
        arch_context context;
        while (UNLIKELY(!(context = atomic_load_explicit(&to->context, memory_order_acquire)))) /* [S1] */
            driver_relax(thread);
        atomic_store_explicit(&to->context, NULL, memory_order_relaxed);
        arch_note_resumed(&to->note);
        return context;
    }
    if (UNLIKELY(give_stack(thread, to)))
        return NULL;
    struct stack *stack = to->stack;
    size_t room = (size_t)(stack->top - stack->low);
    arch_note_make(&to->note, stack->low, room);
    atomic_store_explicit(&to->context, NULL, memory_order_relaxed);
    if (LIKELY(stack->idle && !ARCH_NOTES_SEPARATE))
        return stack->idle;
    return arch_context_make(stack->top, room, entry);
}

/* Leave the stack of `from` for the fibre `to`, or for the loop if it is NULL or can't start. */
static inline __attribute__((always_inline)) struct thread *jump(struct thread *thread, struct arch_note *from, struct fibre *to)
{
    arch_context context = to ? context_of(thread, to) : thread->loop;
    if (UNLIKELY(!context)) {
        if (thread->after == AFTER_LOOP)
            return thread; /* refused, and the loop is here */
        to = NULL;
        context = thread->loop;
    }
    thread->current = to;
    thread->switches++;
    if (UNLIKELY(thread->odd))
        arrive_oddly(thread, to, to ? &to->note : &thread->loop_note);
    arch_note_leave(from, to ? &to->note : &thread->loop_note, thread->after == AFTER_END);
    struct arch_transfer transfer = arch_context_jump(context, thread);
    arch_note_arrive(from);
    arrive(transfer.data, transfer.from);
    return transfer.data;
}

/* The strand of `next`, which has not started, runs on this very stack. */
static inline void reuse_stack(struct thread *thread, struct fibre *next, struct stack *stack)
{
    next->stack = stack;
    next->home = thread;
    next->note = thread->dead_note;
    atomic_store_explicit(&next->context, NULL, memory_order_relaxed);
    thread->current = next;
    thread->switches++;
    if (UNLIKELY(thread->odd))
        arrive_oddly(thread, NULL, &next->note);
}

static inline struct fibre *next_after_end(struct thread *thread)
{
    struct fibre *next = thread->next;
    if (LIKELY(next != NULL)) {
        thread->next = NULL;
        return next; /* whoever joined has ticked */
    }
    thread_tick(thread);
    driver_point(thread);
    return thread_pick(thread);
}

struct thread *thread_serve_next(struct thread *thread)
{
    struct stack *stack = thread->dead;
    struct fibre *next = next_after_end(thread);
    if (!ARCH_NOTES_SEPARATE && next && !next->stack && next->stack_size == stack->size) {
        reuse_stack(thread, next, stack);
        return thread;
    }
    thread->after = AFTER_END;
    return jump(thread, &thread->dead_note, next);
}

static void entry(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    struct thread *thread = transfer.data;
    arch_note_arrive(&thread->current->note);
    arrive(thread, transfer.from);
    thread->sub->ops->serve(thread);
    UNREACHABLE();
}

static inline __attribute__((always_inline)) struct thread *leave(struct thread *thread, struct fibre *to, enum after after)
{
    struct fibre *from = thread->current;
    if (UNLIKELY(thread->odd))
        leave_oddly(thread, from);
    thread->from = from;
    thread->after = after;
    return jump(thread, &from->note, to);
}

struct thread *thread_park_for(struct thread *thread, struct fibre *to)
{
    return leave(thread, to, AFTER_PARK);
}

struct thread *thread_park(struct thread *thread)
{
    driver_point(thread);
    struct fibre *to = thread_pick(thread);
    if (UNLIKELY(to == thread->current))
        return thread; /* [S3] it was claimed and queued here already */
    return leave(thread, to, AFTER_PARK);
}

struct thread *thread_yield(struct thread *thread)
{
    driver_point(thread);
    struct fibre *to = thread_pick(thread);
    if (UNLIKELY(!to)) {
        check_canary(thread);
        return thread;
    }
    return leave(thread, to, AFTER_YIELD);
}

COLD void thread_detach_oddly_(struct thread *thread)
{
    check_canary(thread);
    thread->here = &thread->dead_note;
}

/* ---- the thread's life ------------------------------------------------------------------------------------------------- */

static void run(struct thread *thread, struct fibre *fibre)
{
    thread->from = NULL;
    thread->after = AFTER_LOOP;
    jump(thread, &thread->loop_note, fibre);
    if (UNLIKELY(thread->refused != NULL)) {
        struct fibre *refused = thread->refused;
        thread->refused = NULL;
        thread->sub->ops->refuse(refused->active, thread->refusal);
    }
}

void thread_loop(struct thread *thread)
{
    thread->cxx = arch_cxx_globals();
    thread->odd = thread->cxx || thread->driver || thread->canaries;
    thread->here = &thread->loop_note;
    if (!thread->driver)
        arch_note_thread(&thread->loop_note);
    thread->looked = thread->ticked = arch_ticks();
    thread->now = driver_now(thread->sub);
    do {
        struct fibre *fibre;
        while ((driver_point(thread), fibre = thread_pick(thread)))
            run(thread, fibre);
    } while (pool_find_work(thread));
}

/* Called every `period` operations, which is so few that they take less than a millisecond together if the last ones did. */
COLD void thread_tick_(struct thread *thread)
{
    uint64_t now = arch_ticks(), elapsed = now - thread->ticked, ms = arch_ticks_per_ms();
    thread->ticked = now;
    thread->looks += (uint32_t)thread->period;
    if (thread->driver || elapsed < ms / 4)
        thread->period = PERIOD_MOST;
    else if (elapsed > ms / 2)
        thread->period = 1;
    thread->ticks = thread->period;
    if (UNLIKELY(atomic_load_explicit(&thread->hold, memory_order_relaxed)))
        pool_stand_still(thread);
    if (thread->looks < LOOK_EVERY && now - thread->looked < ms)
        return;
    thread->looks = 0;
    thread->looked = now;
    thread->fair = true;
    pool_look(thread);
}
