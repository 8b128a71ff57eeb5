/*
 * Sending from a file to a descriptor. The system does it without moving the bytes through the program, if it can and
 * if `to` does not block. The protocol block is in file.h.
 *
 * sendfile has no way to refuse a wait for the disk. So the strand first looks whether the system has the next part in
 * memory. If it has, the strand makes the call itself; otherwise a thread of the crew makes it. `to` does not block, so
 * neither of them waits for room: the strand does, on the poller, and asks again.
 *
 * NOT DONE  every part by the crew: a round trip for each, where files are nearly always in memory. Reading a part
 * ahead on the crew, then sending it from the strand: two steps, and memory may have lost the part between them. splice
 * through a pipe: two more descriptors for each call, and it waits for the disk as well. mincore and cachestat: they
 * say nothing of files that others own. Looking at every page: as much work as copying it; so a page that is missing
 * between two bytes that are there makes the thread wait for one read. At each window of read-ahead: a fiftieth of the
 * time that a MiB takes to a client on the same machine, to find one window that is missing between two that are
 * there.
 */
#include "file.h"

#include "../sched/thread.h"

#include <errno.h>
#include <stdlib.h>

/* Sizes at a time: what the system sends, what it copies between files, and the buffer between a read and a write. */
#define SEND_MOST (UINT64_C(1) << 20)
#define COPY_MOST (UINT64_C(16) << 20)
#define BUFFER ((size_t)64 << 10)

struct sending {
    struct file_call call; /* at[0] is the file, at[1] is where it goes */
    struct file_op *op;    /* of the call that is made; with the buffer, if by_hand */
    int fd;
    int64_t offset; /* of the first byte of all */
    uint64_t size;
    uint64_t *moved;     /* for file_send_on: the sum; the position of the file moves too */
    bool by_hand;        /* the system can't send from one to the other */
    size_t at, buffered; /* the part of the buffer that is not written yet */
};

static struct operation *target_of(struct sending *sending)
{
    return &sending->call.at[1];
}

static size_t part_of(const struct sending *sending, uint64_t most)
{
    uint64_t left = sending->size - sending->call.progress;
    uint64_t below = (uint64_t)INT64_MAX - (uint64_t)sending->offset - sending->call.progress; /* no offset above */
    most = most < below ? most : below;
    return (size_t)(left < most ? left : most);
}

/* Wait until the target may have room. Returns 0 or a negated errno code; throws if the strand is interrupted. */
static int await_room(struct sending *sending)
{
    int error = operation_await(target_of(sending));
    sending->call.at[0].thread = target_of(sending)->thread;
    if (error == OPERATION_INTERRUPTED)
        file_interrupt(&sending->call, sending->op);
    return error;
}

/* ---- by the system -------------------------------------------------------------------------------------------- */

static int64_t run_send(struct file_op *op)
{
    return arch_fd_send_file(op->to, op->fd, op->offset, (size_t)op->size);
}

static int64_t run_copy(struct file_op *op)
{
    return arch_file_copy(op->fd, &op->offset, op->to, NULL, (size_t)op->size);
}

/* The strand is never interrupted in a part: what was sent counts [FI1]. */
static int64_t run_elsewhere(struct sending *sending, int64_t (*run)(struct file_op *), int64_t offset, size_t size)
{
    struct file_op *op = sending->op;
    op->run = run;
    op->fd = sending->fd;
    op->to = target_of(sending)->d->call;
    op->offset = offset;
    op->size = (int64_t)size;
    return file_run(&sending->call, op, false);
}

static int64_t send_part(struct sending *sending, int64_t offset)
{
    size_t size = part_of(sending, SEND_MOST);
    bool cached = arch_file_is_cached(sending->fd, offset, size);
    return cached ? arch_fd_send_file(target_of(sending)->d->call, sending->fd, offset, size)
                  : run_elsewhere(sending, run_send, offset, size);
}

/* The system can't: the file's own errors come again by reading it. EPERM comes from a sandbox. */
static bool has_to_be_by_hand(int64_t result)
{
    return result == -EINVAL || result == -ENOSYS || result == -EOPNOTSUPP || result == -EPERM;
}

/* ---- by reading and writing ----------------------------------------------------------------------------------- */

static int64_t run_read(struct file_op *op)
{
    struct iovec part = {op->out, (size_t)op->size};
    return arch_file_read(op->fd, &part, 1, op->offset);
}

static int begin_by_hand(struct sending *sending)
{
    free(sending->op);
    sending->op = file_op_make(&sending->call, run_read, BUFFER);
    sending->by_hand = true;
    return sending->op ? 0 : -ENOMEM;
}

/* Fill the empty buffer. Returns the number of bytes, 0 at the end, or a negated errno code. */
static int64_t fill(struct sending *sending, int64_t offset)
{
    struct file_op *op = sending->op;
    op->run = run_read;
    op->fd = sending->fd;
    op->out = op->room;
    op->offset = offset;
    op->size = (int64_t)part_of(sending, BUFFER);
    int64_t got = file_run(&sending->call, op, true); /* [FI1] */
    sending->at = 0;
    sending->buffered = got > 0 ? (size_t)got : 0;
    return got;
}

static int64_t write_part(struct sending *sending)
{
    struct operation *to = target_of(sending);
    const char *bytes = (char *)sending->op->out + sending->at;
    int64_t put = fd_write(to->thread, to->d->call, to->d->type, bytes, sending->buffered);
    if (put > 0) {
        sending->at += (size_t)put;
        sending->buffered -= (size_t)put;
    }
    return put;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

/* What a seeded run sends does not depend on what the system has in memory. */
static bool is_played(const struct sending *sending)
{
    return UNLIKELY(sending->call.at[0].thread->platform != NULL);
}

/* Send the next bytes, if there is room. Returns how many, 0 at the end of the file, or a negated errno code. */
static int64_t send_some(struct sending *sending)
{
    int64_t offset = sending->offset + (int64_t)sending->call.progress;
    if (descriptor_is_file(target_of(sending)->d->type))
        return run_elsewhere(sending, run_copy, offset, part_of(sending, COPY_MOST));
    if (!sending->by_hand && !is_played(sending)) {
        int64_t sent = send_part(sending, offset);
        if (!has_to_be_by_hand(sent))
            return sent;
    }
    int error = sending->by_hand ? 0 : begin_by_hand(sending);
    int64_t got = error ? error : sending->buffered ? 1 : fill(sending, offset);
    return got > 0 ? write_part(sending) : got;
}

/* Returns a positive number, or a negated errno code. */
static int64_t has_gone(struct sending *sending, int64_t sent)
{
    sending->call.progress += (uint64_t)sent;
    if (!sending->moved)
        return sent;
    *sending->moved += (uint64_t)sent;
    int64_t position = arch_file_seek(sending->fd, sending->offset + (int64_t)sending->call.progress);
    return position < 0 ? position : sent;
}

static int64_t send_all(struct sending *sending)
{
    int64_t sent = 0;
    while (sending->call.progress < sending->size) {
        sent = await_room(sending);
        if (sent == 0)
            sent = send_some(sending);
        if (sent == -EAGAIN) {
            operation_drained(target_of(sending));
            continue;
        }
        if (sent > 0)
            sent = has_gone(sending, sent);
        if (sent <= 0)
            break;
    }
    bool fails = sent < 0 && (sending->moved || !sending->call.progress);
    return fails ? sent : (int64_t)sending->call.progress;
}

/* Both are entered. */
static int64_t send_and_end(struct sending *sending)
{
    sending->op = file_op_make(&sending->call, run_send, 0);
    int64_t sent = sending->op ? send_all(sending) : -ENOMEM;
    free(sending->op);
    return file_end(&sending->call, sent);
}

int64_t strand_file_send(int fd, int to, uint64_t size, int64_t offset)
{
    struct sending sending = {.fd = fd, .offset = offset, .size = size < INT64_MAX ? size : INT64_MAX};
    int error = file_enter(&sending.call, fd, "strand_file_send");
    if (error)
        return error;
    if (to < 0)
        return file_end(&sending.call, -EBADF);
    if (offset < 0 || sending.call.at[0].d->type == ARCH_FD_DIRECT) /* a socket takes parts that are not aligned */
        return file_end(&sending.call, -EINVAL);
    error = file_enter_also(&sending.call, to, false);
    return error ? error : send_and_end(&sending);
}

int64_t file_send_on(const struct file_call *call, int fd, uint64_t size, uint64_t *moved)
{
    struct sending sending = {.call = *call, .fd = fd, .size = size, .moved = moved};
    int64_t position = arch_file_position(fd);
    if (position < 0 || sending.call.at[0].d->type == ARCH_FD_DIRECT)
        return file_end(&sending.call, position < 0 ? position : -EINVAL);
    sending.offset = position - (int64_t)call->progress;
    return send_and_end(&sending);
}
