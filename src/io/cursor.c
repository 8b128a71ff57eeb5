/*
 * Lists of buffers of the caller.
 */
#include "cursor.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { PARTS_MOST = 1024 };

int cursor_begin(struct cursor *cursor, const struct iovec *parts, int count)
{
    *cursor = (struct cursor){.parts = parts, .count = count};
    if (count < 0 || count > PARTS_MOST)
        return -EINVAL;
    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len > (size_t)SSIZE_MAX - cursor->left)
            return -EINVAL;
        if (!parts[i].iov_base && parts[i].iov_len)
            return -EFAULT;
        cursor->left += parts[i].iov_len;
    }
    return 0;
}

void cursor_move(struct cursor *cursor, size_t size, const char *from, char *to)
{
    cursor->left -= size;
    while (size) {
        size_t here = cursor->parts->iov_len - cursor->at, step = size < here ? size : here;
        char *at = (char *)cursor->parts->iov_base + cursor->at;
        if (from)
            memcpy(at, from, step);
        else if (to)
            memcpy(to, at, step);
        from = from ? from + step : NULL;
        to = to ? to + step : NULL;
        size -= step;
        cursor->at += step;
        if (cursor->at == cursor->parts->iov_len) {
            cursor->parts++;
            cursor->count--;
            cursor->at = 0;
        }
    }
}

int cursor_parts(const struct cursor *cursor, size_t size, struct iovec *out, int most)
{
    int count = 0;
    size_t at = cursor->at;
    for (const struct iovec *part = cursor->parts; size && count < most; part++, at = 0) {
        size_t here = part->iov_len - at, step = size < here ? size : here;
        if (step)
            out[count++] = (struct iovec){(char *)part->iov_base + at, step};
        size -= step;
    }
    return count;
}
