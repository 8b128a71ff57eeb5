/*
 * Sending from a file to a descriptor: by the system and by hand, at the pace of the peer, and what an interruption
 * leaves.
 *
 * The calls of the system that are defined here, instead of those of the C library, let a test see which thread sends,
 * and how much the library takes to be in memory.
 */
#define _GNU_SOURCE
#define SUITE file_send
#define ONE_SEED_IN 10 /* the system copies files in most of the time */
#include "blocker.h"
#include "counted.h"

#include "strand/exception.h"
#include "strand/file.h"
#include "strand/io.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

/* More than a pipe or a socket takes; simulated ones take less. */
enum { VERY_LARGE = 24 << 20 };

static int64_t large(void)
{
    return test_seed() ? 300000 : VERY_LARGE;
}

/* ---- what the system does ---------------------------------------------------------------------- */

#define REAL(name)                                                                                                     \
    __extension__({                                                                                                    \
        __typeof__(&name) real_;                                                                                       \
        *(void **)&real_ = dlsym(RTLD_NEXT, #name);                                                                    \
        real_;                                                                                                         \
    })

static struct blocker blocker;
static _Atomic bool in_memory;  /* all bytes are, whatever the file system says */
static _Atomic bool on_disk;    /* no byte of a file is in memory; calls that send wait for the blocker */
static _Atomic bool cannot;     /* the system sends from no file */
static _Atomic bool goes;       /* the peer goes after the first byte: the system says both */
static _Atomic int calls;       /* of sendfile */
static _Atomic int calls_there; /* those of another thread */
static pthread_t here;

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    if ((in_memory || on_disk) && count == 1 && parts->iov_len == 1)
        return in_memory ? 1 : (errno = EAGAIN, -1);
    return REAL(preadv2)(fd, parts, count, offset, flags);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
    calls++;
    calls_there += !pthread_equal(pthread_self(), here);
    if (on_disk)
        block_until_released(&blocker);
    if (goes && calls == 1) {
        pthread_kill(pthread_self(), SIGPIPE);
        size = 1;
    }
    return cannot ? (errno = EINVAL, -1) : REAL(sendfile)(to, from, offset, size);
}

/* ---- ends and files ---------------------------------------------------------------------------- */

static int file_of(size_t size)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    unsigned char *bytes = size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(i);
    if (size)
        CHECK_EQ(munmap(bytes, size), 0);
    return fd;
}

static void close_file(const int *fd)
{
    CHECK_EQ(strand_close(*fd), 0);
}
#define FILE_OF(name, size) __attribute__((cleanup(close_file))) const int name = file_of(size)

/* ---- the bytes --------------------------------------------------------------------------------- */

static void check_sent(struct ends *ends, int file, size_t size, int64_t offset, int64_t sent)
{
    struct reader reader = {.fd = ends->in, .at = (uint64_t)offset};
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, read_to_the_end, &reader);
    CHECK_EQ(strand_file_send(file, ends->out, size, offset), sent);
    CHECK_EQ(strand_close(ends->out), 0);
    ends->out = -1;
    strand_join(child);
    CHECK_EQ(reader.got, sent);
}

static void check_parts(struct ends (*make)(void))
{
    static const struct {
        size_t size;
        int64_t offset;
    } parts[] = {{0, 0}, {1, 0}, {4096, 0}, {4097, 1}, {100, 299900}, {1 << 17, 100001}, {300000, 0}};
    FILE_OF(file, 300000);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        ENDS ends = make();
        check_sent(&ends, file, parts[i].size, parts[i].offset, (int64_t)parts[i].size);
    }
}

TEST_INSIDE(parts_of_a_file_are_sent_through_a_connection)
{
    check_parts(of_tcp);
}

TEST_INSIDE(and_through_a_pipe)
{
    check_parts(of_pipe);
}

TEST_INSIDE(and_to_a_socket_that_blocks)
{
    check_parts(of_blocking);
}

TEST_INSIDE(and_where_the_system_can_not_send)
{
    cannot = true;
    check_parts(of_tcp);
}

TEST_INSIDE(the_end_of_the_file_ends_a_call)
{
    FILE_OF(file, 10);
    ENDS ends = of_pipe();
    CHECK_EQ(strand_file_send(file, ends.out, 100, 10), 0);
    CHECK_EQ(strand_file_send(file, ends.out, UINT64_MAX, 11), 0);
    CHECK_EQ(strand_file_send(file, ends.out, UINT64_MAX, INT64_MAX), 0);
    check_sent(&ends, file, SIZE_MAX, 3, 7);
}

TEST_INSIDE(a_file_gets_the_bytes_at_its_position)
{
    char text[16] = "";
    FILE_OF(file, 10);
    FILE_OF(copy, 4);
    CHECK_EQ(lseek(copy, 2, SEEK_SET), 2);
    CHECK_EQ(strand_file_send(file, copy, 100, 5), 5);
    CHECK_EQ(strand_file_read(copy, text, sizeof text, 0), 7);
    CHECK_EQ(memcmp(text, "\0\1\5\6\7\10\11", 7), 0);
    CHECK_EQ(lseek(file, 0, SEEK_CUR), 0);
}

TEST_INSIDE(a_device_gets_them_too)
{
    FILE_OF(file, 100000);
    int null = strand_file_open(AT_FDCWD, "/dev/null", O_WRONLY, 0);
    CHECK_EQ(strand_file_send(file, null, SIZE_MAX, 0), 100000);
    CHECK_EQ(strand_close(null), 0);
}

/* ---- errors ------------------------------------------------------------------------------------ */

TEST_INSIDE(a_file_that_cannot_be_sent_is_refused)
{
    FILE_OF(file, 10);
    ENDS ends = of_pipe();
    int directory = strand_file_open(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
    CHECK_EQ(strand_file_send(file, ends.out, 1, -1), -EINVAL);
    CHECK_EQ(strand_file_send(file, ends.out, 1, INT64_MIN), -EINVAL);
    CHECK_EQ(strand_file_send(file, 987654, 1, 0), -EBADF);
    CHECK_EQ(strand_file_send(file, -1, 1, 0), -EBADF);
    CHECK_EQ(strand_file_send(file, AT_FDCWD, 1, 0), -EBADF);
    CHECK_EQ(strand_file_send(987654, ends.out, 1, 0), -EBADF);
    CHECK_EQ(strand_file_send(ends.in, ends.out, 1, 0), -ESPIPE);
    CHECK_EQ(strand_file_send(directory, ends.out, 1, 0), -EISDIR);
    CHECK_EQ(strand_close(directory), 0);
    int direct = strand_file_open(AT_FDCWD, "/proc/self/exe", O_RDONLY | O_DIRECT, 0);
    if (direct < 0)
        return; /* its file system has no such files */
    CHECK_EQ(strand_file_send(direct, ends.out, 1, 0), -EINVAL);
    CHECK_EQ(strand_close(direct), 0);
}

/* SIGPIPE would end the process. */
static void check_without_reader(struct ends ends)
{
    FILE_OF(file, 10);
    CHECK_EQ(strand_close(ends.in), 0);
    int64_t sent;
    while ((sent = strand_file_send(file, ends.out, 10, 0)) == 10)
        strand_sleep(STRAND_MS); /* a connection hears of it later */
    CHECK(sent == -EPIPE || sent == -ECONNRESET);
    while (sent == -ECONNRESET)
        sent = strand_file_send(file, ends.out, 10, 0);
    CHECK_EQ(sent, -EPIPE);
    CHECK_EQ(strand_close(ends.out), 0);
}

TEST_INSIDE(nobody_who_reads_is_an_error_and_raises_no_signal)
{
    signal(SIGPIPE, SIG_DFL);
    check_without_reader(of_pipe());
    check_without_reader(of_tcp());
    check_without_reader(of_blocking());
}

TEST_SYSTEM_INSIDE(a_peer_that_goes_after_some_bytes_raises_no_signal)
{
    signal(SIGPIPE, SIG_DFL);
    FILE_OF(file, 10);
    ENDS ends = of_tcp();
    goes = true;
    CHECK_EQ(strand_file_send(file, ends.out, 10, 0), 10);
}

/* The signal of another call is on its way to this thread. */
static void *send_with_a_signal_pending(void *arg)
{
    sigset_t pipe, before, pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    pthread_kill(pthread_self(), SIGPIPE);
    FILE_OF(file, 10);
    struct ends ends = of_pipe();
    in_memory = true;
    CHECK_EQ(strand_close(ends.in), 0);
    CHECK_EQ(strand_file_send(file, ends.out, 10, 0), -EPIPE);
    CHECK_EQ(strand_close(ends.out), 0);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1);
    CHECK_EQ(sigtimedwait(&pipe, NULL, &(struct timespec){0}), SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return arg;
}

TEST_REAL(a_signal_that_was_pending_stays_so)
{
    strand_run(STRAND_OPTIONS(.threads = 1), send_with_a_signal_pending, NULL);
}

/* ---- waiting ----------------------------------------------------------------------------------- */

struct sender {
    int file, to;
    uint64_t size;
    int64_t sent;
    uint64_t progress; /* of an interrupted call */
};

static void *send_it(void *arg)
{
    struct sender *sender = arg;
    STRAND_TRY {
        sender->sent = strand_file_send(sender->file, sender->to, sender->size, 0);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        sender->progress = strand_exception_progress(e);
    }
    STRAND_END
    return arg;
}

/* A file is cut while it is sent. */
static void check_cut(struct ends ends)
{
    FILE_OF(file, large());
    struct sender sender = {.file = file, .to = ends.out, .size = large()};
    struct reader reader = {.fd = ends.in};
    STRAND_SCOPE(scope);
    strand sending = strand_spawn(scope, send_it, &sender);
    test_await_blocked("waits for descriptor", 1);
    CHECK_EQ(ftruncate(file, 4096), 0);
    strand reading = strand_spawn(scope, read_to_the_end, &reader);
    strand_join(sending);
    CHECK(sender.sent >= 4096 && sender.sent < large());
    CHECK_EQ(strand_file_send(file, ends.out, large(), sender.sent), 0);
    CHECK_EQ(strand_close(ends.out), 0);
    strand_join(reading);
    CHECK_EQ(reader.got, sender.sent);
    CHECK_EQ(strand_close(ends.in), 0);
}

static void check_pace(struct ends ends)
{
    FILE_OF(file, large());
    struct sender sender = {.file = file, .to = ends.out, .size = large()};
    struct reader reader = {.fd = ends.in};
    STRAND_SCOPE(scope);
    strand sending = strand_spawn(scope, send_it, &sender);
    test_await_blocked("waits for descriptor", 1); /* its thread goes on with this strand */
    strand reading = strand_spawn(scope, read_to_the_end, &reader);
    strand_join(sending);
    CHECK_EQ(sender.sent, large());
    CHECK_EQ(strand_close(ends.out), 0);
    strand_join(reading);
    CHECK_EQ(reader.got, large());
    CHECK_EQ(strand_close(ends.in), 0);
}

TEST_INSIDE(a_strand_waits_until_the_peer_has_room)
{
    check_pace(of_tcp());
    check_pace(of_pipe());
    check_pace(of_blocking());
}

static void check_interrupted(struct ends ends)
{
    FILE_OF(file, large());
    struct sender sender = {.file = file, .to = ends.out, .size = large(), .sent = -1};
    struct reader reader = {.fd = ends.in};
    STRAND_SCOPE(scope);
    strand sending = strand_spawn(scope, send_it, &sender);
    test_await_blocked("waits for descriptor", 1);
    strand_cancel(sending, NULL);
    strand_join(sending);
    CHECK_EQ(sender.sent, -1);
    CHECK(sender.progress > 0 && sender.progress < (uint64_t)large());
    CHECK_EQ(strand_close(ends.out), 0);
    strand_join(strand_spawn(scope, read_to_the_end, &reader));
    CHECK_EQ(reader.got, sender.progress);
    CHECK_EQ(strand_close(ends.in), 0);
}

TEST_INSIDE(an_interrupted_strand_knows_how_much_has_gone)
{
    check_interrupted(of_tcp());
    check_interrupted(of_pipe());
    check_interrupted(of_blocking());
}

static void *note_deadline(void *arg)
{
    struct sender *sender = arg;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(100 * STRAND_MS));
        sender->sent = strand_file_send(sender->file, sender->to, sender->size, 0);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        sender->progress = strand_exception_progress(e);
    }
    STRAND_END
    return arg;
}

TEST_INSIDE(a_deadline_tells_how_much_has_gone)
{
    FILE_OF(file, large());
    ENDS ends = of_tcp();
    struct sender sender = {.file = file, .to = ends.out, .size = large(), .sent = -1};
    struct reader reader = {.fd = ends.in};
    note_deadline(&sender);
    CHECK_EQ(sender.sent, -1);
    CHECK_EQ(strand_close(ends.out), 0);
    ends.out = -1;
    read_to_the_end(&reader);
    CHECK_EQ(reader.got, sender.progress);
}

static void *send_byte(void *arg)
{
    const struct sender *sender = arg;
    (void)strand_file_send(sender->file, sender->to, 1, 0);
    return arg;
}

TEST_INSIDE(an_interrupted_strand_sends_nothing)
{
    FILE_OF(file, 10);
    ENDS ends = of_pipe();
    struct sender sender = {.file = file, .to = ends.out};
    test_run_cancelled(send_byte, &sender);
    struct reader reader = {.fd = ends.in};
    CHECK_EQ(strand_close(ends.out), 0);
    ends.out = -1;
    read_to_the_end(&reader);
    CHECK_EQ(reader.got, 0);
}

TEST_INSIDE(a_call_ends_when_its_target_is_closed)
{
    FILE_OF(file, large());
    struct ends ends = of_tcp();
    struct sender sender = {.file = file, .to = ends.out, .size = large()};
    STRAND_SCOPE(scope);
    strand sending = strand_spawn(scope, send_it, &sender);
    test_await_blocked("waits for descriptor", 1);
    CHECK_EQ(strand_close(ends.out), 0);
    strand_join(sending);
    CHECK(sender.sent > 0 && sender.sent < large());
    CHECK_EQ(strand_close(ends.in), 0);
}

TEST_INSIDE(a_file_that_is_cut_ends_the_call)
{
    cannot = true; /* through a buffer, the bytes are those of the time when they were read */
    check_cut(of_tcp());
}

TEST_SYSTEM_INSIDE(a_file_that_is_cut_ends_the_call_of_the_system)
{
    FILE_OF(file, VERY_LARGE);
    struct ends ends = of_tcp();
    struct sender sender = {.file = file, .to = ends.out, .size = VERY_LARGE};
    STRAND_SCOPE(scope);
    strand sending = strand_spawn(scope, send_it, &sender);
    test_await_blocked("waits for descriptor", 1);
    CHECK_EQ(ftruncate(file, 0), 0);
    CHECK_EQ(strand_close(ends.in), 0); /* what is on its way refers to memory that is not the file's any more */
    strand_join(sending);
    CHECK(sender.sent > 0 && sender.sent < VERY_LARGE);
    CHECK_EQ(strand_close(ends.out), 0);
}

/* ---- which thread ------------------------------------------------------------------------------ */

static void *send_from_memory(void *arg)
{
    FILE_OF(file, 300000);
    ENDS ends = of_tcp();
    here = pthread_self();
    in_memory = true;
    check_sent(&ends, file, 300000, 0, 300000);
    CHECK(calls > 0);
    CHECK_EQ(calls_there, 0);
    return arg;
}

TEST_REAL(bytes_in_memory_are_sent_by_the_thread_of_the_strand)
{
    strand_run(STRAND_OPTIONS(.threads = 1), send_from_memory, NULL);
}

/* The thread of the strand is free meanwhile, and the call is finished although its strand is cancelled. */
static void *send_from_disk(void *arg)
{
    FILE_OF(file, 1000);
    ENDS ends = of_tcp();
    struct sender sender = {.file = file, .to = ends.out, .size = 1000, .sent = -1};
    struct reader reader = {.fd = ends.in};
    here = pthread_self();
    on_disk = true;
    STRAND_SCOPE(scope);
    strand sending = strand_spawn(scope, send_it, &sender);
    YIELD_UNTIL(blocker.entered == 1);
    CHECK_EQ(calls_there, 1);
    strand_cancel(sending, NULL);
    strand_yield();
    CHECK(!strand_ended(sending));
    blocker.released = 1;
    strand_join(sending);
    CHECK_EQ(sender.sent, 1000);
    CHECK_EQ(strand_close(ends.out), 0);
    ends.out = -1;
    read_to_the_end(&reader);
    CHECK_EQ(reader.got, 1000);
    return arg;
}

TEST_REAL(bytes_that_are_not_in_memory_are_sent_by_another_thread)
{
    strand_run(STRAND_OPTIONS(.threads = 1), send_from_disk, NULL);
}
