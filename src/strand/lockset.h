/*
 * The mutexes and read-write locks that a strand holds, and has to unlock before it ends.
 *
 * A lock lies in the user's memory, which may be freed while the lock is still held. The entries therefore lie in
 * memory of the library, and the address in an entry is compared and printed, never dereferenced.
 *
 * Only the strand itself calls these functions, and the code that ends it.
 */
#ifndef STRAND_LOCKSET_H
#define STRAND_LOCKSET_H

#include "../base/index.h"
#include "core.h"

/* Stored in the low bits of a lock's address, which is a multiple of 8. */
enum lock_type { LOCK_MUTEX, LOCK_WRITE, LOCK_READ, LOCK_TYPES };

struct lockset_entry {
    uintptr_t what; /* the address | enum lock_type; 0 means that the entry is free */
    void *site;     /* where it was locked */
};

/* An entry beyond the first LOCKSET_FEW. Lies in the slab of tickets. */
struct lockset_record {
    uint64_t word; /* always 0, so that a stale handle to this memory never matches */
    union {
        struct index_node by_what;   /* in lockset.others */
        struct lockset_record *next; /* in lockset.spare */
    };
    void *site;
};

static inline struct lockset_entry record_entry(const struct lockset_record *record)
{
    return (struct lockset_entry){(uintptr_t)record->by_what.key, record->site};
}

/* Lies in the same slab. Unlocking keeps the record until the strand ends, so a wait on a condition needs no memory to
 * lock its mutex again. */
enum { LOCKSET_FEW = 2 };
struct lockset {
    struct lockset_entry few[LOCKSET_FEW]; /* taken first: few strands hold more; they need no memory and no search */
    struct tree others;
    struct lockset_record *spare;
};
_Static_assert(sizeof(struct lockset) <= TICKET_SIZE && sizeof(struct lockset_record) <= TICKET_SIZE,
               "they lie in a slab");

/* The slow side: allocates a lockset or a record. Throws STRAND_SYSTEM if there is no memory. */
void lockset_reserve_(struct thread *thread, struct cb *me, const char *what);
/* Whether the strand holds no lock, and has room for one. */
OWN_INLINE bool lockset_is_empty(const struct lockset *lockset)
{
    return LIKELY(lockset && !lockset->few[0].what);
}
/* Makes sure that lockset_add has an entry; call it before locking. */
OWN_INLINE void lockset_reserve(struct thread *thread, struct cb *me, const char *what)
{
    if (UNLIKELY(!lockset_is_empty(own_of(me)->lockset)))
        lockset_reserve_(thread, me, what);
}

/* Adds the first lock. */
OWN_INLINE void lockset_begin(struct lockset *lockset, const void *object, enum lock_type type, void *site)
{
    lockset->few[0] = (struct lockset_entry){(uintptr_t)object | type, site};
}

/* The slow side: the strand holds a lock already. */
void lockset_add_(struct lockset *lockset, uintptr_t what, void *site);
/* Adds a lock. lockset_reserve was called before. */
OWN_INLINE void lockset_add(struct cb *me, const void *object, enum lock_type type, void *site)
{
    struct lockset *lockset = own_of(me)->lockset;
    if (LIKELY(!lockset->few[0].what))
        lockset_begin(lockset, object, type, site);
    else
        lockset_add_(lockset, (uintptr_t)object | type, site);
}

/* Returns the entry of a lock, or {0} if there is none. */
struct lockset_entry lockset_find(struct cb *me, const void *object, enum lock_type type);

/* The slow side: the lock is not in the first entry. */
bool lockset_remove_(struct lockset *lockset, uintptr_t what);
/* Removes a lock if it is the first. */
OWN_INLINE bool lockset_end(struct lockset *lockset, const void *object, enum lock_type type)
{
    bool first = LIKELY(lockset && lockset->few[0].what == ((uintptr_t)object | type));
    if (first)
        lockset->few[0].what = 0;
    return first;
}

/* Removes a lock. Returns false if there is no entry of it. */
OWN_INLINE bool lockset_remove(struct cb *me, const void *object, enum lock_type type)
{
    struct lockset *lockset = own_of(me)->lockset;
    return lockset_end(lockset, object, type) || lockset_remove_(lockset, (uintptr_t)object | type);
}

/* Frees the lockset of a strand that has ended, or has returned from a call of `function`. Misuse if it holds a lock.
 */
void lockset_at_end(struct thread *thread, struct cb *c, const char *function, const char *what);

/* Writes for a report that `owner` locked a lock, and where. `where` is the text of print_location_words. */
const char *lockset_made(struct cb *owner, enum lock_type type, const char *where, char *buffer, size_t size);

#endif
