/*
 * Socket addresses and socket options.
 */
#include "arch.h"

#include <arpa/inet.h>
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

/* IPv6 and IPv4, by one socket; IPv4 only if there is no IPv6. */
static int all_addresses(int port, struct arch_address *out)
{
    const struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT, .sin6_port = htons((uint16_t)port)};
    const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    out[0] = (struct arch_address){.length = sizeof v6, .family = AF_INET6, .both = true};
    memcpy(out[0].bytes, &v6, sizeof v6);
    out[1] = (struct arch_address){.length = sizeof v4, .family = AF_INET};
    memcpy(out[1].bytes, &v4, sizeof v4);
    return 2;
}

int arch_address_tcp(const char *host, int port, bool passive, bool look_up, struct arch_address *out, int most)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    char service[16];
    int count = 0;
    if (port < 0 || port > 65535)
        return -EINVAL;
    hints.ai_flags |= (passive ? AI_PASSIVE : 0) | (look_up ? 0 : AI_NUMERICHOST);
    snprintf(service, sizeof service, "%d", port);
    if (passive && !host[0])
        return all_addresses(port, out);
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

int arch_address_of_name(const char *path, struct arch_address *out)
{
    if (*path)
        return arch_address_unix(path, out);
    *out = (struct arch_address){.length = sizeof(sa_family_t), .family = AF_UNIX};
    memcpy(out->bytes, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t));
    return 0;
}

int arch_address_unix(const char *path, struct arch_address *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path), header = offsetof(struct sockaddr_un, sun_path);
    if (!length)
        return -EINVAL;
    if (length >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, length);
    bool is_abstract = path[0] == '@';
    if (is_abstract)
        address.sun_path[0] = '\0';
    *out = (struct arch_address){.length = (uint32_t)(header + length + !is_abstract), .family = AF_UNIX};
    memcpy(out->bytes, &address, sizeof address);
    return 0;
}

int arch_address_family(const void *address)
{
    sa_family_t family;
    memcpy(&family, address, sizeof family);
    return family;
}

int arch_address_port(const void *address, uint32_t length)
{
    const struct sockaddr *any = address;
    if (length >= sizeof(struct sockaddr_in) && any->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)address)->sin_port);
    if (length >= sizeof(struct sockaddr_in6) && any->sa_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
    return -EAFNOSUPPORT;
}

/* The system reports the length of a name that did not fit. */
static uint32_t length_of(socklen_t length)
{
    return length < sizeof(struct sockaddr_storage) ? length : sizeof(struct sockaddr_storage);
}

int arch_fd_name(int fd, struct arch_name *out)
{
    socklen_t length = sizeof out->bytes;
    if (getsockname(fd, (struct sockaddr *)out->bytes, &length) < 0)
        return -errno;
    out->length = length_of(length);
    return 0;
}

int arch_fd_port(int fd)
{
    struct arch_name name;
    int error = arch_fd_name(fd, &name);
    return error ? error : arch_address_port(name.bytes, name.length);
}

static int path_text(const char *path, size_t length, char *text, size_t room)
{
    bool is_abstract = length && !path[0];
    int bytes = (int)(is_abstract ? length - 1 : strnlen(path, length));
    return snprintf(text, room, "%s%.*s", is_abstract ? "@" : "", bytes, path + is_abstract);
}

static int in_text(const struct in_addr *address, in_port_t port, char *text, size_t room)
{
    char number[INET_ADDRSTRLEN];
    return snprintf(text, room, "%s:%u", inet_ntop(AF_INET, address, number, sizeof number), ntohs(port));
}

static int in6_text(const struct sockaddr_in6 *name, char *text, size_t room)
{
    char number[INET6_ADDRSTRLEN];
    const struct in6_addr *address = &name->sin6_addr;
    struct in_addr v4;
    memcpy(&v4, &address->s6_addr[12], sizeof v4);
    if (IN6_IS_ADDR_V4MAPPED(address))
        return in_text(&v4, name->sin6_port, text, room);
    return snprintf(text, room, "[%s]:%u", inet_ntop(AF_INET6, address, number, sizeof number), ntohs(name->sin6_port));
}

int arch_address_text(const void *address, uint32_t length, char *text, size_t room)
{
    const size_t header = offsetof(struct sockaddr_un, sun_path);
    const struct sockaddr *any = address;
    const struct sockaddr_in *v4 = address;
    const struct sockaddr_un *path = address;
    switch (any->sa_family) {
    case AF_INET:
        return in_text(&v4->sin_addr, v4->sin_port, text, room);
    case AF_INET6:
        return in6_text(address, text, room);
    case AF_UNIX:
        return path_text(path->sun_path, length > header ? length - header : 0, text, room);
    default:
        return -EAFNOSUPPORT;
    }
}

bool arch_address_is_host(const void *address, const struct arch_address *host)
{
    const struct sockaddr *any = address;
    bool v4 = any->sa_family == AF_INET;
    size_t at = v4 ? offsetof(struct sockaddr_in, sin_addr) : offsetof(struct sockaddr_in6, sin6_addr);
    size_t size = v4 ? sizeof(struct in_addr) : sizeof(struct in6_addr);
    return any->sa_family == host->family &&
           memcmp((const char *)address + at, (const char *)host->bytes + at, size) == 0;
}

int arch_fd_peer(int fd, char *text, size_t room)
{
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    if (getpeername(fd, (struct sockaddr *)&name, &length) < 0)
        return -errno;
    return arch_address_text(&name, length, text, room);
}

static int set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) < 0 ? -errno : 0;
}

int arch_fd_both(int fd)
{
    return set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
}

int arch_fd_reuse(int fd)
{
    return set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
}

int arch_fd_share(int fd)
{
    return set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
}

int arch_fd_no_delay(int fd)
{
    return set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

int arch_fd_lingers(int fd)
{
    struct linger linger = {0};
    socklen_t length = sizeof linger;
    if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length) < 0)
        return -errno;
    return linger.l_onoff && linger.l_linger > 0;
}

int arch_fd_linger_not(int fd)
{
    const struct linger none = {0};
    return setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none) < 0 ? -errno : 0;
}

int arch_fd_unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    return flags & O_NONBLOCK || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? 0 : -errno;
}
