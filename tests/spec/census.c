/*
 * The stack census: how much of their stacks strands have used at most, by spawn site.
 */
#define _GNU_SOURCE
#define SUITE census
#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

enum { DEEP = 20000, STRANDS = 10 };

static char text[1 << 16];

/* fn(arg) while standard error goes into `text`. */
static void catch_standard_error(void (*fn)(const strand_options *options), const strand_options *options)
{
    int caught = memfd_create("census", MFD_CLOEXEC), before = dup(2);
    CHECK(caught >= 0 && before >= 0 && dup2(caught, 2) == 2);
    fn(options);
    CHECK(dup2(before, 2) == 2);
    ssize_t length = pread(caught, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    close(caught);
    close(before);
}

static NOINLINE void dig(size_t bytes)
{
    char room[bytes];
    memset(room, 1, bytes);
    __asm__ volatile("" : : "r"(room) : "memory");
}

/* They sleep, since a yield that finds nobody else does not suspend. */
static void *digs_once(void *deep)
{
    strand_sleep(STRAND_MS);
    dig((size_t)deep);
    strand_sleep(STRAND_MS);
    return NULL;
}

static void *digs_on_a_shared_stack(void *deep)
{
    strand_sleep(STRAND_MS);
    dig((size_t)deep);
    strand_sleep(STRAND_MS);
    return NULL;
}

static NOINLINE void wait_deep(size_t bytes)
{
    char room[bytes];
    __asm__ volatile("" : : "r"(room) : "memory");
    strand_sleep(STRAND_MS);
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void *waits_deep(void *deep)
{
    wait_deep((size_t)deep);
    return NULL;
}

static void *stays_shallow(void *arg)
{
    strand_yield();
    return arg;
}

/* All but one of each kind dig a tenth. */
static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (intptr_t i = 0; i < STRANDS; i++) {
        void *deep = TEST_PTR(i == 3 ? DEEP : DEEP / 10);
        strand_spawn(scope, digs_once, deep);
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), digs_on_a_shared_stack, deep, 0);
        strand_spawn(scope, waits_deep, deep);
    }
    strand_scope_join(scope);
    for (int i = 0; i < STRANDS; i++) /* on the stacks that the others have left */
        strand_spawn(scope, stays_shallow, arg);
    strand_scope_join(scope);
    return arg;
}

static void run(const strand_options *options)
{
    strand_run(options, root, NULL);
}

struct counted {
    unsigned long used, suspended, stack, strands;
};

static struct counted counted(const char *function)
{
    struct counted counted = {0};
    char words[64];
    snprintf(words, sizeof words, "  %s, spawned in root+0x", function);
    const char *at = strstr(text, words);
    if (!at)
        test_fail(__FILE__, __LINE__, "there is no line of %s in:\n%s", function, text);
    while (at > text && at[-1] != '\n')
        at--;
    CHECK_EQ(sscanf(at, "%lu %lu %lu %lu", &counted.used, &counted.suspended, &counted.stack, &counted.strands), 4);
    return counted;
}

static void check_lines(void)
{
    struct counted own = counted("digs_once"), guest = counted("digs_on_a_shared_stack");
    struct counted deep = counted("waits_deep"), shallow = counted("stays_shallow");
    CHECK(own.used > DEEP && own.used < DEEP + 8000);
    CHECK(own.suspended > 0 && own.suspended < 4000);
    CHECK_EQ(own.strands, STRANDS);
    CHECK(guest.used > DEEP && guest.used < DEEP + 8000);
    CHECK(guest.suspended > 0 && guest.suspended < 4000);
    CHECK_EQ(guest.strands, STRANDS);
    CHECK(deep.suspended > DEEP && deep.suspended < DEEP + 4000);
    CHECK(shallow.used < DEEP / 2);
    CHECK_EQ(shallow.strands, STRANDS);
    CHECK_EQ(own.stack, 64 * 1024);
    CHECK_CONTAINS(text, "  root, the root\n");
}

TEST_REAL(a_census_reports_how_much_stack_the_strands_of_a_spawn_site_have_used)
{
    strand_options asked = test_options(), told = test_options(), seeded = {.size = sizeof seeded};
    asked.census = true;
    seeded.census = seeded.has_seed = true;
    seeded.seed = 3;
    seeded.threads = 2;
    struct way {
        const strand_options *options;
        const char *environment;
    } ways[] = {{&asked, NULL}, {&told, "1"}, {&seeded, NULL}, {&seeded, NULL} /* on the stacks of the third */};
    asked.stack_size = told.stack_size = 64 * 1024;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        unsetenv("STRAND_CENSUS");
        if (ways[i].environment)
            setenv("STRAND_CENSUS", ways[i].environment, 1);
        catch_standard_error(run, ways[i].options);
        check_lines();
    }
}

static void *root_on_pools(void *arg)
{
    for (int i = 0; i < 2; i++) { /* the second on the record of the first */
        STRAND_SCOPE(scope);
        strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
        strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool), root, NULL, 0));
    }
    return arg;
}

static void run_on_pools(const strand_options *options)
{
    strand_run(options, root_on_pools, NULL);
}

TEST_REAL(a_census_counts_the_strands_of_all_pools_also_of_those_that_were_closed)
{
    strand_options options = test_options();
    options.census = true;
    options.stack_size = 64 * 1024;
    catch_standard_error(run_on_pools, &options);
    CHECK_EQ(counted("digs_once").strands, 2 * STRANDS);
    CHECK_EQ(counted("digs_on_a_shared_stack").strands, 2 * STRANDS);
    CHECK(counted("digs_once").used > DEEP && counted("waits_deep").suspended > DEEP);
    CHECK_EQ(counted("stays_shallow").strands, 2 * STRANDS);
    CHECK_CONTAINS(text, "  root, spawned in root_on_pools+0x");
}

TEST_REAL(without_a_wish_there_is_no_census)
{
    strand_options options = test_options();
    catch_standard_error(run, &options);
    CHECK_STR(text, "");
}
