/*
 * The copying of frames into and out of a shared stack, inline, because the layer above does it at each visit. The
 * protocol block is in shared.h.
 */
#ifndef STACK_SHARED_ENTER_H
#define STACK_SHARED_ENTER_H

#include "budget.h"
#include "shared.h"

#include <errno.h>

/* A word of OWN_SIZE, copied by hand: it belongs to the strands, and sanitizers must not take the access for the
 * thread's. */
typedef uint64_t own_word __attribute__((may_alias));

/* ---- what is not inline: shared.c ------------------------------------------------------------------------- */

void shared_save_beside_(struct shared_stack *shared, const struct guest *guest, char *to);
void shared_load_beside_(struct shared_stack *shared, const struct guest *guest, const char *from);
int shared_change_saved_(struct stack_user *user, struct shared_stack *shared, size_t size, bool must);
void shared_wipe_stack_(struct shared_stack *shared, arch_context context);

/* ---- the active strand ------------------------------------------------------------------------------------ */

/* Returns whether the active strand has something open that a saved stack must hold. */
ARCH_NOT_INSTRUMENTED OWN_INLINE bool shared_own_is_open(const struct shared_stack *shared)
{
    const own_word *own = (const own_word *)(const void *)shared->beside.own;
    uint64_t open = own[0] ^ shared->first_own;
#pragma GCC unroll 8
    for (int i = 1; i < OWN_KEPT; i++)
        open |= own[i];
    return open != 0;
}

/* Sets the active strand, which other threads read for diagnostics. */
OWN_INLINE void shared_set_active(struct shared_stack *shared, struct guest *guest)
{
    plain_store(&shared->active, guest, memory_order_release); /* [SF9] */
}

/* Return the size of what follows the frames in a saved stack: the state of C++ exceptions, if there was a runtime when
 * they were saved, and then also what the strand has open. */
OWN_INLINE size_t guest_beside_cxx(const struct guest *guest)
{
    return guest->cxx ? sizeof(struct arch_cxx) : 0;
}

OWN_INLINE size_t guest_beside(const struct guest *guest)
{
    return guest_beside_cxx(guest) + (guest->keeps ? OWN_KEPT * sizeof(own_word) : 0);
}

/* Copies the active strand's frames out. Called on the side that arrives [SF2]. must: as of get_saved. Returns 0 or a
 * negated errno code. */
OWN_INLINE int shared_move_out(struct stack_user *user, struct shared_stack *shared, bool cxx, bool must)
{
    struct guest *guest = shared->active;
    guest->keeps = shared_own_is_open(shared);
    guest->cxx = cxx;
    size_t frames = guest_frames(guest), more = guest_beside(guest), size = arch_saved_size(frames + more);
    int error = UNLIKELY(size != shared->saved_size) ? shared_change_saved_(user, shared, size, must) : 0;
    if (UNLIKELY(error))
        return error;
    char *saved = shared->saved;
    if (UNLIKELY(more))
        shared_save_beside_(shared, guest, saved + frames);
    arch_saved_store(shared->beside.san, saved, shared_context(shared, guest), frames, more);
    guest->saved = saved;
    shared_set_active(shared, NULL);
    if (UNLIKELY(guest->wipes)) {
        atomic_thread_fence(memory_order_release); /* [SF9] */
        shared_wipe_stack_(shared, shared_context(shared, guest));
    }
    shared->saved = NULL;
    shared->saved_size = 0;
    uint64_t copies = atomic_load_explicit(&shared->copies, memory_order_relaxed);
    atomic_store_explicit(&shared->copies, copies + 1, memory_order_relaxed);
    return 0;
}

/* Copies the frames of an inactive strand into the stack. */
OWN_INLINE void shared_move_in(struct shared_stack *shared, struct guest *guest, bool cxx)
{
    size_t frames = guest_frames(guest), more = guest_beside(guest);
    char *saved = guest->saved;
    shared->saved = saved;
    shared->saved_size = arch_saved_size(frames + more);
    arch_saved_load(shared->beside.san, saved, shared_context(shared, guest), frames, more);
    if (UNLIKELY(more || cxx))
        shared_load_beside_(shared, guest, saved + frames);
    if (UNLIKELY(guest->wipes)) {
        guest->saved = NULL; /* as in shared_move_out: its frames are in the stack, though it is not active yet */
        atomic_thread_fence(memory_order_release); /* [SF9] */
        arch_wipe(saved, frames, 0);
        arch_vectors_clear();
    }
}

/* Starts a strand: its first frames are the same as those of all strands of the stack. */
OWN_INLINE void shared_move_in_new(struct shared_stack *shared, struct guest *guest)
{
    char *low = shared->stack->low;
    arch_san_make(shared->beside.san, low, (size_t)(shared->base - low));
    arch_saved_start(shared->beside.san, shared->first_saved, (char *)shared->first, shared->first_size);
    plain_store(&guest->depth, (uint32_t)(shared->first_size / sizeof(uintptr_t)), memory_order_relaxed);
    *shared->beside.started = false;
}

/* Makes the guest the next to run: copies its frames into the stack. cxx: there is a C++ runtime. Returns 0, or a
 * negated errno code if a strand that has not started can't start. */
OWN_INLINE int shared_enter(struct stack_user *user, struct shared_stack *shared, struct guest *guest, bool cxx)
{
    if (shared->active == guest)
        return 0;
    if (!guest->depth && UNLIKELY(!budget_may_begin(user)))
        return -EAGAIN;
    int error = shared->active ? shared_move_out(user, shared, cxx, guest->depth != 0) : 0;
    if (UNLIKELY(error))
        return error;
    if (guest->depth)
        shared_move_in(shared, guest, cxx);
    else
        shared_move_in_new(shared, guest);
    shared_set_active(shared, guest);
    shared->wipes = guest->wipes;
    return 0;
}

/* Records that the active strand has left the stack at the context `from`, and is suspended. */
OWN_INLINE void shared_suspended(struct shared_stack *shared, arch_context from)
{
    size_t frames = (size_t)(shared->base - (char *)from);
    plain_store(&shared->active->depth, (uint32_t)(frames / sizeof(uintptr_t)), memory_order_relaxed);
    arch_san_suspended(shared->beside.san, from);
    if (frames > shared->deepest)
        plain_store(&shared->deepest, frames, memory_order_relaxed);
}

#endif
