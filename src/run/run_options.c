/*
 * The options of a run: they are taken, checked, completed from the environment, and read.
 */
#include "run_options.h"

#include "user_scheduler.h"

#include "../stack/stack.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCHDOG_LEAST_NS INT64_C(1000000)
enum { THREADS_SEEDED = 4, STACK_USUAL = 64 * 1024 };

int strand_threads_allowed(void)
{
    int allowed = arch_cpus_allowed();
    const char *limit = arch_env("STRAND_THREADS");
    int wanted = limit ? atoi(limit) : 0;
    return wanted > 0 && wanted < allowed ? wanted : allowed;
}

static bool is_asked_for(const char *variable)
{
    const char *value = arch_env(variable);
    return value && *value && strcmp(value, "0") != 0;
}

void run_options_take(struct runtime *runtime, const strand_options *options)
{
    if (!options)
        return;
    must_have_size(options->size, offsetof(strand_options, own_threads), "strand_options", "strand_run");
    sized_take(&runtime->options, sizeof runtime->options, options, options->size);
    runtime->options.own_threads |= runtime->options.cpus != NULL;
}

int run_options_thread_count(int asked, const struct scheduler *scheduler, bool seeded)
{
    if (asked != STRAND_THREADS_ALLOWED)
        return asked;
    if (scheduler->alone)
        return 1;
    int allowed = seeded ? THREADS_SEEDED : strand_threads_allowed(); /* a seed gives the same run everywhere */
    return allowed < THREADS_MOST ? allowed : THREADS_MOST;
}

int run_options_threads(const strand_options *options, const struct scheduler *scheduler, bool seeded)
{
    int usual = options->cpus && !scheduler->alone ? threads_for(options->cpus_count) : 1;
    return run_options_thread_count(options->threads ? options->threads : usual, scheduler, seeded);
}

int run_options_refused_cpu(const int *cpus, int count)
{
    for (int i = 0; cpus && i < count; i++)
        if (!arch_cpu_is_allowed(cpus[i]))
            return i;
    return -1;
}

size_t run_options_stack_size(const strand_options *options)
{
    return stack_round(options->stack_size ? options->stack_size : STACK_USUAL);
}

int run_options_check(const strand_options *options, bool seeded, char *text, size_t room)
{
    const struct scheduler *scheduler = scheduler_for(options->scheduler, options->custom, "options", text, room);
    int threads = scheduler ? run_options_threads(options, scheduler, seeded) : 0, refused;
    if (!scheduler)
        ;
    else if (options->cpus && (options->cpus_count < 1 || options->cpus_count > CPUS_MOST))
        snprintf(text, room, "options.cpus_count is %d, not 1 to %d", options->cpus_count, CPUS_MOST);
    else if ((refused = run_options_refused_cpu(options->cpus, options->cpus_count)) >= 0)
        snprintf(text, room, "options.cpus[%d] is %d, a CPU that this process may not use", refused,
                 options->cpus[refused]);
    else if (options->cpus && scheduler == &scheduler_current)
        snprintf(text, room, "options.cpus: the scheduler 'current' runs on the caller's thread");
    else if (threads < 1 || threads > THREADS_MOST)
        snprintf(text, room, "options.threads is %d, not 1 to %d", threads, THREADS_MOST);
    else if (scheduler->alone && threads > 1)
        snprintf(text, room, "options.threads is %d; a pool with the scheduler '%s' has one", threads, scheduler->name);
    else if (scheduler == &scheduler_current && options->own_threads)
        snprintf(text, room, "options.own_threads: the scheduler 'current' runs on the caller's thread");
    else if (options->out_of_work < STRAND_OUT_OF_WORK_AUTO || options->out_of_work > STRAND_OUT_OF_WORK_WAIT)
        snprintf(text, room, "options.out_of_work is %d, not one of enum strand_out_of_work",
                 (int)options->out_of_work);
    else if (options->guards != STRAND_GUARDS_BEST_EFFORT && options->guards != STRAND_GUARDS_REQUIRED)
        snprintf(text, room, "options.guards is %d, not one of enum strand_guards", (int)options->guards);
    else if (options->files < STRAND_FILES_AUTO || options->files > STRAND_FILES_THREADS)
        snprintf(text, room, "options.files is %d, not one of enum strand_files", (int)options->files);
    else if (options->spin_us < 0)
        snprintf(text, room, "options.spin_us is %lld", (long long)options->spin_us);
    else if (options->max_offload_threads < 0)
        snprintf(text, room, "options.max_offload_threads is %d", options->max_offload_threads);
    else if (!is_balance((int)options->balance))
        snprintf(text, room, "options.balance is %d, not one of enum strand_balance", (int)options->balance);
    else if (!stack_round(options->stack_size))
        snprintf(text, room, "options.stack_size is %zu", options->stack_size);
    else if (options->max_stack_bytes && options->max_stack_bytes < run_options_stack_size(options))
        snprintf(text, room, "options.max_stack_bytes is %zu, which is less than one stack of %zu bytes",
                 options->max_stack_bytes, run_options_stack_size(options));
    else if (options->watchdog_ns && options->watchdog_ns < WATCHDOG_LEAST_NS)
        snprintf(text, room, "options.watchdog_ns is %lld ns, neither 0 nor at least a millisecond",
                 (long long)options->watchdog_ns);
    else if (options->watchdog_cleanups_ns && options->watchdog_cleanups_ns < WATCHDOG_LEAST_NS)
        snprintf(text, room, "options.watchdog_cleanups_ns is %lld ns, neither 0 nor at least a millisecond",
                 (long long)options->watchdog_cleanups_ns);
    else
        return 0;
    return -EINVAL;
}

/* Overrides the watchdog's option by STRAND_WATCHDOG_MS, in milliseconds, if that is a number. */
static void choose_watchdog(strand_options *options)
{
    const char *text = arch_env("STRAND_WATCHDOG_MS");
    char *end;
    long ms = text ? strtol(text, &end, 10) : -1;
    if (ms >= 0 && ms < INT64_MAX / STRAND_MS && end != text && !*end)
        options->watchdog_ns = ms * STRAND_MS;
}

int run_options_choose_files(strand_options *options, char *text, size_t room)
{
    const char *wanted = arch_env("STRAND_FILES");
    if (!wanted || !*wanted)
        return 0;
    if (strcmp(wanted, "uring") && strcmp(wanted, "threads")) {
        snprintf(text, room, "STRAND_FILES in the environment is '%.40s', neither 'uring' nor 'threads'", wanted);
        return -EINVAL;
    }
    options->files = !strcmp(wanted, "uring") ? STRAND_FILES_URING : STRAND_FILES_THREADS;
    return 0;
}

void run_options_from_environment(struct runtime *runtime)
{
    strand_options *options = &runtime->options;
    options->census |= is_asked_for("STRAND_CENSUS");
    options->dump_on_quit |= is_asked_for("STRAND_DUMP_ON_QUIT");
    choose_watchdog(options);
    if (runtime->sub.platform) {
        options->dump_on_quit = false;
        options->watchdog_ns = 0;
    }
}
