/*
 * Files and directories.
 *
 *     int fd = strand_file_open(AT_FDCWD, "data.bin", O_RDWR | O_CREAT, 0644);
 *     if (fd < 0) ...                                             a negated errno code
 *     int64_t got = strand_file_read(fd, buffer, sizeof buffer, 4096);
 *     if (strand_file_write(fd, "done", 4, 0) != 4) ...
 *     strand_close(fd);
 *
 * A call on a file may wait for a disk or for a server. The calls here suspend the strand meanwhile, and not its
 * thread. A read of bytes that the system has in memory is made at once by the calling thread. All else is made
 * elsewhere:
 *
 *  - by the kernel, through a ring of io_uring that each pool has: reads and writes at an offset, syncs and
 *    allocations, if the kernel is Linux 5.6 or newer and permits io_uring to the process. It makes some of them on
 *    threads of its own, at most four for each processor and thread of the pool at a time,
 *  - otherwise by a thread of a crew of the run (strand_offload); no call waits behind one of strand_offload. If the
 *    system refuses a thread, the calling thread makes the call and blocks. At most 64 threads make calls: while so
 *    many wait for a server that does not answer, further calls by threads wait too.
 *
 * The results are the same. strand_options.files and STRAND_FILES in the environment choose (strand/pool.h).
 *
 * The flags and constants are those of the system: <fcntl.h>, <sys/stat.h>, <dirent.h>. `dir` is a descriptor of the
 * directory to which a relative path is relative, or AT_FDCWD: the working directory. It must be opened for reading,
 * and it must be open even if the path is absolute. A descriptor that was opened with O_PATH serves by its path:
 * "/proc/self/fd/7". Results are sizes, descriptors, or negated errno codes: those of the system call, and:
 *
 *  - -ESPIPE: the descriptor is a socket, a pipe, a terminal or another character device, for which strand_read and
 *    strand_write are made,
 *  - -EBADF: the descriptor is not open, was closed meanwhile, or was opened with O_PATH,
 *  - -ENOMEM: there is no memory.
 *
 * Interruption: a call that an interrupted strand has not begun has no effect. A call that changes a file, a directory
 * or the position of a descriptor is finished once it has begun, and returns its result; the next call is interrupted
 * then. So such a call has happened or was interrupted, never both; only strand_file_remove_tree ends in the middle,
 * between two names. A read at an offset, a load, a stat, a look-up of a link's target or of a file's path, and an open
 * that neither makes nor empties a file are left to their threads or to the kernel, which cancels them if it can, and
 * the strand goes on at once. (An open that was left may still wake the other side of a FIFO, or start a device.)
 * Buffers of the caller are never touched after a call has returned or thrown. The end of the pool waits for the calls
 * that were left.
 *
 * Which callers:
 *
 *   any strand                       all functions
 *   a plain thread, a signal handler no function
 *
 * Suspension: all functions may suspend the caller and are cancellation points.
 *
 * Cost: a share of a system call, or a round trip to another thread of some microseconds, unless a function says
 * otherwise. That system call begins all calls that the strands of a thread have made since the last one.
 *
 * In a seeded run the files are those of the system. The run can be repeated as far as the files are the same. The seed
 * also decides the names that the calls make, as long as these are free.
 */
#ifndef STRAND_FILE_H
#define STRAND_FILE_H

#include "../strand.h"

#include <sys/stat.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- opening ------------------------------------------------------------------------------------------------ */

/** A flag of strand_file_open: open nothing that is not beneath `dir`. */
enum { STRAND_FILE_BENEATH = 1 << 30 };
/**
 * Open a file, as openat(2) does. `flags` are O_RDONLY, O_CREAT, ...; `mode` are the permissions of a file that the
 * call makes, less those of the umask. With O_TMPFILE, `path` is a directory, and the new file has no name there. The
 * descriptor is closed on exec, is not one of the first three, and does not block: opening a FIFO does not wait for the
 * other side (-ENXIO: nobody reads it), and a terminal does not become the controlling one.
 *
 * With STRAND_FILE_BENEATH the path may come from someone who is not trusted: no absolute path, "..", or link leads out
 * of `dir`, also while others change the tree (-EXDEV), and no link of /proc to an open file is followed (-ELOOP). The
 * system sees to that (openat2(2)); before Linux 5.6, and in a sandbox that does not know the call, this flag returns
 * -ENOSYS. -EAGAIN: directories of the system were renamed time and again while the call followed a "..", or another
 * process has a lease of the file (fcntl(2)); call it again. If the system has the names of the path in memory, the
 * calling thread opens the file at once, unless the call makes or empties one.
 *
 * Returns a descriptor, which the caller closes (strand_close), or a negated errno code. An interrupted call leaves no
 * descriptor behind.
 */
STRAND_BLOCKS int strand_file_open(int dir, const char *path, int flags, unsigned mode);

/* ---- reading and writing -------------------------------------------------------------------------------------- */

/**
 * Read `size` bytes at `offset` of a file into `buffer`; offset -1: at the position of the descriptor, which moves.
 * Returns the number of bytes; fewer than `size` mean the end of the file or an error; the next call says which.
 * Returns 0 at the end, or a negated errno code. An interruption may come between two parts of 1 MiB; the exception
 * then tells how many bytes the buffer has (strand_exception_progress).
 *
 * Cost: one system call, without another thread, if the system has the bytes in memory, and another one if the
 * library did not open the descriptor. Otherwise a wait and a copy for each MiB.
 */
STRAND_BLOCKS int64_t strand_file_read(int fd, void *buffer, size_t size, int64_t offset);
/** Write the `size` bytes at `bytes` to a file at `offset`; -1: at the position of the descriptor, or at the end if the
 * file was opened with O_APPEND. With O_APPEND an offset is ignored, too. `bytes` belongs to the caller, and must stay
 * unchanged until the call returns; for a file with O_DIRECT it has to be aligned, as its size and the offset. Returns
 * `size`; less after an error, which the next call says; or a negated errno code. An interruption may come between
 * two parts of 16 MiB (1 MiB if the bytes lie on a shared stack); the exception then tells how many bytes were written
 * (strand_exception_progress). */
STRAND_BLOCKS int64_t strand_file_write(int fd, const void *bytes, size_t size, int64_t offset);
/** Read into several buffers, one after the other, as strand_file_read does into one. `count` is their number, at most
 * 1024 (-EINVAL). */
STRAND_BLOCKS int64_t strand_file_readv(int fd, const struct iovec *buffers, int count, int64_t offset);
/** Write the bytes of several buffers, one after the other, as strand_file_write does those of one. `count` is their
 * number, at most 1024 (-EINVAL). */
STRAND_BLOCKS int64_t strand_file_writev(int fd, const struct iovec *buffers, int count, int64_t offset);

/**
 * Copy up to `size` bytes from one file to another, without moving them through the program if the file systems can
 * share or copy them (copy_file_range(2)). *from_offset and *to_offset are where to read and to write, and move by the
 * number of bytes; NULL: the position of the descriptor, which moves. A file that was opened with O_APPEND gets the
 * bytes at its end. Ranges of the same file must not overlap (-EINVAL). An interruption may come between two parts of
 * 16 MiB; *from_offset and *to_offset, and strand_exception_progress, then tell how far it came. Returns the number of
 * bytes; fewer than `size` mean the end of `from` or an error; the next call says which. Returns 0 at the end, or a
 * negated errno code.
 */
STRAND_BLOCKS int64_t strand_file_copy(int from, int64_t *from_offset, int to, int64_t *to_offset, uint64_t size);

/**
 * Send up to `size` bytes at `offset` of a file to a descriptor, without moving them through the program if the system
 * can do that (sendfile(2)): to a socket or a pipe that does not block, as those of the library. To a descriptor that
 * blocks, to a terminal or a device, and in a seeded run, the call reads and writes. To another file it copies, at the
 * position of that file's descriptor (strand_file_copy). It waits for room as strand_write does, and for the disk as
 * strand_file_read. It never raises SIGPIPE.
 *
 * Several strands must not write to one stream at a time; a file that changes while it is sent may arrive as a mixture,
 * even of changes after the call: a socket refers to the file's memory until the peer has the bytes.
 *
 * Returns the number of bytes sent; fewer than `size` mean the end of the file or an error; the next call says which.
 * Returns 0 at the end, or a negated errno code: -EPIPE if nobody reads any more; -EINVAL if `offset` is negative, or
 * the file was opened with O_DIRECT. An interruption may come between two parts of at most 1 MiB (16 MiB to a file),
 * and while the call waits for room; the exception tells how many bytes were sent (strand_exception_progress). Sockets
 * that keep messages apart (datagrams, SEQPACKET) get a message for each part: send files to streams.
 *
 * Cost: for each part, one system call for what the system has in memory, a short one for each 128 KiB that asks
 * whether it has, and four that suppress SIGPIPE. Otherwise a round trip to another thread, too. The library asks about
 * one byte of each 128 KiB: a page that is missing between two of these makes the thread wait for one read.
 */
STRAND_BLOCKS int64_t strand_file_send(int fd, int to, uint64_t size, int64_t offset);

/** Wait until the disk has what was written to a file: the bytes, and what is needed to find them; with data_only false
 * also its times and the like (fdatasync(2), fsync(2)). Returns 0 or a negated errno code. An error means that bytes
 * written before may be lost, and is reported once. A file that was made or renamed is sure to have its name after a
 * sync of its directory. */
STRAND_BLOCKS int strand_file_sync(int fd, bool data_only);
/** Set the size of a file, as ftruncate(2) does. Returns 0 or a negated errno code. */
STRAND_BLOCKS int strand_file_truncate(int fd, int64_t size);
/** Allocate, punch, zero, collapse or insert a range of a file, as fallocate(2) does. `mode` is 0 or FALLOC_FL_...
 * (<fcntl.h>). Returns 0 or a negated errno code: -EOPNOTSUPP if the file system can't do it. */
STRAND_BLOCKS int strand_file_allocate(int fd, int mode, int64_t offset, int64_t size);

/**
 * Lock a range of a file against other open files, of this program too, as F_OFD_SETLK of fcntl(2) does. `type` is
 * F_RDLCK (shared), F_WRLCK (exclusive) or F_UNLCK. `size` 0 means: up to the end, wherever that is. The lock belongs
 * to the open file: it ends when the last descriptor of it is closed, and strands that use one descriptor share it.
 *
 * The system can't report when a lock becomes free. The call tries again at intervals that grow from 1 to 20 ms.
 * Returns 0 or a negated errno code: -EBADF if the descriptor is not open for what `type` needs.
 */
STRAND_BLOCKS int strand_file_lock(int fd, int type, int64_t offset, int64_t size);
/** As strand_file_lock, but without waiting. Returns 0; -EAGAIN if another open file has a lock in the way; or another
 * negated errno code. */
STRAND_BLOCKS int strand_file_try_lock(int fd, int type, int64_t offset, int64_t size);

/* ---- names -------------------------------------------------------------------------------------------------- */

/** Look at a file, as fstatat(2) does. `flags` are AT_SYMLINK_NOFOLLOW, or AT_EMPTY_PATH for the file `dir` itself,
 * with the path "". Returns 0 or a negated errno code. */
STRAND_BLOCKS int strand_file_stat(int dir, const char *path, int flags, struct stat *out);
/** Rename a file, as renameat2(2) does. `flags` are RENAME_NOREPLACE, RENAME_EXCHANGE (<stdio.h>), or 0: the new name
 * is replaced. Returns 0 or a negated errno code. */
STRAND_BLOCKS int strand_file_rename(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
/** Give a file one more name, as linkat(2) does. `flags` are AT_SYMLINK_FOLLOW or 0. Returns 0 or a negated errno code.
 */
STRAND_BLOCKS int strand_file_link(int from_dir, const char *from, int to_dir, const char *to, int flags);
/** Make a symbolic link `path` to `target`. Returns 0 or a negated errno code. */
STRAND_BLOCKS int strand_file_symlink(const char *target, int dir, const char *path);
/** Get the target of a symbolic link. `room` is the size of `target` in bytes; a 0 byte ends the text. Returns its
 * length, or a negated errno code: -ENAMETOOLONG if it does not fit, and then `target` is unchanged. */
STRAND_BLOCKS int strand_file_read_link(int dir, const char *path, char *target, size_t room);
/** Remove a name of a file, or an empty directory with flags AT_REMOVEDIR. Returns 0 or a negated errno code. */
STRAND_BLOCKS int strand_file_unlink(int dir, const char *path, int flags);
/** What strand_file_set sets. */
enum {
    STRAND_FILE_MODE = 1,     /* the permissions, as chmod(2): st_mode, of which the kind of the file is ignored */
    STRAND_FILE_USER = 2,     /* the owner: st_uid */
    STRAND_FILE_GROUP = 4,    /* the group: st_gid */
    STRAND_FILE_ACCESSED = 8, /* the time of the last access: st_atim */
    STRAND_FILE_MODIFIED = 16 /* the time of the last change of the bytes: st_mtim */
};
/**
 * Set permissions, owner, group and times of a file to those of `status`. `what` says which: STRAND_FILE_MODE, ..., of
 * which several may be set at once; all else stays as it is. The tv_nsec of a time may be UTIME_NOW (<sys/stat.h>). So
 * a status that strand_file_stat has filled makes another file like the first. `flags` are AT_SYMLINK_NOFOLLOW, or
 * AT_EMPTY_PATH for the file `dir` itself, with the path "".
 *
 * Returns 0 or a negated errno code: -EPERM: the caller may not set that; -EOPNOTSUPP: Linux has no permissions of
 * symbolic links; -EINVAL: an unknown bit in `what` or `flags`. Owner and group are set first, then the mode, then the
 * times: an error ends the call, and the later ones stay as they are.
 */
STRAND_BLOCKS int strand_file_set(int dir, const char *path, int flags, unsigned what, const struct stat *status);
/** Get the absolute path of a file without symbolic links, "." and "..". `room` is the size of `out` in bytes; a 0 byte
 * ends the text. Returns its length, or a negated errno code: -ENAMETOOLONG if it does not fit; -ENOENT also if the
 * file has no name (a pipe), has lost it meanwhile, or lies on a file system that was unmounted while in use (umount
 * -l); -ENOSYS without /proc. After an error `out` is unchanged. */
STRAND_BLOCKS int strand_file_resolve(int dir, const char *path, char *out, size_t room);
/**
 * Make a file with a name that is new, as mkstemp(3) does, or a directory, as mkdtemp(3). The path ends with "XXXXXX",
 * which the call replaces by other letters if it succeeds. `flags` are 0, O_DIRECTORY for a directory, or further flags
 * for the descriptor of a file, as O_APPEND. Only the owner may use the file (0600) or the directory (0700). (A file
 * without any name: strand_file_open with O_TMPFILE.)
 *
 * Returns a descriptor, which the caller closes, or a negated errno code: -EINVAL if the path does not end so. That of
 * a file is opened for reading and writing; that of a directory serves as `dir`. The caller removes the file
 * (strand_file_unlink) or the directory (strand_file_remove_tree). An interrupted call makes nothing.
 */
STRAND_BLOCKS int strand_file_open_temporary(int dir, char *path, int flags);
/** Make a directory. `mode` are its permissions, less those of the umask. Returns 0 or a negated errno code. */
STRAND_BLOCKS int strand_file_make_directory(int dir, const char *path, unsigned mode);
/** Make a directory and all of its parents that are missing. `mode` are the permissions of the directory. The parents
 * get these and 0300, which the owner needs to make the next one. All get them less those of the umask: a umask that
 * takes 0100 or 0200 away makes the call fail behind the first parent (-EACCES, unless the process is privileged).
 * Others may make some of the directories at the same time. Returns 0, also if the directory was there; or a negated
 * errno code: -ENOTDIR if there is something else. After an error the parents that were made stay. */
STRAND_BLOCKS int strand_file_make_directories(int dir, const char *path, unsigned mode);
/**
 * Remove a file, or a directory with all that is in it. The call removes a symbolic link itself and never follows it,
 * even if other processes change the tree meanwhile. (It does follow links before the last name of the path.) Slashes
 * at the end of the path change nothing: "link/" is the link itself. The call does not remove a mount point, or
 * anything below it, and returns -EBUSY. Before Linux 5.8 it recognises mount points by their device number, so it does
 * not see one where the same file system is mounted again.
 *
 * Returns 0, also if nothing of that name is there; or a negated errno code. Entries that can't be removed stay, all
 * others are removed, and the call returns the first error. `failed` gets the path of that name and a 0 byte. The path
 * begins with `path`, less the slashes at the end of `path`; without memory for it, it is `path`. `room` is the size of
 * `failed` in bytes, to which the path is cut. `failed` may be NULL if `room` is 0. Errors are, besides those of the
 * system: -EINVAL if the path does not end with a name ("", "/", "." or ".." at the end); -EAGAIN if others have moved
 * a directory of the tree while the call was in it; then the call has ended there.
 *
 * While others make files in the tree, the call goes on removing them. An interruption comes between two names, at most
 * 32 names later. What was removed stays so, and strand_exception_progress says how many names that are.
 *
 * Cost: three descriptors. A round trip for each 32 names. For each directory that is not empty about ten system calls
 * and, while the call is in it, its name and 64 bytes of memory; the depth of a tree has no other limit.
 */
STRAND_BLOCKS int strand_file_remove_tree(int dir, const char *path, char *failed, size_t room);

/** An entry of a directory. */
typedef struct strand_file_entry {
    uint64_t inode;
    int type;       /* DT_REG, DT_DIR, DT_LNK, ... (<dirent.h>); DT_UNKNOWN: the file system does not say */
    char name[260]; /* ended by a 0 byte */
} strand_file_entry;

/** Read the next entries of a directory, "." and ".." excepted. `directory` is a descriptor that was opened for
 * reading; open another one to list them again. `most` is the number of `entries`. Several strands must not list by one
 * descriptor at a time. Entries that are made or removed meanwhile may appear or not; every other entry appears once.
 * Returns the number of entries, 0 at the end, or a negated errno code: -ENOTDIR, -ENAMETOOLONG for a name of more than
 * 259 bytes, which the next call passes by. Cost: a round trip for up to 1024 entries. */
STRAND_BLOCKS int strand_file_list(int directory, strand_file_entry *entries, size_t most);

/* ---- whole files -------------------------------------------------------------------------------------------- */

/** Read a whole file. *out gets its bytes, and a 0 byte behind them; the caller frees them by free(3). *out is set only
 * by success. max_size is the maximum number of bytes; 0: 1 GiB. Returns the size, or a negated errno code: -EFBIG if
 * the file is larger, -ESPIPE if it is a FIFO. Cost: one round trip. */
STRAND_BLOCKS int64_t strand_file_load(int dir, const char *path, size_t max_size, char **out);
/** Write a whole file: the name refers to the old file, or to the new one with all `size` bytes, at every moment, also
 * after a crash of the machine. The call writes a file beside it, waits until the disk has it (fsync(2)), renames it,
 * and waits for the directory. `mode` are the permissions of the new file, less those of the umask. A symbolic link is
 * replaced itself. Returns 0, or a negated errno code: then the old file is as it was, and the other one removed. (If
 * only the last wait fails, the new file is in place.) Cost: one round trip, and two waits for the disk. */
STRAND_BLOCKS int strand_file_store(int dir, const char *path, const void *bytes, size_t size, unsigned mode);

#ifdef __cplusplus
}
#endif
#endif
