/*
 * Descriptors: reading, writing, waiting and closing.
 */
#define SUITE descriptor
#include "test.h"

#include "strand/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pty.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2];

static void open_pipe(void)
{
    CHECK_EQ(strand_pipe(ends), 0);
}

static void open_pair(void)
{
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void close_both(void)
{
    CHECK_EQ(strand_close(ends[0]), 0);
    CHECK_EQ(strand_close(ends[1]), 0);
}

/* ---- moving bytes --------------------------------------------------------------------------- */

static void *read_five(void *arg)
{
    char buffer[8] = "";
    CHECK_EQ(strand_read_all(ends[0], buffer, 5), 5);
    CHECK_STR(buffer, "hello");
    return arg;
}

/* S-02, V-19, contract 5.1 */
TEST_INSIDE(a_reader_waits_until_there_is_something)
{
    open_pipe();
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, read_five, NULL);
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_write_all(ends[1], "hel", 3), 3);
    strand_sleep(STRAND_MS);
    CHECK(!strand_ended(reader));
    CHECK_EQ(strand_write_all(ends[1], "lo", 2), 2);
    strand_join(reader);
    close_both();
}

/* contract 4.65 */
TEST_INSIDE(the_end_of_a_pipe_is_zero_bytes)
{
    char byte;
    open_pipe();
    CHECK_EQ(strand_close(ends[1]), 0);
    CHECK_EQ(strand_read(ends[0], &byte, 1), 0);
    CHECK_EQ(strand_read_all(ends[0], &byte, 1), 0);
    CHECK_EQ(strand_close(ends[0]), 0);
}

/* contract 4.65, 9.11 */
TEST_INSIDE(writing_where_nobody_reads_is_an_error_and_no_signal)
{
    open_pipe();
    CHECK_EQ(strand_close(ends[0]), 0);
    CHECK_EQ(strand_write(ends[1], "x", 1), -EPIPE);
    CHECK_EQ(strand_write_all(ends[1], "x", 1), -EPIPE);
    CHECK_EQ(strand_close(ends[1]), 0);
    open_pair();
    CHECK_EQ(strand_close(ends[0]), 0);
    CHECK_EQ(strand_write(ends[1], "x", 1), -EPIPE);
    CHECK_EQ(strand_close(ends[1]), 0);
}

enum { MUCH = 1 << 20 };

static void *write_much(void *arg)
{
    char block[1000];
    for (int i = 0; i < MUCH / 1000; i++) {
        memset(block, i % 251, sizeof block);
        CHECK_EQ(strand_write_all(ends[1], block, sizeof block), (int64_t)sizeof block);
    }
    CHECK_EQ(strand_close(ends[1]), 0);
    return arg;
}

static void read_much(void)
{
    char block[1000];
    int64_t got;
    int i = 0;
    while ((got = strand_read_all(ends[0], block, sizeof block)) == (int64_t)sizeof block) {
        CHECK_EQ((unsigned char)block[0], i % 251);
        CHECK_EQ((unsigned char)block[999], i % 251);
        i++;
    }
    CHECK_EQ(got, 0);
    CHECK_EQ(i, MUCH / 1000);
}

TEST_REAL_INSIDE(more_than_a_pipe_holds_goes_through_in_order)
{
    open_pipe();
    STRAND_SCOPE(scope);
    strand writer = strand_spawn(scope, write_much, NULL);
    read_much();
    strand_join(writer);
    CHECK_EQ(strand_close(ends[0]), 0);
}

static void *read_nothing(void *arg)
{
    char byte;
    (void)arg;
    return TEST_PTR(strand_read(ends[0], &byte, 1));
}

/* ---- several strands ------------------------------------------------------------------------ */

static _Atomic int readers_done;

/* Logs who has read. */
static void *read_one(void *name)
{
    char byte = 0;
    CHECK_EQ(strand_read(ends[0], &byte, 1), 1);
    test_log("%s%c", (const char *)name, byte);
    readers_done++;
    return name;
}

static void *read_into(void *byte)
{
    CHECK_EQ(strand_read(ends[0], byte, 1), 1);
    return byte;
}

/* contract 5.3 */
TEST_INSIDE(readers_of_one_descriptor_are_served_first_come_first_served)
{
    static char names[][2] = {"1", "2", "3"};
    open_pipe();
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++) {
        strand_spawn(scope, read_one, names[i]);
        test_await_blocked("waits for descriptor", i + 1);
    }
    readers_done = 0;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(strand_write(ends[1], &"abc"[i], 1), 1);
        test_yield_until(&readers_done, i + 1);
    }
    strand_scope_join(scope);
    CHECK_LOG("1a 2b 3c");
    close_both();
}

/* With several threads who has read first is not always who logs first. */
/* V-23, contract 5.3 */
TEST_REAL_INSIDE(bytes_that_come_together_reach_all_readers)
{
    char bytes[3];
    open_pipe();
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, read_into, &bytes[i]);
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_write_all(ends[1], "abc", 3), 3);
    strand_scope_join(scope);
    CHECK_EQ(bytes[0] + bytes[1] + bytes[2], 'a' + 'b' + 'c');
    close_both();
}

static void *read_other_end(void *arg)
{
    char byte;
    (void)arg;
    return TEST_PTR(strand_read(ends[1], &byte, 1));
}

static void *fill_and_empty(void *arg)
{
    static char much[MUCH];
    CHECK_EQ(strand_write_all(ends[1], much, sizeof much), (int64_t)sizeof much);
    return arg;
}

/* V-23 */
TEST_REAL_INSIDE(a_reader_and_a_writer_may_wait_on_one_socket)
{
    static char much[MUCH];
    open_pair();
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, read_other_end, NULL);
    strand writer = strand_spawn(scope, fill_and_empty, NULL);
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_read_all(ends[0], much, sizeof much), (int64_t)sizeof much);
    strand_join(writer);
    CHECK(!strand_ended(reader));
    CHECK_EQ(strand_write(ends[0], "x", 1), 1);
    CHECK_EQ((intptr_t)strand_join(reader), 1);
    close_both();
}

/* ---- interruptions -------------------------------------------------------------------------- */

/* V-30, contract 1.7, 4.18, 4.20, 5.1, 5.2, 5.4 */
TEST_INSIDE(a_read_that_waits_is_interrupted_and_takes_nothing)
{
    open_pipe();
    {
        STRAND_SCOPE(scope);
        strand reader = strand_spawn(scope, read_nothing, NULL);
        strand_sleep(STRAND_MS);
        strand_cancel(reader, "enough");
    }
    char byte;
    CHECK_EQ(strand_write(ends[1], "x", 1), 1);
    CHECK_EQ(strand_read(ends[0], &byte, 1), 1);
    CHECK_EQ(byte, 'x');
    close_both();
}

static void read_for_ever(void)
{
    char byte;
    for (;;)
        CHECK(strand_read(ends[0], &byte, 1) == 1);
}

/* contract 2.5, 4.28, 5.2 */
TEST_REAL_INSIDE(a_deadline_is_seen_by_a_stream_that_is_always_ready)
{
    ends[0] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(5 * STRAND_MS));
        read_for_ever();
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    CHECK_LOG("timed-out");
    CHECK_EQ(strand_close(ends[0]), 0);
}

static void *read_until_stopped(void *stop)
{
    char byte;
    while (!*(_Atomic bool *)stop)
        CHECK_EQ(strand_read(ends[0], &byte, 1), 1);
    return stop;
}

/* contract 2.5 */
TEST_REAL_INSIDE(a_stream_that_is_always_ready_does_not_keep_others_from_running)
{
    _Atomic bool stop = false;
    ends[0] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, read_until_stopped, &stop);
    for (int i = 0; i < 20; i++)
        strand_sleep(STRAND_US);
    stop = true;
    strand_join(reader);
    CHECK_EQ(strand_close(ends[0]), 0);
}

static void *write_too_much(void *arg)
{
    static char much[1 << 22];
    STRAND_TRY {
        STRAND_IGNORE(strand_write_all(ends[1], much, sizeof much));
        CHECK_FAIL("a pipe took four megabytes");
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        *(uint64_t *)arg = strand_exception_progress(e);
        strand_rethrow(strand_exception_keep(e));
    }
    STRAND_END
    return arg;
}

static _Atomic int stop;

static void *yield_until_stopped(void *arg)
{
    while (!stop)
        strand_yield();
    return arg;
}

static void *read_and_stop(void *arg)
{
    char byte;
    CHECK_EQ(strand_read(ends[0], &byte, 1), 1);
    stop = 1;
    return arg;
}

/* contract 2.5 */
TEST_REAL_INSIDE(bytes_that_come_while_all_threads_are_busy_are_read)
{
    open_pipe();
    STRAND_SCOPE(scope);
    stop = 0;
    strand_spawn(scope, read_and_stop, NULL);
    strand_sleep(STRAND_MS); /* it waits */
    for (int i = 0; i < 16; i++)
        strand_spawn(scope, yield_until_stopped, NULL);
    for (int i = 0; i < 100; i++)
        strand_yield();
    CHECK_EQ(write(ends[1], "x", 1), 1);
    strand_scope_join(scope);
    close_both();
}

/* contract 4.20, 4.23, 5.2 */
TEST_INSIDE(an_interrupted_write_all_reports_how_many_bytes_were_written)
{
    uint64_t gone = 0, there = 0;
    open_pipe();
    {
        STRAND_SCOPE(scope);
        strand writer = strand_spawn(scope, write_too_much, &gone);
        strand_sleep(10 * STRAND_MS);
        strand_cancel(writer, NULL);
    }
    CHECK(gone > 0);
    CHECK_EQ(strand_close(ends[1]), 0);
    char block[4096];
    for (int64_t got; (got = strand_read(ends[0], block, sizeof block)) > 0;)
        there += (uint64_t)got;
    CHECK_EQ(there, gone);
    CHECK_EQ(strand_close(ends[0]), 0);
}

/* ---- closing -------------------------------------------------------------------------------- */

/* contract 4.22 */
TEST_INSIDE(closing_wakes_all_waiters)
{
    open_pipe();
    STRAND_SCOPE(scope);
    strand one = strand_spawn(scope, read_nothing, NULL);
    strand two = strand_spawn(scope, read_nothing, NULL);
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_close(ends[0]), 0);
    CHECK_EQ((intptr_t)strand_join(one), -EBADF);
    CHECK_EQ((intptr_t)strand_join(two), -EBADF);
    CHECK_EQ(strand_close(ends[1]), 0);
}

static void *close_although_cancelled(void *arg)
{
    char byte;
    strand_cancel(strand_self(), NULL);
    STRAND_TRY {
        strand_read(ends[0], &byte, 1);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("interrupted");
    }
    STRAND_END
    CHECK_EQ(recv(ends[0], &byte, 1, MSG_PEEK | MSG_DONTWAIT), 1);
    close_both();
    test_log("closed");
    return arg;
}

/* contract 4.22 */
TEST_INSIDE(a_strand_that_is_interrupted_takes_nothing_and_can_close)
{
    open_pair();
    CHECK_EQ(strand_write(ends[1], "x", 1), 1);
    {
        STRAND_SCOPE(scope);
        strand_wait(strand_spawn(scope, close_although_cancelled, NULL));
        strand_scope_cancel(scope, NULL);
    }
    CHECK_LOG("interrupted closed");
}

/* The reader has not run yet when the other end is looked at. */
/* contract 4.22 */
TEST_INSIDE(the_other_end_sees_the_closing_although_somebody_waits)
{
    char byte;
    open_pair();
    STRAND_SCOPE(scope);
    strand_spawn(scope, read_nothing, NULL);
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_close(ends[0]), 0);
    CHECK_EQ(recv(ends[1], &byte, 1, MSG_DONTWAIT), 0);
    strand_scope_join(scope);
    CHECK_EQ(fcntl(ends[0], F_GETFD), -1);
    CHECK_EQ(strand_close(ends[1]), 0);
}

TEST_INSIDE(a_number_that_is_used_again_is_a_new_descriptor)
{
    open_pipe();
    int number = ends[0];
    for (int i = 0; i < 20; i++) {
        STRAND_SCOPE(scope);
        strand reader = strand_spawn(scope, read_nothing, NULL);
        strand_sleep(STRAND_MS);
        close_both();
        CHECK_EQ((intptr_t)strand_join(reader), -EBADF);
        open_pipe();
        CHECK_EQ(ends[0], number);
        reader = strand_spawn(scope, read_nothing, NULL);
        strand_sleep(STRAND_MS);
        CHECK_EQ(strand_write(ends[1], "x", 1), 1);
        CHECK_EQ((intptr_t)strand_join(reader), 1);
    }
    close_both();
}

/* contract 3.7, 4.65, 9.11 */
TEST_INSIDE(an_invalid_descriptor_is_an_error)
{
    char byte;
    CHECK_EQ(strand_read(-1, &byte, 1), -EBADF);
    CHECK_EQ(strand_close(-1), -EBADF);
    CHECK_EQ(strand_read(1000000, &byte, 1), -EBADF);
    CHECK_EQ(strand_close(1000000), -EBADF);
    CHECK_EQ(strand_read(1 << 30, &byte, 1), -EBADF);
    CHECK_EQ(strand_close(INT_MAX), -EBADF);
}

/* contract 9.11 */
TEST_INSIDE(records_are_written_whole_also_on_descriptors_that_can_not_be_made_non_blocking)
{
    uint64_t value = 7, got = 0;
    int fd = eventfd(0, EFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(strand_write(fd, &value, sizeof value), sizeof value);
    CHECK_EQ(strand_read(fd, &got, sizeof got), sizeof got);
    CHECK_EQ(got, value);
    CHECK_EQ(strand_close(fd), 0);
    CHECK((fd = epoll_create1(EPOLL_CLOEXEC)) >= 0);
    CHECK_EQ(strand_read(fd, &got, sizeof got), -EINVAL);
    CHECK_EQ(strand_close(fd), 0);
}

/* ---- readiness ------------------------------------------------------------------------------ */

static void *wait_until_readable(void *arg)
{
    CHECK_EQ(strand_wait_ready(ends[0], STRAND_READABLE), 0);
    test_log("readable");
    return arg;
}

/* contract 5.1 */
TEST_INSIDE(readiness_can_be_waited_for_and_takes_nothing)
{
    char byte;
    open_pipe();
    CHECK_EQ(strand_wait_ready(ends[1], STRAND_WRITABLE), 0);
    STRAND_SCOPE(scope);
    strand waiter = strand_spawn(scope, wait_until_readable, NULL);
    strand_sleep(STRAND_MS);
    CHECK_LOG("");
    CHECK_EQ(strand_write(ends[1], "x", 1), 1);
    strand_join(waiter);
    CHECK_LOG("readable");
    CHECK_EQ(strand_read(ends[0], &byte, 1), 1);
    close_both();
}

static void *wait_until_gone(void *arg)
{
    CHECK_EQ(strand_wait_ready(ends[0], STRAND_GONE), 0);
    test_log("gone");
    return arg;
}

/* Whether it goes by closing, by closing one half, or breaks. */
static void check_going(int (*go)(void), bool with_bytes)
{
    open_pair();
    STRAND_SCOPE(scope);
    strand waiter = strand_spawn(scope, wait_until_gone, NULL);
    if (with_bytes)
        CHECK_EQ(strand_write_all(ends[1], "abc", 3), 3);
    strand_sleep(STRAND_MS);
    CHECK(!strand_ended(waiter));
    CHECK_EQ(go(), 0);
    strand_join(waiter);
    CHECK_EQ(strand_wait_ready(ends[0], STRAND_GONE), 0);
    CHECK_EQ(strand_close(ends[0]), 0);
}

static int close_other(void)
{
    return strand_close(ends[1]);
}

static int close_half_of_other(void)
{
    return strand_shutdown(ends[1], SHUT_WR);
}

/* contract 5.1, 5.2 */
TEST_INSIDE(the_going_of_the_other_side_can_be_waited_for_whatever_there_is_to_read)
{
    check_going(close_other, false);
    check_going(close_other, true);
    check_going(close_half_of_other, true);
    CHECK_EQ(strand_close(ends[1]), 0);
    CHECK_LOG("gone gone gone");
}

TEST_INSIDE(a_descriptor_that_blocks_is_left_as_it_is)
{
    CHECK_EQ(pipe(ends), 0);
    STRAND_SCOPE(scope);
    strand reader = strand_spawn(scope, read_nothing, NULL);
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_write_all(ends[1], "x", 1), 1);
    CHECK_EQ((intptr_t)strand_join(reader), 1);
    CHECK_EQ(fcntl(ends[0], F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    close_both();
}

static void *read_pipe(void *arg)
{
    char byte;
    strand_read(ends[0], &byte, 1);
    return arg;
}

/* If two readers see the same byte, one gets it, and the other must not be stuck in a call that blocks its thread. */
/* contract 1.7, 4.18, 5.4 */
TEST_REAL_INSIDE(readers_of_a_pipe_that_blocks_can_be_cancelled_although_another_was_faster)
{
    for (long i = 0; i < test_scale(200); i++) {
        CHECK_EQ(pipe(ends), 0);
        {
            STRAND_SCOPE(scope);
            for (int n = 0; n < 2; n++)
                strand_spawn(scope, read_pipe, NULL);
            CHECK_EQ(strand_write(ends[1], "x", 1), 1);
            strand_yield();
            strand_scope_cancel(scope, NULL);
        }
        close_both();
    }
}

TEST_REAL_INSIDE(whether_it_blocks_may_be_changed_by_others)
{
    open_pipe();
    char byte;
    CHECK_EQ(strand_write(ends[1], "x", 1), 1);
    CHECK_EQ(strand_read(ends[0], &byte, 1), 1);
    CHECK_EQ(fcntl(ends[0], F_SETFL, 0), 0);
    {
        STRAND_SCOPE(scope);
        strand reader = strand_spawn(scope, read_pipe, NULL);
        strand_sleep(STRAND_MS);
        strand_cancel(reader, NULL);
    }
    close_both();
}

static void *write_for_ever(void *end)
{
    char line[1000];
    memset(line, 'x', sizeof line);
    while (strand_write_all(*(int *)end, line, sizeof line) > 0)
        ;
    return end;
}

/* Also one that nobody reads holds up nobody but its writer. Lines are read one by one, however many there are. */
TEST_REAL_INSIDE(terminals_are_descriptors_as_well)
{
    char line[16] = "";
    CHECK_EQ(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
    CHECK_EQ(strand_write_all(ends[0], "one\ntwo\n", 8), 8);
    CHECK_EQ(strand_read(ends[1], line, sizeof line), 4);
    CHECK_EQ(strand_read(ends[1], line, sizeof line), 4);
    CHECK_STR(line, "two\n");
    CHECK_EQ(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    {
        STRAND_SCOPE(scope);
        strand writer = strand_spawn(scope, write_for_ever, &ends[1]);
        strand_sleep(5 * STRAND_MS);
        CHECK(!strand_ended(writer));
        strand_cancel(writer, NULL);
    }
    close_both();
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1000; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void *write_a_line(void *arg)
{
    CHECK_EQ(strand_write_all(ends[1], "x\n", 2), 2);
    return arg;
}

/* It was opened once more, for its run. */
TEST_REAL(a_terminal_that_is_left_open_costs_nothing_after_the_run)
{
    strand_options options = test_options();
    CHECK_EQ(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
    strand_run(&options, test_return, NULL); /* the first run of a process opens some for good */
    int before = open_descriptors();
    strand_run(&options, write_a_line, NULL);
    CHECK_EQ(open_descriptors(), before);
    close(ends[0]);
    close(ends[1]);
}

/* A poller, a watch for signals, a terminal opened once more, what traces need: and the lowest free number is free. */
static void *need_descriptors(void *arg)
{
    STRAND_SIGNALS(signals, SIGUSR1);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(strand_wait_signal(signals), SIGUSR1);
    CHECK_EQ(strand_write_all(ends[1], "x\n", 2), 2);
    strand_sleep(STRAND_MS);
    CHECK_EQ(fcntl(STDIN_FILENO, F_GETFD), -1);
    CHECK_EQ(strand_read(STDIN_FILENO, arg, 1), -EBADF);
    return arg;
}

/* contract 7.5 */
TEST_REAL(a_program_without_standard_input_gets_no_descriptor_of_the_run_for_it)
{
    strand_options options = test_options();
    char byte;
    CHECK_EQ(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
    close(STDIN_FILENO);
    strand_run(&options, need_descriptors, &byte);
    CHECK_EQ(fcntl(STDIN_FILENO, F_GETFD), -1);
}

static void *close_soon(void *arg)
{
    strand_sleep(STRAND_MS);
    CHECK_EQ(strand_close(ends[0]), 0);
    return arg;
}

/* contract 4.22 */
TEST_REAL_INSIDE(closing_ends_a_composite_operation_that_never_has_to_wait)
{
    static char much[1 << 20];
    ends[0] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    STRAND_SCOPE(scope);
    strand closer = strand_spawn(scope, close_soon, NULL);
    int64_t got;
    while ((got = strand_read_all(ends[0], much, sizeof much)) == (int64_t)sizeof much)
        ;
    CHECK(got == -EBADF || (got >= 0 && got < (int64_t)sizeof much));
    strand_join(closer);
}

/* ---- under load ----------------------------------------------------------------------------- */

enum { PAIRS = 20 };

struct ping {
    int fds[2];
    long rounds;
};

static void *pong(void *arg)
{
    const struct ping *ping = arg;
    char byte;
    for (long i = 0; i < ping->rounds; i++) {
        CHECK_EQ(strand_read(ping->fds[1], &byte, 1), 1);
        CHECK_EQ(byte, (char)i);
        CHECK_EQ(strand_write(ping->fds[1], &byte, 1), 1);
    }
    return arg;
}

static void *ping_pong(void *arg)
{
    const struct ping *ping = arg;
    STRAND_SCOPE(scope);
    strand other = strand_spawn(scope, pong, arg);
    for (long i = 0; i < ping->rounds; i++) {
        char byte = (char)i;
        CHECK_EQ(strand_write(ping->fds[0], &byte, 1), 1);
        CHECK_EQ(strand_read(ping->fds[0], &byte, 1), 1);
        CHECK_EQ(byte, (char)i);
    }
    strand_join(other);
    return arg;
}

/* S-27, V-23 */
TEST_REAL_INSIDE(many_strands_talk_through_sockets_at_once)
{
    struct ping pings[PAIRS];
    STRAND_SCOPE(scope);
    for (int i = 0; i < PAIRS; i++) {
        pings[i].rounds = test_scale(2000);
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pings[i].fds), 0);
        strand_spawn(scope, ping_pong, &pings[i]);
    }
    strand_scope_join(scope);
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQ(strand_close(pings[i].fds[0]), 0);
        CHECK_EQ(strand_close(pings[i].fds[1]), 0);
    }
}
