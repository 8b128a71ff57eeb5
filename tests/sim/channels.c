/*
 * Channels and select, with random closes, cancels and deadlines: senders, receivers and strands that select among
 * several of both kinds, over channels of any capacity. If its send has happened, a value arrives once, or is dropped
 * once at the end of its channel; otherwise never. A receiver gets the values of one sender in order. A strand that
 * waits without a limit, for a receiver that exists or for the close, is not forgotten; otherwise the run reports a
 * deadlock.
 */
#include "sim.h"

#include "strand/chan.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <errno.h>

enum { CHANS = 3, ACTORS = 6, POSTED = ACTORS, TURNS = 4, CASES = 4, POSTS = 3, VALUES = 512 };

typedef STRAND_CHAN(int) numbers;

static struct {
    strand_chan chans[CHANS];
    strand_semaphore permits; /* one, or none */
    strand_event event;
    _Atomic int over[CHANS]; /* a receive returned that the channel is closed and empty */
    bool drained;            /* each channel has a strand that receives until it is closed */
    _Atomic int count;       /* of values; the first is 1 */
    struct value {
        int sender, chan;
        _Atomic int sent, arrived;
    } values[VALUES];
    _Atomic int permits_taken, received, dropped, refused;
    strand_chan outside; /* to which a plain thread posts */
    _Atomic bool gone;
    _Atomic int posted, heard, unheard;
} world;

/* What a receiver has seen: the newest value of each sender, by channel. */
struct actor {
    struct sim_life *me;
    int newest[ACTORS][CHANS];
};

static int pick(struct actor *actor)
{
    return (int)sim_draw(&actor->me->chance, CHANS);
}

/* ---- values ------------------------------------------------------------------------------------- */

static int new_value(struct actor *actor, int chan)
{
    int value = ++world.count;
    SIM_CHECK(value < VALUES);
    world.values[value].sender = actor->me->tag;
    world.values[value].chan = chan;
    return value;
}

static void sent(int value, int result)
{
    SIM_CHECK(result == 0 || result == -EPIPE || result == -EAGAIN || (result == -ENOMEM && sim_refuses_memory()));
    world.values[value].sent += result == 0;
    world.refused += result != 0;
}

static void arrived(struct actor *actor, int chan, int value)
{
    SIM_CHECK(value > 0 && value <= world.count);
    struct value *v = &world.values[value];
    SIM_CHECK_EQ(v->chan, chan);
    SIM_CHECK_EQ(v->arrived++, 0);
    if (v->sender != POSTED) {
        SIM_CHECK(value > actor->newest[v->sender][chan]);
        actor->newest[v->sender][chan] = value;
    }
    world.received++;
}

static void drop(void *element)
{
    int value = *(int *)element;
    SIM_CHECK(value > 0 && value <= world.count);
    SIM_CHECK_EQ(world.values[value].arrived++, 0);
    world.dropped++;
}

/* ---- select ------------------------------------------------------------------------------------- */

enum kind { NOTHING, SEND, RECEIVE, PERMIT, OTHER };

struct choice {
    strand_case cases[CASES];
    enum kind kinds[CASES];
    int chans[CASES], values[CASES]; /* to be sent, or where one is received */
    int count;
};

static void choose_case(struct actor *actor, struct choice *choice, int i)
{
    struct sim_chance *chance = &actor->me->chance;
    int chan = choice->chans[i] = pick(actor);
    choice->kinds[i] = OTHER;
    switch (sim_draw(chance, 9)) {
    case 0:
    case 1:
    case 2:
        choice->kinds[i] = SEND;
        choice->values[i] = new_value(actor, chan);
        choice->cases[i] = strand_on_send(world.chans[chan], &choice->values[i]);
        break;
    case 3:
    case 4:
    case 5:
        choice->kinds[i] = RECEIVE;
        choice->cases[i] = strand_on_receive(world.chans[chan], &choice->values[i]);
        break;
    case 6:
        choice->kinds[i] = PERMIT;
        choice->cases[i] = strand_on_permit(&world.permits);
        break;
    case 7:
        choice->cases[i] = strand_on_event(&world.event);
        break;
    default:
        choice->cases[i] = strand_on_time(strand_in(sim_draw(chance, 40) * STRAND_US));
    }
    if (choice->kinds[i] <= RECEIVE && sim_one_in(chance, 4))
        choice->cases[i] = strand_case_drop(choice->cases[i]);
}

/* Given back at once most of the time, so that another finds one between two looks. */
static void have_a_permit(struct actor *actor)
{
    if (sim_one_in(&actor->me->chance, 8))
        world.permits_taken++;
    else
        strand_semaphore_release(&world.permits);
}

static void chosen(struct actor *actor, struct choice *choice, int i)
{
    int result = choice->cases[i].result;
    SIM_CHECK(i < choice->count);
    if (choice->kinds[i] == SEND)
        sent(choice->values[i], result);
    else if (choice->kinds[i] == RECEIVE && result == 0)
        arrived(actor, choice->chans[i], choice->values[i]);
    else if (choice->kinds[i] == RECEIVE)
        SIM_CHECK_EQ(result, -EPIPE);
    else if (choice->kinds[i] == PERMIT)
        have_a_permit(actor);
}

static void select_one(struct actor *actor)
{
    struct sim_chance *chance = &actor->me->chance;
    struct choice choice = {.count = 1 + (int)sim_draw(chance, CASES)};
    unsigned flags = sim_draw(chance, 4);
    for (int i = 0; i < choice.count; i++)
        choose_case(actor, &choice, i);
    int i = strand_select(choice.cases, (size_t)choice.count, flags);
    if (i >= 0)
        chosen(actor, &choice, i);
    else
        SIM_CHECK(i == -EPIPE || (i == -EAGAIN && flags & STRAND_SELECT_NOW));
}

/* ---- actors ------------------------------------------------------------------------------------- */

static void send(struct actor *actor)
{
    int chan = pick(actor), value = new_value(actor, chan);
    switch (sim_draw(&actor->me->chance, 6)) {
    case 0:
        sent(value, strand_chan_try_send(world.chans[chan], &value));
        break;
    case 1: /* posts have an order among themselves only, if one thread makes them */
        world.values[value].sender = POSTED;
        sent(value, strand_chan_post(world.chans[chan], &value));
        break;
    default:
        sent(value, strand_chan_send(world.chans[chan], &value));
    }
}

static void receive(struct actor *actor)
{
    int chan = pick(actor), value = 0;
    bool tries = sim_one_in(&actor->me->chance, 6), over = world.over[chan];
    int result =
        tries ? strand_chan_try_receive(world.chans[chan], &value) : strand_chan_receive(world.chans[chan], &value);
    SIM_CHECK(!over || result == -EPIPE);
    if (result == 0)
        arrived(actor, chan, value);
    else
        SIM_CHECK(result == -EPIPE || (tries && result == -EAGAIN));
    world.over[chan] |= result == -EPIPE;
}

/* Waits without a limit if a receiver is certain. */
static void send_steadily(struct actor *actor)
{
    struct choice choice = {.count = 2, .kinds = {SEND, RECEIVE}};
    int chan = pick(actor), value = new_value(actor, chan);
    if (sim_one_in(&actor->me->chance, 2)) {
        sent(value, strand_chan_send(world.chans[chan], &value));
        return;
    }
    choice.chans[0] = chan;
    choice.values[0] = value;
    choice.cases[0] = strand_on_send(world.chans[chan], &choice.values[0]);
    choice.chans[1] = pick(actor);
    choice.cases[1] = strand_on_receive(world.chans[choice.chans[1]], &choice.values[1]);
    chosen(actor, &choice, strand_select(choice.cases, 2, sim_draw(&actor->me->chance, 2)));
}

static void drain_two(struct actor *drainer, int chan)
{
    int value, chans[2] = {chan, (chan + 1) % CHANS}, i;
    strand_case cases[2];
    for (i = 0; i < 2; i++)
        cases[i] = strand_case_drop(strand_on_receive(world.chans[chans[i]], &value));
    while ((i = strand_select(cases, 2, 0)) >= 0)
        arrived(drainer, chans[i], value);
    SIM_CHECK_EQ(i, -EPIPE);
}

/* By itself, or together with the next one; until it is closed. */
static void drain(struct sim_life *me, void *arg)
{
    struct actor drainer = {.me = me};
    int chan = me->tag, value;
    (void)arg;
    if (sim_one_in(&me->chance, 2)) {
        drain_two(&drainer, chan);
        return;
    }
    while (strand_chan_receive(world.chans[chan], &value) == 0)
        arrived(&drainer, chan, value);
}

/* ---- as many as there is room for -------------------------------------------------------------- */

static void send_one(struct sim_life *me, void *chan)
{
    STRAND_IGNORE(STRAND_SEND(*(numbers *)chan, &me->number));
}

/* Nobody receives the last ones, which all have room: so all sends happen. */
static void fill(struct sim_life *me, void *arg)
{
    size_t room = 1 + sim_draw(&me->chance, 2);
    uint32_t received = sim_draw(&me->chance, 4);
    int value;
    (void)arg;
    STRAND_SCOPE(scope);
    numbers chan = STRAND_CHAN_OPEN(numbers, scope, room);
    for (size_t i = 0; i < room + received; i++)
        sim_spawn(me, scope, send_one, &chan);
    for (; received > 0; received--) {
        if (sim_one_in(&me->chance, 2))
            strand_yield();
        SIM_CHECK_EQ(STRAND_RECEIVE(chan, &value), 0);
    }
    strand_scope_join(scope);
    SIM_CHECK_EQ(STRAND_CHAN_LENGTH(chan), room);
}

/* ---- two who try each other --------------------------------------------------------------------- */

struct pair {
    strand_chan chans[2];
    _Atomic int given, got;
};

/* Each offers on one channel and asks on the other: one of the two values goes over, and both are done by that. */
static void give_or_take(struct sim_life *me, void *arg)
{
    struct pair *pair = arg;
    int mine = me->tag, other = -1;
    strand_case cases[2] = {strand_on_send(pair->chans[mine], &mine), strand_on_receive(pair->chans[!mine], &other)};
    bool got = strand_select(cases, 2, sim_draw(&me->chance, 2) * STRAND_SELECT_ORDERED) == 1;
    SIM_CHECK_EQ(other, got ? !mine : -1);
    pair->got += got;
    pair->given += !got;
}

static void trade(struct sim_life *me, void *arg)
{
    struct pair pair = {0};
    (void)arg;
    STRAND_SCOPE_WITH(scope, STRAND_TOGETHER); /* without the other one the first would wait for ever */
    for (int i = 0; i < 2; i++)
        pair.chans[i] = strand_chan_open(scope, sizeof(int), 0, NULL);
    for (int i = 0; i < 2; i++)
        sim_spawn_tagged(me, scope, give_or_take, &pair, i);
    strand_scope_join(scope);
    SIM_CHECK(pair.given == 1 && pair.got == 1);
}

/* ---- a plain thread that posts ------------------------------------------------------------------- */

/* At its own time, maybe when the channel has gone. */
static void *post_on(void *arg)
{
    for (int value = 0; value < POSTS; value++) {
        bool gone = world.gone;
        int result = strand_chan_post(world.outside, &value);
        SIM_CHECK(result == -EPIPE || (result == 0 && !gone));
        world.posted += result == 0;
    }
    return arg;
}

static void drop_posted(void *element)
{
    SIM_CHECK(*(int *)element >= 0 && *(int *)element < POSTS);
    world.unheard++;
}

static void hear_some(struct sim_life *me, void *arg)
{
    int value;
    (void)arg;
    STRAND_SCOPE(scope);
    world.outside = strand_chan_open(scope, sizeof value, sim_draw(&me->chance, 3),
                                     &(strand_chan_attr){.size = sizeof(strand_chan_attr), .drop = drop_posted});
    strand_must(strand_sim_thread(post_on, NULL));
    for (int next = 0, last = (int)sim_draw(&me->chance, POSTS + 1); next < last; next++) {
        SIM_CHECK_EQ(strand_chan_receive(world.outside, &value), 0);
        SIM_CHECK_EQ(value, next);
        world.heard++;
    }
}

/* Its record is used again while the thread goes on. */
static void hear(struct sim_life *me, void *arg)
{
    hear_some(me, arg);
    world.gone = true;
    STRAND_SCOPE(scope);
    strand_chan other = strand_chan_open(scope, sizeof(int), POSTS, NULL);
    for (uint32_t n = sim_draw(&me->chance, 3); n > 0; n--)
        strand_sleep(10 * STRAND_US);
    SIM_CHECK_EQ(strand_chan_length(other), 0);
}

/* ---- all of it ---------------------------------------------------------------------------------- */

static void turn(struct sim_life *me, void *arg)
{
    struct actor *actor = arg;
    if (world.drained && sim_one_in(&me->chance, 3)) {
        send_steadily(actor);
        return;
    }
    STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 60)) * STRAND_US));
    switch (sim_draw(&me->chance, 10)) {
    case 0:
        strand_sleep(10 * STRAND_US);
        break;
    case 1:
        if (sim_one_in(&me->chance, 2))
            strand_event_set(&world.event);
        else
            strand_event_clear(&world.event);
        break;
    case 2:
    case 3:
    case 4:
        send(actor);
        break;
    case 5:
    case 6:
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

static void play(struct sim_life *me, void *arg)
{
    struct sim_life *actors[ACTORS];
    STRAND_SCOPE(scope);
    world.drained = sim_one_in(&me->chance, 2);
    for (int i = 0; i < CHANS && world.drained; i++)
        sim_spawn_tagged(me, scope, drain, arg, i);
    for (int i = 0; i < ACTORS; i++)
        actors[i] = sim_spawn_tagged(me, scope, act, arg, i);
    for (uint32_t n = sim_draw(&me->chance, 6); n > 0; n--) {
        strand_sleep(sim_draw(&me->chance, 30) * STRAND_US);
        if (sim_one_in(&me->chance, 3))
            strand_chan_close(world.chans[sim_draw(&me->chance, CHANS)]);
        else if (sim_one_in(&me->chance, 2))
            sim_cancel(actors[sim_draw(&me->chance, ACTORS)], "in the middle");
        else
            strand_yield();
    }
    for (int i = 0; i < ACTORS; i++)
        sim_join(actors[i]);
    for (int i = 0; i < CHANS; i++)
        strand_chan_close(world.chans[i]);
    strand_scope_join(scope);
}

static void root(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    if (sim_one_in(&me->chance, 2))
        strand_semaphore_release(&world.permits);
    int permits = (int)strand_semaphore_permits(&world.permits);
    for (int i = 0; i < CHANS; i++)
        world.chans[i] = strand_chan_open(scope, sizeof(int), sim_draw(&me->chance, 3),
                                          &(strand_chan_attr){.size = sizeof(strand_chan_attr), .drop = drop});
    play(me, arg);
    if (sim_one_in(&me->chance, 3))
        fill(me, arg);
    else if (sim_one_in(&me->chance, 2))
        trade(me, arg);
    else
        hear(me, arg);
    SIM_CHECK_EQ(strand_semaphore_permits(&world.permits) + (uint64_t)world.permits_taken, permits);
}

static void oracle(void)
{
    for (int i = 1; i <= world.count; i++)
        SIM_CHECK_EQ(world.values[i].arrived, world.values[i].sent);
    SIM_CHECK_EQ(world.posted, world.heard + world.unheard);
    sim_observe((uint64_t)world.posted);
    sim_observe((uint64_t)world.received << 32 | (uint64_t)world.dropped << 16 | (uint64_t)world.refused);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, channels, root, oracle, world);
