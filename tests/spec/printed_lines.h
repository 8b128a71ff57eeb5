/*
 * What strand_exception_print writes. Include test.h before.
 */
#ifndef SPEC_PRINTED_LINES_H
#define SPEC_PRINTED_LINES_H

/** How many lines of what is printed have the words. */
static inline int printed_lines(const strand_exception *e, const char *words)
{
    char line[512];
    int count = 0;
    FILE *file = tmpfile();
    CHECK(file != NULL);
    strand_exception_print(e, fileno(file));
    rewind(file);
    while (fgets(line, sizeof line, file))
        count += strstr(line, words) != NULL;
    fclose(file);
    return count;
}

#endif
