/*
 * For how long something has been so, where no timer keeps the clock going. The system may stop a thread between two
 * looks at the clock, so each measurement is repeated until one of them is right: a clock that is not refreshed is
 * wrong every time.
 */
#define SUITE dump_since
#include "test.h"

#include "strand/io.h"
#include "strand/sync.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define BUSY_MS 200
#define SLACK_MS 50

static double ms_from(int64_t begin)
{
    return (double)(strand_now().ns - begin) / 1e6;
}

/* The milliseconds that stand after the words. */
static double ms_after(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    CHECK(at != NULL);
    return atof(at + strlen(words));
}

static strand_event never;
static bool right;

static void *wait_for_ever(void *arg)
{
    strand_event_wait(&never);
    return arg;
}

static void *yield_often(void *arg)
{
    int64_t begin = strand_now().ns;
    STRAND_SCOPE(scope);
    while (ms_from(begin) < BUSY_MS)
        strand_yield();
    int64_t since = strand_now().ns;
    for (int i = 0; i < 1000; i++)
        strand_yield();
    strand_spawn(scope, wait_for_ever, NULL);
    while (!strstr(test_dump(), "waits for event"))
        strand_yield();
    double printed = ms_after(strstr(test_dump(), "waits for event"), "since ");
    right = printed <= ms_from(since) + SLACK_MS;
    strand_scope_cancel(scope, NULL);
    return arg;
}

static void some_attempt_is_right(void *(*fn)(void *arg))
{
    right = false;
    while (!right)
        test_run(fn, NULL);
}

TEST_REAL(a_strand_that_has_just_blocked_is_not_said_to_have_been_so_for_long)
{
    some_attempt_is_right(yield_often);
}

static int ends[2];
static _Atomic int64_t written;

static void *write_later(void *arg)
{
    struct timespec pause = {.tv_nsec = BUSY_MS * 1000000L};
    CHECK_EQ(nanosleep(&pause, NULL), 0);
    written = strand_now().ns;
    CHECK_EQ(write(ends[1], "x", 1), 1);
    return arg;
}

static void *read_and_notify(void *arg)
{
    char byte, text[8192] = "";
    int report[2];
    pthread_t thread;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(pipe(report), 0);
    CHECK_EQ(pthread_create(&thread, NULL, write_later, NULL), 0);
    CHECK_EQ(strand_read(ends[0], &byte, 1), 1);
    CHECK_EQ(strand_busy_print((strand_pool){{0}}, report[1]), 0);
    double most = ms_from(written) + SLACK_MS;
    CHECK(read(report[0], text, sizeof text - 1) > 0);
    right = ms_after(text, "it has been busy for ") <= most;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(strand_close(ends[i]), 0);
        CHECK_EQ(close(report[i]), 0);
    }
    return arg;
}

TEST_REAL(a_thread_that_was_idle_is_not_said_to_have_been_busy)
{
    some_attempt_is_right(read_and_notify);
}
