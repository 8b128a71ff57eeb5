/*
 * The locks that a strand holds: the slow side. See lockset.h.
 */
#include "lockset.h"

#include "exception.h"
#include "misuse.h"
#include "print.h"
#include "throw.h"

#include <stdio.h>

_Static_assert(LOCK_TYPES <= 8, "a type has room below the address");

static const char *const nouns[LOCK_TYPES] = {
    [LOCK_MUTEX] = "mutex", [LOCK_WRITE] = "read-write lock", [LOCK_READ] = "read lock"};

/* Memory of the slab of tickets; throws STRAND_SYSTEM if there is none. */
static void *get(struct thread *thread, struct cb *me, const char *what)
{
    void *object = platform_slab_get(thread, &worker_of(thread)->tickets);
    if (!object)
        throw_no_memory(me, what);
    arch_san_acquire(object);
    return object;
}

static void put(struct thread *thread, void *object)
{
    arch_san_release(object);
    slab_put(&worker_of(thread)->tickets, object);
}

static COLD void start(struct thread *thread, struct cb *me, const char *what)
{
    struct lockset *lockset = get(thread, me, what);
    *lockset = (struct lockset){0};
    own_of(me)->lockset = lockset;
    me->slow_end = true; /* its end checks the lockset */
}

/* Returns the entry of a lock, or a free one for 0. NULL if it is not among the first entries. */
static struct lockset_entry *among_few(struct lockset *lockset, uintptr_t what)
{
    for (int i = 0; i < LOCKSET_FEW; i++)
        if (lockset->few[i].what == what)
            return &lockset->few[i];
    return NULL;
}

NOINLINE void lockset_reserve_(struct thread *thread, struct cb *me, const char *what)
{
    struct lockset *lockset = own_of(me)->lockset;
    if (!lockset) {
        start(thread, me, what);
    } else if (!lockset->spare && !among_few(lockset, 0)) {
        struct lockset_record *record = get(thread, me, what);
        *record = (struct lockset_record){.next = NULL};
        lockset->spare = record;
    }
}

NOINLINE void lockset_add_(struct lockset *lockset, uintptr_t what, void *site)
{
    struct lockset_entry *entry = among_few(lockset, 0);
    struct lockset_record *record = lockset->spare;
    if (entry) {
        *entry = (struct lockset_entry){what, site};
        return;
    }
    ASSERT(record != NULL);
    lockset->spare = record->next;
    record->site = site;
    index_add(&lockset->others, &record->by_what, what);
}

/* Returns the record of a lock, or NULL. */
static struct lockset_record *find(struct lockset *lockset, uintptr_t what)
{
    struct index_node *found = index_find(&lockset->others, what);
    return found ? CONTAINER(found, struct lockset_record, by_what) : NULL;
}

struct lockset_entry lockset_find(struct cb *me, const void *object, enum lock_type type)
{
    uintptr_t what = (uintptr_t)object | type;
    struct lockset *lockset = own_of(me)->lockset;
    const struct lockset_entry *entry = lockset ? among_few(lockset, what) : NULL;
    const struct lockset_record *record = lockset && !entry ? find(lockset, what) : NULL;
    return entry ? *entry : record ? record_entry(record) : (struct lockset_entry){0, NULL};
}

NOINLINE bool lockset_remove_(struct lockset *lockset, uintptr_t what)
{
    struct lockset_entry *entry = lockset ? among_few(lockset, what) : NULL;
    struct lockset_record *record = lockset && !entry ? find(lockset, what) : NULL;
    if (entry)
        entry->what = 0;
    if (!record)
        return entry != NULL;
    index_remove(&lockset->others, &record->by_what);
    record->next = lockset->spare;
    lockset->spare = record;
    return true;
}

/* Returns the number of locks, and copies one of the entries to *any. */
static size_t count(const struct lockset *lockset, struct lockset_entry *any)
{
    size_t count = 0;
    for (const struct index_node *at = index_first(&lockset->others); at; at = index_next(at), count++)
        *any = record_entry(CONTAINER(at, const struct lockset_record, by_what));
    for (int i = 0; i < LOCKSET_FEW; i++)
        if (lockset->few[i].what) {
            *any = lockset->few[i];
            count++;
        }
    return count;
}

static COLD void ends_with(struct cb *c, const char *function, const char *what, size_t held, struct lockset_entry any)
{
    char where[LOCATION_WORDS], made[MADE_WORDS];
    const char *noun = nouns[any.what & 7];
    int length = snprintf(made, sizeof made, "the %s at 0x%zx was locked in %s", noun,
                          (size_t)(any.what & ~(uintptr_t)7), print_location_line(any.site, where, sizeof where));
    if (held > 1 && length > 0 && (size_t)length < sizeof made)
        snprintf(made + length, sizeof made - (size_t)length, ", and it holds %zu more", held - 1);
    const strand_exception *e = cb_exception(c);
    misuse(function, made, "strand '%s' #%llu %s%s%s%s, and still holds a %s: %s", cb_name(c),
           (unsigned long long)cb_id(c), what, e ? " by the exception '" : "", e ? e->text : "", e ? "'" : "", noun,
           e ? "lock it by STRAND_LOCKED or a similar block, which exceptions unlock too" : "unlock it first");
}

void lockset_at_end(struct thread *thread, struct cb *c, const char *function, const char *what)
{
    struct lockset *lockset = own_of(c)->lockset;
    struct lockset_entry any;
    size_t holds = count(lockset, &any);
    if (UNLIKELY(holds))
        ends_with(c, function, what, holds, any);
    for (struct lockset_record *record = lockset->spare, *next; record; record = next) {
        next = record->next;
        put(thread, record);
    }
    put(thread, lockset);
    own_of(c)->lockset = NULL;
}

COLD const char *lockset_made(struct cb *owner, enum lock_type type, const char *where, char *buffer, size_t size)
{
    snprintf(buffer, size, "the %s was locked by strand '%s' #%llu in %s", nouns[type], cb_name(owner),
             (unsigned long long)cb_id(owner), where);
    return buffer;
}
