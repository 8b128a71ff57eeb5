/*
 * Files: bytes, names, directories, whole files, and what an interruption does.
 *
 * The calls of the system that are defined here, instead of those of the C library, let a test keep a call of the
 * library on its thread, or a ring of io_uring from being entered, until the test releases it.
 *
 * Here threads of the run make the calls. tests/spec/file_uring.c has the same tests, in which the kernel makes them.
 */
#ifndef SUITE
#define _GNU_SOURCE
#define SUITE file
#define FILES "threads" /* STRAND_FILES */
#define ONE_SEED_IN 10  /* the system makes files in most of the time */
#endif
#include "blocker.h"

#include "strand/exception.h"
#include "strand/file.h"
#include "strand/io.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- calls that are kept ------------------------------------------------------------------------ */

static struct blocker blocker;
static _Atomic bool kept; /* calls wait for the blocker, and nothing is read at once */
static _Atomic bool reads_fail;
static _Atomic bool refused;        /* rings of io_uring */
static _Atomic size_t most_at_once; /* the largest read without waiting */

static void wait_if_kept(void)
{
    if (kept)
        block_until_released(&blocker);
}

/* The C library's function of that name. */
#define REAL(name)                                                                                                     \
    __extension__({                                                                                                    \
        __typeof__(&name) real_;                                                                                       \
        *(void **)&real_ = dlsym(RTLD_NEXT, #name);                                                                    \
        real_;                                                                                                         \
    })

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    if (size > most_at_once)
        most_at_once = size;
    if (!kept)
        return REAL(preadv2)(fd, parts, count, offset, flags);
    errno = EOPNOTSUPP;
    return -1;
}

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
    wait_if_kept();
    return REAL(preadv)(fd, parts, count, offset);
}

ssize_t readv(int fd, const struct iovec *parts, int count)
{
    wait_if_kept();
    return REAL(readv)(reads_fail ? -1 : fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    wait_if_kept();
    return REAL(pwritev)(fd, parts, count, offset);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    wait_if_kept();
    return REAL(openat)(dir, path, flags, mode);
}

static _Atomic int ring = -1; /* the descriptor of the last ring */
static _Atomic long begun;    /* calls of all rings that the kernel has begun */

/* Enters rings of io_uring, unless calls are kept: then the kernel has no memory. It takes more arguments than there
 * may be, which sanitizers would see. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) long syscall(long number, ...)
{
    static __typeof__(&syscall) real;
    long of[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        of[i] = va_arg(rest, long);
    va_end(rest);
    if (!real)
        real = REAL(syscall);
    bool enters = number == SYS_io_uring_enter, was_kept = enters && blocker.entered;
    if (enters && kept && !blocker.released) {
        blocker.entered++;
        errno = EAGAIN;
        return -1;
    }
    if (refused && (enters || number == SYS_io_uring_setup)) {
        errno = EPERM;
        return -1;
    }
    long result = real(number, of[0], of[1], of[2], of[3], of[4], of[5]);
    blocker.passed += was_kept;
    if (number == SYS_io_uring_setup)
        ring = (int)result;
    if (enters && result > 0)
        begun += result;
    return result;
}

/* Whether the kernel makes calls for this process. Valgrind does not see what it writes. */
static bool has_rings(void)
{
    char parameters[256] = "";
    int fd = test_under_valgrind() ? -1 : (int)syscall(SYS_io_uring_setup, 1, parameters, 0, 0, 0, 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

__attribute__((constructor)) static void choose_files(void)
{
    setenv("STRAND_FILES", has_rings() ? FILES : "threads", 1);
}

/* The position in a directory of three entries, which no file system here has: "a", one with a long name, "c". -1: the
 * system's directories. */
static _Atomic int64_t position = -1;

ssize_t getdents64(int fd, void *buffer, size_t size)
{
    char *at = buffer;
    if (position < 0)
        return REAL(getdents64)(fd, buffer, size);
    for (; position < 3; position++) {
        struct dirent64 *entry = (struct dirent64 *)(void *)at;
        size_t length = position == 1 ? 300 : 1;
        memset(at, 0, 512);
        entry->d_ino = 1;
        entry->d_off = position + 1;
        entry->d_reclen = 512;
        memset(at + offsetof(struct dirent64, d_name), 'a' + (int)position, length);
        at += 512;
    }
    return at - (char *)buffer;
}

off_t lseek(int fd, off_t offset, int whence)
{
    if (position < 0)
        return REAL(lseek)(fd, offset, whence);
    position = offset;
    return offset;
}

/* Under seeds threads make all calls. */
static bool by_threads(void)
{
#ifdef BY_KERNEL
    return test_seed() != 0 || !has_rings();
#else
    return true;
#endif
}

static void keep(void)
{
    blocker_reset(&blocker);
    kept = true;
}

/* Calls that are kept already stay so until the blocker is released. */
static void keep_no_more(void)
{
    kept = false;
}

static void release(void)
{
    kept = false;
    blocker.released = 1;
}

/* ---- a directory for a test ----------------------------------------------------------------------- */

static void remove_all(int dir)
{
    strand_file_entry entries[16];
    int again = strand_file_open(dir, ".", O_RDONLY | O_DIRECTORY, 0), count;
    CHECK(again >= 0);
    while ((count = strand_file_list(again, entries, 16)) > 0)
        for (int i = 0; i < count; i++)
            CHECK_EQ(strand_file_unlink(dir, entries[i].name, entries[i].type == DT_DIR ? AT_REMOVEDIR : 0), 0);
    CHECK_EQ(count, 0);
    CHECK_EQ(strand_close(again), 0);
}

struct place {
    char path[64];
    int dir;
};

static struct place place_make(void)
{
    struct place place = {.path = "/tmp/strand-file-XXXXXX"};
    CHECK(mkdtemp(place.path));
    place.dir = strand_file_open(AT_FDCWD, place.path, O_RDONLY | O_DIRECTORY, 0);
    CHECK(place.dir >= 0);
    return place;
}

static void place_remove(struct place *place)
{
    remove_all(place->dir);
    CHECK_EQ(strand_close(place->dir), 0);
    CHECK_EQ(strand_file_unlink(AT_FDCWD, place->path, AT_REMOVEDIR), 0);
}

/* A directory of the test's own, which is removed with all that is in it. */
#define PLACE(name) __attribute__((cleanup(place_remove))) struct place name = place_make()

static int open_new(const struct place *place, const char *name)
{
    int fd = strand_file_open(place->dir, name, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    return fd;
}

static void check_file(const struct place *place, const char *name, const char *bytes)
{
    char *got;
    CHECK_EQ(strand_file_load(place->dir, name, 0, &got), strlen(bytes));
    CHECK_STR(got, bytes);
    free(got);
}

static void make_file(const struct place *place, const char *name, const char *bytes)
{
    int fd = open_new(place, name);
    CHECK_EQ(strand_file_write(fd, bytes, strlen(bytes), 0), strlen(bytes));
    CHECK_EQ(strand_close(fd), 0);
}

/* ---- reading and writing ---------------------------------------------------------------------------- */

TEST_INSIDE(bytes_are_written_and_read_at_offsets)
{
    PLACE(place);
    char bytes[8] = "";
    int fd = open_new(&place, "a");
    CHECK_EQ(strand_file_write(fd, "hello", 5, 3), 5);
    CHECK_EQ(strand_file_write(fd, "abc", 3, 0), 3);
    CHECK_EQ(strand_file_read(fd, bytes, 7, 1), 7);
    CHECK_STR(bytes, "bchello");
    CHECK_EQ(strand_file_read(fd, bytes, 8, 6), 2);
    CHECK_EQ(strand_file_read(fd, bytes, 8, 8), 0);
    CHECK_EQ(strand_file_read(fd, bytes, 0, 0), 0);
    CHECK_EQ(strand_file_write(fd, NULL, 0, 0), 0);
    CHECK_EQ(strand_close(fd), 0);
}

TEST_INSIDE(without_an_offset_the_position_moves)
{
    PLACE(place);
    char bytes[8] = "";
    int fd = open_new(&place, "a");
    CHECK_EQ(strand_file_write(fd, "hello", 5, -1), 5);
    CHECK_EQ(strand_file_write(fd, " you", 4, -1), 4);
    CHECK_EQ(strand_file_read(fd, bytes, 8, -1), 0);
    CHECK_EQ(lseek(fd, 4, SEEK_SET), 4);
    CHECK_EQ(strand_file_read(fd, bytes, 3, -1), 3);
    CHECK_EQ(strand_file_read(fd, bytes + 3, 4, -1), 2);
    CHECK_STR(bytes, "o you");
    CHECK_EQ(strand_close(fd), 0);
    fd = strand_file_open(place.dir, "a", O_WRONLY | O_APPEND, 0);
    CHECK_EQ(strand_file_write(fd, "!", 1, -1), 1);
    CHECK_EQ(strand_close(fd), 0);
    check_file(&place, "a", "hello you!");
}

static void *write_lines(void *fd)
{
    for (int i = 0; i < 20; i++)
        CHECK_EQ(strand_file_write(*(int *)fd, "0123456789", 10, -1), 10);
    return fd;
}

TEST_RACE(writes_of_many_strands_at_the_position_follow_each_other)
{
    enum { WRITERS = 20 };
    PLACE(place);
    struct stat status;
    int fd = open_new(&place, "a");
    STRAND_SCOPE(scope);
    for (int i = 0; i < WRITERS; i++)
        strand_spawn(scope, write_lines, &fd);
    strand_scope_join(scope);
    CHECK_EQ(strand_close(fd), 0);
    CHECK_EQ(strand_file_stat(place.dir, "a", 0, &status), 0);
    CHECK_EQ(status.st_size, WRITERS * 20 * 10);
}

TEST_INSIDE(several_buffers_are_one_after_the_other)
{
    PLACE(place);
    char a[3] = "", b[4] = "", c[9] = "";
    int fd = open_new(&place, "a");
    const struct iovec from[] = {{"one", 3}, {NULL, 0}, {"two", 3}, {"three", 5}}, into[] = {{a, 2}, {b, 3}, {c, 8}};
    CHECK_EQ(strand_file_writev(fd, from, 4, 1), 11);
    CHECK_EQ(strand_file_writev(fd, from, 1, 12), 3);
    CHECK_EQ(strand_file_readv(fd, into, 3, 1), 13);
    CHECK_STR(a, "on");
    CHECK_STR(b, "etw");
    CHECK_STR(c, "othreeon");
    CHECK_EQ(strand_file_readv(fd, into, 3, 10), 5);
    CHECK_EQ(strand_file_readv(fd, into, 0, 0), 0);
    CHECK_EQ(strand_file_readv(fd, into, -1, 0), -EINVAL);
    CHECK_EQ(strand_file_writev(fd, into, 1025, 0), -EINVAL);
    CHECK_EQ(strand_file_read(fd, a, 1, -2), -EINVAL);
    CHECK_EQ(strand_file_write(fd, a, 1, -2), -EINVAL);
    const struct iovec too_long[] = {{a, SIZE_MAX / 2}, {b, 1}};
    CHECK_EQ(strand_file_readv(fd, too_long, 2, 0), -EINVAL);
    CHECK_EQ(strand_file_readv(fd, &(struct iovec){NULL, 1}, 1, 0), -EFAULT);
    CHECK_EQ(strand_close(fd), 0);
}

static unsigned char pattern(size_t at)
{
    return (unsigned char)(at * 31 + at / 4093);
}

/* Larger than the parts in which bytes are moved. */
static void write_and_read_large(int fd, size_t size)
{
    unsigned char *bytes = malloc(size), *back = calloc(1, size);
    CHECK(bytes && back);
    for (size_t i = 0; i < size; i++)
        bytes[i] = pattern(i);
    const struct iovec from[] = {{bytes, 1000}, {bytes + 1000, 0}, {bytes + 1000, size - 1000}};
    const struct iovec into[] = {{back, size / 2 + 7}, {back + size / 2 + 7, size - size / 2 - 7}};
    CHECK_EQ(strand_file_writev(fd, from, 3, 5), size);
    CHECK_EQ(strand_file_readv(fd, into, 2, 5), size);
    CHECK(memcmp(bytes, back, size) == 0);
    free(bytes);
    free(back);
}

TEST_INSIDE(transfers_of_many_mebibytes_are_whole)
{
    PLACE(place);
    int fd = open_new(&place, "a");
    size_t size = test_seed() ? ((size_t)2 << 20) + 3 : ((size_t)33 << 20) + 3;
    write_and_read_large(fd, size);
    CHECK(most_at_once <= (size_t)1 << 20); /* others run meanwhile, and deadlines are seen */
    keep();
    release();
    kept = true; /* nothing is read at once, and nothing waits */
    write_and_read_large(fd, ((size_t)2 << 20) + 3);
    kept = false;
    CHECK_EQ(strand_close(fd), 0);
}

TEST_INSIDE(a_file_past_the_systems_memory_gets_aligned_buffers)
{
    PLACE(place);
    enum { SIZE = 8192 };
    int fd = strand_file_open(place.dir, "a", O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (fd == -EINVAL)
        return; /* the file system has no such files */
    CHECK(fd >= 0);
    char *bytes = aligned_alloc(4096, SIZE), back[SIZE + 1] = "";
    memset(bytes, 'x', SIZE);
    CHECK_EQ(strand_file_write(fd, bytes, SIZE, 0), SIZE);
    CHECK_EQ(strand_file_read(fd, back + 1, 4096, 4096), 4096); /* the caller's may lie anywhere */
    CHECK(memcmp(back + 1, bytes, 4096) == 0);
    free(bytes);
    CHECK_EQ(strand_close(fd), 0);
}

/* ---- copying, size, disk ------------------------------------------------------------------------------ */

TEST_INSIDE(ranges_are_copied_between_files)
{
    PLACE(place);
    make_file(&place, "a", "0123456789");
    int from = strand_file_open(place.dir, "a", O_RDONLY, 0), to = open_new(&place, "b");
    int64_t at = 2, put = 1;
    CHECK_EQ(strand_file_copy(from, &at, to, &put, 4), 4);
    CHECK_EQ(at, 6);
    CHECK_EQ(put, 5);
    CHECK_EQ(strand_file_copy(from, NULL, to, &put, 3), 3);
    CHECK_EQ(strand_file_copy(from, NULL, to, &put, 100), 7);
    CHECK_EQ(strand_file_copy(from, NULL, to, &put, 100), 0);
    CHECK_EQ(strand_file_copy(from, &at, to, NULL, 1), 1); /* at position 0 of `to` */
    CHECK_EQ(strand_file_copy(from, &at, to, &put, 0), 0);
    CHECK_EQ(strand_file_copy(to, &at, from, &put, 1), -EBADF);
    CHECK_EQ(strand_close(from) + strand_close(to), 0);
    check_file(&place, "b",
               "62345"
               "012"
               "3456789");
}

TEST_INSIDE(a_copy_that_cannot_be_made_moves_no_position)
{
    PLACE(place);
    int ends[2];
    int64_t negative = -1, at = 0, put = 2;
    make_file(&place, "a", "0123456789");
    int from = strand_file_open(place.dir, "a", O_RDWR, 0), to = open_new(&place, "b");
    CHECK_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    CHECK_EQ(strand_file_copy(from, NULL, ends[1], NULL, 100), -ESPIPE);
    CHECK_EQ(strand_file_copy(from, &negative, to, NULL, 100), -EINVAL);
    CHECK_EQ(strand_file_copy(from, NULL, to, &negative, 100), -EINVAL);
    CHECK_EQ(negative, -1);
    CHECK_EQ(strand_file_copy(from, &at, from, &put, 100), -EINVAL); /* the ranges overlap */
    CHECK_EQ(lseek(from, 0, SEEK_CUR) + lseek(to, 0, SEEK_CUR), 0);
    CHECK_EQ(strand_close(from) + strand_close(to) + strand_close(ends[0]) + strand_close(ends[1]), 0);
    check_file(&place, "a", "0123456789");
    check_file(&place, "b", "");
}

TEST_INSIDE(bytes_are_copied_to_the_end_of_a_file_that_is_appended_to)
{
    PLACE(place);
    make_file(&place, "a", "0123456789");
    make_file(&place, "b", "b");
    int from = strand_file_open(place.dir, "a", O_RDONLY, 0);
    int to = strand_file_open(place.dir, "b", O_WRONLY | O_APPEND, 0);
    CHECK_EQ(strand_file_copy(from, NULL, to, NULL, 100), 10);
    CHECK_EQ(strand_close(from) + strand_close(to), 0);
    check_file(&place, "b", "b0123456789");
}

/* The system can't copy from there, and the disk, which a limit on the size of a file stands for, is full. */
TEST_INSIDE(a_copy_by_hand_that_the_disk_ends_says_how_far_it_came)
{
    PLACE(place);
    struct rlimit before, limit;
    char byte;
    int from = strand_file_open(AT_FDCWD, "/proc/self/maps", O_RDONLY, 0), to = open_new(&place, "b");
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int64_t size = strand_file_copy(from, NULL, to, NULL, 200);
    int64_t next = strand_file_copy(from, NULL, to, NULL, 200);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    CHECK_EQ(size, 100);
    CHECK_EQ(next, -EFBIG);
    CHECK_EQ(lseek(from, 0, SEEK_CUR), 100);
    CHECK_EQ(lseek(to, 0, SEEK_CUR), 100);
    CHECK_EQ(strand_file_read(from, &byte, 1, -1), 1);
    CHECK_EQ(strand_close(from) + strand_close(to), 0);
}

TEST_INSIDE(files_that_the_system_makes_up_are_copied_too)
{
    PLACE(place);
    int from = strand_file_open(AT_FDCWD, "/proc/self/cmdline", O_RDONLY, 0), to = open_new(&place, "b");
    char *bytes;
    int64_t size = strand_file_load(AT_FDCWD, "/proc/self/cmdline", 0, &bytes), copied = 0, got;
    CHECK(size > 0);
    while ((got = strand_file_copy(from, NULL, to, NULL, 1 << 20)) > 0)
        copied += got;
    CHECK_EQ(got, 0);
    CHECK_EQ(copied, size);
    free(bytes);
    CHECK_EQ(strand_close(from) + strand_close(to), 0);
}

TEST_INSIDE(a_files_size_changes_and_its_bytes_reach_the_disk)
{
    PLACE(place);
    struct stat status;
    make_file(&place, "a", "0123456789");
    int fd = strand_file_open(place.dir, "a", O_RDWR, 0);
    CHECK_EQ(strand_file_truncate(fd, 4), 0);
    check_file(&place, "a", "0123");
    int error = strand_file_allocate(fd, 0, 0, 100);
    CHECK(error == 0 || error == -EOPNOTSUPP);
    CHECK_EQ(strand_file_stat(fd, "", AT_EMPTY_PATH, &status), 0);
    CHECK_EQ(status.st_size, error ? 4 : 100);
    CHECK_EQ(strand_file_truncate(fd, -1), -EINVAL);
    CHECK_EQ(strand_file_sync(fd, true), 0);
    CHECK_EQ(strand_file_sync(fd, false), 0);
    CHECK_EQ(strand_close(fd), 0);
    CHECK_EQ(strand_file_sync(place.dir, false), 0);
}

/* ---- locks --------------------------------------------------------------------------------------------- */

static void *lock_for_long(void *fd)
{
    CHECK_EQ(strand_file_lock(*(int *)fd, F_WRLCK, 0, 0), 0);
    test_log("locked");
    return fd;
}

TEST_INSIDE(a_range_is_locked_by_one_open_file_at_a_time)
{
    PLACE(place);
    make_file(&place, "a", "x");
    int one = strand_file_open(place.dir, "a", O_RDWR, 0), two = strand_file_open(place.dir, "a", O_RDWR, 0);
    CHECK_EQ(strand_file_try_lock(one, F_WRLCK, 10, 5), 0);
    CHECK_EQ(strand_file_try_lock(two, F_WRLCK, 14, 1), -EAGAIN);
    CHECK_EQ(strand_file_try_lock(two, F_RDLCK, 0, 0), -EAGAIN);
    CHECK_EQ(strand_file_try_lock(two, F_WRLCK, 15, 1), 0);
    CHECK_EQ(strand_file_lock(one, F_UNLCK, 0, 0), 0);
    CHECK_EQ(strand_file_lock(two, F_UNLCK, 0, 0), 0);
    CHECK_EQ(strand_file_try_lock(one, 77, 0, 0), -EINVAL);
    test_log_clear();
    STRAND_SCOPE(scope);
    CHECK_EQ(strand_file_lock(one, F_RDLCK, 0, 0), 0);
    strand child = strand_spawn(scope, lock_for_long, &two);
    strand_sleep(30 * STRAND_MS);
    CHECK_LOG("");
    CHECK_EQ(strand_file_lock(one, F_UNLCK, 0, 0), 0);
    strand_join(child);
    CHECK_LOG("locked");
    child = strand_spawn(scope, lock_for_long, &one);
    strand_sleep(STRAND_MS);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    CHECK_EQ(strand_close(one) + strand_close(two), 0);
}

static void *lock_what_is_closed(void *fd)
{
    CHECK_EQ(strand_file_lock(*(int *)fd, F_WRLCK, 0, 0), -EBADF);
    return fd;
}

TEST_INSIDE(a_number_is_not_given_away_while_a_lock_waits)
{
    PLACE(place);
    make_file(&place, "a", "x");
    make_file(&place, "b", "x");
    int one = strand_file_open(place.dir, "a", O_RDWR, 0), two = strand_file_open(place.dir, "a", O_RDWR, 0);
    CHECK_EQ(strand_file_lock(one, F_WRLCK, 0, 0), 0);
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, lock_what_is_closed, &two);
    test_await_blocked("waits for a file", 1);
    strand_sleep(5 * STRAND_MS);
    CHECK_EQ(strand_close(two), 0);
    int other = strand_file_open(place.dir, "b", O_RDWR, 0);
    strand_join(child);
    CHECK_EQ(strand_close(one) + strand_close(other), 0);
}

/* ---- names ------------------------------------------------------------------------------------------------ */

TEST_INSIDE(names_are_made_changed_and_removed_beside_a_directory)
{
    PLACE(place);
    struct stat status, other;
    make_file(&place, "a", "bytes");
    CHECK_EQ(strand_file_make_directory(place.dir, "d", 0700), 0);
    CHECK_EQ(strand_file_make_directory(place.dir, "d", 0700), -EEXIST);
    int d = strand_file_open(place.dir, "d", O_RDONLY | O_DIRECTORY, 0);
    CHECK_EQ(strand_file_rename(place.dir, "a", d, "b", 0), 0);
    CHECK_EQ(strand_file_link(d, "b", place.dir, "a", 0), 0);
    CHECK_EQ(strand_file_rename(d, "b", place.dir, "a", RENAME_NOREPLACE), -EEXIST);
    CHECK_EQ(strand_file_stat(place.dir, "a", 0, &status), 0);
    CHECK_EQ(strand_file_stat(d, "b", 0, &other), 0);
    CHECK_EQ(status.st_ino, other.st_ino);
    CHECK_EQ(status.st_nlink, 2);
    CHECK_EQ(strand_file_symlink("d/b", place.dir, "s"), 0);
    CHECK_EQ(strand_file_stat(place.dir, "s", 0, &other), 0);
    CHECK_EQ(status.st_ino, other.st_ino);
    CHECK_EQ(strand_file_stat(place.dir, "s", AT_SYMLINK_NOFOLLOW, &other), 0);
    CHECK(S_ISLNK(other.st_mode));
    CHECK_EQ(strand_file_unlink(place.dir, "d", AT_REMOVEDIR), -ENOTEMPTY);
    CHECK_EQ(strand_file_unlink(d, "b", 0), 0);
    CHECK_EQ(strand_file_unlink(place.dir, "d", AT_REMOVEDIR), 0);
    CHECK_EQ(strand_file_stat(place.dir, "s", 0, &other), -ENOENT);
    CHECK_EQ(strand_close(d), 0);
}

TEST_INSIDE(the_target_of_a_link_is_read_whole_or_not_at_all)
{
    PLACE(place);
    char target[8] = "before";
    CHECK_EQ(strand_file_symlink("1234567", place.dir, "s"), 0);
    CHECK_EQ(strand_file_read_link(place.dir, "s", target, 7), -ENAMETOOLONG);
    CHECK_EQ(strand_file_read_link(place.dir, "s", target, 0), -ENAMETOOLONG);
    CHECK_STR(target, "before");
    CHECK_EQ(strand_file_read_link(place.dir, "s", target, 8), 7);
    CHECK_STR(target, "1234567");
    CHECK_EQ(strand_file_read_link(place.dir, ".", target, 8), -EINVAL);
}

TEST_INSIDE(errors_are_those_of_the_system)
{
    PLACE(place);
    char byte, *bytes = &byte, long_path[5000];
    struct stat status;
    int ends[2];
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = 0;
    CHECK_EQ(strand_file_open(place.dir, "none", O_RDONLY, 0), -ENOENT);
    CHECK_EQ(strand_file_open(place.dir, long_path, O_RDONLY, 0), -ENAMETOOLONG);
    CHECK_EQ(strand_file_open(place.dir, "", O_RDONLY, 0), -ENOENT);
    CHECK_EQ(strand_file_open(987654, "none", O_RDONLY, 0), -EBADF);
    CHECK_EQ(strand_file_open(-1, "none", O_RDONLY, 0), -EBADF);
    CHECK_EQ(strand_file_rename(place.dir, "none", 987654, "new", 0), -EBADF);
    CHECK_EQ(strand_file_stat(place.dir, "none", 0, &status), -ENOENT);
    CHECK_EQ(strand_file_load(place.dir, "none", 0, &bytes), -ENOENT);
    CHECK_EQ(strand_file_load(place.dir, ".", 0, &bytes), -EISDIR);
    CHECK_PTR(bytes, &byte);
    CHECK_EQ(strand_file_read(-1, &byte, 1, 0), -EBADF);
    CHECK_EQ(strand_file_read(987654, &byte, 1, 0), -EBADF);
    CHECK_EQ(strand_file_copy(987654, NULL, place.dir, NULL, 1), -EBADF);
    CHECK_EQ(strand_file_copy(place.dir, NULL, 987654, NULL, 1), -EBADF);
    CHECK_EQ(strand_file_read(place.dir, &byte, 1, 0), -EISDIR);
    CHECK_EQ(strand_pipe(ends), 0);
    CHECK_EQ(strand_file_read(ends[0], &byte, 1, -1), -ESPIPE);
    CHECK_EQ(strand_file_write(ends[1], &byte, 1, -1), -ESPIPE);
    CHECK_EQ(strand_file_open(ends[0], "none", O_RDONLY, 0), -ENOTDIR);
    CHECK_EQ(strand_close(ends[0]) + strand_close(ends[1]), 0);
}

TEST_INSIDE(a_descriptor_does_not_block_and_is_closed_on_exec)
{
    PLACE(place);
    char path[128];
    int fd = open_new(&place, "a");
    CHECK(fd > STDERR_FILENO);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(strand_close(fd), 0);
    snprintf(path, sizeof path, "%s/fifo", place.path);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(strand_file_open(place.dir, "fifo", O_WRONLY, 0), -ENXIO);
    fd = strand_file_open(place.dir, "fifo", O_RDONLY, 0);
    CHECK(fd >= 0);
    CHECK_EQ(strand_close(fd), 0);
    fd = strand_file_open(place.dir, ".", O_TMPFILE | O_RDWR, 0600);
    CHECK(fd >= 0 || fd == -EOPNOTSUPP);
    if (fd >= 0) {
        CHECK_EQ(strand_file_write(fd, "x", 1, 0), 1);
        CHECK_EQ(strand_close(fd), 0);
    }
}

/* A number that another library has reused for a file, after a socket that strands had used. */
TEST_SYSTEM_INSIDE(a_number_that_another_library_has_reused_is_recognised)
{
    PLACE(place);
    char byte = 'x';
    int ends[2];
    make_file(&place, "a", "y");
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(strand_write(ends[1], &byte, 1), 1);
    CHECK_EQ(strand_read(ends[0], &byte, 1), 1);
    char path[128];
    snprintf(path, sizeof path, "%s/a", place.path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(dup2(fd, ends[0]), ends[0]);
    CHECK_EQ(strand_file_read(ends[0], &byte, 1, 0), 1);
    CHECK_EQ(byte, 'y');
    CHECK_EQ(close(fd) + strand_close(ends[0]) + strand_close(ends[1]), 0);
}

/* ---- directories --------------------------------------------------------------------------------------------- */

static void list_in_steps(const struct place *place, size_t step, int files)
{
    strand_file_entry *entries = calloc(step, sizeof *entries);
    bool *seen = calloc((size_t)files, 1);
    int dir = strand_file_open(place->dir, ".", O_RDONLY | O_DIRECTORY, 0), count, all = 0;
    while ((count = strand_file_list(dir, entries, step)) > 0) {
        CHECK((size_t)count <= step);
        for (int i = 0; i < count; i++, all++) {
            int number = atoi(entries[i].name + 1);
            CHECK(entries[i].name[0] == 'f' && number < files && !seen[number]);
            CHECK(entries[i].type == DT_REG || entries[i].type == DT_UNKNOWN);
            CHECK(entries[i].inode != 0);
            seen[number] = true;
        }
    }
    CHECK_EQ(count, 0);
    CHECK_EQ(all, files);
    CHECK_EQ(strand_close(dir), 0);
    free(entries);
    free(seen);
}

TEST_INSIDE(each_entry_of_a_directory_is_listed_once)
{
    PLACE(place);
    strand_file_entry entry;
    int files = test_seed() ? 20 : 2500;
    CHECK_EQ(strand_file_list(place.dir, &entry, 1), 0);
    for (int i = 0; i < files; i++) {
        char name[64];
        snprintf(name, sizeof name, "f%d-%0*d", i, i % 40, 0);
        CHECK_EQ(strand_close(open_new(&place, name)), 0);
    }
    list_in_steps(&place, 1, files);
    list_in_steps(&place, 7, files);
    list_in_steps(&place, 5000, files);
    CHECK_EQ(strand_file_list(place.dir, NULL, 0), 0);
    int fd = strand_file_open(place.dir, "f0-0", O_RDONLY, 0);
    CHECK_EQ(strand_file_list(fd, &entry, 1), -ENOTDIR);
    CHECK_EQ(strand_close(fd), 0);
}

TEST_INSIDE(a_name_that_is_too_long_hides_no_other_one)
{
    PLACE(place);
    strand_file_entry entries[4];
    position = 0;
    CHECK_EQ(strand_file_list(place.dir, entries, 4), 1);
    CHECK_STR(entries[0].name, "a");
    CHECK_EQ(strand_file_list(place.dir, entries, 4), -ENAMETOOLONG);
    CHECK_EQ(strand_file_list(place.dir, entries, 4), 1);
    CHECK_STR(entries[0].name, "c");
    CHECK_EQ(strand_file_list(place.dir, entries, 4), 0);
    position = -1;
}

/* ---- whole files ---------------------------------------------------------------------------------------------- */

TEST_INSIDE(a_whole_file_is_loaded)
{
    PLACE(place);
    char *bytes = NULL;
    make_file(&place, "a", "0123456789");
    make_file(&place, "empty", "");
    check_file(&place, "empty", "");
    CHECK_EQ(strand_file_load(place.dir, "a", 9, &bytes), -EFBIG);
    CHECK_PTR(bytes, NULL);
    CHECK_EQ(strand_file_load(place.dir, "a", 10, &bytes), 10);
    CHECK_STR(bytes, "0123456789");
    free(bytes);
    int fd = strand_file_open(place.dir, "large", O_WRONLY | O_CREAT, 0600);
    CHECK_EQ(strand_file_truncate(fd, ((int64_t)1 << 30) + 1), 0);
    CHECK_EQ(strand_close(fd), 0);
    CHECK_EQ(strand_file_load(place.dir, "large", 0, &bytes), -EFBIG);
    reads_fail = true;
    CHECK_EQ(strand_file_load(place.dir, "large", SIZE_MAX, &bytes), -EBADF); /* there is no limit: it is read */
    reads_fail = false;
    CHECK_EQ(mkfifoat(place.dir, "fifo", 0600), 0);
    CHECK_EQ(strand_file_load(place.dir, "fifo", 0, &bytes), -ESPIPE);
    /* Its size is said to be 0. */
    CHECK(strand_file_load(AT_FDCWD, "/proc/self/maps", 0, &bytes) > 4096);
    CHECK(strstr(bytes, "[stack]"));
    free(bytes);
    CHECK_EQ(strand_file_load(AT_FDCWD, "/proc/self/maps", 4096, &bytes), -EFBIG);
}

static int count_entries(const struct place *place)
{
    strand_file_entry entries[16];
    int dir = strand_file_open(place->dir, ".", O_RDONLY | O_DIRECTORY, 0);
    int count = strand_file_list(dir, entries, 16);
    CHECK_EQ(strand_close(dir), 0);
    return count;
}

TEST_INSIDE(a_whole_file_is_replaced_at_once)
{
    PLACE(place);
    struct stat status;
    char path[128], name[256];
    CHECK_EQ(strand_file_store(place.dir, "a", "old", 3, 0640), 0);
    int old = strand_file_open(place.dir, "a", O_RDONLY, 0);
    CHECK_EQ(strand_file_store(place.dir, "a", "the new one", 11, 0600), 0);
    check_file(&place, "a", "the new one");
    CHECK_EQ(strand_file_stat(place.dir, "a", 0, &status), 0);
    CHECK_EQ(status.st_mode & 0777, 0600);
    CHECK_EQ(strand_file_read(old, path, 10, 0), 3); /* a reader of the old one has all of it */
    CHECK_EQ(strand_close(old), 0);
    snprintf(path, sizeof path, "%s/b", place.path);
    CHECK_EQ(strand_file_store(AT_FDCWD, path, NULL, 0, 0600), 0);
    check_file(&place, "b", "");
    memset(name, 'n', 255);
    name[255] = 0;
    CHECK_EQ(strand_file_store(place.dir, name, "x", 1, 0600), 0);
    check_file(&place, name, "x");
    CHECK_EQ(count_entries(&place), 3);
}

TEST_INSIDE(a_file_that_cannot_be_replaced_stays_and_nothing_lies_beside_it)
{
    PLACE(place);
    CHECK_EQ(strand_file_make_directory(place.dir, "d", 0700), 0);
    CHECK_EQ(strand_file_store(place.dir, "d", "x", 1, 0600), -EISDIR);
    CHECK_EQ(strand_file_store(place.dir, "d/", "x", 1, 0600), -EISDIR);
    CHECK_EQ(strand_file_store(place.dir, "none/a", "x", 1, 0600), -ENOENT);
    CHECK_EQ(strand_file_store(place.dir, "", "x", 1, 0600), -ENOENT);
    CHECK_EQ(count_entries(&place), 1);
}

static _Atomic bool others_ran;

static void *let_it_end(void *arg)
{
    others_ran = true;
    return arg;
}

TEST_INSIDE(strands_run_beside_one_whose_calls_never_wait)
{
    PLACE(place);
    char byte;
    make_file(&place, "a", "hello");
    int fd = strand_file_open(place.dir, "a", O_RDONLY, 0);
    STRAND_SCOPE(scope);
    strand_spawn(scope, let_it_end, NULL);
    while (!others_ran)
        CHECK_EQ(strand_file_read(fd, &byte, 1, 0), 1);
    strand_scope_join(scope);
    CHECK_EQ(strand_close(fd), 0);
}

/* ---- interruption ---------------------------------------------------------------------------------------------- */

struct job {
    const struct place *place;
    int fd;
    char buffer[8];
    int64_t result;
    bool second; /* a second call was interrupted */
};

/* What a strand does that is interrupted meanwhile; each makes one more call, which has to be interrupted. */
static void *read_and_go_on(void *arg)
{
    struct job *job = arg;
    job->result = strand_file_read(job->fd, job->buffer, 5, 0);
    test_log("read");
    strand_sleep(0);
    return job;
}

static void *write_and_go_on(void *arg)
{
    struct job *job = arg;
    job->result = strand_file_write(job->fd, "HELLO", 5, 0);
    test_log("wrote");
    strand_sleep(0);
    return job;
}

static void *open_and_go_on(void *arg)
{
    struct job *job = arg;
    job->result = strand_file_open(job->place->dir, "a", O_RDONLY, 0);
    test_log("opened");
    return job;
}

static void *load_and_go_on(void *arg)
{
    struct job *job = arg;
    char *bytes;
    job->result = strand_file_load(job->place->dir, "a", 0, &bytes);
    test_log("loaded");
    return job;
}

static void *load_directory_and_go_on(void *arg)
{
    struct job *job = arg;
    char *bytes;
    job->result = strand_file_load(job->place->dir, ".", 0, &bytes);
    test_log("loaded");
    return job;
}

static strand start_kept(strand_scope scope, strand_fn *fn, struct job *job)
{
    test_log_clear();
    keep();
    strand child = strand_spawn(scope, fn, job);
    YIELD_UNTIL(blocker.entered);
    return child;
}

static struct job job_on(const struct place *place)
{
    make_file(place, "a", "hello");
    return (struct job){.place = place, .fd = strand_file_open(place->dir, "a", O_RDWR, 0), .buffer = "before"};
}

TEST_INSIDE(other_strands_run_while_a_call_on_a_file_waits)
{
    PLACE(place);
    struct job job = job_on(&place);
    STRAND_SCOPE(scope);
    strand child = start_kept(scope, read_and_go_on, &job);
    test_await_blocked("waits for a file", 1);
    release();
    strand_join(child);
    CHECK_EQ(job.result, 5);
    CHECK_STR(job.buffer, "helloe");
    CHECK_EQ(strand_close(job.fd), 0);
}

TEST_INSIDE(an_interrupted_read_ends_at_once_and_its_buffer_stays)
{
    PLACE(place);
    struct job job = job_on(&place);
    STRAND_SCOPE(scope);
    strand child = start_kept(scope, read_and_go_on, &job);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    CHECK_LOG("");
    CHECK_EQ(blocker.passed, 0);
    CHECK_EQ(strand_close(job.fd), 0);
    release();
    YIELD_UNTIL(blocker.passed);
    CHECK_STR(job.buffer, "before");
}

/* Whether it has begun when it is released is up to the kernel, if that makes the call. */
TEST_INSIDE(an_interrupted_write_that_has_begun_is_finished_and_the_next_call_is_interrupted)
{
    PLACE(place);
    struct job job = job_on(&place);
    STRAND_SCOPE(scope);
    strand child = start_kept(scope, write_and_go_on, &job);
    strand_cancel(child, NULL);
    strand_sleep(STRAND_MS);
    CHECK_LOG("");
    release();
    CHECK(test_join_interrupted(child));
    if (by_threads() || job.result)
        CHECK_LOG("wrote");
    CHECK_EQ(strand_close(job.fd), 0);
    CHECK(job.result == 5 || !by_threads());
    check_file(&place, "a", job.result ? "HELLO" : "hello");
}

#ifndef BY_KERNEL
TEST_REAL_INSIDE(a_write_that_has_not_begun_when_it_is_interrupted_never_happens)
{
    enum { THREADS = 64 };
    PLACE(place);
    struct job job = job_on(&place);
    STRAND_SCOPE(scope);
    test_log_clear();
    keep();
    static struct job readers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        readers[i] = job;
        strand_spawn(scope, read_and_go_on, &readers[i]);
    }
    YIELD_UNTIL(blocker.entered == THREADS);
    strand child = strand_spawn(scope, write_and_go_on, &job);
    test_await_blocked("waits for a file", THREADS + 1);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    CHECK_LOG_OF('w', "");
    release();
    strand_scope_join(scope);
    CHECK_EQ(strand_close(job.fd), 0);
    check_file(&place, "a", "hello");
}

#endif

TEST_INSIDE(an_interrupted_open_leaves_no_descriptor)
{
    PLACE(place);
    struct job job = job_on(&place);
    STRAND_SCOPE(scope);
    int before = test_count_entries("/proc/self/fd");
    strand child = start_kept(scope, open_and_go_on, &job);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    CHECK_LOG("");
    release();
    YIELD_UNTIL(blocker.passed);
    YIELD_UNTIL(test_count_entries("/proc/self/fd") <= before);
    CHECK_EQ(strand_close(job.fd), 0);
}

TEST_INSIDE(an_interrupted_load_frees_what_it_has_read)
{
    PLACE(place);
    struct job job = job_on(&place);
    STRAND_SCOPE(scope);
    strand child = start_kept(scope, load_and_go_on, &job);
    keep_no_more();
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    release();
    YIELD_UNTIL(blocker.passed);
    CHECK_EQ(strand_close(job.fd), 0);
}

TEST_INSIDE(an_interrupted_load_that_fails_afterwards_has_nothing_to_free)
{
    PLACE(place);
    struct job job = job_on(&place);
    STRAND_SCOPE(scope);
    char *garbage[8]; /* memory of that size, which is not zero, for the record of the call */
    for (size_t i = 0; i < 8; i++)
        garbage[i] = memset(malloc(64 << i), 0x5a, 64 << i);
    for (size_t i = 0; i < 8; i++)
        free(garbage[i]);
    strand child = start_kept(scope, load_directory_and_go_on, &job);
    keep_no_more();
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    release();
    YIELD_UNTIL(blocker.passed);
    CHECK_LOG("");
    CHECK_EQ(strand_close(job.fd), 0);
}

TEST_INSIDE(a_deadline_ends_a_read)
{
    PLACE(place);
    struct job job = job_on(&place);
    test_log_clear();
    keep();
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        strand_file_read(job.fd, job.buffer, 5, 0);
        CHECK_FAIL("the read was not interrupted");
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("late");
    }
    STRAND_END
    release();
    CHECK_LOG("late");
    CHECK_EQ(strand_close(job.fd), 0);
}

static void *read_large_and_go_on(void *arg)
{
    struct job *job = arg;
    char *bytes = malloc((size_t)3 << 20);
    STRAND_TRY {
        strand_file_read(job->fd, bytes, (size_t)3 << 20, -1);
        CHECK_FAIL("the read was not interrupted");
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        job->result = (int64_t)strand_exception_progress(e);
    }
    STRAND_END
    free(bytes);
    return job;
}

TEST_INSIDE(between_two_parts_an_interruption_says_how_far_the_call_has_come)
{
    PLACE(place);
    struct job job = job_on(&place);
    CHECK_EQ(strand_file_truncate(job.fd, (int64_t)3 << 20), 0);
    STRAND_SCOPE(scope);
    strand child = start_kept(scope, read_large_and_go_on, &job);
    strand_cancel(child, NULL);
    strand_sleep(STRAND_MS);
    blocker.released = 1; /* the first part is read; the others are not read at once either */
    strand_join(child);
    kept = false;
    CHECK_EQ(job.result, 1 << 20);
    CHECK_EQ(lseek(job.fd, 0, SEEK_CUR), 1 << 20);
    CHECK_EQ(strand_close(job.fd), 0);
}

#ifndef BY_KERNEL /* which keeps the file, not its number */
static void *close_it(void *fd)
{
    CHECK_EQ(strand_close(*(int *)fd), 0);
    test_log("closed");
    return fd;
}

TEST_INSIDE(a_number_is_not_given_away_while_a_write_uses_it)
{
    PLACE(place);
    struct job job = job_on(&place);
    STRAND_SCOPE(scope);
    strand child = start_kept(scope, write_and_go_on, &job);
    strand closer = strand_spawn(scope, close_it, &job.fd);
    strand_join(closer);
    keep_no_more();
    int other = open_new(&place, "other");
    CHECK(other != job.fd);
    release();
    strand_join(child);
    CHECK_EQ(job.result, -EBADF);
    CHECK_EQ(strand_close(other), 0);
    check_file(&place, "other", "");
    check_file(&place, "a", "hello");
}
#endif

static void *read_and_end(void *arg)
{
    struct place place = place_make();
    struct job job = job_on(&place);
    STRAND_SCOPE(scope);
    strand child = start_kept(scope, read_and_go_on, &job);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    keep_no_more();
    CHECK_EQ(strand_close(job.fd), 0);
    place_remove(&place);
    return arg;
}

static void *release_later(void *arg)
{
    wait_on_thread(&blocker.entered, 1);
    strand_sim_sleep(20 * STRAND_MS);
    release();
    return arg;
}

static void *read_and_end_beside_a_thread(void *arg)
{
    blocker_reset(&blocker);
    CHECK_EQ(strand_sim_thread(release_later, NULL), 0);
    return read_and_end(arg);
}

TEST(the_end_of_the_run_waits_for_a_read_that_was_left)
{
    test_run(read_and_end_beside_a_thread, NULL);
    CHECK(blocker.passed >= 1 || !by_threads()); /* the kernel had not begun it: the strand took it back */
}
