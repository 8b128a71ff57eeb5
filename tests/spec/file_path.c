/*
 * Files by their paths: modes, owners and times, directories with their parents, temporary files, what a path names in
 * the end, and that an interrupted call has no effect.
 */
#define _GNU_SOURCE
#define SUITE file_path
#define ONE_SEED_IN 50 /* the system makes and removes files in most of the time */
#include "paths.h"

#include "strand/sim.h"

#include <sys/inotify.h>

/* ---- modes, owners and times ----------------------------------------------------------------------------------- */

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

TEST_INSIDE(a_descriptor_of_a_path_alone_serves_by_its_path)
{
    PLACE(dir);
    const struct stat some = {.st_mode = 0640};
    char self[32];
    struct stat status;
    make_file("a");
    int fd = strand_file_open(dir, "a", O_PATH, 0);
    CHECK_EQ(strand_file_set(fd, "", AT_EMPTY_PATH, STRAND_FILE_MODE, &some), -EBADF);
    CHECK_EQ(strand_file_stat(fd, "", AT_EMPTY_PATH, &status), -EBADF);
    CHECK_EQ(status_of("a").st_mode, S_IFREG | 0600);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    CHECK_EQ(strand_file_set(AT_FDCWD, self, 0, STRAND_FILE_MODE, &some), 0);
    CHECK_EQ(status_of("a").st_mode, S_IFREG | 0640);
    CHECK_EQ(strand_close(fd), 0);
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

/* ---- directories with their parents ---------------------------------------------------------------------------- */

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

TEST_INSIDE(the_umask_takes_permissions_from_all_directories_that_are_made)
{
    PLACE(dir);
    mode_t before = umask(027);
    int error = strand_file_make_directories(dir, "a/b/c", 0755);
    umask(before);
    CHECK_EQ(error, 0);
    CHECK_EQ(status_of("a").st_mode & 0777, 0750);
    CHECK_EQ(status_of("a/b").st_mode & 0777, 0750);
    CHECK_EQ(status_of("a/b/c").st_mode & 0777, 0750);
    before = umask(0300);
    error = strand_file_make_directories(dir, "d/e", 0755);
    umask(before);
    CHECK(error == 0 || error == -EACCES); /* 0: the process is privileged */
    CHECK_EQ(status_of("d").st_mode & 0777, 0455);
    CHECK(is_there("d/e") == !error);
}

TEST_INSIDE(a_file_or_a_dangling_link_is_in_the_way)
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

/* ---- temporary files ------------------------------------------------------------------------------------------- */

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

/* The names that a run makes: of three temporary files, and of the file beside one that is stored. */
struct names {
    char temporary[3][12];
    char beside[512];
};

static void *make_names(void *arg)
{
    struct names *names = arg;
    PLACE(dir);
    for (int i = 0; i < 3; i++) {
        strcpy(names->temporary[i], "new-XXXXXX");
        CHECK_EQ(strand_close(strand_file_open_temporary(dir, names->temporary[i], 0)), 0);
    }
    _Alignas(struct inotify_event) char bytes[512];
    int changes = inotify_init1(IN_CLOEXEC);
    CHECK(inotify_add_watch(changes, ".", IN_CREATE) > 0);
    CHECK_EQ(strand_file_store(dir, "stored", "x", 1, 0600), 0);
    CHECK(read(changes, bytes, sizeof bytes) > 0);
    close(changes);
    snprintf(names->beside, sizeof names->beside, "%s", ((const struct inotify_event *)bytes)->name);
    return arg;
}

static struct names names_of(uint64_t seed)
{
    struct names names;
    strand_options options = {
        .size = sizeof options, .has_seed = true, .seed = seed, .sim = STRAND_SIM(.silent = true)};
    strand_run(&options, make_names, &names);
    return names;
}

TEST_REAL(a_seed_repeats_the_names_that_are_made)
{
    struct names first = names_of(7), again = names_of(7), other = names_of(8);
    for (int i = 0; i < 3; i++) {
        CHECK_STR(again.temporary[i], first.temporary[i]);
        CHECK(strcmp(other.temporary[i], first.temporary[i]) != 0);
        CHECK(strcmp(first.temporary[i], first.temporary[(i + 1) % 3]) != 0);
    }
    CHECK_STR(again.beside, first.beside);
    CHECK(strcmp(other.beside, first.beside) != 0);
}

/* A file that nobody removes. */
static void *make_and_leave(void *dir)
{
    char path[] = "new-XXXXXX";
    CHECK_EQ(strand_close(strand_file_open_temporary(*(int *)dir, path, 0)), 0);
    return dir;
}

static void *count_and_remove(void *path)
{
    CHECK_EQ(count_entries(path), 30);
    CHECK_EQ(strand_file_remove_tree(AT_FDCWD, path, NULL, 0), 0);
    return path;
}

TEST_REAL(a_seed_whose_names_are_taken_finds_others)
{
    char path[] = "/tmp/strand-tree-XXXXXX";
    CHECK(mkdtemp(path) != NULL);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    strand_options options = {.size = sizeof options, .has_seed = true, .seed = 7, .sim = STRAND_SIM(.silent = true)};
    for (int i = 0; i < 30; i++)
        strand_run(&options, make_and_leave, &dir);
    close(dir);
    strand_run(NULL, count_and_remove, path);
}

/* ---- what a path names ----------------------------------------------------------------------------------------- */

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

/* The system's words for a file on a file system that was unmounted also name a file below the working directory. */
TEST_INSIDE(a_file_on_a_file_system_that_was_unmounted_is_not_resolved)
{
    PLACE(dir);
    char path[64] = "before";
    make_file("a");
    make_directory("(unreachable)");
    CHECK_EQ(link("a", "(unreachable)/a"), 0);
    link_target = "(unreachable)/a";
    int result = strand_file_resolve(dir, "a", path, sizeof path);
    link_target = NULL;
    CHECK_EQ(result, -ENOENT);
    CHECK_STR(path, "before");
}

TEST_INSIDE(a_pipe_is_not_resolved)
{
    char self[32], path[64] = "before";
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    snprintf(self, sizeof self, "/proc/self/fd/%d", ends[0]);
    CHECK_EQ(strand_file_resolve(AT_FDCWD, self, path, sizeof path), -ENOENT);
    CHECK_STR(path, "before");
    close(ends[0]);
    close(ends[1]);
}

/* ---- interruptions --------------------------------------------------------------------------------------------- */

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
