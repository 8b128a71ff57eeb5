/*
 * Files by their paths: modes, owners and times, directories with their parents, trees, temporary files, and what a
 * path names in the end.
 *
 * A test acts as another process: the calls of the system that are defined here call its hook before they are made.
 */
#define _GNU_SOURCE
#define SUITE file_tree
#define ONE_SEED_IN 50 /* the system makes and removes files in most of the time */
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

enum call { NO_CALL, OPENS, UNLINKS, LISTS, READS_LINK };

/* Called before a call on a name (a directory's list has none) is made. Returns an error instead of it, or 0. */
static struct {
    enum call call;
    const char *name;
    int (*fn)(void);
} hook;

static bool inside; /* a hook makes a call */

#define HOOK(call_, name_, fn_) (hook.name = (name_), hook.fn = (fn_), hook.call = (call_))

static int ask_hook(enum call call, const char *name)
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

ssize_t readlinkat(int dir, const char *path, char *target, size_t room)
{
    return ask_hook(READS_LINK, path) ? -1 : REAL(readlinkat)(dir, path, target, room);
}

ssize_t getdents64(int fd, void *buffer, size_t size)
{
    int error = ask_hook(LISTS, "");
    return error == ENOENT ? 0 : error ? -1 : REAL(getdents64)(fd, buffer, size);
}

/* ---- a directory for a test ---------------------------------------------------------------------------------------
 */

/* The test's own, and its working directory. */
static int place_make(void)
{
    char path[] = "/tmp/strand-tree-XXXXXX";
    int dir = strand_file_open_temporary(AT_FDCWD, path, O_DIRECTORY);
    CHECK(dir >= 0);
    CHECK_EQ(fchdir(dir), 0);
    return dir;
}

static void place_remove(int *dir)
{
    char path[64];
    hook.call = NO_CALL;
    CHECK(strand_file_resolve(*dir, ".", path, sizeof path) > 0);
    CHECK_EQ(chdir("/"), 0);
    CHECK_EQ(strand_file_remove_tree(AT_FDCWD, path, NULL, 0), 0);
    CHECK_EQ(access(path, F_OK), -1);
    CHECK_EQ(strand_close(*dir), 0);
}

#define PLACE(name) __attribute__((cleanup(place_remove), unused)) int name = place_make()

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
}

static void make_directory(const char *path)
{
    CHECK_EQ(mkdir(path, 0700), 0);
}

static bool is_there(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static struct stat status_of(const char *path)
{
    struct stat status;
    CHECK_EQ(lstat(path, &status), 0);
    return status;
}

static int count_entries(const char *path)
{
    int count = 0;
    DIR *list = opendir(path);
    CHECK(list);
    for (const struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* ---- modes, owners and times
 * ----------------------------------------------------------------------------------------- */

TEST_INSIDE(only_what_is_named_is_set)
{
    PLACE(dir);
    make_file("a");
    const struct stat all = {.st_mode = 0640, .st_atim = {1000, 5}, .st_mtim = {2000, 7}};
    CHECK_EQ(strand_file_set(dir, "a", 0, STRAND_FILE_MODE, &all), 0);
    CHECK_EQ(status_of("a").st_mode, S_IFREG | 0640);
    CHECK(status_of("a").st_mtime > 2000);
    CHECK_EQ(strand_file_set(dir, "a", 0, STRAND_FILE_MODIFIED, &all), 0);
    CHECK_EQ(status_of("a").st_mtim.tv_sec, 2000);
    CHECK_EQ(status_of("a").st_mtim.tv_nsec, 7);
    CHECK(status_of("a").st_atime > 1000);
    CHECK_EQ(strand_file_set(dir, "a", 0, STRAND_FILE_ACCESSED, &all), 0);
    CHECK_EQ(status_of("a").st_atim.tv_sec, 1000);
    const struct stat now = {.st_atim = {0, UTIME_NOW}, .st_mtim = {0, UTIME_OMIT}};
    CHECK_EQ(strand_file_set(dir, "a", 0, STRAND_FILE_ACCESSED | STRAND_FILE_MODIFIED, &now), 0);
    CHECK(status_of("a").st_atime > 2000);
    CHECK_EQ(status_of("a").st_mtime, 2000);
    CHECK_EQ(strand_file_set(dir, "none", 0, 0, &all), 0); /* nothing is asked for */
    CHECK_EQ(strand_file_set(dir, "none", 0, STRAND_FILE_MODE, &all), -ENOENT);
    CHECK_EQ(strand_file_set(dir, "a", 0, 32, &all), -EINVAL);
    CHECK_EQ(strand_file_set(dir, "a", AT_REMOVEDIR, STRAND_FILE_MODE, &all), -EINVAL);
}

TEST_INSIDE(a_link_or_what_it_names_is_set)
{
    PLACE(dir);
    make_file("a");
    CHECK_EQ(symlink("a", "s"), 0);
    const struct stat some = {.st_mode = 0400, .st_mtim = {2000, 0}};
    CHECK_EQ(strand_file_set(dir, "s", AT_SYMLINK_NOFOLLOW, STRAND_FILE_MODIFIED, &some), 0);
    CHECK_EQ(status_of("s").st_mtime, 2000);
    CHECK(status_of("a").st_mtime > 2000);
    CHECK_EQ(strand_file_set(dir, "s", AT_SYMLINK_NOFOLLOW, STRAND_FILE_MODE, &some), -EOPNOTSUPP);
    CHECK_EQ(status_of("a").st_mode, S_IFREG | 0600);
    CHECK_EQ(strand_file_set(dir, "a", AT_SYMLINK_NOFOLLOW, STRAND_FILE_MODE, &some), 0);
    CHECK_EQ(status_of("a").st_mode, S_IFREG | 0400);
    const struct stat others = {.st_mode = 0600, .st_mtim = {3000, 0}};
    CHECK_EQ(strand_file_set(dir, "s", 0, STRAND_FILE_MODE | STRAND_FILE_MODIFIED, &others), 0);
    CHECK_EQ(status_of("a").st_mode, S_IFREG | 0600);
    CHECK_EQ(status_of("a").st_mtime, 3000);
    CHECK_EQ(status_of("s").st_mtime, 2000);
}

TEST_INSIDE(an_open_file_is_set_by_its_descriptor)
{
    PLACE(dir);
    const unsigned all = STRAND_FILE_MODE | STRAND_FILE_USER | STRAND_FILE_GROUP | STRAND_FILE_MODIFIED;
    const struct stat some = {.st_mode = 0750, .st_uid = getuid(), .st_gid = getgid(), .st_mtim = {2000, 0}};
    make_file("a");
    int fd = strand_file_open(dir, "a", O_RDONLY, 0);
    CHECK_EQ(strand_file_set(fd, "", AT_EMPTY_PATH, all, &some), 0);
    CHECK_EQ(status_of("a").st_mode, S_IFREG | 0750);
    CHECK_EQ(status_of("a").st_mtime, 2000);
    CHECK_EQ(strand_close(fd), 0);
    CHECK_EQ(strand_file_set(AT_FDCWD, "", AT_EMPTY_PATH, all, &some), 0);
    CHECK_EQ(status_of(".").st_mode, S_IFDIR | 0750);
    CHECK_EQ(strand_file_set(dir, "", 0, all, &some), -ENOENT);
    CHECK_EQ(strand_file_set(fd, "", AT_EMPTY_PATH, all, &some), -EBADF);
}

TEST_INSIDE(a_file_becomes_like_another_one)
{
    PLACE(dir);
    const unsigned all =
        STRAND_FILE_MODE | STRAND_FILE_USER | STRAND_FILE_GROUP | STRAND_FILE_ACCESSED | STRAND_FILE_MODIFIED;
    const struct stat times = {.st_atim = {1000, 0}, .st_mtim = {2000, 0}};
    struct stat status;
    make_file("a");
    make_file("b");
    CHECK_EQ(chmod("a", 04711), 0);
    CHECK_EQ(strand_file_set(dir, "a", 0, STRAND_FILE_ACCESSED | STRAND_FILE_MODIFIED, &times), 0);
    CHECK_EQ(strand_file_stat(dir, "a", 0, &status), 0);
    CHECK_EQ(strand_file_set(dir, "b", 0, all, &status), 0);
    CHECK_EQ(status_of("b").st_mode, S_IFREG | 04711); /* the new owner has not taken a bit of it away */
    CHECK_EQ(status_of("b").st_atime, 1000);
    CHECK_EQ(status_of("b").st_mtime, 2000);
}

TEST_INSIDE(the_owner_is_set_by_those_who_may)
{
    PLACE(dir);
    make_file("a");
    const struct stat others = {.st_uid = 12345, .st_gid = 23456};
    uid_t user = getuid();
    gid_t group = getgid();
    int error = strand_file_set(dir, "a", 0, STRAND_FILE_USER, &others);
    CHECK(error == 0 || error == -EPERM || error == -EINVAL); /* -EINVAL: a namespace without that user */
    CHECK_EQ(status_of("a").st_uid, error ? user : 12345);
    CHECK_EQ(status_of("a").st_gid, group);
    error = strand_file_set(dir, "a", 0, STRAND_FILE_GROUP, &others);
    CHECK(error == 0 || error == -EPERM || error == -EINVAL);
    CHECK_EQ(status_of("a").st_gid, error ? group : 23456);
}

/* ---- directories with their parents
 * ------------------------------------------------------------------------------------ */

TEST_INSIDE(a_directory_is_made_with_its_parents)
{
    PLACE(dir);
    char path[128];
    CHECK_EQ(strand_file_make_directories(dir, "a/b/c", 0700), 0);
    CHECK(S_ISDIR(status_of("a/b/c").st_mode));
    CHECK_EQ(strand_file_make_directories(dir, "a/b/c", 0700), 0);
    CHECK_EQ(strand_file_make_directories(dir, "a//b/./x//y/", 0700), 0);
    CHECK(S_ISDIR(status_of("a/b/x/y").st_mode));
    CHECK_EQ(strand_file_make_directories(dir, "d", 0700), 0);
    CHECK_EQ(strand_file_make_directories(dir, "e/../f", 0700), 0);
    CHECK(is_there("e") && is_there("f"));
    CHECK_EQ(strand_file_make_directories(dir, ".", 0700), 0);
    CHECK_EQ(strand_file_make_directories(AT_FDCWD, "/", 0700), 0);
    CHECK_EQ(strand_file_make_directories(dir, "", 0700), -ENOENT);
    CHECK(strand_file_resolve(dir, ".", path, 64) > 0);
    strcat(path, "/p/q");
    CHECK_EQ(strand_file_make_directories(AT_FDCWD, path, 0700), 0);
    CHECK(is_there("p/q"));
}

TEST_INSIDE(the_owner_may_enter_the_parents_that_are_made)
{
    PLACE(dir);
    CHECK_EQ(strand_file_make_directories(dir, "a/b/c", 0440), 0);
    CHECK_EQ(status_of("a").st_mode & 0777, 0740);
    CHECK_EQ(status_of("a/b").st_mode & 0777, 0740);
    CHECK_EQ(status_of("a/b/c").st_mode & 0777, 0440);
}

TEST_INSIDE(what_is_no_directory_is_in_the_way)
{
    PLACE(dir);
    make_file("file");
    make_directory("d");
    CHECK_EQ(symlink("d", "link"), 0);
    CHECK_EQ(symlink("none", "dangling"), 0);
    CHECK_EQ(strand_file_make_directories(dir, "file", 0700), -ENOTDIR);
    CHECK_EQ(strand_file_make_directories(dir, "file/a/b", 0700), -ENOTDIR);
    CHECK_EQ(strand_file_make_directories(dir, "dangling", 0700), -ENOENT);
    CHECK_EQ(strand_file_make_directories(dir, "dangling/a", 0700), -ENOENT);
    CHECK_EQ(strand_file_make_directories(dir, "link/a", 0700), 0);
    CHECK(is_there("d/a"));
    CHECK_EQ(strand_file_make_directories(987654, "a/b", 0700), -EBADF);
}

static void *make_one_of_many(void *dir)
{
    for (int i = 0; i < 20; i++) {
        char path[64];
        snprintf(path, sizeof path, "p%d/q/r/s", i);
        CHECK_EQ(strand_file_make_directories(*(int *)dir, path, 0700), 0);
        CHECK(is_there(path));
    }
    return dir;
}

TEST_RACE(several_strands_make_the_same_parents)
{
    PLACE(dir);
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++)
        strand_spawn(scope, make_one_of_many, &dir);
    strand_scope_join(scope);
}

/* ---- trees ----------------------------------------------------------------------------------------------------------
 */

/* "t" with files, directories, links and a FIFO; "outside", to which its links lead. */
static void make_tree(void)
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

static int remove_all(int dir, const char *path)
{
    char failed[64] = "nothing";
    int error = strand_file_remove_tree(dir, path, failed, sizeof failed);
    if (!error)
        CHECK_STR(failed, "nothing");
    return error;
}

TEST_INSIDE(a_tree_is_removed_and_what_its_links_name_stays)
{
    PLACE(dir);
    make_tree();
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(!is_there("t") && is_there("outside/kept"));
    CHECK_EQ(remove_all(dir, "t"), 0); /* it is not there */
    CHECK_EQ(remove_all(dir, "none/t"), 0);
    CHECK_EQ(remove_all(dir, "outside/kept"), 0);
    CHECK_EQ(count_entries("outside"), 0);
}

TEST_INSIDE(a_path_in_front_of_a_tree_may_have_links)
{
    PLACE(dir);
    make_tree();
    CHECK_EQ(symlink("t/d", "s"), 0);
    CHECK_EQ(remove_all(dir, "s//e/"), 0);
    CHECK(!is_there("t/d/e") && is_there("t/d"));
    CHECK_EQ(remove_all(dir, "s/"), 0); /* the link itself */
    CHECK(!is_there("s") && is_there("t/d"));
}

TEST_INSIDE(a_path_that_ends_without_a_name_is_no_tree)
{
    static const char *const paths[] = {"", ".", "..", "/", "//", "t/.", "t/..", "t/./"};
    PLACE(dir);
    char failed[64];
    make_tree();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        CHECK_EQ(strand_file_remove_tree(dir, paths[i], failed, sizeof failed), -EINVAL);
        CHECK_STR(failed, paths[i]);
    }
    CHECK_EQ(remove_all(dir, "t/a/b"), -ENOTDIR);
    CHECK_EQ(remove_all(987654, "t"), -EBADF);
    CHECK(is_there("t/d/e/b") && is_there("t/a"));
}

/* More entries than a list has at a time, and lists that go on after directories in the middle of them. */
TEST_INSIDE(a_wide_tree_is_removed)
{
    PLACE(dir);
    char path[64];
    int count = test_seed() ? 60 : 400;
    make_directory("t");
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "t/file-%d", i);
        make_file(path);
        snprintf(path, sizeof path, "t/directory-%d", i);
        make_directory(path);
        if (i % 3)
            make_file(strcat(path, "/a"));
    }
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(!is_there("t"));
}

static void *remove_deep(void *dir)
{
    CHECK_EQ(remove_all(*(int *)dir, "t"), 0);
    return dir;
}

/* Deeper than a path may be long, and than a small stack has room for. */
TEST_INSIDE(a_deep_tree_needs_neither_stack_nor_descriptors)
{
    PLACE(dir);
    int depth = test_seed() ? 50 : 1000, last = dup(dir);
    make_directory("t");
    for (int i = 0; i < depth; i++) {
        int next = REAL(openat)(last, i ? "level" : "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(next >= 0);
        CHECK_EQ(mkdirat(next, "level", 0700), 0);
        close(last);
        last = next;
    }
    close(last);
    STRAND_SCOPE(scope);
    strand_attr attr = {.size = sizeof attr, .stack_size = 1};
    strand_join(strand_spawn_with(scope, &attr, remove_deep, &dir, 0));
    CHECK(!is_there("t"));
}

/* ---- what can't be removed -----------------------------------------------------------------------------------------
 */

static int refuse(void)
{
    return EACCES;
}

TEST_INSIDE(what_cannot_be_removed_stays_and_all_else_is_removed)
{
    PLACE(dir);
    char failed[64] = "", cut[6] = "";
    make_tree();
    make_file("t/d/e/c");
    HOOK(UNLINKS, "b", refuse);
    CHECK_EQ(strand_file_remove_tree(dir, "t/", failed, sizeof failed), -EACCES);
    CHECK_STR(failed, "t/d/e/b");
    CHECK_EQ(count_entries("t"), 1);
    CHECK_EQ(count_entries("t/d"), 1);
    CHECK_EQ(count_entries("t/d/e"), 1);
    CHECK_EQ(strand_file_remove_tree(dir, "t", cut, sizeof cut), -EACCES);
    CHECK_STR(cut, "t/d/e");
    CHECK_EQ(strand_file_remove_tree(dir, "t", NULL, 0), -EACCES);
}

TEST_INSIDE(a_directory_that_may_not_be_removed_is_emptied)
{
    PLACE(dir);
    char failed[64] = "";
    make_tree();
    HOOK(UNLINKS, "e", refuse);
    CHECK_EQ(strand_file_remove_tree(dir, "t", failed, sizeof failed), -EACCES);
    CHECK_STR(failed, "t/d/e");
    CHECK_EQ(count_entries("t/d/e"), 0);
    CHECK_EQ(count_entries("t"), 1);
}

static int have_none(void)
{
    return ENOENT;
}

static int have_no_descriptors(void)
{
    return EMFILE;
}

TEST_INSIDE(a_directory_that_cannot_be_opened_stays)
{
    PLACE(dir);
    char failed[64] = "";
    make_tree();
    HOOK(OPENS, "e", have_no_descriptors);
    CHECK_EQ(strand_file_remove_tree(dir, "t", failed, sizeof failed), -EMFILE);
    CHECK_STR(failed, "t/d/e");
    CHECK_EQ(count_entries("t"), 1);
    CHECK(is_there("t/d/e/b"));
    HOOK(OPENS, "..", have_no_descriptors); /* there is no way on */
    CHECK_EQ(strand_file_remove_tree(dir, "t", failed, sizeof failed), -EMFILE);
    CHECK_STR(failed, "t/d/e");
    CHECK_EQ(count_entries("t/d/e"), 0);
}

TEST_INSIDE(a_directory_whose_entries_are_hidden_stays)
{
    PLACE(dir);
    make_tree();
    HOOK(LISTS, NULL, have_none);
    CHECK_EQ(remove_all(dir, "t"), -ENOTEMPTY);
    CHECK(is_there("t/d/e/b"));
}

/* ---- others change the tree
 * -------------------------------------------------------------------------------------------- */

static int turn_into_a_link(void)
{
    CHECK_EQ(rename("t/d", "moved"), 0);
    CHECK_EQ(symlink("../outside", "t/d"), 0);
    hook.call = NO_CALL;
    return 0;
}

TEST_INSIDE(a_directory_that_others_turn_into_a_link_leads_nowhere)
{
    PLACE(dir);
    make_tree();
    HOOK(OPENS, "d", turn_into_a_link);
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(!is_there("t"));
    CHECK(is_there("outside/kept"));
    CHECK(is_there("moved/e/b"));
}

static int move_out(void)
{
    CHECK_EQ(rename("t/d", "outside/d"), 0);
    hook.call = NO_CALL;
    return 0;
}

TEST_INSIDE(a_directory_that_others_move_out_does_not_lead_out)
{
    PLACE(dir);
    char failed[64] = "";
    make_tree();
    CHECK_EQ(remove_all(dir, "t/d/e"), 0);
    make_directory("outside/z");
    HOOK(OPENS, "..", move_out);
    CHECK_EQ(strand_file_remove_tree(dir, "t", failed, sizeof failed), -EAGAIN);
    CHECK_STR(failed, "t/d");
    CHECK(is_there("outside/kept") && is_there("outside/z"));
    CHECK_EQ(count_entries("outside/d"), 0); /* it was emptied before */
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(is_there("outside/kept") && !is_there("t"));
}

static int times_filled;

static int fill(void)
{
    char path[32];
    snprintf(path, sizeof path, "t/d/e/new-%d", times_filled);
    if (times_filled++ < 5)
        make_file(path);
    return 0;
}

TEST_INSIDE(what_others_make_meanwhile_is_removed_too)
{
    PLACE(dir);
    make_tree();
    times_filled = 0;
    HOOK(UNLINKS, "e", fill);
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(!is_there("t"));
    CHECK(times_filled > 5);
}

static int take_away(void)
{
    (void)!unlink("t/a");
    (void)!unlink("t/d/e/b");
    (void)!rmdir("t/d/e");
    return 0;
}

TEST_INSIDE(what_others_remove_meanwhile_is_no_error)
{
    PLACE(dir);
    make_tree();
    HOOK(LISTS, NULL, take_away);
    CHECK_EQ(remove_all(dir, "t"), 0);
    HOOK(OPENS, "e", take_away);
    make_directory("t");
    make_directory("t/d");
    make_directory("t/d/e");
    make_file("t/d/e/b");
    CHECK_EQ(remove_all(dir, "t"), 0);
    CHECK(!is_there("t"));
}

/* ---- interruptions
 * --------------------------------------------------------------------------------------------------- */

static struct blocker blocker;
static _Atomic int unlinked;

static int block_in_the_middle(void)
{
    if (++unlinked == 100)
        block_until_released(&blocker);
    return 0;
}

static void *remove_and_go_on(void *dir)
{
    uint64_t removed = 0;
    STRAND_TRY {
        strand_file_remove_tree(*(int *)dir, "t", NULL, 0);
        CHECK_FAIL("the call was not interrupted");
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        removed = strand_exception_progress(e);
    }
    STRAND_END
    return (void *)(uintptr_t)removed;
}

static int open_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

TEST_INSIDE(an_interruption_comes_between_two_names)
{
    enum { FILES = 500 };
    PLACE(dir);
    char path[32];
    make_directory("t");
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "t/%d", i);
        make_file(path);
    }
    int before = open_descriptors();
    blocker_reset(&blocker);
    unlinked = 0;
    HOOK(UNLINKS, NULL, block_in_the_middle);
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, remove_and_go_on, &dir);
    YIELD_UNTIL(blocker.entered);
    strand_cancel(child, NULL);
    blocker.released = 1;
    int removed = (int)(uintptr_t)strand_join(child);
    CHECK(removed >= 98 && removed <= 100 + 32); /* two calls fail: there are entries */
    CHECK_EQ(count_entries("t"), FILES - removed);
    CHECK(open_descriptors() <= before + 1); /* the first thread of the crew may have one */
}

struct each {
    int dir, which;
};

static void *call_each(void *arg)
{
    const struct each *each = arg;
    const struct stat status = {.st_mode = 0777};
    char path[32] = "new-XXXXXX";
    strand_cancel(strand_self(), NULL);
    if (each->which == 0)
        strand_file_set(each->dir, "t", 0, STRAND_FILE_MODE, &status);
    else if (each->which == 1)
        strand_file_resolve(each->dir, "t", path, sizeof path);
    else if (each->which == 2)
        strand_file_open_temporary(each->dir, path, 0);
    else if (each->which == 3)
        strand_file_make_directories(each->dir, "u/v", 0700);
    else
        strand_file_remove_tree(each->dir, "t", path, sizeof path);
    CHECK_FAIL("the call was not interrupted");
    return arg;
}

TEST_INSIDE(a_call_that_has_not_begun_has_no_effect)
{
    PLACE(dir);
    make_tree();
    STRAND_SCOPE(scope);
    for (int i = 0; i < 5; i++) {
        struct each each = {dir, i};
        CHECK(test_join_interrupted(strand_spawn(scope, call_each, &each)));
    }
    CHECK_EQ(status_of("t").st_mode & 0777, 0700);
    CHECK_EQ(count_entries("."), 2);
    CHECK_EQ(count_entries("t"), 4);
}

/* ---- temporary files
 * --------------------------------------------------------------------------------------------------- */

TEST_INSIDE(a_temporary_file_has_a_name_of_its_own)
{
    PLACE(dir);
    char one[] = "new-XXXXXX", two[] = "new-XXXXXX", bytes[8] = "";
    int first = strand_file_open_temporary(dir, one, 0), second = strand_file_open_temporary(dir, two, O_APPEND);
    CHECK(first >= 0 && second >= 0);
    CHECK(strcmp(one, two) != 0);
    CHECK_EQ(status_of(one).st_mode, S_IFREG | 0600);
    CHECK_EQ(strncmp(one, "new-", 4), 0);
    CHECK_EQ(strand_file_write(first, "bytes", 5, 0), 5);
    CHECK_EQ(strand_file_read(first, bytes, 5, 0), 5);
    CHECK_STR(bytes, "bytes");
    CHECK(fcntl(second, F_GETFL) & O_APPEND);
    CHECK(fcntl(second, F_GETFD) & FD_CLOEXEC);
    CHECK_EQ(strand_close(first) + strand_close(second), 0);
    CHECK_EQ(count_entries("."), 2);
}

TEST_INSIDE(a_temporary_directory_serves_for_paths)
{
    PLACE(dir);
    char path[] = "new-XXXXXX", file[32];
    int inner = strand_file_open_temporary(dir, path, O_DIRECTORY);
    CHECK(inner >= 0);
    CHECK_EQ(status_of(path).st_mode, S_IFDIR | 0700);
    CHECK_EQ(strand_file_store(inner, "a", "x", 1, 0600), 0);
    snprintf(file, sizeof file, "%s/a", path);
    CHECK(is_there(file));
    CHECK_EQ(strand_close(inner), 0);
}

static int times_refused, refusals;

static int say_it_exists(void)
{
    return times_refused++ < refusals ? EEXIST : 0;
}

TEST_INSIDE(a_name_that_is_taken_is_not_used)
{
    PLACE(dir);
    char path[] = "XXXXXX";
    HOOK(OPENS, NULL, say_it_exists);
    times_refused = 0;
    refusals = 3;
    int fd = strand_file_open_temporary(dir, path, 0);
    CHECK(fd >= 0);
    CHECK_EQ(times_refused, 4);
    CHECK_EQ(strand_close(fd), 0);
    refusals = 1 << 30;
    strcpy(path, "XXXXXX");
    CHECK_EQ(strand_file_open_temporary(dir, path, 0), -EEXIST);
    CHECK_STR(path, "XXXXXX");
    CHECK_EQ(count_entries("."), 1);
}

TEST_INSIDE(a_temporary_directory_that_cannot_be_opened_is_not_left_behind)
{
    PLACE(dir);
    char path[] = "XXXXXX", other[] = "XXXXXXx", missing[] = "none/XXXXXX";
    HOOK(OPENS, NULL, have_no_descriptors);
    CHECK_EQ(strand_file_open_temporary(dir, path, O_DIRECTORY), -EMFILE);
    CHECK_EQ(strand_file_open_temporary(dir, path, 0), -EMFILE);
    hook.call = NO_CALL;
    CHECK_EQ(strand_file_open_temporary(dir, other, 0), -EINVAL);
    CHECK_EQ(strand_file_open_temporary(dir, missing, 0), -ENOENT);
    CHECK_EQ(strand_file_open_temporary(dir, missing, O_DIRECTORY), -ENOENT);
    CHECK_STR(path, "XXXXXX");
    CHECK_EQ(count_entries("."), 0);
}

/* ---- what a path names
 * -------------------------------------------------------------------------------------------------- */

TEST_INSIDE(a_path_is_resolved)
{
    PLACE(dir);
    char base[64], path[64] = "before", wanted[80];
    make_tree();
    int length = strand_file_resolve(dir, ".", base, sizeof base);
    CHECK_EQ(length, strlen(base));
    CHECK_EQ(base[0], '/');
    int inner = strand_file_open(dir, "t/d", O_RDONLY | O_DIRECTORY, 0);
    length = strand_file_resolve(inner, ".././link/../t//a", path, sizeof path);
    snprintf(wanted, sizeof wanted, "%s/t/a", base);
    CHECK_STR(path, wanted);
    CHECK_EQ(length, strlen(wanted));
    CHECK_EQ(strand_file_resolve(inner, "../a", path, (size_t)length), -ENAMETOOLONG);
    CHECK_STR(path, wanted);
    CHECK_EQ(strand_file_resolve(inner, "dangling", path, sizeof path), -ENOENT);
    CHECK_EQ(strand_file_resolve(inner, "", path, sizeof path), -ENOENT);
    CHECK_EQ(strand_file_resolve(AT_FDCWD, "/..", path, sizeof path), 1);
    CHECK_STR(path, "/");
    CHECK_EQ(strand_close(inner), 0);
}

static int remove_it(void)
{
    CHECK_EQ(unlink("t/a"), 0);
    return 0;
}

TEST_INSIDE(a_file_that_loses_its_name_is_not_resolved)
{
    PLACE(dir);
    char path[64] = "before";
    make_tree();
    HOOK(READS_LINK, NULL, remove_it);
    CHECK_EQ(strand_file_resolve(dir, "t/a", path, sizeof path), -ENOENT);
    HOOK(READS_LINK, NULL, have_none);
    CHECK_EQ(strand_file_resolve(dir, "t", path, sizeof path), -ENOSYS);
    CHECK_STR(path, "before");
}
