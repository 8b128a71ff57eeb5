/*
 * Reports what keeps a pool from being idle: threads that run strands, runnable strands, timers, strands that wait for
 * the outside. Strands that wait for each other do not. Page: docs/inside.md.
 */
#include "../../include/strand/debug.h"

#include "stopped_run.h"

#include "../io/io_blocked.h"
#include "../sched/closing.h"
#include "../sched/pool.h"
#include "../sched/posts.h"
#include "../sched/resize.h"
#include "../sched/timers.h"
#include "../strand/each_strand.h"
#include "../strand/handle.h"
#include "../strand/misuse.h"
#include "../strand/pool.h"
#include "../sync/source.h"

#include <errno.h>
#include <stdio.h>

enum { FEW = 5, THING = 128 };

/* A count of strands, and the first of them. */
struct few {
    size_t count;
    struct seen {
        uint64_t id;
        char name[32], what[THING];
    } first[FEW];
};

/* What a blocked strand waits for. */
enum whom { FOR_STRANDS, FOR_TIME, FOR_OUTSIDE };

/* The findings for one pool. */
struct found {
    struct pool *pool;
    const struct opened_pool *op; /* its handle: the pool may be closed meanwhile, and then has none */
    int64_t now;
    struct few runnable, outside, timers;
    size_t waiting;           /* for strands */
    size_t outsides[REASONS]; /* the numbers of waits for the outside, by their reasons */
    bool any;                 /* something keeps it busy */
};

struct busy {
    struct view view;
    struct output out;
    struct found found;
};

/* ---- strands --------------------------------------------------------------------------------------------- */

static struct seen *see(struct few *few, const char *name, uint64_t id)
{
    if (few->count++ >= FEW)
        return NULL;
    struct seen *seen = &few->first[few->count - 1];
    seen->id = id;
    snprintf(seen->name, sizeof seen->name, "%s", name);
    return seen;
}

/* Describes where a runnable strand is. The slot of a thread that could not be held is not read. */
static void say_where(const struct busy *busy, struct cb *c, char *text, size_t size)
{
    struct fibre *fibre = c->member.fibre;
    struct runq *in = atomic_load_explicit(&fibre->in, memory_order_relaxed);
    struct pool *pool = fibre->pool;
    const struct thread *thread = in ? CONTAINER(in, struct thread, runq) : NULL;
    const char *begun = c->started ? "" : ", and has not started";
    if (fibre_is_pinned(fibre))
        snprintf(text, size, "pinned to thread %d%s", fibre->home->index, begun);
    else if (in == &pool->global)
        snprintf(text, size, "in the queue of the pool%s", begun);
    else if (in)
        snprintf(text, size, "in the %s of thread %d%s", !busy->view.loose && in->slot == fibre ? "slot" : "queue",
                 thread->index, begun);
    else
        snprintf(text, size, "%s%s", pool->scheduler_state ? "in a queue of the scheduler" : "on its way to a thread",
                 begun);
}

/* What waits of that reason have in common, if they are for the outside: "descriptors". Else NULL. */
static const char *outside_of(const struct busy *busy, unsigned blocked)
{
    return blocked_reason(runtime_of(busy->view.thread), blocked)->outside;
}

/* In a select, a case from outside counts. */
static enum whom whom_of_cases(const struct busy *busy, struct cb *c, unsigned *blocked, uint64_t *on)
{
    enum whom whom = FOR_STRANDS;
    for (uint64_t i = 0; i < c->blocked_on && whom != FOR_OUTSIDE; i++) {
        strand_case one = inspect_case(&busy->view, c, i);
        if (one.source && outside_of(busy, one.source->blocked)) {
            whom = FOR_OUTSIDE;
            *blocked = one.source->blocked;
            *on = one.object[0];
        } else if (one.source && one.source->blocked == BLOCKED_SLEEP) {
            whom = FOR_TIME;
        }
    }
    return whom;
}

static enum whom whom_of(const struct busy *busy, struct cb *c, unsigned *blocked, uint64_t *on)
{
    *blocked = c->blocked;
    *on = c->blocked_on;
    if (*blocked == BLOCKED_SELECT && inspect_is_settled(&busy->view, c))
        return whom_of_cases(busy, c, blocked, on);
    if (*blocked == BLOCKED_DESCRIPTOR && arch_watch_signals((int)*on))
        *blocked = BLOCKED_SIGNAL;
    if (outside_of(busy, *blocked))
        return FOR_OUTSIDE;
    return *blocked == BLOCKED_SLEEP ? FOR_TIME : FOR_STRANDS;
}

static void add_blocked(struct busy *busy, struct cb *c, uint64_t id)
{
    unsigned blocked;
    uint64_t on;
    enum whom whom = whom_of(busy, c, &blocked, &on);
    busy->found.waiting += whom == FOR_STRANDS;
    if (whom != FOR_OUTSIDE)
        return;
    busy->found.outsides[blocked]++;
    struct seen *seen = see(&busy->found.outside, cb_name(c), id);
    if (seen)
        inspect_words(&busy->view, c, blocked, on, seen->what, sizeof seen->what);
}

static void add_pinned(struct busy *busy, struct cb *c, uint64_t id)
{
    if (c->member.fibre->pool != busy->found.pool ||
        atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER) /* [E5] */
        return;
    if (inspect_is_blocked(c)) {
        add_blocked(busy, c, id);
        return;
    }
    struct frame_span span = inspect_span(&busy->view, c);
    struct seen *seen = span.runner ? NULL : see(&busy->found.runnable, cb_name(c), id);
    if (seen)
        say_where(busy, c, seen->what, sizeof seen->what);
}

static void add(struct cb *c, uint64_t id, void *arg)
{
    struct busy *busy = arg;
    if (!handle_ref_take(busy->view.thread, &c->word, id))
        return;
    add_pinned(busy, c, id);
    handle_unref_cb(busy->view.thread, c);
}

static void say_few(struct busy *busy, const struct few *few)
{
    for (size_t i = 0; i < few->count && i < FEW; i++)
        output_say(&busy->out, 8, "strand '%s' #%llu %s\n", few->first[i].name, (unsigned long long)few->first[i].id,
                   few->first[i].what);
    if (few->count > FEW)
        output_say(&busy->out, 8, "and %zu more\n", few->count - FEW);
}

/* ---- threads --------------------------------------------------------------------------------------------- */

/* The strand that it runs, with a reference. NULL: the strand has left meanwhile. */
static struct cb *runs_on(const struct busy *busy, struct thread *thread, struct fibre *fibre, uint64_t *id)
{
    struct member *current = plain_load(&fibre->current, memory_order_relaxed);
    struct cb *c = current ? cb_of(current) : NULL;
    if (!c || plain_load(&thread->current, memory_order_acquire) != fibre) /* [DG1] */
        return NULL;
    *id = cb_id(c);
    return handle_ref_take(busy->view.thread, &c->word, *id) ? c : NULL;
}

static void say_runner(struct busy *busy, struct thread *thread)
{
    struct fibre *fibre = plain_load(&thread->current, memory_order_acquire); /* [DG1] */
    uint64_t id = 0;
    struct cb *c = fibre ? runs_on(busy, thread, fibre, &id) : NULL;
    bool held = thread == busy->view.thread || thread->platform ||
                atomic_load_explicit(&thread->hold.state, memory_order_seq_cst); /* [HD1] */
    double ms = (double)(busy->found.now - plain_load(&thread->busy_since, memory_order_relaxed)) / 1e6;
    if (!c)
        return;
    output_say(&busy->out, 4, "thread %d (%u) runs strand '%s' #%llu%s; it has been busy for %.1f ms\n", thread->index,
               thread->os_id, cb_name(c), (unsigned long long)id,
               thread == busy->view.thread ? ", which asked for this report"
               : held                      ? ""
                                           : ", which has not switched for 100 ms",
               ms);
    handle_unref_cb(busy->view.thread, c);
    busy->found.any = true;
}

static void say_threads(struct busy *busy)
{
    for (int i = 0; i < pool_count(busy->found.pool); i++)
        say_runner(busy, busy->found.pool->threads[i]);
}

/* ---- timers ---------------------------------------------------------------------------------------------- */

static void see_timer(const struct timer *timer, int64_t when, void *arg)
{
    struct busy *busy = arg;
    bool waits = timer->type == TIMER_WAIT;
    double ms = (double)(when - busy->found.now) / 1e6;
    if (timer->type == TIMER_TRIM)
        return; /* it serves to release memory; no strand waits for it */
    struct cb *c =
        waits ? CONTAINER(timer, struct cb, wait.timer) : block_owner(&CONTAINER(timer, struct deadline, timer)->block);
    struct seen *seen = see(&busy->found.timers, cb_name(c), cb_id(c));
    if (seen)
        snprintf(seen->what, sizeof seen->what, waits ? "waits for %.1f ms more" : "has a deadline in %.1f ms", ms);
}

static void say_timers(struct busy *busy)
{
    uint32_t pending = timers_see(busy->view.thread, busy->found.pool, FEW + 1, see_timer, busy);
    pending -= busy->found.pool->trimmer.timer.node.index != HEAP_NOWHERE;
    if (!pending)
        return;
    busy->found.timers.count = pending;
    output_say(&busy->out, 4, "%u timer%s pending%s\n", pending, pending == 1 ? " is" : "s are",
               pending > 1 ? ", the next first" : "");
    say_few(busy, &busy->found.timers);
    busy->found.any = true;
}

/* ---- a pool ------------------------------------------------------------------------------------------------- */

static void say_runnable(struct busy *busy)
{
    size_t count = busy->found.runnable.count;
    if (!count)
        return;
    output_say(&busy->out, 4, "%zu strand%s can run\n", count, count == 1 ? "" : "s");
    say_few(busy, &busy->found.runnable);
    busy->found.any = true;
}

/* "1 for messages of ports, 2 for descriptors" */
static void write_outsides(const struct busy *busy, char *text, size_t size)
{
    size_t used = 0;
    for (unsigned i = 0; i < REASONS && used < size; i++)
        if (busy->found.outsides[i])
            used += (size_t)snprintf(text + used, size - used, "%s%zu for %s", used ? ", " : "",
                                     busy->found.outsides[i], outside_of(busy, i));
}

static void say_outside(struct busy *busy)
{
    char words[200];
    size_t count = busy->found.outside.count;
    if (!count)
        return;
    write_outsides(busy, words, sizeof words);
    output_say(&busy->out, 4, "%zu %s for the outside: %s\n", count, count == 1 ? "waits" : "wait", words);
    say_few(busy, &busy->found.outside);
    busy->found.any = true;
}

static void say_closing(struct busy *busy)
{
    if (atomic_load_explicit(&busy->found.pool->state, memory_order_acquire) != POOL_CLOSING) /* [PB1] */
        return;
    const struct cancel_reason *reason = busy->found.op->cancel_reason;
    output_say(&busy->out, 4, "it is closing, and waits for the ends of its strands: %llu%s%s%s%s\n",
               (unsigned long long)pool_live(busy->found.pool), reason ? "; closed by '" : "",
               reason ? reason->who : "",
               reason && reason->why[0] ? "': "
               : reason                 ? "'"
                                        : "",
               reason ? reason->why : "");
    busy->found.any = true;
}

static void inspect_one(struct busy *busy, struct pool *pool, const struct opened_pool *op)
{
    busy->found = (struct found){.pool = pool, .op = op, .now = platform_now(pool->sub)};
    output_say(&busy->out, 0, "pool '%s': %d thread%s (%s)\n", op->name, pool_threads(pool),
               pool_threads(pool) == 1 ? "" : "s", pool_scheduler_name(pool));
    each_strand(runtime_of(busy->view.thread), add, busy);
    say_threads(busy);
    say_runnable(busy);
    if (posts_any(&pool->posts)) {
        output_say(&busy->out, 4, "something has come from outside, and was not taken in yet\n");
        busy->found.any = true;
    }
    say_timers(busy);
    say_outside(busy);
    say_closing(busy);
    if (!busy->found.any)
        output_say(&busy->out, 4, "nothing: it is idle\n");
    if (busy->found.waiting)
        output_say(&busy->out, 4, "%zu %s for strands, or for actions of strands: that does not keep it busy\n",
                   busy->found.waiting, busy->found.waiting == 1 ? "waits" : "wait");
}

/* ---- the report --------------------------------------------------------------------------------------------- */

/* All pools that are open, or closing; a record in preparation has no handle. */
static void inspect_all(struct busy *busy, struct subprocess *sub)
{
    struct pool *pool = atomic_load_explicit(&sub->pools, memory_order_acquire); /* [PB1] */
    for (; pool; pool = atomic_load_explicit(&pool->older, memory_order_relaxed)) {
        const struct opened_pool *op = pool_above(pool);
        if (atomic_load_explicit(&pool->state, memory_order_acquire) != POOL_NONE && op) /* [PB1] */
            inspect_one(busy, pool, op);
    }
}

static size_t size_of_busy(void)
{
    return ((sizeof(struct busy) + 63) & ~(size_t)63) + scratch_size();
}

/* Allocate memory before threads are held. Returns 0 or a negated errno code. */
static int open_busy(struct thread *thread, int fd, struct busy **out)
{
    void *memory;
    int error = arch_map(size_of_busy(), &memory);
    if (error)
        return error;
    struct busy *busy = memory;
    error = output_open(&busy->out, fd);
    if (error) {
        arch_unmap(memory, size_of_busy());
        return error;
    }
    busy->view = (struct view){.thread = thread, .out = &busy->out};
    busy->view.scratch = (struct scratch *)(void *)((char *)memory + ((sizeof(struct busy) + 63) & ~(size_t)63));
    scratch_init(busy->view.scratch);
    *out = busy;
    return 0;
}

static int close_busy(struct busy *busy)
{
    int error = busy->out.error;
    output_flush(&busy->out);
    error = error ? error : busy->out.error;
    output_close(&busy->out);
    arch_unmap(busy, size_of_busy());
    return error;
}

static void inspect_handle(struct busy *busy, const struct opened_pool *op)
{
    struct pool *pool = pool_behind(op);
    if (pool == &pool->sub->closed)
        output_say(&busy->out, 0, "pool '%s': closed\n", op->name);
    else
        inspect_one(busy, pool, op);
}

/* only: the handle of this pool, to which the caller has a reference, or NULL for all. The reference is released before
 * the report is written: a closer waits for the reference, and the reader of the descriptor may be a strand that waits
 * for the closer. */
static int print(struct thread *thread, struct opened_pool *only, int fd)
{
    struct busy *busy;
    int error = stopped_run_begin(thread);
    bool began = !error;
    if (began)
        error = open_busy(thread, fd, &busy);
    if (!error) {
        bool still = stopped_run_hold(&busy->view, false);
        if (still && only)
            inspect_handle(busy, only);
        else if (still)
            inspect_all(busy, thread->sub);
        stopped_run_let_go(thread);
    }
    if (began)
        stopped_run_end(thread);
    if (only)
        pool_unref(only);
    if (!began)
        return error;
    if (!error)
        error = close_busy(busy);
    return error == -ENOMEM ? list_plainly(thread, fd, false, "the report of what keeps pools busy") : error;
}

static int print_one(struct thread *thread, void *arg)
{
    return print(thread, NULL, *(int *)arg);
}

int strand_busy_print(strand_pool handle, int fd)
{
    struct thread *thread = thread_self();
    if (!thread && handle.bits[1])
        MISUSE("strand_busy_print", "", "a plain thread can ask for all pools only: pass {0}");
    if (!thread)
        return stopped_run_each_run(print_one, &fd);
    if (!handle.bits[1])
        return print(thread, NULL, fd);
    return print(thread, pool_find(thread, handle, "strand_busy_print"), fd);
}
