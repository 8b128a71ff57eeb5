/*
 * Changes of files and directories, as the system reports them.
 */
#define _GNU_SOURCE
#define SUITE changes
#define ONE_SEED_IN 10 /* the system makes files in most of the time */
#include "test.h"

#include "strand/chan.h"
#include "strand/changes.h"
#include "strand/file.h"
#include "strand/io.h"
#include "strand/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

/* A directory of a test's own, and what observes it. */
struct place {
    char path[40];
    int dir, changes, number;
};

static void remove_place(const struct place *place)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (unlinkat(place->dir, names[i], 0) != 0)
            (void)unlinkat(place->dir, names[i], AT_REMOVEDIR);
    close(place->dir);
    CHECK_EQ(rmdir(place->path), 0);
    if (place->changes >= 0)
        CHECK_EQ(strand_close(place->changes), 0);
}
#define PLACE __attribute__((cleanup(remove_place))) struct place

static struct place observe(uint32_t what)
{
    struct place place = {.path = "/tmp/strand-changes-XXXXXX"};
    CHECK(mkdtemp(place.path) != NULL);
    place.dir = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(place.dir >= 0);
    place.changes = strand_changes_open();
    CHECK(place.changes >= 0);
    place.number = strand_changes_add(place.changes, AT_FDCWD, place.path, what);
    CHECK(place.number > 0);
    return place;
}

static void make(const struct place *place, const char *name)
{
    CHECK_EQ(mkdirat(place->dir, name, 0700), 0);
}

static void unmake(const struct place *place, const char *name)
{
    CHECK_EQ(unlinkat(place->dir, name, AT_REMOVEDIR), 0);
}

static void check_change(const strand_change *change, int number, uint32_t what, const char *name)
{
    CHECK_EQ(change->number, number);
    CHECK_EQ(change->what, what);
    CHECK_STR(change->name, name);
}

static strand_change receive(int changes)
{
    strand_change change;
    CHECK_EQ(strand_changes_receive(changes, &change, 1), 1);
    return change;
}

static void check_next(const struct place *place, uint32_t what, const char *name)
{
    strand_change change = receive(place->changes);
    check_change(&change, place->number, what, name);
}

/* ---- receiving ------------------------------------------------------------------------------- */

TEST_SYSTEM_INSIDE(changes_of_a_directory_arrive_in_order_with_the_names_of_its_entries)
{
    PLACE place = observe(IN_CREATE | IN_DELETE | IN_CLOSE_WRITE | IN_MOVE);
    int fd = openat(place.dir, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(renameat(place.dir, "a", place.dir, "b"), 0);
    make(&place, "d");
    check_next(&place, IN_CREATE, "a");
    check_next(&place, IN_CLOSE_WRITE, "a");
    strand_change from = receive(place.changes), to = receive(place.changes);
    check_change(&from, place.number, IN_MOVED_FROM, "a");
    check_change(&to, place.number, IN_MOVED_TO, "b");
    CHECK(from.cookie != 0);
    CHECK_EQ(from.cookie, to.cookie);
    check_next(&place, IN_CREATE | IN_ISDIR, "d");
}

static void *make_later(void *place)
{
    strand_sleep(STRAND_MS);
    make(place, "a");
    return place;
}

TEST_SYSTEM_INSIDE(a_strand_waits_for_a_change)
{
    PLACE place = observe(IN_CREATE);
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, make_later, &place);
    check_next(&place, IN_CREATE | IN_ISDIR, "a");
    strand_join(child);
}

/* Names of each length are one change for a call that has room for one, however long they are. */
TEST_SYSTEM_INSIDE(a_call_receives_no_more_changes_than_it_has_room_for)
{
    enum { LENGTHS = 9 };
    static const int lengths[LENGTHS] = {1, 15, 16, 17, 31, 32, 100, 240, 255};
    char name[256];
    for (size_t room = 1; room <= 20; room += room < 4 ? 1 : 16) {
        PLACE place = observe(IN_CREATE | IN_DELETE);
        strand_change list[21];
        memset(list, 'x', sizeof list);
        for (int i = 0; i < LENGTHS; i++) {
            memset(name, 'a' + i, sizeof name);
            name[lengths[i]] = '\0';
            make(&place, name);
            unmake(&place, name);
        }
        for (int done = 0, got; done < 2 * LENGTHS; done += got) {
            got = strand_changes_receive(place.changes, list, room);
            CHECK(got >= 1 && got <= (int)room);
            CHECK_EQ(list[room].name[0], 'x');
            for (int i = 0; i < got; i++) {
                memset(name, 'a' + (done + i) / 2, sizeof name);
                name[lengths[(done + i) / 2]] = '\0';
                check_change(&list[i], place.number, ((done + i) % 2 ? IN_DELETE : IN_CREATE) | IN_ISDIR, name);
            }
        }
        CHECK_EQ(strand_changes_receive(place.changes, NULL, 0), 0);
    }
}

static void *receive_forever(void *place)
{
    (void)receive(((struct place *)place)->changes);
    CHECK_FAIL("there is no change");
    return place;
}

TEST_SYSTEM_INSIDE(an_interrupted_strand_takes_no_change)
{
    PLACE place = observe(IN_CREATE);
    STRAND_SCOPE(scope);
    strand waiter = strand_spawn(scope, receive_forever, &place);
    test_await_blocked("waits for descriptor", 1);
    strand_cancel(waiter, NULL);
    make(&place, "a");
    strand_wait(waiter);
    check_next(&place, IN_CREATE | IN_ISDIR, "a");
}

static void *receive_until_closed(void *place)
{
    strand_change change;
    CHECK_EQ(strand_changes_receive(((struct place *)place)->changes, &change, 1), -EBADF);
    return place;
}

TEST_SYSTEM_INSIDE(closing_ends_the_waits)
{
    PLACE place = observe(IN_CREATE);
    STRAND_SCOPE(scope);
    strand waiter = strand_spawn(scope, receive_until_closed, &place);
    test_await_blocked("waits for descriptor", 1);
    int changes = place.changes;
    CHECK_EQ(strand_close(changes), 0);
    strand_join(waiter);
    place.changes = -1;
}

/* ---- selects --------------------------------------------------------------------------------- */

typedef STRAND_CHAN(int) numbers;

TEST_SYSTEM_INSIDE(a_change_is_a_case_of_a_select)
{
    PLACE place = observe(IN_CREATE | IN_DELETE);
    strand_change change = {.number = -7};
    int n = 0, seven = 7;
    STRAND_SCOPE(scope);
    numbers ch = STRAND_CHAN_OPEN(numbers, scope, 1);
    strand_case cases[] = {strand_on_change(place.changes, &change), STRAND_ON_RECEIVE(ch, &n)};
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW), -EAGAIN);
    CHECK_EQ(change.number, -7);
    CHECK_EQ(STRAND_SEND(ch, &seven), 0);
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    CHECK_EQ(n, 7);
    strand child = strand_spawn(scope, make_later, &place);
    CHECK_EQ(strand_select(cases, 2, 0), 0);
    CHECK_EQ(cases[0].result, 0);
    check_change(&change, place.number, IN_CREATE | IN_ISDIR, "a");
    strand_join(child);
    unmake(&place, "a");
    make(&place, "b");
    CHECK_EQ(STRAND_SEND(ch, &seven), 0);
    CHECK_EQ(strand_select(&cases[1], 1, 0), 0); /* the case that is not chosen takes nothing */
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW), 0);
    check_change(&change, place.number, IN_DELETE | IN_ISDIR, "a");
    check_next(&place, IN_CREATE | IN_ISDIR, "b");
    cases[0] = strand_on_change(-1, &change);
    CHECK_EQ(strand_select(cases, 1, 0), 0);
    CHECK_EQ(cases[0].result, -EBADF);
}

struct receiver {
    int changes, stop;
    _Atomic int *left;
};

/* Count changes down, until there is a byte in a pipe. */
static void *count_by_select(void *arg)
{
    const struct receiver *own = arg;
    strand_change change;
    strand_case cases[] = {strand_on_ready(own->stop, STRAND_READABLE), strand_on_change(own->changes, &change)};
    while (strand_select(cases, 2, 0) == 1) {
        CHECK_EQ(cases[1].result, 0);
        --*own->left;
    }
    return arg;
}

static void *count_by_calls(void *arg)
{
    const struct receiver *own = arg;
    for (; *own->left; --*own->left)
        (void)receive(own->changes);
    return arg;
}

TEST_SYSTEM_INSIDE(each_change_reaches_one_of_several_receivers)
{
    enum { RECEIVERS = 4, CHANGES = 40 };
    PLACE place = observe(IN_CREATE | IN_DELETE);
    static _Atomic int left;
    int stop[2];
    left = CHANGES;
    CHECK_EQ(strand_pipe(stop), 0);
    struct receiver receiver = {place.changes, stop[0], &left};
    {
        STRAND_SCOPE(scope);
        for (int i = 0; i < RECEIVERS; i++)
            strand_spawn(scope, i % 2 ? count_by_select : count_by_calls, &receiver);
        for (int i = 0; i < CHANGES / 2; i++) {
            make(&place, "a");
            unmake(&place, "a");
            strand_yield();
        }
        while (left)
            strand_sleep(STRAND_MS);
        CHECK_EQ(write(stop[1], "x", 1), 1);
        strand_sleep(STRAND_MS);
        strand_scope_cancel(scope, NULL);
    }
    CHECK_EQ(left, 0);
    CHECK_EQ(strand_close(stop[0]), 0);
    CHECK_EQ(strand_close(stop[1]), 0);
}

/* ---- what is observed ------------------------------------------------------------------------ */

struct taking {
    int changes;
    _Atomic long taken;
};

/* Has room for one change. */
static void *take_one_by_one(void *arg)
{
    struct taking *taking = arg;
    struct {
        strand_change change;
        char behind[512];
    } room;
    int got;
    memset(room.behind, 'b', sizeof room.behind);
    while ((got = strand_changes_receive(taking->changes, &room.change, 1)) == 1) {
        for (size_t i = 0; i < sizeof room.behind; i++)
            CHECK_EQ(room.behind[i], 'b');
        taking->taken++;
    }
    CHECK_EQ(got, 1);
    return arg;
}

/* A change with a long name needs more room in a read than two without names. */
TEST_REAL_RACE(threads_that_receive_at_once_get_no_more_than_they_have_room_for)
{
    PLACE place = observe(IN_CREATE | IN_DELETE);
    struct taking taking = {.changes = place.changes};
    char name[201];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    int rounds = test_scale(1000);
    for (int i = 0; i < rounds; i++) {
        make(&place, name);
        for (int j = 0; j < 3; j++)
            CHECK_EQ(
                strand_changes_remove(place.changes, strand_changes_add(place.changes, place.dir, name, IN_CREATE)), 0);
        unmake(&place, name);
    }
    STRAND_SCOPE(scope);
    for (int i = 0; i < 4; i++)
        strand_spawn(scope, take_one_by_one, &taking);
    while (taking.taken < rounds * 5L)
        strand_sleep(STRAND_MS);
    strand_scope_cancel(scope, NULL);
    strand_scope_join(scope);
    CHECK_EQ(taking.taken, rounds * 5L);
}

static void *receive_for_ever(void *changes)
{
    (void)receive(*(const int *)changes);
    return changes;
}

static void *await_byte(void *pipe)
{
    char byte;
    strand_case ready = strand_on_ready(*(const int *)pipe, STRAND_READABLE);
    CHECK_EQ(strand_select(&ready, 1, 0), 0);
    CHECK_EQ(ready.result, 0);
    CHECK_EQ(strand_read(*(const int *)pipe, &byte, 1), 1);
    return pipe;
}

/* While a strand waits for the system, the others look again and again, also those that wait for simulated bytes. */
static void *select_beside_the_system(void *arg)
{
    enum { READERS = 3 };
    PLACE place = observe(IN_CREATE);
    int ends[2];
    CHECK_EQ(strand_pipe(ends), 0);
    STRAND_SCOPE(scope);
    strand_spawn(scope, receive_for_ever, &place.changes);
    for (int i = 0; i < 20; i++) {
        strand readers[READERS];
        for (int j = 0; j < READERS; j++)
            readers[j] = strand_spawn(scope, await_byte, &ends[0]);
        for (int j = 0; j < READERS; j++) {
            strand_sleep(STRAND_MS);
            CHECK_EQ(strand_write(ends[1], "x", 1), 1);
        }
        for (int j = 0; j < READERS; j++)
            strand_join(readers[j]);
    }
    strand_scope_cancel(scope, NULL);
    strand_scope_join(scope);
    CHECK_EQ(strand_close(ends[0]), 0);
    CHECK_EQ(strand_close(ends[1]), 0);
    return arg;
}

TEST_REAL(a_seeded_select_on_simulated_bytes_goes_on_beside_one_on_the_system)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        strand_run(STRAND_OPTIONS(.threads = 2, .has_seed = true, .seed = seed, .sim = STRAND_SIM(.silent = true)),
                   select_beside_the_system, NULL);
}

TEST_SYSTEM_INSIDE(a_file_that_is_observed_no_longer_is_reported_once)
{
    PLACE place = observe(IN_CREATE);
    make(&place, "a");
    CHECK_EQ(strand_changes_remove(place.changes, place.number), 0);
    make(&place, "b");
    check_next(&place, IN_CREATE | IN_ISDIR, "a");
    check_next(&place, IN_IGNORED, "");
    CHECK_EQ(strand_changes_remove(place.changes, place.number), -EINVAL);
    strand_change change;
    strand_case now = strand_on_change(place.changes, &change);
    CHECK_EQ(strand_select(&now, 1, STRAND_SELECT_NOW), -EAGAIN);
}

TEST_SYSTEM_INSIDE(a_directory_that_has_gone_is_observed_no_longer)
{
    PLACE place = observe(IN_CREATE);
    make(&place, "d");
    check_next(&place, IN_CREATE | IN_ISDIR, "d");
    int number = strand_changes_add(place.changes, place.dir, "d", IN_DELETE_SELF);
    CHECK(number > place.number);
    unmake(&place, "d");
    strand_change change = receive(place.changes);
    check_change(&change, number, IN_DELETE_SELF, "");
    change = receive(place.changes);
    check_change(&change, number, IN_IGNORED, "");
}

TEST_SYSTEM_INSIDE(a_path_may_be_relative_to_a_directory)
{
    PLACE place = observe(IN_CREATE);
    static char text[PATH_MAX + 1];
    char whole[60];
    make(&place, "d");
    snprintf(whole, sizeof whole, "%s/d", place.path);
    int number = strand_changes_add(place.changes, place.dir, "d", IN_CREATE);
    CHECK(number > place.number);
    CHECK_EQ(strand_changes_add(place.changes, place.dir, whole, IN_CREATE), number);
    CHECK_EQ(strand_changes_add(place.changes, place.dir, "none", IN_CREATE), -ENOENT);
    CHECK_EQ(strand_changes_add(place.changes, place.dir, "", IN_CREATE), -ENOENT);
    CHECK_EQ(strand_changes_add(place.changes, -1, "d", IN_CREATE), -EBADF);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_EQ(strand_changes_add(place.changes, place.dir, text, IN_CREATE), -ENAMETOOLONG);
}

/* ---- failures -------------------------------------------------------------------------------- */

TEST_SYSTEM_INSIDE(another_kind_of_descriptor_is_refused_and_keeps_its_bytes)
{
    int ends[2];
    char bytes[20] = "";
    strand_change change;
    CHECK_EQ(strand_pipe(ends), 0);
    CHECK_EQ(strand_write(ends[1], "0123456789abcdef", 16), 16);
    CHECK_EQ(strand_changes_receive(ends[0], &change, 1), -EINVAL);
    strand_case one = strand_on_change(ends[0], &change);
    CHECK_EQ(strand_select(&one, 1, 0), 0);
    CHECK_EQ(one.result, -EINVAL);
    CHECK_EQ(strand_changes_add(ends[0], AT_FDCWD, "/", IN_CREATE), -EINVAL);
    CHECK_EQ(strand_changes_remove(ends[0], 1), -EINVAL);
    CHECK_EQ(strand_read(ends[0], bytes, sizeof bytes), 16);
    CHECK_STR(bytes, "0123456789abcdef");
    CHECK_EQ(strand_close(ends[0]), 0);
    CHECK_EQ(strand_close(ends[1]), 0);
    CHECK_EQ(strand_changes_receive(ends[0], &change, 1), -EBADF);
    CHECK_EQ(strand_changes_remove(ends[0], 1), -EBADF);
    CHECK_EQ(strand_changes_add(ends[0], AT_FDCWD, "/", IN_CREATE), -EBADF);
}

TEST_SYSTEM_INSIDE(a_file_that_cannot_be_observed_is_an_error_code)
{
    PLACE place = observe(IN_CREATE);
    int fd = openat(place.dir, "a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(strand_changes_add(place.changes, place.dir, "a", IN_MODIFY | IN_ONLYDIR), -ENOTDIR);
    CHECK_EQ(strand_changes_add(place.changes, place.dir, "a", 0), -EINVAL);
}

TEST_REAL_INSIDE(no_free_descriptor_is_an_error_code)
{
    struct rlimit limit, none = {0, 0};
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none.rlim_max = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    int result = strand_changes_open();
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(result, -EMFILE);
}

static long most_queued(void)
{
    long most = 0;
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    if (!file || fscanf(file, "%ld", &most) != 1)
        most = 0;
    if (file)
        fclose(file);
    return most;
}

TEST_REAL_INSIDE(an_overflow_is_reported_once_where_changes_are_missing)
{
    PLACE place = observe(IN_CREATE | IN_DELETE);
    long most = most_queued(), received = 0, overflows = 0;
    if (most < 1 || most > 100000) {
        fprintf(stderr, "skipped: the system keeps %ld changes\n", most);
        return;
    }
    for (long i = 0; i < most / 2 + 10; i++) {
        make(&place, "a");
        unmake(&place, "a");
    }
    strand_change list[64];
    while (!overflows) {
        int got = strand_changes_receive(place.changes, list, 64);
        CHECK(got >= 1);
        for (int i = 0; i < got; i++, received++)
            if (list[i].what & IN_Q_OVERFLOW) {
                check_change(&list[i], -1, IN_Q_OVERFLOW, "");
                overflows++;
            }
    }
    CHECK(received <= most + 1);
    make(&place, "b");
    check_next(&place, IN_CREATE | IN_ISDIR, "b");
}
