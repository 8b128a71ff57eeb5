/*
 * Operations that may block, where they return at once: a loop of them lets others run, on one thread too.
 */
#define SUITE yield_in_loops
#include "growth.h"
#include "test.h"

#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

STRAND_MESSAGE(question, { int number; });

/* What the operations are called on. */
static strand_scope empty, collecting, service;
static strand ended;
static strand_actor gone;
static strand_actors no_actors;
static strand_chan closed_chan;
static strand_port closed_port;
static strand_mutex mutex;
static strand_rwlock rwlock;
static strand_semaphore semaphore;
static strand_event event;
static strand_limit limit;
static strand_barrier barrier;
static strand_once once;
static int ends[2];
static char byte;

#define NO_FD 1000000

static void read_bad(void)
{
    CHECK_EQ(strand_read(NO_FD, &byte, 1), -EBADF);
}

static void write_bad(void)
{
    CHECK_EQ(strand_write(NO_FD, &byte, 1), -EBADF);
}

static void read_all_bad(void)
{
    CHECK_EQ(strand_read_all(NO_FD, &byte, 1), -EBADF);
}

static void write_all_bad(void)
{
    CHECK_EQ(strand_write_all(NO_FD, &byte, 1), -EBADF);
}

static void ready_bad(void)
{
    CHECK_EQ(strand_wait_ready(NO_FD, STRAND_READABLE), -EBADF);
}

static void accept_bad(void)
{
    CHECK_EQ(strand_accept(NO_FD), -EBADF);
}

static void connect_bad(void)
{
    struct sockaddr_in nowhere = {.sin_family = AF_INET};
    CHECK_EQ(strand_connect(NO_FD, &nowhere, sizeof nowhere), -EBADF);
}

static void read_nothing(void)
{
    CHECK_EQ(strand_read(ends[0], &byte, 0), 0);
}

static void read_all_nothing(void)
{
    CHECK_EQ(strand_read_all(ends[0], &byte, 0), 0);
}

static void write_nothing(void)
{
    CHECK_EQ(strand_write(ends[1], &byte, 0), 0);
}

static void write_all_nothing(void)
{
    CHECK_EQ(strand_write_all(ends[1], &byte, 0), 0);
}

static void write_and_read(void)
{
    CHECK_EQ(strand_write(ends[1], &byte, 1), 1);
    CHECK_EQ(strand_read(ends[0], &byte, 1), 1);
}

static void ready(void)
{
    CHECK_EQ(strand_wait_ready(ends[1], STRAND_WRITABLE), 0);
}

/* Nobody may listen there. */
static void dial_refused(void)
{
    int fd = strand_dial_tcp("127.0.0.1", 1);
    CHECK(fd < 0);
}

static void dial_no_path(void)
{
    int fd = strand_dial_unix("/nowhere/at/all");
    CHECK_EQ(fd, -ENOENT);
}

static void listen_and_close(void)
{
    int fd = strand_listen_tcp("127.0.0.1", 0);
    CHECK(fd >= 0);
    CHECK_EQ(strand_close(fd), 0);
}

static void wait_ended(void)
{
    strand_wait(ended);
}

static void scope_join(void)
{
    strand_scope_join(empty);
}

static void scope_next(void)
{
    CHECK(!strand_scope_wait_next(collecting).bits[0]);
}

static void scope_next_of_service(void)
{
    CHECK(!strand_scope_wait_next(service).bits[0]);
}

static void ask_gone(void)
{
    question answer;
    CHECK(strand_ask(gone, STRAND_MSG(question, .number = 1), STRAND_INTO(question, &answer)) < 0);
}

static void wait_gone(void)
{
    CHECK_EQ(strand_actor_wait(gone), 0);
}

static void join_actors(void)
{
    strand_actors_join(no_actors);
}

static void receive_closed(void)
{
    CHECK_EQ(strand_chan_receive(closed_chan, &byte), -EPIPE);
}

static void send_closed(void)
{
    CHECK_EQ(strand_chan_send(closed_chan, &byte), -EPIPE);
}

static void receive_from_closed_port(void)
{
    CHECK(strand_port_receive(closed_port, &byte, 1) < 0);
}

static void select_closed(void)
{
    strand_case cases[] = {strand_on_receive(closed_chan, &byte)};
    CHECK_EQ(strand_select(cases, 1, 0), 0);
}

static void lock(void)
{
    strand_mutex_lock(&mutex);
    strand_mutex_unlock(&mutex);
}

static void lock_to_read(void)
{
    strand_rwlock_read(&rwlock);
    strand_rwlock_read_done(&rwlock);
}

static void lock_to_write(void)
{
    strand_rwlock_write(&rwlock);
    strand_rwlock_write_done(&rwlock);
}

static void acquire(void)
{
    strand_semaphore_acquire(&semaphore);
    strand_semaphore_release(&semaphore);
}

static void acquire_from_limit(void)
{
    strand_limit_acquire(&limit);
    strand_limit_release(&limit);
}

static void wait_for_event(void)
{
    strand_event_wait(&event);
}

static void wait_at_barrier(void)
{
    (void)strand_barrier_wait(&barrier);
}

static void run_once(void)
{
    strand_once_run(&once, test_return, NULL);
}

static void sleep_not(void)
{
    strand_sleep(0);
}

static const struct operation {
    const char *name;
    void (*call)(void);
} operations[] = {
    {"read_bad", read_bad},
    {"write_bad", write_bad},
    {"read_all_bad", read_all_bad},
    {"write_all_bad", write_all_bad},
    {"ready_bad", ready_bad},
    {"accept_bad", accept_bad},
    {"connect_bad", connect_bad},
    {"read_nothing", read_nothing},
    {"read_all_nothing", read_all_nothing},
    {"write_nothing", write_nothing},
    {"write_all_nothing", write_all_nothing},
    {"write_and_read", write_and_read},
    {"ready", ready},
    {"dial_refused", dial_refused},
    {"dial_no_path", dial_no_path},
    {"listen_and_close", listen_and_close},
    {"wait_ended", wait_ended},
    {"scope_join", scope_join},
    {"scope_next", scope_next},
    {"scope_next_of_service", scope_next_of_service},
    {"ask_gone", ask_gone},
    {"wait_gone", wait_gone},
    {"join_actors", join_actors},
    {"receive_closed", receive_closed},
    {"send_closed", send_closed},
    {"receive_from_closed_port", receive_from_closed_port},
    {"select_closed", select_closed},
    {"lock", lock},
    {"lock_to_read", lock_to_read},
    {"lock_to_write", lock_to_write},
    {"acquire", acquire},
    {"acquire_from_limit", acquire_from_limit},
    {"wait_for_event", wait_for_event},
    {"wait_at_barrier", wait_at_barrier},
    {"run_once", run_once},
    {"sleep_not", sleep_not},
};

static _Atomic bool fired;

static void *fire(void *arg)
{
    strand_sleep(STRAND_MS);
    fired = true;
    return arg;
}

/* The only thread's time on the processor, after which an operation has starved the timer. */
#define STARVED (10 * STRAND_S)

static void go_on_until_a_timer_fires(const struct operation *operation)
{
    STRAND_SCOPE(scope);
    fired = false;
    strand timer = strand_spawn(scope, fire, NULL);
    strand_yield(); /* it sleeps */
    for (int64_t begun = growth_ns(); !fired;) {
        operation->call();
        if (growth_ns() - begun >= STARVED)
            CHECK_FAIL("a loop of %s lets no timer fire", operation->name);
    }
    strand_join(timer);
}

static void receive(void *state, strand_message *message)
{
    (void)state;
    (void)message;
}

static const strand_actor_class class = {.size = sizeof class, .receive = receive};

/* What has ended, been closed, or is free. */
static void make_objects(strand_scope scope, strand_actors system)
{
    CHECK_EQ(strand_pipe(ends), 0);
    closed_chan = strand_chan_open(scope, 1, 1, NULL);
    strand_chan_close(closed_chan);
    closed_port = strand_port_open(scope, 1, 1, NULL);
    strand_port_close(closed_port);
    semaphore = (strand_semaphore)STRAND_SEMAPHORE_INIT(1);
    barrier = (strand_barrier)STRAND_BARRIER_INIT(1);
    strand_event_set(&event);
    strand_limit_init(&limit, 1, "limit");
    gone = strand_actor_spawn(system, NULL, &class, NULL, 0);
    strand_actor_stop(gone, STRAND_STOP_NEXT);
    strand_actors_join(system);
    no_actors = system;
    ended = strand_spawn(scope, test_return, NULL);
    strand_wait(ended);
}

static void *go_on_with_each(void *arg)
{
    STRAND_ACTORS(system, NULL);
    STRAND_SCOPE(scope);
    STRAND_SCOPE(none);
    STRAND_SCOPE_WITH(collected, STRAND_COLLECT);
    STRAND_SCOPE_WITH(served, STRAND_COLLECT | STRAND_SERVICE);
    empty = none;
    collecting = collected;
    service = served;
    make_objects(scope, system);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        go_on_until_a_timer_fires(&operations[i]);
    strand_join(ended);
    CHECK_EQ(strand_close(ends[0]), 0);
    CHECK_EQ(strand_close(ends[1]), 0);
    return arg;
}

TEST_REAL(a_loop_of_an_operation_that_returns_at_once_starves_nobody)
{
    strand_options options = test_options();
    test_set_threads(&options, 1);
    strand_run(&options, go_on_with_each, NULL);
}
