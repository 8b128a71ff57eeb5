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

static void check_canary(struct thread *thread, struct fibre *from)
{
    if (stack_overrun(from->stack))
        thread->sub->ops->overflow(thread, NULL, NULL);
}

/* What the one that was left has to have done for it, on the stack that was switched to. */
static inline void arrive(struct thread *thread, arch_context from)
{
    struct fibre *left = thread->from;
    switch (thread->after) {
    case AFTER_PARK:
        arch_note_suspended(&left->note, from);
        atomic_store_explicit(&left->context, from, memory_order_release); /* [S2] */
        break;
    case AFTER_YIELD:
        arch_note_suspended(&left->note, from);
        atomic_store_explicit(&left->context, from, memory_order_release); /* [S2] */
        thread_push(thread, left, PUSH_YIELDED);
        break;
    case AFTER_END:
        arch_note_end(&thread->dead_note);
        stack_put(thread, thread->dead, thread->sub->stacks.usual);
        thread->dead = NULL;
        break;
    case AFTER_LOOP:
        thread->loop = from;
        break;
    }
}

static inline void save_cxx(struct thread *thread, struct fibre *fibre)
{
    if (UNLIKELY(thread->cxx != NULL))
        fibre->cxx = *thread->cxx;
}

static inline void load_cxx(struct thread *thread, const struct fibre *fibre)
{
    if (UNLIKELY(thread->cxx != NULL))
        *thread->cxx = fibre ? fibre->cxx : (struct arch_cxx){0};
}

/* The context that `to` starts or goes on with; NULL if it can't start. */
static inline arch_context context_of(struct thread *thread, struct fibre *to)
{
    to->home = thread;
    if (LIKELY(to->stack != NULL)) {
        arch_context context;
        while (!(context = atomic_load_explicit(&to->context, memory_order_acquire))) /* [S1] */
            driver_relax(thread);
        atomic_store_explicit(&to->context, NULL, memory_order_relaxed);
        arch_note_resumed(&to->note);
        return context;
    }
    int error = stack_get(thread, to->stack_size, &to->stack);
    if (UNLIKELY(error)) {
        thread->refused = to;
        thread->refusal = error;
        return NULL;
    }
    size_t room = (size_t)(to->stack->top - to->stack->low);
    arch_note_make(&to->note, to->stack->low, room);
    atomic_store_explicit(&to->context, NULL, memory_order_relaxed);
    return arch_context_make(to->stack->top, room, entry);
}

/* Leave `from` (a fibre's note, or the loop's) for `to`, or for the loop if it is NULL. */
static inline struct thread *jump(struct thread *thread, struct arch_note *from, struct fibre *to)
{
    arch_context context = to ? context_of(thread, to) : NULL;
    if (UNLIKELY(!context)) {
        if (thread->after == AFTER_LOOP)
            return thread; /* refused, and the loop is here */
        to = NULL;
        context = thread->loop;
    }
    thread->current = to;
    thread->switches++;
    load_cxx(thread, to);
    if (UNLIKELY(thread->driver != NULL))
        thread->here = to ? &to->note : &thread->loop_note;
    arch_note_leave(from, to ? &to->note : &thread->loop_note, thread->after == AFTER_END);
    struct arch_transfer transfer = arch_context_jump(context, thread);
    return arch_note_arrive(from), arrive(transfer.data, transfer.from), transfer.data;
}

static void entry(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    struct thread *thread = transfer.data;
    struct stack *stack = thread->current->stack;
    arch_note_arrive(&thread->current->note);
    arrive(thread, transfer.from);
    for (;;) {
        thread->sub->ops->run(thread->current->active);
        thread = thread_self();
        thread_tick(thread);
        driver_point(thread);
        struct fibre *next = thread_pick(thread);
        thread->dead = stack;
        if (!ARCH_NOTES_SEPARATE && next && !next->stack && next->stack_size == stack->size) {
            /* The next strand has not started: it runs on this very stack. */
            next->stack = stack;
            next->home = thread;
            next->note = thread->dead_note;
            atomic_store_explicit(&next->context, NULL, memory_order_relaxed);
            thread->current = next;
            thread->here = &next->note;
            thread->switches++;
            load_cxx(thread, NULL);
            continue;
        }
        thread->after = AFTER_END;
        jump(thread, &thread->dead_note, next);
        UNREACHABLE();
    }
}

static inline struct thread *leave(struct thread *thread, struct fibre *to, enum after after)
{
    struct fibre *from = thread->current;
    if (UNLIKELY(thread->canaries))
        check_canary(thread, from);
    save_cxx(thread, from);
    thread->from = from;
    thread->after = after;
    return jump(thread, &from->note, to);
}

struct thread *thread_park(struct thread *thread, struct fibre *to)
{
    if (!to) {
        driver_point(thread);
        to = thread_pick(thread);
    }
    return leave(thread, to, AFTER_PARK);
}

struct thread *thread_yield(struct thread *thread)
{
    driver_point(thread);
    struct fibre *to = thread_pick(thread);
    if (!to)
        return thread;
    return leave(thread, to, AFTER_YIELD);
}

void thread_detach(struct thread *thread)
{
    struct fibre *fibre = thread->current;
    if (UNLIKELY(thread->canaries))
        check_canary(thread, fibre);
    thread->dead_note = fibre->note;
    thread->here = &thread->dead_note;
    thread->current = NULL;
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
