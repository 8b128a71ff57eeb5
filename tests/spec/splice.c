/*
 * Moving bytes from a descriptor to another one: between all kinds of them, at the pace of the slower side, and where
 * each byte is after an interruption and after an error.
 *
 * The calls of the system that are defined here, instead of those of the C library, let a test see which thread moves
 * what, and refuse it.
 */
#define _GNU_SOURCE
#define SUITE splice
#define ONE_SEED_IN 10 /* real descriptors are the same under each */
#include "counted.h"

#include "strand/exception.h"
#include "strand/file.h"
#include "strand/io.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- what the system does ---------------------------------------------------------------------- */

#define REAL(name)                                                                                                     \
    __extension__({                                                                                                    \
        __typeof__(&name) real_;                                                                                       \
        *(void **)&real_ = dlsym(RTLD_NEXT, #name);                                                                    \
        real_;                                                                                                         \
    })

static _Atomic int refusal;      /* the error of each splice; 0: none */
static _Atomic int refused_at;   /* only to this descriptor, if it is not 0 */
static _Atomic int almost_full;  /* this descriptor takes one byte, and is full then */
static _Atomic int calls;        /* of splice that have moved something */
static _Atomic int calls_there;  /* those of another thread */
static _Atomic bool no_pipe;     /* there are no descriptors for one */
static _Atomic int last_pipe[2]; /* the last that was made */
static pthread_t here;

ssize_t splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags)
{
    if (refusal && (!refused_at || to == refused_at))
        return errno = refusal, -1;
    if (to == almost_full) {
        almost_full = -to;
        size = 1;
    } else if (to == -almost_full) {
        return errno = EAGAIN, -1;
    }
    ssize_t moved = REAL(splice)(from, from_offset, to, to_offset, size, flags);
    calls += moved > 0;
    calls_there += moved > 0 && !pthread_equal(pthread_self(), here);
    return moved;
}

int pipe2(int fds[2], int flags)
{
    if (no_pipe)
        return errno = EMFILE, -1;
    int result = REAL(pipe2)(fds, flags);
    last_pipe[0] = fds[0];
    last_pipe[1] = fds[1];
    return result;
}

/* ---- ends and files ---------------------------------------------------------------------------- */

/* More than all of a chain of narrow ends takes. */
static uint64_t large(void)
{
    return test_seed() ? 300000 : 4 << 20;
}

static struct ends of_unix(void)
{
    struct ends ends = of_blocking();
    CHECK(fcntl(ends.in, F_SETFL, O_NONBLOCK) == 0 && fcntl(ends.out, F_SETFL, O_NONBLOCK) == 0);
    return ends;
}

/* Has little room. Pipes and simulated ends have little anyway. */
static struct ends narrow(struct ends ends)
{
    const int size = 32 << 10;
    (void)setsockopt(ends.out, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    (void)setsockopt(ends.in, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    return ends;
}

typedef struct ends make_fn(void);
static make_fn *const kinds[] = {of_pipe, of_tcp, of_unix, of_blocking};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void for_all_kinds(void (*check)(struct ends source, struct ends target))
{
    for (int i = 0; i < KINDS * KINDS; i++)
        check(narrow(kinds[i / KINDS]()), narrow(kinds[i % KINDS]()));
}

static int file_of(const char *text, int flags)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && lseek(fd, 0, SEEK_SET) == 0);
    CHECK_EQ(fcntl(fd, F_SETFL, flags), 0);
    return fd;
}

static void close_file(const int *fd)
{
    CHECK_EQ(strand_close(*fd), 0);
}
#define FILE_OF(name, text, flags) __attribute__((cleanup(close_file))) const int name = file_of(text, flags)

static void check_file(int fd, const char *text)
{
    char bytes[64] = "";
    CHECK_EQ(strand_file_read(fd, bytes, sizeof bytes - 1, 0), strlen(text));
    CHECK_STR(bytes, text);
}

static void put(int fd, const char *text)
{
    CHECK_EQ(strand_write_all(fd, text, strlen(text)), strlen(text));
}

static void check_next(int fd, const char *text)
{
    char bytes[64] = "";
    CHECK_EQ(strand_read_all(fd, bytes, strlen(text)), strlen(text));
    CHECK_STR(bytes, text);
}

/* ---- the bytes --------------------------------------------------------------------------------- */

/* Takes over both. */
static void check_all_moved(struct ends source, struct ends target, uint64_t size)
{
    struct writer writer = {.fd = source.out, .size = size};
    struct reader reader = {.fd = target.in};
    strand_spliced spliced = {0};
    STRAND_SCOPE(scope);
    strand writing = strand_spawn(scope, write_and_close, &writer);
    strand reading = strand_spawn(scope, read_to_the_end, &reader);
    CHECK_EQ(strand_splice(source.in, target.out, UINT64_MAX, &spliced), size);
    CHECK_EQ(spliced.moved, size);
    CHECK(!spliced.rest && !spliced.rest_size);
    CHECK_EQ(strand_close(target.out), 0);
    strand_join(writing);
    strand_join(reading);
    CHECK_EQ(reader.got, size);
    CHECK_EQ(strand_close(source.in), 0);
    CHECK_EQ(strand_close(target.in), 0);
}

static void check_sizes(struct ends source, struct ends target)
{
    check_all_moved(source, target, 300001);
    for (int i = 0; i < KINDS * KINDS; i++)
        check_all_moved(kinds[i / KINDS](), kinds[i % KINDS](), (uint64_t)i % 2);
}

TEST_INSIDE(streams_are_moved_between_pipes_and_sockets)
{
    for_all_kinds(check_sizes);
}

static void check_large(struct ends source, struct ends target)
{
    check_all_moved(source, target, 3 * large());
}

TEST_INSIDE(a_long_stream_is_moved_at_the_pace_of_its_reader)
{
    for_all_kinds(check_large);
}

TEST_REAL_INSIDE(the_system_moves_the_bytes)
{
    for (int i = 0; i < KINDS * KINDS; i++) {
        bool blocks = kinds[i / KINDS] == of_blocking || kinds[i % KINDS] == of_blocking;
        calls = 0;
        check_all_moved(kinds[i / KINDS](), kinds[i % KINDS](), 100000);
        CHECK(calls > 0 || blocks);
    }
}

static void check_by_hand(int error)
{
    refusal = error;
    check_all_moved(of_pipe(), of_tcp(), 100000);
    check_all_moved(of_tcp(), of_tcp(), 100000);
    check_all_moved(of_unix(), of_pipe(), 100000);
    struct ends target = of_tcp();
    refused_at = target.out; /* not to the pipe between the two */
    check_all_moved(of_tcp(), target, 100000);
    refused_at = 0;
}

TEST_INSIDE(the_strand_moves_them_where_the_system_can_not)
{
    check_by_hand(EINVAL);
    check_by_hand(ENOSYS);
    check_by_hand(EPERM);
}

TEST_REAL_INSIDE(a_system_that_never_has_room_is_not_asked_for_ever)
{
    refusal = EAGAIN;
    check_all_moved(of_pipe(), of_tcp(), 100000);
    check_all_moved(of_unix(), of_pipe(), 100000);
}

TEST_INSIDE(a_process_without_descriptors_moves_bytes_too)
{
    struct ends source = of_tcp(), target = of_unix();
    no_pipe = true;
    check_all_moved(source, target, 100000);
}

TEST_INSIDE(a_call_moves_no_more_than_it_was_asked_for)
{
    make_fn *const sources[] = {of_pipe, of_tcp, of_unix};
    for (int i = 0; i < 3; i++) {
        ENDS source = sources[i](), target = of_tcp();
        put(source.out, "headbody");
        CHECK_EQ(strand_splice(source.in, target.out, 4, NULL), 4);
        CHECK_EQ(strand_splice(source.in, target.out, 0, NULL), 0);
        check_next(target.in, "head");
        check_next(source.in, "body");
    }
}

static void *echo(void *arg)
{
    CHECK_EQ(strand_splice(*(int *)arg, *(int *)arg, UINT64_MAX, NULL), 5);
    return arg;
}

TEST_INSIDE(a_socket_may_be_both)
{
    ENDS ends = of_tcp();
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, echo, &ends.in);
    put(ends.out, "hello");
    check_next(ends.out, "hello");
    CHECK_EQ(strand_shutdown(ends.out, SHUT_WR), 0);
    strand_join(child);
}

/* ---- files ------------------------------------------------------------------------------------- */

static void check_into_file(struct ends source)
{
    FILE_OF(file, "0123456789", 0);
    FILE_OF(end, "0123456789", O_APPEND);
    put(source.out, "abcdef");
    CHECK_EQ(lseek(file, 2, SEEK_SET), 2);
    CHECK_EQ(strand_splice(source.in, file, 3, NULL), 3);
    CHECK_EQ(strand_splice(source.in, end, 1, NULL), 1);
    CHECK_EQ(strand_close(source.out), 0);
    CHECK_EQ(strand_splice(source.in, file, 100, NULL), 2);
    check_file(file, "01abcef789");
    check_file(end, "0123456789d");
    CHECK_EQ(strand_close(source.in), 0);
}

TEST_INSIDE(a_file_gets_the_bytes_at_its_position_or_at_its_end)
{
    for (int i = 0; i < KINDS; i++)
        check_into_file(kinds[i]());
}

TEST_INSIDE(a_file_is_read_from_its_position)
{
    FILE_OF(file, "0123456789", 0);
    FILE_OF(other, "", 0);
    for (int i = 0; i < KINDS; i++) {
        ENDS target = kinds[i]();
        strand_spliced spliced = {0};
        CHECK_EQ(lseek(file, 1, SEEK_SET), 1);
        CHECK_EQ(strand_splice(file, target.out, 3, &spliced), 3);
        CHECK_EQ(lseek(file, 0, SEEK_CUR), 4);
        CHECK_EQ(strand_splice(file, target.out, UINT64_MAX, &spliced), 6);
        CHECK_EQ(strand_splice(file, target.out, 1, &spliced), 0);
        CHECK_EQ(spliced.moved, 9);
        check_next(target.in, "123456789");
    }
    CHECK_EQ(lseek(file, 7, SEEK_SET), 7);
    CHECK_EQ(strand_splice(file, other, UINT64_MAX, NULL), 3);
    check_file(other, "789");
}

static void *write_to_file(void *arg)
{
    ENDS source = of_pipe(), other = of_unix();
    FILE_OF(file, "", 0);
    here = pthread_self();
    put(source.out, "abc");
    put(other.out, "def");
    CHECK_EQ(strand_splice(source.in, file, 3, NULL), 3);
    CHECK_EQ(calls_there, 1);
    CHECK_EQ(calls, 1);
    CHECK_EQ(strand_splice(other.in, file, 3, NULL), 3);
    CHECK_EQ(calls_there, 2);
    CHECK_EQ(calls, 3);
    check_file(file, "abcdef");
    return arg;
}

TEST_REAL(a_thread_that_runs_strands_does_not_write_to_files)
{
    strand_run(STRAND_OPTIONS(.threads = 1), write_to_file, NULL);
}

/* ---- errors ------------------------------------------------------------------------------------ */

TEST_INSIDE(what_is_no_stream_is_refused)
{
    ENDS ends = of_pipe();
    int directory = strand_file_open(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
    CHECK_EQ(strand_splice(ends.in, -1, 1, NULL), -EBADF);
    CHECK_EQ(strand_splice(ends.in, AT_FDCWD, 1, NULL), -EBADF);
    CHECK_EQ(strand_splice(ends.in, 987654, 1, NULL), -EBADF);
    CHECK_EQ(strand_splice(-1, ends.out, 1, NULL), -EBADF);
    CHECK_EQ(strand_splice(987654, ends.out, 1, NULL), -EBADF);
    CHECK_EQ(strand_splice(directory, ends.out, 1, NULL), -EISDIR);
    CHECK_EQ(strand_close(directory), 0);
}

TEST_SYSTEM_INSIDE(sockets_that_keep_messages_apart_are_refused)
{
    const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET};
    ENDS pipe = of_pipe();
    for (int i = 0; i < 2; i++) {
        int fds[2];
        CHECK_EQ(socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        CHECK_EQ(strand_splice(fds[0], pipe.out, 1, NULL), -EPROTOTYPE);
        CHECK_EQ(strand_splice(pipe.in, fds[0], 1, NULL), -EPROTOTYPE);
        CHECK_EQ(strand_close(fds[0]), 0);
        CHECK_EQ(strand_close(fds[1]), 0);
    }
}

/* SIGPIPE would end the process. What the broken side did not get goes elsewhere. */
static void check_without_reader(struct ends source, struct ends target)
{
    strand_spliced spliced = {0};
    int64_t moved;
    CHECK_EQ(strand_close(target.in), 0);
    uint64_t put = 0;
    do {
        CHECK_EQ(strand_write_all(source.out, (char[]){(char)byte_at(put)}, 1), 1);
        put++;
    } while ((moved = strand_splice(source.in, target.out, 1, &spliced)) == 1); /* a connection hears of it later */
    CHECK(moved == -EPIPE || moved == -ECONNRESET);
    CHECK_EQ(spliced.moved, put - 1);
    CHECK_EQ(strand_close(target.out), 0);
    ENDS other = of_pipe();
    CHECK_EQ(strand_splice(source.in, other.out, 1, &spliced), 1);
    CHECK_EQ(spliced.moved, put);
    CHECK(!spliced.rest);
    char byte;
    CHECK_EQ(strand_read(other.in, &byte, 1), 1);
    CHECK_EQ((unsigned char)byte, byte_at(put - 1));
    close_ends(&source);
}

TEST_INSIDE(what_a_broken_side_did_not_get_goes_to_another_one)
{
    signal(SIGPIPE, SIG_DFL);
    for_all_kinds(check_without_reader);
}

/* The peer gets an error. */
static void reset(struct ends *ends)
{
    const struct linger at_once = {.l_onoff = 1};
    CHECK_EQ(setsockopt(ends->out, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    CHECK_EQ(strand_close(ends->out), 0);
    ends->out = -1;
}

TEST_SYSTEM_INSIDE(an_error_of_the_source_comes_after_its_bytes)
{
    ENDS source = of_tcp(), target = of_unix();
    strand_spliced spliced = {0};
    put(source.out, "abc");
    CHECK_EQ(strand_splice(source.in, target.out, 3, &spliced), 3);
    reset(&source);
    CHECK_EQ(strand_splice(source.in, target.out, UINT64_MAX, &spliced), -ECONNRESET);
    CHECK_EQ(spliced.moved, 3);
    check_next(target.in, "abc");
}

static void *read_two(void *fd)
{
    char bytes[2];
    CHECK_EQ(strand_read_all(*(int *)fd, bytes, 2), 1);
    return fd;
}

/* strand_read_all returns the byte, and leaves the error to the next read. */
TEST_SYSTEM_INSIDE(an_error_that_another_call_has_left_is_reported)
{
    ENDS source = of_tcp(), target = of_unix();
    STRAND_SCOPE(scope);
    strand reading = strand_spawn(scope, read_two, &source.in);
    put(source.out, "a");
    test_await_blocked("waits for descriptor", 1);
    reset(&source);
    strand_join(reading);
    CHECK_EQ(strand_splice(source.in, target.out, 1, NULL), -ECONNRESET);
}

/* ---- interruptions ----------------------------------------------------------------------------- */

struct relay {
    int from, to;
    int64_t result;
    uint64_t progress; /* of an interrupted call */
    int64_t limit;     /* of time */
    strand_spliced *into, spliced;
};

static void *relay_all(void *arg)
{
    struct relay *relay = arg;
    STRAND_TRY {
        relay->result = strand_splice(relay->from, relay->to, UINT64_MAX, relay->into);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        relay->progress = strand_exception_progress(e);
    }
    STRAND_END
    return arg;
}

/* The same call once more moves what is left. */
static void check_interrupted(struct ends source, struct ends target)
{
    struct writer writer = {.fd = source.out, .size = large()};
    struct reader reader = {.fd = target.in};
    struct relay relay = {source.in, target.out, .result = -1, .into = &relay.spliced};
    STRAND_SCOPE(scope);
    strand writing = strand_spawn(scope, write_and_close, &writer);
    strand relaying = strand_spawn(scope, relay_all, &relay);
    CHECK_EQ(strand_read(target.in, &(char){0}, 1), 1); /* something has gone */
    reader.at = 1;
    test_await_blocked("waits for descriptor", 2);
    strand_cancel(relaying, NULL);
    strand_join(relaying);
    CHECK_EQ(relay.result, -1);
    CHECK(relay.progress > 0 && relay.progress < large());
    CHECK_EQ(relay.progress, relay.spliced.moved);
    strand reading = strand_spawn(scope, read_to_the_end, &reader);
    CHECK_EQ(strand_splice(source.in, target.out, UINT64_MAX, &relay.spliced), large() - relay.progress);
    CHECK_EQ(relay.spliced.moved, large());
    CHECK(!relay.spliced.rest);
    CHECK_EQ(strand_close(target.out), 0);
    strand_join(writing);
    strand_join(reading);
    CHECK_EQ(reader.got, large() - 1);
    CHECK_EQ(strand_close(source.in), 0);
    CHECK_EQ(strand_close(target.in), 0);
}

TEST_INSIDE(after_an_interruption_no_byte_is_lost)
{
    for_all_kinds(check_interrupted);
}

/* One byte is in the target, and all others are on their way. */
static void stop_with_rest(struct relay *relay, const struct ends *source, const struct ends *target, const char *text)
{
    relay->from = source->in;
    relay->to = target->out;
    relay->result = -1;
    put(source->out, text);
    almost_full = target->out;
    STRAND_SCOPE(scope);
    strand relaying = strand_spawn(scope, relay_all, relay);
    test_await_blocked("waits for descriptor", 1);
    strand_cancel(relaying, NULL);
    strand_join(relaying);
    almost_full = 0;
    CHECK_EQ(relay->result, -1);
    CHECK_EQ(relay->progress, 1);
    check_next(target->in, (char[]){*text, 0}); /* the system reports that there is room */
    CHECK(fcntl(last_pipe[0], F_GETFD) < 0 && fcntl(last_pipe[1], F_GETFD) < 0); /* those between the two */
}

TEST_REAL_INSIDE(bytes_that_are_on_their_way_are_the_callers)
{
    struct relay relay = {.into = &relay.spliced};
    ENDS source = of_tcp(), target = of_unix();
    stop_with_rest(&relay, &source, &target, "0123456789");
    CHECK_EQ(relay.spliced.moved, 1);
    CHECK_EQ(relay.spliced.rest_size, 9);
    CHECK_EQ(memcmp(relay.spliced.rest, "123456789", 9), 0);
    put(source.out, "abc");
    CHECK_EQ(strand_splice(source.in, target.out, 4, &relay.spliced), 4); /* they are more than that */
    CHECK_EQ(relay.spliced.rest_size, 5);
    CHECK_EQ(strand_splice(source.in, target.out, 8, &relay.spliced), 8);
    CHECK(!relay.spliced.rest);
    CHECK_EQ(relay.spliced.moved, 13);
    check_next(target.in, "123456789abc");
}

TEST_REAL_INSIDE(without_a_place_for_them_they_are_dropped)
{
    struct relay relay = {.into = NULL};
    ENDS source = of_tcp(), target = of_unix();
    stop_with_rest(&relay, &source, &target, "0123456789");
    put(source.out, "abc");
    CHECK_EQ(strand_splice(source.in, target.out, 3, NULL), 3);
    check_next(target.in, "abc");
}

static char *text_on_heap(const char *text)
{
    char *copy = malloc(strlen(text));
    CHECK(copy);
    return memcpy(copy, text, strlen(text));
}

TEST_INSIDE(bytes_of_the_caller_go_first)
{
    FILE_OF(file, "file", 0);
    for (int i = 0; i < KINDS; i++) {
        ENDS source = of_tcp(), target = kinds[i]();
        strand_spliced spliced = {.rest = text_on_heap("head"), .rest_size = 4};
        put(source.out, "body");
        CHECK_EQ(strand_splice(source.in, target.out, 8, &spliced), 8);
        spliced.rest = text_on_heap("more");
        spliced.rest_size = 4;
        CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
        CHECK_EQ(strand_splice(file, target.out, UINT64_MAX, &spliced), 8);
        CHECK(!spliced.rest);
        CHECK_EQ(spliced.moved, 16);
        check_next(target.in, "headbodymorefile");
    }
}

TEST_INSIDE(a_call_that_fails_at_once_leaves_the_callers_bytes_alone)
{
    ENDS ends = of_pipe();
    char *head = text_on_heap("head");
    strand_spliced spliced = {.rest = head, .rest_size = 4};
    CHECK_EQ(strand_splice(ends.in, -1, 8, &spliced), -EBADF);
    CHECK(spliced.rest == head && spliced.rest_size == 4);
    free(head);
}

static void *relay_for_a_while(void *arg)
{
    struct relay *relay = arg;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(relay->limit));
        relay->result = strand_splice(relay->from, relay->to, UINT64_MAX, relay->into);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        relay->progress = strand_exception_progress(e);
    }
    STRAND_END
    return arg;
}

/* On a busy machine the time may be over before anything has gone: then a longer one is tried. */
TEST_INSIDE(a_deadline_tells_how_much_has_gone)
{
    int64_t progress = 0;
    for (int64_t limit = 100 * STRAND_MS; !progress; limit *= 2) {
        ENDS source = of_tcp(), target = of_tcp();
        struct relay relay = {source.in, target.out, .result = -1, .into = &relay.spliced, .limit = limit};
        put(source.out, "abc");
        relay_for_a_while(&relay);
        progress = relay.progress;
        CHECK_EQ(relay.result, -1);
        CHECK_EQ(relay.spliced.moved, progress);
        CHECK(!relay.spliced.rest);
        if (progress)
            check_next(target.in, "abc");
    }
    CHECK_EQ(progress, 3);
}

/* An urgent byte is no part of the stream, and ends neither it nor the call. */
TEST_SYSTEM_INSIDE(an_urgent_byte_is_left_out)
{
    make_fn *const targets[] = {of_pipe, of_tcp, of_unix};
    for (int i = 0; i < 3; i++) {
        ENDS source = of_tcp(), target = targets[i]();
        put(source.out, "abc");
        CHECK_EQ(send(source.out, "!", 1, MSG_OOB), 1);
        put(source.out, "def");
        CHECK_EQ(strand_splice(source.in, target.out, 6, NULL), 6);
        check_next(target.in, "abcdef");
        CHECK_EQ(send(source.out, "!", 1, MSG_OOB), 1);
        put(source.out, "ghi");
        CHECK_EQ(strand_shutdown(source.out, SHUT_WR), 0);
        CHECK_EQ(strand_splice(source.in, target.out, UINT64_MAX, NULL), 3);
        check_next(target.in, "ghi");
    }
}

TEST_INSIDE(an_interrupted_strand_moves_nothing)
{
    ENDS source = of_pipe(), target = of_pipe();
    struct relay relay = {source.in, target.out, .result = -1, .into = &relay.spliced};
    put(source.out, "abc");
    test_run_cancelled(relay_all, &relay);
    CHECK_EQ(relay.spliced.moved, 0);
    CHECK(!relay.spliced.rest);
    check_next(source.in, "abc");
}

static void check_closed(bool source_goes)
{
    struct ends source = narrow(of_tcp()), target = narrow(of_tcp());
    struct writer writer = {.fd = source.out, .size = source_goes ? 0 : large()};
    struct relay relay = {source.in, target.out, .into = &relay.spliced};
    STRAND_SCOPE(scope);
    strand writing = source_goes ? (strand){{0, 0}} : strand_spawn(scope, write_and_close, &writer);
    strand relaying = strand_spawn(scope, relay_all, &relay);
    test_await_blocked("waits for descriptor", source_goes ? 1 : 2);
    CHECK_EQ(strand_close(source_goes ? source.in : target.out), 0);
    strand_join(relaying);
    CHECK_EQ(relay.result, -EBADF);
    struct reader reader = {.fd = target.in};
    read_to_the_end(source_goes ? (CHECK_EQ(strand_close(target.out), 0), &reader) : &reader);
    CHECK_EQ(reader.got, relay.spliced.moved);
    CHECK_EQ(strand_close(target.in), 0);
    if (source_goes) {
        CHECK_EQ(strand_close(source.out), 0);
        return;
    }
    ENDS other = of_tcp();
    struct reader rest = {.fd = other.in, .at = reader.at};
    strand reading = strand_spawn(scope, read_to_the_end, &rest);
    CHECK_EQ(strand_splice(source.in, other.out, UINT64_MAX, &relay.spliced), large() - reader.got);
    CHECK_EQ(strand_shutdown(other.out, SHUT_WR), 0);
    strand_join(reading);
    strand_join(writing);
    CHECK_EQ(reader.got + rest.got, large());
    CHECK_EQ(strand_close(source.in), 0);
}

TEST_INSIDE(a_call_ends_when_one_of_its_descriptors_is_closed)
{
    check_closed(true);
    check_closed(false);
}

/* ---- several strands --------------------------------------------------------------------------- */

/* Each of them waits for both sides in turn. */
static void check_several(struct ends source, struct ends target)
{
    enum { STRANDS = 3 };
    struct writer writer = {.fd = source.out, .size = large()};
    struct relay relays[STRANDS];
    uint64_t got = 0;
    STRAND_SCOPE(scope);
    strand writing = strand_spawn(scope, write_and_close, &writer), relaying[STRANDS];
    for (int i = 0; i < STRANDS; i++) {
        relays[i] = (struct relay){source.in, target.out, .into = &relays[i].spliced};
        relaying[i] = strand_spawn(scope, relay_all, &relays[i]);
    }
    char *buffer = malloc(65536);
    CHECK(buffer);
    while (got < large()) {
        int64_t part = strand_read(target.in, buffer, 65536);
        CHECK(part > 0);
        got += (uint64_t)part;
    }
    free(buffer);
    strand_join(writing);
    uint64_t moved = 0;
    for (int i = 0; i < STRANDS; i++) {
        strand_join(relaying[i]);
        moved += relays[i].spliced.moved;
        CHECK_EQ(relays[i].result, relays[i].spliced.moved);
    }
    CHECK_EQ(moved, large());
    CHECK_EQ(strand_close(source.in), 0);
    close_ends(&target);
}

TEST_INSIDE(several_strands_that_move_one_stream_do_not_wait_for_each_other)
{
    for_all_kinds(check_several);
}
