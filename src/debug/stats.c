/*
 * Figures of a run, added up from its threads.
 */
#include "../../include/strand/debug.h"

#include "debug_layer.h"
#include "watchdog.h"

#include "../sched/pool.h"
#include "../sched/records.h"
#include "../strand/core.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"

#include <string.h>

void strand_stats_get(strand_stats *stats)
{
    struct thread *thread = must_be_strand("strand_stats_get");
    must_be_there(stats, "buffer for the figures", "strand_stats_get");
    must_have_size(stats->size, sizeof stats->size, "strand_stats", "strand_stats_get");
    strand_stats now = {.stacks = thread->sub->memory.stacks.made};
    for (struct thread *each = thread_first(thread->sub); each; each = thread_after(each)) {
        now.threads += thread_life(each) != THREAD_NONE;
        now.spawned += atomic_load_explicit(&each->counts.spawned, memory_order_relaxed);
        now.ended += atomic_load_explicit(&each->counts.ended, memory_order_relaxed);
        now.switches += each->switches;
        now.steals += each->steals;
        now.wakes += each->wakes;
        now.sleeps += each->sleeps;
    }
    if (debug_run_of(runtime_of(thread))->watchdog)
        watchdog_figures(debug_run_of(runtime_of(thread))->watchdog, &now.late, &now.late_ns);
    now.live = now.spawned - now.ended;
    sized_give(stats, stats->size, &now, sizeof now);
}
