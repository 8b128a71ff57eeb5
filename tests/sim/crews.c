/*
 * Crews, and calls of every kind on them, by strands that are cancelled or run out of time at about the time when the
 * function begins or returns; crews that shrink at once, that have no queue, and that end while unrelated strands are
 * in them. The function of a call runs at most once. Either it has run and the caller gets its result; or the caller
 * throws, a result is dropped, and the arguments are released once. A caller that is not interrupted is not forgotten;
 * otherwise the run reports a deadlock.
 */
#include "sim.h"

#include "strand/io.h"
#include "strand/sim.h"

#include <errno.h>

enum { CREWS = 3, CALLERS = 6, TURNS = 3, OWNERS = 2, CALLS = 64 };

/* What the function works on. */
struct args {
    struct call *call;
    uint64_t guard, answer;
    int64_t ns; /* how long it takes; FOR_EVER: until `stopped` is set */
    _Atomic bool stopped;
};
#define FOR_EVER (3600 * STRAND_S)

static struct {
    strand_crew crews[CREWS]; /* the first is the run's own */
    _Atomic int count;        /* of calls */
    struct call {
        struct args args; /* of one that borrows them */
        bool over, taken, borrows;
        _Atomic int ran, dropped, released, stopped;
    } calls[CALLS];
    strand_crew own[OWNERS], lent;
    _Atomic int refused, opened;
} world;

static uint64_t guard_of(const struct call *call)
{
    return (uint64_t)(call - world.calls) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static struct call *call_of(const struct args *args)
{
    SIM_CHECK(args->guard == guard_of(args->call));
    return args->call;
}

/* ---- what a call calls ----------------------------------------------------------------------------------- */

static void *work(void *arg)
{
    struct args *args = arg;
    struct call *call = call_of(args);
    SIM_CHECK_EQ(call->ran++, 0);
    if (args->ns < FOR_EVER)
        strand_sim_sleep(args->ns);
    else
        while (!args->stopped)
            strand_sim_sleep(10 * STRAND_US);
    SIM_CHECK(call_of(args) == call);
    args->answer = ~args->guard;
    return call;
}

static void drop(void *result)
{
    struct call *call = result;
    SIM_CHECK_EQ(call->ran, 1);
    SIM_CHECK_EQ(call->released, 0);
    SIM_CHECK_EQ(call->dropped++, 0);
}

static void release(void *arg)
{
    SIM_CHECK_EQ(call_of(arg)->released++, 0);
}

static void stop(void *arg)
{
    struct call *call = call_of(arg);
    SIM_CHECK_EQ(call->released, 0);
    SIM_CHECK_EQ(call->stopped++, 0);
    ((struct args *)arg)->stopped = true;
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

struct plan {
    struct call *call;
    strand_crew crew;
    bool copies, stops;
    int64_t ns;
};

static void make_call(struct sim_life *me, void *arg)
{
    struct plan *plan = arg;
    struct args args = {.call = plan->call, .guard = guard_of(plan->call), .ns = plan->ns};
    (void)me;
    if (!plan->copies) {
        plan->call->args = args;
        SIM_CHECK(strand_offload_on(plan->crew, work, &plan->call->args) == plan->call);
        return;
    }
    const strand_offload_attr *attr =
        STRAND_OFFLOAD_ATTR(.crew = plan->crew, .answer = &args, .release = release, .drop = drop,
                            .stop = plan->stops ? stop : NULL, .borrows = plan->call->borrows);
    SIM_CHECK(strand_offload_with(attr, work, &args, sizeof args) == plan->call);
    SIM_CHECK(args.answer == ~args.guard);
}

/* It throws without having been interrupted: nobody may wait there, or the crew has ended, or there is no memory. */
static void must_be_refused(strand_exception *e)
{
    int code = strand_exception_code(e);
    SIM_CHECK(code == -ENOBUFS || code == -ECANCELED || (code == -ENOMEM && sim_refuses_memory()));
    strand_exception_release(e);
    world.refused++;
}

/* One call; an interruption goes on. */
static void call(struct sim_life *me, strand_crew crew, bool mortal)
{
    int number = world.count++;
    SIM_CHECK(number < CALLS);
    struct plan plan = {.call = &world.calls[number], .crew = crew};
    plan.copies = sim_one_in(&me->chance, 2); /* then the next: an initializer has no order */
    plan.stops = sim_one_in(&me->chance, 2);
    plan.call->borrows = !plan.copies || sim_one_in(&me->chance, 4);
    plan.ns = sim_draw(&me->chance, 8) * 3 * STRAND_US;
    if (mortal && plan.copies && plan.stops && sim_one_in(&me->chance, 2))
        plan.ns = FOR_EVER;
    strand_exception *e = sim_try(me, make_call, &plan);
    plan.call->taken = !e;
    plan.call->over = true;
    if (e && strand_exception_is(e, &STRAND_SYSTEM))
        must_be_refused(e);
    else
        sim_settle(e);
}

static void check_info(strand_crew crew)
{
    strand_crew_info info = {.size = sizeof info};
    strand_crew_info_get(crew, &info);
    SIM_CHECK(info.threads <= info.max_threads);
    SIM_CHECK_EQ(info.idle + info.running, info.threads);
}

static strand_crew open_crew(struct sim_life *me, strand_scope scope)
{
    static const int64_t idle[] = {0, -1, 1, 100, 5 * STRAND_US, 50 * STRAND_US};
    int threads = 1 + (int)sim_draw(&me->chance, 3);
    size_t waiting = sim_one_in(&me->chance, 2) ? 0 : 1 + sim_draw(&me->chance, 2);
    int64_t idle_ns = idle[sim_draw(&me->chance, sizeof idle / sizeof *idle)];
    return strand_crew_open(scope,
                            STRAND_CREW_ATTR(.max_threads = threads, .idle_ns = idle_ns, .max_waiting = waiting));
}

/* ---- callers --------------------------------------------------------------------------------------------- */

static void pause(struct sim_life *me)
{
    if (sim_one_in(&me->chance, 2))
        strand_sleep(sim_draw(&me->chance, 8) * STRAND_US);
    else
        strand_yield();
}

static void call_some(struct sim_life *me, bool mortal)
{
    strand_crew crew = world.crews[sim_draw(&me->chance, CREWS)];
    call(me, crew, mortal);
    check_info(crew);
}

static void call_in_time(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_DEADLINE(strand_in(sim_draw(&me->chance, 20) * STRAND_US));
    call_some(me, true);
}

static void caller(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    for (int i = 0; i < TURNS; i++) {
        if (sim_one_in(&me->chance, 3))
            sim_settle(sim_try(me, call_in_time, arg));
        else
            call_some(me, false);
        if (sim_one_in(&me->chance, 3))
            pause(me);
    }
}

static void canceller(struct sim_life *me, void *victim)
{
    pause(me);
    sim_cancel(victim, "in the middle of a call");
}

/* ---- crews that end -------------------------------------------------------------------------------------- */

static void guest(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    call(me, world.own[me->tag], false);
}

/* Leaves its crew while calls that were left run there. */
static void owner(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    STRAND_SCOPE(scope);
    world.own[me->tag] = open_crew(me, scope);
    for (uint32_t i = 1 + sim_draw(&me->chance, 3); i > 0; i--)
        sim_spawn_tagged(me, scope, guest, arg, me->tag);
    pause(me);
    if (sim_one_in(&me->chance, 2))
        strand_scope_cancel(scope, "the crew ends");
    strand_scope_join(scope);
}

/* Of no scope that the crew knows: is in a call there, or was, when the crew ends. */
static void unrelated(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    while (!world.opened)
        pause(me);
    call(me, world.lent, false);
}

static void lender(struct sim_life *me, void *borrower)
{
    strand other = ((struct sim_life *)borrower)->handle;
    SIM_CLEANUP(me);
    strand_crew_info info = {.size = sizeof info};
    STRAND_SCOPE(scope);
    world.lent = open_crew(me, scope);
    STRAND_SHIELD; /* the unrelated strand counts on it */
    world.opened = 1;
    while (!strand_ended(other) && info.running + info.waiting == 0) {
        strand_yield();
        strand_crew_info_get(world.lent, &info);
    }
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

static void root(struct sim_life *me, void *arg)
{
    struct sim_life *lives[2 * CALLERS + OWNERS + 4];
    int count = 0;
    STRAND_SCOPE(crews);
    STRAND_SCOPE(scope);
    for (int i = 1; i < CREWS; i++)
        world.crews[i] = open_crew(me, crews);
    for (int i = 0; i < CALLERS; i++) {
        struct sim_life *life = lives[count++] = sim_spawn(me, scope, caller, arg);
        if (sim_one_in(&me->chance, 2))
            lives[count++] = sim_spawn(me, scope, canceller, life);
    }
    for (int i = 0; i < OWNERS; i++)
        lives[count++] = sim_spawn_tagged(me, scope, owner, arg, i);
    struct sim_life *life = lives[count++] = sim_spawn(me, scope, unrelated, arg);
    lives[count++] = sim_spawn(me, scope, lender, life);
    if (sim_one_in(&me->chance, 2))
        lives[count++] = sim_spawn(me, scope, canceller, life);
    while (count)
        sim_join(lives[--count]);
}

/* What was left has returned, too: the end of the run has waited for it. */
static void check(const struct call *call)
{
    SIM_CHECK(call->over);
    if (call->taken)
        SIM_CHECK(call->ran == 1 && !call->dropped && !call->released);
    else if (call->borrows)
        SIM_CHECK(!call->ran && !call->dropped);
    else
        SIM_CHECK(call->released == 1 && call->dropped == call->ran);
    SIM_CHECK(call->stopped <= call->ran);
}

static void oracle(void)
{
    for (int i = 0; i < world.count; i++) {
        check(&world.calls[i]);
        sim_observe((uint64_t)(world.calls[i].ran << 2 | world.calls[i].taken << 1 | world.calls[i].dropped));
    }
    sim_observe((uint64_t)world.refused);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, crews, root, oracle, world);
