/*
 * Runners, the lists of idle ones, and the tasks that wait for one. The protocol block is in place.h.
 */
#include "place.h"

#include "../sched/pool.h"
#include "../strand/end.h"
#include "../strand/spawn.h"

#include <errno.h>
#include <string.h>

OWN_INLINE bool has_own(const struct thread *thread, const struct place *place)
{
    return thread->pool == place->pool && thread->index < PLACE_THREADS && place->pin < 0;
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

void place_leave(struct thread *thread, struct runner *r)
{
    struct system *system = r->place->system;
    plain_store(&r->strand->extra, NULL, memory_order_relaxed); /* it belongs to the runner */
    spin_lock_if_concurrent(&system->lock, thread);
    reap(thread, system);
    list_remove(&r->others);
    list_push_back(r->fatal ? &system->failed : &system->ended, &r->others);
    spin_unlock_if_concurrent(&system->lock, thread);
}

/* The runner's strand got no stack: its task waits for another runner. There is one, unless the place is just being
 * opened. */
bool place_refused(struct thread *thread, struct cb *c)
{
    if (c->fn != runner_main)
        return false;
    struct runner *r = c->arg, *other = NULL;
    struct place *place = r->place;
    struct task *task = r->task;
    atomic_fetch_sub_explicit(&place->unbegun, 1, memory_order_relaxed);
    place_leave(thread, r);
    if (place->threads_most)
        atomic_fetch_sub_explicit(&place->active, 1, memory_order_relaxed);
    if (task) {
        struct cell *cell = task->cell;
        uint64_t word = cell_lock_living(thread, cell);
        task->runner = NULL;
        other = place_starve(thread, place, task);
        cell_unlock(cell, word);
    }
    if (other)
        place_go(thread, other, false);
    c->arg = NULL; /* its result */
    return true;
}

int place_make_runner(struct thread *thread, struct place *place, struct runner **out)
{
    struct system *system = place->system;
    *out = NULL;
    if (atomic_load_explicit(&place->unbegun, memory_order_relaxed) >= UNBEGUN_MOST)
        return -EALREADY;
    struct runner *r = platform_slab_get(thread, &actor_thread_of(thread)->runners);
    if (!r)
        return -ENOMEM;
    arch_san_acquire(r);
    memset((char *)r + sizeof(uint64_t), 0, sizeof *r - sizeof(uint64_t));
    r->place = place;
    struct scope *scope = (struct scope *)(uintptr_t)system->scope.bits[0];
    int error = spawn_own(thread, scope, place->pool, place->pin, place->threads_most != 0, runner_main, r, &r->strand);
    if (error) {
        slab_put(&actor_thread_of(thread)->runners, r);
        return error;
    }
    spin_lock_if_concurrent(&system->lock, thread);
    reap(thread, system);
    list_push_back(&system->runners, &r->others);
    spin_unlock_if_concurrent(&system->lock, thread);
    atomic_fetch_add_explicit(&place->unbegun, 1, memory_order_relaxed);
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
static bool rest_there(struct runner *r)
{
    uint32_t state = RUNNER_LISTED;
    return atomic_compare_exchange_strong_explicit(&r->idle, &state, RUNNER_IDLE | RUNNER_LISTED, memory_order_acq_rel,
                                                   memory_order_relaxed); /* [T5] */
}

/* From the thread's own list. */
OWN_INLINE struct runner *pop_own(struct thread *thread, struct place *place)
{
    struct runner *r;
    if (UNLIKELY(!has_own(thread, place)))
        return NULL;
    while ((r = place->idle[thread->index].first)) {
        place->idle[thread->index].first = r->next;
        place->idle[thread->index].count--;
        if (LIKELY(claim(thread, r)))
            break;
    }
    return r;
}

OWN_INLINE bool push_own(struct thread *thread, struct place *place, struct runner *r)
{
    if (UNLIKELY(!has_own(thread, place)) || UNLIKELY(place->idle[thread->index].count == IDLE_MOST))
        return false;
    r->next = place->idle[thread->index].first;
    place->idle[thread->index].first = r;
    place->idle[thread->index].count++;
    atomic_store_explicit(&r->idle, RUNNER_IDLE | RUNNER_LISTED, memory_order_release); /* [T5] */
    return true;
}

static struct runner *pop_rest(struct thread *thread, struct place *place)
{
    struct runner *r;
    if (!plain_load(&place->rest, memory_order_relaxed))
        return NULL;
    spin_lock_if_concurrent(&place->lock, thread);
    while ((r = place->rest)) {
        plain_store(&place->rest, r->next, memory_order_relaxed);
        plain_store(&place->rest_count, place->rest_count - 1, memory_order_relaxed);
        if (claim(thread, r))
            break;
    }
    spin_unlock_if_concurrent(&place->lock, thread);
    return r;
}

static bool push_rest(struct thread *thread, struct place *place, struct runner *r)
{
    spin_lock_if_concurrent(&place->lock, thread);
    bool room = place->rest_count < IDLE_MOST;
    if (room) {
        r->next = place->rest;
        plain_store(&place->rest, r, memory_order_relaxed);
        plain_store(&place->rest_count, place->rest_count + 1, memory_order_relaxed);
        atomic_store_explicit(&r->idle, RUNNER_IDLE | RUNNER_LISTED, memory_order_release); /* [T5] */
    }
    spin_unlock_if_concurrent(&place->lock, thread);
    return room;
}

/* The runner was seized, and has nothing to do after all. If no list has room for it, only take_any finds it. Meanwhile
 * a task may have starved because the runner was not idle: the caller has to look again [T3]. */
static COLD void release_idle(struct thread *thread, struct place *place, struct runner *r)
{
    arch_san_release(r);
    if (!rest_there(r) && !push_own(thread, place, r) && !push_rest(thread, place, r))
        atomic_store_explicit(&r->idle, RUNNER_IDLE, memory_order_release); /* [T5] */
    atomic_thread_fence(memory_order_seq_cst);                              /* [T3] */
}

/* When out of memory: take a runner that some other thread keeps. It stays in that thread's list. */
static COLD struct runner *take_any(struct thread *thread, struct place *place)
{
    struct system *system = place->system;
    struct runner *found = NULL;
    spin_lock_if_concurrent(&system->lock, thread);
    for (struct link *link = system->runners.next; link != &system->runners && !found; link = link->next) {
        struct runner *r = CONTAINER(link, struct runner, others);
        if (r->place == place && seize(r))
            found = r;
    }
    spin_unlock_if_concurrent(&system->lock, thread);
    if (found)
        arch_san_acquire(found);
    return found;
}

static COLD void come_from_outside(struct thread *thread, struct place *place)
{
    spin_lock_if_concurrent(&place->lock, thread);
    atomic_store_explicit(&place->from_outside, true, memory_order_relaxed);
    atomic_store_explicit(&place->slow_idle, true, memory_order_seq_cst); /* [T4] */
    spin_unlock_if_concurrent(&place->lock, thread);
}

struct runner *place_get(struct thread *thread, struct place *place)
{
    struct runner *r = pop_own(thread, place);
    if (LIKELY(r != NULL))
        return r;
    if (UNLIKELY(!has_own(thread, place)) && !atomic_load_explicit(&place->from_outside, memory_order_relaxed))
        come_from_outside(thread, place);
    if ((r = pop_rest(thread, place)))
        return r;
    int error = place_make_runner(thread, place, &r);
    return LIKELY(!error) || error == -EALREADY ? r : take_any(thread, place);
}

/* Recompute place.slow_idle. It stays set in most places that have it set, and then costs no lock. */
static COLD void update_slow_idle(struct thread *thread, struct place *place)
{
    atomic_store_explicit(&place->has_begun, true, memory_order_release); /* [PB1] */
    if (atomic_load_explicit(&place->from_outside, memory_order_relaxed) || place->threads_most)
        return;
    spin_lock_if_concurrent(&place->lock, thread);
    bool slow = place->starved || atomic_load_explicit(&place->from_outside, memory_order_relaxed) ||
                atomic_load_explicit(&place->system->closing, memory_order_relaxed);
    atomic_store_explicit(&place->slow_idle, slow, memory_order_seq_cst); /* [T4] */
    spin_unlock_if_concurrent(&place->lock, thread);
}

static COLD bool put_slow(struct thread *thread, struct place *place, struct runner *r)
{
    update_slow_idle(thread, place);
    bool common = atomic_load_explicit(&place->from_outside, memory_order_relaxed) &&
                  plain_load(&place->rest_count, memory_order_relaxed) < COMMON_MOST;
    if (atomic_load_explicit(&place->system->closing, memory_order_relaxed))
        return false;
    if (rest_there(r))
        return true;
    return (!common && push_own(thread, place, r)) || push_rest(thread, place, r);
}

bool place_put(struct thread *thread, struct runner *r)
{
    struct place *place = r->place;
    bool slow = atomic_load_explicit(&place->slow_idle, memory_order_relaxed) ||
                atomic_load_explicit(&r->idle, memory_order_relaxed);
    arch_san_release(r);
    return (LIKELY(!slow) && LIKELY(push_own(thread, place, r))) || put_slow(thread, place, r);
}

/* Whether the caller has to look for idle runners: a runner that begins does that itself. Afterwards the caller sees
 * each runner that fell idle without seeing the tasks that starve [T3]. */
static COLD bool looks_for_idle(struct thread *thread, struct place *place)
{
    if (atomic_load_explicit(&place->unbegun, memory_order_seq_cst)) /* [T3] */
        return false;
    if (thread->concurrent && arch_membarrier_works)
        arch_membarrier(); /* [T3] */
    return true;
}

/* Give the first of the tasks that starve to an idle runner. NULL: there is no such task, or no such runner [T3]. */
static COLD struct runner *feed_idle(struct thread *thread, struct place *place)
{
    struct runner *r;
    while (plain_load(&place->starved, memory_order_seq_cst) && (r = take_any(thread, place))) { /* [T3] */
        struct task *task = place_starved(thread, place);
        if (task) {
            place_assign(r, task);
            return r;
        }
        release_idle(thread, place, r);
    }
    return NULL;
}

struct runner *place_starve(struct thread *thread, struct place *place, struct task *task)
{
    spin_lock_if_concurrent(&place->lock, thread);
    task->next = NULL;
    if (place->starved)
        *place->last = task;
    else
        plain_store(&place->starved, task, memory_order_seq_cst); /* [T3] */
    place->last = &task->next;
    atomic_store_explicit(&place->slow_idle, true, memory_order_seq_cst); /* [T4] */
    spin_unlock_if_concurrent(&place->lock, thread);
    atomic_thread_fence(memory_order_seq_cst); /* [T3] */
    return looks_for_idle(thread, place) ? feed_idle(thread, place) : NULL;
}

void place_relay_(struct thread *thread, struct place *place)
{
    bool starve = plain_load(&place->starved, memory_order_seq_cst) != NULL; /* [T3] */
    struct runner *r = starve && looks_for_idle(thread, place) ? feed_idle(thread, place) : NULL;
    if (r)
        place_go(thread, r, false);
}

bool place_wakes_itself_(struct thread *thread, struct runner *r)
{
    struct place *place = r->place;
    while (plain_load(&place->starved, memory_order_seq_cst) && seize(r)) { /* [T3] */
        struct task *task = place_starved(thread, place);
        if (task) {
            place_assign(r, task);
            return true;
        }
        release_idle(thread, place, r);
    }
    return false;
}

struct task *place_starved(struct thread *thread, struct place *place)
{
    if (LIKELY(!plain_load(&place->starved, memory_order_relaxed)))
        return NULL;
    spin_lock_if_concurrent(&place->lock, thread);
    struct task *task = place->starved;
    if (task)
        plain_store(&place->starved, task->next, memory_order_relaxed);
    spin_unlock_if_concurrent(&place->lock, thread);
    return task;
}

void place_begun(struct thread *thread, struct place *place)
{
    atomic_fetch_sub_explicit(&place->unbegun, 1, memory_order_seq_cst); /* [T3] */
    if (LIKELY(!plain_load(&place->starved, memory_order_seq_cst)))      /* [T3] */
        return;
    struct task *task = place_starved(thread, place);
    if (!task)
        return;
    struct runner *r = place_get(thread, place);
    if (r)
        place_assign(r, task);
    else
        r = place_starve(thread, place, task);
    if (r)
        place_go(thread, r, false);
    place_relay_(thread, place);
}

void *runner_main(void *arg)
{
    struct runner *r = arg;
    place_begun(thread_self(), r->place);
    return r->place->system->serve(r);
}

/* Count one more task with a runner in a place where each may block its thread. */
static COLD void grow(struct thread *thread, struct place *place)
{
    int active = atomic_fetch_add_explicit(&place->active, 1, memory_order_relaxed) + 1;
    int threads = atomic_load_explicit(&place->threads, memory_order_relaxed);
    while (threads < active && threads < place->threads_most)
        if (atomic_compare_exchange_weak_explicit(&place->threads, &threads, threads + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            (void)pool_resize(thread, place->pool, threads + 1); /* otherwise they share the existing threads */
            break;
        }
}

void place_go(struct thread *thread, struct runner *r, bool fresh)
{
    struct cb *c = r->strand;
    if (UNLIKELY(r->place->threads_most))
        grow(thread, r->place);
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

struct thread *place_await_memory(void)
{
    strand_exception *e = strand_try(nap, NULL, NULL);
    strand_exception_release(e); /* a timer needs memory, too */
    return e ? thread_yield(thread_self()) : thread_self();
}

void place_feed(struct place *place)
{
    struct thread *thread = thread_self();
    for (struct task *task; (task = place_starved(thread, place));) {
        struct runner *r = place_get(thread, place);
        if (r)
            place_assign(r, task);
        else
            r = place_starve(thread, place, task);
        if (r)
            place_go(thread, r, false);
        else
            thread = place_await_memory();
    }
}
