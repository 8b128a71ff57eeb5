/*
 * Full mailboxes, and senders that wait. The protocol block is in actor.h.
 */
#include "mailbox.h"

#include "deadlock.h"
#include "message.h"
#include "optional.h"
#include "promise.h"

#include "../strand/hook.h"
#include "../strand/interrupt.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdio.h>

/* Under the lock: end a sender's wait. Returns its message, which the caller owns, or NULL if the sender has gone. */
static struct envelope *claim(struct thread *thread, struct wait_node *node, int result, struct batch *senders)
{
    struct envelope *e = node->value;
    struct cb *waiter = node->waiter;
    list_remove(&node->link);
    bool claimed = wait_claim(node, thread->concurrent);
    if (claimed) {
        node->result = result;
        batch_add(senders, &waiter->member);
    }
    atomic_store_explicit(&node->linked, 0, memory_order_release); /* [W2] */
    return claimed ? e : NULL;
}

static struct envelope *claim_first(struct thread *thread, struct activation *activation, int result,
                                    struct batch *senders)
{
    return claim(thread, CONTAINER(activation->waiters.next, struct wait_node, link), result, senders);
}

void mailbox_admit_(struct thread *thread, struct activation *activation, struct batch *senders)
{
    while (activation->queued < cell_type(activation->cell)->most && !list_empty(&activation->waiters)) {
        struct envelope *e = claim_first(thread, activation, 0, senders);
        if (e)
            mailbox_put(activation, e);
    }
}

void mailbox_refuse_from(struct thread *thread, struct activation *activation, const struct cell *from,
                         struct batch *senders)
{
    for (struct link *link = activation->waiters.next, *next; link != &activation->waiters; link = next) {
        const struct cb *waiter = CONTAINER(link, struct wait_node, link)->waiter;
        next = link->next;
        if (waiter->fn == runner_main && ((struct runner *)waiter->arg)->cell == from)
            (void)claim(thread, CONTAINER(link, struct wait_node, link), -EDEADLK, senders);
    }
}

void mailbox_refuse(struct thread *thread, struct activation *activation, struct batch *senders)
{
    while (!list_empty(&activation->waiters))
        (void)claim_first(thread, activation, -EPIPE, senders); /* the sender keeps its message */
}

/* After an interruption, or another end of the wait: make sure that nothing refers to the node. */
static void leave(struct thread *thread, strand_actor to, struct wait_node *node)
{
    uint64_t word;
    if (cell_lock(thread, ref_cell(to), ref_serial(to), &word)) {
        if (atomic_load_explicit(&node->linked, memory_order_relaxed)) {
            list_remove(&node->link);
            atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
        }
        cell_unlock(ref_cell(to), word);
    }
    while (atomic_load_explicit(&node->linked, memory_order_acquire)) /* the actor is just ending [W2] */
        platform_await(thread);
}

static void queue_no_more(struct runner **r)
{
    if (*r)
        atomic_store_explicit(&(*r)->queues, false, memory_order_relaxed);
}

static int await_room(struct thread *thread, strand_actor to, uint64_t word, struct envelope *e)
{
    struct cb *me = current_of(thread);
    struct wait_node *node = &me->wait.node;
    uint32_t floor = own_of(me)->floor;
    node->value = e;
    node->result = 0;
    wait_because(thread, me, BLOCKED_MAILBOX, (uintptr_t)ref_cell(to));
    node->epoch = wait_arm(thread, me, floor);
    list_push_back(&word_activation(word)->waiters, &node->link);
    atomic_store_explicit(&node->linked, 1, memory_order_relaxed);
    struct runner *r __attribute__((cleanup(queue_no_more))) = runner_self(thread);
    if (r)
        atomic_store_explicit(&r->queues, true, memory_order_relaxed); /* [A6] */
    bool undecided = awaits_decision(word_activation(word));
    cell_unlock(ref_cell(to), word);
    if (UNLIKELY(undecided) && deadlock_is(thread, to) && wait_retract(thread, me)) {
        me->blocked = BLOCKED_NOT;
        leave(thread, to, node); /* [W2] */
        return -EDEADLK;
    }
    bool stay = atomic_load_explicit(&me->due, memory_order_seq_cst) > floor; /* [W4] */
    if (UNLIKELY(stay) && wait_retract(thread, me)) {
        me->blocked = BLOCKED_NOT;
    } else {
        thread = thread_park(thread);
        if (LIKELY(wait_over(me) == WAIT_WON))
            return node->result;
    }
    leave(thread_self(), to, node); /* [W2] */
    return -EINTR;
}

/* Remove the oldest waiting message that takes room. No message is skipped more than once. */
static struct envelope *push_out(struct activation *activation)
{
    struct envelope **at = activation->counted, *oldest;
    while (*at && ((*at)->message.size & ENVELOPE_EXTRA))
        at = &(*at)->next;
    activation->counted = at;
    if (!(oldest = *at))
        return NULL;
    *at = oldest->next;
    if (!*at)
        activation->last = at;
    activation->queued--;
    return oldest;
}

/* The message was not sent: return it to the sender, unless the sender has it in hand. */
static void give_back(struct thread *thread, struct envelope *e)
{
    struct runner *r = runner_self(thread);
    if (!r || r->in_hand != e)
        envelope_unsend(thread, e);
}

int mailbox_full(struct thread *thread, strand_actor to, uint64_t word, struct envelope *e)
{
    struct cell *cell = ref_cell(to);
    struct activation *activation = word_activation(word);
    enum strand_mailbox_full what = cell_type(cell)->class->mailbox_full;
    if (what == STRAND_MAILBOX_FULL_OLDEST) {
        struct envelope *oldest = push_out(activation);
        struct system *system = cell_type(cell)->system;
        mailbox_put(activation, e);
        cell_unlock(cell, word);
        if (oldest) {
            oldest->next = NULL;
            envelopes_die(thread, system, to, oldest);
        }
        return 0;
    }
    if (what == STRAND_MAILBOX_FULL_FAIL) {
        cell_unlock(cell, word);
        return -EAGAIN;
    }
    struct cb *me = current_of(thread);
    cxx_settle(thread, me);
    if (UNLIKELY(own_of(me)->section_file != NULL) || interrupted_here(me)) {
        cell_unlock(cell, word);
        give_back(thread, e);
        may_block(thread, me, "strand_tell"); /* does not return */
    }
    int error = await_room(thread, to, word, e);
    if (LIKELY(error != -EINTR) || !interrupted_here(me))
        return error;
    give_back(thread_self(), e);
    interrupt_throw(thread_self(), me, 0);
}

/* ---- by priority ------------------------------------------------------------------------------------------- */

bool levels_open(struct thread *thread, struct cell *cell)
{
    struct optional *optional = optional_under_lock(thread, cell);
    struct levels *levels = optional ? platform_calloc(thread, 1, sizeof *levels) : NULL;
    if (!levels)
        return false;
    for (int i = 0; i < LEVELS; i++)
        levels->at[i].last = &levels->at[i].first;
    optional->levels = levels;
    return true;
}

static const char *made_class(const struct hook *hook, char *buffer, size_t size)
{
    const strand_actor_class *class = hook->object;
    snprintf(buffer, size, "the class is '%s'", class->name ? class->name : "actor");
    return buffer;
}

/* Messages behind the one that stops the actor are not handled. */
static void sort_in(struct levels *levels, const strand_actor_class *class, struct envelope *first)
{
    struct hook hook HOOK = {
        .name = "strand_actor_class.priority", .made = made_class, .object = (void *)(uintptr_t) class};
    if (!first)
        return;
    hook_enter(&hook);
    for (struct envelope *e = first, *next; e; e = next) {
        if (e->message.type == &message_last) {
            levels->after_stop = e;
            break;
        }
        strand_message message = e->message;
        message.size &= ~ENVELOPE_EXTRA;
        message.sender = message_sender(&message);
        unsigned level = class->priority(&message);
        next = e->next;
        e->next = NULL;
        level = level < LEVELS ? level : LEVELS - 1;
        *levels->at[level].last = e;
        levels->at[level].last = &e->next;
        levels->some |= UINT64_C(1) << level;
    }
    hook_over(&hook);
}

static struct envelope *pop(struct levels *levels)
{
    int level = __builtin_ctzll(levels->some);
    struct envelope *e = levels->at[level].first;
    levels->at[level].first = e->next;
    if (!e->next) {
        levels->at[level].last = &levels->at[level].first;
        levels->some &= ~(UINT64_C(1) << level);
    }
    return e;
}

/* Sort in all queued messages, and make room for those handled since. */
static void fill(struct thread *thread, struct runner *r, struct levels *levels)
{
    struct activation *activation = r->activation;
    struct batch senders;
    batch_init(&senders);
    uint64_t word = cell_lock_living(thread, r->cell);
    activation->taken += levels->popped;
    levels->popped = 0;
    mailbox_make_room(thread, activation, &senders);
    struct envelope *first = mailbox_take(activation);
    activation->taken = 0;
    cell_unlock(r->cell, word);
    batch_deliver(thread, &senders);
    sort_in(levels, cell_type(r->cell)->class, first);
}

/* Unstashed messages are in the batch already. */
struct envelope *levels_next(struct thread *thread, struct runner *r)
{
    struct activation *activation = r->activation;
    struct levels *levels = cell_optional(r->cell)->levels;
    struct envelope *e = NULL;
    if (activation->batch)
        return activation->batch;
    if (plain_load(&activation->first, memory_order_relaxed) && !levels->after_stop)
        fill(thread, r, levels);
    if (levels->some) {
        e = pop(levels);
        e->next = NULL;
        levels->popped += !(e->message.size & ENVELOPE_EXTRA);
    } else if (levels->after_stop) {
        e = levels->after_stop;
        levels->after_stop = NULL;
    } else {
        activation->taken += levels->popped; /* for the next test whether there is anything at all */
        levels->popped = 0;
    }
    return activation->batch = e;
}

/* All that is left, in order. */
static struct envelope *empty(struct levels *levels)
{
    struct envelope *first = NULL, **last = &first;
    while (levels->some) {
        *last = pop(levels);
        last = &(*last)->next;
    }
    *last = levels->after_stop;
    levels->after_stop = NULL;
    return first;
}

/* ---- the stash ---------------------------------------------------------------------------------------------- */

size_t mailbox_return_stash(struct runner *r)
{
    struct optional *optional = cell_optional(r->cell);
    size_t count = 0;
    if (!optional || !optional->stash)
        return 0;
    for (struct envelope *e = optional->stash; e; e = e->next)
        count++;
    *optional->stash_last = r->activation->batch;
    r->activation->batch = optional->stash;
    optional->stash = NULL;
    optional->stash_last = &optional->stash;
    return count;
}

/* ---- closing and waiting for children ----------------------------------------------------------------------- */

bool mailbox_close(struct thread *thread, struct runner *r)
{
    struct activation *activation = r->activation;
    struct system *system = r->runners->system;
    struct levels *levels = cell_optional(r->cell) ? cell_optional(r->cell)->levels : NULL;
    struct batch senders;
    batch_init(&senders);
    uint64_t word = cell_lock_living(thread, r->cell);
    if (UNLIKELY(atomic_load_explicit(&r->strand->due, memory_order_relaxed))) {
        uint32_t calls = atomic_load_explicit(&activation->calls, memory_order_relaxed);
        atomic_store_explicit(&activation->calls, calls | CALL_STOP, memory_order_relaxed);
        cell_unlock(r->cell, word);
        return false;
    }
    (void)mailbox_return_stash(r);
    struct envelope *batch = activation->batch;
    activation->batch = NULL;
    activation->flags |= ACTIVATION_STOPPING;
    activation->queued = activation->taken = 0;
    struct envelope *first = mailbox_take(activation); /* dead letters [A5] */
    mailbox_refuse(thread, activation, &senders);
    cell_unlock(r->cell, word);
    batch_deliver(thread, &senders);
    envelopes_die(thread, system, r->self, batch);
    if (levels)
        envelopes_die(thread, system, r->self, empty(levels));
    envelopes_die(thread, system, r->self, first);
    return true;
}

static void answer_none(struct thread *thread, const struct envelope *e)
{
    for (; e; e = e->next)
        if (is_promise(e->message.sender))
            promise_settle(thread, e->message.sender, -EPIPE);
}

void mailbox_let_in(struct thread *thread, struct runner *r)
{
    struct activation *activation = r->activation;
    struct optional *optional = cell_optional(r->cell);
    struct levels *levels = optional ? optional->levels : NULL;
    struct batch senders;
    batch_init(&senders);
    uint64_t word = cell_lock_living(thread, r->cell);
    while (!list_empty(&activation->waiters)) {
        struct envelope *e = claim_first(thread, activation, 0, &senders);
        if (e)
            mailbox_put(activation, e);
    }
    struct envelope **last = levels ? &levels->after_stop : &activation->batch;
    bool sorts = levels && !levels->after_stop;
    while (!sorts && *last)
        last = &(*last)->next;
    if (!sorts)
        *last = mailbox_take(activation);
    cell_unlock(r->cell, word);
    batch_deliver(thread, &senders);
    if (sorts)
        fill(thread, r, levels);
    answer_none(thread, activation->batch);
    answer_none(thread, levels ? levels->after_stop : NULL);
    watch_answer_none(thread, r->cell);
    answer_none(thread, optional ? optional->stash : NULL);
    for (int i = 0; levels && i < LEVELS; i++)
        answer_none(thread, levels->at[i].first);
}
