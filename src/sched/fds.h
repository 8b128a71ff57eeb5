/*
 * Calls on descriptors, through the platform interface. A seeded run plays the descriptors that it has made (struct
 * platform_fds); all others are the system's. Each function does what that of arch with its name does. thread: NULL on
 * a plain thread, which may be a played one.
 */
#ifndef SCHED_FDS_H
#define SCHED_FDS_H

#include "platform_type.h"
#include "subprocess.h"
#include "thread_type.h"

#include <errno.h>

/* Played descriptors. Their numbers are the system's, but nothing is behind them. Each function does what that of arch
 * with its name does (arch_fd_..., arch_poller_add and remove). */
struct platform_fds {
    bool (*has)(struct subprocess *sub, int fd);
    int (*socket)(struct subprocess *sub, int family);
    int (*socket_of_datagrams)(struct subprocess *sub, int family);
    int (*pipe)(struct subprocess *sub, int fds[2]);
    int (*date)(struct subprocess *sub, int64_t date_ns);
    int64_t (*date_now)(struct subprocess *sub); /* arch_date_ns */
    int (*bind)(struct subprocess *sub, int fd, const void *address, uint32_t length);
    int (*listen)(struct subprocess *sub, int fd);
    int (*connect)(struct subprocess *sub, int fd, const void *address, uint32_t length);
    int (*accept)(struct subprocess *sub, int fd);
    int (*error)(struct subprocess *sub, int fd);
    int (*port)(struct subprocess *sub, int fd);
    int (*peer)(struct subprocess *sub, int fd, char *text, size_t room);
    int (*name)(struct subprocess *sub, int fd, struct arch_name *out);
    int (*peer_name)(struct subprocess *sub, int fd, struct arch_name *out);
    int (*ready)(struct subprocess *sub, int fd);
    int64_t (*read)(struct subprocess *sub, int fd, void *buffer, size_t size);
    int64_t (*write)(struct subprocess *sub, int fd, const void *bytes, size_t size);
    int64_t (*readv)(struct subprocess *sub, int fd, const struct iovec *parts, int count);
    int64_t (*writev)(struct subprocess *sub, int fd, const struct iovec *parts, int count);
    int64_t (*receive)(struct subprocess *sub, int fd, void *buffer, size_t size, struct arch_name *name);
    int64_t (*send)(struct subprocess *sub, int fd, const void *bytes, size_t size, const struct arch_name *name);
    int (*share)(struct subprocess *sub, int fd);
    int (*shutdown)(struct subprocess *sub, int fd, int how);
    int (*close)(struct subprocess *sub, int fd);
    int (*blank)(struct subprocess *sub, int fd);
    int (*watch)(struct subprocess *sub, int fd, uint64_t data);
    int (*unwatch)(struct subprocess *sub, int fd);
};

/* Returns the run of the calling thread; NULL: the thread is not played. */
static inline struct subprocess *fds_run(const struct thread *thread)
{
    if (LIKELY(thread != NULL))
        return LIKELY(!thread->platform) ? NULL : thread->sub;
    struct arch_player *player = arch_player();
    return UNLIKELY(player != NULL) ? player->run : NULL;
}

/* Returns the functions that play new descriptors of a run; NULL: no descriptor is played. */
static inline const struct platform_fds *fds_played(const struct subprocess *run)
{
    return UNLIKELY(run != NULL) ? run->platform->fds : NULL;
}

/* Returns the functions that play this descriptor; NULL: it is the system's. */
static inline const struct platform_fds *fds_of(struct subprocess *run, int fd)
{
    const struct platform_fds *fds = fds_played(run);
    return UNLIKELY(fds != NULL) && fds->has(run, fd) ? fds : NULL;
}

static inline int fd_type(struct thread *thread, int fd, int *own, struct arch_fd_object *object)
{
    *own = -1;
    return fds_of(fds_run(thread), fd) ? ARCH_FD_PLAYED : arch_fd_type(fd, own, object);
}

static inline int fd_ready(struct thread *thread, int fd)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->ready(run, fd) : arch_fd_ready(fd);
}

static inline int64_t fd_read(struct thread *thread, int fd, enum arch_fd_type type, void *buffer, size_t size)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->read(run, fd, buffer, size) : arch_fd_read(fd, type, buffer, size);
}

static inline int64_t fd_write(struct thread *thread, int fd, enum arch_fd_type type, const void *bytes, size_t size)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->write(run, fd, bytes, size) : arch_fd_write(fd, type, bytes, size);
}

static inline int64_t fd_readv(struct thread *thread, int fd, enum arch_fd_type type, const struct iovec *parts,
                               int count)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->readv(run, fd, parts, count) : arch_fd_readv(fd, type, parts, count);
}

static inline int64_t fd_writev(struct thread *thread, int fd, enum arch_fd_type type, const struct iovec *parts,
                                int count)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->writev(run, fd, parts, count) : arch_fd_writev(fd, type, parts, count);
}

static inline int64_t fd_receive(struct thread *thread, int fd, void *buffer, size_t size, struct arch_name *name)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->receive(run, fd, buffer, size, name) : arch_fd_receive(fd, buffer, size, name);
}

static inline int64_t fd_send(struct thread *thread, int fd, const void *bytes, size_t size,
                              const struct arch_name *name)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->send(run, fd, bytes, size, name) : arch_fd_send(fd, bytes, size, name);
}

/* Played datagrams are received, and sent, one by one. */
static inline int fd_receive_many(struct thread *thread, int fd, struct arch_datagram *list, int count)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    if (LIKELY(!fds))
        return arch_fd_receive_many(fd, list, count);
    for (int i = 0; i < count; i++) {
        int64_t got = fds->receive(run, fd, list[i].bytes, list[i].size, list[i].name);
        if (got < 0)
            return i ? i : (int)got;
        list[i].got = (size_t)got;
    }
    return count;
}

static inline int fd_send_many(struct thread *thread, int fd, const struct arch_datagram *list, int count)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    if (LIKELY(!fds))
        return arch_fd_send_many(fd, list, count);
    for (int i = 0; i < count; i++) {
        const struct arch_name *name = list[i].name && list[i].name->length ? list[i].name : NULL;
        int64_t put = fds->send(run, fd, list[i].bytes, list[i].size, name);
        if (put < 0)
            return i ? i : (int)put;
    }
    return count;
}

/* Played sockets pass nothing but bytes. */
static inline int64_t fd_receive_passed(struct thread *thread, int fd, void *buffer, size_t size,
                                        struct arch_passed *passed)
{
    return UNLIKELY(fds_of(fds_run(thread), fd) != NULL) ? -EOPNOTSUPP
                                                         : arch_fd_receive_passed(fd, buffer, size, passed);
}

static inline int64_t fd_send_passed(struct thread *thread, int fd, const void *bytes, size_t size,
                                     const struct arch_passed *passed)
{
    return UNLIKELY(fds_of(fds_run(thread), fd) != NULL) ? -EOPNOTSUPP : arch_fd_send_passed(fd, bytes, size, passed);
}

static inline int fd_share(struct thread *thread, int fd)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->share(run, fd) : arch_fd_share(fd);
}

static inline int fd_close(struct thread *thread, int fd)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->close(run, fd) : arch_fd_close(fd);
}

static inline int fd_blank(struct thread *thread, int fd)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->blank(run, fd) : arch_fd_blank(fd);
}

static inline int fd_shutdown(struct thread *thread, int fd, int how)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->shutdown(run, fd, how) : arch_fd_shutdown(fd, how);
}

static inline int fd_pipe(struct thread *thread, int ends[2])
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_played(run);
    return UNLIKELY(fds != NULL) ? fds->pipe(run, ends) : arch_fd_pipe(ends);
}

static inline int fd_socket(struct thread *thread, int family)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_played(run);
    return UNLIKELY(fds != NULL) ? fds->socket(run, family) : arch_fd_socket(family);
}

static inline int fd_date(struct thread *thread, int64_t date_ns)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_played(run);
    return UNLIKELY(fds != NULL) ? fds->date(run, date_ns) : arch_fd_date(date_ns);
}

/* The date. A run whose descriptors are the system's has the system's dates, too. */
static inline int64_t fd_date_now(const struct thread *thread)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_played(run);
    return UNLIKELY(fds != NULL) ? fds->date_now(run) : arch_date_ns();
}

static inline int fd_socket_of_datagrams(struct thread *thread, int family)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_played(run);
    return UNLIKELY(fds != NULL) ? fds->socket_of_datagrams(run, family) : arch_fd_socket_of_datagrams(family);
}

static inline int fd_bind(struct thread *thread, int fd, const void *address, uint32_t length)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->bind(run, fd, address, length) : arch_fd_bind(fd, address, length);
}

static inline int fd_listen(struct thread *thread, int fd, int backlog)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->listen(run, fd) : arch_fd_listen(fd, backlog);
}

static inline int fd_connect(struct thread *thread, int fd, const void *address, uint32_t length)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->connect(run, fd, address, length) : arch_fd_connect(fd, address, length);
}

/* name: NULL, or gets the address of the peer. */
static inline int fd_accept(struct thread *thread, int fd, struct arch_name *name)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    if (LIKELY(!fds)) {
        if (LIKELY(!name))
            return arch_fd_accept(fd, NULL, NULL);
        name->length = sizeof name->bytes;
        return arch_fd_accept(fd, name->bytes, &name->length);
    }
    int got = fds->accept(run, fd);
    if (got >= 0 && name)
        (void)fds->peer_name(run, got, name);
    return got;
}

static inline int fd_error(struct thread *thread, int fd)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->error(run, fd) : arch_fd_error(fd);
}

static inline int fd_port(struct thread *thread, int fd)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->port(run, fd) : arch_fd_port(fd);
}

static inline int fd_peer(struct thread *thread, int fd, char *text, size_t room)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->peer(run, fd, text, room) : arch_fd_peer(fd, text, room);
}

static inline int fd_name(struct thread *thread, int fd, struct arch_name *out)
{
    struct subprocess *run = fds_run(thread);
    const struct platform_fds *fds = fds_of(run, fd);
    return UNLIKELY(fds != NULL) ? fds->name(run, fd, out) : arch_fd_name(fd, out);
}

/* Sets an option of a socket. Played sockets ignore it. */
static inline int fd_adjust(struct thread *thread, int fd, int (*set)(int fd))
{
    return UNLIKELY(fds_of(fds_run(thread), fd) != NULL) ? 0 : set(fd);
}

#endif
