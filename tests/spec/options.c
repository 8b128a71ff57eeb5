/*
 * The options of a run, runs beside and after each other, and that nothing is left of them.
 */
#define _GNU_SOURCE
#define SUITE options
#include "test.h"

#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/pool.h"
#include "strand/port.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static void *add_one(void *number)
{
    ++*(int *)number;
    return number;
}

/* ---- the run -------------------------------------------------------------------------------- */

/* S-44, contract 7.1 */
TEST(run_returns_what_its_function_returned)
{
    int x = 0;
    CHECK_PTR(test_run(test_return, &x), &x);
    CHECK_PTR(test_run(test_return, NULL), NULL);
}

TEST(a_run_needs_no_options)
{
    int number = 0;
    strand_run(NULL, add_one, &number);
    strand_run(STRAND_OPTIONS(.threads = 1), add_one, &number);
    CHECK_EQ(number, 2);
}

/* S-44, contract 7.1 */
TEST(many_runs_can_follow_each_other)
{
    int number = 0;
    for (int i = 0; i < 50; i++)
        test_run(add_one, &number);
    CHECK_EQ(number, 50);
}

/* contract 9.14 */
TEST(options_of_an_older_program_are_read_as_far_as_they_go)
{
    int number = 0;
    strand_options options = test_options();
    memset(&options.uncaught, 0x5a, sizeof options - offsetof(strand_options, uncaught));
    options.size = offsetof(strand_options, uncaught);
    strand_run(&options, add_one, &number);
    CHECK_EQ(number, 1);
}

static void *spawn_with_short_attributes(void *number)
{
    strand_attr attr;
    memset(&attr, 0x5a, sizeof attr);
    attr.size = offsetof(strand_attr, stack_size);
    attr.name = "old-timer";
    STRAND_SCOPE(scope);
    return strand_join(strand_spawn_with(scope, &attr, add_one, number, 0));
}

/* contract 9.14 */
TEST(attributes_of_an_older_program_are_read_as_far_as_they_go)
{
    int number = 0;
    test_run(spawn_with_short_attributes, &number);
    CHECK_EQ(number, 1);
}

/* A struct of that type from a header that has one more field. */
#define NEWER(type, name, ...)                                                                                         \
    struct {                                                                                                           \
        type known;                                                                                                    \
        uint64_t more;                                                                                                 \
    } name = {{.size = sizeof name, __VA_ARGS__}, UINT64_MAX}

static void handle(void *state, strand_message *message)
{
    (void)state, (void)message;
}

static void *open_with_newer_structs(void *arg)
{
    NEWER(strand_chan_attr, chan, .name = "chan");
    NEWER(strand_port_attr, port, .name = "port");
    NEWER(strand_prio_options, prio, .permits = 1);
    NEWER(strand_actors_attr, system, .name = "system");
    NEWER(strand_actor_attr, actor, .name = "actor");
    NEWER(strand_router, router, .count = 1);
    static NEWER(strand_actor_class, class, .receive = handle);
    static strand_prio_semaphore semaphore;
    router.known.class_ = &class.known;
    STRAND_SCOPE(scope);
    STRAND_ACTORS(actors, &system.known);
    strand_chan_open(scope, 1, 1, &chan.known);
    strand_port_open(scope, 1, 1, &port.known);
    strand_prio_init(&semaphore, &prio.known);
    strand_actor_spawn(actors, &actor.known, &class.known, NULL, 0);
    strand_router_spawn(actors, NULL, &router.known);
    return arg;
}

TEST(structs_of_a_newer_program_are_read_as_far_as_the_library_knows_them)
{
    test_run(open_with_newer_structs, NULL);
}

static void *throw_without_a_code(void *arg)
{
    strand_throw_info info;
    memset(&info, 0x5a, sizeof info);
    info.size = offsetof(strand_throw_info, code);
    strand_throw_with(&STRAND_ERROR, &info, "of an older program");
    return arg;
}

TEST_INSIDE(the_parts_of_an_exception_are_read_as_far_as_their_size_goes)
{
    strand_exception *e = strand_try(throw_without_a_code, NULL, NULL);
    CHECK_EQ(strand_exception_code(e), 0);
    CHECK(!strand_exception_payload(e) && !strand_exception_cause(e));
    strand_exception_release(e);
}

static void *log_name(void *arg)
{
    test_log("%s", strand_name());
    return arg;
}

static void *log_three_names(void *arg)
{
    char name[] = "gardener";
    log_name(arg);
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, log_name, arg));
    strand child = strand_spawn_with(scope, STRAND_ATTR(.name = name), log_name, arg, 0);
    memset(name, 'x', strlen(name));
    strand_join(child);
    return arg;
}

TEST(strands_are_called_root_strand_or_as_their_attribute_says)
{
    test_run(log_three_names, NULL);
    CHECK_LOG("root strand gardener");
}

static void *check_long_name(void *name)
{
    CHECK_EQ(strlen(strand_name()), 31);
    CHECK_EQ(strncmp(strand_name(), name, 31), 0);
    return name;
}

static void *spawn_with_long_name(void *arg)
{
    char name[] = "0123456789012345678901234567890123456789";
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = name), check_long_name, name, 0));
    return arg;
}

/* S-29 */
TEST(options_that_no_run_can_have_are_refused)
{
    test_refused((strand_options){.threads = -7}, "-7");
    test_refused((strand_options){.threads = 1000000}, "1000000");
    test_refused((strand_options){.scheduler = "lottery"}, "lottery");
    test_refused((strand_options){.stack_size = SIZE_MAX}, "stack_size");
    test_refused((strand_options){.balance = (enum strand_balance)77}, "balance is 77");
    test_refused((strand_options){.out_of_work = (enum strand_out_of_work)77}, "options.out_of_work is 77");
    test_refused((strand_options){.files = (enum strand_files)77}, "options.files is 77");
    test_refused((strand_options){.guards = (enum strand_guards)77}, "options.guards is 77");
    test_refused((strand_options){.max_offload_threads = -3}, "options.max_offload_threads is -3");
    test_refused((strand_options){.spin_us = -7}, "options.spin_us is -7");
}

TEST(a_name_is_kept_up_to_31_bytes)
{
    test_run(spawn_with_long_name, NULL);
}

TEST(outside_of_strands_there_is_no_self)
{
    CHECK_EQ(strand_id(strand_self()), 0);
    CHECK_EQ(strand_id((strand){0}), 0);
    CHECK(!strand_unwinding());
}

static void *spawn_and_join_ten(void *number)
{
    for (int i = 0; i < 10; i++) {
        STRAND_SCOPE(scope);
        strand_join(strand_spawn(scope, add_one, number));
    }
    return number;
}

TEST(a_run_does_the_same_however_long_its_threads_spin)
{
    static const int64_t times[] = {1, 50};
    for (int i = 0; i < 2; i++) {
        int number = 0;
        strand_options options = test_options();
        options.spin_us = times[i];
        strand_run(&options, spawn_and_join_ten, &number);
        CHECK_EQ(number, 10);
    }
}

/* contract 9.15 */
TEST(the_version_is_that_of_the_header)
{
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", STRAND_VERSION_MAJOR, STRAND_VERSION_MINOR, STRAND_VERSION_PATCH);
    CHECK_STR(strand_version(), expected);
}

/* ---- limits --------------------------------------------------------------------------------- */

/* Spawns sleepers until that is refused; says how many there are, and by what it was refused. */
static void *spawn_until_refused(void *children)
{
    STRAND_SCOPE(scope);
    STRAND_TRY {
        for (int i = 0; i < 1000; i++) {
            strand_spawn(scope, test_sleep, NULL);
            ++*(volatile int *)children;
        }
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
        CHECK(strand_exception_code(e) < 0);
        CHECK_CONTAINS(strand_exception_text(e), "strands");
        test_log("refused");
    }
    STRAND_END
    CHECK_EQ(strand_scope_count(scope), *(int *)children);
    strand_scope_cancel(scope, NULL);
    return children;
}

static strand_options limited_to(size_t strands)
{
    strand_options options = test_options();
    options.max_strands = strands;
    return options;
}

TEST(a_spawn_beyond_max_strands_is_refused_clearly_and_starts_nothing)
{
    int children = 0;
    strand_options options = limited_to(10);
    strand_run(&options, spawn_until_refused, &children);
    CHECK_EQ(children, 9);
    CHECK_LOG("refused");
}

static void *spawn_one_after_the_other(void *number)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 100; i++)
        strand_join(strand_spawn(scope, add_one, number));
    return number;
}

TEST(strands_that_have_been_joined_do_not_count_for_max_strands)
{
    int number = 0;
    strand_options options = limited_to(2);
    strand_run(&options, spawn_one_after_the_other, &number);
    CHECK_EQ(number, 100);
}

/* ---- hooks ---------------------------------------------------------------------------------- */

static void keep_message(const char *message, void *arg)
{
    snprintf(arg, 4096, "%s", message);
}

static void *fail(void *arg)
{
    (void)arg;
    strand_throw(&STRAND_ERROR, "lost letter");
}

static void *suppress_a_failure(void *arg)
{
    strand_suppress(strand_try(fail, arg, NULL));
    return arg;
}

TEST(the_log_hook_gets_its_argument)
{
    static char message[4096];
    message[0] = 0;
    strand_options options = test_options();
    options.on_log = keep_message;
    options.hook_arg = message;
    strand_run(&options, suppress_a_failure, NULL);
    CHECK_CONTAINS(message, "lost letter");
}

static void is_refused(const char *program, const char *option)
{
    static struct test_output o;
    test_program(&o, program, NULL);
    CHECK_EQ(o.status, 1);
    CHECK_STR(o.out, "");
    CHECK_CONTAINS(o.err, option);
}

TEST_PROGRAM(a_program_with_split_stacks_is_refused_with_the_name_of_the_option)
{
    is_refused("split_stack", "-fsplit-stack");
}

TEST_PROGRAM(a_program_with_memory_sanitizer_is_refused_with_the_name_of_the_option)
{
    is_refused("memory_sanitizer", "-fsanitize=memory");
}

TEST_PROGRAM(without_a_log_hook_messages_go_to_standard_error)
{
    static struct test_output o;
    test_program(&o, "log", NULL);
    CHECK_EQ(o.status, 0);
    CHECK_CONTAINS(o.err, "lost letter");
    CHECK_STR(o.out, "");
}

/* It may be called in the middle of a switch. */
TEST_PROGRAM(a_log_hook_that_blocks_or_throws_is_misuse)
{
    static struct test_output o;
    test_program(&o, "log", "block");
    CHECK(o.signalled);
    CHECK_CONTAINS(o.err, "strand_sleep");
    CHECK_CONTAINS(o.err, "options.on_log");
    CHECK_CONTAINS(o.err, "lost letter");
    test_program(&o, "log", "throw");
    CHECK(o.signalled);
    CHECK_CONTAINS(o.err, "options.on_log");
    CHECK_CONTAINS(o.err, "lost letter");
}

/* ---- runs beside and inside each other ------------------------------------------------------ */

static void *count_in_a_run(void *number)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 100; i++) {
        strand_join(strand_spawn(scope, add_one, number));
        strand_yield();
    }
    return number;
}

static void *run_on_a_plain_thread(void *number)
{
    return test_run(count_in_a_run, number);
}

/* V-01, contract 1.2 */
TEST_REAL(several_plain_threads_can_run_sub_processes_at_the_same_time)
{
    pthread_t threads[8];
    int numbers[8] = {0};
    for (int i = 0; i < 8; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, run_on_a_plain_thread, &numbers[i]), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(numbers[i], 100);
}

static strand_options with_own_threads(void)
{
    strand_options options = test_options();
    test_set_own_threads(&options);
    return options;
}

static void *run_inside(void *number)
{
    strand_options options = with_own_threads();
    strand_run(&options, count_in_a_run, number);
    return add_one(number);
}

/* V-01 */
TEST_REAL_INSIDE(a_strand_can_run_a_sub_process_with_threads_of_its_own)
{
    int number = 0;
    CHECK_PTR(run_inside(&number), &number);
    CHECK_EQ(number, 101);
    strand_yield();
}

static void *run_two_inside(void *number)
{
    strand_options options = with_own_threads();
    strand_run(&options, run_inside, number);
    return run_inside(number);
}

/* V-01 */
TEST_REAL_INSIDE(sub_processes_nest_to_any_depth)
{
    int number = 0;
    strand_options options = with_own_threads();
    strand_run(&options, run_two_inside, &number);
    CHECK_EQ(number, 202);
}

static void *count_live(void *live)
{
    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    *(uint64_t *)live = stats.live;
    return live;
}

/* V-01, contract 1.2 */
TEST_REAL_INSIDE(a_sub_process_sees_its_own_strands_only)
{
    uint64_t live = 0;
    strand_options options = with_own_threads();
    STRAND_SCOPE(scope);
    for (int i = 0; i < 5; i++)
        strand_spawn(scope, test_sleep, NULL);
    strand_run(&options, count_live, &live);
    CHECK_EQ(live, 1);
    strand_scope_cancel(scope, NULL);
}

static void *fail_inside(void *arg)
{
    strand_exception *e = NULL;
    strand_options options = with_own_threads();
    options.uncaught = &e;
    strand_run(&options, fail, arg);
    CHECK(e != NULL);
    strand_rethrow(e);
}

/* contract 1.2 */
TEST_REAL(an_exception_of_an_inner_sub_process_can_be_rethrown_in_the_outer_one)
{
    strand_exception *e = test_run_catching(fail_inside, NULL, NULL);
    CHECK(e != NULL);
    CHECK_STR(strand_exception_text(e), "lost letter");
    strand_exception_release(e);
}

/* ---- nothing is left ------------------------------------------------------------------------ */

static int count_mappings(void)
{
    int lines = 0, c;
    FILE *maps = fopen("/proc/self/maps", "re");
    CHECK(maps != NULL);
    while ((c = getc(maps)) != EOF)
        lines += c == '\n';
    fclose(maps);
    return lines;
}

/* Spawns, parks, throws, times out, offloads, on several pools. */
static void *use_everything(void *arg)
{
    int number = 0;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 200; i++)
        strand_spawn(scope, test_sleep, NULL);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        strand_offload(add_one, &number);
    }
    STRAND_END
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    for (int i = 0; i < 20; i++)
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool), test_sleep, NULL, 0);
    strand_pool_resize(pool, 4);
    strand_pool_resize(pool, 1);
    strand_scope_cancel(scope, NULL);
    strand_exception_release(strand_try(fail, NULL, NULL));
    return arg;
}

static void run_everything_on(int threads)
{
    strand_options options = test_options();
    test_set_threads(&options, threads);
    strand_run(&options, use_everything, NULL);
}

/* The first run of a process loads the unwinder, which keeps descriptors of its own. */
/* contract 7.5 */
TEST_REAL(no_descriptor_is_left_after_a_run)
{
    run_everything_on(1);
    int before = test_count_entries("/proc/self/fd");
    run_everything_on(1);
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
    run_everything_on(4);
    CHECK_EQ(test_count_entries("/proc/self/fd"), before);
}

/* S-32, S-44, V-20, contract 7.5 */
TEST_REAL(no_thread_is_left_after_a_run)
{
    const struct timespec tick = {.tv_nsec = STRAND_MS};
    run_everything_on(4); /* a sanitizer may start a thread of its own with the first other one */
    int before = test_count_entries("/proc/self/task");
    run_everything_on(4);
    /* The system takes a joined thread off its list a moment later. */
    while (test_count_entries("/proc/self/task") != before)
        nanosleep(&tick, NULL);
}

#define RUNS 20

/* How many mappings RUNS runs leave. */
static int mappings_left(void)
{
    int before = count_mappings();
    for (int i = 0; i < RUNS; i++)
        run_everything_on(4);
    return count_mappings() - before;
}

/*
 * A leak leaves a mapping after each run. TSan keeps some for the history of as many strands as ever lived at the same
 * time, which differs from run to run: hundreds at once where a run has more than all before, and then few for long.
 */
/* contract 7.5 */
TEST_REAL(the_mappings_do_not_grow_from_run_to_run)
{
    const int room = TEST_TSAN ? RUNS / 2 : 5;
    int tries = TEST_TSAN ? 10 : 1;

    for (int i = 0; i < 5; i++)
        run_everything_on(4);
    while (mappings_left() > room)
        CHECK(--tries > 0);
}
