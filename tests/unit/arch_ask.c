/*
 * Where another thread stands: one that waits in the system is found without being disturbed, one that computes answers
 * a signal. What may be gone is read all the same. Threads say how long they ran, and were kept from that.
 */
#include "arch_check.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#define MS INT64_C(1000000)
enum { MOST = 32, ROOM = 64 * 1024 };

/* A thread that publishes its id, then works until `stop` is set. */
static struct {
    _Atomic uint32_t id;
    _Atomic int stop;
    int ends[2];
    uintptr_t top; /* of its stack */
    int polled;
} other;

static char copy[ROOM];

__attribute__((no_sanitize("address", "thread", "undefined"))) static NOINLINE void compute(void)
{
    while (!*(volatile _Atomic int *)&other.stop)
        continue;
}

static NOINLINE void wait_in_poll(void)
{
    struct pollfd wait = {.fd = other.ends[0], .events = POLLIN};
    other.polled = poll(&wait, 1, 60000);
    __asm__ volatile("");
}

static void *live(void *computes)
{
    int here;
    other.top = (uintptr_t)&here + 4096;
    arch_set_self(&other);
    other.id = arch_thread_id();
    if (computes)
        compute();
    else
        wait_in_poll();
    return NULL;
}

static arch_thread begin(bool computes)
{
    arch_thread thread;
    other.id = 0;
    other.stop = 0;
    CHECK_EQUAL(pipe(other.ends), 0);
    CHECK_EQUAL(arch_thread_start(&thread, live, computes ? &other : NULL, "other"), 0);
    while (!other.id)
        arch_nap(MS);
    return thread;
}

static void end(arch_thread thread)
{
    other.stop = 1;
    CHECK_EQUAL(write(other.ends[1], "x", 1), 1);
    arch_thread_join(thread);
    close(other.ends[0]);
    close(other.ends[1]);
}

/* In the handler of a signal too: then TSan knows of no order. */
__attribute__((no_sanitize("thread"))) static uintptr_t top(void *self, uintptr_t sp, struct arch_asked *asked)
{
    asked->tag = self == &other;
    return sp < other.top && other.top - sp < 64 * 1024 ? other.top : 0;
}

static uintptr_t nowhere(void *self, uintptr_t sp, struct arch_asked *asked)
{
    (void)self, (void)sp, (void)asked;
    return 0;
}

static bool has(void *const *ips, size_t count, const char *function)
{
    char name[64];
    uintptr_t offset;
    for (size_t i = 0; i < count; i++)
        if (arch_symbol(ips[i], name, sizeof name, &offset) && !strcmp(name, function))
            return true;
    return false;
}

static void one_that_waits_is_found_and_waits_on(void)
{
    arch_thread thread = begin(false);
    void *ips[MOST];
    struct arch_asked asked = {.top = top, .copy = copy, .room = sizeof copy};
    while (arch_ask_waiting(other.id, &other, &asked) < 0) /* it may be on its way */
        arch_nap(MS);
    CHECK(asked.waits && asked.tag && asked.end == other.top && asked.size > 0);
    size_t count = arch_trace_asked(&asked, ips, MOST);
    CHECK(has(ips, count, "wait_in_poll")); /* of strands all the others too: tests/spec/watchdog.c */
    asked.top = nowhere;
    CHECK_EQUAL(arch_ask_waiting(other.id, &other, &asked), -EAGAIN);
    CHECK(arch_thread_cpu_ns(other.id) >= 0);
    end(thread);
    CHECK_EQUAL(other.polled, 1);
}

static void one_that_computes_answers_a_signal(void)
{
    arch_thread thread = begin(true);
    void *ips[MOST];
    struct arch_asked asked = {.top = top, .copy = copy, .room = sizeof copy};
    CHECK_EQUAL(arch_ask_waiting(other.id, &other, &asked), -EAGAIN);
    CHECK_EQUAL(arch_ask(other.id, &asked, 20000 * MS), 0);
    CHECK(!asked.waits && asked.tag && asked.end == other.top);
    size_t count = arch_trace_asked(&asked, ips, MOST);
    CHECK(has(ips, count, "compute"));
    CHECK(has(ips, count, "live"));
    int64_t before = arch_thread_cpu_ns(other.id);
    while (arch_thread_cpu_ns(other.id) < before + 5 * MS)
        arch_nap(MS);
    end(thread);
}

static void one_that_is_gone_is_not_found(void)
{
    struct arch_asked asked = {.top = top, .copy = copy, .room = sizeof copy};
    arch_thread thread = begin(true);
    uint32_t id = other.id;
    end(thread);
    CHECK_EQUAL(arch_ask_waiting(id, &other, &asked), -EAGAIN);
    while (arch_thread_cpu_ns(id) >= 0) /* the system takes a thread away some time after it could be joined */
        arch_nap(MS);
}

static void memory_that_may_be_gone_is_read(void)
{
    size_t page = arch_page_size();
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), to[64];
    CHECK(two != MAP_FAILED);
    memset(two, 'a', 2 * page);
    memcpy(two + page - 4, "text", 5);
    CHECK(arch_peek(to, two + page - 2, 4) && !memcmp(to, "xt\0a", 4));
    CHECK(arch_peek_text(to, sizeof to, two + page - 4) && !strcmp(to, "text"));
    CHECK(arch_peek_text(to, 4, two + page - 4) && !strcmp(to, "tex"));
    munmap(two + page, page);
    CHECK(!arch_peek(to, two + page - 2, 4));
    CHECK(arch_peek(to, two + page - 2, 2) && !memcmp(to, "xt", 2));
    CHECK(!arch_peek_text(to, sizeof to, two + page - 4)); /* its end is gone */
    two[page - 1] = '\0';
    CHECK(arch_peek_text(to, sizeof to, two + page - 4) && !strcmp(to, "tex"));
    munmap(two, page);
    CHECK(!arch_peek_text(to, sizeof to, two));
}

/* Two that want to run on one processor: each of them has to wait. */
static void *compete(void *arg)
{
    compute();
    return arg;
}

static void a_thread_knows_how_long_it_was_kept_from_running(void)
{
    cpu_set_t before, one;
    arch_thread thread;
    int64_t first = arch_thread_delayed_ns();
    if (first < 0)
        return; /* the system does not say */
    CHECK_EQUAL(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &before) && !CPU_COUNT(&one))
            CPU_SET(cpu, &one);
    CHECK_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
    other.stop = 0;
    CHECK_EQUAL(arch_thread_start(&thread, compete, NULL, "other"), 0);
    while (arch_thread_delayed_ns() < first + MS)
        continue;
    other.stop = 1;
    arch_thread_join(thread);
    CHECK_EQUAL(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void)
{
    CHECK_EQUAL(arch_process_start(), 0);
    one_that_waits_is_found_and_waits_on();
    one_that_computes_answers_a_signal();
    one_that_is_gone_is_not_found();
    memory_that_may_be_gone_is_read();
    a_thread_knows_how_long_it_was_kept_from_running();
    return failures != 0;
}
