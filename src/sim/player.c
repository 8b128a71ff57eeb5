/*
 * Simulated threads: each has a stack and a context of its own, and one of them runs at a time. A thread that yields
 * passes control to the next one directly. The director, which is the caller, gets control back when no thread can go
 * on, or everything that it waits for has happened.
 */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>

enum { LOOP_STACK = 512 * 1024, PLAIN_STACK = 8 << 20, STAGE_STACKS = 8 };
/* A step takes between STEP_NS and STEP_NS << STEP_SHIFTS of virtual time: few are long. Steps between operations, and
 * atomic steps, are shorter. */
enum { STEP_NS = 64, SHORT_STEP_NS = 1, STEP_SHIFTS = 11 };

/* Resources that one run leaves to the next: stacks of threads, whose pages are mapped already. */
struct stage {
    void *stacks[STAGE_STACKS]; /* of LOOP_STACK bytes */
    int count;
};

struct stage *stage_make(void)
{
    return calloc(1, sizeof(struct stage));
}

void stage_free(struct stage *stage)
{
    for (int i = 0; stage && i < stage->count; i++)
        arch_unmap(stage->stacks[i], LOOP_STACK);
    free(stage);
}

/* ---- passing control ------------------------------------------------------------------------------------- */

static struct arch_san *san_of(struct played *played)
{
    return played->thread ? played->thread->here : &played->san;
}

/* Record a step for the report. Threads that spin together take one line each. */
static void record_step(struct sim *sim, const struct played *next)
{
    for (uint32_t i = 1; next->switch_point == POINT_SPIN && i <= sim->recorded && i < LAST_STEPS; i++) {
        struct step *last = &sim->last[(sim->recorded - i) % LAST_STEPS];
        if (last->switch_point != POINT_SPIN)
            break;
        if (last->who == next->index) {
            last->again++;
            return;
        }
    }
    struct step *step = &sim->last[sim->recorded++ % LAST_STEPS];
    *step =
        (struct step){.number = sim->steps, .now = sim->now, .who = next->index, .switch_point = next->switch_point};
    step->where = next->where;
    if (next->thread && next->thread->current)
        report_strand(step, next->thread->current);
}

static void begin_step(struct sim *sim, struct played *next)
{
    sim->steps++;
    record_step(sim, next);
    bool is_short = sim->atomic_steps || next->switch_point == POINT_OPERATION;
    int64_t least = is_short ? SHORT_STEP_NS : STEP_NS;
    sim->now += least << rng_below(&sim->order.rng, STEP_SHIFTS);
    sim_fold(sim, next->index);
    sim_fold(sim, (uint64_t)sim->now);
    if (UNLIKELY(sim->options.max_steps && sim->steps > sim->options.max_steps))
        report_fail(sim, "it takes more steps than strand_sim.max_steps allows");
    next->state = PLAYED_READY;
    for (uint32_t i = 0; i < sim->count; i++) /* spinning threads may test again */
        if (sim->played[i]->state == PLAYED_RELAXED)
            sim->played[i]->state = PLAYED_READY;
}

/* Switch from the stack of `here` to that of `next`, or to the director's for NULL. Returns when control comes back. */
static void pass(struct sim *sim, struct arch_san *here, struct played *next)
{
    struct arch_cxx *globals = arch_cxx_globals(); /* all simulated threads share one state */
    struct arch_cxx cxx = globals ? *globals : (struct arch_cxx){0};
    struct arch_san *there = next ? san_of(next) : &sim->director_san;
    sim->came_from = sim->running;
    sim->running = next;
    thread_adopt(next ? next->thread : NULL);
    arch_san_release(sim->sub);
    arch_san_leave(here, there, false);
    struct arch_transfer transfer = arch_context_jump(next ? next->context : sim->director, next);
    arch_san_arrive(here);
    *(sim->came_from ? &sim->came_from->context : &sim->director) = transfer.from;
    if (globals)
        *globals = cxx;
}

static bool finished(const struct sim *sim)
{
    return sim->waits_for ? sim->waits_for->state == PLAYED_DONE : sim->pool_threads == 0;
}

/* ---- handlers -------------------------------------------------------------------------------------------- */

enum { INTERRUPT_IN = 8 };

int player_interrupt(struct sim *sim, void (*handler)(void *), void *arg)
{
    struct interrupt *interrupt = malloc(sizeof *interrupt), **at = &sim->interrupts;
    if (!interrupt)
        return -ENOMEM;
    *interrupt = (struct interrupt){NULL, handler, arg};
    while (*at)
        at = &(*at)->next;
    *at = interrupt;
    arch_san_release(&sim->interrupts);
    return 0;
}

/* Runs on the stack of the thread that is chosen, wherever it stands. Other threads may go on meanwhile, and other
 * handlers may interrupt this one. */
static void handle(struct sim *sim)
{
    arch_san_acquire(&sim->interrupts);
    struct interrupt *interrupt = sim->interrupts;
    void (*handler)(void *) = interrupt->handler;
    void *arg = interrupt->arg;
    sim->interrupts = interrupt->next;
    free(interrupt);
    handler(arg);
}

static void be_interrupted(struct sim *sim, struct played *me)
{
    while (sim->interrupts && (me->interrupted || order_once_in(sim, INTERRUPT_IN))) {
        me->interrupted = false;
        handle(sim);
    }
    me->interrupted = false;
}

void player_switch(struct sim *sim, enum played_state state, enum switch_point point)
{
    struct played *me = sim->running;
    if (UNLIKELY(!me || sim->failed))
        return;
    if (me->thread)
        thread_must_not_be_left(me->thread);
    me->state = state;
    me->switch_point = point;
    struct played *next = finished(sim) ? NULL : order_next(sim);
    if (next)
        begin_step(sim, next);
    if (next != me)
        pass(sim, san_of(me), next);
    if (UNLIKELY(sim->interrupts != NULL))
        be_interrupted(sim, me);
}

void player_sleep(struct sim *sim, int64_t deadline)
{
    struct played *me = sim->running;
    me->deadline = deadline;
    me->woken = false;
    player_switch(sim, PLAYED_SLEEPING, POINT_SLEEP);
    order_deal(sim, me);
}

static void first_step(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    struct played *me = transfer.data;
    struct sim *sim = me->sim;
    arch_san_arrive(san_of(me));
    arch_san_acquire(me);
    *(sim->came_from ? &sim->came_from->context : &sim->director) = transfer.from;
    struct arch_cxx *globals = arch_cxx_globals();
    if (globals)
        *globals = (struct arch_cxx){0}; /* not that of the thread which ran before */
    me->fn(me->arg);
    if (me->thread) {
        me->san = me->thread->loop_san;
        sim->pool_threads--;
    }
    arch_san_release(me);
    player_switch(sim, PLAYED_DONE, POINT_SLEEP);
    UNREACHABLE();
}

void player_step(struct sim *sim)
{
    struct played *next = order_next(sim);
    if (!next)
        report_deadlock(sim);
    begin_step(sim, next);
    pass(sim, &sim->director_san, next);
}

void player_play(struct sim *sim, const struct played *last)
{
    struct thread *before = thread_self();
    sim->waits_for = last;
    arch_san_thread(&sim->director_san);
    while (!finished(sim))
        player_step(sim);
    arch_san_thread_end(&sim->director_san);
    thread_adopt(before);
}

/* ---- making ---------------------------------------------------------------------------------------------- */

static int take_stack(struct sim *sim, struct played *played)
{
    struct stage *stage = sim->stage;
    played->stack_size = played->thread ? LOOP_STACK : PLAIN_STACK;
    if (played->thread && stage && stage->count) {
        played->stack = stage->stacks[--stage->count];
        return 0;
    }
    int error = arch_map(played->stack_size, &played->stack);
    if (!error && !played->thread)
        (void)arch_guard_install(played->stack, true);
    return error;
}

static void give_stack(struct sim *sim, struct played *played)
{
    struct stage *stage = sim->stage;
    if (played->thread && stage && stage->count < STAGE_STACKS)
        stage->stacks[stage->count++] = played->stack;
    else
        arch_unmap(played->stack, played->stack_size);
}

static int make_room(struct sim *sim)
{
    if (sim->count < sim->room)
        return 0;
    uint32_t room = sim->room ? sim->room * 2 : 8;
    struct played **more = realloc(sim->played, room * sizeof *more);
    if (!more)
        return -ENOMEM;
    sim->played = more;
    sim->room = room;
    return 0;
}

/* Allocate a thread with a stack, and enter it into sim->played. */
static int new_played(struct sim *sim, struct thread *thread, struct played **out)
{
    int error = make_room(sim);
    if (error)
        return error;
    struct played *played = calloc(1, sizeof *played);
    if (!played)
        return -ENOMEM;
    played->thread = thread;
    played->index = sim->count;
    if ((error = take_stack(sim, played))) {
        free(played);
        return error;
    }
    sim->played[sim->count++] = *out = played;
    return 0;
}

/* Reuse the place of a thread that was joined: for a pool's thread its own, for a plain thread any. */
static int take_played(struct sim *sim, struct thread *thread, struct played **out)
{
    if (thread && thread->simulated) {
        *out = thread->simulated;
        arch_san_end(&(*out)->san);
        return 0;
    }
    for (uint32_t i = 0; !thread && i < sim->count; i++) {
        if (sim->played[i]->state == PLAYED_FREE) {
            *out = sim->played[i];
            return 0;
        }
    }
    return new_played(sim, thread, out);
}

int player_add(struct sim *sim, struct thread *thread, void *(*fn)(void *), void *arg, struct played **out)
{
    struct played *played;
    int error = take_played(sim, thread, &played);
    if (error)
        return error;
    *played = (struct played){.sim = sim,
                              .thread = thread,
                              .fn = fn,
                              .arg = arg,
                              .index = played->index,
                              .stack = played->stack,
                              .stack_size = played->stack_size};
    struct arch_san *san = thread ? &thread->loop_san : &played->san;
    arch_san_make(san, played->stack, played->stack_size);
    played->context = arch_context_make((char *)played->stack + played->stack_size, played->stack_size, first_step);
    if (thread) {
        thread->here = san;
        thread->simulated = played;
        sim->pool_threads++;
    }
    order_deal(sim, played);
    arch_san_release(played); /* making a thread happens before the thread's first step */
    *out = played;
    return 0;
}

void player_free(struct played *played)
{
    ASSERT(played->state == PLAYED_DONE && !played->thread);
    arch_san_acquire(played);
    arch_san_end(&played->san);
    played->state = PLAYED_FREE;
}

void player_close(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->count; i++) {
        if (sim->played[i]->state == PLAYED_DONE)
            arch_san_end(&sim->played[i]->san);
        give_stack(sim, sim->played[i]);
        free(sim->played[i]);
    }
    while (sim->interrupts) { /* they never ran */
        struct interrupt *next = sim->interrupts->next;
        free(sim->interrupts);
        sim->interrupts = next;
    }
    free(sim->played);
}
