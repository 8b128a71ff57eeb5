/*
 * Every row of docs/misuse.md that names a program: its report has every text that the row quotes. Rows that name a
 * test are checked by tools/check-conformance.sh. A longjmp out of a block is found in several ways, all of them here.
 */
#define SUITE misuse_table
#include "test.h"

#include <signal.h>

enum { COLUMNS = 5, CELL = 1024 };

/* The line's cells, without the bars; false: it is no row of five. */
static bool split(const char *line, char cells[COLUMNS][CELL])
{
    int n = 0;
    if (*line++ != '|')
        return false;
    for (const char *bar; (bar = strchr(line, '|')) != NULL; line = bar + 1) {
        if (n == COLUMNS || bar - line >= CELL)
            return false;
        snprintf(cells[n++], CELL, "%.*s", (int)(bar - line), line);
    }
    return n == COLUMNS;
}

/* The next `text` of the cell, which is changed; NULL: there is none. */
static char *quoted(char **at)
{
    char *begin = strchr(*at, '`'), *end = begin ? strchr(begin + 1, '`') : NULL;
    if (!end)
        return NULL;
    *end = '\0';
    *at = end + 1;
    return begin + 1;
}

static void run_row(char cells[COLUMNS][CELL], char *which)
{
    static struct test_output o;
    char *colon = strchr(which, ':'), *texts = cells[2];
    CHECK(colon != NULL);
    *colon = '\0';
    test_program(&o, which, colon + 1);
    int count = 0;
    for (char *text; (text = quoted(&texts)) != NULL; count++)
        CHECK_CONTAINS(o.err, text);
    CHECK(count > 0);
}

TEST_PROGRAM(each_mistake_of_the_table_is_reported_with_the_rule_the_place_and_the_remedy)
{
    static char line[8192], cells[COLUMNS][CELL];
    int rows = 0;
    FILE *table = fopen(TEST_DOCS "/misuse.md", "r");
    CHECK(table != NULL);
    while (fgets(line, sizeof line, table)) {
        char *check = cells[COLUMNS - 1];
        if (!split(line, cells) || !strchr(check, ':'))
            continue;
        rows++;
        char *which = quoted(&check);
        if (which && strncmp(which, "tests/", 6) != 0)
            run_row(cells, which);
    }
    fclose(table);
    CHECK(rows >= 40);
}

/* The strand goes on after the jump, so each of these finds the skipped block at another place. */
TEST_PROGRAM(a_longjmp_out_of_a_block_is_misuse_wherever_it_is_found)
{
    static const char *const cases[] = {"jump_over_a_shield", "leave_a_scope_outside_of_the_skipped_one",
                                        "leave_a_try_block_outside_of_the_skipped_one", "throw_past_a_skipped_scope",
                                        "jump_on_a_shared_stack"};
    static struct test_output o;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_program(&o, "mistakes", cases[i]);
        CHECK(o.signalled);
        CHECK_EQ(o.status, SIGABRT);
        CHECK_CONTAINS(o.err, "misuse of longjmp");
        CHECK_STR(o.out, "");
    }
}
