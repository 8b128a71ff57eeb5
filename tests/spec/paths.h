/*
 * A directory for a test on paths, and another process that changes it in the middle of a call. The calls of the system
 * that are defined here call the test's hook before they are made.
 */
#ifndef PATHS_H
#define PATHS_H

#include "blocker.h"

#include "strand/exception.h"
#include "strand/file.h"
#include "strand/io.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the other process ------------------------------------------------------------------------------------------ */

enum call { NO_CALL, OPENS, UNLINKS, LISTS, READS_LINK, STATS };

/* Called before a call on a name (a directory's list has none) is made. Returns an error instead of it, or 0. */
static struct {
    enum call call;
    const char *name;
    int (*fn)(void);
} hook;

static bool inside; /* a hook makes a call */

#define HOOK(call_, name_, fn_) (hook.name = (name_), hook.fn = (fn_), hook.call = (call_))

/* Not static: glibc declares readlinkat as an inline function with external linkage. */
int ask_hook(enum call call, const char *name)
{
    if (hook.call != call || inside || (hook.name && strcmp(hook.name, name) != 0))
        return 0;
    inside = true;
    int error = hook.fn();
    inside = false;
    if (error)
        errno = error;
    return error;
}

/* The C library's function of that name. */
#define REAL(name)                                                                                                     \
    __extension__({                                                                                                    \
        __typeof__(&name) real_;                                                                                       \
        *(void **)&real_ = dlsym(RTLD_NEXT, #name);                                                                    \
        real_;                                                                                                         \
    })

int openat(int dir, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return ask_hook(OPENS, path) ? -1 : REAL(openat)(dir, path, flags, mode);
}

int unlinkat(int dir, const char *path, int flags)
{
    return ask_hook(UNLINKS, path) ? -1 : REAL(unlinkat)(dir, path, flags);
}

const char *link_target; /* of all symbolic links, or NULL; not static, as ask_hook */

ssize_t readlinkat(int dir, const char *path, char *target, size_t room)
{
    if (link_target)
        return snprintf(target, room, "%s", link_target);
    return ask_hook(READS_LINK, path) ? -1 : REAL(readlinkat)(dir, path, target, room);
}

int fstatat(int dir, const char *path, struct stat *status, int flags)
{
    return ask_hook(STATS, path) ? -1 : REAL(fstatat)(dir, path, status, flags);
}

static bool mounted; /* the next directory that is asked about has a file system mounted on it */

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *status)
{
    int result = REAL(statx)(dir, path, flags, mask, status);
    if (mounted && result == 0) {
        status->stx_attributes_mask |= STATX_ATTR_MOUNT_ROOT;
        status->stx_attributes |= STATX_ATTR_MOUNT_ROOT;
    }
    mounted = false;
    return result;
}

ssize_t getdents64(int fd, void *buffer, size_t size)
{
    int error = ask_hook(LISTS, "");
    return error == ENOENT ? 0 : error ? -1 : REAL(getdents64)(fd, buffer, size);
}

/* ---- a directory for a test ------------------------------------------------------------------------------------ */

/* The test's own, and its working directory. */
static inline int place_make(void)
{
    char path[] = "/tmp/strand-tree-XXXXXX";
    int dir = strand_file_open_temporary(AT_FDCWD, path, O_DIRECTORY);
    CHECK(dir >= 0);
    CHECK_EQ(fchdir(dir), 0);
    return dir;
}

static inline void place_remove(int *dir)
{
    char path[64];
    struct stat status;
    hook.call = NO_CALL;
    CHECK(strand_file_resolve(*dir, ".", path, sizeof path) > 0);
    CHECK_EQ(chdir("/"), 0);
    CHECK_EQ(strand_file_remove_tree(AT_FDCWD, path, NULL, 0), 0);
    CHECK_EQ(fstat(*dir, &status), 0); /* another process with the same seed may make the same name again */
    CHECK_EQ(status.st_nlink, 0);
    CHECK_EQ(strand_close(*dir), 0);
}

#define PLACE(name) __attribute__((cleanup(place_remove), unused)) int name = place_make()

static inline void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
}

static inline void make_directory(const char *path)
{
    CHECK_EQ(mkdir(path, 0700), 0);
}

static inline bool is_there(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static inline struct stat status_of(const char *path)
{
    struct stat status;
    CHECK_EQ(lstat(path, &status), 0);
    return status;
}

static inline int count_entries(const char *path)
{
    int count = 0;
    DIR *list = opendir(path);
    CHECK(list);
    for (const struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* "t" with files, directories, links and a FIFO; "outside", to which its links lead. */
static inline void make_tree(void)
{
    make_directory("outside");
    make_file("outside/kept");
    make_directory("t");
    make_directory("t/empty");
    make_directory("t/d");
    make_directory("t/d/e");
    make_file("t/a");
    make_file("t/d/.hidden");
    make_file("t/d/e/b");
    CHECK_EQ(symlink("../outside", "t/link"), 0);
    CHECK_EQ(symlink("none", "t/d/dangling"), 0);
    CHECK_EQ(mkfifo("t/d/fifo", 0600), 0);
}

/* Answers of hooks. */

static inline int have_none(void)
{
    return ENOENT;
}

static inline int have_no_descriptors(void)
{
    return EMFILE;
}

#endif
