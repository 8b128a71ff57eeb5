/*
 * Files: bytes, names, directories, whole files.
 */
#define _GNU_SOURCE
#include "fault.h"

#include "strand/changes.h"
#include "strand/file.h"
#include "strand/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The library's free: calls.c. */
void fault_free(void *memory);

/* A directory of the workload's own, removed by calls that do not fail. */
struct place {
    char path[64];
    int dir;
};

static void place_remove(struct place *place)
{
    static const char *const names[] = {"a", "b", "c", "s", "d"};
    fault_close_fd(&place->dir);
    int dir = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (unlinkat(dir, names[i], 0) != 0)
            (void)unlinkat(dir, names[i], AT_REMOVEDIR);
    close(dir);
    FAULT_CHECK(rmdir(place->path) == 0); /* nothing else was left there */
}

static void put_bytes(const struct place *place)
{
    char bytes[8] = "";
    const struct iovec part = {bytes, 4};
    FAULT_FD int fd = (int)strand_must(strand_file_open(place->dir, "a", O_RDWR | O_CREAT, 0600));
    FAULT_CHECK(strand_must(strand_file_write(fd, "word", 4, 0)) == 4);
    FAULT_CHECK(strand_must(strand_file_write(fd, "more", 4, -1)) == 4);
    FAULT_CHECK(strand_must(strand_file_read(fd, bytes, 4, 0)) == 4 && strcmp(bytes, "more") == 0);
    FAULT_CHECK(strand_must(strand_file_readv(fd, &part, 1, -1)) == 0);
    FAULT_CHECK(strand_must(strand_file_writev(fd, &part, 1, 4)) == 4);
    FAULT_FD int copy = (int)strand_must(strand_file_open(place->dir, "b", O_RDWR | O_CREAT, 0600));
    int64_t from = 0, to = 2;
    FAULT_CHECK(strand_must(strand_file_copy(fd, &from, copy, &to, 100)) == 8);
    strand_must(strand_file_sync(fd, true));
    strand_must(strand_file_sync(fd, false));
    strand_must(strand_file_truncate(fd, 2));
    strand_must(strand_file_allocate(fd, 0, 0, 4));
    strand_must(strand_file_lock(fd, F_WRLCK, 0, 0));
}

static void send_bytes(const struct place *place)
{
    int ends[2];
    char bytes[16] = "";
    FAULT_FD int fd = (int)strand_must(strand_file_open(place->dir, "a", O_RDONLY, 0));
    strand_must(strand_pipe(ends));
    FAULT_FD int out = ends[0], in = ends[1];
    FAULT_CHECK(strand_must(strand_file_send(fd, in, 2, 0)) == 2);
    FAULT_CHECK(strand_must(strand_read_all(out, bytes, 2)) == 2 && memcmp(bytes, "mo", 2) == 0);
}

/* From a pipe, which the system moves to the file, from a connection, and from a file. */
static void splice_bytes(void)
{
    int ends[2], pair[2];
    char bytes[8] = "";
    FAULT_FD int file = memfd_create("file", MFD_CLOEXEC);
    FAULT_CHECK(file >= 0);
    strand_must(strand_pipe(ends));
    FAULT_FD int out = ends[0], in = ends[1];
    FAULT_CHECK(strand_must(strand_write_all(in, "ab", 2)) == 2);
    FAULT_CHECK(strand_must(strand_splice(out, file, 2, NULL)) == 2);
    FAULT_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    FAULT_FD int near = pair[0], far = pair[1];
    FAULT_CHECK(strand_must(strand_write_all(near, "cd", 2)) == 2);
    FAULT_CHECK(strand_must(strand_splice(far, file, 2, NULL)) == 2);
    FAULT_CHECK(lseek(file, 1, SEEK_SET) == 1);
    FAULT_CHECK(strand_must(strand_splice(file, in, UINT64_MAX, NULL)) == 3);
    FAULT_CHECK(strand_must(strand_read_all(out, bytes, 3)) == 3 && strcmp(bytes, "bcd") == 0);
}

static void open_beneath(const struct place *place)
{
    FAULT_FD int fd = (int)strand_must(strand_file_open(place->dir, "a", O_RDONLY | STRAND_FILE_BENEATH, 0));
    FAULT_FD int new =
        (int)strand_must(strand_file_open(place->dir, "b", O_RDWR | O_CREAT | STRAND_FILE_BENEATH, 0600));
    int outside = strand_file_open(place->dir, "../x", O_RDONLY | STRAND_FILE_BENEATH, 0);
    if (outside != -EXDEV)
        strand_must(outside);
    FAULT_CHECK(fd >= 0 && new >= 0 && outside == -EXDEV);
}

static void change_names(const struct place *place)
{
    struct stat status;
    char target[8];
    strand_must(strand_file_rename(place->dir, "b", place->dir, "c", 0));
    strand_must(strand_file_link(place->dir, "c", place->dir, "b", 0));
    strand_must(strand_file_symlink("c", place->dir, "s"));
    strand_must(strand_file_make_directory(place->dir, "d", 0700));
    FAULT_CHECK(strand_must(strand_file_read_link(place->dir, "s", target, sizeof target)) == 1 && target[0] == 'c');
    strand_must(strand_file_stat(place->dir, "c", 0, &status));
    FAULT_CHECK(status.st_nlink == 2);
    strand_must(strand_file_unlink(place->dir, "b", 0));
}

static void list(const struct place *place)
{
    strand_file_entry entries[2];
    int64_t count, all = 0;
    while ((count = strand_must(strand_file_list(place->dir, entries, 2))) > 0)
        all += count;
    FAULT_CHECK(all == 4);
}

static void *list_nothing(void *dir)
{
    strand_file_entry entry;
    FAULT_CHECK(strand_must(strand_file_list(*(int *)dir, &entry, 1)) == 0);
    return dir;
}

/* The first call: if the first thread is refused, the strand makes it itself, on a stack of the least size. */
static void list_on_a_small_stack(const struct place *place)
{
    FAULT_FD int dir = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FAULT_CHECK(dir >= 0);
    STRAND_SCOPE(scope);
    strand_attr attr = {.size = sizeof attr, .stack_size = 1};
    strand_join(strand_spawn_with(scope, &attr, list_nothing, &dir, 0));
}

static void replace(const struct place *place)
{
    char *bytes = NULL;
    int error = strand_file_store(place->dir, "c", "whole", 5, 0600);
    struct stat status;
    FAULT_CHECK(fstatat(place->dir, "c", &status, 0) == 0 && (status.st_size == 10 || status.st_size == 5));
    FAULT_CHECK(error || status.st_size == 5);
    strand_must(error);
    FAULT_CHECK(strand_must(strand_file_load(place->dir, "c", 0, &bytes)) == 5);
    int differs = strcmp(bytes, "whole");
    fault_free(bytes);
    FAULT_CHECK(differs == 0);
}

static void *read_some(void *fd)
{
    char bytes[4];
    strand_must(strand_file_read(*(int *)fd, bytes, sizeof bytes, 0));
    return fd;
}

/* Strands that are interrupted while they read. */
static void interrupt(const struct place *place)
{
    FAULT_FD int fd = (int)strand_must(strand_file_open(place->dir, "a", O_RDONLY, 0));
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_cancel(strand_spawn(scope, read_some, &fd), NULL);
    strand_spawn(scope, read_some, &fd);
    strand_scope_cancel(scope, NULL);
}

static void *root(void *arg)
{
    (void)arg;
    __attribute__((cleanup(place_remove))) struct place place = {.path = "/tmp/strand-fault-XXXXXX", .dir = -1};
    FAULT_CHECK(mkdtemp(place.path));
    list_on_a_small_stack(&place);
    place.dir = (int)strand_must(strand_file_open(AT_FDCWD, place.path, O_RDONLY | O_DIRECTORY, 0));
    put_bytes(&place);
    send_bytes(&place);
    splice_bytes();
    open_beneath(&place);
    change_names(&place);
    list(&place);
    replace(&place);
    interrupt(&place);
    return FAULT_DONE;
}

FAULT_WORKLOAD(files, RUN_ALONE | RUN_PAIR, root,
               .options.files = STRAND_FILES_THREADS) /* a seed ends at bytes without memory */
FAULT_WORKLOAD(uring, RUN_ALONE | RUN_PAIR, root, )   /* a seeded run has no ring */

/* A directory with a tree "t" and a file "f", removed by calls that do not fail. */
struct grove {
    char path[64];
    int dir;
};

static void grove_remove(struct grove *grove)
{
    static const char *const names[] = {"t/d/a", "t/d/e", "t/d", "t/s", "t/b", "t", "f"};
    fault_close_fd(&grove->dir);
    int dir = open(grove->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (unlinkat(dir, names[i], 0) != 0)
            (void)unlinkat(dir, names[i], AT_REMOVEDIR);
    close(dir);
    if (dir >= 0)
        FAULT_CHECK(rmdir(grove->path) == 0); /* nothing else was left there */
}

static void set(const struct grove *grove)
{
    const unsigned all = STRAND_FILE_MODE | STRAND_FILE_USER | STRAND_FILE_GROUP | STRAND_FILE_MODIFIED;
    const struct stat wanted = {.st_mode = 0750, .st_uid = getuid(), .st_gid = getgid(), .st_mtim = {1000, 0}};
    struct stat status;
    strand_must(strand_file_set(grove->dir, "t", 0, all, &wanted));
    strand_must(strand_file_set(grove->dir, "", AT_EMPTY_PATH, all, &wanted));
    FAULT_CHECK(fstatat(grove->dir, "t", &status, 0) == 0 && (status.st_mode & 0777) == 0750);
    FAULT_CHECK(status.st_mtime == 1000);
}

static void make_temporary(const struct grove *grove)
{
    char name[] = "XXXXXX";
    FAULT_FD int fd = strand_file_open_temporary(grove->dir, name, 0);
    FAULT_CHECK(fd < 0 || unlinkat(grove->dir, name, 0) == 0);
    strand_must(fd);
}

static void *trees(void *arg)
{
    __attribute__((cleanup(grove_remove))) struct grove grove = {.path = "/tmp/strand-fault-XXXXXX", .dir = -1};
    char path[64], failed[16] = "";
    grove.dir = (int)strand_must(strand_file_open_temporary(AT_FDCWD, grove.path, O_DIRECTORY));
    make_temporary(&grove);
    strand_must(strand_file_make_directories(grove.dir, "t/d/e", 0700));
    strand_must(strand_file_store(grove.dir, "t/d/a", "x", 1, 0600));
    strand_must(strand_file_store(grove.dir, "t/b", "x", 1, 0600));
    strand_must(strand_file_symlink("..", grove.dir, "t/s"));
    strand_must(strand_file_store(grove.dir, "f", "x", 1, 0600));
    set(&grove);
    FAULT_CHECK(strand_must(strand_file_resolve(grove.dir, "t/s/f", path, sizeof path)) > 0);
    FAULT_CHECK(strcmp(path + strlen(path) - 2, "/f") == 0);
    int error = strand_file_remove_tree(grove.dir, "t", failed, sizeof failed);
    struct stat status;
    FAULT_CHECK(error || fstatat(grove.dir, "t", &status, 0) != 0);
    FAULT_CHECK(fstatat(grove.dir, "f", &status, 0) == 0);
    strand_must(error);
    return arg ? arg : FAULT_DONE;
}

FAULT_WORKLOAD(trees, RUN_ALONE | RUN_PAIR, trees, .options.files = STRAND_FILES_THREADS)

static void change_removed(char (*path)[32])
{
    (void)rmdir(*path);
}

static void *changes(void *arg)
{
    __attribute__((cleanup(change_removed))) char path[32] = "/tmp/strand-fault-XXXXXX";
    char sub[48];
    strand_change change;
    FAULT_CHECK(mkdtemp(path));
    snprintf(sub, sizeof sub, "%s/a-name-that-is-longer", path);
    FAULT_FD int fd = (int)strand_must(strand_changes_open());
    int number = (int)strand_must(strand_changes_add(fd, AT_FDCWD, path, IN_CREATE | IN_DELETE));
    FAULT_CHECK(mkdir(sub, 0700) == 0 && rmdir(sub) == 0);
    FAULT_CHECK(strand_must(strand_changes_receive(fd, &change, 1)) == 1);
    FAULT_CHECK(change.number == number && change.what == (IN_CREATE | IN_ISDIR));
    strand_case next = strand_on_change(fd, &change);
    FAULT_CHECK(strand_must(strand_select(&next, 1, 0)) == 0);
    strand_must(next.result);
    FAULT_CHECK(change.what == (IN_DELETE | IN_ISDIR));
    strand_must(strand_changes_remove(fd, number));
    FAULT_CHECK(strand_must(strand_changes_receive(fd, &change, 1)) == 1 && change.what == IN_IGNORED);
    return arg ? arg : FAULT_DONE;
}

FAULT_WORKLOAD(changes, RUN_ANY, changes, .options.files = STRAND_FILES_THREADS)
