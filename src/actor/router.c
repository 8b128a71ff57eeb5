/*
 * Routers: actors that forward each message to one of their children, or to all of them. A child that ends is not
 * replaced; one that fails is restarted, unless the supervision of its class says otherwise.
 */
#include "cell.h"
#include "event_stream.h"
#include "message.h"
#include "optional.h"
#include "promise.h"

#include "../strand/misuse.h"
#include "../strand/sized.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One routee. Those that have not ended are the first `count` of router.order. */
struct routee {
    struct index_node by_actor;
    strand_actor actor;
    size_t at; /* in router.order */
};

/* Stored with the arguments of the router's spawn: it lives as long as the actor, through restarts. */
struct router {
    strand_router what;
    struct limits limits; /* limits of restarts: what.max_restarts, and so on */
    size_t count, next, args_at;
    size_t reached; /* for a message in hand that goes to all: how many have got it, or were skipped */
    bool refused;   /* then: one could not get it */
    struct tree by_actor;
    struct routee **order; /* what.count entries, behind the routees */
    struct routee routees[];
};

/* ---- choice of a routee ------------------------------------------------------------------------------------- */

static size_t smallest(struct thread *thread, const struct router *router)
{
    size_t best = 0, least = SIZE_MAX;
    for (size_t i = 0; i < router->count && least; i++) {
        size_t load = cell_load(thread, router->order[i]->actor);
        if (load < least) {
            least = load;
            best = i;
        }
    }
    return best;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Rendezvous hashing: the routee with the greatest hash of its number and the message's key. If a routee ends, only its
 * messages move. */
static size_t by_hash(const struct router *router, const strand_message *message)
{
    uint64_t key = router->what.hash(message), most = 0;
    size_t best = 0;
    for (size_t i = 0; i < router->count; i++) {
        uint64_t weight = mix(key ^ mix(router->order[i]->actor.bits[1]));
        if (weight >= most) {
            most = weight;
            best = i;
        }
    }
    return best;
}

static size_t choose(struct router *router, const strand_message *message)
{
    struct thread *thread = thread_self();
    switch (router->what.route) {
    case STRAND_ROUTE_RANDOM:
        return platform_chance(thread, (uint32_t)router->count);
    case STRAND_ROUTE_SMALLEST:
        return smallest(thread, router);
    case STRAND_ROUTE_HASH:
        return by_hash(router, message);
    default:
        return router->next++ % router->count;
    }
}

/* ---- forwarding --------------------------------------------------------------------------------------------- */

/* Remove a routee; the last one takes its place. */
static void forget(struct router *router, struct routee *routee)
{
    struct routee *last = router->order[--router->count];
    index_remove(&router->by_actor, &routee->by_actor);
    router->order[last->at = routee->at] = last;
}

static void forget_ended(struct router *router, strand_actor actor)
{
    struct index_node *found = index_find(&router->by_actor, actor.bits[1]);
    if (found)
        forget(router, CONTAINER(found, struct routee, by_actor));
}

/* Whether the message in hand is a notice of an end that the router watched; otherwise another actor has sent it as an
 * ordinary message. */
static bool is_notice(void)
{
    struct runner *r = runner_self(thread_self());
    bool is = r->notice == r->in_hand;
    r->notice = NULL;
    return is;
}

/* The router decides about a failed routee before it sends more to it: it must not wait for room in the routee's
 * mailbox, because only its own decision makes room there. */
static void decide_first(void)
{
    message_put_back(runner_self(thread_self()));
}

/* Send to one routee. A question has a part for each of them. */
static int send_to_routee(strand_actor routee, const strand_message *message, bool asks)
{
    strand_actor sender = message->sender;
    int error = asks ? promise_part(thread_self(), message->sender, &sender) : 0;
    if (error == -ENOMEM)
        return error;
    bool has_part = asks && !error;
    error = strand_tell_as(routee, has_part ? sender : message->sender, message->type, message->body, message->size);
    if (error && has_part)
        promise_settle(thread_self(), sender, error);
    return error;
}

/* Send to all. Only messages that own nothing can be copied to several receivers. A routee that can't be reached does
 * not get it. */
static void broadcast(struct router *router, strand_message *message)
{
    bool asks = is_promise(message->sender) && promise_is_ours(thread_self(), message->sender);
    if (message->type->drop || !message->size) {
        strand_message_unhandled(message);
        return;
    }
    for (; router->reached < router->count; router->reached++) {
        strand_actor routee = router->order[router->reached]->actor;
        if (!cell_is_there(thread_self(), routee)) /* its notice is queued */
            continue;
        int error = send_to_routee(routee, message, asks);
        if (error == -EDEADLK) {
            decide_first();
            return;
        }
        router->refused |= error && error != -EPIPE;
    }
    if (router->refused) /* the other routees may answer it */
        event_stream_unhandled(thread_self(), runner_self(thread_self()), message);
    router->reached = 0;
    router->refused = false;
    if (asks) { /* from here on the routees answer it */
        promise_settle(thread_self(), message->sender, 0);
        message->sender = (strand_actor){{0, 0}};
    }
}

/* Forward to one routee. One that has ended, though its notice is still queued, does not count. One that stops, or
 * restarts, is skipped, except by hash. */
static void pass_on(struct router *router, strand_message *message)
{
    size_t tries = router->what.route == STRAND_ROUTE_HASH ? 1 : router->count;
    int error = -EPIPE;
    while (router->count && tries-- && error == -EPIPE) {
        struct routee *routee = router->order[choose(router, message)];
        error = message_pass(runner_self(thread_self()), routee->actor);
        if (error == -EPIPE && !cell_is_there(thread_self(), routee->actor)) {
            forget(router, routee);
            tries += router->what.route == STRAND_ROUTE_HASH;
        }
    }
    if (error == -EDEADLK)
        decide_first();
    else if (error)
        strand_message_unhandled(message);
}

static void route(void *state, strand_message *message)
{
    struct router *router = *(struct router **)state;
    const strand_terminated *ended = STRAND_IS(message, strand_terminated);
    if (ended && is_notice())
        forget_ended(router, ended->who);
    else if (!router->count)
        strand_message_unhandled(message);
    else if (router->what.route == STRAND_ROUTE_ALL)
        broadcast(router, message);
    else
        pass_on(router, message);
}

static enum strand_directive decide(void *state, strand_actor child, const strand_exception *why)
{
    const struct router *router = *(struct router **)state;
    return router->what.decide ? router->what.decide(NULL, child, why) : STRAND_RESTART;
}

static void start(void *state, const void *args)
{
    struct router *router = *(struct router **)state = (struct router *)(uintptr_t)args;
    const void *theirs = router->what.size_of_args ? (const char *)args + router->args_at : NULL;
    struct thread *thread = thread_self();
    struct optional *optional = optional_of(thread, runner_self(thread)->cell);
    if (!optional)
        throw_no_memory(current_of(thread), "a router");
    optional->limits = &router->limits;
    router->reached = 0;
    router->refused = false;
    router->by_actor = (struct tree){0};
    router->order = (struct routee **)(void *)(router->routees + router->what.count);
    for (router->count = 0; router->count < router->what.count;) {
        struct routee *routee = &router->routees[router->count];
        routee->actor = strand_actor_spawn_child(NULL, router->what.class_, theirs, router->what.size_of_args);
        if (strand_actor_watch(routee->actor))
            throw_no_memory(current_of(thread_self()), "a router");
        index_add(&router->by_actor, &routee->by_actor, routee->actor.bits[1]);
        router->order[routee->at = router->count++] = routee;
    }
}

static const strand_actor_class router_class = {.size = sizeof router_class,
                                                .name = "router",
                                                .state_size = sizeof(struct router *),
                                                .receive = route,
                                                .start = start,
                                                .decide = decide};

static void free_router(struct router **router)
{
    free(*router);
}

static void must_be_complete(const strand_router *what)
{
    must_have_size(what->size, sizeof *what, "strand_router", "strand_router_spawn");
    if (what->size_of_args && !what->args)
        MISUSE("strand_router_spawn", "", "strand_router.size_of_args is %zu, but .args is NULL: set both or neither",
               what->size_of_args);
    if ((unsigned)what->route > STRAND_ROUTE_HASH)
        MISUSE("strand_router_spawn", "", "strand_router.route is %d: set an enumerator, such as STRAND_ROUTE_IN_TURN",
               (int)what->route);
    if (!what->count)
        MISUSE("strand_router_spawn", "", "strand_router.count is 0: set how many routees the router starts");
    if (!what->class_)
        MISUSE("strand_router_spawn", "", "strand_router.class_ is NULL: set the class of the routees");
    if (what->route == STRAND_ROUTE_HASH && !what->hash)
        MISUSE("strand_router_spawn", "", "strand_router.hash is NULL: STRAND_ROUTE_HASH needs the function");
}

strand_actor strand_router_spawn(strand_actors system, const strand_actor_attr *attr, const strand_router *what)
{
    struct thread *thread = must_be_strand("strand_router_spawn");
    must_be_there(what, "router", "strand_router_spawn");
    must_be_complete(what);
    size_t args_at, size;
    if (__builtin_mul_overflow(what->count, sizeof(struct routee) + sizeof(struct routee *), &args_at) ||
        __builtin_add_overflow(args_at, sizeof(struct router), &args_at) ||
        __builtin_add_overflow(args_at, what->size_of_args, &size) || size > SIZE_MAX / 2)
        throw_no_memory(current_of(thread), "a router");
    struct router *router __attribute__((cleanup(free_router))) = platform_calloc(thread, 1, size);
    if (!router)
        throw_no_memory(current_of(thread), "a router");
    router->what = *what;
    router->limits =
        (struct limits){what->max_restarts, what->restarts_within_ns, what->backoff_ns, what->max_backoff_ns};
    router->args_at = args_at;
    if (what->size_of_args)
        memcpy((char *)router + args_at, what->args, what->size_of_args);
    return strand_actor_spawn(system, attr, &router_class, router, size);
}
