/*
 * Deadlocks between a supervisor and an actor that has failed, and awaits the supervisor's decision.
 *
 * SUPERVISOR of a failed actor: its parent; if the parent has escalated the failure, and so has failed itself, the
 *           parent's supervisor.
 * STATE     a failed actor's ACTIVATION_UNDECIDED, under its lock: from its failure on until a decision.
 *           activation.decided_above, with it: the decision about its parent decides about it, too. runner.asks and
 *           runner.queues of a supervisor: what the strand that has its turn waits for, written by that strand.
 *           system.decisions: counts what makes failed actors go on.
 * ORDERING  [A6] a supervisor publishes its wait before it takes the lock of the actor under which it sends, is linked
 *           as a watcher, or is enqueued as a waiter. Afterwards it walks up from that actor, lock by lock, to the
 *           supervisor. A parent P that escalates (1) sets decided_above in the failed child, (2) sets its own
 *           UNDECIDED, (3) reports to its supervisor G, and (4) reads the wait that G has published. If G escalates as
 *           well, G takes the four steps with its own supervisor. If the walk came too early to see one of these
 *           flags, then the critical section of the walk precedes the one that sets the flag, and the wait is
 *           published before the last reader reads it. That reader requests CALL_DEADLOCK_CHECK of each failed child
 *           that was escalated, which searches its own queues and passes the request on to its own children. So either
 *           the walk sees all flags, or a reader sees the wait.
 *           The walk sees the levels one after the other. It counts only if no decision was made between its beginning
 *           and its end: a level may have failed again after a decision, and its children may go on already [A10].
 * COST      nothing where nothing fails. One more turn for each escalated failure below an actor that fails while its
 *           parent waits for an answer, an end or room.
 * NOT DONE  cycles through other strands are not detected: a supervisor that joins a strand of its own, or asks another
 *           actor, which waits for the failed actor (docs/decisions.md says why). The graph of waits shows them.
 * TESTED BY tests/spec/actor_deadlock.c, tests/models/deadlock.pml.
 */
#include "deadlock.h"

#include "cell.h"
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
        found = among(levels->after_stop, asks);
    for (int i = 0; levels && i < LEVELS && !found.bits[1]; i++)
        if (levels->some >> i & 1)
            found = among(levels->at[i].first, asks);
    return found;
}

/* Under the lock of the cell, or in its turn. */
static uint64_t decisions_of(const struct cell *cell)
{
    return atomic_load_explicit(&cell_type(cell)->system->decisions, memory_order_relaxed); /* [A10] */
}

/* ---- detection ---------------------------------------------------------------------------------------------- */

/* In the actor's own turn: end the waits of `supervisor` for this actor. */
static void end_waits(struct thread *thread, struct runner *r, const struct cell *supervisor, struct waiting waiting,
                      const uint64_t *since)
{
    strand_actor asker = {{0, 0}};
    struct batch senders;
    batch_init(&senders);
    uint64_t word = cell_lock_living(thread, r->cell);
    if (awaits_decision(r->activation) && (!since || decisions_of(r->cell) == *since)) { /* [A10] */
        if (waiting.queues)
            mailbox_refuse_from(thread, r->activation, supervisor, &senders);
        if (waiting.asks)
            asker = find(r->activation, cell_optional(r->cell), waiting.asks);
    }
    cell_unlock(r->cell, word);
    batch_deliver(thread, &senders);
    if (asker.bits[1])
        promise_settle(thread, asker, -EDEADLK);
}

/* In the actor's own turn. */
static void check_below(struct thread *thread, const struct activation *activation)
{
    for (const struct failure *failure = activation->escalated; failure; failure = failure->next)
        (void)cell_call_failed(thread, failure->child, CALL_DEADLOCK_CHECK, failure->why); /* it is awake */
}

void deadlock_break(struct thread *thread, struct runner *r, struct waiting parent)
{
    if (!parent.asks && !parent.queues)
        return;
    end_waits(thread, r, r->cell->parent, parent, NULL);
    check_below(thread, r->activation);
}

void deadlock_escalate(struct thread *thread, const struct failure *failure)
{
    struct cell *cell = ref_cell(failure->child);
    uint64_t word;
    if (!cell_lock(thread, cell, ref_serial(failure->child), &word))
        return;
    if ((word & CELL_AWAKE) && (word_activation(word)->flags & ACTIVATION_UNDECIDED) &&
        plain_load(&word_activation(word)->why, memory_order_relaxed) == failure->why)
        word_activation(word)->decided_above = true; /* [A6] */
    cell_unlock(cell, word);
}

void deadlock_escalated_late(struct thread *thread, const struct failure *failure)
{
    (void)cell_call_failed(thread, failure->child, CALL_DEADLOCK_CHECK, failure->why); /* it is awake */
}

/* Lock by lock, up to the supervisor whose decision the actor awaits; {0}: it awaits none. */
static strand_actor walk_up(struct thread *thread, strand_actor actor, uint64_t *since)
{
    for (bool escalated = true, first = true; escalated && actor.bits[1]; first = false) {
        struct cell *cell = ref_cell(actor);
        uint64_t word;
        if (!cell_lock(thread, cell, ref_serial(actor), &word))
            return (strand_actor){{0, 0}};
        if (first)
            *since = decisions_of(cell); /* [A10] */
        bool awaits = (word & CELL_AWAKE) && awaits_decision(word_activation(word));
        escalated = awaits && word_activation(word)->decided_above;
        actor = awaits && cell->parent ? cell_ref(cell->parent) : (strand_actor){{0, 0}};
        cell_unlock(cell, word);
    }
    return actor;
}

/* Whether no decision has been counted since, and the actor has not ended. */
static bool still_holds(struct thread *thread, strand_actor actor, uint64_t since)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!cell_lock(thread, cell, ref_serial(actor), &word))
        return false;
    bool holds = decisions_of(cell) == since; /* [A10] */
    cell_unlock(cell, word);
    return holds;
}

/* As walk_up, at one instant. *since: system.decisions then. */
static strand_actor supervisor_of(struct thread *thread, strand_actor actor, uint64_t *since)
{
    strand_actor found;
    do
        found = walk_up(thread, actor, since);
    while (found.bits[1] && !still_holds(thread, actor, *since));
    return found;
}

/* What the strand that has the actor's turn waits for. */
static struct waiting what_it_waits_for(struct thread *thread, strand_actor actor)
{
    struct cell *cell = ref_cell(actor);
    struct waiting waiting = {0};
    uint64_t word;
    if (!actor.bits[1] || !cell_lock(thread, cell, ref_serial(actor), &word))
        return waiting;
    if (word & CELL_AWAKE)
        waiting = waiting_of(word_activation(word));
    cell_unlock(cell, word);
    return waiting;
}

void deadlock_check(struct thread *thread, struct runner *r)
{
    uint64_t since;
    strand_actor supervisor = supervisor_of(thread, r->self, &since);
    struct waiting waiting = what_it_waits_for(thread, supervisor);
    if (!waiting.asks && !waiting.queues)
        return;
    end_waits(thread, r, ref_cell(supervisor), waiting, &since);
    if (still_holds(thread, r->self, since))
        check_below(thread, r->activation);
    else
        (void)cell_call(thread, r->self, CALL_DEADLOCK_CHECK); /* again; it is awake: this takes no memory */
}

void deadlock_refuse(struct thread *thread, strand_actor actor, strand_actor asker)
{
    uint64_t since;
    strand_actor supervisor = supervisor_of(thread, actor, &since);
    if (what_it_waits_for(thread, supervisor).asks == asker.bits[1])
        promise_settle(thread, asker, -EDEADLK);
}

bool deadlock_is(struct thread *thread, strand_actor actor)
{
    const struct runner *r = runner_self(thread);
    uint64_t since;
    return r && r->activation && supervisor_of(thread, actor, &since).bits[1] == r->self.bits[1];
}
