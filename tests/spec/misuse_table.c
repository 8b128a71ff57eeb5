/*
 * Every row of docs/misuse.md that names a program: its report has every text that the row quotes, and the program ends
 * as the document says. Rows that name a test are checked by tools/conformance.py. A longjmp out of a block is found in
 * several ways, all of them here.
 */
#define SUITE misuse_table
#include "test.h"

#include "has_lines.h"

#include <signal.h>

enum { COLUMNS = 5, CELL = 1024 };

static bool is_row(const char *line)
{
    return *line == '|' && strncmp(line, "| mistake |", 11) != 0 && strncmp(line, "|---|", 5) != 0;
}

/* The row's cells, without the bars. */
static void split(const char *line, char cells[COLUMNS][CELL])
{
    const char *row = line++;
    int n = 0;
    for (const char *bar; (bar = strchr(line, '|')) != NULL; line = bar + 1) {
        if (n == COLUMNS || bar - line >= CELL)
            CHECK_FAIL("more cells, or a longer one, than this test takes: %s", row);
        snprintf(cells[n++], CELL, "%.*s", (int)(bar - line), line);
    }
    if (n != COLUMNS || *line != '\n')
        CHECK_FAIL("not a whole row: %s", row);
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

/* By abort, unless an exception has left the root strand, or the row says that the program goes on. */
static bool ended_as_it_says(const struct test_output *o, const char *remedy)
{
    if (strstr(o->err, "an exception has left the root strand"))
        return !o->signalled && o->status == 1;
    if (strstr(remedy, "the program goes on"))
        return !o->signalled && o->status == 0;
    return o->signalled && o->status == SIGABRT;
}

/* A text that ends with "function+" quotes a place of the program, whose line the report shows as well. */
static void check_text(const char *report, const char *text)
{
    CHECK_CONTAINS(report, text);
    const char *rest = strstr(report, text) + strlen(text);
    if (rest[-1] != '+' || !has_lines())
        return;
    rest += strspn(rest, "0123456789abcdefx");
    if (strncmp(rest, " (tests/programs/", 17) != 0)
        CHECK_FAIL("%s has no line: %.100s", text, rest);
}

static void run_row(char cells[COLUMNS][CELL], char *which)
{
    static struct test_output o;
    char *colon = strchr(which, ':'), *texts = cells[2];
    CHECK(colon != NULL);
    *colon = '\0';
    test_program(&o, which, colon + 1);
    if (!ended_as_it_says(&o, cells[3]))
        CHECK_FAIL("%s:%s ended by %s %d", which, colon + 1, o.signalled ? "signal" : "status", o.status);
    int count = 0;
    for (char *text; (text = quoted(&texts)) != NULL; count++)
        check_text(o.err, text);
    CHECK(count > 0);
}

TEST_PROGRAM(each_mistake_of_the_table_is_reported_with_the_rule_the_place_and_the_remedy)
{
    static char line[8192], cells[COLUMNS][CELL];
    int rows = 0;
    FILE *table = fopen(TEST_DOCS "/misuse.md", "r");
    CHECK(table != NULL);
    while (fgets(line, sizeof line, table)) {
        if (!is_row(line))
            continue;
        split(line, cells);
        char *check = cells[COLUMNS - 1], *which = quoted(&check);
        if (!which)
            CHECK_FAIL("no `program:case` and no `test`: %s", line);
        if (strncmp(which, "tests/", 6) != 0)
            run_row(cells, which);
        rows++;
    }
    fclose(table);
    CHECK(rows >= 90);
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
