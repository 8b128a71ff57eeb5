/*
 * Promises, and asking. The protocol block is in promise.h.
 */
#include "promise.h"

#include "cell.h"
#include "deadlock.h"
#include "foreign.h"
#include "message.h"
#include "optional.h"

#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <string.h>

static struct promise *promise_of(strand_actor ref)
{
    return (struct promise *)(uintptr_t)ref.bits[0];
}

static uint64_t serial_of(strand_actor ref)
{
    return ref.bits[1] ^ MARK_PROMISE;
}

/* Promises of other runs can't be answered from here. */
bool promise_is_ours(const struct thread *thread, strand_actor ref)
{
    return arch_in_handles(promise_of(ref)) && slab_has(&actor_run_of(thread)->promises, promise_of(ref));
}

static bool lock(struct thread *thread, struct promise *promise, uint64_t serial)
{
    uint64_t word = atomic_load_explicit(&promise->word, memory_order_acquire); /* [PM3] */
    for (;;) {
        if (word_serial(word) != serial)
            return false;
        if (word & PROMISE_LOCK) {
            platform_await(thread);
            word = atomic_load_explicit(&promise->word, memory_order_acquire);                  /* [PM3] */
        } else if (swap_word(&promise->word, &word, word | PROMISE_LOCK, thread->concurrent)) { /* [PM3] */
            arch_san_acquire(promise);
            return true;
        }
    }
}

/* From now on the reference works. */
static void publish(struct promise *promise, uint64_t serial)
{
    arch_san_release(promise);
    atomic_store_explicit(&promise->word, serial << WORD_SERIAL, memory_order_release); /* [PM3] */
}

static void unlock(struct promise *promise, uint64_t serial)
{
    ASSERT(atomic_load_explicit(&promise->word, memory_order_relaxed) ==
           (serial << WORD_SERIAL | PROMISE_LOCK)); /* [PM1] */
    publish(promise, serial);
}

/* The promise has no word yet, so no reference leads to it. */
static struct promise *make(struct thread *thread, strand_actor *ref)
{
    struct promise *promise = platform_slab_get(thread, &actor_thread_of(thread)->promises);
    if (!promise)
        return NULL;
    arch_san_acquire(promise);
    memset((char *)promise + sizeof promise->word, 0, sizeof *promise - sizeof promise->word);
    *ref = (strand_actor){{(uint64_t)(uintptr_t)promise, next_serial(worker_of(thread)) | MARK_PROMISE}};
    promise->watch.who = *ref;
    return promise;
}

/* Free a promise that is locked, or unpublished. No reference leads to it any more; this releases the lock [PM1]. */
static void give_back(struct thread *thread, struct promise *promise, uint64_t serial)
{
    atomic_store_explicit(&promise->word, word_freed(serial << WORD_SERIAL), memory_order_release); /* [PM1] */
    if (promise->watched.bits[1])
        watch_unlink(thread, promise->watched, &promise->watch);
    arch_san_release(promise);
    slab_put(&actor_thread_of(thread)->promises, promise);
}

struct promise *promise_open(struct thread *thread, strand_actor *ref)
{
    struct promise *promise = make(thread, ref);
    if (!promise)
        return NULL;
    publish(promise, serial_of(*ref));
    struct runner *r = runner_self(thread);
    if (r)
        atomic_store_explicit(&r->asks, ref->bits[1], memory_order_relaxed); /* [A6] */
    return promise;
}

int promise_part(struct thread *thread, strand_actor whole, strand_actor *ref)
{
    struct promise *promise = promise_of(whole), *part = make(thread, ref);
    if (!part)
        return -ENOMEM;
    bool there = lock(thread, promise, serial_of(whole));
    if (there && !promise->settled) { /* [PM2] */
        promise->open++;
        part->is_part = true;
        part->whole = whole;
        part->next = promise->parts;
        promise->parts = part;
        publish(part, serial_of(*ref));
        unlock(promise, serial_of(whole));
        return 0;
    }
    if (there)
        unlock(promise, serial_of(whole));
    give_back(thread, part, serial_of(*ref));
    return -EPIPE;
}

/* Whether the answer fits the asker's buffer; a part leaves that to its whole. */
static bool is_wanted(const struct promise *promise, const struct envelope *e)
{
    const strand_message *answer = &e->message;
    if (promise->is_part)
        return true;
    bool given = answer->body != e + 1;
    if (answer->type != promise->wanted || given != (promise->wanted_size == SIZE_MAX))
        return false;
    return given || answer->size == promise->wanted_size;
}

/* Settle by an answer, or by a code, like promise_answer. A part passes it on, and is not touched any more. */
static int settle(struct thread *thread, strand_actor ref, struct envelope *answer, int error)
{
    struct promise *promise = promise_of(ref);
    struct member *woken = NULL;
    if (!promise_is_ours(thread, ref) || !lock(thread, promise, serial_of(ref)))
        return -EPIPE;
    if (answer && !is_wanted(promise, answer)) {
        answer = NULL;
        error = -EBADMSG;
    }
    struct wait_node *waiter = promise->waiter;
    bool mine = !promise->settled;
    if (mine && !answer && promise->open) { /* there may be another answer */
        promise->open--;
        promise->error = (int16_t)(error ? error : promise->error);
        unlock(promise, serial_of(ref));
        return error == -EBADMSG ? error : 0;
    }
    if (!answer && !error)
        error = promise->error ? promise->error : -EPIPE;
    if (mine && waiter) {
        promise->waiter = NULL;
        woken = &waiter->waiter->member;
        mine = wait_claim(waiter, thread->concurrent); /* otherwise it is interrupted, and about to close */
    }
    bool is_part = mine && promise->is_part;
    strand_actor whole = is_part ? promise->whole : ref;
    if (mine) {
        promise->settled = true;
        promise->answer = is_part ? NULL : answer;
        promise->error = (int16_t)error;
    }
    unlock(promise, serial_of(ref));
    if (is_part)
        return settle(thread, whole, answer, error);
    if (mine && woken && UNLIKELY(!thread->current)) /* a post, from outside of the run */
        pool_deliver(thread, woken);
    else if (mine && woken)
        thread_ready(thread, woken);
    if (!mine)
        return -EPIPE;
    return error == -EBADMSG ? -EBADMSG : 0;
}

void promise_settle(struct thread *thread, strand_actor ref, int error)
{
    (void)settle(thread, ref, NULL, error);
}

int promise_answer(struct thread *thread, strand_actor ref, struct envelope *answer)
{
    return settle(thread, ref, answer, 0);
}

int promise_wait(struct thread *thread, struct promise *promise, unsigned why, strand_actor whom)
{
    struct cb *me = current_of(thread);
    uint64_t serial = serial_of(promise->watch.who);
    promise->whom = whom;
    for (;;) {
        uint32_t floor = own_of(me)->floor;
        (void)lock(thread, promise, serial);
        bool settled = promise->settled;
        if (!settled) {
            wait_because(thread, me, why, (uintptr_t)promise);
            me->wait.node.epoch = wait_arm(thread, me, floor);
            promise->waiter = &me->wait.node;
        }
        unlock(promise, serial);
        if (settled)
            return promise->error;
        bool stay = atomic_load_explicit(&me->due, memory_order_seq_cst) > floor; /* [W4] */
        if (UNLIKELY(stay) && wait_retract(thread, me)) {
            me->blocked = BLOCKED_NOT;
        } else {
            thread = thread_park(thread);
            if (LIKELY(wait_over(me) == WAIT_WON))
                continue;
        }
        (void)lock(thread, promise, serial);
        promise->waiter = NULL; /* [W2] */
        unlock(promise, serial);
        if (interrupted_here(me))
            interrupt_throw(thread, me, 0);
    }
}

/* Free parts with their own parts, and so on [PM2]: those of one come before the others. */
static COLD void give_back_parts(struct thread *thread, struct promise *first)
{
    while (first) {
        struct promise *part = first;
        uint64_t serial = serial_of(part->watch.who);
        (void)lock(thread, part, serial);
        struct promise *below = part->parts;
        first = part->next;
        while (below) {
            struct promise *next = below->next;
            below->next = first;
            first = below;
            below = next;
        }
        give_back(thread, part, serial);
    }
}

void promise_close(struct promise **held)
{
    struct promise *promise = *held;
    struct thread *thread = thread_self();
    struct runner *r = runner_self(thread);
    if (!promise)
        return;
    if (r)
        atomic_store_explicit(&r->asks, 0, memory_order_relaxed);
    uint64_t serial = serial_of(promise->watch.who);
    (void)lock(thread, promise, serial);
    struct promise *parts = promise->parts;
    struct envelope *answer = promise->answer;
    give_back(thread, promise, serial);
    if (UNLIKELY(parts))
        give_back_parts(thread, parts);
    if (!answer)
        return;
    if (is_promise(answer->message.sender)) /* it was a question, which can't be answered now */
        promise_settle(thread, answer->message.sender, -EPIPE);
    envelope_free(thread, answer);
}

void promise_lacks(struct thread *thread, strand_actor ref)
{
    struct promise *promise = promise_of(ref);
    if (!is_promise(ref) || !promise_is_ours(thread, ref) || !lock(thread, promise, serial_of(ref)))
        return;
    bool handled = promise->watched.bits[1];
    promise->lost = true;
    unlock(promise, serial_of(ref));
    if (handled)
        promise_settle(thread, ref, -ENOMEM);
}

/* The promise can't be closed while it is locked. */
void promise_depends(struct thread *thread, struct runner *r, strand_actor ref)
{
    struct promise *promise = promise_of(ref);
    int error = 0;
    if (!promise_is_ours(thread, ref) || !lock(thread, promise, serial_of(ref)))
        return;
    if (!promise->settled && promise->lost) {
        error = -ENOMEM;
    } else if (!promise->settled && !promise->watched.bits[1]) {
        promise->watch.asks = true;
        error = watch_link(thread, r->self, &promise->watch);
        if (!error)
            promise->watched = r->self;
    }
    unlock(promise, serial_of(ref));
    if (error)
        promise_settle(thread, ref, error);
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

/* Copy the answer, which has the wanted type, to the asker, which owns it from now on. */
static void take(struct promise *promise, void *into)
{
    strand_message *answer = &promise->answer->message;
    if (promise->wanted_size == SIZE_MAX)
        memcpy(into, &answer->body, sizeof answer->body);
    else
        memcpy(into, answer->body, promise->wanted_size);
    answer->body = NULL;
}

/* Misuse if the caller has the turn of that actor. Returns 0, or -EREMOTE. */
static int must_be_another(struct thread *thread, strand_actor whom, const char *function)
{
    const struct runner *r = runner_self(thread);
    if (UNLIKELY(r && r->activation && r->self.bits[1] == whom.bits[1]))
        MISUSE(function, caller_made_actor(r, MADE_ROOM),
               "an actor would wait for itself: let it send itself a message, which it handles after this one");
    return UNLIKELY(foreign_is(thread, whom)) ? -EREMOTE : 0;
}

/* Asking consumes what the question owns, whatever happens: an asker that is interrupted or gets -ENOMEM could not know
 * whether it was sent. */
struct question {
    const strand_message_type *type;
    const void *body;
    bool sent; /* or dropped as a dead letter */
};

static void drop_unsent(const struct question *question)
{
    if (UNLIKELY(!question->sent) && question->type->drop)
        message_drop(question->type, (void *)(uintptr_t)question->body);
}

int strand_ask(strand_actor to, const strand_message_type *type, const void *body, size_t size,
               const strand_message_type *into_type, void *into, size_t into_size)
{
    struct thread *thread = must_be_strand("strand_ask");
    struct cb *me = current_of(thread);
    strand_actor ref;
    must_be_there(into, "buffer for the answer", "strand_ask");
    must_be_there(into_type, "type of the answer", "strand_ask");
    message_must_be_whole(type, body, size, "strand_ask");
    struct question question __attribute__((cleanup(drop_unsent))) = {type, body, false};
    may_block(thread, me, "strand_ask");
    int error = must_be_another(thread, to, "strand_ask");
    if (error)
        return yield_with_result(error);
    struct promise *promise __attribute__((cleanup(promise_close))) = promise_open(thread, &ref);
    if (!promise)
        return -ENOMEM;
    promise->wanted = into_type;
    promise->wanted_size = into_size;
    error = strand_tell_as(to, ref, type, body, size);
    question.sent = !error || message_is_dead(error);
    if (!error)
        error = promise_wait(thread_self(), promise, BLOCKED_ASK, to);
    if (error)
        return yield_with_result(error);
    take(promise, into);
    return 0;
}

/* ---- waiting for an end ------------------------------------------------------------------------------------ */

static int await_end(struct thread *thread, strand_actor actor)
{
    strand_actor ref;
    int error = must_be_another(thread, actor, "strand_actor_wait");
    if (error)
        return error;
    struct promise *promise __attribute__((cleanup(promise_close))) = promise_open(thread, &ref);
    if (!promise)
        return -ENOMEM;
    error = watch_link(thread, actor, &promise->watch);
    if (error)
        return error == -ESRCH ? 0 : error;
    promise->watched = actor;
    if (deadlock_is(thread, actor))
        return -EDEADLK;
    error = promise_wait(thread, promise, BLOCKED_ACTOR_END, actor);
    return error == -EPIPE ? 0 : error; /* it has ended */
}

int strand_actor_wait(strand_actor actor)
{
    struct thread *thread = must_be_strand("strand_actor_wait");
    may_block(thread, current_of(thread), "strand_actor_wait");
    return yield_with_result(await_end(thread, actor));
}
