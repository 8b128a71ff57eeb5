/*
 * Actors from outside: spawning, stopping, suspending them; and what an actor asks about itself. The protocol block is
 * in actor.h.
 */
#include "actor.h"

#include "cell.h"
#include "dispatch.h"
#include "event_stream.h"
#include "foreign.h"
#include "message.h"
#include "promise.h"
#include "registry.h"

#include "../strand/escape.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdio.h>

/* ---- spawning ----------------------------------------------------------------------------------------------- */

static int make_actor(struct thread *thread, struct system *system, strand_actor parent, const strand_actor_attr *attr,
                      const strand_actor_class *class, const void *args, size_t size, struct envelope *first,
                      strand_actor *out)
{
    const char *dispatcher = attr && attr->dispatcher ? attr->dispatcher : class->dispatcher;
    struct runners *runners;
    int error = dispatch_find(thread, system, dispatcher, &runners);
    if (UNLIKELY(error))
        return error;
    thread = thread_self();
    struct cell_type *type = cell_type_of(thread, runners, class, size);
    if (UNLIKELY(!type))
        return -ENOMEM;
    return cell_make(thread, type, parent, attr ? attr->name : NULL, args, class->start ? CALL_START : 0, first, out);
}

static void check_spawn(const strand_actor_attr *attr, const strand_actor_class *class, const void *args, size_t size,
                        const char *function)
{
    must_be_there(class, "class", function);
    must_have_size(class->size, sizeof *class, "strand_actor_class", function);
    if (attr)
        must_have_size(attr->size, sizeof *attr, "strand_actor_attr", function);
    if (!class->receive)
        MISUSE(function, "", "the class '%s' has no receive function: set .receive",
               class->name ? class->name : "actor");
    if (size && !args)
        MISUSE(function, "",
               "the size of the arguments is %zu, but their address is NULL: pass their address, or the size 0", size);
    must_not_escape_copied(thread_self(), args, size, NULL, "the arguments", function);
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
    struct system *system = registry_find(thread, handle, "strand_actor_spawn");
    check_spawn(attr, class, args, size, "strand_actor_spawn");
    return spawn(thread, system, system->user, attr, class, args, size);
}

strand_actor strand_actor_spawn_child(const strand_actor_attr *attr, const strand_actor_class *class, const void *args,
                                      size_t size)
{
    struct thread *thread = must_be_strand("strand_actor_spawn_child");
    struct runner *r = must_be_actor(thread, "strand_actor_spawn_child");
    check_spawn(attr, class, args, size, "strand_actor_spawn_child");
    return spawn(thread, r->runners->system, r->self, attr, class, args, size);
}

/* ---- requests to an actor -------------------- -------------------------------------------------------------- */

int strand_actor_stop(strand_actor actor, enum strand_actor_stopping how)
{
    struct thread *thread = must_be_strand("strand_actor_stop");
    if ((unsigned)how > STRAND_STOP_NOW)
        MISUSE("strand_actor_stop", "", "%d is not a way of stopping, such as STRAND_STOP_NEXT", (int)how);
    if (!ref_is_ours(thread, actor))
        return foreign_is(thread, actor) ? -EREMOTE : 0;
    int error = how == STRAND_STOP_LAST ? message_send_last(thread, actor)
                                        : cell_call(thread, actor, CALL_STOP | (how == STRAND_STOP_NOW ? CALL_NOW : 0));
    return error == -ESRCH || error == -EPIPE ? 0 : error;
}

static int call(strand_actor actor, uint32_t calls, const char *function)
{
    struct thread *thread = must_be_strand(function);
    if (!ref_is_ours(thread, actor))
        return foreign_is(thread, actor) ? -EREMOTE : 0;
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
    return !cell_is_there(thread, actor) && !foreign_is_there(thread, actor);
}

/* ---- of the actor that calls -------------------------------------------------------------------------------- */

strand_actor strand_actor_self(void)
{
    struct thread *thread = must_be_strand("strand_actor_self");
    struct runner *r = runner_self(thread);
    return r ? r->self : (strand_actor){{0, 0}};
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
    return r ? registry_handle(r->runners->system) : (strand_actors){{0, 0}};
}

strand_scope strand_actor_scope(void)
{
    struct thread *thread = must_be_strand("strand_actor_scope");
    return must_be_actor(thread, "strand_actor_scope")->scope;
}

void strand_message_unhandled(strand_message *message)
{
    struct thread *thread = must_be_strand("strand_message_unhandled");
    struct runner *r = message_must_be_in_hand(thread, message, "strand_message_unhandled");
    event_stream_unhandled(thread, r, message);
    if (is_promise(message->sender))
        promise_settle(thread, message->sender, -EPIPE);
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

static const strand_message_type run_message = STRAND_MESSAGE_TYPE_("run", NULL);
static const strand_actor_class procedure_class = {.size = sizeof procedure_class,
                                                   .name = "procedure",
                                                   .state_size = sizeof(struct procedure),
                                                   .receive = run_procedure};

int strand_actors_run(strand_actors handle, const char *dispatcher, strand_fn *fn, void *arg)
{
    struct thread *thread = must_be_strand("strand_actors_run");
    struct system *system = registry_find(thread, handle, "strand_actors_run");
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
