/*
 * The watchdog reports strands that occupy their thread, and clean-ups that take long: the strand, the place, the
 * duration, and what that delays.
 */
#define _GNU_SOURCE
#define SUITE watchdog
#include "watchdog.h"

#include "strand/chan.h"
#include "strand/io.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

/* ---- cases ----------------------------------------------------------------------------------------------- */

/* A strand is late until its first report comes, which says this. */
struct late_case {
    const char *name, *of;
    strand_fn *root, *fn; /* root(&fn) spawns the strand `of` */
    int threads;          /* with one thread, and with each number up to this */
    int64_t holds_ns, cleanups_ns;
    const char *where;       /* NULL: any */
    const char *section;     /* NULL: in none */
    const int *section_line; /* NULL, or what follows the section's name */
    const char *texts[4];
};

static const char *section_of(const struct late_case *c)
{
    static char section[100];
    snprintf(section, sizeof section, c->section_line ? "%s%d" : "%s", c->section,
             c->section_line ? *c->section_line : 0);
    return section;
}

#define EXPECT(condition)                                                                                              \
    ((condition) ? (void)0 : CHECK_FAIL("%s: not true: %s, in: %s", c->name, #condition, kept->text))

static void check_texts(const struct late_case *c, const struct kept *kept)
{
    EXPECT(c->section ? strstr(kept->section, section_of(c)) != NULL : !*kept->section);
    for (size_t i = 0; i < sizeof c->texts / sizeof *c->texts && c->texts[i]; i++)
        if (!strstr(kept->text, c->texts[i]))
            CHECK_FAIL("%s: no '%s' in: %s", c->name, c->texts[i], kept->text);
    EXPECT(!strstr(kept->text, "pool '")); /* the first is not named */
}

static void check_holds(const struct late_case *c, const struct kept *kept, int threads)
{
    const strand_watchdog_report *late = &kept->late;
    check_texts(c, kept);
    EXPECT(late->kind == STRAND_WATCHDOG_OCCUPIES && !late->unwinding);
    EXPECT(!late->over && late->reports == 1U + (unsigned)reports.blind && late->id > 1);
    EXPECT(late->duration_ns >= c->holds_ns && late->limit_ns == c->holds_ns);
    EXPECT(late->thread >= 0 && late->thread < threads && late->thread_id > 0);
    EXPECT(late->frame_count >= 2 && strstr(kept->spawned, "spawn_a_named_one+0x"));
    EXPECT(!c->where || strcmp(kept->where, c->where) == 0);
    EXPECT(late->waits == (strcmp(kept->where, "it waits in the system") == 0));
    EXPECT(!late->waits || late->cpu_ns < late->duration_ns);
}

static void check_end(const struct late_case *c, const strand_watchdog_report *first)
{
    const struct kept *kept = last_report();
    EXPECT(kept->late.kind == STRAND_WATCHDOG_CLEANUPS && kept->late.id == first->id);
    EXPECT(strcmp(kept->name, "cleaner") == 0 && strstr(kept->text, "strand 'cleaner' #"));
    EXPECT(kept->late.duration_ns >= first->duration_ns);
    EXPECT(strstr(kept->text, " was unwinding for "));
}

static void check_cleanups(const struct late_case *c, const struct kept *kept, int threads)
{
    (void)threads;
    const strand_watchdog_report *late = &kept->late;
    int64_t limit = c->cleanups_ns ? c->cleanups_ns : c->holds_ns;
    check_texts(c, kept);
    EXPECT(late->kind == STRAND_WATCHDOG_CLEANUPS && late->unwinding);
    EXPECT(late->duration_ns >= limit && late->limit_ns == limit);
    if (c->where) {
        EXPECT(strstr(kept->where, c->where) && strstr(kept->spawned, "catches+0x"));
        EXPECT(late->thread == -1);
        check_end(c, late);
    }
}

static void check_each(const struct late_case *cases, size_t count,
                       void (*check)(const struct late_case *c, const struct kept *kept, int threads))
{
    for (const struct late_case *c = cases; c < cases + count; c++)
        for (int threads = 1; threads <= c->threads; threads++) {
            strand_options options = watched(threads);
            strand_fn *fn = c->fn;
            options.watchdog_ns = c->holds_ns;
            options.watchdog_cleanups_ns = c->cleanups_ns;
            check(c, first_report(c->of, &options, c->root, &fn), threads);
        }
}

/* ---- a strand occupies its thread --------------------------------------------------------------------------- */

static NOINLINE void spawn_a_named_one(strand_scope scope, strand_fn *fn)
{
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "holder"), fn, NULL, 0));
    __asm__ volatile("");
}

static void *with_a_holder(void *fn)
{
    STRAND_SCOPE(scope);
    spawn_a_named_one(scope, *(strand_fn *const *)fn);
    return NULL;
}

static NOINLINE void wait_in_poll(void)
{
    struct pollfd wait = {.fd = reports.signal[0], .events = POLLIN};
    CHECK_EQ(poll(&wait, 1, -1), 1); /* and not -1, for a signal */
    __asm__ volatile("");
}

static void *polls(void *arg)
{
    wait_in_poll();
    return arg;
}

/* In a frame that is found by RBP, which the system does not tell. */
static NOINLINE void wait_in_poll_with_room(size_t size)
{
    char *room = __builtin_alloca(size);
    __asm__ volatile("" : : "r"(room) : "memory");
    wait_in_poll();
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void *polls_with_room(void *arg)
{
    wait_in_poll_with_room(100 + (size_t)reports.released);
    return arg;
}

static void *sleeps_in_the_system(void *arg)
{
    struct timespec nap = {.tv_nsec = 50 * STRAND_MS};
    while (!reports.released)
        CHECK_EQ(nanosleep(&nap, NULL), 0);
    return arg;
}

static int section_line;

static void *computes_in_a_section(void *arg)
{
    section_line = __LINE__ + 1;
    STRAND_NO_SUSPEND;
    compute();
    return arg;
}

static void compute_and_drop(void *value)
{
    (void)value;
    compute();
    __asm__ volatile("");
}

static void *drops_what_is_left(void *arg)
{
    static int value;
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof value, 1, STRAND_CHAN_ATTR(.drop = compute_and_drop));
    CHECK_EQ(strand_chan_try_send(chan, &value), 0);
    return arg;
}

#define HOLDS(name_, fn_, ...)                                                                                         \
    {                                                                                                                  \
        .name = (name_), .of = "holder", .root = with_a_holder, .fn = (fn_), .holds_ns = LIMIT, __VA_ARGS__            \
    }

static const struct late_case holders[] = {
    HOLDS("computes", computes, .threads = 2, .where = "it computes",
          .texts = {"strand 'holder' #", "      at compute+0x", "      at computes+0x"}),
    HOLDS("waits in the system", polls, .threads = 2, .where = "it waits in the system",
          .texts = {"      at wait_in_poll+0x", "      at polls+0x"}),
    HOLDS("waits in a frame that is found by a register", polls_with_room, .threads = 1,
          .texts = {"      at wait_in_poll+0x", "      at wait_in_poll_with_room+0x", "      at polls_with_room+0x"}),
    HOLDS("sleeps in the system, which is not cut short", sleeps_in_the_system, .threads = 1,
          .texts = {"      at sleeps_in_the_system+0x"}),
    HOLDS("computes in a no-suspend section", computes_in_a_section, .threads = 1,
          .section = "watchdog.c:", .section_line = &section_line, .texts = {"in a no-suspend section: "}),
    HOLDS("is inside a function of the user's, which the library calls", drops_what_is_left, .threads = 1,
          .section = "inside strand_chan_attr.drop", .texts = {"      at compute_and_drop+0x"}),
};

/* contract 4.71 */
TEST_REAL(a_strand_that_holds_its_thread_is_reported)
{
    check_each(holders, sizeof holders / sizeof *holders, check_holds);
}

static void *with_a_holder_on_a_pool(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "scaling"));
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "holder", .pool = pool), computes, NULL, 0));
    *(strand_pool *)arg = pool;
    return NULL;
}

static void keep_the_name_of_the_pool(const strand_watchdog_report *late, void *name)
{
    snprintf(name, 32, "%s", late->pool_name);
    reports_keep(late, NULL);
}

TEST_REAL(a_report_names_the_pool_whose_thread_is_occupied)
{
    static char name[32];
    static strand_pool pool;
    strand_options options = watched(1);
    options.on_watchdog = keep_the_name_of_the_pool;
    options.hook_arg = name;
    const struct kept *kept = first_report("holder", &options, with_a_holder_on_a_pool, &pool);
    CHECK_STR(kept->name, "holder");
    CHECK_EQ(kept->late.thread, 0);
    CHECK_CONTAINS(kept->text, " has occupied thread 0 of pool 'scaling' (");
    CHECK(!memcmp(&kept->late.pool, &pool, sizeof pool));
    const struct kept *over = last_report();
    CHECK_CONTAINS(over->text, " occupied thread 0 of pool 'scaling' (");
}

static void *root_computes(void *arg)
{
    return computes(arg);
}

TEST_REAL(the_root_is_reported_too_also_on_threads_of_the_runs_own)
{
    for (int own = 0; own <= 1; own++) {
        strand_options options = watched(1);
        if (own)
            test_set_own_threads(&options);
        else
            test_set_callers_thread(&options);
        const struct kept *kept = first_report("root", &options, root_computes, NULL);
        CHECK_STR(kept->name, "root");
        CHECK_STR(kept->spawned, "");
        CHECK(strstr(kept->text, "spawned in") == NULL);
        CHECK_EQ(kept->late.thread_id == (uint32_t)gettid(), !own);
    }
}

static NOINLINE void compute_at_the_end(int *mark)
{
    (void)mark;
    compute();
    __asm__ volatile("");
}

static void *computes_in_a_clean_up(void *arg)
{
    int mark __attribute__((cleanup(compute_at_the_end)));
    (void)mark;
    strand_throw(&TEST_ERROR, "on purpose");
    return arg;
}

static void *catches(void *fn)
{
    strand_exception_release(
        strand_try(test_throw, NULL, NULL)); /* the first throw loads the unwinder, which takes long */
    STRAND_SCOPE(scope);
    STRAND_TRY {
        strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "cleaner"), *(strand_fn *const *)fn, NULL, 0));
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        (void)e;
    }
    STRAND_END
    return NULL;
}

/* It lasts twice as long as clean-ups may, and those may last so long that the watchdog has seen it hold before. */
/* contract 4.50 */
TEST_REAL(a_strand_that_holds_its_thread_in_a_clean_up_is_said_to_unwind)
{
    static strand_fn *fn = computes_in_a_clean_up;
    const struct kept *kept = &reports.kept[0];
    strand_options options = watched(1);
    options.watchdog_cleanups_ns = PATIENT;
    reports_open("cleaner", 6); /* the last after 32 times the limit */
    strand_run(&options, catches, &fn);
    CHECK(reports.count >= 6 && reports.kept[5].late.duration_ns >= 2 * PATIENT);
    CHECK_EQ(kept->late.kind, STRAND_WATCHDOG_OCCUPIES);
    CHECK_STR(kept->name, "cleaner");
    CHECK(kept->late.unwinding);
    CHECK_CONTAINS(kept->text, "in a clean-up: it unwinds");
    CHECK_CONTAINS(kept->text, "      at compute_at_the_end");
    for (int i = 0; i < reports.count; i++) /* and for that alone */
        CHECK_EQ(reports.kept[i].late.kind, STRAND_WATCHDOG_OCCUPIES);
}

/* ---- clean-ups that block -------------------------------------------------------------------------------- */

static NOINLINE void sleep_until_released(void)
{
    char byte;
    CHECK_EQ(strand_read(reports.signal[0], &byte, 1), 1);
    __asm__ volatile("");
}

static NOINLINE void block_at_the_end(int *mark)
{
    (void)mark;
    sleep_until_released();
    __asm__ volatile("");
}

static void *blocks_in_a_clean_up(void *arg)
{
    int mark __attribute__((cleanup(block_at_the_end)));
    (void)mark;
    strand_throw(&TEST_ERROR, "on purpose");
    return arg;
}

/* Guests of one fibre: while it is blocked, the other one is in the stack. */
static void *sleeps_now_and_then(void *arg)
{
    while (!reports.released)
        strand_sleep(STRAND_MS);
    return arg;
}

static void *one_blocks_in_a_clean_up_and_is_copied_out(void *arg)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    STRAND_TRY {
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .name = "cleaner"), blocks_in_a_clean_up, NULL, 0);
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), sleeps_now_and_then, NULL, 0);
        strand_scope_join(scope);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        (void)e;
    }
    STRAND_END
    return arg;
}

static void yield_at_the_end(int *mark)
{
    (void)mark;
    while (!reports.released)
        strand_yield();
}

static void *yields_in_a_clean_up(void *arg)
{
    int mark __attribute__((cleanup(yield_at_the_end)));
    (void)mark;
    strand_throw(&TEST_ERROR, "on purpose");
    return arg;
}

#define CLEANS_UP(name_, root_, fn_, ...)                                                                              \
    {                                                                                                                  \
        .name = (name_), .of = "cleaner", .root = (root_), .fn = (fn_), __VA_ARGS__                                    \
    }
/* No strand is late for another reason, whatever else the machine does meanwhile. */
#define CLEAN_UPS_ALONE .holds_ns = 60 * STRAND_S, .cleanups_ns = LIMIT

static const struct late_case cleaners[] = {
    CLEANS_UP("blocks", catches, blocks_in_a_clean_up, .threads = 2, CLEAN_UPS_ALONE,
              .where = "blocked: waits for descriptor ",
              .texts = {"strand 'cleaner' #", "      at sleep_until_released+0x", "      at block_at_the_end"}),
    CLEANS_UP("blocks, its frames are copied out", one_blocks_in_a_clean_up_and_is_copied_out, NULL, .threads = 2,
              CLEAN_UPS_ALONE, .texts = {"      at sleep_until_released+0x"}),
    CLEANS_UP("yields all the time", catches, yields_in_a_clean_up, .threads = 1, CLEAN_UPS_ALONE),
    CLEANS_UP("blocks, with the limit for strands that occupy their thread", catches, blocks_in_a_clean_up,
              .threads = 1, .holds_ns = PATIENT),
};

/* contract 4.50 */
TEST_REAL(a_strand_whose_clean_ups_take_long_is_reported)
{
    check_each(cleaners, sizeof cleaners / sizeof *cleaners, check_cleanups);
}

/* But for them nobody is late, whatever else the machine does meanwhile. */
static strand_options watched_clean_ups(int threads)
{
    strand_options options = watched(threads);
    options.watchdog_ns = 60 * STRAND_S;
    options.watchdog_cleanups_ns = LIMIT;
    return options;
}

static bool is_over(void)
{
    int count = reports.count;
    return count > 0 && reports.kept[count - 1].late.over;
}

static void *catches_and_waits_for_the_last_report(void *arg)
{
    static strand_fn *fn = blocks_in_a_clean_up;
    catches(&fn);
    while (!is_over())
        strand_sleep(STRAND_MS);
    return arg;
}

/* contract 4.50 */
TEST_REAL(the_end_of_a_late_clean_up_is_reported_while_the_run_continues)
{
    strand_options options = watched_clean_ups(1);
    (void)first_report("cleaner", &options, catches_and_waits_for_the_last_report, NULL);
}

/* Its parent, which waits for it in a shield while it unwinds, is late as well. */
static void *is_held_up_by_a_child(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "child"), blocks_in_a_clean_up, NULL, 0);
    strand_yield();
    strand_throw(&TEST_ERROR, "the parent");
    return arg;
}

/* contract 4.50 */
TEST_REAL(a_strand_that_waits_for_its_children_while_it_unwinds_is_reported)
{
    static strand_fn *fn = is_held_up_by_a_child;
    strand_options options = watched_clean_ups(1);
    bool waits = false;
    reports_open("cleaner", 5); /* 16 times the limit: it waits long before that */
    strand_run(&options, catches, &fn);
    for (int i = 0; i < 5; i++)
        waits |= strstr(reports.kept[i].where, "blocked: leaves a scope, waits for strand #") != NULL;
    CHECK(waits);
}

/* ---- again, and over ------------------------------------------------------------------------------------- */

static void *computes_then_sleeps(void *arg)
{
    compute();
    while (!reports.kept[reports.count - 1].late.over)
        strand_sleep(STRAND_MS);
    return arg;
}

/* contract 4.71 */
TEST_REAL(a_late_strand_is_reported_each_time_the_delay_doubles_and_once_when_it_is_over)
{
    strand_options options = watched(1);
    reports_open("root", 4);
    strand_run(&options, computes_then_sleeps, NULL);
    const struct kept *end = last_report();
    CHECK(reports.count >= 5);
    for (int i = 0; i < reports.count; i++)
        CHECK_EQ(reports.kept[i].late.id, reports.kept[0].late.id);
    for (int i = 0; i < reports.count - 1; i++) {
        const strand_watchdog_report *late = &reports.kept[i].late;
        CHECK((int)late->reports > i && (int)late->reports <= i + 1 + reports.blind);
        CHECK(late->duration_ns >= LIMIT << i);
        CHECK(i == 0 || late->duration_ns > reports.kept[i - 1].late.duration_ns);
    }
    CHECK_EQ(end->late.kind, STRAND_WATCHDOG_OCCUPIES);
    CHECK(end->late.duration_ns >= reports.kept[reports.count - 2].late.duration_ns);
    CHECK_STR(end->name, "root");
    CHECK_CONTAINS(end->text, "strand 'root' #");
    CHECK_CONTAINS(end->text, " occupied thread 0 (");
    CHECK(strstr(end->text, "\n") == NULL); /* one line */
}

TEST_REAL(the_end_of_a_case_is_reported_at_the_end_of_the_run_at_the_latest)
{
    for (int i = 0; i < 3; i++) {
        strand_options options = watched(1);
        (void)first_report("root", &options, root_computes, NULL);
        (void)last_report();
    }
}

/* ---- what it delays -------------------------------------------------------------------------------------- */

#define LONG_LIMIT (200 * STRAND_MS)

static _Atomic bool asleep;

static void *sleeps_a_moment(void *arg)
{
    asleep = true;
    strand_sleep(*(int64_t *)arg);
    asleep = false;
    return arg;
}

static int pipe_of_strands[2];

static void open_pipe(void)
{
    CHECK_EQ(strand_pipe(pipe_of_strands), 0);
}

static void close_pipe(void)
{
    strand_close(pipe_of_strands[0]);
    strand_close(pipe_of_strands[1]);
}

/* Returns the second report about the root that came while it computed, by which all that it delays has waited for a
 * while. */
static const struct kept *second_report(strand_fn *root)
{
    strand_options options = watched(1);
    options.watchdog_ns = LONG_LIMIT;
    reports_open("root", 2);
    strand_run(&options, root, NULL);
    CHECK(reports.count >= 2);
    return &reports.kept[1];
}

/* On a busy machine the root may have been late before. */
static void compute_from_now(void)
{
    reports_lock();
    reports.count = reports.released = 0;
    atomic_flag_clear(&reports.keeping);
    compute();
}

static void *reads_a_byte(void *arg)
{
    char byte;
    CHECK_EQ(strand_read(pipe_of_strands[0], &byte, 1), 1);
    return arg;
}

/* Three that could run, one whose sleep is over before the limit, one whose byte is there. On a busy machine the sleep
 * may be over before the strand computes: then it tries again. */
static bool delays_them(void)
{
    static int64_t a_moment = LONG_LIMIT / 2;
    STRAND_SCOPE(scope);
    open_pipe();
    strand_spawn(scope, reads_a_byte, NULL);
    int64_t begin = strand_now().ns;
    strand_spawn(scope, sleeps_a_moment, &a_moment);
    test_await_blocked("waits for descriptor", 1);
    CHECK_EQ(write(pipe_of_strands[1], "b", 1), 1);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, test_return, NULL);
    bool good = asleep && strand_now().ns < begin + a_moment;
    if (good)
        compute_from_now();
    strand_scope_join(scope);
    close_pipe();
    return good;
}

static void *delays_others(void *arg)
{
    while (!delays_them())
        continue;
    return arg;
}

/* contract 4.71 */
TEST_REAL(a_report_says_what_the_strand_delays)
{
    const struct kept *kept = second_report(delays_others);
    CHECK_EQ(kept->late.runnable, 3);
    CHECK(kept->late.runnable_ns >= LONG_LIMIT && kept->late.runnable_ns <= kept->late.duration_ns);
    CHECK(kept->late.stalled);
    CHECK(kept->late.timers >= 1); /* the pool's own timers may be due as well */
    CHECK(kept->late.timer_ns >= STRAND_MS);
    CHECK(kept->late.events);
    CHECK_CONTAINS(kept->text, "it delays 3 runnable strands, for ");
    CHECK_CONTAINS(kept->text, "the pool is stalled: all its threads are occupied");
    CHECK_CONTAINS(kept->text, kept->late.timers == 1 ? "1 timer is due, since " : "timers are due, since ");
    CHECK_CONTAINS(kept->text, "descriptors have events");
}

static void *delays_nobody(void *arg)
{
    STRAND_SCOPE(scope);
    open_pipe();
    strand reader = strand_spawn(scope, reads_a_byte, NULL);
    test_await_blocked("waits for descriptor", 1);
    compute_from_now();
    CHECK_EQ(strand_write(pipe_of_strands[1], "b", 1), 1);
    strand_join(reader);
    close_pipe();
    return arg;
}

TEST_REAL(what_is_not_delayed_is_not_reported)
{
    strand_options options = watched(1);
    const struct kept *kept = first_report("root", &options, delays_nobody, NULL);
    CHECK(kept->late.runnable == 0 && kept->late.runnable_ns == 0);
    CHECK(kept->late.stalled);
    CHECK(kept->late.timers == 0 && kept->late.timer_ns == 0 && !kept->late.events);
    CHECK(strstr(kept->text, "it delays") == NULL);
}
TEST_OWN_STACKS(what_is_not_delayed_is_not_reported, "the pool has a timer, which trims shared stacks");

static void *writes_soon(void *arg)
{
    usleep(5000);
    CHECK_EQ(write(pipe_of_strands[1], "b", 1), 1);
    return arg;
}

/* The seeker has armed its timer for the sleeper, and is woken before by a byte; or not, on a busy machine, and tries
 * again. */
static void *delays_a_sleeper(void *arg)
{
    static int64_t as_long_as_it_may = LONG_LIMIT;
    char byte;
    pthread_t writer;
    STRAND_SCOPE(scope);
    open_pipe();
    do {
        strand_spawn(scope, sleeps_a_moment, &as_long_as_it_may);
        CHECK_EQ(pthread_create(&writer, NULL, writes_soon, NULL), 0);
        CHECK_EQ(strand_read(pipe_of_strands[0], &byte, 1), 1);
        pthread_join(writer, NULL);
    } while (!asleep);
    compute_from_now();
    strand_scope_join(scope);
    close_pipe();
    return arg;
}

/* contract 4.71 */
TEST_REAL(a_timer_that_is_due_is_no_event_of_a_descriptor)
{
    const struct kept *kept = second_report(delays_a_sleeper);
    CHECK(kept->late.timers >= 1); /* the pool's own timers may be due as well */
    CHECK(!kept->late.events);
}

static _Atomic int begun;

static void *begins_and_computes(void *arg)
{
    begun++;
    compute();
    return arg;
}

static void *holds_all_threads_but(void *free)
{
    STRAND_SCOPE(scope);
    for (intptr_t i = 1; i < 3 - (intptr_t)free; i++)
        strand_spawn(scope, begins_and_computes, NULL);
    begins_and_computes(NULL);
    strand_scope_join(scope);
    return NULL;
}

static void end_when_it_is_stalled(const strand_watchdog_report *late, void *arg)
{
    (void)arg;
    if (late->stalled)
        reports.released = 1;
}

/* contract 4.71 */
TEST_REAL(a_pool_is_stalled_when_all_its_threads_are_occupied)
{
    strand_options options = watched(3);
    begun = 0;
    reports_open(NULL, 9);
    strand_run(&options, holds_all_threads_but, TEST_PTR(1));
    CHECK_EQ(begun, 2);
    for (int i = 0; i < 9; i++)
        CHECK(!reports.kept[i].late.stalled);
    begun = 0;
    reports_open(NULL, 0);
    options.on_watchdog = end_when_it_is_stalled;
    strand_run(&options, holds_all_threads_but, TEST_PTR(0));
    CHECK_EQ(begun, 3);
}
TEST_OWN_STACKS(a_pool_is_stalled_when_all_its_threads_are_occupied, "those of one fibre do not run at the same time");

static void *comes_by_while_others_wait(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, test_return, NULL);
    strand_spawn(scope, test_return, NULL);
    while (!reports.released)
        strand_checkpoint();
    strand_scope_join(scope);
    return arg;
}

/* Though timers are served, and it can be cancelled. */
/* contract 4.71 */
TEST_REAL(a_strand_that_never_yields_to_runnable_ones_is_reported)
{
    strand_options options = watched(1);
    options.watchdog_ns = LONG_LIMIT; /* so long a thread is let run at least now and then */
    const struct kept *kept = first_report("root", &options, comes_by_while_others_wait, NULL);
    CHECK_EQ(kept->late.kind, STRAND_WATCHDOG_OCCUPIES);
    CHECK_EQ(kept->late.runnable, 2);
}
