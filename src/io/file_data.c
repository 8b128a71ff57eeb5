/*
 * The bytes of files: reading, writing, copying, and what concerns the whole of them. The protocol block is in file.h.
 */
#include "cursor.h"
#include "file.h"

#include "../sched/thread.h"
#include "../strand/escape.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 8 };
#define READ_MOST ((size_t)1 << 20)
#define WRITE_MOST ((size_t)16 << 20)
#define POSITION (-1) /* as an offset */

/* ---- the caller's buffers ------------------------------------------------------------------------------------- */

static bool lies_on_shared(struct thread *thread, const struct cursor *cursor)
{
    for (int i = 0; i < cursor->count; i++)
        if (lies_on_shared_stack(thread, cursor->parts[i].iov_base))
            return true;
    return false;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Where bytes lie in the room of an op: aligned, for files that need that. */
enum { ALIGNMENT = 4096 };

static size_t slack(const struct file_call *call)
{
    return call->at[0].d->type == ARCH_FD_DIRECT ? ALIGNMENT : 0;
}

static char *aligned(const struct file_call *call, char *at)
{
    return slack(call) ? (char *)(((uintptr_t)at + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1)) : at;
}

/* ---- transfers ------------------------------------------------------------------------------------------------ */

/* Moves the next part of a transfer. after: the number of bytes of the last part, or 0. Returns that of this one, or a
 * negated errno code. */
typedef int64_t next_fn(struct file_call *call, struct cursor *cursor, int fd, int64_t offset, int64_t after);

static int64_t transfer(next_fn *next, int fd, const struct iovec *parts, int count, int64_t offset,
                        const char *function)
{
    struct file_call call;
    struct cursor cursor;
    int64_t moved = file_enter(&call, fd, function);
    if (moved < 0)
        return moved;
    moved = offset < POSITION ? -EINVAL : cursor_begin(&cursor, parts, count);
    for (bool more = moved == 0 && cursor.left; more; more = moved > 0 && cursor.left) {
        int64_t at = offset == POSITION ? POSITION : offset + (int64_t)call.progress;
        moved = next(&call, &cursor, fd, at, moved);
        if (moved > 0)
            call.progress += (uint64_t)moved;
    }
    return file_end(&call, call.progress ? (int64_t)call.progress : moved);
}

/* For a call at the position of a descriptor io_uring does not take the lock of that position: two
 * writes at a time would go to the same place. */
static int8_t kind_at(int64_t offset, enum arch_uring_kind kind)
{
    return offset == POSITION ? FILE_BY_THREAD : (int8_t)kind;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

static int64_t run_read(struct file_op *op)
{
    struct iovec part = {op->out, (size_t)op->size};
    return arch_file_read(op->fd, &part, 1, op->offset);
}

/* Reads the next part on a thread of the crew, into memory of the op. */
static int64_t read_elsewhere(struct file_call *call, struct cursor *cursor, int fd, int64_t offset)
{
    size_t size = least(cursor->left, READ_MOST);
    struct file_op *op = file_op_make(call, run_read, size + slack(call));
    if (!op)
        return -ENOMEM;
    op->out = aligned(call, op->room);
    op->kind = kind_at(offset, ARCH_URING_READ);
    op->fd = fd;
    op->size = (int64_t)size;
    op->offset = offset;
    int64_t got = file_run(call, op, offset != POSITION); /* [FI1] */
    if (got > 0)
        cursor_move(cursor, (size_t)got, op->out, NULL);
    free(op);
    return got;
}

/* Reads what the system has in memory. The outcome depends on what it happens to have, so a seeded run does not ask.
 * With O_DIRECT the call would wait for the disk. */
static int64_t read_now(struct file_call *call, struct cursor *cursor, int fd, int64_t offset)
{
    struct iovec parts[AT_ONCE];
    if (UNLIKELY(call->at[0].thread->platform != NULL) || call->at[0].d->type == ARCH_FD_DIRECT)
        return -EAGAIN;
    int count = 0;
    size_t size = 0;
    for (; count < AT_ONCE && count < cursor->count && size < READ_MOST; count++) {
        size_t at = count ? 0 : cursor->at, here = least(cursor->parts[count].iov_len - at, READ_MOST - size);
        parts[count] = (struct iovec){(char *)cursor->parts[count].iov_base + at, here};
        size += here;
    }
    int64_t got = size ? arch_file_read_now(fd, parts, count, offset) : -EAGAIN;
    if (got > 0)
        cursor_move(cursor, (size_t)got, NULL, NULL);
    return got;
}

/* EPERM comes from a sandbox; if it is the descriptor's own error, the plain call returns it again. */
static bool has_to_wait(int64_t result)
{
    return result == -EAGAIN || result == -EINTR || result == -EOPNOTSUPP || result == -ENOSYS || result == -EPERM ||
           result == -EINVAL;
}

/* Reads the next part. after: what the last one has read. */
static int64_t read_next(struct file_call *call, struct cursor *cursor, int fd, int64_t offset, int64_t after)
{
    if (after == (int64_t)READ_MOST)
        file_go_on(call);
    int64_t got = read_now(call, cursor, fd, offset);
    return has_to_wait(got) ? read_elsewhere(call, cursor, fd, offset) : got;
}

int64_t strand_file_read(int fd, void *buffer, size_t size, int64_t offset)
{
    const struct iovec part = {buffer, size};
    if (size)
        must_be_there(buffer, "buffer", "strand_file_read");
    return transfer(read_next, fd, &part, 1, offset, "strand_file_read");
}

int64_t strand_file_readv(int fd, const struct iovec *buffers, int count, int64_t offset)
{
    if (count > 0)
        must_be_there(buffers, "list of buffers", "strand_file_readv");
    return transfer(read_next, fd, buffers, count, offset, "strand_file_readv");
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static int64_t run_write(struct file_op *op)
{
    return arch_file_write(op->fd, op->parts, op->count, op->offset);
}

/* The bytes stay where they are, since the op is never left; those on a shared stack are copied. */
static int64_t write_next(struct file_call *call, struct cursor *cursor, int fd, int64_t offset, int64_t after)
{
    (void)after;
    size_t size = least(cursor->left, WRITE_MOST);
    bool copies = lies_on_shared(call->at[0].thread, cursor);
    if (copies)
        size = least(size, READ_MOST);
    size_t list = (size_t)(copies ? 1 : cursor->count) * sizeof(struct iovec);
    struct file_op *op = file_op_make(call, run_write, list + (copies ? size + slack(call) : 0));
    if (!op)
        return -ENOMEM;
    op->kind = kind_at(offset, ARCH_URING_WRITE);
    op->fd = fd;
    op->offset = offset;
    op->parts = (struct iovec *)(void *)op->room;
    if (copies) {
        struct cursor source = *cursor;
        op->parts[0] = (struct iovec){aligned(call, op->room + list), size};
        op->count = 1;
        cursor_move(&source, size, NULL, op->parts[0].iov_base);
    } else {
        op->count = cursor_parts(cursor, size, op->parts, cursor->count);
    }
    int64_t put = file_run(call, op, false); /* [FI1] */
    if (put > 0)
        cursor_move(cursor, (size_t)put, NULL, NULL);
    free(op);
    return put;
}

int64_t strand_file_write(int fd, const void *bytes, size_t size, int64_t offset)
{
    const struct iovec part = {(void *)(uintptr_t)bytes, size};
    if (size)
        must_be_there(bytes, "bytes", "strand_file_write");
    return transfer(write_next, fd, &part, 1, offset, "strand_file_write");
}

int64_t strand_file_writev(int fd, const struct iovec *buffers, int count, int64_t offset)
{
    if (count > 0)
        must_be_there(buffers, "list of buffers", "strand_file_writev");
    return transfer(write_next, fd, buffers, count, offset, "strand_file_writev");
}

/* ---- copying -------------------------------------------------------------------------------------------------- */

static int64_t run_copy(struct file_op *op)
{
    return arch_file_copy(op->fd, op->from_offset, op->to, op->to_offset, (size_t)op->size);
}

int64_t strand_file_copy(int from, int64_t *from_offset, int to, int64_t *to_offset, uint64_t size)
{
    struct file_call call;
    int64_t got = file_enter(&call, from, "strand_file_copy");
    if (!got)
        got = file_enter_also(&call, to, true);
    if (got)
        return got;
    if ((from_offset && *from_offset < 0) || (to_offset && *to_offset < 0))
        return file_end(&call, -EINVAL);
    struct file_op *op = file_op_make(&call, run_copy, 2 * sizeof(int64_t));
    if (!op)
        return file_end(&call, -ENOMEM);
    int64_t *offsets = (int64_t *)(void *)op->room;
    op->fd = from;
    op->to = to;
    op->from_offset = from_offset ? &offsets[0] : NULL;
    op->to_offset = to_offset ? &offsets[1] : NULL;
    offsets[0] = from_offset ? *from_offset : 0;
    offsets[1] = to_offset ? *to_offset : 0;
    for (got = 1; got > 0 && call.progress < size;) {
        uint64_t left = size - call.progress;
        op->size = (int64_t)(left < WRITE_MOST ? left : WRITE_MOST);
        got = file_run(&call, op, false); /* [FI1] */
        if (got > 0) {
            call.progress += (uint64_t)got;
            if (from_offset)
                *from_offset = offsets[0];
            if (to_offset)
                *to_offset = offsets[1];
        }
    }
    free(op);
    return file_end(&call, call.progress || got > 0 ? (int64_t)call.progress : got);
}

/* ---- the whole of a file -------------------------------------------------------------------------------------- */

static int run_on(int fd, int64_t (*run)(struct file_op *), const struct file_op *with, const char *function)
{
    struct file_call call;
    int error = file_enter(&call, fd, function);
    if (error)
        return error;
    struct file_op *op = file_op_make(&call, run, 0);
    if (op) {
        *op = *with;
        op->run = run;
        op->fd = fd;
    }
    return (int)file_run_last(&call, op, false); /* [FI1] */
}

static int64_t run_sync(struct file_op *op)
{
    return arch_file_sync(op->fd, op->flags);
}

int strand_file_sync(int fd, bool data_only)
{
    return run_on(fd, run_sync, &(struct file_op){.kind = ARCH_URING_SYNC, .flags = data_only}, "strand_file_sync");
}

static int64_t run_truncate(struct file_op *op)
{
    return arch_file_truncate(op->fd, op->size);
}

int strand_file_truncate(int fd, int64_t size)
{
    return run_on(fd, run_truncate, &(struct file_op){.kind = FILE_BY_THREAD, .size = size}, "strand_file_truncate");
}

static int64_t run_allocate(struct file_op *op)
{
    return arch_file_allocate(op->fd, op->flags, op->offset, op->size);
}

int strand_file_allocate(int fd, int mode, int64_t offset, int64_t size)
{
    const struct file_op with = {.kind = ARCH_URING_ALLOCATE, .flags = mode, .offset = offset, .size = size};
    return run_on(fd, run_allocate, &with, "strand_file_allocate");
}

/* ---- locks ---------------------------------------------------------------------------------------------------- */

static int64_t run_lock(struct file_op *op)
{
    return arch_file_lock(op->fd, op->flags, op->offset, op->size);
}

int strand_file_try_lock(int fd, int type, int64_t offset, int64_t size)
{
    const struct file_op with = {.kind = FILE_BY_THREAD, .flags = type, .offset = offset, .size = size};
    return run_on(fd, run_lock, &with, "strand_file_try_lock");
}

int strand_file_lock(int fd, int type, int64_t offset, int64_t size)
{
    struct file_call call;
    int64_t pause = STRAND_MS;
    int result = file_enter(&call, fd, "strand_file_lock");
    if (result)
        return result;
    struct file_op *op = file_op_make(&call, run_lock, 0);
    if (!op)
        return (int)file_end(&call, -ENOMEM);
    op->fd = fd;
    op->flags = type;
    op->offset = offset;
    op->size = size;
    /* The descriptor stays entered: its number is not given to another file between two tries [FI2]. */
    while ((result = (int)file_run(&call, op, false)) == -EAGAIN && (result = file_pause(&call, op, pause)) == 0)
        pause = pause < 10 * STRAND_MS ? pause * 2 : 20 * STRAND_MS;
    free(op);
    return (int)file_end(&call, result);
}
