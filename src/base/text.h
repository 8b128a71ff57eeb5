/*
 * Writing short texts: vsnprintf takes about 600 instructions more for a format that only joins strings.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* Copies as much of `from` as there is room for, and ends it. size: of `to`, not 0. */
static inline void text_copy(char *to, size_t size, const char *from)
{
    size_t length = strnlen(from, size - 1);
    memcpy(to, from, length);
    to[length] = '\0';
}

/* next: the first conversion in the format. */
void text_convert_(char *to, size_t size, const char *format, const char *next, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Writes what vsnprintf would. Fast if all conversions are %s. size: of `to`, not 0. */
__attribute__((format(printf, 3, 0))) static inline void text_format(char *to, size_t size, const char *format,
                                                                     va_list args)
{
    const char *next = strchr(format, '%');
    if (next)
        text_convert_(to, size, format, next, args);
    else
        text_copy(to, size, format);
}

#endif
