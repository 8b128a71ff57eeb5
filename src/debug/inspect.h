/*
 * Inspection of one strand from outside: its location, its wait, its frames. Reads only; takes no lock, and no memory
 * but that of `struct scratch`. Page: docs/protocols/dump.md.
 */
#ifndef DEBUG_INSPECT_H
#define DEBUG_INSPECT_H

#include "output.h"

#include "../../include/strand/select.h"
#include "../strand/print.h"

enum { FRAMES_MOST = 48, NAMES = 1024, ASKED_MOST = 64, WORDS_MOST = 160 };

/* The report of a thread that could not be held, from the thread itself or from the system. */
struct sighting {
    struct thread *thread;
    uint64_t id; /* of the strand that it ran then */
    bool waits;  /* in a system call */
    size_t used, count;
    void *ips[FRAMES_MOST];
};

struct name {
    void *ip;
    char text[LOCATION_WORDS];
};

/* Memory that is allocated before threads are held. It starts as zeros. */
struct scratch {
    struct name names[NAMES]; /* a cache of function names */
    struct sighting sightings[ASKED_MOST];
    size_t sightings_count;
    char copy[64 * 1024];           /* of frames that may change during the inspection */
    struct arch_patterns *patterns; /* behind this struct */
};

/* What an inspection needs: its thread, memory and output, and how far the run is held. */
struct view {
    struct thread *thread; /* the inspecting thread */
    bool loose;            /* some of the threads could not be held */
    int64_t answers_until;
    struct scratch *scratch;
    struct output *out;
    struct arch_names *names; /* NULL: without source lines */
};

/* A report that a run is deadlocked has source lines (print.h: print_location_words): no strand waits for the report's
 * end. Other dumps hold a run that goes on. */
static inline void inspect_lines_open(struct view *view, bool wanted)
{
    view->names = wanted ? arch_names_open() : NULL;
}
static inline void inspect_lines_close(struct view *view)
{
    arch_names_close(view->names);
    view->names = NULL;
}

size_t scratch_size(void);
void scratch_init(struct scratch *scratch);

/* Where a strand's frames are: [context, edge) in the stack or, if the strand is inactive, in a saved stack; the part
 * above, always in the stack. */
struct frame_span {
    struct thread *runner; /* NULL: it does not run */
    arch_context context;  /* NULL: none, since it runs or has not started */
    const char *saved;
    size_t size;
    uint64_t stamp; /* while it stays the same, the strand has not been resumed */
    bool asked;     /* its runner was not held, but has answered */
};

/* The state of a strand. */
enum doing { DOING_NOTHING, DOING_NOT_STARTED, DOING_RUNNING, DOING_RUNNABLE, DOING_BLOCKED };

/* All of these need a reference to the strand. */
struct frame_span inspect_span(const struct view *view, struct cb *c);
enum doing inspect_doing(struct cb *c, const struct frame_span *span);
/* Bytes of stack in use; 0: unknown. */
size_t inspect_used(const struct view *view, struct cb *c, const struct frame_span *span);
/* Bytes in which an inactive strand is saved. */
size_t inspect_saved(struct cb *c);
/* Get the strand's frames, innermost first. Returns how many. */
size_t inspect_frames(const struct view *view, struct cb *c, const struct frame_span *span, void **ips, size_t most);

/* Print everything about the strand. */
void inspect_say(const struct view *view, struct cb *c, uint64_t id, size_t indent);
/* Likewise, without its location and frames; reads only the control block. */
void inspect_say_plainly(struct output *out, struct thread *thread, struct cb *c, uint64_t id);
/* Name a code address, as print_location_words does. Valid until the next call. */
const char *inspect_name(const struct view *view, void *ip);
void inspect_say_frames(const struct view *view, void *const *ips, size_t count, size_t indent);

/* Find out what a thread runs that could not be held: from the system while the thread waits there, or else by a
 * signal. */
void inspect_unheld(struct view *view, struct thread *thread, bool signals);
/* Likewise, for any thread, with a time limit for the answer; wait_ns 0: without a signal. Returns false if it is
 * unknown. */
bool inspect_runner(struct scratch *scratch, struct thread *thread, int64_t wait_ns, struct sighting *sighting);

/* Whether the strand, which lives, waits for something. Once its wait was claimed it can run. */
bool inspect_is_blocked(struct cb *c);
/* Whether the object that it waits for, which is the user's, can be read: no strand can free it while all threads are
 * held and the wait is unclaimed. */
bool inspect_is_settled(const struct view *view, struct cb *c);
static inline const struct blocked_reason *inspect_reason(const struct view *view, unsigned why)
{
    return blocked_reason(runtime_of(view->thread), why);
}
/* Describe what a strand waits for, or one of the cases of its select: "waits for mutex at 0x55d0". Returns text. */
const char *inspect_words(const struct view *view, struct cb *c, unsigned why, uint64_t on, char *text, size_t size);

/* Get the strand's open blocks and other own state, of which the first OWN_KEPT words are valid. Returns false if it is
 * unknown. */
bool inspect_own(const struct view *view, struct cb *c, struct own *own);
/* A copy of one of the cases of a settled strand that waits in a select; there are blocked_on of them. */
strand_case inspect_case(const struct view *view, struct cb *c, size_t index);

/* Print what it waits for, as far as its control block says; "runnable": nothing. Any strand that does not end
 * meanwhile. */
void inspect_say_blocked(struct output *out, struct thread *thread, struct cb *c, size_t indent);

#endif
