/*
 * Spawning with attributes: strand_spawn_with.
 */
#include "spawn.h"

#include "escape.h"
#include "fibre.h"
#include "handle.h"
#include "misuse.h"
#include "pool.h"

#include "../sched/resize.h"
#include "sized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A field that the caller's header knows. */
#define ATTR(attr, field)                                                                                              \
    ((attr) && (attr)->size >= offsetof(strand_attr, field) + sizeof((attr)->field) ? (attr)->field : 0)

#define ATTR_HANDLE(attr, field)                                                                                       \
    ((attr) && (attr)->size >= offsetof(strand_attr, field) + sizeof((attr)->field) && (attr)->field.bits[1])

static int plan_extra(struct thread *thread, struct spawn_plan *plan, const strand_attr *attr, const void *args,
                      size_t size)
{
    const char *name = ATTR(attr, name);
    void (*drop)(void *) = ATTR(attr, drop);
    if (!name && !drop && !size)
        return 0;
    struct extra *extra = size > SIZE_MAX / 2 ? NULL : platform_malloc(thread, sizeof *extra + size);
    if (!extra)
        return -ENOMEM;
    size_t length = name ? strnlen(name, sizeof extra->name - 1) : 0;
    extra->drop = drop;
    extra->size = size;
    if (length)
        memcpy(extra->name, name, length);
    extra->name[length] = '\0';
    if (size) {
        must_not_escape_copied(thread, args, size, NULL, "the argument", "strand_spawn_with");
        plan->arg = memcpy(extra + 1, args, size);
    }
    plan->extra = extra;
    return 0;
}

/* References to the target of a spawn, which release_target releases. */
struct spawn_target {
    struct opened_pool *pool; /* attr.pool, or NULL */
    struct fibres *fibres;    /* attr.fibre, or NULL */
};

static void choose_fibre(struct thread *thread, const strand_attr *attr, struct spawn_plan *plan,
                         struct spawn_target *target)
{
    const char *chosen = ATTR(attr, stack_size) ? "stack_size"
                         : plan->pool           ? "pool"
                         : ATTR(attr, pin)      ? "pin"
                         : ATTR(attr, rank)     ? "rank"
                                                : NULL;
    if (chosen)
        MISUSE("strand_spawn_with", "",
               "attr.fibre has a stack and a pool already, whose threads all run it: attr.%s can't be chosen", chosen);
    target->fibres = fibres_ref(thread, attr->fibre, "strand_spawn_with");
    plan->shared = fibres_choose(target->fibres);
}

/* Returns 0 or a negated errno code. */
static int choose_thread(struct thread *thread, int pin, struct spawn_plan *plan)
{
    struct pool *pool = plan->pool ? plan->pool : thread->pool;
    if (pin < STRAND_PIN_HERE || pin > THREADS_MOST)
        MISUSE("strand_spawn_with", "", "attr.pin is %d, not STRAND_PIN_HERE or STRAND_PIN(index)", pin);
    if (pin == STRAND_PIN_HERE && pool != thread->pool)
        MISUSE("strand_spawn_with", "", "attr.pin is STRAND_PIN_HERE, but attr.pool is another than the caller's");
    return pool_pin(thread, pool, pin == STRAND_PIN_HERE ? thread->index : pin - 1, &plan->pin);
}

static int choose_target(struct thread *thread, const strand_attr *attr, struct spawn_plan *plan,
                         struct spawn_target *target)
{
    if (ATTR_HANDLE(attr, pool)) {
        target->pool = pool_find(thread, attr->pool, "strand_spawn_with");
        plan->pool = pool_behind(target->pool);
    }
    if (ATTR_HANDLE(attr, fibre))
        choose_fibre(thread, attr, plan, target);
    else if (ATTR(attr, wipe))
        MISUSE("strand_spawn_with", "", "attr.wipe applies to strands on shared fibres: attr.fibre names none");
    else if (ATTR(attr, pin))
        return choose_thread(thread, ATTR(attr, pin), plan);
    return 0;
}

static void release_target(struct thread *thread, const struct spawn_target *target)
{
    if (target->fibres)
        fibres_unref(thread, target->fibres);
    if (target->pool)
        pool_unref(target->pool);
}

strand strand_spawn_with(strand_scope scope, const strand_attr *attr, strand_fn *fn, const void *args, size_t size)
{
    struct thread *thread = must_be_strand("strand_spawn_with");
    struct cb *me = current_of(thread);
    if (attr)
        must_have_size(attr->size, offsetof(strand_attr, stack_size), "strand_attr", "strand_spawn_with");
    size_t stack = ATTR(attr, stack_size);
    union {
        const void *in;
        void *out;
    } borrowed = {args};
    struct spawn_plan plan = {.fn = fn,
                              .arg = borrowed.out,
                              .site = __builtin_return_address(0),
                              .stack_size = stack ? stack_round(stack) : thread->sub->memory.stacks.usual,
                              .rank = ATTR(attr, rank),
                              .wipes = ATTR(attr, wipe)};
    strand result;
    struct spawn_target target = {NULL, NULL};
    if (size)
        must_be_there(args, "argument to be copied", "strand_spawn_with");
    else
        must_not_escape(thread, args, "the argument", "strand_spawn_with");
    int error = choose_target(thread, attr, &plan, &target);
    if (!error)
        error = plan.stack_size ? plan_extra(thread, &plan, attr, args, size) : -ENOMEM;
    if (!error)
        error = spawn_planned(thread, me, scope, "strand_spawn_with", &plan, &result);
    release_target(thread, &target);
    if (UNLIKELY(error)) {
        if (plan.pin)
            pool_unpin(plan.pin);
        cb_extra_free(plan.extra, plan.wipes);
        spawn_throw(me, error);
    }
    return result;
}
