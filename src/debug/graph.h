/*
 * The wait-for graph: for each blocked strand, the strands that would all have to act before it can go on; and cycles
 * of strands that wait for each other. Built while the run is held (stopped_run.h); reads only.
 *
 * STATE     a node for each strand, beside its entry in the roll. It has the reason of its strand's wait, and the
 *           location of its targets: none that are known; one; children of a scope; holders of a read-write lock; the
 *           strands of a pool. Edges are not stored one by one: the targets lie beside each other in the roll, or in
 *           the list of holders, which is sorted by locks. So the graph's size depends only on the number of strands.
 * CYCLES    are found by a depth-first search without recursion: the path from a strand to itself is a cycle. A
 *           strand is in at most one of the kept cycles; if several go through the same strands, one is
 *           kept. The search follows only waits that need ALL targets to act: a wait for any of several (a select, the
 *           first child to end) is in a cycle only if there is a single target.
 * KNOWN     are the holders of mutexes and read-write locks, the runner of a once, and strands waited for by their end.
 *           Future senders, signallers and releasers of permits are unknown: a strand that waits for one has no target,
 *           and is in no cycle.
 */
#ifndef DEBUG_GRAPH_H
#define DEBUG_GRAPH_H

#include "stopped_run.h"

#define NOBODY UINT32_MAX
enum { CYCLES_MOST = 64 };

enum toward { TOWARD_NOBODY, TOWARD_ONE, TOWARD_CHILDREN, TOWARD_HOLDERS, TOWARD_POOL };

struct node {
    uint64_t on;           /* like cb.blocked_on */
    uint32_t first, count; /* its targets: TOWARD_ONE: the node; children: in the roll; holders: in the list */
    uint32_t step;         /* of the search: how many targets it has visited */
    uint32_t depth;        /* its position on the search path */
    uint32_t cycle;        /* the next in its cycle; NOBODY: it is in none */
    uint8_t blocked;       /* blocked.h; BLOCKED_NOT: it can run, or has ended */
    uint8_t toward;
    uint8_t seen;
    bool any;     /* one target would be enough */
    bool decides; /* the target has the turn of a supervisor, which has to decide about the actor that is waited for */
};

/* A holder of a read-write lock. */
struct holder {
    uintptr_t lock;
    void *site; /* where it was locked */
    uint32_t node;
    bool writes;
};

struct cycle {
    uint32_t first, length;
};

struct graph {
    struct view view;
    struct output out;
    struct roll roll;
    struct node *nodes;
    /* In the same memory. */
    struct path *path;
    uint32_t *table; /* hash table of nodes, by id: 1 + the number; 0: free */
    size_t table_size;

    struct holder *holders;
    size_t holder_count, holder_room;
    bool holders_unknown; /* no memory for the list, or some thread could not be held */

    size_t blocked;       /* strands */
    size_t idle;          /* strands that wait for an actor to run: they have no target, and are not counted */
    size_t cycle_strands; /* blocked strands in cycles */
    size_t cycle_count, cycles_kept;
    struct cycle cycles[CYCLES_MOST]; /* the shortest cycles, shortest first */
};

/* Allocate a graph in memory of its own, with an `out` to the descriptor, which is closed if fd is negative. Returns 0
 * or -ENOMEM. graph_make holds the run, and returns false if it can't; graph_close is called after the threads were
 * released. */
int graph_open(struct graph **out, struct thread *thread, int fd);
bool graph_make(struct graph *graph);
void graph_close(struct graph *graph);

/* The target at `at` of a node; NOBODY: none. at < node->count. */
uint32_t graph_target(const struct graph *graph, uint32_t node, uint32_t at);
/* The strand of that id; NOBODY: it is not in the graph. */
uint32_t graph_find(const struct graph *graph, uint64_t id);
static inline struct cb *graph_cb(const struct graph *graph, uint32_t node)
{
    return graph->roll.entries[node].c;
}

/* ---- blockers.c: strands that would have to act --------------------------------------------------------------- */

enum { STRAND_NAME = 64 };

/* "strand 'reader' #4". */
const char *blockers_name(const struct graph *graph, uint32_t node, char text[STRAND_NAME]);
/* Describe the wait of a strand in a cycle: "waits for mutex at 0x55d0, which strand 'b' #4 has locked". */
const char *blockers_step(const struct graph *graph, uint32_t node, uint32_t target, char *text, size_t size);
/* Likewise, briefly: "'a' #3 for the mutex of 'b' #4". */
const char *blockers_brief(const struct graph *graph, uint32_t node, uint32_t target, char *text, size_t size);
/* Likewise, for a strand without a target. */
const char *blockers_brief_wait(const struct graph *graph, uint32_t node, char *text, size_t size);
/* Print a line for each strand that would have to act. */
void blockers_say(const struct graph *graph, uint32_t node, size_t indent);

#endif
