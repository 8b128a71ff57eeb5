/*
 * A report of the watchdog: what is said of a strand that is late, and in which words.
 */
#ifndef DEBUG_LATE_H
#define DEBUG_LATE_H

#include "../../include/strand/debug.h"

#include "look.h"
#include "pools.h"

struct late {
    struct strand_late said;
    void *site; /* of the spawn; NULL: the root's */
    char name[32], pool[POOL_NAME_ROOM];
    bool pool_is_first;
    char spawned[160], where[200], section[200];
    void *ips[FRAMES_MOST];
};

/* Which pool it is on. */
void late_note_pool(struct late *late, const struct pool *pool);
/* What of a strand is its own, into a report that is zeroed before. It does not end meanwhile. */
void late_name(struct late *late, struct cb *c);
/* The same of the strand that a thread runs, which may go on and end meanwhile: then it is nonsense. The fibre is kept
 * from being given back (opened_look_begin). False: it is not known. */
bool late_look_at_fibre(struct late *late, struct fibre *fibre);
/* Where it is, and its frames, while the same holds. wait_ns: for the answer to a signal. */
void late_look_at_runner(struct late *late, struct looker *looker, struct thread *thread, int64_t wait_ns);
/* Where it is, and its frames, of one that runs on no thread, or as much as can be known. It does not end meanwhile.
 * Returns the thread that runs it. */
struct thread *late_look_at_rest(struct late *late, const struct look *look, struct cb *c);
/* All of it in words, for said.text; look->out is empty before. */
void late_say(struct late *late, const struct look *look);

#endif
