/*
 * Descriptors and signals as cases of a select.
 */
#define SUITE select_io
#include "test.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/sync.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

typedef STRAND_CHAN(int) numbers;

static int fds[2];

static void *write_later(void *arg)
{
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_write_all(fds[1], "x", 1), 1);
    return arg;
}

TEST_INSIDE(a_descriptor_that_becomes_readable_ends_a_select)
{
    char byte;
    CHECK_EQ(strand_pipe(fds), 0);
    STRAND_SCOPE(scope);
    numbers ch = STRAND_CHAN_OPEN(numbers, scope, 0);
    int n;
    strand_case cases[] = {STRAND_ON_RECEIVE(ch, &n), strand_on_ready(fds[0], STRAND_READABLE),
                           strand_on_time(strand_in(10 * STRAND_S))};
    for (int i = 0; i < 3; i++) {
        strand writer = strand_spawn(scope, write_later, NULL);
        CHECK_EQ(strand_select(cases, 3, 0), 1);
        CHECK_EQ(cases[1].result, 0);
        CHECK_EQ(strand_read(fds[0], &byte, 1), 1);
        strand_join(writer);
    }
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
}

TEST_INSIDE(a_descriptor_that_is_ready_already_is_chosen_at_once)
{
    CHECK_EQ(strand_pipe(fds), 0);
    strand_case cases[] = {strand_on_ready(fds[0], STRAND_READABLE), strand_on_ready(fds[1], STRAND_WRITABLE)};
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW), 1);
    CHECK_EQ(strand_write_all(fds[1], "x", 1), 1);
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_ORDERED), 0);
    CHECK_EQ(strand_select(cases, 1, STRAND_SELECT_NOW), 0);
    char byte;
    CHECK_EQ(strand_read(fds[0], &byte, 1), 1);
    CHECK_EQ(strand_select(cases, 1, STRAND_SELECT_NOW), -EAGAIN);
    CHECK_EQ(strand_select(cases, 1, STRAND_SELECT_NOW), -EAGAIN);
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
}

/* The poller has reported all that came through the pipe, and nothing is in it. */
static void use_pipe_up(void)
{
    char byte;
    strand_case cases[] = {strand_on_ready(fds[0], STRAND_READABLE)};
    STRAND_SCOPE(scope);
    strand_spawn(scope, write_later, NULL);
    CHECK_EQ(strand_select(cases, 1, 0), 0);
    CHECK_EQ(strand_read(fds[0], &byte, 1), 1);
    CHECK_EQ(strand_select(cases, 1, STRAND_SELECT_NOW), -EAGAIN);
    strand_scope_join(scope);
}

static void must_choose_the_pipe(strand_case other, strand_select_flags flags)
{
    char byte;
    strand_case cases[] = {strand_on_ready(fds[0], STRAND_READABLE), other};
    CHECK_EQ(strand_write_all(fds[1], "x", 1), 1);
    CHECK_EQ(strand_select(cases, 2, flags), 0);
    CHECK_EQ(cases[0].result, 0);
    CHECK_EQ(strand_read(fds[0], &byte, 1), 1);
    CHECK_EQ(strand_select(cases, 1, STRAND_SELECT_NOW), -EAGAIN);
}

TEST_INSIDE(a_byte_that_has_just_come_counts_before_the_poller_reports_it)
{
    int others[2];
    strand_event event = STRAND_EVENT_INIT, set = STRAND_EVENT_INIT;
    strand_event_set(&set);
    CHECK_EQ(strand_pipe(fds), 0);
    use_pipe_up();
    for (int round = 0; round < test_scale(20); round++) {
        CHECK_EQ(strand_pipe(others), 0);
        CHECK_EQ(strand_write_all(others[1], "x", 1), 1);
        must_choose_the_pipe(strand_on_ready(others[0], STRAND_READABLE), STRAND_SELECT_ORDERED);
        must_choose_the_pipe(strand_on_event(&set), STRAND_SELECT_ORDERED);
        must_choose_the_pipe(strand_on_time(strand_in(0)), STRAND_SELECT_ORDERED);
        must_choose_the_pipe(strand_on_event(&event), STRAND_SELECT_NOW);
        must_choose_the_pipe(strand_on_event(&event), STRAND_SELECT_ORDERED);
        must_choose_the_pipe(strand_on_time(strand_in(100 * STRAND_S)), 0);
        CHECK_EQ(strand_close(others[0]), 0);
        CHECK_EQ(strand_close(others[1]), 0);
    }
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
}

/* The poller reports the second pipe first. */
TEST_INSIDE(an_ordered_select_takes_the_first_descriptor_though_the_other_has_been_ready_for_longer)
{
    int first[2], second[2];
    char byte;
    CHECK_EQ(strand_pipe(first), 0);
    CHECK_EQ(strand_pipe(second), 0);
    memcpy(fds, first, sizeof fds);
    use_pipe_up();
    memcpy(fds, second, sizeof fds);
    use_pipe_up();
    for (int round = 0; round < test_scale(20); round++) {
        strand_case cases[] = {strand_on_ready(first[0], STRAND_READABLE), strand_on_ready(second[0], STRAND_READABLE)};
        CHECK_EQ(strand_write_all(second[1], "x", 1), 1);
        CHECK_EQ(strand_write_all(first[1], "x", 1), 1);
        CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_ORDERED), 0);
        CHECK_EQ(strand_read(first[0], &byte, 1), 1);
        CHECK_EQ(strand_read(second[0], &byte, 1), 1);
        CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW), -EAGAIN);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(strand_close(first[i]), 0);
        CHECK_EQ(strand_close(second[i]), 0);
    }
}

static void *close_later(void *arg)
{
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_close(fds[0]), 0);
    return arg;
}

TEST_INSIDE(closing_a_descriptor_ends_a_select_that_waits_for_it)
{
    CHECK_EQ(strand_pipe(fds), 0);
    STRAND_SCOPE(scope);
    strand closer = strand_spawn(scope, close_later, NULL);
    strand_case cases[] = {strand_on_ready(fds[0], STRAND_READABLE)};
    CHECK_EQ(strand_select(cases, 1, 0), 0);
    CHECK_EQ(cases[0].result, -EBADF);
    strand_join(closer);
    CHECK_EQ(strand_close(fds[1]), 0);
    CHECK_EQ(strand_select(cases, 1, 0), 0); /* a number that is not open */
    CHECK_EQ(cases[0].result, -EBADF);
}

static void *read_one(void *arg)
{
    char byte;
    CHECK_EQ(strand_read(fds[0], &byte, 1), 1);
    test_log("read%d", (int)(intptr_t)arg);
    return arg;
}

/* A select that goes away has to pass on what it may have been woken for. */
TEST_INSIDE(a_select_that_another_case_has_won_leaves_the_descriptor_to_others)
{
    CHECK_EQ(strand_pipe(fds), 0);
    STRAND_SCOPE(scope);
    for (int round = 0; round < test_scale(50); round++) {
        numbers ch;
        STRAND_SCOPE(inner);
        ch = STRAND_CHAN_OPEN(numbers, inner, 1);
        int n = 0;
        strand_case cases[] = {strand_on_ready(fds[0], STRAND_READABLE), STRAND_ON_RECEIVE(ch, &n),
                               strand_on_time(strand_in(round % 3 * STRAND_US))};
        strand reader = strand_spawn(scope, read_one, TEST_PTR(1));
        (void)strand_select(cases, 3, 0);
        CHECK_EQ(strand_write_all(fds[1], "x", 1), 1);
        strand_join(reader);
    }
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
}

static void *select_reader(void *arg)
{
    numbers *ch = arg;
    char byte;
    for (;;) {
        int n;
        strand_case cases[] = {strand_on_ready(fds[0], STRAND_READABLE), STRAND_ON_RECEIVE(*ch, &n)};
        if (strand_select(cases, 2, 0) == 1)
            return NULL;
        CHECK_EQ(cases[0].result, 0);
        CHECK_EQ(strand_read(fds[0], &byte, 1), 1);
        test_log("x");
    }
}

TEST_INSIDE(bytes_and_values_come_in_any_mix)
{
    CHECK_EQ(strand_pipe(fds), 0);
    STRAND_SCOPE(scope);
    numbers ch = STRAND_CHAN_OPEN(numbers, scope, 0);
    strand reader = strand_spawn(scope, select_reader, &ch);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(strand_write_all(fds[1], "x", 1), 1);
        strand_sleep(STRAND_MS);
    }
    CHECK_EQ(STRAND_SEND(ch, &(int){1}), 0);
    strand_join(reader);
    CHECK_LOG("x x x");
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
}

static void *wait_for_byte_or_cancel(void *arg)
{
    strand_case cases[] = {strand_on_ready(fds[0], STRAND_READABLE)};
    TEST_LEAVING("left");
    (void)strand_select(cases, 1, 0);
    return arg;
}

TEST_INSIDE(a_select_on_a_descriptor_is_interrupted_and_leaves_no_trace)
{
    CHECK_EQ(strand_pipe(fds), 0);
    STRAND_SCOPE(scope);
    strand waiter = strand_spawn(scope, wait_for_byte_or_cancel, NULL);
    strand_sleep(STRAND_MS);
    strand_cancel(waiter, NULL);
    strand_wait(waiter);
    CHECK_LOG("left");
    strand reader = strand_spawn(scope, read_one, TEST_PTR(2));
    CHECK_EQ(strand_write_all(fds[1], "x", 1), 1);
    strand_join(reader);
    CHECK_LOG("left read2");
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
}

TEST_INSIDE(a_signal_ends_a_select)
{
    STRAND_SIGNALS(signals, SIGUSR1, SIGUSR2);
    int number = 0;
    strand_case cases[] = {strand_on_signal(signals, &number), strand_on_time(strand_in(STRAND_MS))};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    kill(getpid(), SIGUSR1);
    CHECK_EQ(strand_select(cases, 1, 0), 0);
    CHECK_EQ(number, SIGUSR1);
    CHECK_EQ(strand_select(cases, 1, STRAND_SELECT_NOW), -EAGAIN);
    kill(getpid(), SIGUSR2);
    CHECK_EQ(strand_wait_signal(signals), SIGUSR2);
    CHECK_EQ(strand_select(cases, 1, STRAND_SELECT_NOW), -EAGAIN);
}

static void *raise_later(void *arg)
{
    strand_sleep(STRAND_MS);
    kill(getpid(), SIGUSR1);
    return arg;
}

TEST_INSIDE(a_select_waits_for_a_signal_again_and_again)
{
    STRAND_SIGNALS(signals, SIGUSR1);
    STRAND_SCOPE(scope);
    numbers ch = STRAND_CHAN_OPEN(numbers, scope, 0);
    int number, n;
    strand_case cases[] = {STRAND_ON_RECEIVE(ch, &n), strand_on_signal(signals, &number)};
    for (int i = 0; i < 5; i++) {
        number = 0;
        strand raiser = strand_spawn(scope, raise_later, NULL);
        CHECK_EQ(strand_select(cases, 2, 0), 1);
        CHECK_EQ(number, SIGUSR1);
        strand_join(raiser);
    }
}

/* ---- what ends while a select waits for it ------------------------------------------------------------------ */

static strand_signals borrowed;
static _Atomic int stands;

static void *select_on_a_borrowed_block(void *arg)
{
    int number = 0;
    strand_case cases[] = {strand_on_signal(borrowed, &number)};
    stands = 1;
    CHECK_EQ(strand_select(cases, 1, 0), 0);
    CHECK_EQ(cases[0].result, -EBADF);
    return arg;
}

static strand signals_for_a_while(strand_scope scope)
{
    STRAND_SIGNALS(signals, SIGUSR1);
    borrowed = signals;
    stands = 0;
    strand waiter = strand_spawn(scope, select_on_a_borrowed_block, NULL);
    test_yield_until(&stands, 1);
    strand_sleep(5 * STRAND_MS);
    return waiter;
}

TEST_INSIDE(leaving_a_block_of_signals_ends_a_select_that_waits_for_them)
{
    STRAND_SCOPE(scope);
    strand_join(signals_for_a_while(scope));
}

static numbers passing;

static void *select_on_what_passes(void *drops)
{
    int n;
    strand_case receive = STRAND_ON_RECEIVE(passing, &n);
    strand_case cases[] = {drops ? strand_case_drop(receive) : receive, strand_on_ready(fds[0], STRAND_READABLE)};
    stands = 2;
    int which = strand_select(cases, 2, 0);
    CHECK(which == 1 || !drops); /* else either may come first */
    CHECK_EQ(cases[which].result, which == 0 ? -EPIPE : 0);
    return NULL;
}

static strand channel_for_a_while(strand_scope scope, bool drops)
{
    STRAND_SCOPE(inner);
    passing = STRAND_CHAN_OPEN(numbers, inner, 0);
    strand waiter = strand_spawn(scope, select_on_what_passes, TEST_PTR(drops));
    test_yield_until(&stands, 2);
    strand_sleep(STRAND_MS);
    return waiter;
}

static void *read_first(void *arg)
{
    stands = 1;
    return read_one(arg);
}

/* The descriptor becomes readable, and another strand reads it before the select does, so the select starts again. */
static void end_while_it_begins_anew(bool drops)
{
    CHECK_EQ(strand_pipe(fds), 0);
    STRAND_SCOPE(scope);
    stands = 0;
    strand reader = strand_spawn(scope, read_first, TEST_PTR(1));
    test_yield_until(&stands, 1);
    strand_sleep(STRAND_MS);
    strand waiter = channel_for_a_while(scope, drops);
    CHECK_EQ(strand_write_all(fds[1], "x", 1), 1);
    strand_join(reader);
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_write_all(fds[1], "x", 1), 1);
    strand_join(waiter);
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
}

TEST_INSIDE(a_channel_that_ends_while_a_select_starts_again_is_closed)
{
    end_while_it_begins_anew(false);
}

TEST_INSIDE(a_case_that_drops_out_stays_out_while_its_select_starts_again)
{
    end_while_it_begins_anew(true);
}

/* ---- several descriptors --------------------------------------------------------------------------------- */

enum { PIPES = 4 };
static int pipes[PIPES][2], ready_pipe;

static void *select_on_all(void *arg)
{
    strand_case cases[PIPES];
    for (int i = 0; i < PIPES; i++)
        cases[i] = strand_on_ready(pipes[i][0], STRAND_READABLE);
    CHECK_EQ(strand_select(cases, PIPES, arg ? STRAND_SELECT_ORDERED : 0), ready_pipe);
    CHECK_EQ(cases[ready_pipe].result, 0);
    return NULL;
}

/* Under a seed nobody reports the system's descriptors: each select asks for all of its own, though others do so too.
 */
TEST_SYSTEM_INSIDE(selects_that_share_descriptors_notice_each_of_them)
{
    for (int i = 0; i < PIPES; i++)
        CHECK_EQ(strand_pipe(pipes[i]), 0);
    for (int which = 0; which < PIPES; which++) {
        ready_pipe = which;
        STRAND_SCOPE(scope);
        for (intptr_t i = 0; i < 3; i++)
            strand_spawn(scope, select_on_all, TEST_PTR(i % 2));
        strand_sleep(STRAND_MS);
        CHECK_EQ(strand_write_all(pipes[which][1], "x", 1), 1);
        strand_scope_join(scope);
        char byte;
        CHECK_EQ(strand_read(pipes[which][0], &byte, 1), 1);
    }
    for (int i = 0; i < PIPES; i++) {
        CHECK_EQ(strand_close(pipes[i][0]), 0);
        CHECK_EQ(strand_close(pipes[i][1]), 0);
    }
}
