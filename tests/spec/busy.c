/*
 * strand_busy_print says what keeps a pool from being idle.
 */
#define _GNU_SOURCE
#define SUITE busy
#include "test.h"

#include "scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const strand_pool all;

static int print(int fd)
{
    return strand_busy_print(at.pool, fd);
}

static const char *busy(strand_pool pool)
{
    at.pool = pool;
    return printed(print);
}

static const char *busy_with(strand_pool pool, const char *words)
{
    at.pool = pool;
    return printed_with(print, words);
}

static strand spawn_onto(strand_scope scope, strand_pool pool, const char *name, strand_fn *fn)
{
    return strand_spawn_with(scope, STRAND_ATTR(.name = name, .pool = pool), fn, NULL, 0);
}

TEST_INSIDE(a_pool_without_strands_is_idle)
{
    begin();
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "extra"));
    CHECK_STR(busy_with(pool, "idle"), "pool 'extra': 1 thread (stealing)\n    nothing: it is idle\n");
}

TEST_INSIDE(the_strand_that_asks_keeps_its_pool_busy)
{
    begin();
    const char *text = busy(all);
    CHECK_CONTAINS(text, "pool 'first': ");
    CHECK_CONTAINS(text, " runs strand 'root' #");
    CHECK_CONTAINS(text, ", which asked for this report; it has been busy for ");
    CHECK_EQ(test_count(text, "idle"), 0);
    CHECK_EQ(test_count(text, "pool '"), 1);
    CHECK_STR(strchr(text, '\n') + 1, strstr(text, "    thread "));
}

static void *await_with_a_deadline(void *arg)
{
    STRAND_DEADLINE(strand_in(FOREVER / 2));
    strand_event_wait(&at.event);
    return arg;
}

static void *wait_on_a_fibre(void *arg)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (int i = 0; i < 2; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "guest", .fibre = fibre), await_event, arg, 0);
    strand_scope_join(scope);
    return arg;
}

/* By its timer a pool gives memory back. It is pending as soon as they wait, and for a quarter of a second at least. */
TEST_INSIDE(fibres_that_rest_do_not_keep_a_pool_busy)
{
    begin();
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "extra"));
    spawn_onto(scope, pool, "host", wait_on_a_fibre);
    CHECK_EQ(test_count(busy_with(pool, "    3 wait for strands"), "pending"), 0);
    busy_with(pool, "    nothing: it is idle\n    3 wait for strands");
    strand_event_set(&at.event);
    strand_scope_join(scope);
}

static void *select_one(void *arg)
{
    strand_case cases[] = {strand_on_event(&at.event), strand_on_ready(at.pipe[0], STRAND_GONE)};
    (void)strand_select(cases, 2, 0);
    return arg;
}

TEST_INSIDE(strands_that_can_run_are_counted_and_the_first_are_named)
{
    begin();
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++)
        spawn_named(scope, "eager", test_return, NULL);
    const char *text = busy(all);
    if (test_threads() == 1) {
        CHECK_CONTAINS(text, "\n    8 strands can run\n        strand 'eager' #");
        CHECK_EQ(test_count(text, "strand 'eager' #"), 5);
        CHECK_EQ(test_count(text, ", and has not started\n"), 5);
        CHECK_CONTAINS(text, "\n        and 3 more\n");
    }
    strand_scope_join(scope);
}

static void *see_woken(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        spawn_named(scope, "woken", await_event, NULL);
    busy_with(all, "    3 wait for strands");
    strand_event_set(&at.event);
    const char *text = busy(all);
    CHECK_CONTAINS(text, "\n    3 strands can run\n        strand 'woken' #");
    CHECK_EQ(test_count(text, "wait for strands"), 0);
    strand_scope_join(scope);
    return arg;
}

/* On one thread, where none of them has gone on yet. */
TEST_REAL(a_woken_strand_counts_as_runnable)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, see_woken, NULL);
}

/* On the usual scheduler, with one thread. */
static void *see_slot_and_queue(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "older", test_return, NULL);
    spawn_named(scope, "newer", test_return, NULL);
    const char *text = busy(all), *newer = strstr(text, "strand 'newer' #"), *older = strstr(text, "strand 'older' #");
    CHECK(newer && older);
    CHECK_CONTAINS(newer, " in the slot of thread 0, and has not started\n");
    CHECK_CONTAINS(older, " in the queue of thread 0, and has not started\n");
    CHECK_EQ(test_count(text, "in the slot of"), 1);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(strands_in_the_slot_and_in_the_queue_are_reported_separately)
{
    strand_options options = test_options();
    options.threads = 1;
    options.scheduler = "stealing";
    strand_run(&options, see_slot_and_queue, NULL);
}

static void *see_global_queue(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "eager", test_return, NULL);
    CHECK_CONTAINS(busy(all), " in the queue of the pool, and has not started\n");
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(what_stands_in_the_queue_of_a_pool_is_said_to)
{
    strand_options options = test_options();
    options.threads = 1;
    options.scheduler = "global";
    strand_run(&options, see_global_queue, NULL);
}

static void *pin_one(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "settler", .pool = strand_pool_self(), .pin = STRAND_PIN(0)),
                      test_return, NULL, 0);
    CHECK_CONTAINS(busy(all), " pinned to thread 0, and has not started\n");
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(what_is_pinned_is_said_to_be)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, pin_one, NULL);
}

static void *spin(void *arg)
{
    at.started = 1;
    while (!at.give_up)
        strand_yield();
    return arg;
}

static const struct scenario in_a_pool[] = {
    {.name = "strands that wait for strands do not keep it busy",
     .acts = {SEVERAL(3, "waiter", await_event)},
     .until =
         "    nothing: it is idle\n    3 wait for strands, or for actions of strands: that does not keep it busy\n"},
    {.name = "timers keep it busy, and the next ones are named",
     .acts = {SEVERAL(7, "sleeper", sleep_long), ONE("hasty", await_with_a_deadline)},
     .until = "(stealing)\n    8 timers are pending, the next first\n        strand 'hasty' #", /* and no strand runs */
     .texts = {HAS(" has a deadline in 1"), HAS(" waits for 3"), TIMES(4, "strand 'sleeper' #"),
               HAS("\n        and 3 more\n"), NO("idle")}},
    {.name = "a thread that runs a strand is named with it",
     .acts = {ONE("spinner", spin)},
     .until = " runs strand 'spinner' #",
     .texts = {HAS("    thread 0 ("), HAS("; it has been busy for "), NO("asked")}},
};

TEST_INSIDE(a_pool_is_busy_with_timers_and_running_strands_and_not_with_waits_for_strands)
{
    PLAY_ALL(in_a_pool, true, print);
}

static const struct scenario outside[] = {
    {.name = "descriptors and ports",
     .needs_pipe = true,
     .acts = {ONE("reader", read_a_byte), ONE("server", receive_a_message), ONE("chooser", select_one)},
     .until = "\n    3 wait for the outside: 1 for messages of ports, 2 for descriptors\n",
     .texts = {HAS("\n        strand 'reader' #"), HAS("\n        strand 'server' #"),
               HAS("\n        strand 'chooser' #"), HAS(" receives from port 'port' at 0x"),
               TIMES(2, " waits for descriptor %d\n"), NO("idle")}},
    {.name = "signals",
     .acts = {ONE("listener", await_a_signal)},
     .until = "    1 waits for the outside: 1 for signals\n",
     .texts = {HAS(" waits for signals\n")}},
    {.name = "an offloaded call",
     .acts = {ONE("caller", offload_it)},
     .until = "    1 waits for the outside: 1 for offloaded calls\n",
     .texts = {HAS("\n        strand 'caller' #")}},
};

TEST_REAL_INSIDE(waits_for_the_outside_keep_a_pool_busy)
{
    PLAY_ALL(outside, true, print);
}

static strand_pool closing;

static void *close_it(void *arg)
{
    strand_pool_close(closing, "enough of it");
    return arg;
}

TEST_INSIDE(the_report_of_a_closing_pool_says_what_it_waits_for)
{
    begin();
    STRAND_SCOPE(scope);
    closing = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "extra"));
    strand_spawn_with(scope, STRAND_ATTR(.name = "stubborn", .pool = closing), await_event_in_a_shield, NULL, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "stubborn", .pool = closing), await_event_in_a_shield, NULL, 0);
    busy_with(closing, "    2 wait for strands");
    strand closer = spawn_named(scope, "closer", close_it, NULL);
    CHECK_CONTAINS(busy_with(all, "\n    it is closing, "),
                   "and waits for the ends of its strands: 2; closed by 'closer': enough of it\n");
    strand_event_set(&at.event);
    strand_join(closer);
    strand_scope_cancel(scope, NULL);
}

TEST_INSIDE(a_closed_pool_is_reported_as_closed_even_if_another_one_is_open)
{
    STRAND_SCOPE(scope);
    strand_pool old = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "old"));
    strand_pool_close(old, NULL);
    strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "new"));
    CHECK_STR(busy(old), "pool 'old': closed\n");
}

/* ---- from elsewhere -------------------------------------------------------------------------------------------- */

/* A pipe that is full. Writers block their threads, readers do not. */
static void fill_pipe(int ends[2])
{
    char junk[1000] = "";
    CHECK_EQ(pipe2(ends, O_NONBLOCK), 0);
    while (write(ends[1], junk, sizeof junk) > 0)
        continue;
    while (write(ends[1], junk, 1) > 0)
        continue;
    CHECK_EQ(fcntl(ends[1], F_SETFL, 0), 0);
}

struct reporter {
    strand_pool pool;
    int fd;
};

static void *report_a_pool(void *arg)
{
    const struct reporter *reporter = arg;
    at.started = 1;
    CHECK_EQ(strand_busy_print(reporter->pool, reporter->fd), 0);
    return arg;
}

/* The only reader of the report runs on the closer's thread. */
TEST_REAL_INSIDE(a_pool_is_closed_while_a_report_of_it_waits_to_be_read)
{
    int ends[2];
    char bytes[1000];
    begin();
    fill_pipe(ends);
    STRAND_SCOPE(scope);
    strand_pool closed = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    strand_pool other = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    struct reporter reporter = {closed, ends[1]};
    strand child = strand_spawn_with(scope, STRAND_ATTR(.pool = other), report_a_pool, &reporter, 0);
    while (!at.started)
        strand_yield();
    strand_sleep(10 * STRAND_MS); /* it waits for the reader, mostly */
    strand_pool_close(closed, NULL);
    while (!strand_ended(child)) {
        while (read(ends[0], bytes, sizeof bytes) > 0)
            continue;
        strand_yield();
    }
    strand_join(child);
    close(ends[0]);
    close(ends[1]);
}

TEST_INSIDE(a_bad_descriptor_is_an_error_code)
{
    CHECK_EQ(strand_busy_print(all, -1), -EBADF);
}

TEST_REAL(a_plain_thread_gets_an_error_where_nothing_runs)
{
    CHECK_EQ(strand_busy_print(all, 2), -ESRCH);
}

static void *be_looked_at(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "extra"));
    spawn_onto(scope, pool, "sleeper", sleep_long);
    busy_with(pool, "(stealing)\n    1 timer is pending\n");
    at.pool = all;
    const char *text = printed_outside(print);
    CHECK_CONTAINS(text, "pool 'extra': 1 thread (stealing)\n    1 timer is pending\n");
    CHECK_CONTAINS(text, "pool 'first': ");
    CHECK_EQ(test_count(text, "asked"), 0);
    strand_scope_cancel(scope, NULL);
    return arg;
}

TEST_REAL(a_plain_thread_sees_all_pools_of_all_runs)
{
    test_run(be_looked_at, NULL);
}

static void *yield_until_cancelled(void *arg)
{
    at.started++;
    for (;;)
        strand_yield();
    return arg;
}

static void *print_under_load(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++)
        spawn_named(scope, "busy", yield_until_cancelled, NULL);
    test_yield_until(&at.started, 8);
    for (long i = 0; i < test_scale(100); i++) {
        const char *text = busy(all), *can = strstr(text, " strands can run\n");
        int waiting = can ? atoi(can - 2) : strstr(text, "    1 strand can run\n") ? 1 : 0;
        CHECK_EQ(waiting + (int)test_count(text, " runs strand 'busy' #"), 8);
        strand_yield();
    }
    strand_scope_cancel(scope, NULL);
    return arg;
}

TEST(what_is_printed_under_load_is_true_of_one_moment)
{
    strand_options options = test_options();
    test_set_threads(&options, 4);
    strand_run(&options, print_under_load, NULL);
}

static void *print_beside_one_that_computes(void *arg)
{
    begin();
    STRAND_SCOPE(scope);
    spawn_named(scope, "computer", spinner, NULL);
    while (at.started != 1)
        strand_yield();
    const char *text = busy(all);
    at.give_up = 1;
    CHECK_CONTAINS(text, " runs strand 'computer' #");
    CHECK_CONTAINS(text, ", which has not switched for 100 ms; it has been busy for ");
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(a_thread_that_cant_be_held_is_said_to_have_come_to_no_switch)
{
    strand_options options = test_options();
    test_set_threads(&options, 2);
    strand_run(&options, print_beside_one_that_computes, NULL);
}
