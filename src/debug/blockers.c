/*
 * Describes the strands that would have to act before a blocked strand can go on. Unknown ones are reported as unknown:
 * any strand that has a channel may send into it.
 */
#include "graph.h"

#include "actors.h"

#include "../actor/actor_blocked.h"
#include "../io/io_blocked.h"
#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/pool.h"
#include "../strand/print.h"
#include "../strand/wait.h"
#include "../sync/chan.h"
#include "../sync/gate.h"
#include "../sync/mutex.h"
#include "../sync/port.h"
#include "../sync/prio.h"
#include "../sync/source.h"

#include <stdio.h>
#include <string.h>

enum { BLOCKERS_MOST = 8, CASES_MOST = 8 };

/* ---- names ----------------------------------------------------------------------------------------------- */

static const char *name_of(const struct graph *graph, uint32_t node, const char *before, char *text, size_t size)
{
    const struct entry *entry = &graph->roll.entries[node];
    bool kept = handle_ref_take(graph->view.thread, &entry->c->word, entry->id);
    snprintf(text, size, "%s'%s' #%llu", before, kept ? cb_name(entry->c) : "?", (unsigned long long)entry->id);
    if (kept)
        handle_unref_cb(graph->view.thread, entry->c);
    return text;
}

const char *blockers_name(const struct graph *graph, uint32_t node, char text[STRAND_NAME])
{
    return name_of(graph, node, "strand ", text, STRAND_NAME);
}

/* ---- from one strand to the next ------------------------------------------------------------------------- */

/* What the target has done, or has to do. */
static const char *words_of_holder(const struct graph *graph, const struct node *node, uint32_t target)
{
    if (node->blocked == BLOCKED_MUTEX)
        return "has locked";
    if (node->blocked == BLOCKED_ONCE)
        return "is in";
    if (actors_are_waited_for(node->blocked))
        return "runs";
    if (node->blocked == BLOCKED_POOL)
        return node->toward == TOWARD_ONE ? "closes" : "lives on";
    for (uint32_t i = 0; i < node->count && node->toward == TOWARD_HOLDERS; i++)
        if (graph->holders[node->first + i].node == target && graph->holders[node->first + i].writes)
            return "has locked to write";
    return "has locked to read";
}

/* Whether it waits for a strand itself, not for something that a strand has. */
static bool waits_for_strand(unsigned blocked)
{
    return blocked == BLOCKED_JOIN || blocked == BLOCKED_JOIN_SCOPE || blocked == BLOCKED_WAIT ||
           blocked == BLOCKED_LEAVE || blocked == BLOCKED_SCOPE;
}

const char *blockers_step(const struct graph *graph, uint32_t from, uint32_t target, char *text, size_t size)
{
    const struct node *node = &graph->nodes[from];
    char other[STRAND_NAME], words[WORDS_MOST];
    if (node->blocked == BLOCKED_SCOPE)
        snprintf(text, size, "%s: %s is the only one", inspect_reason(&graph->view, node->blocked)->words,
                 blockers_name(graph, target, other));
    else if (waits_for_strand(node->blocked))
        snprintf(text, size, "%s %s", inspect_reason(&graph->view, node->blocked)->words,
                 name_of(graph, target, "", other, sizeof other));
    else if (node->decides)
        snprintf(text, size, "%s, which is suspended until %s decides",
                 inspect_words(&graph->view, graph_cb(graph, from), node->blocked, node->on, words, sizeof words),
                 blockers_name(graph, target, other));
    else
        snprintf(text, size, "%s, which %s %s",
                 inspect_words(&graph->view, graph_cb(graph, from), node->blocked, node->on, words, sizeof words),
                 blockers_name(graph, target, other), words_of_holder(graph, node, target));
    return text;
}

const char *blockers_brief(const struct graph *graph, uint32_t from, uint32_t target, char *text, size_t size)
{
    static const char *const things[] = {[BLOCKED_MUTEX] = "the mutex",
                                         [BLOCKED_ONCE] = "the once",
                                         [BLOCKED_READ_LOCK] = "the lock",
                                         [BLOCKED_WRITE_LOCK] = "the lock",
                                         [BLOCKED_POOL] = "the pool",
                                         [BLOCKED_ASK] = "the answer",
                                         [BLOCKED_MAILBOX] = "room in the mailbox"};
    unsigned blocked = graph->nodes[from].blocked;
    const char *thing = blocked < sizeof things / sizeof *things && things[blocked] ? things[blocked] : "the end";
    if (graph->nodes[from].decides)
        thing = "the decision";
    char one[STRAND_NAME], other[STRAND_NAME];
    snprintf(text, size, "%s for %s of %s", name_of(graph, from, "", one, sizeof one), thing,
             name_of(graph, target, "", other, sizeof other));
    return text;
}

const char *blockers_brief_wait(const struct graph *graph, uint32_t from, char *text, size_t size)
{
    const struct node *node = &graph->nodes[from];
    char one[STRAND_NAME], words[WORDS_MOST];
    inspect_words(&graph->view, graph_cb(graph, from), node->blocked, node->on, words, sizeof words);
    char *address = strstr(words, " at 0x"); /* useless without a dump beside it */
    if (address)
        *address = '\0';
    snprintf(text, size, "%s %s", name_of(graph, from, "", one, sizeof one), words);
    return text;
}

/* ---- strands that would have to act ------------------------------------------------------------------------- */

static const char *state_of(const struct graph *graph, uint32_t node)
{
    return graph->nodes[node].blocked != BLOCKED_NOT ? "blocked too" : "not blocked";
}

/* The mutex was handed to the target, which has not resumed: so the place of locking is not recorded yet. */
static bool was_handed(const struct graph *graph, const struct node *node, uint32_t target)
{
    const struct cb *c = graph_cb(graph, target);
    return c->blocked == BLOCKED_MUTEX && c->blocked_on == node->on;
}

/* Prints one target. */
static void say_actor(const struct graph *graph, const struct node *node, uint32_t target, uint32_t at, size_t indent)
{
    char name[STRAND_NAME];
    struct output *out = graph->view.out;
    const char *state = state_of(graph, target);
    blockers_name(graph, target, name);
    if (node->toward == TOWARD_HOLDERS) {
        const struct holder *holder = &graph->holders[node->first + at];
        output_say(out, indent, "%s would have to release it, locked to %s in %s; it is %s\n", name,
                   holder->writes ? "write" : "read", inspect_name(&graph->view, holder->site), state);
    } else if (node->blocked == BLOCKED_MUTEX && was_handed(graph, node, target)) {
        output_say(out, indent, "%s has just been handed it, and would have to unlock it; it is %s\n", name, state);
    } else if (node->blocked == BLOCKED_MUTEX) {
        const struct mutex *mutex = (const struct mutex *)(uintptr_t)node->on;
        output_say(out, indent, "%s would have to unlock it, locked in %s; it is %s\n", name,
                   inspect_name(&graph->view, plain_load(&mutex->site, memory_order_relaxed)), state);
    } else if (node->blocked == BLOCKED_ONCE) {
        output_say(out, indent, "%s would have to return from it; it is %s\n", name, state);
    } else if (node->blocked == BLOCKED_POOL && node->toward == TOWARD_ONE) {
        output_say(out, indent, "%s, which closes it, would have to go on; it is %s\n", name, state);
    } else if (node->decides) {
        output_say(out, indent,
                   "it is suspended until its supervisor decides: %s, which runs that, would have to go on; "
                   "it is %s\n",
                   name, state);
    } else if (actors_are_waited_for(node->blocked)) {
        output_say(out, indent, "%s, which runs it, would have to go on; it is %s\n", name, state);
    } else {
        output_say(out, indent, "%s would have to end; it is %s\n", name, state);
    }
}

static void say_strands(const struct graph *graph, uint32_t from, size_t indent)
{
    const struct node *node = &graph->nodes[from];
    size_t said = 0, more = 0;
    for (uint32_t at = 0; at < node->count; at++) {
        uint32_t target = graph_target(graph, from, at);
        if (target == NOBODY)
            continue;
        if (said < BLOCKERS_MOST)
            say_actor(graph, node, target, at, indent);
        else
            more++;
        said += said < BLOCKERS_MOST;
    }
    if (!said)
        output_say(graph->view.out, indent, "no strand that is known now\n");
    if (more)
        output_say(graph->view.out, indent, "and %zu more%s\n", more, node->any ? ": any of all these" : "");
    else if (node->any && said > 1)
        output_say(graph->view.out, indent, "any of these\n");
}

/* ---- objects, and the outside ------------------------------------------------------------------------------- */

static void say_chan(const struct view *view, bool sends, uint64_t on, size_t indent)
{
    const struct chan *chan = (const struct chan *)(uintptr_t)on;
    struct output *out = view->out;
    if (chan->closed)
        output_say(out, indent, "closed, but a plain thread's value is on its way\n");
    else
        output_say(out, indent, "a strand that %s it, or closes it\n", sends ? "receives from" : "sends into");
    output_say(out, indent, "%zu of its %zu places are taken; it was opened in %s\n", chan->count, chan->capacity,
               inspect_name(view, chan->site));
}

static void say_permit(const struct view *view, uint64_t on, size_t indent)
{
    const struct prio *sem = (const struct prio *)(uintptr_t)on;
    output_say(view->out, indent,
               "a strand that has one of its permits, of which %zu of %zu are taken: holders are not recorded\n",
               sem->in_flight, sem->limit);
    output_say(view->out, indent, "it was made in %s\n", inspect_name(view, sem->site));
}

static void say_gate(struct output *out, unsigned blocked, uint64_t on, uint64_t wanted, size_t indent)
{
    const struct gate *gate = (const struct gate *)(uintptr_t)on;
    unsigned long long value = gate_value(atomic_load_explicit(&gate->word, memory_order_acquire)); /* [G4] */
    if (blocked == BLOCKED_SEMAPHORE)
        output_say(out, indent, "a strand that releases permits: %llu are free, %llu are wanted\n", value,
                   (unsigned long long)wanted);
    else if (blocked == BLOCKED_GROUP)
        output_say(out, indent, "strands that have yet to come: %llu\n", value);
    else if (blocked == BLOCKED_BARRIER)
        output_say(out, indent, "strands that have yet to come: %llu of %llu\n",
                   (unsigned long long)((const struct barrier *)gate)->parties - value,
                   (unsigned long long)((const struct barrier *)gate)->parties);
    else
        output_say(out, indent, "a strand that %s it\n", blocked == BLOCKED_CONDITION ? "signals" : "sets");
}

/* A case of a select has them in its watch. */
static uint64_t signals_of(unsigned blocked, uint64_t on)
{
    if (blocked == BLOCKED_SIGNAL)
        return arch_watch_signals(arch_watch_fd((const struct arch_watch *)(uintptr_t)on));
    return blocked == BLOCKED_DESCRIPTOR ? arch_watch_signals((int)on) : 0;
}

static void say_signals(struct output *out, uint64_t signals, size_t indent)
{
    char numbers[200] = "";
    size_t used = 0;
    for (; signals && used < sizeof numbers; signals &= signals - 1)
        used += (size_t)snprintf(numbers + used, sizeof numbers - used, " %d", __builtin_ctzll(signals) + 1);
    output_say(out, indent, "the outside: a sender of one of the signals%s\n", numbers);
}

/* Prints a wait without a target, or of which no more is known. settled: its object can be read. */
static void say_thing(const struct view *view, bool settled, unsigned blocked, uint64_t on, uint64_t wanted,
                      size_t indent)
{
    struct output *out = view->out;
    const char *ended_by = inspect_reason(view, blocked)->ended_by;
    uint64_t signals = signals_of(blocked, on);
    if (signals)
        say_signals(out, signals, indent);
    else if (ended_by)
        output_say(out, indent, "%s\n", ended_by);
    else if (!settled)
        output_say(out, indent, "the strand that would have to act is not known: not all threads could be held\n");
    else if (blocked == BLOCKED_SEND || blocked == BLOCKED_RECEIVE)
        say_chan(view, blocked == BLOCKED_SEND, on, indent);
    else if (blocked == BLOCKED_PERMIT)
        say_permit(view, on, indent);
    else if (blocked == BLOCKED_SEMAPHORE || blocked == BLOCKED_GROUP || blocked == BLOCKED_BARRIER ||
             blocked == BLOCKED_CONDITION || blocked == BLOCKED_EVENT)
        say_gate(out, blocked, on, wanted, indent);
    else
        output_say(out, indent, "the strand that would have to act is not known\n");
}

/* ---- selects --------------------------------------------------------------------------------------------- */

/* For a handle the object is its address; for an instant, the instant. */
static uint64_t object_of(const strand_case *c)
{
    if (c->source->blocked == BLOCKED_WAIT)
        return c->object[1];
    return c->source->blocked == BLOCKED_SLEEP ? (uint64_t)c->detail : c->object[0];
}

static void say_end(const struct graph *graph, uint64_t id, size_t indent)
{
    char name[STRAND_NAME];
    uint32_t target = graph_find(graph, id);
    if (target != NOBODY)
        output_say(graph->view.out, indent, "%s would have to end; it is %s\n", blockers_name(graph, target, name),
                   state_of(graph, target));
}

static void say_case(const struct graph *graph, struct cb *c, size_t index, size_t indent)
{
    strand_case one = inspect_case(&graph->view, c, index);
    char words[WORDS_MOST] = "is not waited for any more";
    unsigned blocked = one.source ? one.source->blocked : BLOCKED_NOT;
    uint64_t on = one.source ? object_of(&one) : 0;
    if (blocked == BLOCKED_SLEEP && (!one.detail || on == INT64_MAX))
        snprintf(words, sizeof words, one.detail ? "never" : "a tick");
    else if (one.source)
        inspect_words(&graph->view, c, blocked, on, words, sizeof words);
    output_say(graph->view.out, indent, "case %zu: %s\n", index, words);
    if (blocked == BLOCKED_WAIT)
        say_end(graph, on, indent + 4);
    else if (blocked != BLOCKED_NOT && blocked != BLOCKED_SLEEP)
        say_thing(&graph->view, true, blocked, on, 1, indent + 4);
}

static void say_cases(const struct graph *graph, struct cb *c, uint64_t count, size_t indent)
{
    for (size_t i = 0; i < count && i < CASES_MOST; i++)
        say_case(graph, c, i, indent);
    if (count > CASES_MOST)
        output_say(graph->view.out, indent, "and %llu cases more\n", (unsigned long long)(count - CASES_MOST));
}

/* ---- everything --------------------------------------------------------------------------------------------- */

/* Prints a deadline that may end the wait. */
static void say_deadline(const struct graph *graph, struct cb *c, size_t indent)
{
    struct own own;
    uint32_t floor = wait_floor(atomic_load_explicit(&c->wait.state, memory_order_acquire)); /* [W1] */
    int64_t first = INT64_MAX;
    if (!inspect_own(&graph->view, c, &own))
        return;
    for (struct block *block = own.blocks; block && block->index >= floor; block = block->outer) {
        const struct deadline *deadline = CONTAINER(block, struct deadline, block);
        if (block->type == BLOCK_DEADLINE && deadline->when < first)
            first = deadline->when;
    }
    if (first < INT64_MAX)
        output_say(graph->view.out, indent, "or its deadline, in %.1f ms\n",
                   (double)(first - platform_now(graph->view.thread->sub)) / 1e6);
}

void blockers_say(const struct graph *graph, uint32_t from, size_t indent)
{
    const struct node *node = &graph->nodes[from];
    struct cb *c = graph_cb(graph, from);
    bool settled = inspect_is_settled(&graph->view, c);
    if (node->toward != TOWARD_NOBODY)
        say_strands(graph, from, indent);
    else if (node->blocked == BLOCKED_SELECT && settled)
        say_cases(graph, c, node->on, indent);
    else if (actors_are_waited_for(node->blocked) && settled)
        actors_say_idle(graph->view.out, c, indent);
    else
        say_thing(&graph->view, settled, node->blocked, node->on, (uint64_t)(uintptr_t)c->wait.node.value, indent);
    say_deadline(graph, c, indent);
}
