/*
 * Helper programs: what ends a program is proven on a program of its own. Nothing forks here, because a fork inside of
 * a Criterion test hangs its runner.
 */
#define _GNU_SOURCE /* pipe2 */
#define TEST_HARNESS
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef TEST_PROGRAMS
#define TEST_PROGRAMS "build/tests/programs"
#endif
#define LIMIT_S (TEST_LIMIT_S / 3)

extern char **environ;

/* One of the two streams of the program that runs. */
struct stream {
    int fd; /* the end to read; -1 once it is closed */
    size_t length;
    char *text; /* as long as a field of struct test_output */
};
#define TEXT_SIZE sizeof(((struct test_output *)0)->out)

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000L + t.tv_nsec / 1000000L;
}

static pid_t start(const char *name, const char *arg, int out, int err)
{
    char path[4096];
    posix_spawn_file_actions_t actions;
    pid_t pid;
    char *argv[3];
    char own_arg[256];

    snprintf(path, sizeof(path), "%s/%s", TEST_PROGRAMS, name);
    snprintf(own_arg, sizeof(own_arg), "%s", arg != NULL ? arg : "");
    argv[0] = path;
    argv[1] = arg != NULL ? own_arg : NULL;
    argv[2] = NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    int refused = posix_spawn(&pid, path, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (refused != 0)
        CHECK_FAIL("%s: %s", path, strerror(refused));
    return pid;
}

/* Takes what is there; what does not fit is read and dropped, so that the program is never held up. */
static void read_some(struct stream *stream)
{
    char chunk[4096];
    ssize_t n = read(stream->fd, chunk, sizeof(chunk));

    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        close(stream->fd);
        stream->fd = -1;
        return;
    }
    size_t room = TEXT_SIZE - 1 - stream->length;
    size_t taken = (size_t)n < room ? (size_t)n : room;
    memcpy(stream->text + stream->length, chunk, taken);
    stream->length += taken;
    stream->text[stream->length] = '\0';
}

/* Until both streams are at their ends; false if the limit comes first. */
static bool read_both(struct stream streams[2])
{
    long limit = now_ms() + LIMIT_S * 1000L;

    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        struct pollfd fds[2] = {{streams[0].fd, POLLIN, 0}, {streams[1].fd, POLLIN, 0}};
        long left = limit - now_ms();
        if (left <= 0)
            return false;
        if (poll(fds, 2, (int)left) <= 0)
            continue;
        for (int i = 0; i < 2; i++)
            if (fds[i].revents != 0)
                read_some(&streams[i]);
    }
    return true;
}

void test_program(struct test_output *output, const char *name, const char *arg)
{
    int out[2], err[2], status = 0;

    memset(output, 0, sizeof(*output));
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        CHECK_FAIL("no pipe for %s: %s", name, strerror(errno));
    pid_t pid = start(name, arg, out[1], err[1]);
    close(out[1]);
    close(err[1]);

    struct stream streams[2] = {{out[0], 0, output->out}, {err[0], 0, output->err}};
    bool in_time = read_both(streams);
    if (!in_time)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!in_time)
        CHECK_FAIL("%s %s has not ended after %d s; it wrote \"%s\" \"%s\"", name, arg != NULL ? arg : "", LIMIT_S,
                   output->out, output->err);
    output->signalled = WIFSIGNALED(status);
    output->status = output->signalled ? WTERMSIG(status) : WEXITSTATUS(status);
}
