/*
 * Processes: starting, keeping, stopping, signals. The protocol block is in process.h.
 */
#include "process.h"

#include "descriptor.h"

#include "../../include/strand/exception.h"
#include "../../include/strand/io.h"
#include "../../include/strand/pool.h"
#include "../../include/strand/select.h"

#include "../sched/thread.h"
#include "../strand/hand_off.h"
#include "../strand/handle.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define START "strand_process_start"
enum { SIGNAL_KILL = 9, SIGNAL_CONTINUE = 18, TRIES_MOST = 10 };
/* How often the keeper looks for the end if it can't wait for it. */
#define LOOK_NS (20 * STRAND_MS)

/* ---- the run's processes ---------------------------------------------------------------------------------------- */

static void lock_processes(struct thread *thread)
{
    spin_lock(&io_run_of(thread)->processes_lock, thread);
}

static void unlock_processes(struct thread *thread)
{
    spin_unlock(&io_run_of(thread)->processes_lock);
}

static void enlist(struct thread *thread, struct process *process, strand keeper)
{
    lock_processes(thread);
    index_add(&io_run_of(thread)->processes, &process->node, strand_id(keeper));
    unlock_processes(thread);
}

/* Under the lock: the process of a strand, or NULL. */
static struct process *find(struct thread *thread, strand keeper)
{
    struct index_node *node = index_find(&io_run_of(thread)->processes, strand_id(keeper));
    return node ? CONTAINER(node, struct process, node) : NULL;
}

int strand_process_signal(strand keeper, int signal)
{
    struct thread *thread = must_be_strand("strand_process_signal");
    lock_processes(thread);
    struct process *process = find(thread, keeper);
    struct play *play = process ? process->play : NULL;
    int error = play ? 0 : process ? arch_exec_signal(&process->child, signal) : -ESRCH; /* [PC1] */
    if (play)
        play->users++; /* [PC6] */
    unlock_processes(thread);
    if (!play)
        return error;
    error = play_signal(play, signal);
    thread = thread_self();
    lock_processes(thread);
    play->users--; /* [PC6] */
    unlock_processes(thread);
    return error;
}

/* The argument of a keeper, which lasts as long as the keeper's handle. */
struct keeping {
    struct process *process; /* the keeper's, until it ends */
    int pid;                 /* 0: the process has not started */
};

/* ---- the keeper ------------------------------------------------------------------------------------------------- */

/* Takes the status of the process, if it has ended. Returns whether it was taken. */
static bool reap(struct process *process)
{
    struct thread *thread = thread_self();
    struct arch_exec_end end = {.code = -1};
    const struct play *play = process->play;
    bool over = play && strand_ended(play->strand);
    lock_processes(thread);
    int error = !play ? arch_exec_reap(&process->child, &end) : over ? 0 : -EAGAIN;
    if (error != -EAGAIN)
        index_remove(&io_run_of(thread)->processes, &process->node); /* [PC1] */
    unlock_processes(thread);
    if (error == -EAGAIN)
        return false;
    if (play)
        play_end(play, &end);
    process->end.code = end.code;
    process->end.signal = end.signal;
    process->end.error = error;
    process->end.dumped_core = end.dumped_core;
    process->end.user_ns = end.user_ns;
    process->end.system_ns = end.system_ns;
    process->end.peak_bytes = end.peak_bytes;
    return true;
}

static void *doze(void *unused)
{
    strand_sleep(LOOK_NS);
    return unused;
}

void process_pause(void)
{
    STRAND_SHIELD;
    strand_exception *e = strand_try(doze, NULL, NULL);
    if (e)
        strand_yield();
    strand_exception_release(e);
}

/* Waits for the end and takes the status. Throws if the keeper is interrupted, or the system refuses memory. The poller
 * may refuse to watch the descriptor. A process that a debugger follows has ended, but its status is there only when
 * the debugger lets it go. */
static void *await_end(void *arg)
{
    struct process *process = arg;
    for (bool ready = false; !reap(process); ready = true)
        if (process->play)
            strand_wait(process->play->strand);
        else if (ready || strand_wait_ready(process->child.pidfd, STRAND_READABLE) < 0)
            strand_sleep(LOOK_NS);
    return NULL;
}

static bool has_ended(const struct process *process)
{
    return process->play ? strand_ended(process->play->strand) : arch_exec_has_ended(&process->child);
}

/* Leaves the status: until it is taken, signals reach the group safely [PC1]. */
static void *await_end_or_grace(void *arg)
{
    const struct process *process = arg;
    const struct play *play = process->play;
    strand_case cases[] = {play ? strand_on_end(play->strand) : strand_on_ready(process->child.pidfd, STRAND_READABLE),
                           strand_on_time(process->killed_at)};
    while (!has_ended(process) && strand_now().ns < process->killed_at.ns)
        if (strand_select(cases, 2, STRAND_SELECT_ORDERED) == 0 && cases[0].result < 0)
            strand_sleep(LOOK_NS); /* the poller refuses to watch the descriptor */
    return NULL;
}

/* Returns whether the wait was completed: it ends by an interruption, or because the system refuses memory. */
static bool completes(strand_fn *wait, struct process *process)
{
    strand_exception *e = strand_try(wait, process, NULL);
    strand_exception_release(e);
    return !e;
}

/* To the process and to its group, if it leads one. The status has not been taken [PC1]. Returns 0 or a negated errno
 * code. */
static int signal_all(const struct process *process, int signal)
{
    if (process->play)
        return play_signal(process->play, signal);
    if (process->exec.group == ARCH_EXEC_JOINS_GROUP)
        return arch_exec_signal(&process->child, signal);
    return arch_exec_signal_group(&process->child, signal);
}

/* Sends the stop signal, or SIGKILL. */
static void end_by(struct process *process, int signal)
{
    plain_store(&process->last_signal, signal, memory_order_relaxed); /* [PC8] */
    plain_store(&process->signal_error, signal_all(process, signal), memory_order_relaxed);
}

static void signal_and_reap(struct process *process)
{
    if (process->grace_ns > 0) {
        end_by(process, process->stop_signal);
        (void)signal_all(process, SIGNAL_CONTINUE);
        while (!completes(await_end_or_grace, process))
            process_pause();
    }
    end_by(process, SIGNAL_KILL);
    while (!completes(await_end, process)) /* [PC2] [PC3] */
        process_pause();
}

/* The keeper has been cancelled. */
static void stop(struct process *process)
{
    STRAND_SHIELD;
    if (reap(process))
        return;
    struct episodes *stops = &io_run_of(thread_self())->stops;
    process->end.stopped = true;
    process->killed_at = strand_in(process->grace_ns > 0 ? process->grace_ns : 0);
    if (stops->kept)
        episode_begins_(current_of(thread_self()), stops, &process->stopping); /* [PC8] */
    signal_and_reap(process);
    if (process->stopping.c)
        episode_ends_(stops, &process->stopping); /* [PC8] */
}

static void wait_or_stop(struct process *process)
{
    while (!completes(await_end, process)) { /* [PC3] */
        if (strand_interrupted()) {
            stop(process);
            return;
        }
        process_pause();
    }
}

/* Another thread's child may have the program's file open for writing for a moment, until it runs its own program. */
static int launch(struct process *process)
{
    int error, tries = 0;
    while ((error = arch_exec(&process->exec, &process->child, &process->failed)) == -ETXTBSY && tries++ < TRIES_MOST)
        process_pause();
    return error;
}

static void go_on(struct keeping *keeping)
{
    struct process *process = keeping->process;
    process->end.pid = process->child.pid;
    plain_store(&keeping->pid, process->child.pid, memory_order_relaxed); /* [PC7] */
    enlist(thread_self(), process, strand_self());
    strand_event_set(&process->started);
    wait_or_stop(process);
}

static void keep_child(struct keeping *keeping)
{
    struct process *process = keeping->process;
    process->failed.error = launch(process);
    if (process->failed.error) {
        strand_event_set(&process->started);
        return;
    }
    descriptor_made(process->child.pidfd);
    go_on(keeping);
    (void)strand_close(process->child.pidfd);
}

static bool is_used(struct process *process)
{
    struct thread *thread = thread_self();
    lock_processes(thread);
    bool used = process->play->users != 0; /* [PC6] */
    unlock_processes(thread);
    return used;
}

static void *run_play(void *arg)
{
    struct keeping *keeping = arg;
    struct process *process = keeping->process;
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    play_begin(process, scope);
    go_on(keeping);
    STRAND_SHIELD;
    while (is_used(process))
        strand_yield();
    play_close(process->play); /* the function has not, if its strand got no stack */
    strand_scope_join(scope);
    return NULL;
}

static void keep_play(struct keeping *keeping)
{
    struct process *process = keeping->process;
    strand_exception *e = strand_try(run_play, keeping, NULL);
    if (!strand_event_is_set(&process->started)) {
        process->failed.step = "starting a process";
        process->failed.error = e ? strand_exception_code(e) : -EAGAIN;
        strand_event_set(&process->started);
    }
    strand_exception_release(e); /* otherwise a strand got no stack: play_end */
    play_free(process->play);
    process->play = NULL;
}

static void *keep(void *arg)
{
    struct keeping *keeping = arg;
    struct process *process = keeping->process;
    if (process->play)
        keep_play(keeping);
    else
        keep_child(keeping);
    return process;
}

int strand_process_pid(strand keeper)
{
    static const char function[] = "strand_process_pid";
    struct thread *thread = must_be_strand(function);
    struct cb *c = handle_cb(keeper);
    c = c && cb_is_ours(thread, c) ? handle_ref_cb(thread, keeper, function) : NULL;
    if (!c)
        return -ESRCH;
    const struct keeping *keeping = c->fn == keep ? (const void *)(c->extra + 1) : NULL; /* the copy of its argument */
    int pid = keeping ? plain_load(&keeping->pid, memory_order_relaxed) : 0;             /* [PC7] */
    handle_unref_cb(thread, c);
    return pid ? pid : -ESRCH;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

struct starting {
    struct process *process; /* NULL: the keeper has it */
    struct process_streams streams;
};

static void abandon(struct starting *starting)
{
    process_streams_close(&starting->streams);
    if (starting->process)
        play_free(starting->process->play);
    free(starting->process);
}

/* Gives the caller its ends of the pipes. */
static void give(struct process_streams *streams)
{
    for (int i = 0; i < PROCESS_STREAMS; i++)
        if (streams->ours[i] >= 0) {
            descriptor_made(streams->ours[i]);
            *streams->out[i] = streams->ours[i];
            streams->ours[i] = -1;
        }
}

static strand start(struct starting *starting, strand_scope scope)
{
    static const char left[] = "the scope has been left";
    struct process *process = starting->process;
    STRAND_SHIELD;
    STRAND_SCOPE(own);
    struct keeping keeping = {.process = process};
    strand keeper =
        strand_spawn_with(own, STRAND_ATTR(.name = process->name, .drop = free), keep, &keeping, sizeof keeping);
    strand_event_wait(&process->started); /* throws if the keeper can't run: then it never has the record */
    starting->process = NULL;
    if (process->failed.error) {
        starting->process = strand_join(keeper);
        process_throw_failed(current_of(thread_self()), process);
    }
    int error = hand_off_spawned(thread_self(), keeper, scope, START);
    if (error) {
        strand_cancel(keeper, left);
        process_throw(current_of(thread_self()), left, process->file, error);
    }
    return keeper;
}

strand strand_process_start(strand_scope scope, const strand_process_attr *given)
{
    struct thread *thread = must_be_strand(START);
    struct cb *me = current_of(thread);
    strand_process_attr attr = {.size = sizeof attr};
    may_block(thread, me, START);
    process_attr_take(given, &attr);
    int error = hand_off_check(thread, scope, START);
    if (error)
        throw_system(me, error, START ": the scope has been left");
    __attribute__((cleanup(abandon))) struct starting starting = {
        .process = process_make(thread, &attr), .streams = {.ours = {-1, -1, -1}, .theirs = {-1, -1, -1}}};
    if (!starting.process)
        throw_no_memory(me, START ": a process");
    error = play_make(thread, starting.process);
    if (error)
        process_throw(me, "running the program", starting.process->file, error);
    error = process_streams_open(&attr, starting.process, &starting.streams);
    if (error)
        process_throw_stream(me, starting.streams.which, error);
    strand keeper = start(&starting, scope);
    give(&starting.streams);
    return keeper;
}

/* ---- the end --------------------------------------------------------------------------------------------------------
 */

void strand_process_join(strand keeper, strand_process_end *end)
{
    struct thread *thread = must_be_strand("strand_process_join");
    may_block(thread, current_of(thread), "strand_process_join");
    const struct cb *c = handle_cb(keeper);
    if (c && c->fn != keep)
        MISUSE("strand_process_join", "", "the strand is no process: join it by strand_join");
    if (end)
        must_have_size(end->size, offsetof(strand_process_end, signal), "strand_process_end", "strand_process_join");
    strand_process_end *made = strand_join(keeper);
    if (end)
        sized_give(end, end->size, made, sizeof *made);
    free(made);
}
