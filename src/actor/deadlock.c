/*
 * Deadlocks between a parent and its child that has failed.
 *
 * STATE     the child's ACTIVATION_UNDECIDED, under its lock: from its failure on until its parent has decided. The
 *           parent's runner.asks and runner.queues: what the strand that has its turn waits for, written by that
 *           strand.
 * ORDERING  [A6] the parent publishes its wait before it takes the child's lock, under which it sends, or enqueues as a
 *           waiter. The child publishes under that lock that it is undecided, and afterwards reads what the parent
 *           waits for. So the child finds the parent waiting; or the parent, which has come later, finds the child
 *           undecided.
 * NOT DONE  longer cycles are not detected: an actor that waits for its failed grandchild, or for an actor that waits
 *           for one, and a parent whose turn joins a strand that waits for the child (docs/decisions.md says why).
 * TESTED BY tests/spec/actor_deadlock.c.
 */
#include "deadlock.h"

#include "mailbox.h"
#include "optional.h"
#include "promise.h"

#include <errno.h>

/* ---- finding a question: under the cell's lock, in its turn ------------------------------------------------- */

static strand_actor among(const struct envelope *e, uint64_t asks)
{
    while (e && e->message.sender.bits[1] != asks)
        e = e->next;
    return e ? e->message.sender : (strand_actor){{0, 0}};
}

static strand_actor among_senders(const struct activation *activation, uint64_t asks)
{
    for (const struct link *link = activation->waiters.next; link != &activation->waiters; link = link->next) {
        const struct envelope *e = CONTAINER(link, struct wait_node, link)->value;
        if (e->message.sender.bits[1] == asks)
            return e->message.sender;
    }
    return (strand_actor){{0, 0}};
}

static strand_actor among_watches(const struct link *list, uint64_t asks)
{
    for (const struct link *link = list->next; link != list; link = link->next) {
        strand_actor who = CONTAINER(link, const struct watch, link)->who;
        if (who.bits[1] == asks)
            return who;
    }
    return (strand_actor){{0, 0}};
}

/* The promise with that number, if it waits for this actor; otherwise {0}. */
static strand_actor find(const struct activation *activation, const struct optional *optional, uint64_t asks)
{
    strand_actor found = among(activation->first, asks);
    if (!found.bits[1])
        found = among(activation->batch, asks);
    if (!found.bits[1])
        found = among_senders(activation, asks);
    if (!optional)
        return found;
    if (!found.bits[1])
        found = among(optional->stash, asks);
    if (!found.bits[1])
        found = among_watches(&optional->askers, asks);
    if (!found.bits[1])
        found = among_watches(&optional->watchers, asks);
    const struct levels *levels = optional->levels;
    if (levels && !found.bits[1])
        found = among(levels->rest, asks);
    for (int i = 0; levels && i < LEVELS && !found.bits[1]; i++)
        if (levels->some >> i & 1)
            found = among(levels->at[i].first, asks);
    return found;
}

/* ---- detection ---------------------------------------------------------------------------------------------- */

void deadlock_break(struct thread *thread, struct runner *r, struct waiting parent)
{
    strand_actor asker = {{0, 0}};
    struct batch senders;
    if (!parent.asks && !parent.queues)
        return;
    batch_init(&senders);
    uint64_t word = cell_lock_living(thread, r->cell);
    if (awaits_decision(r->activation)) {
        if (parent.queues)
            mailbox_refuse_parent(thread, r->activation, &senders);
        if (parent.asks)
            asker = find(r->activation, cell_optional(r->cell), parent.asks);
    }
    cell_unlock(r->cell, word);
    batch_deliver(thread, &senders);
    if (asker.bits[1])
        promise_settle(thread, asker, -EDEADLK);
}

void deadlock_refuse(struct thread *thread, strand_actor parent, strand_actor asker)
{
    struct cell *cell = ref_cell(parent);
    uint64_t word;
    if (!cell_lock(thread, cell, ref_serial(parent), &word))
        return;
    bool waits = (word & CELL_AWAKE) && waiting_of(word_activation(word)).asks == asker.bits[1];
    cell_unlock(cell, word);
    if (waits)
        promise_settle(thread, asker, -EDEADLK);
}

bool deadlock_is(struct thread *thread, strand_actor actor)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!cell_lock(thread, cell, ref_serial(actor), &word))
        return false;
    bool is = (word & CELL_AWAKE) && awaits_decision(word_activation(word)) && is_its_parent(thread, cell);
    cell_unlock(cell, word);
    return is;
}
