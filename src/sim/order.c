/*
 * Which thread goes on, and all other choices. Threads are chosen in one of two ways: a random walk, in which each
 * thread that can go on is equally likely; or priorities that change at few random steps, as proposed by Burckhardt,
 * Kothari, Musuvathi and Nagarakatte (A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, 2010). They
 * prove that a bug which needs d specific orderings, in a run of k steps of n threads, is found with a probability of
 * at least 1 / (n k^(d-1)). That does not hold here: the threads of the pool have the priorities, the strand that a
 * thread takes is another choice, and priorities are lost and dealt again as follows.
 *
 * A spinning thread goes after all others for this once, and with priorities loses its own now and then, so that two
 * threads that spin for a third do not alternate for ever. So does a thread that takes very many steps in a row: a
 * strand may spin by yielding. A thread that wakes up is dealt a new priority: one that looked for work without success
 * is no less likely to be the next thief.
 */
#include "sim.h"

/* One of HABIT_HOLDS choices is by chance. */
enum { LENGTH_USUAL = 1000, STEPS_SINCE_DEAL_MOST = 2000, HABIT_HOLDS = 64, SPINS = 16 };

void order_open(struct sim *sim)
{
    struct order *order = &sim->order;
    uint32_t length = sim->options.length ? sim->options.length : LENGTH_USUAL;
    order->rng.state = sim->seed * UINT64_C(0xD1342543DE82EF95) + 1;
    if (!sim->options.depth)
        return;
    for (uint32_t i = 0; i + 1 < sim->options.depth; i++)
        order->changes[i] = 1 + rng_below(&order->rng, length);
    order->habit = (uint32_t)rng_next(&order->rng);
}

void order_deal(struct sim *sim, struct played *played)
{
    played->steps_since_deal = 0;
    if (sim->options.depth)
        played->priority = (int64_t)rng_below(&sim->order.rng, UINT32_MAX);
}

static void demote(struct sim *sim, struct played *played)
{
    played->priority = --sim->order.lowest;
    played->steps_since_deal = 0;
}

void order_relaxed(struct sim *sim, struct played *played)
{
    if (sim->options.depth && rng_below(&sim->order.rng, SPINS) == 0)
        demote(sim, played);
}

static bool can_go_on(const struct sim *sim, const struct played *p, bool relaxed_too)
{
    switch (p->state) {
    case PLAYED_READY:
        return true;
    case PLAYED_RELAXED:
        return relaxed_too;
    case PLAYED_SLEEPING:
        return p->woken || p->interrupted || p->deadline <= sim->now || (p->polls && net_next(sim) <= sim->now);
    default:
        return false;
    }
}

/* ---- the random walk ------------------------------------------------------------------------------------- */

static struct played *walk(struct sim *sim)
{
    for (int relaxed_too = 0; relaxed_too < 2; relaxed_too++) {
        uint32_t able = 0;
        for (uint32_t i = 0; i < sim->count; i++)
            able += can_go_on(sim, sim->played[i], relaxed_too);
        if (!able)
            continue;
        uint32_t skip = able > 1 ? rng_below(&sim->order.rng, able) : 0;
        for (uint32_t i = 0; i < sim->count; i++)
            if (can_go_on(sim, sim->played[i], relaxed_too) && !skip--)
                return sim->played[i];
    }
    return NULL;
}

/* ---- priorities ------------------------------------------------------------------------------------------ */

static struct played *highest(struct sim *sim)
{
    struct played *best = NULL;
    for (int relaxed_too = 0; relaxed_too < 2 && !best; relaxed_too++) {
        for (uint32_t i = 0; i < sim->count; i++) {
            struct played *p = sim->played[i];
            if (can_go_on(sim, p, relaxed_too) && (!best || p->priority > best->priority))
                best = p;
        }
    }
    return best;
}

/* Called before the next step. */
static void change_priorities(struct sim *sim)
{
    struct order *order = &sim->order;
    struct played *last = sim->running;
    bool changes = last && last->steps_since_deal > STEPS_SINCE_DEAL_MOST;
    for (uint32_t i = 0; i + 1 < sim->options.depth; i++) {
        if (order->changes[i] == sim->steps + 1) {
            order->habit = (uint32_t)rng_next(&order->rng);
            changes = true;
        }
    }
    if (changes && last)
        demote(sim, last);
}

static struct played *by_priority(struct sim *sim)
{
    change_priorities(sim);
    struct played *next = highest(sim);
    if (next)
        next->steps_since_deal++;
    return next;
}

/* ---- the interface ------------------------------------------------------------------------------------------ */

/* All threads sleep: time jumps to the end of the first sleep. Returns false if no sleep ever ends. */
static bool jump_ahead(struct sim *sim)
{
    int64_t first = ARCH_FOREVER;
    for (uint32_t i = 0; i < sim->count; i++) {
        const struct played *p = sim->played[i];
        if (p->state != PLAYED_SLEEPING)
            continue;
        int64_t until = p->polls && net_next(sim) < p->deadline ? net_next(sim) : p->deadline;
        first = until < first ? until : first;
    }
    if (first == ARCH_FOREVER)
        return false;
    if (first > sim->now) {
        if (sim->sub->outside) /* real descriptors get as much real time as the run sleeps */
            arch_nap(first - sim->now);
        sim->now = first;
    }
    return true;
}

/* All threads sleep, and handlers are pending: decide whether one interrupts a sleeper now. */
static bool interrupt_sleeper(struct sim *sim, bool must)
{
    uint32_t able = 0;
    if (!must && !order_once_in(sim, 2))
        return false;
    for (uint32_t i = 0; i < sim->count; i++)
        able += sim->played[i]->state == PLAYED_SLEEPING;
    uint32_t skip = able ? order_chance(sim, able) : 0;
    for (uint32_t i = 0; i < sim->count; i++) {
        if (sim->played[i]->state != PLAYED_SLEEPING || skip--)
            continue;
        sim->played[i]->interrupted = true;
        return true;
    }
    return false;
}

struct played *order_next(struct sim *sim)
{
    for (;;) {
        struct played *next = sim->options.depth ? by_priority(sim) : walk(sim);
        if (next)
            return next;
        if (sim->interrupts && interrupt_sleeper(sim, false))
            continue;
        if (!jump_ahead(sim) && !(sim->interrupts && interrupt_sleeper(sim, true)))
            return NULL;
    }
}

uint32_t order_chance(struct sim *sim, uint32_t n)
{
    uint32_t chosen = rng_below(&sim->order.rng, n);
    sim_fold(sim, chosen);
    return chosen;
}

uint32_t order_choose(struct sim *sim, uint32_t n)
{
    struct order *order = &sim->order;
    if (!sim->options.depth || rng_below(&order->rng, HABIT_HOLDS) == 0)
        return order_chance(sim, n);
    sim_fold(sim, order->habit % n);
    return order->habit % n;
}

bool order_once_in(struct sim *sim, uint32_t n)
{
    bool chosen = n && rng_below(&sim->order.rng, n) == 0;
    if (n)
        sim_fold(sim, chosen);
    return chosen;
}
