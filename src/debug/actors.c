/*
 * Describes actors. Everything read is in slabs, or belongs to an actor that can't end meanwhile.
 */
#include "actors.h"

#include "../actor/deadlock.h"
#include "../actor/optional.h"
#include "../actor/promise.h"

#include <stdio.h>

enum { PATH = 112, LETTERS_MOST = 10000 };

/* ---- the target of a wait ----------------------------------------------------------------------------------- */

static const struct promise *promise_of(const struct cb *c)
{
    return c->blocked == BLOCKED_MAILBOX ? NULL : (const struct promise *)(uintptr_t)c->blocked_on;
}

const struct cell *actors_waited_for(const struct cb *c)
{
    const struct promise *promise = promise_of(c);
    if (!promise)
        return (const struct cell *)(uintptr_t)c->blocked_on;
    const struct cell *cell = ref_cell(promise->whom);
    return arch_in_handles(cell) && cell_ref(cell).bits[1] == promise->whom.bits[1] ? cell : NULL;
}

static const struct activation *activation_of(const struct cell *cell)
{
    uint64_t word = cell ? atomic_load_explicit(&cell->word, memory_order_acquire) : 0; /* [PB1] */
    return word & CELL_AWAKE ? word_activation(word) : NULL;
}

/* A message that is being forwarded, and waits for room, may belong to another actor by now. */
static const struct envelope *in_hand(const struct runner *r)
{
    return r->strand->blocked == BLOCKED_MAILBOX ? NULL : r->in_hand;
}

static bool is_among(const struct envelope *first, uint64_t sender)
{
    int left = LETTERS_MOST;
    while (first && first->message.sender.bits[1] != sender && left--)
        first = first->next;
    return first && left > 0;
}

/* Whether the actor that was asked has handled the question, and may answer it later. */
static bool has_handled(const struct promise *promise)
{
    return promise->watched.bits[1] && promise->watched.bits[1] == promise->whom.bits[1];
}

/* Whether the question is queued, or in hand: an actor may have forwarded it, or stashed it. */
static bool has_question(const struct activation *activation, const struct promise *promise)
{
    uint64_t asker = promise->watch.who.bits[1];
    const struct envelope *e = activation->runner ? in_hand(activation->runner) : NULL;
    return (e && e->message.sender.bits[1] == asker) || is_among(activation->batch, asker) ||
           is_among(activation->first, asker);
}

/* The supervisor that has to decide about a failed actor; NULL: none. */
static const struct cell *supervisor_of(const struct activation *activation)
{
    const struct cell *cell = NULL;
    bool escalated = true;
    while (escalated && activation && awaits_decision(activation)) {
        escalated = activation->decided_above;
        cell = activation->cell->parent;
        activation = activation_of(cell);
    }
    return cell;
}

struct cb *actors_strand(const struct cb *c, bool *decides)
{
    const struct activation *activation = activation_of(actors_waited_for(c));
    *decides = false;
    if (!activation)
        return NULL;
    bool here = c->blocked != BLOCKED_ASK || has_question(activation, promise_of(c));
    if (here && activation->runner)
        return activation->runner->strand;
    const struct activation *above = NULL;
    if (here || has_handled(promise_of(c)))
        above = activation_of(supervisor_of(activation));
    *decides = above && above->runner;
    return *decides ? above->runner->strand : NULL;
}

const char *actors_words(const struct cb *c, char *text, size_t size)
{
    static const char *const words[] = {[BLOCKED_ASK] = "waits for the answer of actor",
                                        [BLOCKED_ACTOR_END] = "waits for the end of actor",
                                        [BLOCKED_MAILBOX] = "waits for room in the mailbox of actor"};
    char path[PATH] = "(one that has ended)";
    const struct cell *cell = actors_waited_for(c);
    if (cell)
        cell_path(cell, path, sizeof path);
    snprintf(text, size, "%s %s", words[c->blocked], path);
    return text;
}

void actors_say_idle(struct output *out, const struct cb *c, size_t indent)
{
    const struct activation *activation = activation_of(actors_waited_for(c));
    if (activation && (activation->flags & ACTIVATION_SUSPENDED))
        output_say(out, indent, "it is suspended: its supervisor, or a strand that resumes it\n");
    else if (activation && (activation->flags & ACTIVATION_WAITS))
        output_say(out, indent, "it waits for the ends of its children\n");
    else if (c->blocked == BLOCKED_ASK && has_handled(promise_of(c)))
        output_say(out, indent, "it has handled the question without an answer: a strand that answers it\n");
    else if (c->blocked == BLOCKED_ASK)
        output_say(out, indent, "it no longer has the question: the actor that it was forwarded to\n");
    else if (c->blocked == BLOCKED_ACTOR_END)
        output_say(out, indent, "it has nothing to do: a strand that stops it\n");
    else
        output_say(out, indent, "the strand that would have to act is not known\n");
}

/* ---- what a strand runs ------------------------------------------------------------------------------------- */

void actors_say(struct output *out, struct cb *c, size_t indent)
{
    char path[PATH], message[PATH] = "";
    const struct runner *r = c->fn == runner_main && c->started ? c->arg : NULL;
    const struct activation *activation = r ? r->activation : NULL;
    if (!activation || activation->runner != r)
        return;
    const strand_actor_class *class = cell_type(activation->cell)->class;
    cell_path(activation->cell, path, sizeof path);
    const struct envelope *e = in_hand(r);
    if (e)
        snprintf(message, sizeof message, ", handles a '%s'", e->message.type->name);
    output_say(out, indent, "runs actor %s, of class '%s'%s; %u messages wait\n", path, class->name ? class->name : "",
               message, (unsigned)(activation->queued - (activation->queued && e)));
}
