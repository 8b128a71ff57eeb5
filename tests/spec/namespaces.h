/*
 * A process with a network or files of its own.
 */
#ifndef TEST_NAMESPACES_H
#define TEST_NAMESPACES_H

#include "test.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool put_number(const char *path, const char *format, unsigned value)
{
    FILE *file = fopen(path, "w");
    return file && fprintf(file, format, value) > 0 && fclose(file) == 0;
}

/* Enter new namespaces (CLONE_NEWNET, ...). Without privileges the system may allow it to the root of a namespace of
 * users. */
static inline bool enter_namespaces(int kinds)
{
    unsigned user = getuid(), group = getgid();
    if (unshare(kinds) == 0)
        return true;
    return unshare(CLONE_NEWUSER | kinds) == 0 && put_number("/proc/self/setgroups", "deny%.0u", 0) &&
           put_number("/proc/self/uid_map", "0 %u 1", user) && put_number("/proc/self/gid_map", "0 %u 1", group);
}

/* Enter a tree of files in which this process alone sees what it mounts. */
static inline bool enter_files(void)
{
    return enter_namespaces(CLONE_NEWNS) && mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0;
}

/* Put a text in the place of a file, after enter_files. */
static inline bool replace_file(const char *path, const char *text)
{
    char name[] = "/tmp/strand-file-XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0)
        return false;
    bool replaced = write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, 0644) == 0 &&
                    mount(name, path, "none", MS_BIND, NULL) == 0;
    return close(fd) == 0 && unlink(name) == 0 && replaced;
}

struct own_file {
    const char *path, *text;
};

/* Run a strand in a child process that has these files, up to a path that is NULL. */
static inline void run_with_files(const struct own_file *files, strand_fn *fn)
{
    enum { NOT_ALLOWED = 77 };
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        bool allowed = enter_files();
        for (; allowed && files->path; files++)
            allowed = replace_file(files->path, files->text);
        if (!allowed)
            _exit(NOT_ALLOWED);
        strand_run(NULL, fn, NULL);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_ALLOWED)
        fprintf(stderr, "skipped: the system allows no files of its own\n");
    else
        CHECK_EQ(WEXITSTATUS(status), 0);
}

#endif
