/*
 * The names of files: opening, looking, renaming, directories, whole files. The protocol block is in file.h.
 */
#include "file.h"

#include "../sched/thread.h"
#include "../strand/escape.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MOST = 1024, PATH_ROOM = 4096 };
#define LOAD_USUAL ((int64_t)1 << 30)

/* ---- ops with paths ------------------------------------------------------------------------------------------- */

struct file_op *file_op_make_named(struct file_call *call, int64_t (*run)(struct file_op *), const char *path,
                                   const char *to_path, size_t room)
{
    size_t size = strlen(path) + 1, to_size = to_path ? strlen(to_path) + 1 : 0;
    size_t aligned = (room + 15) & ~(size_t)15;
    struct file_op *op = file_op_make(call, run, aligned + size + to_size);
    if (!op)
        return NULL;
    op->out = op->room;
    op->path = memcpy(op->room + aligned, path, size);
    op->to_path = to_path ? memcpy(op->room + aligned + size, to_path, to_size) : NULL;
    return op;
}

int file_begin_named(struct file_call *call, struct file_op **op, int dir, const char *path,
                     int64_t (*run)(struct file_op *), size_t room, const char *function)
{
    must_be_there(path, "path", function);
    int error = file_enter_directory(call, dir, function);
    if (error)
        return error;
    *op = file_op_make_named(call, run, path, NULL, room);
    if (!*op)
        return (int)file_end(call, -ENOMEM);
    (*op)->fd = dir;
    return 0;
}

int file_run_named(int dir, const char *path, int64_t (*run)(struct file_op *), int flags, unsigned mode,
                   const char *function)
{
    struct file_call call;
    struct file_op *op;
    int error = file_begin_named(&call, &op, dir, path, run, 0, function);
    if (error)
        return error;
    op->flags = flags;
    op->mode = mode;
    return (int)file_run_last(&call, op, false); /* [FI1] */
}

/* Runs an op on two names. */
static int64_t run_two(int from_dir, const char *from, int to_dir, const char *to, int64_t (*run)(struct file_op *),
                       int flags, const char *function)
{
    struct file_call call;
    must_be_there(from, "path", function);
    must_be_there(to, "new path", function);
    int error = file_enter_directory(&call, from_dir, function);
    if (!error)
        error = file_enter_also(&call, to_dir, false);
    if (error)
        return error;
    struct file_op *op = file_op_make_named(&call, run, from, to, 0);
    if (op) {
        op->fd = from_dir;
        op->to = to_dir;
        op->flags = flags;
    }
    return file_run_last(&call, op, false); /* [FI1] */
}

/* ---- opening and looking -------------------------------------------------------------------------------------- */

static int64_t run_open(struct file_op *op)
{
    return arch_file_open(op->fd, op->path, op->flags, op->mode);
}

static void undo_open(struct file_op *op)
{
    if (op->result >= 0)
        (void)arch_fd_close((int)op->result);
}

_Static_assert((int)ARCH_FILE_BENEATH == (int)STRAND_FILE_BENEATH, "a flag of an open");

/* Opens what the system finds in memory. The outcome depends on what it happens to have, so a seeded run does not ask.
 */
static int open_now(int dir, const char *path, int flags)
{
    struct file_call call;
    must_be_there(path, "path", "strand_file_open");
    int fd = file_enter_directory(&call, dir, "strand_file_open");
    if (fd < 0)
        return fd;
    bool asks = !(flags & ARCH_FILE_CREATES) && call.at[0].thread->platform == NULL;
    return (int)file_end(&call, asks ? arch_file_open_now(dir, path, flags) : -EAGAIN);
}

/* EPERM comes from a sandbox; if it is the file's own error, the plain call returns it again. */
static bool has_to_wait(int result)
{
    return result == -EAGAIN || result == -EINTR || result == -EINVAL || result == -ENOSYS || result == -EPERM;
}

static int open_elsewhere(int dir, const char *path, int flags, unsigned mode)
{
    struct file_call call;
    struct file_op *op;
    int fd = file_begin_named(&call, &op, dir, path, run_open, 0, "strand_file_open");
    if (fd < 0)
        return fd;
    op->undo = undo_open;
    op->flags = flags;
    op->mode = mode;
    return (int)file_run_last(&call, op, !(flags & ARCH_FILE_CREATES)); /* [FI1] */
}

int strand_file_open(int dir, const char *path, int flags, unsigned mode)
{
    int fd = flags & STRAND_FILE_BENEATH ? open_now(dir, path, flags) : -EAGAIN;
    if (has_to_wait(fd))
        fd = open_elsewhere(dir, path, flags, mode);
    if (fd >= 0)
        descriptor_made(fd);
    return fd;
}

static int64_t run_stat(struct file_op *op)
{
    return arch_file_stat(op->fd, op->path, op->flags, op->out);
}

int strand_file_stat(int dir, const char *path, int flags, struct stat *out)
{
    struct file_call call;
    struct file_op *op;
    must_be_there(out, "buffer for the status", "strand_file_stat");
    int error = file_begin_named(&call, &op, dir, path, run_stat, sizeof *out, "strand_file_stat");
    if (error)
        return error;
    op->flags = flags;
    error = (int)file_run(&call, op, true); /* [FI1] */
    if (!error)
        memcpy(out, op->out, sizeof *out);
    free(op);
    return (int)file_end(&call, error);
}

static int64_t run_read_link(struct file_op *op)
{
    return arch_file_read_link(op->fd, op->path, op->out, (size_t)op->size);
}

int strand_file_read_link(int dir, const char *path, char *target, size_t room)
{
    struct file_call call;
    struct file_op *op;
    size_t most = room < PATH_ROOM ? room : PATH_ROOM;
    must_be_there(target, "buffer for the target", "strand_file_read_link");
    int length = file_begin_named(&call, &op, dir, path, run_read_link, most + 1, "strand_file_read_link");
    if (length)
        return length;
    op->size = (int64_t)most + 1;
    length = (int)file_run(&call, op, true); /* [FI1] */
    if (length >= 0 && (size_t)length >= most)
        length = -ENAMETOOLONG;
    if (length >= 0) {
        memcpy(target, op->out, (size_t)length);
        target[length] = 0;
    }
    free(op);
    return (int)file_end(&call, length);
}

/* ---- changing ------------------------------------------------------------------------------------------------- */

static int64_t run_rename(struct file_op *op)
{
    return arch_file_rename(op->fd, op->path, op->to, op->to_path, (unsigned)op->flags);
}

int strand_file_rename(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return (int)run_two(from_dir, from, to_dir, to, run_rename, (int)flags, "strand_file_rename");
}

static int64_t run_link(struct file_op *op)
{
    return arch_file_link(op->fd, op->path, op->to, op->to_path, op->flags);
}

int strand_file_link(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return (int)run_two(from_dir, from, to_dir, to, run_link, flags, "strand_file_link");
}

static int64_t run_symlink(struct file_op *op)
{
    return arch_file_symlink(op->path, op->to, op->to_path);
}

int strand_file_symlink(const char *target, int dir, const char *path)
{
    must_be_there(target, "target", "strand_file_symlink");
    must_be_there(path, "path", "strand_file_symlink");
    return (int)run_two(ARCH_FILE_CWD, target, dir, path, run_symlink, 0, "strand_file_symlink");
}

static int64_t run_unlink(struct file_op *op)
{
    return arch_file_unlink(op->fd, op->path, op->flags);
}

int strand_file_unlink(int dir, const char *path, int flags)
{
    return file_run_named(dir, path, run_unlink, flags, 0, "strand_file_unlink");
}

static int64_t run_make_directory(struct file_op *op)
{
    return arch_file_make_directory(op->fd, op->path, op->mode);
}

int strand_file_make_directory(int dir, const char *path, unsigned mode)
{
    return file_run_named(dir, path, run_make_directory, 0, mode, "strand_file_make_directory");
}

/* ---- directories ---------------------------------------------------------------------------------------------- */

static int64_t run_list(struct file_op *op)
{
    return arch_file_list(op->fd, op->out, (size_t)op->size);
}

int strand_file_list(int directory, strand_file_entry *entries, size_t most)
{
    struct file_call call;
    if (most)
        must_be_there(entries, "list for the entries", "strand_file_list");
    int count = file_enter(&call, directory, "strand_file_list");
    if (count < 0 || !most)
        return count < 0 ? count : (int)file_end(&call, 0);
    most = most < ENTRIES_MOST ? most : ENTRIES_MOST;
    struct file_op *op = file_op_make(&call, run_list, most * sizeof(struct arch_file_entry));
    if (!op)
        return (int)file_end(&call, -ENOMEM);
    const struct arch_file_entry *got = op->out = op->room;
    op->fd = directory;
    op->size = (int64_t)most;
    count = (int)file_run(&call, op, false); /* [FI1]: the position moves */
    for (int i = 0; i < count; i++) {
        entries[i] = (strand_file_entry){.inode = got[i].inode, .type = got[i].type};
        memcpy(entries[i].name, got[i].name, sizeof entries[i].name);
    }
    free(op);
    return (int)file_end(&call, count);
}

/* ---- whole files ---------------------------------------------------------------------------------------------- */

static int64_t run_load(struct file_op *op)
{
    return arch_file_load(op->fd, op->path, (size_t)op->size, op->out);
}

static void undo_load(struct file_op *op)
{
    if (op->result >= 0)
        free(*(char **)op->out);
}

int64_t strand_file_load(int dir, const char *path, size_t max_size, char **out)
{
    struct file_call call;
    struct file_op *op;
    must_be_there(out, "place for the bytes", "strand_file_load");
    int64_t size = file_begin_named(&call, &op, dir, path, run_load, sizeof *out, "strand_file_load");
    if (size)
        return size;
    op->undo = undo_load;
    op->size = !max_size ? LOAD_USUAL : max_size < INT64_MAX ? (int64_t)max_size : INT64_MAX;
    size = file_run(&call, op, true); /* [FI1] */
    if (size >= 0)
        *out = *(char **)op->out;
    free(op);
    return file_end(&call, size);
}

static int64_t run_store(struct file_op *op)
{
    return arch_file_store(op->fd, (char *)(uintptr_t)op->path, op->parts->iov_base, op->parts->iov_len, op->mode,
                           op->chance);
}

int strand_file_store(int dir, const char *path, const void *bytes, size_t size, unsigned mode)
{
    struct file_call call;
    struct file_op *op;
    if (size)
        must_be_there(bytes, "bytes", "strand_file_store");
    bool copies = size && lies_on_shared_stack(must_be_strand("strand_file_store"), bytes);
    int error = file_begin_named(&call, &op, dir, path, run_store, sizeof(struct iovec) + (copies ? size : 0),
                                 "strand_file_store");
    if (error)
        return error;
    char *copy = (char *)op->out + sizeof(struct iovec);
    op->parts = op->out;
    *op->parts = (struct iovec){copies ? memcpy(copy, bytes, size) : (void *)(uintptr_t)bytes, size};
    op->mode = mode;
    op->chance = file_chance(&call);
    return (int)file_run_last(&call, op, false); /* [FI1] */
}
