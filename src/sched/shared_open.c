/*
 * Opening shared fibres, and freeing them when nothing refers to them any more. The protocol block is in
 * shared_fibre.h.
 */
#include "records.h"
#include "shared_fibre.h"

#include "switch.h"
#include "trim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening -------------------------------------------------------------------------------------------- */

/* The entry of the new stack. */
static void begin(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    struct shared_fibre *shared = transfer.data;
    arch_san_arrive(&shared->fibre.san);
    arch_san_acquire(shared);
    shared->stack.first = transfer.from;
    shared->fibre.pool->sub->ops->serve_shared(shared, shared->above);
    UNREACHABLE();
}

/* Switches back to the thread that opens the fibre. Each strand of the fibre begins here. */
NOINLINE void shared_fibre_wait(struct shared_fibre *shared, void *base)
{
    arch_context opener = shared->stack.first;
    shared->stack.base = (char *)((uintptr_t)base & ~(uintptr_t)15);
    arch_san_release(&shared->fibre.san);
    arch_san_leave(&shared->fibre.san, &shared->opener, false);
    struct arch_transfer transfer = arch_context_jump(opener, NULL);
    struct thread *thread = transfer.data;
    if (UNLIKELY(arch_tool)) {
        thread_arrive_san_(thread, &thread->current->san, transfer.from);
        arch_san_acquire(&thread->current->san);
    }
    switch_arrive(thread, transfer.from);
}

/* Makes the frames that all strands of the fibre have in common. Returns 0 or a negated errno code. */
static int make_base(struct thread *thread, struct shared_fibre *shared)
{
    struct stack *stack = shared->fibre.stack;
    size_t room = (size_t)(stack->top - stack->low);
    struct arch_san *san = &shared->fibre.san;
    shared->opener = thread->current->san;
    arch_san_make(san, stack->low, room);
    arch_san_release(shared);
    arch_san_leave(&shared->opener, san, false);
    struct arch_transfer transfer = arch_context_jump(arch_context_make(stack->top, room, begin), shared);
    arch_san_arrive(&shared->opener);
    thread->current->san = shared->opener;
    return shared_keep_first(&thread->stacks, &shared->stack, transfer.from);
}

static void unmake(struct thread *thread, struct shared_fibre *shared)
{
    struct pool *pool = shared->fibre.pool;
    arch_san_acquire(&shared->fibre.san);
    shared_close(&thread->stacks, &shared->stack);
    free(shared);
    pool_record_unref(thread, pool);
}

static int make(struct thread *thread, struct shared_fibre *shared)
{
    struct fibre *fibre = &shared->fibre;
    shared->stack.beside = (struct shared_beside){fibre->own, &fibre->cxx, &fibre->started, &fibre->san};
    int error = shared_open(&thread->stacks, &shared->stack, fibre->stack_size);
    fibre->stack = shared->stack.stack;
    return error ? error : make_base(thread, shared);
}

int shared_fibre_open(struct thread *thread, struct pool *pool, size_t stack_size, struct shared_fibre **out)
{
    size_t size = sizeof(struct shared_fibre) + thread->sub->ops->above_size;
    size = (size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
    bool too_large = stack_size / sizeof(uintptr_t) > UINT32_MAX; /* guest.depth has 32 bits */
    struct shared_fibre *shared = too_large || platform_refuses(thread) ? NULL : aligned_alloc(CACHE_LINE, size);
    if (!shared)
        return -ENOMEM;
    memset(shared, 0, size);
    shared->fibre.stack_size = stack_size;
    shared->fibre.pool = pool;
    pool_record_ref(pool);
    shared->fibre.slow_wake = FIBRE_SHARED;
    batch_init(&shared->ready);
    atomic_init(&shared->mail, SHARED_IDLE);
    atomic_init(&shared->refs, SHARED_KNOWN);
    int error = make(thread, shared);
    if (error)
        unmake(thread, shared);
    else
        *out = shared;
    return error;
}

/* ---- what refers to it ----------------------------------------------------------------------------------- */

void shared_fibre_keep(struct shared_fibre *shared, uint64_t refs)
{
    atomic_fetch_add_explicit(&shared->refs, refs, memory_order_relaxed);
}

bool shared_fibre_keep_if_known(struct shared_fibre *shared)
{
    uint64_t refs = atomic_load_explicit(&shared->refs, memory_order_relaxed);
    while (refs && !atomic_compare_exchange_weak_explicit(&shared->refs, &refs, refs + SHARED_KNOWN,
                                                          memory_order_relaxed, memory_order_relaxed))
        continue;
    return refs != 0;
}

void shared_fibre_release(struct thread *thread, struct shared_fibre *shared, uint64_t refs)
{
    arch_san_release(shared);
    if (atomic_fetch_sub_explicit(&shared->refs, refs, memory_order_acq_rel) != refs) /* [RF1] */
        return;
    arch_san_acquire(shared);
    ASSERT(atomic_load_explicit(&shared->mail, memory_order_relaxed) == SHARED_IDLE);
    trim_forget(thread, shared);
    shared_end(&thread->stacks, &shared->stack);
    if (!readers_defer(&thread->sub->memory.readers, &shared->deferred, 0))
        unmake(thread, shared);
}

void shared_fibre_readers_leave(struct thread *thread)
{
    struct deferred *next, *deferred = readers_leave(&thread->sub->memory.readers);
    for (; deferred; deferred = next) {
        next = deferred->next;
        if (deferred->bytes)
            arch_unmap(deferred, deferred->bytes);
        else
            unmake(thread, CONTAINER(deferred, struct shared_fibre, deferred));
    }
}
