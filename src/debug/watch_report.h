/*
 * A report of the watchdog about a strand that is late: its content and its text.
 */
#ifndef DEBUG_WATCH_REPORT_H
#define DEBUG_WATCH_REPORT_H

#include "../../include/strand/debug.h"

#include "inspect.h"
#include "pools.h"

struct watch_report {
    strand_watchdog_report said;
    void *site; /* of the spawn; NULL: the root's */
    char name[32], pool[POOL_NAME_ROOM];
    bool pool_is_first;
    char spawned[160], where[200], section[200], scope[200];
    void *ips[FRAMES_MOST];
};

/* Record the pool. */
void watch_report_record_pool(struct watch_report *report, const struct pool *pool);
/* Record the strand's own properties in a zeroed report. The strand does not end meanwhile. */
void watch_report_name(struct watch_report *report, struct cb *c);
/* Likewise, for the strand that a thread runs, which may resume and end meanwhile: then the result is garbage. The
 * fibre is kept from being freed (readers_enter). Returns false if the strand is unknown. */
bool watch_report_inspect_fibre(struct watch_report *report, struct fibre *fibre);
/* Record its location and frames, under the same conditions. wait_ns: for the answer to a signal. */
void watch_report_inspect_runner(struct watch_report *report, struct scratch *scratch, struct thread *thread,
                                 int64_t wait_ns);
/* Record the location and frames of a strand that runs on no thread, as far as they can be known. It does not end
 * meanwhile. Otherwise returns the thread that runs it. */
struct thread *watch_report_inspect_other(struct watch_report *report, const struct view *view, struct cb *c);
/* Record how far the stop of the process is that the report is about. */
void watch_report_inspect_process(struct watch_report *report);
/* Write the whole text, for said.text; view->out is empty before. */
void watch_report_say(struct watch_report *report, const struct view *view);

#endif
