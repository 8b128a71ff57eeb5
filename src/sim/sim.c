/*
 * The second driver. One thread of the operating system plays all threads of a pool: each has a context of its own, and
 * control comes back here at every suspension, sleep and spin. A seeded generator chooses who goes on; time is virtual,
 * passes a little with every step, and jumps to the next timer when everybody sleeps. Only sequentially consistent
 * orders are explored, at the granularity of suspensions.
 */
#include "../sched/driver.h"
#include "../sched/pool.h"
#include "../sched/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum state { READY, RELAXED, SLEEPING, DONE };
/* A step takes between STEP_NS and STEP_NS << STEP_SHIFTS of virtual time: few are long. */
enum { LOOP_STACK = 512 * 1024, STEP_NS = 64, STEP_SHIFTS = 11 };

struct played {
    struct thread *thread;
    void *(*fn)(void *);
    arch_context context;
    void *stack;
    struct arch_note note;
    enum state state;
    bool woken;
    int64_t deadline;
};

struct sim {
    struct subprocess *sub;
    uint64_t seed, hash, steps;
    struct rng rng;
    int64_t now;
    struct played *played;
    int count, room;
    arch_context director; /* the thread that plays */
    struct arch_note director_note;
};

static struct sim *sim_of(struct subprocess *sub)
{
    return sub->driver_state;
}

static void fold(struct sim *sim, uint64_t what)
{
    sim->hash = (sim->hash ^ what) * UINT64_C(0x100000001b3); /* FNV-1a, a word at a time */
}

/* ---- the played threads' side ---------------------------------------------------------------------------- */

/* Back to the director, in this state; returns when it has chosen this thread again. */
static void give_way(struct thread *thread, enum state state)
{
    struct sim *sim = sim_of(thread->sub);
    struct played *me = thread->simulated;
    struct arch_note *here = thread->here;
    struct arch_cxx cxx = thread->cxx ? *thread->cxx : (struct arch_cxx){0}; /* one state for all the played threads */
    me->state = state;
    arch_note_release(thread->sub);
    arch_note_leave(here, &sim->director_note, false);
    struct arch_transfer transfer = arch_context_jump(sim->director, NULL);
    arch_note_arrive(here);
    sim->director = transfer.from;
    if (thread->cxx)
        *thread->cxx = cxx;
}

static int64_t now(struct subprocess *sub)
{
    return sim_of(sub)->now;
}

static void point(struct thread *thread)
{
    give_way(thread, READY);
}

static void relax(struct thread *thread)
{
    give_way(thread, RELAXED);
}

static void sleep_until(struct thread *thread, int64_t deadline)
{
    struct played *me = thread->simulated;
    me->deadline = deadline;
    if (!me->woken)
        give_way(thread, SLEEPING);
    me->woken = false;
}

static void wake(struct thread *thread)
{
    struct played *other = thread->simulated;
    other->woken = true;
}

static uint32_t choose(struct thread *thread, uint32_t n)
{
    struct sim *sim = sim_of(thread->sub);
    uint32_t chosen = rng_below(&sim->rng, n);
    fold(sim, chosen);
    return chosen;
}

static void first_step(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    struct played *me = transfer.data;
    struct sim *sim = sim_of(me->thread->sub);
    arch_note_arrive(&me->thread->loop_note);
    sim->director = transfer.from;
    me->fn(me->thread);
    give_way(me->thread, DONE);
    UNREACHABLE();
}

static int start(struct thread *thread, void *(*fn)(void *))
{
    struct sim *sim = sim_of(thread->sub);
    if (sim->count == sim->room) {
        int room = sim->room ? sim->room * 2 : 8;
        struct played *more = realloc(sim->played, (size_t)room * sizeof *more);
        if (!more)
            return -ENOMEM;
        sim->played = more;
        sim->room = room;
    }
    struct played *me = &sim->played[sim->count];
    *me = (struct played){.thread = thread, .fn = fn};
    int error = arch_map(LOOP_STACK, &me->stack);
    if (error)
        return error;
    arch_note_make(&thread->loop_note, me->stack, LOOP_STACK);
    me->context = arch_context_make((char *)me->stack + LOOP_STACK, LOOP_STACK, first_step);
    thread->here = &thread->loop_note;
    sim->count++;
    return 0;
}

/* ---- the director ---------------------------------------------------------------------------------------- */

static bool can_go_on(const struct sim *sim, const struct played *p, bool relaxed_too)
{
    return p->state == READY || (p->state == SLEEPING && (p->woken || p->deadline <= sim->now)) ||
           (relaxed_too && p->state == RELAXED);
}

/* One of those that can go on, by the seed; NULL if all sleep. Spinning threads go on only when nobody else can. */
static struct played *choose_next(struct sim *sim)
{
    for (int relaxed_too = 0; relaxed_too < 2; relaxed_too++) {
        uint32_t able = 0;
        for (int i = 0; i < sim->count; i++)
            able += can_go_on(sim, &sim->played[i], relaxed_too);
        if (!able)
            continue;
        uint32_t skip = rng_below(&sim->rng, able);
        for (int i = 0; i < sim->count; i++)
            if (can_go_on(sim, &sim->played[i], relaxed_too) && !skip--)
                return &sim->played[i];
    }
    return NULL;
}

/* Everybody sleeps: time jumps to whoever wakes first. */
static struct played *jump_ahead(struct sim *sim)
{
    struct played *first = NULL;
    for (int i = 0; i < sim->count; i++) {
        struct played *p = &sim->played[i];
        if (p->state == SLEEPING && p->deadline != ARCH_FOREVER && (!first || p->deadline < first->deadline))
            first = p;
    }
    if (first && first->deadline > sim->now) {
        if (sim->sub->outside) /* which is not made to wait for longer than it is waited for */
            arch_nap(first->deadline - sim->now);
        sim->now = first->deadline;
    }
    return first;
}

static bool all_done(const struct sim *sim)
{
    for (int i = 0; i < sim->count; i++)
        if (sim->played[i].state != DONE)
            return false;
    return true;
}

__attribute__((noreturn)) static void stuck(const struct sim *sim)
{
    char text[160];
    int length =
        snprintf(text, sizeof text, "libstrand: seed %llu: deadlock after %llu steps: nothing can ever run again\n",
                 (unsigned long long)sim->seed, (unsigned long long)sim->steps);
    arch_write(2, text, (size_t)length);
    abort();
}

/* Let everybody else that spins go on when its turn comes again. */
static void settle(struct sim *sim, const struct played *but)
{
    for (int i = 0; i < sim->count; i++)
        if (sim->played[i].state == RELAXED && &sim->played[i] != but)
            sim->played[i].state = READY;
}

static void play(struct subprocess *sub, struct thread *first)
{
    struct sim *sim = sim_of(sub);
    (void)first;
    arch_note_thread(&sim->director_note);
    for (int i = 0; i < sim->count; i++)
        sim->played[i].thread->simulated = &sim->played[i];
    while (!all_done(sim)) {
        struct played *next = choose_next(sim);
        if (!next && !(next = jump_ahead(sim)))
            stuck(sim);
        fold(sim, (uint64_t)next->thread->index);
        sim->steps++;
        sim->now += (int64_t)STEP_NS << rng_below(&sim->rng, STEP_SHIFTS);
        next->state = READY;
        thread_adopt(next->thread);
        arch_note_leave(&sim->director_note, next->thread->here, false);
        struct arch_transfer transfer = arch_context_jump(next->context, next);
        arch_note_arrive(&sim->director_note);
        next->context = transfer.from;
        settle(sim, next);
    }
    thread_adopt(NULL);
}

static const struct driver driver = {now, point, relax, sleep_until, wake, choose, start, play};

int driver_second_open(struct subprocess *sub, uint64_t seed)
{
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return -ENOMEM;
    sim->sub = sub;
    sim->seed = seed;
    sim->hash = UINT64_C(0xcbf29ce484222325);
    sim->rng.state = seed * UINT64_C(0xD1342543DE82EF95) + 1;
    sim->now = INT64_C(1000000000);
    sub->driver = &driver;
    sub->driver_state = sim;
    return 0;
}

void driver_second_close(struct subprocess *sub)
{
    struct sim *sim = sim_of(sub);
    if (!sim)
        return;
    if (!arch_env("STRAND_QUIET")) {
        char text[160];
        int length =
            snprintf(text, sizeof text, "libstrand: seed %llu, schedule %016llx, %llu steps\n",
                     (unsigned long long)sim->seed, (unsigned long long)sim->hash, (unsigned long long)sim->steps);
        arch_write(2, text, (size_t)length);
    }
    for (int i = 0; i < sim->count; i++)
        arch_unmap(sim->played[i].stack, LOOP_STACK);
    free(sim->played);
    free(sim);
    sub->driver = NULL;
    sub->driver_state = NULL;
}
