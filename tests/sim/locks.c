/*
 * Locks and their friends with waiters that die: some strands wait for ever for what they want, others are cancelled,
 * or run out of time, while they wait, or throw while they hold it. Nobody is let in beside a writer; all permits are
 * back at the end; and those who wait for ever get it, because nothing that is given is lost on one who died: else the
 * run ends as a deadlock.
 */
#include "sim.h"

#include "strand/limit.h"
#include "strand/sync.h"

#include <errno.h>

enum { STRANDS = 8, TURNS = 3, PERMITS = 2, MANY = 3, COMPANY = 3, LIMIT = 2, LOOKS = 2000 };

static struct {
    strand_mutex mutex;
    strand_condition condition;
    strand_rwlock rwlock, read_lock;  /* read_lock: the root is a reader of it all the time */
    strand_semaphore semaphore, many; /* many: the root has one all the time */
    strand_barrier barrier;
    strand_once once;
    strand_event event;
    strand_group group;
    strand_latch latch;
    strand_prio_semaphore prio;
    strand_limit limit, other_limit;
    int guarded; /* by the mutex: not atomic */
    int stock;   /* what the condition is about */
    _Atomic int readers, writers, in_semaphore, in_many, in_prio, in_limit, barrier_rounds, barrier_returns, once_runs,
        once_done, wanted, made, used, over, pruned, got;
} world;

/* Some of those who die do it by themselves. */
static bool mortal(const struct sim_life *me)
{
    return me->tag;
}

static void linger(struct sim_life *me)
{
    if (mortal(me) && sim_one_in(&me->chance, 8))
        sim_fail(me);
    if (sim_one_in(&me->chance, 2))
        strand_sleep(sim_draw(&me->chance, 3) * 10 * STRAND_US);
    else
        strand_yield();
}

static void leave(_Atomic int *const *counter)
{
    --**counter;
}
/* In for the rest of the block, among so many at most. */
#define IN(counter, most)                                                                                              \
    SIM_CHECK(++(counter) <= (most));                                                                                  \
    _Atomic int *const inside __attribute__((cleanup(leave), unused)) = &(counter)

/* ---- ways to wait ---------------------------------------------------------------------------------- */

static void lock(struct sim_life *me)
{
    bool tries = sim_one_in(&me->chance, 4);
    if (tries && strand_mutex_try_lock(&world.mutex))
        return;
    if (tries)
        strand_mutex_unlock(&world.mutex);
    STRAND_LOCKED(&world.mutex);
    int seen = ++world.guarded;
    linger(me);
    SIM_CHECK_EQ(world.guarded, seen);
    SIM_CHECK(strand_mutex_held(&world.mutex));
}

static void take_from_the_stock(void)
{
    while (!world.stock)
        strand_condition_wait(&world.condition, &world.mutex);
    SIM_CHECK(strand_mutex_held(&world.mutex));
    world.stock--;
    world.used++;
}

/* Takes one from the stock. A strand with a deadline puts it back; for one without, the maker adds one. */
static void use(struct sim_life *me)
{
    if (!mortal(me)) {
        STRAND_LOCKED(&world.mutex);
        world.wanted++;
        take_from_the_stock();
    } else {
        STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 60)) * STRAND_US));
        STRAND_LOCKED(&world.mutex);
        take_from_the_stock();
        world.stock++;
        world.used--;
        strand_condition_signal(&world.condition);
    }
}

static void make_one(struct sim_life *me)
{
    STRAND_LOCKED(&world.mutex);
    if (world.made == world.wanted)
        return;
    world.stock++;
    world.made++;
    if (sim_one_in(&me->chance, 8))
        strand_condition_broadcast(&world.condition);
    else
        strand_condition_signal(&world.condition);
}

/* Makes as many as are wanted for ever, and no more. */
static void maker(struct sim_life *me, void *arg)
{
    (void)arg;
    for (int i = 0; i < LOOKS && !world.over; i++) {
        strand_sleep(sim_draw(&me->chance, 20) * STRAND_US);
        make_one(me);
    }
    SIM_CHECK(world.over);
}

static void read(struct sim_life *me)
{
    STRAND_READ_LOCKED(&world.rwlock);
    IN(world.readers, STRANDS);
    SIM_CHECK_EQ(world.writers, 0);
    linger(me);
    SIM_CHECK_EQ(world.writers, 0);
}

static void write(struct sim_life *me)
{
    STRAND_WRITE_LOCKED(&world.rwlock);
    IN(world.writers, 1);
    SIM_CHECK_EQ(world.readers, 0);
    linger(me);
    SIM_CHECK_EQ(world.readers, 0);
}

/* Reads behind a writer that runs out of time while it waits. */
static void read_with_the_root(struct sim_life *me)
{
    if (mortal(me)) {
        STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 30)) * STRAND_US));
        STRAND_WRITE_LOCKED(&world.read_lock);
        SIM_CHECK(!"a writer was let in beside a reader");
    }
    STRAND_READ_LOCKED(&world.read_lock);
    linger(me);
}

static void have_a_permit(struct sim_life *me)
{
    STRAND_PERMIT(&world.semaphore);
    IN(world.in_semaphore, PERMITS);
    linger(me);
}

static void give_back(uint32_t *n)
{
    world.in_many -= (int)*n;
    strand_semaphore_release_many(&world.many, *n);
}

/* A strand with a deadline may want all permits, which it never gets; meanwhile those behind it wait. */
static void have_many_permits(struct sim_life *me)
{
    uint32_t wanted = 1 + sim_draw(&me->chance, MANY - !mortal(me));
    STRAND_DEADLINE(mortal(me) ? strand_in((1 + sim_draw(&me->chance, 40)) * STRAND_US) : (strand_time){0});
    strand_semaphore_acquire_many(&world.many, wanted);
    uint32_t taken __attribute__((cleanup(give_back))) = wanted;
    world.in_many += (int)taken;
    SIM_CHECK(world.in_many < MANY);
    linger(me);
}

/* A few turn up often enough only together with those who die. */
static void come_to_the_barrier(struct sim_life *me)
{
    STRAND_DEADLINE(strand_in((1 + sim_draw(&me->chance, 60)) * STRAND_US));
    bool last = strand_barrier_wait(&world.barrier);
    world.barrier_returns++;
    world.barrier_rounds += last;
}

static void *do_it_once(void *life)
{
    struct sim_life *me = life;
    world.once_runs++;
    linger(me);
    if (sim_one_in(&me->chance, 3) && mortal(me))
        sim_fail(me);
    SIM_CHECK_EQ(world.once_done++, 0);
    return &world.once;
}

static void want_it_done(struct sim_life *me)
{
    SIM_CHECK(strand_once_run(&world.once, do_it_once, me) == &world.once);
    SIM_CHECK_EQ(world.once_done, 1);
    SIM_CHECK(strand_once_done(&world.once));
}

static void wait_for_the_others(struct sim_life *me)
{
    strand_case cases[2] = {strand_on_event(&world.event), strand_on_latch(&world.latch)};
    if (sim_one_in(&me->chance, 2))
        strand_event_set(&world.event);
    if (sim_one_in(&me->chance, 2))
        strand_event_wait(&world.event);
    else
        strand_select(cases, 2, 0);
}

static void have_priority(struct sim_life *me)
{
    STRAND_PRIO_PERMIT(&world.prio, me);
    IN(world.in_prio, PERMITS);
    SIM_CHECK(strand_prio_in_flight(&world.prio) <= PERMITS);
    linger(me);
}

static void be_limited(struct sim_life *me)
{
    STRAND_LIMIT(&world.limit);
    if (sim_one_in(&me->chance, 2)) {
        STRAND_LIMIT(&world.other_limit);
        STRAND_WITHIN_LIMITS;
        IN(world.in_limit, LIMIT);
        linger(me);
    } else {
        STRAND_WITHIN_LIMITS;
        IN(world.in_limit, LIMIT);
        linger(me);
    }
}

/* ---- the strands ------------------------------------------------------------------------------------ */

static void turn(struct sim_life *me, void *arg)
{
    static void (*const ways[])(struct sim_life *) = {lock,
                                                      use,
                                                      read,
                                                      write,
                                                      read_with_the_root,
                                                      have_a_permit,
                                                      have_many_permits,
                                                      come_to_the_barrier,
                                                      want_it_done,
                                                      wait_for_the_others,
                                                      have_priority,
                                                      be_limited};
    (void)arg;
    ways[sim_draw(&me->chance, sizeof ways / sizeof *ways)](me);
    world.got++;
}

static void turn_in_a_deadline(struct sim_life *me, void *arg)
{
    STRAND_DEADLINE(strand_in(sim_draw(&me->chance, 60) * STRAND_US));
    turn(me, arg);
}

static void be_done(struct sim_life *const *me)
{
    (void)me;
    strand_group_done(&world.group);
    strand_latch_count_down(&world.latch, 1);
}

static void live(struct sim_life *me, void *arg)
{
    struct sim_life *ending __attribute__((cleanup(be_done), unused)) = me;
    SIM_CLEANUP(me);
    for (int i = 0; i < TURNS; i++) {
        strand_exception *e = sim_try(me, mortal(me) && sim_one_in(&me->chance, 2) ? turn_in_a_deadline : turn, arg);
        SIM_CHECK(!e || mortal(me) || strand_exception_is(e, &STRAND_TIMED_OUT) ||
                  strand_exception_is(e, &STRAND_INTERRUPTED) || /* it was pruned */
                  sim_no_memory(e));
        sim_settle(e);
    }
}

static int64_t by_number(const void *life, void *arg)
{
    (void)arg;
    return ((const struct sim_life *)life)->number % 3;
}

static void make_world(void)
{
    world.semaphore = (strand_semaphore)STRAND_SEMAPHORE_INIT(PERMITS);
    world.many = (strand_semaphore)STRAND_SEMAPHORE_INIT_BOUNDED(MANY, MANY);
    world.barrier = (strand_barrier)STRAND_BARRIER_INIT(COMPANY);
    world.latch = (strand_latch)STRAND_LATCH_INIT(STRANDS);
    strand_prio_options options = {.size = sizeof options, .permits = PERMITS, .priority = by_number};
    strand_prio_init(&world.prio, &options);
    strand_limit_init(&world.limit, LIMIT, NULL);
    strand_limit_init(&world.other_limit, 1, NULL); /* is taken after the other one, which its waiters hold */
    strand_group_add(&world.group, STRANDS);
    strand_semaphore_acquire(&world.many);
    strand_rwlock_read(&world.read_lock);
}

/* Nothing is held any more. */
static void check_world(void)
{
    SIM_CHECK_EQ(strand_mutex_try_lock(&world.mutex), 0);
    strand_mutex_unlock(&world.mutex);
    SIM_CHECK_EQ(strand_rwlock_try_write(&world.rwlock), 0);
    strand_rwlock_write_done(&world.rwlock);
    SIM_CHECK_EQ(strand_semaphore_permits(&world.semaphore), PERMITS);
    SIM_CHECK_EQ(strand_semaphore_permits(&world.many), MANY - 1);
    strand_rwlock_read_done(&world.read_lock);
    SIM_CHECK_EQ(strand_rwlock_try_write(&world.read_lock), 0);
    strand_rwlock_write_done(&world.read_lock);
    SIM_CHECK_EQ(world.made, world.used + world.stock);
    SIM_CHECK_EQ(world.barrier_returns, world.barrier_rounds * COMPANY);
    SIM_CHECK_EQ(strand_once_done(&world.once), world.once_done);
    SIM_CHECK_EQ(strand_prio_in_flight(&world.prio), 0);
    SIM_CHECK_EQ(strand_prio_waiting(&world.prio), 0);
    SIM_CHECK_EQ(strand_limit_in_flight(&world.limit), 0);
    SIM_CHECK_EQ(strand_limit_in_flight(&world.other_limit), 0);
    SIM_CHECK(strand_group_count(&world.group) == 0 ||
              sim_refuses_memory()); /* a strand that could not start is not done */
}

static void join_one(struct sim_life *me, void *one)
{
    (void)me;
    sim_take(strand_join(((struct sim_life *)one)->handle));
}

/* Only pruned strands end as pruned. A strand that waits without a limit ends only by its return. */
static void join_all(struct sim_life *me, struct sim_life **strands)
{
    for (int i = 0; i < STRANDS; i++) {
        strand_exception *e = sim_try(me, join_one, strands[i]);
        bool is_pruned = e && strand_exception_kind(e) == &STRAND_PRUNED;
        world.pruned -= is_pruned;
        SIM_CHECK(!e || mortal(strands[i]) || is_pruned);
        strand_exception_release(e);
    }
    SIM_CHECK_EQ(world.pruned, 0);
}

/* Some strands may be cancelled, and those that wait for a permit may be pruned. The event is set for strands that
 * still wait for it. */
static void play(struct sim_life *me, void *arg)
{
    struct sim_life *strands[STRANDS];
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    struct sim_life *makes = sim_spawn(me, scope, maker, arg);
    for (int i = 0; i < STRANDS; i++)
        strands[i] = sim_spawn_tagged(me, scope, live, arg, i % 2);
    for (uint32_t n = sim_draw(&me->chance, STRANDS); n > 0; n--) {
        strand_sleep(sim_draw(&me->chance, 30) * STRAND_US);
        struct sim_life *one = strands[sim_draw(&me->chance, STRANDS)];
        if (mortal(one))
            sim_cancel(one, "while it waits");
        if (sim_one_in(&me->chance, 4))
            world.pruned += (int)strand_prio_prune(&world.prio, sim_draw(&me->chance, 2), "too many");
    }
    strand_event_set(&world.event);
    if (sim_refuses_memory()) { /* the maker or a holder of a permit may have ended, so no waiter is sure to get one
                                 */
        strand_sleep(sim_draw(&me->chance, 200) * STRAND_US);
        strand_scope_cancel(scope, "it is over");
        return;
    }
    strand_group_wait(&world.group);
    strand_latch_wait(&world.latch);
    world.over = 1;
    SIM_CHECK_EQ(sim_join(makes), SIM_RETURNED);
    join_all(me, strands);
}

static void root(struct sim_life *me, void *arg)
{
    make_world();
    strand_exception *e = sim_try(me, play, arg);
    SIM_CHECK(!e || sim_refuses_memory());
    check_world();
    if (sim_no_memory(e))
        strand_rethrow(e);
    strand_exception_release(e);
}

static void oracle(void)
{
    sim_observe((uint64_t)world.got << 16 | (uint64_t)world.once_runs << 8 | (uint64_t)world.barrier_rounds);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, locks, root, oracle, world);
