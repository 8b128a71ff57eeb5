/*
 * Holding a run, and listing its strands. The strands are found through the slabs of control blocks, not through lists
 * that may be changing. Memory comes from the system's calls, most of it before threads are held.
 */
#include "stopped_run.h"
#include "debug_layer.h"

#include "../base/sort.h"
#include "../sched/hold.h"
#include "../sched/records.h"
#include "../strand/each_strand.h"
#include "../strand/handle.h"
#include "../strand/worker.h"

#include <errno.h>
#include <string.h>

enum { MADE_MEANWHILE = 4096, PLAIN_STRAND = 1024, PLAIN_ROOM = 2048 };
#define HOLD_NS INT64_C(100000000)

/* ---- one at a time --------------------------------------------------------------------------------------- */

/* All simulated threads run on one thread of the system. */
static uintptr_t name_of(const struct thread *thread)
{
    return thread->platform ? (uintptr_t)thread : arch_thread_id();
}

int stopped_run_begin(struct thread *thread)
{
    struct runtime *runtime = runtime_of(thread);
    uintptr_t me = name_of(thread), other = 0;
    while (!atomic_compare_exchange_strong_explicit(&debug_run_of(runtime)->dumping, &other, me, memory_order_acquire,
                                                    memory_order_relaxed)) { /* [LK1] */
        if (other == me)
            return -EBUSY;
        other = 0;
        if (atomic_load_explicit(&thread->hold.asked, memory_order_relaxed))
            pool_stand_still(thread); /* for the inspection under way */
        platform_await(thread);
    }
    readers_enter(&runtime->sub.memory.readers);
    return 0;
}

void stopped_run_end(struct thread *thread)
{
    shared_fibre_readers_leave(thread);
    atomic_store_explicit(&debug_run_of(runtime_of(thread))->dumping, 0, memory_order_release); /* [LK1] */
}

/* ---- holding --------------------------------------------------------------------------------------------- */

/* In a seeded run other threads run during an inspection only if each atomic operation is a step. */
static bool others_go_on(const struct thread *thread)
{
    return thread->concurrent && (!thread->platform || thread->platform->preempts(thread->sub));
}

/* The only thread of a run uses plain writes where others would take a reference atomically, unless SIGQUIT was asked
 * for: so it must be held. */
bool stopped_run_hold(struct view *view, bool signals)
{
    struct thread *thread = view->thread;
    struct subprocess *sub = thread->sub;
    int loose = 0;
    if (others_go_on(thread))
        loose = pool_hold(thread, sub, platform_now(sub) + HOLD_NS);
    view->loose = loose != 0;
    for (struct thread *other = thread_first(sub); loose && other; other = thread_after(other))
        if (other != thread && !atomic_load_explicit(&other->hold.state, memory_order_acquire)) /* [HD1] */
            inspect_unheld(view, other, signals);
    if (loose)
        output_say(view->out, 0, "%d of the threads could not be held: what they run may be out of date\n", loose);
    if (loose && !sub->concurrent) {
        output_say(view->out, 0, "this run has one thread, which could not be held: its strands can't be inspected\n");
        return false;
    }
    arch_san_acquire(sub); /* what strands did before they were suspended or held */
    return true;
}

void stopped_run_let_go(struct thread *thread)
{
    arch_san_release(&thread->sub->pool);
    if (others_go_on(thread))
        pool_release(thread, thread->sub);
}

int stopped_run_each_run(int (*fn)(struct thread *thread, void *arg), void *arg)
{
    struct arch_run *run;
    uint64_t number = UINT64_MAX;
    int error, result = -ESRCH;
    while ((error = arch_run_use(number, &run)) == 0) {
        struct runtime *runtime = CONTAINER(run, struct runtime, listed);
        struct worker worker = {0};
        number = run->number;
        worker_open_outside(&worker, runtime);
        error = runtime->sub.platform ? -EOPNOTSUPP : fn(&worker.thread, arg);
        arch_run_unuse(run);
        if (result == -ESRCH || !result)
            result = error;
    }
    return error == -EBUSY ? error : result;
}

/* ---- the roll -------------------------------------------------------------------------------------------- */

/* Reads nothing of the strand: no thread is held yet. */
static void estimate(struct cb *c, uint64_t id, void *arg)
{
    (void)c, (void)id;
    ++*(size_t *)arg;
}

size_t roll_estimate(struct runtime *runtime)
{
    size_t count = 0;
    each_strand(runtime, estimate, &count);
    return count;
}

static void write_down(struct cb *c, uint64_t id, void *arg)
{
    struct roll *roll = arg;
    if (roll->count == roll->room) {
        roll->left_out++;
        return;
    }
    struct scope *anchor = plain_load(&c->anchor, memory_order_relaxed);
    roll->entries[roll->count++] = (struct entry){c, id, anchor ? cb_id(block_owner(&anchor->block)) : 0};
    roll->over += (atomic_load_explicit(&c->ends, memory_order_relaxed) & ENDS_OVER) != 0;
}

/* Allocate room for so many strands, and for some more. If there is no memory, the previous room stays. */
static int take(struct roll *roll, size_t count)
{
    size_t room = count + MADE_MEANWHILE, size = room * sizeof *roll->entries + (room + 1) * roll->each;
    void *memory;
    int error = arch_map(size, &memory);
    if (error)
        return error;
    roll_close(roll);
    roll->entries = memory;
    roll->beside = roll->entries + room;
    roll->room = room;
    roll->size = size;
    return 0;
}

int roll_open(struct roll *roll, struct runtime *runtime, size_t each)
{
    *roll = (struct roll){.each = each};
    return take(roll, roll_estimate(runtime));
}

void roll_close(struct roll *roll)
{
    if (roll->entries)
        arch_unmap(roll->entries, roll->size);
    roll->entries = NULL;
}

static bool comes_before(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;
    return one->owner != other->owner ? one->owner < other->owner : one->id < other->id;
}

/* Thousands of strands may have been spawned before the other threads were held. */
void roll_call(struct roll *roll, struct runtime *runtime)
{
    size_t count = roll_estimate(runtime);
    if (count > roll->room)
        (void)take(roll, count);
    roll->count = roll->over = roll->left_out = 0;
    each_strand(runtime, write_down, roll);
    sort_in_place(roll->entries, roll->count, sizeof *roll->entries, comes_before);
}

size_t roll_first_of(const struct roll *roll, uint64_t owner)
{
    size_t low = 0, high = roll->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (roll->entries[middle].owner < owner)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- without memory -------------------------------------------------------------------------------------- */

struct plain_list {
    struct output *out;
    struct thread *thread;
};

static void say_plainly(struct cb *c, uint64_t id, void *arg)
{
    struct plain_list *list = arg;
    struct output *out = list->out;
    if (out->error || !handle_ref_take(list->thread, &c->word, id))
        return;
    inspect_say_plainly(out, list->thread, c, id);
    handle_unref_cb(list->thread, c);
    if (out->room - out->used < PLAIN_STRAND) /* not with a reference to the strand */
        output_flush(out);
}

NOINLINE int list_plainly(struct thread *thread, int fd, bool logs, const char *instead_of)
{
    char room[PLAIN_ROOM];
    struct output out;
    struct plain_list list = {.out = &out, .thread = thread};
    if (thread->concurrent && !thread->sub->concurrent)
        return -ENOMEM; /* from outside: see stopped_run_hold */
    output_open_streaming(&out, fd, room, sizeof room);
    if (logs)
        output_log(&out, runtime_of(thread));
    output_say(&out, 0, "no memory for %s: a plain list of the strands, while they run\n", instead_of);
    each_strand(runtime_of(thread), say_plainly, &list);
    output_flush(&out);
    return out.error;
}
