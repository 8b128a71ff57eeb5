/*
 * Shared stacks: the parts that are not inline. The protocol block is in shared.h.
 */
#include "shared_enter.h"

#include "saved.h"
#include "stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a strand has open ------------------------------------------------------------------------------ */

ARCH_NOT_INSTRUMENTED static void own_save(struct shared_stack *shared, char *saved)
{
    own_word *own = (own_word *)(void *)shared->beside.own, *to = (own_word *)(void *)saved;
    for (int i = 0; i < OWN_KEPT; i++) {
        to[i] = own[i];
        own[i] = i ? 0 : shared->first_own;
    }
}

ARCH_NOT_INSTRUMENTED static void own_load(struct shared_stack *shared, const char *saved)
{
    own_word *own = (own_word *)(void *)shared->beside.own;
    for (int i = 0; i < OWN_KEPT; i++)
        own[i] = ((const own_word *)(const void *)saved)[i];
}

/* ---- behind the frames ----------------------------------------------------------------------------------- */

size_t shared_saved(const struct guest *guest)
{
    return saved_round(arch_saved_size(guest_frames(guest) + guest_beside(guest)));
}

ARCH_NOT_INSTRUMENTED void shared_own(const struct shared_stack *shared, const struct guest *guest,
                                      uint64_t words[OWN_KEPT])
{
    const char *kept = (const char *)guest->saved + guest_frames(guest) + guest_beside_cxx(guest);
    bool active = shared->active == guest;
    const own_word *own = (const own_word *)(const void *)(active ? shared->beside.own : kept);
    for (int i = 0; i < OWN_KEPT; i++)
        words[i] = active || guest->keeps ? own[i] : 0;
}

NOINLINE void shared_save_beside_(struct shared_stack *shared, const struct guest *guest, char *to)
{
    if (guest->cxx)
        memcpy(to, shared->beside.cxx, sizeof(struct arch_cxx));
    if (guest->keeps)
        own_save(shared, to + guest_beside_cxx(guest));
}

NOINLINE void shared_load_beside_(struct shared_stack *shared, const struct guest *guest, const char *from)
{
    *shared->beside.started = true; /* the strand before it may have ended without a suspension */
    *shared->beside.cxx = (struct arch_cxx){0};
    if (guest->cxx)
        memcpy(shared->beside.cxx, from, sizeof(struct arch_cxx));
    if (guest->keeps)
        own_load(shared, from + guest_beside_cxx(guest));
}

/* ---- the active strand's saved stack --------------------------------------------------------------------- */

static size_t reserve_size(const struct shared_stack *shared)
{
    return saved_round(arch_saved_size(shared->size) + sizeof(struct arch_cxx) + OWN_SIZE);
}

/* Gets a saved stack of so many bytes. must: the strand that runs next has begun and can't be refused, so the reserve
 * serves if there is no memory [SF5]. Returns 0 or a negated errno code. */
static int get_saved(struct stack_user *user, struct shared_stack *shared, size_t bytes, bool must, void **out)
{
    int error = saved_get(user, &shared->set, bytes, must, out);
    if (LIKELY(!error) || !must)
        return error;
    if (shared->reserve_used && shared->saved != shared->reserve)
        user->memory->ops->starved(user, shared->active, bytes);
    shared->reserve_used = true;
    *out = shared->reserve;
    return 0;
}

static void put_saved(struct stack_user *user, struct shared_stack *shared)
{
    if (shared->saved && shared->saved == shared->reserve)
        shared->reserve_used = false;
    else if (shared->saved)
        saved_put(user, &shared->set, shared->saved, shared->saved_size);
    shared->saved = NULL;
    shared->saved_size = 0;
}

/* Returns whether the active strand's saved stack still has the right size. */
static bool fits(const struct shared_stack *shared, size_t size)
{
    return shared->saved && saved_round(size) == saved_round(shared->saved_size);
}

/* Gives the active strand a saved stack of so many bytes; must: as of get_saved. Returns 0 or a negated errno code. */
NOINLINE int shared_change_saved_(struct stack_user *user, struct shared_stack *shared, size_t size, bool must)
{
    void *saved;
    if (fits(shared, size))
        return 0;
    int error = get_saved(user, shared, size, must, &saved);
    if (error)
        return error;
    if (saved != shared->saved)
        put_saved(user, shared);
    shared->saved = saved;
    return 0;
}

static void forget_active(struct stack_user *user, struct shared_stack *shared)
{
    shared_set_active(shared, NULL);
    put_saved(user, shared);
}

/* ---- giving memory back ---------------------------------------------------------------------------------- */

/* Records the peak of use, before the pages that show it go back. */
static void record_peak(struct shared_stack *shared)
{
    plain_store(&shared->most, shared_most(shared), memory_order_relaxed);
}

void shared_give_back(struct stack_user *user, struct shared_stack *shared)
{
    char *used = shared->active ? shared_context(shared, shared->active) : shared->base;
    record_peak(shared);
    (void)stack_discard(shared->stack, used);
    if (!shared->reserve_used)
        arch_discard(shared->reserve, reserve_size(shared));
    saved_set_trim(user, &shared->set);
}

void shared_trim(struct stack_user *user, struct shared_stack *shared)
{
    plain_store(&shared->deepest, 0, memory_order_relaxed);
    shared_give_back(user, shared);
}

/* Overwrites what the formerly active strand leaves behind: its frames, the remains of returned calls below them, and
 * registers through which its memory was copied. */
COLD void shared_wipe_stack_(struct shared_stack *shared, arch_context context)
{
    arch_vectors_clear();
    record_peak(shared);
    char *from = stack_discard(shared->stack, context);
    arch_san_unwritten(from, (size_t)(shared->base - from)); /* a part of it lies below every frame */
    arch_wipe(from, (size_t)(shared->base - from), 0);
}

/* ---- who is in: what is not inline ------------------------------------------------------------------------ */

COLD void shared_vacate(struct stack_user *user, struct shared_stack *shared, bool cxx)
{
    enum { SPOILT = 0xb6 };
    struct guest *guest = shared->active;
    if (shared_move_out(user, shared, cxx, true) == 0)
        arch_wipe(shared_context(shared, guest), guest_frames(guest), SPOILT);
}

void shared_ended(struct stack_user *user, struct shared_stack *shared, arch_context from)
{
    ASSERT_SLOW(!shared_own_is_open(shared));
    if (UNLIKELY(shared->wipes))
        shared_wipe_stack_(shared, from);
    forget_active(user, shared);
}

void shared_follow(struct stack_user *user, struct shared_stack *shared, struct guest *guest)
{
    forget_active(user, shared);
    shared_set_active(shared, guest);
    *shared->beside.started = false;
}

/* ---- its beginning and end ------------------------------------------------------------------------------- */

int shared_open(struct stack_user *user, struct shared_stack *shared, size_t size)
{
    saved_set_open(&shared->set);
    shared->size = size;
    int error = arch_map(reserve_size(shared), &shared->reserve);
    if (!error)
        error = stack_get_patiently(user, size, &shared->stack);
    if (error)
        return error;
    shared->stack->idle = NULL;
    (void)stack_discard(shared->stack, shared->stack->top);
    return 0;
}

int shared_keep_first(struct stack_user *user, struct shared_stack *shared, arch_context first)
{
    struct arch_san *san = shared->beside.san;
    shared->first = first;
    memcpy(&shared->first_own, shared->beside.own, sizeof shared->first_own);
    shared->first_size = (size_t)(shared->base - (char *)first);
    shared->first_saved = stack_memory_refuses(user) ? NULL : malloc(arch_saved_size(shared->first_size));
    if (shared->first_saved) {
        arch_san_suspended(san, first);
        arch_saved_store(san, shared->first_saved, (char *)first, shared->first_size, 0);
    }
    arch_san_end(san); /* each strand has its own state */
    return shared->first_saved ? 0 : -ENOMEM;
}

void shared_end(struct stack_user *user, struct shared_stack *shared)
{
    ASSERT(!shared->active);
    saved_set_close(user, &shared->set);
}

void shared_close(struct stack_user *user, struct shared_stack *shared)
{
    if (shared->first_saved)
        arch_saved_drop(shared->first_saved, shared->first_size);
    free(shared->first_saved);
    if (shared->stack)
        stack_put(user, shared->stack);
    if (shared->reserve)
        arch_unmap(shared->reserve, reserve_size(shared));
}

/* ---- diagnostics ----------------------------------------------------------------------------------------- */

size_t shared_resident(const struct shared_stack *shared)
{
    return arch_resident(stack_floor(shared->stack), shared->stack->top);
}

size_t shared_most(const struct shared_stack *shared)
{
    size_t most = plain_load(&shared->most, memory_order_relaxed), resident = shared_resident(shared);
    size_t deepest = plain_load(&shared->deepest, memory_order_relaxed) + shared_above(shared);
    most = most > resident ? most : resident;
    return most > deepest ? most : deepest;
}
