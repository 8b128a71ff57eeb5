/*
 * Runners, the lists of idle ones, and the activations that wait for one. The protocol block is in runners.h.
 */
#include "runners.h"

#include "../sched/resize.h"
#include "../strand/end.h"
#include "../strand/spawn.h"

#include <errno.h>
#include <string.h>

OWN_INLINE bool has_own(const struct thread *thread, const struct runners *runners)
{
    return thread->pool == runners->pool && thread->index < RUNNERS_THREADS && runners->pin < 0;
}

/* Under the lock: free runners whose strands have ended, unless the system's owner does that. */
static void reap(struct thread *thread, struct system *system)
{
    struct scope *scope = (struct scope *)(uintptr_t)system->scope.bits[0];
    struct link *link = system->ended.next;
    while (!atomic_load_explicit(&system->closing, memory_order_relaxed) && link != &system->ended) {
        struct runner *r = CONTAINER(link, struct runner, others);
        link = link->next;
        if (!ended(r->strand))
            return;
        if (atomic_load_explicit(&r->idle, memory_order_acquire) & RUNNER_LISTED) /* [T2] */
            continue;
        list_remove(&r->others);
        arch_san_acquire(r->strand);
        end_consume(thread, scope, r->strand);
        arch_san_release(r);
        slab_put(&actor_thread_of(thread)->runners, r);
    }
}

void runners_leave(struct thread *thread, struct runner *r)
{
    struct system *system = r->runners->system;
    plain_store(&r->strand->extra, NULL, memory_order_relaxed); /* it belongs to the runner */
    spin_lock_if_concurrent(&system->lock, thread);
    reap(thread, system);
    list_remove(&r->others);
    list_push_back(r->fatal ? &system->failed : &system->ended, &r->others);
    spin_unlock_if_concurrent(&system->lock, thread);
}

/* The runner's strand got no stack: its activation waits for another runner. There is one, unless the dispatcher is
 * just being opened. */
bool runners_refused(struct thread *thread, struct cb *c)
{
    if (c->fn != runner_main)
        return false;
    struct runner *r = c->arg, *other = NULL;
    struct runners *runners = r->runners;
    struct activation *activation = r->activation;
    atomic_fetch_sub_explicit(&runners->unbegun, 1, memory_order_relaxed);
    runners_leave(thread, r);
    if (runners->threads_most)
        atomic_fetch_sub_explicit(&runners->running, 1, memory_order_relaxed);
    if (activation) {
        struct cell *cell = activation->cell;
        uint64_t word = cell_lock_living(thread, cell);
        activation->runner = NULL;
        other = runners_starve(thread, runners, activation);
        cell_unlock(cell, word);
    }
    if (other)
        runners_go(thread, other, false);
    c->arg = NULL; /* its result */
    return true;
}

int runners_make_runner(struct thread *thread, struct runners *runners, struct runner **out)
{
    struct system *system = runners->system;
    *out = NULL;
    if (atomic_load_explicit(&runners->unbegun, memory_order_relaxed) >= UNBEGUN_MOST)
        return -EALREADY;
    struct runner *r = platform_slab_get(thread, &actor_thread_of(thread)->runners);
    if (!r)
        return -ENOMEM;
    arch_san_acquire(r);
    memset((char *)r + sizeof(uint64_t), 0, sizeof *r - sizeof(uint64_t));
    r->runners = runners;
    struct scope *scope = (struct scope *)(uintptr_t)system->scope.bits[0];
    int error =
        spawn_own(thread, scope, runners->pool, runners->pin, runners->threads_most != 0, runner_main, r, &r->strand);
    if (error) {
        slab_put(&actor_thread_of(thread)->runners, r);
        return error;
    }
    spin_lock_if_concurrent(&system->lock, thread);
    reap(thread, system);
    list_push_back(&system->living, &r->others);
    spin_unlock_if_concurrent(&system->lock, thread);
    atomic_fetch_add_explicit(&runners->unbegun, 1, memory_order_relaxed);
    *out = r;
    return 0;
}

/* Try to take a runner that was taken out of a list; it may be in use [T1] [T2]. */
OWN_INLINE bool claim(struct thread *thread, struct runner *r)
{
    uint32_t state;
    if (thread->concurrent) {
        state = atomic_exchange_explicit(&r->idle, 0, memory_order_acq_rel); /* [T1] [T2] [T5] */
    } else {
        state = atomic_load_explicit(&r->idle, memory_order_relaxed);
        atomic_store_explicit(&r->idle, 0, memory_order_relaxed);
    }
    if (LIKELY(state & RUNNER_IDLE))
        arch_san_acquire(r);
    return state & RUNNER_IDLE;
}

/* Likewise, but leave it in its list [T1]. */
static bool seize(struct runner *r)
{
    uint32_t state = atomic_load_explicit(&r->idle, memory_order_relaxed);
    while (state & RUNNER_IDLE)
        if (atomic_compare_exchange_weak_explicit(&r->idle, &state, state & ~(uint32_t)RUNNER_IDLE,
                                                  memory_order_acq_rel, memory_order_relaxed)) /* [T1] [T5] */
            return true;
    return false;
}

/* Make it idle in the list that it is still in. Returns false if it was taken out of that. */
static bool idle_again(struct runner *r)
{
    uint32_t state = RUNNER_LISTED;
    return atomic_compare_exchange_strong_explicit(&r->idle, &state, RUNNER_IDLE | RUNNER_LISTED, memory_order_acq_rel,
                                                   memory_order_relaxed); /* [T5] */
}

/* From the thread's own list. */
OWN_INLINE struct runner *pop_own(struct thread *thread, struct runners *runners)
{
    struct runner *r;
    if (UNLIKELY(!has_own(thread, runners)))
        return NULL;
    while ((r = runners->idle[thread->index].first)) {
        runners->idle[thread->index].first = r->next;
        runners->idle[thread->index].count--;
        if (LIKELY(claim(thread, r)))
            break;
    }
    return r;
}

OWN_INLINE bool push_own(struct thread *thread, struct runners *runners, struct runner *r)
{
    if (UNLIKELY(!has_own(thread, runners)) || UNLIKELY(runners->idle[thread->index].count == IDLE_MOST))
        return false;
    r->next = runners->idle[thread->index].first;
    runners->idle[thread->index].first = r;
    runners->idle[thread->index].count++;
    atomic_store_explicit(&r->idle, RUNNER_IDLE | RUNNER_LISTED, memory_order_release); /* [T5] */
    return true;
}

static struct runner *pop_shared(struct thread *thread, struct runners *runners)
{
    struct runner *r;
    if (!plain_load(&runners->shared_idle, memory_order_relaxed))
        return NULL;
    spin_lock_if_concurrent(&runners->lock, thread);
    while ((r = runners->shared_idle)) {
        plain_store(&runners->shared_idle, r->next, memory_order_relaxed);
        plain_store(&runners->shared_idle_count, runners->shared_idle_count - 1, memory_order_relaxed);
        if (claim(thread, r))
            break;
    }
    spin_unlock_if_concurrent(&runners->lock, thread);
    return r;
}

static bool push_shared(struct thread *thread, struct runners *runners, struct runner *r)
{
    spin_lock_if_concurrent(&runners->lock, thread);
    bool room = runners->shared_idle_count < IDLE_MOST;
    if (room) {
        r->next = runners->shared_idle;
        plain_store(&runners->shared_idle, r, memory_order_relaxed);
        plain_store(&runners->shared_idle_count, runners->shared_idle_count + 1, memory_order_relaxed);
        atomic_store_explicit(&r->idle, RUNNER_IDLE | RUNNER_LISTED, memory_order_release); /* [T5] */
    }
    spin_unlock_if_concurrent(&runners->lock, thread);
    return room;
}

/* The runner was seized, and has nothing to do after all. If no list has room for it, only take_any finds it. Meanwhile
 * an activation may have starved because the runner was not idle: the caller has to look again [T3]. */
static COLD void release_idle(struct thread *thread, struct runners *runners, struct runner *r)
{
    arch_san_release(r);
    if (!idle_again(r) && !push_own(thread, runners, r) && !push_shared(thread, runners, r))
        atomic_store_explicit(&r->idle, RUNNER_IDLE, memory_order_release); /* [T5] */
    atomic_thread_fence(memory_order_seq_cst);                              /* [T3] */
}

/* When out of memory: take a runner that some other thread keeps. It stays in that thread's list. */
static COLD struct runner *take_any(struct thread *thread, struct runners *runners)
{
    struct system *system = runners->system;
    struct runner *found = NULL;
    spin_lock_if_concurrent(&system->lock, thread);
    for (struct link *link = system->living.next; link != &system->living && !found; link = link->next) {
        struct runner *r = CONTAINER(link, struct runner, others);
        if (r->runners == runners && seize(r))
            found = r;
    }
    spin_unlock_if_concurrent(&system->lock, thread);
    if (found)
        arch_san_acquire(found);
    return found;
}

static COLD void come_from_outside(struct thread *thread, struct runners *runners)
{
    spin_lock_if_concurrent(&runners->lock, thread);
    atomic_store_explicit(&runners->from_outside, true, memory_order_relaxed);
    atomic_store_explicit(&runners->slow_idle, true, memory_order_seq_cst); /* [T4] */
    spin_unlock_if_concurrent(&runners->lock, thread);
}

struct runner *runners_get(struct thread *thread, struct runners *runners)
{
    struct runner *r = pop_own(thread, runners);
    if (LIKELY(r != NULL))
        return r;
    if (UNLIKELY(!has_own(thread, runners)) && !atomic_load_explicit(&runners->from_outside, memory_order_relaxed))
        come_from_outside(thread, runners);
    if ((r = pop_shared(thread, runners)))
        return r;
    int error = runners_make_runner(thread, runners, &r);
    return LIKELY(!error) || error == -EALREADY ? r : take_any(thread, runners);
}

/* Recompute runners.slow_idle. It usually stays set, and then costs no lock. */
static COLD void update_slow_idle(struct thread *thread, struct runners *runners)
{
    atomic_store_explicit(&runners->has_begun, true, memory_order_release); /* [PB1] */
    if (atomic_load_explicit(&runners->from_outside, memory_order_relaxed) || runners->threads_most)
        return;
    spin_lock_if_concurrent(&runners->lock, thread);
    bool slow = runners->starved || atomic_load_explicit(&runners->from_outside, memory_order_relaxed) ||
                atomic_load_explicit(&runners->system->closing, memory_order_relaxed);
    atomic_store_explicit(&runners->slow_idle, slow, memory_order_seq_cst); /* [T4] */
    spin_unlock_if_concurrent(&runners->lock, thread);
}

static COLD bool put_slow(struct thread *thread, struct runners *runners, struct runner *r)
{
    update_slow_idle(thread, runners);
    bool common = atomic_load_explicit(&runners->from_outside, memory_order_relaxed) &&
                  plain_load(&runners->shared_idle_count, memory_order_relaxed) < COMMON_MOST;
    if (atomic_load_explicit(&runners->system->closing, memory_order_relaxed))
        return false;
    if (idle_again(r))
        return true;
    return (!common && push_own(thread, runners, r)) || push_shared(thread, runners, r);
}

bool runners_put(struct thread *thread, struct runner *r)
{
    struct runners *runners = r->runners;
    bool slow = atomic_load_explicit(&runners->slow_idle, memory_order_relaxed) ||
                atomic_load_explicit(&r->idle, memory_order_relaxed);
    arch_san_release(r);
    return (LIKELY(!slow) && LIKELY(push_own(thread, runners, r))) || put_slow(thread, runners, r);
}

/* Whether the caller has to look for idle runners: a runner that begins does that itself. Afterwards the caller sees
 * each runner that fell idle without seeing the activations that starve [T3]. */
static COLD bool looks_for_idle(struct thread *thread, struct runners *runners)
{
    if (atomic_load_explicit(&runners->unbegun, memory_order_seq_cst)) /* [T3] */
        return false;
    if (thread->concurrent && arch_membarrier_works)
        arch_membarrier(); /* [T3] */
    return true;
}

/* Gives the first of the activations that starve to a runner that the caller has taken out of the idle ones. Returns
 * false, with the runner idle again, if there is none any more. */
static bool feed(struct thread *thread, struct runners *runners, struct runner *r)
{
    struct activation *activation = runners_starved(thread, runners);
    if (activation)
        runners_assign(r, activation);
    else
        release_idle(thread, runners, r);
    return activation;
}

/* Gives the first of the activations that starve to an idle runner. Returns NULL if there is no such activation, or no
 * such runner [T3]. */
static COLD struct runner *feed_idle(struct thread *thread, struct runners *runners)
{
    struct runner *r;
    while (plain_load(&runners->starved, memory_order_seq_cst) && (r = take_any(thread, runners))) /* [T3] */
        if (feed(thread, runners, r))
            return r;
    return NULL;
}

struct runner *runners_starve(struct thread *thread, struct runners *runners, struct activation *activation)
{
    spin_lock_if_concurrent(&runners->lock, thread);
    activation->next = NULL;
    if (runners->starved)
        *runners->last = activation;
    else
        plain_store(&runners->starved, activation, memory_order_seq_cst); /* [T3] */
    runners->last = &activation->next;
    atomic_store_explicit(&runners->slow_idle, true, memory_order_seq_cst); /* [T4] */
    spin_unlock_if_concurrent(&runners->lock, thread);
    atomic_thread_fence(memory_order_seq_cst); /* [T3] */
    return looks_for_idle(thread, runners) ? feed_idle(thread, runners) : NULL;
}

void runners_relay_(struct thread *thread, struct runners *runners)
{
    bool starve = plain_load(&runners->starved, memory_order_seq_cst) != NULL; /* [T3] */
    struct runner *r = starve && looks_for_idle(thread, runners) ? feed_idle(thread, runners) : NULL;
    if (r)
        runners_go(thread, r, false);
}

bool runners_wakes_itself_(struct thread *thread, struct runner *r)
{
    struct runners *runners = r->runners;
    while (plain_load(&runners->starved, memory_order_seq_cst) && seize(r)) /* [T3] */
        if (feed(thread, runners, r))
            return true;
    return false;
}

struct activation *runners_starved(struct thread *thread, struct runners *runners)
{
    if (LIKELY(!plain_load(&runners->starved, memory_order_relaxed)))
        return NULL;
    spin_lock_if_concurrent(&runners->lock, thread);
    struct activation *activation = runners->starved;
    if (activation)
        plain_store(&runners->starved, activation->next, memory_order_relaxed);
    spin_unlock_if_concurrent(&runners->lock, thread);
    return activation;
}

void runners_begun(struct thread *thread, struct runners *runners)
{
    atomic_fetch_sub_explicit(&runners->unbegun, 1, memory_order_seq_cst); /* [T3] */
    if (LIKELY(!plain_load(&runners->starved, memory_order_seq_cst)))      /* [T3] */
        return;
    struct activation *activation = runners_starved(thread, runners);
    if (!activation)
        return;
    struct runner *r = runners_get(thread, runners);
    if (r)
        runners_assign(r, activation);
    else
        r = runners_starve(thread, runners, activation);
    if (r)
        runners_go(thread, r, false);
    runners_relay_(thread, runners);
}

void *runner_main(void *arg)
{
    struct runner *r = arg;
    runners_begun(thread_self(), r->runners);
    return r->runners->system->serve(r);
}

/* Count one more activation with a runner where each may block its thread. */
static COLD void grow(struct thread *thread, struct runners *runners)
{
    int running = atomic_fetch_add_explicit(&runners->running, 1, memory_order_relaxed) + 1;
    int threads = atomic_load_explicit(&runners->threads, memory_order_relaxed);
    while (threads < running && threads < runners->threads_most)
        if (atomic_compare_exchange_weak_explicit(&runners->threads, &threads, threads + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            (void)pool_resize(thread, runners->pool, threads + 1); /* otherwise they share the existing threads */
            break;
        }
}

void runners_go(struct thread *thread, struct runner *r, bool fresh)
{
    struct cb *c = r->strand;
    if (UNLIKELY(r->runners->threads_most))
        grow(thread, r->runners);
    bool begins = !r->launched;
    r->launched = true;
    if (UNLIKELY(!thread->current)) { /* a post, from outside of the run */
        if (begins)
            count_spawned(thread);
        arch_san_release(begins ? (void *)c : (void *)&c->member);
        pool_deliver(thread, &c->member);
        return;
    }
    if (begins) {
        spawn_launch(thread, c);
        return;
    }
    struct fibre *fibre = c->member.fibre;
    if (fresh && !fibre->slow_wake && fibre->pool == thread->pool) {
        plain_store(&fibre->home, NULL, memory_order_relaxed);
        arch_san_release(&c->member);
        thread_push(thread, fibre, PUSH_NEW); /* depth first: so that a tree of actors stays small */
    } else {
        thread_ready(thread, &c->member);
    }
}

static void *nap(void *arg)
{
    STRAND_SHIELD;
    strand_sleep(STRAND_MS);
    return arg;
}

struct thread *runners_await_memory(void)
{
    strand_exception *e = strand_try(nap, NULL, NULL);
    strand_exception_release(e); /* a timer needs memory, too */
    return e ? thread_yield(thread_self()) : thread_self();
}

void runners_feed(struct runners *runners)
{
    struct thread *thread = thread_self();
    for (struct activation *activation; (activation = runners_starved(thread, runners));) {
        struct runner *r = runners_get(thread, runners);
        if (r)
            runners_assign(r, activation);
        else
            r = runners_starve(thread, runners, activation);
        if (r)
            runners_go(thread, r, false);
        else
            thread = runners_await_memory();
    }
}
