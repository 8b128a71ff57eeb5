/*
 * Misuse is reported with the function, what was done and where the object was made, after the hook; then the program
 * aborts. The cases are in tests/programs, each with the texts that its report has to contain (cases.h). Common
 * mistakes are rows of docs/misuse.md, with more of their reports.
 */
#define SUITE misuse
#include "test.h"

#include "has_lines.h"

#include <signal.h>

static struct test_output o;

static bool aborted(void)
{
    return o.signalled && o.status == SIGABRT;
}

/* ---- cases --------------------------------------------------------------------------------------------------- */

static bool shared_stacks(void)
{
    const char *stacks = getenv("STRAND_STACKS");
    return stacks && strcmp(stacks, "shared") == 0;
}

/* Why a case has failed; NULL: it has not. */
static const char *wrong_with_texts(char *texts)
{
    for (char *text; (text = strsep(&texts, "\t")) != NULL;) {
        bool wanted = *text != '!';
        if ((strstr(o.err, wanted ? text : text + 1) != NULL) != wanted)
            return text;
    }
    return NULL;
}

static const char *wrong_with_report(const char *how, const char *function, char *texts)
{
    static char head[128];
    const char *told = strstr(o.out, "libstrand: misuse of ");
    snprintf(head, sizeof head, "libstrand: misuse of %s: ", function);
    if (!aborted() || strstr(o.out, "still alive"))
        return "an abort";
    if (!strstr(o.err, head))
        return head;
    if (strcmp(how, "thread") != 0 && strcmp(how, "outside") != 0 && (!told || !strstr(o.err, told)))
        return "a hook that receives one report, the same as is printed";
    return wrong_with_texts(texts);
}

static bool has_row(const char *program, const char *name);

static const char *wrong_with_case(const char *program, const char *name, const char *how, const char *function,
                                   char *texts)
{
    if (strcmp(how, "mistake") == 0)
        return has_row(program, name) ? NULL : "a row of docs/misuse.md";
    if ((strcmp(how, "own") == 0 && shared_stacks()) || (strcmp(how, "no tsan") == 0 && TEST_TSAN))
        return NULL;
    test_program(&o, program, name);
#ifndef STRAND_DEBUG_BUILD
    if (strcmp(how, "debug") == 0)
        how = "none";
#endif
    if (strcmp(how, "none") == 0)
        return o.signalled || o.status != 0 || strcmp(o.out, "still alive\n") != 0 ? "its end" : NULL;
    return wrong_with_report(how, function, texts);
}

static int failed_cases;

static void check_case(const char *program, char *line)
{
    char again[128], texts[512];
    const char *name = strsep(&line, "\t"), *how = strsep(&line, "\t"), *function = strsep(&line, "\t");
    bool on_two = strcmp(how, "two") == 0;
    for (int i = 0; i <= on_two; i++) {
        snprintf(again, sizeof again, "%s%s", i ? "2 " : "", name);
        if (snprintf(texts, sizeof texts, "%s", line ? line : "") >= (int)sizeof texts)
            CHECK_FAIL("%s:%s has longer texts than this test takes", program, name);
        const char *wrong = wrong_with_case(program, again, how, function, texts);
        if (wrong) {
            fprintf(stderr, "%s:%s: '%s' is what it lacks, or has; status %d: %s%s\n", program, again, wrong, o.status,
                    o.out, o.err);
            failed_cases++;
        }
    }
}

/* At least so many cases: a shorter list has lost some. */
static void check_cases(const char *program, int least)
{
    static struct test_output list;
    int count = 0;
    test_program(&list, program, NULL);
    char *lines = list.out;
    for (char *line; (line = strsep(&lines, "\n")) != NULL && *line; count++)
        check_case(program, line);
    CHECK_EQ(failed_cases, 0);
    CHECK(count >= least);
}

/* contract 4.66 */
TEST_PROGRAM(misuse_of_strands_scopes_and_channels_is_reported)
{
    check_cases("misuse", 81);
}

TEST_PROGRAM(misuse_of_pools_is_reported)
{
    check_cases("pool_misuse", 39);
}

TEST_PROGRAM(misuse_of_shared_fibres_is_reported)
{
    check_cases("fibre_misuse", 62);
}

TEST_PROGRAM(misuse_of_actors_is_reported)
{
    check_cases("actor_misuse", 77);
}

TEST_PROGRAM(misuse_of_exceptions_is_reported)
{
    check_cases("exception_misuse", 15);
}

TEST_PROGRAM(misuse_of_crews_is_reported)
{
    check_cases("crew_misuse", 23);
}

TEST_PROGRAM(misuse_of_processes_is_reported)
{
    check_cases("process_misuse", 36);
}

TEST_PROGRAM(misuse_of_files_is_reported)
{
    check_cases("file_misuse", 32);
}

TEST_PROGRAM(misuse_of_sockets_is_reported)
{
    check_cases("socket_misuse", 31);
}

TEST_PROGRAM(misuse_of_ports_is_reported)
{
    check_cases("port_misuse", 7);
}

/* contract 4.66 */
TEST_PROGRAM(misuse_of_locks_is_reported)
{
    check_cases("locks", 37);
}

TEST_PROGRAM(misuse_of_limits_monitors_and_sections_is_reported)
{
    check_cases("limit_misuse", 37);
}

TEST_PROGRAM(null_where_there_has_to_be_something_is_misuse)
{
    check_cases("nulls", 118);
}

TEST_PROGRAM(a_longjmp_out_of_a_block_is_misuse_wherever_it_is_found)
{
    check_cases("mistakes", 22);
}

/* ---- rows of docs/misuse.md ------------------------------------------------------------------------------------ */

enum { COLUMNS = 5, CELL = 1024 };

static FILE *open_table(void)
{
    FILE *table = fopen(TEST_DOCS "/misuse.md", "r");
    CHECK(table != NULL);
    return table;
}

static bool has_row(const char *program, const char *name)
{
    char line[8192], check[128];
    bool found = false;
    snprintf(check, sizeof check, " `%s:%s` |", program, name);
    FILE *table = open_table();
    while (!found && fgets(line, sizeof line, table))
        found = strstr(line, check) != NULL;
    fclose(table);
    return found;
}

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
static bool ended_as_it_says(const char *remedy)
{
    if (strstr(o.err, "an exception has left the root strand"))
        return !o.signalled && o.status == 1;
    if (strstr(remedy, "the program goes on"))
        return !o.signalled && o.status == 0;
    return aborted();
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
    char *colon = strchr(which, ':'), *texts = cells[2];
    CHECK(colon != NULL);
    *colon = '\0';
    test_program(&o, which, colon + 1);
    if (!ended_as_it_says(cells[3]))
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
    FILE *table = open_table();
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

/* ---- two strands that are handed off at the same time -------------------------------------------------------- */

/* One of the two hand-offs comes first, and succeeds: so one misuse is reported. */
static void hand_off_in_a_circle_at_once(void)
{
    test_program(&o, "misuse", "2 hand_off_in_a_circle_at_once");
    CHECK(aborted());
    CHECK_CONTAINS(o.err, "misuse of strand_hand_off: ");
    CHECK_EQ(test_count(o.out, "misuse of "), 1);
}

/* contract 4.55 */
TEST_PROGRAM(one_of_two_simultaneous_hand_offs_to_scopes_of_each_other_is_misuse)
{
    for (long i = 0; i < test_scale(20); i++)
        hand_off_in_a_circle_at_once();
}

/* contract 4.55 */
TEST_PROGRAM(one_of_two_simultaneous_hand_offs_is_misuse_under_any_seed)
{
    for (long seed = 1; seed <= test_scale(20); seed++) {
        char text[32];
        snprintf(text, sizeof text, "%ld", seed);
        setenv("STRAND_SEED", text, 1);
        hand_off_in_a_circle_at_once();
    }
}

/* ---- the end of a thread ---------------------------------------------------------------------- */

#if !TEST_TSAN /* its own pthread_exit expects a thread on its own stack */
TEST_PROGRAM(the_end_of_a_thread_is_noticed_before_any_clean_up_and_in_programs_that_link_libunwind)
{
    static const char *const threads[] = {"caller",           "pool",           "plain",
                                          "caller-cancelled", "pool-cancelled", "plain-cancelled"};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        test_program(&o, "exits", threads[i]);
        CHECK_CONTAINS(o.err, "misuse of pthread_exit: it would end the thread that runs the pool's strands");
        CHECK_CONTAINS(o.err, "at exit_here");
        CHECK(o.signalled && o.status == SIGABRT);
        CHECK_STR(o.out, "");
    }
}
#endif

/* ---- what is no misuse ----------------------------------------------------------------------- */

static void *block_after_a_section(void *arg)
{
    {
        STRAND_NO_SUSPEND;
        test_log("inside");
    }
    strand_yield();
    test_log("after");
    return arg;
}

/* N-02 */
TEST(after_a_no_suspend_section_blocking_is_allowed_again)
{
    test_run(block_after_a_section, NULL);
    CHECK_LOG("inside after");
}

static void *spawn_in_a_section(void *arg)
{
    STRAND_SCOPE(scope);
    strand child;
    {
        STRAND_NO_SUSPEND;
        child = strand_spawn(scope, block_after_a_section, arg);
        CHECK(!strand_ended(strand_self()));
    }
    strand_join(child);
    return arg;
}

/* N-02 */
TEST(operations_that_do_not_block_are_allowed_in_a_no_suspend_section_and_children_are_free)
{
    test_run(spawn_in_a_section, NULL);
    CHECK_LOG("inside after");
}

static void *throw_out_of_a_section(void *arg)
{
    STRAND_NO_SUSPEND;
    strand_throw(&STRAND_ERROR, "out");
    return arg;
}

static void *yield_after_a_throw(void *arg)
{
    strand_exception *e = strand_try(throw_out_of_a_section, arg, NULL);
    CHECK(e != NULL);
    strand_exception_release(e);
    strand_yield();
    return arg;
}

/* contract 5.8 */
TEST(an_exception_ends_the_no_suspend_sections_that_it_leaves)
{
    test_run(yield_after_a_throw, NULL);
}
