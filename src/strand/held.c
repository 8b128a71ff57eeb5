/*
 * What a strand holds: the slow side. See held.h.
 */
#include "held.h"

#include "exception.h"
#include "misuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(HELD_KINDS <= 8, "a kind has room below the address");

static const char *const nouns[HELD_KINDS] = {
    [HELD_MUTEX] = "mutex", [HELD_WRITE_LOCK] = "read-write lock", [HELD_READ_LOCK] = "read lock"};

static void give_back(struct thread *thread, struct held *held)
{
    if (LIKELY(held->room == HELD_FEW)) {
        arch_note_release(held);
        slab_put(&worker_of(thread)->tickets, held);
    } else {
        free(held);
    }
}

static COLD void start(struct thread *thread, struct cb *me, const char *what)
{
    struct held *held = driver_slab_get(thread, &worker_of(thread)->tickets);
    if (!held)
        throw_no_memory(me, what);
    arch_note_acquire(held);
    held->one.what = 0;
    held->count = 0;
    held->room = HELD_FEW;
    own_of(me)->held = held;
    me->odd = true; /* its end looks at it */
}

static COLD void grow(struct thread *thread, struct cb *me, const char *what)
{
    struct held *old = own_of(me)->held, *new;
    if (old->room > UINT32_MAX / 2 ||
        !(new = driver_malloc(thread, sizeof *new + (size_t)old->room * 2 * sizeof *new->more)))
        throw_no_memory(me, what);
    memcpy(new, old, sizeof *old + old->count * sizeof *old->more);
    new->room = old->room * 2;
    give_back(thread, old);
    own_of(me)->held = new;
}

NOINLINE void held_reserve_(struct thread *thread, struct cb *me, const char *what)
{
    struct own *own = own_of(me);
    if (!own->held)
        start(thread, me, what);
    else if (own->held->count == own->held->room)
        grow(thread, me, what);
}

NOINLINE void held_add_(struct held *held, uintptr_t what, void *site)
{
    ASSERT(held->count < held->room);
    held->more[held->count++] = (struct hold){what, site};
}

/* Among those beside the first. The newest comes first: it is the likeliest. */
static struct hold *find(struct held *held, uintptr_t what)
{
    for (uint32_t i = held->count; i-- > 0;)
        if (held->more[i].what == what)
            return &held->more[i];
    return NULL;
}

struct hold *held_find(struct cb *me, const void *object, enum held_kind kind)
{
    uintptr_t what = (uintptr_t)object | kind;
    struct held *held = own_of(me)->held;
    if (!held)
        return NULL;
    return held->one.what == what ? &held->one : find(held, what);
}

NOINLINE bool held_remove_(struct held *held, uintptr_t what)
{
    struct hold *hold = held ? find(held, what) : NULL;
    if (!hold)
        return false;
    memmove(hold, hold + 1, (size_t)(&held->more[held->count] - (hold + 1)) * sizeof *hold);
    held->count--;
    return true;
}

static COLD void ends_with(struct cb *c, const char *function, const char *what)
{
    char where[160], made[320];
    uintptr_t offset;
    const struct held *held = own_of(c)->held;
    const struct hold *hold = held->count ? &held->more[held->count - 1] : &held->one;
    uint32_t others = held->count ? held->count - !held->one.what : 0;
    const char *noun = nouns[hold->what & 7];
    (void)arch_symbol(hold->site, where, sizeof where, &offset);
    int length = snprintf(made, sizeof made, "the %s at 0x%zx was locked in %s+0x%zx", noun,
                          (size_t)(hold->what & ~(uintptr_t)7), where, (size_t)offset);
    if (others && length > 0 && (size_t)length < sizeof made)
        snprintf(made + length, sizeof made - (size_t)length, ", and it holds %u more", others);
    misuse(function, made, "strand '%s' #%llu %s, and holds a %s still", cb_name(c), (unsigned long long)cb_id(c), what,
           noun);
}

void held_at_end(struct thread *thread, struct cb *c, const char *function, const char *what)
{
    if (UNLIKELY(own_of(c)->held->one.what || own_of(c)->held->count))
        ends_with(c, function, what);
    give_back(thread, own_of(c)->held);
    own_of(c)->held = NULL;
}

COLD const char *held_made(struct cb *owner, enum held_kind kind, void *site, char *buffer, size_t size)
{
    char where[160];
    uintptr_t offset;
    (void)arch_symbol(site, where, sizeof where, &offset);
    snprintf(buffer, size, "the %s was locked by strand '%s' #%llu in %s+0x%zx", nouns[kind], cb_name(owner),
             (unsigned long long)cb_id(owner), where, (size_t)offset);
    return buffer;
}
