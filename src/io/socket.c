/*
 * Sockets: accepting, connecting, listening, dialling. How an operation waits is in descriptor.h.
 */
#include "../../include/strand/socket.h"

#include "descriptor.h"
#include "offload.h"
#include "socket.h"

#include "../sched/thread.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESSES = 16 };
#define PAUSE_LEAST (100 * STRAND_US)
#define PAUSE_MOST (20 * STRAND_MS)
/* The time for an address that is not the last one; less if a deadline leaves less. */
#define ATTEMPT_MOST (5 * STRAND_S)
#define ATTEMPT_LEAST (250 * STRAND_MS)

/* name: gets the address of the peer; or NULL. */
static int accept_at(int fd, struct arch_name *name, const char *function)
{
    struct operation op;
    int got = operation_enter(&op, fd, SIDE_IN, function);
    if (got < 0)
        return got;
    got = fd_adjust(op.thread, fd, arch_fd_unblock);
    while (got >= 0 && (got = operation_ready(&op)) == 0) {
        got = fd_accept(op.thread, fd, name);
        if (got == -EAGAIN)
            operation_drained(&op);
        else if (got != -ECONNABORTED)
            break;
        got = 0; /* try the next connection */
    }
    operation_leave(&op);
    if (got >= 0) {
        descriptor_accepted(op.thread, got);
        (void)fd_adjust(op.thread, got, arch_fd_no_delay);
    }
    return got;
}

int strand_accept(int fd)
{
    return accept_at(fd, NULL, "strand_accept");
}

int strand_accept_from(int listener, strand_address *peer)
{
    must_be_there(peer, "place for the address", "strand_accept_from");
    struct arch_name name;
    int fd = accept_at(listener, &name, "strand_accept_from");
    if (fd >= 0)
        memcpy(peer, &name, sizeof *peer);
    return fd;
}

static int connect_once(int fd, const void *address, uint32_t length)
{
    struct operation op;
    int result = operation_enter(&op, fd, SIDE_OUT, "strand_connect");
    if (result < 0)
        return result;
    result = fd_adjust(op.thread, fd, arch_fd_unblock);
    if (result == 0)
        result = fd_connect(op.thread, fd, address, length);
    while (result == -EINPROGRESS) {
        int ready = fd_ready(op.thread, fd);
        if (ready < 0) {
            result = ready;
        } else if (ready & ARCH_OUT) {
            result = fd_error(op.thread, fd);
        } else {
            operation_drained(&op);
            int error = operation_ready(&op);
            result = error ? error : -EINPROGRESS;
        }
    }
    operation_leave(&op);
    return result;
}

/* A Unix listener whose queue is full refuses at once, and can't be waited for. */
int strand_connect(int fd, const void *address, uint32_t length)
{
    int64_t pause = PAUSE_LEAST;
    int result;
    while ((result = connect_once(fd, address, length)) == -EAGAIN) {
        strand_sleep(pause);
        pause = pause < PAUSE_MOST ? pause * 2 : PAUSE_MOST;
    }
    return yield_with_result(result);
}

int strand_shutdown(int fd, int how)
{
    return fd_shutdown(thread_self(), fd, how);
}

/* ---- addresses ------------------------------------------------------------------------------------------- */

/* On the heap, not on the strand's stack: another thread works on it. */
struct question {
    int port, count;
    bool passive;
    struct arch_address answer[ADDRESSES];
    char host[];
};

static void *look_up(void *arg)
{
    struct question *question = arg;
    question->count =
        arch_address_tcp(question->host, question->port, question->passive, true, question->answer, ADDRESSES);
    return NULL;
}

/* The C library's look-up can't be cancelled: an interrupted strand leaves the question to the crew. */
static int ask(const char *host, int port, bool passive, struct arch_address *out)
{
    const char *function = passive ? "strand_listen_tcp" : "strand_dial_tcp";
    struct thread *thread = must_be_strand(function);
    size_t size = strlen(host) + 1;
    struct question *question = platform_malloc(thread, sizeof *question + size);
    if (!question)
        return -ENOMEM;
    question->port = port;
    question->passive = passive;
    memcpy(question->host, host, size);
    offload_or_leave(thread, CREW_NAMES, look_up, question, free, function);
    int count = question->count;
    if (count > 0)
        memcpy(out, question->answer, (size_t)count * sizeof *out);
    free(question);
    return count;
}

/* A numeric address is parsed at once; a name is looked up by a thread that may block. */
static int addresses_of(const char *host, int port, bool passive, struct arch_address *out)
{
    int count = arch_address_tcp(host, port, passive, false, out, ADDRESSES);
    return count == -ENOENT ? ask(host, port, passive, out) : count;
}

/* Close a socket that was not kept, because connecting failed or threw. */
static void close_unless_kept(int *fd)
{
    if (*fd >= 0)
        strand_close(*fd);
}

static int make_socket(const struct arch_address *address)
{
    int fd = fd_socket(thread_self(), (int)address->family);
    if (fd >= 0)
        descriptor_made(fd);
    return fd;
}

static int listen_at(const struct arch_address *address, bool tcp)
{
    struct thread *thread = thread_self();
    int fd = make_socket(address), error = fd < 0 ? fd : 0;
    if (!error && address->both)
        error = fd_adjust(thread, fd, arch_fd_both);
    if (!error && tcp)
        error = fd_adjust(thread, fd, arch_fd_reuse);
    if (!error)
        error = fd_bind(thread, fd, address->bytes, address->length);
    if (!error)
        error = fd_listen(thread, fd, BACKLOG);
    if (error && fd >= 0)
        fd_close(thread, fd);
    return error ? error : fd;
}

static int dial_at(const struct arch_address *address, bool tcp)
{
    int fd __attribute__((cleanup(close_unless_kept))) = make_socket(address);
    if (fd < 0)
        return fd;
    int error = strand_connect(fd, address->bytes, address->length);
    if (error)
        return error;
    if (tcp)
        (void)fd_adjust(thread_self(), fd, arch_fd_no_delay);
    int result = fd;
    fd = -1;
    return result;
}

/* One of several addresses, and the instant by which it has to answer. */
struct attempt {
    const struct arch_address *address;
    strand_time limit;
    int result;
};

static void *dial_in_time(void *arg)
{
    struct attempt *attempt = arg;
    STRAND_DEADLINE(attempt->limit);
    attempt->result = dial_at(attempt->address, true);
    return NULL;
}

/* The time limit of an address, with `left` addresses to go. It is always less than what is left until the caller's
 * deadline. */
static strand_time limit_of(int left)
{
    struct thread *thread = thread_self();
    int64_t now = platform_now(thread->sub), rest = interrupt_deadline(current_of(thread)) - now, time = rest / left;
    if (time < ATTEMPT_LEAST)
        time = rest / 2 < ATTEMPT_LEAST ? rest / 2 : ATTEMPT_LEAST;
    return strand_in(time < ATTEMPT_MOST ? time : ATTEMPT_MOST);
}

/* An address that does not answer in time counts as one that refuses. */
static int dial_one_of(const struct arch_address *addresses, int left)
{
    struct attempt attempt = {.address = addresses, .limit = limit_of(left)};
    strand_exception *e = strand_try(dial_in_time, &attempt, NULL);
    if (!e)
        return attempt.result;
    if (!strand_exception_is(e, &STRAND_TIMED_OUT))
        strand_rethrow(e);
    strand_exception_release(e);
    return -ETIMEDOUT;
}

int strand_listen_tcp(const char *host, int port)
{
    struct arch_address addresses[ADDRESSES];
    struct thread *thread = must_be_strand("strand_listen_tcp");
    must_be_there(host, "host", "strand_listen_tcp");
    may_block(thread, current_of(thread), "strand_listen_tcp");
    int count = addresses_of(host, port, true, addresses), fd = count;
    for (int i = 0; i < count; i++)
        if ((fd = listen_at(&addresses[i], true)) >= 0)
            break;
    return yield_with_result(fd);
}

int strand_dial_tcp(const char *host, int port)
{
    struct arch_address addresses[ADDRESSES];
    struct thread *thread = must_be_strand("strand_dial_tcp");
    must_be_there(host, "host", "strand_dial_tcp");
    may_block(thread, current_of(thread), "strand_dial_tcp");
    int count = addresses_of(host, port, false, addresses), fd = count;
    for (int i = 0; i < count; i++)
        if ((fd = i + 1 < count ? dial_one_of(&addresses[i], count - i) : dial_at(&addresses[i], true)) >= 0)
            break;
    return yield_with_result(fd);
}

int strand_listen_unix(const char *path)
{
    struct arch_address address;
    must_be_there(path, "path", "strand_listen_unix");
    int error = arch_address_unix(path, &address);
    return error ? error : listen_at(&address, false);
}

int strand_dial_unix(const char *path)
{
    struct arch_address address;
    struct thread *thread = must_be_strand("strand_dial_unix");
    must_be_there(path, "path", "strand_dial_unix");
    may_block(thread, current_of(thread), "strand_dial_unix");
    int error = arch_address_unix(path, &address);
    return yield_with_result(error ? error : dial_at(&address, false));
}

int strand_peer_address(int fd, char *text, size_t room)
{
    if (room)
        must_be_there(text, "buffer for the address", "strand_peer_address");
    return fd_peer(thread_self(), fd, text, room);
}

int strand_tcp_port(int fd)
{
    return fd_port(thread_self(), fd);
}
