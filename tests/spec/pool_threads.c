/*
 * The threads of opened pools: their number, the strands that they run, sleeping and polling.
 */
#define _GNU_SOURCE
#define SUITE pool_threads
#include "test.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/pool.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static strand_pool open_pool(strand_scope scope, const char *scheduler, int threads)
{
    return strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = scheduler, .threads = threads));
}

/* ---- how many ------------------------------------------------------------------------------- */

static void check_allowed(int threads)
{
    STRAND_SCOPE(scope);
    strand_pool usual = strand_pool_open(scope, NULL), pool = open_pool(scope, NULL, STRAND_THREADS_ALLOWED);
    CHECK_EQ(test_pool_info(usual).wanted, threads);
    CHECK_EQ(test_pool_info(usual).threads, threads);
    CHECK_EQ(test_pool_info(pool).wanted, threads);
    CHECK_EQ(test_pool_info(pool).threads, threads);
    CHECK_EQ(strand_pool_resize(pool, threads + 1), 0);
    CHECK_EQ(test_pool_info(pool).wanted, threads + 1);
    CHECK_EQ(strand_pool_resize(pool, STRAND_THREADS_ALLOWED), 0);
    CHECK_EQ(test_pool_info(pool).wanted, threads);
}

/* S-24, S-28, contract 2.12 */
TEST_REAL_INSIDE(a_pool_has_a_thread_for_each_cpu_that_may_be_used_and_the_environment_limits_that)
{
    unsetenv("STRAND_THREADS");
    check_allowed(strand_threads_allowed());
    setenv("STRAND_THREADS", "1", 1);
    check_allowed(1);
}

static void *drive_to_its_end(void *pool)
{
    while (strand_pool_drive(*(strand_pool *)pool, strand_in(STRAND_MS), STRAND_DRIVE_WAIT) == 1)
        continue;
    return NULL;
}

static void check_one(const char *scheduler, int asked)
{
    STRAND_SCOPE(scope);
    strand_pool pool = open_pool(scope, scheduler, asked);
    CHECK_EQ(test_pool_info(pool).wanted, 1);
    if (scheduler[0] != 'c')
        CHECK_EQ(strand_pool_resize(pool, STRAND_THREADS_ALLOWED), 0);
    CHECK_EQ(test_pool_info(pool).wanted, 1);
    if (scheduler[0] == 'c') { /* which ends when it is driven */
        pthread_t driver;
        CHECK_EQ(pthread_create(&driver, NULL, drive_to_its_end, &pool), 0);
        strand_pool_close(pool, NULL);
        CHECK_EQ(pthread_join(driver, NULL), 0);
    }
}

/* S-24 */
TEST_REAL_INSIDE(of_a_scheduler_with_one_thread_all_that_are_allowed_are_one)
{
    static const char *const schedulers[] = {"dedicated", "current"};
    for (int i = 0; i < 2; i++) {
        check_one(schedulers[i], 0);
        check_one(schedulers[i], STRAND_THREADS_ALLOWED);
    }
}

/* S-24 */
TEST_REAL_INSIDE(a_pool_that_is_bound_to_cpus_has_a_thread_for_each)
{
    cpu_set_t set;
    int cpus[3], cpu = 0;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    cpus[0] = cpus[1] = cpus[2] = cpu;
    STRAND_SCOPE(scope);
    CHECK_EQ(test_pool_info(strand_pool_open(scope, STRAND_POOL_ATTR(.cpus = cpus, .cpus_count = 3))).wanted, 3);
}

static struct {
    _Atomic int here;
    int wanted;
} meeting;

/* Without a switch until all are here. */
static void *meet(void *arg)
{
    for (meeting.here++; meeting.here < meeting.wanted;)
        sched_yield();
    return arg;
}

static void meet_on(strand_scope scope, strand_pool pool, int count)
{
    for (int i = 0; i < count; i++)
        test_spawn_onto(scope, pool, meet, NULL);
}

static void expect_to_meet(int count)
{
    meeting.here = 0;
    meeting.wanted = count;
}

/* V-06 */
TEST_REAL_INSIDE(as_many_strands_run_at_the_same_time_as_all_pools_have_threads)
{
    STRAND_SCOPE(scope);
    strand_pool some = open_pool(scope, NULL, 3), others = open_pool(scope, "global", 2);
    strand_pool one = open_pool(scope, "dedicated", 1);
    expect_to_meet(6);
    meet_on(scope, some, 3);
    meet_on(scope, others, 2);
    meet_on(scope, one, 1);
    strand_scope_join(scope);
    CHECK_EQ(strand_pool_resize(some, 5), 0);
    expect_to_meet(5);
    meet_on(scope, some, 5);
    strand_scope_join(scope);
}
TEST_OWN_STACKS(as_many_strands_run_at_the_same_time_as_all_pools_have_threads, "there are fewer fibres than threads");

static _Atomic int running, most_running;

static void *count_running(void *arg)
{
    for (long i = 0; i < test_scale(100); i++) {
        int now = ++running, most = most_running;
        while (now > most && !atomic_compare_exchange_weak(&most_running, &most, now))
            continue;
        for (volatile int spin = 0; spin < 100; spin++)
            continue;
        running--;
        strand_yield();
    }
    return arg;
}

static void count_on(strand_pool pool, int threads)
{
    most_running = 0;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 20; i++)
        test_spawn_onto(scope, pool, count_running, NULL);
    strand_scope_join(scope);
    CHECK(most_running >= 1 && most_running <= threads);
}

/* V-06 */
TEST_REAL_INSIDE(never_more_strands_of_a_pool_run_at_a_time_than_it_has_threads)
{
    STRAND_SCOPE(scope);
    strand_pool pool = open_pool(scope, NULL, 1);
    for (int threads = 1; threads <= 4; threads++) {
        CHECK_EQ(strand_pool_resize(pool, threads), 0);
        count_on(pool, threads);
    }
    CHECK_EQ(strand_pool_resize(pool, 2), 0);
    test_await_threads(pool, 2);
    count_on(pool, 2);
    count_on(open_pool(scope, "dedicated", 1), 1);
}

static void *note_thread(void *arg)
{
    pid_t here = gettid();
    for (int i = 0; i < 20; i++) {
        strand_yield();
        CHECK_EQ(gettid(), here);
        strand_sleep(10 * STRAND_US);
        CHECK_EQ(gettid(), here);
    }
    *(pid_t *)arg = here;
    return arg;
}

/* S-39, S-40, contract 2.16 */
TEST_REAL_INSIDE(each_dedicated_pool_has_a_thread_of_its_own_on_which_all_its_strands_stay)
{
    static pid_t seen[9];
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++) {
        strand_pool pool = open_pool(scope, "dedicated", 1);
        for (int k = 0; k < 3; k++)
            test_spawn_onto(scope, pool, note_thread, &seen[3 * i + k]);
    }
    strand_scope_join(scope);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(seen[3 * i + 1], seen[3 * i]);
        CHECK_EQ(seen[3 * i + 2], seen[3 * i]);
        CHECK(seen[3 * i] != gettid());
        for (int k = 0; k < i; k++)
            CHECK(seen[3 * i] != seen[3 * k]);
    }
}

/* ---- which thread --------------------------------------------------------------------------- */

static _Atomic int held, let_go;

/* Occupies its thread: comes to no switch until it is let go. */
static void *hold_the_thread(void *arg)
{
    held = strand_thread_index() + 1;
    while (!let_go)
        sched_yield();
    return arg;
}

static strand hold(strand_scope scope, strand_pool pool, int index)
{
    held = let_go = 0;
    strand holder = strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = STRAND_PIN(index), .stack_size = 1 << 17),
                                      hold_the_thread, NULL, 0);
    test_yield_until(&held, index + 1);
    return holder;
}

static _Atomic int ran_on;

static void *note_index(void *arg)
{
    ran_on = strand_thread_index() + 1;
    return arg;
}

/* S-41 */
TEST_REAL_INSIDE(a_pinned_strand_waits_for_its_thread_although_others_have_nothing_to_do)
{
    STRAND_SCOPE(scope);
    for (int index = 0; index < 3; index++) {
        strand_pool pool = open_pool(scope, index == 1 ? "global" : NULL, 3);
        strand holder = hold(scope, pool, index);
        ran_on = 0;
        strand pinned =
            strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = STRAND_PIN(index)), note_index, NULL, 0);
        strand_sleep(30 * STRAND_MS); /* the others look for work meanwhile */
        CHECK_EQ(ran_on, 0);
        let_go = 1;
        strand_join(holder);
        strand_join(pinned);
        CHECK_EQ(ran_on, index + 1);
    }
}

/* It has run on a thread that is held by another strand then; or it went on before that, on a busy machine. */
struct moved {
    void (*wait)(struct moved *moved);
    strand_chan chan;
    int64_t nap;
    _Atomic int waits_on, goes_on_on; /* the index of a thread, and 1 */
    bool too_soon;
};

static void *wait_and_go_on(void *arg)
{
    struct moved *moved = arg;
    moved->waits_on = strand_thread_index() + 1;
    moved->wait(moved);
    moved->goes_on_on = strand_thread_index() + 1;
    moved->too_soon = held != moved->waits_on;
    return arg;
}

static void wait_for_time(struct moved *moved)
{
    strand_sleep(moved->nap);
}

static void wait_for_a_value(struct moved *moved)
{
    char value;
    CHECK_EQ(strand_chan_receive(moved->chan, &value), 0);
}

static void *sleep_outside(void *arg)
{
    usleep((useconds_t)(((struct moved *)arg)->nap / STRAND_US));
    return arg;
}

static void wait_for_outside(struct moved *moved)
{
    strand_offload(sleep_outside, moved);
}

static bool goes_on_while_it_is_occupied(const char *scheduler, void (*wait)(struct moved *moved), int64_t nap)
{
    static struct moved moved;
    char value = 'x';
    STRAND_SCOPE(scope);
    strand_pool pool = open_pool(scope, scheduler, 2);
    held = 0;
    moved = (struct moved){.wait = wait, .chan = strand_chan_open(scope, 1, 0, NULL), .nap = nap};
    strand moving = test_spawn_onto(scope, pool, wait_and_go_on, &moved);
    while (!moved.waits_on)
        strand_sleep(STRAND_MS);
    strand holder = hold(scope, pool, moved.waits_on - 1);
    if (wait == wait_for_a_value)
        CHECK_EQ(strand_chan_send(moved.chan, &value), 0);
    strand_join(moving);
    CHECK(moved.too_soon || moved.goes_on_on != moved.waits_on);
    let_go = 1;
    strand_join(holder);
    return !moved.too_soon;
}

static void goes_on_elsewhere(const char *scheduler, void (*wait)(struct moved *moved))
{
    int64_t nap = 30 * STRAND_MS;
    while (!goes_on_while_it_is_occupied(scheduler, wait, nap))
        nap *= 2;
}

/* S-46, S-60, A-15, V-07, contract 2.8 */
TEST_REAL_INSIDE(a_strand_whose_last_thread_is_occupied_goes_on_on_another_that_has_nothing_to_do)
{
    goes_on_elsewhere(NULL, wait_for_time);
    goes_on_elsewhere(NULL, wait_for_a_value);
    goes_on_elsewhere(NULL, wait_for_outside);
    goes_on_elsewhere("global", wait_for_time);
    goes_on_elsewhere("global", wait_for_a_value);
}

struct caller {
    strand_chan calls, answers;
    _Atomic int *rounds;
};

static void *answer(void *arg)
{
    struct caller *caller = arg;
    int value;
    while (strand_chan_receive(caller->calls, &value) == 0)
        CHECK_EQ(strand_chan_send(caller->answers, &value), 0);
    return arg;
}

enum { CALLED = 4, ROUNDS = 30 };

static void *call_all(void *arg)
{
    struct caller *callers = arg;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CALLED; i++)
            CHECK_EQ(strand_chan_send(callers[i].calls, &round), 0);
        for (int i = 0, value; i < CALLED; i++) {
            CHECK_EQ(strand_chan_receive(callers[i].answers, &value), 0);
            CHECK_EQ(value, round);
        }
        strand_sleep(round % 3 ? 100 * STRAND_US : 3 * STRAND_MS); /* all others fall asleep, or are about to */
    }
    for (int i = 0; i < CALLED; i++)
        strand_chan_close(callers[i].calls);
    return arg;
}

static void call_from(strand_pool pool, int pin)
{
    static struct caller callers[CALLED];
    static const char *const schedulers[CALLED] = {"stealing", "global", "dedicated", NULL};
    STRAND_SCOPE(scope);
    for (int i = 0; i < CALLED; i++) {
        callers[i] = (struct caller){.calls = strand_chan_open(scope, sizeof(int), 0, NULL),
                                     .answers = strand_chan_open(scope, sizeof(int), 0, NULL)};
        strand_pool other = i == CALLED - 1 ? strand_pool_self() : open_pool(scope, schedulers[i], i < 2 ? 2 : 1);
        test_spawn_onto(scope, other, answer, &callers[i]);
    }
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = pin), call_all, callers, 0));
    strand_scope_join(scope);
}

/* S-59 */
TEST_INSIDE(a_pinned_strand_wakes_strands_of_any_pool_whose_threads_sleep)
{
    STRAND_SCOPE(scope);
    call_from(open_pool(scope, "dedicated", 1), STRAND_PIN(0));
    call_from(open_pool(scope, NULL, 2), STRAND_PIN(1));
    call_from(strand_pool_self(), STRAND_PIN_HERE);
}

/* ---- sleeping and polling -------------------------------------------------------------- */

static int64_t cpu_ns(const struct rusage *usage)
{
    return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * STRAND_S +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * STRAND_US;
}

enum { POOLS = 4, POLLERS = 64 };

static void open_pools(strand_scope scope, strand_pool pools[POOLS])
{
    pools[0] = strand_pool_self();
    pools[1] = open_pool(scope, "stealing", 4);
    pools[2] = open_pool(scope, "global", 3);
    pools[3] = open_pool(scope, "dedicated", 1);
    for (int i = 0; i < POOLS; i++)
        for (int k = 0; k < 20; k++)
            test_spawn_onto(scope, pools[i], test_sleep, NULL);
}

/* Ends with the first 100 ms that are quiet: threads take a while to settle, a long one on a busy machine. */
/* S-51, contract 2.1 */
TEST_REAL_INSIDE(the_threads_of_pools_in_which_all_sleep_use_no_cpu_and_do_not_wake_up)
{
    strand_pool pools[POOLS];
    STRAND_SCOPE(scope);
    open_pools(scope, pools);
    for (bool quiet = false; !quiet;) {
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        strand_sleep(100 * STRAND_MS);
        getrusage(RUSAGE_SELF, &after);
        quiet = cpu_ns(&after) - cpu_ns(&before) < 3 * STRAND_MS && after.ru_nvcsw - before.ru_nvcsw <= 8;
    }
    strand_scope_cancel(scope, NULL);
}

/* Threads of the process that are there before the run, but for the caller's: the test runner's. */
static struct {
    int count;
    pid_t ids[32];
} others;

/* What the other threads of this process do at a moment, as the system tells. */
struct waiting {
    bool known;
    int pollers; /* threads that wait for descriptors */
    int same;    /* pairs of them that wait for the same ones */
    int fds[POLLERS];
};

static bool is_other(pid_t thread)
{
    for (int i = 0; i < others.count; i++)
        if (others.ids[i] == thread)
            return true;
    return false;
}

/* The descriptor that a thread waits with; -1: it does something else; -2: that is not known. */
static int waits_at(pid_t thread)
{
    char path[64], text[200] = "";
    long call = -1;
    unsigned long fd = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    FILE *file = fopen(path, "re");
    if (!file)
        return -2;
    bool read = fgets(text, sizeof text, file) && sscanf(text, "%ld %lx", &call, &fd) == 2;
    fclose(file);
    return read && (call == SYS_epoll_wait || call == SYS_epoll_pwait || call == SYS_epoll_pwait2) ? (int)fd : -1;
}

static void for_each_thread(void (*fn)(pid_t thread, void *arg), void *arg)
{
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *entry; (entry = readdir(tasks));)
        if (entry->d_name[0] != '.')
            fn((pid_t)atol(entry->d_name), arg);
    closedir(tasks);
}

static void note_other(pid_t thread, void *arg)
{
    (void)arg;
    if (thread != gettid() && others.count < 32)
        others.ids[others.count++] = thread;
}

static void look_at(pid_t thread, void *arg)
{
    struct waiting *now = arg;
    int fd = is_other(thread) ? -1 : waits_at(thread);
    now->known &= fd != -2;
    for (int i = 0; fd >= 0 && i < now->pollers; i++)
        now->same += now->fds[i] == fd;
    if (fd >= 0 && now->pollers < POLLERS)
        now->fds[now->pollers++] = fd;
}

enum { RIGHT = 5 };
static _Atomic int looked;

/* On a plain thread, while all strands sleep. The role may be passed on while the threads are looked at, one after the
 * other, and a thread that has woken up to look around may have to wait for a processor: so a few times will do. */
static void *look_again_and_again(void *arg)
{
    int pools = *(int *)arg;
    for (int right = 0; right < RIGHT;) {
        struct waiting now = {.known = true};
        for_each_thread(look_at, &now);
        right += now.pollers == pools && !now.same;
        if (!now.known) /* the system does not tell */
            right = RIGHT;
        usleep(2000);
    }
    looked = 1;
    return NULL;
}

static void look(int pools)
{
    static int count;
    pthread_t thread;
    count = pools;
    looked = 0;
    CHECK_EQ(pthread_create(&thread, NULL, look_again_and_again, &count), 0);
    while (!looked)
        strand_sleep(50 * STRAND_MS);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *look_at_pools(void *arg)
{
    strand_pool pools[POOLS];
    STRAND_SCOPE(scope);
    open_pools(scope, pools);
    look(POOLS);
    for (int index = 0; index < 4; index++) {
        strand holder = hold(scope, pools[1], index);
        look(POOLS);
        let_go = 1;
        strand_join(holder);
    }
    strand_scope_cancel(scope, NULL);
    return arg;
}

/* V-19, V-23, contract 2.2, 2.3 */
TEST_REAL(one_thread_of_each_pool_waits_for_descriptors_and_another_if_that_is_occupied)
{
    others.count = 0;
    for_each_thread(note_other, NULL);
    test_run(look_at_pools, NULL);
}
