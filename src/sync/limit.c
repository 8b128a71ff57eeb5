/*
 * Limits, and the stack of them that a strand carries in its context (src/strand/local.h). A request of a client takes
 * a permit of each limit, in one total order, that of their serials, so strands can't wait for each other in a circle.
 * Waiting is that of prio.h.
 */
#include "prio.h"

#include "../base/sort.h"
#include "../strand/interrupt.h"
#include "../strand/local.h"
#include "../strand/misuse.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdlib.h>

static const strand_key LIMITS = STRAND_KEY("limits");

void strand_limit_init(strand_limit *limit, size_t permits, const char *name)
{
    struct thread *thread = must_be_strand("strand_limit_init");
    if (!limit || !permits)
        misuse("strand_limit_init", "", "%s", limit ? "the limit is 0: nobody would ever have a permit" : "it is NULL");
    strand_prio_options options = {.permits = permits, .name = name ? name : "limit"};
    prio_make(thread, &limit->inside, &options, __builtin_return_address(0), "strand_limit_init");
}

/* NULL stays NULL: prio_of reports it, by the name of the function that was called. */
static inline strand_prio_semaphore *inside_of(const strand_limit *limit)
{
    return (strand_prio_semaphore *)(uintptr_t)limit;
}
_Static_assert(offsetof(strand_limit, inside) == 0, "a limit is a semaphore");

/* Returns 0, -ENOMEM or -EINTR. */
static int take(struct thread **thread, struct cb *me, struct prio *limit)
{
    return prio_take(thread, me, limit, NULL);
}

__attribute__((noreturn)) static NOINLINE void not_taken(struct thread *thread, struct cb *me, int error)
{
    if (error == -EINTR)
        interrupt_throw(thread, me, 0);
    throw_no_memory(me, "a place in a queue");
}

static inline void acquire(strand_limit *limit, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    struct prio *sem = prio_of(thread, inside_of(limit), function);
    may_block(thread, me, function);
    int error = take(&thread, me, sem);
    if (UNLIKELY(error))
        not_taken(thread, me, error);
}

void strand_limit_acquire(strand_limit *limit)
{
    acquire(limit, "strand_limit_acquire");
}

static void permit_leave(struct strand_guard_ *guard)
{
    struct thread *thread = must_be_strand("STRAND_LIMIT_PERMIT");
    strand_limit *limit = (strand_limit *)(uintptr_t)guard->bits[0];
    prio_give(thread, prio_of(thread, inside_of(limit), "STRAND_LIMIT_PERMIT"), "STRAND_LIMIT_PERMIT");
}

struct strand_guard_ strand_limit_permit_enter_(strand_limit *limit)
{
    acquire(limit, "STRAND_LIMIT_PERMIT");
    return (struct strand_guard_){{(uint64_t)(uintptr_t)limit, 0, 0}, permit_leave};
}

int strand_limit_try_acquire(strand_limit *limit)
{
    struct thread *thread = must_be_strand("strand_limit_try_acquire");
    return prio_try(thread, prio_of(thread, inside_of(limit), "strand_limit_try_acquire"), NULL) ? 0 : -EAGAIN;
}

void strand_limit_release(strand_limit *limit)
{
    struct thread *thread = must_be_strand("strand_limit_release");
    prio_give(thread, prio_of(thread, inside_of(limit), "strand_limit_release"), "strand_limit_release");
}

size_t strand_limit_in_flight(const strand_limit *limit)
{
    return prio_read(inside_of(limit), offsetof(struct prio, in_flight), "strand_limit_in_flight");
}

strand_case strand_on_limit(strand_limit *limit)
{
    if (!limit)
        misuse("strand_on_limit", "", "it is NULL");
    return strand_on_prio_permit(inside_of(limit), NULL);
}

/* ---- all limits of the context --------------------------------------------------------------------------------- */

struct strand_guard_ strand_limit_enter_(strand_limit *limit)
{
    (void)prio_of(must_be_strand("STRAND_LIMIT"), inside_of(limit), "STRAND_LIMIT");
    return strand_local_enter_(&LIMITS, limit);
}

enum { HELD_FEW = 7 };

/* The content of a strand_held: the limits, in the order of their serials. */
struct taken {
    uint64_t count;
    union {
        struct prio *few[HELD_FEW];
        struct prio **many;
    };
};
_Static_assert(sizeof(struct taken) <= sizeof(strand_held), "the user gives it its memory");

static struct prio **limits_in(struct taken *held)
{
    return held->count > HELD_FEW ? held->many : held->few;
}

static size_t count_bindings(const struct cb *me)
{
    size_t count = 0;
    for (struct local *local = own_of(me)->locals; local; local = local->outer)
        count += local->key == &LIMITS;
    return count;
}

static bool is_before(const void *a, const void *b)
{
    return (*(struct prio *const *)a)->serial < (*(struct prio *const *)b)->serial;
}

/* Sort the limits and remove duplicates. Returns how many are left. */
static size_t sort(struct prio **limits, size_t count)
{
    size_t different = 0;
    sort_in_place(limits, count, sizeof *limits, is_before);
    for (size_t i = 0; i < count; i++)
        if (!different || limits[different - 1] != limits[i])
            limits[different++] = limits[i];
    return different;
}

/* Returns 0 or -ENOMEM. */
static int collect(struct thread *thread, struct cb *me, struct taken *held, const char *function)
{
    held->count = 0;
    size_t room = count_bindings(me), count = 0;
    struct prio **many = room > HELD_FEW ? platform_malloc(thread, room * sizeof *many) : NULL;
    if (room > HELD_FEW && !many)
        return -ENOMEM;
    struct prio **limits = many ? many : held->few;
    for (struct local *local = own_of(me)->locals; local; local = local->outer)
        if (local->key == &LIMITS)
            limits[count++] = prio_of(thread, local->value, function);
    count = sort(limits, count);
    held->count = count;
    if (many && count > HELD_FEW) {
        held->many = many;
    } else if (many) {
        memcpy(held->few, many, count * sizeof *many);
        free(many);
    }
    return 0;
}

static void give_back(struct thread *thread, struct taken *held, size_t count)
{
    struct prio **limits = limits_in(held);
    while (count-- > 0)
        prio_give(thread, limits[count], "strand_limits_release");
    if (held->count > HELD_FEW)
        free(held->many);
    held->count = 0;
}

static inline struct taken *taken_of(strand_held *handle, const char *function)
{
    if (UNLIKELY(!handle))
        misuse(function, "", "it is NULL");
    return (struct taken *)(void *)handle;
}

void strand_limits_acquire(strand_held *handle)
{
    struct thread *thread = must_be_strand("strand_limits_acquire");
    struct cb *me = current_of(thread);
    struct taken *held = taken_of(handle, "strand_limits_acquire");
    may_block(thread, me, "strand_limits_acquire");
    if (collect(thread, me, held, "strand_limits_acquire"))
        throw_no_memory(me, "a list of limits");
    for (size_t i = 0; i < held->count; i++) {
        int error = take(&thread, me, limits_in(held)[i]);
        if (UNLIKELY(error)) {
            give_back(thread, held, i);
            not_taken(thread, me, error);
        }
    }
    if (!held->count)
        yield_if_asked(thread);
}

int strand_limits_try_acquire(strand_held *handle)
{
    struct thread *thread = must_be_strand("strand_limits_try_acquire");
    struct cb *me = current_of(thread);
    struct taken *held = taken_of(handle, "strand_limits_try_acquire");
    if (collect(thread, me, held, "strand_limits_try_acquire"))
        throw_no_memory(me, "a list of limits");
    for (size_t i = 0; i < held->count; i++) {
        if (!prio_try(thread, limits_in(held)[i], NULL)) {
            give_back(thread, held, i);
            return -EAGAIN;
        }
    }
    return 0;
}

void strand_limits_release(strand_held *handle)
{
    struct thread *thread = must_be_strand("strand_limits_release");
    struct taken *held = taken_of(handle, "strand_limits_release");
    give_back(thread, held, held->count);
}

strand_held strand_limits_enter_(void)
{
    strand_held held;
    strand_limits_acquire(&held);
    return held;
}
