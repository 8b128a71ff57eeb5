/*
 * One strand, looked at from outside: where it is, what it waits for, its frames. Reads, and changes nothing; takes no
 * lock, and no memory but that of `struct looker`. Page: docs/protocols/dump.md.
 */
#ifndef DEBUG_LOOK_H
#define DEBUG_LOOK_H

#include "out.h"

#include "../../include/strand/select.h"
#include "../strand/print.h"

enum { FRAMES_MOST = 48, NAMES = 1024, ASKED_MOST = 64, WORDS_MOST = 160 };

/* What a thread told that could not be held, or the system of it. */
struct told {
    struct thread *thread;
    uint64_t id; /* of the strand that it ran then */
    bool waits;  /* in the system */
    size_t used, count;
    void *ips[FRAMES_MOST];
};

struct name {
    void *ip;
    char text[PLACE_WORDS];
};

/* Memory that is taken before anybody is held. It starts as zeros. */
struct looker {
    struct name names[NAMES]; /* of functions: a cache */
    struct told told[ASKED_MOST];
    size_t told_count;
    char copy[64 * 1024];           /* of frames that may be changed while they are looked at */
    struct arch_patterns *patterns; /* in the same memory */
};

struct look {
    struct thread *thread; /* who looks */
    bool loose;            /* some of the threads could not be held */
    int64_t answers_until;
    struct looker *looker;
    struct out *out;
    struct arch_names *names; /* NULL: without lines of the source */
};

/* The report that a run is deadlocked has lines of the source (print.h: place_words): nobody waits for its end. Other
 * dumps hold a run that goes on. */
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

/* Where a strand's frames are: [context, edge) in the stack or, of an inactive one, in an image; what lies above, in
 * the stack always. */
struct place {
    struct thread *runner; /* NULL: it does not run */
    arch_context context;  /* NULL: nowhere; it runs, or has not started */
    const char *image;
    size_t size;
    uint64_t stamp; /* as long as it is the same, nobody has gone on with the strand */
    bool asked;     /* its runner was not held, but has answered */
};

/* What it does. */
enum doing { DOING_NOTHING, DOING_NOT_STARTED, DOING_RUNNING, DOING_RUNNABLE, DOING_BLOCKED };

/* The strand is pinned, for all of these. */
struct place look_place(const struct look *look, struct cb *c);
enum doing look_doing(struct cb *c, const struct place *place);
/* Bytes of stack in use; 0: not known. */
size_t look_used(const struct look *look, struct cb *c, const struct place *place);
/* Bytes that an inactive one is saved in. */
size_t look_saved(struct cb *c);
/* Its frames, innermost first; returns how many. */
size_t look_frames(const struct look *look, struct cb *c, const struct place *place, void **ips, size_t most);

/* All of it, in lines. */
void look_say(const struct look *look, struct cb *c, uint64_t id, size_t indent);
/* The same without its place and its frames; nothing but the control block is read. */
void look_say_plainly(struct out *out, struct thread *thread, struct cb *c, uint64_t id);
/* A place of the program, as place_words says it. Valid until the next call. */
const char *look_name(const struct look *look, void *ip);
void look_say_frames(const struct look *look, void *const *ips, size_t count, size_t indent);

/* A thread that could not be held is looked at while it waits in the system, or else asked by a signal what it runs. */
void look_ask(struct look *look, struct thread *thread, bool signals);
/* The same of any thread, with so much time for the answer; wait_ns 0: without a signal. False: it is not known. */
bool look_at_runner(struct looker *looker, struct thread *thread, int64_t wait_ns, struct told *told);

/* Whether the strand, which lives, waits for something. Whose wait was claimed can run. */
bool look_is_blocked(struct cb *c);
/* Whether what it waits for, which is the user's, can be looked at: nobody can give it back as long as all stand still
 * and nobody has claimed the wait. */
bool look_is_settled(const struct look *look, struct cb *c);
/* What a strand waits for, or one of the cases of its select: "waits for mutex at 0x55d0". Returns text. */
const char *look_words(const struct look *look, struct cb *c, unsigned why, uint64_t on, char *text, size_t size);

/* What it has open, of which the first OWN_KEPT words mean something. False: it is not known. */
bool look_own(const struct look *look, struct cb *c, struct own *own);
/* Of one that is settled and waits in a select: a copy of one of its cases, of which there are blocked_on. */
strand_case look_case(const struct look *look, struct cb *c, size_t index);

/* What it waits for, so far as its control block says; "runnable": nothing. Any strand that does not end meanwhile. */
void look_say_blocked(struct out *out, struct thread *thread, struct cb *c, size_t indent);

#endif
