/*
 * Supervision: decisions about children that have failed. In the supervisor's own turn. The protocol block is in
 * actor.h.
 */
#include "cell.h"
#include "deadlock.h"
#include "event_stream.h"
#include "life.h"
#include "optional.h"
#include "runners.h"

#include "../strand/exception.h"
#include "../strand/misuse.h"

#include <stdio.h>
#include <stdlib.h>

enum { RESTARTS_FEW = 8 };

static struct failure *take_failures(struct thread *thread, struct runner *r)
{
    uint64_t word = cell_lock_living(thread, r->cell);
    struct failure *newest = r->activation->failed, *ordered = NULL;
    r->activation->failed = NULL;
    cell_unlock(r->cell, word);
    while (newest) {
        struct failure *next = newest->next;
        newest->next = ordered;
        ordered = newest;
        newest = next;
    }
    return ordered;
}

static const uint32_t calls_of[] = {
    [STRAND_RESTART] = CALL_RESTART, [STRAND_RESUME] = CALL_RESUME, [STRAND_STOP] = CALL_STOP};

static bool is_guardian(const struct cell *cell)
{
    return !cell->parent || !cell->parent->parent;
}

static struct restarts *restarts_at(struct index_node *node)
{
    return node ? CONTAINER(node, struct restarts, by_child) : NULL;
}

static void forget(struct optional *optional, struct restarts *restarts)
{
    index_remove(&optional->restarts, &restarts->by_child);
    optional->restarts_count--;
    free(restarts);
}

/* Free the records of children that have ended. Called when there are twice as many records as after the last time. */
static void forget_ended(struct thread *thread, struct optional *optional)
{
    for (struct index_node *at = index_first(&optional->restarts), *next; at; at = next) {
        next = index_next(at);
        if (!cell_is_there(thread, restarts_at(at)->child))
            forget(optional, restarts_at(at));
    }
    optional->max_restarts = 2 * optional->restarts_count + RESTARTS_FEW;
}

/* Get the record of a child's restarts. NULL: no memory. */
static struct restarts *restarts_of(struct thread *thread, struct optional *optional, strand_actor child)
{
    struct restarts *found = restarts_at(index_find(&optional->restarts, child.bits[1]));
    if (found)
        return found;
    if (optional->restarts_count >= optional->max_restarts)
        forget_ended(thread, optional);
    if ((found = platform_calloc(thread, 1, sizeof *found))) {
        found->child = child;
        index_add(&optional->restarts, &found->by_child, child.bits[1]);
        optional->restarts_count++;
    }
    return found;
}

void restarts_drop(struct optional *optional)
{
    for (struct index_node *first; (first = index_first(&optional->restarts));)
        forget(optional, restarts_at(first));
}

/* The default: a child whose start fails is not restarted endlessly without a pause. */
static const struct limits of_beginnings = {
    .restarts_within_ns = STRAND_S, .backoff_ns = BEGINNING_PAUSE, .max_backoff_ns = STRAND_S};

static struct limits limits_of(const struct cell *cell)
{
    const struct optional *optional = cell_optional(cell);
    const strand_actor_class *class = cell_type(cell)->class;
    if (optional && optional->limits)
        return *optional->limits;
    return (struct limits){class->max_restarts, class->restarts_within_ns, class->backoff_ns, class->max_backoff_ns};
}

static int64_t pause_of(const struct limits *limits, unsigned restarts)
{
    int64_t pause = limits->backoff_ns, most = pause < INT64_MAX / 64 ? 64 * pause : INT64_MAX;
    if (limits->max_backoff_ns)
        most = limits->max_backoff_ns;
    while (pause && restarts-- > 1 && pause < most)
        pause = pause < most / 2 ? 2 * pause : most;
    return pause < most ? pause : most;
}

static void log_limit(struct runner *r, const struct failure *failure, const struct limits *limits)
{
    char path[64] = "", within[32] = "", text[256];
    (void)strand_actor_path(failure->child, path, sizeof path);
    if (limits->restarts_within_ns)
        snprintf(within, sizeof within, " in %g s", (double)limits->restarts_within_ns / STRAND_S);
    snprintf(text, sizeof text, "has restarted %s %u time%s%s, its limit, and %s", path, limits->max_restarts,
             limits->max_restarts == 1 ? "" : "s", within,
             is_guardian(r->cell) ? "so the system fails: give actors that fail often a parent whose class sets "
                                    ".max_restarts or .decide"
                                  : "stops it: .max_restarts and .restarts_within_ns of its class set the limit");
    event_stream_log(r, text, failure->why);
}

/* Count one more restart. Returns false if there were too many. *pause: how long it has to wait. */
static bool may_restart(struct runner *r, const struct failure *failure, int64_t *pause)
{
    struct limits limits = limits_of(r->cell);
    struct thread *thread = thread_self();
    if (!limits.max_restarts && !limits.backoff_ns && !failure->unstarted)
        return true;
    const struct limits *chosen = limits.backoff_ns || !failure->unstarted ? &limits : &of_beginnings;
    struct optional *optional = optional_of(thread, r->cell);
    struct restarts *restarts = optional ? restarts_of(thread, optional, failure->child) : NULL;
    int64_t now = platform_now(thread->sub);
    if (!restarts && !limits.max_restarts && !limits.backoff_ns) {
        *pause = chosen->backoff_ns;
        return true;
    }
    if (!restarts) {
        event_stream_log(r, "has no memory to count restarts, and stops a child that has failed", failure->why);
        return false;
    }
    if (!restarts->count || (limits.restarts_within_ns && now - restarts->since > limits.restarts_within_ns)) {
        restarts->count = 0;
        restarts->since = now;
    }
    if (chosen->restarts_within_ns && now - restarts->up > chosen->restarts_within_ns)
        restarts->tries = 0;
    restarts->count++;
    *pause = pause_of(chosen, ++restarts->tries);
    restarts->up = *pause < INT64_MAX - now ? now + *pause : INT64_MAX;
    bool may = !limits.max_restarts || restarts->count <= limits.max_restarts;
    if (!may)
        log_limit(r, failure, &limits);
    return may;
}

/* What the decisions of one call of `supervise` do to all children (`all_for_one`). The supervisor tells its children
 * once, after the last decision: so n children that fail together cost O(n). */
struct for_all {
    uint32_t calls; /* 0: nothing */
    int64_t pause;  /* the longest */
};

/* A stop outweighs a restart. */
static void add_for_all(struct for_all *all, uint32_t call, int64_t pause)
{
    if (all->calls == CALL_STOP)
        return;
    all->calls = call;
    all->pause = call == CALL_STOP || pause > all->pause ? pause : all->pause;
}

/* Decide about one child. Returns whether the failure is settled. */
static bool deal_with(struct runner *r, struct failure *failure, struct for_all *all)
{
    const strand_actor_class *class = cell_type(r->cell)->class;
    struct own_call call = {.r = r, .which = OWN_DECIDE, .failure = failure, .decided = STRAND_RESTART};
    strand_exception *e = class->decide ? life_own(&call) : NULL;
    int64_t pause = 0;
    bool resumes = call.decided == STRAND_RESUME;
    if (resumes && failure->unstarted) /* there is no state to resume with */
        call.decided = STRAND_RESTART;
    if (!e && call.decided == STRAND_RESTART && !may_restart(r, failure, &pause)) {
        call.decided = is_guardian(r->cell) ? STRAND_ESCALATE : STRAND_STOP;
        pause = 0;
    }
    if (UNLIKELY((unsigned)call.decided > STRAND_ESCALATE))
        MISUSE("strand_actor_class.decide", caller_made_actor(r, MADE_ROOM),
               "decide of the class '%s' has returned %d: return a directive, such as STRAND_RESTART",
               cell_type(r->cell)->label, (int)call.decided);
    if (e || call.decided == STRAND_ESCALATE) {
        failure->next = r->activation->escalated;
        r->activation->escalated = failure;
        deadlock_escalate(thread_self(), failure);
        e = e ? e : strand_exception_keep(failure->why);
        if (r->activation->why) { /* it has failed already, and awaits a decision */
            event_stream_failure(thread_self(), r, "has failed", e);
            strand_exception_release(e);
            deadlock_escalated_late(thread_self(), failure);
        } else {
            life_fail(r, e);
        }
        return false;
    }
    cell_decided(thread_self(), failure->child, failure->why);
    if (class->all_for_one && !resumes)
        add_for_all(all, calls_of[call.decided], pause);
    else if (call.decided == STRAND_RESTART)
        life_retry(thread_self(), r, failure, pause);
    else
        (void)cell_call_failed(thread_self(), failure->child, calls_of[call.decided],
                               resumes ? failure->why : NULL); /* it is awake */
    return true;
}

void failures_drop(struct failure *failure)
{
    for (struct failure *next; failure; failure = next) {
        next = failure->next;
        strand_exception_release(failure->why);
        free(failure);
    }
}

void supervise(struct runner *r)
{
    struct failure *failure = take_failures(thread_self(), r), *next;
    struct for_all all = {0};
    for (; failure; failure = next) {
        next = failure->next;
        failure->next = NULL;
        if (!r->activation || (r->activation->flags & (ACTIVATION_STOPPING | ACTIVATION_RESTARTING)) ||
            deal_with(r, failure, &all))
            failures_drop(failure);
    }
    if (all.calls && r->activation)
        life_call_children(r, all.calls, all.pause);
}
