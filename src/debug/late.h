/*
 * A report of the watchdog about a strand that is late: its content and its text.
 */
#ifndef DEBUG_LATE_H
#define DEBUG_LATE_H

#include "../../include/strand/debug.h"

#include "inspect.h"
#include "pools.h"

struct late {
    strand_late said;
    void *site; /* of the spawn; NULL: the root's */
    char name[32], pool[POOL_NAME_ROOM];
    bool pool_is_first;
    char spawned[160], where[200], section[200];
    void *ips[FRAMES_MOST];
};

/* Record the pool. */
void late_record_pool(struct late *late, const struct pool *pool);
/* Record the strand's own properties in a zeroed report. The strand does not end meanwhile. */
void late_name(struct late *late, struct cb *c);
/* Likewise, for the strand that a thread runs, which may resume and end meanwhile: then the result is garbage. The
 * fibre is kept from being freed (readers_enter). Returns false if the strand is unknown. */
bool late_inspect_fibre(struct late *late, struct fibre *fibre);
/* Record its location and frames, under the same conditions. wait_ns: for the answer to a signal. */
void late_inspect_runner(struct late *late, struct scratch *scratch, struct thread *thread, int64_t wait_ns);
/* Record the location and frames of a strand that runs on no thread, as far as they can be known. It does not end
 * meanwhile. Otherwise returns the thread that runs it. */
struct thread *late_inspect_other(struct late *late, const struct view *view, struct cb *c);
/* Write the whole text, for said.text; view->out is empty before. */
void late_say(struct late *late, const struct view *view);

#endif
