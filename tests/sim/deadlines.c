/*
 * Deadlines against completion: strands hand tokens on through channels, a semaphore and sleeps inside of deadlines
 * that pass at about the same time, nested ones too. No token is lost or made; an operation that was interrupted has
 * not taken one; and a deadline that has passed is seen inside of its block, and nowhere else.
 */
#include "sim.h"

#include "strand/chan.h"
#include "strand/sync.h"

enum { TOKENS = 4, WORKERS = 6, TURNS = 4 };

static struct {
    strand_chan tokens; /* each is in it, in the semaphore, or with a strand */
    strand_semaphore permits;
    _Atomic int held, timed_out, done;
} world;

/* ---- one turn ---------------------------------------------------------------------------------- */

static void send_back(struct sim_life *me, void *arg)
{
    int token = me->number;
    (void)arg;
    STRAND_SHIELD;
    SIM_CHECK_EQ(strand_chan_send(world.tokens, &token), 0);
}

static void put_back(struct sim_life *me, void *arg)
{
    (void)arg;
    bool sends = sim_one_in(&me->chance, 2);
    strand_exception *e = sends ? sim_try(me, send_back, arg) : NULL;
    SIM_CHECK(!e || sim_no_memory(e));
    if (!sends || e)
        strand_semaphore_release(&world.permits);
    strand_exception_release(e);
    world.held--;
}

static void take(struct sim_life *me)
{
    int token;
    if (sim_one_in(&me->chance, 2))
        strand_semaphore_acquire(&world.permits);
    else
        SIM_CHECK_EQ(strand_chan_receive(world.tokens, &token), 0);
    world.held++;
}

/* What has a token has to give it back, whatever happens. */
static void hold(struct sim_life *me, void *arg)
{
    take(me);
    strand_exception *e = NULL;
    if (sim_one_in(&me->chance, 2)) {
        STRAND_TRY {
            strand_sleep(sim_draw(&me->chance, 4) * 5 * STRAND_US);
        }
        STRAND_CATCH(&STRAND_ANY, caught) {
            e = strand_exception_keep(caught);
        }
        STRAND_END
    }
    put_back(me, arg);
    if (e)
        strand_rethrow(e);
    world.done++;
}

/* ---- blocks ------------------------------------------------------------------------------------ */

struct block {
    strand_time outer, inner; /* inner {0}: there is none */
    bool slept;               /* in the inner one, until both had passed */
};

/* The outermost counts. A sleep whose time has come before it begins does not wait, so that timers may not have fired
 * yet: a second look sees the deadline, or a later one. */
static void sleep_past_both(struct block *block)
{
    int64_t later = block->outer.ns > block->inner.ns ? block->outer.ns : block->inner.ns;
    {
        STRAND_SHIELD;
        strand_sleep_until((strand_time){later});
    }
    block->slept = true;
    for (int i = 0; i < 1000; i++) {
        strand_checkpoint();
        STRAND_SHIELD;
        strand_sleep(50 * STRAND_US);
    }
    SIM_CHECK(!"a deadline that has passed was not seen");
}

static void work(struct sim_life *me, void *arg)
{
    switch (sim_draw(&me->chance, 4)) {
    case 0: {
        strand_time until = strand_in(sim_draw(&me->chance, 30) * STRAND_US);
        strand_sleep_until(until);
        SIM_CHECK(strand_now().ns >= until.ns);
        break;
    }
    case 1:
        for (int i = 0; i < 20; i++)
            strand_checkpoint();
        strand_yield();
        break;
    default:
        hold(me, arg);
    }
}

static void work_in_the_inner_block(struct sim_life *me, void *arg)
{
    struct block *block = arg;
    STRAND_DEADLINE(block->inner);
    if (sim_one_in(&me->chance, 6))
        sleep_past_both(block);
    work(me, arg);
}

static void work_in_the_outer_block(struct sim_life *me, void *arg)
{
    struct block *block = arg;
    STRAND_DEADLINE(block->outer);
    if (block->inner.ns) {
        strand_exception *e = sim_try(me, work_in_the_inner_block, arg);
        if (e && strand_exception_is(e, &STRAND_TIMED_OUT))
            SIM_CHECK(strand_now().ns >= block->inner.ns && !block->slept);
        if (e && strand_exception_is(e, &STRAND_INTERRUPTED) && !me->cancelled && !me->tag &&
            !sim_refuses_memory()) /* by which the root may have gone */
            SIM_CHECK(strand_now().ns >= block->outer.ns);
        sim_settle(e);
    }
    work(me, arg);
}

static void turn(struct sim_life *me)
{
    struct block block = {strand_in((1 + sim_draw(&me->chance, 40)) * STRAND_US), {0}, false};
    if (sim_one_in(&me->chance, 2))
        block.inner = strand_in((1 + sim_draw(&me->chance, 40)) * STRAND_US);
    strand_exception *e = sim_try(me, work_in_the_outer_block, &block);
    if (e && strand_exception_is(e, &STRAND_TIMED_OUT)) {
        SIM_CHECK(strand_now().ns >= block.outer.ns);
        world.timed_out++;
    }
    sim_settle(e);
    if (e && !me->tag) /* the block has been left: nothing of it is left either */
        strand_checkpoint();
}

/* Its tag says that somebody may cancel it. */
static void worker(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    for (int i = 0; i < TURNS; i++)
        turn(me);
}

static void run_workers(struct sim_life *me, void *arg)
{
    struct sim_life *workers[WORKERS];
    STRAND_SCOPE(scope);
    for (int i = 0; i < WORKERS; i++)
        workers[i] = sim_spawn_tagged(me, scope, worker, arg, sim_one_in(&me->chance, 3));
    for (int i = 0; i < WORKERS; i++) {
        strand_sleep(sim_draw(&me->chance, 20) * STRAND_US);
        if (workers[i]->tag)
            sim_cancel(workers[i], "in the middle");
    }
    for (int i = 0; i < WORKERS; i++)
        SIM_CHECK(sim_join(workers[i]) == SIM_RETURNED || workers[i]->tag || sim_refuses_memory());
}

static void root(struct sim_life *me, void *arg)
{
    int token = 0;
    STRAND_SCOPE(scope);
    world.tokens = strand_chan_open(scope, sizeof token, TOKENS, NULL);
    for (int i = 0; i < TOKENS; i++)
        if (sim_one_in(&me->chance, 2))
            strand_semaphore_release(&world.permits);
        else
            SIM_CHECK_EQ(strand_chan_try_send(world.tokens, &token), 0);
    strand_exception *e = sim_try(me, run_workers, arg);
    SIM_CHECK_EQ(world.held, 0);
    SIM_CHECK_EQ(strand_chan_length(world.tokens) + strand_semaphore_permits(&world.permits), TOKENS);
    if (e)
        strand_rethrow(e);
}

static void oracle(void)
{
    sim_observe((uint64_t)world.timed_out);
    sim_observe((uint64_t)world.done);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, deadlines, root, oracle, world);
