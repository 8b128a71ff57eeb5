/*
 * Actors, as far as a dump and the graph of waits speak of them: what a strand runs, and which actor it waits for. All
 * of these look at what only stands still while all threads do: of a strand that is settled (look.h).
 */
#ifndef DEBUG_CELLS_H
#define DEBUG_CELLS_H

#include "out.h"

#include "../strand/core.h"

struct cell;

/* Whether it is an actor that is waited for. */
static inline bool cells_are_waited_for(unsigned blocked)
{
    return blocked == BLOCKED_MAILBOX || blocked == BLOCKED_ASK || blocked == BLOCKED_ACTOR_END;
}

/* The actor that c waits for; NULL: it has ended. */
const struct cell *cells_waited_for(const struct cb *c);
/* The strand that would have to go on before the actor can do what c waits for; NULL: none has to, or it is not known.
 */
struct cb *cells_strand(const struct cb *c);
/* What c waits for: "waits for the answer of actor /user/till". Returns text. */
const char *cells_words(const struct cb *c, char *text, size_t size);
/* A line: why no strand runs the actor that c waits for. */
void cells_say_idle(struct out *out, const struct cb *c, size_t indent);
/* A line, if the strand runs an actor. */
void cells_say(struct out *out, struct cb *c, size_t indent);

#endif
