/*
 * Lines that are printed. Names, reasons and messages may come from the network: with their control characters they
 * could forge further lines, or change a terminal. So these are printed as \xHH.
 */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

static inline bool plain_is_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f;
}

enum { PLAIN_ESCAPE = 4 };
/* Write the four characters for a control character to `to`. */
static inline void plain_escape(char *to, char c)
{
    static const char digits[] = "0123456789abcdef";
    to[0] = '\\';
    to[1] = 'x';
    to[2] = digits[(unsigned char)c >> 4];
    to[3] = digits[(unsigned char)c & 15];
}

#endif
