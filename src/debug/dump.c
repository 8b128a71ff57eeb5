/*
 * Prints all strands of a run. The other threads are held at their next tick, so that what they run does not change.
 * A reference keeps each strand while it is printed. Memory comes from the system's calls, not from malloc, and most of
 * it before threads are held. Page: docs/protocols/dump.md.
 */
#include "../../include/strand/debug.h"

#include "debug_layer.h"
#include "pools.h"
#include "stopped_run.h"
#include "trace_groups.h"

#include "../strand/each_strand.h"
#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"

#include <errno.h>

enum { SINGLE_MOST = 100 };

struct dump {
    struct view view;
    struct output out;
    struct runtime *runtime;
    bool signals;
    size_t count, over; /* grouped: as in the roll */
    void *memory;
    size_t memory_size;
    struct roll roll;      /* one by one; beside each: for the walk, the next entry to print at that depth */
    struct groups *groups; /* or grouped */
};

/* ---- one by one, as a tree ------------------------------------------------------------------------------- */

static void say_strand(struct dump *dump, const struct entry *entry, size_t depth)
{
    struct thread *thread = dump->view.thread;
    if (!handle_ref_take(thread, &entry->c->word, entry->id))
        return; /* it is gone: some thread could not be held */
    inspect_say(&dump->view, entry->c, entry->id, depth * 2);
    handle_unref_cb(thread, entry->c);
}

/* Depth first, without recursion: the tree may be deeper than the caller's stack. */
static void walk(struct dump *dump)
{
    size_t depth = 0;
    const struct roll *roll = &dump->roll;
    size_t *path = roll->beside;
    path[0] = roll_first_of(roll, 0);
    uint64_t owner = 0;
    for (;;) {
        size_t at = path[depth];
        if (at < roll->count && roll->entries[at].owner == owner) {
            say_strand(dump, &roll->entries[at], depth);
            owner = roll->entries[at].id;
            path[++depth] = roll_first_of(roll, owner);
        } else {
            if (depth-- == 0)
                break;
            owner = roll->entries[path[depth]].owner;
            path[depth]++;
        }
    }
}

/* ---- grouped ------------------------------------------------------------------------------------------------ */

static void add_to_group(struct cb *c, uint64_t id, void *arg)
{
    struct dump *dump = arg;
    if (!handle_ref_take(dump->view.thread, &c->word, id))
        return;
    dump->count++;
    dump->over += (atomic_load_explicit(&c->ends, memory_order_relaxed) & ENDS_OVER) != 0;
    trace_groups_add(dump->groups, &dump->view, c, id);
    handle_unref_cb(dump->view.thread, c);
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

static void give_memory(struct dump *dump)
{
    output_close(&dump->out);
    if (dump->memory)
        arch_unmap(dump->memory, dump->memory_size);
    roll_close(&dump->roll);
}

static int take_memory(struct dump *dump, bool grouped)
{
    size_t scratch = (scratch_size() + 63) & ~(size_t)63;
    dump->memory_size = scratch + (grouped ? trace_groups_size() : 0);
    int error = output_open(&dump->out, dump->out.fd);
    if (!error)
        error = arch_map(dump->memory_size, &dump->memory);
    if (!error && !grouped)
        error = roll_open(&dump->roll, dump->runtime, sizeof(size_t));
    if (error) {
        give_memory(dump);
        return error;
    }
    dump->view.scratch = dump->memory;
    dump->view.out = &dump->out;
    scratch_init(dump->view.scratch);
    if (grouped)
        dump->groups = (struct groups *)(void *)((char *)dump->memory + scratch);
    return 0;
}

/* ---- holding and printing ----------------------------------------------------------------------------------- */

static void say_all(struct dump *dump)
{
    struct runtime *runtime = dump->runtime;
    struct roll *roll = &dump->roll;
    if (dump->groups)
        each_strand(runtime, add_to_group, dump);
    else
        roll_call(roll, runtime);
    size_t count = dump->count + roll->count + roll->left_out, over = dump->over + roll->over;
    pools_say(&dump->out, &runtime->sub, count - over, over);
    if (roll->left_out)
        output_say(&dump->out, 0, "%zu of them are left out: there was no room for them\n", roll->left_out);
    if (dump->groups)
        trace_groups_say(dump->groups, &dump->view);
    else
        walk(dump);
}

static void view(struct dump *dump, bool lines)
{
    inspect_lines_open(&dump->view, lines);
    if (stopped_run_hold(&dump->view, dump->signals))
        say_all(dump);
    stopped_run_let_go(dump->view.thread);
    inspect_lines_close(&dump->view);
}

/* ---- the dump ----------------------------------------------------------------------------------------------- */

static bool is_grouped(struct runtime *runtime, const strand_dump_options *options)
{
    if (options->grouping == STRAND_DUMP_AUTO)
        return roll_estimate(runtime) > SINGLE_MOST;
    return options->grouping == STRAND_DUMP_GROUPED;
}

/* title: printed first; if the run can't be inspected from the caller's thread, nothing else may follow. logs: to the
 * log, instead of the descriptor. */
static int dump_with(struct thread *thread, int fd, const strand_dump_options *options, const char *title, bool logs)
{
    struct runtime *runtime = runtime_of(thread);
    struct dump dump = {.view.thread = thread, .out.fd = fd, .runtime = runtime, .signals = !options->no_signals};
    int error = stopped_run_begin(thread);
    if (error)
        return error;
    error = take_memory(&dump, is_grouped(runtime, options));
    if (!error) {
        if (logs)
            output_log(&dump.out, runtime);
        if (*title)
            output_say(&dump.out, 0, "%s\n", title);
        view(&dump, logs);
    }
    stopped_run_end(thread);
    if (error)
        return list_plainly(thread, fd, logs, "a dump");
    error = dump.out.error;
    output_flush(&dump.out);
    if (!error)
        error = dump.out.error;
    give_memory(&dump);
    return error == -ENOMEM ? list_plainly(thread, fd, logs, "a dump") : error;
}

int dump_from(struct thread *thread, int fd)
{
    const strand_dump_options none = {.size = sizeof none};
    return dump_with(thread, fd, &none, "", false);
}

void dump_on_quit(struct thread *thread, int fd)
{
    const strand_dump_options none = {.size = sizeof none};
    (void)dump_with(thread, fd, &none, "libstrand: SIGQUIT", false);
}

void dump_report(struct thread *thread)
{
    const strand_dump_options none = {.size = sizeof none};
    (void)dump_with(thread, 2, &none, "", true);
}

struct asked {
    int fd;
    const strand_dump_options *options;
};

static int dump_one(struct thread *thread, void *arg)
{
    const struct asked *asked = arg;
    return dump_with(thread, asked->fd, asked->options, "", false);
}

int strand_dump(int fd, const strand_dump_options *asked)
{
    struct thread *thread = thread_self();
    strand_dump_options options = {.size = sizeof options};
    if (asked) {
        must_have_size(asked->size, sizeof asked->size, "strand_dump_options", "strand_dump");
        sized_take(&options, sizeof options, asked, asked->size);
    }
    if ((unsigned)options.grouping > STRAND_DUMP_GROUPED)
        MISUSE("strand_dump", "", "strand_dump_options.grouping is %d: set an enumerator, such as STRAND_DUMP_AUTO",
               (int)options.grouping);
    return thread ? dump_with(thread, fd, &options, "", false)
                  : stopped_run_each_run(dump_one, &(struct asked){fd, &options});
}
