/*
 * Saved stacks: the frames of inactive strands, in size classes. A class of a shared stack takes them from chunks of
 * its own; a chunk that is empty goes back to the run's store, for any class of any shared stack.
 *
 * Who may call: of one struct saved_set, one thread at a time (the holder of its fibre); of the store, any.
 */
#ifndef STACK_SAVED_H
#define STACK_SAVED_H

#include "memory.h"

#define SAVED_CHUNK ((size_t)64 << 10)

void saved_store_open(struct saved_store *store);
/* No saved stacks are left. */
void saved_store_close(struct saved_store *store);
/* Give the pages of mappings that are not in use back to the system, and of chunks, of so many of these at most.
 * Returns how many bytes that may have been. */
size_t saved_store_trim(struct stack_user *user, size_t most);

void saved_set_open(struct saved_set *set);
/* All saved stacks were put back. */
void saved_set_close(struct stack_user *user, struct saved_set *set);
/* What a request is rounded up to. */
size_t saved_round(size_t bytes);
/* Of at least so many bytes, 16-byte aligned, into *out. Or a negated errno code: -ENOMEM; -EAGAIN: it would be more
 * than options.max_stack_bytes, which does not count if it must. */
int saved_get(struct stack_user *user, struct saved_set *set, size_t bytes, bool must, void **out);
/* bytes: as asked for, or any other number that is rounded up to the same. */
void saved_put(struct stack_user *user, struct saved_set *set, void *saved, size_t bytes);
/* Chunks that are kept although they are empty go back. */
void saved_set_trim(struct stack_user *user, struct saved_set *set);

#endif
