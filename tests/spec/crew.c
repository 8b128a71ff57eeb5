/*
 * Crews: as many threads as there are calls at a time, up to a bound, which go when there are none; several of them,
 * each of which ends with its scope.
 */
#define _GNU_SOURCE
#define SUITE crew
#include "blocker.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static struct blocker blocker;
static strand_crew crew; /* of the test, for its strands */

static strand_crew_info info_of(strand_crew which)
{
    strand_crew_info info = {.size = sizeof info};
    strand_crew_info_get(which, &info);
    CHECK(info.threads <= info.max_threads);
    CHECK_EQ(info.idle + info.running, info.threads);
    return info;
}

static void *offload_blocker(void *arg)
{
    return strand_offload_on(crew, block_until_released, arg);
}

static void *note_thread(void *id)
{
    *(pid_t *)id = gettid();
    return NULL;
}

/* ---- growing ---------------------------------------------------------------------------------- */

TEST_INSIDE(a_crew_has_no_thread_before_the_first_call)
{
    STRAND_SCOPE(scope);
    strand_crew mine = strand_crew_open(scope, NULL);
    strand_crew_info info = info_of(mine);
    CHECK_EQ(info.threads, 0);
    CHECK_EQ(info.max_threads, 8);
    CHECK_PTR(strand_offload_on(mine, test_return, TEST_PTR(3)), TEST_PTR(3));
    CHECK_EQ(info_of(mine).threads, 1);
}

TEST_INSIDE(calls_one_after_the_other_need_one_thread)
{
    STRAND_SCOPE(scope);
    strand_crew mine = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 4));
    for (int i = 0; i < 100; i++)
        strand_offload_on(mine, test_return, NULL);
    CHECK_EQ(info_of(mine).threads, 1);
    CHECK_EQ(info_of(mine).waiting, 0);
}

/* S-27 */
TEST_INSIDE(a_crew_grows_by_a_thread_when_none_is_idle_up_to_its_most)
{
    blocker_reset(&blocker);
    STRAND_SCOPE(calls);
    STRAND_SCOPE(scope);
    crew = strand_crew_open(calls, STRAND_CREW_ATTR(.max_threads = 3));
    for (int i = 1; i <= 5; i++) {
        strand_spawn(scope, offload_blocker, &blocker);
        test_await_blocked("waits for an offloaded call", i);
        YIELD_UNTIL(blocker.entered == (i < 3 ? i : 3));
        CHECK_EQ(info_of(crew).threads, i < 3 ? i : 3);
        CHECK_EQ(info_of(crew).running, i < 3 ? i : 3);
        CHECK_EQ(info_of(crew).waiting, i < 3 ? 0 : i - 3);
    }
    blocker.released = 1;
    strand_scope_join(scope);
    CHECK_EQ(blocker.passed, 5);
    YIELD_UNTIL(info_of(crew).idle == 3);
    strand_offload_on(crew, test_return, NULL);
    CHECK_EQ(info_of(crew).threads, 3);
}

TEST_INSIDE(the_runs_own_crew_has_no_handle)
{
    strand_crew own = {{0, 0}};
    CHECK_EQ(info_of(own).threads, 0);
    CHECK_PTR(strand_offload_on(own, test_return, TEST_PTR(4)), TEST_PTR(4));
    CHECK_EQ(info_of(own).threads, 1);
    CHECK_EQ(info_of(own).max_threads, 8);
}

static void *get_name(void *name)
{
    CHECK_EQ(pthread_getname_np(pthread_self(), name, 16), 0);
    return name;
}

TEST_REAL_INSIDE(the_threads_of_a_crew_have_its_name)
{
    static char name[16];
    STRAND_SCOPE(scope);
    strand_crew mine = strand_crew_open(scope, STRAND_CREW_ATTR(.name = "readers of the disk"));
    strand_offload_on(mine, get_name, name);
    CHECK_STR(name, "readers of the ");
    strand_offload(get_name, name);
    CHECK_STR(name, "strand-crew");
}

static _Atomic int inside, most_inside, calls;

static void *count_inside(void *arg)
{
    int now = ++inside, most = most_inside;
    while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
        continue;
    calls++;
    inside--;
    return arg;
}

static void *offload_count(void *arg)
{
    for (int i = 0; i < 5; i++)
        strand_offload_on(crew, count_inside, arg);
    return arg;
}

TEST_INSIDE(many_strands_use_a_small_crew)
{
    calls = most_inside = 0;
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 2));
    for (int i = 0; i < 50; i++)
        strand_spawn(scope, offload_count, NULL);
    strand_scope_join(scope);
    CHECK_EQ(calls, 250);
    CHECK(most_inside >= 1 && most_inside <= 2);
    CHECK(info_of(crew).threads <= 2);
}

static void *note_turn(void *arg)
{
    test_log("%d", (int)(intptr_t)arg);
    return arg;
}

static void *offload_turn(void *arg)
{
    return strand_offload_on(crew, note_turn, arg);
}

TEST_INSIDE(calls_that_wait_are_served_first_come_first_served)
{
    blocker_reset(&blocker);
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 1));
    strand_spawn(scope, offload_blocker, &blocker);
    YIELD_UNTIL(blocker.entered);
    for (int i = 1; i <= 4; i++) {
        strand_spawn(scope, offload_turn, TEST_PTR(i));
        test_await_blocked("waits for an offloaded call", i + 1);
    }
    blocker.released = 1;
    strand_scope_join(scope);
    CHECK_LOG("1 2 3 4");
}

/* S-27 */
TEST_INSIDE(calls_of_one_crew_do_not_wait_for_those_of_another)
{
    blocker_reset(&blocker);
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 1));
    strand_crew other = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 1));
    strand_spawn(scope, offload_blocker, &blocker);
    YIELD_UNTIL(blocker.entered);
    CHECK_PTR(strand_offload_on(other, test_return, TEST_PTR(1)), TEST_PTR(1));
    CHECK_PTR(strand_offload(test_return, TEST_PTR(2)), TEST_PTR(2));
    CHECK_EQ(blocker.passed, 0);
    blocker.released = 1;
    strand_scope_join(scope);
}

/* ---- the bound of those who wait -------------------------------------------------------------- */

static void *offload_nothing(void *arg)
{
    strand_offload_on(crew, test_return, arg);
    return arg;
}

TEST_INSIDE(a_call_for_which_there_is_no_room_to_wait_throws)
{
    blocker_reset(&blocker);
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 1, .max_waiting = 2));
    strand_spawn(scope, offload_blocker, &blocker);
    YIELD_UNTIL(blocker.entered);
    strand_spawn(scope, offload_nothing, NULL);
    strand_spawn(scope, offload_nothing, NULL);
    test_await_blocked("waits for an offloaded call", 3);
    strand_exception *e = strand_try(offload_nothing, NULL, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -ENOBUFS);
    strand_exception_release(e);
    blocker.released = 1;
    strand_scope_join(scope);
    YIELD_UNTIL(info_of(crew).idle == 1);
    offload_nothing(NULL);
}

/* ---- shrinking -------------------------------------------------------------------------------- */

/* S-27 */
TEST_INSIDE(threads_that_have_had_no_call_for_a_while_go_and_new_ones_come)
{
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 3, .idle_ns = 20 * STRAND_MS));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 6; i++)
            strand_spawn(scope, offload_count, NULL);
        strand_scope_join(scope);
        CHECK(info_of(crew).threads >= 1);
        YIELD_UNTIL(!info_of(crew).threads);
    }
}

static void *call_the_last_again(void *arg)
{
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 3, .idle_ns = 500 * STRAND_MS));
    blocker_reset(&blocker);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, offload_blocker, &blocker);
    YIELD_UNTIL(blocker.entered == 3);
    blocker.released = 1;
    strand_scope_join(scope);
    strand_sleep(10 * STRAND_MS); /* virtual: the time goes on when all three sleep */
    /* One thread stays in use. The others go meanwhile, whichever they are. */
    static pid_t first, id;
    strand_offload_on(crew, note_thread, &first);
    for (int i = 0; i < 100; i++) {
        strand_sleep(10 * STRAND_MS);
        strand_offload_on(crew, note_thread, &id);
        CHECK_EQ(id, first);
    }
    CHECK_EQ(info_of(crew).threads, 1);
    return arg;
}

TEST_REAL(the_idle_thread_that_ran_last_is_woken)
{
    for (uint64_t seed = 1; seed <= 10; seed++)
        strand_run(STRAND_OPTIONS(.has_seed = true, .seed = seed, .sim = STRAND_SIM(.silent = true)),
                   call_the_last_again, NULL);
}

static long voluntary_switches(pid_t thread)
{
    char path[64], line[256];
    long switches = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "voluntary_ctxt_switches: %ld", &switches) == 1)
            break;
    if (file)
        fclose(file);
    return switches;
}

/* S-51 */
TEST_REAL_INSIDE(an_idle_thread_does_not_wake_up_before_it_goes)
{
    static pid_t id;
    long before, after;
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, STRAND_CREW_ATTR(.idle_ns = STRAND_S));
    do { /* on a busy machine it may not be idle soon, or be idle for a second and gone */
        strand_offload_on(crew, note_thread, &id);
        strand_sleep(50 * STRAND_MS);
        before = voluntary_switches(id);
        strand_sleep(200 * STRAND_MS);
        after = voluntary_switches(id);
    } while (before <= 0 || after != before);
    YIELD_UNTIL(info_of(crew).threads == 0);
    YIELD_UNTIL(voluntary_switches(id) == -1);
}

TEST_REAL_INSIDE(idle_threads_stay_if_idle_ns_says_so)
{
    static pid_t id;
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, STRAND_CREW_ATTR(.idle_ns = -1));
    strand_offload_on(crew, note_thread, &id);
    strand_sleep(100 * STRAND_MS);
    CHECK_EQ(info_of(crew).threads, 1);
    CHECK(voluntary_switches(id) >= 0);
}

static void *stay_for_a_while(void *arg)
{
    crew = (strand_crew){{0, 0}};
    strand_offload(test_return, NULL);
    CHECK_EQ(info_of(crew).threads, 1);
    strand_sleep(9 * STRAND_S);
    CHECK_EQ(info_of(crew).threads, 1);
    strand_sleep(2 * STRAND_S);
    CHECK_EQ(info_of(crew).threads, 0);
    return arg;
}

TEST_REAL(a_thread_of_the_runs_crew_goes_after_ten_seconds)
{
    strand_run(STRAND_OPTIONS(.has_seed = true, .seed = 1, .sim = STRAND_SIM(.silent = true)), stay_for_a_while, NULL);
}

/* ---- the end ---------------------------------------------------------------------------------- */

static int count_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;)
        count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static void use_a_crew(void)
{
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 3));
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, offload_blocker, &blocker);
    YIELD_UNTIL(blocker.entered == 3);
    blocker.released = 1;
    strand_scope_join(scope);
}

/* contract 7.5 */
TEST_REAL_INSIDE(with_the_scope_its_threads_are_gone)
{
    strand_offload(test_return, NULL); /* a sanitizer may make a thread of its own for the first one */
    int before = count_threads();
    use_a_crew();
    YIELD_UNTIL(count_threads() == before); /* the system shows it a moment longer */
    CHECK_EQ(blocker.passed, 3);
}

static void *leave_call(void *arg)
{
    strand_offload_with(STRAND_OFFLOAD_ATTR(.crew = crew), block_until_released, arg, 0);
    return arg;
}

/* Owns the crew, and leaves its scope while a call that was left runs. */
static void *own_a_crew(void *arg)
{
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, NULL);
    strand child = strand_spawn(scope, leave_call, &blocker);
    YIELD_UNTIL(blocker.entered);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    test_log("leaving");
    return arg;
}

/* contract 7.5 */
TEST_INSIDE(leaving_the_scope_waits_for_calls_that_were_left)
{
    blocker_reset(&blocker);
    STRAND_SCOPE(scope);
    strand owner = strand_spawn(scope, own_a_crew, NULL);
    test_await_blocked("waits for the end of a crew", 1);
    CHECK(!strand_ended(owner));
    strand_cancel(owner, NULL);
    for (int i = 0; i < 20; i++)
        strand_sleep(STRAND_MS);
    CHECK(!strand_ended(owner));
    CHECK_LOG("leaving");
    blocker.released = 1;
    CHECK_EQ(strand_join(owner) != NULL, 0);
    CHECK_EQ(blocker.passed, 1);
}

static _Atomic int opened, leave;

static void *lend_a_crew(void *arg)
{
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 1, .name = "lent"));
    opened = 1;
    test_yield_until(&leave, 1);
    return arg;
}

static void *offload_too_late(void *arg)
{
    STRAND_TRY {
        strand_offload_on(crew, test_return, arg);
        CHECK_FAIL("it was called");
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
        CHECK_EQ(strand_exception_code(e), -ECANCELED);
        test_log("refused");
    }
    STRAND_END
    return arg;
}

TEST_INSIDE(calls_of_unrelated_strands_end_with_the_crew_or_are_refused)
{
    opened = leave = 0;
    blocker_reset(&blocker);
    STRAND_SCOPE(scope);
    strand owner = strand_spawn(scope, lend_a_crew, NULL);
    test_yield_until(&opened, 1);
    strand runs = strand_spawn(scope, offload_blocker, &blocker);
    YIELD_UNTIL(blocker.entered);
    strand waits = strand_spawn(scope, offload_too_late, NULL);
    test_await_blocked("waits for an offloaded call", 2);
    leave = 1;
    strand_join(waits);
    CHECK_LOG("refused");
    test_await_blocked("waits for the end of a crew", 1);
    CHECK(!strand_ended(owner));
    blocker.released = 1;
    strand_join(owner);
    CHECK_PTR(strand_join(runs), &blocker);
}

TEST_INSIDE(crews_are_opened_and_end_again_and_again)
{
    for (int i = 0; i < 20; i++) {
        STRAND_SCOPE(scope);
        strand_crew first = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 2));
        strand_crew second = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 1));
        if (i % 2)
            strand_offload_on(first, test_return, NULL);
        if (i % 3)
            strand_offload_on(second, test_return, NULL);
    }
}

static void *open_into(void *arg)
{
    crew = strand_crew_open(*(strand_scope *)arg, NULL);
    return arg;
}

TEST_INSIDE(others_may_open_crews_in_an_open_scope)
{
    static strand_scope handle;
    strand child;
    STRAND_SCOPE(outer);
    {
        STRAND_SCOPE_OPEN(scope);
        handle = scope;
        strand_join(strand_spawn(outer, open_into, &handle));
        CHECK_PTR(strand_offload_on(crew, test_return, TEST_PTR(9)), TEST_PTR(9));
    }
    child = strand_spawn(outer, open_into, &handle);
    strand_exception *e = NULL;
    STRAND_TRY {
        strand_join(child);
    }
    STRAND_CATCH(&STRAND_SYSTEM, caught) {
        e = strand_exception_keep(caught);
    }
    STRAND_END
    CHECK_EQ(strand_exception_code(e), -ECANCELED);
    strand_exception_release(e);
}

static void *fail_with_a_crew(void *arg)
{
    STRAND_SCOPE(scope);
    crew = strand_crew_open(scope, NULL);
    strand_offload_on(crew, test_return, arg);
    strand_throw(&TEST_ERROR, "on purpose");
}

TEST_INSIDE(a_scope_with_a_crew_is_left_by_an_exception)
{
    CHECK_THROWS(fail_with_a_crew, NULL, &TEST_ERROR);
}
