/*
 * Changes of files and directories: which of them were made, written, renamed, removed.
 *
 *     int changes = strand_changes_open();
 *     int number = strand_changes_add(changes, AT_FDCWD, "/etc/app", IN_CLOSE_WRITE | IN_MOVED_TO);
 *     strand_change change;
 *     while (strand_changes_receive(changes, &change, 1) == 1)
 *         if (change.what & IN_Q_OVERFLOW) ...                   some were lost: look at everything again
 *         else ...                                               change.name in /etc/app
 *
 * The constants IN_... are those of the system: <sys/inotify.h> and inotify(7). A descriptor of changes is an ordinary
 * one: strand_close closes it and removes what was added, strand_on_ready is a case of a select, and any number of
 * strands may receive from it; each change reaches one of them, in order.
 *
 * Which callers:
 *
 *   any thread          strand_changes_open
 *   any strand          all other functions
 *   a signal handler    no function
 *
 * Suspension: functions marked STRAND_BLOCKS may suspend the caller and are cancellation points. All others never
 * suspend.
 *
 * Cost: a few system calls, unless a function says otherwise. A call that waits adds a switch to another strand and a
 * share of a call of epoll_wait(2).
 *
 * In a seeded run the files and their changes are those of the system. The run can be repeated as far as these are the
 * same.
 */
#ifndef STRAND_CHANGES_H
#define STRAND_CHANGES_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A change, or another message of the system about something that is observed. */
typedef struct strand_change {
    int number;      /* the number that strand_changes_add returned; -1: IN_Q_OVERFLOW */
    uint32_t what;   /* what has happened: one of IN_CREATE, IN_MODIFY, ..., and perhaps IN_ISDIR */
    uint32_t cookie; /* not 0: both parts of a renaming (IN_MOVED_FROM, IN_MOVED_TO) have the same number */
    char name[256];  /* the entry of an observed directory; "": what is observed itself */
} strand_change;

/** Make a descriptor of changes, which observes nothing yet. Returns the descriptor, which the caller closes
 * (strand_close), or a negated errno code: -EMFILE: the process may open no more descriptors, or the user has too many
 * of this kind (fs.inotify.max_user_instances); -ENFILE; -ENOMEM. Cost: one system call. */
STRAND_CHECKED int strand_changes_open(void);

/**
 * Observe a file, or a directory and its entries (not those of directories in it). `dir` is a descriptor of the
 * directory to which a relative path is relative, or AT_FDCWD; the first needs /proc. `what` is the set of changes to
 * report: IN_CLOSE_WRITE, IN_CREATE, IN_DELETE, IN_MOVED_TO, ...; IN_ONLYDIR, IN_DONT_FOLLOW, IN_ONESHOT and
 * IN_MASK_ADD go with it. A file that is observed already keeps its number, and `what` replaces its set.
 *
 * Returns the number of what is observed, or a negated errno code: -ENOENT, -ENOTDIR, -EACCES: those of the path;
 * -ENOSPC: the user observes too much (fs.inotify.max_user_watches); -EINVAL: `changes` is no descriptor of changes, or
 * `what` is empty; -EBADF; -ENOMEM. The path may be on a slow disk, so a thread of the run makes the call, as for
 * strand_file_stat. An interrupted call has added nothing; one that has begun is finished and returns its number. Cost:
 * a round trip to another thread of some microseconds.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_changes_add(int changes, int dir, const char *path, uint32_t what);

/** Observe something no longer. Changes that have been reported so far are still received, and IN_IGNORED is the last
 * one of that number. The system does the same by itself when the file has been removed, or its file system unmounted.
 * Returns 0, or a negated errno code: -EINVAL: nothing has that number, or `changes` is no descriptor of changes;
 * -EBADF. Cost: one system call. */
int strand_changes_remove(int changes, int number);

/**
 * Receive the next changes, up to `count` of them, into the caller's `list`. Waits until there is one. The system keeps
 * a limited number (fs.inotify.max_queued_events). Beyond that it drops changes, and says so once, by IN_Q_OVERFLOW
 * where they are missing. It joins a change with an equal one just before it.
 *
 * Returns how many changes were received, at least one (0 if `count` is 0), or a negated errno code: -EINVAL: `changes`
 * is no descriptor of changes; -EBADF: it is not open, or was closed meanwhile. An interrupted call has received
 * nothing, and no change is lost. Cost: two system calls. With a `count` below 17 a long name may need more: one for
 * each 16 bytes by which it exceeds 16 * `count` bytes.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_changes_receive(int changes, strand_change *list, size_t count);

/** Make the case that a change has been received into *change. The case's result is 0, or the error code of
 * strand_changes_receive. A case that was not chosen has received nothing. Cost: a few ns; a select receives it as
 * strand_changes_receive does. */
strand_case strand_on_change(int changes, strand_change *change);

#ifdef __cplusplus
}
#endif
#endif
