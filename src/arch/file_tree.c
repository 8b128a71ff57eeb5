/*
 * Removing a tree of directories, a few steps at a time.
 *
 * PARTIES   the caller, one thread at a time; other processes, which may change the tree meanwhile.
 * STATE     an arch_tree: the path of the directory whose entries are removed, a level for each directory on the way to
 *           it, and two descriptors: one names the directory that has the tree, the other one the directory that is
 *           emptied. Memory grows with the depth of the tree, never with the number of its entries. Neither the stack
 *           nor the number of descriptors grows.
 * PROTOCOL  each entry is removed as a file or as an empty directory. A name that may be a directory with entries is
 *           entered, relative to the open directory. At the end of its list ".." is opened, and the directory is
 * removed from there; the list of the outer one goes on where it was left. If entries were removed and there are others
 *           now (made meanwhile, or passed over by a file system that counts positions), the directory is entered once
 *           more. An entry that can't be removed stays, and the first such error is kept.
 * INVARIANTS [FT1] a directory is entered by one name, relative to an open one, never through a symbolic link: if
 *           another process replaces a directory by a link, the link is removed, and its target stays.
 *           [FT2] ".." is used only if it has the numbers of the directory from which this one was entered: a directory
 *           that was moved out of the tree does not lead out of it.
 *           [FT3] a directory on which a file system is mounted is not entered: the mounted file system stays whole.
 * PROGRESS  a file system may list names that it does not find. A directory is entered again and again only while
 *           entries go; if others seem to remove them, VAIN_MOST times.
 * NOT DONE  recursion, and a descriptor for each level: both run out in deep trees. Finding a mount by the error of
 *           rmdir(2): the system looks at the permissions of the outer directory first.
 * TESTED BY tests/spec/file_tree.c, tests/fault/files.c.
 */
#include "arch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTERS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW) /* [FT1] */
enum { LIST_BUFFER = 4096, LEVELS_FIRST = 16, VAIN_MOST = 64 };

struct level {
    dev_t device;
    ino_t inode;
    int64_t position; /* where its list goes on */
    size_t name, end; /* its last name begins there in the path, and ends there */
    bool gains;       /* the call has removed entries in this pass over its list */
    bool lost;        /* entries were listed, and had gone */
    uint8_t vain;     /* how many passes before this one had lost entries, and gained nothing */
};

struct arch_tree {
    int parent, at; /* `at` is -1 with no level */
    int error;      /* the first one */
    bool over;
    uint64_t removed;
    char *path, *failed; /* failed: the path of the name with that error, or NULL */
    size_t room;
    struct level *levels;
    size_t depth, most;
    size_t next, size;                     /* in the buffer */
    _Alignas(16) char buffer[LIST_BUFFER]; /* entries of the directory that is open */
};

/* ---- calls ---------------------------------------------------------------------------------------------------- */

static int open_directory(int dir, const char *name, int flags)
{
    int fd;
    do
        fd = arch_file_open(dir, name, flags, 0);
    while (fd == -EINTR);
    return fd;
}

static int unlink_name(int dir, const char *name, int flags)
{
    int error;
    do
        error = arch_file_unlink(dir, name, flags);
    while (error == -EINTR);
    return error;
}

/* Returns 1; 0 if nothing of that name is there; or a negated errno code. */
static int remove_name(int dir, const char *name, int type)
{
    int error = type == DT_DIR ? -EISDIR : unlink_name(dir, name, 0);
    if (error == -EISDIR)
        error = unlink_name(dir, name, AT_REMOVEDIR);
    if (error == -ENOTDIR && type == DT_DIR) /* not any more */
        error = unlink_name(dir, name, 0);
    return error == -ENOENT ? 0 : error ? error : 1;
}

static bool has_entries(int error)
{
    return error == -ENOTEMPTY || error == -EEXIST;
}

/* ---- levels --------------------------------------------------------------------------------------------------- */

static struct level *innermost(struct arch_tree *tree)
{
    return tree->depth ? &tree->levels[tree->depth - 1] : NULL;
}

static int open_now(const struct arch_tree *tree)
{
    return tree->depth ? tree->at : tree->parent;
}

/* The name at the end of the path can't be removed. */
static void fail(struct arch_tree *tree, int error)
{
    if (tree->error)
        return;
    tree->error = error;
    size_t size = strlen(tree->path) + 1;
    tree->failed = malloc(size);
    if (tree->failed)
        memcpy(tree->failed, tree->path, size);
}

/* removed: 1, or 0: others have removed it. */
static void has_gone(struct arch_tree *tree, int removed)
{
    tree->removed += (uint64_t)removed;
    if (!tree->depth)
        return;
    innermost(tree)->gains |= removed;
    innermost(tree)->lost |= !removed;
}

static void change_directory(struct arch_tree *tree, int fd)
{
    if (tree->at >= 0)
        (void)arch_fd_close(tree->at);
    tree->at = fd;
    tree->next = tree->size = 0;
}

/* Makes room for one more level. */
static int grow_levels(struct arch_tree *tree)
{
    if (tree->depth < tree->most)
        return 0;
    size_t most = tree->most ? tree->most * 2 : LEVELS_FIRST;
    struct level *levels = realloc(tree->levels, most * sizeof *levels);
    if (!levels)
        return -ENOMEM;
    tree->levels = levels;
    tree->most = most;
    return 0;
}

/* Whether a file system is mounted on an open directory. Kernels before 5.8 do not say so: there it is taken for a
 * mount if it lies on another device than the directory `outer`. Returns 1, 0, or a negated errno code. */
static int is_mount(int outer, int fd, const struct stat *status)
{
    struct statx more;
    struct stat above;
    if (statx(fd, ".", AT_NO_AUTOMOUNT, 0, &more) == 0 && more.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)
        return (more.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    return fstat(outer, &above) < 0 ? -errno : above.st_dev != status->st_dev;
}

static int push(struct arch_tree *tree, int fd, size_t name, int64_t position)
{
    struct stat status;
    int error, mount;
    while ((error = arch_file_stat(fd, ".", 0, &status)) == -EINTR) /* -EACCES: it can be listed, but not entered */
        ;
    if (error)
        return error;
    mount = is_mount(open_now(tree), fd, &status);
    error = mount ? mount < 0 ? mount : -EBUSY : grow_levels(tree); /* [FT3] */
    if (error)
        return error;
    if (tree->depth)
        innermost(tree)->position = position;
    tree->levels[tree->depth++] = (struct level){
        .device = status.st_dev, .inode = status.st_ino, .name = name, .end = name + strlen(tree->path + name)};
    change_directory(tree, fd);
    return 0;
}

/* Enters a directory that is not empty, as `why` says of the last name of the path. position: behind its entry. Returns
 * 0; 1 if it was replaced by a file, which has been removed; or a negated errno code. */
static int enter(struct arch_tree *tree, size_t name, int64_t position, int why)
{
    int fd = open_directory(open_now(tree), tree->path + name, ENTERS); /* [FT1] */
    if ((fd == -ENOTDIR || fd == -ELOOP) && has_entries(why))           /* it was replaced */
        return remove_name(open_now(tree), tree->path + name, DT_UNKNOWN);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd == -ENOTDIR || fd == -ELOOP ? why : fd;
    int error = push(tree, fd, name, position);
    if (error)
        (void)arch_fd_close(fd);
    return error;
}

/* Opens the outer one of two levels from within the inner one, and goes on in its list. */
static int open_outer(struct arch_tree *tree, const struct level *outer)
{
    struct stat status;
    int fd = open_directory(tree->at, "..", ENTERS);
    if (fd < 0)
        return fd;
    int error = fstat(fd, &status) < 0 ? -errno : 0;
    if (!error && (status.st_dev != outer->device || status.st_ino != outer->inode)) /* [FT2] */
        error = -EAGAIN;
    if (!error && lseek(fd, outer->position, SEEK_SET) < 0)
        error = -errno;
    if (error)
        (void)arch_fd_close(fd);
    return error ? error : fd;
}

/* ---- entries -------------------------------------------------------------------------------------------------- */

/* Removes the last name of the path, or enters it. */
static void take(struct arch_tree *tree, size_t name, int type, int64_t position)
{
    int result = remove_name(open_now(tree), tree->path + name, type);
    if (result == 0)
        has_gone(tree, 0);
    else if (has_entries(result) || result == -EACCES || result == -EPERM) /* its entries may go though it can't */
        result = enter(tree, name, position, result);
    if (result > 0)
        has_gone(tree, 1);
    else if (result < 0)
        fail(tree, result);
}

/* Enters the directory that was left once more. */
static int enter_again(struct arch_tree *tree, const struct level *left, int why)
{
    size_t depth = tree->depth;
    int result = enter(tree, left->name, depth ? innermost(tree)->position : 0, why);
    if (tree->depth > depth)
        innermost(tree)->vain = left->gains ? 0 : left->vain + 1;
    return result;
}

/* The list of the innermost directory has ended. */
static void leave(struct arch_tree *tree)
{
    struct level left = *innermost(tree);
    tree->path[left.end] = 0;
    int fd = tree->depth > 1 ? open_outer(tree, &tree->levels[tree->depth - 2]) : -1;
    if (fd < 0 && tree->depth > 1) {
        fail(tree, fd);
        tree->over = true;
        return;
    }
    tree->depth--;
    change_directory(tree, fd);
    int result = remove_name(open_now(tree), tree->path + left.name, DT_DIR);
    if (result == 0)
        has_gone(tree, 0);
    else if (has_entries(result) && (left.gains || (left.lost && left.vain < VAIN_MOST)))
        result = enter_again(tree, &left, result);
    if (result > 0)
        has_gone(tree, 1);
    else if (result < 0)
        fail(tree, result);
}

/* Puts a name behind the path of the innermost directory. Returns where it begins, or 0: no memory. */
static size_t put_name(struct arch_tree *tree, const char *name)
{
    size_t at = innermost(tree)->end, length = strlen(name), needed = at + length + 2;
    tree->path[at] = 0;
    if (needed > tree->room) {
        char *path = realloc(tree->path, needed * 2);
        if (!path)
            return 0;
        tree->path = path;
        tree->room = needed * 2;
    }
    tree->path[at] = '/';
    memcpy(tree->path + at + 1, name, length + 1);
    return at + 1;
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static void take_next(struct arch_tree *tree)
{
    const struct dirent64 *entry = (const void *)(tree->buffer + tree->next);
    tree->next += entry->d_reclen;
    if (is_dots(entry->d_name))
        return;
    size_t name = put_name(tree, entry->d_name);
    if (name)
        take(tree, name, entry->d_type, entry->d_off);
    else
        fail(tree, -ENOMEM);
}

/* Reads on in the list. Returns false at its end. */
static bool read_list(struct arch_tree *tree)
{
    int64_t size;
    do
        size = getdents64(tree->at, tree->buffer, sizeof tree->buffer);
    while (size < 0 && errno == EINTR);
    if (size < 0 && errno != ENOENT) { /* which says that others have removed the directory */
        tree->path[innermost(tree)->end] = 0;
        fail(tree, -errno);
    }
    tree->next = 0;
    tree->size = size > 0 ? (size_t)size : 0;
    return size > 0;
}

/* ---- trees ---------------------------------------------------------------------------------------------------- */

/* Opens the directory that has the tree. Returns where the name of the tree begins in the path, or an error: -EINVAL if
 * the path does not end with a name. */
static int64_t open_parent(struct arch_tree *tree, int dir)
{
    size_t length = strlen(tree->path);
    while (length && tree->path[length - 1] == '/')
        tree->path[--length] = 0;
    char *slash = strrchr(tree->path, '/'), *name = slash ? slash + 1 : tree->path, kept = *name;
    if (!*name || is_dots(name))
        return -EINVAL;
    *name = 0;
    tree->parent = open_directory(dir, slash ? tree->path : ".", O_PATH | O_DIRECTORY);
    *name = kept;
    return tree->parent < 0 ? tree->parent : name - tree->path;
}

int arch_tree_open(int dir, const char *path, struct arch_tree **out)
{
    struct arch_tree *tree = malloc(sizeof *tree);
    if (!tree)
        return -ENOMEM;
    *tree = (struct arch_tree){.parent = -1, .at = -1};
    tree->room = strlen(path) + 1;
    tree->path = malloc(tree->room);
    int64_t name = tree->path ? 0 : -ENOMEM;
    if (!name) {
        memcpy(tree->path, path, tree->room);
        name = open_parent(tree, dir);
    }
    if (name < 0 && name != -ENOENT) {
        arch_tree_close(tree);
        return (int)name;
    }
    if (name >= 0)
        take(tree, (size_t)name, DT_UNKNOWN, 0);
    tree->over = !tree->depth;
    *out = tree;
    return 0;
}

bool arch_tree_remove(struct arch_tree *tree, int steps)
{
    for (; !tree->over && steps > 0; steps--) {
        if (tree->next < tree->size || read_list(tree))
            take_next(tree);
        else
            leave(tree);
        tree->over = tree->over || !tree->depth;
    }
    return tree->over;
}

int arch_tree_error(const struct arch_tree *tree)
{
    return tree->error;
}

const char *arch_tree_failed(const struct arch_tree *tree)
{
    return tree->failed;
}

uint64_t arch_tree_removed(const struct arch_tree *tree)
{
    return tree->removed;
}

void arch_tree_close(struct arch_tree *tree)
{
    if (tree->at >= 0)
        (void)arch_fd_close(tree->at);
    if (tree->parent >= 0)
        (void)arch_fd_close(tree->parent);
    free(tree->levels);
    free(tree->failed);
    free(tree->path);
    free(tree);
}
