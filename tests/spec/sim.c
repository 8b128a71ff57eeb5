/*
 * What a run with a seed can be asked for, and what it tells (strand/sim.h); seed.c has that it can be repeated at all.
 */
#define SUITE sim
#include "test.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/sim.h"
#include "strand/socket.h"
#include "strand/sync.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 200 };

typedef STRAND_CHAN(int) numbers;

static strand_sim sim;
static strand_sim_report report = {.size = sizeof report};
static struct test_output o;

/* A run of fn on so many threads under this seed, as `sim` says. Returns what left it, NULL if nothing did. */
static strand_exception *run_on(int threads, uint64_t seed, strand_fn *fn, void *arg)
{
    strand_exception *uncaught = NULL;
    strand_options options = test_options();
    test_set_threads(&options, threads);
    options.has_seed = true;
    options.seed = seed;
    options.sim = &sim;
    options.uncaught = &uncaught;
    sim.size = sizeof sim;
    sim.silent = true;
    sim.report = &report;
    strand_run(&options, fn, arg);
    return uncaught;
}

static strand_exception *run_catching(uint64_t seed, strand_fn *fn, void *arg)
{
    return run_on(3, seed, fn, arg);
}

static void run(uint64_t seed, strand_fn *fn, void *arg)
{
    strand_exception *e = run_catching(seed, fn, arg);
    if (e)
        strand_exception_print(e, 2);
    CHECK(e == NULL);
}

static int search_among(uint64_t seeds, strand_fn *fn, void *arg, strand_sim_found *found)
{
    strand_options options = test_options();
    test_set_threads(&options, 3);
    options.sim = &sim;
    sim.size = sizeof sim;
    int error_output = dup(2);
    CHECK(freopen("/dev/null", "w", stderr) != NULL); /* what is looked for is loud */
    int result = strand_sim_search(&options, 1, seeds, fn, arg, found);
    dup2(error_output, 2);
    close(error_output);
    return result;
}

static int search(strand_fn *fn, void *arg, strand_sim_found *found)
{
    return search_among(SEEDS, fn, arg, found);
}

static char logged[256];
static int logs;

static void log_it(const char *message, void *arg)
{
    (void)arg;
    snprintf(logged, sizeof logged, "%s", message);
    logs++;
}

static void *yield_often(void *arg)
{
    for (int i = 0; i < 10; i++)
        strand_yield();
    return arg;
}

static void *spawn_some(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, yield_often, NULL);
    strand_scope_join(scope);
    return arg;
}

/* ---- reports --------------------------------------------------------------------------- */

TEST_REAL(a_run_reports_its_seed_its_schedule_its_steps_and_its_time)
{
    run(7, spawn_some, NULL);
    strand_sim_report once = report;
    CHECK_EQ(once.seed, 7);
    CHECK(once.schedule != 0 && once.steps > 40 && once.time_ns > 0);
    run(8, spawn_some, NULL);
    CHECK(report.schedule != once.schedule);
    run(7, spawn_some, NULL);
    CHECK(report.schedule == once.schedule && report.steps == once.steps && report.time_ns == once.time_ns);
}

TEST_REAL(the_environment_goes_before_the_options)
{
    run(7, spawn_some, NULL);
    uint64_t walk = report.schedule;
    sim.depth = 4;
    run(7, spawn_some, NULL);
    uint64_t deep = report.schedule;
    CHECK(deep != walk);
    setenv("STRAND_SIM", "depth=walk", 1);
    run(7, spawn_some, NULL);
    CHECK(report.schedule == walk);
    sim.depth = 0;
    setenv("STRAND_SIM", "max_steps=100000, depth=0x4", 1);
    run(7, spawn_some, NULL);
    CHECK(report.schedule == deep);
    unsetenv("STRAND_SIM");
}

struct attempt {
    uint64_t schedule;
    int64_t time_ns;
    bool refused;
};

static void *open_a_channel(void *arg)
{
    STRAND_SCOPE(scope);
    (void)STRAND_CHAN_OPEN(numbers, scope, 4);
    return arg;
}

static void *try_to_open_a_channel(void *arg)
{
    strand_exception *e = strand_try(open_a_channel, NULL, NULL);
    *(bool *)arg = e != NULL;
    strand_exception_release(e);
    return NULL;
}

TEST_REAL(runs_of_one_schedule_were_refused_the_same_and_took_the_same_time)
{
    static struct attempt attempts[SEEDS];
    int refusals = 0;
    sim.memory = 4;
    for (int i = 0; i < SEEDS; i++) {
        strand_exception *e = run_on(1, (uint64_t)i + 1, try_to_open_a_channel, &attempts[i].refused);
        CHECK(e == NULL);
        attempts[i].schedule = report.schedule;
        attempts[i].time_ns = report.time_ns;
        refusals += attempts[i].refused;
        for (int j = 0; j < i; j++)
            if (attempts[j].schedule == attempts[i].schedule)
                CHECK(attempts[j].refused == attempts[i].refused && attempts[j].time_ns == attempts[i].time_ns);
    }
    CHECK(refusals > 0 && refusals < SEEDS);
}

static void refused(const char *name, const char *value, const char *words)
{
    setenv(name, value, 1);
    strand_exception *e = run_catching(1, spawn_some, NULL);
    unsetenv(name);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -EINVAL);
    CHECK_CONTAINS(strand_exception_text(e), words);
    strand_exception_release(e);
}

TEST_REAL(what_the_environment_says_is_understood_or_refused)
{
    refused("STRAND_SIM", "depth=3 size=4", "STRAND_SIM in the environment has 'size=4'");
    refused("STRAND_SIM", "depth", "STRAND_SIM in the environment has 'depth'");
    refused("STRAND_SIM", "depth=3x", "STRAND_SIM in the environment has 'depth=3x'");
    refused("STRAND_SIM", "depth=walks", "STRAND_SIM in the environment has 'depth=walks'");
    refused("STRAND_SIM", "length=walk", "STRAND_SIM in the environment has 'length=walk'");
    refused("STRAND_SIM", "depth=-1", "STRAND_SIM in the environment has 'depth=-1'");
    refused("STRAND_SIM", "depth=5000000000", "STRAND_SIM in the environment has 'depth=5000000000'");
    refused("STRAND_SIM", "depth=65", "strand_sim.depth is 65, not 0 to 64");
    refused("STRAND_SEED", "17x", "STRAND_SEED in the environment is '17x'");
    run(1, spawn_some, NULL);
    if (!report.atomic_steps)
        refused("STRAND_SEED", "s17", "a seed of a build with STEPS=1, which this is not");
    refused("STRAND_SEED", "s", "STRAND_SEED in the environment is 's'");
}

TEST_REAL(a_size_that_is_none_is_refused)
{
    strand_exception *e = NULL;
    strand_sim_report report_of_no_size = {0};
    strand_sim small = {.size = 4}, reports = {.size = sizeof reports, .report = &report_of_no_size};
    strand_options options = {.size = sizeof options, .has_seed = true, .sim = &small, .uncaught = &e};
    strand_run(&options, spawn_some, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_CONTAINS(strand_exception_text(e), "strand_sim.size is 4");
    strand_exception_release(e);
    options.sim = &reports;
    strand_run(&options, spawn_some, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_CONTAINS(strand_exception_text(e), "strand_sim_report.size is 0");
    strand_exception_release(e);
}

/* ---- looking for a seed --------------------------------------------------------------------- */

static void *add_one(void *arg)
{
    _Atomic int *sum = arg;
    int before = *sum;
    strand_yield();
    *sum = before + 1;
    return NULL;
}

static void *lose_an_update(void *arg)
{
    _Atomic int sum = 0;
    STRAND_SCOPE(scope);
    strand_spawn(scope, add_one, (void *)&sum);
    strand_sleep(20 * STRAND_US);
    strand_spawn(scope, add_one, (void *)&sum);
    strand_scope_join(scope);
    if (sum != 2)
        abort();
    return arg;
}

TEST_REAL(a_search_finds_a_seed_under_which_it_fails_and_that_seed_fails_again)
{
    strand_sim_found found = {.size = sizeof found}, again = {.size = sizeof again};
    CHECK_EQ(search_among(10 * SEEDS, lose_an_update, NULL, &found), 1); /* steps may be short */
    CHECK(WIFSIGNALED(found.status) && WTERMSIG(found.status) == SIGABRT);
    CHECK_EQ(found.tried, found.seed);
    strand_options options = test_options();
    test_set_threads(&options, 3);
    CHECK_EQ(strand_sim_search(&options, found.seed, 1, lose_an_update, NULL, &again), 1);
    CHECK_EQ(again.seed, found.seed);
    CHECK_EQ(again.tried, 1);
    if (found.seed > 1)
        CHECK_EQ(strand_sim_search(&options, 1, found.seed - 1, lose_an_update, NULL, NULL), 0);
}

TEST_REAL(a_search_that_finds_nothing_says_so)
{
    CHECK_EQ(search(spawn_some, NULL, NULL), 0);
}

static void *throw_now(void *arg)
{
    strand_throw(&TEST_ERROR, "found");
    return arg;
}

static void *wait_for_nobody(void *arg)
{
    strand_event never = {0};
    strand_event_wait(&never);
    return arg;
}

static void *yield_for_ever(void *arg)
{
    for (;;)
        strand_yield();
    return arg;
}

static void *read_from_nowhere(void *arg)
{
    strand_yield();
    return *(void *volatile *)arg;
}

static void *leave_by_exit(void *arg)
{
    exit(3);
    return arg;
}

TEST_REAL(an_uncaught_exception_a_deadlock_a_fault_and_an_exit_are_found)
{
    strand_sim_found found = {.size = sizeof found};
    CHECK_EQ(search(read_from_nowhere, (void *)8, &found), 1);
    CHECK(found.status != 0 && found.tried == 1);
    CHECK_EQ(search(throw_now, NULL, &found), 1);
    CHECK(found.status != 0);
    CHECK_EQ(search(wait_for_nobody, NULL, &found), 1);
    CHECK(WIFSIGNALED(found.status) && WTERMSIG(found.status) == SIGABRT);
    CHECK_EQ(search(leave_by_exit, NULL, &found), 1);
    CHECK(found.status != 0);
}

TEST_REAL(a_search_replays_the_seed_of_the_environment_and_says_how_it_went)
{
    test_program(&o, "search", "well");
    CHECK_STR(o.out, "result 0, seed 10, tried 10\n");
    CHECK_STR(o.err, "");
    setenv("STRAND_SEED", "7", 1);
    test_program(&o, "search", "well");
    CHECK_STR(o.out, "result 0, seed 7, tried 1\n");
    CHECK_CONTAINS(o.err, "libstrand: seed 7, schedule ");
    setenv("STRAND_SIM_SILENT", "1", 1);
    test_program(&o, "search", "well");
    CHECK_STR(o.err, "");
}

/* The last steps, out of a report. */
static const char *steps_of(const struct test_output *output)
{
    static char steps[2][8192];
    static int which;
    which = !which;
    const char *from = strstr(output->err, "the last steps:"), *to = strstr(output->err, "the threads:");
    if (!to) /* under TSan */
        to = strstr(output->err, "libstrand: STRAND_SEED=");
    CHECK(from && to && from < to && (size_t)(to - from) < sizeof steps[0]);
    snprintf(steps[which], sizeof steps[which], "%.*s", (int)(to - from), from);
    return steps[which];
}

/* The next program has this seed, of a run that was played as this build plays. */
static void replay_next(long seed)
{
    char text[32];
    run(1, spawn_some, NULL);
    snprintf(text, sizeof text, "%s%ld", report.atomic_steps ? "s" : "", seed);
    setenv("STRAND_SEED", text, 1);
}

TEST_REAL(a_search_and_the_replay_of_what_it_found_report_the_same_steps_of_strands_by_name_and_number)
{
    test_program(&o, "search", "fails");
    CHECK_CONTAINS(o.out, "result 1, seed ");
    const char *seed = strstr(o.out, "seed ") + 5, *found = steps_of(&o);
    CHECK_CONTAINS(found, ", in strand 'clumsy' #");
    replay_next(strtol(seed, NULL, 10));
#ifdef __OPTIMIZE__ /* else they are named by a function that the library has inline */
    bool by_operation = !report.atomic_steps;
#else
    bool by_operation = false;
#endif
    if (by_operation) {
        CHECK_CONTAINS(found, "goes on with strand_yield, in strand 'clumsy' #");
        CHECK(strtol(seed, NULL, 10) > 1); /* runs lie before it */
    }
    test_program(&o, "search", "fails");
    CHECK_STR(steps_of(&o), found);
}

TEST_REAL(a_deadlock_in_which_a_channel_is_waited_for_hints_at_threads_that_are_not_seen)
{
    test_program(&o, "search", "posted");
    CHECK_CONTAINS(o.err, "deadlock: nothing can ever run again");
    CHECK_CONTAINS(o.err, "strand_sim_thread makes it part of the run");
    setenv("STRAND_SEED", "17", 1);
    test_program(&o, "seed", "deadlock");
    CHECK_CONTAINS(o.err, "deadlock: nothing can ever run again");
    CHECK(strstr(o.err, "strand_sim_thread") == NULL);
}

/* A search with these options must not begin. */
static void search_is_refused(strand_options options, const char *words)
{
    strand_sim_found found = {.size = sizeof found, .tried = 77};
    options.on_log = log_it;
    logged[0] = '\0';
    CHECK_EQ(strand_sim_search(&options, 1, SEEDS, spawn_some, NULL, &found), -EINVAL);
    CHECK_CONTAINS(logged, words);
    CHECK_EQ(found.tried, 77);
}

TEST_REAL(options_that_no_run_can_have_are_no_failure_that_a_search_finds)
{
    strand_sim deep = {.size = sizeof deep, .depth = 65}, small = {.size = 4};
    strand_options usual = {.size = sizeof usual, .threads = 2}, wrong = usual;
    wrong.sim = &deep;
    search_is_refused(wrong, "strand_sim.depth is 65");
    wrong.sim = &small;
    search_is_refused(wrong, "strand_sim.size is 4");
    wrong = usual;
    wrong.threads = -2;
    search_is_refused(wrong, "options.threads is -2");
    wrong = usual;
    wrong.scheduler = "fair";
    search_is_refused(wrong, "options.scheduler is 'fair'");
    setenv("STRAND_SIM", "foo", 1);
    search_is_refused(usual, "STRAND_SIM in the environment has 'foo'");
    unsetenv("STRAND_SIM");
    setenv("STRAND_SEED", "17x", 1);
    search_is_refused(usual, "STRAND_SEED in the environment is '17x'");
    unsetenv("STRAND_SEED");
}

TEST_REAL(a_run_of_more_steps_than_it_may_take_has_failed)
{
    strand_sim_found found = {.size = sizeof found};
    sim.max_steps = 5000;
    CHECK_EQ(search(yield_for_ever, NULL, &found), 1);
    CHECK(WIFSIGNALED(found.status) && WTERMSIG(found.status) == SIGABRT);
    CHECK_EQ(search(spawn_some, NULL, NULL), 0);
}

/* One of these is first only if a thread that could go on never does for long. */
static void *many_turns(void *arg)
{
    for (int i = 0; i < 60; i++)
        strand_yield();
    *(_Atomic int *)arg += 1;
    return arg;
}

static void *expect_the_short_one_first(void *arg)
{
    _Atomic int ended = 0;
    STRAND_SCOPE(scope);
    strand_spawn(scope, many_turns, (void *)&ended);
    strand_yield();
    strand_yield();
    if (ended)
        abort();
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(priorities_find_orders_that_chance_does_not)
{
    enum { MANY = 3000 };
    sim.length = 60;
    sim.depth = STRAND_SIM_WALK;
    CHECK_EQ(search_among(MANY, expect_the_short_one_first, NULL, NULL), 0);
    sim.depth = 2;
    CHECK_EQ(search_among(MANY, expect_the_short_one_first, NULL, NULL), 1);
}

static uint64_t schedule_of(uint64_t seed, uint32_t depth)
{
    sim.depth = depth;
    run(seed, spawn_some, NULL);
    return report.schedule;
}

TEST_REAL(every_fourth_seed_goes_by_priorities_unless_a_depth_is_asked_for)
{
    for (uint64_t seed = 0; seed < 40; seed++)
        CHECK(schedule_of(seed, 0) == schedule_of(seed, seed % 4 ? STRAND_SIM_WALK : 1 + (uint32_t)(seed / 4 % 5)));
    CHECK(schedule_of(8, 0) != schedule_of(8, STRAND_SIM_WALK));
}

TEST_REAL(a_plain_search_finds_who_is_kept_waiting_for_long_and_the_seed_has_it_again)
{
    test_program(&o, "search", "starves");
    CHECK_CONTAINS(o.out, "result 1, seed ");
    replay_next(strtol(strstr(o.out, "seed ") + 5, NULL, 10));
    test_program(&o, "search", "starves");
    CHECK_CONTAINS(o.err, "repeats this run");
    setenv("STRAND_SIM", "depth=walk", 1);
    unsetenv("STRAND_SEED");
    test_program(&o, "search", "starves");
    CHECK_CONTAINS(o.out, "result 0, ");
}

/* ---- shared stacks -------------------------------------------------------------------------- */

static _Atomic(volatile int *) lent;
static strand_event given_back;

static void *lend(void *arg)
{
    volatile int mine = 41;
    lent = &mine;
    strand_event_wait(&given_back);
    if (mine != 42)
        abort();
    return arg;
}

static void *borrow(void *arg)
{
    while (!lent)
        strand_yield();
    ++*lent;
    strand_event_set(&given_back);
    return arg;
}

/* Right as long as each strand has a stack of its own. */
static void *lend_a_local(void *arg)
{
    STRAND_SCOPE(scope);
    lent = NULL;
    strand_event_clear(&given_back);
    strand_spawn(scope, lend, NULL);
    strand_spawn(scope, borrow, NULL);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(on_shared_stacks_a_search_finds_who_gives_the_address_of_a_local_away)
{
    CHECK_EQ(search(lend_a_local, NULL, NULL), 0);
    sim.shared_stacks = true;
    CHECK_EQ(search(lend_a_local, NULL, NULL), 1);
}
TEST_OWN_STACKS(on_shared_stacks_a_search_finds_who_gives_the_address_of_a_local_away, "it searches on both");

static void *where_am_i(void *on_shared)
{
    volatile char local = 0;
    *(bool *)on_shared = strand_on_shared_stack((const char *)&local);
    return NULL;
}

static void *ask_where(void *on_shared)
{
    bool *where = on_shared;
    where_am_i(&where[0]);
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, where_am_i, &where[1]));
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.stack_size = 1 << 20), where_am_i, &where[2], 0));
    return NULL;
}

TEST_REAL(all_strands_but_the_root_and_those_that_chose_a_stack_may_run_on_shared_stacks)
{
    static bool where[3];
    setenv("STRAND_SIM", "shared_stacks=1", 1);
    run(1, ask_where, where);
    CHECK(!where[0] && where[1] && !where[2]);
    uint64_t shared = report.schedule;
    setenv("STRAND_SIM", "shared_stacks=0", 1);
    sim.shared_stacks = true;
    run(1, ask_where, where);
    CHECK(!where[0] && !where[1] && !where[2]);
    unsetenv("STRAND_SIM");
    run(1, ask_where, where);
    CHECK(where[1]);
    CHECK(report.schedule == shared);
}
TEST_OWN_STACKS(all_strands_but_the_root_and_those_that_chose_a_stack_may_run_on_shared_stacks, "or on their own");

/* ---- memory --------------------------------------------------------------------------------- */

static void *spawn_and_wait(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, yield_often, arg);
    STRAND_DEADLINE(strand_in(STRAND_S));
    strand_sleep(STRAND_US);
    return strand_join(child);
}

TEST_REAL(memory_that_is_refused_is_an_exception_and_nothing_is_lost)
{
    int refusals = 0;
    sim.memory = 5;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        strand_exception *e = run_catching(seed, spawn_and_wait, NULL);
        refusals += e != NULL;
        if (e) {
            CHECK(strand_exception_is(e, &STRAND_ERROR));
            CHECK(test_count_kind(e, &STRAND_SYSTEM) > 0 || strand_exception_code(e) == -ENOMEM);
            strand_exception_release(e);
        }
    }
    CHECK(refusals > SEEDS / 4 && refusals < SEEDS);
    sim.memory = 0;
}

enum { LIMITS = 8 };
static struct {
    int descriptors, posts, offloads, limits, reasons;
} told;

static void *nothing(void *arg)
{
    return arg;
}

static void *write_one(void *fd)
{
    told.descriptors += strand_write(*(int *)fd, "x", 1) == -ENOMEM;
    return NULL;
}

static void *post_one(void *chan)
{
    int value = 1;
    told.posts += strand_chan_post(*(strand_chan *)chan, &value) == -ENOMEM;
    return NULL;
}

static void *offload_one(void *arg)
{
    return strand_offload(nothing, arg);
}

static void *try_limits(void *held)
{
    return strand_limits_try_acquire(held) ? NULL : held;
}

static void *take_many(void *limits)
{
    strand_held held;
    void *acquired = NULL;
    STRAND_LIMIT(&((strand_limit *)limits)[0]);
    STRAND_LIMIT(&((strand_limit *)limits)[1]);
    STRAND_LIMIT(&((strand_limit *)limits)[2]);
    STRAND_LIMIT(&((strand_limit *)limits)[3]);
    STRAND_LIMIT(&((strand_limit *)limits)[4]);
    STRAND_LIMIT(&((strand_limit *)limits)[5]);
    STRAND_LIMIT(&((strand_limit *)limits)[6]);
    STRAND_LIMIT(&((strand_limit *)limits)[7]);
    strand_exception *e = strand_try(try_limits, &held, &acquired);
    told.limits += e && strand_exception_code(e) == -ENOMEM;
    strand_exception_release(e);
    if (acquired)
        strand_limits_release(&held);
    return NULL;
}

static void *cancel_one(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, test_sleep, arg);
    strand_cancel(child, "because");
    return strand_join(child);
}

/* Returns whether it was refused memory. Nothing else may go wrong. */
static bool is_refused(strand_fn *fn, void *arg)
{
    strand_exception *e = strand_try(fn, arg, NULL);
    bool refused = e && strand_exception_code(e) == -ENOMEM;
    bool cancelled = e && strand_exception_kind(e) == &STRAND_CHILD_CANCELLED;
    CHECK(!e || refused || cancelled || test_count_kind(e, &STRAND_SYSTEM) > 0);
    told.reasons += cancelled && !*strand_exception_who(e);
    strand_exception_release(e);
    return refused;
}

/* What asks for memory once in a run, or seldom. */
static void *ask_for_all(void *arg)
{
    strand_limit limits[LIMITS];
    int fds[2];
    CHECK_EQ(strand_pipe(fds), 0);
    (void)is_refused(write_one, &fds[1]);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(strand_close(fds[i]), 0);
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof(int), 0, NULL);
    (void)is_refused(post_one, &chan);
    told.offloads += is_refused(offload_one, NULL);
    for (int i = 0; i < LIMITS; i++)
        strand_limit_init(&limits[i], 1, NULL);
    (void)is_refused(take_many, limits);
    while (is_refused(cancel_one, NULL))
        continue; /* until there was a child to be cancelled */
    return arg;
}

TEST_REAL(whatever_asks_for_memory_of_its_own_is_refused_it_under_some_seed)
{
    sim.memory = 4;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        strand_exception_release(run_catching(seed, ask_for_all, NULL));
    sim.memory = 0;
    CHECK(told.descriptors > 0);
    CHECK(told.posts > 0);
    CHECK(told.offloads > 0);
    CHECK(told.limits > 0);
    CHECK(told.reasons > 0);
}

/* ---- pipes and sockets ---------------------------------------------------------------------- */

enum { LENGTH = 20000 };

static char letter(int i)
{
    return (char)(i * 7 + i / 256);
}

static void *write_letters(void *fd)
{
    char bytes[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        bytes[i] = letter(i);
    CHECK_EQ(strand_write_all(*(int *)fd, bytes, LENGTH), LENGTH);
    CHECK_EQ(strand_close(*(int *)fd), 0);
    return NULL;
}

static int parts;

static void read_letters(int fd)
{
    char bytes[LENGTH];
    int64_t got, count = 0;
    while ((got = strand_read(fd, bytes + count, (size_t)(LENGTH - count))) > 0) {
        count += got;
        parts++;
    }
    CHECK_EQ(got, 0);
    CHECK_EQ(count, LENGTH);
    for (int i = 0; i < LENGTH; i++)
        CHECK_EQ(bytes[i], letter(i));
}

static void *through_a_pipe(void *arg)
{
    int fds[2];
    char byte;
    CHECK_EQ(strand_pipe(fds), 0);
    CHECK_EQ(read(fds[0], &byte, 1), -1); /* there is nothing behind the number */
    CHECK_EQ(errno, EBADF);
    STRAND_SCOPE(scope);
    strand_spawn(scope, write_letters, &fds[1]);
    read_letters(fds[0]);
    strand_scope_join(scope);
    CHECK_EQ(strand_close(fds[0]), 0);
    return arg;
}

TEST_REAL(a_pipe_carries_all_bytes_in_order_and_in_parts_that_the_seed_chooses)
{
    int first_parts, others = 0;
    run(1, through_a_pipe, NULL);
    first_parts = parts;
    for (uint64_t seed = 2; seed <= 40; seed++) {
        parts = 0;
        run(seed, through_a_pipe, NULL);
        others += parts != first_parts;
    }
    CHECK(others > 20);
}

static void *write_later(void *fd)
{
    strand_sleep(STRAND_US);
    CHECK_EQ(strand_write_all(*(int *)fd, (char[1000]){0}, 1000), 1000);
    return NULL;
}

/* The pipe stays open, so no other event announces the rest after a partial read. */
static void *read_a_thousand(void *reads)
{
    int fds[2];
    char bytes[1000];
    CHECK_EQ(strand_pipe(fds), 0);
    STRAND_SCOPE(scope);
    strand writer = strand_spawn(scope, write_later, &fds[1]);
    for (int64_t count = 0, got; count < 1000; count += got) {
        got = strand_read(fds[0], bytes, sizeof bytes);
        CHECK(got > 0 && got <= 1000 - count);
        *(int *)reads += 1;
    }
    strand_join(writer);
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
    return NULL;
}

TEST_REAL(a_read_gets_a_part_of_what_is_there_and_the_rest_later)
{
    int once = 0, in_parts = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        int reads = 0;
        CHECK(run_on(1, seed, read_a_thousand, &reads) == NULL);
        once += reads == 1;
        in_parts += reads > 1;
    }
    CHECK(once > SEEDS / 4 && in_parts > SEEDS / 10);
}

static void *serve(void *listener)
{
    int fd = strand_accept(*(int *)listener);
    CHECK(fd >= 0);
    write_letters(&fd);
    return NULL;
}

static void *through_a_connection(void *arg)
{
    int listener = strand_listen_tcp("127.0.0.1", 0);
    CHECK(listener >= 0);
    CHECK(strand_tcp_port(listener) > 0);
    STRAND_SCOPE(scope);
    strand_spawn(scope, serve, &listener);
    strand_time begin = strand_now();
    int fd = strand_dial_tcp("127.0.0.1", strand_tcp_port(listener));
    CHECK(fd >= 0);
    CHECK(strand_now().ns > begin.ns);
    read_letters(fd);
    strand_scope_join(scope);
    CHECK_EQ(strand_close(fd), 0);
    CHECK_EQ(strand_dial_tcp("127.0.0.1", strand_tcp_port(listener) + 1), -ECONNREFUSED);
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

TEST_REAL(a_connection_carries_all_bytes_in_order)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        run(seed, through_a_connection, NULL);
}

static _Atomic int broken, whole;

/* One connection in four is spoilt, half of them in the direction in which nothing is sent. So 25 of 200 are broken,
 * with a standard deviation of 5. */
static void check_shares(void)
{
    CHECK_EQ(broken + whole, SEEDS);
    CHECK(broken > SEEDS / 20 && whole > SEEDS / 4);
}

static void *write_on(void *listener)
{
    char bytes[512] = "";
    int fd = strand_accept(*(int *)listener);
    for (int i = 0; i < 16 && strand_write_all(fd, bytes, sizeof bytes) > 0; i++)
        ;
    CHECK_EQ(strand_close(fd), 0);
    return NULL;
}

static void *read_on(void *arg)
{
    char bytes[512];
    int64_t got = 1, count = 0;
    int listener = strand_listen_tcp("", 0);
    STRAND_SCOPE(scope);
    strand_spawn(scope, write_on, &listener);
    int fd = strand_dial_tcp("", strand_tcp_port(listener));
    {
        STRAND_SHIELD;
        while (got > 0 && (got = strand_read(fd, bytes, sizeof bytes)) > 0)
            count += got;
    }
    if (got == 0 && count == 16 * 512)
        whole++;
    else
        broken += got == -ECONNRESET;
    CHECK_EQ(strand_close(fd), 0);
    strand_scope_join(scope);
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

TEST_REAL(connections_break_where_that_is_asked_for)
{
    sim.resets = 4;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run(seed, read_on, NULL);
    check_shares();
    sim.resets = 0;
    broken = whole = 0;
    for (uint64_t seed = 1; seed <= 20; seed++)
        run(seed, read_on, NULL);
    CHECK_EQ(whole, 20);
}

static void *wait_for_silence(void *arg)
{
    char bytes[512];
    int listener = strand_listen_tcp("", 0);
    STRAND_SCOPE(scope);
    strand writer = strand_spawn(scope, write_on, &listener);
    int fd = strand_dial_tcp("", strand_tcp_port(listener));
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_S));
        while (strand_read(fd, bytes, sizeof bytes) > 0)
            ;
        whole++;
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        broken++;
    }
    STRAND_END
    strand_cancel(writer, NULL);
    CHECK_EQ(strand_close(fd), 0);
    strand_wait(writer);
    CHECK_EQ(strand_close(listener), 0);
    return arg;
}

TEST_REAL(connections_fall_silent_where_that_is_asked_for_and_a_deadline_helps)
{
    sim.silence = 4;
    broken = whole = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run(seed, wait_for_silence, NULL);
    check_shares();
    sim.silence = 0;
}

enum { DATAGRAMS = 32 };
static int lost, repeated, late;

static void *exchange_datagrams(void *arg)
{
    strand_address here;
    int seen[DATAGRAMS] = {0}, number, last = -1;
    CHECK_EQ(strand_address_ip(&here, "127.0.0.1", 0), 0);
    int server = strand_datagram_open(&here, NULL);
    CHECK_EQ(strand_local_address(server, &here), 0);
    int client = strand_datagram_open(NULL, &here);
    for (int i = 0; i < DATAGRAMS; i++)
        CHECK_EQ(strand_send_to(client, &i, sizeof i, NULL), sizeof i);
    strand_case cases[] = {strand_on_ready(server, STRAND_READABLE), strand_on_time(strand_in(STRAND_S))};
    while (strand_select(cases, 2, STRAND_SELECT_ORDERED) == 0) {
        CHECK_EQ(strand_receive_from(server, &number, sizeof number, NULL), sizeof number);
        seen[number]++;
        late += number < last;
        last = number > last ? number : last;
    }
    for (int i = 0; i < DATAGRAMS; i++) {
        lost += seen[i] == 0;
        repeated += seen[i] == 2;
        CHECK(seen[i] <= 2);
    }
    CHECK_EQ(strand_close(server), 0);
    CHECK_EQ(strand_close(client), 0);
    return arg;
}

static void exchange_with_many_seeds(void)
{
    lost = repeated = late = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run(seed, exchange_datagrams, NULL);
}

TEST_REAL(datagrams_are_lost_repeated_and_late_where_that_is_asked_for)
{
    exchange_with_many_seeds();
    CHECK_EQ(lost + repeated + late, 0);
    sim.losses = 4;
    exchange_with_many_seeds();
    CHECK(lost > 0 && lost < SEEDS * DATAGRAMS / 2);
    CHECK_EQ(repeated + late, 0);
    sim.losses = 0, sim.repeats = 4;
    exchange_with_many_seeds();
    CHECK(repeated > 0 && repeated < SEEDS * DATAGRAMS / 2);
    CHECK_EQ(lost + late, 0);
    sim.repeats = 0, sim.delays = 4;
    exchange_with_many_seeds();
    CHECK(late > 0);
    CHECK_EQ(lost + repeated, 0);
    sim.delays = 0;
}

static void *write_past_the_library(void *arg)
{
    int fds[2];
    char byte = 0;
    CHECK_EQ(strand_pipe(fds), 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(strand_read(fds[0], &byte, 1), 1);
    CHECK_EQ(byte, 'x');
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
    return arg;
}

TEST_REAL(descriptors_are_the_systems_where_that_is_asked_for_and_warned_of_once)
{
    strand_sim real = {.size = sizeof real, .real = true, .silent = true};
    strand_options options = {.size = sizeof options, .has_seed = true, .sim = &real, .on_log = log_it};
    strand_run(&options, write_past_the_library, NULL);
    CHECK_CONTAINS(logged, "is the system's");
    CHECK_EQ(logs, 1);
}

static void *read_from_outside(void *fd)
{
    char byte;
    CHECK_EQ(strand_read(*(int *)fd, &byte, 1), 1);
    return NULL;
}

TEST_REAL(a_descriptor_of_the_systems_works_and_is_warned_of)
{
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    strand_options options = {.size = sizeof options, .has_seed = true, .on_log = log_it};
    setenv("STRAND_SIM_SILENT", "1", 1);
    strand_run(&options, read_from_outside, &fds[0]);
    CHECK_CONTAINS(logged, "is the system's");
    close(fds[0]);
    close(fds[1]);
}

/* ---- plain threads -------------------------------------------------------------------------- */

struct poster {
    numbers chan;
    int first;
};

static void *post_five(void *arg)
{
    const struct poster *poster = arg;
    for (int i = 0; i < 5; i++) {
        int value = poster->first + i;
        CHECK_EQ(STRAND_POST(poster->chan, &value), 0);
    }
    return NULL;
}

static void *take_from_plain_threads(void *order)
{
    int value, next[2] = {0, 100}, *out = order;
    STRAND_SCOPE(scope);
    struct poster posters[2] = {{.first = 0}, {.first = 100}};
    posters[0].chan = posters[1].chan = STRAND_CHAN_OPEN(numbers, scope, 4);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(strand_sim_thread(post_five, &posters[i]), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(STRAND_RECEIVE(posters[0].chan, &value), 0);
        CHECK_EQ(value, next[value / 100]++);
        out[i] = value;
    }
    return NULL;
}

static void *sleep_and_post(void *arg)
{
    const struct poster *poster = arg;
    strand_sim_sleep(poster->first * STRAND_S);
    CHECK_EQ(STRAND_POST(poster->chan, &poster->first), 0);
    return NULL;
}

static void *wait_for_sleepers(void *arg)
{
    static struct poster posters[2];
    int value;
    STRAND_SCOPE(scope);
    numbers chan = STRAND_CHAN_OPEN(numbers, scope, 0);
    strand_time begun = strand_now();
    for (int i = 0; i < 2; i++) {
        posters[i] = (struct poster){chan, 3600 * (2 - i)};
        CHECK_EQ(strand_sim_thread(sleep_and_post, &posters[i]), 0);
    }
    for (int i = 1; i <= 2; i++) {
        CHECK_EQ(STRAND_RECEIVE(chan, &value), 0);
        CHECK_EQ(value, 3600 * i);
        CHECK(strand_now().ns - begun.ns >= value * STRAND_S);
    }
    return arg;
}

TEST_REAL(plain_threads_sleep_in_virtual_time)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        run(seed, wait_for_sleepers, NULL);
}

static void *sleep_a_while(void *arg)
{
    strand_time begun = strand_now();
    strand_sim_sleep(2 * STRAND_MS);
    CHECK(strand_now().ns - begun.ns >= 2 * STRAND_MS);
    strand_sim_sleep(-1);
    return arg;
}

static void *offload_a_sleep(void *arg)
{
    strand_time begun = strand_now();
    strand_offload(sleep_a_while, NULL);
    CHECK(strand_now().ns - begun.ns >= 2 * STRAND_MS);
    return arg;
}

TEST_REAL(an_offloaded_function_may_take_virtual_time)
{
    test_run(offload_a_sleep, NULL);
    run(1, offload_a_sleep, NULL);
    sleep_a_while(NULL);
}

TEST_REAL(plain_threads_are_played_and_the_seed_orders_what_they_post)
{
    int order[10], other[10], different = 0;
    run(1, take_from_plain_threads, order);
    for (uint64_t seed = 2; seed <= 40; seed++) {
        run(seed, take_from_plain_threads, other);
        different += memcmp(order, other, sizeof order) != 0;
    }
    CHECK(different > 10);
    run(1, take_from_plain_threads, other);
    CHECK_EQ(memcmp(order, other, sizeof order), 0);
}

TEST_REAL_INSIDE(without_a_seed_plain_threads_are_the_systems)
{
    int order[10];
    take_from_plain_threads(order);
}

static void *sum_up(void *arg)
{
    int *sum = arg;
    *sum += 1;
    return arg;
}

static void *call_away(void *arg)
{
    return strand_offload(sum_up, arg);
}

static void *offload_some(void *arg)
{
    int sums[6] = {0};
    STRAND_SCOPE(scope);
    for (int i = 0; i < 6; i++)
        strand_spawn(scope, call_away, &sums[i]);
    strand_scope_join(scope);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(sums[i], 1);
    return arg;
}

TEST_REAL(offloaded_calls_are_made_by_played_threads)
{
    run(3, offload_some, NULL);
    strand_sim_report once = report;
    run(3, offload_some, NULL);
    CHECK(once.schedule == report.schedule && once.steps == report.steps);
    for (uint64_t seed = 1; seed <= 50; seed++)
        run(seed, offload_some, NULL);
}
