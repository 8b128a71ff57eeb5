/*
 * The tests of tests/spec/file.c with calls that the kernel makes, by io_uring, and what concerns its rings. (Under
 * seeds threads make the calls.)
 */
#define _GNU_SOURCE
#define SUITE file_uring
#define FILES "uring"
#define BY_KERNEL
#define ONE_SEED_IN 50 /* they are played as those of file.c are */
#include "file.c"

#include "strand/pool.h"
#include "strand/sync.h"

#include <pthread.h>

/* The other tests hold with threads as well. */
#define NEEDS_RINGS()                                                                                                  \
    do {                                                                                                               \
        if (!has_rings()) {                                                                                            \
            fprintf(stderr, "skipped: there is no io_uring here\n");                                                   \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

/* On one thread: the first call has entered the ring without success; the second is interrupted by the next strand that
 * runs. Returns whether it ended at once: no pass of the thread has come between, which would have shown it to the
 * kernel. */
static bool interrupt_before_it_begins(void)
{
    PLACE(place);
    struct job reader = job_on(&place), writer = reader;
    STRAND_SCOPE(scope);
    strand first = start_kept(scope, read_and_go_on, &reader);
    strand second = strand_spawn(scope, write_and_go_on, &writer);
    strand_yield();
    strand_cancel(second, NULL);
    strand_yield();
    bool at_once = strand_ended(second);
    release();
    CHECK(test_join_interrupted(second));
    strand_join(first);
    CHECK_EQ(strand_close(reader.fd), 0);
    check_file(&place, "a", writer.result ? "HELLO" : "hello");
    CHECK(!at_once || writer.result == 0);
    return at_once;
}

static void *interrupt_until_one_has_not_begun(void *arg)
{
    while (!interrupt_before_it_begins())
        ;
    return arg;
}

TEST_REAL(a_write_that_the_kernel_has_not_begun_when_it_is_interrupted_never_happens)
{
    NEEDS_RINGS();
    strand_run(NULL, interrupt_until_one_has_not_begun, NULL);
}

/* ---- more calls than there is room for -------------------------------------------------------------------- */

static void *read_byte(void *arg)
{
    struct job *job = arg;
    char byte = 0;
    CHECK_EQ(strand_file_read(job->fd, &byte, 1, 1), 1);
    CHECK_EQ(byte, 'e');
    return job;
}

static void spawn_readers(strand_scope scope, struct job *job, int count)
{
    for (int i = 0; i < count; i++)
        strand_spawn(scope, read_byte, job);
}

TEST_REAL_INSIDE(calls_that_the_ring_has_no_room_for_are_made_by_threads)
{
    enum { CALLS = 1000 }; /* more than it holds */
    PLACE(place);
    struct job job = job_on(&place);
    STRAND_SCOPE(scope);
    keep();
    spawn_readers(scope, &job, CALLS);
    test_await_blocked("waits for a file", CALLS);
    release();
    strand_scope_join(scope);
    CHECK_EQ(strand_close(job.fd), 0);
}

enum { PAGE = 4096 };

static void *read_directly(void *arg)
{
    struct job *job = arg;
    char *bytes = aligned_alloc(4096, 4096);
    CHECK_EQ(strand_file_read(job->fd, bytes, 4096, 0), 4096);
    CHECK_EQ(bytes[4095], 'z');
    free(bytes);
    return job;
}

static int open_direct(const struct place *place)
{
    char *bytes = aligned_alloc(4096, 4096);
    memset(bytes, 'z', 4096);
    int fd = strand_file_open(place->dir, "direct", O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (fd >= 0)
        CHECK_EQ(strand_file_write(fd, bytes, 4096, 0), 4096);
    else
        fprintf(stderr, "not tested: this file system has no O_DIRECT\n");
    free(bytes);
    return fd;
}

TEST_REAL_INSIDE(thousands_of_reads_are_under_way_at_once)
{
    enum { READS = 6000 }; /* more than the ring has room for ends */
    PLACE(place);
    struct job job = {.fd = open_direct(&place)};
    if (job.fd < 0)
        return;
    STRAND_SCOPE(scope);
    for (int i = 0; i < READS; i++)
        strand_spawn(scope, read_directly, &job);
    strand_scope_join(scope);
    CHECK_EQ(strand_close(job.fd), 0);
}

static _Atomic int seen[64];

static void *read_next_pages(void *arg)
{
    struct job *job = arg;
    int *page = aligned_alloc(PAGE, PAGE);
    while (strand_file_read(job->fd, page, PAGE, -1) == PAGE)
        seen[page[0]]++;
    free(page);
    return job;
}

/* The kernel does not move the position of a direct read in time: a thread makes the call. */
TEST_REAL_INSIDE(reads_of_many_strands_at_the_position_follow_each_other)
{
    enum { READERS = 20 };
    PLACE(place);
    struct job job = {.fd = open_direct(&place)};
    if (job.fd < 0)
        return;
    int *page = aligned_alloc(PAGE, PAGE);
    memset(page, 0, PAGE);
    for (int i = 0; i < 64; i++) {
        page[0] = i;
        CHECK_EQ(strand_file_write(job.fd, page, PAGE, (int64_t)i * PAGE), PAGE);
    }
    free(page);
    STRAND_SCOPE(scope);
    for (int i = 0; i < READERS; i++)
        strand_spawn(scope, read_next_pages, &job);
    strand_scope_join(scope);
    for (int i = 0; i < 64; i++)
        CHECK_EQ(seen[i], 1);
    CHECK_EQ(strand_close(job.fd), 0);
}

/* ---- interruptions at any moment ------------------------------------------------------------------------------ */

enum { READERS = 20 };
static _Alignas(PAGE) char buffers[READERS + 1][PAGE];

/* The last thing that the strand does with its buffer. */
static void mark(char **buffer)
{
    memset(*buffer, 'm', PAGE);
}

static void check_page(const char *page, char byte)
{
    for (int i = 0; i < PAGE; i++)
        CHECK_EQ(page[i], byte);
}

struct buffered {
    const struct job *job;
    char *buffer;
};

static void *read_until_interrupted(void *arg)
{
    const struct buffered *own = arg;
    __attribute__((cleanup(mark))) char *buffer = own->buffer;
    for (;;)
        CHECK_EQ(strand_file_read(own->job->fd, buffer, PAGE, 0), PAGE);
    return arg;
}

/* A write that went on after its call has ended would write other bytes. */
static void *write_until_interrupted(void *arg)
{
    const struct buffered *own = arg;
    __attribute__((cleanup(mark))) char *buffer = own->buffer;
    memset(buffer, 'z', PAGE);
    for (;;)
        CHECK_EQ(strand_file_write(own->job->fd, buffer, PAGE, PAGE), PAGE);
    return arg;
}

static void *open_until_interrupted(void *arg)
{
    struct job *job = arg;
    for (;;)
        CHECK_EQ(strand_close((int)strand_file_open(job->place->dir, "direct", O_RDONLY, 0)), 0);
    return arg;
}

TEST_REAL_INSIDE(calls_may_be_interrupted_at_any_moment)
{
    enum { ROUNDS = 50 };
    PLACE(place);
    struct job job = {.place = &place, .fd = open_direct(&place)};
    struct buffered own[READERS + 1];
    if (job.fd < 0)
        return;
    int before = test_count_entries("/proc/self/fd");
    for (int i = 0; i < ROUNDS; i++) {
        STRAND_SCOPE(scope);
        for (int k = 0; k <= READERS; k++) {
            own[k] = (struct buffered){&job, buffers[k]};
            memset(buffers[k], 'm', PAGE);
            strand_spawn(scope, k < READERS ? read_until_interrupted : write_until_interrupted, &own[k]);
            strand_spawn(scope, open_until_interrupted, &job);
        }
        for (int k = i % 7; k; k--)
            strand_yield();
        if (i % 5 == 0)
            strand_sleep(i * STRAND_US);
        strand_scope_cancel(scope, NULL);
        strand_scope_join(scope);
        for (int k = 0; k <= READERS; k++)
            check_page(buffers[k], 'm');
        if (strand_file_read(job.fd, buffers[0], PAGE, PAGE) > 0)
            check_page(buffers[0], 'z');
    }
    YIELD_UNTIL(test_count_entries("/proc/self/fd") <= before); /* opens that were left close what they have opened */
    CHECK_EQ(strand_close(job.fd), 0);
}

/* ---- the kernel's threads ---------------------------------------------------------------------------------------- */

static void *write_and_wait_for_ever(void *arg)
{
    static strand_event never;
    PLACE(place);
    make_file(&place, "a", "hello");
    int fd = strand_file_open(place.dir, "a", O_RDWR, 0);
    CHECK_EQ(strand_file_sync(fd, false), 0); /* by a thread that the kernel makes, and keeps */
    CHECK_EQ(strand_close(fd), 0);
    strand_event_wait(&never);
    return arg;
}

/* Not beside threads of a test runner, which may wake a strand for all that the library knows. */
TEST_REAL(threads_of_the_kernel_hide_no_deadlock)
{
    if (test_count_entries("/proc/self/task") > 3) {
        fprintf(stderr, "skipped: the test runner has threads\n");
        return;
    }
    strand_exception *e = test_run_catching(write_and_wait_for_ever, NULL, NULL);
    CHECK_KIND(e, &STRAND_DEADLOCK);
    strand_exception_release(e);
}

/* ---- without rings ---------------------------------------------------------------------------------------------- */

TEST_REAL_INSIDE(calls_that_have_not_begun_when_the_ring_is_forbidden_are_made_by_threads)
{
    PLACE(place);
    struct job job = job_on(&place), reader = job;
    STRAND_SCOPE(scope);
    make_file(&place, "b", "hello");
    reader.fd = strand_file_open(place.dir, "b", O_RDONLY, 0);
    keep();
    spawn_readers(scope, &reader, 10);
    strand writer = strand_spawn(scope, write_and_go_on, &job);
    YIELD_UNTIL(blocker.entered);
    test_await_blocked("waits for a file", 11);
    refused = true;
    release();
    strand_join(writer);
    CHECK_EQ(job.result, 5);
    strand_scope_join(scope);
    job.result = 0;
    strand_join(strand_spawn(scope, write_and_go_on, &job)); /* not by the ring either */
    CHECK_EQ(job.result, 5);
    CHECK_EQ(strand_close(reader.fd), 0);
    CHECK_EQ(strand_close(job.fd), 0);
}

/* ---- the end of a pool ----------------------------------------------------------------------------------------- */

static int silent[2]; /* a pipe whose readers wait */
static _Atomic int has_left, spoke, closed_before, closed_after;

int close(int fd)
{
    if (fd >= 0 && fd == ring) {
        (spoke ? &closed_after : &closed_before)[0]++;
        ring = -1;
    }
    return REAL(close)(fd);
}

/* Ends the read that was left: not before threads have looked for its end again and again. */
static void *speak_later(void *arg)
{
    enum { ATTEMPTS = 50 };
    wait_on_thread(&has_left, 1);
    int before = blocker.entered;
    while (blocker.entered < before + ATTEMPTS && !closed_before)
        usleep(1000);
    spoke = 1;
    CHECK_EQ(write(silent[1], "hello", 5), 5);
    release();
    return arg;
}

/* The kernel reads from the pipe, and is not asked to cancel that: no call is begun any more. */
static void *leave_a_read(void *arg)
{
    struct job job = job_on(arg);
    CHECK_EQ(strand_file_read(job.fd, job.buffer, 5, 0), 5); /* the library knows the descriptor as one of a file */
    CHECK_EQ(dup3(silent[0], job.fd, O_CLOEXEC), job.fd);
    STRAND_SCOPE(scope);
    strand child = start_kept(scope, read_and_go_on, &job);
    begun = 0;
    release();
    YIELD_UNTIL(begun);
    keep();
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    CHECK_EQ(strand_close(job.fd), 0);
    has_left = 1;
    return arg;
}

TEST_REAL(a_pool_ends_after_the_calls_that_were_left)
{
    NEEDS_RINGS();
    char path[] = "/tmp/strand-file-XXXXXX";
    CHECK(mkdtemp(path));
    struct place place = {.dir = open(path, O_RDONLY | O_DIRECTORY)};
    pthread_t speaker;
    CHECK_EQ(pipe2(silent, O_CLOEXEC), 0);
    CHECK_EQ(pthread_create(&speaker, NULL, speak_later, NULL), 0);
    closed_before = 0;
    test_run(leave_a_read, &place);
    CHECK_EQ(pthread_join(speaker, NULL), 0);
    CHECK_EQ(closed_before, 0);
    CHECK_EQ(closed_after, 1);
    CHECK_EQ(unlinkat(place.dir, "a", 0), 0);
    CHECK_EQ(rmdir(path), 0);
    (void)close(place.dir);
    (void)close(silent[0]);
    (void)close(silent[1]);
}

static void *refuse_later(void *arg)
{
    wait_on_thread(&blocker.entered, 1);
    strand_sim_sleep(20 * STRAND_MS);
    refused = true;
    release();
    return arg;
}

/* Nothing enters the ring before the end of the pool. */
static void *take_back_a_read_at_the_end(void *arg)
{
    struct job job = job_on(arg);
    STRAND_SCOPE(scope);
    strand child = start_kept(scope, read_and_go_on, &job);
    CHECK_EQ(strand_sim_thread(refuse_later, NULL), 0);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    CHECK_EQ(strand_close(job.fd), 0);
    return arg;
}

static void *remove_it(void *place)
{
    place_remove(place);
    return place;
}

static void *make_it(void *place)
{
    *(struct place *)place = place_make();
    return take_back_a_read_at_the_end(place);
}

TEST_REAL(a_run_ends_though_the_ring_is_forbidden_while_a_call_is_queued)
{
    static struct place place;
    test_run(make_it, &place);
    setenv("STRAND_FILES", "threads", 1);
    place.dir = open(place.path, O_RDONLY | O_DIRECTORY);
    test_run(remove_it, &place);
}

static void *write_once(void *arg)
{
    PLACE(place);
    make_file(&place, "a", "hello");
    check_file(&place, "a", "hello");
    return arg;
}

static void run_that_is_not_made(strand_options options)
{
    strand_exception *e = NULL;
    options.uncaught = &e;
    CHECK_PTR(strand_run(&options, write_once, NULL), NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -EPERM);
    CHECK_CONTAINS(strand_exception_text(e), "io_uring");
    strand_exception_release(e);
}

TEST_REAL(where_the_kernel_refuses_rings_a_run_that_requires_them_is_not_made)
{
    NEEDS_RINGS();
    refused = true;
    run_that_is_not_made((strand_options){.size = sizeof(strand_options)});
    unsetenv("STRAND_FILES");
    run_that_is_not_made((strand_options){.size = sizeof(strand_options), .files = STRAND_FILES_URING});
    int result = 0;
    CHECK_PTR(strand_run(NULL, write_once, &result), &result);
}
