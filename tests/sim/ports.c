/*
 * Ports: strands, plain threads and handlers of signals send messages of all lengths, while strands receive, select,
 * are cancelled and run out of time, and while anybody closes the ports, or leaves their scopes. A message whose send
 * has happened is received once, whole, or dropped once; messages of one sender arrive in order; after a receive has
 * returned that the port is over, no message comes. A strand that receives without a limit until the port is over is
 * not forgotten; otherwise the run reports a deadlock.
 */
/* contract 1.3 */
#include "sim.h"

#include "strand/chan.h"
#include "strand/port.h"
#include "strand/sim.h"

#include <errno.h>
#include <string.h>

enum {
    PORTS = 2,
    ACTORS = 4,
    TURNS = 4,
    VALUES = 256,
    LONGEST = 40,
    PLAIN = ACTORS,
    SENDERS = PLAIN + 2,
    HANDLER = -1
};

static struct {
    strand_port ports[PORTS], brief;
    bool drained; /* each port has a strand that receives until it is over */
    _Atomic int count;
    struct value {
        int sender, port;
        _Atomic int sent, arrived;
    } values[VALUES]; /* from 1 on */
    _Atomic int received, dropped, refused[PORTS], over[PORTS], plains, later;
    int slots[PORTS], patience;
} world;

struct message {
    int value;
    unsigned char pattern[LONGEST];
};

/* What a receiver has seen: the newest value of each sender, by port. */
struct actor {
    struct sim_life *me;
    int newest[SENDERS][PORTS];
};

/* ---- messages ----------------------------------------------------------------------------------- */

static size_t length_of(int value)
{
    return (size_t)(value * 7 % LONGEST);
}

/* Returns what the send did. Anybody, in a handler too. */
static int send_new(int sender, int port)
{
    struct message message = {.value = ++world.count};
    struct value *value = &world.values[message.value];
    SIM_CHECK(message.value < VALUES);
    value->sender = sender;
    value->port = port;
    memset(message.pattern, message.value, sizeof message.pattern);
    bool over = world.over[port];
    int result =
        strand_port_send(world.ports[port], &message, offsetof(struct message, pattern) + length_of(message.value));
    SIM_CHECK(result == -EPIPE || (!over && (result == 0 || result == -EAGAIN)));
    value->sent += result == 0;
    world.refused[port] += result == -EAGAIN;
    return result;
}

static struct value *look_at(const void *bytes, int64_t size)
{
    const struct message *message = bytes;
    SIM_CHECK(message->value > 0 && message->value <= world.count);
    SIM_CHECK_EQ(size, offsetof(struct message, pattern) + length_of(message->value));
    for (size_t i = 0; i < length_of(message->value); i++)
        SIM_CHECK_EQ(message->pattern[i], message->value % 256);
    struct value *value = &world.values[message->value];
    SIM_CHECK_EQ(value->arrived++, 0);
    return value;
}

static void arrived(struct actor *actor, int port, const struct message *message, int64_t size)
{
    const struct value *value = look_at(message, size);
    SIM_CHECK_EQ(value->port, port);
    if (value->sender != HANDLER) {
        SIM_CHECK(message->value > actor->newest[value->sender][port]);
        actor->newest[value->sender][port] = message->value;
    }
    world.received++;
}

static void drop(void *message, size_t size)
{
    look_at(message, (int64_t)size);
    world.dropped++;
}

/* ---- handlers, and plain threads ---------------------------------------------------------------- */

static int zero_and_one[PORTS] = {0, 1};

static void on_signal(void *port)
{
    send_new(HANDLER, *(int *)port);
}

static void on_last_signal(void *port)
{
    strand_port_close(world.ports[*(int *)port]);
}

static void interrupt_somebody(struct sim_life *me, void (*handler)(void *arg))
{
    (void)strand_sim_signal(handler, &zero_and_one[sim_draw(&me->chance, PORTS)]);
}

static void *send_from_outside(void *arg)
{
    int me = world.plains++;
    for (int i = 0; i < 4; i++)
        send_new(PLAIN + me, (me + i / 2) % PORTS);
    return arg;
}

static void *close_from_outside(void *port)
{
    strand_port_close(world.ports[*(int *)port]);
    return port;
}

/* ---- receiving ---------------------------------------------------------------------------------- */

static void took(struct actor *actor, int port, const struct message *message, int64_t size, bool over)
{
    if (size >= 0) {
        SIM_CHECK(!over);
        arrived(actor, port, message, size);
        return;
    }
    SIM_CHECK(size == -EPIPE || size == -EAGAIN);
    world.over[port] |= size == -EPIPE;
}

static void receive(struct actor *actor)
{
    struct message message = {0};
    int port = (int)sim_draw(&actor->me->chance, PORTS);
    bool tries = sim_one_in(&actor->me->chance, 4), over = world.over[port];
    int64_t size = tries ? strand_port_try_receive(world.ports[port], &message, sizeof message)
                         : strand_port_receive(world.ports[port], &message, sizeof message);
    SIM_CHECK(tries || size != -EAGAIN);
    took(actor, port, &message, size, over);
}

static void select_one(struct actor *actor)
{
    struct message messages[3];
    strand_case cases[4];
    int ports[3], over[3];
    struct sim_chance *chance = &actor->me->chance;
    for (int i = 0; i < 3; i++) {
        ports[i] = (int)sim_draw(chance, PORTS);
        over[i] = world.over[ports[i]];
        cases[i] = strand_on_message(world.ports[ports[i]], &messages[i], sizeof messages[i]);
        if (sim_one_in(chance, 3))
            cases[i] = strand_case_drop(cases[i]);
    }
    cases[3] = strand_on_time(strand_in(sim_draw(chance, 40) * STRAND_US));
    unsigned flags = sim_draw(chance, 4); /* before the next: arguments have no order */
    size_t count = sim_one_in(chance, 2) ? 4 : 3;
    int i = strand_select(cases, count, flags);
    if (i >= 0 && i < 3)
        took(actor, ports[i], &messages[i], cases[i].result, over[i]);
}

/* Without a limit, alone or with another one; until it is over. */
static void drain(struct sim_life *me, void *arg)
{
    struct actor drainer = {.me = me};
    struct message message = {0};
    int port = me->tag;
    int64_t size;
    (void)arg;
    while ((size = strand_port_receive(world.ports[port], &message, sizeof message)) >= 0)
        arrived(&drainer, port, &message, size);
    SIM_CHECK_EQ(size, -EPIPE);
    world.over[port] = 1;
}

static void drain_by_select(struct sim_life *me, void *arg)
{
    struct actor drainer = {.me = me};
    struct message messages[PORTS];
    strand_case cases[PORTS];
    int i;
    (void)arg;
    for (i = 0; i < PORTS; i++)
        cases[i] = strand_case_drop(strand_on_message(world.ports[i], &messages[i], sizeof messages[i]));
    while ((i = strand_select(cases, PORTS, sim_draw(&me->chance, 2) * STRAND_SELECT_ORDERED)) >= 0)
        arrived(&drainer, i, &messages[i], cases[i].result);
    SIM_CHECK_EQ(i, -EPIPE);
}

/* ---- a port whose scope is left while others send ------------------------------------------------ */

static void on_brief_signal(void *value)
{
    STRAND_IGNORE(strand_port_send(world.brief, value, sizeof(int)));
}

static void *send_briefly(void *arg)
{
    for (int value = 0; value < 4; value++) {
        int result = strand_port_send(world.brief, &value, sizeof value);
        SIM_CHECK(result == 0 || result == -EAGAIN || result == -EPIPE);
    }
    return arg;
}

static void receive_briefly(struct sim_life *me, void *arg)
{
    int value;
    (void)me, (void)arg;
    while (strand_port_receive(world.brief, &value, sizeof value) >= 0)
        SIM_CHECK(value >= 0 && value < 4);
}

/* A receiver that is no strand of its scope waits when the port ends, and other things come in its place. Nothing
 * throws while that receiver may be between two messages. */
static void open_briefly(struct sim_life *me, void *arg)
{
    static int three = 3;
    (void)arg;
    STRAND_SCOPE(outer);
    bool by_other = sim_one_in(&me->chance, 2);
    {
        STRAND_SCOPE(scope);
        world.brief = strand_port_open(scope, sizeof(int), 1 + sim_draw(&me->chance, 3), NULL);
        if (by_other)
            sim_spawn(me, outer, receive_briefly, NULL);
        (void)strand_sim_thread(send_briefly, NULL);
        (void)strand_sim_signal(on_brief_signal, &three);
        for (uint32_t n = sim_draw(&me->chance, 4); n > 0; n--)
            strand_yield();
        (void)strand_sim_signal(on_brief_signal, &three);
        strand_port_close(world.brief);
        if (by_other)
            strand_scope_join(outer);
    }
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, sizeof(int), 4, NULL);
    strand_port port = strand_port_open(scope, sizeof(int), 4, NULL);
    strand_port_info info = {.size = sizeof info};
    for (uint32_t n = sim_draw(&me->chance, 4); n > 0; n--)
        strand_sleep(5 * STRAND_US);
    SIM_CHECK_EQ(strand_chan_length(chan), 0);
    SIM_CHECK_EQ(strand_port_info_get(port, &info), 0);
    SIM_CHECK_EQ(info.taken, 0);
}

/* ---- one message, and nobody else who would wake anybody ----------------------------------------- */

static void on_lonely_signal(void *value)
{
    STRAND_IGNORE(strand_port_send(world.brief, value, sizeof(int)));
}

static void on_no_signal(void *value)
{
    (void)value;
}

/* Late, when all others may have gone to sleep. */
static void *send_alone(void *value)
{
    strand_port_info info = {.size = sizeof info};
    for (int i = 0; i < world.patience; i++) /* without memory its company may fail, and the port end with that */
        SIM_CHECK(strand_port_info_get(world.brief, &info) == 0 || sim_refuses_memory());
    on_lonely_signal(value);
    return value;
}

/* A thread that goes to sleep meanwhile. */
static void keep_company(struct sim_life *me, void *arg)
{
    (void)arg;
    for (uint32_t n = sim_draw(&me->chance, 3); n > 0; n--)
        strand_yield();
}

static void receive_alone(struct sim_life *me, void *arg)
{
    static int values[] = {1, 2, 3};
    STRAND_SCOPE(scope);
    world.brief = strand_port_open(scope, sizeof(int), 1, NULL);
    for (int i = 0; i < 3; i++) {
        int value = 0;
        for (uint32_t n = sim_draw(&me->chance, 3); n > 0; n--)
            sim_spawn(me, scope, keep_company, arg);
        world.patience = (int)sim_draw(&me->chance, 30);
        if (sim_one_in(&me->chance, 2)) {
            strand_must(strand_sim_thread(send_alone, &values[i]));
        } else {
            for (int n = 0; n < world.patience; n++)
                strand_must(strand_sim_signal(on_no_signal, NULL));
            strand_must(strand_sim_signal(on_lonely_signal, &values[i]));
        }
        SIM_CHECK_EQ(strand_port_receive(world.brief, &value, sizeof value), sizeof value);
        SIM_CHECK_EQ(value, values[i]);
        strand_scope_join(scope);
    }
}

/* ---- all of it ---------------------------------------------------------------------------------- */

static void turn(struct sim_life *me, void *arg)
{
    struct actor *actor = arg;
    STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 60)) * STRAND_US));
    switch (sim_draw(&me->chance, 8)) {
    case 0:
        strand_sleep(5 * STRAND_US);
        break;
    case 1:
        interrupt_somebody(me, on_signal);
        break;
    case 2:
    case 3:
    case 4:
        send_new(me->tag, (int)sim_draw(&me->chance, PORTS));
        break;
    case 5:
        receive(actor);
        break;
    default:
        select_one(actor);
    }
}

static void act(struct sim_life *me, void *arg)
{
    struct actor actor = {.me = me};
    (void)arg;
    SIM_CLEANUP(me);
    for (int i = 0; i < TURNS; i++) {
        strand_exception *e = sim_try(me, turn, &actor);
        if (e)
            SIM_CHECK(!strand_exception_is(e, &STRAND_ERROR) || strand_exception_is(e, &STRAND_TIMED_OUT) ||
                      sim_no_memory(e));
        sim_settle(e);
    }
}

/* Any strand may close a port; at the end every port is closed. */
static void close_some(struct sim_life *me)
{
    int *port = &zero_and_one[sim_draw(&me->chance, PORTS)];
    switch (sim_draw(&me->chance, 4)) {
    case 0:
        interrupt_somebody(me, on_last_signal);
        break;
    case 1:
        (void)strand_sim_thread(close_from_outside, port);
        break;
    case 2:
        strand_port_close(world.ports[*port]);
        break;
    default:
        break;
    }
}

static void play(struct sim_life *me, void *arg)
{
    struct sim_life *actors[ACTORS];
    STRAND_SCOPE(scope);
    world.drained = sim_one_in(&me->chance, 2);
    for (int i = 0; i < PORTS && world.drained; i++)
        sim_spawn_tagged(me, scope, drain, arg, i);
    if (world.drained && sim_one_in(&me->chance, 3))
        sim_spawn(me, scope, drain_by_select, arg);
    for (uint32_t n = sim_draw(&me->chance, 3); n > 0; n--)
        strand_must(strand_sim_thread(send_from_outside, NULL));
    for (int i = 0; i < ACTORS; i++)
        actors[i] = sim_spawn_tagged(me, scope, act, arg, i);
    for (uint32_t n = sim_draw(&me->chance, 6); n > 0; n--) {
        strand_sleep(sim_draw(&me->chance, 30) * STRAND_US);
        if (sim_one_in(&me->chance, 3))
            sim_cancel(actors[sim_draw(&me->chance, ACTORS)], "in the middle");
        else
            interrupt_somebody(me, on_signal);
    }
    close_some(me);
    for (int i = 0; i < ACTORS; i++)
        sim_join(actors[i]);
    for (int i = 0; i < PORTS; i++)
        strand_port_close(world.ports[i]);
    strand_scope_join(scope);
}

static void check_figures(void)
{
    for (int i = 0; i < PORTS; i++) {
        strand_port_info info = {.size = sizeof info};
        SIM_CHECK_EQ(strand_port_info_get(world.ports[i], &info), 0);
        SIM_CHECK(info.refused <= (uint64_t)world.refused[i] + world.later);
        SIM_CHECK(info.taken <= (size_t)world.slots[i]);
        if (world.drained && world.over[i])
            SIM_CHECK_EQ(info.taken, 0);
    }
}

static void root(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    world.later = 64; /* sends that have been refused, and have not counted it */
    if (sim_one_in(&me->chance, 3)) {
        (sim_one_in(&me->chance, 2) ? open_briefly : receive_alone)(me, arg);
        return;
    }
    for (int i = 0; i < PORTS; i++) {
        world.slots[i] = 1 + (int)sim_draw(&me->chance, 4);
        world.ports[i] =
            strand_port_open(scope, sizeof(struct message), (size_t)world.slots[i], STRAND_PORT_ATTR(.drop = drop));
    }
    play(me, arg);
    check_figures();
}

static void oracle(void)
{
    int sent = 0;
    for (int i = 1; i <= world.count; i++) {
        SIM_CHECK_EQ(world.values[i].sent, world.values[i].arrived);
        sent += world.values[i].sent;
    }
    SIM_CHECK_EQ(sent, world.received + world.dropped);
    sim_observe((uint64_t)world.received << 32 | (uint64_t)world.dropped);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, ports, root, oracle, world);
