/*
 * Shields, deadlines, no-suspend sections and strand-local values: they hold until the end of a block. Only the strand
 * itself touches the guard on its stack. A deadline, which other threads touch, has a record off the stack.
 */
#include "carry.h"
#include "escape.h"
#include "handle.h"
#include "interrupt.h"
#include "local.h"
#include "misuse.h"
#include "section.h"
#include "throw.h"

#include "../sched/timers.h"

#include <stdlib.h>

void strand_guard_leave_(struct strand_guard_ *guard)
{
    guard->leave(guard);
}

/* ---- shields --------------------------------------------------------------------------------------------- */

static void shield_leave(struct strand_guard_ *guard)
{
    struct cb *me = current_of(must_be_strand("STRAND_SHIELD"));
    struct own *own = own_of(me);
    uint32_t floor = (uint32_t)guard->bits[0];
    own->shield = (uint32_t)guard->bits[1];
    if (own->flight == (struct flight *)(uintptr_t)guard->bits[2])
        own->floor = floor <= own->depth + 1 ? floor : own->depth + 1;
}

struct strand_guard_ strand_shield_enter_(void)
{
    struct cb *me = current_of(must_be_strand("STRAND_SHIELD"));
    struct own *own = own_of(me);
    struct strand_guard_ guard = {{own->floor, own->shield, (uint64_t)(uintptr_t)own->flight}, shield_leave};
    own->floor = own->shield = own->depth + 1;
    return guard;
}

/* ---- deadlines ------------------------------------------------------------------------------------------- */

/* Under the timers' lock. */
struct member *deadline_comes(struct timer *timer)
{
    struct deadline *deadline = CONTAINER(timer, struct deadline, timer);
    return block_raise(&deadline->block, deadline->pool->sub->concurrent);
}

/* Turns the interruption into an error. The object stays the same, so its trace is kept, unless another holder has a
 * reference: then the error is a new object. */
static void become_timed_out(struct cb *me, struct deadline *deadline)
{
    strand_exception *e = own_of(me)->flight->exception, *interruption = e;
    if (atomic_load_explicit(&e->refs, memory_order_acquire) > 1) { /* [RF1] */
        strand_exception *with = exception_new(&STRAND_TIMED_OUT, "%s", "");
        with->cause = e;
        with->progress = e->progress;
        exception_trace(with, SEGMENT_THROWN, me);
        exception_swap(me, with);
        e = with;
    }
    e->kind = &STRAND_TIMED_OUT;
    e->source = NULL;
    exception_text(e, "the deadline of %s:%d passed", deadline->block.file, deadline->block.line);
    exception_name_first(e, interruption);
}

static void deadline_leave(struct strand_guard_ *guard)
{
    struct thread *thread = must_be_strand("STRAND_DEADLINE");
    struct cb *me = current_of(thread);
    struct deadline *deadline = (struct deadline *)(uintptr_t)guard->bits[0];
    timer_stop(thread, deadline->pool, &deadline->timer);
    if (block_is_source(&deadline->block, block_flight(thread, me, &deadline->block)))
        become_timed_out(me, deadline);
    block_leave(thread, me, &deadline->block);
    block_free(thread, &deadline->block);
}

struct strand_guard_ strand_deadline_enter_(strand_time when, const char *file, int line)
{
    struct thread *thread = must_be_strand("STRAND_DEADLINE");
    struct cb *me = current_of(thread);
    union any_block *any = block_new(thread);
    if (UNLIKELY(!any))
        throw_no_memory(me, "a deadline");
    struct deadline *deadline = &any->deadline;
    block_enter(thread, me, &deadline->block, BLOCK_DEADLINE, file, line);
    timer_init(&deadline->timer, TIMER_DEADLINE, 0);
    deadline->pool = thread->pool;
    deadline->when = when.ns;
    if (!when.ns) { /* {0} means no deadline */
        deadline->when = INT64_MAX;
    } else if (when.ns <= platform_now(thread->sub)) {
        block_raise(&deadline->block, thread->concurrent);
    } else if (when.ns != INT64_MAX && timer_start(thread, thread->pool, &deadline->timer, when.ns) < 0) {
        block_leave(thread, me, &deadline->block);
        block_free(thread, &deadline->block);
        throw_no_memory(me, "a deadline");
    }
    return (struct strand_guard_){{(uint64_t)(uintptr_t)deadline, 0, 0}, deadline_leave};
}

/* The deadline that `guard` stands for, which must be the caller's. */
static struct deadline *must_be_deadline(struct cb *me, struct strand_guard_ *guard)
{
    must_be_there(guard, "deadline", "strand_deadline_move");
    if (guard->leave != deadline_leave)
        MISUSE("strand_deadline_move", "", "this is not a deadline that STRAND_DEADLINE_AS has opened");
    struct deadline *deadline = (struct deadline *)(uintptr_t)guard->bits[0];
    if (plain_load(&deadline->block.owner, memory_order_relaxed) != me)
        MISUSE("strand_deadline_move", "", "the deadline is of another strand");
    return deadline;
}

bool strand_deadline_move(struct strand_guard_ *guard, strand_time when)
{
    struct thread *thread = must_be_strand("strand_deadline_move");
    struct cb *me = current_of(thread);
    struct deadline *deadline = must_be_deadline(me, guard);
    if (atomic_load_explicit(&deadline->block.due, memory_order_seq_cst)) { /* [I1] */
        timer_stop(thread, deadline->pool, &deadline->timer); /* returns after the timer has finished firing */
        return false;
    }
    int64_t at = when.ns ? when.ns : INT64_MAX;
    bool started = deadline->when != INT64_MAX, passed = at <= platform_now(thread->sub);
    bool starts = at != INT64_MAX && !passed;
    if (started && !(starts ? timer_move(thread, deadline->pool, &deadline->timer, at)
                            : timer_stop(thread, deadline->pool, &deadline->timer)))
        return false; /* the timer has fired */
    if (!started && starts && timer_start(thread, deadline->pool, &deadline->timer, at) < 0)
        throw_no_memory(me, "a deadline");
    deadline->when = at;
    if (passed)
        block_raise(&deadline->block, thread->concurrent);
    return true;
}

/* ---- no-suspend sections --------------------------------------------------------------------------------- */

NO_ANALYSIS void strand_section_leave_(struct strand_guard_ *guard)
{
    section_leave(current_of(must_be_strand("STRAND_NO_SUSPEND")), guard);
}

NO_ANALYSIS struct strand_guard_ strand_section_enter_(const char *file, int line)
{
    return section_enter(current_of(must_be_strand("STRAND_NO_SUSPEND")), file, line, strand_section_leave_);
}

/* ---- strand-local values --------------------------------------------------------------------------------- */

struct local *locals_keep(struct local *local)
{
    if (local)
        atomic_fetch_add_explicit(&local->refs, 1, memory_order_relaxed);
    return local;
}

void locals_release_slow_(struct local *local)
{
    while (local && atomic_fetch_sub_explicit(&local->refs, 1, memory_order_acq_rel) == 1) { /* [RF1] */
        struct local *outer = local->outer;
        free(local);
        local = outer;
    }
}

static void local_leave(struct strand_guard_ *guard)
{
    struct cb *me = current_of(must_be_strand("STRAND_LOCAL"));
    struct local *local = (struct local *)(uintptr_t)guard->bits[0];
    ASSERT(own_of(me)->locals == local);
    own_of(me)->locals = locals_keep(local->outer);
    locals_release(local);
}

struct strand_guard_ strand_local_enter_(const strand_key *key, void *value)
{
    struct thread *thread = must_be_strand("STRAND_LOCAL");
    must_not_escape(thread, key, "the key", "STRAND_LOCAL"); /* children inherit both */
    must_not_escape(thread, value, "the value", "STRAND_LOCAL");
    struct cb *me = current_of(thread);
    struct local *local = platform_malloc(thread, sizeof *local);
    if (!local)
        throw_no_memory(me, "a strand-local value");
    *local = (struct local){own_of(me)->locals, key, value, 1}; /* takes over the reference to the outer values */
    own_of(me)->locals = local;
    return (struct strand_guard_){{(uint64_t)(uintptr_t)local, 0, 0}, local_leave};
}

void *strand_local(const strand_key *key)
{
    struct cb *me = current_of(must_be_strand("strand_local"));
    for (struct local *local = own_of(me)->locals; local; local = local->outer)
        if (local->key == key)
            return local->value;
    return NULL;
}
