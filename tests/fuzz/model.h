/*
 * A model of the tree, written from the contract alone. For each strand it has the anchor, the cancel and its reason,
 * the outcome, the sources that interrupt it at this moment, and the exception in flight. The program reports every
 * operation to the model when it takes place, and the model returns the possible results.
 *
 * This is possible because under a seed one strand runs at a time, and suspends only where it waits: an operation that
 * does not block is one step.
 */
#ifndef FUZZ_MODEL_H
#define FUZZ_MODEL_H

#include "program.h"

#include "strand/pool.h"

#include <stdarg.h>

enum { EXCEPTIONS = 1024, ENTRIES = 96, CANDIDATES = 16, NO_ONE = -1 };

/* Who cancelled, and why. `why` is 0 if the model does not say what the library writes there. */
struct note {
    int who; /* a strand; NO_ONE: nobody is said */
    int why;
};

enum source { NO_SOURCE, BY_CANCEL, BY_SCOPE, BY_DEADLINE };

/* An exception. Those that the library makes have no number. */
struct exc {
    const strand_kind *kind;
    int thrower; /* a strand; NO_ONE: the model does not say */
    int number;
    int code;
    bool noted;
    struct note note;
    struct exc *cause;
    struct exc *suppressed, *next; /* a list, in any order */
    struct exc *carrier; /* it stands in the list of this one: no second list takes it, as long as that exists */
    bool unsure;         /* whether it stands in a list: a child that may be gone had the carrier */
    bool kept;           /* so the library makes others of it instead of changing it */
    bool loose;          /* what is suppressed in it is not known exactly */
    enum source source;  /* of an interruption */
    int scope;           /* BY_SCOPE */
    int deadlines[CANDIDATES], candidates;
};

enum life { NEVER, RUNNING, ENDED, UNKNOWN, GONE };
enum outcome { OUT_NONE, OUT_VALUE, OUT_FAILED, OUT_ERROR, OUT_INTERRUPTED };

/* What a strand is inside of, from the outside inwards. */
enum entry_kind { IN_SCOPE, IN_DEADLINE, IN_SHIELD, IN_TRY, IN_UNWINDING };
struct entry {
    enum entry_kind kind;
    int index;          /* a scope, or a deadline's number */
    int64_t when;       /* of a deadline */
    bool holds;         /* of a deadline: for certain */
    struct exc *flight; /* IN_UNWINDING: what a clean-up runs because of */
    bool takes;         /* IN_TRY: interruptions, too */
};

struct mstrand {
    enum life life;
    enum outcome outcome;
    strand handle;
    int anchor, node;
    bool cancelled, owned, noted;
    struct note note;
    bool named, drops, taken;
    int dropped, began, ended;
    int order;   /* of its end, as its scope counts them; 0: it is not counted there */
    int arrival; /* in its scope: spawns and hand-offs, numbered in their order */
    struct exc *exception;

    struct exc *flight; /* the newest exception on its way */
    struct exc *caught; /* by the innermost handler */
    strand_exception *caught_real;
    struct exc *handled[NODES]; /* by all handlers, the innermost last */
    int handlers;
    struct exc *kept;
    strand_exception *kept_real;
    struct entry entries[ENTRIES];
    int depth;
    int cleanups[NODES], cleaning; /* registered and not yet run, the innermost last */

    /* The operation that may block. */
    enum op waits;
    int target; /* a strand or a scope */
    int64_t until;
    bool must; /* be interrupted: what it waits for had not come when a source came to hold */
    bool might;
    bool ready;   /* it had come when the operation began */
    bool over;    /* it had come, and the operation may be over, although more children have arrived since */
    int arrivals; /* the last one before it began */
};

enum scope_life { NOT_YET, OPEN, LEAVING, LEFT };
struct mscope {
    enum scope_life life;
    strand_scope handle;
    int owner;
    unsigned flags;
    bool cancelled, owned, by_policy, noted;
    struct note note;
    int winner;
    int live; /* when the leaving began */
    bool live_unsure;
    int unknown;  /* how many of the children of unknown fate are still there */
    bool blurred; /* so nobody knows which of several is its winner */
};

struct model {
    struct mstrand strands[NODES]; /* by the node that spawned them; 0: the root */
    struct mscope scopes[NODES];
    struct exc excs[EXCEPTIONS];
    int exc_count, orders, arrivals, deadlines, logs;
    bool misused;
};
extern struct model model;

/* Ends the process with the program in words. */
__attribute__((noreturn, format(printf, 1, 2))) void disagree(const char *format, ...);
#define MUST(condition, ...)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            disagree(__VA_ARGS__);                                                                                     \
    } while (0)

struct exc *exc_new(const strand_kind *kind, int thrower);
/* thrower.c: the id of the strand that threw it; 0: it has no trace. */
uint64_t thrower_of(const strand_exception *e);
void exc_suppress(struct exc *e, struct exc *pushed_aside);
/* All that `from` has suppressed. */
void exc_inherit(struct exc *e, struct exc *from);
/* The library's exception against the model's. */
void exc_compare(const strand_exception *e, const struct exc *expected, const char *where);
/* The same by itself, whatever is suppressed in it. */
bool exc_same(const strand_exception *e, const struct exc *expected);
/* Whether e, or something suppressed in it, is `expected`. */
bool exc_holds(const strand_exception *e, const struct exc *expected);
bool note_matches(const strand_exception *e, const struct note *note, bool noted);

void model_reset(void);
void entry_push(struct mstrand *s, struct entry entry);
void entry_pop(struct mstrand *s, enum entry_kind kind);
bool unwinding(const struct mstrand *s);
/* In a clean-up that runs because of an exception, and in no try block of its own. */
bool in_bare_clean_up(const struct mstrand *s);
/* Whether a deadline that the strand sees lies after `from` and before `to`. */
bool deadline_between(const struct mstrand *s, int64_t from, int64_t to);
/* Whether a source holds for certain, or perhaps, that the strand sees now; but not that of the scope `but`. */
bool source_certain(struct mstrand *s, int but);
bool source_possible(struct mstrand *s);
/* The operation was interrupted: which of the sources that may hold it can have been. */
struct exc *interruption(struct mstrand *s, const strand_exception *e);
/* As interruption, for an operation that may have received an exception before, which is suppressed. */
struct exc *interruption_over(struct mstrand *s, const strand_exception *e);

bool anchored(const struct mstrand *c, int scope);
int anchored_count(int scope);
int first_failed(int scope);
struct mstrand *next_by_end(int scope, int after);
void spawn_into(struct mstrand *child, int node, int scope);
void strand_ends(struct mstrand *s);
void consume(struct mstrand *c);
void cancel_one(struct mstrand *c, int by, int why, bool owned);
void cancel_scope(int scope, int by, int why);
void hand_to(struct mstrand *c, int scope);
bool is_above(const struct mstrand *c, int owner);
void leaving_begins(int scope);
void leaving_ends(int scope, bool thrown);

void wait_begins(struct mstrand *s, enum op op, int target, int64_t until);
void join_ends(struct mstrand *s, struct mstrand *c, const strand_exception *e, const void *value);
void scope_join_ends(struct mstrand *s, int scope, const strand_exception *e, size_t left);
void first_ends(struct mstrand *s, int scope, const strand_exception *e, const void *value);
void deadline_ends(struct mstrand *s, int deadline, const strand_exception *e);

static inline int index_of(const struct mstrand *s)
{
    return (int)(s - model.strands);
}

static inline void *value_of(const struct mstrand *s)
{
    return (void *)(uintptr_t)(0x1000 + index_of(s));
}

#endif
