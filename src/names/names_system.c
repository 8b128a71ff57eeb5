/*
 * All that this library asks the system for: sockets for c-ares, addresses in words, and the C library's look-ups,
 * which block their thread and are made on threads of a crew.
 *
 * errno is read only here, in functions that suspend nowhere, and that are never part of one that does: c-ares calls
 * them by pointers, in a section that may not suspend; or a crew's thread calls them; or they are not inlined. So no
 * compiler keeps the address of errno from before a suspension.
 */
#include "names.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { ANSWER_CODE = 3 }; /* the byte of an answer with its code, in the lowest 4 bits */

/* ---- sockets of c-ares ---------------------------------------------------------------------------------------- */

static ares_socket_t make_socket(int family, int type, int protocol, void *arg)
{
    struct names_channel *channel = arg;
    channel->asked = true;
    int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (fd >= 0)
        channel->refused = 0;
    else if (errno != EAFNOSUPPORT) /* a machine without IPv6 has no such sockets, and needs none */
        channel->refused = errno;
    return fd;
}

/* Other numbers of the run are given back by strand_close, too. */
static int close_socket(ares_socket_t fd, void *arg)
{
    (void)arg;
    return strand_close(fd) < 0 ? -1 : 0;
}

static int connect_socket(ares_socket_t fd, const struct sockaddr *address, ares_socklen_t length, void *arg)
{
    (void)arg;
    return connect(fd, address, length);
}

static ares_ssize_t receive(ares_socket_t fd, void *buffer, size_t size, int flags, struct sockaddr *from,
                            ares_socklen_t *length, void *arg)
{
    struct names_channel *channel = arg;
    ares_ssize_t got = recvfrom(fd, buffer, size, flags, from, length);
    if (from && got > ANSWER_CODE) { /* a datagram: c-ares asks others if a server fails, and does not say why it did */
        channel->answer = ((const unsigned char *)buffer)[ANSWER_CODE] & 15;
        channel->answered = true;
    }
    return got;
}

static ares_ssize_t transmit(ares_socket_t fd, const struct iovec *parts, int count, void *arg)
{
    (void)arg;
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count};
    ares_ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == ECONNREFUSED) /* that of the datagram before: it must not hide the loss of this one */
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    return sent;
}

const struct ares_socket_functions names_sockets = {.asocket = make_socket,
                                                    .aclose = close_socket,
                                                    .aconnect = connect_socket,
                                                    .arecvfrom = receive,
                                                    .asendv = transmit};

/* ---- addresses in words ---------------------------------------------------------------------------------------- */

/* error: of getaddrinfo or getnameinfo for a number; code: errno after it. Returns 0 if it says that there is none. */
static int refusal(int error, int code)
{
    switch (error) {
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SYSTEM:
        return code > 0 ? -code : -EIO;
    default:
        return 0;
    }
}

__attribute__((noinline)) int names_list_add(strand_names_list *list, const struct sockaddr *address, int ttl_s)
{
    strand_names_address *out = (strand_names_address *)(list + 1) + list->count;
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
        return 0;
    out->family = address->sa_family == AF_INET ? 4 : 6;
    out->ttl_s = ttl_s;
    out->length = address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    memcpy(out->socket_address, address, out->length);
    uint16_t port = htons((uint16_t)list->port);
    size_t at = out->family == 4 ? offsetof(struct sockaddr_in, sin_port) : offsetof(struct sockaddr_in6, sin6_port);
    memcpy((char *)out->socket_address + at, &port, sizeof port);
    int error = getnameinfo(address, out->length, out->number, sizeof out->number, NULL, 0, NI_NUMERICHOST);
    if (error)
        return refusal(error, errno);
    list->count++;
    return 1;
}

__attribute__((noinline)) int names_list_add_number(strand_names_list *list, const char *number, int family)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found;
    int error = getaddrinfo(number, NULL, &hints, &found);
    if (error)
        return refusal(error, errno);
    bool fits = !family || found->ai_family == (family == 4 ? AF_INET : AF_INET6);
    int added = fits ? names_list_add(list, found->ai_addr, 0) : 0;
    freeaddrinfo(found);
    return added;
}

/* ---- failures of the C library ----------------------------------------------------------------------------------- */

/* error: of getaddrinfo or getnameinfo; code: errno after it. */
static int fail_by_system(const struct names_config *config, int error, int code, const char *name)
{
    switch (error) {
    case EAI_AGAIN:
        return names_fail(config, -EHOSTUNREACH, "%s: there is no answer at present", name);
    case EAI_FAIL: /* the name servers refuse, or do not know this kind of question */
        return names_fail(config, -EHOSTUNREACH, "%s: the name servers report a failure", name);
    case EAI_MEMORY:
        return names_fail(config, -ENOMEM, "%s: there is no memory", name);
    case EAI_SYSTEM:
        return names_fail(config, code > 0 ? -code : -EIO, "%s: %s", name, names_words(code > 0 ? code : EIO));
    default:
        return names_fail(config, -ENOENT, "%s: %s", name, gai_strerror(error));
    }
}

/* ---- addresses of a name ---------------------------------------------------------------------------------------- */

/* A call on another thread; it is on the heap, because the caller may live on a shared stack. */
struct asked {
    char host[MAX_NAME + 1], service[MAX_SERVICE + 1];
    struct addrinfo hints;
    int error, code; /* of getaddrinfo; errno */
};

static void *ask(void *arg)
{
    struct asked *asked = arg;
    struct addrinfo *found = NULL;
    asked->error = getaddrinfo(asked->host[0] ? asked->host : NULL, asked->service[0] ? asked->service : NULL,
                               &asked->hints, &found);
    asked->code = errno;
    return asked->error ? NULL : found;
}

static void drop(void *found)
{
    if (found)
        freeaddrinfo(found);
}

static void release(struct asked **asked)
{
    free(*asked);
}

static int family_of(int family)
{
    return family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC;
}

static int ask_system(const struct names_config *config, const char *host, const char *service, int family,
                      struct addrinfo **out)
{
    __attribute__((cleanup(release))) struct asked *asked = calloc(1, sizeof *asked);
    if (!asked)
        return names_fail(config, -ENOMEM, "there is no memory");
    if (host)
        snprintf(asked->host, sizeof asked->host, "%s", host);
    if (service)
        snprintf(asked->service, sizeof asked->service, "%s", service);
    asked->hints = (struct addrinfo){.ai_family = family_of(family), .ai_socktype = SOCK_STREAM};
    asked->hints.ai_flags = host ? AI_CANONNAME : 0;
    *out = strand_offload_with(STRAND_OFFLOAD_ATTR(.crew = config->attr.crew, .answer = asked, .drop = drop), ask,
                               asked, sizeof *asked);
    return *out ? 0 : fail_by_system(config, asked->error, asked->code, host ? host : service);
}

/* Returns NULL without memory. */
static strand_names_list *copy_all(const struct addrinfo *found, const char *host, int port)
{
    size_t count = 0;
    for (const struct addrinfo *at = found; at; at = at->ai_next)
        count++;
    strand_names_list *list = names_list_make(count, found->ai_canonname ? found->ai_canonname : host, port);
    for (const struct addrinfo *at = found; list && at; at = at->ai_next)
        if (names_list_add(list, at->ai_addr, 0) < 0) {
            free(list);
            return NULL;
        }
    return list;
}

int names_system_find(const struct names_config *config, const char *host, int port, int family,
                      strand_names_list **out)
{
    struct addrinfo *found;
    int error = ask_system(config, host, NULL, family, &found);
    if (error)
        return error;
    *out = copy_all(found, host, port);
    freeaddrinfo(found);
    return *out ? 0 : names_fail(config, -ENOMEM, "there is no memory");
}

int names_system_port(const struct names_config *config, const char *service)
{
    struct addrinfo *found;
    int error = ask_system(config, NULL, service, 4, &found);
    if (error)
        return error == -ENOENT ? names_fail(config, -EINVAL, "there is no service %s", service) : error;
    struct sockaddr_in address;
    memcpy(&address, found->ai_addr, sizeof address);
    freeaddrinfo(found);
    return ntohs(address.sin_port);
}

bool names_system_has_aliases(void)
{
    return getenv("HOSTALIASES") != NULL;
}

/* ---- nsswitch.conf ----------------------------------------------------------------------------------------------- */

#define BLANKS " \t\r\n"

static bool is_known(const char *source, size_t length)
{
    return (length == 5 && memcmp(source, "files", 5) == 0) || (length == 3 && memcmp(source, "dns", 3) == 0);
}

/* Whether a line "hosts: SOURCE [ACTIONS] SOURCE ... # COMMENT" lists another source than "files" and "dns". */
static bool lists_further(char *line)
{
    line[strcspn(line, "#")] = 0;
    const char *at = line + strspn(line, BLANKS);
    if (strncmp(at, "hosts", 5) != 0)
        return false;
    at += 5;
    at += strspn(at, BLANKS);
    if (*at++ != ':')
        return false;
    for (;;) {
        at += strspn(at, BLANKS);
        size_t length = *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, BLANKS "[");
        if (!length || length > strlen(at))
            return false;
        if (*at != '[' && !is_known(at, length))
            return true;
        at += length;
    }
}

/* Never inline: the caller suspends, and errno would be that of the thread before. */
__attribute__((noinline)) int names_system_has_further(void)
{
    char *line = NULL;
    size_t room = 0;
    int result = 0;
    FILE *file = fopen("/etc/nsswitch.conf", "re");
    if (!file)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP ? 0 : -errno;
    while (!result && getline(&line, &room, file) >= 0)
        result = lists_further(line);
    if (!result && !feof(file))
        result = errno > 0 ? -errno : -EIO;
    free(line);
    fclose(file);
    return result;
}

/* ---- the name of an address -------------------------------------------------------------------------------------- */

/* A call on another thread. */
struct named {
    strand_names_address address;
    char name[NI_MAXHOST];
    int error, code; /* of getnameinfo; errno */
};

static void *ask_name(void *arg)
{
    struct named *named = arg;
    named->error = getnameinfo((const struct sockaddr *)named->address.socket_address, named->address.length,
                               named->name, sizeof named->name, NULL, 0, NI_NAMEREQD);
    named->code = errno;
    return NULL;
}

static void release_named(struct named **named)
{
    free(*named);
}

int names_system_reverse(const struct names_config *config, const strand_names_address *address, char **name)
{
    __attribute__((cleanup(release_named))) struct named *named = calloc(1, sizeof *named);
    if (!named)
        return names_fail(config, -ENOMEM, "there is no memory");
    named->address = *address;
    strand_offload_with(STRAND_OFFLOAD_ATTR(.crew = config->attr.crew, .answer = named), ask_name, named,
                        sizeof *named);
    if (named->error)
        return fail_by_system(config, named->error, named->code, address->number);
    *name = strdup(named->name);
    return *name ? 0 : names_fail(config, -ENOMEM, "there is no memory");
}
