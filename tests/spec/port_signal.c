/*
 * Ports and handlers of signals: storms of signals that send, on threads that send, and on the threads of the very run.
 */
#define SUITE port_signal
#include "ports.h"

#include "strand/chan.h"
#include "strand/pool.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* TSan keeps signals back, and takes a handler for a part of what it interrupts. */
#define STORMS !TEST_TSAN

enum { STREAMS = 24, LENGTH_MOST = 200, TIMERS = 16 };
#define STORM (SIGRTMIN + 3)

/* A message says of what stream it is, which one in that, and how long; the rest is a pattern of all three. */
struct message {
    uint32_t stream, number;
    unsigned char pattern[LENGTH_MOST];
};

static unsigned char pattern_of(uint32_t stream, uint32_t number, size_t at)
{
    return (unsigned char)(stream * 31 + number * 7 + at);
}

static size_t length_of(uint32_t stream, uint32_t number)
{
    return (stream + number * 13) % LENGTH_MOST;
}

static int send_one(strand_port port, uint32_t stream, uint32_t number)
{
    struct message message = {stream, number, {0}};
    size_t length = length_of(stream, number);
    for (size_t i = 0; i < length; i++)
        message.pattern[i] = pattern_of(stream, number, i);
    return strand_port_send(port, &message, offsetof(struct message, pattern) + length);
}

static struct {
    strand_port port;
    _Atomic uint32_t sent[STREAMS]; /* the next number of each */
    uint32_t received[STREAMS];
    _Atomic long bad_errno, storms;
    _Atomic int streams, stop;
} world;

/* A signal may arrive after its timer is deleted, and its handler may run on a thread other than the test's. So a
 * handler counts itself in `inside`, and touches the world only if `over` is false after that; storms_end sets `over`
 * first and then waits until `inside` is zero. */
static _Atomic bool over;
static _Atomic int inside, storm_number;

/* The handler uses one stream for each thread that it interrupts. The first signal of each storm chooses the stream. */
static __thread int my_stream __attribute__((tls_model("initial-exec")));
static __thread int my_storm __attribute__((tls_model("initial-exec")));

static void send_in_handler(void)
{
    if (my_storm != storm_number) {
        my_storm = storm_number;
        my_stream = world.streams++;
    }
    if (my_stream < STREAMS && send_one(world.port, (uint32_t)my_stream, world.sent[my_stream]) == 0)
        world.sent[my_stream]++;
    world.bad_errno += errno != 77;
    world.storms++;
}

static void on_storm(int signal)
{
    (void)signal;
    int saved_errno = errno;
    errno = 77;
    inside++;
    if (!over)
        send_in_handler();
    inside--;
    errno = saved_errno;
}

static timer_t timers[TIMERS];
static pid_t stormed[TIMERS];
static _Atomic int storm_count;

/* A signal comes to the calling thread every so often, once however often it is asked. */
static void storm_here(long period_us)
{
    pid_t me = (pid_t)syscall(SYS_gettid);
    for (int i = 0; i < storm_count; i++)
        if (stormed[i] == me)
            return;
    int n = storm_count++;
    CHECK(n < TIMERS);
    stormed[n] = me;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = STORM};
    event._sigev_un._tid = me;
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timers[n]), 0);
    struct itimerspec when = {.it_interval.tv_nsec = period_us * 1000, .it_value.tv_nsec = period_us * 1000};
    CHECK_EQ(timer_settime(timers[n], 0, &when, NULL), 0);
}

static void storms_end(void)
{
    while (storm_count)
        timer_delete(timers[--storm_count]);
    over = true;
    while (inside)
        sched_yield();
}

static void storms_begin(strand_port port)
{
    struct sigaction action = {.sa_handler = on_storm, .sa_flags = SA_RESTART};
    memset((void *)&world, 0, sizeof world);
    world.port = port;
    storm_number++;
    over = false;
    CHECK_EQ(sigaction(STORM, &action, NULL), 0);
}

/* In order, whole. */
static void check_message(const struct message *message, int64_t size)
{
    CHECK(message->stream < STREAMS);
    CHECK_EQ(message->number, world.received[message->stream]++);
    size_t length = length_of(message->stream, message->number);
    CHECK_EQ(size, offsetof(struct message, pattern) + length);
    for (size_t i = 0; i < length; i++)
        CHECK_EQ(message->pattern[i], pattern_of(message->stream, message->number, i));
}

static void check_all_received(void)
{
    CHECK_EQ(world.bad_errno, 0);
    for (int i = 0; i < STREAMS; i++)
        CHECK_EQ(world.sent[i], world.received[i]);
}

static void *receive_all(void *arg)
{
    static struct message message;
    int64_t size;
    while ((size = strand_port_receive(world.port, &message, sizeof message)) >= 0)
        check_message(&message, size);
    CHECK_EQ(size, -EPIPE);
    return arg;
}

/* ---- a handler interrupts a send ------------------------------------------------------------ */

static void *send_under_storm(void *arg)
{
    int stream = world.streams++;
    storm_here(20);
    while (!world.stop)
        if (send_one(world.port, (uint32_t)stream, world.sent[stream]) == 0)
            world.sent[stream]++;
        else
            sched_yield();
    return arg;
}

/* contract 9.12 */
TEST_REAL_INSIDE(a_handler_that_interrupts_a_send_sends_too_and_no_message_is_lost_or_torn)
{
    if (!STORMS)
        return;
    pthread_t threads[2];
    STRAND_SCOPE(scope);
    storms_begin(strand_port_open(scope, sizeof(struct message), 32, NULL));
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, send_under_storm, NULL), 0);
    strand receiver = strand_spawn(scope, receive_all, NULL);
    while (world.storms < test_scale(5000))
        strand_sleep(STRAND_MS);
    world.stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    storms_end();
    strand_port_close(world.port);
    strand_join(receiver);
    check_all_received();
}

/* ---- handlers on the run's own threads ------------------------------------------------------ */

/* What keeps threads falling asleep, waking up, stealing, and passing the role on. */
static void *be_restless(void *arg)
{
    unsigned draws = (unsigned)(intptr_t)arg;
    STRAND_SCOPE(scope);
    while (!world.stop) {
        storm_here(50);
        draws = draws * 1103515245 + 12345;
        if (draws >> 16 & 1)
            strand_sleep((draws >> 17 & 63) * STRAND_US);
        if (draws >> 24 & 1)
            strand_join(strand_spawn(scope, test_return, NULL));
        if (draws >> 25 & 1)
            strand_yield();
    }
    return arg;
}

/* contract 9.12 */
TEST_REAL_RACE(handlers_on_the_threads_of_the_run_wake_it_whatever_they_have_interrupted)
{
    if (!STORMS)
        return;
    STRAND_SCOPE(scope);
    storms_begin(strand_port_open(scope, sizeof(struct message), 32, NULL));
    strand receiver = strand_spawn(scope, receive_all, NULL);
    strand restless[6];
    for (int i = 0; i < 6; i++)
        restless[i] = strand_spawn(scope, be_restless, TEST_PTR(i + 1));
    while (world.storms < test_scale(20000))
        strand_sleep(STRAND_MS);
    world.stop = 1;
    for (int i = 0; i < 6; i++)
        strand_join(restless[i]);
    storms_end();
    strand_port_close(world.port);
    strand_join(receiver);
    check_all_received();
}

/* contract 9.12 */
TEST_REAL_INSIDE(a_handler_wakes_a_run_in_which_all_sleep)
{
    if (!STORMS)
        return;
    static struct message message;
    STRAND_SCOPE(scope);
    storms_begin(strand_port_open(scope, sizeof(struct message), 4, NULL));
    storm_here(3000);
    for (long i = 0; i < test_scale(100); i++)
        check_message(&message, strand_port_receive(world.port, &message, sizeof message));
    storms_end();
}

/* ---- nobody is there ------------------------------------------------------------------------ */

static void *open_and_leave(void *port)
{
    STRAND_SCOPE(scope);
    *(strand_port *)port = strand_port_open(scope, sizeof(struct message), 4, NULL);
    return port;
}

/* contract 9.12 */
TEST_REAL(a_handler_may_send_when_the_run_has_ended)
{
    static strand_port gone;
    for (int i = 0; i < 3; i++) {
        test_run(open_and_leave, &gone);
        storms_begin(gone);
        CHECK_EQ(raise(STORM), 0);
        CHECK_EQ(world.storms, 1);
        CHECK_EQ(world.bad_errno, 0);
        CHECK_EQ(world.sent[0], 0);
        CHECK_EQ(send_one(gone, 0, 0), -EPIPE);
    }
}

/* ---- the end under a storm ------------------------------------------------------------------ */

static _Atomic long dropped;

static void count_dropped(void *message, size_t size)
{
    check_message(message, (int64_t)size);
    dropped++;
}

static void *leave_under_storm(void *arg)
{
    static struct message message;
    {
        STRAND_SCOPE(scope);
        storms_begin(strand_port_open(scope, sizeof(struct message), 8, STRAND_PORT_ATTR(.drop = count_dropped)));
        storm_here(20);
        for (int i = 0; i < 5; i++)
            check_message(&message, strand_port_receive(world.port, &message, sizeof message));
    }
    storms_end();
    check_all_received();
    return arg;
}

/* contract 9.12 */
TEST_REAL(a_scope_is_left_under_a_storm_and_each_message_is_received_or_dropped)
{
    if (!STORMS)
        return;
    for (long round = 0; round < test_scale(100); round++)
        test_run(leave_under_storm, NULL);
}
