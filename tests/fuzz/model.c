/*
 * The model of the tree: strands, scopes, cancelling, sources of interruption. What waiting and leaving come to is in
 * outcomes.c.
 */
#include "model.h"

#include <string.h>

struct model model;

void model_reset(void)
{
    memset(&model, 0, sizeof model);
    struct mstrand *root = &model.strands[0];
    root->life = RUNNING;
    root->anchor = NO_ONE;
}

/* ---- what a strand is inside of -------------------------------------------------------------------------- */

void entry_push(struct mstrand *s, struct entry entry)
{
    MUST(s->depth < ENTRIES, "the model has no room for such a depth");
    s->entries[s->depth++] = entry;
}

void entry_pop(struct mstrand *s, enum entry_kind kind)
{
    MUST(s->depth > 0 && s->entries[s->depth - 1].kind == kind,
         "strand %d leaves a block that is not its innermost one", index_of(s));
    s->depth--;
}

bool unwinding(const struct mstrand *s)
{
    bool any = s->flight != NULL;
    for (int i = 0; i < s->depth; i++)
        any |= s->entries[i].kind == IN_UNWINDING;
    return any;
}

bool in_bare_clean_up(const struct mstrand *s)
{
    for (int i = s->depth - 1; i >= 0 && s->entries[i].kind != IN_TRY; i--)
        if (s->entries[i].kind == IN_UNWINDING)
            return true;
    return false;
}

/* The innermost entry from which on sources count. A shield defers sources outside of it; so does a clean-up that
 * runs because of an exception, unless a try block that catches interruptions has been entered since. */
static int floor_of(const struct mstrand *s)
{
    bool tried = false;
    for (int i = s->depth - 1; i >= 0; i--) {
        enum entry_kind kind = s->entries[i].kind;
        if (kind == IN_SHIELD || (kind == IN_UNWINDING && !tried))
            return i;
        tried |= kind == IN_TRY && s->entries[i].takes;
    }
    return -1;
}

static bool interrupts(int scope)
{
    return !(model.scopes[scope].flags & (STRAND_COLLECT | STRAND_FIRST_WINS)) && first_failed(scope) != NO_ONE;
}

/* The outermost source that holds for certain: an entry, or -1 for a cancel; -2: none. */
static int certain(const struct mstrand *s)
{
    int floor = floor_of(s);
    if (floor < 0 && s->cancelled)
        return -1;
    for (int i = floor + 1; i < s->depth; i++) {
        const struct entry *entry = &s->entries[i];
        if ((entry->kind == IN_SCOPE && interrupts(entry->index)) || (entry->kind == IN_DEADLINE && entry->holds))
            return i;
    }
    return -2;
}

bool source_certain(struct mstrand *s, int but)
{
    int at = certain(s);
    if (at >= 0 && s->entries[at].kind == IN_SCOPE && s->entries[at].index == but)
        return false;
    return at != -2;
}

/* A deadline that has passed holds as soon as a timer has said so. */
static bool may_hold(const struct entry *entry)
{
    return entry->kind == IN_DEADLINE && (entry->holds || strand_now().ns >= entry->when);
}

bool source_possible(struct mstrand *s)
{
    if (certain(s) != -2)
        return true;
    for (int i = floor_of(s) + 1; i < s->depth; i++)
        if (may_hold(&s->entries[i]))
            return true;
    return false;
}

bool deadline_between(const struct mstrand *s, int64_t from, int64_t to)
{
    for (int i = floor_of(s) + 1; i < s->depth; i++)
        if (s->entries[i].kind == IN_DEADLINE && from < s->entries[i].when && s->entries[i].when < to)
            return true;
    return false;
}

static struct exc *by_cancel(struct mstrand *s, const strand_exception *e)
{
    struct exc *m = exc_new(&STRAND_INTERRUPTED, index_of(s));
    MUST(strand_exception_who(e)[0] || !s->noted, "strand %d is cancelled, and that is its outermost source, but: %s",
         index_of(s), strand_exception_text(e));
    m->source = BY_CANCEL;
    m->noted = s->noted;
    m->note = s->note;
    return m;
}

struct exc *interruption(struct mstrand *s, const strand_exception *e)
{
    MUST(!strand_exception_suppressed(e, 0), "a new interruption has suppressed exceptions");
    return interruption_over(s, e);
}

struct exc *interruption_over(struct mstrand *s, const strand_exception *e)
{
    int to = certain(s);
    if (to == -1)
        return by_cancel(s, e);
    MUST(!strand_exception_who(e)[0],
         "strand %d was interrupted by a cancel, but it is not cancelled or is shielded: %s", index_of(s),
         strand_exception_text(e));
    struct exc *m = exc_new(&STRAND_INTERRUPTED, index_of(s));
    if (strand_exception_cause(e)) {
        MUST(to >= 0 && s->entries[to].kind == IN_SCOPE,
             "strand %d was interrupted by a failure, but: no scope of it "
             "that comes first has one",
             index_of(s));
        m->source = BY_SCOPE;
        m->scope = s->entries[to].index;
        m->cause = model.strands[first_failed(m->scope)].exception;
        return m;
    }
    m->source = BY_DEADLINE;
    for (int i = floor_of(s) + 1; i < s->depth && m->candidates < CANDIDATES; i++) {
        if (may_hold(&s->entries[i]))
            m->deadlines[m->candidates++] = s->entries[i].index;
        if (i == to)
            break;
    }
    MUST(m->candidates, "strand %d was interrupted by a deadline, but none that it sees has passed", index_of(s));
    return m;
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

static bool any_running(int scope)
{
    for (int i = 1; i < NODES; i++)
        if (anchored(&model.strands[i], scope) && model.strands[i].life == RUNNING)
            return true;
    return false;
}

static bool any_ended(int scope)
{
    for (int i = 1; i < NODES; i++)
        if (anchored(&model.strands[i], scope) && model.strands[i].life == ENDED)
            return true;
    return false;
}

static bool has_come(const struct mstrand *s)
{
    switch (s->waits) {
    case OP_JOIN:
    case OP_WAIT:
        return model.strands[s->target].life != RUNNING;
    case OP_SLEEP:
        return strand_now().ns >= s->until;
    case OP_SCOPE_JOIN:
    case OP_FIRST:
        return !any_running(s->target);
    case OP_NEXT:
        return any_ended(s->target) || !anchored_count(s->target);
    default:
        return true;
    }
}

static void raised(struct mstrand *s)
{
    if (s->waits && !s->over && !has_come(s) && source_certain(s, s->waits == OP_SCOPE_JOIN ? s->target : NO_ONE))
        s->must = true;
}

/* A join of a child that failed throws its exception also if that is what interrupts; so does the join of the scope. */
static int of_no_concern(enum op op, int target)
{
    if (op == OP_SCOPE_JOIN)
        return target;
    return op == OP_JOIN && model.strands[target].outcome == OUT_FAILED ? model.strands[target].anchor : NO_ONE;
}

void wait_begins(struct mstrand *s, enum op op, int target, int64_t until)
{
    s->waits = op;
    s->target = target;
    s->until = until;
    s->might = source_possible(s);
    s->must = source_certain(s, of_no_concern(op, target));
    s->ready = has_come(s);
    s->over = false;
    s->arrivals = model.arrivals;
}

/* ---- scopes ---------------------------------------------------------------------------------------------- */

bool anchored(const struct mstrand *c, int scope)
{
    return (c->life == RUNNING || c->life == ENDED || c->life == UNKNOWN) && c->anchor == scope;
}

int anchored_count(int scope)
{
    int count = model.scopes[scope].unknown;
    for (int i = 1; i < NODES; i++)
        count += anchored(&model.strands[i], scope) && model.strands[i].life != UNKNOWN;
    return count;
}

int first_failed(int scope)
{
    int first = NO_ONE;
    for (int i = 1; i < NODES; i++) {
        struct mstrand *c = &model.strands[i];
        if (anchored(c, scope) && c->life == ENDED && c->outcome == OUT_FAILED &&
            (first == NO_ONE || c->order < model.strands[first].order))
            first = i;
    }
    return first;
}

static void cancel_by(struct mstrand *c, const struct note *note, bool noted, bool owned)
{
    if (!c->cancelled && c->life == RUNNING && noted) {
        c->noted = true;
        c->note = *note;
    }
    c->owned |= owned;
    if (c->cancelled || c->life != RUNNING)
        return;
    c->cancelled = true;
    raised(c);
}

void cancel_one(struct mstrand *c, int by, int why, bool owned)
{
    struct note note = {by, why};
    cancel_by(c, &note, true, owned);
}

static void cancel_children(int scope, const struct note *note, bool owned, const struct mstrand *but)
{
    for (int i = 1; i < NODES; i++)
        if (anchored(&model.strands[i], scope) && &model.strands[i] != but)
            cancel_by(&model.strands[i], note, true, owned);
}

static void scope_is_cancelled(struct mscope *scope, const struct note *note)
{
    scope->cancelled = true;
    if (!scope->noted)
        scope->note = *note;
    scope->noted = true;
}

void cancel_scope(int index, int by, int why)
{
    struct mscope *scope = &model.scopes[index];
    struct note note = {by, why};
    scope_is_cancelled(scope, &note);
    scope->owned |= scope->owner == by;
    cancel_children(index, &note, scope->owner == by, NULL);
}

static void by_policy(int index, struct mstrand *child)
{
    struct note note = {index_of(child), -1};
    scope_is_cancelled(&model.scopes[index], &note);
    model.scopes[index].by_policy = true;
    cancel_children(index, &model.scopes[index].note, false, child);
}

/* A join that finds no child left in its open scope yields before it returns, and so does the wait for the next child.
 * More children may arrive meanwhile. */
static void arrive(struct mstrand *c, int index)
{
    struct mstrand *owner = &model.strands[model.scopes[index].owner];
    if ((owner->waits == OP_SCOPE_JOIN || owner->waits == OP_NEXT) && owner->target == index)
        owner->over |= has_come(owner);
    c->anchor = index;
    c->arrival = ++model.arrivals;
}

void spawn_into(struct mstrand *child, int node, int index)
{
    struct mscope *scope = &model.scopes[index];
    arrive(child, index);
    child->life = RUNNING;
    child->node = node;
    if (scope->cancelled)
        cancel_by(child, &scope->note, scope->noted, scope->owned);
}

/* The end of a child, seen by its scope. */
static void end_counts(struct mstrand *c)
{
    struct mscope *scope = &model.scopes[c->anchor];
    c->order = ++model.orders;
    if (c->outcome == OUT_FAILED) {
        if (scope->flags & STRAND_TOGETHER)
            by_policy(c->anchor, c);
        raised(&model.strands[scope->owner]);
    } else if ((scope->flags & STRAND_FIRST_WINS) && c->outcome == OUT_VALUE && !scope->winner) {
        scope->winner = index_of(c);
        by_policy(c->anchor, c);
    }
}

static struct exc *to_others(struct exc *e)
{
    if (e->kept) {
        struct exc *other = exc_new(&STRAND_CHILD_CANCELLED, NO_ONE);
        other->cause = e;
        other->noted = e->noted;
        other->note = e->note;
        return other;
    }
    e->kind = &STRAND_CHILD_CANCELLED;
    e->source = NO_SOURCE;
    return e;
}

void strand_ends(struct mstrand *s)
{
    MUST(s->life == RUNNING && ++s->ended == 1, "strand %d has ended twice", index_of(s));
    MUST(!s->depth && !s->cleaning, "strand %d ends inside of a block", index_of(s));
    struct exc *e = s->flight;
    s->flight = NULL;
    s->outcome = !e ? OUT_VALUE : s->cancelled ? OUT_ERROR : OUT_FAILED;
    if (e && e->kind == &STRAND_INTERRUPTED) {
        if (s->cancelled)
            s->outcome = OUT_INTERRUPTED;
        e = to_others(e);
    }
    s->exception = e;
    s->life = ENDED;
    if (s->anchor != NO_ONE)
        end_counts(s);
}

void consume(struct mstrand *c)
{
    struct mscope *scope = &model.scopes[c->anchor];
    if (scope->winner == index_of(c))
        scope->winner = 0;
    c->life = GONE;
}

void hand_to(struct mstrand *c, int index)
{
    struct mscope *to = &model.scopes[index];
    if (c->anchor == index)
        return;
    if (model.scopes[c->anchor].winner == index_of(c))
        model.scopes[c->anchor].winner = 0;
    arrive(c, index);
    c->owned = false;
    if (c->life == ENDED)
        end_counts(c);
    if (to->cancelled)
        cancel_by(c, &to->note, to->noted, to->owned);
}

bool is_above(const struct mstrand *c, int owner)
{
    for (int i = owner; i != NO_ONE; i = i ? model.scopes[model.strands[i].anchor].owner : NO_ONE)
        if (i == index_of(c))
            return true;
    return false;
}
