/*
 * Timers of actors. See actor_timers.h.
 */
#include "actor_timers.h"

#include "cell.h"
#include "message.h"
#include "optional.h"
#include "runners.h"

#include "../../include/strand/select.h"
#include "../strand/misuse.h"
#include "../strand/spawn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const strand_message_type strand_receive_timeout_message = STRAND_MESSAGE_TYPE_("strand_receive_timeout", NULL);

enum { FIRED_AT_ONCE = 64 };
#define EVERY_MOST (INT64_MAX / 4) /* some 70 years */

struct due {
    struct heap_node node;
    uint32_t calls;           /* requests to the actor; 0: it gets a message */
    strand_exception *why;    /* only if it is still suspended by that; NULL: in any case */
    struct index_node by_key; /* in optional.timers; until its last message is handled */
    strand_actor actor;
    int64_t when, every;   /* every 0: once */
    struct optional *idle; /* for a receive timeout: its actor */
    bool under_way;        /* it repeats, and its message is under way; a timer that replaces it starts without */
    uint64_t number;       /* unique within the actor */
    const strand_message_type *type;
    size_t size;
    _Alignas(16) char body[];
};

/* ---- the strand that waits -------------------------------------------------------------------------------- */

struct fired {
    strand_actor actor;
    uint32_t calls;
    strand_exception *why; /* a reference */
    struct envelope *e;
};

/* The first tick after now. */
static int64_t next_tick(const struct due *due, int64_t now)
{
    return due->when + ((now - due->when) / due->every + 1) * due->every;
}

/* Under the lock. Returns false if the last message is still under way, or the actor was not idle for so long. */
static bool is_true(struct due *due, int64_t now)
{
    bool under_way = plain_load(&due->under_way, memory_order_relaxed);
    if (!due->idle) {
        due->when = under_way ? next_tick(due, now) : due->when;
        return !under_way;
    }
    int64_t since = plain_load(&due->idle->handled_at, memory_order_relaxed);
    due->when = now + due->every;
    if (since == HANDLING_NOW || under_way)
        return false;
    if (now - since >= due->every)
        return true;
    due->when = since + due->every;
    return false;
}

/* Under the lock: take due timers, up to the size of the array. */
static size_t take_due(struct thread *thread, struct actor_timers *timers, int64_t now, struct fired *fired)
{
    size_t count = 0;
    while (count < FIRED_AT_ONCE && heap_least(&timers->heap) <= now) {
        struct due *due = CONTAINER(heap_pop(&timers->heap), struct due, node);
        bool fires = is_true(due, now);
        if (fires) {
            struct envelope *e = due->calls ? NULL : message_new(thread, due->type, due->body, due->size);
            if (e)
                e->message.sender = (strand_actor){{due->by_key.key, due->number | MARK_TIMER}};
            if (e && due->every)
                plain_store(&due->under_way, true, memory_order_relaxed);
            if (due->calls || e)
                fired[count++] = (struct fired){due->actor, due->calls, due->why, e};
            else
                due->when = now + STRAND_MS; /* no memory: try again soon */
            fires = due->calls || e;
        }
        if (!fires || due->every) {
            due->when = due->idle || !fires ? due->when : next_tick(due, now);
            (void)heap_add(&timers->heap, due->when, &due->node); /* there is room: it has just left */
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
        thread = runners_await_memory();
    strand_exception_release(fired->why);
}

static void *keep_time(void *arg)
{
    struct actor_timers *timers = &((struct system *)arg)->timers;
    struct fired fired[FIRED_AT_ONCE];
    for (;;) {
        struct thread *thread = thread_self();
        spin_lock(&timers->lock, thread);
        size_t count = take_due(thread, timers, platform_now(thread->sub), fired);
        int64_t next = heap_least(&timers->heap);
        spin_unlock(&timers->lock);
        for (size_t i = 0; i < count; i++)
            fire(&fired[i]);
        if (count) { /* yields, since firing one batch after the other would occupy the thread */
            (void)thread_yield(thread_self());
            continue;
        }
        strand_case cases[] = {strand_on_event(&timers->changed), strand_on_time((strand_time){next})};
        (void)strand_select(cases, next == INT64_MAX ? 1 : 2, 0);
        strand_event_clear(&timers->changed);
    }
    return NULL;
}

void actor_timers_open(struct actor_timers *timers)
{
    heap_init(&timers->heap);
}

static void drop_call(struct due *due)
{
    strand_exception_release(due->why);
    free(due);
}

void actor_timers_close(struct actor_timers *timers)
{
    while (timers->heap.count) /* restarts; actors' timers are gone with them */
        drop_call(CONTAINER(heap_pop(&timers->heap), struct due, node));
    heap_close(&timers->heap);
}

/* ---- starting ---------------------------------------------------------------------------------------------- */

/* Start the strand that waits, if there is none yet. */
static int begin(struct thread *thread, struct system *system)
{
    struct actor_timers *timers = &system->timers;
    struct cb *c = NULL;
    int error = 0;
    if (atomic_load_explicit(&timers->begun, memory_order_acquire)) /* [PB1] */
        return 0;
    spin_lock(&timers->lock, thread);
    struct scope *scope = (struct scope *)(uintptr_t)system->scope.bits[0];
    if (!atomic_load_explicit(&timers->begun, memory_order_relaxed))
        error = spawn_own(thread, scope, system->default_runners.pool, -1, false, keep_time, system, &c);
    if (!error)
        atomic_store_explicit(&timers->begun, true, memory_order_release); /* [PB1] */
    spin_unlock(&timers->lock);
    if (!error && c)
        spawn_launch(thread, c);
    return error;
}

static int add(struct thread *thread, struct system *system, struct due *due)
{
    struct actor_timers *timers = &system->timers;
    int error = begin(thread, system);
    if (error)
        return error;
    spin_lock(&timers->lock, thread);
    error = platform_refuses(thread) ? -ENOMEM : heap_add(&timers->heap, due->when, &due->node);
    bool first = !error && heap_least(&timers->heap) == due->when;
    spin_unlock(&timers->lock);
    if (first)
        strand_event_set(&timers->changed);
    return error;
}

static struct due *due_new(struct thread *thread, const strand_message_type *type, const void *body, size_t size)
{
    struct due *due = size < SIZE_MAX / 2 ? platform_calloc(thread, 1, sizeof *due + size) : NULL;
    if (!due)
        return NULL;
    due->node.index = HEAP_NOWHERE;
    due->type = type;
    due->size = size;
    if (size)
        memcpy(due->body, body, size);
    return due;
}

int actor_timers_call(struct thread *thread, struct system *system, int64_t ns, strand_actor actor, uint32_t calls,
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

/* ---- timers of actors --------------------------------------------------------------------------------------- */

static void remove_due(struct thread *thread, struct actor_timers *timers, struct due *due)
{
    spin_lock(&timers->lock, thread);
    int64_t before = heap_least(&timers->heap);
    bool sent = due->node.index == HEAP_NOWHERE;
    if (!sent)
        heap_remove(&timers->heap, &due->node);
    bool first = heap_least(&timers->heap) != before;
    spin_unlock(&timers->lock);
    if (UNLIKELY(due->type->drop != NULL) && !sent)
        message_drop(due->type, due->body);
    free(due);
    if (first) /* otherwise the old wait would keep the run from being out of work */
        strand_event_set(&timers->changed);
}

static void stop(struct thread *thread, struct optional *optional, struct due *due)
{
    index_remove(&optional->timers, &due->by_key);
    remove_due(thread, &optional->type->system->timers, due);
}

void actor_timers_forget(struct thread *thread, struct optional *optional)
{
    for (struct index_node *first; (first = index_first(&optional->timers));)
        stop(thread, optional, CONTAINER(first, struct due, by_key));
    optional->timed = false;
}

static struct due *find(const struct optional *optional, const void *key)
{
    struct index_node *found = index_find(&optional->timers, (uintptr_t)key);
    return found ? CONTAINER(found, struct due, by_key) : NULL;
}

bool actor_timers_holds(struct thread *thread, struct optional *optional, const strand_message *message)
{
    struct due *due = find(optional, (const void *)(uintptr_t)message->sender.bits[0]);
    if (!due || (due->number | MARK_TIMER) != message->sender.bits[1])
        return false;
    if (!due->every) {
        index_remove(&optional->timers, &due->by_key);
        free(due);
        return true;
    }
    plain_store(&due->under_way, false, memory_order_relaxed);
    return !due->idle || platform_now(thread->sub) - optional->handled_at >= optional->patience;
}

/* Start a timer in the place of one of the same key, which stays if this fails. */
static int start(struct thread *thread, struct optional *optional, struct runner *r, const void *key, struct due *due)
{
    struct due *before = find(optional, key);
    due->actor = r->self;
    due->number = ++optional->numbers;
    index_add(&optional->timers, &due->by_key, (uintptr_t)key); /* behind the other */
    int error = add(thread, r->runners->system, due);
    if (error) {
        index_remove(&optional->timers, &due->by_key);
        free(due); /* the caller keeps what it owns */
        return error;
    }
    if (before)
        stop(thread, optional, before);
    r->slow = true; /* its messages are checked before they are handled */
    return 0;
}

int strand_actor_timer(const void *key, int64_t after_ns, int64_t every_ns, const strand_message_type *type,
                       const void *body, size_t size)
{
    struct thread *thread = must_be_strand("strand_actor_timer");
    struct runner *r = must_be_actor(thread, "strand_actor_timer");
    if (!type || (size && !body))
        MISUSE("strand_actor_timer", "", "the %s is NULL", type ? "body" : "type");
    if (every_ns > 0 && type->drop)
        MISUSE("strand_actor_timer", caller_made_actor(r, MADE_ROOM),
               "a '%s' owns something: it can't be sent repeatedly. Send a type without a drop function", type->name);
    struct optional *optional = optional_of(thread, r->cell);
    struct due *due = optional ? due_new(thread, type, body, size) : NULL;
    if (!due)
        return -ENOMEM;
    due->when = strand_in(after_ns > 0 ? after_ns : 0).ns;
    due->every = every_ns <= 0 ? 0 : every_ns < EVERY_MOST ? every_ns : EVERY_MOST;
    return start(thread, optional, r, key, due);
}

void strand_actor_timer_stop(const void *key)
{
    struct thread *thread = must_be_strand("strand_actor_timer_stop");
    struct optional *optional = cell_optional(must_be_actor(thread, "strand_actor_timer_stop")->cell);
    struct due *due = optional ? find(optional, key) : NULL;
    if (due)
        stop(thread, optional, due);
}

int strand_actor_receive_timeout(int64_t ns)
{
    static const char key;
    struct thread *thread = must_be_strand("strand_actor_receive_timeout");
    struct runner *r = must_be_actor(thread, "strand_actor_receive_timeout");
    struct optional *optional = optional_of(thread, r->cell);
    if (!optional)
        return -ENOMEM;
    struct due *due = find(optional, &key);
    if (ns <= 0) {
        if (due)
            stop(thread, optional, due);
        optional->timed = false;
        return 0;
    }
    due =
        due_new(thread, &strand_receive_timeout_message, &(strand_receive_timeout){0}, sizeof(strand_receive_timeout));
    if (!due)
        return -ENOMEM;
    due->idle = optional;
    due->every = ns < EVERY_MOST ? ns : EVERY_MOST;
    due->when = strand_in(ns).ns;
    plain_store(&optional->handled_at, r->in_hand ? HANDLING_NOW : strand_now().ns, memory_order_relaxed);
    int error = start(thread, optional, r, &key, due);
    if (error)
        return error;
    optional->timed = true;
    optional->patience = ns < EVERY_MOST ? ns : EVERY_MOST;
    return 0;
}
