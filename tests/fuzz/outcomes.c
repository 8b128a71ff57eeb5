/*
 * What joining and leaving come to, by the contract's §4 and the table in docs/errors.md.
 */
#include "model.h"
#include "program.h"
#include "run.h"

/* ---- joining a child ------------------------------------------------------------------------------------- */

void join_ends(struct mstrand *s, struct mstrand *c, const strand_exception *e, const void *value)
{
    if (e && strand_exception_kind(e) == &STRAND_INTERRUPTED) {
        MUST(!s->ready || s->must || s->might || source_possible(s), /* which may come while it begins */
             "the join of strand %d, which had ended, was interrupted", index_of(c));
        s->flight = interruption(s, e);
        MUST(c->outcome != OUT_FAILED || s->flight->source != BY_SCOPE || s->flight->scope != c->anchor,
             "the join of strand %d, which has failed, was interrupted by that", index_of(c));
        return;
    }
    MUST(c->life == ENDED, "strand %d was joined before its end", index_of(c));
    /* What interrupts may be a failure in the same scope, and then this child has failed as well: that comes first. */
    bool by_scope = c->outcome == OUT_FAILED && !source_certain(s, c->anchor);
    MUST(!s->must || by_scope, "the join of strand %d had to be interrupted, but: %s", index_of(c),
         e ? strand_exception_text(e) : "it returned");
    consume(c);
    if (e) {
        exc_compare(e, c->exception, "join");
        s->flight = c->exception;
        return;
    }
    MUST(c->outcome == OUT_VALUE, "the join of strand %d returned, but it ended by an exception", index_of(c));
    MUST(value == value_of(c), "strand %d returned %p, its join %p", index_of(c), value_of(c), value);
    c->taken = true;
}

/* ---- joining a scope ------------------------------------------------------------------------------------- */

/* The children that the join which ends now is about: those that arrived up to `last`. */
static bool joined(const struct mstrand *c, int scope, int last)
{
    return anchored(c, scope) && c->arrival <= last;
}

/* Returns the last arrival before those of the newest `left` children of the scope, or -1 if it has not so many. */
static int last_before(int scope, size_t left)
{
    int last = model.arrivals;
    for (; left && last > 0; last--)
        for (int i = 1; i < NODES; i++)
            left -= anchored(&model.strands[i], scope) && model.strands[i].arrival == last;
    return left ? -1 : last;
}

/* The exception that a child leaves for the join of its scope. If another strand cancelled the child before a policy
 * did, its end is expected only if the join comes after the policy. */
static struct exc *to_throw(const struct mstrand *c, const strand_exception *e)
{
    bool policy = model.scopes[c->anchor].by_policy, by_another = c->noted && c->note.why >= 0;
    if (!c->exception)
        return NULL;
    if (c->outcome != OUT_INTERRUPTED || c->exception->suppressed)
        return c->exception;
    if (c->owned || (policy && !(by_another && e && exc_holds(e, c->exception))))
        return NULL;
    return c->exception;
}

/* Whether `o`, or an exception suppressed in it, looks the same as `e`. */
static bool looks_like(const struct exc *o, const struct exc *e)
{
    bool same_note = e->noted == o->noted && e->note.who == o->note.who &&
                     (e->note.why == o->note.why || e->note.why < 0 || o->note.why < 0);
    bool same_thrower = e->thrower == NO_ONE || o->thrower == NO_ONE || e->thrower == o->thrower;
    if (same_thrower && e->kind == o->kind && e->number == o->number && e->code == o->code && (!e->noted || same_note))
        return true;
    bool found = false;
    for (const struct exc *below = o->suppressed; below && !found; below = below->next)
        found = looks_like(below, e);
    return found;
}

/* Whether the child's exception looks the same as that of a sibling, or as one that the sibling's suppresses: one call
 * has cancelled both, or both failed alike. Then the model does not know which child a thrown exception is of, unless
 * all were consumed. */
static bool looks_like_another(const struct mstrand *c)
{
    for (int i = 1; i < NODES; i++) {
        const struct mstrand *other = &model.strands[i];
        if (other != c && anchored(other, c->anchor) && other->life == ENDED && other->exception &&
            looks_like(other->exception, c->exception))
            return true;
    }
    return false;
}

static bool was_consumed(const struct mstrand *c, const strand_exception *e, bool all, bool *sure)
{
    *sure = true;
    if (to_throw(c, e)) {
        bool holds = e && exc_holds(e, c->exception);
        *sure = !holds || all || !looks_like_another(c);
        return holds && *sure;
    }
    if (c->outcome == OUT_VALUE && c->drops)
        return c->dropped > 0;
    *sure = false;
    return false;
}

/* An interrupted join has consumed some of the children. The model knows only the number of those that left no
 * trace. */
static void consume_some(int scope, const strand_exception *e, size_t left, int last)
{
    struct mstrand *unsure[NODES];
    int count = 0, known = 0;
    for (int i = 1; i < NODES; i++) {
        struct mstrand *c = &model.strands[i];
        bool sure = true;
        if (!joined(c, scope, last))
            continue;
        if (c->life == ENDED && was_consumed(c, e, !left, &sure))
            consume(c);
        else if (sure && c->life != UNKNOWN)
            known++;
        else
            unsure[count++] = c;
    }
    int of_them = (int)left - known;
    MUST(of_them >= 0 && of_them <= count, "%zu children are left after the join of scope %d; by the model %d to %d",
         left, scope, known, known + count);
    for (int i = 0; i < count; i++) {
        if (!of_them)
            consume(unsure[i]);
        else if (of_them < count || unsure[i]->life == UNKNOWN)
            unsure[i]->life = UNKNOWN;
    }
    model.scopes[scope].unknown = of_them && (of_them < count || unsure[0]->life == UNKNOWN) ? of_them : 0;
}

/* Everything to be thrown is in one tree, whose root is `first`. */
static struct exc *gather(struct exc *first, struct exc *const *others, int count)
{
    for (int i = 0; i < count; i++)
        exc_suppress(first, others[i]);
    return first;
}

static bool earlier(const struct mstrand *a, const struct mstrand *b)
{
    if ((a->outcome == OUT_FAILED) != (b->outcome == OUT_FAILED))
        return a->outcome == OUT_FAILED;
    return a->order < b->order;
}

/* Returns the exception that consumed children throw, or NULL. The contract defines the first failure, but not the
 * order of errors of cancelled children; for those the root of `e` decides. */
static struct exc *thrown_by(int scope, const strand_exception *e, bool all, int last)
{
    struct exc *thrown[NODES];
    struct mstrand *first_failure = NULL, *root = NULL;
    int count = 0;
    bool unclear = false;
    for (int i = 1; i < NODES; i++) {
        struct mstrand *c = &model.strands[i];
        bool sure = c->life == ENDED;
        if (!joined(c, scope, last) || (!sure && c->life != UNKNOWN) || !to_throw(c, e))
            continue;
        bool holds = e && exc_holds(e, c->exception);
        MUST(holds || !all || !sure, "the join of scope %d has lost the exception of strand %d", scope, i);
        if (!holds)
            continue;
        unclear |= !sure || ((!all || model.scopes[scope].by_policy) && looks_like_another(c));
        thrown[count++] = c->exception;
        if (c->outcome == OUT_FAILED && (!first_failure || earlier(c, first_failure)))
            first_failure = c;
        if (exc_same(e, c->exception) && (!root || earlier(c, root)))
            root = c;
    }
    if (!e)
        return NULL;
    MUST(root, "the join of scope %d threw something else than a child's exception: %s", scope,
         strand_exception_text(e));
    /* The order of ends is noted before they happen: on several threads another one may come between. */
    MUST(root->outcome != OUT_FAILED || root == first_failure || unclear || program.threads > 1,
         "the join of scope %d did not throw the first failure", scope);
    struct exc *all_of_them = gather(root->exception, thrown, count);
    all_of_them->loose |= unclear;
    return all_of_them;
}

void scope_join_ends(struct mstrand *s, int scope, const strand_exception *e, size_t left)
{
    bool interrupted = e && strand_exception_kind(e) == &STRAND_INTERRUPTED;
    MUST(e || !s->must, "the join of scope %d returned, and had to be interrupted", scope);
    MUST(!left || interrupted || !e, "the join of scope %d was not interrupted, but %zu children are left", scope,
         left);
    int last = model.arrivals;
    if (!e) { /* it has yielded, and children may have arrived since it found none left */
        last = last_before(scope, left);
        MUST(last >= s->arrivals, "the join of scope %d returned, and %zu children are left", scope, left);
        left = 0;
    }
    for (int i = 1; i < NODES && !left; i++)
        MUST(!joined(&model.strands[i], scope, last) || model.strands[i].life != RUNNING,
             "the join of scope %d is over, and strand %d has not ended", scope, i);
    const strand_exception *met = interrupted ? strand_exception_suppressed(e, 0) : e;
    struct exc *thrown = thrown_by(scope, met, !left, last);
    consume_some(scope, met, left, last);
    model.scopes[scope].blurred |= left > 0;
    if (met)
        exc_compare(met, thrown, "join of a scope");
    s->flight = thrown;
    if (!interrupted)
        return;
    MUST(!met || !strand_exception_suppressed(e, 1), "an interrupted join has suppressed more than one exception");
    s->flight = interruption_over(s, e);
    MUST(s->flight->source != BY_SCOPE || s->flight->scope != scope,
         "the join of scope %d was interrupted by a failure "
         "that it has to throw",
         scope);
    exc_suppress(s->flight, thrown);
}

/* ---- the first one --------------------------------------------------------------------------------------- */

struct mstrand *next_by_end(int scope, int after)
{
    struct mstrand *next = NULL;
    for (int i = 1; i < NODES; i++) {
        struct mstrand *c = &model.strands[i];
        if (anchored(c, scope) && c->life == ENDED && c->order > after && (!next || c->order < next->order))
            next = c;
    }
    return next;
}

void first_ends(struct mstrand *s, int scope, const strand_exception *e, const void *value)
{
    if (e && strand_exception_kind(e) == &STRAND_INTERRUPTED) {
        s->flight = interruption(s, e);
        return;
    }
    MUST(!s->must, "the wait for the first of scope %d had to be interrupted", scope);
    struct mstrand *winner = model.scopes[scope].winner ? &model.strands[model.scopes[scope].winner] : NULL;
    for (struct mstrand *c = next_by_end(scope, 0); c && !winner; c = next_by_end(scope, c->order))
        winner = c->outcome == OUT_VALUE ? c : NULL;
    struct exc *failure = NULL;
    for (struct mstrand *c = next_by_end(scope, 0); c; c = next_by_end(scope, c->order)) {
        MUST(c->life == ENDED, "the first of scope %d is there before strand %d has ended", scope, index_of(c));
        if (c->exception && (c->outcome != OUT_INTERRUPTED || c->exception->suppressed)) {
            if (failure)
                exc_suppress(failure, c->exception);
            else
                failure = c->exception;
        }
    }
    for (struct mstrand *c; (c = next_by_end(scope, 0));)
        consume(c);
    MUST(!anchored_count(scope), "the first of scope %d is there before all have ended", scope);
    if (winner) {
        MUST(!e, "scope %d has a first one, strand %d, but: %s", scope, index_of(winner), strand_exception_text(e));
        MUST(value == value_of(winner), "the first of scope %d is strand %d, but the value is %p", scope,
             index_of(winner), value);
        winner->taken = true;
        model.logs += failure != NULL;
        return;
    }
    MUST(e, "nobody in scope %d has returned a value, but there is a first one", scope);
    if (!failure)
        failure = exc_new(&STRAND_CHILD_CANCELLED, NO_ONE);
    exc_compare(e, s->flight = failure, "first");
}

/* ---- leaving --------------------------------------------------------------------------------------------- */

void leaving_begins(int index)
{
    struct mscope *scope = &model.scopes[index];
    struct note note = {scope->owner, -1};
    bool any = false;
    for (int i = 1; i < NODES; i++) {
        struct mstrand *c = &model.strands[i];
        if (!anchored(c, index))
            continue;
        any = true;
        if (!c->owned && !(c->life == ENDED && c->outcome == OUT_FAILED)) {
            scope->live += c->life != UNKNOWN;
            scope->live_unsure |= c->life == UNKNOWN;
        }
    }
    if (any && !scope->noted) {
        scope->noted = true;
        scope->note = note;
    }
    scope->cancelled = true;
    scope->life = LEAVING;
    for (int i = 1; i < NODES; i++)
        if (anchored(&model.strands[i], index) && !model.strands[i].cancelled)
            cancel_one(&model.strands[i], scope->note.who, scope->note.why, false);
}

struct remains {
    struct exc *failure, *errors[NODES];
    int error_count;
    bool unsure; /* there may be more: of children that nobody knows to have been consumed */
};

static void take_in(struct remains *remains, int index)
{
    for (struct mstrand *c = next_by_end(index, 0); c; c = next_by_end(index, c->order)) {
        if (c->outcome == OUT_FAILED && remains->failure)
            exc_suppress(remains->failure, c->exception);
        else if (c->outcome == OUT_FAILED)
            remains->failure = c->exception;
    }
    for (int i = 1; i < NODES; i++) {
        const struct mstrand *c = &model.strands[i];
        if (!anchored(c, index))
            continue;
        MUST(c->life != RUNNING, "scope %d was left before strand %d had ended", index, i);
        bool tells =
            c->exception && c->outcome != OUT_FAILED && (c->outcome != OUT_INTERRUPTED || c->exception->suppressed);
        if (tells && c->life == ENDED)
            remains->errors[remains->error_count++] = c->exception;
        remains->unsure |= c->life == UNKNOWN && (tells || c->outcome == OUT_FAILED);
    }
}

/* At last, because what the children left exists until then. */
static void consume_all(int index)
{
    for (int i = 1; i < NODES; i++)
        if (anchored(&model.strands[i], index))
            consume(&model.strands[i]);
}

static bool is_source(int index, const struct exc *e)
{
    return e && e->kind == &STRAND_INTERRUPTED && e->source == BY_SCOPE && e->scope == index;
}

/* The failure takes the place of the interruption that it was the cause of, and takes over what that had suppressed. */
static struct exc *swapped(struct exc *flight, struct remains *remains)
{
    struct exc *with = remains->failure ? remains->failure : flight->cause;
    remains->failure = NULL;
    exc_inherit(with, flight);
    return with;
}

void leaving_ends(int index, bool thrown)
{
    struct mscope *scope = &model.scopes[index];
    struct mstrand *owner = &model.strands[scope->owner];
    struct remains remains = {0};
    take_in(&remains, index);
    scope->life = LEFT;
    struct exc *leaves = owner->flight, *before = leaves;
    if (leaves && is_source(index, leaves))
        leaves = swapped(leaves, &remains);
    if (!before && (scope->live || (scope->live_unsure && thrown && !remains.failure))) {
        struct exc *live = exc_new(&STRAND_LIVE_STRANDS, scope->owner);
        if (remains.failure)
            exc_suppress(remains.failure, live);
        else
            leaves = live;
    }
    if (!before && remains.failure)
        leaves = remains.failure;
    else if (leaves)
        exc_suppress(leaves, remains.failure);
    if (leaves)
        leaves = gather(leaves, remains.errors, remains.error_count);
    else
        model.logs += remains.error_count > 0;
    if (leaves && (remains.unsure || (!before && scope->live_unsure && !scope->live)))
        leaves->loose = true;
    owner->flight = leaves;
    consume_all(index);
}

/* ---- deadlines ------------------------------------------------------------------------------------------- */

static bool drop_candidate(struct exc *m, int deadline)
{
    for (int i = 0; i < m->candidates; i++)
        if (m->deadlines[i] == deadline) {
            m->deadlines[i] = m->deadlines[--m->candidates];
            return true;
        }
    return false;
}

void deadline_ends(struct mstrand *s, int deadline, const strand_exception *e)
{
    struct exc *m = s->flight;
    if (!m || m->kind != &STRAND_INTERRUPTED || m->source != BY_DEADLINE || !drop_candidate(m, deadline))
        return;
    if (strand_exception_kind(e) != &STRAND_TIMED_OUT) {
        MUST(m->candidates || strand_exception_kind(e) != &STRAND_INTERRUPTED,
             "the interruption by deadline %d has passed it", deadline);
        return;
    }
    if (m->kept) {
        s->flight = exc_new(&STRAND_TIMED_OUT, index_of(s));
        s->flight->cause = m;
        return;
    }
    m->kind = &STRAND_TIMED_OUT;
    m->source = NO_SOURCE;
}
