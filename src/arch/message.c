/*
 * Datagrams, and bytes in several parts. No call waits, and none raises SIGPIPE.
 */
#include "arch.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

_Static_assert(sizeof(struct sockaddr_storage) == sizeof((struct arch_name *)0)->bytes, "a name is an address");

static int64_t receive(int fd, struct msghdr *message, int flags)
{
    ssize_t got;
    while ((got = recvmsg(fd, message, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    return got < 0 ? -errno : got;
}

static int64_t transmit(int fd, const struct msghdr *message)
{
    ssize_t put;
    while ((put = sendmsg(fd, message, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return put < 0 ? -errno : put;
}

static struct msghdr message_of(const struct iovec *parts, int count)
{
    return (struct msghdr){.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count};
}

int64_t arch_fd_receive_parts(int fd, const struct iovec *parts, int count)
{
    struct msghdr message = message_of(parts, count);
    return receive(fd, &message, 0);
}

int64_t arch_fd_send_parts(int fd, const struct iovec *parts, int count)
{
    struct msghdr message = message_of(parts, count);
    return transmit(fd, &message);
}

int64_t arch_fd_receive(int fd, void *buffer, size_t size, struct arch_name *name)
{
    struct iovec part = {buffer, size};
    struct msghdr message = message_of(&part, 1);
    if (name) {
        message.msg_name = name->bytes;
        message.msg_namelen = sizeof name->bytes;
    }
    int64_t got = receive(fd, &message, MSG_TRUNC);
    if (got >= 0 && name)
        name->length = message.msg_namelen;
    return got;
}

int64_t arch_fd_send(int fd, const void *bytes, size_t size, const struct arch_name *name)
{
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = message_of(&part, 1);
    if (name) {
        message.msg_name = (void *)(uintptr_t)name->bytes;
        message.msg_namelen = name->length;
    }
    return transmit(fd, &message);
}
