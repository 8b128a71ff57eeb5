/*
 * Structs of the caller that begin with their size: their sizeof in the program's header, which may be older or newer
 * than the library's. A field that an older header lacks keeps its default; one that only a newer header has is
 * ignored.
 */
#ifndef STRAND_SIZED_H
#define STRAND_SIZED_H

#include "../base/base.h"

#include <string.h>

enum { SIZED_MOST = 4096 }; /* a greater size is a mistake */

static inline bool size_is_plausible(size_t size, size_t least)
{
    return size >= least && size <= SIZED_MOST;
}

__attribute__((noreturn)) void misuse_size_(size_t size, const char *type, const char *function);
/* Misuse unless `size`, with which a struct of that type begins, covers its first `least` bytes and is plausible. */
static inline void must_have_size(size_t size, size_t least, const char *type, const char *function)
{
    if (UNLIKELY(!size_is_plausible(size, least)))
        misuse_size_(size, type, function);
}

/* Copy a struct of the caller over the defaults in `out`, which has `room` bytes. */
static inline void sized_take(void *out, size_t room, const void *given, size_t size)
{
    memcpy(out, given, size < room ? size : room);
}

/* Fill in a struct of the caller, which has `size` bytes, from one of the library. Both begin with their size. */
static inline void sized_give(void *out, size_t size, const void *made, size_t room)
{
    const size_t head = sizeof size;
    memcpy((char *)out + head, (const char *)made + head, (size < room ? size : room) - head);
}

#endif
