/*
 * The part of the harness that both runners share: checks, options, seeds, the event log. Children are in children.c,
 * helper programs in program.c, the plain runner in plain.c. Nothing here blocks a thread for longer than a copy takes,
 * and nothing needs more stack than a formatted line, because strands call it.
 */
#define _GNU_SOURCE
#define TEST_HARNESS
#include "test.h"

#include "strand/sim.h"

#include "strand/debug.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOG_SIZE 65536

static struct {
    const struct test_case *running;
    long seed;          /* the body runs under this one; 0: none */
    char scheduler[32]; /* and on this one, instead of STRAND_TEST_SCHED; "": that */
    atomic_flag failing;
    atomic_flag log_lock; /* held for the length of a copy, by code that does not suspend */
    size_t log_length;
    char log[LOG_SIZE];
} test = {.failing = ATOMIC_FLAG_INIT, .log_lock = ATOMIC_FLAG_INIT};

/* ---- checks ---------------------------------------------------------------------------------- */

/* The first failure ends the process; threads that fail meanwhile stay here. */
static void claim_failure(void)
{
    while (atomic_flag_test_and_set(&test.failing))
        pause();
}

static void write_all(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(STDERR_FILENO, text, length);
        if (n <= 0)
            return;
        text += n;
        length -= (size_t)n;
    }
}

/* Says where and what, one line, in one piece as far as the system allows. `what` may be as long as it likes. */
STRAND_NORETURN static void fail(const char *file, int line, const char *what)
{
    char head[256];
    const char *suite = test.running != NULL ? test.running->suite : "";
    const char *name = test.running != NULL ? test.running->name : "";
    int n = snprintf(head, sizeof(head), "%s:%d: %s.%s", file, line, suite, name);

    if (test.seed != 0 && n > 0 && (size_t)n < sizeof(head))
        snprintf(head + n, sizeof(head) - (size_t)n, " (STRAND_SEED=%ld%s%s)", test.seed, *test.scheduler ? ", " : "",
                 test.scheduler);
    write_all(head, strlen(head));
    write_all(": ", 2);
    write_all(what, strlen(what));
    write_all("\n", 1);
    abort();
}

void test_fail(const char *file, int line, const char *format, ...)
{
    static char what[2 * LOG_SIZE]; /* off the stack, which may be a strand's */
    va_list args;

    claim_failure();
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    fail(file, line, what);
}

void test_check_eq(long long a, long long b, const char *text, const char *file, int line)
{
    if (a != b)
        test_fail(file, line, "%s: %lld against %lld", text, a, b);
}

void test_check_ptr(const void *a, const void *b, const char *text, const char *file, int line)
{
    if (a != b)
        test_fail(file, line, "%s: %p against %p", text, a, b);
}

void test_check_str(const char *a, const char *b, const char *text, const char *file, int line)
{
    if (a == NULL || b == NULL || strcmp(a, b) != 0)
        test_fail(file, line, "%s: \"%s\" against \"%s\"", text, a != NULL ? a : "(null)", b != NULL ? b : "(null)");
}

void test_check_contains(const char *haystack, const char *needle, const char *text, const char *file, int line)
{
    if (haystack == NULL || needle == NULL || strstr(haystack, needle) == NULL)
        test_fail(file, line, "%s: no \"%s\" in \"%s\"", text, needle != NULL ? needle : "(null)",
                  haystack != NULL ? haystack : "(null)");
}

void test_check_kind(const strand_exception *e, const strand_kind *kind, const char *text, const char *file, int line)
{
    if (e == NULL)
        test_fail(file, line, "%s: there is no exception and should be one of kind %s", text, kind->name);
    if (strand_exception_kind(e) != kind)
        test_fail(file, line, "%s: %s against %s, \"%s\"", text, strand_exception_kind(e)->name, kind->name,
                  strand_exception_text(e));
}

void test_check_throws(strand_fn *fn, void *arg, const strand_kind *kind, const char *text, const char *file, int line)
{
    strand_exception *e = strand_try(fn, arg, NULL);
    test_check_kind(e, kind, text, file, line);
    strand_exception_release(e);
}

/* A body that ends the process, be it with status 0, has not passed. */
__attribute__((destructor)) static void check_that_the_body_returned(void)
{
    if (test.running != NULL)
        CHECK_FAIL("the process has ended inside of the test");
}

/* ---- the event log --------------------------------------------------------------------------- */

static void log_lock(void)
{
    while (atomic_flag_test_and_set_explicit(&test.log_lock, memory_order_acquire))
        continue;
}

static void log_unlock(void)
{
    atomic_flag_clear_explicit(&test.log_lock, memory_order_release);
}

void test_log(const char *format, ...)
{
    char event[256];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(event, sizeof(event), format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(event))
        CHECK_FAIL("an event has %d characters", n);

    log_lock();
    bool fits = test.log_length + (size_t)n + 2 <= LOG_SIZE;
    if (fits) {
        if (test.log_length > 0)
            test.log[test.log_length++] = ' ';
        memcpy(test.log + test.log_length, event, (size_t)n + 1);
        test.log_length += (size_t)n;
    }
    log_unlock();
    if (!fits)
        CHECK_FAIL("the log is full");
}

bool test_log_is(const char *words)
{
    log_lock();
    bool same = strcmp(test.log, words) == 0;
    log_unlock();
    return same;
}

void test_log_clear(void)
{
    log_lock();
    test.log_length = 0;
    test.log[0] = '\0';
    log_unlock();
}

void test_check_log(const char *words, const char *file, int line)
{
    if (!test_log_is(words))
        test_fail(file, line, "the log is \"%s\" and should be \"%s\"", test.log, words);
}

void test_check_log_of(char first, const char *words, const char *file, int line)
{
    static char own[sizeof test.log]; /* a strand's stack may be smaller */
    size_t length = 0;
    log_lock();
    own[0] = '\0';
    for (const char *word = test.log; *word; word += strcspn(word, " "), word += strspn(word, " "))
        if (*word == first)
            length += (size_t)snprintf(own + length, sizeof own - length, "%s%.*s", length ? " " : "",
                                       (int)strcspn(word, " "), word);
    bool same = strcmp(own, words) == 0;
    log_unlock();
    if (!same)
        test_fail(file, line, "of '%c' the log has \"%s\" and should have \"%s\": %s", first, own, words, test.log);
}

void test_log_leaving_(const char *const *text)
{
    test_log("%s", *text);
}

/* ---- dumps ----------------------------------------------------------------------------------- */

const char *test_dump_as(const strand_dump_options *options)
{
    static char text[1 << 20];
    int fd = memfd_create("dump", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(strand_dump(fd, options), 0);
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    CHECK(length > 0);
    text[length] = 0;
    close(fd);
    return text;
}

size_t test_resident_bytes(void)
{
    unsigned long all = 0, pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm != NULL);
    CHECK_EQ(fscanf(statm, "%lu %lu", &all, &pages), 2);
    fclose(statm);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

size_t test_count(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

/* ---- the environment ------------------------------------------------------------------------- */

static long environment_number(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' ? strtol(text, NULL, 10) : otherwise;
}

static const char *seeds(void)
{
    const char *text = getenv("STRAND_TEST_SEEDS");

    return text != NULL && strcmp(text, "0") != 0 ? text : "";
}

static const char *scheduler_asked_for(void)
{
    const char *scheduler = *test.scheduler != '\0' ? test.scheduler : getenv("STRAND_TEST_SCHED");

    return scheduler != NULL && *scheduler != '\0' ? scheduler : "stealing";
}

/* A pool with one of these has one thread. */
static bool is_alone(const char *scheduler)
{
    return strcmp(scheduler, "dedicated") == 0 || strcmp(scheduler, "current") == 0;
}

int test_threads(void)
{
    if (is_alone(scheduler_asked_for()))
        return 1;
    return (int)environment_number("STRAND_TEST_THREADS", *seeds() != '\0' ? 4 : 1);
}

long test_scale(long n)
{
    long scaled = n * environment_number("STRAND_TEST_SCALE", *seeds() != '\0' ? 1 : 100) / 100;

    return scaled > 1 ? scaled : 1;
}

long test_seed(void)
{
    return test.seed;
}

static const struct strand_sim *test_sim(void)
{
    static _Thread_local strand_sim sim; /* plain threads run runs, too */

    sim = (strand_sim){.size = sizeof sim, .real = test.running != NULL && test.running->system};
    return &sim;
}

struct strand_options test_options(void)
{
    return (struct strand_options){
        .sim = test_sim(),
        .size = sizeof(struct strand_options),
        .threads = test_threads(),
        .scheduler = scheduler_asked_for(),
    };
}

static void *must_not_run(void *arg)
{
    CHECK_FAIL("the run was not refused");
    return arg;
}

void test_refused(struct strand_options options, const char *words)
{
    strand_exception *e = NULL;
    options.size = sizeof options;
    options.uncaught = &e;
    CHECK_PTR(strand_run(&options, must_not_run, NULL), NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -EINVAL);
    CHECK_CONTAINS(strand_exception_text(e), words);
    strand_exception_release(e);
}

void test_set_threads(struct strand_options *options, int threads)
{
    options->threads = threads;
    if (threads != 0 && threads != 1 && options->scheduler != NULL && is_alone(options->scheduler))
        options->scheduler = "stealing";
}

void test_set_own_threads(struct strand_options *options)
{
    options->own_threads = true;
    if (options->scheduler != NULL && strcmp(options->scheduler, "current") == 0)
        options->scheduler = "dedicated";
}

void test_set_callers_thread(struct strand_options *options)
{
    if (options->scheduler != NULL && strcmp(options->scheduler, "dedicated") == 0)
        options->scheduler = "current";
}

/* ---- runs ------------------------------------------------------------------------------------ */

void *test_run_on(int threads, strand_fn *fn, void *arg)
{
    struct strand_options options = test_options();

    if (options.threads >= 0 && options.threads < threads)
        test_set_threads(&options, threads);
    return strand_run(&options, fn, arg);
}

void *test_run(strand_fn *fn, void *arg)
{
    return test_run_on(1, fn, arg);
}

strand_exception *test_run_catching(strand_fn *fn, void *arg, void **result)
{
    strand_exception *uncaught = NULL;
    struct strand_options options = test_options();

    options.uncaught = &uncaught;
    void *value = strand_run(&options, fn, arg);
    if (result != NULL)
        *result = value;
    return uncaught;
}

static void *call_body(void *body)
{
    (*(void (*const *)(void))body)();
    return NULL;
}

static void execute_once(const struct test_case *the_test)
{
    void (*body)(void) = the_test->body;

    test_log_clear();
    if (the_test->threads > 0)
        test_run_on(the_test->threads, call_body, &body);
    else
        body();
}

const char *test_why_skipped(const struct test_case *the_test)
{
    const char *stacks = getenv("STRAND_STACKS"), *programs = getenv("STRAND_TEST_PROGRAMS");

    if (the_test->program && programs != NULL && strcmp(programs, "no") == 0)
        return "its programs are run beside another scheduler or number of threads";
    if (the_test->real && *seeds() != '\0')
        return "needs real threads, the real clock or a program";
    return stacks != NULL && strcmp(stacks, "shared") == 0 ? the_test->own_stacks : NULL;
}

void test_say_skipped(const struct test_case *the_test)
{
    fprintf(stderr, "skipped: %s.%s: %s\n", the_test->suite, the_test->name, test_why_skipped(the_test));
}

static void execute_seeds(const struct test_case *the_test, long last)
{
    for (test.seed = 1; test.seed <= last; test.seed += the_test->one_seed_in) {
        char text[32];
        snprintf(text, sizeof(text), "%s%ld", getenv("STRAND_TEST_STEPS") != NULL ? "s" : "", test.seed);
        setenv("STRAND_SEED", text, 1);
        execute_once(the_test);
    }
    unsetenv("STRAND_SEED");
    test.seed = 0;
}

/* "stealing:500 global:50", or a number alone. */
static void execute_all_seeds(const struct test_case *the_test)
{
    char word[64];
    int length;
    for (const char *rest = seeds(); sscanf(rest, " %63s%n", word, &length) == 1; rest += length) {
        long last;
        int end = 0;
        if (sscanf(word, "%31[a-z]:%ld%n", test.scheduler, &last, &end) != 2) {
            *test.scheduler = '\0';
            (void)sscanf(word, "%ld%n", &last, &end);
        }
        if (!end || word[end] != '\0' || last < 1)
            CHECK_FAIL("STRAND_TEST_SEEDS: '%s' is neither a number of seeds nor a scheduler with one", word);
        execute_seeds(the_test, last);
    }
    *test.scheduler = '\0';
}

void test_execute(const struct test_case *the_test)
{
    test.running = the_test;
    if (*seeds() == '\0') {
        execute_once(the_test);
    } else {
        setenv("STRAND_SIM_SILENT", "1", 0); /* a failed test names its seed; the others need not be heard of */
        execute_all_seeds(the_test);
    }
    test.running = NULL;
}

int test_count_entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    CHECK(folder != NULL);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

bool test_under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload");
}
