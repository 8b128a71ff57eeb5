/*
 * The calls of the library: counted, refused as planned, and what they take and give back noted.
 */
#include "fault.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/openat2.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
#define TELL(error) {#error, error, error, MUST_TELL, false, false}
#define TELL_AS(error, code) {#error, error, code, MUST_TELL, false, false}
#define PASS(error) {#error, error, error, MUST_PASS, false, false}
#define MAY(error) {#error, error, error, MAY_EITHER, false, false}
#define MAY_AS(error, code) {#error, error, code, MAY_EITHER, false, false}
#define ONCE(error) {#error, error, error, MUST_PASS, true, false}
#define KEEPS(error) {#error, error, error, MUST_PASS, false, true}
/* clang-format on */

const struct call fault_calls[PARTS] = {
#define FAILS(symbol, part, ...) {#symbol, #part, {__VA_ARGS__}},
#define INSIDE(part, ...) {"", #part, {__VA_ARGS__}},
#define WATCHED(symbol, part, why) {#symbol, #part, {{0}}},
#define SAME(symbol, part)
#define SURE(symbol, why)
#define FOREIGN(prefix, why)
#include "all_calls.def"
};

/* ---- what is refused ------------------------------------------------------------------------------------- */

_Atomic long fault_seen[PARTS], fault_hits, fault_strange;
static struct plan plan = {.part = PARTS};
static bool armed, prepared;

void fault_arm(const struct plan *what)
{
    plan = *what;
    for (int i = 0; i < PARTS; i++)
        atomic_store(&fault_seen[i], 0);
    atomic_store(&fault_hits, 0);
    armed = prepared = true;
}

void fault_disarm(void)
{
    armed = false;
}

/* Counts a call; true: it has to fail, errno is set. */
bool fault_refused(enum part part)
{
    if (!armed)
        return false;
    long n = atomic_fetch_add(&fault_seen[part], 1) + 1;
    if (part != plan.part || n < plan.at || (n > plan.at && !plan.forever))
        return false;
    atomic_fetch_add(&fault_hits, 1);
    errno = plan.error;
    return true;
}

int fault_error(void)
{
    return plan.error;
}

/* ---- what is live ---------------------------------------------------------------------------------------- */

const char *const fault_kinds[KINDS] = {"blocks of memory", "mappings", "descriptors", "lists of addresses",
                                        "blocks of a foreign library"};

/* A hash table with linear probing; key 0: a free place. */
enum { PLACES = 1 << 17 };
static struct taken {
    uintptr_t key;
    size_t size;
    const void *by;
    enum kind kind;
    bool in_a_run; /* not by what a workload prepares */
} taken[PLACES];
static long live[KINDS];
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        sched_yield();
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

static size_t home_of(uintptr_t key)
{
    return (size_t)((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15) >> 47);
}

/* The place of the key, or a free one. */
static size_t place_of(enum kind kind, uintptr_t key)
{
    size_t at = home_of(key);
    while (taken[at].key && (taken[at].key != key || taken[at].kind != kind))
        at = (at + 1) % PLACES;
    return at;
}

void fault_take(enum kind kind, uintptr_t key, size_t size, const void *by)
{
    lock();
    size_t at = place_of(kind, key);
    if (!taken[at].key && ++live[kind] > PLACES / 8)
        abort();
    taken[at] = (struct taken){key, size, by, kind, prepared};
    unlock();
}

/* Returns whether it was there, of this size if one is given. */
bool fault_give(enum kind kind, uintptr_t key, size_t size)
{
    lock();
    size_t at = place_of(kind, key);
    bool there = taken[at].key && (!size || taken[at].size == size);
    if (there) {
        live[kind]--;
        size_t next = at;
        for (;;) { /* those after it move up, as far as they may */
            taken[at].key = 0;
            size_t home;
            do {
                next = (next + 1) % PLACES;
                home = home_of(taken[next].key);
            } while (taken[next].key && (at <= next ? at < home && home <= next : at < home || home <= next));
            if (!taken[next].key)
                break;
            taken[at] = taken[next];
            at = next;
        }
    }
    unlock();
    return there;
}

long fault_live(enum kind kind)
{
    lock();
    long count = live[kind];
    unlock();
    return count;
}

void fault_print_live(void)
{
    for (size_t at = 0; at < PLACES; at++) {
        Dl_info in = {0};
        if (!taken[at].key || !taken[at].in_a_run)
            continue;
        (void)dladdr(taken[at].by, &in);
        fprintf(stderr, "      of the %s: %#lx, %zu bytes, taken by the call before %#lx of the program\n",
                fault_kinds[taken[at].kind], (unsigned long)taken[at].key, taken[at].size,
                (unsigned long)((const char *)taken[at].by - (const char *)in.dli_fbase));
    }
}

static void *block(void *memory, size_t size, const void *by)
{
    if (memory)
        fault_take(KIND_BLOCK, (uintptr_t)memory, size, by);
    return memory;
}

/* Zero is a descriptor, too. */
static int descriptor(int fd, const void *by)
{
    if (fd >= 0)
        fault_take(KIND_DESCRIPTOR, (uintptr_t)fd + 1, 0, by);
    return fd;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* The names that the library calls. */
void *fault_malloc(size_t size);
void *fault_calloc(size_t count, size_t size);
void *fault_aligned_alloc(size_t alignment, size_t size);
void *fault_realloc(void *memory, size_t size);
void fault_free(void *memory);
void *fault_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int fault_munmap(void *at, size_t bytes);
int fault_mprotect(void *at, size_t bytes, int protection);
int fault_madvise(void *at, size_t bytes, int advice);
int fault_mincore(void *at, size_t bytes, unsigned char *there);
ssize_t fault_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count, const struct iovec *from,
                               unsigned long from_count, unsigned long flags);
long fault_syscall(long number, ...);
int fault_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int fault_pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));
int fault_pthread_setname_np(pthread_t id, const char *name);
int fault_prctl(int option, ...);
pid_t fault_fork(void);
pid_t fault_waitpid(pid_t child, int *status, int options);
int fault_kill(pid_t process, int signal);
int fault_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int fault_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set);
int fault_nanosleep(const struct timespec *time, struct timespec *left);
ssize_t fault_getrandom(void *bytes, size_t size, unsigned flags);
int fault_sigaction(int signal, const struct sigaction *new, struct sigaction *old);
int fault_sigaltstack(const stack_t *new, stack_t *old);
int fault_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time);
int fault_epoll_create1(int flags);
int fault_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int fault_epoll_wait(int epoll, struct epoll_event *events, int most, int ms);
int fault_eventfd(unsigned count, int flags);
int fault_inotify_init1(int flags);
int fault_inotify_add_watch(int fd, const char *path, uint32_t what);
int fault_timerfd_create(int clock, int flags);
int fault_timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *old);
int fault_open(const char *path, int flags, ...);
int fault___open_2(const char *path, int flags);
int fault_stat(const char *path, struct stat *status);
int fault_close(int fd);
int fault_dup3(int from, int to, int flags);
int fault_fcntl(int fd, int command, ...);
int fault_fstat(int fd, struct stat *status);
ssize_t fault_read(int fd, void *buffer, size_t size);
ssize_t fault_write(int fd, const void *bytes, size_t size);
ssize_t fault_preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags);
ssize_t fault_pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags);
int fault_poll(struct pollfd *fds, nfds_t count, int ms);
int fault_openat(int dir, const char *path, int flags, ...);
ssize_t fault_preadv(int fd, const struct iovec *parts, int count, off_t offset);
ssize_t fault_readv(int fd, const struct iovec *parts, int count);
ssize_t fault_pwritev(int fd, const struct iovec *parts, int count, off_t offset);
ssize_t fault_writev(int fd, const struct iovec *parts, int count);
ssize_t fault_sendfile(int to, int from, off_t *offset, size_t size);
ssize_t fault_splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags);
ssize_t fault_copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags);
int fault_fsync(int fd);
int fault_fdatasync(int fd);
int fault_ftruncate(int fd, off_t size);
int fault_fallocate(int fd, int mode, off_t offset, off_t size);
int fault_fstatat(int dir, const char *path, struct stat *status, int flags);
int fault_statx(int dir, const char *path, int flags, unsigned mask, struct statx *status);
int fault_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int fault_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int fault_symlinkat(const char *target, int dir, const char *path);
ssize_t fault_readlinkat(int dir, const char *path, char *target, size_t room);
int fault_unlinkat(int dir, const char *path, int flags);
int fault_mkdirat(int dir, const char *path, mode_t mode);
int fault_fchmodat(int dir, const char *path, mode_t mode, int flags);
int fault_fchmod(int fd, mode_t mode);
int fault_fchownat(int dir, const char *path, uid_t user, gid_t group, int flags);
int fault_fchown(int fd, uid_t user, gid_t group);
int fault_utimensat(int dir, const char *path, const struct timespec times[2], int flags);
int fault_futimens(int fd, const struct timespec times[2]);
ssize_t fault_getdents64(int fd, void *buffer, size_t size);
off_t fault_lseek(int fd, off_t offset, int whence);
int fault_pipe2(int fds[2], int flags);
int fault_socket(int family, int type, int protocol);
int fault_bind(int fd, const struct sockaddr *address, socklen_t length);
int fault_listen(int fd, int backlog);
int fault_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int fault_connect(int fd, const struct sockaddr *address, socklen_t length);
int fault_shutdown(int fd, int how);
ssize_t fault_recv(int fd, void *buffer, size_t size, int flags);
ssize_t fault_send(int fd, const void *bytes, size_t size, int flags);
ssize_t fault_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t fault_sendmsg(int fd, const struct msghdr *message, int flags);
int fault_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *limit);
int fault_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
int fault_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int fault_setsockopt(int fd, int level, int option, const void *value, socklen_t length);
int fault_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int fault_getpeername(int fd, struct sockaddr *address, socklen_t *length);
int fault_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out);
void fault_freeaddrinfo(struct addrinfo *list);
void *fault_dlopen(const char *name, int flags);
void *fault_dlsym(void *library, const char *name);
unsigned long fault_getauxval(unsigned long type);

void *fault_malloc(size_t size)
{
    return fault_refused(PART_malloc) ? NULL : block(malloc(size), size, FAULT_CALLER);
}

void *fault_calloc(size_t count, size_t size)
{
    return fault_refused(PART_calloc) ? NULL : block(calloc(count, size), count * size, FAULT_CALLER);
}

void *fault_aligned_alloc(size_t alignment, size_t size)
{
    return fault_refused(PART_aligned_alloc) ? NULL : block(aligned_alloc(alignment, size), size, FAULT_CALLER);
}

void *fault_realloc(void *memory, size_t size)
{
    if (fault_refused(PART_realloc))
        return NULL;
    if (memory && !fault_give(KIND_BLOCK, (uintptr_t)memory, 0))
        atomic_fetch_add(&fault_strange, 1);
    return block(realloc(memory, size), size, FAULT_CALLER);
}

void fault_free(void *memory)
{
    (void)fault_refused(PART_free);
    if (memory && !fault_give(KIND_BLOCK, (uintptr_t)memory, 0))
        atomic_fetch_add(&fault_strange, 1);
    free(memory);
}

static void *mapping(void *at, size_t bytes, const void *by)
{
    if (at != MAP_FAILED)
        fault_take(KIND_MAPPING, (uintptr_t)at, bytes, by);
    return at;
}

void *fault_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fault_refused(PART_mmap))
        return MAP_FAILED;
    return mapping(mmap(at, bytes, protection, flags, fd, offset), bytes, FAULT_CALLER);
}

int fault_munmap(void *at, size_t bytes)
{
    if (fault_refused(PART_munmap))
        return -1;
    if (!fault_give(KIND_MAPPING, (uintptr_t)at, bytes))
        atomic_fetch_add(&fault_strange, 1);
    return munmap(at, bytes);
}

int fault_mprotect(void *at, size_t bytes, int protection)
{
    return fault_refused(PART_mprotect) ? -1 : mprotect(at, bytes, protection);
}

/* Newer than many headers, and than many systems: where there is none, a guard page is one that nobody runs into. */
enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103 };

int fault_mincore(void *at, size_t bytes, unsigned char *there)
{
    if (fault_refused(PART_mincore))
        return -1;
    return mincore(at, bytes, there);
}

ssize_t fault_process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count, const struct iovec *from,
                               unsigned long from_count, unsigned long flags)
{
    if (fault_refused(PART_process_vm_readv))
        return -1;
    return process_vm_readv(pid, to, to_count, from, from_count, flags);
}

int fault_madvise(void *at, size_t bytes, int advice)
{
    if (fault_refused(PART_madvise))
        return -1;
    int error = madvise(at, bytes, advice);
    return error < 0 && errno == EINVAL && (advice == GUARD_INSTALL || advice == GUARD_REMOVE) ? 0 : error;
}

/* ---- system calls without a function --------------------------------------------------------------------- */

static long many_guards(const struct iovec *pages, long count, long result)
{
    long bytes = 0;
    for (long i = 0; i < count; i++)
        bytes += (long)pages[i].iov_len;
    return result < 0 ? bytes : result;
}

/* It takes more arguments than there may be, which ASan would see. */
__attribute__((no_sanitize("address"))) long fault_syscall(long number, ...)
{
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    bool refuse;
    switch (number) {
    case SYS_mmap:
        refuse = fault_refused(PART_mmap_reserve);
        break;
    case SYS_membarrier:
        refuse =
            fault_refused((int)a[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED ? PART_membarrier : PART_membarrier_register);
        break;
    case SYS_process_madvise:
        refuse = fault_refused(PART_process_madvise);
        break;
    case SYS_futex:
        refuse = fault_refused(((int)a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE ? PART_futex_wake : PART_futex_wait);
        break;
    case SYS_rt_sigprocmask:
        refuse = fault_refused(PART_readable);
        break;
    case SYS_write:
        refuse = fault_refused(PART_write_event);
        break;
    case SYS_openat2:
        refuse =
            fault_refused(((const struct open_how *)a[2])->resolve & RESOLVE_CACHED ? PART_openat2_now : PART_openat2);
        break;
    case SYS_waitid:
        refuse = fault_refused(PART_waitid);
        break;
    case SYS_pidfd_send_signal:
        refuse = fault_refused(PART_pidfd_send_signal);
        break;
    case SYS_io_uring_setup:
        refuse = fault_refused(PART_uring_setup);
        break;
    case SYS_io_uring_register:
        refuse = fault_refused(PART_uring_register);
        break;
    case SYS_io_uring_enter:
        refuse = fault_refused(PART_uring_enter);
        break;
    default:
        fault_wrong(__FILE__, __LINE__, "a system call that is not in calls.def");
    }
    if (refuse)
        return -1;
    long result = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_mmap && result != -1)
        fault_take(KIND_MAPPING, (uintptr_t)result, (size_t)a[1], FAULT_CALLER);
    if ((number == SYS_io_uring_setup || number == SYS_openat2) && result != -1)
        fault_take(KIND_DESCRIPTOR, (uintptr_t)result + 1, 0, FAULT_CALLER);
    return number == SYS_process_madvise ? many_guards((const struct iovec *)(uintptr_t)a[1], a[2], result) : result;
}

/* ---- threads, signals ------------------------------------------------------------------------------------ */

int fault_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    return fault_refused(PART_pthread_create) ? errno : pthread_create(id, attr, fn, arg);
}

int fault_pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    return fault_refused(PART_pthread_atfork) ? errno : pthread_atfork(before, in_parent, in_child);
}

int fault_pthread_setname_np(pthread_t id, const char *name)
{
    return fault_refused(PART_pthread_setname_np) ? errno : pthread_setname_np(id, name);
}

pid_t fault_fork(void)
{
    return fault_refused(PART_fork) ? -1 : fork();
}

int fault_kill(pid_t process, int signal)
{
    return fault_refused(PART_kill) ? -1 : kill(process, signal);
}

/* A child that is not waited for is waited for here: it must not stay. */
pid_t fault_waitpid(pid_t child, int *status, int options)
{
    if (!fault_refused(PART_waitpid))
        return waitpid(child, status, options);
    int error = errno;
    if (error == ECHILD)
        (void)waitpid(child, status, options);
    errno = error;
    return -1;
}

int fault_prctl(int option, ...)
{
    va_list args;
    va_start(args, option);
    unsigned long value = va_arg(args, unsigned long);
    va_end(args);
    bool subreaper = option == PR_SET_CHILD_SUBREAPER || option == PR_GET_CHILD_SUBREAPER;
    return fault_refused(subreaper ? PART_prctl_subreaper : PART_prctl) ? -1 : prctl(option, value, 0UL, 0UL, 0UL);
}

int fault_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    return fault_refused(PART_sched_getaffinity) ? -1 : sched_getaffinity(pid, size, set);
}

int fault_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
    return fault_refused(PART_sched_setaffinity) ? -1 : sched_setaffinity(pid, size, set);
}

int fault_nanosleep(const struct timespec *time, struct timespec *left)
{
    return fault_refused(PART_nanosleep) ? -1 : nanosleep(time, left);
}

ssize_t fault_getrandom(void *bytes, size_t size, unsigned flags)
{
    return fault_refused(PART_getrandom) ? -1 : getrandom(bytes, size, flags);
}

int fault_sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
    return fault_refused(PART_sigaction) ? -1 : sigaction(signal, new, old);
}

int fault_sigaltstack(const stack_t *new, stack_t *old)
{
    return fault_refused(old ? PART_sigaltstack : PART_sigaltstack_back) ? -1 : sigaltstack(new, old);
}

int fault_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
    return fault_refused(PART_sigtimedwait) ? -1 : sigtimedwait(set, info, time);
}

/* ---- the poller ------------------------------------------------------------------------------------------ */

int fault_epoll_create1(int flags)
{
    return fault_refused(PART_epoll_create1) ? -1 : descriptor(epoll_create1(flags), FAULT_CALLER);
}

int fault_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    bool refuse = fault_refused(operation == EPOLL_CTL_ADD ? PART_epoll_ctl_add : PART_epoll_ctl_del);
    return refuse ? -1 : epoll_ctl(epoll, operation, fd, event);
}

int fault_epoll_wait(int epoll, struct epoll_event *events, int most, int ms)
{
    return fault_refused(PART_epoll_wait) ? -1 : epoll_wait(epoll, events, most, ms);
}

/* Which of the descriptors count events. */
enum { NUMBERS = 1024 };
static _Atomic bool counts_events[NUMBERS];

int fault_eventfd(unsigned count, int flags)
{
    if (fault_refused(PART_eventfd))
        return -1;
    int fd = descriptor(eventfd(count, flags), FAULT_CALLER);
    if (fd >= 0 && fd < NUMBERS)
        atomic_store(&counts_events[fd], true);
    return fd;
}

int fault_inotify_init1(int flags)
{
    return fault_refused(PART_inotify_init1) ? -1 : descriptor(inotify_init1(flags), FAULT_CALLER);
}

int fault_inotify_add_watch(int fd, const char *path, uint32_t what)
{
    return fault_refused(PART_inotify_add_watch) ? -1 : inotify_add_watch(fd, path, what);
}

int fault_timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *old)
{
    return (flags & TFD_TIMER_CANCEL_ON_SET) && fault_refused(PART_timerfd_settime)
               ? -1
               : timerfd_settime(fd, flags, when, old);
}

int fault_timerfd_create(int clock, int flags)
{
    return fault_refused(PART_timerfd_create) ? -1 : descriptor(timerfd_create(clock, flags), FAULT_CALLER);
}

/* ---- descriptors ----------------------------------------------------------------------------------------- */

/* The devices behind the standard streams of a process. */
static bool is_stream(const char *path)
{
    return strcmp(path, "/dev/null") == 0 || strcmp(path, "/dev/ptmx") == 0 || strncmp(path, "/dev/pts/", 9) == 0;
}

int fault_open(const char *path, int flags, ...)
{
    return fault_refused(is_stream(path) && !(flags & O_PATH) ? PART_open_stream : PART_open)
               ? -1
               : descriptor(open(path, flags & ~O_CREAT), FAULT_CALLER);
}

int fault___open_2(const char *path, int flags)
{
    return fault_refused(PART_open) ? -1 : descriptor(open(path, flags & ~O_CREAT), FAULT_CALLER);
}

int fault_stat(const char *path, struct stat *status)
{
    return fault_refused(PART_stat) ? -1 : stat(path, status);
}

/* It is closed all the same. */
int fault_close(int fd)
{
    if (fd >= 0 && fd < NUMBERS)
        atomic_store(&counts_events[fd], false);
    if (fd >= 0)
        (void)fault_give(KIND_DESCRIPTOR, (uintptr_t)fd + 1,
                         0); /* the program may close those of others by strand_close */
    int result = close(fd);
    return fault_refused(PART_close) ? -1 : result;
}

int fault_dup3(int from, int to, int flags)
{
    return fault_refused(PART_dup3) ? -1 : descriptor(dup3(from, to, flags), FAULT_CALLER);
}

int fault_fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *value = va_arg(args, void *);
    va_end(args);
    return fault_refused(PART_fcntl) ? -1 : fcntl(fd, command, value);
}

int fault_fstat(int fd, struct stat *status)
{
    return fault_refused(PART_fstat) ? -1 : fstat(fd, status);
}

ssize_t fault_read(int fd, void *buffer, size_t size)
{
    return fault_refused(PART_read) ? -1 : read(fd, buffer, size);
}

ssize_t fault_write(int fd, const void *bytes, size_t size)
{
    bool kick = fd >= 0 && fd < NUMBERS && atomic_load(&counts_events[fd]);
    return fault_refused(kick ? PART_write_kick : PART_write) ? -1 : write(fd, bytes, size);
}

ssize_t fault_preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    bool event = count == 1 && parts->iov_len == sizeof(uint64_t); /* of a counter */
    bool probe = count == 1 && parts->iov_len == 1 && offset >= 0; /* whether a byte of a file is in memory */
    enum part part = event ? PART_preadv2_event : probe ? PART_preadv2_probe : PART_preadv2;
    return fault_refused(part) ? -1 : preadv2(fd, parts, count, offset, flags);
}

ssize_t fault_pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    return fault_refused(PART_pwritev2) ? -1 : pwritev2(fd, parts, count, offset, flags);
}

int fault_poll(struct pollfd *fds, nfds_t count, int ms)
{
    return fault_refused(PART_poll) ? -1 : poll(fds, count, ms);
}

int fault_pipe2(int fds[2], int flags)
{
    if (fault_refused(PART_pipe2))
        return -1;
    int result = pipe2(fds, flags);
    for (int i = 0; i < 2 && result == 0; i++)
        descriptor(fds[i], FAULT_CALLER);
    return result;
}

/* ---- files ----------------------------------------------------------------------------------------------- */

int fault_openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    bool of_tree = flags & O_DIRECTORY && flags & (O_PATH | O_NOFOLLOW);
    return fault_refused(of_tree ? PART_openat_tree : PART_openat)
               ? -1
               : descriptor(openat(dir, path, flags, mode), FAULT_CALLER);
}

ssize_t fault_preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
    return fault_refused(PART_preadv) ? -1 : preadv(fd, parts, count, offset);
}

ssize_t fault_readv(int fd, const struct iovec *parts, int count)
{
    return fault_refused(PART_readv) ? -1 : readv(fd, parts, count);
}

ssize_t fault_pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    return fault_refused(PART_pwritev) ? -1 : pwritev(fd, parts, count, offset);
}

ssize_t fault_writev(int fd, const struct iovec *parts, int count)
{
    return fault_refused(PART_writev) ? -1 : writev(fd, parts, count);
}

ssize_t fault_sendfile(int to, int from, off_t *offset, size_t size)
{
    return fault_refused(PART_sendfile) ? -1 : sendfile(to, from, offset, size);
}

ssize_t fault_splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags)
{
    return fault_refused(PART_splice) ? -1 : splice(from, from_offset, to, to_offset, size, flags);
}

ssize_t fault_copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags)
{
    return fault_refused(PART_copy_file_range) ? -1 : copy_file_range(from, from_offset, to, to_offset, size, flags);
}

int fault_fsync(int fd)
{
    return fault_refused(PART_fsync) ? -1 : fsync(fd);
}

int fault_fdatasync(int fd)
{
    return fault_refused(PART_fdatasync) ? -1 : fdatasync(fd);
}

int fault_ftruncate(int fd, off_t size)
{
    return fault_refused(PART_ftruncate) ? -1 : ftruncate(fd, size);
}

int fault_fallocate(int fd, int mode, off_t offset, off_t size)
{
    return fault_refused(PART_fallocate) ? -1 : fallocate(fd, mode, offset, size);
}

int fault_fstatat(int dir, const char *path, struct stat *status, int flags)
{
    return fault_refused(PART_fstatat) ? -1 : fstatat(dir, path, status, flags);
}

int fault_statx(int dir, const char *path, int flags, unsigned mask, struct statx *status)
{
    return fault_refused(PART_statx) ? -1 : statx(dir, path, flags, mask, status);
}

int fault_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return fault_refused(PART_renameat2) ? -1 : renameat2(from_dir, from, to_dir, to, flags);
}

int fault_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return fault_refused(PART_linkat) ? -1 : linkat(from_dir, from, to_dir, to, flags);
}

int fault_symlinkat(const char *target, int dir, const char *path)
{
    return fault_refused(PART_symlinkat) ? -1 : symlinkat(target, dir, path);
}

ssize_t fault_readlinkat(int dir, const char *path, char *target, size_t room)
{
    return fault_refused(PART_readlinkat) ? -1 : readlinkat(dir, path, target, room);
}

int fault_unlinkat(int dir, const char *path, int flags)
{
    return fault_refused(PART_unlinkat) ? -1 : unlinkat(dir, path, flags);
}

int fault_mkdirat(int dir, const char *path, mode_t mode)
{
    return fault_refused(PART_mkdirat) ? -1 : mkdirat(dir, path, mode);
}

int fault_fchmodat(int dir, const char *path, mode_t mode, int flags)
{
    return fault_refused(PART_fchmodat) ? -1 : fchmodat(dir, path, mode, flags);
}

int fault_fchmod(int fd, mode_t mode)
{
    return fault_refused(PART_fchmod) ? -1 : fchmod(fd, mode);
}

int fault_fchownat(int dir, const char *path, uid_t user, gid_t group, int flags)
{
    return fault_refused(PART_fchownat) ? -1 : fchownat(dir, path, user, group, flags);
}

int fault_fchown(int fd, uid_t user, gid_t group)
{
    return fault_refused(PART_fchown) ? -1 : fchown(fd, user, group);
}

int fault_utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
    return fault_refused(PART_utimensat) ? -1 : utimensat(dir, path, times, flags);
}

int fault_futimens(int fd, const struct timespec times[2])
{
    return fault_refused(PART_futimens) ? -1 : futimens(fd, times);
}

ssize_t fault_getdents64(int fd, void *buffer, size_t size)
{
    return fault_refused(PART_getdents64) ? -1 : getdents64(fd, buffer, size);
}

off_t fault_lseek(int fd, off_t offset, int whence)
{
    return fault_refused(PART_lseek) ? -1 : lseek(fd, offset, whence);
}

/* ---- sockets --------------------------------------------------------------------------------------------- */

int fault_socket(int family, int type, int protocol)
{
    return fault_refused(PART_socket) ? -1 : descriptor(socket(family, type, protocol), FAULT_CALLER);
}

int fault_bind(int fd, const struct sockaddr *address, socklen_t length)
{
    return fault_refused(PART_bind) ? -1 : bind(fd, address, length);
}

int fault_listen(int fd, int backlog)
{
    return fault_refused(PART_listen) ? -1 : listen(fd, backlog);
}

int fault_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    return fault_refused(PART_accept4) ? -1 : descriptor(accept4(fd, address, length, flags), FAULT_CALLER);
}

/* One that a signal has interrupted is under way. */
int fault_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    if (!fault_refused(PART_connect))
        return connect(fd, address, length);
    if (plan.error == EINTR && (connect(fd, address, length) == 0 || errno == EINPROGRESS))
        errno = EINTR;
    return -1;
}

int fault_shutdown(int fd, int how)
{
    return fault_refused(PART_shutdown) ? -1 : shutdown(fd, how);
}

ssize_t fault_recv(int fd, void *buffer, size_t size, int flags)
{
    return fault_refused(PART_recv) ? -1 : recv(fd, buffer, size, flags);
}

ssize_t fault_send(int fd, const void *bytes, size_t size, int flags)
{
    return fault_refused(PART_send) ? -1 : send(fd, bytes, size, flags);
}

/* The descriptors that come with a message are the receiver's. */
ssize_t fault_recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t got = fault_refused(PART_recvmsg) ? -1 : recvmsg(fd, message, flags);
    for (struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + CMSG_LEN(0) < c->cmsg_len; at += sizeof(int)) {
            int passed;
            memcpy(&passed, CMSG_DATA(c) + at, sizeof passed);
            descriptor(passed, FAULT_CALLER);
        }
    }
    return got;
}

int fault_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *limit)
{
    return fault_refused(PART_recvmmsg) ? -1 : recvmmsg(fd, messages, count, flags, limit);
}

int fault_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    return fault_refused(PART_sendmmsg) ? -1 : sendmmsg(fd, messages, count, flags);
}

ssize_t fault_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return fault_refused(PART_sendmsg) ? -1 : sendmsg(fd, message, flags);
}

int fault_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
    return fault_refused(PART_getsockopt) ? -1 : getsockopt(fd, level, option, value, length);
}

int fault_setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
    return fault_refused(PART_setsockopt) ? -1 : setsockopt(fd, level, option, value, length);
}

int fault_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
    return fault_refused(PART_getsockname) ? -1 : getsockname(fd, address, length);
}

int fault_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
    return fault_refused(PART_getpeername) ? -1 : getpeername(fd, address, length);
}

int fault_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    if (fault_refused(PART_getaddrinfo)) {
        errno = EMFILE; /* of EAI_SYSTEM */
        return plan.error;
    }
    int error = getaddrinfo(host, service, hints, out);
    if (!error)
        fault_take(KIND_ADDRESSES, (uintptr_t)*out, 0, FAULT_CALLER);
    return error;
}

void fault_freeaddrinfo(struct addrinfo *list)
{
    (void)fault_refused(PART_freeaddrinfo);
    if (!fault_give(KIND_ADDRESSES, (uintptr_t)list, 0))
        atomic_fetch_add(&fault_strange, 1);
    freeaddrinfo(list);
}

/* ---- traces ---------------------------------------------------------------------------------------------- */

void *fault_dlopen(const char *name, int flags)
{
    return fault_refused(PART_dlopen) ? NULL : dlopen(name, flags);
}

void *fault_dlsym(void *library, const char *name)
{
    return fault_refused(PART_dlsym) ? NULL : dlsym(library, name);
}

unsigned long fault_getauxval(unsigned long type)
{
    return fault_refused(PART_getauxval) ? 0 : getauxval(type);
}
