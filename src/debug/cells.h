/*
 * Actors, for dumps and the wait-for graph: which actor a strand runs, and which actor it waits for. These functions
 * read memory that is stable only while all threads are held: for a settled strand (inspect.h).
 */
#ifndef DEBUG_CELLS_H
#define DEBUG_CELLS_H

#include "out.h"

#include "../strand/core.h"

struct cell;

/* Whether the wait is for an actor. */
static inline bool cells_are_waited_for(unsigned blocked)
{
    return blocked == BLOCKED_MAILBOX || blocked == BLOCKED_ASK || blocked == BLOCKED_ACTOR_END;
}

/* The actor that c waits for; NULL: it has ended. */
const struct cell *cells_waited_for(const struct cb *c);
/* The strand that would have to go on before the actor can do what c waits for; NULL: none, or unknown. */
struct cb *cells_strand(const struct cb *c);
/* Describe what c waits for: "waits for the answer of actor /user/till". Returns text. */
const char *cells_words(const struct cb *c, char *text, size_t size);
/* Print why no strand runs the actor that c waits for. */
void cells_say_idle(struct out *out, const struct cb *c, size_t indent);
/* Print a line, if the strand runs an actor. */
void cells_say(struct out *out, struct cb *c, size_t indent);

#endif
