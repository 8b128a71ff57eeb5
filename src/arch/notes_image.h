/*
 * Saved frames where nothing but their bytes has to be kept. Included by the notes that have it so, after what they do
 * to memory that frames are about to be copied into (arch_note_refill_), and to an image that was copied from and stays
 * for the next time (arch_note_copied_).
 */
#ifndef ARCH_NOTES_IMAGE_H
#define ARCH_NOTES_IMAGE_H

#include <string.h>

static inline size_t arch_image_size(size_t bytes)
{
    return bytes;
}

static inline void arch_image_save(struct arch_note *n, void *image, const char *at, size_t bytes, size_t beside)
{
    (void)n, (void)beside;
    memcpy(image, at, bytes);
}

static inline void arch_image_start(struct arch_note *n, const void *image, char *at, size_t bytes)
{
    arch_note_refill_(n, at, bytes);
    memcpy(at, image, bytes);
}

static inline void arch_image_load(struct arch_note *n, const void *image, char *at, size_t bytes, size_t beside)
{
    (void)beside;
    arch_image_start(n, image, at, bytes);
    arch_note_copied_(image, bytes);
}

static inline void arch_image_drop(struct arch_note *n, void *image, size_t bytes)
{
    (void)n, (void)image, (void)bytes;
}

#endif
