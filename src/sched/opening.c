/*
 * The making of opened fibres, their end when nobody knows them any more, and what can be asked of one. The protocol
 * block is in opened.h.
 */
#include "opened.h"

#include "../stack/saved.h"
#include "../stack/stack.h"
#include "pool.h"
#include "rest.h"
#include "switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------------------- */

/* On the new stack. */
static void begin(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    struct opened *opened = transfer.data;
    arch_note_arrive(&opened->fibre.note);
    arch_note_acquire(opened);
    opened->first = transfer.from;
    opened->fibre.pool->sub->ops->serve_opened(opened, opened->above);
    UNREACHABLE();
}

/* Back to whoever opens it; each strand goes on from here. */
NOINLINE void opened_wait(struct opened *opened, void *base)
{
    arch_context opener = opened->first;
    opened->base = (char *)((uintptr_t)base & ~(uintptr_t)15);
    arch_note_release(&opened->fibre.note);
    arch_note_leave(&opened->fibre.note, &opened->opener, false);
    struct arch_transfer transfer = arch_context_jump(opener, NULL);
    struct thread *thread = transfer.data;
    if (UNLIKELY(arch_tool)) {
        thread_arrive_noted_(thread, &thread->current->note, transfer.from);
        arch_note_acquire(&thread->current->note);
    }
    switch_arrive(thread, transfer.from);
}

/* Make the frames that all of its strands have in common. */
static int make_base(struct thread *thread, struct opened *opened)
{
    struct stack *stack = opened->fibre.stack;
    size_t room = (size_t)(stack->top - stack->low);
    struct arch_note *note = &opened->fibre.note;
    opened->opener = thread->current->note;
    arch_note_make(note, stack->low, room);
    arch_note_release(opened);
    arch_note_leave(&opened->opener, note, false);
    struct arch_transfer transfer = arch_context_jump(arch_context_make(stack->top, room, begin), opened);
    arch_note_arrive(&opened->opener);
    thread->current->note = opened->opener;
    opened->first = transfer.from;
    memcpy(&opened->first_own, opened->fibre.own, sizeof opened->first_own);
    opened->first_size = (size_t)(opened->base - (char *)opened->first);
    opened->first_image = driver_malloc(thread, arch_image_size(opened->first_size));
    if (opened->first_image) {
        arch_note_suspended(note, opened->first);
        arch_image_save(note, opened->first_image, (char *)opened->first, opened->first_size, 0);
    }
    arch_note_end(note); /* each strand has its own */
    return opened->first_image ? 0 : -ENOMEM;
}

size_t opened_reserve_size(const struct opened *opened)
{
    return saved_round(arch_image_size(opened->fibre.stack_size) + sizeof(struct arch_cxx) + OWN_SIZE);
}

static void unmake(struct thread *thread, struct opened *opened)
{
    struct pool *pool = opened->fibre.pool;
    arch_note_acquire(&opened->fibre.note);
    if (opened->first_image)
        arch_image_drop(opened->first_image, opened->first_size);
    free(opened->first_image);
    if (opened->fibre.stack)
        stack_put(&thread->stacks, opened->fibre.stack);
    if (opened->reserve)
        arch_unmap(opened->reserve, opened_reserve_size(opened));
    free(opened);
    pool_let_go(pool);
}

static int make(struct thread *thread, struct opened *opened)
{
    size_t size = opened->fibre.stack_size;
    int error = arch_map(opened_reserve_size(opened), &opened->reserve);
    if (!error)
        error = stack_get_patiently(&thread->stacks, size, &opened->fibre.stack);
    if (error)
        return error;
    opened->fibre.stack->idle = NULL;
    (void)stack_discard(opened->fibre.stack, opened->fibre.stack->top); /* what it tells of use is this fibre's alone */
    return make_base(thread, opened);
}

int opened_open(struct thread *thread, struct pool *pool, size_t stack_size, struct opened **out)
{
    size_t size = sizeof(struct opened) + thread->sub->ops->above_size;
    size = (size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
    bool too_large = stack_size / sizeof(uintptr_t) > UINT32_MAX; /* guest.depth */
    struct opened *opened = too_large || driver_refuses(thread) ? NULL : aligned_alloc(CACHE_LINE, size);
    if (!opened)
        return -ENOMEM;
    memset(opened, 0, size);
    opened->fibre.stack_size = stack_size;
    opened->fibre.pool = pool;
    pool_keep(pool);
    opened->fibre.opened = true;
    batch_init(&opened->ready);
    saved_set_open(&opened->images);
    atomic_init(&opened->mail, OPENED_IDLE);
    atomic_init(&opened->refs, OPENED_KNOWN);
    int error = make(thread, opened);
    if (error)
        unmake(thread, opened);
    else
        *out = opened;
    return error;
}

/* ---- who knows it ---------------------------------------------------------------------------------------- */

void opened_keep(struct opened *opened, uint64_t refs)
{
    atomic_fetch_add_explicit(&opened->refs, refs, memory_order_relaxed);
}

bool opened_keep_if_known(struct opened *opened)
{
    uint64_t refs = atomic_load_explicit(&opened->refs, memory_order_relaxed);
    while (refs && !atomic_compare_exchange_weak_explicit(&opened->refs, &refs, refs + OPENED_KNOWN,
                                                          memory_order_relaxed, memory_order_relaxed))
        continue;
    return refs != 0;
}

void opened_release(struct thread *thread, struct opened *opened, uint64_t refs)
{
    arch_note_release(opened);
    if (atomic_fetch_sub_explicit(&opened->refs, refs, memory_order_acq_rel) != refs)
        return;
    arch_note_acquire(opened);
    ASSERT(atomic_load_explicit(&opened->mail, memory_order_relaxed) == OPENED_IDLE && !opened->resident);
    rest_forget(thread, opened);
    saved_set_close(&thread->stacks, &opened->images);
    if (!readers_defer(&thread->sub->memory.readers, &opened->deferred, 0))
        unmake(thread, opened);
}

/* ---- looking --------------------------------------------------------------------------------------------- */

void opened_readers_leave(struct thread *thread)
{
    struct deferred *next, *deferred = readers_leave(&thread->sub->memory.readers);
    for (; deferred; deferred = next) {
        next = deferred->next;
        if (deferred->bytes)
            arch_unmap(deferred, deferred->bytes);
        else
            unmake(thread, CONTAINER(deferred, struct opened, deferred));
    }
}

size_t opened_resident(const struct opened *opened)
{
    const struct stack *stack = opened->fibre.stack;
    return arch_resident(stack_floor(stack), stack->top);
}

size_t opened_most(const struct opened *opened)
{
    size_t most = plain_load(&opened->most, memory_order_relaxed), resident = opened_resident(opened);
    size_t deepest = plain_load(&opened->deepest, memory_order_relaxed) + opened_above(opened);
    most = most > resident ? most : resident;
    return most > deepest ? most : deepest;
}
