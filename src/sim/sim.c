/*
 * The functions of the second platform, its opening and closing. See sim.h.
 */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>

#define BEGIN_NS INT64_C(1000000000)
#define BEGIN_DATE_NS (INT64_C(946684800) * 1000000000) /* 1 January 2000, UTC */

/* ---- called by simulated threads ---------------------------------------------------------------------------- */

static int64_t now(struct subprocess *sub)
{
    return sim_of(sub)->now;
}

static void point(struct thread *thread)
{
    player_switch(sim_of(thread->sub), PLAYED_READY, POINT_SUSPENSION);
}

static bool operation(struct thread *thread, void *where)
{
    struct sim *sim = sim_of(thread->sub);
    struct played *me = thread->simulated;
    if (sim->options.coarse)
        return false;
    me->where = where;
    player_switch(sim, PLAYED_READY, POINT_OPERATION);
    return true;
}

static void spin(struct sim *sim)
{
    if (sim->running) {
        order_relaxed(sim, sim->running);
        player_switch(sim, PLAYED_RELAXED, POINT_SPIN);
    } else {
        player_step(sim); /* at the end of the run another thread holds what it spins for */
    }
}

static void relax(struct thread *thread)
{
    spin(sim_of(thread->sub));
}

static void relax_any(struct arch_player *player)
{
    spin((struct sim *)player);
}

static void step(struct arch_player *player)
{
    struct sim *sim = (struct sim *)player;
    if (sim->atomic_steps)
        player_switch(sim, PLAYED_READY, POINT_ATOMIC);
}

static void sleep_until(struct thread *thread, int64_t deadline)
{
    struct played *me = thread->simulated;
    me->deadline = deadline;
    if (!me->woken) {
        player_switch(me->sim, PLAYED_SLEEPING, POINT_SLEEP);
        order_deal(me->sim, me);
    }
    me->woken = false;
}

static void wake(struct thread *thread)
{
    struct played *other = thread->simulated;
    other->woken = true;
}

static int poll(struct thread *thread, struct arch_event *events, int most, int64_t deadline)
{
    struct played *me = thread->simulated;
    struct sim *sim = me->sim;
    if (deadline && net_next(sim) > sim->now) {
        me->polls = true;
        sleep_until(thread, deadline);
        me->polls = false;
    }
    return net_take(sim, events, most);
}

static uint32_t choose(struct thread *thread, uint32_t n)
{
    return order_choose(sim_of(thread->sub), n);
}

static uint32_t chance(struct thread *thread, uint32_t n)
{
    return order_chance(sim_of(thread->sub), n);
}

static bool refuses(struct thread *thread)
{
    struct sim *sim = sim_of(thread->sub);
    return thread->current && order_once_in(sim, sim->options.memory); /* a run that can't begin proves nothing */
}

static int start(struct thread *thread, void *(*fn)(void *))
{
    struct played *unused;
    return player_add(sim_of(thread->sub), thread, fn, thread, &unused);
}

/* The director does not wait: threads that have not begun never will. */
static void join(struct thread *thread)
{
    struct played *other = thread->simulated;
    while (other->sim->running && other->state != PLAYED_DONE)
        spin(other->sim);
    arch_san_acquire(other);
}

static arch_context where(struct thread *thread)
{
    const struct played *played = thread->simulated;
    return played == played->sim->running ? NULL : played->context;
}

/* Only at atomic steps. After a failure only the report runs. */
static bool preempts(struct subprocess *sub)
{
    return sim_of(sub)->atomic_steps && !sim_of(sub)->failed;
}

static void play(struct subprocess *sub)
{
    player_play(sim_of(sub), NULL);
}

/* ---- plain threads --------------------------------------------------------------------------------------- */

static int thread_start(struct subprocess *sub, void *(*fn)(void *), void *arg, void **out)
{
    struct played *played;
    int error = player_add(sim_of(sub), NULL, fn, arg, &played);
    *out = played;
    return error;
}

static void thread_join(struct subprocess *sub, void *other)
{
    struct sim *sim = sim_of(sub);
    struct played *played = other;
    if (!sim->running)
        player_play(sim, played);
    while (played->state != PLAYED_DONE)
        spin(sim);
    player_free(played);
}

static int plain_threads(struct subprocess *sub)
{
    const struct sim *sim = sim_of(sub);
    int count = 0;
    for (uint32_t i = 0; i < sim->count; i++) {
        const struct played *p = sim->played[i];
        count += !p->thread && p->state != PLAYED_DONE && p->state != PLAYED_FREE;
    }
    return count;
}

static void plain_point(struct subprocess *sub)
{
    player_switch(sim_of(sub), PLAYED_READY, POINT_SUSPENSION);
}

static void word_wait(struct subprocess *sub, const _Atomic uint32_t *word, uint32_t expected, int64_t deadline)
{
    struct sim *sim = sim_of(sub);
    struct played *me = sim->running;
    if (atomic_load_explicit(word, memory_order_relaxed) != expected)
        return;
    me->word = word;
    player_sleep(sim, deadline);
    me->word = NULL;
}

static void word_wake(struct subprocess *sub, const _Atomic uint32_t *word, int threads)
{
    struct sim *sim = sim_of(sub);
    for (uint32_t i = 0; i < sim->count && threads > 0; i++) {
        if (sim->played[i]->word != word || sim->played[i]->woken)
            continue;
        sim->played[i]->woken = true;
        threads--;
    }
}

/* ---- opening and closing --------------------------------------------------------------------------------- */

static const struct platform of_real_descriptors = {
    .now = now,
    .point = point,
    .operation = operation,
    .relax = relax,
    .sleep = sleep_until,
    .wake = wake,
    .poll = poll,
    .choose = choose,
    .chance = chance,
    .refuses = refuses,
    .start = start,
    .join = join,
    .play = play,
    .where = where,
    .preempts = preempts,
    .thread_start = thread_start,
    .thread_join = thread_join,
    .word_wait = word_wait,
    .word_wake = word_wake,
    .plain_point = plain_point,
    .plain_threads = plain_threads,
    .meet = net_meet,
};

int sim_open(struct subprocess *sub, const struct sim_request *asked, char *text, size_t room)
{
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return -ENOMEM;
    int result = options_take(sim, asked, text, room);
    if (result <= 0) {
        free(sim);
        return result;
    }
    sim->player = (struct arch_player){sub, relax_any, step, report_ending};
    sim->sub = sub;
    sim->hash = UINT64_C(0xcbf29ce484222325);
    sim->began = sim->now = BEGIN_NS;
    sim->date_offset = BEGIN_DATE_NS - BEGIN_NS;
    sim->platform = of_real_descriptors;
    if (!sim->options.real)
        sim->platform.fds = &net_fds;
    order_open(sim);
    struct stage *stage = arch_stage_take(ARCH_STAGE_PLAYERS);
    sim->stage = stage ? stage : stage_make();
    sub->seed = sim->seed;
    sub->platform = &sim->platform;
    sub->sim = sim;
    sub->copies |= sim->options.shared_stacks;
    sim->outer = arch_player();
    arch_player_set(&sim->player);
    return 0;
}

void sim_close(struct subprocess *sub, const char *failure)
{
    struct sim *sim = sim_of(sub);
    if (!sim)
        return;
    arch_player_set(sim->outer);
    report_end(sim, failure);
    net_close(sim);
    routes_close(sim);
    player_close(sim);
    stage_free(arch_stage_give(ARCH_STAGE_PLAYERS, sim->stage));
    free(sim);
    sub->platform = NULL;
    sub->sim = NULL;
}
