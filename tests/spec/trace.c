/*
 * Traces begin and end with functions of the user's, whatever made them; the library's own frames are seen only between
 * two of the user's.
 */
#define _GNU_SOURCE
#define SUITE trace
#define ONE_SEED_IN 10 /* seeds decide little in what a trace shows */
#include "test.h"

#include "has_lines.h"

#include "strand/debug.h"
#include "strand/io.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define KEEP_FRAME __asm__ volatile("") /* after a call: keeps it from becoming a jump */

/* The line after the one at `at`; in a dump the one after that if the next line is about the stack. */
static const char *next_line(const char *at)
{
    at = strchr(at, '\n');
    const char *word = at ? at + strspn(at, "\n ") : "";
    bool is_stack = strncmp(word, "fibre '", 7) == 0 || strncmp(word, "stack: ", 7) == 0;
    return is_stack ? strchr(word, '\n') : at;
}

/* Whether the first frames after `header`, up to a line that is none, are in these functions; "..." is any one. */
static void check_frames(const char *text, const char *header, const char *const *names)
{
    const char *at = strstr(text, header);
    if (!at)
        CHECK_FAIL("no \"%s\" in \"%s\"", header, text);
    for (at = next_line(at); *names; names++) {
        char name[160] = "", rest = 0;
        size_t length = strlen(*names);
        if (!at || sscanf(at, " at %159[^+\n]%c", name, &rest) != 2 || rest != '+')
            CHECK_FAIL("no frame in %s after \"%s\" in \"%s\"", *names, header, text);
        /* The compiler may have split it: name.cold */
        if (strcmp(*names, "...") != 0 && (strncmp(name, *names, length) != 0 || (name[length] && name[length] != '.')))
            CHECK_FAIL("a frame in %s, not in %s, after \"%s\" in \"%s\"", name, *names, header, text);
        at = strchr(at + 1, '\n');
    }
    if (at && strspn(at, "\n ") == strcspn(at, "a") && strncmp(at + strspn(at, "\n "), "at ", 3) == 0)
        CHECK_FAIL("more frames than those wanted after \"%s\" in \"%s\"", header, text);
}
#define CHECK_FRAMES(text, header, ...) check_frames((text), (header), (const char *const[]){__VA_ARGS__, NULL})

static const char *printed(const strand_exception *e)
{
    static char text[1 << 16];
    int fd = memfd_create("trace", MFD_CLOEXEC);
    CHECK(fd >= 0);
    strand_exception_print(e, fd);
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    CHECK(length > 0);
    text[length] = 0;
    close(fd);
    return text;
}

/* The exception by which a root strand of fn ends, printed. */
static const char *printed_of(strand_fn *fn)
{
    strand_exception *e = test_run_catching(fn, NULL, NULL);
    CHECK(e != NULL);
    const char *text = printed(e);
    strand_exception_release(e);
    return text;
}

/* ---- thrown --------------------------------------------------------------------------------- */

static NOINLINE void throws(void)
{
    strand_throw(&STRAND_ERROR, "thrown");
}

static NOINLINE void *calls_throws(void *arg)
{
    throws();
    KEEP_FRAME;
    return arg;
}

/* contract 4.58 */
TEST(the_trace_of_a_throw_has_the_frames_of_the_user_and_no_others)
{
    CHECK_FRAMES(printed_of(calls_throws), "thrown in", "throws", "calls_throws");
}

static NOINLINE void *throws_with(void *arg)
{
    strand_throw_with(&STRAND_ERROR, NULL, "thrown");
    return arg;
}

TEST(so_has_that_of_throw_with)
{
    CHECK_FRAMES(printed_of(throws_with), "thrown in", "throws_with");
}

static NOINLINE void *must(void *arg)
{
    strand_must(-ENOENT);
    KEEP_FRAME;
    return arg;
}

TEST(so_has_that_of_must)
{
    CHECK_FRAMES(printed_of(must), "thrown in", "must");
}

TEST(a_code_is_printed_with_its_name)
{
    CHECK_CONTAINS(printed_of(must), "  code -2 (ENOENT)\n");
}

/* ---- lines of the source -------------------------------------------------------------------------- */

static int line_of_throw;

static NOINLINE void *throws_in_a_line(void *arg)
{
    line_of_throw = __LINE__ + 1;
    strand_throw(&STRAND_ERROR, "thrown");
    return arg;
}

TEST(a_frame_has_file_and_line_of_the_call)
{
    char wanted[80];
    const char *text = printed_of(throws_in_a_line);
    snprintf(wanted, sizeof wanted, "(tests/spec/trace.c:%d)\n", line_of_throw);
    CHECK_EQ(test_count(text, wanted), has_lines());
    setenv("STRAND_LINES", "none", 1);
    CHECK_EQ(test_count(printed_of(throws_in_a_line), "trace.c"), 0);
    unsetenv("STRAND_LINES");
}

static void *prints(void *fd)
{
    STRAND_TRY {
        throws_in_a_line(NULL);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        strand_exception_print(e, (int)(intptr_t)fd);
    }
    STRAND_END
    return NULL;
}

TEST_INSIDE(lines_are_found_off_the_stack_of_the_strand_that_prints)
{
    char text[1024] = "";
    int fd = memfd_create("trace", MFD_CLOEXEC);
    CHECK(fd >= 0);
    STRAND_SCOPE(scope);
    size_t stack_size = TEST_ASAN || TEST_TSAN ? 128 * 1024 : 16 * 1024; /* under tools names are found on it */
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.stack_size = stack_size), prints, TEST_PTR(fd), 0));
    CHECK(pread(fd, text, sizeof text - 1, 0) > 0);
    CHECK_EQ(test_count(text, "trace.c:") > 0, has_lines());
    close(fd);
}

/* ---- thrown from far below -------------------------------------------------------------------------- */

static NOINLINE void throws_from_so_deep(volatile int levels)
{
    if (levels == 0)
        strand_throw(&STRAND_ERROR, "from below");
    if (levels > 0)
        throws_from_so_deep(levels - 1);
    KEEP_FRAME;
}

static NOINLINE void *throws_from_below(void *arg)
{
    throws_from_so_deep(10);
    KEEP_FRAME;
    return arg;
}

TEST(a_function_that_calls_itself_is_one_line_with_the_number_of_its_calls)
{
    const char *text = printed_of(throws_from_below);
    CHECK_CONTAINS(text, ", 10 times\n");
    CHECK_CONTAINS(text, "at throws_from_below+");
}

static NOINLINE void *tries(void *arg)
{
    strand_exception *e = strand_try(calls_throws, arg, NULL);
    strand_rethrow(e);
}

/* contract 4.58 */
TEST(frames_of_the_library_between_two_of_the_user_are_shown)
{
    const char *text = printed_of(tries);
    const char *inner = strstr(text, "at calls_throws"), *within = strstr(text, "at strand_try");
    const char *outer = strstr(text, "at tries");
    CHECK(inner && within && outer && inner < within && within < outer);
    CHECK(strstr(outer + 1, "at ") == NULL);
}

static NOINLINE void *sleeps(void *arg)
{
    strand_sleep(FOREVER);
    KEEP_FRAME;
    return arg;
}

static NOINLINE void *runs_into_a_deadline(void *arg)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    sleeps(arg);
    KEEP_FRAME;
    return arg;
}

TEST(the_trace_of_a_deadline_begins_where_it_struck)
{
    CHECK_FRAMES(printed_of(runs_into_a_deadline), "thrown in", "sleeps", "runs_into_a_deadline");
}

static strand_exception *kept;

static void release(strand_exception **e)
{
    strand_exception_release(*e);
}

/* The interruption is kept by somebody, so that the deadline makes an exception of its own at its end. */
static NOINLINE void *leaves_a_deadline(void *arg)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    kept = strand_try(sleeps, arg, NULL);
    strand_rethrow(strand_exception_keep(kept));
}

TEST(the_trace_of_a_deadline_s_own_exception_begins_with_the_function_that_had_opened_it)
{
    const char *text = printed_of(leaves_a_deadline);
    release(&kept);
    CHECK_CONTAINS(text, "timed-out");
    CHECK_FRAMES(text, "thrown in", "leaves_a_deadline");
}

/* ---- joined, left --------------------------------------------------------------------------- */

static NOINLINE void *joins(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, calls_throws, arg));
    KEEP_FRAME;
    return arg;
}

TEST(the_trace_of_a_join_begins_with_the_joiner)
{
    const char *text = printed_of(joins);
    CHECK_FRAMES(text, "thrown in", "throws", "calls_throws");
    CHECK_FRAMES(text, "rethrown in", "joins");
}

static NOINLINE void *joins_the_scope(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, calls_throws, arg);
    strand_scope_join(scope);
    KEEP_FRAME;
    return arg;
}

TEST(the_trace_of_joining_a_scope_begins_with_the_joiner)
{
    CHECK_FRAMES(printed_of(joins_the_scope), "rethrown in", "joins_the_scope");
}

static NOINLINE void *takes_the_first(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_FIRST_WINS);
    strand_spawn(scope, calls_throws, arg);
    strand_scope_join_first(scope, NULL);
    KEEP_FRAME;
    return arg;
}

TEST(the_trace_of_taking_the_first_begins_with_its_caller)
{
    CHECK_FRAMES(printed_of(takes_the_first), "rethrown in", "takes_the_first");
}

static NOINLINE void leaves_a_live_strand(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, sleeps, arg);
}

static NOINLINE void *calls_leaves(void *arg)
{
    leaves_a_live_strand(arg);
    KEEP_FRAME;
    return arg;
}

TEST(the_trace_of_live_strands_begins_with_the_function_that_had_opened_the_scope)
{
    CHECK_FRAMES(printed_of(calls_leaves), "thrown in", "leaves_a_live_strand", "calls_leaves");
}

static NOINLINE void *leaves_a_failure(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, calls_throws, arg);
    STRAND_SHIELD;
    strand_wait(child);
    return arg;
}

TEST(the_trace_of_a_failure_that_leaving_throws_goes_on_with_the_function_that_had_opened_the_scope)
{
    const char *text = printed_of(leaves_a_failure);
    CHECK_FRAMES(text, "thrown in", "throws", "calls_throws");
    CHECK_FRAMES(text, "rethrown in", "leaves_a_failure");
}

static NOINLINE void *is_interrupted_by_a_failure(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, calls_throws, arg);
    sleeps(arg);
    KEEP_FRAME;
    return arg;
}

TEST(the_trace_of_a_failure_that_leaving_swaps_in_goes_on_with_the_function_that_had_opened_the_scope)
{
    const char *text = printed_of(is_interrupted_by_a_failure);
    CHECK_FRAMES(text, "thrown in", "throws", "calls_throws");
    CHECK_FRAMES(text, "rethrown in", "is_interrupted_by_a_failure");
}

/* ---- in a dump ------------------------------------------------------------------------------ */

static NOINLINE void *leaves_while_a_child_resists(void *child)
{
    STRAND_SCOPE(scope);
    strand_cancel(strand_spawn(scope, test_child_resists, child), NULL);
    return NULL;
}

/* Dumps until a strand named "blocked" of fn is; lets a test_child go then. */
static const char *dumped_when_blocked(strand_fn *fn, struct test_child *child)
{
    STRAND_SCOPE(scope);
    strand blocked = strand_spawn_with(scope, STRAND_ATTR(.name = "blocked"), fn, child, 0);
    const char *of_it = NULL;
    while (!of_it) {
        strand_sleep(STRAND_MS);
        of_it = strstr(test_dump(), "strand 'blocked'");
        of_it = of_it ? strstr(of_it, "blocked: ") : NULL;
    }
    child->release = 1;
    strand_cancel(blocked, NULL);
    return of_it;
}

TEST_REAL_INSIDE(the_trace_of_a_strand_that_sleeps_begins_with_the_user_s_function)
{
    struct test_child child = {0};
    CHECK_FRAMES(dumped_when_blocked(sleeps, &child), "blocked: sleeps", "sleeps");
}

static NOINLINE void *joins_a_sleeper(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, sleeps, arg));
    KEEP_FRAME;
    return arg;
}

TEST_REAL_INSIDE(the_trace_of_a_strand_that_joins_begins_with_the_user_s_function)
{
    struct test_child child = {0};
    CHECK_FRAMES(dumped_when_blocked(joins_a_sleeper, &child), "blocked: joins strand", "joins_a_sleeper");
}

static NOINLINE void *joins_a_scope_with_a_sleeper(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, sleeps, arg);
    strand_scope_join(scope);
    KEEP_FRAME;
    return arg;
}

TEST_REAL_INSIDE(the_trace_of_a_strand_that_joins_its_scope_begins_with_the_user_s_function)
{
    struct test_child child = {0};
    CHECK_FRAMES(dumped_when_blocked(joins_a_scope_with_a_sleeper, &child), "blocked: joins its scope",
                 "joins_a_scope_with_a_sleeper");
}

TEST_REAL_INSIDE(the_trace_of_a_strand_that_leaves_a_scope_begins_with_the_function_that_had_opened_it)
{
    struct test_child child = {0};
    CHECK_FRAMES(dumped_when_blocked(leaves_while_a_child_resists, &child), "blocked: leaves a scope",
                 "leaves_while_a_child_resists");
}

static NOINLINE void *dumps(void *text)
{
    *(const char **)text = test_dump_as(STRAND_DUMP(.grouping = STRAND_DUMP_SINGLE));
    return text;
}

TEST_INSIDE(the_trace_of_the_strand_that_dumps_begins_with_the_user_s_function)
{
    const char *text = NULL;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "dumper"), dumps, &text, 0));
    text = strstr(text, "strand 'dumper'");
    CHECK(text != NULL);
    CHECK_FRAMES(text, "running", "test_dump_as", "dumps");
}

/* ---- programs that end ---------------------------------------------------------------------- */

static struct test_output o;

TEST_PROGRAM(the_trace_of_an_uncaught_exception_has_the_frames_of_the_user_and_no_others)
{
    test_program(&o, "uncaught", "root");
    CHECK_FRAMES(o.err, "thrown in", "pour", "root_throws");
    test_program(&o, "uncaught", "live");
    CHECK_FRAMES(o.err, "thrown in", "leaves_a_child");
}

/* contract 4.66 */
TEST_PROGRAM(the_trace_of_misuse_has_the_frames_of_the_user_and_no_others)
{
    test_program(&o, "misuse", "join_twice");
    CHECK_FRAMES(o.err, "in strand 'root'", "join_twice");
    test_program(&o, "misuse", "block_in_no_suspend");
    CHECK_FRAMES(o.err, "in strand 'root'", "block_in_the_section", "block_in_no_suspend");
}

/* contract 4.66 */
TEST_PROGRAM(misuse_on_a_plain_thread_is_reported_with_its_trace)
{
    test_program(&o, "misuse", "yield_on_a_plain_thread");
    const char *trace = strstr(o.err, "outside of strands\n    at yields_outside+");
    CHECK(trace != NULL);
    CHECK_CONTAINS(trace, "at main+");
}

TEST_PROGRAM(misuse_in_an_offloaded_function_is_reported_with_its_trace)
{
    test_program(&o, "misuse", "yield_in_an_offloaded_function");
    CHECK_FRAMES(o.err, "outside of strands", "yields_outside", "yields_when_offloaded");
}

/* A program without its symbols: what stands in their place is what addr2line takes. */
TEST_PROGRAM(in_a_stripped_program_a_frame_is_the_program_s_name_and_an_offset_in_it)
{
    unsigned long thrower = 0, caller = 0, at[2] = {0};
    test_program(&o, "stripped", NULL);
    CHECK_EQ(o.status, 1);
    CHECK_EQ(sscanf(o.out, "%lx %lx", &thrower, &caller), 2);
    const char *first = strstr(o.err, "at stripped+");
    CHECK(first != NULL);
    CHECK_EQ(sscanf(first, "at stripped+%lx at stripped+%lx", &at[0], &at[1]), 2);
    CHECK(at[0] > thrower && at[0] < thrower + 1024);
    CHECK(at[1] > caller && at[1] < caller + 1024);
}

/* ---- without memory ------------------------------------------------------------------------- */

#if !TEST_TSAN && !TEST_ASAN /* whose malloc ends the program */
struct eaten {
    struct eaten *next;
};

/* The system gives nothing more, and malloc not the smallest block. */
static struct eaten *eat_memory(void)
{
    struct eaten *all = NULL, *block;
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_DATA, &limit), 0);
    limit.rlim_cur = 1; /* 0 is none */
    CHECK_EQ(setrlimit(RLIMIT_DATA, &limit), 0);
    for (size_t size = 1 << 20; size >= sizeof *all; size /= 2)
        while ((block = malloc(size)) != NULL) {
            block->next = all;
            all = block;
        }
    return all;
}

static void give_memory_back(struct eaten *all)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_DATA, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_DATA, &limit), 0);
    for (struct eaten *next; all; all = next) {
        next = all->next;
        free(all);
    }
}

static NOINLINE void throws_without_memory(void)
{
    strand_throw(&STRAND_ERROR, "hungry");
}

static NOINLINE void *calls_without_memory(void *arg)
{
    throws_without_memory();
    KEEP_FRAME;
    return arg;
}

static void catch_without_memory(struct eaten *all)
{
    strand_exception *e = strand_try(calls_without_memory, NULL, NULL);
    give_memory_back(all);
    CHECK_KIND(e, &STRAND_ERROR);
    const char *trace = printed(e);
    CHECK_CONTAINS(trace, "at throws_without_memory+");
    CHECK_CONTAINS(trace, "at catch_without_memory+");
    strand_exception_release(e);
}

TEST_REAL_INSIDE(the_first_exception_of_a_thread_without_memory_is_caught_and_has_its_trace)
{
    if (!test_under_valgrind()) /* which ends, too */
        catch_without_memory(eat_memory());
}

/* The failed attempt leaves nothing behind. */
TEST_REAL_INSIDE(a_thread_that_had_no_memory_for_its_first_trace_has_it_for_a_later_one)
{
    if (test_under_valgrind())
        return;
    catch_without_memory(eat_memory());
    catch_without_memory(NULL);
    catch_without_memory(eat_memory());
}
#endif
