/*
 * A select on a descriptor ends only while the descriptor is ready, also where it does not ask the system.
 */
#define SUITE select_ready
#include "ends.h"

#include "strand/file.h"
#include "strand/select.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void *read_one(void *fd)
{
    char byte;
    CHECK_EQ(strand_read(*(int *)fd, &byte, 1), 1);
    return fd;
}

static _Atomic bool selected;

static void *select_readable(void *arg)
{
    strand_case cases[] = {strand_on_ready(*(int *)arg, STRAND_READABLE), strand_on_time(strand_in(100 * STRAND_S))};
    CHECK_EQ(strand_select(cases, 2, 0), 0);
    selected = true;
    return arg;
}

static void check_that_it_goes_on_waiting(void)
{
    for (int i = 0; i < 20; i++)
        strand_yield();
    strand_sleep(STRAND_MS);
    CHECK(!selected);
}

/* The reader does not know that nothing is left, and passes its turn on. */
TEST_REAL_INSIDE(a_select_behind_a_reader_waits_on_if_the_reader_has_taken_all)
{
    ENDS ends = of_tcp();
    STRAND_SCOPE(scope);
    selected = false;
    strand reader = strand_spawn(scope, read_one, &ends.in);
    test_await_blocked("waits for descriptor", 1);
    strand selects = strand_spawn(scope, select_readable, &ends.in);
    test_await_blocked("waits for one of", 1);
    CHECK_EQ(strand_write_all(ends.out, "x", 1), 1);
    strand_join(reader);
    check_that_it_goes_on_waiting();
    CHECK_EQ(strand_write_all(ends.out, "x", 1), 1);
    strand_join(selects);
}

/* The poller reports it as it reports bytes. */
TEST_SYSTEM_INSIDE(an_urgent_byte_alone_does_not_end_a_select)
{
    ENDS ends = of_tcp();
    STRAND_SCOPE(scope);
    selected = false;
    strand selects = strand_spawn(scope, select_readable, &ends.in);
    test_await_blocked("waits for one of", 1);
    CHECK_EQ(send(ends.out, "!", 1, MSG_OOB), 1);
    struct pollfd urgent = {.fd = ends.in, .events = POLLPRI};
    while (poll(&urgent, 1, 0) != 1)
        strand_sleep(20 * STRAND_US);
    check_that_it_goes_on_waiting();
    CHECK_EQ(send(ends.out, "x", 1, 0), 1);
    strand_join(selects);
}

/* On one thread nothing comes between the select's end and the question. */
static void *select_what_is_there(void *fd)
{
    select_readable(fd);
    struct pollfd there = {.fd = *(int *)fd, .events = POLLIN};
    CHECK(test_threads() > 1 || poll(&there, 1, 0) == 1);
    return fd;
}

/* One event reports a byte for both descriptors. */
static void share_a_byte(const char *path, bool select_first)
{
    int out, in[2];
    for (int i = 0; i < 2; i++)
        in[i] = strand_file_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    out = strand_file_open(AT_FDCWD, path, O_WRONLY, 0);
    CHECK(in[0] >= 0 && in[1] >= 0 && out >= 0);
    {
        STRAND_SCOPE(scope);
        strand first = strand_spawn(scope, select_first ? select_what_is_there : read_one, &in[!select_first]);
        test_await_blocked("blocked: ", 1);
        strand second = strand_spawn(scope, select_first ? read_one : select_what_is_there, &in[select_first]);
        test_await_blocked("blocked: ", 2);
        CHECK_EQ(strand_write_all(out, "x", 1), 1);
        strand_join(select_first ? second : first);
        CHECK_EQ(strand_write_all(out, "x", 1), 1);
        strand_join(select_first ? first : second);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(strand_close(in[i]), 0);
    CHECK_EQ(strand_close(out), 0);
}

TEST_SYSTEM_INSIDE(a_select_ends_only_if_no_reader_of_another_descriptor_has_taken_the_byte)
{
    char path[] = "/tmp/strand-select-XXXXXX";
    CHECK(mkdtemp(path));
    char fifo[sizeof path + 5];
    snprintf(fifo, sizeof fifo, "%s/fifo", path);
    CHECK_EQ(mkfifo(fifo, 0600), 0);
    share_a_byte(fifo, false);
    share_a_byte(fifo, true);
    CHECK_EQ(unlink(fifo), 0);
    CHECK_EQ(rmdir(path), 0);
}
