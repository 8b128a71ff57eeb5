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
    struct index_node by_key; /* in more.timers; until its last message is handled */
    strand_actor actor;
    int64_t when, every; /* every 0: once */
    struct more *idle;   /* for a receive timeout: its actor */
    bool told;           /* it repeats, and its message is under way; a timer that replaces it starts without */
    uint64_t number;     /* unique within the actor */
    const strand_message_type *type;
    size_t size;
    _Alignas(16) char body[];
};

/* ---- the strand of the clock -------------------------------------------------------------------------------- */

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
    bool told = plain_load(&due->told, memory_order_relaxed);
    if (!due->idle) {
        due->when = told ? next_tick(due, now) : due->when;
        return !told;
    }
    int64_t since = plain_load(&due->idle->active, memory_order_relaxed);
    due->when = now + due->every;
    if (since == ACTIVE_NOW || told)
        return false;
    if (now - since >= due->every)
        return true;
    due->when = since + due->every;
    return false;
}

/* Under the lock: take due timers, up to the size of the array. */
static size_t take_due(struct thread *thread, struct clock *clock, int64_t now, struct fired *fired)
{
    size_t count = 0;
    while (count < FIRED_AT_ONCE && heap_least(&clock->heap) <= now) {
        struct due *due = CONTAINER(heap_pop(&clock->heap), struct due, node);
        bool fires = is_true(due, now);
        if (fires) {
            struct envelope *e = due->calls ? NULL : message_new(thread, due->type, due->body, due->size);
            if (e)
                e->message.sender = (strand_actor){{due->by_key.key, due->number | MARK_TIMER}};
            if (e && due->every)
                plain_store(&due->told, true, memory_order_relaxed);
            if (due->calls || e)
                fired[count++] = (struct fired){due->actor, due->calls, due->why, e};
            else
                due->when = now + STRAND_MS; /* no memory: try again soon */
            fires = due->calls || e;
        }
        if (!fires || due->every) {
            due->when = due->idle || !fires ? due->when : next_tick(due, now);
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
        size_t count = take_due(thread, clock, platform_now(thread->sub), fired);
        int64_t next = heap_least(&clock->heap);
        spin_unlock(&clock->lock);
        for (size_t i = 0; i < count; i++)
            fire(&fired[i]);
        if (count) { /* yields, since firing one batch after the other would occupy the thread */
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

/* Start the clock's strand, if it has none yet. */
static int begin(struct thread *thread, struct system *system)
{
    struct clock *clock = &system->clock;
    struct cb *c = NULL;
    int error = 0;
    if (atomic_load_explicit(&clock->begun, memory_order_acquire)) /* [PB1] */
        return 0;
    spin_lock(&clock->lock, thread);
    struct scope *scope = (struct scope *)(uintptr_t)system->scope.bits[0];
    if (!atomic_load_explicit(&clock->begun, memory_order_relaxed))
        error = spawn_own(thread, scope, system->place.pool, -1, false, keep_time, system, &c);
    if (!error)
        atomic_store_explicit(&clock->begun, true, memory_order_release); /* [PB1] */
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
    error = platform_refuses(thread) ? -ENOMEM : heap_add(&clock->heap, due->when, &due->node);
    bool first = !error && heap_least(&clock->heap) == due->when;
    spin_unlock(&clock->lock);
    if (first)
        strand_event_set(&clock->changed);
    return error;
}

static struct due *due_new(struct thread *thread, const strand_message_type *type, const void *body, size_t size)
{
    struct due *due = size < SIZE_MAX / 2 ? platform_calloc(thread, 1, sizeof *due + size) : NULL;
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

/* ---- timers of actors --------------------------------------------------------------------------------------- */

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
    if (first) /* otherwise the old wait would keep the run from being out of work */
        strand_event_set(&clock->changed);
}

static void stop(struct thread *thread, struct more *more, struct due *due)
{
    index_remove(&more->timers, &due->by_key);
    remove_due(thread, &more->kind->system->clock, due);
}

void clock_forget(struct thread *thread, struct more *more)
{
    for (struct index_node *first; (first = index_first(&more->timers));)
        stop(thread, more, CONTAINER(first, struct due, by_key));
    more->timed = false;
}

static struct due *find(const struct more *more, const void *key)
{
    struct index_node *found = index_find(&more->timers, (uintptr_t)key);
    return found ? CONTAINER(found, struct due, by_key) : NULL;
}

bool clock_holds(struct thread *thread, struct more *more, const strand_message *message)
{
    struct due *due = find(more, (const void *)(uintptr_t)message->sender.bits[0]);
    if (!due || (due->number | MARK_TIMER) != message->sender.bits[1])
        return false;
    if (!due->every) {
        index_remove(&more->timers, &due->by_key);
        free(due);
        return true;
    }
    plain_store(&due->told, false, memory_order_relaxed);
    return !due->idle || platform_now(thread->sub) - more->active >= more->patience;
}

/* Start a timer in the place of one of the same key, which stays if this fails. */
static int start(struct thread *thread, struct more *more, struct runner *r, const void *key, struct due *due)
{
    struct due *before = find(more, key);
    due->actor = r->self;
    due->number = ++more->numbers;
    index_add(&more->timers, &due->by_key, (uintptr_t)key); /* behind the other */
    int error = add(thread, r->place->system, due);
    if (error) {
        index_remove(&more->timers, &due->by_key);
        free(due); /* the caller keeps what it owns */
        return error;
    }
    if (before)
        stop(thread, more, before);
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
        MISUSE("strand_actor_timer", made_actor(r, MADE_ROOM),
               "a '%s' owns something: it can't be sent repeatedly. Send a type without a drop function", type->name);
    struct more *more = more_of(thread, r->cell);
    struct due *due = more ? due_new(thread, type, body, size) : NULL;
    if (!due)
        return -ENOMEM;
    due->when = strand_in(after_ns > 0 ? after_ns : 0).ns;
    due->every = every_ns <= 0 ? 0 : every_ns < EVERY_MOST ? every_ns : EVERY_MOST;
    return start(thread, more, r, key, due);
}

void strand_actor_timer_stop(const void *key)
{
    struct thread *thread = must_be_strand("strand_actor_timer_stop");
    struct more *more = cell_more(must_be_actor(thread, "strand_actor_timer_stop")->cell);
    struct due *due = more ? find(more, key) : NULL;
    if (due)
        stop(thread, more, due);
}

int strand_actor_receive_timeout(int64_t ns)
{
    static const char key;
    struct thread *thread = must_be_strand("strand_actor_receive_timeout");
    struct runner *r = must_be_actor(thread, "strand_actor_receive_timeout");
    struct more *more = more_of(thread, r->cell);
    if (!more)
        return -ENOMEM;
    struct due *due = find(more, &key);
    if (ns <= 0) {
        if (due)
            stop(thread, more, due);
        more->timed = false;
        return 0;
    }
    due =
        due_new(thread, &strand_receive_timeout_message, &(strand_receive_timeout){0}, sizeof(strand_receive_timeout));
    if (!due)
        return -ENOMEM;
    due->idle = more;
    due->every = ns < EVERY_MOST ? ns : EVERY_MOST;
    due->when = strand_in(ns).ns;
    plain_store(&more->active, r->in_hand ? ACTIVE_NOW : strand_now().ns, memory_order_relaxed);
    int error = start(thread, more, r, &key, due);
    if (error)
        return error;
    more->timed = true;
    more->patience = ns < EVERY_MOST ? ns : EVERY_MOST;
    return 0;
}
