/*
 * Descriptors and addresses: results of the system are passed on, interrupted calls are repeated, and a descriptor that
 * can't be made non-blocking is polled first.
 */
#include "arch_refuse.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/un.h>

#if !SANITIZED

DOOR(int, poll, (struct pollfd * fds, nfds_t count, int ms), (fds, count, ms), -1)
DOOR(ssize_t, read, (int fd, void *bytes, size_t size), (fd, bytes, size), -1)
DOOR(ssize_t, write, (int fd, const void *bytes, size_t size), (fd, bytes, size), -1)
DOOR(ssize_t, recv, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags), -1)
DOOR(ssize_t, send, (int fd, const void *bytes, size_t size, int flags), (fd, bytes, size, flags), -1)

/* As of a file system that does not know how. */
static bool never_without_waiting;

static bool waits_only(const char *name)
{
    errno = EOPNOTSUPP;
    return never_without_waiting || refused(name);
}

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    return waits_only("preadv2") ? -1 : syscall(SYS_preadv2, fd, parts, count, offset, -1L, flags);
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    return waits_only("pwritev2") ? -1 : syscall(SYS_pwritev2, fd, parts, count, offset, -1L, flags);
}

DOOR(int, dup3, (int fd, int to, int flags), (fd, to, flags), -1)
DOOR(int, accept4, (int fd, __SOCKADDR_ARG address, socklen_t *length, int flags), (fd, address, length, flags), -1)
DOOR(int, connect, (int fd, __CONST_SOCKADDR_ARG address, socklen_t length), (fd, address, length), -1)
DOOR(int, getsockopt, (int fd, int level, int option, void *value, socklen_t *length),
     (fd, level, option, value, length), -1)
DOOR(int, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *time), (set, info, time), -1)
DOOR(int, sigpending, (sigset_t * set), (set), -1)
DOOR(int, fstat, (int fd, struct stat *status), (fd, status), -1)
static int found_nothing;
DOOR(int, getaddrinfo, (const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found),
     (host, service, hints, found), found_nothing)

int fcntl(int fd, int command, ...)
{
    static __typeof__(&fcntl) real;
    va_list arguments;
    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    if (refused("fcntl"))
        return -1;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fcntl");
    return real(fd, command, argument);
}

int open(const char *path, int flags, ...)
{
    static __typeof__(&open) real;
    if (refused("open"))
        return -1;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "open");
    return real(path, flags, 0600);
}

/* Disturbed, it has closed the descriptor all the same. */
int close(int fd)
{
    static __typeof__(&close) real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "close");
    int result = real(fd);
    return refused("close") ? -1 : result;
}

static void make_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        abort();
}

static void close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* ---- types and readiness --------------------------------------------------------------------- */

static struct arch_fd_object object;

static void types_are_distinguished(void)
{
    int own, ends[2], fd = open("/", O_RDONLY);
    CHECK_EQUAL(arch_fd_type(fd, &own, &object), ARCH_FD_FILE);
    close(fd);
    fd = open("/proc/self/exe", O_RDONLY);
    CHECK_EQUAL(arch_fd_type(fd, &own, &object), ARCH_FD_FILE);
    refuse("fstat", 0, 1, EIO);
    CHECK_EQUAL(arch_fd_type(fd, &own, &object), -EIO);
    CHECK(was_refused());
    close(fd);
    CHECK_EQUAL(arch_fd_type(fd, &own, &object), -EBADF);
    fd = open("/dev/null", O_RDWR);
    CHECK_EQUAL(arch_fd_type(fd, &own, &object), ARCH_FD_OTHER);
    CHECK_EQUAL(own, -1);
    close(fd);
    make_pipe(ends);
    CHECK_EQUAL(arch_fd_type(ends[0], &own, &object), ARCH_FD_OTHER);
    close_both(ends);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(arch_fd_type(fd, &own, &object), ARCH_FD_TCP);
    refuse("getsockopt", 0, 1, ENOPROTOOPT);
    CHECK_EQUAL(arch_fd_type(fd, &own, &object), ARCH_FD_SOCKET);
    CHECK(was_refused());
    close(fd);
}

static void a_number_without_calls_has_no_type(void)
{
    int own, fd = arch_fd_number();
    CHECK_EQUAL(arch_fd_type(fd, &own, &object), -EBADF);
    close(fd);
}

static void objects_are_distinguished(void)
{
    int ends[2], more[2], event = eventfd(0, 0);
    struct arch_fd_object other;
    make_pipe(ends);
    make_pipe(more);
    CHECK_EQUAL(arch_fd_object(ends[0], &object), 0);
    CHECK_EQUAL(arch_fd_object(ends[1], &other), 0);
    CHECK(object.inode && object.inode == other.inode && object.device == other.device);
    CHECK_EQUAL(arch_fd_object(more[0], &other), 0);
    CHECK(object.inode != other.inode);
    CHECK_EQUAL(arch_fd_object(event, &other), 0);
    CHECK(other.inode == 0);
    close(event);
    CHECK_EQUAL(arch_fd_object(event, &other), -EBADF);
    close_both(ends);
    close_both(more);
}

/* A terminal is opened once more, unless it does not block, and its master never. */
static void terminals_get_a_descriptor_of_our_own(void)
{
    int own, master = posix_openpt(O_RDWR | O_NOCTTY);
    char *name;
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 || !(name = ptsname(master)))
        return;
    CHECK_EQUAL(arch_fd_type(master, &own, &object), ARCH_FD_OTHER);
    CHECK_EQUAL(own, -1);
    int terminal = open(name, O_RDWR | O_NOCTTY);
    CHECK_EQUAL(arch_fd_type(terminal, &own, &object), ARCH_FD_OTHER);
    CHECK(own >= 0 && own != terminal);
    CHECK(fcntl(own, F_GETFL, 0L) & O_NONBLOCK);
    CHECK(!(fcntl(terminal, F_GETFL, 0L) & O_NONBLOCK));
    close(own);
    CHECK_EQUAL(arch_fd_unblock(terminal), 0);
    CHECK_EQUAL(arch_fd_type(terminal, &own, &object), ARCH_FD_OTHER);
    CHECK_EQUAL(own, -1);
    close(terminal);
    close(master);
}

static void readiness_is_what_poll_says(void)
{
    int ends[2];
    make_pipe(ends);
    CHECK_EQUAL(arch_fd_ready(ends[0]), 0);
    CHECK_EQUAL(arch_fd_ready(ends[1]), ARCH_OUT);
    refuse("poll", 0, 2, EINTR);
    CHECK_EQUAL(arch_fd_ready(ends[1]), ARCH_OUT);
    CHECK(was_refused());
    refuse("poll", 0, 1, ENOMEM);
    CHECK_EQUAL(arch_fd_ready(ends[1]), -ENOMEM);
    CHECK(was_refused());
    CHECK_EQUAL(write(ends[1], "x", 1), 1);
    CHECK_EQUAL(arch_fd_ready(ends[0]), ARCH_IN);
    close(ends[0]);
    CHECK_EQUAL(arch_fd_ready(ends[1]), ARCH_IN | ARCH_OUT | ARCH_END);
    close(ends[1]);
    CHECK_EQUAL(arch_fd_ready(ends[1]), -EBADF);
}

/* ---- reading and writing --------------------------------------------------------------------- */

static void disturbed_calls_are_made_again(void)
{
    int ends[2];
    char bytes[8];
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    refuse("send", 0, 2, EINTR);
    CHECK_EQUAL(arch_fd_write(ends[0], ARCH_FD_SOCKET, "abc", 3), 3);
    CHECK(was_refused());
    refuse("recv", 0, 2, EINTR);
    CHECK_EQUAL(arch_fd_read(ends[1], ARCH_FD_SOCKET, bytes, sizeof bytes), 3);
    CHECK(was_refused());
    CHECK_EQUAL(arch_fd_read(ends[1], ARCH_FD_SOCKET, bytes, sizeof bytes), -EAGAIN);
    close(ends[1]);
    CHECK_EQUAL(arch_fd_write(ends[0], ARCH_FD_SOCKET, "abc", 3), -EPIPE);
    close(ends[0]);

    make_pipe(ends);
    refuse("pwritev2", 0, 2, EINTR);
    CHECK_EQUAL(arch_fd_write(ends[1], ARCH_FD_OTHER, "abc", 3), 3);
    CHECK(was_refused());
    refuse("preadv2", 0, 2, EINTR);
    CHECK_EQUAL(arch_fd_read(ends[0], ARCH_FD_OTHER, bytes, sizeof bytes), 3);
    CHECK(was_refused());
    CHECK_EQUAL(arch_fd_read(ends[0], ARCH_FD_OTHER, bytes, sizeof bytes), -EAGAIN);
    close_both(ends);

    int fd = open("/proc/self/exe", O_RDONLY);
    refuse("read", 0, 1, EINTR);
    CHECK_EQUAL(arch_fd_read(fd, ARCH_FD_FILE, bytes, 4), 4);
    CHECK(was_refused());
    refuse("read", 0, 1, EIO);
    CHECK_EQUAL(arch_fd_read(fd, ARCH_FD_FILE, bytes, 4), -EIO);
    CHECK(was_refused());
    CHECK_EQUAL(arch_fd_write(fd, ARCH_FD_FILE, "x", 1), -EBADF);
    close(fd);
}

static int64_t read_one(int fd, int error)
{
    char byte;
    refuse("preadv2", 0, 1, error);
    int64_t got = arch_fd_read(fd, ARCH_FD_OTHER, &byte, 1);
    CHECK(was_refused());
    return got;
}

static int64_t write_three(int fd, int error)
{
    refuse("pwritev2", 0, 1, error);
    int64_t put = arch_fd_write(fd, ARCH_FD_OTHER, "abc", 3);
    CHECK(was_refused());
    return put;
}

static void readiness_is_polled_first_where_rwf_nowait_is_refused(void)
{
    static const int errors[] = {EOPNOTSUPP, ENOSYS};
    for (int i = 0; i < 2; i++) {
        int ends[2];
        char bytes[8];
        make_pipe(ends);
        CHECK_EQUAL(read_one(ends[0], errors[i]), -EAGAIN);
        CHECK_EQUAL(write_three(ends[1], errors[i]), 1); /* so much there is room for */
        CHECK_EQUAL(read_one(ends[0], errors[i]), 1);
        /* Those that don't block are just called. */
        CHECK_EQUAL(arch_fd_unblock(ends[0]), 0);
        CHECK_EQUAL(arch_fd_unblock(ends[1]), 0);
        CHECK_EQUAL(read_one(ends[0], errors[i]), -EAGAIN);
        CHECK_EQUAL(write_three(ends[1], errors[i]), 3);
        CHECK_EQUAL(read(ends[0], bytes, sizeof bytes), 3);
        close(ends[0]);
        CHECK_EQUAL(write_three(ends[1], errors[i]), -EPIPE);
        close(ends[1]);
    }
}

/* The call that may not wait is refused, and then another one as well. */
static int64_t call_with(const char *name, int error, bool reading, int fd)
{
    char bytes[3] = "abc";
    never_without_waiting = true;
    refuse(name, 0, 1, error);
    int64_t result = reading ? arch_fd_read(fd, ARCH_FD_OTHER, bytes, sizeof bytes)
                             : arch_fd_write(fd, ARCH_FD_OTHER, bytes, sizeof bytes);
    CHECK(was_refused());
    never_without_waiting = false;
    return result;
}

static void what_is_asked_first_may_be_refused_too(void)
{
    int ends[2];
    make_pipe(ends);
    CHECK_EQUAL(call_with("fcntl", EBADF, true, ends[0]), -EBADF);
    CHECK_EQUAL(call_with("poll", ENOMEM, true, ends[0]), -ENOMEM);
    CHECK_EQUAL(call_with("fcntl", EBADF, false, ends[1]), -EBADF);
    CHECK_EQUAL(call_with("poll", ENOMEM, false, ends[1]), -ENOMEM);
    CHECK_EQUAL(call_with("write", EIO, false, ends[1]), -EIO);
    CHECK_EQUAL(call_with("write", EINTR, false, ends[1]), 1);
    CHECK_EQUAL(call_with("write", EINVAL, false, ends[1]), 3); /* it takes whole records only */
    CHECK_EQUAL(call_with("read", EIO, true, ends[0]), -EIO);
    CHECK_EQUAL(call_with("read", EINTR, true, ends[0]), 3);
    close_both(ends);
}

static void a_broken_pipe_raises_no_signal(void)
{
    int ends[2];
    sigset_t pipe_signal, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    make_pipe(ends);
    close(ends[0]);
    refuse("sigtimedwait", 0, 2, EINTR);
    CHECK_EQUAL(arch_fd_write(ends[1], ARCH_FD_OTHER, "x", 1), -EPIPE);
    CHECK(was_refused());
    /* One that was there before stays. */
    sigprocmask(SIG_BLOCK, &pipe_signal, NULL);
    raise(SIGPIPE);
    CHECK_EQUAL(arch_fd_write(ends[1], ARCH_FD_OTHER, "x", 1), -EPIPE);
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGPIPE));
    close(ends[1]);
}

/* ---- closing --------------------------------------------------------------------------------- */

static void closing_and_blanking(void)
{
    int ends[2];
    char byte;
    make_pipe(ends);
    refuse("close", 0, 1, EINTR);
    CHECK_EQUAL(arch_fd_close(ends[0]), 0);
    CHECK(was_refused());
    CHECK_EQUAL(arch_fd_close(ends[0]), -EBADF);
    refuse("open", 0, 1, EMFILE);
    CHECK_EQUAL(arch_fd_blank(ends[1]), -EMFILE);
    CHECK(was_refused());
    refuse("dup3", 0, 1, EBUSY);
    CHECK_EQUAL(arch_fd_blank(ends[1]), -EBUSY);
    CHECK(was_refused());
    CHECK_EQUAL(arch_fd_ready(ends[1]) & ARCH_END, ARCH_END); /* it is the pipe still */
    CHECK_EQUAL(arch_fd_blank(ends[1]), 0);
    CHECK_EQUAL(arch_fd_read(ends[1], ARCH_FD_OTHER, &byte, 1), -EBADF);
    CHECK_EQUAL(arch_fd_close(ends[1]), 0);
}

/* ---- sockets and addresses ------------------------------------------------------------------- */

static void accepting_and_connecting_disturbed(void)
{
    int listener = arch_fd_socket(AF_INET);
    struct arch_address address;
    CHECK_EQUAL(arch_address_tcp("127.0.0.1", 0, true, false, &address, 1), 1);
    CHECK_EQUAL(arch_fd_bind(listener, address.bytes, address.length), 0);
    CHECK_EQUAL(arch_fd_listen(listener, 1), 0);
    refuse("accept4", 0, 2, EINTR);
    CHECK_EQUAL(arch_fd_accept(listener, NULL, NULL), -EAGAIN);
    CHECK(was_refused());
    int client = arch_fd_socket(AF_INET);
    refuse("connect", 0, 1, EINTR); /* it goes on in the background */
    CHECK_EQUAL(arch_fd_connect(client, address.bytes, address.length), -EINPROGRESS);
    CHECK(was_refused());
    CHECK_EQUAL(arch_fd_error(client), 0);
    close(client);
    CHECK_EQUAL(arch_fd_error(client), -EBADF);
    close(listener);
}

static void ports_are_of_tcp(void)
{
    int fd = arch_fd_socket(AF_UNIX), bound = arch_fd_socket(AF_INET);
    struct sockaddr_in any = {.sin_family = AF_INET};
    CHECK_EQUAL(arch_fd_port(fd), -EAFNOSUPPORT);
    close(fd);
    CHECK_EQUAL(arch_fd_port(fd), -EBADF);
    CHECK_EQUAL(arch_fd_bind(bound, &any, sizeof any), 0);
    CHECK(arch_fd_port(bound) > 0);
    close(bound);
}

static void unblocking_says_why_not(void)
{
    int ends[2];
    make_pipe(ends);
    refuse("fcntl", 1, 1, EPERM);
    CHECK_EQUAL(arch_fd_unblock(ends[0]), -EPERM);
    CHECK(was_refused());
    CHECK_EQUAL(arch_fd_unblock(ends[0]), 0);
    CHECK_EQUAL(arch_fd_unblock(ends[0]), 0);
    close_both(ends);
    CHECK_EQUAL(arch_fd_unblock(ends[0]), -EBADF);
}

static int look_up_with(int result, int error)
{
    struct arch_address address;
    found_nothing = result;
    refuse("getaddrinfo", 0, 1, error);
    int got = arch_address_tcp("somewhere", 80, false, true, &address, 1);
    return was_refused() ? got : 1;
}

static void names_that_are_not_found_say_why(void)
{
    struct arch_address address;
    CHECK_EQUAL(look_up_with(EAI_SYSTEM, EMFILE), -EMFILE);
    CHECK_EQUAL(look_up_with(EAI_MEMORY, 0), -ENOMEM);
    CHECK_EQUAL(look_up_with(EAI_AGAIN, 0), -EHOSTUNREACH);
    CHECK_EQUAL(look_up_with(EAI_NONAME, 0), -ENOENT);
    CHECK_EQUAL(arch_address_tcp("127.0.0.1", 80, false, false, &address, 0), -ENOENT);
    CHECK_EQUAL(arch_address_tcp("127.0.0.1", -1, false, false, &address, 1), -EINVAL);
    CHECK_EQUAL(arch_address_tcp("127.0.0.1", 65536, false, false, &address, 1), -EINVAL);
    CHECK_EQUAL(arch_address_tcp("", 80, false, false, &address, 1), 1); /* loopback */
}

static void only_some_signals_can_be_watched(void)
{
    static const int not [] = {-1, 0, SIGKILL, SIGSTOP, SIGSEGV, SIGABRT, 32, 33, 65};
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        CHECK(!arch_watch_can(not [i]));
    CHECK(arch_watch_can(SIGHUP) && arch_watch_can(SIGTERM) && arch_watch_can(SIGRTMIN) && arch_watch_can(64));
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    types_are_distinguished();
    a_number_without_calls_has_no_type();
    objects_are_distinguished();
    terminals_get_a_descriptor_of_our_own();
    readiness_is_what_poll_says();
    disturbed_calls_are_made_again();
    readiness_is_polled_first_where_rwf_nowait_is_refused();
    what_is_asked_first_may_be_refused_too();
    CHECK_CHILD(a_broken_pipe_raises_no_signal);
    closing_and_blanking();
    accepting_and_connecting_disturbed();
    ports_are_of_tcp();
    unblocking_says_why_not();
    names_that_are_not_found_say_why();
    only_some_signals_can_be_watched();
    return failures != 0;
}

#else

/* A sanitizer has definitions of its own. */
int main(void)
{
    return 0;
}

#endif
