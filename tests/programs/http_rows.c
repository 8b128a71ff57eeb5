/*
 * Prints the requests of tests/httpd/rows.h, for other programs: a line for each, with the status, whether the
 * connection stays, and the bytes in hexadecimal.
 */
#include "../httpd/rows.h"

#include <stdio.h>

static void print(const struct row *rows, size_t count)
{
    for (const struct row *row = rows; row < rows + count; row++) {
        printf("%d %d ", row->status, row->stays);
        for (size_t i = 0; i < row->length; i++)
            printf("%02x", (unsigned char)row->bytes[i]);
        putchar('\n');
    }
}

#define PRINT(rows) print(rows, sizeof(rows) / sizeof *(rows))

int main(void)
{
    PRINT(request_lines);
    PRINT(fields);
    PRINT(lengths);
    PRINT(codings);
    PRINT(chunks);
    return 0;
}
