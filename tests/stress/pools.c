/*
 * Pools and ports on real threads: pools that are opened, resized and closed while strands of other pools, plain
 * threads and timers wake those who live there. Nobody is forgotten, and nothing that was sent is lost.
 */
#define _GNU_SOURCE
#define SUITE stress_pools
#include "test.h"

#include "strand/chan.h"
#include "strand/pool.h"
#include "strand/port.h"
#include "strand/sync.h"

#include <errno.h>
#include <pthread.h>

static bool time_is_left(strand_time until)
{
    return strand_now().ns < until.ns;
}

static strand spawn_onto(strand_scope scope, strand_pool pool, strand_fn *fn, void *arg)
{
    return strand_spawn_with(scope, STRAND_ATTR(.pool = pool), fn, arg, 0);
}

static void must_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    CHECK_EQ(pthread_create(thread, NULL, fn, arg), 0);
}

/* ---- opened and closed ----------------------------------------------------------------------- */

enum { RESIDENTS = 6 };

static struct {
    strand_event events[RESIDENTS];
    strand_pool first, pool;
    _Atomic long woken, interrupted;
} brief;

static void record_end(bool *woken)
{
    if (*woken)
        brief.woken++;
    else
        brief.interrupted++;
}

/* Half of them take a close for nothing, and end by their own time: the last of the pool while somebody wakes it. */
static void *reside(void *arg)
{
    bool woken __attribute__((cleanup(record_end))) = false;
    uintptr_t i = (uintptr_t)arg;
    if (i % 2) {
        strand_event_wait(&brief.events[i]);
        woken = true;
    } else {
        STRAND_SHIELD;
        strand_sleep((int64_t)(i * 20) * STRAND_US);
        strand_event_wait(&brief.events[i]);
        woken = true;
    }
    return arg;
}

static void *wake_all(void *arg)
{
    for (int i = 0; i < RESIDENTS; i++) {
        strand_event_set(&brief.events[i]);
        strand_yield();
    }
    return arg;
}

static void *close_it(void *arg)
{
    strand_yield();
    strand_pool_close(brief.pool, "by somebody else");
    return arg;
}

static void live_briefly(const char *scheduler, int threads, bool by_two)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    brief.pool = strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = scheduler, .threads = threads));
    for (int i = 0; i < RESIDENTS; i++)
        brief.events[i] = (strand_event){0};
    for (uintptr_t i = 0; i < RESIDENTS; i++)
        spawn_onto(scope, brief.pool, reside, (void *)i);
    spawn_onto(scope, brief.first, wake_all, NULL);
    if (by_two)
        spawn_onto(scope, brief.first, close_it, NULL);
    strand_pool_close(brief.pool, "by its owner");
    strand_pool_info info = {.size = sizeof info};
    strand_pool_info_get(brief.pool, &info);
    CHECK_EQ(info.threads, 0);
    CHECK_EQ(info.strands, 0);
    strand_scope_cancel(scope, "it is over");
}

static void *open_and_close_for_a_while(void *arg)
{
    static const char *const schedulers[] = {"stealing", "global", "dedicated"};
    strand_time until = strand_in(test_scale(400) * STRAND_MS);
    long rounds = 0;
    brief.first = strand_pool_self();
    brief.woken = brief.interrupted = 0;
    for (; time_is_left(until) || rounds < 3; rounds++) {
        const char *scheduler = schedulers[rounds % 3];
        live_briefly(scheduler, scheduler[0] == 'd' ? 1 : 1 + (int)(rounds % 4), rounds % 2);
    }
    CHECK_EQ(brief.woken + brief.interrupted, rounds * RESIDENTS);
    return arg;
}

TEST_REAL(pools_are_opened_and_closed_while_others_wake_their_strands)
{
    test_run(open_and_close_for_a_while, NULL);
}

/* ---- resized, with what is pinned, and with messages of plain threads ------------------------- */

enum { SENDERS = 2, PINNED = 2 };

static struct {
    strand_port port;
    strand_chan chan;
    strand_pool pool;
    _Atomic bool enough;
    _Atomic long posted, sent, received, passed;
} busy;

static void *send_for_a_while(void *arg)
{
    for (long i = 0; !busy.enough; i++) {
        int error = strand_port_send(busy.port, &i, sizeof i);
        CHECK(error == 0 || error == -EAGAIN);
        if (error)
            sched_yield();
        else
            busy.posted++;
    }
    return arg;
}

/* Passes values on, and always continues on its own thread. */
static void *pass_on(void *arg)
{
    long value;
    int thread = strand_thread_index();
    while (strand_port_receive(busy.port, &value, sizeof value) >= 0) {
        CHECK_EQ(strand_thread_index(), thread);
        long number = ++busy.received;
        if (number % 8 == 0 && strand_chan_send(busy.chan, &value) == 0)
            busy.sent++;
        CHECK_EQ(strand_thread_index(), thread);
    }
    return arg;
}

static void *take(void *arg)
{
    long value;
    while (strand_chan_receive(busy.chan, &value) == 0)
        busy.passed++;
    return arg;
}

static void *keep_busy(void *arg)
{
    while (!busy.enough)
        strand_yield();
    return arg;
}

static void resize_for_a_while(strand_time until)
{
    for (int i = 0; time_is_left(until); i++) {
        int error = strand_pool_resize(busy.pool, 1 + i * 7 % 5);
        CHECK(error == 0 || error == -EBUSY);
        if (i % 3)
            strand_sleep(50 * STRAND_US);
        else
            strand_yield();
    }
}

static void use_for_a_while(const char *scheduler)
{
    pthread_t senders[SENDERS];
    STRAND_SCOPE(scope);
    busy.enough = false;
    busy.posted = busy.sent = busy.received = busy.passed = 0;
    busy.port = strand_port_open(scope, sizeof(long), 16, NULL);
    busy.chan = strand_chan_open(scope, sizeof(long), 2, NULL);
    busy.pool = strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = scheduler, .threads = 3));
    for (int i = 0; i < PINNED; i++)
        strand_spawn_with(scope, STRAND_ATTR(.pool = busy.pool, .pin = STRAND_PIN(i)), pass_on, NULL, 0);
    for (int i = 0; i < 4; i++)
        spawn_onto(scope, busy.pool, i % 2 ? keep_busy : take, NULL);
    strand_spawn(scope, take, NULL);
    for (int i = 0; i < SENDERS; i++)
        must_start(&senders[i], send_for_a_while, NULL);
    resize_for_a_while(strand_in(test_scale(200) * STRAND_MS));
    busy.enough = true;
    for (int i = 0; i < SENDERS; i++)
        CHECK_EQ(pthread_join(senders[i], NULL), 0);
    strand_port_close(busy.port);
    while (busy.received < busy.posted)
        strand_yield();
    while (busy.sent < busy.posted / 8 || busy.passed < busy.sent)
        strand_yield();
    strand_chan_close(busy.chan);
    strand_scope_join(scope);
    CHECK_EQ(busy.received, busy.posted);
    CHECK_EQ(busy.passed, busy.sent);
}

static void *use_all_for_a_while(void *arg)
{
    use_for_a_while("stealing");
    use_for_a_while("global");
    return arg;
}

TEST_REAL(a_pool_is_resized_while_plain_threads_and_pinned_strands_talk)
{
    test_run(use_all_for_a_while, NULL);
}

/* ---- driven, and looked at by those who know of no end ------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    strand_pool pool; /* under the lock */
    _Atomic bool enough;
    _Atomic long answers;
} driven = {.lock = PTHREAD_MUTEX_INITIALIZER};

static strand_pool handle_of_driven(void)
{
    pthread_mutex_lock(&driven.lock);
    strand_pool pool = driven.pool;
    pthread_mutex_unlock(&driven.lock);
    return pool;
}

static void *drive(void *arg)
{
    strand_pool pool = handle_of_driven();
    while (strand_pool_drive(pool, strand_in(STRAND_MS), STRAND_DRIVE_WAIT) == 1)
        continue;
    return arg;
}

/* Runs end under it, with all that they have made. */
static void *look_at_it(void *arg)
{
    while (!driven.enough) {
        strand_pool pool = handle_of_driven();
        int fd = pool.bits[1] ? strand_pool_fd(pool) : -ESHUTDOWN;
        CHECK(fd >= 0 || fd == -ESHUTDOWN);
        driven.answers++;
    }
    return arg;
}

static void *be_driven(void *arg)
{
    for (int i = 0; i < 5; i++)
        strand_yield();
    return arg;
}

static void *have_it_driven(void *arg)
{
    pthread_t driver;
    {
        STRAND_SCOPE(scope);
        strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = "current"));
        pthread_mutex_lock(&driven.lock);
        driven.pool = pool;
        pthread_mutex_unlock(&driven.lock);
        must_start(&driver, drive, NULL);
        for (int i = 0; i < 3; i++)
            CHECK_PTR(strand_join(spawn_onto(scope, pool, be_driven, arg)), arg);
    }
    CHECK_EQ(pthread_join(driver, NULL), 0);
    return arg;
}

TEST_REAL(a_plain_thread_looks_at_a_pool_while_its_run_ends)
{
    pthread_t looker;
    strand_time until = strand_in(test_scale(300) * STRAND_MS);
    driven.enough = false;
    must_start(&looker, look_at_it, NULL);
    do
        test_run(have_it_driven, &driven);
    while (time_is_left(until));
    driven.enough = true;
    CHECK_EQ(pthread_join(looker, NULL), 0);
    CHECK(driven.answers > 0);
}
