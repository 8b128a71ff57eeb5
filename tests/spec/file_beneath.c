/*
 * Opening files beneath a directory: what leads out of it, by which thread, and on a system that can't.
 */
#define _GNU_SOURCE
#define SUITE file_beneath
#define ONE_SEED_IN 50 /* the system opens files in most of the time */
#include "paths.h"

#include <linux/openat2.h>
#include <pthread.h>
#include <sys/syscall.h>

/* ---- what the system does ---------------------------------------------------------------------- */

static _Atomic int refusal; /* the error of so many calls that may wait */
static _Atomic int refusals;
static _Atomic int refusal_now; /* the error of those that may not; 0: none */
static _Atomic int calls;
static _Atomic int calls_there; /* those of another thread */
static pthread_t here;

static bool is_refused(const struct open_how *how)
{
    calls++;
    calls_there += !pthread_equal(pthread_self(), here);
    if (how->resolve & RESOLVE_CACHED)
        return refusal_now && (errno = refusal_now);
    return refusals > 0 && refusals-- > 0 && (errno = refusal);
}

/* Not static, and it takes more than it may have got, as that of the C library. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_openat2 && is_refused((const struct open_how *)a[2]))
        return -1;
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- opening ----------------------------------------------------------------------------------- */

static int open_path(int dir, const char *path, int flags)
{
    return strand_file_open(dir, path, flags | STRAND_FILE_BENEATH, 0640);
}

static void check_opens(int dir, const char *path, int flags)
{
    int fd = open_path(dir, path, flags);
    CHECK(fd > 2);
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(strand_close(fd), 0);
}

static void make_links(void)
{
    make_file("a");
    make_directory("d");
    make_file("d/b");
    CHECK_EQ(symlink("d/b", "inside"), 0);
    CHECK_EQ(symlink("/etc/passwd", "absolute"), 0);
    CHECK_EQ(symlink("d/../../", "above"), 0);
}

static void check_paths(void)
{
    static const char *const refused[] = {"..", "../x", "d/../../x", "/etc/passwd", "absolute", "above", "above/tmp"};
    PLACE(dir);
    make_links();
    check_opens(dir, "a", O_RDONLY);
    check_opens(dir, ".", O_RDONLY | O_DIRECTORY);
    check_opens(dir, "d/../a", O_RDWR);
    check_opens(dir, "inside", O_RDONLY);
    check_opens(AT_FDCWD, "d/b", O_RDONLY);
    check_opens(dir, "d", O_PATH | O_DIRECTORY);
    CHECK_EQ(open_path(dir, "none", O_RDONLY), -ENOENT);
    CHECK_EQ(open_path(dir, "a/b", O_RDONLY), -ENOTDIR);
    CHECK_EQ(open_path(dir, "inside", O_RDONLY | O_NOFOLLOW), -ELOOP);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        CHECK_EQ(open_path(dir, refused[i], O_RDONLY), -EXDEV);
    CHECK_EQ(open_path(987654, "a", O_RDONLY), -EBADF);
}

TEST_INSIDE(only_what_lies_beneath_the_directory_is_opened)
{
    check_paths();
}

TEST_INSIDE(so_it_is_where_the_system_has_no_path_in_memory)
{
    refusal_now = EAGAIN;
    check_paths();
}

TEST_INSIDE(and_where_it_can_not_tell)
{
    refusal_now = EINVAL;
    check_paths();
}

TEST_INSIDE(no_link_of_proc_to_an_open_file_is_followed)
{
    int dir = strand_file_open(AT_FDCWD, "/proc/self", O_RDONLY | O_DIRECTORY, 0);
    CHECK(dir >= 0);
    CHECK_EQ(open_path(dir, "exe", O_RDONLY), -ELOOP);
    CHECK_EQ(open_path(dir, "root/etc/passwd", O_RDONLY), -ELOOP);
    check_opens(dir, "status", O_RDONLY);
    CHECK_EQ(strand_close(dir), 0);
}

TEST_INSIDE(files_are_made_beneath_the_directory)
{
    PLACE(dir);
    make_links();
    check_opens(dir, "d/new", O_WRONLY | O_CREAT | O_EXCL);
    CHECK_EQ(status_of("d/new").st_mode & 0600, 0600);
    check_opens(dir, "d/new", O_WRONLY | O_TRUNC);
    CHECK_EQ(open_path(dir, "d/new", O_WRONLY | O_CREAT | O_EXCL), -EEXIST);
    CHECK_EQ(open_path(dir, "../strand-beneath", O_WRONLY | O_CREAT), -EXDEV);
    int fd = open_path(dir, "d", O_RDWR | O_TMPFILE);
    CHECK(fd >= 0 || fd == -EOPNOTSUPP); /* the file system may have no such files */
    if (fd >= 0)
        CHECK_EQ(strand_close(fd), 0);
}

static void *open_a(void *dir)
{
    (void)open_path(*(int *)dir, "new", O_WRONLY | O_CREAT);
    return dir;
}

TEST_INSIDE(an_interrupted_strand_opens_nothing)
{
    PLACE(dir);
    test_run_cancelled(open_a, &dir);
    CHECK(!is_there("new"));
}

/* ---- which thread, and what the system refuses --------------------------------------------------- */

static void *open_at_once(void *arg)
{
    PLACE(dir);
    make_links();
    here = pthread_self();
    check_opens(dir, "d/b", O_RDONLY);
    CHECK_EQ(calls, 1);
    CHECK_EQ(calls_there, 0);
    refusal_now = EAGAIN;
    check_opens(dir, "d/b", O_RDONLY);
    CHECK_EQ(calls, 3);
    CHECK_EQ(calls_there, 1);
    check_opens(dir, "new", O_RDWR | O_CREAT);
    CHECK_EQ(calls, 4);
    CHECK_EQ(calls_there, 2);
    return arg;
}

TEST_REAL(what_the_system_has_in_memory_is_opened_at_once)
{
    strand_run(STRAND_OPTIONS(.threads = 1), open_at_once, NULL);
}

TEST_INSIDE(renames_elsewhere_make_the_call_try_again)
{
    PLACE(dir);
    make_links();
    refusal_now = refusal = EAGAIN;
    refusals = 50;
    check_opens(dir, "d/../a", O_RDONLY);
    CHECK_EQ(refusals, 0);
    refusals = 1000;
    CHECK_EQ(open_path(dir, "d/../a", O_RDONLY), -EAGAIN);
    CHECK(refusals > 0);
}

TEST_INSIDE(a_system_that_can_not_says_so)
{
    PLACE(dir);
    make_links();
    refusal_now = refusal = ENOSYS;
    refusals = 1;
    CHECK_EQ(open_path(dir, "a", O_RDONLY), -ENOSYS);
}
