/*
 * Actors, for dumps and the wait-for graph: which actor a strand runs, and which actor it waits for. These functions
 * read memory that is stable only while all threads are held: for a settled strand (inspect.h).
 */
#ifndef DEBUG_ACTORS_H
#define DEBUG_ACTORS_H

#include "output.h"

#include "../actor/actor_blocked.h"
#include "../strand/core.h"

struct cell;

/* Whether the wait is for an actor. */
static inline bool actors_are_waited_for(unsigned blocked)
{
    return blocked == BLOCKED_MAILBOX || blocked == BLOCKED_ASK || blocked == BLOCKED_ACTOR_END;
}

/* The actor that c waits for; NULL: it has ended. */
const struct cell *actors_waited_for(const struct cb *c);
/* The strand that would have to go on before the actor can do what c waits for; NULL: none, or unknown. *decides: that
 * strand has the turn of a supervisor, until whose decision the actor is suspended. */
struct cb *actors_strand(const struct cb *c, bool *decides);
/* Describe what c waits for: "waits for the answer of actor /user/till". Returns text. */
const char *actors_words(const struct cb *c, char *text, size_t size);
/* Print why no strand runs the actor that c waits for. */
void actors_say_idle(struct output *out, const struct cb *c, size_t indent);
/* Print a line, if the strand runs an actor. */
void actors_say(struct output *out, struct cb *c, size_t indent);

#endif
