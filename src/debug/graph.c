/*
 * Building the wait-for graph and searching it for cycles. See graph.h.
 */
#include "graph.h"

#include "actors.h"

#include "../base/sort.h"
#include "../strand/handle.h"
#include "../strand/lockset.h"
#include "../strand/pool.h"
#include "../strand/scope.h"
#include "../strand/wait.h"
#include "../sync/gate.h"

#include <errno.h>

enum { NOT_SEEN, ON_PATH, DONE_WITH };

struct path {
    uint32_t node;
    uint32_t taken; /* 1 + the depth of the last strand on the path so far that is in a cycle; 0: there is none */
};

enum { TABLE_WORDS = 4 }; /* per strand: at least half of them are free, since the size is a power of two */
#define EACH (sizeof(struct node) + sizeof(struct path) + TABLE_WORDS * sizeof(uint32_t))

/* ---- memory ---------------------------------------------------------------------------------------------- */

int graph_open(struct graph **out, struct thread *thread, int fd)
{
    void *memory;
    size_t own = (sizeof(struct graph) + 63) & ~(size_t)63;
    int error = arch_map(own + scratch_size(), &memory);
    if (error)
        return error;
    struct graph *graph = memory;
    graph->view = (struct view){
        .thread = thread, .scratch = (struct scratch *)(void *)((char *)memory + own), .out = &graph->out};
    scratch_init(graph->view.scratch);
    error = output_open(&graph->out, fd);
    if (!error)
        error = roll_open(&graph->roll, runtime_of(thread), EACH);
    if (error)
        graph_close(graph);
    else
        *out = graph;
    return error;
}

static void give_holders(struct graph *graph)
{
    if (graph->holders)
        arch_unmap(graph->holders, graph->holder_room * sizeof *graph->holders);
    graph->holders = NULL;
}

void graph_close(struct graph *graph)
{
    size_t own = (sizeof(struct graph) + 63) & ~(size_t)63;
    give_holders(graph);
    roll_close(&graph->roll);
    output_close(&graph->out);
    arch_unmap(graph, own + scratch_size());
}

/* ---- strands by their ids -------------------------------------------------------------------------------- */

static size_t place_of(const struct graph *graph, uint64_t id)
{
    return (size_t)((id * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (graph->table_size - 1);
}

static void know(struct graph *graph, uint32_t node)
{
    size_t at = place_of(graph, graph->roll.entries[node].id);
    while (graph->table[at])
        at = (at + 1) & (graph->table_size - 1);
    graph->table[at] = node + 1;
}

uint32_t graph_find(const struct graph *graph, uint64_t id)
{
    for (size_t at = place_of(graph, id); graph->table[at]; at = (at + 1) & (graph->table_size - 1))
        if (graph->roll.entries[graph->table[at] - 1].id == id)
            return graph->table[at] - 1;
    return NOBODY;
}

/* The node of a control block that was not reused for another strand since. */
static uint32_t node_of(const struct graph *graph, struct cb *c)
{
    uint32_t node = c ? graph_find(graph, cb_id(c)) : NOBODY;
    return node != NOBODY && graph_cb(graph, node) == c ? node : NOBODY;
}

static void divide_memory(struct graph *graph)
{
    size_t room = graph->roll.room;
    graph->nodes = graph->roll.beside;
    graph->path = (struct path *)(void *)(graph->nodes + room + 1);
    graph->table = (uint32_t *)(void *)(graph->path + room + 1);
    graph->table_size = 1;
    while (graph->table_size * 2 <= room * TABLE_WORDS)
        graph->table_size *= 2;
    for (uint32_t i = 0; i < graph->roll.count; i++)
        know(graph, i);
}

/* ---- targets ------------------------------------------------------------------------------------------------ */

static void go_to_one(const struct graph *graph, struct node *node, struct cb *c)
{
    uint32_t one = node_of(graph, c);
    if (one == NOBODY)
        return;
    node->toward = TOWARD_ONE;
    node->first = one;
    node->count = 1;
}

static void go_to_end(const struct graph *graph, struct node *node, uint64_t id)
{
    uint32_t one = graph_find(graph, id);
    if (one != NOBODY)
        go_to_one(graph, node, graph_cb(graph, one));
}

static struct scope *anchor_of(const struct graph *graph, uint32_t node)
{
    return plain_load(&graph_cb(graph, node)->anchor, memory_order_relaxed);
}

/* All strands that are anchored to scopes of this owner. */
static void go_to_children(const struct graph *graph, struct node *node, uint64_t owner)
{
    size_t first = roll_first_of(&graph->roll, owner), next = roll_first_of(&graph->roll, owner + 1);
    node->toward = TOWARD_CHILDREN;
    node->first = (uint32_t)first;
    node->count = (uint32_t)(next - first);
}

/* The scope that it leaves or joins, which one known child identifies. */
static void go_to_siblings(const struct graph *graph, struct node *node, uint64_t owner)
{
    uint32_t child = graph_find(graph, node->on);
    if (child != NOBODY && graph->roll.entries[child].owner == owner)
        go_to_children(graph, node, owner);
}

/* The scope whose first ending child it waits for. */
static void go_to_any(const struct graph *graph, struct node *node, struct cb *c, uint64_t id)
{
    struct own own;
    if (!inspect_own(&graph->view, c, &own))
        return;
    for (struct block *block = own.blocks; block; block = block->outer) {
        struct scope *scope = CONTAINER(block, struct scope, block);
        if (block->type != BLOCK_SCOPE || scope->waiter != &c->wait.node)
            continue;
        node->on = (uintptr_t)scope;
        go_to_children(graph, node, id);
        node->any = true;
        return;
    }
}

static void go_to_owner(const struct graph *graph, struct node *node)
{
    const struct gate *gate = (const struct gate *)(uintptr_t)node->on;
    uint64_t value = gate_value(atomic_load_explicit(&gate->word, memory_order_acquire)); /* [G4] */
    go_to_one(graph, node, (struct cb *)(uintptr_t)value);
}

/* The first closer of the pool waits for its strands, the others for that one. */
static void go_to_pool(const struct graph *graph, struct node *node, struct cb *c)
{
    const struct opened_pool *op = (const struct opened_pool *)(uintptr_t)node->on;
    if (!op->closer)
        return;
    if (op->closer->waiter != c) {
        go_to_one(graph, node, op->closer->waiter);
        return;
    }
    node->toward = TOWARD_POOL;
    node->count = (uint32_t)graph->roll.count;
}

/* Objects of the user or of another strand are read only if the strand is settled. */
static void go_on(const struct graph *graph, struct node *node, struct cb *c, uint64_t id)
{
    bool settled = inspect_is_settled(&graph->view, c);
    switch (node->blocked) {
    case BLOCKED_JOIN:
    case BLOCKED_WAIT:
        go_to_end(graph, node, node->on);
        break;
    case BLOCKED_JOIN_SCOPE:
    case BLOCKED_LEAVE:
        go_to_siblings(graph, node, id);
        break;
    case BLOCKED_SCOPE:
        if (settled)
            go_to_any(graph, node, c, id);
        break;
    case BLOCKED_POOL:
        if (settled)
            go_to_pool(graph, node, c);
        break;
    case BLOCKED_MUTEX:
    case BLOCKED_ONCE:
        if (settled)
            go_to_owner(graph, node);
        break;
    case BLOCKED_ASK:
    case BLOCKED_ACTOR_END:
    case BLOCKED_MAILBOX:
        if (settled) {
            node->on = (uintptr_t)actors_waited_for(c);
            go_to_one(graph, node, actors_strand(c, &node->decides));
        }
        break;
    default:
        break;
    }
}

static bool is_over(struct cb *c)
{
    return atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER; /* [E5] */
}

static bool keep(const struct graph *graph, uint32_t node)
{
    return handle_ref_take(graph->view.thread, &graph_cb(graph, node)->word, graph->roll.entries[node].id);
}

static void fill(struct graph *graph, uint32_t i)
{
    struct node *node = &graph->nodes[i];
    struct cb *c = graph_cb(graph, i);
    node->cycle = NOBODY;
    if (!keep(graph, i))
        return; /* it is gone: some thread could not be held */
    if (c->blocked == BLOCKED_ACTOR && !is_over(c)) {
        graph->idle++;
    } else if (inspect_is_blocked(c)) {
        node->blocked = c->blocked;
        node->on = c->blocked_on;
        graph->blocked++;
        go_on(graph, node, c, graph->roll.entries[i].id);
    }
    handle_unref_cb(graph->view.thread, c);
}

/* ---- holders of read-write locks ------------------------------------------------------------------------- */

static bool is_rwlock_wait(const struct node *node)
{
    return node->blocked == BLOCKED_READ_LOCK || node->blocked == BLOCKED_WRITE_LOCK;
}

static void record_lock(struct graph *graph, uint32_t node, struct lockset_entry entry)
{
    unsigned type = entry.what & 7;
    if (!entry.what || type == LOCK_MUTEX)
        return;
    if (graph->holder_count < graph->holder_room)
        graph->holders[graph->holder_count] =
            (struct holder){entry.what & ~(uintptr_t)7, entry.site, node, type == LOCK_WRITE};
    graph->holder_count++;
}

static void record_locks(struct graph *graph)
{
    struct own own;
    graph->holder_count = 0;
    for (uint32_t i = 0; i < graph->roll.count; i++) {
        if (!inspect_own(&graph->view, graph_cb(graph, i), &own) || !own.lockset)
            continue;
        for (int k = 0; k < LOCKSET_FEW; k++)
            record_lock(graph, i, own.lockset->few[k]);
        for (const struct index_node *at = index_first(&own.lockset->others); at; at = index_next(at))
            record_lock(graph, i, record_entry(CONTAINER(at, const struct lockset_record, by_what)));
    }
}

static bool holder_comes_before(const void *a, const void *b)
{
    const struct holder *one = a, *other = b;
    return one->lock != other->lock ? one->lock < other->lock : one->node < other->node;
}

static void find_holders(struct graph *graph)
{
    void *memory;
    graph->holders_unknown = true;
    if (graph->view.loose)
        return;
    record_locks(graph);
    if (!graph->holder_count || arch_map(graph->holder_count * sizeof *graph->holders, &memory))
        return;
    graph->holders = memory;
    graph->holder_room = graph->holder_count;
    record_locks(graph);
    sort_in_place(graph->holders, graph->holder_count, sizeof *graph->holders, holder_comes_before);
    graph->holders_unknown = false;
}

static size_t first_holder(const struct graph *graph, uintptr_t lock)
{
    size_t low = 0, high = graph->holder_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (graph->holders[middle].lock < lock)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void go_to_holders(struct graph *graph)
{
    find_holders(graph);
    for (uint32_t i = 0; i < graph->roll.count && !graph->holders_unknown; i++) {
        struct node *node = &graph->nodes[i];
        if (!is_rwlock_wait(node))
            continue;
        node->toward = TOWARD_HOLDERS;
        node->first = (uint32_t)first_holder(graph, (uintptr_t)node->on);
        node->count = (uint32_t)(first_holder(graph, (uintptr_t)node->on + 1) - node->first);
    }
}

/* ---- following edges ---------------------------------------------------------------------------------------- */

/* The scope whose children are the targets. */
static struct scope *scope_of(const struct graph *graph, const struct node *node)
{
    if (node->blocked == BLOCKED_SCOPE)
        return (struct scope *)(uintptr_t)node->on;
    uint32_t child = graph_find(graph, node->on);
    return child == NOBODY ? NULL : anchor_of(graph, child);
}

static bool lives_on_pool(const struct graph *graph, uint32_t node, uint64_t on)
{
    const struct opened_pool *op = (const struct opened_pool *)(uintptr_t)on;
    struct cb *c = graph_cb(graph, node);
    return !is_over(c) && c->member.fibre->pool == pool_behind(op);
}

uint32_t graph_target(const struct graph *graph, uint32_t from, uint32_t at)
{
    const struct node *node = &graph->nodes[from];
    switch (node->toward) {
    case TOWARD_ONE:
        return node->first;
    case TOWARD_CHILDREN:
        at += node->first;
        return !is_over(graph_cb(graph, at)) && anchor_of(graph, at) == scope_of(graph, node) ? at : NOBODY;
    case TOWARD_HOLDERS:
        return graph->holders[node->first + at].node;
    default:
        return lives_on_pool(graph, at, node->on) ? at : NOBODY;
    }
}

/* ---- cycles ------------------------------------------------------------------------------------------------- */

/* Among cycles of the same length the first one stays in front. */
static void keep_cycle(struct graph *graph, struct cycle cycle)
{
    size_t at = graph->cycles_kept;
    graph->cycle_count++;
    if (at == CYCLES_MOST && graph->cycles[at - 1].length <= cycle.length)
        return;
    if (at == CYCLES_MOST)
        at--;
    else
        graph->cycles_kept++;
    for (; at > 0 && graph->cycles[at - 1].length > cycle.length; at--)
        graph->cycles[at] = graph->cycles[at - 1];
    graph->cycles[at] = cycle;
}

/* The last strand on the path has an edge back to one on the path. */
static void close_cycle(struct graph *graph, uint32_t back_to, uint32_t depth)
{
    uint32_t first = graph->nodes[back_to].depth;
    if (graph->path[depth].taken > first)
        return; /* one of them is in a cycle already */
    for (uint32_t at = first; at <= depth; at++) {
        graph->nodes[graph->path[at].node].cycle = at < depth ? graph->path[at + 1].node : back_to;
        graph->path[at].taken = at + 1;
    }
    graph->cycle_strands += depth - first + 1;
    keep_cycle(graph, (struct cycle){back_to, depth - first + 1});
}

/* The next target of a node that needs all of its targets. */
static uint32_t next_step(struct graph *graph, struct node *node, uint32_t number)
{
    while (node->step < node->count) {
        uint32_t target = graph_target(graph, number, node->step++);
        if (target != NOBODY && graph->nodes[target].blocked != BLOCKED_NOT)
            return target;
    }
    return NOBODY;
}

static void push(struct graph *graph, uint32_t number, uint32_t depth)
{
    struct node *node = &graph->nodes[number];
    node->seen = ON_PATH;
    node->depth = depth;
    graph->path[depth] = (struct path){number, depth ? graph->path[depth - 1].taken : 0};
}

/* Depth first from an unvisited node. */
static void search_from(struct graph *graph, uint32_t number)
{
    uint32_t depth = 0;
    push(graph, number, depth);
    for (;;) {
        struct node *node = &graph->nodes[graph->path[depth].node];
        uint32_t target = next_step(graph, node, graph->path[depth].node);
        if (target == NOBODY) {
            node->seen = DONE_WITH;
            if (depth-- == 0)
                return;
        } else if (graph->nodes[target].seen == NOT_SEEN) {
            push(graph, target, ++depth);
        } else if (graph->nodes[target].seen == ON_PATH) {
            close_cycle(graph, target, depth);
        }
    }
}

/* A wait for any of several counts as an edge only if there is just one. */
static void forget_choices(struct graph *graph)
{
    for (uint32_t i = 0; i < graph->roll.count; i++) {
        struct node *node = &graph->nodes[i];
        uint32_t live = 0;
        for (uint32_t at = 0; node->any && at < node->count && live < 2; at++)
            live += graph_target(graph, i, at) != NOBODY;
        if (live > 1)
            node->step = node->count;
    }
}

static void find_rings(struct graph *graph)
{
    forget_choices(graph);
    for (uint32_t i = 0; i < graph->roll.count; i++)
        if (graph->nodes[i].blocked != BLOCKED_NOT && graph->nodes[i].seen == NOT_SEEN)
            search_from(graph, i);
}

bool graph_make(struct graph *graph)
{
    bool locks = false;
    if (!stopped_run_hold(&graph->view, true))
        return false;
    roll_call(&graph->roll, runtime_of(graph->view.thread));
    divide_memory(graph);
    for (uint32_t i = 0; i < graph->roll.count; i++) {
        fill(graph, i);
        locks |= is_rwlock_wait(&graph->nodes[i]);
    }
    if (locks)
        go_to_holders(graph);
    find_rings(graph);
    return true;
}
