/*
 * Reading and writing, whole and in part, and closing. How an operation waits is in descriptor.h.
 */
#include "../../include/strand/io.h"

#include "cursor.h"
#include "descriptor.h"
#include "offload.h"

#include "../sched/thread.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <errno.h>

/* Read some bytes into the parts, which have room for `size`. Returns 0 at the end. Inside an operation. */
static int64_t read_some(struct operation *op, const struct iovec *parts, int count, size_t size)
{
    if (UNLIKELY(atomic_load_explicit(&op->d->late, memory_order_relaxed))) {
        int late = operation_take_late(op);
        if (late)
            return late;
    }
    for (;;) {
        int64_t got = operation_ready(op);
        if (got < 0)
            return got;
        got = LIKELY(count == 1) ? fd_read(op->thread, op->d->call, op->d->type, parts->iov_base, parts->iov_len)
                                 : fd_readv(op->thread, op->d->call, op->d->type, parts, count);
        if (UNLIKELY(got == -ENOTSOCK) && !(got = operation_mistaken(op, -ENOTSOCK)))
            continue;
        if (got > 0 && (size_t)got < size)
            operation_short(op);
        if (got != -EAGAIN)
            return got;
        operation_drained(op);
    }
}

static int64_t write_some(struct operation *op, const struct iovec *parts, int count)
{
    for (;;) {
        int64_t put = operation_ready(op);
        if (put < 0)
            return put;
        put = LIKELY(count == 1) ? fd_write(op->thread, op->d->call, op->d->type, parts->iov_base, parts->iov_len)
                                 : fd_writev(op->thread, op->d->call, op->d->type, parts, count);
        if (UNLIKELY(put == -ENOTSOCK) && !(put = operation_mistaken(op, -ENOTSOCK)))
            continue;
        if (put == -EAGAIN)
            operation_drained(op);
        else
            return put;
    }
}

/* An operation on no bytes. */
static int64_t nothing(struct operation *op)
{
    operation_leave(op);
    yield_if_asked(op->thread);
    return 0;
}

int64_t strand_read(int fd, void *buffer, size_t size)
{
    struct operation op;
    int64_t got = operation_enter(&op, fd, SIDE_IN, "strand_read");
    if (got < 0 || !size)
        return got < 0 ? got : nothing(&op);
    got = read_some(&op, &(struct iovec){buffer, size}, 1, size);
    operation_leave(&op);
    return got;
}

int64_t strand_write(int fd, const void *bytes, size_t size)
{
    struct operation op;
    int64_t put = operation_enter(&op, fd, SIDE_OUT, "strand_write");
    if (put < 0 || !size)
        return put < 0 ? put : nothing(&op);
    put = write_some(&op, &(struct iovec){(void *)(uintptr_t)bytes, size}, 1);
    operation_leave(&op);
    return put;
}

/* A composite operation: an error after some bytes is reported by the next call; this one returns the count. */
int64_t strand_read_all(int fd, void *buffer, size_t size)
{
    struct operation op;
    int64_t got = operation_enter(&op, fd, SIDE_IN, "strand_read_all");
    if (got < 0 || !size)
        return got < 0 ? got : nothing(&op);
    while (op.progress < size) {
        struct iovec part = {(char *)buffer + op.progress, size - op.progress};
        if ((got = read_some(&op, &part, 1, part.iov_len)) <= 0)
            break;
        op.progress += (uint64_t)got;
    }
    if (got < 0 && op.progress)
        atomic_store_explicit(&op.d->late, (int)got, memory_order_relaxed);
    operation_leave(&op);
    return got < 0 && !op.progress ? got : (int64_t)op.progress;
}

int64_t strand_write_all(int fd, const void *bytes, size_t size)
{
    struct operation op;
    int64_t put = operation_enter(&op, fd, SIDE_OUT, "strand_write_all");
    if (put < 0 || !size)
        return put < 0 ? put : nothing(&op);
    while (op.progress < size) {
        struct iovec part = {(char *)(uintptr_t)bytes + op.progress, size - op.progress};
        put = write_some(&op, &part, 1);
        if (put < 0)
            break;
        op.progress += (uint64_t)put;
    }
    operation_leave(&op);
    return put < 0 ? put : (int64_t)op.progress;
}

/* ---- several buffers -------------------------------------------------------------------------------------- */

/* What a system call moves. So many parts are copied, without the empty ones; a longer list is the caller's. */
enum { COPIED_MOST = 64 };
#define BYTES_AT_ONCE ((size_t)1 << 30)
struct piece {
    const struct iovec *parts;
    int count;
    size_t size;
    struct iovec copied[COPIED_MOST];
};

/* Begin an operation on the caller's buffers. Returns 1; or 0 or a negated errno code: the operation has ended. */
static int64_t enter_parts(struct operation *op, struct cursor *cursor, int fd, enum side_name side,
                           const struct iovec *parts, int count, const char *function)
{
    if (count > 0)
        must_be_there(parts, "list of buffers", function);
    int64_t error = operation_enter(op, fd, side, function);
    if (error < 0)
        return error;
    error = cursor_begin(cursor, parts, count);
    if (!error && cursor->left)
        return 1;
    (void)nothing(op);
    return error;
}

/* The parts for the next system call. At the beginning of a list it gets the whole list: on datagrams and
 * SOCK_SEQPACKET each call is a message. In the middle of a part only streams are. */
static void next_piece(const struct cursor *cursor, struct piece *piece)
{
    size_t most = cursor->left < BYTES_AT_ONCE ? cursor->left : BYTES_AT_ONCE;
    piece->parts = piece->copied;
    piece->count = cursor_parts(cursor, most, piece->copied, COPIED_MOST);
    piece->size = 0;
    for (int i = 0; i < piece->count; i++)
        piece->size += piece->copied[i].iov_len;
    if (piece->size == most || cursor->at || most < cursor->left)
        return;
    piece->parts = cursor->parts;
    piece->count = cursor->count;
    piece->size = cursor->left;
    for (; !piece->parts->iov_len; piece->parts++)
        piece->count--;
}

int64_t strand_readv(int fd, const struct iovec *buffers, int count)
{
    struct operation op;
    struct cursor cursor;
    struct piece piece;
    int64_t got = enter_parts(&op, &cursor, fd, SIDE_IN, buffers, count, "strand_readv");
    if (got <= 0)
        return got;
    next_piece(&cursor, &piece);
    got = read_some(&op, piece.parts, piece.count, piece.size);
    operation_leave(&op);
    return got;
}

/* Write all, or what the descriptor accepts at once. */
static int64_t write_parts(int fd, const struct iovec *buffers, int count, bool all, const char *function)
{
    struct operation op;
    struct cursor cursor;
    struct piece piece;
    int64_t put = enter_parts(&op, &cursor, fd, SIDE_OUT, buffers, count, function);
    if (put <= 0)
        return put;
    do {
        next_piece(&cursor, &piece);
        if ((put = write_some(&op, piece.parts, piece.count)) < 0)
            break;
        op.progress += (uint64_t)put;
        cursor_move(&cursor, (size_t)put, NULL, NULL);
    } while (all && cursor.left);
    operation_leave(&op);
    return put < 0 ? put : (int64_t)op.progress;
}

int64_t strand_writev(int fd, const struct iovec *buffers, int count)
{
    return write_parts(fd, buffers, count, false, "strand_writev");
}

int64_t strand_writev_all(int fd, const struct iovec *buffers, int count)
{
    return write_parts(fd, buffers, count, true, "strand_writev_all");
}

int strand_wait_ready(int fd, enum strand_ready_event event)
{
    struct operation op;
    if (event != STRAND_READABLE && event != STRAND_WRITABLE && event != STRAND_GONE)
        MISUSE("strand_wait_ready", "", "%d is not one of STRAND_READABLE, STRAND_WRITABLE and STRAND_GONE",
               (int)event);
    enum side_name side = event == STRAND_READABLE ? SIDE_IN : event == STRAND_WRITABLE ? SIDE_OUT : SIDE_END;
    int wanted = event == STRAND_READABLE ? ARCH_IN : event == STRAND_WRITABLE ? ARCH_OUT : ARCH_END;
    int error = operation_enter(&op, fd, side, "strand_wait_ready");
    if (error)
        return error;
    for (;;) {
        error = operation_ready(&op);
        int now = error ? error : fd_ready(op.thread, op.d->call);
        if (now < 0 || (now & wanted)) {
            operation_leave(&op);
            return now < 0 ? now : 0;
        }
        operation_drained(&op);
    }
}

/* ---- closing ---------------------------------------------------------------------------------------------- */

static void *close_twin(void *twin)
{
    return (void *)(intptr_t)arch_fd_close((int)(intptr_t)twin);
}

/* The thread that closes the last descriptor of a socket that lingers (SO_LINGER) blocks until the peer has taken what
 * was sent. So the socket gets a second descriptor, which a thread of a crew closes. Returns -1 if the socket does not
 * linger, or has to be left to the system because the caller may not wait, or no descriptor is available. */
static int twin_of_lingering(struct thread *thread, int fd, bool may_suspend)
{
    if (LIKELY(fd_adjust(thread, fd, arch_fd_lingers) <= 0))
        return -1;
    int twin = may_suspend ? arch_fd_twin(fd) : -1;
    if (twin < 0)
        (void)arch_fd_linger_not(fd);
    return twin < 0 ? -1 : twin;
}

int strand_close(int fd)
{
    struct thread *thread = must_be_strand("strand_close");
    bool may_suspend = !own_of(current_of(thread))->section_file;
    int twin = twin_of_lingering(thread, fd, may_suspend), result = descriptor_close(thread, fd, may_suspend);
    thread = thread_self();
    if (UNLIKELY(twin >= 0) &&
        !offload_surely(thread, CREW_CLOSES, close_twin, (void *)(intptr_t)twin, "strand_close")) {
        (void)arch_fd_linger_not(twin);
        (void)arch_fd_close(twin);
    }
    return result;
}

void strand_forget(int fd)
{
    struct thread *thread = must_be_strand("strand_forget");
    may_suspend(thread, current_of(thread), "strand_forget");
    descriptor_forget(thread, fd);
}

int strand_pipe(int fds[2])
{
    must_be_there(fds, "buffer for the descriptors", "strand_pipe");
    int error = fd_pipe(thread_self(), fds);
    for (int i = 0; !error && i < 2; i++)
        descriptor_made(fds[i]);
    return error;
}
