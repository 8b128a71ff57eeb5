/*
 * Saved stacks: the frames of inactive strands, in size classes. Each class of a shared stack cuts them from its own
 * chunks. An empty chunk returns to the run's store, for any class of any shared stack.
 *
 * One thread at a time may use a struct saved_set: the owner of its fibre. Any thread may use the store.
 */
#ifndef STACK_SAVED_H
#define STACK_SAVED_H

#include "memory.h"

#define SAVED_CHUNK ((size_t)64 << 10)

void saved_store_open(struct saved_store *store);
/* No saved stack is in use. */
void saved_store_close(struct saved_store *store);
/* Returns the pages of kept mappings to the system, and the pages of at most `most` free chunks. Returns the bytes that
 * these took at most. */
size_t saved_store_trim(struct stack_user *user, size_t most);

void saved_set_open(struct saved_set *set);
/* No saved stack of the set is in use. */
void saved_set_close(struct stack_user *user, struct saved_set *set);
/* The size that a request is rounded up to. */
size_t saved_round(size_t bytes);
/* Allocates a saved stack of at least `bytes` bytes, 16-byte aligned, into *out. Or returns a negated errno code:
 * -ENOMEM; -EAGAIN: it would exceed options.max_stack_bytes, a limit that `must` lifts. */
int saved_get(struct stack_user *user, struct saved_set *set, size_t bytes, bool must, void **out);
/* bytes: the size that was asked for, or any other that is rounded up to the same. */
void saved_put(struct stack_user *user, struct saved_set *set, void *saved, size_t bytes);
/* Returns empty chunks to the store. */
void saved_set_trim(struct stack_user *user, struct saved_set *set);

#endif
