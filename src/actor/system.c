/*
 * Systems of actors: opening, leaving, and the public functions for actors. The protocol block is in actor.h.
 */
#include "system.h"

#include "cell.h"
#include "clock.h"
#include "dispatch.h"
#include "events.h"
#include "message.h"
#include "more.h"
#include "outside.h"
#include "place.h"

#include "../strand/escape.h"
#include "../strand/exception.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the guardians ----------------------------------------------------------------------------------------- */

static void receive_nothing(void *state, strand_message *message)
{
    (void)state;
    strand_unhandled(message);
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
                                                  .restarts_most = 10,
                                                  .restarts_within = 60 * STRAND_S};

void system_over(struct system *system)
{
    atomic_store_explicit(&system->has_ended, true, memory_order_seq_cst);
    struct cb *joiner = atomic_load_explicit(&system->joiner, memory_order_seq_cst);
    if (joiner)
        runtime_of(thread_self())->ops->wake_dry(thread_self(), joiner);
    strand_event_set(&system->over); /* from here on the system may be gone */
}

/* Returns NULL if it has ended. Under the lock of all systems, which keeps its system from ending. */
static struct system *system_of_actor(struct thread *thread, strand_actor actor)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!ref_is_ours(thread, actor) || !cell_lock(thread, cell, ref_serial(actor), &word))
        return NULL;
    struct system *system = cell_kind(cell)->system;
    cell_unlock(cell, word);
    return system;
}

void system_letter(struct thread *thread, strand_actor to, const strand_message *message)
{
    struct runtime *runtime = runtime_of(thread);
    spin_lock(&runtime->actors_lock, thread);
    struct system *system = system_of_actor(thread, to);
    if (!system)
        system = runtime->actors;
    if (system)
        events_letter(thread, system, STRAND_ON_DEAD_LETTER, to, message);
    spin_unlock(&runtime->actors_lock);
}

static void link_system(struct thread *thread, struct system *system)
{
    struct runtime *runtime = runtime_of(thread);
    spin_lock(&runtime->actors_lock, thread);
    system->older = runtime->actors;
    runtime->actors = system;
    spin_unlock(&runtime->actors_lock);
}

static void unlink_system(struct thread *thread, struct system *system)
{
    struct runtime *runtime = runtime_of(thread);
    spin_lock(&runtime->actors_lock, thread);
    struct system **at = &runtime->actors;
    while (*at != system)
        at = &(*at)->older;
    *at = system->older;
    spin_unlock(&runtime->actors_lock);
}

/* ---- opening ----------------------------------------------------------------------------------------------- */

/* The target of a handle, in the slab of promises. */
struct door {
    _Atomic uint64_t word; /* as in a promise */
    struct system *system;
};
_Static_assert(sizeof(struct door) <= PROMISE_SIZE, "it lies in a slab");

static uint64_t serial_of(const struct door *door)
{
    return word_serial(atomic_load_explicit(&door->word, memory_order_acquire));
}

static strand_actors handle_of_system(const struct system *system)
{
    return (strand_actors){{(uint64_t)(uintptr_t)system->door, serial_of(system->door) | MARK_ACTORS}};
}

struct system *system_of(struct thread *thread, strand_actors handle, const char *function)
{
    struct door *door = (struct door *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(door) || !slab_has(&runtime_of(thread)->promises, door) ||
        (serial_of(door) | MARK_ACTORS) != handle.bits[1])
        MISUSE(function, "",
               handle.bits[1]
                   ? "the system of actors is gone: its block has been left. Use the handle within that block"
                   : "there is no system of actors behind {0}: STRAND_ACTORS opens one");
    return door->system;
}

/* Stopping an actor wakes it, which takes a task: a first chunk of these, which stays with the run, lets a system end
 * even without memory. */
static int reserve_tasks(struct thread *thread)
{
    struct slab_cache *tasks = &worker_of(thread)->tasks;
    struct task *task = driver_slab_get(thread, tasks);
    if (!task)
        return -ENOMEM;
    slab_put(tasks, task);
    return 0;
}

static int make_guardians(struct thread *thread, struct system *system)
{
    struct kind *top = kind_of(thread, &system->place, &root_class, 0),
                *below = kind_of(thread, &system->place, &guardian_class, 0);
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
    while ((link = list_pop_front(&system->runners)) || (link = list_pop_front(&system->ended)) ||
           (link = list_pop_front(&system->failed))) {
        struct runner *r = CONTAINER(link, struct runner, others);
        arch_note_release(r);
        slab_put(&worker_of(thread)->runners, r);
    }
    struct kind *next_kind;
    for (struct kind *kind = atomic_load_explicit(&system->kinds, memory_order_acquire); kind; kind = next_kind) {
        next_kind = kind->next;
        free(kind);
    }
    for (struct index_node *first; (first = index_first(&system->more_kinds));) {
        index_remove(&system->more_kinds, first);
        free(CONTAINER(first, struct kind, by_parts));
    }
    atomic_store_explicit(&system->door->word, word_freed(serial_of(system->door) << WORD_SERIAL),
                          memory_order_release);
    slab_put(&worker_of(thread)->promises, system->door);
    dispatch_free(system);
    clock_close(&system->clock);
    events_close(system);
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
    place_close(thread, system);
    strand_scope_cancel(system->scope, NULL);
    strand_scope_leave_(&system->scope);
    free_system(thread_self(), system);
}

strand_actors strand_actors_enter_(const strand_actors_attr *attr, const char *file, int line)
{
    struct thread *thread = must_be_strand("STRAND_ACTORS");
    struct cb *me = current_of(thread);
    if (attr && attr->size != sizeof *attr)
        MISUSE("STRAND_ACTORS", "", "strand_actors_attr.size is %zu, not sizeof(strand_actors_attr)", attr->size);
    strand_scope scope = strand_scope_enter_(STRAND_OPEN, file, line); /* it throws, or is left below */
    struct door *door = driver_slab_get(thread, &worker_of(thread)->promises);
    struct system *system =
        !door || driver_refuses(thread) ? NULL : aligned_alloc(CACHE_LINE, (sizeof *system + 63) & ~(size_t)63);
    if (!system) {
        if (door)
            slab_put(&worker_of(thread)->promises, door);
        strand_scope_leave_(&scope);
        throw_no_memory(me, "a system of actors");
    }
    memset(system, 0, sizeof *system);
    system->runtime = runtime_of(thread);
    clock_open(&system->clock);
    list_init(&system->runners);
    list_init(&system->ended);
    list_init(&system->failed);
    system->door = door;
    door->system = system;
    atomic_store_explicit(&door->word, next_serial(worker_of(thread)) << WORD_SERIAL, memory_order_release);
    snprintf(system->name, sizeof system->name, "%s", attr && attr->name ? attr->name : "actors");
    system->scope = scope;
    atomic_store_explicit(&system->runtime->refused, place_refused, memory_order_release);
    system->thread = thread->index;
    strand_actors handle = handle_of_system(system);
    int error = reserve_tasks(thread);
    if (!error)
        error = place_open(thread, system, &system->place, thread->pool, -1, 0);
    thread = thread_self();
    if (!error)
        error = make_guardians(thread, system);
    if (error) {
        give_up(thread, system);
        throw_system(me, error, "a system of actors");
    }
    link_system(thread, system);
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

void strand_actors_stop(strand_actors handle, enum strand_stopping how)
{
    struct thread *thread = must_be_strand("strand_actors_stop");
    struct system *system = system_of(thread, handle, "strand_actors_stop");
    while (stop(thread, system, CALL_STOP | (how == STRAND_STOP_NOW ? CALL_NOW : 0)) == -ENOMEM)
        thread = place_await_memory();
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
    struct system *system __attribute__((cleanup(forget_joiner))) = system_of(thread, handle, "strand_actors_join");
    if (((struct scope *)(uintptr_t)system->scope.bits[0])->block.owner != me)
        MISUSE_SCOPE("strand_actors_join", (struct scope *)(uintptr_t)system->scope.bits[0],
                     "only the strand that opened a system may wait for it: others use strand_actor_wait");
    runtime_of(thread)->ops->wait_dry_or(thread, me, &system->joiner, &system->has_ended);
    arch_note_acquire(system->name);
    give_way_after(thread_self());
}

void strand_actors_leave_(strand_actors *handle)
{
    struct thread *thread = must_be_strand("STRAND_ACTORS");
    struct system *system = system_of(thread, *handle, "STRAND_ACTORS");
    struct cb *me = current_of(thread);
    struct block *block = &((struct scope *)(uintptr_t)system->scope.bits[0])->block;
    bool by_exception = block_flight(thread, me, block) || block_foreign(thread, block);
    uint32_t calls = CALL_STOP | (by_exception ? CALL_NOW : 0);
    {
        STRAND_SHIELD;
        while (stop(thread, system, calls) == -ENOMEM)
            thread = place_await_memory();
        strand_event_wait(&system->over);
    }
    unlink_system(thread_self(), system);
    events_tell_rest(system);
    place_close(thread_self(), system);
    struct system_end end __attribute__((cleanup(free_at_the_end))) = {system};
    strand_scope_cancel(system->scope, NULL); /* their ends are expected */
    strand_scope_leave_(&system->scope);
}

/* ---- actors ------------------------------------------------------------------------------------------------ */

static int make_actor(struct thread *thread, struct system *system, strand_actor parent, const strand_actor_attr *attr,
                      const strand_actor_class *class, const void *args, size_t size, struct envelope *first,
                      strand_actor *out)
{
    const char *dispatcher = attr && attr->dispatcher ? attr->dispatcher : class->dispatcher;
    struct place *place;
    int error = dispatch_find(thread, system, dispatcher, &place);
    if (UNLIKELY(error))
        return error;
    thread = thread_self();
    struct kind *kind = kind_of(thread, place, class, size);
    if (UNLIKELY(!kind))
        return -ENOMEM;
    return cell_make(thread, kind, parent, attr ? attr->name : NULL, args, class->start ? CALL_START : 0, first, out);
}

static void check_spawn(const strand_actor_attr *attr, const strand_actor_class *class, const void *args, size_t size,
                        const char *function)
{
    must_be_there(class, "class", function);
    if (class->size != sizeof *class)
        MISUSE(function, "", "strand_actor_class.size is %zu, not sizeof(strand_actor_class)", class->size);
    if (attr && attr->size != sizeof *attr)
        MISUSE(function, "", "strand_actor_attr.size is %zu, not sizeof(strand_actor_attr)", attr->size);
    if (!class->receive)
        MISUSE(function, "", "the class '%s' has no receive function: set .receive",
               class->name ? class->name : "actor");
    if (size && !args)
        MISUSE(function, "", "the arguments are NULL, and their size is %zu", size);
    must_not_hold_address(thread_self(), args, size, NULL, "the arguments", function);
}

static COLD __attribute__((noreturn)) void refuse_actor(const strand_actor_attr *attr, int error)
{
    struct cb *me = current_of(thread_self());
    char what[160];
    if (!attr || !attr->name || (error != -EEXIST && error != -EINVAL))
        throw_system(me, error, "an actor");
    snprintf(what, sizeof what, "an actor named '%.64s'%s", attr->name,
             error == -EEXIST ? ", as a sibling of it is"
                              : ": a name has 1 to 63 bytes without '/', and no '$' in front");
    throw_system(me, error, what);
}

static strand_actor spawn(struct thread *thread, struct system *system, strand_actor parent,
                          const strand_actor_attr *attr, const strand_actor_class *class, const void *args, size_t size)
{
    strand_actor actor;
    int error = make_actor(thread, system, parent, attr, class, args, size, NULL, &actor);
    if (UNLIKELY(error))
        refuse_actor(attr, error);
    return actor;
}

strand_actor strand_actor_spawn(strand_actors handle, const strand_actor_attr *attr, const strand_actor_class *class,
                                const void *args, size_t size)
{
    struct thread *thread = must_be_strand("strand_actor_spawn");
    struct system *system = system_of(thread, handle, "strand_actor_spawn");
    check_spawn(attr, class, args, size, "strand_actor_spawn");
    return spawn(thread, system, system->user, attr, class, args, size);
}

const char *made_actor(const struct runner *r, char *buffer, size_t size)
{
    char path[128];
    if (!r || !r->task)
        return "";
    cell_path_end(r->cell, path, sizeof path);
    int length = snprintf(buffer, size, "the caller is the actor %s of class '%s'", path, cell_kind(r->cell)->label);
    if (r->in_hand && length >= 0 && (size_t)length < size)
        snprintf(buffer + length, size - (size_t)length, ", which handles a '%s'", r->in_hand->message.type->name);
    return buffer;
}

struct runner *must_be_actor(struct thread *thread, const char *function)
{
    struct runner *r = runner_self(thread);
    if (UNLIKELY(!r || !r->task))
        MISUSE(function, "",
               "the caller is not an actor that handles a message: call it in a function of the actor's class");
    return r;
}

strand_actor strand_actor_spawn_child(const strand_actor_attr *attr, const strand_actor_class *class, const void *args,
                                      size_t size)
{
    struct thread *thread = must_be_strand("strand_actor_spawn_child");
    struct runner *r = must_be_actor(thread, "strand_actor_spawn_child");
    check_spawn(attr, class, args, size, "strand_actor_spawn_child");
    return spawn(thread, r->place->system, r->self, attr, class, args, size);
}

int strand_actor_stop(strand_actor actor, enum strand_stopping how)
{
    struct thread *thread = must_be_strand("strand_actor_stop");
    if ((unsigned)how > STRAND_STOP_NOW)
        MISUSE("strand_actor_stop", "", "%d is not a way of stopping, such as STRAND_STOP_NEXT", (int)how);
    if (!ref_is_ours(thread, actor))
        return outside_is(thread, actor) ? -EREMOTE : 0;
    int error = how == STRAND_STOP_LAST ? message_send_last(thread, actor)
                                        : cell_call(thread, actor, CALL_STOP | (how == STRAND_STOP_NOW ? CALL_NOW : 0));
    return error == -ESRCH || error == -EPIPE ? 0 : error;
}

strand_actor strand_actor_self(void)
{
    struct thread *thread = must_be_strand("strand_actor_self");
    struct runner *r = runner_self(thread);
    return r ? r->self : (strand_actor){{0, 0}};
}

static int call(strand_actor actor, uint32_t calls, const char *function)
{
    struct thread *thread = must_be_strand(function);
    if (!ref_is_ours(thread, actor))
        return outside_is(thread, actor) ? -EREMOTE : 0;
    int error = cell_call(thread, actor, calls);
    return error == -ESRCH ? 0 : error;
}

int strand_actor_suspend(strand_actor actor)
{
    return call(actor, CALL_SUSPEND, "strand_actor_suspend");
}

int strand_actor_resume(strand_actor actor)
{
    return call(actor, CALL_RESUME, "strand_actor_resume");
}

int strand_actor_restart(strand_actor actor)
{
    return call(actor, CALL_RESTART, "strand_actor_restart");
}

bool strand_actor_ended(strand_actor actor)
{
    struct thread *thread = must_be_strand("strand_actor_ended");
    return !cell_is_there(thread, actor) && !outside_is_there(thread, actor);
}

strand_actor strand_actor_parent(void)
{
    struct thread *thread = must_be_strand("strand_actor_parent");
    struct runner *r = runner_self(thread);
    return r && r->cell->parent ? cell_ref(r->cell->parent) : (strand_actor){{0, 0}};
}

strand_actors strand_actor_system(void)
{
    struct thread *thread = must_be_strand("strand_actor_system");
    struct runner *r = runner_self(thread);
    return r ? handle_of_system(r->place->system) : (strand_actors){{0, 0}};
}

strand_scope strand_actor_scope(void)
{
    struct thread *thread = must_be_strand("strand_actor_scope");
    return must_be_actor(thread, "strand_actor_scope")->scope;
}

void strand_unhandled(strand_message *message)
{
    struct thread *thread = must_be_strand("strand_unhandled");
    struct runner *r = must_be_in_hand(thread, message, "strand_unhandled");
    r->unhandled = true;
    events_letter(thread, r->place->system, STRAND_ON_UNHANDLED, r->self, message);
}

/* ---- functions run by actors -------------------------------------------------------------------------------- */

struct procedure {
    strand_fn *fn;
    void *arg;
};

static void run_procedure(void *state, strand_message *message)
{
    const struct procedure *procedure = state;
    (void)message;
    (void)cell_call(thread_self(), strand_actor_self(), CALL_STOP); /* it is awake: this takes no memory */
    procedure->fn(procedure->arg);
}

static const strand_message_type run_message = {"run", NULL};
static const strand_actor_class procedure_class = {.size = sizeof procedure_class,
                                                   .name = "procedure",
                                                   .state_size = sizeof(struct procedure),
                                                   .receive = run_procedure};

int strand_actors_run(strand_actors handle, const char *dispatcher, strand_fn *fn, void *arg)
{
    struct thread *thread = must_be_strand("strand_actors_run");
    struct system *system = system_of(thread, handle, "strand_actors_run");
    struct procedure procedure = {fn, arg};
    strand_actor actor;
    if (!fn)
        MISUSE("strand_actors_run", "", "the function is NULL: pass the one to run");
    must_not_escape(thread, arg, "the argument", "strand_actors_run");
    struct envelope *first = message_new(thread, &run_message, "", 0);
    if (!first)
        return -ENOMEM;
    int error = make_actor(thread, system, system->user, STRAND_ACTOR_ATTR(.dispatcher = dispatcher), &procedure_class,
                           &procedure, sizeof procedure, first, &actor);
    if (error)
        envelope_unsend(thread_self(), first);
    return error;
}
