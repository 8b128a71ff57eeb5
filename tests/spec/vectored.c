/*
 * Bytes in several buffers.
 */
#define SUITE vectored
#include "ends.h"

#include "strand/exception.h"
#include "strand/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct iovec part(const char *text)
{
    return (struct iovec){(void *)(uintptr_t)text, strlen(text)};
}

/* The first `size` bytes of the stream, in three buffers. */
static void check_three(int fd, const char *expected)
{
    char text[16] = "";
    size_t done = 0, size = strlen(expected);
    while (done < size) { /* in as many parts as they come */
        struct iovec parts[] = {{text + done, 1}, {NULL, 0}, {text + done + 1, 2}, {text + done + 3, 8}};
        int64_t got = strand_readv(fd, parts, 4);
        CHECK(got > 0);
        done += (size_t)got;
    }
    CHECK_STR(text, expected);
}

static void check_streams(struct ends ends)
{
    const struct iovec parts[] = {part("ab"), part(""), part("cdef"), part("g")};
    CHECK_EQ(strand_writev_all(ends.out, parts, 4), 7);
    check_three(ends.in, "abcdefg");
    int64_t put = strand_writev(ends.out, parts, 4);
    CHECK(put >= 1 && put <= 7);
    char rest[8] = "";
    CHECK_EQ(strand_read_all(ends.in, rest, (size_t)put), put);
    CHECK_EQ(strncmp(rest, "abcdefg", (size_t)put), 0);
}

TEST_INSIDE(bytes_of_several_buffers_go_through_a_connection)
{
    ENDS ends = of_tcp();
    check_streams(ends);
}

TEST_INSIDE(and_through_a_pipe)
{
    ENDS ends = of_pipe();
    check_streams(ends);
}

TEST_SYSTEM_INSIDE(several_buffers_take_one_system_call)
{
    ENDS ends = of_pipe();
    char a[2], b[8] = "";
    const struct iovec parts[] = {part("abc"), part("def")}, room[] = {{a, 2}, {b, sizeof b}};
    CHECK_EQ(strand_writev(ends.out, parts, 2), 6);
    CHECK_EQ(strand_readv(ends.in, room, 2), 6);
    CHECK_EQ(memcmp(a, "ab", 2), 0);
    CHECK_STR(b, "cdef");
}

TEST_INSIDE(a_file_takes_several_buffers)
{
    char text[8] = "";
    const struct iovec parts[] = {part("ab"), part("cd")}, room[] = {{text, 1}, {text + 1, 6}};
    int fd = memfd_create("file", MFD_CLOEXEC);
    CHECK_EQ(strand_writev_all(fd, parts, 2), 4);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(strand_readv(fd, room, 2), 4);
    CHECK_STR(text, "abcd");
    CHECK_EQ(strand_readv(fd, room, 2), 0);
    CHECK_EQ(strand_close(fd), 0);
}

enum { PARTS = 1000, PART = 700 };
static char sent[PARTS][PART], received[PARTS * PART];

static void *write_many(void *fd)
{
    struct iovec parts[PARTS];
    for (int i = 0; i < PARTS; i++)
        parts[i] = (struct iovec){sent[i], (size_t)(i % (PART + 1))};
    int64_t all = 0;
    for (int i = 0; i < PARTS; i++)
        all += (int64_t)parts[i].iov_len;
    CHECK_EQ(strand_writev_all(*(const int *)fd, parts, PARTS), all);
    for (int i = 0; i < PARTS; i++)
        CHECK(parts[i].iov_base == sent[i]); /* the list is as it was */
    return (void *)(intptr_t)all;
}

/* More buffers than a call takes, and more bytes than a descriptor accepts. */
static void check_many(struct ends ends)
{
    for (int i = 0; i < PARTS; i++)
        memset(sent[i], 'a' + i % 26, PART);
    STRAND_SCOPE(scope);
    strand writer = strand_spawn_with(scope, STRAND_ATTR(.stack_size = 256 << 10), write_many, &ends.out, sizeof(int));
    int64_t size = 0, at = 0;
    for (int i = 0; i < PARTS; i++)
        size += i % (PART + 1);
    CHECK_EQ(strand_read_all(ends.in, received, (size_t)size), size);
    for (int i = 0; i < PARTS; at += i++ % (PART + 1))
        CHECK_EQ(memcmp(received + at, sent[i], (size_t)(i % (PART + 1))), 0);
    CHECK_EQ((int64_t)(intptr_t)strand_join(writer), size);
}

TEST_INSIDE(all_bytes_of_many_buffers_arrive_in_their_order)
{
    ENDS ends = of_tcp();
    check_many(ends);
    ENDS pipe = of_pipe();
    check_many(pipe);
}

/* On sockets whose messages have ends, another kind of call would send, or take, several. */
static void check_message(int type, int64_t (*write_list)(int, const struct iovec *, int))
{
    enum { ALL = 1024, SIZE = 7 };
    static char out[ALL * SIZE], in[ALL * SIZE];
    static struct iovec put[ALL], take[ALL];
    int fds[2];
    for (int i = 0; i < ALL; i++) {
        memset(out + i * SIZE, 'a' + i % 26, SIZE);
        put[i] = (struct iovec){out + i * SIZE, i ? SIZE : 0}; /* the first is empty */
        take[i] = (struct iovec){in + i * SIZE, i ? SIZE : 0};
    }
    CHECK_EQ(socketpair(AF_UNIX, type, 0, fds), 0);
    ENDS ends = {fds[0], fds[1]};
    memset(in, 0, sizeof in);
    CHECK_EQ(write_list(ends.out, put, ALL), sizeof out - SIZE);
    CHECK_EQ(write_list(ends.out, put, 2), SIZE);
    CHECK_EQ(strand_readv(ends.in, take, ALL), sizeof in - SIZE);
    CHECK_EQ(memcmp(in + SIZE, out + SIZE, sizeof out - SIZE), 0);
    CHECK_EQ(strand_readv(ends.in, take, ALL), SIZE);
}

TEST_SYSTEM_INSIDE(all_buffers_of_a_call_are_one_message)
{
    check_message(SOCK_SEQPACKET, strand_writev);
    check_message(SOCK_SEQPACKET, strand_writev_all);
    check_message(SOCK_DGRAM, strand_writev);
    check_message(SOCK_DGRAM, strand_writev_all);
}

TEST_SYSTEM_INSIDE(a_message_of_many_buffers_that_is_too_large_is_refused_whole)
{
    int fds[2];
    struct iovec parts[100];
    char byte;
    for (int i = 0; i < 100; i++)
        parts[i] = (struct iovec){received, sizeof received};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    {
        ENDS ends = {fds[0], fds[1]};
        CHECK_EQ(strand_writev(ends.out, parts, 100), -EMSGSIZE);
        CHECK_EQ(strand_writev_all(ends.out, parts, 100), -EMSGSIZE);
        CHECK_EQ(strand_writev(ends.out, &(struct iovec){&byte, 1}, 1), 1);
        CHECK_EQ(strand_readv(ends.in, parts, 100), 1);
    }
}

static void *write_forever(void *fd)
{
    const struct iovec parts[] = {{received, 3}, {received, sizeof received - 3}};
    STRAND_IGNORE(strand_writev_all(*(const int *)fd, parts, 2));
    CHECK_FAIL("nobody reads all of it");
    return fd;
}

static void *write_and_tell(void *fd)
{
    strand_exception *e = strand_try(write_forever, fd, NULL);
    CHECK(strand_exception_is(e, &STRAND_INTERRUPTED));
    uint64_t progress = strand_exception_progress(e);
    strand_exception_release(e);
    return (void *)(uintptr_t)progress;
}

TEST_INSIDE(an_interrupted_write_tells_how_far_it_came)
{
    struct ends ends = of_pipe();
    uint64_t progress;
    {
        STRAND_SCOPE(scope);
        strand writer = strand_spawn(scope, write_and_tell, &ends.out);
        test_await_blocked("waits for descriptor", 1);
        strand_cancel(writer, NULL);
        progress = (uint64_t)(uintptr_t)strand_join(writer);
    }
    CHECK_EQ(strand_close(ends.out), 0);
    CHECK_EQ(strand_read_all(ends.in, received, sizeof received), (int64_t)progress);
    CHECK(progress > 0 && progress < sizeof received);
    CHECK_EQ(strand_close(ends.in), 0);
}

TEST_INSIDE(the_end_of_a_stream_and_a_reader_that_has_gone_are_results)
{
    char byte;
    const struct iovec room = {&byte, 1}, x = part("x");
    struct ends ends = of_pipe();
    CHECK_EQ(strand_close(ends.out), 0);
    CHECK_EQ(strand_readv(ends.in, &room, 1), 0);
    CHECK_EQ(strand_close(ends.in), 0);
    ends = of_pipe();
    CHECK_EQ(strand_close(ends.in), 0);
    CHECK_EQ(strand_writev(ends.out, &x, 1), -EPIPE);
    CHECK_EQ(strand_writev_all(ends.out, &x, 1), -EPIPE);
    CHECK_EQ(strand_close(ends.out), 0);
}

TEST_INSIDE(a_list_that_the_system_would_refuse_is_refused)
{
    ENDS ends = of_pipe();
    char byte = 'x';
    struct iovec large[2] = {{&byte, SSIZE_MAX}, {&byte, 1}}, nowhere = {NULL, 1}, empty = {NULL, 0};
    CHECK_EQ(strand_readv(ends.in, large, 2), -EINVAL);
    CHECK_EQ(strand_writev(ends.out, large, 2), -EINVAL);
    CHECK_EQ(strand_writev(ends.out, large, -1), -EINVAL);
    CHECK_EQ(strand_writev(ends.out, large, 1025), -EINVAL);
    CHECK_EQ(strand_writev_all(ends.out, &nowhere, 1), -EFAULT);
    CHECK_EQ(strand_writev_all(ends.out, &empty, 1), 0);
    CHECK_EQ(strand_readv(ends.in, &empty, 1), 0); /* it does not wait */
    CHECK_EQ(strand_readv(ends.in, NULL, 0), 0);
    CHECK_EQ(strand_readv(-1, &empty, 1), -EBADF);
}
