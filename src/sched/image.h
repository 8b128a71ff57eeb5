/*
 * Where the stacks of inactive strands are kept: images, in size classes. A class of an opened fibre takes images from
 * chunks of its own; a chunk that is empty goes back to the sub-process, for whatever class of whatever fibre.
 *
 * Who may call: of one struct images, one thread at a time (the holder of its fibre); of the store, any.
 */
#ifndef SCHED_IMAGE_H
#define SCHED_IMAGE_H

#include "sched.h"

#define IMAGE_CHUNK ((size_t)64 << 10)

void image_store_open(struct image_store *store);
/* No images are left. */
void image_store_close(struct image_store *store);
/* Give the pages of mappings that are not in use back to the system, and of chunks, of so many of these at most.
 * Returns how many bytes that may have been. */
size_t image_store_trim(struct thread *thread, struct image_store *store, size_t most);

void images_open(struct images *images);
/* All images were put back. */
void images_close(struct thread *thread, struct images *images);
/* What a request is rounded up to. */
size_t image_round(size_t bytes);
/* Of at least so many bytes, 16-byte aligned, into *out. Or a negated errno code: -ENOMEM; -EAGAIN: it would be more
 * than options.max_stack_bytes, which does not count if it must. */
int image_get(struct thread *thread, struct images *images, size_t bytes, bool must, void **out);
/* bytes: as asked for, or any other number that is rounded up to the same. */
void image_put(struct thread *thread, struct images *images, void *image, size_t bytes);
/* Chunks that are kept although they are empty go back. */
void images_trim(struct thread *thread, struct images *images);

#endif
