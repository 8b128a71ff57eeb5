/*
 * Calls on files and directories, with errno turned into results. They may block the calling thread for as long as a
 * disk or a server takes, unless a function says otherwise.
 */
#include "arch.h"

#include "../base/rng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(ARCH_FILE_CWD == AT_FDCWD, "the number of the working directory");
_Static_assert(ARCH_FILE_CREATES == (O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY)), "flags that change something");

#define COPY_BUFFER (256 * 1024)
#define LIST_BUFFER (32 * 1024)
#define READ_AHEAD (128 * 1024) /* what Linux reads at a time by default */
/* Between two of these bytes lies at most one whole window of read-ahead. */
#define LOOK_EVERY (2 * READ_AHEAD)

static int64_t result_of(int64_t result)
{
    return result < 0 ? -errno : result;
}

/* ---- reading and writing ------------------------------------------------------------------------------------ */

int64_t arch_file_read_now(int fd, const struct iovec *parts, int count, int64_t offset)
{
    return result_of(preadv2(fd, parts, count, offset, RWF_NOWAIT));
}

/* Whether the byte is in memory, or the file ends before it. */
static bool is_byte_cached(int fd, int64_t offset)
{
    char byte;
    const struct iovec part = {&byte, 1};
    int64_t got;
    while ((got = arch_file_read_now(fd, &part, 1, offset)) == -EINTR)
        ;
    return got >= 0;
}

bool arch_file_is_cached(int fd, int64_t offset, size_t size)
{
    for (size_t at = 0; at < size; at += LOOK_EVERY)
        if (!is_byte_cached(fd, offset + (int64_t)at))
            return false;
    return size == 0 || is_byte_cached(fd, offset + (int64_t)size - 1);
}

int64_t arch_file_read(int fd, const struct iovec *parts, int count, int64_t offset)
{
    int64_t got;
    do
        got = result_of(offset < 0 ? readv(fd, parts, count) : preadv(fd, parts, count, offset));
    while (got == -EINTR);
    return got;
}

int64_t arch_file_write(int fd, const struct iovec *parts, int count, int64_t offset)
{
    int64_t put;
    do
        put = result_of(offset < 0 ? writev(fd, parts, count) : pwritev(fd, parts, count, offset));
    while (put == -EINTR);
    return put;
}

int64_t arch_file_position(int fd)
{
    return result_of(lseek(fd, 0, SEEK_CUR));
}

int64_t arch_file_seek(int fd, int64_t offset)
{
    return result_of(lseek(fd, offset, SEEK_SET));
}

/* Returns how many bytes it has written: fewer than `size` after an error, which *error says. */
static size_t write_all(int fd, const char *bytes, size_t size, int64_t *offset, int *error)
{
    size_t done = 0;
    *error = 0;
    while (done < size && !*error) {
        struct iovec part = {(void *)(uintptr_t)(bytes + done), size - done};
        int64_t put = arch_file_write(fd, &part, 1, offset ? *offset : -1);
        *error = put > 0 ? 0 : put < 0 ? (int)put : -EIO;
        done += put > 0 ? (size_t)put : 0;
        if (offset && put > 0)
            *offset += put;
    }
    return done;
}

/* Copies through a buffer, where the file systems can't copy. What could not be written counts as not read. */
static int64_t copy_by_hand(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t size)
{
    struct iovec part = {malloc(COPY_BUFFER), size < COPY_BUFFER ? size : COPY_BUFFER};
    if (!part.iov_base)
        return -ENOMEM;
    int error = 0;
    int64_t got = arch_file_read(from, &part, 1, from_offset ? *from_offset : -1);
    int64_t put = got > 0 ? (int64_t)write_all(to, part.iov_base, (size_t)got, to_offset, &error) : got;
    free(part.iov_base);
    if (put > 0 && from_offset)
        *from_offset += put;
    if (put < got && !from_offset)
        (void)lseek(from, put - got, SEEK_CUR);
    return put ? put : error;
}

static bool is_same_file(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* EINVAL: also if the ranges overlap. EBADF: also if the file is appended to. */
static bool cannot_copy(int64_t result, int from, int to)
{
    return result == -EXDEV || result == -ENOSYS || result == -EOPNOTSUPP || result == -EPERM || result == -EBADF ||
           (result == -EINVAL && !is_same_file(from, to));
}

int64_t arch_file_copy(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t size)
{
    int64_t got = result_of(copy_file_range(from, from_offset, to, to_offset, size, 0));
    /* 0 is also what the system returns for files that have bytes and no size, as those of /proc. */
    bool by_hand = got == 0 || cannot_copy(got, from, to);
    return by_hand ? copy_by_hand(from, from_offset, to, to_offset, size) : got;
}

int arch_file_sync(int fd, bool data_only)
{
    return (int)result_of(data_only ? fdatasync(fd) : fsync(fd));
}

int arch_file_truncate(int fd, int64_t size)
{
    return (int)result_of(ftruncate(fd, size));
}

int arch_file_allocate(int fd, int mode, int64_t offset, int64_t size)
{
    return (int)result_of(fallocate(fd, mode, offset, size));
}

int arch_file_lock(int fd, int type, int64_t offset, int64_t size)
{
    struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = offset, .l_len = size};
    int result = (int)result_of(fcntl(fd, F_OFD_SETLK, &lock));
    return result == -EACCES ? -EAGAIN : result;
}

/* ---- names -------------------------------------------------------------------------------------------------- */

enum { OWN_FLAGS = O_CLOEXEC | O_NONBLOCK | O_NOCTTY, BENEATH_TRIES = 100 };

/* Unlike openat, this call refuses flags that have no effect, and a mode without a new file. */
static int open_beneath(int dir, const char *path, int flags, unsigned mode, uint64_t further)
{
    int own = flags & O_PATH ? O_CLOEXEC : OWN_FLAGS;
    const struct open_how how = {.flags = (uint32_t)((flags & ~ARCH_FILE_BENEATH) | own),
                                 .mode = flags & ARCH_FILE_CREATES & ~O_TRUNC ? mode & 07777 : 0,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | further};
    return arch_fd_own((int)syscall(SYS_openat2, dir, path, &how, sizeof how));
}

int arch_file_open_now(int dir, const char *path, int flags)
{
    return open_beneath(dir, path, flags, 0, RESOLVE_CACHED);
}

int arch_file_open(int dir, const char *path, int flags, unsigned mode)
{
    if (flags & ARCH_FILE_BENEATH) {
        int fd = -EAGAIN; /* a directory of the system was renamed while the call followed ".." */
        for (int i = 0; fd == -EAGAIN && i < BENEATH_TRIES; i++)
            fd = open_beneath(dir, path, flags, mode, 0);
        return fd;
    }
    return arch_fd_own(openat(dir, path, flags | OWN_FLAGS, (mode_t)mode));
}

int arch_file_stat(int dir, const char *path, int flags, struct stat *out)
{
    return (int)result_of(fstatat(dir, path, out, flags));
}

int arch_file_rename(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return (int)result_of(renameat2(from_dir, from, to_dir, to, flags));
}

int arch_file_link(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return (int)result_of(linkat(from_dir, from, to_dir, to, flags));
}

int arch_file_symlink(const char *target, int dir, const char *path)
{
    return (int)result_of(symlinkat(target, dir, path));
}

int arch_file_read_link(int dir, const char *path, char *target, size_t room)
{
    return (int)result_of(readlinkat(dir, path, target, room));
}

int arch_file_unlink(int dir, const char *path, int flags)
{
    return (int)result_of(unlinkat(dir, path, flags));
}

int arch_file_make_directory(int dir, const char *path, unsigned mode)
{
    return (int)result_of(mkdirat(dir, path, (mode_t)mode));
}

/* ---- directories -------------------------------------------------------------------------------------------- */

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Takes entries out of `size` bytes that the system has written. Returns how many, or a negated errno code. *taken is
 * the position behind the last one; *left: entries are left. */
static int take_entries(const char *buffer, size_t size, struct arch_file_entry *out, size_t most, int64_t *taken,
                        bool *left)
{
    size_t count = 0;
    for (size_t at = 0; at < size;) {
        const struct dirent64 *entry = (const void *)(buffer + at);
        size_t length = strlen(entry->d_name);
        *left = count == most;
        if (*left)
            break;
        if (length >= sizeof out->name) {
            *left = true;
            if (count)
                break;
            *taken = entry->d_off;
            return -ENAMETOOLONG;
        }
        if (!is_dots(entry->d_name)) {
            out[count] = (struct arch_file_entry){.inode = entry->d_ino, .type = entry->d_type};
            memcpy(out[count++].name, entry->d_name, length + 1);
        }
        *taken = entry->d_off;
        at += entry->d_reclen;
    }
    return (int)count;
}

/* `buffer` has LIST_BUFFER bytes. */
static int list(int fd, char *buffer, struct arch_file_entry *out, size_t most)
{
    for (;;) {
        int64_t taken = 0, size = result_of(getdents64(fd, buffer, LIST_BUFFER));
        bool left = false;
        if (size <= 0)
            return (int)size;
        int count = take_entries(buffer, (size_t)size, out, most, &taken, &left);
        if (count && left && lseek(fd, taken, SEEK_SET) < 0)
            return -errno;
        if (count)
            return count;
    }
}

int arch_file_list(int fd, struct arch_file_entry *out, size_t most)
{
    char *buffer = malloc(LIST_BUFFER); /* the caller's stack may be a strand's, and small */
    int count = buffer ? list(fd, buffer, out, most) : -ENOMEM;
    free(buffer);
    return count;
}

/* ---- whole files -------------------------------------------------------------------------------------------- */

/* Reads up to the end, into memory that grows. The size that the system tells may be 0 (/proc), or wrong by now. */
static int64_t read_whole(int fd, size_t max_size, char **out)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (S_ISFIFO(status.st_mode))
        return -ESPIPE; /* it does not block, so what it lacks looks like the end */
    if (status.st_size > 0 && (uint64_t)status.st_size > max_size)
        return -EFBIG;
    size_t size = 0, room = status.st_size > 0 ? (size_t)status.st_size + 2 : 4096;
    char *bytes = malloc(room);
    int64_t got = bytes ? 1 : -ENOMEM;
    while (got > 0) {
        struct iovec part = {bytes + size, room - size - 1};
        got = arch_file_read(fd, &part, 1, -1);
        size += got > 0 ? (size_t)got : 0;
        if (size > max_size) {
            got = -EFBIG;
        } else if (got > 0 && room - size == 1) {
            char *more = realloc(bytes, room *= 2);
            bytes = more ? more : bytes;
            got = more ? got : -ENOMEM;
        }
    }
    if (got < 0) {
        free(bytes);
        return got;
    }
    bytes[size] = 0;
    *out = bytes;
    return (int64_t)size;
}

int64_t arch_file_load(int dir, const char *path, size_t max_size, char **out)
{
    int fd = arch_file_open(dir, path, O_RDONLY, 0);
    if (fd < 0)
        return fd;
    int64_t size = read_whole(fd, max_size, out);
    (void)close(fd);
    return size;
}

/* Opens the directory of a path. */
static int open_parent(int dir, char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return arch_file_open(dir, ".", O_RDONLY | O_DIRECTORY, 0);
    char kept = slash[1];
    slash[1] = 0;
    int fd = arch_file_open(dir, path, O_RDONLY | O_DIRECTORY, 0);
    slash[1] = kept;
    return fd;
}

enum { BESIDE_TRIES = 100, CHANCE_TRIES = 10 };

/* Another run may have taken the names that follow from the same number: a seeded one with the same seed. */
uint64_t arch_file_chance(uint64_t chance, int i)
{
    struct rng rng = {chance + (uint64_t)i};
    return i < CHANCE_TRIES ? rng_next(&rng) : arch_entropy();
}

/* Makes a file with a new name in the directory. `beside` gets the name. */
static int open_beside(int parent, unsigned mode, char *beside, size_t room, uint64_t chance)
{
    int fd = -EEXIST;
    for (int i = 0; fd == -EEXIST && i < BESIDE_TRIES; i++) {
        snprintf(beside, room, ".strand-%016llx", (unsigned long long)arch_file_chance(chance, i));
        fd = arch_file_open(parent, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    }
    return fd;
}

/* Some file systems can't sync a directory, and say so. */
static int sync_directory(int fd)
{
    int error = arch_file_sync(fd, false);
    return error == -EINVAL ? 0 : error;
}

static int store_in(int parent, const char *name, const void *bytes, size_t size, unsigned mode, uint64_t chance)
{
    char beside[32];
    int fd = open_beside(parent, mode, beside, sizeof beside, chance);
    if (fd < 0)
        return fd;
    int error;
    (void)write_all(fd, bytes, size, NULL, &error);
    if (!error)
        error = arch_file_sync(fd, false);
    int closed = arch_fd_close(fd);
    error = error ? error : closed;
    if (!error)
        error = arch_file_rename(parent, beside, parent, name, 0);
    if (error)
        (void)unlinkat(parent, beside, 0);
    return error ? error : sync_directory(parent);
}

int arch_file_store(int dir, char *path, const void *bytes, size_t size, unsigned mode, uint64_t chance)
{
    int parent = *path ? open_parent(dir, path) : -ENOENT;
    if (parent < 0)
        return parent;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int error = *name ? store_in(parent, name, bytes, size, mode, chance) : -EISDIR;
    (void)close(parent);
    return error;
}
