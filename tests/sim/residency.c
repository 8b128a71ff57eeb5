/*
 * Guests on a few shared fibres: they sleep, yield, recurse deeply, pass values through channels, wait for each other,
 * fail, open fibres, and are cancelled and trimmed at any time; some sleep so long that idle fibres are trimmed. A
 * strand continues with its frames unchanged; at most one strand of a fibre runs at a time; at the end no saved stack
 * is left.
 */
/* V-12, V-21 */
#include "sim.h"

#include "strand/chan.h"
#include "strand/sync.h"

#include <string.h>

enum { FIBRES = 3, GUESTS = 7, WORDS = 12, DEPTH_MOST = 10 };
#define REST (50 * STRAND_MS) /* a few of them, and the fibres that rest meanwhile give memory back */

static struct {
    strand_fibre fibres[FIBRES];
    strand_chan chan;
    strand_mutex mutex;
    strand_event event;
    _Atomic int inside[FIBRES + 1];
    _Atomic int sent, received, entered, left, began;
} world;

/* ---- frames that are looked at ------------------------------------------------------------------------ */

struct frame {
    struct sim_life *me;
    uint64_t words[WORDS];
};

static uint64_t word_of(const struct frame *frame, uint64_t i)
{
    return (uint64_t)(uintptr_t)frame * 31 + (uint64_t)frame->me->number * 1000003 + i;
}

static __attribute__((noinline)) void look(const struct frame *frame)
{
    for (uint64_t i = 0; i < WORDS; i++)
        SIM_CHECK_EQ(frame->words[i], word_of(frame, i));
}

static __attribute__((noinline)) struct frame *fill(struct frame *frame, struct sim_life *me)
{
    frame->me = me;
    for (uint64_t i = 0; i < WORDS; i++)
        frame->words[i] = word_of(frame, i);
    world.entered++;
    return frame;
}

static void leave(struct frame *frame)
{
    look(frame);
    world.left++;
    if (sim_one_in(&frame->me->chance, 4))
        strand_yield(); /* which may be interrupted */
    look(frame);
}

#define FRAME(me) struct frame frame __attribute__((cleanup(leave))) = *fill(&frame, (me))

/* The strands of a fibre are alone between two suspensions. */
static void be_alone(struct sim_life *me)
{
    SIM_CHECK_EQ(world.inside[me->tag]++, 0);
    for (volatile int i = 0; i < 3; i++)
        ;
    SIM_CHECK_EQ(--world.inside[me->tag], 0);
}

/* ---- what a guest does ---------------------------------------------------------------------------------- */

static void act(struct sim_life *me, void *depth);

static void send(struct sim_life *me)
{
    long value[2] = {me->number, 0};
    value[1] = ~value[0];
    STRAND_DEADLINE(strand_in((int64_t)sim_draw(&me->chance, 30) * STRAND_US));
    if (strand_chan_send(world.chan, value) == 0)
        world.sent++;
}

static void receive(struct sim_life *me)
{
    long value[2] = {0, 0};
    strand_case cases[2] = {strand_on_receive(world.chan, value),
                            strand_on_time(strand_in((int64_t)sim_draw(&me->chance, 30) * STRAND_US))};
    if (strand_select(cases, 2, 0) == 0 && cases[0].result == 0) {
        SIM_CHECK_EQ(value[0], ~value[1]);
        SIM_CHECK(value[0] > 0 && value[0] < SIM_LIVES);
        world.received++;
    } else {
        SIM_CHECK_EQ(value[0] | value[1], 0);
    }
}

static void lock(struct sim_life *me)
{
    STRAND_LOCKED(&world.mutex);
    if (sim_one_in(&me->chance, 2))
        strand_sleep(STRAND_US);
}

static void transact(struct sim_life *me, void *arg)
{
    (void)arg;
    FRAME(me);
    switch (sim_draw(&me->chance, 4)) {
    case 0:
        send(me);
        break;
    case 1:
        receive(me);
        break;
    case 2:
        lock(me);
        break;
    default:
        strand_event_wait(&world.event);
    }
}

static void spawn_one(struct sim_life *me, void *depth)
{
    FRAME(me);
    STRAND_SCOPE(scope);
    int fibre = (int)sim_draw(&me->chance, FIBRES + 1);
    strand_fibre where = fibre < FIBRES ? world.fibres[fibre] : (strand_fibre){{0, 0}};
    struct sim_life *child = sim_spawn_on(me, scope, where, act, depth, fibre);
    if (sim_one_in(&me->chance, 2))
        sim_cancel(child, "by its parent");
    strand_yield();
    (void)sim_join(child);
}

/* Its strands may outlive it: they are anchored further out. */
static void open_one(struct sim_life *me, void *depth)
{
    FRAME(me);
    STRAND_SCOPE(outer);
    struct sim_life *child;
    {
        STRAND_SCOPE(inner);
        strand_fibre fibre = strand_fibre_open(inner, NULL);
        child = sim_spawn_on(me, outer, fibre, act, depth, FIBRES);
        if (sim_one_in(&me->chance, 2))
            strand_yield();
    }
    (void)sim_join(child);
}

static void go_down(struct sim_life *me, void *arg)
{
    int depth = (int)(intptr_t)arg;
    FRAME(me);
    if (depth > 0)
        go_down(me, (void *)(intptr_t)(depth - 1));
    else if (sim_one_in(&me->chance, 8))
        sim_fail(me);
    else
        strand_sleep((int64_t)sim_draw(&me->chance, 20) * STRAND_US);
    look(&frame);
}

static void do_one(struct sim_life *me, void *arg)
{
    intptr_t depth = (intptr_t)arg;
    int64_t units;
    switch (sim_draw(&me->chance, depth > 0 ? 9 : 7)) {
    case 0:
        units = sim_draw(&me->chance, 20); /* before the next: factors have no order */
        strand_sleep(units * (sim_one_in(&me->chance, 4) ? REST : STRAND_US));
        break;
    case 1:
        go_down(me, (void *)(intptr_t)sim_draw(&me->chance, DEPTH_MOST));
        break;
    case 2:
        (void)strand_fibre_trim(world.fibres[sim_draw(&me->chance, FIBRES)]);
        break;
    case 3:
    case 4:
        transact(me, NULL);
        break;
    case 7:
        spawn_one(me, (void *)(depth - 1));
        break;
    case 8:
        open_one(me, (void *)(depth - 1));
        break;
    default:
        strand_yield();
    }
}

static void act(struct sim_life *me, void *depth)
{
    SIM_CLEANUP(me);
    FRAME(me);
    world.began++;
    for (uint32_t n = 1 + sim_draw(&me->chance, 4); n > 0; n--) {
        if (me->tag < FIBRES)
            be_alone(me);
        strand_exception *e = sim_try(me, do_one, depth);
        look(&frame);
        if (e && !strand_exception_is(e, &STRAND_INTERRUPTED))
            sim_see(e);
        sim_settle(e);
    }
}

/* ---- the run ---------------------------------------------------------------------------------------------- */

static void check_fibre(strand_fibre fibre)
{
    strand_fibre_info info = {.size = sizeof info};
    do {
        strand_yield(); /* the last one may not have left its stack yet */
        strand_fibre_info_get(fibre, 0, &info);
    } while (info.strands);
    SIM_CHECK_EQ(info.saved_bytes, 0);
    SIM_CHECK_EQ(info.active, 0);
    sim_observe(info.copies);
}

static void live(struct sim_life *me, void *arg)
{
    struct sim_life *guests[GUESTS];
    (void)arg;
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    world.chan = strand_chan_open(scope, 2 * sizeof(long), sim_draw(&me->chance, 2), NULL);
    for (int i = 0; i < GUESTS; i++) {
        int fibre = (int)sim_draw(&me->chance, FIBRES);
        guests[i] = sim_spawn_on(me, scope, world.fibres[fibre], act, (void *)2, fibre);
    }
    for (uint32_t n = sim_draw(&me->chance, GUESTS); n > 0; n--) {
        struct sim_life *somebody = sim_somebody(me);
        strand_sleep((int64_t)sim_draw(&me->chance, 20) * STRAND_US);
        if (somebody && somebody->number)
            sim_cancel(somebody, "by the root");
        (void)strand_fibre_trim(world.fibres[sim_draw(&me->chance, FIBRES)]);
    }
    strand_event_set(&world.event);
    for (int i = 0; i < GUESTS; i++)
        (void)sim_join(guests[i]);
}

static void root(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < FIBRES; i++)
        world.fibres[i] = strand_fibre_open(scope, NULL);
    live(me, arg);
    for (int i = 0; i < FIBRES; i++)
        check_fibre(world.fibres[i]);
}

static void oracle(void)
{
    SIM_CHECK_EQ(world.entered, world.left);
    SIM_CHECK(world.received <= world.sent);
    sim_observe((uint64_t)world.entered << 20 | (uint64_t)world.received);
}

SIM_WORKLOAD(residency, root, oracle, world);
