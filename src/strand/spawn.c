/*
 * Spawning. The frame that a strand's function runs in is entry.c's. Model of spawning into open scopes:
 * tests/models/scope.pml; onto a pool that is closed: tests/models/closing.pml.
 */
#include "spawn.h"

#include "cancel.h"
#include "end.h"
#include "entry.h"
#include "escape.h"
#include "exception.h"
#include "fibre.h"
#include "handle.h"
#include "local.h"
#include "misuse.h"
#include "pool.h"
#include "scope.h"
#include "throw.h"

#include "../sched/closing.h"
#include "../sched/resize.h"
#include "../sched/switch.h"

#include <errno.h>

/* ---- making ---------------------------------------------------------------------------------------------- */

__attribute__((noreturn)) NOINLINE void spawn_throw(struct cb *me, int error)
{
    throw_system(me, error,
                 error == -EAGAIN      ? "spawning: as many strands exist as options.max_strands allows"
                 : error == -ECANCELED ? "spawning into an open scope that has been left"
                 : error == -ESHUTDOWN ? "spawning onto a pool that is closed, or is being closed"
                 : error == -ENXIO     ? "spawning pinned to a thread that the pool does not have"
                                       : "spawning");
}

/* Count one more strand against the limit, if there is one. */
static int count_in(struct thread *thread)
{
    struct runtime *runtime = runtime_of(thread);
    if (LIKELY(!runtime->options.max_strands))
        return 0;
    int64_t live = atomic_load_explicit(&runtime->live, memory_order_relaxed);
    do {
        if (live >= (int64_t)runtime->options.max_strands)
            return -EAGAIN;
    } while (!atomic_compare_exchange_weak_explicit(&runtime->live, &live, live + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return 0;
}

static void count_back(struct thread *thread)
{
    if (runtime_of(thread)->options.max_strands)
        atomic_fetch_sub_explicit(&runtime_of(thread)->live, 1, memory_order_relaxed);
}

static inline void fill(struct cb *c, const struct spawn_plan *plan)
{
    c->fn = plan->fn;
    c->arg = plan->arg;
    c->site = plan->site;
}

static void place_on_own(struct fibre *fibre, const struct spawn_plan *plan)
{
    fibre->stack_size = plan->stack_size;
    fibre->rank = plan->rank;
    if (plan->pool)
        plain_store(&fibre->pool, plan->pool, memory_order_relaxed);
    if (plan->pin) {
        plain_store(&fibre->slow_wake, FIBRE_PINNED, memory_order_relaxed);
        fibre->home = plan->pin;
    }
}

static int make(struct thread *thread, struct cb *me, const struct spawn_plan *plan, struct cb **out)
{
    int error = count_in(thread);
    if (error)
        return error;
    struct cb *c = plan->shared ? cb_new_guest(thread, plan->shared) : cb_new(thread);
    if (!c) {
        count_back(thread);
        return -ENOMEM;
    }
    fill(c, plan);
    if (!plan->shared)
        place_on_own(fibre_of(c), plan);
    else
        guest_of(&c->member)->wipes = plan->wipes;
    ASSERT(!plan->pool || !plan->shared);
    plain_store(&c->extra, plan->extra, memory_order_release); /* pairs with cb_name in a dump [PB1] */
    c->counted = runtime_of(thread)->options.max_strands != 0;
    c->inherits = me ? locals_keep(own_of(me)->locals) : NULL;
    c->slow_end = c->counted || c->extra || c->inherits || plan->pin;
    *out = c;
    return 0;
}

/* Frees a strand that was not started. A dump may have a reference; the last reference then frees it. */
static void unmake(struct thread *thread, struct cb *c)
{
    locals_release(c->inherits);
    count_back(thread);
    if (c->guest)
        shared_fibre_release(thread, shared_of(c->member.fibre), SHARED_STRAND);
    cb_retire(thread, c);
}

/* ---- into a scope ---------------------------------------------------------------------------------------- */

/* For a scope with flags, whose lock protects its children. */
static int anchor_shared(struct thread *thread, struct scope *scope, struct cb *c)
{
    scope_lock(thread, scope);
    bool open = !scope->closed;
    if (open) {
        atomic_store_explicit(&c->ends, ENDS_NOTIFY, memory_order_relaxed); /* before the anchor is set: is_topmost */
        scope_anchor(scope, c);
        if (scope->cancelled)
            cancel_strand(thread, c, scope->cancel_reason, scope->owned); /* born cancelled */
    }
    scope_unlock(thread, scope);
    return open ? 0 : -ECANCELED;
}

static int anchor(struct thread *thread, struct scope *scope, struct cb *c)
{
    if (scope_is_service(scope)) {
        if (block_owner(&scope->block) == current_of(thread))
            (void)scope_reap(thread, scope);
        else
            scope_reap_for_owner(thread, scope);
    }
    if (scope->flags)
        return anchor_shared(thread, scope, c);
    if (UNLIKELY(scope_is_followed(scope))) /* a drop function, which the join calls, spawns */
        atomic_store_explicit(&c->ends, ENDS_NOTIFY, memory_order_relaxed);
    scope_anchor(scope, c);
    if (scope->cancelled)
        cancel_strand(thread, c, scope->cancel_reason, scope->owned);
    return 0;
}

/* Finds a scope that another strand opened, and takes a reference to it. */
static int scope_of_other_strand(struct thread *thread, struct cb *me, strand_scope handle, const char *function,
                                 struct scope **out)
{
    if (!handle_is_open(handle))
        scope_of_owner(me, handle, function); /* misuse */
    *out = handle_ref_scope(thread, handle, function);
    return *out ? 0 : -ECANCELED;
}

static inline __attribute__((always_inline)) void launch(struct thread *thread, struct cb *c)
{
    struct fibre *fibre = c->member.fibre;
    bool slow = fibre->slow_wake, here = fibre->pool == thread->pool;
    count_spawned(thread);
    if (UNLIKELY(!here))
        count_up(&thread->counts.departed);
    arch_san_release(c); /* do not read c after this: the thread that takes it may end and reuse it */
    if (UNLIKELY(slow))
        thread_ready_slow_(thread, &c->member, here);
    else if (LIKELY(here))
        thread_push(thread, fibre, PUSH_NEW);
    else
        pool_send(thread, fibre);
}

/* For STRAND_STACKS=shared in the environment, and strand_sim.shared_stacks. The caller may spawn onto the pool. */
static COLD int fibre_in_common(struct thread *thread, struct pool *pool, struct spawn_plan *plan)
{
    if (plan->shared || plan->pin || plan->rank || plan->stack_size != thread->usual)
        return 0;
    plan->pool = NULL; /* the fibre has a pool */
    return pool_common(thread, pool, &plan->shared);
}

/* Returns the pool of the new strand. */
static struct pool *pool_for(const struct thread *thread, const struct spawn_plan *plan)
{
    return plan->shared ? plan->shared->fibre.pool : plan->pool ? plan->pool : thread->pool;
}

static int anchor_and_launch(struct thread *thread, struct scope *scope, struct cb *c)
{
    int error = anchor(thread, scope, c);
    if (error) {
        unmake(thread, c);
        return error;
    }
    (void)pool_cancels(thread, scope, c); /* it has not started, so there is no strand to wake */
    launch(thread, c);
    return 0;
}

int spawn_own(struct thread *thread, struct scope *scope, struct pool *pool, int pin, bool alone, strand_fn *fn,
              void *arg, struct cb **out)
{
    bool elsewhere = pool != thread->pool;
    struct spawn_plan plan = {.fn = fn,
                              .arg = arg,
                              .site = __builtin_return_address(0),
                              .stack_size = thread->usual,
                              .pool = elsewhere ? pool : NULL};
    if (elsewhere && !pool_arrive(thread, pool))
        return -ESHUTDOWN;
    int error = pin < 0 ? 0 : pool_pin(thread, pool, pin, &plan.pin);
    if (!error && UNLIKELY(runtime_of(thread)->shares) && !alone)
        error = fibre_in_common(thread, pool, &plan);
    if (!error)
        error = make(thread, NULL, &plan, out);
    if (!error && (error = anchor(thread, scope, *out)))
        unmake(thread, *out);
    if (error && plan.pin)
        pool_unpin(plan.pin);
    if (error && elsewhere)
        pool_turn_back(thread, pool);
    return error;
}

void spawn_launch(struct thread *thread, struct cb *c)
{
    launch(thread, c);
}

int spawn_planned(struct thread *thread, struct cb *me, strand_scope handle, const char *function,
                  struct spawn_plan *plan, strand *out)
{
    struct scope *scope = handle_scope(handle);
    bool mine = scope && block_owner(&scope->block) == me;
    if (!plan->fn)
        MISUSE(function, "", "the function is NULL: pass the one to run");
    int error = mine ? 0 : scope_of_other_strand(thread, me, handle, function, &scope);
    if (error)
        return error;
    struct cb *c;
    struct pool *pool = pool_for(thread, plan);
    bool elsewhere = pool != thread->pool, arrived = elsewhere && pool_arrive(thread, pool);
    if (elsewhere && !arrived)
        error = -ESHUTDOWN;
    if (!error && UNLIKELY(runtime_of(thread)->shares))
        error = fibre_in_common(thread, pool, plan);
    if (!error)
        error = make(thread, me, plan, &c);
    if (!error) {
        *out = handle_of(c);
        error = anchor_and_launch(thread, scope, c);
        plan->extra = NULL; /* the strand owns it */
        if (UNLIKELY(scope_is_large(scope)))
            scope_recount(scope);
        if (UNLIKELY(atomic_load_explicit(&scope->hoards, memory_order_relaxed)))
            scope_report_hoard(thread, scope);
    }
    if (error && arrived)
        pool_turn_back(thread, pool);
    if (!mine)
        handle_unref_scope(thread, scope);
    return error;
}

static NOINLINE strand spawn_or_throw(strand_scope scope, strand_fn *fn, void *arg, void *site)
{
    struct thread *thread = must_be_strand("strand_spawn");
    struct cb *me = current_of(thread);
    struct spawn_plan plan = {.fn = fn, .arg = arg, .site = site, .stack_size = thread->usual};
    must_not_escape(thread, arg, "the argument", "strand_spawn");
    strand result;
    int error = spawn_planned(thread, me, scope, "strand_spawn", &plan, &result);
    if (error)
        spawn_throw(me, error);
    return result;
}

/* The fast path ends with one of these calls, if it needs one: so it keeps nothing across a call, and saves no
 * registers. */
static NOINLINE strand launch_apart(struct thread *thread, struct cb *c, strand result)
{
    launch(thread, c);
    return result;
}

static NOINLINE strand kick_apart(struct thread *thread, strand result)
{
    pool_kick_(thread, thread->pool);
    return result;
}

/* As launch, for a strand with a private fibre of this pool. */
static inline __attribute__((always_inline)) strand launch_here(struct thread *thread, struct cb *c, strand result)
{
    struct runq *queue = &thread->runq;
    if (UNLIKELY(!runq_try_enter(thread, queue)))
        return launch_apart(thread, c, result);
    count_spawned(thread);
    arch_san_release(c); /* as in launch */
    bool notify = stealing_put(queue, fibre_of(c));
    runq_leave(thread, queue);
    return notify && pool_is_waited_for(thread) ? kick_apart(thread, result) : result;
}

/* Returns the scope behind a handle, if the caller is its owner; otherwise NULL. The innermost open block of the caller
 * is its own, so if the handle names that, only the serial is left to check. */
static inline struct scope *scope_of_caller(const struct cb *me, strand_scope handle)
{
    struct block *innermost = own_of(me)->blocks;
    if (LIKELY(innermost && handle.bits[0] == (uintptr_t)innermost)) {
        uint64_t word = atomic_load_explicit(&innermost->word, memory_order_relaxed);
        return LIKELY(word_serial(word) == handle.bits[1] >> 1) ? CONTAINER(innermost, struct scope, block) : NULL;
    }
    struct scope *scope = handle_scope(handle);
    return scope && block_owner(&scope->block) == me ? scope : NULL;
}

/* Whether the scope is a plain one of the caller, and there is nothing to inherit or to count. */
static inline bool spawns_plainly(struct thread *thread, strand_scope handle)
{
    const struct cb *me = current_of(thread);
    const struct scope *scope = scope_of_caller(me, handle);
    return scope && !thread_on_shared(thread) && !scope->flags && scope->count < scope->recount_at &&
           !scope->cancelled && !own_of(me)->locals && !runtime_of(thread)->slow_spawn && thread->stealing;
}

/* If spawns_plainly. */
static inline __attribute__((always_inline)) strand spawn_plainly(struct thread *thread, struct fibre *fibre,
                                                                  strand_scope handle, const struct spawn_plan *plan)
{
    uint64_t serial = next_serial(worker_of(thread));
    struct cb *c = cb_make(thread, fibre, serial);
    fill(c, plan);
    fibre->stack_size = thread->usual;
    scope_anchor((struct scope *)(uintptr_t)handle.bits[0], c);
    return launch_here(thread, c, (strand){{(uint64_t)(uintptr_t)c, serial}});
}

/* As the fast path, for a thread that has to call others for memory or a serial, or is simulated. */
static NOINLINE strand spawn_apart(struct thread *thread, strand_scope handle, strand_fn *fn, void *arg, void *site)
{
    struct fibre *fibre = platform_slab_get(thread, &worker_of(thread)->cbs);
    const struct spawn_plan plan = {.fn = fn, .arg = arg, .site = site};
    return fibre ? spawn_plainly(thread, fibre, handle, &plan) : spawn_or_throw(handle, fn, arg, site);
}

/* The fast path. */
strand strand_spawn(strand_scope handle, strand_fn *fn, void *arg)
{
    struct thread *thread = thread_self();
    void *site = __builtin_return_address(0);
    if (UNLIKELY(!fn || !thread || !thread->current || !spawns_plainly(thread, handle)))
        return spawn_or_throw(handle, fn, arg, site);
    struct worker *worker = worker_of(thread);
    if (UNLIKELY(thread->platform || !worker->cbs.free || !has_serials(worker)))
        return spawn_apart(thread, handle, fn, arg, site);
    const struct spawn_plan plan = {.fn = fn, .arg = arg, .site = site};
    return spawn_plainly(thread, slab_get(&worker->cbs), handle, &plan);
}
