/*
 * The floor of the echo rows: an epoll loop. Edge-triggered, and a read that leaves room in its buffer is not repeated:
 * two system calls per message. (Level-triggered it is slower: the kernel looks at each descriptor twice.)
 */
#include "echo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { BATCH = 1024 };

static long accepted, ended;

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.fd = fd};
    bench_check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl: %s", strerror(errno));
}

static int listen_somewhere(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bench_check(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 4096) == 0 &&
                    getsockname(fd, (struct sockaddr *)&address, &length) == 0,
                "listen: %s", strerror(errno));
    *port = ntohs(address.sin_port);
    return fd;
}

static void accept_all(int epoll, int listener)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        accepted++;
        watch(epoll, fd);
    }
    bench_check(errno == EAGAIN, "accept: %s", strerror(errno));
}

/* Until the buffer was not filled, or with the end announced, until the end. A client that waits for its echo never
 * makes the connection full. */
static void serve(int fd, bool end)
{
    char bytes[ECHO_BUFFER];
    ssize_t got;
    do {
        got = recv(fd, bytes, sizeof bytes, 0);
        if (got > 0 && send(fd, bytes, (size_t)got, MSG_NOSIGNAL) != got) {
            bench_check(errno == ECONNRESET || errno == EPIPE, "a connection is full");
            end = true;
        }
    } while (got == sizeof bytes || (end && got > 0));
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        close(fd);
        ended++;
    }
}

int main(int argc, char **argv)
{
    struct epoll_event events[BATCH];
    long connections = echo_connections(argc, argv);
    int port, listener = listen_somewhere(&port), epoll = epoll_create1(EPOLL_CLOEXEC);
    bench_check(epoll >= 0, "no poller");
    watch(epoll, listener);
    echo_start_load("floor", connections, port);
    while (accepted < connections || ended < accepted) {
        int count = epoll_wait(epoll, events, BATCH, -1);
        for (int i = 0; i < count; i++)
            if (events[i].data.fd == listener)
                accept_all(epoll, listener);
            else
                serve(events[i].data.fd, events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
    }
    return 0;
}
