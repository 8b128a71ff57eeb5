/*
 * A run that is out of work: no strand of it can go on. The policy is strand_options.out_of_work.
 */
#include "out_of_work.h"

#include "ending.h"
#include "shutdown.h"

#include "../sched/pool.h"
#include "../sched/quiescent.h"
#include "../sched/records.h"
#include "../strand/interrupt.h"
#include "../strand/log.h"
#include "../strand/print.h"

#include <stdio.h>
#include <stdlib.h>

bool out_of_work_has_outside_threads(struct runtime *runtime)
{
    struct subprocess *sub = &runtime->sub;
    int own = atomic_load_explicit(&sub->helpers, memory_order_acquire); /* [Q5] */
    if (sub->platform)
        return sub->platform->plain_threads(sub) > own;
    for (struct thread *thread = thread_first(sub); thread; thread = thread_after(thread)) {
        enum thread_life life = thread_life(thread);
        own += (life == THREAD_HERE || life == THREAD_LEAVING) && !pool_is_driven(thread->pool);
    }
    return arch_thread_count() - arch_uring_workers() != own;
}

/* Logs the cycle of strands that wait for each other, followed by `moreover`: such a cycle is an error even if more
 * than that keeps the run from going on. Returns whether there is one. */
static bool report_cycle(struct thread *thread, struct run *run, const char *moreover)
{
    char cycle[sizeof run->runtime.deadlock], text[sizeof cycle + 64];
    if (!run->runtime.reports->summarise_waits(thread, cycle, sizeof cycle))
        return false;
    snprintf(text, sizeof text, "%s%s", cycle, moreover);
    log_text(&run->runtime, text);
    return true;
}

/* Logs the deadlock, while all strands still wait for each other: headline, summary and dump. */
static void report(struct thread *thread, struct run *run, const char *headline)
{
    (void)run->runtime.reports->summarise_waits(thread, run->runtime.deadlock, sizeof run->runtime.deadlock);
    log_text(&run->runtime, headline);
    run->runtime.reports->waits_to_log(thread);
    run->runtime.reports->dump_to_log(thread);
}

/* Reports the deadlock, and interrupts the root with it. Returns the root if the caller must make it runnable, else
 * NULL. */
static struct member *interrupt_root(struct thread *thread, struct run *run)
{
    struct cb *root = run->runtime.root;
    report(thread, run, "the run is deadlocked");
    atomic_fetch_or_explicit(&root->word, WORD_STUCK, memory_order_seq_cst); /* [I1] */
    return interrupt_raise(root, 0, true);
}

/* Reports a cycle of waits, and cancels the root. Returns the root if the caller must make it runnable; NULL: the run
 * can't end. */
static struct member *end_run(struct thread *thread, struct run *run)
{
    bool stops = shutdown_has_begun(run);
    const char *why = stops ? shutdown_reason(run) : "it is out of work";
    (void)report_cycle(thread, run, stops ? ", while the run is shut down" : ", at the end of the run");
    struct member *root = ending_cancel_root(&run->runtime, why);
    if (!root)
        report(thread, run, "the run is out of work, but can't end");
    return root;
}

/* Decides what happens to a run that is out of work. Under quiescent_lock. Returns the root, which the caller must make
 * runnable, or ends the program. */
static struct member *judge(struct thread *thread, struct run *run)
{
    enum strand_out_of_work what = run->runtime.options.out_of_work;
    struct member *root = NULL;
    bool ends = what == STRAND_OUT_OF_WORK_END || shutdown_has_begun(run);
    if (ends && !atomic_load_explicit(&run->runtime.end_requested, memory_order_relaxed))
        root = end_run(thread, run);
    else if (what != STRAND_OUT_OF_WORK_EXIT)
        root = interrupt_root(thread, run);
    else
        report(thread, run, "the run is deadlocked");
    if (!root) { /* the options say so; or the root leaves a scope, or is in a shield */
        log_text(&run->runtime, what == STRAND_OUT_OF_WORK_EXIT
                                    ? "the program ends"
                                    : "the program ends, because the root can't be interrupted");
        exit(EXIT_FAILURE);
    }
    return root;
}

/* If enough time has passed, logs that no strand of the run can go on, and that no thread outside has acted on it so
 * far. Returns whether it has logged that. */
static bool report_doubt(struct thread *thread, struct run *run, uint32_t asked)
{
    char all[sizeof run->runtime.deadlock], text[sizeof all + 320];
    if (asked == QUIESCENT_ASKED_LONG &&
        report_cycle(thread, run, "; a thread outside the run can end this only by stopping the run"))
        return true;
    int threads = arch_thread_count();
    if (asked < (threads < 0 ? QUIESCENT_ASKED_LONG : QUIESCENT_ASKED_MOST))
        return false;
    (void)run->runtime.reports->summarise_waits(thread, all, sizeof all);
    snprintf(text, sizeof text,
             threads < 0
                 ? "no strand of the run can go on unless a thread from outside acts on the run. The library can't "
                   "know whether there is one, because /proc/self/task can't be read. If there is none, this is a "
                   "deadlock: %s"
                 : "no strand of the run can go on unless a thread from outside acts on the run; none has done so "
                   "yet. If none ever does, this is a deadlock: %s",
             all);
    log_text(&run->runtime, text);
    return true;
}

/* Returns whether the run, which is quiescent and in which no strand waits for that, is out of work. Threads outside of
 * the run are counted before the scan that decides [Q5]. */
static bool is_out_of_work(struct thread *thread, struct run *run, bool *sure)
{
    if (run->runtime.options.out_of_work != STRAND_OUT_OF_WORK_AUTO)
        return true;
    *sure = !out_of_work_has_outside_threads(&run->runtime);
    return *sure && ending_wants_verdict(&run->runtime.sub) && quiescent_run(thread) == LULL_QUIESCENT;
}

struct member *out_of_work_judge(struct thread *thread, struct run *run, bool *sure)
{
    return is_out_of_work(thread, run, sure) ? judge(thread, run) : NULL;
}

void out_of_work_doubt(struct thread *thread, struct run *run, uint32_t asked)
{
    if (!atomic_load_explicit(&run->doubt_reported, memory_order_relaxed) && report_doubt(thread, run, asked))
        atomic_store_explicit(&run->doubt_reported, true, memory_order_relaxed);
}
