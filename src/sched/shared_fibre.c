/*
 * Shared fibres: visits of their holders. The protocol block is in shared_fibre.h.
 */
#include "shared_fibre.h"

#include "../stack/saved.h"
#include "../stack/shared_enter.h"
#include "shared_mail.h"
#include "switch.h"
#include "trim.h"

/* ---- giving up ------------------------------------------------------------------------------------------- */

static void trim(struct thread *thread, struct shared_fibre *shared)
{
    shared->trim = false;
    shared_trim(&thread->stacks, &shared->stack);
}

/* Makes the fibre idle, unless a strand of it is runnable. Returns whether it did: no thread holds the fibre then, and
 * it may be gone already [SF6]. */
static bool leave_idle(struct thread *thread, struct shared_fibre *shared)
{
    do {
        shared_mail_take(thread, shared);
        if (UNLIKELY(shared->trim)) {
            trim(thread, shared);
            saved_store_trim(&thread->stacks, SIZE_MAX); /* the thread that asked for the trim could not */
        }
        if (shared->ready.first)
            return false;
    } while (!shared_mail_go_idle(thread, shared));
    return true;
}

/* Ends a hold of a thread, of any pool, that has not run on the fibre: queues the fibre if a strand of it is
 * runnable. */
static void let_go(struct thread *thread, struct shared_fibre *shared)
{
    if (leave_idle(thread, shared))
        return;
    if (shared->fibre.pool == thread->pool)
        thread_push(thread, &shared->fibre, PUSH_YIELDED);
    else
        pool_send(thread, &shared->fibre);
}

void shared_fibre_trim(struct thread *thread, struct shared_fibre *shared)
{
    uintptr_t mail = atomic_load_explicit(&shared->mail, memory_order_relaxed), wished;
    do {
        if (mail & SHARED_TRIM)
            return;
        wished = mail == SHARED_IDLE ? 0 : mail | SHARED_TRIM;
    } while (!atomic_compare_exchange_weak_explicit(&shared->mail, &mail, wished, memory_order_acq_rel,
                                                    memory_order_relaxed)); /* [SF8] */
    if (wished)
        return; /* its holder, or the next one, finds the wish */
    trim(thread, shared);
    let_go(thread, shared);
}

void shared_fibre_trim_idle(struct thread *thread, struct shared_fibre *shared)
{
    uintptr_t idle = SHARED_IDLE;
    if (!atomic_compare_exchange_strong_explicit(&shared->mail, &idle, 0, memory_order_acq_rel,
                                                 memory_order_relaxed)) /* [SF8] */
        return; /* the thread that runs on it next records it [SF7] */
    shared_give_back(&thread->stacks, &shared->stack);
    let_go(thread, shared);
}

/* If the thread has found nothing else to run, its loop resumes the fibre at once. A thread that must leave has come to
 * its loop for that, and others may be waiting. */
void shared_fibre_give_up(struct thread *thread, struct shared_fibre *shared)
{
    if (leave_idle(thread, shared))
        return;
    if (!thread->current && !thread->late && !thread_is_to_go(thread))
        thread->late = &shared->fibre;
    else
        thread_push(thread, &shared->fibre, PUSH_YIELDED); /* [SF3] */
}

/* ---- a visit --------------------------------------------------------------------------------------------- */

/* Removes and returns the next strand: the first, or under a seed one of the first four. */
static struct member *choose(struct thread *thread, struct shared_fibre *shared)
{
    struct batch *ready = &shared->ready;
    shared_mail_take(thread, shared);
    uint32_t skip = thread->platform ? platform_choose(thread, 4) : 0;
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

/* Prefetches the frames of the next strand, whose record was prefetched a visit ago, and the record of the strand after
 * it. With many strands, each has left the caches when its turn comes. */
OWN_INLINE void fetch_ahead(const struct shared_fibre *shared)
{
    enum { RECORD = 192, FRAMES = 512 };
    struct member *next = shared->ready.first;
    if (LIKELY(!next || !next->next))
        return;
    const struct guest *guest = guest_of(next);
    size_t frames = guest_frames(guest);
    for (size_t at = 0; at < frames && at < FRAMES; at += CACHE_LINE)
        __builtin_prefetch((const char *)guest->saved + at);
    for (size_t at = 0; at < RECORD; at += CACHE_LINE)
        __builtin_prefetch((const char *)guest_of(next->next) + at);
}

int shared_fibre_enter(struct thread *thread, struct shared_fibre *shared)
{
    struct member *member = choose(thread, shared);
    struct guest *guest = guest_of(member);
    fetch_ahead(shared);
    trim_record(thread, shared); /* [SF7] */
    shared->fibre.current = member;
    int error = shared_enter(&thread->stacks, &shared->stack, guest, thread->cxx != NULL);
    if (UNLIKELY(error))
        return error;
    atomic_store_explicit(&shared->fibre.context, shared_context(&shared->stack, guest), memory_order_relaxed);
    thread->slow_switch.own = SWITCH_SHARED;
    return 0;
}

static void left_at_end(struct thread *thread, struct shared_fibre *shared, arch_context from)
{
    arch_san_end(&thread->dead_san);
    shared->fibre.current = NULL; /* the ended strand's record may be another's by now */
    shared_ended(&thread->stacks, &shared->stack, from);
    shared_fibre_give_up(thread, shared);
    shared_fibre_release(thread, shared, SHARED_STRAND);
    budget_ended(&thread->stacks);
}

void shared_fibre_left(struct thread *thread, struct shared_fibre *shared, arch_context from, enum after after)
{
    if (UNLIKELY(shared->stack.wipes))
        arch_vectors_clear(); /* they hold what the strand has computed with */
    if (after == AFTER_SHARED_END) {
        left_at_end(thread, shared, from);
        return;
    }
    shared_suspended(&shared->stack, from);
    if (UNLIKELY(thread->sub->copies))
        shared_vacate(&thread->stacks, &shared->stack, thread->cxx != NULL);
    if (after == AFTER_SHARED_YIELD) {
        shared_mail_take(thread, shared);
        batch_add(&shared->ready, shared->fibre.current);
    }
    shared_fibre_give_up(thread, shared);
}

bool shared_fibre_goes_on(struct thread *thread, struct shared_fibre *shared)
{
    shared_mail_take(thread, shared);
    struct member *member = shared->ready.first;
    if (arch_san_separate() || thread->platform || shared->stack.wipes || !member || guest_of(member)->depth)
        return false;
    shared->fibre.current = batch_take(&shared->ready);
    shared_follow(&thread->stacks, &shared->stack, guest_of(member));
    shared_fibre_release(thread, shared, SHARED_STRAND); /* of the strand that has ended; the next one has its own */
    return true;
}
