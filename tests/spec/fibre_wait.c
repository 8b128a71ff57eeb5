/*
 * Waiting on a shared fibre: what a strand waits for comes exactly while its frames are copied out and another strand
 * runs on its stack. Each kind of wait meets each kind of end: what it waits for, a cancel, a deadline, a failed child.
 */
/* V-18 */
#define SUITE fibre_wait
#include "test.h"

#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 48, DEPTH = 24, BIG = 3000, PORTION = 1 << 20 };

/* One kind of wait. None of its functions may keep anything on the stack that others need. */
struct kind {
    const char *name;
    void (*prepare)(void); /* before the wait; run by the strand that acts */
    void (*wait)(void);    /* blocks until `act` */
    void (*act)(void);     /* ends the wait */
    void (*after)(void);   /* by the waiter, when its wait has been interrupted: it has taken nothing; or NULL */
    void (*undo)(void);    /* gives back what was prepared, after an interruption; or NULL */
};

/* What all share lies on nobody's stack. */
static struct {
    strand_scope scope;
    strand_fibre fibre;
    const struct kind *kind;
    strand waiter;
    _Atomic int prepared, waiting, standing, acted, over, go;

    strand_chan chan;
    strand_mutex mutex;
    strand_condition condition;
    strand_rwlock rwlock;
    strand_semaphore semaphore;
    strand_barrier barrier;
    strand_once once;
    strand_event event;
    strand_group group;
    strand_latch latch;
    strand_prio_semaphore prio;
    strand_limit limit;
    int ends[2];
    strand other;
} s;

static char bytes[PORTION];

/* ---- stacks that are looked at ----------------------------------------------------------------------- */

static NOINLINE void fill(volatile uint64_t *words, uint64_t salt)
{
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = salt * 1000003 + i * 7919;
}

static NOINLINE void look(const volatile uint64_t *words, uint64_t salt)
{
    for (uint64_t i = 0; i < WORDS; i++)
        CHECK_EQ(words[i], salt * 1000003 + i * 7919);
}

/* Does it at the bottom of many frames, which have to be as they were afterwards. */
static NOINLINE void far_down(int depth, void (*what)(void))
{
    volatile uint64_t mine[WORDS];
    fill(mine, (uint64_t)depth + 1);
    if (depth)
        far_down(depth - 1, what);
    else
        what();
    look(mine, (uint64_t)depth + 1);
}

/* ---- the strands of a meeting ------------------------------------------------------------------------- */

static void *be_the_waiter(void *fn)
{
    volatile uint64_t mine[WORDS];
    fill(mine, 100);
    void (*volatile wait)(void) = *(void (**)(void))fn;
    s.waiting = 1;
    wait();
    look(mine, 100);
    s.over = 1;
    return NULL;
}

/* Lets the waiter get into its wait; it may yield before. */
static void await_waiter(void)
{
    test_yield_until(&s.waiting, 1);
    for (int i = 0; i < 8; i++)
        strand_yield();
    strand_sleep(test_seed() ? 10 * STRAND_MS : 20 * STRAND_US); /* virtual, it is over when nobody can go on */
}

/* The waiter is inactive: this strand runs on its stack. */
static void act_here(void)
{
    strand_fibre_info info = {.size = sizeof info};
    strand_fibre_info_get(s.fibre, 0, &info);
    CHECK_EQ(info.active, strand_id(strand_self()));
    s.kind->act();
}

static void *be_the_actor(void *arg)
{
    volatile uint64_t mine[WORDS];
    fill(mine, 200);
    s.kind->prepare();
    s.prepared = 1;
    await_waiter();
    far_down(DEPTH, act_here);
    test_yield_until(&s.over, 1);
    look(mine, 200);
    return arg;
}

static void stand_there(void)
{
    s.standing = 1;
    test_yield_until(&s.acted, 1);
}

static void *be_in_the_way(void *arg)
{
    await_waiter();
    far_down(DEPTH, stand_there);
    return arg;
}

static strand spawn_guest(strand_fn *fn, void (*wait)(void))
{
    return strand_spawn_with(s.scope, STRAND_ATTR(.fibre = s.fibre), fn, &wait, sizeof wait);
}

static void begin(strand_scope scope, const struct kind *kind)
{
    memset(&s, 0, sizeof s);
    s.scope = scope;
    s.kind = kind;
    s.fibre = strand_fibre_open(scope, NULL);
}

static void close_ends(void)
{
    for (int i = 0; i < 2; i++)
        if (s.ends[i])
            strand_close(s.ends[i]);
}

/* One on the same stack ends the wait. */
static void meet_on_the_fibre(const struct kind *kind)
{
    STRAND_SCOPE_OPEN(scope);
    begin(scope, kind);
    strand actor = spawn_guest(be_the_actor, NULL);
    test_yield_until(&s.prepared, 1);
    s.waiter = spawn_guest(be_the_waiter, kind->wait);
    strand_join(s.waiter);
    strand_join(actor);
    close_ends();
}

/* One from outside ends the wait; the frames of a third one, which lie where the waiter's were, are as before. Whose
 * part is done in the place of act? */
static void meet_from_outside(const struct kind *kind, void (*wait)(void), void (*act)(void))
{
    STRAND_SCOPE_OPEN(scope);
    begin(scope, kind);
    kind->prepare();
    s.waiter = spawn_guest(be_the_waiter, wait);
    strand third = spawn_guest(be_in_the_way, NULL);
    test_yield_until(&s.standing, 1);
    act();
    s.acted = 1;
    strand_wait(s.waiter);
    strand_join(third);
    strand_scope_cancel(scope, NULL); /* an interrupted waiter was not joined */
    close_ends();
}

static void meet(const struct kind *kind)
{
    meet_on_the_fibre(kind);
    meet_from_outside(kind, kind->wait, kind->act);
    CHECK_EQ(s.over, 1);
}

/* ---- kinds --------------------------------------------------------------------------------------------- */

static void nothing(void) {}

static void sleep_a_little(void)
{
    strand_sleep(STRAND_MS);
}
static const struct kind kind_sleep = {"sleep", nothing, sleep_a_little, nothing, NULL, NULL};

/* -- channels: values on the stacks of both -- */

static void open_channel(void)
{
    s.chan = strand_chan_open(s.scope, sizeof(long), 0, NULL);
}

static void receive(void)
{
    long value = -1;
    CHECK_EQ(strand_chan_receive(s.chan, &value), 0);
    CHECK_EQ(value, 42);
}

static void give(void)
{
    long value = 42;
    CHECK_EQ(strand_chan_try_send(s.chan, &value), 0);
    value = 0;
}

static void nobody_receives(void)
{
    long value = 1;
    CHECK_EQ(strand_chan_try_send(s.chan, &value), -EAGAIN);
}
static const struct kind kind_receive = {"receive", open_channel, receive, give, nobody_receives, NULL};

static void send(void)
{
    long value = 43;
    CHECK_EQ(strand_chan_send(s.chan, &value), 0);
    CHECK_EQ(value, 43);
}

static void take(void)
{
    long value = -1;
    CHECK_EQ(strand_chan_try_receive(s.chan, &value), 0);
    CHECK_EQ(value, 43);
}

static void nobody_sends(void)
{
    long value = 1;
    CHECK_EQ(strand_chan_try_receive(s.chan, &value), -EAGAIN);
}
static const struct kind kind_send = {"send", open_channel, send, take, nobody_sends, NULL};

static void open_full_channel(void)
{
    long value = 1;
    s.chan = strand_chan_open(s.scope, sizeof(long), 1, NULL);
    CHECK_EQ(strand_chan_try_send(s.chan, &value), 0);
}

static void take_two(void)
{
    long value = -1;
    CHECK_EQ(strand_chan_try_receive(s.chan, &value), 0);
    CHECK_EQ(value, 1);
    take();
}
static const struct kind kind_send_full = {"send to a full channel", open_full_channel, send, take_two, NULL, NULL};

static void open_big_channel(void)
{
    s.chan = strand_chan_open(s.scope, BIG, 0, NULL);
}

static void send_big(void)
{
    char value[BIG];
    memset(value, 'b', sizeof value);
    CHECK_EQ(strand_chan_send(s.chan, value), 0);
    CHECK_EQ(value[BIG - 1], 'b');
}

static void take_big(void)
{
    char value[BIG] = "";
    CHECK_EQ(strand_chan_try_receive(s.chan, value), 0);
    for (int i = 0; i < BIG; i++)
        CHECK_EQ(value[i], 'b');
}
static const struct kind kind_send_big = {"send much", open_big_channel, send_big, take_big, NULL, NULL};

static void receive_big(void)
{
    char value[BIG] = "";
    CHECK_EQ(strand_chan_receive(s.chan, value), 0);
    for (int i = 0; i < BIG; i++)
        CHECK_EQ(value[i], 'b');
}

static void give_big(void)
{
    char value[BIG];
    memset(value, 'b', sizeof value);
    CHECK_EQ(strand_chan_try_send(s.chan, value), 0);
}
static const struct kind kind_receive_big = {"receive much", open_big_channel, receive_big, give_big, NULL, NULL};

static void give_by_post(void)
{
    long value = 42;
    CHECK_EQ(strand_chan_post(s.chan, &value), 0);
}
static const struct kind kind_posted = {"receive a post", open_channel, receive, give_by_post, NULL, NULL};

static void receive_nothing(void)
{
    long value = 5;
    CHECK_EQ(strand_chan_receive(s.chan, &value), -EPIPE);
    CHECK_EQ(value, 5);
}

static void close_channel(void)
{
    strand_chan_close(s.chan);
}
static const struct kind kind_close = {"receive until closed", open_channel, receive_nothing,
                                       close_channel,          NULL,         NULL};

/* -- selects -- */

static void select_receive(void)
{
    long value = -1;
    strand_case cases[] = {strand_on_event(&s.event), strand_on_receive(s.chan, &value)};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    CHECK_EQ(cases[1].result, 0);
    CHECK_EQ(value, 42);
}
static const struct kind kind_select_receive = {"select a receive", open_channel, select_receive, give,
                                                nobody_receives,    NULL};

static void select_send(void)
{
    long value = 43;
    strand_case cases[] = {strand_on_send(s.chan, &value), strand_on_event(&s.event)};
    CHECK_EQ(strand_select(cases, 2, 0), 0);
    CHECK_EQ(cases[0].result, 0);
    CHECK_EQ(value, 43);
}
static const struct kind kind_select_send = {"select a send", open_channel, select_send, take, nobody_sends, NULL};

static void select_another(void)
{
    long in = 7, out = 8;
    strand_case cases[] = {strand_on_receive(s.chan, &in), strand_on_send(s.chan, &out), strand_on_event(&s.event)};
    CHECK_EQ(strand_select(cases, 3, 0), 2);
    CHECK_EQ(in, 7);
    CHECK_EQ(out, 8);
}

static void set_event(void)
{
    strand_event_set(&s.event);
}
static const struct kind kind_select_another = {"select an event", open_channel, select_another, set_event, NULL, NULL};

static void give_from_a_select(void)
{
    long value = 42;
    strand_case c = strand_on_send(s.chan, &value);
    CHECK_EQ(strand_select(&c, 1, STRAND_SELECT_NOW), 0);
}
static const struct kind kind_selects_meet = {"selects meet",     open_channel, select_receive,
                                              give_from_a_select, NULL,         NULL};

static void select_time(void)
{
    strand_case cases[] = {strand_on_event(&s.event), strand_on_time(strand_in(STRAND_MS))};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
}
static const struct kind kind_select_time = {"select a time", nothing, select_time, nothing, NULL, NULL};

static void tick(void)
{
    strand_ticker ticker = strand_ticker_every(STRAND_MS);
    strand_wait_tick(&ticker);
}
static const struct kind kind_tick = {"tick", nothing, tick, nothing, NULL, NULL};

/* -- children -- */

static void *wait_for_go(void *arg)
{
    test_yield_until(&s.go, 1);
    return arg;
}

static void *fail_when_released(void *arg)
{
    test_yield_until(&s.go, 1);
    strand_throw(&TEST_ERROR, "%s", (const char *)arg);
}

static void go(void)
{
    s.go = 1;
}

static void join_child(void)
{
    STRAND_SCOPE(scope);
    CHECK_PTR(strand_join(strand_spawn(scope, wait_for_go, bytes)), bytes);
}
static const struct kind kind_join = {"join", nothing, join_child, go, NULL, NULL};

static void join_guest(void)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn_with(scope, STRAND_ATTR(.fibre = s.fibre), wait_for_go, bytes, 0);
    CHECK_PTR(strand_join(child), bytes);
}
static const struct kind kind_join_guest = {"join one of the same fibre", nothing, join_guest, go, NULL, NULL};

static void join_failure(void)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn_with(scope, STRAND_ATTR(.fibre = s.fibre), fail_when_released, "told", 0);
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK(e);
    if (strand_exception_kind(e) != &TEST_ERROR)
        strand_rethrow(e);
    CHECK_STR(strand_exception_text(e), "told");
    strand_exception_release(e);
}
static const struct kind kind_join_failure = {"join one that fails", nothing, join_failure, go, NULL, NULL};

static void wait_child(void)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, wait_for_go, bytes);
    strand_wait(child);
    strand_join(child);
}
static const struct kind kind_wait = {"wait for an end", nothing, wait_child, go, NULL, NULL};

static void select_end(void)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, wait_for_go, bytes);
    strand_case cases[] = {strand_on_event(&s.event), strand_on_end(child)};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    strand_join(child);
}
static const struct kind kind_select_end = {"select an end", nothing, select_end, go, NULL, NULL};

static void join_scope(void)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_spawn_with(scope, i ? STRAND_ATTR(.fibre = s.fibre) : NULL, wait_for_go, bytes, 0);
    strand_scope_join(scope);
}
static const struct kind kind_join_scope = {"join a scope", nothing, join_scope, go, NULL, NULL};

static void join_first(void)
{
    STRAND_SCOPE_WITH(scope, STRAND_FIRST_WINS);
    strand winner, child = strand_spawn(scope, wait_for_go, bytes);
    CHECK_PTR(strand_scope_join_first(scope, &winner), bytes);
    CHECK_EQ(strand_id(winner), strand_id(child));
}
static const struct kind kind_first = {"join the first", nothing, join_first, go, NULL, NULL};

static void join_next(void)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    strand child = strand_spawn(scope, wait_for_go, bytes);
    strand next = strand_scope_wait_next(scope);
    CHECK_EQ(strand_id(next), strand_id(child));
    strand_join(next);
}
static const struct kind kind_next = {"the next of a scope", nothing, join_next, go, NULL, NULL};

/* -- locks -- */

static void lock_mutex(void)
{
    strand_mutex_lock(&s.mutex);
}

static void lock(void)
{
    STRAND_LOCKED(&s.mutex);
    CHECK(strand_mutex_held(&s.mutex));
}

static void unlock_mutex(void)
{
    strand_mutex_unlock(&s.mutex);
}
static const struct kind kind_mutex = {"mutex", lock_mutex, lock, unlock_mutex, NULL, unlock_mutex};

static void wait_condition(void)
{
    STRAND_LOCKED(&s.mutex);
    strand_condition_wait(&s.condition, &s.mutex);
    CHECK(strand_mutex_held(&s.mutex));
}

static void signal_condition(void)
{
    strand_condition_signal(&s.condition);
}

static void mutex_is_free(void)
{
    CHECK_EQ(strand_mutex_try_lock(&s.mutex), 0);
    strand_mutex_unlock(&s.mutex);
}
static const struct kind kind_condition = {"condition", nothing, wait_condition, signal_condition, mutex_is_free, NULL};

static void lock_to_write(void)
{
    strand_rwlock_write(&s.rwlock);
}

static void lock_to_read(void)
{
    strand_rwlock_read(&s.rwlock);
}

static void read_locked(void)
{
    STRAND_READ_LOCKED(&s.rwlock);
}

static void write_locked(void)
{
    STRAND_WRITE_LOCKED(&s.rwlock);
}

static void unlock_write(void)
{
    strand_rwlock_write_done(&s.rwlock);
}

static void unlock_read(void)
{
    strand_rwlock_read_done(&s.rwlock);
}
static const struct kind kind_read_lock = {"read lock", lock_to_write, read_locked, unlock_write, NULL, unlock_write};
static const struct kind kind_write_lock = {"write lock", lock_to_read, write_locked, unlock_read, NULL, unlock_read};

static void acquire_many(void)
{
    strand_semaphore_acquire_many(&s.semaphore, 3);
    CHECK_EQ(strand_semaphore_permits(&s.semaphore), 0);
}

static void release_many(void)
{
    strand_semaphore_release_many(&s.semaphore, 2);
    strand_semaphore_release(&s.semaphore);
}
static const struct kind kind_semaphore = {"semaphore", nothing, acquire_many, release_many, NULL, NULL};

static void select_permit(void)
{
    strand_case cases[] = {strand_on_permit(&s.semaphore), strand_on_event(&s.event)};
    CHECK_EQ(strand_select(cases, 2, 0), 0);
    CHECK_EQ(strand_semaphore_permits(&s.semaphore), 0);
}

static void release_one(void)
{
    strand_semaphore_release(&s.semaphore);
}
static const struct kind kind_select_permit = {"select a permit", nothing, select_permit, release_one, NULL, NULL};

static void make_barrier(void)
{
    s.barrier = (strand_barrier)STRAND_BARRIER_INIT(2);
}

static void wait_at_barrier(void)
{
    strand_barrier_wait(&s.barrier);
}
static const struct kind kind_barrier = {"barrier", make_barrier, wait_at_barrier, wait_at_barrier, NULL, NULL};

/* The first to come is a third strand. */
static void *run_once(void *arg)
{
    return strand_once_run(&s.once, wait_for_go, arg);
}

static void begin_once(void)
{
    s.other = strand_spawn(s.scope, run_once, bytes);
    strand_sleep(10 * STRAND_US);
}

static void run_it_once(void)
{
    CHECK_PTR(strand_once_run(&s.once, wait_for_go, bytes), bytes);
}
static const struct kind kind_once = {"once", nothing, run_it_once, go, NULL, NULL};

static void wait_event(void)
{
    strand_event_wait(&s.event);
}
static const struct kind kind_event = {"event", nothing, wait_event, set_event, NULL, NULL};

static void add_to_group(void)
{
    strand_group_add(&s.group, 1);
}

static void wait_group(void)
{
    strand_group_wait(&s.group);
}

static void group_done(void)
{
    strand_group_done(&s.group);
}
static const struct kind kind_group = {"group", add_to_group, wait_group, group_done, NULL, NULL};

static void make_latch(void)
{
    s.latch = (strand_latch)STRAND_LATCH_INIT(1);
}

static void wait_latch(void)
{
    strand_latch_wait(&s.latch);
}

static void count_down(void)
{
    strand_latch_count_down(&s.latch, 1);
}
static const struct kind kind_latch = {"latch", make_latch, wait_latch, count_down, NULL, NULL};

static void take_prio(void)
{
    strand_prio_init(&s.prio, &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 1});
    CHECK_EQ(strand_prio_try_acquire(&s.prio, NULL), 0);
}

static void acquire_prio(void)
{
    CHECK_EQ(strand_prio_acquire(&s.prio, NULL), 0);
    CHECK_EQ(strand_prio_in_flight(&s.prio), 1);
}

static void release_prio(void)
{
    strand_prio_release(&s.prio);
}

static void nobody_waits_there(void)
{
    CHECK_EQ(strand_prio_waiting(&s.prio), 0);
}
static const struct kind kind_prio = {"priority semaphore", take_prio,          acquire_prio,
                                      release_prio,         nobody_waits_there, release_prio};

static void take_limit(void)
{
    strand_limit_init(&s.limit, 1, "one at a time");
    CHECK_EQ(strand_limit_try_acquire(&s.limit), 0);
}

static void within_the_limit(void)
{
    STRAND_LIMIT(&s.limit);
    STRAND_WITHIN_LIMITS;
    CHECK_EQ(strand_limit_in_flight(&s.limit), 1);
}

static void release_limit(void)
{
    strand_limit_release(&s.limit);
}
static const struct kind kind_limits = {"limits", take_limit, within_the_limit, release_limit, NULL, release_limit};

/* -- the outside -- */

static void open_pipe(void)
{
    CHECK_EQ(strand_pipe(s.ends), 0);
}

static void read_pipe(void)
{
    char buffer[64] = "";
    CHECK_EQ(strand_read_all(s.ends[0], buffer, 5), 5);
    CHECK_STR(buffer, "hello");
}

static void write_pipe(void)
{
    CHECK_EQ(strand_write_all(s.ends[1], "hello", 5), 5);
}
static const struct kind kind_read = {"read", open_pipe, read_pipe, write_pipe, NULL, NULL};

static void write_much(void)
{
    CHECK_EQ(strand_write_all(s.ends[1], bytes, sizeof bytes), sizeof bytes);
}

static void read_much(void)
{
    char buffer[512];
    for (size_t left = sizeof bytes; left;) {
        int64_t n = strand_read(s.ends[0], buffer, sizeof buffer);
        CHECK(n > 0);
        left -= (size_t)n;
    }
}
static const struct kind kind_write = {"write", open_pipe, write_much, read_much, NULL, NULL};

static void await_ready(void)
{
    CHECK_EQ(strand_wait_ready(s.ends[0], STRAND_READABLE), 0);
}
static const struct kind kind_ready = {"ready", open_pipe, await_ready, write_pipe, NULL, NULL};

static void select_ready(void)
{
    strand_case cases[] = {strand_on_event(&s.event), strand_on_ready(s.ends[0], STRAND_READABLE)};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
}
static const struct kind kind_select_ready = {"select a descriptor", open_pipe, select_ready, write_pipe, NULL, NULL};

static void listen_there(void)
{
    s.ends[0] = strand_listen_tcp("127.0.0.1", 0);
    CHECK(s.ends[0] > 0);
}

static void accept_one(void)
{
    int fd = strand_accept(s.ends[0]);
    CHECK(fd > 0);
    strand_close(fd);
}

static void dial_it(void)
{
    s.ends[1] = strand_dial_tcp("127.0.0.1", strand_tcp_port(s.ends[0]));
    CHECK(s.ends[1] > 0);
}

static const struct kind kind_accept = {"accept", listen_there, accept_one, dial_it, NULL, NULL};

static void await_signal(void)
{
    STRAND_SIGNALS(signals, SIGUSR1);
    CHECK_EQ(strand_wait_signal(signals), SIGUSR1);
}

static void send_signal(void)
{
    CHECK_EQ(raise(SIGUSR1), 0);
}
static const struct kind kind_signal = {"signal", nothing, await_signal, send_signal, NULL, NULL};

static void select_signal(void)
{
    int number = 0;
    STRAND_SIGNALS(signals, SIGUSR1);
    strand_case cases[] = {strand_on_event(&s.event), strand_on_signal(signals, &number)};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    CHECK_EQ(number, SIGUSR1);
}
static const struct kind kind_select_signal = {"select a signal", nothing, select_signal, send_signal, NULL, NULL};

static void *wait_on_a_thread(void *arg)
{
    const struct timespec tick = {.tv_nsec = 100000};
    while (!s.go)
        nanosleep(&tick, NULL);
    return arg;
}

static void offload(void)
{
    CHECK_PTR(strand_offload(wait_on_a_thread, bytes), bytes);
}
static const struct kind kind_offload = {"offload", nothing, offload, go, NULL, NULL};

static const struct kind *const kinds[] = {
    &kind_sleep,         &kind_receive,       &kind_receive_big,    &kind_send,           &kind_send_full,
    &kind_send_big,      &kind_close,         &kind_posted,         &kind_select_receive, &kind_tick,
    &kind_select_time,   &kind_select_send,   &kind_select_another, &kind_join,           &kind_join_guest,
    &kind_wait,          &kind_join_failure,  &kind_select_end,     &kind_join_scope,     &kind_first,
    &kind_next,          &kind_mutex,         &kind_condition,      &kind_read_lock,      &kind_write_lock,
    &kind_semaphore,     &kind_select_permit, &kind_barrier,        &kind_once,           &kind_event,
    &kind_group,         &kind_latch,         &kind_prio,           &kind_limits,         &kind_read,
    &kind_write,         &kind_ready,         &kind_select_ready,   &kind_accept,         &kind_signal,
    &kind_select_signal, &kind_selects_meet,
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* Signals are the system's under a seed too. */
static bool is_played(const struct kind *kind)
{
    return !test_seed() || (kind != &kind_signal && kind != &kind_select_signal);
}

static bool ends_by_itself(const struct kind *kind)
{
    return kind == &kind_sleep || kind == &kind_tick || kind == &kind_select_time;
}

/* ---- what is waited for comes ---------------------------------------------------------------------------- */

TEST_INSIDE(what_a_strand_waits_for_comes_while_it_is_copied_out)
{
    for (size_t i = 0; i < KINDS; i++)
        if (is_played(kinds[i]))
            meet(kinds[i]);
}

/* The strand that runs the function may be copied out too. */
TEST_INSIDE(a_function_runs_once_on_a_shared_stack)
{
    static struct kind second;
    second = kind_once;
    second.prepare = begin_once;
    meet_from_outside(&second, second.wait, second.act);
    CHECK_EQ(s.over, 1);
}

TEST_REAL_INSIDE(an_offloaded_call_ends_while_its_caller_is_copied_out)
{
    meet(&kind_offload);
}

/* ---- it is interrupted ------------------------------------------------------------------------------------ */

static void with_each_kind(void (*wait)(void), void (*act)(void), bool undo)
{
    /* Under seeds a quarter of them each time. */
    size_t step = test_seed() ? 4 : 1;
    for (size_t i = (size_t)test_seed() % step; i < KINDS; i += step) {
        if (ends_by_itself(kinds[i]) || !is_played(kinds[i]))
            continue;
        meet_from_outside(kinds[i], wait, act);
        if (s.over != 1)
            CHECK_STR(kinds[i]->name, "interrupted as it has to be");
        if (undo && kinds[i]->undo)
            kinds[i]->undo();
    }
}

static void *do_wait(void *arg)
{
    s.kind->wait();
    return arg;
}

/* Its frames are as they were when it unwinds, and when it goes on. */
static void wait_until_cancelled(void)
{
    volatile uint64_t mine[WORDS];
    fill(mine, 300);
    strand_exception *e = strand_try(do_wait, NULL, NULL);
    look(mine, 300);
    CHECK_KIND(e, &STRAND_INTERRUPTED);
    CHECK_STR(strand_exception_why(e), "because");
    strand_exception_release(e);
    if (s.kind->after)
        s.kind->after();
}

static void cancel_waiter(void)
{
    strand_cancel(s.waiter, "because");
}

/* V-18 */
TEST_INSIDE(a_cancel_ends_every_kind_of_wait_of_an_inactive_strand)
{
    with_each_kind(wait_until_cancelled, cancel_waiter, true);
}

static void *wait_in_time(void *arg)
{
    STRAND_DEADLINE(strand_in(2 * STRAND_MS));
    return do_wait(arg);
}

static void wait_until_timed_out(void)
{
    volatile uint64_t mine[WORDS];
    fill(mine, 301);
    strand_exception *e = strand_try(wait_in_time, NULL, NULL);
    look(mine, 301);
    CHECK_KIND(e, &STRAND_TIMED_OUT);
    strand_exception_release(e);
    if (s.kind->after)
        s.kind->after();
}

/* V-18 */
TEST_INSIDE(a_deadline_ends_every_kind_of_wait_of_an_inactive_strand)
{
    with_each_kind(wait_until_timed_out, nothing, true);
}

static _Atomic int fail_now;

static void *fail_on_demand(void *arg)
{
    test_yield_until(&fail_now, 1);
    return test_throw(arg);
}

static void *wait_beside_a_child(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.fibre = s.fibre), fail_on_demand, "on demand", 0);
    return do_wait(arg);
}

static void wait_until_a_child_fails(void)
{
    volatile uint64_t mine[WORDS];
    fill(mine, 302);
    strand_exception *e = strand_try(wait_beside_a_child, NULL, NULL);
    look(mine, 302);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_STR(strand_exception_text(e), "on demand");
    strand_exception_release(e);
    fail_now = 0;
    if (s.kind->after)
        s.kind->after();
}

static void let_it_fail(void)
{
    fail_now = 1;
}

/* V-18 */
TEST_INSIDE(a_failed_child_ends_every_kind_of_wait_of_an_inactive_strand)
{
    with_each_kind(wait_until_a_child_fails, let_it_fail, true);
}

static void wait_in_a_shield(void)
{
    STRAND_SHIELD;
    s.kind->wait();
}

static void cancel_and_act(void)
{
    cancel_waiter();
    for (int i = 0; i < 10; i++)
        strand_yield();
    CHECK(!s.over);
    s.kind->act();
}

/* V-18 */
TEST_INSIDE(in_a_shield_who_is_copied_out_waits_on_whatever_it_waits_for)
{
    with_each_kind(wait_in_a_shield, cancel_and_act, false);
}
