/*
 * strand_run: a sub-process from its making to its end. Everything that it makes is gone when it returns.
 */
#include "run.h"

#include "end.h"
#include "exception.h"
#include "handle.h"
#include "misuse.h"
#include "print.h"

#include "../sched/stack.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPIN_US = 20, THREADS_MOST = 1024, STACK_USUAL = 64 * 1024 };

int strand_threads_allowed(void)
{
    int allowed = arch_cpus_allowed();
    const char *limit = arch_env("STRAND_THREADS");
    int wanted = limit ? atoi(limit) : 0;
    return wanted > 0 && wanted < allowed ? wanted : allowed;
}

/* ---- what the scheduler asks of this layer --------------------------------------------------------------- */

static int thread_open(struct thread *thread)
{
    struct worker *worker = worker_of(thread);
    struct runtime *runtime = runtime_of(thread);
    worker->cbs.slab = &runtime->cbs;
    worker->blocks.slab = &runtime->blocks;
    worker->objects.slab = &runtime->objects;
    worker->tickets.slab = &runtime->tickets;
    worker->offers.slab = &runtime->offers;
    if (exception_reserve_open(worker) == 0)
        return 0;
    exception_reserve_close(worker);
    return -ENOMEM;
}

static void thread_close(struct thread *thread)
{
    exception_reserve_close(worker_of(thread));
}

static void overflow(struct thread *thread, void *address, void *ucontext)
{
    overflow_report(thread, address, ucontext);
}

static void warn(struct subprocess *sub, const char *text)
{
    log_text((struct runtime *)sub, text);
}

static const struct sched_ops ops = {sizeof(struct worker), thread_open, thread_close, serve_strands,
                                     end_refused,           overflow,    warn};

/* ---- making ---------------------------------------------------------------------------------------------- */

static const struct slab_source chunks = {ARCH_CHUNK, arch_chunk_take, arch_chunk_give, arch_pause};

static void take_options(struct runtime *runtime, const strand_options *options)
{
    if (!options)
        return;
    if (options->size < offsetof(strand_options, own_threads) || options->size > 4096)
        misuse("strand_run", "", "strand_options.size is %zu, not sizeof(strand_options)", options->size);
    memcpy(&runtime->options, options,
           options->size < sizeof runtime->options ? options->size : sizeof runtime->options);
}

static int thread_count(const struct runtime *runtime)
{
    int threads = runtime->options.threads;
    if (threads == STRAND_THREADS_ALLOWED)
        return strand_threads_allowed();
    return threads ? threads : 1;
}

/* The environment's seed; NULL if there is none. */
static const char *seed_text(void)
{
    const char *text = arch_env("STRAND_SEED");
    return text && *text ? text : NULL;
}

static bool seed_of(struct runtime *runtime, uint64_t *seed)
{
    const char *text = seed_text();
    *seed = text ? strtoull(text, NULL, 0) : runtime->options.seed;
    return text || runtime->options.has_seed;
}

/* Decimal, hexadecimal or octal, and nothing else. */
static bool is_seed(const char *text)
{
    char *end;
    unsigned long long seed = strtoull(text, &end, 0);
    return *text >= '0' && *text <= '9' && !*end && (seed != ULLONG_MAX || strlen(text) < 21);
}

/* Returns 0, or a negated errno code with what could not be had. */
static int check_options(struct runtime *runtime, const char **what)
{
    int threads = thread_count(runtime);
    if (threads < 1 || threads > THREADS_MOST) {
        snprintf(runtime->text, sizeof runtime->text, "options.threads is %d, not 1 to %d", threads, THREADS_MOST);
    } else if (!scheduler_find(runtime->options.scheduler)) {
        snprintf(runtime->text, sizeof runtime->text, "options.scheduler is '%s', not 'stealing' or 'global'",
                 runtime->options.scheduler);
    } else if (!stack_round(runtime->options.stack_size)) {
        snprintf(runtime->text, sizeof runtime->text, "options.stack_size is %zu", runtime->options.stack_size);
    } else if (seed_text() && !is_seed(seed_text())) {
        snprintf(runtime->text, sizeof runtime->text, "STRAND_SEED is '%.40s' in the environment, which is no number",
                 seed_text());
    } else {
        return 0;
    }
    *what = runtime->text;
    return -EINVAL;
}

static int make_pool(struct runtime *runtime, const char **what)
{
    struct subprocess *sub = &runtime->sub;
    int64_t spin_us = runtime->options.spin_us ? runtime->options.spin_us : SPIN_US;
    *what = "the threads and the poller of a pool";
    return pool_open(sub, &sub->pool, scheduler_find(runtime->options.scheduler), thread_count(runtime),
                     spin_us * STRAND_US);
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
    root->odd = true;
    root->parent = 0;
    root->own.stack_size = runtime->sub.stacks.usual;
    runtime->root = root;
    atomic_init(&runtime->live, 1);
    count_spawned(first);
    arch_note_release(root);
    return 0;
}

static int open_driver(struct runtime *runtime, const char **what)
{
    uint64_t seed;
    if (!seed_of(runtime, &seed)) {
        runtime->sub.seed = arch_entropy();
        return 0;
    }
    *what = "the seeded driver";
    runtime->sub.seed = seed;
    return driver_second_open(&runtime->sub, seed);
}

/* ---- running --------------------------------------------------------------------------------------------- */

static bool on_fault(void *address, void *ucontext)
{
    struct thread *thread = thread_self();
    if (!thread || !thread->current || !thread->current->stack || !stack_guards(thread->current->stack, address))
        return false;
    overflow_report(thread, address, ucontext);
    return true;
}

static int run_pool(struct runtime *runtime, const char **what)
{
    struct thread *before = thread_self();
    bool adopt = !runtime->options.own_threads;
    arch_on_foreign(print_foreign);
    arch_on_terminate(print_terminating);
    *what = "signal handlers";
    int error = arch_signals_enter(on_fault);
    if (error)
        return error;
    thread_adopt(NULL);
    *what = "the threads of a pool";
    error = pool_run(&runtime->sub.pool, &runtime->root->own, adopt);
    thread_adopt(before);
    arch_signals_leave();
    return error;
}

static int build_and_run(struct runtime *runtime, strand_fn *fn, void *arg, const char **what)
{
    struct subprocess *sub = &runtime->sub;
    int error = check_options(runtime, what);
    if (error)
        return error;
    sub->ops = &ops;
    size_t usual = runtime->options.stack_size ? runtime->options.stack_size : STACK_USUAL;
    stacks_open(&sub->stacks, stack_round(usual), runtime->options.guards == STRAND_GUARDS_REQUIRED);
    slab_init(&runtime->cbs, &chunks, (sizeof(struct cb) + 63) & ~(size_t)63, cb_construct);
    slab_init(&runtime->blocks, &chunks, (sizeof(union any_block) + 63) & ~(size_t)63, NULL);
    slab_init(&runtime->objects, &chunks, OBJECT_SIZE, NULL);
    slab_init(&runtime->tickets, &chunks, TICKET_SIZE, NULL);
    slab_init(&runtime->offers, &chunks, OFFERS_SIZE, NULL);
    if ((error = open_driver(runtime, what)))
        return error;
    if (!(error = make_pool(runtime, what))) {
        if (!(error = make_root(runtime, fn, arg, what)))
            error = run_pool(runtime, what);
        if (runtime->crew)
            runtime->crew_close(runtime->crew);
        struct descriptors *descriptors = runtime->descriptors;
        if (descriptors)
            descriptors->close(descriptors);
        if (runtime->root)
            note_release(atomic_load_explicit(&runtime->root->note, memory_order_relaxed));
        pool_close(&sub->pool);
    }
    driver_second_close(sub);
    stacks_close(&sub->stacks);
    slab_close(&runtime->cbs);
    slab_close(&runtime->blocks);
    slab_close(&runtime->objects);
    slab_close(&runtime->tickets);
    slab_close(&runtime->offers);
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
        MISUSE("strand_run", "", "the function is NULL");
    struct runtime *runtime = calloc(1, sizeof *runtime);
    const char *what = "memory for a run";
    int error = runtime ? 0 : -ENOMEM;
    strand_options none = {.size = sizeof none};
    if (options && options->size >= offsetof(strand_options, uncaught) + sizeof options->uncaught)
        none.uncaught = options->uncaught;
    if (!error) {
        take_options(runtime, options);
        if (thread && thread->current && !runtime->options.own_threads)
            misuse("strand_run", "", "inside a strand a run needs threads of its own (options.own_threads)");
        what = "the process's part of the runtime";
        error = arch_process_start();
    }
    if (!error)
        error = build_and_run(runtime, fn, arg, &what);
    void *result = error ? NULL : runtime->result;
    strand_exception *e = error ? exception_new(&STRAND_SYSTEM, "strand_run: %s: %s", what, error_words(error)) : NULL;
    if (e)
        e->code = error;
    else
        e = runtime->exception;
    if (runtime)
        none = runtime->options;
    free(runtime); /* `what` may lie in it */
    if (none.uncaught)
        *none.uncaught = NULL;
    if (e)
        uncaught(&none, e);
    return result;
}
