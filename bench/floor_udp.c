/*
 * The floor of udp_echo: a loop on recvmmsg and sendmmsg. The first one waits for a datagram, and takes those that are
 * there.
 */
#define _GNU_SOURCE
#include "udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

static char bytes[UDP_BATCH][ECHO_BUFFER];
static struct sockaddr_in senders[UDP_BATCH];
static struct iovec parts[UDP_BATCH];
static struct mmsghdr messages[UDP_BATCH];

static int open_socket(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bench_check(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 &&
                    getsockname(fd, (struct sockaddr *)&address, &length) == 0,
                "no socket: %s", strerror(errno));
    *port = ntohs(address.sin_port);
    return fd;
}

/* Returns whether the load goes on. */
static bool serve(int fd)
{
    for (int i = 0; i < UDP_BATCH; i++) {
        parts[i] = (struct iovec){bytes[i], ECHO_BUFFER};
        messages[i].msg_hdr = (struct msghdr){
            .msg_name = &senders[i], .msg_namelen = sizeof senders[i], .msg_iov = &parts[i], .msg_iovlen = 1};
    }
    int count = recvmmsg(fd, messages, UDP_BATCH, MSG_WAITFORONE, NULL);
    bench_check(count > 0, "receive: %s", strerror(errno));
    for (int i = 0; i < count; i++) {
        if (!messages[i].msg_len)
            return false;
        parts[i].iov_len = messages[i].msg_len;
    }
    bench_check(sendmmsg(fd, messages, (unsigned)count, 0) == count, "a datagram was not sent");
    return true;
}

int main(void)
{
    int port, fd = open_socket(&port);
    udp_start_load("floor", port);
    while (serve(fd))
        ;
    return 0;
}
