/*
 * The model's exceptions, and how they are compared with the library's: the same kind, number, code, note and thrower,
 * and in the suppressed lists, taken as one, the same again, each exactly once. How those lists are nested, nobody
 * promises.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

struct exc *exc_new(const strand_kind *kind, int thrower)
{
    MUST(model.exc_count < EXCEPTIONS, "the model has no room for so many exceptions");
    struct exc *e = &model.excs[model.exc_count++];
    *e = (struct exc){.kind = kind, .thrower = thrower, .note.who = NO_ONE};
    return e;
}

static bool reaches(const struct exc *from, const struct exc *to)
{
    if (from == to || (from->cause && reaches(from->cause, to)))
        return true;
    for (const struct exc *s = from->suppressed; s; s = s->next)
        if (reaches(s, to))
            return true;
    return false;
}

static void forget_cause(struct exc *from, const struct exc *e)
{
    if (from->cause == e && !from->kept)
        from->cause = NULL;
    if (from->cause)
        forget_cause(from->cause, e);
    for (struct exc *s = from->suppressed; s; s = s->next)
        forget_cause(s, e);
}

static bool carries(const struct exc *from, const struct exc *e)
{
    return from && reaches(from, e);
}

static bool has(const struct mstrand *s, const struct exc *e, bool may_be_gone)
{
    bool left = s->life == ENDED || (may_be_gone && s->life == UNKNOWN);
    bool found = carries(s->flight, e) || carries(s->kept, e) || (left && carries(s->exception, e));
    for (int i = 0; i < s->depth; i++)
        found |= carries(s->entries[i].flight, e);
    for (int i = 0; i < s->handlers; i++)
        found |= carries(s->handled[i], e);
    return found;
}

/* Whether a strand has e, or an exception that carries e. What a strand has kept exists until the end of the run. */
static bool exists(const struct exc *e, bool may_be_gone)
{
    for (int i = 0; i < NODES; i++)
        if (has(&model.strands[i], e, may_be_gone))
            return true;
    return false;
}

/* Whether e stands in a list. A list ends with its exception. */
static bool is_listed(struct exc *e)
{
    if (!e->carrier || exists(e->carrier, false))
        return e->carrier;
    e->unsure |= exists(e->carrier, true);
    return false;
}

/* What carries e itself is not taken, but for interruptions that e was the cause of: they forget that. */
static void take(struct exc *e, struct exc *pushed_aside)
{
    forget_cause(pushed_aside, e);
    pushed_aside->carrier = reaches(pushed_aside, e) ? NULL : e;
    if (!pushed_aside->carrier)
        return;
    pushed_aside->next = e->suppressed;
    e->suppressed = pushed_aside;
}

void exc_suppress(struct exc *e, struct exc *pushed_aside)
{
    bool is_cause = pushed_aside == e->cause && e->source == NO_SOURCE; /* an interruption may lose its cause */
    if (!pushed_aside || pushed_aside == e || is_cause || is_listed(pushed_aside))
        return;
    e->loose |= pushed_aside->unsure;
    if (!pushed_aside->unsure)
        take(e, pushed_aside);
}

void exc_inherit(struct exc *e, struct exc *from)
{
    struct exc *s = from->suppressed;
    from->suppressed = NULL;
    for (struct exc *next; s; s = next) {
        next = s->next;
        take(e, s);
    }
}

static void name_of(int who, char *name, size_t size)
{
    if (who == NO_ONE)
        name[0] = '\0';
    else if (model.strands[who].named)
        snprintf(name, size, "s%d", who);
    else
        snprintf(name, size, "%s", who ? "strand" : "root");
}

bool note_matches(const strand_exception *e, const struct note *note, bool noted)
{
    char who[32], why[32] = "";
    name_of(noted ? note->who : NO_ONE, who, sizeof who);
    if (strcmp(strand_exception_who(e), who) != 0)
        return false;
    if (note->why > 0)
        snprintf(why, sizeof why, "by node %d", note->why);
    return !noted || note->why < 0 || strcmp(strand_exception_why(e), why) == 0;
}

static int number_in(const strand_exception *e)
{
    int number = 0;
    return sscanf(strand_exception_text(e), "thrown by node %d", &number) == 1 ? number : 0;
}

/* Two children may end by exceptions that look alike. */
static bool same_thrower(const strand_exception *e, const struct exc *expected)
{
    uint64_t real = thrower_of(e);
    uint64_t id = expected->thrower == NO_ONE ? 0 : strand_id(model.strands[expected->thrower].handle);
    return !real || !id || real == id;
}

bool exc_same(const strand_exception *e, const struct exc *expected)
{
    if (!same_thrower(e, expected))
        return false;
    if (strand_exception_kind(e) != expected->kind || number_in(e) != expected->number ||
        strand_exception_code(e) != expected->code)
        return false;
    if (expected->kind == &STRAND_INTERRUPTED || expected->kind == &STRAND_CHILD_CANCELLED)
        return note_matches(e, &expected->note, expected->noted);
    return true;
}

struct flat {
    const strand_exception *real[EXCEPTIONS];
    const struct exc *expected[EXCEPTIONS];
    int taken[EXCEPTIONS]; /* 1 + the place of the expected one that a real one is matched with */
    bool seen[EXCEPTIONS];
    int reals, expecteds;
    bool loose;
};

static void flatten_real(struct flat *flat, const strand_exception *e)
{
    const strand_exception *s;
    for (size_t i = 0; (s = strand_exception_suppressed(e, i)); i++) {
        MUST(flat->reals < EXCEPTIONS, "a suppressed list does not end");
        flat->real[flat->reals++] = s;
        flatten_real(flat, s);
    }
}

static void flatten_expected(struct flat *flat, const struct exc *e)
{
    flat->loose |= e->loose;
    for (const struct exc *s = e->suppressed; s; s = s->next) {
        flat->expected[flat->expecteds++] = s;
        flatten_expected(flat, s);
    }
}

static void print_real(const strand_exception *e, int depth)
{
    fprintf(stderr, "%*s%s: %s (%s, %s)\n", 2 * depth, "", strand_exception_kind(e)->name, strand_exception_text(e),
            strand_exception_who(e), strand_exception_why(e));
    const strand_exception *s;
    for (size_t i = 0; (s = strand_exception_suppressed(e, i)); i++)
        print_real(s, depth + 1);
}

static void print_expected(const struct exc *e, int depth)
{
    fprintf(stderr, "%*s%s: by node %d (%d, %d)%s\n", 2 * depth, "", e->kind->name, e->number,
            e->noted ? e->note.who : NO_ONE, e->noted ? e->note.why : 0, e->loose ? ", and perhaps more" : "");
    for (const struct exc *s = e->suppressed; s; s = s->next)
        print_expected(s, depth + 1);
}

static __attribute__((noreturn)) void differ(const strand_exception *e, const struct exc *expected, const char *where)
{
    fprintf(stderr, "fuzz: the exception is\n");
    print_real(e, 1);
    fprintf(stderr, "fuzz: by the model it is\n");
    print_expected(expected, 1);
    disagree("%s: another exception than expected", where);
}

/* Matches an expected exception with a real one, and moves earlier matches out of the way. Several real ones may fit:
 * the model does not know every reason, and an exception without a trace does not say which strand threw it. */
static bool match(struct flat *flat, int expected)
{
    for (int i = 0; i < flat->reals; i++) {
        if (flat->seen[i] || !exc_same(flat->real[i], flat->expected[expected]))
            continue;
        flat->seen[i] = true;
        if (!flat->taken[i] || match(flat, flat->taken[i] - 1)) {
            flat->taken[i] = 1 + expected;
            return true;
        }
    }
    return false;
}

void exc_compare(const strand_exception *e, const struct exc *expected, const char *where)
{
    static struct flat flat; /* too large for a strand's stack; nothing here suspends */
    MUST(expected, "%s: an exception '%s', and by the model there is none", where, strand_exception_text(e));
    memset(&flat, 0, sizeof flat);
    flatten_real(&flat, e);
    flatten_expected(&flat, expected);
    if (!exc_same(e, expected))
        differ(e, expected, where);
    if (expected->kind == &STRAND_INTERRUPTED && expected->source == BY_SCOPE && expected->cause &&
        (!strand_exception_cause(e) || !exc_same(strand_exception_cause(e), expected->cause)))
        differ(e, expected, where);
    if (flat.loose)
        return;
    if (flat.reals != flat.expecteds)
        differ(e, expected, where);
    for (int i = 0; i < flat.expecteds; i++) {
        memset(flat.seen, 0, sizeof flat.seen);
        if (!match(&flat, i))
            differ(e, expected, where);
    }
}

bool exc_holds(const strand_exception *e, const struct exc *expected)
{
    if (exc_same(e, expected))
        return true;
    const strand_exception *s;
    for (size_t i = 0; (s = strand_exception_suppressed(e, i)); i++)
        if (exc_holds(s, expected))
            return true;
    return false;
}
