/*
 * What a test is written with: one header, two runners.
 *
 *     #define SUITE scope
 *     #include "test.h"
 *
 *     TEST(leaving_a_scope_cancels_and_waits_for_its_children)
 *     {
 *         CHECK_EQ(count(), 3);
 *     }
 *
 *   TEST              the body runs outside of strands, and calls test_run
 *   TEST_INSIDE       the body runs as the root strand of a test_run
 *   TEST_RACE         the same, with four threads at least
 *   TEST_REAL         as TEST, but left out when seeds are run: for tests of the real clock, of real
 *                     threads, or of plain threads, and long ones in which no seed decides anything
 *   TEST_REAL_INSIDE, TEST_REAL_RACE  both
 *   TEST_PROGRAM      as TEST_REAL: for tests that do nothing but start helper programs, which know nothing of the
 *                     scheduler and the threads of the runs; so they are left out where STRAND_TEST_PROGRAMS is "no"
 *   TEST_SYSTEM_INSIDE  as TEST_INSIDE; under seeds its pipes and sockets are the system's, which it
 *                     looks at by other means than the library's
 *
 * With "#define ONE_SEED_IN n" beside SUITE, each n-th seed is run: for suites that do much in which no seed decides.
 *
 *   TEST_OWN_STACKS(NAME, WHY)  after a test: it is left out when strands live on shared stacks, which its
 *                     very subject has nothing to do with
 *
 * With -DTEST_CRITERION each is a Criterion test; with -DTEST_PLAIN the program has a main of its own (plain.c). Both
 * run each test in a process of its own and end it after TEST_LIMIT_S. That limit is for tests that hang: none needs a
 * tenth of it on a machine with twenty times as much to do. So a test waits for a state without a limit of its own.
 *
 * The environment chooses what the same tests prove:
 *
 *   STRAND_TEST_THREADS=n  threads of the runs (default 1; with seeds 4, and they are played by one)
 *   STRAND_TEST_SCHED=s    scheduler of the runs (default stealing)
 *   STRAND_TEST_PROGRAMS=no  leave TEST_PROGRAM out: it has been run with another scheduler or number of threads
 *   STRAND_TEST_SCALE=p    per cent of the usual repetitions (default 100; with seeds 1, the seeds repeat already)
 *   STRAND_TEST_SEEDS=n    run each body under the seeds 1 to n; or on several schedulers: "stealing:500 global:50"
 *   STRAND_TEST_STEPS=1    each step of a seed is an atomic operation (the library built with STEPS=1)
 *   STRAND_TEST_LIMIT=s    seconds that the plain runner gives a test (default TEST_LIMIT_S)
 */
#ifndef TEST_H
#define TEST_H

#include "noinline.h"

#include "strand.h"
#include "strand/debug.h"
#include "strand/pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST_LIMIT_S 900

/* Whether this is built with a sanitizer: gcc has macros for that, clang has features. */
#if defined(__has_feature)
#define TEST_TSAN __has_feature(thread_sanitizer)
#define TEST_ASAN __has_feature(address_sanitizer)
#else
#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#else
#define TEST_ASAN 0
#endif
#endif

/* ---- checks: any strand, any thread; a failed one prints what it saw and ends the process ------- */

#define CHECK(condition) ((condition) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", "not true: " #condition))
#define CHECK_EQ(a, b) test_check_eq((long long)(a), (long long)(b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_PTR(a, b) test_check_ptr((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_STR(a, b) test_check_str((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_CONTAINS(haystack, needle)                                                                               \
    test_check_contains((haystack), (needle), #haystack " contains " #needle, __FILE__, __LINE__)
#define CHECK_FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)
/* Whether the events logged so far are these words, and no others. */
#define CHECK_LOG(words) test_check_log((words), __FILE__, __LINE__)
/* The words of the log that begin with this character: what one of several writers has written. */
#define CHECK_LOG_OF(first, words) test_check_log_of((first), (words), __FILE__, __LINE__)
/* Whether fn(arg) throws an exception of this very kind. From a strand. */
#define CHECK_THROWS(fn, arg, kind) test_check_throws((fn), (arg), (kind), #fn, __FILE__, __LINE__)
/* Whether e is an exception of this very kind. */
#define CHECK_KIND(e, kind) test_check_kind((e), (kind), #e, __FILE__, __LINE__)

/* ---- runs ------------------------------------------------------------------------------------ */

/** The options that the environment asks for, to be changed further. */
struct strand_options test_options(void);
/** A run with these options is refused by strand_run, with -EINVAL and these words; its function is not called. */
void test_refused(struct strand_options options, const char *words);
/** For a test that is about so many threads: on the usual scheduler, if the one that the environment asks for has one.
 */
void test_set_threads(struct strand_options *options, int threads);
/** options.own_threads, for the same reason. */
void test_set_own_threads(struct strand_options *options);
/** That the first thread is the caller's, which that of the scheduler `dedicated` never is. */
void test_set_callers_thread(struct strand_options *options);
/** strand_run with these options: an exception that leaves fn ends the test. */
void *test_run(strand_fn *fn, void *arg);
/** The exception that left fn, which the caller owns, or NULL; *result (may be NULL) is what fn returned. */
strand_exception *test_run_catching(strand_fn *fn, void *arg, void **result);
/** How many entries a folder has, "." and ".." included: /proc/self/fd, ... Any thread. */
int test_count_entries(const char *path);
/* Valgrind has its library loaded before all others. */
bool test_under_valgrind(void);
/** test_run with no fewer than so many threads. */
void *test_run_on(int threads, strand_fn *fn, void *arg);

/** How many threads test_options asks for, real or played. */
int test_threads(void);
/** n scaled by STRAND_TEST_SCALE, at least 1. */
long test_scale(long n);
/** The seed that the body runs under now; 0 if none. */
long test_seed(void);

/* ---- what tests share ------------------------------------------------------------------------ */

/** Append one event, a word or several, to the log of the test, which is empty at its start. Any thread. */
void test_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Whether the events so far, with blanks between them, are these. Any thread. */
bool test_log_is(const char *words);
/** Forget the events so far. Any thread. */
void test_log_clear(void);

/** Let others run until *flag is value, by yielding, and by sleeping so that time goes on where it is virtual. From a
 *  strand; blocks no thread. */
STRAND_BLOCKS void test_yield_until(const _Atomic int *flag, int value);

/** Let others run until so many strands are blocked as strand_dump says it, in these words. From a strand. */
STRAND_BLOCKS void test_await_blocked(const char *words, int count);
/** Join a child that was cancelled; returns whether it ended by that. Any other exception ends the test. */
STRAND_BLOCKS bool test_join_interrupted(strand child);

/** Run fn(arg) in a strand that is cancelled before its first operation, by the caller and with the reason "because";
 *  waits for its end. From a strand. */
STRAND_BLOCKS void test_run_cancelled(strand_fn *fn, void *arg);

/** Calls fn(arg) and logs "cut" if an interruption leaves it, "ok" if it returns; the test fails at any other
 * exception. From a strand. */
STRAND_BLOCKS void test_try_operation(strand_fn *fn, void *arg);

/* Log the text when the block is left, by whatever way. */
#define TEST_LEAVING(text) TEST_LEAVING_(text, __COUNTER__)
/* How long a strand waits that the test wakes. */
#define FOREVER (3600 * STRAND_S)
/* Before all deadlines. */
#define LONG_PAST ((strand_time){.ns = 1})
/* A small number as an argument or a result. */
#define TEST_PTR(n) ((void *)(intptr_t)(n))

extern const strand_kind TEST_ERROR;  /* below STRAND_ERROR */
extern const strand_kind TEST_ERROR2; /* the same, unrelated to TEST_ERROR */

/* ---- children for all purposes. Each sets started when it runs, and ended, after some more switches, when it is left
 *      by whatever way. A struct test_child starts as zeros and outlives the strand. ---------------------------- */

struct test_child {
    _Atomic int started, release, ended;
};
/** Sleeps for an hour; returns its argument. */
void *test_child_blocks(void *child);
/** Sleeps for an hour; throws TEST_ERROR2 when it is interrupted, with the text "of a cancelled child". */
void *test_child_throws(void *child);
/** Lets others run until release is 1; returns its argument. Interruptible. */
void *test_child_waits(void *child);
/** The same in a shield; it looks for no interruption after it. */
void *test_child_resists(void *child);
/** Spawn such a child and let it run into what it does. */
strand test_spawn_started(strand_scope scope, strand_fn *fn, struct test_child *child);

/** Spawn n children (4 at most) that throw TEST_ERROR, one after the other, with the texts "0", "1", ... Returns when
 * all have ended. The owner is shielded meanwhile. */
void test_spawn_failed(strand_scope scope, strand *children, int n);
/** How many exceptions of this very kind there are in e, in what is suppressed in it, and so on. */
int test_count_kind(const strand_exception *e, const strand_kind *kind);

/** How often the word stands in the text. */
size_t test_count(const char *text, const char *word);

/** How much of the process is resident in memory, in bytes. */
size_t test_resident_bytes(void);
/** What strand_dump writes now with these options: text, which the next call overwrites. */
const char *test_dump_as(const strand_dump_options *options);
/** As test_dump_as, with all strands, one by one. */
#define test_dump() test_dump_as(STRAND_DUMP(.grouping = STRAND_DUMP_SINGLE))

/** Returns its argument at once. */
void *test_return(void *arg);
/** Sleeps until it is interrupted; takes any argument, and returns it. */
void *test_sleep(void *arg);
/** Joins the child, a `strand *`, and returns its result. */
void *test_join(void *child);
/** Waits for the end of the strand, a `strand *`; returns NULL. */
void *test_wait(void *other);
/** Joins the scope, a `strand_scope *`; returns NULL. */
void *test_join_scope(void *scope);
/** Yields, once or so many times (TEST_PTR); returns its argument. */
void *test_yield(void *arg);
void *test_yield_times(void *times);

/** Spawn fn(arg) on the pool, or on the shared fibre. */
strand test_spawn_onto(strand_scope scope, strand_pool pool, strand_fn *fn, void *arg);
strand test_spawn_on_fibre(strand_scope scope, strand_fibre fibre, strand_fn *fn, void *arg);

/** The statistics of the run, and what is known about the pool. */
strand_stats test_stats(void);
strand_pool_info test_pool_info(strand_pool pool);
/** Let others run until the pool has so many threads. From a strand. */
STRAND_BLOCKS void test_await_threads(strand_pool pool, int threads);
/** Throws TEST_ERROR, or TEST_ERROR2, with the argument as its text (NULL: "failed"). */
void *test_throw(void *text);
void *test_throw2(void *text);

/* ---- helper programs: tests/programs/NAME.c is built to TEST_PROGRAMS "/NAME" ------------------- */

struct test_output {
    int status;      /* the exit status, or the number of the signal */
    bool signalled;  /* a signal ended it */
    char out[65536]; /* what it wrote to standard output, and to standard error: text, cut to fit */
    char err[65536];
};
/** Run a helper program with one argument (NULL: none) and wait for its end, for TEST_LIMIT_S / 3 at most; from a
 * TEST_PROGRAM or a TEST_REAL. */
void test_program(struct test_output *output, const char *name, const char *arg);

/* ---- behind the macros ----------------------------------------------------------------------- */

struct test_case {
    const char *suite, *name;
    void (*body)(void);
    bool real;
    bool system;
    bool program;
    int threads; /* 0: the body runs outside of strands; else as a root strand, on so many threads at least */
    int one_seed_in;
    const char *own_stacks; /* NULL, or why it is left out when strands live on shared stacks */
    struct test_case *next;
};

STRAND_NORETURN void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void test_check_eq(long long a, long long b, const char *text, const char *file, int line);
void test_check_ptr(const void *a, const void *b, const char *text, const char *file, int line);
void test_check_str(const char *a, const char *b, const char *text, const char *file, int line);
void test_check_contains(const char *haystack, const char *needle, const char *text, const char *file, int line);
void test_check_log(const char *words, const char *file, int line);
void test_check_log_of(char first, const char *words, const char *file, int line);
void test_check_kind(const strand_exception *e, const strand_kind *kind, const char *text, const char *file, int line);
STRAND_BLOCKS void test_check_throws(strand_fn *fn, void *arg, const strand_kind *kind, const char *text,
                                     const char *file, int line);
void test_log_leaving_(const char *const *text);

#define TEST_LEAVING_(text, n) TEST_LEAVING2_(text, n)
#define TEST_LEAVING2_(text, n)                                                                                        \
    const char *const test_leaving_##n __attribute__((cleanup(test_log_leaving_), unused)) = text

/* Run the body, once or under each seed. */
void test_execute(const struct test_case *test);
/* Why test_execute would have to leave it out; NULL: it does not. */
const char *test_why_skipped(const struct test_case *test);
/* A line that tools/run-tests.sh counts: Criterion does not say how many were left out. */
void test_say_skipped(const struct test_case *test);
/* Make it known to the plain runner. */
void test_register(struct test_case *test);

#ifndef ONE_SEED_IN
#define ONE_SEED_IN 1
#endif

#define TEST_STRING2_(x) #x
#define TEST_STRING_(x) TEST_STRING2_(x)
#define TEST_CASE_(name, real, system, program, threads)                                                               \
    static void test_body_##name(void);                                                                                \
    static struct test_case test_case_##name = {                                                                       \
        TEST_STRING_(SUITE), #name, test_body_##name, real, system, program, threads, ONE_SEED_IN, NULL, NULL};        \
    TEST_RUNNER_(SUITE, name)                                                                                          \
    static void test_body_##name(void)

#define TEST(name) TEST_CASE_(name, false, false, false, 0)
#define TEST_INSIDE(name) TEST_CASE_(name, false, false, false, 1)
#define TEST_RACE(name) TEST_CASE_(name, false, false, false, 4)
#define TEST_REAL(name) TEST_CASE_(name, true, false, false, 0)
#define TEST_PROGRAM(name) TEST_CASE_(name, true, false, true, 0)
#define TEST_REAL_INSIDE(name) TEST_CASE_(name, true, false, false, 1)
#define TEST_REAL_RACE(name) TEST_CASE_(name, true, false, false, 4)
#define TEST_SYSTEM_INSIDE(name) TEST_CASE_(name, false, true, false, 1)

#define TEST_OWN_STACKS(name, why)                                                                                     \
    __attribute__((constructor)) static void test_own_stacks_##name(void)                                              \
    {                                                                                                                  \
        test_case_##name.own_stacks = (why);                                                                           \
    }                                                                                                                  \
    struct test_case /* takes the semicolon */

#if defined(TEST_CRITERION)
#include <criterion/criterion.h>
#define TEST_RUNNER_(suite, name) TEST_RUNNER2_(suite, name)
#define TEST_RUNNER2_(suite, name)                                                                                     \
    Test(suite, name, .timeout = TEST_LIMIT_S)                                                                         \
    {                                                                                                                  \
        if (test_why_skipped(&test_case_##name)) {                                                                     \
            test_say_skipped(&test_case_##name);                                                                       \
            cr_skip_test("%s", test_why_skipped(&test_case_##name));                                                   \
        }                                                                                                              \
        test_execute(&test_case_##name);                                                                               \
    }
#elif defined(TEST_PLAIN)
#define TEST_RUNNER_(suite, name)                                                                                      \
    __attribute__((constructor)) static void test_register_##name(void)                                                \
    {                                                                                                                  \
        test_register(&test_case_##name);                                                                              \
    }
#elif !defined(TEST_HARNESS)
#error "compile tests with -DTEST_CRITERION or -DTEST_PLAIN"
#endif

#endif
