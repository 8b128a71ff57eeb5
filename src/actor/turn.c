/*
 * Turns: a runner's strand handles the messages of one actor after the other. The protocol block is in actor.h.
 */
#include "actor_timers.h"
#include "cell.h"
#include "event_stream.h"
#include "life.h"
#include "mailbox.h"
#include "message.h"
#include "optional.h"
#include "promise.h"
#include "runners.h"

#include "../sched/switch.h"
#include "../strand/cxx.h"
#include "../strand/interrupt.h"
#include "../strand/lockset.h"
#include "../strand/wait.h"

#include <string.h>

/* ---- idle --------------------------------------------------------------------------------------------------- */

static NOINLINE void set_label(struct runner *r, const struct cell_type *type, const struct optional *optional)
{
    arch_san_acquire(type); /* the spawner found it in a list, without a lock */
    const char *name = optional && *optional->name ? optional->name : type->label;
    size_t length = strnlen(name, sizeof r->label.name - 1);
    memcpy(r->label.name, name, length);
    r->label.name[length] = '\0';
    r->labelled = optional ? NULL : type;
}

static inline void take_up(struct runner *r)
{
    struct activation *activation = r->activation;
    r->cell = activation->cell;
    const struct cell_type *type = cell_type(r->cell);
    const struct optional *optional = cell_optional(r->cell);
    r->state = cell_state(r->cell);
    r->notice = NULL;
    r->slow = type->slow || optional;
    r->receive = LIKELY(!optional) ? type->receive : behaviour_of(r->cell);
    r->self = ref_of(r->cell, atomic_load_explicit(&activation->serial, memory_order_relaxed));
    if (UNLIKELY(r->labelled != type) || UNLIKELY(optional != NULL))
        set_label(r, type, optional);
    plain_store(&r->strand->extra, &r->label, memory_order_release); /* may race with cb_name in a dump [PB1] */
}

/* Park until there is an activation. Returns false if the runner has to end. */
static bool await_activation(struct runner *r)
{
    struct thread *thread = thread_self();
    struct cb *me = r->strand;
    bool slow = atomic_load_explicit(&r->runners->slow_idle, memory_order_relaxed);
    struct activation *activation = UNLIKELY(slow) ? runners_starved(thread, r->runners) : NULL;
    if (UNLIKELY(activation != NULL)) {
        runners_assign(r, activation);
        return true;
    }
    if (UNLIKELY(slow) && r->runners->threads_most)
        atomic_fetch_sub_explicit(&r->runners->running, 1, memory_order_relaxed);
    wait_because(thread, me, BLOCKED_ACTOR, 0);
    plain_store(&me->extra, NULL, memory_order_relaxed);
    arch_san_release(r->runners->system->name); /* pairs with a thread that falls idle and finds that all are */
    if (UNLIKELY(!runners_put(thread, r))) {
        me->blocked = BLOCKED_NOT;
        runners_leave(thread, r);
        return false;
    }
    if (UNLIKELY(runners_wakes_itself(thread, r))) {
        if (r->runners->threads_most)
            atomic_fetch_add_explicit(&r->runners->running, 1, memory_order_relaxed);
        me->blocked = BLOCKED_NOT;
        return true;
    }
    thread = switch_park(thread);
    plain_store(&me->member.fibre->home, thread, memory_order_relaxed); /* runners_go ran before this one had left its
                                                                         * thread */
    arch_san_acquire(&me->member);
    me->blocked = BLOCKED_NOT;
    runners_relay(thread, r->runners);
    return r->activation;
}

/* ---- a turn ------------------------------------------------------------------------------------------------ */

/* Messages with priorities are left for levels_next. */
static COLD void take_slow(struct activation *activation)
{
    const strand_actor_class *class = cell_type(activation->cell)->class;
    if (!class->priority)
        activation->batch = class->mailbox_full == STRAND_MAILBOX_FULL_OLDEST ? mailbox_take_first(activation)
                                                                              : mailbox_take(activation);
}

/* Get the next messages. Returns false if the turn is over. */
static bool refill(struct thread *thread, struct runner *r)
{
    struct activation *activation = r->activation;
    struct cell *cell = r->cell;
    uint64_t word = cell_lock_living(thread, cell);
    if (UNLIKELY(atomic_load_explicit(&activation->calls, memory_order_relaxed))) {
        cell_unlock(cell, word);
        return true;
    }
    bool mute = activation->flags & (ACTIVATION_SUSPENDED | ACTIVATION_WAITS);
    struct batch senders;
    batch_init(&senders);
    if (!activation->batch)
        mailbox_make_room(thread, activation, &senders);
    if (LIKELY(!mute) && activation->first) {
        if (LIKELY(!r->slow))
            activation->batch = mailbox_take(activation);
        else
            take_slow(activation);
        cell_unlock(cell, word);
        batch_deliver(thread, &senders);
        return true;
    }
    activation->flags &= ~(unsigned)ACTIVATION_SCHEDULED;
    activation->runner = NULL;
    bool dormant = !mute && !activation->batch;
    cell_unlock(cell, dormant ? ref_serial(r->self) << WORD_SERIAL : word); /* [A2] */
    if (LIKELY(dormant))
        activation_retire(thread, activation);
    batch_deliver(thread, &senders);
    r->activation = NULL;
    return false;
}

static inline bool is_mute(const struct activation *activation)
{
    return UNLIKELY(activation->flags & (ACTIVATION_SUSPENDED | ACTIVATION_WAITS));
}

/* Whether the message has left nothing that must be cleaned up before the next. */
static inline bool is_clean(struct runner *r, struct cb *me)
{
    const struct scope *scope = (const struct scope *)(uintptr_t)r->scope.bits[0];
    return LIKELY(!scope->count && !scope->belongings && !scope->cancel_reason && !scope->failures &&
                  !own_of(me)->lockset);
}

/* A message of the library's own: returns false if it was handled here. */
static COLD bool is_to_be_handled(struct runner *r, struct envelope *e)
{
    if (e->message.type != &message_last && watch_expects(r->cell, &e->message)) {
        r->notice = e;
        return true;
    }
    bool last = e->message.type == &message_last;
    envelope_free(thread_self(), e);
    if (last)
        life_stop(r);
    return false;
}

static COLD struct envelope *next_slow(struct thread *thread, struct runner *r)
{
    return cell_type(r->cell)->class->priority ? levels_next(thread, r) : r->activation->batch;
}

/* Record its last activity, for its receive timeout. */
static COLD void mark_handled(const struct runner *r, int64_t when)
{
    struct optional *optional = cell_optional(r->cell);
    if (optional && optional->timed)
        plain_store(&optional->handled_at, when, memory_order_relaxed);
}

/* A timer's message counts only if the timer was not cancelled or replaced while the message was under way; a receive
 * timeout, only if no other message has come before it. Returns false if it is dropped. */
static COLD bool begins_slow(struct thread *thread, struct runner *r, struct envelope *e)
{
    struct optional *optional = cell_optional(r->cell);
    strand_actor *sender = &e->message.sender;
    if (optional && (sender->bits[1] & MARK_TIMER)) {
        bool holds = actor_timers_holds(thread, optional, &e->message);
        *sender = (strand_actor){{0, 0}}; /* from now on an ordinary message */
        if (!holds) {
            envelope_free(thread, e);
            return false;
        }
    }
    mark_handled(r, HANDLING_NOW);
    return true;
}

static COLD void handled_slow(struct thread *thread, struct runner *r)
{
    if (cell_type(r->cell)->class->log_receives && r->in_hand)
        event_stream_receive_(thread, r, &r->in_hand->message);
    mark_handled(r, platform_now(thread->sub));
    r->unhandled = false;
}

/* The message was handled. */
static inline void handled(struct thread *thread, struct runner *r)
{
    struct envelope *e = r->in_hand;
    if (UNLIKELY(r->slow))
        handled_slow(thread, r);
    if (UNLIKELY(!e))
        return;
    if (UNLIKELY(is_promise(e->message.sender)))
        promise_depends(thread, r, e->message.sender);
    r->in_hand = NULL;
    envelope_free(thread, e);
}

/* When the turn ends, if the dispatcher has a time limit for turns. */
static inline uint64_t end_of_turn(const struct thread *thread, const struct runner *r)
{
    int64_t ns = r->runners->quantum;
    return LIKELY(!ns) ? 0 : platform_ticks(thread) + (uint64_t)ns * platform_ticks_per_ms(thread) / STRAND_MS;
}

static inline bool is_over(const struct thread *thread, const struct runner *r, uint64_t ends)
{
    return UNLIKELY(r->slow) && r->runners->quantum && platform_ticks(thread) >= ends;
}

/* Handle messages until the turn is over, or the scope has to be left. Returns whether it has. */
static bool serve(struct runner *r)
{
    struct cb *me = r->strand;
    struct thread *thread = thread_self();
    uint64_t ends = end_of_turn(thread, r);
    take_up(r);
    while (r->activation) {
        struct activation *activation = r->activation;
        if (UNLIKELY(atomic_load_explicit(&me->due, memory_order_relaxed)))
            return true;
        if (UNLIKELY(atomic_load_explicit(&activation->calls, memory_order_relaxed))) {
            life_calls(r);
        } else {
            struct envelope *e = is_mute(activation) ? NULL
                                 : UNLIKELY(r->slow) ? next_slow(thread, r)
                                                     : activation->batch;
            if (!e) {
                if (!refill(thread, r))
                    break;
                continue;
            }
            activation->batch = e->next;
            __builtin_prefetch(e->next, 1); /* it may be in the cache of its sender's processor */
            e->message.size &= ~ENVELOPE_EXTRA;
            if ((LIKELY(!message_is_special(e)) || is_to_be_handled(r, e)) &&
                (LIKELY(!r->slow) || begins_slow(thread_self(), r, e))) {
                r->in_hand = e;
                r->receive(r->state, &e->message);
                if (UNLIKELY(!is_clean(r, me)))
                    return true;
                handled(thread_self(), r);
            }
        }
        thread = thread_self();
        thread_tick(thread);
        if (UNLIKELY(!--r->left) || UNLIKELY(thread_is_asked_for(thread)) || is_over(thread, r, ends)) {
            thread = thread_yield(thread);
            r->left = r->runners->most;
            ends = end_of_turn(thread, r);
        }
    }
    r->left = 0; /* the turn is over */
    return false;
}

static void *serve_all(void *arg)
{
    struct runner *r = arg;
    strand_scope scope STRAND_CLEANUP_(strand_scope_leave_) = strand_scope_enter_(0, "an actor's message", 0);
    r->scope = scope;
    while (!r->over) {
        if (!r->activation && !await_activation(r)) {
            r->over = true;
            break;
        }
        if (!r->left)
            r->left = r->runners->most;
        if (serve(r))
            break;
    }
    return NULL;
}

void *turns_serve(struct runner *r)
{
    while (!r->over) {
        r->scope = (strand_scope){{0, 0}};
        strand_exception *e = cxx_try(serve_all, r);
        struct thread *thread = thread_self();
        if (!e && r->activation) {
            handled(thread, r);
        } else if (e && r->scope.bits[0]) { /* the message may have been forwarded, or stashed */
            life_fail(r, e);
            if (r->activation)
                mark_handled(r, platform_now(thread_self()->sub));
        } else if (e) { /* there was no memory for its scope: try again after others have run */
            strand_exception_release(e);
            (void)thread_yield(thread);
        }
        r->in_hand = NULL;
        r->unhandled = false;
        thread = thread_self();
        if (UNLIKELY(own_of(r->strand)->lockset != NULL))
            lockset_at_end(thread, r->strand, "strand_actor_class.receive", "has handled a message");
        thread_tick(thread);
        if (UNLIKELY(thread_is_asked_for(thread)))
            (void)thread_yield(thread);
        if (UNLIKELY(atomic_load_explicit(&r->strand->due, memory_order_relaxed)))
            life_retire(r);
    }
    if (UNLIKELY(r->fatal != NULL))
        strand_rethrow(r->fatal);
    return NULL;
}
