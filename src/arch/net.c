/*
 * Addresses of sockets, and what is set on them.
 */
#include "arch.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

_Static_assert(sizeof(struct sockaddr_storage) <= sizeof((struct arch_address *)0)->bytes, "addresses fit");

static int code_of(int error)
{
    switch (error) {
    case EAI_SYSTEM:
        return -errno;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_AGAIN:
        return -EHOSTUNREACH;
    default:
        return -ENOENT;
    }
}

int arch_address_tcp(const char *host, int port, bool passive, bool look_up, struct arch_address *out, int most)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    char service[16];
    int count = 0;
    hints.ai_flags |= (passive ? AI_PASSIVE : 0) | (look_up ? 0 : AI_NUMERICHOST);
    snprintf(service, sizeof service, "%d", port);
    int error = getaddrinfo(host[0] ? host : NULL, service, &hints, &found);
    if (error)
        return code_of(error);
    for (struct addrinfo *info = found; info && count < most; info = info->ai_next) {
        out[count] = (struct arch_address){.length = info->ai_addrlen, .family = (uint32_t)info->ai_family};
        memcpy(out[count++].bytes, info->ai_addr, info->ai_addrlen);
    }
    freeaddrinfo(found);
    return count ? count : -ENOENT;
}

int arch_address_unix(const char *path, struct arch_address *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, length);
    *out = (struct arch_address){.length = sizeof address, .family = AF_UNIX};
    memcpy(out->bytes, &address, sizeof address);
    return 0;
}

int arch_fd_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage room;
    } name;
    socklen_t length = sizeof name;
    if (getsockname(fd, &name.any, &length) < 0)
        return -errno;
    if (name.any.sa_family == AF_INET)
        return ntohs(name.v4.sin_port);
    return name.any.sa_family == AF_INET6 ? ntohs(name.v6.sin6_port) : -EAFNOSUPPORT;
}

static int set(int fd, int level, int option)
{
    int on = 1;
    return setsockopt(fd, level, option, &on, sizeof on) < 0 ? -errno : 0;
}

int arch_fd_reuse(int fd)
{
    return set(fd, SOL_SOCKET, SO_REUSEADDR);
}

int arch_fd_no_delay(int fd)
{
    return set(fd, IPPROTO_TCP, TCP_NODELAY);
}

int arch_fd_unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    return flags & O_NONBLOCK || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? 0 : -errno;
}
