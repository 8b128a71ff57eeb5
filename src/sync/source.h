/*
 * What a strand can wait for as one of many: the interface between select.c and those who have something to wait for
 * (channels, semaphores, the ends of strands, descriptors, ...). Page: docs/protocols/select.md.
 */
#ifndef SYNC_SOURCE_H
#define SYNC_SOURCE_H

#include "../../include/strand/select.h"
#include "../strand/core.h"

enum answer {
    SOURCE_NOT,     /* not now; with a node: that is linked, and may win the wait from now on */
    SOURCE_DONE,    /* it has happened: case->result says how. With a node: the wait was taken back first */
    SOURCE_LOST,    /* another case has won the wait meanwhile: nothing has happened here */
    SOURCE_DROPPED, /* it never will */
    SOURCE_AGAIN,   /* the wait was taken back, or won, but it was nothing after all: the select begins anew */
    SOURCE_LATER    /* the wait was taken back: the select begins anew when others have run */
};

struct strand_source_ {
    /* Do it, if that can be done without waiting. node NULL: the strand is not armed. Else it is, and if it is to wait
     * for this the node is linked; it carries waiter, epoch and index, linked and result are 0. */
    enum answer (*stand)(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node);
    /* NULL, or: in a run of one thread, whether a try is worth while. False: it is sure to be in vain, now. */
    bool (*ready)(struct thread *thread, const strand_case *c);
    /* The strand is not armed any more: from the return on nobody holds the node. won: the node has won; DONE or AGAIN.
     * NULL: there is nothing to be done. */
    enum answer (*over)(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won);
    /* 0, or where in the object (at object[0]) the queue is that nodes are linked into by node->link, and taken out of,
     * without anything else to be done. Then in a run of one thread, where nothing changes in between, the select links
     * a case that was just tried in vain, and takes it out, by itself. */
    size_t queue;
    /* 0, or: nobody reports of it where it is the system's in a seeded run, and the select looks by itself so often;
     * ns. */
    int64_t look;
    /* How many bytes of case->value others may read or write while a node is linked. NULL: none. */
    size_t (*size)(struct thread *thread, struct cb *me, const strand_case *c);
    bool outside;    /* it may come from outside of the run: quiet.h */
    uint8_t blocked; /* for people: what a strand would be that waits for this alone; enum blocked */
    /* It is an instant, which the select waits for by its own timer: no node is ever linked. NULL: it is not. */
    int64_t (*when)(const strand_case *c);
};

/* For a source, with an armed strand: it drops out after it was linked; under the lock that the node was linked under.
 * Returns the strand if it was the last of the select, which then returns -EPIPE. */
struct member *select_drop_out(struct thread *thread, struct wait_node *node);

/* Under the lock of the queue: where chance puts the node of a select that has others at the end of the queue. */
struct link *select_place_(struct thread *thread, struct link *queue, const struct wait_node *node);

/* Under the same lock: a case stands in the queue. Where one select stands several times, one after the other, each
 * order of them is as likely, unless the select is ordered. */
static inline void select_link(struct thread *thread, struct link *queue, struct wait_node *node)
{
    struct link *before = queue;
    if (UNLIKELY(!list_empty(queue)) &&
        UNLIKELY(CONTAINER(queue->prev, struct wait_node, link)->waiter == node->waiter))
        before = select_place_(thread, queue, node);
    list_push_back(before, &node->link);
    atomic_store_explicit(&node->linked, 1, memory_order_relaxed);
}

/* In case->flags. */
enum { CASE_DROPS = 1 };

/* The case that select_drop_out wins for: none. */
#define SELECT_NONE WAIT_FLOOR_MOST

#endif
