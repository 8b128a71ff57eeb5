/*
 * Timers of actors. See clock.h.
 */
#include "clock.h"

#include "cell.h"
#include "message.h"
#include "more.h"
#include "place.h"

#include "../../include/strand/select.h"
#include "../strand/misuse.h"
#include "../strand/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const strand_message_type strand_receive_timeout_message = {"strand_receive_timeout", NULL};

enum { FIRED_AT_ONCE = 64 };
#define EVERY_MOST (INT64_MAX / 4) /* some 70 years */

struct due {
    struct heap_node node;
    uint32_t calls;        /* what the actor is told; 0: a message */
    strand_exception *why; /* if it rests still because of that; NULL: whatever */
    struct due *next;      /* of the actor's */
    strand_actor actor;
    const void *key;
    int64_t when, every; /* 0: once */
    struct more *idle;   /* it is a receive timeout: of that actor */
    uint64_t number;     /* then: more.timed */
    const strand_message_type *type;
    size_t size;
    _Alignas(16) char body[];
};

/* ---- the strand that waits --------------------------------------------------------------------------------- */

struct fired {
    strand_actor actor;
    uint32_t calls;
    strand_exception *why; /* held */
    struct envelope *e;
};

/* Under the lock. False: the actor was not idle so long, or has not come to the last one yet. */
static bool is_true(struct due *due, int64_t now)
{
    if (!due->idle)
        return true;
    int64_t since = __atomic_load_n(&due->idle->active, __ATOMIC_RELAXED);
    due->when = now + due->every;
    if (since == ACTIVE_NOW || __atomic_load_n(&due->idle->told, __ATOMIC_RELAXED))
        return false;
    if (now - since >= due->every)
        return true;
    due->when = since + due->every;
    return false;
}

/* Under the lock: what is due, and not more than there is room for. */
static size_t take_due(struct thread *thread, struct clock *clock, int64_t now, struct fired *fired)
{
    size_t count = 0;
    while (count < FIRED_AT_ONCE && heap_least(&clock->heap) <= now) {
        struct due *due = CONTAINER(heap_pop(&clock->heap), struct due, node);
        bool fires = is_true(due, now);
        if (fires) {
            struct envelope *e = due->calls ? NULL : message_new(thread, due->type, due->body, due->size);
            if (e && due->idle) {
                __atomic_store_n(&due->idle->told, true, __ATOMIC_RELAXED);
                e->message.sender = (strand_actor){{NOTICE, due->number}};
            }
            if (due->calls || e)
                fired[count++] = (struct fired){due->actor, due->calls, due->why, e};
            else
                due->when = now + STRAND_MS; /* no memory: again soon */
            fires = due->calls || e;
        }
        if (!fires || due->every) {
            due->when += due->idle || !fires ? 0 : ((now - due->when) / due->every + 1) * due->every;
            (void)heap_add(&clock->heap, due->when, &due->node); /* there is room: it has just left */
        } else if (due->calls) {
            free(due);
        }
    }
    return count;
}

static void fire(const struct fired *fired)
{
    struct thread *thread = thread_self();
    if (fired->e)
        (void)message_insist(thread, fired->actor, fired->e);
    while (!fired->e && cell_call_failed(thread, fired->actor, fired->calls, fired->why) == -ENOMEM)
        thread = place_await_memory();
    strand_exception_release(fired->why);
}

static void *keep_time(void *arg)
{
    struct clock *clock = &((struct system *)arg)->clock;
    struct fired fired[FIRED_AT_ONCE];
    for (;;) {
        struct thread *thread = thread_self();
        spin_lock(&clock->lock, thread);
        size_t count = take_due(thread, clock, driver_now(thread->sub), fired);
        int64_t next = heap_least(&clock->heap);
        spin_unlock(&clock->lock);
        for (size_t i = 0; i < count; i++)
            fire(&fired[i]);
        if (count) { /* one after the other would keep the thread from all else */
            (void)thread_yield(thread_self());
            continue;
        }
        strand_case cases[] = {strand_on_event(&clock->changed), strand_on_time((strand_time){next})};
        (void)strand_select(cases, next == INT64_MAX ? 1 : 2, 0);
        strand_event_clear(&clock->changed);
    }
    return NULL;
}

void clock_open(struct clock *clock)
{
    heap_init(&clock->heap);
}

static void drop_call(struct due *due)
{
    strand_exception_release(due->why);
    free(due);
}

void clock_close(struct clock *clock)
{
    while (clock->heap.count) /* restarts; actors' timers are gone with them */
        drop_call(CONTAINER(heap_pop(&clock->heap), struct due, node));
    heap_close(&clock->heap);
}

/* ---- starting ---------------------------------------------------------------------------------------------- */

/* Its strand, if it has none yet. */
static int begin(struct thread *thread, struct system *system)
{
    struct clock *clock = &system->clock;
    struct cb *c = NULL;
    int error = 0;
    if (atomic_load_explicit(&clock->begun, memory_order_acquire))
        return 0;
    spin_lock(&clock->lock, thread);
    struct scope *scope = (struct scope *)(uintptr_t)system->scope.bits[0];
    if (!atomic_load_explicit(&clock->begun, memory_order_relaxed))
        error = spawn_own(thread, scope, system->place.pool, -1, false, keep_time, system, &c);
    if (!error)
        atomic_store_explicit(&clock->begun, true, memory_order_release);
    spin_unlock(&clock->lock);
    if (!error && c)
        spawn_launch(thread, c);
    return error;
}

static int add(struct thread *thread, struct system *system, struct due *due)
{
    struct clock *clock = &system->clock;
    int error = begin(thread, system);
    if (error)
        return error;
    spin_lock(&clock->lock, thread);
    error = driver_refuses(thread) ? -ENOMEM : heap_add(&clock->heap, due->when, &due->node);
    bool first = !error && heap_least(&clock->heap) == due->when;
    spin_unlock(&clock->lock);
    if (first)
        strand_event_set(&clock->changed);
    return error;
}

static struct due *due_new(struct thread *thread, const strand_message_type *type, const void *body, size_t size)
{
    struct due *due = size < SIZE_MAX / 2 ? driver_calloc(thread, 1, sizeof *due + size) : NULL;
    if (!due)
        return NULL;
    due->node.place = HEAP_NOWHERE;
    due->type = type;
    due->size = size;
    if (size)
        memcpy(due->body, body, size);
    return due;
}

int clock_call(struct thread *thread, struct system *system, int64_t ns, strand_actor actor, uint32_t calls,
               strand_exception *why)
{
    struct due *due = due_new(thread, NULL, NULL, 0);
    if (!due)
        return -ENOMEM;
    due->calls = calls;
    due->why = why ? strand_exception_keep(why) : NULL;
    due->actor = actor;
    due->when = strand_in(ns).ns;
    int error = add(thread, system, due);
    if (error)
        drop_call(due);
    return error;
}

/* ---- actors' own ------------------------------------------------------------------------------------------- */

static void remove_due(struct thread *thread, struct clock *clock, struct due *due)
{
    spin_lock(&clock->lock, thread);
    int64_t before = heap_least(&clock->heap);
    bool sent = due->node.place == HEAP_NOWHERE;
    if (!sent)
        heap_remove(&clock->heap, &due->node);
    bool first = heap_least(&clock->heap) != before;
    spin_unlock(&clock->lock);
    if (UNLIKELY(due->type->drop != NULL) && !sent)
        message_drop(due->type, due->body);
    free(due);
    if (first) /* what is waited for keeps the run from being out of work */
        strand_event_set(&clock->changed);
}

void clock_forget(struct thread *thread, struct more *more)
{
    for (struct due *due; (due = more->timers);) {
        more->timers = due->next;
        remove_due(thread, &more->kind->system->clock, due);
    }
    more->timed = 0;
}

/* The one of that key, from *at on. */
static void stop(struct thread *thread, struct more *more, struct due **at, const void *key)
{
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    struct due *due = *at;
    if (!due)
        return;
    *at = due->next;
    remove_due(thread, &more->kind->system->clock, due);
}

/* Those that have been sent, once, are of no use any more. */
static void sweep(struct thread *thread, struct more *more)
{
    struct clock *clock = &more->kind->system->clock;
    struct due *sent = NULL;
    spin_lock(&clock->lock, thread);
    for (struct due **at = &more->timers, *due; (due = *at);) {
        if (due->node.place != HEAP_NOWHERE) {
            at = &due->next;
            continue;
        }
        *at = due->next;
        due->next = sent;
        sent = due;
    }
    spin_unlock(&clock->lock);
    for (struct due *next; sent; sent = next) {
        next = sent->next;
        free(sent);
    }
}

/* In the place of the one of the same key, which goes on if this can't be had. */
static int start(struct thread *thread, struct more *more, struct runner *r, struct due *due)
{
    due->actor = r->self;
    sweep(thread, more);
    int error = add(thread, r->place->system, due);
    if (error) {
        free(due); /* what it owns is the caller's */
        return error;
    }
    due->next = more->timers;
    more->timers = due;
    stop(thread, more, &due->next, due->key);
    return 0;
}

int strand_actor_timer(const void *key, int64_t ns, int64_t every, const strand_message_type *type, const void *body,
                       size_t size)
{
    struct thread *thread = must_be_strand("strand_actor_timer");
    struct runner *r = must_be_actor(thread, "strand_actor_timer");
    if (!type || (size && !body))
        MISUSE("strand_actor_timer", "", "the %s is NULL", type ? "body" : "type");
    if (every > 0 && type->drop)
        MISUSE("strand_actor_timer", "", "a '%s' owns something: it can't be sent again and again", type->name);
    struct more *more = more_of(thread, r->cell);
    struct due *due = more ? due_new(thread, type, body, size) : NULL;
    if (!due)
        return -ENOMEM;
    due->key = key;
    due->when = strand_in(ns > 0 ? ns : 0).ns;
    due->every = every <= 0 ? 0 : every < EVERY_MOST ? every : EVERY_MOST;
    return start(thread, more, r, due);
}

void strand_actor_timer_stop(const void *key)
{
    struct thread *thread = must_be_strand("strand_actor_timer_stop");
    struct more *more = cell_more(must_be_actor(thread, "strand_actor_timer_stop")->cell);
    if (more)
        stop(thread, more, &more->timers, key);
}

int strand_actor_receive_timeout(int64_t ns)
{
    static const char key;
    struct thread *thread = must_be_strand("strand_actor_receive_timeout");
    struct runner *r = must_be_actor(thread, "strand_actor_receive_timeout");
    struct more *more = more_of(thread, r->cell);
    if (!more)
        return -ENOMEM;
    if (ns <= 0) {
        stop(thread, more, &more->timers, &key);
        more->timed = 0;
        return 0;
    }
    r->odd = true;
    struct due *due =
        due_new(thread, &strand_receive_timeout_message, &(strand_receive_timeout){0}, sizeof(strand_receive_timeout));
    if (!due)
        return -ENOMEM;
    due->key = &key;
    due->idle = more;
    due->every = ns < EVERY_MOST ? ns : EVERY_MOST;
    due->when = strand_in(ns).ns;
    due->number = ++more->timeouts;
    __atomic_store_n(&more->told, false, __ATOMIC_RELAXED);
    __atomic_store_n(&more->active, r->in_hand ? ACTIVE_NOW : strand_now().ns, __ATOMIC_RELAXED);
    int error = start(thread, more, r, due);
    if (error)
        return error;
    more->timed = more->timeouts;
    more->patience = ns < EVERY_MOST ? ns : EVERY_MOST;
    return 0;
}
