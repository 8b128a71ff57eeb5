/*
 * Datagrams, bytes in several parts, and what goes with bytes. No call waits, and none raises SIGPIPE.
 */
#include "arch.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

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

/* ---- several datagrams ------------------------------------------------------------------------------------ */

struct batch {
    struct mmsghdr messages[ARCH_DATAGRAMS_MOST];
    struct iovec parts[ARCH_DATAGRAMS_MOST];
};

static unsigned prepare(struct batch *batch, const struct arch_datagram *list, int count, bool sends)
{
    count = count < ARCH_DATAGRAMS_MOST ? count : ARCH_DATAGRAMS_MOST;
    for (int i = 0; i < count; i++) {
        struct arch_name *name = list[i].name;
        batch->parts[i] = (struct iovec){list[i].bytes, list[i].size};
        batch->messages[i].msg_hdr = message_of(&batch->parts[i], 1);
        if (name && (!sends || name->length)) {
            batch->messages[i].msg_hdr.msg_name = name->bytes;
            batch->messages[i].msg_hdr.msg_namelen = sends ? name->length : sizeof name->bytes;
        }
    }
    return (unsigned)count;
}

int arch_fd_receive_many(int fd, struct arch_datagram *list, int count)
{
    struct batch batch;
    unsigned room = prepare(&batch, list, count, false);
    int got;
    while ((got = recvmmsg(fd, batch.messages, room, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC, NULL)) < 0 &&
           errno == EINTR)
        ;
    if (got < 0)
        return -errno;
    for (int i = 0; i < got; i++) {
        list[i].got = batch.messages[i].msg_len;
        if (list[i].name)
            list[i].name->length = batch.messages[i].msg_hdr.msg_namelen;
    }
    return got;
}

int arch_fd_send_many(int fd, const struct arch_datagram *list, int count)
{
    struct batch batch;
    unsigned size = prepare(&batch, list, count, true);
    int put;
    while ((put = sendmmsg(fd, batch.messages, size, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return put < 0 ? -errno : put;
}

/* ---- descriptors and credentials -------------------------------------------------------------------------- */

/* More than the system sends with one message: all descriptors, credentials, a security label, a time. */
enum { CONTROL_ROOM = 4096, SCM_PIDFD_ = 4 };
union control {
    struct cmsghdr header; /* for its alignment */
    char bytes[CONTROL_ROOM];
};

/* Descriptors beyond the caller's room are closed. */
static void take_descriptors(struct arch_passed *passed, const struct cmsghdr *c)
{
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (c->cmsg_type == SCM_RIGHTS && passed->fd_count < passed->max_fds) {
            passed->fds[passed->fd_count++] = fd;
        } else {
            (void)close(fd);
            passed->cut |= c->cmsg_type == SCM_RIGHTS;
        }
    }
}

static void take_credentials(struct arch_passed *passed, const struct cmsghdr *c)
{
    struct ucred who;
    memcpy(&who, CMSG_DATA(c), sizeof who);
    passed->has_credentials = true;
    passed->pid = who.pid;
    passed->uid = who.uid;
    passed->gid = who.gid;
}

int64_t arch_fd_receive_passed(int fd, void *buffer, size_t size, struct arch_passed *passed)
{
    union control control;
    struct iovec part = {buffer, size};
    struct msghdr message = message_of(&part, 1);
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    passed->fd_count = 0;
    passed->cut = passed->has_credentials = false;
    int64_t got = receive(fd, &message, MSG_TRUNC);
    if (got < 0)
        return got;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_RIGHTS || c->cmsg_type == SCM_PIDFD_)
            take_descriptors(passed, c);
        else if (c->cmsg_type == SCM_CREDENTIALS)
            take_credentials(passed, c);
    }
    passed->cut |= (message.msg_flags & MSG_CTRUNC) != 0;
    return got;
}

/* Returns the size of the control message. */
static size_t put_control(void *at, int type, const void *data, size_t size)
{
    struct cmsghdr *c = at;
    *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = type, .cmsg_len = CMSG_LEN(size)};
    memcpy(CMSG_DATA(c), data, size);
    return CMSG_SPACE(size);
}

int64_t arch_fd_send_passed(int fd, const void *bytes, size_t size, const struct arch_passed *passed)
{
    union control control = {.header = {0}};
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = message_of(&part, 1);
    message.msg_control = &control;
    if (passed->fd_count)
        message.msg_controllen =
            put_control(&control, SCM_RIGHTS, passed->fds, (size_t)passed->fd_count * sizeof *passed->fds);
    if (passed->has_credentials) {
        const struct ucred who = {.pid = getpid(), .uid = getuid(), .gid = getgid()};
        message.msg_controllen +=
            put_control(control.bytes + message.msg_controllen, SCM_CREDENTIALS, &who, sizeof who);
    }
    return transmit(fd, &message);
}

int arch_process_number(void)
{
    return getpid();
}
