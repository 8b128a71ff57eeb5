/*
 * A sandbox that is entered during a run: from then on a filter of system calls refuses the one that the argument
 * names, with EPERM. Then strands wait, read and write a pipe and files, and threads steal from each other. Prints
 * "fine" at the end; exit status 77 if the system has no such filters. Without newfstatat the threads of the process
 * can't be counted: the run waits for ever, what it logs goes to standard error, and the program ends.
 */
#define _GNU_SOURCE
#include "strand.h"
#include "strand/file.h"
#include "strand/io.h"
#include "strand/pool.h"
#include "strand/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SKIPPED = 77, STRANDS = 100 };

static const struct {
    const char *name;
    int number;
} calls[] = {
    {"membarrier", SYS_membarrier},
    {"munmap", SYS_munmap},
    {"newfstatat", SYS_newfstatat},
    {"io_uring_setup", SYS_io_uring_setup},
    {"io_uring_enter", SYS_io_uring_enter},
    {"preadv2", SYS_preadv2},
    {"pwritev2", SYS_pwritev2},
    {"timerfd_settime", SYS_timerfd_settime},
};

static void enter(int number)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        exit(SKIPPED);
}

static void *read_one(void *fds)
{
    char byte;
    strand_yield();
    strand_sleep(STRAND_MS);
    if (strand_read(((int *)fds)[0], &byte, 1) != 1)
        puts("not read");
    return NULL;
}

static void *use_a_file(void *arg)
{
    char byte;
    int fd = strand_file_open(AT_FDCWD, "/tmp", O_RDWR | O_TMPFILE, 0600);
    if (fd < 0 || strand_file_write(fd, "x", 1, 0) != 1 || strand_file_sync(fd, false) ||
        strand_file_read(fd, &byte, 1, -1) != 1 || byte != 'x' || strand_close(fd))
        puts("not written and read");
    return arg;
}

static void use_files(void)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < STRANDS; i++)
        strand_spawn(scope, use_a_file, NULL);
    strand_scope_join(scope);
}

/* Its pool's memory is given back at the end of the block. */
static void use_a_pool(void)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, NULL);
    int fds[2];
    if (strand_pipe(fds) < 0)
        return;
    for (int i = 0; i < STRANDS; i++)
        strand_spawn_with(scope, i % 2 ? NULL : STRAND_ATTR(.pool = pool), read_one, fds, 0);
    for (int i = 0; i < STRANDS; i++)
        if (strand_write_all(fds[1], "x", 1) != 1)
            puts("not written");
    strand_scope_join(scope);
    strand_close(fds[0]);
    strand_close(fds[1]);
}

/* Nobody sets the event: what is logged ends the program. */
static void *wait_without_proc(void *arg)
{
    static strand_event never;
    strand_event_wait(&never);
    return arg;
}

static void print_and_exit(const char *message, void *arg)
{
    (void)arg;
    (void)!write(STDERR_FILENO, message, strlen(message));
    _exit(0);
}

static void *root(void *name)
{
    if (strcmp(name, "io_uring_enter") == 0)
        use_files();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(name, calls[i].name) == 0)
            enter(calls[i].number);
    if (strcmp(name, "newfstatat") == 0)
        return wait_without_proc(name);
    use_a_pool();
    if (strncmp(name, "io_uring", 8) == 0) /* without munmap the C library ends the program when threads exit */
        use_files();
    return NULL;
}

int main(int argc, char **argv)
{
    strand_run(STRAND_OPTIONS(.threads = 3, .on_log = print_and_exit), root, argc > 1 ? argv[1] : "");
    puts("fine");
    return 0;
}
