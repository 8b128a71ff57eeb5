/*
 * Changes of files and directories: inotify.
 */
#include "arch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/uio.h>

_Static_assert(sizeof(((struct arch_change *)0)->name) == NAME_MAX + 1, "a name fits");

/* The system pads the name of an event to a multiple of the size of one without. */
enum { LEAST = sizeof(struct inotify_event), LONGEST = LEAST + NAME_MAX + 1, ROOM = 64 * LEAST };

int arch_changes_open(void)
{
    return arch_fd_own(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

/* The call that adds has no argument for a directory. */
int arch_changes_add(int fd, int dir, const char *path, uint32_t what)
{
    char from_dir[PATH_MAX];
    if (dir != AT_FDCWD && *path && *path != '/') {
        int length = snprintf(from_dir, sizeof from_dir, "/proc/self/fd/%d/%s", dir, path);
        if (length >= (int)sizeof from_dir)
            return -ENAMETOOLONG;
        path = from_dir;
    }
    int number = inotify_add_watch(fd, path, what);
    return number < 0 ? -errno : number;
}

int arch_changes_remove(int fd, int number)
{
    return inotify_rm_watch(fd, number) < 0 ? -errno : 0;
}

/* The system looks at the kind of the descriptor before it looks for the path, which is none. */
static bool is_another_kind(int fd)
{
    return inotify_add_watch(fd, "", IN_ACCESS) < 0 && errno == EINVAL;
}

static int take_apart(const char *buffer, size_t size, struct arch_change *list, int most)
{
    int count = 0;
    for (size_t at = 0; at < size && count < most; count++) {
        struct inotify_event event;
        memcpy(&event, buffer + at, sizeof event);
        list[count] = (struct arch_change){.number = event.wd, .what = event.mask, .cookie = event.cookie};
        snprintf(list[count].name, sizeof list[count].name, "%.*s", (int)event.len, buffer + at + sizeof event);
        at += sizeof event + event.len;
    }
    return count;
}

/* The system returns whole events, as many as the room holds, and keeps the others. So a room for `most` of the
 * shortest ones holds no more than `most`. If the first event does not fit, the smallest room that holds it holds no
 * other: unless somebody else reads meanwhile, another process perhaps, which then loses events. */
int arch_changes_read(int fd, struct arch_change *list, int most)
{
    char buffer[ROOM];
    if (is_another_kind(fd))
        return -EINVAL;
    struct iovec room = {buffer, most < ROOM / LEAST ? (size_t)most * LEAST : ROOM};
    ssize_t got;
    while ((got = readv(fd, &room, 1)) < 0 && (errno == EINTR || (errno == EINVAL && room.iov_len < LONGEST)))
        room.iov_len += errno == EINVAL ? LEAST : 0;
    return got < 0 ? -errno : take_apart(buffer, (size_t)got, list, most);
}
