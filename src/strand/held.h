/*
 * What a strand holds and has to give back before it ends: mutexes, read-write locks. The records are the strand's own,
 * off the memory of what they are about: that is the user's, and may be gone, with the block it was in, while the lock
 * was never given back. So an address in a record is compared and printed, never followed.
 *
 * Who may call: the strand itself; the end of it.
 */
#ifndef STRAND_HELD_H
#define STRAND_HELD_H

#include "../base/index.h"
#include "core.h"

/* In the low bits of the address, which is a multiple of 8. */
enum held_kind { HELD_MUTEX, HELD_WRITE_LOCK, HELD_READ_LOCK, HELD_KINDS };

struct hold {
    uintptr_t what; /* the address | enum held_kind; 0: none */
    void *site;     /* where it was locked */
};

/* One of many. Lies in the slab of tickets. */
struct record {
    uint64_t word; /* always 0: no handle's, whatever was in its memory before */
    union {
        struct index_node by_what; /* in held.others */
        struct record *next;       /* in held.spare */
    };
    void *site;
};

static inline struct hold record_hold(const struct record *record)
{
    return (struct hold){(uintptr_t)record->by_what.key, record->site};
}

/* Lies in the same slab. What was given back can be taken again without memory (a condition's mutex): records stay
 * until the strand ends. */
enum { HELD_FEW = 2 };
struct held {
    struct hold few[HELD_FEW]; /* taken first: few strands hold more, and so these need no memory and no search */
    struct tree others;
    struct record *spare;
};
_Static_assert(sizeof(struct held) <= TICKET_SIZE && sizeof(struct record) <= TICKET_SIZE, "they lie in a slab");

/* Slow: room for one more; throws STRAND_SYSTEM if there is no memory. */
void held_reserve_(struct thread *thread, struct cb *me, const char *what);
/* Before something is taken: room for its record. */
OWN_INLINE void held_reserve(struct thread *thread, struct cb *me, const char *what)
{
    if (UNLIKELY(!own_of(me)->held || own_of(me)->held->few[0].what))
        held_reserve_(thread, me, what);
}

/* Slow: beside another. */
void held_add_(struct held *held, uintptr_t what, void *site);
/* Room was reserved. */
OWN_INLINE void held_add(struct cb *me, const void *object, enum held_kind kind, void *site)
{
    struct held *held = own_of(me)->held;
    if (LIKELY(!held->few[0].what))
        held->few[0] = (struct hold){(uintptr_t)object | kind, site};
    else
        held_add_(held, (uintptr_t)object | kind, site);
}

/* The record of it; {0}: there is none. */
struct hold held_find(struct cb *me, const void *object, enum held_kind kind);

/* Slow: among several. */
bool held_remove_(struct held *held, uintptr_t what);
/* False: there is no record of it. */
OWN_INLINE bool held_remove(struct cb *me, const void *object, enum held_kind kind)
{
    struct held *held = own_of(me)->held;
    if (UNLIKELY(!held || held->few[0].what != ((uintptr_t)object | kind)))
        return held_remove_(held, (uintptr_t)object | kind);
    held->few[0].what = 0;
    return true;
}

/* The strand ends, or has done so much of `function`: misuse if it holds something; else the records go. */
void held_at_end(struct thread *thread, struct cb *c, const char *function, const char *what);

/* For reports: that `owner` locked it, and where, as place_words says it. */
const char *held_made(struct cb *owner, enum held_kind kind, const char *where, char *buffer, size_t size);

#endif
