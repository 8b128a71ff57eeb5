/*
 * Texts are the same as vsnprintf's, whatever the conversions and the room.
 */
#include "../../src/base/text.h"

#include <stdio.h>

static int failures;

__attribute__((format(printf, 1, 2))) static void check(const char *format, ...)
{
    for (size_t size = 1; size <= 40; size++) {
        char expected[48], text[48];
        va_list args, again;
        memset(expected, '#', sizeof expected);
        memset(text, '#', sizeof text);
        va_start(args, format);
        va_copy(again, args);
        vsnprintf(expected, size, format, args);
        text_format(text, size, format, again);
        va_end(again);
        va_end(args);
        size_t used = strlen(expected) + 1;
        if (memcmp(expected, text, used) != 0 || text[size] != '#') {
            printf("'%s' in %zu bytes: '%s' instead of '%s'\n", format, size, text, expected);
            failures++;
        }
    }
}

static void check_copy(const char *from)
{
    for (size_t size = 1; size <= 40; size++) {
        char expected[48], text[48];
        memset(text, '#', sizeof text);
        snprintf(expected, size, "%s", from);
        text_copy(text, size, from);
        if (strcmp(expected, text) != 0 || text[size] != '#') {
            printf("'%s' in %zu bytes: '%s'\n", from, size, text);
            failures++;
        }
    }
}

int main(void)
{
    const char *volatile none = NULL;
    check("%s", "");
    check("no conversion");
    check("%s", "a string alone that is longer than the room");
    check("in front %s", "behind");
    check("%s%s%s", "one", "", "three");
    check("strand '%s' was %s%s%s%s%s", "name", "cancelled", " by ", "another", ": ", "why");
    check("%s and none: %s", "one", none);
    check("%d of %s", 7, "seven");
    check("%s of %d", "seven", 7);
    check("100 %% of %s", "all");
    check("%5s|%.2s", "abc", "abc");
    check_copy("");
    check_copy("a text that is longer than the room for it, by some letters");
    return failures != 0;
}
