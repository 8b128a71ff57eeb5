/*
 * Stacks: their sizes, their guards, and what happens at their ends.
 */
#define SUITE stacks
#include "test.h"

#include "strand/debug.h"
#include "strand/pool.h"
#include "strand/sync.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define KIB ((size_t)1024)

static struct test_output o;

/* ---- frame pointers --------------------------------------------------------------------------- */

/* What a profiler that goes by frame pointers does: from this frame outwards, to the one that has none. */
static void *walk_frames(void *arg)
{
    uintptr_t *frame = __builtin_frame_address(0);
    for (int i = 0; frame; i++) {
        CHECK(i < 10);
        uintptr_t *outer = (uintptr_t *)*frame;
        CHECK(!outer || outer > frame);
        frame = outer;
    }
    return arg;
}

TEST_INSIDE(the_frame_pointers_of_a_strand_end_at_the_base_of_its_stack)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, walk_frames, NULL));
}

/* ---- sizes ---------------------------------------------------------------------------------- */

/* Goes down until `bytes` of stack are used, writing all the way, and checks on the way back. */
static NOINLINE size_t use_stack(size_t bytes, const char *top)
{
    volatile char here[2048];
    size_t used = (size_t)(top - (const char *)__builtin_frame_address(0));
    __asm__ volatile("" : : "r"(here) : "memory"); /* keeps the whole array */
    here[0] = here[2047] = (char)used;
    if (used < bytes)
        used = use_stack(bytes, top);
    CHECK_EQ(here[0], here[2047]);
    return used;
}

static void *use_stack_of(void *bytes)
{
    CHECK(use_stack(*(size_t *)bytes, __builtin_frame_address(0)) >= *(size_t *)bytes);
    return bytes;
}

TEST_INSIDE(a_strand_can_use_most_of_its_64_kib_by_default)
{
    size_t bytes = 40 * KIB;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, use_stack_of, &bytes));
}

TEST_REAL_INSIDE(the_attribute_gives_one_strand_a_bigger_stack)
{
    size_t bytes = 7000 * KIB;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.stack_size = 8192 * KIB), use_stack_of, &bytes, 0));
}

static void *use_stack_of_a_child(void *bytes)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, use_stack_of, bytes));
    return use_stack_of(bytes);
}

TEST(the_option_gives_all_strands_and_the_root_a_bigger_stack)
{
    size_t bytes = 200 * KIB;
    strand_options options = test_options();
    options.stack_size = 256 * KIB;
    strand_run(&options, use_stack_of_a_child, &bytes);
}

TEST_INSIDE(strands_with_stacks_of_many_sizes_live_side_by_side)
{
    size_t bytes[5];
    STRAND_SCOPE(scope);
    for (size_t i = 0; i < 5; i++) {
        size_t size = (64 * KIB) << i;
        bytes[i] = size / 2;
        strand_spawn_with(scope, STRAND_ATTR(.stack_size = size), use_stack_of, &bytes[i], 0);
    }
    strand_scope_join(scope);
}

TEST_PROGRAM(the_smallest_stack_has_room_for_the_frame_of_a_signal_and_8_kib)
{
    static const struct {
        const char *frame, *sizes;
    } cases[] = {
        {"0", "16384\n65536\nfine\n"},       {"3632", "16384\n65536\nfine\n"},  {"4096", "16384\n65536\nfine\n"},
        {"4097", "32768\n65536\nfine\n"},    {"11952", "32768\n65536\nfine\n"}, /* with AMX */
        {"70000", "131072\n131072\nfine\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_program(&o, "signal_frames", cases[i].frame);
        CHECK_STR(o.out, cases[i].sizes);
        CHECK(!o.signalled && o.status == 0);
    }
}

/* Stays true; the compiler can't know it. */
static volatile int yes = 1;

static NOINLINE int throw_from_the_depth(long depth)
{
    volatile char frame[256];
    frame[0] = 1;
    if (depth > 0)
        return throw_from_the_depth(depth - 1) + frame[0];
    if (yes)
        strand_throw(&STRAND_ERROR, "bottom");
    return 0;
}

static void *throw_from_below(void *depth)
{
    return throw_from_the_depth(*(long *)depth) ? depth : NULL;
}

TEST_INSIDE(an_exception_can_be_thrown_through_ten_thousand_frames)
{
    long depth = test_scale(10000);
    STRAND_SCOPE(scope);
    strand child = strand_spawn_with(scope, STRAND_ATTR(.stack_size = 16384 * KIB), throw_from_below, &depth, 0);
    STRAND_TRY {
        strand_join(child);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    CHECK_LOG("bottom");
}

/* ---- staying where they are ----------------------------------------------------------------- */

static void *stay_in_place(void *arg)
{
    volatile int local = 1;
    volatile int *before = &local;
    for (int i = 0; i < 20; i++) {
        strand_yield();
        local++;
    }
    CHECK_PTR((const void *)before, (const void *)&local);
    CHECK_EQ(*before, 21);
    return arg;
}

/* V-04, V-05, contract 3.1 */
TEST_INSIDE(the_locals_of_a_strand_stay_where_they_are)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, stay_in_place, NULL);
    strand_scope_join(scope);
}

static void *write_through(void *place)
{
    *(int *)place = 7;
    return place;
}

/* contract 3.2 */
TEST_INSIDE(a_child_may_use_its_parents_locals)
{
    int places[10] = {0};
    STRAND_SCOPE(scope);
    for (int i = 0; i < 10; i++)
        strand_spawn(scope, write_through, &places[i]);
    strand_scope_join(scope);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(places[i], 7);
}

static NOINLINE double print_and_parse(double x)
{
    char text[64];
    snprintf(text, sizeof text, "%.17g", x);
    return strtod(text, NULL);
}

static void *compute_inexactly(void *arg)
{
    double mine = *(double *)arg;
    for (int i = 0; i < 20; i++) {
        mine = mine / 3 + 1;
        strand_yield();
        CHECK(print_and_parse(mine) == mine);
    }
    CHECK(fabs(mine - 1.5) < 1e-5);
    return arg;
}

TEST_INSIDE(strands_compute_in_floating_point_across_switches)
{
    double numbers[4] = {1, 20, 300, 4000};
    STRAND_SCOPE(scope);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, compute_inexactly, &numbers[i]);
    strand_scope_join(scope);
}

/* ---- many ----------------------------------------------------------------------------------- */

static uint64_t count_stacks(void)
{
    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    return stats.stacks;
}

/* contract 3.4 */
TEST_INSIDE(stacks_are_used_again)
{
    long strands = test_scale(10000);
    STRAND_SCOPE(scope);
    for (long i = 0; i < strands; i++)
        strand_join(strand_spawn(scope, test_return, NULL));
    CHECK(count_stacks() < 100);
}

static void *park(void *parked)
{
    ++*(_Atomic long *)parked;
    strand_sleep(FOREVER);
    return parked;
}

static void *park_many(void *arg)
{
    long strands = *(long *)arg;
    _Atomic long parked = 0;
    STRAND_SCOPE(scope);
    for (long i = 0; i < strands; i++)
        strand_spawn(scope, park, &parked);
    while (parked < strands)
        strand_yield();
    CHECK_EQ(strand_scope_count(scope), strands);
    strand_scope_cancel(scope, NULL);
    return arg;
}

/* S-04, V-02 */
TEST_REAL(a_hundred_thousand_strands_can_be_parked_at_once)
{
    long strands = test_scale(100000);
    test_run(park_many, &strands);
}

/* contract 3.9 */
TEST(a_thousand_strands_with_required_guards_can_be_parked_at_once)
{
    long strands = test_scale(1000);
    strand_options options = test_options();
    options.guards = STRAND_GUARDS_REQUIRED;
    strand_run(&options, park_many, &strands);
}

/* ---- memory that is given back ------------------------------------------------------------- */

enum { BURST = 1000, USUAL_BURST = 3000 };
static _Atomic int used;
static strand_event all_have;

static void *use_and_wait(void *bytes)
{
    use_stack_of(bytes);
    ++used;
    strand_event_wait(&all_have);
    return NULL;
}

/* The size is not the usual one: threads keep none of these stacks for themselves. */
static long use_many_stacks(size_t bytes)
{
    STRAND_SCOPE(scope);
    used = 0;
    strand_event_clear(&all_have);
    for (int i = 0; i < BURST; i++)
        strand_spawn_with(scope, STRAND_ATTR(.stack_size = 128 * KIB), use_and_wait, &bytes, 0);
    test_yield_until(&used, BURST);
    long resident = (long)test_resident_bytes();
    strand_event_set(&all_have);
    strand_scope_join(scope);
    return resident;
}

TEST_REAL_INSIDE(the_pages_of_stacks_go_back_to_the_system_after_a_burst)
{
    size_t bytes = 64 * KIB;
    for (int again = 0; again < 2; again++) {
        long most = use_many_stacks(bytes);
        while ((long)test_resident_bytes() > most - BURST * (long)bytes / 2)
            strand_sleep(10 * STRAND_MS);
    }
}
TEST_OWN_STACKS(the_pages_of_stacks_go_back_to_the_system_after_a_burst, "frames that are saved are elsewhere");

/* The stacks have the usual size: each thread keeps some of them. */
static void *use_many_usual_stacks(void *bytes)
{
    long most;
    {
        STRAND_SCOPE(scope);
        used = 0;
        strand_event_clear(&all_have);
        for (int i = 0; i < USUAL_BURST; i++)
            strand_spawn(scope, use_and_wait, bytes);
        test_yield_until(&used, USUAL_BURST);
        most = (long)test_resident_bytes();
        strand_event_set(&all_have);
        strand_scope_join(scope);
    }
    while ((long)test_resident_bytes() > most - USUAL_BURST * (long)*(size_t *)bytes / 4)
        strand_sleep(10 * STRAND_MS);
    return NULL;
}

TEST_REAL(many_threads_keep_no_more_stacks_than_a_few)
{
    size_t bytes = 32 * KIB;
    strand_run(STRAND_OPTIONS(.threads = 16), use_many_usual_stacks, &bytes);
}
TEST_OWN_STACKS(many_threads_keep_no_more_stacks_than_a_few, "frames that are saved are elsewhere");

/* ---- memory that is refused ----------------------------------------------------------------- */

/* Sanitizers end the program where they are refused memory. */
#define MEMORY_MAY_END (!TEST_TSAN && !TEST_ASAN)

#if MEMORY_MAY_END
static void *rest_a_while(void *arg)
{
    strand_sleep(STRAND_MS);
    return arg;
}

/* The process gets no more address space but for a little; blocks of memory it has. */
static void end_address_space(void)
{
    enum { BLOCKS = 8000 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(KIB);
    for (int i = 0; i < BLOCKS - 1; i++) /* the last one keeps what is before it from going back to the system */
        free(blocks[i]);
    struct rlimit limit;
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK_EQ(fscanf(statm, "%lu", &pages), 1);
    fclose(statm);
    CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = (rlim_t)(pages + 512) * 4 * KIB;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

/* The second thousand strands get the control blocks of the first, but can't use their stacks of another size. */
static void *be_many_twice(void *arg)
{
    enum { COUNT = 1000 };
    {
        STRAND_SCOPE(scope);
        for (int i = 0; i < COUNT; i++)
            strand_spawn_with(scope, STRAND_ATTR(.stack_size = 128 * KIB), rest_a_while, NULL, 0);
        strand_scope_join(scope);
    }
    end_address_space();
    STRAND_SCOPE(scope);
    for (int i = 0; i < COUNT; i++)
        strand_spawn(scope, rest_a_while, NULL);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(a_refused_stack_is_an_exception_of_its_strand_although_the_control_block_was_used_before)
{
    strand_exception *e = NULL;
    strand_options options = test_options();
    if (test_under_valgrind()) /* which ends, too */
        return;
    options.uncaught = &e;
    options.threads = 1; /* another would have its own blocks of memory, or none */
    strand_run(&options, be_many_twice, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_CONTAINS(strand_exception_text(e), "no stack of 65536 bytes");
    CHECK(test_count_kind(e, &STRAND_SYSTEM) > 100);
    strand_exception_release(e);
}
TEST_OWN_STACKS(a_refused_stack_is_an_exception_of_its_strand_although_the_control_block_was_used_before,
                "the program ends where frames can't be saved");
#endif

/* ---- guards --------------------------------------------------------------------------------- */

/* contract 3.9 */
TEST_REAL(required_guards_that_are_not_available_are_refused_clearly)
{
    strand_exception *e = NULL;
    strand_options options = test_options();
    options.guards = STRAND_GUARDS_REQUIRED;
    options.uncaught = &e;
    setenv("STRAND_GUARDS", "none", 1);
    CHECK_PTR(strand_run(&options, test_return, &options), NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_CONTAINS(strand_exception_text(e), "guard");
    strand_exception_release(e);
}

static _Atomic int warnings;

static void count_guard_warnings(const char *message, void *arg)
{
    (void)arg;
    if (strstr(message, "guard"))
        warnings++;
}

/* contract 3.11 */
TEST_REAL(best_effort_without_guards_warns_once_and_runs)
{
    long strands = test_scale(100);
    strand_options options = test_options();
    options.on_log = count_guard_warnings;
    setenv("STRAND_GUARDS", "none", 1);
    strand_run(&options, park_many, &strands);
    CHECK_EQ(warnings, 1);
}

/* ---- overflow: tests/programs/overflow.c ------------------------------------------------------ */

/* A signal handler that does what only a dying program may do writes the report of an overflow. TSan's report of that
 * is suppressed. */
static void overflow(const char *how)
{
    setenv("TSAN_OPTIONS", "report_signal_unsafe=0", 1);
    test_program(&o, "overflow", how);
    CHECK(o.signalled || o.status != 0);
    CHECK(strstr(o.out, "still alive") == NULL);
}

/* contract 3.8 */
TEST_PROGRAM(an_overflow_is_reported_with_the_name_of_the_strand_and_the_size_of_its_stack)
{
    overflow("deep");
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "deep-diver");
    if (!strstr(o.err, "128 KiB"))
        CHECK_CONTAINS(o.err, "131072");
}

/* contract 3.8 */
TEST_PROGRAM(an_overflow_is_reported_with_its_trace)
{
    overflow("deep");
    CHECK_CONTAINS(o.err, "dive_deeper");
}

/* contract 3.8 */
TEST_PROGRAM(an_overflow_on_a_thread_that_is_not_the_first_is_reported_too)
{
    overflow("threads");
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "deep-diver");
}

/* contract 3.8 */
TEST_PROGRAM(a_frame_bigger_than_the_guard_is_reported_too)
{
    overflow("big-frame");
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "deep-diver");
}

TEST_PROGRAM(a_frame_that_steps_over_the_guard_is_reported_with_the_option_that_prevents_it)
{
    overflow("step-over");
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "deep-diver");
    CHECK_CONTAINS(o.err, "-fstack-clash-protection");
}

TEST_PROGRAM(a_frame_that_steps_over_the_guard_into_another_stack_is_reported_at_the_next_operation_that_may_block)
{
    static const char *const operations[] = {"beyond-sleep",   "beyond-join",   "beyond-join-one",   "beyond-read",
                                             "beyond-offload", "beyond-forget", "beyond-pool-close", "beyond-static"};
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        overflow(operations[i]);
        CHECK_CONTAINS(o.err, "overflow");
        CHECK_CONTAINS(o.err, "deep-diver");
        CHECK_CONTAINS(o.err, "-fstack-clash-protection");
    }
}

TEST_PROGRAM(a_strand_may_block_on_a_stack_of_the_programs_own)
{
    test_program(&o, "overflow", "own-stack");
    CHECK_CONTAINS(o.out, "still alive");
}

TEST_PROGRAM(a_fault_on_a_stack_of_the_programs_own_is_not_called_an_overflow)
{
    overflow("elsewhere");
    CHECK(strstr(o.err, "overflow in strand") == NULL);
}

/* contract 3.8 */
TEST_PROGRAM(an_overflow_of_the_root_is_reported_too)
{
    overflow("root");
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "root");
}

/* contract 3.11 */
TEST_PROGRAM(without_guards_an_overflow_is_found_at_the_next_switch)
{
    setenv("STRAND_GUARDS", "none", 1);
    overflow("switch");
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "deep-diver");
}

TEST_PROGRAM(a_thread_that_is_sent_away_and_called_back_finds_an_overflow_as_before)
{
    setenv("STRAND_GUARDS", "none", 1);
    overflow("called-back");
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "deep-diver");
}

TEST_PROGRAM(an_overflow_on_a_fibre_is_reported_as_that_strands)
{
    overflow("fibre");
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "deep-diver");
    CHECK_CONTAINS(o.err, "dive_deeper");
}

TEST_PROGRAM(without_guards_an_overflow_on_a_fibre_is_found_at_the_next_switch)
{
    setenv("STRAND_GUARDS", "none", 1);
    overflow("fibre-switch");
    CHECK_CONTAINS(o.err, "overflow");
    CHECK_CONTAINS(o.err, "deep-diver");
}

/* contract 3.8 */
TEST_PROGRAM(a_fault_that_is_no_overflow_is_not_called_one)
{
    overflow("null");
    CHECK(strstr(o.err, "deep-diver") == NULL);
    CHECK(strstr(o.err, "stack overflow in strand") == NULL);
}
