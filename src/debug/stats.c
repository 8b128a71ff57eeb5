/*
 * Figures of a sub-process, added up from its threads.
 */
#include "../../include/strand/debug.h"

#include "../strand/core.h"
#include "../strand/misuse.h"

#include <string.h>

void strand_stats_get(struct strand_stats *stats)
{
    struct thread *thread = must_be_strand("strand_stats_get");
    struct pool *pool = thread->pool;
    must_be_there(stats, "place for the figures", "strand_stats_get");
    if (stats->size < sizeof stats->size || stats->size > 4096)
        misuse("strand_stats_get", "", "strand_stats.size is %zu, not sizeof(struct strand_stats)", stats->size);
    struct strand_stats now = {
        .size = stats->size, .stacks = thread->sub->stacks.made, .threads = (uint64_t)pool->count};
    for (int i = 0; i < pool->count; i++) {
        struct worker *worker = worker_of(pool->threads[i]);
        now.spawned += worker->spawned;
        now.ended += worker->ended;
        now.switches += worker->thread.switches;
        now.steals += worker->thread.steals;
        now.wakes += worker->thread.wakes;
        now.sleeps += worker->thread.sleeps;
    }
    now.live = now.spawned - now.ended;
    memcpy(stats, &now, stats->size < sizeof now ? stats->size : sizeof now);
}
