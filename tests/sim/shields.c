/*
 * Shields: clerks move money from account to account in steps, in a shield, while they are cancelled, while deadlines
 * around them pass and siblings fail. No sum is ever torn; inside of a shield nothing is interrupted but by a deadline
 * of its own; and at its end what came meanwhile strikes.
 */
#include "sim.h"

#include "strand/sync.h"

enum { CLERKS = 4, ACCOUNTS = 3, EACH = 100, TURNS = 3 };

static struct {
    strand_mutex locks[ACCOUNTS];
    _Atomic int money[ACCOUNTS], moved;
} world;

/* ---- inside -------------------------------------------------------------------------------------- */

static void pause_inside(struct sim_life *me)
{
    switch (sim_draw(&me->chance, 4)) {
    case 0:
        strand_yield();
        break;
    case 1:
        strand_sleep(sim_draw(&me->chance, 3) * 10 * STRAND_US);
        break;
    default:
        strand_checkpoint();
    }
}

static void move(struct sim_life *me, void *arg)
{
    uint32_t a = sim_draw(&me->chance, ACCOUNTS), b = sim_draw(&me->chance, ACCOUNTS);
    int sum = (int)sim_draw(&me->chance, 5);
    (void)arg;
    if (a == b)
        return;
    uint32_t first = a < b ? a : b, second = a < b ? b : a;
    STRAND_LOCKED(&world.locks[first]);
    STRAND_LOCKED(&world.locks[second]);
    world.money[a] -= sum;
    pause_inside(me);
    world.money[b] += sum;
    world.moved++;
}

static void wait_past_a_deadline(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 10)) * STRAND_US));
    strand_sleep(STRAND_S);
}

static void spawn_and_join(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    struct sim_life *child = sim_spawn(me, scope, move, arg);
    SIM_CHECK_EQ(sim_join(child), SIM_RETURNED);
}

static void check_nothing_is_thrown(struct sim_life *const *me)
{
    (void)me;
    SIM_CHECK(!strand_unwinding());
}

/* A deadline inside of the shield counts, and a shield in the shield changes nothing when it is left. Nothing is thrown
 * out of it. */
static void work(struct sim_life *me, void *arg)
{
    struct sim_life *left __attribute__((cleanup(check_nothing_is_thrown), unused)) = me;
    STRAND_SHIELD;
    for (uint32_t n = sim_draw(&me->chance, 3); n > 0; n--)
        move(me, arg);
    if (sim_one_in(&me->chance, 4)) {
        strand_exception *e = sim_try(me, wait_past_a_deadline, arg);
        SIM_CHECK(e && strand_exception_kind(e) == &STRAND_TIMED_OUT);
        strand_exception_release(e);
    }
    if (sim_one_in(&me->chance, 4)) {
        STRAND_SHIELD;
        move(me, arg);
    }
    if (sim_one_in(&me->chance, 4))
        spawn_and_join(me, arg);
    strand_checkpoint();
}

/* ---- outside ------------------------------------------------------------------------------------- */

/* The shield defers, and no more than that. A try block would put the state back, too: there is none. */
static void turn(struct sim_life *me, void *arg)
{
    work(me, arg);
    bool was_cancelled = me->cancelled;
    strand_checkpoint();
    SIM_CHECK(!was_cancelled);
}

static void turn_in_a_deadline(struct sim_life *me, void *arg)
{
    strand_time until = strand_in(sim_draw(&me->chance, 60) * STRAND_US);
    STRAND_DEADLINE(until);
    turn(me, arg);
    SIM_CHECK(strand_now().ns < until.ns + STRAND_S);
}

static void clerk(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    for (int i = 0; i < TURNS; i++) {
        if (sim_one_in(&me->chance, 8))
            sim_fail(me);
        if (sim_one_in(&me->chance, 2))
            turn(me, arg);
        else
            strand_exception_release(sim_try(me, turn_in_a_deadline, arg));
    }
}

/* Its own shield defers the failures of its clerks, too. */
static void office(struct sim_life *me, void *arg)
{
    struct sim_life *clerks[CLERKS];
    STRAND_SCOPE_WITH(scope, sim_one_in(&me->chance, 2) ? STRAND_TOGETHER : 0);
    for (int i = 0; i < CLERKS; i++)
        clerks[i] = sim_spawn(me, scope, clerk, arg);
    for (uint32_t n = sim_draw(&me->chance, 4); n > 0; n--) {
        STRAND_SHIELD;
        strand_sleep(sim_draw(&me->chance, 30) * STRAND_US);
        sim_cancel(clerks[sim_draw(&me->chance, CLERKS)], "in the middle of it");
    }
    strand_scope_join(scope);
}

static void root(struct sim_life *me, void *arg)
{
    for (int i = 0; i < ACCOUNTS; i++)
        world.money[i] = EACH;
    strand_exception_release(sim_try(me, office, arg));
}

static void oracle(void)
{
    int sum = 0;
    for (int i = 0; i < ACCOUNTS; i++)
        sum += world.money[i];
    SIM_CHECK_EQ(sum, ACCOUNTS * EACH);
    sim_observe((uint64_t)world.moved);
}

SIM_WORKLOAD(shields, root, oracle, world);
