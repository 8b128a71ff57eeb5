/*
 * Calls on descriptors, with errno turned into results. What can be told not to block and not to raise SIGPIPE is told
 * so; of pipes, which can't, the signal is taken back by the thread that raised it.
 */
#include "arch.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A write to a pipe that is called ready takes so much at once. */
enum { PIPE_AT_ONCE = 4096 };

static bool is_tcp(int fd)
{
    int protocol = 0;
    socklen_t length = sizeof protocol;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == IPPROTO_TCP;
}

int arch_fd_kind(int fd)
{
    struct stat status;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fstat(fd, &status) < 0)
        return -errno;
    if (S_ISSOCK(status.st_mode))
        return is_tcp(fd) ? ARCH_FD_TCP : ARCH_FD_SOCKET;
    return flags & O_NONBLOCK || S_ISREG(status.st_mode) ? ARCH_FD_FREE : ARCH_FD_BLOCKING;
}

static bool is_socket(enum arch_fd_kind kind)
{
    return kind == ARCH_FD_SOCKET || kind == ARCH_FD_TCP;
}

int arch_fd_ready(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
    int got;
    while ((got = poll(&wait, 1, 0)) < 0 && errno == EINTR)
        ;
    if (got < 0)
        return -errno;
    if (wait.revents & POLLNVAL)
        return -EBADF;
    int both = wait.revents & (POLLERR | POLLHUP) ? ARCH_IN | ARCH_OUT : 0;
    return both | (wait.revents & (POLLIN | POLLRDHUP) ? ARCH_IN : 0) | (wait.revents & POLLOUT ? ARCH_OUT : 0);
}

int64_t arch_fd_read(int fd, enum arch_fd_kind kind, void *buffer, size_t size)
{
    for (;;) {
        if (kind == ARCH_FD_BLOCKING) {
            int ready = arch_fd_ready(fd);
            if (ready < 0 || !(ready & ARCH_IN))
                return ready < 0 ? ready : -EAGAIN;
        }
        ssize_t got = is_socket(kind) ? recv(fd, buffer, size, MSG_DONTWAIT) : read(fd, buffer, size);
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return -errno;
    }
}

/* write() without a SIGPIPE: it is blocked meanwhile, and taken out if this call has raised it. */
static int64_t write_to_pipe(int fd, const void *buffer, size_t size)
{
    sigset_t pipe, before, pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    bool was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    ssize_t put = write(fd, buffer, size);
    int64_t result = put < 0 ? -errno : put;
    if (result == -EPIPE && !was_pending) {
        const struct timespec now = {0};
        while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

int64_t arch_fd_write(int fd, enum arch_fd_kind kind, const void *buffer, size_t size)
{
    for (;;) {
        if (kind == ARCH_FD_BLOCKING) {
            int ready = arch_fd_ready(fd);
            if (ready < 0 || !(ready & ARCH_OUT))
                return ready < 0 ? ready : -EAGAIN;
            size = size < PIPE_AT_ONCE ? size : PIPE_AT_ONCE;
        }
        int64_t put;
        if (is_socket(kind))
            put = (put = send(fd, buffer, size, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 ? -errno : put;
        else
            put = write_to_pipe(fd, buffer, size);
        if (put != -EINTR)
            return put;
    }
}

static int result_of(int result)
{
    return result < 0 ? -errno : result;
}

int arch_fd_close(int fd)
{
    int result = result_of(close(fd));
    return result == -EINTR ? 0 : result; /* on Linux it is closed all the same */
}

int arch_fd_shutdown(int fd, int how)
{
    return result_of(shutdown(fd, how));
}

int arch_fd_accept(int fd, void *address, uint32_t *length)
{
    int result;
    while ((result = result_of(accept4(fd, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC))) == -EINTR)
        ;
    return result;
}

int arch_fd_socket(int family)
{
    return result_of(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

int arch_fd_bind(int fd, const void *address, uint32_t length)
{
    return result_of(bind(fd, address, length));
}

int arch_fd_listen(int fd, int backlog)
{
    return result_of(listen(fd, backlog));
}

int arch_fd_connect(int fd, const void *address, uint32_t length)
{
    int result = result_of(connect(fd, address, length));
    return result == -EINTR ? -EINPROGRESS : result;
}

int arch_fd_error(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? -errno : -error;
}

int arch_fd_pipe(int fds[2])
{
    return result_of(pipe2(fds, O_NONBLOCK | O_CLOEXEC));
}
