/*
 * The graph of waits: for each strand that is blocked, which strands would all have to act before it can go on; and
 * where strands wait for each other in a ring. Built while the run stands still (still.h); reads, and changes nothing.
 *
 * STATE     a node for each strand, beside its entry in the roll. It knows why its strand waits, and where those lie
 *           that it waits for: none that are known; one; children of a scope; holders of a read-write lock; the strands
 *           of a pool. These are not written down for each: they lie beside each other in the roll, or in the list of
 *           holders, which is sorted by locks. So the graph is as large as the run has strands, whatever they wait for.
 * RINGS     are found by a search in depth, without recursion: what is between a strand and itself on the path is a
 *           ring. A strand is in one of those that are kept, at most; of strands that reach each other on several ways
 *           one ring is kept. Only those who would ALL have to act are followed: a wait for any of several (a select,
 *           the first child to end) is in a ring only if there is one.
 * KNOWN     is who has locked a mutex, or a read-write lock, or has the turn of a once; who is waited for by its end.
 *           Nobody knows who is going to send, to signal, or to release a permit: such a strand waits for nobody in
 *           particular, and is in no ring.
 */
#ifndef DEBUG_GRAPH_H
#define DEBUG_GRAPH_H

#include "still.h"

#define NOBODY UINT32_MAX
enum { RINGS_MOST = 64 };

enum toward { TOWARD_NOBODY, TOWARD_ONE, TOWARD_CHILDREN, TOWARD_HOLDERS, TOWARD_POOL };

struct node {
    uint64_t on;           /* as cb.blocked_on */
    uint32_t first, count; /* of whom it waits for: TOWARD_ONE: the node; children: in the roll; holders: in the list */
    uint32_t step;         /* of the search: to so many of them it has gone */
    uint32_t depth;        /* and where it stands on the path */
    uint32_t ring;         /* the next in its ring; NOBODY: it is in none */
    uint8_t blocked;       /* enum blocked; BLOCKED_NOT: it can run, or has ended */
    uint8_t toward;
    uint8_t seen;
    bool any; /* one of those would be enough */
};

/* Who has a read-write lock. */
struct holder {
    uintptr_t lock;
    void *site; /* where it was locked */
    uint32_t node;
    bool writes;
};

struct ring {
    uint32_t first, length;
};

struct graph {
    struct look look;
    struct out out;
    struct roll roll;
    struct node *nodes;
    /* In the same memory. */
    struct path *path;
    uint32_t *table; /* of nodes, by id: 1 + the number; 0: free */
    size_t table_size;

    struct holder *holders;
    size_t holder_count, holder_room;
    bool holders_unknown; /* there was no memory to write them down, or somebody could not be held */

    size_t blocked;      /* strands */
    size_t idle;         /* strands that actors could run on: they wait for nobody, and are not counted */
    size_t ring_strands; /* of them in rings */
    size_t ring_count, rings_kept;
    struct ring rings[RINGS_MOST]; /* the shortest, in that order */
};

/* A graph in memory of its own, with an `out` to the descriptor that is not open if fd is negative. Returns 0 or
 * -ENOMEM. graph_make holds the run, and returns false if it can't; graph_close when nobody is held any more. */
int graph_open(struct graph **out, struct thread *thread, int fd);
bool graph_make(struct graph *graph);
void graph_close(struct graph *graph);

/* The one at `at` of those that a node waits for; NOBODY: none. at < node->count. */
uint32_t graph_target(const struct graph *graph, uint32_t node, uint32_t at);
/* The strand of that id; NOBODY: it is not in the graph. */
uint32_t graph_find(const struct graph *graph, uint64_t id);
static inline struct cb *graph_cb(const struct graph *graph, uint32_t node)
{
    return graph->roll.entries[node].c;
}

/* ---- actors.c: who would have to act ----------------------------------------------------------------------- */

enum { STRAND_NAME = 64 };

/* "strand 'reader' #4". */
const char *actors_name(const struct graph *graph, uint32_t node, char text[STRAND_NAME]);
/* What a strand in a ring waits for: "waits for mutex at 0x55d0, which strand 'b' #4 has locked". */
const char *actors_step(const struct graph *graph, uint32_t node, uint32_t target, char *text, size_t size);
/* The same in few words: "'a' #3 for the mutex of 'b' #4". */
const char *actors_brief(const struct graph *graph, uint32_t node, uint32_t target, char *text, size_t size);
/* Of one that waits for nobody in particular. */
const char *actors_brief_wait(const struct graph *graph, uint32_t node, char *text, size_t size);
/* Lines for all who would have to act. */
void actors_say(const struct graph *graph, uint32_t node, size_t indent);

#endif
