/*
 * Systems of actors: opening, stopping, and leaving one. The protocol block is in actor.h.
 */
#include "actor_timers.h"
#include "cell.h"
#include "dispatch.h"
#include "event_stream.h"
#include "message.h"
#include "registry.h"
#include "runners.h"

#include "../strand/exception.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the guardians ----------------------------------------------------------------------------------------- */

static void receive_nothing(void *state, strand_message *message)
{
    (void)state;
    strand_message_unhandled(message);
}

static enum strand_directive pass_on(void *state, strand_actor child, const strand_exception *why)
{
    (void)state, (void)child, (void)why;
    return STRAND_ESCALATE;
}

/* If a guardian's child is restarted more often than that, the system fails. */
static const strand_actor_class root_class = {.size = sizeof root_class,
                                              .name = "/",
                                              .receive = receive_nothing,
                                              .decide = pass_on},
                                guardian_class = {.size = sizeof guardian_class,
                                                  .name = "guardian",
                                                  .receive = receive_nothing,
                                                  .max_restarts = 10,
                                                  .restarts_within_ns = 60 * STRAND_S};

/* ---- opening ----------------------------------------------------------------------------------------------- */

/* A system without runners and actors. NULL: no memory. */
static struct system *make_system(struct thread *thread)
{
    struct system *system =
        platform_refuses(thread) ? NULL : aligned_alloc(CACHE_LINE, (sizeof *system + 63) & ~(size_t)63);
    if (!system)
        return NULL;
    memset(system, 0, sizeof *system);
    if (!registry_open(thread, system)) {
        free(system);
        return NULL;
    }
    system->runtime = runtime_of(thread);
    system->thread = thread->index;
    actor_timers_open(&system->timers);
    list_init(&system->living);
    list_init(&system->ended);
    list_init(&system->failed);
    return system;
}

/* Stopping an actor wakes it, which takes an activation: a first chunk of these, which stays with the run, lets a
 * system end even without memory. */
static int reserve_activations(struct thread *thread)
{
    struct slab_cache *activations = &actor_thread_of(thread)->activations;
    struct activation *activation = platform_slab_get(thread, activations);
    if (!activation)
        return -ENOMEM;
    slab_put(activations, activation);
    return 0;
}

static int make_guardians(struct thread *thread, struct system *system)
{
    struct cell_type *top = cell_type_of(thread, &system->default_runners, &root_class, 0),
                     *below = cell_type_of(thread, &system->default_runners, &guardian_class, 0);
    if (!top || !below)
        return -ENOMEM;
    int error = cell_make(thread, top, (strand_actor){{0, 0}}, NULL, NULL, 0, NULL, &system->root);
    if (!error)
        error = cell_make(thread, below, system->root, "user", NULL, 0, NULL, &system->user);
    if (!error)
        error = cell_make(thread, below, system->root, "system", NULL, 0, NULL, &system->own);
    return error;
}

static void free_system(struct thread *thread, struct system *system)
{
    struct link *link;
    while ((link = list_pop_front(&system->living)) || (link = list_pop_front(&system->ended)) ||
           (link = list_pop_front(&system->failed))) {
        struct runner *r = CONTAINER(link, struct runner, others);
        arch_san_release(r);
        slab_put(&actor_thread_of(thread)->runners, r);
    }
    struct cell_type *type = atomic_load_explicit(&system->types, memory_order_acquire); /* [PB1] */
    for (struct cell_type *next_type; type; type = next_type) {
        next_type = type->next;
        free(type);
    }
    for (struct index_node *first; (first = index_first(&system->further_types));) {
        index_remove(&system->further_types, first);
        free(CONTAINER(first, struct cell_type, by_parts));
    }
    registry_close(thread, system);
    dispatch_free(system);
    actor_timers_close(&system->timers);
    event_stream_close(system);
    free(system->names.buckets);
    free(system);
}

/* Free a system that is partly made. */
static void give_up(struct thread *thread, struct system *system)
{
    const strand_actor made[] = {system->own, system->user, system->root};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (made[i].bits[1])
            cell_unmake(thread, made[i]);
    runners_close(thread, system);
    strand_scope_cancel(system->scope, NULL);
    strand_scope_leave_(&system->scope);
    free_system(thread_self(), system);
}

strand_actors strand_actors_enter_(const strand_actors_attr *attr, const char *file, int line)
{
    struct thread *thread = must_be_strand("STRAND_ACTORS");
    struct cb *me = current_of(thread);
    may_suspend(thread, me, "STRAND_ACTORS");
    if (attr)
        must_have_size(attr->size, sizeof *attr, "strand_actors_attr", "STRAND_ACTORS");
    strand_scope scope = strand_scope_enter_(STRAND_OPEN, file, line); /* it throws, or is left below */
    struct system *system = make_system(thread);
    if (!system) {
        strand_scope_leave_(&scope);
        throw_no_memory(me, "a system of actors");
    }
    snprintf(system->name, sizeof system->name, "%s", attr && attr->name ? attr->name : "actors");
    system->scope = scope;
    system->serve = turns_serve;
    atomic_store_explicit(&system->runtime->refused, runners_refused, memory_order_release); /* [PB1] */
    strand_actors handle = registry_handle(system);
    int error = reserve_activations(thread);
    if (!error)
        error = runners_open(thread, system, &system->default_runners, thread->pool, -1, 0);
    thread = thread_self();
    if (!error)
        error = make_guardians(thread, system);
    if (error) {
        give_up(thread, system);
        throw_system(me, error, "a system of actors");
    }
    registry_add(thread, system);
    if (attr && (error = dispatch_open(thread, system, attr->dispatchers, attr->dispatchers_count))) {
        strand_actors_leave_(&handle);
        throw_system(me, error, "the dispatchers of a system of actors");
    }
    return handle;
}

/* ---- the end ----------------------------------------------------------------------------------------------- */

/* Leaving the system's scope may throw. */
struct system_end {
    struct system *system;
};

static void free_at_the_end(struct system_end *end)
{
    free_system(thread_self(), end->system);
}

static int stop(struct thread *thread, struct system *system, uint32_t calls)
{
    return cell_call(thread, system->root, calls);
}

void strand_actors_stop(strand_actors handle, enum strand_actor_stopping how)
{
    struct thread *thread = must_be_strand("strand_actors_stop");
    struct system *system = registry_find(thread, handle, "strand_actors_stop");
    while (stop(thread, system, CALL_STOP | (how == STRAND_STOP_NOW ? CALL_NOW : 0)) == -ENOMEM) {
        may_suspend(thread, current_of(thread), "strand_actors_stop");
        thread = runners_await_memory();
    }
}

static void forget_joiner(struct system **system)
{
    atomic_store_explicit(&(*system)->joiner, NULL, memory_order_relaxed);
}

void strand_actors_join(strand_actors handle)
{
    struct thread *thread = must_be_strand("strand_actors_join");
    struct cb *me = current_of(thread);
    may_block(thread, me, "strand_actors_join");
    struct system *system __attribute__((cleanup(forget_joiner))) = registry_find(thread, handle, "strand_actors_join");
    if (((struct scope *)(uintptr_t)system->scope.bits[0])->block.owner != me)
        MISUSE_SCOPE("strand_actors_join", (struct scope *)(uintptr_t)system->scope.bits[0],
                     "only the strand that opened a system may wait for it: others use strand_actor_wait");
    runtime_of(thread)->ops->wait_quiescent_or(thread, me, &system->joiner, &system->has_ended);
    arch_san_acquire(system->name);
    yield_if_asked(thread_self());
}

void strand_actors_leave_(strand_actors *handle)
{
    struct thread *thread = must_be_strand("STRAND_ACTORS");
    struct cb *me = current_of(thread);
    may_suspend(thread, me, "STRAND_ACTORS");
    struct system *system = registry_find(thread, *handle, "STRAND_ACTORS");
    struct block *block = &((struct scope *)(uintptr_t)system->scope.bits[0])->block;
    bool by_exception = block_flight(thread, me, block) || block_foreign(thread, block);
    uint32_t calls = CALL_STOP | (by_exception ? CALL_NOW : 0);
    {
        STRAND_SHIELD;
        while (stop(thread, system, calls) == -ENOMEM)
            thread = runners_await_memory();
        strand_event_wait(&system->over);
    }
    registry_remove(thread_self(), system);
    event_stream_summarize(system);
    runners_close(thread_self(), system);
    struct system_end end __attribute__((cleanup(free_at_the_end), unused)) = {system};
    strand_scope_cancel(system->scope, NULL); /* their ends are expected */
    strand_scope_leave_(&system->scope);
}
