/*
 * Clean-ups that block and throw: strands go down through blocks, each with a clean-up, and leave them normally, by a
 * failure, by a cancel or by a deadline. The clean-ups sleep, wait for each other, spawn and join, fail. Each runs
 * once, the innermost first; while an exception is in flight none is interrupted from outside; and what they throw, or
 * attach to what is in flight, comes to the one who joins.
 */
#include "sim.h"

#include "strand/sync.h"

enum { STRANDS = 4, DEPTH = 4 };

static struct {
    strand_semaphore permit; /* one */
    _Atomic int inside, entered, left;
} world;

/* ---- what a clean-up does ------------------------------------------------------------------------ */

static void helper(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    strand_sleep(sim_draw(&me->chance, 3) * 10 * STRAND_US);
}

static void go_out(struct sim_life *const *me)
{
    (void)me;
    world.inside--;
}

static void be_alone(struct sim_life *me)
{
    STRAND_PERMIT(&world.permit);
    struct sim_life *inside __attribute__((cleanup(go_out), unused)) = me;
    SIM_CHECK_EQ(world.inside++, 0);
    strand_yield();
}

static void have_a_child(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    struct sim_life *child = sim_spawn(me, scope, helper, arg);
    sim_take(strand_join(child->handle));
}

static void block(struct sim_life *me, void *arg)
{
    switch (sim_draw(&me->chance, 5)) {
    case 0:
        strand_sleep(sim_draw(&me->chance, 3) * 15 * STRAND_US);
        break;
    case 1:
        be_alone(me);
        break;
    case 2:
        have_a_child(me, arg);
        break;
    default:
        strand_yield();
    }
}

static void sleep_past_a_deadline(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 20)) * STRAND_US));
    strand_sleep(STRAND_S);
}

static void fail(struct sim_life *me, void *arg)
{
    (void)arg;
    sim_fail(me);
}

/* Nothing may leave it. A deadline of its own counts; in a try block so does what is outside, unless it is shielded. */
static void while_unwinding(struct sim_life *me)
{
    strand_exception *e;
    block(me, NULL);
    switch (sim_draw(&me->chance, 4)) {
    case 0: {
        STRAND_SHIELD;
        e = sim_try(me, sleep_past_a_deadline, NULL);
        SIM_CHECK(e && strand_exception_kind(e) == &STRAND_TIMED_OUT);
        strand_exception_release(e);
        break;
    }
    case 1:
        e = sim_try(me, fail, NULL);
        SIM_CHECK(e);
        strand_suppress(e);
        break;
    case 2: {
        bool was_cancelled = me->cancelled;
        e = sim_try(me, block, NULL);
        if (e)
            SIM_CHECK(strand_exception_kind(e) == &STRAND_INTERRUPTED);
        SIM_CHECK(e || !was_cancelled);
        strand_exception_release(e);
        break;
    }
    default:
        break;
    }
}

static void clean_up(struct sim_life *const *life)
{
    struct sim_life *me = *life;
    world.left++;
    if (strand_unwinding())
        while_unwinding(me);
    else if (sim_one_in(&me->chance, 8))
        sim_fail(me);
    else if (sim_one_in(&me->chance, 2))
        block(me, NULL);
}

/* ---- the way down, and out ------------------------------------------------------------------------ */

static void descend(struct sim_life *me, void *arg);

static void descend_in_a_deadline(struct sim_life *me, void *arg)
{
    STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 60)) * STRAND_US));
    descend(me, arg);
}

static void descend_and_catch(struct sim_life *me, void *arg)
{
    strand_exception *e = sim_try(me, sim_one_in(&me->chance, 2) ? descend : descend_in_a_deadline, arg);
    if (e && strand_exception_is(e, &STRAND_ERROR))
        sim_see(e);
    sim_settle(e);
}

static void descend_with_a_child(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    struct sim_life *child = sim_spawn_tagged(me, scope, descend, arg, me->tag);
    if (sim_one_in(&me->chance, 3))
        sim_cancel(child, "by its parent");
    sim_take(strand_join(child->handle));
}

static void descend(struct sim_life *me, void *arg)
{
    static sim_body *const ways[] = {descend, descend, descend_in_a_deadline, descend_and_catch, descend_with_a_child};
    world.entered++;
    SIM_CLEANUP(me);
    struct sim_life *leaving __attribute__((cleanup(clean_up), unused)) = me;
    SIM_CLEANUP(me);
    if (me->tag++ < DEPTH)
        ways[sim_draw(&me->chance, 5)](me, arg);
    else if (sim_one_in(&me->chance, 3))
        sim_fail(me);
    else
        block(me, arg);
}

static void join_one(struct sim_life *me, void *child)
{
    (void)me;
    sim_take(strand_join(((struct sim_life *)child)->handle));
}

static void root(struct sim_life *me, void *arg)
{
    struct sim_life *strands[STRANDS];
    strand_semaphore_release(&world.permit);
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    for (int i = 0; i < STRANDS; i++)
        strands[i] = sim_spawn(me, scope, descend, arg);
    for (uint32_t n = sim_draw(&me->chance, STRANDS); n > 0; n--) {
        strand_sleep(sim_draw(&me->chance, 30) * STRAND_US);
        sim_cancel(strands[sim_draw(&me->chance, STRANDS)], "on its way");
    }
    for (int i = 0; i < STRANDS; i++) {
        strand_exception *e = sim_try(me, join_one, strands[i]);
        if (e)
            sim_see(e);
        strand_exception_release(e);
    }
    SIM_CHECK_EQ(strand_semaphore_permits(&world.permit), 1);
}

static void oracle(void)
{
    int silent = 0;
    struct sim_life *life;
    SIM_CHECK_EQ(world.entered, world.left);
    for (int i = 1; (life = sim_life(i)); i++)
        silent += life->failed - life->seen;
    SIM_CHECK(silent == 0 || sim_logged());
    sim_observe((uint64_t)world.left << 8 | (uint64_t)silent);
}

SIM_WORKLOAD(cleanups, root, oracle, world);
