/*
 * What the cases of this layer share: standing with a side of a descriptor, and leaving it.
 */
#ifndef IO_SELECT_IO_H
#define IO_SELECT_IO_H

#include "../../include/strand/io.h"

#include "../sync/source.h"
#include "descriptor.h"

/* One side of a descriptor, and the events that a case waits for there. */
struct target {
    int fd;
    enum side_name side;
    uint32_t wanted;
};
struct target select_io_target(int fd, enum strand_ready_event what);

/* The descriptor that a case stands with, or NULL. */
static inline struct descriptor *select_io_standing(const strand_case *c)
{
    return (struct descriptor *)(uintptr_t)c->detail;
}

/* Earlier waiters come first, but where each tests the descriptor by its own timer: each would find the others waiting,
 * and none would test it. */
static inline bool select_io_waits_for_others(const struct thread *thread, struct descriptor *d, enum side_name side)
{
    return atomic_load_explicit(&d->sides[side].waited, memory_order_relaxed) && !descriptor_is_probed(thread, d);
}

/* The strand is armed. Returns 0 if the node is linked, and counted as an operation inside the descriptor. Otherwise it
 * need not wait: returns 1, or a negated errno code; for -EAGAIN see descriptor_enter_at_once. */
int select_io_stand(struct thread *thread, strand_case *c, struct wait_node *node, struct target target);
/* Leave the queue and the descriptor. won: the node has won. Returns 1: ready; 0; or a negated errno code. */
int select_io_leave(struct thread *thread, strand_case *c, struct wait_node *node, struct target target, bool won);
/* strand_source_.next_probe */
int64_t select_io_next_probe(struct thread *thread, const strand_case *c);
/* The answer of a case that is not linked, from the result above. */
enum answer select_io_answer(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, int result);

#endif
