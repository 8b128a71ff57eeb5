/*
 * A place in a list of buffers of the caller, up to which a transfer has come.
 */
#ifndef IO_CURSOR_H
#define IO_CURSOR_H

#include "../../include/strand/socket.h"

#include <stdbool.h>

struct cursor {
    const struct iovec *parts;
    int count;
    size_t at; /* bytes of parts[0] that are done */
    size_t left;
};

/* Returns 0, or a negated errno code: what the system says of such buffers. */
int cursor_begin(struct cursor *cursor, const struct iovec *parts, int count);
/* Move on by `size` bytes, which are copied out of `from`, or to `to`, unless that is NULL. */
void cursor_move(struct cursor *cursor, size_t size, const char *from, char *to);
/* Write the parts of the next `size` bytes to `out`, at most `most` of them. Returns how many. */
int cursor_parts(const struct cursor *cursor, size_t size, struct iovec *out, int most);

#endif
