/*
 * strand_run: a run from its opening to its end. It composes the layers: only this folder knows which scheduler,
 * simulation and diagnostics a run has. Everything that strand_run makes is gone when it returns.
 */
#include "run.h"
#include "ending.h"
#include "quiescence.h"
#include "run_blocked.h"
#include "run_options.h"
#include "shutdown.h"
#include "user_scheduler.h"

#include "../sched/pool.h"
#include "../sched/pool_uring.h"
#include "../sched/stack_ops.h"
#include "../sched/trim.h"
#include "../stack/stack.h"
#include "../strand/cancel_reason.h"
#include "../strand/cxx.h"
#include "../strand/end.h"
#include "../strand/entry.h"
#include "../strand/exception.h"
#include "../strand/exception_print.h"
#include "../strand/fibre.h"
#include "../strand/handle.h"
#include "../strand/interrupt.h"
#include "../strand/log.h"
#include "../strand/misuse.h"
#include "../strand/pool.h"
#include "../strand/print.h"
#include "../strand/worker.h"
#include "../sync/port.h"

#include "../actor/actor.h"
#include "../io/crew.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the functions that the scheduler calls in the layers above it ------------------------------------------ */

static void thread_leave(struct thread *thread)
{
    worker_flush(worker_of(thread));
}

static void overflow(struct thread *thread)
{
    print_overflow(thread, OVERFLOW_CANARY, NULL);
}

static void warn(struct subprocess *sub, const char *text)
{
    log_text((struct runtime *)sub, text);
}

static void orphaned(struct subprocess *sub)
{
    misuse_forked((struct runtime *)sub, "fork");
}

/* The record of a thread: the parts of the layers, one after the other. */
struct run_thread {
    struct actor_thread actor;
    struct occupancy occupancy;
};
_Static_assert(offsetof(struct run_thread, occupancy) == sizeof(struct actor_thread) &&
                   sizeof(struct actor_thread) % CACHE_LINE == 0,
               "stay_of finds it, and no other party writes its cache lines");

_Static_assert((1 << IO_PART | 1 << SIM_PART | 1 << DEBUG_PART) == (1 << RUN_PARTS) - 1,
               "each layer has a slot of runtime.parts");
_Static_assert((MARK_FIBRE | MARK_PORT | MARK_CREW | MARK_POOL | MARK_ACTOR | MARK_ACTORS | MARK_PROMISE) ==
                   UINT64_C(127) << 56,
               "each kind of handle has a mark");

static const struct layer *const layers[] = {&core_layer, &sync_layer, &actor_layer, NULL};

static const struct blocked_reason *const reasons[LAYERS_WITH_REASONS] = {
    [CORE_REASONS / REASONS_OF_LAYER] = core_reasons,
    [SYNC_REASONS / REASONS_OF_LAYER] = sync_reasons,
    [IO_REASONS / REASONS_OF_LAYER] = io_reasons,
    [ACTOR_REASONS / REASONS_OF_LAYER] = actor_reasons,
    [RUN_REASONS / REASONS_OF_LAYER] = run_reasons};

static const struct sched_ops ops = {
    .thread_size = sizeof(struct run_thread),
    .thread_open = worker_begin,
    .thread_close = worker_end,
    .thread_leave = thread_leave,
    .serve = entry_serve,
    .serve_shared = entry_serve_shared,
    .above_size = sizeof(struct hosting),
    .refuse = end_refused,
    .overflow = overflow,
    .starved = fibre_guest_starved,
    .warn = warn,
    .orphaned = orphaned,
    .fire = {[TIMER_WAIT] = wait_time_comes,
             [TIMER_DEADLINE] = deadline_comes,
             [TIMER_TRIM] = trim_is_due,
             [TIMER_SHUTDOWN] = shutdown_comes},
    .census = census_record,
    .moved = watchdog_moved,
    .quiescent = quiescence_comes,
};

static const struct run_ops run_ops = {
    .pool_open = strand_pool_open, .wait_quiescent_or = quiescence_wait_or, .wake_quiescence_waiter = quiescence_wake};

/* ---- making ---------------------------------------------------------------------------------------------- */

static int make_pool(struct run *run, const char **what)
{
    struct subprocess *sub = &run->runtime.sub;
    const strand_options *options = &run->runtime.options;
    *what = "the threads and the poller of a pool";
    struct pool_plan plan = {
        .scheduler = scheduler_for(options->scheduler, options->custom, "options", run->text, sizeof run->text),
        .custom = options->custom,
        .spin_ns = (options->spin_us ? options->spin_us : POOL_SPIN_US) * STRAND_US,
        .cpus = options->cpus,
        .cpus_count = options->cpus_count,
        .balance = (enum balance)options->balance};
    plan.threads = run_options_threads(options, plan.scheduler, sub->platform != NULL);
    int error = pool_open_first(sub, &plan);
    if (error || options->files != STRAND_FILES_URING || sub->platform)
        return error;
    *what = "io_uring, as options.files or STRAND_FILES asks for";
    if ((error = pool_uring_open(&sub->pool)))
        pool_close(&sub->pool);
    return error;
}

static int make_root(struct runtime *runtime, strand_fn *fn, void *arg, const char **what)
{
    struct thread *first = runtime->sub.pool.threads[0];
    *what = "the root strand";
    struct cb *root = cb_new(first);
    if (!root)
        return -ENOMEM;
    root->fn = fn;
    root->arg = arg;
    root->site = NULL;
    root->anchor = NULL;
    root->slow_end = true;
    root->inherits = NULL;
    fibre_of(root)->stack_size = runtime->sub.memory.stacks.usual;
    runtime->root = root;
    atomic_init(&runtime->live, 1);
    count_spawned(first);
    arch_san_release(root);
    return 0;
}

static int open_driver(struct run *run, const char **what)
{
    struct runtime *runtime = &run->runtime;
    const strand_options *options = &runtime->options;
    struct sim_request asked = {options->has_seed, options->seed, options->sim};
    int error = sim_open(&runtime->sub, &asked, run->text, sizeof run->text);
    *what = error == -EINVAL ? run->text : "the simulation";
    if (!error && runtime->sub.platform && !options->census) /* a census begins with stacks that are zero */
        stacks_take_stage(&runtime->sub.memory.stacks);
    else
        runtime->sub.seed = arch_entropy();
    return error;
}

/* ---- running --------------------------------------------------------------------------------------------- */

static bool on_fault(void *address, void *ucontext)
{
    struct thread *thread = thread_self();
    struct stack *stack = thread && thread->current ? thread->current->stack : NULL;
    const char *sp = arch_signal_sp(ucontext);
    if (!stack)
        return false;
    if (sp && stack_stepped_over(stack, address, sp))
        print_overflow(thread, OVERFLOW_STEPPED_OVER, ucontext);
    else if (stack_guards(stack, address))
        print_overflow(thread, OVERFLOW_GUARD, ucontext);
    else
        return false;
    return true;
}

/* Makes a thread find out that it is in the child of a fork: at its next switch, or where it waits. If a signal handler
 * has forked, the thread may stand between its last look and a system call that waits. No other thread ends that wait
 * in the child, so what the system compares changes here. */
static void orphan_finds_out(void *self)
{
    struct thread *thread = self;
    atomic_fetch_or_explicit(&thread->slow_switch.any, SWITCH_CHECK, memory_order_relaxed);
    atomic_store_explicit(&thread->wake, 1, memory_order_relaxed); /* platform_sleep */
    if (atomic_load_explicit(&thread->hold.asked, memory_order_relaxed))
        atomic_store_explicit(&thread->hold.asked, 2, memory_order_relaxed); /* pool_stand_still waits for 1 */
    arch_poller_orphan(&thread->pool->poller);
    pool_uring_orphan(thread->pool);
}

static int run_watched(struct runtime *runtime, bool adopt, const char **what)
{
    const struct debug_run *debug = debug_run_of(runtime);
    *what = "the census";
    int error = runtime->options.census ? census_open(runtime) : 0;
    if (!error && runtime->options.dump_on_quit) {
        *what = "the thread that waits for SIGQUIT";
        error = quit_open(runtime);
    }
    if (!error && runtime->options.watchdog_ns) {
        *what = "the watchdog's thread";
        error = watchdog_open(runtime);
    }
    if (!error) {
        *what = "the threads of a pool";
        error = pool_run(&runtime->sub.pool, fibre_of(runtime->root), adopt);
    }
    if (debug->watchdog)
        watchdog_close(runtime);
    if (debug->quit)
        quit_close(runtime);
    if (debug->census)
        census_close(runtime);
    return error;
}

static int run_pool(struct runtime *runtime, const char **what)
{
    struct thread *before = thread_self();
    bool adopt = !runtime->options.own_threads && !runtime->sub.pool.scheduler->own_thread &&
                 !arch_orphan(); /* its thread stands on a strand's stack */
    arch_on_orphan(orphan_finds_out);
    arch_on_foreign(cxx_on_foreign);
    arch_on_lost(exception_print_lost);
    arch_on_exit(entry_thread_exits);
    arch_on_terminate(cxx_terminating);
    *what = "signal handlers";
    int error = arch_signals_enter(on_fault);
    if (error)
        return error;
    thread_adopt(NULL);
    int helpers =
        (!adopt && !runtime->sub.platform) + runtime->options.dump_on_quit + (runtime->options.watchdog_ns != 0);
    atomic_store_explicit(&runtime->sub.helpers, helpers, memory_order_relaxed);
    error = run_watched(runtime, adopt, what);
    thread_adopt(before);
    arch_signals_leave();
    return error;
}

/* Runs the root on a pool that has been opened, until all strands have ended, and cleans up after them. */
static int run_on(struct pool *pool, struct run *run, strand_fn *fn, void *arg, const char **what)
{
    struct runtime *runtime = &run->runtime;
    ending_open(runtime);
    quiescence_open(run); /* before make_root, whose release orders it before the run for TSan */
    shutdown_open(run);
    arch_run_enter(&runtime->listed);
    int error = make_root(runtime, fn, arg, what);
    if (!error)
        error = run_pool(runtime, what);
    arch_run_leave(&runtime->listed);
    threads_close(runtime);
    crew_close_all(&run->io);
    descriptors_close(&run->io);
    programs_close(&run->io);
    pool_end_common(pool->threads[0], pool);
    pool_forget(runtime);
    readers_enter(&pool->sub->memory.readers);
    shared_fibre_readers_leave(pool->threads[0]); /* frees what was deferred too late for other readers to free */
    if (runtime->root)
        cancel_reason_release(atomic_load_explicit(&runtime->root->cancel_reason, memory_order_relaxed));
    return error;
}

static int build_and_run(struct run *run, strand_fn *fn, void *arg, const char **what)
{
    struct runtime *runtime = &run->runtime;
    struct subprocess *sub = &runtime->sub;
    *what = run->text;
    int error = run_options_check(&runtime->options, false, run->text, sizeof run->text);
    if (!error)
        error = run_options_choose_files(&runtime->options, run->text, sizeof run->text);
    if (error)
        return error;
    sub->ops = &ops;
    runtime->ops = &run_ops;
    runtime->layers = layers;
    runtime->parts[IO_PART] = &run->io;
    runtime->parts[SIM_PART] = &run->sim;
    runtime->parts[DEBUG_PART] = &run->debug;
    runtime->reports = &debug_reports;
    runtime->reasons = reasons;
    sub->generation = arch_generation;
    sub->memory.most = runtime->options.max_stack_bytes;
    stack_memory_open(&sub->memory, &thread_stack_ops);
    stacks_open(&sub->memory.stacks, run_options_stack_size(&runtime->options),
                runtime->options.guards == STRAND_GUARDS_REQUIRED);
    const char *stacks = arch_env("STRAND_STACKS");
    sub->copies = stacks && !strcmp(stacks, "shared");
    worker_open_slabs(runtime);
    if ((error = open_driver(run, what)))
        return error;
    runtime->shares = sub->copies;
    runtime->slow_spawn = runtime->shares || runtime->options.max_strands;
    run_options_from_environment(runtime);
    sub->concurrent = runtime->options.dump_on_quit;
    sub->census = runtime->options.census;
    sub->uring_off = sub->platform || runtime->options.files == STRAND_FILES_THREADS;
    if (!(error = make_pool(run, what))) {
        if (!(error = pool_know(runtime)))
            error = run_on(&sub->pool, run, fn, arg, what);
        pool_close(&sub->pool);
    }
    pools_free(sub);
    if (sub->platform)
        stacks_give_stage(&sub->memory.stacks);
    const char *how = "an exception has left the root strand";
    sim_close(sub, runtime->exception && !runtime->options.uncaught ? how : NULL);
    stack_memory_close(&sub->memory);
    worker_close_slabs(runtime);
    return error;
}

/* ---- the public face ------------------------------------------------------------------------------------- */

static void uncaught(const strand_options *options, strand_exception *e)
{
    strand_exception **out = options->uncaught;
    if (out) {
        *out = e;
        return;
    }
    static const char text[] = "libstrand: an exception has left the root strand; the program ends\n";
    arch_write(2, text, sizeof text - 1);
    strand_exception_print(e, 2);
    exit(EXIT_FAILURE);
}

void *strand_run(const strand_options *options, strand_fn *fn, void *arg)
{
    struct thread *thread = thread_self();
    if (!fn)
        MISUSE("strand_run", "", "the function is NULL: pass the one to run");
    struct run *run = calloc(1, sizeof *run);
    struct runtime *runtime = run ? &run->runtime : NULL;
    const char *what = "memory for a run";
    int error = run ? 0 : -ENOMEM;
    strand_options none = {.size = sizeof none};
    if (options && options->size >= offsetof(strand_options, uncaught) + sizeof options->uncaught)
        none.uncaught = options->uncaught;
    if (!error) {
        run_options_take(runtime, options);
        if (thread && thread->current && !runtime->options.own_threads)
            misuse("strand_run", "", "inside a strand a run needs threads of its own (options.own_threads)");
        const char *unsupported = arch_unsupported();
        what = unsupported ? unsupported : "the process's part of the runtime";
        error = unsupported ? -ENOTSUP : arch_process_start();
    }
    if (!error)
        error = build_and_run(run, fn, arg, &what);
    void *result = error ? NULL : runtime->result;
    strand_exception *e =
        error ? exception_new(&STRAND_SYSTEM, "strand_run: %s: %s", what, print_error_words(error)) : NULL;
    if (e)
        e->code = error;
    else
        e = runtime->exception;
    if (runtime)
        none = runtime->options;
    free(run); /* `what` may point into it */
    if (none.uncaught)
        *none.uncaught = NULL;
    if (e)
        uncaught(&none, e);
    return result;
}
