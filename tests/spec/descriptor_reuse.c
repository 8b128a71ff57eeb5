/*
 * Numbers of descriptors that others close, and that mean another object afterwards.
 */
#define SUITE descriptor_reuse
#include "test.h"

#include "strand/io.h"
#include "strand/select.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static int fd;       /* the number */
static int far_side; /* of what is behind it */
static char byte;

/* What a library does that knows nothing of strands: the number means another object from now on. */
static void reuse(int object)
{
    CHECK_EQ(dup2(object, fd), fd);
    CHECK_EQ(close(object), 0);
}

static void end_far_side(void)
{
    if (far_side >= 0)
        CHECK_EQ(close(far_side), 0);
    far_side = -1;
}

/* ---- objects of all kinds, and their first use ----------------------------------------------------------------- */

static int make_file(void)
{
    far_side = -1;
    return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static int make_device(void)
{
    far_side = -1;
    return open("/dev/zero", O_RDONLY | O_CLOEXEC);
}

static int make_socket(void)
{
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    far_side = ends[1];
    return ends[0];
}

static int make_pipe(void)
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    far_side = ends[1];
    return ends[0];
}

static int make_terminal(void)
{
    int near;
    CHECK_EQ(openpty(&far_side, &near, NULL, NULL, NULL), 0);
    return near;
}

static int make_event(void)
{
    int event = eventfd(0, EFD_CLOEXEC);
    far_side = dup(event);
    return event;
}

static const struct object {
    const char *name;
    int (*make)(void);
    bool waits; /* a reader of one in which nothing is waits */
} objects[] = {
    {"file", make_file, false}, {"device", make_device, false},    {"socket", make_socket, true},
    {"pipe", make_pipe, true},  {"terminal", make_terminal, true}, {"event", make_event, true},
};
enum { OBJECTS = sizeof objects / sizeof *objects };

static void feed(void)
{
    uint64_t count = 10; /* the first byte is the end of a terminal's line */
    CHECK_EQ(write(far_side, &count, sizeof count), sizeof count);
}

static int64_t read_count(void)
{
    uint64_t count;
    return strand_read(fd, &count, sizeof count);
}

static void *read_it(void *arg)
{
    return read_count() > 0 ? arg : NULL;
}

static void *wait_for_it(void *arg)
{
    return strand_wait_ready(fd, STRAND_READABLE) == 0 ? arg : NULL;
}

static void *select_it(void *arg)
{
    strand_case cases[] = {strand_on_ready(fd, STRAND_READABLE)};
    return strand_select(cases, 1, 0) == 0 && cases[0].result == 0 ? arg : NULL;
}

/* It waits, and finds what comes. */
static void use(const struct object *object, strand_fn *fn)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, fn, &byte);
    if (object->waits) {
        test_await_blocked("blocked: ", 1);
        feed();
    }
    CHECK_PTR(strand_join(child), &byte);
}

static void *use_one_after_the_other(void *arg)
{
    static strand_fn *const ways[] = {read_it, wait_for_it, select_it};
    (void)arg;
    for (int i = 0; i < OBJECTS * OBJECTS * 3; i++) {
        const struct object *first = &objects[i % OBJECTS], *second = &objects[i / OBJECTS % OBJECTS];
        fd = first->make();
        use(first, ways[i % 3]);
        end_far_side();
        reuse(second->make());
        use(second, ways[i / OBJECTS / OBJECTS]);
        end_far_side();
        CHECK_EQ(strand_close(fd), 0);
    }
    return arg;
}

TEST_REAL(whatever_a_number_was_before_what_it_is_now_is_waited_for)
{
    test_run(use_one_after_the_other, NULL);
}

TEST_REAL_INSIDE(an_error_that_was_kept_for_the_next_read_is_not_the_new_descriptors)
{
    struct linger at_once = {.l_onoff = 1};
    char buffer[2];
    int listener = strand_listen_tcp("127.0.0.1", 0), other = socket(AF_INET, SOCK_STREAM, 0);
    fd = strand_dial_tcp("127.0.0.1", strand_tcp_port(listener));
    CHECK_EQ(dup2(fd, other), other); /* a number that was not made by the library */
    CHECK_EQ(strand_close(fd), 0);
    fd = other;
    far_side = strand_accept(listener);
    CHECK_EQ(strand_write_all(far_side, "x", 1), 1);
    CHECK_EQ(strand_read(fd, buffer, 0), 0);
    CHECK_EQ(setsockopt(far_side, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    CHECK_EQ(strand_close(far_side), 0);
    CHECK_EQ(strand_wait_ready(fd, STRAND_GONE), 0);
    (void)strand_read_all(fd, buffer, 2); /* a byte and an error, or the error */
    reuse(make_socket());
    feed();
    CHECK_EQ(read_count(), 8);
    end_far_side();
    CHECK_EQ(strand_close(fd), 0);
    CHECK_EQ(strand_close(listener), 0);
}

TEST_REAL_INSIDE(a_descriptor_without_calls_is_no_file)
{
    fd = open("/", O_PATH | O_CLOEXEC);
    CHECK_EQ(strand_read(fd, &byte, 1), -EBADF);
    reuse(make_socket());
    use(&objects[2], read_it);
    end_far_side();
    CHECK_EQ(strand_close(fd), 0);
}

/* ---- strands that still wait ----------------------------------------------------------------------------------- */

static void *be_notified_that_it_is_gone(void *arg)
{
    CHECK_EQ(strand_read(fd, &byte, 1), -EBADF);
    return arg;
}

static void *select_until_it_is_gone(void *arg)
{
    strand_case cases[] = {strand_on_ready(fd, STRAND_READABLE)};
    CHECK_EQ(strand_select(cases, 1, 0), 0);
    CHECK_EQ(cases[0].result, -EBADF);
    return arg;
}

TEST_REAL_INSIDE(a_waiter_at_a_descriptor_closed_outside_gets_an_error_when_the_number_is_used_again)
{
    STRAND_SCOPE(scope);
    fd = make_socket();
    strand waiter = strand_spawn(scope, be_notified_that_it_is_gone, NULL);
    test_await_blocked("blocked: ", 1);
    int kept = far_side; /* so the poller reports nothing */
    reuse(make_socket());
    strand reader = strand_spawn(scope, read_it, &byte);
    strand_join(waiter);
    feed();
    CHECK_PTR(strand_join(reader), &byte);
    CHECK_EQ(close(kept), 0);
    end_far_side();
    CHECK_EQ(strand_close(fd), 0);
}

static int64_t wait_for_count(void)
{
    return strand_wait_ready(fd, STRAND_READABLE);
}

static int64_t select_count(void)
{
    strand_case cases[] = {strand_on_ready(fd, STRAND_READABLE)};
    CHECK_EQ(strand_select(cases, 1, 0), 0);
    return cases[0].result;
}

/* The number is not used again. The object lives on with another number, so the poller reports nothing. */
TEST_REAL_INSIDE(a_number_that_was_closed_outside_is_invalid_also_if_nothing_was_there_to_read)
{
    static int64_t (*const ways[])(void) = {read_count, wait_for_count, select_count};
    for (int i = 0; i < 9; i++) {
        fd = make_socket();
        int kept = dup(fd);
        {
            STRAND_SCOPE(scope);
            strand waiter = strand_spawn(scope, i % 2 ? wait_for_it : select_it, &byte);
            test_await_blocked("blocked: ", 1);
            strand_cancel(waiter, "so nothing is there");
            CHECK(test_join_interrupted(waiter));
        }
        CHECK_EQ(close(fd), 0);
        CHECK_EQ(ways[i / 3](), -EBADF);
        CHECK_EQ(close(kept), 0);
        end_far_side();
    }
}

TEST_REAL_INSIDE(a_waiter_at_a_descriptor_closed_outside_gets_an_error_when_the_library_makes_the_number)
{
    int ends[2];
    STRAND_SCOPE(scope);
    fd = make_socket();
    strand waiter = strand_spawn(scope, be_notified_that_it_is_gone, NULL);
    test_await_blocked("blocked: ", 1);
    int kept = dup(fd);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(strand_pipe(ends), 0);
    CHECK_EQ(ends[0], fd); /* the lowest that is free */
    strand_join(waiter);
    CHECK_EQ(close(far_side), 0);
    far_side = ends[1];
    use(&objects[3], read_it);
    CHECK_EQ(close(kept), 0);
    CHECK_EQ(strand_close(ends[0]), 0);
    CHECK_EQ(strand_close(ends[1]), 0);
}

static void *select_at_once(void *arg)
{
    strand_case cases[] = {strand_on_ready(fd, STRAND_READABLE)};
    int index;
    while ((index = strand_select(cases, 1, STRAND_SELECT_NOW)) == -EAGAIN)
        strand_yield();
    return index == 0 && cases[0].result == 0 ? arg : NULL;
}

static void *select_in_order(void *arg)
{
    strand_case cases[] = {strand_on_ready(fd, STRAND_WRITABLE), strand_on_ready(fd, STRAND_READABLE)};
    int index = strand_select(cases, 2, STRAND_SELECT_ORDERED);
    return index >= 0 && cases[index].result == 0 ? arg : NULL;
}

TEST_REAL_INSIDE(a_select_on_a_number_that_is_used_again_begins_while_waiters_of_the_old_object_still_leave)
{
    static strand_fn *const ways[] = {select_it, select_at_once, select_in_order};
    for (int i = 0; i < 3; i++) {
        STRAND_SCOPE(scope);
        fd = make_socket();
        strand waiter = strand_spawn(scope, be_notified_that_it_is_gone, NULL);
        test_await_blocked("blocked: ", 1);
        int kept = far_side; /* so the poller reports nothing */
        reuse(make_socket());
        feed();
        CHECK_PTR(ways[i](&byte), &byte);
        strand_join(waiter);
        CHECK_EQ(close(kept), 0);
        end_far_side();
        CHECK_EQ(strand_close(fd), 0);
    }
}

/* The number of a pipe that another strand closes on another thread is given out again before its record is empty. */
static void *select_new_pipes(void *arg)
{
    for (int i = 0; i < test_scale(3000); i++) {
        int ends[2];
        CHECK_EQ(strand_pipe(ends), 0);
        CHECK_EQ(strand_write_all(ends[1], "x", 1), 1);
        strand_case cases[] = {strand_on_ready(ends[0], STRAND_READABLE)};
        CHECK_EQ(strand_select(cases, 1, i % 2 ? STRAND_SELECT_ORDERED : 0), 0);
        CHECK_EQ(cases[0].result, 0);
        CHECK_EQ(strand_close(ends[0]), 0);
        CHECK_EQ(strand_close(ends[1]), 0);
    }
    return arg;
}

TEST_RACE(a_select_on_a_new_descriptor_is_not_confused_with_the_close_of_the_one_before)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, select_new_pipes, NULL);
    strand_scope_join(scope);
}

/* ---- forgetting ------------------------------------------------------------------------------------------------- */

TEST_REAL_INSIDE(forgetting_a_descriptor_wakes_those_who_wait_and_closes_nothing)
{
    STRAND_SCOPE(scope);
    fd = make_socket();
    strand_spawn(scope, be_notified_that_it_is_gone, NULL);
    strand_spawn(scope, select_until_it_is_gone, NULL);
    strand_spawn(scope, be_notified_that_it_is_gone, NULL);
    test_await_blocked("blocked: ", 3);
    strand_forget(fd);
    strand_scope_join(scope);
    feed();
    CHECK_EQ(read_count(), 8);
    strand_forget(fd);
    end_far_side();
    CHECK_EQ(read(fd, &byte, 1), 0);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(strand_read(fd, &byte, 1), -EBADF);
}

TEST_REAL_INSIDE(a_descriptor_of_the_library_may_be_closed_by_others_if_it_is_forgotten)
{
    int ends[2];
    for (int before = 0; before < 2; before++) {
        CHECK_EQ(strand_pipe(ends), 0);
        fd = ends[0];
        far_side = ends[1];
        use(&objects[3], read_it);
        end_far_side();
        if (before)
            strand_forget(fd);
        reuse(make_socket());
        if (!before)
            strand_forget(fd);
        use(&objects[2], read_it);
        end_far_side();
        CHECK_EQ(strand_close(fd), 0);
    }
}

TEST_REAL_INSIDE(forgetting_what_no_strand_has_used_does_nothing)
{
    strand_forget(-1);
    strand_forget(1000000000);
    strand_forget(200000);
    fd = make_pipe();
    strand_forget(fd);
    feed();
    CHECK_EQ(read_count(), 8);
    strand_forget(200000);
    strand_forget(-1);
    end_far_side();
    CHECK_EQ(strand_close(fd), 0);
}

enum { USERS = 4 };
static _Atomic int over, users;

/* Errors or bytes, but it never hangs. A read never sees the end of an object: the far sides stay open. */
static void *use_it_often(void *arg)
{
    while (!over) {
        int64_t got = read_count();
        if (got <= 0)
            CHECK_EQ(got, -EBADF);
        if (got < 0)
            strand_yield();
    }
    users--;
    return arg;
}

TEST_RACE(a_number_is_forgotten_and_used_again_while_many_read_from_it)
{
    enum { OBJECTS_MOST = 200 };
    int far_sides[OBJECTS_MOST],
        rounds = test_scale(OBJECTS_MOST) < OBJECTS_MOST ? test_scale(OBJECTS_MOST) : OBJECTS_MOST;
    STRAND_SCOPE(scope);
    if (test_seed())
        return;
    over = 0;
    users = USERS;
    fd = make_socket();
    for (int i = 0; i < USERS; i++)
        strand_spawn(scope, use_it_often, NULL);
    for (int i = 0; i < rounds; i++) {
        far_sides[i] = far_side;
        int next = make_socket();
        if (i % 2)
            strand_forget(fd);
        reuse(next);
        feed();
        strand_yield();
    }
    for (over = 1; users; strand_yield())
        strand_forget(fd);
    strand_scope_join(scope);
    for (int i = 0; i < rounds; i++)
        CHECK_EQ(close(far_sides[i]), 0);
    end_far_side();
    CHECK_EQ(strand_close(fd), 0);
}

/* ---- closing in a no-suspend section ------------------------------------------------------------------------ */

static _Atomic bool notified;

static void *wait_until_it_is_gone(void *arg)
{
    CHECK_EQ(strand_read(fd, &byte, 1), -EBADF);
    notified = true;
    return arg;
}

/* The reader of the old object needs the only thread to leave the record. */
static void *close_the_new_object_in_a_section(void *arg)
{
    int ends[2];
    fd = make_socket();
    STRAND_SCOPE(scope);
    strand_spawn(scope, wait_until_it_is_gone, NULL);
    test_await_blocked("blocked: ", 1);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(strand_pipe(ends), 0);
    CHECK(ends[0] == fd);
    {
        STRAND_NO_SUSPEND;
        CHECK_EQ(strand_close(fd), 0);
        CHECK(!notified);
    }
    strand_scope_join(scope);
    CHECK(notified);
    CHECK_EQ(fcntl(fd, F_GETFD), -1);
    end_far_side();
    CHECK_EQ(strand_close(ends[1]), 0);
    return arg;
}

TEST_REAL(closing_in_a_no_suspend_section_runs_no_other_strand)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, close_the_new_object_in_a_section, NULL);
}
