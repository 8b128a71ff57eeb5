/*
 * The interface between select.c and the sources of its cases (channels, semaphores, ends of strands, descriptors,
 * ...). Page: docs/protocols/select.md.
 */
#ifndef SYNC_SOURCE_H
#define SYNC_SOURCE_H

#include "../../include/strand/select.h"
#include "../strand/wait.h"
#include "sync_blocked.h"

enum answer {
    SOURCE_NOT,     /* not now; if there is a node, it is linked, and may win the wait from now on */
    SOURCE_DONE,    /* it has happened: case->result says how. With a node: the wait was retracted first */
    SOURCE_LOST,    /* another case has won the wait meanwhile: nothing has happened here */
    SOURCE_DROPPED, /* it never will happen */
    SOURCE_AGAIN,   /* the wait was retracted, or won, without a result: the select starts again */
    SOURCE_LATER    /* the wait was retracted: the select starts again after other strands have run */
};

struct strand_source_ {
    /* Perform the case if that is possible without waiting. node NULL: the strand is not armed. Otherwise it is, and if
     * it has to wait for this case the node is linked. The node carries waiter, epoch and index; linked and result are
     * 0. */
    enum answer (*stand)(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node);
    /* NULL, or: in a run of one thread, whether a try is worthwhile. False: it would certainly fail now. For a
     * case from outside it is enough that an event will report what the try would find: such cases are tried as well if
     * the select may end without a wait. */
    bool (*ready)(struct thread *thread, const strand_case *c);
    /* The strand is not armed any more: from the return on nothing refers to the node. won: the node has won the wait;
     * returns DONE or AGAIN. NULL: nothing needs to be done. */
    enum answer (*over)(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won);
    /* 0, or the offset in the object (at object[0]) of the queue that nodes are linked into by node->link, if linking
     * and unlinking is all that is needed. In a run of one thread, where nothing changes in between, the select
     * then links a case that it has just tried without success, and unlinks it, by itself. */
    size_t queue;
    /* NULL, or: the node is linked; the instant at which the select tests the case by its own timer, or INT64_MAX. In a
     * seeded run no event reports an object of the real system. For another object an event claims the node: the timer
     * must not do that as well. */
    int64_t (*next_probe)(struct thread *thread, const strand_case *c);
    /* How many bytes of case->value other strands may read or write while a node is linked. NULL: none. */
    size_t (*size)(struct thread *thread, struct cb *me, const strand_case *c);
    bool outside;    /* an event from outside of the run may cause it: quiescent.h */
    uint8_t blocked; /* diagnostics only: the state of a strand that waits for this alone; blocked.h */
    /* The instant of a case that the select waits for by its own timer: no node is ever linked. NULL: not an
     * instant. */
    int64_t (*when)(const strand_case *c);
};

/* For a source, with an armed strand, under the lock that the node was linked under: a linked case drops out. Returns
 * the strand if it was the last case of the select, which then returns -EPIPE. */
struct member *select_drop_out(struct thread *thread, struct wait_node *node);

/* Under the lock of the queue: a random position among the select's own nodes at the end of the queue. */
struct link *select_place_(struct thread *thread, struct link *queue, const struct wait_node *node);

/* Under the same lock: link a case into the queue. If cases of one select follow each other in a queue, each order of
 * them is equally likely, unless the select is ordered. */
static inline void select_link(struct thread *thread, struct link *queue, struct wait_node *node)
{
    struct link *before = queue;
    if (UNLIKELY(!list_empty(queue)) &&
        UNLIKELY(CONTAINER(queue->prev, struct wait_node, link)->waiter == node->waiter))
        before = select_place_(thread, queue, node);
    list_push_back(before, &node->link);
    atomic_store_explicit(&node->linked, 1, memory_order_relaxed);
}

/* For a source: the case can happen at once. If node is not NULL, the strand is armed. */
static inline enum answer source_settle(struct thread *thread, struct cb *me, strand_case *c,
                                        const struct wait_node *node)
{
    if (node && !wait_retract(thread, me))
        return SOURCE_LOST;
    c->result = 0;
    return SOURCE_DONE;
}

/* A bit of case->flags. */
enum { CASE_DROPS = NODE_DROPS };

/* The winner of a wait that ended because the last case dropped out: no case. */
#define SELECT_NONE WAIT_FLOOR_MOST

#endif
