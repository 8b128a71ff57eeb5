/*
 * Small pools are closed by several strands of several pools at once, again and again, while their strands wait for
 * events that happen at that moment: events, values, messages of plain threads and handlers, bytes, time, a thread of
 * their own. Some strands are shielded and end by themselves, the last one while another strand wakes it; some have a
 * pool below them, or spawn children just then; a plain thread inspects some, without knowing when they end. Every
 * strand continues on its own pool; when a close returns, the pool has no strands; a sent value was received or is
 * still there; a reader on another pool, whose descriptor such a pool has watched, gets the end of file.
 */
#include "sim.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/port.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <errno.h>
#include <string.h>

enum { ROUNDS = 3, RESIDENTS = 3, WAKERS = 3 };

static struct {
    strand_scope around;
    strand_pool first, second, pool; /* the third is closed; `users` of its handle keep its scope from being left */
    _Atomic int open, users;
    strand_event events[ROUNDS];
    strand_pool driven[ROUNDS];
    _Atomic int round;
    strand_chan chan;
    strand_port port;
    int pipe[2];
    _Atomic int sent, received, posted, taken, dropped, written, read, closed, woken;
    strand_pool homes[SIM_LIVES]; /* by the life's number: where it has begun */
} world;

static bool same(strand_pool a, strand_pool b)
{
    return a.bits[0] == b.bits[0] && a.bits[1] == b.bits[1];
}

static void pause_a_little(struct sim_life *me)
{
    if (sim_one_in(&me->chance, 2))
        strand_sleep((int64_t)sim_draw(&me->chance, 12) * STRAND_US);
    else
        strand_yield();
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

static void receive(void)
{
    long value;
    if (strand_chan_receive(world.chan, &value) == 0)
        world.received++;
}

static void take_message(void)
{
    int message;
    if (strand_port_receive(world.port, &message, sizeof message) >= 0)
        world.taken++;
}

static void read_byte(void)
{
    char byte;
    if (strand_read(world.pipe[0], &byte, 1) == 1)
        world.read++;
}

static void select_any(void)
{
    long value;
    int message;
    strand_case cases[] = {strand_on_receive(world.chan, &value),
                           strand_on_message(world.port, &message, sizeof message),
                           strand_on_time(strand_in(15 * STRAND_US))};
    int i = strand_select(cases, 3, 0);
    world.received += i == 0 && cases[0].result == 0;
    world.taken += i == 1 && cases[1].result >= 0;
}

static void wait_somehow(struct sim_life *me, void *arg)
{
    int round = (int)(intptr_t)arg;
    switch (sim_draw(&me->chance, 7)) {
    case 0:
    case 1:
        strand_event_wait(&world.events[round]);
        world.woken++;
        break;
    case 2:
        receive();
        break;
    case 3:
        take_message();
        break;
    case 4:
        read_byte();
        break;
    case 5:
        select_any();
        break;
    default:
        pause_a_little(me);
    }
}

static void wait_for_a_while(struct sim_life *me, void *arg)
{
    STRAND_DEADLINE(strand_in((int64_t)sim_draw(&me->chance, 25) * STRAND_US));
    wait_somehow(me, arg);
}

/* Nothing of the close reaches it: it ends by its own time, or because it was woken. */
static void wait_in_shield(struct sim_life *me, void *arg)
{
    STRAND_SHIELD;
    wait_for_a_while(me, arg);
}

/* ---- who lives on the pool ------------------------------------------------------------------------------- */

static void stay(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    world.homes[me->number] = strand_pool_self();
    sim_for_ever();
}

/* A pool below the pool, which ends with the strand that has opened it. */
static void have_a_pool(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = "dedicated"));
    (void)sim_spawn_at(me, scope, STRAND_ATTR(.pool = pool), stay, NULL, 0);
    strand_scope_join(scope);
}

static void pass_by(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    world.homes[me->number] = strand_pool_self();
    strand_yield();
}

/* Spawns children while the closer cancels the pool's strands, into a scope that is notified of each end. */
static void have_children(struct sim_life *me, void *arg)
{
    STRAND_SHIELD;
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    struct sim_life *children[3];
    int count = 1 + (int)sim_draw(&me->chance, 3);
    for (int i = 0; i < count; i++)
        children[i] = sim_spawn(me, scope, pass_by, arg);
    for (int i = 0; i < count; i++)
        SIM_CHECK(sim_join(children[i]) == SIM_RETURNED || sim_refuses_memory());
}

static void reside(struct sim_life *me, void *arg)
{
    static sim_body *const ways[] = {wait_somehow, wait_for_a_while, wait_in_shield, have_children, have_a_pool};
    SIM_CLEANUP(me);
    strand_pool home = world.homes[me->number] = strand_pool_self();
    int thread = me->tag - 1;
    for (uint32_t n = 1 + sim_draw(&me->chance, 2); n > 0; n--) {
        uint32_t way = sim_draw(&me->chance, 13);
        strand_exception *e = sim_try(me, ways[way / 3], arg);
        SIM_CHECK(same(home, strand_pool_self()));
        if (thread >= 0)
            SIM_CHECK_EQ(strand_thread_index(), thread);
        sim_settle(e);
    }
}

/* ---- who wakes them, from elsewhere ---------------------------------------------------------------------- */

static void send_message(void *arg)
{
    static const int one = 1;
    (void)arg;
    world.posted += strand_port_send(world.port, &one, sizeof one) == 0;
}

static void *act_from_outside(void *arg)
{
    long value = 1;
    send_message(arg);
    world.sent += strand_chan_post(world.chan, &value) == 0;
    return arg;
}

static void send(struct sim_life *me, void *arg)
{
    long value = me->number;
    (void)arg;
    STRAND_DEADLINE(strand_in(10 * STRAND_US));
    if (strand_chan_send(world.chan, &value) == 0)
        world.sent++;
}

static void stop_using(const int *users)
{
    (void)users;
    world.users--;
}

/* NULL: it is not open to others any more. Throws if it refuses. */
static struct sim_life *spawn_resident(struct sim_life *me, strand_scope scope, void *arg)
{
    int users __attribute__((cleanup(stop_using), unused)) = world.users++;
    return world.open ? sim_spawn_at(me, scope, STRAND_ATTR(.pool = world.pool), reside, arg, 0) : NULL;
}

static void spawn_onto_it(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    struct sim_life *child = spawn_resident(me, scope, arg);
    if (child)
        (void)sim_join(child);
}

static void wake_somebody(struct sim_life *me, void *arg)
{
    switch (sim_draw(&me->chance, 9)) {
    case 0:
    case 1:
        strand_event_set(&world.events[world.round]);
        break;
    case 2:
        send(me, arg);
        break;
    case 3:
        send_message(arg);
        break;
    case 4:
        if (strand_write(world.pipe[1], "x", 1) == 1)
            world.written++;
        break;
    case 5:
        (void)strand_sim_signal(send_message, NULL);
        break;
    case 6:
        (void)strand_sim_thread(act_from_outside, NULL);
        break;
    default:
        spawn_onto_it(me, (void *)(intptr_t)world.round);
    }
}

static void wake(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    world.homes[me->number] = strand_pool_self();
    for (uint32_t n = 1 + sim_draw(&me->chance, 4); n > 0; n--) {
        pause_a_little(me);
        sim_settle(sim_try(me, wake_somebody, arg));
    }
}

/* It may go on when the pool has ended, and another handle has its memory. */
static void *look_on(void *pool)
{
    int result;
    do
        result = strand_pool_drive(*(strand_pool *)pool, strand_in(0), 0);
    while (result == 1);
    SIM_CHECK_EQ(result, 0);
    return pool;
}

/* ---- who closes it ---------------------------------------------------------------------------------------- */

static void check_dry(void)
{
    strand_pool_info info = {.size = sizeof info};
    while (strand_pool_info_get(world.pool, &info), info.strands) /* one that is being refused counts for a moment */
        strand_yield();
    SIM_CHECK_EQ(info.threads, 0);
    for (int i = 1; i < SIM_LIVES; i++) {
        struct sim_life *life = same(world.homes[i], world.pool) ? sim_life(i) : NULL;
        SIM_CHECK(!life || sim_ended(life)); /* its spawner may not have gone on yet, and then nobody knows it */
    }
    world.closed++;
}

static void close_it(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    world.homes[me->number] = strand_pool_self();
    for (uint32_t n = sim_draw(&me->chance, 3); n > 0; n--)
        strand_yield();
    strand_pool_close(world.pool, "as well");
    check_dry();
}

static strand_pool somewhere(struct sim_life *me)
{
    return sim_one_in(&me->chance, 2) ? world.first : world.second;
}

static void close_to_others(strand_pool *pool)
{
    (void)pool;
    STRAND_SHIELD;
    world.open = 0;
    while (world.users)
        strand_yield();
}

static void keep(struct sim_life *me, void *arg)
{
    static const char *const schedulers[] = {"stealing", "stealing", "global", "dedicated", "current", "current"};
    const char *scheduler = schedulers[sim_draw(&me->chance, 6)];
    int threads = scheduler[0] == 's' || scheduler[0] == 'g' ? 1 + (int)sim_draw(&me->chance, 2) : 1;
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    world.pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = threads, .scheduler = scheduler));
    strand_pool guard __attribute__((cleanup(close_to_others), unused)) = world.pool;
    world.open = 1;
    if (scheduler[0] == 'c') {
        world.driven[(intptr_t)arg] = world.pool;
        (void)strand_sim_thread(look_on, &world.driven[(intptr_t)arg]);
    }
    STRAND_SCOPE_WITH(others, STRAND_COLLECT);
    for (uint32_t n = sim_draw(&me->chance, RESIDENTS + 1); n > 0; n--) {
        int pin = sim_one_in(&me->chance, 3) ? 1 + (int)sim_draw(&me->chance, (uint32_t)threads) : 0;
        (void)sim_spawn_at(me, others, STRAND_ATTR(.pool = world.pool, .pin = pin), reside, arg, pin);
    }
    for (uint32_t n = sim_draw(&me->chance, 3); n > 0; n--)
        (void)sim_spawn_at(me, others, STRAND_ATTR(.pool = somewhere(me)), close_it, arg, 0);
    for (uint32_t n = sim_draw(&me->chance, 3); n > 0; n--)
        pause_a_little(me);
    if (sim_one_in(&me->chance, 3)) {
        strand_pool_close(world.pool, "by its keeper");
        check_dry();
    }
    strand_scope_cancel(others, "it is late");
}

/* ---- the last strand, which ends by itself --------------------------------------------------------------------- */

static void wait_for_the_last(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_SHIELD;
    STRAND_DEADLINE(strand_in((4 + sim_draw(&me->chance, 4)) * STRAND_US));
    strand_event_wait(&world.events[world.round]);
}

/* When its time comes, or somebody wakes it, whichever is first; the close does not reach it. */
static void breathe_last(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    world.homes[me->number] = strand_pool_self();
    sim_settle(sim_try(me, wait_for_the_last, arg));
}

static void wake_the_last(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    world.homes[me->number] = strand_pool_self();
    strand_sleep((3 + sim_draw(&me->chance, 6)) * STRAND_US);
    strand_event_set(&world.events[world.round]);
}

static void keep_one(struct sim_life *me, void *arg)
{
    STRAND_SCOPE_WITH(others, STRAND_COLLECT);
    STRAND_SCOPE(scope);
    world.pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    struct sim_life *last = sim_spawn_at(me, scope, STRAND_ATTR(.pool = world.pool), breathe_last, arg, 0);
    struct sim_life *waker = sim_spawn_at(me, others, STRAND_ATTR(.pool = world.second), wake_the_last, arg, 0);
    pause_a_little(me);
    strand_pool_close(world.pool, "by its keeper");
    (void)sim_join(last);
    (void)sim_join(waker);
}

/* ---- who goes on closing when the scope has been left ------------------------------------------------------ */

static void close_from_afar(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    world.homes[me->number] = strand_pool_self();
    strand_pool_close(world.pool, "from afar");
}

/* The close has begun when this one has ended. From then on its scope may be left, and another pool have its place. */
static void leave_to_another(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    if (sim_refuses_memory())
        return; /* then it may have ended by that */
    world.pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    struct sim_life *witness = sim_spawn_at(me, scope, STRAND_ATTR(.pool = world.pool), stay, arg, 0);
    (void)sim_spawn_at(me, world.around, STRAND_ATTR(.pool = somewhere(me)), close_from_afar, arg, 0);
    (void)sim_join(witness);
}

/* ---- who has nothing to do with it ------------------------------------------------------------------------ */

/* Until all who write have done so; whatever pool has watched the pipe. */
static void read_on(struct sim_life *me, void *arg)
{
    char byte;
    (void)arg;
    SIM_CLEANUP(me);
    world.homes[me->number] = strand_pool_self();
    while (strand_read(world.pipe[0], &byte, 1) == 1)
        world.read++;
}

static void live(struct sim_life *me, void *arg)
{
    static sim_body *const ways[] = {keep, keep, keep_one, leave_to_another};
    struct sim_life *wakers[WAKERS];
    (void)arg;
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    struct sim_life *reader = sim_spawn_at(me, scope, STRAND_ATTR(.pool = somewhere(me)), read_on, NULL, 0);
    for (int i = 0; i < WAKERS; i++)
        wakers[i] = sim_spawn_at(me, scope, STRAND_ATTR(.pool = somewhere(me)), wake, NULL, 0);
    world.around = scope;
    for (int i = 0; i < ROUNDS; i++) {
        world.round = i;
        sim_settle(sim_try(me, ways[sim_draw(&me->chance, 4)], (void *)(intptr_t)i));
    }
    for (int i = 0; i < WAKERS; i++)
        (void)sim_join(wakers[i]);
    strand_close(world.pipe[1]);
    (void)sim_join(reader);
    strand_scope_cancel(scope, "it is over");
}

static void drain(void)
{
    long value;
    char byte;
    strand_chan_close(world.chan);
    while (strand_chan_receive(world.chan, &value) == 0)
        world.received++;
    SIM_CHECK_EQ(world.sent, world.received);
    while (strand_read(world.pipe[0], &byte, 1) == 1)
        world.read++;
    SIM_CHECK_EQ(world.written, world.read);
    strand_close(world.pipe[0]);
}

static void drop(void *message, size_t size)
{
    (void)message, (void)size;
    world.dropped++;
}

static void root(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    (void)arg;
    world.first = strand_pool_self();
    world.second = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1 + (int)sim_draw(&me->chance, 2)));
    world.chan = strand_chan_open(scope, sizeof(long), sim_draw(&me->chance, 3), NULL);
    world.port = strand_port_open(scope, sizeof(int), 2, STRAND_PORT_ATTR(.drop = drop));
    strand_must(strand_pipe(world.pipe));
    live(me, arg);
    drain();
}

static void oracle(void)
{
    SIM_CHECK_EQ(world.posted, world.taken + world.dropped);
    sim_observe((uint64_t)world.sent << 32 | (uint64_t)world.posted << 16 | (uint64_t)world.closed);
    sim_observe((uint64_t)world.woken << 16 | (uint64_t)world.read);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, closings, root, oracle, world);
