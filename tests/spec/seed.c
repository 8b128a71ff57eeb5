/*
 * A run with a seed: the same seed gives the same run, on one thread of the system and in virtual time. These tests
 * choose their seeds themselves.
 */
#define SUITE seed
#include "test.h"

#include "strand/debug.h"
#include "strand/io.h"
#include "strand/pool.h"
#include "strand/sim.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#define HOUR (3600 * STRAND_S)

static const char *const schedulers[] = {"stealing", "global"};
enum { SCHEDULERS = sizeof schedulers / sizeof *schedulers, SEEDS = 8, TURNS = 20 };

static struct test_output o, again;

/* ---- by the environment --------------------------------------------------------------------- */

/* Runs tests/programs/seed.c. */
static void run_program(struct test_output *output, int seed, const char *arg)
{
    char text[16];
    snprintf(text, sizeof text, "%d", seed);
    setenv("STRAND_SEED", text, 1);
    test_program(output, "seed", arg);
    unsetenv("STRAND_SEED");
}

/* contract 2.18, 2.19 */
TEST_PROGRAM(the_same_seed_in_the_environment_gives_the_same_run)
{
    for (int i = 0; i < SCHEDULERS; i++) {
        for (int seed = 1; seed <= SEEDS; seed++) {
            run_program(&o, seed, schedulers[i]);
            run_program(&again, seed, schedulers[i]);
            CHECK_EQ(o.status, 0);
            CHECK_STR(o.out, again.out);
            CHECK_STR(o.err, again.err);
        }
    }
}

struct line {
    unsigned long long seed, schedule, steps;
};

static struct line line_of(const struct test_output *output)
{
    struct line line;
    const char *text = strstr(output->err, "libstrand: seed ");
    CHECK(text != NULL);
    CHECK_EQ(sscanf(text, "libstrand: seed %llu, schedule %llx, %llu steps", &line.seed, &line.schedule, &line.steps),
             3);
    return line;
}

TEST_PROGRAM(a_run_with_a_seed_says_its_seed_its_schedule_and_its_steps_on_standard_error)
{
    char text[128];
    run_program(&o, 17, "stealing");
    struct line line = line_of(&o);
    CHECK_EQ(line.seed, 17);
    CHECK(line.schedule != 0 && line.steps > 1);
    snprintf(text, sizeof text, "libstrand: seed 17, schedule %016llx, %llu steps\n", line.schedule, line.steps);
    CHECK_CONTAINS(o.err, text);
}

/* contract 2.19 */
TEST_PROGRAM(another_seed_gives_another_schedule)
{
    for (int i = 0; i < SCHEDULERS; i++) {
        unsigned long long schedules[SEEDS];
        for (int n = 0; n < SEEDS; n++) {
            run_program(&o, n + 1, schedulers[i]);
            schedules[n] = line_of(&o).schedule;
            for (int m = 0; m < n; m++)
                CHECK(schedules[m] != schedules[n]);
        }
    }
}

TEST_PROGRAM(the_environment_can_have_a_run_with_a_seed_say_nothing)
{
    setenv("STRAND_SIM_SILENT", "1", 1);
    run_program(&again, 17, "stealing");
    unsetenv("STRAND_SIM_SILENT");
    run_program(&o, 17, "stealing");
    CHECK_EQ(again.status, 0);
    CHECK_STR(again.out, o.out);
    CHECK(strstr(again.err, "libstrand") == NULL);
}

TEST_PROGRAM(a_run_without_a_seed_says_nothing)
{
    unsetenv("STRAND_SEED");
    test_program(&o, "seed", "stealing");
    CHECK_EQ(o.status, 0);
    CHECK(strstr(o.err, "libstrand") == NULL);
}

TEST_PROGRAM(a_run_with_a_seed_in_which_nothing_can_ever_run_again_ends_with_a_report)
{
    run_program(&o, 17, "deadlock");
    CHECK(o.signalled);
    CHECK_EQ(o.status, SIGABRT);
    CHECK_CONTAINS(o.err, "seed 17: deadlock: nothing can ever run again, after");
}

/* ---- by the options ------------------------------------------------------------------------- */

struct script {
    char text[TURNS * 10 + 1];
    _Atomic int length;
    _Atomic pid_t thread;
};

struct writer {
    struct script *script;
    char letter;
};

static void *write_in_turns(void *arg)
{
    const struct writer *writer = arg;
    struct script *script = writer->script;
    for (int i = 0; i < TURNS; i++) {
        script->text[script->length++] = writer->letter;
        if (gettid() != script->thread)
            script->thread = -1;
        if (i % 4 == 0)
            strand_sleep(2 * STRAND_US);
        else
            strand_yield();
    }
    return arg;
}

static void *spawn_writers(void *script)
{
    struct writer writers[10];
    STRAND_SCOPE(scope);
    for (int i = 0; i < 10; i++) {
        writers[i] = (struct writer){script, (char)('a' + i)};
        strand_spawn(scope, write_in_turns, &writers[i]);
    }
    strand_scope_join(scope);
    return script;
}

static strand_options seeded(uint64_t seed)
{
    strand_options options = test_options();
    test_set_threads(&options, 4);
    options.has_seed = true;
    options.seed = seed;
    setenv("STRAND_SIM_SILENT", "1", 1);
    return options;
}

/* Strands that share the script are ordered by nothing that C knows of, seed or not: hence the atomics. */
static void run_writers(uint64_t seed, struct script *script)
{
    strand_options options = seeded(seed);
    memset(script, 0, sizeof *script);
    script->thread = gettid();
    strand_run(&options, spawn_writers, script);
    CHECK_EQ(script->length, TURNS * 10);
}

/* contract 2.18, 2.19 */
TEST_REAL(a_seed_in_the_options_gives_the_same_run_each_time)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct script once, twice;
        run_writers(seed, &once);
        run_writers(seed, &twice);
        CHECK_STR(once.text, twice.text);
    }
}

TEST_REAL(seeds_order_the_steps_of_strands_differently)
{
    int others = 0;
    struct script first, other;
    run_writers(0, &first);
    for (uint64_t seed = 1; seed < 20; seed++) {
        run_writers(seed, &other);
        others += strcmp(other.text, first.text) != 0;
    }
    CHECK(others >= 15);
}

TEST_REAL(a_seed_in_the_environment_counts_before_the_one_of_the_options)
{
    struct script three, four;
    run_writers(3, &three);
    run_writers(4, &four);
    CHECK(strcmp(three.text, four.text) != 0);
    setenv("STRAND_SEED", getenv("STRAND_TEST_STEPS") ? "s3" : "3", 1); /* the options' seed has the build's steps */
    run_writers(4, &four);
    CHECK_STR(four.text, three.text);
}

/* contract 2.19 */
TEST_REAL(the_threads_of_a_run_with_a_seed_are_played_by_its_caller)
{
    struct script script;
    run_writers(1, &script);
    CHECK_EQ(script.thread, gettid());
}

/* Under some of the seeds the threads do not end in the reverse order of their starts. */
TEST_REAL(a_run_with_a_seed_leaves_its_caller_the_signal_stack_that_it_had)
{
    static char memory[64 * 1024];
    stack_t mine = {.ss_sp = memory, .ss_size = sizeof memory}, left;
    CHECK_EQ(sigaltstack(&mine, NULL), 0);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        strand_options options = seeded(seed);
        test_set_threads(&options, 4);
        strand_run(&options, test_return, NULL);
        CHECK_EQ(sigaltstack(NULL, &left), 0);
        CHECK_PTR(left.ss_sp, mine.ss_sp);
        CHECK_EQ(left.ss_flags, 0);
    }
}

/* ---- virtual time --------------------------------------------------------------------------- */

static int64_t real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * STRAND_S + now.tv_nsec;
}

/* Runs fn in virtual time, which must not take a real hour. */
static void run_in_no_time(strand_fn *fn, void *arg)
{
    strand_options options = seeded(1);
    int64_t begin = real_ns();
    strand_run(&options, fn, arg);
    CHECK(real_ns() - begin < HOUR);
}

static void *sleep_an_hour(void *arg)
{
    strand_time begin = strand_now();
    strand_sleep(HOUR);
    int64_t slept = strand_now().ns - begin.ns;
    CHECK(slept >= HOUR && slept < HOUR + STRAND_S);
    return arg;
}

/* contract 2.19 */
TEST_REAL(an_hour_of_sleep_takes_no_real_time_under_a_seed_and_the_clock_shows_it)
{
    run_in_no_time(sleep_an_hour, NULL);
}

static void *sleep_some_hours(void *hours)
{
    for (intptr_t i = 0; i < (intptr_t)hours; i++)
        sleep_an_hour(NULL);
    test_log("%d", (int)(intptr_t)hours);
    return hours;
}

static void *sleep_side_by_side(void *arg)
{
    strand_time begin = strand_now();
    STRAND_SCOPE(scope);
    for (int hours = 4; hours > 0; hours--)
        strand_spawn(scope, sleep_some_hours, TEST_PTR(hours));
    strand_scope_join(scope);
    int64_t slept = strand_now().ns - begin.ns;
    CHECK(slept >= 4 * HOUR && slept < 4 * HOUR + STRAND_S);
    return arg;
}

/* contract 2.19 */
TEST_REAL(strands_sleep_side_by_side_in_virtual_time)
{
    run_in_no_time(sleep_side_by_side, NULL);
    CHECK_LOG("1 2 3 4");
}

static void *sleep_beyond_a_deadline(void *when)
{
    STRAND_DEADLINE(*(strand_time *)when);
    strand_sleep(2 * HOUR);
    return when;
}

static void *set_a_deadline(void *arg)
{
    strand_time when = strand_in(HOUR);
    CHECK_THROWS(sleep_beyond_a_deadline, &when, &STRAND_TIMED_OUT);
    int64_t late = strand_now().ns - when.ns;
    CHECK(late >= 0 && late < STRAND_S);
    return arg;
}

/* contract 2.19 */
TEST_REAL(deadlines_are_of_virtual_time_under_a_seed)
{
    run_in_no_time(set_a_deadline, NULL);
}

static void *yield_and_look(void *arg)
{
    strand_time begin = strand_now(), before = begin;
    for (int i = 0; i < 1000; i++) {
        strand_yield();
        CHECK(strand_now().ns >= before.ns);
        before = strand_now();
    }
    CHECK(before.ns > begin.ns);
    return arg;
}

/* contract 2.19 */
TEST_REAL(virtual_time_goes_on_while_nobody_sleeps)
{
    run_in_no_time(yield_and_look, NULL);
}

/* The seeker waits for the next timer, so an earlier one has to wake it. */
static void *sleep_shortly(void *lateness)
{
    for (int i = 1; i <= 20; i++) {
        strand_time until = strand_in(i * 10 * STRAND_US);
        strand_sleep_until(until);
        int64_t late = strand_now().ns - until.ns;
        if (late > *(int64_t *)lateness)
            *(int64_t *)lateness = late;
    }
    return lateness;
}

static void *sleep_beside_long_sleepers(void *lateness)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, sleep_an_hour, NULL);
    strand_sleep(STRAND_S);
    sleep_shortly(lateness);
    strand_scope_cancel(scope, NULL);
    return lateness;
}

TEST_REAL(a_timer_that_is_set_while_all_wait_for_a_later_one_is_not_late)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        for (int i = 0; i < SCHEDULERS; i++) {
            int64_t lateness = 0;
            strand_options options = seeded(seed);
            options.scheduler = schedulers[i];
            strand_run(&options, sleep_beside_long_sleepers, &lateness);
            CHECK(lateness < STRAND_MS);
        }
    }
}

static void *count_threads(void *count)
{
    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    *(uint64_t *)count = stats.threads;
    return count;
}

TEST_REAL(a_seed_plays_four_threads_whatever_number_the_machine_allows)
{
    uint64_t count = 0;
    strand_options options = seeded(1);
    test_set_threads(&options, STRAND_THREADS_ALLOWED);
    strand_run(&options, count_threads, &count);
    CHECK_EQ(count, 4);
}

struct ports {
    int listener;
    _Atomic int told;
};

static void *send_to_the_port(void *arg)
{
    struct ports *ports = arg;
    ports->told = strand_tcp_port(ports->listener);
    return arg;
}

static void *listen_and_ask(void *arg)
{
    struct ports *ports = arg;
    ports->listener = strand_listen_tcp("127.0.0.1", 0);
    CHECK(ports->listener >= 0);
    int port = strand_tcp_port(ports->listener);
    CHECK_EQ(strand_sim_thread(send_to_the_port, arg), 0);
    while (!ports->told)
        strand_yield();
    CHECK_EQ(ports->told, port);
    CHECK_EQ(strand_close(ports->listener), 0);
    return arg;
}

TEST_REAL(a_played_plain_thread_knows_the_descriptors_of_its_run)
{
    struct ports ports = {0};
    strand_options options = seeded(1);
    strand_run(&options, listen_and_ask, &ports);
    CHECK(ports.told > 0);
}
