/*
 * Inspection of one strand from outside: its location, its wait, its frames. Reads only; takes no lock, and no memory
 * but that of `struct looker`. Page: docs/protocols/dump.md.
 */
#ifndef DEBUG_LOOK_H
#define DEBUG_LOOK_H

#include "out.h"

#include "../../include/strand/select.h"
#include "../strand/print.h"

enum { FRAMES_MOST = 48, NAMES = 1024, ASKED_MOST = 64, WORDS_MOST = 160 };

/* The report of a thread that could not be held, from the thread itself or from the system. */
struct told {
    struct thread *thread;
    uint64_t id; /* of the strand that it ran then */
    bool waits;  /* in a system call */
    size_t used, count;
    void *ips[FRAMES_MOST];
};

struct name {
    void *ip;
    char text[PLACE_WORDS];
};

/* Memory that is allocated before threads are held. It starts as zeros. */
struct looker {
    struct name names[NAMES]; /* a cache of function names */
    struct told told[ASKED_MOST];
    size_t told_count;
    char copy[64 * 1024];           /* of frames that may change during the inspection */
    struct arch_patterns *patterns; /* behind this struct */
};

struct look {
    struct thread *thread; /* the inspecting thread */
    bool loose;            /* some of the threads could not be held */
    int64_t answers_until;
    struct looker *looker;
    struct out *out;
    struct arch_names *names; /* NULL: without source lines */
};

/* A report that a run is deadlocked has source lines (print.h: place_words): no strand waits for the report's end.
 * Other dumps hold a run that goes on. */
static inline void look_lines(struct look *look, bool wanted)
{
    look->names = wanted ? arch_names_open() : NULL;
}
static inline void look_over(struct look *look)
{
    arch_names_close(look->names);
    look->names = NULL;
}

size_t looker_size(void);
void looker_init(struct looker *looker);

/* Where a strand's frames are: [context, edge) in the stack or, if the strand is inactive, in a saved stack; the part
 * above, always in the stack. */
struct place {
    struct thread *runner; /* NULL: it does not run */
    arch_context context;  /* NULL: none, since it runs or has not started */
    const char *image;
    size_t size;
    uint64_t stamp; /* while it stays the same, the strand has not been resumed */
    bool asked;     /* its runner was not held, but has answered */
};

/* The state of a strand. */
enum doing { DOING_NOTHING, DOING_NOT_STARTED, DOING_RUNNING, DOING_RUNNABLE, DOING_BLOCKED };

/* For all of these the strand is pinned. */
struct place look_place(const struct look *look, struct cb *c);
enum doing look_doing(struct cb *c, const struct place *place);
/* Bytes of stack in use; 0: unknown. */
size_t look_used(const struct look *look, struct cb *c, const struct place *place);
/* Bytes in which an inactive strand is saved. */
size_t look_saved(struct cb *c);
/* Get the strand's frames, innermost first. Returns how many. */
size_t look_frames(const struct look *look, struct cb *c, const struct place *place, void **ips, size_t most);

/* Print everything about the strand. */
void look_say(const struct look *look, struct cb *c, uint64_t id, size_t indent);
/* Likewise, without its location and frames; reads only the control block. */
void look_say_plainly(struct out *out, struct thread *thread, struct cb *c, uint64_t id);
/* Name a code address, as place_words does. Valid until the next call. */
const char *look_name(const struct look *look, void *ip);
void look_say_frames(const struct look *look, void *const *ips, size_t count, size_t indent);

/* Find out what a thread runs that could not be held: from the system while the thread waits there, or else by a
 * signal. */
void look_ask(struct look *look, struct thread *thread, bool signals);
/* Likewise, for any thread, with a time limit for the answer; wait_ns 0: without a signal. Returns false if it is
 * unknown. */
bool look_at_runner(struct looker *looker, struct thread *thread, int64_t wait_ns, struct told *told);

/* Whether the strand, which lives, waits for something. Once its wait was claimed it can run. */
bool look_is_blocked(struct cb *c);
/* Whether the object that it waits for, which is the user's, can be read: no strand can free it while all threads are
 * held and the wait is unclaimed. */
bool look_is_settled(const struct look *look, struct cb *c);
/* Describe what a strand waits for, or one of the cases of its select: "waits for mutex at 0x55d0". Returns text. */
const char *look_words(const struct look *look, struct cb *c, unsigned why, uint64_t on, char *text, size_t size);

/* Get the strand's open blocks and other own state, of which the first OWN_KEPT words are valid. Returns false if it is
 * unknown. */
bool look_own(const struct look *look, struct cb *c, struct own *own);
/* A copy of one of the cases of a settled strand that waits in a select; there are blocked_on of them. */
strand_case look_case(const struct look *look, struct cb *c, size_t index);

/* Print what it waits for, as far as its control block says; "runnable": nothing. Any strand that does not end
 * meanwhile. */
void look_say_blocked(struct out *out, struct thread *thread, struct cb *c, size_t indent);

#endif
