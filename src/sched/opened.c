/*
 * Opened fibres: who of their strands is runnable, and whose frames are in. The protocol block is in opened.h.
 */
#include "opened.h"

#include "../stack/budget.h"
#include "../stack/saved.h"
#include "../stack/stack.h"
#include "opened_mail.h"
#include "rest.h"
#include "switch.h"

#include <errno.h>
#include <string.h>

/* ---- what a strand has open ------------------------------------------------------------------------------ */

/* By hand: it is the strands' own, and no access of the thread's that sanitizers are to know of. */
typedef uint64_t own_word __attribute__((may_alias));

ARCH_NOT_INSTRUMENTED static bool own_is_open(const struct opened *opened)
{
    const own_word *own = (const own_word *)opened->fibre.own;
    uint64_t open = own[0] ^ opened->first_own;
#pragma GCC unroll 8
    for (int i = 1; i < OWN_KEPT; i++)
        open |= own[i];
    return open != 0;
}

ARCH_NOT_INSTRUMENTED static void own_save(struct opened *opened, char *image)
{
    own_word *own = (own_word *)opened->fibre.own, *to = (own_word *)(void *)image;
    for (int i = 0; i < OWN_KEPT; i++) {
        to[i] = own[i];
        own[i] = i ? 0 : opened->first_own;
    }
}

ARCH_NOT_INSTRUMENTED static void own_load(struct opened *opened, const char *image)
{
    own_word *own = (own_word *)opened->fibre.own;
    for (int i = 0; i < OWN_KEPT; i++)
        own[i] = ((const own_word *)(const void *)image)[i];
}

/* Others read it, for people. */
static inline void set_resident(struct opened *opened, struct member *member)
{
    plain_store(&opened->resident, member, memory_order_release);
}

/* ---- giving up ------------------------------------------------------------------------------------------- */

/* The holder, before pages that tell how much was used go back. */
static void note_most(struct opened *opened)
{
    plain_store(&opened->most, opened_most(opened), memory_order_relaxed);
}

/* The holder. */
static void give_back(struct thread *thread, struct opened *opened)
{
    char *used = opened->resident ? guest_context(opened, guest_of(opened->resident)) : opened->base;
    note_most(opened);
    (void)stack_discard(opened->fibre.stack, used);
    if (!opened->reserve_used)
        arch_discard(opened->reserve, opened_reserve_size(opened));
    saved_set_trim(&thread->stacks, &opened->images);
}

static void trim(struct thread *thread, struct opened *opened)
{
    opened->trim = false;
    plain_store(&opened->deepest, 0, memory_order_relaxed);
    give_back(thread, opened);
}

/* True: nobody holds it any more, and it may be gone already [O6]. */
static bool leave_idle(struct thread *thread, struct opened *opened)
{
    do {
        opened_take_mail(thread, opened);
        if (UNLIKELY(opened->trim)) {
            trim(thread, opened);
            saved_store_trim(&thread->stacks, SIZE_MAX); /* whoever wished it could not */
        }
        if (opened->ready.first)
            return false;
    } while (!opened_go_idle(thread, opened));
    return true;
}

/* Of who has held it without having come to run on it, on whatever pool: what it does here is not over. */
static void let_go(struct thread *thread, struct opened *opened)
{
    if (leave_idle(thread, opened))
        return;
    if (opened->fibre.pool == thread->pool)
        thread_push(thread, &opened->fibre, PUSH_YIELDED);
    else
        pool_send(thread, &opened->fibre);
}

void opened_trim(struct thread *thread, struct opened *opened)
{
    uintptr_t mail = atomic_load_explicit(&opened->mail, memory_order_relaxed), wished;
    do {
        if (mail & OPENED_TRIM)
            return;
        wished = mail == OPENED_IDLE ? 0 : mail | OPENED_TRIM;
    } while (!atomic_compare_exchange_weak_explicit(&opened->mail, &mail, wished, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if (wished)
        return; /* its holder, or the next one, finds it */
    trim(thread, opened);
    let_go(thread, opened);
}

void opened_rest(struct thread *thread, struct opened *opened)
{
    uintptr_t idle = OPENED_IDLE;
    if (!atomic_compare_exchange_strong_explicit(&opened->mail, &idle, 0, memory_order_acq_rel, memory_order_relaxed))
        return; /* who runs on it next notes it [O7] */
    give_back(thread, opened);
    let_go(thread, opened);
}

/* On the loop, if nobody else was found to run, it is gone on with at once. */
void opened_give_up(struct thread *thread, struct opened *opened)
{
    if (leave_idle(thread, opened))
        return;
    if (!thread->current && !thread->late)
        thread->late = &opened->fibre;
    else
        thread_push(thread, &opened->fibre, PUSH_YIELDED); /* [O3] */
}

/* Who comes next: the first, or under a seed any of the first few. */
static struct member *choose(struct thread *thread, struct opened *opened)
{
    struct batch *ready = &opened->ready;
    opened_take_mail(thread, opened);
    uint32_t skip = thread->driver ? driver_choose(thread, 4) : 0;
    struct member *before = NULL, *member = ready->first;
    for (; skip && member->next; skip--) {
        before = member;
        member = member->next;
    }
    if (!before)
        return batch_take(ready);
    before->next = member->next;
    if (ready->last == member)
        ready->last = before;
    return member;
}

/* ---- who is in ------------------------------------------------------------------------------------------- */

/* Behind the frames stand the state of C++ exceptions, if there was a runtime when they were saved, and what the strand
 * has open. */
static size_t beside_cxx(const struct guest *guest)
{
    return guest->cxx ? sizeof(struct arch_cxx) : 0;
}

static size_t beside(const struct guest *guest)
{
    return beside_cxx(guest) + (guest->keeps ? OWN_KEPT * sizeof(own_word) : 0);
}

size_t opened_saved(const struct guest *guest)
{
    return saved_round(arch_image_size(guest_frames(guest) + beside(guest)));
}

ARCH_NOT_INSTRUMENTED void opened_own(struct member *member, uint64_t words[OWN_KEPT])
{
    const struct opened *opened = opened_of(member->fibre);
    const struct guest *guest = guest_of(member);
    const char *kept = (const char *)guest->image + guest_frames(guest) + beside_cxx(guest);
    bool resident = opened->resident == member;
    const own_word *own = (const own_word *)(const void *)(resident ? opened->fibre.own : kept);
    for (int i = 0; i < OWN_KEPT; i++)
        words[i] = resident || guest->keeps ? own[i] : 0;
}

static NOINLINE void save_beside(struct opened *opened, const struct guest *guest, char *to)
{
    if (guest->cxx)
        memcpy(to, &opened->fibre.cxx, sizeof(struct arch_cxx));
    if (guest->keeps)
        own_save(opened, to + beside_cxx(guest));
}

static NOINLINE void load_beside(struct opened *opened, const struct guest *guest, const char *from)
{
    opened->fibre.started = true; /* the strand before it may have ended without a suspension */
    opened->fibre.cxx = (struct arch_cxx){0};
    if (guest->cxx)
        memcpy(&opened->fibre.cxx, from, sizeof(struct arch_cxx));
    if (guest->keeps)
        own_load(opened, from + beside_cxx(guest));
}

/* must: the one that is to run next has begun, so there is no way to refuse it [O5]. */
static int get_image(struct thread *thread, struct opened *opened, size_t bytes, bool must, void **out)
{
    int error = saved_get(&thread->stacks, &opened->images, bytes, must, out);
    if (LIKELY(!error) || !must)
        return error;
    if (opened->reserve_used && opened->image != opened->reserve)
        thread->sub->ops->starved(opened->resident, bytes);
    opened->reserve_used = true;
    *out = opened->reserve;
    return 0;
}

static void put_image(struct thread *thread, struct opened *opened)
{
    if (opened->image && opened->image == opened->reserve)
        opened->reserve_used = false;
    else if (opened->image)
        saved_put(&thread->stacks, &opened->images, opened->image, opened->image_size);
    opened->image = NULL;
    opened->image_size = 0;
}

/* Whether the resident's image is of the right size still. */
static bool fits(const struct opened *opened, size_t size)
{
    return opened->image && saved_round(size) == saved_round(opened->image_size);
}

/* The resident is gone: its frames, what lies below them of calls that have returned, and what was copied by way of
 * registers. */
static COLD void wipe_stack(struct opened *opened, arch_context context)
{
    arch_vectors_clear();
    note_most(opened);
    char *from = stack_discard(opened->fibre.stack, context);
    arch_note_look(from, (size_t)(opened->base - from)); /* a part of it lies below every frame */
    arch_wipe(from, (size_t)(opened->base - from), 0);
}

/* An image of so many bytes for the resident, or a negated errno code. */
static NOINLINE int change_image(struct thread *thread, struct opened *opened, size_t size, bool must)
{
    void *image;
    if (fits(opened, size))
        return 0;
    int error = get_image(thread, opened, size, must, &image);
    if (error)
        return error;
    if (image != opened->image)
        put_image(thread, opened);
    opened->image = image;
    return 0;
}

static int move_out(struct thread *thread, struct opened *opened, bool must)
{
    struct guest *guest = guest_of(opened->resident);
    guest->keeps = own_is_open(opened);
    guest->cxx = thread->cxx != NULL;
    size_t frames = guest_frames(guest), more = beside(guest), size = arch_image_size(frames + more);
    int error = UNLIKELY(size != opened->image_size) ? change_image(thread, opened, size, must) : 0;
    if (UNLIKELY(error))
        return error;
    char *image = opened->image;
    if (UNLIKELY(more))
        save_beside(opened, guest, image + frames);
    arch_image_save(&opened->fibre.note, image, guest_context(opened, guest), frames, more);
    guest->image = image;
    set_resident(opened, NULL);
    if (UNLIKELY(guest->wipes)) {
        atomic_thread_fence(memory_order_release); /* who has read what is wiped finds the strand elsewhere after */
        wipe_stack(opened, guest_context(opened, guest));
    }
    opened->image = NULL;
    opened->image_size = 0;
    uint64_t copies = atomic_load_explicit(&opened->copies, memory_order_relaxed);
    atomic_store_explicit(&opened->copies, copies + 1, memory_order_relaxed);
    return 0;
}

static void move_in(struct thread *thread, struct opened *opened, struct guest *guest)
{
    size_t frames = guest_frames(guest), more = beside(guest);
    char *image = guest->image;
    opened->image = image;
    opened->image_size = arch_image_size(frames + more);
    arch_image_load(&opened->fibre.note, image, guest_context(opened, guest), frames, more);
    if (UNLIKELY(more || thread->cxx))
        load_beside(opened, guest, image + frames);
    if (UNLIKELY(guest->wipes)) {
        guest->image = NULL; /* as in move_out: its frames are in the stack, though it is not the resident yet */
        atomic_thread_fence(memory_order_release);
        arch_wipe(image, frames, 0);
        arch_vectors_clear();
    }
}

/* It begins where all of them do. */
static void move_in_new(struct opened *opened, struct guest *guest)
{
    char *low = opened->fibre.stack->low;
    arch_note_make(&opened->fibre.note, low, (size_t)(opened->base - low));
    arch_image_start(&opened->fibre.note, opened->first_image, (char *)opened->first, opened->first_size);
    plain_store(&guest->depth, (uint32_t)(opened->first_size / sizeof(uintptr_t)), memory_order_relaxed);
    opened->fibre.started = false;
}

/* Of many strands each is far from the processor when its turn comes: the frames of the next, whose record was fetched
 * a turn ago, and the record of the one after it. */
OWN_INLINE void fetch_ahead(const struct opened *opened)
{
    enum { RECORD = 192, FRAMES = 512 };
    struct member *next = opened->ready.first;
    if (LIKELY(!next || !next->next))
        return;
    const struct guest *guest = guest_of(next);
    size_t frames = guest_frames(guest);
    for (size_t at = 0; at < frames && at < FRAMES; at += CACHE_LINE)
        __builtin_prefetch((const char *)guest->image + at);
    for (size_t at = 0; at < RECORD; at += CACHE_LINE)
        __builtin_prefetch((const char *)guest_of(next->next) + at);
}

int opened_enter(struct thread *thread, struct opened *opened)
{
    struct member *member = choose(thread, opened);
    struct guest *guest = guest_of(member);
    fetch_ahead(opened);
    rest_note(thread, opened); /* [O7] */
    opened->fibre.active = member;
    if (opened->resident != member) {
        if (!guest->depth && UNLIKELY(!budget_may_begin(&thread->stacks)))
            return -EAGAIN;
        int error = opened->resident ? move_out(thread, opened, guest->depth != 0) : 0;
        if (UNLIKELY(error))
            return error;
        if (guest->depth)
            move_in(thread, opened, guest);
        else
            move_in_new(opened, guest);
        set_resident(opened, member);
        opened->wipes = guest->wipes;
    }
    atomic_store_explicit(&opened->fibre.context, guest_context(opened, guest), memory_order_relaxed);
    thread->odd.opened = true;
    return 0;
}

/* For tests: whoever still uses an address of the strand's stack is to notice. */
static COLD void vacate(struct thread *thread, struct opened *opened, struct guest *guest)
{
    enum { SPOILT = 0xb6 };
    if (move_out(thread, opened, true) == 0)
        arch_wipe(guest_context(opened, guest), guest_frames(guest), SPOILT);
}

static void forget_image(struct thread *thread, struct opened *opened)
{
    set_resident(opened, NULL);
    put_image(thread, opened);
}

void opened_left(struct thread *thread, struct opened *opened, arch_context from, enum after after)
{
    struct member *member = opened->fibre.active;
    if (UNLIKELY(opened->wipes))
        arch_vectors_clear(); /* of what it has computed with */
    if (after == AFTER_OPENED_END) {
        arch_note_end(&thread->dead_note);
        opened->fibre.active = NULL; /* it may be somebody else's by now */
        ASSERT_SLOW(!own_is_open(opened));
        if (UNLIKELY(opened->wipes))
            wipe_stack(opened, from);
        forget_image(thread, opened);
        opened_give_up(thread, opened);
        opened_release(thread, opened, OPENED_STRAND);
        budget_ended(&thread->stacks);
        return;
    }
    struct guest *guest = guest_of(member);
    size_t frames = (size_t)(opened->base - (char *)from);
    plain_store(&guest->depth, (uint32_t)(frames / sizeof(uintptr_t)), memory_order_relaxed);
    arch_note_suspended(&opened->fibre.note, from);
    if (frames > opened->deepest)
        plain_store(&opened->deepest, frames, memory_order_relaxed);
    if (UNLIKELY(thread->sub->copies))
        vacate(thread, opened, guest);
    if (after == AFTER_OPENED_YIELD) {
        opened_take_mail(thread, opened);
        batch_add(&opened->ready, member);
    }
    opened_give_up(thread, opened);
}

bool opened_goes_on(struct thread *thread, struct opened *opened)
{
    opened_take_mail(thread, opened);
    struct member *member = opened->ready.first;
    if (arch_notes_separate() || thread->driver || opened->wipes || !member || guest_of(member)->depth)
        return false;
    forget_image(thread, opened);
    opened->fibre.active = batch_take(&opened->ready);
    set_resident(opened, opened->fibre.active);
    opened->fibre.started = false;
    opened_release(thread, opened, OPENED_STRAND); /* of the one that has ended; the next has its own */
    return true;
}
