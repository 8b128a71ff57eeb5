/*
 * Figures of a run, added up from its threads.
 */
#include "../../include/strand/debug.h"

#include "watchdog.h"

#include "../strand/core.h"
#include "../strand/misuse.h"

#include <string.h>

void strand_stats_get(struct strand_stats *stats)
{
    struct thread *thread = must_be_strand("strand_stats_get");
    must_be_there(stats, "buffer for the figures", "strand_stats_get");
    if (stats->size < sizeof stats->size || stats->size > 4096)
        misuse("strand_stats_get", "", "strand_stats.size is %zu, not sizeof(struct strand_stats)", stats->size);
    struct strand_stats now = {.size = stats->size, .stacks = thread->sub->memory.stacks.made};
    for (struct thread *each = thread_first(thread->sub); each; each = thread_after(each)) {
        now.threads += thread_life(each) != THREAD_NONE;
        now.spawned += atomic_load_explicit(&each->spawned, memory_order_relaxed);
        now.ended += atomic_load_explicit(&each->ended, memory_order_relaxed);
        now.switches += each->switches;
        now.steals += each->steals;
        now.wakes += each->wakes;
        now.sleeps += each->sleeps;
    }
    if (runtime_of(thread)->watchdog)
        watchdog_figures(runtime_of(thread)->watchdog, &now.late, &now.late_ns);
    now.live = now.spawned - now.ended;
    memcpy(stats, &now, stats->size < sizeof now ? stats->size : sizeof now);
}
