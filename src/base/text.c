/*
 * Formats with conversions.
 */
#include "text.h"

#include <stdbool.h>
#include <stdio.h>

static bool has_strings_only(const char *at)
{
    while (at && at[1] == 's')
        at = strchr(at + 2, '%');
    return !at;
}

/* Returns the end of what was appended. */
static char *append(char *at, const char *end, const char *from, size_t length)
{
    size_t room = (size_t)(end - at);
    length = length < room ? length : room;
    memcpy(at, from, length);
    return at + length;
}

void text_convert_(char *to, size_t size, const char *format, const char *next, va_list args)
{
    char *at = to, *end = to + size - 1;
    if (!has_strings_only(next)) {
        vsnprintf(to, size, format, args);
        return;
    }
    for (; next; next = strchr(format, '%')) {
        const char *string = va_arg(args, const char *);
        if (!string)
            string = "(null)";
        at = append(at, end, format, (size_t)(next - format));
        at = append(at, end, string, strnlen(string, (size_t)(end - at)));
        format = next + 2;
    }
    text_copy(at, (size_t)(end - at) + 1, format);
}
