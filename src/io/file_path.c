/*
 * Calls on paths that need several system calls: directories with their parents, trees, temporary files, what a path
 * names in the end, modes, owners and times. The protocol block is in file.h.
 */
#include "file.h"

#include "../sched/thread.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SAME(name) ((int)STRAND_FILE_##name == (int)ARCH_FILE_##name)
_Static_assert(SAME(MODE) && SAME(USER) && SAME(GROUP) && SAME(ACCESSED) && SAME(MODIFIED), "what is set");

enum { PATH_ROOM = 4096 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- modes, owners and times ---------------------------------------------------------------------------------- */

static int64_t run_set(struct file_op *op)
{
    return arch_file_set(op->fd, op->path, op->flags, op->mode, op->out);
}

int strand_file_set(int dir, const char *path, int flags, unsigned what, const struct stat *status)
{
    struct file_call call;
    struct file_op *op;
    must_be_there(status, "status", "strand_file_set");
    int error = file_begin_named(&call, &op, dir, path, run_set, sizeof *status, "strand_file_set");
    if (error)
        return error;
    memcpy(op->out, status, sizeof *status);
    op->flags = flags;
    op->mode = what;
    return (int)file_run_last(&call, op, false); /* [FI1] */
}

/* ---- what a path names ---------------------------------------------------------------------------------------- */

static int64_t run_resolve(struct file_op *op)
{
    return arch_file_resolve(op->fd, op->path, op->out, (size_t)op->size);
}

int strand_file_resolve(int dir, const char *path, char *out, size_t room)
{
    struct file_call call;
    struct file_op *op;
    must_be_there(out, "buffer for the path", "strand_file_resolve");
    int length = file_begin_named(&call, &op, dir, path, run_resolve, PATH_ROOM, "strand_file_resolve");
    if (length)
        return length;
    op->size = PATH_ROOM;
    length = (int)file_run(&call, op, true); /* [FI1] */
    if (length >= 0 && (size_t)length >= room)
        length = -ENAMETOOLONG;
    if (length >= 0)
        memcpy(out, op->out, (size_t)length + 1);
    free(op);
    return (int)file_end(&call, length);
}

/* ---- new names ------------------------------------------------------------------------------------------------ */

static int64_t run_make_directories(struct file_op *op)
{
    return arch_file_make_directories(op->fd, (char *)(uintptr_t)op->path, op->mode);
}

int strand_file_make_directories(int dir, const char *path, unsigned mode)
{
    return file_run_named(dir, path, run_make_directories, 0, mode, "strand_file_make_directories");
}

static int64_t run_open_temporary(struct file_op *op)
{
    return arch_file_open_temporary(op->fd, (char *)(uintptr_t)op->path, op->flags, op->chance);
}

int strand_file_open_temporary(int dir, char *path, int flags)
{
    struct file_call call;
    struct file_op *op;
    int fd = file_begin_named(&call, &op, dir, path, run_open_temporary, 0, "strand_file_open_temporary");
    if (fd < 0)
        return fd;
    op->flags = flags;
    op->chance = file_chance(&call);
    fd = (int)file_run(&call, op, false); /* [FI1] */
    if (fd >= 0)
        memcpy(path, op->path, strlen(op->path));
    free(op);
    fd = (int)file_end(&call, fd);
    if (fd >= 0)
        descriptor_made(fd);
    return fd;
}

/* ---- trees ---------------------------------------------------------------------------------------------------- */

/* An op that runs again and again; between two times the strand sees whether it is interrupted. Nothing but the number
 * of names ends a part, as a seeded run has to go the same way each time. */
enum { NAMES_AT_ONCE = 32 };

/* op->out: a place for the tree; op->offset: the names that have gone. Returns 1: there is more; 0; or an error. */
static int64_t run_remove_tree(struct file_op *op)
{
    struct arch_tree **tree = op->out;
    if (!*tree) {
        int error = arch_tree_open(op->fd, op->path, tree);
        if (error)
            return error;
    }
    bool over = arch_tree_remove(*tree, NAMES_AT_ONCE);
    op->offset = (int64_t)arch_tree_removed(*tree);
    return over ? arch_tree_error(*tree) : 1;
}

static struct arch_tree *tree_of(struct file_op *op)
{
    return *(struct arch_tree **)op->out;
}

static void close_tree(struct file_op *op)
{
    if (tree_of(op))
        arch_tree_close(tree_of(op));
}

/* Says which name could not be removed. */
static void tell(const char *path, char *failed, size_t room)
{
    size_t length = room ? least(strlen(path), room - 1) : 0;
    if (room) {
        memcpy(failed, path, length);
        failed[length] = 0;
    }
}

/* Runs the op until the tree has gone. */
static int remove_tree(struct file_call *call, struct file_op *op)
{
    *(struct arch_tree **)op->out = NULL;
    do {
        bool interrupted = file_attempt(call, op, false) != FILE_RAN; /* [FI1] */
        call->progress = (uint64_t)op->offset;
        if (interrupted || (op->result > 0 && file_yield(call))) {
            close_tree(op);
            file_interrupt(call, op);
        }
    } while (op->result > 0);
    return (int)op->result;
}

int strand_file_remove_tree(int dir, const char *path, char *failed, size_t room)
{
    struct file_call call;
    struct file_op *op;
    if (room)
        must_be_there(failed, "buffer for the path", "strand_file_remove_tree");
    int error =
        file_begin_named(&call, &op, dir, path, run_remove_tree, sizeof(struct arch_tree *), "strand_file_remove_tree");
    if (error) {
        tell(path, failed, room);
        return error;
    }
    error = remove_tree(&call, op);
    const char *name = error && tree_of(op) ? arch_tree_failed(tree_of(op)) : NULL;
    if (error)
        tell(name ? name : path, failed, room);
    close_tree(op);
    free(op);
    return (int)file_end(&call, error);
}
