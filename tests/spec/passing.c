/*
 * Descriptors and credentials over Unix sockets; service managers.
 */
#define _GNU_SOURCE
#define SUITE passing
#include "test.h"

#include "strand/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int pair[2];

static void open_pair(int type)
{
    CHECK_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
}

static void close_pair(void)
{
    CHECK_EQ(strand_close(pair[0]), 0);
    CHECK_EQ(strand_close(pair[1]), 0);
}

static int open_descriptors(void)
{
    return test_count_entries("/proc/self/fd");
}

static int open_memory(const char *text)
{
    int fd = memfd_create(text, 0);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, text, strlen(text)), (int)strlen(text));
    return fd;
}

static void send_two(void)
{
    int fds[] = {open_memory("one"), open_memory("two")};
    const strand_passed passed = {.size = sizeof passed, .fds = fds, .fd_count = 2};
    CHECK_EQ(strand_send_passed(pair[1], "files", 5, &passed), 5);
    close(fds[0]);
    close(fds[1]);
}

static void check_file(int fd, const char *expected)
{
    char text[8] = "";
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(pread(fd, text, sizeof text, 0), (int)strlen(expected));
    CHECK_STR(text, expected);
    CHECK_EQ(strand_close(fd), 0);
}

static void check_passing(int type)
{
    char text[8] = "";
    int fds[4];
    strand_passed got = {.size = sizeof got, .fds = fds, .max_fds = 4};
    open_pair(type);
    send_two();
    CHECK_EQ(strand_receive_passed(pair[0], text, sizeof text, &got), 5);
    CHECK_STR(text, "files");
    CHECK_EQ(got.fd_count, 2);
    CHECK(!got.cut && !got.has_credentials);
    check_file(fds[0], "one");
    check_file(fds[1], "two");
    CHECK_EQ(strand_write(pair[1], "plain", 5), 5);
    CHECK_EQ(strand_receive_passed(pair[0], text, sizeof text, &got), 5);
    CHECK_EQ(got.fd_count, 0);
    close_pair();
}

TEST_INSIDE(descriptors_go_to_another_process)
{
    int before = open_descriptors();
    check_passing(SOCK_STREAM);
    check_passing(SOCK_DGRAM);
    check_passing(SOCK_SEQPACKET);
    CHECK_EQ(open_descriptors(), before);
}

/* ---- none is left open ------------------------------------------------------------------------- */

TEST_INSIDE(descriptors_without_room_are_closed_and_reported)
{
    char text[8];
    int fds[1];
    open_pair(SOCK_DGRAM);
    int before = open_descriptors();
    strand_passed got = {.size = sizeof got, .fds = fds, .max_fds = 1};
    send_two();
    CHECK_EQ(strand_receive_passed(pair[0], text, sizeof text, &got), 5);
    CHECK_EQ(got.fd_count, 1);
    CHECK(got.cut);
    CHECK_EQ(open_descriptors(), before + 1);
    check_file(fds[0], "one");
    got = (strand_passed){.size = sizeof got};
    send_two();
    CHECK_EQ(strand_receive_passed(pair[0], text, 2, &got), 5); /* bytes are cut as well */
    CHECK_EQ(got.fd_count, 0);
    CHECK(got.cut);
    CHECK_EQ(open_descriptors(), before);
    close_pair();
}

TEST_INSIDE(calls_that_know_no_descriptors_leave_none_open)
{
    char text[8];
    static const int types[] = {SOCK_DGRAM, SOCK_STREAM};
    for (int i = 0; i < 2; i++) {
        open_pair(types[i]);
        int before = open_descriptors();
        send_two();
        CHECK_EQ(strand_read(pair[0], text, sizeof text), 5);
        send_two();
        CHECK_EQ(strand_receive_from(pair[0], text, sizeof text, NULL), 5);
        send_two();
        strand_datagram one = {text, sizeof text, 0, NULL};
        CHECK_EQ(strand_receive_many(pair[0], &one, 1), 1);
        send_two(); /* never received */
        CHECK_EQ(open_descriptors(), before);
        close_pair();
    }
}

TEST_INSIDE(descriptors_for_which_the_process_has_no_number_are_reported)
{
    char text[8];
    int fds[2];
    struct rlimit limit, tight;
    open_pair(SOCK_DGRAM);
    strand_passed got = {.size = sizeof got, .fds = fds, .max_fds = 2};
    send_two();
    int last = dup(0), before = open_descriptors();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    tight = limit;
    tight.rlim_cur = (rlim_t)last + 1; /* all numbers below are in use, but for the one that `last` leaves */
    for (int fd; (fd = dup(0)) < last && fd >= 0;)
        ;
    CHECK_EQ(close(last), 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    CHECK_EQ(strand_receive_passed(pair[0], text, sizeof text, &got), 5);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK(got.fd_count <= 1);
    CHECK(got.cut);
    for (size_t i = 0; i < got.fd_count; i++)
        check_file(fds[i], "one");
    CHECK(open_descriptors() <= before);
    close_pair();
}

static void *receive(void *arg)
{
    char byte;
    int fd;
    strand_passed got = {.size = sizeof got, .fds = &fd, .max_fds = 1};
    STRAND_IGNORE(strand_receive_passed(pair[0], &byte, 1, &got));
    return arg;
}

TEST_INSIDE(an_interrupted_receiver_takes_no_descriptor)
{
    char text[8];
    int fds[2];
    strand_passed got = {.size = sizeof got, .fds = fds, .max_fds = 2};
    open_pair(SOCK_STREAM);
    {
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, receive, NULL);
        test_await_blocked("waits for descriptor", 1);
        strand_cancel(child, NULL);
        send_two();
        CHECK(test_join_interrupted(child));
    }
    CHECK_EQ(strand_receive_passed(pair[0], text, sizeof text, &got), 5);
    CHECK_EQ(got.fd_count, 2);
    check_file(fds[0], "one");
    check_file(fds[1], "two");
    close_pair();
}

TEST_INSIDE(a_receiver_waits_for_descriptors)
{
    int fd;
    char byte;
    open_pair(SOCK_STREAM);
    strand_passed got = {.size = sizeof got, .fds = &fd, .max_fds = 1};
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, receive, NULL);
    test_await_blocked("waits for descriptor", 1);
    CHECK_EQ(strand_write(pair[1], "x", 1), 1);
    strand_join(child);
    CHECK_EQ(strand_shutdown(pair[1], SHUT_WR), 0);
    CHECK_EQ(strand_receive_passed(pair[0], &byte, 1, &got), 0);
    CHECK_EQ(got.fd_count, 0);
    close_pair();
}

TEST_INSIDE(a_descriptor_that_cannot_be_passed_is_an_error_code)
{
    static int many[300];
    char byte = 0;
    int closed = -1, fds[2];
    strand_passed passed = {.size = sizeof passed, .fds = &closed, .fd_count = 1};
    open_pair(SOCK_STREAM);
    CHECK_EQ(strand_send_passed(pair[1], "x", 1, &passed), -EBADF);
    passed.fds = many;
    passed.fd_count = 254;
    CHECK_EQ(strand_send_passed(pair[1], "x", 1, &passed), -EINVAL);
    passed.fd_count = 0;
    CHECK_EQ(strand_send_passed(-1, "x", 1, &passed), -EBADF);
    CHECK_EQ(strand_receive_passed(-1, &byte, 1, &passed), -EBADF);
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    CHECK_EQ(strand_receive_passed(fds[0], &byte, 1, &passed), -ENOTSOCK);
    CHECK_EQ(strand_send_passed(fds[1], &byte, 1, &passed), -ENOTSOCK);
    CHECK_EQ(strand_close(fds[0]), 0);
    CHECK_EQ(strand_close(fds[1]), 0);
    close_pair();
}

/* ---- credentials -------------------------------------------------------------------------------- */

TEST_INSIDE(credentials_are_those_of_the_sender)
{
    char byte;
    int on = 1, fds[2];
    open_pair(SOCK_STREAM);
    CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    strand_passed sent = {.size = sizeof sent, .has_credentials = true, .fds = fds, .fd_count = 1},
                  got = {.size = sizeof got, .fds = fds + 1, .max_fds = 1};
    fds[0] = open_memory("one");
    CHECK_EQ(strand_send_passed(pair[1], "x", 1, &sent), 1);
    CHECK_EQ(strand_receive_passed(pair[0], &byte, 1, &got), 1);
    CHECK(got.has_credentials);
    CHECK_EQ(got.pid, getpid());
    CHECK_EQ(got.uid, getuid());
    CHECK_EQ(got.gid, getgid());
    CHECK_EQ(got.fd_count, 1);
    check_file(fds[1], "one");
    CHECK_EQ(strand_write(pair[1], "x", 1), 1); /* the system adds them */
    CHECK_EQ(strand_receive_passed(pair[0], &byte, 1, &got), 1);
    CHECK(got.has_credentials);
    CHECK_EQ(got.pid, getpid());
    close(fds[0]);
    close_pair();
}

/* ---- service managers --------------------------------------------------------------------------- */

/* What the test runner has there. */
static int others[2];

/* As a manager does: the descriptors begin at 3, which is in use here. */
static void pass_two(const char *names)
{
    char pid[16];
    for (int i = 0; i < 2; i++)
        others[i] = fcntl(3 + i, F_DUPFD_CLOEXEC, 200);
    int first = open_memory("one"), second = open_memory("two");
    first = fcntl(first, F_DUPFD, 100);
    second = fcntl(second, F_DUPFD, 100);
    CHECK_EQ(dup2(first, 3), 3);
    CHECK_EQ(dup2(second, 4), 4);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "2", 1);
    if (names)
        setenv("LISTEN_FDNAMES", names, 1);
}

static void give_back_two(void)
{
    for (int i = 0; i < 2; i++)
        if (others[i] >= 0) {
            CHECK_EQ(dup2(others[i], 3 + i), 3 + i);
            close(others[i]);
        }
}

TEST_REAL(descriptors_of_a_service_manager_are_found_with_their_names)
{
    strand_inherited list[3];
    pass_two("http:admin");
    for (int again = 0; again < 2; again++) {
        CHECK_EQ(strand_inherit(list, 3), 2);
        CHECK_EQ(list[0].fd, 3);
        CHECK_STR(list[0].name, "http");
        CHECK_STR(list[1].name, "admin");
        CHECK(fcntl(4, F_GETFD) & FD_CLOEXEC);
    }
    CHECK_EQ(strand_inherit(list, 1), 2);
    CHECK_EQ(strand_inherit(NULL, 0), 2);
    unsetenv("LISTEN_FDNAMES");
    CHECK_EQ(strand_inherit(list, 3), 2);
    CHECK_STR(list[1].name, "unknown");
    give_back_two();
}

TEST_REAL(variables_that_make_no_sense_are_an_error_code_and_those_of_others_are_ignored)
{
    strand_inherited list[3];
    CHECK_EQ(strand_inherit(list, 3), 0);
    pass_two(NULL);
    setenv("LISTEN_FDS", "two", 1);
    CHECK_EQ(strand_inherit(list, 3), -EINVAL);
    setenv("LISTEN_FDS", "-1", 1);
    CHECK_EQ(strand_inherit(list, 3), -EINVAL);
    setenv("LISTEN_FDS", "1000", 1);
    CHECK_EQ(strand_inherit(list, 3), -EBADF);
    setenv("LISTEN_PID", "1", 1);
    CHECK_EQ(strand_inherit(list, 3), 0);
    setenv("LISTEN_PID", "me", 1);
    CHECK_EQ(strand_inherit(list, 3), -EINVAL);
    give_back_two();
}

static void check_notify(const char *path)
{
    char text[32] = "";
    strand_address at;
    CHECK_EQ(strand_address_unix(&at, path), 0);
    int manager = strand_datagram_open(&at, NULL);
    CHECK(manager >= 0);
    int before = open_descriptors();
    setenv("NOTIFY_SOCKET", path, 1);
    CHECK_EQ(strand_notify("READY=1\nSTATUS=up"), 1);
    CHECK_EQ(open_descriptors(), before);
    CHECK_EQ(strand_receive_from(manager, text, sizeof text, NULL), 17);
    CHECK_STR(text, "READY=1\nSTATUS=up");
    CHECK_EQ(strand_close(manager), 0);
}

TEST_INSIDE(readiness_is_reported_to_a_service_manager)
{
    char path[64];
    unsetenv("NOTIFY_SOCKET");
    CHECK_EQ(strand_notify("READY=1"), 0);
    snprintf(path, sizeof path, "@strand-notify-%d", (int)getpid());
    check_notify(path);
    snprintf(path, sizeof path, "/tmp/strand-notify-%d", (int)getpid());
    check_notify(path);
    unlink(path);
    CHECK_EQ(strand_notify("READY=1"), -ENOENT);
    setenv("NOTIFY_SOCKET", "vsock:2:1", 1);
    CHECK_EQ(strand_notify("READY=1"), -EAFNOSUPPORT);
    unsetenv("NOTIFY_SOCKET");
}
