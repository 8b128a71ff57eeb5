/*
 * What a service manager passes and asks for, and sockets that share a port.
 */
#include "../../include/strand/socket.h"

#include "descriptor.h"
#include "socket.h"

#include "../sched/thread.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sockets that share a port ----------------------------------------------------------------------------- */

static int make_one(struct thread *thread, const strand_address *address, enum strand_sharing type, bool both)
{
    int family = arch_address_family(address->name);
    int fd = type == STRAND_SHARE_UDP ? fd_socket_of_datagrams(thread, family) : fd_socket(thread, family);
    if (fd < 0)
        return fd;
    descriptor_made(fd);
    int error = both ? fd_adjust(thread, fd, arch_fd_both) : 0;
    if (!error && type != STRAND_SHARE_UDP)
        error = fd_adjust(thread, fd, arch_fd_reuse);
    if (!error)
        error = fd_share(thread, fd);
    if (!error)
        error = fd_bind(thread, fd, address->name, address->length);
    if (!error && type != STRAND_SHARE_UDP)
        error = fd_listen(thread, fd, BACKLOG);
    if (error)
        fd_close(thread, fd);
    return error ? error : fd;
}

static int make_sharing(struct thread *thread, const strand_address *address, enum strand_sharing type)
{
    strand_address four;
    bool both = socket_is_for_all(address, &four);
    int fd = make_one(thread, address, type, both);
    return fd == -EAFNOSUPPORT && both ? make_one(thread, &four, type, false) : fd;
}

int strand_share_port(const strand_address *address, enum strand_sharing type, int *fds, int count)
{
    must_be_there(address, "address", "strand_share_port");
    must_be_there(fds, "list for the descriptors", "strand_share_port");
    if (type != STRAND_SHARE_TCP && type != STRAND_SHARE_UDP)
        MISUSE("strand_share_port", "", "%d is neither STRAND_SHARE_TCP nor STRAND_SHARE_UDP", (int)type);
    struct thread *thread = thread_self();
    strand_address at = *address;
    int made = 0, error = count < 1 || !at.length ? -EINVAL : 0;
    while (!error && made < count) {
        int fd = make_sharing(thread, &at, type);
        if (fd < 0)
            error = fd;
        else
            fds[made++] = fd;
        if (!error && made == 1) /* port 0 is the same one for all */
            error = strand_local_address(fd, &at);
    }
    while (error && made)
        fd_close(thread, fds[--made]);
    return error;
}

/* ---- inherited descriptors ----------------------------------------------------------------------------------- */

enum { FIRST = 3 };

/* The number in a variable. Returns -ENOENT if there is none, or -EINVAL. */
static long number_in(const char *variable)
{
    const char *text = arch_env(variable);
    char *end;
    if (!text || !*text)
        return -ENOENT;
    long number = strtol(text, &end, 10);
    return *end || number < 0 || number > INT32_MAX - FIRST ? -EINVAL : number;
}

/* Copy the next name, up to a colon. Returns what follows it. */
static const char *take_name(const char *names, char *out, size_t room)
{
    size_t length = strcspn(names, ":");
    snprintf(out, room, "%.*s", (int)(length < room ? length : room), names);
    return names + length + (names[length] == ':');
}

int strand_inherit(strand_inherited *list, size_t most)
{
    if (most)
        must_be_there(list, "list for the descriptors", "strand_inherit");
    long owner = number_in("LISTEN_PID"), count = number_in("LISTEN_FDS");
    if (owner == -ENOENT || count == -ENOENT || (owner >= 0 && owner != arch_process_number()))
        return 0;
    if (owner < 0 || count < 0)
        return -EINVAL;
    const char *names = arch_env("LISTEN_FDNAMES");
    for (long i = 0; i < count; i++) {
        int fd = FIRST + (int)i, error = arch_fd_close_on_exec(fd);
        if (error)
            return error;
        if ((size_t)i >= most)
            continue;
        list[i] = (strand_inherited){.fd = fd, .name = "unknown"};
        if (names && *names)
            names = take_name(names, list[i].name, sizeof list[i].name);
    }
    return (int)count;
}

/* ---- reports ----------------------------------------------------------------------------------------------- */

static void close_socket(const int *fd)
{
    strand_close(*fd);
}

int strand_notify(const char *state)
{
    strand_address manager;
    struct thread *thread = must_be_strand("strand_notify");
    must_be_there(state, "state", "strand_notify");
    may_block(thread, current_of(thread), "strand_notify");
    const char *path = arch_env("NOTIFY_SOCKET");
    if (!path || !*path)
        return yield_with_result(0);
    if (*path != '/' && *path != '@')
        return yield_with_result(-EAFNOSUPPORT);
    int error = strand_address_unix(&manager, path);
    int made = error ? error : fd_socket_of_datagrams(thread, arch_address_family(manager.name));
    if (made < 0)
        return yield_with_result(made);
    descriptor_made(made);
    const int fd __attribute__((cleanup(close_socket))) = made;
    int64_t put = strand_send_to(fd, state, strlen(state), &manager);
    return put < 0 ? (int)put : 1;
}
