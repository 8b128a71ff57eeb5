/*
 * What src/arch does when the system refuses something: it says so by the code, and leaves nothing behind.
 */
#include "arch_refuse.h"

#include "arch/state.h"
#include "strand.h"
#include "strand/pool.h"

#if !SANITIZED

DOOR(int, madvise, (void *at, size_t size, int advice), (at, size, advice), -1)
DOOR(int, mprotect, (void *at, size_t size, int rights), (at, size, rights), -1)
DOOR(void *, mmap, (void *at, size_t size, int rights, int flags, int fd, off_t offset),
     (at, size, rights, flags, fd, offset), MAP_FAILED)
DOOR(int, epoll_create1, (int flags), (flags), -1)
DOOR(int, epoll_ctl, (int epoll, int what, int fd, struct epoll_event *event), (epoll, what, fd, event), -1)
DOOR(int, eventfd, (unsigned count, int flags), (count, flags), -1)
DOOR(int, timerfd_create, (clockid_t clock, int flags), (clock, flags), -1)
DOOR(ssize_t, write, (int fd, const void *bytes, size_t size), (fd, bytes, size), -1)
DOOR(int, poll, (struct pollfd * fds, nfds_t count, int ms), (fds, count, ms), -1)
DOOR(ssize_t, getrandom, (void *bytes, size_t size, unsigned flags), (bytes, size, flags), -1)
DOOR(int, sched_getaffinity, (pid_t pid, size_t size, cpu_set_t *set), (pid, size, set), -1)
DOOR(int, sigaltstack, (const stack_t *new, stack_t *old), (new, old), -1)
DOOR(int, sigaction, (int number, const struct sigaction *new, struct sigaction *old), (number, new, old), -1)
DOOR(int, pthread_create, (pthread_t * id, const pthread_attr_t *how, void *(*fn)(void *), void *arg),
     (id, how, fn, arg), refusal.error)
DOOR(int, __register_atfork, (void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object),
     (prepare, parent, child, object), refusal.error)
DOOR(void *, dlopen, (const char *name, int flags), (name, flags), NULL)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

void *malloc(size_t size)
{
    return refused("malloc") ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return refused("calloc") ? NULL : __libc_calloc(count, size);
}

/* The calls that are made by number, under names of their own. */
long syscall(long number, ...)
{
    static __typeof__(&syscall) real;
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if ((number == SYS_mmap && refused("mmap by number")) || (number == SYS_membarrier && refused("membarrier")) ||
        (number == SYS_process_madvise && refused("process_madvise")))
        return -1;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int lines_of(const char *path)
{
    FILE *file = fopen(path, "r");
    int lines = 0;
    for (int c; file && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}

static long pages_mapped(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;
    if (!file || fscanf(file, "%ld", &pages) != 1)
        failures++;
    if (file)
        fclose(file);
    return pages;
}

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* ---- the start ------------------------------------------------------------------------------- */

/* Refused, and granted the next time. */
static void check_start(const char *name, int skip, int error, int expected)
{
    refuse(name, skip, ALWAYS, error);
    CHECK_EQUAL(arch_process_start(), expected);
    CHECK(was_refused());
    CHECK_EQUAL(arch_process_start(), 0);
    void *chunk;
    CHECK_EQUAL(arch_chunk_take(0, &chunk), 0);
    CHECK_EQUAL(*(uint64_t *)chunk, 0);
}

static void no_range(void)
{
    check_start("mmap by number", 0, ENOMEM, -ENOMEM);
}

static void no_list(void)
{
    long before = pages_mapped();
    refuse("mmap", 0, 1, ENOMEM);
    CHECK_EQUAL(arch_process_start(), -ENOMEM);
    CHECK(was_refused());
    CHECK(pages_mapped() - before < (long)(ARCH_CHUNK / arch_page_size()));
    CHECK_EQUAL(arch_process_start(), 0);
}

static void no_fork_handlers(void)
{
    check_start("__register_atfork", 0, ENOMEM, -ENOMEM);
}

static void half_a_range(void)
{
    refuse("mmap by number", 0, 1, ENOMEM);
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK(was_refused());
    CHECK_EQUAL(arch_handles_size, arch_san_handles() / 2);
}

static void *fibonacci(void *number)
{
    intptr_t n = (intptr_t)number;
    if (n < 2)
        return number;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, fibonacci, (void *)(n - 1));
    intptr_t rest = (intptr_t)fibonacci((void *)(n - 2));
    return (void *)((intptr_t)strand_join(child) + rest);
}

/* The run queues then do with fences of their own. */
static void no_membarrier(void)
{
    refuse("membarrier", 0, ALWAYS, ENOSYS);
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK(!arch_membarrier_works);
    strand_options options = {.size = sizeof options, .threads = 4};
    for (int i = 0; i < 20; i++)
        CHECK_EQUAL((intptr_t)strand_run(&options, fibonacci, (void *)15), 610);
    CHECK(was_refused());
}

static void check_trace_without(const char *name, int skip)
{
    void *ips[16];
    char name_of[64];
    uintptr_t offset;
    refuse(name, skip, ALWAYS, ENOENT);
    CHECK_EQUAL(arch_process_start(), 0);
    CHECK(was_refused());
    CHECK(arch_state.tracer == NULL);
    CHECK(arch_trace(ips, 16) >= 2);
    (void)arch_symbol(ips[0], name_of, sizeof name_of, &offset);
    CHECK(strstr(name_of, "arch_refused") != NULL || strstr(name_of, "trace") != NULL);
}

static void no_libunwind(void)
{
    check_trace_without("dlopen", 0);
}

static void half_of_libunwind(void)
{
    check_trace_without("dlopen", 1);
}

static void no_tracer(void)
{
    check_trace_without("calloc", 0);
}

/* ---- chunks and mappings --------------------------------------------------------------------- */

static void a_chunk_that_can_t_be_opened_is_had_later(void)
{
    enum { CHUNKS = 32 };
    void *chunk;
    int taken = 0, error = 0;
    refuse("mprotect", 1, ALWAYS, ENOMEM);
    while (taken < CHUNKS && (error = arch_chunk_take(0, &chunk)) == 0)
        taken++;
    CHECK_EQUAL(error, -ENOMEM);
    CHECK(was_refused());
    CHECK_EQUAL(arch_chunk_take(0, &chunk), 0);
}

static void a_chunk_whose_pages_stay_is_zero_all_the_same(void)
{
    void *chunk, *again;
    CHECK_EQUAL(arch_chunk_take(0, &chunk), 0);
    memset(chunk, 1, ARCH_CHUNK);
    refuse("madvise", 0, 1, EINVAL);
    arch_chunk_give(0, chunk, ARCH_CHUNK);
    CHECK(was_refused());
    CHECK_EQUAL(arch_chunk_take(0, &again), 0);
    CHECK(again == chunk && *(char *)chunk == 0 && ((char *)chunk)[ARCH_CHUNK - 1] == 0);
}

static void locked_pages_are_discarded(void)
{
    size_t page = arch_page_size();
    void *base;
    CHECK_EQUAL(arch_map(page, &base), 0);
    memset(base, 1, page);
    if (mlock(base, page) == 0) {
        arch_discard(base, page);
        CHECK_EQUAL(*(char *)base, 0);
    }
    arch_unmap(base, page);
}

static int guard_at(void *page)
{
    int guard = arch_guard_install(page, true);
    if (guard > 0)
        arch_guard_remove(page, guard);
    return guard;
}

/* A call that was disturbed is made again; one that is refused is made by the other way, and at last not at all. */
static void guards_fall_back(void)
{
    void *page;
    CHECK_EQUAL(arch_map(4 * arch_page_size(), &page), 0);
    int usual = guard_at(page);
    if (usual == ARCH_GUARD_PAGE) {
        refuse("madvise", 0, 2, EINTR);
        CHECK_EQUAL(guard_at(page), ARCH_GUARD_PAGE);
        CHECK(was_refused());
        refuse("madvise", 0, 2, EAGAIN);
        CHECK_EQUAL(guard_at(page), ARCH_GUARD_PAGE);
        CHECK(was_refused());
        refuse("madvise", 0, 1, ENOMEM);
        CHECK_EQUAL(guard_at(page), ARCH_GUARD_MAPPING);
        CHECK(was_refused());
        refuse("process_madvise", 0, 1, ENOSYS);
        CHECK_EQUAL(arch_guards_install(page, arch_page_size(), 4), 0);
        CHECK(was_refused());
        CHECK_EQUAL(arch_guards_install(page, arch_page_size(), 1), 0);
    }
    arch_unmap(page, 4 * arch_page_size());
}

static void guards_of_an_old_kernel(void)
{
    void *page;
    CHECK_EQUAL(arch_map(arch_page_size(), &page), 0);
    refuse("madvise", 0, 1, EINVAL);
    CHECK_EQUAL(guard_at(page), ARCH_GUARD_MAPPING);
    CHECK(was_refused());
    CHECK_EQUAL(guard_at(page), ARCH_GUARD_MAPPING); /* it is not asked again */
    int64_t before = arch_state.guard_count;
    refuse("mprotect", 0, 1, ENOMEM);
    CHECK_EQUAL(guard_at(page), -ENOMEM);
    CHECK(was_refused());
    CHECK_EQUAL(arch_state.guard_count, before);
    arch_unmap(page, arch_page_size());
}

/* ---- faults ---------------------------------------------------------------------------------- */

static bool no_report(void *address, void *ucontext)
{
    (void)address, (void)ucontext;
    return false;
}

static void handlers_that_are_refused_are_not_there(void)
{
    for (int skip = 0; skip < 4; skip++) {
        struct sigaction segv[2], bus[2];
        sigaction(SIGSEGV, NULL, &segv[0]);
        sigaction(SIGBUS, NULL, &bus[0]);
        refuse("sigaction", skip, 1, EINVAL);
        CHECK_EQUAL(arch_signals_enter(no_report), -EINVAL);
        CHECK(was_refused());
        sigaction(SIGSEGV, NULL, &segv[1]);
        sigaction(SIGBUS, NULL, &bus[1]);
        CHECK(segv[0].sa_handler == segv[1].sa_handler && bus[0].sa_handler == bus[1].sa_handler);
        CHECK_EQUAL(arch_signals_enter(no_report), 0);
        arch_signals_leave();
    }
}

static void a_signal_stack_that_is_refused_leaves_nothing(void)
{
    void *memory = &memory;
    refuse("mmap", 0, 1, ENOMEM);
    CHECK_EQUAL(arch_signals_thread_enter(&memory), -ENOMEM);
    CHECK(was_refused());
    void *entered;
    CHECK_EQUAL(arch_signals_thread_enter(&entered), 0);
    arch_signals_thread_leave(entered); /* one stays for the next */
    int before = lines_of("/proc/self/maps");
    refuse("sigaltstack", 0, 1, EPERM);
    CHECK_EQUAL(arch_signals_thread_enter(&memory), -EPERM);
    CHECK(was_refused() && memory == &memory);
    CHECK_EQUAL(lines_of("/proc/self/maps"), before);
}

static void a_signal_s_record_that_is_refused_leaves_nothing(void)
{
    static const struct {
        const char *name;
        int skip, error;
    } ways[] = {{"eventfd", 0, EMFILE},
                {"calloc", 0, ENOMEM},
                {"sigaction", 0, EINVAL},
                {"sigaction", 1, EINVAL},
                {"sigaction", 2, EINVAL}};
    const uint64_t both = UINT64_C(1) << (SIGUSR1 - 1) | UINT64_C(1) << (SIGUSR2 - 1);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct arch_watch *watch;
        struct sigaction now;
        int before = descriptors();
        refuse(ways[i].name, ways[i].skip, 1, ways[i].error);
        CHECK_EQUAL(arch_watch_open(both, NULL, &watch), -ways[i].error);
        CHECK(was_refused());
        CHECK_EQUAL(descriptors(), before);
        sigaction(SIGUSR1, NULL, &now);
        CHECK(now.sa_handler == SIG_DFL);
    }
}

/* ---- the poller, threads, and the rest ------------------------------------------------------- */

static void a_poller_that_is_refused_leaves_nothing(void)
{
    static const struct {
        const char *name;
        int skip, error;
    } ways[] = {{"epoll_create1", 0, EMFILE},
                {"eventfd", 0, ENFILE},
                {"timerfd_create", 0, EMFILE},
                {"epoll_ctl", 0, ENOSPC},
                {"epoll_ctl", 1, ENOMEM}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct arch_poller poller;
        int before = descriptors();
        refuse(ways[i].name, ways[i].skip, 1, ways[i].error);
        CHECK_EQUAL(arch_poller_open(&poller), -ways[i].error);
        CHECK(was_refused());
        CHECK(poller.epoll == -1 && poller.kick == -1 && poller.timer == -1);
        CHECK_EQUAL(descriptors(), before);
    }
}

static void a_kick_comes_through_though_disturbed(void)
{
    struct arch_poller poller;
    struct arch_event event;
    int ends[2];
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(arch_poller_open(&poller), 0);
    refuse("write", 0, 2, EINTR);
    arch_poller_kick(&poller);
    CHECK(was_refused());
    CHECK_EQUAL(arch_poller_wait(&poller, &event, 1, ARCH_FOREVER), 0);
    CHECK_EQUAL(arch_poller_remove(&poller, ends[0]), -ENOENT);
    refuse("epoll_ctl", 0, 1, ENOSPC);
    CHECK_EQUAL(arch_poller_add(&poller, ends[0], 1), -ENOSPC);
    CHECK(was_refused());
    arch_poller_close(&poller);
    close(ends[0]);
    close(ends[1]);
}

static void *nothing(void *arg)
{
    return arg;
}

static void a_thread_that_is_refused_is_not_there(void)
{
    arch_thread thread;
    refuse("malloc", 0, 1, ENOMEM);
    CHECK_EQUAL(arch_thread_start(&thread, nothing, NULL, "none"), -ENOMEM);
    CHECK(was_refused());
    refuse("pthread_create", 0, 1, EAGAIN);
    CHECK_EQUAL(arch_thread_start(&thread, nothing, NULL, "none"), -EAGAIN);
    CHECK(was_refused());
    CHECK_EQUAL(arch_thread_start(&thread, nothing, NULL, "one"), 0);
    arch_thread_join(thread);
}

static void processors_that_can_t_be_counted_are_three(void)
{
    int usual = arch_cpus_allowed();
    refuse("sched_getaffinity", 0, 2, EINVAL); /* there are more than the set has room for */
    CHECK_EQUAL(arch_cpus_allowed(), usual);
    CHECK(was_refused());
    refuse("sched_getaffinity", 0, ALWAYS, EINVAL);
    CHECK_EQUAL(arch_cpus_allowed(), 3);
    CHECK(was_refused());
    refuse("sched_getaffinity", 0, 1, ENOSYS);
    CHECK_EQUAL(arch_cpus_allowed(), 3);
    CHECK(was_refused());
    refuse("calloc", 0, 1, ENOMEM);
    CHECK_EQUAL(arch_cpus_allowed(), 3);
    CHECK(was_refused());
}

static void chance_without_entropy_is_still_two_things(void)
{
    refuse("getrandom", 0, ALWAYS, EAGAIN);
    uint64_t first = arch_entropy();
    arch_nap(1000);
    CHECK(arch_entropy() != first);
    CHECK(was_refused());
}

static void writing_goes_on_and_says_when_it_can_t(void)
{
    int ends[2];
    char bytes[8] = "";
    CHECK_EQUAL(pipe(ends), 0);
    refuse("write", 0, 2, EINTR);
    CHECK_EQUAL(arch_write(ends[1], "abc", 3), 0);
    CHECK(was_refused());
    refuse("write", 0, 1, EAGAIN); /* a pipe that is full by now, and then is not */
    CHECK_EQUAL(arch_write(ends[1], "de", 2), 0);
    CHECK(was_refused());
    refuse("write", 0, 1, ENOSPC);
    CHECK_EQUAL(arch_write(ends[1], "f", 1), -ENOSPC);
    CHECK(was_refused());
    CHECK_EQUAL(read(ends[0], bytes, sizeof bytes), 5);
    CHECK(strcmp(bytes, "abcde") == 0);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    /* Each in a process where nothing has been started yet. */
    CHECK_CHILD(no_range);
    CHECK_CHILD(no_list);
    CHECK_CHILD(no_fork_handlers);
    CHECK_CHILD(half_a_range);
    CHECK_CHILD(no_membarrier);
    CHECK_CHILD(no_libunwind);
    CHECK_CHILD(half_of_libunwind);
    CHECK_CHILD(no_tracer);
    CHECK_CHILD(guards_of_an_old_kernel);
    CHECK_EQUAL(arch_process_start(), 0);
    a_chunk_that_can_t_be_opened_is_had_later();
    a_chunk_whose_pages_stay_is_zero_all_the_same();
    locked_pages_are_discarded();
    guards_fall_back();
    handlers_that_are_refused_are_not_there();
    a_signal_stack_that_is_refused_leaves_nothing();
    CHECK_CHILD(a_signal_s_record_that_is_refused_leaves_nothing);
    a_poller_that_is_refused_leaves_nothing();
    a_kick_comes_through_though_disturbed();
    a_thread_that_is_refused_is_not_there();
    processors_that_can_t_be_counted_are_three();
    chance_without_entropy_is_still_two_things();
    writing_goes_on_and_says_when_it_can_t();
    return failures != 0;
}

#else

/* A sanitizer has definitions of its own. */
int main(void)
{
    return 0;
}

#endif
