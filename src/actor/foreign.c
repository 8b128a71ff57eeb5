/*
 * Messages from outside of the run: from plain threads, and from strands of other runs. Each travels through the posts
 * of the run's first pool to one of its threads, which sends it as a strand would. No sender waits for room.
 */
#include "foreign.h"

#include "event_stream.h"
#include "message.h"
#include "promise.h"

#include "../strand/outside_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct parcel {
    struct post post;
    struct runtime *runtime;
    strand_actor to, sender;
    const strand_message_type *type;
    void *given; /* NULL: it was copied */
    size_t size;
    _Alignas(16) char body[];
};

/* Drop a message whose receiver is gone. On any thread. */
static void lose(struct parcel *parcel)
{
    if (parcel->type->drop)
        message_drop(parcel->type, parcel->given ? parcel->given : parcel->body);
    free(parcel);
}

/* Drop a message for which there is no memory. */
static void lose_here(struct thread *thread, struct parcel *parcel)
{
    promise_lacks(thread, parcel->to);
    event_stream_letter_to(thread, parcel->to, &(strand_message){.type = parcel->type, .sender = parcel->sender});
    lose(parcel);
}

/* On a thread of the pool, or on any thread if the run has ended. */
static struct member *arrive(struct post *post)
{
    struct parcel *parcel = CONTAINER(post, struct parcel, post);
    struct thread *thread = thread_self();
    arch_san_acquire(post);
    bool here = thread && runtime_of(thread) == parcel->runtime;
    struct envelope *e = here ? message_new(thread, parcel->type, parcel->body, parcel->size) : NULL;
    if (!e) {
        here ? lose_here(thread, parcel) : lose(parcel);
        return NULL;
    }
    if (parcel->given)
        e->message.body = parcel->given;
    e->message.sender = parcel->sender;
    e->next = NULL;
    if (message_deliver(thread, parcel->to, e))
        envelopes_die(thread, NULL, parcel->to, e);
    free(parcel);
    return NULL;
}

static struct runtime *runtime_of_run(struct arch_run *run)
{
    return CONTAINER(run, struct runtime, listed);
}

/* Whether a slab, of cells or of promises, belongs to that run. */
static bool has_slab(struct arch_run *run, const void *slab)
{
    const struct actor_run *record = (const struct actor_run *)runtime_of_run(run);
    return (uintptr_t)slab - (uintptr_t)record->cells < sizeof record->cells || slab == &record->promises;
}

/* The run of an actor, or of a promise; it does not end before arch_run_unuse. NULL: it has ended. */
static struct arch_run *use_run_of(strand_actor actor)
{
    const struct cell *cell = ref_cell(actor);
    if (!(actor.bits[1] & (MARK_ACTOR | MARK_PROMISE)) || !arch_in_handles(cell))
        return NULL;
    const struct slab *slab = plain_load(&cell_chunk(cell)->slab, memory_order_relaxed);
    return slab ? arch_run_use_that(has_slab, slab) : NULL;
}

/* Whether it is of another run, which has not ended; and in *there, whether the actor has not ended. */
static bool find_outside(const struct thread *thread, strand_actor actor, bool *there)
{
    bool ours = ref_is_ours(thread, actor) || (is_promise(actor) && promise_is_ours(thread, actor));
    struct arch_run *run = ours ? NULL : use_run_of(actor);
    *there = run && (actor.bits[1] & MARK_ACTOR) && cell_ref(ref_cell(actor)).bits[1] == actor.bits[1];
    if (run)
        arch_run_unuse(run);
    return run;
}

bool foreign_is(const struct thread *thread, strand_actor actor)
{
    bool there;
    return find_outside(thread, actor, &there);
}

bool foreign_is_there(const struct thread *thread, strand_actor actor)
{
    bool there;
    (void)find_outside(thread, actor, &there);
    return there;
}

int foreign_send(strand_actor to, strand_actor sender, const strand_message_type *type, const void *body, void *given,
                 size_t size)
{
    struct parcel *parcel = size < SIZE_MAX / 2 ? malloc(sizeof *parcel + size) : NULL;
    if (!parcel)
        return -ENOMEM;
    *parcel =
        (struct parcel){.post.run = arrive, .to = to, .sender = sender, .type = type, .given = given, .size = size};
    if (size)
        memcpy(parcel->body, body, size);
    struct arch_run *run = use_run_of(to);
    if (!run || subprocess_is_left(&runtime_of_run(run)->sub)) {
        if (run)
            arch_run_unuse(run);
        lose(parcel);
        return -EPIPE;
    }
    parcel->runtime = runtime_of_run(run);
    outside_thread_acts(parcel->runtime);
    arch_san_release(&parcel->post);
    pool_post(&runtime_of_run(run)->sub.pool, &parcel->post);
    arch_run_unuse(run);
    return 0;
}
