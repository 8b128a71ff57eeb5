/*
 * An actor's life: start, stop, restart, and failures. All in the actor's own turn. The protocol block is in actor.h.
 */
#include "life.h"

#include "actor_timers.h"
#include "cell.h"
#include "deadlock.h"
#include "event_stream.h"
#include "mailbox.h"
#include "message.h"
#include "optional.h"
#include "promise.h"
#include "runners.h"

#include "../strand/cxx.h"
#include "../strand/exception.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <stdlib.h>

enum { CALLED_AT_ONCE = 64 };

/* ---- functions of the actor's own -------------------------------------------------------------------------- */

static void *call_own(void *arg)
{
    static const char *const names[] = {[OWN_START] = "an actor's start function",
                                        [OWN_STOP] = "an actor's stop function",
                                        [OWN_DECIDE] = "an actor's decide function"};
    struct own_call *call = arg;
    struct runner *r = call->r;
    struct cell *cell = r->cell;
    const strand_actor_class *class = cell_type(cell)->class;
    strand_scope scope STRAND_CLEANUP_(strand_scope_leave_) = strand_scope_enter_(0, names[call->which], 0);
    r->scope = scope;
    call->begun = true;
    if (call->which == OWN_START)
        class->start(cell_state(cell), cell_args(cell));
    else if (call->which == OWN_STOP)
        class->stop(cell_state(cell));
    else
        call->decided = class->decide(cell_state(cell), call->failure->child, call->failure->why);
    call->returned = true;
    return NULL;
}

strand_exception *life_own(struct own_call *call)
{
    strand_scope outer = call->r->scope;
    strand_exception *e;
    while ((e = cxx_try(call_own, call)) && !call->begun) {
        strand_exception_release(e);
        (void)runners_await_memory();
    }
    call->r->scope = outer;
    return e;
}

/* ---- failing ------------------------------------------------------------------------------------------------ */

static bool is_ending(const struct activation *activation)
{
    return activation->flags & ACTIVATION_STOPPING;
}

static void set_flags(struct thread *thread, struct runner *r, uint32_t set, uint32_t clear)
{
    uint64_t word = cell_lock_living(thread, r->cell);
    r->activation->flags = (r->activation->flags & ~clear) | set;
    cell_unlock(r->cell, word);
}

static void be_undecided(struct thread *thread, struct runner *r)
{
    uint64_t word = cell_lock_living(thread, r->cell);
    r->activation->flags |= ACTIVATION_UNDECIDED; /* [A6] */
    r->activation->decided_above = false;
    cell_unlock(r->cell, word);
}

/* Report a failure to the parent, which decides. Returns false if there is no memory. */
static bool report(struct thread *thread, struct runner *r, strand_exception *e)
{
    struct cell *parent = r->cell->parent;
    struct failure *failure = platform_malloc(thread, sizeof *failure);
    if (!failure)
        return false;
    *failure = (struct failure){
        .child = r->self, .why = strand_exception_keep(e), .unstarted = r->activation->flags & ACTIVATION_UNSTARTED};
    be_undecided(thread, r);
    struct waiting parents = {0};
    uint64_t word = cell_lock_living(thread, parent);
    struct activation *activation = word & CELL_AWAKE ? word_activation(word) : cell_wake(thread, parent, &word);
    struct runner *other = NULL;
    if (activation) {
        failure->next = activation->failed;
        activation->failed = failure;
        uint32_t calls = atomic_load_explicit(&activation->calls, memory_order_relaxed);
        atomic_store_explicit(&activation->calls, calls | CALL_FAILED, memory_order_relaxed);
        other = activation_schedule(thread, activation);
        parents = waiting_of(activation);
    }
    cell_unlock(parent, word);
    if (other)
        runners_go(thread, other, false);
    if (!activation) {
        strand_exception_release(failure->why);
        free(failure);
    } else {
        deadlock_break(thread, r, parents);
    }
    return activation;
}

static bool was_cancelled(const struct runner *r, const strand_exception *e)
{
    uint64_t word = atomic_load_explicit(&r->strand->word, memory_order_relaxed);
    return (word & WORD_CANCELLED) && strand_exception_is(e, &STRAND_INTERRUPTED);
}

/* Set the failure for which the actor is suspended; NULL: it resumes, or restarts. */
static void suspend_for(struct activation *activation, strand_exception *e)
{
    strand_exception *before = activation->why;
    plain_store(&activation->why, e, memory_order_relaxed);
    strand_exception_release(before);
}

static bool is_asked_to_stop(const struct activation *activation)
{
    return is_ending(activation) || (atomic_load_explicit(&activation->calls, memory_order_relaxed) & CALL_STOP);
}

void life_fail(struct runner *r, strand_exception *e)
{
    struct thread *thread = thread_self();
    struct activation *activation = r->activation;
    if (was_cancelled(r, e) && (!activation || is_asked_to_stop(activation))) {
        strand_exception_release(e);
        if (r->in_hand) {
            r->in_hand->next = NULL;
            envelopes_die(thread, r->runners->system, r->self, r->in_hand);
        }
        return;
    }
    if (r->in_hand && is_promise(r->in_hand->message.sender))
        promise_settle(thread, r->in_hand->message.sender, -EPIPE);
    if (r->in_hand)
        envelope_free(thread, r->in_hand);
    if (!activation || is_ending(activation)) {
        event_stream_failure(thread, r, "failed while it stopped", e);
        strand_exception_release(e);
        return;
    }
    set_flags(thread, r, ACTIVATION_SUSPENDED, 0);
    event_stream_failure(thread, r, "has failed", e);
    suspend_for(activation, e);
    if (!r->cell->parent) {
        r->fatal = strand_exception_keep(e);
        set_flags(thread, r, ACTIVATION_NOW, 0);
        (void)cell_call(thread, r->self, CALL_STOP); /* by another runner */
        life_retire(r);
    } else if (!report(thread, r, e)) {
        event_stream_log(r, "is stopped, because there is no memory to tell its supervisor that it failed", e);
        (void)cell_call(thread, r->self, CALL_STOP); /* it is awake: this takes no memory */
    }
}

void life_retire(struct runner *r)
{
    struct thread *thread = thread_self();
    struct runner *next = NULL;
    if (r->over)
        return;
    r->over = true;
    cb_uncount(thread, r->strand); /* another takes its place */
    if (r->activation && r->runners->threads_most)
        atomic_fetch_sub_explicit(&r->runners->running, 1, memory_order_relaxed);
    runners_leave(thread, r);
    if (!r->activation)
        return;
    struct activation *activation = r->activation;
    struct cell *cell = activation->cell; /* the runner may not have started with it yet */
    uint64_t word = cell_lock_living(thread, cell);
    activation->flags &= ~(unsigned)ACTIVATION_SCHEDULED;
    activation->runner = NULL;
    next = activation_schedule(thread, activation);
    cell_unlock(cell, word);
    r->activation = NULL;
    if (next)
        runners_go(thread, next, false);
    else
        runners_feed(r->runners);
}

/* ---- stopping ---------------------------------------------------------------------------------------------- */

static int call_child(struct thread *thread, struct runner *r, strand_actor child, uint32_t calls, int64_t pause)
{
    bool later =
        pause && (calls & CALL_RESTART) && !actor_timers_call(thread, r->runners->system, pause, child, calls, NULL);
    return later ? 0 : cell_call(thread, child, calls);
}

void life_retry(struct thread *thread, struct runner *r, const struct failure *failure, int64_t pause)
{
    if (!pause || actor_timers_call(thread, r->runners->system, pause, failure->child, CALL_RESTART, failure->why))
        (void)cell_call_failed(thread, failure->child, CALL_RESTART, failure->why); /* it is awake */
}

/* Make a request of all children. Without memory it waits for other strands to free some. */
static struct thread *call_each_child(struct thread *thread, struct runner *r, uint32_t calls, int64_t pause)
{
    struct cell *cell = r->cell;
    for (uint32_t called = 0;;) {
        uint64_t word = cell_lock_living(thread, cell);
        strand_actor child = cell_next_child(r->activation);
        cell_unlock(cell, word);
        if (!child.bits[1])
            return thread;
        while (call_child(thread, r, child, calls, pause) == -ENOMEM)
            thread = runners_await_memory();
        if (++called % CALLED_AT_ONCE == 0)
            thread = thread_yield(thread); /* limits how many need the memory of a turn at the same time */
    }
}

void life_call_children(struct runner *r, uint32_t calls, int64_t pause)
{
    struct thread *thread = thread_self();
    uint64_t word = cell_lock_living(thread, r->cell);
    r->activation->cursor = r->cell->children;
    cell_unlock(r->cell, word);
    (void)call_each_child(thread, r, calls, pause);
}

/* No new children can appear by now; stop the existing ones. Returns whether they have to be waited for. */
static bool stop_children(struct thread *thread, struct runner *r)
{
    struct cell *cell = r->cell;
    struct activation *activation = r->activation;
    uint64_t word = cell_lock_living(thread, cell);
    bool waits = (activation->cursor = cell->children);
    cell_unlock(cell, word);
    if (LIKELY(!waits))
        return false;
    thread = call_each_child(thread, r, CALL_STOP | (activation->flags & ACTIVATION_NOW ? CALL_NOW : 0), 0);
    word = cell_lock_living(thread, cell);
    waits = cell->children;
    if (waits)
        activation->flags |= ACTIVATION_WAITS;
    cell_unlock(cell, word);
    return waits;
}

/* The event is composed before the end, and published after it. */
static COLD void end_published(struct runner *r)
{
    struct system *system = r->runners->system;
    strand_published event = event_stream_of(r, STRAND_ACTOR_END);
    cell_end(thread_self(), r);
    event_stream_publish(thread_self(), system, &event); /* it stays as long as this runner has not fallen idle */
}

/* The root has ended. */
static void end_system(struct system *system)
{
    atomic_store_explicit(&system->has_ended, true, memory_order_seq_cst);           /* [Q7] */
    struct cb *joiner = atomic_load_explicit(&system->joiner, memory_order_seq_cst); /* [Q7] */
    if (joiner)
        runtime_of(thread_self())->ops->wake_quiescence_waiter(thread_self(), joiner);
    strand_event_set(&system->over); /* from here on the system may be gone */
}

static void finish_stop(struct runner *r)
{
    struct system *system = r->runners->system;
    struct own_call call = {.r = r, .which = OWN_STOP};
    if (cell_type(r->cell)->class->stop && !(r->activation->flags & ACTIVATION_UNSTARTED)) {
        strand_exception *e = life_own(&call);
        if (e)
            event_stream_failure(thread_self(), r, "failed while it stopped", e);
        strand_exception_release(e);
    }
    bool last = !r->cell->parent;
    if (UNLIKELY(event_stream_wanted(system, STRAND_ACTOR_END)))
        end_published(r);
    else
        cell_end(thread_self(), r);
    if (last)
        end_system(system);
}

void life_stop(struct runner *r)
{
    if (is_ending(r->activation))
        return;
    if (!mailbox_close(thread_self(), r))
        return;
    if (stop_children(thread_self(), r))
        watch_answer_none(thread_self(), r->cell); /* an asker may be one of the children */
    else
        finish_stop(r);
}

/* The actor is stopping already: cancel the turns of its children. */
static void hurry(struct runner *r)
{
    life_call_children(r, CALL_STOP | CALL_NOW, 0);
}

/* ---- starting ---------------------------------------------------------------------------------------------- */

static void start(struct runner *r)
{
    struct own_call call = {.r = r, .which = OWN_START};
    if (!cell_type(r->cell)->class->start)
        return;
    set_flags(thread_self(), r, ACTIVATION_UNSTARTED, 0);
    if (is_asked_to_stop(r->activation)) /* meanwhile */
        return;
    strand_exception *e = life_own(&call);
    if (call.returned) /* there is a state for the stop function, though a strand was left behind */
        set_flags(thread_self(), r, 0, ACTIVATION_UNSTARTED);
    if (e)
        life_fail(r, e);
}

static void reset_optional(struct runner *r)
{
    struct optional *optional = cell_optional(r->cell);
    if (!optional)
        return;
    behaviours_drop(optional);
    r->receive = behaviour_of(r->cell);
    actor_timers_forget(thread_self(), optional);
    (void)mailbox_return_stash(r);
}

static void finish_restart(struct runner *r)
{
    struct own_call call = {.r = r, .which = OWN_STOP};
    if (cell_type(r->cell)->class->stop && !(r->activation->flags & ACTIVATION_UNSTARTED)) {
        strand_exception *e = life_own(&call);
        if (e)
            event_stream_failure(thread_self(), r, "failed while it was restarted", e);
        strand_exception_release(e);
    }
    watch_answer_none(thread_self(), r->cell); /* with the state, questions kept for a later answer are gone */
    cell_reset(r->cell);
    reset_optional(r);
    suspend_for(r->activation, NULL);
    failures_drop(r->activation->escalated);
    r->activation->escalated = NULL;
    set_flags(thread_self(), r, 0, ACTIVATION_RESTARTING | ACTIVATION_WAITS);
    if (event_stream_wanted(r->runners->system, STRAND_ACTOR_RESTART)) {
        strand_published event = event_stream_of(r, STRAND_ACTOR_RESTART);
        event_stream_publish(thread_self(), r->runners->system, &event);
    }
    start(r);
}

/* A cancelled runner leaves requests to another one. */
static bool is_cancelled(const struct runner *r)
{
    return UNLIKELY(atomic_load_explicit(&r->strand->due, memory_order_relaxed));
}

static void call_again(struct runner *r, uint32_t calls)
{
    uint64_t word = cell_lock_living(thread_self(), r->cell);
    uint32_t before = atomic_load_explicit(&r->activation->calls, memory_order_relaxed);
    atomic_store_explicit(&r->activation->calls, before | calls, memory_order_relaxed);
    cell_unlock(r->cell, word);
}

/* Clears the failure and earlier suspension; later requests stay. Askers don't wait until the children have ended: the
 * children may be waiting for one of them. */
static void restart(struct runner *r)
{
    struct activation *activation = r->activation;
    if ((activation->flags & (ACTIVATION_STOPPING | ACTIVATION_RESTARTING)) || !r->cell->parent)
        return;
    uint64_t word = cell_lock_living(thread_self(), r->cell);
    bool due = is_cancelled(r);
    if (!due)
        activation->flags =
            (activation->flags | ACTIVATION_RESTARTING) & ~(unsigned)(ACTIVATION_SUSPENDED | ACTIVATION_UNDECIDED);
    cell_unlock(r->cell, word);
    if (due)
        call_again(r, CALL_RESTART);
    else if (stop_children(thread_self(), r))
        mailbox_let_in(thread_self(), r);
    else
        finish_restart(r);
}

static void be_alone(struct runner *r)
{
    if (!(r->activation->flags & ACTIVATION_WAITS))
        return;
    set_flags(thread_self(), r, 0, ACTIVATION_WAITS);
    if (is_ending(r->activation))
        finish_stop(r);
    else
        finish_restart(r);
}

/* ---- requests ----------------------------------------------------------------------------------------------- */

/* Resume, together with the children by whose failures the actor has failed. A child whose start has failed has no
 * state to resume with. */
static void resume(struct runner *r)
{
    struct activation *activation = r->activation;
    struct failure *escalated = activation->escalated;
    bool failed = activation->why;
    suspend_for(activation, NULL);
    activation->escalated = NULL;
    set_flags(thread_self(), r, 0, ACTIVATION_SUSPENDED | ACTIVATION_UNDECIDED);
    for (struct failure *failure = escalated; failure; failure = failure->next)
        if (failure->unstarted) {
            cell_decided(thread_self(), failure->child, failure->why);
            life_retry(thread_self(), r, failure, BEGINNING_PAUSE);
        } else {
            (void)cell_call_failed(thread_self(), failure->child, CALL_RESUME, failure->why); /* it is awake */
        }
    failures_drop(escalated);
    if (failed && (activation->flags & ACTIVATION_UNSTARTED))
        restart(r);
}

void life_calls(struct runner *r)
{
    struct thread *thread = thread_self();
    struct activation *activation = r->activation;
    uint64_t word = cell_lock_living(thread, r->cell);
    uint32_t calls = atomic_load_explicit(&activation->calls, memory_order_relaxed);
    bool due = is_cancelled(r);
    if (!due) /* otherwise another runner, which is not cancelled, serves them */
        atomic_store_explicit(&activation->calls, 0, memory_order_relaxed);
    if (!due && (calls & CALLS_DECIDED))
        activation->flags &= ~(unsigned)ACTIVATION_UNDECIDED;
    cell_unlock(r->cell, word);
    if (UNLIKELY(due))
        return;
    uint32_t flags = (calls & CALL_NOW ? ACTIVATION_NOW : 0) | (calls & CALL_START ? ACTIVATION_UNSTARTED : 0);
    if (flags)
        set_flags(thread, r, flags, 0);
    if (calls & CALL_FAILED)
        supervise(r);
    if (!r->activation) /* the root has failed, and another runner stops it */
        return;
    if (is_cancelled(r)) { /* meanwhile */
        call_again(r, calls & ~(uint32_t)CALL_FAILED);
        return;
    }
    if (calls & CALL_STOP) {
        if (is_ending(activation) && (calls & CALL_NOW))
            hurry(r);
        else
            life_stop(r);
        if (!r->activation)
            return;
        if (!is_ending(activation)) { /* another runner stops it */
            call_again(r, calls & ~(uint32_t)(CALL_FAILED | CALL_STOP | CALL_NOW));
            return;
        }
    }
    if (calls & CALL_ALONE) {
        be_alone(r);
        if (!r->activation)
            return;
    }
    if (is_ending(activation))
        return;
    if (calls & CALL_RESUME)
        resume(r);
    if (calls & CALL_START)
        start(r);
    if (calls & CALL_RESTART)
        restart(r);
    if (calls & CALL_SUSPEND)
        set_flags(thread_self(), r, ACTIVATION_SUSPENDED, 0);
    if ((calls & CALL_DEADLOCK_CHECK) && r->activation)
        deadlock_check(thread_self(), r);
}
