/*
 * The calls of libstrand-names, and those that c-ares makes below it.
 *
 * The system's name servers are a server of the workload here: what goes to their port goes to the workload's, and what
 * that answers seems to come from them. The C library is not asked for names of the domain "test", and nsswitch.conf is
 * what the workload says.
 */
#define _GNU_SOURCE
#include "names_server.h"

#include <ares.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* The names that the satellite calls. */
void *fault_names_malloc(size_t size);
void *fault_names_calloc(size_t count, size_t size);
char *fault_names_strdup(const char *text);
void fault_names_free(void *memory);
int fault_names_socket(int family, int type, int protocol);
int fault_names_connect(int fd, const struct sockaddr *address, socklen_t length);
ssize_t fault_names_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t fault_names_recvfrom(int fd, void *buffer, size_t size, int flags, struct sockaddr *from, socklen_t *length);
int fault_names_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out);
void fault_names_freeaddrinfo(struct addrinfo *list);
int fault_names_getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_room,
                            char *service, socklen_t service_room, int flags);
FILE *fault_names_fopen(const char *path, const char *mode);
ssize_t fault_names___getdelim(char **line, size_t *room, int end, FILE *file);

static void *noted(enum kind kind, void *memory, size_t size, const void *by)
{
    if (memory)
        fault_take(kind, (uintptr_t)memory, size, by);
    return memory;
}

void *fault_names_malloc(size_t size)
{
    return fault_refused(PART_names_malloc) ? NULL : noted(KIND_BLOCK, malloc(size), size, FAULT_CALLER);
}

void *fault_names_calloc(size_t count, size_t size)
{
    return fault_refused(PART_names_calloc) ? NULL : noted(KIND_BLOCK, calloc(count, size), count * size, FAULT_CALLER);
}

char *fault_names_strdup(const char *text)
{
    return fault_refused(PART_names_strdup) ? NULL : noted(KIND_BLOCK, strdup(text), strlen(text) + 1, FAULT_CALLER);
}

void fault_names_free(void *memory)
{
    (void)fault_refused(PART_names_free);
    if (memory)
        (void)fault_give(KIND_BLOCK, (uintptr_t)memory, 0); /* one of getdelim's is not the satellite's */
    free(memory);
}

static void *take_inside(size_t size)
{
    return fault_refused(PART_names_cares) ? NULL : noted(KIND_FOREIGN, malloc(size), size, FAULT_CALLER);
}

static void free_inside(void *memory)
{
    if (memory && !fault_give(KIND_FOREIGN, (uintptr_t)memory, 0))
        atomic_fetch_add(&fault_strange, 1);
    free(memory);
}

static void *resize_inside(void *memory, size_t size)
{
    if (fault_refused(PART_names_cares))
        return NULL;
    if (memory && !fault_give(KIND_FOREIGN, (uintptr_t)memory, 0))
        atomic_fetch_add(&fault_strange, 1);
    return noted(KIND_FOREIGN, realloc(memory, size), size, FAULT_CALLER);
}

__attribute__((constructor)) static void give_memory(void)
{
    FAULT_CHECK(ares_library_init_mem(ARES_LIB_INIT_ALL, take_inside, free_inside, resize_inside) == ARES_SUCCESS);
}

/* ---- sockets --------------------------------------------------------------------------------------------------- */

int fault_names_socket(int family, int type, int protocol)
{
    int fd = fault_refused(PART_names_socket) ? -1 : socket(family, type, protocol);
    if (fd >= 0)
        fault_take(KIND_DESCRIPTOR, (uintptr_t)fd + 1, 0, FAULT_CALLER);
    return fd;
}

/* The addresses that sockets have been connected to, by their numbers. */
enum { NUMBERS = 256 };
static struct wanted {
    struct sockaddr_storage address;
    socklen_t length;
} all_wanted[NUMBERS];

int fault_names_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    if (fault_refused(PART_names_connect))
        return -1;
    FAULT_CHECK(fd < NUMBERS);
    memcpy(&all_wanted[fd].address, address, length);
    all_wanted[fd].length = length;
    struct sockaddr_storage server;
    socklen_t server_length = names_server_address(&server, address->sa_family);
    return connect(fd, (const struct sockaddr *)&server, server_length);
}

ssize_t fault_names_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return fault_refused(PART_names_sendmsg) ? -1 : sendmsg(fd, message, flags);
}

ssize_t fault_names_recvfrom(int fd, void *buffer, size_t size, int flags, struct sockaddr *from, socklen_t *length)
{
    ssize_t got = fault_refused(PART_names_recvfrom) ? -1 : recvfrom(fd, buffer, size, flags, from, length);
    if (got >= 0 && from) {
        memcpy(from, &all_wanted[fd].address, all_wanted[fd].length);
        *length = all_wanted[fd].length;
    }
    return got;
}

/* ---- the C library's look-ups ---------------------------------------------------------------------------------- */

static bool is_of_test(const char *host)
{
    size_t size = host ? strlen(host) : 0;
    return size > 5 && strcmp(host + size - 5, ".test") == 0;
}

int fault_names_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    bool number = hints->ai_flags & AI_NUMERICHOST;
    if (fault_refused(number ? PART_names_number : PART_names_getaddrinfo)) {
        errno = EMFILE; /* of EAI_SYSTEM */
        return fault_error();
    }
    int error = !number && is_of_test(host) ? EAI_NONAME : getaddrinfo(host, service, hints, out);
    if (!error)
        fault_take(KIND_ADDRESSES, (uintptr_t)*out, 0, FAULT_CALLER);
    return error;
}

void fault_names_freeaddrinfo(struct addrinfo *list)
{
    (void)fault_refused(PART_names_freeaddrinfo);
    if (!fault_give(KIND_ADDRESSES, (uintptr_t)list, 0))
        atomic_fetch_add(&fault_strange, 1);
    freeaddrinfo(list);
}

int fault_names_getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_room,
                            char *service, socklen_t service_room, int flags)
{
    if (fault_refused(PART_names_getnameinfo)) {
        errno = EMFILE; /* of EAI_SYSTEM */
        return fault_error();
    }
    return getnameinfo(address, length, host, host_room, service, service_room, flags);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* nsswitch.conf: with a source that c-ares does not know. */
FILE *fault_names_fopen(const char *path, const char *mode)
{
    static char text[] = "passwd: files\nhosts: files dns myhostname\n";
    FAULT_CHECK(strcmp(path, "/etc/nsswitch.conf") == 0);
    return fault_refused(PART_names_fopen) ? NULL : fmemopen(text, sizeof text - 1, mode);
}

ssize_t fault_names___getdelim(char **line, size_t *room, int end, FILE *file)
{
    return fault_refused(PART_names_getdelim) ? -1 : getdelim(line, room, end, file);
}

/* The program's function counts for c-ares, too, which is a shared library. */
FILE *fopen(const char *restrict path, const char *restrict mode)
{
    static FILE *(*real)(const char *, const char *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    bool of_names = strcmp(path, "/etc/resolv.conf") == 0 || strcmp(path, "/etc/hosts") == 0 ||
                    strcmp(path, "/etc/host.conf") == 0 || strcmp(path, "/etc/nsswitch.conf") == 0 ||
                    strcmp(path, "/etc/svc.conf") == 0;
    return of_names && fault_refused(PART_names_file) ? NULL : real(path, mode);
}
