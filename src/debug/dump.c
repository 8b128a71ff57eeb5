/*
 * All strands of a run in words. The other threads are held at their next tick, so that what they run stands still; the
 * strands are found through the slabs of control blocks, not through lists that somebody may be changing, and pinned
 * while they are printed; memory is taken by the system's calls, not malloc's, and most of it before anybody is held.
 * Page: docs/protocols/dump.md.
 */
#include "../../include/strand/debug.h"

#include "group.h"
#include "look.h"
#include "out.h"
#include "pools.h"

#include "../strand/all.h"
#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/misuse.h"
#include "../strand/print.h"
#include "../strand/run.h"

#include <errno.h>

enum { SINGLE_MOST = 100, MADE_MEANWHILE = 4096, PLAIN_ROOM = 2048, PLAIN_STRAND = 1024 };
#define HOLD_NS INT64_C(100000000)

struct entry {
    struct cb *c;
    uint64_t id, owner; /* owner: of its anchor; 0 for the root */
};

struct dump {
    struct look look;
    struct out out;
    struct runtime *runtime;
    bool signals;
    size_t count, over; /* over: of them have ended, and nobody has consumed them */
    size_t left_out;    /* of them came when there was no room any more */
    void *memory;
    size_t memory_size;
    /* One by one. */
    struct entry *entries;
    size_t room, entries_size;
    size_t *path; /* of the walk: the next entry to print at each depth */
    /* Or grouped. */
    struct groups *groups;
};

/* ---- finding the strands --------------------------------------------------------------------------------- */

static void count(struct cb *c, uint64_t id, void *arg)
{
    struct dump *dump = arg;
    (void)id;
    dump->count++;
    dump->over += (atomic_load_explicit(&c->ends, memory_order_relaxed) & ENDS_OVER) != 0;
}

/* Nothing of it is read: nobody is held yet. */
static void estimate(struct cb *c, uint64_t id, void *arg)
{
    struct dump *dump = arg;
    (void)c, (void)id;
    dump->count++;
}

static void collect(struct cb *c, uint64_t id, void *arg)
{
    struct dump *dump = arg;
    if (dump->count == dump->room) {
        dump->left_out++;
        return;
    }
    struct scope *anchor = __atomic_load_n(&c->anchor, __ATOMIC_RELAXED);
    dump->entries[dump->count] = (struct entry){c, id, anchor ? cb_id(anchor->block.owner) : 0};
    count(c, id, dump);
}

/* ---- one by one, as a tree ------------------------------------------------------------------------------- */

static bool is_before(const struct entry *a, const struct entry *b)
{
    return a->owner != b->owner ? a->owner < b->owner : a->id < b->id;
}

/* The entry at `at` goes down to its place in the heap of `count`, in which the last one stands on top. */
static void sift(struct entry *entries, size_t at, size_t count)
{
    struct entry moved = entries[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&entries[child], &entries[child + 1]))
            child++;
        if (!is_before(&moved, &entries[child]))
            break;
        entries[at] = entries[child];
    }
    entries[at] = moved;
}

/* By owner, then by id. In place: qsort asks malloc. */
static void sort(struct entry *entries, size_t count)
{
    for (size_t at = count / 2; at-- > 0;)
        sift(entries, at, count);
    while (count-- > 1) {
        struct entry last = entries[0];
        entries[0] = entries[count];
        entries[count] = last;
        sift(entries, 0, count);
    }
}

/* The first entry with this owner. */
static size_t first_of(const struct dump *dump, uint64_t owner)
{
    size_t low = 0, high = dump->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (dump->entries[middle].owner < owner)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void say_strand(struct dump *dump, const struct entry *entry, size_t depth)
{
    struct thread *thread = dump->look.thread;
    if (!pin(thread, &entry->c->word, entry->id))
        return; /* it is gone: somebody could not be held */
    look_say(&dump->look, entry->c, entry->id, depth * 2);
    unpin_cb(thread, entry->c);
}

/* Depth first, without recursion: the tree may be deeper than the caller's stack. */
static void walk(struct dump *dump)
{
    size_t depth = 0;
    dump->path[0] = first_of(dump, 0);
    uint64_t owner = 0;
    for (;;) {
        size_t at = dump->path[depth];
        if (at < dump->count && dump->entries[at].owner == owner) {
            say_strand(dump, &dump->entries[at], depth);
            owner = dump->entries[at].id;
            dump->path[++depth] = first_of(dump, owner);
        } else {
            if (depth-- == 0)
                break;
            owner = dump->entries[dump->path[depth]].owner;
            dump->path[depth]++;
        }
    }
}

/* ---- grouped --------------------------------------------------------------------------------------------- */

static void add_to_group(struct cb *c, uint64_t id, void *arg)
{
    struct dump *dump = arg;
    if (!pin(dump->look.thread, &c->word, id))
        return;
    count(c, id, dump);
    groups_add(dump->groups, &dump->look, c, id);
    unpin_cb(dump->look.thread, c);
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* Room for all that were counted, and for some more. What there was stays if there is no memory for that. */
static int take_list(struct dump *dump)
{
    size_t room = dump->count + MADE_MEANWHILE, size = room * sizeof *dump->entries + (room + 1) * sizeof *dump->path;
    void *memory;
    int error = arch_map(size, &memory);
    if (error)
        return error;
    if (dump->entries)
        arch_unmap(dump->entries, dump->entries_size);
    dump->entries = memory;
    dump->path = (size_t *)(void *)(dump->entries + room);
    dump->room = room;
    dump->entries_size = size;
    return 0;
}

static void give_memory(struct dump *dump)
{
    out_close(&dump->out);
    if (dump->memory)
        arch_unmap(dump->memory, dump->memory_size);
    if (dump->entries)
        arch_unmap(dump->entries, dump->entries_size);
}

static int take_memory(struct dump *dump, bool grouped)
{
    size_t looker = (looker_size() + 63) & ~(size_t)63;
    dump->memory_size = looker + (grouped ? groups_size() : 0);
    int error = out_open(&dump->out, dump->out.fd);
    if (!error)
        error = arch_map(dump->memory_size, &dump->memory);
    if (!error && !grouped)
        error = take_list(dump);
    if (error) {
        give_memory(dump);
        return error;
    }
    dump->look.looker = dump->memory;
    dump->look.out = &dump->out;
    looker_init(dump->look.looker);
    if (grouped)
        dump->groups = (struct groups *)(void *)((char *)dump->memory + looker);
    return 0;
}

/* ---- holding everybody, and looking ---------------------------------------------------------------------- */

/* False: the strands can't be looked at. The only thread of a run writes what others pin without an atomic operation,
 * unless SIGQUIT was asked for. */
static bool hold(struct dump *dump)
{
    struct thread *thread = dump->look.thread;
    struct subprocess *sub = thread->sub;
    if (!thread->shared || thread->driver)
        return true;
    int loose = pool_hold(thread, sub, driver_now(sub) + HOLD_NS);
    dump->look.loose = loose != 0;
    for (struct thread *other = thread_first(sub); loose && other; other = thread_after(other))
        if (other != thread && !atomic_load_explicit(&other->held, memory_order_acquire))
            look_ask(&dump->look, other, dump->signals);
    if (loose)
        out_say(&dump->out, 0, "%d of the threads could not be held: what they run may be out of date\n", loose);
    return !loose || sub->shared;
}

static void let_go(struct dump *dump)
{
    struct thread *thread = dump->look.thread;
    if (thread->shared && !thread->driver)
        pool_release(thread, thread->sub);
}

/* Strands may have been made by the thousand until the others were held. */
static void list_all(struct dump *dump)
{
    dump->count = 0;
    each_strand(dump->runtime, estimate, dump);
    if (dump->count > dump->room)
        (void)take_list(dump);
    dump->count = 0;
    each_strand(dump->runtime, collect, dump);
}

static void look(struct dump *dump)
{
    struct runtime *runtime = dump->runtime;
    if (!hold(dump)) {
        out_say(&dump->out, 0, "this run has one thread only: its strands can't be looked at before that is held\n");
        let_go(dump);
        return;
    }
    arch_note_acquire(&runtime->sub); /* what strands did before they were left, or held */
    dump->count = dump->over = 0;
    if (dump->groups)
        each_strand(runtime, add_to_group, dump);
    else
        list_all(dump);
    pools_say(&dump->out, &runtime->sub, dump->count + dump->left_out - dump->over, dump->over);
    if (dump->left_out)
        out_say(&dump->out, 0, "%zu of them are left out: there was no room for them\n", dump->left_out);
    if (dump->groups) {
        groups_say(dump->groups, &dump->look);
    } else {
        sort(dump->entries, dump->count);
        walk(dump);
    }
    arch_note_release(&runtime->sub.pool);
    let_go(dump);
}

/* ---- without memory -------------------------------------------------------------------------------------- */

struct plain_list {
    struct out out;
    struct thread *thread;
};

static void say_plainly(struct cb *c, uint64_t id, void *arg)
{
    struct plain_list *list = arg;
    if (list->out.error || !pin(list->thread, &c->word, id))
        return;
    look_say_plainly(&list->out, list->thread, c, id);
    unpin_cb(list->thread, c);
    if (list->out.room - list->out.used < PLAIN_STRAND) /* not while it is pinned */
        out_flush(&list->out);
}

/* Nobody is held, since a slow reader would hold them then. */
static NOINLINE int list_plainly(struct thread *thread, struct runtime *runtime, int fd)
{
    if (thread->shared && !runtime->sub.shared)
        return -ENOMEM; /* from outside: see hold */
    char room[PLAIN_ROOM];
    struct plain_list list = {.thread = thread};
    out_open_streaming(&list.out, fd, room, sizeof room);
    out_say(&list.out, 0, "no memory for a dump: a plain list of the strands, while they run\n");
    each_strand(runtime, say_plainly, &list);
    out_flush(&list.out);
    return list.out.error;
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

/* Played threads are one of the system's. */
static uintptr_t name_of(const struct thread *thread)
{
    return thread->driver ? (uintptr_t)thread : arch_thread_id();
}

/* -EBUSY: a dump of this thread's is under way, and a handler has interrupted it. */
static int begin(struct thread *thread, struct runtime *runtime)
{
    uintptr_t me = name_of(thread), other = 0;
    while (!atomic_compare_exchange_strong_explicit(&runtime->dumping, &other, me, memory_order_acquire,
                                                    memory_order_relaxed)) {
        if (other == me)
            return -EBUSY;
        other = 0;
        if (atomic_load_explicit(&thread->hold, memory_order_relaxed))
            pool_stand_still(thread); /* for the dump that is under way */
        driver_await(thread);
    }
    opened_look_begin(&runtime->sub);
    return 0;
}

static void end(struct thread *thread, struct runtime *runtime)
{
    opened_look_end(thread);
    atomic_store_explicit(&runtime->dumping, 0, memory_order_release);
}

static bool is_grouped(const struct dump *dump, const strand_dump_options *options)
{
    if (options->grouping == STRAND_DUMP_AUTO)
        return dump->count > SINGLE_MOST;
    return options->grouping == STRAND_DUMP_GROUPED;
}

/* title: said before all else. Of a run that the caller's thread is none of, there may be no more than that. */
static int dump_with(struct thread *thread, int fd, const strand_dump_options *options, const char *title)
{
    struct runtime *runtime = runtime_of(thread);
    struct dump dump = {.look.thread = thread, .out.fd = fd, .runtime = runtime, .signals = !options->no_signals};
    int error = begin(thread, runtime);
    if (error)
        return error;
    each_strand(runtime, estimate, &dump);
    error = take_memory(&dump, is_grouped(&dump, options));
    if (!error) {
        if (*title)
            out_say(&dump.out, 0, "%s\n", title);
        look(&dump);
    }
    end(thread, runtime);
    if (error)
        return list_plainly(thread, runtime, fd);
    error = dump.out.error;
    out_flush(&dump.out);
    if (!error)
        error = dump.out.error;
    give_memory(&dump);
    return error == -ENOMEM ? list_plainly(thread, runtime, fd) : error;
}

int dump_from(struct thread *thread, int fd)
{
    const strand_dump_options none = {.size = sizeof none};
    return dump_with(thread, fd, &none, "");
}

void dump_on_quit(struct thread *thread, int fd)
{
    const strand_dump_options none = {.size = sizeof none};
    (void)dump_with(thread, fd, &none, "libstrand: SIGQUIT");
}

/* From a thread that is none of any run's: all runs, the newest first. */
static int dump_runs(int fd, const strand_dump_options *options)
{
    struct arch_run *run;
    uint64_t number = UINT64_MAX;
    int error, result = -ESRCH;
    while ((error = arch_run_use(number, &run)) == 0) {
        struct runtime *runtime = CONTAINER(run, struct runtime, listed);
        struct worker worker = {0};
        number = run->number;
        worker_open_outside(&worker, runtime);
        error = runtime->sub.driver ? -EOPNOTSUPP : dump_with(&worker.thread, fd, options, "");
        arch_run_unuse(run);
        if (result == -ESRCH || !result)
            result = error;
    }
    return error == -EBUSY ? error : result;
}

int strand_dump(int fd, const strand_dump_options *asked)
{
    struct thread *thread = thread_self();
    strand_dump_options options = {.size = sizeof options};
    if (asked && (asked->size < sizeof asked->size || asked->size > 4096))
        MISUSE("strand_dump", "", "strand_dump_options.size is %zu, not sizeof(strand_dump_options)", asked->size);
    if (asked)
        memcpy(&options, asked, asked->size < sizeof options ? asked->size : sizeof options);
    if ((unsigned)options.grouping > STRAND_DUMP_GROUPED)
        MISUSE("strand_dump", "", "strand_dump_options.grouping is %d", (int)options.grouping);
    return thread ? dump_with(thread, fd, &options, "") : dump_runs(fd, &options);
}
