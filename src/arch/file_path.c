/*
 * Calls on files that need several system calls on a path: directories with their parents, files and directories with
 * new names, what a path names in the end, and modes, owners and times. As those of file.c.
 */
#include "arch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(ARCH_FILE_DIRECTORY == O_DIRECTORY, "the flag of a directory");

static int result_of(int result)
{
    return result < 0 ? -errno : result;
}

/* ---- directories with their parents --------------------------------------------------------------------------- */

/* Makes a directory, unless it is there. */
static int make_one(int dir, const char *path, unsigned mode)
{
    struct stat status;
    int error = arch_file_make_directory(dir, path, mode);
    if (error == -EEXIST && (error = arch_file_stat(dir, path, 0, &status)) == 0 && !S_ISDIR(status.st_mode))
        error = -ENOTDIR;
    return error;
}

/* The length of what stands before the last name of the first `length` bytes of a path. 0: nothing, or the root. */
static size_t parent_of(const char *path, size_t length)
{
    while (length && path[length - 1] == '/')
        length--;
    while (length && path[length - 1] != '/')
        length--;
    while (length && path[length - 1] == '/')
        length--;
    return length;
}

/* Where the name behind the first `length` bytes of a path ends. */
static size_t child_of(const char *path, size_t length)
{
    length += strspn(path + length, "/");
    return length + strcspn(path + length, "/");
}

static int make_up_to(int dir, char *path, size_t length, unsigned mode)
{
    char kept = path[length];
    path[length] = 0;
    int error = make_one(dir, path, mode);
    path[length] = kept;
    return error;
}

int arch_file_make_directories(int dir, char *path, unsigned mode)
{
    enum { ENTERED = 0300 }; /* by the owner, which makes the next one there */
    size_t whole = strlen(path), at = whole;
    int error = make_one(dir, path, mode);
    while (error == -ENOENT && (at = parent_of(path, at)) > 0)
        error = make_up_to(dir, path, at, mode | ENTERED);
    while (!error && at < whole) {
        at = child_of(path, at);
        bool last = !path[at + strspn(path + at, "/")];
        at = last ? whole : at;
        error = make_up_to(dir, path, at, last ? mode : mode | ENTERED);
    }
    return error;
}

/* ---- new names ------------------------------------------------------------------------------------------------ */

enum { NEW_LETTERS = 6, NEW_TRIES = 100 };

static void put_letters(char *letters, uint64_t chance)
{
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    for (int i = 0; i < NEW_LETTERS; i++, chance /= sizeof all - 1)
        letters[i] = all[chance % (sizeof all - 1)];
}

static int make_and_open(int dir, const char *path, int flags)
{
    int error = arch_file_make_directory(dir, path, 0700);
    if (error)
        return error;
    int fd;
    do
        fd = arch_file_open(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | flags, 0);
    while (fd == -EINTR);
    if (fd < 0)
        (void)arch_file_unlink(dir, path, AT_REMOVEDIR);
    return fd;
}

int arch_file_open_temporary(int dir, char *path, int flags, uint64_t chance)
{
    size_t length = strlen(path);
    if (length < NEW_LETTERS || strcmp(path + length - NEW_LETTERS, "XXXXXX") != 0)
        return -EINVAL;
    int fd = -EEXIST;
    for (int i = 0; fd == -EEXIST && i < NEW_TRIES; i++) {
        put_letters(path + length - NEW_LETTERS, arch_file_chance(chance, i));
        do
            fd = flags & O_DIRECTORY ? make_and_open(dir, path, flags)
                                     : arch_file_open(dir, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | flags, 0600);
        while (fd == -EINTR);
    }
    return fd;
}

/* ---- what a path names ---------------------------------------------------------------------------------------- */

/* The path by which the system knows an open file. That of a file without a name names nothing, or another file. */
static int path_of(int fd, char *path, size_t room)
{
    struct stat status, named;
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int length = arch_file_read_link(AT_FDCWD, link, path, room);
    if (length < 0)
        return length == -ENOENT ? -ENOSYS : length; /* there is no /proc */
    if ((size_t)length >= room)
        return -ENAMETOOLONG;
    path[length] = 0;
    if (*path != '/') /* a pipe; or "(unreachable)" stands before the path on a file system that was unmounted */
        return -ENOENT;
    int error = result_of(fstat(fd, &status));
    if (!error)
        error = arch_file_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &named);
    if (!error && (status.st_dev != named.st_dev || status.st_ino != named.st_ino))
        error = -ENOENT;
    return error ? error : length;
}

int arch_file_resolve(int dir, const char *path, char *out, size_t room)
{
    int fd = arch_file_open(dir, path, O_PATH, 0);
    if (fd < 0)
        return fd;
    int length = path_of(fd, out, room);
    (void)arch_fd_close(fd);
    return length;
}

/* ---- modes, owners and times ---------------------------------------------------------------------------------- */

/* A path of NULL names `dir` itself. */

static int set_owner(int dir, const char *path, int flags, unsigned what, const struct stat *status)
{
    uid_t user = what & ARCH_FILE_USER ? status->st_uid : (uid_t)-1;
    gid_t group = what & ARCH_FILE_GROUP ? status->st_gid : (gid_t)-1;
    return result_of(path ? fchownat(dir, path, user, group, flags) : fchown(dir, user, group));
}

static int set_mode(int dir, const char *path, int flags, const struct stat *status)
{
    mode_t mode = status->st_mode & 07777;
    return result_of(path ? fchmodat(dir, path, mode, flags) : fchmod(dir, mode));
}

static int set_times(int dir, const char *path, int flags, unsigned what, const struct stat *status)
{
    static const struct timespec as_it_is = {0, UTIME_OMIT};
    const struct timespec times[] = {what & ARCH_FILE_ACCESSED ? status->st_atim : as_it_is,
                                     what & ARCH_FILE_MODIFIED ? status->st_mtim : as_it_is};
    return result_of(path ? utimensat(dir, path, times, flags) : futimens(dir, times));
}

/* A change of the owner takes bits of the mode away, and both count as changes: so the mode comes after the owner. */
int arch_file_set(int dir, const char *path, int flags, unsigned what, const struct stat *status)
{
    int error = 0;
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) || what & ~(unsigned)ARCH_FILE_ALL)
        return -EINVAL;
    if (!*path && flags & AT_EMPTY_PATH)
        path = dir == AT_FDCWD ? "." : NULL;
    flags &= AT_SYMLINK_NOFOLLOW;
    if (what & (ARCH_FILE_USER | ARCH_FILE_GROUP))
        error = set_owner(dir, path, flags, what, status);
    if (!error && what & ARCH_FILE_MODE)
        error = set_mode(dir, path, flags, status);
    if (!error && what & (ARCH_FILE_ACCESSED | ARCH_FILE_MODIFIED))
        error = set_times(dir, path, flags, what, status);
    return error;
}
