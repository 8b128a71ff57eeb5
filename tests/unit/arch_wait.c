/*
 * Futex, poller, clock, threads: what is waited for comes, in time, and kicks are never lost.
 */
#include "arch_check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>

#define MS INT64_C(1000000)

static void ticks_have_a_constant_rate(void)
{
    CHECK(arch_ticks_per_ms() > 0);
    double worst = 1e9;
    while (worst > 0.05) { /* a busy machine disturbs most of them */
        int64_t start = arch_clock_ns();
        uint64_t first = arch_ticks();
        while (arch_clock_ns() - start < 2 * MS)
            ;
        uint64_t last = arch_ticks();
        double expected = (double)(arch_clock_ns() - start) / MS * (double)arch_ticks_per_ms();
        double off = (double)(last - first) / expected - 1;
        off = off < 0 ? -off : off;
        worst = off < worst ? off : worst;
    }
}

/* contract 9.11 */
static void a_futex_wait_ends_at_its_deadline(void)
{
    _Atomic uint32_t word = 5;
    int64_t start = arch_clock_ns();
    CHECK_EQUAL(arch_futex_wait(&word, 4, ARCH_FOREVER), 0); /* it is not 4 */
    CHECK_EQUAL(arch_futex_wait(&word, 5, start), -ETIMEDOUT);
    CHECK_EQUAL(arch_futex_wait(&word, 5, -1), -ETIMEDOUT);
    int result;
    while ((result = arch_futex_wait(&word, 5, start + 20 * MS)) == 0)
        ;
    CHECK_EQUAL(result, -ETIMEDOUT);
    CHECK(arch_clock_ns() - start >= 20 * MS);
    CHECK_EQUAL(arch_futex_wake(&word, 1), 0);
}

static _Atomic uint32_t ball;

static void *return_ball(void *arg)
{
    for (uint32_t i = 0; i < 1000; i++) {
        while (atomic_load(&ball) != 2 * i + 1)
            arch_futex_wait(&ball, 2 * i, ARCH_FOREVER);
        atomic_store(&ball, 2 * i + 2);
        arch_futex_wake(&ball, 1);
    }
    return arg;
}

static void a_futex_wakes_another_thread(void)
{
    arch_thread thread;
    CHECK_EQUAL(arch_thread_start(&thread, return_ball, NULL, "a name of many letters"), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        atomic_store(&ball, 2 * i + 1);
        arch_futex_wake(&ball, 1);
        while (atomic_load(&ball) != 2 * i + 2)
            arch_futex_wait(&ball, 2 * i + 1, ARCH_FOREVER);
    }
    arch_thread_join(thread);
}

static void a_poller_reports_descriptors(void)
{
    struct arch_poller poller;
    struct arch_event events[4];
    int ends[2];
    CHECK_EQUAL(arch_poller_open(&poller), 0);
    CHECK_EQUAL(pipe(ends), 0);
    struct epoll_event watch = {.events = EPOLLIN, .data.u64 = 77};
    CHECK_EQUAL(epoll_ctl(poller.epoll, EPOLL_CTL_ADD, ends[0], &watch), 0);
    CHECK_EQUAL(arch_poller_wait(&poller, events, 4, 0), 0);
    CHECK_EQUAL(arch_write(ends[1], "x", 1), 0);
    arch_poller_kick(&poller);
    CHECK_EQUAL(arch_poller_wait(&poller, events, 4, ARCH_FOREVER), 1);
    CHECK_EQUAL(events[0].data, 77);
    CHECK(events[0].events & EPOLLIN);
    close(ends[0]);
    close(ends[1]);
    arch_poller_close(&poller);
    CHECK_EQUAL(poller.epoll, -1);
}

/* With and without the poller's own: a kick, and its deadline, that nobody has waited for. */
static void a_poller_says_whether_there_are_events_and_keeps_them(void)
{
    struct arch_poller poller;
    struct arch_event events[4];
    int ends[2];
    CHECK_EQUAL(arch_poller_open(&poller), 0);
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_EQUAL(arch_poller_add(&poller, ends[0], 77), 0);
    while (arch_poller_wait(&poller, events, 4, arch_clock_ns() + MS) > 0)
        continue; /* what holds at the beginning */
    arch_poller_kick(&poller);
    CHECK(!arch_poller_has_events(&poller));
    CHECK_EQUAL(arch_poller_wait(&poller, events, 4, arch_clock_ns() + 20 * MS), 0); /* the kick */
    CHECK_EQUAL(arch_poller_wait(&poller, events, 4, arch_clock_ns() + 20 * MS), 0);
    CHECK(!arch_poller_has_events(&poller)); /* nor its timer, which has gone off */
    CHECK_EQUAL(arch_write(ends[1], "x", 1), 0);
    CHECK(arch_poller_has_events(&poller));
    CHECK(arch_poller_has_events(&poller));
    int count;
    while ((count = arch_poller_wait(&poller, events, 4, ARCH_FOREVER)) == 0)
        continue;
    CHECK(count == 1 && events[0].data == 77);
    CHECK(!arch_poller_has_events(&poller));
    arch_poller_kick(&poller); /* it has ears still */
    int64_t start = arch_clock_ns();
    while (arch_poller_wait(&poller, events, 4, start + 5 * MS) == 0 && arch_clock_ns() < start + 5 * MS)
        continue;
    arch_poller_kick(&poller);
    CHECK_EQUAL(arch_poller_wait(&poller, events, 4, ARCH_FOREVER), 0);
    close(ends[0]);
    close(ends[1]);
    arch_poller_close(&poller);
}

static void a_poller_waits_until_its_deadline(void)
{
    struct arch_poller poller;
    struct arch_event event;
    CHECK_EQUAL(arch_poller_open(&poller), 0);
    int64_t first = arch_clock_ns();
    for (int i = 1; i <= 5; i++) {
        int64_t deadline = first + i * 10 * MS;
        CHECK_EQUAL(arch_poller_wait(&poller, &event, 1, deadline), 0);
        CHECK(arch_clock_ns() >= deadline);
    }
    CHECK_EQUAL(arch_poller_wait(&poller, &event, 1, first), 0);
    CHECK_EQUAL(arch_poller_wait(&poller, &event, 1, -5), 0);
    CHECK_EQUAL(arch_poller_wait(&poller, &event, 1, 0), 0);
    arch_poller_close(&poller);
}

/* An earlier deadline, given up by a kick, does not end a later wait. */
static void a_given_up_deadline_is_forgotten(void)
{
    struct arch_poller poller;
    struct arch_event event;
    CHECK_EQUAL(arch_poller_open(&poller), 0);
    int64_t start = arch_clock_ns();
    arch_poller_kick(&poller);
    CHECK_EQUAL(arch_poller_wait(&poller, &event, 1, start + 5 * MS), 0);
    CHECK_EQUAL(arch_poller_wait(&poller, &event, 1, start + 40 * MS), 0);
    CHECK(arch_clock_ns() - start >= 40 * MS);
    arch_poller_close(&poller);
}

static void *kick_later(void *arg)
{
    struct arch_poller *poller = arg;
    _Atomic uint32_t never = 0;
    arch_futex_wait(&never, 0, arch_clock_ns() + 5 * MS);
    arch_poller_kick(poller);
    return NULL;
}

static void a_kick_ends_the_present_or_the_next_wait(void)
{
    struct arch_poller poller;
    struct arch_event event;
    CHECK_EQUAL(arch_poller_open(&poller), 0);
    arch_poller_kick(&poller);
    arch_poller_kick(&poller);
    CHECK_EQUAL(arch_poller_wait(&poller, &event, 1, ARCH_FOREVER), 0);
    for (int i = 0; i < 3; i++) {
        arch_thread thread;
        CHECK_EQUAL(arch_thread_start(&thread, kick_later, &poller, "kick"), 0);
        CHECK_EQUAL(arch_poller_wait(&poller, &event, 1, ARCH_FOREVER), 0);
        arch_thread_join(thread);
    }
    int64_t start = arch_clock_ns(); /* all kicks are used up */
    CHECK_EQUAL(arch_poller_wait(&poller, &event, 1, start + 10 * MS), 0);
    CHECK(arch_clock_ns() - start >= 10 * MS);
    arch_poller_close(&poller);
}

static void *read_name(void *arg)
{
    pthread_getname_np(pthread_self(), arg, 16);
    return NULL;
}

static void threads_have_names_and_numbers(void)
{
    char name[16] = "";
    arch_thread thread;
    CHECK_EQUAL(arch_thread_start(&thread, read_name, name, "a name of many letters"), 0);
    arch_thread_join(thread);
    CHECK(strcmp(name, "a name of many ") == 0);
    CHECK_EQUAL(arch_thread_id(), getpid());
    CHECK(arch_cpus_allowed() >= 1);
}

static void *drain(void *arg)
{
    int fd = *(int *)arg;
    size_t total = 0;
    char bytes[4096];
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;)
        total += (size_t)got;
    return (void *)total;
}

/* contract 9.11 */
static void a_write_is_whole_or_an_error(void)
{
    enum { SIZE = 1 << 20 };
    int ends[2];
    CHECK_EQUAL(pipe(ends), 0);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    pthread_t reader;
    CHECK_EQUAL(pthread_create(&reader, NULL, drain, &ends[0]), 0);
    char *bytes = calloc(1, SIZE);
    CHECK_EQUAL(arch_write(ends[1], bytes, SIZE), 0);
    free(bytes);
    close(ends[1]);
    void *total;
    pthread_join(reader, &total);
    CHECK_EQUAL((size_t)total, SIZE);
    close(ends[0]);
    CHECK_EQUAL(arch_write(ends[0], "x", 1), -EBADF);
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    ticks_have_a_constant_rate();
    a_futex_wait_ends_at_its_deadline();
    a_futex_wakes_another_thread();
    a_poller_reports_descriptors();
    a_poller_says_whether_there_are_events_and_keeps_them();
    a_poller_waits_until_its_deadline();
    a_given_up_deadline_is_forgotten();
    a_kick_ends_the_present_or_the_next_wait();
    threads_have_names_and_numbers();
    a_write_is_whole_or_an_error();
    CHECK(arch_entropy() != arch_entropy());
    CHECK(arch_env("STRAND_NOBODY_SETS_THIS") == NULL);
    if (arch_membarrier_works)
        arch_membarrier();
    return failures != 0;
}
