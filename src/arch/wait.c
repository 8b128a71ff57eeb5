/*
 * Sleeping and waking: futex, clock, poller, threads, and the few other system calls that everything needs.
 *
 * The poller's time limits are a timerfd among its descriptors. epoll's own time-out may be late by the thread's timer
 * slack (50 us) or by a thousandth of the time, whichever is more; a timerfd is on time on every kernel.
 */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

/* ---- time ------------------------------------------------------------------------------------------------ */

int64_t arch_date_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t arch_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* An instant before the clock's beginning has passed, as the beginning has. */
static struct timespec timespec_of(int64_t ns)
{
    if (ns < 1)
        ns = 1;
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

uint64_t arch_ticks(void)
{
    return LIKELY(arch_state.tsc) ? arch_tsc() : (uint64_t)arch_clock_ns();
}

uint64_t arch_ticks_per_ms(void)
{
    return arch_state.ticks_per_ms;
}

struct instant {
    uint64_t ticks;
    int64_t ns;
};

/* Read both clocks at one time: the least disturbed of several readings. */
static struct instant instant_now(void)
{
    struct instant best = {0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = arch_tsc();
        int64_t ns = arch_clock_ns();
        uint64_t after = arch_tsc();
        if (after - before < least) {
            least = after - before;
            best = (struct instant){before + least / 2, ns};
        }
    }
    return best;
}

void arch_ticks_start(void)
{
    enum { CALIBRATE_NS = 50000 };
    arch_state.tsc = false;
    arch_state.ticks_per_ms = 1000000;
    if (!arch_tsc_is_invariant())
        return;
    struct instant first = instant_now(), last;
    do
        last = instant_now();
    while (last.ns - first.ns < CALIBRATE_NS);
    uint64_t rate = (last.ticks - first.ticks) * 1000000 / (uint64_t)(last.ns - first.ns);
    if (rate == 0)
        return; /* a counter that stands still is useless */
    arch_state.ticks_per_ms = rate;
    arch_state.tsc = true;
}

/* ---- futex ----------------------------------------------------------------------------------------------- */

void arch_nap(int64_t ns)
{
    const struct timespec nap = timespec_of(ns);
    (void)nanosleep(&nap, NULL);
}

int arch_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    struct timespec until = timespec_of(deadline_ns);
    long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                          deadline_ns == ARCH_FOREVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
    return result < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

int arch_futex_wake(_Atomic uint32_t *word, int threads)
{
    int saved_errno = errno;
    long woken = syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, threads, NULL, NULL, 0);
    errno = saved_errno;
    return woken < 0 ? 0 : (int)woken;
}

/* ---- the poller ------------------------------------------------------------------------------------------ */

enum { POLLER_BATCH = 64 };

/* Edge-triggered: the counters of the kick and the timer never have to be read. */
int arch_poller_add_in(struct arch_poller *poller, int fd, uint64_t data)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = data};
    return epoll_ctl(poller->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int arch_poller_open(struct arch_poller *poller)
{
    *poller = (struct arch_poller){.epoll = -1, .kick = -1, .timer = -1, .armed = ARCH_FOREVER};
    int error = 0;
    if ((error = poller->epoll = arch_fd_own(epoll_create1(EPOLL_CLOEXEC))) >= 0 &&
        (error = poller->kick = arch_fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) >= 0 &&
        (error = poller->timer = arch_fd_own(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))) >= 0)
        error = 0;
    if (!error)
        error = arch_poller_add_in(poller, poller->kick, ARCH_POLLER_KICK);
    if (!error)
        error = arch_poller_add_in(poller, poller->timer, ARCH_POLLER_TIMER);
    if (error)
        arch_poller_close(poller);
    return error;
}

void arch_poller_close(struct arch_poller *poller)
{
    int *fds[] = {&poller->timer, &poller->kick, &poller->epoll};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        int fd = *fds[i];
        *fds[i] = -1; /* first: a signal handler may fork, and the number may be another descriptor's after the close */
        if (fd >= 0)
            close(fd);
    }
}

/* The number stays taken, by a descriptor that epoll_wait refuses. */
void arch_poller_orphan(const struct arch_poller *poller)
{
    if (poller->epoll >= 0)
        (void)dup3(poller->kick, poller->epoll, O_CLOEXEC);
}

void arch_poller_arm(struct arch_poller *poller, int64_t deadline_ns)
{
    struct itimerspec when = {0};
    if (deadline_ns != ARCH_FOREVER)
        when.it_value = timespec_of(deadline_ns);
    if (timerfd_settime(poller->timer, TFD_TIMER_ABSTIME, &when, NULL) < 0)
        arch_refused("timerfd_settime", errno);
    poller->armed = deadline_ns;
}

static struct epoll_event both_ways(uint64_t data)
{
    return (struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET, .data.u64 = data};
}

int arch_poller_add(struct arch_poller *poller, int fd, uint64_t data)
{
    struct epoll_event event = both_ways(data);
    return epoll_ctl(poller->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int arch_poller_remove(struct arch_poller *poller, int fd)
{
    struct epoll_event unused = {0};
    return epoll_ctl(poller->epoll, EPOLL_CTL_DEL, fd, &unused) < 0 ? -errno : 0;
}

bool arch_poller_has(struct arch_poller *poller, int fd, uint64_t data)
{
    struct epoll_event event = both_ways(data);
    return epoll_ctl(poller->epoll, EPOLL_CTL_MOD, fd, &event) == 0 || (errno != ENOENT && errno != EBADF);
}

static uint32_t readiness(uint32_t events)
{
    uint32_t in = events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI);
    uint32_t out = events & (EPOLLOUT | EPOLLHUP | EPOLLERR);
    uint32_t end = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI); /* urgent bytes cause short reads, too */
    return (in ? ARCH_IN : 0) | (out ? ARCH_OUT : 0) | (end ? ARCH_END : 0);
}

int arch_poller_wait(struct arch_poller *poller, struct arch_event *out, int max, int64_t deadline_ns)
{
    struct epoll_event events[POLLER_BATCH];
    if (deadline_ns != 0 && deadline_ns != poller->armed)
        arch_poller_arm(poller, deadline_ns);
    int got = epoll_wait(poller->epoll, events, max < POLLER_BATCH ? max : POLLER_BATCH, deadline_ns == 0 ? 0 : -1);
    ASSERT(got >= 0 || errno == EINTR || errno == EINVAL); /* EINVAL: arch_poller_orphan */
    int count = 0;
    for (int i = 0; i < got; i++) {
        uint64_t data = events[i].data.u64;
        if (data == ARCH_POLLER_TIMER)
            poller->armed = ARCH_FOREVER; /* it has expired */
        else if (data != ARCH_POLLER_KICK)
            out[count++] = (struct arch_event){.data = data, .events = readiness(events[i].events)};
    }
    return count;
}

/* Excludes the poller's own two descriptors during the test. Afterwards they are reported once more. */
bool arch_poller_has_events(struct arch_poller *poller)
{
    const int own[] = {poller->kick, poller->timer};
    const uint64_t data[] = {ARCH_POLLER_KICK, ARCH_POLLER_TIMER};
    struct epoll_event event = {0};
    struct pollfd ready = {.fd = poller->epoll, .events = POLLIN};
    for (int i = 0; i < 2; i++)
        (void)epoll_ctl(poller->epoll, EPOLL_CTL_MOD, own[i], &event);
    bool any = poll(&ready, 1, 0) > 0;
    for (int i = 0; i < 2; i++) {
        event = (struct epoll_event){.events = EPOLLIN | EPOLLET, .data.u64 = data[i]};
        (void)epoll_ctl(poller->epoll, EPOLL_CTL_MOD, own[i], &event);
    }
    return any;
}

void arch_poller_kick(struct arch_poller *poller)
{
    const uint64_t one = 1;
    int saved_errno = errno;
    while (write(poller->kick, &one, sizeof one) < 0 && errno == EINTR)
        ;
    errno = saved_errno;
}

/* ---- processors and threads ------------------------------------------------------------------------------ */

void arch_membarrier(void)
{
    /* The kernel may temporarily lack memory for it. Other threads rely on the barrier. */
    while (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) < 0) {
        if (errno != ENOMEM)
            arch_refused("membarrier", errno);
        sched_yield();
    }
}

struct start {
    void *(*fn)(void *);
    void *arg;
    char name[16];
};

void *arch_thread_main(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    (void)pthread_setname_np(pthread_self(), start.name);
    arch_thread_unbind();
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* timed futex waits end on time */
    void *result = start.fn(start.arg);
    __asm__ volatile(""); /* no jump: traces end at this frame */
    return result;
}

int arch_thread_start(arch_thread *thread, void *(*fn)(void *), void *arg, const char *name)
{
    struct start *start = malloc(sizeof *start);
    if (!start)
        return -ENOMEM;
    *start = (struct start){.fn = fn, .arg = arg};
    strncpy(start->name, name, sizeof start->name - 1);
    pthread_t id;
    int error = pthread_create(&id, NULL, arch_thread_main, start);
    if (error) {
        free(start);
        return -error;
    }
    thread->bits = (uint64_t)id;
    return 0;
}

/* The thread inherits the set from its creator: a set of its own would come too late for the first signal. */
int arch_thread_start_unsignalled(arch_thread *thread, void *(*fn)(void *), void *arg, const char *name)
{
    static const int caused[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGXFSZ};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof caused / sizeof *caused; i++)
        sigdelset(&blocked, caused[i]);
    int error = pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if (error)
        return -error;
    error = arch_thread_start(thread, fn, arg, name);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void arch_thread_join(arch_thread thread)
{
    int error = pthread_join((pthread_t)thread.bits, NULL);
    ASSERT(error == 0);
}

void arch_thread_yield(void)
{
    sched_yield();
}

uint32_t arch_thread_id(void)
{
    return (uint32_t)gettid();
}

int arch_thread_count(void)
{
    struct stat tasks;
    if (stat("/proc/self/task", &tasks) < 0)
        return -errno;
    return (int)tasks.st_nlink - 2 - arch_san_threads(); /* each is a folder there */
}

int64_t arch_thread_delayed_ns(void)
{
    char text[80];
    int fd = arch_fd_own(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return fd;
    ssize_t length = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *second = strchr(text, ' '); /* the first is the time it ran */
    return second ? strtol(second, NULL, 10) : -ENOENT;
}

int64_t arch_thread_cpu_ns(uint32_t thread_id)
{
    /* Thread clocks as the system encodes them; the C library offers them only for a pthread_t. */
    enum { OF_THREAD = 4, SCHEDULED = 2 };
    struct timespec used;
    if (clock_gettime((clockid_t)(~thread_id << 3 | OF_THREAD | SCHEDULED), &used) < 0)
        return -errno;
    return (int64_t)used.tv_sec * NS_PER_S + used.tv_nsec;
}

/* ---- environment, entropy, output --------------------------------------------------------------------------- */

const char *arch_env(const char *name)
{
    return secure_getenv(name);
}

uint64_t arch_entropy(void)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) == sizeof bits)
        return bits;
    /* Early in the boot of a machine: values that differ from run to run. */
    return ((uint64_t)arch_clock_ns() * UINT64_C(0x9E3779B97F4A7C15)) ^ ((uint64_t)getpid() << 32) ^ (uintptr_t)&bits;
}

/* A time limit, since the reader may be a strand of the thread that waits here. */
#define WRITE_NS INT64_C(1000000000)
enum { WRITE_POLL_MS = 100 };

int64_t arch_write(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    int64_t since = arch_clock_ns(); /* the last time something was written */
    while (size > 0) {
        ssize_t written = write(fd, at, size);
        if (written >= 0) {
            at += written;
            size -= (size_t)written;
            since = arch_clock_ns();
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            if (arch_clock_ns() - since > WRITE_NS)
                return -EAGAIN;
            (void)poll(&wait, 1, WRITE_POLL_MS);
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}
