/*
 * The watchdog reports strands that hold their thread, and clean-ups that take long: who, where, for how long, and what
 * that delays.
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

/* ---- who holds its thread -------------------------------------------------------------------------------- */

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

static const struct kept *report_of(strand_fn *holder, int threads)
{
    static strand_fn *fn;
    strand_options options = watched(threads);
    fn = holder;
    return first_report("holder", &options, with_a_holder, &fn);
}

/* contract 4.71 */
TEST_REAL(a_strand_that_computes_is_reported_with_its_trace)
{
    for (int threads = 1; threads <= 2; threads++) {
        const struct kept *kept = report_of(computes, threads);
        CHECK_EQ(kept->late.kind, STRAND_LATE_HOLDS);
        CHECK(!kept->late.over && kept->late.reports == 1U + (unsigned)reports.blind);
        CHECK(kept->late.id > 1);
        CHECK_STR(kept->name, "holder");
        CHECK_CONTAINS(kept->spawned, "spawn_a_named_one+0x");
        CHECK(kept->late.duration_ns >= LIMIT && kept->late.limit_ns == LIMIT);
        CHECK_STR(kept->where, "it computes");
        CHECK(!kept->late.waits && !kept->late.unwinding && !*kept->section);
        CHECK(kept->late.thread >= 0 && kept->late.thread < threads && kept->late.thread_id > 0);
        CHECK(kept->late.frame_count >= 2);
        CHECK_CONTAINS(kept->text, "strand 'holder' #");
        CHECK_CONTAINS(kept->text, "      at compute+0x");
        CHECK_CONTAINS(kept->text, "      at computes+0x");
    }
}

static void *with_a_holder_on_a_pool(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "scaling"));
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "holder", .pool = pool), computes, NULL, 0));
    *(strand_pool *)arg = pool;
    return NULL;
}

static void keep_the_name_of_the_pool(const strand_late *late, void *name)
{
    snprintf(name, 32, "%s", late->pool_name);
    reports_keep(late, NULL);
}

TEST_REAL(a_report_names_the_pool_whose_thread_is_held)
{
    static char name[32];
    static strand_pool pool;
    strand_options options = watched(1);
    options.on_late = keep_the_name_of_the_pool;
    options.hook_arg = name;
    const struct kept *kept = first_report("holder", &options, with_a_holder_on_a_pool, &pool);
    CHECK_STR(kept->name, "holder");
    CHECK_EQ(kept->late.thread, 0);
    CHECK_CONTAINS(kept->text, " has held thread 0 of pool 'scaling' (");
    CHECK(!memcmp(&kept->late.pool, &pool, sizeof pool));
    const struct kept *over = last_report();
    CHECK_CONTAINS(over->text, " held thread 0 of pool 'scaling' (");
}

TEST_REAL(a_report_of_a_strand_on_the_first_pool_does_not_name_that)
{
    const struct kept *kept = report_of(computes, 2);
    CHECK(strstr(kept->text, "pool '") == NULL);
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

/* contract 4.71 */
TEST_REAL(a_strand_that_waits_in_a_system_call_is_reported_and_waits_on)
{
    for (int threads = 1; threads <= 2; threads++) {
        const struct kept *kept = report_of(polls, threads);
        CHECK_EQ(kept->late.kind, STRAND_LATE_HOLDS);
        CHECK_STR(kept->where, "it waits in the system");
        CHECK(kept->late.waits);
        CHECK(kept->late.cpu_ns < kept->late.duration_ns);
        CHECK_CONTAINS(kept->text, "      at wait_in_poll+0x");
        CHECK_CONTAINS(kept->text, "      at polls+0x");
    }
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

/* contract 4.71 */
TEST_REAL(the_trace_in_a_system_call_goes_through_frames_that_are_found_by_a_register)
{
    const struct kept *kept = report_of(polls_with_room, 1);
    CHECK_CONTAINS(kept->text, "      at wait_in_poll+0x");
    CHECK_CONTAINS(kept->text, "      at wait_in_poll_with_room+0x");
    CHECK_CONTAINS(kept->text, "      at polls_with_room+0x");
}

static void *sleeps_in_the_system(void *arg)
{
    struct timespec nap = {.tv_nsec = 50 * STRAND_MS};
    while (!reports.released)
        CHECK_EQ(nanosleep(&nap, NULL), 0);
    return arg;
}

/* contract 4.71 */
TEST_REAL(a_sleep_of_the_system_is_not_cut_short)
{
    const struct kept *kept = report_of(sleeps_in_the_system, 1);
    CHECK_CONTAINS(kept->text, "      at sleeps_in_the_system+0x");
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
    CHECK_EQ(kept->late.kind, STRAND_LATE_HOLDS);
    CHECK_STR(kept->name, "cleaner");
    CHECK(kept->late.unwinding);
    CHECK_CONTAINS(kept->text, "in a clean-up: it unwinds");
    CHECK_CONTAINS(kept->text, "      at compute_at_the_end");
    for (int i = 0; i < reports.count; i++) /* and for that alone */
        CHECK_EQ(reports.kept[i].late.kind, STRAND_LATE_HOLDS);
}

static int section_line;

static void *computes_in_a_section(void *arg)
{
    section_line = __LINE__ + 1;
    STRAND_NO_SUSPEND;
    compute();
    return arg;
}

/* contract 4.71 */
TEST_REAL(a_no_suspend_section_is_named)
{
    char place[64];
    const struct kept *kept = report_of(computes_in_a_section, 1);
    snprintf(place, sizeof place, "watchdog.c:%d", section_line);
    CHECK_CONTAINS(kept->section, place);
    CHECK_CONTAINS(kept->text, "in a no-suspend section: ");
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

TEST_REAL(a_function_of_the_users_that_holds_up_the_library_is_named)
{
    const struct kept *kept = report_of(drops_what_is_left, 1);
    CHECK_STR(kept->section, "inside strand_chan_attr.drop");
    CHECK_CONTAINS(kept->text, "      at compute_and_drop+0x");
}

/* ---- clean-ups that block -------------------------------------------------------------------------------- */

static NOINLINE void rest_till_told(void)
{
    char byte;
    CHECK_EQ(strand_read(reports.signal[0], &byte, 1), 1);
    __asm__ volatile("");
}

static NOINLINE void block_at_the_end(int *mark)
{
    (void)mark;
    rest_till_told();
    __asm__ volatile("");
}

static void *blocks_in_a_clean_up(void *arg)
{
    int mark __attribute__((cleanup(block_at_the_end)));
    (void)mark;
    strand_throw(&TEST_ERROR, "on purpose");
    return arg;
}

/* But for them nobody is late, whatever else the machine does meanwhile. */
static strand_options watched_clean_ups(int threads)
{
    strand_options options = watched(threads);
    options.watchdog_ns = 60 * STRAND_S;
    options.watchdog_cleanups_ns = LIMIT;
    return options;
}

/* contract 4.50 */
TEST_REAL(a_clean_up_that_blocks_is_reported_though_it_holds_no_thread)
{
    for (int threads = 1; threads <= 2; threads++) {
        static strand_fn *fn = blocks_in_a_clean_up;
        strand_options options = watched_clean_ups(threads);
        const struct kept *kept = first_report("cleaner", &options, catches, &fn);
        CHECK_EQ(kept->late.kind, STRAND_LATE_CLEANUPS);
        CHECK_STR(kept->name, "cleaner");
        CHECK(kept->late.unwinding && kept->late.duration_ns >= LIMIT);
        CHECK_EQ(kept->late.thread, -1);
        CHECK_CONTAINS(kept->where, "blocked: waits for descriptor ");
        CHECK_CONTAINS(kept->spawned, "catches+0x");
        CHECK_CONTAINS(kept->text, "strand 'cleaner' #");
        CHECK_CONTAINS(kept->text, "      at rest_till_told+0x");
        CHECK_CONTAINS(kept->text, "      at block_at_the_end");
        const struct kept *end = last_report();
        CHECK(end->late.kind == STRAND_LATE_CLEANUPS && end->late.id == kept->late.id);
        CHECK_STR(end->name, "cleaner");
        CHECK(end->late.duration_ns >= kept->late.duration_ns);
        CHECK_CONTAINS(end->text, "strand 'cleaner' #");
        CHECK_CONTAINS(end->text, " was unwinding for ");
    }
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
TEST_REAL(that_a_clean_up_is_over_is_told_while_the_run_goes_on)
{
    strand_options options = watched_clean_ups(1);
    (void)first_report("cleaner", &options, catches_and_waits_for_the_last_report, NULL);
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

/* contract 4.50 */
TEST_REAL(the_trace_of_a_clean_up_is_there_though_its_frames_are_copied_out)
{
    for (int threads = 1; threads <= 2; threads++) {
        strand_options options = watched_clean_ups(threads);
        const struct kept *kept = first_report("cleaner", &options, one_blocks_in_a_clean_up_and_is_copied_out, NULL);
        CHECK_EQ(kept->late.kind, STRAND_LATE_CLEANUPS);
        CHECK_STR(kept->name, "cleaner");
        CHECK_CONTAINS(kept->text, "      at rest_till_told+0x");
    }
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

/* contract 4.50 */
TEST_REAL(a_clean_up_that_gives_way_all_the_time_is_long_as_well)
{
    static strand_fn *fn = yields_in_a_clean_up;
    strand_options options = watched_clean_ups(1);
    const struct kept *kept = first_report("cleaner", &options, catches, &fn);
    CHECK_EQ(kept->late.kind, STRAND_LATE_CLEANUPS);
    CHECK_STR(kept->name, "cleaner");
}

TEST_REAL(clean_ups_may_have_a_limit_of_their_own)
{
    static strand_fn *fn = blocks_in_a_clean_up;
    for (int own = 0; own <= 1; own++) {
        strand_options options = watched(1);
        options.watchdog_ns = own ? 60 * STRAND_S : PATIENT;
        options.watchdog_cleanups_ns = own ? LIMIT : 0;
        const struct kept *kept = first_report("cleaner", &options, catches, &fn);
        CHECK_EQ(kept->late.kind, STRAND_LATE_CLEANUPS);
        CHECK_EQ(kept->late.limit_ns, own ? LIMIT : PATIENT);
    }
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
TEST_REAL(who_stays_late_is_reported_when_it_lasts_twice_as_long_and_once_when_it_is_over)
{
    strand_options options = watched(1);
    reports_open("root", 4);
    strand_run(&options, computes_then_sleeps, NULL);
    const struct kept *end = last_report();
    CHECK(reports.count >= 5);
    for (int i = 0; i < reports.count; i++)
        CHECK_EQ(reports.kept[i].late.id, reports.kept[0].late.id);
    for (int i = 0; i < reports.count - 1; i++) {
        const strand_late *late = &reports.kept[i].late;
        CHECK((int)late->reports > i && (int)late->reports <= i + 1 + reports.blind);
        CHECK(late->duration_ns >= LIMIT << i);
        CHECK(i == 0 || late->duration_ns > reports.kept[i - 1].late.duration_ns);
    }
    CHECK_EQ(end->late.kind, STRAND_LATE_HOLDS);
    CHECK(end->late.duration_ns >= reports.kept[reports.count - 2].late.duration_ns);
    CHECK_STR(end->name, "root");
    CHECK_CONTAINS(end->text, "strand 'root' #");
    CHECK_CONTAINS(end->text, " held thread 0 (");
    CHECK(strstr(end->text, "\n") == NULL); /* one line */
}

TEST_REAL(that_it_is_over_is_said_at_the_end_of_the_run_at_the_latest)
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

/* Of the root: there all that it delays has waited for a while. */
static const struct kept *second_report(strand_fn *root)
{
    strand_options options = watched(1);
    options.watchdog_ns = LONG_LIMIT;
    reports_open("root", 2);
    strand_run(&options, root, NULL);
    CHECK(reports.count >= 2);
    return &reports.kept[1];
}

static void *reads_a_byte(void *arg)
{
    char byte;
    CHECK_EQ(strand_read(pipe_of_strands[0], &byte, 1), 1);
    return arg;
}

/* Three that could run, one whose sleep is over before the limit, one whose byte is there. On a busy machine the sleep
 * may be over at once: then there is another one. */
static void *delays_others(void *arg)
{
    static int64_t a_moment = LONG_LIMIT / 2;
    STRAND_SCOPE(scope);
    open_pipe();
    strand_spawn(scope, reads_a_byte, NULL);
    do {
        strand_spawn(scope, sleeps_a_moment, &a_moment);
        strand_sleep(STRAND_MS); /* both wait */
    } while (!asleep);
    CHECK_EQ(write(pipe_of_strands[1], "b", 1), 1);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, test_return, NULL);
    compute();
    strand_scope_join(scope);
    close_pipe();
    return arg;
}

/* contract 4.71 */
TEST_REAL(what_is_delayed_is_told)
{
    const struct kept *kept = second_report(delays_others);
    CHECK_EQ(kept->late.runnable, 3);
    CHECK(kept->late.runnable_ns >= LONG_LIMIT && kept->late.runnable_ns <= kept->late.duration_ns);
    CHECK(kept->late.stalled);
    CHECK(kept->late.timers >= 1); /* the pool's own timers may be due as well */
    CHECK(kept->late.timer_ns >= STRAND_MS);
    CHECK(kept->late.events);
    CHECK_CONTAINS(kept->text, "it delays 3 runnable strands, for ");
    CHECK_CONTAINS(kept->text, "the pool is stalled: all its threads are held");
    CHECK_CONTAINS(kept->text, "1 timer is due, since ");
    CHECK_CONTAINS(kept->text, "descriptors have events");
}

static void *delays_nobody(void *arg)
{
    STRAND_SCOPE(scope);
    open_pipe();
    strand reader = strand_spawn(scope, reads_a_byte, NULL);
    strand_sleep(STRAND_MS);
    compute();
    CHECK_EQ(strand_write(pipe_of_strands[1], "b", 1), 1);
    strand_join(reader);
    close_pipe();
    return arg;
}

TEST_REAL(what_is_not_delayed_is_not_told)
{
    strand_options options = watched(1);
    const struct kept *kept = first_report("root", &options, delays_nobody, NULL);
    CHECK(kept->late.runnable == 0 && kept->late.runnable_ns == 0);
    CHECK(kept->late.stalled);
    CHECK(kept->late.timers == 0 && kept->late.timer_ns == 0 && !kept->late.events);
    CHECK(strstr(kept->text, "it delays") == NULL);
}

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
    compute();
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

static void end_when_it_is_stalled(const strand_late *late, void *arg)
{
    (void)arg;
    if (late->stalled)
        reports.released = 1;
}

/* contract 4.71 */
TEST_REAL(a_pool_is_stalled_when_all_its_threads_are_held)
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
    options.on_late = end_when_it_is_stalled;
    strand_run(&options, holds_all_threads_but, TEST_PTR(0));
    CHECK_EQ(begun, 3);
}
TEST_OWN_STACKS(a_pool_is_stalled_when_all_its_threads_are_held, "those of one fibre do not run at the same time");

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
TEST_REAL(who_never_gives_way_to_those_that_wait_is_reported)
{
    strand_options options = watched(1);
    options.watchdog_ns = LONG_LIMIT; /* so long a thread is let run at least now and then */
    const struct kept *kept = first_report("root", &options, comes_by_while_others_wait, NULL);
    CHECK_EQ(kept->late.kind, STRAND_LATE_HOLDS);
    CHECK_EQ(kept->late.runnable, 2);
}
