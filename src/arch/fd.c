/*
 * Calls on descriptors, with errno turned into results. Each call asks not to block and not to raise SIGPIPE, if the
 * system allows that.
 */
#include "arch.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

/* The system moves less than 2 GiB at a time; a caller that got less than it asked for could think that there is no
 * more. */
enum { MOST_AT_ONCE = 1 << 30 };
#define NS_PER_S INT64_C(1000000000)

static int result_of(int result)
{
    return result < 0 ? -errno : result;
}

static bool is_tcp(int fd)
{
    int protocol = 0;
    socklen_t length = sizeof protocol;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == IPPROTO_TCP;
}

static bool is_socket(enum arch_fd_type type)
{
    return type == ARCH_FD_SOCKET || type == ARCH_FD_TCP;
}

/* Not for the master of a pseudo-terminal: opening that once more makes another one. */
static bool is_terminal(int fd)
{
    unsigned number;
    return isatty(fd) && ioctl(fd, TIOCGPTN, &number) < 0;
}

int arch_fd_own(int fd)
{
    if (fd < 0)
        return -errno;
    if (fd > STDERR_FILENO)
        return fd;
    int own = arch_fd_twin(fd);
    (void)close(fd);
    return own;
}

int arch_fd_twin(int fd)
{
    return result_of(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

static int open_once_more(int fd, int flags)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = arch_fd_own(open(path, (flags & O_ACCMODE) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    return own < 0 ? -1 : own;
}

/* The system has one inode, without a type, for all objects that have none of their own. */
static struct arch_fd_object object_of(const struct stat *status)
{
    return (struct arch_fd_object){.device = status->st_dev, .inode = status->st_mode & S_IFMT ? status->st_ino : 0};
}

int arch_fd_object(int fd, struct arch_fd_object *out)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    *out = object_of(&status);
    return 0;
}

int arch_fd_type(int fd, int *own, struct arch_fd_object *object)
{
    struct stat status;
    int flags = fcntl(fd, F_GETFL);
    *own = -1;
    if (flags < 0 || fstat(fd, &status) < 0)
        return -errno;
    if (flags & O_PATH)
        return -EBADF;
    *object = object_of(&status);
    if (S_ISSOCK(status.st_mode))
        return is_tcp(fd) ? ARCH_FD_TCP : ARCH_FD_SOCKET;
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode))
        return flags & O_DIRECT ? ARCH_FD_DIRECT : ARCH_FD_FILE;
    if (S_ISCHR(status.st_mode) && !(flags & O_NONBLOCK) && is_terminal(fd))
        *own = open_once_more(fd, flags);
    return ARCH_FD_OTHER;
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
    int all = wait.revents & (POLLERR | POLLHUP) ? ARCH_IN | ARCH_OUT | ARCH_END : 0;
    int in = wait.revents & POLLIN ? ARCH_IN : 0, end = wait.revents & POLLRDHUP ? ARCH_IN | ARCH_END : 0;
    return all | in | end | (wait.revents & POLLOUT ? ARCH_OUT : 0);
}

/* If the system can't be asked not to wait: whether a call would wait, unless the descriptor never does. */
static int would_wait(int fd, uint32_t direction, size_t *size)
{
    int flags = fcntl(fd, F_GETFL), ready;
    if (flags < 0)
        return -errno;
    if (flags & O_NONBLOCK)
        return 0;
    if ((ready = arch_fd_ready(fd)) < 0)
        return ready;
    if (direction == ARCH_OUT && *size > 1)
        *size = 1; /* there is room for so much */
    return (uint32_t)ready & direction ? 0 : -EAGAIN;
}

void *arch_fd_part(const struct iovec *parts, int number, size_t *size)
{
    *size = parts[number].iov_len;
    return parts[number].iov_base;
}

/* The first part that is not empty. There is one. */
static void *first_part(const struct iovec *parts, size_t *size)
{
    while (!parts->iov_len)
        parts++;
    return arch_fd_part(parts, 0, size);
}

/* EPERM comes from a sandbox; if it is the descriptor's own error, the plain call returns it again. */
static bool nowait_refused(int64_t result)
{
    return result == -EOPNOTSUPP || result == -ENOSYS || result == -EPERM;
}

/* A system that does not know RWF_NOWAIT gets the first part only that is not empty. */
static int64_t read_other(int fd, const struct iovec *parts, int count)
{
    ssize_t got = preadv2(fd, parts, count, -1, RWF_NOWAIT);
    if (got >= 0 || !nowait_refused(-errno))
        return got < 0 ? -errno : got;
    size_t size;
    void *buffer = first_part(parts, &size);
    int error = would_wait(fd, ARCH_IN, &size);
    if (error)
        return error;
    got = read(fd, buffer, size);
    return got < 0 ? -errno : got;
}

int64_t arch_fd_read(int fd, enum arch_fd_type type, void *buffer, size_t size)
{
    int64_t got;
    size = size < MOST_AT_ONCE ? size : MOST_AT_ONCE;
    const struct iovec part = {buffer, size};
    do {
        if (type == ARCH_FD_OTHER) {
            got = read_other(fd, &part, 1);
        } else {
            got = is_socket(type) ? recv(fd, buffer, size, MSG_DONTWAIT) : read(fd, buffer, size);
            got = got < 0 ? -errno : got;
        }
    } while (got == -EINTR);
    return got;
}

int64_t arch_fd_readv(int fd, enum arch_fd_type type, const struct iovec *parts, int count)
{
    int64_t got;
    do {
        if (type == ARCH_FD_OTHER)
            got = read_other(fd, parts, count);
        else if (is_socket(type))
            got = arch_fd_receive_parts(fd, parts, count);
        else
            got = (got = readv(fd, parts, count)) < 0 ? -errno : got;
    } while (got == -EINTR);
    return got;
}

static int64_t write_plainly(int fd, enum arch_fd_type type, const struct iovec *parts, int count)
{
    ssize_t put;
    if (type == ARCH_FD_OTHER)
        put = pwritev2(fd, parts, count, -1, RWF_NOWAIT);
    else
        put = count == 1 ? write(fd, parts->iov_base, parts->iov_len) : writev(fd, parts, count);
    if (put >= 0 || type != ARCH_FD_OTHER || !nowait_refused(-errno))
        return put < 0 ? -errno : put;
    size_t size;
    const void *bytes = first_part(parts, &size);
    size_t sure = size;
    int error = would_wait(fd, ARCH_OUT, &sure);
    if (error)
        return error;
    put = write(fd, bytes, sure);
    if (put < 0 && errno == EINVAL && sure < size) /* it takes whole records only */
        put = write(fd, bytes, size);
    return put < 0 ? -errno : put;
}

/* SIGPIPE can't be suppressed for descriptors other than sockets, nor for sendfile and splice: it is blocked meanwhile,
 * and consumed if the call has raised it. */
struct quiet {
    sigset_t pipe, before;
    bool was_pending;
};

static void begin_quiet(struct quiet *quiet)
{
    sigset_t pending;
    sigemptyset(&quiet->pipe);
    sigaddset(&quiet->pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &quiet->pipe, &quiet->before);
    /* One that is not blocked does not stay pending. */
    quiet->was_pending =
        sigismember(&quiet->before, SIGPIPE) == 1 && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

/* raises: the call may have raised the signal. */
static void end_quiet(const struct quiet *quiet, bool raises)
{
    if (raises && !quiet->was_pending) {
        const struct timespec now = {0};
        while (sigtimedwait(&quiet->pipe, NULL, &now) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

static int64_t write_nosigpipe(int fd, enum arch_fd_type type, const struct iovec *parts, int count)
{
    struct quiet quiet;
    begin_quiet(&quiet);
    int64_t result = write_plainly(fd, type, parts, count);
    end_quiet(&quiet, result == -EPIPE);
    return result;
}

/* sendfile has no flag that keeps it from waiting for room: `to` must be one that never blocks. */
int64_t arch_fd_send_file(int to, int from, int64_t offset, size_t size)
{
    struct quiet quiet;
    int flags = fcntl(to, F_GETFL);
    if (flags < 0 || !(flags & O_NONBLOCK))
        return flags < 0 ? -errno : -EOPNOTSUPP;
    off_t at = (off_t)offset;
    ssize_t sent;
    begin_quiet(&quiet);
    while ((sent = sendfile(to, from, &at, size)) < 0 && errno == EINTR)
        ;
    int64_t result = sent < 0 ? -errno : sent;
    end_quiet(&quiet, result == -EPIPE || (sent > 0 && (size_t)sent < size)); /* the peer may go after some bytes */
    return result;
}

/* Whether a splice may wait at this end. SPLICE_F_NONBLOCK concerns pipes only. */
static bool may_wait(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || (!(flags & O_NONBLOCK) && !arch_fd_is_pipe(fd));
}

int64_t arch_fd_splice_into(int from, int to, size_t size)
{
    ssize_t moved;
    if (may_wait(from))
        return -EOPNOTSUPP;
    while ((moved = splice(from, NULL, to, NULL, size, SPLICE_F_NONBLOCK | SPLICE_F_MOVE)) < 0 && errno == EINTR)
        ;
    return moved < 0 ? -errno : moved;
}

int64_t arch_fd_splice(int from, int to, size_t size)
{
    struct quiet quiet;
    if (may_wait(to))
        return -EOPNOTSUPP;
    begin_quiet(&quiet);
    int64_t moved = arch_fd_splice_into(from, to, size);
    end_quiet(&quiet, moved == -EPIPE || (moved > 0 && (size_t)moved < size)); /* the peer may go after some bytes */
    return moved;
}

int64_t arch_fd_write(int fd, enum arch_fd_type type, const void *buffer, size_t size)
{
    int64_t put;
    size = size < MOST_AT_ONCE ? size : MOST_AT_ONCE;
    const struct iovec part = {(void *)(uintptr_t)buffer, size};
    do {
        if (is_socket(type))
            put = (put = send(fd, buffer, size, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 ? -errno : put;
        else
            put = write_nosigpipe(fd, type, &part, 1);
    } while (put == -EINTR);
    return put;
}

int64_t arch_fd_writev(int fd, enum arch_fd_type type, const struct iovec *parts, int count)
{
    int64_t put;
    do {
        put = is_socket(type) ? arch_fd_send_parts(fd, parts, count) : write_nosigpipe(fd, type, parts, count);
    } while (put == -EINTR);
    return put;
}

int arch_fd_close(int fd)
{
    int result = result_of(close(fd));
    return result == -EINTR ? 0 : result; /* on Linux it is closed all the same */
}

int arch_fd_date(int64_t date_ns)
{
    struct itimerspec when = {.it_value = {.tv_sec = date_ns / NS_PER_S, .tv_nsec = date_ns % NS_PER_S}};
    int fd = arch_fd_own(timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    if (fd < 0)
        return fd;
    if (timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL) == 0)
        return fd;
    int error = -errno;
    (void)close(fd);
    return error;
}

/* Not a directory, if possible: names would be looked up in it. */
int arch_fd_number(void)
{
    int fd = result_of(open("/dev/null", O_PATH | O_CLOEXEC));
    return fd == -ENOENT ? result_of(open("/", O_PATH | O_CLOEXEC)) : fd;
}

int arch_fd_blank(int fd)
{
    int blank = arch_fd_number();
    if (blank < 0)
        return blank;
    int result = result_of(dup3(blank, fd, O_CLOEXEC));
    (void)close(blank);
    return result < 0 ? result : 0;
}

int arch_fd_close_on_exec(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0)
        return -errno;
    return flags & FD_CLOEXEC || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) == 0 ? 0 : -errno;
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

int arch_fd_socket_of_datagrams(int family)
{
    return result_of(socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
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

bool arch_fd_is_pipe(int fd)
{
    return fcntl(fd, F_GETPIPE_SZ) >= 0;
}

size_t arch_fd_pipe_room(int fd, size_t wanted)
{
    int room = wanted ? fcntl(fd, F_SETPIPE_SZ, (int)wanted) : -1;
    if (room < 0)
        room = fcntl(fd, F_GETPIPE_SZ);
    return room < 0 ? 0 : (size_t)room;
}

int arch_fd_keeps_messages(int fd)
{
    int type = SOCK_STREAM;
    socklen_t length = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type != SOCK_STREAM;
}
