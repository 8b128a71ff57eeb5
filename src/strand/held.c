/*
 * What a strand holds: the slow side. See held.h.
 */
#include "held.h"

#include "exception.h"
#include "misuse.h"
#include "print.h"
#include "throw.h"

#include <stdio.h>

_Static_assert(HELD_KINDS <= 8, "a kind has room below the address");

static const char *const nouns[HELD_KINDS] = {
    [HELD_MUTEX] = "mutex", [HELD_WRITE_LOCK] = "read-write lock", [HELD_READ_LOCK] = "read lock"};

/* Memory of the slab of tickets; throws STRAND_SYSTEM if there is none. */
static void *get(struct thread *thread, struct cb *me, const char *what)
{
    void *object = driver_slab_get(thread, &worker_of(thread)->tickets);
    if (!object)
        throw_no_memory(me, what);
    arch_note_acquire(object);
    return object;
}

static void put(struct thread *thread, void *object)
{
    arch_note_release(object);
    slab_put(&worker_of(thread)->tickets, object);
}

static COLD void start(struct thread *thread, struct cb *me, const char *what)
{
    struct held *held = get(thread, me, what);
    *held = (struct held){0};
    own_of(me)->held = held;
    me->odd = true; /* its end looks at it */
}

/* Among the few: a record of that; NULL: there is none. Of 0: a free one. */
static struct hold *among_few(struct held *held, uintptr_t what)
{
    for (int i = 0; i < HELD_FEW; i++)
        if (held->few[i].what == what)
            return &held->few[i];
    return NULL;
}

NOINLINE void held_reserve_(struct thread *thread, struct cb *me, const char *what)
{
    struct held *held = own_of(me)->held;
    if (!held) {
        start(thread, me, what);
    } else if (!held->spare && !among_few(held, 0)) {
        struct record *record = get(thread, me, what);
        *record = (struct record){.next = NULL};
        held->spare = record;
    }
}

NOINLINE void held_add_(struct held *held, uintptr_t what, void *site)
{
    struct hold *hold = among_few(held, 0);
    struct record *record = held->spare;
    if (hold) {
        *hold = (struct hold){what, site};
        return;
    }
    ASSERT(record != NULL);
    held->spare = record->next;
    record->site = site;
    index_add(&held->others, &record->by_what, what);
}

/* Among the others. */
static struct record *find(struct held *held, uintptr_t what)
{
    struct index_node *found = index_find(&held->others, what);
    return found ? CONTAINER(found, struct record, by_what) : NULL;
}

struct hold held_find(struct cb *me, const void *object, enum held_kind kind)
{
    uintptr_t what = (uintptr_t)object | kind;
    struct held *held = own_of(me)->held;
    const struct hold *hold = held ? among_few(held, what) : NULL;
    const struct record *record = held && !hold ? find(held, what) : NULL;
    return hold ? *hold : record ? record_hold(record) : (struct hold){0, NULL};
}

NOINLINE bool held_remove_(struct held *held, uintptr_t what)
{
    struct hold *hold = held ? among_few(held, what) : NULL;
    struct record *record = held && !hold ? find(held, what) : NULL;
    if (hold)
        hold->what = 0;
    if (!record)
        return hold != NULL;
    index_remove(&held->others, &record->by_what);
    record->next = held->spare;
    held->spare = record;
    return true;
}

/* How many are held, and one of them. */
static size_t count(const struct held *held, struct hold *any)
{
    size_t count = 0;
    for (const struct index_node *at = index_first(&held->others); at; at = index_next(at), count++)
        *any = record_hold(CONTAINER(at, const struct record, by_what));
    for (int i = 0; i < HELD_FEW; i++)
        if (held->few[i].what) {
            *any = held->few[i];
            count++;
        }
    return count;
}

static COLD void ends_with(struct cb *c, const char *function, const char *what, size_t held, struct hold any)
{
    char where[PLACE_WORDS], made[MADE_WORDS];
    const char *noun = nouns[any.what & 7];
    int length = snprintf(made, sizeof made, "the %s at 0x%zx was locked in %s", noun,
                          (size_t)(any.what & ~(uintptr_t)7), place_found(any.site, where, sizeof where));
    if (held > 1 && length > 0 && (size_t)length < sizeof made)
        snprintf(made + length, sizeof made - (size_t)length, ", and it holds %zu more", held - 1);
    const strand_exception *e = cb_exception(c);
    misuse(function, made, "strand '%s' #%llu %s%s%s%s, and still holds a %s: %s", cb_name(c),
           (unsigned long long)cb_id(c), what, e ? " by the exception '" : "", e ? e->text : "", e ? "'" : "", noun,
           e ? "lock it by STRAND_LOCKED or a similar block, which exceptions unlock too" : "unlock it first");
}

void held_at_end(struct thread *thread, struct cb *c, const char *function, const char *what)
{
    struct held *held = own_of(c)->held;
    struct hold any;
    size_t holds = count(held, &any);
    if (UNLIKELY(holds))
        ends_with(c, function, what, holds, any);
    for (struct record *record = held->spare, *next; record; record = next) {
        next = record->next;
        put(thread, record);
    }
    put(thread, held);
    own_of(c)->held = NULL;
}

COLD const char *held_made(struct cb *owner, enum held_kind kind, const char *where, char *buffer, size_t size)
{
    snprintf(buffer, size, "the %s was locked by strand '%s' #%llu in %s", nouns[kind], cb_name(owner),
             (unsigned long long)cb_id(owner), where);
    return buffer;
}
