/*
 * Search for a seed under which a program fails. One child process tries the seeds one after the other (microseconds
 * each). The child stores the current seed in shared memory, so that its end names the seed.
 */
#include "run_options.h"

#include "../sim/sim.h"
#include "../strand/misuse.h"
#include "../strand/print.h"
#include "../strand/sized.h"

#include <errno.h>
#include <string.h>

/* A run that has made so many steps is taken for one that does not end. */
enum { THREADS_USUAL = 2, STEPS_USUAL = 20000000 };

struct progress {
    _Atomic uint64_t tried; /* seeds started so far */
    _Atomic bool done;      /* all seeds are tried */
};

struct search {
    strand_options options;
    struct strand_sim sim;
    uint64_t first, count;
    strand_fn *fn;
    void *arg;
    struct progress *progress; /* shared with the child */
};

static void try_seeds(void *arg)
{
    struct search *search = arg;
    uint64_t serials = arch_serials(0);
    for (uint64_t i = 0; i < search->count; i++) {
        atomic_store_explicit(&search->progress->tried, i + 1, memory_order_relaxed);
        search->options.seed = search->first + i;
        arch_serials_again(serials); /* so that strands have the numbers that a replay gives them */
        strand_run(&search->options, search->fn, search->arg);
    }
    atomic_store_explicit(&search->progress->done, true, memory_order_relaxed);
}

/* Checks the options before the child starts: if no run is possible with them, that is no failure of fn. Reports the
 * reason. Returns 0 or -EINVAL. */
static int check(const struct search *search)
{
    const strand_options *options = &search->options;
    struct sim_request asked = {true, search->first, options->sim};
    char text[200];
    int error = run_options_check(options, true, text, sizeof text);
    if (!error)
        error = options_check(&asked, text, sizeof text);
    if (error && options->on_log)
        options->on_log(text, options->hook_arg);
    else if (error)
        print_text(2, "libstrand: strand_sim_search: %s\n", text);
    return error;
}

static int take(struct search *search, const strand_options *options)
{
    search->options.threads = THREADS_USUAL;
    if (options) {
        must_have_size(options->size, offsetof(strand_options, own_threads), "strand_options", "strand_sim_search");
        sized_take(&search->options, sizeof search->options, options, options->size);
    }
    int error = check(search);
    if (error)
        return error;
    (void)options_copy(&search->sim, search->options.sim);
    search->sim.size = sizeof search->sim;
    if (!search->sim.max_steps)
        search->sim.max_steps = STEPS_USUAL;
    search->options.size = sizeof search->options;
    search->options.sim = &search->sim;
    search->options.has_seed = true;
    search->options.uncaught = NULL; /* an exception that leaves the root strand is a failure to find */
    return 0;
}

static void store_found(strand_sim_found *found, uint64_t seed, int status, uint64_t tried)
{
    const strand_sim_found made = {sizeof made, seed, status, tried};
    if (found)
        sized_give(found, found->size, &made, sizeof made);
}

/* Runs the seed of the environment in this process, for a debugger. Does not return if the run fails. */
static void replay(struct search *search, strand_sim_found *found)
{
    strand_sim_report own = {.size = sizeof own}, *report = search->sim.report;
    if (!report)
        search->sim.report = report = &own;
    strand_run(&search->options, search->fn, search->arg);
    store_found(found, report->seed, 0, 1);
}

int strand_sim_search(const strand_options *options, uint64_t first, uint64_t count, strand_fn *fn, void *arg,
                      strand_sim_found *found)
{
    struct search search = {.first = first, .count = count, .fn = fn, .arg = arg};
    struct thread *thread = thread_self();
    int child, status;
    void *progress;
    if (!fn)
        MISUSE("strand_sim_search", "", "the function is NULL: pass the one to run");
    if (thread && thread->current)
        MISUSE("strand_sim_search", "", "a strand must not call it: call it on a plain thread");
    if (found)
        must_have_size(found->size, sizeof found->size, "strand_sim_found", "strand_sim_search");
    int error = take(&search, options);
    if (error)
        return error;
    const char *seed = arch_env("STRAND_SEED");
    if (seed && *seed) {
        replay(&search, found);
        return 0;
    }
    error = arch_map_shared(sizeof *search.progress, &progress);
    if (error)
        return error;
    search.sim.silent = true;
    search.progress = progress;
    error = arch_child_start(try_seeds, &search, &child);
    if (!error)
        error = arch_child_wait(child, &status);
    uint64_t at = atomic_load_explicit(&search.progress->tried, memory_order_relaxed);
    bool done = atomic_load_explicit(&search.progress->done, memory_order_relaxed);
    arch_unmap(progress, sizeof *search.progress);
    if (error)
        return error;
    store_found(found, first + at - 1, status, at);
    return !done || status != 0;
}
