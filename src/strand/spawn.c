/*
 * Spawning, and the frame that every strand's function runs in.
 */
#include "cancel.h"
#include "end.h"
#include "exception.h"
#include "handle.h"
#include "local.h"
#include "misuse.h"
#include "run.h"
#include "scope.h"

#include "../sched/switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- running --------------------------------------------------------------------------------------------- */

/* The strands that run on this stack, one after the other, share one try block (try.c), which is set up once: so the
 * end of the stack is never reached. */
struct serving {
    struct strand_try_ try;
};

ARCH_NOT_INSTRUMENTED static COLD void catch_all(struct serving *serving, struct cb *c)
{
    c->exception = exception_land(c);
    c->odd = true;
    ASSERT(!c->flight && !c->depth);
    c->floor = 0;
    arch_longjmp(serving->try.jump, STRAND_TRY_FORM_);
}

ARCH_NOT_INSTRUMENTED static void leave_serving(struct serving *serving)
{
    struct cb *c = current_of(thread_self());
    if (c->flight)
        catch_all(serving, c);
}

static inline void *call(struct cb *c, struct thread *thread)
{
    if (UNLIKELY(thread->cxx != NULL))
        return arch_call(c->fn, c->arg); /* says so if a C++ exception leaves it */
    return c->fn(c->arg);
}

/* thrown: the current strand has ended already, by an exception. */
__attribute__((noreturn)) static NOINLINE void serve(struct thread *thread, struct strand_try_ *try, bool thrown)
{
    for (;; thrown = false) {
        struct cb *c = current_of(thread);
        if (LIKELY(!thrown)) {
            arch_note_acquire(c);
            c->started = true;
            c->tries = try;
            c->result = call(c, thread);
            thread = thread_self();
        }
        end_strand(thread, c);
        thread = switch_serve_next(thread);
    }
}

void serve_strands(struct thread *thread)
{
    struct serving serving __attribute__((cleanup(leave_serving)));
    serving.try.outer = NULL;
    serving.try.in_flight = NULL;
    bool thrown = STRAND_TRY_SETJMP_(serving.try) != 0;
    serve(thrown ? thread_self() : thread, &serving.try, thrown);
}

/* ---- making ---------------------------------------------------------------------------------------------- */

NOINLINE void throw_system(struct cb *me, int error, const char *what)
{
    strand_exception *e = exception_new(&STRAND_SYSTEM, "%s: %s", what, error_words(error));
    e->code = error;
    exception_trace(e, SEGMENT_THROWN, me);
    exception_throw(me, e);
}

void throw_no_memory(struct cb *me, const char *what)
{
    throw_system(me, -ENOMEM, what);
}

__attribute__((noreturn)) static NOINLINE void throw_spawn(struct cb *me, int error)
{
    throw_system(me, error,
                 error == -EAGAIN      ? "spawning: as many strands exist as options.max_strands allows"
                 : error == -ECANCELED ? "spawning into an open scope that has been left"
                                       : "spawning");
}

/* Count one more strand against the limit, if there is one. */
static int count_in(struct thread *thread)
{
    struct runtime *runtime = runtime_of(thread);
    if (LIKELY(!runtime->options.max_strands))
        return 0;
    int64_t live = atomic_fetch_add_explicit(&runtime->live, 1, memory_order_relaxed);
    if (live < (int64_t)runtime->options.max_strands)
        return 0;
    atomic_fetch_sub_explicit(&runtime->live, 1, memory_order_relaxed);
    return -EAGAIN;
}

static void count_back(struct thread *thread)
{
    if (runtime_of(thread)->options.max_strands)
        atomic_fetch_sub_explicit(&runtime_of(thread)->live, 1, memory_order_relaxed);
}

/* What a new strand is made of. */
struct plan {
    strand_fn *fn;
    void *arg;
    void *site;
    size_t stack_size;
    struct extra *extra;
    struct pool *pool; /* NULL: the spawner's */
};

static inline void fill(struct cb *c, struct cb *parent, const struct plan *plan)
{
    c->fn = plan->fn;
    c->arg = plan->arg;
    c->site = plan->site;
    c->parent = cb_id(parent);
    c->own.stack_size = plan->stack_size;
}

static int make(struct thread *thread, struct cb *me, const struct plan *plan, struct cb **out)
{
    int error = count_in(thread);
    if (error)
        return error;
    struct cb *c = cb_new(thread);
    if (!c) {
        count_back(thread);
        return -ENOMEM;
    }
    fill(c, me, plan);
    if (plan->pool)
        c->own.pool = plan->pool;
    c->extra = plan->extra;
    c->counted = runtime_of(thread)->options.max_strands != 0;
    c->locals = locals_keep(me->locals);
    c->odd = c->counted || c->extra || c->locals;
    *out = c;
    return 0;
}

static void unmake(struct thread *thread, struct cb *c)
{
    locals_release(c->locals);
    c->locals = NULL;
    count_back(thread);
    c->extra = NULL; /* it stays the caller's */
    cb_free(thread, c);
}

/* ---- into a scope ---------------------------------------------------------------------------------------- */

/* Into a scope with flags: its children are under its lock. */
static int anchor_shared(struct thread *thread, struct scope *scope, struct cb *c)
{
    scope_lock(thread, scope);
    bool open = !scope->closed;
    if (open) {
        scope_anchor(scope, c);
        if (scope_notifies(scope))
            atomic_store_explicit(&c->ends, ENDS_NOTIFY, memory_order_relaxed);
        if (scope->cancelled)
            cancel_strand(thread, c, scope->note, scope->owned); /* born cancelled */
    }
    scope_unlock(thread, scope);
    return open ? 0 : -ECANCELED;
}

static int anchor(struct thread *thread, struct scope *scope, struct cb *c)
{
    if (scope->flags)
        return anchor_shared(thread, scope, c);
    scope_anchor(scope, c);
    if (scope->cancelled)
        cancel_strand(thread, c, scope->note, scope->owned);
    return 0;
}

/* A scope that somebody else opened: pinned. */
static int strangers_scope(struct thread *thread, struct cb *me, strand_scope handle, const char *function,
                           struct scope **out)
{
    if (!handle_is_open(handle))
        scope_of_owner(me, handle, function); /* misuse */
    *out = pin_scope(thread, handle);
    return *out ? 0 : -ECANCELED;
}

static inline __attribute__((always_inline)) void launch(struct thread *thread, struct cb *c)
{
    bool here = c->own.pool == thread->pool;
    count_spawned(thread);
    arch_note_release(c); /* whoever takes it may end and reuse it */
    if (LIKELY(here))
        thread_push(thread, &c->own, PUSH_NEW);
    else
        pool_deliver(thread, &c->own);
}

/* Does all or nothing. */
static int spawn(struct thread *thread, struct cb *me, strand_scope handle, const char *function,
                 const struct plan *plan, strand *out)
{
    struct scope *scope = handle_scope(handle);
    bool mine = scope && block_owner(&scope->block) == me;
    if (!plan->fn)
        MISUSE(function, "", "the function is NULL");
    int error = mine ? 0 : strangers_scope(thread, me, handle, function, &scope);
    if (error)
        return error;
    struct cb *c;
    error = make(thread, me, plan, &c);
    if (!error) {
        *out = handle_of(c);
        error = anchor(thread, scope, c);
        if (error)
            unmake(thread, c);
        else
            launch(thread, c);
    }
    if (!mine)
        unpin_scope(thread, scope);
    return error;
}

static NOINLINE strand spawn_or_throw(struct thread *thread, strand_scope scope, strand_fn *fn, void *arg, void *site)
{
    struct cb *me = current_of(thread);
    struct plan plan = {fn, arg, site, thread->usual, NULL, NULL};
    strand result;
    int error = spawn(thread, me, scope, "strand_spawn", &plan, &result);
    if (error)
        throw_spawn(me, error);
    return result;
}

/* By hand what spawn_or_throw does for a plain scope of the caller's, where nothing is to be inherited or counted. */
strand strand_spawn(strand_scope handle, strand_fn *fn, void *arg)
{
    struct thread *thread = must_be_strand("strand_spawn");
    struct cb *me = current_of(thread);
    struct scope *scope = handle_scope(handle);
    bool plain = fn && scope && block_owner(&scope->block) == me && !scope->flags && !scope->cancelled && !me->locals &&
                 !runtime_of(thread)->options.max_strands;
    struct cb *c = LIKELY(plain) ? cb_new(thread) : NULL;
    if (UNLIKELY(!c))
        return spawn_or_throw(thread, handle, fn, arg, __builtin_return_address(0));
    struct plan plan = {fn, arg, __builtin_return_address(0), thread->usual, NULL, NULL};
    fill(c, me, &plan);
    scope_anchor(scope, c);
    strand result = handle_of(c);
    launch(thread, c);
    return result;
}

/* ---- with attributes ------------------------------------------------------------------------------------- */

/* A field that the caller's header knows. */
#define ATTR(attr, field)                                                                                              \
    ((attr) && (attr)->size >= offsetof(strand_attr, field) + sizeof((attr)->field) ? (attr)->field : 0)

strand_pool *strand_pool_self(void)
{
    return (strand_pool *)must_be_strand("strand_pool_self")->pool;
}

static struct pool *pool_of(struct thread *thread, strand_pool *handle)
{
    struct pool *pool = (struct pool *)handle;
    if (pool && pool != &thread->sub->pool)
        MISUSE("strand_spawn_with", "", "attr.pool is not a pool of this run");
    return pool;
}

static int plan_extra(struct plan *plan, const strand_attr *attr, const void *args, size_t size)
{
    const char *name = ATTR(attr, name);
    void (*drop)(void *) = ATTR(attr, drop);
    if (!name && !drop && !size)
        return 0;
    struct extra *extra = size > SIZE_MAX / 2 ? NULL : malloc(sizeof *extra + size);
    if (!extra)
        return -ENOMEM;
    size_t length = name ? strnlen(name, sizeof extra->name - 1) : 0;
    extra->drop = drop;
    if (length)
        memcpy(extra->name, name, length);
    extra->name[length] = '\0';
    if (size) {
        memcpy(extra->args, args, size);
        plan->arg = extra->args;
    }
    plan->extra = extra;
    return 0;
}

strand strand_spawn_with(strand_scope scope, const strand_attr *attr, strand_fn *fn, const void *args, size_t size)
{
    struct thread *thread = must_be_strand("strand_spawn_with");
    struct cb *me = current_of(thread);
    if (attr && (attr->size < offsetof(strand_attr, stack_size) || attr->size > 4096))
        MISUSE("strand_spawn_with", "", "strand_attr.size is %zu, not sizeof(strand_attr)", attr->size);
    size_t stack = ATTR(attr, stack_size);
    union {
        const void *in;
        void *out;
    } borrowed = {args};
    struct plan plan = {fn,
                        borrowed.out,
                        __builtin_return_address(0),
                        stack ? stack_round(stack) : thread->sub->stacks.usual,
                        NULL,
                        pool_of(thread, ATTR(attr, pool))};
    strand result;
    int error = plan.stack_size ? plan_extra(&plan, attr, args, size) : -ENOMEM;
    if (!error)
        error = spawn(thread, me, scope, "strand_spawn_with", &plan, &result);
    if (UNLIKELY(error)) {
        free(plan.extra);
        throw_spawn(me, error);
    }
    return result;
}
