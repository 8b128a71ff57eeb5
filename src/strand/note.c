/*
 * The reason of a cancel: the strand that cancelled, and why.
 */
#include "note.h"

#include <stdio.h>
#include <stdlib.h>

struct note *note_new(struct thread *thread, struct cb *who, const char *why)
{
    struct note *note = driver_malloc(thread, sizeof *note);
    if (!note)
        return NULL; /* the cancel goes on without its provenance */
    atomic_init(&note->refs, 1);
    note->who_id = who ? cb_id(who) : 0;
    note->pruned = false;
    snprintf(note->who, sizeof note->who, "%s", who ? cb_name(who) : "the run itself");
    snprintf(note->why, sizeof note->why, "%s", why ? why : "");
    arch_san_release(note);
    return note;
}

struct note *note_keep(struct note *note)
{
    if (note)
        atomic_fetch_add_explicit(&note->refs, 1, memory_order_relaxed);
    return note;
}

void note_release(struct note *note)
{
    if (!note)
        return;
    arch_san_release(note);
    if (atomic_fetch_sub_explicit(&note->refs, 1, memory_order_acq_rel) != 1) /* [RF1] */
        return;
    arch_san_acquire(note);
    free(note);
}

struct note *note_of(struct cb *c)
{
    struct note *note = atomic_load_explicit(&c->note, memory_order_acquire); /* [PB1] */
    if (note)
        arch_san_acquire(note);
    return note;
}
